"""Claude Code's own export: spans for structure, log records for content, cost and refusals.

A sub-agent has no span: its requests and calls stand below the call that dispatched it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from baton.readers.otlp.messages import Answer, Message
from baton.readers.otlp.node import Node
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.tokens import usage
from baton.readers.otlp.values import amount, content, first, shown, text, whole

from .base import Dialect
from .genai import fail

_SCOPE = "com.anthropic.claude_code"
_NAME = "claude_code."
_DISPATCH = frozenset({"Agent", "Task"})
_DEFAULT = "general-purpose"
_NOTICE = "<task-notification>"
_TAG = re.compile(r"<(tool-use-id|status|result)>(.*?)</\1>", re.DOTALL)
_DONE = "completed"


def claims(span: Span) -> bool:
    """Tell a span of Claude Code."""
    return span.scope.startswith(_SCOPE) or span.name.startswith(_NAME)


def read(span: Span) -> Node:
    """Read one span."""
    attributes = span.attributes
    kind = span.name.removeprefix(_NAME)
    node = Node(span=span, kind="none", framework="claude-code")
    if kind == "interaction":
        node.kind = "agent"
        _interaction(node)
    elif kind == "llm_request":
        node.kind, node.usage = "model", _usage(attributes)
        node.model = text(first(attributes, "gen_ai.request.model", "model"))
        node.failed = attributes.get("success") is False
        node.error = text(attributes.get("error")) if node.failed else None
    elif kind == "tool":
        node.kind = "tool"
        node.name = text(first(attributes, "gen_ai.tool.name", "tool_name"))
        node.call = text(first(attributes, "gen_ai.tool.call.id", "tool_use_id"))
        if node.name in _DISPATCH:
            node.mode = "delegate"
            node.target = text(attributes.get("subagent_type")) or _DEFAULT
        _output(node)
    fail(node)
    return node


def goes_on(_before: list[Span], spans: list[Span]) -> bool:
    """Tell spans that continue the turn before: they begin with what a background agent answers."""
    prompts = (span.attributes.get("user_prompt") for span in spans if claims(span))
    prompt = next((prompt for prompt in prompts if prompt is not None), None)
    return isinstance(prompt, str) and prompt.lstrip().startswith(_NOTICE)


def _interaction(node: Node) -> None:
    prompt = text(node.span.attributes.get("user_prompt"))
    if prompt is None or not prompt.lstrip().startswith(_NOTICE):
        node.heard = shown(prompt)
        return
    told = dict(_TAG.findall(prompt))
    node.told.append(
        Answer(
            id=text(told.get("tool-use-id")),
            result=content(told.get("result")),
            failed=told.get("status", _DONE) != _DONE,
            at=node.span.started,
        )
    )


def _usage(attributes: Mapping[str, Any]) -> Any:
    """Read the counts: the input is without cached tokens, whatever the convention says."""
    counts = {
        "input": whole(attributes.get("input_tokens")),
        "output": whole(attributes.get("output_tokens")),
        "read": whole(attributes.get("cache_read_tokens")),
        "write": whole(attributes.get("cache_creation_tokens")),
    }
    if counts["input"] is None and counts["output"] is None:
        return None
    return usage(**counts, total=sum(count or 0 for count in counts.values()))


def _output(node: Node) -> None:
    for event in node.span.events:
        if event.name == "tool.output":
            node.result = content(first(event.attributes, "output", "content", "result"))


def resolve(nodes: list[Node], logs: list[Event]) -> list[Node]:
    """Take content, cost and refusals out of the log records, by the ids of request and call."""
    own = [node for node in nodes if claims(node.span)]
    if not own:
        return []
    requests = {
        id_: node
        for node in own
        if node.kind == "model"
        and (id_ := text(first(node.span.attributes, "gen_ai.response.id", "request_id")))
    }
    calls = {node.call: node for node in own if node.kind == "tool" and node.call is not None}
    for name, told in _records(own, logs):
        request = requests.get(str(told.get("request_id")))
        call = calls.get(str(told.get("tool_use_id")))
        if name == "api_request" and request is not None:
            _cost(request, told)
        elif name == "assistant_response" and request is not None:
            _answered(request, told)
        elif name == "tool_result" and call is not None:
            _called(call, told)
        elif name == "tool_decision" and call is not None:
            _decided(call, told)
    return []


def _records(own: list[Node], logs: list[Event]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for event in (*logs, *(event for node in own for event in node.span.events)):
        yield event.name.removeprefix(_NAME), event.attributes


def _cost(request: Node, told: Mapping[str, Any]) -> None:
    cost = amount(told.get("cost_usd"))
    if request.usage is None:
        request.usage = _usage(told)
    if request.usage is not None and cost is not None:
        request.usage.cost_usd, request.usage.cost_from = cost, "source"


def _answered(request: Node, told: Mapping[str, Any]) -> None:
    said = content(told.get("response"))
    if said is not None:
        request.spoken = lambda: [Message(role="assistant", content=said)]


def _called(call: Node, told: Mapping[str, Any]) -> None:
    call.arguments = shown(told.get("tool_input"))
    if str(told.get("success")).lower() == "false":
        call.failed = True
        call.error = call.error or text(told.get("error"))


def _decided(call: Node, told: Mapping[str, Any]) -> None:
    if told.get("decision") == "reject":
        source = str(told.get("source", ""))
        call.refused_by = "user" if source.startswith("user") else "policy"


DIALECT = Dialect(
    name="claude-code", rank=10, claims=claims, read=read, resolve=resolve, goes_on=goes_on
)

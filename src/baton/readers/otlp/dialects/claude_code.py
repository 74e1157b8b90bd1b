"""Claude Code's own export: spans for structure, log records for content, cost and refusals.

A sub-agent has no span: its requests and calls are below the call that dispatched it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from baton.model import Content, Usage
from baton.readers.otlp.attribute_values import (
    amount,
    content,
    first,
    parsed,
    shown,
    text,
    usage,
    whole,
)
from baton.readers.otlp.messages import Answer, Message
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    fail,
)

from .dialect import Dialect

_SCOPE = "com.anthropic.claude_code"
_NAME = "claude_code."
_DISPATCH = frozenset({"Agent", "Task"})
# The sub-agent that Claude Code starts if the call names none.
_DEFAULT = "general-purpose"
# When a background agent has finished, Claude Code starts a new interaction, whose prompt is this
# notice. It is not from a user, but is the answer to the earlier dispatch.
_NOTICE = "<task-notification>"
_TAG = re.compile(r"<(tool-use-id|status|result)>(.*?)</\1>", re.DOTALL)
_DONE = "completed"
_MCP, _ANY_MCP = "mcp__", "mcp_tool"


def claims(span: Span) -> bool:
    """Return whether a span is from Claude Code."""
    return span.scope.startswith(_SCOPE) or span.name.startswith(_NAME)


def read(span: Span) -> Reading:
    """Read one span."""
    attributes = span.attributes
    kind = span.name.removeprefix(_NAME)
    says: Reading
    if kind == "interaction":
        says = _interaction(span)
    elif kind == "llm_request":
        says = ModelSpan(
            usage=_usage(attributes),
            model=text(first(attributes, "gen_ai.request.model", "model")),
            failed=attributes.get("success") is False,
            tells_calls=False,  # log records contain texts, and calls only once a tool runs
        )
        says.error = text(attributes.get("error")) if says.failed else None
    elif kind == "tool":
        says = ToolSpan(
            name=_tool_name(attributes),
            call=text(first(attributes, "gen_ai.tool.call.id", "tool_use_id")),
            tells_result=False,  # the export has results of some tools only
        )
        if says.name in _DISPATCH:
            says.mode, says.sure = "delegate", True
            says.target = text(attributes.get("subagent_type"))
        for event in span.events:
            if event.name == "tool.output":
                says.result = content(first(event.attributes, "output", "content", "result"))
    else:
        says = PlainSpan()
    says.framework = "claude-code"
    fail(says, span)
    return says


def _tool_name(attributes: Mapping[str, Any]) -> str | None:
    """Return the name by which the model calls a tool: ``mcp__docs__search``.

    ``gen_ai.tool.name`` has only the last part of the name, with the server in another attribute.
    Some versions use the name ``mcp_tool`` for all tools of servers.
    """
    name, own = text(attributes.get("gen_ai.tool.name")), text(attributes.get("tool_name"))
    server = text(attributes.get("anthropic.mcp.server.name"))
    if server is not None and name is not None and not name.startswith(_MCP):
        return f"{_MCP}{server}__{name}"
    return own if own is not None and own != _ANY_MCP else name


def goes_on(_before: list[Span], spans: list[Span]) -> bool:
    """Return whether spans continue the turn before: they start with an agent's late answer."""
    prompts = (span.attributes.get("user_prompt") for span in spans if claims(span))
    prompt = next((prompt for prompt in prompts if prompt is not None), None)
    return isinstance(prompt, str) and prompt.lstrip().startswith(_NOTICE)


def _interaction(span: Span) -> AgentSpan:
    prompt = text(span.attributes.get("user_prompt"))
    if prompt is None or not prompt.lstrip().startswith(_NOTICE):
        return AgentSpan(heard=shown(prompt))
    notice = dict(_TAG.findall(prompt))
    answer = Answer(
        id=text(notice.get("tool-use-id")),
        result=content(notice.get("result")),
        failed=notice.get("status", _DONE) != _DONE,
        at=span.started,
    )
    return AgentSpan(late=[answer])


def _usage(attributes: Mapping[str, Any]) -> Any:
    """Read the counts. The input excludes cached tokens, unlike in OpenTelemetry's convention."""
    counts = {
        "input": whole(attributes.get("input_tokens")),
        "output": whole(attributes.get("output_tokens")),
        "read": whole(attributes.get("cache_read_tokens")),
        "write": whole(attributes.get("cache_creation_tokens")),
    }
    if counts["input"] is None and counts["output"] is None:
        return None
    return usage(**counts, total=sum(count or 0 for count in counts.values()))


def resolve(nodes: list[Node], logs: list[Event]) -> list[Node]:
    """Read content, cost and refusals from the log records, by the ids of request and call."""
    own = [node for node in nodes if claims(node.span)]
    requests: dict[str, ModelSpan] = {}
    calls: dict[str, ToolSpan] = {}
    for node in own:
        says = node.says
        if type(says) is ModelSpan:
            id_ = text(first(node.span.attributes, "gen_ai.response.id", "request_id"))
            if id_ is not None:
                requests[id_] = says
        elif type(says) is ToolSpan and says.call is not None:
            calls[says.call] = says
    for event in (*logs, *(event for node in own for event in node.span.events)):
        name, record = event.name.removeprefix(_NAME), event.attributes
        request = requests.get(str(record.get("request_id")))
        call = calls.get(str(record.get("tool_use_id")))
        if name == "api_request" and request is not None:
            cost = amount(record.get("cost_usd"))
            if request.usage is None:
                request.usage = _usage(record)
            if request.usage is not None and cost is not None:
                request.usage.cost_usd, request.usage.cost_from = cost, "source"
        elif name == "assistant_response" and request is not None:
            said = content(record.get("response"))
            if said is not None:
                request.spoken = partial(_one_message, said)
        elif name in ("tool_result", "tool_decision") and call is not None:
            call.request = call.request or text(record.get("request_id"))
        if call is not None and call.name == _ANY_MCP:
            call.name = _named_in(record) or call.name
        if name == "tool_result" and call is not None:
            call.arguments = shown(record.get("tool_input"))
            # Only the arguments show that a call named no agent; the span can leave the name out.
            if call.mode == "delegate" and isinstance(call.arguments, dict):
                named = text(call.arguments.get("subagent_type"))
                call.target = call.target or named or _DEFAULT
            if str(record.get("success")).lower() == "false":
                call.failed = True
                call.error = call.error or text(record.get("error"))
        elif name == "tool_decision" and call is not None:
            # `source` is `user_reject`, `user_abort` and the like for a person, else `config` or
            # `hook`.
            if record.get("decision") == "reject":
                by_user = str(record.get("source", "")).startswith("user")
                call.refused_by = "user" if by_user else "policy"
    _price_failures(own, requests)
    return []


def _price_failures(own: list[Node], requests: Mapping[str, ModelSpan]) -> None:
    """Set the cost of failed requests to zero, if the log has the cost of all others."""
    if all(says.usage is None or says.usage.cost_usd is None for says in requests.values()):
        return
    for node in own:
        if type(node.says) is ModelSpan and node.says.failed and node.says.usage is None:
            node.says.usage = Usage(cost_usd=0.0, cost_from="source", complete=True)


def _named_in(record: Mapping[str, Any]) -> str | None:
    """Return the name of a server's tool, from the parameters in a log record."""
    listed = parsed(record.get("tool_parameters"))
    if not isinstance(listed, dict):
        return None
    server, name = text(listed.get("mcp_server_name")), text(listed.get("mcp_tool_name"))
    return f"{_MCP}{server}__{name}" if server and name else None


def _one_message(said: Content) -> list[Message]:
    return [Message(role="assistant", content=said)]


DIALECT = Dialect(
    name="claude-code", rank=10, claims=claims, read=read, resolve=resolve, goes_on=goes_on
)

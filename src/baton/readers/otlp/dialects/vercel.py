"""The Vercel AI SDK: ``ai.*`` spans of versions 3 to 6, and ``gen_ai.*`` spans of version 7.

``generateText``, ``streamText`` and similar functions have one span each, with a span for each
request to the model (``.doGenerate``, ``.doStream``) and each tool call (``ai.toolCall``). Only
``functionId`` names an agent, even if it is an object of the class ``ToolLoopAgent``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from baton.model import AgentCard, Content, Usage
from baton.readers.otlp.attribute_values import (
    content,
    finite,
    first,
    parsed,
    shown,
    text,
    usage,
    whole,
)
from baton.readers.otlp.handover_calls import hand_over
from baton.readers.otlp.messages import Call, Message, read_messages
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    as_plain,
    fail,
)
from baton.readers.tool_definitions import targets_of, tool_names

from . import genai
from .dialect import Dialect

_OPERATION = "ai.operationId"
_FUNCTION = "ai.telemetry.functionId"
_SCOPE, _SCOPE_7 = "ai", "gen_ai"
_FRAMEWORK = "vercel-ai"
_NAME = re.compile(r"ai\.[A-Za-z]+(?:\.[A-Za-z]+)?")
_AGENTS = frozenset(
    {"ai.generateText", "ai.streamText", "ai.generateObject", "ai.streamObject",
     "ai.workflowAgent.stream"}
)  # fmt: skip
_REQUESTS = frozenset(
    {f"{agent}.{do}" for agent in _AGENTS for do in ("doGenerate", "doStream")}
)  # fmt: skip
_TOOL = "ai.toolCall"
_OPENINFERENCE = "openinference.span.kind"
# Traceloop's SDK changes spans of the Vercel AI SDK: it renames attributes, so the remaining `ai.*`
# names are not complete.
_TRACELOOP = "traceloop.span.kind"
# The classes of the SDK's errors: what a model is told of a call of an unknown tool, or one with
# arguments that its schema does not allow.
_INVALID = ("AI_InvalidToolInputError: ", "AI_NoSuchToolError: ")
# `{"denied": true, "reason": "Not today"}` in version 7; before, `{"type": "execution-denied"}`.
_DENIED = frozenset({"denied", "reason"})
# The SDK's own value, and those of providers, which older versions pass on.
_CALLING = frozenset({"tool-calls", "tool_calls", "tool-call"})


def claims(span: Span) -> bool:
    """Return whether a span is from the SDK.

    Traceloop renames the attributes of such spans, and its own dialect reads them. OpenInference
    and LangSmith add attributes, and keep those of the SDK.
    """
    attributes = span.attributes
    if _TRACELOOP in attributes:
        return False
    if span.scope == _SCOPE_7 and "gen_ai.operation.name" in attributes:
        return True
    return _OPERATION in attributes or (span.scope == _SCOPE and _NAME.match(span.name) is not None)


def read(span: Span) -> Reading:
    """Read one span."""
    operation = text(span.attributes.get(_OPERATION))
    says: Reading
    if operation is None and "gen_ai.operation.name" in span.attributes:
        says = _of_version_7(span)
    else:
        operation = operation or span.name.partition(" ")[0]
        if operation in _AGENTS:
            says = _agent(span)
        elif operation in _REQUESTS:
            says = _model(span)
        elif operation == _TOOL:
            says = _tool(span)
        else:  # embeddings, images, speech: no agent is running in them
            says = PlainSpan(name=operation)
        fail(says, span)
    says.framework = _FRAMEWORK
    return says


def _of_version_7(span: Span) -> Reading:
    """Read what version 7 writes under OpenTelemetry's names, with results as JSON."""
    if span.attributes["gen_ai.operation.name"] == "agent_step":
        return PlainSpan(name=span.name)
    says = genai.read(span)
    if type(says) is ToolSpan and "gen_ai.tool.call.result" in span.attributes:
        says.result = _result(span.attributes["gen_ai.tool.call.result"])
    elif type(says) is ModelSpan:
        reasons = span.attributes.get("gen_ai.response.finish_reasons")
        says.calls = says.calls or (isinstance(reasons, list) and not _CALLING.isdisjoint(reasons))
    if type(says) is ModelSpan and says.heard is not None:
        heard = says.heard
        says.heard = lambda: _judged(read_messages(heard))
        if says.offered is None:
            says.offered = []  # the request is recorded, and it offers no tool
    return says


def refine(says: Reading, span: Span) -> Reading:
    """Leave an agent without a name if its span of version 7 has only the name of the model.

    Any other name is the program's own, by ``functionId`` or by the option ``agentSpanName``. It is
    here and not in ``read``, because processors add attributes by which it may get that name again.
    """
    attributes = span.attributes
    if type(says) is AgentSpan and span.scope == _SCOPE_7 and "gen_ai.agent.name" not in attributes:
        model = text(attributes.get("gen_ai.request.model"))
        says.name = None if says.name == model else says.name
    return says


def _judged(heard: list[Message]) -> list[Message]:
    """Mark the answers by which the SDK says that a call was not carried out.

    Their types are recorded by no version 7, and by older ones only for errors.
    """
    for message in heard:
        for answer in message.answers:
            result = answer.result
            if result is None:
                continue
            if (result.text or "").startswith(_INVALID):
                answer.failed = True
            elif isinstance(result.data, dict):
                denied = result.data.get("denied") is True and result.data.keys() <= _DENIED
                if denied or result.data.get("type") == "execution-denied":
                    answer.refused = True
                    reason = text(result.data.get("reason"))
                    answer.result = None if reason is None else Content(text=reason)
    return heard


def _agent(span: Span) -> AgentSpan:
    attributes = span.attributes
    says = AgentSpan(
        name=text(attributes.get(_FUNCTION)),
        model=text(first(attributes, "ai.response.model", "ai.model.id")),
        output=_said(attributes),
        totals=_usage(attributes),
    )
    asked = parsed(first(attributes, "ai.prompt", "ai.input"))
    if asked is not None:
        says.heard = lambda: _asked(asked)
        system = first(asked, "system", "instructions") if isinstance(asked, dict) else None
        says.instructions = _instructions(system)
    if says.output is not None:
        says.spoken = lambda: _answered(attributes, calls=False)
    says.card = AgentCard(model=says.model)
    return says


def _asked(prompt: Any) -> list[Message]:
    """Return the input of a call: ``{"prompt": ...}`` or ``{"messages": [...]}``."""
    if not isinstance(prompt, dict):
        return read_messages(prompt)
    asked = [read_messages(prompt[key]) for key in ("messages", "prompt") if prompt.get(key)]
    return [message for messages in asked for message in messages]


def _instructions(instructions: Any) -> Any:
    """Return instructions, which may be a text, a system message or several."""
    if isinstance(instructions, str):
        return instructions
    said = [one.content.plain() for one in read_messages(instructions) if one.content is not None]
    return "\n".join(said) or None


def _model(span: Span) -> ModelSpan:
    """Read a request, by OpenTelemetry's names if other tools removed those of the SDK."""
    attributes = span.attributes
    says = genai.read_model(span)
    says.agent = text(attributes.get(_FUNCTION))  # used if the span of the call is lost
    model = first(attributes, "ai.response.model", "gen_ai.response.model", "ai.model.id")
    says.model = text(model) or says.model
    heard = first(attributes, "ai.prompt.messages", "ai.prompt")
    if heard is not None:
        asked = parsed(heard)
        says.heard = lambda: _judged(_asked(asked))
    if _said(attributes) is not None or _calls_in(attributes) is not None:
        says.spoken = lambda: _answered(attributes, calls=True)
    says.offered = tool_names(attributes.get("ai.prompt.tools")) or says.offered
    says.reaches = targets_of(attributes.get("ai.prompt.tools")) or says.reaches
    if says.offered is None and heard is not None:
        says.offered = []  # the request is recorded, and it offers no tool
    says.usage = _usage(attributes) or says.usage
    reason = text(first(attributes, "ai.response.finishReason", "ai.finishReason"))
    says.calls = says.calls or reason in _CALLING
    return says


def _said(attributes: Mapping[str, Any]) -> Content | None:
    said = text(first(attributes, "ai.response.text", "ai.result.text"))
    if said is not None:
        return Content(text=said)
    made = first(attributes, "ai.response.object", "ai.result.object")
    return None if made is None else _result(made)


def _calls_in(attributes: Mapping[str, Any]) -> Any:
    return first(attributes, "ai.response.toolCalls", "ai.result.toolCalls")


def _answered(attributes: Mapping[str, Any], *, calls: bool) -> list[Message]:
    """Return the answer of a model or agent as one message."""
    message = Message(role="assistant", content=_said(attributes))
    message.thought = text(first(attributes, "ai.response.reasoning", "ai.response.reasoningText"))
    message.calls = list(_calls(parsed(_calls_in(attributes)))) if calls else []
    return [message]


def _calls(calls: Any) -> Iterator[Call]:
    """Read tool calls; ``args`` until version 4, ``input`` since version 5; both may be texts."""
    for call in calls if isinstance(calls, list) else ():
        name = text(call.get("toolName")) if isinstance(call, dict) else None
        if name is not None:
            arguments = shown(first(call, "input", "args"))
            yield Call(id=text(call.get("toolCallId")), name=name, arguments=arguments)


def _tool(span: Span) -> ToolSpan:
    attributes = span.attributes
    says = ToolSpan(
        name=text(attributes.get("ai.toolCall.name")) or span.name,
        agent=text(attributes.get(_FUNCTION)),
        call=text(attributes.get("ai.toolCall.id")),
        arguments=shown(first(attributes, "ai.toolCall.args", "ai.toolCall.input")),
        result=_result(first(attributes, "ai.toolCall.result", "ai.toolCall.output")),
    )
    hand_over(says, None, attributes)
    return says


def _result(value: Any) -> Content | None:
    """Return a value that the SDK wrote as JSON, such as texts and numbers: ``"231800 people"``."""
    if isinstance(value, str) and value[:1] not in ("{", "["):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return content(value)
        if not isinstance(value, str):
            return None if value is None else Content(data=finite(value))
    return content(value)


def _usage(attributes: Mapping[str, Any]) -> Usage | None:
    """Return the counts; since version 6, details say what the input includes.

    Before, ``inputTokens`` included cached tokens with some providers only.
    """
    prefix = "ai.usage."
    given = whole(first(attributes, prefix + "inputTokens", prefix + "promptTokens"))
    made = whole(first(attributes, prefix + "outputTokens", prefix + "completionTokens"))
    if given is None and made is None:
        return None
    details = prefix + "inputTokenDetails."
    plain = whole(attributes.get(details + "noCacheTokens"))
    read = whole(
        first(attributes, details + "cacheReadTokens", prefix + "cachedInputTokens")
    )  # fmt: skip
    write = whole(attributes.get(details + "cacheWriteTokens"))
    total = whole(first(attributes, prefix + "totalTokens", prefix + "tokens"))
    # Since version 6 the parts are separate. Their sum is right whether or not the input includes
    # cached tokens.
    if plain is not None:
        given = plain + (read or 0) + (write or 0)
        total = given + (made or 0)
    thinking = whole(
        first(attributes, prefix + "outputTokenDetails.reasoningTokens", prefix + "reasoningTokens")
    )
    return usage(
        input=given, output=made, total=total, read=read, write=write, thinking=thinking
    )  # fmt: skip


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Distinguish agents from plain requests among the SDK's calls without a ``functionId``.

    A call at the top of a trace is an agent. So is a call in a tool, if it has tools itself: a tool
    may ask a model once, to sum up what it found. Any other call is a part of the enclosing agent:
    the loop of an agent that another instrumentation records.

    An agent that ended because its model called a tool that the SDK did not carry out waits: a
    person has to allow the call, or the client of the program carries it out.
    """
    for node in nodes:
        if node.says.framework == _FRAMEWORK and type(node.says) in (AgentSpan, ModelSpan):
            _recover(node)
    for node in nodes:
        if node.says.framework == _FRAMEWORK and type(node.says) is AgentSpan:
            node.says.waits = _waits(node)
            _end(node, node.says)
    for node in nodes:
        says = node.says
        if says.framework != _FRAMEWORK or type(says) is not AgentSpan or says.name:
            continue
        around = node.parent
        while around is not None and not isinstance(around.says, AgentSpan | ToolSpan):
            around = around.parent
        # A tool `summarise` that calls `generateText` once, without tools, is no sub-agent.
        if around is None or (type(around.says) is ToolSpan and _has_tools(node)):
            continue
        node.says = as_plain(says)
    return []


def _waits(agent: Node) -> bool:
    """Return whether an agent ended with a call of one of its tools that nothing carried out."""
    if agent.says.failed or agent.span.ended is None:
        return False
    own = list(_own(agent))
    requests = [node for node in own if type(node.says) is ModelSpan]
    last = max(requests, key=lambda node: node.started, default=None)
    if last is None or type(last.says) is not ModelSpan:
        return False
    if not last.says.calls or last.says.failed or not last.says.offered:
        return False
    # Calls of unknown tools are not carried out either: the model is told that there is no such
    # tool. If that was the last step which the program allows, nothing waits.
    offered = set(last.says.offered)
    calls = [call for said in last.says.spoken_messages() for call in said.calls]
    ran = {node.says.call for node in own if type(node.says) is ToolSpan}
    return any(call.id and call.id not in ran and call.name in offered for call in calls)


def _recover(node: Node) -> None:
    """Undo the failure of a request or agent that ended in the usual way.

    Since version 3, OpenInference's processor marks spans around and after a failed one as failed,
    too. Those that really failed have no reason why they finished.
    """
    says, attributes = node.says, node.span.attributes
    reason = first(attributes, "ai.response.finishReason", "gen_ai.response.finish_reasons")
    if _OPENINFERENCE in attributes and reason not in (None, "error", ["error"]):
        says.failed, says.error = False, None


def _end(agent: Node, says: AgentSpan) -> None:
    """Make the last text the answer: ``streamText`` of version 4 joins those of all its steps."""
    whole = says.output.text if says.output is not None else None
    if not whole:
        return
    own = sorted(
        (node for node in _own(agent) if type(node.says) is ModelSpan),
        key=lambda node: node.started,
    )
    said = [
        message.content.text or ""
        for node in own
        if type(node.says) is ModelSpan
        for message in node.says.spoken_messages()
        if message.content is not None
    ]
    if len(said) > 1 and said[-1] and whole == "".join(said):
        says.output, says.spoken, says._spoken = Content(text=said[-1]), None, None


def _own(agent: Node) -> Iterator[Node]:
    """Yield the requests and tool calls of an agent, without those of agents inside it."""
    inside = list(agent.children)
    while inside:
        node = inside.pop()
        if type(node.says) in (ModelSpan, ToolSpan):
            yield node
        # `LegacyOpenTelemetry` of version 7 puts tools below the request that wrote their calls.
        if type(node.says) not in (AgentSpan, ToolSpan):
            inside += node.children


def _has_tools(agent: Node) -> bool:
    inside = list(agent.children)
    while inside:
        node = inside.pop()
        if type(node.says) is ToolSpan:
            return True
        if type(node.says) is ModelSpan and node.says.offered:
            return True
        if type(node.says) is not AgentSpan:
            inside += node.children
    return False


_LABELS = tuple(
    prefix + name
    for name in ("sessionId", "session_id", "threadId", "thread_id", "conversationId",
                 "conversation_id", "chatId", "chat_id")
    for prefix in ("ai.telemetry.metadata.", "ai.settings.context.")
)  # fmt: skip
"""Names that trace stores look for in ``metadata``, and since version 7 in the context."""

DIALECT = Dialect(
    name="vercel-ai",
    rank=30,
    claims=claims,
    read=read,
    refine=refine,
    resolve=resolve,
    tokens=genai.TOKENS,
    costs=genai.COSTS,
    prefixes=("ai.",),
    sessions=_LABELS,
)

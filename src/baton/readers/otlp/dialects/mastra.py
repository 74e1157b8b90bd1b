"""Mastra's spans: of ``@mastra/otel-exporter``, ``@mastra/otel-bridge`` and ``@mastra/arize``.

The loop of an agent is one ``model_generation`` with a ``model_step`` for each request. The step
has the answer and the tool calls, its ``model_inference`` the tokens. A sub-agent is a tool
``agent-NAME`` of its caller, and runs inside that call.

Version 0.3 of the exporter writes the content of every kind of span as ``input`` and ``output``,
and names agents by ``agent.id``. Up to version 1.0, an agent that fails leaves no span.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from baton.model import AgentCard, Content, Usage
from baton.model.views import sum_usage
from baton.readers.otlp.attribute_values import content, first, parsed, shown, text
from baton.readers.otlp.messages import Answer, Call, Message, read_messages
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    WorkflowSpan,
    as_plain,
    fail,
)
from baton.readers.tool_definitions import tool_names

from . import genai
from .dialect import Dialect, with_attribute

_TYPE = "mastra.span.type"
_FRAMEWORK = "mastra"
_TOOLS = frozenset({"tool_call", "mcp_tool_call", "provider_tool_call"})
_RUNS = ("mastra.metadata.runId", "runId")
_SUB_AGENT = "agent-"
# What a sub-agent returns to its caller: `{"text": ..., "subAgentThreadId": ...}`. The model gets
# only the text.
_ANSWER_OF_AGENT = "subAgentThreadId"


def read(span: Span) -> Reading:
    """Read one span."""
    attributes = span.attributes
    kind = text(attributes.get(_TYPE)) or ""
    says: Reading
    if kind == "agent_run":
        says = _agent(span)
    elif kind == "model_inference":
        says = genai.read_model(span)
    elif kind == "model_generation":
        says = _generation(span)
    elif kind == "model_step":
        says = PlainSpan(name=span.name)
        says.spoken = lambda: _answered(parsed(_output(span)))
    elif kind in _TOOLS:
        says = _tool(span)
    elif kind == "workflow_run":
        named = genai.named_by(span.name) or text(attributes.get("workflow.id"))
        says = WorkflowSpan(name=named or span.name.partition(" ")[2])
        asked = parsed(_input(span))
        says.heard = lambda: _given(asked)
    else:  # memory, processors, steps of workflows, chunks: nothing that an agent does itself
        says = PlainSpan(name=span.name)
    says.framework = _FRAMEWORK
    fail(says, span)
    return says


def _input(span: Span) -> Any:
    """Return what a span was given, by its kind: ``mastra.agent_run.input``."""
    return first(span.attributes, f"mastra.{span.attributes[_TYPE]}.input", "input")


def _output(span: Span) -> Any:
    """Return what a span returned, by its kind: ``mastra.model_step.output``."""
    return first(span.attributes, f"mastra.{span.attributes[_TYPE]}.output", "output")


def _agent(span: Span) -> AgentSpan:
    says = genai.read_agent(span)
    attributes = span.attributes
    says.name = says.name or text(first(attributes, "agent.id", "gen_ai.agent.id"))
    says.resumes = attributes.get("mastra.metadata.resumed") is True
    if says.card is None:
        says.card = AgentCard()
    if says.offered is None:
        says.offered = tool_names(attributes.get("agent.available_tools"))
    asked = parsed(_input(span))
    if asked is not None and not says.resumes:
        says.heard = lambda: _given(asked)
    made = parsed(_output(span))
    if isinstance(made, Mapping):
        says.waits = made.get("status") == "suspended"
        said = _said(made)
        if said is not None:
            says.output = said
    return says


def _generation(span: Span) -> PlainSpan | ModelSpan:
    """Read the loop of an agent; what it was given is what its first request contains."""
    says = genai.read_model(span)
    asked = parsed(_input(span))
    if isinstance(asked, Mapping) and isinstance(asked.get("messages"), list):
        says.heard = asked["messages"]
    made = parsed(_output(span))
    if isinstance(made, Mapping):
        says.spoken = lambda: _answered(made)
    says.failed = says.failed or _has_failed(span)
    return says


def _has_failed(span: Span) -> bool:
    """Return whether a request or loop ended with an error, although its span has the status OK."""
    reasons = parsed(span.attributes.get("gen_ai.response.finish_reasons"))
    return reasons in ("error", ["error"])


def _said(made: Mapping[str, Any]) -> Content | None:
    """Return an answer: ``{"text": ...}``, with ``object`` if it is structured."""
    if made.get("object") is not None:
        return content(made["object"])
    said = text(made.get("text"))
    return None if said is None else Content(text=said)


def _given(asked: Any) -> list[Message]:
    """Read the input of an agent: a text, messages, or the ``{"prompt": ...}`` of a workflow."""
    if isinstance(asked, str):
        return [Message(role="user", content=Content(text=asked))]
    if isinstance(asked, Mapping):
        if isinstance(asked.get("messages"), list):
            return _given(asked["messages"])
        prompt = text(asked.get("prompt"))
        said = content(asked) if prompt is None or len(asked) > 1 else Content(text=prompt)
        return [Message(role="user", content=said)]
    if isinstance(asked, list):
        return read_messages([_unstored(message) for message in asked])
    return []


def _unstored(message: Any) -> Any:
    """Return a message as models get it; Mastra's memory wraps the parts of its messages."""
    body = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(body, Mapping) and isinstance(body.get("parts"), list):
        return {"role": message.get("role"), "parts": body["parts"]}
    return message


def _answered(made: Any) -> list[Message]:
    """Read the answer of a model: ``{"text": ..., "toolCalls": [...]}``."""
    if not isinstance(made, Mapping):
        return []
    message = Message(role="assistant", content=_said(made))
    message.thought = text(made.get("reasoningText"))
    calls = made.get("toolCalls")
    message.calls = list(_calls(calls if isinstance(calls, list) else []))
    return [message] if message.content or message.calls or message.thought else []


def _calls(written: list[Any]) -> Iterator[Call]:
    for call in written:
        name = text(call.get("toolName")) if isinstance(call, Mapping) else None
        if name is not None:
            arguments = call.get("args", call.get("toolInput"))
            yield Call(id=text(call.get("toolCallId")), name=name, arguments=shown(arguments))


def _tool(span: Span) -> Reading:
    says = genai.read_tool(span)
    if not isinstance(says, ToolSpan):
        return says
    result = parsed(first(span.attributes, "gen_ai.tool.call.result", "output", "output.value"))
    says.call = says.call or text(span.attributes.get("tool_call.id"))
    refusal = _refusal(result)
    if isinstance(result, Mapping) and _ANSWER_OF_AGENT in result:
        says.result = _said(result)
    elif refusal is not None:  # the span is OK
        says.failed, says.error, says.result = True, refusal or None, None
    return says


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Give each request its messages, and join runs that a person resumed."""
    own = [node for node in nodes if node.says.framework == _FRAMEWORK]
    _rejoin(own)
    for node in own:
        if _kind(node) == "model_generation" and type(node.says) is ModelSpan:
            _share_out(node, node.says)
    for node in own:
        if type(node.says) is AgentSpan and node.says.waits:
            _ask(node)
    resumed: _Resumed = {}
    for node in own:
        if type(node.says) is AgentSpan and node.says.resumes:
            _resume(node, node.says, resumed)
    for node in own:
        if type(node.says) is AgentSpan:
            _finish(node, node.says)
        elif type(node.says) is ToolSpan:
            _delegate(node, node.says)
    return []


_MOST_LOST = 100
"""The most lost agents to look for. Each is compared with all failed calls, and no program has as
many; a hostile recording can."""


def _rejoin(own: list[Node]) -> None:
    """Put the loop of an agent that left no span below the call that failed because of it.

    Up to version 1.0, the span of an agent that fails never ends, so it is not exported.
    """
    lost = [n for n in own if n.parent is None and n.is_torn and type(n.says) is ModelSpan]
    if not lost or len(lost) > _MOST_LOST:
        return
    failed = [node for node in own if node.says.failed and _sub_agent(node) and not node.children]
    for loop in lost:
        around = [n for n in failed if n.started <= loop.started and loop.ended <= n.ended]
        if len(around) == 1 and loop.span.trace_id == around[0].span.trace_id:
            loop.parent = around[0]
            failed.remove(around[0])
            around[0].children.append(loop)


def _sub_agent(node: Node) -> str | None:
    """Return the sub-agent that a call is for, by the name of its tool."""
    name = node.says.name if type(node.says) is ToolSpan else None
    return name.removeprefix(_SUB_AGENT) if name and name.startswith(_SUB_AGENT) else None


def _kind(node: Node) -> Any:
    return node.span.attributes.get(_TYPE)


def _share_out(loop: Node, whole: ModelSpan) -> None:
    """Give the requests of a loop its input, and the answers of their steps.

    Inputs of later steps are recorded without ids, with results as ``[tool-result: soil]``. The
    spans of the tools hold more.
    """
    steps = [node for node in loop.children if _kind(node) == "model_step"]
    steps.sort(key=lambda node: node.started)
    if _is_internal(loop):
        for node in (loop, *_below(loop)):
            if type(node.says) is ModelSpan:
                node.says.internal = True
        return
    agent = _agent_of(loop, whole) if steps else None
    requests: list[ModelSpan] = []
    for step in steps:
        inside = [node for node in step.children if _kind(node) == "model_inference"]
        for node in inside:
            if type(node.says) is ModelSpan:
                _answer(node, node.says, step)
                requests.append(node.says)
    if not requests and not _of_steps(whole, steps, agent):
        return
    requests = requests or [says for step in steps if type(says := step.says) is ModelSpan]
    given = whole.heard_messages()
    if any(message.role != "system" for message in given):
        requests[0].heard, requests[0]._heard = given, given
    requests[-1].failed = requests[-1].failed or whole.failed
    for request in requests:
        request.model = request.model or whole.model
    for step, following in pairwise(steps):
        _tell(step, following)
    # Older exporters and the bridge count the tokens of the loop, and not those of each request.
    if agent is not None and all(request.usage is None for request in requests):
        agent.totals = agent.totals or _total(loop, whole)
    if agent is not None and (loop.parent is None or agent is not loop.parent.says):
        loop.says = agent
        return
    loop.says = as_plain(whole)
    loop.says.heard = loop.says.spoken = None


def _total(loop: Node, whole: ModelSpan) -> Usage | None:
    """Return the tokens of a loop and of the requests beside it, which then count only there."""
    beside = [n for n in (loop.parent.children if loop.parent is not None else ()) if n is not loop]
    inner = [says for n in beside if type(says := n.says) is ModelSpan and _is_internal(n)]
    total = sum_usage([whole.usage, *(says.usage for says in inner)])
    for says in inner:
        says.usage = None
    return total


def _is_internal(loop: Node) -> bool:
    """Return whether a loop has not the run of its agent: the agent's memory asks for a title."""
    run = _run_of(loop.parent.span) if loop.parent is not None else None
    return run is not None and run != _run_id(loop.span)


def _tell(step: Node, following: Node) -> None:
    """Give a request the answers to the calls of the step before it that have no span.

    Such a call did not run: its arguments do not fit the schema. Only the stream has the answer.
    """
    tools = [says for node in step.children if type(says := node.says) is ToolSpan]
    ran = {tool.call or tool.name for tool in tools}
    answers = []
    for chunk in step.children:
        made = parsed(_output(chunk.span)) if _kind(chunk) == "model_chunk" else None
        if not isinstance(made, Mapping) or "result" not in made:
            continue
        id_, name = text(made.get("toolCallId")), text(made.get("toolName"))
        if id_ is not None and id_ not in ran and name not in ran:
            error = _refusal(made["result"])
            result = content(made["result"]) if error is None else Content(text=error)
            answers.append(Answer(id=id_, result=result, failed=error is not None))
    inside = [node.says for node in following.children if type(node.says) is ModelSpan]
    request = following.says if type(following.says) is ModelSpan else next(iter(inside), None)
    if request is not None and answers:
        heard = [*request.heard_messages(), Message(role="tool", answers=answers)]
        request.heard, request._heard = heard, heard


def _refusal(result: Any) -> str | None:
    """Return why a call did not run: its arguments do not fit the schema of the tool."""
    if isinstance(result, Mapping) and result.get("error") is True and "validationErrors" in result:
        return text(result.get("message")) or ""
    return None


def _agent_of(loop: Node, whole: ModelSpan) -> AgentSpan | None:
    """Return the agent whose loop this is; the loop itself if the span of its agent is lost."""
    around = loop.parent
    if around is not None and type(around.says) is AgentSpan:
        return around.says
    if (not loop.is_torn) if around is None else _sub_agent(around) is None:
        return None
    errors = (_error_in(node) for node in _below(loop)) if whole.failed else iter(())
    return AgentSpan(
        framework=_FRAMEWORK,
        name=whole.agent or (_sub_agent(around) if around is not None else None),
        model=whole.model,
        heard=whole.heard,
        instructions=whole.instructions,
        output=None if whole.failed else _said_in(whole),
        failed=whole.failed,
        error=whole.error or next((error for error in errors if error is not None), None),
        card=AgentCard(model=whole.model),
    )


def _said_in(whole: ModelSpan) -> Content | None:
    spoken = whole.spoken_messages()
    return spoken[-1].content if spoken else None


def _error_in(node: Node) -> str | None:
    """Return the error that a stream ended with: ``{"type": "error", "error": {...}}``."""
    made = parsed(_output(node.span)) if _kind(node) == "model_chunk" else None
    error = made.get("error") if isinstance(made, Mapping) else None
    return text(error.get("message")) if isinstance(error, Mapping) else None


def _of_steps(whole: ModelSpan, steps: list[Node], agent: AgentSpan | None) -> bool:
    """Make the steps of a loop its requests, as in older versions, which only count its tokens."""
    if agent is None or any(_output(step.span) is None for step in steps):
        return False
    for step in steps:
        request = ModelSpan(framework=_FRAMEWORK, model=whole.model)
        request.failed, request.error = step.says.failed, step.says.error
        if type(step.says) is PlainSpan:
            _say(request, step.says.spoken_messages())
        step.says = request
    return True


def _answer(node: Node, request: ModelSpan, step: Node) -> None:
    if type(step.says) is PlainSpan and _output(step.span) is not None:  # else unknown
        _say(request, step.says.spoken_messages())
    request.failed = request.failed or _has_failed(node.span)


def _say(request: ModelSpan, said: list[Message]) -> None:
    request.spoken, request._spoken = said, said
    request.calls = any(message.calls for message in said)


def _ask(agent: Node) -> None:
    """Add the call that waits for a person: the step has no answer yet, and the agent names it."""
    asked = parsed(_output(agent.span))
    id_ = asked.get("toolCallId") if isinstance(asked, Mapping) else None
    # The stream repeats the call together with the question, and with its arguments.
    chunks = [parsed(_output(c.span)) for c in _below(agent) if _kind(c) == "model_chunk"]
    asks = (
        c for c in chunks if isinstance(c, Mapping) and "args" in c and c.get("toolCallId") == id_
    )
    calls = list(_calls([next(asks, asked)])) if id_ is not None else []
    requests = list(_own(agent))
    if calls and requests and not _written(requests[-1]):
        last = requests[-1].says
        if type(last) is ModelSpan:
            _say(last, [*last.spoken_messages(), Message(role="assistant", calls=calls)])


_Resumed = dict[int, tuple[Node, dict[str | None, Reading]]]
"""By the id of a node that is or joined a run: the node of the run, and its requests by call.

Each node is visited once, so that many spans that resume each other take no longer than others.
"""


def _resume(again: Node, says: AgentSpan, resumed: _Resumed) -> None:
    """Make the rest of a run that waited for a person a part of that run."""
    first = again.parent
    while first is not None and type(first.says) is not AgentSpan and id(first) not in resumed:
        first = first.parent
    if first is None:
        return
    if id(first) not in resumed:
        written = {call.id: node.says for node in _own(first) for call in _written(node)}
        resumed[id(first)] = first, written
    first, written = resumed[id(first)]
    if type(first.says) is not AgentSpan or first.says.name != says.name:
        return
    requests = list(_own(again))
    for node in requests:
        # The request before the question is recorded again: with the same calls, and its tokens.
        calls = _written(node)
        earlier = [written.get(call.id) for call in calls]
        before = earlier[0] if earlier else None
        if type(node.says) is ModelSpan and type(before) is ModelSpan and None not in earlier:
            before.usage = before.usage or node.says.usage
            _say(before, node.says.spoken_messages())
            node.says = as_plain(node.says)
        else:
            written.update((call.id, node.says) for call in calls)
    resumed[id(again)] = first, written
    decision = parsed(_input(again.span))
    if isinstance(decision, Mapping) and decision.get("approved") is False:
        refused = Answer(id=text(decision.get("toolCallId")), refused=True)
        left = [node.says for node in requests if type(node.says) is ModelSpan]
        if left:
            messages = [*left[0].heard_messages(), Message(role="tool", answers=[refused])]
            left[0].heard, left[0]._heard = messages, messages
    first.says.output, first.says.waits = says.output, says.waits
    first.says.failed, first.says.error = says.failed, says.error
    first.ended = max(first.ended, again.ended)
    again.says = as_plain(says)
    again.says.heard = again.says.spoken = None
    again.says.resumes = False


def _own(agent: Node) -> Iterator[Node]:
    """Yield the requests of an agent in start order."""
    requests = [node for node in _below(agent) if type(node.says) is ModelSpan]
    yield from sorted(requests, key=lambda node: node.started)


def _below(agent: Node) -> Iterator[Node]:
    """Yield the spans below an agent, without those of other agents inside it."""
    inside = list(agent.children)
    while inside:
        node = inside.pop()
        if type(node.says) is not AgentSpan:
            yield node
            inside += node.children


def _written(node: Node) -> list[Call]:
    says = node.says
    said = says.spoken_messages() if type(says) is ModelSpan else []
    return [call for message in said for call in message.calls]


def _finish(agent: Node, says: AgentSpan) -> None:
    """Make the last text the answer: Mastra joins those of all steps (``I ask.Plant beans.``)."""
    if says.output is None or says.output.text is None:
        return
    requests = list(_own(agent))
    last = requests[-1].says if requests else None
    said = last.spoken_messages() if type(last) is ModelSpan else []
    answer = said[-1].content.text if said and said[-1].content is not None else None
    if answer and says.output.text.endswith(answer):
        says.output = Content(text=answer)


def _delegate(tool: Node, says: ToolSpan) -> None:
    """Name the target of a call that started no agent, as its sub-agents' tools are named."""
    name = _sub_agent(tool)
    if name is not None and not any(type(c.says) is AgentSpan for c in tool.children):
        says.mode, says.target = "delegate", name


def goes_on(before: list[Span], spans: list[Span]) -> bool:
    """Return whether agents of one run of ``agent.network()`` follow each other.

    Its router is not recorded, and each agent that it asks is a trace with the id of the run.
    """
    runs = {_run_of(span) for span in before} - {None}
    return bool(runs) and any(_run_of(span) in runs for span in spans)


def _run_of(span: Span) -> str | None:
    return _run_id(span) if span.attributes.get(_TYPE) == "agent_run" else None


def _run_id(span: Span) -> str | None:
    stated = text(first(span.attributes, *_RUNS))
    # `@mastra/arize` writes OpenInference's attributes.
    data = parsed(span.attributes.get("metadata")) if stated is None else None
    return text(data.get("runId")) if isinstance(data, Mapping) else stated


DIALECT = Dialect(
    name="mastra",
    rank=25,
    claims=with_attribute(_TYPE),
    read=read,
    resolve=resolve,
    goes_on=goes_on,
    tokens=genai.TOKENS,
    prefixes=("mastra.",),
    conversations=("mastra.metadata.threadId", "threadId"),
)

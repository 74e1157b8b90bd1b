"""Google ADK: results of its tools, in its own spans and in those of OpenInference."""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections import Counter
from typing import Any

import msgspec
from msgspec import structs

from baton.model import Content
from baton.readers.adk.wire import error_of
from baton.readers.otlp.attribute_values import content, parsed
from baton.readers.otlp.messages import Call, Message, read_messages
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import AgentSpan, ModelSpan, Node, Reading, ToolSpan

from .dialect import Dialect, Framework

_FRAMEWORK = "google-adk"
# OpenInference records the whole answer as it is sent to Gemini: `{"id": "adk-1", "name":
# "billing", "response": {"result": "Paid."}}`.
_RESPONSE = "response"
# The last response of the model, as Gemini returned it, and the key of a call in it.
_RAW, _CALL = "output.value", "function_call"
_REQUEST, _INVOCATION = "gcp.vertex.agent.llm_request", "gcp.vertex.agent.invocation_id"
# ADK repeats what other agents did in a user message: `For context:` (until 2.12), or a sentence
# that starts this way, followed by `[writer] said: ...` or the same text between two marks. It is
# the last message before an agent that got control, and it is not a request by the user.
_RETOLD = "For context"
# The marks are on separate lines, because the sentence before them also names both.
_QUOTE = re.compile(
    r"<<<BEGIN_QUOTED_AGENT_CONTENT>>>\n(.*?)\n<<<END_QUOTED_AGENT_CONTENT>>>", re.DOTALL
)
_SAID = re.compile(r"^\[[^\]\n]+\] said: ?(.*)", re.DOTALL)
# By this tool, an agent of the mode `task` gives its answer.
_FINISH = "finish_task"
_OWN_NAME = re.compile(r'Your internal name is "([^"\n]+)"')
_AROUND = frozenset({"id", "name", _RESPONSE, "scheduling", "will_continue", "parts"})


def refine(says: Reading, span: Span) -> Reading:
    """Read the results of ADK's tools, and spans into which several requests wrote."""
    if type(says) is ModelSpan:
        if says.heard is not None:
            says.heard = functools.partial(_with_plain_answers, says.heard)
        return _last_of_several(says, span) if _RAW in span.attributes else says
    return _unwrapped(says)


def _with_plain_answers(heard: Any) -> list[Message]:
    """Read the messages of a request; unwrap the plain results of tools as in their spans."""
    messages: list[Message] = heard() if callable(heard) else read_messages(heard, "user")
    for message in messages:
        for answer in message.answers:
            data = answer.result.data if answer.result is not None else None
            if isinstance(data, dict) and data.keys() == {"result"}:
                answer.result = _plain(data["result"])
            elif isinstance(data, dict) and error_of(data):
                answer.failed = True
    return messages


def _plain(result: Any) -> Content | None:
    return Content(text="") if result == "" else content(result)


def _last_of_several(says: ModelSpan, span: Span) -> Reading:
    """Separate the calls of earlier requests from the last answer, which is the raw value.

    OpenInference writes all requests of an agent into one span. Each overwrites the one before, but
    not its calls, because the last answer has none. The result is one message with both.
    """
    if _CALL in str(span.attributes[_RAW]):
        return says
    spoken = says.spoken_messages()
    if len(spoken) != 1 or not spoken[0].calls or not spoken[0].content:
        return says
    answer = structs.replace(spoken[0], calls=[])
    says.spoken = lambda: [structs.replace(spoken[0], content=None), answer]
    says._spoken = None
    says.context_lost = True
    if says.usage is not None:
        says.usage.complete = False
    return says


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Add the calls of requests that a later one overwrote, whose tokens are lost.

    A request that writes a call also overwrites the calls of those before. But each call that was
    carried out has a span below.
    """
    _fail_bare_tools(nodes)
    _nest_tasks(nodes)
    _return_strays(nodes)
    asking = [
        (node, says)
        for node in nodes
        if type(says := node.says) is ModelSpan and says.framework == _FRAMEWORK
    ]
    known: set[str | None] | None = None
    for node, says in asking:
        if _RAW not in node.span.attributes:
            continue
        spoken = says.spoken_messages()
        if known is None:
            known = {c.id for _, m in asking for said in m.spoken_messages() for c in said.calls}
        written = Counter(call.name for message in spoken for call in message.calls)
        lost: list[Call] = []
        # From the end, as the last calls are those that are written.
        for child in reversed(node.children):
            tool = child.says
            if type(tool) is ToolSpan and tool.name is not None:
                written[tool.name] -= 1
                # A person's answer can run a call that a request in another span wrote.
                if written[tool.name] < 0 and (tool.call is None or tool.call not in known):
                    lost.append(Call(id=tool.call, name=tool.name, arguments=tool.arguments))
        if lost:
            says.spoken = functools.partial(_with_lost, lost[::-1], spoken)
            says._spoken = None
            says.context_lost = True
            if says.usage is not None:
                says.usage.complete = False
    return []


def _nest_tasks(nodes: list[Node]) -> None:
    """Put agents of the mode ``task`` below the agent that called them.

    ADK ends the caller's span at the call, which has no span. The agent's span follows beside it,
    and then one for the rest of the caller's run. If the agent asks the user, the next message
    starts another span of that agent, below another root.
    """
    if not any(type(node.says) is ToolSpan and node.says.name == _FINISH for node in nodes):
        if not any(_FINISH in (_offered(node) or ()) for node in nodes):
            return
    beside: dict[int, list[Node]] = {}
    for node in nodes:
        if type(node.says) is AgentSpan and node.says.framework == _FRAMEWORK:
            parent = node.parent
            is_root = parent is None or parent.parent is None
            beside.setdefault(0 if is_root else id(parent), []).append(node)
    for agents in beside.values():
        at_work: list[Node] = []
        for node in sorted(agents, key=_started):
            while len(at_work) > 1 and _has_finished(at_work[-1]):
                at_work.pop()
            if at_work and _continues_in(at_work, node):
                _join(at_work[-1], node)
                at_work[-1] = node
            elif at_work and _calls(at_work[-1], node):
                _put_below(node, at_work[-1])
                at_work.append(node)
            else:
                at_work = [node]


def _requests(agent: Node) -> list[Node]:
    return [child for child in agent.children if type(child.says) in (ModelSpan, ToolSpan)]


def _offered(node: Node) -> list[str] | None:
    return node.says.offered if type(node.says) is ModelSpan else None


def _has_finished(agent: Node) -> bool:
    """Return whether an agent ends with ``finish_task``; after wrong arguments, it continues."""
    done = _requests(agent)
    last = done[-1].says if done else None
    if type(last) is not ToolSpan or last.name != _FINISH or last.failed:
        return False
    if type(agent.says) is AgentSpan and isinstance(last.arguments, dict):
        only = last.arguments.keys() == {"result"}
        agent.says.output = content(last.arguments["result"] if only else last.arguments)
    return True


def _continues_in(at_work: list[Node], node: Node) -> bool:
    """Return whether a span continues an agent that called a task, or asked the user about it."""
    before, says = at_work[-1].says, node.says
    if type(before) is not AgentSpan or type(says) is not AgentSpan or before.name != says.name:
        return False
    return before.run is not None or len(at_work) > 1


def _calls(agent: Node, node: Node) -> bool:
    """Return whether an agent ends with a call, without a span, of a tool named as another agent.

    Without content, only the tools that its model was offered show that.
    """
    done = _requests(agent)
    last = done[-1].says if done else None
    name = node.says.name if type(node.says) is AgentSpan else None
    if type(last) is not ModelSpan:
        # A mixed answer: the tools of the same answer have spans.
        models = [child.says for child in done if type(child.says) is ModelSpan]
        last = models[-1] if models else None
    if type(last) is not ModelSpan or name not in (last.offered or ()):
        return False
    if any(type(child.says) is ToolSpan and child.says.name == name for child in done):
        return False
    spoken = last.spoken_messages()
    return not spoken or any(call.name == name for message in spoken for call in message.calls)


def _put_below(node: Node, caller: Node) -> None:
    if type(caller.says) is AgentSpan and caller.says.run is None:
        caller.says.run = caller.span.span_id
    # The spans of the request and of the agent stay open until the task has ended.
    for each in (caller, *_requests(caller)):
        if each.span.ended is not None and each.span.started is not None:
            ended = max(each.span.started, min(each.span.ended, node.started))
            each.span, each.ended = structs.replace(each.span, ended=ended), ended
    if node.parent is not None:
        node.parent.children.remove(node)
    node.parent = caller
    caller.children.append(node)


def _join(before: Node, node: Node) -> None:
    """Let a span belong to the same run as an earlier one."""
    if type(before.says) is AgentSpan and type(node.says) is AgentSpan:
        before.says.run = before.says.run or before.span.span_id
        node.says.run = before.says.run
        if before.parent is not None and before.parent.says is not node.says:
            if type(before.parent.says) is AgentSpan:
                _put_below(node, before.parent)


def _return_strays(nodes: list[Node]) -> None:
    """Put what agents of a ParallelAgent did below their own spans.

    Until 1.5, only the first request of such an agent is below its span. Its tools and its other
    requests are below the span of the ParallelAgent. The instructions of each request name its
    agent: ``Your internal name is "south".``
    """
    for node in nodes:
        if type(node.says) is not AgentSpan or node.says.framework != _FRAMEWORK:
            continue
        strays = _requests(node)
        if not strays or len(strays) == len(node.children):
            continue
        inside: dict[str | None, list[Node]] = {}
        for child in node.children:
            if type(child.says) is AgentSpan:
                inside.setdefault(child.says.name, []).append(child)
        for stray in strays:
            agents = inside.get(_internal_name(stray), [])
            if len(agents) == 1 and agents[0].started <= stray.started <= agents[0].ended:
                _move(stray, agents[0])
        if not any(each.parent is node and type(each.says) is ModelSpan for each in strays):
            _return_tools(node, [agent for agents in inside.values() for agent in agents])
        node.children = [child for child in node.children if child.parent is node]


def _internal_name(node: Node) -> str | None:
    """Return the agent that the instructions of a request name as its own."""
    request = parsed(node.span.attributes.get(_REQUEST))
    config = request.get("config") if isinstance(request, dict) else None
    text = config.get("system_instruction") if isinstance(config, dict) else None
    match = _OWN_NAME.search(text) if isinstance(text, str) else None
    return match[1] if match else None


def _return_tools(node: Node, agents: list[Node]) -> None:
    """Put tools below the agents that called them, if it is certain which of them did.

    Tools of 1.0 have neither arguments nor results. If two agents called `stock` once each, both
    spans are alike, and it does not matter which belongs to which.
    """
    called: dict[str, list[tuple[Node, Call]]] = {}
    for agent in agents:
        known = Counter(c.says.name for c in agent.children if type(c.says) is ToolSpan)
        for request in _requests(agent):
            said = request.says.spoken_messages() if type(request.says) is ModelSpan else []
            for call in (call for message in said for call in message.calls):
                known[call.name] -= 1
                if known[call.name] < 0:
                    called.setdefault(call.name or "", []).append((agent, call))
    tools: dict[str, list[Node]] = {}
    for child in node.children:
        if type(child.says) is ToolSpan:
            tools.setdefault(child.says.name or "", []).append(child)
    for name, strays in tools.items():
        calls = called.get(name, [])
        by_arguments: dict[bytes, list[tuple[Node, Call]]] = {}
        for one in calls:
            by_arguments.setdefault(_key(one[1].arguments), []).append(one)
        found: set[int] = set()
        for stray in strays:
            own = by_arguments.get(_key(_arguments(stray)), [])
            if len(own) == 1 and _arguments(stray) is not None and id(own[0][1]) not in found:
                _move(stray, own[0][0])
                found.add(id(own[0][1]))
        left = [stray for stray in strays if stray.parent is node]
        open_ = [agent for agent, call in calls if id(call) not in found]
        if len(left) == len(open_) and not any(
            stray.says.failed or _arguments(stray) is not None for stray in left
        ):
            for stray, agent in zip(left, open_, strict=True):
                _move(stray, agent)


def _key(arguments: Any) -> bytes:
    return msgspec.json.encode(arguments, order="sorted")


def _arguments(node: Node) -> Any:
    return node.says.arguments if type(node.says) is ToolSpan else None


def _move(node: Node, agent: Node) -> None:
    """Put a node below an agent; the children of its parent are settled once, for all."""
    node.parent = agent
    agent.children.append(node)


def _fail_bare_tools(nodes: list[Node]) -> None:
    """Let tools fail whose spans say nothing, if the next request has an error as their answer.

    In JavaScript, a tool that raises leaves a span without attributes, and with the status unset.
    """
    bare = [
        (node, tool)
        for node in nodes
        if type(tool := node.says) is ToolSpan
        and tool.framework == _FRAMEWORK
        and not node.span.attributes
    ]
    requests: dict[int, list[Node]] = {}
    errors_in: dict[int, dict[str | None, list[str | None]]] = {}
    for node, tool in bare:
        # A tool is below the request that called it, which is below its agent.
        request = node.parent
        agent = request.parent if request is not None else None
        if request is None or agent is None:
            continue
        if id(agent) not in requests:
            below = (each for each in agent.children if type(each.says) is ModelSpan)
            requests[id(agent)] = sorted(below, key=_started)
        later = requests[id(agent)]
        place = bisect_right(later, request.started, key=_started)
        if place == len(later):
            continue
        after = later[place]
        if id(after) not in errors_in and type(after.says) is ModelSpan:
            errors_in[id(after)] = _errors(after.says)
        errors = errors_in[id(after)].get(tool.name, [])
        if errors and all(errors):
            tool.failed, tool.error = True, errors[0]


def _started(node: Node) -> float:
    return node.started


def _errors(request: ModelSpan) -> dict[str | None, list[str | None]]:
    """Return the answers to the last calls, by the name of the tool; ``None`` if it is no error."""
    errors: dict[str | None, list[str | None]] = {}
    for message in reversed(request.heard_messages()):
        if message.role == "assistant":
            break
        for answer in message.answers:
            data = answer.result.data if answer.result is not None else None
            failed = (
                str(data["error"]) if isinstance(data, dict) and set(data) == {"error"} else None
            )
            errors.setdefault(answer.name, []).append(failed)
    return errors


def _with_lost(lost: list[Call], spoken: list[Message]) -> list[Message]:
    return [Message(role="assistant", calls=lost, mixed=True), *spoken]


def _unwrapped(says: Reading) -> Reading:
    """Convert results that report an error to errors, and unwrap plain results."""
    if type(says) is not ToolSpan or says.result is None:
        return says
    data = says.result.data
    if isinstance(data, dict) and data.get("name") == says.name and set(data) <= _AROUND:
        data = data.get(_RESPONSE)
        says.result = content(data) if data is not None else says.result
    if not isinstance(data, dict):
        return says
    # ADK wraps what a tool returns: `{"result": 42}`, and `{"error": "..."}` for one that failed.
    # With more keys, it is an object that the tool returned.
    # Tools can also say `{"status": "error", "error_message": "no sonar"}`, as ADK's examples do.
    if error := error_of(data):
        says.failed, says.error, says.result = True, error, None
    elif set(data) == {"result"}:
        says.result = _plain(data["result"])
    return says


def goes_on(before: list[Span], spans: list[Span]) -> bool:
    """Return whether spans are of the same invocation as those before.

    ADK keeps the id of an invocation when a person confirms a call, or when the result of a
    long-running tool arrives.
    """
    ids = {id_ for span in spans if isinstance(id_ := span.attributes.get(_INVOCATION), str)}
    # From the end, where the latest invocation is, so that many resumptions do not take long.
    return bool(ids) and any(
        isinstance(id_ := span.attributes.get(_INVOCATION), str) and id_ in ids
        for span in reversed(before)
    )


def retold(text: str) -> list[str] | None:
    """Return the texts of other agents that ADK's message repeats, one by one."""
    if not text.startswith(_RETOLD):
        return None
    quoted: list[str] = _QUOTE.findall(text)
    if quoted:
        return quoted
    # `For context:` is on its own line, and each part starts with the agent's name.
    parts = re.split(r"\n(?=\[[^\]\n]+\] )", text)[1:]
    return [match[1] if (match := _SAID.match(part)) else part for part in parts]


DIALECT = Dialect(
    name=_FRAMEWORK,
    refine=refine,
    resolve=resolve,
    goes_on=goes_on,
    # Its own, and that of traceAI, whose spans hold what ADK's own would.
    scopes=("gcp.vertex.agent", "traceai_google_adk"),
    refusals=("This tool call is rejected.",),
    questions=("This tool call requires confirmation, please approve or reject.",),
    # A loop starts its agents again for each round. Ids of calls are `adk-` and a random number.
    framework=Framework(
        has_rounds=True,
        call_ids="adk-",
        is_function=lambda span: span.name.startswith("invoke_node "),
        retold=retold,
    ),
)

"""What CrewAI adds to the convention of its spans.

Older versions of its instrumentation name the methods that run instead of agents and tools, and
write the arguments as Python prints them.
"""

from __future__ import annotations

import re
from ast import literal_eval
from bisect import bisect_right
from typing import Any

import msgspec

from baton.readers.otlp.attribute_values import content, parsed, text
from baton.readers.otlp.handover_calls import hand_over
from baton.readers.otlp.messages import Answer, Call, Message, last_of
from baton.readers.otlp.span import Event, Span, lie_within
from baton.readers.otlp.span_content import (
    AgentSpan,
    MessageSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    WorkflowSpan,
    agent_between,
    as_plain,
    as_workflow,
    insert_agents,
    node_of,
)

from .dialect import Dialect

_NAME = "crewai"
# `Crew.kickoff` starts the agents; it makes no request itself.
_KICKOFF = ".kickoff"
# The scope of the spans that are made of CrewAI's events.
_EVENTS = "openinference.instrumentation.crewai._event_listener"
# The same in Traceloop's instrumentation, which follows OpenTelemetry's convention. Its span of a
# task is around the span of the agent, and has the task and the answer.
_CREW = "crewai.workflow"
_DESCRIPTION, _ANSWER = "crewai.task.description", "traceloop.entity.output"
EXECUTE = "Task.execute_"
"""How MLflow's spans of tasks are called; each heard the description of its task."""
# What its instrumentation wraps: one method for a task, which represents the agent of the task, and
# one for the use of a tool: `ToolUsage._use`. Later versions before 1.0 write the name of the tool,
# as in `Delegate work to coworker._use`.
_TASK, _USE = "Task._execute_core", "._use"
# CrewAI gives errors to the model as text and continues. The second one reports wrong arguments,
# the third one that a coworker raised, the fourth one that a call is not carried out twice.
_REFUSED = (
    "Error executing tool",
    "I encountered an error while trying to use the tool.",
    "Error executing task with agent '",
    "I tried reusing the same input, I must stop using this action input.",
)
# With a model that cannot call functions, the calls are in the texts, and newer versions of the
# instrumentation have no spans of tools. CrewAI itself finds them with expressions like these:
# `Thought: I need a tool.\nAction: lookup_rate\nAction Input: {"currency": "NOK"}`.
_ACTION = re.compile(r"Action\s*\d*\s*:\s*(.*?)\s*Action\s*\d*\s*Input\s*\d*\s*:\s*(.*)", re.DOTALL)
_FINAL = "Final Answer:"
# CrewAI adds the result of a call to the text of the model.
_OBSERVED = re.compile(r"\n\s*Observation:\s?(.*)", re.DOTALL)
_THOUGHT = re.compile(r"\s*(?:```\s*)?Thought:\s*")
# How the instructions of an agent begin.
_YOU = "You are "
_ROLE = re.compile(r"\brole='([^']+)'")
_ARGUMENTS = re.compile(r"\barguments=(\{.*\})$", re.DOTALL)


def refine(says: Reading, span: Span) -> Reading:
    """Recognise a crew among chains, and a tool's error that CrewAI writes as its result."""
    if type(says) is PlainSpan and span.name.endswith(_KICKOFF):
        return as_workflow(says, "crew")
    if type(says) is AgentSpan and span.name == _CREW:
        crew = as_workflow(says, "crew")
        crew.agent = None
        return crew
    if type(says) is ToolSpan:
        said = says.result.text if says.result is not None else None
        if said is not None and said.strip().startswith(_REFUSED):
            says.failed, says.error, says.result = True, said.strip(), None
        if span.name.endswith(_USE):
            says.arguments = _printed(says.arguments)
            hand_over(says, None, span.attributes)
    elif type(says) is AgentSpan and span.name == _TASK:
        _task(says, span)
    return says


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Set the input of agents to their task, and count repeated attempts of a tool once.

    Each further attempt is below the one before, so they are processed from below.
    """
    _read_texts(nodes)
    for node in reversed(nodes):
        says, outer = node.says, node.parent
        if type(says) is AgentSpan and says.framework == _NAME and node.span.name != _TASK:
            task = outer.says if outer is not None else None
            if (
                outer is not None
                and type(task) is PlainSpan
                and outer.span.name.startswith(EXECUTE)
            ):
                says.input = task.asked()
            elif outer is not None and _DESCRIPTION in outer.span.attributes:
                says.input = content(outer.span.attributes[_DESCRIPTION])
                says.output = content(outer.span.attributes.get(_ANSWER))
            else:
                _ask(node, says)
                _answer(node, says)
        if outer is None or type(says) is not ToolSpan or not node.span.name.endswith(_USE):
            continue
        before = outer.says
        if outer.span.name.endswith(_USE) and type(before) is ToolSpan:
            # After an error, CrewAI calls the method again from within itself, up to three times:
            # one call of the model, several spans.
            if (says.name, says.arguments) == (before.name, before.arguments):
                says.framework = _NAME
                node.says = as_plain(says)
    return []


def _ask(node: Node, says: AgentSpan) -> None:
    """Replace the arguments of the method that ran an agent by the agent's task.

    The arguments contain the agent itself, with its address in memory, and the answers of earlier
    tasks. The text of the task is on the span of the crew.
    """
    written = node.span.attributes.get("input.value")
    given = parsed(written)
    is_call = isinstance(given, dict) and "agent" in given
    if is_call:
        says.heard = None
    elif isinstance(given, dict) and set(given) == {"messages"}:
        says.heard = given["messages"]  # `Agent.kickoff`: a text or a list of messages
    wanted, above = node.span.attributes.get("task_id"), node.parent
    while above is not None:
        tasks = parsed(above.span.attributes.get("crew_tasks"))
        for task in tasks if isinstance(tasks, list) else ():
            if isinstance(task, dict) and task.get("id") == wanted:
                description = text(task.get("description"))
                if is_call:
                    asked = [description, text(given.get("context"))]
                    says.input = content("\n\n".join(part for part in asked if part) or None)
                elif isinstance(written, str) and description:
                    # Its events have the task as the model gets it: the description, a paragraph by
                    # CrewAI about the form of the answer, and the answers of earlier tasks. All
                    # questions are known only if there are no earlier tasks.
                    form = text(task.get("expected_output")) or ""
                    _, separator, rest = written.partition(f"{description}\n\n")
                    if separator and form in rest and "\n\n" not in rest.partition(form)[2].strip():
                        says.input = content(description)
                return
        above = above.parent


def _answer(node: Node, says: AgentSpan) -> None:
    """Read the answer from the result of the task, whose messages newer versions end before it."""
    written = node.span.attributes.get("output.value")
    made = parsed(written)
    if not isinstance(made, dict) or "description" not in made:
        # Its events have the answer itself.
        says.output = content(written) if isinstance(written, str) and made == written else None
        return
    said = says.output = content(made.get("raw"))
    if said is not None and all(m.role != "assistant" for m in says.spoken_messages()):
        says.spoken, says._spoken = (lambda: [Message(role="assistant", content=said)]), None


def _task(says: AgentSpan, span: Span) -> None:
    """Read the agent, its input and its answer from the result of its task."""
    made = parsed(span.attributes.get("output.value"))
    result = made if isinstance(made, dict) else {}
    asked = parsed(span.attributes.get("input.value"))
    agent = text(asked.get("agent")) if isinstance(asked, dict) else None
    role = _ROLE.search(agent) if agent is not None else None
    says.name = text(result.get("agent")) or (role.group(1) if role else None)
    says.input, says.output = content(result.get("description")), content(result.get("raw"))
    says.heard = says.spoken = None


def _read_texts(nodes: list[Node]) -> None:
    """Read the calls in the texts of models, and find the coworkers among those who asked."""
    with_texts: list[Node] = []
    for node in nodes:
        if type(node.says) is not ModelSpan:
            continue
        if _read_calls(node.says):
            with_texts.append(node)
        _mark_failed(node.says)
    agents = [node for node in nodes if type(node.says) is AgentSpan and node.says.name]
    roles = {str(node.says.name) for node in agents if node.says.framework == _NAME}  # type: ignore[union-attr]
    for node in nodes:
        listed = parsed(node.span.attributes.get("crew_agents"))
        for one in listed if isinstance(listed, list) else ():
            role = text(one.get("role")) if isinstance(one, dict) else None
            roles |= {role} if role else set()
    for node in agents:
        if node.says.framework == _NAME:
            _split(node, str(node.says.name), roles)  # type: ignore[union-attr]
    _take_back(nodes, agents, roles)
    places: dict[int, list[Node]] = {}
    for node in with_texts:
        if node.parent is not None:
            places.setdefault(id(node.parent), []).append(node)
    for requests in places.values():
        beside = requests[0].parent.children if requests[0].parent is not None else ()
        if not any(type(child.says) is ToolSpan for child in beside):
            _add_lost(requests)


def _add_lost(requests: list[Node]) -> None:
    """Add what a model said in requests whose spans are lost, from the next request.

    A request repeats all texts so far, with a call in each.
    """
    known = 0
    for node in requests:
        says = node.says
        if type(says) is not ModelSpan or node.parent is None:
            continue
        heard = [one for one in says.heard_messages() if one.role == "assistant" and one.calls]
        lost = heard[known:]
        if lost:
            span = msgspec.structs.replace(
                node.span,
                span_id=f"{node.span.span_id}/lost",
                attributes={},
                ended=node.span.started,
            )
            at = next(n for n, child in enumerate(node.parent.children) if child is node)
            added = node_of(span, MessageSpan(spoken=lost, _spoken=lost), node.parent)
            node.parent.children.insert(at, added)
        known = len(heard) + any(message.calls for message in says.spoken_messages())


def _mark_failed(says: ModelSpan) -> None:
    """Mark the answers to calls that CrewAI did not carry out, which no span of a tool may tell.

    Traceloop's instrumentation has no spans of tools.
    """
    for message in says.heard_messages():
        for answer in message.answers:
            said = answer.result.text if answer.result is not None else None
            if said is not None and said.strip().startswith(_REFUSED):
                answer.failed = True


def _read_calls(says: ModelSpan) -> bool:
    """Replace texts by the calls in them; false if there are none."""
    spoken = says.spoken_messages()
    if not any(_acts(message) for message in (*spoken, *says.heard_messages())):
        return False
    says.spoken = says._spoken = [_with_call(message) for message in spoken]
    written = msgspec.structs.replace(says)
    says.heard, says._heard = (lambda: _with_answers(written.read_heard())), None
    return True


def _acts(message: Message) -> bool:
    said = message.content.text if message.content is not None else None
    if said is None or message.role != "assistant" or message.calls:
        return False
    return _FINAL in said or _ACTION.search(said) is not None


def _with_call(message: Message) -> Message:
    """Return a text as a thought with a call, or with the answer after it."""
    if not _acts(message):
        return message
    said = message.content.plain() if message.content is not None else ""
    before, is_final, answer = said.partition(_FINAL)
    action = _ACTION.search(before)
    if action is not None:
        before, is_final = before[: action.start()], ""
        call = Call(name=action.group(1).strip('* "`'), arguments=_input(action.group(2)))
    thought = _THOUGHT.sub("", before, count=1).strip() or None
    if not is_final and action is not None:
        return Message(role="assistant", thought=thought, calls=[call])
    return Message(role="assistant", thought=thought, content=content(answer.strip(" \n`")))


def _input(written: str) -> Any:
    """Return the arguments of a call: an object, around which a model can write anything."""
    given = _OBSERVED.sub("", written).strip(" \n`")
    arguments = parsed(given[: given.rfind("}") + 1])
    return arguments if isinstance(arguments, dict) else given


def _with_answers(heard: list[Message]) -> list[Message]:
    """Return messages with the results that CrewAI added to the texts of calls as answers."""
    messages: list[Message] = []
    for message in heard:
        messages.append(_with_call(message))
        said = message.content.text if message.content is not None else None
        action = _ACTION.search(said) if said is not None and message.role == "assistant" else None
        observed = _OBSERVED.search(said) if said is not None and action is not None else None
        if action is not None and observed is not None:
            result = observed.group(1).strip()
            name = action.group(1).strip('* "`')
            failed = result.startswith(_REFUSED)
            answer = Answer(name=name, result=content(result), failed=failed)
            messages.append(Message(role="tool", answers=[answer]))
    return messages


def _split(agent: Node, own: str, roles: set[str]) -> None:
    """Put requests of coworkers, which are directly below an agent, below agents of their own.

    If the call of a coworker has no span, only the instructions of the requests show that another
    agent made them: "You are Hotel Scout. ..." inside the span of `Travel Lead`.
    """
    at_work: list[tuple[str, list[Node]]] = [(own, [])]
    added: list[Node] = []
    for child in agent.children:
        role = _role(child.says, roles) if type(child.says) is ModelSpan else None
        if role is not None and role not in (name for name, _ in at_work):
            at_work.append((role, []))
        while role is not None and at_work[-1][0] != role:
            added.append(_leave(agent, at_work))
        at_work[-1][1].append(child)
    while len(at_work) > 1:
        added.append(_leave(agent, at_work))
    insert_agents(agent, added)


def _take_back(nodes: list[Node], agents: list[Node], roles: set[str]) -> None:
    """Put requests directly below a crew, with the instructions of an agent, below that agent.

    The span of an agent ends with the first attempt of its task. If CrewAI tries again after an
    error, nothing else shows who asked.
    """
    stray = [
        node
        for node in nodes
        if type(node.says) is ModelSpan
        and node.parent is not None
        and type(node.parent.says) is WorkflowSpan
    ]
    at_work: dict[tuple[int, str], list[Node]] = {}
    for agent in sorted(agents, key=lambda agent: agent.started) if stray else ():
        task = agent.parent
        for above in (task, task.parent if task is not None else None):
            at_work.setdefault((id(above), str(agent.says.name)), []).append(agent)  # type: ignore[union-attr]
    crews: dict[int, Node] = {}
    for node in stray:
        crew, role = node.parent, _role(node.says, roles)  # type: ignore[arg-type]
        working = at_work.get((id(crew), role), []) if role is not None else []
        place = bisect_right(working, node.started, key=lambda agent: agent.started)
        if crew is not None and place:
            crews[id(crew)] = crew
            node.parent = working[place - 1]
            node.parent.children.append(node)
    for crew in crews.values():
        crew.children = [child for child in crew.children if child.parent is crew]


def _leave(agent: Node, at_work: list[tuple[str, list[Node]]]) -> Node:
    role, done = at_work.pop()
    left = agent_between(agent, AgentSpan(name=role, framework=_NAME), done)
    at_work[-1][1].append(left)
    return left


def goes_on(before: list[Span], spans: list[Span]) -> bool:
    """Return whether spans are requests of the client of a crew's models.

    The spans of CrewAI's events tell these requests, too, but are never around others.
    """
    told = [span for span in before if span.scope == _EVENTS and span.name.endswith(_KICKOFF)]
    return bool(told) and all(span.scope != _EVENTS for span in spans) and lie_within(spans, told)


def _role(says: ModelSpan, roles: set[str]) -> str | None:
    """Return the agent that the instructions of a request are for."""
    system = last_of(says.heard_messages(), "system")
    instructions = system.plain() if system is not None else ""
    named = [role for role in roles if instructions.startswith(f"{_YOU}{role}. ")]
    return max(named, key=len, default=None)


def _printed(given: Any) -> Any:
    """Return the arguments of a call from the form in which CrewAI prints them."""
    calling = given.get("calling") if isinstance(given, dict) else None
    match = _ARGUMENTS.search(calling) if isinstance(calling, str) else None
    if match is None:
        return None
    try:
        return literal_eval(match.group(1))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None


DIALECT = Dialect(
    name=_NAME,
    refine=refine,
    resolve=resolve,
    goes_on=goes_on,
    scopes=("opentelemetry.instrumentation.crewai.instrumentation",),
)

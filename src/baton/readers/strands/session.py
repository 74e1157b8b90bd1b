"""Read sessions of the Strands evaluation SDK: each invocation is a turn, with its hand-offs.

Hand-offs are known from nesting (an agent below a tool call), from a swarm's tool, and from the
input of a graph node.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from baton.formats.document import Document
from baton.formats.key_case import ExtraKey
from baton.formats.strands import Item, Session, Span, SpanTrace
from baton.model import (
    SCHEMA_VERSION,
    AgentCard,
    AgentRun,
    Content,
    Dispatch,
    Dropped,
    InputError,
    Ref,
    Said,
    Source,
    ToolCall,
    Trace,
    Turn,
)
from baton.model.trace import DispatchStatus
from baton.readers.adk.wire import dropped_keys
from baton.readers.builder import MAIN, Timeline, TraceBuilder, allow_tools, not_before
from baton.readers.catalog import Catalog
from baton.readers.tool_definitions import targets_of

from .span_tree import (
    Call,
    Calls,
    Handed,
    Names,
    Starter,
    Tree,
    answer_content,
    hand_over,
    swarm_prompt,
    times,
)

_INPUTS, _FROM, _ANSWER = "Inputs from previous nodes:", "From ", "  - "


def followed(tree: Tree, agent: Span) -> dict[str, list[str]] | None:
    """Return the answers that an agent was given, by node; ``None`` if no graph gave any.

    They are parts of its first message, separate from the task that the session records.
    """
    models = tree.models(agent)
    first = models[0].messages[0] if models and models[0].messages else None
    texts = [item.text for item in first.content if item.text] if first is not None else []
    titles = [text.strip() for text in texts]
    if _INPUTS not in titles:
        return None
    by_name: dict[str, list[str]] = {}
    name = None
    start = titles.index(_INPUTS) + 1
    for text, title in zip(texts[start:], titles[start:], strict=True):
        if title.startswith(_FROM) and title.endswith(":"):
            name = title.removeprefix(_FROM).removesuffix(":")
            by_name[name] = []
        elif name is not None and text.startswith(_ANSWER):
            by_name[name].append(text.partition(": ")[2].removesuffix("\n"))
    return by_name or None


class Dispatches:
    """Finds the dispatches of a turn; ``all_told`` states whether all starts are known."""

    def __init__(
        self,
        builder: TraceBuilder,
        turn: Turn,
        tree: Tree,
        names: Names,
        runs: dict[int, AgentRun],
        calls: dict[int, Calls],
    ) -> None:
        self.all_told = True
        self._builder, self._turn = builder, turn
        self._tree, self._names = tree, names
        self._runs, self._calls = runs, calls
        self._timelines = {key: Timeline(run.steps) for key, run in runs.items()}
        self._arrived = {id(call): agent for agent, call in names.arrivals.items()}
        for starter, agents in tree.siblings():
            self._start(starter, agents)
        for key, run in runs.items():
            for call in calls[key].all:
                asked = hand_over(call.step)
                if asked is not None and call.step.dispatch is None:
                    self._transfer(run, self._timelines[key], call, asked)
        for key, run in runs.items():
            run.steps = self._timelines[key].steps()
        turn.dispatches.sort(key=lambda dispatch: dispatch.started or 0.0)
        by_id = {dispatch.id: dispatch for dispatch in turn.dispatches}
        # The calls in one model answer were issued together.
        together: dict[tuple[Any, int], list[Dispatch]] = {}
        for key in runs:
            for call in calls[key].all:
                dispatch = by_id.get(call.step.dispatch or "")
                if dispatch is not None and call.asked_in is not None:
                    together.setdefault((key, id(call.asked_in)), []).append(dispatch)
        builder.number_together(turn, *together.values())
        builder.number_sequences(turn)

    def final(self, runs: list[AgentRun]) -> AgentRun | None:
        """Return the run that did not pass its work on; ``None`` if there are several."""
        made = self._turn.dispatches
        sending = {d.from_run for d in made if d.kind != "delegate" and d.runs}
        ends = [run for run in runs if run.id not in sending]
        return ends[0] if self.all_told and len(ends) == 1 else None

    def _start(self, starter: Starter, agents: list[Span]) -> None:
        """Record what started agents that work for the same call, agent or program."""
        answered: dict[str | None, list[Span]] = {}
        for number, agent in enumerate(agents):
            if number:
                before = agents[number - 1]
                answer = answer_content(before)
                answered.setdefault(answer.text if answer else None, []).append(before)
            if id(agent) in self._names.arrivals:
                continue  # the call states its hand-off
            if starter.agent is not None:
                self._delegate(starter, agent, first=number == 0)
            elif number:
                self._sequences(answered, agent)
            elif starter.tool is not None:
                self.all_told = False

    def _sequences(self, answered: dict[str | None, list[Span]], agent: Span) -> None:
        """Link an agent of a graph to the agents whose exact answers it was given."""
        inputs = followed(self._tree, agent) or {}
        self.all_told &= bool(inputs)
        receiver = self._runs[id(agent)]
        for node, texts in inputs.items():
            same = answered.get(texts[0], []) if len(texts) == 1 else []
            if len(same) != 1:
                self.all_told = False
                continue
            sender = self._runs[id(same[0])]
            sender.node = node
            dispatch = self._builder.dispatch(
                self._turn, "sequence", sender, receiver.agent, sender.ended
            )
            dispatch.basis = "structure"
            dispatch.ended = not_before(sender.ended, receiver.started)
            dispatch.unknown += ["to_agent"] if "agent" in receiver.unknown else []
            dispatch.unknown += [n for n in ("started", "ended") if getattr(dispatch, n) is None]
            _offer(dispatch, receiver)
            self._builder.start(dispatch, receiver)

    def _delegate(self, starter: Starter, agent: Span, *, first: bool) -> None:
        sender, timeline = self._runs[id(starter.agent)], self._timelines[id(starter.agent)]
        run, name = self._runs[id(agent)], self._names.of(agent)
        call = self._calls[id(starter.agent)].made_in(starter.tool) if first else None
        tool = starter.tool.tool_call if starter.tool is not None else None
        to_agent = name or (tool.name if tool is not None else run.agent)
        at = call.at if call is not None and call.at is not None else run.started
        dispatch = self._builder.dispatch(self._turn, "delegate", sender, to_agent, at, call)
        dispatch.basis = "structure"
        dispatch.unknown += [] if name is not None else ["to_agent"]
        if call is not None:
            self._answer(dispatch, call, agent)
        else:
            dispatch.unknown.append("prompt")
            has_answer = run.output is not None
            status: DispatchStatus = "completed" if has_answer else "unknown"
            self._builder.answer(dispatch, status, run.ended, result=run.output)
            dispatch.unknown += [] if has_answer else ["result"]
        dispatch.unknown += [] if dispatch.ended is not None else ["ended"]
        _offer(dispatch, run)
        self._builder.start(dispatch, run)
        timeline.hand_off(self._builder.handed_off(dispatch), call)
        if dispatch.status in ("completed", "failed") and dispatch.ended is not None:
            timeline.got_back(self._builder.got_back(dispatch, dispatch.ended))
        if dispatch.status == "failed" and run.status == "unknown":
            run.status, run.error = "failed", dispatch.error
            run.unknown.remove("output")

    def _answer(self, dispatch: Dispatch, call: ToolCall, agent: Span) -> None:
        """Move the prompt and the result of a call to its dispatch."""
        dispatch.prompt, dispatch.context = _prompt(call.arguments, agent.user_prompt)
        if call.status == "failed":
            self._builder.answer(dispatch, "failed", call.ended, error=call.error)
            call.error = None
        elif call.status == "unanswered":
            dispatch.ended = call.ended
        else:
            result, call.result = call.result, None
            if result is not None and result.text == agent.agent_response:
                result = answer_content(agent)
            self._builder.answer(dispatch, "completed", call.ended, result=result)

    def _transfer(self, sender: AgentRun, timeline: Timeline, call: Call, asked: Handed) -> None:
        step = call.step
        receiver = self._runs.get(self._arrived.get(id(call.span), 0))
        to_agent = receiver.agent if receiver is not None else asked.to
        dispatch = self._builder.dispatch(self._turn, "transfer", sender, to_agent, step.at, step)
        dispatch.prompt = Content(text=asked.message) if asked.message is not None else None
        dispatch.context = asked.context
        if receiver is not None:
            dispatch.ended = not_before(step.at, receiver.started)
            _offer(dispatch, receiver)
            self._builder.start(dispatch, receiver)
        if step.status == "failed":
            dispatch.status, dispatch.error, step.error = "refused", step.error, None
            step.status, step.refused_by, dispatch.ended = "refused", "runtime", step.ended
        elif receiver is not None:
            dispatch.unknown += [] if dispatch.ended is not None else ["ended"]
            step.result = None
        if step.at is None:
            dispatch.unknown.append("started")
        timeline.hand_off(self._builder.handed_off(dispatch), step)
        if dispatch.status == "refused" and dispatch.ended is not None:
            timeline.got_back(self._builder.got_back(dispatch, dispatch.ended))


def _offer(dispatch: Dispatch, run: AgentRun) -> None:
    """Set the allowed tools to those that the receiver was offered, if recorded."""
    if run.tools_offered is not None:
        allow_tools(dispatch, run.tools_offered, "offered")


def _prompt(arguments: Any, received: str | None) -> tuple[Content | None, dict[str, Any]]:
    """Return the message in the arguments of a call: the text that arrived, or the only text."""
    if not isinstance(arguments, dict) or not arguments:
        return (Content(data=arguments) if arguments is not None else None), {}
    texts = [key for key, value in arguments.items() if isinstance(value, str)]
    same = [key for key in texts if arguments[key] == received]
    key = same[0] if same else texts[0] if len(texts) == 1 else None
    if key is None:
        return Content(data=arguments), {}
    return Content(text=arguments[key]), {k: v for k, v in arguments.items() if k != key}


class ReadTurn(NamedTuple):
    """The result of reading a turn: its agents and their names, and the spans that no rule reads.

    ``models`` are the model calls of each run.
    """

    turn: Turn
    agents: list[tuple[Span, str | None]]
    models: list[list[Span]]
    unread: list[Span]


def read_turn(trace: SpanTrace, builder: TraceBuilder) -> ReadTurn:
    """Read the spans of an invocation; fields without data in the spans stay unknown."""
    tree = Tree(trace)
    names = Names(tree)
    turn = builder.turn(trace.trace_id)
    calls: dict[int, Calls] = {}
    runs: dict[int, AgentRun] = {}
    agents: list[Span | None] = [*tree.agents] or [None]
    for agent in agents:
        calls[id(agent)] = Calls(tree, agent, builder)
        # With several agents without a name, each would get the tools of the others.
        lone = len(agents) == 1
        runs[id(agent)] = _run(turn, agent, names, calls[id(agent)], builder, lone=lone)
    made = Dispatches(builder, turn, tree, names, runs, calls)
    if not made.all_told:
        turn.unknown.append("dispatches")
    _ends(builder, turn, tree, made)
    named = [(agent, names.of(agent)) for agent in tree.agents]
    return ReadTurn(turn, named, [tree.models(agent) for agent in agents], tree.unread)


def _run(
    turn: Turn, agent: Span | None, names: Names, calls: Calls, builder: TraceBuilder, *, lone: bool
) -> AgentRun:
    name = names.of(agent)
    info = agent.span_info if agent is not None else None
    run = builder.run(turn, name or MAIN, info.span_id if info else None, steps=calls.steps)
    if name is None:
        run.unknown.append("agent")
    if not calls.has_models:
        run.unknown += ["steps.said", "steps.refused"]
    if agent is None or info is None:
        run.status = "unknown"
        run.unknown += ["input", "output", "tools_offered", "started", "ended"]
        return run
    run.started, run.ended = times(agent)
    run.unknown += [] if run.ended is not None else ["ended"]
    _content(run, agent)
    if agent.available_tools:
        run.tools_offered = [tool.name for tool in agent.available_tools]
        if name is not None or lone:
            defined = [{"name": t.name, "parameters": t.parameters} for t in agent.available_tools]
            builder.may_reach(run.agent, targets_of(defined))
    else:  # some mappers write none if they find none
        run.unknown.append("tools_offered")
    return run


def _content(run: AgentRun, agent: Span) -> None:
    if agent.user_prompt:
        run.input = Content(text=agent.user_prompt)
    else:
        run.unknown.append("input")
    run.output = answer_content(agent)
    if run.output is None:  # it is not recorded whether the run failed
        run.status = "unknown"
        run.unknown.append("output")


def _ends(builder: TraceBuilder, turn: Turn, tree: Tree, made: Dispatches) -> None:
    """Set the user's message and the answer from the agents that no other agent started."""
    pairs = zip(tree.agents, turn.runs, strict=False)
    outer = [(span, run) for span, run in pairs if tree.starter(span).agent is None]
    starts = [run.started for run in turn.runs if run.started is not None]
    ends = [run.ended for run in turn.runs if run.ended is not None]
    turn.started, turn.ended = min(starts, default=None), max(ends, default=None)
    turn.unknown += [name for name in ("started", "ended") if getattr(turn, name) is None]
    if outer:
        first, last = outer[0][0], made.final([run for _, run in outer])
        swarm = swarm_prompt(first.user_prompt)
        text = swarm.task if swarm is not None else first.user_prompt
        turn.input = Content(text=text) if text else None
        turn.output = last.output if last is not None else None
        if last is not None and last.output is None:
            builder.end_turn(turn, "incomplete")
    turn.unknown += [name for name in ("input", "output") if getattr(turn, name) is None]


class Contexts:
    """Finds the context of runs besides their input: the rest of their first model request."""

    def __init__(self) -> None:
        self._ids: dict[str, str] = {}

    def add(self, read: ReadTurn) -> None:
        """Fill in the context of the runs of a turn, if their model calls hold messages."""
        turn = read.turn
        self._note(turn.id, turn.input)
        for run in turn.runs:
            for step in run.steps:
                if isinstance(step, Said):
                    self._note(step.id, step.content)
                elif isinstance(step, ToolCall):
                    self._note(step.id, step.result)
            self._note(run.id, run.output)
        calls = {step.id for run in turn.runs for step in run.steps if isinstance(step, ToolCall)}
        for run, models in zip(turn.runs, read.models, strict=True):
            first = min(models, key=lambda span: times(span)[0], default=None)
            if first is None or run.input is None or not first.messages:
                continue
            answered = first.messages[-1].role == "assistant"
            request = first.messages[:-1] if answered else first.messages
            if not request or not all(message.content for message in request):
                continue  # some mappers leave content out
            items = [item for message in request for item in message.content]
            run.context = self._refs(items, (run.input.text or "").strip(), calls)

    def _refs(self, items: list[Item], given: str, calls: set[str]) -> list[Ref]:
        refs: dict[tuple[str | None, str | None], Ref] = {}
        for item in items:
            text = (item.text or item.content or "").strip()
            id_ = item.tool_call_id if item.tool_call_id in calls else self._ids.get(text)
            if id_ is None and text.startswith(_ANSWER.strip()):
                id_ = self._ids.get(text.partition(": ")[2])  # of another node of a graph
            if id_ is None and item.name is not None:
                text = Content(data=[item.name, item.arguments]).plain()
            if text != given and (text or id_):
                ref = Ref(id=id_) if id_ is not None else Ref(text=text)
                refs[ref.id, ref.text] = ref  # a call and its result are one step
        return list(refs.values())

    def _note(self, id_: str, content: Content | None) -> None:
        if content is not None and (text := content.plain().strip()):
            self._ids.setdefault(text, id_)


NOT_TOLD = [
    "state", "turn.state", "turn.output.data", "usage", "run.usage", "run.model", "run.inside",
    "run.context",
    "dispatch.description", "dispatch.tools_allowed", "dispatch.tools_source",
]  # fmt: skip
"""Fields that no session contains."""


class SessionTurns:
    """The turns of a session; items that were not read are counted in ``lost``."""

    def __init__(self, session: Session) -> None:
        self.lost: Counter[str] = Counter()
        self.cards: dict[str, AgentCard] = {}
        self._contexts = Contexts()
        builder = TraceBuilder(handed_off="hand", got_back="back")
        for trace in session.traces:
            if trace.spans:
                self._read(trace, builder)
        self.turns, self.attributes = builder.finish(), builder.attributes()

    def dropped(self) -> list[Dropped]:
        """Return the items that have no place in the record."""
        return [Dropped(what=what, count=count) for what, count in self.lost.items()]

    def _read(self, trace: SpanTrace, builder: TraceBuilder) -> None:
        read = read_turn(trace, builder)
        self._contexts.add(read)
        for span in read.unread:
            self.lost[f"a span of type `{span.span_type}`"] += 1
        for agent, name in read.agents:
            if agent.system_prompt and name is None:
                self.lost["the system prompt of an agent whose name is not recorded"] += 1
            elif agent.system_prompt and name is not None:
                self.cards.setdefault(name, AgentCard(instructions=agent.system_prompt))


def read_session(document: Document, source: Source, catalog: Catalog, fallback_id: str) -> Trace:
    """Read a session; each of its traces is a turn.

    Raises:
        InputError: the session has errors, or contains no spans.
    """
    extra_keys: list[ExtraKey] = []
    session = document.decode(Session, extra_keys=extra_keys)
    if not any(trace.spans for trace in session.traces):
        message = (
            "the session contains no spans: the SDK only keeps spans that name its session "
            "themselves, so put `session.id` into the trace attributes of every agent"
        )
        raise InputError(document.problem(message, document.first_line))
    read = SessionTurns(session)
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=session.session_id or fallback_id,
        source=source,
        turns=read.turns,
        agents={**read.cards, **catalog},
        unknown=list(NOT_TOLD),
        dropped=[*dropped_keys(extra_keys), *read.dropped()],
        attributes=read.attributes,
    )

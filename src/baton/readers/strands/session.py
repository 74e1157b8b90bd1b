"""Sessions of the Strands evaluation SDK: each invocation a turn."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from baton.formats.document import Document
from baton.formats.spelling import Stray
from baton.formats.strands import Session, Span, SpanTrace
from baton.model import (
    SCHEMA_VERSION,
    AgentCard,
    AgentRun,
    Content,
    Dropped,
    InputError,
    Source,
    Trace,
    Turn,
)
from baton.readers.adk.wire import dropped_keys
from baton.readers.catalog import Catalog
from baton.readers.ids import Ids

from .dispatches import Dispatches
from .spans import Names, Steps, Tree, answer_content, times, told_by_swarm

MAIN = "main"


class ReadTurn(NamedTuple):
    """A turn; its agents with their names, and the spans that no rule read."""

    turn: Turn
    agents: list[tuple[Span, str | None]]
    unread: list[Span]


def read_turn(trace: SpanTrace, ids: Ids) -> ReadTurn:
    """Read the spans of an invocation; what they do not tell is unknown."""
    tree = Tree(trace)
    names = Names(tree)
    turn = Turn(id=ids.new("turn", trace.trace_id))
    steps: dict[int, Steps] = {}
    runs: dict[int, AgentRun] = {}
    agents: list[Span | None] = [*tree.agents] or [None]
    for agent in agents:
        steps[id(agent)] = Steps(tree, agent, ids)
        runs[id(agent)] = _run(agent, names, steps[id(agent)], ids)
    turn.runs = list(runs.values())
    made = Dispatches(tree, names, runs, steps, ids)
    turn.dispatches = made.dispatches
    for key, run in runs.items():
        run.steps = steps[key].ordered()
    if not made.all_told:
        turn.unknown.append("dispatches")
    _ends(turn, tree, made)
    return ReadTurn(turn, [(agent, names.of(agent)) for agent in tree.agents], tree.unread)


def _run(agent: Span | None, names: Names, steps: Steps, ids: Ids) -> AgentRun:
    name = names.of(agent)
    info = agent.span_info if agent is not None else None
    run = AgentRun(id=ids.new("run", info.span_id if info else None), agent=name or MAIN)
    if name is None:
        run.unknown.append("agent")
    if not steps.told:
        run.unknown.append("steps.said")
    if agent is None or info is None:
        run.status = "unknown"
        run.unknown += ["input", "output", "tools_offered", "started", "ended"]
        return run
    run.started, run.ended = times(agent)
    run.unknown += [] if run.ended is not None else ["ended"]
    _content(run, agent)
    if agent.available_tools:
        run.tools_offered = [tool.name for tool in agent.available_tools]
    else:  # some mappers write none where they know of none
        run.unknown.append("tools_offered")
    return run


def _content(run: AgentRun, agent: Span) -> None:
    if agent.user_prompt:
        run.input = Content(text=agent.user_prompt)
    else:
        run.unknown.append("input")
    run.output = answer_content(agent)
    if run.output is None:  # whether it failed is not told
        run.status = "unknown"
        run.unknown.append("output")


def _ends(turn: Turn, tree: Tree, made: Dispatches) -> None:
    """Take what the user said and was told from the agents that no other agent started."""
    pairs = zip(tree.agents, turn.runs, strict=False)
    outer = [(span, run) for span, run in pairs if tree.starter(span).agent is None]
    starts = [run.started for run in turn.runs if run.started is not None]
    ends = [run.ended for run in turn.runs if run.ended is not None]
    turn.started, turn.ended = min(starts, default=None), max(ends, default=None)
    turn.unknown += [name for name in ("started", "ended") if getattr(turn, name) is None]
    if outer:
        first, last = outer[0][0], made.final([run for _, run in outer])
        told = told_by_swarm(first.user_prompt)
        text = told.task if told is not None else first.user_prompt
        turn.input = Content(text=text) if text else None
        turn.output = last.output if last is not None else None
        if last is not None and last.output is None:
            turn.status = "incomplete"
    turn.unknown += [name for name in ("input", "output") if getattr(turn, name) is None]


NOT_TOLD = [
    "state", "turn.state", "turn.output.data", "usage", "run.usage", "run.model", "run.inside",
    "dispatch.description", "dispatch.tools_allowed", "dispatch.tools_source",
]  # fmt: skip
"""What no session tells."""


class SessionTurns:
    """The turns of a session; what was not read is counted in ``lost``."""

    def __init__(self, session: Session) -> None:
        self.lost: Counter[str] = Counter()
        self.cards: dict[str, AgentCard] = {}
        ids = Ids()
        traces = [trace for trace in session.traces if trace.spans]
        self.turns: list[Turn] = [self._turn(trace, ids) for trace in traces]

    def dropped(self) -> list[Dropped]:
        """Return what was met and has no place in the record."""
        return [Dropped(what=what, count=count) for what, count in self.lost.items()]

    def _turn(self, trace: SpanTrace, ids: Ids) -> Turn:
        read = read_turn(trace, ids)
        for span in read.unread:
            self.lost[f"a span of type `{span.span_type}`"] += 1
        for agent, name in read.agents:
            if agent.system_prompt and name is None:
                self.lost["the system prompt of an agent whose name is not told"] += 1
            elif agent.system_prompt and name is not None:
                self.cards.setdefault(name, AgentCard(instructions=agent.system_prompt))
        return read.turn


def read_session(document: Document, source: Source, catalog: Catalog, fallback_id: str) -> Trace:
    """Read a session; each of its traces is a turn.

    Raises:
        InputError: it has faults, or holds no spans.
    """
    strays: list[Stray] = []
    session = document.decode(Session, strays=strays)
    if not any(trace.spans for trace in session.traces):
        message = (
            "the session holds no spans: the SDK keeps those only that name its session "
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
        dropped=[*dropped_keys(strays), *read.dropped()],
    )

"""Records of every shape that holds together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import strategies as st

from baton.model import (
    AgentCard,
    AgentRun,
    Content,
    Dispatch,
    Dropped,
    GotBack,
    HandedOff,
    Part,
    Said,
    Source,
    Step,
    ToolCall,
    Trace,
    Turn,
    Usage,
)
from baton.model.trace import NONE_BY_DEFAULT

Draw = st.DrawFn
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SOME = st.none() | TEXT
JSON: st.SearchStrategy[Any] = st.recursive(
    st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner | st.none(), max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)  # fmt: skip
DATA = st.none() | JSON
OBJECT = st.dictionaries(TEXT, JSON, max_size=2)
PARTS = st.lists(st.builds(Part, type=TEXT, mime=SOME, uri=SOME, sha256=SOME), max_size=2)
CONTENT = st.none() | st.builds(Content, text=SOME, data=DATA, parts=st.none() | PARTS)
SAID = st.builds(Content, text=SOME, data=DATA, parts=st.none() | PARTS)
COUNT = st.none() | st.integers(0, 2**40)
NAMES = st.none() | st.lists(TEXT, max_size=3)
TOOLS: st.SearchStrategy[Any] = NAMES | st.just("all")
USAGE = st.none() | st.builds(
    Usage,
    input_tokens=COUNT, cache_read_tokens=COUNT, cache_write_tokens=COUNT, output_tokens=COUNT,
    requests=COUNT, failed_requests=COUNT, cost_usd=st.none() | st.floats(0, 1e6),
    cost_from=st.sampled_from([None, "source", "prices"]), complete=st.booleans(),
)  # fmt: skip
MOMENT = st.sampled_from([0.0, 1e-12, 0.1, -3.5, 1e15]) | st.floats(1.6e9, 1.9e9)
CARD = st.builds(
    AgentCard,
    description=SOME, tools=TOOLS, denied_tools=NAMES, instructions=SOME, model=SOME,
    kind=st.sampled_from(["agent", "workflow", "human"]), aliases=st.lists(TEXT, max_size=2),
)  # fmt: skip


def span_of_time(draw: Draw) -> tuple[float | None, float | None]:
    """Draw a start and an end, either of which may not be known."""
    first, last = sorted(draw(st.tuples(MOMENT, MOMENT)))
    return (
        first if draw(st.booleans()) else None,
        last if draw(st.booleans()) else None,
    )


def doubted(draw: Draw, obj: Any, candidates: list[str]) -> None:
    """Say of some fields without a value that the source did not tell."""
    none_by_default = NONE_BY_DEFAULT[type(obj)]
    may = [name for name in candidates if not none_by_default[name] or getattr(obj, name) is None]
    obj.unknown = draw(st.lists(st.sampled_from(may), unique=True, max_size=3)) if may else []


class Maker:
    """Makes the parts of one record, with ids that nothing else has."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.ids = 0

    def id(self) -> str:
        """Return a new id."""
        self.ids += 1
        return self.draw(TEXT) + f"#{self.ids}"

    def said(self) -> Said:
        """Return something said."""
        return Said(
            id=self.id(),
            content=self.draw(SAID),
            thought=self.draw(st.booleans()),
            sources=self.draw(st.none() | st.lists(JSON, max_size=2)),
            at=self.draw(st.none() | MOMENT),
        )

    def call(self) -> ToolCall:
        """Return a tool call that makes no dispatch."""
        at, ended = span_of_time(self.draw)
        call = ToolCall(
            id=self.id(),
            name=self.draw(TEXT | st.just("mcp__files__read")),
            arguments=self.draw(DATA),
            result=self.draw(CONTENT),
            status=self.draw(st.sampled_from(["ok", "failed", "refused", "unanswered", "unknown"])),
            refused_by=self.draw(st.sampled_from([None, "runtime", "user"])),
            stand_in=self.draw(st.sampled_from([None, "fixture"])),
            error=self.draw(SOME),
            at=at,
            ended=ended,
        )
        doubted(self.draw, call, ["arguments", "result", "error", "status", "at"])
        return call

    def run(self) -> AgentRun:
        """Return a run with steps that hand nothing over."""
        started, ended = span_of_time(self.draw)
        makers: list[Callable[[], Step]] = [self.said, self.call]
        steps = self.draw(st.lists(st.sampled_from(makers), max_size=3))
        run = AgentRun(
            id=self.id(),
            agent=self.draw(TEXT),
            node=self.draw(SOME),
            inside=self.draw(st.lists(TEXT, max_size=2)),
            input=self.draw(CONTENT),
            output=self.draw(CONTENT),
            steps=[make() for make in steps],
            tools_offered=self.draw(NAMES),
            status=self.draw(st.sampled_from(["completed", "failed", "waiting", "unknown"])),
            error=self.draw(SOME),
            model=self.draw(SOME),
            usage=self.draw(USAGE),
            started=started,
            ended=ended,
        )
        doubted(self.draw, run, ["steps", "input", "output", "tools_offered", "model", "usage"])
        return run

    def dispatch(self, sender: AgentRun | None, receivers: list[AgentRun]) -> Dispatch:
        """Return work that a run, or a program, hands to others; its steps are put in."""
        draw = self.draw
        kinds = ["delegate", "transfer", "sequence", "return"] if sender else ["sequence"]
        started, ended = span_of_time(draw)
        made = Dispatch(
            id=self.id(),
            kind=draw(st.sampled_from(kinds)),
            mode=draw(st.sampled_from(["foreground", "background", "unknown"])),
            basis=draw(st.sampled_from(["stated", "structure", "order"])),
            from_run=sender.id if sender else None,
            from_agent=sender.agent if sender else None,
            to_agent=draw(TEXT),
            to_kind=draw(st.sampled_from(["agent", "human", "workflow"])),
            prompt=draw(CONTENT),
            description=draw(SOME),
            context=draw(OBJECT),
            group=draw(COUNT),
            tools_allowed=draw(TOOLS),
            tools_source=draw(st.sampled_from([None, "request", "offered"])),
            stand_in=draw(st.sampled_from([None, "fault: empty"])),
            runs=[run.id for run in receivers],
            result=draw(CONTENT),
            status=draw(st.sampled_from(["completed", "unanswered", "waiting", "unknown"])),
            error=draw(SOME),
            depth=draw(st.integers(0, 9)),
            started=started,
            ended=ended,
        )
        doubted(draw, made, ["prompt", "result", "tools_allowed", "runs", "from_run", "error"])
        for run in receivers:
            run.started_by.append(made.id)
        if sender is not None and made.kind in ("delegate", "transfer"):
            self._hand_over(sender, made)
        return made

    def _hand_over(self, sender: AgentRun, made: Dispatch) -> None:
        steps: list[Step] = [
            HandedOff(id=self.id(), dispatch=made.id, at=self.draw(st.none() | MOMENT))
        ]
        if self.draw(st.booleans()):
            call = self.call()
            call.dispatch, made.call = made.id, call.id
            steps.insert(0, call)
        if self.draw(st.booleans()):
            back = GotBack(id=self.id(), dispatch=made.id, at=self.draw(st.none() | MOMENT))
            steps.append(back)
        at = self.draw(st.integers(0, len(sender.steps)))
        sender.steps[at:at] = steps


@st.composite
def records(draw: Draw) -> Trace:
    """Return a record that holds together, as ``integrity_problems`` sees it."""
    maker = Maker(draw)
    turns = [_turn(draw, maker) for _ in range(draw(st.integers(0, 2)))]
    state = st.none() | OBJECT
    for turn in turns:
        turn.state = draw(state)
        doubted(draw, turn, ["input", "output", "state", "runs", "error"])
    trace = Trace(
        schema_version=1,
        id=draw(TEXT),
        case=draw(SOME),
        source=Source(format=draw(TEXT), framework=draw(SOME)),
        turns=turns,
        agents=draw(st.dictionaries(TEXT, CARD, max_size=2)),
        state=draw(state),
        usage=draw(USAGE),
        dropped=draw(st.lists(st.builds(Dropped, what=TEXT, count=st.integers(0, 9)), max_size=1)),
        attributes=draw(OBJECT),
    )
    of_all = ["run.input", "dispatch.prompt", "turn.state", "tool_call.arguments"]
    trace.unknown = draw(st.lists(st.sampled_from(of_all), unique=True))
    return trace


def _turn(draw: Draw, maker: Maker) -> Turn:
    runs = [maker.run() for _ in range(draw(st.integers(0, 4)))]
    started, ended = span_of_time(draw)
    dispatches = [
        maker.dispatch(draw(st.sampled_from([None, *runs[:index]])), [run])
        for index, run in enumerate(runs)
        if index
    ]
    for sender in runs:
        if draw(st.integers(0, 3)) == 0:
            dispatches.append(maker.dispatch(sender, []))
    return Turn(
        id=maker.id(),
        input=draw(CONTENT),
        output=draw(CONTENT),
        runs=runs,
        dispatches=dispatches,
        status=draw(st.sampled_from(["completed", "failed", "waiting", "incomplete"])),
        error=draw(SOME),
        started=started,
        ended=ended,
    )


def told(trace: Trace) -> bytes:
    """Return all that a record says, apart from where it was read."""
    source = msgspec.structs.replace(trace.source, location=None)
    return msgspec.json.encode(msgspec.structs.replace(trace, source=source))

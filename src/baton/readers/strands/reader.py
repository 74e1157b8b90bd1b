"""The entry point for Strands' files; reads evaluation reports as one trace for each case."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from baton.formats.document import Document
from baton.formats.key_case import ExtraKey
from baton.formats.nesting import TOO_DEEP, decode_json, is_too_deep
from baton.formats.strands import Interaction, Report, Row, Session
from baton.model import (
    SCHEMA_VERSION,
    AgentCard,
    Content,
    Dropped,
    InputError,
    Problem,
    Said,
    Source,
    ToolCall,
    Trace,
    Turn,
)
from baton.readers.adk.wire import dropped_keys
from baton.readers.builder import MAIN, TraceBuilder
from baton.readers.catalog import Catalog

from .multi_agent_results import read_result
from .session import NOT_TOLD as NOT_IN_SESSIONS
from .session import SessionTurns, read_session

_UNKNOWN_OF_LISTS = [
    "inside",
    "input",
    "context",
    "tools_offered",
    "model",
    "usage",
    "started",
    "ended",
]


_UNKNOWN_OF_DEPENDENCIES = [
    "kind",
    "mode",
    "call",
    "prompt",
    "description",
    "context",
    "tools_allowed",
    "tools_source",
    "result",
    "depth",
    "group",
    "started",
    "ended",
]


class Listed(NamedTuple):
    """A turn, and the items of the lists that have no place in it."""

    turn: Turn
    dropped: list[Dropped]


def list_turn(
    trajectory: list[Any] | None, interactions: list[Interaction] | None, builder: TraceBuilder
) -> Listed:
    """Read the lists that a task itself returned.

    The order of agents is known only if interactions state dependencies. The kind of hand-off is
    not known: a dependency is an edge in a graph, but a transfer in a swarm.
    """
    turn = builder.turn(unknown=["dispatches"])
    lost: Counter[str] = Counter()
    named = [each for each in interactions or () if each.node_name]
    lost["an interaction without the name of a node"] += len(interactions or ()) - len(named)
    steps = trajectory or []
    nodes = {each.node_name for each in named}
    if steps and all(isinstance(step, str) and step in nodes for step in steps):
        for name, spoken in zip(steps, _by_visit(steps, named), strict=True):
            _run(turn, name, spoken, builder)
    elif named:
        for each in named:
            _run(turn, each.node_name or MAIN, [each], builder)
        if _comes_back(named):
            turn.unknown.append("runs")
        _add_calls(turn, steps, lost, builder)
    elif trajectory is not None:
        _run(turn, MAIN, [], builder)
        turn.runs[0].unknown += ["agent", "output"]
        _add_calls(turn, steps, lost, builder)
    else:
        turn.unknown.append("runs")
    lost[_NO_DISPATCH] += _depend(turn, named, builder)
    return Listed(turn, [Dropped(what=what, count=n) for what, n in lost.items() if n])


def _is_name(value: Any) -> bool:
    return isinstance(value, str)


_NO_DISPATCH = (
    "a dependency of an interaction: it is not recorded which visits of its nodes it joins"
)


def _depend(turn: Turn, named: list[Interaction], builder: TraceBuilder) -> int:
    """Add a dispatch for each dependency of one visit on another; returns how many are left out.

    Dependencies belong to a node. If a node was visited several times, they do not show which visit
    followed which: in `a b c b` with "b after a and c", `a` started only the first `b`.
    """
    at = {run.agent: place for place, run in enumerate(turn.runs)}
    visits = Counter(run.agent for run in turn.runs)
    left_out = 0
    hidden = "runs" in turn.unknown
    for each in named:
        for name in dict.fromkeys(filter(_is_name, each.dependencies or ())):
            before, after = at.get(name), at.get(each.node_name or MAIN)
            once = not hidden and visits[name] == visits[each.node_name or MAIN] == 1
            if before is None or after is None or before >= after or not once:
                left_out += 1
                continue
            sender, receiver = turn.runs[before], turn.runs[after]
            dispatch = builder.dispatch(turn, "sequence", sender, receiver.agent, None)
            dispatch.unknown += _UNKNOWN_OF_DEPENDENCIES
            builder.start(dispatch, receiver)
    return left_out


def _by_visit(steps: list[str], named: list[Interaction]) -> list[list[Interaction]]:
    """Return the interactions that belong to each visit of a node.

    If a node has as many interactions as visits, each visit has one. If there are fewer, they
    belong to its last visits, because Strands' swarms keep the last answer of a node. If there are
    more, the rest belong to the last visit: an agent that speaks twice in a row.
    """
    left: dict[str | None, list[Interaction]] = {}
    for each in reversed(named):
        left.setdefault(each.node_name, []).append(each)
    visits = Counter(steps)
    by_visit = []
    for name in steps:
        ahead, visits[name] = visits[name], visits[name] - 1
        count = 1 if len(left[name]) >= ahead > 1 else 0 if ahead > 1 else len(left[name])
        by_visit.append([left[name].pop() for _ in range(count)])
    return by_visit


def _run(turn: Turn, name: str, spoken: list[Interaction], builder: TraceBuilder) -> None:
    run = builder.run(turn, name, unknown=[*_UNKNOWN_OF_LISTS, "steps"])
    texts = [
        text
        for each in spoken
        for text in ([each.messages] if isinstance(each.messages, str) else each.messages or [])
        if isinstance(text, str)
    ]
    run.steps += [Said(id=builder.new_id("say"), content=Content(text=text)) for text in texts]
    run.output = Content(text=texts[0]) if len(texts) == 1 else None
    if run.output is None and name != MAIN:
        run.unknown.append("output")


def _comes_back(named: list[Interaction]) -> bool:
    """Return whether a node depends on a later one, which shows that it was visited repeatedly."""
    seen: set[Any] = set()
    for each in named:
        if any(name not in seen for name in each.dependencies or () if isinstance(name, str)):
            return True
        seen.add(each.node_name)
    return False


def _add_calls(turn: Turn, steps: list[Any], lost: Counter[str], builder: TraceBuilder) -> None:
    """Assign the calls to the only run. With several agents, their owner is not known."""
    calls = [call for step in steps if (call := _call(step, builder)) is not None]
    lost["a step of a trajectory that names no tool"] += len(steps) - len(calls)
    if len(turn.runs) != 1:
        lost["a tool call without a recorded agent"] += len(calls)
        return
    (run,) = turn.runs
    run.steps[:0] = calls
    more = sum(_more(step) for step in steps)
    lost["an earlier call of a tool: only the last one is recorded"] += more
    if not more and len(calls) == len(steps):
        run.unknown[run.unknown.index("steps")] = "steps.said"


def _call(step: Any, builder: TraceBuilder) -> ToolCall | None:
    if isinstance(step, str):
        return ToolCall(
            id=builder.new_id("call"), name=step, status="unknown", unknown=["arguments", "result"]
        )
    if not isinstance(step, dict) or not isinstance(step.get("name"), str):
        return None
    call = ToolCall(id=builder.new_id("call"), name=step["name"], arguments=step.get("input"))
    call.unknown += [] if "input" in step else ["arguments"]
    result, wrong = step.get("tool_result"), step.get("is_error")
    if wrong is True:
        call.status, call.error = "failed", None if result is None else str(result)
        return call
    call.status = "ok" if wrong is False else "unknown"
    if result is None:
        call.unknown.append("result")
    else:
        call.result = Content.of(result)
    return call


def _more(step: Any) -> int:
    """Return how many calls a step represents beyond the one that it contains."""
    count = step.get("call_count") if isinstance(step, dict) else None
    return max(0, count - 1) if isinstance(count, int) else 0


_NOT_TOLD = ["run.context", "state", "turn.state", "turn.started", "turn.ended", "usage"]
_BROKE = "An error occurred: "  # how the SDK starts the reason of a task that raised


def read_report(document: Document, source: Source, catalog: Catalog) -> Iterator[Trace]:
    """Read a report, whose rows repeat a case for each evaluator.

    Raises:
        InputError: when all rows are read, with the faults of those that have some.
    """
    report = document.decode(Report, extra_keys=[])
    seen: Counter[tuple[bytes, str | None]] = Counter()
    names: Counter[str] = Counter()
    problems: list[Problem] = []
    yielded: Counter[bytes] = Counter()
    for number, raw in enumerate(report.cases):
        try:
            row, extra_keys = _row(document, number, raw)
            key = _key(document, number, raw)
        except InputError as error:
            problems += error.problems
            continue
        seen[key, row.evaluator] += 1
        if seen[key, row.evaluator] <= yielded[key]:
            continue
        yielded[key] += 1
        reason = report.reasons[number] if number < len(report.reasons) else None
        case = row.name or f"case{sum(yielded.values())}"
        names[case] += 1
        id_ = case if names[case] == 1 else f"{case}-{names[case]}"
        copy = msgspec.structs.replace(source)
        yield _trace(row, extra_keys, case, id_, reason, copy, catalog)
    if problems:
        raise InputError(problems)


def read_row(document: Document, source: Source, catalog: Catalog, fallback_id: str) -> Trace:
    """Read a file with a single case, the form in which the SDK stores the answer of a task.

    Raises:
        InputError: it has errors.
    """
    extra_keys: list[ExtraKey] = []
    row = document.decode(Row, extra_keys=extra_keys)
    extra_keys = [extra_key for extra_key in extra_keys if len(extra_key.path) > 1]
    case = row.name or fallback_id
    return _trace(row, extra_keys, case, case, None, source, catalog)


def _row(document: Document, number: int, raw: msgspec.Raw) -> tuple[Row, list[ExtraKey]]:
    """Read a row, without its expectations and judgements, which other modules read."""
    extra_keys: list[ExtraKey] = []
    path = ("cases", number)
    try:
        if is_too_deep(bytes(raw)):
            raise InputError(document.problem_at(path, TOO_DEEP))
        return msgspec.json.decode(raw, type=Row), extra_keys
    except (msgspec.DecodeError, UnicodeDecodeError):
        try:
            value = decode_json(bytes(raw))
        except msgspec.DecodeError as error:
            raise InputError(document.problem_at(path, f"cannot be read: {error}")) from None
        row = document.convert(value, Row, path=path, extra_keys=extra_keys)
        return row, [extra_key for extra_key in extra_keys if len(extra_key.path) > 3]


def _key(document: Document, number: int, raw: msgspec.Raw) -> bytes:
    """Return a key that is equal for all rows of one case, regardless of the evaluator."""
    try:
        row = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        path = ("cases", number)
        raise InputError(document.problem_at(path, f"cannot be read: {error}")) from None
    own = {k: v for k, v in row.items() if k not in ("evaluator", "evaluator_type")}
    return sha256(msgspec.json.encode(own, order="sorted")).digest()


def _trace(
    row: Row,
    extra_keys: list[ExtraKey],
    case: str,
    id_: str,
    reason: str | None,
    source: Source,
    catalog: Catalog,
) -> Trace:
    dropped = dropped_keys(extra_keys)
    cards: dict[str, AgentCard] = {}
    unknown, attributes = list(_NOT_TOLD), dict[str, Any]()
    if isinstance(row.actual_trajectory, Session):
        read = SessionTurns(row.actual_trajectory)
        turns, cards, attributes = read.turns, read.cards, read.attributes
        unknown = [name for name in NOT_IN_SESSIONS if name != "turn.output.data"]
        dropped += read.dropped()
        if row.actual_interactions:
            what = "an interaction beside a session"
            dropped.append(Dropped(what=what, count=len(row.actual_interactions)))
    else:
        listed = list_turn(row.actual_trajectory, row.actual_interactions, TraceBuilder())
        turns, dropped = [listed.turn], [*dropped, *listed.dropped]
    turns = turns or [Turn(id="turn1", unknown=["runs", "dispatches", "started", "ended"])]
    _complete(turns, row, reason)
    state, lost = state_of(row.actual_environment_state)
    dropped += lost
    if state is not None:
        unknown.remove("state")
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=id_,
        case=case,
        source=source,
        turns=turns,
        agents={**cards, **catalog},
        state=state,
        unknown=unknown,
        dropped=dropped,
        attributes=attributes,
    )


def state_of(states: list[Any] | None) -> tuple[dict[str, Any] | None, list[Dropped]]:
    """Read the states of the environment by name; if two have one name, the first counts."""
    if states is None:
        return None, []
    state: dict[str, Any] = {}
    lost = 0
    for each in states:
        name = each.get("name") if isinstance(each, dict) else None
        if isinstance(name, str) and "state" in each and name not in state:
            state[name] = each["state"]
        else:
            lost += 1
    return state, [Dropped(what="environment state", count=lost)] if lost else []


def _complete(turns: list[Turn], row: Row, reason: str | None) -> None:
    """Add the input of the case, if it sent one message, and its result to the last turn."""
    if len(turns) == 1:
        _set(turns[0], "input", _content(row.input))
    last = turns[-1]
    if row.actual_output is msgspec.UNSET:
        last.status, last.output = "failed", None
        error = reason.removeprefix(_BROKE) if reason and reason.startswith(_BROKE) else None
        last.error = error or "the task failed"
        last.unknown = [name for name in last.unknown if name not in ("output", "error")]
    else:
        _set(last, "output", _content(row.actual_output))
        if last.output is not None:
            last.status = "completed"


def _set(turn: Turn, name: str, content: Content | None) -> None:
    if content is None:
        if getattr(turn, name) is None and name not in turn.unknown:
            turn.unknown.append(name)
        return
    setattr(turn, name, content)
    turn.unknown = [other for other in turn.unknown if other != name]


def _content(value: Any) -> Content | None:
    if value is None:
        return None
    if isinstance(value, str):  # a printed answer of Strands ends with a line break
        return Content(text=value.removesuffix("\n"))
    return Content(data=value)


def read_strands(
    document: Document, source: Source, catalog: Catalog, fallback_id: str
) -> Iterator[Trace]:
    """Read a file by the kind that its source's format names.

    Raises:
        InputError: it has errors.
    """
    match source.format:
        case "strands-report":
            yield from read_report(document, source, catalog)
        case "strands-case":
            yield read_row(document, source, catalog, fallback_id)
        case "strands-session":
            yield read_session(document, source, catalog, fallback_id)
        case _:
            yield read_result(document, source, catalog, fallback_id)

"""From a recorded dispatch to a case of its own, and from such a case back to the record.

The case holds a part of the recording, in the words of the record: the turn of the dispatch and
those around it. What is played (context, call, child, next) is read from that part, so that
nothing is written twice, and the evaluators of dispatches see what they saw of the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from baton.model import (
    AgentRun,
    Content,
    Dispatch,
    DispatchCase,
    ExpectedHandling,
    Form,
    MadeCall,
    MadeDispatch,
    MadeRun,
    Message,
    Ref,
    Said,
    Source,
    Step,
    ToolCall,
    Trace,
    Turn,
    known,
    nearest,
    text_hash,
)
from baton.model.trace import DEFINED, TARGETS
from baton.model.views import (
    comes_back,
    dispatch_view,
    dispatched_runs,
    group_of,
    index_of,
    indexed,
    round_trip,
    turn_tree,
)

CONTEXT_TURNS = 3
"""Turns before a dispatch, and after it, of which a case holds more than the words."""


def no_dispatch(dispatch_id: str, traces: Sequence[Trace]) -> str:
    """Say that traces have no dispatch with this id, and which was probably meant."""
    ids = [d.id for trace in traces for turn in trace.turns for d in turn.dispatches]
    if not ids:
        return f"no dispatch `{dispatch_id}`: the recording has no dispatch at all"
    near = nearest(dispatch_id, ids, 1)
    more = f" and {len(ids) - 10} more" if len(ids) > 10 else ""
    hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(ids[:10])}{more}"
    return f"no dispatch `{dispatch_id}`; {hint}"


def as_made(trace: Trace, dispatch: Dispatch) -> ExpectedHandling:
    """State what a dispatch did as what should come of it: its target and the tools it allowed."""
    tools = dispatch.tools_allowed
    # What was offered is what happened to be there, and no scope that somebody chose.
    scoped = isinstance(tools, list) and dispatch.tools_source != "offered"
    return ExpectedHandling(
        to=[dispatch.to_agent] if known(trace, dispatch, "to_agent") else None,
        tools=list(tools) if scoped and isinstance(tools, list) else None,
    )


def versions_of(trace: Trace, dispatch: Dispatch) -> dict[str, str]:
    """Hash the texts that a dispatch depends on, as far as the trace holds them.

    These are the instructions of the sender and of the receiver, what routers read of the
    receiver, and ``agents``: all definitions, where the trace has been given some.
    """
    versions = {}
    for name in (dispatch.from_agent, dispatch.to_agent):
        card = trace.agents.get(name or "")
        if card is not None and card.instructions is not None:
            versions[f"agent:{name}"] = text_hash(card.instructions)
    card = trace.agents.get(dispatch.to_agent)
    if card is not None and card.description is not None:
        versions[f"description:{dispatch.to_agent}"] = text_hash(card.description)
    defined = trace.attributes.get(DEFINED)
    if isinstance(defined, list):
        cards = {name: trace.agents[name] for name in sorted(defined) if name in trace.agents}
        versions["agents"] = text_hash(msgspec.json.encode(cards, order="deterministic").decode())
    return versions


def read_record(record: Trace, at: str, *, form: Form = "decision") -> DispatchCase:
    """Read what led to a dispatch, the call, the child's run and what followed from a record.

    Raises:
        ValueError: the record has no dispatch ``at``.
    """
    with indexed(record) as index:
        dispatch = index.dispatches.get(at)
        if dispatch is None:
            raise ValueError(no_dispatch(at, [record]))
        turn = index.turn_of[at]
        sender = index.runs.get(dispatch.from_run or "")
        return DispatchCase(
            form=form,
            context=_context(record, turn, sender, dispatch),
            call=_made(record, sender, dispatch),
            child=_child(record, dispatch),
            next=_next(record, sender, dispatch),
            record=record,
            at=at,
        )


# ---------------------------------------------------------------------- the part of a recording


def part_of(trace: Trace, dispatch: Dispatch, around: int) -> Trace:
    """Return the part of a trace that tells of a dispatch; the trace stays as it is.

    Of turns more than ``around`` away only what was said to the agents, and answered, is left.
    """
    whole = msgspec.convert(msgspec.to_builtins(trace), Trace)
    with indexed(whole) as index:
        here = next(i for i, t in enumerate(whole.turns) if dispatch in t.dispatches)
        group = {each.id for each in group_of(whole, dispatch)}
        kept = {
            turn.id
            for place, turn in enumerate(whole.turns)
            if abs(place - here) <= around or _gets_back(turn, group)
        }
        sayings = {id_: _text_of(said) for id_, said in index.sayings.items()}
    turns = [turn if turn.id in kept else _words_of(turn) for turn in whole.turns]
    if len(kept) < len(turns):
        _let_go(turns, sayings)
    return Trace(
        schema_version=whole.schema_version,
        id=whole.id,
        source=Source(format=whole.source.format, framework=whole.source.framework),
        turns=turns,
        agents=whole.agents,
        unknown=list(dict.fromkeys([*whole.unknown, "state", "usage"])),
        attributes={
            name: whole.attributes[name] for name in (DEFINED, TARGETS) if name in whole.attributes
        },
    )


def _gets_back(turn: Turn, group: set[str]) -> bool:
    return any(comes_back(step, group) for run in turn.runs for step in run.steps)


def _words_of(turn: Turn) -> Turn:
    """Return a turn with what was said to the agents and what they answered, and nothing else."""
    return Turn(
        id=turn.id,
        input=turn.input,
        output=turn.output,
        status=turn.status,
        error=turn.error,
        unknown=list(dict.fromkeys([*turn.unknown, "runs", "dispatches"])),
    )


def _let_go(turns: Sequence[Turn], sayings: Mapping[str, str]) -> None:
    """Have nothing name what is not there any more: it is unknown, or a text in its place."""
    runs = {run.id for turn in turns for run in turn.runs}
    dispatches = {d.id for turn in turns for d in turn.dispatches}
    steps = {step.id for turn in turns for run in turn.runs for step in run.steps}
    there = runs | steps | {turn.id for turn in turns}
    for turn in turns:
        for run in turn.runs:
            if not dispatches.issuperset(run.started_by):
                run.started_by = [id_ for id_ in run.started_by if id_ in dispatches]
                run.unknown.append("started_by")
            if run.context is not None:
                run.context = [
                    ref
                    if ref.id is None or ref.id in there
                    else Ref(text=sayings.get(ref.id) or "")
                    for ref in run.context
                ]
            run.steps = [
                step
                for step in run.steps
                if isinstance(step, Said)
                or step.dispatch is None
                or step.dispatch in dispatches
                or isinstance(step, ToolCall)
            ]
            for step in run.steps:
                if isinstance(step, ToolCall) and step.dispatch not in dispatches:
                    step.dispatch = None
        for dispatch in turn.dispatches:
            gone = {
                "from_run": dispatch.from_run not in {None, *runs},
                "call": dispatch.call not in {None, *steps},
                "continues": dispatch.continues not in {None, *dispatches},
                "answers": dispatch.answers not in {None, *dispatches},
            }
            for field in (name for name, is_gone in gone.items() if is_gone):
                setattr(dispatch, field, None)
                dispatch.unknown.append(field)
            if not runs.issuperset(dispatch.runs):
                dispatch.runs = [id_ for id_ in dispatch.runs if id_ in runs]
                dispatch.unknown.append("runs")


# ---------------------------------------------------------------------- what is played


def _context(
    record: Trace, turn: Turn, sender: AgentRun | None, dispatch: Dispatch
) -> list[Message]:
    """Return what the sender had before its dispatch, oldest first."""
    before = [] if sender is None else _said(record, sender, dispatch_view(record, dispatch).before)
    starts = [] if sender is None else [index_of(record).dispatches[i] for i in sender.started_by]
    alone = any(each.kind == "delegate" for each in starts) or (
        sender is not None and known(record, sender, "context") and not sender.context
    )
    if sender is not None and starts and alone:
        # It began with an empty history: what it was told is all that it had.
        told = sender.input or next((d.prompt for d in starts if d.prompt is not None), None)
        return [*_user(told), *before]
    earlier = record.turns[: record.turns.index(turn)]
    messages: list[Message] = []
    for each in earlier:
        messages += [*_user(each.input), *_of_turn(record, each)]
    messages += _user(turn.input)
    if sender is not None:
        for run in _on_the_way(record, turn, sender):
            messages += _of_run(record, run)
    return messages + before


def _on_the_way(record: Trace, turn: Turn, sender: AgentRun) -> list[AgentRun]:
    """Return the runs of a turn that had control before the sender, without delegates."""
    top = [node.run for node in turn_tree(record, turn)]
    places = [place for place, run in enumerate(top) if run.id == sender.id]
    return top[: places[0]] if places else []


def _of_turn(record: Trace, turn: Turn) -> list[Message]:
    if not known(record, turn, "runs"):
        said = turn.output.plain() if turn.output is not None else None
        return [] if not said else [Message(role="agent", text=said)]
    return [message for node in turn_tree(record, turn) for message in _of_run(record, node.run)]


def _of_run(record: Trace, run: AgentRun) -> list[Message]:
    messages = _said(record, run, run.steps)
    if not messages and run.output:
        messages.append(Message(role="agent", agent=run.agent, text=run.output.plain()))
    return messages


def _user(content: Content | None) -> list[Message]:
    return [] if not content else [Message(role="user", text=content.plain())]


def _said(record: Trace, run: AgentRun, steps: Sequence[Step]) -> list[Message]:
    """Return steps as messages: a text with the calls that follow it, calls made at once together.

    Whether two calls were made by one answer of the model shows in their times, or in that they
    hand on work together; of others nobody can tell, and each is a message of its own.
    """
    made = index_of(record).dispatches
    messages: list[Message] = []
    last: ToolCall | None = None
    for step in steps:
        if isinstance(step, Said) and not step.thought:
            messages.append(Message(role="agent", agent=run.agent, text=step.content.plain()))
            last = None
        elif isinstance(step, ToolCall):
            together = last is not None and _at_once(made, last, step)
            starts_message = not messages or (messages[-1].calls and not together)
            if starts_message:
                messages.append(Message(role="agent", agent=run.agent))
            messages[-1].calls.append(_call(record, step))
            last = step
    return messages


def _at_once(made: Mapping[str, Dispatch], first: ToolCall, second: ToolCall) -> bool:
    one, other = made.get(first.dispatch or ""), made.get(second.dispatch or "")
    if one is not None and other is not None:
        return one.group is not None and one.group == other.group
    if first.ended is None or second.at is None:
        return False
    return second.at < first.ended


def _call(record: Trace, call: ToolCall) -> MadeCall:
    """Return a call with its answer; the answer of one that hands on work is on its dispatch."""
    dispatch = index_of(record).dispatches.get(call.dispatch or "")
    unknown = _unknown(record, call, "arguments", "result", "status")
    result, error, status = call.result, call.error, call.status
    if dispatch is not None and result is None:
        result, error = dispatch.result, dispatch.error or error
        unknown = [name for name in unknown if name != "result"]
        if result is None and not known(record, dispatch, "result"):
            unknown.append("result")
        status = {"failed": "failed", "refused": "refused"}.get(dispatch.status, status)  # type: ignore[assignment]
    return MadeCall(
        name=call.name,
        arguments=call.arguments,
        result=result,
        status=status,
        refused_by=call.refused_by,
        error=error,
        unknown=unknown,
    )


def _made(record: Trace, sender: AgentRun | None, dispatch: Dispatch) -> MadeDispatch:
    steps = sender.steps if sender is not None else []
    call = next((s for s in steps if isinstance(s, ToolCall) and s.id == dispatch.call), None)
    return MadeDispatch(
        sender=dispatch.from_agent,
        to=dispatch.to_agent,
        kind=dispatch.kind,
        tool=call.name if call is not None else None,
        arguments=call.arguments if call is not None else None,
        prompt=dispatch.prompt,
        tools=dispatch.tools_allowed,
        tools_source=dispatch.tools_source,
        basis=dispatch.basis,
        result=round_trip(record, dispatch).result,
        status=dispatch.status,
        error=dispatch.error,
        unknown=_unknown(
            record,
            dispatch,
            "from_agent",
            "to_agent",
            "call",
            "prompt",
            "tools_allowed",
            "result",
            "status",
        ),
    )


def _child(record: Trace, dispatch: Dispatch) -> MadeRun | None:
    """Return the run of the receiver, with those that it set to work in turn."""
    first = next((index_of(record).runs[id_] for id_ in dispatch.runs), None)
    if first is None:
        return None
    runs = dispatched_runs(record, [dispatch])
    return MadeRun(
        said=[message for run in runs for message in _said(record, run, run.steps)],
        given=None if first.context is None else [*_given(record, first)],
        tools_offered=first.tools_offered,
        output=first.output,
        status=first.status,
        error=first.error,
        unknown=_unknown(record, first, "steps", "context", "tools_offered", "output", "status"),
    )


def _given(record: Trace, run: AgentRun) -> Iterator[str]:
    sayings = index_of(record).sayings
    for ref in run.context or ():
        said = None if ref.id is None else sayings.get(ref.id)
        yield (ref.text or "") if said is None else _text_of(said)


def _text_of(said: Content | Step) -> str:
    """Return what a reference of ``AgentRun.context`` stands for as text."""
    if isinstance(said, Content):
        return said.plain()
    if isinstance(said, Said):
        return said.content.plain()
    if not isinstance(said, ToolCall):
        return ""
    called = msgspec.json.encode(said.arguments).decode() if said.arguments is not None else ""
    return "\n".join(
        part for part in (said.name, called, said.result.plain() if said.result else "") if part
    )


def _next(record: Trace, sender: AgentRun | None, dispatch: Dispatch) -> list[Message] | None:
    """Return what the sender did once the answer was there; ``None`` where that is not known."""
    if sender is None or not known(record, sender, "steps"):
        return None
    after = {step.id for step in round_trip(record, dispatch).after}
    messages: list[Message] = []
    for run in index_of(record).runs.values():
        mine = [step for step in run.steps if step.id in after]
        messages += _said(record, run, mine) if mine else []
    return messages


def _unknown(record: Trace, obj: AgentRun | Dispatch | ToolCall, *fields: str) -> list[str]:
    return [name for name in fields if not known(record, obj, name)]

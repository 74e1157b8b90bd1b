"""Cases for replays: dispatches and conversations of recordings, with every tool replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeVar

import msgspec

from baton.datasets.dispatch_cases import answers_of, dispatch_case, turns_of
from baton.datasets.recorded_dispatches import find_dispatch
from baton.model import (
    Case,
    Content,
    Dataset,
    ExpectedHandling,
    ExpectedTurn,
    Form,
    InputError,
    StandIns,
    ToolCall,
    Trace,
    known,
)
from baton.model.stand_ins import RecordedAnswer, StandIn, merged
from baton.model.trace import SESSION

Mode = TypeVar("Mode")
Played = Form | Literal["conversation"]
"""What to play again of a recording: one dispatch in one of its forms, or the conversation."""


StatedKey = tuple[str, int, str]
"""A dispatch of recordings: the id of its trace, its repeat (0 is the first) and its own id."""


def stated_key(trace: Trace, dispatch: str) -> StatedKey:
    """Return the key of a dispatch of a trace."""
    repeat = trace.attributes.get("repeat", 0)
    return trace.id, repeat if isinstance(repeat, int) else 0, dispatch


def dispatch_cases(
    traces: Sequence[Trace],
    *,
    dispatches: Sequence[str] = (),
    form: Form = "decision",
    expected: ExpectedHandling | None = None,
    stated: Mapping[StatedKey, ExpectedHandling] | None = None,
) -> list[Case]:
    """Make a case of each dispatch of traces that can be played again in a form.

    By default, that is every dispatch that an agent made. A ``return`` is not a separate decision:
    it closes another dispatch. If only the order of runs shows a dispatch, no agent made it that
    could decide again.

    Args:
        traces: the recordings.
        dispatches: their ids; ``TRACE/ID`` if several traces have one.
        form: how they are played.
        expected: the expected result of each.
        stated: the expected results of some, if ``expected`` is not given.

    Raises:
        InputError: there is no such dispatch, or none at all.
    """
    every = [(trace, each) for trace in traces for turn in trace.turns for each in turn.dispatches]
    if dispatches:
        chosen = [find_dispatch(name, traces) for name in dispatches]
    else:
        chosen = [
            (trace, each)
            for trace, each in every
            if each.kind != "return" and each.basis != "order"
        ]
    if not chosen:
        what = (
            "only returns, or dispatches that are known by order alone" if every else "no dispatch"
        )
        raise InputError(
            f"the recording has {what}: the form `conversation` plays all its messages"
        )
    made = [
        dispatch_case(
            trace,
            each.id,
            form=form,
            expected=expected or (stated or {}).get(stated_key(trace, each.id)),
            # The id of a played trace is arbitrary; that of its case is not.
            id=f"{trace.case or trace.id}-{each.id}",
        )
        for trace, each in chosen
    ]
    return _with_own_ids(made)


def conversation_cases(traces: Sequence[Trace]) -> list[Case]:
    """Make a case of each trace: its messages, with the recorded answers of tools.

    Raises:
        InputError: a message of the user was not recorded.
    """
    return _with_own_ids([_conversation(trace) for trace in traces])


def _conversation(trace: Trace) -> Case:
    for number, turn in enumerate(trace.turns, 1):
        if turn.input is None or not turn.input.plain():
            message = f"`{trace.id}` cannot be played again: turn {number} has no message"
            raise InputError(f"{message} of the user in the recording")
    state = (trace.attributes.get(SESSION) or {}).get("state") or {}
    return Case(
        id=trace.case or trace.id,
        turns=[ExpectedTurn(input=turn.input or Content()) for turn in trace.turns],
        state=state if isinstance(state, dict) else {},
        stand_ins=StandIns(mode="replay", recorded=list(_answers(trace))),
    )


def _answers(trace: Trace) -> Iterator[RecordedAnswer]:
    """Yield the answers of tools, without calls that made a dispatch: those agents are played."""
    for turn in trace.turns:
        for run in turn.runs:
            for step in run.steps:
                if not isinstance(step, ToolCall) or step.dispatch is not None:
                    continue
                if step.status in ("unanswered", "waiting") or not known(trace, step, "result"):
                    continue
                yield RecordedAnswer(
                    name=step.name,
                    agent=run.agent,
                    input=step.arguments,
                    result=None if step.result is None else step.result.value(),
                    error=step.error or ("the call failed" if step.status == "failed" else None),
                    refused=step.status == "refused",
                )


def _with_own_ids(cases: list[Case]) -> list[Case]:
    """Make ids of cases unique: two recordings may have equal dispatch ids."""
    seen: dict[str, int] = {}
    for case in cases:
        times = seen[case.id] = seen.get(case.id, 0) + 1
        if times > 1:
            case.id = f"{case.id}-{times}"
    return cases


def in_form(cases: Dataset, form: Played | None) -> list[Case]:
    """Return the cases of a dataset, dispatch cases in another form if requested.

    Raises:
        InputError: a case that is not a dispatch case has no form.
    """
    if form is None:
        return list(cases)
    changed = []
    for case in cases:
        if case.dispatch is None or form == "conversation":
            what = "is not about a dispatch" if case.dispatch is None else "is about one dispatch"
            raise InputError(f"the case `{case.id}` {what}: it has no form `{form}`")
        moment = msgspec.structs.replace(case.dispatch, form=form)
        if moment.lacks is not None:
            raise InputError(f"the case `{case.id}` cannot be played as `{form}`: {moment.lacks}")
        # Written stand-ins stay, and override the recording.
        was = answers_of(case.dispatch)
        own = case.stand_ins if case.stand_ins != was else None
        answers = merged(answers_of(moment), own)
        changed.append(
            msgspec.structs.replace(
                case, dispatch=moment, turns=turns_of(moment), stand_ins=answers
            )
        )
    return changed


def safe(case: Case, live_tools: Sequence[str] = ()) -> Case:
    """Return a case in which only the named tools run, whatever the case says.

    Tools are answered by the recording and by written stand-ins; other calls are refused. A tool in
    mock mode is also answered if its key is set.
    """
    over = case.stand_ins or StandIns()
    stand_ins = StandIns(  # built from scratch, so that nothing that lets tools run is copied
        mode=_not_live(over.mode) or "replay",
        on_unmatched=_not_live(over.on_unmatched),
        tools={name: _safe(each) for name, each in over.tools.items()},
        agents={
            name: msgspec.structs.replace(
                each, tools={tool: _safe(own) for tool, own in each.tools.items()}
            )
            for name, each in over.agents.items()
        },
        recorded=over.recorded,
        live=list(live_tools),
        about=over.about,
    )
    return msgspec.structs.replace(case, stand_ins=stand_ins)


def _safe(stand_in: StandIn) -> StandIn:
    return msgspec.structs.replace(
        stand_in,
        mode=_not_live(stand_in.mode),
        on_unmatched=_not_live(stand_in.on_unmatched),
        key=None,
    )


def _not_live(mode: Mode | None) -> Mode | None:
    return None if mode == "live" else mode


def states_something(case: Case) -> bool:
    """Tell whether a case states expectations; a message and how it is sent are none."""
    bare = ExpectedTurn(input=Content())
    always_stated = ("input", "new_session", "restart")
    names = [name for name in ExpectedTurn.__struct_fields__ if name not in always_stated]
    stated = any(getattr(turn, n) != getattr(bare, n) for turn in case.turns for n in names)
    return stated or case.final_state is not None or bool(case.rubrics or case.evaluators)


def answered_tools(cases: Sequence[Case]) -> set[str]:
    """Return the names of tools that the cases have an answer or a stand-in for."""
    names: set[str] = set()
    for case in cases:
        over = case.stand_ins or StandIns()
        names |= {each.name for each in over.recorded if each.kind == "tool"}
        names |= {*over.tools, *(tool for each in over.agents.values() for tool in each.tools)}
    return names - {"*"}

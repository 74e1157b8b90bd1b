"""What is played again: dispatches and conversations of recordings, with every tool replaced."""

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
"""What is played again of a recording: one dispatch in one of its forms, or all that was said."""


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
    """Make a case of each dispatch of some traces that can be played again in a form.

    Without names, that is every dispatch that somebody made. A ``return`` is not a choice of its
    own: it closes another dispatch. Where only the order of runs tells of a dispatch, nobody made
    it that could be asked again.

    Args:
        traces: the recordings.
        dispatches: the ids of those that are meant; ``TRACE/ID`` where several traces have one.
        form: how they are played.
        expected: what should come of each.
        stated: what should come of some, where ``expected`` says nothing.

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
            f"the recording has {what}: with the form `conversation` all that was said is played"
        )
    made = [
        dispatch_case(
            trace,
            each.id,
            form=form,
            expected=expected or (stated or {}).get(stated_key(trace, each.id)),
            # The id of a played trace says nothing, that of its case does.
            id=f"{trace.case or trace.id}-{each.id}",
        )
        for trace, each in chosen
    ]
    return _with_own_ids(made)


def conversation_cases(traces: Sequence[Trace]) -> list[Case]:
    """Make a case of each trace: its messages, with what tools answered then.

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
    """Yield what tools answered; a call that handed work on is an agent's, which plays itself."""
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
    """Tell cases with one id apart: two recordings may call their dispatches the same."""
    seen: dict[str, int] = {}
    for case in cases:
        times = seen[case.id] = seen.get(case.id, 0) + 1
        if times > 1:
            case.id = f"{case.id}-{times}"
    return cases


def in_form(cases: Dataset, form: Played | None) -> list[Case]:
    """Return the cases of a dataset, those of dispatches in another form where one is asked for.

    Raises:
        InputError: a case that is of no dispatch has no form.
    """
    if form is None:
        return list(cases)
    changed = []
    for case in cases:
        if case.dispatch is None or form == "conversation":
            what = "is of no dispatch" if case.dispatch is None else "is of one dispatch"
            raise InputError(f"the case `{case.id}` {what}: it has no form `{form}`")
        moment = msgspec.structs.replace(case.dispatch, form=form)
        if moment.lacks is not None:
            raise InputError(f"the case `{case.id}` cannot be played as `{form}`: {moment.lacks}")
        # Stand-ins that were written beside the recording stay, and go before it.
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
    """Return a case of which no tool runs but those that are named here, whatever the case says.

    Tools are answered by the recording and by what is written; what neither answers is refused.
    A tool in mock mode is answered also where its key is there.
    """
    over = case.stand_ins or StandIns()
    stand_ins = StandIns(  # anew, so that nothing that lets tools run is taken over
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
    """Tell whether a case says what should happen; a message and how it is sent do not."""
    bare = ExpectedTurn(input=Content())
    given = ("input", "new_session", "restart")
    names = [name for name in ExpectedTurn.__struct_fields__ if name not in given]
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

"""Inputs about dispatches: the caller's input, prompt, result and steps, and the receiver's."""

from __future__ import annotations

from baton.evaluators.judging.subject import Subject
from baton.model import AgentRun, Content, Dispatch, ToolCall, known
from baton.model.views import dispatch_view, group_of, round_trip

from .material import (
    INDENT,
    Given,
    Missing,
    Part,
    Piece,
    block,
    call_parts,
    dispatch_parts,
    given,
    piece,
    plain,
    raw,
    run_pieces,
    step_pieces,
    tools_text,
)

_STEPS = "record the steps of agents: what they say, and their calls with the results"


def before(subject: Subject) -> Given | Missing:
    """Return the caller's own input, and its steps up to the dispatch."""
    dispatch = _the(subject)
    sender = subject.sender
    if sender is None:
        return Given([])
    if not known(subject.trace, sender, "steps"):
        return Missing(f"the earlier input of `{sender.agent}` is not recorded: {_STEPS}")
    view = dispatch_view(subject.trace, dispatch)
    pieces = _input_of(subject, sender)
    return given(*pieces, *step_pieces(subject.trace, view.before))


def call(subject: Subject) -> Given | Missing:
    """Return the dispatch word for word."""
    dispatch = _the(subject)
    if not known(subject.trace, dispatch, "prompt"):
        return Missing("the prompt is not recorded: record the arguments of calls")
    made_by = _tool_call(subject)
    parts = dispatch_parts(dispatch, bare=made_by is not None and _says(made_by, dispatch))
    if made_by is not None:
        parts += call_parts(made_by, result=False)
    allowed = _allowed(subject, dispatch)
    return given(piece((dispatch.id,), *parts), piece((dispatch.id,), *allowed))


def received(subject: Subject) -> Given | Missing:
    """Return the receiver's actual input and instructions."""
    dispatch = _the(subject)
    if not dispatch.runs:
        return Missing(f"`{subject.agent}` was not started")
    if not any(known(subject.trace, run, "input") for run in subject.runs):
        return Missing(
            f"the input of `{subject.agent}` is not recorded: record the inputs of agents"
        )
    card = subject.trace.agents.get(dispatch.to_agent)
    own = [run for run in subject.runs if run.id in dispatch.runs]
    pieces = [piece((run.id,), *block("it was given:", plain(run.input))) for run in own]
    if card is not None and card.instructions:
        pieces.append(piece((dispatch.id,), *block("its instructions:", card.instructions)))
    return given(*pieces)


def transcript(subject: Subject) -> Given | Missing:
    """Return all steps of the receiver."""
    dispatch = _the(subject)
    if not known(subject.trace, dispatch, "runs"):
        return Missing(f"the work of `{subject.agent}` is not recorded: {_STEPS}")
    if not dispatch.runs:
        return Missing(f"`{subject.agent}` was not started")
    for run in subject.runs:
        if not known(subject.trace, run, "steps"):
            return Missing(f"the work of `{run.agent}` is not fully recorded: {_STEPS}")
    return given(*(piece for run in subject.runs for piece in run_pieces(subject.trace, run)))


def result(subject: Subject) -> Given | Missing:
    """Return the result of the dispatch, or how it failed."""
    dispatch = _the(subject)
    back = round_trip(subject.trace, dispatch).result
    if back:
        return given(raw((dispatch.id,), plain(back)))
    if dispatch.error:
        parts = block(f"it {dispatch.status}:", dispatch.error)
        return given(piece((dispatch.id,), *parts))
    if not known(subject.trace, dispatch, "result"):
        return Missing(f"the answer of `{subject.agent}` is not recorded: record results of calls")
    return Missing("nothing came back")


def after(subject: Subject) -> Given | Missing:
    """Return the caller's steps after it got the answer, and the answer to the user."""
    trip = round_trip(subject.trace, _the(subject))
    sender = subject.sender
    if sender is None:
        return Missing("a program made the dispatch, and its use of the result is not recorded")
    if not known(subject.trace, sender, "steps"):
        return Missing(f"the next steps of `{sender.agent}` are not recorded: {_STEPS}")
    pieces = step_pieces(subject.trace, trip.after)
    turn = subject.turn
    if turn is not None and turn.output and not any(plain(turn.output) in p.text for p in pieces):
        pieces.append(piece((turn.id,), *block("the answer to the user:", plain(turn.output))))
    return given(*pieces)


def siblings(subject: Subject) -> Given | Missing:
    """Return the other dispatches of the same group, or by the same agent in this turn."""
    dispatch = _the(subject)
    together = {d.id for d in group_of(subject.trace, dispatch)}
    others = [
        d
        for d in (subject.turn.dispatches if subject.turn is not None else [])
        if d.id != dispatch.id
        and d.kind != "return"
        and (d.id in together or d.from_run == dispatch.from_run)
    ]
    return given(*(piece((d.id,), *dispatch_parts(d)) for d in others))


def own_tools(subject: Subject) -> Given | Missing:
    """Return the tools the caller could have used to do the work itself."""
    sender = subject.sender
    if sender is None:
        return Given([])
    card = subject.trace.agents.get(sender.agent)
    tools = sender.tools_offered or (card.tools if card is not None else None)
    if tools is None:
        return Missing(
            f"the tools of `{sender.agent}` are not recorded: give the agents' definitions as "
            "`agents:`"
        )
    return given(piece((sender.id,), tools_text(tools)))


def _the(subject: Subject) -> Dispatch:
    if subject.dispatch is None:
        raise ValueError(f"a {subject.unit} is not a dispatch")
    return subject.dispatch


def _tool_call(subject: Subject) -> ToolCall | None:
    steps = subject.sender.steps if subject.sender is not None else []
    calls = (step for step in steps if isinstance(step, ToolCall))
    return next((call for call in calls if call.id == _the(subject).call), None)


def _allowed(subject: Subject, dispatch: Dispatch) -> tuple[Part, ...]:
    if dispatch.tools_allowed is None or not known(subject.trace, dispatch, "tools_allowed"):
        return ("tools that the receiver may use: not recorded",)
    tools = dispatch.tools_allowed
    offered = dispatch.tools_source == "offered"
    what = "was offered" if offered else "may use"
    return (f"tools that the receiver {what}:", f"{INDENT}{tools_text(tools)}")


def _input_of(subject: Subject, run: AgentRun) -> list[Piece]:
    request: Content | None = subject.turn.input if subject.turn is not None else None
    if run.input is None or (request is not None and plain(run.input) == plain(request)):
        return []
    return [piece((run.id,), *block(f"{run.agent} was given:", plain(run.input)))]


def _says(call: ToolCall, dispatch: Dispatch) -> bool:
    """Return whether a call's arguments contain the prompt verbatim."""
    values = call.arguments.values() if isinstance(call.arguments, dict) else ()
    return dispatch.prompt is None or plain(dispatch.prompt) in values

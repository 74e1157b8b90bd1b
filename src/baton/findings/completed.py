"""Whether the work that was handed over came to an end, with an answer that is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from baton.model import AgentRun, Content, Dispatch, Evidence, Trace, Turn, known
from baton.model.views import in_short

from .error_texts import error_in
from .finding import Answer, Clear, Finding, Untold
from .places import has_run, receiver_name, receivers_of, sender_of, steps_of

_QUOTE = 200
_NO_NAMES: Mapping[str, str] = {}
_STOPPED = ("the agent was stopped", "was stopped", "was cancelled", "was canceled", "was killed")


def completed(
    trace: Trace, turn: Turn, dispatch: Dispatch, renames: Mapping[str, str] = _NO_NAMES
) -> Answer:
    """Tell whether a dispatch was completed.

    Findings are ``failed``, ``killed``, ``refused``, ``unanswered``, ``empty_answer`` and
    ``error_answer``, and ``receiver_failed`` for control that passed to an agent which failed.
    """
    name = receiver_name(trace, dispatch, renames)
    status = dispatch.status
    if not known(trace, dispatch, "status") or status == "unknown":
        return Untold(
            says=f"how the hand-off to {name} ended is not recorded: record the agents' calls "
            "with their answers"
        )
    if status == "waiting":
        return Untold(says=f"{name} is still to answer: record the conversation to its end")
    runs = receivers_of(trace, dispatch)
    if status in ("failed", "refused"):
        return [_ended_badly(trace, dispatch, runs, name)]
    if status == "unanswered":
        return _unanswered(trace, turn, dispatch, name)
    if dispatch.kind == "delegate":
        return _answered(trace, dispatch, runs, name)
    return _arrived(trace, turn, dispatch, runs, name)


def _ended_badly(trace: Trace, dispatch: Dispatch, runs: Sequence[AgentRun], name: str) -> Finding:
    why = dispatch.error
    said = f": {in_short(why)}" if why else ""
    if dispatch.status == "refused":
        return _finding(trace, dispatch, "refused", f"{name} was not started{said}", why)
    if any(run.status == "cancelled" for run in runs) or _stopped(why):
        says = f"{name} was stopped before it answered{said}"
        return _finding(trace, dispatch, "killed", says, why, runs)
    who = name if runs or not known(trace, dispatch, "runs") else f"the hand-off to {name}"
    return _finding(trace, dispatch, "failed", f"{who} failed{said}", why, runs)


def _unanswered(trace: Trace, turn: Turn, dispatch: Dispatch, name: str) -> Answer:
    """A hand-off that led nowhere proves a fault only where what came later was recorded."""
    if turn.status == "incomplete":
        return Untold(says="the turn is incomplete: record it to its end")
    if dispatch.mode == "background" and turn is trace.turns[-1]:
        return Untold(says=f"{name} was at work when the recording ends: record what came later")
    if dispatch.kind == "delegate":
        return [_finding(trace, dispatch, "unanswered", f"{name} gave no answer")]
    if not known(trace, turn, "output") or not known(trace, turn, "runs"):
        return Untold(
            says=f"whether {name} took over is not recorded: record all agents of a turn in "
            "one trace, with their answers"
        )
    if has_run(trace, dispatch.to_agent):
        return Untold(
            says=f"{name} ran, and nothing tells whether this hand-off started it: record all "
            "agents of a turn in one trace"
        )
    return [_finding(trace, dispatch, "unanswered", f"{name} never took over")]


def _answered(trace: Trace, dispatch: Dispatch, runs: Sequence[AgentRun], name: str) -> Answer:
    result = dispatch.result
    if not known(trace, dispatch, "result"):
        return Untold(says=f"what {name} answered is not recorded: record results of tool calls")
    if _empty(result):
        if any(run.output and not _empty(run.output) for run in runs):
            return Untold(says=f"{name} spoke, and what of it reached its caller is not recorded")
        says = f"the answer of {name} is empty"
        return [_finding(trace, dispatch, "empty_answer", says, None, runs)]
    error = error_in(result, dispatch.prompt)
    if error is not None:
        says = f"{name} answered with an error: {in_short(error)}"
        return [_finding(trace, dispatch, "error_answer", says, error, runs)]
    return Clear(says=f"{name} answered")


def _arrived(
    trace: Trace, turn: Turn, dispatch: Dispatch, runs: Sequence[AgentRun], name: str
) -> Answer:
    for run in runs:
        if run.status in ("failed", "cancelled"):
            how = "failed" if run.status == "failed" else "was stopped"
            why = f": {in_short(run.error)}" if run.error else ""
            says = f"{name} got control and {how}{why}"
            return [_finding(trace, dispatch, "receiver_failed", says, run.error, [run])]
        error = error_in(run.output, run.input or turn.input)
        if error is not None:
            says = f"{name} got control and answered with an error: {in_short(error)}"
            return [_finding(trace, dispatch, "error_answer", says, error, [run])]
    if runs and all(run.status == "waiting" for run in runs):
        return Untold(says=f"{name} waits: record the conversation to its end")
    if runs and all(run.status == "unknown" for run in runs):
        return Untold(says=f"{name} got control; how it fared is not recorded")
    return Clear(says=f"{name} got control" + (" and completed" if runs else ""))


def _finding(
    trace: Trace,
    dispatch: Dispatch,
    kind: str,
    says: str,
    quote: str | None = None,
    runs: Sequence[AgentRun] = (),
) -> Finding:
    ids = steps_of(sender_of(trace, dispatch), dispatch) + [run.id for run in runs]
    return Finding(
        kind=kind, says=says, evidence=[Evidence(ids=ids, quote=quote[:_QUOTE] if quote else None)]
    )


def _empty(content: Content | None) -> bool:
    if content is None:
        return True
    return content.data in (None, "") and not content.parts and not (content.text or "").strip()


def _stopped(why: str | None) -> bool:
    return why is not None and any(word in why.casefold() for word in _STOPPED)

"""Outcomes that spans do not prove, because samplers and crashes lose spans."""

from __future__ import annotations

from baton.model import AgentRun, Said, ToolCall, Turn

from .dispatches import ActionsByRun
from .runs import RunSpans


def settle_unproven(
    turn: Turn, runs: list[RunSpans], actions: ActionsByRun, *, truncated: bool
) -> None:
    """Set the status of dispatches to unknown if no span shows that they had no effect.

    If an agent passes control on, and no other agent then has a span, these spans can be missing:
    a sampler dropped them, or they are exported later. The same is true for a call of an agent that
    has no answer. Only what follows shows that nothing came of it: the sender's model was asked
    again, or of several transfers in one answer another one was carried out.

    If values were ``truncated``, not even that shows it: the instructions in the next request would
    have shown that the other agent sent it. And a result that seems to be missing was truncated.
    """
    if turn.status != "completed":
        return
    for dispatch in turn.dispatches if truncated else ():
        if dispatch.status == "completed" and dispatch.kind == "delegate":
            if dispatch.result is None and "result" not in dispatch.unknown:
                dispatch.unknown.append("result")
        elif dispatch.status == "unanswered":
            dispatch.status = "unknown"
    for each in turn.runs:
        _settle_last_calls(each)
    open_ = {d.id: d for d in turn.dispatches if d.status == "unanswered"}
    if not open_:
        return
    carried_out = {d.id for d in turn.dispatches if d.status == "completed"}
    by_id = {run.run.id: run for run in runs}
    made: dict[str, tuple[RunSpans | None, int | None]] = {}
    beside: set[tuple[int, int]] = set()
    for run in runs:
        for action in actions[id(run)]:
            id_ = action.step.dispatch if action.step is not None else None
            if id_ in open_:
                made[id_] = run, action.batch
            elif id_ in carried_out and action.mode == "transfer" and action.batch is not None:
                beside.add((id(run), action.batch))
    for id_, dispatch in open_.items():
        sender, batch = made.get(id_, (by_id.get(dispatch.from_run or ""), None))
        if sender is None or dispatch.mode == "background" or (id(sender), batch) in beside:
            continue
        if not sender.went_on_after(dispatch.started, transfer=dispatch.kind == "transfer"):
            dispatch.status = "unknown"


def _settle_last_calls(run: AgentRun) -> None:
    """Set the status of a run's last calls to unknown if it answered after them.

    The answer is on the span of the agent, and the request that got the results of the calls and
    gave the answer is missing.
    """
    if run.status != "completed" or run.output is None:
        return
    for step in reversed(run.steps):
        if type(step) is Said:
            return
        if type(step) is ToolCall and step.status == "unanswered" and step.dispatch is None:
            step.status = "unknown"
            if step.result is None:
                step.unknown.append("result")

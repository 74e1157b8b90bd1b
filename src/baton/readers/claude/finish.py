"""The end of reading: outcomes of turns and runs, and the names of what is not known."""

from __future__ import annotations

from baton.model import (
    SCHEMA_VERSION,
    AgentRun,
    Dispatch,
    Dropped,
    Said,
    Source,
    ToolCall,
    Trace,
    Turn,
)

from .agents import Cards
from .calls import STOPPED
from .draft import MAIN, Draft, Lane, not_before
from .entries import Talk

_TIMES = ("turn.started", "turn.ended", "run.started", "run.ended", "dispatch.started",
          "dispatch.ended", "tool_call.at", "tool_call.ended")  # fmt: skip
CUT_OFF = "the recording was truncated before the turn ended"
NO_RESULT = "the stream ends before the result of the turn"


def finish(
    talk: Talk, cards: Cards, id_: str, source: Source, *, torn: bool, dropped: list[Dropped]
) -> Trace:
    """Settle what is open and make the trace."""
    draft = talk.draft
    _unseen_runs(draft)
    draft.in_order()
    for lane in draft.lanes():
        for dispatch in lane.dispatches:
            _settle_dispatch(talk, lane, dispatch, cards)
    for turn in draft.turns:
        _settle_turn(talk, turn, torn=torn and turn is draft.turns[-1])
    usages = [run.usage for turn in draft.turns for run in turn.runs]
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=id_,
        source=source,
        turns=draft.turns,
        agents=cards.all(),
        usage=draft.spent.of_trace(usages),
        unknown=_never_told(draft, data=talk.results > 0),
        dropped=[*dropped, *talk.dropped()],
    )


def _unseen_runs(draft: Draft) -> None:
    """Add the runs of agents of which only the call and its answer were recorded."""
    for lane in draft.lanes():
        while lane.due:
            dispatch = lane.due[0]
            if dispatch.status == "refused" or (
                dispatch.status == "unanswered" and dispatch.mode != "background"
            ):
                lane.due.pop(0)
                continue
            run = draft.start(lane, dispatch.started)
            draft.place[run.id] = draft.place[dispatch.id]
            run.unknown.append("steps")
            run.output = dispatch.result


def _settle_dispatch(talk: Talk, lane: Lane, dispatch: Dispatch, cards: Cards) -> None:
    runs = talk.draft.runs_of(dispatch)
    for run in runs:
        _settle_run(talk, dispatch, run)
    agents = [run.agent for run in runs] or [dispatch.to_agent]
    dispatch.tools_allowed, dispatch.tools_source = cards.tools(agents[0])
    offered = talk.offered.get(lane.agent) if lane.agent else None
    if dispatch.tools_source is None and offered:
        dispatch.tools_allowed, dispatch.tools_source = offered, "offered"
    if dispatch.tools_source is None:
        dispatch.unknown += ["tools_allowed", "tools_source"]
    for run in runs:
        run.tools_offered = offered or None
    if dispatch.status == "unanswered" and not runs and dispatch.mode == "foreground":
        dispatch.mode = "unknown"


def _settle_run(talk: Talk, dispatch: Dispatch, run: AgentRun) -> None:
    """Say how the run of a sub-agent ended, and with it its dispatch where that says else."""
    dead = talk.failed.get(run.id)
    if dead is None and dispatch.status == "completed" and _died_unseen(talk, dispatch, run):
        dead = dispatch.result.text if dispatch.result else None
    if dead is not None:
        run.status, run.error, run.output = "failed", dead, None
        if dispatch.status == "completed":
            dispatch.status, dispatch.error, dispatch.result = "failed", dead, None
            _fail_call(talk.draft, dispatch)
            if run.id not in talk.failed and "steps" not in run.unknown:
                talk.draft.spent.failed(run.id)
    elif run.id in talk.interrupted or dispatch.error == STOPPED:
        run.status, run.error = "cancelled", dispatch.error
    elif dispatch.status == "failed":
        run.status, run.error = "failed", dispatch.error
    elif dispatch.status == "completed":
        _answered(talk, dispatch, run)
    elif run.output is None:
        run.status = "unknown"
    if run.ended is None and "steps" in run.unknown:
        run.ended = dispatch.ended


def _answered(talk: Talk, dispatch: Dispatch, run: AgentRun) -> None:
    """Compare the answer with what was heard: a stream may leave a sub-agent's texts out."""
    said = any(isinstance(step, Said) and not step.thought for step in run.steps)
    unheard = not said and "steps" not in run.unknown and bool(dispatch.result)
    if unheard:
        run.unknown.append("steps.said")
    usage = talk.calls.last_usage.get(dispatch.id)
    if usage and "steps" not in run.unknown:
        talk.draft.spent.ended_with(run.id, usage, unseen=unheard)
    elif unheard:
        talk.partial.add(run.id)
    run.output = run.output or dispatch.result


def _died_unseen(talk: Talk, dispatch: Dispatch, run: AgentRun) -> bool:
    """Tell a dead agent that is said to have completed, as older versions say it.

    Its last words were not recorded, and the answer is the error of a request.
    """
    heard = any(isinstance(step, Said) and not step.thought for step in run.steps)
    text = (dispatch.result.text if dispatch.result else None) or ""
    nothing_spent = dispatch.id in talk.calls.unspent or "steps" in run.unknown
    return not heard and nothing_spent and text.startswith("API Error")


def _fail_call(draft: Draft, dispatch: Dispatch) -> None:
    for opened in draft.calls.values():
        if opened.dispatch is dispatch:
            opened.call.status = "failed"


def _settle_turn(talk: Talk, turn: Turn, *, torn: bool) -> None:
    main = turn.runs[0]
    error = talk.failed.get(main.id)
    open_end = turn is talk.draft.turns[-1] and not talk.ended_turn
    for run in turn.runs:
        whole = run.id not in talk.unstated and not open_end
        stated = talk.stated.get(run.id) if whole else None
        run.usage = talk.draft.spent.of_run(run, stated)
        if run.usage is not None and run.id in talk.partial:
            run.usage.complete = False
    if error is not None:
        turn.status, turn.error = "failed", error
        main.status, main.error = "failed", error
    elif main.agent == MAIN:
        _settle_end(talk, turn, main, torn)
    turn.output = None if turn.status == "failed" else main.output
    turn.ended = not_before(turn.started, main.ended)
    if main.tools_offered is None:
        main.tools_offered = _offered(talk, turn)


def _settle_end(talk: Talk, turn: Turn, main: AgentRun, torn: bool) -> None:
    """Say whether a turn came to its end, and what proves it where it did not."""
    open_call = next(
        (s for s in main.steps if isinstance(s, ToolCall) and s.status == "unanswered"), None
    )
    last = turn is talk.draft.turns[-1]
    if main.id in talk.interrupted:
        turn.status, turn.error = "incomplete", "the user interrupted the turn"
        main.status = "cancelled"
    elif torn:
        turn.status, turn.error = "incomplete", CUT_OFF
    elif open_call is not None:
        turn.status = "incomplete"
        turn.error = f"the recording ends before `{open_call.name}` is answered"
    elif talk.stream and last and not talk.ended_turn:
        turn.status, turn.error = "incomplete", NO_RESULT
    elif main.output is None and main.id not in talk.succeeded:
        turn.status = "incomplete"
        turn.error = "the recording ends before the turn is answered"
    if turn.status == "incomplete" and main.status == "completed":
        main.status = "unknown"


def _offered(talk: Talk, turn: Turn) -> list[str] | None:
    """Return the tools of the main thread, the dispatch tool by the name it is called by."""
    names = talk.offered.get(None)
    calls = (step for step in turn.runs[0].steps if isinstance(step, ToolCall))
    if names and "Agent" not in names and any(call.name == "Agent" for call in calls):
        return ["Agent" if name == "Task" else name for name in names]
    return names


def _never_told(draft: Draft, *, data: bool) -> list[str]:
    """Name what is missing in the objects themselves, and return what no object tells.

    ``data``: structured output would have been told, as results of a stream do.
    """
    for turn in draft.turns:
        for run in turn.runs:
            for name in ("model", "usage", "input"):
                if getattr(run, name) is None and name not in run.unknown:
                    run.unknown.append(name)
            run.unknown = [name for name in run.unknown if not _has(run, name)]
    names = ["run.tools_offered", *([] if data else ["turn.output.data"])]
    times = [run.started for turn in draft.turns for run in turn.runs]
    if all(time is None for time in times):
        names += _TIMES
    else:
        _name_times(draft)
    return names


def _has(run: AgentRun, name: str) -> bool:
    return name in ("input", "model", "usage") and getattr(run, name) is not None


def _name_times(draft: Draft) -> None:
    for turn in draft.turns:
        if turn.ended is None and turn.status != "incomplete":
            turn.unknown.append("ended")
        for run in turn.runs:
            run.ended = not_before(run.started, run.ended)
            if run.started is None:
                run.unknown.append("started")
            if run.ended is None and run.status != "unknown":
                run.unknown.append("ended")

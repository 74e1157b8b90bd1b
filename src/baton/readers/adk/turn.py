"""The events of one ADK invocation as a turn: the run of each, what it said and called."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from baton.formats.adk_events import Event
from baton.formats.evalset import Part
from baton.model import AgentRun, Content, Dispatch, Said, ToolCall, Turn

from .calls import CallReader, Draft, Session
from .wire import add_usage, said_content

MAIN = ""


class Origin(NamedTuple):
    """Where an event comes from: its agent, its parallel lane, the workflows around it."""

    agent: str
    lane: str
    inside: tuple[str, ...]
    path: str | None


class Lanes:
    """The runs that are open in each lane of one turn."""

    def __init__(self, authors: frozenset[str], new_group: Callable[[], int]) -> None:
        """Take all names that author an event in the turn; other names are containers."""
        self._new_group = new_group
        self._authors = authors
        self._current: dict[str, AgentRun] = {}
        self._by_path: dict[str, AgentRun] = {}
        self._before_fan_out: AgentRun | None = None
        self._group: int | None = None

    def origin(self, event: Event, expected: str | None) -> Origin:
        """Place an event; ``expected`` is the agent that control was last handed to."""
        path = (event.node_info.path if event.node_info else None) or None
        names = [step.partition("@")[0] for step in path.split("/")] if path else []
        agent = event.author or ""
        if names and names[-1] != agent and event.error_code and event.content is None:
            if names[-1] == expected or names[-1] in self._authors:
                agent = names[-1]
        branch = (event.branch or "").split(".") if event.branch else []
        lane = event.branch or MAIN
        if branch and branch[-1] != agent and branch[-1] in self._authors:
            branch, lane = [], MAIN
        exact = bool(names) and names[-1] == agent
        around = branch if exact else [*names, *branch]
        inside = [name for name in around if name not in self._authors and name != agent]
        return Origin(agent, lane, tuple(dict.fromkeys(inside)), path if exact else None)

    def find(self, origin: Origin, handed_to: bool) -> AgentRun | None:
        """Return the open run an event continues; a hand-over to its agent asks for a new one."""
        if handed_to:
            return None
        current = self._current.get(origin.lane)
        if origin.path is not None:
            known = self._by_path.get(origin.path)
            return known if "@" in origin.path or known is current else None
        return current if current is not None and current.agent == origin.agent else None

    def enter(self, origin: Origin, run: AgentRun) -> tuple[list[AgentRun], int | None]:
        """Open a run; return the runs that came before it, and its group in a fan-out."""
        before, group = self._before(origin.lane)
        if origin.lane == MAIN:
            self._current = {}
        self._current[origin.lane] = run
        if origin.path is not None:
            self._by_path[origin.path] = run
        return before, group

    def _before(self, lane: str) -> tuple[list[AgentRun], int | None]:
        if lane in self._current:
            return [self._current[lane]], None
        if lane == MAIN:
            return [run for name, run in self._current.items() if name != MAIN], None
        if not any(name != MAIN for name in self._current):
            self._before_fan_out = self._current.pop(MAIN, None)
            self._group = self._new_group()
        return ([self._before_fan_out] if self._before_fan_out else []), self._group


_CUT_OFF = "the stream was truncated before the turn ended"


def read_turn(session: Session, id_: str, events: list[Event], torn: bool = False) -> Turn:
    """Read one invocation; ``torn`` when its stream was truncated."""
    reader = _TurnReader(session, id_, events)
    for event in events:
        reader.read(event)
    return reader.finish(torn)


def is_plumbing(event: Event) -> bool:
    """Tell an event that only keeps books: state changes, agent ends, nothing said or done."""
    return not (
        (event.content and event.content.parts)
        or event.partial
        or event.error_code
        or event.error_message
        or event.usage_metadata
        or event.output is not None
        or (event.output_transcription and event.output_transcription.text)
        or (event.actions and event.actions.transfer_to_agent)
    )


class _TurnReader:
    def __init__(self, session: Session, id_: str, events: list[Event]) -> None:
        self._session = session
        self._draft = Draft(session, id_)
        self._turn = self._draft.turn
        self._calls = CallReader(self._draft)
        self._authors = frozenset(e.author for e in events if e.author and not is_plumbing(e))
        self._lanes = Lanes(self._authors, self._draft.new_group)
        self._error: str | None = None
        self._cut = False

    def read(self, event: Event) -> None:
        turn = self._turn
        if event.timestamp is not None:
            turn.started = min(turn.started or event.timestamp, event.timestamp)
            turn.ended = max(turn.ended or event.timestamp, event.timestamp)
        if event.author is None:
            self._read_frame(event)
        elif event.author == "user":
            self._read_user(event)
        elif not is_plumbing(event):
            self._read_agent(event)

    def finish(self, torn: bool) -> Turn:
        """Settle what is still open."""
        turn = self._turn
        turn.error = self._error
        waiting = [run for run in turn.runs if any(_waits(step) for step in run.steps)]
        if self._error is not None:
            turn.status = "failed"
        elif torn or self._cut:
            turn.status, turn.error = "incomplete", _CUT_OFF
        elif not (waiting or turn.output):
            turn.status, turn.error = "incomplete", self._left_open()
        elif waiting:
            turn.status = "waiting"
        for run in waiting:
            run.status = "waiting"
        if turn.status == "incomplete" and turn.runs and turn.runs[-1].status == "completed":
            turn.runs[-1].status = "unknown"
        for dispatch in self._draft.transfers:
            self._settle_transfer(dispatch)
        return turn

    def _left_open(self) -> str | None:
        """Say what proves that more was to come; without it, there just was no answer."""
        steps = [step for run in self._turn.runs for step in run.steps]
        for step in steps:
            if isinstance(step, ToolCall) and step.status == "unanswered":
                return f"the recording ends before `{step.name}` is answered"
        pending = self._draft.pending
        if pending is None:
            return None
        return f"the recording ends before `{pending.to_agent}` gets to work"

    def _settle_transfer(self, dispatch: Dispatch) -> None:
        """Say what became of a hand-over: arrived, refused by the runtime, or lost."""
        if dispatch.runs:
            dispatch.status = "completed"
        elif self._error is not None:
            dispatch.error = self._error
            dispatch.status = "refused" if dispatch.to_agent in self._error else "failed"

    def _read_frame(self, event: Event) -> None:
        """Take the error frame that a server sends instead of an event."""
        frame = event.error if event.error is not None else event.detail
        message = event.error_message or (None if frame is None else str(frame))
        if message is None or self._error is not None:
            return
        self._error = message
        if self._turn.runs and self._draft.pending is None:
            _fail(self._turn.runs[-1], message)

    def _read_user(self, event: Event) -> None:
        parts = (event.content.parts if event.content else None) or []
        for part in parts:
            if part.function_response is not None:
                self._calls.answer_from_user(part.function_response, event)
        heard = said_content([part for part in parts if part.function_response is None])
        if not heard and event.input_transcription:
            heard = Content(text=event.input_transcription.text)
        if heard:
            self._turn.input = (
                heard if self._turn.input is None else _joined(self._turn.input, heard)
            )

    def _read_agent(self, event: Event) -> None:
        pending = self._draft.pending
        origin = self._lanes.origin(event, pending.to_agent if pending else None)
        run = self._run(origin, event)
        self._cut = self._cut or bool(event.partial)
        # A paused call is answered with an earlier time than it was made at.
        run.ended = max(filter(None, (run.ended, event.timestamp)), default=None)
        run.model = event.model_version or run.model
        if event.usage_metadata or event.model_version:
            run.usage = add_usage(run.usage, event.usage_metadata)
        parts = (event.content.parts if event.content else None) or []
        calls = [part.function_call for part in parts if part.function_call]
        answers = [part.function_response for part in parts if part.function_response]
        self._say(run, event, parts, final=not calls and not answers)
        self._calls.calls(run, calls, event)
        self._calls.answers(run, answers, event)
        if event.actions and event.actions.transfer_to_agent and not answers:
            self._order_transfer(run, event.actions.transfer_to_agent, event)
        if event.error_code or event.error_message:
            self._error = event.error_message or event.error_code or ""
            _fail(run, self._error)

    def _run(self, origin: Origin, event: Event) -> AgentRun:
        due = next((d for d in self._draft.transfers if _awaits(d, origin.agent)), None)
        run = self._lanes.find(origin, due is not None)
        if run is not None:
            return run
        run = AgentRun(
            id=self._session.new_id("run"),
            agent=origin.agent,
            inside=list(origin.inside),
            started=event.timestamp,
        )
        before, group = self._lanes.enter(origin, run)
        if not self._turn.runs:
            run.input = self._turn.input
        self._turn.runs.append(run)
        due = due or self._into_workflow(run)
        if due is not None:
            due.runs.append(run.id)
            run.started_by.append(due.id)
        else:
            for sender in before:
                self._sequence(sender, run, group)
        return run

    def _into_workflow(self, run: AgentRun) -> Dispatch | None:
        """Match a hand-over to a workflow agent, which never speaks, with its first speaker."""
        dispatch = self._draft.pending
        if dispatch is None or dispatch.to_agent in self._authors:
            return None
        dispatch.to_kind = "workflow"
        if dispatch.to_agent not in run.inside:
            run.inside.insert(0, dispatch.to_agent)
        return dispatch

    def _sequence(self, sender: AgentRun, run: AgentRun, group: int | None) -> None:
        """Note that a workflow went on from one agent to the next, as only order tells."""
        dispatch = self._draft.dispatch("sequence", sender, run.agent, run.started)
        dispatch.basis = "order"
        dispatch.group = group
        dispatch.runs = [run.id]
        run.started_by.append(dispatch.id)

    def _order_transfer(self, run: AgentRun, target: str, event: Event) -> None:
        """Take a hand-over that no tool call asked for (a callback may order one)."""
        dispatch = self._draft.dispatch("transfer", run, target, event.timestamp)
        dispatch.description = event.actions.transfer_reason if event.actions else None

    def _say(self, run: AgentRun, event: Event, parts: list[Part], final: bool) -> None:
        spoken = [p for p in parts if not p.function_call and not p.function_response]
        said = said_content([part for part in spoken if not part.thought])
        if not said and event.output is not None:
            said = Content(data=event.output)
        if not said and event.output_transcription and event.output_transcription.text:
            said = Content(text=event.output_transcription.text)
        sources = [s for s in (event.grounding_metadata, event.citation_metadata) if s] or None
        thoughts = said_content([part for part in spoken if part.thought])
        for content, is_thought in ((thoughts, True), (said, False)):
            if content:
                step = Said(id=self._session.new_id("said"), content=content, at=event.timestamp)
                step.thought, step.sources = is_thought, None if is_thought else sources
                run.steps.append(step)
        if said and final:
            run.output = self._turn.output = said
            self._error = None


def _awaits(dispatch: Dispatch, agent: str) -> bool:
    return not dispatch.runs and dispatch.to_agent == agent


def _waits(step: object) -> bool:
    return isinstance(step, ToolCall) and step.status == "waiting"


def _fail(run: AgentRun, message: str) -> None:
    run.status, run.error = "failed", message


def _joined(first: Content, more: Content) -> Content:
    texts = [content.text for content in (first, more) if content.text]
    return Content(
        text="\n".join(texts) if texts else None,
        data=more.data if more.data is not None else first.data,
        parts=[*(first.parts or []), *(more.parts or [])] or None,
    )

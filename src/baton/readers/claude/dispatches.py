"""The threads of a session and their tool calls: the start and the answer of a sub-agent."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

import msgspec

from baton.model import AgentRun, Content, Dispatch, ToolCall, Turn
from baton.model.trace import DispatchStatus
from baton.readers.builder import MAIN, TraceBuilder, not_before

from .started_agents import DISPATCH_TOOLS, SEND_TOOL, Links, result_record
from .usage import UsageByRun
from .wire import (
    Entry,
    Notice,
    answer_content,
    block_content,
    dict_at,
    is_list,
    text_at,
    tool_content,
    tool_error,
)


class OpenCall(msgspec.Struct):
    """A tool call, which may still be answered; ``id`` is its id in the source."""

    id: str
    call: ToolCall
    run: AgentRun
    thread: Thread
    dispatch: Dispatch | None = None
    answered: bool = False


class Thread(msgspec.Struct):
    """The main thread, or one sub-agent: what started it, and its latest run.

    ``due`` are dispatches whose run has not begun, ``early`` entries that came before any.
    ``answer_of`` and ``called_by`` are the last messages with a text and with a call. ``unnamed``
    is the id of the message that is being read, if the recording gives it none.
    """

    agent: str | None = None
    dispatches: list[Dispatch] = msgspec.field(default_factory=list)
    due: list[Dispatch] = msgspec.field(default_factory=list)
    run: AgentRun | None = None
    early: list[Entry] = msgspec.field(default_factory=list)
    prompt: str | None = None
    answer_of: str | None = None
    called_by: str | None = None
    unnamed: str | None = None
    issued: dict[str, list[Dispatch]] = msgspec.field(default_factory=dict)


class Threads:
    """The main thread and the sub-agents of a session, and the turns that are built from them.

    ``place`` is the order in which runs and dispatches appeared.
    """

    def __init__(self, links: Links) -> None:
        self.links = links
        self.builder = TraceBuilder()
        self.main = Thread()
        self.calls: dict[str, OpenCall] = {}
        self.usage = UsageByRun()
        self.place: dict[str, int] = {}
        self._agents: dict[str, Thread] = {}
        self._turn_of: dict[str, Turn] = {}
        self._runs: dict[str, AgentRun] = {}
        self._places = itertools.count()

    @property
    def turns(self) -> list[Turn]:
        """The turns so far."""
        return self.builder.turns

    def of(self, entry: Entry) -> Thread:
        """Return the thread that an entry belongs to."""
        if entry.main:
            return self.main
        agent = entry.agent or self.links.agents.get(entry.parent or "")
        return self.of_agent(agent, entry.parent)

    def of_agent(self, agent: str | None, call: str | None) -> Thread:
        """Return the thread of an agent, or of the agent that a call started."""
        key = f"agent {agent}" if agent else f"call {call}"
        return self._agents.setdefault(key, Thread(agent=agent))

    def of_agents(self) -> list[Thread]:
        """Return the threads of all sub-agents."""
        return list(self._agents.values())

    def open_turn(self, heard: Content | None, at: float | None) -> Turn:
        """Start a turn; without the user's message if it was not recorded."""
        turn = self.builder.turn(input=heard, started=at)
        run = self.builder.run(turn, MAIN, input=heard, started=at)
        if heard is None:
            turn.unknown += ["input", "started"]
            turn.started = None
            run.unknown.append("input")
        self._put(run, turn)
        self.main.run, self.main.answer_of = run, None
        return turn

    def main_run(self, at: float | None = None) -> AgentRun:
        """Return the run of the main thread in the latest turn."""
        return self.main.run or self.open_turn(None, at).runs[0]

    def turn_of(self, id_: str) -> Turn:
        """Return the turn that a run or dispatch belongs to."""
        return self._turn_of[id_]

    def runs_of(self, dispatch: Dispatch) -> list[AgentRun]:
        """Return the runs that a dispatch started."""
        return [self._runs[id_] for id_ in dispatch.runs]

    def dispatch(
        self, thread: Thread, opened: OpenCall | None, to_agent: str, at: float | None
    ) -> Dispatch:
        """Add a delegate dispatch to the thread that it started; a call may make it."""
        sender = opened.run if opened else None
        turn = self.turn_of(sender.id) if sender else self.turns[-1]
        call = opened.call if opened is not None else None
        dispatch = self.builder.dispatch(turn, "delegate", sender, to_agent, at, call)
        dispatch.continues = thread.dispatches[0].id if thread.dispatches else None
        self._turn_of[dispatch.id] = turn
        self.place[dispatch.id] = next(self._places)
        thread.dispatches.append(dispatch)
        thread.due.append(dispatch)
        if opened is not None:
            opened.dispatch = dispatch
            opened.run.steps.append(self.builder.handed_off(dispatch))
        return dispatch

    def start(self, thread: Thread, at: float | None) -> AgentRun:
        """Start the run of the oldest due dispatch of a thread; it stays in that turn."""
        dispatch = thread.due.pop(0)
        turn = self.turn_of(dispatch.id)
        agent = self.links.kinds.get(thread.agent or "", dispatch.to_agent)
        run = self.builder.run(turn, agent, thread.agent, started=at)
        if thread.prompt is not None:
            run.input, thread.prompt = Content(text=thread.prompt), None
        if dispatch.continues is None:
            # A new sub-agent has only its prompt; a resumed one remembers what it did.
            run.context = []
        self.builder.start(dispatch, run)
        self._put(run, turn)
        thread.run, thread.answer_of = run, None
        return run

    def issued(self, thread: Thread, message: str, dispatch: Dispatch) -> None:
        """Record which message issued a dispatch: the dispatches of one message are a group."""
        issued = thread.issued.setdefault(message, [])
        issued.append(dispatch)
        if len(issued) == 2:
            issued[0].group = self.builder.next_group(self.turn_of(dispatch.id))
        dispatch.group = issued[0].group

    def answer(
        self,
        thread: Thread,
        dispatch: Dispatch,
        status: DispatchStatus,
        at: float | None,
        *,
        result: Content | None = None,
        error: str | None = None,
    ) -> None:
        """Record that the answer to a dispatch reached the thread that made it."""
        self.builder.answer(dispatch, status, at, result=result, error=error)
        if thread.run is not None:
            thread.run.steps.append(self.builder.got_back(dispatch, at))
            seen(thread.run, at)

    def in_order(self) -> None:
        """Put the runs of each turn in start order."""
        for turn in self.turns:
            turn.runs.sort(key=lambda run: self.place[run.id])

    def _put(self, run: AgentRun, turn: Turn) -> None:
        self._turn_of[run.id] = turn
        self._runs[run.id] = run
        self.place[run.id] = next(self._places)


def seen(run: AgentRun, at: float | None) -> None:
    """Extend a run to a time at which it was seen."""
    if at is not None:
        run.started = at if run.started is None else min(run.started, at)
        run.ended = at if run.ended is None else max(run.ended, at)


By = Literal["runtime", "policy", "user"]
# How Claude Code starts the results of calls that never ran. Newer versions also record who decided
# (`_decided`), and these texts are for older ones, in which the text is the only sign.
_NO_SUCH_TOOL = ("No such tool available", "InputValidationError", "Tool names must be unique")
_BY_USER = ("The user doesn't want to proceed", "The user doesn't want to take this action")
_BY_POLICY = ("Permission to use ", "Claude requested permissions to ", "PreToolUse:")
_NO_SUCH_AGENT = "Agent type '"


class Trouble(NamedTuple):
    """The text of an error; if the tool did not run, ``by`` says who prevented it.

    ``denied``: permission was denied, although nothing tells by whom.
    """

    text: str
    by: By | None
    denied: bool = False

    @property
    def refused(self) -> bool:
        """Whether the tool did not run."""
        return self.denied or self.by is not None


def trouble(entry: Entry, block: dict[str, Any]) -> Trouble | None:
    """Return the error of a call, from its result; ``None`` if it succeeded."""
    by = _decided(entry, text_at(block, "tool_use_id"))
    if block.get("is_error") is not True and by is None:
        return None
    text = tool_error(block.get("content"))
    if by is None:
        by = _worded(block_content(block.get("content")).plain(), text)
    return Trouble(text, by)


def unstarted(text: str) -> bool:
    """Return whether a dispatch started no agent, by its error: an unknown type, or a limit."""
    lowered = text.lower()
    return text.startswith(_NO_SUCH_AGENT) or (
        # With a limit for agents or their spawning, none starts. "API Error: rate limit" stops a
        # running agent.
        "limit" in lowered and ("agent" in lowered or "spawn" in lowered) and "api" not in lowered
    )


def _decided(entry: Entry, call: str) -> By | None:
    """Return who decided, from the record of the decision, else from the kind of the denial."""
    meta = entry.data.get("tool_result_meta")
    own: Any = next((m for m in meta if text_at(m, "id") == call), {}) if is_list(meta) else {}
    decision = dict_at(own, "permission_decision") or dict_at(entry.data, "permissionDecision")
    if text_at(decision, "decision") == "reject":
        return "user" if text_at(decision, "source").startswith("user") else "policy"
    denial = text_at(own, "non_execution_kind") or text_at(entry.data, "toolDenialKind")
    if denial:
        return "user" if denial.startswith("user") else "policy"
    return None


def _worded(raw: str, text: str) -> By | None:
    if raw.lstrip().startswith("<tool_use_error>") and text.startswith(_NO_SUCH_TOOL):
        return "runtime"
    if text.startswith(_NO_SUCH_AGENT):
        return "runtime"
    if text.startswith(_BY_USER):
        return "user"
    return "policy" if text.startswith(_BY_POLICY) else None


DEFAULT_AGENT = "general-purpose"
STOPPED = "the agent was stopped"
TERMINAL = frozenset({"completed", "failed", "killed", "stopped"})
_FAILED = re.compile(r'\AAgent "[^"\n]{0,200}" failed: ')
_RESULT = "--- RESULT ---\n"
_BESIDE = ("model", "effort", "isolation", "name", "team_name")


class Calls:
    """Reads calls and answers into a threads.

    ``denied`` are the calls without permission, as the result of a stream lists them.
    """

    def __init__(self, threads: Threads) -> None:
        self.denied: set[str] = set()
        self._threads = threads
        self._early: dict[str, tuple[Notice, float | None]] = {}
        self.unplaced: list[str] = []
        self.last_usage: dict[str, dict[str, Any]] = {}
        self.unspent: set[str] = set()

    def call(
        self, thread: Thread, run: AgentRun, block: dict[str, Any], message: str, entry: Entry
    ) -> None:
        """Process a call in a message; a call that hands work to an agent makes a dispatch."""
        wire_id, name = text_at(block, "id"), text_at(block, "name")
        if wire_id in self._threads.calls:
            return
        call = ToolCall(
            id=self._threads.builder.new_id("call", wire_id or None),
            name=name,
            arguments=block.get("input"),
            status="unanswered",
            at=entry.at,
        )
        run.steps.append(call)
        opened = OpenCall(wire_id or call.id, call, run, thread)
        self._threads.calls[opened.id] = opened
        if name in DISPATCH_TOOLS:
            self._delegate(opened, dict_at(block, "input"), message, entry)
        elif name == SEND_TOOL and wire_id in self._threads.links.agents:
            self._send(opened, dict_at(block, "input"), message, entry)

    def answer(self, block: dict[str, Any], entry: Entry) -> None:
        """Process the answer to a call."""
        opened = self._threads.calls.get(text_at(block, "tool_use_id"))
        if opened is None:
            content = tool_content(block.get("content"))
            self.unplaced.append(content.plain() if content else "")
            return
        if opened.answered:
            return
        opened.answered = True
        call = opened.call
        call.ended = not_before(call.at, entry.at)
        seen(opened.run, entry.at)
        wrong = trouble(entry, block)
        if wrong is not None and wrong.by is None and opened.id in self.denied:
            wrong = wrong._replace(denied=True)
            call.unknown.append("refused_by")
        if opened.dispatch is not None:
            self._dispatch_answered(opened, opened.dispatch, block, entry, wrong)
        elif wrong is not None:
            call.status = "refused" if wrong.refused else "failed"
            call.refused_by = wrong.by
            call.error = wrong.text
        else:
            call.status, call.result = "ok", tool_content(block.get("content"))
            self._fetched(dict_at(result_record(entry), "task"), entry.at)

    def notice(self, notice: Notice, at: float | None) -> None:
        """Read a notice that an agent ended; only for a background agent it is the answer."""
        opened = self._threads.calls.get(notice.call)
        if opened is None or opened.dispatch is None:
            return
        if opened.dispatch.mode == "background":
            self._settle(opened, opened.dispatch, notice, at)
        else:
            self._early[notice.call] = notice, at

    def sent_by_main(self, call: str) -> bool:
        """Return whether the main thread made a call."""
        opened = self._threads.calls.get(call)
        return opened is not None and opened.thread is self._threads.main

    def backgrounded(self, call: str) -> None:
        """Record that the agent of a call works in the background."""
        opened = self._threads.calls.get(call)
        if opened is not None and opened.dispatch is not None:
            opened.dispatch.mode = "background"

    def _fetched(self, task: dict[str, Any], at: float | None) -> None:
        """Process a background agent's answer that its caller requested, as in older versions."""
        status = text_at(task, "status")
        if status not in TERMINAL or text_at(task, "task_type") != "local_agent":
            return
        thread = self._threads.of_agent(text_at(task, "task_id"), None)
        call = next((d.call for d in thread.dispatches if d.status == "unanswered"), None)
        if call is not None:
            answer = text_at(task, "result").rpartition(_RESULT)[2].strip("\n")
            self.notice(Notice(thread.agent or "", call, status, answer, answer), at)

    def _delegate(
        self, opened: OpenCall, given: dict[str, Any], message: str, entry: Entry
    ) -> None:
        links = self._threads.links
        agent = links.agents.get(opened.id) or text_at(given, "resume") or None
        thread = self._threads.of_agent(agent, opened.id)
        kind = text_at(given, "subagent_type") or links.kinds.get(agent or "", DEFAULT_AGENT)
        dispatch = self._threads.dispatch(thread, opened, kind, entry.at)
        prompt = given.get("prompt")
        dispatch.prompt = Content(text=prompt) if isinstance(prompt, str) else None
        dispatch.description = text_at(given, "description") or None
        dispatch.context = {key: given[key] for key in _BESIDE if given.get(key) is not None}
        if opened.id in links.launched or given.get("run_in_background") is True:
            dispatch.mode = "background"
        self._threads.issued(opened.thread, message, dispatch)

    def _send(self, opened: OpenCall, given: dict[str, Any], message_id: str, entry: Entry) -> None:
        """Read a message that resumes an agent that had ended."""
        agent = self._threads.links.agents[opened.id]
        thread = self._threads.of_agent(agent, None)
        kind = self._threads.links.kinds.get(agent) or next(
            (d.to_agent for d in thread.dispatches), DEFAULT_AGENT
        )
        dispatch = self._threads.dispatch(thread, opened, kind, entry.at)
        message = given.get("message", given.get("content"))
        dispatch.prompt = Content(text=message) if isinstance(message, str) else None
        dispatch.description = text_at(given, "summary") or None
        dispatch.mode = "background"
        self._threads.issued(opened.thread, message_id, dispatch)

    def _dispatch_answered(
        self,
        opened: OpenCall,
        dispatch: Dispatch,
        block: dict[str, Any],
        entry: Entry,
        wrong: Trouble | None,
    ) -> None:
        record = result_record(entry)
        thread = self._threads.of_agent(self._threads.links.agents.get(opened.id), opened.id)
        if dispatch in thread.due and text_at(record, "prompt"):
            thread.prompt = text_at(record, "prompt")
        if wrong is not None:
            self._failed(opened, dispatch, wrong, entry.at)
        elif opened.id in self._threads.links.launched or opened.call.name == SEND_TOOL:
            opened.call.status, dispatch.mode = "ok", "background"
            opened.call.result = tool_content(block.get("content"))
            if opened.id in self._early:
                self._settle(opened, dispatch, *self._early.pop(opened.id))
        else:
            opened.call.status, dispatch.mode = "ok", "foreground"
            self.last_usage[dispatch.id] = dict_at(record, "usage")
            if record.get("totalTokens") == 0:
                self.unspent.add(dispatch.id)
            result = answer_content(block.get("content"), record)
            self._threads.answer(opened.thread, dispatch, "completed", entry.at, result=result)

    def _failed(
        self, opened: OpenCall, dispatch: Dispatch, wrong: Trouble, at: float | None
    ) -> None:
        started = bool(dispatch.runs)
        refused = not started and (wrong.refused or unstarted(wrong.text))
        status: Literal["refused", "failed"] = "refused" if refused else "failed"
        opened.call.status = status
        by = wrong.by if wrong.denied else wrong.by or "runtime"
        opened.call.refused_by = by if refused else None
        self._threads.answer(opened.thread, dispatch, status, at, error=wrong.text)

    def _settle(
        self, opened: OpenCall, dispatch: Dispatch, notice: Notice, at: float | None
    ) -> None:
        if dispatch.status != "unanswered":
            return
        receiver = self._threads.main if opened.run.agent == MAIN else opened.thread
        if notice.status == "completed":
            result = Content(text=notice.result) if notice.result is not None else None
            self._threads.answer(receiver, dispatch, "completed", at, result=result)
            return
        error = notice.result or _FAILED.sub("", notice.summary) or None
        if notice.status in ("stopped", "killed"):
            error = STOPPED
        self._threads.answer(receiver, dispatch, "failed", at, error=error)


class _Waiting(msgspec.Struct):
    notice: Notice
    at: float | None
    begins: int | None = None
    due: bool = False


class Delivery:
    """Notifications on their way to the main thread."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._begins: dict[str, int] = {}

    def expect(self, results: Iterable[dict[str, Any]]) -> None:
        """Process the results of a stream, which state the notification that started each round."""
        for number, result in enumerate(results):
            run = text_at(dict_at(result, "origin"), "runId")
            if run:
                self._begins[run] = number

    def add(self, notice: Notice, at: float | None, run: str) -> None:
        """Process a notification; ``run`` names the task that has ended."""
        self._waiting.append(_Waiting(notice, at, self._begins.get(run)))

    def round(self) -> None:
        """Record that tools answered: the next request delivers all waiting notifications."""
        for one in self._waiting:
            one.due = one.due or one.begins is None

    def began(self, number: int) -> None:
        """Record that a round started, counted from 0."""
        for one in self._waiting:
            one.due = one.due or one.begins is None or one.begins <= number

    def due(self) -> list[tuple[Notice, float | None]]:
        """Return the notifications for the model's next request."""
        due = [(one.notice, one.at) for one in self._waiting if one.due]
        self._waiting = [one for one in self._waiting if not one.due]
        return due

    def rest(self) -> list[tuple[Notice, float | None]]:
        """Return notifications that the model has not got yet."""
        return [(one.notice, one.at) for one in self._waiting]

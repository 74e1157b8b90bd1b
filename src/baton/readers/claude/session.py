"""Converts the entries of one session to turns, runs and dispatches."""

from __future__ import annotations

import itertools
from typing import Any

from baton.model import (
    SCHEMA_VERSION,
    AgentRun,
    Content,
    Dispatch,
    Dropped,
    Said,
    Source,
    ToolCall,
    Trace,
    Turn,
)
from baton.model.trace import TurnStatus
from baton.readers.builder import MAIN, ends_early, not_before, without
from baton.readers.tool_definitions import targets_of

from .dispatches import STOPPED, TERMINAL, Calls, Delivery, Thread, Threads, seen
from .started_agents import DISPATCH_TOOLS, Cards, Links
from .wire import (
    FOLDED,
    GIVEN,
    INTERRUPTED,
    NO_ANSWER,
    NOT_A_USER,
    Entry,
    Notice,
    block_content,
    count_at,
    dict_at,
    failure,
    is_list,
    is_written_by_program,
    local_commands,
    message_text,
    notices,
    seconds,
    text_at,
    text_of,
    told_agent,
    without_reminders,
)


class SessionReader:
    """Reads entries in the order they happened.

    ``stream`` entries do not repeat what the user said, so a turn ends with its result.
    """

    def __init__(self, links: Links, *, stream: bool, user_told: bool = False) -> None:
        self.threads = Threads(links)
        self.calls = Calls(self.threads)
        self.stream = stream
        self.offered: dict[str | None, list[str]] = {}
        self.results = 0
        self.failed: dict[str, str] = {}
        self.succeeded: set[str] = set()
        self.interrupted: set[str] = set()
        self.stated: dict[str, list[dict[str, Any]]] = {}
        self.unstated: set[str] = set()
        self.partial: set[str] = set()
        self.ended_turn = False
        self._local: set[int] = set()
        self._user_told = user_told
        self._origins: list[dict[str, Any]] = []
        self._ended: dict[str, tuple[str, float | None]] = {}
        self._delivery = Delivery()
        self._early: list[Thread] = []
        self._latest = ""
        self._numbers = itertools.count(1)
        self._told_of_task = False
        self._dropped: dict[str, list[str]] = {}
        self._uuids: set[str] = set()

    def read(self, entries: list[Entry]) -> None:
        """Read all entries."""
        self._origins = [entry.data for entry in entries if entry.type == "result"]
        self._delivery.expect(self._origins)
        for result in self._origins:
            denied = result.get("permission_denials")
            ids = (text_at(one, "tool_use_id") for one in denied) if is_list(denied) else ()
            self.calls.denied.update(ids)
        self._local = local_commands(entries)
        for entry in entries:
            uuid = text_at(entry.data, "uuid")
            if uuid and uuid in self._uuids:
                continue
            self._uuids.add(uuid)
            self._read(entry)
        self._flush_ended()
        for notice, at in self._delivery.rest():
            self.calls.notice(notice, at)
        while self._early:
            self._orphan(self._early[0])

    def dropped(self) -> list[Dropped]:
        """Return the counts of content without a place."""
        for text in self.calls.unplaced:
            self._drop("results of calls that are not in the recording", text)
        return [
            Dropped(what=what, count=len(examples), example=examples[0][:80] or None)
            for what, examples in self._dropped.items()
        ]

    def _read(self, entry: Entry) -> None:
        match entry.type:
            case "assistant" | "user":
                self._spoken(entry)
            case "system":
                self._system(entry)
            case "result":
                self._result(entry)
            case "attachment":
                self._attachment(entry)
            case "cost-state":
                self.threads.usage.take_total(entry.data)
            case "api-request-shape":
                tools = dict_at(entry.data, "shape").get("tools")
                named = [text_at(tool, "name") for tool in tools] if is_list(tools) else []
                self._offer(entry, named)
                if is_list(tools) and not text_at(entry.data, "agentId"):
                    self.threads.builder.may_reach(MAIN, targets_of(tools))
            case kind if kind not in FOLDED:
                self._drop(f"messages of type `{kind or '?'}`", text_of(entry.data))

    def _spoken(self, entry: Entry) -> None:
        """Read a model's output or input; early entries wait for their dispatch."""
        thread = self.threads.of(entry)
        if thread is not self.threads.main and thread.run is None and not thread.due:
            if not thread.early:
                self._early.append(thread)
            thread.early.append(entry)
        elif entry.type == "assistant":
            self._assistant(thread, entry)
        else:
            self._user(thread, entry)

    def _assistant(self, thread: Thread, entry: Entry) -> None:
        message = entry.message
        id_ = text_at(message, "id") or text_at(entry.data, "uuid") or self._unnamed(thread)
        failed = failure(entry)
        if failed is None and text_at(message, "model") == "<synthetic>":
            return
        if thread is self.threads.main:
            self._continue_turn(entry)
            if id_ != self._latest:
                self._flush_ended()
                for notice, at in self._delivery.due():
                    self.calls.notice(notice, at)
            self._latest = id_
        run = self._run(thread, entry)
        owner = self.threads.usage.owner(id_)
        if owner is not None and owner != run.id and not self._same_thread(owner, thread):
            return
        self.threads.usage.add(owner or run.id, message, id_, failed is not None)
        seen(run, entry.at)
        if failed is not None:
            self.failed[run.id] = failed
            return
        self.failed.pop(run.id, None)
        run.model = text_at(message, "model") or run.model
        for block in entry.blocks:
            self._block(thread, run, block, id_, entry)

    def _unnamed(self, thread: Thread) -> str:
        """Return an id for a message that has none, as in the types of the SDK before 0.1.52.

        Its blocks come one by one. The model is asked again only once something was answered, so
        blocks with nothing in between are one message.
        """
        if thread.unnamed is None:
            thread.unnamed = f"message {next(self._numbers)}"
        return thread.unnamed

    def _block(
        self, thread: Thread, run: AgentRun, block: dict[str, Any], message: str, entry: Entry
    ) -> None:
        kind = text_at(block, "type")
        if kind in ("text", "thinking"):
            text = text_at(block, kind)
            if text and text not in NO_ANSWER:
                self._say(thread, run, text, message, entry.at, kind == "thinking")
        elif kind.endswith("tool_use"):
            if thread.answer_of == message:
                run.output = None
            thread.called_by = message
            self.calls.call(thread, run, block, message, entry)
            self._wake()
        elif kind.endswith("tool_result"):
            self.calls.answer(block, entry)
        elif kind != "redacted_thinking":
            self._drop(f"content blocks of type `{kind or '?'}`", text_of(block))

    def _say(
        self,
        thread: Thread,
        run: AgentRun,
        text: str,
        message: str,
        at: float | None,
        thought: bool,
    ) -> None:
        said = Said(id=self.threads.builder.new_id("said"), content=Content(text=text), at=at)
        said.thought = thought
        run.steps.append(said)
        if thought:
            return
        if thread.answer_of == message and run.output is not None:
            text = f"{run.output.text}\n{text}"
        if thread.called_by != message:
            thread.answer_of, run.output = message, Content(text=text)

    def _user(self, thread: Thread, entry: Entry) -> None:
        thread.unnamed = None
        for block in entry.blocks:
            if block.get("type") == "tool_result":
                self.calls.answer(block, entry)
                if thread is self.threads.main:
                    self._delivery.round()
        heard = message_text(entry.blocks)
        if heard.text is not None:
            heard.text = without_reminders(heard.text)
        if not heard:
            return
        text = heard.text or ""
        if text.startswith(INTERRUPTED):
            run = self.threads.main_run(entry.at) if thread is self.threads.main else thread.run
            if run is not None:
                self.interrupted.add(run.id)
                seen(run, entry.at)
        elif notes := notices(text):
            for notice in notes:
                self._notice(notice, entry.at)
        elif thread is not self.threads.main:
            self._read_input(thread, heard, entry)
        elif entry.data.get("isCompactSummary") is True:
            self._drop("summaries of a compacted conversation", text)
        elif id(entry) not in self._local and not is_written_by_program(entry, text):
            self.threads.open_turn(heard, entry.at)
            self.ended_turn = False

    def _read_input(self, thread: Thread, heard: Content, entry: Entry) -> None:
        """Read the input of a sub-agent: its task, or a message while it works."""
        if heard.text is not None:
            heard.text = told_agent(heard.text)
        run = self._run(thread, entry)
        if run.input is None or not run.steps:
            run.input = heard
        else:
            texts = [run.input.text, heard.text]
            run.input = Content(text="\n".join(text for text in texts if text))
        seen(run, entry.at)

    def _run(self, thread: Thread, entry: Entry) -> AgentRun:
        """Return the run that an entry belongs to; a dispatch that is due begins one."""
        if thread is self.threads.main:
            return self.threads.main_run(entry.at)
        answers = any(block.get("type") == "tool_result" for block in entry.blocks)
        if thread.run is None or (thread.due and not answers):
            return self.threads.start(thread, entry.at)
        return thread.run

    def _same_thread(self, run_id: str, thread: Thread) -> bool:
        if thread is self.threads.main:
            return any(run_id == turn.runs[0].id for turn in self.threads.turns)
        return any(run_id in dispatch.runs for dispatch in thread.dispatches)

    def _wake(self) -> None:
        """Read the result of an agent before the call that started it."""
        for thread in [thread for thread in self._early if thread.due]:
            self._early.remove(thread)
            entries, thread.early = thread.early, []
            for entry in entries:
                self._spoken(entry)

    def _orphan(self, thread: Thread) -> None:
        """Read an agent that was not started by anything in the recording."""
        if not self.threads.turns:
            self.threads.open_turn(None, None)
        kind = self.threads.links.kinds.get(thread.agent or "", "")
        dispatch = self.threads.dispatch(
            thread, None, kind or "general-purpose", thread.early[0].at
        )
        dispatch.basis = "structure"
        dispatch.unknown += ["from_run", "from_agent", "call", "prompt", "description", "result"]
        dispatch.unknown += ["status", "context"] + ([] if kind else ["to_agent"])
        self._wake()

    def _continue_turn(self, entry: Entry) -> None:
        """Start a turn when a stream continues after a result, unless a task made it continue."""
        ended = self.stream and self.ended_turn and not self._user_told
        if not self.threads.turns or (ended and self._from_user()):
            self.threads.open_turn(None, entry.at)
        if self.ended_turn:
            self._delivery.began(self.results)
        self.ended_turn = self._told_of_task = False

    def _from_user(self) -> bool:
        """Return whether a user's message started the following entries, by their result."""
        if self.results < len(self._origins):
            result = self._origins[self.results]
            origin = dict_at(result, "origin")
            if origin:
                return text_at(origin, "kind") not in NOT_A_USER or "subkind" in origin
            if "subagent_stats" in result:
                return True
        return not self._told_of_task

    def _notice(self, notice: Notice, at: float | None) -> None:
        self._told_of_task = True
        self.calls.notice(notice, at)

    def _system(self, entry: Entry) -> None:
        data = entry.data
        if entry.subtype == "init":
            names = data.get("tools")
            if is_list(names) and all(isinstance(name, str) for name in names):
                self.offered[None] = names
        elif entry.subtype == "task_started":
            self._started(data)
        elif entry.subtype == "task_notification":
            summary = text_at(data, "summary")
            ids = text_at(data, "task_id"), text_at(data, "tool_use_id")
            ended = self._ended.pop(text_at(data, "task_id"), ("", entry.at))[1]
            self._told_of_task = True
            notice = Notice(*ids, text_at(data, "status"), summary or None, summary)
            if self.calls.sent_by_main(notice.call):
                self._delivery.add(notice, ended, text_at(data, "run_id"))
            else:
                self.calls.notice(notice, ended)
        elif entry.subtype == "task_updated":
            patch = dict_at(data, "patch")
            if text_at(patch, "status") in TERMINAL:
                at = seconds(patch.get("end_time"))
                self._ended[text_at(data, "task_id")] = text_at(patch, "status"), at

    def _started(self, data: dict[str, Any]) -> None:
        call = text_at(data, "tool_use_id")
        opened = self.threads.calls.get(call)
        if opened is None or opened.dispatch is None:
            return
        thread = self.threads.of_agent(self.threads.links.agents.get(call), call)
        thread.prompt = text_at(data, "prompt") or None
        if opened.dispatch in thread.due:
            self.threads.start(thread, None)
        if data.get("is_backgrounded") is True:
            self.calls.backgrounded(call)

    def _flush_ended(self) -> None:
        """Read the end of background agents that only a task update reported."""
        for agent, (status, at) in self._ended.items():
            thread = self.threads.of_agent(agent, None)
            call = thread.dispatches[-1].call if thread.dispatches else None
            output = thread.run.output if thread.run else None
            text = output.text if output else None
            self.calls.notice(Notice(agent, call or "", status, text, ""), at)
        self._ended = {}

    def _result(self, entry: Entry) -> None:
        self.results += 1
        self.threads.main.unnamed = None
        data = entry.data
        run = self.threads.main_run(entry.at)
        turn = self.threads.turns[-1]
        self.ended_turn = True
        self.threads.usage.take_total(data)
        usage = dict_at(data, "usage")
        if count_at(usage, "output_tokens") is not None:
            self.stated.setdefault(run.id, []).append(usage)
        else:
            self.unstated.add(run.id)
        text, answer = text_at(data, "result"), data.get("structured_output")
        if data.get("is_error") is True or entry.subtype not in ("success", ""):
            errors = data.get("errors")
            texts = [e for e in errors if isinstance(e, str)] if is_list(errors) else []
            self.failed[run.id] = text or "; ".join(texts) or entry.subtype or "error"
            return
        self.failed.pop(run.id, None)
        self.succeeded.add(run.id)
        if not run.steps and text:
            run.unknown.append("steps")
            run.output = Content(text=text)
        if answer is not None:
            run.output = Content(text=run.output.text if run.output else None, data=answer)
        turn.output = run.output

    def _attachment(self, entry: Entry) -> None:
        """Read entries that were queued while an agent worked: notifications and messages."""
        attachment = dict_at(entry.data, "attachment")
        kind = text_at(attachment, "type")
        if kind == "deferred_tools_delta":
            self._offer(entry, attachment.get("addedNames"))
        elif kind in GIVEN:
            self._drop(f"attachments of type `{kind}`", text_at(attachment, "filename") or kind)
        if kind != "queued_command":
            return
        heard = block_content(attachment.get("prompt"))
        thread = self.threads.of(entry)
        if notes := notices(heard.text or ""):
            for notice in notes:
                self._notice(notice, entry.at)
        elif thread is not self.threads.main:
            if thread.run is not None:
                self._read_input(thread, heard, entry)
        elif heard and text_at(attachment, "commandMode") in ("prompt", ""):
            self._joined(heard, entry.at)

    def _joined(self, heard: Content, at: float | None) -> None:
        """Read a user message that came while the model worked: it belongs to the same turn."""
        run = self.threads.main_run(at)
        turn = self.threads.turn_of(run.id)
        texts = [turn.input.text if turn.input else None, heard.text]
        turn.input = run.input = Content(text="\n".join(text for text in texts if text))
        for known in (turn, run):
            known.unknown = without(known.unknown, "input")

    def _offer(self, entry: Entry, names: Any) -> None:
        """Record the tools of the main thread or a sub-agent."""
        agent = text_at(entry.data, "agentId") or None
        known = [name for name in names if isinstance(name, str) and name] if is_list(names) else []
        self.offered[agent] = list(dict.fromkeys([*self.offered.get(agent, []), *known]))

    def _drop(self, what: str, example: str) -> None:
        """Count content without a place; empty entries are no loss."""
        if example:
            self._dropped.setdefault(what, []).append(example)


def name_sidechains(entries: list[Entry], links: Links) -> None:
    """Assign an agent to each side conversation, and find the call that started it.

    A side conversation starts at an entry whose parent is not in it. No id shows which call it
    belongs to: it is the oldest call with its prompt.
    """
    prompts: dict[str, list[str]] = {}
    roots: dict[str, str] = {}
    for entry in entries:
        if entry.data.get("isSidechain") is not True or entry.agent is not None:
            _collect(entry, prompts)
            continue
        uuid, parent = text_at(entry.data, "uuid"), text_at(entry.data, "parentUuid")
        root = roots.get(parent)
        if root is None:
            root = f"side-{uuid}"
            calls = prompts.get(message_text(entry.blocks).text or "")
            if calls:
                links.add(calls.pop(0), root)
        roots[uuid] = root
        entry.agent = root
        _collect(entry, prompts)


def _collect(entry: Entry, prompts: dict[str, list[str]]) -> None:
    for block in entry.blocks if entry.type == "assistant" else ():
        prompt = dict_at(block, "input").get("prompt")
        if text_at(block, "name") in DISPATCH_TOOLS and isinstance(prompt, str):
            prompts.setdefault(prompt, []).append(text_at(block, "id"))


_TIMES = ("turn.started", "turn.ended", "run.started", "run.ended", "dispatch.started",
          "dispatch.ended", "tool_call.at", "tool_call.ended")  # fmt: skip
CUT_OFF = "the recording was truncated before the turn ended"
NO_RESULT = "the stream ends before the result of the turn"


def finish(
    session: SessionReader,
    cards: Cards,
    id_: str,
    source: Source,
    *,
    torn: bool,
    dropped: list[Dropped],
) -> Trace:
    """Close open objects and make the trace."""
    threads = session.threads
    _unseen_runs(threads)
    threads.in_order()
    threads.builder.finish()
    for thread in threads.of_agents():
        for dispatch in thread.dispatches:
            _settle_dispatch(session, thread, dispatch, cards)
    for turn in threads.turns:
        _settle_turn(session, turn, torn=torn and turn is threads.turns[-1])
    usages = [run.usage for turn in threads.turns for run in turn.runs]
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=id_,
        source=source,
        turns=threads.turns,
        agents=cards.all(),
        usage=threads.usage.of_trace(usages),
        unknown=_never_told(threads, data=session.results > 0),
        dropped=[*dropped, *session.dropped()],
        attributes=threads.builder.attributes(),
    )


def _unseen_runs(threads: Threads) -> None:
    """Add the runs of agents for which only the call and its answer were recorded."""
    for thread in threads.of_agents():
        while thread.due:
            dispatch = thread.due[0]
            if dispatch.status == "refused" or (
                dispatch.status == "unanswered" and dispatch.mode != "background"
            ):
                thread.due.pop(0)
                continue
            run = threads.start(thread, dispatch.started)
            threads.place[run.id] = threads.place[dispatch.id]
            run.unknown.append("steps")
            run.output = dispatch.result


def _settle_dispatch(
    session: SessionReader, thread: Thread, dispatch: Dispatch, cards: Cards
) -> None:
    runs = session.threads.runs_of(dispatch)
    for run in runs:
        _settle_run(session, dispatch, run)
    agents = [run.agent for run in runs] or [dispatch.to_agent]
    dispatch.tools_allowed, dispatch.tools_source = cards.tools(agents[0])
    offered = session.offered.get(thread.agent) if thread.agent else None
    if dispatch.tools_source is None and offered:
        dispatch.tools_allowed, dispatch.tools_source = offered, "offered"
    if dispatch.tools_source is None:
        dispatch.unknown += ["tools_allowed", "tools_source"]
    for run in runs:
        run.tools_offered = offered or None
    if dispatch.status == "unanswered" and not runs and dispatch.mode == "foreground":
        dispatch.mode = "unknown"


def _settle_run(session: SessionReader, dispatch: Dispatch, run: AgentRun) -> None:
    """Set the end of a sub-agent's run, and of its dispatch if it differs."""
    dead = session.failed.get(run.id)
    if dead is None and dispatch.status == "completed" and _died_unseen(session, dispatch, run):
        dead = dispatch.result.text if dispatch.result else None
    if dead is not None:
        run.status, run.error, run.output = "failed", dead, None
        if dispatch.status == "completed":
            dispatch.status, dispatch.error, dispatch.result = "failed", dead, None
            for opened in session.threads.calls.values():
                if opened.dispatch is dispatch:
                    opened.call.status = "failed"
            if run.id not in session.failed and "steps" not in run.unknown:
                session.threads.usage.failed(run.id)
    elif run.id in session.interrupted or dispatch.error == STOPPED:
        run.status, run.error = "cancelled", dispatch.error
    elif dispatch.status == "failed":
        run.status, run.error = "failed", dispatch.error
    elif dispatch.status == "completed":
        _answered(session, dispatch, run)
    elif run.output is None:
        run.status = "unknown"
    if run.ended is None and "steps" in run.unknown:
        run.ended = dispatch.ended


def _answered(session: SessionReader, dispatch: Dispatch, run: AgentRun) -> None:
    """Compare the answer with the texts: a stream may leave out a sub-agent's texts."""
    said = any(isinstance(step, Said) and not step.thought for step in run.steps)
    unheard = not said and "steps" not in run.unknown and bool(dispatch.result)
    if unheard:
        run.unknown.append("steps.said")
    usage = session.calls.last_usage.get(dispatch.id)
    if usage and "steps" not in run.unknown:
        session.threads.usage.ended_with(run.id, usage, unseen=unheard)
    elif unheard:
        session.partial.add(run.id)
    run.output = run.output or dispatch.result


def _died_unseen(session: SessionReader, dispatch: Dispatch, run: AgentRun) -> bool:
    """Return whether an agent died although older versions report it as completed.

    Its last words were not recorded, and the answer is the error of a request.
    """
    heard = any(isinstance(step, Said) and not step.thought for step in run.steps)
    text = (dispatch.result.text if dispatch.result else None) or ""
    nothing_spent = dispatch.id in session.calls.unspent or "steps" in run.unknown
    return not heard and nothing_spent and text.startswith("API Error")


def _settle_turn(session: SessionReader, turn: Turn, *, torn: bool) -> None:
    main = turn.runs[0]
    error = session.failed.get(main.id)
    open_end = turn is session.threads.turns[-1] and not session.ended_turn
    for run in turn.runs:
        whole = run.id not in session.unstated and not open_end
        stated = session.stated.get(run.id) if whole else None
        run.usage = session.threads.usage.of_run(run, stated)
        if run.usage is not None and run.id in session.partial:
            run.usage.complete = False
    status: TurnStatus = "completed"
    if error is not None:
        status, main.status, main.error = "failed", "failed", error
    elif main.agent == MAIN:
        status, error = _end(session, turn, main, torn)
    session.threads.builder.end_turn(turn, status, error, last=main)
    turn.output = None if turn.status == "failed" else main.output
    turn.ended = not_before(turn.started, main.ended)
    if main.tools_offered is None:
        main.tools_offered = _offered(session, turn)


def _end(
    session: SessionReader, turn: Turn, main: AgentRun, torn: bool
) -> tuple[TurnStatus, str | None]:
    """Return whether a turn completed, and if not, the evidence."""
    if main.id in session.interrupted:
        main.status = "cancelled"
        return "incomplete", "the user interrupted the turn"
    if torn:
        return "incomplete", CUT_OFF
    error = ends_early(main.steps)
    last = turn is session.threads.turns[-1]
    if error is None and session.stream and last and not session.ended_turn:
        error = NO_RESULT
    elif error is None and main.output is None and main.id not in session.succeeded:
        error = "the recording ends before the turn is answered"
    return ("completed" if error is None else "incomplete"), error


def _offered(session: SessionReader, turn: Turn) -> list[str] | None:
    """Return the tools of the main thread, with the dispatch tool under the name used in calls."""
    names = session.offered.get(None)
    calls = (step for step in turn.runs[0].steps if isinstance(step, ToolCall))
    if names and "Agent" not in names and any(call.name == "Agent" for call in calls):
        return ["Agent" if name == "Task" else name for name in names]
    return names


def _never_told(threads: Threads, *, data: bool) -> list[str]:
    """Name what is missing in the objects themselves, and return what no object has.

    ``data``: the source would contain structured output, like the results of a stream.
    """
    for turn in threads.turns:
        for run in turn.runs:
            for name in ("model", "usage", "input"):
                if getattr(run, name) is None and name not in run.unknown:
                    run.unknown.append(name)
            # A later entry may have what an earlier one lacked.
            recorded = [n for n in ("input", "model", "usage") if getattr(run, n) is not None]
            run.unknown = without(run.unknown, *recorded)
    names = ["run.context", "run.tools_offered", *([] if data else ["turn.output.data"])]
    times = [run.started for turn in threads.turns for run in turn.runs]
    if all(time is None for time in times):
        names += _TIMES
    else:
        for turn in threads.turns:
            if turn.ended is None and turn.status != "incomplete":
                turn.unknown.append("ended")
            for run in turn.runs:
                run.ended = not_before(run.started, run.ended)
                if run.started is None:
                    run.unknown.append("started")
                if run.ended is None and run.status != "unknown":
                    run.unknown.append("ended")
    return names

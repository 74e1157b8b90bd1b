"""The entries of one session as turns, runs and dispatches."""

from __future__ import annotations

from typing import Any

from baton.model import AgentRun, Content, Dropped, Said

from .agents import DISPATCH_TOOLS, Links
from .calls import TERMINAL, Calls, Delivery
from .draft import Draft, Lane, seen
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
    is_plumbing,
    message_text,
    notices,
    seconds,
    text_at,
    text_of,
    told_agent,
    without_reminders,
)


class Talk:
    """Reads entries in the order they happened.

    ``stream`` entries do not repeat what the user said: there a turn ends with its result.
    """

    def __init__(self, links: Links, *, stream: bool, user_told: bool = False) -> None:
        self.draft = Draft(links)
        self.calls = Calls(self.draft)
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
        self._user_told = user_told
        self._origins: list[dict[str, Any]] = []
        self._ended: dict[str, tuple[str, float | None]] = {}
        self._delivery = Delivery()
        self._early: list[Lane] = []
        self._latest = ""
        self._told_of_task = False
        self._dropped: dict[str, list[str]] = {}
        self._uuids: set[str] = set()

    def read(self, entries: list[Entry]) -> None:
        """Read all entries."""
        self._origins = [entry.data for entry in entries if entry.type == "result"]
        self._delivery.expect(self._origins)
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
        """Count what could not be placed."""
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
                self.draft.spent.take_total(entry.data)
            case "api-request-shape":
                self._shape(entry)
            case kind if kind not in FOLDED:
                self._drop(f"messages of type `{kind or '?'}`", text_of(entry.data))

    def _spoken(self, entry: Entry) -> None:
        """Read what a model said, or what it was told; early entries wait for their dispatch."""
        lane = self.draft.lane(entry)
        if lane is not self.draft.main and lane.run is None and not lane.due:
            if not lane.early:
                self._early.append(lane)
            lane.early.append(entry)
        elif entry.type == "assistant":
            self._assistant(lane, entry)
        else:
            self._user(lane, entry)

    def _assistant(self, lane: Lane, entry: Entry) -> None:
        message = entry.message
        id_ = text_at(message, "id") or text_at(entry.data, "uuid")
        failed = failure(entry)
        if failed is None and text_at(message, "model") == "<synthetic>":
            return
        if lane is self.draft.main:
            self._continue_turn(entry)
            if id_ != self._latest:
                self._flush_ended()
                for notice, at in self._delivery.due():
                    self.calls.notice(notice, at)
            self._latest = id_
        run = self._run(lane, entry)
        owner = self.draft.spent.owner(id_)
        if owner is not None and owner != run.id and not self._same_lane(owner, lane):
            return
        self.draft.spent.add(owner or run.id, message, id_, failed is not None)
        seen(run, entry.at)
        if failed is not None:
            self.failed[run.id] = failed
            return
        self.failed.pop(run.id, None)
        run.model = text_at(message, "model") or run.model
        for block in entry.blocks:
            self._block(lane, run, block, id_, entry)

    def _block(
        self, lane: Lane, run: AgentRun, block: dict[str, Any], message: str, entry: Entry
    ) -> None:
        kind = text_at(block, "type")
        if kind in ("text", "thinking"):
            text = text_at(block, kind)
            if text and text not in NO_ANSWER:
                self._say(lane, run, text, message, entry.at, kind == "thinking")
        elif kind.endswith("tool_use"):
            if lane.answer_of == message:
                run.output = None
            lane.called_by = message
            self.calls.call(lane, run, block, entry)
            self._wake()
        elif kind.endswith("tool_result"):
            self.calls.answer(block, entry)
        elif kind != "redacted_thinking":
            self._drop(f"content blocks of type `{kind or '?'}`", text_of(block))

    def _say(
        self, lane: Lane, run: AgentRun, text: str, message: str, at: float | None, thought: bool
    ) -> None:
        said = Said(id=self.draft.new_id("said"), content=Content(text=text), at=at)
        said.thought = thought
        run.steps.append(said)
        if thought:
            return
        if lane.answer_of == message and run.output is not None:
            text = f"{run.output.text}\n{text}"
        if lane.called_by != message:
            lane.answer_of, run.output = message, Content(text=text)

    def _user(self, lane: Lane, entry: Entry) -> None:
        for block in entry.blocks:
            if block.get("type") == "tool_result":
                self.calls.answer(block, entry)
                if lane is self.draft.main:
                    self._delivery.round()
        heard = message_text(entry.blocks)
        if heard.text is not None:
            heard.text = without_reminders(heard.text)
        if not heard:
            return
        text = heard.text or ""
        if text.startswith(INTERRUPTED):
            self._interrupt(lane, entry)
        elif told := notices(text):
            for notice in told:
                self._notice(notice, entry.at)
        elif lane is not self.draft.main:
            self._told(lane, heard, entry)
        elif entry.data.get("isCompactSummary") is True:
            self._drop("summaries of a compacted conversation", text)
        elif not is_plumbing(entry, text):
            self.draft.open_turn(heard, entry.at)
            self.ended_turn = False

    def _told(self, lane: Lane, heard: Content, entry: Entry) -> None:
        """Take what a sub-agent is told: its task, or a message while it works."""
        if heard.text is not None:
            heard.text = told_agent(heard.text)
        run = self._run(lane, entry)
        if run.input is None or not run.steps:
            run.input = heard
        else:
            texts = [run.input.text, heard.text]
            run.input = Content(text="\n".join(text for text in texts if text))
        seen(run, entry.at)

    def _run(self, lane: Lane, entry: Entry) -> AgentRun:
        """Return the run an entry belongs to; a dispatch that is due begins one."""
        if lane is self.draft.main:
            return self.draft.main_run(entry.at)
        answers = any(block.get("type") == "tool_result" for block in entry.blocks)
        if lane.run is None or (lane.due and not answers):
            return self.draft.start(lane, entry.at)
        return lane.run

    def _same_lane(self, run_id: str, lane: Lane) -> bool:
        if lane is self.draft.main:
            return any(run_id == turn.runs[0].id for turn in self.draft.turns)
        return any(run_id in dispatch.runs for dispatch in lane.dispatches)

    def _wake(self) -> None:
        """Read what came of an agent before the call that set it to work."""
        for lane in [lane for lane in self._early if lane.due]:
            self._early.remove(lane)
            entries, lane.early = lane.early, []
            for entry in entries:
                self._spoken(entry)

    def _orphan(self, lane: Lane) -> None:
        """Read an agent that nothing in the recording set to work."""
        if not self.draft.turns:
            self.draft.open_turn(None, None)
        kind = self.draft.links.kinds.get(lane.agent or "", "")
        dispatch = self.draft.dispatch(lane, None, kind or "general-purpose", lane.early[0].at)
        dispatch.basis = "structure"
        dispatch.unknown += ["from_run", "from_agent", "call", "prompt", "description", "result"]
        dispatch.unknown += ["status", "context"] + ([] if kind else ["to_agent"])
        self._wake()

    def _continue_turn(self, entry: Entry) -> None:
        """Begin a turn when a stream goes on after a result, unless a task made it go on."""
        ended = self.stream and self.ended_turn and not self._user_told
        if not self.draft.turns or (ended and self._from_user()):
            self.draft.open_turn(None, entry.at)
        if self.ended_turn:
            self._delivery.began(self.results)
        self.ended_turn = self._told_of_task = False

    def _from_user(self) -> bool:
        """Tell whether a user's message began what follows, by the result that ends it."""
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

    def _interrupt(self, lane: Lane, entry: Entry) -> None:
        run = self.draft.main_run(entry.at) if lane is self.draft.main else lane.run
        if run is not None:
            self.interrupted.add(run.id)
            seen(run, entry.at)

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
        opened = self.draft.calls.get(call)
        if opened is None or opened.dispatch is None:
            return
        lane = self.draft.lane_of(self.draft.links.agents.get(call), call)
        lane.prompt = text_at(data, "prompt") or None
        if opened.dispatch in lane.due:
            self.draft.start(lane, None)
        if data.get("is_backgrounded") is True:
            self.calls.backgrounded(call)

    def _flush_ended(self) -> None:
        """Take the end of background agents that only an update of the task told of."""
        for agent, (status, at) in self._ended.items():
            lane = self.draft.lane_of(agent, None)
            call = lane.dispatches[-1].call if lane.dispatches else None
            output = lane.run.output if lane.run else None
            text = output.text if output else None
            self.calls.notice(Notice(agent, call or "", status, text, ""), at)
        self._ended = {}

    def _result(self, entry: Entry) -> None:
        self.results += 1
        data = entry.data
        run = self.draft.main_run(entry.at)
        turn = self.draft.turns[-1]
        self.ended_turn = True
        self.draft.spent.take_total(data)
        usage = dict_at(data, "usage")
        if count_at(usage, "output_tokens") is not None:
            self.stated.setdefault(run.id, []).append(usage)
        else:
            self.unstated.add(run.id)
        text, answer = text_at(data, "result"), data.get("structured_output")
        if data.get("is_error") is True or entry.subtype not in ("success", ""):
            errors = data.get("errors")
            told = [e for e in errors if isinstance(e, str)] if is_list(errors) else []
            self.failed[run.id] = text or "; ".join(told) or entry.subtype or "error"
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
        """Take what was queued while an agent worked: notifications, and messages to it."""
        attachment = dict_at(entry.data, "attachment")
        kind = text_at(attachment, "type")
        if kind == "deferred_tools_delta":
            self._offer(entry, attachment.get("addedNames"))
        elif kind in GIVEN:
            self._drop(f"attachments of type `{kind}`", text_at(attachment, "filename") or kind)
        if kind != "queued_command":
            return
        heard = block_content(attachment.get("prompt"))
        lane = self.draft.lane(entry)
        if told := notices(heard.text or ""):
            for notice in told:
                self._notice(notice, entry.at)
        elif lane is not self.draft.main:
            if lane.run is not None:
                self._told(lane, heard, entry)
        elif heard and text_at(attachment, "commandMode") in ("prompt", ""):
            self._joined(heard, entry.at)

    def _joined(self, heard: Content, at: float | None) -> None:
        """Take what a user said while the model worked: it belongs to the same turn."""
        run = self.draft.main_run(at)
        turn = self.draft.turn_of(run.id)
        texts = [turn.input.text if turn.input else None, heard.text]
        turn.input = run.input = Content(text="\n".join(text for text in texts if text))
        for known in (turn, run):
            known.unknown = [name for name in known.unknown if name != "input"]

    def _shape(self, entry: Entry) -> None:
        tools = dict_at(entry.data, "shape").get("tools")
        self._offer(entry, [text_at(tool, "name") for tool in tools] if is_list(tools) else [])

    def _offer(self, entry: Entry, names: Any) -> None:
        """Note tools that the main thread or a sub-agent was given."""
        agent = text_at(entry.data, "agentId") or None
        told = [name for name in names if isinstance(name, str) and name] if is_list(names) else []
        self.offered[agent] = list(dict.fromkeys([*self.offered.get(agent, []), *told]))

    def _drop(self, what: str, example: str) -> None:
        """Count what holds content and has no place; what says nothing is no loss."""
        if example:
            self._dropped.setdefault(what, []).append(example)


def name_sidechains(entries: list[Entry], links: Links) -> None:
    """Give each side conversation an agent, and find the call that started it.

    A side conversation begins at an entry whose parent is none of its own. No id says which
    call it is of: that is the oldest one whose prompt it was given.
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

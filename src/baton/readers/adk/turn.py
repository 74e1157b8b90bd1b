"""Converts the events of one ADK invocation to a turn: runs, texts and calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from baton.formats.adk import (
    TRANSFER_TOOL,
    Actions,
    AnyEvent,
    FunctionCall,
    FunctionResponse,
    Part,
    target_of,
)
from baton.model import AgentRun, Content, Dispatch, Said, ToolCall, Turn
from baton.model.trace import TurnStatus
from baton.readers.builder import TraceBuilder, ends_early, not_before
from baton.readers.catalog import Catalog

from .history import History, passed_by_workflow
from .wire import add_usage, error_of, result_content, said_content

_MAIN_LANE = ""
"""The lane of events without a branch."""
_REQUESTS = frozenset({"adk_request_confirmation", "adk_request_credential", "adk_request_input"})
"""Calls that ADK itself writes, to ask a person about a call of the model."""
_ASKED_BY_MODEL = "adk_request_input"
"""The only one of them that a model can call, too: as the tool ``request_input``."""
_FINISH = "finish_task"
"""The tool by which an agent of the mode ``task`` gives its answer."""
_TRUNCATED = "the stream was truncated before the turn ended"
_NO_ACTIONS = Actions()
_NONE_PAUSED: set[str] = set()


class OpenCall:
    """A tool call that may still be answered, maybe in a later turn."""

    __slots__ = ("answered", "call", "dispatch", "run", "started")

    def __init__(self, call: ToolCall, run: AgentRun) -> None:
        self.call = call
        self.run = run
        self.dispatch: Dispatch | None = None
        self.started: AgentRun | None = None
        self.answered = False


class Session:
    """State that is kept between turns of a conversation: its builder, and open calls.

    ``asked_about`` maps each request to a person to the call that it is about, by id. ``whole``:
    the recording starts with the session; ``branches``: events name their branch.
    """

    def __init__(self, catalog: Catalog, *, whole: bool = False, branches: bool = True) -> None:
        self.catalog = catalog
        self.builder = TraceBuilder(catalog)
        self.branches = branches
        self.history = History(catalog, whole=whole and branches)
        self.calls: dict[str, OpenCall] = {}
        self.asked_about: dict[str, str] = {}

    def open_call(self, id_: str | None, name: str) -> OpenCall | None:
        """Find the call that an answer belongs to: by id, else the oldest open one of its name."""
        if id_ is not None:
            return self.calls.get(id_)
        waiting = (c for c in self.calls.values() if c.call.name == name and not c.answered)
        return next(waiting, None)


class Origin(msgspec.Struct, frozen=True):
    """Where an event comes from: its agent, its parallel lane, the workflows around it."""

    agent: str
    lane: str
    inside: tuple[str, ...]
    path: str | None


class Lanes:
    """The runs that are open in each lane of one turn."""

    def __init__(self, authors: frozenset[str], new_group: Callable[[], int]) -> None:
        """Set the names of all authors of events in the turn; other names are workflows."""
        self._new_group = new_group
        self._authors = authors
        self._current: dict[str, AgentRun] = {}
        self._by_path: dict[str, AgentRun] = {}
        self._plain: dict[str, Origin] = {}
        self._before_fan_out: AgentRun | None = None
        self._group: int | None = None

    def origin(self, event: AnyEvent, within: str | None, expected: str | None) -> Origin:
        """Place an event; ``expected`` is the agent that control was last handed to.

        ``within`` is its branch, from the call on that set these lanes to work.
        """
        path = (event.node_info.path if event.node_info is not None else None) or None
        if path is None and not within:
            # The usual case: most events of one agent come from the same place.
            author = event.author or ""
            plain = self._plain.get(author)
            if plain is None:
                plain = self._plain[author] = Origin(author, _MAIN_LANE, (), None)
            return plain
        names = [step.partition("@")[0] for step in path.split("/")] if path else []
        agent = event.author or ""
        if names and names[-1] != agent and event.error_code and event.content is None:
            if names[-1] == expected or names[-1] in self._authors:
                agent = names[-1]
        branch = [step.partition("@")[0] for step in (within or "").split(".") if step]
        lane = within or _MAIN_LANE
        if branch and branch[-1] != agent and branch[-1] in self._authors:
            branch, lane = [], _MAIN_LANE
        exact = bool(names) and names[-1] == agent
        around = branch if exact else [*names, *branch]
        inside = [name for name in around if name not in self._authors and name != agent]
        return Origin(agent, lane, tuple(dict.fromkeys(inside)), path if exact else None)

    def find(self, origin: Origin) -> AgentRun | None:
        """Return the open run that an event continues."""
        current = self._current.get(origin.lane)
        if origin.path is not None:
            known = self._by_path.get(origin.path)
            return known if "@" in origin.path or known is current else None
        return current if current is not None and current.agent == origin.agent else None

    def enter(self, origin: Origin, run: AgentRun) -> tuple[list[AgentRun], int | None]:
        """Open a run; return the runs that came before it, and its group in a fan-out."""
        before, group = self._before(origin.lane)
        if origin.lane == _MAIN_LANE:
            self._current = {}
        self._current[origin.lane] = run
        if origin.path is not None:
            self._by_path[origin.path] = run
        return before, group

    def _before(self, lane: str) -> tuple[list[AgentRun], int | None]:
        if lane in self._current:
            return [self._current[lane]], None
        if lane == _MAIN_LANE:
            return [run for name, run in self._current.items() if name != _MAIN_LANE], None
        if not any(name != _MAIN_LANE for name in self._current):
            self._before_fan_out = self._current.pop(_MAIN_LANE, None)
            self._group = self._new_group()
        return ([self._before_fan_out] if self._before_fan_out else []), self._group


def read_turn(
    session: Session,
    id_: str,
    events: Sequence[AnyEvent],
    torn: bool = False,
    another_session: bool = False,
) -> Turn:
    """Read one invocation; ``torn`` when its stream was truncated."""
    reader = _TurnReader(session, id_, events, another_session=another_session)
    for event in events:
        reader.read(event)
    return reader.finish(torn)


def is_of_workflow(event: AnyEvent) -> bool:
    """Return whether an event only has the output of a node that is no agent, such as a join.

    Its author is the workflow: ``flow`` writes the event of the node ``flow@1/join@1``.
    """
    path = event.node_info.path if event.node_info is not None else None
    if event.output is None or event.content is not None or not path or event.model_version:
        return False
    *around, node = (step.partition("@")[0] for step in path.split("/"))
    return node != event.author and event.author in around


def _asked_by_node(event: AnyEvent) -> set[str | None]:
    """Return the ids of requests by which a node that is no agent asks a person.

    The author of a ``RequestInput`` is the workflow, as in ``is_of_workflow``.
    """
    path = event.node_info.path if event.node_info is not None else None
    parts = (event.content.parts if event.content is not None else None) or []
    calls = [part.function_call for part in parts if part.function_call is not None]
    if not path or not calls or event.usage_metadata is not None or event.model_version:
        return set()
    *around, node = (step.partition("@")[0] for step in path.split("/"))
    of_node = node != event.author and event.author in around and len(calls) == len(parts)
    own = of_node and all(call.name in _REQUESTS for call in calls)
    return {call.id for call in calls} if own else set()


def is_bookkeeping(event: AnyEvent) -> bool:
    """Return whether an event is only bookkeeping: state changes or agent ends without content."""
    return not (
        (event.content and event.content.parts)
        or event.partial
        or event.error_code
        or event.error_message
        or event.usage_metadata
        or (event.output is not None and not is_of_workflow(event))
        or (event.output_transcription and event.output_transcription.text)
        or (event.actions and event.actions.transfer_to_agent)
    )


class _TurnReader:
    """Reads the events of one turn in the order they came.

    ``_transfers`` are the turn's transfers that no answer refused, in the order they were made.
    """

    def __init__(
        self, session: Session, id_: str, events: Sequence[AnyEvent], *, another_session: bool
    ) -> None:
        self._session = session
        self._builder = session.builder
        self._turn = self._builder.turn(id_)
        session.history.begin(self._turn, another_session=another_session)
        self._transfers: list[Dispatch] = []
        authors: set[str] = set()
        self._branched: set[str] = set()
        for event in events:
            if event.author and event.author not in authors and not is_bookkeeping(event):
                if not _asked_by_node(event):
                    authors.add(event.author)
            if event.branch and "@" in event.branch:
                self._branched.update(event.branch.split("."))
        self._authors = frozenset(authors)
        # Not a method: a reference cycle would keep the whole turn in memory until garbage
        # collection.
        self._lanes = Lanes(self._authors, partial(self._builder.next_group, self._turn))
        self._called: dict[str, Lanes] = {}
        self._asked: set[str | None] = set()
        self._error: str | None = None
        self._cut = False

    def read(self, event: AnyEvent) -> None:
        if event.timestamp is not None:
            turn = self._turn
            turn.started = min(turn.started or event.timestamp, event.timestamp)
            turn.ended = max(turn.ended or event.timestamp, event.timestamp)
        if event.author is None:
            self._read_error_frame(event)
        elif event.author == "user":
            self._read_user(event)
        elif asked := _asked_by_node(event):
            self._asked |= asked  # no agent asks, but the turn waits for the answer
        elif not is_bookkeeping(event):
            self._read_agent(event)
        elif is_of_workflow(event):
            self._read_node(event)

    def finish(self, torn: bool) -> Turn:
        """Close what is still open."""
        turn = self._turn
        waiting: list[AgentRun] = []
        for run in turn.runs:
            for step in run.steps:
                if type(step) is ToolCall and step.status == "waiting":
                    waiting.append(run)
                    break
        status: TurnStatus = "waiting" if waiting or self._asked else "completed"
        error = self._error
        if error is not None:
            status = "failed"
        elif torn or self._cut:
            status, error = "incomplete", _TRUNCATED
        elif not (waiting or self._asked or turn.output):
            # Unless something proves that more was expected, there was no answer.
            steps = (step for run in turn.runs for step in run.steps)
            status, error = "incomplete", ends_early(steps, self._pending())
        last = turn.runs[-1] if turn.runs else None
        self._builder.end_turn(turn, status, error, last=last, waiting=waiting)
        return turn

    def _pending(self) -> Dispatch | None:
        """Return the pending transfer: the last one, until its target runs."""
        last = self._transfers[-1] if self._transfers else None
        return last if last is not None and not last.runs else None

    def _read_error_frame(self, event: AnyEvent) -> None:
        """Read the error frame that a server sends instead of an event."""
        frame = event.error if event.error is not None else event.detail
        message = event.error_message or (None if frame is None else str(frame))
        if message is None or self._error is not None:
            return
        self._error = message
        if self._turn.runs and self._pending() is None:
            self._turn.runs[-1].status, self._turn.runs[-1].error = "failed", message

    def _read_user(self, event: AnyEvent) -> None:
        parts = (event.content.parts if event.content else None) or []
        for part in parts:
            if part.function_response is not None:
                # The result of a waiting tool, or a yes or no to its question, which is no result.
                answer = part.function_response
                self._asked.discard(answer.id)
                opened = self._session.open_call(answer.id, answer.name or "")
                if opened is not None and answer.id not in self._session.asked_about:
                    self._settle(opened, answer, event)
        heard = said_content([part for part in parts if part.function_response is None])
        if not heard and event.input_transcription:
            heard = Content(text=event.input_transcription.text)
        if heard:
            before = self._turn.input
            self._turn.input = heard if before is None else _joined(before, heard)

    def _read_node(self, event: AnyEvent) -> None:
        """Read the output of a node that is no agent: it can be the answer of the workflow."""
        info = event.node_info
        top = info.path.partition("/")[0] if info is not None and info.path else None
        if info is not None and top in (info.output_for or ()):
            output = event.output
            self._turn.output = (
                Content(text=output) if type(output) is str else Content(data=output)
            )

    def _read_agent(self, event: AnyEvent) -> None:
        # Only a path can name an agent that is not the author, so this is only needed with a path.
        pending = self._pending() if event.node_info is not None else None
        lanes, within, call = self._place(event)
        origin = lanes.origin(event, within, pending.to_agent if pending else None)
        run = self._run(origin, event, lanes, call)
        if event.partial:
            self._cut = True
        # A paused call is answered with an earlier time than it was made at.
        if event.timestamp and (run.ended is None or event.timestamp > run.ended):
            run.ended = event.timestamp
        if event.model_version:
            run.model = event.model_version
        if event.usage_metadata is not None or event.model_version:
            run.usage = add_usage(run.usage, event.usage_metadata)
        calls: list[FunctionCall] = []
        answers: list[FunctionResponse] = []
        rest: list[Part] = []
        for part in (event.content.parts if event.content is not None else None) or ():
            if part.function_call is not None:
                calls.append(part.function_call)
            if part.function_response is not None:
                answers.append(part.function_response)
            elif part.function_call is None:
                rest.append(part)
        # Most events are a call or its answer, without text.
        if rest or event.output is not None or event.output_transcription is not None:
            self._say(run, event, rest, final=not calls and not answers)
        if calls:
            self._read_calls(run, calls, event)
        if answers:
            self._read_answers(run, answers, event)
        ordered = event.actions.transfer_to_agent if event.actions else None
        if ordered and not answers:
            # No tool call made this transfer: a callback can also make one.
            dispatch = self._transfer(run, ordered, event.timestamp, None)
            dispatch.description = event.actions.transfer_reason if event.actions else None
        if event.error_code or event.error_message:
            self._error = event.error_message or event.error_code or ""
            run.status, run.error = "failed", self._error

    def _place(self, event: AnyEvent) -> tuple[Lanes, str | None, OpenCall | None]:
        """Return the lanes of an event, its branch in them, and the call that opened them.

        An agent of the mode ``task`` or ``single_turn``, and a workflow used as a tool, run in a
        branch that names the call: ``clerk@adk-488e1867``. Two calls of one agent have two.
        """
        branch = event.branch
        if not branch or not self._branched or "@" not in branch:
            return self._lanes, branch, None
        steps = branch.split(".")
        for place in range(len(steps) - 1, -1, -1):
            name, _, id_ = steps[place].partition("@")
            opened = self._session.calls.get(id_)
            if opened is not None and opened.dispatch is not None and opened.call.name == name:
                if id_ not in self._called:
                    new_group = partial(self._builder.next_group, self._turn)
                    self._called[id_] = Lanes(self._authors, new_group)
                return self._called[id_], ".".join(steps[place + 1 :]), opened
        return self._lanes, branch, None

    def _run(
        self, origin: Origin, event: AnyEvent, lanes: Lanes, call: OpenCall | None
    ) -> AgentRun:
        due = None
        for transfer in self._transfers:
            if not transfer.runs and transfer.to_agent == origin.agent:
                due = transfer
                break
        else:
            # A hand-over to an agent needs a new run; other events continue an open one.
            known = lanes.find(origin)
            if known is not None:
                return known
        first = not self._turn.runs
        run = self._builder.run(
            self._turn, origin.agent, inside=list(origin.inside), started=event.timestamp
        )
        before, group = lanes.enter(origin, run)
        if first:
            run.input = self._turn.input
        if call is not None and (called := call.dispatch) is not None:
            if not before:
                called.to_kind = "agent" if called.to_agent == run.agent else "workflow"
                # An agent that opens a turn continues, with what the user answered.
                run.input, call.started = run.input if first else called.prompt, run
                self._builder.start(called, run)
            if called.to_kind == "workflow" and called.to_agent not in run.inside:
                run.inside.insert(0, called.to_agent)
            if not before:
                return run
        if event.isolation_scope is None and call is None:
            self._session.history.give(self._turn, run, event.branch or "")
        due = due or self._into_workflow(run)
        if due is not None:
            self._builder.start(due, run)
            return run
        for sender in before:
            # A workflow agent continued from one agent to the next. Without definitions, only their
            # order shows that, and without branches they may have run in parallel.
            dispatch = self._builder.dispatch(
                self._turn, "sequence", sender, run.agent, run.started
            )
            by_workflow = self._session.branches and passed_by_workflow(
                self._builder.catalog, sender.agent, run.agent
            )
            dispatch.basis, dispatch.group = "structure" if by_workflow else "order", group
            self._builder.start(dispatch, run)
        return run

    def _into_workflow(self, run: AgentRun) -> Dispatch | None:
        """Match a transfer to a workflow agent, which never speaks, with its first speaker."""
        dispatch = self._pending()
        if dispatch is None or dispatch.to_agent in self._authors:
            return None
        dispatch.to_kind = "workflow"
        if dispatch.to_agent not in run.inside:
            run.inside.insert(0, dispatch.to_agent)
        return dispatch

    def _say(self, run: AgentRun, event: AnyEvent, parts: list[Part], final: bool) -> None:
        thoughts = [part for part in parts if part.thought]
        said = said_content([part for part in parts if not part.thought] if thoughts else parts)
        if not said and event.output is not None:
            all_parts = (event.content.parts if event.content is not None else None) or []
            if any(p.function_response and p.function_response.name == _FINISH for p in all_parts):
                # The agent's call of `finish_task` says this to its caller.
                run.output = result_content(event.output)
                return
            said = Content(data=event.output)
        if not said and event.output_transcription and event.output_transcription.text:
            said = Content(text=event.output_transcription.text)
        sources = [s for s in (event.grounding_metadata, event.citation_metadata) if s] or None
        thought = said_content(thoughts) if thoughts else None
        for content, is_thought in ((thought, True), (said, False)):
            if content:
                step = Said(id=self._builder.new_id("said"), content=content, at=event.timestamp)
                step.thought, step.sources = is_thought, None if is_thought else sources
                run.steps.append(step)
        if said and final:
            run.output = self._turn.output = said
            self._error = None

    def _read_calls(self, run: AgentRun, wires: list[FunctionCall], event: AnyEvent) -> None:
        """Read the calls of one event; several to agents were issued together."""
        group = None
        if len(wires) > 1 and sum(self._is_agent(wire, run) for wire in wires) > 1:
            group = self._builder.next_group(self._turn)
        asked: set[str] = set()
        for wire in wires:
            if wire.name in _REQUESTS and self._read_request(wire):
                continue
            waits = wire.id is not None and wire.id in (event.long_running_tool_ids or ())
            call = ToolCall(
                id=self._builder.new_id("call", wire.id),
                name=wire.name or "",
                arguments=wire.args,
                status="waiting" if waits else "unanswered",
                at=event.timestamp,
            )
            run.steps.append(call)
            opened = self._session.calls[wire.id or call.id] = OpenCall(call, run)
            target = target_of(wire.args)
            if wire.name == TRANSFER_TOOL and target is not None:
                # Of two calls to one agent in one answer of the model, ADK carries out one.
                again = target in asked
                opened.dispatch = self._transfer(run, target, event.timestamp, call, again=again)
                asked.add(target)
            elif wire.name == TRANSFER_TOOL:
                call.status, call.error = "failed", f"`{TRANSFER_TOOL}` names no agent"
            elif self._is_agent(wire, run):
                self._delegate(opened, wire, event, group)
            elif not self._builder.catalog and _is_request(wire.args or {}):
                call.unknown.append("dispatch")

    def _is_agent(self, wire: FunctionCall, run: AgentRun) -> bool:
        """Return whether a call is for another agent: an AgentTool has the name of its agent.

        A call that agents run in a branch of is also for them: see ``_place``.
        """
        if self._has_branch(wire):
            return True
        return wire.name in self._builder.catalog and wire.name != run.agent

    def _has_branch(self, wire: FunctionCall) -> bool:
        return f"{wire.name}@{wire.id}" in self._branched

    def _transfer(
        self,
        run: AgentRun,
        target: str,
        at: float | None,
        call: ToolCall | None,
        *,
        again: bool = False,
    ) -> Dispatch:
        dispatch = self._builder.dispatch(self._turn, "transfer", run, target, at, call)
        if not again:
            self._transfers.append(dispatch)
        run.steps.append(self._builder.handed_off(dispatch))
        return dispatch

    def _delegate(
        self, opened: OpenCall, wire: FunctionCall, event: AnyEvent, group: int | None
    ) -> None:
        """Delegate to an agent; behind an AgentTool, only the call and its answer show its run."""
        agent, run, arguments = opened.call.name, opened.run, wire.args or {}
        dispatch = self._builder.dispatch(
            self._turn, "delegate", run, agent, event.timestamp, opened.call
        )
        run.steps.append(self._builder.handed_off(dispatch))
        plain = _is_request(arguments)
        dispatch.basis = "structure"
        dispatch.group = group
        dispatch.prompt = Content(text=arguments["request"]) if plain else Content(data=arguments)
        opened.dispatch = dispatch
        if not self._has_branch(wire):
            self._builder.unseen_run(self._turn, dispatch, dispatch.prompt)

    def _read_request(self, wire: FunctionCall) -> bool:
        """Record which tool waits for a person; false if the model itself asks the person."""
        arguments = wire.args or {}
        original = arguments.get("originalFunctionCall") or arguments.get("original_function_call")
        about = original.get("id") if isinstance(original, dict) else None
        about = about or arguments.get("functionCallId") or arguments.get("function_call_id")
        if wire.id is not None and isinstance(about, str):
            self._session.asked_about[wire.id] = about
            if about in self._session.calls:
                self._session.calls[about].call.status = "waiting"
        # A model can ask by a tool of the same name (`request_input`), about no other call.
        return about is not None or wire.name != _ASKED_BY_MODEL

    def _read_answers(self, run: AgentRun, wires: list[FunctionResponse], event: AnyEvent) -> None:
        """Read the answers of one event, matched with their calls by id.

        An event that answers several calls states one transfer for all of them: `check_stock` and
        `transfer_to_agent` in one answer of the model. The call that hands over made it.
        """
        actions, paused = _NO_ACTIONS, _NONE_PAUSED
        if event.actions is not None:
            actions = event.actions
            paused = {
                *(actions.requested_tool_confirmations or ()),
                *(actions.requested_auth_configs or ()),
            }
        target, handed_over = actions.transfer_to_agent, False
        for wire in wires:
            opened = self._session.open_call(wire.id, wire.name or "")
            if opened is None:  # the call was made before the recording begins
                call = ToolCall(
                    id=self._builder.new_id("call", wire.id),
                    name=wire.name or "",
                    unknown=["arguments"],
                )
                run.steps.append(call)
                opened = self._session.calls[wire.id or call.id] = OpenCall(call, run)
            if wire.id in paused:
                opened.call.status = "waiting"
                continue
            if target and opened.dispatch is None and len(wires) == 1:
                opened.dispatch = self._transfer(opened.run, target, opened.call.at, opened.call)
            handed_over |= opened.dispatch is not None and opened.dispatch.kind == "transfer"
            self._settle(opened, wire, event)
        if target and not handed_over:
            # Any of the tools can have ordered it: `tool_context.actions` of all are merged.
            self._transfer(run, target, event.timestamp, None)

    def _settle(self, opened: OpenCall, wire: FunctionResponse, event: AnyEvent) -> None:
        call, dispatch, error = opened.call, opened.dispatch, error_of(wire.response)
        if error and call.status == "waiting" and wire.id in self._session.asked_about.values():
            call.status, call.refused_by = "refused", "user"
        else:
            call.status = "failed" if error else "ok"
        opened.answered = True
        call.ended = not_before(call.at, event.timestamp)
        if dispatch is None:
            call.error = error
            call.result = None if error else result_content(wire.response)
            return
        call.error = None  # the call named no agent, but its answer did
        if dispatch.kind == "transfer":
            dispatch.ended = not_before(dispatch.started, event.timestamp)
            # If an event answers several calls, it only carries out the transfer that it names.
            target = event.actions.transfer_to_agent if event.actions else None
            parts = (event.content.parts if event.content else None) or []
            alone = sum(part.function_response is not None for part in parts) == 1
            if target and alone:
                dispatch.to_agent = target
            if error:
                dispatch.status, dispatch.error = "refused", error
                if dispatch in self._transfers:
                    self._transfers.remove(dispatch)
            return
        if not error and opened.started is not None and opened.started.status == "failed":
            # ADK gives the caller a text of its own: "Error running sub-agent: ...".
            error = opened.started.error
        self._builder.answer(
            dispatch,
            "failed" if error else "completed",
            event.timestamp,
            result=None if call.status == "failed" else result_content(wire.response),
            error=error,
        )
        opened.run.steps.append(self._builder.got_back(dispatch, event.timestamp))


def _is_request(arguments: dict[str, Any]) -> bool:
    """Return whether a call has the arguments of an AgentTool without a schema of its own."""
    return arguments.keys() == {"request"} and isinstance(arguments["request"], str)


def _joined(first: Content, more: Content) -> Content:
    texts = [content.text for content in (first, more) if content.text]
    return Content(
        text="\n".join(texts) if texts else None,
        data=more.data if more.data is not None else first.data,
        parts=[*(first.parts or []), *(more.parts or [])] or None,
    )

"""Tool calls of ADK events and their answers, and the turn that they are written into."""

from __future__ import annotations

from typing import Any, Literal

from baton.formats.adk_events import Actions, Event
from baton.formats.evalset import FunctionCall, FunctionResponse
from baton.model import AgentRun, Content, Dispatch, GotBack, HandedOff, ToolCall, Turn
from baton.readers.catalog import Catalog
from baton.readers.ids import Ids

from .wire import error_of, result_content


def not_before(started: float | None, at: float | None) -> float | None:
    """Return the time something ended; ``None`` when the source puts that before its start."""
    return None if started is not None and at is not None and at < started else at


class OpenCall:
    """A tool call that may still be answered, maybe in a later turn."""

    def __init__(self, call: ToolCall, run: AgentRun) -> None:
        self.call = call
        self.run = run
        self.dispatch: Dispatch | None = None
        self.inner: AgentRun | None = None
        self.answered = False


class Session:
    """Ids, agent definitions and open calls of one conversation."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.calls: dict[str, OpenCall] = {}
        self.asked_about: dict[str, str] = {}
        self.new_id = Ids().new

    def open_call(self, id_: str | None, name: str) -> OpenCall | None:
        """Find the call an answer belongs to: by id, else the oldest open one of its name."""
        if id_ is not None:
            return self.calls.get(id_)
        waiting = (c for c in self.calls.values() if c.call.name == name and not c.answered)
        return next(waiting, None)


class Draft:
    """A turn to which runs, dispatches and steps are added."""

    def __init__(self, session: Session, id_: str) -> None:
        self.session = session
        self.turn = Turn(id=session.new_id("turn", id_))
        self.transfers: list[Dispatch] = []
        self._depths: dict[str, int] = {}

    @property
    def pending(self) -> Dispatch | None:
        """The hand-over that control is on its way with: the last one, while none arrived."""
        last = self.transfers[-1] if self.transfers else None
        return last if last is not None and not last.runs else None

    def dispatch(
        self,
        kind: Literal["transfer", "delegate", "sequence"],
        sender: AgentRun,
        to_agent: str,
        at: float | None,
        call: ToolCall | None = None,
    ) -> Dispatch:
        """Add a dispatch; a call or hand-over that makes it gets its steps."""
        card = self.session.catalog.get(to_agent)
        told = card is not None and card.tools is not None
        dispatch = Dispatch(
            id=self.session.new_id("dispatch"),
            kind=kind,
            from_run=sender.id,
            from_agent=sender.agent,
            to_agent=to_agent,
            call=call.id if call else None,
            tools_allowed=card.tools if card else None,
            tools_source="definition" if told else None,
            status="completed" if kind == "sequence" else "unanswered",
            depth=self._depth(sender) + (kind == "delegate"),
            started=at,
            unknown=[] if told else ["tools_allowed", "tools_source"],
        )
        self.turn.dispatches.append(dispatch)
        self._depths[dispatch.id] = dispatch.depth
        if kind == "transfer":
            self.transfers.append(dispatch)
        if call is not None:
            call.dispatch = dispatch.id
        if kind != "sequence":
            step = self.session.new_id("step")
            sender.steps.append(HandedOff(id=step, dispatch=dispatch.id, at=at))
        return dispatch

    def got_back(self, run: AgentRun, dispatch: Dispatch, at: float | None) -> None:
        """Note that the answer to a dispatch reached the run that made it."""
        step = self.session.new_id("step")
        run.steps.append(GotBack(id=step, dispatch=dispatch.id, at=at))

    def new_group(self) -> int:
        """Return a number for dispatches issued together."""
        return max((d.group or 0 for d in self.turn.dispatches), default=0) + 1

    def _depth(self, run: AgentRun) -> int:
        return max((self._depths.get(id_, 0) for id_ in run.started_by), default=0)


TRANSFER_TOOL = "transfer_to_agent"
REQUESTS = frozenset({"adk_request_confirmation", "adk_request_credential", "adk_request_input"})
_NO_ACTIONS = Actions()


class CallReader:
    """Puts calls and answers into the turn."""

    def __init__(self, draft: Draft) -> None:
        self._draft = draft
        self._session = draft.session

    def calls(self, run: AgentRun, wires: list[FunctionCall], event: Event) -> None:
        """Read the calls of one event; several to agents were issued together."""
        agents = [wire for wire in wires if self._is_agent(wire.name, run)]
        group = self._draft.new_group() if len(agents) > 1 else None
        for wire in wires:
            if wire.name in REQUESTS:
                self._request(wire)
            else:
                self._call(run, wire, event, group)

    def answers(self, run: AgentRun, wires: list[FunctionResponse], event: Event) -> None:
        """Read the answers of one event, matched with their calls by id."""
        actions = event.actions or _NO_ACTIONS
        paused = {
            *(actions.requested_tool_confirmations or ()),
            *(actions.requested_auth_configs or ()),
        }
        for wire in wires:
            opened = self._session.open_call(wire.id, wire.name or "")
            if opened is None:
                opened = self._unseen_call(run, wire)
            if wire.id in paused:
                opened.call.status = "waiting"
                continue
            if actions.transfer_to_agent and opened.dispatch is None:
                opened.dispatch = self._draft.dispatch(
                    "transfer",
                    opened.run,
                    actions.transfer_to_agent,
                    opened.call.at,
                    opened.call,
                )
            self._settle(opened, wire, event)

    def answer_from_user(self, wire: FunctionResponse, event: Event) -> None:
        """Read what a person answered: the result of a waiting tool, or a yes or no to one."""
        if wire.id in self._session.asked_about:
            return
        opened = self._session.open_call(wire.id, wire.name or "")
        if opened is not None:
            self._settle(opened, wire, event)

    def _is_agent(self, name: str | None, run: AgentRun) -> bool:
        return name in self._session.catalog and name != run.agent

    def _call(self, run: AgentRun, wire: FunctionCall, event: Event, group: int | None) -> None:
        waits = wire.id is not None and wire.id in (event.long_running_tool_ids or ())
        call = ToolCall(
            id=self._session.new_id("call", wire.id),
            name=wire.name or "",
            arguments=wire.args,
            status="waiting" if waits else "unanswered",
            at=event.timestamp,
        )
        run.steps.append(call)
        opened = self._session.calls[wire.id or call.id] = OpenCall(call, run)
        target = (wire.args or {}).get("agent_name")
        if wire.name == TRANSFER_TOOL and isinstance(target, str):
            opened.dispatch = self._draft.dispatch("transfer", run, target, event.timestamp, call)
        elif self._is_agent(wire.name, run):
            self._delegate(opened, wire.args or {}, event, group)

    def _delegate(
        self, opened: OpenCall, arguments: dict[str, Any], event: Event, group: int | None
    ) -> None:
        """Open the run behind an AgentTool, of which only the call and its answer are seen."""
        agent = opened.call.name
        dispatch = self._draft.dispatch("delegate", opened.run, agent, event.timestamp, opened.call)
        request = arguments.get("request")
        plain = isinstance(request, str) and len(arguments) == 1
        dispatch.basis = "structure"
        dispatch.group = group
        dispatch.prompt = Content(text=request) if plain else Content(data=arguments)
        opened.dispatch = dispatch
        opened.inner = AgentRun(
            id=self._session.new_id("run"),
            agent=agent,
            started_by=[dispatch.id],
            input=dispatch.prompt,
            status="unknown",
            started=event.timestamp,
            unknown=["steps", "tools_offered", "model", "usage"],
        )
        dispatch.runs = [opened.inner.id]
        self._draft.turn.runs.append(opened.inner)

    def _request(self, wire: FunctionCall) -> None:
        """Note which tool waits for a person; the request is ADK's own call, not the model's."""
        arguments = wire.args or {}
        original = arguments.get("originalFunctionCall") or arguments.get("original_function_call")
        about = original.get("id") if isinstance(original, dict) else None
        about = about or arguments.get("functionCallId") or arguments.get("function_call_id")
        if wire.id is not None and isinstance(about, str):
            self._session.asked_about[wire.id] = about
            if about in self._session.calls:
                self._session.calls[about].call.status = "waiting"

    def _unseen_call(self, run: AgentRun, wire: FunctionResponse) -> OpenCall:
        """Take an answer to a call that was made before the recording begins."""
        call = ToolCall(
            id=self._session.new_id("call", wire.id), name=wire.name or "", unknown=["arguments"]
        )
        run.steps.append(call)
        opened = self._session.calls[wire.id or call.id] = OpenCall(call, run)
        return opened

    def _settle(self, opened: OpenCall, wire: FunctionResponse, event: Event) -> None:
        call, dispatch, error = opened.call, opened.dispatch, error_of(wire.response)
        asked = wire.id in self._session.asked_about.values()
        if error and asked and call.status == "waiting":
            call.status, call.refused_by = "refused", "user"
        else:
            call.status = "failed" if error else "ok"
        opened.answered = True
        call.ended = not_before(call.at, event.timestamp)
        if dispatch is None:
            call.error = error
            call.result = None if error else result_content(wire.response)
        elif dispatch.kind == "transfer":
            self._hand_over(dispatch, error, event)
        else:
            self._come_back(opened, dispatch, wire, event, error)

    def _hand_over(self, dispatch: Dispatch, error: str | None, event: Event) -> None:
        """Settle a transfer; an event that answers several carries out only the one it names."""
        target = event.actions.transfer_to_agent if event.actions else None
        parts = (event.content.parts if event.content else None) or []
        alone = sum(part.function_response is not None for part in parts) == 1
        if target and alone:
            dispatch.to_agent = target
        dispatch.ended = not_before(dispatch.started, event.timestamp)
        if error:
            dispatch.status, dispatch.error = "refused", error
            self._draft.transfers.remove(dispatch)

    def _come_back(
        self,
        opened: OpenCall,
        dispatch: Dispatch,
        wire: FunctionResponse,
        event: Event,
        error: str | None,
    ) -> None:
        dispatch.error = error
        dispatch.result = None if error else result_content(wire.response)
        dispatch.status = "failed" if error else "completed"
        dispatch.ended = not_before(dispatch.started, event.timestamp)
        if opened.inner is not None:
            opened.inner.output, opened.inner.error = dispatch.result, error
            opened.inner.status = "failed" if error else "completed"
            opened.inner.ended = dispatch.ended
        self._draft.got_back(opened.run, dispatch, event.timestamp)

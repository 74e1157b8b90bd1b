"""Tool calls of ADK events and their answers, hand-overs and pauses among them."""

from __future__ import annotations

from typing import Any

from baton.formats.adk_events import Actions, Event
from baton.formats.evalset import FunctionCall, FunctionResponse
from baton.model import AgentRun, Content, Dispatch, ToolCall

from .content import error_of, result_content
from .draft import Draft, OpenCall, not_before

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

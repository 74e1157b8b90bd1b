"""A plug-in of ADK that lets stand-ins answer for tools and agents, in this process.

Loaded only when agents of ADK are played: it imports ADK.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import msgspec
from google.adk.agents import BaseAgent
from google.adk.events.event import Event
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.transfer_to_agent_tool import TransferToAgentTool
from google.genai import types

from baton.model import MadeCall, Message, ProviderError
from baton.stand_ins import Answer, Decided, Play, PreparedAnswer, Request, StandInError

_STEERING = frozenset({"exit_loop", "finish_task", "set_model_response"})
"""ADK tools that only steer ADK. With a stand-in in their place, a loop would never end."""
_CALLED_BACK = frozenset({"function_declarations", "computer_use"})
"""Kinds of tools that a model calls and ADK runs. All others run in the model's service."""
_PLAYED_HERE = frozenset({"BaseAgent", "LlmAgent", "LoopAgent", "ParallelAgent", "SequentialAgent"})
"""ADK agents whose tools ADK calls. All others delegate to another system: a server by A2A, a
LangGraph graph, an agent in a cloud."""
_BY_TOOL: ContextVar[str | None] = ContextVar("baton_adk_by_tool", default=None)
"""The agent that an AgentTool runs and whose call has already been decided."""
TRANSFER = "transfer_to_agent"


class StandInPlugin(BasePlugin):  # type: ignore[misc]
    """Lets the stand-ins of one case answer, in all agents of a runner.

    A refusal ends the agents one by one, and :meth:`Play.check` reports it. The plug-in does not
    raise, because ADK would log each of its errors with several tracebacks.

    Args:
        play: the stand-ins.
        before: the messages before the user's message.
        since: the messages after it, before the agent continues.
        ends_at: an agent that is not played: an agent that hands work to it has finished its own.
    """

    def __init__(
        self,
        play: Play,
        before: Sequence[Message] = (),
        since: Sequence[Message] = (),
        ends_at: str | None = None,
    ) -> None:
        super().__init__(name="baton_stand_ins")
        self._play = play
        self._ends_at = ends_at
        self._said = (before, since)
        self._prepared: dict[str, PreparedAnswer] = {}

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Add the earlier messages to the history, once. An AgentTool has its own session."""
        if not isinstance(invocation_context.agent, BaseAgent):
            raise ProviderError(
                "stand-ins cannot answer in a Workflow: its functions are not called as tools are"
            )
        before, since = self._said
        self._said = ((), ())
        events = invocation_context.session.events
        if events and (before or since):
            now = events[-1].invocation_id
            name = invocation_context.agent.name
            events[:0] = events_of(before, "baton-before", name)
            events += events_of(since, now, name, len(before))

    async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> Any:
        """Answer for an agent that has a stand-in; end one that would run elsewhere."""
        by_tool = _BY_TOOL.get() == agent.name
        try:
            if not by_tool and not self._play.stops and self._play.stands_in_for(agent.name):
                return await self._agent(agent, callback_context)
            self._refuse_elsewhere(agent)
        except ProviderError:
            pass
        return self._ended()

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> Any:
        """End an agent that has tools which the model's service would run itself."""
        for tool in llm_request.config.tools or ():
            for kind in getattr(tool, "model_fields_set", ()):
                if kind not in _CALLED_BACK and getattr(tool, kind) is not None:
                    request = Request(kind, agent=callback_context.agent_name)
                    with suppress(ProviderError):
                        self._play.refuse_elsewhere(request, "in the service of the model")
        if self._play.refused:
            return LlmResponse(error_code="REFUSED", error_message=self._play.refused[0])
        return None

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Remove calls that hand work to the agent that is not played, so that the turn ends."""
        del callback_context
        if self._ends_at is not None and llm_response.content is not None:
            parts = llm_response.content.parts or []
            kept = [each for each in parts if not self._hands_back(each)]
            llm_response.content.parts = kept or [types.Part(text="")]

    def _hands_back(self, part: Any) -> bool:
        call = part.function_call
        is_transfer = call is not None and call.name == TRANSFER
        return is_transfer and (call.args or {}).get("agent_name") == self._ends_at

    async def before_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any
    ) -> dict[str, Any] | None:
        """Answer a call of a tool or an agent; ``None`` lets ADK run it."""
        _BY_TOOL.set(None)
        if type(tool) is BaseTool:
            return None  # the model made up the name, and ADK reports that to it
        if _steers(tool) or _waits_for_a_yes(tool, tool_context):
            return None
        request = self._request_of(tool, tool_args, tool_context)
        if request is None:
            return None
        try:
            prepared = await self._play.before(request)
            if prepared.answer is None:
                if isinstance(tool, AgentTool):
                    self._enter(tool, request)
                self._prepared[tool_context.function_call_id] = prepared
                return None
            value = self._play.after(prepared, prepared.answer)
        except Decided:
            return _end(tool_context, {"result": None})
        except ProviderError as refused:
            return _end(tool_context, {"error": str(refused)})
        except (StandInError, TimeoutError) as error:
            answer: dict[str, Any] = await _failed(tool, tool_args, tool_context, error)
            return answer
        # ADK treats an empty answer of a long-running tool as not yet available.
        return {} if value is None and tool.is_long_running else _response(value)

    async def after_tool_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> dict[str, Any] | None:
        """Change the result of a tool if a fault applies to it."""
        del tool, tool_args
        _BY_TOOL.set(None)
        prepared = self._prepared.pop(tool_context.function_call_id, None)
        if prepared is None:
            return None
        changed = self._play.after(prepared, Answer(result, by=None))
        return None if changed is result else _response(changed)

    async def on_tool_error_callback(
        self, *, tool: Any, tool_args: dict[str, Any], tool_context: Any, error: Exception
    ) -> None:
        """Discard a call that ended in an error of the tool."""
        del tool, tool_args, error
        _BY_TOOL.set(None)
        self._prepared.pop(tool_context.function_call_id, None)

    def _refuse_elsewhere(self, agent: Any) -> None:
        """Raise ProviderError for work of an agent that makes no call a stand-in could answer."""
        name = agent.name
        own = (each for each in type(agent).__mro__ if each.__module__.startswith("google.adk."))
        if next(own).__name__ not in _PLAYED_HERE:
            self._play.refuse_elsewhere(Request(name, agent=name), "outside of ADK")
        if getattr(agent, "code_executor", None) is not None:
            self._play.refuse_elsewhere(Request("code_executor", agent=name), "without a call")
        for tool in getattr(agent, "tools", None) or ():
            if any(each.__name__ == "PreloadMemoryTool" for each in type(tool).__mro__):
                self._play.refuse_elsewhere(Request(tool.name, agent=name), "without a call")

    def _ended(self) -> Any:
        """Return the message of an agent that no longer runs, after something was refused."""
        return _content(self._play.refused[0]) if self._play.refused else None

    def _request_of(self, tool: Any, arguments: dict[str, Any], context: Any) -> Request | None:
        caller, id_ = context.agent_name, context.function_call_id
        if isinstance(tool, TransferToAgentTool):
            to = arguments.get("agent_name")
            if not self._play.stops or not isinstance(to, str):
                return None  # a stand-in for the agent answers in the agent's place
            return Request(to, None, caller, "agent", id_, None, "transfer", tool.name)
        if isinstance(tool, AgentTool):
            request = arguments.get("request")
            plain = isinstance(request, str) and len(arguments) == 1
            prompt = request if plain else copy.deepcopy(arguments)
            return Request(tool.agent.name, prompt, caller, "agent", id_, tool=tool.name)
        return Request(
            tool.name, copy.deepcopy(arguments), caller, id=id_, schema=_schema_of_result(tool)
        )

    def _enter(self, tool: Any, request: Request) -> None:
        if not tool.include_plugins:
            self._play.refuse_elsewhere(
                Request(request.name, agent=request.agent),
                "without plug-ins (`include_plugins=False`)",
            )
        _BY_TOOL.set(request.name)

    async def _agent(self, agent: Any, context: Any) -> Any:
        """Answer in place of an agent that received control."""
        content = context.user_content
        text = (
            "".join(part.text or "" for part in content.parts or ()) if content is not None else ""
        )
        request = Request(agent.name, text, kind="agent", dispatch="transfer", tool=TRANSFER)
        prepared = await self._play.before(request)
        if prepared.answer is None:
            self._play.refused.append(
                f"faults of the agent `{agent.name}` need an answer that they change: control "
                "passes to it, so nothing comes back; give one as `answers`"
            )
            return self._ended()
        answer = self._play.after(prepared, prepared.answer)
        return _content(answer if isinstance(answer, str) else msgspec.json.encode(answer).decode())


def _content(text: str) -> Any:
    return types.Content(role="model", parts=[types.Part(text=text)])


def _end(context: Any, answer: dict[str, Any]) -> dict[str, Any]:
    """End the agent that made a call, so that ADK does not call its model again."""
    context.actions.skip_summarization = True
    return answer


async def _failed(tool: Any, arguments: dict[str, Any], context: Any, error: Exception) -> Any:
    """Return what a model receives for a call that failed.

    The user's callbacks for such errors run first, as they do for a tool that raises. Without a
    callback, the model receives the error in the form that ADK tools use, and continues.
    """
    invocation = context.get_invocation_context()
    callback_arguments = {"tool": tool, "tool_context": context, "error": error}
    answer = await invocation.plugin_manager.run_on_tool_error_callback(
        tool_args=arguments, **callback_arguments
    )
    for callback in getattr(invocation.agent, "canonical_on_tool_error_callbacks", ()):
        if answer is None:
            answer = callback(args=arguments, **callback_arguments)
            answer = await answer if inspect.isawaitable(answer) else answer
    return {"error": str(error)} if answer is None else answer


def _steers(tool: Any) -> bool:
    own = "google.adk."  # a user's function can also have the name `exit_loop`
    function = getattr(tool, "func", None)
    return tool.name in _STEERING and (function or type(tool)).__module__.startswith(own)


def _waits_for_a_yes(tool: Any, context: Any) -> bool:
    """Return whether a person has to allow a tool first: ADK asks, and does not run it."""
    # If a function decides by the arguments, callbacks can still change the arguments.
    always = getattr(tool, "_require_confirmation", False) is True
    return always and context.tool_confirmation is None


def _response(value: Any) -> dict[str, Any]:
    """Wrap a result as ADK does. If ``None`` were returned, ADK would run the tool."""
    return value if isinstance(value, dict) else {"result": value}


def _schema_of_result(tool: Any) -> dict[str, Any] | None:
    """Return the JSON Schema of a tool's result, if its declaration states one."""
    declaration = tool._get_declaration()
    schema = getattr(declaration, "response_json_schema", None)
    return schema if isinstance(schema, dict) else None


def events_of(
    messages: Sequence[Message], invocation: str, agent: str, first: int = 0
) -> Iterator[Any]:
    """Convert messages to events, in the form in which ADK writes them into a session.

    Messages of an agent without a name are attributed to ``agent``.
    """
    for number, message in enumerate(messages, first):
        author = "user" if message.role == "user" else message.agent or agent
        parts = [types.Part(text=message.text)] if message.text else []
        answers: list[Any] = []
        later: list[Any] = []
        for place, call in enumerate(message.calls):
            id_ = f"baton-call-{number}-{place}"
            arguments = call.arguments if isinstance(call.arguments, dict) else {}
            made = types.FunctionCall(id=id_, name=call.name, args=arguments)
            parts.append(types.Part(function_call=made))
            response = _recorded_response(call)
            if call.name == TRANSFER and call.result is not None:
                # The receiver of a transfer speaks for itself: its text is not the tool's answer.
                text = types.Part(text=call.result.plain())
                later.append(_event(arguments.get("agent_name"), "model", [text], invocation))
                response = {"result": None}
            answer = types.FunctionResponse(id=id_, name=call.name, response=response)
            answers.append(types.Part(function_response=answer))
        if parts:
            yield _event(author, "user" if message.role == "user" else "model", parts, invocation)
        if answers:
            yield _event(author, "user", answers, invocation)
        yield from later


def _event(author: str | None, role: str, parts: list[Any], invocation: str) -> Any:
    content = types.Content(role=role, parts=parts)
    return Event(author=author or "user", invocation_id=invocation, content=content)


def _recorded_response(call: MadeCall) -> dict[str, Any]:
    if call.error is not None or call.status in ("failed", "refused"):
        return {"error": call.error or "the call failed"}
    if call.result is None:
        return {"result": None}
    result = call.result
    return _response(result.data if result.data is not None else result.text)

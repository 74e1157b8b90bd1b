"""Baton's plug-in for a server of Google ADK: stand-ins and changed texts over HTTP.

    App(name="desk", root_agent=desk, plugins=[baton.adk.Plugin()])

or ``adk api_server --extra_plugins baton.adk.Plugin FOLDER``. It does nothing unless the server is
started with ``BATON_ADK_PLUGIN=on``: then every client can choose the texts of the agents.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import msgspec
from google.adk.agents import BaseAgent
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from baton.model import Case, InputError, ProviderError
from baton.providers.adk_play import SessionKey, trouble_of
from baton.providers.adk_plugin_messages import FORMAT, NAME, SWITCH, Order, passed
from baton.providers.frameworks.adk_agents import Agents
from baton.stand_ins import Play, play_of

__all__ = ["Plugin"]

_KEPT = 200
"""The most sessions at once; the oldest one is dropped."""


class Plugin(BasePlugin):  # type: ignore[misc]
    """Plays cases of Baton with the agents of a server, in sessions that live in memory.

    The agents, the other plug-ins, and the services for artifacts, memory and credentials are the
    server's own. Messages that are not Baton's are not affected.

    Args:
        name: the name of the plug-in in ADK.
        enabled: whether it accepts orders; by default if the environment variable
            ``BATON_ADK_PLUGIN`` is ``on``.
    """

    def __init__(self, name: str = "baton", *, enabled: bool | None = None) -> None:
        super().__init__(name=name)
        self._enabled = enabled
        self._sessions: dict[SessionKey, _Session] = {}
        self._replies: dict[str, dict[str, Any]] = {}

    async def on_user_message_callback(
        self, *, invocation_context: Any, user_message: Any
    ) -> types.Content | None:
        """Carry out an order; ignore any other message."""
        parts = user_message.parts or ()
        calls = [part.function_call for part in parts if part.function_call is not None]
        orders = [call for call in calls if call.name == NAME]
        arguments = (orders[0].args or {}) if orders else None
        if arguments is None:
            return None
        on = os.environ.get(SWITCH) == "on" if self._enabled is None else self._enabled
        if on:
            reply = await self._carry_out(invocation_context, arguments)
        else:
            reply = {"problem": f"Baton's plug-in is off on this server: start it with {SWITCH}=on"}
        self._replies[invocation_context.invocation_id] = reply
        return types.Content(role="user", parts=[types.Part(text="an order of Baton")])

    async def before_run_callback(self, *, invocation_context: Any) -> types.Content | None:
        """Answer an order, instead of any agent."""
        reply = self._replies.pop(invocation_context.invocation_id, None)
        if reply is None:
            return None
        response = types.FunctionResponse(name=NAME, response=reply)
        return types.Content(role="model", parts=[types.Part(function_response=response)])

    async def _carry_out(self, context: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments.get("format") != FORMAT:
            return {"problem": "the server has another version of Baton: install the same one"}
        try:
            order = msgspec.convert(arguments, Order)
            if not isinstance(context.agent, BaseAgent):
                return {
                    "problem": "the root of the app is a Workflow, which cannot be played this way"
                }
            if order.do == "texts":
                agents = await _agents(context, order)
                return {"texts": agents.texts(), "tools": sorted(agents.tools())}
            return await self._play(context, order)
        except (msgspec.ValidationError, InputError, ProviderError) as error:
            return {"problem": str(error)}

    async def _play(self, context: Any, order: Order) -> dict[str, Any]:
        key = SessionKey(context.app_name, context.user_id, context.session.id)
        session = self._sessions.pop(key, None)
        if order.number == 1 and order.case is not None:
            agents = await _agents(context, order)
            agents.check_names(order.case)
            session = _Session(agents, order.case, play_of(order.case), 1)
            session.agents.change(order.texts)
            await session.agents.open(key, order.state)
        elif session is None or session.number != order.number:
            return {"problem": "the server no longer has the earlier messages: was it restarted?"}
        self._sessions[key] = session._replace(number=order.number + 1)
        if len(self._sessions) > _KEPT:
            del self._sessions[next(iter(self._sessions))]
        events: list[Any] = []
        trouble = None
        run = session.agents.run(key, order.message, session.case, session.play)
        try:
            async for line in run:
                events.append(msgspec.json.decode(line))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - what agents raise ends their turn
            trouble = trouble_of(error)
        finally:
            await run.aclose()
        return {
            "events": events,
            "trouble": trouble,
            "state": await session.agents.state(key),
            "passed": passed(session.play),
        }


class _Session(NamedTuple):
    """A session in progress, and the number of its next message."""

    agents: Agents
    case: Case
    play: Play
    number: int


async def _agents(context: Any, order: Order) -> Agents:
    """Return the agents of a server as a separate app with sessions in memory.

    Raises:
        ProviderError: a toolset does not list its tools.
    """
    root = context.agent.root_agent
    app = App(
        name=root.name,
        root_agent=root,
        plugins=[p for p in context.plugin_manager.plugins if not isinstance(p, Plugin)],
        events_compaction_config=context.events_compaction_config,
        context_cache_config=context.context_cache_config,
        resumability_config=context.resumability_config,
    )
    names = ("artifact_service", "memory_service", "credential_service")
    services = {name: service for name in names if (service := getattr(context, name)) is not None}
    agents = Agents(app, root.name, streaming=order.streaming, services=services)
    try:
        await agents.define()
    except Exception as error:
        raise ProviderError(f"the tools of the agents are unknown: {trouble_of(error)}") from error
    return agents

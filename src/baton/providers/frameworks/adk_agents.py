"""Agents of Google ADK in this process: one app, its sessions in memory, and its texts.

Loaded only when agents of ADK are played: it imports ADK.
"""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from google.adk.agents import BaseAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps.app import App
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from baton.model import AgentCard, Case, InputError, Message, Problem, ProviderError, suggestion
from baton.providers.adk_options import AdkLocalOptions
from baton.providers.adk_play import SessionKey
from baton.providers.frameworks.adk_stand_ins import StandInPlugin
from baton.providers.frameworks.program import asked_of
from baton.readers import Catalog
from baton.readers.catalog import SHARES_HISTORY
from baton.stand_ins import Play, check_names


class Agents:
    """One ADK app, with its original texts or with changed ones.

    Args:
        app: an App.
        name: its name, unless a session states another one.
        streaming: whether models stream their answers.
        services: the services of a server, to use instead of those in memory.
    """

    def __init__(
        self, app: Any, name: str, *, streaming: bool = False, services: Mapping[str, Any] = {}
    ) -> None:
        self.name = name
        self.catalog: Catalog = {}
        self._app = app
        self._services: dict[str, Any] = {
            "artifact_service": InMemoryArtifactService(),
            "memory_service": InMemoryMemoryService(),
            **services,
            "session_service": InMemorySessionService(),
        }
        self._streaming = streaming
        self._runners: dict[str, Any] = {}
        self._is_open = False

    @classmethod
    def load(cls, folder: Path, options: AdkLocalOptions) -> Agents:
        """Import the agents of a folder; raises InputError when that fails."""
        from google.adk.cli.utils.agent_loader import AgentLoader

        try:
            app = AgentLoader(str(folder.parent)).load_agent(folder.name)
        except (Exception, SystemExit) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            message = f"the agents cannot be loaded: {reason}"
            raise InputError(Problem(file=str(folder), message=message)) from error
        return cls._chosen(app, folder.name, options)

    @classmethod
    def of_object(cls, app: Any, options: AdkLocalOptions) -> Agents:
        """Take an agent or an App; raises InputError when it is neither."""
        if not isinstance(app, App | BaseAgent):
            message = (
                f"`{options.path}` is {type(app).__name__}, neither an agent nor an App of ADK"
            )
            raise InputError(Problem(path="path", message=message))
        return cls._chosen(app, app.name, options)

    @classmethod
    def _chosen(cls, app: Any, name: str, options: AdkLocalOptions) -> Agents:
        root = getattr(app, "root_agent", app)
        if options.agent is not None:
            match = root.find_agent(options.agent)
            if match is None:
                names = [agent.name for agent in _all(root)]
                unknown = f"no agent `{options.agent}`; {suggestion(options.agent, names)}"
                raise InputError(Problem(path="agent", message=unknown))
            app = match
        app = app if isinstance(app, App) else App(name=name, root_agent=app)
        return cls(app, name, streaming=options.streaming)

    async def define(self) -> None:
        """Read the definitions from the agents."""
        app = self._app
        # Plug-ins and compaction change requests, and no definition shows these changes.
        plain = not (app.plugins or app.events_compaction_config)
        self.catalog = await _catalog(app.root_agent, plain=plain)

    def texts(self) -> dict[str, str]:
        """Return the texts that can be changed, by the name of the component."""
        return texts_of(self._app.root_agent)

    def tools(self) -> set[str]:
        """Return the names of the agents' tools, not counting agents used as tools."""
        listed = [card.tools for card in self.catalog.values()]
        own = {name for tools in listed if isinstance(tools, list) for name in tools}
        return own - self.catalog.keys()

    def check_names(self, case: Case) -> None:
        """Raise ProviderError for a stand-in with a misspelt name, or for an agent as a tool."""
        ins = case.stand_ins
        if ins is None or case.dispatch is not None:
            return
        check_names(ins, self.tools, self.catalog.keys)
        tools = self.tools()
        for name in [*ins.tools, *(tool for each in ins.agents.values() for tool in each.tools)]:
            if name in self.catalog and name not in tools:
                raise ProviderError(
                    f"nothing was run: `{name}` is an agent: write its stand-in below `agents:`"
                )
        for name in ins.agents:
            if name in tools and name not in self.catalog:
                raise ProviderError(
                    f"nothing was run: `{name}` is a tool: write its stand-in below `tools:`"
                )

    def change(self, texts: Mapping[str, str]) -> None:
        """Play copies of the agents, with other texts; raises InputError for unknown ones."""
        if texts:
            root = changed(self._app.root_agent, texts)
            self._app = self._app.model_copy(update={"root_agent": root})

    async def open(self, key: SessionKey, state: dict[str, Any]) -> None:
        """Create a session."""
        sessions = self._services["session_service"]
        try:
            await sessions.create_session(
                app_name=key.app, user_id=key.user, session_id=key.id, state=state
            )
        except AlreadyExistsError as error:
            reason = f"the session `{key.id}` exists already: leave the id out of the case"
            raise ProviderError(reason) from error

    async def run(
        self, key: SessionKey, message: str, case: Case | None = None, play: Play | None = None
    ) -> AsyncGenerator[bytes]:
        """Yield the events of one message in the form in which a server would write them.

        With ``play``, its stand-ins answer, and the ``case`` can be the moment of a dispatch.

        Raises:
            ProviderError: the case cannot be played with these agents.
        """
        mode = StreamingMode.SSE if self._streaming else StreamingMode.NONE
        if play is not None and case is not None:
            runner, message = self._standing_in(key, message, case, play)
        else:
            runner = self._runner(key.app)
        events = runner.run_async(
            user_id=key.user,
            session_id=key.id,
            new_message=types.Content(role="user", parts=[types.Part(text=message)]),
            run_config=RunConfig(streaming_mode=mode),
        )
        try:
            async for event in events:
                yield event.model_dump_json(by_alias=True, exclude_none=True).encode()
        finally:
            await events.aclose()

    async def state(self, key: SessionKey) -> dict[str, Any] | None:
        """Return the state of a session as plain data; ``None`` if it is not JSON."""
        sessions = self._services["session_service"]
        session = await sessions.get_session(app_name=key.app, user_id=key.user, session_id=key.id)
        with suppress(TypeError, msgspec.MsgspecError):
            return msgspec.json.decode(msgspec.json.encode(session.state), type=dict[str, Any])
        return None

    async def forget(self, key: SessionKey) -> None:
        """Delete a session."""
        await self._services["session_service"].delete_session(
            app_name=key.app, user_id=key.user, session_id=key.id
        )

    async def close(self) -> None:
        """Close the resources that the runners hold open."""
        if self._is_open and not self._runners:
            self._runner(self.name)  # runners with stand-ins share its tools and close nothing
        for runner in self._runners.values():
            await runner.close()

    def _runner(self, name: str) -> Any:
        if name not in self._runners:
            self._runners[name] = Runner(app=self._app, app_name=name, **self._services)
        return self._runners[name]

    def _standing_in(
        self, key: SessionKey, message: str, case: Case, play: Play
    ) -> tuple[Any, str]:
        """Return a runner whose tools ask the stand-ins, and the message to send to it."""
        root, plugin = self._app.root_agent, StandInPlugin(play)
        if case.dispatch is not None:
            moment = moment_of(case, message)
            root, message = self._agent(moment.agent), moment.message
            # For a child, only the receiver is played. When it hands back, it has finished.
            sender = case.dispatch.call.sender if case.dispatch.form == "child" else None
            plugin = StandInPlugin(play, moment.before, moment.since, sender)
        update = {"root_agent": root, "plugins": [plugin, *self._app.plugins]}
        self._is_open = True
        app = self._app.model_copy(update=update)
        return Runner(app=app, app_name=key.app, **self._services), message

    def _agent(self, name: str) -> Any:
        """Return an agent in a form that can start a run."""
        known = {agent.name: agent for agent in _all(self._app.root_agent)}
        if name not in known:
            hint = suggestion(name, set(known))
            raise ProviderError(f"`{self.name}` has no agent `{name}`; {hint}")
        agent = known[name]
        if getattr(agent, "mode", None) == "single_turn":
            return agent.clone(update={"mode": "chat"})  # ADK only starts agents in this mode
        return agent


class Moment(NamedTuple):
    """The input of an agent: a message of the user, and the messages around it."""

    agent: str
    before: list[Message]
    message: str
    since: list[Message]


def moment_of(case: Case, message: str) -> Moment:
    """Return the moment of a dispatch case.

    Raises:
        ProviderError: the case does not hold what its form needs, or there is no choice to make.
    """
    dispatch = case.dispatch
    if dispatch is not None and dispatch.form == "decision" and dispatch.call.kind == "sequence":
        raise ProviderError(
            f"`{dispatch.call.to}` is started by the program, after `{dispatch.call.sender}`, so "
            "no agent chooses: play it as `child` or `integration`"
        )
    name, messages = asked_of(case)
    places = [place for place, each in enumerate(messages) if each.role == "user" and each.text]
    if not places:
        return Moment(name, [], message, messages)
    last = places[-1]
    return Moment(name, messages[:last], messages[last].text or message, messages[last + 1 :])


_OF_AGENTS = ("instruction", "global_instruction", "static_instruction")


def _all(root: Any) -> Iterable[Any]:
    """Yield an agent and all agents that it can reach, also as tools, without repetition."""
    agents: dict[int, Any] = {}
    waiting = [root]
    while waiting:
        agent = waiting.pop(0)
        if id(agent) not in agents:
            agents[id(agent)] = agent
            waiting += getattr(agent, "sub_agents", None) or ()
            tools = getattr(agent, "tools", None) or ()
            waiting += [tool.agent for tool in tools if isinstance(tool, AgentTool)]
    return agents.values()


def _component(agent: str, field: str) -> str:
    """Name the text of an agent. Agent names contain no dot, so the result is unique."""
    return f"agent:{agent}" if field == "instruction" else f"agent:{agent}.{field}"


def texts_of(root: Any) -> dict[str, str]:
    """Return the texts of agents and of their function tools, by the name of the component.

    A text that a function makes while agents run cannot be changed.
    """
    texts: dict[str, str] = {}
    if not isinstance(root, BaseAgent):
        return texts  # a Workflow: ADK cannot copy it with other agents
    for agent in _all(root):
        for field in _OF_AGENTS:
            text = getattr(agent, field, None)
            if isinstance(text, str) and (text or field == "instruction"):
                texts.setdefault(_component(agent.name, field), text)
        texts.setdefault(f"description:{agent.name}", agent.description or "")
        for tool in getattr(agent, "tools", None) or ():
            named = _function_tool(tool)
            if named is not None:
                texts.setdefault(f"tool:{named.name}", named.description or "")
    return texts


def _function_tool(tool: Any) -> Any:
    """Return a tool that is a function of the program; ``None`` for any other."""
    if isinstance(tool, FunctionTool):
        return tool
    return FunctionTool(tool) if callable(tool) and not isinstance(tool, BaseTool) else None


def changed(root: Any, texts: Mapping[str, str]) -> Any:
    """Return a copy of an agent and of everything that it can reach, with other texts.

    Raises:
        InputError: a component does not exist, or a function makes its text.
    """
    known = texts_of(root)
    problems = [Problem(message=_unknown(root, name, known)) for name in texts if name not in known]
    if problems:
        raise InputError(problems)
    copies: dict[int, Any] = {}

    def copied(agent: Any) -> Any:
        if id(agent) in copies:
            return copies[id(agent)]
        update: dict[str, Any] = {"sub_agents": [copied(each) for each in agent.sub_agents]}
        for field in _OF_AGENTS:
            text = texts.get(_component(agent.name, field))
            if text is not None and isinstance(getattr(agent, field, None), str):
                update[field] = text
        update["description"] = texts.get(f"description:{agent.name}", agent.description)
        made = copies[id(agent)] = agent.clone(update=update)
        if getattr(agent, "tools", None):
            made.tools = [tool_of(tool) for tool in agent.tools]
        return made

    def tool_of(tool: Any) -> Any:
        if isinstance(tool, AgentTool):
            own = copy.copy(tool)
            own.agent = copied(tool.agent)
            own.description = own.agent.description
            return own
        named = _function_tool(tool)
        if named is None or f"tool:{named.name}" not in texts:
            return tool
        return _described(named, texts[f"tool:{named.name}"])

    made = copied(root)
    made.parent_agent = root.parent_agent  # a case can play an agent below the root
    for agent in list(copies.values()):
        _point_to(copies, agent)
    return made


def _point_to(copies: dict[int, Any], agent: Any) -> None:
    """Make the fields of an agent of a user-defined class refer to the copies, too."""
    for field in type(agent).model_fields:
        value = getattr(agent, field)
        if field in ("sub_agents", "parent_agent"):
            continue
        if isinstance(value, BaseAgent) and id(value) in copies:
            setattr(agent, field, copies[id(value)])
        elif isinstance(value, list) and any(isinstance(each, BaseAgent) for each in value):
            setattr(agent, field, [copies.get(id(each), each) for each in value])


def _described(tool: Any, text: str) -> Any:
    """Return a copy of a tool that declares itself with another description."""
    own, old = copy.copy(tool), tool.description or ""
    declare = own._get_declaration

    def declared() -> Any:
        made = declare()
        # ADK adds a note to the descriptions of long-running tools.
        note = (made.description or "").removeprefix(old)
        return made.model_copy(update={"description": text + note})

    own.description = text
    own._get_declaration = declared
    return own


def _unknown(root: Any, name: str, known: Mapping[str, str]) -> str:
    kind, _, of = name.partition(":")
    agent = next((each for each in _all(root) if each.name == of), None)
    if kind == "agent" and callable(getattr(agent, "instruction", None)):
        return f"a function makes the instruction of `{of}` for each request: it cannot be changed"
    return f"no component `{name}`; {suggestion(name, set(known))}"


async def _catalog(root: Any, *, plain: bool) -> Catalog:
    """Read the tree of agents, including those behind an AgentTool.

    ``plain`` states that only the agents themselves decide what their models receive.
    """
    catalog: Catalog = {}
    waiting = [root]
    while waiting:
        agent = waiting.pop()
        if agent.name in catalog:
            continue
        tools = await agent.canonical_tools() if hasattr(agent, "canonical_tools") else None
        below = list(getattr(agent, "sub_agents", None) or ())
        instructions = getattr(agent, "instruction", None)
        catalog[agent.name] = AgentCard(
            description=agent.description or None,
            instructions=instructions if isinstance(instructions, str) and instructions else None,
            tools=None if tools is None else [tool.name for tool in tools],
            sub_agents=[child.name for child in below],
            kind="agent" if tools is not None else "workflow",
            shares_history=_shares_history(agent) if plain else None,
        )
        waiting += [*below, *(tool.agent for tool in tools or () if hasattr(tool, "agent"))]
    return catalog


def _shares_history(agent: Any) -> bool | None:
    """Read ``include_contents``; ``None`` if a callback or a mode can change the model's input."""
    if getattr(agent, "before_model_callback", None) or getattr(agent, "mode", None) not in (
        None,
        "chat",
    ):
        return None
    return SHARES_HISTORY.get(str(getattr(agent, "include_contents", None)))

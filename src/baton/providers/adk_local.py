"""``adk_local``: cases are played with agents of Google ADK in this process."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

import msgspec

from baton.formats.adk import Event
from baton.formats.document import Document
from baton.http.answers import LimitReached, Meter, of_messages
from baton.model import (
    AgentCard,
    Case,
    InputError,
    Problem,
    ProviderError,
    Source,
    Trace,
    suggestion,
)
from baton.plugins import Alias, is_installed
from baton.plugins.origin import install, requirement
from baton.plugins.user_code import load_object
from baton.providers.adk_options import AdkLocalOptions
from baton.providers.adk_play import Answer, AnswerCancelled, SessionKey, Watching, play
from baton.providers.base import ConfiguredProvider, Surroundings
from baton.providers.functions import named
from baton.readers import Catalog
from baton.readers.adk.wire import Wire, read_events
from baton.readers.catalog import SHARES_HISTORY

_OBJECT = re.compile(r"[\w./-]+:[A-Za-z_][\w.]*")


class AdkLocal(ConfiguredProvider[AdkLocalOptions]):
    """Plays cases with the agents of a folder or module; imported when it is entered."""

    summary = "agents of Google ADK, in this process"
    aliases = (Alias("google_adk", "google_adk"),)
    options_type = AdkLocalOptions
    attempts = 1
    delay = 0.0
    restart = None

    @classmethod
    def translated(cls, spec: dict[str, Any]) -> dict[str, Any]:
        """Take the folder from ``agent_metadata``, as judge-llm's ``google_adk`` states it.

        ``{"root_path": "src", "module_path": "desk.agent"}`` is ``src/desk``.
        """
        told = spec.get("agent_metadata")
        if "path" in spec or not isinstance(told, dict) or not told.get("module_path"):
            return spec
        dotted = ".".join(str(told[k]) for k in ("module_prefix", "module_path") if told.get(k))
        folder = dotted.removesuffix(f".{told.get('agent_submodule', 'agent')}").replace(".", "/")
        if told.get("agent_name", "root_agent") != "root_agent":
            message = "`adk_local` plays the `root_agent` of an agent.py: name the agent so there"
            raise InputError(Problem(path="agent_metadata.agent_name", message=message))
        return {**spec, "path": str(Path(told.get("root_path") or "") / folder)}

    def __init__(self, options: AdkLocalOptions, around: Surroundings | None = None) -> None:
        super().__init__(options, around)
        path = self.around.folder / options.path
        folder = path.resolve()  # or `.` has no name
        self._folder = folder.parent if folder.name == "__init__.py" else folder
        if not self._folder.is_dir() and _OBJECT.fullmatch(options.path) is None:
            message = f"{path}: no such folder; name the one that has `agent.py`"
            raise InputError(Problem(path="path", message=message))
        if not is_installed("google.adk"):
            message = f"`adk_local` needs google-adk: {install(requirement('adk'))}"
            raise InputError(Problem(path="type", message=message))
        self.source = Source(format="adk-event", framework="google-adk", location=str(options.path))
        self._agents: _Agents | None = None
        self._stack = AsyncExitStack()
        self._limits = of_messages(options.max_answer_mib, options.max_events)

    async def __aenter__(self) -> Self:
        if self._folder.is_dir():
            self._agents = await _Agents.load(self._folder, self.options)
        else:
            app = load_object(self.options.path, self.around.folder)
            self._agents = await _Agents.of_object(app, self.options)
        self._stack.push_async_callback(self._agents.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def __call__(self, case: Case) -> Trace:
        """Play a case; raises ProviderError."""
        return await play(self, case, self.hooks)

    async def catalog(self, case: Case) -> Catalog:  # noqa: ARG002 - a folder is one app
        """Return what the agents and the config tell of the agents."""
        return {**self._loaded.catalog, **self.around.agents}

    @asynccontextmanager
    async def session(
        self, case: Case, state: dict[str, Any], *, another: bool
    ) -> AsyncIterator[SessionKey]:
        """Open a session with its state, and forget it."""
        stated = case.session.id if not another else None
        key = SessionKey(
            app=self.options.app_name or case.session.app or self._loaded.name,
            user=case.session.user or self.options.user_id,
            id=stated or f"___eval___session___{uuid.uuid4()}",
        )
        await self._loaded.open(key, state)
        try:
            yield key
        finally:
            await self._loaded.forget(key)

    async def send(
        self, session: SessionKey, message: str, watch: Watching | None = None
    ) -> Answer:
        """Run the agents with one message; ``watch`` is told of each event."""
        lines: list[bytes] = []
        trouble: str | None = None
        meter = Meter(self._limits, "jsonl")
        try:
            async with aclosing(self._loaded.run(session, message)) as events:
                async for line in events:
                    meter.add(line + b"\n")
                    lines.append(line)
                    if watch is not None:
                        watch(lambda: Answer(self._read(lines)))
                    await asyncio.sleep(0)  # agents that wait for nothing give nobody else a turn
        except LimitReached as error:
            return Answer(self._read(lines), str(error))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - what agents raise ends their turn
            trouble = named(error)
        except asyncio.CancelledError as error:
            raise AnswerCancelled(Answer(self._read(lines))) from error
        wire = self._read(lines)
        if trouble is not None:  # worded as a server's error frame is
            wire = Wire([*wire.events, Event(error=trouble)], wire.dropped)
        return Answer(wire)

    async def state(self, session: SessionKey) -> dict[str, Any] | None:
        """Return the session's state."""
        return await self._loaded.state(session)

    def _read(self, lines: list[bytes]) -> Wire:
        data = b"[" + b",\n".join(lines) + b"]"
        return read_events(Document(str(self.options.path), data, "json"))

    @property
    def _loaded(self) -> _Agents:
        if self._agents is None:
            raise RuntimeError("enter the provider with `async with` first")
        return self._agents


class _Agents:
    """One app of ADK with services that keep everything in memory."""

    def __init__(self, app: Any, name: str, catalog: Catalog, streaming: bool) -> None:
        from google.adk.apps.app import App
        from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
        from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
        from google.adk.sessions.in_memory_session_service import InMemorySessionService

        self.name, self.catalog = name, catalog
        self._app = app if isinstance(app, App) else App(name=name, root_agent=app)
        self._services: dict[str, Any] = {
            "session_service": InMemorySessionService(),
            "artifact_service": InMemoryArtifactService(),
            "memory_service": InMemoryMemoryService(),
        }
        self._streaming = streaming
        self._runners: dict[str, Any] = {}

    @classmethod
    async def load(cls, folder: Path, options: AdkLocalOptions) -> _Agents:
        """Import the agents of a folder; raises InputError when that fails."""
        from google.adk.cli.utils.agent_loader import AgentLoader

        try:
            app = AgentLoader(str(folder.parent)).load_agent(folder.name)
        except (Exception, SystemExit) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            message = f"the agents cannot be loaded: {reason}"
            raise InputError(Problem(file=str(folder), message=message)) from error
        return await cls._chosen(app, folder.name, options)

    @classmethod
    async def of_object(cls, app: Any, options: AdkLocalOptions) -> _Agents:
        """Take an agent or an App; raises InputError when it is neither."""
        from google.adk.agents import BaseAgent
        from google.adk.apps.app import App

        if not isinstance(app, App | BaseAgent):
            message = (
                f"`{options.path}` is {type(app).__name__}, neither an agent nor an App of ADK"
            )
            raise InputError(Problem(path="path", message=message))
        return await cls._chosen(app, app.name, options)

    @classmethod
    async def _chosen(cls, app: Any, name: str, options: AdkLocalOptions) -> _Agents:
        root = getattr(app, "root_agent", app)
        if options.agent is not None:
            match = root.find_agent(options.agent)
            if match is None:
                names = [agent.name for agent in _all(root)]
                unknown = f"no agent `{options.agent}`; {suggestion(options.agent, names)}"
                raise InputError(Problem(path="agent", message=unknown))
            app = root = match
        # What these change of requests is in no definition.
        plain = not (
            getattr(app, "plugins", None) or getattr(app, "events_compaction_config", None)
        )
        return cls(app, name, await _catalog(root, plain=plain), options.streaming)

    async def open(self, key: SessionKey, state: dict[str, Any]) -> None:
        """Create a session."""
        from google.adk.errors.already_exists_error import AlreadyExistsError

        sessions = self._services["session_service"]
        try:
            await sessions.create_session(
                app_name=key.app, user_id=key.user, session_id=key.id, state=state
            )
        except AlreadyExistsError as error:
            reason = f"the session `{key.id}` exists already: leave the id out of the case"
            raise ProviderError(reason) from error

    async def run(self, key: SessionKey, message: str) -> AsyncGenerator[bytes]:
        """Yield the events of one message, each as a server would write it."""
        from google.adk.agents.run_config import RunConfig, StreamingMode
        from google.adk.runners import Runner
        from google.genai import types

        mode = StreamingMode.SSE if self._streaming else StreamingMode.NONE
        if key.app not in self._runners:
            self._runners[key.app] = Runner(app=self._app, app_name=key.app, **self._services)
        events = self._runners[key.app].run_async(
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
        """Return the state of a session as plain data; ``None`` where it is not JSON."""
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
        """Close what the runners hold open."""
        for runner in self._runners.values():
            await runner.close()


def _all(agent: Any) -> Iterator[Any]:
    yield agent
    for child in getattr(agent, "sub_agents", None) or ():
        yield from _all(child)


async def _catalog(root: Any, *, plain: bool) -> Catalog:
    """Read the tree of agents, those behind an AgentTool included.

    ``plain`` tells that nothing but the agents themselves decides what their models get.
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
    """Read ``include_contents``; a callback or a mode may give the model something else."""
    if getattr(agent, "before_model_callback", None) or getattr(agent, "mode", None) not in (
        None,
        "chat",
    ):
        return None
    return SHARES_HISTORY.get(str(getattr(agent, "include_contents", None)))

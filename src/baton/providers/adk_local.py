"""``adk_local``: cases are played with agents of Google ADK in this process."""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from baton.formats.adk import Event
from baton.formats.document import Document
from baton.http.responses import LimitReached, Meter, of_messages
from baton.model import Case, InputError, Problem, Source, Trace
from baton.plugins import Alias, is_installed
from baton.plugins.origin import install, requirement
from baton.plugins.user_code import load_object
from baton.providers.adk_options import AdkLocalOptions
from baton.providers.adk_play import Answer, AnswerCancelled, SessionKey, Watching, play, trouble_of
from baton.providers.base_provider import ConfiguredProvider, Surroundings, stood_in
from baton.readers import Catalog
from baton.readers.adk.wire import Wire, read_events
from baton.stand_ins import Play, playing

if TYPE_CHECKING:
    from baton.providers.frameworks.adk_agents import Agents

_OBJECT = re.compile(r"[\w./-]+:[A-Za-z_][\w.]*")


class AdkLocal(ConfiguredProvider[AdkLocalOptions]):
    """Plays cases with the agents of a folder or module; these are imported on entering."""

    summary = "agents of Google ADK, in this process"
    aliases = (Alias("google_adk", "google_adk"),)
    options_type = AdkLocalOptions

    @classmethod
    def translated(cls, spec: dict[str, Any]) -> dict[str, Any]:
        """Take the folder from ``agent_metadata``, as judge-llm's ``google_adk`` states it.

        ``{"root_path": "src", "module_path": "desk.agent"}`` is ``src/desk``.
        """
        metadata = spec.get("agent_metadata")
        if "path" in spec or not isinstance(metadata, dict) or not metadata.get("module_path"):
            return spec
        dotted = ".".join(
            str(metadata[k]) for k in ("module_prefix", "module_path") if metadata.get(k)
        )
        folder = dotted.removesuffix(f".{metadata.get('agent_submodule', 'agent')}").replace(
            ".", "/"
        )
        if metadata.get("agent_name", "root_agent") != "root_agent":
            message = (
                "`adk_local` plays the `root_agent` of an agent.py: give the agent that name there"
            )
            raise InputError(Problem(path="agent_metadata.agent_name", message=message))
        return {**spec, "path": str(Path(metadata.get("root_path") or "") / folder)}

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
        self._agents: Agents | None = None
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        from baton.providers.frameworks.adk_agents import Agents

        if self._folder.is_dir():
            self._agents = Agents.load(self._folder, self.options)
        else:
            app = load_object(self.options.path, self.around.folder)
            self._agents = Agents.of_object(app, self.options)
        self._stack.push_async_callback(self._agents.close)
        self._agents.change(self.around.texts)
        await self._agents.define()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def __call__(self, case: Case) -> Trace:
        """Play a case; raises ProviderError."""
        if case.stand_ins is None and case.dispatch is None:
            return await play(self._server(case, None), case, self.hooks)
        self._loaded.check_names(case)
        with playing(case) as standing_in:
            server = self._server(case, standing_in)
            return await stood_in(case, standing_in, play(server, case, self.hooks))

    async def components(self) -> dict[str, str]:
        """Return the texts of the agents and of their function tools."""
        return self._loaded.texts()

    def text_places(self, component: str) -> list[Path]:
        """Return the folder of the agents."""
        del component  # each is in the program's own files
        return [self._folder if self._folder.is_dir() else self.around.folder]

    async def tools(self) -> set[str]:
        """Return the names of the agents' tools; no agent is one."""
        return self._loaded.tools() | await super().tools()

    def _server(self, case: Case, standing_in: Play | None) -> _InProcess:
        catalog = {**self._loaded.catalog, **self.around.agents}
        return _InProcess(self._loaded, self.options, catalog, case, standing_in)

    @property
    def _loaded(self) -> Agents:
        if self._agents is None:
            raise RuntimeError("enter the provider with `async with` first")
        return self._agents


class _InProcess:
    """The agents of this process as a server, for one case."""

    attempts = 1
    delay = 0.0
    restart = None
    stands_in = True

    def __init__(
        self,
        agents: Agents,
        options: AdkLocalOptions,
        catalog: Catalog,
        case: Case,
        standing_in: Play | None,
    ) -> None:
        self.source = Source(format="adk-event", framework="google-adk", location=options.path)
        self._agents = agents
        self._options = options
        self._catalog = catalog
        self._case = case
        self._play = standing_in
        self._limits = of_messages(options.max_answer_mib, options.max_events)

    async def catalog(self, case: Case) -> Catalog:  # noqa: ARG002 - a folder is one app
        """Return the definitions of agents, from the agents themselves and the config."""
        return self._catalog

    @asynccontextmanager
    async def session(
        self, case: Case, state: dict[str, Any], *, another: bool
    ) -> AsyncIterator[SessionKey]:
        """Open a session with its state, and forget it."""
        stated = case.session.id if not another else None
        key = SessionKey(
            app=self._options.app_name or case.session.app or self._agents.name,
            user=case.session.user or self._options.user_id,
            id=stated or f"___eval___session___{uuid.uuid4()}",
        )
        await self._agents.open(key, state)
        try:
            yield key
        finally:
            await self._agents.forget(key)

    async def send(
        self, session: SessionKey, message: str, watch: Watching | None = None
    ) -> Answer:
        """Run the agents with one message; ``watch`` is called with each event."""
        lines: list[bytes] = []
        trouble: str | None = None
        meter = Meter(self._limits, "jsonl")
        run = self._agents.run(session, message, self._case, self._play)
        try:
            async with aclosing(run) as events:
                async for line in events:
                    meter.add(line + b"\n")
                    lines.append(line)
                    if watch is not None:
                        watch(lambda: Answer(self._read(lines)))
                    await asyncio.sleep(0)  # agents that never wait would block all other tasks
        except LimitReached as error:
            return Answer(self._read(lines), str(error))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - what agents raise ends their turn
            trouble = trouble_of(error)
        except asyncio.CancelledError as error:
            raise AnswerCancelled(Answer(self._read(lines))) from error
        wire = self._read(lines)
        if trouble is not None:  # formatted like a server's error frame
            wire = Wire([*wire.events, Event(error=trouble)], wire.dropped)
        return Answer(wire)

    async def state(self, session: SessionKey) -> dict[str, Any] | None:
        """Return the session's state."""
        return await self._agents.state(session)

    def _read(self, lines: list[bytes]) -> Wire:
        data = b"[" + b",\n".join(lines) + b"]"
        return read_events(Document(str(self._options.path), data, "json"))

"""``claude_sdk``: plays cases with agents of the Claude Agent SDK."""

from __future__ import annotations

import asyncio
import dataclasses
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Protocol, Self

import msgspec

from baton.changed_texts import changed_card
from baton.formats.claude_definitions import agents_folder, sdk_agents
from baton.http.responses import (
    ANSWER_MIB,
    EVENTS,
    Count,
    LimitReached,
    Limits,
    Mebibytes,
    Meter,
    of_messages,
)
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
from baton.plugins import is_installed
from baton.plugins.origin import install, requirement
from baton.providers.base_provider import (
    CaseCancelled,
    ConfiguredProvider,
    Hooks,
    Positive,
    ProviderOptions,
    Surroundings,
    refuse_unplayable,
    stood_in,
)
from baton.providers.claude_dispatch_start import (
    GOES_ON,
    Memory,
    moment,
    sessions_folder,
    with_name,
    with_tool,
)
from baton.providers.claude_stand_ins import Cast, offered, staged, without_stubs
from baton.providers.frameworks.program import asked_of
from baton.providers.user_functions import named
from baton.readers import Catalog
from baton.readers.builder import MAIN
from baton.readers.claude.dispatches import TERMINAL
from baton.readers.claude.merge_recordings import merge_stream
from baton.readers.claude.reader import read_session_file, read_stream
from baton.readers.claude.started_agents import is_agent_task
from baton.readers.claude.wire import dict_at, from_sdk, is_list, text_at
from baton.stand_ins import Play, playing

PermissionMode = Literal["default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"]


class AgentOptions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One sub-agent, like the SDK's ``AgentDefinition``; without ``tools`` it has all tools."""

    description: str
    prompt: str
    tools: list[str] | None = None
    disallowed_tools: list[str] | None = None
    model: str | None = None


class ClaudeSdkOptions(ProviderOptions, kw_only=True):
    """The Claude Agent SDK; each case has its own client and its own process.

    ``agents`` are sub-agents by name, or a folder with ``.claude/agents``. ``setting_sources``
    states which settings on disk are used. The default is none, so that a run is the same
    everywhere. ``timeout`` is the maximum number of seconds for a turn, including its background
    agents. A case may have ``max_events`` messages with a total size of ``max_answer_mib``. With
    ``transcripts``, the session's own files are read as well, because they contain the tokens of
    each sub-agent, and who refused a tool.
    """

    type: Literal["claude_sdk"]
    agents: dict[str, AgentOptions] | str | None = None
    cwd: str = "."
    system_prompt: str | None = None
    allowed_tools: list[str] = msgspec.field(default_factory=list)
    disallowed_tools: list[str] = msgspec.field(default_factory=list)
    permission_mode: PermissionMode | None = None
    mcp_servers: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    max_turns: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_budget_usd: Positive | None = None
    env: dict[str, str] = msgspec.field(default_factory=dict)
    cli_path: str | None = None
    setting_sources: list[Literal["user", "project", "local"]] = msgspec.field(default_factory=list)
    timeout: Positive = 600
    max_answer_mib: Mebibytes = ANSWER_MIB
    max_events: Count = EVENTS
    transcripts: bool = True


def agents_of(options: ClaudeSdkOptions, folder: Path) -> Catalog:
    """Return the sub-agents in the options; raises InputError for a folder without any."""
    if isinstance(options.agents, str):
        try:
            return agents_folder(folder / options.agents)
        except InputError as error:
            raise InputError(Problem(path="agents", message=str(error))) from None
    return sdk_agents(msgspec.to_builtins(options.agents or {}))


def known_agents(options: ClaudeSdkOptions, folder: Path) -> Catalog:
    """Return the sub-agents in the options and those from the project's settings."""
    project = folder / options.cwd / ".claude" / "agents"
    agents = {}
    if "project" in options.setting_sources and any(project.glob("**/*.md")):
        agents = agents_folder(project)
    return {**agents, **agents_of(options, folder)}


def with_prompt(trace: Trace, options: ClaudeSdkOptions) -> Trace:
    """Return the trace with the prompt of `main`, which no message of the session contains."""
    if options.system_prompt is None:
        return trace
    card = trace.agents.get(MAIN, AgentCard())
    changed = msgspec.structs.replace(card, instructions=card.instructions or options.system_prompt)
    return msgspec.structs.replace(trace, agents={**trace.agents, MAIN: changed})


def _changed_agents(texts: Mapping[str, str]) -> set[str]:
    named = (name.partition(":") for name in texts)
    return {of for kind, _, of in named if kind in ("agent", "description")}


def working_folder(options: ClaudeSdkOptions, folder: Path) -> Path:
    """Return the folder that agents work in; raises InputError when it does not exist."""
    path = (folder / options.cwd).resolve()
    if not path.is_dir():
        message = f"{folder / options.cwd}: no such folder"
        raise InputError(Problem(path="cwd", message=message))
    return path


def definition(card: AgentCard) -> dict[str, Any]:
    """Return the fields of the SDK's ``AgentDefinition``, those that are stated."""
    fields = {
        "description": card.description or "",
        "prompt": card.instructions or "",
        "tools": card.tools if isinstance(card.tools, list) else None,
        "disallowedTools": card.denied_tools,
        "model": card.model,
    }
    return {name: value for name, value in fields.items() if value is not None}


class Waiting:
    """Watches one turn.

    A turn has ended when there is a result and no agent runs in the background. Background commands
    do not count, because they can run for ever. A background agent that ends can start another
    round, whose result names it; or the model learned of it during a round, which is not recorded.
    Some hosts receive a message when the session is idle, which settles it.
    """

    def __init__(self) -> None:
        self._tells = False
        self._idle = False
        self._answered = False
        self._tasks: set[str] = set()
        self._background: set[str] = set()
        self._untold: set[str] = set()

    @property
    def done(self) -> bool:
        """Whether no more messages will come."""
        if not self._answered or self._tasks:
            return False
        return self._idle if self._tells else not self._untold

    @property
    def maybe_done(self) -> bool:
        """Whether there is an answer, but it is not certain that it is the last one."""
        return self._answered and not self._tasks and not self._tells

    def take(self, message: dict[str, Any]) -> None:
        """Process a message."""
        kind = text_at(message, "type")
        if kind == "result":
            self._answered = True
            self._untold.discard(text_at(dict_at(message, "origin"), "runId"))
        elif kind == "system":
            subtype = text_at(message, "subtype")
            task, run = text_at(message, "task_id"), text_at(message, "run_id")
            if subtype == "session_state_changed":
                self._tells, self._idle = True, text_at(message, "state") == "idle"
            elif subtype == "background_tasks_changed":
                listed = message.get("tasks")
                tasks = listed if is_list(listed) else []
                self._tasks = {text_at(one, "task_id") for one in tasks if is_agent_task(one)}
                self._background.update(text_at(one, "task_id") for one in tasks)
            elif subtype == "task_started" and message.get("is_backgrounded") is True:
                self._background.add(task)
                if is_agent_task(message):
                    self._tasks.add(task)
            elif subtype == "task_notification" or (
                subtype == "task_updated"
                and text_at(dict_at(message, "patch"), "status") in TERMINAL
            ):
                self._tasks.discard(task)
                if task in self._background:
                    self._untold.add(run or task)
        elif kind == "assistant" and message.get("parent_tool_use_id") is None:
            self._answered = False


ENDED = "the case ended before the turn did"
GRACE = 2.0
"""Seconds to wait for a round that a notification starts, if no message reports an idle session."""

_WAITING = 100
"""The maximum number of queued messages; beyond it, the writer has to wait."""


class Lost(Exception):  # noqa: N818 - a signal, reported as a ProviderError with its trace
    """The conversation was lost."""


class Conversation(Protocol):
    """The interface of a conversation."""

    async def send(self, message: str) -> None:
        """Send a user's message; may raise Lost."""

    def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the messages of the stream; ends when the conversation does; may raise Lost."""


Inbox = asyncio.Queue[dict[str, Any] | Lost]
Connect = Callable[[], AbstractAsyncContextManager[Conversation]]


class Scene(NamedTuple):
    """The agent with which a case is played, and how a conversation with it begins."""

    name: str
    connect: Connect


class Played:
    """A case being played, with its record so far."""

    def __init__(
        self,
        connect: Connect,
        case: Case,
        hooks: Hooks,
        *,
        source: Source,
        catalog: Catalog,
        timeout: float,
        grace: float = GRACE,
        limits: Limits | None = None,
    ) -> None:
        self._connect = connect
        self._case = case
        self._hooks = hooks
        self._source = source
        self._catalog = catalog
        self._timeout = timeout
        self._grace = grace
        self._messages: list[dict[str, Any]] = []
        self._meter = Meter(limits or of_messages(ANSWER_MIB, EVENTS), "jsonl")

    async def play(self) -> Trace:
        """Play all turns of the case; one conversation unless a turn asks for another.

        Raises:
            ProviderError: with the record so far.
            CaseCancelled: with the record so far, if playing is cancelled after the first message.
        """
        refuse_unplayable(self._case, stand_ins=True)
        if await self._hooks.state(self._case):
            raise ProviderError("the case states a session's state, and Claude Code has none")
        try:
            number, turns = 0, self._case.turns
            while number < len(turns):
                async with self._connect() as conversation, _inbox(conversation) as inbox:
                    await self._turn(conversation, inbox, number)
                    number += 1
                    while number < len(turns) and not turns[number].new_session:
                        await self._turn(conversation, inbox, number)
                        number += 1
        except ProviderError as error:
            if error.trace is None and self._messages:
                error.trace = self.trace()
            raise
        except asyncio.CancelledError as error:
            if not self._messages:
                raise
            raise CaseCancelled(self._broken(ENDED)) from error
        return self.trace()

    def trace(self) -> Trace:
        """Return the record so far."""
        trace = read_stream(
            self._messages, id_=self._case.id, source=self._source, catalog=self._catalog
        )
        trace.case = self._case.id
        return trace

    async def _turn(self, conversation: Conversation, inbox: Inbox, number: int) -> None:
        text = self._case.turns[number].input.plain()
        # A stream does not repeat the user's message.
        message = {"role": "user", "content": text}
        self._messages.append({"type": "user", "message": message, "timestamp": time.time()})
        trouble: str | None = None
        try:
            await conversation.send(text)
            async with asyncio.timeout(self._timeout):
                trouble = await self._until_done(inbox)
        except TimeoutError:
            trouble = f"the turn did not end within {self._timeout:g} seconds"
        except Lost as error:
            trouble = str(error)
        if trouble is not None:
            raise ProviderError(f"turn {number + 1}: {trouble}", self._broken(trouble))
        trace = self.trace()
        if trace.turns[-1].error is not None:
            raise ProviderError(f"turn {number + 1}: {trace.turns[-1].error}", trace)
        await self._hooks.after_turn(self._case, trace.turns[-1])
        await self._hooks.next_turn(self._case, lambda: trace)

    async def _until_done(self, inbox: Inbox) -> str | None:
        """Take messages until the turn and its background agents have ended."""
        waiting = Waiting()
        while not waiting.done:
            try:
                seconds = self._grace if waiting.maybe_done else None
                message = await asyncio.wait_for(inbox.get(), seconds)
            except TimeoutError:
                return None
            if isinstance(message, Lost):
                inbox.put_nowait(message)  # for the next turn, if there is one
                return None if waiting.maybe_done else str(message)
            try:
                self._meter.add(msgspec.json.encode(message, enc_hook=repr) + b"\n")
            except LimitReached as error:
                return str(error)
            self._messages.append(message)
            self._hooks.grew(self.trace)
            waiting.take(message)
        return None

    def _broken(self, trouble: str) -> Trace:
        trace = self.trace()
        turn = trace.turns[-1]
        if turn.status != "failed":
            turn.status, turn.error = "incomplete", trouble
        return trace


@asynccontextmanager
async def _inbox(conversation: Conversation) -> AsyncIterator[Inbox]:
    """Collect the messages of a conversation as they come; the last one states why it ended."""
    inbox: Inbox = asyncio.Queue(_WAITING)

    async def collect() -> None:
        end = Lost("Claude Code ended before the turn did")
        try:
            async for message in conversation.messages():
                await inbox.put(message)
        except Lost as error:
            end = error
        except Exception:  # raised again, so that the turn ends at once and the error is kept
            await inbox.put(end)
            raise
        await inbox.put(end)

    task = asyncio.create_task(collect())
    try:
        yield inbox
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


_FOLDED = frozenset({"StreamEvent", "RateLimitEvent"})


class Client:
    """One conversation with Claude Code; if it ``goes_on`` by itself, no message is sent."""

    def __init__(self, client: Any, *, goes_on: bool = False) -> None:
        self._client = client
        self._goes_on = goes_on

    async def send(self, message: str) -> None:
        """Send a user's message; raises Lost."""
        from claude_agent_sdk import ClaudeSDKError

        if self._goes_on:
            return
        try:
            await self._client.query(message)
        except ClaudeSDKError as error:
            raise Lost(named(error)) from error

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield messages as their original JSON, with the time of arrival if they have no time.

        Raises:
            Lost: the process ended, or wrote something that is not a message.
        """
        from claude_agent_sdk import ClaudeSDKError

        try:
            async for message in self._client.receive_messages():
                kind = type(message).__name__
                if kind not in _FOLDED:
                    data = from_sdk({"_type": kind, **dataclasses.asdict(message)})
                    yield {"timestamp": time.time(), **data}
        except ClaudeSDKError as error:
            raise Lost(named(error)) from error


Prepare = Callable[[Any], Awaitable[Any]]
"""Changes the options of the SDK before a conversation begins."""


@asynccontextmanager
async def connected(
    options: ClaudeSdkOptions,
    agents: Mapping[str, AgentCard],
    folder: Path,
    prepare: Prepare | None = None,
    *,
    goes_on: bool = False,
) -> AsyncIterator[Client]:
    """Run Claude Code for a block; raises ProviderError when it does not start."""
    import claude_agent_sdk as sdk

    client_options = sdk_options(options, agents, folder)
    client = sdk.ClaudeSDKClient(
        client_options if prepare is None else await prepare(client_options)
    )
    try:
        await client.connect()
    except sdk.ClaudeSDKError as error:
        raise ProviderError(f"Claude Code does not start: {named(error)}") from error
    try:
        yield Client(client, goes_on=goes_on)
    finally:
        await client.disconnect()


def sdk_options(options: ClaudeSdkOptions, agents: Mapping[str, AgentCard], folder: Path) -> Any:
    """Return the ``ClaudeAgentOptions`` of a config."""
    import claude_agent_sdk as sdk

    # Older versions of the SDK do not have every option.
    known = {field.name for field in dataclasses.fields(sdk.ClaudeAgentOptions)}
    values = {
        "model": options.model,
        "system_prompt": options.system_prompt,
        "permission_mode": options.permission_mode,
        "max_turns": options.max_turns,
        "max_budget_usd": options.max_budget_usd,
        "cli_path": options.cli_path,
    }
    return sdk.ClaudeAgentOptions(
        agents={name: sdk.AgentDefinition(**definition(card)) for name, card in agents.items()},
        cwd=folder,
        allowed_tools=options.allowed_tools,
        disallowed_tools=options.disallowed_tools,
        mcp_servers=options.mcp_servers,
        env=options.env,
        setting_sources=list(options.setting_sources),
        **({"forward_subagent_text": True} if "forward_subagent_text" in known else {}),
        **{name: value for name, value in values.items() if value is not None},
    )


class ClaudeSdk(ConfiguredProvider[ClaudeSdkOptions]):
    """Plays each case with its own Claude Code process."""

    summary = "agents of the Claude Agent SDK"
    options_type = ClaudeSdkOptions

    def __init__(self, options: ClaudeSdkOptions, around: Surroundings | None = None) -> None:
        super().__init__(options, around)
        self._folder = working_folder(options, self.around.folder)
        self._given = known_agents(options, self.around.folder)
        self._memory = Memory.of(self._folder) if "project" in options.setting_sources else None
        texts = self.around.texts
        self._check(texts)
        agents = agents_of(options, self.around.folder)
        # Definitions in the options take precedence over files of the same name.
        self._agents = {
            name: changed_card(name, card, texts)
            for name, card in self._given.items()
            if name in agents or name in _changed_agents(texts)
        }
        self._known = {name: changed_card(name, card, texts) for name, card in self._given.items()}
        self._catalog = {**self._known, **self.around.agents}
        if f"agent:{MAIN}" in texts:
            self.options = msgspec.structs.replace(options, system_prompt=texts[f"agent:{MAIN}"])
        if not is_installed("claude_agent_sdk"):
            message = f"`claude_sdk` needs claude-agent-sdk: {install(requirement('claude'))}"
            raise InputError(Problem(path="type", message=message))
        self._source = Source(
            format="claude-stream", framework="claude-agent-sdk", location=options.cwd
        )

    def _texts(self) -> dict[str, str]:
        """Return the changeable texts as they are in files, except those of tools."""
        texts = {}
        if self.options.system_prompt is not None:
            texts[f"agent:{MAIN}"] = self.options.system_prompt
        for name, card in self._given.items():
            texts |= {f"agent:{name}": card.instructions or ""}
            texts |= {f"description:{name}": card.description or ""}
        if self._memory is not None:
            texts |= {f"agent:{MAIN}#{name}": text for name, text in self._memory.texts().items()}
        return texts

    def _check(self, texts: Mapping[str, str]) -> None:
        """Raise InputError for a component that does not exist. Tools are known only later."""
        known = self._texts()
        for name in texts:
            if name not in known and not name.startswith("tool:"):
                hint = suggestion(name, set(known)) or "it has none"
                raise InputError(f"`claude_sdk` has no component `{name}`; {hint}")
        if self._memory is not None and any("#" in name for name in texts):
            self._memory.check()

    async def __aenter__(self) -> Self:
        """Check the names of tools with changed descriptions, by asking Claude Code."""
        named = [name for name in self.around.texts if name.startswith("tool:")]
        if named:
            known = await self._tools()
            for name in named:
                if name not in known:
                    hint = suggestion(name, set(known)) or "it has none"
                    raise InputError(f"`claude_sdk` has no component `{name}`; {hint}")
        return self

    async def _tools(self) -> dict[str, str]:
        if not self.options.mcp_servers:
            return {}
        tools = await offered(sdk_options(self.options, self._agents, self._folder))
        return {f"tool:{each.name}": each.description for each in tools if "__" in each.name}

    async def components(self) -> dict[str, str]:
        """Return instructions, descriptions of agents and tools, and sections of CLAUDE.md."""
        return {**self._texts(), **await self._tools(), **self.around.texts}

    def text_places(self, component: str) -> list[Path]:
        """Return CLAUDE.md for its sections; for others, the folders of agent definitions."""
        if "#" in component:
            return [self._memory.path] if self._memory is not None else []
        folders = [self._folder / ".claude" / "agents"]
        if isinstance(self.options.agents, str):
            folders.insert(0, self.around.folder / self.options.agents)
        return [each for each in folders if each.is_dir()]

    async def __call__(self, case: Case) -> Trace:
        """Play a case; raises ProviderError."""
        with playing(case) as play:
            return await stood_in(case, play, self._play(case, play))

    async def _play(self, case: Case, play: Play) -> Trace:
        with tempfile.TemporaryDirectory(prefix="baton-claude-") as aside:
            scene = self._scene(case, play, Path(aside))
            played = Played(
                scene.connect,
                case,
                self.hooks,
                source=self._source,
                catalog=self._catalog,
                timeout=self.options.timeout,
                limits=of_messages(self.options.max_answer_mib, self.options.max_events),
            )
            try:
                return self._finished(await played.play(), case, play, scene.name)
            except (ProviderError, CaseCancelled) as error:
                if error.trace is not None:
                    error.trace = self._finished(error.trace, case, play, scene.name)
                raise

    def _scene(self, case: Case, play: Play, aside: Path) -> Scene:
        """Return which agent is played, and how a conversation with it begins."""
        options, texts = self.options, self.around.texts
        descriptions = {
            name.removeprefix("tool:"): text
            for name, text in texts.items()
            if name.startswith("tool:")
        }
        changes: dict[str, Any] = {}
        if self._memory is not None and any("#" in name for name in texts):
            changes = self._memory.changed(texts, aside)
        if case.dispatch is None:
            cast, taken_up = Cast(), None
        else:
            case = with_tool(case)
            name, messages = asked_of(case)
            cast = Cast()
            if name != MAIN:
                card = self._known.get(name)
                if card is None:
                    known = suggestion(name, {MAIN, *self._known})
                    raise ProviderError(f"`claude_sdk` has no agent `{name}`; {known}")
                tools = card.tools if isinstance(card.tools, list) else None
                cast = Cast(name, tools, card.denied_tools or ())
                model = card.model if card.model not in (None, "inherit") else options.model
                options = msgspec.structs.replace(
                    options, system_prompt=card.instructions or "", model=model
                )
            home = sessions_folder(options.env) if name == MAIN else None
            taken_up = moment(case, messages, self._folder, home)
        # Agent files can add hooks and servers. So with stand-ins, all agents are stated here.
        agents = self._agents if play.is_idle and taken_up is None else self._known

        async def prepare(client_options: Any) -> Any:
            for name, value in changes.items():
                before = getattr(client_options, name)
                both = {**before, **value} if isinstance(before, dict) else value
                client_options = dataclasses.replace(client_options, **{name: both})
            if taken_up is not None and taken_up.entries:
                env = {**client_options.env, **({GOES_ON: "1"} if taken_up.goes_on else {})}
                client_options = dataclasses.replace(
                    client_options, resume=taken_up.session, session_store=taken_up, env=env
                )
            return await staged(play, client_options, cast=cast, descriptions=descriptions)

        goes_on = taken_up is not None and taken_up.goes_on
        return Scene(
            cast.name,
            lambda: connected(options, agents, self._folder, prepare, goes_on=goes_on),
        )

    def _finished(self, trace: Trace, case: Case, play: Play, name: str) -> Trace:
        if case.dispatch is None:
            trace = self._completed(trace)
        trace = without_stubs(trace, play)
        if name == MAIN:
            return with_prompt(trace, self.options)
        return with_name(trace, name)

    def _completed(self, trace: Trace) -> Trace:
        """Add data from the session's own files, if they contain the same turns."""
        path = self._transcript(trace.id) if self.options.transcripts else None
        if path is None:
            return trace
        try:
            transcript = read_session_file(path, self._catalog)
        except InputError:
            return trace
        if [turn.input for turn in transcript.turns] != [turn.input for turn in trace.turns]:
            return trace
        transcript.case, transcript.source = trace.case, trace.source
        merge_stream(transcript, trace)
        for turn, seen in zip(transcript.turns, trace.turns, strict=True):
            turn.status, turn.error = seen.status, seen.error
        return transcript

    def _transcript(self, session: str) -> Path | None:
        """Find the file of a session in any project's folder."""
        projects = sessions_folder(self.options.env) / "projects"
        if not session or "/" in session:
            return None
        return next((file for file in projects.glob(f"*/{session}.jsonl")), None)

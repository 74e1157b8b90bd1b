"""``claude_sdk``: cases are played with agents of the Claude Agent SDK."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import msgspec

from baton.formats.claude_agents import agents_folder, sdk_agents
from baton.http.answers import (
    ANSWER_MIB,
    EVENTS,
    Count,
    LimitReached,
    Limits,
    Mebibytes,
    Meter,
    of_messages,
)
from baton.model import AgentCard, Case, InputError, Problem, ProviderError, Source, Trace
from baton.plugins import is_installed
from baton.plugins.origin import install, requirement
from baton.providers.base import (
    CaseCancelled,
    ConfiguredProvider,
    Hooks,
    Positive,
    ProviderOptions,
    Surroundings,
    refuse_unplayable,
)
from baton.providers.functions import named
from baton.readers import Catalog
from baton.readers.builder import MAIN
from baton.readers.claude.agents import is_agent_task
from baton.readers.claude.reader import merge_stream, read_session_file, read_stream
from baton.readers.claude.threads import TERMINAL
from baton.readers.claude.wire import dict_at, from_sdk, is_list, text_at

PermissionMode = Literal["default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"]


class AgentOptions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One sub-agent, as the SDK's ``AgentDefinition``; without ``tools`` it has all there are."""

    description: str
    prompt: str
    tools: list[str] | None = None
    disallowed_tools: list[str] | None = None
    model: str | None = None


class ClaudeSdkOptions(ProviderOptions, kw_only=True):
    """The Claude Agent SDK; each case is a client, and a process, of its own.

    ``agents`` are sub-agents by name, or a folder with ``.claude/agents``. ``setting_sources``
    says which settings on disk count; none unless stated, so that a run is the same everywhere.
    ``timeout`` is how many seconds a turn may take, its background agents included. A case may
    have ``max_events`` messages of ``max_answer_mib`` together. With
    ``transcripts`` the session's own files are read as well, for they tell the tokens of each
    sub-agent, and who refused a tool.
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
    """Return the sub-agents of the options; raises InputError for a folder without any."""
    if isinstance(options.agents, str):
        try:
            return agents_folder(folder / options.agents)
        except InputError as error:
            raise InputError(Problem(path="agents", message=str(error))) from None
    return sdk_agents(msgspec.to_builtins(options.agents or {}))


def known_agents(options: ClaudeSdkOptions, folder: Path) -> Catalog:
    """Return these, and those that the settings of the project bring in."""
    project = folder / options.cwd / ".claude" / "agents"
    agents = {}
    if "project" in options.setting_sources and any(project.glob("**/*.md")):
        agents = agents_folder(project)
    return {**agents, **agents_of(options, folder)}


def with_prompt(trace: Trace, options: ClaudeSdkOptions) -> Trace:
    """Return the trace with what `main` is told, which no message of the session tells."""
    if options.system_prompt is None:
        return trace
    card = trace.agents.get(MAIN, AgentCard())
    told = msgspec.structs.replace(card, instructions=card.instructions or options.system_prompt)
    return msgspec.structs.replace(trace, agents={**trace.agents, MAIN: told})


def working_folder(options: ClaudeSdkOptions, folder: Path) -> Path:
    """Return the folder that agents work in; raises InputError when it is not there."""
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

    A turn has ended with a result, once no agent works in the background; a command that runs
    there may run for ever. What ended there may begin another round, whose result names it; or
    the model heard of it on the way, which nothing tells. Some hosts are told when the session
    is idle, which settles it.
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
        """Whether nothing more is to come."""
        if not self._answered or self._tasks:
            return False
        return self._idle if self._tells else not self._untold

    @property
    def maybe_done(self) -> bool:
        """Whether there is an answer, and it is only not certain that it is the last."""
        return self._answered and not self._tasks and not self._tells

    def take(self, message: dict[str, Any]) -> None:
        """Look at a message."""
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


ENDED = "the case was ended before the turn was"
GRACE = 2.0
"""Seconds to wait, where nothing says that a session is idle, for what a notification starts."""

_WAITING = 100
"""Messages that wait to be taken; what writes more has to wait as well."""


class Lost(Exception):  # noqa: N818 - a signal, reported as a ProviderError with its trace
    """The conversation broke off."""


class Conversation(Protocol):
    """Where messages are sent to and come from."""

    async def send(self, message: str) -> None:
        """Send a user's message; may raise Lost."""

    def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the messages of the stream; ends when the conversation does; may raise Lost."""


Inbox = asyncio.Queue[dict[str, Any] | Lost]
Connect = Callable[[], AbstractAsyncContextManager[Conversation]]


class Played:
    """A case being played: what has come of it so far."""

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
            ProviderError: with what was seen of the case.
            CaseCancelled: the same, when playing is cancelled after the first message.
        """
        refuse_unplayable(self._case)
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
        """Return what was seen until now."""
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
    """Collect the messages of a conversation as they come; the last one says why it ended."""
    inbox: Inbox = asyncio.Queue(_WAITING)

    async def collect() -> None:
        end = Lost("Claude Code ended before the turn did")
        try:
            async for message in conversation.messages():
                await inbox.put(message)
        except Lost as error:
            end = error
        except Exception:  # raised again: the turn ends at once, and the fault is not lost
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
    """One conversation with Claude Code."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def send(self, message: str) -> None:
        """Send a user's message; raises Lost."""
        from claude_agent_sdk import ClaudeSDKError

        try:
            await self._client.query(message)
        except ClaudeSDKError as error:
            raise Lost(named(error)) from error

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield what comes, as the JSON it was, with the time it came at where it has none.

        Raises:
            Lost: the process ended, or wrote what is no message.
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


@asynccontextmanager
async def connected(
    options: ClaudeSdkOptions, agents: Mapping[str, AgentCard], folder: Path
) -> AsyncIterator[Client]:
    """Start Claude Code, and end it; raises ProviderError when it does not start."""
    import claude_agent_sdk as sdk

    # Older versions of the SDK do not have every option.
    known = {field.name for field in dataclasses.fields(sdk.ClaudeAgentOptions)}
    given = {
        "model": options.model,
        "system_prompt": options.system_prompt,
        "permission_mode": options.permission_mode,
        "max_turns": options.max_turns,
        "max_budget_usd": options.max_budget_usd,
        "cli_path": options.cli_path,
    }
    client = sdk.ClaudeSDKClient(
        sdk.ClaudeAgentOptions(
            agents={name: sdk.AgentDefinition(**definition(c)) for name, c in agents.items()},
            cwd=folder,
            allowed_tools=options.allowed_tools,
            disallowed_tools=options.disallowed_tools,
            mcp_servers=options.mcp_servers,
            env=options.env,
            setting_sources=list(options.setting_sources),
            **({"forward_subagent_text": True} if "forward_subagent_text" in known else {}),
            **{name: value for name, value in given.items() if value is not None},
        )
    )
    try:
        await client.connect()
    except sdk.ClaudeSDKError as error:
        raise ProviderError(f"Claude Code does not start: {named(error)}") from error
    try:
        yield Client(client)
    finally:
        await client.disconnect()


class ClaudeSdk(ConfiguredProvider[ClaudeSdkOptions]):
    """Plays each case with a Claude Code of its own."""

    summary = "agents of the Claude Agent SDK"
    options_type = ClaudeSdkOptions

    def __init__(self, options: ClaudeSdkOptions, around: Surroundings | None = None) -> None:
        super().__init__(options, around)
        self._folder = working_folder(options, self.around.folder)
        self._agents = agents_of(options, self.around.folder)
        self._catalog = {**known_agents(options, self.around.folder), **self.around.agents}
        if not is_installed("claude_agent_sdk"):
            message = f"`claude_sdk` needs claude-agent-sdk: {install(requirement('claude'))}"
            raise InputError(Problem(path="type", message=message))
        self._source = Source(
            format="claude-stream", framework="claude-agent-sdk", location=options.cwd
        )

    async def __call__(self, case: Case) -> Trace:
        """Play a case; raises ProviderError."""
        played = Played(
            lambda: connected(self.options, self._agents, self._folder),
            case,
            self.hooks,
            source=self._source,
            catalog=self._catalog,
            timeout=self.options.timeout,
            limits=of_messages(self.options.max_answer_mib, self.options.max_events),
        )
        try:
            return with_prompt(self._completed(await played.play()), self.options)
        except ProviderError as error:
            if error.trace is not None:
                error.trace = with_prompt(self._completed(error.trace), self.options)
            raise

    def _completed(self, trace: Trace) -> Trace:
        """Add what the session's own files tell, where they are of the same turns."""
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
        """Find the file of a session, wherever its project's folder is."""
        home = Path(self.options.env.get("HOME") or Path.home())
        stated = self.options.env.get("CLAUDE_CONFIG_DIR") or os.environ.get("CLAUDE_CONFIG_DIR")
        projects = (Path(stated) if stated else home / ".claude") / "projects"
        if not session or "/" in session:
            return None
        return next((file for file in projects.glob(f"*/{session}.jsonl")), None)

"""The Claude Agent SDK: programs that call Claude Code by ``query`` or ``ClaudeSDKClient``."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import sys
import threading
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, NamedTuple

from baton.model import Message, ProviderError
from baton.providers.claude_dispatch_start import GOES_ON, moment
from baton.providers.claude_recorder import hear_user
from baton.providers.claude_stand_ins import Cast, is_staged, listed, prefix_of, staged
from baton.readers.builder import MAIN
from baton.stand_ins import current

from .framework import Framework, Session, Text, attribute, is_a

_DESCRIPTIONS: dict[str, str] = {}
"""Changed tool descriptions for models, by the name of the tool."""


class _Agent(NamedTuple):
    """An agent of a program: its ``ClaudeAgentOptions``, or one of the sub-agents in them."""

    options: Any
    definition: Any = None


class ClaudeAgents(Framework):
    """Programs of the Claude Agent SDK, found by the ``ClaudeAgentOptions`` in their modules."""

    package = "claude_agent_sdk"

    def agents(self, value: Any) -> Iterable[tuple[str, Any]]:
        """Yield the main thread and the sub-agents of some options."""
        if is_a(value, self.package, "ClaudeAgentOptions"):
            yield MAIN, _Agent(value)
            for name, definition in (value.agents or {}).items():
                yield name, _Agent(value, definition)

    def texts(self, agents: dict[str, Any]) -> dict[str, Text]:
        """Return agents' prompts and descriptions, and descriptions of the program's own tools."""
        texts: dict[str, Text] = {}
        for name, (options, definition) in agents.items():
            if definition is not None:
                texts[f"agent:{name}"] = attribute([definition], "prompt")
                texts[f"description:{name}"] = attribute([definition], "description")
                continue
            if isinstance(options.system_prompt, str):
                texts[f"agent:{name}"] = attribute([options], "system_prompt")
            servers = options.mcp_servers if isinstance(options.mcp_servers, dict) else {}
            for server, config in servers.items():
                if isinstance(config, dict) and config.get("type") == "sdk":
                    for tool in _aside(config["instance"]):
                        full = prefix_of(server) + tool["name"]
                        texts[f"tool:{full}"] = _description(full, tool.get("description") or "")
        return texts

    async def go_on(
        self,
        agent: Any,
        messages: Sequence[Message],
        session: Session,  # noqa: ARG002
    ) -> Any:
        """Call Claude Code in a session that holds the earlier messages."""
        options, definition = agent
        cast = Cast()
        if definition is not None:
            name = next(n for n, each in options.agents.items() if each is definition)
            cast = Cast(name, definition.tools, definition.disallowedTools or ())
            model = definition.model if definition.model != "inherit" else None
            options = dataclasses.replace(
                options, system_prompt=definition.prompt, model=model or options.model
            )
        taken_up = moment(None, messages, Path(options.cwd or Path.cwd()), None)
        if taken_up.entries:
            env = {**options.env, **({GOES_ON: "1"} if taken_up.goes_on else {})}
            options = dataclasses.replace(
                options, resume=taken_up.session, session_store=taken_up, env=env
            )
        options = await staged(current(), options, cast=cast, descriptions=_DESCRIPTIONS)
        users = [each.text for each in messages if each.role == "user" and each.text]
        if taken_up.goes_on and users:
            hear_user(users[-1])
        client = sys.modules[self.package].ClaudeSDKClient(options)
        await client.connect()
        try:
            if not taken_up.goes_on:
                await client.query(messages[-1].text or "")
            async with aclosing(client.receive_response()) as heard:
                async for message in heard:
                    if is_a(message, self.package, "ResultMessage"):
                        return message.result
        finally:
            await client.disconnect()
        return None

    def stand_in(self) -> None:
        """Make every conversation with Claude Code start with stand-ins from now on."""
        switch_on()


@functools.cache
def switch_on() -> None:
    """Replace the code that starts Claude Code.

    Replacing ``query`` is not enough, because a program may already hold a reference to it.

    Raises:
        ProviderError: this version of the SDK works differently.
    """
    sdk = sys.modules["claude_agent_sdk"]
    inner = getattr(sys.modules.get("claude_agent_sdk._internal.client"), "InternalClient", None)
    process = getattr(inner, "process_query", None)
    if inner is None or process is None:
        raise ProviderError(
            "stand-ins cannot answer for the tools of this version of `claude_agent_sdk`, so "
            "nothing was run: 0.2.186 is known to work"
        )
    connect = sdk.ClaudeSDKClient.connect

    @functools.wraps(process)
    async def processes(
        self: Any, prompt: Any, options: Any, transport: Any = None
    ) -> AsyncIterator[Any]:
        ready = await _ready(options, transport)
        async with aclosing(process(self, prompt, ready, transport)) as messages:
            async for message in messages:
                yield message

    @functools.wraps(connect)
    async def connects(self: Any, prompt: Any = None) -> None:
        self.options = await _ready(self.options, getattr(self, "_custom_transport", None))
        await connect(self, prompt)

    inner.process_query = processes
    sdk.ClaudeSDKClient.connect = connects


async def _ready(options: Any, transport: Any) -> Any:
    play = current()
    if is_staged(options) or (play is None and not _DESCRIPTIONS):
        return options
    if transport is not None and play is not None and not play.is_idle:
        raise ProviderError(
            "the program talks to Claude Code through its own transport, so stand-ins cannot "
            "answer for its tools"
        )
    return await staged(play, options, descriptions=_DESCRIPTIONS)


def _description(tool: str, text: str) -> Text:
    def write(new: str) -> None:
        _DESCRIPTIONS.pop(tool, None)
        if new != text:
            _DESCRIPTIONS[tool] = new
            switch_on()

    return Text(lambda: _DESCRIPTIONS.get(tool, text), write)


def _aside(server: Any) -> list[dict[str, Any]]:
    """List the tools of a server of the program, even if an event loop is already running."""
    messages_aside: list[dict[str, Any]] = []
    thread = threading.Thread(target=lambda: messages_aside.extend(asyncio.run(listed(server))))
    thread.start()
    thread.join()
    return messages_aside

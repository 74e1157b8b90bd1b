"""The Claude Agent SDK's client: the one file that imports it."""

from __future__ import annotations

import dataclasses
import importlib.util
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from baton.model import AgentCard, ProviderError
from baton.providers.functions import named
from baton.readers.claude.wire import from_sdk

from .options import ClaudeSdkOptions, definition
from .play import Lost

_FOLDED = frozenset({"StreamEvent", "RateLimitEvent"})


def installed() -> bool:
    """Tell whether the SDK is there, without importing it."""
    return importlib.util.find_spec("claude_agent_sdk") is not None


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
            **_accepted(sdk.ClaudeAgentOptions, {"forward_subagent_text": True}),
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


def _accepted(options: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options that this version of the SDK knows."""
    known = {field.name for field in dataclasses.fields(options)}
    return {name: value for name, value in given.items() if name in known}

"""Pydantic AI with the tools of an MCP server, as its own program: its client changes `mcp`.

Standard input has the policy (pickled by the test), the arguments are the command of the server.
Prints what the agent said and what the guard noted, as JSON.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

from baton.guard import Guard
from baton.guard.pydantic_ai import GuardCapability
from baton.model.current_guard import DECISIONS

from .in_pydantic_ai import scripted


async def said_by(guard: Guard, command: list[str]) -> str:
    server = MCPToolset({"mcpServers": {"shop": {"command": command[0], "args": command[1:]}}})
    desk = Agent(
        scripted([("charge", {"order": "7"})]),
        name="desk",
        toolsets=[server],
        capabilities=[GuardCapability(guard)],
    )
    async with desk:
        return str((await desk.run("Is sample X-99 clean?")).output)


if __name__ == "__main__":
    notes: list[dict[str, Any]] = []
    DECISIONS.set(notes)
    guard = Guard(pickle.load(sys.stdin.buffer))  # noqa: S301 - the test wrote it
    said = asyncio.run(said_by(guard, sys.argv[1:]))
    print(json.dumps({"said": said, "noted": notes}))

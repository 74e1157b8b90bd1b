"""Options of the provider for the Claude Agent SDK."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from baton.formats.claude_agents import agents_folder, sdk_agents
from baton.http.limits import ANSWER_MIB, EVENTS, Count, Mebibytes
from baton.model import AgentCard, InputError, Problem
from baton.providers.base import Positive, ProviderOptions
from baton.readers import Catalog

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
    found = {}
    if "project" in options.setting_sources and any(project.glob("**/*.md")):
        found = agents_folder(project)
    return {**found, **agents_of(options, folder)}


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

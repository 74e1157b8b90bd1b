"""Agent definitions: the agents of an application, and their tools."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec

from baton.formats.claude_definitions import agent_file, agents_folder, is_sdk_agents, sdk_agents
from baton.formats.document import Document, read_bytes
from baton.formats.input_files import InputFile
from baton.model import AgentCard, InputError, Problem

Catalog = dict[str, AgentCard]

SHARES_HISTORY = {"default": True, "none": False}
"""The values of ``include_contents`` of an ADK agent."""

_ROOT = re.compile(rb'"root(AgentName|_agent_name)"')
_AGENT_TOOL_SCHEMA = {
    "type": "object",
    "properties": {"request": {"type": "string"}},
    "required": ["request"],
}


class CatalogFile(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A catalog as Baton writes it: ``agents:`` by name."""

    agents: dict[str, AgentCard]


def is_app_info(value: Any) -> bool:
    """Return whether it is a response of an ADK server's ``/apps/{app}/app-info``."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("agents"), dict)
        and ("rootAgentName" in value or "root_agent_name" in value)
    )


def app_info_catalog(value: dict[str, Any]) -> Catalog:
    """Read an app-info answer.

    ADK only lists LLM agents: workflow agents, and all agents below them, are missing. The agent
    behind an AgentTool is among the tools, and is recognised by its plain ``request`` schema.
    """
    catalog: Catalog = {}
    for name, info in value["agents"].items():
        tools = []
        for tool in info.get("tools") or ():
            declared = tool.get("functionDeclarations") or tool.get("function_declarations") or ()
            for function in declared:
                tools.append(function["name"])
                if function.get("parametersJsonSchema") == _AGENT_TOOL_SCHEMA:
                    card = AgentCard(description=function.get("description"))
                    catalog.setdefault(function["name"], card)
        catalog[name] = AgentCard(
            description=info.get("description") or None,
            instructions=info.get("instruction") or None,
            tools=tools,
            sub_agents=list(info.get("sub_agents") or info.get("subAgents") or ()),
            shares_history=SHARES_HISTORY.get(
                str(info.get("include_contents") or info.get("includeContents"))
            ),
        )
    return catalog


def load_catalog(path: str | os.PathLike[str]) -> Catalog:
    """Load agent definitions.

    An app-info answer of ADK; YAML or JSON with ``agents:``; what the Claude Agent SDK takes as
    ``agents``; a definition of a Claude sub-agent (``.md``), or a folder of these.

    Raises:
        InputError: it is not one of these, or has errors.
    """
    if Path(path).is_dir():
        return agents_folder(Path(path))
    if Path(path).suffix == ".md":
        return dict([agent_file(Path(path))])
    if Path(path).suffix == ".py":
        raise InputError(Problem(file=os.fspath(path), message=_PYTHON))
    data = read_bytes(path)
    document = Document(os.fspath(path), data, "json" if data.lstrip()[:1] == b"{" else "yaml")
    value = document.value()
    if is_app_info(value):
        try:
            return app_info_catalog(value)
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(
                document.problem(f"not an app-info answer of ADK: {error!r}")
            ) from error
    inner = value.get("agents", value) if isinstance(value, dict) else value
    if is_sdk_agents(inner):
        return sdk_agents(inner)
    if not isinstance(value, dict) or "agents" not in value:
        raise InputError(document.problem("no agent definitions: needs `agents:` by name"))
    return document.convert(value, CatalogFile).agents


_PYTHON = (
    "definitions are not read from Python, which would have to be run: name YAML such as "
    "`agents: {billing: {tools: [refund]}}`, a folder with `.claude/agents/*.md`, a JSON file with "
    "the `agents` of the Claude Agent SDK, or an answer of an ADK server to `/apps/APP/app-info`"
)


def is_catalog_file(file: Path | InputFile) -> bool:
    """Return whether a file is an app-info answer, by its content."""
    path = file.path if isinstance(file, InputFile) else file
    if path.stat().st_size > 4_000_000:
        return False
    try:
        data = file.content() if isinstance(file, InputFile) else path.read_bytes()
    except InputError:
        return False  # its reader reports its problems
    if not data.lstrip().startswith(b"{") or not _ROOT.search(data):
        return False
    try:
        return is_app_info(msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False

"""The agents that the YAML files of an ADK app create, read without running them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Set
from pathlib import Path
from typing import Any, NamedTuple

from baton.formats.document import Document
from baton.formats.input_files import read_bytes
from baton.model import InputError

from .read_adk_code import ADK_TOOLS, LLM_AGENTS, MODEL_TOOLS, OPAQUE, Child, CodeAgent, Instruction

ROOT_FILE = "root_agent.yaml"
# Real apps have a few files; hostile ones may have any number of them.
_MOST_FILES = 500
_BEFORE = ("before_agent_callback", "before_model_callback")


class YamlApp(NamedTuple):
    """The content of an app's YAML files, as far as the root refers to them.

    ``files`` are those that were read. ``root`` is the name of the agent that opens a turn, if it
    has a model. ``mentioned`` are all texts and keys. ``foreign``: code of another module runs
    before an agent. ``unread``: there are agents whose names cannot be read.
    """

    files: frozenset[Path]
    root: str | None
    agents: list[CodeAgent]
    instructions: list[Instruction]
    mentioned: frozenset[str]
    foreign: bool
    unread: bool


def read_yaml_app(folder: Path, functions: Set[str]) -> YamlApp:
    """Read ``root_agent.yaml`` and the files that it refers to; ``functions`` are the app's."""
    documents: dict[Path, Document] = {}
    values: dict[Path, dict[str, Any]] = {}
    unread = False
    waiting = [folder / ROOT_FILE]
    while waiting:
        file = waiting.pop(0)
        if file in values:
            continue
        document = _document(file, folder) if len(values) < _MOST_FILES else None
        if document is None:
            unread = True
            continue
        documents[file], values[file] = document, document.value()
        waiting += _references(file, values[file])
    names = {file: _text(value.get("name")) for file, value in values.items()}
    agents = [
        _agent(documents[file], file, value, names, functions) for file, value in values.items()
    ]
    root = values.get(folder / ROOT_FILE, {"agent_class": ""})
    return YamlApp(
        files=frozenset(values),
        root=_text(root.get("name")) if _class(root) in LLM_AGENTS else None,
        agents=agents,
        instructions=[
            Instruction(names[file], text, str(file), documents[file].line((key,)) or 1)
            for file, value in values.items()
            for key in ("instruction", "global_instruction")
            if _class(value) in LLM_AGENTS and (text := _text(value.get(key))) is not None
        ],
        mentioned=frozenset(text for value in values.values() for text in _texts(value)),
        foreign=any(_runs_foreign_code(value, functions) for value in values.values()),
        # The names of the nodes of a graph depend on its functions.
        unread=unread or any(_class(v) in OPAQUE or "edges" in v for v in values.values()),
    )


def _document(file: Path, folder: Path) -> Document | None:
    """Read a file that the app may refer to; ``None`` for any that is not a mapping in YAML.

    Files outside of the app's folder are not read: the text of a file must not choose them.
    """
    if not file.resolve().is_relative_to(folder.resolve()) or not file.is_file():
        return None
    try:
        document = Document(str(file), read_bytes(file), "yaml")
        return document if isinstance(document.value(), dict) else None
    except InputError:
        return None  # ADK says what is wrong with it


def _references(file: Path, value: Mapping[str, Any]) -> Iterator[Path]:
    """Yield the files of the agents that an agent refers to, as sub-agents or as tools."""
    for each in _entries(value, "sub_agents"):
        if isinstance(path := each.get("config_path"), str):
            yield _beside(file, path)
    for each in _entries(value, "tools"):
        if (tool := _agent_tool(file, each)) is not None:
            yield tool


def _agent_tool(file: Path, tool: Mapping[str, Any]) -> Path | None:
    """Return the file of the agent behind an ``AgentTool``: its ``agent`` is a path, or has one."""
    arguments = tool.get("args")
    if tool.get("name") != "AgentTool" or not isinstance(arguments, dict):
        return None
    agent = arguments.get("agent")
    path = agent.get("config_path") if isinstance(agent, dict) else agent
    return _beside(file, path) if isinstance(path, str) else None


def _beside(file: Path, path: str) -> Path:
    return Path(os.path.normpath(file.parent / path))


def _agent(
    document: Document,
    file: Path,
    value: Mapping[str, Any],
    names: Mapping[Path, str | None],
    functions: Set[str],
) -> CodeAgent:
    tools = [_tool(file, tool, names, functions) for tool in _entries(value, "tools")]
    known = [tool for tool in tools if tool is not None]
    children = [
        # Each reference to a file makes an agent anew; the name of an agent in code is unknown.
        Child(
            "made" if "config_path" in child else "unclear",
            "",
            document.line(("sub_agents", place)) or 1,
        )
        for place, child in enumerate(_entries(value, "sub_agents"))
    ]
    return CodeAgent(
        name=names[file],
        file=str(file),
        line=document.line(("name",)) or 1,
        children=children,
        tools=frozenset(known) if len(known) == len(tools) else None,
        inside=frozenset(tool for tool in known if tool in MODEL_TOOLS),
        thinks=_thinks(value),
        at_import=True,
    )


def _tool(
    file: Path, tool: Mapping[str, Any], names: Mapping[Path, str | None], functions: Set[str]
) -> str | None:
    """Return the name of a tool; ``None`` if it may be a set of tools, or has another name.

    A name without a dot is one of ADK's own tools: `google_search`. Another one is an object in
    code: `my_agent.tools.lookup` is a tool of that name if `lookup` is a function of the app.
    """
    agent = _agent_tool(file, tool)
    if agent is not None:
        return names.get(agent)
    name = _text(tool.get("name")) or ""
    if "." not in name:
        return name if name in ADK_TOOLS else None
    last = name.rpartition(".")[2]
    return last if last in functions and not tool.get("args") else None


def _thinks(value: Mapping[str, Any]) -> bool:
    """Tell whether a model is configured to think, and not forced to call a tool."""
    config = _mapping(value, "generate_content_config")
    thinking = _mapping(config, "thinking_config", "thinkingConfig")
    calling = _mapping(
        _mapping(config, "tool_config", "toolConfig"),
        "function_calling_config",
        "functionCallingConfig",
    )
    budget = thinking.get("thinking_budget", thinking.get("thinkingBudget"))
    return bool(thinking) and budget != 0 and calling.get("mode") != "ANY"


def _runs_foreign_code(value: Mapping[str, Any], functions: Set[str]) -> bool:
    for key in _BEFORE:
        for name in (key, f"{key}s"):  # ADK takes one, or a list
            stated = value.get(name)
            for each in stated if isinstance(stated, list) else [stated]:
                called = _text(each.get("name")) if isinstance(each, dict) else each
                if called is not None and str(called).rpartition(".")[2] not in functions:
                    return True
    return False


def _class(value: Mapping[str, Any]) -> str:
    """Return the last part of an agent's class; ADK's default is an agent with a model."""
    return (_text(value.get("agent_class", LLM_AGENTS[0])) or "").rpartition(".")[2]


def _entries(value: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """Return the entries of a list; what is no mapping there is an empty one, and so unclear."""
    listed = value.get(key)
    if listed is None:
        return []
    items = listed if isinstance(listed, list) else [listed]
    return [item if isinstance(item, dict) else {} for item in items]


def _mapping(value: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    first = next((value[key] for key in keys if key in value), None)
    return first if isinstance(first, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts and keys; how deep a document is has a limit."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)

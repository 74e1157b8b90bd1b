"""A folder of agents for Google ADK, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from .read_adk_code import (
    LLM_AGENTS,
    CodeAgent,
    Instruction,
    called,
    give_original_names,
    makes_unread_agents,
    module_functions,
    read_agents,
)
from .read_adk_yaml import ROOT_FILE, read_yaml_app

_AGENT_FILES = ("agent.py", ROOT_FILE)
_BEFORE = ("before_agent_callback", "before_model_callback")
_PROJECT = (".git", "pyproject.toml", "setup.py", "requirements.txt")
_HIDDEN = ("__pycache__", "node_modules", "site-packages")


class DeclaredName(NamedTuple):
    """The name that an ``App`` gets in the code."""

    name: str
    file: str
    line: int


class App(NamedTuple):
    """The content of an app's code, or of its YAML files.

    ``root`` is the name of the agent that opens a turn, if the code states it. ``mentioned`` are
    all texts and keywords that may be keys of the state; ``state_types`` are the types of the
    literals that the code stores there. ``state_unclear``: more may be stored there than can be
    read. ``agents`` are those that the code creates; with ``unread`` it creates more whose names
    cannot be read. ``yaml_files`` are the files in YAML that define agents.
    """

    folder: Path
    root: str | None
    instructions: list[Instruction]
    functions: frozenset[str]
    mentioned: frozenset[str]
    state_types: Mapping[str, frozenset[type]]
    state_unclear: bool
    declared: DeclaredName | None
    agents: list[CodeAgent]
    unread: bool
    yaml_files: frozenset[Path] = frozenset()

    @property
    def name(self) -> str:
        """The name ADK knows it by: that of its folder."""
        return self.folder.resolve().name


def is_app(folder: Path) -> bool:
    """Tell whether a folder holds an agent of ADK."""
    return any((folder / name).is_file() for name in _AGENT_FILES)


def apps_below(folder: Path) -> Iterator[Path]:
    """Yield the folder itself if it is an app, or else the apps directly below it."""
    if is_app(folder):
        yield folder
    elif folder.is_dir():
        yield from sorted(child for child in folder.iterdir() if child.is_dir() and is_app(child))


def apps_near(file: Path) -> list[Path]:
    """Return the apps that contain a file or are next to it.

    These are the nearest folder above it that is an app, or has apps in it: its own folder, the
    one above, and further up (four folders at most) only the root of a project.
    """
    for step, folder in enumerate(list(file.resolve().parents)[:4]):
        is_project = any((folder / name).exists() for name in _PROJECT)
        apps = list(apps_below(folder)) if step < 2 or is_project else []
        if is_app(folder) or apps or is_project:
            return [folder] if is_app(folder) else apps
    return []


def read_app(folder: Path) -> App:
    """Read the files of an app; a file in Python that cannot be parsed may do anything.

    As in ADK, ``root_agent.yaml`` counts only if there is no ``agent.py``.
    """
    trees: dict[str, ast.Module] = {}
    in_python = (folder / "agent.py").is_file()
    unclear = not is_app(folder)
    for file in sorted(folder.rglob("*.py")):
        if any(part.startswith(".") or part in _HIDDEN for part in file.parts[len(folder.parts) :]):
            continue
        try:
            trees[str(file)] = ast.parse(file.read_text(encoding="utf-8"))
        except (SyntaxError, ValueError, OSError):
            unclear = True
    give_original_names(trees)
    nodes = [(file, node) for file, tree in trees.items() for node in ast.walk(tree)]
    texts = _module_texts(trees.values())
    functions = frozenset(
        node.name for _, node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    types, writes_unclear = _state_types(node for _, node in nodes)
    app = App(
        folder=folder,
        root=_root(trees.get(str(folder / "agent.py"))),
        instructions=list(_instructions(nodes, texts)),
        functions=functions,
        mentioned=_mentioned(node for _, node in nodes),
        state_types=types,
        state_unclear=unclear or writes_unclear or _foreign(nodes, functions),
        declared=next(_declared(nodes), None),
        agents=read_agents(trees),
        unread=unclear or makes_unread_agents(trees.values()),
    )
    if in_python or unclear:
        return app
    undecorated = frozenset(name for tree in trees.values() for name in module_functions(tree))
    written = read_yaml_app(folder, undecorated)
    return app._replace(
        root=written.root,
        instructions=[*app.instructions, *written.instructions],
        mentioned=app.mentioned | written.mentioned,
        state_unclear=app.state_unclear or written.foreign or written.unread,
        agents=[*written.agents, *app.agents],
        unread=app.unread or written.unread,
        yaml_files=written.files,
    )


def _module_texts(trees: Iterable[ast.Module]) -> dict[str, str | None]:
    """Return the named texts of modules; ``None`` for a name that two modules define."""
    texts: dict[str, str | None] = {}
    for tree in trees:
        for node in tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                text = _text(node.value, {})
                name = node.targets[0].id
                texts[name] = None if name in texts else text
    return texts


def _text(node: ast.expr, texts: Mapping[str, str | None]) -> str | None:
    """Return the text of an expression, with gaps for computed parts."""
    match node:
        case ast.Constant(value=str() as value):
            return value
        case ast.JoinedStr(values=values):
            return "".join(_text(part, texts) or "\0" for part in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return (_text(left, texts) or "\0") + (_text(right, texts) or "\0")
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return texts.get(name)
        case ast.Call(func=ast.Name(id="dedent" | "cleandoc"), args=[only]):
            return _text(only, texts)
        case ast.Call(func=ast.Attribute(attr="dedent" | "cleandoc"), args=[only]):
            return _text(only, texts)
        case ast.Call(func=ast.Attribute(value=inner, attr="strip"), args=[]):
            return _text(inner, texts)
    return None


def _instructions(
    nodes: Iterable[tuple[str, ast.AST]], texts: Mapping[str, str | None]
) -> Iterator[Instruction]:
    for file, node in nodes:
        if not isinstance(node, ast.Call) or called(node) not in LLM_AGENTS:
            continue
        for keyword in node.keywords:
            if keyword.arg in ("instruction", "global_instruction"):
                text = _text(keyword.value, texts)
                if text is not None:
                    yield Instruction(_name_of(node), text, file, keyword.value.lineno)


def _root(tree: ast.Module | None) -> str | None:
    """Return the name of ``root_agent``, if it is an LLM agent that is created in place."""
    made = {
        target.id: node.value
        for node in (tree.body if tree else ())
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    value = made.get("root_agent")
    if isinstance(value, ast.Name):
        value = made.get(value.id)
    if isinstance(value, ast.Call) and called(value) in LLM_AGENTS:
        return _name_of(value)
    return None


def _declared(nodes: Iterable[tuple[str, ast.AST]]) -> Iterator[DeclaredName]:
    for file, node in nodes:
        if isinstance(node, ast.Call) and called(node) == "App":
            name = _name_of(node)
            if name is not None and any(k.arg == "root_agent" for k in node.keywords):
                yield DeclaredName(name, file, node.lineno)


def _mentioned(nodes: Iterable[ast.AST]) -> frozenset[str]:
    names = set()
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)
        elif isinstance(node, ast.keyword) and node.arg is not None:
            names.add(node.arg)
    return frozenset(names)


def _state_types(nodes: Iterable[ast.AST]) -> tuple[dict[str, frozenset[type]], bool]:
    """Return the types of literals stored in the state by name, and whether more is stored."""
    types: dict[str, set[type]] = {}
    unclear = False
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Subscript(value=held, slice=key)], value=value):
                if _is_state(held):
                    types.setdefault(_key(key), set()).add(_type(value))
            case ast.Call(func=ast.Attribute(value=held, attr="setdefault"), args=[key, value]):
                if _is_state(held):
                    types.setdefault(_key(key), set()).add(_type(value))
            case ast.Call(func=ast.Attribute(value=held, attr="update")):
                unclear = unclear or _is_state(held)
            case ast.AugAssign(target=ast.Subscript(value=held, slice=key)):
                if _is_state(held):
                    types.setdefault(_key(key), set()).add(object)
    unclear = unclear or "" in types
    return {key: frozenset(names) for key, names in types.items() if key}, unclear


def _foreign(nodes: Iterable[tuple[str, ast.AST]], functions: frozenset[str]) -> bool:
    """Tell whether other code runs before an agent: callbacks, plugins."""
    for _, node in nodes:
        if isinstance(node, ast.keyword) and node.arg == "plugins":
            return True
        if isinstance(node, ast.keyword) and node.arg in _BEFORE:
            own = isinstance(node.value, ast.Name) and node.value.id in functions
            if not own:
                return True
    return False


def _name_of(node: ast.Call) -> str | None:
    for keyword in node.keywords:
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            value = keyword.value.value
            return value if isinstance(value, str) else None
    return None


def _is_state(node: ast.expr) -> bool:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name == "state" or name.endswith("_state")
    return False


def _key(node: ast.expr) -> str:
    """Return a literal key; empty for a computed one."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _type(node: ast.expr) -> type:
    """Return the type of a literal; ``object`` for anything else."""
    match node:
        case ast.Constant(value=value):
            return type(value)
        case ast.List() | ast.ListComp():
            return list
        case ast.Dict() | ast.DictComp():
            return dict
    return object

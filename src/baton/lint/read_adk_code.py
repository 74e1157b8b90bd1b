"""The agents that the code of an ADK app creates, read without running it."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

MODEL_TOOLS: Mapping[str, str] = {
    "google_search": "Google Search",
    "GoogleSearchTool": "Google Search",
    "google_search_retrieval": "Google Search",
    "enterprise_web_search": "Enterprise Web Search",
    "url_context": "URL context",
    "UrlContextTool": "URL context",
    "code_execution": "code execution",
    "code_executor": "code execution",
    "built_in_code_execution": "code execution",
    "BuiltInCodeExecutor": "code execution",
    "vertex_ai_search": "Vertex AI Search",
    "VertexAiSearchTool": "Vertex AI Search",
}
"""A description of each, by the names of the variable, of the class and of older versions: cases
use all of these. The answer has grounding metadata, but no function call, so a case that expects
one never passes.
"""

# ADK's classes for agents; classes that the code derives from them are added.
_AGENT_CLASSES = frozenset(
    {"Agent", "BaseAgent", "LlmAgent", "LangGraphAgent", "LoopAgent", "ParallelAgent"}
    | {"RemoteA2aAgent", "SequentialAgent"}
)
LLM_AGENTS = ("Agent", "LlmAgent")
"""ADK's classes for agents that have a model."""
# ADK's tools that are named like the variable; anything else that is imported may be a set of tools
# with any names.
ADK_TOOLS = frozenset(
    {"exit_loop", "get_user_choice", "load_artifacts", "load_memory", "load_web_page"}
    | {"preload_memory", "transfer_to_agent", "google_maps_grounding", *MODEL_TOOLS}
)
# Calls that create agents or nodes with unknown names: graphs of functions, remote agents with
# sub-agents, copies with another name, configs.
OPAQUE = frozenset(
    {"Workflow", "RemoteA2aAgent", "LangGraphAgent", "clone", "model_copy", "from_config"}
)
# The most names in one list expression; hostile code may have a chain of thousands.
_MOST_NAMES = 50
_OF_FUNCTIONS = ("FunctionTool", "LongRunningFunctionTool")


class Instruction(NamedTuple):
    """The instruction of an agent, and its place."""

    agent: str | None
    text: str
    file: str
    line: int


class Child(NamedTuple):
    """One entry of ``sub_agents``.

    ``instance``: a variable with an agent; ``function``: a function that was not called; ``made``:
    an agent that is created there, or by a function of the app; ``unclear``: anything else.
    ``source`` is the file and the line where an instance is created.
    """

    kind: Literal["instance", "function", "made", "unclear"]
    name: str
    line: int
    source: tuple[str, int] | None = None


class CodeAgent(NamedTuple):
    """An agent that the code creates; a computed ``name`` is ``None``.

    ``tools`` are the names of its tools, ``None`` if some cannot be read; ``inside`` are those that
    run inside the model. ``thinks``: its model is configured to think and not forced to call a
    tool. ``at_import``: it is created when its module is imported.
    """

    name: str | None
    file: str
    line: int
    children: list[Child]
    tools: frozenset[str] | None
    inside: frozenset[str]
    thinks: bool
    at_import: bool


class _Names(NamedTuple):
    """The meaning of names: agents' classes, functions and values, by file and in the whole app."""

    classes: frozenset[str]
    functions: Mapping[str, set[str]]
    values: Mapping[str, dict[str, ast.expr]]

    def value(self, file: str, name: str) -> ast.expr | None:
        """Return the value of a name in a module, or in the only other module that defines it."""
        where = self.file_of(file, name)
        return None if where is None else self.values[where][name]

    def file_of(self, file: str, name: str) -> str | None:
        """Return the file of the module that gives a name its value."""
        if name in self.values[file]:
            return file
        others = [other for other, values in self.values.items() if name in values]
        return others[0] if len(others) == 1 and not self.is_function(file, name) else None

    def is_function(self, file: str, name: str) -> bool:
        """Tell whether a name is that of a function of the app, and of nothing else."""
        if name in self.values[file]:
            return False
        return name in self.functions[file] or (
            any(name in functions for functions in self.functions.values())
            and not any(name in values for values in self.values.values())
        )


def read_agents(trees: Mapping[str, ast.Module]) -> list[CodeAgent]:
    """Return the agents that modules create; none if they do not use Google's ADK."""
    if not any(_imports_adk(node) for tree in trees.values() for node in tree.body):
        return []
    names = _Names(
        classes=_agent_classes(trees.values()),
        functions={file: module_functions(tree) for file, tree in trees.items()},
        values={file: _values(tree) for file, tree in trees.items()},
    )
    agents = []
    for file, tree in trees.items():
        within = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and called(node) in names.classes:
                agents.append(_agent(node, file, names, at_import=id(node) not in within))
    return agents


def give_original_names(trees: Mapping[str, ast.Module]) -> None:
    """Replace the names that modules give to imported things by the original ones, in place.

    ``from google.adk.agents import LlmAgent as A`` and ``from . import parts`` with ``parts.make``
    mean ``LlmAgent`` and ``make``. A name stays as it is if the module has another thing of the
    original name.
    """
    own_modules = {Path(file).stem for file in trees}
    for tree in trees.values():
        bound = {name for node in ast.walk(tree) for name in _bound(node)}
        things: dict[str, tuple[str, str]] = {}
        modules: dict[str, str] = {}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            origin = (node.module or "") if isinstance(node, ast.ImportFrom) else None
            for alias in node.names:
                last = alias.name.rpartition(".")[2]
                of_google = (origin if origin is not None else alias.name).startswith("google")
                if last in own_modules and not of_google:
                    modules[alias.asname or alias.name] = last
                elif origin is not None:
                    things[alias.asname or alias.name] = (origin, alias.name)
        originals = Counter(set(things.values()))
        alike = Counter(name for _, name in originals)
        new_names = {
            name: original
            for name, (_, original) in things.items()
            if name != original and not {name, original} & (bound | modules.keys())
            if alike[original] == 1
        }
        # What the module itself has under a name, by the module that it comes from.
        own = dict.fromkeys((*bound, *modules), "")
        own |= {name: origin.rpartition(".")[2] for name, (origin, _) in things.items()}
        usable = {name: module for name, module in modules.items() if name not in bound}
        for node in ast.walk(tree):
            for field, value in ast.iter_fields(node):
                if isinstance(value, ast.expr):
                    setattr(node, field, _with_original(value, new_names, usable, own))
                elif isinstance(value, list):
                    value[:] = [
                        _with_original(each, new_names, usable, own)
                        if isinstance(each, ast.expr)
                        else each
                        for each in value
                    ]


def _bound(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name


def _with_original(
    node: ast.expr, names: Mapping[str, str], modules: Mapping[str, str], own: Mapping[str, str]
) -> ast.expr:
    match node:
        case ast.Name(id=name) if name in names:
            return ast.copy_location(ast.Name(names[name], node.ctx), node)
        case ast.Attribute(value=ast.Name(id=module), attr=name) if module in modules:
            if own.get(name, modules[module]) == modules[module]:
                return ast.copy_location(ast.Name(name, node.ctx), node)
    return node


def makes_unread_agents(trees: Iterable[ast.Module]) -> bool:
    """Tell whether code creates agents with unknown names."""
    return any(
        isinstance(node, ast.Call) and called(node) in OPAQUE
        for tree in trees
        for node in ast.walk(tree)
    )


def called(node: ast.Call) -> str | None:
    """Return the last part of the called name."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None


def _imports_adk(node: ast.stmt) -> bool:
    match node:
        case ast.ImportFrom(module=str() as module):
            return module == "google.adk" or module.startswith("google.adk.")
        case ast.ImportFrom(module=None) | ast.Import():
            return any(alias.name.startswith("google.adk") for alias in node.names)
    return False


def _agent_classes(trees: Iterable[ast.Module]) -> frozenset[str]:
    derived = {
        node.name: {base.id for base in node.bases if isinstance(base, ast.Name)}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    classes = set(_AGENT_CLASSES)
    while more := {name for name, bases in derived.items() if bases & classes} - classes:
        classes |= more
    return frozenset(classes)


def module_functions(tree: ast.Module) -> set[str]:
    """Return the functions of a module that have no decorator.

    One may turn a function into something else, such as a tool or an agent.
    """
    return {
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list
    }


def _values(tree: ast.Module) -> dict[str, ast.expr]:
    values: dict[str, ast.expr] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                values[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values[name] = value
    return values


def _agent(node: ast.Call, file: str, names: _Names, *, at_import: bool) -> CodeAgent:
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    name = keywords.get("name")
    if isinstance(name, ast.Name):
        name = names.value(file, name.id)
    settings = [
        inner
        for key in ("planner", "generate_content_config")
        if key in keywords
        for inner in _reachable(keywords[key], file, names)
    ]
    return CodeAgent(
        name=name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None,
        file=file,
        line=node.lineno,
        children=[*_children(keywords.get("sub_agents"), file, names)],
        tools=_tools(keywords.get("tools"), file, names),
        inside=frozenset(_inside(keywords, file, names)),
        thinks=_thinks(settings, file, names) and not _has_to_call(settings),
        at_import=at_import,
    )


def _reachable(node: ast.expr, file: str, names: _Names) -> Iterator[ast.AST]:
    """Yield the parts of an expression, and those of the variables in it: `planner=PLANNER`."""
    seen: set[str] = set()
    open_: list[ast.expr] = [node]
    while open_:
        for inner in ast.walk(open_.pop()):
            yield inner
            if isinstance(inner, ast.Name) and inner.id not in seen and len(seen) < _MOST_NAMES:
                seen.add(inner.id)
                value = names.value(file, inner.id)
                open_ += [] if value is None else [value]


def _options(node: ast.AST) -> dict[str, ast.expr]:
    """Return the keywords of a call, or the entries of a dict: ADK accepts both for a config."""
    match node:
        case ast.Call(keywords=keywords):
            return {keyword.arg: keyword.value for keyword in keywords if keyword.arg}
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}
    return {}


def _thinks(settings: Iterable[ast.AST], file: str, names: _Names) -> bool:
    """Tell whether a model is configured to think; a budget of 0 turns thinking off."""
    for node in settings:
        stated = _options(node)
        config = stated.get("thinking_config", stated.get("thinkingConfig"))
        if isinstance(config, ast.Name):
            config = names.value(file, config.id)
        if isinstance(config, ast.Call | ast.Dict):
            options = _options(config)
            budget = options.get("thinking_budget", options.get("thinkingBudget"))
            if budget is None:
                return True
            if isinstance(budget, ast.Name):
                budget = names.value(file, budget.id)
            match budget:
                case ast.Constant(value=value):
                    return value != 0
                case ast.UnaryOp(op=ast.USub()):  # -1: the model decides how long
                    return True
            return False  # computed: it may be 0
    return False


def _has_to_call(settings: Iterable[ast.AST]) -> bool:
    """Tell whether a model has to call a tool: ``mode="ANY"``, or the member of that name."""
    for node in settings:
        match _options(node).get("mode"):
            case ast.Constant(value="ANY") | ast.Attribute(attr="ANY"):
                return True
    return False


def _entries(
    node: ast.expr | None, file: str, names: _Names, seen: set[str] | None = None
) -> Iterator[ast.expr]:
    """Yield the entries of a list, also of its parts if it is composed (`[*COMMON, x] + MORE`).

    Unreadable parts are yielded as such (`*MORE`). Each name is looked up only once (``seen``), as
    code may assign a name to itself.
    """
    seen = set() if seen is None else seen
    parts: list[ast.expr] = []
    # A long sum is a deep tree to the left.
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        parts.append(node.right)
        node = node.left
    for part in reversed([*parts, node]) if node is not None else ():
        match part:
            case ast.List(elts=elts) | ast.Tuple(elts=elts):
                for each in elts:
                    inner = each.value if isinstance(each, ast.Starred) else None
                    yield from _entries(inner, file, names, seen) if inner is not None else (each,)
            case ast.BinOp(op=ast.Add()):
                yield from _entries(part, file, names, seen)
            case ast.Name(id=name) if len(seen) < _MOST_NAMES and name not in seen:
                seen.add(name)
                value = names.value(file, name)
                unread = (ast.copy_location(ast.Starred(part), part),)
                yield from unread if value is None else _entries(value, file, names, seen)
            case _:
                yield ast.copy_location(ast.Starred(part), part)


def _children(node: ast.expr | None, file: str, names: _Names) -> Iterator[Child]:
    for each in _entries(node, file, names):
        match each:
            case ast.Name(id=name) if names.is_function(file, name):
                yield Child("function", name, each.lineno)
            case ast.Name(id=name):
                value, where = names.value(file, name), names.file_of(file, name)
                if isinstance(value, ast.Call) and where and _makes_agent(value, where, names):
                    yield Child("instance", name, each.lineno, (where, value.lineno))
                else:
                    yield Child("unclear", name, each.lineno)
            case ast.Call() if _makes_agent(each, file, names):
                yield Child("made", "", each.lineno)
            case ast.Lambda():
                yield Child("function", "lambda", each.lineno)
            case ast.Call(
                func=ast.Name(id="partial")
                | ast.Attribute(value=ast.Name(id="functools"), attr="partial")
            ):
                yield Child("function", "partial", each.lineno)
            case _:
                yield Child("unclear", "", each.lineno)


def _makes_agent(node: ast.Call, file: str, names: _Names) -> bool:
    name = called(node) or ""
    return name in names.classes or names.is_function(file, name)


def _tools(node: ast.expr | None, file: str, names: _Names) -> frozenset[str] | None:
    """Return the names of tools; ``None`` if one may be a set of tools, or has another name."""
    tools: set[str] = set()
    for each in _entries(node, file, names):
        one = _tool(each, file, names)
        if one is None:
            return None
        tools.add(one)
    return frozenset(tools)


def _inside(keywords: Mapping[str | None, ast.expr], file: str, names: _Names) -> Iterator[str]:
    """Yield the tools that run inside the model; `code_executor` is one, but not among `tools`."""
    executor = keywords.get("code_executor")
    for each in (*_entries(keywords.get("tools"), file, names), *([executor] if executor else ())):
        is_variable = isinstance(each, ast.Name) and each.id not in MODEL_TOOLS
        value = names.value(file, each.id) if isinstance(each, ast.Name) and is_variable else each
        match value:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in MODEL_TOOLS:
                yield name
            case ast.Call() if (name := called(value) or "") in MODEL_TOOLS:
                yield name


def _tool(node: ast.expr, file: str, names: _Names) -> str | None:
    match node:
        case ast.Name(id=name) if names.is_function(file, name):
            return name
        case ast.Name(id=name) if (value := names.value(file, name)) is not None:
            return _tool(value, file, names) if isinstance(value, ast.Call) else None
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in ADK_TOOLS:
            return name
        case ast.Call() if called(node) in MODEL_TOOLS:
            return called(node)
        case ast.Call() if called(node) in _OF_FUNCTIONS:
            function = next((k.value for k in node.keywords if k.arg == "func"), None)
            inner = function or (node.args[0] if node.args else None)
            if isinstance(inner, ast.Name) and names.is_function(file, inner.id):
                return inner.id
        case ast.Call() if called(node) == "AgentTool":
            agent = next((k.value for k in node.keywords if k.arg == "agent"), None)
            return _agent_name(agent or (node.args[0] if node.args else None), file, names)
    return None


def _agent_name(node: ast.expr | None, file: str, names: _Names) -> str | None:
    if isinstance(node, ast.Name):
        node = names.value(file, node.id)
    if not isinstance(node, ast.Call) or called(node) not in names.classes:
        return None
    name = next((k.value for k in node.keywords if k.arg == "name"), None)
    return name.value if isinstance(name, ast.Constant) and isinstance(name.value, str) else None

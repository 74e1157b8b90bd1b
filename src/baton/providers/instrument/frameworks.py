"""Agent frameworks: recognises which ones a program uses, and what records them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Collection, Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import NamedTuple

from baton.plugins.user_code import (
    load_object,
    names_imported_below,
    packages_imported_from,
)

GROUP = "opentelemetry_instrumentor"
"""The group of entry points for instrumentors."""


def installed_instrumentors() -> tuple[EntryPoint, ...]:
    """Return the installed instrumentors.

    The result is cached, because the search reads a file of each installed package (30 ms).
    """
    return _offered(tuple(sys.path))


@cache
def _offered(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:  # noqa: ARG001 - it is the key
    return tuple(entry_points(group=GROUP))


class Framework(NamedTuple):
    """A framework, and the module that programs import from it.

    ``package`` contains an instrumentor with the name ``instrumentor``; without them the framework
    writes spans itself, or Baton does.
    """

    name: str
    module: str
    instrumentor: str = ""
    package: str = ""

    @property
    def is_recorded(self) -> bool:
        """Whether its instrumentor is installed."""
        names = {entry.name.replace("-", "_") for entry in installed_instrumentors()}
        return not self.instrumentor or self.instrumentor in names


_PACKAGE = "openinference-instrumentation-"
CLAUDE = "claude_agent_sdk"
"""The SDK whose messages Baton records itself, without an instrumentor."""
ADK = "google.adk"
"""The framework whose agents can also be played without spans."""
FRAMEWORKS = (
    Framework("Google ADK", ADK),
    Framework("Strands", "strands"),
    Framework("pydantic-ai", "pydantic_ai"),
    Framework("AutoGen", "autogen_core"),
    Framework("AutoGen", "autogen_agentchat"),
    Framework("Microsoft Agent Framework", "agent_framework"),
    Framework("Semantic Kernel", "semantic_kernel"),
    Framework("OpenAI Agents", "agents", "openai_agents", f"{_PACKAGE}openai-agents"),
    # Recorded by their instrumentor if it is installed, else by Baton's handler.
    Framework("LangGraph", "langgraph"),
    Framework("LangChain", "langchain"),
    Framework("CrewAI", "crewai", "crewai", f"{_PACKAGE}crewai"),
    Framework("Claude Agent SDK", CLAUDE, CLAUDE, f"{_PACKAGE}claude-agent-sdk"),
    Framework("smolagents", "smolagents", "smolagents", f"{_PACKAGE}smolagents"),
    Framework("Agno", "agno", "agno", f"{_PACKAGE}agno"),
    Framework("LlamaIndex", "llama_index", "llama_index", f"{_PACKAGE}llama-index"),
)
# Programs may have their own module `agents`; only the SDK has this submodule.
_PROOF = {"agents": "agents.tracing"}


def frameworks_in(modules: Collection[str]) -> list[Framework]:
    """Return the frameworks among the modules that are imported, such as ``sys.modules``."""
    return [each for each in FRAMEWORKS if _PROOF.get(each.module, each.module) in modules]


def unrecorded(frameworks: Iterable[Framework]) -> dict[str, str]:
    """Return what to install for the frameworks that nothing records: package by framework."""
    return {each.name: each.package for each in frameworks if not each.is_recorded}


class Examined(NamedTuple):
    """What an agent's module uses. ``imported`` are frameworks that its own files import.

    ``has_spans``: a framework, or the program itself, makes spans that show what it does.
    ``is_of_adk``: it is an agent or App of Google ADK.
    """

    imported: list[Framework]
    has_spans: bool
    is_of_adk: bool


def examine(target: str, folder: Path) -> Examined:
    """Return which frameworks ``module:name`` uses.

    A program that makes spans is then played in another process, so it is not loaded here if its
    imports show that it does: loading may take long, or open a port. Any other program is loaded in
    this process, which plays it as well.

    Raises:
        InputError: it cannot be loaded.
    """
    names = packages_imported_from(target, folder)
    imported = _imported(names)
    # Whether it is an agent of ADK itself, or a function that asks one, shows only when it is
    # loaded. A program that is loaded before its calls are recorded keeps `query` of Claude's SDK
    # as it was: `from claude_agent_sdk import query`.
    if ADK not in {each.module for each in imported} and (
        imported or _is_among("opentelemetry", names)
    ):
        return Examined(imported, has_spans=True, is_of_adk=False)
    # Programs that only send spans import this module as well, and play nothing.
    from baton.providers.frameworks.program import is_framework_object, is_of_adk

    before = set(sys.modules)
    value = load_object(target, folder)
    names = set(names_imported_below(folder.resolve()))
    # Frameworks import each other: only the imports in the program's own files show which ones it
    # needs.
    imported = _imported(names)
    loaded = set(sys.modules) - before
    used = bool(imported or frameworks_in(loaded) or _is_among("opentelemetry", names))
    return Examined(imported, used or is_framework_object(value), is_of_adk(value))


def _imported(names: Collection[str]) -> list[Framework]:
    return [each for each in FRAMEWORKS if _is_among(each.module, names)]


def _is_among(module: str, names: Collection[str]) -> bool:
    if module == "agents" and not is_sdk_of_openai():
        return False
    return any(name == module or name.startswith(f"{module}.") for name in names)


def is_sdk_of_openai() -> bool:
    """Return whether ``agents`` is OpenAI's package and not a folder of the program."""
    if "agents" in sys.modules:
        return _PROOF["agents"] in sys.modules
    found = importlib.util.find_spec("agents")
    places = found.submodule_search_locations if found is not None else None
    return found is None or any((Path(place) / "tracing").exists() for place in places or ())

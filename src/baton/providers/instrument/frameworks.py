"""Agent frameworks: recognises which ones a program uses, and what records them."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NamedTuple

from baton.model import InputError, Problem
from baton.plugins.user_code import load_object, names_imported_below

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
FRAMEWORKS = (
    Framework("Google ADK", "google.adk"),
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


_LOADING = 300.0
"""Seconds that importing a program may take."""
_START = (
    "import sys; sys.path[:] = {path!r}; "
    "from baton.providers.instrument.frameworks import examine_here; examine_here(*sys.argv[1:])"
)


def examine(target: str, folder: Path) -> Examined:
    """Load ``module:name`` in a separate process, and return which frameworks it uses.

    Raises:
        InputError: it cannot be loaded.
    """
    with tempfile.TemporaryDirectory() as place:
        answer = Path(place) / "answer.json"
        command = [sys.executable, "-c", _START.format(path=sys.path), target, str(folder)]
        try:
            done = subprocess.run(  # noqa: S603 - it is ourselves
                [*command, str(answer)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # the same output comes again when a case is played
                stderr=subprocess.PIPE,
                timeout=_LOADING,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise InputError(f"`{target}` was not imported within {_LOADING:g} s") from None
        if not answer.exists():
            said_last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            ended = f"importing `{target}` ended its process (code {done.returncode})"
            raise InputError(f"{ended}: {said_last}" if said_last else ended)
        outcome = json.loads(answer.read_text(encoding="utf-8"))
    if "problems" in outcome:
        raise InputError(Problem(**problem) for problem in outcome["problems"])
    by_module = {each.module: each for each in FRAMEWORKS}
    imported = [by_module[name] for name in outcome["imported"]]
    return Examined(imported, outcome["has_spans"], outcome["is_of_adk"])


def examine_here(target: str, folder: str, answer: str) -> None:
    """Load ``module:name`` in this process, and write what it uses into a file."""
    # Programs that only send spans import this module as well, and play nothing.
    from baton.providers.frameworks.program import is_framework_object, is_of_adk

    outcome: dict[str, Any]
    try:
        value = load_object(target, Path(folder))
    except InputError as error:
        outcome = {"problems": [{"path": p.path, "message": p.message} for p in error.problems]}
    else:
        names = set(names_imported_below(Path(folder).resolve()))
        # Frameworks import each other: only the imports in the program's own files show which ones
        # it needs.
        imported = [each.module for each in FRAMEWORKS if _is_among(each.module, names)]
        used = bool(imported or frameworks_in(sys.modules) or _is_among("opentelemetry", names))
        has_spans = used or is_framework_object(value)
        outcome = {"imported": imported, "has_spans": has_spans, "is_of_adk": is_of_adk(value)}
    Path(answer).write_text(json.dumps(outcome), encoding="utf-8")


def _is_among(module: str, names: Collection[str]) -> bool:
    if module == "agents" and not is_sdk_of_openai():
        return False
    return any(name == module or name.startswith(f"{module}.") for name in names)


def is_sdk_of_openai() -> bool:
    """Return whether ``agents`` is OpenAI's package and not a folder of the program."""
    return "agents" not in sys.modules or _PROOF["agents"] in sys.modules

"""The input of the rules: all files that are checked together, and their context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import msgspec

from baton.datasets.files import LazyCases
from baton.evaluators.base_evaluator import BaseEvaluator
from baton.formats.document import Document
from baton.formats.explain_mistakes import Path
from baton.formats.key_case import snake
from baton.model import AgentCard, Case, InputError
from baton.runner.plan import PlannedEvaluator

from .read_adk_app import App

Scoring = TypeVar("Scoring", bound=BaseEvaluator)


class LintWarning(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """Something in a file that is likely to be a mistake.

    ``line`` counts from 1; ``what`` says what was found and its effect, ``remedy`` how to fix it.
    """

    file: str
    line: int | None
    rule: str
    what: str
    remedy: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.what}; {self.remedy} [{self.rule}]"


_TURNS = ("conversation", "data", "turns")
_STATES: tuple[Path, ...] = (
    ("session_input", "state"),
    ("initial_session", "state"),
    ("initial_session", "session", "state"),
    ("initial_state",),
    ("state",),
)
_APPS: tuple[Path, ...] = (
    ("session_input", "app_name"),
    ("initial_session", "app_name"),
    ("session", "app"),
)
_CALLS: tuple[Path, ...] = (
    ("intermediate_data", "tool_uses"),
    ("expected_tool_use",),
    ("tools",),
)


class WrittenCall(NamedTuple):
    """An expected call; ``recorded`` if a run really made it, so that the file has its id."""

    name: str
    line: int | None
    recorded: bool


class Written:
    """A case in its file. Keys are found in snake_case and in camelCase."""

    def __init__(self, document: Document) -> None:
        self._document = document

    @property
    def file(self) -> str:
        """The file."""
        return self._document.file

    def state_line(self, name: str | None = None) -> int | None:
        """Return the line of the initial state, or of one of its values."""
        path = self._first(_STATES)
        return self._document.line(path if name is None or not path else (*path, name))

    def app_line(self) -> int | None:
        """Return the line of the app's name."""
        return self._document.line(self._first(_APPS))

    def turn_line(self, turn: int) -> int | None:
        """Return the line of a turn, counted from 0."""
        return self._document.line(self._turn(turn))

    def agents_line(self, turn: int) -> int | None:
        """Return the line that states the agents of a turn."""
        path = self._turn(turn)
        for key in ("agents", "intermediate_data"):
            if _find(self._value, (*path, key)) is not None:
                return self._document.line((*path, key))
        return self._document.line(path)

    def tools_line(self, turn: int) -> int | None:
        """Return the line of `tools:` of a turn; ``None`` in other tools' formats.

        ADK writes an empty list of calls into each turn that it records without a call.
        """
        path = (*self._turn(turn), "tools")
        return None if _find(self._value, path) is None else self._document.line(path)

    def calls(self, turn: int) -> list[WrittenCall]:
        """Return the calls a turn states by name; those in recorded events are left out."""
        path = self._turn(turn)
        written: list[WrittenCall] = []
        for steps in _CALLS:
            for index, call in enumerate(_find(self._value, (*path, *steps)) or ()):
                plain = _snaked(call) if isinstance(call, dict) else {"name": call}
                name = plain.get("name", plain.get("tool_name"))
                if isinstance(name, str):
                    line = self._document.line((*path, *steps, index))
                    written.append(WrittenCall(name, line, plain.get("id") is not None))
        return written

    def told_by_transfers(self, turn: int) -> bool:
        """Tell whether the agents of a turn are only the targets of dispatches.

        That is so if only ``transfer_to_agent`` calls name them, or ``agent_transfer`` records
        whose first one does not state the sender.
        """
        data = _find(self._value, (*self._turn(turn), "intermediate_data"))
        if not isinstance(data, dict):
            return False
        plain = _snaked(data)
        if plain.get("invocation_events") is not None:
            return False
        records = plain.get("intermediate_responses") or []
        if not records:
            return bool(plain.get("tool_uses"))
        first = records[0]
        return (
            isinstance(first, dict)
            and first.get("type") == "agent_transfer"
            and first.get("from_agent") is None
        )

    @cached_property
    def _value(self) -> Any:
        return self._document.value()

    def _first(self, paths: tuple[Path, ...]) -> Path:
        return next((path for path in paths if _find(self._value, path) is not None), ())

    def _turn(self, turn: int) -> Path:
        if isinstance(self._value, list):
            return (turn,)
        for key in _TURNS:
            if _find(self._value, (key, turn)) is not None:
                return (key, turn)
        return ()


def _find(value: Any, path: Path) -> Any:
    """Return the value at a path in snake_case; ``None`` if there is none."""
    for step in path:
        if isinstance(step, int):
            if not isinstance(value, list) or step >= len(value):
                return None
            value = value[step]
        elif isinstance(value, dict):
            value = value[step] if step in value else _snaked(value).get(step)
        else:
            return None
    return value


def _snaked(value: dict[str, Any]) -> dict[str, Any]:
    return {snake(str(key)): item for key, item in value.items()}


class CaseFile(NamedTuple):
    """A dataset file and how it is scored.

    ``adk``: its cases are for agents of Google ADK. ``apps`` are the folders of its agents; empty
    if unknown.
    """

    file: str
    cases: LazyCases
    evaluators: tuple[PlannedEvaluator, ...] = ()
    adk: bool = True
    apps: Sequence[App] = ()
    agent_names: Mapping[str, str] = MappingProxyType({})

    def written(self) -> Iterator[tuple[Case, Written]]:
        """Yield the cases, each with its data in the file."""
        for index, case in enumerate(self.cases):
            yield case, Written(self.cases.document(index))

    def scored_by(self, case: Case, type_: type[Scoring]) -> Iterator[Scoring]:
        """Yield the evaluators of a type that score a case, with the options it overrides.

        An evaluator that refuses these options is left out.
        """
        for planned in self.evaluators:
            if planned.evaluator.type == type_.type:
                with suppress(InputError):
                    evaluator = planned.for_case(case)
                    if isinstance(evaluator, type_):
                        yield evaluator

    def app_of(self, case: Case) -> App | None:
        """Return the app that plays a case, if that is clear."""
        named = [app for app in self.apps if app.name == case.session.app]
        if named:
            return named[0]
        return self.apps[0] if len(self.apps) == 1 and case.session.app is None else None


class CriteriaFile(NamedTuple):
    """A file of ADK's criteria, and the cases that are scored by it."""

    document: Document
    scores: Sequence[CaseFile]

    def criteria(self) -> Iterator[tuple[str, Any, int | None]]:
        """Yield each criterion: its name, its value, and its line."""
        value = self.document.value()
        top = value if isinstance(value, dict) else {}
        key = next((key for key in top if snake(str(key)) == "criteria"), None)
        stated = top[key] if key is not None else None
        for name, criterion in stated.items() if isinstance(stated, dict) else ():
            yield name, criterion, self.document.line((str(key), name))


class Scope(NamedTuple):
    """Everything that is checked together.

    ``agents`` are definitions by name; ``functions`` the tools that are known to be functions.
    """

    cases: Sequence[CaseFile] = ()
    criteria: Sequence[CriteriaFile] = ()
    apps: Sequence[App] = ()
    agents: Mapping[str, AgentCard] = MappingProxyType({})
    functions: frozenset[str] = frozenset()


def stated_agents(case: Case) -> set[str]:
    """Return the agents whose names a case states as those that should run."""
    stages = [stage for turn in case.turns for stage in turn.agents or ()]
    return {n for one in stages for n in ([one] if isinstance(one, str) else one.any_order)}


# With two candidates it is unknown which one opens. One without sub-agents and tools may be an
# unused definition.
def opening_agent(agents: Mapping[str, AgentCard]) -> str | None:
    """Return the only agent that is no sub-agent or tool of another one, and has some itself."""
    below = {
        name: {*card.sub_agents, *(card.tools if isinstance(card.tools, list) else ())}
        & agents.keys()
        for name, card in agents.items()
    }
    led = set().union(*below.values())
    above = [name for name, card in agents.items() if name not in led and card.kind == "agent"]
    return above[0] if len(above) == 1 and below[above[0]] else None

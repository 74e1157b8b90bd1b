"""What the rules look at: all files that are checked together, and what is known around them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from baton.datasets.lazy import LazyCases
from baton.evaluators.base import OptionedEvaluator
from baton.formats.document import Document
from baton.model import AgentCard, Case, InputError
from baton.runner.plan import PlannedEvaluator

from .adk_app import App
from .written import Written


class CaseFile(NamedTuple):
    """A dataset file and how it is scored.

    ``adk`` says that its cases are for agents of Google ADK. ``apps`` are the folders of agents
    that belong to it; empty when none are known.
    """

    file: str
    cases: LazyCases
    evaluators: tuple[PlannedEvaluator, ...] = ()
    adk: bool = True
    apps: Sequence[App] = ()
    agent_names: Mapping[str, str] = MappingProxyType({})

    def written(self) -> Iterator[tuple[Case, Written]]:
        """Yield the cases, each with what stands in the file."""
        for index, case in enumerate(self.cases):
            yield case, Written(self.cases.document(index))

    def scored_by(self, case: Case, type_: str) -> Iterator[OptionedEvaluator[Any]]:
        """Yield the evaluators of a type that score a case, with the options it overrides.

        One that refuses these is left out.
        """
        for planned in self.evaluators:
            if planned.evaluator.type == type_:
                with suppress(InputError):
                    evaluator = planned.for_case(case)
                    if isinstance(evaluator, OptionedEvaluator):
                        yield evaluator

    def app_of(self, case: Case) -> App | None:
        """Return the app that plays a case, where that is plain."""
        named = [app for app in self.apps if app.name == case.session.app]
        if named:
            return named[0]
        return self.apps[0] if len(self.apps) == 1 and case.session.app is None else None


class CriteriaFile(NamedTuple):
    """A file of ADK's criteria, and the cases that are scored by it."""

    document: Document
    scores: Sequence[CaseFile]


class Scope(NamedTuple):
    """Everything that is checked together.

    ``agents`` are definitions by name; ``functions`` the tools that are known to be functions.
    """

    cases: Sequence[CaseFile] = ()
    criteria: Sequence[CriteriaFile] = ()
    apps: Sequence[App] = ()
    agents: Mapping[str, AgentCard] = MappingProxyType({})
    functions: frozenset[str] = frozenset()

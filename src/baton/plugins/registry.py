"""The registry: a table of names. It imports nothing that it names."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any, NamedTuple

from baton.model import InputError, suggestion

from .alias import Alias


class Entry(NamedTuple):
    """A name, where it lives (``module:attribute``), and what it is for."""

    type: str
    target: str
    summary: str
    aliases: tuple[Alias, ...] = ()

    @property
    def names(self) -> list[str]:
        """Every name it may be asked for under."""
        pairs = ((alias.name, alias.class_name) for alias in self.aliases)
        return [self.type, *dict.fromkeys(name for pair in pairs for name in pair)]

    def asked_as(self, name: str) -> Alias:
        """Return the name to report under, and the class name that goes with it."""
        found = (a for a in self.aliases if name in (a.name, a.class_name))
        return next(found, Alias(self.type, self.type))


EVALUATORS = (
    Entry(
        "agent_chain",
        "baton.evaluators.agent_chain:AgentChain",
        "which agents ran in a turn, and in which order",
        (Alias("subagent_evaluator", "SubAgentEvaluator"),),
    ),
)

PROVIDERS = (
    Entry(
        "adk_http",
        "baton.config.providers:AdkHttpOptions",
        "a live server of Google ADK",
    ),
)

REPORTERS = (
    Entry(
        "terminal",
        "baton.reports.terminal:print_terminal",
        "a summary and the failures, for people",
        (Alias("console", "ConsoleReporter"),),
    ),
    Entry("json", "baton.reports.json:write_json", "everything, for programs"),
)

# judge-llm's other evaluators: a case written for it may override them although Baton has
# not been asked for them.
_FOREIGN_EVALUATORS = (
    ("response_evaluator", "ResponseEvaluator"),
    ("trajectory_evaluator", "TrajectoryEvaluator"),
    ("cost_evaluator", "CostEvaluator"),
    ("latency_evaluator", "LatencyEvaluator"),
    ("llm_judge_evaluator", "LLMJudgeEvaluator"),
    ("embedding_similarity_evaluator", "EmbeddingSimilarityEvaluator"),
)


def evaluator_entry(name: str) -> Entry:
    """Find an evaluator by any of its names; raises InputError with the nearest ones."""
    return _find(name, EVALUATORS, "evaluator")


def provider_entry(name: str) -> Entry:
    """Find a provider by any of its names; raises InputError with the nearest ones."""
    return _find(name, PROVIDERS, "provider")


def reporter_entry(name: str) -> Entry:
    """Find a reporter by any of its names; raises InputError with the nearest ones."""
    return _find(name, REPORTERS, "reporter")


def known_evaluator_names() -> set[str]:
    """Return every name a case may override options of, other tools' evaluators included."""
    ours = {name for entry in EVALUATORS for name in entry.names}
    return ours | {name for names in _FOREIGN_EVALUATORS for name in names}


def resolve(entry: Entry) -> Any:
    """Import what an entry names."""
    module, _, attribute = entry.target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _find(name: str, entries: Iterable[Entry], what: str) -> Entry:
    known = {alias: entry for entry in entries for alias in entry.names}
    if name not in known:
        raise InputError(f"unknown {what} `{name}`; {suggestion(name, known)}")
    return known[name]

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
    Entry(
        "tool_calls",
        "baton.evaluators.tool_calls:ToolCalls",
        "which tools were called, with which arguments, in which order",
        (
            Alias(
                "trajectory_evaluator",
                "TrajectoryEvaluator",
                presets={"mode": "exact", "arguments": "ignore", "threshold": 0.5},
                renames={
                    "argument_similarity_threshold": "argument_similarity",
                    "allow_extra_tools": "allow_extra",
                    "tool_name_match": "names",
                    "min_score_threshold": "threshold",
                },
                values=(
                    (
                        "sequence_match_type",
                        {
                            "exact": {"mode": "exact"},
                            "flexible": {"mode": "recall"},
                            "subset": {"mode": "recall"},
                            "superset": {"mode": "precision"},
                            "partial": {"mode": "partial"},
                        },
                    ),
                    ("compare_arguments", {True: {"arguments": "exact"}, False: {}}),
                    (
                        "argument_match_type",
                        {
                            "exact": {"arguments": "exact"},
                            "subset": {"arguments": "subset"},
                            "regex": {"arguments": "regex"},
                            "fuzzy": {"arguments": "similar"},
                        },
                    ),
                    ("compare_arguments", {True: {}, False: {"arguments": "ignore"}}),
                ),
            ),
            Alias(
                "trajectory_match",
                "TrajectoryMatch",
                presets={"mode": "exact"},
                values=(
                    (
                        "trajectory_match_mode",
                        {
                            "strict": {"mode": "exact"},
                            "unordered": {"mode": "f1", "threshold": 1.0},
                            "superset": {"mode": "any_order"},
                            "subset": {"mode": "precision", "threshold": 1.0},
                        },
                    ),
                    # There `subset` says of the actual arguments what ours says of the expected.
                    (
                        "tool_args_match_mode",
                        {
                            "exact": {"arguments": "exact"},
                            "ignore": {"arguments": "ignore"},
                            "subset": {"arguments": "superset"},
                            "superset": {"arguments": "subset"},
                        },
                    ),
                ),
            ),
        ),
    ),
    Entry(
        "tool_trajectory_avg_score",
        "baton.evaluators.tool_trajectory:ToolTrajectory",
        "tool calls, compared as Google ADK does",
    ),
    Entry(
        "response",
        "baton.evaluators.response:Response",
        "whether answers are what the case states, and meet rules of your own",
        (
            Alias(
                "response_evaluator",
                "ResponseEvaluator",
                presets={"match": "jaccard", "threshold": 0.8},
                renames={"similarity_threshold": "threshold"},
                values=(
                    (
                        "match_type",
                        {
                            "exact": {"match": "equals"},
                            "semantic": {"match": "jaccard"},
                            "rouge": {"match": "rouge1"},
                            "recall": {"match": "recall"},
                        },
                    ),
                ),
            ),
        ),
    ),
    Entry(
        "response_match",
        "baton.evaluators.response_match:ResponseMatch",
        "how many words an answer shares with the expected one, by ROUGE-1",
        (Alias("response_match_score", "ResponseMatchScore"),),
    ),
    Entry(
        "intermediate_responses",
        "baton.evaluators.intermediate_responses:IntermediateResponses",
        "whether agents on the way said what is expected of them",
    ),
    Entry(
        "latency",
        "baton.evaluators.latency:Latency",
        "how long the turns took",
        (
            Alias(
                "latency_evaluator",
                "LatencyEvaluator",
                renames={"max_latency_seconds": "max_seconds"},
                unused=("percentile",),
            ),
        ),
    ),
    Entry(
        "cost",
        "baton.evaluators.cost:Cost",
        "what a case cost, in USD",
        (
            Alias(
                "cost_evaluator",
                "CostEvaluator",
                renames={"max_cost_per_case": "max_usd"},
                values=(("currency", {"USD": {}}),),
            ),
        ),
    ),
    Entry("tokens", "baton.evaluators.tokens:Tokens", "how many tokens a case used"),
    Entry(
        "dispatch_limits",
        "baton.evaluators.dispatch_limits:DispatchLimits",
        "how many hand-offs a turn makes, how deep, how wide, and to how many agents",
    ),
)

PROVIDERS = (
    Entry(
        "adk_http",
        "baton.providers.adk.http:AdkHttp",
        "a live server of Google ADK",
    ),
    Entry(
        "adk_local",
        "baton.providers.adk.local:AdkLocal",
        "agents of Google ADK, in this process",
    ),
    Entry("python", "baton.providers.python:Python", "a function of your own"),
    Entry("replay", "baton.providers.replay:Replay", "recorded traces, by case"),
    Entry("mock", "baton.providers.mock:Mock", "canned answers, to try out a config"),
)

REPORTERS = (
    Entry(
        "terminal",
        "baton.reports.terminal:print_terminal",
        "a summary and the failures, for people",
        (Alias("console", "ConsoleReporter"),),
    ),
    Entry("json", "baton.reports.json:write_json", "everything, for programs"),
    Entry("junit", "baton.reports.junit:write_junit", "test cases, for CI systems"),
)

# judge-llm's other evaluators: a case written for it may override them although Baton has
# not been asked for them.
_FOREIGN_EVALUATORS = (
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

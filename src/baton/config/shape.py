"""The shape of a config file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from baton.gate.rules import GateSpec, ThresholdSpec
from baton.model import StandIns
from baton.runner.plan import Count, EvaluatorSpec, Money, NotNegative, PassRule, Seconds
from baton.runner.prices import ModelPrice


class Strict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a config: an unknown key stops the run."""


class AgentSpec(Strict, kw_only=True):
    """How to run, in judge-llm's words; ``name`` and ``metadata`` only describe."""

    name: str | None = None
    description: str | None = None
    num_runs: Count | None = None
    parallel_execution: bool | None = None
    max_workers: Count | None = None
    fail_on_threshold_violation: bool = True
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class DatasetSpec(Strict, kw_only=True):
    """Where the cases are; ``pattern`` (a glob) chooses among the files of folders."""

    paths: list[str]
    loader: Literal["local_file", "directory"] | None = None
    pattern: str | None = None


class ReporterSpec(Strict, kw_only=True):
    """A report and the file it is written to; the one for terminals may go without.

    ``otlp`` may be sent to an ``endpoint`` instead; ``headers_from`` is the environment variable
    that has the headers for it.
    """

    type: str
    output_path: str | None = None
    endpoint: str | None = None
    headers_from: str | None = None


class ConfigFile(Strict, kw_only=True):
    """A config. ``timeout`` is in seconds, for a case; ``agents`` a file of agent definitions.

    What is an error is played ``retry_errors`` times more; ``fail_fast`` stops at the first case
    that does not pass, ``max_agent_cost`` (USD) is what the agents may cost in one run.

    ``rubrics`` are files and folders with rubrics of the user's own. ``judge`` is the model that
    judged evaluators ask, ``gate`` has rules like ``scope_fidelity by agent >= 0.9``.

    ``redact`` says what in traces gets a tag in its place: ``on`` (secrets), ``off``, a list of
    kinds beside the secrets (``[email]``), or ``kinds`` and ``patterns`` of one's own by name.

    ``stand_ins`` answer in place of tools and agents, where neither dataset nor case says more.
    """

    agent: AgentSpec = msgspec.field(default_factory=AgentSpec)
    dataset: str | list[str] | DatasetSpec | None = None
    providers: list[dict[str, Any]] = msgspec.field(default_factory=list)
    agents: str | None = None
    evaluators: list[EvaluatorSpec | str] | None = None
    rubrics: list[str] = msgspec.field(default_factory=list)
    judge: dict[str, Any] | None = None
    gate: list[str | ThresholdSpec] | GateSpec = msgspec.field(default_factory=list)
    pass_rule: PassRule = "all"
    prices: dict[str, ModelPrice] = msgspec.field(default_factory=dict)
    repeat: Annotated[int, msgspec.Meta(ge=1)] | None = None
    concurrency: Annotated[int, msgspec.Meta(ge=1)] | None = None
    timeout: Seconds | None = None
    retry_errors: NotNegative | None = None
    fail_fast: bool | None = None
    max_agent_cost: Money | None = None
    backend: str | dict[str, Any] | None = None
    reporters: list[ReporterSpec] = msgspec.field(default_factory=list)
    agent_names: dict[str, str] = msgspec.field(default_factory=dict)
    redact: bool | str | list[str] | dict[str, Any] | None = None
    stand_ins: StandIns | None = None
    name: str | None = None

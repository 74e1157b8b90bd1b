"""The shape of a config file."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from baton.gate.read_thresholds import GateSpec, ThresholdSpec
from baton.model import StandIns
from baton.model.evaluation import Count, Money, NotNegative, Seconds
from baton.runner.costs import ModelPrice
from baton.runner.plan import EvaluatorSpec, PassRule


class Strict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Base of the parts of a config: an unknown key stops the run."""


class AgentSpec(Strict, kw_only=True):
    """How to run, with judge-llm's keys; ``name`` and ``metadata`` only describe."""

    name: str | None = None
    description: str | None = None
    num_runs: Count | None = None
    parallel_execution: bool | None = None
    max_workers: Count | None = None
    fail_on_threshold_violation: bool = True
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] | None = None
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)


class DatasetSpec(Strict, kw_only=True):
    """The files of the cases; ``pattern`` (a glob) chooses among the files of folders."""

    paths: list[str]
    loader: Literal["local_file", "directory"] | None = None
    pattern: str | None = None


class ReporterSpec(Strict, kw_only=True):
    """A report and its file; the terminal report needs none.

    ``otlp`` may be sent to an ``endpoint`` instead; ``headers_from`` names the environment variable
    with the headers.
    """

    type: str
    output_path: str | None = None
    endpoint: str | None = None
    headers_from: str | None = None


class ConfigFile(Strict, kw_only=True):
    """A config. ``timeout`` is in seconds, for a case; ``agents`` a file of agent definitions.

    A case with an error is played up to ``retry_errors`` more times; ``fail_fast`` stops at the
    first case that does not pass; ``max_agent_cost`` (USD) limits the agents' cost in one run.

    ``rubrics`` are files and folders with the user's own rubrics. ``judge`` is the model that
    judged evaluators ask, ``gate`` has rules like ``scope_fidelity by agent >= 0.9``.

    ``redact`` says what is replaced by a tag in traces: ``on`` (secrets), ``off``, a list of
    further kinds (``[email]``), or ``kinds`` and named ``patterns`` of the user.

    ``stand_ins`` answer in place of tools and agents, unless the dataset or case has its own.
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

"""What an evaluation needs, checked before anything runs: cases, evaluators, judge, gate."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from baton.config import Config
from baton.config.evaluators import MakePlan, choose_evaluators, left_unchecked
from baton.config.judge import JudgeFlags, judge_config, ready
from baton.config.provenance import provenance_of, refuse_others
from baton.config.trust import NOBODY, Trust
from baton.datasets import load_dataset
from baton.gate.rules import read_gate
from baton.judges.settings import settings_of
from baton.model import Case, Dataset, InputError, Judge, Problem
from baton.model.redact import OFF, ON, Redaction, redaction_of
from baton.model.secrets import masked
from baton.readers import Catalog, load_catalog
from baton.runner.plan import Plan, Specs, make_plan, read_rule
from baton.runner.prices import read_prices

from .file_kinds import given_as

if TYPE_CHECKING:
    from baton.model.prices import ModelPrice

PathLike = str | os.PathLike[str]
Rule = str | Mapping[str, float]
Prices = Mapping[str, Mapping[str, float]]
JudgeLike = Judge | str | Mapping[str, Any]
GateLike = str | Sequence[str | Mapping[str, Any]] | Mapping[str, Any]
Note = Callable[[str], None]
"""Takes one line that a user should know, and that is no part of a report."""

SWAPPED = "is a {}, not a {}: baton score RECORDING --dataset DATASET"


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """Files that were loaded for an evaluation; any of them may be missing.

    ``paths`` are those of the dataset, ``definitions`` is the file of agent definitions that
    ``catalog`` was read from. Paths that are given go before those of the config.
    """

    config: Config | None = None
    dataset: Dataset | None = None
    paths: list[str] = msgspec.field(default_factory=list)
    definitions: str | None = None
    catalog: Catalog | None = None


def load_inputs(
    config: Config | None, dataset: Sequence[str] = (), agents: PathLike | None = None
) -> Inputs:
    """Load the cases and the agent definitions that are named, else those of the config.

    Raises:
        InputError: a file with faults; recordings where cases are meant.
    """
    definitions = agents or (config.agents if config else None)
    catalog = load_catalog(definitions) if definitions is not None else None
    paths = list(dataset) or (config.dataset if config else [])
    return Inputs(
        config=config,
        dataset=load_cases(paths, config, catalog) if paths else None,
        paths=paths,
        definitions=None if definitions is None else str(definitions),
        catalog=catalog,
    )


def load_cases(paths: list[str], config: Config | None, catalog: Catalog | None = None) -> Dataset:
    """Load a dataset; a fault in a path that a config names says so."""
    try:
        return load_dataset(paths, agents=catalog)
    except InputError as error:
        swapped = given_as(map(Path, paths), "traces", SWAPPED.format("recording", "dataset"))
        if swapped:
            raise InputError(swapped) from None
        if config is None or paths != config.dataset:
            raise
        raise InputError(
            Problem(
                file=problem.file,
                line=problem.line,
                path=problem.path,
                message=f"{problem.message} (`dataset` of {config.file})",
            )
            for problem in error.problems
        ) from None


def as_dataset(dataset: Dataset | Sequence[Case] | PathLike) -> Dataset:
    """Load a dataset from a path; wrap cases that are at hand."""
    if isinstance(dataset, Dataset):
        return dataset
    if isinstance(dataset, str | os.PathLike):
        return load_dataset(dataset)
    cases = list(dataset) if isinstance(dataset, Iterable) else [dataset]
    for case in cases:
        if not isinstance(case, Case):
            kind = type(case).__name__
            raise InputError(f"a dataset is a path, a Dataset or a list of Case, not {kind}")
    return Dataset(cases)


def dataset_paths(dataset: Dataset | Sequence[Case] | PathLike | None) -> list[str]:
    """Return the files that a dataset was read from; none for cases that a program made."""
    if isinstance(dataset, str | os.PathLike):
        return [os.fspath(dataset)]
    return list(dataset.files) if isinstance(dataset, Dataset) else []


def plan_maker(
    pass_rule: Rule = "all",
    prices: Prices | None = None,
    agent_names: Mapping[str, str] | None = None,
    more_prices: Mapping[str, ModelPrice] | None = None,
    model: str | None = None,
) -> MakePlan:
    """Check what holds for any evaluators; return a function that makes the plan with some.

    ``more_prices`` and ``model`` are those of a provider; ``prices`` go before them.
    """
    stated = None if prices is None else read_prices(prices, "prices")
    return functools.partial(
        make_plan,
        agent_names=agent_names,
        pass_rule=read_rule(pass_rule),
        prices={**(more_prices or {}), **(stated or {})} if more_prices or stated else stated,
        default_model=model,
    )


class Criteria(msgspec.Struct, frozen=True):
    """A file of ADK's criteria; ``found`` says that data named it, not the user."""

    file: Path
    found: bool = False


def prepare(
    dataset: Dataset | None,
    *,
    config: Config | None = None,
    make: MakePlan | None = None,
    evaluators: Specs | None = None,
    criteria: Criteria | None = None,
    by_cases: bool = False,
    judge: JudgeLike | None = None,
    flags: JudgeFlags | None = None,
    gate: GateLike = (),
    redaction: Redaction = ON,
    trust: Trust = NOBODY,
    own_code: bool = True,
) -> Plan:
    """Decide what scores, and how: evaluators, redaction, judge and gate, all of it checked.

    Args:
        dataset: the cases, where there are any.
        config: where evaluators, judge and gate come from unless they are given.
        make: makes a plan of evaluators; that of the config, or one with defaults when left out.
        evaluators: what scores; goes before config and cases.
        criteria: criteria of ADK to score with.
        by_cases: choose evaluators by what cases state, as for cases that are played. Recorded
            traces get ``agent_chain``, unless their file of cases names evaluators.
        judge: whom judged evaluators ask, without a config.
        flags: what this run says of the judge, over the config.
        gate: what has to hold, without a config.
        redaction: what is taken out of traces before they are judged and kept.
        trust: whether files that were found may name code.
        own_code: import code of the user's own. Without it nothing of the user's is run, and
            what needs the code scores nothing.

    Raises:
        InputError: options that exclude each other, a file that is not trusted, an unknown
            evaluator, option or value, a judge that is needed and not named.
    """
    if make is None:
        make = config.plan_with if config else functools.partial(make_plan, own_code=own_code)
    plan = choose_evaluators(
        dataset,
        make,
        evaluators=evaluators,
        configured=config.plan if config and config.evaluators is not None else None,
        criteria=None if criteria is None else criteria.file,
        criteria_found=criteria is not None and criteria.found,
        by_cases=by_cases,
        trust=trust,
        own_code=own_code,
    )
    plan = msgspec.structs.replace(plan, redaction=redaction)
    if config is not None:
        return ready(plan, config.judging, flags, config.gate)
    judging = judge if isinstance(judge, Judge) else judge_config(judge)
    return ready(plan, judging, flags, read_gate(gate))


def for_this(plan: Plan, dataset: Dataset | None) -> Plan:
    """Return the plan with its provenance, where its gate is for certain data alone.

    Raises:
        InputError: the gate is for another dataset, or its baseline is not there.
    """
    if plan.gate.regression is None and plan.gate.bound is None:
        return plan
    provenance = provenance_of(plan, dataset)
    refuse_others(plan.gate, provenance)
    return msgspec.structs.replace(plan, provenance=provenance)


def folder_header(
    plan: Plan, inputs: Inputs, played_by: str | None = None, *, git: bool = True, **more: Any
) -> dict[str, Any]:
    """Return what an evaluation folder says of how it was made; ``played_by`` is a provider's type.

    Without ``git`` the commit is left out, which takes longer to find out than all else.

    Raises:
        InputError: the gate is for another dataset or config, or its baseline is not there.
    """
    from baton import __version__

    config = inputs.config
    provenance = provenance_of(
        plan,
        inputs.dataset,
        config.resolved if config else None,
        [] if played_by is None else [played_by],
        config.folder if config else None,
        inputs.catalog,
        git=git,
    )
    refuse_others(plan.gate, provenance)
    header = {
        "versions": {"baton": __version__},
        **more,
        "dataset": inputs.paths,
        "pass_rule": msgspec.to_builtins(plan.pass_rule),
        "config": config.resolved if config else None,
        "redact": plan.redaction.as_config,
    }
    settings = settings_of(plan.context.judge)
    if settings is not None:
        header["judge"] = masked(msgspec.to_builtins(settings))  # without its keys
    header["provenance"] = msgspec.to_builtins(provenance)
    header["evaluator_versions"] = {
        name: planned.evaluator.version for name, planned in plan.all_evaluators.items()
    }
    return header


def redaction_with(
    configured: Redaction, redact: bool | None, kinds: Sequence[str] = ()
) -> Redaction:
    """Put what the command line says over the redaction of a config.

    ``redact`` of ``None`` leaves it as configured; ``kinds`` come beside the configured ones.

    Raises:
        InputError: an unknown kind, or kinds while nothing is to be redacted.
    """
    if redact is False:
        if kinds:
            raise InputError("--no-redact and --redact-kind exclude one another: give one")
        return OFF
    redaction = ON if redact and not configured.is_on else configured
    if not kinds:
        return redaction
    more = redaction_of(list(kinds), "--redact-kind")
    every = sorted({*redaction.kinds, *more.kinds})
    return msgspec.structs.replace(redaction, kinds=redaction_of(every).kinds)


def note_unchecked(plan: Plan, dataset: Dataset, note: Note) -> None:
    """Say what of a dataset is not read, and what no evaluator looks at."""
    for text in (*dataset.notes, *left_unchecked(plan, dataset)):
        note(text)

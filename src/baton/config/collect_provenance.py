"""Hashes and versions of what an evaluation judges and uses, as far as known before it starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from baton.evaluators.user_defined import traits_of
from baton.gate.read_thresholds import Gate
from baton.judges.judge_settings import settings_of
from baton.model import (
    AgentCard,
    AgentsSeen,
    Dataset,
    DatasetHash,
    InputError,
    Problem,
    Provenance,
    digest,
)
from baton.runner.plan import Plan, judge_options

from .git import git_state

_PACKAGES = {"adk_local": "google-adk", "claude_sdk": "claude-agent-sdk"}


def provenance_of(
    plan: Plan,
    dataset: Dataset | None,
    config: Mapping[str, Any] | None = None,
    providers: Sequence[str] = (),
    folder: Path | None = None,
    agents: Mapping[str, AgentCard] | None = None,
    *,
    git: bool = True,
) -> Provenance:
    """Return hashes and versions; ``config`` is the resolved one, with secrets masked.

    ``agents`` are definitions; ``folder`` is where to look for the repository, by default the
    current one; if ``git`` is false, it is not searched for.
    """
    rubrics = {
        planned.evaluator.name: rubric_hash
        for planned in plan.every_evaluator
        if (rubric_hash := traits_of(planned.evaluator).rubric_hash) is not None
    }
    lower = {
        planned.evaluator.name
        for planned in plan.every_evaluator
        if traits_of(planned.evaluator).lower_is_better
    }
    settings = settings_of(plan.context.judge)
    judges: set[str] = set()  # the judge models, also those of single evaluators
    if plan.needs_judge and settings is not None:
        judges.add(str(settings.model))
        own = [each for one in plan.every_evaluator for each in judge_options(one.evaluator)]
        judges.update(str(each["model"]) for each in own if each.get("model"))
    made = Provenance(
        dataset=None
        if dataset is None
        else DatasetHash(hash=dataset.content_hash(), cases=len(dataset)),
        config=None if config is None else digest(config),
        pass_rule="all" if plan.pass_rule == "all" else f"mean {plan.pass_rule.mean:g}",
        evaluators={
            name: planned.evaluator.version for name, planned in plan.all_evaluators.items()
        },
        rubrics=rubrics,
        judges=sorted(judges),
        lower=sorted(plan.gate.lower | lower),
        provider={name: _version(name) for name in providers},
        git=git_state(folder or Path()) if git else None,
    )
    if agents is None:
        return made
    seen = AgentsSeen()
    seen.add(agents)
    return made.with_agents(seen.hashes())


def refuse_others(gate: Gate, provenance: Provenance) -> None:
    """Make sure that thresholds are for this dataset and config, before anything runs.

    Raises:
        InputError: they are for others, or the baseline cannot be read. A baseline that does not
            exist yet is not an error.
    """
    if not gate:
        return
    from baton.gate.check_thresholds import bound_to
    from baton.gate.snapshot import lacks_baseline, open_side

    others = list(bound_to(gate.bound, provenance, "dataset", "config"))
    if others:
        raise InputError(
            Problem(path="gate.for", message=f"the thresholds are not for this {line}")
            for line in others
        )
    regression = gate.regression
    if regression is not None and not lacks_baseline(regression.baseline, gate.folder):
        open_side(regression.baseline, gate.folder)


def _version(provider: str) -> str:
    """Return the version of the agents' framework, if it is an installed package."""
    package = _PACKAGES.get(provider)
    if package is None:
        return "not known"
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not known"

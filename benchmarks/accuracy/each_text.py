"""What evaluators say of each text of a folder of lists, and the sums: ``--texts FOLDER``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from baton.model import EvalContext, Score

from .figures import Counts, evaluator_named, outcome
from .page import HEAD, row
from .trials import Trial


def verdicts(trials: Iterable[Trial]) -> Iterator[str]:
    """Yield a line for each text, what was said of it and why; at the end a table of sums."""
    sums: dict[str, Counts] = defaultdict(Counts)
    for trial in trials:
        evaluator = evaluator_named(trial.evaluator)
        if evaluator is None:
            continue
        counts = outcome(evaluator, trial)
        sums[f"`{trial.evaluator}`, {trial.kind}"].add(counts)
        scores = evaluator.evaluate(trial.trace, trial.case, EvalContext())
        assert isinstance(scores, list)  # noqa: S101 - what is measured here asks no judge
        text = " ".join(trial.text.split())
        yield f"{trial.kind}: {_verdict(trial, counts)}: {text}\n    {_reasons(scores)}"
    yield "\n".join([HEAD.format("evaluator, fault"), *(row(*each) for each in sums.items())])


def _verdict(trial: Trial, counts: Counts) -> str:
    if trial.seeded is None:
        return "FALSE ALARM" if counts.alarms else "good, skipped" if counts.silent else "good"
    return (
        "broken, found" if counts.found else f"broken, {'skipped' if counts.untold else 'MISSED'}"
    )


def _reasons(scores: list[Score]) -> str:
    return " | ".join(dict.fromkeys(score.reason for score in scores)) or "no dispatch was scored"

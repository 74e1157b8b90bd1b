"""What findings spare a judge: calls with and without the cascade, on seeded faults.

python -m accuracy.cascade            # print the table (from the folder `benchmarks`)
python -m accuracy.cascade --each     # and every verdict that a finding gave
"""

from __future__ import annotations

import argparse
from collections import Counter

from baton.evaluators.judged import Judged
from baton.evaluators.judging.rubric_files import shipped
from baton.evaluators.judging.subject import Subject
from baton.model import EvalContext, Score

from .trials import Trial, trials

JUDGED_BY = {
    "unknown_target": "dispatch_correctness",
    "tool_outside_subset": "scope_fidelity",
    "ignored_result": "result_integration",
    "repeated_work": "result_integration",
}
"""Kinds of faults that a finding may settle for a rubric."""

HEADS = ("fault", "rubric", "judged", "calls without", "calls with", "settled", "rightly", "not")


def counted(trial: Trial, judge: Judged, each: bool) -> Counter[str]:
    """Count what becomes of the dispatches of one trace; what was seeded is the truth."""
    found: Counter[str] = Counter()
    without = judge.with_options({"cascade": False})
    for subject in judge.subjects(trial.trace, None, EvalContext()):
        if is_beside(trial, subject):
            continue
        planned = judge.plan(subject)
        # Where the cascade leaves a question to a judge, the judge is asked without it, too.
        asked = without.plan(subject) if isinstance(planned, Score) else planned
        if isinstance(asked, Score) and isinstance(planned, Score) and planned.value is None:
            continue
        found["judged"] += 1
        found["calls without"] += not isinstance(asked, Score)
        found["calls with"] += not isinstance(planned, Score)
        if isinstance(planned, Score):
            # Two dispatches may have started the run that a fault was put into.
            about = {subject.id, *(subject.dispatch.runs if subject.dispatch else ())}
            faulty = trial.seeded is not None and not about.isdisjoint(trial.seeded.subject)
            right = (planned.status == "failed") == faulty
            found["settled"] += 1
            found["rightly" if right else "not"] += 1
            if each:
                verdict = f"{planned.value:g} {'rightly' if right else 'WRONGLY'}"
                print(f"{trial.kind}  {trial.source}  {subject.id}  {verdict}  {planned.reason}")
    return found


def is_beside(trial: Trial, subject: Subject) -> bool:
    """Return whether a dispatch lost its result too, when a result of the same caller was removed.

    The seeded fault replaces the caller's answer ("19, allowed."), which may have carried the
    results of its other dispatches. What is right for these is not known, so they do not count.
    """
    if trial.seeded is None or trial.kind not in ("ignored_result", "repeated_work"):
        return False
    seeded = trial.seeded.subject
    if subject.dispatch is None or subject.dispatch.id in seeded:
        return False
    every = (dispatch for turn in trial.trace.turns for dispatch in turn.dispatches)
    callers = {dispatch.from_run for dispatch in every if dispatch.id in seeded}
    return subject.dispatch.from_run in callers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", action="store_true", help="print every settled verdict")
    options = parser.parse_args()
    sums: dict[str, Counter[str]] = {kind: Counter() for kind in JUDGED_BY}
    judges = {kind: Judged(shipped()[rubric]) for kind, rubric in JUDGED_BY.items()}
    for trial in trials(list(JUDGED_BY)):
        sums[trial.kind] += counted(trial, judges[trial.kind], options.each)
    print(f"| {' | '.join(HEADS)} |\n|{' --- |' * len(HEADS)}")
    for kind, sum_ in sums.items():
        row = [kind, JUDGED_BY[kind], *(str(sum_[head]) for head in HEADS[2:])]
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()

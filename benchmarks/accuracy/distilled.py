"""What findings and a distilled judge spare, on texts and frameworks it was not trained on.

python -m accuracy.distilled            # print the tables (from the folder `benchmarks`)

The judge is simulated. It sees what was seeded: of a dispatch with a fault it says the worst label
of the rubric, of any other the best, and by a hash of the material it errs in one of 25. What is
measured is therefore how far a small classifier can stand in for such a judge, not how good a judge
is. The recordings are real; half of the scenarios are trained on (`tune`), and every third
framework is left out of the training. Figures are of the other half (`report`), of those frameworks
alone.
"""

from __future__ import annotations

import argparse
import hashlib
import random
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from baton.evaluators.judged import Judged
from baton.evaluators.judging.distilled import Distilled, Reading, read
from baton.evaluators.judging.evidence import answers_of, settled_by
from baton.evaluators.judging.load import shipped
from baton.evaluators.judging.question import Question
from baton.evaluators.judging.rubric import DistilledOptions
from baton.improvements.distill import Verdict, train
from baton.model import EvalContext

from .trials import trials

KINDS = {"result_integration": ["ignored_result", "repeated_work"]}
"""Faults that a rubric is about. The others have fewer than 500 different dispatches here that
findings leave open."""
ERRS = 25
LIMITS = (0.05, 0.1, 0.15)


class Seen(NamedTuple):
    """A dispatch: what a classifier reads, what the judge says, and what findings say."""

    reading: Reading
    said: str
    truth: str
    settled: str | None
    conversation: str
    framework: str
    half: str


def seen(rubric: str) -> Iterator[Seen]:
    """Yield the dispatches that a rubric judges, each text once."""
    judged = Judged(shipped()[rubric])
    labels = judged.rubric.answer.labels or {}
    scores = {name: label.score for name, label in labels.items() if label.score is not None}
    best, worst = max(scores, key=scores.__getitem__), min(scores, key=scores.__getitem__)
    there: set[str] = set()
    for trial in trials(KINDS[rubric]):
        for subject in judged.subjects(trial.trace, None, EvalContext()):
            answers = answers_of(judged.rubric, subject)
            try:
                question = judged.question(subject, answers)
            except ValueError:
                continue
            if not isinstance(question, Question):
                continue
            reading = read(question.sections, answers)
            if reading.material in there:
                continue
            there.add(reading.material)
            about = {subject.id, *(subject.dispatch.runs if subject.dispatch else ())}
            faulty = trial.seeded is not None and not about.isdisjoint(trial.seeded.subject)
            if trial.seeded is not None and not faulty:
                continue  # what was seeded beside it may touch it: nobody knows what is true
            truth = worst if faulty else best
            errs = int(hashlib.sha256(reading.material.encode()).hexdigest()[:8], 16) % ERRS == 0
            said = (best if faulty else worst) if errs else truth
            settled = settled_by(judged.rubric, answers)
            source = trial.trace.source
            yield Seen(
                reading,
                said,
                truth,
                None if settled is None else settled.label,
                trial.trace.id,
                source.framework or source.format,
                trial.half,
            )


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    heads = ("rubric", "trained on", "tested on", "max_error", "by findings", "by the classifier",
             "asked", "agrees with the judge", "judge is right", "cascade is right")  # fmt: skip
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for rubric in KINDS:
        table(rubric)


def table(rubric: str) -> None:
    """Print the rows of a rubric: its figures, and the same with shuffled labels."""
    every = list(seen(rubric))
    sizes = Counter(one.framework for one in every)
    ordered = [name for name, _ in sizes.most_common()]
    kept_apart = set(ordered[1::3])  # every third framework, by size
    training = [one for one in every if one.half == "tune" and one.framework not in kept_apart]
    test = [one for one in every if one.half == "report" and one.framework in kept_apart]
    for limit in LIMITS:
        row(rubric, training, test, limit)
    mixed = [one.said for one in training]
    random.Random(0).shuffle(mixed)
    shuffled = [one._replace(said=said) for one, said in zip(training, mixed, strict=True)]
    row(f"{rubric}, labels shuffled", shuffled, test, 0.15)


def row(name: str, training: list[Seen], test: list[Seen], limit: float) -> None:
    """Train, and print what becomes of the dispatches that were kept apart."""
    rubric = name.partition(",")[0]
    # As in use: what findings settle is never asked, and so never learnt from.
    asked = [one for one in training if one.settled is None]
    verdicts = [Verdict(one.reading, one.said, one.conversation, one.framework) for one in asked]
    report = train(
        verdicts,
        rubric=rubric,
        version="1",
        judge="simulated",
        labels=list(shipped()[rubric].answer.labels or {}),
    )
    small = Distilled(report.model, DistilledOptions(file="", max_error=limit, audit=0.0), "")
    counts: Counter[str] = Counter()
    for one in test:
        guess = small.guess_of(one.reading)
        if one.settled is not None:
            answer, by = one.settled, "findings"
        elif guess.answers:
            answer, by = guess.label, "classifier"
        else:
            answer, by = one.said, "asked"
        counts[by] += 1
        counts["agrees"] += answer == one.said
        counts["judge right"] += one.said == one.truth
        counts["cascade right"] += answer == one.truth
    shown = [
        f"{counts[key] / len(test):.1%}"
        for key in ("findings", "classifier", "asked", "agrees", "judge right", "cascade right")
    ]
    print(f"| {name} | {len(asked)} | {len(test)} | {limit:g} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()

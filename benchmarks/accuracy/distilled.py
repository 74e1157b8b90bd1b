"""What findings and a distilled judge spare, on texts and frameworks it was not trained on.

python -m accuracy.distilled            # print the tables (from the folder `benchmarks`)

The judge is simulated. It sees what was seeded: of a dispatch with a fault it says the worst label
of the rubric, of any other the best, and by a hash of the material it errs in one of 25. What is
measured is therefore how far a small classifier can stand in for such a judge, not how good a judge
is. The recordings are real; half of the scenarios are trained on (`tune`), and every third
framework is left out of the training. Figures are of those frameworks alone: of the other half
(`report`), and of texts that were written for this measurement alone (`rewordings/cascade`), played
in runs of these frameworks.
"""

from __future__ import annotations

import argparse
import hashlib
import random
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from baton.evaluators.judged import Judged
from baton.evaluators.judging.distilled import Distilled, DistilledModel
from baton.evaluators.judging.distilled_features import Reading, read
from baton.evaluators.judging.evidence import answers_of, settled_by
from baton.evaluators.judging.judge_prompt import Question
from baton.evaluators.judging.rubric import DistilledOptions
from baton.evaluators.judging.rubric_files import shipped
from baton.improvements.distill import Verdict, train
from baton.model import EvalContext

from .recordings import HERE
from .rewordings import FOLDERS, results
from .texts import stages
from .trials import Trial, trials

KINDS = {"result_integration": ["ignored_result", "repeated_work"]}
"""Faults that a rubric is about. The others have fewer than 500 different dispatches here that
findings leave open."""
NEW = {
    "first new texts": HERE / "rewordings" / "cascade",
    "second new texts": HERE / "rewordings" / "cascade_second",
    "third new texts": HERE / "rewordings" / "cascade_third",
}
"""Texts that nothing is trained on, and no evaluator is measured by."""
ERRS = 25
LIMITS = (0.05, 0.1, 0.15, 0.2, 0.25)
TRAINED_EACH = 800
"""Trials of a kind that are seeded to train on: four times as many as for other figures, some 1,400
different dispatches that findings leave open."""
USUAL_FAULTS = 0.1
"""Half of the tests or more have a fault; where agents work, few do. Figures are also given for
this share: as if each dispatch with a fault were counted less, and each without more."""
PLAYED_EACH = 2
"""Frameworks that each text of the lists is played in to train on."""


class Seen(NamedTuple):
    """A dispatch: what a classifier reads, what the judge says, and what findings say."""

    reading: Reading
    said: str
    truth: str
    settled: str | None
    conversation: str
    framework: str
    half: str
    faulty: bool


def seen(rubric: str, given: Iterable[Trial]) -> Iterator[Seen]:
    """Yield the dispatches of trials that a rubric judges, each text once."""
    judged = Judged(shipped()[rubric])
    labels = judged.rubric.answer.labels or {}
    scores = {name: label.score for name, label in labels.items() if label.score is not None}
    best, worst = max(scores, key=scores.__getitem__), min(scores, key=scores.__getitem__)
    there: set[str] = set()
    for trial in given:
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
                conversation_of(trial),
                source.framework or source.format,
                trial.half,
                faulty,
            )


def conversation_of(trial: Trial) -> str:
    """Return the id of a conversation: texts of a list are played in runs with one id."""
    asked = trial.trace.turns[0].input
    return f"{trial.trace.id} {asked.text if asked is not None else ''}"


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    heads = ("rubric", "trained on", "tested on", "max_error", "by findings", "by the classifier",
             "asked", "agrees with the judge", "judge is right", "cascade is right",
             "asked, 10 % faults", "judge is right", "cascade is right")  # fmt: skip
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for rubric in KINDS:
        table(rubric)


def table(rubric: str) -> None:
    """Print the rows of a rubric: its figures, and the same with shuffled labels."""
    training, test, kept_apart = sides(rubric)
    tests = {rubric: test}
    for name, folder in NEW.items():
        played = listed_texts(folder, kept_apart)
        tests[f"{rubric}, {name}"] = list(seen(rubric, played))
    mixed = [one.said for one in training]
    random.Random(0).shuffle(mixed)
    shuffled = [one._replace(said=said) for one, said in zip(training, mixed, strict=True)]
    for seen_before, some in (
        (training, tests),
        (shuffled, {f"{rubric}, labels shuffled": test}),
    ):
        model, trained_on = model_of(rubric, seen_before)
        for name, rows in some.items():
            for limit in LIMITS:
                row(name, model, trained_on, rows, limit)


def sides(rubric: str) -> tuple[list[Seen], list[Seen], set[str]]:
    """Return what is trained on, what is tested on, and the frameworks that are kept apart."""
    every = list(seen(rubric, trials(KINDS[rubric])))
    sizes = Counter(one.framework for one in every)
    ordered = [name for name, _ in sizes.most_common()]
    kept_apart = set(ordered[1::3])  # every third framework, by size
    others = {name for name in ordered if name not in kept_apart}
    played = [
        trial
        for folder in FOLDERS.values()
        for trial in listed_texts(folder, others, PLAYED_EACH)
        if trial.half == "tune"
    ]
    more = seen(rubric, chain(trials(KINDS[rubric], TRAINED_EACH), played))
    training = [one for one in more if one.half == "tune" and one.framework not in kept_apart]
    test = [one for one in every if one.half == "report" and one.framework in kept_apart]
    return training, test, kept_apart


def listed_texts(
    folder: Path, frameworks: Collection[str], each: int | None = None
) -> Iterator[Trial]:
    """Play the texts of a list in runs of some frameworks; ``each`` text in so many of them."""
    fitting = {
        framework: [
            good
            for good in stages()
            if (good.trace.source.framework or good.trace.source.format) == framework
        ]
        for framework in sorted(frameworks)
    }
    fitting = {framework: some for framework, some in fitting.items() if some}
    order = random.Random(f"frameworks {folder.name}")
    chosen: dict[str, list[str]] = {}
    for framework, some in fitting.items():
        for half, made, seeded, text in results(folder, some):
            if text not in chosen:
                names = sorted(fitting)
                chosen[text] = names if each is None else order.sample(names, each)
            if framework in chosen[text]:
                yield Trial(
                    "result_used", "ignored_result", framework, half, made, None, seeded, text
                )


def model_of(rubric: str, training: list[Seen]) -> tuple[DistilledModel, int]:
    """Train a model; return it and how many verdicts it was trained on."""
    # As in use: what findings settle is never asked, and so never learnt from.
    asked = [one for one in training if one.settled is None]
    report = train(
        [Verdict(one.reading, one.said, one.conversation, one.framework) for one in asked],
        rubric=rubric,
        version="1",
        judge="simulated",
        labels=list(shipped()[rubric].answer.labels or {}),
    )
    return report.model, len(asked)


def row(name: str, model: DistilledModel, trained_on: int, test: list[Seen], limit: float) -> None:
    """Print what becomes of the dispatches that were kept apart."""
    small = Distilled(model, DistilledOptions(file="", max_error=limit, audit=0.0), "")
    counts: Counter[str] = Counter()
    usual: dict[str, float] = defaultdict(float)
    sizes = Counter(one.faulty for one in test)
    weights = {True: USUAL_FAULTS / sizes[True], False: (1 - USUAL_FAULTS) / sizes[False]}
    for one in test:
        guess = small.guess_of(one.reading)
        if one.settled is not None:
            answer, by = one.settled, "findings"
        elif guess.answers:
            answer, by = guess.label, "classifier"
        else:
            answer, by = one.said, "asked"
        seen_here = {
            by: True,
            "agrees": answer == one.said,
            "judge right": one.said == one.truth,
            "cascade right": answer == one.truth,
        }
        for key, holds in seen_here.items():
            counts[key] += holds
            usual[key] += weights[one.faulty] * holds
    shown = [
        f"{counts[key] / len(test):.1%}"
        for key in ("findings", "classifier", "asked", "agrees", "judge right", "cascade right")
    ]
    shown += [f"{usual[key]:.1%}" for key in ("asked", "judge right", "cascade right")]
    print(f"| {name} | {trained_on} | {len(test)} | {limit:g} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()

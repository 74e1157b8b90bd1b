"""A small classifier answers before the judge where it was tried often enough, and nowhere else."""

from __future__ import annotations

import fcntl
import os
import pickle
import random
import sys
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.evaluators.judged.scripted import Judged, ScriptedJudge, scores, shipped

from baton.evaluators.judging.distilled_features import Reading, read
from baton.evaluators.judging.distilled_limits import Trial, limits_of
from baton.evaluators.judging.evidence import answers_of
from baton.evaluators.judging.judge_prompt import Question
from baton.improvements.distill import Report, Verdict, _folds, train
from baton.model import EvalContext, InputError, Trace
from baton.testing.build import delegate, run, said, trace, turn

RUBRIC = "result_integration"
TOPICS = [
    "invoice payment amount supplier", "window seat flight lisbon", "rain mountain forecast lake",
    "parser module failing test", "contract clause penalty notice", "recipe flour oven minutes",
]  # fmt: skip


def conversation(number: int, *, used: bool) -> Trace:
    """The result is in the answer, or something else is; the words are others each time."""
    chance = random.Random(number)
    topic = chance.choice(TOPICS).split()
    result = " ".join(chance.choice(topic) + chance.choice("aeiou") for _ in range(12))
    other = " ".join(chance.choice(TOPICS[number % 6].split()) + "x" for _ in range(12))
    answer = f"Here it is: {result}" if used else f"I think of {other} myself."
    return trace(
        turn(
            f"Tell me about {topic[0]}.",
            run("desk", delegate("worker", f"Look up {topic[0]}", result=result), said(answer)),
            run("worker", output=result),
            output=answer,
        ),
        id=f"c{number}",
    )


def verdict(number: int, label: str, *, used: bool, framework: str) -> Verdict:
    record = conversation(number, used=used)
    judged = Judged(shipped()[RUBRIC])
    (subject,) = judged.subjects(record, None, EvalContext())
    answers = answers_of(judged.rubric, subject)
    question = judged.question(subject, answers)
    assert isinstance(question, Question)
    return Verdict(read(question.sections, answers), label, record.id, framework)


def trained(verdicts: list[Verdict]) -> Report:
    rubric = shipped()[RUBRIC]
    labels = list(rubric.answer.labels or {})
    return train(verdicts, rubric=RUBRIC, version=rubric.version, judge="j", labels=labels)


@cache
def some_verdicts() -> list[Verdict]:
    """500 verdicts on conversations of four frameworks."""
    found = []
    for number in range(500):
        used = number % 2 == 0
        label = "used" if used else "ignored"
        found.append(verdict(number, label, used=used, framework=f"f{number % 4}"))
    return found


@cache
def some_report(own: Path) -> Report:
    """What came of training on them: once for all processes of tests, as it takes ten seconds.

    ``own`` is the folder of this one, from :func:`pytest.TempPathFactory.getbasetemp`.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return trained(some_verdicts())
    with (own.parent / "some_report").open("a+b") as kept:
        fcntl.flock(kept, fcntl.LOCK_EX)  # until the file is closed
        kept.seek(0)
        if not (found := kept.read()):
            found = pickle.dumps(trained(some_verdicts()))
            kept.write(found)
        report: Report = pickle.loads(found)  # noqa: S301 - this run of tests wrote it
        return report


@pytest.fixture
def verdicts() -> list[Verdict]:
    return list(some_verdicts())


@pytest.fixture
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return some_report(tmp_path_factory.getbasetemp())


@pytest.fixture
def file(report: Report, tmp_path: Path) -> Path:
    path = tmp_path / "small.json"
    path.write_bytes(msgspec.json.encode(report.model))
    return path


def judged(file: Path, **options: Any) -> Judged:
    small = {"file": str(file), "max_error": 0.1, "audit": 0.0, **options}
    return Judged(shipped()[RUBRIC], distilled=small)


@pytest.mark.heavy
def test_it_answers_what_is_clear_and_asks_no_judge(file: Path) -> None:
    judge = ScriptedJudge("used")
    found = [
        scores(judged(file), conversation(n, used=n % 2 == 0), judge)[0] for n in range(900, 940)
    ]
    alone = [score for score in found if score.judge is None]
    assert len(alone) > 30
    assert len(judge.asked) == 40 - len(alone)
    for score in alone:
        number = found.index(score)
        assert score.details["label"] == ("used" if number % 2 == 0 else "ignored")
        assert score.details["distilled"]["limit"] == 0.1
        assert "the judge was not asked" in score.reason
    assert "+d" in found[0].version


@pytest.mark.heavy
def test_a_share_is_audited_and_there_the_judge_decides(file: Path) -> None:
    judge = ScriptedJudge("ignored")
    (score,) = scores(judged(file, audit=1.0), conversation(900, used=True), judge)
    assert len(judge.asked) == 1
    assert score.details["label"] == "ignored"
    assert score.details["distilled"]["label"] == "used"
    assert score.details["distilled"]["agreed"] is False


@pytest.mark.heavy
def test_without_the_option_and_without_the_cascade_it_is_never_asked(file: Path) -> None:
    judge = ScriptedJudge("used")
    record = conversation(900, used=True)
    options: dict[str, Any] = {"distilled": {"file": str(file), "max_error": 0.1}, "cascade": False}
    for evaluator in (Judged(shipped()[RUBRIC]), Judged(shipped()[RUBRIC], **options)):
        (score,) = scores(evaluator, record, judge)
        assert score.judge is not None
        assert "distilled" not in score.details


@pytest.mark.heavy
def test_what_is_unlike_the_training_is_left_to_the_judge(file: Path) -> None:
    judge = ScriptedJudge("used")
    strange = trace(
        turn(
            "Was ist mit dem Vertrag?",
            run("a", delegate("b", "Bitte prüfe ihn", result="Zwölf Boxkämpfer jagen Viktor"),
                said("Zwölf Boxkämpfer jagen Viktor quer über den Sylter Deich")),
            run("b", output="Zwölf Boxkämpfer jagen Viktor"),
        )
    )  # fmt: skip
    (score,) = scores(judged(file), strange, judge)
    assert score.judge is not None


def test_trials_that_are_right_by_chance_answer_nothing_in_19_of_20() -> None:
    answering = 0
    for seed in range(20):
        chance = random.Random(seed)
        trials = [
            Trial(chance.randrange(2), chance.random(), chance.random() < 0.5) for _ in range(600)
        ]
        answering += bool(limits_of(trials, [0.5, 0.5], 0.2))
    assert answering <= 1


def answering(seeds: Iterable[int]) -> list[tuple[int, float]]:
    """Return the seeds and limits with which shuffled labels give a judge that answers."""
    verdicts, found = some_verdicts(), []
    for seed in seeds:
        mixed = [each.label for each in verdicts]
        random.Random(seed).shuffle(mixed)
        pairs = zip(verdicts, mixed, strict=True)
        model = trained([each._replace(label=label) for each, label in pairs]).model
        # Also where it need not be any good: half of its answers may be wrong.
        for limit in (0.05, 0.1, 0.2, 0.3, 0.5):
            if limits_of(model.trials, model.shares, limit):
                found.append((seed, limit))
    return found


def test_the_luckiest_of_many_looks_answers_nothing() -> None:
    # Seen once with shuffled labels: the surest 60 of 250 trials were right in 44, by chance.
    right = [n % 15 not in (1, 5, 9, 13) for n in range(60)] + [n % 2 == 0 for n in range(190)]
    trials = [Trial(0, 0.9 - n * 1e-3, each) for n, each in enumerate(right)]
    assert sum(right[:60]) == 44
    assert limits_of(trials, [0.5, 0.5], 0.5) == {}


def test_copies_of_a_verdict_are_not_counted(verdicts: list[Verdict]) -> None:
    # The same material under other ids, and once more by another framework.
    copies = [each._replace(conversation=f"copy {each.conversation}") for each in verdicts[:300]]
    more = [each._replace(framework="other") for each in verdicts[:300]]
    with pytest.raises(
        InputError, match=r"300 verdicts of a judge, apart from 600 copies, are too"
    ):
        trained([*verdicts[:300], *copies, *more])


def test_what_was_recorded_twice_is_on_one_side_of_each_trial() -> None:
    chance = random.Random(0)
    readings = [Reading([f"w{n}"], {}, f"m{n}") for n in range(200)]
    found = [Verdict(each, "used", f"c{n}", f"f{n % 4}") for n, each in enumerate(readings)]
    # A conversation of several things, by another framework as well, and copied under other ids.
    found += [
        Verdict(Reading(["x"], {}, f"x{n}"), "used", f"c{n}", f"f{(n + 1) % 4}") for n in range(90)
    ]
    found += [Verdict(readings[n], "used", f"copy{n}", f"f{(n + 2) % 4}") for n in range(90)]
    chance.shuffle(found)
    for some, apart in ((found, "frameworks"), ([v._replace(framework="f") for v in found], "")):
        folds = _folds(some)
        assert folds.apart == (apart or "conversations")
        for key in ("conversation", "material"):
            sides: dict[str, set[tuple[int, int]]] = {}
            for side, one in zip(
                zip(folds.texts, folds.frameworks, strict=True), some, strict=True
            ):
                name = one.conversation if key == "conversation" else one.reading.material
                sides.setdefault(name, set()).add(side)
            assert all(len(each) == 1 for each in sides.values()), key
        assert len(set(folds.texts)) == 5
        assert len(set(folds.frameworks)) == (4 if apart else 1)


def test_verdicts_that_share_a_text_are_on_one_side_of_each_trial() -> None:
    # Ten answers to each of 30 results, by four frameworks, and the same question everywhere.
    found = [
        Verdict(
            Reading(
                [f"w{n}"], {}, f"m{n}",
                (("request", "the same"), ("result", f"r{n // 10}"), ("after", f"a{n}")),
            ),
            "used", f"c{n}", f"f{n % 4}",
        )
        for n in range(300)
    ]  # fmt: skip
    folds = _folds(found)
    parts: dict[str, set[int]] = {}
    for part, one in zip(folds.texts, found, strict=True):
        parts.setdefault(dict(one.reading.texts)["result"], set()).add(part)
    assert all(len(each) == 1 for each in parts.values())
    assert sorted(Counter(folds.texts).values()) == [60] * 5


@pytest.mark.heavy
def test_learning_texts_by_heart_answers_nothing() -> None:
    # What a result is decides, and nothing else: whoever has seen it knows the label of all of its
    # answers, and nobody else can tell. With conversations alone apart, all trials would be right.
    chance = random.Random(0)
    found = []
    for result in range(60):
        label = chance.choice(["used", "ignored"])
        own = [f"{chance.choice('bcdfgh')}{chance.choice('aeiou')}{result}x{n}" for n in range(6)]
        found += [
            Verdict(
                Reading([*own, f"more{n}"], {"n": n % 3}, f"{result:04x}{n:012x}", (("result", str(result)),)),
                label, f"c{result}-{n}", f"f{n % 4}",
            )
            for n in range(10)
        ]  # fmt: skip
    model = trained(found).model
    for limit in (0.05, 0.1, 0.3):
        assert limits_of(model.trials, model.shares, limit) == {}


@pytest.mark.heavy
def test_where_nearly_all_is_of_one_label_it_answers_that_one_only_if_it_can_tell(
    verdicts: list[Verdict],
) -> None:
    # 4 % are `ignored`: 20 of 500. By the material they are as clear as all others.
    used = [verdict(n, "used", used=True, framework=f"f{n % 4}") for n in range(0, 1_200, 2)]
    rare = [verdict(n, "ignored", used=False, framework=f"f{n % 3}") for n in range(1, 50, 2)]
    model = trained([*used[:480], *rare]).model
    assert model.labels == ["used", "ignored"]
    # Of the rare label there are too few trials to show an error of 5 %, so it is never answered.
    found = limits_of(model.trials, model.shares, 0.05)
    assert set(found) <= {0}
    # Without anything to tell the rare ones by, always saying `used` is no judgement.
    blind = [v._replace(label="ignored" if n % 25 == 0 else "used") for n, v in enumerate(used)]
    model = trained(blind).model
    assert limits_of(model.trials, model.shares, 0.05) == {}
    # Labels that hardly occur are not known at all.
    with pytest.raises(InputError, match="nearly all verdicts are `used`"):
        trained([*used[:495], *rare[:9]])


def test_always_the_commonest_label_is_no_judgement() -> None:
    # 95 % of all verdicts are label 0, and a model that always says so is right in 95 %.
    trials = [Trial(0, 0.9 + n * 1e-5, n % 20 != 0) for n in range(2_000)]
    assert limits_of(trials, [0.95, 0.05], 0.1) == {}
    better = [Trial(0, 0.9 + n * 1e-5, n % 200 != 0) for n in range(2_000)]
    assert limits_of(better, [0.95, 0.05], 0.1)[0].trials == 2_000


def test_the_limit_of_the_error_is_kept_to() -> None:
    # Sure ones are right in 99 %, the others in 80 %.
    trials = [Trial(0, 0.99, n % 100 != 0) for n in range(1_000)]
    trials += [Trial(0, 0.6, n % 5 != 0) for n in range(1_000)]
    assert limits_of(trials, [0.5, 0.5], 0.03)[0].sure == 0.99
    assert limits_of(trials, [0.5, 0.5], 0.15)[0].sure == 0.6
    assert limits_of(trials, [0.5, 0.5], 0.005) == {}


def test_the_limit_is_for_all_answers_together_and_no_label_is_wrong_much_more_often() -> None:
    # Label 0 is right in 98 %, label 1 in 88 %: together they keep to 8 %, and label 1 to twice that.
    trials = [Trial(0, 0.95 - n * 1e-5, n % 50 != 0) for n in range(1_000)]
    trials += [Trial(1, 0.95 - n * 3e-5, n % 8 != 0) for n in range(400)]
    found = limits_of(trials, [0.6, 0.4], 0.1)
    assert found.keys() == {0, 1}
    assert sum(limit.trials for limit in found.values()) == 1_400
    # Together with label 0 a label that is wrong in a third would keep to the limit as well.
    trials[1_000:] = [Trial(1, 0.95 - n * 3e-5, n % 3 != 0) for n in range(200)]
    assert limits_of(trials, [0.8, 0.2], 0.1).keys() == {0}
    # Of four trials, all of them right, nobody can tell.
    trials[1_000:] = [Trial(1, 0.95, True) for _ in range(4)]
    assert limits_of(trials, [0.95, 0.05], 0.1).keys() == {0}


def test_a_higher_limit_never_answers_fewer_trials() -> None:
    chance = random.Random(4)
    trials = []
    for _ in range(1_500):
        label, sure = chance.choice((0, 0, 1, 2)), 0.4 + 0.6 * chance.random()
        trials.append(Trial(label, sure, chance.random() < sure - 0.1 * label))
    numbers = [
        sum(limit.trials for limit in limits_of(trials, [0.5, 0.3, 0.2], step / 50).values())
        for step in range(1, 26)
    ]
    assert numbers == sorted(numbers)
    assert numbers[0] == 0
    assert numbers[-1] > 1_000


def test_fewer_than_500_verdicts_and_one_label_are_refused(verdicts: list[Verdict]) -> None:
    with pytest.raises(InputError, match=r"499 verdicts of a judge are too few.*500 are needed"):
        trained(verdicts[:499])
    with pytest.raises(InputError, match="nearly all verdicts are `used`"):
        trained([each._replace(label="used") for each in verdicts])


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"rubric": "scope_fidelity"}, "it belongs to the rubric `scope_fidelity`"),
        ({"rubric_version": "0"}, "trained on version 0"),
        ({"labels": ["used", "terrible"]}, "it has labels that"),
        ({"bias": [0.0]}, "`bias` has 1 entries instead of 2"),
        ({"bias": [0.0, 1e300]}, "a number is too large"),
        ({"weights": [[0.0], [0.0]]}, "a row of `weights` has 1 entries"),
        ({"scales": []}, "`scales` has 0 entries"),
        ({"trials": [[7, 0.5, True]]}, "a trial has an unknown label"),
        ({"trees": [[], [], []]}, "`trees` has 3 entries instead of 2"),
        ({"trees": [[[[0], [0.5], [0], [0]]], []]}, "does not come after its parent"),
        (
            {"trees": [[[[0, -1], [0.5, 1.0], [1, 0], [2, 0]]], []]},
            "does not come after its parent",
        ),
        ({"trees": [[[[-2], [0.5], [0], [0]]], []]}, "a number that does not exist"),
        ({"trees": [[[[9999], [0.5], [1], [1]]], []]}, "a number that does not exist"),
        ({"trees": [[[[-1], [1e300], [0], [0]]], []]}, "a number of a tree is too large"),
        ({"trees": [[[[-1], [], [0], [0]]], []]}, "not equally long"),
        ({"trees": [[[[-1] * 400_001, [0.0] * 400_001, [], []]], []]}, "more than 400,000 nodes"),
        ({"format": "a pickle"}, "format"),
        ({"format_version": 2}, "an older version of Baton wrote this distilled judge: train it"),
        ({"code": "os.system('x')"}, "code"),
    ],
)
def test_files_that_are_damaged_or_of_something_else_are_refused(
    file: Path, change: dict[str, Any], says: str
) -> None:
    plain = msgspec.json.decode(file.read_bytes())
    file.write_bytes(msgspec.json.encode({**plain, **change}))
    with pytest.raises(InputError, match=says):
        judged(file)


def test_a_pickle_and_a_huge_file_are_refused_unread(tmp_path: Path) -> None:
    pickle = tmp_path / "small.json"
    pickle.write_bytes(b"\x80\x04\x95\x15\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94.")
    with pytest.raises(InputError):
        judged(pickle)
    with pickle.open("wb") as out:
        out.truncate(33 * 2**20)
    with pytest.raises(InputError, match="larger than 32 MiB"):
        judged(pickle)


@pytest.mark.heavy
def test_frameworks_are_kept_apart_in_the_trials(report: Report) -> None:
    assert report.model.trained.apart == "frameworks"
    assert report.model.trained.frameworks == ["f0", "f1", "f2", "f3"]
    assert report.agreement > 0.95


if __name__ == "__main__":
    share = float(sys.argv[sys.argv.index("--share") + 1]) if "--share" in sys.argv else 1.0
    seeds = range(max(2, round(20 * share)))
    if wrong := answering(seeds):
        sys.exit(f"trained on shuffled labels it answers: {wrong}")
    print(f"trained on shuffled labels it answers nothing in {len(seeds)} of {len(seeds)}")

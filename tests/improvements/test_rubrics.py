"""A rubric's text is improved on 120 labels; the judge is a simulation with hidden rules."""

from __future__ import annotations

import asyncio
import hashlib
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.evaluators.judged.scripted import ScriptedJudge, labelled

from baton.datasets.labels import Label
from baton.evaluators.judged import Judged
from baton.evaluators.judging.rubric import Answer, Rubric
from baton.improvements.journal import JOURNAL, Journal
from baton.improvements.result import Improvement, Strategy
from baton.improvements.rubrics import Options, RubricSearch
from baton.model import InputError, JudgeError, JudgeRequest, Trace
from baton.testing.build import run, trace, turn

ASKED = "The question: is the answer polite?"
HELPS = {
    "Sarcasm is rude, however friendly the words are.": "sarcasm",
    "A refusal with a reason is polite.": "refusal",
}
"""Sentences after which the judge no longer errs on answers of a kind: nobody is told."""
HARMS = {"Judge the facts of the answer, too.": "plain", "A short answer is rude.": "short"}
NEUTRAL = ["Read the whole answer.", "Think before you decide.", "Mind the tone.", "Be fair."]
KINDS = ["plain", "sarcasm", "refusal", "short", "shout"]
WORDS = [
    "invoice",
    "parcel",
    "garden",
    "window",
    "battery",
    "kettle",
    "museum",
    "bridge",
    "tractor",
    "violin",
    "harbour",
    "lantern",
    "cactus",
    "pillow",
    "ladder",
    "compass",
    "blanket",
    "teapot",
    "anchor",
    "saddle",
    "magnet",
    "ribbon",
    "candle",
    "basket",
    "hammer",
]


def rubric() -> Rubric:
    return Rubric(
        name="polite", summary="s", unit="turn", version="1", threshold=1, inputs=["answer"],
        prompt=ASKED, answer=Answer(choices={"polite": 1.0, "rude": 0.0}),
    )  # fmt: skip


def conversation(number: int) -> tuple[Trace, str, str]:
    """An answer of a kind with words of its own, and what people say of it."""
    chance = random.Random(number)
    kind = KINDS[number % len(KINDS)]
    words = " ".join(chance.sample(WORDS, 8))
    text = (
        f"About {words}: kind={kind}, case {hashlib.sha256(str(number).encode()).hexdigest()[:6]}"
    )
    record = trace(
        turn(f"Tell me {number}", run("desk", output=text), output=text), id=f"c{number}"
    )
    return record, kind, "rude" if kind in ("sarcasm", "shout") else "polite"


def judge_by_hidden_rules() -> ScriptedJudge:
    """Errs on kinds of answers, by what the rubric's text says; proposes sentences blindly."""
    pool = [*HELPS, *HARMS, *NEUTRAL]

    def says(request: JudgeRequest, sample: int) -> Any:
        if request.rubric.startswith("improve"):
            chance = random.Random(f"{sample}")
            text = request.content.split("⟧\n", 1)[1].split("\n⟦/", 1)[0]
            return {"thinking": "", "text": f"{text}\n{chance.choice(pool)}"}
        kind = request.content.split("kind=")[1].split(",")[0]
        right = "rude" if kind in ("sarcasm", "shout") else "polite"
        errs = any(
            of == kind and sentence not in request.instructions for sentence, of in HELPS.items()
        ) or any(of == kind and text in request.instructions for text, of in HARMS.items())
        wrong = "polite" if right == "rude" else "rude"
        return labelled(request, wrong if errs else right)

    return ScriptedJudge(by=says)


def pairs_and_labels(
    count: int = 120, shuffled: int | None = None
) -> tuple[list[tuple[Trace, None]], list[Label]]:
    """Conversations with a label each; with a seed, the labels of all are exchanged."""
    made = [conversation(number) for number in range(count)]
    values = [value for _, _, value in made]
    if shuffled is not None:
        random.Random(shuffled).shuffle(values)
    labels = [
        Label(trace=record.id, subject=record.turns[0].id, rubric="polite", value=value)
        for (record, _, _), value in zip(made, values, strict=True)
    ]
    return [(record, None) for record, _, _ in made], labels


def improved(
    seed: int,
    *,
    shuffled: bool = False,
    candidates: int = 16,
    judge: ScriptedJudge | None = None,
    journal: Journal | None = None,
    strategy: Strategy = "random",
) -> Improvement:
    pairs, labels = pairs_and_labels(shuffled=seed if shuffled else None)
    options = Options(strategy, seed, candidates)
    search = RubricSearch(Judged(rubric()), labels, pairs, options)
    return asyncio.run(search.make(judge or judge_by_hidden_rules(), journal))


def test_a_text_that_agrees_better_is_found_and_proven_on_held_out_labels() -> None:
    found = improved(1)
    (study,) = found.studies
    assert study.outcome == "proven", study.reason
    assert study.after is not None
    assert any(sentence in study.after for sentence in HELPS)
    assert not any(sentence in study.after for sentence in HARMS)
    assert study.calibration is not None
    assert study.calibration.after is not None
    before, after = study.calibration.before.kappa, study.calibration.after.kappa
    assert before is not None
    assert after is not None
    assert after.value > before.value + 0.3
    held_out = set(found.split.held_out)
    assert study.calibration.after.n == len(held_out)
    assert not held_out & {*found.split.train, *found.split.select}


@pytest.mark.heavy
def test_a_better_text_is_proven_in_19_of_20_seeds() -> None:
    outcomes = [improved(seed, candidates=24).studies[0].outcome for seed in range(20)]
    assert outcomes.count("proven") >= 19


@pytest.mark.heavy
@pytest.mark.parametrize("strategy", ["random", "gepa"])
def test_shuffled_labels_give_nothing_in_19_of_20(strategy: Strategy) -> None:
    gains = sum(
        improved(seed, shuffled=True, candidates=16, strategy=strategy).studies[0].outcome
        == "proven"
        for seed in range(20)
    )
    assert gains <= 1


def judge_by_chance(seed: int) -> ScriptedJudge:
    """Each text has other verdicts, all by chance, the text as it is as well."""

    def says(request: JudgeRequest, sample: int) -> Any:
        if request.rubric.startswith("improve"):
            return {"thinking": "", "text": f"{ASKED}\nMind rule {sample}."}
        asked = f"{seed}{request.instructions}{request.content}"
        drawn = hashlib.sha256(asked.encode()).digest()[0]
        return labelled(request, "rude" if drawn < 102 else "polite")

    return ScriptedJudge(by=says)


@pytest.mark.heavy
def test_the_luckiest_of_many_texts_is_no_gain_in_19_of_20() -> None:
    found = [improved(seed, judge=judge_by_chance(seed)).studies[0] for seed in range(20)]
    # One of 16 often looks better on select: only what is held out shows that it is not.
    assert sum(study.best is not None for study in found) >= 10
    assert sum(study.outcome == "proven" for study in found) <= 1


@pytest.mark.parametrize("seed", range(2))
def test_shuffled_labels_give_nothing(seed: int) -> None:
    (study,) = improved(seed, shuffled=True, candidates=8).studies
    assert study.outcome == "no proven gain"
    assert study.after is None


def test_a_rubric_that_does_not_get_better_stays() -> None:
    # The judge errs as often whatever the text says.
    def says(request: JudgeRequest, sample: int) -> Any:
        if request.rubric.startswith("improve"):
            return {"thinking": "", "text": f"{ASKED}\n{NEUTRAL[sample % len(NEUTRAL)]}"}
        wrong = int(hashlib.sha256(request.content.encode()).hexdigest(), 16) % 3 == 0
        rude = any(f"kind={kind}" in request.content for kind in ("sarcasm", "shout"))
        return labelled(request, "rude" if rude != wrong else "polite")

    (study,) = improved(0, judge=ScriptedJudge(by=says), candidates=4).studies
    assert study.outcome == "no proven gain"
    assert study.best is None
    assert study.after is None
    assert study.calibration is not None
    assert study.calibration.after is None


def test_a_text_that_flatters_one_side_is_no_gain() -> None:
    # With this text the judge passes everything: it agrees more often, and finds no rude answer.
    generous = f"{ASKED}\nAnswers are polite."

    def says(request: JudgeRequest, _: int) -> Any:
        if request.rubric.startswith("improve"):
            return {"thinking": "", "text": generous}
        if "Answers are polite." in request.instructions:
            return labelled(request, "polite")
        # As it is, the judge finds every rude answer, and calls most others rude as well.
        plain = "kind=plain" in request.content
        return labelled(request, "polite" if plain else "rude")

    (study,) = improved(0, judge=ScriptedJudge(by=says), candidates=1).studies
    assert study.after is None


def test_name_scale_and_inputs_stay_and_texts_that_break_rules_are_refused() -> None:
    judge = ScriptedJudge(
        by=lambda request, _: (
            {"thinking": "", "text": "Is {this} polite? " + "word " * 400}
            if request.rubric.startswith("improve")
            else labelled(request, "polite")
        )
    )
    (study,) = improved(0, judge=judge, candidates=2).studies
    assert study.outcome == "no proven gain"
    assert study.after is None
    assert any("placeholder" in str(one.refused) for one in study.candidates[1:])
    asked = [each for each in judge.asked if not each.rubric.startswith("improve")]
    assert {each.rubric for each in asked} == {"polite"}
    assert len({str(each.schema) for each in asked}) == 1


def test_a_text_with_words_of_a_held_out_answer_is_refused() -> None:
    pairs, labels = pairs_and_labels()
    search = RubricSearch(Judged(rubric()), labels, pairs, Options("random", 0, 2))
    held_out = search.result.split.held_out[0].split("/")[0]
    text = next(record for record, _ in pairs if record.id == held_out).turns[0].output
    assert text is not None
    leaked = f"{ASKED}\nThis one is rude: {text.text}"
    judge = ScriptedJudge(
        by=lambda request, _: (
            {"thinking": "", "text": leaked}
            if request.rubric.startswith("improve")
            else labelled(request, "polite")
        )
    )
    (study,) = asyncio.run(search.make(judge)).studies
    assert "it contains text of held-out cases" in str(study.candidates[1].refused)
    assert study.after is None


def test_labels_that_all_say_the_same_are_refused() -> None:
    pairs, labels = pairs_and_labels(20)
    same = [msgspec.structs.replace(each, value="polite") for each in labels]
    with pytest.raises(InputError, match="all labels say the same"):
        RubricSearch(Judged(rubric()), same, pairs)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
def test_a_run_that_was_killed_at_any_moment_is_resumed_to_the_same_result(
    tmp_path: Path, share: float
) -> None:
    about = {"the labels": "l"}
    with Journal.begin(tmp_path / "run", about) as journal:
        whole = improved(1, candidates=6, journal=journal)
    # Lines are only appended: what a kill leaves is a beginning of the file.
    file = tmp_path / "run" / JOURNAL
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    kept = file.read_bytes().count(b"\n")
    judge = judge_by_hidden_rules()
    with Journal.resume(tmp_path / "run", about) as journal:
        resumed = improved(1, candidates=6, judge=judge, journal=journal)
    assert msgspec.to_builtins(resumed.studies) == msgspec.to_builtins(whole.studies)
    assert (resumed.plays, resumed.asked) == (whole.plays, whole.asked)
    assert len(judge.asked) == data.count(b"\n") - kept


def test_a_judge_that_is_down_stops_the_search_and_what_it_said_is_kept() -> None:
    honest = judge_by_hidden_rules()
    asked = 0

    def says(request: JudgeRequest, sample: int) -> Any:
        nonlocal asked
        asked += 1
        if asked > 130:
            return JudgeError("outage", "503 from the model")
        assert honest._by is not None
        return honest._by(request, sample)

    journal = Journal.in_memory()
    found = improved(1, candidates=6, judge=ScriptedJudge(by=says), journal=journal)
    assert found.stopped == "outage: 503 from the model"
    assert found.studies[0].outcome == "stopped"
    assert found.studies[0].after is None
    assert found.texts == {}
    whole = improved(1, candidates=6)
    resumed = improved(1, candidates=6, journal=journal)
    assert resumed.stopped is None
    assert msgspec.to_builtins(resumed.studies) == msgspec.to_builtins(whole.studies)

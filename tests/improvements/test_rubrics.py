"""A rubric's text is improved on 120 labels; the judge is a simulation with hidden rules."""

from __future__ import annotations

import asyncio
import hashlib
import random
from typing import Any

import pytest
from tests.evaluators.judged.scripted import ScriptedJudge, labelled

from baton.datasets.labels import Label
from baton.evaluators.judged import Judged
from baton.evaluators.judging.rubric import Answer, Rubric
from baton.improvements.rubrics import Options, Sharpened, sharpen
from baton.model import InputError, JudgeRequest, Trace
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


def improved(seed: int, *, shuffled: bool = False, candidates: int = 16) -> Sharpened:
    made = [conversation(number) for number in range(120)]
    values = [value for _, _, value in made]
    if shuffled:
        random.Random(seed).shuffle(values)
    labels = [
        Label(trace=record.id, subject=record.turns[0].id, rubric="polite", value=value)
        for (record, _, _), value in zip(made, values, strict=True)
    ]
    pairs = [(record, None) for record, _, _ in made]
    options = Options("random", seed, candidates)
    judged = Judged(rubric())
    return asyncio.run(sharpen(judged, labels, pairs, judge_by_hidden_rules(), options))


def test_a_text_that_agrees_better_is_found_and_proven_on_held_out_labels() -> None:
    found = improved(1)
    (study,) = found.improvement.studies
    assert study.outcome == "proven", study.reason
    assert study.after is not None
    assert any(sentence in study.after for sentence in HELPS)
    assert not any(sentence in study.after for sentence in HARMS)
    assert found.before is not None
    assert found.after is not None
    before, after = found.before.kappa, found.after.kappa
    assert before is not None
    assert after is not None
    assert after.value > before.value + 0.3
    held_out = set(found.improvement.split.held_out)
    assert found.after.n == len(held_out)
    assert not held_out & {*found.improvement.split.train, *found.improvement.split.select}


@pytest.mark.heavy
def test_shuffled_labels_give_nothing_in_19_of_20() -> None:
    gains = sum(
        improved(seed, shuffled=True, candidates=8).improvement.studies[0].outcome == "proven"
        for seed in range(20)
    )
    assert gains <= 1


def test_name_scale_and_inputs_stay_and_texts_that_break_rules_are_refused() -> None:
    judge = ScriptedJudge(
        by=lambda request, _: (
            {"thinking": "", "text": "Is {this} polite? " + "word " * 400}
            if request.rubric.startswith("improve")
            else labelled(request, "polite")
        )
    )
    made = [conversation(number) for number in range(120)]
    labels = [
        Label(trace=record.id, subject=record.turns[0].id, rubric="polite", value=value)
        for record, _, value in made
    ]
    pairs = [(record, None) for record, _, _ in made]
    found = asyncio.run(sharpen(Judged(rubric()), labels, pairs, judge, Options("random", 0, 2)))
    (study,) = found.improvement.studies
    assert study.outcome == "no proven gain"
    assert study.after is None
    assert any("placeholder" in str(one.refused) for one in study.candidates[1:])
    asked = [each for each in judge.asked if not each.rubric.startswith("improve")]
    assert {each.rubric for each in asked} == {"polite"}
    assert len({str(each.schema) for each in asked}) == 1


def test_labels_that_all_say_the_same_are_refused() -> None:
    made = [conversation(number) for number in range(20)]
    labels = [
        Label(trace=record.id, subject=record.turns[0].id, rubric="polite", value="polite")
        for record, _, _ in made
    ]
    pairs = [(record, None) for record, _, _ in made]
    with pytest.raises(InputError, match="all labels say the same"):
        asyncio.run(sharpen(Judged(rubric()), labels, pairs, ScriptedJudge("polite")))

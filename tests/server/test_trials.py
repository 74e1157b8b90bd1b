"""Rubrics that are tried: asked in parts, held against people, and within a budget."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.cli.labelled import RUBRIC, answer, hand_off

from baton.evaluators.judging.rubric_files import FOLDER
from baton.model import InputError
from baton.server.access import Caller
from baton.server.labels import add_label
from baton.server.rules import Budget
from baton.server.schema import spending
from baton.server.settings import Settings
from baton.server.store import Store
from baton.server.trials import (
    TrialRequest,
    start_trial,
    stop_trial,
    trial_of,
    work_on_trials,
)
from baton.session.server_rows import Trial
from baton.testing import LlmServer, llm_server

from .seeding import START, add_conversation, add_score

TEXT = (FOLDER / f"{RUBRIC}.yaml").read_text().replace(f"name: {RUBRIC}\n", "name: mine\n")
TEXT = "\n".join(line for line in TEXT.splitlines() if not line.startswith("aliases:"))
SAYS = ["correct", "wrong", "weak", "correct", "wrong"] * 3


def settings_for(server: LlmServer, **more: Any) -> Settings:
    return Settings(judges={"x": server.judge(retries=0, **more.pop("judge", {}))}, **more)


def fill(store: Store) -> None:
    for n, says in enumerate(SAYS):
        add_conversation(store, hand_off(n, says), at=START + n)


def say(store: Store, n: int, value: str, by: str, rubric: str = RUBRIC) -> None:
    line = {"trace": f"trace{n}", "subject": "d1", "rubric": rubric, "value": value}
    add_label(store, Caller(1, by, frozenset({"review"})), msgspec.json.encode(line))


def finished(store: Store, settings: Settings, number: int) -> Trial:
    while work_on_trials(store, settings, START):
        pass
    return trial_of(store, 1, number)


def test_a_rubric_is_tried_on_what_people_labelled(store: Store) -> None:
    fill(store)
    for n in range(12):
        say(store, n, SAYS[n] if n != 3 else "wrong", "ann")
    with llm_server(answer) as llm:
        settings = settings_for(llm)
        request = TrialRequest(text=TEXT, labels=RUBRIC)
        number = start_trial(store, 1, "kim", request, settings, START)
        assert trial_of(store, 1, number).state == "waiting"
        assert work_on_trials(store, settings, START)
        half = trial_of(store, 1, number)
        assert (half.state, len(half.answers), half.asked) == ("running", 8, 12)
        trial = finished(store, settings, number)
        assert len(llm.requests) == 12
    assert (trial.state, trial.rubric, trial.by) == ("done", "mine", "kim")
    assert trial.quality is not None
    assert trial.quality.agreement is not None
    assert trial.quality.agreement.value == pytest.approx(11 / 12)
    assert trial.quality.kappa is not None
    one = next(each for each in trial.answers if each.trace == "trace3")
    assert (one.label, one.people) == ("correct", {"ann": "wrong"})
    assert one.reason


def test_a_rubric_is_tried_on_chosen_dispatches_beside_what_was_said_before(store: Store) -> None:
    fill(store)
    before: dict[str, Any] = {"type": "mine", "evaluator": "mine", "dispatch": "d1"}
    add_score(store, 15, **before, status="failed", details='{"label": "weak"}')
    with llm_server(answer) as llm:
        settings = settings_for(llm)
        newest = TrialRequest(text=TEXT, on="chosen", filter="to:finder", most=2)
        trial = finished(store, settings, start_trial(store, 1, "kim", newest, settings, START))
        assert [(one.trace, one.label, one.before) for one in trial.answers] == [
            ("trace14", "wrong", "weak"),
            ("trace13", "correct", None),
        ]
        assert (trial.changed, trial.quality) == (1, None)
        two = TrialRequest(text=TEXT, on="chosen", things=[(1, "d1"), (2, "nothing")])
        trial = finished(store, settings, start_trial(store, 1, "kim", two, settings, START))
    assert [one.trouble for one in trial.answers] == [None, "the rubric does not apply to it"]


def test_labels_of_other_choices_are_not_compared(store: Store) -> None:
    fill(store)
    say(store, 0, "inside", "ann")
    with llm_server(answer) as llm:
        settings = settings_for(llm)
        request = TrialRequest(text=TEXT, labels=RUBRIC)
        trial = finished(store, settings, start_trial(store, 1, "kim", request, settings, START))
    assert trial.quality is None
    assert "no label `inside`" in (trial.incomparable or "")


def test_trials_keep_to_their_budget(store: Store) -> None:
    fill(store)
    with llm_server(answer) as llm:
        settings = settings_for(llm, trials=Budget(cost_usd=0.01, per="day"))
        with store.write() as connection:
            row = {"project": 1, "rule": "trials of rubrics", "period": "2026-01-01"}
            connection.execute(spending.insert().values({**row, "cost_usd": 0.01}))
        request = TrialRequest(text=TEXT, on="chosen")
        number = start_trial(store, 1, "kim", request, settings, START)
        trial = finished(store, settings, number)
        assert (trial.state, trial.answers, llm.requests) == ("failed", [], [])
        assert "used up their budget of $0.01 per day" in (trial.error or "")
        number = start_trial(store, 1, "kim", request, settings, START + 86_400)
        work_on_trials(store, settings, START + 86_400)
        assert len(trial_of(store, 1, number).answers) == 8


def test_one_that_was_stopped_asks_no_more(store: Store) -> None:
    fill(store)
    with llm_server(answer) as llm:
        settings = settings_for(llm)
        request = TrialRequest(text=TEXT, on="chosen", most=12)
        number = start_trial(store, 1, "kim", request, settings, START)
        work_on_trials(store, settings, START)
        stop_trial(store, 1, number, START)
        trial = finished(store, settings, number)
        assert (trial.state, len(trial.answers), len(llm.requests)) == ("stopped", 8, 8)


def test_what_cannot_be_tried_is_reported_before_anything_is_asked(store: Store) -> None:
    fill(store)
    with llm_server(answer) as llm:
        settings = settings_for(llm)

        def refused(text: str = TEXT, judged: Settings = settings, **more: Any) -> str:
            request = TrialRequest(text=text, on="chosen", **more)
            with pytest.raises(InputError) as error:
                start_trial(store, 1, "kim", request, judged, START)
            return str(error.value)

        assert "rubric:3: unit" in refused(TEXT.replace("unit: dispatch", "unit: x"))
        assert "no judge `y`; known: x" in refused(judge="y")
        assert "server.yaml names none" in refused(judged=Settings())
        assert "no dispatch is chosen" in refused(filter="to:nobody")
        request = TrialRequest(text=TEXT)
        with pytest.raises(InputError, match="no label by `mine`"):
            start_trial(store, 1, "kim", request, settings, START)
        assert llm.requests == []

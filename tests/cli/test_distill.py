"""`baton distill`: trained on an evaluation, switched on in a config, reported."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.labelled import RUBRIC, answer, hand_off, write_config, write_traces

from baton.testing import llm_server

Run = Callable[..., Any]


def test_fewer_than_500_verdicts_are_refused(
    baton: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with llm_server(answer) as server:
        traces = write_traces(tmp_path, ["correct", "wrong", "correct"])
        baton("score", traces, "-c", write_config(tmp_path, server.judge()))
    outcome = baton("distill", RUBRIC)
    assert outcome.code == 2
    assert "3 verdicts of a judge are too few to distill it: 500 are needed" in outcome.err
    assert not (tmp_path / f"{RUBRIC}.distilled.json").exists()


@pytest.mark.heavy
def test_trained_and_switched_on_it_asks_less_and_says_how_much(
    baton: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    labels = [random.Random(n).choice(["correct", "wrong"]) for n in range(720)]
    with llm_server(answer) as server:
        train, test = tmp_path / "train.jsonl", tmp_path / "test.jsonl"
        records = [msgspec.json.encode(hand_off(n, label)) for n, label in enumerate(labels)]
        train.write_bytes(b"\n".join(records[:520]))
        test.write_bytes(b"\n".join(records[520:]))
        baton("score", train, "-c", write_config(tmp_path, server.judge()))
        outcome = baton("distill", RUBRIC, "--json")
        assert outcome.code == 0, outcome.err
        told = json.loads(outcome.out)
        assert told["trained"]["verdicts"] == 520
        assert told["agreement"] > 0.95
        small = {"file": f"{RUBRIC}.distilled.json", "max_error": 0.05, "audit": 0.1}
        config = write_config(tmp_path, server.judge(), distilled=small)
        server.clear()
        outcome = baton("score", test, "-c", config)
        asked = len(server.requests)
        assert asked < 80
        assert f"a distilled judge answered {200 - asked} of 200" in outcome.out
        assert "the judge agreed in" in outcome.out
        assert "DRIFT" not in outcome.out

        # The judge thinks otherwise now: what is audited shows it.
        server.script = lambda _: {"reason": "r", "quote": "", "label": "weak"}
        other = write_config(tmp_path, server.judge(cache=False), distilled={**small, "audit": 0.3})
        outcome = baton("score", test, "-c", other)
        assert "DRIFT" in outcome.out

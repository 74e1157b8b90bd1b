"""`replay`: recorded traces stand for live agents."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.model import Case, Content, ExpectedTurn, InputError
from baton.testing import build

Run = Callable[..., Any]


def by_desk(name: str, *messages: str) -> Case:
    return build.case(*messages, id=name, agents=["desk"])


def record(path: Path, *traces: dict[str, Any]) -> Path:
    """Write traces: keys of an eval case, and `said` for its first message."""
    lines = []
    for trace in traces:
        turn = {"user_content": {"parts": [{"text": trace.pop("said", "hi")}]}}
        head = {"conversation": [turn], "metadata": {"agent_chain": ["desk"]}}
        lines.append(json.dumps({**head, **trace}) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def replayed(cases: list[Case], *paths: Path) -> list[tuple[str, str | None]]:
    spec = {"type": "replay", "paths": [str(path) for path in paths]}
    return [(result.status, result.error) for result in baton.evaluate(cases, spec)]


def test_a_trace_is_found_by_the_id_of_the_case_before_its_message(tmp_path: Path) -> None:
    path = record(
        tmp_path / "r.jsonl", {"eval_id": "x", "said": "b"}, {"eval_id": "b", "said": "c"}
    )
    assert replayed([by_desk("b", "b")], path) == [("passed", None)]


def test_a_trace_is_found_by_the_first_message_with_space_folded(tmp_path: Path) -> None:
    path = record(tmp_path / "r.jsonl", {"eval_id": "x", "said": "please  refund\nme"})
    assert replayed([by_desk("b", "please refund me")], path) == [("passed", None)]


def test_the_name_of_a_recording_is_an_id(tmp_path: Path, recordings: Path) -> None:
    desk = recordings / "support_desk"
    spec = {"type": "replay", "paths": [str(desk / "refund.sse"), str(desk / "policy.sse")]}
    played = Case(id="refund", turns=[ExpectedTurn(input=Content(text="anything"))])
    (result,) = baton.evaluate([played], spec, [{"type": "agent_chain", "optional": True}])
    assert result.trace is not None
    assert (result.error, result.trace.id, result.trace.case) == (None, "refund", "refund")


def test_two_candidates_are_an_error_that_names_both(tmp_path: Path) -> None:
    one = record(tmp_path / "one.jsonl", {"eval_id": "a"})
    two = record(tmp_path / "two.jsonl", {"eval_id": "a"}, {"eval_id": "b", "said": "other"})
    (twice, fine) = replayed([by_desk("a", "hi"), by_desk("b", "other")], one, two)
    assert twice[0] == "error"
    assert (twice[1] or "").startswith("2 recorded traces for case `a`: ")
    assert "one.jsonl" in (twice[1] or "")
    assert "two.jsonl" in (twice[1] or "")
    assert fine == ("passed", None)


def test_no_candidate_is_an_error_and_the_others_go_on(tmp_path: Path) -> None:
    path = record(tmp_path / "r.jsonl", {"eval_id": "a"})
    none, fine = replayed([by_desk("z", "never said"), by_desk("a", "hi")], path)
    assert none == ("error", "no recorded trace for case `z`: none has its id or first message")
    assert fine == ("passed", None)


def test_one_trace_may_be_played_again(tmp_path: Path) -> None:
    path = record(tmp_path / "r.jsonl", {"eval_id": "a"})
    spec = {"type": "replay", "paths": [str(path)]}
    results = list(baton.evaluate([by_desk("a", "hi")], spec, repeat=3))
    assert [(r.repeat, r.status) for r in results] == [(n, "passed") for n in range(3)]


def test_every_missing_path_is_named_before_anything_runs(tmp_path: Path) -> None:
    spec = {"type": "replay", "paths": [str(tmp_path / "gone.json"), str(tmp_path / "lost")]}
    with pytest.raises(InputError) as caught:
        baton.evaluate([by_desk("a", "hi")], spec)
    assert [str(p).endswith(": no such file or folder") for p in caught.value.problems] == [
        True
    ] * 2


def test_paths_start_in_the_folder_of_the_config(baton: Run, tmp_path: Path) -> None:
    (tmp_path / "evals").mkdir()
    record(tmp_path / "evals" / "runs.jsonl", {"eval_id": "a"})
    cases = "cases: [{id: a, input: hi, agents: [desk]}]"
    (tmp_path / "evals" / "cases.yaml").write_text(cases)
    config = "dataset: cases.yaml\nproviders: [{type: replay, paths: [runs.jsonl]}]\n"
    (tmp_path / "evals" / "baton.yaml").write_text(config)
    assert baton("eval", "evals/baton.yaml").code == 0
    (tmp_path / "evals" / "runs.jsonl").unlink()
    outcome = baton("eval", "evals/baton.yaml")
    assert outcome.code == 2
    assert "providers[0].paths" in outcome.err
    assert "runs.jsonl: no such file or folder" in outcome.err


def test_a_recording_that_cannot_be_read_stops_the_run_and_leaves_no_folder(
    baton: Run, tmp_path: Path
) -> None:
    (tmp_path / "runs.jsonl").write_text('{"eval_id": \n{"eval_id": 1}\n')
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: hi, agents: [desk]}]")
    config = "dataset: cases.yaml\nproviders: [{type: replay, paths: [runs.jsonl]}]\n"
    (tmp_path / "baton.yaml").write_text(config)
    outcome = baton("eval")
    assert outcome.code == 2
    assert "runs.jsonl" in outcome.err
    assert not (tmp_path / ".baton").exists()


def test_hooks_run_for_recorded_turns_too(tmp_path: Path) -> None:
    path = record(tmp_path / "r.jsonl", {"eval_id": "a"})
    hook = tmp_path / "hook.py"
    hook.write_text("def after(case, turn):\n    raise ValueError(case.id)\n")
    spec = {"type": "replay", "paths": [str(path)], "hooks": {"after_turn": f"{hook}:after"}}
    (result,) = baton.evaluate([by_desk("a", "hi")], spec)
    assert result.error == "the hook after_turn raised ValueError: a (hook.py:2)"

"""`baton rubrics examples`: labels against a judge and proven fixes are kept, and shown to it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.labelled import RUBRIC, write_config, write_labels, write_traces

from baton.feed.issue_progress import Fix, Progress, Proof
from baton.feed.issues import Issue, Member, Rate
from baton.replays.replay import Counted
from baton.testing import LlmServer, Received, llm_server

Run = Callable[..., Any]
JUDGE = ["correct", "wrong", "correct", "correct"]
PEOPLE = ["correct", "wrong", "wrong", "correct"]


def answer(received: Received) -> dict[str, str]:
    """Say the verdict that stands in the prompt of the hand-off; examples come after it."""
    return {"reason": "r", "quote": "", "label": re.findall(r"verdict=(\w+)", received.user)[0]}


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with llm_server(answer) as running:
        yield running


def judged(baton: Run, folder: Path, server: LlmServer, **config: Any) -> Path:
    """Let the judge score four traces; return the folder of the evaluation."""
    traces = write_traces(folder, JUDGE)
    settings = write_config(folder, server.judge(cache=False), **config)
    outcome = baton("score", traces, "-c", settings)
    assert outcome.code == 1, outcome.err
    return max((folder / ".baton" / "evaluations").iterdir())


def test_labels_against_the_judge_are_kept_and_shown_to_it(
    baton: Run, tmp_path: Path, server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    evaluation = judged(baton, tmp_path, server)
    labels = write_labels(tmp_path, PEOPLE, note="The finder was the wrong one.")
    outcome = baton("rubrics", "examples", RUBRIC, labels, evaluation)
    assert outcome.code == 0, outcome.err
    assert "1 example (1 label against the judge, 0 failures of proven fixes" in outcome.out
    (line,) = (tmp_path / f"{RUBRIC}.examples.jsonl").read_text("utf-8").splitlines()
    kept = json.loads(line)
    assert (kept["conversation"], kept["label"], kept["judged"]) == ("trace2", "wrong", "correct")

    server.clear()
    judged(baton, tmp_path, server, examples={"file": f"{RUBRIC}.examples.jsonl"})
    shown = {
        re.findall(r"find file (\d)", each.user)[0]: "Example 1: people decided" in each.user
        for each in server.requests
    }
    assert shown == {"0": True, "1": True, "2": False, "3": True}  # 2 is the example itself
    outcome = baton("rubrics", "examples", RUBRIC, labels, evaluation)
    assert "1 example (1 label against the judge, 0 failures of proven fixes: 0 new" in outcome.out


def test_a_rehearsal_counts_the_tokens_of_examples(
    baton: Run, tmp_path: Path, server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    evaluation = judged(baton, tmp_path, server)
    baton("rubrics", "examples", RUBRIC, write_labels(tmp_path, PEOPLE), evaluation)
    tokens = []
    for config in ({}, {"examples": {"file": f"{RUBRIC}.examples.jsonl"}}):
        settings = write_config(tmp_path, server.judge(cache=False), **config)
        outcome = baton("score", tmp_path / "traces.jsonl", "-c", settings, "--dry-run", "--json")
        tokens.append(json.loads(outcome.out)["dry_run"]["input_tokens"])
    assert tokens[1] > tokens[0] + 300


def test_failures_that_a_proven_fix_confirms_are_kept(
    baton: Run, tmp_path: Path, server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    evaluation = judged(baton, tmp_path, server)
    issue = Issue(
        key="0123456789ab", title="t", subtype="s", category="c", fault=RUBRIC, sender="main",
        receiver="finder", evaluators=[RUBRIC], proven=False, count=1,
        rate=Rate(failed=1, dispatches=4, per_1000=None),
        members=[Member(id="m", conversation="trace1", dispatch="d1", judged=True)],
    )  # fmt: skip
    for fixed, code in ((0, 2), (5, 0)):
        proof = Proof(
            fixed=Counted(count=fixed, of=5, share=None), broke=Counted(count=0, of=5, share=None), members=5, neighbours=5, errors=0,
            repeats=1, form="conversation", evaluators=[RUBRIC], before="a", after="b", at=1.0,
        )  # fmt: skip
        fix = Fix(kind="supervisor_prompt", text="agent:main", why="w", proof=proof)
        file = tmp_path / ".baton" / "issues" / "0123456789ab.json"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(msgspec.json.encode(Progress(issue=issue, fix=fix)))
        outcome = baton("rubrics", "examples", RUBRIC, evaluation)
        assert outcome.code == code, outcome.err
    assert "1 failure of proven fixes" in outcome.out
    kept = json.loads((tmp_path / f"{RUBRIC}.examples.jsonl").read_text("utf-8"))
    assert (kept["label"], kept["origin"]) == ("wrong", "proven fix")


def test_examples_without_a_file_stop_the_run(
    baton: Run, tmp_path: Path, server: LlmServer
) -> None:
    settings = write_config(tmp_path, server.judge(), examples={})
    outcome = baton("score", write_traces(tmp_path, JUDGE), "-c", settings)
    assert outcome.code == 2
    assert "`examples` needs a `file` here" in outcome.err

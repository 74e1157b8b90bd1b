"""`baton score` and `baton eval` with judges: the real SDK, against a scripted server."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from baton.testing import LlmServer, Received, Reply, llm_server

Run = Callable[..., Any]
CLAUDE = Path(__file__).parent.parent / "data" / "claude" / "current"
TRACES = [CLAUDE / "01_correct_dispatch" / "session", CLAUDE / "03_scope_bleed" / "session"]
AXES = ("dispatch_correctness", "scope_fidelity", "result_integration")


def best(asked: Received) -> dict[str, Any]:
    """Give the first label there is."""
    assert asked.schema is not None
    label = asked.schema["properties"]["label"]["enum"][0]
    return {"reason": "as it should be", "quote": "", "label": label}


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> Iterator[LlmServer]:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with llm_server(best) as server:
        yield server


def config(folder: Path, llm: LlmServer, *more: str, **judge: Any) -> Path:
    told = json.dumps(llm.judge(retries=0, **judge))
    axes = "[" + ", ".join(AXES) + "]"
    prices = "prices: {scripted: {input: 1, output: 2}}"
    path = folder / "baton.yaml"
    path.write_text("\n".join([f"judge: {told}", f"evaluators: {axes}", prices, *more]))
    return path


def test_the_second_run_asks_nobody_and_says_the_same(
    baton: Run, tmp_path: Path, llm: LlmServer
) -> None:
    args = ("score", *TRACES, "-c", config(tmp_path, llm), "--json")
    first, asked = baton(*args), len(llm.requests)
    second = baton(*args)
    assert (first.code, second.code, asked > 0, len(llm.requests)) == (0, 0, True, asked)
    one, two = json.loads(first.out), json.loads(second.out)
    assert one["judges"]["all"]["requests"] == asked
    took = two["judges"]["all"]
    assert took["cached"] == took["scores"] == one["judges"]["all"]["scores"]
    assert (took.get("requests", 0), took["cost_usd"], took["timings"]) == (0, 0, {"seconds": 0})
    assert [s["score"] for r in one["results"] for s in r["scores"]] == [
        s["score"] for r in two["results"] for s in r["scores"]
    ]
    assert (tmp_path / ".baton" / "verdicts.sqlite").is_file()


def test_without_the_cache_verdicts_are_neither_used_nor_kept(
    baton: Run, tmp_path: Path, llm: LlmServer
) -> None:
    args = ("score", *TRACES, "-c", config(tmp_path, llm), "--no-cache")
    assert baton(*args).code == 0
    asked = len(llm.requests)
    assert baton(*args).code == 0
    assert len(llm.requests) == 2 * asked
    assert not (tmp_path / ".baton" / "verdicts.sqlite").exists()


def test_with_the_cache_alone_a_missing_verdict_is_an_error(
    baton: Run, tmp_path: Path, llm: LlmServer
) -> None:
    args = ("score", TRACES[0], "-c", config(tmp_path, llm))
    missing = baton(*args, "--cache-only")
    assert (missing.code, len(llm.requests)) == (3, 0)
    assert "uncached: no verdict of openai:scripted on this question" in missing.out
    assert baton(*args).code == 0
    asked = len(llm.requests)
    assert baton(*args, "--cache-only").code == 0
    assert len(llm.requests) == asked


@pytest.mark.parametrize(
    ("limit", "calls"), [(("--max-judge-calls", "2"), 2), (("--max-cost", "0"), 0)]
)
def test_at_the_limit_the_rest_is_an_error(
    baton: Run, tmp_path: Path, llm: LlmServer, limit: tuple[str, str], calls: int
) -> None:
    found = baton("score", *TRACES, "-c", config(tmp_path, llm), *limit, "--json")
    assert (found.code, len(llm.requests)) == (3, calls)
    scores = [s for r in json.loads(found.out)["results"] for s in r["scores"]]
    kinds = Counter(s["details"].get("judge_error") for s in scores)
    assert kinds["budget"] == len(scores) - calls


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Reply(fault="server_error"), "outage"),
        (Reply(fault="rate_limit"), "rate_limit"),
        (Reply(fault="wrong_schema"), "unparsable"),
        (Reply(fault="empty"), "empty"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_judge_in_trouble_never_passes_and_never_fails(
    baton: Run, tmp_path: Path, llm: LlmServer, reply: Reply, kind: str
) -> None:
    llm.script = reply
    found = baton("score", TRACES[0], "-c", config(tmp_path, llm), "--json")
    report = json.loads(found.out)
    assert (found.code, report["status"]) == (3, "error")
    (result,) = report["results"]
    assert {s["details"]["judge_error"] for s in result["scores"]} == {kind}
    assert {s["score"] for s in result["scores"]} == {None}


def test_a_dry_run_asks_nobody_and_knows_every_request(
    baton: Run, tmp_path: Path, llm: LlmServer
) -> None:
    args = ("score", *TRACES, "-c", config(tmp_path, llm))
    told = baton(*args, "--dry-run")
    assert (told.code, len(llm.requests)) == (0, 0)
    assert "dry run: no judge is asked\n  model   openai:scripted\n" in told.out
    assert not (tmp_path / ".baton").exists()
    plain = json.loads(baton(*args, "--dry-run", "--json").out)["dry_run"]
    assert baton(*args).code == 0
    assert plain["calls"] == len(llm.requests)
    assert f"  calls   {plain['calls']}" in told.out
    assert plain["cost_usd"] > 0
    again = json.loads(baton(*args, "--dry-run", "--json").out)["dry_run"]
    assert (again["calls"], again["cached"], again["cost_usd"]) == (0, plain["calls"], 0)


def test_the_gate_names_axis_sub_agent_and_case(baton: Run, tmp_path: Path, llm: LlmServer) -> None:
    def bleeding(asked: Received) -> dict[str, Any]:
        answer = best(asked)
        if "validator-agent" in asked.user and "score" not in answer:
            assert asked.schema is not None
            answer["label"] = asked.schema["properties"]["label"]["enum"][-1]
        return answer

    llm.script = bleeding
    rules = [f"{AXES[0]} >= 0.85", f"{AXES[1]} by agent >= 0.90", f"{AXES[2]} >= 0.80"]
    more = ["pass_rule: {mean: 0}", f"gate: {json.dumps(rules)}"]
    junit = tmp_path / "junit.xml"
    found = baton("score", *TRACES, "-c", config(tmp_path, llm, *more), "--junit", junit)
    assert found.code == 1
    line = next(line for line in found.out.splitlines() if "scope_fidelity by agent" in line)
    assert "the mean of `validator-agent` is 0.00 over 1; the worst: f46d0249" in line
    assert " 0.00 at dispatch1 (main → validator-agent)" in line
    header = next(line for line in found.out.splitlines() if line.startswith("mean (verdicts)"))
    assert header.split()[2:] == list(AXES)
    assert "refactor-agent" in found.out
    root = ET.parse(junit).getroot()  # noqa: S314 - it was written just now
    failed = [case for case in root.iter("testcase") if case.find("failure") is not None]
    assert {case.get("name") for case in failed} == {"the gate"}
    assert int(root.get("failures", "0")) == len(failed)
    assert int(root.get("tests", "0")) == len(list(root.iter("testcase")))
    report = json.loads(baton("report", "--json").out)
    missed = [rule for rule in report["gate"] if rule["status"] == "failed"]
    assert {(r["evaluator"], r.get("agent")) for r in missed} >= {(AXES[1], "validator-agent")}
    assert all(rule["cases"][0]["subject"] for rule in missed)


def test_nothing_of_a_key_is_stored(
    baton: Run, tmp_path: Path, llm: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUDGE_KEY", "sk-very-secret")
    found = baton("score", TRACES[0], "-c", config(tmp_path, llm, api_key="${JUDGE_KEY}"))
    assert found.code == 0
    assert found.out
    assert "sk-very-secret" not in found.out + found.err
    (folder,) = (tmp_path / ".baton" / "evaluations").iterdir()
    header = json.loads((folder / "evaluation.json").read_text())
    assert (header["judge"]["model"], header["judge"]["api_key"]) == ("openai:scripted", "***")
    for path in (tmp_path / ".baton").rglob("*"):
        if path.is_file():
            assert b"sk-very-secret" not in path.read_bytes(), path


def test_a_live_evaluation_is_judged_while_it_is_played(
    baton: Run, tmp_path: Path, llm: LlmServer
) -> None:
    (tmp_path / "agent.py").write_text(
        "def desk(message):\n    return {'output': 'refunded ' + message, 'agents': ['desk']}\n"
    )
    (tmp_path / "cases.yaml").write_text("cases:\n- {id: a, input: one}\n- {id: b, input: two}\n")
    args = ("eval", "agent.py:desk", "cases.yaml", "-e", "task_completion")
    refused = baton(*args, "--judge", "openai:scripted")
    assert (refused.code, "OPENAI_API_KEY" in refused.err) == (2, True)
    own = tmp_path / "baton.yaml"
    told = json.dumps(llm.judge())
    own.write_text(
        f"judge: {told}\nproviders: [{{type: python, target: 'agent.py:desk'}}]\n"
        "dataset: cases.yaml\nevaluators: [task_completion]\n"
    )
    guess = baton("eval", "--dry-run")
    assert (guess.code, len(llm.requests)) == (0, 0)
    assert "calls   2" in guess.out
    assert "a guess from the cases, as nothing is played" in guess.out
    assert baton("eval").code == 0
    assert len(llm.requests) == 2


def test_what_a_case_says_of_its_judge_is_checked_before_anybody_is_asked(
    baton: Run, tmp_path: Path, llm: LlmServer
) -> None:
    (tmp_path / "cases.yaml").write_text(
        "cases:\n- {id: a, input: hi, evaluators: {scope_fidelity: {judge: {sample: 3}}}}\n"
    )
    found = baton("score", *TRACES, "-d", "cases.yaml", "-c", config(tmp_path, llm))
    assert (found.code, len(llm.requests)) == (2, 0)
    assert "cases.yaml:2: case `a`: scope_fidelity.judge: a case may set thresholds" in found.err


@pytest.mark.heavy
def test_ctrl_c_keeps_what_was_judged(tmp_path: Path, llm: LlmServer) -> None:
    def stuck(asked: Received) -> Reply:
        return Reply(answer=best(asked), delay=30 if asked.number > 12 else 0)

    llm.script = stuck
    path = config(tmp_path, llm, concurrency=2)
    traces = [str(folder / "session") for folder in sorted(CLAUDE.iterdir())]
    command = [sys.executable, "-m", "baton", "score", *traces, "-c", str(path)]
    started = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    try:
        while len(llm.requests) < 14:
            assert started.poll() is None
            time.sleep(0.01)
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=60)
    finally:
        started.kill()
        started.wait()
    assert (started.returncode, "baton: interrupted" in said) == (130, True)
    assert "Traceback" not in said
    (folder,) = (tmp_path / ".baton" / "evaluations").iterdir()
    header = json.loads((folder / "evaluation.json").read_text())
    assert header["status"] == "interrupted"
    assert sum(header["cases"].values()) >= 2


@pytest.mark.heavy
def test_a_run_that_is_killed_and_run_again_asks_for_no_verdict_twice(
    tmp_path: Path, llm: LlmServer
) -> None:
    def slowly(asked: Received) -> Reply:
        return Reply(answer=best(asked), delay=0.1)

    llm.script = slowly
    path = config(tmp_path, llm, concurrency=2)
    traces = [str(folder / "session") for folder in sorted(CLAUDE.iterdir())]
    command = [sys.executable, "-m", "baton", "score", *traces, "-c", str(path)]
    started = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        while len(llm.requests) < 12:
            assert started.poll() is None
            time.sleep(0.01)
    finally:
        started.kill()
        started.wait()
    in_play = 2
    llm.script = best
    ended = subprocess.run(
        command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode in (0, 1), ended.stderr
    texts = Counter(request.user for request in llm.requests)
    assert sum(count - 1 for count in texts.values()) <= in_play

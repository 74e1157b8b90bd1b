"""`baton issues`: what failed, grouped, and the states that people give."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import ROOT, Baton

BLEED = ROOT / "examples" / "claude" / "scope_bleed"


def test_a_recording_is_scored_and_its_failures_are_listed(baton: Baton) -> None:
    outcome = baton("issues", BLEED)
    assert outcome.code == 0
    assert "Tool outside of the scope: main → validator-agent (tool=Edit)" in outcome.out
    assert "1 issue, 1 failure in 1 conversation" in outcome.out


def test_a_stored_evaluation_is_taken_as_it_was_scored(baton: Baton) -> None:
    baton("score", BLEED)
    newest = baton("issues", "--json")
    (issue,) = [json.loads(line) for line in newest.out.splitlines()]
    assert issue["subtype"] == "tool_outside_scope"
    assert issue["members"][0]["dispatch"] == "dispatch1"


def test_a_muted_issue_is_left_out_until_all_are_asked_for(baton: Baton) -> None:
    key = json.loads(baton("issues", BLEED, "--json").out)["key"]
    assert baton("issues", BLEED, "--mark", f"{key[:4]}=muted", "--why", "known").code == 0
    told = baton("issues", BLEED).out
    assert key not in told
    assert told.endswith("; 1 muted or fixed: --all\n")
    assert "--most" not in told
    assert f"{key}  muted" in baton("issues", BLEED, "--all").out
    assert "muted, known" in baton("issues", BLEED, "--show", key).out


def test_a_wrong_key_or_state_stops_with_what_there_is(baton: Baton) -> None:
    wrong = baton("issues", BLEED, "--show", "zzz")
    assert (wrong.code, "no issue `zzz`" in wrong.err) == (2, True)
    key = json.loads(baton("issues", BLEED, "--json").out)["key"]
    state = baton("issues", BLEED, "--mark", f"{key}=done")
    assert (state.code, "`done` is not a state" in state.err) == (2, True)
    assert baton("issues", BLEED, "--why", "x").code == 2


def test_a_damaged_file_of_states_is_named_with_its_line(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / ".baton").mkdir()
    (tmp_path / ".baton" / "issues.jsonl").write_text('{"key": "a", "state": "odd", "at": 1}\n')
    outcome = baton("issues", BLEED)
    assert outcome.code == 2
    assert "issues.jsonl:1" in outcome.err


def test_without_failures_it_says_so(baton: Baton) -> None:
    outcome = baton("issues", ROOT / "examples/adk/recordings/support_desk/refund.sse")
    assert (outcome.code, "no issue: nothing failed" in outcome.out) == (0, True)


def test_each_play_of_a_case_counts_and_each_recording_only_once(
    baton: Baton, tmp_path: Path
) -> None:
    (tmp_path / "desk.py").write_text(
        "from pathlib import Path\n"
        "def answer(message):\n"
        "    return {'output': 'Done.', 'agents': [Path('who').read_text()]}\n"
    )
    cases = {"id": "a", "input": "Refund it.", "agents": ["billing"]}
    (tmp_path / "cases.json").write_text(json.dumps({"cases": [cases]}))
    for who, folder in ("billing", "passed"), ("weather", "failed"), ("weather", "again"):
        (tmp_path / "who").write_text(who)
        baton("eval", "desk.py:answer", "cases.json", "--out", folder)
    played = [next(tmp_path.glob(f"{each}/*")) for each in ("passed", "failed", "again")]
    found = baton("issues", *played)
    assert "1 issue, 2 failures in 3 conversations" in found.out

    baton("score", BLEED, "--out", "once")
    baton("score", BLEED, "-e", "dispatch_scope", "--out", "twice")
    both = baton("issues", *(next(tmp_path.glob(f"{each}/*")) for each in ("once", "twice")))
    assert "1 issue, 1 failure in 1 conversation" in both.out


def test_a_recording_that_several_evaluations_scored_has_the_failures_of_all(
    baton: Baton, tmp_path: Path
) -> None:
    case = {
        "id": "a",
        "input": "[ticket SHOP-13] Check that src/retry.py compiles. Change nothing.",
        "agents": ["main", "billing"],
        "tools": [{"name": "refund"}],
    }
    (tmp_path / "cases.json").write_text(json.dumps({"cases": [case]}))
    evaluators = ["dispatch_scope"], ["agent_chain"], ["tool_calls", "agent_chain"]
    for number, names in enumerate(evaluators):
        wanted = [word for name in names for word in ("-e", name)]
        cases = ["-d", "cases.json"] if number else []
        assert baton("score", BLEED, *cases, *wanted, "--out", f"e{number}").code == 1
    scored = [next(tmp_path.glob(f"e{number}/*")) for number in range(len(evaluators))]

    def faults(*sources: Path) -> dict[str, int]:
        lines = baton("issues", *sources, "--json").out.splitlines()
        return {issue["fault"]: issue["count"] for issue in map(json.loads, lines)}

    every = {"tool_attempted": 1, "agent_chain": 1, "tool_calls": 1}
    assert faults(*scored) == faults(*reversed(scored)) == every
    shown = baton("issues", *scored).out
    assert "3 issues, 3 failures in 1 conversation" in shown

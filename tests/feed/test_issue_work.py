"""The loop of an issue, from the command line: investigated, proven, promoted, closed, regressed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import ROOT, Baton
from tests.feed.test_investigate import because, conclude, look

from baton.feed.issue_progress import DIMENSIONS
from baton.testing import LlmServer, Received, Reply, llm_server

pytestmark = pytest.mark.heavy  # what plays runs in processes of its own

THINGS = ["a lamp", "two chairs", "the old desk", "my red bicycle", "a broken phone"]
PLACES = ["Rome", "Oslo harbour", "the north pole", "Lima", "a farm near Kyoto", "the moon"]


def _script(received: Received) -> Reply:
    steps = [message for message in received.messages if message.role == "assistant"]
    if not steps:
        return Reply(answer=look("read_run", "m1"))
    entry = because("It hands a refund to billing.", ("m1.s1", "handed to billing"))
    lie = because("It asked a supplier.", ("m1.s1", "asked the supplier first"))
    scores = {name: {"value": 2, "because": entry} for name in DIMENSIONS}
    return Reply(answer=conclude(entry=entry, scores=scores, summary=[entry, lie]))


@pytest.fixture
def llm() -> Iterator[LlmServer]:
    with llm_server(_script) as server:
        yield server


@pytest.fixture
def shop(tmp_path: Path, baton: Baton, llm: LlmServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """A desk that hands refunds to billing, played once; returns the key of the issue."""
    monkeypatch.setenv("OPENAI_API_KEY", "of-tests")
    program = (ROOT / "examples" / "python" / "prompted.py").read_text(encoding="utf-8")
    (tmp_path / "shop.py").write_text(program, encoding="utf-8")
    cases: list[dict[str, Any]] = [
        {"id": f"r{n}", "input": f"Refund {thing}", "dispatches": [{"to": "refunds"}]}
        for n, thing in enumerate(THINGS)
    ]
    cases += [
        {"id": f"p{n}", "input": f"The parcel to {place}", "dispatches": [{"to": "shipping"}]}
        for n, place in enumerate(PLACES)
    ]
    (tmp_path / "cases.json").write_text(json.dumps({"cases": cases}), encoding="utf-8")
    judge = json.dumps({"judge": llm.judge("openai")})
    (tmp_path / "judge.yaml").write_text(judge, encoding="utf-8")
    assert baton("eval", "shop.py:desk", "cases.json", "-e", "dispatch_routing").code == 1
    (issue,) = [json.loads(line) for line in baton("issues", "--json").out.splitlines()]
    assert issue["count"] == len(THINGS)
    return str(issue["key"])


def test_an_issue_is_investigated_its_fix_proven_and_its_cases_close_and_reopen_it(
    baton: Baton, shop: str, tmp_path: Path
) -> None:
    asked = ("--investigate", shop, "-c", "judge.yaml", "--agent", "shop.py:desk")
    dry = baton("issues", *asked, "--dry-run")
    assert dry.code == 0, dry.err
    assert "30" in dry.out
    found = baton("issues", *asked)
    assert found.code == 0, found.err
    assert "“handed to billing” (r" in found.out
    assert "1 statement left out" in found.out
    assert "fix, proposed: supervisor prompt" in found.out
    assert "+Hand refunds to refunds. Hand parcels to shipping." in found.out

    proven = baton("issues", "--prove", shop[:4], "--agent", "shop.py:desk", "--repeat", "2")
    assert proven.code == 0, proven.err
    assert "fixed 5 of 5 [0.57, 1.00], broke 0 of 6 [0.00, 0.39], each 2 times" in proven.out
    assert "fix, proven" in proven.out

    made = baton("issues", "--promote", shop, "-o", "set", "--count", "3", "--passes", "2")
    assert made.code == 0, made.err
    assert "the work goes to refunds; dispatch_routing passes" in made.out
    files = sorted(path.name for path in Path("set").iterdir())
    assert sum(name.startswith("r") for name in files) == 3
    assert sum(name.startswith("p") for name in files) == 6

    def played(program: str) -> tuple[int, str]:
        code = baton("eval", f"{program}:desk", "set").code
        listed = [json.loads(line) for line in baton("issues", "--all", "--json").out.splitlines()]
        return code, next(each.get("state", "new") for each in listed if each["key"] == shop)

    assert played("shop.py") == (1, "new")
    broken = (tmp_path / "shop.py").read_text(encoding="utf-8")
    fixed = broken.replace("refunds to billing", "refunds to refunds")
    (tmp_path / "fixed.py").write_text(fixed, "utf-8")
    assert [played("fixed.py"), played("fixed.py")] == [(0, "new"), (0, "fixed")]
    # A trial with another text says nothing of the agent as it is.
    Path("old.md").write_text("Hand refunds to billing. Hand parcels to shipping.", "utf-8")
    assert baton("eval", "shop.py:desk", "set", "--with", "agent:desk=old.md").code == 1
    assert played("fixed.py") == (0, "fixed")
    assert played("shop.py") == (1, "regressed")


def test_what_cannot_be_done_is_reported_with_what_to_do(baton: Baton, shop: str) -> None:
    def refused(*words: str) -> str:
        ended = baton("issues", *words)
        assert ended.code == 2, ended.out
        return ended.err

    assert "investigate it first" in refused("--prove", shop, "--agent", "shop.py:desk")
    assert "--agent" in refused("--prove", shop)
    assert "--judge" in refused("--investigate", shop)
    assert "-o cases/" in refused("--promote", shop)
    assert "give one of them" in refused("--prove", shop, "--show", shop)
    assert "--steps can only be used with --investigate" in refused("--prove", shop, "--steps", "3")
    assert "no issue `zzz`" in refused("--investigate", "zzz", "-c", "judge.yaml")
    Path("new.md").write_text("Hand refunds to billing. Hand parcels to billing.", "utf-8")
    change = ("--prove", shop, "--agent", "shop.py:desk", "--with", "agent:desk=new.md")
    worse = baton("issues", *change, "--repeat", "1")
    assert worse.code == 1
    assert "fix, refuted by a person" in worse.out
    assert "broke 6 of 6" in worse.out


DROPS = """
import baton
from baton import prompts

DESK = "Use few words."


@baton.agent("refunds")
def refunds(task):
    return f"noted: {task}"


@baton.agent("desk")
def desk(message):
    few = " ".join(word for word in message.split() if not word.isdigit())
    return refunds(few if "few" in prompts.get("agent:desk", DESK) else message)
"""


def test_blame_plays_the_step_again_and_refuses_an_agent_that_cannot_be_played(
    baton: Baton, tmp_path: Path
) -> None:
    (tmp_path / "drops.py").write_text(DROPS, encoding="utf-8")
    (tmp_path / "other.py").write_text(DROPS.replace('agent("desk")', 'agent("front")'), "utf-8")
    (tmp_path / "new.md").write_text("Use all words.", encoding="utf-8")
    cases = {"cases": [{"id": "r1", "input": "Refund order 4711 of Ana: the lamp is broken."}]}
    (tmp_path / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    assert baton("eval", "drops.py:desk", "cases.json", "-e", "context_carried").code == 1

    plain = baton("blame")
    assert "1. desk, step" in plain.out
    assert "played again" not in plain.out
    change = ("--with", "agent:desk=new.md")
    again = baton("blame", "--replay", "drops.py:desk", *change, "--repeat", "2")
    assert again.code == 0, again.err
    assert "played again 2 times (decision): it went wrong 2 times" in again.out
    assert "with the change 0 times, it repeated the recording 2 times" in again.out

    refused = baton("blame", "--replay", "other.py:desk")
    assert refused.code == 2
    assert "`desk` cannot be played from step" in refused.err
    assert "--with can only be used with --replay" in baton("blame", *change).err

"""Functions of the user's own, before a case and after a turn."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from tests.providers.conftest import AdkServer, Surroundings, case_of, make_provider, said, spec

from baton.model import Case, InputError, ProviderError, Trace

HOOKS = """
import json
from pathlib import Path

SEEN = Path(__file__).with_name("seen.jsonl")

async def more_state(case):
    return {"plan": "gold", "case": case.id}

def keep(case, turn):
    with SEEN.open("a") as file:
        print(json.dumps([case.id, turn.output.text, turn.status]), file=file)

def refuse_second(case, turn):
    if SEEN.exists():
        raise ValueError("enough")
    keep(case, turn)

def text(case):
    return "no dict"
"""


def with_hooks(adk: AdkServer, folder: Path, case: Case, **hooks: str) -> Trace:
    (folder / "hooks.py").write_text(HOOKS)
    named = {kind: f"hooks.py:{name}" for kind, name in hooks.items()}

    async def run() -> Trace:
        async with make_provider(spec(adk, hooks=named), Surroundings(folder)) as provider:
            return await provider(case)

    return asyncio.run(run())


def test_a_hook_adds_to_the_state_before_a_case(adk: AdkServer, tmp_path: Path) -> None:
    case = case_of(state={"plan": "none", "lang": "de"})
    with_hooks(adk, tmp_path, case, before_case="more_state")
    assert adk.asked("create")[0].body == {"plan": "gold", "lang": "de", "case": "hello"}
    assert case.state == {"plan": "none", "lang": "de"}


def test_a_hook_that_returns_no_state_is_an_error(adk: AdkServer, tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="before_case returned str, not a dict of state"):
        with_hooks(adk, tmp_path, case_of(), before_case="text")
    assert not adk.asked("create")


def test_a_hook_sees_every_turn(adk: AdkServer, tmp_path: Path) -> None:
    with_hooks(adk, tmp_path, case_of("one", "two"), after_turn="keep")
    seen = [json.loads(line) for line in (tmp_path / "seen.jsonl").read_text().splitlines()]
    assert seen == [
        ["hello", "You said: one", "completed"],
        ["hello", "You said: two", "completed"],
    ]


def test_a_hook_that_fails_is_an_error_with_what_was_seen(adk: AdkServer, tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="after_turn raised ValueError: enough") as raised:
        with_hooks(adk, tmp_path, case_of("one", "two", "three"), after_turn="refuse_second")
    assert raised.value.trace is not None
    assert said(raised.value.trace) == ["You said: one", "You said: two"]
    assert len(adk.asked("run_sse")) == 2
    assert not adk.sessions


def test_a_hook_that_is_missing_stops_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "hooks.py").write_text(HOOKS)
    named = spec("http://127.0.0.1:1", hooks={"after_turn": "hooks.py:keeep"})
    with pytest.raises(InputError, match="did you mean `keep`"):
        make_provider(named, Surroundings(tmp_path))

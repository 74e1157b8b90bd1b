"""Cases that ask for sessions or restarts which a provider cannot give stop before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton

import baton as library
from baton.model import Case, InputError
from baton.testing import build
from baton.testing.build import expect

TALK = {
    "type": "http",
    "url": "http://127.0.0.1:9/chat",
    "request": {"q": "{input}"},
    "answer": "$.reply",
}
SERVER = {"type": "adk_http", "endpoint_url": "http://127.0.0.1:9"}
FUNCTIONS = """
def stateless(message):
    return message


def in_session(message, session):
    session["said"] = session.get("said", "") + message
    return session["said"]


def whole(case):
    return f"{case.id}, restarts: {case.turns[0].restart}"
"""


def resumed(*turns: dict[str, Any], name: str = "resume") -> Case:
    return build.case(
        *(expect(**{"input": "Hi", "agents": ["mock"], **one}) for one in turns), id=name
    )


def refusal(spec: dict[str, Any], *turns: dict[str, Any]) -> str:
    with pytest.raises(InputError) as raised:
        library.evaluate([resumed({}, name="plain"), resumed(*turns)], spec)
    (problem,) = raised.value.problems
    assert problem.path == "case `resume`"
    return problem.message


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "functions.py").write_text(FUNCTIONS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return "functions.py"


def test_a_restart_needs_a_command() -> None:
    assert refusal(SERVER, {}, {"restart": True}) == (
        "a turn restarts the agents' server: state how, as `restart: COMMAND` of the provider"
    )


def test_a_restart_needs_a_server(functions: str) -> None:
    spec = {"type": "python", "target": f"{functions}:in_session"}
    assert refusal(spec, {"restart": True}) == (
        "a turn restarts the agents' server: `python` has no server to restart; `adk_http` and "
        "`http` have one"
    )


@pytest.mark.parametrize("kind", [{"type": "mock"}, {"type": "replay", "paths": ["."]}])
def test_a_command_without_a_server_is_refused(kind: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="has no server to restart"):
        library.evaluate([resumed({})], {**kind, "restart": "true"})


def test_a_conversation_needs_a_request_that_carries_it_on() -> None:
    assert refusal(TALK, {}, {}).startswith(
        "a turn continues a conversation: the request does not contain it: write `{session_id}`"
    )


def test_a_new_session_needs_a_function_that_is_told_of_sessions(functions: str) -> None:
    spec = {"type": "python", "target": f"{functions}:stateless"}
    assert refusal(spec, {}, {"new_session": True}) == (
        "a turn opens a new session: the function has no parameter `session`, so it cannot "
        "keep sessions apart"
    )


def test_a_function_with_a_session_gets_a_new_one(functions: str) -> None:
    spec = {"type": "python", "target": f"{functions}:in_session"}
    turns: list[dict[str, Any]] = [
        {"agents": None},
        {"agents": None, "response_contains": ["HiHi"]},
        {"agents": None, "new_session": True, "response_not_contains": ["HiHi"]},
    ]
    (result,) = library.evaluate([resumed(*turns)], spec)
    assert (result.status, result.error) == ("passed", None)


def test_a_function_of_whole_cases_sees_to_restarts_itself(functions: str) -> None:
    spec = {"type": "python", "target": f"{functions}:whole"}
    turn = {"agents": None, "restart": True, "response_contains": ["restarts: True"]}
    (result,) = library.evaluate([resumed(turn)], spec)
    assert (result.status, result.error) == ("passed", None)


def test_canned_answers_need_nothing() -> None:
    turns = resumed({}, {"restart": True}, {"new_session": True})
    (result,) = library.evaluate([turns], {"type": "mock"})
    assert (result.status, result.error) == ("passed", None)


def test_the_command_line_names_the_case_and_its_line(baton: Baton, tmp_path: Path) -> None:
    steps = [{"input": "Hi"}, {"input": "And?", "restart": True}]
    cases = [{"test_case": "a", "steps": steps[:1]}, {"test_case": "resume", "steps": steps}]
    (tmp_path / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)), encoding="utf-8")
    outcome = baton("eval", "http://127.0.0.1:9", "cases.jsonl")
    assert outcome.code == 2
    assert (
        "cases.jsonl:2: case `resume`: a turn restarts the agents' server: state how, as "
        "`restart: COMMAND` of the provider"
    ) in outcome.err


def test_a_recording_of_one_session_of_several_says_so(baton: Baton, tmp_path: Path) -> None:
    steps = [
        {"input": "Qualify", "expected_response_contains": ["ok"]},
        {"input": "Who?", "new_session": True, "expected_response_contains": ["nobody"]},
    ]
    (tmp_path / "cases.json").write_text(json.dumps({"test_case": "two", "steps": steps}))
    traces = [talk("first", "Qualify", "ok"), talk("second", "Who?", "nobody")]
    (tmp_path / "traces.jsonl").write_text("\n".join(map(json.dumps, traces)))
    outcome = baton("score", "traces.jsonl", "--dataset", "cases.json")
    assert outcome.code == 3
    assert (
        "1 of 2 planned turns were played; turn 2 opens a new session, which is not in this trace"
    ) in outcome.out
    assert (
        "it holds a later session of `two`, and a case is scored from one trace that has all its "
        "turns"
    ) in outcome.out


def test_a_recording_of_all_sessions_is_scored(baton: Baton, tmp_path: Path) -> None:
    steps = [
        {"input": "Qualify", "expected_response_contains": ["ok"]},
        {
            "input": "Who?",
            "new_session": True,
            "restart": True,
            "expected_response_not_contains": ["ok"],
        },
    ]
    (tmp_path / "cases.json").write_text(json.dumps({"test_case": "two", "steps": steps}))
    whole = talk("two", "Qualify", "ok", "Who?", "nobody")
    (tmp_path / "trace.json").write_text(json.dumps(whole))
    assert baton("score", "trace.json", "--dataset", "cases.json").code == 0


def talk(name: str, *said: str) -> dict[str, Any]:
    pairs = list(zip(said[::2], said[1::2], strict=True))
    turns = [
        {
            "id": f"turn{number}",
            "input": {"text": message},
            "output": {"text": answer},
            "runs": [{"id": f"run{number}", "agent": "desk", "output": {"text": answer}}],
        }
        for number, (message, answer) in enumerate(pairs)
    ]
    return {"schema_version": 1, "id": name, "source": {"format": "test"}, "turns": turns}

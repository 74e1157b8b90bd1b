"""`interactions` and `structured_output` on runs that were really recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.model import Content, ExpectedVisit, Said, Score, Trace
from baton.testing import verdict
from baton.testing.build import case

OTEL = Path(__file__).parent.parent / "data" / "otel"
HI = Content(text="hi")
PING_PONG = [
    ("clerk", [], "Find maps of the harbour"),
    ("archivist", ["clerk"], "Found 3 maps"),
    ("clerk", ["archivist"], "Which of the three is not damaged?"),
    ("archivist", ["clerk"], "Maps 1 and 3 are fine"),
    ("clerk", ["archivist"], "can be lent out"),
]


def recorded(*path: str) -> Trace:
    (trace,) = baton.load_traces(OTEL.joinpath(*path))
    return trace


def swarm(trace: Trace, visits: list[tuple[str, list[str], str]], **options: Any) -> Score:
    stated = [ExpectedVisit(agent=a, after=after, says=[says]) for a, after, says in visits]
    return verdict("interactions", trace, case(interactions=stated), **options)


@pytest.mark.parametrize("name", ["swarm_ping_pong", "swarm_ping_pong_latest"])
def test_all_visits_of_a_swarm_are_found_though_nodes_are_visited_again(name: str) -> None:
    trace = recorded("strands", f"{name}.json")
    found = swarm(trace, PING_PONG, allow_extra=False)
    assert (found.status, found.value) == ("passed", 1)
    where = [visit["said"][0]["in"] for visit in found.details["turns"][0]["visits"]]
    assert where == ["prompt", "prompt", "prompt", "prompt", "output"]


def test_a_swarm_is_not_taken_for_another_one() -> None:
    trace = recorded("strands", "swarm_ping_pong.json")
    swapped = [PING_PONG[0], PING_PONG[3], PING_PONG[2], PING_PONG[1], PING_PONG[4]]
    assert swarm(trace, swapped).value == pytest.approx(3 / 5)
    wrong = [(agent, ["archivist"], says) for agent, _, says in PING_PONG]
    assert swarm(trace, wrong).value == pytest.approx(2 / 5)
    assert swarm(trace, PING_PONG[:3], allow_extra=False).value == 0


def test_without_content_the_order_is_known_and_the_messages_are_not() -> None:
    trace = recorded("strands", "swarm_ping_pong_nocontent.json")
    assert swarm(trace, PING_PONG).status == "skipped"
    assert swarm(trace, PING_PONG, match="ignore").value == 1


def fields(trace: Trace, **stated: Any) -> Score:
    return verdict("structured_output", trace, case(structured=stated))


@pytest.mark.parametrize("name", ["structured_output", "structured_output_v0_4"])
def test_structured_output_of_pydantic_ai_is_read_from_its_spans(name: str) -> None:
    trace = recorded("pydantic-ai", f"{name}.json")
    assert fields(trace, verdict="guilty", days=0, appeal=None).value == 1
    assert fields(trace, verdict="guilty", days=False).value == 0.5


def test_a_text_of_a_swarm_does_not_tell_that_there_was_no_structured_output() -> None:
    found = fields(recorded("strands", "swarm_ping_pong.json"), maps=2)
    assert (found.status, found.value) == ("skipped", None)


def test_an_eval_set_whose_agents_speak_again_passes_with_itself(tmp_path: Path) -> None:
    said = [("desk", "Let me see"), ("desk", "One more"), ("rates", "It is 3"), ("desk", "So, 3")]
    responses = [[agent, [{"text": text}]] for agent, text in said]
    turn = {
        "user_content": {"parts": [{"text": "hi"}]},
        "final_response": {"parts": [{"text": "bye"}]},
        "intermediate_data": {"tool_uses": [], "intermediate_responses": responses},
    }
    path = tmp_path / "set.evalset.json"
    cases = [{"eval_id": "c", "conversation": [turn]}]
    path.write_text(json.dumps({"eval_set_id": "s", "eval_cases": cases}))
    (trace,) = baton.load_traces(path)
    runs = trace.turns[0].runs
    texts = [[s.content.text for s in run.steps if isinstance(s, Said)] for run in runs]
    assert texts == [["Let me see", "One more"], ["It is 3"], ["So, 3"]]
    names = ["interactions", "intermediate_responses"]
    (result,) = baton.score(path, path, evaluators=names)
    assert [score.status for score in result.scores] == ["passed", "passed"]

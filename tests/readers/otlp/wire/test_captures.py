"""Recordings of real frameworks."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.readers.otlp.wire.conftest import read_conversations

from baton.readers.otlp.wire.sniff import is_otlp

CAPTURES = Path(__file__).parents[3] / "data" / "otel"
FILES = sorted(file for file in CAPTURES.rglob("*.json") if file.name != "truth.json")


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_capture_loads_without_loss(file: Path) -> None:
    assert is_otlp(file)
    lost: list[object] = []
    found = list(read_conversations(file, on_lost=lost.append, on_note=lost.append))
    assert found
    assert lost == []


def test_a_team_without_a_root_is_one_conversation_of_many_linked_traces() -> None:
    found = list(read_conversations(CAPTURES / "autogen" / "swarm.json"))
    team = max(found, key=lambda conversation: len(conversation.spans))
    assert len({span.trace_id for span in team.spans}) == 24
    assert len(team.turns) == 1
    assert [len(c.spans) for c in found if c is not team] == [1, 1]  # the agents being made


def test_sub_agents_with_ids_of_their_own_stay_in_the_conversation() -> None:
    (found,) = read_conversations(CAPTURES / "pydantic-ai" / "delegation.json")
    ids = {span.attributes.get("gen_ai.conversation.id") for span in found.spans} - {None}
    assert len(ids) == 3
    assert found.id == found.spans[0].attributes["gen_ai.conversation.id"]

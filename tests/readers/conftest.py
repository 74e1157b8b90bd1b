"""What readers' tests share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.model import AgentCard, Trace, integrity_problems

Event = dict[str, Any]


class Adk:
    """Writes events of ADK by hand, and reads them as a stored answer of `/run`."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "run.json"

    def event(self, author: str, *parts: str | Event, **fields: Any) -> Event:
        """Write an event; a plain text is a text part."""
        spelt = [{"text": part} if isinstance(part, str) else part for part in parts]
        content = {"parts": spelt, "role": "user" if author == "user" else "model"}
        return {"invocationId": "i1", "author": author, "content": content, **fields}

    def call(self, name: str, id_: str | None = None, **args: Any) -> Event:
        return {"functionCall": {"id": id_, "name": name, "args": args}}

    def answer(self, name: str, id_: str | None = None, response: Any = None) -> Event:
        return {"functionResponse": {"id": id_, "name": name, "response": response}}

    def hand_over(self, sender: str, target: str, id_: str = "t1", **fields: Any) -> list[Event]:
        """Write the two events that tell of one transfer."""
        asked = self.call("transfer_to_agent", id_, agent_name=target)
        done = self.answer("transfer_to_agent", id_, {"result": None})
        actions = {"transferToAgent": target}
        return [
            self.event(sender, asked, **fields),
            self.event(sender, done, actions=actions, **fields),
        ]

    def read(self, events: list[Event], agents: tuple[str, ...] = ()) -> Trace:
        """Read events; every trace has to be consistent."""
        self._file.write_text(json.dumps(events), encoding="utf-8")
        cards = {name: AgentCard() for name in agents}
        (trace,) = baton.load_traces(self._file, agents=cards)
        assert integrity_problems(trace) == []
        return trace


@pytest.fixture
def adk(tmp_path: Path) -> Adk:
    """ADK events, written and read."""
    return Adk(tmp_path)

"""Trials of what agents say that they did, and of dispatches that they announce.

A folder holds two lists: `claims.yaml` has calls with answers that these are behind, and others;
`announcements.yaml` has agents, and what one says at the end of a turn in which nothing more is
handed on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from baton.model import AgentCard, Content, ToolCall, Trace
from baton.testing import Seeded
from baton.testing.build import call, delegate, run, trace

from .recordings import HERE, entries
from .rewordings import Reworded

FOLDERS: dict[str, Path] = {
    "claims": HERE / "claims/tuned",
    "claims unread": HERE / "claims/unread",
    "claims later": HERE / "claims/later",
    "claims trades": HERE / "claims/trades",
    "claims blind": HERE / "claims/blind",
    "claims crafts": HERE / "claims/crafts",
    "claims last": HERE / "claims/last",
}
"""The folders of lists, by what tables call them."""

_HALF_OF = {FOLDERS["claims"]: "tune"}
_CALL = re.compile(r"([\w.:-]+)\((.*?)\) => (.*)", re.DOTALL)


def claims(folder: Path) -> Iterator[Reworded]:
    """Let an agent, in every second text one that was delegated to, end with each answer."""
    for entry in entries(folder / "claims.yaml"):
        for name, kind in (("backed", None), ("unbacked", "unsupported_claim")):
            for number, text in enumerate(entry[name]):
                calls = [_call(each) for each in entry["calls"]]
                worker = run("worker", *calls, input=entry["asked"], output=text, model="a")
                if number % 2:
                    asked = delegate("worker", entry["asked"], result=text)
                    made = trace(run("desk", asked, output="That is all."), worker, entry["asked"])
                else:
                    made = trace(worker, entry["asked"])
                    made.turns[0].output = Content(text=text)
                yield _reworded(folder, made, kind, [made.turns[0].runs[-1].id], text)


def announcements(folder: Path) -> Iterator[Reworded]:
    """Let an agent that knows some others, and handed work to some of them, end with each text."""
    for entry in entries(folder / "announcements.yaml"):
        for name, kind in (("good", None), ("broken", "announced_not_made")):
            for text in entry[name]:
                steps = [delegate(agent, "Do it.", result="Done.") for agent in entry["made"]]
                desk = run("desk", *steps, output=text)
                others = [run(agent, output="Done.") for agent in entry["made"]]
                made = trace(desk, *others, "Please help me.")
                made.agents = {agent: AgentCard() for agent in ("desk", *entry["agents"])}
                made.turns[0].output = Content(text=text)
                yield _reworded(folder, made, kind, [made.turns[0].runs[0].id], text)


def _call(line: str) -> ToolCall:
    match = _CALL.fullmatch(line)
    assert match is not None, line  # noqa: S101 - a slip in the list
    name, arguments, result = match.groups()
    if result.startswith("!"):
        return call(name, {"input": arguments}, None, status="failed", error=result[1:])
    return call(name, {"input": arguments}, result)


def _reworded(
    folder: Path, made: Trace, kind: str | None, subject: list[str], text: str
) -> Reworded:
    seeded = None if kind is None else Seeded(kind=kind, subject=subject, says="by the list")
    return Reworded(_HALF_OF.get(folder, "report"), made, seeded, text)

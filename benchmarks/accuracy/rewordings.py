"""Trials of lists of reworded texts: one text in several other ways, and its broken twins.

A folder holds up to four lists, as ``rewordings/`` does; texts of other people are measured the
same way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from baton.model import Content, Dispatch, ToolCall, Trace
from baton.testing import Seeded
from baton.testing.build import call, delegate, run, trace

from .recordings import HALVES, HERE, Good, entries
from .texts import staged

SOURCE = "reworded"
OWN = HERE / "rewordings"
FOLDERS: dict[str, Path] = {
    SOURCE: OWN,
    "another author": OWN / "another_author",
    "written later": OWN / "later",
    "held out": OWN / "held_out",
    "fresh": OWN / "fresh",
    "kept apart": OWN / "kept_apart",
    "varied": OWN / "varied",
    "unread": OWN / "unread",
    "trades": OWN / "trades",
    "blind": OWN / "blind",
    "second blind": OWN / "second_blind",
    "third blind": OWN / "third_blind",
    "fourth blind": OWN / "fourth_blind",
    "callers": OWN / "callers",
    "in other words": OWN / "in_other_words",
    "callers blind": OWN / "callers_blind",
    "delegations": OWN / "delegations",
    "fifth blind": OWN / "fifth_blind",
    "sixth blind": OWN / "sixth_blind",
    "receivers": OWN / "receivers",
    "healthy": OWN / "healthy",
    "healthy later": OWN / "healthy_later",
    "healthy last": OWN / "healthy_last",
}
"""The folders of lists, by what tables call them."""

# All texts of these folders are in one half; of other folders every second entry is in the other,
# if it does not say itself where it belongs.
_HALF_OF = {
    FOLDERS["another author"]: "tune",
    FOLDERS["held out"]: "report",
    FOLDERS["fresh"]: "tune",
    FOLDERS["kept apart"]: "report",
    FOLDERS["varied"]: "tune",
    FOLDERS["unread"]: "report",
    FOLDERS["trades"]: "report",
    FOLDERS["blind"]: "report",
    FOLDERS["second blind"]: "report",
    FOLDERS["third blind"]: "report",
    FOLDERS["fourth blind"]: "report",
    FOLDERS["callers"]: "tune",
    FOLDERS["in other words"]: "tune",
    FOLDERS["callers blind"]: "report",
    FOLDERS["delegations"]: "tune",
    FOLDERS["fifth blind"]: "report",
    FOLDERS["sixth blind"]: "report",
    FOLDERS["receivers"]: "tune",
    FOLDERS["healthy"]: "report",
    FOLDERS["healthy later"]: "report",
    FOLDERS["healthy last"]: "report",
}
_CALL = re.compile(r"([\w.:-]+)\((.*)\)", re.DOTALL)
# `; ` may stand within a call, too: the next one begins with a name and a bracket.
_NEXT_CALL = re.compile(r";\s+(?=[\w.:-]+\()")


class Reworded(NamedTuple):
    """A trace of the lists, the half its text belongs to, what is wrong with it, and the text."""

    half: str
    trace: Trace
    seeded: Seeded | None
    text: str


def prompts(folder: Path = OWN) -> Iterator[Reworded]:
    """Play each request with prompts that carry it, and with prompts that drop some of it.

    The receiver answers "Yes.", or what a list gives in addition to the prompt.
    """
    random = Random("reworded prompts")
    for half, entry in _entries(folder, "context_carried"):
        for name, kind in (("carries", None), ("drops", "dropped_constraint")):
            for each in entry[name]:
                told = {"prompt": each, "answer": "Yes."} if isinstance(each, str) else each
                prompt, answer = told["prompt"], told["answer"]
                good = staged(random, entry["request"], prompt, answer, "Yes.")
                text = prompt if isinstance(each, str) else f"{prompt} => {answer}"
                yield _reworded(half, good.trace, kind, text)


def results(folder: Path = OWN, among: Sequence[Good] | None = None) -> Iterator[Reworded]:
    """Play each result with callers that used it, and with callers that did not.

    ``among`` are the stages that are played on; all there are when left out.
    """
    yield from _answered(folder, "result_used", "uses", "ignores", "ignored_result", among)


def contradictions(folder: Path = OWN) -> Iterator[Reworded]:
    """Play each result with callers that repeat it, and with callers that state another value."""
    yield from _answered(folder, "result_contradicted", "agrees", "contradicts", "changed_value")


def repetitions(folder: Path = OWN) -> Iterator[Reworded]:
    """Let callers make the receiver's call once more and answer from that; or make another one."""
    for half, entry in _entries(folder, "result_used"):
        asked, result = entry["asked"], entry["result"]
        for number, answer in enumerate(entry["uses"]):
            query = {"query": asked}
            worker = run("worker", call("look_up", query, result), input=asked, output=result)
            again = call("look_up", query, result)
            other = call("save_note", {"subject": f"note {number}"}, "saved")
            for step, kind in ((other, None), (again, "repeated_work")):
                caller = run("main", delegate("worker", asked, result=result), step, answer)
                made = _with_ends(trace(caller, worker), asked, answer)
                yield _reworded(half, made, kind, f"{step.name}(...), {answer}")


def duplicates(folder: Path = OWN) -> Iterator[Reworded]:
    """Set a second agent to work: on the same thing, or on a thing of its own."""
    for half, entry in _entries(folder, "duplicate_work"):
        for name, kind in (("same", "duplicate_work"), ("other", None)):
            for line in entry[name]:
                yield _reworded(half, _two_agents(entry["first"], line), kind, line)


def _answered(
    folder: Path,
    name: str,
    good: str,
    bad: str,
    fault: str,
    among: Sequence[Good] | None = None,
) -> Iterator[Reworded]:
    random = Random(f"reworded {name}")
    for half, entry in _entries(folder, name):
        for answers, kind in ((entry[good], None), (entry[bad], fault)):
            for answer in answers:
                asked, result = entry["asked"], entry["result"]
                made = staged(random, asked, asked, result, answer, among)
                yield _reworded(half, made.trace, kind, answer)


def _entries(folder: Path, name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    path = folder / f"{name}.yaml"
    # Some folders hold texts for one evaluator only.
    listed = entries(path) if path.exists() else []
    for number, entry in enumerate(listed):
        yield _HALF_OF.get(folder, entry.get("half", HALVES[number % 2])), entry


def _two_agents(first: str, second: str) -> Trace:
    asked, answer, calls = _work(first, "a")
    asked_next, answer_next, calls_next = _work(second, "b")
    caller = run(
        "main",
        delegate("helper_one", asked, result=answer),
        delegate("helper_two", asked_next, result=answer_next),
        "That is all that was found out.",
    )
    one = run("helper_one", *calls, input=asked, output=answer)
    two = run("helper_two", *calls_next, input=asked_next, output=answer_next)
    return _with_ends(trace(caller, one, two), "Do what is on my list.", "All of it is done.")


def _work(line: str, mark: str) -> tuple[str, str, list[ToolCall]]:
    """Read ``asked => answer | call(a, b); call(c)``; equal calls have equal results."""
    said, _, made = line.partition(" | ")
    asked, _, answer = said.partition(" => ")
    calls = []
    for number, each in enumerate(filter(None, _NEXT_CALL.split(made)), 1):
        match = _CALL.fullmatch(each)
        assert match is not None, each  # noqa: S101 - a slip in the list
        arguments = {f"p{i}": part for i, part in enumerate(match[2].split(", "))}
        result = f"reply to {each}"
        calls.append(call(match[1], arguments, result, id=f"call-{mark}{number}"))
    return asked, answer, calls


def _with_ends(made: Trace, asked: str, answer: str) -> Trace:
    (turn,) = made.turns
    turn.input = turn.runs[0].input = Content(text=asked)
    turn.output = turn.runs[0].output = Content(text=answer)
    return made


def _reworded(half: str, made: Trace, kind: str | None, text: str) -> Reworded:
    dispatches: list[Dispatch] = [d for turn in made.turns for d in turn.dispatches]
    subject = [dispatches[-1].id]
    seeded = None if kind is None else Seeded(kind=kind, subject=subject, says="by the list")
    return Reworded(half, made, seeded, text)

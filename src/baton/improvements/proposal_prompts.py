"""The material and the questions for a model that proposes texts.

It sees only the part of a play that concerns the component: for an agent's instructions, the
dispatches to and from that agent and what its runs did; for a description, which agents received
work; for a tool's text, its calls. The findings, failed scores, judges' reasons and people's labels
are included. All of this is untrusted text: it is fenced as data, and its length is limited.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from baton.formats.document import Document, read_bytes
from baton.judges.fenced_prompts import fenced
from baton.judges.shorten_texts import clip
from baton.model import Case, CaseResult, HandedOff, JudgeRequest, Score, ToolCall, Trace
from baton.model.score import rounded
from baton.model.step_lines import Shown, places_of, shown_steps

Shows = Literal["text", "new", "moments", "history", "notes"]
_STEP = 400
"""Maximum characters of a step: its start and end show what was asked and answered."""
_STEPS = 12
"""Maximum steps of a play: if more concern the component, the first and the last ones."""
# A case with a score for each of thirty dispatches would leave no room for its steps.
_VERDICTS = 6
_REASON = 500
"""Maximum characters of a reason, an error or a note: six verdicts take 3,000 of the 4,000 of a
play, and leave the rest to its steps."""
_MOMENT = 4_000
"""Maximum characters of a play."""
MOMENTS = 8
"""Maximum plays in one request to a model: with 4,000 characters each, about 8,000 tokens."""
HISTORY = 20
"""Maximum texts of the history: the best and the worst."""


class Question(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question of ``reflection.yaml``: its material, and whether the answer is a list."""

    shows: list[Shows]
    task: str
    answer: Literal["text", "list"] = "text"


class _Words(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: str
    rules: str
    questions: dict[str, Question]


@cache
def _words() -> _Words:
    file = Path(__file__).with_name("reflection.yaml")
    document = Document(str(file), read_bytes(file), "yaml")
    return document.convert(document.value(), _Words)


def question(name: str) -> Question:
    """Return a question by its name."""
    return _words().questions[name]


class Material(NamedTuple):
    """The material for a question.

    Args:
        text: the text to improve.
        new: the text that was just written.
        moments: descriptions of plays, by :func:`described`.
        history: the texts that were tried, with their scores.
        notes: the answer to an earlier question.
    """

    text: str
    new: str = ""
    moments: Sequence[str] = ()
    history: Sequence[tuple[str, float]] = ()
    notes: Sequence[str] = ()


def request(name: str, component: str, most_words: int, material: Material) -> JudgeRequest:
    """Return a question as a request to a model.

    Args:
        name: the name of the question.
        component: the component to change, as in ``agent:desk``.
        most_words: the maximum number of words of the new text.
        material: the available material.
    """
    asked = question(name)
    words = _words()
    kind, _, _ = component.partition(":")
    what, subject = _WHAT[kind]
    rules = words.rules.replace("{what}", what).replace("{words}", str(most_words)).strip()
    task = asked.task.replace("{subject}", subject).strip()
    return JudgeRequest(
        rubric=f"improve {name}",
        version=words.version,
        instructions=f"{task}\n\n{rules}",
        content=fenced(_blocks(asked.shows, material)),
        schema=_SCHEMAS[asked.answer],
    )


_WHAT = {
    "agent": ("the instructions of an AI agent", "the agent"),
    "description": ("what other agents read of an agent when they choose whom to ask", "the agent"),
    "tool": ("what AI agents read of a tool", "an agent that uses the tool"),
    "rubric": ("the question that a judge of AI agents is asked", "the judge"),
    "examples": ("a choice of examples for an AI agent", "the agent"),
}


def _schema(name: str, kind: Mapping[str, Any]) -> dict[str, Any]:
    # The first field is the model's thinking before it answers.
    properties = {"thinking": {"type": "string"}, name: dict(kind)}
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }


_SCHEMAS = {
    "text": _schema("text", {"type": "string"}),
    "list": _schema("list", {"type": "array", "items": {"type": "string"}}),
}


def _blocks(shows: Sequence[Shows], material: Material) -> Iterator[tuple[str, str]]:
    if "text" in shows:
        yield "The text as it is", material.text
    if "new" in shows:
        yield "The new text", material.new
    if "notes" in shows:
        yield "Notes", "\n".join(f"- {clip(each, _REASON).text}" for each in material.notes)
    if "moments" in shows:
        for number, each in enumerate(material.moments[:MOMENTS], 1):
            yield f"Moment {number}", each
    if "history" in shows:
        # The best ones last: a model goes by what it read last ("Large Language Models as
        # Optimizers", section 4.2).
        # Of two texts with the same score, the shorter one is better.
        ranked = sorted(material.history, key=lambda tried: (tried[1], -len(tried[0])))
        kept = ranked if len(ranked) <= HISTORY else [*ranked[: HISTORY - 12], *ranked[-12:]]
        for number, (text, score) in enumerate(kept, 1):
            yield f"Text {number}, score {rounded(score)}", text


def described(case: Case, result: CaseResult, component: str) -> str:
    """Describe a play for a component, with its findings.

    The description is empty if the component had no part in the play.

    Args:
        case: the played case.
        result: its result, with its trace.
        component: its name, as in ``agent:desk``.
    """
    lines = [f"{result.status}: {clip(_asked(case), _STEP, ' ').text}"]
    trace = result.trace
    if result.error is not None:
        lines.append(f"it broke: {clip(result.error, _REASON, ' ').text}")
    if trace is not None:
        steps = [f"{one.agent} {_cut(one.text)}" for one in _concerned(trace, component)]
        if not steps and result.error is None:
            return ""
        if len(steps) > _STEPS:
            left = len(steps) - _STEPS
            half = _STEPS // 2
            steps = [*steps[:half], f"... {left} more steps ...", *steps[-half:]]
        lines += steps
    verdicts = [score for score in result.scores if _is_about(score, result, component)]
    lines += [_verdict(score) for score in verdicts[:_VERDICTS]]
    lines += [f"a person says: {name} is {value}" for name, value in case.labels.items()]
    return clip("\n".join(lines), _MOMENT).text


def _cut(text: str) -> str:
    return clip(text, _STEP, " ").text


def _asked(case: Case) -> str:
    return " / ".join(" ".join(turn.input.plain().split()) for turn in case.turns)


def _concerned(trace: Trace, component: str) -> list[Shown]:
    """Return the steps that concern a component, in their order."""
    kind, _, name = component.partition(":")
    shown = shown_steps(trace)
    if kind in ("agent", "examples"):
        to_it = f"handed to {name}: "
        return [one for one in shown.values() if one.agent == name or one.text.startswith(to_it)]
    places = places_of(trace)
    if kind == "tool":
        return [
            one
            for id_, one in shown.items()
            if isinstance(step := places[id_].step, ToolCall) and step.name == name
        ]
    return [one for id_, one in shown.items() if isinstance(places[id_].step, HandedOff)]


def _is_about(score: Score, result: CaseResult, component: str) -> bool:
    """Return whether a verdict is feedback on a component.

    A verdict about a whole turn or conversation always is: any agent in it may have caused it.
    """
    if score.status != "failed":
        return False
    kind, _, name = component.partition(":")
    placed = [result.places[id_] for id_ in score.subject if id_ in result.places]
    if not placed or kind in ("tool", "description"):
        return True
    return any(name in (place.agent, place.sender) for place in placed)


def _verdict(score: Score) -> str:
    by = " by a judge" if score.judge is not None else ""
    return f"{score.evaluator} failed{by}: {clip(score.reason, _REASON, ' ').text}"

"""The answer of a turn: its text, its data, and its JSON, also as text for a reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from baton.evaluators.base_evaluator import Details
from baton.formats.nesting import decode_json
from baton.model import Content, Evidence, ExpectedTurn, Trace, Turn, known
from baton.model.score import passes


class Row(NamedTuple):
    """The result of one turn. ``fields`` are further details, ``problem`` is the fault."""

    number: int
    turn: Turn
    score: float
    problem: str
    fields: Mapping[str, Any]


def answer_text(turn: Turn) -> str:
    """Return the answer of a turn as text, with data as JSON. Empty if there was none."""
    return "" if turn.output is None else turn.output.plain()


def quote(text: str, limit: int = 200) -> str:
    """Cut a text that is longer than ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def no_answer(turn: Turn) -> str:
    """Say that the turn has no answer, and how it ended if that explains it."""
    return "no answer" + ("" if turn.status == "completed" else f", the turn is {turn.status}")


def mean(rows: Sequence[Row]) -> float:
    """Return the mean over turns."""
    return sum(row.score for row in rows) / len(rows)


def below(rows: Iterable[Row], threshold: float) -> list[Row]:
    """Return the turns that would fail on their own."""
    return [row for row in rows if not passes(row.score, threshold)]


class AnswerDetails(Details, kw_only=True):
    """Details of answers, turn by turn."""

    turns: list[dict[str, Any]]
    """Each has ``turn`` (its number), ``score``, ``threshold``, ``actual`` (the answer, if it is
    below the threshold) and the evaluator's own fields."""
    fix: str | msgspec.UnsetType = msgspec.UNSET
    """The dispatch that returned a fact that is missing from an answer."""


def answer_details(rows: Iterable[Row], threshold: float) -> AnswerDetails:
    """Return the turns as details. An answer below the threshold is quoted."""
    turns = []
    for row in rows:
        turn = {"turn": row.number, "score": row.score, "threshold": threshold, **row.fields}
        if not passes(row.score, threshold):
            turn["actual"] = quote(answer_text(row.turn))
        turns.append(turn)
    return AnswerDetails(turns=turns)


def evidence(rows: Iterable[Row]) -> list[Evidence]:
    """Return the answers of turns as evidence for a verdict."""
    return [
        Evidence(ids=[row.turn.id], quote=quote(answer_text(row.turn), 120) or None) for row in rows
    ]


def reason(rows: Sequence[Row], wrong: Sequence[Row], right: str) -> str:
    """Name the first wrong turn and the number of wrong turns, or return ``right`` if none is."""
    if not wrong:
        return right if len(rows) == 1 else f"{right}, {len(rows)} turns"
    more = f"; {len(wrong)} of {len(rows)} turns fall short" if len(rows) > 1 else ""
    return f"turn {wrong[0].number}: {wrong[0].problem}{more}"


def shown(value: Any, limit: int = 80) -> str:
    """Write a value as JSON, shortened if it is long."""
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


NOTHING: Any = msgspec.UNSET


def data_of(answer: Content | None) -> Any:
    """Return the data of an answer, or its text if that is exactly one JSON object.

    Returns ``NOTHING`` if it has neither. JSON inside prose is not a structured answer.
    """
    if answer is None:
        return NOTHING
    if answer.data is not None:
        return answer.data
    data = json_of(answer.text)
    return data if isinstance(data, dict) else NOTHING


def json_of(text: str | None) -> Any:
    """Return a text parsed as JSON, or ``NOTHING`` if it is not JSON."""
    try:
        return NOTHING if text is None else decode_json(text)
    except msgspec.DecodeError:
        return NOTHING


def stated_object(expected: ExpectedTurn) -> dict[str, Any] | None:
    """Return the fields that a turn states, even if its response is an object written as text."""
    if expected.structured is not None:
        return expected.structured
    data = data_of(expected.response)
    return data if isinstance(data, dict) else None


def tells_data(trace: Trace, turn: Turn) -> bool:
    """Return whether structured output would have been recorded, had there been any."""
    return known(trace, turn, "output.data")


_FENCE = "```"


def json_in(answer: Content | None) -> Any:
    """Return the JSON of an answer, or ``msgspec.UNSET`` if it has none.

    The JSON is the answer's data, else its whole text, else its first fenced block (without a
    language, or marked ``json``) that is JSON.
    """
    if answer is None:
        return msgspec.UNSET
    if answer.data is not None:
        return answer.data
    text = answer.text or ""
    for candidate in (text, *_fenced(text)):
        try:
            return decode_json(candidate)
        except msgspec.DecodeError:
            continue
    return msgspec.UNSET


def _fenced(text: str) -> Iterator[str]:
    """Yield the contents of fenced blocks that name no language, or ``json``.

    As in Markdown, a block that is never closed extends to the end.
    """
    language: str | None = None
    block: list[str] = []
    for line in [*text.split("\n"), _FENCE]:
        before, fence, rest = line.strip().partition(_FENCE)
        rest = rest.strip("` \t").lower()
        if before or not fence:
            block.append(line)
        elif language is None:
            language, block = rest, []
        elif not rest:
            if language in ("", "json"):
                yield "\n".join(block)
            language = None


def json_differences(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Describe each difference between two JSON values.

    Numbers compare by value, and true is not a number.
    """
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in dict.fromkeys([*expected, *actual]):
            inside = f"{path}.{key}" if path else str(key)
            if key not in actual:
                yield f"`{inside}` is missing"
            elif key not in expected:
                yield f"`{inside}` is not expected"
            else:
                yield from json_differences(expected[key], actual[key], inside)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (one, other) in enumerate(zip(expected, actual, strict=True)):
            yield from json_differences(one, other, f"{path}[{index}]")
    elif isinstance(expected, bool) is not isinstance(actual, bool) or expected != actual:
        yield f"{f'`{path}`' if path else 'it'} is {_short(actual)}, not {_short(expected)}"


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 60 else f"{text[:59]}…"

"""The answer of a turn: what there is to compare, and what to show of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from baton.model import Evidence, Trace, Turn, known


class Row(NamedTuple):
    """What came out for one turn; ``fields`` are further details, ``problem`` what is wrong."""

    number: int
    turn: Turn
    score: float
    problem: str
    fields: Mapping[str, Any]


def answer_text(turn: Turn) -> str:
    """Return the answer of a turn as text, data as JSON; empty where there was none."""
    return "" if turn.output is None else turn.output.plain()


def quote(text: str, limit: int = 200) -> str:
    """Cut a text that is longer than ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def no_answer(turn: Turn) -> str:
    """Say that there was no answer, and how the turn ended where that explains it."""
    return "no answer" + ("" if turn.status == "completed" else f", the turn is {turn.status}")


def unrecorded(trace: Trace, turns: Iterable[tuple[int, Turn]]) -> str | None:
    """Say which of the turns (with their numbers) have an answer that was not recorded."""
    numbers = [str(number) for number, turn in turns if not known(trace, turn, "output")]
    if not numbers:
        return None
    return f"turn {', '.join(numbers)}: the answer was not recorded; record the final response"


def mean(rows: Sequence[Row]) -> float:
    """Return the mean over turns."""
    return sum(row.score for row in rows) / len(rows)


def below(rows: Iterable[Row], threshold: float) -> list[Row]:
    """Return the turns that would not pass on their own."""
    return [row for row in rows if row.score < threshold - 1e-9]


def row_details(rows: Iterable[Row], threshold: float) -> list[dict[str, Any]]:
    """Return the turns as data; the answer is quoted where it is below the threshold."""
    return [
        {"turn": row.number, "score": row.score, "threshold": threshold, **row.fields}
        | ({"actual": quote(answer_text(row.turn))} if below([row], threshold) else {})
        for row in rows
    ]


def evidence(rows: Iterable[Row]) -> list[Evidence]:
    """Return the answers of turns as what proves a verdict."""
    return [
        Evidence(ids=[row.turn.id], quote=quote(answer_text(row.turn), 120) or None) for row in rows
    ]


def reason(rows: Sequence[Row], wrong: Sequence[Row], right: str) -> str:
    """Name the first wrong turn and how many there are; ``right`` is said when there is none."""
    if not wrong:
        return right if len(rows) == 1 else f"{right}, {len(rows)} turns"
    more = f"; {len(wrong)} of {len(rows)} turns fall short" if len(rows) > 1 else ""
    return f"turn {wrong[0].number}: {wrong[0].problem}{more}"

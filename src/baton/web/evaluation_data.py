"""Data from an evaluation folder for its page: rows for scripts, and the first elements.

The page has its summary and its first rows as elements, so that they are painted without a script.
They are the same elements that the scripts of the report make (``summary.js``, ``cases.js``), which
continue with them.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from jinja2 import Environment
from markupsafe import Markup

from baton.formats.evaluation_folder import BODIES, INDEX
from baton.formats.evaluation_header import HEADER
from baton.model import STATUSES, Status
from baton.model.score import WORST_FIRST
from baton.reports.html.page import Tables, first_input, in_element, reason_of, summary
from baton.store import IndexRow, StoredEvaluation, read_evaluation

from .rendering import HUES, percent_text

_MOST_ROWS = 8000
"""Maximum results in the list of a page, about a megabyte; if there are more, the worst ones."""
_AT_FIRST = 50
"""The number of worst results in the page itself; the others are loaded after these are painted."""
_FEW = 300
"""Results up to which the page has all."""
_MATRIX = 24
"""Agents of a routing matrix, as in ``matrix.js``."""
_PLACES = {status: place for place, status in enumerate(STATUSES)}
_CHIPS: Sequence[Status] = ("failed", "error", "skipped", "passed")
_BAR: Sequence[Status] = ("passed", "failed", "error", "skipped")


class Opened(NamedTuple):
    """An evaluation folder with its rows in order."""

    stored: StoredEvaluation
    rows: list[IndexRow]

    @property
    def listed(self) -> list[IndexRow]:
        """The rows that a page lists, in order."""
        if len(self.rows) <= _MOST_ROWS:
            return self.rows
        worst = sorted(
            self.rows, key=lambda row: (WORST_FIRST[row.status], row.position, row.repeat)
        )
        return sorted(worst[:_MOST_ROWS], key=lambda row: (row.position, row.repeat))

    def at(self, position: int) -> list[IndexRow]:
        """Return the rows of a case, one for each existing repeat."""
        return [row for row in self.rows if row.position == position]


class PageData(NamedTuple):
    """The data of a page: ``whole`` and ``first`` are for the report's scripts, as JSON.

    ``first`` is what the page starts with, followed by its elements.
    """

    whole: bytes
    first: str
    summary: Markup
    tools: Markup
    rows: Markup


def open_evaluation(folder: Path) -> Opened:
    """Open a folder; cached until it changes, because opening checks all of its bodies."""
    return _read(folder, *marks_of(folder))


def page_data(folder: Path, is_open: bool, templates: Environment) -> PageData:
    """Return the data of a page; cached until the folder changes."""
    return _page_data(folder, is_open, templates, *marks_of(folder))


def marks_of(folder: Path) -> list[tuple[int, int]]:
    """Return a value that changes when the folder changes."""
    marks = [(folder / name).stat() for name in (HEADER, INDEX, BODIES)]
    return [(mark.st_mtime_ns, mark.st_size) for mark in marks]


@lru_cache(maxsize=3)
def _read(folder: Path, *_: tuple[int, int]) -> Opened:
    stored = read_evaluation(folder, partial=True)
    return Opened(stored, list(stored.rows()))


@lru_cache(maxsize=3)
def _page_data(
    folder: Path, is_open: bool, templates: Environment, *marks: tuple[int, int]
) -> PageData:
    opened = _read(folder, *marks)
    tables = Tables([counts.evaluator for counts in opened.stored.header.evaluators])
    listed = opened.listed
    rows = _list_rows(listed, tables)
    figures = summary(opened.stored)
    if is_open:  # a running evaluation is not a problem; it is shown above the list
        figures["problems"] = []
    data: dict[str, Any] = {"summary": figures, "names": tables.plain(), "rows": rows}
    whole = msgspec.json.encode(data)
    # The list starts with the worst ones. If the page has only these, each row has its number,
    # because rows before it are missing, and `counts` has the number of rows for each status.
    worst = sorted(
        range(len(rows)), key=lambda number: (WORST_FIRST[listed[number].status], number)
    )
    starting: dict[int, dict[str, Any]] = {}
    for number in worst[:_AT_FIRST]:
        result = opened.stored.result(listed[number])
        words = {"input": first_input(result.trace), "reason": reason_of(result), "told": True}
        starting[number] = rows[number] | words
    counts = Counter(_PLACES[row.status] for row in listed)
    if len(rows) > _FEW:
        data["rows"] = [{"number": number, **row} for number, row in starting.items()]
        data["counts"] = [counts[place] for place in range(len(STATUSES))]
    else:
        data["rows"] = [starting.get(number, row) for number, row in enumerate(rows)]
    module = templates.get_template("evaluation_first.html").module
    parts: Any = module  # its macros
    return PageData(
        whole,
        in_element(msgspec.json.encode(data).decode()),
        parts.summary(_drawn_summary(figures, tables)),
        parts.tools(_drawn_tools(rows, tables, counts)),
        parts.rows(_drawn_rows(rows, starting, tables, figures["repeats"])),
    )


def _list_rows(rows: Iterable[IndexRow], tables: Tables) -> list[dict[str, Any]]:
    """Return the list's data for each result; data from the bodies is loaded when it is drawn.

    Names are numbers, and empty values are left out. ``same`` is the number of an earlier repeat
    with the same verdicts.
    """
    listed: list[dict[str, Any]] = []
    first: dict[tuple[Any, ...], int] = {}
    # Many cases have the same verdicts, agents and tags: each of these is combined once.
    verdicts: dict[tuple[Any, ...], list[tuple[int, int]]] = {}
    agents: dict[tuple[str | None, ...], list[int]] = {}
    tags: dict[tuple[str, ...], list[int]] = {}
    for number, row in enumerate(rows):
        scored = tuple((each.evaluator, each.status) for each in row.scores)
        if scored not in verdicts:
            verdicts[scored] = _worst(scored, tables)
        route = tuple(name for hop in row.route for name in (hop.sender, hop.receiver))
        if route not in agents:
            known = dict.fromkeys(name for name in route if name is not None)
            agents[route] = [tables.agents[name] for name in known]
        tagged = tuple(row.tags)
        if tagged not in tags:
            tags[tagged] = [tables.tags[tag] for tag in dict.fromkeys(tagged)]
        plain: dict[str, Any] = {
            "id": row.case_id,
            "position": row.position,
            "status": _PLACES[row.status],
            "scores": verdicts[scored],
        }
        if row.repeat:
            plain["repeat"] = row.repeat
        if agents[route]:
            plain["agents"] = agents[route]
        if tags[tagged]:
            plain["tags"] = tags[tagged]
        if row.routing:
            plain["routing"] = [
                [None if name is None else tables.agents[name] for name in pair]
                for pair in row.routing
            ]
        if row.efficiency is not None:
            seconds = row.efficiency.timings.get("seconds")
            plain["seconds"] = None if seconds is None else round(seconds, 3)
            plain["tokens"] = row.efficiency.tokens
        said = row.position, row.status, scored
        earlier = first.setdefault(said, number)
        if earlier != number:
            plain["same"] = earlier
        listed.append(plain)
    return listed


def _worst(scored: Iterable[tuple[str, Status]], tables: Tables) -> list[tuple[int, int]]:
    """Return the worst status of each evaluator, both as numbers."""
    worst: dict[str, Status] = {}
    for name, status in scored:
        if name not in worst or WORST_FIRST[status] < WORST_FIRST[worst[name]]:
            worst[name] = status
    return [(tables.evaluators[name], _PLACES[status]) for name, status in worst.items()]


class _Bar(NamedTuple):
    """A part of a bar, in hundredths of its width."""

    status: Status
    at: float
    width: float


class _CardRow(NamedTuple):
    """A row of the evaluators' card; ``place`` is that of the evaluator, ``None`` for all cases."""

    name: str
    place: int | None
    counts: Mapping[str, int]
    rate: str
    bar: list[_Bar]


class _Agent(NamedTuple):
    """The name of an agent with the number of its colour; without a name there is no agent."""

    name: str | None
    hue: int


class _Cell(NamedTuple):
    """A cell of the routing matrix; ``place`` is that in the list of cells."""

    cases: int
    place: int
    heat: int
    is_right: bool
    title: str


def _drawn_summary(figures: Mapping[str, Any], tables: Tables) -> dict[str, Any]:
    """Return the summary as it is drawn, see ``summary.js``."""
    hues = {name: place for place, name in enumerate(tables.agents.names)}
    notes = [("error", text) for text in (*figures["problems"], *figures["missed"])]
    notes += [("", text) for text in figures["notices"]]
    card_rows = [
        _CardRow(one["name"], place, one, _rate(one), _bar(one))
        for place, one in enumerate(figures["evaluators"])
    ]
    every = figures["cases"]
    card_rows.append(_CardRow("all cases", None, every, _rate(every), _bar(every)))
    return {
        "notes": [(kind, _sentence(text, hues)) for kind, text in notes],
        "card_rows": card_rows,
        "spent": [_spent(name, text) for name, text in figures["spent"]],
        "routing": figures["routing"] and _drawn_routing(figures["routing"], hues),
    }


def _rate(counts: Mapping[str, int]) -> str:
    return percent_text(counts["passed"], counts["passed"] + counts["failed"])


def _bar(counts: Mapping[str, int]) -> list[_Bar]:
    every = sum(counts[status] for status in STATUSES)
    # A part that exists stays visible, even one case of a thousand.
    shares = {status: max(counts[status] / every, 0.012) for status in _BAR if counts[status]}
    scale, at, parts = sum(shares.values()), 0.0, []
    for status, share in shares.items():
        width = 100 * share / scale
        parts.append(_Bar(status, at, width))
        at += width
    return parts


_QUOTED = re.compile(r"`([^`\n]+)`")


def _sentence(text: str, hues: Mapping[str, int]) -> list[tuple[str, str | _Agent]]:
    """Return the parts of one of Baton's sentences: text, and names in backticks."""
    parts: list[tuple[str, str | _Agent]] = []
    for place, part in enumerate(_QUOTED.split(text)):
        if place % 2 and part in hues:
            parts.append(("agent", _Agent(part, hues[part] % HUES)))
        else:
            parts.append(("code" if place % 2 else "text", part))
    return parts


_SPENT = re.compile(r"(.*?) \((.*?)\)(.*)\Z")
_SPENT_WORDS = {"tool_calls": "tool calls", "model_calls": "model calls", "seconds": "time"}


def _spent(name: str, text: str) -> tuple[str, str, str]:
    """Return a tile: its word, the sum, and the mean."""
    match = _SPENT.match(text)
    if match is None:
        return _SPENT_WORDS.get(name, name), text, ""
    rest = re.sub(r" in (.*) cases", r" (\1)", match[3])
    mean = f"{match[2]} per case{rest}" if match[2] else ""
    return _SPENT_WORDS.get(name, name), match[1], mean


def _drawn_routing(routing: Mapping[str, Any], hues: dict[str, int]) -> dict[str, Any]:
    """Return the routing matrix as it is drawn, see ``matrix.js``."""
    cells, agents = routing["matrix"], routing["agents"]
    faults = Counter[str | None]()
    for cell in cells:
        if cell["expected"] != cell["actual"]:
            faults.update({cell["expected"]: cell["count"], cell["actual"]: cell["count"]})
    ranked = sorted(agents, key=lambda one: (-faults[one["agent"]], -one["expected"]))
    kept = {one["agent"] for one in ranked[:_MATRIX]}
    shown = [one for one in agents if one["agent"] in kept]
    names = [one["agent"] for one in shown]
    for name in names:
        hues.setdefault(name, len(hues))
    places = {(cell["expected"], cell["actual"]): place for place, cell in enumerate(cells)}
    most = max(cell["count"] for cell in cells)
    columns = [*names, *([None] if any(cell["actual"] is None for cell in cells) else [])]

    def agent(name: str | None) -> _Agent:
        return _Agent(name, 0 if name is None else hues[name] % HUES)

    def line(expected: str | None) -> list[_Cell | None]:
        return [one(expected, actual) for actual in columns]

    def one(expected: str | None, actual: str | None) -> _Cell | None:
        place = places.get((expected, actual))
        if place is None:
            return None
        count = cells[place]["count"]
        title = f"expected {expected or 'no agent'}, went to {actual or 'no agent'}"
        heat = math.ceil(10 * math.sqrt(count / most))
        return _Cell(count, place, heat, expected == actual, title)

    def ratio(value: float | None, right: int, every: int) -> tuple[str, str]:
        return "–" if value is None else percent_text(right, every), f"{right} of {every}"

    return {
        "columns": [agent(name) for name in columns],
        "lines": [
            (
                agent(each["agent"]),
                line(each["agent"]),
                ratio(each["recall"], each["right"], each["expected"]),
                ratio(each["precision"], each["right"], each["actual"]),
            )
            for each in shown
        ],
        "unexpected": line(None) if any(cell["expected"] is None for cell in cells) else None,
        "is_wide": len(names) > 12,
        "left_out": len(agents) - len(shown),
    }


def _drawn_tools(
    rows: Sequence[Mapping[str, Any]], tables: Tables, counts: Mapping[int, int]
) -> dict[str, Any]:
    """Return search and filters as they are drawn, see ``tools`` of ``cases.js``."""
    used = {place for row in rows for place in row.get("agents", ())}
    names = tables.agents.names
    return {
        "total": len(rows),
        "chips": [(status, _PLACES[status], counts[_PLACES[status]]) for status in _CHIPS],
        "evaluators": tables.evaluators.names,
        "agents": sorted((names[place] for place in used), key=str.casefold),
        "tags": tables.tags.names,
    }


class _Row(NamedTuple):
    """A result of the list."""

    number: int
    status: Status
    id: str
    which: str
    why: str
    dots: list[tuple[Status, str]]
    spent: str


def _drawn_rows(
    rows: Sequence[Mapping[str, Any]],
    starting: Mapping[int, Mapping[str, Any]],
    tables: Tables,
    repeats: int,
) -> list[_Row]:
    """Return the first rows as they are drawn, see ``item`` of ``cases.js``.

    Repeats of a case with the same verdicts are one row.
    """
    alike: dict[int, list[int]] = defaultdict(list)
    for number, row in enumerate(rows):
        alike[row.get("same", number)].append(number)
    drawn: dict[int, _Row] = {}
    for number, row in starting.items():
        first = row.get("same", number)
        if first in drawn:
            continue
        status = STATUSES[row["status"]]
        which = ""
        if repeats > 1:
            times = len(alike[first])
            which = f"{status} {times} of {repeats}" if times > 1 else str(row.get("repeat", 0) + 1)
        chain = " → ".join(tables.agents.names[place] for place in row.get("agents", ()))
        spent = []
        if row.get("seconds") is not None:
            spent.append(_seconds(row["seconds"]))
        if row.get("tokens") is not None:
            spent.append(f"{row['tokens']:,} tok")
        drawn[first] = _Row(
            number,
            status,
            row["id"],
            which,
            row["reason"].replace("`", "") or row["input"] or chain,
            [(STATUSES[of], tables.evaluators.names[name]) for name, of in row["scores"]],
            " · ".join(spent),
        )
    return list(drawn.values())


def _seconds(value: float) -> str:
    """Write a duration as ``seconds`` of ``dom.js`` does."""
    if value >= 120:
        return f"{math.floor(value / 60 + 0.5):,} min"
    return f"{value:.{0 if value >= 100 else 1 if value >= 0.995 else 2}f} s"

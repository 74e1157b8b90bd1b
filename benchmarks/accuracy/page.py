"""The tables of docs/accuracy.md."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from . import claims, handoffs
from .figures import Counts, Table
from .recordings import ROOT, SOURCES
from .rewordings import FOLDERS
from .trials import MADE_BY

PAGE = ROOT / "docs" / "accuracy.md"
BEGIN = "<!-- tables: written by `make accuracy` -->"
END = "<!-- end of tables -->"
_Namer = Callable[[str, str, str], str]
HEAD = (
    "| {} | seeded | found | skipped | clean | false alarms | precision | recall |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)


def tables(table: Table) -> str:
    """Return the figures of the half that reports, by evaluator and by source; then the other."""
    parts = [
        "### By evaluator\n",
        _by_kind(table, "report"),
        "\n### By evaluator and source\n",
        _by_source(table, "report"),
        "\n### The half that evaluators were tuned on\n",
        _by_kind(table, "tune"),
        "\n### The half that evaluators were tuned on, by source of the texts\n",
        _by_source(_of_texts(table), "tune"),
    ]
    return "\n".join(parts)


def with_tables(page: str, made: str) -> str:
    """Put the tables between the marks of the page."""
    before, rest = page.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n\n{made}\n\n{END}{after}"


def _of_texts(table: Table) -> Table:
    return {key: counts for key, counts in table.items() if key[3] not in SOURCES}


def _by_kind(table: Table, half: str) -> str:
    return _sums(table, half, "evaluator, fault", lambda e, k, _: f"`{e}`, {_words(k)}")


def _by_source(table: Table, half: str) -> str:
    return _sums(
        table, half, "evaluator, fault, source", lambda e, k, s: f"`{e}`, {_words(k)}, {s}"
    )


def _sums(table: Table, half: str, title: str, name: _Namer) -> str:
    sums: dict[str, Counts] = defaultdict(Counts)
    for (which, evaluator, kind, source), counts in sorted(table.items(), key=_place):
        if which == half:
            sums[name(evaluator, kind, source)].add(counts)
    return "\n".join([HEAD.format(title), *(row(title, one) for title, one in sums.items())])


def _place(item: tuple[tuple[str, str, str, str], Counts]) -> tuple[int, int]:
    """Order rows as faults and sources are listed."""
    _, _, kind, source = item[0]
    sources = [*SOURCES, "texts", *FOLDERS, *handoffs.FOLDERS, *claims.FOLDERS]
    return list(MADE_BY).index(kind), sources.index(source)


def row(title: str, c: Counts) -> str:
    """Write a row of a table under ``HEAD``."""
    cells = (
        title,
        c.seeded,
        c.found,
        c.untold,
        c.clean,
        c.alarms,
        _two(c.precision),
        _two(c.recall),
    )
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def _two(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _words(kind: str) -> str:
    return kind.replace("_", " ")

"""The report for GitHub Actions: annotations on the lines of cases, and the summary of a step."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import IO

from baton.model.visible import without_commands
from baton.plugins import Entry
from baton.store import Reportable

from .figures import gate_lines
from .markdown import MOST_CASES, code, write_markdown
from .text import one_line, place_names, place_of

MOST = 10
"""GitHub shows ten errors of a step, and drops the rest."""
SUMMARY = "GITHUB_STEP_SUMMARY"


def write_github(evaluation: Reportable, out: IO[str]) -> None:
    """Write an ``::error`` for the first ten cases that failed or broke, the rest as one notice.

    Problems of the evaluation as a whole come first. Notices of the evaluation, such as
    expectations that nothing checked, come last. If ``GITHUB_STEP_SUMMARY`` names a file, the
    Markdown report is appended to it.
    """
    left = 0
    for number, line in enumerate(_errors(evaluation)):
        if number < MOST:
            out.write(line + "\n")
        else:
            left += 1
    if left:
        out.write(
            _command("notice", f"… and {left:,} more: see the summary of the step", {}) + "\n"
        )
    title: dict[str, str | int | None] = {"title": evaluation.header.name}
    for notice in evaluation.header.notices[:MOST]:
        out.write(_command("notice", one_line(notice, 400), title) + "\n")
    summary = os.environ.get(SUMMARY)
    if summary:
        with open(summary, "a", encoding="utf-8") as file:
            write_markdown(evaluation, file)


def link_cases(evaluation: Reportable, page: Callable[[int], str]) -> None:
    """Add links to the cases that failed or broke to the summary of a step, if there is one.

    ``page`` gives the address of a case on a server, by its position.
    """
    summary = os.environ.get(SUMMARY)
    rows = {row.position: row for row in evaluation.rows() if row.status in ("failed", "error")}
    if not summary or not rows:
        return
    lines = [
        f"- [{code(row.case_id)}]({page(position)}): {row.status}"
        for position, row in list(rows.items())[:MOST_CASES]
    ]
    if len(rows) > MOST_CASES:
        lines.append(f"- … and {len(rows) - MOST_CASES:,} more")
    with open(summary, "a", encoding="utf-8") as file:
        file.write("\n".join(["\n### On the server\n", *lines, ""]))


def _errors(evaluation: Reportable) -> Iterator[str]:
    header = evaluation.header
    for problem in header.problems:
        yield _command("error", one_line(problem, 400), {"title": header.name})
    for missed in gate_lines(header.gate):
        yield _command("error", one_line(missed, 400), {"title": header.name})
    for row in evaluation.rows():
        if row.status in ("failed", "error"):
            result = evaluation.result(row)
            lines = [one_line(result.error, 400)] if result.error else []
            lines += [
                one_line(
                    f"{score.evaluator}: {place_names(score, result.places)}{score.reason}", 400
                )
                for score in result.scores
                if score.status in ("failed", "error")
            ]
            repeat = f" ({row.repeat + 1} of {header.repeats})" if header.repeats > 1 else ""
            about: dict[str, str | int | None] = {"title": f"{row.case_id}{repeat}: {row.status}"}
            place = place_of(result)
            if place is not None:
                about = {"file": place.file, "line": place.line} | about
            yield _command("error", "\n".join(lines) or row.status, about)


def _command(name: str, message: str, about: dict[str, str | int | None]) -> str:
    """Write a workflow command; characters that would end it or a property are escaped.

    A message is one line, or several lines that are each safe already.
    """
    properties = [
        (key, _data(without_commands(one_line(str(value), 300))))
        for key, value in about.items()
        if value is not None
    ]
    # A colon would end the properties, a comma would end a property.
    texts = [f"{key}={text.replace(':', '%3A').replace(',', '%2C')}" for key, text in properties]
    return f"::{name}{' ' if texts else ''}{','.join(texts)}::{_data(without_commands(message))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


REPORT = Entry("github", write_github, "annotations and the summary of a step, for GitHub Actions")

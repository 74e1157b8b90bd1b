"""The JUnit report: one test case for each case and repeat, as CI systems show them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from baton.model import CaseResult
from baton.model.visible import visible, without_commands
from baton.plugins import Entry
from baton.stats.routing import agents_of, mistakes
from baton.store import Header, Reportable

from .figures import arrow, asked_by_evaluator, asked_line, gate_lines, share_text
from .terminal import counter_texts
from .text import dispatches_of, place_names, place_of, value_text


def write_junit(evaluation: Reportable, out: IO[str]) -> None:
    """Write XML; cases that broke are ``error``, cases that nothing scored are ``skipped``.

    A problem of the whole evaluation is its own error test case.
    """
    header = evaluation.header
    cases = header.cases
    errors = cases.get("error", 0) + len(header.problems)
    missed = list(gate_lines(header.gate))
    tests = len(evaluation) + len(header.problems) + len(missed)
    counts = (
        f'tests="{tests}" failures="{cases.get("failed", 0) + len(missed)}" '
        f'errors="{errors}" skipped="{cases.get("skipped", 0)}"'
    )
    name = _attribute(header.name)
    out.write(f'<?xml version="1.0" encoding="utf-8"?>\n<testsuites name={name} {counts}>\n')
    out.write(f"  <testsuite name={name} {counts}>\n")
    properties = list(_properties(header))
    if properties:
        out.write("    <properties>\n")
        for key, value in properties:
            out.write(f"      <property name={_attribute(key)} value={_attribute(value)}/>\n")
        out.write("    </properties>\n")
    for result in evaluation:
        out.write(_case(name, result, repeated=header.repeats > 1))
    for line in missed:
        element = f"<failure message={_attribute(line)}/>"
        out.write(f'    <testcase classname={name} name="the gate">{element}</testcase>\n')
    for problem in header.problems:
        element = f"<error message={_attribute(problem)}/>"
        out.write(f'    <testcase classname={name} name="the evaluation">{element}</testcase>\n')
    out.write("  </testsuite>\n</testsuites>\n")


def _properties(header: Header) -> Iterator[tuple[str, str]]:
    """Yield properties of the whole evaluation: notices, the routing matrix, counters."""
    for notice in header.notices:
        yield "notice", notice
    for agent in agents_of(header.routing):
        recall = share_text(agent.recall, agent.right, agent.expected)
        precision = share_text(agent.precision, agent.right, agent.actual)
        yield f"routing.{agent.agent}", f"precision {precision}, recall {recall}"
    for cell in mistakes(header.routing):
        yield "routing.mistake", f"{arrow(cell)}: {cell.count}"
    for name, text in counter_texts(header.efficiency):
        yield f"efficiency.{name}", text
    for unclear in gate_lines(header.gate, "unclear"):
        yield "gate.unclear", unclear
    for one in header.by_agent:
        if one.mean is not None:
            about = f".{one.agent}" if one.agent is not None else ""
            yield f"mean.{one.evaluator}{about}", f"{one.mean:.4f} ({one.scored})"
    for name, (asked, settled) in asked_by_evaluator(header.by_agent).items():
        yield f"judges.{name}", asked_line(asked, settled)


def _case(suite: str, result: CaseResult, *, repeated: bool) -> str:
    name = f"{result.case_id} [{result.repeat + 1}]" if repeated else result.case_id
    seconds = (result.timings or {}).get("seconds")
    time = f' time="{seconds:.3f}"' if seconds is not None else ""
    where, place = "", place_of(result)
    if place is not None:  # GitLab and tools on GitHub link to the case with it
        line = "" if place.line is None else f' line="{place.line}"'
        where = f" file={_attribute(place.file)}{line}"
    head = f"    <testcase classname={suite} name={_attribute(name)}{where}{time}"
    if result.status == "passed":
        return f"{head}/>\n"
    tag = {"failed": "failure", "error": "error"}.get(result.status, "skipped")
    lines = [result.error] if result.error else []
    lines += [
        f"{score.evaluator} {score.status}{value_text(score)}: "
        f"{place_names(score, result.places) or dispatches_of([score])}{score.reason}"
        for score in result.scores
        if score.status in ("failed", "error") or result.status == "skipped"
    ]
    message = lines[0] if lines else result.status
    inside = escape(_shown("\n".join(lines)))
    return (
        f"{head}>\n      <{tag} message={_attribute(message)}>{inside}</{tag}>\n    </testcase>\n"
    )


def _attribute(text: str) -> str:
    return quoteattr(_shown(text))


def _shown(text: str) -> str:
    """Make invisible and invalid characters visible: CI systems print such texts in logs."""
    return without_commands(visible(text))


REPORT = Entry("junit", write_junit, "test cases, for CI systems")

"""Dispatches with nothing wrong in them raise no alarm, however they are worded."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from baton.evaluators import (
    AnnouncedDispatch,
    ClaimsSupported,
    ContextCarried,
    DispatchCompleted,
    DuplicateWork,
    HandoffLoops,
    ResultContradicted,
    ResultUsed,
)
from baton.model import (
    EvalContext,
    Evaluator,
    ToolCall,
    Trace,
)
from baton.testing.build import Passing, call, delegate, run, trace, turn

DATA = Path(__file__).parent.parent / "data"
GOOD: dict[str, Any] = {
    name: good
    for table in ("good_handoffs.yaml", "worked_out_handoffs.yaml")
    for name, good in yaml.safe_load((DATA / table).read_text(encoding="utf-8")).items()
}
EVALUATORS: tuple[Evaluator, ...] = (
    AnnouncedDispatch(),
    ClaimsSupported(),
    ContextCarried(),
    DispatchCompleted(),
    DuplicateWork(),
    HandoffLoops(),
    ResultContradicted(),
    ResultUsed(),
)


def played(good: dict[str, Any]) -> Trace:
    """Make the trace: a lead that hands out one step after the other, and then answers."""
    steps: list[ToolCall | Passing | str] = []
    helpers = []
    for step in good["steps"]:
        if "tool" in step:
            steps.append(called(step))
            continue
        helper = run(
            step["agent"],
            *(called(made) for made in step.get("calls", [])),
            step["result"],
            input=step["prompt"],
            output=step["result"],
        )
        helpers.append(helper)
        steps.append(delegate(step["agent"], step["prompt"], result=step["result"]))
        if "then" in step:
            steps.append(step["then"])
    user, answer = good["user"], good["final"]
    lead = run("main", *steps, answer, input=user, output=answer)
    return trace(turn(user, lead, *helpers, output=answer))


def called(made: dict[str, Any]) -> ToolCall:
    return call(made["tool"], made["arguments"], made["result"])


# What writers, models and programs do to a text without a change of what it says.
_NUMBER = re.compile(r"(?<![\w*`/.-])(\d[\d.,:]*\d|\d)(?![\w*`/-])")
STYLES: dict[str, Callable[[str], str]] = {
    "numbers in bold": lambda text: _NUMBER.sub(r"**\1**", text),
    "numbers in italics": lambda text: _NUMBER.sub(r"*\1*", text),
    "numbers as code": lambda text: _NUMBER.sub(r"`\1`", text),
    "non-breaking blanks": lambda text: text.replace(" ", "\N{NO-BREAK SPACE}"),
    "full-width digits": lambda text: text.translate({48 + n: 0xFF10 + n for n in range(10)}),
    "typographic": lambda text: text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}"),
    "thin blanks for thousands": lambda text: re.sub(r"(?<=\d),(?=\d{3}\b)", "\u202f", text),
    "small letters": str.lower,
    "a list": lambda text: "\n".join(f"- {part}" for part in re.split(r"(?<=[.!?])\s+", text)),
    "a quote": lambda text: "\n".join(f"> {line}" for line in text.splitlines()),
    "HTML": lambda text: f"<p>{text.replace(chr(10), '<br>')}</p>",
    "a heading": lambda text: f"## Summary\n\n{text}",
    "courtesies": lambda text: f"Hello!\n\n{text}\n\nLet me know if you need anything else.",
    "a time of its own": lambda text: f"Current date: 14 November 2026, 09:12.\n\n{text}",
    "per cent in words": lambda text: re.sub(r"(\d) ?%", r"\1 percent", text),
}


@pytest.mark.heavy
@pytest.mark.parametrize("style", STYLES)
def test_how_it_is_written_changes_nothing(style: str) -> None:
    written = STYLES[style]
    alarms = []
    for name, good in GOOD.items():
        steps = [
            {**step, "prompt": written(step["prompt"])} if "prompt" in step else step
            for step in good["steps"]
        ]
        for other in ({**good, "final": written(good["final"])}, {**good, "steps": steps}):
            trace = played(other)
            for evaluator in EVALUATORS:
                scores = evaluator.evaluate(trace, None, EvalContext())
                assert isinstance(scores, list)
                alarms += [f"{name}: {each.reason}" for each in scores if each.status == "failed"]
    assert alarms == []


@pytest.mark.parametrize("name", GOOD)
def test_nothing_is_found_wrong_with_it(name: str) -> None:
    trace = played(GOOD[name])
    for evaluator in EVALUATORS:
        scores = evaluator.evaluate(trace, None, EvalContext())
        assert isinstance(scores, list)
        assert [score.reason for score in scores if score.status == "failed"] == []

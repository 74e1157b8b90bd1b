"""Trying rubrics on their own examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO

from baton.config import Config
from baton.config.judge import JudgeConfig, make_judge_of
from baton.evaluators.judging.examples import Checked, check_example
from baton.judges.judge import LlmJudge
from baton.model import InputError, Trace
from baton.readers import iter_traces
from baton.reports.console import Text, console_for
from baton.reports.text import one_line
from baton.runner.plan import make_plan

from .judging import JudgeOptions
from .notes import note
from .rubric_files import RubricFile


def judge_for(settings: Config | None, options: JudgeOptions) -> LlmJudge:
    """Return the judge of a config and the command line; raises InputError without one."""
    told = settings.judging if settings is not None else JudgeConfig()
    if options.judge is None and not told.options.get("model"):
        raise InputError("no judge to ask: give --judge PROVIDER:NAME, or a config with `judge:`")
    plan = settings.plan if settings is not None else make_plan(None)
    return make_judge_of(told, options.flags(), plan)


async def run_tests(files: Sequence[RubricFile], judge: LlmJudge, out: IO[str]) -> int:
    """Ask all examples and print what came out; return the exit code."""
    console = console_for(out)
    worst = 0
    async with judge:
        for rubric, file, _ in files:
            for example in rubric.tests:
                checked = await check_example(rubric, example, judge, _read, file.parent)
                console.print(_line(rubric.name, checked))
                worst = max(worst, _code(checked))
    return worst


def _read(file: Path) -> Iterable[Trace]:
    return iter_traces([file], on_note=note)


def _code(checked: Checked) -> int:
    if checked.problem is None:
        return 0
    return 1 if checked.score is not None and checked.score.value is not None else 3


def _line(rubric: str, checked: Checked) -> Text:
    style = {0: "green", 1: "red", 3: "yellow"}[_code(checked)]
    head = {0: "as expected", 1: "otherwise", 3: "no verdict"}[_code(checked)]
    line = Text().append(f"{head}  ", style).append(f"{rubric}: {checked.example.name}")
    if checked.problem is not None:
        line.append(f"  {one_line(checked.problem, 200)}")
        if checked.score is not None and checked.score.reason not in checked.problem:
            line.append(f"  {one_line(checked.score.reason, 200)}", "dim")
    return line

"""`baton rubrics`: the questions that judges are asked."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.padding import Padding
from rich.table import Table

from baton.evaluators.judging.rubric import Rubric
from baton.model import counted
from baton.model.visible import visible_line
from baton.reports.text import Console, Text, console_for, one_line
from baton.session import rubrics as session
from baton.session.rubric_examples import keep_examples
from baton.session.rubrics import Answered, ListedRubric

from .options import AS_JUDGED, FEW, ConfigPath, Dataset, JudgeOptions
from .output import readers_may_leave
from .usage_messages import note
from .verbs import BELOW, TABLE, examples_text

# Wider than any row, to measure how wide the table would be without breaking its texts.
_UNBOUND = 10_000
_CODES = {"as expected": 0, "otherwise": 1, "no verdict": 3}
rubrics_command = App(
    name="rubrics",
    default_parameter=Parameter(negative=""),
    group_commands="Commands",
    group_parameters=FEW,
    help_epilogue=examples_text(TABLE["rubrics"].examples),
)
Folders = Annotated[tuple[Path, ...], Parameter(name="--rubrics", show_default=False)]


@rubrics_command.command(name="list", help_epilogue=examples_text(BELOW["rubrics list"]))
def list_rubrics(*, config: ConfigPath = None, rubrics: Folders = ()) -> int:
    """List rubrics: what each asks, how it is answered, and when it passes.

    Parameters
    ----------
    config
        A config, whose own rubrics are listed as well.
    rubrics
        A file or folder with rubrics of your own. May be given several times.
    """
    with readers_may_leave():
        print_list(session.list_rubrics(config, rubrics), console_for(sys.stdout))
    return 0


@rubrics_command.command(name="show", help_epilogue=examples_text(BELOW["rubrics show"]))
def show_rubric(
    name: str,
    *,
    trace: str | None = None,
    subject: str | None = None,
    dataset: Dataset = (),
    agents: Path | None = None,
    config: ConfigPath = None,
    rubrics: Folders = (),
) -> int:
    """Show a rubric; with a trace, the request as it would be sent to a judge.

    Parameters
    ----------
    name
        A rubric, its file, or an evaluator of the config that asks one, with its options.
    trace
        Recorded traces, in any format Baton reads, or conversations of server://HOST/PROJECT.
    subject
        The id of one dispatch, turn, run or tool call; by default all of them.
    dataset
        Cases that the traces belong to.
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    config
        A config, with its own rubrics and options.
    rubrics
        A file or folder with rubrics of your own. May be given several times.
    """
    with readers_may_leave():
        if trace is None:
            print(session.text_of_rubric(name, config, rubrics), end="")
            return 0
        for text in session.requests_for(
            name,
            trace,
            subject=subject,
            dataset=dataset,
            agents=agents,
            config=config,
            folders=rubrics,
            note=note,
        ):
            print(text)
    return 0


@rubrics_command.command(name="test", help_epilogue=examples_text(BELOW["rubrics test"]))
def ask_examples(
    *names: str,
    config: ConfigPath = None,
    rubrics: Folders = (),
    judging: JudgeOptions = AS_JUDGED,
) -> int:
    """Ask a judge about the examples of rubrics, and show where its answer differs.

    Exit codes: 0 as expected, 1 otherwise, 2 bad input, 3 the judge gave no verdict.

    Parameters
    ----------
    names
        Rubrics to test, or their files; by default your own.
    config
        A config, with a judge and rubrics of its own.
    rubrics
        A file or folder with rubrics of your own. May be given several times.
    """
    console = console_for(sys.stdout)

    def show(answered: Answered) -> None:
        rubric, checked = answered
        style = {"as expected": "green", "otherwise": "red", "no verdict": "yellow"}
        line = Text().append(f"{answered.outcome}  ", style[answered.outcome])
        line.append(f"{rubric.name}: {checked.example.name}")
        if checked.problem is not None:
            line.append(f"  {one_line(checked.problem, 200)}")
            if checked.score is not None and checked.score.reason not in checked.problem:
                line.append(f"  {one_line(checked.score.reason, 200)}", "dim")
        console.print(line)

    answers = session.try_rubrics(
        names, config=config, rubrics=rubrics, judge=judging.flags(), on_answer=show, note=note
    )
    return max(_CODES[each.outcome] for each in answers)


@rubrics_command.command(name="examples", help_epilogue=examples_text(BELOW["rubrics examples"]))
def keep_feedback(
    name: str,
    *files: str,
    config: ConfigPath = None,
    agents: Path | None = None,
    traces: Annotated[tuple[Path, ...], Parameter(show_default=False)] = (),
    project: str | None = None,
    out: Path | None = None,
) -> int:
    """Store labels that contradict the judge, and failures that a proven fix confirms, as examples.

    A judge is shown the nearest ones if the option `examples` of a rubric names the file.

    Parameters
    ----------
    name
        A rubric, or an evaluator of the config that asks one.
    files
        Labels (a file of `baton label`, or a dataset), and the evaluations that they are about.
    config
        A config, with its own rubrics and options.
    agents
        Agent definitions, for traces that are elsewhere.
    traces
        The recordings that evaluations were made from. May be given several times.
    project
        The project of the examples; they are shown only if the rubric's `project` is the same.
    out
        The file; by default NAME.examples.jsonl next to the rubric, or in this folder for one of
        Baton's.
    """
    kept = keep_examples(
        name,
        files,
        config=config,
        agents=agents,
        traces=traces,
        project=project,
        out=out,
        note=note,
    )
    message = f"{counted(kept.against, 'label')} against the judge"
    message += f", {counted(kept.fixes, 'failure')} of proven fixes: {kept.fresh} new or changed"
    print(f"{visible_line(str(kept.file))}: {counted(kept.total, 'example')} ({message})")
    return 0


def _calibrated(listed: ListedRubric) -> str:
    if not listed.calibrations:
        return "not calibrated"
    return "; ".join(
        f"{one.model}: kappa {one.kappa.value:.2f}, n {one.n}"
        if one.kappa is not None and not one.lacking
        else f"{one.model}: no evidence, n {one.n}"
        for one in listed.calibrations
    )


def print_list(rubrics: Sequence[ListedRubric], console: Console) -> None:
    """Print a line for each rubric; three if the terminal is narrow, so that names are not cut."""
    heads = ("rubric", "of each", "passes", "version", "calibrated", "answer", "question")
    table = Table(*heads, box=None, pad_edge=False, header_style="bold")
    for listed in rubrics:
        rubric = listed.rubric
        about = (rubric.name, rubric.unit, _passes(rubric), rubric.version, _calibrated(listed))
        table.add_row(*map(Text, (*about, _answer(rubric), rubric.summary)))
    unbound = console.options.update(max_width=_UNBOUND)
    if console.measure(table, options=unbound).maximum <= console.width:
        console.print(table)
        return
    for listed in rubrics:
        rubric = listed.rubric
        passes = f"passes {_passes(rubric)}"
        parts = (f"each {rubric.unit}", passes, f"version {rubric.version}", _calibrated(listed))
        console.print(Text.assemble((rubric.name, "bold"), "  ", ", ".join(parts)))
        for line in (rubric.summary, _answer(rubric)):
            console.print(Padding(Text(line), (0, 0, 0, 2)))


def _passes(rubric: Rubric) -> str:
    return f"{'≥' if rubric.direction == 'higher' else '≤'} {rubric.threshold:g}"


def _answer(rubric: Rubric) -> str:
    answer = rubric.answer
    labels: Sequence[str] = list(answer.labels or ())
    if answer.scale is not None and not labels:
        low, high = answer.scale.bounds
        return f"{low:g} to {high:g}"
    kind = (
        "each statement: " if answer.each else f"each {answer.claims.by}: " if answer.claims else ""
    )
    return kind + " / ".join(labels)

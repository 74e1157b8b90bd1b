"""`baton rubrics`: the questions that judges are asked."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Annotated, NamedTuple

import msgspec
from cyclopts import App, Parameter
from rich.padding import Padding
from rich.table import Table

from baton.config import Config, load_config
from baton.config.judge import JudgeConfig, make_judge_of
from baton.evaluators.judged import Judged
from baton.evaluators.judging.examples import Checked, check_example
from baton.evaluators.judging.load import FOLDER, load_folders, names_of, shipped
from baton.evaluators.judging.rubric import Rubric
from baton.evaluators.judging.subject import Subject
from baton.evaluators.registry import own_rubrics
from baton.judges.fence import prompt_for
from baton.judges.judge import LlmJudge
from baton.model import Case, EvalContext, InputError, Score, Trace, suggestion
from baton.model.redact import ON
from baton.model.visible import visible_line
from baton.plugins import RUBRIC_SUFFIXES, Entry
from baton.readers import iter_traces, load_catalog
from baton.reports.text import Console, Text, console_for, one_line
from baton.runner.judged import judged, judged_types
from baton.runner.plan import make_plan
from baton.runner.recorded import find_case
from baton.session.prepare import load_cases
from baton.store import StoredEvaluation
from baton.store.calibrations import kept_calibrations

from .messages import note
from .options import JudgeOptions
from .output import readers_may_leave


class RubricFile(NamedTuple):
    """A rubric, where it stands, and whether it is the user's own."""

    rubric: Rubric
    file: Path
    own: bool


def files_among(names: Iterable[str]) -> tuple[Path, ...]:
    """Return what of some names of rubrics are files of one's own."""
    return tuple(Path(name) for name in names if name.endswith(RUBRIC_SUFFIXES))


def rubric_files(settings: Config | None, folders: Sequence[Path]) -> dict[str, RubricFile]:
    """Return all rubrics by name, the user's own first.

    Raises:
        InputError: a folder is not there or holds none, a rubric is faulty, or its name is taken.
    """
    own = load_folders([*(settings.rubric_paths if settings is not None else ()), *folders])
    found = {name: RubricFile(rubric, file, True) for name, (rubric, file) in own.items()}
    for name, rubric in shipped().items():
        found[name] = RubricFile(rubric, FOLDER / f"{name}.yaml", False)
    return found


def named(found: dict[str, RubricFile], name: str) -> RubricFile:
    """Find a rubric by any of its names, or its file; raises InputError with the nearest ones."""
    file = Path(name)
    for each in found.values():
        if name in names_of(each.rubric) or (each.own and each.file == file):
            return each
    known = [known for each in found.values() for known in names_of(each.rubric)]
    raise InputError(f"there is no rubric `{name}`; {suggestion(name, known)}")


def entries(settings: Config | None, folders: Sequence[Path]) -> tuple[Entry, ...]:
    """Return the user's own rubrics as entries of the registry."""
    of_config = settings.rubrics if settings is not None else ()
    return (*of_config, *(own_rubrics(folders) if folders else ()))


def print_requests(
    name: str,
    file: Path,
    subject: str | None,
    dataset: Sequence[str],
    agents: Path | None,
    settings: Config | None,
    folders: Sequence[Path],
) -> None:
    """Print what a judge would be asked about the traces of a file.

    Raises:
        InputError: no such rubric, no trace, nothing that it is about, or no such subject.
    """
    evaluator = _evaluator(name, settings, folders)
    catalog = agents or (settings.agents if settings else None)
    definitions = load_catalog(catalog) if catalog is not None else None
    cases = load_cases(list(dataset), settings, definitions) if dataset else None
    errors: list[InputError] = []
    ids: list[str] = []
    shown = 0
    redaction = settings.redaction if settings is not None else ON
    for trace in iter_traces(
        [file], agents=definitions, on_problem=errors.append, on_note=note, redact=redaction
    ):
        place = find_case(trace, cases, redaction).position if cases is not None else None
        case = cases.cases[place] if cases is not None and place is not None else None
        for each in _subjects(evaluator, trace, redaction.value(case), settings):
            ids.append(each.id)
            if subject in (None, each.id):
                shown += 1
                print("\n".join(_lines(evaluator, each)))
    problems = [problem for error in errors for problem in error.problems]
    if problems:
        raise InputError(problems)
    if not shown:
        unit = evaluator.rubric.unit
        hint = suggestion(subject, ids) if subject is not None else ""
        raise InputError(
            f"no {unit} `{subject}`; {hint}" if hint else f"{file}: no {unit} to judge"
        )


def _evaluator(name: str, settings: Config | None, folders: Sequence[Path]) -> Judged:
    """Find the evaluator a config makes of a rubric, else make one with its default options."""
    for planned in settings.plan.all_evaluators.values() if settings is not None else ():
        found = planned.evaluator
        if isinstance(found, Judged) and name in (found.name, found.type):
            return found
    folders = (*folders, *files_among([name]))
    own = entries(settings, folders)
    rubric = named(rubric_files(settings, folders), name).rubric
    asked_as = rubric.name if files_among([name]) else name
    (planned,) = make_plan([asked_as], rubrics=own).evaluators
    if not isinstance(planned.evaluator, Judged):
        raise InputError(f"`{name}` asks no judge")
    return planned.evaluator


def _subjects(
    evaluator: Judged, trace: Trace, case: Case | None, settings: Config | None
) -> Sequence[Subject]:
    context = settings.plan.context if settings is not None else EvalContext()
    return evaluator.subjects(trace, case, context)


def _lines(evaluator: Judged, subject: Subject) -> Iterator[str]:
    about = f"# {evaluator.type} {evaluator.version}: {subject.unit} {subject.id}"
    yield visible_line(about)
    planned = evaluator.plan(subject)
    if isinstance(planned, Score):
        yield visible_line(f"no judge would be asked: {planned.status}, {planned.reason}")
        return
    prompt = prompt_for(planned.request)
    yield f"## instructions\n{prompt.instructions}"
    yield f"## material\n{prompt.content}"
    schema = msgspec.json.format(msgspec.json.encode(prompt.schema), indent=2).decode()
    yield f"## form of the answer\n{schema}\n"


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


_UNBOUND = 10_000
rubrics_command = App(name="rubrics", default_parameter=Parameter(negative=""))
ConfigPath = Annotated[Path | None, Parameter(name=["--config", "-c"])]
Folders = Annotated[tuple[Path, ...], Parameter(name="--rubrics", show_default=False)]
Datasets = Annotated[tuple[str, ...], Parameter(name=["--dataset", "-d"], show_default=False)]


@rubrics_command.command(name="list")
def list_rubrics(*, config: ConfigPath = None, rubrics: Folders = ()) -> int:
    """List rubrics: what each is about, how it is answered, when it passes.

    Parameters
    ----------
    config
        A config, whose own rubrics are listed as well.
    rubrics
        A file or folder with rubrics of your own. May be given several times.
    """
    settings = load_config(config) if config is not None else None
    with readers_may_leave():
        found = rubric_files(settings, rubrics)
        print_list([each.rubric for each in found.values()], console_for(sys.stdout))
    return 0


@rubrics_command.command(name="show")
def show_rubric(
    name: str,
    *,
    trace: Path | None = None,
    subject: str | None = None,
    dataset: Datasets = (),
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
        Recorded traces, in any format Baton reads.
    subject
        The id of the dispatch, turn, run or tool call that is meant; all of them when left out.
    dataset
        Cases that the traces belong to.
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    config
        A config, with its own rubrics and options.
    rubrics
        A file or folder with rubrics of your own. May be given several times.
    """
    settings = load_config(config) if config is not None else None
    with readers_may_leave():
        if trace is not None:
            print_requests(name, trace, subject, dataset, agents, settings, rubrics)
        else:
            found = named(rubric_files(settings, (*rubrics, *files_among([name]))), name)
            print(found.file.read_text(encoding="utf-8"), end="")
    return 0


@rubrics_command.command(name="test")
def try_rubrics(
    *names: str,
    config: ConfigPath = None,
    rubrics: Folders = (),
    judging: JudgeOptions | None = None,
) -> int:
    """Ask a judge the examples of rubrics, and say where it answers otherwise.

    Exit codes: 0 as expected, 1 otherwise, 2 bad input, 3 the judge gave no verdict.

    Parameters
    ----------
    names
        Rubrics to test, or their files; your own when left out.
    config
        A config, with a judge and rubrics of its own.
    rubrics
        A file or folder with rubrics of your own. May be given several times.
    """
    settings = load_config(config) if config is not None else None
    found = rubric_files(settings, (*rubrics, *files_among(names)))
    wanted = [named(found, name) for name in names]
    wanted = wanted or [each for each in found.values() if each.own]
    tested = [each for each in wanted if each.rubric.tests]
    if not tested:
        what = ", ".join(f"`{each.rubric.name}`" for each in wanted) or "a rubric of your own"
        raise InputError(f"no example to test: state `tests` in {what}")
    asked = judge_for(settings, judging or JudgeOptions())
    return asyncio.run(run_tests(tested, asked, sys.stdout))


def calibrated(rubric: Rubric) -> str:
    """Say how far a judge was found to agree with people on this version of a rubric."""
    found = [one for one in kept_calibrations(rubric.name) if one.version == rubric.version]
    if not found:
        return "not calibrated"
    return "; ".join(
        f"{one.model}: kappa {one.kappa.value:.2f}, n {one.n}"
        if one.kappa is not None and not one.lacking
        else f"{one.model}: no evidence, n {one.n}"
        for one in found
    )


def print_list(rubrics: Sequence[Rubric], console: Console) -> None:
    """Print a line for each; three where lines are too short for that, so that names stay whole."""
    heads = ("rubric", "of each", "passes", "version", "calibrated", "answer", "question")
    table = Table(*heads, box=None, pad_edge=False, header_style="bold")
    for rubric in rubrics:
        about = (rubric.name, rubric.unit, _passes(rubric), rubric.version, calibrated(rubric))
        table.add_row(*map(Text, (*about, _answer(rubric), rubric.summary)))
    unbound = console.options.update(max_width=_UNBOUND)
    if console.measure(table, options=unbound).maximum <= console.width:
        console.print(table)
        return
    for rubric in rubrics:
        passes = f"passes {_passes(rubric)}"
        parts = (f"each {rubric.unit}", passes, f"version {rubric.version}", calibrated(rubric))
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


def rubric_evaluator(name: str, settings: Config | None) -> Judged:
    """Return the evaluator that asks a rubric: as the config has it, where it has one.

    Raises:
        InputError: nothing has this name, or it asks no judge.
    """
    for planned in settings.plan.all_evaluators.values() if settings is not None else ():
        evaluator = planned.evaluator
        if name in (evaluator.name, evaluator.type) and isinstance(evaluator, Judged):
            return evaluator
    plan = settings.plan_with([name]) if settings is not None else make_plan([name])
    return judged(plan.evaluators[0].evaluator)


def rubric_of(stored: StoredEvaluation) -> str:
    """Return the rubric that an evaluation was judged by; raises InputError if there isn't one."""
    names = judged_types(stored)
    if len(names) == 1:
        return names[0]
    if not names:
        raise InputError(f"{stored.folder}: nothing was judged by a rubric; say which: --rubric")
    listed = ", ".join(f"`{name}`" for name in names)
    raise InputError(f"{stored.folder}: judged by {listed}; say which one to label by: --rubric")

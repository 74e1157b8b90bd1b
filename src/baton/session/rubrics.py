"""Rubrics: finds built-in and own ones, shows their requests, and tests their examples."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from baton.config import Config
from baton.config.judge_config import JudgeConfig, JudgeFlags, make_judge_of
from baton.evaluators.judged import Judged
from baton.evaluators.judging.rubric import Rubric
from baton.evaluators.judging.rubric_examples import Checked, check_example
from baton.evaluators.judging.rubric_files import FOLDER, load_folders, names_of, shipped
from baton.evaluators.judging.subject import Subject
from baton.evaluators.registry import known_evaluator_names, own_rubrics
from baton.judges.fenced_prompts import prompt_for
from baton.model import EvalContext, InputError, Score, Trace, nearest, suggestion
from baton.model.option_spelling import option
from baton.model.redact import ON
from baton.model.visible import visible_line
from baton.plugins import RUBRIC_SUFFIXES
from baton.readers import iter_traces, load_catalog
from baton.runner.judged_subjects import judged, judged_types
from baton.runner.loop import run_anywhere
from baton.runner.plan import make_plan
from baton.runner.recorded import find_case
from baton.store import StoredEvaluation
from baton.store.calibrations import Calibration, kept_calibrations

from .file_kinds import config_of
from .prepare import Note, PathLike, load_cases, log_note
from .recordings import local_sources


class RubricFile(NamedTuple):
    """A rubric, where it is, and whether it is the user's own."""

    rubric: Rubric
    file: Path
    own: bool


def _files_among(names: Iterable[str]) -> tuple[Path, ...]:
    """Return the names that are files of rubrics."""
    return tuple(Path(name) for name in names if name.endswith(RUBRIC_SUFFIXES))


def rubric_files(
    config: Config | None, folders: Sequence[Path], names: Sequence[str] = ()
) -> dict[str, RubricFile]:
    """Return all rubrics by name, the user's own first; ``names`` may be files of rubrics.

    Raises:
        InputError: a folder does not exist or holds none, a rubric is faulty, or its name is taken.
    """
    of_config = config.rubric_paths if config is not None else ()
    own = load_folders([*of_config, *folders, *_files_among(names)])
    files = {name: RubricFile(rubric, file, True) for name, (rubric, file) in own.items()}
    for name, rubric in shipped().items():
        files[name] = RubricFile(rubric, FOLDER / f"{name}.yaml", False)
    return files


def named_rubric(files: dict[str, RubricFile], name: str) -> RubricFile:
    """Find a rubric by any of its names, or its file; raises InputError with similar names."""
    file = Path(name)
    for each in files.values():
        if name in names_of(each.rubric) or (each.own and each.file == file):
            return each
    known = [known for each in files.values() for known in names_of(each.rubric)]
    # There are dozens: too many for an error message.
    hint = suggestion(name, known) if nearest(name, known) else "`baton rubrics list` shows all"
    raise InputError(f"there is no rubric `{name}`; {hint}")


class ListedRubric(NamedTuple):
    """A rubric, and how far judges were found to agree with people on this version of it."""

    rubric: Rubric
    calibrations: list[Calibration]


def list_rubrics(
    config: PathLike | None = None, folders: Sequence[Path] = ()
) -> list[ListedRubric]:
    """Return all rubrics, the user's own first.

    Args:
        config: a config with rubrics of the user's own.
        folders: files and folders with the user's own rubrics.

    Raises:
        InputError: a folder does not exist or holds none, a rubric is faulty, or its name is taken.
    """
    settings = config_of(config) if config is not None else None
    return [
        ListedRubric(
            rubric, [one for one in kept_calibrations(rubric.name) if one.version == rubric.version]
        )
        for rubric, _, _ in rubric_files(settings, folders).values()
    ]


def text_of_rubric(name: str, config: PathLike | None = None, folders: Sequence[Path] = ()) -> str:
    """Return the text of a rubric's file.

    Args:
        name: a rubric, or its file.
        config: a config with rubrics of the user's own.
        folders: files and folders with the user's own rubrics.

    Raises:
        InputError: there is no such rubric, or one is faulty.
    """
    settings = config_of(config) if config is not None else None
    named = named_rubric(rubric_files(settings, folders, [name]), name)
    return named.file.read_text(encoding="utf-8")


def requests_for(
    name: str,
    file: PathLike,
    *,
    subject: str | None = None,
    dataset: Sequence[str] = (),
    agents: Path | None = None,
    config: PathLike | None = None,
    folders: Sequence[Path] = (),
    note: Note = log_note,
) -> Iterator[str]:
    """Yield the questions to a judge about the traces of a file, as text.

    Args:
        name: a rubric, its file, or an evaluator of the config that uses one.
        file: recorded traces, or conversations of a server (``server://HOST/PROJECT``).
        subject: the id of the only thing to ask about.
        dataset: cases that the traces belong to.
        agents: agent definitions; override those of the config.
        config: a config with options of the rubric, if there is one.
        folders: files and folders with the user's own rubrics.
        note: called with notes of the readers of the traces.

    Raises:
        InputError: no such rubric, no trace, nothing that the rubric can judge, or no such subject.
    """
    settings = config_of(config) if config is not None else None
    evaluator = _evaluator(name, settings, folders)
    definitions = agents or (settings.agents if settings else None)
    catalog = load_catalog(definitions) if definitions is not None else None
    cases = load_cases(list(dataset), settings, catalog) if dataset else None
    context = settings.plan.context if settings is not None else EvalContext()
    redaction = settings.redaction if settings is not None else ON
    errors: list[InputError] = []
    ids: list[str] = []
    shown = 0
    (recording,) = local_sources([os.fspath(file)], note)
    for trace in iter_traces(
        [Path(recording)], agents=catalog, on_problem=errors.append, on_note=note, redact=redaction
    ):
        place = find_case(trace, cases, redaction).position if cases is not None else None
        case = cases.cases[place] if cases is not None and place is not None else None
        for each in evaluator.subjects(trace, redaction.value(case), context):
            ids.append(each.id)
            if subject in (None, each.id):
                shown += 1
                yield "\n".join(_request_lines(evaluator, each))
    problems = [problem for error in errors for problem in error.problems]
    if problems:
        raise InputError(problems)
    if not shown:
        unit = evaluator.rubric.unit
        hint = suggestion(subject, ids) if subject is not None else ""
        raise InputError(
            f"no {unit} `{subject}`; {hint}" if hint else f"{file}: no {unit} to judge"
        )


def _evaluator(name: str, config: Config | None, folders: Sequence[Path]) -> Judged:
    """Return the config's evaluator for a rubric, else one with default options."""
    for planned in config.plan.all_evaluators.values() if config is not None else ():
        evaluator = planned.evaluator
        if isinstance(evaluator, Judged) and name in (evaluator.name, evaluator.type):
            return evaluator
    folders = (*folders, *_files_among([name]))
    own = (*(config.rubrics if config else ()), *(own_rubrics(folders) if folders else ()))
    rubric = named_rubric(rubric_files(config, folders), name).rubric
    asked_as = rubric.name if _files_among([name]) else name
    (planned,) = make_plan([asked_as], rubrics=own).evaluators
    if not isinstance(planned.evaluator, Judged):
        raise InputError(f"`{name}` asks no judge")
    return planned.evaluator


def _request_lines(evaluator: Judged, subject: Subject) -> Iterator[str]:
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


class Answered(NamedTuple):
    """A judge's answer to an example of a rubric."""

    rubric: Rubric
    checked: Checked

    @property
    def outcome(self) -> Literal["as expected", "otherwise", "no verdict"]:
        """Whether the answer is the expected one."""
        if self.checked.problem is None:
            return "as expected"
        score = self.checked.score
        return "otherwise" if score is not None and score.value is not None else "no verdict"


def try_rubrics(
    names: Sequence[str] = (),
    *,
    config: PathLike | None = None,
    rubrics: Sequence[PathLike] = (),
    judge: str | JudgeFlags | None = None,
    on_answer: Callable[[Answered], None] | None = None,
    note: Note = log_note,
) -> list[Answered]:
    """Ask a judge the examples of rubrics, one after the other.

    Args:
        names: rubrics, or their files; by default the user's own.
        config: a config with ``judge:``, and rubrics of its own.
        rubrics: files and folders with the user's own rubrics.
        judge: the judge's model; overrides the config.
        on_answer: called with each answer as soon as it arrives.
        note: called with notes of the readers of traces; by default the logger `baton` warns.

    Raises:
        InputError: no such rubric, none has an example, or no judge is named.
    """
    settings = config_of(config) if config is not None else None
    files = rubric_files(settings, [Path(each) for each in rubrics], names)
    wanted = [named_rubric(files, name) for name in names]
    wanted = wanted or [each for each in files.values() if each.own]
    tested = [each for each in wanted if each.rubric.tests]
    if not tested:
        what = ", ".join(f"`{each.rubric.name}`" for each in wanted) or "a rubric of your own"
        raise InputError(f"no example to test: state `tests` in {what}")
    flags = JudgeFlags(model=judge) if isinstance(judge, str) else judge or JudgeFlags()
    judging = settings.judging if settings is not None else JudgeConfig()
    if flags.model is None and not judging.options.get("model"):
        raise InputError(
            f"no judge to ask: give {option('judge', 'PROVIDER:NAME')}, or a config with `judge:`"
        )
    plan = settings.plan if settings is not None else make_plan(None)

    def read(path: Path) -> Iterator[Trace]:
        return iter_traces([path], on_note=note)

    async def ask() -> list[Answered]:
        answers = []
        async with make_judge_of(judging, flags, plan) as llm:
            for rubric, file, _ in tested:
                for example in rubric.tests:
                    checked = await check_example(rubric, example, llm, read, file.parent)
                    answers.append(Answered(rubric, checked))
                    if on_answer is not None:
                        on_answer(answers[-1])
        return answers

    return run_anywhere(ask())


def rubric_evaluator(name: str, config: Config | None) -> Judged:
    """Return the evaluator for a rubric, with the options of the config if it has it.

    Errors name the option `rubric`, which all functions and commands use.

    Raises:
        InputError: nothing has this name, or it asks no judge.
    """
    for planned in config.plan.all_evaluators.values() if config is not None else ():
        evaluator = planned.evaluator
        if name in (evaluator.name, evaluator.type) and isinstance(evaluator, Judged):
            return evaluator
    try:
        plan = config.plan_with([name]) if config is not None else make_plan([name])
    except InputError:
        _refuse_misspelt(name, config)
        raise
    return judged(plan.evaluators[0].evaluator)


def _refuse_misspelt(name: str, config: Config | None) -> None:
    """Raise InputError if no rubric has this name; files and `module:name` are checked later."""
    if not name.replace("-", "_").isidentifier() or name in known_evaluator_names():
        return
    try:
        named_rubric(rubric_files(config, ()), name)
    except InputError as error:
        (problem,) = error.problems
        raise InputError(f"{option('rubric')}: {problem.message}") from None


def rubric_of(stored: StoredEvaluation) -> str:
    """Return the only rubric of an evaluation; raises InputError if there is none or several."""
    names = judged_types(stored)
    if len(names) == 1:
        return names[0]
    which = f"choose one with {option('rubric')}"
    if not names:
        raise InputError(f"{stored.folder}: no score comes from a rubric; {which}")
    listed = ", ".join(f"`{name}`" for name in names)
    raise InputError(f"{stored.folder}: judged by {listed}; {which}")

"""Requests to a judge, printed as they would be sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from baton.config import Config
from baton.evaluators.judged import Judged
from baton.evaluators.judging.subject import Subject
from baton.judges.prompt import prompt_for
from baton.model import Case, EvalContext, InputError, Score, Trace, suggestion
from baton.model.redact import ON
from baton.model.visible import visible_line
from baton.readers import iter_traces, load_catalog
from baton.runner.pairing import find_case
from baton.runner.plan import make_plan

from .notes import note
from .output import load_cases
from .rubric_files import entries, files_among, named, rubric_files


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
    cases = load_cases(list(dataset), settings, agents) if dataset else None
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

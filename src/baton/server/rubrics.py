"""The rubrics that a server knows: those of its rules, those of its folder, and those that ship."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from baton.evaluators.judged import Judged
from baton.evaluators.judging.load import PLACE, load_rubric, names_of, shipped
from baton.evaluators.judging.rubric import Rubric
from baton.model import InputError, Problem, suggestion
from baton.plugins import RUBRIC_SUFFIXES

from .settings import Settings


class OwnFile(NamedTuple):
    """A file of the folder of rubrics: the rubric in it, or what is wrong with it."""

    file: Path
    rubric: Rubric | None
    problems: tuple[Problem, ...] = ()

    @property
    def name(self) -> str:
        """The name of the rubric; of one with faults that of the file."""
        return self.file.stem if self.rubric is None else self.rubric.name


def own_files(settings: Settings) -> list[OwnFile]:
    """Return what is in the folder of rubrics, by name; nothing where none was named at start.

    Links that lead out of the folder are left out. A rubric with a name that another has (one that
    ships, or one of a file before it) is a fault.
    """
    if settings.rubrics is None:
        return []
    folder = Path(settings.rubrics)
    taken = {name for rubric in shipped().values() for name in names_of(rubric)}
    files = []
    inside = folder.resolve()
    for file in sorted(folder.glob("*")):
        if file.suffix not in RUBRIC_SUFFIXES or file.resolve().parent != inside:
            continue
        try:
            rubric = load_rubric(file)
        except InputError as error:
            files.append(OwnFile(file, None, tuple(error.problems)))
            continue
        twice = next((name for name in names_of(rubric) if name in taken), None)
        if twice is not None:
            problem = Problem(file=str(file), message=f"there is a rubric `{twice}` already")
            files.append(OwnFile(file, None, (problem,)))
            continue
        taken.update(names_of(rubric))
        files.append(OwnFile(file, rubric))
    return files


def rubrics_of_rules(settings: Settings, project: str) -> dict[str, Judged]:
    """Return the evaluators with which rules of a project ask judges, by rubric; the first of each.

    They have the options that the rule states, such as the kinds of dispatches.
    """
    asked: dict[str, Judged] = {}
    for rule in settings.live_rules.rules:
        if rule.spec.project not in (None, project):
            continue
        for part in rule.parts:
            for planned in part.plan.evaluators:
                if isinstance(planned.evaluator, Judged):
                    asked.setdefault(planned.evaluator.type, planned.evaluator)
    return asked


def known_rubrics(settings: Settings, project: str) -> dict[str, Judged]:
    """Return what asks each rubric, by its name: of rules, then of the folder, then others."""
    known = rubrics_of_rules(settings, project)
    own = [each.rubric for each in own_files(settings) if each.rubric is not None]
    for rubric in (*own, *shipped().values()):
        # One with a place for a text of a config asks nothing without that.
        if rubric.name not in known and PLACE not in rubric.prompt:
            known[rubric.name] = Judged(rubric)
    return known


def evaluator_of(settings: Settings, project: str, name: str) -> Judged:
    """Return what asks a rubric, by any of its names.

    Raises:
        InputError: there is none; with the nearest names.
    """
    known = known_rubrics(settings, project)
    for evaluator in known.values():
        if name in (evaluator.type, *names_of(evaluator.shape)):
            return evaluator
    raise InputError(f"there is no rubric `{name}`; {suggestion(name, known)}")

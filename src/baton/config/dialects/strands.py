"""Evaluators of an experiment of Strands, which stand in the file of its cases."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from baton.formats.document import Document, read_bytes
from baton.model import InputError, Problem
from baton.plugins.judged import STRANDS_JUDGED
from baton.runner.plan import EvaluatorSpec, make_plan

_KEYED_BY_NAME = "StateEquals"  # its name is that of the state it looks at
_UNUSED = ("model", "model_id", "system_prompt", "include_inputs", "trace_extractor")
_JUDGED_PARTS = {"InteractionsEvaluator": ("rubric", "interaction_description")}


class Experiment(NamedTuple):
    """What an experiment scores with, and what of that is not done."""

    evaluators: list[EvaluatorSpec]
    notes: list[str]


def read_experiment(path: Path) -> Experiment | None:
    """Read the evaluators of an experiment; ``None`` when the file holds cases alone.

    Raises:
        InputError: an evaluator needs a judge, is not known, or has wrong arguments; with all.
    """
    document = _document(path)
    value = document.value()
    listed = value.get("evaluators") if isinstance(value, dict) else None
    if not listed:
        return None
    if not isinstance(listed, list):
        raise InputError(document.problem_at(("evaluators",), "has to be a list"))
    specs: list[EvaluatorSpec] = []
    notes: list[str] = []
    problems: list[Problem] = []
    for index, each in enumerate(listed):
        place = ("evaluators", index)
        try:
            specs.append(_spec(each, f"{path}: ", notes))
            make_plan(specs[-1:])
        except InputError as error:
            problems += [document.problem_at(place, _worded(problem)) for problem in error.problems]
    if problems:
        raise InputError(problems)
    return Experiment(specs, notes)


def _document(path: Path) -> Document:
    data = read_bytes(path)
    json = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
    return Document(str(path), data, "json" if json else "yaml")


def _spec(wire: Any, place: str, notes: list[str]) -> EvaluatorSpec:
    if not isinstance(wire, dict) or not isinstance(wire.get("evaluator_type"), str):
        raise InputError("an evaluator is an object with `evaluator_type`")
    arguments = {key: value for key, value in wire.items() if key not in _UNUSED}
    kind = str(arguments.pop("evaluator_type"))
    name = arguments.get("name")
    if kind != _KEYED_BY_NAME:
        arguments.pop("name", None)
    if kind in STRANDS_JUDGED:
        raise InputError(f"`{kind}` needs a judge, which Baton does not have yet; take it out")
    for part in _JUDGED_PARTS.get(kind, ()):
        if arguments.pop(part, None) is not None:
            notes.append(f"{place}`{part}` of {kind} needs a judge: visits alone are compared")
    return EvaluatorSpec(type=kind, name=name if isinstance(name, str) else None, config=arguments)


def _worded(problem: Problem) -> str:
    path = problem.path.removeprefix("evaluators[0]").lstrip(".").removeprefix("config.")
    return f"`{path}`: {problem.message}" if path else problem.message

"""Evaluators of a Strands experiment, which are in the same file as its cases."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import structs

from baton.evaluators.registry import STRANDS_JUDGED, evaluator_entry
from baton.formats.document import Document, read_bytes
from baton.model import InputError, Problem
from baton.runner.plan import DataSpec, EvaluatorSpec, make_plan

from .common import judge_model, worded

_TYPES = {"TrajectoryEvaluator": "trajectory"}
"""Names that another evaluator of Baton uses as well."""

_JUDGED_UNUSED = (
    "include_inputs",
    "interaction_description",
    "trace_extractor",
    "trajectory_description",
    "version",
)
# A Bedrock id has at least a vendor and a model (`anthropic.claude-...`), often a region before
# them. `gpt-4o` has no dot, so it is none.
_BEDROCK_PARTS = 2


def rubric_type(kind: str) -> str:
    """Return the rubric that is used for an evaluator of Strands.

    Raises:
        InputError: there is none.
    """
    return evaluator_entry(_TYPES.get(kind, kind)).type


def judged_spec(kind: str, name: str | None, arguments: Mapping[str, Any]) -> EvaluatorSpec:
    """Return an evaluator with the arguments of its class; arguments without effect are left out.

    Raises:
        InputError: Baton has no rubric for it.
    """
    rubric_type(kind)
    options = {key: value for key, value in arguments.items() if key not in _JUDGED_UNUSED}
    model = options.pop("model", None) or options.pop("model_id", None)
    options.pop("model_id", None)
    prompt = options.pop("system_prompt", None)
    if isinstance(model, str):
        options["judge"] = {"model": strands_model(model)}
    if isinstance(prompt, str) and prompt.strip():
        options["prompt"] = prompt
    return EvaluatorSpec(type=_TYPES.get(kind, kind), name=name or kind, config=options)


def strands_model(name: str) -> str:
    """Return a model by the name that Baton uses; a plain id is a Bedrock model, as in Strands.

    ``us.anthropic.claude-sonnet-4-20250514-v1:0`` is ``bedrock:us.anthropic...``.
    """
    dotted = len(name.partition(":")[0].split(".")) >= _BEDROCK_PARTS and "/" not in name
    return f"bedrock:{name}" if dotted else judge_model(name)


_KEYED_BY_NAME = "StateEquals"  # its name is that of the state it checks
_UNUSED = (
    "include_inputs",
    "model",
    "model_id",
    "system_prompt",
    "trace_extractor",
)


def read_experiment(path: Path) -> list[DataSpec] | None:
    """Read the evaluators of an experiment; ``None`` when the file has only cases.

    Raises:
        InputError: an evaluator is unknown, names code or an address, or has wrong arguments; the
            message lists every problem.
    """
    data = read_bytes(path)
    json = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
    document = Document(str(path), data, "json" if json else "yaml")
    value = document.value()
    listed = value.get("evaluators") if isinstance(value, dict) else None
    if not listed:
        return None
    if not isinstance(listed, list):
        raise InputError(document.problem_at(("evaluators",), "has to be a list"))
    specs: list[DataSpec] = []
    problems: list[Problem] = []
    for index, each in enumerate(listed):
        place = ("evaluators", index)
        try:
            spec = DataSpec(**structs.asdict(_spec(each)))
            make_plan([spec])
            specs.append(spec)
        except InputError as error:
            problems += [document.problem_at(place, worded(problem)) for problem in error.problems]
    if problems:
        raise InputError(problems)
    return specs


def _spec(wire: Any) -> EvaluatorSpec:
    if not isinstance(wire, dict) or not isinstance(wire.get("evaluator_type"), str):
        raise InputError("an evaluator is an object with `evaluator_type`")
    arguments = dict(wire)
    kind = str(arguments.pop("evaluator_type"))
    stated_name = arguments.get("name")
    name = stated_name if isinstance(stated_name, str) else None
    if kind != _KEYED_BY_NAME:
        arguments.pop("name", None)
    if kind in STRANDS_JUDGED:
        return judged_spec(kind, name, arguments)
    plain = {key: value for key, value in arguments.items() if key not in _UNUSED}
    return EvaluatorSpec(type=kind, name=name, config=plain)

"""Criteria of ADK: ``test_config.json`` beside eval sets, or a file of another name."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec

from baton.formats.document import Document, read_bytes
from baton.formats.spelling import snake
from baton.model import InputError, Problem, suggestion
from baton.runner.plan import EvaluatorSpec, make_plan

FILE_NAME = "test_config.json"
DEFAULT_CRITERIA = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
_KEYS = ("criteria", "custom_metrics", "user_simulator_config", "live_model_config")
_OPTIONS = {
    "tool_trajectory_avg_score": ("match_type", "ignore_args"),
    "response_match_score": (),
}
_JUDGED = (
    "final_response_match_v2",
    "hallucinations_v1",
    "multi_turn_task_success_v1",
    "multi_turn_tool_use_quality_v1",
    "multi_turn_trajectory_quality_v1",
    "per_turn_user_simulator_quality_v1",
    "response_evaluation_score",
    "rubric_based_final_response_quality_v1",
    "rubric_based_multi_turn_trajectory_quality_v1",
    "rubric_based_tool_use_quality_v1",
    "safety_v1",
)
_COMMON = ("threshold", "include_intermediate_responses_in_final")


def read_criteria(path: Path) -> list[EvaluatorSpec]:
    """Read a file of criteria; every metric becomes a spec under its own name.

    Raises:
        InputError: the file is missing or broken, or asks for a metric that Baton cannot score.
    """
    document = Document(str(path), read_bytes(path), "json")
    value = document.value()
    if not isinstance(value, dict):
        raise InputError(document.problem("an object with `criteria` is expected"))
    problems = [
        document.problem_at((key,), f"unknown key; {suggestion(str(key), _KEYS)}")
        for key in value
        if snake(str(key)) not in _KEYS
    ]
    plain = {snake(str(key)): (key, item) for key, item in value.items()}
    if plain.get("custom_metrics", ("", None))[1]:
        key = plain["custom_metrics"][0]
        problems.append(document.problem_at((key,), "custom metrics of ADK are not run"))
    key, criteria = plain.get("criteria", ("criteria", DEFAULT_CRITERIA))
    if not isinstance(criteria, dict) or not criteria:
        problems.append(document.problem_at((key,), "has to name at least one metric"))
        criteria = {}
    specs = []
    for name, criterion in criteria.items():
        try:
            specs.append(_spec(str(name), criterion))
            make_plan(specs[-1:])
        except InputError as error:
            problems += [document.problem_at((key, name), p.message) for p in error.problems]
    if problems:
        raise InputError(problems)
    return specs


def default_criteria() -> list[EvaluatorSpec]:
    """Return what ADK scores when nobody says what to."""
    return [_spec(name, threshold) for name, threshold in DEFAULT_CRITERIA.items()]


def _spec(name: str, criterion: Any) -> EvaluatorSpec:
    if name in _JUDGED:
        raise InputError(f"`{name}` needs a judge, which Baton does not have yet; take it out")
    if name not in _OPTIONS:
        raise InputError(f"unknown metric; {suggestion(name, [*_OPTIONS, *_JUDGED])}")
    if not isinstance(criterion, dict):
        return EvaluatorSpec(type=name, config={"threshold": _number(criterion)})
    plain = {snake(str(key)): item for key, item in criterion.items()}
    if "threshold" not in plain:
        raise InputError("`threshold` is missing")
    allowed = _OPTIONS[name]
    known = (*_COMMON, *allowed)
    unknown = [key for key in plain if key not in known]
    if unknown:
        raise InputError(
            Problem(message=f"unknown key `{key}`; {suggestion(key, known)}") for key in unknown
        )
    if plain.get("include_intermediate_responses_in_final"):
        raise InputError("`include_intermediate_responses_in_final` is not supported")
    options = {key: plain[key] for key in allowed if key in plain}
    return EvaluatorSpec(type=name, config={**options, "threshold": _number(plain["threshold"])})


def _number(value: Any) -> float:
    try:
        number = msgspec.convert(value, float, strict=False)
    except msgspec.ValidationError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"the threshold has to be a number, got {value!r}")
    return number

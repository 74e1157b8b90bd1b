"""Criteria of ADK that ask a judge, as options of Baton's rubrics of the same names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from baton.formats.spelling import snake
from baton.model import InputError, Problem, suggestion

from .judge_models import judge_model

_RUBRICS = (
    "rubric_based_final_response_quality_v1",
    "rubric_based_multi_turn_trajectory_quality_v1",
    "rubric_based_tool_use_quality_v1",
)
_ONE_ANSWER = {
    "final_response_match_v2": ["request", "history", "answers", "reference"],
    "response_evaluation_score": ["request", "history", "answers", "reference?"],
    "rubric_based_final_response_quality_v1": [
        "request", "history", "answers", "tool_calls?", "instructions?",
    ],
    "safety_v1": ["request", "history", "answers"],
}  # fmt: skip
"""What those that look at the answer are shown, with all that was said on the way."""

_COMMON = ("threshold", "include_intermediate_responses_in_final", "judge_model_options")
_MORE = {
    "hallucinations_v1": ("evaluate_intermediate_nl_responses",),
    "per_turn_user_simulator_quality_v1": ("stop_signal",),
    **dict.fromkeys(_RUBRICS, ("rubrics",)),
}
_JUDGE = ("judge_model", "judge_model_config", "num_samples", "parallelism_limit")
_GENERATION = {"temperature": "temperature", "max_output_tokens": "max_tokens"}
_RUBRIC = ("rubric_id", "rubric_content", "description", "type")


def judged_options(name: str, criterion: Mapping[str, Any]) -> dict[str, Any]:
    """Return options for a criterion that is an object, its threshold apart.

    Raises:
        InputError: a key or a value that ADK does not have, or that Baton cannot follow.
    """
    plain = _plain(criterion, (*_COMMON, *_MORE.get(name, ())))
    options: dict[str, Any] = {}
    if plain.get("include_intermediate_responses_in_final"):
        if name not in _ONE_ANSWER:
            raise InputError("`include_intermediate_responses_in_final` means nothing here")
        options["inputs"] = _ONE_ANSWER[name]
    if "evaluate_intermediate_nl_responses" in plain:
        options["evaluate_intermediate_nl_responses"] = plain["evaluate_intermediate_nl_responses"]
    if plain.get("rubrics"):
        options["rubrics"] = _statements(plain["rubrics"])
    return options | _judge(plain.get("judge_model_options") or {})


def _judge(told: Any) -> dict[str, Any]:
    if not isinstance(told, Mapping):
        raise InputError("`judge_model_options` has to be an object")
    plain = _plain(told, _JUDGE)
    options: dict[str, Any] = {}
    judge: dict[str, Any] = {}
    if plain.get("judge_model"):
        judge["model"] = judge_model(str(plain["judge_model"]))
    if plain.get("judge_model_config"):
        generation = _plain(plain["judge_model_config"], tuple(_GENERATION))
        judge |= {_GENERATION[key]: value for key, value in generation.items()}
    if "num_samples" in plain:
        options["samples"] = plain["num_samples"]
    return {**options, "judge": judge} if judge else options


def _statements(told: Any) -> list[dict[str, Any]]:
    if not isinstance(told, list):
        raise InputError("`rubrics` has to be a list")
    found = []
    for rubric in told:
        if not isinstance(rubric, Mapping):
            raise InputError("a rubric is an object with `rubric_id` and `rubric_content`")
        plain = _plain(rubric, _RUBRIC)
        content = plain.get("rubric_content")
        said = _plain(content, ("text_property",)) if isinstance(content, Mapping) else {}
        text = said.get("text_property")
        if not isinstance(text, str) or not text.strip():
            raise InputError("a rubric needs `rubric_content` with a `text_property`")
        found.append({"text": text, "id": plain.get("rubric_id"), "type": plain.get("type")})
    return found


def _plain(value: Mapping[Any, Any], known: Collection[str]) -> dict[str, Any]:
    plain = {snake(str(key)): item for key, item in value.items()}
    unknown = [key for key in plain if key not in known]
    if unknown:
        raise InputError(
            Problem(message=f"unknown key `{key}`; {suggestion(key, known)}") for key in unknown
        )
    return plain

"""Evaluators of Strands that ask a judge, as Baton's rubrics of the same purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.plugins import evaluator_entry
from baton.runner.plan import EvaluatorSpec

from .judge_models import judge_model

VISITS = "InteractionsEvaluator"
_TYPES = {"TrajectoryEvaluator": "trajectory", VISITS: "interaction_quality"}
"""Names that another evaluator of Baton has as well."""

_UNUSED = ("include_inputs", "trace_extractor", "trajectory_description", "version")
_BEDROCK_PARTS = 2


def rubric_type(kind: str) -> str:
    """Return the name of the rubric that stands for an evaluator of Strands.

    Raises:
        InputError: Baton has none for it.
    """
    return evaluator_entry(_TYPES.get(kind, kind)).type


def judged_spec(kind: str, name: str | None, arguments: Mapping[str, Any]) -> EvaluatorSpec:
    """Return an evaluator with the arguments of its class; what changes nothing is left out.

    Raises:
        InputError: Baton has no rubric that stands for it.
    """
    rubric_type(kind)
    options = {key: value for key, value in arguments.items() if key not in _UNUSED}
    model = options.pop("model", None) or options.pop("model_id", None)
    options.pop("model_id", None)
    prompt = options.pop("system_prompt", None)
    if isinstance(model, str):
        options["judge"] = {"model": strands_model(model)}
    if isinstance(prompt, str) and prompt.strip():
        options["prompt"] = prompt
    return EvaluatorSpec(type=_TYPES.get(kind, kind), name=name or kind, config=options)


def strands_model(name: str) -> str:
    """Return a model as Baton names it; a plain id is one of Bedrock, as in Strands.

    ``us.anthropic.claude-sonnet-4-20250514-v1:0`` is ``bedrock:us.anthropic...``.
    """
    dotted = len(name.partition(":")[0].split(".")) >= _BEDROCK_PARTS and "/" not in name
    return f"bedrock:{name}" if dotted else judge_model(name)

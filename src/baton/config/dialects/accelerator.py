"""``evaluatorConfig`` of AWS's agentic-chatbot accelerator, in a config of its own or in ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from baton.formats.document import Document
from baton.formats.spelling import snake
from baton.model import InputError

from .strands import rubric_type, strands_model

KEY = "evaluatorConfig"
DEFAULT_THRESHOLD = 0.8
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class EvaluatorConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The section; a case passes when the mean of its scores reaches ``pass_threshold``."""

    supported_models: dict[str, str] = msgspec.field(default_factory=dict)
    pass_threshold: Share = DEFAULT_THRESHOLD
    default_rubrics: dict[str, str] = msgspec.field(default_factory=dict)


def translate(
    document: Document, value: dict[str, Any], ours: tuple[str, ...]
) -> tuple[dict[str, Any], list[str]]:
    """Say in our words what ``evaluatorConfig`` says; also return what of it is not used.

    ``ours`` are the keys of our configs. Beside none of them, the file is the accelerator's own,
    and its other sections are about deploying it.

    Raises:
        InputError: the section has faults, or the file says twice when a case passes.
    """
    key = next((str(key) for key in value if snake(str(key)) == snake(KEY)), None)
    if key is None:
        return value, []
    if not isinstance(value[key], dict):
        raise InputError(document.problem_at((key,), "has to be a mapping"))
    section = document.convert(value[key], EvaluatorConfig, path=(key,))
    rest = {name: item for name, item in value.items() if name != key}
    notes = []
    if not set(map(str, rest)) & set(ours):
        if rest:
            names = ", ".join(f"`{name}`" for name in rest)
            notes.append(f"not read, as they are about the accelerator itself: {names}")
        rest = {}
    if "pass_rule" in rest:
        message = f"`{key}` says when a case passes as well: leave one of them out"
        raise InputError(document.problem_at(("pass_rule",), message))
    rest = _with_rubrics(rest, section.default_rubrics, notes)
    if section.supported_models and "judge" not in rest:
        model = strands_model(next(iter(section.supported_models.values())))
        rest["judge"] = {"model": model}
        notes.append(f"judges are `{model}`, the first of `supportedModels`; `judge:` says another")
    return {**rest, "pass_rule": {"mean": section.pass_threshold}}, notes


def _with_rubrics(
    value: dict[str, Any], rubrics: Mapping[str, str], notes: list[str]
) -> dict[str, Any]:
    """Give evaluators that ask a judge, and state no rubric, the default one for their class."""
    listed = value.get("evaluators")
    if not rubrics or not isinstance(listed, list):
        if rubrics:
            names = ", ".join(f"`{name}`" for name in rubrics)
            notes.append(f"default rubrics are for evaluators that are asked for: {names}")
        return value
    return {**value, "evaluators": [_filled(one, rubrics) for one in listed]}


def _filled(spec: Any, rubrics: Mapping[str, str]) -> Any:
    plain = {"type": spec} if isinstance(spec, str) else spec
    kind = plain.get("type") if isinstance(plain, dict) else None
    rubric = rubrics.get(str(kind))
    if rubric is None or not isinstance(plain, dict):
        return spec
    return {
        **plain,
        "type": rubric_type(str(kind)),
        "name": plain.get("name", kind),
        "config": {"rubric": rubric, **(plain.get("config") or {})},
    }

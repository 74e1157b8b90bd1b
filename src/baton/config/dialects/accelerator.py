"""``evaluatorConfig`` of AWS's agentic-chatbot accelerator, in its own config or Baton's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import msgspec

from baton.formats.document import Document
from baton.formats.key_case import snake
from baton.model import InputError, Problem, nearest, suggestion

from .strands import rubric_type, strands_model

KEY = "evaluatorConfig"
# The default of the accelerator, whose configs have to give the same verdicts here.
DEFAULT_THRESHOLD = 0.8
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class EvaluatorConfig(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The section; a case passes when the mean of its scores reaches ``pass_threshold``."""

    supported_models: dict[str, str] = msgspec.field(default_factory=dict)
    pass_threshold: Share = DEFAULT_THRESHOLD
    default_rubrics: dict[str, str] = msgspec.field(default_factory=dict)


class Translated(NamedTuple):
    """A config in Baton's terms, the keys that are not used, and models by their labels."""

    value: dict[str, Any]
    notes: list[str]
    models: dict[str, str]


def translate(document: Document, value: dict[str, Any], ours: tuple[str, ...]) -> Translated:
    """Translate ``evaluatorConfig`` into Baton's terms.

    ``ours`` are the keys of Baton's configs. The other sections of the accelerator's config are
    about deployment: they are ignored, and a note names them.

    Raises:
        InputError: the section has errors or two pass thresholds, or a judge is an unknown label or
            a model without its region.
    """
    key = next((str(key) for key in value if snake(str(key)) == snake(KEY)), None)
    if key is None:
        return Translated(value, [], {})
    if not isinstance(value[key], dict):
        raise InputError(document.problem_at((key,), "has to be a mapping"))
    section = document.convert(value[key], EvaluatorConfig, path=(key,))
    rest = {name: item for name, item in value.items() if name != key}
    notes = []
    theirs = [name for name in rest if _is_theirs(str(name), ours, alone=not {*rest} & {*ours})]
    if theirs:
        names = ", ".join(f"`{name}`" for name in theirs)
        notes.append(f"not read, as they are about the accelerator itself: {names}")
        rest = {name: item for name, item in rest.items() if name not in theirs}
    if "pass_rule" in rest:
        message = f"`{key}` also decides when a case passes: leave one of them out"
        raise InputError(document.problem_at(("pass_rule",), message))
    rest = _with_rubrics(rest, section.default_rubrics, notes)
    models = {label: strands_model(name) for label, name in section.supported_models.items()}
    if models and "judge" not in rest:
        label, model = next(iter(models.items()))
        if not _REGION.search(model):
            rest["judge"] = {"model": model}
            notes.append(
                f"judges are `{label}` (`{model}`), the first of `supportedModels`; `judge:` can "
                "name another, also by its label"
            )
    without = {label: model for label, model in models.items() if _REGION.search(model)}
    if without:
        what = _no_region("`, `".join(without), next(iter(without.values())))
        it = "it" if len(without) == 1 else "they"
        notes.append(f"`supportedModels`: {what}; until then {it} cannot be a judge")
    problems: list[Problem] = []
    for name in ("judge", "evaluators"):
        if name in rest:
            rest[name] = _labelled(document, rest[name], models, (name,), problems)
    if problems:
        raise InputError(problems)
    return Translated({**rest, "pass_rule": {"mean": section.pass_threshold}}, notes, models)


_CAPITAL = re.compile("[A-Z]")
# How similar a key has to be to one of Baton's to be its misspelling (difflib): `failFsat` is 0.89
# like `fail_fast`, `agentRuntimeConfig` 0.58 like `agent_names`.
_MISSPELT = 0.75


def _is_theirs(name: str, ours: tuple[str, ...], *, alone: bool) -> bool:
    """Tell whether a key is a section of the accelerator.

    In a file without any key of Baton, all keys are. Beside Baton's keys, theirs are `prefix` and
    those in camel case like `toolRegistry`; `failFsat` is Baton's key, misspelt.
    """
    if alone:
        return True
    if snake(name) in ours or nearest(snake(name), ours, cutoff=_MISSPELT):
        return False
    return name == "prefix" or _CAPITAL.search(name) is not None


_REGION = re.compile(r"[\[<{]\s*region[-_ ]?prefix\s*[\]>}]", re.IGNORECASE)
"""The placeholder in the accelerator's guide for a part of a model's name that a deployment fills
in, `[REGION-PREFIX]`, also as people write it themselves: `<region-prefix>`, `{REGION_PREFIX}`.
"""
_MODEL_KEYS = ("model", "models", "fallback")


def _no_region(label: str, model: str) -> str:
    found = _REGION.search(model)
    placeholder = found[0] if found else ""
    example = _REGION.sub("eu", model.removeprefix("bedrock:"))
    return (
        f"replace the placeholder `{placeholder}` of `{label}` with the region of the model: `us`, "
        f"`eu`, `apac` or `global`, such as `{example}`"
    )


def model_of_label(name: str, models: Mapping[str, str]) -> str:
    """Return the model of a label in ``supportedModels``; any other name is returned unchanged.

    Raises:
        InputError: neither a label nor a model, or a model without its region.
    """
    model = models.get(name, name)
    if _REGION.search(model):
        raise InputError(_no_region(name, model))
    if name not in models and models and ":" not in name:
        raise InputError(
            f"`{name}` is not a label in `supportedModels`; {suggestion(name, models)}"
        )
    return model


def _labelled(
    document: Document,
    value: Any,
    models: Mapping[str, str],
    path: tuple[str | int, ...],
    problems: list[Problem],
) -> Any:
    """Replace labels by models wherever a judge is named."""
    if isinstance(value, dict):
        return {
            key: _labelled(document, item, models, (*path, key), problems)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [
            _labelled(document, item, models, (*path, index), problems)
            for index, item in enumerate(value)
        ]
    names = [part for part in path if isinstance(part, str)]
    if not isinstance(value, str) or names[-1] not in _MODEL_KEYS:
        return value
    try:
        return model_of_label(value, models)
    except InputError as error:
        problems += [document.problem_at(path, problem.message) for problem in error.problems]
        return value


def _with_rubrics(
    value: dict[str, Any], rubrics: Mapping[str, str], notes: list[str]
) -> dict[str, Any]:
    """Give judged evaluators without a rubric the default rubric of their class."""
    listed = value.get("evaluators")
    if not rubrics or not isinstance(listed, list):
        if rubrics:
            names = ", ".join(f"`{name}`" for name in rubrics)
            notes.append(f"default rubrics apply only to requested evaluators: {names}")
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

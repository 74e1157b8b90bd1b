"""A rubric with parts replaced by options of a config."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from baton.model import InputError, Problem

from .inputs import Missing
from .load import checked_rubric
from .options import RubricOptions
from .rubric import Rubric
from .subject import Subject

PLACE = "{rubric}"
_CHECKS = {
    "reference": "response",
    "assertion": "rubrics",
    "expected_tools": "tools",
    "expected_agents": "agents",
    "expected_dispatches": "dispatches",
    "expected_visits": "interactions",
    "expected_state": "final_state",
}


def revised(rubric: Rubric, options: RubricOptions) -> Rubric:
    """Return the rubric that options make of it; another question has another version.

    Raises:
        InputError: parts that do not go together, a text that has no place or is missing.
    """
    changes: dict[str, Any] = dict(options.parts)
    for name in ("threshold", "report", "samples", "direction", "kinds"):
        if getattr(options, name) is not None:
            changes[name] = getattr(options, name)
    _check_text(changes.get("prompt", rubric.prompt), options)
    asked = [options.parts, options.rubric, options.rubrics]
    if any(asked):
        digest = hashlib.sha256(
            msgspec.json.encode([rubric.version, *asked], order="deterministic")
        ).hexdigest()
        changes["version"] = f"{rubric.version}+{digest[:8]}"
    if not changes:
        return rubric
    return checked_rubric(msgspec.structs.replace(rubric, **changes), ("config",))


def rubric_text(options: RubricOptions, subject: Subject) -> str | Missing | None:
    """Return the text for ``{rubric}``: the one there is, or that of the agent in question."""
    if not isinstance(options.rubric, dict):
        return options.rubric
    for name in sorted(subject.names):
        if name in options.rubric:
            return options.rubric[name]
    return Missing(f"no rubric for `{subject.agent}` among those of the config")


def checks_of(rubric: Rubric) -> frozenset[str]:
    """Return what a case may state that a rubric looks at."""
    found = {_CHECKS[name] for name, _ in rubric.wanted if name in _CHECKS}
    each = rubric.answer.each
    return frozenset(found | ({"rubrics"} if each is not None and not each.items else set()))


def _check_text(prompt: str, options: RubricOptions) -> None:
    message = None
    if PLACE in prompt and not options.rubric:
        message = "the text to judge by is missing"
    if PLACE not in prompt and options.rubric is not None:
        message = f"the prompt has no place for it: `{PLACE}`"
    if message is not None:
        raise InputError(Problem(path="config.rubric", message=message))

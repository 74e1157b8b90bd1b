"""Criteria that judge by rubrics, and have none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from baton.formats.spelling import snake

from .scope import CriteriaFile, Scope
from .warning import LintWarning

NAME = "no-rubrics"
_TYPES = {
    "rubric_based_final_response_quality_v1": "FINAL_RESPONSE_QUALITY",
    "rubric_based_tool_use_quality_v1": "TOOL_USE_QUALITY",
    "rubric_based_multi_turn_trajectory_quality_v1": "TRAJECTORY_QUALITY",
}


def missing_rubrics(scope: Scope) -> Iterator[LintWarning]:
    """Warn of a rubric metric without rubrics of its own, or of its type in any case."""
    for file in scope.criteria:
        value = file.document.value()
        top = value if isinstance(value, dict) else {}
        key = next((key for key in top if snake(str(key)) == "criteria"), None)
        criteria = top[key] if key is not None else None
        for name, criterion in criteria.items() if isinstance(criteria, dict) else ():
            if name in _TYPES and not _rubrics(criterion):
                types = _types_in_cases(file)
                if _TYPES[name] not in types:
                    yield LintWarning(
                        file=file.document.file,
                        line=file.document.line((str(key), name)),
                        rule=NAME,
                        what=f"`{name}` has no `rubrics`{_in_cases(types, _TYPES[name])}: "
                        "ADK evaluates nothing then",
                        remedy="write it as an object with `threshold` and `rubrics`",
                    )


def _rubrics(criterion: Any) -> Any:
    if not isinstance(criterion, dict):
        return None
    return next((item for key, item in criterion.items() if snake(str(key)) == "rubrics"), None)


def _types_in_cases(file: CriteriaFile) -> set[str | None]:
    return {
        rubric.type
        for cases in file.scores
        for case in cases.cases
        for rubric in (*case.rubrics, *(r for turn in case.turns for r in turn.rubrics or ()))
    }


def _in_cases(types: set[str | None], wanted: str) -> str:
    if types:
        return f", and rubrics of cases count only with `type` {wanted}"
    return ", nor has a case"

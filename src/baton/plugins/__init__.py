"""What can be named in a config, and where it lives."""

from .entry import Alias, Entry
from .evaluators import EVALUATORS
from .origins import (
    FROM_CASES,
    FROM_CONFIGS,
    FROM_FILES,
    JUDGE_FROM_FILES,
    Origin,
    names_code,
    refused_options,
)
from .registry import (
    BACKENDS,
    REPORTERS,
    RUBRIC_SUFFIXES,
    all_evaluators,
    backend_entry,
    evaluator_entry,
    evaluator_of_type,
    known_evaluator_names,
    own_rubrics,
    reporter_entry,
    resolve,
    resolve_target,
    rubric_entries,
)

__all__ = [
    "BACKENDS",
    "EVALUATORS",
    "FROM_CASES",
    "FROM_CONFIGS",
    "FROM_FILES",
    "JUDGE_FROM_FILES",
    "REPORTERS",
    "RUBRIC_SUFFIXES",
    "Alias",
    "Entry",
    "Origin",
    "all_evaluators",
    "backend_entry",
    "evaluator_entry",
    "evaluator_of_type",
    "known_evaluator_names",
    "names_code",
    "own_rubrics",
    "refused_options",
    "reporter_entry",
    "resolve",
    "resolve_target",
    "rubric_entries",
]

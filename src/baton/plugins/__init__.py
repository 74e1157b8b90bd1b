"""What can be named in a config, and where it lives."""

from .alias import Alias
from .entry import Entry
from .evaluators import EVALUATORS
from .registry import (
    BACKENDS,
    PROVIDERS,
    REPORTERS,
    RUBRIC_SUFFIXES,
    all_evaluators,
    backend_entry,
    evaluator_entry,
    evaluator_of_type,
    known_evaluator_names,
    own_rubrics,
    provider_entry,
    reporter_entry,
    resolve,
    resolve_target,
    rubric_entries,
)

__all__ = [
    "BACKENDS",
    "EVALUATORS",
    "PROVIDERS",
    "REPORTERS",
    "RUBRIC_SUFFIXES",
    "Alias",
    "Entry",
    "all_evaluators",
    "backend_entry",
    "evaluator_entry",
    "evaluator_of_type",
    "known_evaluator_names",
    "own_rubrics",
    "provider_entry",
    "reporter_entry",
    "resolve",
    "resolve_target",
    "rubric_entries",
]

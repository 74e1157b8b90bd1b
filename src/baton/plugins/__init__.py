"""What can be named in a config, and where it lives."""

from .data_limits import (
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
    RUBRIC_SUFFIXES,
    Alias,
    Entry,
    backend_entry,
    resolve,
    resolve_target,
)

__all__ = [
    "BACKENDS",
    "FROM_CASES",
    "FROM_CONFIGS",
    "FROM_FILES",
    "JUDGE_FROM_FILES",
    "RUBRIC_SUFFIXES",
    "Alias",
    "Entry",
    "Origin",
    "backend_entry",
    "names_code",
    "refused_options",
    "resolve",
    "resolve_target",
]

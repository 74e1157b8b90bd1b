"""What can be named in a config, and where it lives."""

from .entry import Alias, Entry
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
    backend_entry,
    reporter_entry,
    resolve,
    resolve_target,
)

__all__ = [
    "BACKENDS",
    "FROM_CASES",
    "FROM_CONFIGS",
    "FROM_FILES",
    "JUDGE_FROM_FILES",
    "REPORTERS",
    "RUBRIC_SUFFIXES",
    "Alias",
    "Entry",
    "Origin",
    "backend_entry",
    "names_code",
    "refused_options",
    "reporter_entry",
    "resolve",
    "resolve_target",
]

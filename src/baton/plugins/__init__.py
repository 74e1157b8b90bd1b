"""What can be named in a config, and what data files may name."""

from .data_limits import (
    FROM_CASES,
    FROM_CONFIGS,
    FROM_FILES,
    JUDGE_FROM_FILES,
    Origin,
    names_code,
    refused_by_name,
    refused_options,
)
from .registry import (
    RUBRIC_SUFFIXES,
    Alias,
    Entry,
    is_installed,
    module_names,
)

__all__ = [
    "FROM_CASES",
    "FROM_CONFIGS",
    "FROM_FILES",
    "JUDGE_FROM_FILES",
    "RUBRIC_SUFFIXES",
    "Alias",
    "Entry",
    "Origin",
    "is_installed",
    "module_names",
    "names_code",
    "refused_by_name",
    "refused_options",
]

"""What can be named in a config, and where it lives."""

from .alias import Alias
from .entry import Entry
from .evaluators import EVALUATORS
from .registry import (
    PROVIDERS,
    REPORTERS,
    evaluator_entry,
    known_evaluator_names,
    provider_entry,
    reporter_entry,
    resolve,
)

__all__ = [
    "EVALUATORS",
    "PROVIDERS",
    "REPORTERS",
    "Alias",
    "Entry",
    "evaluator_entry",
    "known_evaluator_names",
    "provider_entry",
    "reporter_entry",
    "resolve",
]

"""Baton tests what happens when AI agents hand work to one another.

Names are imported when they are first used: ``import baton`` itself costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baton.api import aevaluate, evaluate, iter_traces, load_dataset, load_traces, score
    from baton.model import (
        BatonError,
        Case,
        CaseResult,
        Dataset,
        Evaluation,
        InputError,
        Score,
        Trace,
        known,
    )

__version__ = "0.1.0"

__all__ = [
    "BatonError",
    "Case",
    "CaseResult",
    "Dataset",
    "Evaluation",
    "InputError",
    "Score",
    "Trace",
    "aevaluate",
    "evaluate",
    "iter_traces",
    "known",
    "load_dataset",
    "load_traces",
    "score",
]

_FUNCTIONS = {"aevaluate", "evaluate", "iter_traces", "load_dataset", "load_traces", "score"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module `baton` has no attribute `{name}`")
    module = importlib.import_module("baton.api" if name in _FUNCTIONS else "baton.model")
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

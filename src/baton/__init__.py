"""Baton tests what happens when AI agents hand work to one another.

Names are imported when they are first used: ``import baton`` itself costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baton.datasets import load_dataset
    from baton.model import (
        BatonError,
        Case,
        CaseResult,
        Dataset,
        InputError,
        Score,
        Trace,
        known,
    )
    from baton.readers import iter_traces, load_traces
    from baton.session.evaluate import aevaluate, evaluate
    from baton.session.evaluation import Evaluation
    from baton.session.score import score

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

_MODULES = {
    "Evaluation": "baton.session.evaluation",
    "aevaluate": "baton.session.evaluate",
    "evaluate": "baton.session.evaluate",
    "iter_traces": "baton.readers",
    "load_dataset": "baton.datasets",
    "load_traces": "baton.readers",
    "score": "baton.session.score",
}
"""Where a public name is; all others are in ``baton.model``."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module `baton` has no attribute `{name}`")
    return getattr(importlib.import_module(_MODULES.get(name, "baton.model")), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

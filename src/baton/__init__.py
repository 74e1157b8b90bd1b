"""Baton tests what happens when AI agents hand work to one another.

Names are imported on first use, so that ``import baton`` is fast.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 11):  # noqa: UP036 - any Python can import it from a folder
    raise ImportError(f"Baton needs Python 3.11 or later; this is {sys.version.split()[0]}")

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
    from baton.providers.recorder import (
        agent,
        record_agent,
        record_dispatch,
        record_turn,
        tool,
    )
    from baton.readers import iter_traces, load_traces
    from baton.session.apply import apply_improvement
    from baton.session.baselines import open_baseline, set_baseline
    from baton.session.calibrate import calibrate
    from baton.session.check import check
    from baton.session.compare import compare, compare_case, trend
    from baton.session.components import list_components
    from baton.session.convert import convert, draft, draft_dispatches
    from baton.session.evaluate import aevaluate, evaluate, resume
    from baton.session.evaluation import Evaluation
    from baton.session.export import export_recordings
    from baton.session.guard import check_policy, suggest_policy, try_policy
    from baton.session.improve import estimate_improvement, improve
    from baton.session.improve_rubric import estimate_rubric, improve_rubric
    from baton.session.init import init
    from baton.session.label import label
    from baton.session.pull import pull_traces
    from baton.session.replay import replay
    from baton.session.report import report
    from baton.session.rubrics import try_rubrics
    from baton.session.score import score
    from baton.session.server_client import connect

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
    "agent",
    "apply_improvement",
    "calibrate",
    "check",
    "check_policy",
    "compare",
    "compare_case",
    "connect",
    "convert",
    "draft",
    "draft_dispatches",
    "estimate_improvement",
    "estimate_rubric",
    "evaluate",
    "export_recordings",
    "improve",
    "improve_rubric",
    "init",
    "iter_traces",
    "known",
    "label",
    "list_components",
    "load_dataset",
    "load_traces",
    "open_baseline",
    "pull_traces",
    "record_agent",
    "record_dispatch",
    "record_turn",
    "replay",
    "report",
    "resume",
    "score",
    "set_baseline",
    "suggest_policy",
    "tool",
    "trend",
    "try_policy",
    "try_rubrics",
]

_MODULES = {
    "Evaluation": "baton.session.evaluation",
    "aevaluate": "baton.session.evaluate",
    "agent": "baton.providers.recorder",
    "apply_improvement": "baton.session.apply",
    "calibrate": "baton.session.calibrate",
    "check": "baton.session.check",
    "check_policy": "baton.session.guard",
    "compare": "baton.session.compare",
    "compare_case": "baton.session.compare",
    "connect": "baton.session.server_client",
    "convert": "baton.session.convert",
    "draft": "baton.session.convert",
    "draft_dispatches": "baton.session.convert",
    "estimate_improvement": "baton.session.improve",
    "estimate_rubric": "baton.session.improve_rubric",
    "evaluate": "baton.session.evaluate",
    "export_recordings": "baton.session.export",
    "improve": "baton.session.improve",
    "improve_rubric": "baton.session.improve_rubric",
    "init": "baton.session.init",
    "iter_traces": "baton.readers",
    "label": "baton.session.label",
    "list_components": "baton.session.components",
    "load_dataset": "baton.datasets",
    "load_traces": "baton.readers",
    "open_baseline": "baton.session.baselines",
    "pull_traces": "baton.session.pull",
    "record_agent": "baton.providers.recorder",
    "record_dispatch": "baton.providers.recorder",
    "record_turn": "baton.providers.recorder",
    "replay": "baton.session.replay",
    "report": "baton.session.report",
    "resume": "baton.session.evaluate",
    "score": "baton.session.score",
    "set_baseline": "baton.session.baselines",
    "suggest_policy": "baton.session.guard",
    "tool": "baton.providers.recorder",
    "trend": "baton.session.compare",
    "try_policy": "baton.session.guard",
    "try_rubrics": "baton.session.rubrics",
}
"""The modules of public names; all others are in ``baton.model``."""
_BELOW = ("evaluators", "guard", "otel", "prompts", "testing")
"""Modules that work after ``import baton`` alone: ``baton.prompts.get(...)``."""


def __getattr__(name: str) -> Any:
    if name in _BELOW:
        return importlib.import_module(f"baton.{name}")
    if name not in __all__:
        raise AttributeError(f"module `baton` has no attribute `{name}`")
    return getattr(importlib.import_module(_MODULES.get(name, "baton.model")), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

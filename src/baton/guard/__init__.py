"""Guards: a policy that limits agents while they run, and the code that enforces it.

Names are imported on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .decide_event import Decision
    from .policy import Policy, load_policy
    from .runtime import Guard
    from .server_state import ServerStore
    from .slow_answer_checks import output_check
    from .state import Store

__all__ = ["Decision", "Guard", "Policy", "ServerStore", "Store", "load_policy", "output_check"]

_MODULES = {
    "Decision": "decide_event",
    "Guard": "runtime",
    "Policy": "policy",
    "ServerStore": "server_state",
    "Store": "state",
    "load_policy": "policy",
    "output_check": "slow_answer_checks",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module `baton.guard` has no attribute `{name}`")
    return getattr(importlib.import_module(f".{_MODULES[name]}", __name__), name)

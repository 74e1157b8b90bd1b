"""Python imports this before a program that `baton record` starts."""

import importlib.util
import sys
from pathlib import Path


def _next_one() -> None:
    """Import the `sitecustomize` that this one shadows, if there is one."""
    here = str(Path(__file__).parent)
    sys.path[:] = [path for path in sys.path if path != here]
    own = sys.modules.pop("sitecustomize")
    if importlib.util.find_spec("sitecustomize") is not None:
        importlib.import_module("sitecustomize")
    sys.modules.setdefault("sitecustomize", own)


_next_one()
if sys.version_info >= (3, 11) and importlib.util.find_spec("baton") is not None:
    from baton.startup import start

    start()

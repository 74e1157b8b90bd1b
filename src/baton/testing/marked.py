"""The arguments of ``@pytest.mark.baton``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from baton.config.trust import trust_of
from baton.model import InputError
from baton.model.visible import visible

from .suite import Suite, suite_of_agent


def marked_suite(marker: pytest.Mark, folder: Path) -> Suite:
    """Read what a marker says; relative paths start in the folder of the test.

    A wrong argument fails the collection of the test, with what is right.
    """
    try:
        return _suite(*marker.args, folder=folder, **marker.kwargs)
    except TypeError as error:
        usage = (
            "@pytest.mark.baton(dataset, agent, evaluators=None, repeat=1, timeout=600, trust=())"
        )
        message = str(error).replace("_suite()", "the marker `baton`")
        raise pytest.UsageError(f"{message}; write {usage}") from None
    except InputError as error:
        raise pytest.UsageError(visible(str(error))) from None


def _suite(
    dataset: str | Path,
    agent: str | Mapping[str, Any],
    *,
    folder: Path,
    evaluators: Any = None,
    repeat: int = 1,
    timeout: float | None = 600,
    trust: str | Path | Sequence[str | Path] = (),
) -> Suite:
    where = folder / dataset
    some = [trust] if isinstance(trust, str | Path) else trust
    return suite_of_agent(
        where,
        agent,
        folder,
        evaluators=evaluators,
        trust=trust_of([folder / each for each in some]),
        repeat=repeat,
        timeout=timeout,
    )

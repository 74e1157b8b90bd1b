"""How a dataset is played."""

from __future__ import annotations

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(ge=1)]
NotNegative = Annotated[int, msgspec.Meta(ge=0)]
Money = Annotated[float, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]


class RunOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a dataset is played: each case ``repeat`` times, ``concurrency`` of them at once.

    ``timeout`` is in seconds, for one case; ``None`` waits for ever. What is an error is played
    ``retry_errors`` times more. ``fail_fast`` stops at the first case that fails or errs; from
    ``max_agent_cost`` (USD, of the agents, in one run of the command) on the remaining cases are
    errors.
    """

    concurrency: Count = 4
    repeat: Count = 1
    timeout: Seconds | None = 600
    retry_errors: NotNegative = 0
    fail_fast: bool = False
    max_agent_cost: Money | None = None

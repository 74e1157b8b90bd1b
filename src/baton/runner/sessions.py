"""What cases need of sessions and of the server behind them, checked before anything runs."""

from __future__ import annotations

import msgspec

from baton.model import Dataset, InputError, Problem, Provider
from baton.model.dataset import NEEDS, Need
from baton.providers.base import ConfiguredProvider

from .options import RunOptions

_WORDS: dict[Need, str] = {
    "restart": "a turn restarts the agents' server",
    "new_session": "a turn opens a new session",
    "same_session": "a turn goes on with a conversation",
}


def check_sessions(provider: Provider, dataset: Dataset) -> None:
    """Raise InputError for cases that a provider cannot play as they are meant.

    A function of the user's own gets whole cases, and sees to all of it itself.
    """
    if not isinstance(provider, ConfiguredProvider):
        return
    problems = []
    for need in NEEDS:
        found = dataset.first_with(need)
        reason = provider.lacks(need) if found is not None else None
        if found is not None and reason is not None:
            case_id, where = found
            problems.append(
                Problem(
                    file=where.file if where else dataset.name,
                    line=where.line if where else None,
                    path=f"case `{case_id}`",
                    message=f"{_WORDS[need]}: {reason}",
                )
            )
    if problems:
        raise InputError(problems)


def one_at_a_time(
    provider: Provider, dataset: Dataset, options: RunOptions
) -> tuple[RunOptions, list[str]]:
    """Play no other case while one restarts the server; return a note where that slows down."""
    restarts = isinstance(provider, ConfiguredProvider) and provider.options.restart is not None
    if not restarts or options.concurrency == 1 or dataset.first_with("restart") is None:
        return options, []
    note = "cases are played one at a time, as some restart the server (`concurrency` is 1)"
    return msgspec.structs.replace(options, concurrency=1), [note]

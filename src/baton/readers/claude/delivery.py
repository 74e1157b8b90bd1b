"""When a stream's notifications reach the main thread.

A stream tells that a background agent ended when it did. The model hears of it later: with the
next round of tool results, or as the message that begins a round of its own. The result at the
end of such a round names the run of the task as its origin.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from .texts import Notice
from .wire import dict_at, text_at


class _Waiting(msgspec.Struct):
    notice: Notice
    at: float | None
    begins: int | None = None
    due: bool = False


class Delivery:
    """Notifications on their way to the main thread."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._begins: dict[str, int] = {}

    def expect(self, results: Iterable[dict[str, Any]]) -> None:
        """Take the results of a stream: which round began with which notification."""
        for number, result in enumerate(results):
            run = text_at(dict_at(result, "origin"), "runId")
            if run:
                self._begins[run] = number

    def add(self, notice: Notice, at: float | None, run: str) -> None:
        """Take a notification; ``run`` names what it tells the end of."""
        self._waiting.append(_Waiting(notice, at, self._begins.get(run)))

    def round(self) -> None:
        """Note that tools answered: the next request tells all that waits."""
        for one in self._waiting:
            one.due = one.due or one.begins is None

    def began(self, number: int) -> None:
        """Note that a round began, counted from 0."""
        for one in self._waiting:
            one.due = one.due or one.begins is None or one.begins <= number

    def due(self) -> list[tuple[Notice, float | None]]:
        """Return what the model is told with its next request."""
        due = [(one.notice, one.at) for one in self._waiting if one.due]
        self._waiting = [one for one in self._waiting if not one.due]
        return due

    def rest(self) -> list[tuple[Notice, float | None]]:
        """Return what the model has not been told yet."""
        return [(one.notice, one.at) for one in self._waiting]

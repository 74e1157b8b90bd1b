"""Whether a turn has ended, told by the messages that have come since it was asked for."""

from __future__ import annotations

from typing import Any

from baton.readers.claude.calls import TERMINAL
from baton.readers.claude.links import is_agent_task
from baton.readers.claude.wire import dict_at, is_list, text_at


class Waiting:
    """Watches one turn.

    A turn has ended with a result, once no agent works in the background; a command that runs
    there may run for ever. What ended there may begin another round, whose result names it; or
    the model heard of it on the way, which nothing tells. Some hosts are told when the session
    is idle, which settles it.
    """

    def __init__(self) -> None:
        self._tells = False
        self._idle = False
        self._answered = False
        self._tasks: set[str] = set()
        self._background: set[str] = set()
        self._untold: set[str] = set()

    @property
    def done(self) -> bool:
        """Whether nothing more is to come."""
        if not self._answered or self._tasks:
            return False
        return self._idle if self._tells else not self._untold

    @property
    def maybe_done(self) -> bool:
        """Whether there is an answer, and it is only not certain that it is the last."""
        return self._answered and not self._tasks and not self._tells

    def take(self, message: dict[str, Any]) -> None:
        """Look at a message."""
        kind = text_at(message, "type")
        if kind == "result":
            self._answered = True
            self._untold.discard(text_at(dict_at(message, "origin"), "runId"))
        elif kind == "system":
            self._system(message, text_at(message, "subtype"))
        elif kind == "assistant" and message.get("parent_tool_use_id") is None:
            self._answered = False

    def _system(self, message: dict[str, Any], subtype: str) -> None:
        task, run = text_at(message, "task_id"), text_at(message, "run_id")
        if subtype == "session_state_changed":
            self._tells, self._idle = True, text_at(message, "state") == "idle"
        elif subtype == "background_tasks_changed":
            told = message.get("tasks")
            tasks = told if is_list(told) else []
            self._tasks = {text_at(one, "task_id") for one in tasks if is_agent_task(one)}
            self._background.update(text_at(one, "task_id") for one in tasks)
        elif subtype == "task_started" and message.get("is_backgrounded") is True:
            self._background.add(task)
            if is_agent_task(message):
                self._tasks.add(task)
        elif subtype == "task_notification" or (
            subtype == "task_updated" and text_at(dict_at(message, "patch"), "status") in TERMINAL
        ):
            self._tasks.discard(task)
            if task in self._background:
                self._untold.add(run or task)

"""A function of the user's own that plays cases: what it wants to be given."""

from __future__ import annotations

import inspect
from typing import Any

from baton.model import Case
from baton.plugins.user_code import Function

from .functions import call, is_async

NO_SESSION = "the function has no parameter `session`, and so no session of its own"


class Target:
    """Calls a function with a message or a case, and what else it has parameters for."""

    def __init__(self, function: Function) -> None:
        self._function = function
        names = _parameters(function)
        self.whole_case = names[:1] == ["case"]
        self._extras = [name for name in names[1:] if name in ("case", "session")]

    @property
    def takes_session(self) -> bool:
        """Whether it is told which session a message belongs to."""
        return self.whole_case or bool(self._extras)

    async def call(self, first: object, case: Case, session: dict[str, Any]) -> Any:
        """Call it; what it raises is passed on. One that is not async gets a thread."""
        given = {"case": case, "session": session}
        extras = {name: given[name] for name in self._extras}
        function = self._function
        if not extras:
            return await call(function, first)
        if not is_async(function):
            return await call(lambda message: function(message, **extras), first)

        async def awaited(message: object) -> Any:
            return await function(message, **extras)

        return await call(awaited, first)


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []

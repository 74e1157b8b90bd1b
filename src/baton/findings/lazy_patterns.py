"""Regular expressions that are compiled when they are first used.

The evaluators of texts have about 500 of them, and compiling all takes a third of a second: half of
the time in which a single recording is scored. A recording needs few of them. For example, one
without a failure needs none of the words for failures.
"""

from __future__ import annotations

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")


class LazyPattern:
    """Has the attributes of an ``re.Pattern``; the first use of a method compiles it."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self.flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        compiled = re.compile(self.pattern, self.flags)
        # From now on they are found without this method, so a call costs no more than usual.
        self.__dict__.update({each: getattr(compiled, each) for each in _METHODS})
        return getattr(compiled, name)


def regex(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is compiled when it is first used.

    A mistake in it raises ``re.error`` then. A test compiles all of them.
    """
    return cast("re.Pattern[str]", LazyPattern(pattern, flags))

"""What can be named in a config: an entry of the registry."""

from __future__ import annotations

from typing import NamedTuple

from .alias import Alias


class Entry(NamedTuple):
    """A name, where it lives (``module:attribute``), and what it is for.

    ``runs_code``: its options name code of the user's own.
    """

    type: str
    target: str
    summary: str
    aliases: tuple[Alias, ...] = ()
    runs_code: bool = False

    @property
    def names(self) -> list[str]:
        """Every name it may be asked for under."""
        pairs = ((alias.name, alias.class_name) for alias in self.aliases)
        return [self.type, *dict.fromkeys(name for pair in pairs for name in pair)]

    def asked_as(self, name: str) -> Alias:
        """Return the name to report under, and the class name that goes with it."""
        found = (a for a in self.aliases if name in (a.name, a.class_name))
        return next(found, Alias(self.type, self.type))

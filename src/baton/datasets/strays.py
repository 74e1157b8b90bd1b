"""Keys of other tools' files that no type of ours names."""

from __future__ import annotations

from baton.formats.document import Document
from baton.formats.prune import Stray
from baton.model import InputError


def refuse_misspelt(document: Document, strays: list[Stray]) -> None:
    """Stop on a key that looks like a known one; merely unknown ones are only noted."""
    problems = [
        document.problem_at(stray.path, f"unknown key; did you mean `{stray.meant}`?")
        for stray in strays
        if stray.meant
    ]
    if problems:
        raise InputError(problems)

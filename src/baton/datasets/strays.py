"""Keys of other tools' files that no type names, and what no case of ours holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from baton.formats.document import Document
from baton.formats.explain import Path
from baton.formats.spelling import Stray, snake
from baton.model import Case, InputError


def refuse_misspelt(document: Document, strays: list[Stray]) -> None:
    """Stop on a key that looks like a known one; merely unknown ones are only noted."""
    problems = [
        document.problem_at(stray.path, f"unknown key; did you mean `{stray.meant}`?")
        for stray in strays
        if stray.meant
    ]
    if problems:
        raise InputError(problems)


BOOKKEEPING = frozenset(
    {"creation_timestamp", "from_agent", "id", "invocation_id", "role", "session_id"}
)
"""What a tool makes anew or says twice, where it says nothing that a case holds."""


def unread(value: Any, parse: Callable[[Any], Case]) -> list[Path]:
    """Return the paths of a case, as plain data, that can be changed without changing the case.

    Each leaf is changed in turn and the case read again, so that this is true of any dialect
    whatever its reader does. Branches of which nothing is read are returned as one path.
    """
    before = parse(value).content_hash()

    def is_read(changed: Any) -> bool:
        try:
            return parse(changed).content_hash() != before
        except InputError:
            return True

    return _unread(value, (), value, is_read)[0]


def _unread(
    node: Any, path: Path, whole: Any, is_read: Callable[[Any], bool]
) -> tuple[list[Path], bool]:
    """Return the unread paths below a node, and whether nothing of it is read."""
    children = list(_children(node))
    if not children:
        if node in (None, "", [], {}) or (path and snake(str(path[-1])) in BOOKKEEPING):
            return [], True
        ignored = not is_read(_with(whole, path, _changed(node)))
        return ([path] if ignored else []), ignored
    found: list[Path] = []
    nothing = True
    for step, child in children:
        paths, ignored = _unread(child, (*path, step), whole, is_read)
        found += paths
        nothing = nothing and ignored
    return ([path] if nothing and found and path else found), nothing


def _children(node: Any) -> Iterator[tuple[str | int, Any]]:
    if isinstance(node, dict):
        yield from node.items()
    elif isinstance(node, list):
        yield from enumerate(node)


def _changed(leaf: Any) -> Any:
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, int | float):
        return 0 if leaf else 1
    return f"{leaf}~"


def _with(node: Any, path: Path, leaf: Any) -> Any:
    """Copy plain data with another leaf."""
    if not path:
        return leaf
    step, *rest = path
    copy = node.copy()
    copy[step] = _with(node[step], tuple(rest), leaf)
    return copy

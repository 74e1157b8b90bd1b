"""Values of the initial state that are of another type than elsewhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from .adk_app import App
from .scope import Scope
from .warning import LintWarning

NAME = "state-type"
_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "text"} | {
    list: "a list",
    dict: "an object",
}


class _Seen(NamedTuple):
    case: str
    file: str
    line: int | None
    kind: str


def state_types(scope: Scope) -> Iterator[LintWarning]:
    """Warn of a value whose type differs from that of other cases of the app, or of its code.

    Null is left alone. Cases that name no app are compared within their file.
    """
    seen: dict[tuple[str, str], list[_Seen]] = defaultdict(list)
    for file in scope.cases:
        for case, written in file.written():
            app = case.session.app or file.file
            code = _kinds_in_code(file.app_of(case))
            for key, value in case.state.items():
                kind = _KINDS.get(type(value))
                if kind is None:
                    continue
                one = _Seen(case.id, file.file, written.state_line(key), kind)
                if code.get(key, kind) == kind:
                    seen[app, key].append(one)
                else:
                    where = f"the code of the app puts {code[key]} there"
                    yield _warning(one, key, where, f"write {code[key]}")
    for (_, key), found in seen.items():
        yield from _odd_ones(key, found)


def _odd_ones(key: str, found: list[_Seen]) -> Iterator[LintWarning]:
    """Find those of a kind that fewer cases have; of two as frequent, the later one is odd."""
    kinds = [one.kind for one in found]
    usual = max(dict.fromkeys(kinds), key=kinds.count)
    tied = [kinds.count(kind) for kind in set(kinds)].count(kinds.count(usual)) > 1
    remedy = "write in both what the tools expect" if tied else f"write {usual}"
    if len(set(kinds)) > 1:
        first = next(one for one in found if one.kind == usual)
        for one in found:
            if one.kind != usual:
                place = first.file if first.line is None else f"{first.file}:{first.line}"
                other = f"it is {usual} in case `{first.case}` ({place})"
                yield _warning(one, key, other, remedy)


def _warning(one: _Seen, key: str, other: str, remedy: str) -> LintWarning:
    return LintWarning(
        file=one.file,
        line=one.line,
        rule=NAME,
        what=f"state `{key}` of case `{one.case}` is {one.kind}, and {other}: "
        "tools that work with the one break on the other",
        remedy=remedy,
    )


def _kinds_in_code(app: App | None) -> dict[str, str]:
    """Return what the code of an app puts into the state, where it is always of one kind."""
    found: dict[str, str] = {}
    for key, types in app.state_types.items() if app is not None else ():
        kinds = {_KINDS.get(type_) for type_ in types - {type(None)}}
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is not None:
            found[key] = kind
    return found

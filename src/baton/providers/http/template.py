"""Templates of requests: JSON whose strings hold placeholders. Text is never evaluated."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from baton.model import InputError, Problem, ProviderError, suggestion

PLACEHOLDERS = (
    "input", "session_id", "case_id", "turn", "history", "messages", "user", "app", "state",
)  # fmt: skip
_PIECE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_STATE = "state."


class Values(NamedTuple):
    """What placeholders stand for in one message of a case; ``turn`` counts from 1."""

    input: str
    case_id: str
    turn: int
    session_id: str | int | float | None
    history: list[dict[str, str]]
    user: str | None
    app: str | None
    state: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, str]]:
        """The history and this message."""
        return [*self.history, {"role": "user", "content": self.input}]


class Slot(NamedTuple):
    """A placeholder by its name."""

    name: str

    def value(self, values: Values) -> Any:
        """Return what it stands for, of any JSON type; ``UNSET`` when there is none yet.

        Raises:
            ProviderError: the state of the case does not hold it.
        """
        if not self.name.startswith(_STATE):
            found = getattr(values, self.name)
            return msgspec.UNSET if found is None else found
        key = self.name.removeprefix(_STATE)
        if key not in values.state:
            hint = suggestion(key, values.state)
            raise ProviderError(
                f"the request needs `{{{self.name}}}`, and the state of the case has no "
                f"`{key}`{f'; {hint}' if hint else ''}"
            )
        return values.state[key]


class Text(NamedTuple):
    """Text with placeholders in it."""

    pieces: tuple[str | Slot, ...]

    def fill(self, values: Values, quoted: Callable[[str], str] = str) -> str:
        """Put the values in; what is no text is written as JSON.

        Raises:
            ProviderError: there is no value for one.
        """
        return "".join(
            piece if isinstance(piece, str) else quoted(_text(piece, values))
            for piece in self.pieces
        )


class Template:
    """Compiled JSON; ``names`` are the placeholders in it."""

    def __init__(self, source: Any, option: str) -> None:
        """Compile it; raises InputError for what is no placeholder."""
        self._root = _compiled(source, option)
        self.names = set(_names(self._root))

    def fill(self, values: Values) -> Any:
        """Return the JSON of one message.

        A string that is one placeholder takes the JSON type of its value; members and items
        whose placeholder has no value yet are left out.

        Raises:
            ProviderError: there is no value where one is needed.
        """
        filled = _filled(self._root, values)
        return None if filled is msgspec.UNSET else filled


def text_template(source: str, option: str) -> Text:
    """Compile a string; raises InputError for what is no placeholder."""
    return Text(tuple(_pieces(source, option)))


def names_in(text: Text) -> set[str]:
    """Return the placeholders of a text."""
    return set(_names(text))


def _compiled(source: Any, option: str) -> Any:
    if isinstance(source, dict):
        return {key: _compiled(value, f"{option}.{key}") for key, value in source.items()}
    if isinstance(source, list):
        return [_compiled(value, f"{option}[{at}]") for at, value in enumerate(source)]
    if not isinstance(source, str):
        return source
    pieces = tuple(_pieces(source, option))
    if len(pieces) == 1 and isinstance(pieces[0], Slot):
        return pieces[0]
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(str(piece) for piece in pieces)
    return Text(pieces)


def _pieces(source: str, option: str) -> Iterator[str | Slot]:
    end = 0
    for found in _PIECE.finditer(source):
        if found.start() > end:
            yield source[end : found.start()]
        end = found.end()
        name = found[1]
        if name is not None:
            yield Slot(_checked(name, option))
        elif found[0] in ("{{", "}}"):
            yield found[0][0]
        else:
            message = f"a `{found[0]}` that belongs to no placeholder is written `{found[0] * 2}`"
            raise InputError(Problem(path=option, message=message))
    if end < len(source):
        yield source[end:]


def _checked(name: str, option: str) -> str:
    if name in PLACEHOLDERS or (name.startswith(_STATE) and name != _STATE):
        return name
    hint = suggestion(name, [*PLACEHOLDERS, "state.KEY"])
    message = f"`{{{name}}}` is no placeholder; {hint} (text in braces is written {{{{...}}}})"
    raise InputError(Problem(path=option, message=message))


def _names(node: Any) -> Iterator[str]:
    if isinstance(node, Slot):
        yield node.name
    elif isinstance(node, Text):
        yield from (piece.name for piece in node.pieces if isinstance(piece, Slot))
    elif isinstance(node, dict):
        for value in node.values():
            yield from _names(value)
    elif isinstance(node, list):
        for value in node:
            yield from _names(value)


def _filled(node: Any, values: Values) -> Any:
    if isinstance(node, Slot):
        return node.value(values)
    if isinstance(node, Text):
        return node.fill(values)
    if isinstance(node, dict):
        members = ((key, _filled(value, values)) for key, value in node.items())
        return {key: value for key, value in members if value is not msgspec.UNSET}
    if isinstance(node, list):
        return [value for each in node if (value := _filled(each, values)) is not msgspec.UNSET]
    return node


def _text(slot: Slot, values: Values) -> str:
    value = slot.value(values)
    if value is msgspec.UNSET:
        why = (
            "is not known before the first answer"
            if slot.name == "session_id"
            else ("is stated by no session of the case")
        )
        raise ProviderError(f"the request needs `{{{slot.name}}}`, which {why}")
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()

"""Material of a trace: in sections, marked off from our own words and cut to size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from baton.judges.prompts import NOTE, clip, fenced_neutral, neutral, shares

from .material import INDENT, Body, Kind, Piece


class Section(NamedTuple):
    """One input as the judge sees it: its name, heading and text; or why it is not known.

    A ``list`` has the things to label one by one, and room of its own.
    """

    name: str
    title: str
    text: str
    pieces: Sequence[Piece] = ()
    missing: bool = False
    is_list: bool = False


class LeftOut(NamedTuple):
    """What of a section a judge was not shown: of which step, of what kind, how many characters."""

    section: str
    ids: tuple[str, ...]
    kind: Kind
    chars: int


def said_of(left_out: Sequence[LeftOut]) -> str:
    """Say how many characters of which inputs are left out, and of which steps the most."""
    inputs = ", ".join(f"`{name}`" for name in dict.fromkeys(one.section for one in left_out))
    steps = sorted((one for one in left_out if one.ids), key=lambda one: -one.chars)[:3]
    most = ", ".join(f"{one.chars:,} of the {one.kind} of `{one.ids[0]}`" for one in steps)
    total = f"{sum(one.chars for one in left_out):,} characters of {inputs}"
    return total + (f" ({most}{', ...' if len(left_out) > len(steps) else ''})" if most else "")


LONGEST = 4000
"""Characters of each of several things to label that are shown at least: a long paragraph."""
_FREE = 5
"""The part of the limit (a fifth) that is kept for what can't change the verdict: the judge should
see what kind of results there were, also where calls and words alone fill the room."""

_LINE = len("said:\n")
"""The shortest line of ours with its end: so many lines take at least so much room."""

Matters = Callable[[str, Kind | None], bool]
"""Tells whether what is left out of a section (and kind of body) could change the verdict."""


class TooLongError(ValueError):
    """Material that can't be shown to a judge so that the verdict counts."""


class FittedMaterial(NamedTuple):
    """The content of a request, and what was left out of it."""

    content: str
    left_out: list[LeftOut]


class _Leaf:
    """A text that may be shortened: ``keep`` characters of it stay."""

    __slots__ = ("ids", "indent", "keep", "kind", "matters", "section", "text")

    def __init__(
        self, section: str, ids: tuple[str, ...], kind: Kind, text: str, indent: str, matters: bool
    ) -> None:
        self.section, self.ids, self.kind = section, ids, kind
        self.text, self.indent, self.matters = text, indent, matters
        self.keep = len(text)

    @property
    def least(self) -> int:
        """How much room it takes at least: a note, or itself where it is no longer."""
        return min(len(self.text), NOTE)

    @property
    def more(self) -> int:
        """How much more room it takes in full."""
        return len(self.text) - self.least

    def allow(self, more: int) -> None:
        """Let it have so much room beyond the least."""
        self.keep = len(self.text) if more >= self.more else more

    @property
    def shown(self) -> str:
        return clip(self.text, self.keep, self.indent).text

    @property
    def cut(self) -> int:
        return len(self.text) - self.keep


class _Json(NamedTuple):
    """JSON of which the long texts are leaves."""

    data: Any
    indent: str

    @property
    def shown(self) -> str:
        return Body(_filled(self.data, lambda leaf: leaf.shown), "arguments", self.indent).text

    @property
    def leaves(self) -> Iterator[_Leaf]:
        return _leaves(self.data)

    @property
    def frame(self) -> int:
        """How many characters it takes without its leaves.

        Escapes of the leaves do not count: at most every character of one is escaped, as in a text
        of quotes only, and then it is twice as long.
        """
        return len(Body(_filled(self.data, lambda _: ""), "arguments", self.indent).text)


_Token = str | _Leaf | _Json


def fit_material(sections: Sequence[Section], limit: int, matters: Matters) -> FittedMaterial:
    """Return the content of a request, and what was left out to keep to ``limit`` characters.

    Lists of things to label do not count: all of them together may be as long as the limit, and
    each may be ``LONGEST``.

    Raises:
        TooLongError: what is always shown, as the names of calls, is longer than the limit.
    """
    lines = sum(
        isinstance(part, str)
        for section in sections
        if not section.is_list and matters(section.name, None)
        for piece in section.pieces
        for part in piece.parts
    )
    if lines * _LINE > limit:  # 100,000 calls: not worth writing out
        raise _names_alone(lines * _LINE, limit)
    texts = {section.name: neutral(section.text) for section in sections}
    left_out: list[LeftOut] = []
    for listed in (False, True):
        group = [section for section in sections if section.is_list is listed]
        if sum(len(texts[section.name]) for section in group) <= limit:
            continue
        laid = {section.name: _tokens(section, matters) for section in group}
        leaves = [leaf for tokens in laid.values() for leaf in _all_leaves(tokens)]
        if listed:
            lengths = [len(leaf.text) for leaf in leaves]
            for leaf, room in zip(leaves, shares(lengths, limit), strict=True):
                leaf.keep = min(len(leaf.text), max(room, LONGEST))
        else:
            _fit(laid, leaves, limit)
        for name, tokens in laid.items():
            texts[name] = "\n".join(_text(token) for token in tokens)
        left_out += [
            LeftOut(leaf.section, leaf.ids, leaf.kind, leaf.cut) for leaf in leaves if leaf.cut
        ]
    content = fenced_neutral((section.title, texts[section.name]) for section in sections)
    return FittedMaterial(content, left_out)


def _fit(laid: dict[str, list[_Token]], leaves: list[_Leaf], limit: int) -> None:
    """Say of each leaf how much of it is shown."""
    room = limit - sum(_frame(token) for tokens in laid.values() for token in tokens)
    free = [leaf for leaf in leaves if not leaf.matters]
    rest = [leaf for leaf in leaves if leaf.matters]
    free_least = sum(leaf.least for leaf in free)
    free_whole = sum(len(leaf.text) for leaf in free)
    for_free = min(free_whole, max(free_least, room // _FREE))
    left = room - for_free - sum(leaf.least for leaf in rest)
    if left < 0:
        raise _names_alone(limit - left, limit)
    _share(rest, left)
    used = sum(min(len(leaf.text), leaf.keep + leaf.least) for leaf in rest)
    _share(free, room - used - free_least)


def _names_alone(chars: int, limit: int) -> TooLongError:
    return TooLongError(
        f"too long to judge: what is always shown, as the names of calls, takes at least {chars:,} "
        f"characters, and a judge is shown at most {limit:,}: raise `max_chars`"
    )


def _share(leaves: list[_Leaf], room: int) -> None:
    """Share room by sections first: many steps of a transcript leave the request its own."""
    sections: dict[str, list[_Leaf]] = {}
    for leaf in leaves:
        sections.setdefault(leaf.section, []).append(leaf)
    wanted = [sum(leaf.more for leaf in group) for group in sections.values()]
    for group, share in zip(sections.values(), shares(wanted, room), strict=True):
        for leaf, more in zip(group, shares([leaf.more for leaf in group], share), strict=True):
            leaf.allow(more)


def _tokens(section: Section, matters: Matters) -> list[_Token]:
    """Take a section apart: what is always shown, and what may be shortened."""
    if not section.pieces or section.missing:
        return [neutral(section.text)]
    if not matters(section.name, None):
        return [_Leaf(section.name, (), "texts", neutral(section.text), f"\n{INDENT}", False)]
    tokens: list[_Token] = []
    for piece in section.pieces:
        for part in piece.parts:
            if isinstance(part, str):
                tokens.append(neutral(part))
                continue
            counts = matters(section.name, part.kind)
            if isinstance(part.content, str):
                body = Body(neutral(part.content), part.kind, part.indent)
                tokens.append(
                    _Leaf(section.name, piece.ids, part.kind, body.text, f"\n{body.indent}", counts)
                )
            else:
                data = _planted(part.content, section.name, piece.ids, part.kind, counts)
                tokens.append(_Json(data, part.indent))
    return tokens


def _planted(data: Any, section: str, ids: tuple[str, ...], kind: Kind, matters: bool) -> Any:
    """Return JSON in which each long text is a leaf; keys and short values are always shown."""
    if isinstance(data, dict):
        planted: dict[str, Any] = {}
        for key, each in data.items():
            name = neutral(str(key))
            while name in planted:  # `a\r` and `a\n` are one name when they are harmless
                name += "'"
            planted[name] = _planted(each, section, ids, kind, matters)
        return planted
    if isinstance(data, list | tuple):
        return [_planted(each, section, ids, kind, matters) for each in data]
    if isinstance(data, str):
        text = neutral(data)
        return text if len(text) <= NOTE else _Leaf(section, ids, kind, text, " ", matters)
    return msgspec.to_builtins(data)


def _leaves(data: Any) -> Iterator[_Leaf]:
    if isinstance(data, _Leaf):
        yield data
    elif isinstance(data, dict | list):
        for each in data.values() if isinstance(data, dict) else data:
            yield from _leaves(each)


def _filled(data: Any, text_of: Callable[[_Leaf], str]) -> Any:
    if isinstance(data, _Leaf):
        return text_of(data)
    if isinstance(data, dict):
        return {key: _filled(each, text_of) for key, each in data.items()}
    return [_filled(each, text_of) for each in data] if isinstance(data, list) else data


def _all_leaves(tokens: Iterable[_Token]) -> Iterator[_Leaf]:
    for token in tokens:
        if isinstance(token, _Leaf):
            yield token
        elif isinstance(token, _Json):
            yield from token.leaves


def _frame(token: _Token) -> int:
    """Return what a token takes apart from its leaves, with the line end behind it."""
    if isinstance(token, _Leaf):
        return 1
    return 1 + (len(token) if isinstance(token, str) else token.frame)


def _text(token: _Token) -> str:
    return token if isinstance(token, str) else token.shown

"""Changes values in a YAML or JSON text; everything else stays as its author wrote it.

Comments, order of keys, indentation and quotes of unchanged parts stay. Only the parts that differ
are changed, and the result is parsed again: if it is not the new value, the change is refused,
never written wrong.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from json import decoder
from typing import Any, NamedTuple

import msgspec
import yaml

from baton.model import InputError, Problem

from .document import Document, without_comments
from .yaml import dump_yaml, load_yaml, yaml_node


class _Entry(NamedTuple):
    """An item of a list, or a pair of a mapping, which starts at its key."""

    start: int
    node: _Node


class _Node(NamedTuple):
    """The place of a value; ``keys`` of a mapping, ``column`` of a YAML block's first entry."""

    start: int
    end: int
    entries: list[_Entry]
    keys: list[str] | None = None
    column: int | None = None
    is_list: bool = False


class _Change(NamedTuple):
    start: int
    end: int
    text: str


def rewrite(file: str, text: str, new: Any) -> str:
    """Return ``text``, a whole YAML or JSON file, changed to the value ``new``.

    A text whose first bracket is ``{`` or ``[`` is JSON, maybe with comments. ``file`` is only
    its name.

    Raises:
        InputError: the text is neither; or its notation cannot be changed in place, such as a YAML
            alias for a part that changes.
    """
    if text.startswith("\ufeff"):
        return "\ufeff" + rewrite(file, text[1:], new)
    is_json = _plain(text).lstrip()[:1] in ("{", "[")
    old = _value(file, text, is_json=is_json)
    if _same(old, new):
        return text
    if is_json:
        writer: _Writer = _JsonWriter(text)
        root = _json_node(text, _plain(text), _skip(_plain(text), 0))
    else:
        writer = _YamlWriter(text)
        root = _yaml_node(text, yaml_node(text))
    # Of two insertions at the same place, the inner one comes first in the text.
    changes = reversed(list(writer.changes(root, old, new)))
    changed = text
    for change in sorted(changes, key=lambda each: (each.start, each.end), reverse=True):
        changed = changed[: change.start] + change.text + changed[change.end :]
    if "\r\n" in text:
        changed = re.sub(r"(?<!\r)\n", "\r\n", changed)
    try:
        if _same(_value(file, changed, is_json=is_json), new):
            return changed
    except InputError:
        pass  # reported below: the user's text is not at fault
    message = (
        "is written in a way that cannot be changed automatically; change it in an editor, or "
        "save under another name"
    )
    raise InputError(Problem(file=file, message=message))


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def _plain(text: str) -> str:
    """Replace comments by blanks, and non-ASCII characters by `x`: offsets stay the same."""
    return without_comments(_NOT_ASCII.sub("x", text).encode()).decode()


def _value(file: str, text: str, *, is_json: bool) -> Any:
    if is_json:
        return Document(file, without_comments(text.encode()), "json").value()
    return load_yaml(text, file)


def _same(one: Any, other: Any) -> bool:
    """Compare JSON values, distinguishing 1, 1.0 and true; keys may be in any order."""
    order = "deterministic"
    return msgspec.json.encode(one, order=order) == msgspec.json.encode(other, order=order)  # type: ignore[arg-type]


class _Writer(ABC):
    """Finds what has to change; subclasses write it in their notation."""

    def __init__(self, text: str) -> None:
        self._text = text

    def changes(self, node: _Node, old: Any, new: Any) -> Iterator[_Change]:
        """Yield the changes from ``old``, which is at ``node``, to ``new``."""
        if _same(old, new):
            return
        keys = node.keys
        if isinstance(old, dict) and isinstance(new, dict) and keys == list(old) and new:
            gone = [place for place, key in enumerate(keys) if key not in new]
            added = {key: value for key, value in new.items() if key not in old}
            # If no part of the old value stays, it is replaced as a whole.
            if node.entries and len(gone) < len(keys):
                for place, key in enumerate(keys):
                    if key in new:
                        yield from self._entry(node, place, old[key], new[key])
                yield from self._without(node, gone)
                if added:
                    yield self._after(node, len(keys) - 1, gone, added)
                return
        if isinstance(old, list) and isinstance(new, list) and node.is_list and new and old:
            yield from self._list(node, old, new)
            return
        yield self._replaced(node, new)

    def _list(self, node: _Node, old: list[Any], new: list[Any]) -> Iterator[_Change]:
        """Keep the common start and end of both lists; items in between are replaced."""
        most = min(len(old), len(new))
        head = 0
        while head < most and _same(old[head], new[head]):
            head += 1
        tail = 0
        while tail < most - head and _same(old[-1 - tail], new[-1 - tail]):
            tail += 1
        was, becomes = old[head : len(old) - tail], new[head : len(new) - tail]
        paired = min(len(was), len(becomes))
        for place in range(head, head + paired):
            yield from self._entry(node, place, old[place], new[place])
        gone = list(range(head + paired, head + len(was)))
        if len(gone) == len(old):
            yield self._replaced(node, new)
            return
        yield from self._without(node, gone)
        if more := becomes[paired:]:
            yield self._after(node, head + paired - 1, gone, more)

    def _entry(self, node: _Node, place: int, old: Any, new: Any) -> Iterator[_Change]:
        """Yield the changes inside an entry that stays."""
        yield from self.changes(node.entries[place].node, old, new)

    @abstractmethod
    def _replaced(self, node: _Node, new: Any) -> _Change:
        """Replace a value."""

    @abstractmethod
    def _without(self, node: _Node, gone: Sequence[int]) -> Iterator[_Change]:
        """Yield the changes that remove entries; at least one stays."""

    @abstractmethod
    def _after(self, node: _Node, place: int, gone: Sequence[int], more: Any) -> _Change:
        """Insert entries after the one at ``place``; -1 inserts them first."""

    def _indent(self, at: int) -> str:
        """Return the indentation of a line."""
        start = self._text.rfind("\n", 0, at) + 1
        line = self._text[start:at]
        return line[: len(line) - len(line.lstrip(" \t"))] if line.strip(" \t") else line


class _JsonWriter(_Writer):
    """JSON, and YAML's flow style."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        steps = re.search(r"\n([ \t]+)\S", text)
        self._step = steps[1] if steps else None
        self.is_ascii = text.isascii() and "\\u" in text

    def _replaced(self, node: _Node, new: Any) -> _Change:
        whole = node.entries and "\n" in self._text[node.start : node.end]
        plain = not isinstance(new, dict | list) or not self._step
        one_line = plain or (bool(node.entries) and not whole)
        return _Change(node.start, node.end, self._dumped(new, node.start, one_line=one_line))

    def _without(self, node: _Node, gone: Sequence[int]) -> Iterator[_Change]:
        entries = node.entries
        stays = [place for place in range(len(entries)) if place not in gone]
        for place in gone:
            if place < stays[-1]:
                yield _Change(entries[place].start, entries[place + 1].start, "")
        if gone and gone[-1] > stays[-1]:
            yield _Change(entries[stays[-1]].node.end, entries[-1].node.end, "")

    def _after(self, node: _Node, place: int, gone: Sequence[int], more: Any) -> _Change:
        entries = node.entries
        while place in gone:
            place -= 1
        first = entries[max(place, 0)].start
        alone = "\n" in self._text[node.start : first]
        between = "\n" + self._indent(first) if alone else " "
        written = [self._dumped(each, first, one_line=not alone) for each in _singly(more)]
        if place < 0:
            return _Change(first, first, "".join(f"{each},{between}" for each in written))
        at = entries[place].node.end
        return _Change(at, at, "".join(f",{between}{each}" for each in written))

    def _dumped(self, value: Any, at: int, *, one_line: bool) -> str:
        pair = value if isinstance(value, _Pair) else None
        plain = pair.value if pair else value
        indent = None if one_line else self._step
        text = json.dumps(plain, ensure_ascii=self.is_ascii, indent=indent)
        text = text.replace("\n", "\n" + self._indent(at))
        if pair is None:
            return text
        return f"{json.dumps(pair.key, ensure_ascii=self.is_ascii)}: {text}"


class _Pair(NamedTuple):
    key: str
    value: Any


def _singly(more: Any) -> list[Any]:
    return [_Pair(*pair) for pair in more.items()] if isinstance(more, dict) else list(more)


_PLAIN = re.compile(r"[^\W\d][\w-]*(?: [\w-]+)*")


class _FlowWriter(_JsonWriter):
    """YAML's flow style: a name needs no quotes there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.is_ascii = False

    def _dumped(self, value: Any, at: int, *, one_line: bool) -> str:
        is_name = isinstance(value, str) and _PLAIN.fullmatch(value)
        if is_name and load_yaml(value, "") == value:
            return str(value)
        return super()._dumped(value, at, one_line=one_line)


class _YamlWriter(_Writer):
    """YAML's block style; flow style is written as JSON, since YAML is a superset of it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._flow = _FlowWriter(text)
        # `key:` with its list in the same column, as PyYAML writes it, or two further.
        self._is_indented = re.search(r"^( *)[^\s#-][^\n]*:[ ]*\n\1 +- ", text, re.MULTILINE)

    def _replaced(self, node: _Node, new: Any) -> _Change:
        if node.column is None:
            return self._flow._replaced(node, new)
        # Only the whole file gets here: entries of blocks are written with their key or dash.
        return _Change(node.start, node.end, self._dumped(new, node.column))

    def _entry(self, node: _Node, place: int, old: Any, new: Any) -> Iterator[_Change]:
        value = node.entries[place].node
        if node.column is None or _same(old, new):
            yield from self.changes(value, old, new)
            return
        inner = list(super()._entry(node, place, old, new))
        whole = [_Change(value.start, value.end, each.text) for each in inner]
        if len(inner) == 1 and inner[0][:2] == whole[0][:2] and value.start <= value.end:
            written: Any = {node.keys[place]: new} if node.keys else [new]
            start = node.entries[place].start
            yield _Change(start, max(value.end, start), self._dumped(written, node.column))
            return
        yield from inner

    def _without(self, node: _Node, gone: Sequence[int]) -> Iterator[_Change]:
        if node.column is None:
            yield from self._flow._without(node, gone)
            return
        text, entries = self._text, node.entries
        stays = [place for place in range(len(entries)) if place not in gone]
        for place in gone:
            start, end = entries[place].start, entries[place].node.end
            line = text.rfind("\n", 0, start) + 1
            if not text[line:start].strip():
                stop = text.find("\n", end)
                yield _Change(line, len(text) if stop < 0 else stop + 1, "")
            elif place < stays[-1]:  # the first key of an item, after its dash
                yield _Change(start, entries[place + 1].start, "")

    def _after(self, node: _Node, place: int, gone: Sequence[int], more: Any) -> _Change:
        if node.column is None:
            return self._flow._after(node, place, gone, more)
        text, entries = self._text, node.entries
        while place in gone:
            place -= 1
        written = [self._dumped(each, node.column) for each in _blocks(more)]
        between = "\n" + " " * node.column
        if place < 0:
            first = entries[0].start
            return _Change(first, first, "".join(each + between for each in written))
        stop = text.find("\n", entries[place].node.end)
        at = len(text) if stop < 0 else stop
        # If blank lines separate the entries, they also separate the new ones.
        apart = len(entries) > 1 and re.search(
            r"\n[ \t]*\r?\n", text[entries[-2].node.end : entries[-1].start]
        )
        between = ("\n" if apart else "") + between
        return _Change(at, at, "".join(between + each for each in written))

    def _dumped(self, value: Any, column: int) -> str:
        lines = dump_yaml(value, lines=True).rstrip("\n").split("\n")
        if self._is_indented:
            lines = _indented_lists(lines)
        return ("\n" + " " * column).join(lines).replace("\n" + " " * column + "\n", "\n\n")


def _blocks(more: Any) -> list[Any]:
    if isinstance(more, dict):
        return [{key: value} for key, value in more.items()]
    return [[value] for value in more]


_DASH = re.compile(r"( *)((?:- )+)?")


def _indented_lists(lines: list[str]) -> list[str]:
    """Indent lists that are in the same column as their key by two."""
    moved: list[str] = []
    # The columns of keys with an indented list, outermost first.
    open_: list[int] = []
    previous: tuple[int, bool] = (-1, False)
    for line in lines:
        match = _DASH.match(line)
        column = len(match[1]) if match else 0
        dashes = match[2] if match else None
        if line.strip():
            while open_ and (column < open_[-1] or (column == open_[-1] and not dashes)):
                open_.pop()
            if dashes and previous == (column, True) and column not in open_:
                open_.append(column)
            key_column = column + len(dashes or "")
            previous = (key_column, line.rstrip().endswith(":"))
        moved.append("  " * len(open_) + line if line.strip() else line)
    return moved


_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^\s,\]}]+")


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _json_node(text: str, plain: str, at: int) -> _Node:
    """Find the place of each value of a valid JSON text; ``plain`` is the text without comments."""
    opener = plain[at]
    if opener == '"':
        return _Node(at, decoder.scanstring(text, at + 1, False)[1], [])  # type: ignore[attr-defined]
    if opener not in "{[":
        match = _SCALAR.match(plain, at)
        return _Node(at, match.end() if match else at, [])
    start, entries, keys = at, [], []
    at = _skip(plain, at + 1)
    while plain[at] not in "}]":
        first = at
        if opener == "{":
            key, at = decoder.scanstring(text, at + 1, False)  # type: ignore[attr-defined]
            keys.append(key)
            at = _skip(plain, _skip(plain, at) + 1)
        node = _json_node(text, plain, at)
        entries.append(_Entry(first, node))
        at = _skip(plain, node.end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return _Node(start, at + 1, entries, keys if opener == "{" else None, is_list=opener == "[")


def _yaml_node(text: str, node: Any) -> _Node:
    start, end = node.start_mark.index, node.end_mark.index
    if isinstance(node, yaml.ScalarNode):
        # The end mark of a block text (`|`) is after its last line break.
        return _Node(start, max(start, _trimmed(text, start, end)), [])
    entries: list[_Entry] = []
    keys: list[str] | None = None
    column = None if node.flow_style else node.start_mark.column
    if isinstance(node, yaml.SequenceNode):
        for child in node.value:
            value = _yaml_node(text, child)
            begins = value.start if column is None else _dash(text, value.start, start, column)
            entries.append(_Entry(begins, _placed(value, begins + 1, column)))
    else:
        keys = []
        for key, child in node.value:
            keys.append(str(key.value))
            behind = text.find(":", key.end_mark.index) + 1
            value = _placed(_yaml_node(text, child), behind, column)
            entries.append(_Entry(key.start_mark.index, value))
    if column is not None:
        end = entries[-1].node.end if entries else _trimmed(text, start, end)
    return _Node(start, end, entries, keys, column, isinstance(node, yaml.SequenceNode))


def _placed(value: _Node, behind: int, column: int | None) -> _Node:
    """Give an empty value (`key:`) the place after its key or dash."""
    if column is not None and value.start == value.end:
        return _Node(behind, behind, [])
    return value


def _trimmed(text: str, start: int, end: int) -> int:
    return start + len(text[start:end].rstrip())


def _dash(text: str, at: int, first: int, column: int) -> int:
    """Return the place of the dash of an item that starts at ``at``."""
    place = text.rfind("-", first, at)
    while place > first and place - (text.rfind("\n", 0, place) + 1) != column:
        place = text.rfind("-", first, place)
    return max(place, first)

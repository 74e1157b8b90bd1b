"""YAML as people expect it: only ``true`` and ``false`` are booleans, a date is text.

``no``, ``off`` and ``2025-01-01`` are text; keys are text and unique.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import yaml

from baton.model import InputError, Problem
from baton.model.limits import FAULTS, YAML_ALIASED, YAML_DEPTH, YAML_NODES
from baton.model.visible import visible

from .explain_mistakes import Path
from .key_case import snake

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: type[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _CoreDumper(_Dumper):  # type: ignore[misc]
    """The safe dumper, which also quotes texts that only the core schema would read differently."""


class _CoreLoader(_Loader):  # type: ignore[misc]
    """The safe loader with the scalars of YAML 1.2's core schema."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}


_TAG = "tag:yaml.org,2002:"
_SCALARS = [
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", "-+0123456789."),
    ("merge", r"<<", "<"),
]
for _name, _pattern, _first in _SCALARS:
    for _class in (_CoreLoader, _CoreDumper):
        _class.add_implicit_resolver(_TAG + _name, re.compile(f"(?:{_pattern})$"), list(_first))
_COMMAND = re.compile(r"(?:^|\s)::|##")


def _text(dumper: Any, value: str) -> Any:
    r"""Quote characters that are printed as escapes: in quotes ``\u202e`` means the same."""
    escaped = visible(value) != value or _COMMAND.search(value) is not None
    return dumper.represent_scalar(f"{_TAG}str", value, style='"' if escaped else None)


_CoreDumper.add_representer(str, _text)


class _LineDumper(_CoreDumper):
    """Writes texts of several lines as lines (`|`), as people write them."""


def _lines(dumper: Any, value: str) -> Any:
    if "\n" in value and visible(value) == value and _COMMAND.search(value) is None:
        return dumper.represent_scalar(f"{_TAG}str", value, style="|")
    return _text(dumper, value)


_LineDumper.add_representer(str, _lines)


def load_yaml(text: str, file: str) -> Any:
    """Parse one YAML document into plain data.

    It is built from the parser's events without recursion, and size and depth are checked before
    anything is built.

    Raises:
        InputError: it is not YAML, is over a limit, or has duplicate keys; with file and line.
    """
    try:
        builder = _Builder(file)
        loader = _CoreLoader(text)
        scalar, start, end = builder.scalar, builder.start, builder.end
        next_event = loader.get_event
        try:
            while (event := next_event()) is not None:
                kind = type(event)
                if kind is yaml.ScalarEvent:
                    scalar(event)
                elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
                    start(event, kind is yaml.MappingStartEvent)
                elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                    end()
                elif kind is yaml.AliasEvent:
                    builder.alias(event)
                elif kind is yaml.DocumentStartEvent:
                    builder.document(event)
                elif kind is yaml.StreamEndEvent:
                    break
        finally:
            loader.dispose()
        return builder.done()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        what = ", ".join(part for part in (error.context, error.problem) if part)
        if "cannot start any token" in what and mark and "\t" in text.splitlines()[mark.line]:
            what = "a tab; YAML is indented with spaces"
        raise InputError(Problem(file=file, line=line, message=f"not YAML: {what}")) from error
    except yaml.reader.ReaderError as error:
        # Such as a NUL byte of a file that a crash left behind. Its position counts bytes.
        line = text.encode()[: error.position].count(b"\n") + 1
        what = f"not YAML: it contains U+{error.character:04X}, which YAML does not allow"
        raise InputError(Problem(file=file, line=line, message=what)) from error
    except yaml.YAMLError as error:
        raise InputError(Problem(file=file, message=f"not YAML: {error}")) from error


def dump_yaml(value: Any, *, lines: bool = False) -> str:
    """Write plain data as block-style YAML that :func:`load_yaml` reads back the same.

    ``lines`` writes texts of several lines in block style (`|`), not in quotes.
    """
    dumper = _LineDumper if lines else _CoreDumper
    return str(
        yaml.dump(value, Dumper=dumper, sort_keys=False, allow_unicode=True, width=96, indent=2)
    )


def yaml_node(text: str) -> Any:
    """Return the node of a document that :func:`load_yaml` has read, for :func:`yaml_line`."""
    load_yaml(text, "")
    loader = _CoreLoader(text)
    try:
        return loader.get_single_node()
    finally:
        loader.dispose()


def yaml_line(node: Any, path: Path) -> int | None:
    """Return the line (from 1) on which the value at ``path`` starts, or its last part found."""
    line = None
    for step in path:
        line = node.start_mark.line + 1 if node is not None else line
        node, key_line = _child(node, step)
        if node is None:
            return line
        line = key_line
    return line if line is not None else 1


def _child(node: Any, step: str | int) -> tuple[Any, int | None]:
    if isinstance(node, yaml.MappingNode):
        for key, item in node.value:
            if key.value == step or snake(key.value) == str(step):
                return item, key.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step].start_mark.line + 1
    return None, None


class _Anchored(NamedTuple):
    """The value of an alias; ``text`` is the key form of a scalar."""

    value: Any
    text: str | None
    nodes: int
    depth: int


class _Open:
    """A list or mapping that is being built.

    ``nodes`` and ``depth`` count what aliases repeat, too.
    """

    __slots__ = ("anchor", "depth", "event", "is_mapping", "key", "merged", "nodes", "value")

    def __init__(self, event: Any, *, is_mapping: bool) -> None:
        self.event = event
        self.anchor: str | None = event.anchor
        self.is_mapping = is_mapping
        self.value: Any = {} if is_mapping else []
        self.key: str | None = None
        self.merged: list[Any] | None = None
        self.nodes = 1
        self.depth = 1


class _Builder:
    """Builds plain data from events, and counts its nodes.

    An alias counts as its value, also in a merge key. With ``a: &a [x, x]`` and
    ``b: &b [*a, *a]``, the value of ``b`` has 1 + 2 * 3 nodes.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._root: Any = None
        self._documents = 0
        self._doubled: list[Problem] = []
        self._more = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, _Anchored] = {}
        self._words: dict[str, Any] = {}
        self._written = self._aliased = 0

    def document(self, event: Any) -> None:
        """Start the only document."""
        self._documents += 1
        if self._documents > 1:
            raise self._wrong(event, "expected a single document, but found another one")

    def scalar(self, event: Any) -> None:
        """Add a text, number or other scalar, as a key or as a value."""
        self._written += 1
        if self._written > YAML_NODES.value:
            raise self._too_many(event)
        holder = self._open[-1] if self._open else None
        if holder is not None:
            holder.nodes += 1
            if holder.is_mapping and holder.key is None:
                self._key(holder, event.value, event)
                if event.anchor is not None:
                    self._name(event, _Anchored(event.value, event.value, 1, 0))
                return
        value = event.value
        if event.tag is not None and event.tag != "!":
            # It has an explicit tag: `!!str 5`, `!!int "5"`.
            kind = event.tag.removeprefix(_TAG)
            read = _READ.get(kind) if event.tag.startswith(_TAG) else None
            if read is None:
                raise self._wrong(event, f"the tag `{event.tag}` is not one that Baton reads")
            try:
                value = read(event.value)
            except (KeyError, ValueError):
                message = f"`{event.value[:40]}` does not fit its tag `!!{kind}`"
                raise self._wrong(event, message) from None
        elif event.implicit[0]:
            value = self._words.get(value, self)
            if value is self:
                value = self._words[event.value] = _word(event.value)
        if event.anchor is not None:
            self._name(event, _Anchored(value, event.value, 1, 0))
        self._put(holder, value, event)

    def start(self, event: Any, is_mapping: bool) -> None:
        """Open a list or mapping."""
        self._written += 1
        if self._written > YAML_NODES.value:
            raise self._too_many(event)
        if event.tag is not None and event.tag not in (
            "!",
            _TAG + ("map" if is_mapping else "seq"),
        ):
            raise self._wrong(event, f"the tag `{event.tag}` is not one that Baton reads")
        if self._open and self._open[-1].is_mapping and self._open[-1].key is None:
            raise self._wrong(event, "found a key that is not text")
        if event.anchor is not None and event.anchor in self._anchors:
            raise self._wrong(event, f"found duplicate anchor `{event.anchor}`")
        self._open.append(_Open(event, is_mapping=is_mapping))
        if len(self._open) > YAML_DEPTH.value:
            raise self._too_deep(event)

    def end(self) -> None:
        """Close a list or mapping."""
        done = self._open.pop()
        value = done.value
        if done.merged is not None:
            value = {}
            for source in done.merged:
                value.update(source)
            value.update(done.value)
        if done.anchor is not None:
            self._name(done.event, _Anchored(value, None, done.nodes, done.depth))
        holder = self._open[-1] if self._open else None
        if holder is not None:
            holder.nodes += done.nodes
            holder.depth = max(holder.depth, done.depth + 1)
        self._put(holder, value, done.event)

    def alias(self, event: Any) -> None:
        """Add the value of an alias, after counting its nodes."""
        if any(each.anchor == event.anchor for each in self._open):
            message = f"`*{event.anchor}` is inside the value that it refers to"
            raise InputError(_problem(self._file, event, message))
        target = self._anchors.get(event.anchor)
        if target is None:
            raise self._wrong(event, f"found undefined alias `{event.anchor}`")
        self._aliased += target.nodes
        if self._aliased > YAML_ALIASED.value:
            message = (
                f"aliases repeat more than {YAML_ALIASED.value:,} values, which is the limit; "
                "write the values out, or use fewer aliases of aliases"
            )
            raise InputError(_problem(self._file, event, message))
        if len(self._open) + target.depth > YAML_DEPTH.value:
            raise self._too_deep(event)
        holder = self._open[-1] if self._open else None
        if holder is not None:
            holder.nodes += target.nodes
            holder.depth = max(holder.depth, target.depth + 1)
            if holder.is_mapping and holder.key is None:
                if target.text is None:
                    raise self._wrong(event, "found a key that is not text")
                self._key(holder, target.text, event)
                return
        self._put(holder, target.value, event)

    def done(self) -> Any:
        """Return the value; raises InputError for duplicate keys."""
        if self._more:
            message = f"and {self._more:,} more duplicate keys"
            self._doubled.append(Problem(file=self._file, message=message))
        if self._doubled:
            raise InputError(self._doubled)
        return self._root

    def _key(self, holder: _Open, key: str, event: Any) -> None:
        if key == "<<" and type(event) is yaml.ScalarEvent and event.implicit[0]:
            holder.merged = holder.merged if holder.merged is not None else []
            holder.key = _MERGE
            return
        holder.key = key
        if key in holder.value:
            if len(self._doubled) < FAULTS.value:
                message = f"duplicate key `{key[:200]}`"
                self._doubled.append(_problem(self._file, event, message))
            else:
                self._more += 1

    def _put(self, holder: _Open | None, value: Any, event: Any) -> None:
        if holder is None:
            self._root = value
        elif not holder.is_mapping:
            holder.value.append(value)
        elif holder.key is not _MERGE:
            holder.value[holder.key] = value
            holder.key = None
        else:
            # The first of several mappings wins, and the mapping's own keys win over all of them.
            sources = value[::-1] if isinstance(value, list) else [value]
            if not all(isinstance(source, dict) for source in sources):
                raise self._wrong(event, "`<<` needs a mapping, or a list of mappings")
            holder.merged = [*(holder.merged or []), *sources]
            holder.key = None

    def _name(self, event: Any, what: _Anchored) -> None:
        if event.anchor in self._anchors:
            raise self._wrong(event, f"found duplicate anchor `{event.anchor}`")
        self._anchors[event.anchor] = what

    def _wrong(self, event: Any, what: str) -> InputError:
        return InputError(_problem(self._file, event, f"not YAML: {what}"))

    def _too_many(self, event: Any) -> InputError:
        message = (
            f"holds more than {YAML_NODES.value:,} values, which is the limit for YAML; write "
            "it as JSON lines, or as several files"
        )
        return InputError(_problem(self._file, event, message))

    def _too_deep(self, event: Any) -> InputError:
        limit = f"nested too deeply: more than {YAML_DEPTH.value} levels, which is the limit"
        return InputError(_problem(self._file, event, limit))


_MERGE = "<<merge>>"
_FLAGS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_NOTHING = {"": None, "~": None, "null": None, "Null": None, "NULL": None}


def _float(text: str) -> float:
    """Read a number with a fraction; raises ValueError for ``1.0e999``, which is infinite."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(text)
    return number


_READ: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": int,
    "float": _float,
    "bool": _FLAGS.__getitem__,
    "null": _NOTHING.__getitem__,
}
_NUMBER = {"int": re.compile(_SCALARS[2][1]), "float": re.compile(_SCALARS[3][1])}


def _word(text: str) -> Any:
    """Read a scalar without quotes: a boolean, null, a number, or text."""
    if text in _FLAGS:
        return _FLAGS[text]
    if text in _NOTHING:
        return None
    if text[0] in "-+.0123456789":
        for kind, pattern in _NUMBER.items():
            if pattern.fullmatch(text):
                try:
                    return _READ[kind](text)
                except ValueError:
                    raise yaml.YAMLError(f"`{text[:40]}` is out of range") from None
    return text


def _problem(file: str, event: Any, message: str) -> Problem:
    return Problem(file=file, line=event.start_mark.line + 1, message=message)

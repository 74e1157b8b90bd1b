"""YAML as people mean it: only ``true`` and ``false`` are booleans, a date is text.

``no``, ``off`` and ``2025-01-01`` stay the words they are, keys are text and unique.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import yaml

from baton.model import InputError, Problem
from baton.model.limits import FAULTS, YAML_ALIASED, YAML_DEPTH, YAML_NODES
from baton.model.visible import visible

from .explain import Path
from .spelling import snake

_Loader: type[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper: type[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _CoreDumper(_Dumper):  # type: ignore[misc]
    """The safe dumper, which also quotes what only the core schema takes for no text."""


class _CoreLoader(_Loader):  # type: ignore[misc]
    """The safe loader with the scalars of YAML 1.2's core schema."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}
    # Without those whose values are no JSON data: sets, bytes, dates, lists of pairs. The tags of
    # the core schema are enough; any other tag is an error that names it.
    yaml_constructors: ClassVar[dict[str | None, Any]] = {
        tag: make
        for tag, make in _Loader.yaml_constructors.items()
        if tag is None
        or tag.rpartition(":")[2] in ("null", "bool", "int", "float", "str", "seq", "map")
    }

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:
        """Build a mapping whose keys are the words that are written: ``1`` and ``no`` are text."""
        if not isinstance(node, yaml.MappingNode):
            return super().construct_mapping(node, deep=deep)  # type: ignore[no-any-return]
        self.flatten_mapping(node)
        found: dict[str, Any] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    "while constructing a mapping", node.start_mark,
                    "found a key that is not text", key.start_mark,
                )  # fmt: skip
            found[key.value] = self.construct_object(value, deep=deep)
        return found


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
    r"""Quote what is shown as escapes where it is printed: in quotes ``\u202e`` says the same."""
    escaped = visible(value) != value or _COMMAND.search(value) is not None
    return dumper.represent_scalar(f"{_TAG}str", value, style='"' if escaped else None)


_CoreDumper.add_representer(str, _text)


def load_yaml(text: str, file: str) -> Any:
    """Parse one YAML document into plain data.

    Its size and depth are checked before anything is built.

    Raises:
        InputError: it is not YAML, is over a limit, or has duplicate keys; with file and line.
    """
    try:
        _check(text, file)
        loader = _CoreLoader(text)
        try:
            node = loader.get_single_node()
            return None if node is None else loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        what = ", ".join(part for part in (error.context, error.problem) if part)
        if "cannot start any token" in what and mark and "\t" in text.splitlines()[mark.line]:
            what = "a tab; YAML is indented with spaces"
        raise InputError(Problem(file=file, line=line, message=f"not YAML: {what}")) from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise InputError(Problem(file=file, message=f"not YAML: {error}")) from error
    except LookupError as error:
        # How PyYAML's constructors fail for `!!bool maybe` and `!!int ""`.
        message = f"not YAML: a value does not fit its tag ({error})"
        raise InputError(Problem(file=file, message=message)) from error


def dump_yaml(value: Any) -> str:
    """Write plain data as block-style YAML that :func:`load_yaml` reads back the same."""
    return str(
        yaml.dump(
            value, Dumper=_CoreDumper, sort_keys=False, allow_unicode=True, width=96, indent=2
        )
    )


def yaml_node(text: str) -> Any:
    """Return the node of a document that :func:`load_yaml` has read, for :func:`yaml_line`."""
    _check(text, "")
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


class _Size:
    """Size of a value with what its aliases repeat: ``nodes`` in all, ``depth`` in levels."""

    __slots__ = ("anchor", "depth", "is_mapping", "keys", "nodes", "wants_key")

    def __init__(self, anchor: str | None, *, is_mapping: bool) -> None:
        self.anchor = anchor
        self.is_mapping = is_mapping
        self.keys: set[str] = set()
        self.wants_key = is_mapping
        self.nodes = 1
        self.depth = 1

    def add(self, nodes: int, depth: int) -> None:
        """Take in a value that this one holds."""
        self.nodes += nodes
        self.depth = max(self.depth, depth + 1)
        if self.is_mapping:
            self.wants_key = not self.wants_key


def _check(text: str, file: str) -> None:
    """Go over the events of a document, and refuse one that is too large or too deep to build.

    The parser is a state machine and gives one event after the other, so nothing here nests.
    """
    check = _Check(file)
    loader = _CoreLoader(text)
    try:
        while loader.check_event():
            event = loader.get_event()
            if isinstance(event, yaml.ScalarEvent):
                check.scalar(event)
            elif isinstance(event, yaml.CollectionStartEvent):
                check.start(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                check.end()
            elif isinstance(event, yaml.AliasEvent):
                check.alias(event)
    finally:
        loader.dispose()
    check.done()


class _Check:
    """Counts what a document would be when it is built.

    An alias counts as what it stands for, also in a merge key. With ``a: &a [x, x]`` and
    ``b: &b [*a, *a]``, the value of ``b`` has 1 + 2 * 3 nodes.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._doubled: list[Problem] = []
        self._more = 0
        self._open: list[_Size] = []
        self._known: dict[str, tuple[int, int]] = {}
        self._written = self._aliased = 0

    def scalar(self, event: Any) -> None:
        """Count a text or number, and look for duplicate keys."""
        self._count(event)
        if event.anchor is not None:
            self._known[event.anchor] = (1, 0)
        if not self._open:
            return
        holder = self._open[-1]
        if holder.wants_key and event.value != "<<":
            if event.value not in holder.keys:
                holder.keys.add(event.value)
            elif len(self._doubled) < FAULTS.value:
                message = f"duplicate key `{event.value[:200]}`"
                self._doubled.append(_problem(self._file, event, message))
            else:
                self._more += 1
        holder.add(1, 0)

    def start(self, event: Any) -> None:
        """Open a list or mapping."""
        self._count(event)
        self._open.append(_Size(event.anchor, is_mapping=isinstance(event, yaml.MappingStartEvent)))
        if len(self._open) > YAML_DEPTH.value:
            raise _too_deep(self._file, event)

    def end(self) -> None:
        """Close a list or mapping."""
        done = self._open.pop()
        if done.anchor is not None:
            self._known[done.anchor] = (done.nodes, done.depth)
        if self._open:
            self._open[-1].add(done.nodes, done.depth)

    def alias(self, event: Any) -> None:
        """Count all that an alias stands for."""
        if any(size.anchor == event.anchor for size in self._open):
            message = f"`*{event.anchor}` is inside the value that it stands for"
            raise InputError(_problem(self._file, event, message))
        # An alias without an anchor is an error that the composer words.
        nodes, depth = self._known.get(event.anchor, (1, 0))
        self._aliased += nodes
        if self._open:
            self._open[-1].add(nodes, depth)
        if len(self._open) + depth > YAML_DEPTH.value:
            raise _too_deep(self._file, event)
        if self._aliased > YAML_ALIASED.value:
            message = (
                f"aliases repeat more than {YAML_ALIASED.value:,} values, which is the limit; "
                "write the values out, or use fewer aliases of aliases"
            )
            raise InputError(_problem(self._file, event, message))

    def done(self) -> None:
        """Report duplicate keys."""
        if self._more:
            message = f"and {self._more:,} more duplicate keys"
            self._doubled.append(Problem(file=self._file, message=message))
        if self._doubled:
            raise InputError(self._doubled)

    def _count(self, event: Any) -> None:
        self._written += 1
        if self._written > YAML_NODES.value:
            message = (
                f"holds more than {YAML_NODES.value:,} values, which is the limit for YAML; write "
                "it as JSON lines, or as several files"
            )
            raise InputError(_problem(self._file, event, message))


def _problem(file: str, event: Any, message: str) -> Problem:
    return Problem(file=file, line=event.start_mark.line + 1, message=message)


def _too_deep(file: str, event: Any) -> InputError:
    limit = f"nested too deeply: more than {YAML_DEPTH.value} levels, which is the limit"
    return InputError(_problem(file, event, limit))

"""YAML as people mean it: only ``true`` and ``false`` are booleans, a date is text.

``no``, ``off`` and ``2025-01-01`` stay the words they are, keys are text and stand once.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

import yaml

from baton.model import InputError, Problem
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

    Raises:
        InputError: it is not YAML, or a key stands twice; with file and line.
    """
    loader = _CoreLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        twice = list(_doubled(node))
        if twice:
            raise InputError(
                Problem(file=file, line=line, message=f"the key `{key}` stands twice")
                for key, line in twice
            )
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        what = ", ".join(part for part in (error.context, error.problem) if part)
        if "cannot start any token" in what and mark and "\t" in text.splitlines()[mark.line]:
            what = "a tab; YAML is indented with spaces"
        raise InputError(Problem(file=file, line=line, message=f"not YAML: {what}")) from error
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(Problem(file=file, message=f"not YAML: {error}")) from error
    finally:
        loader.dispose()


def dump_yaml(value: Any) -> str:
    """Write plain data as block-style YAML that :func:`load_yaml` reads back the same."""
    return str(
        yaml.dump(
            value, Dumper=_CoreDumper, sort_keys=False, allow_unicode=True, width=96, indent=2
        )
    )


def yaml_node(text: str) -> Any:
    """Return the node of a YAML document, for :func:`yaml_line`."""
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


def _doubled(root: Any) -> list[tuple[str, int]]:
    """Find keys that stand twice in one mapping; aliased nodes are visited once."""
    found, stack, seen = [], [root], set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys: set[str] = set()
            for key, item in node.value:
                if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                    if key.value in keys:
                        found.append((key.value, key.start_mark.line + 1))
                    keys.add(key.value)
                stack.append(item)
        elif isinstance(node, yaml.SequenceNode):
            stack.extend(node.value)
    return sorted(found, key=lambda pair: pair[1])

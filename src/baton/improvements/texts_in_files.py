"""Finds the texts of agents in a project's files, and replaces them.

A text is found by its content, never guessed: the string in a program, the value in a YAML or JSON
file, the body of an agent definition or the file of a prompt that equals the text at the start of
the improvement. A text that is not found, or is found in several indistinguishable places, is
refused. So is a file that is a link or is outside of the project. No program is run for this.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from baton.components import are_examples, read_examples
from baton.formats.claude_definitions import agent_parts, sections, with_sections
from baton.formats.document import Document
from baton.formats.edit_values import rewrite
from baton.formats.own_files import (
    is_hidden_or_installed,
    make_folder,
    open_own,
    open_regular,
    write_whole,
)
from baton.model import InputError, Problem

FILES = 5_000
"""Maximum files to search below a folder: a larger project must name the files of its prompts."""
MAX_BYTES = 4 << 20
"""Maximum size of a file: no prompt is in a larger one."""
_ENDINGS = (".py", ".yaml", ".yml", ".md", ".txt", ".prompt", ".j2", ".jinja", ".jinja2")
# The names of arguments that hold a text of an agent or of a tool: `instructions` of OpenAI Agents
# and pydantic-ai, `instruction` of ADK, `system_prompt` of Strands and LangChain, `prompt` of the
# Claude Agent SDK. Descriptions have these names.
_ARGUMENTS = {
    "agent": ("instructions", "instruction", "system_prompt", "prompt", "global_instruction"),
    "description": ("description", "handoff_description", "tool_description"),
    "tool": ("description", "tool_description", "description_override"),
}


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """The new text of a component, and the text that it replaces."""

    component: str
    before: str
    after: str


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file with its new content in bytes. ``path`` is relative to the project's root."""

    path: Path
    before: bytes
    after: bytes
    components: list[str]


def changes_of_files(
    changes: Sequence[Change],
    places: Mapping[str, Iterable[Path]],
    root: Path,
    leave: Path | None = None,
) -> list[FileChange]:
    """Find each text in the files, and return the changed files; nothing is written.

    Args:
        changes: the new texts.
        places: the files and folders that may contain a component's text, by component.
        root: the folder of the project; nothing outside of it is changed.
        leave: a folder in it that is not searched, such as one with old files.

    Raises:
        InputError: a text is not found exactly once, or a file may not be written; the message
            lists all of them, and what to do.
    """
    root = root.resolve()
    read: dict[Path, bytes] = {}
    now: dict[Path, bytes] = {}
    named: dict[Path, list[str]] = {}
    problems: list[Problem] = []
    for change in changes:
        changed: list[tuple[Path, bytes]] = []
        try:
            for file, is_named in _files(places.get(change.component, ()), root).items():
                if leave is not None and file.is_relative_to(leave.resolve()):
                    continue
                if file not in read:
                    read[file] = _bytes(file)
                    now[file] = read[file]
                new = _written(file, now[file], change, is_named=is_named)
                changed += [(file, data) for data in new]
        except InputError as error:
            problems += error.problems
            continue
        if len(changed) == 1:
            file, data = changed[0]
            now[file] = data
            named.setdefault(file, []).append(change.component)
        else:
            problems.append(Problem(message=_why_not(change, [file for file, _ in changed], root)))
    if problems:
        raise InputError(problems)
    return [
        FileChange(
            path=file.relative_to(root), before=read[file], after=now[file], components=names
        )
        for file, names in named.items()
    ]


def write_files(files: Sequence[FileChange], root: Path, backups: Path) -> list[Path]:
    """Write changed files, each with a copy of the old one below ``backups``; return the copies.

    All copies are made before the first file is written. If writing a file fails, the files that
    were already written are restored.

    Raises:
        InputError: a file has changed since it was read, is a link, or cannot be written.
    """
    root = root.resolve()
    copies = []
    for each in files:
        place = root / each.path
        _refuse_leaving(place, root)
        if _bytes(place) != each.before:
            message = "has changed since it was read: nothing was written; try again"
            raise InputError(Problem(file=str(each.path), message=message))
    try:
        for each in files:
            copy = backups / each.path
            make_folder(copy.parent)
            with open_own(copy, "wb") as opened:
                opened.write(each.before)
            copies.append(copy)
    except OSError as error:
        message = f"the copy of the old file cannot be written: {error}"
        raise InputError(Problem(file=str(backups), message=message)) from error
    done: list[FileChange] = []
    for each in files:
        try:
            write_whole(root / each.path, each.after, sync=True, keep_mode=True)
        except OSError as error:
            for one in done:
                write_whole(root / one.path, one.before, sync=True, keep_mode=True)
            message = f"cannot be written, and no other file was changed: {error}"
            raise InputError(Problem(file=str(each.path), message=message)) from error
        done.append(each)
    return copies


def _bytes(path: Path) -> bytes:
    try:
        with open_regular(path) as opened:
            data = opened.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise InputError(Problem(file=str(path), message="no such file")) from None
    if len(data) > MAX_BYTES:
        raise InputError(Problem(file=str(path), message="is too long for a file with prompts"))
    return data


def _files(places: Iterable[Path], root: Path) -> dict[Path, bool]:
    """Return the files of places, and the files in folders that may contain a prompt.

    The value is whether a place names the file itself.
    """
    files: dict[Path, bool] = {}
    for place in places:
        if not place.is_dir():
            path = place.parent.resolve() / place.name
            _refuse_leaving(path, root)
            files[path] = True
            continue
        for path in islice(_below(place.resolve()), FILES):
            if path.is_relative_to(root):
                files.setdefault(path, False)
    return files


def _below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        is_text = path.suffix in _ENDINGS and not is_hidden_or_installed(path, folder)
        if is_text and not path.is_symlink() and path.is_file():
            if path.parent.resolve() == path.parent and path.stat().st_size <= MAX_BYTES:
                yield path


def _refuse_leaving(path: Path, root: Path) -> None:
    """Raise InputError for a file that is outside of the project or reached through a link."""
    if not path.is_relative_to(root):
        message = f"is outside of {root}: only files of the project are written"
        raise InputError(Problem(file=str(path), message=message))
    for each in (path, *path.parents):
        if each == root:
            break
        if each.is_symlink():
            message = "is reached by a symbolic link, which is not followed"
            raise InputError(Problem(file=str(path), message=message))


def _why_not(change: Change, files: Sequence[Path], root: Path) -> str:
    name = change.component
    if not files:
        return (
            f"`{name}`: no file has its text as it was when the improvement began. Either it has "
            "changed since, or the program builds it at run time; copy the new text by hand"
        )
    listed = ", ".join(dict.fromkeys(str(file.relative_to(root)) for file in files))
    return f"`{name}`: its text is in {len(files)} places ({listed}): change it by hand"


def _written(file: Path, data: bytes, change: Change, *, is_named: bool) -> Iterator[bytes]:
    """Yield the file with the new text, once for each occurrence of the old one."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return
    candidates: list[str] = []
    # A file that contains only the text: one that `prompts:` names.
    if not are_examples(change.component) and text.removeprefix("\ufeff").rstrip(
        "\r\n"
    ) == change.before.rstrip("\r\n"):
        bare = text.rstrip("\r\n")
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        candidates.append(mark + _as_lines(change.after.rstrip("\n"), text) + text[len(bare) :])
    elif file.suffix in (".yaml", ".yml", ".json"):
        candidates += _in_document(file, text, change, is_named=is_named)
    elif file.suffix == ".py":
        candidates += _in_python(file, text, change)
    elif file.suffix == ".md":
        candidates += _in_markdown(file, text, change)
    for new in candidates:
        yield new.encode("utf-8")


def _as_lines(new: str, old: str) -> str:
    """Return a text with the line ends of its target file."""
    return new.replace("\n", "\r\n") if "\r\n" in old else new


# --- programs -------------------------------------------------------------------------------------


class _Literal(NamedTuple):
    """A string in a program; ``says`` is how certainly it belongs to the component, from 0."""

    node: ast.Constant
    says: int
    is_loose: bool


def _in_python(file: Path, text: str, change: Change) -> list[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return []
    if are_examples(change.component):
        return _choice_in_python(file, text, tree, change)
    literals = list(_literals(tree, change))
    if not literals:
        return []
    best = max(each.says for each in literals)
    candidates = []
    for each in literals:
        if each.says == best:
            new = _with_literal(text, each, change)
            if new is not None:
                candidates.append(new)
    return candidates


def _literals(tree: ast.AST, change: Change) -> Iterator[_Literal]:
    """Yield the strings of a program that equal the old text, with their certainty.

    Two agents may have the same text, and a text may also be the value of a constant and a default.
    A call that names the component (``prompts.get("agent:desk", ...)``) is most certain (3), then a
    call that names the agent and has an argument for such a text (2), then such an argument alone
    (1).
    """
    kind, _, of = change.component.partition(":")
    of = of.partition(".")[0]
    known: dict[int, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            strings = [
                each.value
                for each in [*node.args, *(one.value for one in node.keywords)]
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            ]
            values = [(None, each) for each in node.args]
            values += [(each.arg, each.value) for each in node.keywords]  # type: ignore[misc]
            for argument, value in values:
                is_named = argument in _ARGUMENTS.get(kind, ())
                says = 3 if change.component in strings else 0
                says = says or (2 if of in strings and is_named else 1 if is_named else 0)
                for inner in ast.walk(value):
                    if isinstance(inner, ast.Constant) and not isinstance(inner, ast.Call):
                        known[id(inner)] = max(known.get(id(inner), 0), says)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == of:
            first = node.body[0]
            if kind == "tool" and isinstance(first, ast.Expr):
                known[id(first.value)] = 3  # the docstring of the function that is the tool
    parts = {
        id(value)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for value in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            is_same = node.value == change.before
            # A docstring, or a text that the program dedents, is the same without its indent.
            is_loose = not is_same and inspect.cleandoc(node.value) == change.before.strip()
            if is_same or (is_loose and change.before.strip()):
                yield _Literal(node, known.get(id(node), 0), is_loose)


def _with_literal(text: str, literal: _Literal, change: Change) -> str | None:
    """Return a program with a string replaced, if the result evaluates to the new text."""
    node = literal.node
    lines = text.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: (node.end_lineno or 0) - 1])) + (node.end_col_offset or 0)
    old, data = text.encode()[start:end].decode(), text.encode()
    value = change.after
    if literal.is_loose:
        value = _indented(str(node.value), change.after)
    source = _as_lines(_source_of(value, old), text)
    new = (data[:start] + source.encode() + data[end:]).decode()
    try:
        again = list(_literals(ast.parse(new), _reversed(change)))
    except (SyntaxError, ValueError):
        return None
    is_there = any(each.node.lineno == node.lineno for each in again)
    return new if is_there else None


def _reversed(change: Change) -> Change:
    return Change(component=change.component, before=change.after, after=change.before)


def _indented(old: str, new: str) -> str:
    """Return a text with the indent and the first and last line ends of an old one."""
    indents = [
        line[: len(line) - len(line.lstrip())] for line in old.split("\n")[1:] if line.strip()
    ]
    indent = min(indents, key=len, default="")
    head = "\n" + indent if old.startswith("\n") else ""
    tail = old[len(old.rstrip()) :]
    body = "\n".join(
        indent + line if number and line.strip() else line
        for number, line in enumerate(new.strip().split("\n"))
    )
    return head + body + tail


def _source_of(value: str, old: str) -> str:
    """Write a string as Python source; one with several lines as people would write it."""
    plain = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\x7f")
    # A lone surrogate cannot be in a file, and JSON's escapes of other planes are not Python's.
    quoted = plain if value.isprintable() else repr(value)
    if "\n" not in value and not old.lstrip("rRuUbB").startswith(('"""', "'''")):
        return quoted
    quotes = "'''" if old.lstrip("rRuU").startswith("'''") else '"""'
    body = value.replace("\\", "\\\\").replace(quotes, "\\" + "\\".join(quotes))
    if body.endswith(quotes[0]):
        body = body[:-1] + "\\" + quotes[0]
    is_plain = all(each in "\n\t" or each.isprintable() for each in value)
    return f"{quotes}{body}{quotes}" if is_plain else repr(value)


def _choice_in_python(file: Path, text: str, tree: ast.AST, change: Change) -> list[str]:
    """Return a program with other cases in ``prompts.examples("examples:NAME", "FILE:a,b")``."""
    candidates = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or len(node.args) != 2:
            continue
        name, choice = node.args
        if not isinstance(name, ast.Constant) or name.value != change.component:
            continue
        if isinstance(choice, ast.Constant) and isinstance(choice.value, str):
            new = Change(
                component=change.component,
                before=choice.value,
                after=_choice(choice.value, change.after, file.parent),
            )
            literal = _Literal(choice, 0, is_loose=False)
            made = _with_literal(text, literal, new)
            candidates += [made] if made is not None else []
    return candidates


def _choice(old: str, examples: str, folder: Path) -> str:
    """Write the chosen cases as ``FILE:a,b``."""
    file = old
    if not (folder / old).exists() and ":" in old:
        file = old.rpartition(":")[0]
    return f"{file}:{','.join(each.id for each in read_examples(examples))}"


# --- documents ------------------------------------------------------------------------------------


def _in_document(file: Path, text: str, change: Change, *, is_named: bool) -> list[str]:
    """Return a YAML or JSON file in which the new text replaces the value with the old one.

    A file that was only found in a folder may be a dataset or a recording, which contain prompts as
    well. Such a file only counts if it defines one agent, as in ADK: with `name` and `instruction`
    at the top.
    """
    try:
        value = Document(str(file), text.encode(), _format(file)).value()
    except InputError:
        return []
    kind, _, of = change.component.partition(":")
    if not is_named and not (isinstance(value, dict) and value.get("name") == of):
        return []
    places: list[tuple[int, list[str | int]]] = []
    after = change.after
    if are_examples(change.component):
        for path, scalar in _scalars(value):
            if path[-1] == change.component:
                after = _choice(scalar, change.after, file.parent)
                places.append((0, path))
    else:
        for path, scalar in _scalars(value):
            if scalar.rstrip("\n") == change.before.rstrip("\n"):
                holder = _at(value, path[:-1])
                names = [holder.get("name")] if isinstance(holder, dict) else []
                is_argument = path[-1] in (*_ARGUMENTS.get(kind, ()), change.component)
                is_of = of in names or of in path[:-1] or path[-1] == change.component
                if not is_named and not (is_argument and len(path) == 1):
                    continue
                places.append((2 if is_argument and is_of else 1 if is_argument else 0, path))
    if not places:
        return []
    best = max(says for says, _ in places)
    made = []
    for says, path in places:
        if says == best:
            kept = "\n" if str(_at(value, path)).endswith("\n") else ""
            changed = _put(value, path, after.rstrip("\n") + kept)
            made.append(rewrite(str(file), text, changed))
    return made


def _format(file: Path) -> Any:
    return "json" if file.suffix == ".json" else "yaml"


def _scalars(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[list[Any], str]]:
    if isinstance(value, str):
        if path:
            yield list(path), value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _scalars(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from _scalars(item, (*path, place))


def _at(value: Any, path: Sequence[Any]) -> Any:
    for step in path:
        value = value[step]
    return value


def _put(value: Any, path: Sequence[Any], new: Any) -> Any:
    """Return a value with another one at a path; the old value is not changed."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = _put(value[path[0]], path[1:], new)
    return copy


# --- Markdown -------------------------------------------------------------------------------------


def _in_markdown(file: Path, text: str, change: Change) -> list[str]:
    """Return an agent definition, or a CLAUDE.md, with the new text."""
    kind, _, of = change.component.partition(":")
    name, hash_, heading = of.partition("#")
    what = f"front matter of {file}"
    if hash_:
        known = sections(text).get(heading)
        if kind != "agent" or known is None or known.text.strip() != change.before.strip():
            return []
        return [with_sections(text, {heading: _as_lines(change.after, text)})]
    parts = agent_parts(text)
    if parts is None or parts.name != name:
        return []
    if (
        kind == "agent"
        and text[parts.body_start :].strip().replace("\r\n", "\n") == change.before.strip()
    ):
        body = text[parts.body_start :]
        lead = body[: len(body) - len(body.lstrip())]
        tail = body[len(body.rstrip()) :]
        return [text[: parts.body_start] + lead + _as_lines(change.after.strip(), text) + tail]
    if kind == "description":
        front = text[parts.front_start : parts.front_end]
        new = _with_description(front, change, what)
        return [] if new is None else [text[: parts.front_start] + new + text[parts.front_end :]]
    return []


_DESCRIPTION = re.compile(r"^description:[ \t]*(.*)$", re.MULTILINE)


def _with_description(front: str, change: Change, what: str) -> str | None:
    try:
        value = Document(what, front.encode(), "yaml").value()
    except InputError:
        value = None
    if isinstance(value, dict):
        said = value.get("description")
        if not isinstance(said, str) or said.strip() != change.before.strip():
            return None
        return rewrite(what, front, {**value, "description": change.after})
    # Claude Code accepts front matter that is not YAML, such as `description: Use it: always`.
    line = _DESCRIPTION.search(front)
    if line is None or line[1].strip().strip("\"'") != change.before.strip():
        return None
    quoted = json.dumps(change.after, ensure_ascii=False)
    return front[: line.start(1)] + quoted + front[line.end(1) :]

"""A part of a file before it is decoded: plain data with its file and line numbers."""

from __future__ import annotations

import json
import math
import os
import re
from array import array
from collections.abc import Callable, Iterable, Sequence
from json import decoder
from typing import Any, BinaryIO, Literal, NamedTuple, TypeVar

import msgspec

from baton.model import InputError, Problem
from baton.model.limits import FAULTS, JSON_DEPTH

from .explain_mistakes import Fault, Path, explain, path_text
from .input_files import open_file, read_bytes, why_no_text
from .key_case import ExtraKey, camel_twin, normalise, prune, snake
from .nesting import is_too_deep

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)


def json_line(text: str, path: Path) -> int:
    """Return the line (from 1) on which the entry at ``path`` starts in a valid JSON text.

    If a path does not exist, its deepest existing part is used.
    """
    start = value = _skip(text, 1 if text.startswith("\ufeff") else 0)
    for step in path:
        place = _entry(text, value, step)
        if place is None:
            break
        start, value = place
    return text.count("\n", 0, start) + 1


def _entry(text: str, at: int, step: str | int) -> tuple[int, int] | None:
    """Find an entry of the object or list at ``at``; return the offsets of it and its value."""
    opener = text[at]
    if opener not in "{[" or (opener == "{") != isinstance(step, str):
        return None
    index = 0
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        start, key = at, str(index)
        if opener == "{":
            key, at = decoder.scanstring(text, at + 1, False)  # type: ignore[attr-defined]
            at = _skip(text, _skip(text, at) + 1)
        if key == step or snake(key) == str(step):
            return start, at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
        index += 1
    return None


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


__all__ = ["Document", "Places", "places_of", "raw_documents", "read_bytes"]

T = TypeVar("T")
_Shallow = dict[str, msgspec.Raw] | list[msgspec.Raw]
_SHALLOW: msgspec.json.Decoder[_Shallow] = msgspec.json.Decoder(_Shallow)


class _EvalSet(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An eval set as ADK writes it, its values left as text."""

    eval_cases: list[msgspec.Raw]
    eval_set_id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    name: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    description: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    creation_timestamp: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_EVAL_SET = msgspec.json.Decoder(_EvalSet)
_UNPARSED: Any = object()
# The largest float has 309 digits.
_DIGITS = 300
# Larger files are written by programs, and encoders write no duplicate keys.
_BY_HAND = 1 << 18


class Document:
    """The text of a file, or of a part that starts on ``first_line``."""

    def __init__(
        self, file: str, data: bytes, kind: Literal["json", "yaml"], first_line: int = 1
    ) -> None:
        self.file = file
        self.data = data
        self.kind = kind
        self.first_line = first_line
        self.deepest = JSON_DEPTH.value
        self._base: Path = ()
        self._parsed: Any = _UNPARSED
        self._whole: Document | None = None
        self._node: Any = None

    def part(self, value: Any, path: Path) -> Document:
        """Return the part of this document at ``path``, which was parsed before."""
        part = Document(self.file, self.data, self.kind, self.first_line)
        part._base, part._parsed, part._whole = (*self._base, *path), value, self._whole or self
        return part

    @property
    def text(self) -> str:
        """The text; raises InputError when it is not UTF-8."""
        try:
            return self.data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            why = why_no_text(self.data) if self.first_line == 1 else None
            if why is not None:
                raise InputError(self.problem(why)) from error
            line = self.data.count(b"\n", 0, error.start) + self.first_line
            raise InputError(self.problem("not UTF-8 text", line)) from error

    def value(self) -> Any:
        """Parse into plain data; raises InputError with the line when that fails."""
        if self._parsed is not _UNPARSED:
            return self._parsed
        if self.kind == "yaml":
            from .yaml import load_yaml  # not needed for JSON, as below

            return load_yaml(self.text, self.file)
        self._check_depth()
        try:
            return msgspec.json.decode(self.data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return self._json_again(error)
        except RecursionError:
            raise self._too_deep() from None

    def shallow(self) -> dict[str, msgspec.Raw] | list[msgspec.Raw]:
        """Parse a JSON object or list, its values left as text."""
        try:
            return _SHALLOW.decode(self.data)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            repaired = msgspec.json.encode(self._json_again(error))
            try:
                return _SHALLOW.decode(repaired)
            except msgspec.ValidationError:
                raise InputError(self.problem(f"not JSON: {error}")) from error
        except RecursionError:
            raise self._too_deep() from None

    def eval_set(self) -> tuple[dict[str, msgspec.Raw], list[msgspec.Raw]] | None:
        """Parse a plain eval set: the data beside its cases, and the cases; all left as text.

        ``None`` for anything else, which :meth:`shallow` reads. This parses the text once; taking
        ``eval_cases`` out of a shallow mapping parses it twice.
        """
        try:
            head = _EVAL_SET.decode(self.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        rest = {name: getattr(head, name) for name in _EvalSet.__struct_fields__[1:]}
        return {name: raw for name, raw in rest.items() if raw is not msgspec.UNSET}, (
            head.eval_cases
        )

    def refuse_duplicate_keys(self) -> None:
        """Raise InputError if an object has a key twice: parsers of JSON keep only the last one.

        Only for files that may be written by hand; this takes as long as parsing the file again.
        """
        if len(self.data) > _BY_HAND:
            return
        try:
            json.loads(self.data, object_pairs_hook=_with_single_keys)
        except _DuplicateKeyError as found:
            problem = self.problem(f"duplicate key `{str(found)[:200]}`")
        except (ValueError, RecursionError):  # reported when the file is decoded
            return
        else:
            return
        from .yaml import load_yaml  # knows lines, and is only needed for this error

        try:
            load_yaml(self.text, self.file)
        except InputError as error:
            if error.problems[0].message.startswith("duplicate key"):
                raise
        raise InputError(problem)

    def problem(self, message: str, line: int | None = None, path: Path = ()) -> Problem:
        """Return a problem of this document."""
        return Problem(file=self.file, line=line, path=path_text(path), message=message)

    def problem_at(self, path: Path, message: str) -> Problem:
        """Return a problem of the value at ``path``, with its line."""
        return self.problem(message, self.line(path), (*self._base, *path))

    def line(self, path: Path) -> int | None:
        """Return the line of the value at ``path``."""
        path = (*self._base, *path)
        if not path:
            return self.first_line
        if self.kind == "yaml":
            from .yaml import yaml_line

            return yaml_line((self._whole or self)._yaml_node(), path)
        return json_line(self.text, path) + self.first_line - 1

    def decode(
        self,
        type_: type[T],
        *,
        extra_keys: list[ExtraKey] | None = None,
        or_camel: bool = False,
        deepest: int = JSON_DEPTH.value,
    ) -> T:
        """Decode into ``type_``: the typed fast path, then the slow one of :meth:`convert`.

        ``or_camel``: the fast path is tried with camelCase keys as well. ``deepest`` is the maximum
        depth of the document.
        """
        self.deepest = deepest
        if self.kind == "json" and self._parsed is _UNPARSED:
            self._check_depth()
            for camel in (False, True) if or_camel else (False,):
                # The type for the other spelling takes a millisecond to make; few files need it.
                wanted = camel_twin(type_) if camel else type_
                try:
                    return msgspec.json.decode(self.data, type=wanted)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue
                except RecursionError:
                    raise self._too_deep() from None
        return self.convert(self.value(), type_, extra_keys=extra_keys)

    def convert(
        self,
        value: Any,
        type_: type[T],
        *,
        path: Path = (),
        extra_keys: list[ExtraKey] | None = None,
    ) -> T:
        """Convert plain data from ``path`` of this document to ``type_``.

        Keys may be in snake_case or camelCase. With ``extra_keys``, unknown keys are added there (a
        file of another tool); without, they are errors (a file of Baton).

        Raises:
            InputError: lists every problem, its line, and what to write instead.
        """
        try:
            value = normalise(value, type_)
            if extra_keys is not None:
                value, unknown = prune(value, type_)
                extra_keys.extend(
                    ExtraKey((*path, *extra_key.path), *extra_key[1:]) for extra_key in unknown
                )
            return msgspec.convert(value, type_)
        except msgspec.ValidationError as error:
            faults = explain(value, type_, path) or [Fault(path, str(error))]
            problems = [self.problem_at(f.path, f.message) for f in faults[: FAULTS.value]]
            if len(faults) > FAULTS.value:
                problems.append(self.problem(f"and {len(faults) - FAULTS.value:,} more problems"))
            raise InputError(problems) from None
        except RecursionError:
            raise self._too_deep() from None

    def _check_depth(self) -> None:
        if is_too_deep(self.data, self.deepest):
            raise self._too_deep()

    def _too_deep(self) -> InputError:
        message = f"nested too deeply: more than {self.deepest} levels, which is the limit"
        return InputError(self.problem(message, self.first_line))

    def _yaml_node(self) -> Any:
        """Compose the document once, for any number of lines."""
        if self._node is None:
            from .yaml import yaml_node

            self._node = yaml_node(self.text)
        return self._node

    def _json_again(self, error: Exception) -> Any:
        self._check_depth()
        try:
            return _whole_texts(
                json.loads(
                    self.text,
                    parse_constant=_refuse_constant,
                    parse_float=_finite,
                    parse_int=_no_longer_than_a_float,
                )
            )
        except json.JSONDecodeError as worse:
            line = worse.lineno + self.first_line - 1
            message = f"not JSON: {worse.msg}, column {worse.colno}"
            raise InputError(self.problem(message, line)) from error
        except ValueError as worse:
            raise InputError(self.problem(f"not JSON: {worse}")) from error


class _DuplicateKeyError(Exception):
    """An object has a key twice."""


def _with_single_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise _DuplicateKeyError(next(name for name in names if names.count(name) > 1))
    return made


def _whole_texts(value: Any) -> Any:
    """Repair texts that are not valid Unicode: lone surrogates, which only escapes can write."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, list):
        return [_whole_texts(item) for item in value]
    if isinstance(value, dict):
        return {_whole_texts(key): _whole_texts(item) for key, item in value.items()}
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(f"`{name}` is not a JSON value; write null or a number")


def _finite(text: str) -> float:
    """Read a number with a fraction; ``1e999`` would be infinite, which JSON cannot write."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"`{text[:40]}` is larger than any number of 64 bits")
    return number


def _no_longer_than_a_float(text: str) -> int:
    """Read an integer in the range of a float: it may be a time or an amount."""
    if len(text) > _DIGITS:
        raise ValueError(f"`{text[:40]}...` is a number of {len(text):,} digits")
    return int(text)


class Places(NamedTuple):
    """Where values are in a text: their first bytes, lengths in bytes, and lines."""

    starts: array[int]
    lengths: array[int]
    lines: array[int]

    @property
    def are_complete(self) -> bool:
        """Whether every value was found in the text."""
        return len(self.starts) == len(self.lines)


def places_of(data: bytes, raws: Iterable[msgspec.Raw], first_line: int = 1) -> Places:
    """Find values that follow each other in ``data``, which starts on ``first_line``.

    A repaired value is not in the text; it gets only the line of the value before.
    """
    places = Places(array("Q"), array("Q"), array("L"))
    at, line = 0, first_line
    for raw in raws:
        text = bytes(raw)
        # Mostly it comes next; searching for a long text is slower than comparing it.
        after = _BETWEEN.match(data, at)
        start = after.end() if after else at
        if not data.startswith(text, start):
            start = data.find(text, at)
        if start < 0:
            places.lines.append(line)
            continue
        line += data.count(b"\n", at, start)
        places.lines.append(line)
        places.starts.append(start)
        places.lengths.append(len(text))
        at = start + len(text)
        if b"\n" in text:  # mostly there is none, and counting takes ten times as long as searching
            line += text.count(b"\n")
    return places


def raw_documents(
    file: str, data: bytes, raws: Sequence[msgspec.Raw], first_line: int = 1
) -> Callable[[int], Document]:
    """Yield the documents of values that follow each other in ``data``.

    For a large file they are read again, one by one, so that the caller can free ``data`` and
    ``raws``: 10,000 cases need the memory of one.
    """
    starts, lengths, lines = places = places_of(data, raws, first_line)
    large = len(data) >= _LARGE and places.are_complete and hasattr(os, "pread")
    again = _opened_again(file, data) if large else None
    if again is None:
        return lambda index: Document(file, bytes(raws[index]), "json", lines[index])
    return lambda index: Document(
        file, again.read(starts[index], lengths[index]), "json", lines[index]
    )


_BETWEEN = re.compile(rb"[\s,]*")
_LARGE = 16 << 20
"""From this size on, the text of a file is not kept in memory for its parts."""


class _LargeFile:
    """An open file whose parts are read; forked workers may share it."""

    def __init__(self, file: str, stream: BinaryIO, size: int) -> None:
        self._file, self._stream = file, stream
        self._state = self._now()
        self._before = self._state[0] - size  # a byte order mark

    def read(self, start: int, length: int) -> bytes:
        """Read some bytes of the text; raises InputError when the file has changed."""
        if self._now() != self._state:
            raise InputError(
                Problem(file=self._file, message="has changed while it was being read")
            )
        return os.pread(self._stream.fileno(), length, self._before + start)

    def holds(self, data: bytes) -> bool:
        """Tell whether the file is ``data``, with or without a byte order mark before it."""
        step = 1 << 20
        return self._before in (0, 3) and all(
            self.read(at, step) == data[at : at + step] for at in range(0, len(data), step)
        )

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    __del__ = close

    def _now(self) -> tuple[int, int]:
        state = os.fstat(self._stream.fileno())
        return state.st_size, state.st_mtime_ns


def _opened_again(file: str, data: bytes) -> _LargeFile | None:
    """Reopen the file that ``data`` came from; ``None`` for a pipe, and for repaired data."""
    try:
        opened = _LargeFile(file, open_file(file), len(data))
    except InputError:
        return None  # a pipe cannot be read again
    if opened.holds(data):
        return opened
    opened.close()
    return None


_PIECES = re.compile(
    rb"""
    "(?:[^"\\]++|\\.)*+"?                                           # a text stays as it is
    | (?P<comment> //[^\n]*+ | \#[^\n]*+ | /\*.*?\*/ )
    | (?P<comma> , (?= (?: \s | //[^\n]*+ | \#[^\n]*+ )*+ [}\]] ))
    """,
    re.VERBOSE | re.DOTALL,
)
_VISIBLE = re.compile(rb"[^\n]")


def without_comments(data: bytes) -> bytes:
    """Return JSON with blanks in place of comments (``//``, ``#``, ``/* */``) and trailing commas.

    Lines and columns stay the same; JSON without any of these is returned unchanged.
    """
    return _PIECES.sub(_blank, data)


def _blank(match: re.Match[bytes]) -> bytes:
    return match[0] if match.lastgroup is None else _VISIBLE.sub(b" ", match[0])


def refuse_misspelt(document: Document, extra_keys: list[ExtraKey]) -> None:
    """Raise for a key that is similar to a known one; other unknown keys are only noted."""
    problems = [
        document.problem_at(extra_key.path, f"unknown key; did you mean `{extra_key.meant}`?")
        for extra_key in extra_keys
        if extra_key.meant
    ]
    if problems:
        raise InputError(problems)

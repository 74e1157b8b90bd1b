"""What a file is, told by its content; also one that has faults."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from baton.formats.document import Document, read_bytes, without_comments
from baton.formats.spelling import snake
from baton.model import InputError, Problem
from baton.readers.adk.wire import looks_like_sse
from baton.readers.files import kind_of

Kind = Literal["agents", "config", "criteria", "dataset", "rubric", "traces", "unknown"]
_CONFIG = {"evaluators", "providers", "reporters", "dataset", "agent_names", "evaluator_config"}


def kind_of_file(file: Path) -> Kind:
    """Tell what a file is meant to be.

    Raises:
        InputError: it cannot be read, or is neither JSON nor YAML nor a stream.
    """
    data = read_bytes(file)
    if looks_like_sse(data):
        return "traces"
    keys = _top_keys(file, data)
    if "criteria" in keys:
        return "criteria"
    if "test_passes" in keys:
        return "traces"
    if "prompt" in keys and keys & {"answer", "inputs", "unit"}:
        return "rubric"
    if keys & _CONFIG and not keys & {"cases", "id", "turns", "eval_id", "conversation"}:
        return "config"
    if "agents" in keys and not keys & {"turns", "cases", "id", "input"}:
        return "agents"
    if keys & {"cases", "eval_cases", "eval_id", "query", "data", "test_case", "test_cases"}:
        return "dataset"
    if kind_of(keys):
        return "traces"
    if keys & {"id", "input"} and not keys & {"turns", "events", "author", "schema_version"}:
        return "dataset"
    return "unknown"


IS_A_DATASET = "is a dataset: it says what should happen, and holds no recorded trace"


def given_as(files: Iterable[Path], kind: Kind, message: str) -> list[Problem]:
    """Name the files that are of this kind, with a message on what to do with them."""
    return [Problem(file=str(file), message=message) for file in files if is_kind(file, kind)]


def is_kind(file: Path, kind: Kind) -> bool:
    """Tell whether a file is there, can be read and is of this kind."""
    try:
        return file.is_file() and kind_of_file(file) == kind
    except InputError:
        return False


def _top_keys(file: Path, data: bytes) -> set[str]:
    """Return the keys of the object a file holds, or of the first in its list or lines."""
    json = data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")
    lines = data.split(b"\n", 1)
    try:
        value = Document(str(file), data, "json" if json else "yaml").value()
    except InputError:
        plain = without_comments(data) if json else data
        if plain != data:
            return _top_keys(file, plain)
        value = Document(str(file), lines[0], "json").value() if json and len(lines) > 1 else None
        if value is None:
            raise
    if isinstance(value, list):
        value = value[0] if value else {}
    return {snake(str(key)) for key in value} if isinstance(value, dict) else set()

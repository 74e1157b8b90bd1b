"""Detects the type of a file from its content, even if it has errors."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from baton.config import Config, load_config
from baton.datasets.files import starts_as_json
from baton.formats.document import Document, read_bytes, without_comments
from baton.formats.key_case import snake
from baton.model import InputError, Problem, nearest
from baton.model.option_spelling import option
from baton.readers.adk.wire import looks_like_sse
from baton.readers.file_reader import is_refused, kind_of
from baton.readers.otlp.wire.sniff import is_otlp

Kind = Literal["agents", "config", "criteria", "dataset", "rubric", "server", "traces", "unknown"]
# Settings that only a `server.yaml` has; `rules` is a key of policies and of scripts for LLMs, too.
_SERVER = {
    "alerts", "grpc_port", "identity_header", "judges", "keep_inbox", "projects", "projects_by_tag",
    "quiet", "retention", "trials", "trusted_proxies",
}  # fmt: skip
_CONFIG = {"evaluators", "providers", "reporters", "dataset", "agent_names", "evaluator_config"}


def kind_of_file(file: Path) -> Kind:
    """Return the intended type of a file.

    Raises:
        InputError: it cannot be read, or is neither JSON nor YAML nor a stream.
    """
    if is_otlp(file):
        return "traces"
    data = read_bytes(file)
    if looks_like_sse(data):
        return "traces"
    return _kind_with(_top_keys(file, data))


def _kind_with(keys: set[str]) -> Kind:
    """Return the intended type of a file with these keys (in snake_case)."""
    if is_refused(keys):
        return "traces"
    if "criteria" in keys:
        return "criteria"
    if "test_passes" in keys:
        return "traces"
    if "prompt" in keys and keys & {"answer", "inputs", "unit"}:
        return "rubric"
    if keys & _CONFIG and not keys & {"cases", "id", "turns", "eval_id", "conversation"}:
        return "config"
    if keys & _SERVER and not keys & {"cases", "id", "turns"}:
        return "server"
    if "agents" in keys and not keys & {"turns", "cases", "id", "input"}:
        return "agents"
    if keys & {"cases", "eval_cases", "eval_id", "query", "data", "test_case", "test_cases"}:
        return "dataset"
    if kind_of(keys):
        return "traces"
    if keys & {"id", "input"} and not keys & {"turns", "events", "author", "schema_version"}:
        return "dataset"
    return "unknown"


SWAPPED = "is a {}, not a {}: baton score RECORDING --dataset DATASET"
IS_A_RECORDING = "is a recording, not a config: baton score RECORDING"
IS_A_DATASET = "is a dataset: it says what should happen, and contains no recorded trace"


def given_as(files: Iterable[Path], kind: Kind, message: str) -> list[Problem]:
    """Name the files that are of this kind, with a message on what to do with them."""
    return [Problem(file=str(file), message=message) for file in files if is_kind(file, kind)]


def unreadable(
    problems: list[Problem], files: Iterable[Path], kind: Kind, message: str
) -> list[Problem]:
    """Return why files could not be read: they are of this other kind, or ``problems``.

    A problem at a place in a file comes first. An eval set of ADK can be a dataset with a recording
    that has one wrong field, and the field is what has to be fixed.
    """
    if any(problem.path for problem in problems):
        return problems
    return given_as(files, kind, message) or problems


def not_a_dataset(files: Iterable[Path]) -> list[Problem]:
    """Name the files that are clearly no dataset, each with its type and what accepts it."""
    named = list(files)
    return _mistaken(
        named,
        "dataset",
        {
            "traces": SWAPPED.format("recording", "dataset"),
            "config": f"is a config, not a dataset: it is given as {option('config')}",
        },
    ) or [
        problem
        for file in named
        if is_kind(file, "unknown") and (problem := misspelt_key(file)) is not None
    ]


def config_of(path: str | os.PathLike[str], *, own_code: bool = True) -> Config:
    """Load a config that the user named; ``own_code`` is as for :func:`load_config`.

    Raises:
        InputError: it has errors, or is clearly something else; says which command takes that.
    """
    try:
        return load_config(path, own_code=own_code)
    except InputError as error:
        mistaken = _mistaken(
            [Path(path)],
            "config",
            {
                "dataset": "is a dataset, not a config: name the agent first, baton eval AGENT "
                f"DATASET, or give it as {option('dataset')}",
                "traces": IS_A_RECORDING,
            },
        )
        raise InputError(mistaken or error.problems) from None


def _mistaken(files: Iterable[Path], meant: str, kinds: Mapping[Kind, str]) -> list[Problem]:
    """Describe files that are not ``meant``: empty, a program, or of a named kind."""
    problems = []
    for file in files:
        message = None
        if file.suffix == ".py" and file.is_file():
            plays = f"`baton eval {file}:FUNCTION DATASET` plays it"
            message = f"is a program, not a {meant}: {plays}"
        elif file.is_file() and file.stat().st_size < _HEAD and not file.read_bytes().strip():
            message = "is empty"
        else:
            message = next((text for kind, text in kinds.items() if is_kind(file, kind)), None)
        if message is not None:
            problems.append(Problem(file=str(file), message=message))
    return problems


def misspelt_key(file: Path) -> Problem | None:
    """Return which key of a file of unknown type is probably misspelt; ``None`` if none is."""
    try:
        data = read_bytes(file)
        keys = sorted(_top_keys(file, data))
    except InputError:
        return None
    json = starts_as_json(data)
    for key in keys:
        if near := nearest(key, _TYPICAL, 1, 0.75):
            plain = without_comments(data) if json else data
            document = Document(str(file), plain, "json" if json else "yaml")
            return document.problem_at((key,), f"unknown key; did you mean `{near[0]}`?")
    return None


_TYPICAL = ("cases", "eval_cases", "test_cases", "dataset", "evaluators", "providers")
"""Keys that alone show the type of a file."""


def is_for_server(file: Path) -> bool:
    """Return whether a file has settings of a server: keys of its own, or rules with evaluators."""
    try:
        kind = kind_of_file(file) if file.is_file() else None
        if kind != "unknown":
            return kind == "server"
        value = Document(str(file), read_bytes(file), "yaml").value()
    except InputError:
        return False
    rules = value.get("rules") if isinstance(value, dict) else None
    listed = rules if isinstance(rules, list) else []
    return any(isinstance(rule, dict) and "evaluators" in rule for rule in listed)


def is_kind(file: Path, kind: Kind) -> bool:
    """Return whether a file exists, can be read and is of this kind."""
    try:
        return file.is_file() and kind_of_file(file) == kind
    except InputError:
        return False


_SUFFIXES = {".json", ".jsonl", ".yaml", ".yml"}
# Enough for the first object of nearly any file; most small files are read whole.
_HEAD = 1 << 16
_OF_CASES = re.compile(
    rb"\b(eval_?set_?id|eval_?cases|eval_?id|test_?cases?|cases|query|input)\b", re.IGNORECASE
)


def cases_in(file: Path) -> Literal["only", "also"] | None:
    """Return whether a file has cases: ``only`` cases, or ``also`` a recording (ADK eval sets).

    A folder counts if every file in it has only cases.

    A recording is not decoded if its first 64 KiB have no key that starts a dataset; of JSON lines,
    only the first line is decoded.
    """
    if file.is_dir():
        # The first file that contains no cases ends it: most folders are of recordings.
        held = (cases_in(each) for each in sorted(file.rglob("*")) if each.suffix in _SUFFIXES)
        first = next(held, None)
        return "only" if first == "only" and all(kind == "only" for kind in held) else None
    if file.suffix not in _SUFFIXES or not file.is_file():
        return None
    try:
        with file.open("rb") as opened:
            head = opened.read(_HEAD)
        if file.suffix in (".json", ".jsonl") and not _OF_CASES.search(head):
            return None
        line = head.split(b"\n", 1)[0] if file.suffix == ".jsonl" else None
        if line is None and looks_like_sse(head):
            return None
        whole = head if len(head) < _HEAD else None
        keys = _top_keys(file, line or whole or read_bytes(file))
    except (InputError, OSError):
        return None  # its reader reports its problems
    if _kind_with(keys) != "dataset":
        return None
    return "also" if kind_of(keys) else "only"


def _top_keys(file: Path, data: bytes) -> set[str]:
    """Return the keys of the object a file holds, or of the first in its list or lines."""
    json = starts_as_json(data)
    lines = data.split(b"\n", 1)
    try:
        value = Document(str(file), data, "json" if json else "yaml").value()
    except InputError:
        plain = without_comments(data) if json else data
        if plain != data:
            return _top_keys(file, plain)
        # JSON lines, maybe with a broken line later. If the first line is no object, such as the
        # bracket that opens a file over many lines, the error of the whole file is reported.
        value = _first_object(file, lines[0]) if json and len(lines) > 1 else None
        if value is None:
            raise
    if isinstance(value, list):
        value = value[0] if value else {}
    return {snake(str(key)) for key in value} if isinstance(value, dict) else set()


def _first_object(file: Path, line: bytes) -> Any:
    try:
        return Document(str(file), line, "json").value()
    except InputError:
        return None

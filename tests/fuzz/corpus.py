"""Files to start from, by the reader that they are for."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import msgspec
from tests.readers.otlp.spans import Span, read_conversations
from tests.readers.otlp.wire.conftest import Wire

from baton.readers.otlp.span import Conversation

from .seeds import CATALOGUES, DEFINITION, FILES, written

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
_ADK = ROOT / "examples" / "adk" / "recordings"
_LARGEST = 80_000
_RECORDED: dict[str, tuple[Path, tuple[str, ...]]] = {
    "otlp": (DATA / "otel", ("*/*.json",)),
    "claude-stream": (DATA / "claude", ("*/*/messages.jsonl",)),
    "claude-session": (DATA / "claude", ("*/*/session/projects/*/*.jsonl",)),
    "strands": (DATA / "strands", ("*_*.json",)),
    "adk-sse": (_ADK, ("*/*.sse",)),
    "adk-session": (_ADK, ("*/*.session.json", "*/*.run.json")),
    "record": (ROOT / "tests" / "records", ("*.json",)),
}
_FORMS: dict[str, Callable[[Wire, list[Span]], bytes]] = {
    "otlp-lines": lambda wire, spans: b"".join(wire.line(span) for span in spans),
    "otlp-protobuf": lambda wire, spans: wire.protobuf(wire.export(spans)),
    "otlp-gzip": lambda wire, spans: wire.gzip(wire.line(*spans)),
    "otlp-zstd": lambda wire, spans: wire.zstd(wire.line(*spans)),
    "otlp-frames": lambda wire, spans: wire.framed([wire.zstd(wire.protobuf(wire.export(spans)))]),
    "jaeger": lambda wire, spans: written(".json", wire.jaeger([_flat(span) for span in spans])),
    "mlflow": lambda wire, spans: written(".json", wire.mlflow(spans)),
    "tempo": lambda wire, spans: written(".json", {"batches": wire.export(spans)["resourceSpans"]}),
}
KINDS = (*_RECORDED, *_FORMS, *FILES)
"""All that there are files of."""


@cache
def recordings(kind: str) -> list[tuple[str, bytes]]:
    """Return files of a kind: their suffixes, and what they hold."""
    if kind in _RECORDED:
        folder, patterns = _RECORDED[kind]
        paths = sorted(path for pattern in patterns for path in folder.glob(pattern))
        return [
            (path.suffix, path.read_bytes())
            for path in paths
            if "truth" not in path.name and path.stat().st_size <= _LARGEST
        ]
    if kind in _FORMS:
        return [(".bin", _in_form(kind, found.spans)) for found in conversations()[:60]]
    suffix, value = FILES[kind]
    return [(suffix, written(suffix, value))]


_SMALL = 6_000
_DATASETS = ("examples/**/*.yaml", "examples/**/*.evalset.json", "tests/data/strands/cases/*.json")


@cache
def small(kind: str) -> list[tuple[str, bytes]]:
    """Return the small files of a kind, or its smallest few; those are broken fast."""
    found = sorted(recordings(kind), key=lambda each: len(each[1]))
    return [each for each in found if len(each[1]) <= _SMALL] or found[:3]


@cache
def small_datasets() -> list[tuple[str, bytes]]:
    """Return small datasets, configs, rubrics and definitions of agents, with their suffixes."""
    paths = sorted({path for pattern in _DATASETS for path in ROOT.glob(pattern)})
    files = [(path.suffix, path.read_bytes()) for path in paths if path.stat().st_size <= _SMALL]
    made = [(suffix, written(suffix, value)) for suffix, value in CATALOGUES.values()]
    return [*files, *made, *(small("evalset") + small("eval-case")), (".md", DEFINITION)]


@cache
def conversations() -> list[Conversation]:
    """Return the conversations of the recorded spans, of each instrumentation in turn."""
    folder = DATA / "otel"
    paths = [path for path in sorted(folder.glob("*/*.json")) if "truth" not in path.name]
    chosen = sorted(paths, key=lambda path: paths.index(path) % 7)
    small = [path for path in chosen if path.stat().st_size <= _LARGEST]
    return [each for path in small for each in read_conversations([path])]


def _flat(span: Span) -> Span:
    """Write lists as JSON, as Jaeger does."""
    flat = {
        key: json.dumps(value) if isinstance(value, list | dict) else value
        for key, value in span.attributes.items()
    }
    return msgspec.structs.replace(span, attributes=flat, events=[])


def _in_form(kind: str, spans: list[Span]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return _FORMS[kind](Wire(Path(folder)), spans)

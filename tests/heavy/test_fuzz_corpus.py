"""Hostile input for every reader: no crash, no hang, nothing lost quietly."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from tests.fuzz.corpus import KINDS, recordings
from tests.fuzz.harm import harmed_file
from tests.fuzz.seeds import HEADER
from tests.readers.otlp.spans import read_spans

from .hostile_files import ANSWERS, LARGE, TEXTS, adk_events, deep, otlp, unreadable
from .hostile_runs import RUNS, Run
from .hostile_spans import SHAPES, Shape
from .tally import Tally

pytestmark = pytest.mark.heavy
_TRIES = 20
"""Of each kind, of files of any size; `make torture` has a million small ones, CI a tenth of them."""
_MEMORY = 1_500_000_000


@pytest.fixture(scope="module")
def tally(pytestconfig: pytest.Config) -> Iterator[Tally]:
    """Counts over all tests, which are told at the end."""
    counts = Tally()
    yield counts
    with pytestconfig.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(f"\nfuzz corpus: {counts}")


def _write(folder: Path, suffix: str, data: bytes, name: str = "run") -> Path:
    path = folder / f"{name}{suffix}"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_harmed_files_are_read_or_refused(kind: str, tally: Tally, tmp_path: Path) -> None:
    dice = random.Random(kind)
    name = "bodies" if kind == "evaluation" else "run"
    (tmp_path / "evaluation.json").write_text(json.dumps(HEADER))
    for _ in range(_TRIES):
        suffix, data = dice.choice(recordings(kind))
        tally.file(_write(tmp_path, suffix, harmed_file(data, dice), name))


@pytest.mark.parametrize("kind", TEXTS)
def test_files_cut_at_any_byte_are_read_or_refused(kind: str, tally: Tally, tmp_path: Path) -> None:
    dice = random.Random(kind)
    for _ in range(_TRIES):
        suffix, data = dice.choice(recordings(kind))
        tally.file(_write(tmp_path, suffix, data[: dice.randrange(len(data))]))


@pytest.mark.parametrize("kind", TEXTS)
def test_ten_thousand_levels_are_read_or_refused(kind: str, tally: Tally, tmp_path: Path) -> None:
    for suffix, data in deep(kind):
        tally.file(_write(tmp_path, suffix, data))


@pytest.mark.parametrize("kind", TEXTS)
def test_text_that_is_none_is_read_or_refused(kind: str, tally: Tally, tmp_path: Path) -> None:
    for suffix, data in unreadable(kind):
        tally.file(_write(tmp_path, suffix, data))


@pytest.mark.parametrize("write", ANSWERS, ids=lambda write: write.__name__)
def test_a_text_of_100_mb_is_read(
    write: Callable[[str], bytes], tally: Tally, tmp_path: Path
) -> None:
    path = _write(
        tmp_path, ".sse" if write is adk_events else ".json", write("word " * (LARGE // 5))
    )
    before = tally.traces
    with tally.memory(_MEMORY):
        tally.file(path)
    assert tally.traces == before + 1


def _bombs() -> Iterator[bytes]:
    """Yield two gigabytes, packed into two megabytes and less; a piece at a time saves memory."""
    pieces = [otlp("Hi"), *[b" " * 1_000_000] * 2_000]
    # 31: with the head of gzip. Looking for runs alone is as small, in a third of the time.
    packer = zlib.compressobj(9, wbits=31, strategy=zlib.Z_RLE)
    yield b"".join([*map(packer.compress, pieces), packer.flush()])
    zstd = zstandard.ZstdCompressor(3).compressobj(size=sum(map(len, pieces)))
    yield b"".join([*map(zstd.compress, pieces), zstd.flush()])


def test_bombs_are_refused_before_they_are_unpacked(tally: Tally, tmp_path: Path) -> None:
    for packed in _bombs():
        refused = tally.refused
        path = _write(tmp_path, ".json", packed)
        with tally.memory(200_000_000):
            tally.file(path)
        assert tally.refused == refused + 1


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
def test_many_spans_take_time_that_grows_with_their_number(shape: Shape, tally: Tally) -> None:
    size = SHAPES[shape]
    few, many = shape(size // 4), shape(size)
    with tally.memory(_MEMORY):
        short = tally.spans(lambda: read_spans(few, []))
        long = tally.spans(lambda: read_spans(many, []))
    assert long < 10 * short + 1


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.__name__)
def test_long_recordings_take_time_that_grows_with_their_length(
    run: Run, tally: Tally, tmp_path: Path
) -> None:
    few, many = (
        _write(tmp_path, *run(size), name=str(size)) for size in (RUNS[run] // 4, RUNS[run])
    )
    with tally.memory(_MEMORY):
        short = tally.timed(few)
        long = tally.timed(many)
    assert long < 10 * short + 1

"""Whatever is done to a file, there are sound records, or one error that names it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton.model import InputError, Problem
from baton.readers import load_catalog

from .corpus import KINDS, recordings
from .counts import tries
from .harm import harmed_file
from .outcome import outcome
from .seeds import CATALOGUES, DEFINITION, HEADER, written

SEEDS = st.integers(0, 2**48)
TRIES = {
    "otlp": 2000,
    "tempo": 150,
    "evalset-yaml": 150,
    "claude-stream": 600,
    "claude-session": 600,
    "strands": 600,
    "record": 500,
}
"""How often, if that is not the usual."""


@pytest.mark.heavy
@pytest.mark.parametrize("kind", KINDS)
def test_a_harmed_file_is_sound_records_or_one_clear_error(
    kind: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("harmed")
    files = recordings(kind)

    @settings(max_examples=tries(TRIES.get(kind, 650)))
    @given(SEEDS)
    def holds(seed: int) -> None:
        dice = random.Random(seed)
        suffix, data = dice.choice(files)
        path = folder / f"{'bodies' if kind == 'evaluation' else 'run'}{suffix}"
        path.write_bytes(harmed_file(data, dice))
        if kind == "evaluation":
            header = harmed_file(json.dumps(HEADER).encode(), dice)
            (folder / "evaluation.json").write_bytes(header)
        outcome(path)

    holds()


def _problems(path: Path) -> list[Problem]:
    """Return what is said against a catalogue."""
    try:
        load_catalog(path)
    except InputError as error:
        return error.problems
    return []


@pytest.mark.parametrize("kind", [*CATALOGUES, "definition"])
def test_a_harmed_catalogue_is_agents_or_one_clear_error(kind: str, tmp_path: Path) -> None:
    suffix, data = (".md", DEFINITION)
    if kind in CATALOGUES:
        suffix, value = CATALOGUES[kind]
        data = written(suffix, value)
    path = tmp_path / f"agents{suffix}"

    @settings(max_examples=tries(420))
    @given(SEEDS)
    def holds(seed: int) -> None:
        path.write_bytes(harmed_file(data, random.Random(seed)))
        for problem in _problems(path):
            assert problem.file == str(path)
            assert problem.message

    holds()

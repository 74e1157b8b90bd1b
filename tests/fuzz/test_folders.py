"""Whatever is done to the files of a session, its folder is sound records, or clear errors."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baton import iter_traces
from baton.model import InputError

from .corpus import DATA
from .counts import tries
from .harm import harmed_file
from .outcome import check

CAPTURES = sorted(path.parent for path in (DATA / "claude").glob("*/*/session"))


@settings(max_examples=tries(210))
@given(seed=st.integers(0, 2**48))
def test_a_harmed_session_folder_is_sound_records_or_clear_errors(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    dice = random.Random(seed)
    folder = tmp_path_factory.getbasetemp() / "session"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(dice.choice(CAPTURES), folder, ignore=shutil.ignore_patterns("truth*"))
    files = sorted(path for path in folder.rglob("*.json*") if path.is_file())
    for path in dice.sample(files, min(len(files), dice.randint(1, 3))):
        _harm(path, files, dice)
    errors: list[InputError] = []
    for trace in iter_traces(folder, on_problem=errors.append):
        check(trace)
    for error in errors:
        assert all(
            str(each.file).startswith(str(folder)) and each.message for each in error.problems
        )


def _harm(path: Path, files: list[Path], dice: random.Random) -> None:
    """Lose a file, put another in its place, or change what it holds."""
    match dice.randrange(8):
        case 0:
            path.unlink(missing_ok=True)
        case 1:
            other = dice.choice(files)
            path.write_bytes(other.read_bytes() if other.exists() else b"")
        case _:
            path.write_bytes(harmed_file(path.read_bytes() if path.exists() else b"{}", dice))

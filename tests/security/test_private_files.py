"""What Baton keeps below `.baton` is the user's alone, whatever the umask."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Baton

from baton.judges.cache import Verdict, VerdictCache
from baton.store.calibrations import Calibration, keep_calibration

AGENT = "def answer(message):\n    return {'output': 'x', 'agents': ['desk'], 'tool_calls': []}\n"


@pytest.fixture
def restored_umask() -> Iterator[None]:
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """Return the mode of everything in a folder that is not just for the user."""
    found = {}
    for path in [folder, *folder.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode != (0o700 if path.is_dir() else 0o600):
            found[str(path)] = oct(mode)
    return found


@pytest.mark.parametrize(
    "umask",
    [0o022, 0o777, *(pytest.param(each, marks=pytest.mark.heavy) for each in (0o000, 0o277))],
    ids=oct,
)
def test_folders_are_0700_and_files_0600(
    baton: Baton, tmp_path: Path, restored_umask: None, umask: int
) -> None:
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "cases.jsonl").write_text(
        "".join(json.dumps({"id": f"c{n}", "input": "hi", "agents": ["desk"]}) + "\n" for n in "ab")
    )
    os.umask(umask)
    assert baton("eval", "desk.py:answer", "cases.jsonl").code == 0
    assert baton("baseline", "set").code == 0
    (folder,) = Path(".baton/evaluations").iterdir()
    assert baton("score", folder, "-d", "cases.jsonl", "--jobs", "2").code == 0
    keep_calibration(Calibration(rubric="r", version="1", model="m", n=3))
    cache = VerdictCache(Path(".baton/verdicts.sqlite"))
    cache.put("key", "r", Verdict(value={}, model="m"))
    assert len([path for path in Path(".baton").rglob("*") if path.is_file()]) >= 9
    assert modes(Path(".baton")) == {}
    cache.close()


def test_elsewhere_the_umask_decides_as_a_team_may_share_it(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "cases.yaml").write_text("cases: [{id: a, input: hi, agents: [desk]}]")
    before = os.umask(0o027)
    try:
        assert baton("eval", "desk.py:answer", "cases.yaml", "--out", "shared/runs").code == 0
    finally:
        os.umask(before)
    assert {stat.S_IMODE(p.stat().st_mode) for p in Path("shared").rglob("*.json*")} == {0o640}

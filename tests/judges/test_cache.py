"""Verdicts are kept: valid ones, at once, for several processes."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.judges.conftest import GOOD, question

from baton.judges.cache import Verdict, VerdictCache, cache_key
from baton.model import InputError

WRITER = """
import sys
from baton.judges.cache import Verdict, VerdictCache
cache = VerdictCache(sys.argv[1])
for number in range(200):
    cache.put(f"{sys.argv[2]}-{number}", "r", Verdict(value={"n": number}, model="m"))
    cache.put("same", "r", Verdict(value={"n": number}, model="m"))
print("written", flush=True)
sys.stdin.read()
"""


def key(sample: int = 0, model: str = "m", temperature: float = 0.0, **fields: Any) -> str:
    return cache_key(question(**fields), model, sample, temperature)


def test_the_same_question_has_the_same_key() -> None:
    assert key() == key()
    assert len(key()) == 64


@pytest.mark.parametrize(
    "other",
    [
        {"sample": 1},
        {"model": "n"},
        {"temperature": 0.5},
        {"text": "something else happened"},
        {"instructions": "Did it go badly?"},
        {"version": "2"},
        {"rubric": "s"},
        {"schema": {"type": "object"}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_whatever_decides_a_verdict_is_in_its_key(other: dict[str, Any]) -> None:
    assert key(**other) != key()


def test_a_verdict_is_there_for_the_next_run(tmp_path: Path) -> None:
    verdict = Verdict(value=GOOD, model="m", input_tokens=3, cost_usd=0.5, seconds=1.5)
    cache = VerdictCache(tmp_path / "new" / "verdicts.sqlite")
    assert cache.get("k") is None
    cache.put("k", "r", verdict)
    cache.close()
    assert VerdictCache(cache.path).get("k") == verdict


def test_values_are_json_that_other_programs_read(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "v")
    cache.put("k", "r", Verdict(value=GOOD, model="m"))
    cache.close()
    with sqlite3.connect(tmp_path / "v") as database:
        (found,) = database.execute("SELECT json_extract(verdict, '$.value.label') FROM verdicts")
    database.close()
    assert found == ("good",)


def test_several_processes_share_a_file_and_a_kill_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.sqlite"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for name in "abc"
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"written\n"
        writer.kill()
        writer.communicate()
    cache = VerdictCache(path)
    for name in "abc":
        for number in (0, 199):
            found = cache.get(f"{name}-{number}")
            assert found is not None
            assert found.value == {"n": number}
    cache.close()


def test_a_cache_that_is_only_read_need_not_be_there_and_is_not_made(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "none", read_only=True)
    assert cache.get("k") is None
    assert not (tmp_path / "none").exists()


def test_a_cache_that_is_only_read_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "v"
    cache = VerdictCache(path)
    cache.put("k", "r", Verdict(value=GOOD, model="m"))
    cache.close()
    before = path.read_bytes()
    path.chmod(0o400)
    path.parent.chmod(0o500)
    reader = VerdictCache(path, read_only=True)
    try:
        assert reader.get("k") is not None
        with pytest.raises(InputError):
            reader.put("l", "r", Verdict(value=GOOD, model="m"))
    finally:
        reader.close()
        path.parent.chmod(0o700)
    assert path.read_bytes() == before


def test_what_is_not_a_cache_is_named(tmp_path: Path) -> None:
    (tmp_path / "v").write_text("This is a letter, and not a short one either.\n" * 40)
    with pytest.raises(InputError, match="cannot be used as a cache of verdicts"):
        VerdictCache(tmp_path / "v").get("k")
    with pytest.raises(InputError, match="cannot be used"):
        VerdictCache(tmp_path / "v" / "below").get("k")


def test_a_verdict_that_cannot_be_read_is_asked_for_again(tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path / "v")
    cache.put("k", "r", Verdict(value=GOOD, model="m"))
    cache.close()
    with sqlite3.connect(tmp_path / "v") as database:
        database.execute("UPDATE verdicts SET verdict = 'torn'")
    database.close()
    assert cache.get("k") is None
    cache.close()

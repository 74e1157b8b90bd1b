"""Files that came to harm: a record, or one clear error, and never a crash."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from baton import load_traces
from baton.model import InputError, integrity_problems

DATA = Path(__file__).parents[2] / "data" / "strands"
FILES = sorted(DATA.glob("*_*.json"))
ODD: list[Any] = [None, 0, -1, 2**70, 1e300, "", "swarm", "multiagent_result", [], {}, "a"]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict | list):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from places(inner, (*path, key))


def harmed(value: Any, chance: random.Random) -> Any:
    """Change some places of a file: left out, doubled, replaced by odd values or by others."""
    value = json.loads(json.dumps(value))
    for _ in range(chance.choice((1, 1, 2, 5, 10))):
        all_places = list(places(value))
        if not all_places:
            break
        path, other = chance.choice(all_places), chance.choice(all_places)
        around, elsewhere = value, value
        for key in path[:-1]:
            around = around[key]
        for key in other:
            elsewhere = elsewhere[key]
        match chance.randrange(4):
            case 0:
                del around[path[-1]]
            case 1 if isinstance(around, list):
                around.insert(0, around[path[-1]])
            case 2:
                around[path[-1]] = json.loads(json.dumps(elsewhere))
            case _:
                around[path[-1]] = chance.choice(ODD)
    return value


def problems_of(file: Path) -> list[str]:
    """Read a file; return what is unsound in its records, or said of it without its name."""
    try:
        return [each for trace in load_traces(file) for each in integrity_problems(trace)]
    except InputError as error:
        return [str(problem) for problem in error.problems if problem.file != str(file)]


@pytest.mark.heavy
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_damaged_file_is_a_sound_record_or_a_clear_error(file: Path, tmp_path: Path) -> None:
    whole = json.loads(file.read_text(encoding="utf-8"))
    chance = random.Random(file.stem)
    damaged = tmp_path / "run.json"
    for number in range(40):
        damaged.write_text(json.dumps(harmed(whole, chance)), encoding="utf-8")
        assert problems_of(damaged) == [], number


def test_a_row_that_is_not_a_text_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    report = json.loads((DATA / "report_interactions.json").read_text(encoding="utf-8"))
    report["cases"].append({**report["cases"][0], "name": "broken", "BAD": 1})
    damaged = tmp_path / "run.json"
    damaged.write_bytes(json.dumps(report).encode().replace(b"BAD", b"\xff"))
    (message,) = problems_of_rows(damaged)
    assert "UTF-8" in message


def problems_of_rows(file: Path) -> list[str]:
    """Read a file that has rows; return what is said against the others."""
    with pytest.raises(InputError) as raised:
        load_traces(file)
    return [problem.message for problem in raised.value.problems]

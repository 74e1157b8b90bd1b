"""Whatever a file holds, Baton reads it or says in one error why not."""

from __future__ import annotations

import copy
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.config import load_config
from baton.datasets.draft_case import draft_yaml
from baton.model import InputError, integrity_problems
from baton.readers import load_catalog
from baton.reports.trace import print_trace

ROOT = Path(__file__).parent.parent.parent
FILES = sorted(
    path
    for folder in (ROOT / "examples" / "adk", ROOT / "tests" / "records")
    for path in folder.rglob("*")
    if path.suffix in (".sse", ".json", ".yaml")
)
JUNK: list[Any] = [None, True, 0, -1, 3.5, "", "x", [], {}, [1], {"a": 1}, "\U0001f600", 10**30]
BYTES = [b"{", b"}", b'"', b"\n", b"\xff", b"[", b"\t", b"data:"]
pytestmark = pytest.mark.heavy


def places(value: Any) -> list[tuple[Any, Any]]:
    """List every container of a value with every key or index in it."""
    found: list[tuple[Any, Any]] = []
    stack = [value]
    while stack:
        node = stack.pop()
        keys = (
            node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        )
        for key in keys:
            found.append((node, key))
            stack.append(node[key])
    return found


def bend(value: Any, dice: random.Random) -> Any:
    """Put junk in a few random places of a value."""
    for _ in range(dice.randint(1, 4)):
        found = places(value)
        if found:
            container, key = dice.choice(found)
            container[key] = copy.deepcopy(dice.choice(JUNK))
    return value


def tear(data: bytes, dice: random.Random) -> bytes:
    """Change, take out and put in a few bytes."""
    torn = bytearray(data)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(torn) + 1)
        torn[at : at + dice.choice([0, 0, 1, 30])] = dice.choice(BYTES)
    return bytes(torn)


def damaged(path: Path, dice: random.Random) -> bytes:
    data = path.read_bytes()
    if dice.random() < 0.3 or path.suffix == ".yaml":
        return tear(data, dice)
    if path.suffix == ".json":
        return json.dumps(bend(json.loads(data), dice)).encode()
    lines = data.split(b"\n")
    for number, line in enumerate(lines):
        if line.startswith(b"data:") and dice.random() < 0.2:
            lines[number] = b"data: " + json.dumps(bend(json.loads(line[5:]), dice)).encode()
    return b"\n".join(lines)


def tried(read: Callable[[Path], Any], file: Path) -> Any:
    """Read; an error that is meant for the user is fine, if it says something."""
    try:
        return read(file)
    except InputError as error:
        problems = error.problems
    assert problems
    assert all(problem.message for problem in problems)
    return None


def use(file: Path) -> None:
    """Do with a file what a user may do with it."""
    for trace in tried(baton.load_traces, file) or []:
        assert integrity_problems(trace) == []
        assert baton.score([trace], evaluators=["agent_chain"]).exit_code == 3
        for result in baton.score([trace]):
            wrong = [score.reason for score in result.scores if score.status == "error"]
            assert wrong == [] or result.error is not None
        print_trace(trace, io.StringIO())
        draft_yaml([trace])
    for case in tried(baton.load_dataset, file) or []:
        assert case.id
    tried(load_catalog, file)
    tried(load_config, file)


@pytest.mark.parametrize("seed", range(5))
def test_damaged_files_are_read_or_refused_and_never_crash(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    for _ in range(150):
        path = dice.choice(FILES)
        file = tmp_path / f"file{path.suffix}"
        file.write_bytes(damaged(path, dice))
        use(file)

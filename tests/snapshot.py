"""Compare what two versions of Baton make of the same recordings: the records and the verdicts.

Write a snapshot with one version and hold the other one against it::

    python -m tests.snapshot write before.jsonl
    python -m tests.snapshot compare before.jsonl

Every file below `tests/data`, `examples` and the folders named with `--also` is read by itself and
is scored by all evaluators that need no case, no judge and no options. `compare` lists each
recording that differs, with the first place where it does, and ends with 1 if there is one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

import baton
from baton.evaluators.registry import evaluator_entries
from baton.model import InputError

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("tests/data", "examples")
LIMITS: dict[str, dict[str, Any]] = {
    "dispatch_limits": {"max_dispatches": 3},
    "latency": {"max_seconds": 1e9},
    "tokens": {"max_total": 1},
}
"""Options of evaluators that score nothing without a limit."""
SKIPPED = {".py", ".md", ".yaml", ".yml", ".png", ".svg", ".css", ".js"}


def recordings(also: Iterable[Path]) -> Iterator[Path]:
    """Yield every file that may hold traces, and the folders of Claude's sessions."""
    for folder in (*map(Path, FOLDERS), *also):
        for path in sorted(folder.rglob("*")):
            if "__pycache__" in path.parts:
                continue
            session = path.is_dir() and any(path.glob("*.jsonl"))
            if session or (path.is_file() and path.suffix not in SKIPPED):
                yield path


@cache
def specs() -> tuple[dict[str, Any], ...]:
    """Return all evaluators that need no case, no judge, and no options but limits."""
    found = []
    for entry in evaluator_entries():
        options = LIMITS.get(entry.type, {})
        try:
            made = entry.target.from_options(entry.type, options)
        except InputError:  # it needs options, such as the tool that has to be called
            continue
        if made.checks == frozenset() and not made.needs_judge:
            found.append({"type": entry.type, "config": options})
    return tuple(found)


def seen(path: Path) -> dict[str, Any]:
    """Return the records and verdicts of one recording, or the words of the error."""
    try:
        traces = baton.load_traces(path)
    except InputError as error:
        return {"error": [str(problem) for problem in error.problems]}
    records = [msgspec.to_builtins(trace) for trace in traces]
    verdicts = []
    for spec in specs():
        try:
            results = baton.score(traces, evaluators=[spec]).results
        except InputError as error:
            verdicts.append({"evaluator": spec["type"], "error": str(error)})
            continue
        for result in results:
            verdicts += [msgspec.to_builtins(asdict(score)) for score in result.scores]
            verdicts.append({"status": result.status})
    return {"records": records, "verdicts": verdicts}


def difference(before: Any, now: Any, at: str = "") -> str | None:
    """Return the first place where two values differ, with both values."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in sorted(before.keys() | now.keys()):
            found = difference(before.get(key), now.get(key), f"{at}.{key}")
            if found:
                return found
        return None
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = enumerate(zip(before, now, strict=True))
        return next((d for i, (a, b) in pairs if (d := difference(a, b, f"{at}[{i}]"))), None)
    if (before is None and now in ([], {})) or (now is None and before in ([], {})):
        return None  # a list or mapping that is left out, as it is empty
    return None if before == now else f"{at}: {str(before)[:200]!r} -> {str(now)[:200]!r}"


def main() -> int:
    """Write or compare a snapshot."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("act", choices=["write", "compare"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--also", type=Path, action="append", default=[])
    given = parser.parse_args()
    found = ((str(path), seen(path)) for path in recordings(given.also))
    if given.act == "write":
        with given.file.open("w", encoding="utf-8") as out:
            for name, one in found:
                out.write(json.dumps([name, one], sort_keys=True) + "\n")
        return 0
    with given.file.open(encoding="utf-8") as lines:
        before = dict(json.loads(line) for line in lines)
    differing = 0
    for name, one in found:
        now = json.loads(json.dumps(one))
        changed = difference(before.pop(name, None), now)
        if changed:
            differing += 1
            print(f"{name}{changed}")
    for name in before:
        differing += 1
        print(f"{name}: not read any more")
    print(f"{differing} recordings differ")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())

"""Compare what two versions of Baton make of the same recordings: the records and the verdicts.

Compare the current files with a revision::

    python -m tests.snapshot --against main

Every file below `tests/data`, `tests/records` and `examples`, or below the folders that are given,
is read by itself and is scored by all evaluators that need no case, no judge and no options: once
with the current code and once with that of the revision, in a worktree that is removed at the end.
Each recording that differs is printed with the first place where it does. If there is one, the
exit code is 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import asdict

import baton
from baton.evaluators.registry import evaluator_entries
from baton.model import InputError, counted

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = tuple(map(Path, ("tests/data", "tests/records", "examples")))
LIMITS: dict[str, dict[str, Any]] = {
    "dispatch_limits": {"max_dispatches": 3},
    "latency": {"max_seconds": 1e9},
    "tokens": {"max_total": 1},
}
"""Options of evaluators that score nothing without a limit."""
SKIPPED = {".py", ".md", ".yaml", ".yml", ".png", ".svg", ".css", ".js"}


def recordings(folders: Iterable[Path] = FOLDERS) -> Iterator[Path]:
    """Yield every file that may hold traces, and the folders of Claude's sessions."""
    for folder in folders:
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
    verdicts: dict[str, Any] = {}
    for spec in specs():
        try:
            results = baton.score(traces, evaluators=[spec]).results
        except InputError as error:
            verdicts[spec["type"]] = {"error": str(error)}
            continue
        verdicts[spec["type"]] = [
            {
                "status": result.status,
                "scores": [msgspec.to_builtins(asdict(score)) for score in result.scores],
            }
            for result in results
        ]
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


def snapshot_of(revision: str, folders: Iterable[Path]) -> dict[str, Any]:
    """Return the snapshot that the code of a revision makes of the current recordings."""
    with tempfile.TemporaryDirectory(prefix="snapshot-") as made:
        tree, file = Path(made) / "tree", Path(made) / "snapshot.jsonl"
        git = ("git", "-C", str(ROOT), "worktree")
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), revision], check=True)
        try:
            command = [sys.executable, "-m", "tests.snapshot", "--write", str(file)]
            environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
            subprocess.run([*command, *map(str, folders)], env=environment, check=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)
        with file.open(encoding="utf-8") as lines:
            return dict(json.loads(line) for line in lines)


def differences(before: dict[str, Any], now: dict[str, Any]) -> int:
    """Print what differs between two snapshots, and return how many lines that took."""
    count = 0
    known = [{e for one in s.values() for e in one.get("verdicts", ())} for s in (before, now)]
    for evaluator in sorted(known[0] ^ known[1]):
        print(f"evaluator {evaluator}: only {'before' if evaluator in known[0] else 'now'}")
        count += 1
        for one in (*before.values(), *now.values()):
            one.get("verdicts", {}).pop(evaluator, None)
    for name in sorted(before.keys() | now.keys()):
        changed = difference(before.get(name), now.get(name))
        if changed:
            print(f"{name}{changed}")
            count += 1
    return count


def main() -> int:
    """Compare the current files with a revision, or only write their snapshot."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    act = parser.add_mutually_exclusive_group(required=True)
    act.add_argument("--against", metavar="REVISION")
    act.add_argument("--write", metavar="FILE", type=Path)
    parser.add_argument("folders", nargs="*", type=Path, default=FOLDERS)
    given = parser.parse_args()
    os.chdir(ROOT)
    if given.write:
        with given.write.open("w", encoding="utf-8") as out:
            for path in recordings(given.folders):
                out.write(json.dumps([str(path), seen(path)], sort_keys=True) + "\n")
        return 0
    try:
        before = snapshot_of(given.against, given.folders)
        found = {str(path): seen(path) for path in recordings(given.folders)}
    except subprocess.CalledProcessError:
        return 2  # the command has said why
    except KeyboardInterrupt:
        return 130
    count = differences(before, json.loads(json.dumps(found)))
    total = counted(len(before.keys() | found.keys()), "recording")
    print(f"{total}, {counted(count, 'difference')}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())

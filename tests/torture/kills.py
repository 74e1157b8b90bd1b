"""Kills commands at random moments, again and again: what was done is there, and there once.

``python -m tests.torture.kills`` kills each of `eval`, `eval --resume`, `score --jobs` and `export`
with SIGKILL at 100 random moments (``--share 0.1`` at 10), and every fifth time of `score --jobs`
one of its processes instead. It prints what it found and exits with 1 when anything was lost or
doubled. It kills only processes that it started.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from baton.store import read_evaluation

SOURCES = Path(__file__).parent.parent.parent / "src"
KILLS = 100
CASES = 60
REPEATS = 2
IN_PLAY = 4
_AT_ONCE = 2
"""Commands that run at the same time: as many as the smallest machine of a CI has cores."""
_PATIENCE = 60.0
"""Seconds after which a command that should have ended counts as hanging."""

AGENT = """
import asyncio
async def answer(message, case):
    with open("asked.txt", "a") as asked:
        asked.write(case.id + "\\n")
    await asyncio.sleep(0.02)
    return {"output": "done", "agents": ["desk"], "tool_calls": []}
"""
CONFIG = """
providers: [{type: python, target: "agent.py:answer"}]
dataset: cases.jsonl
evaluators: [agent_chain]
"""


class Kill(NamedTuple):
    """One kill: of what, how far it was, and what was lost or doubled by it."""

    command: str
    done: int | None
    faults: list[str]


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        _command(words), cwd=folder, env=_environment(folder), capture_output=True, text=True,
        timeout=_PATIENCE, check=False,
    )  # fmt: skip


def start(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own."""
    return subprocess.Popen(
        _command(words), cwd=folder, env=_environment(folder), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _command(words: tuple[str, ...]) -> list[str]:
    return [sys.executable, "-m", "baton", *words]


def _environment(folder: Path) -> dict[str, str]:
    state = folder.parent / "state"  # the key that seals evaluations, not that of the user
    return {**os.environ, "PYTHONPATH": str(SOURCES), "XDG_STATE_HOME": str(state)}


class Moment(NamedTuple):
    """When to kill: a pause after a file has so many bytes; a negative size means at once."""

    folder: Path
    pattern: str
    size: int
    pause: float

    def wait(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for it; return whether the process ended before."""
        until = time.monotonic() + _PATIENCE
        while process.poll() is None and time.monotonic() < until:
            if self.size < 0 or any(
                _size(file) >= self.size for file in self.folder.glob(self.pattern)
            ):
                time.sleep(self.pause)
                break
            time.sleep(0.001)
        return process.poll() is not None

    def kill(self, process: subprocess.Popen[bytes]) -> bool:
        """Kill a process then; return whether it ended before."""
        has_ended = self.wait(process)
        process.kill()
        process.wait()
        return has_ended


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:  # a draft that was put in its place just now
        return 0


class Torture:
    """Folders to work in, and what each command writes when nobody kills it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.made = root / "made"
        self.made.mkdir()
        (self.made / "agent.py").write_text(AGENT)
        (self.made / "baton.yaml").write_text(CONFIG)
        cases = [{"id": f"c{n}", "input": "hi", "agents": ["desk"]} for n in range(CASES)]
        (self.made / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)) + "\n")
        self.recorded = root / "recorded"
        self.recorded.mkdir()
        _record(self.recorded)
        self._try(self.made, *_EVAL)
        self._try(self.recorded, *_SCORE)
        (self.whole,) = _evaluations(self.recorded)
        self._try(self.recorded, *_export(self.whole))
        self.exported = _lines(self.recorded / "out.jsonl")
        (played,) = _evaluations(self.made)
        self.sizes = {
            "eval": _size(played / "index.jsonl"),
            "score": _size(self.whole / "index.jsonl"),
            "export": _size(self.recorded / "out.jsonl"),
        }
        shutil.rmtree(self.made / ".baton")
        (self.made / "asked.txt").unlink()

    def _try(self, folder: Path, *words: str) -> None:
        ended = run(folder, *words)
        if ended.returncode not in (0, 3):
            raise RuntimeError(f"{words[0]} does not work here: {ended.stderr}")

    def moment(self, command: str, folder: Path, dice: random.Random, start: float = 0) -> Moment:
        """Return when to kill a command in a folder, of which a share may be done already."""
        if dice.random() < 0.15:  # while it starts
            return Moment(folder, "", -1, dice.uniform(0, 0.5))
        size = int(dice.uniform(start, 1.02) * self.sizes[command])
        pattern = "out.jsonl.part" if command == "export" else ".baton/evaluations/*/index.jsonl"
        return Moment(folder, pattern, size, dice.uniform(0, 0.02))

    def copy(self, source: Path, name: str) -> Path:
        """Return a fresh copy of a folder."""
        target = self.root / name
        shutil.copytree(source, target)
        return target


_EVAL = ("eval", "baton.yaml", "--concurrency", str(IN_PLAY), "--repeat", str(REPEATS))
_SCORE = ("score", "runs", "--jobs", "2")


def _export(folder: Path) -> tuple[str, ...]:
    return ("export", str(folder), "-o", "out.jsonl")


def _record(folder: Path) -> None:
    """Write recordings of which `score --jobs 2` has work for a while."""
    (folder / "runs").mkdir()
    turn = {"id": "t", "input": {"text": "hi"}, "output": {"text": "x" * 4000}}
    trace = {"schema_version": 1, "source": {"format": "test"}, "turns": [turn]}
    for name in range(4):
        lines = (json.dumps({**trace, "id": f"r{name}-{n}"}) for n in range(400))
        (folder / "runs" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


def kill_eval(torture: Torture, number: int, dice: random.Random) -> Kill:
    """Kill `eval`, resume it to its end, and count what was played."""
    folder = torture.copy(torture.made, f"eval{number}")
    torture.moment("eval", folder, dice).kill(start(folder, *_EVAL))
    return Kill("eval", *_ended_well(folder, kills=1))


def kill_resume(torture: Torture, number: int, dice: random.Random) -> Kill:
    """Kill `eval`, kill `eval --resume`, resume it to its end, and count what was played."""
    folder = torture.copy(torture.made, f"resume{number}")
    half = torture.sizes["eval"] // 2
    Moment(folder, ".baton/evaluations/*/index.jsonl", half, 0).kill(start(folder, *_EVAL))
    moment = torture.moment("eval", folder, dice, start=0.5)
    for place in _evaluations(folder):
        moment.kill(start(folder, "eval", "baton.yaml", "--resume", str(place)))
    return Kill("eval --resume", *_ended_well(folder, kills=2))


def _ended_well(folder: Path, kills: int) -> tuple[int | None, list[str]]:
    """Resume an evaluation that was killed; say how far it was, and what is wrong."""
    found = _evaluations(folder)
    if not found:  # it was killed before it had a folder, so that nothing can be lost
        return None, []
    (place,) = found
    faults: list[str] = []
    before = {(row.position, row.repeat) for row in read_evaluation(place)}
    report = run(folder, "report", str(place), "--json")
    if report.returncode not in (0, 3) or "Traceback" in report.stderr:
        faults.append(f"report ended with {report.returncode}: {report.stderr}")
    played = _asked(folder)
    ended = run(folder, "eval", "baton.yaml", "--resume", str(place))
    if ended.returncode != 0:
        return len(before), [*faults, f"--resume ended with {ended.returncode}: {ended.stderr}"]
    after = read_evaluation(place)
    results = [(result.position, result.repeat) for result in after if result.scores]
    faults += _difference(results, [(p, r) for p in range(CASES) for r in range(REPEATS)])
    again = sum(_asked(folder).values()) - sum(played.values())
    if again != CASES * REPEATS - len(before):
        faults.append(f"{len(before)} results were there, and {again} were played again")
    lost = sum(played.values()) - len(before)
    if lost > kills * IN_PLAY:
        faults.append(f"{lost} played results are not there: more than were in play")
    return len(before), faults


def kill_score(torture: Torture, number: int, dice: random.Random) -> Kill:
    """Kill `score --jobs`, or one of its processes; what is there is whole, and nothing runs on."""
    folder = torture.copy(torture.recorded, f"score{number}")
    shutil.rmtree(folder / ".baton")
    moment = torture.moment("score", folder, dice)
    process = start(folder, *_SCORE)
    faults: list[str] = []
    if number % 5:
        moment.kill(process)
    else:
        moment.wait(process)
        _kill_a_worker(process)
        code = process.wait(_PATIENCE)
        if code not in (0, 2, 3):
            faults.append(f"without one of its processes it ended with {code}")
    if not _all_gone(process.pid):
        faults.append("processes of it run on")
        os.killpg(process.pid, signal.SIGKILL)
    done = None
    for place in _evaluations(folder):
        stored = read_evaluation(place)
        ids = [result.recorded.id for result in stored if result.recorded is not None]
        done = len(ids)
        faults += [f"{id_} is there {n} times" for id_, n in Counter(ids).items() if n > 1]
        if stored.header.status in ("passed", "failed") and done != 1600:
            faults.append(f"it says `{stored.header.status}` with {done} of 1600 results")
    return Kill("score --jobs", done, faults)


def _kill_a_worker(process: subprocess.Popen[bytes]) -> None:
    for child in _children(process.pid)[:1]:
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            return


def kill_export(torture: Torture, number: int, dice: random.Random) -> Kill:
    """Kill `export`: the file is as it was, or whole; then it is written again."""
    folder = torture.root / f"export{number}"
    folder.mkdir()
    target = folder / "out.jsonl"
    is_new = number % 2 == 0
    if not is_new:
        target.write_text("what was there before\n")
    words = _export(torture.whole)
    (folder / "runs").symlink_to(torture.recorded / "runs")
    has_ended = torture.moment("export", folder, dice).kill(start(folder, *words))
    faults: list[str] = []
    text = _lines(target) if target.exists() else None
    allowed = [torture.exported, None if is_new else ["what was there before"]]
    if text not in allowed or (has_ended and text != torture.exported):
        faults.append("the file is neither as it was nor whole")
    if run(folder, *words).returncode != 0 or _lines(target) != torture.exported:
        faults.append("it is not whole when it is written again")
    return Kill("export", None if text is None else len(text), faults)


def _lines(file: Path) -> list[str]:
    """Return the lines of an export, without the time at which results were written."""
    found = []
    for line in file.read_text().splitlines():
        value = json.loads(line) if line.startswith("{") else line
        found.append(line if isinstance(value, str) else json.dumps(_without_times(value)))
    return found


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        times = ("observedTimeUnixNano", "timeUnixNano")
        return {key: _without_times(each) for key, each in value.items() if key not in times}
    return [_without_times(each) for each in value] if isinstance(value, list) else value


def _difference(found: list[tuple[int, int]], wanted: list[tuple[int, int]]) -> list[str]:
    counts = Counter(found)
    lost = [each for each in wanted if not counts[each]]
    doubled = [each for each, count in counts.items() if count > 1]
    return [f"lost: {lost}"] * bool(lost) + [f"doubled: {doubled}"] * bool(doubled)


def _evaluations(folder: Path) -> list[Path]:
    """Return the evaluations below a folder that have a header."""
    return sorted(path.parent for path in folder.glob(".baton/evaluations/*/evaluation.json"))


def _asked(folder: Path) -> Counter[str]:
    file = folder / "asked.txt"
    return Counter(file.read_text().split()) if file.exists() else Counter()


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def _all_gone(group: int, within: float = 10) -> bool:
    """Tell whether all processes of a group end in a while."""
    until = time.monotonic() + within
    while time.monotonic() < until:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


KINDS: dict[str, Callable[[Torture, int, random.Random], Kill]] = {
    "eval": kill_eval,
    "eval --resume": kill_resume,
    "score --jobs": kill_score,
    "export": kill_export,
}


def kills(share: float, seed: int) -> Iterator[Kill]:
    """Kill every command so many times; yield its result."""
    with tempfile.TemporaryDirectory(prefix="baton-kills-") as root:
        torture = Torture(Path(root))
        times = max(1, round(KILLS * share))

        def one(job: tuple[str, int]) -> Kill:
            name, number = job
            try:
                return KINDS[name](torture, number, random.Random(f"{seed} {name} {number}"))
            except Exception as error:  # noqa: BLE001 - whatever goes wrong is a finding
                return Kill(name, None, [f"{type(error).__name__}: {error}"])

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            yield from pool.map(one, [(name, n) for n in range(times) for name in KINDS])


def main(arguments: list[str] | None = None) -> int:
    """Kill, print a summary, and return 1 when anything was lost or doubled."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.kills", description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of 100 kills for each command")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    told = parser.parse_args(arguments)
    started = time.monotonic()
    found = list(kills(told.share, told.seed))
    for name in KINDS:
        own = [kill for kill in found if kill.command == name]
        done = sorted(kill.done for kill in own if kill.done is not None)
        spread = f"{done[0]} to {done[-1]} results were there" if done else "nothing was there yet"
        faults = sum(bool(kill.faults) for kill in own)
        print(f"{name}: {len(own)} kills, {spread}, {faults} with a fault")
    faulty = [kill for kill in found if kill.faults]
    for kill in faulty:
        print(f"{kill.command}, killed at {kill.done} results: {'; '.join(kill.faults)}")
    seconds = time.monotonic() - started
    print(f"{len(found)} kills in {seconds:.0f} s, {len(faulty)} with a fault, seed {told.seed}")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())

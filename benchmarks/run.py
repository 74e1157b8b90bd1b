"""Measure start-up, speed and memory against the aims of Baton.

Every figure comes from a fresh child process: wall time around it, peak memory from its own
resource usage. A run counts only when it scored every case that it was given.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from spans import SPANS
from stub import SECONDS, write_cases

TOOLS = ("agent_chain", "tool_calls")
HERE = Path(__file__).resolve().parent
KEPT = HERE / "data"
SEED = 7
TOLERANCE = 1.3  # a host's speed drifts by some 20 % within minutes
MIB = 1024.0


class Run(NamedTuple):
    """The seconds and peak MiB of one child process."""

    seconds: float
    peak: float


class Row(NamedTuple):
    """An aim and its measurement; ``aim`` is ``None`` for a figure without an aim."""

    name: str
    unit: str
    aim: float | None
    measured: float
    low: float
    high: float

    def verdict(self, tolerance: float) -> str:
        """Return whether the aim is met; ``near`` is within the tolerance."""
        if self.aim is None:
            return ""
        if self.measured <= self.aim:
            return "met"
        return "near" if self.measured <= self.aim * tolerance else "missed"


class Bench:
    """The folder of data, and the number of runs of each command."""

    def __init__(self, data: Path, scratch: Path, repeat: int) -> None:
        self.data, self.scratch, self.repeat = data, scratch, repeat

    def set_of(self, cases: int, form: str) -> tuple[Path, Path]:
        """Return dataset and recordings; made in a child, so that this process stays small."""
        folder = self.data / f"{form}-{cases}"
        made = [str(HERE / "generate.py"), str(folder), "--cases", str(cases)]
        command = [sys.executable, *made, "--seed", str(SEED), "--form", form]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        suffix = "json" if form == "document" else "jsonl"
        return folder / f"cases.{suffix}", folder / f"recordings.{suffix}"

    def score(
        self,
        cases: int,
        form: str,
        repeat: int | None = None,
        evaluators: Sequence[str] = ("agent_chain",),
        jobs: int | None = None,
    ) -> list[Run]:
        """Run ``baton score`` on a generated set, from load to report, as users do by default."""
        dataset, recordings = self.set_of(cases, form)
        runs = []
        for _ in range(repeat or self.repeat):
            out = self.scratch / "evaluations"
            command = [baton(), "score", str(recordings), "--dataset", str(dataset)]
            command += [word for name in evaluators for word in ("-e", name)]
            command += [] if jobs is None else ["--jobs", str(jobs)]
            runs.append(child([*command, "--out", str(out)], codes=(0, 1)))
            _check_scored(out, cases)
            shutil.rmtree(out)
        return runs

    def floor(self, cases: int, *more: str) -> float:
        """Return the median seconds of the least that scoring a set could cost (``floor.py``)."""
        dataset, recordings = self.set_of(cases, "document")
        command = [sys.executable, str(HERE / "floor.py"), str(recordings), str(dataset), *more]
        return statistics.median(child(command).seconds for _ in range(self.repeat))


def baton() -> str:
    """Return the path of a command of this Python's environment."""
    return str(Path(sys.executable).with_name("baton"))


def child(command: Sequence[str], codes: tuple[int, ...] = (0,)) -> Run:
    """Run a command to its end; anything but an expected exit code stops the benchmark.

    The kernel counts a child's peak from before it becomes another program, so this process
    has to stay smaller than what it measures.
    """
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            said.seek(0)
            print(said.read().decode(errors="replace"), file=sys.stderr)
            raise SystemExit(f"exit code {process.returncode}: {' '.join(command)}")
    scale = MIB * MIB if sys.platform == "darwin" else MIB  # bytes there, kB elsewhere
    return Run(seconds, usage.ru_maxrss / scale)


def _check_scored(out: Path, cases: int) -> None:
    (header,) = out.glob("*/evaluation.json")
    counts = json.loads(header.read_text("utf-8"))["cases"]
    if counts["passed"] + counts["failed"] != cases or not (counts["failed"] or cases < 100):
        raise SystemExit(f"{cases} cases were to be scored, and this came out: {counts}")


def start_up(bench: Bench) -> list[Row]:
    """Compare ``import baton`` with an empty program, alternately, because both are short."""
    programs = ["pass", "import baton", "from baton import load_dataset, score"]
    times: list[list[float]] = [[], [], []]
    for _ in range(bench.repeat * 5):
        for program, seconds in zip(programs, times, strict=True):
            seconds.append(child([sys.executable, "-c", program]).seconds * 1000)
    bare = statistics.median(times[0])
    rows = []
    for name, aim, taken in (
        ("import baton, over bare Python", 60.0, times[1]),
        ("the same with load_dataset and score", None, times[2]),
    ):
        rows.append(_row(name, "ms", aim, [value - bare for value in taken]))
    return rows


def help_text(bench: Bench) -> list[Row]:
    """Time ``--help`` beside that of an empty application with as many commands."""
    empty = [sys.executable, str(HERE / "empty_app.py"), "--help"]
    helped, bare, versions = [], [], []
    for _ in range(bench.repeat * 3):
        helped.append(child([baton(), "--help"]).seconds)
        bare.append(child(empty).seconds)
        versions.append(child([baton(), "--version"]).seconds)
    least = statistics.median(bare)
    return [
        _row("baton --help", "s", 0.25, helped),
        _row("--help: times an empty application", "x", 1.1, [each / least for each in helped]),
        _row("baton --version", "s", 0.05, versions),
    ]


def three(bench: Bench) -> list[Row]:
    """Time the smallest evaluation, also as a ratio to ``--help``."""
    least = statistics.median(child([baton(), "--help"]).seconds for _ in range(bench.repeat * 2))
    runs = bench.score(3, "document", bench.repeat * 2)
    return [
        _row("score 3 recorded cases", "s", 0.25, [run.seconds for run in runs]),
        _row("3 cases: times --help", "x", 1.2, [run.seconds / least for run in runs]),
    ]


def thousand(bench: Bench) -> list[Row]:
    """Time and weigh 1,000 cases, by agents alone, with tools, and with answers as well."""
    chains = bench.score(1000, "document")
    tools = bench.score(1000, "document", evaluators=TOOLS)
    alone = bench.score(1000, "document", evaluators=TOOLS, jobs=1)
    answers = bench.score(1000, "document", evaluators=(*TOOLS, "response_match"))
    plain, words = bench.floor(1000), bench.floor(1000, "rouge")
    return [
        *_both("1,000 cases: chain", chains, 0.8, 100.0),
        *_both("1,000 cases: chain, tools", tools, 1.0, 100.0),
        *_both("1,000 cases: chain, tools, ROUGE-1", answers, 3.0, None),
        _row("chain, tools: times the floor", "x", 2.0, [run.seconds / plain for run in tools]),
        _row("the same in one process", "x", None, [run.seconds / plain for run in alone]),
        _row("with ROUGE-1: times its floor", "x", 1.6, [run.seconds / words for run in answers]),
    ]


def document(bench: Bench) -> list[Row]:
    """Time and weigh 10,000 cases in one JSON document."""
    runs = bench.score(10_000, "document", evaluators=TOOLS)
    alone = bench.score(10_000, "document", evaluators=TOOLS, jobs=1)
    plain = bench.floor(10_000)
    return [
        *_both("10,000, one document: chain, tools", runs, 8.0, 150.0),
        _row("10,000: times the floor", "x", 2.0, [run.seconds / plain for run in runs]),
        _row("the same in one process", "x", None, [run.seconds / plain for run in alone]),
    ]


def runner(bench: Bench) -> list[Row]:
    """Time what playing 5,000 cases takes over the wait for a stub, each written as it comes."""
    cases, at_once = 5000, 500
    file = bench.scratch / "stub.jsonl"
    write_cases(file, cases)
    wait = cases / at_once * SECONDS
    over = []
    for _ in range(bench.repeat):
        out = bench.scratch / "evaluations"
        command = [baton(), "eval", f"{HERE / 'stub.py'}:answer", str(file)]
        child([*command, "--concurrency", str(at_once), "--out", str(out)])
        (header,) = out.glob("*/evaluation.json")
        found = json.loads(header.read_text("utf-8"))
        if found["cases"]["passed"] != cases:
            raise SystemExit(f"{cases} cases were to pass, and this came out: {found['cases']}")
        over.append((found["timings"]["seconds"] - wait) / cases * 1000)
        shutil.rmtree(out)
    return [_row("5,000 live cases, over the wait", "ms", 0.15, over)]


def lines(bench: Bench) -> list[Row]:
    """Tell whether memory grows with the number of JSON lines."""
    few, many = (bench.score(cases, "lines") for cases in (2000, 10_000))
    base = statistics.median(run.peak for run in few)
    return [
        *_both("score 2,000 cases, JSON lines", few, None, None),
        *_both("score 10,000 cases, JSON lines", many, None, None),
        _row("growth of that peak, 2,000 to 10,000", "%", 10.0, [_growth(r, base) for r in many]),
    ]


def several(bench: Bench) -> list[Row]:
    """Compare two processes with one on 10,000 cases and three evaluators, run by run."""
    three = (*TOOLS, "response_match")
    few = bench.score(2000, "lines", evaluators=three, jobs=1)
    one, two = [], []
    for _ in range(bench.repeat):
        one += bench.score(10_000, "lines", 1, evaluators=three, jobs=1)
        two += bench.score(10_000, "lines", 1, evaluators=three, jobs=2)
    base = statistics.median(run.peak for run in few)
    # Two processes are 1.6 times as fast when they take 62.5 % of the time.
    shares = [b.seconds / a.seconds * 100 for a, b in zip(one, two, strict=True)]
    return [
        *_both("10,000: chain, tools, ROUGE-1, lines", one, None, None),
        _row("growth of that peak, 2,000 to 10,000", "%", 10.0, [_growth(r, base) for r in one]),
        *_both("the same, --jobs 2", two, None, None),
        _row("time of --jobs 2, of that of one", "%", 62.5, shares),
    ]


def spans(bench: Bench) -> list[Row]:
    """Time reading OTLP lines from bytes to traces, and tell whether memory grows with them."""
    script = str(HERE / "spans.py")
    few, many = (_read_spans(bench, script, traces) for traces in (2000, 10_000))
    packed = _read_spans(bench, script, 10_000, ".pb")
    base = statistics.median(run.peak for run in few)

    def each(runs: list[Run]) -> list[float]:
        return [run.seconds / (10_000 * SPANS) * 1e6 for run in runs]

    return [
        _row("OTLP JSON, bytes to traces, a span", "us", 25.0, each(many)),
        _row("OTLP protobuf, the same", "us", 25.0, each(packed)),
        *_both("10,000 OTLP traces of 25 spans", many, None, None),
        _row("growth of that peak from 2,000", "%", 10.0, [_growth(run, base) for run in many]),
    ]


def _read_spans(bench: Bench, script: str, traces: int, suffix: str = ".jsonl") -> list[Run]:
    file = bench.scratch / f"spans-{traces}{suffix}"
    child([sys.executable, script, "write", str(file), str(traces)])
    read = [sys.executable, script, "read", str(file), str(traces)]
    return [child(read) for _ in range(bench.repeat)]


def judges(bench: Bench) -> list[Row]:
    """Time judges at 200 ms a request, then again with all verdicts kept, then after a kill."""
    asked, waited = [], []
    with _judge_server(bench) as url:
        for number in range(bench.repeat):
            folder = bench.scratch / f"judges-{number}"
            folder.mkdir()
            asked.append(_judges("sdk", url, folder))
            waited.append(_judges("waiting", folder))
        again = _judges("sdk", url, folder)["requests"]
        twice = _asked_twice(url, bench.scratch / "killed")
    each = [run["processor"] / run["requests"] * 1000 for run in asked]
    return [
        _row("300 judge calls of 200 ms, 20 at once", "s", 3.6, [run["seconds"] for run in asked]),
        _row("processor time of a call", "ms", None, each),
        _row("3,000 that only wait, 100 at once", "s", 6.6, [run["seconds"] for run in waited]),
        _row("calls of the same run once more", "", 0, [again]),
        _row("verdicts asked for again after a kill", "", 0, [twice]),
    ]


@contextmanager
def _judge_server(bench: Bench) -> Iterator[str]:
    """Run the server in its own process, so that it uses no time of the judges."""
    command = [sys.executable, str(HERE / "judges.py"), "serve", str(bench.scratch)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as server:
        address = bench.scratch / "address"
        while not address.exists():
            if server.poll() is not None:
                raise SystemExit("the server of the judges did not start")
            time.sleep(0.05)
        yield address.read_text("utf-8")


def _judges(*words: str | Path) -> dict[str, float]:
    command = [sys.executable, str(HERE / "judges.py"), *map(str, words)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _asked_twice(url: str, folder: Path) -> float:
    """Kill a run when about half is answered; return how many verdicts the next one had to redo."""
    folder.mkdir()
    command = [sys.executable, str(HERE / "judges.py"), "sdk", url, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as judging:
        while (
            not (folder / "verdicts.sqlite").exists() or _judges("kept", folder)["verdicts"] < 120
        ):
            time.sleep(0.05)
        judging.kill()
    kept = _judges("kept", folder)["verdicts"] - 1  # the one that opens the connections
    if kept >= 300:
        raise SystemExit("the run was over before it was killed")
    return _judges("sdk", url, folder)["requests"] - (300 - kept)


MEASURES: dict[str, Callable[[Bench], list[Row]]] = {
    "import": start_up,
    "help": help_text,
    "three": three,
    "thousand": thousand,
    "document": document,
    "lines": lines,
    "jobs": several,
    "runner": runner,
    "spans": spans,
    "judges": judges,
}


def _growth(run: Run, base: float) -> float:
    return (run.peak / base - 1) * 100


def _both(name: str, runs: list[Run], seconds: float | None, peak: float | None) -> list[Row]:
    return [
        _row(name, "s", seconds, [run.seconds for run in runs]),
        _row(f"{name}, peak", "MiB", peak, [run.peak for run in runs]),
    ]


def _row(name: str, unit: str, aim: float | None, values: list[float]) -> Row:
    return Row(name, unit, aim, statistics.median(values), min(values), max(values))


def table(rows: list[Row], tolerance: float) -> str:
    """Draw the rows for people."""
    head = f"{'':38}{'aim':>9}{'measured':>10}{'min':>9}{'max':>9}       \n"
    drawn = []
    for row in rows:
        digits = {"s": 2, "MiB": 0, "ms": 3 if (row.aim or 1) < 1 else 1}.get(row.unit, 1)
        aim = "-" if row.aim is None else f"{row.aim:g}"
        numbers = "".join(f"{value:>9.{digits}f}" for value in (row.low, row.high))
        drawn.append(
            f"{row.name:38}{aim:>9}{row.measured:>10.{digits}f}{numbers} {row.unit:4}"
            f" {row.verdict(tolerance)}".rstrip()
        )
    return head + "\n".join(drawn)


def as_json(rows: list[Row], tolerance: float) -> dict[str, Any]:
    """Write the rows for programs, with what they were measured on."""
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "tolerance": tolerance,
        "rows": [{**row._asdict(), "verdict": row.verdict(tolerance)} for row in rows],
    }


def main() -> int:
    """Run the requested measurements; return 1 if ``--strict`` is set and an aim is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("only", nargs="*", metavar="MEASURE", help=f"of {', '.join(MEASURES)}")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each (default: 3)")
    parser.add_argument("--keep", action="store_true", help="keep and reuse benchmarks/data")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--strict", action="store_true", help="exit 1 when an aim is missed")
    parser.add_argument(
        "--tolerance",
        type=float,
        default=TOLERANCE,
        help=f"a figure up to so many times its aim is near, not missed (default: {TOLERANCE})",
    )
    given = parser.parse_args()
    unknown = [name for name in given.only if name not in MEASURES]
    if unknown or given.repeat < 1:
        parser.error(f"no measure {', '.join(unknown)}" if unknown else "--repeat is at least 1")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="baton-bench-") as scratch:
        # Where a shell forbids Python to keep compiled modules, each command would compile them
        # anew, which takes as long as everything else that a small one does.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(scratch) / "compiled")
        bench = Bench(KEPT if given.keep else Path(scratch) / "data", Path(scratch), given.repeat)
        for name in given.only or MEASURES:
            print(f"measuring {name} ...", file=sys.stderr)
            rows += MEASURES[name](bench)
    if given.json:
        print(json.dumps(as_json(rows, given.tolerance), indent=2))
    else:
        print(table(rows, given.tolerance))
    missed = any(row.verdict(given.tolerance) == "missed" for row in rows)
    return 1 if given.strict and missed else 0


if __name__ == "__main__":
    sys.exit(main())

"""Measure blame on public failed runs, compared with floors that use no model.

python benchmarks/blame.py DATA                          # what is proven, and the floors
python benchmarks/blame.py DATA --judge openai:gpt-4o    # and a judge, where nothing is proven
python benchmarks/blame.py --seeded                      # faults whose place is known

DATA is a folder with `who_and_when/` and `agentrx/`, as their authors publish them. Compare
judges with the floors: rules of three lines reach the published results of judges.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from accuracy.recordings import recordings

from baton.model import HandedOff, Said, ToolCall, Trace
from baton.readers import load_traces
from baton.session.blame import blame_traces
from baton.stats.intervals import share
from baton.testing import FAULTS


class Labelled(NamedTuple):
    """A failed run, with the agent and the place of the message that people blamed."""

    trace: Trace
    agent: str
    place: int


class Guess(NamedTuple):
    agent: str | None
    place: int | None


def who_and_when(folder: Path) -> Iterator[Labelled]:
    for path in sorted(folder.glob("*.json")):
        label = json.loads(path.read_text())
        for trace in load_traces([path]):
            yield Labelled(trace, label["mistake_agent"], int(label["mistake_step"]))


def agentrx(folder: Path) -> Iterator[Labelled]:
    """Yield Magentic-One runs with their root cause; their steps are counted from 1."""
    for label in json.loads((folder / "magentic_one_ground_truth.json").read_text()):
        path = folder / "magentic_dataset" / f"{label['trajectory_id']}.json"
        if not path.exists():
            continue
        root = label["root_cause"]["failure_id"]
        failure = next(each for each in label["failures"] if each["failure_id"] == root)
        for trace in load_traces([path]):
            yield Labelled(trace, failure["failed_agent"], failure["step_number"] - 1)


def messages(trace: Trace) -> list[tuple[int, str, str]]:
    """Return the place, the agent and the text of each message, in order."""
    found = []
    for turn in trace.turns:
        prompts = {each.id: each.prompt for each in turn.dispatches}
        for run in turn.runs:
            for step in run.steps:
                match = re.fullmatch(r"m(\d+)", step.id)
                if match is None:
                    continue
                if isinstance(step, Said):
                    text = step.content.plain()
                elif isinstance(step, HandedOff):
                    prompt = prompts.get(step.dispatch)
                    text = prompt.plain() if prompt is not None else ""
                elif isinstance(step, ToolCall) and step.result is not None:
                    text = step.result.plain()
                else:
                    text = ""
                found.append((int(match[1]), run.agent, text))
    return sorted(found)


_ERROR = re.compile(
    r"\b(?:error|failed|exception|traceback|unable|cannot|not found)\b", re.IGNORECASE
)


def _workers(trace: Trace) -> list[tuple[int, str, str]]:
    """Return the messages of workers: of all agents except the leader and code runners."""
    spoken = messages(trace)
    leads = {
        each.from_agent
        for turn in trace.turns
        for each in turn.dispatches
        if each.kind == "delegate"
    }
    return [
        each for each in spoken if each[1] not in leads and "terminal" not in each[1].casefold()
    ]


def commonest(trace: Trace) -> Guess:
    counts = Counter(agent for _, agent, _ in messages(trace))
    agent = counts.most_common(1)[0][0]
    return Guess(agent, next(place for place, own, _ in messages(trace) if own == agent))


def busiest_worker(trace: Trace) -> Guess:
    workers = _workers(trace) or messages(trace)
    agent = Counter(agent for _, agent, _ in workers).most_common(1)[0][0]
    return Guess(agent, next(place for place, own, _ in workers if own == agent))


def last_worker(trace: Trace) -> Guess:
    place, agent, _ = (_workers(trace) or messages(trace))[-1]
    return Guess(agent, place)


def first_error_word(trace: Trace) -> Guess:
    workers = _workers(trace) or messages(trace)
    found = next((each for each in workers if _ERROR.search(each[2])), workers[0])
    return Guess(found[1], found[0])


def first_step(trace: Trace) -> Guess:
    place, agent, _ = messages(trace)[0]
    return Guess(agent, place)


FLOORS: dict[str, Callable[[Trace], Guess]] = {
    "commonest agent": commonest,
    "busiest worker, its first step": busiest_worker,
    "last worker": last_worker,
    "first worker step with an error word": first_error_word,
    "always the first step": first_step,
}


def table(name: str, runs: list[Labelled], judge: str | None) -> None:
    print(f"\n{name}: {len(runs)} runs")
    print(f"{'':38}  {'agent':>20}  {'step':>20}  {'step within 2':>20}")
    for title, floor in FLOORS.items():
        row(title, [(floor(run.trace), run) for run in runs])
    found = blamed(runs, judge)
    row("proven" if judge is None else f"proven, else {judge}", found)
    told = sum(guess.agent is not None for guess, _ in found)
    print(f"  told of {told} of {len(runs)}; of the others nothing is proven")


def blamed(runs: list[Labelled], judge: str | None) -> list[tuple[Guess, Labelled]]:
    """Run `baton.find_blame` on all runs at the same time."""
    answers = blame_traces([run.trace for run in runs], judge=judge)
    found = []
    for run, each in zip(runs, answers, strict=True):
        first = each.blame.suspects[0] if each.blame.suspects else None
        match = re.match(r"m(\d+)", first.step) if first is not None else None
        place = int(match[1]) if match is not None else None
        found.append((Guess(first.agent if first is not None else None, place), run))
    return found


def row(title: str, guesses: list[tuple[Guess, Labelled]]) -> None:
    far = [None if guess.place is None else abs(guess.place - run.place) for guess, run in guesses]
    hits = (
        sum(guess.agent == run.agent for guess, run in guesses),
        sum(each == 0 for each in far),
        sum(each is not None and each <= 2 for each in far),
    )
    cells = [percent(each, len(guesses)) for each in hits]
    print(f"  {title:36}  {cells[0]:>20}  {cells[1]:>20}  {cells[2]:>20}")


def percent(hits: int, of: int) -> str:
    """Write a share with its 95 % interval."""
    estimate = share(hits, of)
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    low, high = 100 * estimate.low, 100 * estimate.high
    return f"{100 * estimate.value:.0f} % [{low:.0f}, {high:.0f}]"


def seeded(rounds: int) -> bool:
    """Seed faults into good runs, and check whether blame finds their places."""
    good = [each.trace for each in recordings()]
    clean = [each.trace for each in blame_traces(good) if not each.failures]
    drawn = random.Random(1)
    made, truth = [], []
    for kind, inject in FAULTS.items():
        for trace in clean:
            for _ in range(rounds):
                result = inject(trace, drawn)
                if result is not None:
                    made.append(result[0])
                    truth.append((kind, result[1].subject))
    right: Counter[str] = Counter()
    told: Counter[str] = Counter()
    for each, (kind, subject) in zip(blame_traces(made), truth, strict=True):
        first = each.blame.suspects[0] if each.blame.suspects else None
        if first is not None:
            told[kind] += 1
            right[kind] += bool({first.step, first.dispatch, *first.evidence} & set(subject))
    print(f"{len(clean)} good runs, {len(made)} with a seeded fault")
    counts = Counter(kind for kind, _ in truth)
    for kind in FAULTS:
        print(
            f"  {kind:24} {counts[kind]:5} seeded, {told[kind]:5} proven, "
            f"{right[kind]:5} in the right place"
        )
    of, hits = sum(told.values()), sum(right.values())
    print(f"where a proof exists: {hits} of {of} right ({100 * hits / max(of, 1):.1f} %, aim 95 %)")
    return hits >= 0.95 * of and of > 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--judge")
    parser.add_argument("--seeded", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    passed = True
    if given.data is not None:
        for part in ("algorithm_generated", "hand_crafted"):
            folder = given.data / "who_and_when" / part
            if folder.is_dir():
                table(f"Who&When, {part}", list(who_and_when(folder)), given.judge)
        if (given.data / "agentrx").is_dir():
            table("AgentRx, Magentic-One", list(agentrx(given.data / "agentrx")), given.judge)
    if given.seeded or given.data is None:
        passed = seeded(given.rounds)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())

"""Measure `baton improve` on the simulation of the demo: strategies, false gains, overhead.

    python benchmarks/improve.py                          # all measures
    python benchmarks/improve.py strategies --seeds 20    # one: or noise, overhead, processes

Strategies: each looks for the sentence that fixes one agent, with the same number of plays; a run
counts if the gain is proven. Noise: expectations of cases are shuffled, and agents answer randomly.
Overhead: wall time over that in which agents or a model are at work (they only wait), 16
cases in play. Processes: the same with a program that runs in worker processes.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "improve"))

from played import Model, here, maker  # type: ignore[import-not-found, unused-ignore]
from shop import TEXTS, answer, messages  # type: ignore[import-not-found, unused-ignore]

import baton
from baton.improvements.journal import Journal
from baton.improvements.plays import Options
from baton.improvements.result import Improvement, Study
from baton.improvements.search import improve_texts
from baton.improvements.strategies import STRATEGIES
from baton.model import Case, JudgeRequest, JudgeResponse, RunOptions
from baton.replays.replay import Moments
from baton.runner.plan import make_plan
from baton.stats.intervals import share
from baton.stats.significance import drop_of_passes

PLAYS, CASES, IN_PLAY = 500, 90, 16
ANSWER_SECONDS, PROPOSAL_SECONDS = 0.5, 3.0


def improve(
    cases: list[Case], seed: int, say: Any = here, model: Any = None, **options: Any
) -> Improvement:
    """Improve the shop in this process."""
    plan = make_plan(["dispatch_routing", "response"])
    moments = Moments(cases, maker(say), plan, RunOptions(concurrency=IN_PLAY))
    given = Options(seed=seed, **options)
    work = improve_texts(moments, model or Model(seed), Journal.in_memory(), given)
    return asyncio.run(work)


def gain_of(study: Study) -> float:
    """Return how much better the aimed axis is on the held-out cases."""
    if study.proof is None:
        return 0.0
    axes = study.proof.comparison.axes
    return next((a.difference.difference.value for a in axes if a.axis == study.proof.aimed), 0.0)


def strategies(seeds: int) -> None:
    """Print how often each strategy fixes an agent, compared with the floor."""
    proven: dict[str, list[bool]] = {}
    print(f"{seeds} seeds, three agents in turn, {PLAYS} plays each")
    print(f"{'strategy':<15}{'proven':>8}  {'95 %':<14}{'gain':>6}{'requests':>10}  above random")
    for strategy in ("random", *(name for name in STRATEGIES if name != "random")):
        gains, asked, found = [], [], []
        for seed in range(seeds):
            component = [*TEXTS][seed % len(TEXTS)]
            result = improve(
                messages(CASES, seed),
                seed,
                strategy=strategy,
                candidates=1_000,
                components=[component],
                max_calls=PLAYS,
            )
            (study,) = result.studies
            found.append(study.outcome == "proven")
            gains.append(gain_of(study) if found[-1] else 0.0)
            asked.append(result.asked)
        proven[strategy] = found
        floor = proven["random"]
        pairs = [(int(a), 1, int(b), 1) for a, b in zip(found, floor, strict=True)]
        p = drop_of_passes(pairs)
        above = "-" if strategy == "random" else ("yes" if p <= 0.05 else "no") + f" (p {p:.3f})"
        rate = share(sum(found), seeds)
        interval = f"[{rate.low:.2f}, {rate.high:.2f}]" if rate is not None else ""
        print(
            f"{strategy:<15}{sum(found) / seeds:>8.2f}  {interval:<14}{fmean(gains):>6.2f}"
            f"{fmean(asked):>10.0f}  {above}",
            flush=True,
        )


def noise(runs: int) -> None:
    """Print in how many runs over shuffled expectations a gain is found."""
    found = 0
    for seed in range(runs):
        cases = messages(CASES, seed)
        turns = [case.turns[0] for case in cases]
        stated = [(each.agents, each.dispatches, each.response_contains) for each in turns]
        random.Random(seed).shuffle(stated)
        for turn, (agents, dispatches, response) in zip(turns, stated, strict=True):
            turn.agents, turn.dispatches, turn.response_contains = agents, dispatches, response
        found += bool(improve(cases, seed, candidates=20).texts)
    # Not all of these are false: more work for the agent that most cases expect is better for real.
    print(f"shuffled expectations: a gain in {found} of {runs} runs")

    async def coin(system: str, message: str) -> str:
        # The answer to a message depends randomly on the text, so that no text is really better.
        heads = random.Random(f"{system} {message}").random() < 0.5
        if system.startswith("You are the desk"):
            return "refunds" if heads else "billing"
        number = next(iter(re.findall(r"\d{4,}", message)), "")
        return f"{number}, due on 1 May" if heads else "Well."

    found = 0
    for seed in range(runs):
        found += bool(improve(messages(CASES, seed), seed, coin, candidates=20).texts)
    print(f"agents that answer by luck: a gain in {found} of {runs} runs (1 of 20 is meant)")


class Busy:
    """Adds up the time in which an agent or the model is working."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.seconds, self._at_work, self._since = 0.0, 0, 0.0

    async def wait(self, seconds: float) -> None:
        """Be at work for so long."""
        if not self._at_work:
            self._since = time.perf_counter()
        self._at_work += 1
        await asyncio.sleep(seconds)
        self._at_work -= 1
        if not self._at_work:
            self.seconds += time.perf_counter() - self._since


def overhead() -> None:
    """Print the wall time minus the time in which agents or the model are working."""
    improve(messages(CASES, 1), 1, candidates=2)  # what is imported once
    busy = Busy()

    async def say(system: str, message: str) -> str:
        await busy.wait(ANSWER_SECONDS)
        said: str = answer(system, message, 0)
        return said

    class Waiting(Model):  # type: ignore[misc, unused-ignore]
        async def ask(self, request: JudgeRequest, *, sample: int = 0) -> JudgeResponse:
            await busy.wait(PROPOSAL_SECONDS)
            answered: JudgeResponse = await super().ask(request, sample=sample)
            return answered

    began, cpu = time.perf_counter(), time.process_time()
    result = improve(
        messages(CASES, 1), 1, say, Waiting(1), candidates=10, components=["agent:refunds"]
    )
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    own = seconds - busy.seconds
    print(
        f"{result.plays} plays of two answers, {ANSWER_SECONDS:g} s each, {IN_PLAY} in play, and "
        f"{result.asked} proposals of {PROPOSAL_SECONDS:g} s: {seconds:.1f} s, of which "
        f"{own:.2f} s ({own / busy.seconds:.1%}) in none of them; CPU {cpu:.2f} s"
    )


PROGRAM = """
import os, sys, time
sys.path.insert(0, {folder!r})
import baton
from baton import prompts
from shop import TEXTS, answer

TOLD = {{name: prompts.get(name, text) for name, text in TEXTS.items()}}
WORK = os.open({work!r}, os.O_WRONLY | os.O_APPEND)


def said(name, message):
    began = time.time()
    time.sleep({seconds})
    os.write(WORK, f"{{began}} {{time.time()}}\\n".encode())
    return answer(TOLD[f"agent:{{name}}"], message, 0)


@baton.agent("refunds")
def refunds(message):
    return said("refunds", message)


@baton.agent("billing")
def billing(message):
    return said("billing", message)


@baton.agent("desk")
def desk(message):
    return (refunds if said("desk", message) == "refunds" else billing)(message)
"""


def processes() -> None:
    """Print the overhead where a program plays in worker processes."""
    with tempfile.TemporaryDirectory() as name:
        folder, work = Path(name), Path(name, "work")
        work.touch()
        shop = str(Path(__file__).parents[1] / "examples" / "improve")
        program = PROGRAM.format(folder=shop, work=str(work), seconds=ANSWER_SECONDS)
        (folder / "program.py").write_text(program, "utf-8")

        class Waiting(Model):  # type: ignore[misc, unused-ignore]
            async def ask(self, request: JudgeRequest, *, sample: int = 0) -> JudgeResponse:
                began = time.time()
                await asyncio.sleep(PROPOSAL_SECONDS)
                with work.open("a", encoding="utf-8") as file:
                    file.write(f"{began} {time.time()}\n")
                answered: JudgeResponse = await super().ask(request, sample=sample)
                return answered

        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began, cpu = time.perf_counter(), time.process_time()
        result = baton.improve(
            messages(CASES, 1),
            {"type": "python", "target": str(folder / "program.py") + ":desk"},
            judge=Waiting(1),
            candidates=10,
            agent="refunds",
            seed=1,
            concurrency=IN_PLAY,
            out=folder / "out",
        )
        seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        theirs = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        spans = sorted(tuple(map(float, line.split())) for line in work.read_text().splitlines())
    busy, until = 0.0, 0.0
    for start, end in spans:
        busy += max(0.0, end - max(start, until))
        until = max(until, end)
    print(
        f"in worker processes: {result.plays} plays, {result.asked} proposals: {seconds:.1f} s, of "
        f"which {seconds - busy:.2f} s ({(seconds - busy) / busy:.1%}) in none of them; "
        f"CPU {cpu:.1f} s here and {theirs:.1f} s in workers"
    )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "measures", nargs="*", default=["strategies", "noise", "overhead", "processes"]
    )
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    for name in given.measures:
        known: dict[str, Callable[[], None]] = {
            "strategies": lambda: strategies(given.seeds),
            "noise": lambda: noise(given.seeds),
            "overhead": overhead,
            "processes": processes,
        }
        known[name]()


if __name__ == "__main__":
    main()

"""Measure issues at scale: signatures, groups of texts, stability of groups, and cost of claims.

    python benchmarks/feed.py                       # all measures
    python benchmarks/feed.py signatures groups     # some: signatures pool groups stability claims
    python benchmarks/feed.py stability TEXTS.txt   # of your own texts, one a line

Stability: the texts are grouped again and again, from samples of 70 of 100 of them, and each pair
of groupings is compared on the texts that both hold, by the adjusted Rand index (1: the same
groups, 0: as by chance). "In a row" is as issues are grouped: each time with the groups that there
were before. "Each anew" forgets them.
"""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from accuracy.recordings import SOURCES

import baton
from baton.evaluators.defaults import PROVEN_BY_RECORD
from baton.feed.failures import Failure
from baton.feed.issues import Collector, Edge
from baton.feed.text_groups import group_texts, keep_names
from baton.model import Trace
from baton.readers import iter_traces

FAILURES, TEXTS, SAMPLES, KEPT = 1_000_000, 10_000, 8, 0.7
CONVERSATIONS = 20_000
FAULTS = ("failed", "empty_answer", "tool_outside_scope", "dropped_constraint", "ignored")
WHO = ("The agent", "It", "The receiver", "The sub-agent", "This run", "The answer")
WHAT = (
    ("promised a refund of {n} euros", "gave {n} EUR back", "granted the refund of {n}"),
    ("was rude to the customer", "used an impolite tone", "addressed the customer dismissively"),
    ("answered in English and not in German", "ignored the language of the user"),
    ("left the second attachment out", "did not read attachment {n}", "skipped an attached file"),
    ("searched the wrong city", "looked for hotels in another town", "mixed up both cities"),
    ("rounded the invoice total", "gave a total of {n} that does not add up"),
    ("repeated the search {n} times", "ran the same query over and over"),
    ("quoted an outdated price list", "used prices of last year", "read the old tariff {n}"),
)
WHY = ("", " although the policy forbids it", " before anybody confirmed it", " without a reason")


def peak_mib() -> float:
    """Return the peak memory of this process, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def failures(count: int) -> Iterator[Failure]:
    """Yield failures of 40 agents in the form of an evaluation's results."""
    drawn = random.Random(7)
    for number in range(count):
        receiver = f"agent-{drawn.randrange(40)}"
        yield Failure(
            conversation=f"c{number}",
            evaluator="dispatch_completed",
            type="dispatch_completed",
            fault=drawn.choice(FAULTS),
            sender="desk",
            receiver=receiver,
            dispatch="d1",
            subject={"tool": f"tool-{drawn.randrange(5)}"},
            says=f"`{receiver}` failed: HTTP 503, request {number} of order {number % 977}",
            at=2.5 * number,
        )


def signatures() -> None:
    """Collect a million failed dispatches."""
    collector, began, first = Collector(), time.process_time(), 0.0
    for number, failure in enumerate(failures(FAILURES)):
        collector.dispatched(Edge("desk", failure.receiver or ""), at=failure.at)
        collector.add([failure])
        if number == FAILURES // 10:
            first = peak_mib()
    issues = collector.issues()
    seconds = time.process_time() - began
    print(
        f"signatures: {FAILURES} failed dispatches in {seconds:.1f} s (aim 60), {len(issues)} "
        f"issues; {first:.0f} MiB after a tenth, {peak_mib():.0f} MiB at the end"
    )


def pool() -> None:
    """Choose a set of 100 from 20,000 conversations of 40 agents, each with 20,000 letters."""
    from baton.feed.collect import Pool
    from baton.model import Score
    from baton.testing.build import delegate, run, trace, turn

    kept, began, first, drawn = Pool(), time.process_time(), 0.0, random.Random(5)
    for number in range(CONVERSATIONS):
        agent, prompt = f"agent-{drawn.randrange(40)}", f"{drawn.random()} {drawn.choice(WHO)}"
        said = drawn.randbytes(10_000).hex()
        made = trace(
            turn(prompt, run("desk", delegate(agent, prompt)), run(agent, output=said)),
            id=f"c{number}",
        )
        verdict = Score(
            evaluator="dispatch_completed", type="dispatch_completed", version="1", unit="dispatch",
            subject=[made.turns[0].dispatches[0].id], status="failed" if number % 9 else "passed",
            value=0.0,
        )  # fmt: skip
        kept.add(made, [verdict])
        if number == CONVERSATIONS // 10:
            first = peak_mib()
    chosen = kept.choose().chosen
    print(
        f"pool: {len(chosen)} of {CONVERSATIONS} conversations chosen in "
        f"{time.process_time() - began:.1f} s; {first:.0f} MiB after a tenth, {peak_mib():.0f} MiB "
        "at the end"
    )


def complaints(count: int, seed: int) -> list[str]:
    """Return complaints of eight kinds in different words."""
    drawn = random.Random(seed)
    made = []
    for _ in range(count):
        words = drawn.choice(drawn.choice(WHAT)).format(n=drawn.randint(1, 999))
        extra = "".join(drawn.choices("abcdefghijklmnop", k=7))
        made.append(f"{drawn.choice(WHO)} {words}{drawn.choice(WHY)}, see {extra}.")
    return made


def groups() -> None:
    """Group 10,000 texts, no two of which are the same."""
    began = time.process_time()
    labels = group_texts(complaints(TEXTS, 1))
    seconds = time.process_time() - began
    print(f"groups: {TEXTS} texts in {seconds:.1f} s (aim 30), {max(labels) + 1} groups")


class Stability(NamedTuple):
    """Mean adjusted Rand indices, and the share of texts in no group."""

    successive: float
    all_pairs: float
    ungrouped: float


def rand_index(texts: Sequence[str], *, in_a_row: bool, seed: int = 3) -> Stability:
    """Group 70 % samples, with or without the groups of the last one, and compare them."""
    from sklearn.metrics import adjusted_rand_score

    drawn = random.Random(seed)
    fits: list[dict[int, int]] = []
    before: dict[int, str] = {}
    for _ in range(SAMPLES):
        chosen = sorted(drawn.sample(range(len(texts)), int(KEPT * len(texts))))
        old = [before.get(place) for place in chosen] if in_a_row else []
        labels = group_texts([texts[place] for place in chosen], old)
        ids = [
            [f"{place}" for place, label in zip(chosen, labels, strict=True) if label == group]
            for group in range(max(labels, default=-1) + 1)
        ]
        known = {
            name: [f"{place}" for place, of in before.items() if of == name]
            for name in before.values()
        }
        names = keep_names(known, ids).names
        before = {int(id_): name for name, group in zip(names, ids, strict=True) for id_ in group}
        # A text without a group counts as its own group.
        alone = iter(range(-1, -len(texts) - 1, -1))
        fits.append(
            {
                p: label if label >= 0 else next(alone)
                for p, label in zip(chosen, labels, strict=True)
            }
        )

    def alike(one: dict[int, int], two: dict[int, int]) -> float:
        both = sorted(one.keys() & two.keys())
        return float(adjusted_rand_score([one[at] for at in both], [two[at] for at in both]))

    return Stability(
        mean(alike(one, two) for one, two in pairwise(fits)),
        mean(alike(one, two) for one, two in combinations(fits, 2)),
        mean(sum(label < 0 for label in fit.values()) / len(fit) for fit in fits),
    )


def stability(texts: Sequence[str] = ()) -> None:
    """Group samples of texts, and compare the groups."""
    sets = {f"{len(texts)} texts": texts}
    if not texts:
        counts = (60, 125, 500)
        sets = {f"{count} made complaints": complaints(count, count) for count in counts}
    for name, some in sets.items():
        row, anew = rand_index(some, in_a_row=True), rand_index(some, in_a_row=False)
        print(
            f"stability: {name}, in a row {row.successive:.2f} from one to the next and "
            f"{row.all_pairs:.2f} of all pairs, {row.ungrouped:.0%} in no group (aim 0.9); each "
            f"anew {anew.all_pairs:.2f}, {anew.ungrouped:.0%} in no group"
        )


def claims() -> None:
    """Read and score recordings with and without the two evaluators of what agents say."""
    both = {"claims_supported", "announced_dispatch"}
    names = list(PROVEN_BY_RECORD)

    def seconds(work: Callable[[], object]) -> float:
        taken = []
        for _ in range(7):
            began = time.process_time()
            work()
            taken.append(time.process_time() - began)
        return min(taken)

    def read() -> list[Trace]:
        # Folders of recordings contain a few other files.
        return list(iter_traces(list(SOURCES.values()), on_problem=lambda _: None))

    traces, reading = read(), seconds(read)
    rest = [name for name in names if name not in both]
    without = seconds(lambda: baton.score(traces, evaluators=rest))
    more = seconds(lambda: baton.score(traces, evaluators=names)) - without
    print(
        f"claims: {' and '.join(sorted(both))} take {more:.3f} s of {len(traces)} recordings; "
        f"reading takes {reading:.2f} s and scoring by the others {without:.2f} s: "
        f"{more / (reading + without):.1%} more (aim 5 %)"
    )


MEASURES: dict[str, Callable[[], None]] = {
    each.__name__: each for each in (signatures, pool, groups, stability, claims)
}


def main() -> None:
    """Run the requested measurements."""
    words = sys.argv[1:]
    if len(words) == 2 and words[0] == "stability" and words[1] not in MEASURES:
        lines = Path(words[1]).read_text(encoding="utf-8").splitlines()
        stability([line for line in lines if line.strip()])
        return
    unknown = set(words) - MEASURES.keys()
    if unknown:
        sys.exit(f"no measure {', '.join(sorted(unknown))}; there are {', '.join(MEASURES)}")
    for name in words or MEASURES:
        MEASURES[name]()


if __name__ == "__main__":
    main()

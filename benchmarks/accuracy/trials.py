"""Traces with a fault, and traces without, for each evaluator that has to tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from typing import NamedTuple

from baton.model import Case, Content, ExpectedDispatch, ExpectedTurn, Trace
from baton.testing import FAULTS, Injector, Seeded, ignored_result, repeated_work

from . import claims, handoffs
from .recordings import HALVES, Good, recordings, with_definitions, with_subsets
from .rewordings import (
    FOLDERS,
    SOURCE,
    Reworded,
    contradictions,
    duplicates,
    prompts,
    repetitions,
    results,
)
from .texts import pairs, played, requests, staged

MADE_BY: dict[str, str] = {
    "wrong_target": "dispatch_routing",
    "unknown_target": "dispatch_target_known",
    "tool_outside_subset": "dispatch_scope",
    "dead_child": "dispatch_completed",
    "ignored_result": "result_used",
    "repeated_work": "result_used",
    "dropped_constraint": "context_carried",
    "changed_value": "result_contradicted",
    "duplicate_work": "duplicate_work",
    "loop": "handoff_loops",
    "unsupported_claim": "claims_supported",
    "announced_not_made": "announced_dispatch",
}
"""Each kind of fault, and the evaluator that has to find it."""

EACH = 200
"""Trials of a kind in each half, at least, where the recordings have a place for it at all."""

_TRIES = 20


class Trial(NamedTuple):
    """A trace to be scored; ``seeded`` is ``None`` when nothing is wrong with it.

    ``text`` is the one of a list that was played, where one was.
    """

    evaluator: str
    kind: str
    source: str
    half: str
    trace: Trace
    case: Case | None
    seeded: Seeded | None
    text: str = ""


def trials(kinds: Sequence[str], each: int = EACH) -> Iterator[Trial]:
    """Make all trials of some kinds of faults, the same each time."""
    for kind in kinds:
        for half in HALVES:
            yield from _recorded(kind, half, each)
    if "ignored_result" in kinds:
        yield from _results()
    if "repeated_work" in kinds:
        yield from _repetitions()
    if "dropped_constraint" in kinds:
        yield from _prompts()
    for kind, reworded in _REWORDED.items():
        if kind in kinds:
            for source, folder in FOLDERS.items():
                yield from _listed(kind, source, reworded(folder))
    for source, folder in handoffs.FOLDERS.items():
        chosen = [kind for kind in handoffs.FAULTS if kind in kinds]
        for kind, one in handoffs.handoffs(chosen, folder):
            yield from _listed(kind, source, [one])
    for kind, told in _TOLD.items():
        if kind in kinds:
            for source, folder in claims.FOLDERS.items():
                yield from _listed(kind, source, told(folder))


def _recorded(kind: str, half: str, each: int) -> Iterator[Trial]:
    """Seed one kind of fault into recordings; every recording is a clean trial as well."""
    goods = [_prepared(kind, good) for good in recordings() if good.half == half]
    random = Random(f"{kind} {half}")
    random.shuffle(goods)
    inject = _injector(kind, goods)
    evaluator, left = MADE_BY[kind], each * _TRIES
    fitting = [good for good in goods if inject(good.trace, Random(0)) is not None]
    made = 0
    for good in cycle(fitting):
        left -= 1
        found = inject(good.trace, random)
        if found is not None:
            made += 1
            trace, seeded = found
            yield Trial(evaluator, kind, good.source, half, trace, expected(good.trace), seeded)
        if made >= each or left <= 0:
            break
    for number, good in enumerate(cycle(fitting or goods)):
        if number >= max(each, len(goods)):
            break
        if number < len(fitting):
            case = expected(good.trace)
            yield Trial(evaluator, kind, good.source, half, good.trace, case, None)
    for good in goods:
        if good not in fitting:
            case = expected(good.trace)
            yield Trial(evaluator, kind, good.source, half, good.trace, case, None)


def _prepared(kind: str, good: Good) -> Good:
    """Add what the evaluator of a kind asks users for."""
    supply = {"tool_outside_subset": with_subsets, "unknown_target": with_definitions}.get(kind)
    return good if supply is None else good._replace(trace=supply(good.trace))


def _injector(kind: str, goods: Sequence[Good]) -> Injector:
    """Return what seeds a kind; ignored results give way to answers of other recorded runs."""
    takers: dict[str, Callable[..., tuple[Trace, Seeded] | None]] = {
        "ignored_result": ignored_result,
        "repeated_work": repeated_work,
    }
    if kind not in takers:
        return FAULTS[kind]
    answers = {
        turn.output.text
        for good in goods
        for turn in good.trace.turns
        if turn.output is not None and turn.output.text and len(turn.output.text.split()) > 5
    }
    foreign = [text for pair in pairs() for text in pair.ignores]
    return partial(takers[kind], instead=sorted(answers) + foreign)


def _results() -> Iterator[Trial]:
    """Play each result with each use of it, and with each answer that ignored it."""
    random = Random("results")
    for pair in pairs():
        for answers, kind in ((pair.uses, "used"), (pair.ignores, "ignored")):
            for text in answers:
                for _ in range(2 if kind == "used" else 4):
                    good = played(random, pair, text)
                    yield _text_trial(
                        "result_used", "ignored_result", kind == "ignored", good, pair.half
                    )


def _repetitions() -> Iterator[Trial]:
    """Let callers repeat the calls behind a result; clean are those that only answer."""
    random = Random("repetitions")
    for pair in pairs():
        for text in pair.uses:
            good = played(random, pair, text)
            yield _text_trial("result_used", "repeated_work", False, good, pair.half)
        for text in pair.ignores * 4:
            good = played(random, pair, pair.uses[0])
            found = repeated_work(good.trace, random, [text])
            if found is not None:
                good = good._replace(trace=found[0])
                yield _text_trial("result_used", "repeated_work", True, good, pair.half)


def _prompts() -> Iterator[Trial]:
    """Play each request with each prompt that carries it, and each that does not."""
    random = Random("prompts")
    for request in requests():
        for texts, faulty in ((request.carries, False), (request.drops, True)):
            for prompt in texts:
                for _ in range(8 if not faulty else 10):
                    good = staged(random, request.request, prompt, "Yes.", "Yes.")
                    yield _text_trial(
                        "context_carried", "dropped_constraint", faulty, good, request.half
                    )


_REWORDED: dict[str, Callable[..., Iterator[Reworded]]] = {
    "dropped_constraint": prompts,
    "ignored_result": results,
    "repeated_work": repetitions,
    "changed_value": contradictions,
    "duplicate_work": duplicates,
}
"""What plays the lists of reworded texts, by the kind of their broken twins."""


_TOLD: dict[str, Callable[[Path], Iterator[Reworded]]] = {
    "unsupported_claim": claims.claims,
    "announced_not_made": claims.announcements,
}
"""What plays the lists of claims and announcements, by the kind of their broken twins."""


def listed(folder: Path, kinds: Sequence[str]) -> Iterator[Trial]:
    """Make the trials of a folder of lists of reworded texts."""
    for kind, reworded in (_REWORDED if not _of_claims(folder) else _TOLD).items():
        if kind in kinds:
            yield from _listed(kind, SOURCE, reworded(folder))


def _of_claims(folder: Path) -> bool:
    return (folder / "claims.yaml").exists()


def _listed(kind: str, source: str, reworded: Iterable[Reworded]) -> Iterator[Trial]:
    for half, trace, seeded, text in reworded:
        yield Trial(MADE_BY[kind], kind, source, half, trace, None, seeded, text)


def _text_trial(evaluator: str, kind: str, faulty: bool, good: Good, half: str) -> Trial:
    subject = [d.id for turn in good.trace.turns for d in turn.dispatches]
    seeded = Seeded(kind=kind, subject=subject, says="by the list") if faulty else None
    return Trial(evaluator, kind, "texts", half, good.trace, None, seeded)


def expected(trace: Trace) -> Case:
    """State that what was handed on in a trace is what should be."""
    turns = [
        ExpectedTurn(
            input=turn.input or Content(text=""),
            dispatches=[
                ExpectedDispatch(to=d.to_agent, kind=d.kind)
                for d in turn.dispatches
                if d.kind != "return" and d.basis != "order"
            ],
        )
        for turn in trace.turns
    ]
    return Case(id=trace.id, turns=turns)

"""No pattern takes long for any text: hostile ones of 20,000 characters are read in time."""

from __future__ import annotations

import importlib
import pkgutil
import random
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.clock import cpu_limit, slowness

import baton.evaluators
import baton.findings
from baton.evaluators.registry import evaluator_entry
from baton.findings.lazy_patterns import LazyPattern
from baton.model import EvalContext
from baton.testing.build import call, delegate, run, trace

LONG = 20_000
# A pattern that takes 3 s for LONG characters, as its time is quadratic, takes 0.07 s for so many.
PART = 3_000
SECONDS = 0.07
# A pattern whose time is cubic takes as long for so many as one with quadratic time for PART.
START = 300
PIECES = [
    "1,",
    "1 ",
    "a",
    "A",
    "a.",
    "a_",
    "a-",
    "a/",
    "a:",
    ",",
    " ",
    "\n",
    ". ",
    "(",
    "1-",
    "1/",
    "1.",
    "x1 ",
    "I ",
    "'",
    '"',
    "``",
    "a, ",
    "$1 ",
    "1%",
    "1:",
    "00 ",
    "A1",
    "a@",
    "=",
    "- ",
    "a=1 ",
    "\xa0",
    "I have ",
    "from 1 ",
    "a; ",
    "> ",
    "5 922 kg ",
]


def patterns() -> dict[str, re.Pattern[str]]:
    found: dict[str, re.Pattern[str]] = {}
    for package in (baton.findings, baton.evaluators):
        for each in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            module = importlib.import_module(each.name)
            for value in list(vars(module).values()):
                found.update((pattern.pattern, pattern) for pattern in within(value))
    return found


def within(value: Any, depth: int = 0) -> Iterator[re.Pattern[str]]:
    if isinstance(value, LazyPattern):
        yield re.compile(value.pattern, value.flags)
    elif isinstance(value, re.Pattern):
        yield value
    elif depth < 4 and isinstance(value, Mapping):
        for each in value.values():
            yield from within(each, depth + 1)
    elif depth < 4 and isinstance(value, list | tuple | frozenset):
        for each in value:
            yield from within(each, depth + 1)


def taken(pattern: re.Pattern[str], text: str) -> float:
    start = time.process_time()
    for _ in pattern.finditer(text):
        pass
    return time.process_time() - start


def is_slow(pattern: re.Pattern[str], text: str) -> bool:
    return taken(pattern, text) > SECONDS and taken(pattern, text) > SECONDS * slowness()


def texts_for(pattern: re.Pattern[str], pieces: int) -> Iterator[str]:
    """Yield repeated pieces, of the words of the pattern as well; the same each time."""
    chance = random.Random(pattern.pattern)
    words = re.findall(r"[A-Za-z]{2,}", pattern.pattern)[:200]
    atoms = [*PIECES, *(word + end for word in words for end in (" ", ""))]
    for number in range(pieces):
        piece = "".join(chance.choice(atoms) for _ in range(chance.randint(1, 3)))
        yield PIECES[number] * PART if number < len(PIECES) else piece * PART


def test_each_pattern_is_well_formed() -> None:
    assert len(patterns()) > 400


@pytest.mark.heavy
@pytest.mark.timeout(900)  # four minutes on a busy machine
def test_each_pattern_reads_any_text_in_time() -> None:
    slow = {
        f"{source[:60]} on {text[:12]!r}"
        for source, pattern in patterns().items()
        for text in texts_for(pattern, len(PIECES) + 15)
        if is_slow(pattern, text[:START]) or is_slow(pattern, text[:PART])
    }
    assert slow == set()


@pytest.mark.parametrize("piece", ["1,", "5 922 kg ", "I've sent 1 mail. "])
def test_a_hostile_request_and_prompt_are_judged_in_time(piece: str) -> None:
    text = (piece * LONG)[:LONG]
    worker = run("worker", call("look_up", {"q": text}, text), input=text, output=text)
    made = trace(run("main", delegate("worker", text, result=text), text), worker, text)
    with cpu_limit(3):
        evaluator_entry("context_carried").target().evaluate(made, None, EvalContext())

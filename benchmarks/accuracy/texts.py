"""Texts of the two lists, put into recorded runs in the place of what was said there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from random import Random
from typing import NamedTuple

from baton.model import Content, GotBack, Said, Step, ToolCall, Trace
from baton.testing.faults import copied

from .recordings import HALVES, HERE, Good, entries, recordings

_CALL = re.compile(r"([a-z_]+)\((.*)\)")


class Pair(NamedTuple):
    """A question, its answer, what a caller says that used it, and what one that did not."""

    asked: str
    result: str
    uses: list[str]
    ignores: list[str]
    half: str
    agent: str | None


class Request(NamedTuple):
    """What a user asks, prompts that carry it, and prompts that drop some of it."""

    request: str
    carries: list[str]
    drops: list[str]
    half: str


@cache
def pairs() -> tuple[Pair, ...]:
    """Read the list of results and of what callers make of them."""
    listed = entries(HERE / "paraphrases.yaml")
    return tuple(
        Pair(
            one["asked"],
            one["result"],
            one["uses"],
            one["ignores"],
            HALVES[i % 2],
            one.get("agent"),
        )
        for i, one in enumerate(listed)
    )


@cache
def requests() -> tuple[Request, ...]:
    """Read the list of requests and prompts."""
    listed = entries(HERE / "requests.yaml")
    return tuple(
        Request(one["request"], one["carries"], one["drops"], HALVES[i % 2])
        for i, one in enumerate(listed)
    )


@cache
def stages() -> tuple[Good, ...]:
    """Return recorded runs with one delegate, its answer, and a caller that answers then."""
    return tuple(good for good in recordings() if _is_stage(good.trace))


def _is_stage(trace: Trace) -> bool:
    if len(trace.turns) != 1 or len(trace.turns[0].runs) != 2:
        return False
    (turn,) = trace.turns
    if len(turn.dispatches) != 1 or turn.output is None or turn.input is None:
        return False
    (dispatch,) = turn.dispatches
    caller = turn.runs[0]
    back = [i for i, step in enumerate(caller.steps) if isinstance(step, GotBack)]
    told = all(name not in run.unknown for run in turn.runs for name in ("input", "output"))
    return (
        told
        and dispatch.kind == "delegate"
        and bool(dispatch.prompt and dispatch.result)
        and len(back) == 1
        and bool(caller.steps[back[0] + 1 :])
    )


def played(random: Random, pair: Pair, answer: str) -> Good:
    """Play a pair with one of its answers."""
    good = staged(random, pair.asked, pair.asked, pair.result, answer)
    if pair.agent is not None:
        (turn,) = good.trace.turns
        turn.dispatches[0].to_agent = turn.runs[1].agent = pair.agent
    return good


def staged(
    random: Random,
    asked: str,
    prompt: str,
    result: str,
    answer: str,
    among: Sequence[Good] | None = None,
) -> Good:
    """Play texts on a stage: a user asks, a prompt goes out, a result comes back, an answer.

    ``among`` are the stages to choose from; all there are when left out.
    """
    good = random.choice(among or stages())
    trace = copied(good.trace)
    (turn,) = trace.turns
    (dispatch,) = turn.dispatches
    caller, child = turn.runs
    turn.input = caller.input = Content(text=asked)
    dispatch.prompt, dispatch.description, dispatch.context = Content(text=prompt), None, {}
    dispatch.result = Content(text=result)
    back = next(i for i, step in enumerate(caller.steps) if isinstance(step, GotBack))
    caller.steps = [
        step for step in caller.steps[: back + 1] if getattr(step, "dispatch", None) == dispatch.id
    ]
    for step in caller.steps:
        if isinstance(step, ToolCall):
            step.arguments = {"prompt": prompt}
    caller.steps += _answer(answer)
    turn.output = caller.output = Content(text="Done." if _CALL.fullmatch(answer) else answer)
    child.input, child.output = Content(text=prompt), Content(text=result)
    child.steps = [_blank(s) for s in child.steps if isinstance(s, ToolCall)]
    child.steps.append(Said(id=f"{child.id}-said", content=Content(text=result)))
    return Good(good.source, good.name, good.half, trace)


def _blank(call: ToolCall) -> Step:
    call.arguments, call.result = {}, Content(text="done")
    return call


def _answer(answer: str) -> Sequence[Step]:
    call = _CALL.fullmatch(answer)
    if call is None:
        return [Said(id="answer", content=Content(text=answer))]
    made = ToolCall(id="answer-call", name=call[1], arguments={"input": call[2]})
    return [made, Said(id="answer", content=Content(text="Done."))]

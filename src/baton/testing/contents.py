"""Prompts that leave something out, and results that nobody reads."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from random import Random

from baton.model import AgentRun, Content, Said, Step, ToolCall, Trace, known

from .seeded import Place, Seeded, call_of, first_level, pick, said

ELSEWHERE = (
    "Thank you for your patience, our opening hours are printed on the back of every receipt.",
    "The museum shop sells postcards, and the tram stops right in front of its main entrance.",
    "Every colleague here speaks several languages, and lunch is served in the garden at noon.",
)
"""Answers to other questions than were asked."""

_HELD = re.compile(r"[\w./:@-]*\d[\w./:@%-]*\w|\d|\w+_\w+|\w+\(\)|(?:[\w.-]*/)+[\w.-]+\w")


def dropped_constraint(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Leave a number or name of the request out of a prompt; its receiver never hears of it."""
    place = pick(trace, random, lambda p: bool(_kept(p)))
    if place is None:
        return None
    dispatch = place.dispatch
    token = random.choice(_kept(place))
    gap = re.compile(rf"\s*(?<![\w/-]){re.escape(token)}(?![\w/-]*\w)")
    for content in (dispatch.prompt, dispatch.result):
        _forget(content, gap)
    dispatch.description = None
    dispatch.context = {}
    call = call_of(place)
    if call is not None:
        call.arguments = _forgotten(call.arguments, gap)
    for run in place.children:
        _forget_all(run, gap)
    says = f"`{token}` of the request was not passed on"
    return place.trace, Seeded(kind="dropped_constraint", subject=[dispatch.id], says=says)


def _kept(place: Place) -> list[str]:
    """Return what request and prompt have in common that a receiver can't guess."""
    dispatch, asked = place.dispatch, place.turn.input
    if dispatch.kind != "delegate" or not first_level(place):
        return []
    if asked is None or not asked.text or dispatch.prompt is None or not dispatch.prompt.text:
        return []
    if len(asked.text) > 1000:
        return []
    prompt = dispatch.prompt.text
    bare = re.sub(r"^\s*\[[^\]]*\]", "", asked.text)
    tokens = [token.rstrip(".:") for token in _HELD.findall(bare)]
    return [
        t
        for t in dict.fromkeys(tokens)
        if re.search(rf"(?<![\w/-]){re.escape(t)}(?![\w/-]*\w)", prompt)
    ]


def _forget(content: Content | None, gap: re.Pattern[str]) -> None:
    if content is not None:
        content.text = None if content.text is None else gap.sub("", content.text)
        content.data = _forgotten(content.data, gap)


def _forgotten(value: object, gap: re.Pattern[str]) -> object:
    if isinstance(value, str):
        return gap.sub("", value)
    if isinstance(value, dict):
        return {name: _forgotten(each, gap) for name, each in value.items()}
    if isinstance(value, list):
        return [_forgotten(each, gap) for each in value]
    return value


def _forget_all(run: AgentRun, gap: re.Pattern[str]) -> None:
    for content in (run.input, run.output):
        _forget(content, gap)
    for step in run.steps:
        if isinstance(step, Said):
            _forget(step.content, gap)
        elif isinstance(step, ToolCall):
            step.arguments = _forgotten(step.arguments, gap)
            _forget(step.result, gap)


def ignored_result(
    trace: Trace, random: Random, instead: Sequence[str] = ELSEWHERE
) -> tuple[Trace, Seeded] | None:
    """Let the caller go on as if nothing had come back, with one of the texts ``instead``."""
    place = pick(trace, random, _answered)
    if place is None:
        return None
    _go_on(place, [], random.choice(instead))
    says = f"what `{place.dispatch.to_agent}` answered was not used"
    return place.trace, Seeded(kind="ignored_result", subject=[place.dispatch.id], says=says)


def repeated_work(
    trace: Trace, random: Random, instead: Sequence[str] = ELSEWHERE
) -> tuple[Trace, Seeded] | None:
    """Let the caller make the child's calls again, and answer with one of the texts ``instead``."""
    place = pick(trace, random, lambda p: _answered(p) and bool(_own_calls(p)))
    if place is None:
        return None
    again: list[Step] = []
    for number, call in enumerate(_own_calls(place), 1):
        repeated = copy.deepcopy(call)
        repeated.id = f"{call.id}-again-{number}"
        repeated.at = repeated.ended = None
        again.append(repeated)
    _go_on(place, again, random.choice(instead))
    says = f"the {len(again)} calls of `{place.dispatch.to_agent}` were made again"
    return place.trace, Seeded(kind="repeated_work", subject=[place.dispatch.id], says=says)


def _answered(place: Place) -> bool:
    """Tell whether the caller got an answer, and made its own of nothing else afterwards."""
    dispatch = place.dispatch
    if dispatch.kind != "delegate" or not first_level(place) or place.came_back < 0:
        return False
    if dispatch.status != "completed" or not dispatch.result or place.turn.output is None:
        return False
    alone = not any(getattr(step, "dispatch", None) for step in place.after)
    return (
        alone and known(place.trace, place.turn, "output") and place.turn is place.trace.turns[-1]
    )


def _own_calls(place: Place) -> list[ToolCall]:
    steps = (step for run in place.children for step in run.steps)
    return [step for step in steps if isinstance(step, ToolCall) and step.dispatch is None]


def _go_on(place: Place, steps: list[Step], text: str) -> None:
    sender = place.sender
    if sender is None:
        return
    last = said(f"{place.dispatch.id}-instead", text)
    sender.steps = [*sender.steps[: place.came_back + 1], *steps, last]
    sender.output = place.turn.output = Content(text=text)

"""Seed faults into good traces: wrong receivers, lost content, work that goes wrong."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import msgspec

from baton.model import (
    AgentCard,
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Said,
    Step,
    ToolCall,
    Trace,
    Turn,
    known,
)
from baton.model.views import comes_back


class Seeded(msgspec.Struct, frozen=True, kw_only=True):
    """A fault that was put into a trace: its ``kind``, the ids it concerns, and a description."""

    kind: str
    subject: list[str]
    says: str


class Place(NamedTuple):
    """A dispatch in a trace that can be changed, with its turn and the run that made it."""

    trace: Trace
    turn: Turn
    dispatch: Dispatch
    sender: AgentRun | None

    @property
    def children(self) -> list[AgentRun]:
        """The runs that the dispatch started."""
        return [run for run in self.turn.runs if run.id in self.dispatch.runs]

    @property
    def after(self) -> list[Step]:
        """The sender's steps after the answer arrived."""
        return [] if self.sender is None else self.sender.steps[self.came_back + 1 :]

    @property
    def came_back(self) -> int:
        """The index of the group's last answer in the sender's steps; -1 if none came."""
        if self.sender is None:
            return -1
        group = {
            d.id
            for d in self.turn.dispatches
            if d.from_run == self.sender.id and d.group is not None
            if d.group == self.dispatch.group
        } | {self.dispatch.id}
        if not any(comes_back(step, {self.dispatch.id}) for step in self.sender.steps):
            return -1
        return max(i for i, step in enumerate(self.sender.steps) if comes_back(step, group))


def copied(trace: Trace) -> Trace:
    """Copy a trace by writing and reading it, which is faster than ``copy.deepcopy``."""
    return msgspec.json.decode(msgspec.json.encode(trace), type=Trace)


def pick(trace: Trace, random: Random, fits: Callable[[Place], bool]) -> Place | None:
    """Copy a trace and choose one of the dispatches that fit, which are never returns."""
    made = copied(trace)
    runs = {run.id: run for turn in made.turns for run in turn.runs}
    places = [
        Place(made, turn, dispatch, runs.get(dispatch.from_run or ""))
        for turn in made.turns
        for dispatch in turn.dispatches
        if dispatch.kind != "return" and dispatch.basis != "order"
    ]
    fitting = [place for place in places if fits(place)]
    return random.choice(fitting) if fitting else None


def first_level(place: Place) -> bool:
    """Return whether no other agent waits for the sender's answer."""
    if place.sender is None or not known(place.trace, place.sender, "steps"):
        return False
    by = [d for turn in place.trace.turns for d in turn.dispatches]
    started = set(place.sender.started_by)
    return not any(d.id in started and d.kind == "delegate" for d in by)


def replace_text(value: Any, old: str, new: str) -> Any:
    """Replace a string wherever it occurs in JSON data."""
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, dict):
        return {name: replace_text(each, old, new) for name, each in value.items()}
    if isinstance(value, list):
        return [replace_text(each, old, new) for each in value]
    return value


def without_below(turn: Turn, dispatch: Dispatch) -> None:
    """Remove the runs that a dispatch started, and everything that followed from them."""
    gone_runs = set(dispatch.runs)
    gone: set[str] = set()
    while True:
        more = {d.id for d in turn.dispatches if d.from_run in gone_runs} - gone
        runs = {
            run.id
            for run in turn.runs
            if run.started_by and set(run.started_by) <= gone | more | {dispatch.id}
        }
        if not more and runs <= gone_runs:
            break
        gone |= more
        gone_runs |= runs
    turn.runs = [run for run in turn.runs if run.id not in gone_runs]
    turn.dispatches = [d for d in turn.dispatches if d.id not in gone]
    for run in turn.runs:
        run.started_by = [id_ for id_ in run.started_by if id_ not in gone]
        run.steps = [
            step
            for step in run.steps
            if not (isinstance(step, HandedOff | GotBack) and step.dispatch in gone)
        ]
    dispatch.runs = []


def call_of(place: Place) -> ToolCall | None:
    """Return the call that made the dispatch."""
    steps: Sequence[Step] = [] if place.sender is None else place.sender.steps
    calls = (s for s in steps if isinstance(s, ToolCall) and s.dispatch == place.dispatch.id)
    return next(calls, None)


def said(id_: str, text: str) -> Said:
    """Make a step with a text that an agent said."""
    return Said(id=id_, content=Content(text=text))


ELSEWHERE = (
    "Thank you for your patience, our opening hours are printed on the back of every receipt.",
    "The museum shop sells postcards, and the tram stops right in front of its main entrance.",
    "Every colleague here speaks several languages, and lunch is served in the garden at noon.",
)
"""Answers to questions that were not asked."""

_HELD = re.compile(r"[\w./:@-]*\d[\w./:@%-]*\w|\d|\w+_\w+|\w+\(\)|(?:[\w.-]*/)+[\w.-]+\w")


def dropped_constraint(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Remove a number or name of the request from a prompt, so that the receiver never sees it."""
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
        for words in (run.input, run.output):
            _forget(words, gap)
        for step in run.steps:
            if isinstance(step, Said):
                _forget(step.content, gap)
            elif isinstance(step, ToolCall):
                step.arguments = _forgotten(step.arguments, gap)
                _forget(step.result, gap)
    says = f"`{token}` of the request was not passed on"
    return place.trace, Seeded(kind="dropped_constraint", subject=[dispatch.id], says=says)


def _kept(place: Place) -> list[str]:
    """Return values in both request and prompt that a receiver cannot guess."""
    dispatch, request = place.dispatch, place.turn.input
    if dispatch.kind != "delegate" or not first_level(place):
        return []
    if request is None or not request.text or dispatch.prompt is None or not dispatch.prompt.text:
        return []
    if len(request.text) > 1000:
        return []
    prompt = dispatch.prompt.text
    bare = re.sub(r"^\s*\[[^\]]*\]", "", request.text)
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


def ignored_result(
    trace: Trace, random: Random, instead: Sequence[str] = ELSEWHERE
) -> tuple[Trace, Seeded] | None:
    """Make the caller continue as if it had no result, with one of the texts ``instead``."""
    place = pick(trace, random, _answered)
    if place is None:
        return None
    _go_on(place, [], random.choice(instead))
    says = f"what `{place.dispatch.to_agent}` answered was not used"
    return place.trace, Seeded(kind="ignored_result", subject=[place.dispatch.id], says=says)


def repeated_work(
    trace: Trace, random: Random, instead: Sequence[str] = ELSEWHERE
) -> tuple[Trace, Seeded] | None:
    """Make the caller repeat the child's calls, and answer with one of the texts ``instead``."""
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
    """Return whether the caller got an answer and received nothing else afterwards."""
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


STRANGERS = ("archive_clerk", "billing_agent", "night_porter", "stock_keeper", "weather_agent")


def wrong_target(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Send a dispatch to another agent of the system, which does the work under its own name."""
    place = pick(trace, random, lambda p: "to_agent" not in p.dispatch.unknown)
    if place is None:
        return None
    dispatch, old = place.dispatch, place.dispatch.to_agent
    agents = {run.agent for turn in trace.turns for run in turn.runs} | set(trace.agents)
    others = sorted(agents - {old, dispatch.from_agent or ""}) or sorted({*STRANGERS} - {old})
    new = random.choice(others)
    place.trace.agents.setdefault(new, AgentCard())
    _rename(place, new)
    for run in place.children:
        run.agent = new
        run.node = None if run.node in (None, old) else new
    for below in (d for turn in place.trace.turns for d in turn.dispatches):
        if below.from_run in dispatch.runs:
            below.from_agent = new
    says = f"`{old}` should have had the work, `{new}` got it"
    return place.trace, Seeded(kind="wrong_target", subject=[dispatch.id], says=says)


def unknown_target(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Misspell the receiver of a dispatch, so that no agent was started."""
    place = pick(
        trace,
        random,
        lambda p: (
            p.sender is not None
            and p.dispatch.kind in ("transfer", "delegate")
            and "to_agent" not in p.dispatch.unknown
            and len(p.dispatch.to_agent) > 3
            and bool(p.dispatch.runs)
        ),
    )
    if place is None or place.sender is None:
        return None
    dispatch, old = place.dispatch, place.dispatch.to_agent
    # Swap two letters, leave one out, or double one.
    at = random.randrange(1, len(old) - 1)
    ways = [
        old[:at] + old[at + 1] + old[at] + old[at + 2 :],
        old[:at] + old[at + 1 :],
        old[:at] + old[at] + old[at:],
    ]
    changed = [way for way in ways if way != old]
    new = random.choice(changed)
    _rename(place, new)
    without_below(place.turn, dispatch)
    dispatch.result, dispatch.status = None, "refused"
    dispatch.error = f"there is no agent `{new}`"
    call = call_of(place)
    if call is not None:
        call.status, call.refused_by, call.result = "refused", "runtime", None
    if dispatch.kind == "transfer":
        last = [step for step in place.sender.steps if isinstance(step, Said)]
        place.turn.output = last[-1].content if last else None
    says = f"`{old}` is misspelt as `{new}`"
    return place.trace, Seeded(kind="unknown_target", subject=[dispatch.id], says=says)


def _rename(place: Place, new: str) -> None:
    old = place.dispatch.to_agent
    place.dispatch.to_agent = new
    call = call_of(place)
    if call is not None:
        call.arguments = replace_text(call.arguments, old, new)
        call.name = call.name.replace(old, new)


FOREIGN = ("Bash", "delete_record", "drop_table", "send_email", "transfer_funds", "WebFetch")
ERRORS = (
    "Error: 503 Service Unavailable",
    "Traceback (most recent call last): TimeoutError: the model did not answer",
    "API Error: 529 overloaded_error",
    "Error: tool execution failed: connection refused",
)
AGAIN = ("", " Please.", " Try again.", "!")


def tool_outside_subset(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Make a receiver call a tool that it was not given: one seen elsewhere, or an unknown one."""
    place = pick(trace, random, _limited)
    if place is None:
        return None
    allowed = place.dispatch.tools_allowed
    names = {name.split("(")[0] for name in allowed} if isinstance(allowed, list) else set()
    calls = (s for t in trace.turns for r in t.runs for s in r.steps if isinstance(s, ToolCall))
    seen = {call.name for call in calls if call.dispatch is None}
    open_ended = tuple(name.rstrip("*") for name in names if name.endswith("*"))
    foreign = [
        n for n in sorted(seen | {*FOREIGN}) if n not in names and not n.startswith(open_ended)
    ]
    if not foreign:
        return None
    run = place.children[0]
    name = random.choice(foreign)
    call = ToolCall(
        id=f"{place.dispatch.id}-outside", name=name, arguments={}, result=Content(text="done")
    )
    run.steps.insert(random.randrange(len(run.steps) + 1), call)
    says = f"`{run.agent}` called `{name}`, which it was not given"
    subject = [place.dispatch.id, run.id, call.id]
    return place.trace, Seeded(kind="tool_outside_subset", subject=subject, says=says)


def _limited(place: Place) -> bool:
    dispatch = place.dispatch
    stated = isinstance(dispatch.tools_allowed, list) and dispatch.tools_source != "offered"
    children = place.children
    return (
        stated
        and bool(children)
        and children[0].agent == dispatch.to_agent
        and known(place.trace, children[0], "steps.tool_call")
    )


# A number of two digits or more, which is not part of a name, path or longer number.
_VALUE = re.compile(r"(?<![\w.,:/#-])\d[\d.,:]*\d(?![\w/:-]|[.,]\d)")


def changed_value(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Change a number from the result in an answer: two digits are swapped, or one is changed.

    A time stays a time: of 09:12 only the minutes can be swapped.
    """
    place = pick(trace, random, lambda p: _answered(p) and bool(_values_of(p)))
    if place is None or place.sender is None:
        return None
    old = random.choice(_values_of(place))
    swapped = [each for each in _with_swapped_digits(old) if _is_time(each) or not _is_time(old)]
    if swapped:
        new = random.choice(swapped)
    else:
        # The last digit of a time can have any value.
        at = len(old) - 1 if _is_time(old) else random.choice(_digits_of(old))
        digit = str((int(old[at]) + random.randint(1, 8)) % 10)
        new = old[:at] + digit + old[at + 1 :]
    pattern = re.compile(rf"(?<![\w.,:/#-]){re.escape(old)}(?![\w/:-]|[.,]\d)")
    # A list, because a turn and its run can share one content object.
    contents = [place.turn.output, place.sender.output]
    contents += [step.content for step in place.after if isinstance(step, Said)]
    for content in contents:
        if content is not None and content.text is not None:
            content.text = pattern.sub(new, content.text)
    says = f"the result says `{old}`, the answer `{new}`"
    return place.trace, Seeded(kind="changed_value", subject=[place.dispatch.id], says=says)


def _digits_of(value: str) -> list[int]:
    return [place for place, letter in enumerate(value) if letter.isdigit()]


def _with_swapped_digits(value: str) -> list[str]:
    """Return a value with each two neighbouring digits swapped that differ."""
    return [
        value[:i] + value[j] + value[i + 1 : j] + value[i] + value[j + 1 :]
        for i, j in pairwise(_digits_of(value))
        if value[i] != value[j]
    ]


def _is_time(value: str) -> bool:
    return re.fullmatch(r"(?:[01]?\d|2[0-3])(?::[0-5]\d){1,2}", value) is not None


def _values_of(place: Place) -> list[str]:
    """Return numbers in the answer that come only from the result."""
    result, output = place.dispatch.result, place.turn.output
    if result is None or not result.text or output is None or not output.text:
        return []
    request = place.turn.input.plain() if place.turn.input is not None else ""
    prompt = place.dispatch.prompt.plain() if place.dispatch.prompt is not None else ""
    answered = _VALUE.findall(output.text)
    return [
        value
        for value in dict.fromkeys(_VALUE.findall(result.text))
        if answered.count(value) == 1 and value not in request + prompt
    ]


def duplicate_work(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Make another agent do the same work again, with the same calls and the same answer."""
    place = pick(trace, random, _repeatable)
    if place is None or place.sender is None:
        return None
    first = place.dispatch
    steps = _once_more(place, 1, "")
    made = next(d for d in place.turn.dispatches if d.id == f"{first.id}-loop-1")
    made.to_agent = random.choice(sorted({*STRANGERS} - {first.to_agent}))
    for run in place.turn.runs:
        if run.id in made.runs and run.agent == first.to_agent:
            run.agent = made.to_agent
            run.node = None
    at = place.came_back + 1
    place.sender.steps[at:at] = steps
    says = f"`{made.to_agent}` did what `{first.to_agent}` had already done"
    return place.trace, Seeded(kind="duplicate_work", subject=[made.id, *made.runs], says=says)


def loop(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Repeat a dispatch three to five times, in nearly the same words."""
    place = pick(trace, random, _repeatable)
    if place is None or place.sender is None:
        return None
    first, times = place.dispatch, random.randint(3, 5)
    at, steps = place.came_back + 1, []
    for number in range(1, times + 1):
        steps += _once_more(place, number, random.choice(AGAIN))
    place.sender.steps[at:at] = steps
    says = f"`{first.to_agent}` was asked the same {times + 1} times"
    made = [d.id for d in place.turn.dispatches if d.id.startswith(f"{first.id}-loop-")]
    return place.trace, Seeded(kind="loop", subject=[first.id, *made], says=says)


def _repeatable(place: Place) -> bool:
    dispatch = place.dispatch
    if dispatch.kind != "delegate" or dispatch.status != "completed" or place.came_back < 0:
        return False
    return (
        dispatch.prompt is not None
        and bool(dispatch.prompt.text)
        and call_of(place) is not None
        and _alone(place)
    )


def _alone(place: Place) -> bool:
    """Return whether the receiver passed no work on."""
    return not {d.from_run for d in place.turn.dispatches} & set(place.dispatch.runs)


def _once_more(place: Place, number: int, suffix: str) -> list[Step]:
    """Copy a dispatch with its call and runs; return the sender's new steps."""
    first, call = place.dispatch, call_of(place)
    if call is None:
        return []
    end = f"-loop-{number}"
    made: Dispatch = copy.deepcopy(first)
    made.id, made.call, made.group = f"{first.id}{end}", f"{call.id}{end}", None
    made.started = made.ended = None
    if made.prompt is not None and made.prompt.text is not None:
        made.prompt.text += suffix
    made.runs = [f"{id_}{end}" for id_ in first.runs]
    for run in place.children:
        copied: AgentRun = copy.deepcopy(run)
        copied.id, copied.started_by = f"{run.id}{end}", [made.id]
        copied.started = copied.ended = None
        for step in copied.steps:
            step.id, step.at = f"{step.id}{end}", None
        place.turn.runs.append(copied)
    place.turn.dispatches.append(made)
    again: ToolCall = copy.deepcopy(call)
    again.id, again.dispatch, again.at, again.ended = made.call, made.id, None, None
    return [
        again,
        HandedOff(id=f"{made.id}-handed", dispatch=made.id),
        GotBack(id=f"{made.id}-back", dispatch=made.id),
    ]


def dead_child(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Make a receiver fail: it raised, never answered, answered nothing or with an error."""
    place = pick(
        trace,
        random,
        lambda p: (
            p.dispatch.kind == "delegate"
            and p.dispatch.status == "completed"
            and bool(p.dispatch.result)
            and bool(p.children)
            and _alone(p)
        ),
    )
    if place is None:
        return None
    dispatch, run = place.dispatch, place.children[0]
    way = random.choice(("failed", "unanswered", "empty", "error_text"))
    run.output, run.steps = None, run.steps[: len(run.steps) // 2]
    dispatch.result, dispatch.error = None, None
    if way == "failed":
        run.status, dispatch.status = "failed", "failed"
        run.error = dispatch.error = random.choice(ERRORS)
    elif way == "unanswered":
        run.status, dispatch.status = "unknown", "unanswered"
        if place.sender is not None:
            place.sender.steps = [
                step
                for step in place.sender.steps
                if not (isinstance(step, GotBack) and step.dispatch == dispatch.id)
            ]
    elif way == "empty":
        dispatch.result = Content(text="")
    else:
        dispatch.result = run.output = Content(text=random.choice(ERRORS))
        run.unknown = [name for name in run.unknown if name != "output"]
    says = f"`{dispatch.to_agent}` did not end: {way}"
    return place.trace, Seeded(kind="dead_child", subject=[dispatch.id, run.id], says=says)


# Claimed actions, each with words in the name of a tool for it. No recorded call may match these.
_DEEDS = (
    ("I've also emailed the result to the customer.", "mail|send|message|notif"),
    ("I have booked a table for two as well.", "book|reserv"),
    ("I've refunded the order.", "refund|pay|order"),
    ("I also opened a ticket for it; the ticket number is HELP-48213.", "ticket|issue|creat|open"),
    ("I updated the file notes/summary.md as well.", "writ|edit|file|sav|updat"),
    ("I ran the unit tests, and all tests pass.", "test|run|bash|exec"),
)


def unsupported_claim(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Make an agent end by claiming an action, if no tool was called that could perform it."""
    made = copied(trace)
    names = {
        step.name.casefold()
        for turn in made.turns
        for run in turn.runs
        for step in run.steps
        if isinstance(step, ToolCall)
    }
    deeds = [claim for claim, by in _DEEDS if not any(re.search(by, name) for name in names)]
    ends = list(_ends(made))
    if not deeds or not ends:
        return None
    turn, run = random.choice(ends)
    claim = random.choice(deeds)
    _say_more(turn, run, claim)
    says = f"`{run.agent}` says {claim!r}, and made no call for it"
    return made, Seeded(kind="unsupported_claim", subject=[run.id], says=says)


def announced_not_made(trace: Trace, random: Random) -> tuple[Trace, Seeded] | None:
    """Make an agent end by announcing a dispatch to another agent, which receives nothing."""
    made = copied(trace)
    ends = [(turn, run) for turn, run in _ends(made) if run is turn.runs[-1]]
    if not ends:
        return None
    turn, run = random.choice(ends)
    busy = {each.agent for each in turn.runs} | {d.to_agent for d in turn.dispatches}
    idle = sorted((set(made.agents) | {*STRANGERS}) - busy)
    agent = random.choice(idle)
    made.agents.setdefault(agent, AgentCard(description="An agent of this system."))
    words = random.choice(
        ("I'll hand this over to `{}` now.", "I'm transferring you to the {} agent.")
    )
    _say_more(turn, run, words.format(agent))
    says = f"`{run.agent}` announces `{agent}`, who gets nothing"
    return made, Seeded(kind="announced_not_made", subject=[run.id], says=says)


def _ends(trace: Trace) -> Iterator[tuple[Turn, AgentRun]]:
    """Yield the runs that ended with a text and whose calls are recorded."""
    for turn in trace.turns:
        for run in turn.runs:
            is_text = run.output is not None and (run.output.text or "").strip()[:1] not in (
                "",
                "{",
                "[",
            )
            if is_text and run.status == "completed" and known(trace, run, "steps"):
                yield turn, run


def _say_more(turn: Turn, run: AgentRun, words: str) -> None:
    """Add words to the last text of a run, and to all copies of that text."""
    if run.output is None or run.output.text is None:
        return
    old = run.output.text
    new = f"{old.rstrip()} {words}"
    contents = [run.output, turn.output]
    contents += [step.content for step in run.steps if isinstance(step, Said)]
    contents += [each.result for each in turn.dispatches if run.id in each.runs]
    for content in contents:
        if content is not None and content.text == old:
            content.text = new

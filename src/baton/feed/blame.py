"""Blame: the agent, the step and the fault that made a run fail.

First comes what the record proves: the earliest fault whose effect reaches the end of the run along
its dispatches. If nothing is proven, a judge is asked in the form of abduction, action and
prediction (after A2P, arXiv 2509.10401): what could explain the failure, what should have been done
instead, and would the run have succeeded then. It reads every step in short form, with proven
faults marked, and answers with ids of steps, so it cannot name a step that does not exist. Three
answers make a ranked list with votes. Otherwise the answer is "can't tell".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Literal, NamedTuple

import msgspec

from baton.judges.fenced_prompts import RULE, fenced
from baton.model import (
    AgentRun,
    Dispatch,
    Form,
    GotBack,
    HandedOff,
    Judge,
    JudgeError,
    JudgeRequest,
    Said,
    Trace,
)
from baton.model.step_lines import Place, Shown, places_of, shown_steps

from .failures import Failure, causes
from .fixes import FORMS
from .taxonomy import OTHER, SUBTYPES, Category, subtype_named, subtype_of

How = Literal["proven", "judged", "can't tell"]
RANKED = 3
"""The most suspects of an answer: several changes may repair a run, so a single name would claim
too much.
"""
VOTES = 3
"""Questions to the judge, unless others are asked for: with three, two answers can agree against
one, and each further one costs as much again."""
_MOST = 60_000
"""The most characters of a run that a judge reads; each step gets an equal share of what is
left.
"""
_LEAST_STEP, _LONGEST_STEP = 80, 1_500


class Again(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The result of playing the moment of a suspect again.

    Attributes:
        form: what was played: the sender's decision, the receiver, or the sender with the result.
        plays: how often, on either side.
        failed: how many plays failed in the same way; ``None`` if no evaluator found the fault.
        same: how many did what was recorded; ``None`` if the recording does not show it.
        changed_failed: how many failed with a text changed; ``None`` without a change.
    """

    form: Form
    plays: int
    failed: int | None = None
    same: int | None = None
    changed_failed: int | None = None


class Suspect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent that may have caused a failure.

    Attributes:
        agent: the agent.
        step: the id of the step, or of the run if no step is known.
        fault: the kind of finding, or a subtype of :mod:`baton.feed.taxonomy`.
        says: why, in a sentence.
        dispatch: the dispatch that it is part of.
        evidence: ids that prove it.
        votes: how many answers of the judge named it; 0 if it is proven.
        again: the result of playing it again, if requested.
    """

    agent: str
    step: str
    fault: str
    says: str
    dispatch: str | None = None
    evidence: list[str] = []
    votes: int = 0
    again: Again | None = None


class Blame(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The cause of a failure: up to three suspects, the likeliest first.

    ``how`` says how it is known; ``why`` says why it is unknown, or what a judge could not answer.
    ``recovered`` are proven faults that did not reach the end of the run. ``asked`` are the judge's
    answers.
    """

    trace: str
    how: How
    suspects: list[Suspect] = []
    recovered: list[Suspect] = []
    why: str | None = None
    asked: int = 0
    cost_usd: float | None = None


def proven(trace: Trace, failures: Sequence[Failure]) -> tuple[list[Suspect], list[Suspect]]:
    """Return the proven causes of a failure, the earliest first, and the recovered faults.

    A fault of a dispatch does not reach the end if the same sender asked the same receiver again
    later without a fault.

    Args:
        trace: the record.
        failures: its failures, from :func:`baton.feed.failures.failures_of`; those that no finding
            proves are ignored.
    """
    places = places_of(trace)
    handed = _handed_over(trace, places)
    faults = [each for each in causes(failures) if each.fault is not None and not each.judged]
    faulty = {each.dispatch for each in faults if each.dispatch is not None}
    dispatches = {made.id: made for turn in trace.turns for made in turn.dispatches}

    def order_of(made: Dispatch) -> int:
        return places[handed[made.id]].order if made.id in handed else -1

    # for each edge, the place of its last dispatch
    last_good: dict[tuple[str | None, str], int] = {}
    for each in dispatches.values():
        if each.id not in faulty and each.status == "completed":
            edge = each.from_agent, each.to_agent
            last_good[edge] = max(order_of(each), last_good.get(edge, -1))
    suspects: dict[tuple[str, str], tuple[int, bool, Suspect]] = {}
    seen: set[tuple[str | None, str | None, str | None, int]] = set()
    for failure in faults:
        # Faults of one score share their evidence: the first of each kind is enough.
        of = failure.fault, failure.dispatch, failure.receiver, id(failure.evidence)
        if of in seen:
            continue
        seen.add(of)
        made = dispatches.get(failure.dispatch or "")
        suspect = _suspect(failure, made, places, handed)
        if suspect is None or (suspect.step, suspect.fault) in suspects:
            continue
        done_again = False
        # A loop, or an unused result, is not repaired by a repetition.
        if made is not None and subtype_of(suspect.fault).category in _REPAIRABLE:
            done_again = last_good.get((made.from_agent, made.to_agent), -1) > order_of(made)
        order = places[suspect.step].order
        if suspect.fault in _SAID:
            order = places[_last_of(places[suspect.step].run)].order
        suspects[suspect.step, suspect.fault] = order, done_again, suspect
    ordered = sorted(suspects.values(), key=itemgetter(0))
    return (
        [suspect for _, done_again, suspect in ordered if not done_again],
        [suspect for _, done_again, suspect in ordered if done_again],
    )


_REPAIRABLE = ("choosing", "asking", "working")
# What an agent says at the end comes after everything it did: claiming that the work is done,
# although the receiver never got it, is the later fault.
_SAID = frozenset({"unsupported_claim", "contradicted_claim", "announced_not_made"})


def _last_of(run: AgentRun) -> str:
    return run.steps[-1].id if run.steps else run.id


async def blame(
    trace: Trace,
    failures: Sequence[Failure],
    *,
    failed: str | None = None,
    judge: Judge | None = None,
    votes: int = VOTES,
) -> Blame:
    """Find the cause of a failure.

    Args:
        trace: the record of a run that failed.
        failures: its known failures.
        failed: in words, what is wrong with its end: an expected answer, a person's reason.
        judge: asked if nothing is proven.
        votes: the number of requested answers.
    """
    suspects, recovered = proven(trace, failures)
    answer = Blame(trace=trace.id, how="proven", suspects=suspects[:RANKED], recovered=recovered)
    if suspects:
        return answer
    answer.how, answer.why = "can't tell", "nothing is proven: ask a judge (`--judge`)"
    if judge is None:
        return answer
    steps = shown_steps(trace)
    if not steps:
        answer.why = "the record contains no step"
        return answer
    request = _question(trace, steps, recovered, failed)
    answers: list[list[Suspect]] = []
    problems: list[str] = []
    for sample in range(votes):
        try:
            response = await judge.ask(request, sample=sample)
        except JudgeError as error:
            problems.append(str(error))
            continue
        answer.asked += 1
        if response.cost_usd is not None:
            answer.cost_usd = (answer.cost_usd or 0.0) + response.cost_usd
        answers.append(_read(response.value, steps))
    answer.suspects = _ranked(answers)
    if answer.suspects:
        answer.how, answer.why = "judged", None
    elif problems:
        answer.why = f"the judge gave no answer: {problems[0]}"
    else:
        answer.why = "the judge cannot tell"
    return answer


def _suspect(
    failure: Failure,
    made: Dispatch | None,
    places: Mapping[str, Place],
    handed: Mapping[str, str],
) -> Suspect | None:
    """Return the agent and step to blame for a fault: whoever chose, asked, worked or used."""
    subtype = subtype_of(failure.fault or "")
    steps = [id_ for id_ in failure.evidence if id_ in places and places[id_].step is not None]
    runs = [id_ for id_ in failure.evidence if id_ in places and places[id_].step is None]
    agent = failure.receiver
    if made is not None:
        own = set(made.runs)
        of_receiver = [id_ for id_ in steps if places[id_].run.id in own]
        of_sender = [id_ for id_ in steps if places[id_].run.id == made.from_run]
        # The receiver works; choosing, asking and using are the sender's job.
        if subtype.category == "working":
            agent, steps = made.to_agent, of_receiver
            runs = [id_ for id_ in made.runs if id_ in places] or of_sender or runs
        else:
            agent = made.from_agent or failure.receiver
            made_at = [handed[made.id]] if made.id in handed else []
            # The use of a result shows in the sender's last step of the evidence.
            steps = of_sender[-1:] if subtype.category == "using" else made_at or of_sender
            steps = steps or made_at
            runs = [made.from_run] if made.from_run is not None else runs
    elif failure.fault in _SAID and runs:
        # Its evidence includes calls; not these are at fault, but what was said about them.
        run = places[runs[0]].run
        agent, said = run.agent, [step.id for step in run.steps if isinstance(step, Said)]
        steps = said[-1:]
    elif steps:
        agent = places[steps[0]].run.agent
    suspected = next(iter([*steps, *runs]), None)
    if suspected is None or agent is None:
        return None
    return Suspect(
        agent=agent,
        step=suspected,
        fault=failure.fault or subtype.name,
        says=failure.says,
        dispatch=failure.dispatch,
        evidence=failure.evidence,
    )


def _handed_over(trace: Trace, places: Mapping[str, Place]) -> dict[str, str]:
    """Return the step that made each dispatch, by dispatch id: the call, or else `HandedOff`."""
    handed: dict[str, str] = {}
    for id_, place in places.items():
        if isinstance(place.step, HandedOff):
            handed.setdefault(place.step.dispatch, id_)
    made = (each for turn in trace.turns for each in turn.dispatches)
    return handed | {d.id: d.call for d in made if d.call is not None and d.call in places}


_TASK = """\
A run of several agents failed. Find out which agent, at which step, made it fail.

1. Abduction: name up to three steps that could each explain the failure. The right step is the \
earliest one that, had it been right, would have let the run succeed: not where the fault shows, \
but where it was made.
2. Action: say for each what should have been done there instead.
3. Prediction: follow the run from there with that change. Would it have succeeded? Rank what you \
believe most first, and leave out what would not have helped.

Steps are given by their numbers. Faults that are marked as proven did happen, but the run went on \
after them. If the record does not let you tell, answer with no suspects."""


def _question(
    trace: Trace, steps: Mapping[str, Shown], recovered: Sequence[Suspect], failed: str | None
) -> JudgeRequest:
    marks = {each.step: f" [proven: {each.says}]" for each in recovered}
    share = min(_LONGEST_STEP, max(_LEAST_STEP, _MOST // max(len(steps), 1)))
    lines = [
        f"step {number}, {shown.agent}: {_short(shown.text, share)}{marks.get(id_, '')}"
        for number, (id_, shown) in enumerate(steps.items(), 1)
    ]
    lines = _ends(lines, _MOST)
    request = "\n\n".join(turn.input.plain() for turn in trace.turns if turn.input is not None)
    ended = next((turn.output for turn in reversed(trace.turns) if turn.output), None)
    blocks = [
        ("What was asked", _short(request, _MOST // 10)),
        ("What happened", "\n".join(lines)),
        ("The answer", _short(ended.plain() if ended is not None else "none", _MOST // 10)),
    ]
    if failed:
        blocks.append(("What is wrong", _short(failed, _MOST // 10)))
    faults = ", ".join(each.name for each in SUBTYPES if each.name != "infrastructure")
    suspect = {
        "type": "object",
        "properties": {
            "step": {"type": "integer", "minimum": 1, "maximum": len(steps)},
            "fault": {"type": "string", "description": f"One of: {faults}."},
            "why": {"type": "string"},
            "instead": {"type": "string"},
        },
        "required": ["step", "fault", "why", "instead"],
        "additionalProperties": False,
    }
    schema = {
        "type": "object",
        "properties": {
            "thinking": {"type": "string"},
            "suspects": {"type": "array", "items": suspect},
        },
        "required": ["thinking", "suspects"],
        "additionalProperties": False,
    }
    return JudgeRequest(
        rubric="blame",
        version="1",
        instructions=f"{_TASK}\n\n{RULE}",
        content=fenced(blocks),
        schema=schema,
    )


def _ends(lines: Sequence[str], most: int) -> list[str]:
    """Leave out the middle of lines that have more characters than ``most``.

    The first steps set the course, and the last show the failure.
    """
    if sum(map(len, lines)) <= most:
        return list(lines)
    half, first, last = most // 2, 0, len(lines)
    left = half
    while first < last and len(lines[first]) <= left:
        left -= len(lines[first])
        first += 1
    left = half
    while last > first and len(lines[last - 1]) <= left:
        last -= 1
        left -= len(lines[last])
    return [*lines[:first], *lines[last:]]


def _short(text: str, most: int) -> str:
    """Keep the start and the end of a long text: the request and the result."""
    if len(text) <= most:
        return text
    half = max((most - 5) // 2, 1)
    return f"{text[:half]} [...] {text[-half:]}"


def _read(value: Mapping[str, Any], steps: Mapping[str, Shown]) -> list[Suspect]:
    """Return the suspects of an answer, by step numbers; unknown numbers are left out."""
    ids = list(steps)
    suspects: list[Suspect] = []
    for each in value.get("suspects", ()):
        number = each.get("step")
        if not isinstance(number, int) or not 1 <= number <= len(ids):
            continue
        id_ = ids[number - 1]
        named = subtype_named(str(each.get("fault", "")).strip().casefold().replace(" ", "_"))
        fault = (named or OTHER).name
        says = f"{each.get('why', '')} Instead: {each.get('instead', '')}".strip()
        suspects.append(Suspect(agent=steps[id_].agent, step=id_, fault=fault, says=says, votes=1))
    return suspects[:RANKED]


def _ranked(answers: Sequence[Sequence[Suspect]]) -> list[Suspect]:
    """Merge answers: each gives its suspects 1, 1/2 and 1/3 of a point; ties by votes and order."""
    points: defaultdict[str, float] = defaultdict(float)
    votes: defaultdict[str, int] = defaultdict(int)
    first: dict[str, Suspect] = {}
    for answer in answers:
        for place, suspect in enumerate(_each_once(answer), 1):
            points[suspect.step] += 1 / place
            votes[suspect.step] += 1
            first.setdefault(suspect.step, suspect)
    order = list(first)
    ranked = sorted(order, key=lambda step: (-points[step], -votes[step], order.index(step)))
    return [msgspec.structs.replace(first[step], votes=votes[step]) for step in ranked[:RANKED]]


def _each_once(suspects: Sequence[Suspect]) -> Iterator[Suspect]:
    seen: set[str] = set()
    for suspect in suspects:
        if suspect.step not in seen:
            seen.add(suspect.step)
            yield suspect


class Moment(NamedTuple):
    """What to play again for a suspect: a dispatch in a form, and what decides.

    ``is_chosen_right``: whether the work went to the right agent.
    """

    dispatch: str
    form: Form
    evaluators: list[str]
    is_chosen_right: bool


def moment_of(trace: Trace, suspect: Suspect, failures: Sequence[Failure]) -> Moment | None:
    """Return what to play again for the step of a suspect; ``None`` if it belongs to no dispatch.

    A step of an agent that was started by a dispatch is played from there.
    """
    form = FORMS.get(_category_of(suspect.fault), "child")
    dispatch = suspect.dispatch
    place = places_of(trace).get(suspect.step)
    if dispatch is None and place is not None:
        if isinstance(place.step, HandedOff | GotBack):
            dispatch = place.step.dispatch
        elif place.run.started_by:
            dispatch, form = place.run.started_by[0], "child"
    if dispatch is None:
        return None
    matching = [
        each for each in failures if (each.dispatch, each.fault) == (dispatch, suspect.fault)
    ]
    names = list(dict.fromkeys(each.evaluator for each in matching))
    return Moment(dispatch, form, names, is_chosen_right=_category_of(suspect.fault) != "choosing")


def _category_of(fault: str) -> Category:
    """Return which step of a dispatch broke, for the kind of a finding or a subtype."""
    named = subtype_named(fault)
    return named.category if named is not None else subtype_of(fault).category

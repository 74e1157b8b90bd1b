"""Do agents go round in circles, with the same dispatches or the same calls over and over?"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec

from baton.model import AgentRun, Content, Dispatch, Evidence, Said, ToolCall, Trace, Turn, known

from .finding import NO_NAMES, Answer, Clear, Finding, NotRecorded, receivers_of
from .lazy_patterns import regex

# Keeps `src/retry.py`, `14:30` and `order-88` in one piece: "check a/b" and "check b/a" differ.
_WORD = regex(r"\w+(?:[.:/'-]\w+)*")
# Words that make a message longer or more polite without requesting anything else.
# Without these words, "Find maps of the harbour" and "Please find maps of the harbour again" are
# the same request. Prepositions like `to` and `from` stay: "Change EUR to USD" and "Change USD to
# EUR" differ by order, "flights to Rome" and "flights from Rome" by the word. Models that repeat
# themselves vary just these words. Without the list, 57 of 200 seeded loops are found in the half
# that was used for tuning. With it, 128 are found. In both cases no good trace fails.
_SMALL_WORDS = """
    a again an and are as be been can could do does have i is it its just kindly me more my now
    once please so some still that the then there this those us very was we were will with would
    you your
"""
_SMALL = frozenset(_SMALL_WORDS.split())


class Deeds(NamedTuple):
    """The actions and texts of runs. Repetitions are equal. ``complete`` if all are known."""

    pieces: frozenset[tuple[str, ...]]
    complete: bool


def telling_words(content: Content | None) -> tuple[str, ...]:
    """Return the words of a message that carry its request, in order and folded."""
    words = _WORD.findall(content.plain().casefold()) if content is not None else []
    return tuple(word for word in words if word not in _SMALL)


def share_words(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether two texts share at least 3 of 5 of their words."""
    # For two answers to the same request. Models reword an answer each time ("Maps 1 and 3 are
    # fine", "Maps 1 and 3 look fine"), so equality would miss most real loops. Three of five common
    # words is well below a reworded answer, and above answers that only share a form: "Storms at
    # sea, page 2" and "Bread in the morning, page 3". The seeded loops of benchmarks/accuracy do
    # not determine the threshold: from 0.3 to 1.0, the same loops are found.
    return first == second or len(first & second) >= 0.6 * len(first | second)


def deeds_of(trace: Trace, runs: Iterable[AgentRun]) -> Deeds:
    """Return the texts of runs, and their calls with outcomes, except dispatches."""
    pieces: set[tuple[str, ...]] = set()
    complete = True
    for run in runs:
        complete = complete and known(trace, run, "steps")
        for step in run.steps:
            if isinstance(step, Said) and not step.thought:
                # Include the agent's name: "Not mine." from `a` is new after "Not mine." from `b`.
                pieces.add((run.agent, *telling_words(step.content)))
            elif isinstance(step, ToolCall) and step.dispatch is None:
                complete = (
                    complete and known(trace, step, "arguments") and known(trace, step, "result")
                )
                pieces.add((run.agent, *outcome(step)))
    return Deeds(frozenset(pieces), complete)


def request(call: ToolCall) -> tuple[str, ...]:
    """Return a call's request as a key, so repetitions are equal."""
    return call.name, msgspec.json.encode(call.arguments, order="sorted").decode()


def outcome(call: ToolCall) -> tuple[str, ...]:
    """Return a call and its result as a key, so repetitions are equal."""
    result = call.result.plain() if call.result is not None else ""
    return (*request(call), call.status, result, call.error or "")


# The search costs hand-offs times periods. The usual loop is two or three agents that pass work to
# one another. Three rounds of 16 hand-offs would be a turn of 48.
_LONGEST = 16
"""The longest round that is searched for. The bound keeps long turns cheap."""


def cycles(turn: Turn, rounds: int) -> Iterator[list[Dispatch]]:
    """Yield the dispatches of a turn that go round the same agents at least ``rounds`` times.

    Each dispatch is made by a run that the previous one started, so calling a helper and getting
    its result back is not a round. The shortest round counts, and each dispatch counts only once.
    """
    # `sequence` is left out, because a program or graph makes it: a writer and a critic that a
    # `LoopAgent` starts in turn go round on purpose. Without runs, nothing was passed on at all.
    moves = [d for d in turn.dispatches if d.kind in ("transfer", "delegate") and d.runs]
    start = 0
    while start < len(moves):
        longest = 0
        # Most hand-offs are not part of a round: the next one has to start where this one led.
        if start + 1 < len(moves) and moves[start + 1].from_run not in moves[start].runs:
            start += 1
            continue
        # Try the shortest period first: `a b a b a b a b` is four rounds of 2 and also two rounds
        # of 4.
        for period in range(2, min((len(moves) - start) // rounds, _LONGEST) + 1):
            length = _length(moves, start, period)
            if length >= period * rounds:
                yield moves[start : start + length]
                longest = length
                break
        start += longest or 1


def period_of(cycle: Sequence[Dispatch]) -> int:
    """Return how many dispatches one round takes."""
    return len({_edge(d) for d in cycle})


def idle(trace: Trace, turn: Turn, cycle: Sequence[Dispatch]) -> bool | None:
    """Return whether nothing new happened after the first round, or ``None`` if unknown.

    Runs started by the last dispatch are left out, because they may end the cycle.
    """
    runs = {run.id: run for run in turn.runs}
    period = period_of(cycle)
    seen: set[tuple[str, ...]] = set()
    complete = True
    for place, dispatch in enumerate(cycle):
        news = {("asked", dispatch.to_agent, *telling_words(dispatch.prompt))}
        complete = complete and known(trace, dispatch, "prompt")
        # The last hand-off started the agent that may have ended the loop. Its texts are not part
        # of the round.
        if place < len(cycle) - 1:
            deeds = deeds_of(trace, [runs[id_] for id_ in dispatch.runs if id_ in runs])
            complete = complete and deeds.complete
            news |= deeds.pieces
        if place >= period and not news <= seen:
            return False
        seen |= news
    return True if complete else None


def _length(moves: Sequence[Dispatch], start: int, period: int) -> int:
    """Return how many dispatches from ``start`` on are consecutive and repeat with the period."""
    ways = [_edge(d) for d in moves[start : start + period]]
    if len(set(ways)) < period or ways[0][0] != ways[-1][1]:
        return 0
    end = start + 1
    while (
        end < len(moves)
        # Control has to pass from agent to agent. A supervisor that asks `a`, gets the answer, and
        # asks `a` again also has hand-offs in a row, but none of them starts in the run that the
        # previous one started.
        and moves[end].from_run in moves[end - 1].runs
        and _edge(moves[end]) == ways[(end - start) % period]
    ):
        end += 1
    return end - start


def _edge(dispatch: Dispatch) -> tuple[str | None, str]:
    return dispatch.from_agent, dispatch.to_agent


# Comparing all pairs of answers takes quadratic time: 1,000 equal requests would take 500,000
# comparisons of word sets.
_COMPARED = 50
"""The number of different earlier answers an answer is compared with: the latest, most similar."""
# Answers that mean "not now". Asking again is then right, so twice as many calls are allowed before
# they count as a loop: a job that is `pending` five times is normal, but a page that is `404` three
# times will not appear. `429` and `50[234]` are the HTTP codes for too many requests and for
# servers that are busy or down.
_PASSES = regex(
    r"""\b(?:429|50[234]|busy|pending|queued|starting|in.progress|unavailable|overloaded
        |too\ many\ requests|rate.?limit\w*|tim(?:e|ed).?out|temporar\w+|(?:try|retry)\ \w*\ ?later
        |try\ again)\b""",
    re.VERBOSE | re.IGNORECASE,
)


def same_dispatches(trace: Trace, turn: Turn, least: int) -> Iterator[tuple[list[Dispatch], bool]]:
    """Yield at least ``least`` consecutive dispatches with the same request to the same agent.

    The messages are equal except for small words, the sender does nothing else in between, and no
    later dispatch brings anything new: it has no answer or an answer similar to an earlier one, and
    its receiver only repeated earlier actions. The second value is false if the deciding contents
    were not recorded. Dispatches issued together are not a repetition.
    """
    made: dict[tuple[str, str], list[Dispatch]] = {}
    for dispatch in turn.dispatches:
        if dispatch.kind in ("delegate", "transfer") and dispatch.from_agent is not None:
            made.setdefault((dispatch.from_agent, dispatch.to_agent), []).append(dispatch)
    marks: dict[str | None, _Marks] = {}
    for (sender, _), sent in made.items():
        if sender not in marks:
            marks[sender] = _marks(turn, sender)
        for row in _rows(marks[sender], sent):
            # A transfer often has no message. That several transfers have none does not prove a
            # repetition.
            if len(row) < least or (not telling_words(row[0].prompt) and _have_prompts(trace, row)):
                continue
            stale = list(_stale(trace, row))
            if False not in stale:
                yield row, _have_prompts(trace, row) and None not in stale


def same_calls(
    trace: Trace, run: AgentRun, least: int, ignored: Collection[str]
) -> Iterator[list[ToolCall]]:
    """Yield at least ``least`` equal calls with equal answers that a run made in a row.

    A run that asks until the answer changes is waiting, not going round in circles. A busy, pending
    or unreachable target can be asked twice as often.
    """
    row: list[ToolCall] = []
    for step in run.steps:
        if not isinstance(step, ToolCall):
            continue
        if row:
            last = row[-1]
            # Most consecutive calls differ in their request, which is cheap to check.
            asked_again = last.name == step.name and last.arguments == step.arguments
            if not (asked_again and _same_answer(trace, last, step)):
                # The next call is the same, but got a different answer: the run was waiting for a
                # change (`red`, `red`, `red`, `green`), and it came.
                if len(row) >= least and _too_many(row, least) and request(last) != request(step):
                    yield row
                row = []
        if step.dispatch is None and step.name not in ignored:
            row.append(step)
    if _too_many(row, least):
        yield row


def _too_many(row: Sequence[ToolCall], least: int) -> bool:
    """Return whether calls are a loop. Temporary problems allow twice as many calls."""
    if len(row) < least or not row:
        return False
    passing = _PASSES.search(" ".join(outcome(row[-1])[3:]))
    return len(row) >= (2 * least if passing else least)


def _rows(marks: _Marks, sent: Sequence[Dispatch]) -> Iterator[list[Dispatch]]:
    row: list[Dispatch] = []
    for dispatch in sent:
        # Most dispatches have something else in between, which is cheaper to check than words.
        if row and (_between(marks, row[-1], dispatch) or not _same(row[-1], dispatch)):
            yield row
            row = []
        row.append(dispatch)
    yield row


def _have_prompts(trace: Trace, row: Sequence[Dispatch]) -> bool:
    return all(known(trace, dispatch, "prompt") for dispatch in row)


def _same(one: Dispatch, other: Dispatch) -> bool:
    # Three equal requests in one model answer are a vote or a sample, not a loop.
    together = one.group is not None and (one.group, one.from_run) == (other.group, other.from_run)
    if together or one.context != other.context:
        return False
    return telling_words(one.prompt) == telling_words(other.prompt)


class _Marks(NamedTuple):
    """The dispatch, if any, of each step of an agent, without texts, and the place of each."""

    of: list[str | None]
    first: dict[str | None, int]
    last: dict[str | None, int]


def _marks(turn: Turn, agent: str) -> _Marks:
    runs = [run for run in turn.runs if run.agent == agent]
    of = [step.dispatch for run in runs for step in run.steps if not isinstance(step, Said)]
    first = {mark: at for at, mark in reversed(list(enumerate(of)))}
    return _Marks(of, first, {mark: at for at, mark in enumerate(of)})


def _between(marks: _Marks, one: Dispatch, other: Dispatch) -> bool:
    """Return whether the sender did anything else between two of its dispatches."""
    if one.id not in marks.last or other.id not in marks.first:
        return True
    row = range(marks.last[one.id], marks.first[other.id])
    return any(marks.of[at] not in (one.id, other.id) for at in row)


def _stale(trace: Trace, row: Sequence[Dispatch]) -> Iterator[bool | None]:
    """Yield, for each dispatch but the first, whether it brought nothing new. ``None``: unknown."""
    answers: dict[frozenset[str], None] = {}
    done: set[tuple[str, ...]] = set()
    complete = answered = True
    for place, dispatch in enumerate(row):
        answered = answered and known(trace, dispatch, "result")
        words = frozenset(telling_words(dispatch.result))
        deeds = deeds_of(trace, receivers_of(trace, dispatch))
        if place:
            # A missing answer brings nothing new, whatever its error text.
            if dispatch.status in ("failed", "refused", "unanswered"):
                yield True
            elif dispatch.kind == "delegate" and not answered:
                yield None
            elif dispatch.kind == "delegate":
                yield words in answers or any(
                    share_words(words, earlier) for earlier in islice(reversed(answers), _COMPARED)
                )
            elif not deeds.pieces <= done:
                yield False
            else:
                yield True if complete and deeds.complete else None
        answers[words] = None
        done |= deeds.pieces
        complete = complete and deeds.complete


def _same_answer(trace: Trace, one: ToolCall, other: ToolCall) -> bool:
    """Return whether two equal calls are known to have got the same answer."""
    fields = ("arguments", "result")
    complete = all(known(trace, call, field) for call in (one, other) for field in fields)
    ended = all(call.status in ("ok", "failed", "refused") for call in (one, other))
    return complete and ended and outcome(one) == outcome(other)


class LoopLimits(NamedTuple):
    """The number of repetitions that make a loop. Calls of ``ignore_tools`` can repeat."""

    # Three, because two of each is ordinary: control goes back once to ask the user for a missing
    # detail, or a request is repeated to be sure.
    rounds: int = 3
    dispatches: int = 3
    calls: int = 3
    ignore_tools: frozenset[str] = frozenset()


_DEFAULT = LoopLimits()


def loops(
    trace: Trace,
    turn: Turn,
    limits: LoopLimits = _DEFAULT,
    renames: Mapping[str, str] = NO_NAMES,
) -> Answer:
    """Look for loops in one turn.

    - ``hand_off_cycle``: control goes round the same agents ``rounds`` times in a row, and nothing
      new happens after the first round (:func:`baton.findings.handoff_loops.cycles`). A graph that
      was built to loop makes no such dispatches.
    - ``repeated_dispatch``: an agent makes the same request to another ``dispatches`` times, and
      gets nothing new (:func:`baton.findings.handoff_loops.same_dispatches`).
    - ``repeated_call``: a run makes the same call with the same answer ``calls`` times in a row.
    """
    findings: list[Finding] = []
    doubts: list[str] = []
    for cycle in cycles(turn, limits.rounds):
        state = idle(trace, turn, cycle)
        names = [renames.get(d.to_agent, d.to_agent) for d in cycle]
        if state:
            findings.append(_cycle_found(turn, cycle, names))
        elif state is None:
            doubts.append(f"`{names[0]}` gets control over and over")
    for row, proven in same_dispatches(trace, turn, limits.dispatches):
        name = renames.get(row[0].to_agent, row[0].to_agent)
        if proven:
            findings.append(_dispatch_found(row, name))
        else:
            doubts.append(f"`{name}` is asked over and over")
    for run in turn.runs:
        for calls in same_calls(trace, run, limits.calls, limits.ignore_tools):
            findings.append(_call_found(run, calls, renames.get(run.agent, run.agent)))
    if findings:
        return findings
    if doubts:
        return NotRecorded(
            says=f"{doubts[0]}; record prompts and answers to tell whether it is a loop"
        )
    return Clear(says="no loop")


def _cycle_found(turn: Turn, cycle: Sequence[Dispatch], names: Sequence[str]) -> Finding:
    period = period_of(cycle)
    rounds = len(cycle) // period
    way = " → ".join(f"`{name}`" for name in [names[period - 1], *names[:period]])
    runs = [id_ for d in cycle for id_ in d.runs]
    return Finding(
        kind="hand_off_cycle",
        says=f"{way}: {rounds} times round, and nothing new after the first",
        evidence=[Evidence(ids=[turn.id, *(d.id for d in cycle), *runs])],
        details={"agents": list(names[:period]), "rounds": rounds},
    )


def _dispatch_found(row: Sequence[Dispatch], name: str) -> Finding:
    ids = [id_ for d in row for id_ in (d.id, d.call) if id_ is not None]
    quote = row[0].prompt.plain()[:200] if row[0].prompt is not None else None
    return Finding(
        kind="repeated_dispatch",
        says=f"`{name}` was asked for the same {len(row)} times, and returned nothing new",
        evidence=[Evidence(ids=ids, quote=quote)],
        details={"to": name, "times": len(row)},
    )


def _call_found(run: AgentRun, calls: Sequence[ToolCall], name: str) -> Finding:
    tool = calls[0].name
    return Finding(
        kind="repeated_call",
        says=f"`{name}` called `{tool}` {len(calls)} times in a row with the same arguments, "
        "and got the same answer",
        evidence=[Evidence(ids=[run.id, *(call.id for call in calls)])],
        details={"agent": name, "tool": tool, "times": len(calls)},
    )

"""Finds which dispatch of a turn matches which expected one, part by part."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from baton.evaluators.matching.answers import quote
from baton.evaluators.matching.assignment import assign
from baton.evaluators.matching.texts import Reading
from baton.model import Dispatch, ExpectedDispatch, Trace, Turn, known
from baton.model.views import overlap


class Part(NamedTuple):
    """One stated part: the ``share`` of it that is right, 0 to 1, or ``None`` if unknown.

    ``fault`` names the kind of fault. ``says`` describes the fault, or how to record the part.
    """

    name: str
    share: float | None
    fault: str = ""
    says: str = ""


def parts_of(
    trace: Trace, turn: Turn, expected: ExpectedDispatch, made: Dispatch, reading: Reading
) -> list[Part]:
    """Compare the stated parts: kind, words of the prompt, tools, and whether it is parallel."""
    parts: list[Part] = []
    if expected.kind is not None:
        parts.append(_kind(trace, expected.kind, made))
    if expected.prompt_contains:
        parts.append(_prompt(trace, expected.prompt_contains, made, reading))
    if expected.tools is not None:
        parts.append(_tools(trace, expected.tools, made))
    if expected.parallel is not None:
        parts.append(_parallel(trace, turn, expected.parallel, made))
    return parts


def _kind(trace: Trace, wanted: str, made: Dispatch) -> Part:
    if not known(trace, made, "kind"):
        return Part("kind", None, says="its kind is not recorded: record the agents' spans")
    if made.kind == wanted:
        return Part("kind", 1.0)
    return Part("kind", 0.0, "wrong_kind", f"by {made.kind}, expected {wanted}")


def _prompt(trace: Trace, wanted: Sequence[str], made: Dispatch, reading: Reading) -> Part:
    if not known(trace, made, "prompt"):
        supply = "record the content of calls and messages as well"
        return Part("prompt", None, says=f"its prompt is not recorded: {supply}")
    text = "" if made.prompt is None else made.prompt.plain()
    lacking = [words for words in wanted if not reading.found_in(words, text)]
    if not lacking:
        return Part("prompt", 1.0)
    listed = ", ".join(repr(quote(words, 80)) for words in lacking)
    says = f"the prompt lacks {listed}" if text else "it was made without a prompt"
    return Part("prompt", 1 - len(lacking) / len(wanted), "prompt_lacks", says)


def _tools(trace: Trace, wanted: Sequence[str], made: Dispatch) -> Part:
    """Compare with the tools that the dispatch allows, as sets.

    If the tools were only offered to the receiver, a missing tool is a fault, but an extra tool
    proves nothing, because frameworks add their own tools to the offer.
    """
    supply = "give the agents' definitions (--agents)"
    allowed = made.tools_allowed
    if allowed is None:
        recorded = known(trace, made, "tools_allowed")
        what = "it names no tools" if recorded else "the tools it allows are not recorded"
        return Part("tools", None, says=f"{what}: {supply}")
    if allowed == "all":
        return Part("tools", 0.0, "wrong_tools", "it allows all tools")
    lacking = [tool for tool in dict.fromkeys(wanted) if tool not in allowed]
    extra = [tool for tool in dict.fromkeys(allowed) if tool not in wanted]
    if extra and not lacking and made.tools_source == "offered":
        what = "more tools were offered than expected; some may belong to the framework"
        return Part("tools", None, says=f"{what}: {supply}")
    if not lacking and not extra:
        return Part("tools", 1.0)
    says = [f"without the tools {_listed(lacking)}"] if lacking else []
    says += [f"with the extra tools {_listed(extra)}"] if extra else []
    shared = len(set(wanted) & set(allowed))
    return Part("tools", shared / len({*wanted, *allowed}), "wrong_tools", ", ".join(says))


def _parallel(trace: Trace, turn: Turn, wanted: bool, made: Dispatch) -> Part:
    """Compare whether the work is parallel: issued together, or overlapping in time.

    Overlap proves it. No overlap proves nothing, so without overlap the group has to be known.
    """
    others = [
        other
        for other in turn.dispatches
        if other.id != made.id
        and other.kind != "return"
        and (made.from_run, made.from_agent) == (other.from_run, other.from_agent)
    ]
    in_group = [o for o in others if made.group is not None and made.group == o.group]
    overlapping = (o for o in others if o in in_group or overlap(made, o))
    together = next(overlapping, None)
    if together is not None:
        says = f"it was issued in parallel with the one to `{together.to_agent}`"
        return Part("parallel", float(wanted), "" if wanted else "parallel", "" if wanted else says)
    if not known(trace, made, "group"):
        supply = "record when dispatches start and end, or the calls of one message together"
        return Part("parallel", None, says=f"dispatches issued together are not recorded: {supply}")
    if not wanted:
        return Part("parallel", 1.0)
    return Part("parallel", 0.0, "not_parallel", "it was issued alone, expected in parallel")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


class Sent(NamedTuple):
    """A dispatch, every name of its receiver, and whether it is a fault if unexpected."""

    dispatch: Dispatch
    names: tuple[str, ...]
    counted: bool

    def name_among(self, wanted: Collection[str]) -> str:
        """Return the name that a case uses for the receiver, else the receiver's own name."""
        return next((name for name in self.names if name in wanted), self.names[0])


def sent_in(
    trace: Trace,
    turn: Turn,
    *,
    kinds: Collection[str],
    order: bool,
    renames: Mapping[str, str],
) -> list[Sent]:
    """Return the dispatches of a turn with a known receiver, except those known only from order.

    ``order`` includes those too. A dispatch does not count if its kind is not in ``kinds``, or if
    it was refused, asks a person, resumes an agent, or hands control back to the agent that it
    came from.
    """
    back = _handed_back(trace, turn)
    runs = {run.id: run for run in turn.runs}
    sent = []
    for dispatch in turn.dispatches:
        if (dispatch.basis == "order" and not order) or not names_receiver(trace, turn, dispatch):
            continue
        own = [runs[run].node for run in dispatch.runs if run in runs]
        nodes = [runs[run].agent for run in dispatch.runs if run in runs]
        card = trace.agents.get(dispatch.to_agent)
        if card is not None:
            aliases = card.aliases
        else:
            aliases = [
                name for name, other in trace.agents.items() if dispatch.to_agent in other.aliases
            ]
        names = [dispatch.to_agent, *aliases]
        for node, agent in zip(own, nodes, strict=True):
            if node is not None and dispatch.to_agent in (node, agent):
                names += [agent, node]
        counted = (
            dispatch.kind in kinds
            and dispatch.status != "refused"
            and dispatch.to_kind != "human"
            and dispatch.continues is None
            and dispatch.id not in back
        )
        renamed = tuple(dict.fromkeys(renames.get(name, name) for name in names))
        sent.append(Sent(dispatch, renamed, counted))
    return sent


def names_receiver(trace: Trace, turn: Turn, dispatch: Dispatch) -> bool:
    """Return whether the source names the receiver, either directly or by the started run."""
    if not known(trace, dispatch, "to_agent"):
        return False
    started = [run for run in turn.runs if run.id in dispatch.runs]
    own = [run for run in started if run.agent == dispatch.to_agent]
    return all(known(trace, run, "agent") for run in own)


def _handed_back(trace: Trace, until: Turn) -> set[str]:
    """Return the transfers that give control back to the agent it came from.

    This covers all turns so far, because an agent keeps control into the next turn.
    """
    handed: list[tuple[str, str]] = []
    back = set()
    for turn in trace.turns:
        for dispatch in turn.dispatches:
            giver, taker = dispatch.from_agent, dispatch.to_agent
            if dispatch.kind != "transfer" or giver is None or dispatch.status == "refused":
                continue
            if (taker, giver) in handed:
                handed.remove((taker, giver))
                back.add(dispatch.id)
            else:
                handed.append((giver, taker))
        if turn is until:
            break
    return back


# A pair outweighs any agreement of parts in all other pairs, and that agreement outweighs order.
_PAIR = 10**16
_PART = 10**8
# Distances between places are limited here, so that their sum never outweighs a part.
_FAR = 10**4

Look = Callable[[ExpectedDispatch, Sent], list[Part]]
Doubt = Callable[[ExpectedDispatch], str | None]


class Met(NamedTuple):
    """An expected dispatch and the actual one that went to its agent."""

    expected: ExpectedDispatch
    sent: Sent
    parts: list[Part]


class Wrong(NamedTuple):
    """An expected dispatch and the actual one that went to another agent instead."""

    expected: ExpectedDispatch
    sent: Sent


class Pairs(NamedTuple):
    """The outcome of a turn's expected dispatches, and the unexpected ones."""

    met: list[Met]
    wrong: list[Wrong]
    unmet: list[ExpectedDispatch]
    unsure: list[tuple[ExpectedDispatch, str]]
    surplus: list[Sent]


def pair_up(
    expected: Sequence[ExpectedDispatch], sent: Sequence[Sent], look: Look, doubt: Doubt
) -> Pairs:
    """Pair one to one: as many as possible to the right agent, with the most parts right.

    Ties keep the order of both sides. The rest of both sides is paired as wrong targets, except
    for an expected dispatch that may have been made anyway. ``doubt`` is the reason for that.
    """
    best = _best(_gains(expected, sent, look, right=True))
    met = [
        Met(one, sent[column], look(one, sent[column]))
        for one, column in zip(expected, best, strict=True)
        if column is not None
    ]
    taken = set(best)
    rest = [each for column, each in enumerate(sent) if column not in taken]
    left = [one for one, column in zip(expected, best, strict=True) if column is None]
    doubts = [doubt(one) for one in left]
    unsure = [(one, why) for one, why in zip(left, doubts, strict=True) if why is not None]
    open_ = [one for one, why in zip(left, doubts, strict=True) if why is None]
    substitutes = _best(_gains(open_, rest, look, right=False))
    wrong = [
        Wrong(one, rest[column])
        for one, column in zip(open_, substitutes, strict=True)
        if column is not None
    ]
    unmet = [one for one, column in zip(open_, substitutes, strict=True) if column is None]
    used = set(substitutes)
    reached = {name for one in met for name in one.sent.names}
    # A dispatch that failed and was retried is not a surplus.
    surplus = [
        each
        for column, each in enumerate(rest)
        if column not in used
        and each.counted
        and not (_failed(each) and not reached.isdisjoint(each.names))
    ]
    return Pairs(met, wrong, unmet, unsure, surplus)


def _best(gains: Sequence[Sequence[int]]) -> list[int | None]:
    """Return the column of each row, or ``None``, with the largest possible sum of gains."""
    fitting = [[column for column, gain in enumerate(row) if gain > 0] for row in gains]
    room = [1] * (len(gains[0]) if gains else 0)
    flow = assign(fitting, room, gain=lambda row, column: gains[row][column])
    return [next(iter(columns), None) for columns in flow]


def looker(trace: Trace, turn: Turn, reading: Reading) -> Look:
    """Return a function that compares the parts of a pair, and compares each pair once."""
    compared: dict[tuple[int, str], list[Part]] = {}

    def look(expected: ExpectedDispatch, sent: Sent) -> list[Part]:
        key = id(expected), sent.dispatch.id
        if key not in compared:
            compared[key] = parts_of(trace, turn, expected, sent.dispatch, reading)
        return compared[key]

    return look


def goes_to(expected: ExpectedDispatch, sent: Sent) -> bool:
    """Return whether a dispatch went to the expected agent.

    A return is control that went back by itself. Sources record some transfers back as returns.
    """
    either = expected.kind is None or "return" not in (expected.kind, sent.dispatch.kind)
    return expected.to in sent.names and (either or expected.kind == sent.dispatch.kind)


def _gains(
    expected: Sequence[ExpectedDispatch], sent: Sequence[Sent], look: Look, *, right: bool
) -> list[list[int]]:
    return [
        [_gain(one, each, look, abs(i - j), right=right) for j, each in enumerate(sent)]
        for i, one in enumerate(expected)
    ]


def _gain(expected: ExpectedDispatch, sent: Sent, look: Look, far: int, *, right: bool) -> int:
    if right:
        together = goes_to(expected, sent)
    else:
        kind = sent.dispatch.kind
        refused = sent.dispatch.status == "refused" and kind != "return"
        together = (
            sent.counted or refused or (kind == expected.kind and kind in ("sequence", "return"))
        )
    if not together:
        return 0
    parts = look(expected, sent)
    shares = [part.share for part in parts if part.share is not None]
    share = (1 + sum(shares)) / (1 + len(parts))
    # Dispatches that went through come before those that did not.
    through = sent.counted + (sent.counted and not _failed(sent))
    return _PAIR + (2000 * through + int(1000 * share)) * _PART - min(far, _FAR)


def _failed(sent: Sent) -> bool:
    return sent.dispatch.status in ("failed", "unanswered")

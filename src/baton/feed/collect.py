"""Chooses dispatches from production as cases: by agent, by verdict, without duplicates.

The set has to represent the traffic, and to have enough passing cases: a gate can only see a drop
in what passed before. Each receiver gets a number of cases by its share of the traffic, but at
least a minimum; within each, about two thirds pass. The choice depends only on ids and a seed, so
it is the same in any reading order.
"""

from __future__ import annotations

import hashlib
import heapq
import tempfile
import weakref
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import Literal, NamedTuple

import msgspec

from baton.model import Dispatch, Score, Trace
from baton.model.filter import Filter
from baton.model.subjects import subjects

from .failures import Failure, failures_of
from .issues import id_of
from .signature import folded, mask, signature_of
from .taxonomy import subtype_of

COUNT, FEWEST, MOST = 100, 40, 200
"""The size of a set. Fewer cannot distinguish a drop from chance; more take too long to play."""
LEAST = 8
"""The minimum for each receiver; a rate over fewer says almost nothing."""
GREEN = 0.65
"""The share of passing cases: 60 to 70 of 100."""
_LEAST_GREEN, _MOST_GREEN, _SEVERAL = 0.5, 0.8, 4
"""How far the share of one receiver with several cases may deviate to make the total right."""
_SPARE = 4
"""How many times the wanted number is kept per receiver, since duplicates are removed later."""
_ALIKE = 0.8
"""The share of common words from which two prompts count as the same request: `Refund
order 17 for Ana` and `Refund order 18 for Ana` have all of them, as numbers are masked."""

_SAID = 2_000
"""The most characters that are kept of a failure's text."""

Verdict = Literal["green", "failing"]
# Attributes with which a program forbids using a conversation as a case.
_CONSENT = ("baton.consent", "consent", "user.consent")
_REFUSED = frozenset({"false", "no", "none", "denied", "refused", "opt-out", "opted_out", "0"})


class Chosen(NamedTuple):
    """A dispatch of the set, with its failures; none if it passed."""

    trace: Trace
    dispatch: Dispatch
    failures: list[Failure]

    @property
    def verdict(self) -> Verdict:
        """Whether it passed."""
        return "failing" if self.failures else "green"


class Stratum(NamedTuple):
    """The dispatches of one receiver, and the chosen ones."""

    agent: str
    dispatches: int
    green: int
    failing: int
    chosen_green: int
    chosen_failing: int

    @property
    def chosen(self) -> int:
        """How many were chosen."""
        return self.chosen_green + self.chosen_failing


class Collected(NamedTuple):
    """The set, its source, and what was left out.

    ``unscored`` dispatches have no verdict, ``refused`` conversations have no consent;
    ``duplicates`` make the same request as a chosen one.
    """

    chosen: list[Chosen]
    strata: list[Stratum]
    unscored: int
    refused: int
    duplicates: int

    @property
    def green(self) -> int:
        """How many of the set passed."""
        return sum(stratum.chosen_green for stratum in self.strata)


class _Candidate(NamedTuple):
    """A dispatch that may be chosen; its trace is in a file, from ``at`` to ``end``."""

    at: int
    end: int
    dispatch: str
    sender: str | None
    prompt: str
    failures: list[Failure]


class Pool:
    """Reads conversations, and keeps the candidates for a set.

    It keeps a few hundred dispatches per receiver, with their traces in a temporary file: memory
    does not grow with the input.

    Args:
        count: the wanted size of the set.
        seed: another seed gives another set.
        where: a filter for dispatches, over ``FIELDS["dispatch"]`` of
            :mod:`baton.model.subjects`.
        failing: only dispatches that fail.
        since: only those that started then or later, in seconds since the epoch.
        issue: among failures, only members of this issue, by its key or a prefix of it; passing
            ones have the same receivers and, if not their work fails, the same senders. Members
            with different texts are taken in turn.
        members: only these members of the issue, by their ids.
        sender, receiver: only dispatches of these agents.
    """

    def __init__(
        self,
        count: int = COUNT,
        *,
        seed: int = 0,
        where: Filter | None = None,
        failing: bool = False,
        since: float | None = None,
        issue: str | None = None,
        members: Collection[str] | None = None,
        sender: str | None = None,
        receiver: str | None = None,
    ) -> None:
        self._edge = sender, receiver
        # A group of texts is a part of its issue: its key is the issue's key and the group's name.
        self._issue = issue.partition("-")[0] if issue is not None else None
        self._members = None if members is None else frozenset(members)
        self._count, self._seed = count, seed
        self._where, self._failing, self._since = where or Filter(), failing, since
        self._kept: defaultdict[tuple[str, Verdict], list[tuple[int, str, _Candidate]]] = (
            defaultdict(list)
        )
        self._ids: set[str] = set()
        self._traces = tempfile.TemporaryFile(prefix="baton-collect-")  # noqa: SIM115 - closed below
        weakref.finalize(self, self._traces.close)
        # The trace that was written last, and its offsets: several of its dispatches may be kept.
        self._written: tuple[Trace, int, int] | None = None
        self._there: Counter[tuple[str, Verdict]] = Counter()
        self._unscored = self._refused = 0

    def add(
        self, trace: Trace, scores: Sequence[Score], versions: Mapping[str, str] | None = None
    ) -> None:
        """Add the dispatches of a conversation."""
        if _no_consent(trace):
            self._refused += 1
            return
        meant = {each.id for each in subjects(trace, "dispatch", self._where)}
        failed = _by_dispatch(trace, scores, versions)
        passed = {id_ for score in scores if score.status == "passed" for id_ in score.subject}
        for turn in trace.turns:
            for made in turn.dispatches:
                started = made.started if made.started is not None else turn.started
                is_late = self._since is None or (started is not None and started >= self._since)
                if made.id not in meant or not is_late:
                    continue
                own = (made.from_agent, made.to_agent)
                if any(a is not None and a != b for a, b in zip(self._edge, own, strict=True)):
                    continue
                failures = failed.get(made.id, [])
                if not failures and made.id not in passed:
                    self._unscored += 1
                    continue
                self._keep(Chosen(trace, made, failures))

    def _keep(self, one: Chosen) -> None:
        if self._failing and one.verdict == "green":
            return
        if self._issue is not None and one.failures:
            own = [each for each in one.failures if self._is_member(each, self._issue)]
            if not own:
                return
            one = one._replace(failures=[*own, *(each for each in one.failures if each not in own)])
        # `worker-8f3a91c2` and `worker-77b0e1d4` are one receiver, as in issues.
        key = (folded(one.dispatch.to_agent), one.verdict)
        self._there[key] += 1
        id_ = f"{one.trace.id}\t{one.dispatch.id}"
        digest = hashlib.blake2b(f"{self._seed}\t{id_}".encode(errors="replace"), digest_size=8)
        # Negative, as a heap pops its smallest first, and the largest hash has to go.
        order = -int.from_bytes(digest.digest())
        heap = self._kept[key]
        if id_ in self._ids:  # the same run, recorded in two ways
            return
        is_full = len(heap) >= _SPARE * self._count
        if is_full and (order, id_) <= heap[0][:2]:
            return
        entry = (order, id_, self._candidate(one))
        if is_full:
            self._ids.discard(heapq.heapreplace(heap, entry)[1])
        else:
            heapq.heappush(heap, entry)
        self._ids.add(id_)

    def _candidate(self, one: Chosen) -> _Candidate:
        if self._written is None or self._written[0] is not one.trace:
            at = self._traces.seek(0, 2)
            self._traces.write(msgspec.msgpack.encode(one.trace))
            self._written = one.trace, at, self._traces.tell()
        _, at, end = self._written
        prompt = one.dispatch.prompt.plain() if one.dispatch.prompt is not None else ""
        # Without their full texts, which may have a megabyte.
        failures = [
            msgspec.structs.replace(each, says=each.says[:_SAID], evidence=[])
            for each in one.failures
        ]
        sender = one.dispatch.from_agent
        return _Candidate(at, end, one.dispatch.id, sender, mask(prompt), failures)

    def _read(self, one: _Candidate) -> Chosen:
        self._traces.seek(one.at)
        trace = msgspec.msgpack.decode(self._traces.read(one.end - one.at), type=Trace)
        made = next(
            made for turn in trace.turns for made in turn.dispatches if made.id == one.dispatch
        )
        return Chosen(trace, made, one.failures)

    def _is_member(self, failure: Failure, issue: str) -> bool:
        if self._members is not None and id_of(failure) not in self._members:
            return False
        return signature_of(failure).key.startswith(issue)

    def choose(self) -> Collected:
        """Choose the set."""
        distinct: dict[tuple[str, Verdict], list[_Candidate]] = {}
        alike: Counter[tuple[str, Verdict]] = Counter()
        for key, heap in sorted(self._kept.items()):
            ordered = [one for _, _, one in sorted(heap, key=lambda entry: (-entry[0], entry[1]))]
            distinct[key] = _distinct(ordered)
            if self._issue is not None and key[1] == "failing":
                distinct[key] = _in_turn(distinct[key])
            alike[key] = len(ordered) - len(distinct[key])
        there = self._there
        if self._issue is not None:
            distinct = _beside(distinct)
            there = Counter({key: there[key] for key in there if key in distinct})
        agents = sorted({agent for agent, _ in there})
        sizes = {a: there[a, "green"] + there[a, "failing"] for a in agents}
        quotas = self._quotas(agents, sizes, distinct)
        green = self._green(agents, distinct, quotas)
        chosen: list[Chosen] = []
        strata: list[Stratum] = []
        for agent in agents:
            good, bad = (distinct.get((agent, verdict), []) for verdict in _VERDICTS)
            taken = [*good[: green[agent]], *bad[: quotas[agent] - green[agent]]]
            chosen += map(self._read, taken)
            strata.append(
                Stratum(
                    agent=agent,
                    dispatches=sizes[agent],
                    green=there[agent, "green"],
                    failing=there[agent, "failing"],
                    chosen_green=green[agent],
                    chosen_failing=len(taken) - green[agent],
                )
            )
        duplicates = sum(alike[key] for key in distinct)
        return Collected(chosen, strata, self._unscored, self._refused, duplicates)

    def _quotas(
        self,
        agents: Sequence[str],
        sizes: Mapping[str, int],
        distinct: Mapping[tuple[str, Verdict], Sequence[_Candidate]],
    ) -> dict[str, int]:
        """Return the number of cases for each receiver.

        If an issue is given, receivers without members only fill up the missing passing cases.
        """
        there = {a: sum(len(distinct.get((a, v), ())) for v in _VERDICTS) for a in agents}
        own = [a for a in agents if self._issue is None or distinct.get((a, "failing"))]
        others = [a for a in agents if a not in own]
        count = self._count
        if others:
            passing = sum(len(distinct.get((a, "green"), ())) for a in own)
            lacking = max(count - round(count * (1 - GREEN)) - passing, 0)
            count -= min(lacking, sum(there[a] for a in others))
        quotas = share_out({a: sizes[a] for a in own}, {a: there[a] for a in own}, count)
        rest = self._count - count
        return quotas | share_out(
            {a: sizes[a] for a in others}, {a: there[a] for a in others}, rest
        )

    def _green(
        self,
        agents: Sequence[str],
        distinct: Mapping[tuple[str, Verdict], Sequence[_Candidate]],
        quotas: Mapping[str, int],
    ) -> dict[str, int]:
        """Return the number of passing cases per receiver, so that the total has the right share.

        Rounding errors are passed on to the next receiver: 60 receivers with one case each must not
        give 60 passing ones. If one side has too few, the other fills up, first there and then
        elsewhere.
        """
        share = 0.0 if self._failing else GREEN
        green: dict[str, int] = {}
        least: dict[str, int] = {}
        most: dict[str, int] = {}
        owed = 0.0
        for agent in agents:
            quota = quotas[agent]
            good, bad = (len(distinct.get((agent, verdict), ())) for verdict in _VERDICTS)
            low, high = max(quota - bad, 0), min(good, quota)
            owed += quota * share
            green[agent] = min(max(round(owed), low), high)
            owed = min(max(owed - green[agent], -1.0), 1.0)
            # No receiver with several cases becomes all passing or all failing to balance others.
            few = quota < _SEVERAL
            least[agent] = low if few else min(max(low, round(quota * _LEAST_GREEN)), green[agent])
            most[agent] = high if few else max(min(high, round(quota * _MOST_GREEN)), green[agent])
        wanted = round(sum(quotas.values()) * share)
        while not self._failing and (missing := wanted - sum(green.values())):
            room = {
                agent: green[agent] - least[agent] if missing < 0 else most[agent] - green[agent]
                for agent in agents
            }
            agent = max(agents, key=lambda each: room[each])
            if room[agent] <= 0:
                break
            green[agent] += 1 if missing > 0 else -1
        return green


def _by_dispatch(
    trace: Trace, scores: Sequence[Score], versions: Mapping[str, str] | None
) -> dict[str, list[Failure]]:
    """Return the failures of each dispatch, with those of the runs that it started.

    A receiver that claims what it did not do fails as a run. A case of its dispatch fails, too.
    """
    started = {run.id: run.started_by for turn in trace.turns for run in turn.runs}
    failed: defaultdict[str, list[Failure]] = defaultdict(list)
    for score in scores:
        for failure in failures_of(trace, [score], versions):
            of_runs = [id_ for each in score.subject for id_ in started.get(each, ())]
            for id_ in [failure.dispatch] if failure.dispatch is not None else of_runs:
                failed[id_].append(failure)
    return failed


_VERDICTS: tuple[Verdict, Verdict] = ("green", "failing")


def share_out(traffic: Mapping[str, int], there: Mapping[str, int], count: int) -> dict[str, int]:
    """Return the number of cases for each receiver: the minimum, and the rest by traffic.

    Args:
        traffic: dispatches of each receiver.
        there: how many of them are available.
        count: the total number, if there are so many.
    """
    least = min(LEAST, max(count // max(len(traffic), 1), 1))
    # With more receivers than cases, those with most traffic get one.
    served = sorted(traffic, key=lambda agent: (-traffic[agent], agent))[:count]
    quotas = {agent: min(least, there[agent]) if agent in served else 0 for agent in traffic}
    # One by one to the receiver with the fewest for its traffic: what one cannot fill goes to
    # others.
    left = min(count, sum(there.values())) - sum(quotas.values())
    waiting = [
        ((quotas[agent] + 1) / traffic[agent], agent)
        for agent in traffic
        if quotas[agent] < there[agent]
    ]
    heapq.heapify(waiting)
    while left > 0 and waiting:
        _, agent = heapq.heappop(waiting)
        quotas[agent] += 1
        left -= 1
        if quotas[agent] < there[agent]:
            heapq.heappush(waiting, ((quotas[agent] + 1) / traffic[agent], agent))
    return quotas


def _distinct(ordered: Iterable[_Candidate]) -> list[_Candidate]:
    """Leave out dispatches with the same request as an earlier one, and the same failure."""
    kept: list[_Candidate] = []
    words: list[tuple[frozenset[str], frozenset[str | None]]] = []
    for one in ordered:
        own = frozenset(one.prompt.casefold().split())
        faults = frozenset(failure.fault for failure in one.failures)
        if not any(faults == theirs and alike_words(own, other) for other, theirs in words):
            kept.append(one)
            words.append((own, faults))
    return kept


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text, with ids and numbers masked."""
    return frozenset(mask(text).casefold().split())


def _beside(
    distinct: Mapping[tuple[str, Verdict], list[_Candidate]],
) -> dict[tuple[str, Verdict], list[_Candidate]]:
    """Keep the members of an issue, and passing dispatches beside them.

    These have the same receivers; if choosing, asking or using fails, also dispatches of the sender
    to other agents: a change of its prompt affects all of them.
    """
    receivers = {agent for agent, verdict in distinct if verdict == "failing"}
    senders = {
        one.sender
        for (_, verdict), own in distinct.items()
        if verdict == "failing"
        for one in own
        if one.failures and subtype_of(one.failures[0].fault or "").category != "working"
    } - {None}
    kept = {}
    for (agent, verdict), own in distinct.items():
        beside = own if agent in receivers else [one for one in own if one.sender in senders]
        if beside:
            kept[agent, verdict] = beside
    return kept


def _in_turn(members: Sequence[_Candidate]) -> list[_Candidate]:
    """Order members so that different texts alternate."""
    by_text: defaultdict[str, list[_Candidate]] = defaultdict(list)
    for one in members:
        by_text[mask(one.failures[0].says)].append(one)
    rounds = zip_longest(*by_text.values())
    return [one for each in rounds for one in each if one is not None]


def alike_words(first: frozenset[str], second: frozenset[str]) -> bool:
    """Tell whether two texts make the same request, by their words."""
    either = len(first | second)
    return either > 0 and len(first & second) / either >= _ALIKE


def _no_consent(trace: Trace) -> bool:
    consents = [trace.attributes[name] for name in _CONSENT if name in trace.attributes]
    return any(each is None or str(each).strip().casefold() in _REFUSED for each in consents)

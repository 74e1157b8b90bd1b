"""Issues: failures with one signature, with their rate, their members and their state.

Failures are read once, in any order, in bounded memory: counts, and for each issue the members with
the smallest hashes. Signatures, members, edges and minutes have limits; exceeded ones are reported
(:class:`Limits`). The same data gives the same issues with the same members, in any order.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Generic, Literal, NamedTuple, TypeVar

import msgspec

from baton.model import Trace, known
from baton.stats.intervals import Estimate, share

from .failures import NOBODY, Failure, causes, same_faults
from .signature import UNTOLD, Signature, folded, mask, signature_of
from .taxonomy import Subtype, subtype_named, subtype_of
from .text_groups import LEAST, Embed, group_texts, keep_names, middle_of

State = Literal["new", "open", "muted", "fixed", "regressed"]
STATES: dict[State, str] = {
    "new": "nobody has looked at it",
    "open": "somebody knows of it",
    "muted": "it is known and not to be fixed",
    "fixed": "it is fixed in a version",
    "regressed": "it was fixed and occurred again",
}
MEMBERS = 200
"""The maximum number of members of an issue that are kept: enough to choose cases from."""
TEXTS = 10_000
"""The same if only an evaluator states the fault: the reasons of its members are grouped.
"""
MANY = 30
"""The number of members from which an issue may be several: their sentences are grouped, too."""
_KEPT_LETTERS, _KEPT_IDS = 2_000, 100
"""The maximum length of a member's text and evidence in characters: a quoted answer may have a
megabyte, and 10,000 members are kept.
"""
SIGNATURES = 10_000
"""The maximum number of signatures of one fault. Nobody reads a list of thousands, and an agent
that invents a tool for each call (`search_berlin`, `search_rome`, ...) would fill the memory.
Beyond it, issues are no longer distinguished by what the fault is about, and if they are still too
many, nor by agents.
"""
KEPT_MEMBERS = 50_000
"""The maximum number of members of all issues together, of 600 bytes to 3 kB each. Beyond it fewer
are kept per issue.
"""
_FEWEST_MEMBERS = 25
"""The number at which halving stops (200, 100, 50, 25): with fewer members there is hardly a choice
of cases."""
EDGES = 10_000
"""The maximum number of edges whose dispatches are counted; the rates of others are unknown."""
NAMES = 50
"""The maximum number of versions and models of a receiver that have a rate."""
MINUTES = 100_000
"""The most counts per five minutes and signature that are kept: a week with 100 failures in five
minutes, a year with one. Bursts are searched in the newest.
"""
MANY_SUBJECTS, MANY_AGENTS = "many", "many agents"
"""The text in the signature of merged issues, when there are too many."""
_BURST_SECONDS = 300.0
"""An outage hits all agents within minutes. Of 23,624 runs that were judged in production, 88 % of
one "failure mode" was an outage that hit 15 agents at once."""
_BURST_AGENTS = 3
"""The minimum number of agents that fail at once in an outage: two may share a tool."""
_BY_CHANCE = 3.0
"""The minimum ratio to the usual share of failed dispatches in those minutes, by the intervals."""


class Member(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One failure of an issue: its place and its text. ``id`` is a hash of its content.

    ``conversation`` is the id of the trace, ``number`` its number on a server.
    """

    id: str
    conversation: str
    number: int | None = None
    dispatch: str | None = None
    evidence: list[str] = []
    says: str = ""
    at: float | None = None
    versions: dict[str, str] = {}
    judged: bool = False


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """How often a fault occurs: ``failed`` of ``dispatches``, and per thousand.

    ``per_1000`` has a 95 % interval, and is ``None`` if the dispatches were not counted.
    """

    failed: int
    dispatches: int
    per_1000: Estimate | None


class TextGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Members of an issue with the same meaning: how many of the kept ones, and one of them."""

    name: str
    members: int
    example: str


class Issue(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Failures with the same fault.

    Attributes:
        key: identifier: the key of the signature, followed by the name of the group if it has one.
        title: name.
        subtype: of :mod:`baton.feed.taxonomy`.
        fault: kind of the finding, or type of the evaluator.
        sender, receiver, about: as in its signature.
        evaluators: the evaluators that failed.
        proven: whether a finding proves it; else an evaluator, a judge for example, says so.
        count: number of failures.
        first, last: time of the first and last one, in seconds since the epoch, where known.
        rate: failures per 1,000 dispatches on that edge.
        by_version, by_model: the same, for each version of the receiver and each model.
        infrastructure: number of failures that happened while many agents failed at once.
        group: its group of texts, if only reasons distinguish the failures. Its figures are then
            estimated from ``TEXTS`` members, if there are more.
        is_rest: whether these are the members that are left after others of the signature formed
            groups.
        groups: clusters of the members' messages, if there are many different ones.
        members: some of the failures.
        state: given by a person; ``note``, ``by`` and ``since`` belong to it.
    """

    key: str
    title: str
    subtype: str
    category: str
    mast: list[str] = []
    fault: str
    sender: str | None
    receiver: str | None
    about: str = ""
    evaluators: list[str]
    proven: bool
    judged: int = 0
    count: int
    first: float | None = None
    last: float | None = None
    rate: Rate
    by_version: dict[str, Rate] = {}
    by_model: dict[str, Rate] = {}
    infrastructure: int = 0
    group: str | None = None
    says: str | None = None
    is_rest: bool = False
    groups: list[TextGroup] = []
    members: list[Member]
    state: State = "new"
    version: str | None = None
    note: str | None = None
    by: str | None = None
    since: float | None = None

    @property
    def edge(self) -> str:
        """The ends of its dispatches: ``desk → refunds``."""
        sender = UNTOLD if self.sender is None else self.sender
        return Signature("", self.fault, sender, self.receiver or UNTOLD, self.about).edge


class Edge(NamedTuple):
    """Dispatches between two agents."""

    sender: str
    receiver: str


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits that were exceeded; usually none.

    Attributes:
        together: faults with more than ``SIGNATURES`` signatures, whose issues are merged.
        members: the most members that are kept of an issue, if fewer than usual.
        edges: whether there are edges whose dispatches are not counted.
        bursts_since: the start of the search for bursts, in seconds since the epoch.
    """

    together: list[str] = []
    members: int | None = None
    edges: bool = False
    bursts_since: float | None = None

    def said(self) -> Iterator[str]:
        """Yield messages for the user, one sentence each."""
        for fault in self.together:
            yield (
                f"`{fault}` has more than {SIGNATURES:,} different issues: those between the same "
                "agents, or all of them, are merged"
            )
        if self.members is not None:
            yield f"at most {self.members:,} failures of an issue are kept, as there are so many"
        if self.edges:
            yield (
                f"dispatches are counted for {EDGES:,} pairs of agents; the rates of issues "
                "between others are unknown"
            )
        if self.bursts_since is not None:
            since = datetime.fromtimestamp(self.bursts_since, UTC)
            yield f"bursts over many agents are searched from {since:%Y-%m-%d %H:%M} UTC on"


_Key = TypeVar("_Key", bound=Hashable)


class _Bounded(Generic[_Key]):
    """Counts by key, for at most ``most`` keys: those with the smallest hashes, in any order."""

    def __init__(self, most: int) -> None:
        self.counts: dict[_Key, int] = {}
        self.is_full = False
        self._most = most
        self._heap: list[tuple[int, _Key]] = []

    def add(self, key: _Key, times: int = 1) -> _Key | None:
        """Count a key; return the key that is no longer counted, if any."""
        if key in self.counts:
            self.counts[key] += times
            return None
        entry = (_order_of(repr(key)), key)
        gone = None
        if len(self._heap) < self._most:
            heapq.heappush(self._heap, entry)
        else:
            self.is_full = True
            if entry[0] <= self._heap[0][0]:
                return key
            gone = heapq.heapreplace(self._heap, entry)[1]
            del self.counts[gone]
        self.counts[key] = times
        return gone

    def take_in(self, other: _Bounded[_Key]) -> None:
        """Add the counts of another one."""
        for key, times in other.counts.items():
            self.add(key, times)

    def first(self, other: _Bounded[_Key]) -> list[_Key]:
        """Return the keys that are counted exactly in both: those with the smallest hashes."""
        both = self.counts.keys() | other.counts.keys()
        if len(both) <= self._most:
            return list(both)
        return sorted(both, key=lambda key: -_order_of(repr(key)))[: self._most]


def _order_of(text: str) -> int:
    """Return a place in an order that no input chooses.

    Negative, as a heap pops its smallest first, and the largest hash has to go.
    """
    digest = hashlib.blake2b(text.encode(errors="replace"), digest_size=8)
    return -int.from_bytes(digest.digest())


_Entry = tuple[int, str, int, Member]
_KINDS = ("agent", "model")
"""The fields that have rates: version and model."""


class Counted(msgspec.Struct):
    """The data of a signature while failures are read."""

    signature: Signature
    proven: bool
    failed: int = 0
    dispatches: int = 0
    judged: int = 0
    first: float | None = None
    last: float | None = None
    evaluators: set[str] = msgspec.field(default_factory=set)
    names: dict[str, _Bounded[str]] = msgspec.field(default_factory=dict)
    members: list[_Entry] = msgspec.field(default_factory=list)

    def take_in(self, other: Counted) -> None:
        """Add the counts of another one."""
        self.failed += other.failed
        self.dispatches += other.dispatches
        self.judged += other.judged
        self.first = min((at for at in (self.first, other.first) if at is not None), default=None)
        self.last = max((at for at in (self.last, other.last) if at is not None), default=None)
        self.evaluators |= other.evaluators
        for kind, names in other.names.items():
            self.names.setdefault(kind, _Bounded(NAMES)).take_in(names)
        self.members += other.members


class Collector:
    """Reads traces with their failures, and makes issues of them.

    Args:
        project: the server's project; empty elsewhere.
    """

    def __init__(self, project: str = "") -> None:
        self.project = project
        self.failures = 0
        self._edges: _Bounded[Edge] = _Bounded(EDGES)
        self._versions: dict[tuple[Edge, str], _Bounded[str]] = {}
        self._counted: dict[Signature, Counted] = {}
        self._minutes = _Minutes()
        # How coarse the signatures of each fault are: 0 is exact.
        self._levels: dict[str, int] = {}
        self._of_fault: Counter[str] = Counter()
        # The number of kept members, and how often the limit per issue was halved.
        self._members = self._halved = 0

    def see(self, trace: Trace, versions: dict[str, str] | None = None) -> None:
        """Count a trace's dispatches by edge, version and model; failures are added separately."""
        models = {run.id: run.model for turn in trace.turns for run in turn.runs}
        for turn in trace.turns:
            for made in turn.dispatches:
                if made.kind == "return" or not known(trace, made, "to_agent"):
                    continue
                sender = NOBODY if known(trace, made, "from_agent") else UNTOLD
                edge = Edge(folded(made.from_agent or sender), folded(made.to_agent))
                at = made.started if made.started is not None else turn.started
                model = next((models[id_] for id_ in made.runs if models.get(id_)), None)
                version = (versions or {}).get(made.to_agent)
                self.dispatched(edge, at=at, version=version, model=model)

    def dispatched(
        self,
        edge: Edge,
        times: int = 1,
        *,
        at: float | None = None,
        version: str | None = None,
        model: str | None = None,
    ) -> None:
        """Count dispatches of an edge."""
        gone = self._edges.add(edge, times)
        if gone is not None:
            for kind in _KINDS:
                self._versions.pop((gone, kind), None)
        if edge in self._edges.counts:
            for kind, name in zip(_KINDS, (version, model), strict=True):
                if name is not None:
                    self._versions.setdefault((edge, kind), _Bounded(NAMES)).add(name, times)
        if at is not None:
            self._minutes.dispatched(slot_of(at), times)

    def add(self, failures: Iterable[Failure]) -> None:
        """Add failures; those of one trace come together."""
        for exact, failure, evaluators in each_once(failures, self.project):
            self.failures += len(evaluators)
            signature = self._coarse(exact)
            counted = self._counted.get(signature)
            if counted is None:
                counted = self._new(signature, proven=failure.fault is not None)
            counted.evaluators.update(evaluators)
            _count(counted, failure)
            self._members += self._keep(counted, failure)
            while self._members > KEPT_MEMBERS and self._most(counted) > _FEWEST_MEMBERS:
                self._halved += 1
                self._members -= sum(
                    _cut(each, self._most(each)) for each in self._counted.values()
                )
            if failure.at is not None:
                self._minutes.failed(exact, slot_of(failure.at), failure.receiver or UNTOLD)

    def _new(self, signature: Signature, *, proven: bool) -> Counted:
        """Start to count a signature; if a fault has too many, some are merged."""
        fault = signature.fault
        counted = self._counted[signature] = Counted(signature, proven)
        self._of_fault[fault] += 1
        while self._of_fault[fault] > SIGNATURES and self._levels.get(fault, 0) < 2:
            self._levels[fault] = self._levels.get(fault, 0) + 1
            for each in [each for each in self._counted if each.fault == fault]:
                own = self._counted.pop(each)
                coarse = self._coarse(each)
                there = self._counted.get(coarse)
                if there is None:
                    self._counted[coarse] = msgspec.structs.replace(own, signature=coarse)
                else:
                    there.take_in(own)
            together = [each for each in self._counted.values() if each.signature.fault == fault]
            self._members -= sum(_cut(each, self._most(each)) for each in together)
            self._of_fault[fault] = len(together)
            counted = self._counted[self._coarse(signature)]
        return counted

    def _coarse(self, signature: Signature) -> Signature:
        level = self._levels.get(signature.fault, 0)
        if level == 0:
            return signature
        about = MANY_SUBJECTS if signature.about else ""
        if level == 1:
            return signature._replace(about=about)
        return signature._replace(sender=UNTOLD, receiver=MANY_AGENTS, about=MANY_SUBJECTS)

    def _most(self, counted: Counted) -> int:
        """Return the most members that are kept of a signature."""
        most = MEMBERS if counted.proven else TEXTS
        return max(most >> self._halved, _FEWEST_MEMBERS)

    def _keep(self, counted: Counted, failure: Failure) -> int:
        """Keep the members with the smallest hashes: a sample that no order of reading changes."""
        most = self._most(counted)
        order = _order_of(failure.id)
        if len(counted.members) >= most and order <= counted.members[0][0]:
            return 0
        # A failure may be read twice; the order in the tuple avoids comparing members.
        entry = (order, failure.id, self.failures, _as_member(failure))
        if len(counted.members) < most:
            heapq.heappush(counted.members, entry)
            return 1
        heapq.heapreplace(counted.members, entry)
        return 0

    @property
    def limits(self) -> Limits:
        """The limits that were exceeded."""
        since = self._minutes.since
        return Limits(
            together=sorted(self._levels),
            members=max(MEMBERS >> self._halved, _FEWEST_MEMBERS) if self._halved else None,
            edges=self._edges.is_full,
            bursts_since=None if since is None else since * _BURST_SECONDS,
        )

    def issues(
        self, groups: Groups | None = None, embed: Embed | None = None, *, hold: bool = False
    ) -> list[Issue]:
        """Return the issues, the most frequent first, equal ones by their keys.

        Args:
            groups: the old groups of texts, which keep their names; it is updated to the current
                groups. Without it, only signatures decide.
            embed: returns vectors of texts; without it words are compared.
            hold: groups stay as they are, and only get new texts.

        Raises:
            InputError: ``groups`` are given, and scikit-learn is not installed.
        """
        bursts: Counter[Signature] = Counter()
        for exact, times in self._minutes.bursts().items():
            bursts[self._coarse(exact)] += times
        collected: list[Issue] = []
        for counted in self._counted.values():
            issue = self._issue(counted, bursts[counted.signature])
            collected += [issue] if groups is None else by_text(issue, groups, embed, hold=hold)
        for issue in collected:
            del issue.members[MEMBERS:]
        return sorted(collected, key=lambda issue: (-issue.count, issue.key))

    def _issue(self, counted: Counted, burst: int) -> Issue:
        signature = counted.signature
        edge = Edge(signature.sender, signature.receiver)
        subtype = subtype_with(signature.fault, counted.failed, burst)
        return Issue(
            key=signature.key,
            title=title_of(subtype, signature),
            subtype=subtype.name,
            category=subtype.category,
            mast=list(subtype.mast),
            fault=signature.fault,
            sender=None if signature.sender == UNTOLD else signature.sender,
            receiver=None if signature.receiver == UNTOLD else signature.receiver,
            about=signature.about,
            evaluators=sorted(counted.evaluators),
            proven=counted.proven,
            judged=counted.judged,
            count=counted.failed,
            first=counted.first,
            last=counted.last,
            rate=rate_of(counted.dispatches, self._edges.counts.get(edge, 0)),
            by_version=self._rates(edge, "agent", counted),
            by_model=self._rates(edge, "model", counted),
            infrastructure=burst,
            members=[member for *_, member in sorted(counted.members, reverse=True)],
        )

    def _rates(self, edge: Edge, kind: str, counted: Counted) -> dict[str, Rate]:
        """Return the rate for each version or model that had dispatches, also without failures."""
        there: _Bounded[str] = self._versions.get((edge, kind)) or _Bounded(NAMES)
        failed = counted.names.get(kind) or _Bounded(NAMES)
        return {
            name: rate_of(failed.counts.get(name, 0), there.counts.get(name, 0))
            for name in sorted(there.first(failed))
        }


def each_once(
    failures: Iterable[Failure], project: str = ""
) -> Iterator[tuple[Signature, Failure, list[str]]]:
    """Yield the failures that count, each with its evaluators.

    A dispatch counts once for each signature: if two evaluators see the same fault of one
    dispatch, that is one failure. Faults that only follow from another one are left out.
    """
    unique: dict[tuple[Signature, str, str | None], tuple[Failure, list[str]]] = {}
    for each, failure in same_faults(list(causes(failures))):
        where = (signature_of(failure, project), failure.conversation, failure.dispatch)
        unique.setdefault(where, (failure, []))[1].append(each.evaluator)
    for (signature, _, _), (failure, evaluators) in unique.items():
        yield signature, failure, evaluators


class Slot(msgspec.Struct):
    """Five minutes: the number of dispatches, and those that failed like in an outage.

    ``agents`` are some of the agents whose dispatches failed so, ``by`` counts all failures.
    """

    dispatches: int = 0
    failed: int = 0
    agents: tuple[str, ...] = ()
    by: dict[Signature, int] | None = None

    def hit(self, agent: str) -> None:
        """Record a failed dispatch of an agent; a few agents are enough to detect a burst."""
        if len(self.agents) < _BURST_AGENTS and agent not in self.agents:
            self.agents += (agent,)


class _Minutes:
    """Counts per five minutes, as far back as memory allows."""

    def __init__(self) -> None:
        self.since: int | None = None
        self._slots: dict[int, Slot] = {}
        self._numbers: list[int] = []
        self._counts = self._dispatches = self._outages = 0

    def dispatched(self, number: int, times: int) -> None:
        self._dispatches += times
        slot = self._slot(number)
        if slot is not None:
            slot.dispatches += times

    def failed(self, signature: Signature, number: int, agent: str) -> None:
        outage = is_outage(signature.fault)
        self._outages += outage
        slot = self._slot(number)
        if slot is None:
            return
        if outage:
            slot.failed += 1
            slot.hit(agent)
        if slot.by is None:
            slot.by = {}
        if signature not in slot.by:
            self._counts += 1
        slot.by[signature] = slot.by.get(signature, 0) + 1
        self._forget()

    def _slot(self, number: int) -> Slot | None:
        if self.since is not None and number < self.since:
            return None
        slot = self._slots.get(number)
        if slot is None:
            slot = self._slots[number] = Slot()
            heapq.heappush(self._numbers, number)
            self._counts += 1
            self._forget()
        return self._slots.get(number)

    def _forget(self) -> None:
        """Forget the oldest; the final result does not depend on the order of reading."""
        while self._counts > MINUTES and self._numbers:
            oldest = heapq.heappop(self._numbers)
            self._counts -= 1 + len(self._slots.pop(oldest).by or ())
            self.since = oldest + 1

    def bursts(self) -> Counter[Signature]:
        """Return how many failures of each signature came while many agents failed at once."""
        counts: Counter[Signature] = Counter()
        for number in bursts_of(self._slots, self._dispatches, self._outages):
            counts.update(self._slots[number].by or {})
        return counts


def bursts_of(slots: Mapping[int, Slot], dispatches: int, failed: int) -> set[int]:
    """Return the slots in which far more dispatches than usual failed, for many agents.

    Args:
        slots: by number; those with fewer than three failing agents may be left out.
        dispatches: the total of all slots, including those left out.
        failed: likewise.
    """
    bursts = set()
    for number, slot in slots.items():
        if len(slot.agents) < _BURST_AGENTS or not slot.dispatches:
            continue
        here = share(min(slot.failed, slot.dispatches), slot.dispatches)
        rest = dispatches - slot.dispatches
        usual = share(max(0, min(failed - slot.failed, rest)), rest)
        least = here.low if here is not None and here.low is not None else 0.0
        most = usual.high if usual is not None and usual.high is not None else 0.0
        if least > _BY_CHANCE * most:
            bursts.add(number)
    return bursts


# Faults that an outage of a model or of the network may cause; a wrong target is not one.
_OUTAGES = frozenset({"dead_child", "empty_answer", "infrastructure"})


def is_outage(fault: str) -> bool:
    """Tell whether a fault looks like an outage of a model or of the network."""
    return subtype_of(fault).name in _OUTAGES


def subtype_with(fault: str, failed: int, burst: int) -> Subtype:
    """Return the subtype of an issue with ``failed`` members, ``burst`` of them during an outage.

    Failures during an outage are faults of shared infrastructure. A few such members do not make it
    an issue of infrastructure.
    """
    subtype = subtype_of(fault)
    if subtype.name in _OUTAGES and burst * 2 > failed:
        return subtype_named("infrastructure") or subtype
    return subtype


def title_of(subtype: Subtype, signature: Signature, says: str | None = None) -> str:
    """Name an issue by its signature: ``Tool outside of the scope: desk → billing (tool=Edit)``.

    ``says`` is the text of a member of its group.
    """
    about = f" ({signature.about})" if signature.about else ""
    of = subtype.title
    if subtype.name == "other":
        of = f"`{signature.fault}` failed"
    edge = "" if {signature.sender, signature.receiver} == {UNTOLD} else f": {signature.edge}"
    title = f"{of}{edge}{about}"
    return title if says is None else f"{title}: {mask(says)[:_SAID]}"


def _count(counted: Counted, failure: Failure) -> None:
    counted.failed += 1
    counted.judged += failure.judged
    if failure.dispatch is not None:
        counted.dispatches += 1
    for kind in _KINDS:
        if kind in failure.versions:
            counted.names.setdefault(kind, _Bounded(NAMES)).add(failure.versions[kind])
    if failure.at is not None:
        counted.first = failure.at if counted.first is None else min(counted.first, failure.at)
        counted.last = failure.at if counted.last is None else max(counted.last, failure.at)


def _as_member(failure: Failure) -> Member:
    return Member(
        id=id_of(failure),
        conversation=failure.conversation,
        dispatch=failure.dispatch,
        evidence=failure.evidence[:_KEPT_IDS],
        says=failure.says[:_KEPT_LETTERS],
        at=failure.at,
        versions=failure.versions,
        judged=failure.judged,
    )


def _cut(counted: Counted, most: int) -> int:
    """Keep fewer members, those with the smallest hashes; return the number of removed ones."""
    before = len(counted.members)
    counted.members = heapq.nlargest(most, counted.members)
    heapq.heapify(counted.members)
    return before - len(counted.members)


def id_of(failure: Failure) -> str:
    """Return the id of a member: 16 hex digits of a hash."""
    return f"{-_order_of(failure.id):016x}"


def slot_of(at: float) -> int:
    """Return the number of the five-minute slot of a time."""
    return int(at // _BURST_SECONDS)


def rate_of(failed: int, dispatches: int) -> Rate:
    """Return failures per 1,000 dispatches, with a 95 % interval."""
    estimate = share(failed, dispatches) if 0 <= failed <= dispatches else None
    if estimate is not None:
        estimate = msgspec.structs.replace(
            estimate,
            value=estimate.value * 1000,
            low=None if estimate.low is None else estimate.low * 1000,
            high=None if estimate.high is None else estimate.high * 1000,
        )
    return Rate(failed=failed, dispatches=dispatches, per_1000=estimate)


Groups = dict[str, dict[str, list[str]]]
"""Groups of texts: ids of members, by the key of the signature and the name of the group."""


def can_be_grouped(issue: Issue) -> bool:
    """Tell whether an issue has enough members to be split into groups."""
    return len(issue.members) >= (MANY if issue.proven else 2 * LEAST)


def by_text(
    issue: Issue, kept: Groups, embed: Embed | None = None, *, hold: bool = False
) -> list[Issue]:
    """Split an issue by the texts of its members.

    A fault that a finding proves stays one issue, and names its ``groups``. If only an evaluator
    states it, each group is a separate issue, and the rest is another one.

    Args:
        issue: an issue with all its kept members.
        kept: the old groups; updated to the current ones.
        embed: returns vectors of texts; without it words are compared.
        hold: groups stay as they are, and only get new texts.
    """
    if not can_be_grouped(issue):
        return [issue]
    had = {id_: name for name, ids in kept.get(issue.key, {}).items() for id_ in ids}
    texts = [member.says for member in issue.members]
    old = [had.get(member.id) for member in issue.members]
    labels = group_texts(texts, old, embed, hold=hold)
    parts: defaultdict[int, list[Member]] = defaultdict(list)
    for member, label in zip(issue.members, labels, strict=True):
        parts[label].append(member)
    rest = parts.pop(-1, [])
    ordered = [parts[label] for label in sorted(parts)]
    if not ordered or (len(ordered) == 1 and not rest):
        return [issue]
    ids = [[member.id for member in part] for part in ordered]
    names = keep_names(kept.get(issue.key, {}), ids).names
    kept[issue.key] = dict(zip(names, ids, strict=True))
    examples = [middle_of([member.says for member in part[:MEMBERS]]) for part in ordered]
    if issue.proven:
        issue.groups = [
            TextGroup(name=name, members=len(part), example=example)
            for name, part, example in zip(names, ordered, examples, strict=True)
        ]
        return [issue]
    groups = [
        _part(issue, part, key=f"{issue.key}-{name}", group=name, says=example)
        for name, part, example in zip(names, ordered, examples, strict=True)
    ]
    if rest:
        left = _part(issue, rest)
        groups.append(msgspec.structs.replace(left, title=rest_title(left.title), is_rest=True))
    return groups


def rest_title(title: str) -> str:
    """Return the title for the rest of a signature, when most of its members are in groups."""
    return f"{title}: other reasons"


def _part(
    issue: Issue,
    members: list[Member],
    key: str | None = None,
    group: str | None = None,
    says: str | None = None,
) -> Issue:
    """Return the part of an issue that consists of some of its members."""
    times = [member.at for member in members if member.at is not None]
    # If there are more failures than were kept, the kept ones are a sample.
    count = round(issue.count * len(members) / len(issue.members))
    return msgspec.structs.replace(
        issue,
        key=key or issue.key,
        group=group,
        says=says,
        title=issue.title if says is None else f"{issue.title}: {mask(says)[:_SAID]}",
        count=count,
        judged=round(issue.judged * len(members) / len(issue.members)),
        first=min(times, default=None),
        last=max(times, default=None),
        rate=rate_of(count, issue.rate.dispatches),
        by_version=_of_members(issue.by_version, "agent", members),
        by_model=_of_members(issue.by_model, "model", members),
        members=members,
    )


_SAID = 120
"""The most characters of a member's text in the title of an issue."""


def _of_members(rates: dict[str, Rate], kind: str, members: Sequence[Member]) -> dict[str, Rate]:
    failed = Counter(member.versions.get(kind) for member in members)
    return {name: rate_of(failed[name], rate.dispatches) for name, rate in rates.items()}

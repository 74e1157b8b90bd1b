"""The provenance of an evaluation: hashes and versions that show whether two are comparable."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import msgspec

from .errors import counted
from .trace import AgentCard, Record, Trace


class AgentHashes(msgspec.Struct, frozen=True):
    """A hash for each agent, of its definition and of its instructions, and the models used."""

    agents: dict[str, str]
    prompts: dict[str, str]
    models: list[str]


class AgentsSeen:
    """Collects hashes from traces, in memory that only grows with versions of agents."""

    def __init__(self) -> None:
        self._last: dict[str, list[AgentCard]] = {}
        self._cards: dict[str, set[str]] = {}
        self._prompts: dict[str, set[str]] = {}
        self._models: set[str] = set()

    def add(self, agents: Mapping[str, AgentCard]) -> None:
        """Add the agents of one trace."""
        for name, card in agents.items():
            last = self._last.setdefault(name, [])
            if any(card is one or card == one for one in last):
                continue
            self._cards.setdefault(name, set()).add(_hash(card))
            if card.instructions:
                self._prompts.setdefault(name, set()).add(_hash(card.instructions))
            # Instructions with a date or a name differ in each trace: only some earlier ones are
            # kept for comparison, and the hashes of the others.
            last.append(card)
            del last[:-_COMPARED]

    def add_models(self, models: Iterable[str]) -> None:
        """Add the models that a case used."""
        self._models.update(models)

    def hashes(self) -> AgentHashes:
        """Return the hashes; an agent with two definitions has a hash of both."""
        return AgentHashes(
            agents={name: _of_all(hashes) for name, hashes in sorted(self._cards.items())},
            prompts={name: _of_all(hashes) for name, hashes in sorted(self._prompts.items())},
            models=sorted(self._models),
        )


_COMPARED = 8
"""How many definitions of an agent a new one is compared with before it is hashed."""


def _hash(value: AgentCard | str) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()


def _of_all(hashes: set[str]) -> str:
    """Return the hash of the only definition, or one of several, in any order."""
    if len(hashes) == 1:
        return min(hashes)[:16]
    return hashlib.sha256("\n".join(sorted(hashes)).encode()).hexdigest()[:16]


def content_version(trace: Trace) -> str:
    """Return a hash of the events in a trace, without its source."""
    encoded = msgspec.json.encode(trace.turns, order="deterministic")
    return hashlib.blake2b(encoded, digest_size=8).hexdigest()


class DatasetHash(Record, kw_only=True):
    """The content of the cases: ``hash`` is that of their ids and contents, in any order."""

    hash: str
    cases: int


class GitState(Record, kw_only=True):
    """The commit that was checked out; ``dirty``: tracked files were changed.

    ``None``: unknown.
    """

    commit: str
    dirty: bool | None


class ChangedText(Record, kw_only=True):
    """A changed component, with the hashes of its texts: only these are stored.

    ``cases`` are the ids of the selected examples, if it is a selection of cases.
    """

    name: str
    before: str
    after: str
    cases: list[str] | None = None

    def __str__(self) -> str:
        text = f"{self.name}: {self.before} → {self.after}"
        if self.cases is None:
            return text
        return f"{text} ({', '.join(self.cases) or 'no examples'})"


class Provenance(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The provenance of an evaluation; ``None`` and empty if unknown.

    ``evaluators`` has their versions, ``rubrics`` a hash of each question that was asked,
    ``judges`` the models that answer it. ``agents`` and ``prompts`` have a hash for each agent, of
    its whole definition and of its instructions. ``models`` are those that agents used,
    ``lower`` the evaluators for which low values are good. ``recordings`` is the content of traces
    that were scored without cases. Hashes are the first 16 hex digits of sha256. ``texts`` are the
    components that were changed for this evaluation.
    """

    dataset: DatasetHash | None = None
    recordings: DatasetHash | None = None
    config: str | None = None
    pass_rule: str = "all"
    evaluators: dict[str, str] = msgspec.field(default_factory=dict)
    rubrics: dict[str, str] = msgspec.field(default_factory=dict)
    judges: list[str] = msgspec.field(default_factory=list)
    agents: dict[str, str] = msgspec.field(default_factory=dict)
    prompts: dict[str, str] = msgspec.field(default_factory=dict)
    models: list[str] = msgspec.field(default_factory=list)
    lower: list[str] = msgspec.field(default_factory=list)
    provider: dict[str, str] = msgspec.field(default_factory=dict)
    git: GitState | None = None
    texts: list[ChangedText] = msgspec.field(default_factory=list)

    def with_agents(self, seen: AgentHashes) -> Self:
        """Add the agents that traces name; those from definitions stay."""
        return msgspec.structs.replace(
            self,
            agents={**seen.agents, **self.agents},
            prompts={**seen.prompts, **self.prompts},
            models=sorted({*seen.models, *self.models}),
        )

    def with_recordings(self, contents: Collection[str]) -> Self:
        """Add the version of a recorded set: the content of its traces, in any order."""
        if not contents:
            return self
        made = DatasetHash(hash=digest(sorted(contents)), cases=len(contents))
        return msgspec.structs.replace(self, recordings=made)

    def hash_of(self, what: str) -> str | None:
        """Return the one hash of dataset, recordings, config, all agents or all prompts."""
        if what == "recordings":
            return self.recordings.hash if self.recordings else None
        if what == "dataset":
            return self.dataset.hash if self.dataset else None
        if what == "config":
            return self.config
        by_agent: Mapping[str, str] = self.agents if what == "agents" else self.prompts
        return digest(by_agent) if by_agent else None


class Differs(Record, kw_only=True):
    """One difference of two evaluations; ``None`` if one does not state it."""

    what: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        return f"{self.what}: {self.before or 'not recorded'} → {self.after or 'not recorded'}"


def digest(value: Any) -> str:
    """Return the first 16 hex digits of the sha256 of plain data or records."""
    encoded = msgspec.json.encode(value, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()[:16]


def incomparable(before: Provenance, after: Provenance) -> list[Differs]:
    """Return what makes two evaluations incomparable.

    That is another dataset, and everything that defines values and verdicts: evaluators, their
    questions, the judges, the pass rule.
    """
    differing = _one("dataset", _dataset(before), _dataset(after))
    differing += _named("evaluator", before.evaluators, after.evaluators)
    differing += _named("rubric", before.rubrics, after.rubrics)
    differing += _one("judge", ", ".join(before.judges), ", ".join(after.judges))
    return differing + _one("pass rule", before.pass_rule, after.pass_rule)


def changed(before: Provenance, after: Provenance) -> list[Differs]:
    """Return the other differences, which may explain why one is better."""
    differing = _one("config", before.config, after.config)
    if before.recordings is not None and after.recordings is not None:
        differing += _one("recordings", before.recordings.hash, after.recordings.hash)
    # Traces only show agents that ran; an agent that did not run is not removed.
    differing += _both("agent", before.agents, after.agents)
    differing += _both("prompt", before.prompts, after.prompts)
    differing += _one("models", ", ".join(before.models), ", ".join(after.models))
    differing += _named("provider", before.provider, after.provider)
    differing += _texts(before.texts, after.texts)
    return [*differing, *_one("git", _git(before), _git(after))]


def _one(what: str, before: str | None, after: str | None) -> list[Differs]:
    same = (before or None) == (after or None)
    return [] if same else [Differs(what=what, before=before or None, after=after or None)]


def _named(what: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[Differs]:
    names = dict.fromkeys((*before, *after))
    return [
        differs
        for name in names
        for differs in _one(f"{what} {name}", before.get(name), after.get(name))
    ]


def _both(what: str, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Differs]:
    for name in before:
        if name in after:
            yield from _one(f"{what} {name}", before[name], after[name])


def _texts(before: Sequence[ChangedText], after: Sequence[ChangedText]) -> Iterator[Differs]:
    """Compare components: a side that did not change one has the other's original text."""
    old, new = ({each.name: each for each in side} for side in (before, after))
    for name in dict.fromkeys((*old, *new)):
        was = old[name].after if name in old else new[name].before
        now = new[name].after if name in new else old[name].before
        yield from _one(f"component {name}", was, now)


def _dataset(of: Provenance) -> str | None:
    if of.dataset is None:
        return None
    return f"{of.dataset.hash} ({counted(of.dataset.cases, 'case')})"


def _git(of: Provenance) -> str | None:
    return None if of.git is None else of.git.commit[:12] + (" (changed)" if of.git.dirty else "")

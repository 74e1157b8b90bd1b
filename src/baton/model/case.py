"""What should happen: cases and datasets. ``None`` means that nothing is stated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from .content import Content
from .errors import InputError
from .trace import DispatchKind, Record


class Location(Record, kw_only=True):
    """Where a case stands; a line counts from 1."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Session(Record, kw_only=True):
    """The session a case is played in."""

    app: str | None = None
    user: str | None = None
    id: str | None = None


class CaseRubric(Record, kw_only=True):
    """A statement an answer is judged by."""

    text: str
    id: str | None = None
    type: str | None = None


class ExpectedDispatch(Record, kw_only=True):
    """A hand-off that should happen."""

    to: str
    kind: DispatchKind | None = None
    prompt_contains: list[str] | None = None
    tools: list[str] | None = None
    parallel: bool | None = None


class ExpectedToolCall(Record, kw_only=True):
    """A tool call that should happen; arguments of ``None`` are not stated."""

    name: str
    arguments: dict[str, Any] | None = None
    agent: str | None = None


class ExpectedVisit(Record, kw_only=True):
    """An agent that should have its say, after which agents, and in which words."""

    agent: str
    after: list[str] | None = None
    says: list[str] | None = None


class ExpectedTurn(Record, kw_only=True):
    """A user message and what should come of it."""

    input: Content
    new_session: bool = False
    response: Content | None = None
    response_contains: list[str] | None = None
    structured: dict[str, Any] | None = None
    agents: list[str] | None = None
    dispatches: list[ExpectedDispatch] | None = None
    tool_calls: list[ExpectedToolCall] | None = None
    interactions: list[ExpectedVisit] | None = None
    rubrics: list[CaseRubric] | None = None


class Scenario(Record, kw_only=True):
    """A conversation that a simulated user has to hold; it has no fixed turns."""

    start: str
    plan: str


class Case(Record, kw_only=True):
    """One conversation and what should happen in it, turn by turn."""

    id: str
    where: Location | None = None
    turns: list[ExpectedTurn]
    scenario: Scenario | None = None
    session: Session = msgspec.field(default_factory=Session)
    state: dict[str, Any] = msgspec.field(default_factory=dict)
    final_state: dict[str, Any] | None = None
    rubrics: list[CaseRubric] = msgspec.field(default_factory=list)
    evaluators: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    tags: list[str] = msgspec.field(default_factory=list)
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def first_input(self) -> str:
        """The first user message, by which a trace without a case id finds its case."""
        if self.scenario is not None:
            return self.scenario.start
        return self.turns[0].input.plain() if self.turns else ""

    def content_hash(self) -> str:
        """Return a hash of all that the case states, without where it stands (sha256, hex)."""
        bare = msgspec.structs.replace(self, where=None)
        return hashlib.sha256(msgspec.json.encode(bare, order="deterministic")).hexdigest()


class CaseKey(NamedTuple):
    """What finds a case: its id, its id within its own file, its first user message.

    ``overrides`` are its evaluators' options, which are checked before anything runs.
    """

    id: str
    local_id: str
    first_input: str
    overrides: dict[str, dict[str, Any]]
    where: Location | None


class Dataset:
    """Cases in order, with ids that are unique. ``cases`` may be read from disk one at a time."""

    def __init__(
        self,
        cases: Sequence[Case],
        *,
        name: str = "dataset",
        format: Literal["adk", "judge-llm", "baton", "mixed"] = "baton",
        keys: Iterable[CaseKey] | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        """Index ``cases`` by ``keys``; without these, every case is read for its own."""
        self.cases = cases
        self.name = name
        self.format = format
        self.notes = list(notes)
        if keys is None:
            keys = (_key(case) for case in cases)
        self._by_id: dict[str, int] = {}
        self._by_local_id: dict[str, list[int]] = {}
        self._by_input: dict[bytes, list[int]] = {}
        self.overriding: list[CaseKey] = []
        for position, key in enumerate(keys):
            if self._by_id.setdefault(key.id, position) != position:
                raise InputError(f"the case id `{key.id}` stands twice")
            if key.local_id != key.id:
                self._by_local_id.setdefault(key.local_id, []).append(position)
            if key.overrides:
                self.overriding.append(key)
            if key.first_input:
                self._by_input.setdefault(_message_key(key.first_input), []).append(position)

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Iterator[Case]:
        return iter(self.cases)

    @property
    def ids(self) -> list[str]:
        """The ids of all cases, in order."""
        return list(self._by_id)

    def by_id(self, case_id: str) -> list[int]:
        """Return the places of the cases with this id; several when files share it."""
        if case_id in self._by_id:
            return [self._by_id[case_id]]
        return self._by_local_id.get(case_id, [])

    def by_input(self, message: str) -> list[int]:
        """Return the places of the cases that open with this user message; space is folded."""
        return self._by_input.get(_message_key(message), [])


def _key(case: Case) -> CaseKey:
    return CaseKey(case.id, case.id, case.first_input, case.evaluators, case.where)


def _message_key(message: str) -> bytes:
    return hashlib.blake2b(" ".join(message.split()).encode(), digest_size=12).digest()

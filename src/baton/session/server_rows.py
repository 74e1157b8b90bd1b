"""Answers of a server: rows of its lists, as types that server and clients share."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

import msgspec

from baton.feed.issue_progress import Fix, Investigation, Promotion
from baton.feed.issues import Issue
from baton.model import AgentCard, Status, Trace
from baton.stats.calibration import Quality, Together
from baton.stats.intervals import Estimate

T = TypeVar("T")
Interval = Literal["hour", "day", "week"]
"""The step of a trend."""


class Page(msgspec.Struct, Generic[T], kw_only=True):
    """A page of rows; ``next`` is the cursor of the next page, ``None`` for the last one.

    In a text search, ``searched_to`` is the start of the oldest conversation that was searched: a
    page may be empty although others follow.
    """

    items: list[T]
    next: str | None = None
    searched_to: datetime | None = None

    @property
    def size(self) -> int:
        """How many rows it has."""
        return len(self.items)


class Conversation(msgspec.Struct, kw_only=True):
    """A conversation in a list. ``id`` is its number on this server, ``key`` the id of its record.

    ``verdict`` is the worst status of its scores, ``failed`` the number of failed scores. ``gone``:
    retention deleted some of its spans. ``match`` quotes the text that a search found.
    """

    id: int
    key: str
    version: int
    state: str
    source: str
    framework: str | None
    service: str | None
    agents: list[str]
    preview: str | None
    started: datetime | None
    ended: datetime | None
    seen: datetime
    read: datetime
    status: str
    turns: int
    runs: int
    dispatches: int
    spans: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    verdict: str | None
    failed: int
    gone: bool
    match: str | None = None


class ConversationSums(msgspec.Struct, kw_only=True):
    """Sums over conversations; ``more``: there are more conversations than were counted.

    ``passed``, ``failed`` and ``errors`` count worst verdicts; ``seconds`` is the mean duration.
    """

    conversations: int
    more: bool
    open: int
    passed: int
    failed: int
    errors: int
    dispatches: int
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    seconds: float | None


class ConversationRecord(msgspec.Struct, kw_only=True):
    """A conversation with its record; without one, ``deleted`` says why."""

    conversation: Conversation
    record: Trace | None
    deleted: str | None = None


class Records(msgspec.Struct, Generic[T], kw_only=True):
    """Complete conversations. ``next`` is the cursor of the next page.

    ``deleted`` counts conversations that are left out because retention deleted their records.
    """

    items: list[T]
    deleted: int = 0
    next: str | None = None

    @property
    def size(self) -> int:
        """How many conversations it is about."""
        return len(self.items) + self.deleted


class RunRow(msgspec.Struct, kw_only=True):
    """A run of an agent. ``id`` is the id in the record, ``turn`` counts from 0."""

    conversation_id: int
    conversation: str
    id: str
    turn: int
    agent: str
    agent_version: str | None
    model: str | None
    status: str
    started: datetime | None
    ended: datetime | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    tool_calls: int


class DispatchRow(msgspec.Struct, kw_only=True):
    """A dispatch in a list. ``id`` is the id in the record; tokens are those of its runs."""

    conversation_id: int
    conversation: str
    id: str
    turn: int
    from_agent: str | None
    to_agent: str
    agent_version: str | None
    kind: str
    mode: str
    basis: str
    status: str
    depth: int
    started: datetime | None
    ended: datetime | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    service: str | None
    verdict: str | None


Why = Literal["disputed", "judges", "votes", "failed", "sample"]
"""Why a dispatch is in a review: people disagree; judges disagree, or a judge and the proof in the
record; samples of a judge disagree; a rule failed it; it is in a random sample."""


class Given(msgspec.Struct, kw_only=True):
    """A person's last label of a dispatch."""

    by: str
    value: str | float
    note: str | None
    at: datetime | None


class Queued(msgspec.Struct, kw_only=True):
    """A dispatch that waits for a label.

    ``why`` is ``None`` for a dispatch that the person took before. ``labels`` is the number of
    people who labelled it, ``held_by`` who has reserved it; a person also sees the end of their
    own reservation.
    """

    dispatch: DispatchRow
    why: Why | None
    labels: int
    held_by: list[str]
    skipped: bool
    until: datetime | None = None


class Review(msgspec.Struct, kw_only=True):
    """The dispatches that wait for a person's labels by a rubric, and the labels so far.

    ``waiting`` has the number of dispatches for each reason, counted up to ``counted``.
    ``labelled`` counts dispatches with a label, ``by`` the labels of each person, ``disputed``
    dispatches without a majority, ``unknown`` labels that the rubric does not have (anymore).
    ``agreement`` compares each pair of people on what both labelled.
    """

    rubric: str
    items: list[Queued]
    more: bool
    waiting: dict[Why, int]
    counted: int
    labelled: int
    by: dict[str, int]
    disputed: int
    unknown: int
    agreement: list[Together]


class TrialAnswer(msgspec.Struct, kw_only=True):
    """A judge's answer about one thing in a trial of a rubric, and earlier answers.

    ``people`` has the labels by person, ``before`` is the last verdict of the saved rubric.
    ``trouble`` says why there is no verdict.
    """

    conversation_id: int
    trace: str
    subject: str
    agent: str | None
    status: Status
    label: str | None = None
    value: float | None = None
    reason: str = ""
    quote: str = ""
    model: str | None = None
    version: str = ""
    trouble: str | None = None
    people: dict[str, str | float] = {}
    before: str | None = None


class Trial(msgspec.Struct, kw_only=True):
    """A trial of a rubric: the number of questions (``asked``) and the answers.

    ``quality`` compares the judge with people on what both labelled. It is ``None`` if there is
    no such thing, or for the reason in ``incomparable``. ``changed`` counts the verdicts that
    differ from those before.
    """

    id: int
    rubric: str
    version: str
    judge: str
    by: str
    created: datetime
    state: Literal["waiting", "running", "done", "failed", "stopped"]
    asked: int
    answers: list[TrialAnswer]
    cost_usd: float
    error: str | None
    quality: Quality | None = None
    incomparable: str | None = None
    changed: int = 0


class ScoreRow(msgspec.Struct, kw_only=True):
    """A score of a rule. ``version`` is the version of the scored conversation.

    ``sampled`` is false if the conversation is not in the sample of the rule and was scored
    because another rule failed it; rates leave such scores out. ``rescore`` is the number of the
    rescore that added the score, ``None`` if it was made on arrival; ``replaced_by`` is the number
    of the rescore that replaced it.
    """

    id: int
    conversation_id: int
    version: int
    rule: str
    sampled: bool = True
    evaluator: str
    type: str
    evaluator_version: str
    unit: str
    subject: list[str]
    dispatch: str | None
    from_agent: str | None
    to_agent: str | None
    agent_version: str | None
    status: str
    value: float | None
    threshold: float | None
    reason: str | None
    finding: str | None
    details: dict[str, Any]
    evidence: list[Any]
    judge: dict[str, Any] | None
    cost_usd: float | None
    at: datetime
    rescore: int | None = None
    replaced_by: int | None = None


class Rows(msgspec.Struct, kw_only=True):
    """Conversations with all their rows; scores are those of the newest versions."""

    conversations: list[Conversation]
    runs: list[RunRow]
    dispatches: list[DispatchRow]
    scores: list[ScoreRow]
    next: str | None = None

    @property
    def size(self) -> int:
        """How many conversations it is about."""
        return len(self.conversations)


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Conversations to export together: those after a cursor, up to ``last`` and including it."""

    cursor: str
    last: str
    conversations: int


class Parts(msgspec.Struct, kw_only=True):
    """Where to cut an export, so that its parts can be fetched side by side."""

    items: list[Part]
    next: str | None = None

    @property
    def size(self) -> int:
        """How many conversations it is about."""
        return sum(each.conversations for each in self.items)


class Counts(msgspec.Struct, kw_only=True):
    """Scores of one evaluator by status; ``pass_rate`` counts only passed and failed ones."""

    evaluator: str
    passed: int
    failed: int
    errors: int
    skipped: int
    mean: float | None
    pass_rate: Estimate | None


class Edge(msgspec.Struct, kw_only=True):
    """Dispatches from one agent to another; ``from_agent`` is ``None`` for program and user.

    ``seconds`` is the mean duration of a dispatch, ``cost_usd`` the total of the known costs, and
    ``None`` if none is known.
    """

    from_agent: str | None
    to_agent: str
    dispatches: int
    completed: int
    failed: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    seconds: float | None
    evaluators: list[Counts]


class AgentRow(msgspec.Struct, kw_only=True):
    """An agent: the number of its runs, and of the dispatches to it and from it.

    ``passed`` and ``failed`` count its scores from all evaluators; ``cost_usd`` is the cost of the
    dispatches to it, as far as known.
    """

    name: str
    runs: int
    first: datetime | None
    last: datetime | None
    received: int
    sent: int
    failed_dispatches: int
    passed: int
    failed: int
    cost_usd: float | None


class AgentVersion(msgspec.Struct, kw_only=True):
    """A version of an agent's definition; ``conversation_id`` is the newest one that shows it.

    ``runs``, ``cost_usd`` and the times are ``None`` if they are unknown for this version.
    """

    version: str | None
    model: str | None
    runs: int | None
    first: datetime | None
    last: datetime | None
    cost_usd: float | None
    conversation_id: int
    card: AgentCard | None


class CheckpointPoint(msgspec.Struct, kw_only=True):
    """Verdicts of one interval, which starts at ``at`` (seconds since the epoch)."""

    at: float
    passed: int
    failed: int


class AgentAxis(msgspec.Struct, kw_only=True):
    """Verdicts of one evaluator about an agent, while it had this version and model."""

    evaluator: str
    version: str | None
    model: str | None
    points: list[CheckpointPoint]


class FailedScore(msgspec.Struct, kw_only=True):
    """Why a dispatch did not pass."""

    evaluator: str
    status: str
    reason: str | None
    finding: str | None


class FailedDispatch(msgspec.Struct, kw_only=True):
    """A dispatch that did not pass, with the scores that say so."""

    dispatch: DispatchRow
    scores: list[FailedScore]


class Point(msgspec.Struct, kw_only=True):
    """One interval of a trend, which starts at ``at``: dispatches, or an evaluator's scores."""

    at: datetime
    agent_version: str | None
    count: int
    passed: int
    failed: int
    errors: int
    skipped: int
    mean: float | None
    pass_rate: Estimate | None
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    seconds: float | None


class Deletion(msgspec.Struct, kw_only=True):
    """What retention deleted from a day: bodies, bytes, and the number of their conversations."""

    day: str
    at: datetime
    why: str
    bodies: int
    bytes: int
    conversations: int


class InboxProblem(msgspec.Struct, kw_only=True):
    """A body of the inbox that could not be read, with the version of Baton that tried."""

    id: int
    kind: str
    form: str
    name: str | None
    size: int
    received: datetime
    attempts: int
    error: str
    reader: str


class UnreadTrace(msgspec.Struct, kw_only=True):
    """A trace whose conversation could not be read, with the version of Baton that tried.

    ``last_seen`` is when the last of its spans arrived.
    """

    trace_id: str
    spans: int
    last_seen: datetime
    error: str
    reader: str


class UnknownRule(msgspec.Struct, kw_only=True):
    """A rule that programs name (`baton.otel.tag`) and that their project does not have.

    ``conversations`` counts how many of the newest thousand name it; ``last_seen`` is when the
    last span of the newest of these arrived.
    """

    name: str
    conversations: int
    last_seen: datetime


class IssueRow(Issue, kw_only=True, omit_defaults=True):
    """An issue of a server.

    Attributes:
        trend: failures on each of the last 14 days (UTC), today last.
        went_into: the key of the issue that has its members now, after its texts were grouped
            again.
        scored: the share of its edge's dispatches that its evaluators scored, if less than all,
            for example because of a rule's ``sample``. Rates are estimated from these; ``count``
            includes failures outside the sample.
    """

    trend: list[int] = msgspec.field(default_factory=list)
    scored: float | None = None
    went_into: str | None = None


class IssueEvent(msgspec.Struct, kw_only=True):
    """An event of an issue.

    ``kind`` is ``new``, ``regressed``, ``burst``, ``state`` (a person set it), ``merged``,
    ``split`` or ``gone`` (its texts were grouped again), ``investigation``, ``fix``, ``promotion``.
    """

    at: datetime | None
    kind: str
    by: str | None = None
    details: dict[str, Any] = {}


class IssueWork(msgspec.Struct, kw_only=True):
    """A requested investigation, proof, or search for a fix.

    ``error`` says why it failed or found nothing. ``agent`` is the name of the agent in
    server.yaml; ``task`` is ``improve`` for a search for a fix.
    """

    state: Literal["waiting", "running", "done", "failed"]
    by: str
    created: datetime | None
    error: str | None = None
    agent: str | None = None
    task: Literal["prove", "improve"] | None = None


class IssueRecord(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An issue with some members, its events (the latest first), and its progress.

    ``work`` is the last requested investigation, ``proving`` the last proof of its fix or search
    for one.
    """

    issue: IssueRow
    events: list[IssueEvent] = []
    investigation: Investigation | None = None
    fix: Fix | None = None
    promotion: Promotion | None = None
    work: IssueWork | None = None
    proving: IssueWork | None = None


class Listed(msgspec.Struct, Generic[T], kw_only=True):
    """A list without pages."""

    items: list[T]


class Health(msgspec.Struct, kw_only=True):
    """Whether the server works; ``waiting`` is the number of unread requests in the inbox."""

    status: Literal["ok"]
    version: str
    waiting: int | None = None
    oldest_seconds: float | None = None


class Failure(msgspec.Struct, kw_only=True):
    """The error of a request, and what to do."""

    error: str
    do: str


class Rescore(msgspec.Struct, kw_only=True):
    """The application of a rule to stored conversations that match ``filter`` and times.

    ``by`` is ``None`` for the command line. ``state`` is ``waiting``, ``running``, ``stopped`` (the
    same command continues), ``done``, or ``failed``. ``conversations`` counts the examined
    conversations, ``added`` and ``replaced`` their scores. Judges are ``asked`` about some
    conversations; ``waiting`` counts those without an answer. These conversations are left out:
    ``deleted`` ones (by retention), ``moved`` ones (a late span made a new version meanwhile),
    ``untold`` ones (nobody knows which rules their program named), and ``failed`` ones (they could
    not be scored); ``error`` is that of the last one.
    """

    id: int
    created: datetime
    by: str | None
    rule: str
    since: str | None
    until: str | None
    filter: str | None
    state: Literal["waiting", "running", "stopped", "done", "failed"]
    conversations: int
    added: int
    replaced: int
    asked: int
    waiting: int
    deleted: int
    moved: int
    untold: int
    failed: int
    error: str | None = None
    ended: datetime | None = None


class EvaluationJob(msgspec.Struct, kw_only=True):
    """A requested evaluation of a server.

    ``state`` is ``waiting``, ``running``, ``done``, or ``failed`` for the reason in ``error``.
    ``status`` and ``exit_code`` are those of `baton eval`. ``cases`` counts the ``results`` by
    status while it runs; ``planned`` is the expected number of results, if known. If
    ``made_here`` is false, this is a listed folder that cannot be started again.
    """

    id: int
    created: datetime
    by: str
    state: Literal["waiting", "running", "done", "failed"]
    status: str | None = None
    exit_code: int | None = None
    error: str | None = None
    ended: datetime | None = None
    name: str | None = None
    results: int | None = None
    planned: int | None = None
    cases: dict[str, int] = {}
    made_here: bool = True

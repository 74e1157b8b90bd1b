"""The tables: received requests (the inbox), and what was read from them (the index).

SQLite and PostgreSQL use the same definitions. Bodies of conversations are in daily files
(:mod:`baton.server.bodies`); rows contain their places there. Every table except ``deletion`` and
``web_secret`` has a ``project``; :mod:`baton.server.store` refuses statements that do not name it.

Times are seconds since the epoch, UTC, as in the record. JSON is stored as text.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
)

INBOX = MetaData()
"""Received requests. In SQLite a separate file, so that receiving never waits for workers."""
INDEX = MetaData()
"""What was read from the inbox: narrow rows for lists and sums."""

_Id = BigInteger().with_variant(Integer, "sqlite")  # SQLite only increments INTEGER keys itself

inbox = Table(
    "inbox",
    INBOX,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("sha256", LargeBinary(32), nullable=False),
    Column("received", Double, nullable=False),
    Column("kind", Text, nullable=False),  # traces, logs, recording
    Column("form", Text, nullable=False),  # protobuf, json; for a recording its media type
    Column("name", Text),  # the name of a recording's file
    Column("size", Integer, nullable=False),  # bytes, unpacked
    Column("body", LargeBinary),  # zstd; None once it was pruned
    Column("state", Text, nullable=False),  # new, done, failed
    Column("attempts", Integer, nullable=False, default=0),
    # How many workers started to read it alone and crashed before they finished.
    Column("begun", Integer, nullable=False, default=0),
    Column("error", Text),  # why it could not be read
    Column("reader", Text),  # the version of Baton that read it last
    UniqueConstraint("project", "sha256"),  # duplicate bodies are stored once
    Index("inbox_by_state", "state", "id"),
    sqlite_autoincrement=True,  # `inbox_read` and logs contain ids, which must not be reused
)

project = Table(
    "project",
    INDEX,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created", Double, nullable=False),
)

api_key = Table(
    "api_key",
    INDEX,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("sha256", LargeBinary(32), nullable=False, unique=True),  # hash of the key
    Column("rights", Text, nullable=False),  # comma-separated: ingest, read, review, run, admin
    Column("created", Double, nullable=False),
    Column("used", Double),
    Column("revoked", Double),
)

inbox_read = Table(
    "inbox_read",
    INDEX,
    # Written in one transaction with the contents of the body: if the worker is killed before it
    # marks the body in the inbox, another file in SQLite, the body is not read twice.
    Column("id", BigInteger, nullable=False),
    Column("project", Integer, nullable=False),
    PrimaryKeyConstraint("project", "id"),
)

trace = Table(
    "trace",
    INDEX,
    Column("project", Integer, nullable=False),
    # 32 hex digits; `label:NAME` for log records that name a conversation and no trace.
    Column("trace_id", Text, nullable=False),
    Column("first_seen", Double, nullable=False),  # by this machine's clock
    Column("last_seen", Double, nullable=False),
    Column("spans", Integer, nullable=False),
    Column("logs", Integer, nullable=False),
    Column("root", Boolean, nullable=False),  # a span without a parent arrived: it has ended
    Column("changed", Boolean, nullable=False),  # spans arrived since it was read
    Column("due", Double, nullable=False),  # when to check it again
    Column("read", Double),  # when its conversation was last read as complete
    Column("shown", Double),  # when its conversation was last read as open
    Column("error", Text),  # why its conversation could not be read
    Column("reader", Text),  # the version of Baton that could not read it
    PrimaryKeyConstraint("project", "trace_id"),
    Index("trace_by_due", "changed", "due"),
)
Index(
    "trace_unread",
    trace.c.project,
    trace.c.last_seen,
    sqlite_where=trace.c.error.is_not(None),
    postgresql_where=trace.c.error.is_not(None),
)

being_read = Table(
    "being_read",
    INDEX,
    # Traces whose conversations are being read. Those that a crashed worker left are read alone.
    Column("project", Integer, nullable=False),
    Column("trace_id", Text, nullable=False),
    Column("begun", Integer, nullable=False),  # workers that tried it since the last success
    PrimaryKeyConstraint("project", "trace_id"),
)

tie = Table(
    "tie",
    INDEX,
    # Keys that connect traces: `trace:ID` for a link, `label:NAME` for a session.
    Column("project", Integer, nullable=False),
    Column("trace_id", Text, nullable=False),
    Column("other", Text, nullable=False),
    PrimaryKeyConstraint("project", "trace_id", "other"),
    Index("tie_by_other", "project", "other"),
)

chunk = Table(
    "chunk",
    INDEX,
    # Unchanged spans and log records of one trace, in a body.
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("trace_id", Text, nullable=False),
    Column("day", Text, nullable=False),  # the daily file, YYYY-MM-DD, by the time of arrival
    Column("place", BigInteger, nullable=False),  # the offset in the daily file
    Column("spans", Integer, nullable=False),
    Column("bytes", Integer, nullable=False),
    Index("chunk_by_trace", "project", "trace_id"),
    Index("chunk_by_day", "day"),
)

conversation = Table(
    "conversation",
    INDEX,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("key", Text, nullable=False),  # the id of its record: session, conversation or trace
    Column("version", Integer, nullable=False),  # incremented each time it is read again
    Column("state", Text, nullable=False),  # open, complete
    Column("source", Text, nullable=False),  # format of the source: otlp, claude, adk, ...
    Column("framework", Text),
    Column("service", Text),  # service.name of its resource
    Column("agents", Text, nullable=False),  # JSON list in start order, without duplicates
    Column("preview", Text),  # the first words of the first user message
    Column("started", Double),  # from the spans
    Column("ended", Double),
    Column("seen", Double, nullable=False),  # arrival of the last span, by this machine's clock
    Column("read", Double, nullable=False),  # when this version was created
    Column("status", Text, nullable=False),  # of its last turn
    Column("turns", Integer, nullable=False),
    Column("runs", Integer, nullable=False),
    Column("dispatches", Integer, nullable=False),
    Column("spans", Integer, nullable=False),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cost_usd", Double),
    Column("verdict", Text),  # the worst status of its scores; None: no scores
    Column("failed", Integer, nullable=False, default=0),  # number of failed scores
    Column("day", Text, nullable=False),  # the daily file with the record
    Column("place", BigInteger, nullable=False),
    Column("gone", Boolean, nullable=False, default=False),  # retention deleted some of its spans
    # JSON list of the rules that its program named; None: an older version did not store them.
    Column("named_rules", Text),
    UniqueConstraint("project", "key"),
    Index("conversation_by_day", "day"),
)

# The order of lists, also for sources without times.
_time = func.coalesce(conversation.c.started, conversation.c.seen)
Index("conversation_by_start", conversation.c.project, _time, conversation.c.id)
Index("conversation_by_verdict", conversation.c.project, conversation.c.verdict, _time)

conversation_trace = Table(
    "conversation_trace",
    INDEX,
    Column("project", Integer, nullable=False),
    Column("trace_id", Text, nullable=False),
    Column("conversation", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "trace_id", "conversation"),
    Index("conversation_trace_by_conversation", "project", "conversation"),
)

run = Table(
    "run",
    INDEX,
    # Only for the current version: runs and dispatches are copies from the record.
    Column("project", Integer, nullable=False),
    Column("conversation", BigInteger, nullable=False),
    Column("id", Text, nullable=False),  # as in the record
    Column("turn", Integer, nullable=False),  # from 0
    Column("agent", Text, nullable=False),
    Column("agent_version", Text),
    Column("model", Text),
    Column("status", Text, nullable=False),
    Column("started", Double),
    Column("ended", Double),
    Column("input_tokens", BigInteger),
    Column("output_tokens", BigInteger),
    Column("cost_usd", Double),
    Column("tool_calls", Integer, nullable=False),
    PrimaryKeyConstraint("project", "conversation", "id"),
    Index("run_by_agent", "project", "agent", "started"),
    # Covers the query for the versions of an agent: no row has to be read.
    Index(
        "run_by_version",
        "project",
        "agent",
        "agent_version",
        "model",
        "started",
        "conversation",
        "cost_usd",
    ),
)

dispatch = Table(
    "dispatch",
    INDEX,
    Column("project", Integer, nullable=False),
    Column("conversation", BigInteger, nullable=False),
    Column("id", Text, nullable=False),  # as in the record
    Column("turn", Integer, nullable=False),
    Column("from_agent", Text),  # None: the program or the user
    Column("to_agent", Text, nullable=False),
    Column("agent_version", Text),  # version of the receiver
    Column("kind", Text, nullable=False),
    Column("mode", Text, nullable=False),
    Column("basis", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("depth", Integer, nullable=False),
    Column("started", Double),  # that of the conversation if unknown, because lists need one
    Column("ended", Double),
    Column("input_tokens", BigInteger),  # those of the runs it started
    Column("output_tokens", BigInteger),
    Column("cost_usd", Double),
    Column("service", Text),
    Column("verdict", Text),  # the worst status of the scores about it
    Column("model", Text),  # the model of its first run with a known model
    Column("untold", Text),  # `from` or `to`: the source does not name this agent; else None
    PrimaryKeyConstraint("project", "conversation", "id"),
    Index("dispatch_by_start", "project", "started"),
    Index("dispatch_by_target", "project", "to_agent", "started"),
    Index("dispatch_by_target_verdict", "project", "to_agent", "verdict", "started"),
    Index("dispatch_by_sender", "project", "from_agent", "started"),
    Index("dispatch_by_edge", "project", "from_agent", "to_agent", "started"),
    Index("dispatch_by_verdict", "project", "verdict", "started"),
)

score = Table(
    "score",
    INDEX,
    # Rows are only added: a new version of a conversation gets new scores, and the old ones stay.
    # Scores that a rescore replaced stay as well, with the number of the rescore.
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("conversation", BigInteger, nullable=False),
    Column("version", Integer, nullable=False),  # version of the conversation
    Column("rule", Text, nullable=False),
    # False: outside the sample of the rule, scored because another rule failed. Not in rates.
    Column("sampled", Boolean, nullable=False, default=True),
    Column("evaluator", Text, nullable=False),
    Column("type", Text, nullable=False),
    Column("evaluator_version", Text, nullable=False),
    Column("unit", Text, nullable=False),
    Column("subject", Text, nullable=False),  # JSON list of ids in the record
    Column("dispatch", Text),  # the scored dispatch, if it is one
    Column("from_agent", Text),
    Column("to_agent", Text),  # the receiver of the dispatch, or the agent of the run
    Column("agent_version", Text),
    Column("status", Text, nullable=False),
    Column("value", Double),
    Column("threshold", Double),
    Column("reason", Text),
    Column("finding", Text),  # the fault that it proves, if any
    Column("details", Text, nullable=False),  # JSON
    Column("evidence", Text, nullable=False),  # JSON
    Column("judge", Text),  # JSON: model, rubric version, samples, tokens, cost
    Column("cost_usd", Double),  # cost of judging
    Column("at", Double, nullable=False),
    Column("made_by", Text),  # hash of evaluator, options and judge; None: an earlier version's
    # The rescore that added it: no news about the agents. None: scored on arrival.
    Column("rescore", BigInteger),
    Column("replaced_by", BigInteger),  # the rescore that replaced it
    Index("score_by_conversation", "project", "conversation", "version"),
    Index("score_by_evaluator", "project", "evaluator", "status", "at"),
    Index("score_by_rule", "project", "rule", "id"),
)
Index(
    "score_by_finding",
    score.c.project,
    score.c.finding,
    score.c.at,
    # A small index, because few scores prove a fault.
    sqlite_where=score.c.finding.is_not(None),
    postgresql_where=score.c.finding.is_not(None),
)


def _sums() -> list[Column[Any]]:
    """Return the columns of sums over dispatches and scores: keys, and figures."""
    return [
        Column("from_agent", Text, nullable=False),  # empty: the program or the user
        Column("to_agent", Text, nullable=False),
        Column("agent_version", Text, nullable=False),  # empty: unknown
        Column("evaluator", Text, nullable=False),  # empty: the dispatches themselves
        Column("count", BigInteger, nullable=False),
        Column("passed", BigInteger, nullable=False),  # for dispatches themselves: completed ones
        Column("failed", BigInteger, nullable=False),
        Column("errors", BigInteger, nullable=False),
        Column("skipped", BigInteger, nullable=False),
        Column("value_sum", Double, nullable=False),
        Column("value_count", BigInteger, nullable=False),
        Column("input_tokens", BigInteger, nullable=False),
        Column("output_tokens", BigInteger, nullable=False),
        Column("cost_usd", Double, nullable=False),
        Column("cost_known", BigInteger, nullable=False, server_default="0"),  # known costs
        Column("seconds", Double, nullable=False),
    ]


rollup = Table(
    "rollup",
    INDEX,
    # Sums by hour, which outlive their rows. A new version replaces the old one's part.
    Column("project", Integer, nullable=False),
    Column("hour", BigInteger, nullable=False),  # since the epoch, by the start of the dispatch
    *_sums(),
    PrimaryKeyConstraint("project", "hour", "from_agent", "to_agent", "agent_version", "evaluator"),
    Index("rollup_by_evaluator", "project", "evaluator", "hour"),
)
rollup_day = Table(
    "rollup_day",
    INDEX,
    # The same by day: adding up the hours of a year takes too long for a page.
    Column("project", Integer, nullable=False),
    Column("day", BigInteger, nullable=False),  # since the epoch, in UTC
    *_sums(),
    PrimaryKeyConstraint("project", "day", "from_agent", "to_agent", "agent_version", "evaluator"),
    Index("rollup_day_by_evaluator", "project", "evaluator", "day"),
)
conversation_sum = Table(
    "conversation_sum",
    INDEX,
    # Sums over the stored conversations, by the day on which they started.
    Column("project", Integer, nullable=False),
    Column("day", BigInteger, nullable=False),  # since the epoch, in UTC; -1: unknown
    Column("count", BigInteger, nullable=False),
    Column("opened", BigInteger, nullable=False),  # open conversations
    Column("passed", BigInteger, nullable=False),  # by the worst verdict
    Column("failed", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("dispatches", BigInteger, nullable=False),
    # Each sum, with the number of conversations for which the value is known.
    Column("input_tokens", BigInteger, nullable=False),
    Column("input_known", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("output_known", BigInteger, nullable=False),
    Column("cost_usd", Double, nullable=False),
    Column("cost_known", BigInteger, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("seconds_known", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "day"),
)

judging = Table(
    "judging",
    INDEX,
    # The queue of judges. If a judge is down, entries wait; nothing is dropped.
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("conversation", BigInteger, nullable=False),
    Column("version", Integer, nullable=False),
    Column("rule", Text, nullable=False),
    Column("state", Text, nullable=False),  # waiting, budget, done
    Column("attempts", Integer, nullable=False),
    Column("due", Double, nullable=False),
    Column("error", Text),
    Column("created", Double, nullable=False),
    Column("rescore", BigInteger),  # the rescore that asks; None: the conversation was just read
    UniqueConstraint("project", "conversation", "version", "rule"),
    Index("judging_by_due", "state", "due"),
)

spending = Table(
    "spending",
    INDEX,
    # The cost of a rule's judges in a period, for budgets.
    Column("project", Integer, nullable=False),
    Column("rule", Text, nullable=False),
    Column("period", Text, nullable=False),  # 2026-11-22, 2026-11-22T09, 2026-11
    Column("cost_usd", Double, nullable=False),
    PrimaryKeyConstraint("project", "rule", "period"),
)

alert_watch = Table(
    "alert_watch",
    INDEX,
    # The state of an alert's condition: its figures up to a score.
    Column("project", Integer, nullable=False),
    Column("rule", Text, nullable=False),
    Column("condition", Text, nullable=False),  # as it is written
    Column("score", BigInteger, nullable=False),  # the last examined score
    Column("watches", Text, nullable=False),  # JSON, by agent
    PrimaryKeyConstraint("project", "rule", "condition"),
)

result_sent = Table(
    "result_sent",
    INDEX,
    # The last score that was sent to an OpenTelemetry endpoint.
    Column("project", Integer, primary_key=True, autoincrement=False),
    Column("score", BigInteger, nullable=False),
)

alert = Table(
    "alert",
    INDEX,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("rule", Text, nullable=False),
    Column("condition", Text, nullable=False),  # as it is written
    Column("subject", Text, nullable=False),  # the agent, for an alert by agent; else empty
    Column("opened", Double, nullable=False),
    Column("closed", Double),
    Column("message", Text, nullable=False),  # message about the last change
    Index("alert_by_rule", "project", "rule", "subject"),
)

delivery = Table(
    "delivery",
    INDEX,
    # Messages about alerts that are not delivered yet.
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("alert", BigInteger, nullable=False),
    Column("change", Text, nullable=False),  # opened, closed
    Column("channel", Text, nullable=False),  # webhook, slack, github
    Column("message", Text, nullable=False),  # JSON
    Column("delivered", Double),
    Column("answer", Text),  # the information for closing it: the number of a GitHub issue
    Column("attempts", Integer, nullable=False),
    Column("due", Double, nullable=False),
    Column("error", Text),
    Index("delivery_by_due", "delivered", "due"),
    Index("delivery_by_alert", "project", "alert"),
)

label = Table(
    "label",
    INDEX,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("conversation", BigInteger, nullable=False),
    Column("subject", Text, nullable=False),  # the id of a dispatch, run, step or turn; or the key
    Column("rubric", Text, nullable=False),
    Column("value", Text, nullable=False),  # JSON
    Column("by", Text, nullable=False),
    Column("at", Double, nullable=False),
    Column("note", Text),
    Column("origin", Text, nullable=False),
    Index("label_by_conversation", "project", "conversation"),
    Index("label_by_rubric", "project", "rubric", "at"),
)

review_hold = Table(
    "review_hold",
    INDEX,
    # Reservations in a review, so that nobody else gets the dispatch, and skipped dispatches.
    Column("project", Integer, nullable=False),
    Column("rubric", Text, nullable=False),
    Column("conversation", BigInteger, nullable=False),
    Column("subject", Text, nullable=False),  # the id of a dispatch
    Column("by", Text, nullable=False),
    Column("skipped", Boolean, nullable=False),
    Column("until", Double, nullable=False),  # the end of a reservation; for a skip, its time
    PrimaryKeyConstraint("project", "rubric", "conversation", "subject", "by"),
)

rubric_trial = Table(
    "rubric_trial",
    INDEX,
    # Trials of rubrics before they are saved: a worker asks the judge about dispatches.
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("created", Double, nullable=False),
    Column("by", Text, nullable=False),
    Column("request", Text, nullable=False),  # JSON
    Column("state", Text, nullable=False),  # waiting, running, done, failed, stopped
    Column("due", Double, nullable=False),  # while it runs: until when it is its worker's
    Column("answers", Text, nullable=False),  # JSON
    Column("cost_usd", Double, nullable=False),
    Column("error", Text),
    Column("ended", Double),
    Index("rubric_trial_by_state", "state", "due"),
)

issue = Table(
    "issue",
    INDEX,
    # Groups of failures with the same fault (`baton.feed.issues`). Counts stay when conversations
    # are deleted, like the sums by hour.
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("key", Text, nullable=False),  # the key of the signature, then the name of its group
    Column("signature", Text, nullable=False),  # the key of the signature
    Column("text_group", Text),  # None: no group of texts, or the texts outside of all groups
    Column("fault", Text, nullable=False),
    Column("sender", Text, nullable=False),  # empty: the program or the user; `?`: unknown
    Column("receiver", Text, nullable=False),  # `?`: unknown
    Column("about", Text, nullable=False),
    Column("says", Text),  # the main words of its group
    Column("title", Text, nullable=False),
    Column("subtype", Text, nullable=False),
    Column("category", Text, nullable=False),
    Column("proven", Boolean, nullable=False),
    Column("evaluators", Text, nullable=False),  # JSON
    Column("count", BigInteger, nullable=False),
    Column("dispatched", BigInteger, nullable=False),  # those of them with a dispatch
    Column("judged", BigInteger, nullable=False),
    Column("infrastructure", BigInteger, nullable=False),
    Column("first", Double, nullable=False),
    Column("last", Double, nullable=False),
    Column("groups", Text, nullable=False),  # JSON: the texts of members, for a proven fault
    Column("state", Text, nullable=False),  # new, open, muted, fixed, regressed
    Column("version", Text),  # the version in which it is fixed
    Column("note", Text),
    Column("by", Text),
    Column("since", Double),
    Column("went_into", Text),  # the key of the issue that has its members now
    UniqueConstraint("project", "key"),
    Index("issue_by_signature", "project", "signature"),
    Index("issue_by_count", "project", "count", "id"),
    Index("issue_by_last", "project", "last", "id"),
)

issue_member = Table(
    "issue_member",
    INDEX,
    # One failure; a dispatch has at most one per issue.
    Column("project", Integer, nullable=False),
    Column("conversation", BigInteger, nullable=False),
    Column("signature", Text, nullable=False),  # the key of the signature
    Column("place", Text, nullable=False),  # the dispatch, or empty
    Column("issue", BigInteger, nullable=False),
    Column("id", Text, nullable=False),  # a hash of its content
    Column("key", Text, nullable=False),  # the key of the conversation
    Column("evaluators", Text, nullable=False),  # JSON
    Column("evidence", Text, nullable=False),  # JSON
    Column("says", Text, nullable=False),
    Column("agent", Text, nullable=False),  # whose run failed; `?`: unknown
    Column("agent_version", Text),
    Column("model", Text),
    Column("judged", Boolean, nullable=False),
    Column("at", Double, nullable=False),
    PrimaryKeyConstraint("project", "conversation", "signature", "place"),
    Index("issue_member_by_issue", "project", "issue", "id"),
    Index("issue_member_by_time", "project", "issue", "at"),
)

issue_count = Table(
    "issue_count",
    INDEX,
    # Failures of an issue by day, version and model.
    Column("project", Integer, nullable=False),
    Column("issue", BigInteger, nullable=False),
    Column("day", Integer, nullable=False),  # since the epoch
    Column("agent_version", Text, nullable=False),  # empty: unknown
    Column("model", Text, nullable=False),
    Column("failed", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "issue", "day", "agent_version", "model"),
)

issue_edge = Table(
    "issue_edge",
    INDEX,
    # Numbers of dispatches, for rates; returns do not count.
    Column("project", Integer, nullable=False),
    Column("sender", Text, nullable=False),  # as in `issue`
    Column("receiver", Text, nullable=False),
    Column("agent_version", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("dispatches", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "sender", "receiver", "agent_version", "model"),
)

issue_slot = Table(
    "issue_slot",
    INDEX,
    # Failures in the same five minutes: an outage affects many agents at once.
    Column("project", Integer, nullable=False),
    Column("slot", Integer, nullable=False),  # count of five minutes since the epoch; -1: total
    Column("issue", BigInteger, nullable=False),  # 0: the dispatches of all agents
    Column("agent", Text, nullable=False),
    Column("dispatches", BigInteger, nullable=False),
    Column("failed", BigInteger, nullable=False),
    Column("outages", BigInteger, nullable=False),  # failures of the kind that outages cause
    PrimaryKeyConstraint("project", "slot", "issue", "agent"),
)
Index(
    "issue_slot_of_outages",
    issue_slot.c.project,
    issue_slot.c.slot,
    issue_slot.c.agent,
    sqlite_where=issue_slot.c.outages > 0,
    postgresql_where=issue_slot.c.outages > 0,
)

issue_event = Table(
    "issue_event",
    INDEX,
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("issue", BigInteger, nullable=False),
    Column("at", Double, nullable=False),
    Column("kind", Text, nullable=False),  # new, regressed, burst, state, merged, split, gone, ...
    Column("by", Text),
    Column("details", Text, nullable=False),  # JSON
    Index("issue_event_by_issue", "project", "issue", "id"),
)

issue_progress = Table(
    "issue_progress",
    INDEX,
    # The progress of an issue (`baton.feed.issue_progress`).
    Column("project", Integer, nullable=False),
    Column("issue", BigInteger, nullable=False),
    Column("progress", Text, nullable=False),  # JSON: investigation, fix, promotion
    PrimaryKeyConstraint("project", "issue"),
)

issue_work = Table(
    "issue_work",
    INDEX,
    # Requested investigations: a worker asks the model.
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("issue", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("state", Text, nullable=False),  # waiting, running, done, failed
    Column("due", Double, nullable=False),  # while it runs: until when it is its worker's
    Column("error", Text),
    Index("issue_work_by_state", "state", "due"),
)

issue_proof = Table(
    "issue_proof",
    INDEX,
    # Requested proofs of fixes, and searches for fixes: a separate process plays the agent.
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("issue", BigInteger, nullable=False),
    Column("by", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("state", Text, nullable=False),  # waiting, running, done, failed
    Column("due", Double, nullable=False),  # while it runs: when its worker counts as lost
    Column("error", Text),
    Column("agent", Text, nullable=False),  # its name in server.yaml
    Column("task", Text, nullable=False, server_default="prove"),  # prove, improve
    Index("issue_proof_by_state", "state", "due"),
)

issue_notice = Table(
    "issue_notice",
    INDEX,
    # Notices about issues: one message per channel at a time, about the latest event.
    Column("project", Integer, nullable=False),
    Column("issue", BigInteger, nullable=False),  # 0: the row with the last examined event
    Column("channel", Text, nullable=False),
    Column("event", BigInteger, nullable=False),  # the latest to report
    Column("told", BigInteger, nullable=False),  # the latest reported
    Column("outside", Text),  # its id in the channel: the number of a GitHub issue, an id of Linear
    Column("attempts", Integer, nullable=False),
    Column("due", Double, nullable=False),
    Column("error", Text),
    PrimaryKeyConstraint("project", "issue", "channel"),
)

issue_due = Table(
    "issue_due",
    INDEX,
    # Conversations whose failures changed, until issues are updated.
    Column("project", Integer, nullable=False),
    Column("conversation", BigInteger, nullable=False),
    Column("stamp", BigInteger, nullable=False),  # incremented if it changes again meanwhile
    PrimaryKeyConstraint("project", "conversation"),
)

issue_regroup = Table(
    "issue_regroup",
    INDEX,
    # When the texts of a project were last grouped, and whether a new grouping is requested.
    Column("project", Integer, primary_key=True, autoincrement=False),
    Column("done", Double, nullable=False),
    Column("asked", Boolean, nullable=False),
)

job = Table(
    "job",
    INDEX,
    # Evaluations that were requested over the API and run on this server.
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("created", Double, nullable=False),
    Column("by", Text, nullable=False),
    Column("request", Text, nullable=False),  # JSON
    Column("state", Text, nullable=False),  # waiting, running, done, failed
    Column("attempts", Integer, nullable=False),
    Column("due", Double, nullable=False, server_default="0"),  # when its worker counts as lost
    Column("folder", Text),  # the folder of the evaluation, when it exists
    Column("status", Text),  # status of the evaluation: passed, failed, error
    Column("exit_code", Integer),
    Column("error", Text),
    Column("ended", Double),
    Index("job_by_state", "state", "id"),
)

rescore = Table(
    "rescore",
    INDEX,
    # Applications of rules to stored conversations.
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("created", Double, nullable=False),
    Column("by", Text),  # who requested it over the API; None: the command line
    Column("request", Text, nullable=False),  # JSON
    Column("made_by", Text, nullable=False),  # hash of the rule at that time
    Column("state", Text, nullable=False),  # waiting, running, done, failed
    Column("attempts", Integer, nullable=False),
    Column("cursor", Text),  # of the last finished conversation, for continuing
    Column("counts", Text, nullable=False),  # JSON
    Column("error", Text),
    Column("ended", Double),
    Index("rescore_by_state", "state", "id"),
)

saved_view = Table(
    "saved_view",
    INDEX,
    # A named filter of a page; everyone who can read the project sees it.
    Column("id", _Id, primary_key=True, autoincrement=True),
    Column("project", Integer, nullable=False),
    Column("page", Text, nullable=False),  # its address, such as /conversations
    Column("name", Text, nullable=False),
    Column("query", Text, nullable=False),  # query of the address, without the project
    Column("by", Text, nullable=False),
    Column("at", Double, nullable=False),
    UniqueConstraint("project", "page", "name"),
)

web_secret = Table(
    "web_secret",
    INDEX,
    # The key for signing the cookies of pages: one row for all processes of a server.
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("value", LargeBinary, nullable=False),
)

gap = Table(
    "gap",
    INDEX,
    # A histogram of the silence before more spans of a conversation arrive: when is it complete?
    Column("project", Integer, nullable=False),
    Column("bucket", Integer, nullable=False),
    Column("count", BigInteger, nullable=False),
    PrimaryKeyConstraint("project", "bucket"),
)

deletion = Table(
    "deletion",
    INDEX,
    # What retention deleted, for pages and the API. A daily file contains all projects.
    Column("day", Text, primary_key=True),
    Column("at", Double, nullable=False),
    Column("why", Text, nullable=False),  # age, bytes
    Column("bodies", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("conversations", BigInteger, nullable=False),
)

"""Alerts: one message when a figure of live scores crosses its limit, and one when it is back.

This is decided after every score (:mod:`baton.stats.sequential`). Messages stay in the store until
they are delivered, so that a restart loses none. Each has an id that stays the same for every
attempt, and the store records that it is being sent before it is. If the server dies in between, or
gets no answer, nobody knows whether it arrived, so it is sent again: GitHub is searched for it, a
webhook gets the same bytes and ``Idempotency-Key``, and the text for Slack says so. Messages go
only to the addresses in `server.yaml`: the content of a trace is only text.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from sqlalchemy import Connection, insert, select, text, update

from baton.formats.document import Document
from baton.formats.explain_mistakes import Path as Place
from baton.http.addresses import Network, network
from baton.http.client import Client, Request, Retries, access
from baton.http.credentials import Credentials, is_header_name, is_header_value
from baton.http.credentials import address as address_of
from baton.http.rate_limits import retry_after
from baton.http.responses import Limits, NoAnswer, Refused
from baton.model import InputError, Problem, suggestion
from baton.stats.intervals import Estimate, mean_interval
from baton.stats.sequential import Watch

from .database import EVERY_PROJECT
from .queues import deliver_all
from .rules import Alert, Channel, Rule, Rules
from .schema import alert, alert_watch, delivery, score
from .schema import project as project_table
from .store import Store

OVER = 50
"""The default number of scores for the figure of a condition."""
_AGENTS = 1000
"""Maximum agents of a condition. Names come from spans, and each takes some memory."""
_SCORES = 5000
"""Scores that are examined together."""
_FIRST_LOOK = 86_400.0
"""A new condition examines scores from this many seconds ago."""
_SETTLED = 5.0
"""Seconds after which no score with an earlier number can appear: in PostgreSQL rows do not become
visible in the order of their numbers."""
_AT_ONCE = 16
"""Maximum messages that are taken, and sent, at the same time. The others wait for the next round,
so that a burst opens no more connections than this, and no lease runs out before its turn comes."""
_LEASE = 120.0
"""Seconds for which a message is reserved for the worker that delivers it."""
_FIRST_PAUSE, _LONGEST_PAUSE = 15.0, 3600.0
_LIMITS = Limits(silence=10.0, seconds=20.0, answer_mib=1.0, fixed=("timeout", "max_seconds"))
_DIGITS_OF_A_MOMENT = 12
"""Maximum digits of `x-ratelimit-reset`; today's times have ten. The header comes from the other
side: more digits are no time, and with some hundred the number is infinite."""
ONCE = Retries(1, 0.0, statuses=(), faults=())
OPENING = "?"
"""The prefix of a note that is stored before something is written elsewhere, with the mark that it
will have there: if the result is unknown (a crash, no answer), the mark is searched for first."""
AGAIN = "(sent again: it is not known whether it arrived before)"
"""Follows the text in Slack, which recognises no repeated message."""
OWN_FAULTS = 500
"""From this status on, an answer does not guarantee that nothing was written."""
_PAGES = 5
"""Maximum pages of a hundred issues or comments to search for a mark."""
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+")
_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the settings in `alerts:`."""


class WebhookSpec(Strict, frozen=True, kw_only=True):
    """An address that gets messages as JSON; ``headers`` may contain credentials."""

    url: str
    headers: dict[str, str] = {}


class GithubSpec(Strict, frozen=True, kw_only=True):
    """A repository that gets an issue for each alert: `owner/name`, and a token that may write it.

    ``url`` is the address of the API, for a self-hosted GitHub.
    """

    repository: str
    token: str
    url: str = "https://api.github.com"


class LinearSpec(Strict, frozen=True, kw_only=True):
    """A team of Linear that gets an issue for each issue: its id, and a key that may write it.

    ``done`` and ``open`` are ids of states of its workflow, for issues that are fixed and for those
    that came back. Without them a comment says so.
    """

    team: str
    token: str
    done: str | None = None
    open: str | None = None
    url: str = "https://api.linear.app/graphql"


IssueChannel = Literal["webhook", "slack", "github", "linear"]
IssueNews = Literal["new", "regressed", "burst"]


class IssuesSpec(Strict, frozen=True, kw_only=True):
    """What to report about issues, and where.

    Attributes:
        to: channels that have an address.
        on: what to report: a new issue, one that came back, a burst over many agents at once.
        least: the number of failures a new issue needs before it is reported.
        link: the address of the pages, for links.
        title: a template for titles of issues at GitHub and Linear.
        text: a template for texts there and at Slack.
        webhook: the body for the webhook instead of Baton's own: JSON whose texts are templates.
    """

    to: Annotated[list[IssueChannel], msgspec.Meta(min_length=1)]
    on: tuple[IssueNews, ...] = ("new", "regressed", "burst")
    least: Annotated[int, msgspec.Meta(ge=1)] = 3
    link: str | None = None
    title: str | None = None
    text: str | None = None
    webhook: dict[str, Any] | None = None


ISSUE_FIELDS = (
    "id", "event", "issue", "project", "title", "subtype", "category", "state", "sender",
    "receiver", "edge", "count", "per_1000", "low", "high", "first", "last", "infrastructure",
    "link", "text",
)  # fmt: skip
"""The names that templates may use in braces: ``{title}``."""
PLACEHOLDER = re.compile(r"\{(\w*)\}")


class Addresses(Strict, frozen=True, kw_only=True):
    """Where alerts go. ``private`` lists the private addresses (or networks) that may be used."""

    webhook: str | WebhookSpec | None = None
    slack: str | None = None
    github: GithubSpec | None = None
    linear: LinearSpec | None = None
    issues: IssuesSpec | None = None
    private: list[str] = []

    @property
    def channels(self) -> list[Channel]:
        """The channels that have an address."""
        names: list[Channel] = ["webhook", "slack", "github"]
        return [name for name in names if getattr(self, name) is not None]

    @property
    def networks(self) -> list[Network]:
        """The private networks that may be used."""
        return [network(each, "alerts.private") for each in self.private]


NOWHERE = Addresses()


def read_addresses(document: Document | None, value: object, written: object = None) -> Addresses:
    """Read `alerts:` of a `server.yaml`.

    ``value`` is its content with environment variables resolved, ``written`` the same with
    references.

    Raises:
        InputError: all faults, with lines; a token in plain text.
    """
    if value is None:
        return NOWHERE
    document = document or Document("server.yaml", b"", "yaml").part({"alerts": value}, ())
    addresses = document.convert(value, Addresses, path=("alerts",))
    problems: list[Problem] = []

    def check(place: Place, made: Any) -> None:
        try:
            made()
        except InputError as error:
            problems.extend(
                document.problem_at(("alerts", *place), each.message) for each in error.problems
            )

    hook = addresses.webhook
    if hook is not None:
        url = hook if isinstance(hook, str) else hook.url
        check(("webhook",), lambda: address_of(url, "alerts.webhook", "https://HOST/PATH"))
    for name, header in (hook.headers if isinstance(hook, WebhookSpec) else {}).items():
        if not is_header_name(name) or not is_header_value(header):
            problems.append(document.problem_at(("alerts", "webhook"), f"`{name}` is not a header"))
    if addresses.slack is not None:
        slack = addresses.slack
        check(("slack",), lambda: address_of(slack, "alerts.slack", "https://hooks.slack.com/..."))
    github = addresses.github
    if github is not None:
        check(("github", "url"), lambda: address_of(github.url, "alerts.github.url"))
        if not _REPOSITORY.fullmatch(github.repository):
            message = f"`{github.repository}` is not a repository: write `owner/name`"
            problems.append(document.problem_at(("alerts", "github", "repository"), message))
    linear = addresses.linear
    if linear is not None:
        check(("linear", "url"), lambda: address_of(linear.url, "alerts.linear.url"))
    for name in ("github", "linear"):
        as_written = written.get(name) if isinstance(written, Mapping) else None
        token = as_written.get("token") if isinstance(as_written, Mapping) else None
        if token is not None and not _REFERENCE.fullmatch(str(token)):
            message = "a token does not belong in a file: write `${NAME}`"
            problems.append(document.problem_at(("alerts", name, "token"), message))
    for place, message in _faults_of_issues(addresses):
        problems.append(document.problem_at(("alerts", "issues", *place), message))
    for index, each in enumerate(addresses.private):
        check(("private", index), lambda each=each: network(each, ""))
    if problems:
        raise InputError(problems)
    return addresses


def _faults_of_issues(addresses: Addresses) -> Iterator[tuple[Place, str]]:
    """Yield the faults of `alerts.issues`: channels without an address, unknown fields."""
    issues = addresses.issues
    if issues is None:
        return
    for at, channel in enumerate(issues.to):
        if getattr(addresses, channel) is None:
            yield ("to", at), f"`alerts.{channel}` has no address: add one"
    texts: list[tuple[Place, str]] = []

    def collect_texts(place: Place, value: object) -> None:
        if isinstance(value, str):
            texts.append((place, value))
        elif isinstance(value, Mapping):
            for name, each in value.items():
                collect_texts((*place, name), each)
        elif isinstance(value, list):
            for number, each in enumerate(value):
                collect_texts((*place, number), each)

    for name in ("title", "text", "webhook"):
        collect_texts((name,), getattr(issues, name))
    for place, message in texts:
        for name in PLACEHOLDER.findall(message):
            if name not in ISSUE_FIELDS:
                yield place, f"there is no field `{name}`; {suggestion(name, ISSUE_FIELDS)}"


class Statement(NamedTuple):
    """The content of a message about a condition: its figure, the limit, and a sentence."""

    figure: Estimate
    limit: float
    text: str


class Condition(NamedTuple):
    """A condition on the scores of one evaluator of a rule.

    Args:
        evaluator: the evaluator of the scores.
        text: the condition as it is listed; it identifies the condition.
        to: the channels for messages.
        watch: makes a watch for the values of an agent.
        values: returns the agent of a score, or nothing for all, and its value from 0 to 1; low is
            bad.
        state: returns what to report about an agent after its watch has opened or closed.
    """

    evaluator: str
    text: str
    to: tuple[Channel, ...]
    watch: Callable[[], Watch]
    values: Callable[[Mapping[str, Any]], Iterable[tuple[str, float]]]
    state: Callable[[str, Watch], Statement]


def condition_of(made: Alert) -> Condition:
    """Return the condition that an alert of a rule watches."""
    when = made.when
    low_is_bad = when.sign == "<"

    def watch() -> Watch:
        return Watch(limit=when.limit if low_is_bad else 1 - when.limit, over=when.over or OVER)

    def values(row: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
        value = min(1.0, max(0.0, row["value"]))
        agent = (row["to_agent"] or "") if when.by_agent else ""
        return [(agent, value if low_is_bad else 1 - value)]

    def state(agent: str, watch: Watch) -> Statement:
        figure = mean_interval(watch.last if low_is_bad else [1 - value for value in watch.last])
        shown = f"{when.evaluator}" + (f" of {agent}" if agent else "")
        direction = "below" if low_is_bad else "above"
        text = (
            f"{shown} is {direction} {when.limit:g}: {figure} over the last {watch.over}"
            if watch.is_open
            else f"{shown} is back: {figure} over the last {watch.over}"
        )
        return Statement(figure, when.limit, text)

    return Condition(when.evaluator, when.text, made.to, watch, values, state)


def check_alerts(store: Store, rules: Rules, now: float) -> int:
    """Examine the scores since the last time; returns how many alerts changed.

    Only first scores count: when a late span makes a new version of a conversation, it is scored
    again, and the same dispatch would count twice. Scores beyond the sample of a rule are left out,
    as they were chosen because something failed. So are scores of a rescore, which are about the
    past.

    Raises:
        Unavailable: the store is not available now; nothing is lost.
    """
    changed = 0
    for name, project in store.projects().items():
        for rule in rules.rules:
            if rule.spec.project in (None, name):
                for each in rule.alerts:
                    changed += look(store, project, rule, condition_of(each), now)
    return changed


def look(store: Store, project: int, rule: Rule, condition: Condition, now: float) -> int:
    """Examine all scores that are new to a condition; returns how many alerts changed."""
    changed = 0
    while True:
        looked, changes = _look(store, project, rule, condition, now)
        changed += changes
        if looked < _SCORES:
            return changed


def _look(
    store: Store, project: int, rule: Rule, condition: Condition, now: float
) -> tuple[int, int]:
    """Examine some scores; returns how many there were, and how many alerts changed."""
    key = (
        (alert_watch.c.project == project)
        & (alert_watch.c.rule == rule.name)
        & (alert_watch.c.condition == condition.text)
    )
    query = select(alert_watch.c.score, alert_watch.c.watches).where(key)
    of = (store, project, rule.name, condition.evaluator)
    with store.read() as connection:
        known = connection.execute(query).one_or_none()
        if not _new_scores(connection, *of, known and known.score, now, 1):
            return 0, 0
    with store.write() as connection:
        if store.is_postgresql:
            # One worker at a time; others have nothing to do here meanwhile.
            lock = text("SELECT pg_try_advisory_xact_lock(hashtext('baton alerts'))")
            if not connection.execute(lock).scalar():
                return 0, 0
        known = connection.execute(query).one_or_none()
        rows = _new_scores(connection, *of, known and known.score, now, _SCORES)
        if not rows:
            return 0, 0
        watches: dict[str, Watch] = {}
        if known is not None:
            watches = msgspec.json.decode(known.watches, type=dict[str, Watch])
        changes = 0
        for row in rows:
            if row["rescore"] is not None:
                continue
            for agent, value in condition.values(row):
                watch = watches.get(agent)
                if watch is None:
                    if len(watches) >= _AGENTS:
                        continue
                    watch = watches[agent] = condition.watch()
                if watch.add(value):
                    _change(connection, project, rule, condition, agent, watch, now)
                    changes += 1
        values = {
            "score": rows[-1]["id"],
            "watches": msgspec.json.encode(watches).decode(),
        }
        if known is None:
            row = {"project": project, "rule": rule.name, "condition": condition.text, **values}
            connection.execute(insert(alert_watch).values(row))
        else:
            connection.execute(update(alert_watch).where(key).values(values))
    return len(rows), changes


def _new_scores(
    connection: Connection,
    store: Store,
    project: int,
    rule: str,
    evaluator: str,
    after: int | None,
    now: float,
    most: int,
) -> list[dict[str, Any]]:
    """Return verdicts after a number, in order; rescores are included so that they are skipped."""
    earlier = score.alias("earlier")
    again = select(earlier.c.id).where(
        earlier.c.project == project,
        earlier.c.conversation == score.c.conversation,
        earlier.c.version < score.c.version,
        earlier.c.rule == score.c.rule,
        earlier.c.evaluator == score.c.evaluator,
        earlier.c.subject == score.c.subject,
        earlier.c.value.is_not(None),
        earlier.c.rescore.is_(None),
    )
    query = (
        select(
            score.c.id,
            score.c.to_agent,
            score.c.value,
            score.c.rescore,
            score.c.evaluator_version,
            score.c.details,
        )
        .where(
            score.c.project == project,
            score.c.rule == rule,
            score.c.evaluator == evaluator,
            score.c.sampled,
            score.c.value.is_not(None),
            ~again.exists(),
        )
        .order_by(score.c.id)
        .limit(most)
    )
    query = query.where(score.c.at >= now - _FIRST_LOOK if after is None else score.c.id > after)
    if store.is_postgresql:
        query = query.where(score.c.at <= now - _SETTLED)
    return [dict(row) for row in connection.execute(query).mappings()]


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """The message of an alert; times are RFC 3339.

    ``project`` is its name. ``id`` is a UUID, different for each message and channel. ``figure`` is
    the mean of the last ``over`` scores, ``low`` and ``high`` are its 95 % interval; ``text`` says
    all of it in a sentence.
    """

    event: str
    alert: int
    project: str | int
    rule: str
    condition: str
    agent: str | None
    figure: float
    low: float | None
    high: float | None
    over: int
    limit: float
    opened: str
    closed: str | None
    text: str
    id: str = ""


def _change(
    connection: Connection,
    project: int,
    rule: Rule,
    condition: Condition,
    agent: str,
    watch: Watch,
    now: float,
) -> None:
    """Open or close an alert, and put its message into the queue of each channel."""
    mine = (alert.c.project == project) & (alert.c.rule == rule.name)
    mine &= (alert.c.condition == condition.text) & (alert.c.subject == agent)
    opened, closed = now, None
    if watch.is_open:
        row = {
            "project": project,
            "rule": rule.name,
            "condition": condition.text,
            "subject": agent,
            "opened": now,
            "message": "",
        }
        key = connection.execute(insert(alert).values(row)).inserted_primary_key
        assert key is not None  # noqa: S101 - the database counts it up
        number = int(key[0])
    else:
        open_one = select(alert.c.id, alert.c.opened).where(mine, alert.c.closed.is_(None))
        open_one = open_one.order_by(alert.c.id.desc()).limit(1)
        number, opened = connection.execute(open_one).one()
        closed = now
    figure, limit, statement = condition.state(agent, watch)
    message = Message(
        event="alert.opened" if watch.is_open else "alert.closed",
        alert=number,
        project=connection.execute(
            select(project_table.c.name).where(project_table.c.id == project)
        ).scalar_one(),
        rule=rule.name,
        condition=condition.text,
        agent=agent or None,
        figure=figure.value,
        low=figure.low,
        high=figure.high,
        over=watch.over,
        limit=limit,
        opened=_rfc3339(opened),
        closed=None if closed is None else _rfc3339(closed),
        text=f"{statement} (rule: {rule.name})",
    )
    change = update(alert).where(alert.c.project == project, alert.c.id == number)
    connection.execute(change.values(closed=closed, message=message.text))
    _send_later(connection, project, condition.to, message, now)


def close_alerts(
    store: Store, project: int, prefix: str, kept: Collection[tuple[str, str]], why: str, now: float
) -> int:
    """Close open alerts of conditions that no longer exist; returns how many.

    Args:
        store: the store.
        project: the project.
        prefix: the prefix of the conditions to examine.
        kept: the conditions that still exist: the rule and the condition.
        why: the reason to report.
        now: the time.
    """
    query = select(alert).where(
        alert.c.project == project,
        alert.c.closed.is_(None),
        alert.c.condition.startswith(prefix, autoescape=True),
    )
    with store.read() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
    over = [row for row in rows if (row["rule"], row["condition"]) not in kept]
    if not over:
        return 0
    with store.write() as connection:
        for row in over:
            mine = (alert.c.project == project) & (alert.c.id == row["id"])
            change = update(alert).where(mine, alert.c.closed.is_(None))
            closing = f"{row['condition']}: {why} (rule: {row['rule']})"
            if not connection.execute(change.values(closed=now, message=closing)).rowcount:
                continue  # another worker closed it
            opened = select(delivery.c.channel, delivery.c.message).where(
                delivery.c.project == project,
                delivery.c.alert == row["id"],
                delivery.c.change == "opened",
            )
            for channel, message in connection.execute(opened).all():
                last = msgspec.structs.replace(
                    msgspec.json.decode(message, type=Message),
                    event="alert.closed",
                    closed=_rfc3339(now),
                    text=closing,
                )
                _send_later(connection, project, [channel], last, now)
    return len(over)


def _send_later(
    connection: Connection, project: int, to: Iterable[Channel], message: Message, now: float
) -> None:
    for channel in to:
        own = msgspec.structs.replace(message, id=str(uuid.uuid4()))
        row = {
            "project": project,
            "alert": message.alert,
            "change": message.event.removeprefix("alert."),
            "channel": channel,
            "message": msgspec.json.encode(own).decode(),
            "attempts": 0,
            "due": now,
        }
        connection.execute(insert(delivery).values(row))


def _rfc3339(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Parcel(NamedTuple):
    """A message on its way.

    ``issue`` is the number of its alert's GitHub issue. If it ``is_again``, an earlier attempt may
    already have arrived.
    """

    id: int
    project: int
    alert: int
    channel: Channel
    message: Message
    attempts: int
    due: float
    issue: str | None
    is_again: bool


class _Sent(NamedTuple):
    """The result of a message: an answer to keep, or the reason why it was not delivered.

    ``wait`` is how many seconds the other side asks to wait. ``is_absent``: it certainly did not
    arrive, or was refused.
    """

    answer: str | None = None
    error: str | None = None
    wait: float = 0.0
    is_absent: bool = False


def deliver(store: Store, addresses: Addresses, now: float) -> int:
    """Send messages that are due; returns how many were delivered.

    An undelivered message is sent again after increasing pauses of up to an hour; the message that
    an alert closed waits for the one that it opened.

    Raises:
        Unavailable: the store is not available now; nothing is lost.
    """
    parcels = _take(store, now)
    if not parcels:
        return 0

    async def deliver(parcel: _Parcel) -> bool:
        sent = await _send(addresses, parcel)
        # At once, not after the slowest of the others: until then, a crash sends it again.
        return await asyncio.to_thread(_keep, store, parcel, sent, now)

    return deliver_all(parcels, deliver)


def _keep(store: Store, parcel: _Parcel, sent: _Sent, now: float) -> bool:
    """Record the result of a message; return whether it was delivered."""
    values: dict[str, Any] = {"delivered": now, "answer": sent.answer, "error": None}
    if sent.error is not None:
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(parcel.attempts, 20))
        pause = max(pause, min(sent.wait, _LONGEST_PAUSE))
        # It may quote the answer of the other side.
        values = {"due": now + pause, "error": sent.error.replace("\0", "\ufffd")[:2000]}
        if sent.is_absent and not parcel.is_again:
            values["answer"] = None
    with store.write() as connection:
        _update(connection, parcel, attempts=parcel.attempts + 1, **values)
    return sent.error is None


def _take(store: Store, now: float) -> list[_Parcel]:
    query = select(delivery).where(delivery.c.delivered.is_(None)).order_by(delivery.c.id)
    with store.read() as connection:
        waiting = list(connection.execute(query, execution_options=EVERY_PROJECT).mappings())
        rows = []
        first: set[tuple[int, str]] = set()
        for row in waiting:
            of = (row["alert"], row["channel"])
            if of not in first and row["due"] <= now:
                rows.append(row)
            first.add(of)  # the next one of the same alert waits for it
        issues: dict[int, str | None] = {}
        for row in rows[:_AT_ONCE]:
            answers = select(delivery.c.answer).where(
                delivery.c.project == row["project"],
                delivery.c.alert == row["alert"],
                delivery.c.channel == row["channel"],
                delivery.c.change == "opened",
            )
            issues[row["id"]] = connection.execute(answers).scalar()
    if not rows:
        return []
    until = now + _LEASE
    parcels = []
    with store.write() as connection:
        for row in rows[:_AT_ONCE]:
            message = msgspec.json.decode(row["message"], type=Message)
            parcel = _Parcel(
                row["id"],
                row["project"],
                row["alert"],
                row["channel"],
                message,
                row["attempts"],
                row["due"],
                issues[row["id"]],
                row["answer"] is not None,
            )
            if _update(connection, parcel, due=until, answer=f"{OPENING}{message.id}"):
                parcels.append(parcel._replace(due=until))
    return parcels


def _update(connection: Connection, parcel: _Parcel, **values: Any) -> bool:
    """Change a row, if it is unchanged: another worker may have taken it."""
    mine = (delivery.c.id == parcel.id) & (delivery.c.due == parcel.due)
    change = update(delivery).where(delivery.c.project == parcel.project, mine).values(**values)
    return connection.execute(change).rowcount == 1


async def _send(addresses: Addresses, parcel: _Parcel) -> _Sent:
    """Send one message."""
    try:
        if parcel.channel == "github" and addresses.github is not None:
            return await _to_github(addresses.github, addresses.networks, parcel)
        hook = addresses.webhook if parcel.channel == "webhook" else addresses.slack
        if parcel.channel == "github" or hook is None:
            return _Sent(error=f"`alerts:` no longer has `{parcel.channel}`")
        body: Any = parcel.message
        if parcel.channel == "slack":
            again = f" {AGAIN}" if parcel.is_again else ""
            body = {"text": slack_text(parcel.message.text) + again}
        missed = await to_hook(hook, body, addresses.networks, parcel.message.id)
        if missed is None:
            return _Sent()
        return _Sent(error=missed.says, wait=missed.wait, is_absent=missed.is_absent)
    except (Refused, NoAnswer) as error:
        return _Sent(error=str(error), wait=wait_of(error), is_absent=is_absent(error))


class NotArrived(NamedTuple):
    """Why no one confirmed a message, and how many seconds to wait before the next attempt.

    ``is_absent``: it certainly did not arrive, or was refused.
    """

    says: str
    wait: float
    is_absent: bool


def is_absent(error: Refused | NoAnswer) -> bool:
    """Return whether an error guarantees that the other side wrote nothing."""
    if isinstance(error, Refused):
        return error.status < OWN_FAULTS
    return error.fault in ("unreachable", "tls", "not_allowed")


def wait_of(error: Refused | NoAnswer) -> float:
    """Return how many seconds to wait before the next request; 0 if the other side does not say.

    If the requests of an hour are used up, GitHub sends no ``Retry-After``, but the time of the
    reset in seconds since the epoch.
    """
    if isinstance(error, NoAnswer):
        return 0.0
    seconds = retry_after(error.headers)
    if seconds is not None:
        return seconds
    if error.headers.get("x-ratelimit-remaining") == "0":
        reset = error.headers.get("x-ratelimit-reset", "")
        if reset.isascii() and reset.isdigit() and len(reset) <= _DIGITS_OF_A_MOMENT:
            return max(float(reset) - time.time(), 0.0)
    return 0.0


async def to_hook(
    hook: str | WebhookSpec, body: Any, networks: Sequence[Network], id_: str
) -> NotArrived | None:
    """Send JSON to a webhook; returns why it did not arrive.

    ``id_`` is that of the message, the same for each attempt, in the form of
    draft-ietf-httpapi-idempotency-key-header (a string of RFC 8941).
    """
    url, headers = (hook, {}) if isinstance(hook, str) else (hook.url, hook.headers)
    try:
        client = client_of(url, headers, networks)
        try:
            request = request_of("POST", url, body)
            await client.ask(request._replace(headers={"Idempotency-Key": f'"{id_}"'}), ONCE)
        finally:
            await client.close()
    except (NoAnswer, Refused) as error:
        # The path of a webhook contains its key.
        host = "/".join(url.split("/")[:3])
        says = str(error).replace(url.partition("?")[0], host)
        return NotArrived(says, wait_of(error), is_absent(error))
    return None


def github_issues(github: GithubSpec) -> str:
    """Return the address of the issues of a repository."""
    return f"{github.url.rstrip('/')}/repos/{github.repository}/issues"


def github_headers(github: GithubSpec) -> dict[str, str]:
    """Return the headers that GitHub requires in each request."""
    return {
        "Authorization": f"Bearer {github.token}",
        "User-Agent": "baton",
        "Accept": "application/vnd.github+json",
        "X-GitHub-Api-Version": "2022-11-28",
    }


def marked(mark: str | None) -> str:
    """Return the mark of an issue or comment of ours: an HTML comment, which is not shown."""
    return f"<!-- baton {mark} -->"


async def issue_with(client: Client, github: GithubSpec, mark: str | None) -> int | None:
    """Return the number of the issue that was opened with a mark, if it exists.

    The latest 500 are searched: it was opened minutes ago, or at most an hour.

    Raises: Refused, NoAnswer: GitHub does not answer the request. msgspec.MsgspecError: its answer
    is not as documented.
    """
    latest = f"{github_issues(github)}?state=all&sort=created&direction=desc"
    with_mark = await _with_mark(client, latest, mark)
    number = None if with_mark is None else with_mark.get("number")
    return number if isinstance(number, int) else None


async def _with_mark(client: Client, listed: str, mark: str | None) -> dict[str, Any] | None:
    """Return the issue or comment with a mark, from the first pages of a list."""
    more = "&" if "?" in listed else "?"
    for page in range(1, _PAGES + 1):
        one = f"{listed}{more}per_page=100&page={page}"
        answer = await client.ask(request_of("GET", one, None), ONCE)
        some = msgspec.json.decode(answer.body.data, type=list[dict[str, Any]])
        for each in some:
            if marked(mark) in str(each.get("body")):
                return each
        if len(some) < 100:
            break
    return None


async def _to_github(github: GithubSpec, private: Sequence[Network], parcel: _Parcel) -> _Sent:
    """Open an issue, or comment that the alert is over and close it; nothing is done twice."""
    issues = github_issues(github)
    client = client_of(github.url, github_headers(github), private)
    message = parcel.message
    text = f"{_markdown(message)}\n\n{marked(message.id)}"
    try:
        if message.event == "alert.opened":
            number = await issue_with(client, github, message.id) if parcel.is_again else None
            if number is None:
                body = {"title": one_line(message.text)[:200], "body": text}
                answer = await client.ask(request_of("POST", issues, body), ONCE)
                number = msgspec.json.decode(answer.body.data, type=dict[str, Any]).get("number")
            if not isinstance(number, int):
                return _Sent(error="GitHub answered without the number of the issue")
            return _Sent(answer=str(number))
        if parcel.issue is None:
            return _Sent(error="the number of the issue is unknown")
        issue = f"{issues}/{parcel.issue}"
        await client.ask(request_of("PATCH", issue, {"state": "closed"}), ONCE)
        comments = f"{issue}/comments"
        if not parcel.is_again or await _with_mark(client, comments, message.id) is None:
            await client.ask(request_of("POST", comments, {"body": text}), ONCE)
        return _Sent()
    except msgspec.MsgspecError:
        return _Sent(error="the answer of GitHub is not as documented")
    finally:
        await client.close()


def client_of(url: str, headers: Mapping[str, str], private: Sequence[Network]) -> Client:
    """Return a client for one address; it connects to no other."""
    credentials = Credentials(headers=dict(headers))
    return Client(
        access(url, credentials, more=[url]),
        _LIMITS,
        headers={"Content-Type": "application/json"},
        success=range(200, 300),
        private=private,
    )


def request_of(method: str, url: str, body: object) -> Request:
    """Return a request with JSON, or with nothing if ``body`` is ``None``."""
    if body is None:
        return Request(method, url, whole=True)
    return Request(method, url, msgspec.json.encode(body), whole=True)


def one_line(raw: str) -> str:
    """Return text in one line."""
    return " ".join(raw.split())


def slack_text(raw: str) -> str:
    """Return text without Slack's markup characters: names of agents come from spans."""
    escaped = raw.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return one_line(escaped)


def _markdown(message: Message) -> str:
    """Return text for an issue: content of traces is quoted as code, where nothing is markup."""
    rows = [
        ("rule", message.rule),
        ("condition", message.condition),
        ("agent", message.agent or "all"),
        ("opened", message.opened),
        ("closed", message.closed or "not yet"),
    ]
    lines = [f"- {name}: {as_code(value)}" for name, value in rows]
    return as_code(message.text) + "\n\n" + "\n".join(lines)


def as_code(raw: str) -> str:
    """Quote text as Markdown code: with one more backtick than its longest run of them."""
    raw = one_line(raw)
    longest = max((len(run) for run in re.findall(r"`+", raw)), default=0)
    marks = "`" * (longest + 1)
    return f"{marks} {raw} {marks}"


def alerts_of(store: Store, project: int, limit: int = 100) -> list[dict[str, Any]]:
    """Return the latest alerts of a project, including open ones, with their undelivered messages.

    Times are RFC 3339; ``closed`` is ``None`` for an open one.
    """
    query = select(alert).where(alert.c.project == project).order_by(alert.c.id.desc()).limit(limit)
    waits = select(delivery.c.alert, delivery.c.channel, delivery.c.error).where(
        delivery.c.project == project, delivery.c.delivered.is_(None)
    )
    with store.read() as connection:
        rows = [dict(row) for row in connection.execute(query).mappings()]
        waiting = connection.execute(waits).all()
    for row in rows:
        row["opened"] = _rfc3339(row["opened"])
        row["closed"] = None if row["closed"] is None else _rfc3339(row["closed"])
        row["undelivered"] = [
            {"channel": channel, "error": error}
            for of, channel, error in waiting
            if of == row["id"]
        ]
    return rows

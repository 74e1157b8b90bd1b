"""Notices about issues: a new one, one that came back, a burst over many agents at once.

An issue has one notice per channel, about its latest event: at GitHub and Linear one issue, which
is updated, closed when it is fixed, and reopened. As for alerts, the store records that a notice is
being sent, and each attempt has the same id. Addresses are those of `alerts:` in
`server.yaml`, with their rules; the content of a trace is only text.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec
from sqlalchemy import Connection, RowMapping, insert, select, update

from baton.feed.signature import Signature, short_name
from baton.http.responses import NoAnswer, Refused
from baton.model import counted
from baton.session.server_rows import IssueRow

from .alerts import (
    AGAIN,
    ONCE,
    OPENING,
    OWN_FAULTS,
    PLACEHOLDER,
    Addresses,
    GithubSpec,
    IssueChannel,
    IssuesSpec,
    LinearSpec,
    as_code,
    client_of,
    github_headers,
    github_issues,
    issue_with,
    marked,
    one_line,
    request_of,
    slack_text,
    to_hook,
    wait_of,
)
from .database import EVERY_PROJECT
from .issue_list import one_issue
from .issues import alone
from .queues import deliver_all
from .schema import issue, issue_event, issue_notice
from .store import DEFAULT, Store

_FIRST_LOOK = 86_400.0
"""If nothing was reported before, only events from this many seconds before now are reported."""
_SETTLED = 5.0
"""Seconds after which no event with an earlier number can appear (PostgreSQL)."""
_AT_ONCE = 16
"""Maximum notices that are taken, and sent, at the same time; as for alerts."""
_LEASE = 120.0
"""Seconds for which a notice is reserved for the worker that sends it; as for alerts."""
_FIRST_PAUSE, _LONGEST_PAUSE = 15.0, 3600.0
_WAIT = 60.0
"""Seconds until a new issue with too few failures is examined again."""
# A state that a user sets is sent if the issue has a counterpart there: it is closed or opened.
_FOLLOWED = ("new", "regressed", "burst", "state")
_WITH_ISSUES = ("github", "linear")
"""Channels that keep an issue; the others get messages."""


def note_events(store: Store, spec: IssuesSpec, now: float) -> int:
    """Record which issues have something to report; returns how many.

    Raises:
        Unavailable: the store is not available now; nothing is lost.
    """
    noted = 0
    for project in store.projects().values():
        with store.read() as connection:
            if not _new_events(connection, project, now, settled=store.is_postgresql):
                continue
        with store.write() as connection:
            if not alone(connection):
                return noted
            noted += _note(connection, project, spec, now, settled=store.is_postgresql)
    return noted


def _new_events(connection: Connection, project: int, now: float, *, settled: bool) -> list[Any]:
    seen = connection.execute(
        select(issue_notice.c.event).where(
            issue_notice.c.project == project, issue_notice.c.issue == 0
        )
    ).scalar()
    query = select(issue_event.c.id, issue_event.c.issue, issue_event.c.kind).where(
        issue_event.c.project == project, issue_event.c.kind.in_(_FOLLOWED)
    )
    new = issue_event.c.at >= now - _FIRST_LOOK if seen is None else issue_event.c.id > seen
    query = query.where(new).order_by(issue_event.c.id)
    if settled:
        query = query.where(issue_event.c.at <= now - _SETTLED)
    return list(connection.execute(query))


def _note(
    connection: Connection, project: int, spec: IssuesSpec, now: float, *, settled: bool
) -> int:
    rows = _new_events(connection, project, now, settled=settled)
    if not rows:
        return 0
    mine = issue_notice.c.project == project
    last_event = 0
    for row in rows:
        for channel in spec.to:
            which = (mine, issue_notice.c.issue == row.issue, issue_notice.c.channel == channel)
            there = update(issue_notice).where(*which)
            if row.kind == "state":
                # Only if known outside: a state is not reported for an issue that was never
                # reported.
                if channel in _WITH_ISSUES:
                    there = there.where(issue_notice.c.outside.is_not(None))
                    connection.execute(there.values(event=row.id, due=now, attempts=0))
                continue
            if row.kind not in spec.on:
                continue
            last_event += 1
            change = there.values(event=row.id, due=now, attempts=0)
            if connection.execute(change).rowcount == 0:
                made = {"project": project, "issue": row.issue, "channel": channel,
                        "event": row.id, "told": 0, "attempts": 0, "due": now}  # fmt: skip
                connection.execute(insert(issue_notice).values(made))
    change = update(issue_notice).where(mine, issue_notice.c.issue == 0)
    if connection.execute(change.values(event=rows[-1].id)).rowcount == 0:
        made = {"project": project, "issue": 0, "channel": "", "event": rows[-1].id,
                "told": rows[-1].id, "attempts": 0, "due": now}  # fmt: skip
        connection.execute(insert(issue_notice).values(made))
    return last_event


class _Parcel(NamedTuple):
    """A notice on its way.

    ``outside`` is the id of the issue there, if it already exists. ``mark`` is the UUID with which
    it is opened, and ``is_again`` means that it may already have been opened with it; over a
    webhook or Slack, that the notice may already have arrived.
    """

    project: int
    issue: int
    channel: IssueChannel
    event: int
    attempts: int
    due: float
    outside: str | None
    mark: str
    is_again: bool
    kind: str
    row: IssueRow
    values: Mapping[str, Any]


class _Sent(NamedTuple):
    """The result of a notice.

    ``wait`` is how many seconds the other side asks to wait; ``is_gone``: its issue certainly does
    not exist, because it was deleted or refused; ``is_absent``: a message certainly did not arrive.
    """

    outside: str | None = None
    error: str | None = None
    wait: float = 0.0
    is_gone: bool = False
    is_absent: bool = False


def tell_of_issues(store: Store, addresses: Addresses, now: float) -> int:
    """Send notices that are due; returns how many were delivered.

    Undelivered notices are sent again after increasing pauses of up to an hour.

    Raises:
        Unavailable: the store is not available now; nothing is lost.
    """
    spec = addresses.issues
    if spec is None:
        return 0
    parcels = _take(store, spec, now)
    if not parcels:
        return 0

    async def deliver(parcel: _Parcel) -> bool:
        sent = await _send(addresses, spec, parcel)
        return await asyncio.to_thread(_keep, store, parcel, sent, now)

    return deliver_all(parcels, deliver)


def _keep(store: Store, parcel: _Parcel, sent: _Sent, now: float) -> bool:
    """Record the result of a notice; return whether it was delivered."""
    known = None if sent.is_gone else parcel.outside or _noted(parcel)
    if parcel.channel not in _WITH_ISSUES and (
        sent.error is None or (sent.is_absent and not parcel.is_again)
    ):
        known = None
    values: dict[str, Any] = {"outside": sent.outside or known}
    # A deleted issue need not be closed; a new one is opened when it fails again.
    is_done = sent.error is None or (sent.is_gone and _is_over(parcel))
    if is_done:
        values |= {"told": parcel.event, "error": None}
    else:
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** min(parcel.attempts, 20))
        pause = max(pause, min(sent.wait, _LONGEST_PAUSE))
        # It may quote what the other side answered.
        message = (sent.error or "").replace("\0", "\ufffd")[:2000]
        values |= {"due": now + pause, "attempts": parcel.attempts + 1, "error": message}
    with store.write() as connection:
        _update(connection, parcel, **values)
    return is_done


def _take(store: Store, spec: IssuesSpec, now: float) -> list[_Parcel]:
    query = (
        select(issue_notice, issue.c.key, issue_event.c.kind, issue_event.c.at)
        .join(
            issue,
            (issue.c.id == issue_notice.c.issue) & (issue.c.project == issue_notice.c.project),
        )
        .join(
            issue_event,
            (issue_event.c.id == issue_notice.c.event)
            & (issue_event.c.project == issue_notice.c.project),
        )
        .where(issue_notice.c.event > issue_notice.c.told, issue_notice.c.due <= now)
        .order_by(issue_notice.c.due)
        .limit(_AT_ONCE)
    )
    with store.read() as connection:
        rows = list(connection.execute(query, execution_options=EVERY_PROJECT).mappings())
    names = {number: name for name, number in store.projects().items()}
    parcels = []
    for row in rows:
        one = one_issue(store, row["project"], row["key"], members=0, now=now).issue
        outside, is_again = row["outside"], False
        if outside is not None and outside.startswith(OPENING):
            outside, is_again = None, True
        mark = row["outside"].removeprefix(OPENING) if is_again else str(uuid.uuid4())
        parcel = _Parcel(
            row["project"], row["issue"], row["channel"], row["event"], row["attempts"],
            row["due"], outside, mark, is_again, row["kind"], one,
            {"id": _id_of(row), **_values(one, row["kind"], names[row["project"]], spec.link)},
        )  # fmt: skip
        waits = row["kind"] == "new" and one.count < spec.least
        with store.write() as connection:
            until = now + (_WAIT if waits else _LEASE)
            opens = {} if waits or outside is not None else {"outside": _noted(parcel)}
            if _update(connection, parcel, due=until, **opens) and not waits:
                parcels.append(parcel._replace(due=until))
    return parcels


def _id_of(row: RowMapping) -> str:
    """Return the id of a notice: a UUID that is the same for each attempt, and for no other."""
    names = ("project", "key", "event", "channel", "kind", "at")
    encoded = msgspec.json.encode([row[name] for name in names]).decode()
    return str(uuid.uuid5(uuid.NAMESPACE_OID, encoded))


def _noted(parcel: _Parcel) -> str:
    """Return the note about an issue that is being opened, or a message that is being sent."""
    return f"{OPENING}{parcel.mark}"


def _update(connection: Connection, parcel: _Parcel, **values: Any) -> bool:
    """Change a row, if it is unchanged: another worker may have taken it."""
    which = (
        (issue_notice.c.project == parcel.project)
        & (issue_notice.c.issue == parcel.issue)
        & (issue_notice.c.channel == parcel.channel)
        & (issue_notice.c.due == parcel.due)
    )
    return connection.execute(update(issue_notice).where(which).values(values)).rowcount == 1


_SAID = {
    "new": "A new issue",
    "regressed": "Failed again after it was fixed",
    "burst": "Many agents fail at once",
    "state": "Its state has changed",
}


def _values(one: IssueRow, kind: str, project: str, link: str | None) -> dict[str, Any]:
    """Return the values of a message, by the names that templates use."""
    per = one.rate.per_1000
    place = None
    if link is not None:
        named = "" if project == DEFAULT else f"?project={quote(project, safe='')}"
        place = f"{link.rstrip('/')}/issues/{one.key}{named}"
    rate = "" if per is None else f", {per.value:.1f} of 1,000 dispatches"
    receiver = None if one.receiver is None else short_name(one.receiver)
    signature = Signature("", one.fault, one.sender or "", one.receiver or "?", one.about)
    return {
        "event": f"issue.{kind}",
        "issue": one.key,
        "project": project,
        "title": one.title,
        "subtype": one.subtype,
        "category": one.category,
        "state": one.state,
        "sender": None if one.sender is None else short_name(one.sender),
        "receiver": receiver,
        "edge": signature.edge if one.sender is not None else receiver,
        "count": one.count,
        "per_1000": None if per is None else round(per.value, 2),
        "low": None if per is None or per.low is None else round(per.low, 2),
        "high": None if per is None or per.high is None else round(per.high, 2),
        "first": _rfc3339(one.first),
        "last": _rfc3339(one.last),
        "infrastructure": one.infrastructure,
        "link": place,
        "text": f"{_SAID[kind]}: {one.title} ({counted(one.count, 'failure')}{rate})",
    }


def _rfc3339(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def filled(template: Any, values: Mapping[str, Any], quoted: Callable[[str], str] = str) -> Any:
    """Return a template with its fields put in: text, or JSON whose texts are templates.

    A text that consists of one field becomes its value, so that numbers stay numbers. Inserted
    values are never parsed as templates.

    >>> filled({"summary": "{title}!", "n": "{count}"}, {"title": "a {count}", "count": 3})
    {'summary': 'a {count}!', 'n': 3}
    """
    if isinstance(template, Mapping):
        return {name: filled(each, values, quoted) for name, each in template.items()}
    if isinstance(template, list):
        return [filled(each, values, quoted) for each in template]
    if not isinstance(template, str):
        return template
    alone_ = PLACEHOLDER.fullmatch(template)
    if alone_ is not None and quoted in (str, unlinked):
        value = values[alone_[1]]
        return quoted(value) if isinstance(value, str) else value

    def put(match: Any) -> str:
        value = values[match[1]]
        return "" if value is None else quoted(str(value))

    return PLACEHOLDER.sub(put, template)


_MENTION = re.compile(r"@(?=[\w\[{(])|<(?=[@!#])|\[(?=~)")


def unlinked(text: str) -> str:
    """Return text that mentions no one in other tools' markup, by inserting a zero-width space.

    A tool may be named ``@everyone``, ``<!channel>`` or ``[~admin]``: Discord, Slack, Teams and
    Jira would notify these people.
    """
    return _MENTION.sub(lambda match: f"{match[0]}\u200b", text)


async def _send(addresses: Addresses, spec: IssuesSpec, parcel: _Parcel) -> _Sent:
    try:
        if parcel.channel == "github" and addresses.github is not None:
            return await _to_github(addresses, addresses.github, spec, parcel)
        if parcel.channel == "linear" and addresses.linear is not None:
            return await _to_linear(addresses, addresses.linear, spec, parcel)
        hook = addresses.webhook if parcel.channel == "webhook" else addresses.slack
        if parcel.channel in _WITH_ISSUES or hook is None:
            return _Sent(error=f"`alerts:` no longer has `{parcel.channel}`")
        body: Any = parcel.values
        if parcel.channel == "slack":
            text = filled(spec.text, parcel.values, slack_text) if spec.text else None
            link = f" {parcel.values['link']}" if parcel.values["link"] else ""
            again = f" {AGAIN}" if parcel.is_again else ""
            body = {"text": (text or slack_text(parcel.values["text"]) + link) + again}
        elif spec.webhook is not None:
            body = filled(spec.webhook, parcel.values, unlinked)
        missed = await to_hook(hook, body, addresses.networks, parcel.values["id"])
        if missed is None:
            return _Sent()
        return _Sent(error=missed.says, wait=missed.wait, is_absent=missed.is_absent)
    except Refused as error:
        return _Sent(error=str(error), wait=wait_of(error))
    except NoAnswer as error:
        return _Sent(error=str(error))


def _title(spec: IssuesSpec, parcel: _Parcel) -> str:
    return one_line(filled(spec.title or "{title}", {**parcel.values}, one_line))[:200]


def _body(spec: IssuesSpec, parcel: _Parcel) -> str:
    """Return text for an issue: content of traces is quoted as code, where nothing is markup."""
    if spec.text is not None:
        text: str = filled(spec.text, parcel.values, as_code)
        return text
    values = parcel.values
    names = ("state", "edge", "count", "per_1000", "low", "high", "first", "last", "issue")
    known = [(name, values[name]) for name in names if values[name] is not None]
    lines = [f"- {name.replace('_', ' ')}: {as_code(str(value))}" for name, value in known]
    link = [values["link"]] if values["link"] else []
    return "\n\n".join([as_code(values["text"]), "\n".join(lines), *link])


def _is_over(parcel: _Parcel) -> bool:
    return parcel.row.state in ("fixed", "muted")


async def _to_github(
    addresses: Addresses, github: GithubSpec, spec: IssuesSpec, parcel: _Parcel
) -> _Sent:
    """Open an issue, or update the existing one and describe the event in it."""
    client = client_of(github.url, github_headers(github), addresses.networks)
    body = {"title": _title(spec, parcel), "body": _body(spec, parcel)}
    outside = parcel.outside
    if outside is None:
        body["body"] += f"\n\n{marked(parcel.mark)}"
    try:
        if outside is None and parcel.is_again:
            number = await issue_with(client, github, parcel.mark)
            outside = None if number is None else str(number)
        if outside is None and _is_over(parcel):
            return _Sent()
        if outside is None:
            try:
                answer = await client.ask(request_of("POST", github_issues(github), body), ONCE)
            except Refused as error:
                refused = error.status < OWN_FAULTS
                return _Sent(error=str(error), wait=wait_of(error), is_gone=refused)
            number = msgspec.json.decode(answer.body.data, type=dict[str, Any]).get("number")
            if not isinstance(number, int):
                return _Sent(error="GitHub answered without the number of the issue")
            return _Sent(outside=str(number))
        one = f"{github_issues(github)}/{outside}"
        # The reason counts only if the state changes.
        reasons = {"fixed": "completed", "muted": "not_planned"}
        state = {
            "state": "closed" if _is_over(parcel) else "open",
            "state_reason": reasons.get(parcel.row.state, "reopened"),
        }
        try:
            await client.ask(request_of("PATCH", one, {**body, **state}), ONCE)
        except Refused as error:
            # Deleted there: 404 or, with read access to the repository, 410.
            if error.status in (404, 410):
                return _Sent(error=str(error), is_gone=True)
            raise
        # An issue that was opened for this very event already describes it.
        if parcel.outside is not None or parcel.kind != "new":
            comment = {"body": as_code(parcel.values["text"])}
            await client.ask(request_of("POST", f"{one}/comments", comment), ONCE)
        return _Sent(outside=outside)
    except (msgspec.DecodeError, msgspec.ValidationError):
        return _Sent(error="the answer of GitHub is not JSON")
    finally:
        await client.close()


_FIND = "query Issue($id: String!) { issue(id: $id) { id } }"
_CREATE = (
    "mutation IssueCreate($input: IssueCreateInput!) {"
    " issueCreate(input: $input) { success issue { id } } }"
)
_CHANGE = (
    "mutation IssueUpdate($id: String!, $input: IssueUpdateInput!) {"
    " issueUpdate(id: $id, input: $input) { success } }"
)
_COMMENT = (
    "mutation CommentCreate($input: CommentCreateInput!) {"
    " commentCreate(input: $input) { success } }"
)


class _RefusedError(Exception):
    """Linear reports an error; ``is_gone``: its issue was deleted."""

    def __init__(self, said: str) -> None:
        super().__init__(f"Linear refused it: {said}")
        self.is_gone = "Entity not found: Issue" in said


async def _to_linear(
    addresses: Addresses, linear: LinearSpec, spec: IssuesSpec, parcel: _Parcel
) -> _Sent:
    """Open an issue, or update the existing one and describe the event in it."""
    client = client_of(linear.url, {"Authorization": linear.token}, addresses.networks)

    async def ask(query: str, field: str, **variables: Any) -> Mapping[str, Any]:
        body = {"query": query, "variables": variables}
        answer = await client.ask(request_of("POST", linear.url, body), ONCE)
        reply = msgspec.json.decode(answer.body.data, type=dict[str, Any])
        # GraphQL reports errors with status 200.
        errors = reply.get("errors")
        result = (reply.get("data") or {}).get(field)
        if errors or not isinstance(result, Mapping) or not result.get("success"):
            raise _RefusedError(_first_message(errors))
        return result

    async def is_there() -> bool:
        body = {"query": _FIND, "variables": {"id": parcel.mark}}
        answer = await client.ask(request_of("POST", linear.url, body), ONCE)
        reply = msgspec.json.decode(answer.body.data, type=dict[str, Any])
        refused = _RefusedError(_first_message(reply.get("errors")))
        if reply.get("errors") and not refused.is_gone:
            raise refused
        return bool((reply.get("data") or {}).get("issue"))

    body = {"title": _title(spec, parcel), "description": _body(spec, parcel)}
    outside = parcel.outside
    try:
        if outside is None and parcel.is_again and await is_there():
            outside = parcel.mark
        if outside is None and _is_over(parcel):
            return _Sent()
        if outside is None:
            # Linear uses the given id, and refuses a second issue with it.
            new = {"id": parcel.mark, "teamId": linear.team, **body}
            try:
                made = await ask(_CREATE, "issueCreate", input=new)
            except _RefusedError as error:
                return _Sent(error=str(error), is_gone=True)
            id_ = (made.get("issue") or {}).get("id")
            if not isinstance(id_, str):
                return _Sent(error="Linear answered without the id of the issue")
            return _Sent(outside=id_)
        state = linear.done if _is_over(parcel) else linear.open
        changed = body | ({"stateId": state} if state is not None else {})
        await ask(_CHANGE, "issueUpdate", id=outside, input=changed)
        if parcel.outside is not None or parcel.kind != "new":
            comment = {"issueId": outside, "body": as_code(parcel.values["text"])}
            await ask(_COMMENT, "commentCreate", input=comment)
        return _Sent(outside=outside)
    except _RefusedError as error:
        return _Sent(error=str(error), is_gone=error.is_gone)
    except (msgspec.DecodeError, AttributeError):
        return _Sent(error="the answer of Linear is not as documented")
    finally:
        await client.close()


def _first_message(errors: object) -> str:
    first = errors[0] if isinstance(errors, Sequence) and errors else None
    if not isinstance(first, Mapping):
        return "no reason given"
    # `Argument Validation Error` is the message; the actual error is next to it.
    more = first.get("extensions")
    words = more.get("userPresentableMessage") if isinstance(more, Mapping) else None
    messages = [str(first.get("message", "")), *([words] if isinstance(words, str) else [])]
    return ": ".join(dict.fromkeys(messages))[:500]

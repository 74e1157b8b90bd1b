"""A client for Baton's server: ``baton.connect("http://localhost:4318")``."""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from baton.config.dialects.adk import FILE_NAME as CRITERIA
from baton.datasets.labels import Label
from baton.feed.issue_progress import Fix, Investigation, Promotion
from baton.formats.input_files import read_bytes
from baton.http.client import Client, Request, Retries, Words, access
from baton.http.credentials import Credentials, plain_address
from baton.http.responses import PULL_MIB, Fault, Limits, NoAnswer, Refused
from baton.model import BatonError, InputError, Problem, Trace
from baton.runner.loop import run_anywhere

from .prepare import PathLike
from .push import pack
from .server_rows import (
    Conversation,
    ConversationRecord,
    Deletion,
    DispatchRow,
    Edge,
    EvaluationJob,
    InboxProblem,
    Interval,
    IssueRecord,
    IssueRow,
    Listed,
    Page,
    Parts,
    Point,
    Queued,
    Records,
    Rescore,
    Review,
    Rows,
    ScoreRow,
    UnknownRule,
    UnreadTrace,
    Why,
)

T = TypeVar("T")
P = TypeVar("P", Page[Any], Records[Any], Rows, Parts)
When = str | datetime | None
"""A time: an RFC 3339 text, or a datetime with a time zone."""
KEY = "BATON_API_KEY"
"""The environment variable with the key of a server."""
ADDRESS = "BATON_SERVER"
"""The environment variable with the address of a server."""
_API = "/api/v1"
# A server is silent while it waits for its database, but hardly for a minute; a large page of
# records over a slow line takes minutes.
_SILENCE = 60.0
_SECONDS = 600.0
# The standard port of OTLP over HTTP, where `baton serve` listens as well.
_PORT = 4318
SCHEMES = {"server://": "http", "server+https://": "https"}
"""The prefixes of servers' addresses in place of recordings, and their protocols."""


class ServerError(BatonError):
    """The server did not answer, or its answer is not valid."""


class Sent(msgspec.Struct, kw_only=True):
    """The result of sending recordings: the number of files, and whether they were new."""

    files: int
    new: bool


def server_address(address: str | None = None) -> str:
    """Return the given address of a server, else that in ``BATON_SERVER``, else the local one."""
    return address or os.environ.get(ADDRESS) or f"http://localhost:{_PORT}"


def connect(url: str, key: str | None = None, project: str | None = None) -> Server:
    """Return a client for a server; nothing is sent yet.

    Args:
        url: its address, such as ``http://localhost:4318``; ``server://HOST`` means the usual
            port of a host.
        key: its API key; by default the environment variable ``BATON_API_KEY``.
        project: the project; by default that of the key, or `default`.

    Raises:
        InputError: the address is not valid.
    """
    return Server(url, key, project)


def names_server(name: PathLike) -> bool:
    """Return whether a server is meant (`http:`, `https:`, `server:`), where a file could be, too.

    :func:`.server_source.is_server` is for places where `https:` may be other storage.
    """
    return isinstance(name, str) and name.startswith(("http://", "https://", *SCHEMES))


class Server:
    """A server of Baton. Lists are read page by page during iteration.

    Filters are keyword arguments with the names of the fields in ``docs/server-api.md`` and texts
    as values (``to="refund-*"``, ``depth=">=2"``), or lists of alternatives. ``from_`` has an
    underscore because ``from`` is a keyword of Python. A request is for ``page_rows`` rows (500);
    fewer help where a proxy limits time or size. All methods raise ``InputError`` if the
    server refuses the request, and ``ServerError`` if it does not answer.
    """

    def __init__(self, url: str, key: str | None, project: str | None) -> None:
        for scheme, protocol in SCHEMES.items():
            if url.startswith(scheme):
                host = url.removeprefix(scheme).rstrip("/")
                # A server behind a proxy with TLS uses the port of the proxy.
                port = "" if ":" in host.rpartition("]")[2] or protocol == "https" else f":{_PORT}"
                url = f"{protocol}://{host}{port}"
        self.url = plain_address(url, "server", f"`key` or {KEY}")
        secret = key or os.environ.get(KEY)
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        self._access = access(self.url, Credentials(headers=headers))
        self.project = project
        self.page_rows = 500

    def conversations(
        self,
        *,
        text: str | None = None,
        since: When = None,
        until: When = None,
        filter: str | None = None,
        **fields: object,
    ) -> Iterator[Conversation]:
        """Yield conversations, the newest first; ``text`` searches their content."""
        params = {"text": text, "since": since, "until": until, "filter": filter, **fields}
        return self._pages("/conversations", Page[Conversation], params)

    def conversation(self, which: int | str) -> Trace:
        """Return the record of a conversation, by its number or by the id of its record.

        Raises:
            InputError: there is none, or retention deleted its record.
        """
        if isinstance(which, str):
            same = [one for one in self.conversations(filter=_exactly(which)) if one.key == which]
            if not same:
                raise InputError(f"{self.url} has no conversation `{which}`")
            which = same[0].id
        one = self._get(f"/conversations/{which}", ConversationRecord, {})
        if one.record is None:
            raise InputError(one.deleted or "the record is gone")
        return one.record

    def records(
        self,
        *,
        since: When = None,
        until: When = None,
        filter: str | None = None,
        **fields: object,
    ) -> Iterator[Trace]:
        """Yield the records of conversations, the newest first, many per request.

        Open conversations are left out unless ``state`` says otherwise, and so are deleted ones.
        """
        params = {"since": since, "until": until, "filter": filter, **fields}
        for page in self.pages("/records", Records[Trace], params):
            yield from page.items

    def rows(
        self,
        *,
        since: When = None,
        until: When = None,
        filter: str | None = None,
        **fields: object,
    ) -> Iterator[Rows]:
        """Yield conversations with their runs, dispatches and scores, some hundred at a time.

        Open ones are left out unless ``state`` says otherwise.
        """
        params = {"since": since, "until": until, "filter": filter, **fields}
        return self.pages("/rows", Rows, params)

    def dispatches(
        self,
        *,
        since: When = None,
        until: When = None,
        filter: str | None = None,
        **fields: object,
    ) -> Iterator[DispatchRow]:
        """Yield dispatches, the newest first."""
        params = {"since": since, "until": until, "filter": filter, **fields}
        return self._pages("/dispatches", Page[DispatchRow], params)

    def scores(
        self,
        *,
        every_version: bool = False,
        since: When = None,
        until: When = None,
        filter: str | None = None,
        **fields: object,
    ) -> Iterator[ScoreRow]:
        """Yield scores of rules, the newest first, for the newest version of each conversation."""
        params = {"since": since, "until": until, "filter": filter, **fields}
        return self._pages(
            "/scores", Page[ScoreRow], {**params, "every_version": every_version or None}
        )

    def edges(self, *, since: When = None, until: When = None) -> list[Edge]:
        """Return which agents dispatch to which, with counts and pass rates."""
        return self._get("/edges", Listed[Edge], {"since": since, "until": until}).items

    def trends(
        self,
        *,
        interval: Interval = "day",
        evaluator: str | None = None,
        from_agent: str | None = None,
        to_agent: str | None = None,
        by_version: bool = False,
        since: When = None,
        until: When = None,
    ) -> list[Point]:
        """Return sums per hour, day or week, of dispatches or of an evaluator's scores."""
        params = {
            "interval": interval,
            "evaluator": evaluator,
            "from_agent": from_agent,
            "to_agent": to_agent,
            "by_version": by_version or None,
            "since": since,
            "until": until,
        }
        return self._get("/trends", Listed[Point], params).items

    def issues(
        self,
        *,
        all: bool = False,
        order: str = "count",
        since: When = None,
        until: When = None,
        filter: str | None = None,
        **fields: object,
    ) -> Iterator[IssueRow]:
        """Yield issues, the most frequent first (``order="last"``: the last failure first).

        Args:
            all: include muted and fixed ones.
            order: ``count`` or ``last``.
            since: only issues that failed then or later.
            until: only issues that failed before.
            filter: only issues that match it, such as ``to:refund-* state:regressed``.
            fields: filters by name.
        """
        params = {"all": all or None, "order": order, "since": since, "until": until,
                 "filter": filter, **fields}  # fmt: skip
        return self._pages("/issues", Page[IssueRow], params)

    def issue(self, key: str) -> IssueRecord:
        """Return an issue with some members, its events, and its progress."""
        return self._get(f"/issues/{key}", IssueRecord, {})

    def mark_issue(
        self,
        key: str,
        state: str,
        *,
        version: str | None = None,
        note: str | None = None,
        by: str | None = None,
    ) -> IssueRecord:
        """Give an issue a state: ``new``, ``open``, ``muted``, or ``fixed`` (in a version).

        Raises:
            InputError: there is no such issue or state.
        """
        body = msgspec.json.encode({"state": state, "version": version, "note": note, "by": by})
        path = f"{_API}/issues/{key}/state"
        return self._ask("POST", path, {}, IssueRecord, body, "application/json")

    def keep_progress(
        self,
        key: str,
        *,
        investigation: Investigation | None = None,
        fix: Fix | None = None,
        promotion: Promotion | None = None,
    ) -> IssueRecord:
        """Store the progress of an issue on the server; its page shows it."""
        progress = {"investigation": investigation, "fix": fix, "promotion": promotion}
        body = msgspec.json.encode(progress)
        path = f"{_API}/issues/{key}/progress"
        return self._ask("POST", path, {}, IssueRecord, body, "application/json")

    def investigate_issue(self, key: str) -> IssueRecord:
        """Have the server investigate an issue; ``work`` of :meth:`issue` says how far it is.

        Raises:
            InputError: there is no such issue, or the server has no judge to ask.
        """
        path = f"{_API}/issues/{key}/investigate"
        return self._ask("POST", path, {}, IssueRecord, b"{}", "application/json")

    def prove_issue(self, key: str, agent: str | None = None) -> IssueRecord:
        """Have the server play the fix of an issue; see ``proving`` of :meth:`issue`.

        Args:
            key: the key of the issue.
            agent: the name of the agent in server.yaml; by default the only one.

        Raises:
            InputError: there is no such issue or agent, or no fix that can be played.
        """
        path = f"{_API}/issues/{key}/prove"
        body = msgspec.json.encode({"agent": agent})
        return self._ask("POST", path, {}, IssueRecord, body, "application/json")

    def improve_issue(self, key: str, agent: str | None = None) -> IssueRecord:
        """Have the server search for a fix of an issue; see ``proving`` of :meth:`issue`.

        A model proposes texts, which are played on members and passing cases. A text that is
        proven on held-out cases becomes the fix of the issue.

        Args:
            key: the key of the issue.
            agent: the name of the agent in server.yaml; by default the only one.

        Raises:
            InputError: there is no such issue or agent, or no judge that proposes.
        """
        path = f"{_API}/issues/{key}/improve"
        body = msgspec.json.encode({"agent": agent})
        return self._ask("POST", path, {}, IssueRecord, body, "application/json")

    def regroup_issues(self) -> None:
        """Group the texts of judges again now, instead of at night."""
        path = f"{_API}/issues/regroup"
        self._ask("POST", path, {}, Listed[Any], b"{}", "application/json")

    def labels(
        self, *, rubric: str | None = None, conversation_id: int | None = None
    ) -> Iterator[Label]:
        """Yield labels, the latest first."""
        params = {"rubric": rubric, "conversation_id": conversation_id}
        return self._pages("/labels", Page[Label], params)

    def label(
        self,
        trace: str,
        value: str | float,
        *,
        rubric: str,
        subject: str | None = None,
        by: str | None = None,
        note: str | None = None,
    ) -> Label:
        """Label a conversation (the id of its record), or something in it (``subject``)."""
        label = Label(trace=trace, subject=subject, rubric=rubric, value=value, by=by, note=note)
        body = msgspec.json.encode(label)
        return self._ask("POST", f"{_API}/labels", {}, Label, body, "application/json")

    def review(
        self,
        rubric: str,
        *,
        filter: str | None = None,
        why: Sequence[Why] = (),
        share: float = 0.1,
        people: int = 1,
        by: str | None = None,
        limit: int = 50,
    ) -> Review:
        """Return the dispatches that wait for a label by a rubric, and how well people agree.

        Args:
            rubric: its name.
            filter: only dispatches that match it, such as ``to:refund-*``.
            why: only these reasons; by default all.
            share: the share of dispatches without any other reason to sample, up to 1.
            people: how many people label each dispatch.
            by: the person who asks, if it is not the holder of the key.
            limit: the maximum number to list.

        Raises:
            InputError: there is no such rubric, or the filter is wrong.
        """
        params = {"rubric": rubric, "filter": filter, "why": ",".join(why) or None, "share": share,
                 "people": people, "by": by, "limit": limit}  # fmt: skip
        return self._get("/review", Review, params)

    def review_next(
        self,
        rubric: str,
        *,
        filter: str | None = None,
        why: Sequence[Why] = (),
        share: float = 0.1,
        people: int = 1,
        by: str | None = None,
    ) -> Queued | None:
        """Take the next dispatch to label from :meth:`review`; ``None`` when all are done.

        It is reserved for ten minutes; :meth:`label` adds the label.
        """
        request = {"rubric": rubric, "filter": filter, "why": list(why), "share": share,
                 "people": people, "by": by}  # fmt: skip
        path, body = f"{_API}/review/next", msgspec.json.encode(request)
        taken = self._ask("POST", path, {}, Listed[Queued], body, "application/json").items
        return taken[0] if taken else None

    def review_skip(
        self, rubric: str, conversation_id: int, subject: str, *, by: str | None = None
    ) -> None:
        """Give a taken dispatch back; it comes last from now on."""
        item = {"rubric": rubric, "conversation_id": conversation_id, "subject": subject, "by": by}
        path, body = f"{_API}/review/skip", msgspec.json.encode(item)
        self._ask("POST", path, {}, Listed[Any], body, "application/json")

    def rules(self) -> list[Any]:
        """Return the rules that score conversations as they arrive."""
        return self._get("/rules", Listed[Any], {}).items

    def problems(self) -> list[InboxProblem]:
        """Return the requests that arrived and could not be read."""
        return self._get("/problems", Listed[InboxProblem], {}).items

    def unread_traces(self) -> list[UnreadTrace]:
        """List the traces whose conversations could not be read."""
        return self._get("/problems/traces", Listed[UnreadTrace], {}).items

    def unknown_rules(self) -> list[UnknownRule]:
        """List unknown rules that programs name (`baton.otel.tag`)."""
        return self._get("/problems/rules", Listed[UnknownRule], {}).items

    def deletions(self) -> list[Deletion]:
        """Return what retention deleted."""
        return self._get("/deletions", Listed[Deletion], {}).items

    def push(self, path: PathLike) -> Sent:
        """Send a recording: a file, a folder, an evaluation, or a session of Claude Code.

        Raises:
            InputError: there is nothing to send, or a link leads out of the folder.
        """
        (package,) = pack([path])
        params = {"name": package.name.lstrip(".") or "recordings"}
        return self._ask(
            "POST", "/api/recordings", params, Sent, package.data, "application/octet-stream"
        )

    def submit(
        self,
        dataset: Sequence[PathLike] = (),
        *,
        recordings: Sequence[PathLike] = (),
        conversations: str | None = None,
        agent: str | None = None,
        evaluators: Sequence[str] = (),
        gate: Sequence[str] = (),
        repeat: int = 1,
        name: str | None = None,
        criteria: PathLike | None = None,
    ) -> EvaluationJob:
        """Have the server evaluate something; returns at once.

        Args:
            dataset: files of cases.
            recordings: recordings to score, as for :meth:`push`.
            conversations: a filter for conversations of the server to score, or ``*``.
            agent: the agent that plays the cases, by its name in the server's settings.
            evaluators: names; by default those for the cases, or those that need no case.
            gate: the rules of the gate.
            repeat: how often each case is played.
            name: the name of the evaluation.
            criteria: a file of ADK's criteria; by default the `test_config.json` beside the cases.
                Judges are always those of the server.

        Raises:
            InputError: the request cannot be evaluated.
        """
        if criteria is None and not evaluators:
            criteria = _criteria_beside([Path(each) for each in dataset])
        request = {
            "name": name,
            "criteria": None
            if criteria is None
            else {"name": Path(criteria).name, "content": read_bytes(Path(criteria)).decode()},
            "dataset": [
                {"name": Path(each).name, "content": read_bytes(Path(each)).decode()}
                for each in dataset
            ],
            "recordings": [
                {"name": package.name, "content": package.data} for package in pack(recordings)
            ],
            "conversations": conversations,
            "agent": agent,
            "evaluators": list(evaluators) or None,
            "gate": list(gate),
            "repeat": repeat,
        }
        body = msgspec.json.encode(request)
        path = f"{_API}/evaluations"
        return self._ask("POST", path, {}, EvaluationJob, body, "application/json")

    def rescore(
        self,
        rule: str,
        *,
        since: When = None,
        until: When = None,
        filter: str | None = None,
    ) -> Rescore:
        """Have the server apply a rule to conversations that are stored already; returns at once.

        Args:
            rule: its name in the settings of the server.
            since: only conversations that started then or later: RFC 3339, or a date.
            until: only those that started before.
            filter: only those that match it, such as ``to:refund-*``.

        Raises:
            InputError: there is no such rule, or the filter is wrong.
        """
        request = {"rule": rule, "since": _when(since), "until": _when(until), "filter": filter}
        body = msgspec.json.encode(request)
        return self._ask("POST", f"{_API}/rescores", {}, Rescore, body, "application/json")

    def rescores(self) -> list[Rescore]:
        """Return the requested rescores, the latest first, with their progress."""
        return self._get("/rescores", Listed[Rescore], {}).items

    def evaluations(self) -> list[EvaluationJob]:
        """Return the requested evaluations of the server, the latest first."""
        return self._get("/evaluations", Listed[EvaluationJob], {}).items

    def evaluation(self, number: int) -> EvaluationJob:
        """Return the current state of an evaluation."""
        return self._get(f"/evaluations/{number}", EvaluationJob, {})

    def wait(self, number: int, pause: float = 0.5) -> EvaluationJob:
        """Wait until an evaluation has ended, and return it."""
        while (job := self.evaluation(number)).state in ("waiting", "running"):
            time.sleep(pause)
        return job

    def case_page(self, number: int, position: int) -> str:
        """Return the page of a case of an evaluation."""
        project = "" if self.project is None else f"?{urlencode({'project': self.project})}"
        return f"{self.url}/evaluations/{number}/cases/{position}{project}"

    def fetch(self, number: int, folder: PathLike) -> Path:
        """Fetch the folder of an evaluation into ``folder``, and return where it is.

        Raises:
            InputError: it does not exist yet, or the folder exists already.
        """
        data = self._data("GET", f"{_API}/evaluations/{number}/folder", {})
        below = Path(folder)
        below.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            files = [entry for entry in archive if entry.isfile()]
            names = {Path(entry.name).parts[0] for entry in files}
            if len(names) != 1 or (target := below / names.pop()).exists():
                raise InputError(f"{below}: this folder exists already")
            target.mkdir()
            for entry in files:
                # An evaluation has no subfolders: only the last part of a name is used.
                content = archive.extractfile(entry)
                if content is not None:
                    (target / Path(entry.name).name).write_bytes(content.read())
        return target

    def pages(
        self,
        path: str,
        type_: type[P],
        params: Mapping[str, object],
        most: int | None = None,
        cursor: str | None = None,
    ) -> Iterator[P]:
        """Yield the pages of a list of the API from ``cursor`` on, up to ``most`` rows."""
        while most is None or most > 0:
            limit = self.page_rows if most is None else min(most, self.page_rows)
            page = self._get(path, type_, {**params, "limit": limit, "cursor": cursor})
            yield page
            cursor = page.next
            if cursor is None:
                return
            if most is not None:
                most -= page.size

    def _pages(self, path: str, type_: type[Page[T]], params: Mapping[str, object]) -> Iterator[T]:
        for page in self.pages(path, type_, params):
            yield from page.items

    def _get(self, path: str, type_: type[T], params: Mapping[str, object]) -> T:
        return self._ask("GET", _API + path, params, type_)

    def _ask(
        self,
        method: str,
        path: str,
        params: Mapping[str, object],
        type_: type[T],
        body: bytes | None = None,
        kind: str | None = None,
    ) -> T:
        data = self._data(method, path, params, body, kind)
        try:
            return msgspec.json.decode(data, type=type_)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            message = (
                f"the answer of {self.url}{path} is not valid: {error}; is it a server of Baton?"
            )
            raise ServerError(message) from None

    def _data(
        self,
        method: str,
        path: str,
        params: Mapping[str, object],
        body: bytes | None = None,
        kind: str | None = None,
    ) -> bytes:
        stated = {
            name.rstrip("_"): _text(value) for name, value in params.items() if value is not None
        }
        if self.project is not None and path.startswith(_API):
            stated["project"] = self.project
        headers = {"Content-Type": kind} if kind else {}
        if self.project is not None:
            headers["X-Baton-Project"] = self.project
        address = self.url + quote(path) + (f"?{urlencode(stated)}" if stated else "")
        request = Request(method, address, content=body, headers=headers, whole=True)
        try:
            return run_anywhere(self._send(request))
        except Refused as error:
            if error.status == 401:
                raise InputError(f"{error}; set BATON_API_KEY to one of its keys") from None
            if error.status < 500 and error.status != 429:
                raise InputError(str(error)) from None
            raise ServerError(error.with_attempts()) from None
        except NoAnswer as error:
            raise ServerError(str(error)) from None

    async def _send(self, request: Request) -> bytes:
        # The server ignores duplicates, so that a request can be repeated; except for labels.
        again = request.method == "GET" or request.content is None or "/labels" not in request.url
        client = Client(
            self._access,
            Limits(_SILENCE, _SECONDS, PULL_MIB, fixed=("max_seconds", "max_answer_mib")),
            words=Words("server", "is that the address of `baton serve`?"),
            headers={"Accept": "application/json"},
            success=(200, 202),
        )
        faults: list[Fault] = ["unreachable", *(("silent", "broken") if again else ())]
        retries = Retries(4, 0.5, statuses=(429, 503), faults=faults, longest_delay=10)
        try:
            return (await client.ask(request, retries)).body.data
        finally:
            await client.close()


def _criteria_beside(dataset: Sequence[Path]) -> Path | None:
    """Return the `test_config.json` in the folder of cases, which `baton eval` uses as well.

    Raises:
        InputError: some cases have another one, or none.
    """
    beside = {(path.parent / CRITERIA) for path in dataset}
    there = [path for path in beside if path.is_file()]
    if there and len(beside) > 1:
        message = f"only some cases are beside this {CRITERIA}: submit each folder separately"
        raise InputError(Problem(file=str(min(there)), message=message))
    return there[0] if there else None


def _exactly(key: str) -> str:
    """Return a filter for one conversation; keys with quotes are matched up to the quote."""
    before = key.partition('"')[0]
    return f'conversation:"{before}*"' if before != key else f'conversation="{key}"'


def _when(at: When) -> str | None:
    return None if at is None else _text(at)


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)

"""Evidence of which agent fails: issues, blame, and people's labels."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from baton.config import Config
from baton.datasets.labels import Label, read_labels
from baton.feed.blame import proven
from baton.feed.failures import failures_of
from baton.feed.issue_progress import Progress
from baton.feed.issues import Issue
from baton.formats.document import read_bytes
from baton.improvements.choose_component import OF_SENDER, Pointed, pointing
from baton.model import Case, CaseResult, InputError, Problem, Trace, counted
from baton.model.option_spelling import option
from baton.model.views import index_of
from baton.runner.judged_subjects import terms_of
from baton.stats.calibration import FAILED, Opinion, Terms, people_class
from baton.store import row_of

from .blame import FINDERS
from .issues import Opened
from .prepare import Note, PathLike, ScoreOptions
from .rubrics import rubric_evaluator
from .server_client import Server, connect, names_server
from .server_rows import IssueRow, Page
from .server_source import is_server, source_of

_OPEN = ("new", "open", "regressed")
_CONVERSATIONS = 500
"""Maximum conversations to fetch from a server because something in them was labelled as failed.
Each costs a request; more labels for one agent would not change which agent is chosen."""


class Evidence(NamedTuple):
    """Evidence about agents, by name, and people's labels."""

    pointed: dict[str, Pointed]
    labels: list[Label]


def evidence_of(
    issues: Sequence[PathLike],
    labels: Sequence[PathLike],
    cases: Sequence[Case],
    config: Config | None,
    note: Note,
    options: ScoreOptions,
) -> Evidence:
    """Gather the evidence about agents.

    Args:
        issues: files of ``baton issues --json``, servers (``server://HOST/PROJECT``), and
            evaluations and recordings, whose failures are grouped and whose records are asked who
            is to blame. Recordings are scored by what their record proves; no judge is asked.
        labels: files of ``baton label``, or servers.
        cases: the cases to play; those from a recording identify what labels are about.
        config: for the user's own rubrics.
        note: called with what is left out.
        options: where definitions of agents are, and whom to trust.

    Raises:
        InputError: a file with errors, or nothing that could be read.
        ServerError: a server does not answer.
    """
    tally = _Tally()
    local: list[PathLike] = []
    traces: dict[str, Trace] = {}
    for source in issues:
        if names_server(source):
            server, fields, most = _server(str(source))
            pages = server.pages("/issues", Page[IssueRow], {"all": True, **fields}, most)
            tally.take_issues([each for page in pages for each in page.items], note)
        elif (kept := _issues_in(Path(source))) is not None:
            tally.take_issues(kept, note)
        else:
            local.append(source)
    own_labels = [label for source in labels for label in _labels_in(source)]
    wanted = {str(label.trace) for label in own_labels}
    if local:
        taken: ScoreOptions = {"note": note}
        for name in ("agents", "trust"):
            if name in options:
                taken[name] = options[name]
        opened = Opened(local, FINDERS, **taken)
        tally.take_issues(opened.issues().issues, lambda _: None)  # their runs say more, below
        for result, trace in opened.traced():
            tally.take_result(result, trace)
            if trace.id in wanted:
                traces[trace.id] = trace
    if own_labels:
        tally.take_labels(own_labels, labels, traces, cases, config, note)
    return Evidence(tally.pointed(), own_labels)


class _Tally:
    def __init__(self) -> None:
        self._failures: Counter[str] = Counter()
        self._keys: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._blamed: Counter[str] = Counter()
        self._labels: Counter[str] = Counter()

    def pointed(self) -> dict[str, Pointed]:
        """Return what was counted."""
        agents = {*self._failures, *self._blamed, *self._labels}
        return {
            agent: Pointed(
                failures=self._failures[agent],
                issues=[key for key, _ in self._keys[agent].most_common()],
                blamed=self._blamed[agent],
                labels=self._labels[agent],
            )
            for agent in sorted(agents)
        }

    def take_issues(self, issues: Sequence[Issue], note: Note) -> None:
        nobody = 0
        for issue in issues:
            # Muted issues are not to be fixed, and fixed ones need not be.
            if issue.state not in _OPEN:
                continue
            count = issue.count - issue.infrastructure
            agent = at_fault(issue)
            if agent is None:
                nobody += 1
            elif count > 0:
                self._failures[agent] += count
                self._keys[agent][issue.key] += count
        if nobody:
            note(f"{counted(nobody, 'issue')} left out, as no agent is known to be at fault")

    def take_result(self, result: CaseResult, trace: Trace) -> None:
        """Count a failed run for the agent that its record blames, or that its failures point to.

        Failures of a dispatch or a run are already in issues.
        """
        if result.status != "failed":
            return
        failures = list(failures_of(trace, result.scores))
        suspects, _ = proven(trace, failures)
        if suspects:
            self._blamed[suspects[0].agent] += 1
        elif not any(each.sender or each.receiver for each in failures):
            types = {score.evaluator: score.type for score in result.scores}
            self._failures.update({agent for agent, _ in pointing(row_of(result), types)})

    def take_labels(
        self,
        labels: Sequence[Label],
        sources: Sequence[PathLike],
        traces: dict[str, Trace],
        cases: Sequence[Case],
        config: Config | None,
        note: Note,
    ) -> None:
        rubrics = {label.rubric: _rubric(label.rubric, config) for label in labels}
        failed = [label for label in labels if _fails(label, rubrics[label.rubric].terms)]
        missing = sorted({str(label.trace) for label in failed} - {*traces})[:_CONVERSATIONS]
        for address in filter(names_server, sources) if missing else ():
            server = _server(str(address)).server
            for id_ in missing:
                with suppress(InputError):  # retention deleted it: it is counted below
                    traces[id_] = server.conversation(id_)
        unplaced = 0
        for label in failed:
            agents = _agents_of(label, traces.get(str(label.trace)), cases)
            if agents is None:
                unplaced += 1
                continue
            sender, receiver = agents
            is_senders = rubrics[label.rubric].type in OF_SENDER
            agent = (sender or receiver) if is_senders else (receiver or sender)
            if agent is not None:
                self._labels[agent] += 1
        if unplaced:
            note(
                f"{counted(unplaced, 'label')} left out: their traces are not here; name the "
                f"evaluation or recording with {option('issues')}"
            )


class _Rubric(NamedTuple):
    type: str
    terms: Terms


def _rubric(name: str, config: Config | None) -> _Rubric:
    """Return what a rubric's labels mean; for an unknown one, `passed` and `failed` are clear."""
    try:
        evaluator = rubric_evaluator(name, config)
    except InputError:
        return _Rubric(name, Terms())
    return _Rubric(evaluator.type, terms_of(evaluator))


def _fails(label: Label, terms: Terms) -> bool:
    try:
        value = label.value
        opinion = (
            Opinion(label=value) if isinstance(value, str) else Opinion(score=terms.score(value))
        )
    except ValueError:
        return False  # not on the scale
    return people_class(opinion, "verdicts", terms) == FAILED


def _agents_of(
    label: Label, trace: Trace | None, cases: Sequence[Case]
) -> tuple[str | None, str | None] | None:
    """Return the sender and receiver of a labelled thing; ``None`` if it is not here."""
    if trace is not None:
        index = index_of(trace)
        id_ = label.subject or ""
        if id_ in index.dispatches:
            made = index.dispatches[id_]
            return made.from_agent, made.to_agent
        for turn in trace.turns:
            for run in turn.runs:
                if id_ == run.id or any(step.id == id_ for step in run.steps):
                    return None, run.agent
            if id_ == turn.id or not label.subject:
                # For a whole turn this is unknown: the agent that opened it is responsible.
                return None, turn.runs[0].agent if turn.runs else None
        return None
    for case in cases:
        if is_about(label, case) and case.dispatch is not None:
            return case.dispatch.call.sender, case.dispatch.call.to
    return None


def is_about(label: Label, case: Case) -> bool:
    """Return whether a label is about the dispatch that a case was made from."""
    origin = case.dispatch.origin if case.dispatch is not None else None
    return (
        origin is not None
        and origin.trace is not None
        and origin.trace == label.trace
        and origin.dispatch == label.subject
    )


def with_labels(cases: Sequence[Case], labels: Sequence[Label]) -> Iterator[Case]:
    """Yield cases with people's labels on the dispatches that they were made from."""
    for case in cases:
        own = {each.rubric: _label_text(each) for each in labels if is_about(each, case)}
        yield msgspec.structs.replace(case, labels={**own, **case.labels}) if own else case


def _label_text(label: Label) -> str:
    value = label.value if isinstance(label.value, str) else f"{label.value:g}"
    return f"{value}: {label.note}" if label.note else value


_SENDERS = ("choosing", "asking", "using")
_SENDERS_TOO = ("loop", "repeated_work", "over_limit")
"""Faults of `running` that are caused by how work is passed on."""


def at_fault(issue: Issue) -> str | None:
    """Return the agent whose text can fix an issue: the sender if it chose or asked badly."""
    if issue.subtype == "infrastructure":
        return None  # a model or the network was down: no text helps
    agents = [issue.receiver, issue.sender]
    if issue.category in _SENDERS or issue.subtype in _SENDERS_TOO:
        agents.reverse()
    return next((agent for agent in agents if agent), None)


def _issues_in(path: Path) -> list[Issue] | None:
    """Return the issues of a file of ``baton issues --json``; ``None`` for anything else.

    It has a line for each issue. A progress file (`.baton/issues/KEY.json`) contains its issue.
    """
    if not path.is_file() or path.suffix not in (".json", ".jsonl"):
        return None
    data = read_bytes(path)
    whole = _issue_of(data)
    if whole is not None:
        return [whole]
    issues: list[Issue] = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        issue = _issue_of(line)
        if issue is None:
            if not issues:
                return None  # recordings are JSON lines, too
            message = "is not an issue of `baton issues --json`, but the lines before it are"
            raise InputError(Problem(file=os.fspath(path), line=number, message=message))
        issues.append(issue)
    return issues or None


def _issue_of(data: bytes) -> Issue | None:
    try:
        return msgspec.json.decode(data, type=Issue)
    except msgspec.MsgspecError:
        pass
    try:
        return msgspec.json.decode(data, type=Progress).issue
    except msgspec.MsgspecError:
        return None


class _Server(NamedTuple):
    server: Server
    fields: dict[str, object]
    most: int | None


def _server(address: str) -> _Server:
    if is_server(address):
        server, fields, most, _ = source_of(address)
        return _Server(server, fields, most)
    return _Server(connect(address), {}, None)


def _labels_in(source: PathLike) -> list[Label]:
    if names_server(source):
        kept: dict[tuple[str | None, ...], Label] = {}
        for label in _server(str(source)).server.labels():  # the newest first
            kept.setdefault((label.rubric, label.trace, label.what, label.by), label)
        return list(kept.values())
    return read_labels(Path(source))

"""Issues of recordings and evaluations: grouped failures, and the states that people give."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import msgspec

from baton.config.judge_config import JudgeConfig, JudgeFlags
from baton.feed.failures import failures_of
from baton.feed.issue_progress import Progress
from baton.feed.issue_states import Mark, with_marks
from baton.feed.issues import STATES, Collector, Groups, Issue, Rate, State, can_be_grouped
from baton.feed.promote import Run, marks_by_cases
from baton.feed.text_groups import Embed
from baton.formats.evaluation_header import HEADER, read_header
from baton.formats.own_files import make_folder, naming, open_own
from baton.model import (
    CaseResult,
    InputError,
    JudgeError,
    Problem,
    Status,
    Trace,
    counted,
    suggestion,
)
from baton.plugins import is_installed
from baton.plugins.origin import install, requirement
from baton.runner.plan import Specs
from baton.store import FoundTrace, rows_of

from .file_kinds import config_of
from .prepare import Note, PathLike, ScoreOptions, log_note
from .report import STORED
from .results import results_of

if TYPE_CHECKING:
    from .server_client import Server

MARKS = Path(".baton") / "issues.jsonl"
"""The file with the states that people give to issues, one per line; the last one counts."""
PROGRESS = Path(".baton") / "issues"
"""The folder with the progress of issues: one file each."""
GROUPS = Path(".baton") / "issue-groups.json"
"""The file with the groups of texts, so that they keep their names when more failures come."""


class Found(NamedTuple):
    """Issues, the most frequent first, and what they were made from.

    ``unread`` counts results whose trace no longer exists; their failures are not counted.
    ``traces`` is ``None`` for a server, which also counts deleted conversations. ``kept`` is the
    stored progress by key of the issue, and ``quiet`` the issues that have progress, but no failure
    in these sources. States are kept in the file ``marks``, or by the ``server``.
    """

    issues: Sequence[Issue]
    failures: int
    traces: int | None
    unread: int
    kept: Mapping[str, Progress] = MappingProxyType({})
    quiet: Sequence[Issue] = ()
    marks: PathLike = MARKS
    server: Server | None = None

    def listed(self, *, all: bool = False) -> list[Issue]:
        """Return the issues, then the quiet ones that are regressed, or all quiet ones."""
        return [*self.issues, *(each for each in self.quiet if all or each.state == "regressed")]

    def named(self, key: str) -> Issue:
        """Return the issue with this key, or the only one whose key begins so.

        Raises:
            InputError: no issue or several issues match the key.
        """
        issue = issue_named(key, [*self.issues, *self.quiet])
        # Only when it is asked for one issue does a server tell the members.
        return issue if self.server is None else self.server.issue(issue.key).issue

    def mark(
        self,
        key: str,
        state: str,
        *,
        version: str | None = None,
        note: str | None = None,
        by: str | None = None,
    ) -> Mark | Issue:
        """Set the state of an issue, as :func:`mark_issue` does; return it with its new state.

        Raises:
            InputError: no issue or several issues match the key, or the state cannot be set.
        """
        every = [*self.issues, *self.quiet]
        if self.server is None:
            return mark_issue(
                key, state, every, version=version, note=note, by=by, marks=self.marks
            )
        key = issue_named(key, every).key
        return self.server.mark_issue(key, state, version=version, note=note, by=by).issue


def find_issues(
    sources: Sequence[PathLike] = (),
    evaluators: Specs | None = None,
    *,
    stored: PathLike = STORED,
    marks: PathLike = MARKS,
    groups: PathLike = GROUPS,
    progress: PathLike = PROGRESS,
    embeddings: str | Mapping[str, Any] | None = None,
    unreadable: list[str] | None = None,
    **options: Unpack[ScoreOptions],
) -> Found:
    """Group failures into issues.

    Args:
        sources: folders of evaluations, whose scores are used, and recordings, which are scored
            like :func:`baton.score`; by default the newest evaluation.
        stored: where evaluations are stored.
        marks: the file with the states of issues.
        groups: the file with the groups of texts; it is updated.
        progress: the folder with the progress of issues.
        embeddings: the model for comparing judges' reasons by vectors instead of words:
            ``"openai:text-embedding-3-small"`` (at the address of `judge:` of the config, if that
            is also OpenAI), or settings as for a judge. Secrets are masked before sending.
        evaluators: the evaluators for recordings, as for :func:`baton.score`.
        unreadable: a list that gets the errors of broken files, which are skipped; without it, a
            broken file is an error.
        options: for recordings, as for :func:`baton.score`: ``config``, ``agents`` and more;
            ``note`` is called with what was left out.

    Raises:
        InputError: an option or file with errors, or nothing could be read.
    """
    embed = None if embeddings is None else embedder(embeddings, options)
    opened = Opened(sources, evaluators, stored=stored, unreadable=unreadable, **options)
    return opened.issues(marks=marks, groups=groups, progress=progress, embed=embed)


class Opened:
    """Evaluations and recordings that are scored once and can be read again and again."""

    def __init__(
        self,
        sources: Sequence[PathLike] = (),
        evaluators: Specs | None = None,
        *,
        stored: PathLike = STORED,
        unreadable: list[str] | None = None,
        **options: Unpack[ScoreOptions],
    ) -> None:
        self.note: Note = options.get("note", log_note)
        self.stored = Path(stored)
        self._results = results_of(
            sources, evaluators, stored=stored, unreadable=unreadable, **options
        )

    def results(self) -> Iterator[tuple[CaseResult, FoundTrace]]:
        """Yield the results, each conversation once, with the scores of all evaluations."""
        return iter(self._results)

    def traced(self) -> Iterator[tuple[CaseResult, Trace]]:
        """Yield the results whose trace exists."""
        for result, found_trace in self.results():
            if found_trace.trace is not None:
                yield result, found_trace.trace

    def issues(
        self,
        *,
        marks: PathLike = MARKS,
        groups: PathLike = GROUPS,
        progress: PathLike = PROGRESS,
        embed: Embed | None = None,
    ) -> Found:
        """Group failures into issues; see :func:`find_issues`."""
        known = Marks(Path(marks)).read()
        kept = {each.issue.key: each for each in ProgressFolder(progress).read_all()}
        collector = Collector()
        traces = unread = 0
        for result, found_trace in self.results():
            if found_trace.trace is None:
                unread += 1
                continue
            traces += 1
            collector.see(found_trace.trace)
            collector.add(failures_of(found_trace.trace, result.scores))
        if unread:
            self.note(f"{counted(unread, 'result')} left out, as the trace is missing")
        for each in collector.limits.said():
            self.note(each)
        issues = _in_groups(collector, Path(groups), self.note, embed)
        there = {issue.key for issue in issues}
        quiet = [
            msgspec.structs.replace(
                each.issue, count=0, rate=Rate(failed=0, dispatches=0, per_1000=None)
            )
            for each in kept.values()
            if each.issue.key not in there
        ]
        runs = list(_runs_of(self.stored)) if any(p.promotion for p in kept.values()) else []
        all_marks = [*known, *(m for p in kept.values() for m in marks_by_cases(p, runs, known))]
        return Found(
            issues=list(with_marks(issues, all_marks)),
            failures=collector.failures,
            traces=traces,
            unread=unread,
            kept=kept,
            quiet=list(with_marks(quiet, all_marks)),
            marks=marks,
        )


def _runs_of(stored: Path) -> Iterator[Run]:
    """Yield the verdicts of evaluations that played cases without changed texts.

    Scores of old recordings say nothing about the current agents, and plays with changed texts
    say nothing about the current texts.
    """
    for file in sorted(stored.glob(f"*/{HEADER}")):
        header = read_header(file.parent)
        about, started = header.provenance, header.timings.get("started")
        if about is None or not about.provider or about.texts or not isinstance(started, str):
            continue
        verdicts: dict[str, Status] = {}
        for row in rows_of(file.parent):
            # The worst repeat counts.
            before = verdicts.get(row.case_id, "passed")
            verdicts[row.case_id] = max(before, row.status, key=_WORST.index)
        yield Run(datetime.fromisoformat(started).timestamp(), verdicts)


_WORST: list[Status] = ["passed", "skipped", "error", "failed"]


def issues_of_server(server: Server) -> Found:
    """Return all issues of a server, including muted and fixed ones.

    Raises:
        InputError: the server refuses the request.
        ServerError: the server does not answer.
    """
    issues = list(server.issues(all=True))
    return Found(issues, sum(issue.count for issue in issues), None, 0, server=server)


def embedder(embeddings: str | Mapping[str, Any], options: ScoreOptions) -> Embed:
    """Return a function that computes vectors of texts, with the budget and cache of a run.

    Raises:
        InputError: an unknown model, or settings with errors.
    """
    from baton.judges.embeddings import Embeddings
    from baton.judges.judge_settings import read_settings, replaced
    from baton.runner.loop import run_anywhere

    judge = options.get("judge")
    flags = judge if isinstance(judge, JudgeFlags) else JudgeFlags()
    named = options.get("config")
    config = config_of(named) if isinstance(named, str | os.PathLike) else named
    judging = config.judging if config is not None else JudgeConfig()
    path = ("embeddings",)
    if not isinstance(embeddings, str):
        settings = read_settings(embeddings, path)
    elif judging.options.get("model"):
        settings = replaced(read_settings(judging.options), {"model": embeddings}, path)
    else:
        settings = read_settings({"model": embeddings}, path)
    made = Embeddings(
        settings,
        cache=judging.cache if flags.cached else None,
        max_cost=flags.max_cost,
        prices=None if config is None else config.plan.prices,
    )
    return lambda texts: run_anywhere(made.of(texts))


def _in_groups(
    collector: Collector, path: Path, note: Note, embed: Embed | None = None
) -> list[Issue]:
    """Return the issues with their groups; groups keep their names from the file."""
    if not is_installed("sklearn"):
        grouped = collector.issues()
        if any(can_be_grouped(issue) for issue in grouped):
            note(f"reasons of judges are not grouped: {install(requirement('feed'))}")
        return grouped
    groups = _read_groups(path)
    before = msgspec.json.encode(groups, order="deterministic")
    # Grouping by words would split groups that vectors made. Without vectors they are kept.
    hold = groups.pop(_BY_VECTORS, None) is not None
    try:
        issues = collector.issues(groups, embed, hold=hold and embed is None)
    except JudgeError as error:
        note(f"there are no embeddings, so new reasons are compared by their words: {error}")
        groups = _read_groups(path)
        embed = None
        groups.pop(_BY_VECTORS, None)
        issues = collector.issues(groups, hold=hold)
    if hold or embed is not None:
        groups[_BY_VECTORS] = {}
    after = msgspec.json.encode(groups, order="deterministic")
    if after != before:
        with naming(path):
            make_folder(path.parent)
            with open_own(path, "wb") as file:
                file.write(after)
    return issues


_BY_VECTORS = ""
"""The key that marks the groups of a signature as made by vectors."""


def _read_groups(path: Path) -> Groups:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Groups)
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.MsgspecError) as error:
        message = f"contains no groups: {error}; delete it to create new ones"
        raise InputError(Problem(file=str(path), message=message)) from None


def members_of_group(key: str, groups: PathLike = GROUPS) -> list[str] | None:
    """Return the ids of the members of an issue that is a group of texts; ``None`` for another one.

    Args:
        key: the key of the issue, ``3f2a91c04d17-41d6``, or its first characters.
        groups: the file with the groups of texts.

    Raises:
        InputError: no group has that key, or several do.
    """
    signature, dash, name = key.partition("-")
    if not dash:
        return None
    matches = {
        f"{own}-{each}": ids
        for own, named in _read_groups(Path(groups)).items()
        for each, ids in named.items()
        if own.startswith(signature) and each.startswith(name)
    }
    if len(matches) == 1:
        return next(iter(matches.values()))
    what = (
        f"several match: {', '.join(list(matches)[:3])}" if matches else "`baton issues` lists them"
    )
    raise InputError(f"no issue `{key}`; {what}")


def mark_issue(
    key: str,
    state: str,
    issues: Sequence[Issue],
    *,
    version: str | None = None,
    note: str | None = None,
    by: str | None = None,
    marks: PathLike = MARKS,
) -> Mark:
    """Set the state of an issue: ``open``, ``muted``, ``fixed`` (in a version), or ``new``.

    Args:
        key: the key of an issue, or its first characters.
        state: its new state.
        issues: the existing issues.
        version: the version of the receiver's definition in which it is fixed.
        note: the reason.
        by: the person who sets the state.
        marks: the file with the states.

    Raises:
        InputError: no issue or several issues match the key, or the state cannot be set.
    """
    states: list[State] = [each for each in STATES if each != "regressed"]
    chosen = next((each for each in states if each == state), None)
    if chosen is None:
        raise InputError(f"`{state}` is not a state of issues; write one of {', '.join(states)}")
    if version is not None and state != "fixed":
        raise InputError("a version is only allowed with `fixed`: the one with the fix")
    mark = Mark(
        key=issue_named(key, issues).key,
        state=chosen,
        at=datetime.now(UTC).timestamp(),
        by=by,
        note=note,
        version=version,
    )
    Marks(Path(marks)).add(mark)
    return mark


def issue_named(key: str, issues: Sequence[Issue]) -> Issue:
    """Return the issue with this key, or the only one whose key begins so; raises InputError."""
    matches = [issue for issue in issues if issue.key.startswith(key)] if key else []
    if len(matches) == 1:
        return matches[0]
    if matches:
        listed = ", ".join(issue.key for issue in matches[:3])
        raise InputError(f"several issues begin with `{key}`: {listed}")
    hint = suggestion(key, [issue.key for issue in issues]) if issues else "there are no issues"
    raise InputError(f"no issue `{key}`; {hint}")


class Marks:
    """The file with the states of issues: one JSON object per line, only ever appended to."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[Mark]:
        """Return all of them; raises InputError for an invalid line."""
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise InputError(Problem(file=str(self._path), message=str(error.strerror))) from None
        read = []
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                read.append(msgspec.json.decode(line, type=Mark))
            except msgspec.MsgspecError as error:
                problem = Problem(file=str(self._path), line=number, message=str(error))
                raise InputError(problem) from None
        return read

    def add(self, mark: Mark) -> None:
        """Write one more."""
        self.read()  # a damaged file is reported before anything is added to it
        with naming(self._path):
            make_folder(self._path.parent)
            with open_own(self._path, "ab") as file:
                file.write(msgspec.json.encode(mark) + b"\n")
                file.flush()
                os.fsync(file.fileno())


class ProgressFolder:
    """The folder with the progress of issues: a JSON file each, named by the key."""

    def __init__(self, path: PathLike = PROGRESS) -> None:
        self._path = Path(path)

    def read(self, key: str) -> Progress | None:
        """Return the progress of an issue; raises InputError for a damaged file."""
        file = self._path / f"{key}.json"
        try:
            return msgspec.json.decode(file.read_bytes(), type=Progress)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError) as error:
            message = f"is not the progress of an issue: {error}"
            raise InputError(Problem(file=str(file), message=message)) from None

    def read_all(self) -> Iterator[Progress]:
        """Yield all of them, by their keys."""
        for file in sorted(self._path.glob("*.json")):
            progress = self.read(file.stem)
            if progress is not None:
                yield progress

    def write(self, progress: Progress) -> None:
        """Store the progress of an issue, replacing what was stored."""
        file = self._path / f"{progress.issue.key}.json"
        fresh = file.with_suffix(".new")
        with naming(file):
            make_folder(self._path)
            with open_own(fresh, "wb") as out:
                out.write(msgspec.json.format(msgspec.json.encode(progress), indent=2))
            fresh.replace(file)

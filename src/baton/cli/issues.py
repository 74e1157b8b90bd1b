"""``baton issues``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated

import msgspec

from baton.model import InputError, counted
from baton.reports.text import one_line

from .options import LATER, USUAL, ConfigPath, Evaluators, Flag, Paths, Scoring, Whole

if TYPE_CHECKING:
    from baton.feed.issues import Issue, Member, Rate
    from baton.session.issues import Found

_SHOWN = 5
"""Members of an issue that are listed: it has many alike."""


def issues_command(
    *sources: str,
    show: str | None = None,
    mark: str | None = None,
    why: str | None = None,
    version: Annotated[str | None, LATER] = None,
    by: Annotated[str | None, LATER] = None,
    all: Flag = False,
    most: Whole = 20,
    json: Flag = False,
    server: str | None = None,
    project: Annotated[str | None, LATER] = None,
    evaluators: Evaluators = (),
    config: ConfigPath = None,
    scoring: Scoring = USUAL,
    trust: Annotated[Paths, LATER] = (),
) -> int:
    """Group what failed into issues: the same fault between the same agents is one.

    Parameters
    ----------
    sources
        Folders of evaluations, which are taken as they were scored, and recordings, which are
        scored first; the newest evaluation when left out.
    show
        Show this issue with some of its failures: its key, or how that begins.
    mark
        Give an issue a state, as KEY=STATE: new, open, muted or fixed.
    why
        Why it gets that state.
    version
        The version of the agent's definition in which it is fixed.
    by
        Who gives it that state.
    all
        List muted and fixed issues as well.
    most
        List so many issues.
    json
        Print the issues as JSON, with all that is known of each.
    server
        The address of a server whose issues are meant. The key is in `BATON_API_KEY`.
    project
        The project on the server; that of the key, or `default`, when left out.
    evaluators
        An evaluator to score recordings with. May be given several times.
    config
        A config by which recordings are scored.
    trust
        A folder whose files may name code. May be given several times.
    """
    from baton.session.issues import find_issues, issue_named, issues_of_server, mark_issue
    from baton.session.server_client import connect

    if mark is None and (why or version or by):
        raise InputError("--why, --version and --by go with --mark")
    if server is not None:
        if sources or evaluators or config is not None:
            raise InputError("--server shows what the server found: name no recordings beside it")
        asked_server = connect(server, project=project)
        found = issues_of_server(asked_server)
        if mark is not None:
            key, _, state = mark.partition("=")
            key = issue_named(key, found.issues).key
            one = asked_server.mark_issue(key, state, version=version, note=why, by=by).issue
            print(f"{one.key} is {one.state} now")
        elif show is not None:
            _show(asked_server.issue(issue_named(show, found.issues).key).issue, json=json)
        else:
            _list(found, all=all, most=most, json=json)
        return 0
    if project is not None:
        raise InputError("--project goes with --server")
    asked = scoring.options(trust, rehearsal=False)
    asked["config"] = config
    # What the user's own code prints does not belong to the list.
    with redirect_stdout(sys.stderr):
        found = find_issues(sources, evaluators or None, **asked)
    if mark is not None:
        key, _, state = mark.partition("=")
        given = mark_issue(key, state, found.issues, version=version, note=why, by=by)
        print(f"{given.key} is {given.state} now")
        return 0
    if show is not None:
        _show(issue_named(show, found.issues), json=json)
    else:
        _list(found, all=all, most=most, json=json)
    return 0


def _show(issue: Issue, *, json: bool) -> None:
    print(_encoded(issue)) if json else _print_one(issue)


def _list(found: Found, *, all: bool, most: int, json: bool) -> None:
    if json:
        for issue in found.issues:
            print(_encoded(issue))
    else:
        _print(found, all=all, most=most)


def _encoded(issue: Issue) -> str:
    return msgspec.json.encode(issue).decode()


def _print(found: Found, *, all: bool, most: int) -> None:
    from rich.table import Table

    from baton.reports.text import Text, console_for

    console = console_for(sys.stdout)
    shown = [each for each in found.issues if all or each.state not in ("muted", "fixed")]
    if not found.issues:
        print(f"no issue: nothing failed{_in_traces(found)}")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, title in enumerate(("issue", "state", "failures", "per 1,000", "what")):
        table.add_column(title, justify="right" if place in (2, 3) else "left", no_wrap=place < 4)
    for issue in shown[:most]:
        cells = (issue.key, issue.state, f"{issue.count:,}", _per_1000(issue.rate), issue.title)
        table.add_row(*(Text(one_line(cell, 160)) for cell in cells))
    console.print(table)
    left = len(found.issues) - len(shown[:most])
    more = f"; {left} more: --all, --most {len(found.issues)}" if left else ""
    failures = f"{counted(found.failures, 'failure')}{_in_traces(found)}"
    print(f"{counted(len(found.issues), 'issue')}, {failures}{more}")


def _in_traces(found: Found) -> str:
    return "" if found.traces is None else f" in {counted(found.traces, 'conversation')}"


def _print_one(issue: Issue) -> None:
    lines = [
        f"{issue.key}  {issue.title}",
        f"  {issue.subtype.replace('_', ' ')} ({issue.category})"
        + (f", MAST {', '.join(issue.mast)}" if issue.mast else ""),
        f"  {issue.state}" + "".join(f", {text}" for text in _marked(issue)),
        f"  {issue.count:,} failures by {', '.join(issue.evaluators)}"
        + (f"; {issue.judged:,} judged" if issue.judged else ""),
        f"  per 1,000 dispatches of {issue.edge}: {_per_1000(issue.rate)}",
    ]
    lines += [f"    version {name}: {_counted(rate)}" for name, rate in issue.by_version.items()]
    lines += [f"    model {name}: {_counted(rate)}" for name, rate in issue.by_model.items()]
    if issue.infrastructure:
        lines.append(f"  {issue.infrastructure:,} of them while many agents failed at once")
    lines += [line for member in issue.members[:_SHOWN] for line in _member(member)]
    for line in lines:
        indent = len(line) - len(line.lstrip())
        print(" " * indent + one_line(line, 300))


def _marked(issue: Issue) -> list[str]:
    return [
        *([f"in version {issue.version}"] if issue.version else []),
        *([f"by {issue.by}"] if issue.by else []),
        *([issue.note] if issue.note else []),
    ]


def _member(member: Member) -> list[str]:
    where = f" {member.dispatch}" if member.dispatch else ""
    return [f"  - {member.conversation}{where}", f"    {member.says}"]


def _per_1000(rate: Rate) -> str:
    per = rate.per_1000
    if per is None:
        return "not known"
    if per.low is None or per.high is None:
        return f"{per.value:.1f}"
    return f"{per.value:.1f} [{per.low:.1f}, {per.high:.1f}]"


def _counted(rate: Rate) -> str:
    return f"{rate.failed:,} of {rate.dispatches:,}, {_per_1000(rate)}"

"""``baton issues``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Group, Parameter

from baton.feed.fixes import diff_of
from baton.feed.issue_progress import ENDINGS, Fix, Investigation, Progress, Promotion, Statement
from baton.model import InputError, counted
from baton.reports.text import one_line

from .options import (
    LATER,
    USUAL,
    Changes,
    ConfigPath,
    Evaluators,
    Flag,
    Output,
    Paths,
    Scoring,
    Whole,
    Words,
    given,
)
from .output import print_estimate
from .usage_messages import exit_code_of, say

if TYPE_CHECKING:
    from baton.feed.issues import Issue, Member, Rate
    from baton.judges.judge import JudgingEstimate
    from baton.session.issue_work import Promotable, Proven
    from baton.session.issues import Found

WORK = Parameter(group=Group("Investigating, proving and promoting", sort_key=2))

_SHOWN = 5
"""The most members of an issue that are listed: many are alike."""


def issues_command(
    *sources: str,
    show: str | None = None,
    mark: str | None = None,
    why: str | None = None,
    version: Annotated[str | None, LATER] = None,
    by: Annotated[str | None, LATER] = None,
    investigate: Annotated[str | None, WORK] = None,
    prove: Annotated[str | None, WORK] = None,
    promote: Annotated[str | None, WORK] = None,
    output: Annotated[Output, WORK] = None,
    agent: Annotated[str | None, WORK] = None,
    changes: Annotated[Changes, WORK] = (),
    expect: Annotated[Words, WORK] = (),
    repeat: Annotated[Whole | None, WORK] = None,
    count: Annotated[Whole | None, WORK] = None,
    passes: Annotated[Whole | None, WORK] = None,
    steps: Annotated[Whole | None, WORK] = None,
    condense_model: Annotated[str | None, WORK] = None,
    dry_run: Annotated[Flag, WORK] = False,
    embeddings: Annotated[str | None, LATER] = None,
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
    """Group failures into issues: one for each fault between the same agents.

    Parameters
    ----------
    sources
        Folders of evaluations, with the scores they have, and recordings, which are scored first.
        By default, the newest evaluation.
    show
        Show the issue with this key, with some of its failures. The start of a key is enough.
    mark
        Set the state of an issue, as KEY=STATE: new, open, muted or fixed.
    why
        The reason for the new state.
    version
        The version of the agent's definition in which it is fixed.
    by
        Who sets the state.
    investigate
        Let the model of --judge examine this issue, say what goes wrong, and propose a fix.
    prove
        Play members of this issue and passing neighbours with its fix; needs --agent.
    promote
        Make cases of this issue's members and of passing neighbours; needs -o.
    output
        The folder of cases that --promote adds to.
    agent
        The agent or config whose texts a fix may change, and which plays the cases.
    changes
        With --prove, a fix of your own: NAME=FILE, as in agent:desk=new.md.
    expect
        The agent that the work should have gone to; `nobody` for none. May be given several times.
    repeat
        With --prove, how often each case is played on either side; 3 by default.
    count
        With --promote, the number of members; 8 by default.
    passes
        With --promote, in how many evaluations in a row its cases have to pass to close it; 3.
    steps
        With --investigate, the maximum number of steps of the model; up to 30.
    condense_model
        With --investigate, a cheaper model that condenses long steps.
    dry_run
        With --investigate, print the estimated cost; call no model.
    embeddings
        Compare reasons of judges by vectors of this model, as in openai:text-embedding-3-small.
    all
        Also list muted and fixed issues.
    most
        List at most this many issues.
    json
        Print the issues as JSON, with all fields.
    server
        Show the issues of the server at this address. The key is in `BATON_API_KEY`.
    project
        The project on the server; by default the project of the key, or `default`.
    evaluators
        An evaluator to score recordings with. May be given several times.
    config
        A config to score recordings with.
    trust
        A folder whose files may name code. May be given several times.
    """
    from baton.session.issues import find_issues, issues_of_server

    if mark is None and (why or version or by):
        raise InputError("--why, --version and --by can only be used with --mark")
    verbs = {
        "investigate": investigate,
        "prove": prove,
        "promote": promote,
        "show": show,
        "mark": mark,
    }
    named = [name for name, key in verbs.items() if key]
    if len(named) > 1:
        raise InputError(f"{', '.join(f'--{name}' for name in named)}: give one of them")
    verb = named[0] if named else None
    unreadable: list[str] = []
    if server is not None:
        from baton.session.server_client import connect

        if sources or evaluators or config is not None or embeddings is not None:
            raise InputError("--server shows what the server found: name no recordings beside it")
        if verb in _ACTIONS:
            raise InputError(f"--{verb} works on local evaluations and recordings, not on a server")
        found = issues_of_server(connect(server, project=project))
    else:
        if project is not None:
            raise InputError("--project can only be used with --server")
        if embeddings is not None and verb in _ACTIONS:
            raise InputError(
                "--embeddings can only be used with the list of issues, whose groups are kept"
            )
        _check_work(
            verb,
            agent=agent,
            changes=changes,
            expect=expect,
            repeat=repeat,
            count=count,
            passes=passes,
            steps=steps,
            condense_model=condense_model,
            dry_run=dry_run,
            output=output,
        )
        options = scoring.options(trust, rehearsal=dry_run)
        options["config"] = config
        wanted = evaluators or None
        # `nobody` means that no agent gets the work.
        expected = [] if expect == ("nobody",) else list(expect) or None
        # What the user's own code prints is not part of the output.
        with redirect_stdout(sys.stderr):
            if investigate is not None:
                from baton.session.issue_work import investigate_issue

                investigated = investigate_issue(
                    investigate,
                    sources,
                    wanted,
                    agent=agent,
                    condense=condense_model,
                    **given(steps=steps),
                    **options,
                )
            elif prove is not None:
                from baton.session.components import changes_in
                from baton.session.issue_work import prove_fix

                proven = prove_fix(
                    prove,
                    sources,
                    wanted,
                    agent=agent,
                    texts=changes_in(changes),
                    expect=expected,
                    **given(repeat=repeat),
                    **options,
                )
            elif promote is not None:
                from baton.session.issue_work import promote_issue

                promoted = promote_issue(
                    promote,
                    output or Path(),
                    sources,
                    wanted,
                    expect=expected,
                    **given(count=count, passes=passes),
                    **options,
                )
            else:
                found = find_issues(
                    sources, wanted, embeddings=embeddings, unreadable=unreadable, **options
                )
    if investigate is not None:
        return _print_investigated(investigated, json=json)
    if prove is not None:
        return _print_proven(proven, json=json)
    if promote is not None:
        return _print_promoted(promoted, json=json)
    if mark is not None:
        key, _, state = mark.partition("=")
        marked = found.mark(key, state, version=version, note=why, by=by)
        print(f"{marked.key} is now {marked.state}")
        return 0
    if show is not None:
        _show(found.named(show), found, json=json)
    else:
        _list(found, all=all, most=most, json=json)
    return exit_code_of(unreadable)


def _show(issue: Issue, result: Found, *, json: bool) -> None:
    progress = result.kept.get(issue.key)
    if json:
        print(
            _encoded(issue)
            if progress is None
            else _encoded(msgspec.structs.replace(progress, issue=issue))
        )
        return
    _print_one(issue)
    if progress is not None:
        print_progress(progress)


def _list(result: Found, *, all: bool, most: int, json: bool) -> None:
    issues = result.listed(all=all)
    if json:
        for issue in issues:
            print(_encoded(issue))
    else:
        _print(result, issues, all=all, most=most)


def _print_investigated(progress: Progress | JudgingEstimate, *, json: bool) -> int:
    if not isinstance(progress, Progress):
        return print_estimate(progress, json=json)
    print(_encoded(progress)) if json else print_progress(progress)
    own = progress.investigation
    return 0 if own is not None and own.ending in ("concluded", "out of steps") else 3


def _print_proven(proven: Proven, *, json: bool) -> int:
    from baton.replays.report import print_replayed

    fix = proven.progress.fix
    if json:
        print(_encoded(proven.progress))
    else:
        print_replayed(proven.replayed, sys.stdout, limit=20)
        print_progress(Progress(issue=proven.progress.issue, fix=fix))
    return 0 if fix is not None and fix.state == "proven" else 1


def _print_promoted(promoted: Promotable, *, json: bool) -> int:
    own, made = promoted.progress, promoted.made
    if json:
        print(_encoded(own))
        return 0
    print_progress(Progress(issue=own.issue, promotion=own.promotion))
    members, green = len(made.members), len(made.neighbours)
    say(f"{counted(members, 'member')} and {green} green: {len(promoted.files)} files written")
    return 0


_ACTIONS = ("investigate", "prove", "promote")


def _check_work(verb: str | None, **stated: Any) -> None:
    """Refuse options of another verb; raises InputError."""
    for name, verbs in _GO_WITH.items():
        if stated[name] and verb not in verbs:
            flag = "--with" if name == "changes" else f"--{name.replace('_', '-')}"
            listed = " and ".join(f"--{each}" for each in verbs)
            raise InputError(f"{flag} can only be used with {listed}")
    if verb == "promote" and stated["output"] is None:
        raise InputError("say where the cases go: -o cases/")
    if "nobody" in stated["expect"] and len(stated["expect"]) > 1:
        raise InputError("--expect nobody means that no agent gets it: do not name one as well")


_GO_WITH = {
    "agent": ("investigate", "prove"),
    "changes": ("prove",),
    "expect": ("prove", "promote"),
    "repeat": ("prove",),
    "count": ("promote",),
    "passes": ("promote",),
    "steps": ("investigate",),
    "condense_model": ("investigate",),
    "dry_run": ("investigate",),
    "output": ("promote",),
}


def _encoded(value: Issue | Progress) -> str:
    return msgspec.json.encode(value).decode()


def _print(result: Found, issues: Sequence[Issue], *, all: bool, most: int) -> None:
    from rich.table import Table

    from baton.reports.text import Text, console_for

    console = console_for(sys.stdout)
    shown = [each for each in issues if all or each.state not in ("muted", "fixed")]
    if not issues:
        print(f"no issue: nothing failed{_in_traces(result)}")
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, title in enumerate(("issue", "state", "failures", "per 1,000", "what")):
        table.add_column(title, justify="right" if place in (2, 3) else "left", no_wrap=place < 4)
    for issue in shown[:most]:
        cells = (issue.key, issue.state, f"{issue.count:,}", _per_1000(issue.rate), issue.title)
        table.add_row(*(Text(one_line(cell, 160)) for cell in cells))
    console.print(table)
    hidden, left = len(issues) - len(shown), len(shown) - len(shown[:most])
    said = [f"{counted(len(issues), 'issue')}, {counted(result.failures, 'failure')}"]
    said[0] += _in_traces(result)
    if hidden:
        said.append(f"{hidden} muted or fixed: --all")
    if left:
        said.append(f"{left} more: --most {len(shown)}")
    print("; ".join(said))


def _in_traces(result: Found) -> str:
    return "" if result.traces is None else f" in {counted(result.traces, 'conversation')}"


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


# Characters of a quote, two lines of a terminal; the page of the issue has all of it.
_QUOTED = 160


def print_progress(progress: Progress) -> None:
    """Print the progress of an issue; every line is shown as plain text."""
    parts: list[Iterator[str]] = []
    if progress.investigation is not None:
        parts.append(_investigation(progress.investigation))
    if progress.fix is not None:
        parts.append(_fix(progress.fix))
    if progress.promotion is not None:
        parts.append(_promotion(progress.promotion))
    for line in chain(*parts):
        indent = len(line) - len(line.lstrip())
        print(" " * indent + one_line(line, 400))


def _investigation(result: Investigation) -> Iterator[str]:
    cost = f", {result.cost_usd:.4f} USD" if result.cost_usd is not None else ""
    steps = counted(len(result.looked) + 1, "step")
    yield f"investigated by {result.model}: {ENDINGS[result.ending]} ({steps}{cost})"
    if result.why is not None:
        yield f"  {result.why}"
    if result.entry is not None:
        yield f"  {(result.subtype or 'other').replace('_', ' ')} ({result.category}):"
        yield from _statement(result.entry)
    for statement in result.summary:
        yield from _statement(statement)
    for name, rating in result.scores.items():
        yield f"  {name.replace('_', ' ')}: {rating.value} of 5"
        yield from _statement(rating.because, "    ")
    if result.removed:
        what = counted(result.removed, "statement")
        yield f"  {what} left out: their quotes do not occur in the record"


def _statement(statement: Statement, indent: str = "  ") -> Iterator[str]:
    yield f"{indent}{statement.says}"
    for quote in statement.quotes:
        where = f"{quote.trace} {quote.step}".strip()
        yield f"{indent}  “{one_line(quote.text, _QUOTED)}” ({where})"


def _fix(fix: Fix) -> Iterator[str]:
    by = f" by {fix.by}" if fix.by is not None else ""
    yield f"fix, {fix.state}{by}: {fix.kind.replace('_', ' ')}: {fix.why}"
    for line in diff_of(fix):
        yield f"  | {line}"
    for mark in fix.marks:
        yield f"  new in it: {mark.kind} {mark.text}"
    for fault in fix.faults:
        yield f"  the fix cannot be applied: {fault}"
    if fix.proof is not None:
        proof = fix.proof
        times = f", each {counted(proof.repeats, 'time')}" if proof.repeats > 1 else ""
        errors = f"; {counted(proof.errors, 'case')} could not be played" if proof.errors else ""
        # If plays broke, the table of cases says why.
        if proof.members > proof.errors and not proof.fixed.of:
            yield "  no member fails when it is played as it is, or nothing says what is right: see"
            yield "  --expect"
        yield f"  fixed {proof.fixed}, broke {proof.broke}{times} ({proof.form}){errors}"


def _promotion(promotion: Promotion) -> Iterator[str]:
    count = counted(len(promotion.cases), "case")
    times = counted(promotion.passes, "evaluation")
    yield f"{count} in {promotion.dataset}; closes when all pass in {times} in a row"
    for each in promotion.cases:
        yield f"  - {each.case}: {each.expects}"

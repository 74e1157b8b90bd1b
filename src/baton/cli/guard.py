"""`baton guard`: policies that hold agents to limits while they run."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import msgspec
from cyclopts import App, Parameter
from rich.table import Table

from baton.guard.dry_run import DryRun, Held
from baton.guard.policy import Action
from baton.model import counted
from baton.reports.text import Text, console_for, one_line
from baton.session.guard import check_policy, suggest_policy, try_policy

from .options import FEW, Flag, Output
from .output import readers_may_leave
from .usage_messages import note, say
from .verbs import BELOW, TABLE, examples_text

guard_command = App(
    name="guard",
    default_parameter=Parameter(negative=""),
    group_commands="Commands",
    group_parameters=FEW,
    help_epilogue=examples_text(TABLE["guard"].examples),
)


@guard_command.command(name="check", help_epilogue=examples_text(BELOW["guard check"]))
def check_recordings(
    policy: Path,
    *traces: str,
    functions: str | None = None,
    json: Flag = False,
    strict: Flag = False,
) -> int:
    """Show what a policy would have blocked in recordings.

    Exit codes: 0 success, 1 with --strict when something would have been blocked, 2 bad input,
    3 a rule failed.

    Parameters
    ----------
    policy
        The file of the policy.
    traces
        Recorded traces, in any format Baton reads, or conversations of server://HOST/PROJECT.
    functions
        Your module, or its file, with functions that the policy names; it is executed.
    json
        Print the answer as JSON.
    strict
        Exit with 1 when something would have been blocked, or would have asked a person.
    """
    dry_run = check_policy(policy, traces, functions=functions, note=note)
    with readers_may_leave():
        if json:
            print(msgspec.json.encode(dry_run).decode())
        else:
            _print(dry_run)
    for rule, why in dry_run.failed.items():
        say(f"rule {rule} failed: {one_line(why, 300)}")
    if dry_run.failed:
        return 3
    return 1 if strict and dry_run.blocked else 0


@guard_command.command(name="test", help_epilogue=examples_text(BELOW["guard test"]))
def try_cases(
    policy: Path, cases: Path, /, *, functions: str | None = None, json: Flag = False
) -> int:
    """Apply a policy to the cases of a file, and show where it decides otherwise.

    Exit codes: 0 as expected, 1 otherwise, 2 bad input.

    Parameters
    ----------
    policy
        The file of the policy.
    cases
        The file of cases: events, and what should be decided.
    functions
        Your module, or its file, with functions that the policy names; it is executed.
    json
        Print each case as a line of JSON.
    """
    outcomes = try_policy(policy, cases, functions=functions)
    wrong = [each for each in outcomes if each.problem is not None]
    with readers_may_leave():
        for each in outcomes:
            if json:
                print(msgspec.json.encode(each).decode())
            elif each.problem is not None:
                print(f"different  {one_line(each.name, 100)}: {one_line(each.problem, 300)}")
            else:
                print(f"as expected  {one_line(each.name, 100)}")
        if not json:
            print(f"{counted(len(outcomes), 'case')}, {len(wrong)} decided differently")
    return 1 if wrong else 0


@guard_command.command(name="suggest", help_epilogue=examples_text(BELOW["guard suggest"]))
def suggest_from(*traces: str, output: Output = None) -> int:
    """Make a policy from good recordings: their limits, and the edges and tools that they use.

    Parameters
    ----------
    traces
        Recorded traces, in any format Baton reads, or conversations of server://HOST/PROJECT.
    output
        The file to write; by default it is printed.
    """
    text = suggest_policy(traces, output, note=note)
    if output is None:
        with readers_may_leave():
            print(text, end="")
    else:
        note(f"wrote {output}")
    return 0


_PASSED: dict[Action, str] = {"warn": "warned about", "redact": "redacted", "observe": "observed"}
"""What is said of actions that let an event pass."""


def _print(dry_run: DryRun) -> None:
    console = console_for(sys.stdout)
    by_rule: dict[tuple[str, str], list[Held]] = {}
    for each in dry_run.held:
        by_rule.setdefault((each.rule, each.action), []).append(each)
    table = Table("rule", "action", "times", "first", box=None, pad_edge=False)
    rows = sorted(by_rule.items(), key=lambda row: -len(row[1]))
    for (rule, action), held in rows:
        first = held[0]
        where = f"{first.trace} {first.id}: {first.reason}"
        table.add_row(rule, action, str(len(held)), Text(one_line(where, 300)))
    if rows:
        console.print(table)
    seen = Counter(dry_run.events)
    passed = Counter(each.action for each in dry_run.held)
    others = "".join(
        f", {passed[action]} {said}" for action, said in _PASSED.items() if passed[action]
    )
    print(
        f"{counted(dry_run.traces, 'trace')}: {counted(seen['dispatch'], 'dispatch')}, "
        f"{counted(seen['tool'], 'tool call')} and {counted(seen['output'], 'answer')} decided, "
        f"{len(dry_run.blocked)} would have been blocked{others}"
    )
    if dry_run.left_out:
        print(f"{counted(dry_run.left_out, 'event')} below these would not have happened")
    for rule, count in sorted(dry_run.untold.items()):
        print(f"{rule}: can't tell for {counted(count, 'event')}, as they do not record it")

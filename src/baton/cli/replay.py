"""``baton replay``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, cast

import msgspec
from cyclopts import Parameter

from baton.replays.cases import Played
from baton.session.components import changes_in
from baton.session.evaluate import EvaluateOptions
from baton.session.replay import replay, target_and_moments

from .options import (
    AS_PLAYED,
    LATER,
    USUAL,
    Changes,
    ConfigPath,
    Evaluators,
    Flag,
    Paths,
    Playing,
    Scoring,
    Whole,
    Words,
)
from .output import readers_may_leave
from .signals import note_ignored_interrupts
from .usage_messages import note

_CODES = {"passed": 0, "skipped": 0, "failed": 1, "error": 3}


def replay_command(
    *words: str,
    config: ConfigPath = None,
    dispatch: Words = (),
    form: Played | None = None,
    changes: Changes = (),
    repeat: Whole | None = None,
    expect: Words = (),
    live_tools: Words = (),
    evaluators: Annotated[Evaluators, LATER] = (),
    json: Flag = False,
    show: Annotated[Whole, LATER] = 20,
    output: Annotated[Path | None, LATER, Parameter(name=["--output", "-o"])] = None,
    playing: Playing = AS_PLAYED,
    max_agent_cost: Annotated[float | None, LATER] = None,
    scoring: Scoring = USUAL,
    name: Annotated[str | None, LATER] = None,
    trust: Annotated[Paths, LATER] = (),
) -> int:
    """Play recorded dispatches again, with one thing changed, and show what differs.

    `baton replay [AGENT|CONFIG] RECORDING...` plays each dispatch of recordings again,
    `baton replay [AGENT|CONFIG] CASES...` dispatch cases. Tools are answered from the recording:
    none runs except those of --live-tools. The exit code is 1 when a case fails its expectation
    (with --with: with the change), 3 when a play ended in an error, and 0 otherwise.

    Parameters
    ----------
    words
        A config (by default `baton.yaml`) or an agent, as for `baton eval`, then recordings or
        cases.
    config
        A config. With an agent, that one plays instead of the config's.
    dispatch
        Play only this dispatch of the recordings, by its id; TRACE/ID if several recordings have
        one with that id. May be given several times.
    form
        What is played: the `decision` of the sender, once more; the receiver with the same prompt
        (`child`); the sender with the recorded result (`integration`); or all messages of a
        recording (`conversation`). Cases state it themselves; for recordings the default is
        `decision`.
    changes
        Also play with a changed text of the agents: NAME=FILE, as in agent:desk=new.md; NAME is one
        of `baton components`, and of examples FILE may be cases.yaml:id1,id2. May be given several
        times.
    repeat
        How often each case is played, unchanged and changed.
    expect
        The agent that the dispatch should go to; with --dispatch.
    live_tools
        A tool that really runs. May be given several times.
    evaluators
        An evaluator to score with: NAME, or NAME:0.8 with its threshold; +NAME adds it to those
        for what the cases expect. May be given several times.
    json
        Print everything as JSON.
    show
        How many cases are printed.
    output
        Store both plays as evaluations in this new folder, for `baton view`, `show` and `compare`.
    max_agent_cost
        The most that the agents may cost in all plays, in USD; cases after that are errors.
    name
        Name of the evaluation.
    trust
        A folder whose baton.yaml may name code, although it was only found.
    """
    from baton.replays.report import plain_replayed, print_replayed

    run = {
        "repeat": repeat,
        "concurrency": playing.concurrency,
        "timeout": playing.timeout,
        "max_agent_cost": max_agent_cost,
    }
    options = cast(
        "EvaluateOptions",
        {
            "name": name,
            **scoring.options(trust, rehearsal=False),
            **{name: value for name, value in run.items() if value is not None},
            "texts": changes_in(changes),
            "live_tools": live_tools,
            "config": config,
        },
    )
    note_ignored_interrupts()
    target, moments = target_and_moments(words)
    with redirect_stdout(sys.stderr):  # what agents print is not part of the report
        replayed = replay(
            moments,
            target,
            evaluators or None,
            dispatch=dispatch,
            form=form,
            expect=expect,
            app=playing.app,
            variant=playing.variant,
            keyword=playing.keyword,
            limit=playing.limit,
            save=output,
            **options,
        )
    with readers_may_leave():
        if json:
            plain = msgspec.json.encode(plain_replayed(replayed))
            print(msgspec.json.format(plain, indent=2).decode())
        else:
            print_replayed(replayed, sys.stdout, limit=show)
    if output is not None:
        note(f"both plays are kept: baton view {output}")
    return _CODES[replayed.status]

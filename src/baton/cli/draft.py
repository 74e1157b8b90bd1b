"""``baton draft``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from baton.formats.own_files import make_folder, naming, refuse_overwriting
from baton.model import Form, InputError, Problem
from baton.model.option_spelling import option
from baton.model.redact import ON
from baton.session.convert import (
    dispatch_yaml,
    draft,
    draft_dispatches,
    write_dispatch_cases,
)

from .options import AS_CONFIGURED, LATER, Flag, Output, Redacting, Whole, Words
from .usage_messages import note, say


def draft_command(
    *traces: str,
    dispatch: Words = (),
    output: Output = None,
    form: Annotated[Form, LATER] = "decision",
    context_turns: Annotated[Whole, LATER] = 3,
    expect: Annotated[Flag, LATER] = False,
    agents: Path | None = None,
    redacting: Redacting = AS_CONFIGURED,
) -> int:
    """Turn a good run into a case: print a dataset that expects what it did.

    Parameters
    ----------
    traces
        Files and folders with recorded traces, or conversations of a server:
        server://HOST/PROJECT?to=AGENT. Each trace becomes a case.
    dispatch
        Make a case of this dispatch instead of whole traces: its id, or TRACE/ID if several traces
        have it. May be given several times.
    output
        Write the cases to this file, which must not exist yet, in place of printing them. With
        dispatches also a folder (`cases/`), which gets a file for each.
    form
        How cases of dispatches are played: the sender chooses again (decision), the receiver gets
        the same prompt (child), or the sender continues from the result (integration).
    context_turns
        The number of turns before and after a dispatch that its case includes in full.
    expect
        Expect the same receiver and the same allowed tools.
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    """
    redact = redacting.over(ON)
    if not dispatch:
        stated = {"form": form != "decision", "context_turns": context_turns != 3, "expect": expect}
        name = next((name for name, is_given in stated.items() if is_given), None)
        if name is not None:
            raise InputError(f"{option(name)} needs {option('dispatch')}: it is for dispatches")
        if output is not None:
            refuse_overwriting([output], traces)
            if output.is_file():  # people edit what was drafted
                message = "exists already: name another file, or print the cases with `>`"
                raise InputError(Problem(file=str(output), message=message))
        text = draft(traces, agents=agents, redact=redact, note=note)
        return _written(text, output)
    cases = draft_dispatches(
        traces,
        dispatch,
        form=form,
        context_turns=context_turns,
        expect=expect,
        agents=agents,
        redact=redact,
        note=note,
    )
    if output is None:
        sys.stdout.write(dispatch_yaml(cases))
        return 0
    write_dispatch_cases(cases, output, traces)
    say(f"the cases are in {output}")
    return 0


def _written(text: str, output: Path | None) -> int:
    if output is None:
        sys.stdout.write(text)
        return 0
    make_folder(output.parent)
    with naming(output):
        output.write_text(text, encoding="utf-8")
    say(f"the cases are in {output}")
    return 0

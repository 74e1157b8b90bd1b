"""The outcome of a file: sound records, or errors that name it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from baton import iter_traces
from baton.model import InputError, Problem, Trace, integrity_problems

_ENCODE = msgspec.json.Encoder().encode
_DECODE = msgspec.json.Decoder(Trace).decode


class Outcome(NamedTuple):
    """The traces of a file, and what is wrong with it."""

    traces: list[Trace]
    problems: list[Problem]


def outcome(path: Path, agents: Path | None = None) -> Outcome:
    """Read a file or folder; what it gives holds together, and its errors say where they are."""
    traces: list[Trace] = []
    problems: list[Problem] = []
    try:
        for trace in iter_traces(path, agents=agents):
            check(trace)
            traces.append(trace)
    except InputError as error:
        problems = error.problems
        assert problems
    for problem in problems:
        assert problem.message
        assert problem.file is not None
        assert problem.file.startswith(str(path.parent)) or problem.file == str(agents), problem
    assert traces or problems
    return Outcome(traces, problems)


def check(trace: Trace) -> None:
    """Check that a record holds together, and is the same when it is written and read."""
    assert integrity_problems(trace) == []
    assert _DECODE(_ENCODE(trace)) == trace

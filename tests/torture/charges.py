"""A recorded run of Claude Code that charges money, played again: ``python -m tests.torture.charges``.

A customer is paid back once for real, by an MCP server and by Claude Code's own ``Bash``. The
recording is then played again 100 times (``--share 0.1``: 10 times) with the real Claude Code and a
scripted model. In each play the model asks for both tools again, and neither may run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.heavy.claude_desk import calls, open_desk, said, tools

import baton

PLAYS = 100
CALLS = (("mcp__shop__pay", {"order": "7"}), ("Bash", {"command": "echo paid >> bashed"}))


class Charged(NamedTuple):
    """How often money was charged, before the plays and after them, and what went wrong."""

    before: int
    after: int
    wrong: list[str]


def charges(plays: int, folder: Path) -> Charged:
    """Record a run that charges money, and play it again so many times."""
    with open_desk(folder) as desk:
        desk.begin(calls(*CALLS))
        recorded = desk.record()

        def charged() -> int:
            bashed = folder / "bashed"
            return len(desk.called) + len(bashed.read_text().split() if bashed.exists() else [])

        before = charged()
        replayed = baton.replay(
            recorded, desk.spec(cwd=str(folder)), form="conversation", repeat=plays
        )
        wrong = []
        expected = [(name, "replay") for name, _ in CALLS]
        answers = [said(each.result) for each in tools(recorded)]
        for number, result in enumerate(replayed.unchanged.results, 1):
            made = tools(result.trace) if result.trace is not None else []
            asked = [(each.name, each.stand_in) for each in made]
            if result.error is not None or asked != expected:
                wrong.append(f"play {number}: {result.error or asked}")
            elif [said(each.result) for each in made] != answers:
                wrong.append(f"play {number}: other answers than the recorded ones")
        if len(replayed.unchanged.results) != plays:
            wrong.append(f"{len(replayed.unchanged.results)} plays of {plays}")
        return Charged(before, charged(), wrong)


def main(arguments: list[str] | None = None) -> int:
    """Run it; return 1 when something was charged again, or a play went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of 100 plays, such as 0.1")
    plays = max(1, round(PLAYS * parser.parse_args(arguments).share))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = charges(plays, Path(folder))
    for each in found.wrong[:20]:
        print(each)
    print(
        f"Claude Code: {plays} plays, charged {found.after - found.before} times "
        f"({found.before} in the recorded run), {len(found.wrong)} plays went wrong, "
        f"{time.monotonic() - started:.0f} s"
    )
    return (
        0 if found.before == len(CALLS) and found.after == found.before and not found.wrong else 1
    )


if __name__ == "__main__":
    sys.exit(main())

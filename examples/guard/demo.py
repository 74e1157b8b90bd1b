"""One policy while agents run, and over recordings of others: `make demo-guard`, offline.

A supervisor that hands its whole task on, each time to another supervisor, is stopped at depth 10
of 11, and one that never has enough help at 25 dispatches. Both read the reason and finish their
work themselves. A key in the answer of a sub-agent never reaches its caller.
"""

from __future__ import annotations

import sys
from pathlib import Path

import baton
from baton.guard import Guard
from baton.model import RefusedError, counted
from baton.session.guard import check_policy

FOLDER = Path(__file__).parent
POLICY = FOLDER / "demo_policy.yaml"
RECORDINGS = [FOLDER.parent / "adk" / "recordings", FOLDER.parent / "claude"]
EVENTS = [("dispatch", "dispatch"), ("tool", "tool call"), ("output", "answer")]
KEY = "sk-proj-Ab3dEf6hIj9kLmN0pQrStUvWxYz12345"

worked: list[str] = []


def inline(task: str, why: str) -> str:
    """Do the work without help, and say why."""
    worked.append(task)
    return f"{why}. Done by myself: {task}"


@baton.agent("supervisor")
def supervisor(task: str) -> str:
    """Hand the whole task on: nobody ever does it."""
    try:
        return supervisor(task + ".")
    except RefusedError as refused:
        return inline(task, str(refused))


@baton.agent("checker")
def checker(claim: str) -> str:
    """Check one claim."""
    return f"{claim} holds"


@baton.agent("editor")
def editor(text: str) -> str:
    """Have claims checked until there is no more help, and go on alone."""
    checked = 0
    for number in range(1, 41):
        try:
            checker(f"claim {number} of {text}")
        except RefusedError as refused:
            return f"{checked} claims checked by others. " + inline("the rest", str(refused))
        checked += 1
    return f"{checked} claims checked by others"


@baton.agent("lab")
def lab(sample: str) -> str:
    """Answer with more than was asked for."""
    return f"{sample} is clean. I signed in with {KEY}."


@baton.agent("desk")
def desk(request: str) -> str:
    """Ask the lab, and repeat what it said."""
    return f"The lab says: {lab(request)}"


def main() -> int:
    """Run all of it; returns the exit code, 1 when something was not as it should be."""
    worked.clear()
    guard = Guard(POLICY)
    right = []

    print("A supervisor that hands its whole task on")
    with baton.record_turn("Write the report") as turn, guard.run(request="Write the report"):
        print(f"  answer: {supervisor('the report')}")
        spent = guard.spent
    sent = turn.trace.turns[0].dispatches
    print(
        f"  dispatches: {spent.dispatches}, the next at depth {sent[-1].depth}: {sent[-1].status}"
    )
    right.append((spent.dispatches, sent[-1].depth, sent[-1].status) == (10, 11, "refused"))
    right.append(worked == ["the report.........."])

    print("An editor that wants 40 claims checked")
    with guard.run(request="Check the report"):
        said = editor("the report")
        print(f"  answer: {said}")
        right.append((guard.spent.dispatches, worked[-1]) == (25, "the rest"))
        right.append(said.startswith("25 claims checked by others. that is enough help"))

    print("A lab that leaks a key")
    with guard.run(request="Is sample R-77 clean?"):
        said = desk("Sample R-77")
    print(f"  answer: {said}")
    right.append(KEY not in said and "Sample R-77 is clean" in said)

    print("The same policy over the recordings of examples/adk and examples/claude")
    found = check_policy(POLICY, RECORDINGS, note=lambda _: None)
    for held in found.held:
        print(f"  {held.action} {held.rule}: {held.reason}")
    seen = [counted(found.events[on], what) for on, what in EVENTS]
    print(f"  {counted(found.traces, 'conversation')}, {', '.join(seen)}: ", end="")
    print(f"{len(found.blocked)} would have been blocked")
    right.append({held.rule for held in found.blocked} == {"allowed_tools"})
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())

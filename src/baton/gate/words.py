"""What a comparison says of one axis, in a line."""

from __future__ import annotations

from baton.analysis.comparison import AxisChange


def axis_line(one: AxisChange) -> str:
    """Say from what to what it went, whether that is real, and how much data would tell."""
    told = f"{figures(one)} over {cases(one.difference.difference.n)}"
    if one.change == "unclear":
        return f"can't tell: {told}; {needed(one)}"
    if one.p is None:
        return told
    p = p_text(one.p)
    return f"{told}, p {p}" if p.startswith("<") else f"{told}, p = {p}"


def figures(one: AxisChange) -> str:
    """Write ``0.90 → 0.80 (-0.10 [-0.15, -0.05])``."""
    made = one.difference
    apart = made.difference
    interval = ""
    if apart.low is not None and apart.high is not None:
        interval = f" [{apart.low:+.2f}, {apart.high:+.2f}]"
    return f"{made.before:.2f} → {made.after:.2f} ({apart.estimate:+.2f}{interval})"


def needed(one: AxisChange) -> str:
    """Say how many cases or repeats would tell."""
    have = one.difference.difference.n
    ways = []
    if one.repeats_needed is not None:
        repeats = "repeat" if one.repeats_needed == 1 else "repeats"
        ways.append(f"{one.repeats_needed} {repeats} of each case")
    if one.cases_needed is not None and one.cases_needed > have:
        ways.append(f"{one.cases_needed - have} more cases")
    if ways:
        return f"{' or '.join(ways)} would tell"
    return "more cases would tell; how many is not known from these"


def p_text(p: float) -> str:
    """Write a p-value, never as 0."""
    return f"{p:.2g}" if p >= 0.001 else "< 0.001"


def cases(count: int) -> str:
    """Write a number of cases."""
    return f"{count} {'case' if count == 1 else 'cases'}"

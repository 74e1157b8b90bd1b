"""Efficiency counters in words."""

from __future__ import annotations

from baton.model import COUNTERS, Efficiency, EfficiencySums, Sum

_WORDS = {
    "dispatches": "dispatches",
    "tool_calls": "tool calls",
    "model_calls": "model calls",
    "tokens": "tokens",
}


def efficiency_line(sums: EfficiencySums) -> str:
    """Say what all cases took, and one of them in the mean; empty where nothing is known."""
    told = [f"{_name(name)} {text}" for name, text in counter_texts(sums)]
    return f"in all (per case): {' · '.join(told)}" if told else ""


def counter_texts(sums: EfficiencySums) -> list[tuple[str, str]]:
    """Return each counter that is known with its sum, the mean, and of how many cases it is."""
    return [(name, _text(name, sum_, sums.results)) for name, sum_ in sums.told().items()]


def case_line(efficiency: Efficiency) -> str:
    """Say what one case took."""
    told = []
    for name in COUNTERS:
        value = getattr(efficiency, name)
        if value is not None:
            least = "≥ " if name in efficiency.at_least else ""
            told.append(f"{least}{value:,} {_WORDS[name]}")
    if "seconds" in efficiency.timings:
        told.append(_seconds(efficiency.timings["seconds"]))
    return " · ".join(told)


def _text(name: str, sum_: Sum, results: int) -> str:
    least = "≥ " if sum_.at_least else ""
    mean = sum_.mean or 0
    if name == "seconds":
        words = f"{_seconds(sum_.sum)} ({_seconds(mean)})"
    else:
        words = (
            f"{least}{sum_.sum:,} ({mean:,.0f})"
            if mean >= 100
            else f"{least}{sum_.sum:,} ({mean:.3g})"
        )
    return words if sum_.results == results else f"{words} of {sum_.results} of {results} cases"


def _name(name: str) -> str:
    return _WORDS.get(name, "time")


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds >= 100 else f"{seconds:.3g} s"

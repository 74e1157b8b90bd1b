"""Problems of one evaluator, worded for the file it stands in."""

from __future__ import annotations

from baton.model import Problem


def worded(problem: Problem) -> str:
    """Return the message with the name of the option, which a plan has as a path of its own."""
    option = problem.path.removeprefix("evaluators[0]").lstrip(".").removeprefix("config.")
    return f"`{option}`: {problem.message}" if option else problem.message

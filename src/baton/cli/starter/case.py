"""The first case: what the agents did when they were asked once."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import NamedTuple

from baton.datasets.draft import draft_case
from baton.formats.yaml import dump_yaml
from baton.model import Case, Content, Dataset, ExpectedTurn, InputError
from baton.providers.base import Surroundings
from baton.providers.registry import make_provider
from baton.runner.live import evaluate_in_memory
from baton.runner.loop import run
from baton.runner.plan import RunOptions, make_plan

from .files import Answers

_HEAD = """\
# What the agents did when they were asked once, as what is expected from now on.
# Say more of it: tools, response_contains, what the hand-off has to carry.
"""
_KEPT = ("id", "input", "agents", "dispatches")


class FirstCase(NamedTuple):
    """A dataset with one case, and the agents it expects."""

    text: str
    agents: list[str]


def first_case(answers: Answers) -> FirstCase:
    """Ask the agents once, and expect the same agents and hand-offs.

    What an LLM says differs from time to time, so texts and arguments are left out.

    Raises:
        InputError: the agents cannot be asked, or their run tells nothing of agents.
    """
    turn = ExpectedTurn(input=Content(text=answers.message))
    provider = make_provider(answers.provider, Surroundings(Path(), {}))
    with redirect_stdout(sys.stderr):
        evaluation = run(
            evaluate_in_memory(
                make_plan(["agent_chain"]),
                provider,
                Dataset([Case(id="first", turns=[turn])]),
                RunOptions(),
                "first",
            )
        )
    (result,) = evaluation.results
    if result.error is not None or result.trace is None:
        raise InputError(f"the agents could not be asked: {result.error}")
    drafted = draft_case(result.trace) | {"id": "first"}
    case = {key: drafted[key] for key in _KEPT if key in drafted}
    if not case.get("agents"):
        raise InputError("the run does not tell which agents worked: see docs/providers.md")
    return FirstCase(_HEAD + dump_yaml({"cases": [case]}), list(case["agents"]))

"""What `baton improve` prints: improvements, and the most that they can take."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import msgspec

from baton.improvements.result import Improvement
from baton.model import counted
from baton.model.visible import visible_line
from baton.session.improve import ImprovementEstimate
from baton.session.improve_rubric import RubricEstimate

from .output import readers_may_leave
from .usage_messages import note


def print_improvement(improvement: Improvement, limit: int, *, as_json: bool) -> None:
    """Print the result of an improvement, with ``limit`` candidates of each component."""
    from baton.improvements.report import not_finished
    from baton.improvements.report import print_improvement as print_report

    with readers_may_leave():
        if as_json:
            plain = msgspec.json.encode(improvement)
            print(msgspec.json.format(plain, indent=2).decode())
            if (unfinished := not_finished(improvement)) is not None:
                note(unfinished)
        else:
            print_report(improvement, sys.stdout, limit=limit)


def exit_code_of(improvement: Improvement) -> int:
    """Return 0 if a gain is proven, 1 if none is, and 3 if it was stopped before."""
    from baton.improvements.report import exit_code

    return exit_code(improvement)


def print_improvement_estimate(estimate: ImprovementEstimate, *, as_json: bool) -> None:
    """Print the most that an improvement of agents can take."""
    if as_json:
        print(msgspec.json.encode({"dry_run": estimate}).decode())
        return
    print(
        f"{estimate.train} train, {estimate.select} select and {estimate.held_out} held-out cases\n"
        f"up to {counted(estimate.studies, 'component')}, "
        f"at most {counted(estimate.plays, 'play')}\n"
        f"at least {counted(estimate.fewest_plays, 'play')} for one component: train and select "
        "once, and held-out cases twice\n"
        f"at most {estimate.calls:,} requests to {estimate.model} for proposals, about "
        f"{estimate.input_tokens:,} + {estimate.output_tokens:,} tokens\n"
        f"cost of proposals: {_cost_at_most(estimate.cost_usd, estimate.model)}"
    )
    for line in _estimate_of_plays(estimate):
        print(line)
    for text in estimate.notes:
        note(text)


def _estimate_of_plays(estimate: ImprovementEstimate) -> Iterator[str]:
    agents, judging = estimate.agents, estimate.judging
    if agents.recorded:
        yield (
            f"agents: about {agents.input_tokens:,} + {agents.output_tokens:,} tokens in all plays,"
            f" as recorded in {agents.recorded} of {counted(agents.cases, 'case')}"
        )
    if agents.cost_usd is not None:
        yield f"cost of agents: at most {agents.cost_usd:.2f} USD"
    else:
        yield f"cost of agents: unknown, as is {' and '.join(map(visible_line, agents.unknown))}"
    if judging is not None:
        yield (
            f"at most {judging.calls:,} requests to judges, about {judging.input_tokens:,} + "
            f"{judging.output_tokens:,} tokens: {', '.join(estimate.judged)}"
        )
        yield f"cost of judges: {_cost_at_most(judging.cost_usd, judging.model)}"
    if estimate.total_usd is None:
        yield "total cost: unknown; `--max-cost` limits it"
    else:
        yield f"total cost: at most {estimate.total_usd:.2f} USD; `--max-cost` limits it"


def print_rubric_estimate(estimate: RubricEstimate, *, as_json: bool) -> None:
    """Print the most that an improvement of a rubric can take."""
    if as_json:
        print(msgspec.json.encode({"dry_run": estimate}).decode())
        return
    cost = _cost_at_most(estimate.cost_usd, estimate.model)
    print(
        f"{estimate.train} train, {estimate.select} select and {estimate.held_out} "
        f"held-out labelled things\n"
        f"at most {counted(estimate.verdicts, 'verdict')} of {estimate.model}, at least "
        f"{estimate.fewest_verdicts:,}, and at most {counted(estimate.proposals, 'proposal')}\n"
        f"at most {counted(estimate.calls, 'request')}, about {estimate.input_tokens:,} + "
        f"{estimate.output_tokens:,} tokens\n"
        f"cost: {cost}"
    )
    for text in estimate.notes:
        note(text)


def _cost_at_most(cost_usd: float | None, model: str) -> str:
    if cost_usd is None:
        return f"unknown, as the price of {model} is not known"
    return f"at most {cost_usd:.2f} USD"

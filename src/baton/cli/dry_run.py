"""``--dry-run``: what judging would take, with nobody asked."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from baton.judges.fence import USUAL_OUTPUT
from baton.judges.rehearsal import Rehearsal
from baton.model import CaseResult, Dataset, Trace, Usage
from baton.model.visible import visible_line
from baton.runner.evaluate import TOKENS_READ, estimate_live
from baton.runner.plan import Plan
from baton.runner.recorded import collect, score_recorded

from .output import readers_may_leave


class _Nowhere:
    """Takes results that nobody wants: they rest on made-up verdicts."""

    def add(self, result: CaseResult) -> None:
        """Let go of it."""


def dry_run(plan: Plan, traces: Iterable[Trace], dataset: Dataset | None, *, json: bool) -> int:
    """Work out the very requests for recorded traces, and print what they would take."""
    collect(plan, score_recorded(plan, traces, dataset), _Nowhere())
    judge = plan.context.judge
    if not isinstance(judge, Rehearsal):
        return _print(None, json)
    found = judge.estimate()
    told = {
        "model": judge.model,
        "calls": found.calls,
        "cached": found.cached,
        "input_tokens": found.input_tokens,
        "output_tokens": found.output_tokens,
        "cost_usd": found.cost_usd,
        "basis": "the requests for these traces, at most; tokens are estimated",
    }
    return _print(told, json)


def dry_run_live(plan: Plan, dataset: Dataset, repeat: int, *, json: bool) -> int:
    """Guess from the cases what judging would take, and print it; nothing is played."""
    judge = plan.context.judge
    if not isinstance(judge, Rehearsal):
        return _print(None, json)
    found = estimate_live(plan, dataset, repeat)
    usual = judge.price(Usage(input_tokens=TOKENS_READ, output_tokens=USUAL_OUTPUT))
    units = " and ".join(unit.replace("_", " ") for unit in found.assumed)
    assumed = f", one {units} a turn" if units else ""
    guess = "a guess from the cases, as nothing is played"
    told = {
        "model": judge.model,
        "calls": found.calls,
        "input_tokens": found.calls * TOKENS_READ,
        "output_tokens": found.calls * USUAL_OUTPUT,
        "cost_usd": None if usual is None else usual * found.calls,
        "basis": f"{guess}: {TOKENS_READ:,} tokens a call{assumed}",
    }
    return _print(told, json)


def _print(told: dict[str, Any] | None, json: bool) -> int:
    with readers_may_leave():
        if json:
            sys.stdout.write(msgspec.json.encode({"dry_run": told}).decode() + "\n")
        elif told is None:
            print("dry run: no evaluator asks a judge")
        else:
            print("\n".join(map(visible_line, _lines(told))))
    return 0


def _lines(told: dict[str, Any]) -> list[str]:
    cached = f" ({told['cached']:,} more are cached)" if told.get("cached") else ""
    cost = "no price is known; state it under `prices:`"
    if told["cost_usd"] is not None:
        cost = f"about ${told['cost_usd']:.4f}"
    return [
        "dry run: no judge is asked",
        f"  model   {told['model']}",
        f"  calls   {told['calls']:,}{cached}",
        f"  tokens  {told['input_tokens']:,} in, {told['output_tokens']:,} out",
        f"  cost    {cost}",
        f"  {told['basis']}",
    ]

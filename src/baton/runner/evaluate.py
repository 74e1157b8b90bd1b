"""A live evaluation: a dataset, a provider, and where the results go."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from baton.evaluators.judged import Judged
from baton.evaluators.panel import Panel
from baton.model import Case, CaseResult, Dataset, Evaluation, Evaluator, Provider, Unit
from baton.store import EvaluationWriter, Kept

from .collect import FolderResults, MemoryResults, Results
from .live import play_all
from .loop import entered
from .plan import Plan, RunOptions, check_overrides
from .player import check_sessions, one_at_a_time
from .watch import Slot

OnResult = Callable[[CaseResult], None]


def notices_of(provider: Provider) -> list[str]:
    """Return what every report on this provider has to say."""
    notice = getattr(provider, "notice", None)
    return [notice] if notice else []


def check_playable(plan: Plan, provider: Provider, dataset: Dataset) -> None:
    """Check before anything runs that a provider can play the cases.

    Raises:
        InputError: options that cases may not override or that are wrong, and cases that need of
            sessions or of a server what the provider does not have.
    """
    check_overrides(plan, dataset)
    check_sessions(provider, dataset)


async def evaluate_in_memory(
    plan: Plan, provider: Provider, dataset: Dataset, options: RunOptions, name: str
) -> Evaluation:
    """Play and score a dataset, and keep all results, in the order of the dataset."""
    plan = _priced(plan, options)
    check_playable(plan, provider, dataset)
    options, notes = one_at_a_time(provider, dataset, options)
    results = MemoryResults(plan, len(dataset) * options.repeat)
    async with entered(provider), entered(plan.context.judge):
        outcome = await play_all(plan, provider, dataset, options, results)
    results.note(outcome.notes, stopped=outcome.stopped)
    return results.evaluation(name, [*notices_of(provider), *notes])


async def evaluate_to_folder(
    plan: Plan,
    provider: Provider,
    dataset: Dataset,
    options: RunOptions,
    *,
    root: Path,
    name: str,
    header: dict[str, Any],
    on_result: OnResult,
    on_start: Callable[[Path], None] = lambda _: None,
    kept: Kept | None = None,
) -> Path:
    """Play and score a dataset, writing each result as it comes; return the folder.

    ``on_start`` is told the folder, ``on_result`` each result. With ``kept`` its folder is gone
    on with: what is there and no error stays, and all else is played.

    What is there when it is interrupted is complete and says so.
    """
    plan = _priced(plan, options)
    check_playable(plan, provider, dataset)
    options, notes = one_at_a_time(provider, dataset, options)
    planned = len(dataset) * options.repeat
    run = {"run": msgspec.to_builtins(options)} if notes else {}
    notices = [*notices_of(provider), *notes]
    async with entered(provider), entered(plan.context.judge):
        writer = EvaluationWriter(
            root,
            name,
            header={**header, **run, "planned": planned, "notices": notices},
            keep_traces=True,
            repeats=options.repeat,
            kept=kept,
        )
        on_start(writer.folder)
        with FolderResults(plan, writer, planned=planned, kept=kept) as results:
            told = _Told(results, on_result)
            done = finished(kept)
            outcome = await play_all(plan, provider, dataset, options, told, done=done)
            results.note(outcome.notes, stopped=outcome.stopped)
    return writer.folder


def finished(kept: Kept | None) -> set[Slot]:
    """Return what needs not be played again: all that is there, but errors."""
    if kept is None:
        return set()
    return {Slot(row.position, row.repeat) for row in kept.rows() if row.status != "error"}


def _priced(plan: Plan, options: RunOptions) -> Plan:
    """Have costs worked out where there is a limit to them."""
    if options.max_agent_cost is None or plan.prices is not None:
        return plan
    return msgspec.structs.replace(plan, prices={})


class _Told:
    """Tells of each result once it is written."""

    def __init__(self, results: Results, on_result: OnResult) -> None:
        self._results = results
        self._on_result = on_result

    def add(self, result: CaseResult) -> None:
        self._results.add(result)
        self._on_result(result)


TOKENS_READ = 2000
"""Tokens that a question is taken to have while its trace is not there."""


class LiveEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Guessed calls; ``assumed`` are units of which one a turn is taken, as no case states any."""

    calls: int
    assumed: list[Unit]


def estimate_live(plan: Plan, dataset: Dataset, repeat: int) -> LiveEstimate:
    """Guess the calls: all samples of everything that a rubric is about.

    Turns are those of the case, hand-offs and tool calls those it states. What findings will
    settle and what the cache has can't be known yet.
    """
    calls = 0
    assumed: dict[Unit, None] = {}
    usual = plan.context.judge.samples if plan.context.judge is not None else 1
    for case in dataset.cases:
        for planned in plan.evaluators_for(case.where):
            if planned.needs_judge:
                for unit, samples in _asked(planned.for_case(case), usual):
                    stated = _stated(unit, case)
                    if stated is None:
                        assumed[unit] = None
                    things = max(1, len(case.turns)) if stated is None else stated
                    calls += things * samples * repeat
    return LiveEstimate(calls=calls, assumed=list(assumed))


def _asked(evaluator: Evaluator, usual: int) -> Iterator[tuple[Unit, int]]:
    """Yield what an evaluator asks about, and how often; once for each model it asks."""
    if isinstance(evaluator, Judged):
        options, rubric = evaluator.options, evaluator.rubric
        own = options.samples or options.judge.get("samples") or rubric.samples
        yield rubric.unit, own or usual
    elif isinstance(evaluator, Panel):
        for member in evaluator.members:
            yield from _asked(member, usual)
    else:
        yield evaluator.unit, usual


def _stated(unit: Unit, case: Case) -> int | None:
    """Count what a case says there will be of a unit; ``None`` where it does not say."""
    match unit:
        case "trace":
            return 1
        case "turn":
            return len(case.turns) or None
        case "dispatch":
            made = [turn.dispatches for turn in case.turns if turn.dispatches is not None]
            return sum(map(len, made)) if made else None
        case "tool_call":
            calls = [turn.tool_calls for turn in case.turns if turn.tool_calls is not None]
            return sum(map(len, calls)) if calls else None
        case "run":
            agents = [turn.agents for turn in case.turns if turn.agents is not None]
            return sum(map(len, agents)) if agents else None

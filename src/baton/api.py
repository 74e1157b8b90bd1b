"""The public functions. ``docs/python.md`` shows each in use."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from msgspec import structs

from baton.datasets import load_dataset
from baton.formats.explain import checked
from baton.model import (
    Case,
    Dataset,
    Evaluation,
    Evaluator,
    InputError,
    Judge,
    Provider,
    Trace,
)
from baton.model.redact import RedactLike, redaction_of
from baton.readers import iter_traces, load_traces
from baton.runner.plan import WITHOUT_CASES, EvaluatorSpec, Plan, make_plan
from baton.runner.recorded import score_in_memory

if TYPE_CHECKING:
    from baton.runner.prices import ModelPrice

__all__ = ["aevaluate", "evaluate", "iter_traces", "load_dataset", "load_traces", "score"]

Path = str | os.PathLike[str]
Rule = str | Mapping[str, float]
Prices = Mapping[str, Mapping[str, float]]
JudgeLike = Judge | str | Mapping[str, Any]
GateLike = str | Sequence[str | Mapping[str, Any]] | Mapping[str, Any]
Evaluators = Iterable[Mapping[str, Any] | EvaluatorSpec | Evaluator | str]


def score(
    traces: Trace | Iterable[Trace | Path] | Path,
    dataset: Dataset | Sequence[Case] | Path | None = None,
    evaluators: Evaluators | None = None,
    *,
    pass_rule: Rule = "all",
    prices: Prices | None = None,
    agent_names: Mapping[str, str] | None = None,
    judge: JudgeLike | None = None,
    gate: GateLike = (),
    name: str | None = None,
    trust: Path | Iterable[Path] = (),
    redact: RedactLike = True,
) -> Evaluation:
    """Score recorded traces.

    A trace meets its case by case id (or its own id), else by the first user message. What
    finds no partner, or two, is an error result that names it.

    Args:
        traces: traces, or the path of files that hold them.
        dataset: what should have happened; without one, only what needs no expectation scores.
        evaluators: specs (``{"type": "agent_chain", "config": {...}}``), names or objects;
            when left out ``agent_chain``, for cases of Strands what their file asks for, else
            what they state, and without a dataset what is proven of hand-offs from the record.
        pass_rule: ``all``, or ``{"mean": 0.8}``: the mean of the evaluators' values decides.
        prices: USD per million tokens by model: ``{"gpt-x": {"input": 1.25, "output": 10}}``.
        agent_names: recorded agent name to the name that cases use.
        judge: whom judged evaluators ask: a model (``"openai:gpt-4o-mini"``), what `judge:` of a
            config says as plain data, or an object with the methods of ``Judge``. Verdicts are
            kept in ``.baton/verdicts.sqlite``, unless ``cache`` of the data names another file,
            or is false.
        gate: rules such as ``"scope_fidelity by agent >= 0.9"``, or what `gate:` of a config says
            as plain data.
        name: of the evaluation; the dataset's when left out.
        trust: folders whose ``test_config.json`` may name code, though nobody named the file.
        redact: what gets a tag in its place before it is judged or kept. Secrets by default;
            ``False`` for nothing; kinds beside the secrets (``["email"]``); or a mapping with
            ``kinds`` and ``patterns`` (``{"patterns": {"employee": "EMP-[0-9]{6}"}}``).

    Returns:
        Results in the order of the dataset, one for every planned case.

    Raises:
        InputError: an unknown evaluator, option or value, or a file with faults.
    """
    cases = None if dataset is None else as_dataset(dataset)
    plan = _plan_for_recorded(planner(pass_rule, prices, agent_names), evaluators, cases, trust)
    plan = _ready(structs.replace(plan, redaction=redaction_of(redact)), judge, gate, cases)
    label = name or (cases.name if cases else "score")
    evaluation = score_in_memory(plan, _as_traces(traces), cases, label)
    return _noted(evaluation, plan, cases)


def _ready(plan: Plan, judge: JudgeLike | None, gate: GateLike, dataset: Dataset | None) -> Plan:
    """Put judge and gate in; nothing of either is imported where none is asked for."""
    if not gate and not plan.needs_judge:
        return plan
    from baton.config.judge import judge_config, ready
    from baton.gate.rules import read_gate

    judging = judge if isinstance(judge, Judge) else judge_config(judge)
    plan = ready(plan, judging, gate=read_gate(gate))
    if plan.gate.regression is None and plan.gate.bound is None:
        return plan
    from baton.config.provenance import provenance_of, refuse_others

    provenance = provenance_of(plan, dataset)
    refuse_others(plan.gate, provenance)
    return structs.replace(plan, provenance=provenance)


def _plan_for_recorded(
    plan_with: Callable[[Evaluators | None], Plan],
    evaluators: Evaluators | None,
    cases: Dataset | None,
    trust: Path | Iterable[Path],
) -> Plan:
    """Make a plan; some files of cases say themselves what to score."""
    from baton.config.evaluators import plan_for, says_what_to_score
    from baton.config.trust import trust_of

    if evaluators is not None:
        return plan_with(evaluators)
    if cases is None:
        return plan_with(WITHOUT_CASES)
    if not says_what_to_score(cases):
        return plan_with(None)
    return plan_for(cases, plan_with, trust_of(trust))


P = ParamSpec("P")
R = TypeVar("R")


def _sync(function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    @functools.wraps(function)
    def run(*arguments: P.args, **options: P.kwargs) -> R:
        import asyncio

        from baton.runner.loop import run as run_to_end

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run_to_end(function(*arguments, **options))
        raise RuntimeError("an event loop is running here: `await baton.aevaluate(...)` instead")

    return run


async def aevaluate(
    dataset: Dataset | Sequence[Case] | Path,
    provider: Provider | Mapping[str, Any],
    evaluators: Evaluators | None = None,
    *,
    concurrency: int = 4,
    repeat: int = 1,
    timeout: float | None = 600,
    retry_errors: int = 0,
    fail_fast: bool = False,
    max_agent_cost: float | None = None,
    pass_rule: Rule = "all",
    prices: Prices | None = None,
    agent_names: Mapping[str, str] | None = None,
    judge: JudgeLike | None = None,
    gate: GateLike = (),
    name: str | None = None,
    trust: Path | Iterable[Path] = (),
    redact: RedactLike = True,
) -> Evaluation:
    """Play every case of a dataset with ``provider`` and score what it did.

    A case that the provider raises for is an error, and the others go on. What is not said here
    is as for :func:`score`.

    Args:
        dataset: what to play, and what should happen.
        provider: takes a case and returns a trace, or an awaitable of one; or the spec of a
            provider that comes with Baton (``{"type": "adk_http", "endpoint_url": ...}``). A
            function that is not async is called in threads.
        evaluators: as for :func:`score`; when left out, those for what the cases state, or
            the ``test_config.json`` beside an eval set of ADK.
        concurrency: how many cases are in play at once.
        repeat: how often each case is played.
        timeout: seconds for one case; ``None`` waits for ever.
        retry_errors: how often what was an error is played again.
        fail_fast: stop at the first case that fails or errs; a notice says what was not played.
        max_agent_cost: USD that the agents may cost; the cases after that are errors.
        pass_rule: as for :func:`score`.
        prices: as for :func:`score`.
        agent_names: as for :func:`score`.
        judge: as for :func:`score`.
        gate: as for :func:`score`.
        name: as for :func:`score`.
        trust: as for :func:`score`.
        redact: as for :func:`score`.

    Returns:
        Results in the order of the dataset, the repeats of a case together.

    Raises:
        InputError: an unknown option or value, or a file with faults.
    """
    from baton.config.evaluators import plan_for
    from baton.config.trust import trust_of
    from baton.runner.evaluate import evaluate_in_memory
    from baton.runner.plan import RunOptions

    stated = {
        "concurrency": concurrency,
        "repeat": repeat,
        "timeout": timeout,
        "retry_errors": retry_errors,
        "fail_fast": fail_fast,
        "max_agent_cost": max_agent_cost,
    }
    options = checked(stated, RunOptions)
    player, its_prices, its_model = _provider(provider)
    plan_with = planner(pass_rule, prices, agent_names, its_prices, its_model)
    cases = as_dataset(dataset)
    if evaluators is None:
        plan = plan_for(cases, plan_with, trust_of(trust))
    else:
        plan = plan_with(evaluators)
    plan = _ready(structs.replace(plan, redaction=redaction_of(redact)), judge, gate, cases)
    evaluation = await evaluate_in_memory(plan, player, cases, options, name or cases.name)
    return _noted(evaluation, plan, cases)


evaluate = _sync(aevaluate)
evaluate.__name__ = evaluate.__qualname__ = "evaluate"


def _noted(evaluation: Evaluation, plan: Plan, dataset: Dataset | None) -> Evaluation:
    """Add what the dataset states that nobody looked at."""
    from baton.config.evaluators import left_unchecked

    if dataset is not None:
        evaluation.notices += left_unchecked(plan, dataset)
    return evaluation


def as_dataset(dataset: Dataset | Sequence[Case] | Path) -> Dataset:
    """Load a dataset from a path; wrap cases that are at hand."""
    if isinstance(dataset, Dataset):
        return dataset
    if isinstance(dataset, str | os.PathLike):
        return load_dataset(dataset)
    cases = list(dataset) if isinstance(dataset, Iterable) else [dataset]
    for case in cases:
        if not isinstance(case, Case):
            kind = type(case).__name__
            raise InputError(f"a dataset is a path, a Dataset or a list of Case, not {kind}")
    return Dataset(cases)


def _as_traces(traces: Trace | Iterable[Trace | Path] | Path) -> Iterator[Trace]:
    if isinstance(traces, str | os.PathLike | Trace):
        traces = [traces]
    for each in traces:
        if isinstance(each, Trace):
            yield each
        elif isinstance(each, str | os.PathLike):
            yield from iter_traces(each, redact=False)  # scoring does it
        else:
            raise InputError(f"a trace is a Trace or a path, not {type(each).__name__}")


def planner(
    pass_rule: Rule = "all",
    prices: Prices | None = None,
    agent_names: Mapping[str, str] | None = None,
    more_prices: Mapping[str, ModelPrice] | None = None,
    model: str | None = None,
) -> Callable[[Evaluators | None], Plan]:
    """Check what holds for any evaluators; return what makes the plan with some."""
    from baton.runner.plan import read_rule
    from baton.runner.prices import read_prices

    stated = None if prices is None else read_prices(prices, "prices")
    return functools.partial(
        make_plan,
        agent_names=agent_names,
        pass_rule=read_rule(pass_rule),
        prices={**(more_prices or {}), **(stated or {})} if more_prices or stated else stated,
        default_model=model,
    )


def _provider(
    provider: Provider | Mapping[str, Any],
) -> tuple[Provider, Mapping[str, ModelPrice], str | None]:
    """Check or build a provider; return it with the prices and the model that its spec states."""
    from baton.providers.base import ConfiguredProvider
    from baton.providers.functions import takes_one
    from baton.providers.make import make_provider
    from baton.runner.prices import read_prices

    player = make_provider(provider) if isinstance(provider, Mapping) else provider
    if isinstance(player, ConfiguredProvider):
        prices = read_prices(player.options.custom_pricing or {}, "custom_pricing")
        return player, prices, player.options.model
    if not callable(player) or not takes_one(player):
        kind = getattr(player, "__name__", type(player).__name__)
        raise InputError(
            f"`{kind}` is no provider: that is a function from a case to a trace; a function of "
            'messages is `{"type": "python", "target": "module:function"}`'
        )
    return player, {}, None

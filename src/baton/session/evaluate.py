"""Playing cases against live agents and scoring them: in memory, or into evaluation folders."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Protocol, TypeVar

import msgspec

from baton.config import Config
from baton.config.evaluators import left_unchecked
from baton.config.judge import JudgeFlags
from baton.config.load import chosen_backend
from baton.config.trust import Trust, trust_of
from baton.datasets.filter import choose
from baton.formats.explain import checked, explain
from baton.gate.decide import for_some_cases
from baton.model import Case, CaseResult, Dataset, InputError, Problem, Provider
from baton.model.prices import ModelPrice
from baton.model.redact import ON, RedactLike, redaction_of
from baton.model.secrets import masked
from baton.providers.base import ConfiguredProvider
from baton.providers.functions import takes_one
from baton.providers.registry import make_provider
from baton.runner.live import (
    check_playable,
    evaluate_in_memory,
    evaluate_to_folder,
    finished_slots,
)
from baton.runner.loop import run, run_until_terminated
from baton.runner.plan import Plan, RunOptions, Specs
from baton.runner.prices import read_prices
from baton.store import Kept

from .agents import Target, build_agent, find_target, variant_names, variants_of
from .estimate import JudgingEstimate, estimate_live
from .evaluation import Evaluation
from .prepare import (
    Criteria,
    GateLike,
    Inputs,
    JudgeLike,
    Note,
    PathLike,
    Prices,
    Rule,
    as_dataset,
    dataset_paths,
    folder_header,
    for_this,
    load_inputs,
    note_unchecked,
    plan_maker,
    prepare,
    redaction_with,
)
from .report import check_outputs
from .resume import Request, Start, basis_of, begin, is_complete, judge_words, kept_results

if TYPE_CHECKING:
    from baton.runner.backends.protocol import Backend, Recipe

P = ParamSpec("P")
R = TypeVar("R")


def _sync(function: Callable[P, Coroutine[Any, Any, R]]) -> Callable[P, R]:
    @functools.wraps(function)
    def run_to_end(*arguments: P.args, **options: P.kwargs) -> R:
        import asyncio

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run(function(*arguments, **options))
        raise RuntimeError("an event loop is running here: `await baton.aevaluate(...)` instead")

    return run_to_end


async def aevaluate(
    dataset: Dataset | Sequence[Case] | PathLike,
    provider: Provider | Mapping[str, Any],
    evaluators: Specs | None = None,
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
    trust: PathLike | Iterable[PathLike] = (),
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
    make = plan_maker(pass_rule, prices, agent_names, its_prices, its_model)
    cases = as_dataset(dataset)
    plan = prepare(
        cases,
        make=make,
        evaluators=evaluators,
        by_cases=True,
        judge=judge,
        gate=gate,
        redaction=redaction_of(redact),
        trust=trust_of(trust),
    )
    plan = for_this(plan, cases)
    about = folder_header(
        plan,
        Inputs(dataset=cases, paths=dataset_paths(dataset)),
        player.options.type if isinstance(player, ConfiguredProvider) else None,
        git=False,
        planned=len(cases) * options.repeat,
        repeats=options.repeat,
    )
    evaluation = await evaluate_in_memory(plan, player, cases, options, name or cases.name)
    evaluation.notices += left_unchecked(plan, cases)
    return Evaluation.of(evaluation, about, keep_traces=True)


evaluate = _sync(aevaluate)
evaluate.__name__ = evaluate.__qualname__ = "evaluate"


def _provider(
    provider: Provider | Mapping[str, Any],
) -> tuple[Provider, Mapping[str, ModelPrice], str | None]:
    """Check or build a provider; return it with the prices and the model that its spec states."""
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


class RunChanges(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a run that go before those of the config; what is ``None`` stays as it is."""

    repeat: int | None = None
    concurrency: int | None = None
    timeout: float | None = None
    retry_errors: int | None = None
    fail_fast: bool | None = None
    max_agent_cost: float | None = None

    def over(self, options: RunOptions) -> RunOptions:
        """Return the options with these changes; raises InputError for a wrong value."""
        stated = {
            name: value
            for name in self.__struct_fields__
            if (value := getattr(self, name)) is not None
        }
        faults = explain(stated, RunOptions)
        if faults:
            raise InputError(
                Problem(message=f"--{str(fault.path[0]).replace('_', '-')}: {fault.message}")
                for fault in faults
            )
        return msgspec.structs.replace(options, **stated)


class EvaluateRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Cases to play into folders, and how; what is named here goes before the config.

    ``asked`` says what to evaluate, ``resume`` and ``only_failed`` are folders of earlier
    evaluations; ``force`` resumes though something changed. ``out`` is where evaluations are
    stored, ``reports`` are files that will be written afterwards. ``redact`` of ``None`` leaves
    it to the config.
    """

    asked: Request
    trust: Trust
    run: RunChanges = RunChanges()
    resume: Path | None = None
    only_failed: Path | None = None
    force: bool = False
    judge: JudgeFlags = JudgeFlags()
    backend: str | None = None
    workers: int | None = None
    out: Path
    name: str | None = None
    reports: Sequence[Path] = ()
    redact: bool | None = None
    redact_kinds: Sequence[str] = ()


class Progress(Protocol):
    """Is told each result as it comes."""

    def add(self, result: CaseResult) -> None:
        """Take one more result."""

    def close(self) -> None:
        """There are no more."""


class Listener(NamedTuple):
    """Whom an evaluation talks to while it runs.

    ``configured`` gets the config once it is loaded, ``progress`` makes what is told the results,
    of how many there are to be.
    """

    note: Note
    configured: Callable[[Config | None], None]
    progress: Callable[[int], Progress]


class Variant(NamedTuple):
    """One of a config's providers, and the folder of its evaluation; a single one has no name."""

    name: str | None
    folder: Path


class Evaluated(NamedTuple):
    """The folders of an evaluation, one for each provider, and the config it was made with."""

    variants: list[Variant]
    config: Config | None


def evaluate_files(request: EvaluateRequest, listener: Listener) -> Evaluated:
    """Play a dataset against the agents of a config, or one agent, and score what they did.

    An evaluation that is resumed and complete is returned as it is.

    Raises:
        InputError: options, files or the config have faults, something is not trusted, or what a
            resumed evaluation depends on has changed.
    """
    begun = _begin(request, listener)
    config, start, note = begun.target.config, begun.start, listener.note
    backend = chosen_backend(config.backend if config else None, request.backend, request.workers)
    if start.folder is not None and is_complete(start):
        return Evaluated([Variant(None, start.folder)], config)
    for text in config.notes if config else ():
        note(text)
    places = variants_of(config, start.request.variant)
    inputs = _load(begun)
    cases = inputs.dataset.files if inputs.dataset else ()
    check_outputs(config, request.reports, [*cases, inputs.definitions])
    jobs = [_job(request, begun, inputs, place, note) for place in places]
    note_unchecked(jobs[0].plan, jobs[0].cases, note)
    for text in request.trust.notes:
        note(text)
    providers = []
    for job in jobs:
        spec = begun.target.provider
        providers.append(build_agent(config, spec, job.place, inputs.catalog or {}))
        check_playable(job.plan, providers[-1], job.cases)
    workers = [_workers(backend, request, begun, inputs, job) if backend else None for job in jobs]
    done = []
    for job, provider, employed in zip(jobs, providers, workers, strict=True):
        folder = _play(job, provider, employed, request.out, listener)
        done.append(Variant(job.variant, folder))
    return Evaluated(done, config)


def estimate_evaluation(request: EvaluateRequest, listener: Listener) -> JudgingEstimate | None:
    """Guess from the cases what judging would take; ``None`` where no judge is needed.

    Nothing is played and no code of the user's own is imported. ``request.judge`` has to be a
    rehearsal.

    Raises:
        InputError: as for :func:`evaluate_files`.
    """
    begun = _begin(request, listener)
    config = begun.target.config
    chosen_backend(config.backend if config else None, request.backend, request.workers)
    for text in config.notes if config else ():
        listener.note(text)
    place = variants_of(config, begun.start.request.variant)[0]
    job = _job(request, begun, _load(begun), place, listener.note)
    note_unchecked(job.plan, job.cases, listener.note)
    return estimate_live(job.plan, job.cases, job.options.repeat)


class _Begun(NamedTuple):
    target: Target
    start: Start


class _Job(NamedTuple):
    """All that playing one variant takes; ``place`` is that of its provider, from 0."""

    place: int
    variant: str | None
    plan: Plan
    cases: Dataset
    options: RunOptions
    name: str
    header: dict[str, Any]
    kept: Kept | None


def _begin(request: EvaluateRequest, listener: Listener) -> _Begun:
    """Find out what is to be evaluated; of the config only what it says is read yet."""
    limit = request.asked.limit
    if limit is not None and limit < 1:
        raise InputError(f"--limit has to be at least 1, got {limit}")
    start = begin(
        request.asked,
        request.judge,
        resume=request.resume,
        only_failed=request.only_failed,
        repeat=request.run.repeat,
        force=request.force,
        note=listener.note,
    )
    own_code = not request.judge.rehearsal
    asked = start.request
    target = find_target(asked.target, request.trust, asked.app, own_code=own_code)
    listener.configured(target.config)
    return _Begun(target, start)


def _load(begun: _Begun) -> Inputs:
    """Load the cases that are asked for; raises InputError when there are none."""
    target, asked = begun.target, begun.start.request
    named = [*target.datasets, *asked.dataset]
    if not named and not (target.config and target.config.dataset):
        raise InputError("name a dataset: baton eval AGENT DATASET, or `dataset:` in the config")
    inputs = load_inputs(target.config, named, asked.agents)
    assert inputs.dataset is not None  # noqa: S101 - a path is named
    cases = choose(inputs.dataset, asked.filters, asked.limit)
    if asked.cases is not None:
        wanted = set(asked.cases)
        cases = _some(cases, wanted.__contains__, "none of the chosen cases is there any more")
    if begun.start.open_cases is not None:
        nothing = "every case passed there: nothing is left to play"
        cases = _some(cases, begun.start.open_cases, nothing)
    return msgspec.structs.replace(inputs, dataset=cases)


def _some(cases: Dataset, keep_case: Callable[[str], bool], otherwise: str) -> Dataset:
    places = [place for place, case_id in enumerate(cases.ids) if keep_case(case_id)]
    if not places:
        raise InputError(otherwise)
    return cases.subset(places)


def _job(request: EvaluateRequest, begun: _Begun, inputs: Inputs, place: int, note: Note) -> _Job:
    """Prepare one variant; raises InputError."""
    start, config, cases = begun.start, inputs.config, inputs.dataset
    assert cases is not None  # noqa: S101 - see _load
    asked = start.request
    names = variant_names(config) if config else []
    variant = names[place] if len(names) > 1 else None
    plan = prepare(
        cases,
        config=config,
        evaluators=asked.evaluators or None,
        criteria=Criteria(Path(asked.criteria), start.criteria_found) if asked.criteria else None,
        by_cases=True,
        flags=start.judge,
        redaction=redaction_with(
            config.redaction if config else ON, request.redact, request.redact_kinds
        ),
        trust=request.trust,
        own_code=not request.judge.rehearsal,
    )
    if variant is not None and config is not None:
        plan = msgspec.structs.replace(plan, default_model=config.providers[place].model)
    some = start.open_cases is not None or asked.cases is not None
    if plan.gate and some:
        tags = {tag for case in cases for tag in case.tags} if plan.gate.rules else set()
        part = for_some_cases(plan.gate, cases.ids, tags)
        if part.left_out:
            left_out = ", ".join(part.left_out)
            note(f"the gate is about all cases; not asked of these: {left_out}")
        plan = msgspec.structs.replace(plan, gate=part.gate)
    if start.before is None:
        options = config.run if config else RunOptions()
    else:
        # A limit that was reached, or a first failure, is what one resumes from.
        options = msgspec.structs.replace(
            start.before.run,
            repeat=start.before.repeats,
            retry_errors=0,
            fail_fast=False,
            max_agent_cost=None,
        )
    options = request.run.over(options)
    kept_request = msgspec.structs.replace(
        asked,
        cases=list(cases.ids) if start.open_cases is not None else asked.cases,
        target=[masked(word) for word in asked.target],  # secrets are not kept
        judge=judge_words(start.judge),
        variant=variant,
    )
    basis = basis_of(config, kept_request, plan, cases)
    name = request.name or (config.name if config else None) or cases.name
    spec = begun.target.provider
    kind = str(spec["type"]) if spec is not None else None
    if kind is None and config is not None and config.providers:
        kind = config.providers[place].type
    header = folder_header(
        plan,
        inputs,
        kind,
        provider=masked(spec),
        run=msgspec.to_builtins(options),
        request=msgspec.to_builtins(kept_request),
        basis=msgspec.to_builtins(basis),
    )
    if variant is not None:
        header["variant"] = variant
    return _Job(
        place=place,
        variant=variant,
        plan=plan,
        cases=cases,
        options=options,
        name=start.before.name
        if start.before
        else (name if variant is None else f"{name}-{variant}"),
        header=header,
        kept=kept_results(start, basis, cases, force=request.force, note=note),
    )


def _workers(
    spec: dict[str, Any], request: EvaluateRequest, begun: _Begun, inputs: Inputs, job: _Job
) -> tuple[Backend, Recipe]:
    """Build the backend that plays a variant, and what its workers are told."""
    from .worker import make_workers, recipe_of

    asked = begun.start.request
    some = begun.start.open_cases is not None or asked.cases is not None
    recipe = recipe_of(
        inputs,
        job.plan,
        begun.start.judge,
        agents=asked.agents,
        filters=asked.filters,
        limit=asked.limit,
        cases=list(job.cases.ids) if some else None,
        evaluators=asked.evaluators,
        criteria=asked.criteria,
        provider=begun.target.provider,
        run=job.options,
        trusted=request.trust.allowed,
    )
    return make_workers(spec, inputs.config), recipe


def _play(
    job: _Job,
    provider: ConfiguredProvider[Any],
    workers: tuple[Backend, Recipe] | None,
    root: Path,
    listener: Listener,
) -> Path:
    """Play all cases of a variant into a folder, and return it."""
    total = len(job.cases) * job.options.repeat
    progress = listener.progress(total - len(finished_slots(job.kept)))
    started: list[Path] = []
    how: dict[str, Any] = {
        "root": root,
        "name": job.name,
        "header": job.header,
        "on_start": started.append,
        "on_result": progress.add,
        "kept": job.kept,
    }
    work = (job.plan, provider, job.cases, job.options)
    try:
        if workers is None:
            return run_until_terminated(evaluate_to_folder(*work, **how))
        from baton.runner.backends.distribute import evaluate_on

        backend, recipe = workers
        return evaluate_on(backend, recipe, *work, variant=job.place, **how)
    except KeyboardInterrupt:
        for folder in started:
            listener.note(f"what was done until now: baton report {folder}")
        raise
    finally:
        progress.close()

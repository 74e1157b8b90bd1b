"""Plays cases with live agents and scores them: in memory, or into evaluation folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Unpack

import msgspec

from baton import model
from baton.config import Config
from baton.config.choose_evaluators import left_unchecked
from baton.config.config import chosen_backend
from baton.config.config_file import ReporterSpec
from baton.datasets.selection import choose
from baton.formats.evaluation_header import Header, Request
from baton.formats.explain_mistakes import explain
from baton.formats.storage_addresses import is_address, shown_address
from baton.model import (
    CaseResult,
    ChangedText,
    Dataset,
    InputError,
    Problem,
    Provider,
    ProviderError,
    RunOptions,
    StandIns,
    nearest,
    suggestion,
)
from baton.model.mask_known_secrets import masked
from baton.model.option_spelling import option
from baton.model.stand_ins import merged
from baton.providers.base_provider import ConfiguredProvider, Surroundings
from baton.providers.registry import make_provider
from baton.providers.user_functions import takes_one
from baton.readers import Catalog
from baton.replays.cases import answered_tools
from baton.runner.costs import read_prices
from baton.runner.live import (
    RunFolder,
    check_playable,
    evaluate_in_memory,
    evaluate_to_folder,
    finished_slots,
)
from baton.runner.loop import entered, run, run_anywhere, run_until_terminated
from baton.runner.plan import Plan, Specs
from baton.store import Kept, StoredEvaluation, evaluation_at, read_evaluation

from .agent_under_test import (
    NO_AGENT,
    NO_TEXTS,
    Target,
    agent_spec,
    build_agent,
    find_target,
    only_provider,
    variant_names,
    variants_of,
)
from .components import checked
from .estimate import estimate_live
from .evaluation import Evaluation
from .prepare import (
    Criteria,
    DatasetLike,
    Inputs,
    Note,
    PathLike,
    ScoreOptions,
    folder_header,
    for_this,
    gated_by_some,
    inputs_of,
    is_criteria,
    judge_flags_of,
    load_inputs,
    log_note,
    prepare,
    refuse_unknown,
    trust_in,
)
from .report import STORED, Written, check_outputs
from .resume import (
    Start,
    basis_of,
    begin,
    is_complete,
    judge_words,
    kept_results,
    last_evaluation,
)

if TYPE_CHECKING:
    from baton.judges.judge import JudgingEstimate
    from baton.runner.backends.protocol import Backend, Recipe

ProviderLike = Provider | Mapping[str, Any] | str


class EvaluateOptions(ScoreOptions, total=False):
    """How to play and score: the options of :func:`baton.evaluate` that ``score`` does not have.

    By default the config's values are used.

    Keys:
        concurrency: how many cases are played at once; 4 by default.
        repeat: how often each case is played; once by default.
        timeout: seconds for one case, 600 by default; ``None`` for no limit.
        retry_errors: how often errors are played again. By default (or ``None``) only cases that
            a server refused with 429 or 503 are; with 0 none.
        fail_fast: stop at the first case that fails or has an error; a notice says what was not
            played.
        max_agent_cost: the maximum cost of the agents in USD; further cases become errors.
        texts: components to change, by name: ``{"agent:desk": "You are ..."}``.
        live_tools: tools that really run in cases with stand-ins for tools.
    """

    concurrency: int
    repeat: int
    timeout: float | None
    retry_errors: int | None
    fail_fast: bool
    max_agent_cost: float | None
    texts: Mapping[str, str]
    live_tools: Sequence[str]


async def aevaluate(
    dataset: DatasetLike | None = None,
    provider: ProviderLike | None = None,
    evaluators: Specs | None = None,
    **options: Unpack[EvaluateOptions],
) -> Evaluation:
    """Play every case of a dataset with ``provider`` and score what it did.

    If the provider raises an exception for a case, that case is an error, and the others continue.

    Args:
        dataset: the cases to play, with their expectations; by default that of ``config``.
        provider: a function that takes a case and returns a trace, or an awaitable of one; or the
            spec of a provider of Baton (``{"type": "adk_http", "endpoint_url": ...}``); or an
            agent as for `baton eval`: the address of an ADK server, a folder of ADK agents,
            ``module:function``. Functions that are not async are called in threads. By default
            that of ``config``.
        evaluators: as for :func:`score`. By default those of the config, else those of a
            ``test_config.json`` beside an eval set of ADK, else those for what the cases state.
        options: ``concurrency``, ``repeat``, ``timeout``, ``retry_errors``, ``fail_fast``,
            ``max_agent_cost``, and those of :func:`score`: see :class:`EvaluateOptions`.

    Returns:
        Results in the order of the dataset, the repeats of a case together.

    Raises:
        InputError: an unknown option or value, or a file with errors.
    """
    _check_names(options)
    prepared = prepare_evaluation(dataset, provider, evaluators, **options)
    prepared = prepared._replace(plan=for_this(prepared.plan, prepared.cases))
    about = _about(prepared, await prepared.check())
    evaluation = await prepared.play()
    evaluation.notices += about.notices
    return Evaluation.of(evaluation, about, keep_traces=True)


def evaluate(
    dataset: DatasetLike | None = None,
    provider: ProviderLike | None = None,
    evaluators: Specs | None = None,
    **options: Unpack[EvaluateOptions],
) -> Evaluation:
    """Play every case of a dataset with ``provider`` and score what it did.

    This is :func:`aevaluate` for code that is not async; in a running event loop, await that.

    Args:
        dataset: as for :func:`aevaluate`.
        provider: as for :func:`aevaluate`.
        evaluators: as for :func:`aevaluate`.
        options: as for :func:`aevaluate`.

    Raises:
        InputError: an unknown option or value, or a file with errors.
        RuntimeError: an event loop runs here.
    """
    import asyncio

    _check_names(options)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass  # no loop is running; errors below are raised outside of this handler, not chained
    else:
        raise RuntimeError("an event loop is running: use `await baton.aevaluate(...)` instead")
    return run(aevaluate(dataset, provider, evaluators, **options))


def evaluate_into(
    folder: Path,
    dataset: DatasetLike,
    provider: ProviderLike,
    evaluators: Specs | None = None,
    *,
    on_start: Callable[[Path], None] = lambda _: None,
    **options: Unpack[EvaluateOptions],
) -> StoredEvaluation:
    """Like :func:`evaluate`, but also write each result into a new folder as it comes.

    ``on_start`` is called with the folder when it exists, for callers that follow what is written.

    Raises:
        InputError: as for :func:`evaluate`; the folder exists, or cannot be written.
        Terminated: a signal ended this; the results in the folder are complete.
    """
    _check_names(options)
    prepared = prepare_evaluation(dataset, provider, evaluators, **options)
    plan, cases = for_this(prepared.plan, prepared.cases), prepared.cases
    prepared = prepared._replace(plan=plan)
    about = _about(prepared, run_anywhere(prepared.check()))
    to = RunFolder(folder.parent, prepared.name, about, on_start=on_start, folder=folder)
    run_until_terminated(evaluate_to_folder(plan, prepared.provider, cases, prepared.options, to))
    return read_evaluation(folder)


def _about(prepared: Prepared, changes: Sequence[ChangedText]) -> Header:
    """Return the description of how an evaluation was made, for its folder."""
    player = prepared.provider
    header = folder_header(
        prepared.plan,
        prepared.inputs,
        player.options.type if isinstance(player, ConfiguredProvider) else None,
        git=False,
        changes=changes,
    )
    header.planned = len(prepared.cases) * prepared.options.repeat
    header.repeats = prepared.options.repeat
    return header


def _check_names(options: EvaluateOptions) -> None:
    known = [*ScoreOptions.__annotations__, *EvaluateOptions.__annotations__]
    refuse_unknown("`baton.evaluate`", options, ["dataset", "provider", "evaluators", *known])


class Prepared(NamedTuple):
    """Cases with their provider and evaluators: everything is checked, nothing is played yet.

    ``make_provider`` builds the provider again, for callers that play in several event loops;
    ``make_unchanged`` builds one without the changed ``texts``.
    """

    inputs: Inputs
    plan: Plan
    cases: Dataset
    provider: Provider
    make_provider: Callable[[], Provider]
    options: RunOptions
    name: str
    texts: Mapping[str, str] = NO_TEXTS
    make_unchanged: Callable[[], Provider] | None = None
    live_tools: Sequence[str] = ()
    note: Note = log_note

    async def check(self) -> list[ChangedText]:
        """Check that tools to run and texts to change exist.

        Raises:
            InputError: there is no such tool or component, or a text breaks something.
        """
        if self.make_unchanged is None:
            return []
        await _check_live(self.live_tools, self.inputs, [self.make_unchanged], self.note)
        if not self.texts:
            return []
        unchanged = self.make_unchanged()
        if not isinstance(unchanged, ConfiguredProvider):
            raise InputError(
                "`texts` are changed in agents that Baton sets up: name the agent, as "
                "`module:function`, or the spec of a provider"
            )
        return await checked(unchanged, self.texts)

    async def play(self, cases: Dataset | None = None) -> model.Evaluation:
        """Play and score all cases, or some; raises InputError for what cannot be played."""
        some = self.cases if cases is None else cases
        return await evaluate_in_memory(self.plan, self.provider, some, self.options, self.name)


def prepare_evaluation(
    dataset: DatasetLike | None = None,
    provider: ProviderLike | None = None,
    evaluators: Specs | None = None,
    *,
    folder: Path = Path(),
    **options: Unpack[EvaluateOptions],
) -> Prepared:
    """Check the inputs of :func:`aevaluate` without playing; agents' paths start in ``folder``.

    Raises:
        InputError: as for :func:`aevaluate`.
    """
    inputs = inputs_of(options, dataset)
    config = inputs.config
    if inputs.dataset is None:
        if config is not None:
            raise InputError(
                Problem(file=config.file, message="names no `dataset:`: there is nothing to play")
            )
        raise InputError("name the dataset to play, or a config with `dataset:`")
    note = options.get("note", log_note)
    inputs = _stood_in(inputs, options)
    assert inputs.dataset is not None  # noqa: S101 - see above
    base = config.run if config else RunOptions()
    how = run_options(base, options)
    options["by_cases"] = True
    texts = options.get("texts") or NO_TEXTS
    make = _maker_of(provider, config, inputs.catalog or {}, folder, texts)
    unchanged = _maker_of(provider, config, inputs.catalog or {}, folder, NO_TEXTS)
    player = make()
    stated = player.options if isinstance(player, ConfiguredProvider) else None
    plan = prepare(
        inputs,
        evaluators,
        options,
        player_prices=read_prices(stated.custom_pricing or {}, "custom_pricing")
        if stated
        else None,
        player_model=stated.model if stated else None,
    )
    name = options.get("name") or (config.name if config else None) or inputs.dataset.name
    live = options.get("live_tools") or ()
    cases = inputs.dataset
    return Prepared(inputs, plan, cases, player, make, how, name, texts, unchanged, live, note)


def _maker_of(
    provider: ProviderLike | None,
    config: Config | None,
    catalog: Catalog,
    folder: Path,
    texts: Mapping[str, str],
) -> Callable[[], Provider]:
    """Return a function that builds the provider; raises InputError if there is none."""
    if provider is None:
        if config is None:
            raise InputError("name a provider for the cases, or a config with `providers:`")
        return lambda: only_provider(config, catalog, texts)
    spec = agent_spec(provider, folder) if isinstance(provider, str) else provider
    if spec is None:
        raise InputError(Problem(file=str(provider), message=NO_AGENT))
    if isinstance(spec, Mapping):
        return lambda: make_provider(spec, Surroundings(folder, catalog, texts))
    if not isinstance(spec, ConfiguredProvider) and not (callable(spec) and takes_one(spec)):
        kind = getattr(spec, "__name__", type(spec).__name__)
        raise InputError(
            f"`{kind}` is not a provider: a provider is a function from a case to a trace; for a "
            'function of messages use `{"type": "python", "target": "module:function"}`'
        )
    return lambda: spec


def run_options(base: RunOptions, options: EvaluateOptions) -> RunOptions:
    """Override the settings of a config or of an earlier run; raises InputError."""
    names = RunOptions.__struct_fields__
    stated = {name: value for name, value in options.items() if name in names}
    faults = explain(stated, RunOptions)
    if faults:
        raise InputError(
            Problem(path=option(str(fault.path[0])).strip("`"), message=fault.message)
            for fault in faults
        )
    return msgspec.structs.replace(base, **stated)


class Progress(Protocol):
    """Receives each result."""

    def add(self, result: CaseResult) -> None:
        """Add one result."""

    def close(self) -> None:
        """No more results will come."""


class _Silent:
    def __init__(self, total: int) -> None:
        """``total`` is the number of expected results."""

    def add(self, result: CaseResult) -> None:
        pass

    def close(self) -> None:
        pass


class Listener(NamedTuple):
    """A listener of a running evaluation.

    ``configured`` is called with the config when it is loaded, ``progress`` with the number of
    expected results; it returns a receiver for them.
    """

    configured: Callable[[Config | None], None] = lambda _: None
    progress: Callable[[int], Progress] = _Silent


class Variant(NamedTuple):
    """One of a config's providers, and the folder of its evaluation; a single one has no name."""

    name: str | None
    folder: Path

    def own(self, file: Path) -> Path:
        """Return the file of this variant: ``report-gpt.html`` for ``report.html``."""
        if self.name is None:
            return file
        return file.with_name(f"{file.stem}-{self.name}{file.suffix}")

    def _own_reporter(self, reporter: ReporterSpec) -> ReporterSpec:
        if not reporter.output_path:
            return reporter
        path = str(self.own(Path(reporter.output_path)))
        return msgspec.structs.replace(reporter, output_path=path)

    def written(self, config: Config | None, upload_to: str | None = None) -> Written:
        """Return the folder with the inputs of its reports; each variant has its own files."""
        if config is not None:
            reporters = [self._own_reporter(each) for each in config.reporters]
            config = msgspec.structs.replace(config, reporters=reporters)
        return Written(self.folder, config, upload_to=upload_to)


class Evaluated(NamedTuple):
    """The folders of an evaluation, one for each provider, and the config it was made with."""

    variants: list[Variant]
    config: Config | None


def resume(
    evaluation: PathLike,
    target: PathLike | None = None,
    *,
    dataset: Sequence[PathLike] = (),
    criteria: PathLike | None = None,
    force: bool = False,
    backend: str | None = None,
    workers: int | None = None,
    **options: Unpack[EvaluateOptions],
) -> StoredEvaluation:
    """Resume an evaluation of `baton eval`: play the cases that are missing or were errors.

    A folder must not choose what is run. So the config or the agent has to be named again.

    Args:
        evaluation: its folder.
        target: the config (YAML) or the agent; by default `baton.yaml` in the current folder.
        dataset: the datasets, if they are outside of the current folder.
        criteria: the criteria of ADK (a ``test_config.json`` of any name), if there were some.
        force: continue even if the dataset, the config or an evaluator changed.
        backend: where the work is done: ``local``, ``ray`` or ``module:function``.
        workers: how many workers the backend has.
        options: as for :func:`aevaluate`, except those that the folder determines.

    Returns:
        The complete evaluation; unchanged if nothing was missing.

    Raises:
        InputError: the folder is not an evaluation that can be resumed, something has to be named
            again, or something that its results depend on has changed.
    """
    _check_names(options)
    folder = Path(evaluation)
    agents = options.get("agents")
    done = evaluate_files(
        Request(
            target=[] if target is None else [str(target)],
            dataset=list(map(str, dataset)),
            criteria=None if criteria is None else str(criteria),
            agents=None if agents is None else str(agents),
        ),
        out=folder.parent,
        resume=folder,
        force=force,
        backend=backend,
        workers=workers,
        **options,
    )
    return read_evaluation(done.variants[0].folder, partial=True)


def evaluate_files(
    request: Request,
    *,
    out: Path,
    resume: PathLike | None = None,
    only_failed: PathLike | None = None,
    last_failed: bool = False,
    force: bool = False,
    backend: str | None = None,
    workers: int | None = None,
    reports: Sequence[Path] = (),
    listener: Listener = Listener(),  # noqa: B008 - it cannot be changed
    **options: Unpack[EvaluateOptions],
) -> Evaluated:
    """Play a dataset against the agents of a config, or one agent, and store what they did.

    This is :func:`aevaluate` with arguments as on the command line, and with a folder for each
    provider. A resumed evaluation that is already complete is returned unchanged.

    Args:
        request: what to evaluate.
        out: where evaluations are stored.
        resume: the folder of an evaluation to resume.
        only_failed: the folder of an evaluation, or its address; play only cases that did not pass
            in it.
        last_failed: use the newest folder below ``out`` as ``only_failed``.
        force: resume even if something changed.
        backend: where the work is done.
        workers: how many workers the backend has.
        reports: files that will be written afterwards.
        listener: follows the evaluation.
        options: as for :func:`aevaluate`; the judge is a model, or flags.

    Raises:
        InputError: options, files or the config have errors, something is not trusted, or what a
            resumed evaluation depends on has changed.
    """
    options["trust"] = trust_in(options)
    failed = _only_failed(only_failed, last_failed, out)
    begun = _begin(request, _local(resume), failed, listener, force=force, options=options)
    config, start, note = begun.target.config, begun.start, options.get("note", log_note)
    chosen = chosen_backend(config.backend if config else None, backend, workers)
    if start.folder is not None and is_complete(start):
        return Evaluated([Variant(None, start.folder)], config)
    for text in config.notes if config else ():
        note(text)
    places = _places(begun)
    inputs = _load(begun, options)
    makers = [partial(_unchanged, begun, inputs, place) for place in places]
    run_anywhere(_check_live(options.get("live_tools") or (), inputs, makers, note))
    cases = inputs.dataset.files if inputs.dataset else ()
    check_outputs(config, reports, [*cases, inputs.definitions])
    changes = [_changes(begun, inputs, place, options) for place in places]
    jobs = [
        _job(begun, inputs, place, options, force=force, changes=some)
        for place, some in zip(places, changes, strict=True)
    ]
    for text in jobs[0].cases.notes:
        note(text)
    for text in trust_in(options).notes:
        note(text)
    providers = []
    for job in jobs:
        spec = begun.target.provider
        texts = options.get("texts") or NO_TEXTS
        providers.append(build_agent(config, spec, job.place, inputs.catalog or {}, texts))
        check_playable(job.plan, providers[-1], job.cases)
    employed = [_workers(chosen, begun, inputs, job, options) if chosen else None for job in jobs]
    done = []
    for job, provider, some in zip(jobs, providers, employed, strict=True):
        done.append(Variant(job.variant, _play(job, provider, some, out, listener, note)))
    return Evaluated(done, config)


def _changes(
    begun: _Begun, inputs: Inputs, place: int, options: EvaluateOptions
) -> list[ChangedText]:
    """Check the changed texts against those of a provider; raises InputError."""
    texts = options.get("texts")
    if not texts:
        return []
    return run_anywhere(checked(_unchanged(begun, inputs, place), texts))


def _unchanged(begun: _Begun, inputs: Inputs, place: int) -> ConfiguredProvider[Any]:
    """Build a provider without changed texts; raises InputError."""
    target = begun.target
    return build_agent(target.config, target.provider, place, inputs.catalog or {})


def _local(resumed: PathLike | None) -> Path | None:
    """Return the folder to resume; raises InputError for an address, which cannot be written to."""
    if resumed is not None and is_address(os.fspath(resumed)):
        message = "is resumed in its local folder: copy it to one, and name that"
        raise InputError(Problem(file=shown_address(os.fspath(resumed)), message=message))
    return None if resumed is None else Path(resumed)


def _only_failed(evaluation: PathLike | None, last: bool, stored: Path) -> Path | None:
    if not last:
        return None if evaluation is None else evaluation_at(evaluation)
    if evaluation is not None:
        both = f"{option('last_failed', True)} and {option('only_failed')}"
        raise InputError(f"{both} exclude one another: give one")
    return last_evaluation(stored, played=True)


def estimate_evaluation(
    request: Request,
    *,
    out: Path = STORED,
    resume: PathLike | None = None,
    only_failed: PathLike | None = None,
    last_failed: bool = False,
    force: bool = False,
    backend: str | None = None,
    workers: int | None = None,
    listener: Listener = Listener(),  # noqa: B008 - it cannot be changed
    **options: Unpack[EvaluateOptions],
) -> JudgingEstimate | None:
    """Estimate the usage of judging from the cases; ``None`` if no judge is needed.

    Nothing is played, and the user's own code is not imported. The judge has to be a rehearsal.

    Raises:
        InputError: as for :func:`evaluate_files`.
    """
    failed = _only_failed(only_failed, last_failed, out)
    begun = _begin(request, _local(resume), failed, listener, force=force, options=options)
    config, note = begun.target.config, options.get("note", log_note)
    chosen_backend(config.backend if config else None, backend, workers)
    for text in config.notes if config else ():
        note(text)
    place = _places(begun)[0]
    inputs = _load(begun, options)
    run_anywhere(_check_live(options.get("live_tools") or (), inputs, [], note))
    job = _job(begun, inputs, place, options, force=force)
    for text in (*job.cases.notes, *left_unchecked(job.plan, job.cases)):
        note(text)
    return estimate_live(job.plan, job.cases, job.options.repeat)


class _Begun(NamedTuple):
    target: Target
    start: Start


class _Job(NamedTuple):
    """Everything for playing one variant; ``place`` is its provider's position, from 0."""

    place: int
    variant: str | None
    plan: Plan
    cases: Dataset
    options: RunOptions
    name: str
    header: Header
    kept: Kept | None


def _begin(
    wanted: Request,
    resume: Path | None,
    only_failed: Path | None,
    listener: Listener,
    *,
    force: bool,
    options: EvaluateOptions,
) -> _Begun:
    """Find out what to evaluate; the config is only parsed at this point."""
    wanted = with_config(wanted)
    if wanted.limit is not None and wanted.limit < 1:
        raise InputError(f"{option('limit')} has to be at least 1, got {wanted.limit}")
    start = begin(
        wanted,
        judge_flags_of(options),
        resume=resume,
        only_failed=only_failed,
        repeat=options.get("repeat"),
        force=force,
        note=options.get("note", log_note),
    )
    request = start.request
    # Options that are not given come from the folder of the earlier evaluation.
    options["judge"], options["agents"] = start.judge, request.agents
    options["by_cases"] = True
    own_code = not start.judge.rehearsal
    target = find_target(
        request.target, trust_in(options), request.app, config=request.config, own_code=own_code
    )
    listener.configured(target.config)
    return _Begun(target, start)


def with_config(request: Request) -> Request:
    """Detect by content whether the `config` option names criteria of ADK or a config of Baton.

    If no agent is named, a config of Baton becomes the target.

    Raises:
        InputError: two files of criteria.
    """
    if request.config is None:
        return request
    if is_criteria(request.config):
        if request.criteria is not None:
            both = f"{option('config')} and {option('criteria')}"
            raise InputError(f"{both} both name criteria of ADK: give one")
        return msgspec.structs.replace(request, config=None, criteria=request.config)
    if request.target and agent_spec(request.target[0]) is not None:
        return request
    return msgspec.structs.replace(request, config=None, target=[request.config, *request.target])


def _places(begun: _Begun) -> list[int]:
    """Return the positions of the config's providers to play; a named agent replaces them all."""
    target, wanted = begun.target, begun.start.request.variant
    return variants_of(target.config if target.provider is None else None, wanted)


def _load(begun: _Begun, options: EvaluateOptions) -> Inputs:
    """Load the requested cases; raises InputError when there are none."""
    target, request = begun.target, begun.start.request
    named = [*target.datasets, *request.dataset]
    if not named and not (target.config and target.config.dataset):
        raise InputError("name a dataset: baton eval AGENT DATASET, or `dataset:` in the config")
    note = options.get("note", log_note)
    inputs = load_inputs(target.config, named or None, request.agents, note)
    assert inputs.dataset is not None  # noqa: S101 - a path is named
    cases = choose(inputs.dataset, request.filters, request.limit, request.keyword)
    if request.cases is not None:
        wanted = set(request.cases)
        cases = _some(cases, wanted.__contains__, "none of the chosen cases exists anymore")
    if begun.start.open_cases is not None:
        nothing = "every case passed in that evaluation: there is nothing to play"
        cases = _some(cases, begun.start.open_cases, nothing)
    return _stood_in(msgspec.structs.replace(inputs, dataset=cases), options)


def _stood_in(inputs: Inputs, options: EvaluateOptions) -> Inputs:
    """Add the stand-ins of the config and the live tools to the cases; those of cases win."""
    cases, config = inputs.dataset, inputs.config
    live = list(options.get("live_tools") or ())
    under = config.stand_ins if config is not None else None
    if cases is None or (under is None and not live):
        return inputs
    if live:
        under = merged(under, StandIns(live=live))
    return msgspec.structs.replace(inputs, dataset=cases.with_stand_ins(under or StandIns()))


async def _check_live(
    live: Sequence[str], inputs: Inputs, makers: Sequence[Callable[[], Provider]], note: Note
) -> None:
    """Raise InputError for a live tool that does not exist, if a tool has a similar name.

    If cases and definitions do not name it, the agents of ``makers`` are asked for their tools.
    Agents may not know all tools (for example those of an MCP server), so that an unknown name
    without a similar one is only a note.
    """
    if not live:
        return
    cards = (inputs.catalog or {}).values()
    known = {tool for card in cards if isinstance(card.tools, list) for tool in card.tools}
    known |= answered_tools(list(inputs.dataset or ()))
    for make in makers if set(live) - known else ():
        provider = make()
        if isinstance(provider, ConfiguredProvider):
            with suppress(ProviderError):  # tools unknown; playing will report other problems
                async with entered(provider):
                    known |= await provider.tools()
    for name in live:
        if name in known:
            continue
        if nearest(name, known):
            raise InputError(f"{option('live_tools')}: no tool `{name}`; {suggestion(name, known)}")
        note(f"{option('live_tools')}: unknown tool `{name}`")


def _some(cases: Dataset, keep_case: Callable[[str], bool], otherwise: str) -> Dataset:
    places = [place for place, case_id in enumerate(cases.ids) if keep_case(case_id)]
    if not places:
        raise InputError(otherwise)
    return cases.subset(places)


def _job(
    begun: _Begun,
    inputs: Inputs,
    place: int,
    options: EvaluateOptions,
    *,
    force: bool,
    changes: Sequence[ChangedText] = (),
) -> _Job:
    """Prepare one variant; raises InputError."""
    start, config, cases = begun.start, inputs.config, inputs.dataset
    assert cases is not None  # noqa: S101 - see _load
    request, note = start.request, options.get("note", log_note)
    names = variant_names(config) if config and begun.target.provider is None else []
    variant = names[place] if len(names) > 1 else None
    plan = prepare(
        inputs,
        request.evaluators or None,
        options,
        criteria=Criteria(Path(request.criteria), start.criteria_found)
        if request.criteria
        else None,
    )
    if variant is not None and config is not None:
        plan = msgspec.structs.replace(plan, default_model=config.providers[place].model)
    some = start.open_cases is not None or request.cases is not None
    if some:
        plan = gated_by_some(plan, cases, note)
    if start.before is None:
        how = config.run if config else RunOptions()
    else:
        # The earlier run may have ended at its limit or first failure: do not end there again.
        how = msgspec.structs.replace(
            start.before.run or RunOptions(),
            repeat=start.before.repeats,
            retry_errors=0,
            fail_fast=False,
            max_agent_cost=None,
        )
    how = run_options(how, options)
    kept_request = msgspec.structs.replace(
        request,
        cases=list(cases.ids) if start.open_cases is not None else request.cases,
        target=[masked(word) for word in request.target],  # secrets are not kept
        judge=judge_words(start.judge),
        variant=variant,
    )
    basis = basis_of(config, kept_request, plan, cases, changes)
    name = options.get("name") or (config.name if config else None) or cases.name
    spec = begun.target.provider
    kind = str(spec["type"]) if spec is not None else None
    if kind is None and config is not None and config.providers:
        kind = config.providers[place].type
    header = folder_header(plan, inputs, kind, changes=changes)
    header.provider, header.variant = masked(spec), variant
    header.run, header.request, header.basis = how, kept_request, basis
    return _Job(
        place=place,
        variant=variant,
        plan=plan,
        cases=cases,
        options=how,
        name=start.before.name
        if start.before
        else (name if variant is None else f"{name}-{variant}"),
        header=header,
        kept=kept_results(start, basis, cases, force=force, note=note),
    )


def _workers(
    spec: dict[str, Any], begun: _Begun, inputs: Inputs, job: _Job, options: EvaluateOptions
) -> tuple[Backend, Recipe]:
    """Build the backend that plays a variant, and the settings of its workers."""
    from .backend_workers import make_workers, recipe_of

    request = begun.start.request
    some = begun.start.open_cases is not None or request.cases is not None
    recipe = recipe_of(
        inputs,
        job.plan,
        options,
        filters=request.filters,
        keyword=request.keyword,
        limit=request.limit,
        cases=list(job.cases.ids) if some else None,
        evaluators=request.evaluators,
        criteria=request.criteria,
        provider=begun.target.provider,
        run=job.options,
        texts=dict(options.get("texts") or {}),
        live_tools=list(options.get("live_tools") or ()),
    )
    return make_workers(spec, inputs.config), recipe


def _play(
    job: _Job,
    provider: ConfiguredProvider[Any],
    workers: tuple[Backend, Recipe] | None,
    root: Path,
    listener: Listener,
    note: Note,
) -> Path:
    """Play all cases of a variant into a folder, and return it."""
    total = len(job.cases) * job.options.repeat
    progress = listener.progress(total - len(finished_slots(job.kept)))
    started: list[Path] = []
    to = RunFolder(
        root, job.name, job.header, on_result=progress.add, on_start=started.append, kept=job.kept
    )
    work = (job.plan, provider, job.cases, job.options, to)
    try:
        if workers is None:
            return run_until_terminated(evaluate_to_folder(*work))
        from baton.runner.backends.play import evaluate_on

        backend, recipe = workers
        return evaluate_on(backend, recipe, *work, variant=job.place)
    except KeyboardInterrupt:
        for folder in started:
            note(f"results so far: baton report {folder}")
        raise
    finally:
        progress.close()

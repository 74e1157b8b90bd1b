"""Scores recorded traces: in memory or into an evaluation folder, in this process or by workers."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from baton.config.choose_evaluators import left_unchecked
from baton.config.config import chosen_backend
from baton.datasets.recorded_dispatches import recorded_trace
from baton.datasets.selection import keep_of
from baton.evaluators.user_defined import traits_of
from baton.formats.evaluation_folder import BODIES, is_evaluation
from baton.formats.evaluation_header import Header, Request, read_header
from baton.formats.storage_addresses import is_address, is_copy
from baton.model import Case, Dataset, InputError, Trace
from baton.model.option_spelling import option
from baton.readers import iter_traces
from baton.readers.shards import BYTES, iter_shards, pieces_of
from baton.runner.plan import Plan, Specs
from baton.runner.recorded import kept_traces, none_chosen, score_in_memory, score_to_folder
from baton.store import StoredEvaluation, read_evaluation, rows_of

from .evaluation import Evaluation
from .file_kinds import SWAPPED, cases_in, given_as, unreadable
from .prepare import (
    DatasetLike,
    Inputs,
    Note,
    PathLike,
    ScoreOptions,
    TracesLike,
    each_once,
    folder_header,
    for_this,
    gated_by_some,
    inputs_of,
    is_criteria,
    log_note,
    prepare,
    refuse_unknown,
    traces_or_paths,
    trust_in,
)
from .recordings import recordings_in
from .report import STORED, Written, check_outputs

if TYPE_CHECKING:
    from baton.judges.judge import JudgingEstimate


def score(
    traces: TracesLike,
    dataset: DatasetLike | None = None,
    evaluators: Specs | None = None,
    **options: Unpack[ScoreOptions],
) -> Evaluation:
    """Score recorded traces.

    A trace is matched with its case by case id (or its own id), else by the first user message. A
    trace or case without a partner, or with two, is an error result that names it.

    Args:
        traces: traces, or paths of files and folders with traces; also globs.
        dataset: what should have happened; without one, only evaluators that need no expectation
            are used.
        evaluators: specs (``{"type": "agent_chain", "config": {...}}``), names, objects or
            functions. By default those of the config; else ``agent_chain``; for cases of Strands
            those that their file names; without a dataset, the evaluators of dispatches that need
            no case.
        options: ``config``, ``agents``, ``pass_rule``, ``prices``, ``agent_names``, ``judge``,
            ``gate``, ``name``, ``trust``, ``redact`` and more: see :class:`ScoreOptions`.

    Returns:
        Results in the order of the dataset, one for every planned case.

    Raises:
        InputError: an unknown evaluator, option or value, or a file with errors.
    """
    refuse_unknown("`baton.score`", options, (*_POSITIONAL, *ScoreOptions.__annotations__))
    return _score(traces, dataset, evaluators, options, None)


def score_readable(
    traces: TracesLike,
    evaluators: Specs | None,
    unreadable: list[str],
    **options: Unpack[ScoreOptions],
) -> Evaluation:
    """Score recorded traces without cases like :func:`score`, and skip broken files.

    The errors of broken files are added to ``unreadable``.

    Raises:
        InputError: as for :func:`score`; or no trace could be read.
    """
    return _score(traces, None, evaluators, options, unreadable)


def _score(
    traces: TracesLike,
    dataset: DatasetLike | None,
    evaluators: Specs | None,
    options: ScoreOptions,
    problems: list[str] | None,
) -> Evaluation:
    ready = _prepare(traces, dataset, evaluators, options)
    inputs, cases = ready.inputs, ready.inputs.dataset
    plan = for_this(ready.plan, cases)
    # Redaction may depend on the case, so that it is done when traces are scored.
    read = _read(ready, problems)
    evaluation = score_in_memory(plan, read, cases, options.get("name") or ready.name or "score")
    if cases is not None:
        evaluation.notices += left_unchecked(plan, cases)
    # A folder refers to recordings only if all can be read again from the same files. It contains
    # the traces themselves if a program made them, or made their cases.
    from_files = not ready.is_kept and (cases is None or bool(inputs.paths))
    about = _header(ready, plan, evaluators, git=False)
    about.traces = ready.words if from_files else []
    about.repeats = _repeats(ready)
    return Evaluation.of(evaluation, about, keep_traces=not from_files)


_POSITIONAL = ("traces", "dataset", "evaluators")


def score_into(
    folder: Path,
    traces: TracesLike,
    dataset: DatasetLike | None = None,
    evaluators: Specs | None = None,
    *,
    on_start: Callable[[Path], None] = lambda _: None,
    **options: Unpack[ScoreOptions],
) -> StoredEvaluation:
    """Like :func:`score`, but also write each result into a new folder as it comes.

    The folder contains the traces, so that their files may be deleted. ``on_start`` is called
    with the folder when it exists.

    Raises:
        InputError: as for :func:`score`; the folder exists, or cannot be written.
    """
    refuse_unknown("`score_into`", options, ScoreOptions.__annotations__)
    ready = _prepare(traces, dataset, evaluators, options)
    cases = ready.inputs.dataset
    plan = for_this(ready.plan, cases)
    repeats = _repeats(ready)
    about = _header(ready, plan, evaluators, git=False)
    about.planned = None if cases is None else len(cases) * repeats
    made = score_to_folder(
        plan,
        _read(ready, None),
        cases,
        root=folder.parent,
        name=options.get("name") or ready.name or "score",
        header=about,
        input_problems=[],
        repeats=repeats,
        folder=folder,
        on_start=on_start,
    )
    return read_evaluation(made)


def score_files(
    traces: Sequence[PathLike],
    dataset: DatasetLike | None = None,
    evaluators: Specs | None = None,
    *,
    out: Path,
    backend: str | None = None,
    workers: int | None = None,
    jobs: int | None = None,
    reports: Sequence[Path] = (),
    keyword: str | None = None,
    last_failed: bool = False,
    **options: Unpack[ScoreOptions],
) -> Written:
    """Score recorded traces like :func:`score` into a new folder, optionally with workers.

    A broken file does not stop the others; the status of the evaluation is then `error`, and names
    the file.

    Args:
        traces: as for :func:`score`, and addresses (``s3://bucket/traces``).
        dataset: as for :func:`score`.
        evaluators: as for :func:`score`; workers take names.
        out: where evaluations are stored.
        backend: where the work is done: ``local``, ``ray`` or ``module:function``.
        workers: how many workers the backend has.
        jobs: the number of processes on this machine, without a backend; as many as the traces
            keep busy if it is not given.
        reports: files that will be written afterwards.
        keyword: score only cases that this expression matches; without cases, traces by id.
        last_failed: score only what did not pass in the last evaluation below ``out`` that scored
            recordings; its recordings, cases and evaluators are used if none are given.
        options: as for :func:`score`.

    Raises:
        InputError: an option, a file or the config has errors, or no trace was read; then there
            is no new folder.
    """
    again = _again(traces, dataset, evaluators, options, out if last_failed else None)
    chosen = _Chosen(keyword, again.folder)
    ready = _prepare(again.traces, again.dataset, again.evaluators, options, chosen)
    plan, inputs, note = ready.plan, ready.inputs, ready.note
    backend_spec = _backend(ready, backend, workers)
    if backend_spec is not None and jobs not in (None, 1):
        raise InputError(f"{option('jobs')} cannot be used with a backend; use {option('workers')}")
    config = inputs.config
    problems: list[str] = []
    header = _header(ready, plan, again.evaluators)
    header.traces = [] if ready.is_copied else ready.words
    how: dict[str, Any] = {
        "root": out,
        "name": options.get("name") or ready.name or _name_of(ready),
        "header": header,
        "input_problems": problems,
        "repeats": _repeats(ready),
    }
    cases = inputs.dataset.files if inputs.dataset else ()
    check_outputs(config, reports, [*ready.files, *cases, inputs.definitions])
    if backend_spec is None:
        if jobs is None:
            jobs = _usual_jobs(ready, again.evaluators, options)
        backend_spec = _processes(jobs, ready)
    if backend_spec is None:
        read = _read(ready, problems)
        folder: Path | None = score_to_folder(
            plan, read, inputs.dataset, keep_traces=ready.is_kept, **how
        )
    else:
        from baton.runner.backends.distribute import score_on
        from baton.runner.backends.work import Loaded, Setup

        from .backend_workers import make_workers, names_only, recipe_of

        recipe = recipe_of(
            inputs,
            plan,
            options,
            evaluators=names_only(again.evaluators),
            recorded=True,
            keyword=keyword,
            cases=ready.ids,
            criteria=str(inputs.criteria.file) if inputs.criteria else None,
        )
        shards = iter_shards(
            ready.words,
            exclude=[*map(Path, inputs.paths), *ready.exclude],
            size=BYTES,
            parts=backend_spec.get("workers", 1) if backend_spec["type"] == "local" else 1,
            on_problem=lambda error: problems.extend(map(str, error.problems)),
        )
        setup = Setup(lambda _: plan, inputs.dataset, inputs.catalog, keep=ready.keep)
        folder = score_on(
            make_workers(backend_spec, config, Loaded(recipe, setup)),
            recipe,
            plan,
            shards,
            inputs.dataset,
            on_note=note,
            **how,
        )
    if folder is None:
        raise _no_trace(ready.files, [InputError(problem) for problem in problems])
    definitions = None if inputs.definitions is None else Path(inputs.definitions)
    return Written(folder, config, traces=ready.files, agents=definitions)


def estimate_scoring(
    traces: Sequence[PathLike],
    dataset: DatasetLike | None = None,
    evaluators: Specs | None = None,
    *,
    backend: str | None = None,
    workers: int | None = None,
    out: Path = STORED,
    keyword: str | None = None,
    last_failed: bool = False,
    **options: Unpack[ScoreOptions],
) -> JudgingEstimate | None:
    """Estimate the usage of judging without calling a model; ``None`` if no judge is needed.

    The user's own code is not imported. ``judge`` has to be a rehearsal.

    Raises:
        InputError: as for :func:`score_files`.
    """
    from .estimate import estimate_recorded

    again = _again(traces, dataset, evaluators, options, out if last_failed else None)
    chosen = _Chosen(keyword, again.folder)
    ready = _prepare(again.traces, again.dataset, again.evaluators, options, chosen)
    if _backend(ready, backend, workers) is not None:
        raise InputError(
            f"{option('dry_run')} reads the traces on this machine: it allows no backend and no "
            "addresses"
        )
    if ready.inputs.dataset is not None:
        for text in left_unchecked(ready.plan, ready.inputs.dataset):
            ready.note(text)
    problems: list[str] = []
    estimate = estimate_recorded(ready.plan, _read(ready, problems), ready.inputs.dataset)
    for problem in problems:
        ready.note(problem)
    return estimate


def _name_of(ready: _Ready) -> str:
    first = next(iter(ready.words or ready.inputs.paths), "score")
    return _STAMP.sub("", Path(first).name)


_STAMP = re.compile(r"^\d{8}T\d{6}Z-")
"""The time in the name of a recording (`20261123T033153Z-desk.otlp.jsonl`). It is removed from the
name of an evaluation, so that all evaluations of one program share a name."""


class _Again(msgspec.Struct, frozen=True):
    """What to score; ``folder`` is an evaluation whose failures only are scored again."""

    traces: Sequence[PathLike]
    dataset: DatasetLike | None
    evaluators: Specs | None
    folder: Path | None = None


def _again(
    traces: Sequence[PathLike],
    dataset: DatasetLike | None,
    evaluators: Specs | None,
    options: ScoreOptions,
    stored: Path | None,
) -> _Again:
    """Use the inputs of the last evaluation in ``stored``, if there is one, where none are given.

    Raises:
        InputError: there are no traces, no such evaluation, or it names something that a folder
            must not name.
    """
    if stored is None:
        if not traces:
            raise InputError("name the files or folders that contain the traces")
        return _Again(traces, dataset, evaluators)
    from .resume import last_evaluation, scored_before

    folder = last_evaluation(stored, played=False)
    if traces:
        return _Again(traces, dataset, evaluators, folder)
    before = scored_before(
        folder,
        dataset=dataset is not None,
        evaluators=evaluators is not None,
        config=options.get("config") is not None,
    )
    evaluators = evaluators or before.evaluators or None
    return _Again([str(folder)], dataset or before.dataset or None, evaluators, folder)


class _Chosen(msgspec.Struct, frozen=True):
    """Which cases are scored: those that match the expression and did not pass last time."""

    keyword: str | None = None
    last: Path | None = None

    def ids(self, cases: Dataset | None) -> list[str] | None:
        """Return the ids of cases that did not pass, or of traces if there are no cases."""
        if self.last is None:
            return None
        from .resume import open_cases_of  # it imports the players of agents

        is_open = open_cases_of(self.last)
        every = cases.ids if cases is not None else [row.case_id for row in rows_of(self.last)]
        return list(filter(is_open, every))

    @property
    def name(self) -> str:
        """The options that chose the cases, for messages."""
        options = {"keyword": self.keyword, "last_failed": self.last and True}
        return " and ".join(option(name, value) for name, value in options.items() if value)


class _Ready(msgspec.Struct, frozen=True):
    """The plan and its inputs; ``traces`` are records and paths, with globs expanded.

    ``keep`` selects the traces to score, if only some cases are scored; ``ids`` are those that did
    not pass last time.
    """

    plan: Plan
    inputs: Inputs
    traces: Sequence[Trace | str]
    exclude: Sequence[Path]
    note: Note
    keep: Callable[[Trace], bool] | None = None
    ids: list[str] | None = None

    @property
    def words(self) -> list[str]:
        """The paths and addresses."""
        return [each for each in self.traces if isinstance(each, str)]

    @property
    def files(self) -> list[Path]:
        """The paths."""
        return [Path(word) for word in self.words if not is_address(word)]

    @property
    def is_kept(self) -> bool:
        """Whether the folder has to contain the traces, because their source will not last."""
        return len(self.words) < len(self.traces) or self.is_copied

    @property
    def is_copied(self) -> bool:
        """Whether traces are those of an evaluation that was fetched from an address."""
        return any(is_copy(each) for each in self.files)

    @property
    def name(self) -> str | None:
        """The name of the config or dataset."""
        config, dataset = self.inputs.config, self.inputs.dataset
        return (config.name if config else None) or (dataset.name if dataset else None)


def _prepare(
    traces: TracesLike,
    dataset: DatasetLike | None,
    evaluators: Specs | None,
    options: ScoreOptions,
    chosen: _Chosen = _Chosen(),  # noqa: B008 - it cannot be changed
) -> _Ready:
    options["trust"] = trust_in(options)
    note = options.get("note", log_note)
    config = options.get("config")
    sources = _expanded(traces_or_paths(traces), note)
    of_cases = False
    if dataset is None:
        has_cases = config is not None and not is_criteria(config)
        sources, dataset = _without_cases(sources, has_cases, note)
        of_cases = dataset is not None and not sources.traces
    inputs = inputs_of(options, dataset, sources.agents)
    config = inputs.config
    every = inputs.dataset
    ids = chosen.ids(every)
    keep_case = keep_of(chosen.keyword, ids)
    if of_cases and every is not None:
        sources = msgspec.structs.replace(sources, traces=_recorded_in(every, keep_case))
        options["by_cases"] = True  # by default agent chains are scored, which such cases lack
    if keep_case is not None and every is not None:
        places = [place for place, case in enumerate(every) if keep_case(case)]
        if not places:
            listed = ", ".join(every.ids[:5]) + (", ..." if len(every) > 5 else "")
            message = f"none of {len(every)} cases matches {chosen.name}; ids are {listed}"
            raise InputError(message)
        inputs = msgspec.structs.replace(inputs, dataset=every.subset(places))
    plan = prepare(inputs, evaluators, options)
    if keep_case is not None and chosen.last is not None and inputs.dataset is not None:
        plan = gated_by_some(plan, inputs.dataset, note)
    keep = None if keep_case is None else kept_traces(keep_case, every, plan.redaction)
    ready = _Ready(plan, inputs, sources.traces, sources.exclude, note, keep, ids)
    for text in trust_in(options).notes:
        note(text)
    if inputs.dataset is not None:
        for text in inputs.dataset.notes:
            note(text)
    else:
        for path in ready.files:
            if is_evaluation(path) and (used := read_header(path).dataset):
                made_with = " ".join(option("dataset", name) for name in used)
                note(f"{path}: scored without cases; it was made with {made_with}")
    if config is not None and config.providers:
        note(f"{config.file}: `providers` are not used: recorded traces are scored")
    return ready


class _Given(msgspec.Struct, frozen=True):
    """Records and paths to score, datasets among the paths, and agents of an evaluation."""

    traces: list[Trace | str]
    exclude: list[Path]
    agents: Path | None


def _expanded(traces: Iterable[Trace | str], note: Note) -> _Given:
    """Replace a glob by the files that match it, and an evaluation by its recordings.

    Addresses are not changed.

    Raises:
        InputError: no file matches a glob.
    """
    expanded: list[Trace | str] = []
    exclude: list[Path] = []
    agents: Path | None = None
    for each in traces:
        if isinstance(each, Trace):
            expanded.append(each)
            continue
        if is_address(each) or not any(mark in each for mark in "*?[") or Path(each).exists():
            read = recordings_in([each], note, addresses=True)
            expanded += read.paths
            exclude += read.exclude
            agents = agents or read.agents
            continue
        files = sorted(glob.glob(each, recursive=True))  # noqa: PTH207 - it may be absolute
        if not files:
            raise InputError(f"no file matches {each}")
        expanded += files
    once = set(each_once((each for each in expanded if isinstance(each, str)), note))
    unique: list[Trace | str] = []
    for entry in expanded:
        if isinstance(entry, Trace):
            unique.append(entry)
        elif entry in once:  # duplicates were removed, even those with another spelling
            once.remove(entry)
            unique.append(entry)
    return _Given(unique, exclude, agents)


def _without_cases(sources: _Given, has_cases: bool, note: Note) -> tuple[_Given, list[str] | None]:
    """Separate datasets from recordings by their content.

    An eval set of ADK is also a recording. It is taken as the dataset if there is no other one
    (``has_cases``) and there are other recordings.

    Raises:
        InputError: there are only datasets.
    """
    paths = [each for each in sources.traces if isinstance(each, str) and not is_address(each)]
    held = {path: kind for path in paths if (kind := cases_in(Path(path))) is not None}
    is_alone = len(held) == len(sources.traces)
    cases = [p for p, kind in held.items() if kind == "only" or not (is_alone or has_cases)]
    if not cases:
        return sources, None
    traces = [each for each in sources.traces if isinstance(each, Trace) or each not in cases]
    if not traces:
        # Cases of dispatches are recordings themselves. If no file can contain one, say that these
        # files are not recordings, before any other error in them.
        if not any(_may_hold_dispatches(Path(each)) for each in cases):
            swapped = SWAPPED.format("dataset", "recording")
            raise InputError(given_as(map(Path, cases), "dataset", swapped) or swapped)
        return msgspec.structs.replace(sources, traces=[]), cases
    for each in cases:
        note(f"{each}: is used as a dataset, because it contains cases")
    return msgspec.structs.replace(sources, traces=traces), cases


_DISPATCH = re.compile(rb"\bdispatch[\"']?\s*:")


def _may_hold_dispatches(path: Path) -> bool:
    """Return whether a file, or any file in a folder, contains the key `dispatch`."""
    files = [each for each in path.rglob("*") if each.is_file()] if path.is_dir() else [path]
    return any(_DISPATCH.search(each.read_bytes()) is not None for each in files)


def _recorded_in(cases: Dataset, keep: Callable[[Case], bool] | None) -> list[Trace | str]:
    """Return the recordings in cases of dispatches, for the cases to keep.

    Raises:
        InputError: none of the cases is a case of a dispatch.
    """
    if "dispatch" not in cases.stated:
        swapped = SWAPPED.format("dataset", "recording")
        raise InputError(given_as(map(Path, cases.files), "dataset", swapped) or swapped)
    return [
        recorded_trace(case)
        for case in cases
        if case.dispatch is not None and (keep is None or keep(case))
    ]


def _header(ready: _Ready, plan: Plan, evaluators: Specs | None, *, git: bool = True) -> Header:
    """Return the header of the folder, with the names of the inputs, to score them again.

    Evaluators that are objects have no name.
    """
    inputs = ready.inputs
    requested: list[object] = (
        [evaluators] if isinstance(evaluators, str) else list(evaluators or ())
    )
    own = inputs.config or inputs.criteria
    names = [name for name in requested if isinstance(name, str)]
    header = folder_header(plan, inputs, git=git)
    header.definitions = inputs.definitions
    header.request = Request(config=str(own.file) if own else None, evaluators=names)
    return header


def _repeats(ready: _Ready) -> int:
    """Return the maximum number of repeats in the evaluations that are scored again."""
    repeats = 1
    for path in ready.files if ready.inputs.dataset is not None else ():
        folder = path.parent if path.name == BODIES else path
        if is_evaluation(folder):
            repeats = max(repeats, read_header(folder).repeats)
    return repeats


def _backend(ready: _Ready, backend: str | None, workers: int | None) -> dict[str, Any] | None:
    """Return the requested backend; traces at addresses always need one."""
    config = ready.inputs.config
    chosen = chosen_backend(config.backend if config else None, backend, workers)
    # Traces at addresses are read in pieces, which workers do.
    at_address = len(ready.files) < len(ready.words)
    if chosen is not None and ready.is_copied:
        raise InputError("an evaluation at an address is scored in one process: use no backend")
    if chosen is not None and len(ready.words) < len(ready.traces):
        raise InputError("cases of dispatches cannot be scored with a backend: leave it out")
    return {"type": "local"} if chosen is None and at_address else chosen


# Two MiB of recordings take about 0.15 s to score, and forking a process 0.01 s.
_BYTES_EACH = 2 << 20
# A container often shows more cores than it may use, and one process writes all results.
_MOST = 4


def _usual_jobs(ready: _Ready, evaluators: Specs | None, options: ScoreOptions) -> int:
    """Return how many processes the recordings keep busy: as many as there are cores, up to 4.

    It is one if results could differ (an evaluator of the user's may count across cases), and if
    several would be slower: they cannot be forked, or the recordings have to be read together.
    """
    if not all(path.is_file() or path.is_dir() for path in ready.files):
        return 1
    exclude = [*map(Path, ready.inputs.paths), *ready.exclude]
    pieces = pieces_of(ready.files, _BYTES_EACH, exclude)
    if pieces < 2 or _one_process(ready) is not None:
        return 1
    from baton.runner.backends.local import can_fork  # most recordings are short

    from .backend_workers import can_be_sent

    evaluators_used = [planned.evaluator for planned in ready.plan.every_evaluator]
    if (
        not can_fork()
        or not can_be_sent(evaluators, options)
        or any(traits_of(each).runs_user_code for each in evaluators_used)
    ):
        return 1
    return min(len(os.sched_getaffinity(0)), _MOST, pieces)


def _one_process(ready: _Ready) -> str | None:
    """Return why scoring takes one process; ``None`` if it may take several."""
    if len(ready.words) < len(ready.traces):
        return "cases of dispatches are scored in one process"
    if ready.is_copied:
        return "evaluations at addresses are scored in one process"
    if ready.plan.needs_judge:
        return "judges wait for answers, not for processors"
    dataset = ready.inputs.dataset
    # Each process reads the cases again, and a pipe (`-d <(generate)`) can be read only once.
    if any(not Path(file).is_file() for file in (dataset.files if dataset else ())):
        return "only one process can read cases from a pipe"
    return None


def _processes(jobs: int, ready: _Ready) -> dict[str, Any] | None:
    """Return the backend for ``jobs``; ``None`` for this process alone."""
    if jobs < 1:
        raise InputError(f"{option('jobs')} has to be at least 1, got {jobs}")
    if jobs == 1:
        return None
    if (why := _one_process(ready)) is not None:
        ready.note(f"{option('jobs', 1)}, because {why}")
        return None
    return {"type": "local", "workers": jobs}


def _read(ready: _Ready, problems: list[str] | None) -> Iterator[Trace]:
    """Yield the traces as recorded; they are redacted when each is matched with its case.

    Without ``problems``, the errors of files are raised at the end. Otherwise they are added to
    ``problems``; they are raised if no trace was read at all.
    """
    count = kept = 0
    errors: list[InputError] = []

    def read(paths: list[Path]) -> Iterator[Trace]:
        return iter_traces(
            paths,
            agents=ready.inputs.catalog,
            exclude=[*map(Path, ready.inputs.paths), *ready.exclude],
            on_problem=None if problems is None else errors.append,
            on_note=ready.note,
            redact=False,
        )

    paths: list[Path] = []
    for each in ready.traces:
        if isinstance(each, str):
            paths.append(Path(each))
            continue
        yield from read(paths)  # adjacent files are read together
        count, kept = count + 1, kept + 1
        yield each
        paths = []
    for trace in read(paths):
        count += 1
        if ready.keep is None or ready.keep(trace):
            kept += 1
            yield trace
    if problems is None:
        return
    if count and not kept and ready.inputs.dataset is None:
        raise none_chosen(count)
    if not count:
        raise _no_trace(ready.files, errors)
    problems += [str(problem) for error in errors for problem in error.problems]


def _no_trace(files: Sequence[Path], errors: Sequence[InputError]) -> InputError:
    broken = [problem for error in errors for problem in error.problems]
    problems = unreadable(broken, files, "dataset", SWAPPED.format("dataset", "recording"))
    return InputError(problems or f"no trace in {', '.join(map(str, files))}")

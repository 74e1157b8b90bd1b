"""Scoring recorded traces: in memory, into an evaluation folder, here or by workers."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from baton.config import load_config
from baton.config.evaluators import left_unchecked
from baton.config.judge import JudgeFlags
from baton.config.load import chosen_backend
from baton.config.trust import Trust, trust_of
from baton.formats.evaluation_folder import BODIES, Header, is_evaluation, read_header
from baton.model import Case, Dataset, InputError, Trace
from baton.model.redact import ON, RedactLike, redaction_of
from baton.readers import iter_traces
from baton.readers.shards import BYTES, Shard, is_address, iter_shards
from baton.runner.plan import Plan, Specs
from baton.runner.recorded import score_in_memory, score_to_folder

from .evaluation import Evaluation
from .file_kinds import given_as
from .prepare import (
    SWAPPED,
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
from .report import Written, check_outputs

if TYPE_CHECKING:
    from .estimate import JudgingEstimate


def score(
    traces: Trace | Iterable[Trace | PathLike] | PathLike,
    dataset: Dataset | Sequence[Case] | PathLike | None = None,
    evaluators: Specs | None = None,
    *,
    pass_rule: Rule = "all",
    prices: Prices | None = None,
    agent_names: Mapping[str, str] | None = None,
    judge: JudgeLike | None = None,
    gate: GateLike = (),
    name: str | None = None,
    trust: PathLike | Iterable[PathLike] = (),
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
            what they state, and without a dataset what is proven of dispatches from the record.
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
    plan = prepare(
        cases,
        make=plan_maker(pass_rule, prices, agent_names),
        evaluators=evaluators,
        judge=judge,
        gate=gate,
        redaction=redaction_of(redact),
        trust=trust_of(trust),
    )
    return score_planned(for_this(plan, cases), traces, cases, dataset_paths(dataset), name)


def score_planned(
    plan: Plan,
    traces: Trace | Iterable[Trace | PathLike] | PathLike,
    cases: Dataset | None = None,
    paths: Sequence[str] = (),
    name: str | None = None,
) -> Evaluation:
    """Score recorded traces by a plan that is made already; ``paths`` are the files of the cases.

    Raises:
        InputError: a file with faults, or an option that a case may not override.
    """
    label = name or (cases.name if cases else "score")
    files: list[str | None] = []
    evaluation = score_in_memory(plan, _as_traces(traces, files), cases, label)
    if cases is not None:
        evaluation.notices += left_unchecked(plan, cases)
    named = [file for file in files if file is not None]
    # A folder points at recordings only where all can be read again in the same places: traces
    # that a program made are kept in it, and so are those of cases that a program made.
    from_files = len(named) == len(files) and (cases is None or bool(paths))
    about = folder_header(
        plan,
        Inputs(dataset=cases, paths=list(paths)),
        git=False,
        traces=named if from_files else [],
        definitions=None,
        repeats=max((_repeats(Path(file)) for file in named), default=1)
        if cases is not None
        else 1,
    )
    return Evaluation.of(evaluation, about, keep_traces=not from_files)


def _as_traces(
    traces: Trace | Iterable[Trace | PathLike] | PathLike, files: list[str | None]
) -> Iterator[Trace]:
    """Yield traces; ``files`` takes their path, or ``None`` for a trace that is no file."""
    if isinstance(traces, str | os.PathLike | Trace):
        traces = [traces]
    if not isinstance(traces, Iterable):
        raise InputError(f"traces are Traces or paths, not {type(traces).__name__}")
    for each in traces:
        files.append(None if isinstance(each, Trace) else str(each))
        if isinstance(each, Trace):
            yield each
        elif isinstance(each, str | os.PathLike):
            yield from iter_traces(each, redact=False)  # scoring does it
        else:
            raise InputError(f"a trace is a Trace or a path, not {type(each).__name__}")


class ScoreRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Recorded traces to score into a folder, and how.

    What is named here goes before the config. ``traces`` are files, folders, globs and addresses;
    ``dataset`` and ``agents`` files of cases and of agent definitions; ``out`` is where
    evaluations are stored. ``reports`` are files that will be written afterwards. ``redact``
    of ``None`` leaves it to the config.
    """

    traces: Sequence[str]
    trust: Trust
    dataset: Sequence[str] = ()
    evaluators: Sequence[str] = ()
    config: Path | None = None
    agents: Path | None = None
    out: Path
    name: str | None = None
    judge: JudgeFlags = JudgeFlags()
    backend: str | None = None
    workers: int | None = None
    jobs: int = 1
    reports: Sequence[Path] = ()
    redact: bool | None = None
    redact_kinds: Sequence[str] = ()


def score_files(request: ScoreRequest, note: Note) -> Written:
    """Score recorded traces into a new folder, here or by the workers of a backend.

    Raises:
        InputError: an option, a file or the config has faults, or no trace was read; no folder is
            left behind then.
    """
    ready = _prepare(request, note)
    plan, inputs, files = ready.plan, ready.inputs, ready.files
    config = inputs.config
    given = (config.name if config else None) or (inputs.dataset.name if inputs.dataset else None)
    problems: list[str] = []
    how: dict[str, Any] = {
        "root": request.out,
        "name": request.name or given or Path(ready.words[0]).name,
        "header": folder_header(
            plan, inputs, traces=list(ready.words), definitions=inputs.definitions
        ),
        "input_problems": problems,
        "repeats": max(map(_repeats, files), default=1) if inputs.dataset else 1,
    }
    cases = inputs.dataset.files if inputs.dataset else ()
    check_outputs(config, request.reports, [*files, *cases, inputs.definitions])
    workers = ready.backend or _processes(request.jobs, plan, inputs, note)
    if workers is None:
        traces = _read(files, inputs, problems, note)
        folder: Path | None = score_to_folder(plan, traces, inputs.dataset, **how)
    else:
        from baton.runner.backends.distribute import score_on

        from .worker import make_workers, recipe_of

        recipe = recipe_of(
            inputs,
            plan,
            request.judge,
            evaluators=list(request.evaluators),
            agents=request.agents,
            recorded=True,
            trusted=request.trust.allowed,
        )
        shards = _shards(ready.words, inputs.paths, problems)
        folder = score_on(
            make_workers(workers, config), recipe, plan, shards, inputs.dataset, on_note=note, **how
        )
    if folder is None:
        raise _no_trace(files, [InputError(problem) for problem in problems])
    definitions = None if inputs.definitions is None else Path(inputs.definitions)
    return Written(folder, config, traces=files, agents=definitions)


def estimate_scoring(request: ScoreRequest, note: Note) -> JudgingEstimate | None:
    """Work out what judging would take, without asking anybody; ``None`` where no judge is needed.

    No code of the user's own is imported. ``request.judge`` has to be a rehearsal.

    Raises:
        InputError: as for :func:`score_files`.
    """
    from .estimate import estimate_recorded

    ready = _prepare(request, note)
    if ready.backend is not None:
        raise InputError("--dry-run reads the traces here: leave the backend and addresses out")
    problems: list[str] = []
    traces = _read(ready.files, ready.inputs, problems, note)
    estimate = estimate_recorded(ready.plan, traces, ready.inputs.dataset)
    for problem in problems:
        note(problem)
    return estimate


class _Ready(NamedTuple):
    """What a request comes to; ``words`` are its traces with globs expanded."""

    plan: Plan
    inputs: Inputs
    words: Sequence[str]
    files: list[Path]
    backend: dict[str, Any] | None


def _prepare(request: ScoreRequest, note: Note) -> _Ready:
    if not request.traces:
        raise InputError("name the files or folders that hold the traces")
    own_code = not request.judge.rehearsal
    config = load_config(request.config, own_code=own_code) if request.config is not None else None
    backend = chosen_backend(config.backend if config else None, request.backend, request.workers)
    words = _expanded(request.traces)
    files = [Path(word) for word in words if not is_address(word)]
    for text in config.notes if config else ():
        note(text)
    inputs = load_inputs(config, request.dataset, request.agents)
    plan = prepare(
        inputs.dataset,
        config=config,
        evaluators=request.evaluators or None,
        flags=request.judge,
        redaction=redaction_with(
            config.redaction if config else ON, request.redact, request.redact_kinds
        ),
        trust=request.trust,
        own_code=own_code,
    )
    for text in request.trust.notes:
        note(text)
    if inputs.dataset is not None:
        note_unchecked(plan, inputs.dataset, note)
    else:
        for path in files:
            if is_evaluation(path) and (used := read_header(path, Header).dataset):
                options = " ".join(f"--dataset {name}" for name in used)
                note(f"{path}: scored without cases; it was made with {options}")
    if config is not None and config.providers:
        note(f"{config.file}: `providers` are not used: recorded traces are scored")
    if backend is None and len(files) < len(words):
        backend = {"type": "local"}  # what lies at an address is read in pieces, as workers do
    if backend is not None and request.jobs != 1:
        raise InputError("--jobs cannot be used with a backend; use --workers")
    return _Ready(plan, inputs, words, files, backend)


def _expanded(traces: Sequence[str]) -> list[str]:
    """Put the files that match a glob in its place; addresses stay what they are.

    Raises:
        InputError: a glob that no file matches.
    """
    words: list[str] = []
    for word in traces:
        if is_address(word) or not any(mark in word for mark in "*?[") or Path(word).exists():
            words.append(word)
            continue
        files = sorted(glob.glob(word, recursive=True))  # noqa: PTH207 - it may be absolute
        if not files:
            raise InputError(f"no file matches {word}")
        words += files
    return words


def _repeats(path: Path) -> int:
    """Return how often an evaluation that is scored again played its cases."""
    folder = path.parent if path.name == BODIES else path
    return read_header(folder, Header).repeats if is_evaluation(folder) else 1


def _processes(jobs: int, plan: Plan, inputs: Inputs, note: Note) -> dict[str, Any] | None:
    """Return the backend that ``--jobs`` stands for; ``None`` for this process alone."""
    if jobs < 1:
        raise InputError(f"--jobs has to be at least 1, got {jobs}")
    if jobs == 1:
        return None
    if plan.needs_judge:
        note("--jobs 1, as judges are asked: they wait for answers, not for processors")
        return None
    # Each process reads the cases again, and a pipe (`-d <(generate)`) can be read only once.
    if any(not Path(file).is_file() for file in (inputs.dataset.files if inputs.dataset else ())):
        note("--jobs 1, as the cases come from a pipe, which only one process can read")
        return None
    return {"type": "local", "workers": jobs}


def _shards(words: Sequence[str], dataset: Sequence[str], problems: list[str]) -> Iterator[Shard]:
    def broken(error: InputError) -> None:
        problems.extend(str(problem) for problem in error.problems)

    exclude = [Path(path) for path in dataset]
    return iter_shards(words, exclude=exclude, size=BYTES, on_problem=broken)


def _read(
    files: Sequence[Path], inputs: Inputs, problems: list[str], note: Note
) -> Iterator[Trace]:
    """Read traces; a broken file is named and the others go on, but reading none is an error."""
    count = 0
    errors: list[InputError] = []
    for trace in iter_traces(
        files,
        agents=inputs.catalog,
        exclude=[Path(path) for path in inputs.paths],
        on_problem=errors.append,
        on_note=note,
        redact=False,  # scoring does it, after each trace has met its case
    ):
        count += 1
        yield trace
    if not count:
        raise _no_trace(files, errors)
    problems += [str(problem) for error in errors for problem in error.problems]


def _no_trace(files: Sequence[Path], errors: Sequence[InputError]) -> InputError:
    swapped = given_as(files, "dataset", SWAPPED.format("dataset", "recording"))
    broken = [problem for error in errors for problem in error.problems]
    return InputError(swapped or broken or f"no trace in {', '.join(map(str, files))}")

"""Evaluations whose work is done by a backend; their folders are those of a local run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from baton.formats.explain import checked
from baton.model import CaseResult, Dataset, InputError, Problem, Provider
from baton.plugins import backend_entry, resolve
from baton.plugins.user_code import load_function
from baton.readers.shards import Shard
from baton.runner.collect import FolderResults
from baton.runner.evaluate import OnResult, notices_of
from baton.runner.evaluate import finished as already
from baton.runner.live import slots
from baton.runner.plan import Plan, RunOptions, check_overrides
from baton.runner.player import check_sessions
from baton.runner.recorded import error_result, settled
from baton.runner.watch import Slot
from baton.store import EvaluationWriter, Kept

from .protocol import Backend, Job, Outcome, Play, Recipe

RETRIES = 3
"""How often a job is handed out again after its worker was lost."""
AHEAD = 8
"""How many times its room a backend may be ahead of the oldest job that is not done."""

_OUTCOMES = msgspec.json.Decoder(Outcome)


class Finished(NamedTuple):
    """A job that is done, or (``lost`` says how) given up; exactly one of both."""

    number: int
    job: Job
    outcome: Outcome | None
    lost: str


class _Out(NamedTuple):
    job: Job
    losses: int = 0


def finished(backend: Backend, jobs: Iterable[Job]) -> Iterator[Finished]:
    """Yield each job once, in the order they come to an end.

    Jobs are made when there is room for them. One whose worker is lost is handed out again; an
    outcome that comes a second time is dropped.

    Raises:
        InputError: a worker cannot work: it lacks files, or has another version of Baton.
    """
    out: dict[int, _Out] = {}
    source = enumerate(jobs)
    started = 0
    while True:
        oldest = min(out, default=started)
        free = min(backend.room - len(out), oldest + AHEAD * backend.room - started)
        for number, job in itertools.islice(source, max(free, 0)):
            started = number + 1
            out[number] = _Out(job)
            backend.submit(number, msgspec.json.encode(job))
        if not out:
            return
        done = backend.take()
        if done.number not in out:
            continue
        job, losses = out[done.number]
        if done.outcome is None and losses < RETRIES:
            out[done.number] = _Out(job, losses + 1)
            backend.submit(done.number, msgspec.json.encode(job))
            continue
        del out[done.number]
        if done.outcome is None:
            lost = f"its worker was lost {RETRIES + 1} times: {done.lost}"
            yield Finished(done.number, job, None, lost)
        else:
            yield Finished(done.number, job, _checked(done.outcome), "")


def in_order(done: Iterable[Finished]) -> Iterator[Finished]:
    """Yield finished jobs by number; those that come early wait, bounded by ``AHEAD``."""
    early: dict[int, Finished] = {}
    expected = 0
    for each in done:
        early[each.number] = each
        while expected in early:
            yield early.pop(expected)
            expected += 1


def _checked(text: bytes) -> Outcome:
    outcome = _OUTCOMES.decode(text)
    if outcome.fault is not None:
        raise InputError(f"a worker cannot work: {outcome.fault}")
    return outcome


Say = Callable[[str], None]


def evaluate_on(
    backend: Backend,
    recipe: Recipe,
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
    variant: int = 0,
) -> Path:
    """Let workers play and score a dataset, write each result as it comes; return the folder.

    ``provider`` is asked what it can do, and is not called here. A case whose worker was lost
    again and again is an error. What is there when it is interrupted is complete and says so.
    """
    check_overrides(plan, dataset)
    check_sessions(provider, dataset)
    if dataset.first_with("restart") is not None:
        raise InputError("some cases restart the agents' server: play them without a backend")
    if options.fail_fast or options.max_agent_cost is not None:
        raise InputError("--fail-fast and --max-agent-cost do not go with a backend")
    planned = len(dataset) * options.repeat
    done = already(kept)
    jobs = (
        Job(recipe=recipe, play=_play(slot, dataset, variant))
        for slot in slots(dataset, options)
        if slot not in done
    )
    with backend:
        writer = EvaluationWriter(
            root,
            name,
            header={**header, "planned": planned, "notices": notices_of(provider)},
            keep_traces=True,
            repeats=options.repeat,
            kept=kept,
        )
        on_start(writer.folder)
        with FolderResults(plan, writer, planned=planned, kept=kept) as results:
            for each in finished(backend, jobs):
                for result in _played(each, dataset):
                    results.add(result)
                    on_result(result)
    return writer.folder


def _play(slot: Slot, dataset: Dataset, variant: int) -> Play:
    case = dataset.ids[slot.position]
    return Play(position=slot.position, case=case, repeat=slot.repeat, variant=variant)


def _played(done: Finished, dataset: Dataset) -> list[CaseResult]:
    play = done.job.play
    if done.outcome is not None or play is None:
        return done.outcome.results if done.outcome is not None else []
    case = dataset.cases[play.position]
    result = error_result(case.id, play.position, done.lost, None, case)
    result.repeat = play.repeat
    return [result]


def score_on(
    backend: Backend,
    recipe: Recipe,
    plan: Plan,
    shards: Iterable[Shard],
    dataset: Dataset | None,
    *,
    root: Path,
    name: str,
    header: dict[str, Any],
    input_problems: list[str],
    on_note: Say,
    repeats: int = 1,
) -> Path:
    """Let workers read and score traces, and write the results in the traces' order.

    ``input_problems`` also take those of whoever yields the shards. Traces whose worker was lost
    again and again are one of them.

    Raises:
        InputError: no trace was read; no folder is left behind then.
    """
    if dataset is not None:
        check_overrides(plan, dataset)
    problems: list[str] = []
    with backend:
        jobs = (Job(recipe=recipe, shard=shard) for shard in shards)
        read = _results(in_order(finished(backend, jobs)), problems, on_note)
        rest = iter(read)
        first = list(itertools.islice(rest, 1))
        if not first:
            raise InputError([Problem(message=each) for each in problems] or "there is no trace")
        writer = EvaluationWriter(root, name, header=header, repeats=repeats)
        with FolderResults(plan, writer, input_problems) as results:
            for result in settled(itertools.chain(first, rest), dataset):
                results.add(result)
            input_problems += problems
    return writer.folder


def _results(done: Iterable[Finished], problems: list[str], on_note: Say) -> Iterator[CaseResult]:
    lines: dict[str, int] = {}
    for each in done:
        shard, outcome = each.job.shard, each.outcome
        if shard is None:
            continue
        if outcome is None:
            problems.append(_given_up(shard, each.lost))
            continue
        before = lines.get(shard.files[0], 0)
        for problem in outcome.problems:
            line = None if problem.line is None else problem.line + before
            problems.append(str(msgspec.structs.replace(problem, line=line)))
        if outcome.lines:
            lines[shard.files[0]] = before + outcome.lines
        for text in outcome.notes:
            on_note(text)
        yield from outcome.results


def _given_up(shard: Shard, lost: str) -> str:
    files = shard.files[0] if len(shard.files) == 1 else f"{shard.files[0]} to {shard.files[-1]}"
    place = "" if shard.start is None else f", bytes {shard.start} to {shard.end}"
    return f"{files}{place}: these traces were not scored: {lost}"


def backend_spec(told: str | Mapping[str, Any]) -> dict[str, Any]:
    """Check ``ray`` or ``{"type": "ray", ...}``; what it names is not started.

    Raises:
        InputError: an unknown backend, with the nearest name, or wrong options of one of ours.
    """
    spec = {"type": told} if isinstance(told, str) else dict(told)
    kind = spec.get("type")
    if not isinstance(kind, str):
        raise InputError(Problem(path="type", message="is missing: which backend is it?"))
    if ":" not in kind:
        try:
            entry = backend_entry(kind)
        except InputError as error:
            raise InputError(Problem(path="type", message=str(error))) from None
        checked(spec, resolve(entry).options_type)
    return spec


def make_backend(spec: Mapping[str, Any], folder: Path) -> Backend:
    """Build a backend; one of the user's own, ``module:name``, is looked for in ``folder``.

    It is called with all options but the type, and returns a :class:`Backend`.

    Raises:
        InputError: it cannot be built.
    """
    kind = spec["type"]
    if ":" not in kind:
        made: Backend = resolve(backend_entry(kind))(spec)
        return made
    function = load_function(kind, folder)
    own = {name: value for name, value in spec.items() if name != "type"}
    try:
        backend = function(**own)
    except TypeError as error:
        raise InputError(Problem(path="backend", message=f"`{kind}`: {error}")) from None
    lacks = [name for name in ("submit", "take", "room") if not hasattr(backend, name)]
    if lacks:
        message = f"`{kind}` makes no backend: it has no `{'`, no `'.join(lacks)}`"
        raise InputError(Problem(path="backend", message=message))
    return backend  # type: ignore[no-any-return]

"""Resumes an evaluation, or plays only its failures: decides what its folder may determine.

An evaluation folder is data that anyone may have written. Its cases, filters and judges are used
again. Its provider, its code and files elsewhere are not: the folder only shows what to name.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from baton.config import Config
from baton.config.judge_config import JudgeFlags, judge_flags
from baton.formats.evaluation_header import HEADER, Basis, Header, Request, read_header
from baton.model import ChangedText, Dataset, InputError, Problem
from baton.model.mask_known_secrets import masked
from baton.model.option_spelling import option
from baton.plugins import names_code
from baton.runner.plan import Plan
from baton.store import Kept, keep, read_evaluation

from .agent_under_test import DEFAULT_CONFIG
from .prepare import Note

_SAME_CASES = "its results belong to other cases or repeats: start a new evaluation"


class Start(NamedTuple):
    """What to evaluate, and the folder that is resumed, if there is one.

    ``open_cases`` returns, by id, whether a case is played; others passed before.
    ``criteria_found``: the folder named the criteria, not the user.
    """

    request: Request
    judge: JudgeFlags
    folder: Path | None = None
    before: Header | None = None
    basis: Basis | None = None
    open_cases: Callable[[str], bool] | None = None
    criteria_found: bool = False


def last_evaluation(stored: Path, *, played: bool) -> Path:
    """Return the newest folder below ``stored`` that `baton eval` made, or else `baton score`.

    Raises:
        InputError: there is none, or one that is newer cannot be read.
    """
    verb = "eval" if played else "score"
    folders = sorted((path.parent for path in stored.glob(f"*/{HEADER}")), reverse=True)
    # Names start with the UTC second; headers have the order within a second.
    for _, same_second in itertools.groupby(folders, lambda folder: folder.name.partition("-")[0]):
        headers = {folder: read_header(folder) for folder in same_second}
        made = [
            folder for folder, header in headers.items() if (header.basis is not None) == played
        ]
        if made:
            return max(made, key=lambda each: str(headers[each].timings.get("started", "")))
    raise InputError(Problem(file=str(stored), message=f"no evaluation of `baton {verb}` here yet"))


def begin(
    request: Request,
    judge: JudgeFlags,
    *,
    resume: Path | None = None,
    only_failed: Path | None = None,
    repeat: int | None = None,
    force: bool = False,
    note: Note,
) -> Start:
    """Combine a request with that of an earlier evaluation, if one is named.

    Raises:
        InputError: options that contradict each other, or no such evaluation.
    """
    if resume is not None and only_failed is not None:
        both = f"{option('resume')} and {option('only_failed')}"
        raise InputError(f"{both} exclude one another: give one")
    folder = resume or only_failed
    if folder is None:
        if force:
            raise InputError(f"{option('force', True)} needs {option('resume')}")
        return Start(request, judge)
    before = read_header(folder)
    if before.request is None or before.basis is None:
        message = (
            "does not say how it was made: recorded traces are scored again by `baton score`, and "
            "older folders cannot be resumed"
        )
        raise InputError(Problem(file=str(folder), message=message))
    judge = _judge_with(before.request.judge, judge, folder)
    if resume is not None:
        if repeat is not None:
            raise _settled()
        merged, criteria_found = _merged(request, before.request, folder, "--resume", note)
        return Start(merged, judge, folder, before, before.basis, criteria_found=criteria_found)
    open_cases = open_cases_of(folder)
    only_agent = msgspec.structs.replace(request, target=[]).is_empty
    if request.is_empty or (only_agent and _same_agent(request, before.request)):
        merged, criteria_found = _merged(request, before.request, folder, "--only-failed", note)
        return Start(merged, judge, open_cases=open_cases, criteria_found=criteria_found)
    return Start(request, judge, open_cases=open_cases)


def _settled() -> InputError:
    return InputError(
        f"{option('resume')} takes config, dataset, cases, evaluators and repeats from the folder: "
        "leave them out, or start a new evaluation"
    )


class _JudgeWords(msgspec.Struct, omit_defaults=True):
    """The options of the judge as a folder keeps them: by their names on the command line."""

    judge: str | None = None
    no_cache: bool = False
    cache_only: bool = False
    max_cost: float | None = None
    max_judge_calls: int | None = None


def judge_words(flags: JudgeFlags) -> dict[str, Any]:
    """Return the given options of the judge, as stored in a folder."""
    words = _JudgeWords(
        judge=flags.model,
        no_cache=not flags.cached,
        cache_only=flags.cache_only,
        max_cost=flags.max_cost,
        max_judge_calls=flags.max_calls,
    )
    plain: dict[str, Any] = msgspec.to_builtins(words)
    return plain


def _judge_with(kept: dict[str, Any], flags: JudgeFlags, folder: Path) -> JudgeFlags:
    """Override the options of the folder by the given ones; raises InputError for conflicts."""
    try:
        before = msgspec.convert(kept, _JudgeWords)
    except msgspec.ValidationError as error:
        problem = Problem(file=str(folder), path="request.judge", message=str(error))
        raise InputError(problem) from None
    merged = {**msgspec.to_builtins(before), **judge_words(flags)}
    return judge_flags(**merged, rehearsal=flags.rehearsal)


def scored_before(folder: Path, *, dataset: bool, evaluators: bool, config: bool) -> Request:
    """Return the cases and evaluators that the folder of scored recordings names.

    ``dataset``, ``evaluators`` and ``config`` say which of these are given now, and so are not
    taken from the folder.

    Raises:
        InputError: it names a config, code, or files outside of the current folder. The user has
            to name these again, as a folder must not choose what is run.
    """
    header = read_header(folder)
    before = header.request or Request()
    words: list[str] = []
    if before.config is not None and not config:
        words += ["--config", before.config]
    if any(map(names_code, before.evaluators)) and not (evaluators or words):
        words += [word for name in before.evaluators for word in ("--evaluator", name)]
    if any(map(_is_elsewhere, header.dataset)) and not dataset:
        words += [word for path in header.dataset for word in ("--dataset", path)]
    if words:
        command = shlex.join(["baton", "score", "--lf", *words])
        message = f"a folder cannot choose what is run: name it again: {command}"
        raise InputError(Problem(file=str(folder), message=message))
    # With a config, its own dataset is used again, unless another one is named.
    return Request(dataset=header.dataset, evaluators=before.evaluators)


def open_cases_of(folder: Path) -> Callable[[str], bool]:
    """Return which cases did not pass; if some were not played, these count as well."""
    stored = read_evaluation(folder)
    passed: dict[str, int] = {}
    for row in stored.rows():
        passed[row.case_id] = passed.get(row.case_id, 0) + (row.status == "passed")
    repeats, planned = stored.header.repeats, stored.header.planned
    done = {case_id for case_id, times in passed.items() if times >= repeats}
    if planned is None or len(stored) < planned:
        return lambda case_id: case_id not in done
    return lambda case_id: case_id in passed and case_id not in done


def _merged(
    request: Request, earlier: Request, folder: Path, option: str, note: Note
) -> tuple[Request, bool]:
    """Return the request of a folder, with provider, code and paths as given now.

    The second value says whether the folder named the criteria.

    Raises:
        InputError: something has to be named again, with the command to use; or an option is given
            that the folder determines.
    """
    needed = _needed(earlier)
    stated = {name: getattr(request, name) for name in _PLACES if getattr(request, name)}
    # Criteria may always be named: that way the user trusts the code in them.
    free = [name for name in stated if name in needed or name == "criteria"]
    rest = {"target": [], "judge": {}, **{name: _NOTHING[name] for name in free}}
    if not msgspec.structs.replace(request, **rest).is_empty:
        raise _settled()
    missing = [name for name in needed if name not in stated]
    if "datasets" in missing and len(request.target) > 1:
        missing.remove("datasets")
    target = list(request.target)
    more: dict[str, object] = {}
    if target:
        target += [] if target[1:] else earlier.target[1:]
    elif not earlier.target or _is_same_file(earlier.target[0], str(DEFAULT_CONFIG)):
        # The config is found and trusted as usual: the folder does not name it.
        more = {"dataset": [*earlier.target[1:], *earlier.dataset]}
    else:
        missing.insert(0, "agent")
    if missing:
        message = _name_again(earlier, missing, option, folder)
        raise InputError(Problem(file=str(folder), message=message))
    if request.target and earlier.target and not _same_agent(request, earlier):
        then, now = earlier.target[0], masked(request.target[0])
        note(f"changed since, and resumed anyway: `{then}` played it, now `{now}`")
    more |= stated
    criteria_found = earlier.criteria is not None and "criteria" not in stated
    return msgspec.structs.replace(earlier, target=target, **more), criteria_found


_PLACES = ("config", "dataset", "evaluators", "criteria", "agents")
_NOTHING: dict[str, object] = {
    "config": None,
    "dataset": [],
    "evaluators": [],
    "criteria": None,
    "agents": None,
}


def _same_agent(request: Request, earlier: Request) -> bool:
    """Return whether the given config or agent is the one of the folder."""
    if not request.target or not earlier.target:
        return request.target == earlier.target
    now, then = request.target[0], earlier.target[0]
    return masked(now) == then or _is_same_file(now, then)


def _needed(earlier: Request) -> list[str]:
    """Return the parts of a request that name code, or files outside the current folder."""
    parts = []
    if earlier.config is not None:
        parts.append("config")
    if any(_is_elsewhere(path) for path in earlier.target[1:]):
        parts.append("datasets")
    if any(_is_elsewhere(path) for path in earlier.dataset):
        parts.append("dataset")
    if any(names_code(name) for name in earlier.evaluators):
        parts.append("evaluators")
    if earlier.criteria is not None and _is_elsewhere(earlier.criteria):
        parts.append("criteria")
    if earlier.agents is not None and _is_elsewhere(earlier.agents):
        parts.append("agents")
    return parts


def _is_same_file(one: str, other: str) -> bool:
    try:
        return Path(one).resolve() == Path(other).resolve()
    except (OSError, RuntimeError, ValueError):
        return False  # one of them is not a path


def _is_elsewhere(path: str) -> bool:
    """Return whether a path, or `FILE:case1,case2`, leads out of the current folder."""
    try:
        return not Path(path).resolve().is_relative_to(Path.cwd())
    except (OSError, RuntimeError, ValueError):
        return True  # not a path, or a loop of links


def _name_again(earlier: Request, missing: Sequence[str], option: str, folder: Path) -> str:
    if any("***" in word for word in earlier.target):
        return f"the folder does not keep secrets: name the agent with {option} again"
    words = [*earlier.target]
    for name, flag in (
        ("config", "--config"),
        ("dataset", "--dataset"),
        ("evaluators", "--evaluator"),
        ("criteria", "--config_file_path"),
        ("agents", "--agents"),
    ):
        if name in missing:
            value = getattr(earlier, name)
            values = value if isinstance(value, list) else [value]
            words += [word for each in values for word in (flag, each)]
    command = shlex.join(["baton", "eval", *words, option, str(folder)])
    return (
        "a folder cannot choose what is run or name files elsewhere: if you trust it, name them "
        f"again: {command}"
    )


def basis_of(
    config: Config | None,
    request: Request,
    plan: Plan,
    cases: Dataset,
    changes: Sequence[ChangedText] = (),
) -> Basis:
    """Hash what the results of an evaluation depend on."""
    files: list[Path] = []
    if config is not None:
        files.append(Path(config.file))
        if config.agents:
            files += _files_below(Path(config.agents))
        for path in config.rubric_paths:
            files += _files_below(path)
    for extra_file in (request.criteria, request.agents):
        if extra_file is not None:
            files += _files_below(Path(extra_file))
    return Basis(
        cases=cases.content_hash(),
        texts={each.name: each.after for each in changes},
        files={str(file): _hash(file) for file in files},
        evaluators={
            name: planned.evaluator.version for name, planned in plan.all_evaluators.items()
        },
    )


def _files_below(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return [file for file in sorted(path.rglob("*")) if file.is_file()]


def _hash(file: Path) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    except OSError:
        return "not there"


def kept_results(
    start: Start, basis: Basis, cases: Dataset, *, force: bool, note: Note
) -> Kept | None:
    """Return the kept results of a resumed folder; ``None`` for a new evaluation.

    Raises:
        InputError: something that its results depend on has changed; it lists all changes.
    """
    if start.folder is None or start.before is None or start.basis is None:
        return None
    changed = list(_changes(start.basis, basis))
    if start.basis.evaluators.keys() != basis.evaluators.keys():
        force = False
    if changed and not force:
        advice = f"; start a new evaluation, or {option('force', True)} to put both into one"
        raise InputError(
            Problem(file=str(start.folder), message=f"changed since: {what}{advice}")
            for what in changed
        )
    for what in changed:
        note(f"changed since, and resumed anyway: {what}")
    kept = keep(start.folder)
    for text in kept.lost:
        note(f"{start.folder}: {text}")
    for row in kept.rows():
        if cases.ids[row.position : row.position + 1] != [row.case_id]:
            raise InputError(Problem(file=str(start.folder), message=_SAME_CASES))
        for name in [score.evaluator for score in row.scores]:
            if name not in basis.evaluators:
                message = f"has scores of `{name}`, which is not requested: start a new evaluation"
                raise InputError(Problem(file=str(start.folder), message=message))
    return kept


def _changes(before: Basis, after: Basis) -> Iterator[str]:
    """Yield what has changed; one file may have several spellings."""
    if before.cases != after.cases:
        yield "the cases: their content has changed"
    old_files, new_files = _by_place(before.files), _by_place(after.files)
    for place in sorted({*old_files, *new_files}):
        old_hash, new_hash = old_files.get(place), new_files.get(place)
        if (old_hash and old_hash[1]) != (new_hash and new_hash[1]):
            yield f"the file {(new_hash or old_hash or (place,))[0]}"
    for name in sorted({*before.texts, *after.texts}):
        was, now = before.texts.get(name), after.texts.get(name)
        if was != now:
            yield f"the text of `{name}`: {was or 'not changed'} then, {now or 'not changed'} now"
    for name in sorted({*before.evaluators, *after.evaluators}):
        old, new = before.evaluators.get(name), after.evaluators.get(name)
        if old != new:
            yield f"the evaluator `{name}`: version {old or 'none'}, now {new or 'none'}"


def _by_place(files: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return the path as it was named and its hash, by absolute path."""
    return {os.path.abspath(file): (file, sha256) for file, sha256 in files.items()}  # noqa: PTH100


def is_complete(start: Start) -> bool:
    """Return whether a resumed evaluation is complete and has no errors."""
    before = start.before
    if start.folder is None or before is None or before.planned is None:
        return False
    if before.status not in ("passed", "failed", "error"):
        return False
    stored = read_evaluation(start.folder, partial=True)
    is_whole = len(stored) == before.planned and not stored.damage
    return is_whole and not stored.header.cases.get("error")

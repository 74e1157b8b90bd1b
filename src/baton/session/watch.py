"""Watches the files that an evaluation depends on, and finds the cases that a change affects."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from baton.config import Config
from baton.config.trust import NOBODY, Trust
from baton.datasets import load_dataset
from baton.datasets.selection import choose, keep_of
from baton.formats.evaluation_header import Request
from baton.model import InputError, Problem, Terminated, counted

from .agent_under_test import find_target
from .evaluate import with_config
from .prepare import Note, log_note
from .server_source import is_server

Play = Callable[[Sequence[str], Sequence[str]], int]
"""Takes the agent, as the user named it, and datasets; plays them and returns the exit code."""

_CODE = {".j2", ".jinja", ".jinja2", ".md", ".py", ".toml", ".yaml", ".yml"}
_CASES = {".json", ".jsonl", ".yaml", ".yml"}
_CRITERIA = "test_config.json"
_NOT_OURS = {"__pycache__", "node_modules", "venv"}
# Changed cases are named one by one. After a change of a whole file, all cases are played anyway.
_MOST_CHOSEN = 50

Seen = Mapping[Path, tuple[int, int]]
"""The modification time (nanoseconds) and size of each file."""


class Watched(NamedTuple):
    """Files and folders of cases, and other inputs of an evaluation: config, code, prompts."""

    cases: Sequence[Path]
    rest: Sequence[Path]
    written: frozenset[Path] = frozenset()

    def files(self) -> dict[Path, tuple[int, int]]:
        """Return every file."""
        files = [file for path in self.cases for file in _files(path, _CASES)]
        # Agents may write data into the folder of their code: only code and prompts count there.
        files += [file for path in self.rest for file in _files(path, _CODE)]
        status_of = {}
        for file in files:
            try:
                status = file.stat()
            except OSError:
                continue
            if file not in self.written:
                status_of[file] = status.st_mtime_ns, status.st_size
        return status_of

    def is_case(self, file: Path) -> bool:
        """Return whether a file contains only cases."""
        if file.suffix not in _CASES or file.name == _CRITERIA:
            return False
        return any(file == path or path in file.parents for path in self.cases)


def watched(
    config: Config | None,
    provider: Mapping[str, Any] | None,
    datasets: Sequence[str],
    criteria: str | None = None,
) -> Watched:
    """Return the files that an evaluation of a config, an agent, or both depends on."""
    cases = [_path(name) for name in datasets]
    rest = [*_code(provider or {}, Path())]
    rest += [] if criteria is None else [Path(criteria).resolve()]
    if config is None:
        return Watched(cases, rest)
    rest += [Path(config.file), *config.rubric_paths]
    rest += [Path(config.agents)] if config.agents else []
    for options in config.providers if provider is None else ():
        stated = {name: getattr(options, name, None) for name in ("path", "target")}
        rest += _code(stated, config.folder)
    written = {Path(each.output_path).resolve() for each in config.reporters if each.output_path}
    return Watched(cases, [path.resolve() for path in rest], frozenset(written))


def changed(before: Seen, after: Seen) -> list[Path]:
    """Return the files that are new, deleted or changed."""
    return sorted(
        file for file in before.keys() | after.keys() if before.get(file) != after.get(file)
    )


def case_hashes(
    datasets: Sequence[str], keyword: str | None = None
) -> dict[str, tuple[str, str]] | None:
    """Return the file and content hash of every case that ``keyword`` matches, by id.

    ``None`` if the cases cannot be read or none matches.
    """
    try:
        dataset = choose(load_dataset(list(datasets)), keyword=keyword)
    except InputError:
        return None
    return {
        case.id: (case.where.file if case.where else "", case.content_hash()) for case in dataset
    }


def affected(
    before: Mapping[str, tuple[str, str]] | None, after: Mapping[str, tuple[str, str]] | None
) -> list[str] | None:
    """Return the changed cases to play, as datasets; ``None`` to play everything."""
    if before is None or after is None:
        return None
    new = [name for name, entry in after.items() if before.get(name) != entry]
    if len(new) > _MOST_CHOSEN or any("," in name or ":" in name for name in new):
        return None
    by_file: dict[str, list[str]] = {}
    for name in new:
        by_file.setdefault(after[name][0], []).append(name)
    if "" in by_file or len({file for file, _ in after.values()}) > 1:
        return list(by_file) if "" not in by_file else None
    return [f"{file}:{','.join(names)}" for file, names in by_file.items()]


def _path(name: str) -> Path:
    """Return the file of ``FILE`` or ``FILE:case1,case2``."""
    head, colon, _ = name.rpartition(":")
    path = Path(head) if colon and not Path(name).exists() else Path(name)
    return path.resolve()


def _code(provider: Mapping[str, Any], folder: Path) -> Iterator[Path]:
    """Yield the folder of an agent's code: that of ADK agents, or of a function's module."""
    if provider.get("path"):
        yield (folder / str(provider["path"])).resolve()
    elif provider.get("target"):
        file = folder / str(provider["target"]).partition(":")[0]
        yield (file.parent if file.suffix == ".py" else folder).resolve()


def _files(path: Path, suffixes: Collection[str]) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for each in sorted(path.iterdir()):
        if each.name.startswith(".") or each.name in _NOT_OURS:
            continue
        if each.is_dir():
            yield from _files(each, suffixes)
        elif each.suffix in suffixes:
            yield each


_PAUSE = 0.3
"""Seconds between two checks; an editor may write a file in several steps."""


def watch(
    target: Sequence[str],
    dataset: Sequence[str],
    play: Play,
    *,
    config: str | None = None,
    keyword: str | None = None,
    trust: Trust = NOBODY,
    note: Note = log_note,
) -> int:
    """Evaluate, and after each change of a file evaluate what it affects, until interrupted.

    A changed case is played alone; a change of config, agents or prompts plays all cases.

    Args:
        target: a config or an agent, then datasets, as for `baton eval`.
        dataset: more datasets; given datasets override those of the config.
        play: plays and scores. It has to do so in another process, because this one would keep
            the old version of imported code.
        config: a config or criteria of ADK, as for `baton eval --config`.
        keyword: watch only cases that this expression matches.
        trust: whether a config that is found may name code.
        note: called with each change; by default the logger `baton` warns.

    Returns:
        The exit code of the last evaluation.

    Raises:
        InputError: no such config, agent or dataset; or the expression is malformed.
    """
    keep_of(keyword, None)  # reports a malformed expression before anything is played
    for word in (*target, *dataset):
        if is_server(word):
            message = (
                "is a server with conversations, but only cases can be played: `baton draft` "
                "makes cases from conversations"
            )
            raise InputError(Problem(file=word, message=message))
    request = with_config(Request(config=config, target=list(target)))
    resolved = find_target(request.target, trust, config=request.config)
    datasets = [*resolved.datasets, *dataset] or (
        resolved.config.dataset if resolved.config else []
    )
    if not datasets:
        raise InputError("name a dataset: baton watch AGENT DATASET, or `dataset:` in the config")
    files = watched(resolved.config, resolved.provider, datasets, request.criteria)
    seen, cases = files.files(), case_hashes(datasets, keyword)
    agent = target[: max(0, len(target) - len(resolved.datasets))]
    code = play(agent, datasets)
    note(f"watching {counted(len(seen), 'file')}; Ctrl-C ends it")
    try:
        while True:
            time.sleep(_PAUSE)
            different = changed(seen, files.files())
            if not different:
                continue
            time.sleep(_PAUSE)
            seen = files.files()
            before, cases = cases, case_hashes(datasets, keyword)
            only = all(files.is_case(file) for file in different)
            chosen = affected(before, cases) if only else None
            here = Path.cwd()
            shown = (f.relative_to(here) if f.is_relative_to(here) else f for f in different[:3])
            note(f"changed: {', '.join(map(str, shown))}")
            if chosen != []:
                code = play(agent, datasets if chosen is None else chosen)
    except Terminated:
        raise
    except KeyboardInterrupt:
        return code

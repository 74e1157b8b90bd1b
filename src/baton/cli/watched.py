"""Which files an evaluation rests on, and which cases a changed one affects."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from baton.config import Config
from baton.datasets import load_dataset
from baton.model import InputError

_CODE = {".j2", ".jinja", ".jinja2", ".md", ".py", ".toml", ".yaml", ".yml"}
_CASES = {".json", ".jsonl", ".yaml", ".yml"}
_CRITERIA = "test_config.json"
_NOT_OURS = {"__pycache__", "node_modules", "venv"}
_MOST_CHOSEN = 50

Seen = Mapping[Path, tuple[int, int]]
"""Files, each with when it was changed (nanoseconds) and its size."""


class Watched(NamedTuple):
    """Files and folders of cases, and what else an evaluation rests on: config, code, prompts."""

    cases: Sequence[Path]
    rest: Sequence[Path]
    written: frozenset[Path] = frozenset()

    def files(self) -> dict[Path, tuple[int, int]]:
        """Look at every file."""
        files = [file for path in self.cases for file in _files(path, _CASES)]
        # Agents may write data where their code is: only code and prompts count there.
        files += [file for path in self.rest for file in _files(path, _CODE)]
        found = {}
        for file in files:
            try:
                status = file.stat()
            except OSError:
                continue
            if file not in self.written:
                found[file] = status.st_mtime_ns, status.st_size
        return found

    def is_case(self, file: Path) -> bool:
        """Tell whether a file is one of cases, and of nothing else."""
        if file.suffix not in _CASES or file.name == _CRITERIA:
            return False
        return any(file == path or path in file.parents for path in self.cases)


def watched(
    config: Config | None, provider: Mapping[str, Any] | None, datasets: Sequence[str]
) -> Watched:
    """Return what an evaluation of a config or an agent rests on."""
    cases = [_path(name) for name in datasets]
    if config is None:
        return Watched(cases, [*_code(provider or {}, Path())])
    rest = [Path(config.file), *config.rubric_paths]
    rest += [Path(config.agents)] if config.agents else []
    for options in config.providers:
        told = {name: getattr(options, name, None) for name in ("path", "target")}
        rest += _code(told, config.folder)
    written = {Path(each.output_path).resolve() for each in config.reporters if each.output_path}
    return Watched(cases, [path.resolve() for path in rest], frozenset(written))


def changed(before: Seen, after: Seen) -> list[Path]:
    """Return the files that are new, gone or different."""
    return sorted(
        file for file in before.keys() | after.keys() if before.get(file) != after.get(file)
    )


def case_hashes(datasets: Sequence[str]) -> dict[str, tuple[str, str]] | None:
    """Return file and content hash of every case, by id; ``None`` where they cannot be read."""
    try:
        found = load_dataset(list(datasets))
    except InputError:
        return None
    return {case.id: (case.where.file if case.where else "", case.content_hash()) for case in found}


def affected(
    before: Mapping[str, tuple[str, str]] | None, after: Mapping[str, tuple[str, str]] | None
) -> list[str] | None:
    """Return what to play when cases changed, as datasets; ``None`` for everything."""
    if before is None or after is None:
        return None
    new = [name for name, said in after.items() if before.get(name) != said]
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
    """Yield the folder of an agent's code: of ADK agents, or where a function stands."""
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

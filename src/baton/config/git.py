"""The commit that is checked out, read without running anything that a repository names.

A repository is data like any other: an unpacked archive may bring a `.git/config` whose
`core.fsmonitor`, filters or hooks are run by an ordinary `git status`. So the commit is read from
files, and git is asked for changes with a directory of its own in place of the repository's: it
sees the objects, the index and the working tree, and no config, hook, filter, remote or submodule.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from baton.model import GitState

_PATIENCE = 5.0
"""Seconds that git may take; a repository of a million files takes about 2."""
_SMALL = 65_536
"""Bytes of HEAD, a ref, `.git` files and configs that are read: real ones have under 10 kB."""
_PACKED = 67_108_864
"""Bytes of packed refs that are read: about 800,000 refs."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"ref: (refs/[^\x00-\x20~^:?*\[\\]+)")
_SETTING = re.compile(r"\s*([A-Za-z]+)\s*=\s*([A-Za-z0-9]+)\s*")
_KEPT = {
    "core": ("autocrlf", "eol", "filemode", "ignorecase", "symlinks", "precomposeunicode"),
    "extensions": ("objectformat",),
}
"""Settings that say how files compare with the index; each value is a word that runs nothing."""


class _Repository(NamedTuple):
    """A working tree, its git directory, and the one that it shares with other working trees."""

    tree: Path
    own: Path
    common: Path


def git_state(folder: Path) -> GitState | None:
    """Return the commit that is checked out in a folder, and whether tracked files were changed.

    ``None``: there is no repository, no commit, or none that can be read. Whether files changed
    is not known (``None``) without git, and where only a filter could tell.
    """
    try:
        repository = _repository(folder.resolve())
        commit = _head(repository) if repository is not None else None
    except (OSError, RuntimeError, ValueError):
        return None  # what cannot be read is not known, and nothing rests on it
    if repository is None or commit is None:
        return None
    return GitState(commit=commit, dirty=_is_dirty(repository, commit))


def _repository(folder: Path) -> _Repository | None:
    """Find the repository of a folder; a bare one, with no `.git`, is not looked for."""
    for tree in (folder, *folder.parents):
        own = tree / ".git"
        if own.is_file():
            # A worktree or a submodule: the file says where its directory is.
            said = _text(own)
            if not said.startswith("gitdir:"):
                return None
            own = (tree / said.removeprefix("gitdir:").strip()).resolve()
        elif not own.is_dir():
            continue
        shared = own / "commondir"
        common = (own / _text(shared).strip()).resolve() if shared.is_file() else own
        return _Repository(tree, own, common)
    return None


def _head(repository: _Repository) -> str | None:
    said = _text(repository.own / "HEAD").strip()
    if _COMMIT.fullmatch(said):
        return said
    ref = _REF.fullmatch(said)
    if ref is None or ".." in ref[1]:
        return None
    for folder in (repository.own, repository.common):
        file = folder / ref[1]
        if file.is_file():
            loose = _text(file).strip()
            return loose if _COMMIT.fullmatch(loose) else None
    packed = repository.common / "packed-refs"
    if packed.is_file():
        for line in _text(packed, _PACKED).splitlines():
            commit, _, name = line.partition(" ")
            if name == ref[1] and _COMMIT.fullmatch(commit):
                return commit
    return None


def _text(file: Path, most: int = _SMALL) -> str:
    """Read a small file; raises OSError for anything but a file, such as a pipe that never ends."""
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("not a file")
        return opened.read(most).decode("utf-8", "replace")


def _is_dirty(repository: _Repository, commit: str) -> bool | None:
    """Ask git whether tracked files differ from the commit; ``None`` where that is not known."""
    import tempfile

    program = shutil.which("git")
    index = repository.own / "index"
    objects = repository.common / "objects"
    # A name that is not absolute was found by a `.` in PATH: it may come with the repository.
    if program is None or not Path(program).is_absolute():
        return None
    if not index.is_file() or not objects.is_dir():
        return None
    with tempfile.TemporaryDirectory(prefix="baton-git-") as made:
        own = Path(made)
        (own / "refs").mkdir()
        (own / "objects").mkdir()
        (own / "HEAD").write_text(f"{commit}\n", encoding="ascii")
        kept: dict[tuple[str, str], str] = {}
        for file in (repository.common / "config", repository.own / "config.worktree"):
            if file.is_file():
                kept |= {(section, name): value for section, name, value in _settings(_text(file))}
        version = 1 if any(section == "extensions" for section, _ in kept) else 0
        lines = ["[core]", f"repositoryformatversion = {version}", "bare = false"]
        lines += [f"{name} = {value}" for (part, name), value in kept.items() if part == "core"]
        lines += ["[extensions]"]
        lines += [
            f"{name} = {value}" for (part, name), value in kept.items() if part == "extensions"
        ]
        (own / "config").write_text("\n".join([*lines, ""]), encoding="ascii")
        environment = {
            **{name: told for name, told in os.environ.items() if not name.startswith("GIT_")},
            "GIT_DIR": made,
            "GIT_WORK_TREE": str(repository.tree),
            "GIT_INDEX_FILE": str(index),
            "GIT_OBJECT_DIRECTORY": str(objects),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "XDG_CONFIG_HOME": made,
        }
        words = ("status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all")
        told = _git(program, environment, repository.tree, *words, "--no-renames")
        if told is None:
            return None
        changed = [entry for entry in told.split("\0") if entry]
        if not changed:
            return False
        # Without its filter a file of git-lfs looks changed. Another file tells for sure; so does
        # a change that is in the index already.
        if any(entry[0] != " " for entry in changed):
            return True
        paths = [entry[3:] for entry in changed]
        told = _git(
            program,
            environment,
            repository.tree,
            "check-attr",
            "-z",
            "--stdin",
            "filter",
            asked="\0".join(paths),
        )
        if told is None:
            return None
        filters = told.split("\0")[2::3]
        return True if any(each in ("unspecified", "unset") for each in filters) else None


def _settings(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield section, name and value of the settings that are kept."""
    section = ""
    for line in text.splitlines():
        head = line.strip().lower()
        if head.startswith("["):
            section = head.strip("[]")
            continue
        setting = _SETTING.fullmatch(line)
        if setting is not None and setting[1].lower() in _KEPT.get(section, ()):
            yield section, setting[1].lower(), setting[2]


def _git(
    program: str, environment: Mapping[str, str], tree: Path, *words: str, asked: str = ""
) -> str | None:
    import subprocess

    command = [program, "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", *words]
    try:
        done = subprocess.run(  # noqa: S603 - words of our own
            command,
            cwd=tree,
            env=environment,
            input=asked,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None

"""The commit that is checked out, and new branches, without running code from a repository.

A repository is data like any other: an unpacked archive may contain a `.git/config` whose
`core.fsmonitor`, filters or hooks are run by an ordinary `git status`. So the commit is read from
files, and git looks for changes through a temporary git directory: it sees the repository's
objects, index and working tree, and no config, hook, filter, remote or submodule.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from baton.model import GitState, InputError

_PATIENCE = 5.0
"""Seconds that git may take; a repository of a million files takes about 2."""
_LONG_PATIENCE = 60.0
"""Seconds for a step of making a branch: reading a tree of a million files takes 3."""
_RUNS_NOTHING = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_SMALL = 65_536
"""The most bytes of HEAD, a ref, a `.git` file or a config: real ones have under 10 kB."""
_PACKED = 67_108_864
"""The most bytes of packed refs: about 800,000 refs."""
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_REF = re.compile(r"ref: (refs/[^\x00-\x20~^:?*\[\\]+)")
_SETTING = re.compile(r"\s*([A-Za-z]+)\s*=\s*([A-Za-z0-9]+)\s*")
_KEPT = {
    "core": ("autocrlf", "eol", "filemode", "ignorecase", "symlinks", "precomposeunicode"),
    "extensions": ("objectformat",),
}
"""Settings for how files compare with the index; each value is a plain word and runs nothing."""


class _Repository(msgspec.Struct, frozen=True):
    """A working tree, its git directory, and the directory shared with other working trees."""

    tree: Path
    own: Path
    common: Path


def git_state(folder: Path) -> GitState | None:
    """Return the commit that is checked out in a folder, and whether tracked files were changed.

    ``None``: there is no repository, no commit, or it cannot be read. Whether files changed is
    unknown (``None``) without git, or if only a filter could decide.
    """
    try:
        repository = _repository(folder.resolve())
        commit = _head(repository) if repository is not None else None
    except (OSError, RuntimeError, ValueError):
        return None  # what cannot be read is unknown, and nothing depends on it
    if repository is None or commit is None:
        return None
    return GitState(commit=commit, dirty=_is_dirty(repository, commit))


def working_tree(folder: Path) -> Path | None:
    """Return the root of the git working tree that a folder is in; ``None`` if there is none."""
    try:
        repository = _repository(folder.resolve())
    except (OSError, RuntimeError, ValueError):
        return None
    return repository.tree if repository is not None else None


def _repository(folder: Path) -> _Repository | None:
    """Find the repository of a folder; bare ones, without `.git`, are not searched for."""
    for tree in (folder, *folder.parents):
        own = tree / ".git"
        if own.is_file():
            # A worktree or a submodule: the file says where its directory is.
            text = _text(own)
            if not text.startswith("gitdir:"):
                return None
            own = (tree / text.removeprefix("gitdir:").strip()).resolve()
        elif not own.is_dir():
            continue
        shared = own / "commondir"
        common = (own / _text(shared).strip()).resolve() if shared.is_file() else own
        return _Repository(tree, own, common)
    return None


def _head(repository: _Repository) -> str | None:
    text = _text(repository.own / "HEAD").strip()
    if _COMMIT.fullmatch(text):
        return text
    ref = _REF.fullmatch(text)
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
    """Read a small file; raises OSError if it is not regular, such as a pipe that never ends."""
    handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(handle, "rb") as opened:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError("not a file")
        return opened.read(most).decode("utf-8", "replace")


def _is_dirty(repository: _Repository, commit: str) -> bool | None:
    """Ask git whether tracked files differ from the commit; ``None`` if unknown."""
    import tempfile

    program = shutil.which("git")
    index = repository.own / "index"
    objects = repository.common / "objects"
    # A relative path was found through a `.` in PATH: it may be part of the repository.
    if program is None or not Path(program).is_absolute():
        return None
    if not index.is_file() or not objects.is_dir():
        return None
    with tempfile.TemporaryDirectory(prefix="baton-git-") as made:
        environment = {
            **_apart_from(repository, commit, Path(made)),
            "GIT_INDEX_FILE": str(index),
        }
        words = ("status", "--porcelain", "-z", "--untracked-files=no", "--ignore-submodules=all")
        output = _git(program, environment, repository.tree, *words, "--no-renames")
        if output is None:
            return None
        changed = [entry for entry in output.split("\0") if entry]
        if not changed:
            return False
        # Without its filter, a git-lfs file looks changed. A change of another file is certain, and
        # so is one that is in the index already.
        if any(entry[0] != " " for entry in changed):
            return True
        paths = [entry[3:] for entry in changed]
        output = _git(
            program,
            environment,
            repository.tree,
            "check-attr",
            "-z",
            "--stdin",
            "filter",
            stdin="\0".join(paths),
        )
        if output is None:
            return None
        filters = output.split("\0")[2::3]
        return True if any(each in ("unspecified", "unset") for each in filters) else None


def _apart_from(repository: _Repository, commit: str, own: Path) -> dict[str, str]:
    """Create a git directory in an empty folder, and return the environment that git needs for it.

    It uses the repository's objects and working tree, and no setting that runs anything.
    """
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
    lines += [f"{name} = {value}" for (part, name), value in kept.items() if part == "extensions"]
    (own / "config").write_text("\n".join([*lines, ""]), encoding="ascii")
    return {
        **{name: setting for name, setting in os.environ.items() if not name.startswith("GIT_")},
        "GIT_DIR": str(own),
        "GIT_WORK_TREE": str(repository.tree),
        "GIT_OBJECT_DIRECTORY": str(repository.common / "objects"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "XDG_CONFIG_HOME": str(own),
    }


class Blob(msgspec.Struct, frozen=True):
    """A file of a commit: its mode, as git writes it, and its bytes."""

    mode: str
    data: bytes


class Branching:
    """Commits files to a new branch; the working tree, the index and other branches do not change.

    Only git's plumbing commands are run, in a temporary git directory with the repository's
    objects, so no hook or filter runs and nothing is sent anywhere.

    Args:
        folder: any folder of the working tree.

    Raises:
        InputError: there is no repository with a commit, or no git.
    """

    def __init__(self, folder: Path) -> None:
        program = shutil.which("git")
        try:
            repository = _repository(folder.resolve())
            commit = _head(repository) if repository is not None else None
        except (OSError, RuntimeError, ValueError):
            repository, commit = None, None
        if repository is None or commit is None:
            raise InputError(f"{folder}: no git repository with a commit to start a branch from")
        if program is None or not Path(program).is_absolute():
            raise InputError("git is not installed: a branch cannot be made")
        self.tree, self.commit = repository.tree, commit
        self._program, self._repository = program, repository

    def at_head(self, path: Path) -> Blob | None:
        """Return a file of the commit that is checked out; ``path`` starts at the tree's root."""
        with self._apart() as environment:
            output = self._run(environment, "ls-tree", "-z", self.commit, "--", path.as_posix())
            entry = output.rstrip(b"\0").decode("utf-8", "surrogateescape")
            if not entry:
                return None
            mode, kind, blob = entry.split("\t", 1)[0].split(" ")
            if kind != "blob" or mode == "120000":
                return None
            return Blob(mode, self._run(environment, "cat-file", "blob", blob))

    def commit_to(self, branch: str, files: Mapping[Path, bytes], message: str) -> str:
        """Create a branch with one commit on top of the current one; return its id.

        Args:
            branch: the name of a branch that does not exist yet.
            files: new bytes for files of the commit, by their paths from the tree's root.
            message: the commit message.

        Raises:
            InputError: the name is not valid for a branch, the branch exists, or git refuses.
        """
        with self._apart() as environment:
            if branch.startswith("-") or not self._succeeds(
                environment, "check-ref-format", f"refs/heads/{branch}"
            ):
                raise InputError(f"`{branch}` is not a valid branch name")
            real = {**environment, "GIT_DIR": str(self._repository.common)}
            if self._succeeds(real, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"):
                raise InputError(f"a branch `{branch}` already exists: choose another name")
            self._run(environment, "read-tree", self.commit)
            for path, data in files.items():
                old = self.at_head(path)
                if old is None:
                    raise InputError(f"{path} is not in the commit that is checked out")
                blob = self._run(
                    environment, "hash-object", "-w", "--no-filters", "--stdin", stdin=data
                )
                info = f"{old.mode},{blob.decode().strip()},{path.as_posix()}"
                self._run(environment, "update-index", "--cacheinfo", info)
            tree = self._run(environment, "write-tree").decode().strip()
            words = ("commit-tree", tree, "-p", self.commit, "-F", "-")
            made = self._run({**environment, **self._author()}, *words, stdin=message.encode())
            commit = made.decode().strip()
            nothing = "0" * len(commit)
            self._run(real, "update-ref", f"refs/heads/{branch}", commit, nothing)
        return commit

    def _author(self) -> dict[str, str]:
        """Return the author, from the user's settings or the repository's; else Baton."""
        who = {}
        for key, other in (("name", "Baton"), ("email", "baton@localhost")):
            value = ""
            for place in ("--global", f"--file={self._repository.common / 'config'}"):
                try:
                    output = self._run(dict(os.environ), "config", place, "--get", f"user.{key}")
                except InputError:
                    continue  # it is not set there
                value = output.decode("utf-8", "replace").strip() or value
            for role in ("AUTHOR", "COMMITTER"):
                own = os.environ.get(f"GIT_{role}_{key.upper()}")
                who[f"GIT_{role}_{key.upper()}"] = own or value or other
        return who

    @contextmanager
    def _apart(self) -> Iterator[dict[str, str]]:
        import tempfile

        with tempfile.TemporaryDirectory(prefix="baton-git-") as made:
            environment = _apart_from(self._repository, self.commit, Path(made))
            yield {**environment, "GIT_INDEX_FILE": str(Path(made) / "index")}

    def _succeeds(self, environment: Mapping[str, str], *words: str) -> bool:
        try:
            self._run(environment, *words)
        except InputError:
            return False
        return True

    def _run(self, environment: Mapping[str, str], *words: str, stdin: bytes = b"") -> bytes:
        import subprocess

        command = [self._program, *_RUNS_NOTHING, *words]
        try:
            done = subprocess.run(  # noqa: S603 - only Baton's own arguments
                command,
                cwd=self.tree,
                env=dict(environment),
                input=stdin,
                capture_output=True,
                timeout=_LONG_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise InputError(f"git cannot be run: {error}") from None
        if done.returncode != 0:
            message = done.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
            raise InputError(f"git {words[0]}: {message or 'failed'}")
        return done.stdout


def _settings(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield section, name and value of the settings to keep."""
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
    program: str, environment: Mapping[str, str], tree: Path, *words: str, stdin: str = ""
) -> str | None:
    import subprocess

    command = [program, *_RUNS_NOTHING, *words]
    try:
        done = subprocess.run(  # noqa: S603 - only Baton's own arguments
            command,
            cwd=tree,
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=_PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None

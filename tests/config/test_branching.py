"""A branch is made from the commit that is checked out, and nothing else of a repository changes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from baton.config.git import Branching
from baton.model import InputError


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=folder, check=True, capture_output=True, text=True, env=environment()
    )
    return done.stdout


def environment() -> dict[str, str]:
    who = {
        f"GIT_{role}_{key}": "a@b.example"
        for role in ("AUTHOR", "COMMITTER")
        for key in ("NAME", "EMAIL")
    }
    return {**os.environ, **who, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "größe.py").write_text("X = 1\n", "utf-8")
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "run.sh").chmod(0o755)
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-q", "-m", "start")
    return tmp_path


def test_a_branch_has_one_commit_and_the_working_tree_stays(repository: Path) -> None:
    (repository / "run.sh").write_text("half done\n")
    (repository / "new.txt").write_text("not added\n")
    before = git(repository, "status", "--porcelain")
    hooks = repository / ".git" / "hooks"
    for name in ("reference-transaction", "pre-commit", "post-commit", "post-index-change"):
        hook = hooks / name
        hook.write_text(f"#!/bin/sh\ntouch {repository}/ran-{name}\n")
        hook.chmod(0o755)
    with (repository / ".git" / "config").open("a") as config:
        config.write(f'[core]\n\tfsmonitor = "touch {repository}/ran-fsmonitor"\n')
        config.write(f'[filter "f"]\n\tclean = "touch {repository}/ran-filter; cat"\n')
    (repository / ".git" / "info" / "attributes").write_text("* filter=f\n")
    files = {Path("app/größe.py"): b"X = 2\r\n", Path("run.sh"): b"#!/bin/bash\n"}

    commit = Branching(repository / "app").commit_to("better/desk", files, "Better texts\n\nWhy.\n")

    assert not list(repository.glob("ran-*"))
    for hook in hooks.iterdir():
        hook.unlink()
    (repository / ".git" / "info" / "attributes").unlink()
    git(repository, "config", "--unset", "core.fsmonitor")
    assert git(repository, "rev-parse", "better/desk").strip() == commit
    assert git(repository, "rev-list", "--count", "main..better/desk").strip() == "1"
    assert git(repository, "diff", "--name-only", "-z", "main", "better/desk").split("\0")[:2] == [
        "app/größe.py",
        "run.sh",
    ]
    assert git(repository, "ls-tree", "better/desk", "run.sh").startswith("100755")
    assert (
        git(repository, "log", "-1", "--format=%B", "better/desk").strip() == "Better texts\n\nWhy."
    )
    assert git(repository, "status", "--porcelain") == before
    assert git(repository, "symbolic-ref", "HEAD").strip() == "refs/heads/main"
    git(repository, "fsck", "--strict")


@pytest.mark.parametrize(
    ("branch", "message"),
    [
        ("main", "a branch `main` already exists"),
        ("a..b", "is not a valid branch name"),
        ("--force", "is not a valid branch name"),
        ("a b", "is not a valid branch name"),
    ],
)
def test_a_bad_or_taken_name_is_refused(repository: Path, branch: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Branching(repository).commit_to(branch, {Path("run.sh"): b""}, "x")


def test_a_file_that_is_not_committed_and_a_folder_without_a_commit_are_refused(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with pytest.raises(InputError, match=r"other\.py is not in the commit"):
        Branching(repository).commit_to("better", {Path("other.py"): b""}, "x")
    with pytest.raises(InputError, match="no git repository with a commit"):
        Branching(tmp_path_factory.mktemp("none"))


def test_a_linked_working_tree_gets_the_branch_too(repository: Path) -> None:
    git(repository, "worktree", "add", "-q", "-b", "side", "linked")
    Branching(repository / "linked").commit_to("better", {Path("run.sh"): b"1\n"}, "x")
    assert git(repository, "show", "better:run.sh") == "1\n"


def test_who_commits_is_said_by_the_repository(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    for role in ("AUTHOR", "COMMITTER"):
        for key in ("NAME", "EMAIL"):
            monkeypatch.delenv(f"GIT_{role}_{key}", raising=False)
    Branching(repository).commit_to("one", {Path("run.sh"): b"1\n"}, "x")
    git(repository, "config", "user.name", "Ada")
    git(repository, "config", "user.email", "ada@example.com")
    Branching(repository).commit_to("two", {Path("run.sh"): b"2\n"}, "x")
    who = [
        git(repository, "log", "-1", "--format=%an %ae", each).strip() for each in ("one", "two")
    ]
    assert who == ["Baton baton@localhost", "Ada ada@example.com"]

"""Recording the commit runs nothing that a repository names: no hook, filter, monitor or pager."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton.config.git import git_state

Run = Callable[..., Any]


def git(folder: Path, *words: str) -> str:
    environment = {
        **os.environ,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        **{
            f"GIT_{who}_{what}": "a@b"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    done = subprocess.run(
        ["git", *words], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a commit, like one in an unpacked archive."""
    folder = tmp_path / "archive"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text("one\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def touch(folder: Path) -> None:
    """Make the index stale, so that git has to read every file again."""
    later = time.time() + 5
    for name in ("a.txt", "b.txt"):
        os.utime(folder / name, (later, later))


def arm(folder: Path, where: str) -> Path:
    """Have a repository name a program everywhere it can; return the file that it would write."""
    ran = folder.parent / "ran"
    program = folder.parent / "program"
    program.write_text(f"#!/bin/sh\necho $0 $@ >> {ran}\ncat\n")
    program.chmod(0o755)
    told = f"""
[core]
    fsmonitor = {program}
    hooksPath = {folder.parent}
    pager = {program}
    sshCommand = {program}
    editor = {program}
    askPass = {program}
    gitProxy = {program}
    attributesFile = {folder.parent}/attributes
[filter "x"]
    clean = {program}
    smudge = {program}
    process = {program}
    required = true
[diff]
    external = {program}
[diff "x"]
    textconv = {program}
    command = {program}
[merge "x"]
    driver = {program}
[credential]
    helper = {program}
[status]
    submoduleSummary = true
[extensions]
    partialClone = origin
[remote "origin"]
    promisor = true
    url = ext::{program}
[protocol "ext"]
    allow = always
[alias]
    status = !{program}
[trace2]
    eventTarget = {ran}2
"""
    if where == "config":
        with (folder / ".git" / "config").open("a") as config:
            config.write(told)
    else:
        (folder.parent / "more").write_text(told)
        with (folder / ".git" / "config").open("a") as config:
            config.write(f"[include]\n    path = {folder.parent}/more\n")
    (folder / ".gitattributes").write_text("* filter=x diff=x merge=x\n")
    (folder.parent / "attributes").write_text("* filter=x diff=x merge=x\n")
    hooks = folder / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for place in (hooks, folder.parent):
        for hook in ("post-index-change", "pre-commit", "post-checkout", "fsmonitor-watchman"):
            (place / hook).write_text(program.read_text())
            (place / hook).chmod(0o755)
    return ran


@pytest.mark.parametrize("where", ["config", "an included file"])
def test_no_program_of_a_repository_runs(repository: Path, where: str) -> None:
    commit = git(repository, "rev-parse", "HEAD")
    ran = arm(repository, where)
    touch(repository)
    state = git_state(repository)
    assert state is not None
    assert state.commit == commit
    assert not ran.exists(), ran.read_text()
    assert not Path(f"{ran}2").exists()
    (repository / "a.txt").write_text("two, and longer\n")
    git_state(repository)
    assert not ran.exists(), ran.read_text()
    subprocess.run(["git", "status"], cwd=repository, capture_output=True, check=False)
    assert ran.exists(), "the repository of this test is harmless"


@pytest.mark.parametrize("verb", ["score", "eval"])
def test_scoring_inside_an_unpacked_archive_runs_nothing(
    baton: Run, repository: Path, recordings: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    ran = arm(repository, "config")
    touch(repository)
    monkeypatch.chdir(repository)
    run = recordings / "support_desk" / "refund.session.json"
    (repository / "cases.yaml").write_text("cases: [{id: a, input: hi}]\n")
    (repository / "mine.yaml").write_text("providers: [{type: mock}]\ndataset: cases.yaml\n")
    commands: dict[str, list[str | Path]] = {"score": ["score", run], "eval": ["eval", "mine.yaml"]}
    outcome = baton(*commands[verb], "--json")
    assert outcome.code in (0, 1, 3), outcome
    (header,) = repository.glob(".baton/evaluations/*/evaluation.json")
    told = json.loads(header.read_text())["provenance"]["git"]
    assert told["commit"] == git(repository, "-c", "core.fsmonitor=", "rev-parse", "HEAD")
    assert not ran.exists(), ran.read_text()


def test_changes_are_reported_as_git_tells_them(repository: Path) -> None:
    def dirty() -> bool | None:
        state = git_state(repository)
        assert state is not None
        return state.dirty

    assert dirty() is False
    touch(repository)
    assert dirty() is False
    (repository / "new.txt").write_text("not tracked\n")
    assert dirty() is False
    (repository / "a.txt").write_text("two\n")
    assert dirty() is True
    git(repository, "add", "a.txt")
    assert dirty() is True
    git(repository, "commit", "-q", "-m", "two")
    assert dirty() is False
    (repository / "b.txt").unlink()
    assert dirty() is True


def test_where_only_a_filter_could_tell_it_is_not_known(repository: Path) -> None:
    """A file of git-lfs differs from what is committed: its filter makes them the same."""
    (repository / ".gitattributes").write_text("a.txt filter=lfs\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "lfs")
    (repository / "a.txt").write_text("the whole file\n")
    state = git_state(repository)
    assert state is not None
    assert state.dirty is None
    (repository / "b.txt").write_text("two\n")
    changed = git_state(repository)
    assert changed is not None
    assert changed.dirty is True


def test_other_forms_of_a_repository_are_read(repository: Path, tmp_path: Path) -> None:
    commit = git(repository, "rev-parse", "HEAD")

    def state_of(folder: Path) -> tuple[str, bool | None] | None:
        state = git_state(folder)
        return (state.commit, state.dirty) if state is not None else None

    (repository / "below").mkdir()
    assert state_of(repository / "below") == (commit, False)
    git(repository, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    assert state_of(tmp_path / "tree") == (commit, False)
    git(repository, "pack-refs", "--all")
    git(repository, "gc", "-q")
    assert state_of(repository) == (commit, False)
    git(repository, "checkout", "-q", "--detach")
    assert state_of(repository) == (commit, False)
    git(tmp_path, "clone", "-q", "--shared", str(repository), "shared")
    assert state_of(tmp_path / "shared") == (commit, False)
    newer = tmp_path / "newer"
    newer.mkdir()
    git(newer, "init", "-q", "--object-format=sha256")
    (newer / "a.txt").write_text("one\n")
    git(newer, "add", ".")
    git(newer, "commit", "-q", "-m", "one")
    assert state_of(newer) == (git(newer, "rev-parse", "HEAD"), False)


@pytest.mark.parametrize(
    "head",
    [
        "ref: refs/heads/../../../secret",
        "ref: /etc/passwd",
        "ref: refs/heads/none",
        "x" * 40,
        "",
        "\0",
    ],
)
def test_a_head_that_is_none_is_no_commit(repository: Path, head: str) -> None:
    (repository.parent / "secret").write_text("0" * 40)
    (repository / ".git" / "HEAD").write_text(head)
    assert git_state(repository) is None


@pytest.mark.parametrize("name", ["HEAD", "index", "packed-refs", "config", "../.gitattributes"])
def test_a_pipe_in_place_of_a_file_does_not_hang(repository: Path, name: str) -> None:
    git(repository, "pack-refs", "--all")
    file = repository / ".git" / name
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    started = time.monotonic()
    git_state(repository)
    assert time.monotonic() - started < 15


def test_a_git_file_that_leads_in_circles_or_nowhere_is_no_repository(tmp_path: Path) -> None:
    for said in ("gitdir: .git", "gitdir: nowhere", "gitdir: /dev/null", "nonsense", "gitdir: \0"):
        folder = tmp_path / "odd"
        folder.mkdir(exist_ok=True)
        (folder / ".git").write_text(said)
        assert git_state(folder) is None


def test_a_bare_repository_that_lies_in_a_folder_is_not_taken_for_it(
    repository: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "looks" / "harmless"
    bare.parent.mkdir()
    git(tmp_path, "clone", "-q", "--bare", str(repository), str(bare))
    ran = tmp_path / "ran"
    with (bare / "config").open("a") as config:
        config.write(f"[core]\n    bare = false\n    worktree = .\n    fsmonitor = touch {ran}\n")
    assert git_state(bare) is None
    assert not ran.exists()


def test_a_git_program_beside_the_data_is_not_run(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = repository.parent / "ran"
    (repository / "git").write_text(f"#!{sys.executable}\nopen({str(ran)!r}, 'w')\n")
    (repository / "git").chmod(0o755)
    monkeypatch.chdir(repository)
    monkeypatch.setenv("PATH", f".:{os.environ['PATH']}")
    git_state(repository)
    assert not ran.exists()

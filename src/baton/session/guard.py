"""Policies of guards: dry runs on recordings, tests with cases, and suggested policies."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from baton.formats.document import Document, read_bytes
from baton.formats.own_files import write_whole
from baton.guard.dry_run import CaseOutcome, DryRun, dry_run, read_cases, try_case
from baton.guard.policy import Policy, load_policy
from baton.guard.suggest import suggest
from baton.model import InputError, Problem, Trace
from baton.plugins.user_code import load_module

from .file_kinds import given_as
from .prepare import Note, PathLike, TracesLike, log_note, traces_or_paths
from .show import traces_to_show

__all__ = ["check_policy", "load_policy", "suggest_policy", "try_policy"]


def check_policy(
    policy: Policy | PathLike,
    traces: TracesLike,
    *,
    functions: str | None = None,
    note: Note = log_note,
) -> DryRun:
    """Find what a policy would have blocked in recordings.

    Args:
        policy: a policy, or its file.
        traces: traces, files and folders with recordings, evaluation folders, and servers
            (``server://HOST``). The policy may search for secrets in them, but no secret is shown.
        functions: a module, or its file, that registers functions of the policy; it is run.
        note: called with notes of the readers; by default the logger `baton` warns.

    Raises:
        InputError: a policy or recordings with errors.
    """
    run_functions(functions)
    return dry_run(_policy(policy), _read(traces, note))


def try_policy(
    policy: Policy | PathLike, cases: PathLike, *, functions: str | None = None
) -> list[CaseOutcome]:
    """Apply a policy to the cases of a file; ``problem`` of an outcome says what differs.

    ``functions`` is as for :func:`check_policy`.

    Raises:
        InputError: a policy or cases with errors.
    """
    run_functions(functions)
    document = Document(str(cases), read_bytes(Path(cases)), "yaml")
    held = _policy(policy)
    return [try_case(held, case) for case in read_cases(document, held)]


def suggest_policy(
    traces: TracesLike, output: PathLike | None = None, *, note: Note = log_note
) -> str:
    """Return a policy, as YAML with comments, that allows what recorded good runs did.

    Args:
        traces: as for :func:`check_policy`.
        output: a file to write it to, which must not exist yet.
        note: called with notes of the readers; by default the logger `baton` warns.

    Raises:
        InputError: recordings with errors, or a file that exists already.
    """
    if output is not None and Path(output).exists():
        raise InputError(Problem(file=str(output), message="exists already"))
    text = suggest(_read(traces, note))
    if output is not None:
        write_whole(Path(output), text.encode())
    return text


def run_functions(module: str | None) -> None:
    """Run a module, or its file, that registers functions of policies.

    Raises:
        InputError: there is none, or it fails.
    """
    if module is not None:
        load_module(f"{module}:", Path())


def _policy(policy: Policy | PathLike) -> Policy:
    if isinstance(policy, Policy):
        return policy
    file = Path(policy)
    problems = given_as([file], "traces", "is a recording, not a policy: name the policy first")
    if problems:
        raise InputError(problems)
    return load_policy(file)


def _read(traces: TracesLike, note: Note) -> Iterator[Trace]:
    some = traces_or_paths(traces)
    if not some:
        raise InputError("name the recordings: files, folders, or server://HOST/PROJECT")
    given = (each for each in some if isinstance(each, Trace))
    paths = [each for each in some if isinstance(each, str)]
    # A policy searches for secrets itself and never shows one, so nothing is redacted here.
    shown = traces_to_show(paths, redact=False, note=note) if paths else ()
    return chain(given, (each.trace for each in shown))

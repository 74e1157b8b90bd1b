"""``baton watch``."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from baton.model import InputError, Terminated

from .notes import DEBUG, debugging, note
from .target import find_target, trust_in
from .watched import affected, case_hashes, changed, watched

_PAUSE = 0.3
"""Seconds between two looks; an editor may write a file in several steps."""

_CLEANING = 15.0
"""Seconds that an evaluation has to end its agents' processes: some steps of up to 5 each."""


def watch_command(
    *target: str,
    dataset: Annotated[
        tuple[str, ...], Parameter(name=["--dataset", "-d"], negative="", show_default=False)
    ] = (),
    trust: Annotated[tuple[Path, ...], Parameter(negative="", show_default=False)] = (),
) -> int:
    """Evaluate, and again what a changed file affects, until Ctrl-C.

    A changed case is played alone; a change of config, agents or prompts plays them all.

    Parameters
    ----------
    target
        A config or an agent, then datasets, as for `baton eval`.
    dataset
        One more dataset; what is named here or above goes before the config's.
    trust
        A folder whose baton.yaml and test_config.json may name code, though nobody named them;
        remembered until they change. May be given several times.
    """
    found = find_target(target, trust_in(trust))
    datasets = [*found.datasets, *dataset] or (found.config.dataset if found.config else [])
    if not datasets:
        raise InputError("name a dataset: baton watch AGENT DATASET, or `dataset:` in the config")
    files = watched(found.config, found.provider, datasets)
    seen, cases = files.files(), case_hashes(datasets)
    agent = target[: max(0, len(target) - len(found.datasets))]
    code = _evaluate(agent, datasets, trust)
    note(f"watching {len(seen)} files; Ctrl-C ends it")
    try:
        while True:
            time.sleep(_PAUSE)
            now = files.files()
            different = changed(seen, now)
            if not different:
                continue
            time.sleep(_PAUSE)
            seen = files.files()
            before, cases = cases, case_hashes(datasets)
            only = all(files.is_case(file) for file in different)
            chosen = affected(before, cases) if only else None
            note(f"changed: {', '.join(_short(file) for file in different[:3])}")
            if chosen != []:
                code = _evaluate(agent, datasets if chosen is None else chosen, trust)
    except Terminated:
        raise
    except KeyboardInterrupt:
        return code


def _evaluate(agent: Sequence[str], datasets: Sequence[str], trust: Sequence[Path]) -> int:
    """Evaluate in a process of its own, as code that was imported here would stay as it was."""
    words = [word for dataset in datasets for word in ("--dataset", dataset)]
    words += [word for folder in trust for word in ("--trust", str(folder))]
    debug = [DEBUG] if debugging.get() else []
    # With -P, modules of the current folder do not take the place of Baton's own.
    command = [sys.executable, "-P", "-m", "baton", *debug, "eval", *agent, *words]
    process = subprocess.Popen(command)  # noqa: S603 - ourselves
    try:
        return process.wait()
    except KeyboardInterrupt as ended:
        # Ctrl-C reaches every process of a terminal, a signal to this one is passed on. What is in
        # play gets time to clean up.
        if isinstance(ended, Terminated):
            process.terminate()
        try:
            process.wait(_CLEANING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise


def _short(file: Path) -> str:
    here = Path.cwd()
    return str(file.relative_to(here) if file.is_relative_to(here) else file)

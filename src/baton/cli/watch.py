"""`baton watch`: evaluate again what a changed file affects."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

from baton.model import Terminated
from baton.session.watch import watch

from .options import ConfigPath, Dataset, Keyword, Paths, trust_in
from .usage_messages import DEBUG, debugging, note

_CLEANING = 15.0
"""Seconds that an evaluation has to end its agents' processes: a few steps of up to 5 seconds."""


def watch_command(
    *target: str,
    dataset: Dataset = (),
    config: ConfigPath = None,
    keyword: Keyword = None,
    trust: Paths = (),
) -> int:
    """Evaluate, then evaluate again what a changed file affects, until Ctrl-C.

    If a case changes, only it is played; if the config, agents or prompts change, all cases are.

    Parameters
    ----------
    target
        A config or an agent, then datasets, as for `baton eval`.
    dataset
        One more dataset; datasets given here or as arguments override those of the config.
    config
        A config, or criteria of ADK (a test_config.json of any name). With an agent, that one
        plays instead of the config's.
    keyword
        Only cases that match the expression: a word is part of the id or of a tag, with `and`,
        `or`, `not`, parentheses, tag:NAME and metadata.KEY=VALUE.
    trust
        A folder whose baton.yaml and test_config.json may name code, although they were only found;
        remembered until they change. May be given several times.
    """

    def play(agent: Sequence[str], datasets: Sequence[str]) -> int:
        words = [*agent, *_as_words("--dataset", datasets), *_as_words("--trust", trust)]
        words += _as_words("--config", [] if config is None else [config])
        return _evaluate([*words, *_as_words("-k", [] if keyword is None else [keyword])])

    return watch(
        target,
        dataset,
        play,
        config=None if config is None else str(config),
        keyword=keyword,
        trust=trust_in(trust),
        note=note,
    )


def _as_words(flag: str, values: Sequence[object]) -> list[str]:
    return [word for value in values for word in (flag, str(value))]


def _evaluate(words: Sequence[str]) -> int:
    """Evaluate in a separate process: code that was imported here would not be reloaded."""
    debug = [DEBUG] if debugging.get() else []
    # With -P, modules of the current folder do not shadow Baton's own.
    command = [sys.executable, "-P", "-m", "baton", *debug, "eval", *words]
    process = subprocess.Popen(command)  # noqa: S603 - ourselves
    try:
        return process.wait()
    except KeyboardInterrupt as ended:
        # Ctrl-C reaches every process of a terminal; a signal to this process is passed on. Running
        # cases get time to clean up.
        if isinstance(ended, Terminated):
            process.terminate()
        try:
            process.wait(_CLEANING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        raise

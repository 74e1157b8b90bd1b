"""The verbs, and what all of them do with an error."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence

from cyclopts import App, CycloptsError

from baton import __version__
from baton.formats.own_files import naming
from baton.model import InputError, Terminated

from .notes import say
from .signals import terminable, told
from .usage import usage_message

BAD_INPUT = 2
NOT_EVALUATED = 3

VERBS = {
    "eval": "Play a dataset against live agents and score what they did.",
    "watch": "Evaluate, and again what a changed file affects, until Ctrl-C.",
    "score": "Score recorded traces, against a dataset where there is one.",
    "show": "Draw recorded traces: runs, dispatches and tools.",
    "pull": "Fetch traces from Phoenix or Langfuse into a file.",
    "export": "Write recordings as OpenTelemetry spans, and results as evaluation events.",
    "init": "Write a config, a first case and a CI workflow into this folder.",
    "draft": "Turn a good run into a case.",
    "convert": "Write a dataset in another dialect, and list what that has no place for.",
    "check": "Check datasets, configs, rubrics, traces and agent definitions, and run nothing.",
    "report": "Report on a stored evaluation.",
    "baseline": "Keep an evaluation to compare with, or show the one that is kept.",
    "compare": "Compare two evaluations: what got worse, and where it went another way.",
    "trend": "Show an axis over evaluations, for each model.",
    "label": "Label the dispatches of an evaluation, to hold judges against.",
    "calibrate": "Hold a judge against the labels of people.",
    "rubrics": "List, show and test rubrics: the questions that judges are asked.",
    "list": "List evaluators, providers, reporters and backends, with their options.",
}

app = App(
    name="baton",
    help=(
        "Test what happens when AI agents hand work to one another.\n\n"
        "Exit codes: 0 passed, 1 failed, 2 bad input or usage, 3 something could not be evaluated."
    ),
    version=__version__,
    default_parameter=None,
    suppress_keyboard_interrupt=False,
)
for _verb, _summary in VERBS.items():
    app.command(f"baton.cli.{_verb}:{_verb}_command", name=_verb, help=_summary)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code (the console script exits with it)."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    # Decoding makes millions of objects and no cycles; collecting seldom halves a large load.
    gc.set_threshold(100_000, 50, 1000)
    try:
        with terminable():
            code = _run(app, tokens)
        with naming("standard output"):
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        _drop_output()
        return 0
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        say(f"baton: {place}{error.strerror or error}")
        _drop_output()
        return NOT_EVALUATED
    except Terminated as ended:
        text, code = told(ended)
        say(f"baton: {text}")
        return code
    except KeyboardInterrupt:
        say("baton: interrupted")
        return 130


def _drop_output() -> None:
    """Let what is still to be printed go nowhere, so that the end of the process is quiet."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(commands: Callable[..., object], tokens: list[str]) -> int:
    try:
        result = commands(
            tokens, exit_on_error=False, print_error=False, result_action="return_value"
        )
    except CycloptsError as error:
        say(f"baton: {usage_message(error, VERBS)}")
        return BAD_INPUT
    except InputError as error:
        for problem in error.problems:
            say(f"baton: {problem}")
        return NOT_EVALUATED if any(each.damaged for each in error.problems) else BAD_INPUT
    return result if isinstance(result, int) else 0

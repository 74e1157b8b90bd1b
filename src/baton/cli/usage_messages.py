"""Notes that a command prints beside its result, and messages for wrong command lines."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Literal, get_args, get_origin

from cyclopts import Argument, CycloptsError
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from baton.model import counted, suggestion
from baton.model.mask_known_secrets import mask
from baton.model.visible import visible_line

DEBUG = "--debug"
"""The option of all commands that shows the traceback of a bug in Baton."""
debugging: ContextVar[bool] = ContextVar("debugging", default=False)
"""Whether it was given."""
quieting: ContextVar[bool] = ContextVar("quieting", default=False)
"""Whether only the verdict is printed (`-q`), without notes."""


def note(text: str) -> None:
    """Print a note on standard error, which is never part of a report."""
    if not quieting.get():
        say(f"note: {text}")


def say(text: str) -> None:
    """Print one line on standard error; a closed pipe is ignored.

    A newline in an id or a file name is printed as an escape, so that it cannot start a new line. A
    terminal may be closed as well (then writing is an input/output error).
    """
    with suppress(OSError):
        print(visible_line(mask(text)), file=sys.stderr, flush=True)


_FLAGS = {
    "evaluators": "--evaluator",
    "criteria": "--config_file_path",
    "filters": "--filter",
    "finished": "--from",
    "keyword": "-k",
    "last_failed": "--lf",
    "redact_kinds": "--redact-kind",
    "target": "--otlp",
}
"""Flags that are not the name of the parameter with `--` before it."""


def flag(name: str, value: Any = ...) -> str:
    """Return the command line's name for an option of a function: ``--max-cost``, ``--jobs 1``."""
    plain = _FLAGS.get(name, f"--{name.replace('_', '-')}")
    if value is ... or value is True:
        return plain
    return f"--no-{plain[2:]}" if value is False else f"{plain} {value}"


_GIVE = {
    "--to": "name a dialect: `--to` {choices}",
    "--older-than": "give an age: `--older-than 30d`",
    "--output": "name the file to write: `-o FILE`",
    "--store": "name the store to fetch from: {choices}",
    "--rubric": "name a rubric (`baton rubrics list`), and the files with labels",
    "--act": "say what to do: {choices}",
}


_GLOBAL = ("--help", "--version", "--install-completion", DEBUG)
"""Options that need no command."""


_OTHER_COMMANDS = {
    "run": "eval",
    "test": "eval",
    "play": "eval",
    "new": "init",
    "create": "init",
    "start": "init",
    "diff": "compare",
    "lint": "check",
    "validate": "check",
    "view": "show",
    "inspect": "show",
    "print": "show",
    "import": "pull",
    "migrate": "convert",
    "migrate_eval_data_to_new_schema": "convert",
    "fetch": "pull",
    "html": "report",
}
"""Other tools' names for commands that are not similar to Baton's."""
_OTHER_OPTIONS = {
    "--output": "`--html FILE`, `--junit FILE` and the like write reports",
    "-o": "`--html FILE`, `--junit FILE` and the like write reports",
    "--baseline": "`baton compare` compares with a baseline; `gate:` in a config decides by one",
    "--filter": "`-k EXPR` selects recordings and cases",
    "--threshold": "thresholds are options of evaluators, in a config",
    "--model": "`--judge PROVIDER:NAME` is the model of judges; agents have their own",
}
"""Options that `score` and `eval` do not have, and what to use instead."""


def usage_message(error: CycloptsError, verbs: Collection[str]) -> str:
    """Say what is wrong with a command line, with similar names or what is missing."""
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        word = error.unused_tokens[0]
        if word.startswith("-"):
            return f"no option `{word}`; {suggestion(word, _GLOBAL)}"
        below = error.app is not None and bool(error.command_chain)
        known = [name for name in error.app or () if below and not name.startswith("-")]
        if not known and (other := _OTHER_COMMANDS.get(word)) in verbs:
            return f"no command `{word}`; did you mean `{other}`?"
        return f"no command `{word}`; {suggestion(word, known or verbs)}"
    if isinstance(error, UnknownOptionError):
        word = error.token.keyword or error.token.value
        names = (name for argument in error.argument_collection for name in argument.names)
        known = [name for name in names if name.startswith("-")]
        if error.command_chain == ("compare",) and word == "--baseline":
            return f"no option `{word}`; name the baseline: baton compare BASELINE EVALUATION"
        if error.command_chain in (("eval",), ("score",)) and word in _OTHER_OPTIONS:
            return f"no option `{word}`; {_OTHER_OPTIONS[word]}"
        return f"no option `{word}`; {suggestion(word, known)}"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return _missing(error, error.argument)
    if isinstance(error, CoercionError) and error.token is not None and error.argument is not None:
        name = error.token.keyword or error.argument.name
        if error.token.keyword is None and error.argument.index == 0:
            # The first word after a command has no name that anybody typed.
            name = f"baton {' '.join(error.command_chain or ())}"
        if wanted := _wanted(error.argument):
            return f"`{name}` takes {wanted}, not `{error.token.value}`"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        command = " ".join(error.command_chain or ())
        first, more = error.unused_tokens[0], len(error.unused_tokens) - 1
        others = f" and {more} more" if more else ""
        return f"unexpected argument `{first}`{others}; see `baton {command} --help`"
    return " ".join(str(error).split())


def _missing(error: MissingArgumentError, argument: Argument) -> str:
    named = error.keyword or next((token.keyword for token in argument.tokens if token.keyword), "")
    if named:
        choices = _choices(argument)
        return f"`{named}` needs a value{f': {choices}' if choices else ''}"
    if argument.name == "--name":
        is_rubric = (error.command_chain or ("",))[0] == "rubrics"
        return "name a rubric: `baton rubrics list`" if is_rubric else "name the key"
    # An argument with a place has no dashes where it is typed; an option has.
    name = argument.name if argument.index is None else argument.name.lstrip("-")
    plain = f"`{name}` is missing; see `baton {' '.join(error.command_chain or ())} --help`"
    return _GIVE.get(argument.name, plain).format(choices=_choices(argument))


def _wanted(argument: Argument) -> str:
    """Say what an option expects: one of its choices, or a number; empty for anything else."""
    kinds = (argument.hint, *get_args(argument.hint))
    number = "a whole number" if int in kinds else "a number" if float in kinds else ""
    return _choices(argument) or number


def _choices(argument: Argument) -> str:
    kinds = (argument.hint, *get_args(argument.hint))
    literal = next((kind for kind in kinds if get_origin(kind) is Literal), None)
    if literal is None:
        return ""
    *others, last = (str(choice) for choice in get_args(literal))
    return f"{', '.join(others)} or {last}" if others else last


def exit_code_of(unreadable: Sequence[str]) -> int:
    """Name the files that could not be read, and return the exit code of the command."""
    for problem in unreadable:
        say(f"! {problem}")
    if unreadable:
        say(f"{counted(len(unreadable), 'file')} left out")
    return 3 if unreadable else 0

"""The verbs, and how all of them handle an error."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal

from cyclopts import CycloptsError

from baton.formats.own_files import naming
from baton.model import BatonError, InputError, Terminated
from baton.model.mask_known_secrets import forget
from baton.model.option_spelling import options_named_by
from baton.model.visible import exception_line
from baton.safe_output import safe_output, tracebacks_shown

from .signals import exit_of, terminable
from .usage_messages import DEBUG, debugging, flag, note, quieting, say, usage_message
from .verbs import TABLE, app

__all__ = ["VERBS", "app", "main"]

BAD_INPUT = 2
NOT_EVALUATED = 3
_MOST_TOLD = 200
"""The most characters of a text that an error quotes: the text may be a whole document."""
_REPORT = f"; run it again with {DEBUG} and report the traceback with it (see SECURITY.md)"

VERBS = {name: verb.summary for name, verb in TABLE.items()}
"""Every command with what it is for."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code (the console script exits with it).

    Whatever is raised, the code is never 1 for it: 1 means that something was evaluated and
    failed.
    """
    tokens, debug = _without_debug(list(sys.argv[1:] if arguments is None else arguments))
    debugging.set(debug)
    quieting.set(False)
    forget()
    with (
        safe_output(on_github="--github" in tokens),
        options_named_by(flag),
        tracebacks_shown(debug),
    ):
        try:
            return _answered(tokens)
        except BaseException as error:  # noqa: BLE001 - what no other place expects
            return _stopped(error)


def _answered(tokens: list[str]) -> int:
    """Run a command; report bad input and problems with files and pipes in one message."""
    try:
        with terminable():
            code = _run(app, _in_new_words(tokens))
        with naming("standard output"):
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_output()
        return 0
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        return 0  # Rich exits like this when a long help is piped into `head`
    except UnicodeEncodeError as error:
        _print_traceback(error)
        # A lone surrogate of UTF-16, or a byte of a file name that is not UTF-8.
        text = error.object[:_MOST_TOLD]
        say(
            f"baton: `{text}` is not UTF-8, so it cannot be stored; if it is a file name, "
            "rename the file"
        )
        return NOT_EVALUATED
    except OSError as error:
        _print_traceback(error)
        place = f"{error.filename}: " if error.filename else ""
        say(f"baton: {place}{error.strerror or error}")
        _drop_output()
        return NOT_EVALUATED
    return code


def _without_debug(tokens: list[str]) -> tuple[list[str], bool]:
    """Take ``--debug`` out, wherever it is before a ``--``."""
    end = tokens.index("--") if "--" in tokens else len(tokens)
    own = [token for token in tokens[:end] if token != DEBUG]
    return [*own, *tokens[end:]], len(own) < end


_OLD_WORDS = {("convert", "--out"): "--output", ("pull", "--out"): "--output"}
"""Options by their verb and the name they had before 0.2, with the name they have now."""


def _in_new_words(tokens: list[str]) -> list[str]:
    """Replace old names of options, and print a note."""
    verb = tokens[0] if tokens else ""
    end = tokens.index("--") if "--" in tokens else len(tokens)
    words = []
    for token in tokens[:end]:
        name, equals, value = token.partition("=")
        now = _OLD_WORDS.get((verb, name))
        if now is not None:
            note(f"{name} of `baton {verb}` is now {now}; the next version accepts only that")
        words.append(token if now is None else f"{now}{equals}{value}")
    return [*words, *tokens[end:]]


def _stopped(error: BaseException) -> int:
    """Say in one line what ended a command; for a bug in Baton, also how to report it."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, Terminated):
        text, code = exit_of(error)
        say(f"baton: {text}")
        return code
    if isinstance(error, KeyboardInterrupt):
        say("baton: interrupted")
        return 130
    _print_traceback(error)
    if isinstance(error, SystemExit):
        # Such as `sys.exit(0)` in the user's module: nothing was evaluated, so it is no success.
        say(f"baton: code that was imported or called ended the process: sys.exit({error.code!r})")
    else:
        report = "" if debugging.get() else _REPORT
        say(f"baton: internal error: {exception_line(error)}{report}")
    return NOT_EVALUATED


def _print_traceback(error: BaseException) -> None:
    if debugging.get():
        import traceback

        traceback.print_exception(error)


def install_completion(shell: Literal["bash", "fish", "zsh"] | None = None) -> int:
    """Let the shell complete commands and options.

    Writes a script into the shell's folder for completions, and adds a line that loads it to the
    shell's start file.

    Parameters
    ----------
    shell
        The shell; the one this runs in when left out.
    """
    file = app.install_completion(shell=shell)
    say(f"completion is in {file}; it works in every shell that is started from now on")
    return 0


def _drop_output() -> None:
    """Discard what is still to be printed, so that the process ends without an error message."""
    with suppress(io.UnsupportedOperation):  # a stream without a file, as in a test
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
        if error.__cause__ is not None:  # such as what a module of agents raised when imported
            _print_traceback(error.__cause__)
        for problem in error.problems:
            say(f"baton: {problem}")
        return NOT_EVALUATED if any(each.damaged for each in error.problems) else BAD_INPUT
    except BatonError as error:  # such as a server that does not answer
        _print_traceback(error)
        say(f"baton: {error}")
        return NOT_EVALUATED
    return result if isinstance(result, int) else 0

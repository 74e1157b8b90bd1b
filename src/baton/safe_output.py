"""Safe output: everything written to standard output and standard error passes through here.

Callers do not have to care: `print`, `logging`, warnings, error messages, tracebacks and reports
are safe because the streams are. Values that a config took from the environment are masked here,
too. Baton's own colors and progress bars are written to :func:`own_output`, after their texts were
made visible.
"""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, TextIO, cast

from baton.model.mask_known_secrets import mask
from baton.model.visible import visible, without_commands

_CI = ("GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")
"""Variables set by the CI systems that read commands from a log: GitHub Actions, Azure Pipelines,
TeamCity."""
_TAIL = 64
"""Characters of an unfinished line that are kept: a command may be written in pieces, such as
``##`` and ``[group]``, and no command has a longer start."""
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,32}m")


class SafeStream:
    """A stream that escapes text that could act on a terminal or a build.

    Everything but writing is delegated to the wrapped stream.
    """

    def __init__(self, stream: TextIO, *, in_ci: bool, on_github: bool, reports: bool) -> None:
        """Wrap a stream.

        Args:
            stream: the wrapped stream.
            in_ci: break texts that CI systems take for commands.
            on_github: tell GitHub to read no commands from reports.
            reports: whether reports are printed here; on other streams, lines of other programs may
                come between.
        """
        self.stream = stream
        self.in_ci = in_ci
        self.on_github = on_github
        self._reports = reports
        self._line = ""
        self._token: str | None = None

    def write(self, text: str) -> int:
        """Write a text, with escapes for invisible characters and commands."""
        self._pass_on(visible(mask(text)))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    @property
    def rich_proxied_file(self) -> OwnOutput:
        """The stream for other users of Rich, such as the help of cyclopts: text with colors."""
        return OwnOutput(self, colours_only=True)

    def write_own(self, text: str) -> None:
        """Write a text that was made visible, with Baton's own codes for the terminal."""
        if self._reports and self.on_github and self._token is None and not self._line:
            import secrets

            # As GitHub advises: a random token, so that no untrusted text ends the bracket.
            self._token = secrets.token_hex(16)
            self.stream.write(f"::stop-commands::{self._token}\n")
        self._pass_on(mask(text))

    def accept_commands(self) -> None:
        """End the bracket, if there is one: Baton's own commands may follow."""
        if self._token is not None:
            token, self._token = self._token, None
            self.stream.write(f"{'' if not self._line else chr(10)}::{token}::\n")
            self._line = ""

    def _pass_on(self, text: str) -> None:
        if not self.in_ci:
            self.stream.write(text)
            return
        # A piece is checked together with the earlier part of its line. That part holds no complete
        # command, so that it is not changed.
        whole = without_commands(self._line + text)
        self.stream.write(whole[len(self._line) :])
        _, newline, last = whole.rpartition("\n")
        self._line = last if newline or len(last) <= _TAIL else f"…{last[-_TAIL:]}"

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


class OwnOutput:
    """The stream for what Baton draws: its texts are already visible, its codes are Baton's own."""

    def __init__(self, safe: SafeStream, *, colours_only: bool = False) -> None:
        self._safe = safe
        self._colours_only = colours_only

    @property
    def rich_proxied_file(self) -> OwnOutput:
        """Rich looks for this name, and writes here."""
        return self

    def write(self, text: str) -> int:
        """Write a text; if others draw, only codes for colors are kept."""
        if not self._colours_only:
            self._safe.write_own(text)
            return len(text)
        place = 0
        for match in _COLOUR.finditer(text):
            self._safe.write(text[place : match.start()])
            self._safe.write_own(match[0])
            place = match.end()
        self._safe.write(text[place:])
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._safe, name)


def safe_around(stream: TextIO) -> TextIO:
    """Return a safe stream around the one that Rich installs while it draws.

    Rich would take terminal codes in printed texts for colors and links.
    """
    return cast("TextIO", SafeStream(stream, in_ci=False, on_github=False, reports=False))


def own_output(out: IO[str]) -> IO[str]:
    """Return the stream for Baton's own codes; a stream that is not safe is returned unchanged."""
    return cast("IO[str]", OwnOutput(out)) if isinstance(out, SafeStream) else out


def command_output(out: IO[str]) -> IO[str]:
    """Return the stream for commands to a CI system; texts in them have to be escaped."""
    if not isinstance(out, SafeStream):
        return out
    out.accept_commands()
    return out.stream


def expect_commands(out: IO[str]) -> None:
    """Assume that GitHub Actions reads the output, whatever the environment says."""
    if isinstance(out, SafeStream):
        out.in_ci = out.on_github = True


def _drop_unread(stream: TextIO | None) -> None:
    """Discard output that a closed pipe or terminal did not accept.

    Python would try to write it again at its end, and exit with 120 instead of the verdict.
    """
    if stream is None:
        return
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):  # a stream without a file, as in a test
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def safe_output(*, on_github: bool = False) -> Iterator[None]:
    """Make standard output and standard error safe while a command runs.

    Args:
        on_github: assume that GitHub Actions reads the output, whatever the environment says.
    """
    github = on_github or bool(os.environ.get("GITHUB_ACTIONS"))
    in_ci = github or any(os.environ.get(name) for name in _CI)
    before = sys.stdout, sys.stderr
    # A stream that was closed before the start is None; its output is discarded.
    streams = [stream or open(os.devnull, "w", encoding="utf-8") for stream in before]  # noqa: SIM115
    out, err = (
        SafeStream(stream, in_ci=in_ci, on_github=github, reports=stream is streams[0])
        for stream in streams
    )
    sys.stdout, sys.stderr = cast("TextIO", out), cast("TextIO", err)
    strict = [s for s in before if isinstance(s, io.TextIOWrapper) and s.errors == "strict"]
    for stream in strict:
        # Characters that a terminal's encoding lacks are escaped, not an error.
        stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        for each in before:
            _drop_unread(each)
        with suppress(OSError, ValueError):  # it does not matter if the reader has gone
            out.accept_commands()
            for stream in strict:
                stream.reconfigure(errors="strict")


_tracebacks = False


def show_traceback(error: BaseException) -> None:
    """Print the traceback of an exception of an agent or evaluator, if tracebacks are shown.

    A result has the error in one line; the author of the code needs the traceback.
    """
    if _tracebacks:
        import traceback

        traceback.print_exception(error, file=sys.stderr)


def tracebacks_are_shown() -> bool:
    """Return whether tracebacks are shown, for a process that is started."""
    return _tracebacks


@contextmanager
def tracebacks_shown(wanted: bool = True) -> Iterator[None]:
    """Show tracebacks inside this block, in every thread."""
    global _tracebacks  # noqa: PLW0603 - a context variable would not reach the threads of agents
    before, _tracebacks = _tracebacks, wanted
    try:
        yield
    finally:
        _tracebacks = before

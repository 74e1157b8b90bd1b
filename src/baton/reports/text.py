"""Shared by reports: the terminal, texts in one line, and places of cases."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec
from rich.cells import cell_len
from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text as RichText

from baton.model import CaseResult, Content, Placed, Score, named_evidence
from baton.model.score import digits
from baton.model.visible import folded_line, visible, visible_line
from baton.safe_output import own_output

# Dispatches that a line names; the others are counted, or left to the score itself.
_NAMED = 5


def one_line(text: str, limit: int = 80) -> str:
    """Fold white space, escape invisible characters, and truncate to ``limit`` characters."""
    safe = folded_line(text)
    return safe if len(safe) <= limit else f"{safe[: limit - 1]}…"


def dispatches_of(scores: Iterable[Score]) -> str:
    """Name the dispatches that scores are about, by id; nothing for other scores."""
    about = [score.subject for score in scores if score.unit == "dispatch"]
    names = list(dict.fromkeys(one_line(subject[0]) for subject in about if subject))
    if not names:
        return ""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}: "


def place_names(score: Score, places: Mapping[str, Placed]) -> str:
    """Name agents, dispatch and steps of a score: `dispatch d1 (desk → lab), step s5 (desk): `.

    Empty for a score that refers to nothing in its trace.
    """
    ids = [*score.subject[:_NAMED], *named_evidence(score)]
    named = [places[id_].named(id_) for id_ in ids if id_ in places]
    return f"{one_line(', '.join(named), 300)}: " if named else ""


def content_line(content: Content, limit: int = 80) -> str:
    """Show content in one line: its text, its data as JSON, or what is attached."""
    if content.text is not None:
        return f"“{one_line(content.text, limit)}”"
    if content.data is not None:
        return value_line(content.data, limit)
    parts = ", ".join(part.mime or part.type for part in content.parts or ())
    return one_line(parts, limit) or "nothing"


def value_line(value: Any, limit: int = 80) -> str:
    """Show plain data as JSON in one line."""
    return one_line(msgspec.json.encode(value).decode(), limit)


def arguments_line(arguments: Any, limit: int = 60) -> str:
    """Show the arguments in the form of a call."""
    if arguments is None:
        return ""
    if not isinstance(arguments, dict):
        return value_line(arguments, limit)
    return one_line(
        ", ".join(f"{key}={value_line(item)}" for key, item in arguments.items()), limit
    )


def value_text(score: Score) -> str:
    """Show the value of a score and its threshold; nothing if there is no verdict."""
    if score.value is None:
        return ""
    places = digits(score.value, score.threshold)
    needs = "" if score.threshold is None else f", needs {score.threshold:.{places}f}"
    return f" {score.value:.{places}f}{needs}"


def new_advice(score: Score, given: set[str]) -> str | None:
    """Return how to fix what failed, unless it is in ``given``, to which it is added.

    Two evaluators can fail for one cause, such as `agent_chain` and `dispatch_routing` if work went
    to the wrong agent.
    """
    advice = score.details.get("fix")
    if not isinstance(advice, str) or advice in given:
        return None
    given.add(advice)
    return advice


# Columns of what goes into a file or a pipe. Its lines are not folded, so this only has to be wider
# than a table, whose cells would be folded.
_COLUMNS_OF_FILE = 400


class Text(RichText):
    r"""A styled line without invisible characters and terminal commands.

    A newline in it is shown as ``\n``, so that no name can start a line that looks like one of
    Baton's. For an empty line, start with ``Text("\n")``.
    """

    def __init__(self, text: str = "", style: str | Style = "", **more: Any) -> None:
        """Take an untrusted text."""
        super().__init__(one_row(text), style, **more)

    def append(self, text: RichText | str, style: str | Style | None = None) -> Text:
        """Add an untrusted text."""
        super().append(one_row(text) if isinstance(text, str) else text, style)
        return self


class Console(RichConsole):
    """A console that parses no markup and makes no links."""

    def on_broken_pipe(self) -> None:
        """Let the command line handle it: Rich would end the process with code 1."""
        raise BrokenPipeError

    def print(self, *objects: Any, **how: Any) -> None:
        r"""Print; lines that are too long for a terminal are wrapped between words.

        With ``soft_wrap=True`` they are not, such as in a table. For several lines, pass
        ``sep="\n"``.
        """
        are_lines = len(objects) == 1 or how.get("sep") == "\n"
        are_lines = are_lines and all(isinstance(each, str | RichText) for each in objects)
        if are_lines and how.get("soft_wrap") is None and self.is_terminal:
            texts = [self.render_str(each) if isinstance(each, str) else each for each in objects]
            objects = tuple(line for text in texts for line in wrapped(text, self.width))
            how["sep"] = "\n"
        super().print(*objects, **how)

    def render_str(self, text: str, **more: Any) -> RichText:
        """Take a plain string, such as a cell of a table, as an untrusted text."""
        return super().render_str(
            one_row(text), **more | {"markup": False, "emoji": False, "highlight": False}
        )

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Make every segment safe, whatever its source."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            if control:
                yield segment
                continue
            if style is not None and style.link:
                style = style.update_link(None)
            yield Segment(visible(text), style)


_WORD = re.compile(r"\S+\s*")


def wrapped(text: RichText, width: int) -> list[RichText]:
    """Wrap long lines between words; continuation lines are indented by two more.

    A word that is too long, such as a path, stays whole, so that it can be copied.
    """
    lines: list[RichText] = []
    for line in text.split("\n", allow_blank=True):
        plain = line.plain
        indent = len(plain) - len(plain.lstrip())
        below = " " * (indent + 2)
        breaks, used, is_empty = [], indent, True
        for word in _WORD.finditer(plain):
            if not is_empty and used + cell_len(word[0].rstrip()) > width:
                breaks.append(word.start())
                used = len(below)
            used += cell_len(word[0])
            is_empty = False
        for number, piece in enumerate(line.divide(breaks)):
            piece.rstrip()
            lines.append(RichText.assemble(below, piece) if number else piece)
    return lines


def console_for(out: IO[str]) -> Console:
    """Return a console; a file or a pipe gets lines in full, whatever the width of the screen."""
    console = Console(
        file=own_output(out), markup=False, emoji=False, highlight=False, soft_wrap=True
    )
    if not console.is_terminal:
        console.width = _COLUMNS_OF_FILE
    return console


def one_row(text: str) -> str:
    r"""Show a text in one line; only newlines, which come from Baton, are kept."""
    return visible_line(text) if text.strip("\n") else text


_ROOTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")


class Place(NamedTuple):
    """A file, relative to its repository if it is in one, and a line that counts from 1."""

    file: str
    line: int | None


def place_of(result: CaseResult) -> Place | None:
    """Return the place of a result's case in a file, else the file of its recorded trace."""
    if result.where is not None:
        return Place(_in_repository(result.where.file), result.where.line)
    location = result.recorded.location if result.recorded is not None else None
    return None if location is None else Place(_in_repository(location), None)


def _in_repository(file: str) -> str:
    """Return a path relative to the root of the CI checkout, else to the current folder."""
    path = Path(file).absolute()
    roots = [os.environ[name] for name in _ROOTS if os.environ.get(name)]
    for root in (*roots, os.getcwd()):  # noqa: PTH109 - the root may be a link
        if path.is_relative_to(root):
            return path.relative_to(root).as_posix()
    return file

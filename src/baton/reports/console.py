"""The terminal that reports are written to, and the texts that are drawn on it.

Nothing is parsed as markup, in no report: a style is given beside a text, never inside it. All
other modules draw with what is here, and with nothing else of Rich that takes texts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO, Any

from rich.console import Console as RichConsole
from rich.console import ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.style import Style
from rich.text import Text as RichText

from baton.model.visible import visible, visible_line
from baton.sink import own_output

_WIDE = 400


class Text(RichText):
    r"""A line in one or more styles, in which nothing hides and nothing acts on a terminal.

    A newline in it is shown as ``\n``, so that no name can start a line that looks like one of
    ours. To leave a line empty, start with ``Text("\n")``.
    """

    def __init__(self, text: str = "", style: str | Style = "", **more: Any) -> None:
        """Take a text of anybody."""
        super().__init__(one_row(text), style, **more)

    def append(self, text: RichText | str, style: str | Style | None = None) -> Text:
        """Add a text of anybody."""
        super().append(one_row(text) if isinstance(text, str) else text, style)
        return self


class Console(RichConsole):
    """A console that parses no markup and makes no links."""

    def on_broken_pipe(self) -> None:
        """Leave it to the command line, where Rich would end the process with code 1."""
        raise BrokenPipeError

    def render_str(self, text: str, **more: Any) -> RichText:
        """Take a plain string, such as a cell of a table, as a text of anybody."""
        return super().render_str(
            one_row(text), **more | {"markup": False, "emoji": False, "highlight": False}
        )

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Look once more at whatever is drawn, by whom it ever was made."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            if control:
                yield segment
                continue
            if style is not None and style.link:
                style = style.update_link(None)
            yield Segment(visible(text), style)


def console_for(out: IO[str]) -> Console:
    """Return a console; what goes to a file or a pipe is not cut to a screen's width."""
    console = Console(
        file=own_output(out), markup=False, emoji=False, highlight=False, soft_wrap=True
    )
    if not console.is_terminal:
        console.width = _WIDE
    return console


def one_row(text: str) -> str:
    r"""Show a text in one line; what is nothing but newlines is ours, and leaves lines empty."""
    return visible_line(text) if text.strip("\n") else text

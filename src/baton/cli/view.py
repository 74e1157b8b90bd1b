"""``baton view``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from baton.model import counted

from .options import Flag, Whole
from .serve import needs_server
from .usage_messages import note

if TYPE_CHECKING:
    from baton.web.view import Loaded


def view_command(*files: str, port: Whole = 0, no_open: Flag = False) -> int:
    """Look at recordings and evaluations in the browser, until Ctrl-C.

    Serves the pages of `baton serve` read-only, from a temporary store: nothing is received, and
    the files are not changed.

    Parameters
    ----------
    files
        Files and folders with recorded traces, and evaluation folders; those below .baton in this
        folder, if none are named.
    port
        The port of this machine to listen on; a free one by default.
    no_open
        Only print the address. A browser is opened only if the output is a terminal.
    """
    with needs_server():
        from baton.web.view import view

        def opened(address: str, loaded: Loaded) -> None:
            counts = [
                (loaded.conversations, "conversation"),
                (loaded.evaluations, "evaluation"),
            ]
            for problem in loaded.problems:
                note(f"could not be read: {problem}")
            summary = " and ".join(counted(count, what) for count, what in counts if count)
            path = "/conversations" if loaded.conversations else "/evaluations"
            print(f"{summary}: {address}{path}", flush=True)
            note("Ctrl-C ends it")
            if sys.stdout.isatty() and not no_open:
                import webbrowser

                webbrowser.open(address + path)

        view(files, port=port, note=note, opened=opened)
    return 0

"""``baton --install-completion``: names of commands and options, completed by the shell."""

from __future__ import annotations

from typing import Literal

from .app import app
from .messages import say


def install_completion(shell: Literal["bash", "fish", "zsh"] | None = None) -> int:
    """Let the shell complete commands and options.

    A script is written into the folder that the shell has for such scripts, and a line that loads
    it is added to the file that the shell starts with.

    Parameters
    ----------
    shell
        The shell; the one this runs in when left out.
    """
    file = app.install_completion(shell=shell)
    say(f"completion is in {file}; it works in every shell that is started from now on")
    return 0

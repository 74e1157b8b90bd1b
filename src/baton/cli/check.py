"""``baton check``."""

from __future__ import annotations

from baton.model import InputError
from baton.model.visible import visible_line
from baton.session.check import check

from .options import Flag, Words
from .usage_messages import note, say

WARNED = 1


def check_command(
    *files: str,
    strict: Flag = False,
    ignore: Words = (),
) -> int:
    """Check datasets, configs, rubrics, policies, traces and agent definitions; run nothing.

    A valid file that probably does not test what you meant gets a warning.

    Parameters
    ----------
    files
        Files or folders; the type of each is detected from its content. A folder of ADK agents
        gives the names to check cases against. Or conversations of a server: server://HOST/PROJECT.
    strict
        Exit with 1 when there are warnings.
    ignore
        A kind of warning to leave out, by the name in its brackets. May be given several times.
    """
    checked = check(files, ignore=ignore, on_file=lambda line: print(visible_line(line)), note=note)
    for warning in checked.warnings:
        say(f"warning: {warning}")
    if checked.problems:
        raise InputError(checked.problems)
    return WARNED if strict and checked.warnings else 0

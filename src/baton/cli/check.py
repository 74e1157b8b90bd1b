"""``baton check``."""

from __future__ import annotations

from pathlib import Path

from baton.lint import LintWarning
from baton.model import InputError, Problem, counted
from baton.model.visible import visible_line
from baton.session.check import check
from baton.session.file_kinds import is_for_server

from .options import Flag, Words
from .usage_messages import note, say

WARNED = 1


def check_command(
    *files: str,
    strict: Flag = False,
    ignore: Words = (),
) -> int:
    """Check datasets, configs, settings of servers, rubrics, policies, traces and definitions.

    Nothing is run.

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
    problems: list[Problem] = []
    others: list[str] = []
    for file in files:
        if not is_for_server(Path(file)):
            others.append(file)
            continue
        try:
            print(visible_line(f"{file}: {_settings(Path(file))}"))
        except InputError as error:
            problems += error.problems
    warnings: list[LintWarning] = []
    if others or not files:
        checked = check(
            others, ignore=ignore, on_file=lambda line: print(visible_line(line)), note=note
        )
        warnings, problems = checked.warnings, [*problems, *checked.problems]
    for warning in warnings:
        say(f"warning: {warning}")
    if problems:
        raise InputError(problems)
    return WARNED if strict and warnings else 0


def _settings(file: Path) -> str:
    """Check the settings of a server; return what they are in a few words."""
    from baton.server.settings import load_settings

    return f"settings of a server, {counted(len(load_settings(file).live_rules.rules), 'rule')}"

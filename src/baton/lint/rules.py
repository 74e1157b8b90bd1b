"""The rules there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from baton.model import InputError, Problem, suggestion

from . import (
    app_names,
    bare_turns,
    chain_openers,
    instruction_variables,
    internal_tools,
    missing_rubrics,
    state_types,
)
from .scope import Scope
from .warning import LintWarning

Rule = Callable[[Scope], Iterator[LintWarning]]
RULES: dict[str, Rule] = {
    internal_tools.NAME: internal_tools.internal_tools,
    bare_turns.NAME: bare_turns.bare_turns,
    state_types.NAME: state_types.state_types,
    instruction_variables.NAME: instruction_variables.instruction_variables,
    missing_rubrics.NAME: missing_rubrics.missing_rubrics,
    app_names.NAME: app_names.app_names,
    chain_openers.NAME: chain_openers.chain_openers,
}


def lint(scope: Scope, ignore: Collection[str] = ()) -> list[LintWarning]:
    """Return what the rules find, by file and line; ``ignore`` names rules to leave out."""
    found = {w for name, rule in RULES.items() if name not in ignore for w in rule(scope)}
    return sorted(found, key=lambda w: (w.file, w.line or 0, w.rule, w.what))


def refuse_unknown(names: Collection[str]) -> None:
    """Raise InputError for a name that no rule has, with the nearest ones."""
    problems = [
        Problem(message=f"no warning is called `{name}`; {suggestion(name, RULES)}")
        for name in names
        if name not in RULES
    ]
    if problems:
        raise InputError(problems)

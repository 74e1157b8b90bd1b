"""The rules there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from baton.lint import adk_rules, case_rules
from baton.model import InputError, Problem, suggestion

from .scope import LintWarning, Scope

Rule = Callable[[Scope], Iterator[LintWarning]]
RULES: dict[str, Rule] = {
    case_rules.INTERNAL_TOOLS_NAME: case_rules.internal_tools,
    case_rules.NAME: case_rules.bare_turns,
    adk_rules.STATE_TYPES_NAME: adk_rules.state_types,
    adk_rules.INSTRUCTION_VARIABLES_NAME: adk_rules.instruction_variables,
    case_rules.MISSING_RUBRICS_NAME: case_rules.missing_rubrics,
    adk_rules.NAME: adk_rules.app_names,
    case_rules.CHAIN_OPENERS_NAME: case_rules.chain_openers,
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

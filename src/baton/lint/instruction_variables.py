"""The rule for ``{name}`` in an ADK instruction that nothing gives a value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from baton.model import AgentCard

from .checked_files import CaseFile, LintWarning, Scope, opening_agent, stated_agents
from .read_adk_app import App

# `{name}` and `{{name}}`: ADK fills the first, and shows the second as it is.
_BRACES = re.compile(r"{+[^{}]*}+")


# The three scopes of state that ADK knows; `{artifact.x}` and JSON in braces are left as they are.
_PREFIXES = ("app", "user", "temp")


def variables(instruction: str) -> list[str]:
    """Return the names that have to be in the state, in order of appearance.

    ``{name?}`` may be missing, ``{artifact.name}`` is not state, and anything that is not a name
    (or has another prefix than ``app:``, ``user:`` and ``temp:``) is left as it is.
    """
    names: dict[str, None] = {}
    for match in _BRACES.finditer(instruction):
        name = match.group().lstrip("{").rstrip("}").strip()
        prefix, colon, rest = name.rpartition(":")
        if rest.isidentifier() and (not colon or prefix in _PREFIXES):
            names[name] = None
    return list(names)


INSTRUCTION_VARIABLE = "instruction-variable"


class _Lack(NamedTuple):
    """The first case without a variable, and the numbers of cases with and without it."""

    case: str
    line: int | None
    lacking: int
    given: int


# What goes wrong: the instruction says "You help {user_name}", the app gets it from a log-in, and a
# test has no log-in. ADK raises a KeyError before the model is asked.
def instruction_variables(scope: Scope) -> Iterator[LintWarning]:
    """Warn of a variable that gets a value neither from a case's state nor from the code.

    If only definitions of agents are known, unknown code may set it: then only variables of the
    opening agent count, and those that other cases of the file set.
    """
    for file in scope.cases:
        if file.adk:
            yield from _by_code(file)
        if file.adk and not file.apps and _play(scope, file):
            yield from _by_definitions(file, scope.agents)


def _by_code(file: CaseFile) -> Iterator[LintWarning]:
    for app in file.apps:
        # The code writes to the state with a computed key, so it may set any of them.
        if app.state_unclear:
            continue
        warned: set[str] = set()
        for instruction in app.instructions:
            for name in variables(instruction.text):
                # A name that occurs anywhere in the code as text may be set there.
                if name in warned or name in app.mentioned:
                    continue
                warned.add(name)
                lack = _lack(file, name, app)
                if lack is not None:
                    place = f"{instruction.file}:{instruction.line}"
                    yield _warning(file, lack, name, f"{_of(instruction.agent)} ({place})", "")


def _by_definitions(file: CaseFile, agents: Mapping[str, AgentCard]) -> Iterator[LintWarning]:
    opener = next(iter(agents)) if len(agents) == 1 else opening_agent(agents)
    for agent, card in agents.items():
        for name in variables(card.instructions or ""):
            lack = _lack(file, name, None)
            if lack is not None and (lack.given or agent == opener):
                unless = ", unless the code of the app does"
                yield _warning(file, lack, name, _of(agent), unless)


def _play(scope: Scope, file: CaseFile) -> bool:
    """Tell whether the defined agents are those that play a file's cases."""
    stated = {name for case in file.cases for name in stated_agents(case)}
    return stated <= scope.agents.keys() and (bool(stated) or len(scope.cases) == 1)


def _lack(file: CaseFile, name: str, app: App | None) -> _Lack | None:
    """Search a variable in all cases that may belong to the app; in all cases if it is ``None``."""
    first: tuple[str, int | None] | None = None
    lacking = given = 0
    for case, written in file.written():
        if app is not None and file.app_of(case) is not app:
            continue
        if name in case.state:
            given += 1
            continue
        first = first or (case.id, written.state_line())
        lacking += 1
    return _Lack(*first, lacking, given) if first is not None else None


def _of(agent: str | None) -> str:
    return "an agent" if agent is None else f"`{agent}`"


def _warning(file: CaseFile, lack: _Lack, name: str, agent: str, unless: str) -> LintWarning:
    more = f" and {lack.lacking - 1} more" if lack.lacking > 1 else ""
    return LintWarning(
        file=file.file,
        line=lack.line,
        rule=INSTRUCTION_VARIABLE,
        what=f"the instruction of {agent} has `{{{name}}}`, but it has no value in case "
        f"`{lack.case}`{more}{unless}: ADK fails with `Context variable not found`",
        remedy=f"add it to `state`, set it in a `before_agent_callback`, or write `{{{name}?}}`",
    )

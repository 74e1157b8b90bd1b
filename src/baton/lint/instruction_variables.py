"""Variables of an instruction that nothing gives a value before the first turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from baton.model import AgentCard

from .adk_app import App
from .definitions import opening_agent, stated_agents
from .scope import CaseFile, Scope
from .templates import variables
from .warning import LintWarning

NAME = "instruction-variable"


class _Lack(NamedTuple):
    """The first case without a variable, and in how many it is there and not."""

    case: str
    line: int | None
    lacking: int
    given: int


def instruction_variables(scope: Scope) -> Iterator[LintWarning]:
    """Warn of a variable that neither a case's state nor the code gives a value.

    Where only definitions of agents are known, code may do so all the same: then those of the
    agent that opens the conversation count, and those that other cases of the file do give.
    """
    for file in scope.cases:
        if file.adk:
            yield from _by_code(file)
        if file.adk and not file.apps and _play(scope, file):
            yield from _by_definitions(file, scope.agents)


def _by_code(file: CaseFile) -> Iterator[LintWarning]:
    for app in file.apps:
        if app.state_unclear:
            continue
        told: set[str] = set()
        for instruction in app.instructions:
            for name in variables(instruction.text):
                if name in told or name in app.mentioned:
                    continue
                told.add(name)
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
    """Tell whether the agents defined are those that play a file's cases."""
    stated = {name for case in file.cases for name in stated_agents(case)}
    return stated <= scope.agents.keys() and (bool(stated) or len(scope.cases) == 1)


def _lack(file: CaseFile, name: str, app: App | None) -> _Lack | None:
    """Look for a variable in all cases that may be of the app; of ``None``, in all."""
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
        rule=NAME,
        what=f"the instruction of {agent} has `{{{name}}}`, and nothing gives it a value in case "
        f"`{lack.case}`{more}{unless}: ADK breaks off with `Context variable not found`",
        remedy=f"add it to `state`, set it in a `before_agent_callback`, or write `{{{name}?}}`",
    )

"""Rules about cases beside the ADK app that plays them: names, state, variables."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from baton.model import AgentCard, suggestion

from .adk_app import App
from .case_rules import opening_agent, stated_agents
from .scope import CaseFile, LintWarning, Scope

NAME = "app-name"


def app_names(scope: Scope) -> Iterator[LintWarning]:
    """Warn of an app of a case, or an ``App`` in the code, that is named unlike its folder."""
    for file in scope.cases:
        if file.adk and file.apps:
            yield from _of_cases(file)
    apps = {app.folder: app for file in scope.cases for app in file.apps}
    for app in (apps | {app.folder: app for app in scope.apps}).values():
        if app.declared is not None and app.declared.name != app.name:
            yield LintWarning(
                file=app.declared.file,
                line=app.declared.line,
                rule=NAME,
                what=f"the app is named `{app.declared.name}` and its folder `{app.name}`: some "
                "versions of ADK find no session then",
                remedy=f'write `name="{app.name}"`',
            )


def _of_cases(file: CaseFile) -> Iterator[LintWarning]:
    """Warn once of each name."""
    told: set[str] = set()
    folders = sorted({app.name for app in file.apps})
    for case, written in file.written():
        name = case.session.app
        if name is None or name in folders or name in told:
            continue
        told.add(name)
        yield LintWarning(
            file=file.file,
            line=written.app_line(),
            rule=NAME,
            what=f"no folder of agents is called `{name}`, the app of case `{case.id}`: a server "
            "plays another app or none",
            remedy=suggestion(name, folders),
        )


STATE_TYPES_NAME = "state-type"
_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "text"} | {
    list: "a list",
    dict: "an object",
}


class _Seen(NamedTuple):
    case: str
    file: str
    line: int | None
    kind: str


def state_types(scope: Scope) -> Iterator[LintWarning]:
    """Warn of a value whose type differs from that of other cases of the app, or of its code.

    Null is left alone. Cases that name no app are compared within their file.
    """
    seen: dict[tuple[str, str], list[_Seen]] = defaultdict(list)
    for file in scope.cases:
        for case, written in file.written():
            app = case.session.app or file.file
            code = _kinds_in_code(file.app_of(case))
            for key, value in case.state.items():
                kind = _KINDS.get(type(value))
                if kind is None:
                    continue
                one = _Seen(case.id, file.file, written.state_line(key), kind)
                if code.get(key, kind) == kind:
                    seen[app, key].append(one)
                else:
                    where = f"the code of the app puts {code[key]} there"
                    yield _state_types_warning(one, key, where, f"write {code[key]}")
    for (_, key), found in seen.items():
        yield from _odd_ones(key, found)


def _odd_ones(key: str, found: list[_Seen]) -> Iterator[LintWarning]:
    """Find those of a kind that fewer cases have; of two as frequent, the later one is odd."""
    kinds = [one.kind for one in found]
    usual = max(dict.fromkeys(kinds), key=kinds.count)
    tied = [kinds.count(kind) for kind in set(kinds)].count(kinds.count(usual)) > 1
    remedy = "write in both what the tools expect" if tied else f"write {usual}"
    if len(set(kinds)) > 1:
        first = next(one for one in found if one.kind == usual)
        for one in found:
            if one.kind != usual:
                place = first.file if first.line is None else f"{first.file}:{first.line}"
                other = f"it is {usual} in case `{first.case}` ({place})"
                yield _state_types_warning(one, key, other, remedy)


def _state_types_warning(one: _Seen, key: str, other: str, remedy: str) -> LintWarning:
    return LintWarning(
        file=one.file,
        line=one.line,
        rule=STATE_TYPES_NAME,
        what=f"state `{key}` of case `{one.case}` is {one.kind}, and {other}: "
        "tools that work with the one break on the other",
        remedy=remedy,
    )


def _kinds_in_code(app: App | None) -> dict[str, str]:
    """Return what the code of an app puts into the state, where it is always of one kind."""
    found: dict[str, str] = {}
    for key, types in app.state_types.items() if app is not None else ():
        kinds = {_KINDS.get(type_) for type_ in types - {type(None)}}
        kind = kinds.pop() if len(kinds) == 1 else None
        if kind is not None:
            found[key] = kind
    return found


_BRACES = re.compile(r"{+[^{}]*}+")
_PREFIXES = ("app", "user", "temp")


def variables(instruction: str) -> list[str]:
    """Return the names that have to be in the state, in order of appearance.

    ``{name?}`` may be missing, ``{artifact.name}`` is no state, and what is no name (or has
    another prefix than ``app:``, ``user:`` and ``temp:``) stays as it is.
    """
    names = (
        match.group().lstrip("{").rstrip("}").strip() for match in _BRACES.finditer(instruction)
    )
    return list(dict.fromkeys(name for name in names if _is_state(name)))


def _is_state(name: str) -> bool:
    prefix, colon, rest = name.rpartition(":")
    return rest.isidentifier() and (not colon or prefix in _PREFIXES)


INSTRUCTION_VARIABLES_NAME = "instruction-variable"


class _Lack(NamedTuple):
    """The first case without a variable, and in how many it is there and not."""

    case: str
    line: int | None
    lacking: int
    given: int


def instruction_variables(scope: Scope) -> Iterator[LintWarning]:
    """Warn of a variable that neither a case's state nor the code gives a value.

    Where only definitions of agents are known, code may do so anyway: then those of the
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
        rule=INSTRUCTION_VARIABLES_NAME,
        what=f"the instruction of {agent} has `{{{name}}}`, and nothing gives it a value in case "
        f"`{lack.case}`{more}{unless}: ADK breaks off with `Context variable not found`",
        remedy=f"add it to `state`, set it in a `before_agent_callback`, or write `{{{name}?}}`",
    )

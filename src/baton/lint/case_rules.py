"""The rules: what is valid in cases, criteria and ADK apps, but tests nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from baton.evaluators.agent_chain import AgentChain
from baton.evaluators.tool_calls import ToolCalls
from baton.evaluators.tool_trajectory_avg_score import ToolTrajectoryAvgScore
from baton.formats.key_case import snake
from baton.model import Case, ExpectedTurn, InputError, Problem, suggestion

from .adk_rules import (
    FUNCTION_AGENT,
    SEARCH_METRIC,
    SECOND_PARENT,
    THINKING,
    UNKNOWN_AGENT,
    UNKNOWN_TOOL,
    function_agents,
    search_metrics,
    second_parents,
    thinking_models,
    unknown_agents,
    unknown_tools,
)
from .checked_files import (
    CaseFile,
    CriteriaFile,
    LintWarning,
    Scope,
    Written,
    opening_agent,
    stated_agents,
)
from .instruction_variables import INSTRUCTION_VARIABLE, instruction_variables
from .read_adk_app import App
from .read_adk_code import MODEL_TOOLS

BARE_TURN = "bare-turn"


# What goes wrong: the author stated the calls of turn 1 and left the others open. ADK reads a
# missing `tool_uses` as an empty list, so under EXACT any call in turn 2 fails the case. A case in
# which no turn states calls is ignored: it was not written to test calls.
def bare_turns(scope: Scope) -> Iterator[LintWarning]:
    """Warn of turns without `tool_uses`: ADK's exact matching lets them call nothing."""
    for file in scope.cases:
        for case, written in file.written():
            if not any(turn.tool_calls for turn in case.turns):
                continue
            bare = [n for n, turn in enumerate(case.turns, 1) if turn.tool_calls is None]
            # IN_ORDER and ANY_ORDER allow further calls; and with a threshold of 0 nothing fails.
            is_exact = any(
                evaluator.match_type == "EXACT" and evaluator.threshold > 0
                for evaluator in file.scored_by(case, ToolTrajectoryAvgScore)
            )
            if bare and is_exact:
                turns = f"turn{'' if len(bare) == 1 else 's'} {', '.join(map(str, bare))}"
                yield LintWarning(
                    file=file.file,
                    line=written.turn_line(bare[0] - 1),
                    rule=BARE_TURN,
                    what=f"{turns} of case `{case.id}` without `tool_uses`, while others have "
                    "them: under EXACT matching a call there fails the turn",
                    remedy="state its calls, `[]` for none, or set `match_type` to IN_ORDER",
                )


INTERNAL_TOOL = "internal-tool"
_SCORES_CALLS = ("tool_trajectory_avg_score", "tool_calls")


def internal_tools(scope: Scope) -> Iterator[LintWarning]:
    """Warn of expected calls that no run can have.

    Recorded calls, and the user's own functions with such a name, are ignored.
    """
    for file in scope.cases:
        if file.adk and any(p.evaluator.type in _SCORES_CALLS for p in file.evaluators):
            yield from _internal_tools_in(file, scope.functions)


def _internal_tools_in(file: CaseFile, functions: frozenset[str]) -> Iterator[LintWarning]:
    own = functions.union(*(app.functions for app in file.apps))
    for case, written in file.written():
        if not any(_named(call.name, own) for t in case.turns for call in t.tool_calls or ()):
            continue
        for turn in range(len(case.turns)):
            for call in written.calls(turn):
                # A call with a recorded result is from a real run, so there is such a function.
                if _named(call.name, own) and not call.recorded:
                    yield LintWarning(
                        file=file.file,
                        line=call.line,
                        rule=INTERNAL_TOOL,
                        what=f"`{call.name}` is expected in case `{case.id}`, but "
                        f"{MODEL_TOOLS[call.name]} happens inside the model: no call is recorded",
                        remedy="remove it, and check the answer instead",
                    )


def _named(name: str, own: frozenset[str]) -> bool:
    return name in MODEL_TOOLS and name not in own


NO_RUBRICS = "no-rubrics"
# ADK takes rubrics of a case only if their `type` is that of the metric. Rubrics without a type, or
# with a misspelt one, are silently ignored, and the metric has nothing to evaluate.
_TYPES = {
    "rubric_based_final_response_quality_v1": "FINAL_RESPONSE_QUALITY",
    "rubric_based_tool_use_quality_v1": "TOOL_USE_QUALITY",
    "rubric_based_multi_turn_trajectory_quality_v1": "TRAJECTORY_QUALITY",
}


def missing_rubrics(scope: Scope) -> Iterator[LintWarning]:
    """Warn of a rubric metric that has no rubrics, and no case has rubrics of its type."""
    for file in scope.criteria:
        for name, criterion, line in file.criteria():
            if name in _TYPES and not _rubrics(criterion):
                types = _types_in_cases(file)
                in_cases = ", nor has a case"
                if types:
                    in_cases = f", and rubrics of cases count only with `type` {_TYPES[name]}"
                if _TYPES[name] not in types:
                    yield LintWarning(
                        file=file.document.file,
                        line=line,
                        rule=NO_RUBRICS,
                        what=f"`{name}` has no `rubrics`{in_cases}: ADK then evaluates nothing",
                        remedy="write it as an object with `threshold` and `rubrics`",
                    )


def _rubrics(criterion: Any) -> Any:
    if not isinstance(criterion, dict):
        return None
    return next((item for key, item in criterion.items() if snake(str(key)) == "rubrics"), None)


def _types_in_cases(file: CriteriaFile) -> set[str | None]:
    return {
        rubric.type
        for cases in file.scores
        for case in cases.cases
        for rubric in (*case.rubrics, *(r for turn in case.turns for r in turn.rubrics or ()))
    }


NO_CALLS = "no-calls"
_SHARES_OF_EXPECTED = frozenset({"in_order", "any_order", "partial", "recall"})


# What goes wrong: a case says `tools: []` so that no tool is called. Under the default, `in_order`,
# it passes whatever is called, as an empty list is a part of each list.
def no_calls(scope: Scope) -> Iterator[LintWarning]:
    """Warn of a case that states only empty lists of calls, if its modes allow other calls."""
    for file in scope.cases:
        for case, written in file.written():
            stated = [place for place, turn in enumerate(case.turns) if turn.tool_calls is not None]
            if not stated or any(case.turns[place].tool_calls for place in stated):
                continue
            line = written.tools_line(stated[0])
            if line is None:
                continue
            lax = [
                each.mode in _SHARES_OF_EXPECTED and each.allow_extra
                for each in file.scored_by(case, ToolCalls)
            ]
            if lax and all(lax) and not any(file.scored_by(case, ToolTrajectoryAvgScore)):
                yield LintWarning(
                    file=file.file,
                    line=line,
                    rule=NO_CALLS,
                    what=f"case `{case.id}` expects no calls, and `tool_calls` allows others: it "
                    "passes whatever is called",
                    remedy="set `mode: exact` or `allow_extra: false`",
                )


CHAIN_OPENER = "chain-opener"


class _Opener(NamedTuple):
    """The agent that opens a conversation, with all its names."""

    name: str
    names: frozenset[str]


# What goes wrong: a case says `agents: [billing]`, as the author thinks of the agent that does the
# work. The trace has `[router, billing]`, and under `exact` the case fails on every good run.
def chain_openers(scope: Scope) -> Iterator[LintWarning]:
    """Warn of a chain without the opener that has to match exactly, or allows no more agents.

    That is certain if only dispatches state the chain, and in the first turn of a session if its
    opening agent is known, from an app's code or from definitions of agents.
    """
    for file in scope.cases:
        for case, written in file.written():
            strict = _strictness(file, case)
            if strict is None:
                continue
            opener = _opener(scope, file, case)
            for place, turn in enumerate(case.turns):
                fresh = place == 0 or turn.new_session
                missing = _missing(turn, written, place, strict, opener if fresh else None)
                if missing is not None:
                    yield LintWarning(
                        file=file.file,
                        line=written.agents_line(place),
                        rule=CHAIN_OPENER,
                        what=f"turn {place + 1} of case `{case.id}` states {_names(turn)} without "
                        f"{missing}, and `{strict}` makes it fail",
                        remedy=f"put it first, or set {_looser(file, case)}",
                    )


def _opener(scope: Scope, file: CaseFile, case: Case) -> _Opener | None:
    """Return the agent that opens a case, if all agents it states belong to the same system."""
    recorded = {ours: name for name, ours in file.agent_names.items()}
    stated = {recorded.get(name, name) for name in stated_agents(case)}
    app = file.app_of(case)
    if app is not None and app.root is not None:
        name, known = app.root, app.mentioned
    else:
        name = opening_agent(scope.agents) or ""
        aliases = {alias for card in scope.agents.values() for alias in card.aliases}
        known = frozenset(scope.agents.keys() | aliases)
    if not name or not stated <= known:
        return None
    also = scope.agents[name].aliases if name in scope.agents else ()
    return _Opener(file.agent_names.get(name, name), frozenset((name, *also)))


_EXACT, _NO_EXTRA = "sequence_match_type: exact", "allow_extra_agents: false"


def _strictness(file: CaseFile, case: Case) -> str | None:
    """Return the option that makes the chain of a case strict."""
    for evaluator in file.scored_by(case, AgentChain):
        if evaluator.sequence_match_type == "exact":
            return _EXACT
        if not evaluator.allow_extra_agents:
            return _NO_EXTRA
    return None


def _looser(file: CaseFile, case: Case) -> str:
    """Return the options that allow another agent: both if a chain is strict in both ways."""
    evaluators = list(file.scored_by(case, AgentChain))
    options = []
    if any(each.sequence_match_type == "exact" for each in evaluators):
        options.append("`sequence_match_type: subset`")
    if not all(each.allow_extra_agents for each in evaluators):
        options.append("`allow_extra_agents: true`")
    return " and ".join(options)


def _missing(
    turn: ExpectedTurn, written: Written, place: int, strict: str, opener: _Opener | None
) -> str | None:
    """Say which agent is missing from a chain; ``None`` when none is known to be."""
    stages = _stages(turn)
    if not stages:
        return None
    every = {name for stage in stages for name in stage}
    if opener is not None:
        named = {opener.name, *opener.names} & (set(stages[0]) if strict == _EXACT else every)
        return None if named else f"`{opener.name}`, which opens it"
    # If the chain comes from `transfer_to_agent` calls, an agent made the first of them, and it is
    # not among the targets.
    if (strict == _EXACT or len(every) == 1) and written.told_by_transfers(place):
        return "the agent that hands over first, which opens it"
    return None


def _stages(turn: ExpectedTurn) -> list[list[str]]:
    return [[one] if isinstance(one, str) else one.any_order for one in turn.agents or ()]


def _names(turn: ExpectedTurn) -> str:
    stages = _stages(turn)
    shown = (s[0] if len(s) == 1 else "{" + ", ".join(s) + "}" for s in stages)
    return f"`[{', '.join(shown)}]`"


APP_NAME = "app-name"


# What goes wrong: the server looks for a folder with the name of the app, and creates sessions
# under the name in the code. If they differ, a session is created and not found.
def app_names(scope: Scope) -> Iterator[LintWarning]:
    """Warn of an app of a case, or an ``App`` in the code, whose name differs from its folder."""
    for file in scope.cases:
        if file.adk and file.apps:
            yield from _app_names_of_cases(file)
    apps = {app.folder: app for file in scope.cases for app in file.apps}
    for app in (apps | {app.folder: app for app in scope.apps}).values():
        if app.declared is not None and app.declared.name != app.name:
            yield LintWarning(
                file=app.declared.file,
                line=app.declared.line,
                rule=APP_NAME,
                what=f"the app is named `{app.declared.name}` and its folder `{app.name}`: some "
                "versions of ADK then find no session",
                remedy=f'write `name="{app.name}"`',
            )


def _app_names_of_cases(file: CaseFile) -> Iterator[LintWarning]:
    """Warn of each name once."""
    warned: set[str] = set()
    folders = sorted({app.name for app in file.apps})
    for case, written in file.written():
        name = case.session.app
        if name is None or name in folders or name in warned:
            continue
        warned.add(name)
        yield LintWarning(
            file=file.file,
            line=written.app_line(),
            rule=APP_NAME,
            what=f"no folder of agents is called `{name}`, the app of case `{case.id}`: a server "
            "plays another app or none",
            remedy=suggestion(name, folders),
        )


STATE_TYPE = "state-type"
_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "text"} | {
    list: "a list",
    dict: "an object",
}


class _Seen(NamedTuple):
    case: str
    file: str
    line: int | None
    kind: str


# What goes wrong: `order_id: 88` in one case and `order_id: "88"` in the others. The tool compares
# it with a text, finds no order, and the case fails for a reason that is not the agent's.
def state_types(scope: Scope) -> Iterator[LintWarning]:
    """Warn of a value whose type differs from that of other cases of the app, or of its code.

    Null is ignored. Cases that name no app are compared within their file.
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
    for (_, key), places in seen.items():
        yield from _odd_ones(key, places)


def _odd_ones(key: str, places: list[_Seen]) -> Iterator[LintWarning]:
    """Find values of the rarer type; if two types are equally frequent, the later one is odd."""
    kinds = [one.kind for one in places]
    # Most cases are right. If two types are equally frequent, it is unknown which is right, and the
    # warning says so.
    usual = max(dict.fromkeys(kinds), key=kinds.count)
    tied = [kinds.count(kind) for kind in set(kinds)].count(kinds.count(usual)) > 1
    remedy = "use the type that the tools expect in both" if tied else f"write {usual}"
    if len(set(kinds)) > 1:
        first = next(one for one in places if one.kind == usual)
        for one in places:
            if one.kind != usual:
                place = first.file if first.line is None else f"{first.file}:{first.line}"
                other = f"it is {usual} in case `{first.case}` ({place})"
                yield _state_types_warning(one, key, other, remedy)


def _state_types_warning(one: _Seen, key: str, other: str, remedy: str) -> LintWarning:
    return LintWarning(
        file=one.file,
        line=one.line,
        rule=STATE_TYPE,
        what=f"state `{key}` of case `{one.case}` is {one.kind}, and {other}: "
        "a tool that works with one fails with the other",
        remedy=remedy,
    )


def _kinds_in_code(app: App | None) -> dict[str, str]:
    """Return what the code of an app stores in the state, if it always has the same type."""
    kinds: dict[str, str] = {}
    for key, types in app.state_types.items() if app is not None else ():
        possible = {_KINDS.get(type_) for type_ in types - {type(None)}}
        kind = possible.pop() if len(possible) == 1 else None
        if kind is not None:
            kinds[key] = kind
    return kinds


Rule = Callable[[Scope], Iterator[LintWarning]]
RULES: dict[str, Rule] = {
    INTERNAL_TOOL: internal_tools,
    BARE_TURN: bare_turns,
    STATE_TYPE: state_types,
    INSTRUCTION_VARIABLE: instruction_variables,
    NO_RUBRICS: missing_rubrics,
    APP_NAME: app_names,
    CHAIN_OPENER: chain_openers,
    NO_CALLS: no_calls,
    FUNCTION_AGENT: function_agents,
    SECOND_PARENT: second_parents,
    SEARCH_METRIC: search_metrics,
    THINKING: thinking_models,
    UNKNOWN_AGENT: unknown_agents,
    UNKNOWN_TOOL: unknown_tools,
}


def lint(scope: Scope, ignore: Collection[str] = ()) -> list[LintWarning]:
    """Return the warnings of the rules, by file and line; ``ignore`` names rules to leave out."""
    warnings = {w for name, rule in RULES.items() if name not in ignore for w in rule(scope)}
    return sorted(warnings, key=lambda w: (w.file, w.line or 0, w.rule, w.what))


def refuse_unknown(names: Collection[str]) -> None:
    """Raise InputError for an unknown rule name, with similar ones."""
    problems = [
        Problem(message=f"no warning is called `{name}`; {suggestion(name, RULES)}")
        for name in names
        if name not in RULES
    ]
    if problems:
        raise InputError(problems)

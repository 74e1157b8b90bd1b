"""Rules about cases and criteria that are valid and still do not test what was meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from baton.evaluators.agent_chain import AgentChain
from baton.evaluators.tool_trajectory_avg_score import ToolTrajectoryAvgScore
from baton.formats.spelling import snake
from baton.model import AgentCard, Case, ExpectedTurn

from .scope import CaseFile, CriteriaFile, LintWarning, Scope, Written

NAME = "bare-turn"


def bare_turns(scope: Scope) -> Iterator[LintWarning]:
    """Warn of turns without `tool_uses`: ADK's exact matching lets them call nothing."""
    for file in scope.cases:
        for case, written in file.written():
            bare = _bare(case)
            if bare and _is_exact(file, case):
                yield LintWarning(
                    file=file.file,
                    line=written.turn_line(bare[0]),
                    rule=NAME,
                    what=f"{_turns(bare)} of case `{case.id}` without `tool_uses`, and others "
                    "have them: under EXACT matching a call there fails the turn",
                    remedy="state its calls, `[]` for none, or set `match_type` to IN_ORDER",
                )


def _bare(case: Case) -> list[int]:
    """Return the turns that state nothing, where another one states calls."""
    if not any(turn.tool_calls for turn in case.turns):
        return []
    return [place for place, turn in enumerate(case.turns) if turn.tool_calls is None]


def _is_exact(file: CaseFile, case: Case) -> bool:
    return any(
        evaluator.match_type == "EXACT" and evaluator.threshold > 0
        for evaluator in file.scored_by(case, ToolTrajectoryAvgScore)
    )


def _turns(bare: list[int]) -> str:
    numbers = ", ".join(str(place + 1) for place in bare)
    return f"turn {numbers}" if len(bare) == 1 else f"turns {numbers}"


INTERNAL_TOOLS_NAME = "internal-tool"
_INTERNAL = {
    "google_search": "Google Search",
    "GoogleSearchTool": "Google Search",
    "google_search_retrieval": "Google Search",
    "enterprise_web_search": "Enterprise Web Search",
    "url_context": "URL context",
    "UrlContextTool": "URL context",
    "code_execution": "code execution",
    "code_executor": "code execution",
    "built_in_code_execution": "code execution",
    "BuiltInCodeExecutor": "code execution",
    "vertex_ai_search": "Vertex AI Search",
    "VertexAiSearchTool": "Vertex AI Search",
}
_SCORES_CALLS = ("tool_trajectory_avg_score", "tool_calls")


def internal_tools(scope: Scope) -> Iterator[LintWarning]:
    """Warn of expected calls that no run can have.

    A call that was recorded, and a function of the user's own with such a name, are left alone.
    """
    for file in scope.cases:
        if file.adk and any(p.evaluator.type in _SCORES_CALLS for p in file.evaluators):
            yield from _in_file(file, scope.functions)


def _in_file(file: CaseFile, functions: frozenset[str]) -> Iterator[LintWarning]:
    own = functions.union(*(app.functions for app in file.apps))
    for case, written in file.written():
        if not any(_named(call.name, own) for t in case.turns for call in t.tool_calls or ()):
            continue
        for turn in range(len(case.turns)):
            for call in written.calls(turn):
                if _named(call.name, own) and not call.recorded:
                    yield LintWarning(
                        file=file.file,
                        line=call.line,
                        rule=INTERNAL_TOOLS_NAME,
                        what=f"`{call.name}` is expected in case `{case.id}`, and "
                        f"{_INTERNAL[call.name]} happens inside the model: no call is recorded",
                        remedy="take it out, and check the answer instead",
                    )


def _named(name: str, own: frozenset[str]) -> bool:
    return name in _INTERNAL and name not in own


MISSING_RUBRICS_NAME = "no-rubrics"
_TYPES = {
    "rubric_based_final_response_quality_v1": "FINAL_RESPONSE_QUALITY",
    "rubric_based_tool_use_quality_v1": "TOOL_USE_QUALITY",
    "rubric_based_multi_turn_trajectory_quality_v1": "TRAJECTORY_QUALITY",
}


def missing_rubrics(scope: Scope) -> Iterator[LintWarning]:
    """Warn of a rubric metric without rubrics of its own, or of its type in any case."""
    for file in scope.criteria:
        value = file.document.value()
        top = value if isinstance(value, dict) else {}
        key = next((key for key in top if snake(str(key)) == "criteria"), None)
        criteria = top[key] if key is not None else None
        for name, criterion in criteria.items() if isinstance(criteria, dict) else ():
            if name in _TYPES and not _rubrics(criterion):
                types = _types_in_cases(file)
                if _TYPES[name] not in types:
                    yield LintWarning(
                        file=file.document.file,
                        line=file.document.line((str(key), name)),
                        rule=MISSING_RUBRICS_NAME,
                        what=f"`{name}` has no `rubrics`{_in_cases(types, _TYPES[name])}: "
                        "ADK evaluates nothing then",
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


def _in_cases(types: set[str | None], wanted: str) -> str:
    if types:
        return f", and rubrics of cases count only with `type` {wanted}"
    return ", nor has a case"


def stated_agents(case: Case) -> set[str]:
    """Return the agents whose names a case states as those that should run."""
    stages = [stage for turn in case.turns for stage in turn.agents or ()]
    return {n for one in stages for n in ([one] if isinstance(one, str) else one.any_order)}


def opening_agent(agents: Mapping[str, AgentCard]) -> str | None:
    """Return the one agent that no other has as a sub-agent or a tool, and that has some."""
    below = {name: _below(card) & agents.keys() for name, card in agents.items()}
    led = set().union(*below.values())
    above = [name for name, card in agents.items() if name not in led and card.kind == "agent"]
    return above[0] if len(above) == 1 and below[above[0]] else None


def _below(card: AgentCard) -> set[str]:
    return {*card.sub_agents, *(card.tools if isinstance(card.tools, list) else ())}


CHAIN_OPENERS_NAME = "chain-opener"


class _Opener(NamedTuple):
    """The agent that opens a conversation, under all its names."""

    name: str
    names: frozenset[str]


def chain_openers(scope: Scope) -> Iterator[LintWarning]:
    """Warn of a chain that has to match exactly, or allows no more agents, and lacks the opener.

    That is certain where only hand-offs state the chain, and in the first turn of a session
    where the agent that opens it is known: from an app's code or from definitions of agents.
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
                        rule=CHAIN_OPENERS_NAME,
                        what=f"turn {place + 1} of case `{case.id}` states {_names(turn)} without "
                        f"{missing}, and `{strict}` makes it fail",
                        remedy=f"put it first, or set `{_LOOSER[strict]}`",
                    )


def _opener(scope: Scope, file: CaseFile, case: Case) -> _Opener | None:
    """Return the agent that opens a case, where all agents it states are of the same system."""
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
_LOOSER = {_EXACT: "sequence_match_type: subset", _NO_EXTRA: "allow_extra_agents: true"}


def _strictness(file: CaseFile, case: Case) -> str | None:
    """Return the option that makes the chain of a case strict."""
    for evaluator in file.scored_by(case, AgentChain):
        if evaluator.sequence_match_type == "exact":
            return _EXACT
        if not evaluator.allow_extra_agents:
            return _NO_EXTRA
    return None


def _missing(
    turn: ExpectedTurn, written: Written, place: int, strict: str, opener: _Opener | None
) -> str | None:
    """Say which agent is missing from a chain; ``None`` when none is known to be."""
    stages = _stages(turn)
    if not stages:
        return None
    every = {name for stage in stages for name in stage}
    if opener is not None:
        found = {opener.name, *opener.names} & (set(stages[0]) if strict == _EXACT else every)
        return None if found else f"`{opener.name}`, which opens it"
    if (strict == _EXACT or len(every) == 1) and written.told_by_transfers(place):
        return "the agent that hands over first, which opens it"
    return None


def _stages(turn: ExpectedTurn) -> list[list[str]]:
    return [[one] if isinstance(one, str) else one.any_order for one in turn.agents or ()]


def _names(turn: ExpectedTurn) -> str:
    stages = _stages(turn)
    shown = (s[0] if len(s) == 1 else "{" + ", ".join(s) + "}" for s in stages)
    return f"`[{', '.join(shown)}]`"

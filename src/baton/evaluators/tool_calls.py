"""`tool_calls`: which tools were called, with which arguments, in which order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

import msgspec

from baton.evaluators.matching.call_pairing import Mode, pair_calls, turn_score
from baton.evaluators.matching.call_report import (
    CallDetails,
    TurnCalls,
    evidence,
    only_more_arguments,
    turn_calls,
    turn_details,
    wrong,
)
from baton.evaluators.matching.call_rules import ArgumentMode, CallRules, Made, NameMode, Rule
from baton.formats.adk import TRANSFER_TOOL
from baton.model import (
    AgentRun,
    Case,
    EvalContext,
    ExpectedToolCall,
    Score,
    Trace,
    Turn,
    known,
)
from baton.model.score import passes
from baton.model.views import (
    placed_calls,
    possible_agents,
    run_names,
    tool_calls,
    turn_tree,
)
from baton.plugins import FROM_CASES, Alias

from .base_evaluator import NO_DEFINITION, Pair, TurnEvaluator, Unknown, Which, describe


class Scope(msgspec.Struct, frozen=True):
    """The examined runs and their calls. ``unknown`` is why they are unknown."""

    runs: list[AgentRun]
    calls: list[Made]
    nameless: frozenset[str]
    bare: frozenset[str]
    unknown: str | None


def calls_in_scope(
    trace: Trace,
    turn: Turn,
    *,
    agents: str | None = None,
    also: Collection[str] = (),
    dispatches: Literal["include", "exclude"] = "include",
    renames: Mapping[str, str],
) -> Scope:
    """Collect the calls of a turn in time order.

    ``agents``: ``None`` selects the runs that are not started by delegates, which are the ones
    visible from outside the system, and the runs of agents in ``also``. ``all`` selects every run.
    Any other word selects the runs of that agent. ``nameless`` and ``bare`` have the ids of calls
    whose agent or arguments the source did not record.
    """
    runs: list[AgentRun] = turn.runs
    unknown: str | None = None
    if not known(trace, turn, "runs"):
        unknown = (
            "the source did not record what agents did; record events or spans with tool calls"
        )
    elif agents is None:
        # In the usual case no run is below another.
        if any(d.kind == "delegate" for each in trace.turns for d in each.dispatches):
            outside = {node.run.id for node in turn_tree(trace, turn)}
            runs = [
                run
                for run in turn.runs
                if run.id in outside or not set(also).isdisjoint(_names(trace, run, renames))
            ]
    elif agents == "all":
        pass
    elif not all(known(trace, run, "agent") for run in turn.runs):
        unknown = (
            f"the source did not record which agents ran, so the calls of `{agents}` are not "
            "known; record events or spans that name their agents"
        )
    else:
        runs = [run for run in turn.runs if agents in _names(trace, run, renames)]
    callers: dict[str, tuple[str, frozenset[str]]] = {}
    unnamed: set[str] = set()
    nameless: set[str] = set()
    bare: set[str] = set()
    calls: list[Made] = []
    for run, call in placed_calls(runs, dispatches=dispatches):
        caller = callers.get(run.id)
        if caller is None:
            names = _names(trace, run, renames)
            caller = callers[run.id] = names[0], frozenset(names)
            if not known(trace, run, "agent"):
                unnamed.add(run.id)
        name, names_of_agent = caller
        calls.append(Made(call.id, call.name, call.arguments, name, names_of_agent))
        if unnamed and run.id in unnamed:
            nameless.add(call.id)
        # Present arguments are known, unless the call itself marks them as unknown.
        if (call.unknown or call.arguments is None) and not known(trace, call, "arguments"):
            bare.add(call.id)
    for run in runs:
        unknown = unknown or _no_steps(trace, run)
    return Scope(runs, calls, frozenset(nameless), frozenset(bare), unknown)


def _no_steps(trace: Trace, run: AgentRun) -> str | None:
    if known(trace, run, "steps.tool_call"):
        return None
    return (
        f"the source did not record the steps of `{run.agent}`, so its calls are not known; "
        "record events or spans of that agent as well"
    )


def unknown_of(
    scope: Scope, wanted: Sequence[ExpectedToolCall], tools: frozenset[str] | None
) -> str | None:
    """Return what is needed about the calls but unknown, or ``None`` if nothing is.

    ``tools`` are the called tools whose arguments matter, or ``None`` for all.
    """
    if scope.unknown is not None:
        return scope.unknown
    if scope.nameless and any(call.agent is not None for call in wanted):
        return (
            "the source did not record which agent made its calls, and the case states it; "
            "record events or spans that name their agents"
        )
    for call in scope.calls:
        if call.id in scope.bare and (tools is None or call.name in tools):
            return (
                f"the source did not record the arguments of `{call.name}`; record the content "
                "of calls as well, or compare names only"
            )
    return None


def callers_beyond(
    scope: Scope, trace: Trace, turn: Turn, tool: str, renames: Mapping[str, str]
) -> list[str]:
    """Return the agents that called a tool in runs that are not evaluated."""
    seen = {run.id for run in scope.runs}
    others = placed_calls([r for r in turn.runs if r.id not in seen], dispatches="include")
    return sorted({_names(trace, run, renames)[0] for run, call in others if call.name == tool})


def _names(trace: Trace, run: AgentRun, renames: Mapping[str, str]) -> list[str]:
    return [renames.get(name, name) for name in run_names(trace, run)]


_ALIASES = (
    Alias(
        "trajectory_evaluator",
        "TrajectoryEvaluator",
        presets={"mode": "exact", "arguments": "ignore", "threshold": 0.5},
        renames={
            "argument_similarity_threshold": "argument_similarity",
            "allow_extra_tools": "allow_extra",
            "tool_name_match": "names",
            "min_score_threshold": "threshold",
        },
        values=(
            (
                "sequence_match_type",
                {
                    "exact": {"mode": "exact"},
                    "flexible": {"mode": "recall"},
                    "subset": {"mode": "recall"},
                    "superset": {"mode": "precision"},
                    "partial": {"mode": "partial"},
                },
            ),
            ("compare_arguments", {True: {"arguments": "exact"}, False: {}}),
            (
                "argument_match_type",
                {
                    "exact": {"arguments": "exact"},
                    "subset": {"arguments": "subset"},
                    "regex": {"arguments": "regex"},
                    "fuzzy": {"arguments": "similar"},
                },
            ),
            ("compare_arguments", {True: {}, False: {"arguments": "ignore"}}),
        ),
    ),
    Alias(
        "trajectory_match",
        "TrajectoryMatch",
        presets={"mode": "exact"},
        values=(
            (
                "trajectory_match_mode",
                {
                    "strict": {"mode": "exact"},
                    "unordered": {"mode": "f1", "threshold": 1.0},
                    "superset": {"mode": "any_order"},
                    "subset": {"mode": "precision", "threshold": 1.0},
                },
            ),
            # In that tool, `subset` means about the actual arguments what ours means about the
            # expected ones.
            (
                "tool_args_match_mode",
                {
                    "exact": {"arguments": "exact"},
                    "ignore": {"arguments": "ignore"},
                    "subset": {"arguments": "superset"},
                    "superset": {"arguments": "subset"},
                },
            ),
        ),
    ),
)
"""The names in judge-llm and agentevals, with their options mapped to ours."""

_EXTRA_COUNTS = frozenset({"exact", "precision", "f1"})


class ToolCalls(TurnEvaluator[TurnCalls], frozen=True, kw_only=True, dict=True):
    """Compares the tool calls of every turn that states some."""

    type = "tool_calls"
    summary = "which tools were called, with which arguments, in which order"
    aliases = _ALIASES
    checks = frozenset({"tools"})
    states = ("tool_calls",)
    stated_as = "tool calls"
    details = CallDetails

    mode: Annotated[
        Mode,
        describe(
            "`exact`: the same calls in the same order, no others. `in_order`, `any_order`: all "
            "expected calls. `partial` (in order), `recall`: the share of the expected calls. "
            "`precision`: the share of the actual calls. `f1`: both. `single_tool`: `tool`. "
            "`tools: []` forbids calls only with `exact`, `precision`, `f1`, `allow_extra: false`."
        ),
    ] = "in_order"
    threshold: Annotated[
        float, msgspec.Meta(ge=0, le=1), describe("The minimum mean over turns to pass.")
    ] = 1.0
    tool: Annotated[
        str | None, FROM_CASES, describe("The tool to look for, with the mode `single_tool` only.")
    ] = None
    arguments: Annotated[
        ArgumentMode,
        describe(
            "How arguments are compared. `subset`: actual calls may have more of them; "
            "`superset`: fewer. `tolerant`: case, white space and types of numbers do not matter."
        ),
    ] = "exact"
    argument_similarity: Annotated[
        float,
        msgspec.Meta(ge=0, le=1),
        describe("How alike texts have to be, with `arguments: similar`."),
    ] = 0.8
    rules: Annotated[
        list[Rule],
        FROM_CASES,
        describe("How single arguments are compared; the first match applies."),
    ] = msgspec.field(default_factory=list)
    names: Annotated[
        NameMode,
        describe("How names of tools are compared; with `regex` the expected name is a pattern."),
    ] = "exact"
    agents: Annotated[
        str | None,
        FROM_CASES,
        describe(
            "Whose calls are checked: `all`, the name of an agent, or by default any agent; then "
            "extra calls of delegates do not count as unexpected."
        ),
    ] = None
    dispatch_calls: Annotated[
        Literal["include", "exclude"], describe("Whether calls that hand work over count.")
    ] = "include"
    allow_extra: Annotated[
        bool, describe("Whether unexpected calls are allowed; if not, the turn scores 0.")
    ] = True

    def check(self) -> None:
        """Check that a tool is named where one is needed."""
        if self.mode == "single_tool" and not self.tool:
            raise ValueError("`mode` single_tool needs `tool`, the name of the tool")
        if self.mode != "single_tool" and self.tool is not None:
            raise ValueError(f"`tool` is only for the mode single_tool, not for {self.mode}")

    @cached_property
    def _call_rules(self) -> CallRules:
        return CallRules(self.names, self.arguments, self.argument_similarity, self.rules)

    def option_details(self) -> dict[str, Any]:
        """Return the options as plain data, rules included if there are any."""
        details = super().option_details()
        rules = details.pop("rules")
        return {**details, "rules": msgspec.to_builtins(rules)} if rules else details

    def which(self, case: Case | None) -> Which:
        """Select all turns if the option alone states what to look for."""
        if self.mode != "single_tool":
            return "stated"
        states = case is not None and any(turn.tool_calls is not None for turn in case.turns)
        return "stated" if states else "every"

    def compare(self, trace: Trace, pair: Pair, context: EvalContext) -> TurnCalls | Unknown:
        """Compare the calls of one turn, or return what is unknown about it.

        Calls of delegates can meet expectations and are never surplus. So a case passes whether
        it lists only the calls visible from outside the system, or all calls.
        """
        wanted: Sequence[ExpectedToolCall] = pair.expected.tool_calls or []
        if self.tool is not None:
            wanted = [ExpectedToolCall(name=self.tool)]
        elif self.dispatch_calls == "exclude":
            # Tools that hand work to an agent: ADK's own, and those seen to do it.
            made = [c for turn in trace.turns for c in tool_calls(turn, dispatches="include")]
            hand_offs = {TRANSFER_TOOL, *(call.name for call in made if call.dispatch is not None)}
            wanted = [call for call in wanted if call.name not in hand_offs]
        also = {call.agent for call in wanted if call.agent is not None}
        scope = self._scope(trace, pair, context, self.agents, also)
        compared = self._compared(trace, pair, wanted, scope, context)
        if (
            not isinstance(compared, Unknown)
            and not passes(compared.score, 1)
            and self.agents is None
            and len(scope.runs) < len(pair.turn.runs)
        ):
            compared = self._with_delegates(trace, pair, context, wanted, scope, compared)
        if not isinstance(compared, Unknown) and compared.missing:
            # An agent behind a tool may have made the missing call.
            perhaps = possible_agents(trace, pair.turn)
            if perhaps:
                return Unknown(NO_DEFINITION.format(min(perhaps)))
            for dispatch in pair.turn.dispatches:
                if self.dispatch_calls == "include" and not known(trace, dispatch, "call"):
                    return Unknown(
                        f"the call that handed over to `{dispatch.to_agent}` is not recorded; "
                        "record the answers of the models as well"
                    )
        return compared

    def _with_delegates(
        self,
        trace: Trace,
        pair: Pair,
        context: EvalContext,
        wanted: Sequence[ExpectedToolCall],
        scope: Scope,
        compared: TurnCalls,
    ) -> TurnCalls | Unknown:
        """Compare once more, with the calls of delegates for what is missing."""
        also = {call.agent for call in wanted if call.agent is not None}
        missing = {wanted[place].name for place in compared.missing}
        below = self._scope(trace, pair, context, "all", also)
        below = self._with_expected(trace, scope, below, wanted, missing)
        wider = self._compared(trace, pair, wanted, below, context)
        if isinstance(wider, Unknown) or wider.score > compared.score:
            return wider
        # With equal scores, say what was called: "called `look`; missing `price`" where a delegate
        # called `look`, and not "nothing was called".
        says_more = wider.score == compared.score and len(wider.made) > len(compared.made)
        shown = wider if says_more else compared
        # The missing tool may have another name: show what delegates called, too.
        named = {call.id for call in shown.made}
        every = self._scope(trace, pair, context, "all", also).calls
        others = [call for call in every if call.id not in named] if shown.missing else []
        return msgspec.structs.replace(shown, others=others)

    def _scope(
        self,
        trace: Trace,
        pair: Pair,
        context: EvalContext,
        agents: str | None,
        also: Collection[str],
    ) -> Scope:
        return calls_in_scope(
            trace,
            pair.turn,
            agents=agents,
            also=also,
            dispatches=self.dispatch_calls,
            renames=context.agent_names,
        )

    def _with_expected(
        self,
        trace: Trace,
        scope: Scope,
        below: Scope,
        wanted: Sequence[ExpectedToolCall],
        missing: Collection[str],
    ) -> Scope:
        """Add the calls of delegates whose tools are expected, and what is unknown about them."""
        own = {call.id for call in scope.calls}
        names = {call.name for call in wanted}
        calls = [
            call
            for call in below.calls
            if call.id in own or any(self._call_rules.name(name, call.name) for name in names)
        ]
        seen = {run.id for run in scope.runs}
        unknown = None
        for run in below.runs:
            if run.id not in seen and self._may_have_called(trace, run, missing):
                unknown = unknown or _no_steps(trace, run)
        return msgspec.structs.replace(below, calls=calls, unknown=unknown)

    def _may_have_called(self, trace: Trace, run: AgentRun, names: Collection[str]) -> bool:
        """Return whether a run may have called one of the tools, according to its definition."""
        card = trace.agents.get(run.agent)
        for tools in (run.tools_offered, card.tools if card else None):
            if isinstance(tools, list):
                return any(self._call_rules.name(name, tool) for name in names for tool in tools)
        return True

    def _compared(
        self,
        trace: Trace,
        pair: Pair,
        wanted: Sequence[ExpectedToolCall],
        scope: Scope,
        context: EvalContext,
    ) -> TurnCalls | Unknown:
        compared = self._tools_with_arguments(wanted, scope) if scope.bare else None
        unknown = unknown_of(scope, wanted, compared)
        if unknown is not None:
            return Unknown(unknown)
        pairs = pair_calls(wanted, scope.calls, self.mode, self._call_rules)
        extra = len(scope.calls) > len(pairs)
        score = turn_score(self.mode, len(pairs), len(wanted), len(scope.calls))
        return turn_calls(
            pair.number,
            0.0 if extra and not self.allow_extra else score,
            wanted,
            scope.calls,
            pairs,
            one_call=self._call_rules,
            extra_counts=self.mode in _EXTRA_COUNTS or not self.allow_extra,
            place=[run.id for run in scope.runs] or [pair.turn.id],
            elsewhere=_elsewhere(scope, trace, pair, wanted, context)
            if self.agents is not None and len(pairs) < len(wanted)
            else None,
        )

    def _tools_with_arguments(
        self, wanted: Sequence[ExpectedToolCall], scope: Scope
    ) -> frozenset[str]:
        """Return the called tools whose arguments are examined."""
        if not self._call_rules.heeds_arguments:
            return frozenset()
        stating = {call.name for call in wanted if call.arguments is not None}
        called = {call.name for call in scope.calls}
        return frozenset(
            tool for tool in called if any(self._call_rules.name(name, tool) for name in stating)
        )

    def verdict(self, turns: Sequence[TurnCalls]) -> list[Score]:
        """Return one score: the mean over the turns."""
        value = sum(turn.score for turn in turns) / len(turns)
        bad = [turn for turn in turns if not passes(turn.score, 1)]
        fix: str | msgspec.UnsetType = msgspec.UNSET
        if bad and self.arguments == "exact" and all(map(only_more_arguments, bad)):
            fix = (
                "calls have arguments that the case does not state: add them, or allow them with "
                "`arguments: subset`"
            )
        beyond = {tool: agent for turn in bad for tool, agent in turn.elsewhere.items()}
        if beyond:
            fix = "; ".join(
                f"`{agent}`, whose calls are not compared, called `{tool}`: set `agents: all`"
                for tool, agent in beyond.items()
            )
        allowed = next((turn for turn in turns if turn.made and not turn.wanted), None)
        if not bad and allowed is not None and self.tool is None:
            fix = (
                f"turn {allowed.number} expects no calls, and `{allowed.made[0].name}` was called: "
                f"`{self.mode}` allows that, `mode: exact` or `allow_extra: false` does not"
            )
        details = CallDetails(turns=[turn_details(turn) for turn in turns], fix=fix)
        evidences = [evidence(turn) for turn in bad]
        if not bad and len(turns) > 1:
            reason = f"{self.mode}: all {len(turns)} turns match"
        elif not bad:
            expected, actual = len(turns[0].wanted), len(turns[0].made)
            reason = f"{self.mode}: {expected} expected and {actual} actual calls match"
        else:
            more = f"; {len(bad)} of {len(turns)} turns differ" if len(turns) > 1 else ""
            reason = wrong(bad[0]) + more
        if not bad and fix:
            reason += f"; {fix}"
        return [self.scored(value, reason, details, evidences)]


def _elsewhere(
    scope: Scope, trace: Trace, pair: Pair, wanted: Sequence[ExpectedToolCall], context: EvalContext
) -> dict[str, str]:
    """Return the expected tools that only agents outside the scope called, each with an agent."""
    called = {call.name for call in scope.calls}
    owners = {}
    for tool in {call.name: None for call in wanted if call.name not in called}:
        agents = callers_beyond(scope, trace, pair.turn, tool, context.agent_names)
        if agents:
            owners[tool] = agents[0]
    return owners

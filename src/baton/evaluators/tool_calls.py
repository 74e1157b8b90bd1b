"""`tool_calls`: which tools were called, with which arguments, in which order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec

from baton.formats.evalset import TRANSFER_TOOL
from baton.formats.patterns import BadPatternError
from baton.model import (
    AgentRun,
    Case,
    Content,
    EvalContext,
    ExpectedToolCall,
    ExpectedTurn,
    Score,
    Trace,
    Turn,
    Unit,
    known,
)
from baton.model.views import placed_calls, run_names, tool_calls, turn_tree
from baton.plugins import FROM_CASES

from .assignment import Mode, pair_calls, turn_score
from .base import OptionedEvaluator, Pair, Unscored, stated_turns
from .tool_matching import ArgumentMode, CallRules, Made, NameMode, Rule
from .tool_report import TurnCalls, evidence, only_more_arguments, turn_calls, turn_row, wrong


class Scope(NamedTuple):
    """The runs that are looked at and their calls; ``unknown`` says why they are not known."""

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

    ``agents``: ``None`` takes the runs that no delegate started, which are those the system
    shows from outside, and those of agents in ``also``; ``all`` takes every run, any other word
    the runs of that agent.
    ``nameless`` and ``bare`` hold the ids of calls whose agent and whose arguments the source
    did not record.
    """
    runs, unknown = _runs(trace, turn, agents, also, renames)
    names = {run.id: _names(trace, run, renames) for run in runs}
    placed = placed_calls(runs, dispatches=dispatches)
    calls = [
        Made(call.id, call.name, call.arguments, names[run.id][0], frozenset(names[run.id]))
        for run, call in placed
    ]
    nameless = {call.id for run, call in placed if not known(trace, run, "agent")}
    bare = {call.id for _, call in placed if not known(trace, call, "arguments")}
    unknown = unknown or next(filter(None, (_no_steps(trace, run) for run in runs)), None)
    return Scope(runs, calls, frozenset(nameless), frozenset(bare), unknown)


def unknown_of(
    scope: Scope, wanted: Sequence[ExpectedToolCall], tools: frozenset[str] | None
) -> str | None:
    """Say what has to be known of the calls and is not; ``None`` when all is.

    ``tools`` are the called tools whose arguments matter; ``None`` for all.
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


def _runs(
    trace: Trace,
    turn: Turn,
    agents: str | None,
    also: Collection[str],
    renames: Mapping[str, str],
) -> tuple[list[AgentRun], str | None]:
    if not known(trace, turn, "runs"):
        return turn.runs, (
            "the source did not record what agents did; record events or spans with tool calls"
        )
    if agents is None:
        outside = {node.run.id for node in turn_tree(trace, turn)}
        return [
            run
            for run in turn.runs
            if run.id in outside or not set(also).isdisjoint(_names(trace, run, renames))
        ], None
    if agents == "all":
        return turn.runs, None
    if not all(known(trace, run, "agent") for run in turn.runs):
        return turn.runs, (
            f"the source did not record which agents ran, so the calls of `{agents}` are not "
            "known; record events or spans that name their agents"
        )
    return [run for run in turn.runs if agents in _names(trace, run, renames)], None


def callers_beyond(
    scope: Scope, trace: Trace, turn: Turn, tool: str, renames: Mapping[str, str]
) -> list[str]:
    """Return the agents that called a tool in runs which are not looked at."""
    seen = {run.id for run in scope.runs}
    others = placed_calls([r for r in turn.runs if r.id not in seen], dispatches="include")
    return sorted({_names(trace, run, renames)[0] for run, call in others if call.name == tool})


def _names(trace: Trace, run: AgentRun, renames: Mapping[str, str]) -> list[str]:
    return [renames.get(name, name) for name in run_names(trace, run)]


def _no_steps(trace: Trace, run: AgentRun) -> str | None:
    if known(trace, run, "steps.tool_call"):
        return None
    return (
        f"the source did not record the steps of `{run.agent}`, so its calls are not known; "
        "record events or spans of that agent as well"
    )


Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_EXTRA_COUNTS = frozenset({"exact", "precision", "f1"})


class ToolCallsOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options; ``docs/evaluators.md`` explains each.

    ``tool`` goes with the mode ``single_tool`` and no other. ``agents`` is ``all``, the name of
    an agent, or left out for the runs that no delegate started.
    """

    mode: Mode = "in_order"
    threshold: Share = 1.0
    tool: Annotated[str | None, FROM_CASES] = None
    arguments: ArgumentMode = "exact"
    argument_similarity: Share = 0.8
    rules: Annotated[list[Rule], FROM_CASES] = msgspec.field(default_factory=list)
    names: NameMode = "exact"
    agents: Annotated[str | None, FROM_CASES] = None
    dispatch_calls: Literal["include", "exclude"] = "include"
    allow_extra: bool = True

    def __post_init__(self) -> None:
        if self.mode == "single_tool" and not self.tool:
            raise ValueError("`mode` single_tool needs `tool`, the name of the tool")
        if self.mode != "single_tool" and self.tool is not None:
            raise ValueError(f"`tool` goes with mode single_tool, not with {self.mode}")


class ToolCalls(OptionedEvaluator[ToolCallsOptions]):
    """Compares the tool calls of every turn that states some."""

    type = "tool_calls"
    version = "1"
    unit: ClassVar[Unit] = "trace"
    options_type = ToolCallsOptions
    checks = frozenset({"tools"})

    __slots__ = ("_rules",)

    def __init__(self, name: str | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Take options as plain data; raises InputError for each that is wrong."""
        super().__init__(name, options)
        chosen = self.options
        self._rules = CallRules(
            chosen.names, chosen.arguments, chosen.argument_similarity, chosen.rules
        )

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        """Give one score for the trace: the mean over the turns that state tool calls.

        With ``single_tool`` and nothing stated, every turn counts. ``error`` when a planned
        turn was not played or broke, or a pattern of the case is none; ``skipped`` when nothing
        is expected, or the source did not record what is compared.
        """
        pairs = self._turns(trace, case)
        if isinstance(pairs, Unscored):
            return [self.unscored(pairs.status, pairs.reason)]
        turns: list[TurnCalls] = []
        for pair in pairs:
            try:
                found = self._compare(trace, pair, context)
            except BadPatternError as error:
                return [self.unscored("error", f"turn {pair.number}: {error}")]
            if isinstance(found, str):
                return [self.unscored("skipped", f"turn {pair.number}: {found}")]
            turns.append(found)
        return [self._score(turns)]

    def option_details(self) -> dict[str, Any]:
        """Return the options as plain data, rules included where there are any."""
        details = super().option_details()
        rules = details.pop("rules")
        return {**details, "rules": msgspec.to_builtins(rules)} if rules else details

    def _turns(self, trace: Trace, case: Case | None) -> list[Pair] | Unscored:
        if self.options.mode != "single_tool" or _states_tools(case):
            return stated_turns(trace, case, lambda turn: turn.tool_calls is not None, "tool calls")
        # The option itself is the expectation, so the case need not state any.
        played = [ExpectedTurn(input=Content()) for _ in trace.turns]
        if case is None or case.scenario is not None:
            case = Case(id=trace.id, turns=played)
        if not case.turns:
            return Unscored("skipped", "the trace has no turns")
        return stated_turns(trace, case, lambda _: True, "tool calls")

    def _compare(self, trace: Trace, pair: Pair, context: EvalContext) -> TurnCalls | str:
        """Compare one turn; or say what is not known of it."""
        options = self.options
        wanted = self._wanted(trace, pair)
        scope = calls_in_scope(
            trace,
            pair.turn,
            agents=options.agents,
            also={call.agent for call in wanted if call.agent is not None},
            dispatches=options.dispatch_calls,
            renames=context.agent_names,
        )
        unknown = unknown_of(scope, wanted, self._tools_with_arguments(wanted, scope))
        if unknown is not None:
            return unknown
        pairs = pair_calls(wanted, scope.calls, options.mode, self._rules)
        extra = len(scope.calls) > len(pairs)
        score = turn_score(options.mode, len(pairs), len(wanted), len(scope.calls))
        return turn_calls(
            pair.number,
            0.0 if extra and not options.allow_extra else score,
            wanted,
            scope.calls,
            pairs,
            one_call=self._rules,
            extra_counts=options.mode in _EXTRA_COUNTS or not options.allow_extra,
            place=[run.id for run in scope.runs] or [pair.turn.id],
            elsewhere=_elsewhere(scope, trace, pair, wanted, context),
        )

    def _wanted(self, trace: Trace, pair: Pair) -> list[ExpectedToolCall]:
        if self.options.tool is not None:
            return [ExpectedToolCall(name=self.options.tool)]
        stated = pair.expected.tool_calls or []
        if self.options.dispatch_calls == "include":
            return stated
        hand_offs = _hand_off_tools(trace)
        return [call for call in stated if call.name not in hand_offs]

    def _tools_with_arguments(
        self, wanted: Sequence[ExpectedToolCall], scope: Scope
    ) -> frozenset[str]:
        """Return the called tools whose arguments are looked at."""
        if not self._rules.heeds_arguments:
            return frozenset()
        stating = {call.name for call in wanted if call.arguments is not None}
        called = {call.name for call in scope.calls}
        return frozenset(
            tool for tool in called if any(self._rules.name(name, tool) for name in stating)
        )

    def _score(self, turns: Sequence[TurnCalls]) -> Score:
        value = sum(turn.score for turn in turns) / len(turns)
        bad = [turn for turn in turns if turn.score < 1 - 1e-9]
        details = {**self.option_details(), "turns": [turn_row(turn) for turn in turns]}
        if bad and self.options.arguments == "exact" and all(map(only_more_arguments, bad)):
            details["fix"] = (
                "calls have arguments that the case does not state: add them, or allow them with "
                "`arguments: subset`"
            )
        beyond = {tool: agent for turn in bad for tool, agent in turn.elsewhere.items()}
        if beyond:
            details["fix"] = "; ".join(
                f"`{agent}`, a delegate, called `{tool}`: state `agent: {agent}` with the call, or "
                "set `agents: all`"
                for tool, agent in beyond.items()
            )
        evidences = [evidence(turn) for turn in bad]
        return self.scored(value, self._reason(turns, bad), details, evidences)

    def _reason(self, turns: Sequence[TurnCalls], bad: Sequence[TurnCalls]) -> str:
        if not bad and len(turns) > 1:
            return f"{self.options.mode}: all {len(turns)} turns match"
        if not bad:
            expected, actual = len(turns[0].wanted), len(turns[0].made)
            return f"{self.options.mode}: {expected} expected and {actual} actual calls match"
        more = f"; {len(bad)} of {len(turns)} turns differ" if len(turns) > 1 else ""
        return wrong(bad[0]) + more


def _elsewhere(
    scope: Scope, trace: Trace, pair: Pair, wanted: Sequence[ExpectedToolCall], context: EvalContext
) -> dict[str, str]:
    """Return the expected tools that only agents beyond the scope called, each with one."""
    called = {call.name for call in scope.calls}
    found = {}
    for tool in {call.name: None for call in wanted if call.name not in called}:
        agents = callers_beyond(scope, trace, pair.turn, tool, context.agent_names)
        if agents:
            found[tool] = agents[0]
    return found


def _states_tools(case: Case | None) -> bool:
    return case is not None and any(turn.tool_calls is not None for turn in case.turns)


def _hand_off_tools(trace: Trace) -> set[str]:
    """Return the tools that hand work to an agent: ADK's own, and those seen to do it."""
    made = [call for turn in trace.turns for call in tool_calls(turn, dispatches="include")]
    return {TRANSFER_TOOL, *(call.name for call in made if call.dispatch is not None)}

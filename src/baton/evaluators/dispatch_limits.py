"""``dispatch_limits``: how many dispatches a turn makes, how deep, how wide, and to how many."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from baton.model import (
    AgentRun,
    EvalContext,
    Evidence,
    Score,
    Trace,
    Turn,
    counted,
    known,
)
from baton.model.views import placed_calls
from baton.plugins import FROM_CASES

from .base_evaluator import Details, TraceEvaluator, Unscored, WholeTrace, describe
from .usage_limits import Measure, agent_costs, dispatch_costs, require_one, share, weigh

Count = Annotated[int, msgspec.Meta(ge=0)]
Dollars = Annotated[float, msgspec.Meta(ge=0)]


class DispatchLimitsDetails(Details, kw_only=True):
    """The counts."""

    turns: list[dict[str, Any]]
    """Turns that have a limit. Each has ``turn`` (its number), ``score``, ``threshold`` and the
    counts, named like the options without ``max_``."""
    agents: int | msgspec.UnsetType = msgspec.UNSET
    """The number of different agents in the case, if it has a limit."""
    agent_cost_usd: dict[str, float] | msgspec.UnsetType = msgspec.UNSET
    """US dollars by agent, for agents that have a limit."""
    unseen_runs: list[str] | msgspec.UnsetType = msgspec.UNSET
    """Runs with only their call and answer recorded. They may have dispatched work too."""


class DispatchLimits(TraceEvaluator, frozen=True, kw_only=True):
    """Compares the number, depth and width of dispatches with limits.

    Every dispatch except a ``return`` counts. That includes a refused one, and one known only from
    the order of runs, because the work did pass. If a source does not record refused calls, there
    may be more dispatches than recorded. ``max_dispatches`` and ``max_fan_out`` can then fail but
    not pass, unless ``count_refused`` is off.
    """

    type = "dispatch_limits"
    summary = (
        "how many dispatches a turn makes, how deep, how many at once, to how many agents, "
        "at what cost"
    )

    details = DispatchLimitsDetails

    max_dispatches: Annotated[
        Count | None, describe("Dispatches of a turn; at least one limit is needed.")
    ] = None
    max_depth: Annotated[
        Count | None, describe("How deep delegates of delegates may go in a turn.")
    ] = None
    max_fan_out: Annotated[
        Count | None, describe("Dispatches of a turn that are issued together.")
    ] = None
    max_visits: Annotated[Count | None, describe("Runs of one agent in a turn.")] = None
    max_agents: Annotated[Count | None, describe("Different agents in the whole case.")] = None
    max_cost_usd: Annotated[
        Dollars | None, describe("US dollars for one dispatch, including everything below it.")
    ] = None
    max_agent_cost_usd: Annotated[
        Annotated[dict[str, Dollars], msgspec.Meta(min_length=1)] | None,
        FROM_CASES,
        describe("US dollars for all dispatches to an agent in the case, by its name."),
    ] = None

    count_refused: Annotated[
        bool,
        describe(
            "Whether refused dispatches count. With `false`, sources that do not record them pass, "
            "too."
        ),
    ] = True
    max_context_tokens: Annotated[
        Count | None,
        describe(
            "Input tokens per model request, cached ones included, of an agent that got work, on "
            "average over the requests of its run."
        ),
    ] = None

    def check(self) -> None:
        """Check that there is a limit."""
        require_one(self)

    def score(self, whole: WholeTrace) -> Score | Unscored:
        """Return one score for the trace: 1 within the limits, else the lowest limit / count.

        A partly known count fails if the known part already exceeds the limit. Otherwise the
        score is ``error`` if a turn failed or was not played, and ``skipped`` if the trace does
        not record all that the limits need.
        """
        trace, context = whole.trace, whole.context
        by_turn = [
            list(_of_turn(trace, turn, f"turn {number}: ", self, context))
            for number, turn in enumerate(trace.turns, 1)
        ]
        measures = [measure for findings in by_turn for measure in findings]
        measures += _of_case(trace, self, context)
        agents = agent_costs(trace, self.max_agent_cost_usd or {}, context)
        measures += agents
        over = [m for m in measures if m.figure.over]
        not_recorded = next((m.unknown for m in measures if m.unknown is not None), None)
        if not trace.turns:
            not_recorded = "the trace has no turns"
        doubt = whole.doubt
        if not_recorded is None:
            not_recorded = self._unseen_calls(trace)
        if doubt is None and not_recorded is not None:
            doubt = Unscored("skipped", not_recorded)
        # Only their call and answer were recorded: they may have dispatched work too.
        runs = (run for turn in trace.turns for run in turn.runs)
        unseen = [run.id for run in runs if not known(trace, run, "steps.tool_call")]
        visited = next((m.found for m in measures if m.option == "max_agents"), None)
        costs = {m.option.partition(" ")[2]: m.found for m in agents}
        details = DispatchLimitsDetails(
            turns=[
                {
                    "turn": number,
                    "score": min(share(m.found, m.limit) for m in measures),
                    "threshold": 1.0,
                    **{m.option.removeprefix("max_"): m.found for m in measures},
                }
                for number, measures in enumerate(by_turn, 1)
                if measures
            ],
            agents=msgspec.UNSET if visited is None else int(visited),
            agent_cost_usd=costs or msgspec.UNSET,
            unseen_runs=unseen or msgspec.UNSET,
        )
        evidence = [Evidence(ids=m.beyond, quote=m.words) for m in over]
        figures = [m.figure for m in over or _largest(measures)]
        score = weigh(self, figures, doubt, details, evidence)
        if score.status == "passed" and unseen:
            score.reason += f"; the steps of {counted(len(unseen), 'run')} are not recorded"
        return score

    def _unseen_calls(self, trace: Trace) -> str | None:
        """Return why there may have been more counted dispatches than were recorded."""
        if not self.count_refused or (self.max_dispatches, self.max_fan_out) == (None, None):
            return None
        # The reason of a pass names runs with only their call and answer recorded.
        seen = (
            run for turn in trace.turns for run in turn.runs if known(trace, run, "steps.tool_call")
        )
        if all(known(trace, run, "steps.refused") for run in seen):
            return None
        return (
            "refused calls are not recorded, and may exceed the limit: record the answers of "
            "models, or set `count_refused: false`"
        )


def _of_turn(
    trace: Trace, turn: Turn, place: str, options: DispatchLimits, context: EvalContext
) -> Iterator[Measure]:
    issued = [d for d in turn.dispatches if d.kind != "return"]
    if not options.count_refused:
        issued = [d for d in issued if d.status != "refused"]
    not_recorded = None
    if not known(trace, turn, "dispatches"):
        not_recorded = f"{place}not all dispatches are recorded: record the agents' calls and spans"
    maybe = _maybe_agents(trace, turn)
    if maybe:
        # Each could be a dispatch more, made with all others of its turn, and one level deeper.
        most = (options.max_dispatches, options.max_fan_out)
        more = len(issued) + len(maybe)
        deeper = 1 + max((d.depth for d in issued), default=0)
        if (
            any(limit is not None and more > limit for limit in most)
            or (options.max_depth is not None and deeper > options.max_depth)
            or options.max_cost_usd is not None
        ):
            not_recorded = not_recorded or f"{place}{_maybe(maybe)}"
    if (limit := options.max_dispatches) is not None:
        words = f"{place}{counted(len(issued), 'dispatch')}"
        beyond = [d.id for d in issued[limit:]]
        yield Measure("max_dispatches", limit, len(issued), words, beyond, not_recorded)
    if (limit := options.max_depth) is not None:
        unknown = not_recorded
        deepest = max((d.depth for d in issued), default=0)
        beyond = [d.id for d in issued if d.depth > limit]
        if not all(known(trace, d, "depth") for d in issued):
            unknown = unknown or f"{place}the depth of some dispatches is not recorded"
        yield Measure("max_depth", limit, deepest, f"{place}depth {deepest}", beyond, unknown)
    if (limit := options.max_fan_out) is not None:
        # A dispatch issued alone is its own group.
        unknown = not_recorded
        groups: dict[object, list[str]] = {}
        for d in issued:
            groups.setdefault(d.id if d.group is None else (d.group, d.from_run), []).append(d.id)
        widest = max((len(ids) for ids in groups.values()), default=0)
        beyond = [id_ for ids in groups.values() for id_ in ids[limit:]]
        if len(issued) > limit and not all(known(trace, d, "group") for d in issued):
            supply = "it is not recorded which dispatches were made together"
            unknown = unknown or f"{place}{supply}"
        words = f"{place}{counted(widest, 'dispatch')} at once"
        yield Measure("max_fan_out", limit, widest, words, beyond, unknown)
    if (limit := options.max_visits) is not None:
        yield _visits(trace, turn, place, limit, context)
    if (limit_usd := options.max_cost_usd) is not None:
        yield dispatch_costs(trace, issued, place, limit_usd, not_recorded, context)
    if (limit := options.max_context_tokens) is not None:
        yield _context_tokens(turn, place, limit, not_recorded, context)


def _context_tokens(
    turn: Turn, place: str, limit: int, not_recorded: str | None, context: EvalContext
) -> Measure:
    """Measure the run with the largest mean request, because sources only record token sums."""
    largest, words, beyond = 0, f"{place}no agent got work", []
    for run in turn.runs:
        if not run.started_by:
            continue
        name, usage = _name(run, context), run.usage
        if usage is None or usage.input_tokens is None or not usage.complete:
            supply = "record the tokens of model requests"
            not_recorded = not_recorded or f"{place}the input of `{name}` is not recorded: {supply}"
        if usage is None or usage.input_tokens is None:
            continue
        cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
        mean = (usage.input_tokens + cached) // max(usage.requests or 1, 1)
        if mean > limit:
            beyond += [run.id, *run.started_by]
        if mean >= largest:
            largest, words = mean, f"{place}{mean} tokens per request of `{name}`"
    return Measure("max_context_tokens", limit, largest, words, beyond, not_recorded)


def _visits(trace: Trace, turn: Turn, place: str, limit: int, context: EvalContext) -> Measure:
    """Measure the agent that ran most often. Runs of unknown agents may all be its runs."""
    visits: dict[str, list[AgentRun]] = {}
    for run in turn.runs:
        if known(trace, run, "agent"):
            visits.setdefault(_name(run, context), []).append(run)
    agent = max(visits, key=lambda name: len(visits[name]), default="")
    count = len(visits[agent]) if visits else 0
    nameless = len(turn.runs) - sum(len(runs) for runs in visits.values())
    not_recorded = None
    if count + nameless > limit or not _each_is_one_agent(trace, turn):
        not_recorded = _who(trace, turn, place)
    maybe = _maybe_agents(trace, turn)
    if any(len(visits.get(name, ())) + maybe.count(name) > limit for name in maybe):
        not_recorded = not_recorded or f"{place}{_maybe(maybe)}"
    beyond = [
        id_ for runs in visits.values() for run in runs[limit:] for id_ in (run.id, *run.started_by)
    ]
    words = f"{place}`{agent}` ran {counted(count, 'time')}" if agent else f"{place}no agent ran"
    return Measure("max_visits", limit, count, words, beyond, not_recorded)


def _of_case(trace: Trace, options: DispatchLimits, context: EvalContext) -> list[Measure]:
    """Count the different agents. Each run of an unknown agent may add one more."""
    limit = options.max_agents
    if limit is None:
        return []
    first: dict[str, AgentRun] = {}
    nameless = 0
    for run in (run for turn in trace.turns for run in turn.runs):
        if known(trace, run, "agent"):
            first.setdefault(_name(run, context), run)
        else:
            nameless += 1
    not_recorded = None
    if len(first) + nameless > limit or not all(_each_is_one_agent(trace, t) for t in trace.turns):
        not_recorded = next((why for turn in trace.turns if (why := _who(trace, turn, ""))), None)
    maybe = [name for turn in trace.turns for name in _maybe_agents(trace, turn)]
    if len({*first, *maybe}) + nameless > limit:
        not_recorded = not_recorded or (_maybe(maybe) if maybe else None)
    beyond = [id_ for run in list(first.values())[limit:] for id_ in (run.id, *run.started_by)]
    words = counted(len(first), "different agent")
    return [Measure("max_agents", limit, len(first), words, beyond, not_recorded)]


def _maybe_agents(trace: Trace, turn: Turn) -> list[str]:
    """Return the name of each call of which the source does not record whether an agent answered.

    A session of ADK looks alike for a tool and for an agent that is a tool.
    """
    calls = placed_calls(turn.runs, dispatches="exclude")
    return [call.name for _, call in calls if call.unknown and not known(trace, call, "dispatch")]


def _maybe(names: list[str]) -> str:
    return f"`{names[0]}` may be an agent: supply agent definitions, for example with `agents`"


def _each_is_one_agent(trace: Trace, turn: Turn) -> bool:
    """Return whether runs can be counted. A run without a name may hide dispatches."""
    if not known(trace, turn, "runs"):
        return False
    recorded = known(trace, turn, "dispatches")
    return recorded or all(known(trace, run, "agent") for run in turn.runs)


def _who(trace: Trace, turn: Turn, place: str) -> str | None:
    if known(trace, turn, "runs") and all(known(trace, run, "agent") for run in turn.runs):
        return None
    return f"{place}the trace does not name every agent that ran: record events with their authors"


def _largest(measures: list[Measure]) -> list[Measure]:
    largest: dict[str, Measure] = {}
    for measure in measures:
        if measure.option not in largest or measure.found > largest[measure.option].found:
            largest[measure.option] = measure
    return list(largest.values())


def _name(run: AgentRun, context: EvalContext) -> str:
    return context.agent_names.get(run.agent, run.agent)

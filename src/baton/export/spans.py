"""A record as spans: one for each turn, run, text, tool call and dispatch."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from baton.model import AgentRun, Dispatch, GotBack, HandedOff, Said, ToolCall, Trace, Turn, Usage
from baton.model.trace import OF_DECISIONS
from baton.model.views import decisions_of, dispatch_usage, dispatched_runs, sum_usage
from baton.readers.otlp import record_as_spans as own
from baton.readers.otlp.record_as_spans import TIMES, UNTIMED, Attributes
from baton.readers.otlp.span import ERROR, Event, Link, Span
from baton.readers.otlp.span import nanos as seconds

ROOT = ("trace", "")
Place = tuple[str, str]
"""A kind of object and its id."""


class Nesting(NamedTuple):
    """The parent of each object; the trace has none."""

    parents: dict[Place, Place]

    def parent(self, place: Place) -> Place:
        """Return the parent of an object."""
        return self.parents.get(place, ROOT)


def nest(trace: Trace) -> Nesting:
    """Find the parent of every object.

    A delegate and the runs that it starts are inside the run that made it, or inside its tool call
    if there is one. When control moves on, the level stays: the target of a transfer, a sequence or
    a return is a sibling of the run that had control before, so a long relay is not a deep tree.
    """
    made = {d.id: d for turn in trace.turns for d in turn.dispatches}
    calls = {step.id for turn in trace.turns for run in turn.runs for step in run.steps}
    parents: dict[Place, Place] = {}
    runs: set[str] = set()
    for turn in trace.turns:
        home = ("turn", turn.id)
        parents[home] = ROOT
        for run in turn.runs:
            runs.add(run.id)
            parents["run", run.id] = home
            for step in run.steps:
                parents["step", step.id] = ("run", run.id)
    for turn in trace.turns:
        for dispatch in turn.dispatches:
            place: Place = ("turn", turn.id)
            if dispatch.from_run in runs:
                place = ("run", dispatch.from_run)
            if dispatch.call in calls:
                place = ("step", dispatch.call)
            parents["dispatch", dispatch.id] = place
    for turn in trace.turns:
        for run in turn.runs:
            first = made.get(run.started_by[0]) if run.started_by else None
            # The parent of a run that a dispatch started; `None` if that is its turn.
            inside: Place | None = None
            if first is not None and (first.kind == "delegate" or first.to_kind == "workflow"):
                inside = ("dispatch", first.id)
            elif first is not None:
                inside = parents.get(("run", first.from_run or ""))
            if inside is not None and not _is_below(parents, inside, ("run", run.id)):
                parents["run", run.id] = inside
    return Nesting(parents)


def _is_below(parents: dict[Place, Place], place: Place, above: Place) -> bool:
    """Tell whether ``place`` is ``above`` or inside it: a cycle would have no root."""
    while place != above:
        if place == ROOT:
            return False
        place = parents.get(place, ROOT)
    return True


_ENCODE = msgspec.json.Encoder(order="deterministic").encode


def trace_id(trace: Trace) -> str:
    """Return 32 hex digits, a hash of the id of a record and its events.

    Its location, its case and its agent cards are not included.
    """
    return sha256(_ENCODE([trace.id, trace.turns])).hexdigest()[:32]


def span_id(trace: str, kind: str, id_: str) -> str:
    """Return 16 hex digits for one object of the record whose trace id is ``trace``."""
    return sha256(_ENCODE([trace, kind, id_])).hexdigest()[:16]


# OTLP has 64 bits without a sign, but many backends keep times in integers with one, as in Java.
_MOST = 2**63 - 1
Named = tuple[str, float | None]
"""A time of the record under the name of its field."""


def nanos(at: float) -> int:
    """Return the nearest nanosecond in OTLP; reading it gives the same float."""
    numerator, denominator = at.as_integer_ratio()
    whole = (2 * numerator * 10**9 + denominator) // (2 * denominator)
    return min(max(whole, 0), _MOST)


def span_times(times: Sequence[Named], fallback: float) -> tuple[float, float, Attributes]:
    """Return start and end of a span, and attributes for what they cannot express.

    A span must have both: unknown ones are named in an attribute, and ``fallback`` is used as the
    start.
    """
    known = [at for _, at in times]
    start = fallback if known[0] is None else known[0]
    end = start if known[-1] is None else max(known[-1], start)
    return start, end, _exceptions(times, (start, end))


def event_time(times: Sequence[Named], fallback: float) -> tuple[float, Attributes]:
    """Return the time of an event, and attributes for what it cannot express."""
    at = fallback if times[0][1] is None else times[0][1]
    return at, _exceptions(times, (at,))


def _exceptions(times: Sequence[Named], written: Sequence[float]) -> Attributes:
    exact: Attributes = {}
    untimed = [name for name, at in times if at is None]
    if untimed:
        exact[UNTIMED] = untimed
    for (name, at), attributes in zip(times, written, strict=False):
        if at is not None and seconds(nanos(attributes)) != at:
            exact[f"baton.{name}"] = at
    return exact


_SUM = "gen_ai.aggregated_usage."
_SUMMED = "claude_agent.subagent.aggregated_"


def of_trace(trace: Trace) -> Attributes:
    """Return the usage of the whole conversation: the source's, or else summed over runs."""
    runs = [run.usage for turn in trace.turns for run in turn.runs]
    total = trace.usage if trace.usage is not None else sum_usage(runs)
    spent = _attributes(total)
    if total is not None and total.cost_usd is not None:
        spent["claude_agent.cost.total_usd"] = total.cost_usd
    return spent


def of_runs(runs: Sequence[AgentRun]) -> Attributes:
    """Add up runs."""
    return _attributes(sum_usage([run.usage for run in runs]))


def of_run(trace: Trace, run: AgentRun, made: Sequence[Dispatch]) -> Attributes:
    """Add up a run and everything below it; ``made`` are the dispatches it made."""
    delegates = [dispatch for dispatch in made if dispatch.kind == "delegate"]
    below = dispatched_runs(trace, delegates) if delegates else []
    return of_runs([run, *(each for each in below if each.id != run.id)])


def of_dispatch(trace: Trace, dispatch: Dispatch) -> Attributes:
    """Add up all runs that a dispatch started, also under traceAI's attribute names."""
    total = dispatch_usage(trace, dispatch).with_children
    spent = _attributes(total)
    names = {
        "input_tokens": spent.get(_SUM + "input_tokens"),
        "output_tokens": spent.get(_SUM + "output_tokens"),
        "cost_usd": total.cost_usd if total is not None else None,
    }
    return {**spent, **{_SUMMED + name: v for name, v in names.items() if v is not None}}


def _attributes(total: Usage | None) -> Attributes:
    """Write a total; GenAI's input tokens include cached ones."""
    if total is None:
        return {}
    counts = (total.input_tokens, total.cache_read_tokens, total.cache_write_tokens)
    known = [count for count in counts if count is not None]
    sums = {
        _SUM + "input_tokens": sum(known) if known else None,
        _SUM + "output_tokens": total.output_tokens,
        _SUM + "cache_read.input_tokens": total.cache_read_tokens,
        _SUM + "cache_creation.input_tokens": total.cache_write_tokens,
        "baton.aggregated_cost_usd": total.cost_usd,
        "baton.aggregated_complete": total.complete,
    }
    return {name: value for name, value in sums.items() if value is not None}


def _supervisor(trace: Trace) -> Attributes:
    """Return the instructions and tools of the agent that opens the conversation.

    They have the attribute names of traceAI's conversation span.
    """
    first = next((run for turn in trace.turns for run in turn.runs), None)
    if first is None:
        return {}
    card = trace.agents.get(first.agent)
    attributes: Attributes = {}
    if card is not None and card.instructions:
        attributes["claude_agent.system_prompt"] = card.instructions
    tools = card.tools if card is not None and card.tools is not None else first.tools_offered
    if isinstance(tools, list):
        attributes["claude_agent.allowed_tools"] = _ENCODE(tools).decode()
    return attributes


_Part = Turn | AgentRun | Said | ToolCall | HandedOff | GotBack | Dispatch
_SPAN_KIND = "claude_agent.span_kind"
_SUB = "claude_agent.subagent."
_MCP = re.compile(r"mcp__(.+?)__(.+)")
_FAILED = ("failed", "refused")


def spans_of(trace: Trace, priced: Trace | None = None) -> list[Span]:
    """Write a record as the spans of one trace, parents first.

    ``priced`` is the same trace with costs: ids come from ``trace``, so that prices do not change
    them.
    """
    return _Writer(trace_id(trace), priced or trace).spans()


class _Writer:
    def __init__(self, id_: str, trace: Trace) -> None:
        self._trace = trace
        self._id = id_
        self._nesting = nest(trace)
        self._made: dict[str | None, list[Dispatch]] = defaultdict(list)
        self._calls: dict[str, str] = {}
        self._runs: dict[str, AgentRun] = {}
        self._starts: dict[Place, float] = {}
        for turn in trace.turns:
            self._know(("turn", turn.id), turn.started)
            for dispatch in turn.dispatches:
                self._made[dispatch.from_run].append(dispatch)
                self._know(("dispatch", dispatch.id), dispatch.started)
            for run in turn.runs:
                self._runs[run.id] = run
                self._know(("run", run.id), run.started)
                for step in run.steps:
                    self._know(("step", step.id), step.at)
                    if isinstance(step, ToolCall) and step.dispatch is not None:
                        self._calls[step.dispatch] = step.id
        self._know(ROOT, min(self._starts.values(), default=0.0))

    def _know(self, place: Place, at: float | None) -> None:
        if at is not None:
            self._starts[place] = at

    def _start(self, place: Place) -> float:
        """Return the start of an object, or else of the nearest object around it."""
        while place not in self._starts:
            place = self._nesting.parent(place)
        return self._starts[place]

    def spans(self) -> list[Span]:
        below: list[Span] = []
        for index, turn in enumerate(self._trace.turns):
            attributes = {
                own.KIND: "turn",
                own.INDEX: index,
                "gen_ai.operation.name": "invoke_workflow",
                **of_runs(turn.runs),
            }
            below.append(
                self._span(("turn", turn.id), turn, f"turn {index + 1}", attributes, turn.error)
            )
            for number, run in enumerate(turn.runs):
                below.append(self._run(number, turn, run))
                for order, step in enumerate(run.steps):
                    if isinstance(step, Said):
                        below.append(self._said(order, run, step))
                    elif isinstance(step, ToolCall):
                        below.append(self._call(order, run, step))
            for number, dispatch in enumerate(turn.dispatches):
                below.append(self._dispatch(number, turn, dispatch))
        below += [self._decision(*each) for each in enumerate(decisions_of(self._trace))]
        root = self._root(len(below) + 1)
        root.ended = max((span.ended or 0.0 for span in below), default=root.started)
        return [root, *below]

    def _root(self, count: int) -> Span:
        trace, at = self._trace, self._starts[ROOT]
        attributes: Attributes = {
            own.KIND: "trace",
            **own.write_fields(trace),
            own.SPANS: count,
            "baton.source.format": trace.source.format,
            _SPAN_KIND: "conversation",
            "claude_agent.session_id": trace.id,
            **(own.write_usage(trace.usage) if trace.usage is not None else {}),
            **of_trace(trace),
            **_supervisor(trace),
        }
        if trace.source.framework is not None:
            attributes["baton.source.framework"] = trace.source.framework
        return Span(
            trace_id=self._id,
            span_id=span_id(self._id, *ROOT),
            name="conversation",
            started=at,
            ended=at,
            attributes=attributes,
            scope=own.SCOPE,
        )

    def _run(self, index: int, turn: Turn, run: AgentRun) -> Span:
        attributes = {
            own.KIND: "run",
            own.TURN: turn.id,
            own.INDEX: index,
            "gen_ai.operation.name": "invoke_agent",
            **(own.write_usage(run.usage) if run.usage is not None else {}),
            **of_run(self._trace, run, self._made[run.id]),
        }
        span = self._span(("run", run.id), run, f"invoke_agent {run.agent}", attributes, run.error)
        span.events = [
            self._event(order, step)
            for order, step in enumerate(run.steps)
            if isinstance(step, HandedOff | GotBack)
        ]
        span.links = [self._link(("dispatch", id_)) for id_ in run.started_by]
        return span

    def _said(self, order: int, run: AgentRun, said: Said) -> Span:
        attributes: Attributes = {
            own.KIND: "said",
            own.RUN: run.id,
            own.INDEX: order,
            "gen_ai.operation.name": "chat",
            "gen_ai.agent.name": run.agent,
            _SPAN_KIND: "assistant_turn",
        }
        if run.model is not None:
            attributes["gen_ai.request.model"] = run.model
        span = self._span(("step", said.id), said, "chat", attributes, None)
        if said.thought:
            thought = own.messages(said.content, "assistant", text="reasoning")
            span.attributes["gen_ai.output.messages"] = thought
        return span

    def _call(self, order: int, run: AgentRun, call: ToolCall) -> Span:
        attributes: Attributes = {
            own.KIND: "tool_call",
            own.RUN: run.id,
            own.INDEX: order,
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.call.id": call.id,
            "gen_ai.agent.name": run.agent,
            _SPAN_KIND: "tool_execution",
        }
        served = _MCP.fullmatch(call.name)
        if served is not None:
            attributes[_SPAN_KIND] = "mcp_tool"
            attributes["claude_agent.mcp.server_name"], attributes["claude_agent.mcp.tool_name"] = (
                served.groups()
            )
        return self._span(
            ("step", call.id), call, f"execute_tool {call.name}", attributes, call.error
        )

    def _dispatch(self, index: int, turn: Turn, dispatch: Dispatch) -> Span:
        workflow = dispatch.to_kind == "workflow"
        operation = "invoke_workflow" if workflow else "invoke_agent"
        attributes: Attributes = {
            own.KIND: "dispatch",
            own.TURN: turn.id,
            own.INDEX: index,
            "gen_ai.operation.name": operation,
            _SPAN_KIND: "subagent",
            _SUB + "type": dispatch.to_agent,
            **of_dispatch(self._trace, dispatch),
        }
        if workflow:
            attributes["gen_ai.workflow.name"] = dispatch.to_agent
        if dispatch.prompt is not None:
            attributes[_SUB + "prompt"] = dispatch.prompt.plain()
        if dispatch.tools_allowed is not None:
            attributes[_SUB + "tools"] = own.as_json(dispatch.tools_allowed)
        # The call that started the agent that made this dispatch.
        sender = self._runs.get(dispatch.from_run or "")
        started_by = sender.started_by if sender is not None else []
        outer = next((self._calls[id_] for id_ in started_by if id_ in self._calls), None)
        if outer is not None:
            attributes["claude_agent.parent_tool_use_id"] = outer
        name = f"{operation} {dispatch.to_agent}"
        span = self._span(("dispatch", dispatch.id), dispatch, name, attributes, dispatch.error)
        span.links = [self._link(("run", id_)) for id_ in dispatch.runs]
        return span

    def _decision(self, index: int, decision: Mapping[str, Any]) -> Span:
        """Write a guard's decision as guards do, for stores that do not know records."""
        at = self._starts[ROOT]
        named = {name: decision.get(name) for name in OF_DECISIONS}
        return Span(
            trace_id=self._id,
            span_id=span_id(self._id, "decision", str(index)),
            parent_id=self._span_id(ROOT),
            name="baton.guard",
            started=at,
            ended=at,
            attributes={
                own.KIND: "decision",
                own.INDEX: index,
                **{
                    f"{own.GUARD}{name}": value
                    for name, value in named.items()
                    if isinstance(value, str | bool)
                },
            },
            scope=own.SCOPE,
        )

    def _event(self, order: int, step: HandedOff | GotBack) -> Event:
        name = "baton.handed_off" if isinstance(step, HandedOff) else "baton.got_back"
        at, more = event_time(_times(step), self._start(("step", step.id)))
        attributes = {own.ID: step.id, own.INDEX: order, **own.write_fields(step), **more}
        return Event(name=name, at=at, attributes=attributes)

    def _span(
        self, place: Place, obj: _Part, name: str, attributes: Attributes, error: str | None
    ) -> Span:
        start, end, more = span_times(_times(obj), self._start(place))
        attributes = {own.ID: obj.id, **attributes, **own.write_fields(obj), **more}
        if self._trace.id:
            attributes[own.CONVERSATION] = self._trace.id
        if error == "":
            attributes[own.ERROR] = error
        failed = error is not None or getattr(obj, "status", None) in _FAILED
        return Span(
            trace_id=self._id,
            span_id=self._span_id(place),
            parent_id=self._span_id(self._nesting.parent(place)),
            name=name,
            started=start,
            ended=end,
            attributes=attributes,
            status=ERROR if failed else 0,
            message=error or None,
            scope=own.SCOPE,
        )

    def _link(self, place: Place) -> Link:
        return Link(trace_id=self._id, span_id=self._span_id(place))

    def _span_id(self, place: Place) -> str:
        return span_id(self._id, *place)


def _times(obj: msgspec.Struct) -> list[Named]:
    return [(name, getattr(obj, name)) for name in TIMES[type(obj)]]

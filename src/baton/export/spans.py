"""A record as spans: one for each turn, run, text, tool call and dispatch, below one of them all.

GenAI's conventions, and ``baton.*`` for what they have no attribute for. ``claude_agent.*`` are
the kinds of spans, and of what sub-agents are sent with, that traceAI has.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import msgspec

from baton.model import AgentRun, Dispatch, GotBack, HandedOff, Said, ToolCall, Trace, Turn
from baton.readers.otlp.own import fields, values
from baton.readers.otlp.own.fields import TIMES
from baton.readers.otlp.own.values import Attributes
from baton.readers.otlp.span import ERROR, Event, Link, Span

from . import ids, sums
from .nesting import ROOT, Place, nest
from .times import Named, event_time, span_times

_Part = Turn | AgentRun | Said | ToolCall | HandedOff | GotBack | Dispatch
_SPAN_KIND = "claude_agent.span_kind"
_SUB = "claude_agent.subagent."
_MCP = re.compile(r"mcp__(.+?)__(.+)")
_FAILED = ("failed", "refused")


def spans_of(trace: Trace) -> list[Span]:
    """Write a record as the spans of one trace, parents first."""
    return _Writer(trace).spans()


class _Writer:
    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._id = ids.trace_id(trace)
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
        """Return when something starts, or else the nearest thing around it."""
        while place not in self._starts:
            place = self._nesting.parent(place)
        return self._starts[place]

    def spans(self) -> list[Span]:
        below = list(self._below())
        root = self._root(len(below) + 1)
        root.ended = max((span.ended or 0.0 for span in below), default=root.started)
        return [root, *below]

    def _below(self) -> Iterator[Span]:
        for index, turn in enumerate(self._trace.turns):
            yield self._turn(index, turn)
            for number, run in enumerate(turn.runs):
                yield self._run(number, turn, run)
                for order, step in enumerate(run.steps):
                    if isinstance(step, Said):
                        yield self._said(order, run, step)
                    elif isinstance(step, ToolCall):
                        yield self._call(order, run, step)
            for number, dispatch in enumerate(turn.dispatches):
                yield self._dispatch(number, turn, dispatch)

    def _root(self, count: int) -> Span:
        trace, at = self._trace, self._starts[ROOT]
        told: Attributes = {
            fields.KIND: "trace",
            **fields.write_fields(trace),
            fields.SPANS: count,
            "baton.source.format": trace.source.format,
            _SPAN_KIND: "conversation",
            **(values.write_usage(trace.usage) if trace.usage is not None else {}),
            **sums.of_trace(trace),
        }
        if trace.source.framework is not None:
            told["baton.source.framework"] = trace.source.framework
        return Span(
            trace_id=self._id,
            span_id=ids.span_id(self._id, *ROOT),
            name="conversation",
            started=at,
            ended=at,
            attributes=told,
            scope=fields.SCOPE,
        )

    def _turn(self, index: int, turn: Turn) -> Span:
        told = {
            fields.KIND: "turn",
            fields.INDEX: index,
            "gen_ai.operation.name": "invoke_workflow",
            **sums.of_runs(turn.runs),
        }
        return self._span(("turn", turn.id), turn, f"turn {index + 1}", told, turn.error)

    def _run(self, index: int, turn: Turn, run: AgentRun) -> Span:
        told = {
            fields.KIND: "run",
            fields.TURN: turn.id,
            fields.INDEX: index,
            "gen_ai.operation.name": "invoke_agent",
            **(values.write_usage(run.usage) if run.usage is not None else {}),
            **sums.of_run(self._trace, run, self._made[run.id]),
        }
        span = self._span(("run", run.id), run, f"invoke_agent {run.agent}", told, run.error)
        span.events = [
            self._event(order, step)
            for order, step in enumerate(run.steps)
            if isinstance(step, HandedOff | GotBack)
        ]
        span.links = [self._link(("dispatch", id_)) for id_ in run.started_by]
        return span

    def _said(self, order: int, run: AgentRun, said: Said) -> Span:
        told: Attributes = {
            fields.KIND: "said",
            fields.RUN: run.id,
            fields.INDEX: order,
            "gen_ai.operation.name": "chat",
            "gen_ai.agent.name": run.agent,
            _SPAN_KIND: "assistant_turn",
        }
        if run.model is not None:
            told["gen_ai.request.model"] = run.model
        span = self._span(("step", said.id), said, "chat", told, None)
        if said.thought:
            thought = values.messages(said.content, "assistant", text="reasoning")
            span.attributes["gen_ai.output.messages"] = thought
        return span

    def _call(self, order: int, run: AgentRun, call: ToolCall) -> Span:
        told: Attributes = {
            fields.KIND: "tool_call",
            fields.RUN: run.id,
            fields.INDEX: order,
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.call.id": call.id,
            "gen_ai.agent.name": run.agent,
            _SPAN_KIND: "tool_execution",
        }
        served = _MCP.fullmatch(call.name)
        if served is not None:
            told[_SPAN_KIND] = "mcp_tool"
            told["claude_agent.mcp.server_name"], told["claude_agent.mcp.tool_name"] = (
                served.groups()
            )
        return self._span(("step", call.id), call, f"execute_tool {call.name}", told, call.error)

    def _dispatch(self, index: int, turn: Turn, dispatch: Dispatch) -> Span:
        workflow = dispatch.to_kind == "workflow"
        operation = "invoke_workflow" if workflow else "invoke_agent"
        told: Attributes = {
            fields.KIND: "dispatch",
            fields.TURN: turn.id,
            fields.INDEX: index,
            "gen_ai.operation.name": operation,
            _SPAN_KIND: "subagent",
            _SUB + "type": dispatch.to_agent,
            **sums.of_dispatch(self._trace, dispatch),
        }
        if workflow:
            told["gen_ai.workflow.name"] = dispatch.to_agent
        if dispatch.prompt is not None:
            told[_SUB + "prompt"] = dispatch.prompt.plain()
        if dispatch.tools_allowed is not None:
            told[_SUB + "tools"] = values.as_json(dispatch.tools_allowed)
        outer = self._outer_call(dispatch)
        if outer is not None:
            told["claude_agent.parent_tool_use_id"] = outer
        name = f"{operation} {dispatch.to_agent}"
        span = self._span(("dispatch", dispatch.id), dispatch, name, told, dispatch.error)
        span.links = [self._link(("run", id_)) for id_ in dispatch.runs]
        return span

    def _outer_call(self, dispatch: Dispatch) -> str | None:
        """Return the call that set to work the agent that made this dispatch."""
        run = self._runs.get(dispatch.from_run or "")
        started_by = run.started_by if run is not None else []
        return next((self._calls[id_] for id_ in started_by if id_ in self._calls), None)

    def _event(self, order: int, step: HandedOff | GotBack) -> Event:
        name = "baton.handed_off" if isinstance(step, HandedOff) else "baton.got_back"
        at, more = event_time(_times(step), self._start(("step", step.id)))
        told = {fields.ID: step.id, fields.INDEX: order, **fields.write_fields(step), **more}
        return Event(name=name, at=at, attributes=told)

    def _span(
        self, place: Place, obj: _Part, name: str, told: Attributes, error: str | None
    ) -> Span:
        start, end, more = span_times(_times(obj), self._start(place))
        told = {fields.ID: obj.id, **told, **fields.write_fields(obj), **more}
        if self._trace.id:
            told[fields.CONVERSATION] = self._trace.id
        if error == "":
            told[fields.ERROR] = error
        failed = error is not None or getattr(obj, "status", None) in _FAILED
        return Span(
            trace_id=self._id,
            span_id=self._span_id(place),
            parent_id=self._span_id(self._nesting.parent(place)),
            name=name,
            started=start,
            ended=end,
            attributes=told,
            status=ERROR if failed else 0,
            message=error or None,
            scope=fields.SCOPE,
        )

    def _link(self, place: Place) -> Link:
        return Link(trace_id=self._id, span_id=self._span_id(place))

    def _span_id(self, place: Place) -> str:
        return ids.span_id(self._id, *place)


def _times(obj: msgspec.Struct) -> list[Named]:
    return [(name, getattr(obj, name)) for name in TIMES[type(obj)]]

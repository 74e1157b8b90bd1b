"""What a run and a turn are besides their steps: input, output, times, tokens, status."""

from __future__ import annotations

import msgspec

from baton.model import (
    AgentRun,
    Content,
    Said,
    ToolCall,
    Turn,
    Usage,
)
from baton.model.views import sum_usage
from baton.readers.builder import not_before

from .dialects.genai import error_text
from .messages import last_of
from .node import Node
from .runs import Work
from .span import ERROR


def describe(work: Work, opens: bool) -> None:
    """Fill in what a run is besides its steps."""
    run, own = work.run, work.owned
    models = [node for node in own if node.kind == "model"]
    run.inside = _inside(work)
    run.started, run.ended = _times(work)
    run.node = next((node.node for node in work.nodes if node.node), None)
    run.model = _last([node.model for node in models]) or _last([n.model for n in work.nodes])
    run.usage = _usage(work, models)
    run.input = _input(work, models)
    run.output = _output(work)
    offered = [node.offered for node in (*models, *work.nodes) if node.offered is not None]
    run.tools_offered = (
        list(dict.fromkeys(n for names in offered for n in names)) if offered else None
    )
    failed = next((node for node in work.nodes if node.failed), None)
    if failed is not None:
        run.status, run.error = "failed", failed.error
    elif run.ended is None:
        run.status = "unknown"
    _name_unknown(run, models, work)
    if not work.named and not opens:
        run.unknown.append("agent")


def _inside(work: Work) -> list[str]:
    """Return the workflows around a run, but for those that only wrap an agent of their name."""
    names: list[str] = []
    at = work.first.in_workflow
    while at is not None:
        if at.name is not None and at.name != work.agent:
            names.append(at.name)
        at = at.in_workflow
    return list(dict.fromkeys(reversed(names)))


def _times(work: Work) -> tuple[float | None, float | None]:
    spans = [node.span for node in (work.nodes or work.owned)]
    starts = [span.started for span in spans if span.started is not None]
    ends = [span.ended for span in spans]
    open_ = any(end is None for end in ends)
    ended = None if open_ else max((end for end in ends if end is not None), default=None)
    started = min(starts, default=None)
    return started, not_before(started, ended)


def _last(values: list[str | None]) -> str | None:
    return next((value for value in reversed(values) if value), None)


def _usage(work: Work, models: list[Node]) -> Usage | None:
    """Add up the model requests; what an agent sums up itself counts only where they tell none."""
    requests = [*models, *work.inner]
    told = sum_usage([_request(node) for node in requests])
    if told is not None and (told.input_tokens, told.output_tokens) != (None, None):
        return told
    totals = [node.totals for node in work.nodes if node.totals is not None]
    if totals:
        total = sum_usage(totals)
        if total is not None:
            total.requests = told.requests if told is not None else None
            total.failed_requests = told.failed_requests if told is not None else None
        return total
    return told


def _request(node: Node) -> Usage:
    if node.failed:
        usage = node.usage or Usage()
        usage.requests, usage.failed_requests = None, 1
        return usage
    return node.usage or Usage(requests=1, complete=False)


def _input(work: Work, models: list[Node]) -> Content | None:
    """Return what a run was given: the last user message before its first answer."""
    for node in (*work.nodes, *models[:1]):
        if node.input is not None:
            return node.input
        found = node.asked()
        if found is not None:
            return found
    return None


def _output(work: Work) -> Content | None:
    """Return the last answer of a run: what its span says, else its words after its last call."""
    stated = next((node.output for node in work.nodes if node.output is not None), None)
    for step in reversed(work.run.steps):
        if isinstance(step, ToolCall):
            break
        if isinstance(step, Said) and not step.thought:
            same = stated is None or stated.plain().strip() == step.content.plain().strip()
            return step.content if same else stated
    for node in work.nodes:
        found = stated or last_of(node.spoken_messages(), "assistant")
        if found is not None and found.text is not None:
            return msgspec.structs.replace(found, text=found.text.rstrip())
        if found is not None:
            return found
    return None


def _name_unknown(run: AgentRun, models: list[Node], work: Work) -> None:
    for name in ("input", "usage", "model", "tools_offered", "started"):
        if getattr(run, name) is None:
            run.unknown.append(name)
    speakers = models or work.nodes
    silent = [node for node in speakers if not node.failed and _silent(node)]
    if silent or not speakers:
        run.unknown.append("steps.said")
        if run.output is None:
            run.unknown.append("output")


def _silent(node: Node) -> bool:
    """Tell a request of which is not recorded what was answered."""
    return node.spoken is None or any(message.hidden for message in node.spoken_messages())


def finish(turn: Turn, nodes: list[Node], works: list[Work], torn: bool) -> None:
    """Fill in what a turn is besides its runs."""
    top = [work for work in works if work.place is None] or works
    roots = [node for node in nodes if node.in_agent is None and node.in_tool is None]
    frames = [n for n in roots if n.kind == "workflow" or (n.parent is None and n.kind == "none")]
    turn.started = min((n.span.started for n in nodes if n.span.started is not None), default=None)
    ends = [n.span.ended for n in nodes if n.span.ended is not None]
    turn.ended = not_before(turn.started, max(ends, default=None))
    turn.input = next((c for n in frames if (c := n.asked())), None)
    turn.input = turn.input or top[0].run.input
    last = max(top, key=lambda work: work.ended)
    told = [work for work in top if work.run.output is not None]
    turn.output = max(told, key=lambda work: work.ended).run.output if told else None
    if turn.output is None and last.run.status == "completed":
        turn.output = next(
            (c for n in frames if (c := last_of(n.spoken_messages(), "assistant"))), None
        )
    _settle(turn, nodes, frames, last, torn)
    runs = {run.id: run for run in turn.runs}
    for dispatch in turn.dispatches:
        sender = runs.get(dispatch.from_run or "")
        why = turn.error if turn.status == "failed" else None
        error = sender.error if sender is not None and sender.status == "failed" else why
        if dispatch.kind == "transfer" and dispatch.status == "unanswered" and error:
            dispatch.status, dispatch.error = "failed", error
    for name in ("input", "started"):
        if getattr(turn, name) is None:
            turn.unknown.append(name)
    if "output" in last.run.unknown and last.run.status != "failed":
        turn.output = None
        turn.unknown.append("output")


def _settle(turn: Turn, nodes: list[Node], frames: list[Node], last: Work, torn: bool) -> None:
    """Tell how a turn ended; ``frames`` stand around its runs, of which ``last`` ended last."""
    broken = [node for node in frames if node.span.status == ERROR]
    failed = next((node for node in broken if _top(node) is _top(last.first)), None)
    if last.run.status == "failed":
        turn.status, turn.error, turn.output = "failed", last.run.error, None
    elif failed is not None:
        turn.status, turn.error = "failed", failed.error or error_text(failed.span)
    elif last.run.ended is None:
        turn.status = "incomplete"
        turn.error = f"the recording ends before `{last.run.agent}` has ended"
    elif lost := _lost_parents(nodes, torn):
        turn.status = "incomplete"
        turn.error = f"spans are missing: {lost} of the spans around those recorded"
    elif _waits(nodes):
        turn.status = last.run.status = "waiting"
        for step in last.run.steps:
            if isinstance(step, ToolCall) and step.status == "unanswered":
                step.status = "waiting"


def _waits(nodes: list[Node]) -> bool:
    """Tell whether a program stopped for a person, and did not go on after that."""
    asked = max((node.ended for node in nodes if node.waits), default=None)
    return asked is not None and all(node.started <= asked for node in nodes)


def _lost_parents(nodes: list[Node], torn: bool) -> int:
    """Count the spans that others name as their parent and that are not in the recording.

    An agent's parent may be another program's, and where no agent has a span, that of a model
    request may be a web server's; where agents have spans, one is missing.
    """
    agents = any(node.kind == "agent" for node in nodes)
    doing = ("model", "tool", "handoff") if agents else ()
    loose = [node for node in nodes if node.kind in doing and node.in_agent is None]
    tops = {id(top): top for top in map(_top, nodes if torn else loose)}
    return len({top.span.parent_id for top in tops.values() if top.span.parent_id})


def _top(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node

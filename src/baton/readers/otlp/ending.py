"""What a turn is besides its runs: what was asked and answered, and how it ended."""

from __future__ import annotations

from baton.model import (
    ToolCall,
    Turn,
)

from .book import not_before
from .dialects.genai import error_text
from .messages import last_of
from .node import Node
from .runs import Work
from .span import ERROR


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

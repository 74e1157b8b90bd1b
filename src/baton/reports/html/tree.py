"""A trace as plain nested data for the page: runs under the dispatches that started them."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.model import (
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Said,
    Step,
    ToolCall,
    Trace,
    Turn,
    known,
)
from baton.model.views import TreeNode, turn_tree
from baton.reports.trace import gaps, tokens_line

Plain = dict[str, Any]
MOST = 20_000
"""Characters of one text that the page holds."""


def trace_tree(trace: Trace) -> Plain:
    """Return turns with their runs nested, and what was not recorded; nothing empty stands."""
    dispatches = {d.id: d for turn in trace.turns for d in turn.dispatches}
    return _told(
        id=trace.id,
        turns=[_turn(trace, turn, dispatches) for turn in trace.turns],
        gaps=list(gaps(trace)),
        state=_json(trace.state),
    )


def text_of(content: Content | None) -> str | None:
    """Return text, or data as JSON, and what is attached; cut to ``MOST`` characters."""
    if content is None:
        return None
    told = content.text if content.text is not None else _json(content.data)
    attached = ", ".join(f"[{part.mime or part.type}]" for part in content.parts or ())
    return cut("\n".join(part for part in (told, attached) if part))


def cut(text: str) -> str:
    """Cut a text that is too long for a page, and say so."""
    if len(text) <= MOST:
        return text
    return f"{text[:MOST]}\n… {len(text) - MOST:,} more characters"


def _json(value: Any) -> str | None:
    if value is None:
        return None
    return cut(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _told(**fields: Any) -> Plain:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def _seconds(started: float | None, ended: float | None) -> float | None:
    return None if started is None or ended is None else round(ended - started, 3)


def _turn(trace: Trace, turn: Turn, dispatches: dict[str, Dispatch]) -> Plain:
    placed: set[str] = set()
    runs = [_run(node, dispatches, placed) for node in turn_tree(trace, turn)]
    loose = [_dispatch(d) for d in turn.dispatches if d.id not in placed]
    return _told(
        id=turn.id,
        input=text_of(turn.input),
        input_unknown=not known(trace, turn, "input") or None,
        output=text_of(turn.output),
        status=turn.status,
        error=turn.error,
        seconds=_seconds(turn.started, turn.ended),
        runs=runs,
        loose=loose,
    )


def _run(node: TreeNode, dispatches: dict[str, Dispatch], placed: set[str]) -> Plain:
    run = node.run
    children = {id_: child for child in node.children for id_ in child.run.started_by}
    shown: set[str] = set()
    steps = []
    for step in run.steps:
        if isinstance(step, ToolCall) and step.dispatch in dispatches:
            continue
        plain = _step(step, dispatches)
        if isinstance(step, HandedOff):
            placed.add(step.dispatch)
            child = children.get(step.dispatch)
            if child is not None and child.run.id not in shown:
                shown.add(child.run.id)
                plain["run"] = _run(child, dispatches, placed)
        steps.append(plain)
    rest = [_run(c, dispatches, placed) for c in node.children if c.run.id not in shown]
    placed.update(d.id for d in node.started_by)
    return _told(
        **_of_run(run),
        arrivals=[_dispatch(d) for d in node.started_by if d.kind in ("sequence", "return")],
        input=_given(run, node.started_by),
        steps=steps,
        runs=rest,
    )


def _of_run(run: AgentRun) -> Plain:
    return {
        "id": run.id,
        "agent": run.agent,
        "node": run.node if run.node != run.agent else None,
        "inside": " > ".join(run.inside),
        "model": run.model,
        "tokens": tokens_line(run.usage) if run.usage else None,
        "seconds": _seconds(run.started, run.ended),
        "status": run.status,
        "error": run.error,
        "unknown": run.unknown,
    }


def _given(run: AgentRun, started_by: list[Dispatch]) -> str | None:
    """Return what a run was given where that is not what its sender said."""
    if run.input is None or run.input in [d.prompt for d in started_by]:
        return None
    return text_of(run.input) if started_by else None


def _step(step: Step, dispatches: dict[str, Dispatch]) -> Plain:
    if isinstance(step, Said):
        text = text_of(step.content) or "(nothing)"
        return _told(type="said", id=step.id, text=text, thought=step.thought or None)
    if isinstance(step, ToolCall):
        return _call(step)
    dispatch = dispatches.get(step.dispatch)
    if dispatch is None:
        return {"type": "lost", "id": step.id, "dispatch": step.dispatch}
    if isinstance(step, GotBack):
        return _told(
            type="back",
            id=step.id,
            dispatch=dispatch.id,
            agent=dispatch.to_agent,
            text=text_of(dispatch.result),
            status=dispatch.status,
            error=dispatch.error,
        )
    return {"type": "dispatch", "id": step.id, "dispatch": _dispatch(dispatch)}


def _call(call: ToolCall) -> Plain:
    return _told(
        type="call",
        id=call.id,
        name=call.name,
        arguments=_json(call.arguments),
        result=text_of(call.result),
        status=call.status,
        refused_by=call.refused_by,
        error=call.error,
        seconds=_seconds(call.at, call.ended),
        unknown=call.unknown,
    )


def _dispatch(dispatch: Dispatch) -> Plain:
    tools = dispatch.tools_allowed
    return _told(
        id=dispatch.id,
        kind=dispatch.kind,
        mode=dispatch.mode if dispatch.mode != "foreground" else None,
        basis=dispatch.basis if dispatch.basis != "stated" else None,
        sender=dispatch.from_agent,
        to=dispatch.to_agent,
        to_kind=dispatch.to_kind if dispatch.to_kind != "agent" else None,
        call=dispatch.call,
        prompt=text_of(dispatch.prompt),
        description=dispatch.description,
        context=_json(dispatch.context) if dispatch.context else None,
        group=dispatch.group,
        tools=", ".join(tools) if isinstance(tools, list) else tools,
        continues=dispatch.continues,
        status=dispatch.status,
        error=dispatch.error,
        seconds=_seconds(dispatch.started, dispatch.ended),
        unknown=dispatch.unknown,
    )

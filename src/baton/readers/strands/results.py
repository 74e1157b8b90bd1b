"""Results of swarms and graphs, and the states that are kept of them."""

from __future__ import annotations

import msgspec

from baton.formats.document import Document
from baton.formats.prune import Stray
from baton.formats.strands import MultiAgentResult
from baton.model import SCHEMA_VERSION, Content, Dropped, Source, Trace, Turn
from baton.model.views import sum_usage
from baton.readers.adk.wire import dropped_keys
from baton.readers.catalog import Catalog

from .nodes import Level, Nodes
from .texts import blocks_content

NOT_TOLD = [
    "turn.state", "turn.output.data", "turn.started", "turn.ended", "run.input", "run.steps",
    "run.model", "run.tools_offered", "run.started", "run.ended", "dispatch.description",
    "dispatch.context", "dispatch.tools_allowed", "dispatch.tools_source", "dispatch.call",
    "dispatch.prompt", "dispatch.started", "dispatch.ended",
]  # fmt: skip
"""What no result tells."""


def read_result(document: Document, source: Source, catalog: Catalog, fallback_id: str) -> Trace:
    """Read a result or a state as one turn; its runs are visits, as far as these are told.

    Raises:
        InputError: it has faults.
    """
    strays: list[Stray] = []
    result = document.decode(MultiAgentResult, strays=strays)
    nodes = Nodes(document, strays)
    top = nodes.read(result)
    turn = _turn(result, nodes, top)
    usage = sum_usage(nodes.used)
    if usage is not None and not nodes.all_used_told:
        usage.complete = False
    state = (result.context or {}).get("shared_context")
    state = state if isinstance(state, dict) else None
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=fallback_id,
        source=source,
        turns=[turn],
        agents=catalog,
        state=state,
        usage=usage,
        unknown=[
            *NOT_TOLD,
            *(["state"] if state is None else []),
            *(["usage"] if usage is None else []),
        ],
        dropped=[*dropped_keys(strays), *_dropped(result, nodes)],
    )


def _turn(result: MultiAgentResult, nodes: Nodes, top: Level) -> Turn:
    turn = Turn(id="turn1", runs=nodes.runs, dispatches=nodes.dispatches)
    turn.input = _task(result)
    if turn.input is None:
        turn.unknown.append("input")
    if nodes.lost:
        turn.unknown.append("runs")
    if not nodes.dispatches_told:
        turn.unknown.append("dispatches")
    if result.status == "completed":
        final = top.final()
        turn.output = final.output if final is not None else None
        if turn.output is None:
            turn.unknown.append("output")
    elif result.status == "failed":
        turn.status = "failed"
        turn.error = "; ".join(run.error for run in nodes.runs if run.error) or None
        turn.unknown += ["error"] if turn.error is None else []
    elif result.status == "interrupted":
        turn.status = "waiting"
    else:
        turn.status = "incomplete"
    return turn


def _task(result: MultiAgentResult) -> Content | None:
    task = result.current_task
    if task is msgspec.UNSET or not task:
        return None
    if isinstance(task, str):
        return Content(text=task)
    return blocks_content(task)


def _dropped(result: MultiAgentResult, nodes: Nodes) -> list[Dropped]:
    dropped = []
    if nodes.lost:
        what = "a visit of a node that is visited again: only the last one's result is kept"
        dropped.append(Dropped(what=what, count=nodes.lost))
    if nodes.interrupts:
        name = nodes.interrupts[0].get("name")
        example = name if isinstance(name, str) else None
        dropped.append(Dropped(what="an interrupt", count=len(nodes.interrupts), example=example))
    message = (result.context or {}).get("handoff_message")
    if isinstance(message, str) and message:
        dropped.append(
            Dropped(what="a hand-off message whose call is not told", example=message[:80])
        )
    return dropped

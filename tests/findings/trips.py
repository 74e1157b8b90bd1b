"""A round trip made by hand: a user asks, a lead hands on, a helper answers, the lead goes on."""

from __future__ import annotations

from typing import Any

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
)
from baton.testing import build


def said(text: str, id_: str = "said") -> Said:
    return Said(id=id_, content=Content(text=text))


def called(tool: str, id_: str = "call", **arguments: Any) -> ToolCall:
    return ToolCall(id=id_, name=tool, arguments=arguments, result=Content(text="ok"))


def trip(
    result: str | None,
    *after: Step,
    user: str = "Please help",
    prompt: str | None = "Look into it",
    answer: str | None = None,
    before: tuple[Step, ...] = (),
    child: tuple[Step, ...] = (),
    received: str | None = None,
    kind: str = "delegate",
    **dispatch: Any,
) -> Trace:
    """Give a trace with one dispatch ``d``; the answer is the last thing the lead said."""
    steps = [*before, HandedOff(id="h", dispatch="d"), GotBack(id="g", dispatch="d"), *after]
    spoken = [step.content for step in after if isinstance(step, Said)]
    output = Content(text=answer) if answer is not None else (spoken[-1] if spoken else None)
    lead = AgentRun(id="r1", agent="lead", steps=steps, output=output)
    helper = AgentRun(id="r2", agent="helper", started_by=["d"], steps=list(child))
    helper.input = None if received is None else Content(text=received)
    helper.unknown = ["input"] if received is None else []
    made = {
        "from_run": "r1",
        "from_agent": "lead",
        "to_agent": "helper",
        "prompt": None if prompt is None else Content(text=prompt),
        "result": None if result is None else Content(text=result),
        "runs": ["r2"],
        **dispatch,
    }
    turn = Turn(
        id="t",
        input=Content(text=user),
        output=output,
        runs=[lead, helper],
        dispatches=[Dispatch(id="d", kind=kind, **made)],  # type: ignore[arg-type]
    )
    return build.trace(turn)

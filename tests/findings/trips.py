"""A round trip made by hand: a user asks, a lead hands on, a helper answers, the lead goes on."""

from __future__ import annotations

from typing import Any, Literal

from baton.model import (
    GotBack,
    HandedOff,
    Said,
    Step,
    ToolCall,
    Trace,
)
from baton.testing import build
from baton.testing.build import run


def said(text: str, id_: str = "said") -> Said:
    return build.said(text, id=id_)


def called(tool: str, id_: str = "call", **arguments: Any) -> ToolCall:
    return build.call(tool, arguments, "ok", id=id_)


def trip(
    result: str | None,
    *after: Step,
    user: str = "Please help",
    prompt: str | None = "Look into it",
    answer: str | None = None,
    before: tuple[Step, ...] = (),
    child: tuple[Step, ...] = (),
    received: str | None = None,
    kind: Literal["delegate", "transfer", "sequence"] = "delegate",
    **dispatch: Any,
) -> Trace:
    """Give a trace with one dispatch ``d``; the answer is the last thing the lead said."""
    steps = [*before, HandedOff(id="h", dispatch="d"), GotBack(id="g", dispatch="d"), *after]
    spoken = [step.content for step in after if isinstance(step, Said)]
    output = answer if answer is not None else (spoken[-1] if spoken else None)
    lead = run("lead", *steps, output=output)
    helper = run("helper", *child, input=received, started_by=["d"])
    helper.unknown = ["input"] if received is None else []
    ids: dict[str, Any] = {"from_run": "r1", "from_agent": "lead", "runs": ["r2"]}
    stated = {"to": dispatch.pop("to_agent", "helper"), **ids, **dispatch}
    made = build.dispatch(prompt=prompt, id="d", kind=kind, result=result, **stated)
    return build.trace(build.turn(user, lead, helper, made, id="t", output=output))

"""A front desk that hands refunds to billing, with spans as the GenAI conventions have them."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from opentelemetry import context, trace

tracer = trace.get_tracer("tests.desk")


def messages(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


@contextmanager
def agent(name: str, heard: str = "", says: str = "", **more: Any) -> Iterator[trace.Span]:
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name, **more}
    if heard:
        attributes["gen_ai.input.messages"] = messages("user", heard)
    if says:
        attributes["gen_ai.output.messages"] = messages("assistant", says)
    with tracer.start_as_current_span(f"invoke_agent {name}", attributes=attributes) as span:
        yield span


@contextmanager
def tool(name: str, result: str = "", **arguments: Any) -> Iterator[None]:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.id": f"call-{time.monotonic_ns()}",
        "gen_ai.tool.call.arguments": json.dumps(arguments),
        "gen_ai.tool.call.result": result,
    }
    with tracer.start_as_current_span(f"execute_tool {name}", attributes=attributes):
        yield


def reply(message: str) -> str:
    """Answer; a refund is handed over, which two spans side by side and a tool tell."""
    if "refund" not in message:
        with agent("front", message, "Hello."):
            return "Hello."
    with agent("front", message), tool("transfer_to_billing"):
        pass
    with agent("billing", message, "Done."), tool("refund", "ok", order=message.rpartition(" ")[2]):
        pass
    return "Done."


async def slow(message: str) -> str:
    """Work side by side with other cases, in tasks and threads of its own."""
    with agent("front", message), tool("note", order=message):
        await asyncio.sleep(0.03)
    await asyncio.gather(*(asyncio.to_thread(in_thread, message, n) for n in range(2)))
    return f"did {message}"


def in_thread(message: str, number: int) -> None:
    with agent(f"helper{number}", message), tool("note", order=message):
        time.sleep(0.01 * (number + 1))


def remembers(message: str, session: dict[str, Any]) -> str:
    session.setdefault("seen", []).append(message)
    with agent("front", message):
        return ",".join(session["seen"])


def silent(message: str) -> None:
    """Leave the answer to the spans, if there is one."""
    if message == "say":
        with agent("front", message, "Said."):
            return


def raises(message: str) -> str:
    with agent("front", message), tool("refund", order=message):
        raise ValueError("the till is empty")


def linked(message: str) -> str:
    """Do some work in its own trace that names the span it is for."""
    with agent("front", message) as span:
        link = trace.Link(span.get_span_context())
    away = tracer.start_span("job", context=context.Context(), links=[link])
    with trace.use_span(away, end_on_exit=True), agent("worker", message):
        pass
    return "ok"


def leads_there(message: str) -> str:
    """Do some work in its own trace, which a later span names."""
    job = tracer.start_as_current_span("job", context=context.Context())
    with job as away, agent("worker", message):
        pass
    link = trace.Link(away.get_span_context())
    with tracer.start_as_current_span("fetch", links=[link]), agent("front", message):
        return "ok"


def strays(message: str) -> str:
    """Start a span in a thread that knows nothing of the call, for some messages."""
    if message == "stray":
        thread = threading.Thread(target=lambda: tracer.start_span("clean up").end())
        thread.start()
        thread.join()
    return reply(message)


def leaves_open(message: str) -> str:
    with agent("front", message):
        tracer.start_span("background")
    return "ok"


def states(message: str) -> dict[str, Any]:
    with agent("front", message):
        return {"output": "ok", "agents": ["somebody", "else"], "usage": {"input_tokens": 7}}


def process(message: str) -> str:
    """Tell which process it is; take long enough that others are needed beside it."""
    time.sleep(0.02)
    with agent("front", message):
        return str(os.getpid())


def whole(case: Any) -> str:
    with agent("front", case.id):
        return f"case {case.id}"


def whispers(message: str) -> str:
    """Write the words to log records, as some instrumentations do."""
    from opentelemetry import _logs

    logger = _logs.get_logger("tests.desk")
    with agent("front"):
        body: Any = {"message": {"role": "assistant", "content": f"said {message}"}, "index": 0}
        logger.emit(event_name="gen_ai.choice", body=body, timestamp=time.time_ns())
    return "ok"


def greets(message: str) -> str:
    """Work with an agent from the second message on, in a session of the agent's own choice."""
    if message == "hi":
        return "Hello."
    with agent("front", message, "Done.", **{"session.id": "its own"}):
        return "Done."


FIRST: list[trace.SpanContext] = []


def looks_back(message: str) -> str:
    """Link each message's work to that of the first, and put some into another session."""
    links = [trace.Link(each) for each in FIRST]
    with tracer.start_as_current_span("step", links=links) as span, agent("front", message):
        FIRST[:] = FIRST or [span.get_span_context()]
        away = trace.Link(span.get_span_context())
    job = tracer.start_span(
        "job", context=context.Context(), links=[away], attributes={"session.id": "jobs"}
    )
    with trace.use_span(job, end_on_exit=True), agent("worker", message):
        return message


def recovers(message: str) -> str:
    """Answer although the agent failed."""
    try:
        return raises(message)
    except ValueError:
        return "Sorry."


def seed(case: Any) -> dict[str, Any]:
    with agent("seeder"):
        return {"seen": [case.id]}

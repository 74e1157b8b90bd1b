"""Parts of the record as text for a judge.

Our own words stand at the start of a line; what the trace holds is indented below them, so that
no content can pass for another step.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from baton.model import (
    AgentCard,
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Said,
    Step,
    ToolCall,
    Trace,
)


class Piece(NamedTuple):
    """A text, and the ids of what holds it."""

    ids: tuple[str, ...]
    text: str


def plain(content: Content | None) -> str:
    """Return content as text, attachments by their names."""
    if content is None:
        return ""
    texts = [content.plain()]
    texts += [f"(attached: {part.mime or part.type})" for part in content.parts or ()]
    return "\n".join(text for text in texts if text)


def value(data: Any) -> str:
    """Return plain data as JSON, a text as it is."""
    if isinstance(data, str):
        return data
    return msgspec.json.format(msgspec.json.encode(data), indent=1).decode()


def line(text: str) -> str:
    """Put a text that names something of the record on one line."""
    return " ".join(text.split())


def block(head: str, body: str) -> str:
    """Set a text below a heading, which is one line."""
    indented = textwrap.indent(body, "    ", lambda _: True)
    return f"{line(head)}\n{indented}" if body else line(head)


def step_pieces(trace: Trace, steps: Iterable[Step]) -> list[Piece]:
    """Write steps, each with what came back; thoughts are left out."""
    made = {d.id: d for turn in trace.turns for d in turn.dispatches}
    steps = list(steps)
    shown = {step.dispatch for step in steps if isinstance(step, HandedOff)}
    return [Piece(ids, text) for step in steps for ids, text in _step(made, shown, step)]


def run_pieces(trace: Trace, run: AgentRun) -> list[Piece]:
    """Write a run: whose it is, its steps, and its answer where no step says it."""
    pieces = [Piece((run.id,), line(f"agent {run.agent} at work ({run.status})"))]
    pieces += step_pieces(trace, run.steps)
    said = {plain(step.content) for step in run.steps if isinstance(step, Said)}
    if run.output and plain(run.output) not in said:
        pieces.append(Piece((run.id,), block("its answer:", plain(run.output))))
    if run.error:
        pieces.append(Piece((run.id,), block("it ended with an error:", run.error)))
    return pieces


def call_text(call: ToolCall, *, result: bool = True) -> str:
    """Write a tool call, with what came back."""
    head = f"called the tool {call.name} with:"
    text = block(head, "(no arguments)" if call.arguments is None else value(call.arguments))
    if not result:
        return text
    back = plain(call.result) or "(nothing)"
    text += "\n" + block(f"which came back ({call.status}) with:", call.error or back)
    return text


def dispatch_text(dispatch: Dispatch, *, bare: bool = False) -> str:
    """Write who was handed what, or with ``bare`` only who."""
    about = [dispatch.kind, dispatch.id]
    about += ["in the background"] if dispatch.mode == "background" else []
    about += [f"to the agent that did {dispatch.continues}"] if dispatch.continues else []
    parts = [line(f"handed work to {dispatch.to_agent} ({', '.join(about)})")]
    if bare:
        return parts[0]
    if dispatch.description:
        parts.append(block("described as:", dispatch.description))
    if dispatch.prompt:
        parts.append(block("with the prompt:", plain(dispatch.prompt)))
    if dispatch.context:
        parts.append(block("and the context:", value(dispatch.context)))
    return "\n".join(parts)


def result_text(dispatch: Dispatch) -> str:
    """Write what came back from a dispatch."""
    text = plain(dispatch.result) or dispatch.error or "(nothing)"
    return block(f"got back from {dispatch.to_agent} ({dispatch.status}):", text)


def card_text(name: str, card: AgentCard) -> str:
    """Write what is known of an agent."""
    lines = [
        f"what it is for: {card.description or '(not told)'}",
        f"tools: {tools_text(card.tools)}",
    ]
    if card.denied_tools:
        lines.append(f"denied: {', '.join(card.denied_tools)}")
    return block(f"agent {name}", "\n".join(lines))


def tools_text(names: list[str] | str | None) -> str:
    """Write a list of tools."""
    if names is None:
        return "(not told)"
    return "all" if isinstance(names, str) else line(", ".join(names)) or "(none)"


def _step(
    made: Mapping[str, Dispatch], shown: Collection[str], step: Step
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Write one step; a call that hands work on stands where that is ``shown``, else itself."""
    if isinstance(step, Said):
        if not step.thought:
            yield (step.id,), block("said:", plain(step.content))
    elif isinstance(step, ToolCall):
        if step.dispatch is None or step.dispatch not in made:
            yield (step.id,), call_text(step)
        elif step.dispatch not in shown:
            yield (step.id, step.dispatch), dispatch_text(made[step.dispatch])
    elif isinstance(step, HandedOff) and step.dispatch in made:
        yield (step.id, step.dispatch), dispatch_text(made[step.dispatch])
    elif isinstance(step, GotBack) and step.dispatch in made:
        yield (step.id, step.dispatch), result_text(made[step.dispatch])

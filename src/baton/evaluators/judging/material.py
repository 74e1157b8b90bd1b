"""Parts of the record as text for a judge, and what an input of a rubric is answered with."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from baton.evaluators.judging.subject import Subject
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
    Unit,
)

Kind = Literal["texts", "arguments", "results"]
"""What a body holds: what is passed to a tool or another agent, what a tool gave back, or the rest.

What an agent gives back is among the rest: words of an agent, which may tell of what it did.
"""

INDENT = "    "
# Line ends that JSON may hold as they are: escaped, so that no key or value starts a line.
_LINE_ENDS = str.maketrans({"\x85": "\\u0085", "\u2028": "\\u2028", "\u2029": "\\u2029"})
_ODD_LINE_END = re.compile("[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# A description with such a line could pass for another field of its agent, for example
# `Reads files.\ntools: all`.
_LIKE_A_FIELD = re.compile(rf"(?:\n|{_ODD_LINE_END.pattern})\s*(?:tools|denied|what it is for)\s*:")


class Body(NamedTuple):
    """What may be shortened: a text, or JSON of which long texts may be."""

    content: Any
    kind: Kind
    indent: str = INDENT

    @property
    def text(self) -> str:
        """All of it, as it is shown where there is room."""
        text = value(self.content)
        if text.endswith("\n") or _ODD_LINE_END.search(text) is not None:
            return textwrap.indent(text, self.indent, lambda _: True)
        return self.indent + text.replace("\n", f"\n{self.indent}")  # the same, and faster


Part = str | Body
"""A line of ours, which is always shown, or what stands below it."""


class Piece(NamedTuple):
    """A text, the ids of what holds it, and what it is made of; made by :func:`piece`."""

    ids: tuple[str, ...]
    text: str
    parts: tuple[Part, ...]


def piece(ids: tuple[str, ...], *parts: Part) -> Piece:
    """Put parts below one another."""
    text = "\n".join([part if isinstance(part, str) else part.text for part in parts])
    return Piece(ids, text, parts)


def raw(ids: tuple[str, ...], text: str, kind: Kind = "texts") -> Piece:
    """Return a text that has no line of ours above it; it has to be alone in what is shown."""
    return Piece(ids, text, (Body(text, kind, ""),))


def plain(content: Content | None) -> str:
    """Return content as text, attachments by their names."""
    if content is None:
        return ""
    texts = [content.plain()]
    texts += [line(f"(attached: {part.mime or part.type})") for part in content.parts or ()]
    return "\n".join(text for text in texts if text)


def value(data: Any) -> str:
    """Return plain data as JSON, a text as it is."""
    if isinstance(data, str):
        return data
    text = msgspec.json.format(msgspec.json.encode(data), indent=1).decode()
    return text if text.isascii() else text.translate(_LINE_ENDS)


def line(text: str) -> str:
    """Put a text that names something of the record on one line."""
    return " ".join(text.split())


def block(head: str, body: Any, kind: Kind = "texts") -> tuple[Part, ...]:
    """Set a text (or JSON) below a heading, which is one line."""
    return (line(head),) if body == "" else (line(head), Body(body, kind))


def step_pieces(trace: Trace, steps: Iterable[Step]) -> list[Piece]:
    """Write steps, each with what came back; thoughts are left out."""
    made = {d.id: d for turn in trace.turns for d in turn.dispatches}
    steps = list(steps)
    shown = {step.dispatch for step in steps if isinstance(step, HandedOff)}
    return [found for step in steps for found in _step(made, shown, step)]


def run_pieces(trace: Trace, run: AgentRun) -> list[Piece]:
    """Write a run: whose it is, its steps, and its answer where no step says it."""
    pieces = [piece((run.id,), line(f"agent {run.agent} at work ({run.status})"))]
    pieces += step_pieces(trace, run.steps)
    said = {plain(step.content) for step in run.steps if isinstance(step, Said)}
    if run.output and plain(run.output) not in said:
        pieces.append(piece((run.id,), *block("its answer:", plain(run.output))))
    if run.error:
        pieces.append(piece((run.id,), *block("it ended with an error:", run.error, "results")))
    return pieces


def call_parts(call: ToolCall, *, result: bool = True, by: str = "") -> tuple[Part, ...]:
    """Write a tool call, with what came back and, where it is not clear, ``by`` whom."""
    given = "(no arguments)" if call.arguments is None else call.arguments
    parts = block(f"{by} called the tool {call.name} with:", given, "arguments")
    if not result:
        return parts
    back = call.error or plain(call.result) or "(nothing)"
    return parts + block(f"which came back ({call.status}) with:", back, "results")


def dispatch_parts(dispatch: Dispatch, *, bare: bool = False) -> tuple[Part, ...]:
    """Write who was handed what, or with ``bare`` only who."""
    about = [dispatch.kind, dispatch.id]
    about += ["in the background"] if dispatch.mode == "background" else []
    about += [f"to the agent that did {dispatch.continues}"] if dispatch.continues else []
    parts: tuple[Part, ...] = (line(f"handed work to {dispatch.to_agent} ({', '.join(about)})"),)
    if bare:
        return parts
    if dispatch.description:
        parts += block("described as:", dispatch.description, "arguments")
    if dispatch.prompt:
        parts += block("with the prompt:", plain(dispatch.prompt), "arguments")
    if dispatch.context:
        parts += block("and the context:", dispatch.context, "arguments")
    return parts


def result_parts(dispatch: Dispatch) -> tuple[Part, ...]:
    """Write what came back from a dispatch."""
    text = plain(dispatch.result) or dispatch.error or "(nothing)"
    return block(f"got back from {dispatch.to_agent} ({dispatch.status}):", text)


def card_parts(name: str, card: AgentCard) -> tuple[Part, ...]:
    """Write what is known of an agent."""
    says = card.description or "(not told)"
    if _LIKE_A_FIELD.search(says):
        says = textwrap.indent(says, INDENT, lambda _: True).strip()
    parts: tuple[Part, ...] = block(f"agent {name}", f"what it is for: {says}")
    parts += (f"{INDENT}tools: {tools_text(card.tools)}",)
    if card.denied_tools:
        parts += (f"{INDENT}denied: {tools_text(card.denied_tools)}",)
    return parts


def tools_text(names: list[str] | str | None) -> str:
    """Write a list of tools."""
    if names is None:
        return "(not told)"
    return "all" if isinstance(names, str) else line(", ".join(names)) or "(none)"


def _step(made: Mapping[str, Dispatch], shown: Collection[str], step: Step) -> Iterator[Piece]:
    """Write one step; a call that hands work on stands where that is ``shown``, else itself."""
    if isinstance(step, Said):
        if not step.thought:
            yield piece((step.id,), *block("said:", plain(step.content)))
    elif isinstance(step, ToolCall):
        if step.dispatch is None or step.dispatch not in made:
            yield piece((step.id,), *call_parts(step))
        elif step.dispatch not in shown:
            yield piece((step.id, step.dispatch), *dispatch_parts(made[step.dispatch]))
    elif isinstance(step, HandedOff) and step.dispatch in made:
        yield piece((step.id, step.dispatch), *dispatch_parts(made[step.dispatch]))
    elif isinstance(step, GotBack) and step.dispatch in made:
        yield piece((step.id, step.dispatch), *result_parts(made[step.dispatch]))


class Given(NamedTuple):
    """What is known, piece by piece; none says that there is nothing."""

    pieces: Sequence[Piece]


class Missing(NamedTuple):
    """Why it is not known, and what would supply it; ``unstated``: a case may leave it out."""

    says: str
    unstated: bool = False


class Input(NamedTuple):
    """An input: its heading for the judge, the units that have it, and where it comes from.

    ``none`` is what the judge is told where there is nothing; without it such a subject cannot
    be judged.
    """

    title: str
    units: tuple[Unit, ...]
    find: Callable[[Subject], Given | Missing]
    summary: str
    none: str | None = None


def given(*pieces: Piece) -> Given:
    """Give the pieces that hold a text."""
    return Given([piece for piece in pieces if piece.text.strip()])

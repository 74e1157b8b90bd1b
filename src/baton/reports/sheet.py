"""One dispatch on a page, for somebody who is to say whether it was right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import IO

from baton.model import Content, Dispatch, GotBack, HandedOff, Said, Step, ToolCall, Trace, Turn
from baton.model.views import RoundTrip, dispatch_view, round_trip

from .console import Text, console_for
from .text import arguments_line, content_line, one_line

_BEFORE = 3
_STEPS = 8
_SHORT, _FULL = 300, 20_000
_MARGIN = 8


def print_sheet(
    trace: Trace, turn: Turn, dispatch: Dispatch, out: IO[str], *, full: bool = False
) -> None:
    """Print who handed what to whom, what became of it, and what the caller did then.

    What the judge said is not shown, so that it does not sway whoever labels. Without ``full``
    long texts and transcripts are shortened, and say so.
    """
    console = console_for(out)
    made = {d.id: d for each in trace.turns for d in each.dispatches}
    limit = _FULL if full else _SHORT
    trip = round_trip(trace, dispatch)
    before = dispatch_view(trace, dispatch).before
    user = content_line(turn.input, limit) if turn.input else "no message"
    lines = [
        ("user", [user]),
        ("before", _steps(before, made, limit, last=None if full else _BEFORE)),
    ]
    lines.append((f"{one_line(dispatch.from_agent or 'program')} calls", _call(dispatch, limit)))
    for run in trip.runs:
        steps = _steps(run.steps, made, limit, first=None if full else _STEPS)
        lines.append((f"{one_line(run.agent)} works", steps or ["nothing is recorded"]))
    lines.append(("result", _result(trip, limit)))
    after = _steps(trip.after, made, limit, first=None if full else _BEFORE)
    lines.append(("next turn", after or ["nothing more"]))
    for title, texts in lines:
        console.print(Text(title, "bold cyan"))
        for text in texts:
            console.print(Text(f"  {text}"), soft_wrap=True)


def _call(dispatch: Dispatch, limit: int) -> list[str]:
    about = [dispatch.kind, dispatch.mode] if dispatch.mode == "background" else [dispatch.kind]
    found = [f"→ {one_line(dispatch.to_agent)} ({', '.join(about)}, {one_line(dispatch.id)})"]
    if dispatch.description:
        found.append(f"described as {one_line(dispatch.description, limit)}")
    found.append(_text("prompt", dispatch.prompt, limit))
    if dispatch.tools_allowed is not None:
        tools = dispatch.tools_allowed
        names = tools if isinstance(tools, str) else ", ".join(tools) or "none"
        found.append(f"tools allowed: {one_line(names, limit)}")
    return found


def _result(trip: RoundTrip, limit: int) -> list[str]:
    found = [_text("", trip.result, limit)] if trip.result else ["nothing came back"]
    if trip.dispatch.status != "completed":
        found.append(trip.dispatch.status)
    if trip.dispatch.error:
        found.append(one_line(trip.dispatch.error, limit))
    return found


def _steps(
    steps: Sequence[Step],
    made: dict[str, Dispatch],
    limit: int,
    *,
    first: int | None = None,
    last: int | None = None,
) -> list[str]:
    """Write steps, all of them or the first or last few."""
    lines = [line for step in steps for line in _step(step, made, limit)]
    kept = lines[-last:] if last is not None else lines[:first]
    left = len(lines) - len(kept)
    if not left:
        return kept
    told = f"… {left} more steps"
    return [told, *kept] if last is not None else [*kept, told]


def _step(step: Step, made: dict[str, Dispatch], limit: int) -> Iterator[str]:
    if isinstance(step, Said):
        if not step.thought:
            yield f"said {content_line(step.content, limit)}"
    elif isinstance(step, ToolCall):
        if step.dispatch not in made:
            back = f" = {content_line(step.result, limit)}" if step.result else ""
            wrong = f" ({step.status})" if step.status != "ok" else ""
            arguments = arguments_line(step.arguments, limit)
            yield f"{one_line(step.name)}({arguments}){back}{wrong}"
    elif isinstance(step, HandedOff) and step.dispatch in made:
        yield f"→ {one_line(made[step.dispatch].to_agent)}"
    elif isinstance(step, GotBack) and step.dispatch in made:
        other = made[step.dispatch]
        back = content_line(other.result, limit) if other.result else "nothing"
        yield f"← {one_line(other.to_agent)} {back}"


def _text(title: str, content: Content | None, limit: int) -> str:
    if content is None:
        return f"{title} not recorded".strip()
    return f"{title} {content_line(content, limit)}".strip()

"""A case that did not pass, as plain text: for a test that fails."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from baton.model import CaseResult, Dispatch, Score, Trace
from baton.store import Header, IndexRow, body_of, index_row

from .terminal import case_lines
from .text import content_line, one_line


def failure_text(result: CaseResult, *, repeats: int = 1) -> str:
    """Return what did not pass in a case: chains side by side, and the dispatches at fault."""
    row = msgspec.convert(index_row(result, 0, 0), IndexRow)
    header = Header(id="", name="", status=result.status, repeats=repeats)
    body = body_of(result, keep_trace=False)
    lines = [line.plain.rstrip() for line in case_lines(row, body, header)]
    if result.trace is not None:
        lines += dict.fromkeys(_dispatches(result.trace, result.scores))
    return "\n".join(lines).strip()


def _dispatches(trace: Trace, scores: list[Score]) -> Iterator[str]:
    dispatches = {each.id: each for turn in trace.turns for each in turn.dispatches}
    for score in scores:
        if score.status == "failed":
            for name in score.subject:
                if name in dispatches:
                    yield _dispatch(dispatches[name])


def _dispatch(dispatch: Dispatch) -> str:
    said = f"  {content_line(dispatch.prompt, 100)}" if dispatch.prompt else ""
    sender = one_line(dispatch.from_agent or "?")
    return f"  {dispatch.id}: {sender} → {one_line(dispatch.to_agent)}{said}"

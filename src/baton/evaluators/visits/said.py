"""What a run said: to its reader, and to the agents it handed work to."""

from __future__ import annotations

from typing import NamedTuple

from baton.model import AgentRun, Dispatch, Said, Trace, Turn, known


class Voice(NamedTuple):
    """Texts of a run with where they were said (``output``, ``prompt``, ``step``).

    ``whole`` tells whether all of them were recorded.
    """

    texts: list[tuple[str, str]]
    whole: bool


def voice_of(trace: Trace, turn: Turn, run: AgentRun) -> Voice:
    """Return what a run answered, wrote to other agents, and said on the way; thoughts apart."""
    sent = [d for d in turn.dispatches if d.from_run == run.id and d.kind != "return"]
    texts = [("output", run.output.plain() if run.output else "")]
    texts += [("prompt", _prompt(dispatch)) for dispatch in sent]
    texts += [
        ("step", step.content.plain())
        for step in run.steps
        if isinstance(step, Said) and not step.thought
    ]
    whole = (
        known(trace, run, "output")
        and known(trace, run, "steps.said")
        and known(trace, turn, "dispatches")
        and all(known(trace, dispatch, "prompt") for dispatch in sent)
    )
    return Voice([(where, text) for where, text in texts if text], whole)


def _prompt(dispatch: Dispatch) -> str:
    return dispatch.prompt.plain() if dispatch.prompt else ""

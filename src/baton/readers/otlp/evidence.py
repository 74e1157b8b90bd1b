"""What tells that work passed between two runs where no span says so."""

from __future__ import annotations

from baton.model import Content, Dispatch, Step

from .acts import Act
from .dialects.handover import prompt_of
from .names import plain_name, same_name
from .runs import Work


def meant(act: Act, work: Work) -> bool:
    """Tell whether a call is for this agent: by a name, or by the text that it was given."""
    if act.mode == "delegate" and act.target is not None:
        return same_name(act.target, work.agent)
    name = plain_name(act.step.name) if act.step is not None else ""
    if work.named and plain_name(work.agent) in name:
        return True
    given = work.run.input
    prompt = prompt_of(act.arguments)[0] if act.arguments is not None else None
    return bool(prompt and given and prompt.text and prompt.text == given.text)


def mentions(act: Act, work: Work) -> bool:
    """Tell whether a call names this agent: in its own name, its arguments or its result."""
    name = plain_name(work.agent)
    arguments = act.arguments
    values = arguments.values() if isinstance(arguments, dict) else [arguments]
    words = [act.step.name if act.step is not None else "", *(str(value) for value in values)]
    words.append(act.result.plain() if act.result is not None else "")
    return bool(name) and any(name in plain_name(word) for word in words)


def passed_on(before: Work, work: Work) -> bool:
    """Tell whether a run was given what another one answered."""
    said = before.run.output
    text = said.text.strip() if said is not None and said.text else ""
    return bool(text) and text in work.given


def is_node(work: Work, dispatch: Dispatch) -> bool:
    """Tell whether a dispatch names the graph's node for the agent of this run."""
    return work.run.node is not None and same_name(work.run.node, dispatch.to_agent)


def same_text(one: Content | None, other: Content | None) -> bool:
    """Tell whether two contents say the same, but for the space around."""
    if one is None or other is None or one.text is None or other.text is None:
        return False
    return one.text.strip() == other.text.strip()


def last_act(work: Work, acts: list[Act], last_step: Step | None) -> Act | None:
    """Return the call that a run ends with, also one of which only its request tells."""
    called = [act for act in acts if act.step is not None]
    last = called[-1] if called else None
    done = work.owned[-1] if work.owned else None
    asked = done is not None and done.kind == "model" and done.calls
    if last is None or (asked and last.node is not None):
        return Act() if asked else None
    handed = last.mode is not None or (last.step is not None and last.step.dispatch is not None)
    ends = last.step is last_step and not handed and not last.failed
    return last if ends else None

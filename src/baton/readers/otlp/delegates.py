"""Delegates: calls that an agent answers, what came of them, and how that is known."""

from __future__ import annotations

from typing import Literal

from baton.model import Content, Dispatch, Step
from baton.readers.builder import not_before

from .builder import Act, TurnDispatches
from .dialects.handover import prompt_of
from .runs import Work
from .values import plain_name, same_name

_REFUSED = (
    "Tool execution was not approved.",
    "The tool call was denied.",
    "Error: Tool call invocation was rejected by user.",
    "This tool call is rejected.",
    "User rejected the tool call for `",
)
_ASKED = ("This tool call requires confirmation, please approve or reject.",)


def decision(answer: str) -> Literal["refused", "waiting"] | None:
    """Tell what a person decided on a call by the answer to it; ``None`` when nobody was asked."""
    if answer.startswith(_REFUSED):
        return "refused"
    return "waiting" if answer.startswith(_ASKED) else None


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


_TICK = 0.001
"""Seconds by which clocks of one machine may seem to disagree."""


def delegate(made: TurnDispatches, work: Work, act: Act, child: Work | None) -> Dispatch:
    """Make the dispatch of a call that an agent answers; ``child`` is its run, where seen."""
    to = child.agent if child is not None else act.target or ""
    dispatch = made.dispatch("delegate", work, to, act.started, act)
    dispatch.basis = "stated" if act.target is not None else "structure"
    if child is not None and child.run.inside and child.first.in_tool is not None:
        dispatch.to_agent, dispatch.to_kind = child.run.inside[0], "workflow"
    elif child is not None and not child.named:
        dispatch.unknown.append("to_agent")
    _answer(dispatch, act, child)
    tell(dispatch, act)
    _complete_prompt(dispatch, child)
    if child is None and dispatch.status != "refused":
        _unseen_run(made, dispatch)
    if dispatch.status not in ("unanswered", "unknown"):
        made.got_back(work, dispatch)
    return dispatch


def delegate_without_call(made: TurnDispatches, owner: Work, work: Work) -> None:
    """Note that a run called another one of which no tool call tells."""
    dispatch = made.dispatch("delegate", owner, work.agent, work.run.started, Act())
    named = same_name(work.first.called_by, owner.agent)
    dispatch.basis = "stated" if named else "structure"
    dispatch.prompt, dispatch.result = work.first.prompt or work.run.input, work.run.output
    if dispatch.prompt is None:
        dispatch.unknown.append("prompt")
    dispatch.status = "failed" if work.run.status == "failed" else "completed"
    if dispatch.status == "failed":
        dispatch.error, dispatch.result = work.run.error, None
    elif dispatch.result is None:
        dispatch.unknown.append("result")
    dispatch.ended = work.run.ended
    made.start(dispatch, work)
    made.got_back(owner, dispatch)


def tell(dispatch: Dispatch, act: Act) -> None:
    """Move what the call says of a dispatch onto it: its prompt, not its answer."""
    if act.handoff is not None and act.handoff.prompt is not None:
        dispatch.prompt = act.handoff.prompt
    elif act.arguments is None:
        dispatch.unknown.append("prompt")
    else:
        dispatch.prompt, dispatch.description, dispatch.context = prompt_of(act.arguments)
    if act.step is not None:
        if dispatch.mode != "background":
            act.step.result = act.step.error = None
        act.step.unknown = [name for name in act.step.unknown if name != "result"]


def _complete_prompt(dispatch: Dispatch, child: Work | None) -> None:
    """Take for the prompt what the agent was given, else all that the call passed on."""
    if dispatch.prompt is not None:
        return
    if child is not None and child.run.input is not None:
        dispatch.prompt = child.run.input
        dispatch.unknown = [name for name in dispatch.unknown if name != "prompt"]
    elif dispatch.context:
        dispatch.prompt, dispatch.context = Content(data=dispatch.context), {}


def _answer(dispatch: Dispatch, act: Act, child: Work | None) -> None:
    """Settle what came of a delegate; a tool may make a text of its agent's failure."""
    if _in_background(dispatch, act, child):
        return
    own = child.run if child is not None else None
    ended = own.ended if own is not None and act.node is None else act.ended
    dispatch.ended = not_before(dispatch.started, ended)
    if act.failed:
        dispatch.status = "failed" if own is not None else "refused"
        dispatch.error = act.error
    elif ended is not None or act.answer is not None:
        dispatch.result = act.result or (own.output if own is not None else None)
        if own is not None and same_text(dispatch.result, own.output):
            dispatch.result = own.output
        dispatch.status = "completed"
        if own is not None and own.status == "failed":
            dispatch.status, dispatch.error = "failed", own.error
        elif dispatch.result is None and (act.step is None or "result" in act.step.unknown):
            dispatch.unknown.append("result")


def _in_background(dispatch: Dispatch, act: Act, child: Work | None) -> bool:
    """Settle a delegate whose call only launched it: the answer came later, or is not told."""
    late, launched = act.late, act.node is not None and act.node.launched
    if late is None and not launched and not _outlived(act, child):
        return False
    dispatch.mode, dispatch.status = "background", "unknown"
    if late is None:
        dispatch.unknown.append("result")
        return True
    dispatch.ended = not_before(dispatch.started, late.at)
    dispatch.status = "failed" if late.failed else "completed"
    told = late.result.plain() if late.result is not None else None
    dispatch.result, dispatch.error = (None, told) if late.failed else (late.result, None)
    return True


def _outlived(act: Act, child: Work | None) -> bool:
    """Tell whether an agent did something after its call had been answered.

    A call that gave back what the agent answered has waited for it, whatever the clocks say: a
    program may be stopped for some milliseconds between its looks at two clocks.
    """
    if child is None or act.node is None or act.ended is None:
        return False
    if act.result is not None and same_text(act.result, child.run.output):
        return False
    done = (node.span.ended for node in child.owned if node.span.ended is not None)
    return max(done, default=act.ended) > act.ended + _TICK


def _unseen_run(made: TurnDispatches, dispatch: Dispatch) -> None:
    """Add the run of an agent of which only the call and its answer are seen."""
    status: Literal["completed", "failed", "unknown"] = "unknown"
    if dispatch.status in ("completed", "failed"):
        status = "completed" if dispatch.status == "completed" else "failed"
    made.builder.unseen_run(
        made.turn,
        dispatch,
        output=dispatch.result,
        status=status,
        error=dispatch.error,
        ended=dispatch.ended,
    )

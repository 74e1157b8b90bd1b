"""The outcome of one replay, and how it differs from another."""

from __future__ import annotations

import msgspec

from baton.model import Case, CaseResult, DispatchCase, Message, Status, ToolCall, Trace, known
from baton.model.views import agent_chain, index_of

_LONGEST = 2_000
"""The most characters of a text in a report; the traces have all of it."""


class Seen(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One play of a case, or its recording.

    Args:
        status: of the case; ``skipped`` if there are no expectations.
        error: why the play broke.
        to: for a decision, the receivers; for a conversation, its agents in order.
        prompts: for a decision, their prompts.
        answer: the final answer; ``None`` if there is none, or it is unknown.
        tools: the names of the tools that were called.
        failed: each evaluator that failed, with its reason.
    """

    status: Status = "skipped"
    error: str | None = None
    to: list[str] | None = None
    prompts: list[str] | None = None
    answer: str | None = None
    tools: list[str] = msgspec.field(default_factory=list)
    failed: list[str] = msgspec.field(default_factory=list)


def seen_in(case: Case, result: CaseResult) -> Seen:
    """Return what one play of a case shows."""
    seen = Seen(status=result.status, error=result.error)
    seen.failed = _failed(result)
    if result.trace is not None and result.trace.turns:
        _read(case, result.trace, seen)
    return seen


def _failed(result: CaseResult) -> list[str]:
    return [f"{each.evaluator}: {each.reason}" for each in result.scores if each.status == "failed"]


def _read(case: Case, trace: Trace, seen: Seen) -> None:
    form = case.dispatch.form if case.dispatch is not None else "conversation"
    turn = trace.turns[-1]
    seen.tools = [
        step.name
        for each in trace.turns
        for run in each.runs
        for step in run.steps
        if isinstance(step, ToolCall) and step.dispatch is None
    ]
    if turn.output is not None:
        seen.answer = turn.output.plain()[:_LONGEST]
    if form == "decision":
        made = [each for each in turn.dispatches if each.kind != "return"]
        seen.to = [each.to_agent for each in made]
        prompts = [each.prompt.plain()[:_LONGEST] for each in made if each.prompt is not None]
        # With one prompt unknown, the others cannot be compared in order.
        seen.prompts = prompts if len(prompts) == len(made) else None
    elif form == "conversation":
        seen.to = [agent for each in trace.turns for agent in agent_chain(trace, each)]


def recorded_in(case: Case, scored: CaseResult | None = None) -> Seen | None:
    """Return the recording of a moment, with its verdict; ``None`` for any other case.

    ``scored`` is the recording's own result. For a decision it is only the case's dispatch, though
    others may have been made with it.
    """
    moment = case.dispatch
    if moment is None:
        return None
    call, child, seen = moment.call, moment.child, Seen()
    if scored is not None and scored.status in ("passed", "failed"):
        seen.status, seen.failed = scored.status, _failed(scored)
    if moment.form == "decision":
        seen.to = [call.to]
        if call.prompt is not None:
            seen.prompts = [call.prompt.plain()[:_LONGEST]]
    elif moment.form == "child":
        output = child.output if child is not None and child.output is not None else call.result
        seen.answer = None if output is None else output.plain()[:_LONGEST]
        seen.tools = [each.name for said in child.said for each in said.calls] if child else []
    else:
        answer = _last_said(moment.next or []) or _answer_in(moment)
        seen.answer = None if answer is None else answer[:_LONGEST]
    return seen


def _answer_in(moment: DispatchCase) -> str | None:
    """Return the recorded answer of the sender: of its run, or of the whole turn.

    Not every source records intermediate messages; the answer to the user mostly is.
    """
    if moment.record is None or moment.at is None:
        return None
    index = index_of(moment.record)
    sender = index.runs.get(index.dispatches[moment.at].from_run or "")
    turn = index.turn_of[moment.at]
    if sender is None:
        return None
    if sender.output is not None:
        return sender.output.plain()
    # The user is answered by the agent that opened the turn, unless control moved on.
    is_first = bool(turn.runs) and turn.runs[0].id == sender.id
    return turn.output.plain() if is_first and turn.output is not None else None


def tells(recorded: Seen | None) -> bool:
    """Tell whether a recording has something to compare with."""
    return recorded is not None and (recorded.to is not None or recorded.answer is not None)


def recorded_conversation(trace: Trace) -> Seen:
    """Return what was recorded of a whole conversation."""
    last = trace.turns[-1].output if trace.turns else None
    return Seen(
        to=[agent for turn in trace.turns for agent in agent_chain(trace, turn)]
        if all(known(trace, turn, "runs") for turn in trace.turns)
        else None,
        answer=None if last is None else last.plain()[:_LONGEST],
    )


def _last_said(messages: list[Message]) -> str | None:
    texts = [each.text for each in messages if each.role == "agent" and each.text]
    return texts[-1] if texts else None


def differences(recorded: Seen, played: Seen) -> str | None:
    """Describe how a play differs from the recording; empty if it does not.

    White space does not count. ``None`` for a broken play, and a recording with nothing to compare.
    """
    if played.status == "error" or not tells(recorded):
        return None
    differing = []
    if recorded.to is not None and played.to is not None:
        if recorded.to != played.to:
            differing.append(f"{_names(recorded.to)} → {_names(played.to)}")
        elif recorded.prompts is not None and played.prompts is not None:
            if [*map(_words, recorded.prompts)] != [*map(_words, played.prompts)]:
                differing.append("another prompt")
    if recorded.answer is not None and played.answer is not None:
        if _words(recorded.answer) != _words(played.answer):
            differing.append("another answer")
    elif recorded.answer is not None:
        differing.append("no answer")
    return ", ".join(differing)


def _names(agents: list[str]) -> str:
    return ", ".join(agents) or "nobody"


def _words(text: str) -> str:
    return " ".join(text.split())

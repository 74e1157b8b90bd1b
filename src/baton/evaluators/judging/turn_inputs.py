"""Inputs about turns, runs, tool calls and whole traces, and inputs that a case states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from baton.evaluators.judging.subject import Subject
from baton.model import AgentRun, Said, ToolCall, Turn, known

from .material import (
    INDENT,
    Given,
    Missing,
    Piece,
    block,
    call_parts,
    card_parts,
    given,
    line,
    piece,
    plain,
    raw,
    run_pieces,
    step_pieces,
    tools_text,
    value,
)

_MESSAGES = "record the messages of users"
_ANSWERS = "record the answers of agents"
_STEPS = "record the steps of agents: what they say, and their calls with the results"
_DEFINITIONS = "give the agents' definitions as `agents:`"


def request(subject: Subject) -> Given | Missing:
    """Return the user's message. For a whole trace, return the first one."""
    turn = subject.turns[0] if subject.turns else None
    if turn is None:
        return Missing("no turn was played")
    if not known(subject.trace, turn, "input"):
        return Missing(f"the user's message is not recorded: {_MESSAGES}")
    return given(raw((turn.id,), plain(turn.input)))


def history(subject: Subject) -> Given | Missing:
    """Return the turns before this one: the user's messages and the answers."""
    return _messages(subject, subject.earlier)


def conversation(subject: Subject) -> Given | Missing:
    """Return the messages of user and agents, up to and including the judged part."""
    return _messages(subject, [*subject.earlier, *subject.turns])


def answer(subject: Subject) -> Given | Missing:
    """Return the answer of the run, else of the turn. For a trace, return the last answer."""
    if subject.run is not None:
        run = subject.run
        if not known(subject.trace, run, "output"):
            return Missing(f"the answer of `{run.agent}` is not recorded: {_ANSWERS}")
        return given(raw((run.id,), plain(run.output)))
    if not subject.turns:
        return Missing("no turn was played")
    turn = subject.turns[-1]
    if not known(subject.trace, turn, "output"):
        return Missing(f"the answer is not recorded: {_ANSWERS}")
    return given(raw((turn.id,), plain(turn.output)))


def answers(subject: Subject) -> Given | Missing:
    """Return all intermediate texts of the agents, and the answer."""
    missing = _unrecorded(subject, "steps.said")
    if missing is not None:
        return missing
    spoken = [
        raw((step.id,), plain(step.content))
        for run in subject.runs
        for step in run.steps
        if isinstance(step, Said) and not step.thought
    ]
    final = answer(subject)
    if isinstance(final, Missing):
        return final
    texts = {piece.text for piece in spoken}
    return given(*spoken, *(piece for piece in final.pieces if piece.text not in texts))


def transcript(subject: Subject) -> Given | Missing:
    """Return all steps of the agents."""
    missing = _unrecorded(subject, "steps")
    if missing is not None:
        return missing
    pieces: list[Piece] = []
    for turn in subject.turns:
        if subject.unit == "trace" and turn.input:
            pieces.append(piece((turn.id,), *block("the user said:", plain(turn.input))))
        runs = [subject.run] if subject.run is not None else turn.runs
        pieces += [piece for run in runs for piece in run_pieces(subject.trace, run)]
    return given(*pieces)


def tool_calls(subject: Subject) -> Given | Missing:
    """Return the tools that were called, with arguments and results."""
    missing = _unrecorded(subject, "steps.tool_call")
    if missing is not None:
        return missing
    return given(
        *(piece((call.id,), *call_parts(call, by=run.agent)) for run, call in _calls(subject))
    )


def sources(subject: Subject) -> Given | Missing:
    """Return the sources: results of tools and of dispatches, and citations."""
    missing = _unrecorded(subject, "steps")
    if missing is not None:
        return missing
    pieces = [
        piece((call.id,), *block(f"the tool {call.name} gave:", plain(call.result), "results"))
        for _, call in _calls(subject)
        if call.result and call.status == "ok"
    ]
    for run in subject.runs:
        for step in run.steps:
            if isinstance(step, Said):
                pieces += [
                    piece((step.id,), *block("cited:", source, "results"))
                    for source in step.sources or ()
                ]
    made_by = {run.id for run in subject.runs}
    opaque = [
        d
        for turn in subject.turns
        for d in turn.dispatches
        if d.result and not d.runs and d.from_run in made_by
    ]
    pieces += [
        piece((d.id,), *block(f"the agent {d.to_agent} gave:", plain(d.result))) for d in opaque
    ]
    return given(*pieces)


def received(subject: Subject) -> Given | Missing:
    """Return the input of an agent."""
    run = _run(subject)
    if not known(subject.trace, run, "input"):
        return Missing(f"the input of `{run.agent}` is not recorded: record inputs of agents")
    return given(raw((run.id,), plain(run.input)))


def others(subject: Subject) -> Given | Missing:
    """Return the actions of agents that started earlier in the same turn."""
    run, turn = _run(subject), subject.turn
    runs = turn.runs if turn is not None else []
    pieces: list[Piece] = []
    for other in runs[: [each.id for each in runs].index(run.id)]:
        if not known(subject.trace, other, "steps"):
            return Missing(f"the work of `{other.agent}` is not fully recorded: {_STEPS}")
        pieces += run_pieces(subject.trace, other)
    return given(*pieces)


def before(subject: Subject) -> Given | Missing:
    """Return the steps of the agent before a tool call."""
    run, call = _run_and_call(subject)
    if not known(subject.trace, run, "steps"):
        return Missing(f"the earlier steps of `{run.agent}` are not recorded: {_STEPS}")
    steps = run.steps[: [step.id for step in run.steps].index(call.id)]
    head = [piece((run.id,), *block(f"{run.agent} was given:", plain(run.input)))]
    return given(*(head if run.input else []), *step_pieces(subject.trace, steps))


def call(subject: Subject) -> Given | Missing:
    """Return a tool call without its result."""
    _, made = _run_and_call(subject)
    if not known(subject.trace, made, "arguments"):
        return Missing("the arguments of the call are not recorded: record arguments of calls")
    return given(piece((made.id,), *call_parts(made, result=False)))


def result(subject: Subject) -> Given | Missing:
    """Return the result of a tool call."""
    _, made = _run_and_call(subject)
    if not known(subject.trace, made, "result"):
        return Missing("the result of the tool is not recorded: record results of calls")
    return given(raw((made.id,), made.error or plain(made.result), "results"))


def tools(subject: Subject) -> Given | Missing:
    """Return the tools that each agent has."""
    pieces = []
    for run in {run.agent: run for run in subject.runs}.values():
        card = subject.trace.agents.get(run.agent)
        names = run.tools_offered or (card.tools if card is not None else None)
        if names is not None:
            head = line(f"{run.agent} has:")
            pieces.append(piece((run.id,), head, f"{INDENT}{tools_text(names)}"))
    if not pieces and subject.runs:
        return Missing(f"the tools of the agents are not recorded: {_DEFINITIONS}")
    return given(*pieces)


def catalogue(subject: Subject) -> Given | Missing:
    """Return the available agents, each with its purpose and its tools."""
    cards = subject.trace.agents
    if not cards:
        return Missing(f"the available agents are not recorded: {_DEFINITIONS}")
    return given(*(piece((), *card_parts(name, card)) for name, card in cards.items()))


def instructions(subject: Subject) -> Given | Missing:
    """Return the instructions of the agents at work."""
    names = dict.fromkeys(run.agent for run in subject.runs)
    cards = [(name, subject.trace.agents.get(name)) for name in names]
    pieces = [
        piece((), *block(f"{name} is told:", card.instructions))
        for name, card in cards
        if card is not None and card.instructions
    ]
    if not pieces:
        return Missing(f"the instructions of the agents are not recorded: {_DEFINITIONS}")
    return given(*pieces)


def state(subject: Subject) -> Given | Missing:
    """Return the session state after the turn, or at the end."""
    holder = subject.trace if subject.turn is None else subject.turn
    if not known(subject.trace, holder, "state"):
        return Missing("the state of the session is not recorded")
    return given(raw((holder.id,), "" if holder.state is None else value(holder.state)))


def _messages(subject: Subject, turns: list[Turn]) -> Given | Missing:
    pieces = []
    for turn in turns:
        for field, who in (("input", "the user said:"), ("output", "the answer was:")):
            if not known(subject.trace, turn, field):
                what = "messages of users" if field == "input" else "answers"
                return Missing(f"{what} are not recorded: {_MESSAGES}, and {_ANSWERS}")
            text = plain(getattr(turn, field)) or "(nothing)"
            pieces.append(piece((turn.id,), *block(who, text)))
    return given(*pieces)


def _calls(subject: Subject) -> Iterator[tuple[AgentRun, ToolCall]]:
    for run in subject.runs:
        for step in run.steps:
            if isinstance(step, ToolCall) and step.dispatch is None:
                yield run, step


def _unrecorded(subject: Subject, steps: str) -> Missing | None:
    if subject.turn is None and not known(subject.trace, subject.trace, "turns"):
        return Missing("not all turns are recorded")
    for run in subject.runs:
        if not known(subject.trace, run, steps):
            return Missing(f"the work of `{run.agent}` is not fully recorded: {_STEPS}")
    if not subject.runs:
        return Missing(f"no run of an agent is recorded: {_STEPS}")
    return None


def _run(subject: Subject) -> AgentRun:
    if subject.run is None:
        raise ValueError(f"a {subject.unit} is not a run")
    return subject.run


def _run_and_call(subject: Subject) -> tuple[AgentRun, ToolCall]:
    if subject.call is None:
        raise ValueError(f"a {subject.unit} is not a tool call")
    return _run(subject), subject.call


def reference(subject: Subject) -> Given | Missing:
    """Return the expected answer."""
    texts = [plain(turn.response) for turn in subject.expected if turn.response is not None]
    return _stated(subject, texts, "response")


def assertion(subject: Subject) -> Given | Missing:
    """Return the statements that have to be true in the end: rubrics of type ``assertion``."""
    rubrics = [rubric for turn in subject.expected for rubric in turn.rubrics or ()]
    rubrics += subject.case.rubrics if subject.case is not None else []
    texts = [rubric.text for rubric in rubrics if rubric.type == "assertion"]
    return _stated(subject, texts, "rubrics` of type `assertion")


def expected_tools(subject: Subject) -> Given | Missing:
    """Return the tool calls that should happen, in order."""
    return _of_turns(subject, "tool_calls")


def expected_agents(subject: Subject) -> Given | Missing:
    """Return the agents that should run, in order."""
    return _of_turns(subject, "agents")


def expected_dispatches(subject: Subject) -> Given | Missing:
    """Return the dispatches that should happen."""
    return _of_turns(subject, "dispatches")


def expected_visits(subject: Subject) -> Given | Missing:
    """Return the visits of agents that should happen. For a run, return its own visits."""
    visits = [visit for turn in subject.expected for visit in turn.interactions or ()]
    if subject.run is not None:
        visits = [visit for visit in visits if visit.agent in subject.names]
    return _stated(subject, [_json(visit) for visit in visits], "interactions")


def expected_state(subject: Subject) -> Given | Missing:
    """Return the expected final state of the session."""
    state = subject.case.final_state if subject.case is not None else None
    return _stated(subject, [] if state is None else [value(state)], "final_state")


def scenario(subject: Subject) -> Given | Missing:
    """Return the task of a simulated user: how to start, and the plan."""
    text = subject.case.scenario if subject.case is not None else None
    if text is None:
        return Missing("the case has no scenario: state how the user starts, and the plan", True)
    start, plan = block("the first message:", text.start), block("the plan:", text.plan)
    return given(piece((), *start), piece((), *plan))


def _of_turns(subject: Subject, field: str) -> Given | Missing:
    stated = [getattr(turn, field) for turn in subject.expected]
    return _stated(subject, [_json(each) for each in stated if each is not None], field)


def _json(thing: Any) -> str:
    return value(msgspec.to_builtins(thing))


def _stated(subject: Subject, texts: list[str], field: str) -> Given | Missing:
    if subject.case is None:
        return Missing(f"no expectation: score against a case that states `{field}`", True)
    if not texts:
        where = f"turn {subject.number} of the case" if subject.number else "the case"
        return Missing(f"no expectation: {where} states no `{field}`", True)
    return given(*(raw((), text) for text in texts))

"""Recordings that state which agents ran and which tools were called, without events.

Examples are eval sets with ``tool_uses``, and results of judge-llm. ``metadata`` may have a chain
of agents: ``agent_chains`` by turn, or ``agent_chain`` for the whole conversation, which says who
ran in a turn only if there is one turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from baton.formats.adk import (
    TRANSFER_TOOL,
    EvalCase,
    IntermediateData,
    Invocation,
    author_pair,
    stated_agents,
    target_of,
)
from baton.formats.key_case import ExtraKey
from baton.model import (
    SCHEMA_VERSION,
    AgentRun,
    Content,
    InputError,
    Problem,
    Said,
    Source,
    ToolCall,
    Trace,
    Turn,
)
from baton.readers.builder import MAIN, TraceBuilder
from baton.readers.catalog import Catalog
from baton.readers.otlp.attribute_values import first
from baton.readers.tool_definitions import targets_of, tool_names

from .wire import dropped_keys, result_content, session_attributes

NOT_STATED = [
    "run.steps.said",
    "run.input",
    "run.context",
    "run.output",
    "run.model",
    "run.usage",
    "run.tools_offered",
    "run.inside",
    "run.started",
    "run.ended",
    "turn.state",
    "turn.started",
    "turn.ended",
    "dispatch.prompt",
    "dispatch.result",
    "tool_call.at",
    "tool_call.ended",
    "state",
    "usage",
]


def read_stated(
    case: EvalCase, extra_keys: list[ExtraKey], id_: str, source: Source, catalog: Catalog
) -> Trace:
    """Read a case without events.

    Raises:
        InputError: a record names an agent by something else than text.
    """
    builder = TraceBuilder(catalog)
    problems: list[Problem] = []
    for number in range(len(case.conversation or ())):
        try:
            read_stated_turn(case, number, builder, source)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    turns = builder.finish()
    note_tools(builder, details_of(case))
    whole = (case.metadata or {}).get("agent_chain")
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=id_,
        case=case.eval_id,
        source=source,
        turns=turns,
        agents=catalog,
        state=case.final_session_state or None,
        unknown=[n for n in NOT_STATED if not (n == "state" and case.final_session_state)],
        dropped=dropped_keys(extra_keys),
        attributes={
            **({"agent_chain": whole} if whole and len(turns) != 1 else {}),
            **builder.attributes(),
            **session_attributes(case.session_input),
        },
    )


def details_of(case: EvalCase) -> list[Any]:
    """Return what each turn of a case states about agents."""
    return [turn.app_details for turn in case.conversation or ()]


def note_tools(builder: TraceBuilder, app_details: Sequence[Any]) -> None:
    """Record the tools that agents were offered, and which agents they can hand work to.

    ADK writes ``app_details`` into each invocation that it evaluates.
    """
    for number, details in enumerate(app_details):
        if not isinstance(details, dict):
            continue
        agents = first(details, "agent_details", "agentDetails")
        for name, known in (agents if isinstance(agents, dict) else {}).items():
            agent = known if isinstance(known, dict) else {}
            declared = first(agent, "tool_declarations", "toolDeclarations")
            if not isinstance(declared, list):
                continue
            builder.may_reach(name, targets_of(declared))
            if len(builder.turns) == len(app_details):
                for run in builder.turns[number].runs:
                    if run.agent == name and run.tools_offered is None:
                        run.tools_offered = tool_names(declared)


def read_stated_turn(case: EvalCase, number: int, builder: TraceBuilder, source: Source) -> Turn:
    """Read one turn without events; turns are counted from 0.

    Raises:
        InputError: a record names an agent by something else than text.
    """
    conversation = case.conversation or []
    wire = conversation[number]
    try:
        chain = _stated_chain(case.metadata or {}, wire, number, len(conversation))
        turn = builder.turn(wire.invocation_id or f"turn{number + 1}")
        _fill(turn, builder, wire, chain)
    except ValueError as error:
        where = f"{case.eval_id}: conversation[{number}]"
        raise InputError(Problem(file=source.location, path=where, message=str(error))) from None
    return turn


_CHAIN = ("agent_chain", "chain", "agents")
"""Keys by which an entry of ``agent_chains`` names the agents of a turn."""


def _stated_chain(
    metadata: dict[str, Any], wire: Invocation, number: int, turns: int
) -> list[str] | None:
    """Return the chain that ``metadata`` states for one turn."""
    chains = metadata.get("agent_chains")
    chain: Any = None
    if isinstance(chains, dict):
        chain = chains.get(wire.invocation_id or "")
    elif isinstance(chains, list):
        by_id = [c for c in chains if isinstance(c, dict) and c.get("invocation_id") is not None]
        entry = next((c for c in by_id if c["invocation_id"] == wire.invocation_id), None)
        if not by_id and len(chains) == turns:
            entry = chains[number]
        chain = entry
        if isinstance(entry, dict):
            chain = next((entry[key] for key in _CHAIN if key in entry), None)
    if chain is None and turns == 1:
        chain = metadata.get("agent_chain")
    if chain is None:
        return None
    if not isinstance(chain, list) or not all(isinstance(name, str) for name in chain):
        raise ValueError(f"an agent chain has to be a list of names, got {chain!r}")
    return [name for name in chain if name != "user"] or None


def _fill(turn: Turn, builder: TraceBuilder, wire: Invocation, chain: list[str] | None) -> None:
    data = wire.intermediate_data or IntermediateData()
    turn.input, turn.output = _content(wire.user_content), _content(wire.final_response)
    turn.status = "completed" if turn.output else "incomplete"
    names = chain or stated_agents(data) or []
    if not names or not (chain or _opener_named(data)):
        # Another, unnamed agent opened the turn.
        builder.run(turn, MAIN, unknown=["agent"])
    for name in names:
        builder.run(turn, name)
    # ADK writes `invocation_events: []` for a turn that was answered without any call.
    if data.tool_uses is None and data.invocation_events is None:
        for run in turn.runs:
            run.unknown.append("steps.tool_call")
    speaking = 0
    for record in data.intermediate_responses or ():
        pair = author_pair(record)
        if pair is None:
            continue
        # An agent that speaks again after another one does so in a later run.
        own = [place for place, run in enumerate(turn.runs) if run.agent == pair[0]]
        if own:
            speaking = next((place for place in own if place >= speaking), own[0])
            turn.runs[speaking].steps += [
                Said(id=builder.new_id("said"), content=Content(text=text)) for text in pair[1]
            ]
    _calls(turn, builder, data)
    _link(turn, builder, data)


def _opener_named(data: IntermediateData) -> bool:
    """Return whether the first named agent opened the turn, or got work handed over."""
    for record in data.intermediate_responses or ():
        if author_pair(record):
            return True
        if isinstance(record, dict) and record.get("type") == "agent_transfer":
            return bool(record.get("from_agent"))
        if isinstance(record, dict) and record.get("agent_name"):
            if record.get("type") not in ("function_call", "function_response"):
                return True
    return False


def _calls(turn: Turn, builder: TraceBuilder, data: IntermediateData) -> None:
    """Assign calls to the agent that made them if it is recorded, else to the agent in control."""
    owners = {
        str(record.get("function_id")): str(record["agent_name"])
        for record in data.intermediate_responses or ()
        if isinstance(record, dict)
        and record.get("type") == "function_call"
        and record.get("agent_name")
    }
    answers = {a.id: a for a in data.tool_responses or () if a.id}
    current = turn.runs[0]
    for wire in data.tool_uses or ():
        run = _run_of(turn, owners.get(wire.id or "", "")) or current
        call = ToolCall(
            id=builder.new_id("call", wire.id), name=wire.name or "", arguments=wire.arguments()
        )
        run.steps.append(call)
        if wire.id in answers:
            call.result = result_content(answers[wire.id].response)
        else:
            call.unknown = ["result", "status"]
        target = target_of(wire.arguments())
        if wire.name == TRANSFER_TOOL and target is None:
            call.status, call.error = "failed", f"`{TRANSFER_TOOL}` names no agent"
            call.unknown = [name for name in call.unknown if name != "status"]
        elif wire.name == TRANSFER_TOOL:
            # The next run of the agent that the call names is in control, if there is one.
            later = turn.runs[turn.runs.index(run) + 1 :]
            receiver = next((r for r in later if r.agent == target and not r.started_by), None)
            if receiver is not None:
                _transfer(turn, builder, run, receiver, call)
                current = receiver


def _transfer(
    turn: Turn, builder: TraceBuilder, run: AgentRun, receiver: AgentRun, call: ToolCall | None
) -> None:
    dispatch = builder.dispatch(turn, "transfer", run, receiver.agent, None, call)
    run.steps.append(builder.handed_off(dispatch))
    builder.start(dispatch, receiver)


def _link(turn: Turn, builder: TraceBuilder, data: IntermediateData) -> None:
    """Link consecutive runs: by a stated transfer, else only by order."""
    stated = {
        record.get("to_agent")
        for record in data.intermediate_responses or ()
        if isinstance(record, dict) and record.get("type") == "agent_transfer"
    }
    for sender, receiver in pairwise(turn.runs):
        if receiver.started_by:
            continue
        if receiver.agent in stated:
            _transfer(turn, builder, sender, receiver, None)
        else:
            dispatch = builder.dispatch(turn, "sequence", sender, receiver.agent, None)
            dispatch.basis = "order"
            builder.start(dispatch, receiver)


def _run_of(turn: Turn, agent: str) -> AgentRun | None:
    return next((run for run in turn.runs if run.agent == agent), None)


def _content(wire: Any) -> Content | None:
    text = wire if isinstance(wire, str) or wire is None else wire.text()
    return Content(text=text) if text else None

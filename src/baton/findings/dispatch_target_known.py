"""Whether the target agent of a dispatch exists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from baton.model import (
    DEFINED,
    TARGETS,
    AgentRun,
    Dispatch,
    Evidence,
    ToolCall,
    Trace,
    Turn,
    known,
    nearest,
)
from baton.model.views import TooMuchTextError, charge_work, in_short, index_of

from .finding import (
    NO_NAMES,
    TOO_LONG,
    Answer,
    Clear,
    Finding,
    NotRecorded,
    call_of,
    has_run,
    name_key,
    sender_of,
    steps_of,
)
from .lazy_patterns import regex

_NAME = r"""(?:[`'"](?P<name>[^`'"\n]+)[`'"]|(?P<bare>\w[\w./-]*))"""
# Runtimes' messages for a hand-off to an unknown agent, from recordings in tests/data: `agent
# type ... not found` is Claude Code, `target agent ... not found` and `agent ... not found in the
# agent tree` ADK, `agent ... not found in swarm` Strands, `tool ... not found in any workbench`
# AutoGen, `is not a valid tool, try one of` LangGraph, `unknown tool name` pydantic-ai, `coworker
# mentioned not found` CrewAI, `member with id ... not found` Agno, `cannot invoke subagent` and,
# before, `invoked agent of type` deepagents, `tool not found: {'tool_name': ...}` OpenAI's SDK. A
# name has to follow at once, so "I could not find the agent you need in time" and "The file
# agent.py was not found" do not count.
_UNKNOWN = tuple(
    regex(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bagent type {_NAME} (?:was )?not found",
        rf"\btarget agent {_NAME} (?:was )?not found",
        rf"\bagent {_NAME} (?:was )?not found",
        rf"\bagent {_NAME} does not exist",
        rf"\b(?:unknown|no such|invalid) agent(?: (?:type|name))?:? {_NAME}(?:[.,;\n]|$)",
        rf"\bno agent (?:named|called) {_NAME}(?:[.,;\n ]|$)",
        rf"(?:^|: ){_NAME} is not a valid (?:tool|agent)",
        rf"\btool {_NAME} (?:was )?not found",
        rf"\bunknown tool(?: name)?: {_NAME}(?:[.,;\n]|$)",
        rf"\btool not found: (?:\{{'tool_name': )?{_NAME}",
        rf"\bno such tool(?: available)?: {_NAME}(?:[.,;\n]|$)",
        rf"\bmember with id {_NAME} not found",
        rf"\bcannot invoke subagent {_NAME} because it does not exist",
        rf"\binvoked agent of type {_NAME}, the only allowed types are",
        r"\bcoworker mentioned not found",
    )
)
# The same texts often list the available agents, which shows the user the intended name: Claude
# Code after `Available agents:`, LangGraph after `try one of`, CrewAI one a line after `one of the
# following options:`, deepagents after `only allowed types are`.
_LISTS = regex(
    r"(?:available (?:agents|tools|agent types)|try one of|one of the following(?: options)?"
    r"|valid agents|known agents|only allowed types)"
    r"\s*(?:are)?:?\s*(?P<names>\[[^\]]*\]|(?:\s*- [^\n]+)+|[^\n]+)",
    re.IGNORECASE,
)
# Agents with their own transfer tools: the model calls `transfer_to_king`, but no tool has that
# name. The missing agent is `king`.
_TRANSFER = regex(r"(?:transfer_(?:back_)?to_|handoff_to_|delegate_to_|back_to_)")


# Agno lists the members of a team as XML in its prompt.
_MEMBERS = regex(r"""<member id=["']([^"']+)["']""")


def says_unknown(text: str) -> bool:
    """Return whether a text reports that the agent or the hand-off tool does not exist."""
    return any(pattern.search(text) for pattern in _UNKNOWN)


def unknown_name(text: str) -> str | None:
    """Return the name that a text reports as unknown."""
    for pattern in _UNKNOWN:
        match = pattern.search(text)
        if match is not None and match.groupdict():
            return agent_of((match["name"] or match["bare"]).rstrip("."))
    return None


def listed_names(text: str) -> list[str]:
    """Return the names that a text offers instead, of agents and of tools that reach them."""
    match = _LISTS.search(text)
    if match is None:
        return _MEMBERS.findall(text)
    listed = match["names"].strip().strip("[]")
    parts = re.split(r"\n\s*- |^- |,|\n", listed)
    # Quotes are escaped in exceptions that Python prints: `[\'`billing`\']`.
    names = (part.strip("`'\".\\ \t\r") for part in parts)
    return [agent_of(name) for name in names if name]


def agent_of(tool: str) -> str:
    """Return the agent that a transfer tool is named after. Other names are returned unchanged."""
    match = _TRANSFER.match(tool)
    return tool[match.end() :] if match is not None else tool


# How similar two names have to be, by `difflib`'s ratio: 2 x letters in common, in order / letters
# of both. This threshold is only for a hint ("the nearest is ..."), so it is loose: `planner` and
# `plan` have 0.73, `editor` and `auditor` 0.77, `billing` and `shipping` 0.53. It is the default of
# `difflib.get_close_matches`.
_ALIKE = 0.6
# This threshold decides. If there are definitions, a hand-off that led nowhere is a fault if its
# target is nearly the name of a defined agent: `resercher` has 0.95 with `researcher`. Any other
# name may belong to an agent that is missing from the definitions, and is skipped. In
# benchmarks/accuracy, names have one letter too many, too few or changed: from 0.6 to 0.9, the same
# 182 of 200 are found, and no good trace fails.
_MISSPELT = 0.8
# The cost of comparing two names letter by letter, in compared texts.
_PER_NAME = 20
# `refund-agent` and `order-agent` look similar (0.70) only because of the word "agent".
_SAYS_AGENT = regex(r"(?<=\w)[-_ ]?agent$", re.IGNORECASE)


def target_known(
    trace: Trace,
    turn: Turn,
    dispatch: Dispatch,
    renames: Mapping[str, str] = NO_NAMES,
) -> Answer:
    """Return whether the target of a dispatch is known, if nothing was started.

    Findings are ``unknown_target`` and ``misspelt_target`` (a known name is very similar):
    the system reported it, the sender was not offered the tool it used, or definitions name the
    agents and this is not one of them. ``refused_target``: a policy or a person refused it.
    """
    try:
        return _known(trace, turn, dispatch, renames)
    except TooMuchTextError:
        return NotRecorded(says=TOO_LONG)


def _known(trace: Trace, turn: Turn, dispatch: Dispatch, renames: Mapping[str, str]) -> Answer:
    name = renames.get(dispatch.to_agent, dispatch.to_agent)
    if dispatch.to_kind == "human":
        return Clear(says="asks a person")
    # Work that was done proves that the agent exists, whatever the definitions contain. They can be
    # older than the trace.
    if dispatch.runs or dispatch.status in ("completed", "waiting"):
        return Clear(says=f"`{name}` is known: it started to work")
    sender = sender_of(trace, dispatch)
    call = call_of(trace, sender, dispatch)
    texts = _texts(dispatch, call)
    # `transfer_to_billing` is one tool for one agent, so a missing tool is a missing agent. With
    # `Agent(subagent_type=...)`, "No such tool available: Agent" reveals nothing about the target.
    named_after = call is None or name_key(agent_of(call.name)) == name_key(dispatch.to_agent)
    # The system's own words come first, then the tools offered to the sender. Definitions come
    # last, because they come from the user and can be incomplete.
    denial = next((text for text in texts if _denies(text, call, named_after)), None)
    if denial is not None:
        if named_after and call is not None and call.name in denial and has_run(trace, name):
            # No tool has this name. The agent was reached in another way.
            return Clear(says=f"`{name}` is known, though there is no tool `{call.name}`")
        name = unknown_name(denial) or name
        others = listed_names(denial) or _roster(trace, sender, name, renames)
        return [_unknown(trace, dispatch, sender, name, others, denial)]
    if call is not None and call.refused_by in ("policy", "user"):
        return [_refused(trace, dispatch, sender, call, name)]
    if not known(trace, dispatch, "to_agent"):
        return NotRecorded(says="the dispatch does not name its target: record arguments of calls")
    listed = _listed(trace, sender, call)
    if listed is not None and has_run(trace, dispatch.to_agent):
        # ADK lists only the agents that this one may transfer to: `leaf` may not return to `root`.
        return Clear(says=f"`{name}` is known: it was at work before or after")
    if listed is not None and name_key(name) not in map(name_key, listed):
        return [_unknown(trace, dispatch, sender, name, listed, None)]
    if listed is not None:
        return Clear(says=f"`{name}` is known, though it was not started")
    offered = _offered(trace, sender, call) if named_after else None
    if offered:
        return Clear(says=f"`{name}` is known, though it was not started")
    if offered is False and turn.status == "incomplete" and has_run(trace, dispatch.to_agent):
        # Where spans are missing, another agent may have made the call.
        return NotRecorded(says="the turn is incomplete: record it to its end")
    if offered is False:
        others = _reachable(sender) or _roster(trace, sender, name, renames)
        return [_unknown(trace, dispatch, sender, name, others, None)]
    return _by_roster(trace, dispatch, sender, name, renames)


def _by_roster(
    trace: Trace,
    dispatch: Dispatch,
    sender: AgentRun | None,
    name: str,
    renames: Mapping[str, str],
) -> Answer:
    roster = _roster(trace, sender, None, renames)
    if has_run(trace, dispatch.to_agent) or name_key(name) in map(name_key, roster):
        return Clear(says=f"`{name}` is known, though it was not started")
    if _defined(trace):
        others = _roster(trace, sender, name, renames)
        turned_down = dispatch.status in ("refused", "failed")
        if turned_down or nearest(name, others, 1, _MISSPELT):
            return [_unknown(trace, dispatch, sender, name, others, None)]
    if trace.attributes.get(DEFINED):
        return NotRecorded(
            says=f"`{name}` may exist, but no definition names it: complete the definitions"
        )
    return NotRecorded(
        says=f"it is unknown whether `{name}` exists: give the agents' definitions as `agents:`"
    )


def _unknown(
    trace: Trace,
    dispatch: Dispatch,
    sender: AgentRun | None,
    name: str,
    others: Sequence[str],
    quote: str | None,
) -> Finding:
    others = list(dict.fromkeys(other for other in others if other != name))
    charge_work(_PER_NAME * len(others))
    alike = _nearest(name, others)
    misspelt = bool(nearest(name, others, 1, _MISSPELT))
    says = f"there is no agent `{name}`"
    if alike:
        says += f"; the nearest is `{alike}`"
    elif others:
        says += f"; known: {', '.join(f'`{other}`' for other in others[:8])}"
    return Finding(
        kind="misspelt_target" if misspelt else "unknown_target",
        says=says,
        evidence=[Evidence(ids=steps_of(trace, sender, dispatch), quote=quote and quote[:200])],
        details={"nearest": alike, "agents": others},
    )


def _nearest(name: str, others: Sequence[str]) -> str | None:
    """Return the most similar other name, ignoring words that only mean "agent"."""
    by_core = {_SAYS_AGENT.sub("", other): other for other in others}
    alike = nearest(_SAYS_AGENT.sub("", name), by_core, 1, _ALIKE)
    return by_core[alike[0]] if alike else None


def _refused(
    trace: Trace, dispatch: Dispatch, sender: AgentRun | None, call: ToolCall, name: str
) -> Finding:
    who = "a policy" if call.refused_by == "policy" else "the user"
    why = dispatch.error or call.error
    return Finding(
        kind="refused_target",
        says=f"{who} refused the dispatch to `{name}`" + (f": {in_short(why)}" if why else ""),
        evidence=[
            Evidence(ids=steps_of(trace, sender, dispatch), quote=why[:200] if why else None)
        ],
    )


def _texts(dispatch: Dispatch, call: ToolCall | None) -> list[str]:
    """Return the answers that the sender got to a dispatch that started nothing."""
    answers = [dispatch.error, dispatch.result.plain() if dispatch.result else None]
    if call is not None:
        answers += [call.error, call.result.plain() if call.result else None]
    return [answer for answer in answers if answer]


def _denies(text: str, call: ToolCall | None, named_after: bool) -> bool:
    """Return whether a text reports that the target is unknown, not the hand-over tool."""
    about = unknown_name(text)
    if call is not None and not named_after and about is not None:
        return says_unknown(text) and name_key(about) != name_key(agent_of(call.name))
    return says_unknown(text)


def _listed(trace: Trace, sender: AgentRun | None, call: ToolCall | None) -> list[str] | None:
    """Return the agents listed in the hand-over tool's definition, or ``None`` if none are."""
    targets = trace.attributes.get(TARGETS)
    tools = targets.get(sender.agent) if isinstance(targets, dict) and sender is not None else None
    listed = tools.get(call.name) if isinstance(tools, dict) and call is not None else None
    names = listed if isinstance(listed, list) else []
    return [name for name in names if isinstance(name, str)] or None


def _offered(trace: Trace, sender: AgentRun | None, call: ToolCall | None) -> bool | None:
    """Return whether the sender was offered the tool it used, or ``None`` if unknown."""
    if sender is None or call is None or not known(trace, sender, "tools_offered"):
        return None
    tools = sender.tools_offered
    return name_key(call.name) in map(name_key, tools) if tools else None


def _roster(
    trace: Trace, sender: AgentRun | None, without: str | None, renames: Mapping[str, str]
) -> list[str]:
    """Return the known agents: defined, seen running, or reachable by an offered tool.

    ``without`` excludes a name that may be known only from the record of its own dispatch.
    """
    charge_work(len(index_of(trace).known_names) + len(trace.agents))
    names: list[str] = []
    for agent, card in trace.agents.items():
        names += [agent, *card.aliases, *card.sub_agents]
    names += index_of(trace).known_names
    names += _reachable(sender)
    own = renames.get(sender.agent, sender.agent) if sender is not None else None
    renamed = dict.fromkeys(renames.get(name, name) for name in names)
    return [name for name in renamed if name not in (without, own)]


def _reachable(sender: AgentRun | None) -> list[str]:
    """Return the agents that a run's offered tools are named after."""
    tools = (sender.tools_offered if sender is not None else None) or ()
    named = [(tool, agent_of(tool)) for tool in tools]
    return [agent for tool, agent in named if agent not in (tool, "agent")]


def _defined(trace: Trace) -> bool:
    """Return whether definitions name all agents, including those that had nothing to do.

    Definitions from a user do. Definitions in a recording do if one of the agents never ran.
    """
    return bool(trace.attributes.get(DEFINED)) or any(
        (card.description or card.tools is not None or card.instructions or card.sub_agents)
        and not has_run(trace, agent)
        for agent, card in trace.agents.items()
    )

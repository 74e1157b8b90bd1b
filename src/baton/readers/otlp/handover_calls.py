"""Which tool calls hand work over, and to whom."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from baton.model import Content
from baton.readers.otlp.attribute_values import content, first, parsed, plain_name, text
from baton.readers.otlp.messages import last_of, read_messages
from baton.readers.otlp.span_content import Mode, ToolSpan
from baton.readers.tool_definitions import TARGET_ARGUMENTS

# `transfer_to_billing` is how OpenAI Agents, LangGraph's supervisor and AutoGen name their tools,
# `handoff_to_billing` Microsoft's Agent Framework, `handoff_to_agent` the swarms of Strands and
# `transfer_to_agent` ADK. A prefix that ends in `.` or `-` is allowed, as in
# `team.transfer_to_billing`. Names may be overridden (`escalate_to_manager`); those are found by
# structure, in `dispatches.py`.
_TRANSFER = re.compile(
    r"^(?:\w+[-.])?(?:transfer|hand_?off|switch)[_ -]to[_ -](.+)$", re.IGNORECASE
)
# `transfer_to_agent` does not name its target: the target is among the arguments.
_ANY = frozenset({"agent", "an_agent", "another_agent"})
# Three proposals in OpenTelemetry that were not merged: `gen_ai.transfer.*` of PR 447,
# `gen_ai.agent.handoff.*` of PR 98, and `gen_ai.handoff.*`, which Traceloop writes.
_TARGET_ATTRIBUTES = (
    "gen_ai.transfer.target.name",
    "gen_ai.agent.handoff.target.name",
    "gen_ai.handoff.to_agent",
)
_STATED = frozenset((*_TARGET_ATTRIBUTES, "gen_ai.transfer.mode", "gen_ai.transfer.target.type"))
# What the argument with the task is called: `prompt` Claude Code, `request` ADK's AgentTool, `task`
# Microsoft and CrewAI, `task_description` and `task` Agno, `objective` AG2, `input` OpenAI Agents,
# `message` Strands. `description` is last, as in Claude Code it is a title of three words beside
# the `prompt`; LangChain's sub-agents have nothing else.
_PROMPTS = (
    "prompt", "request", "task", "task_description", "objective", "input", "message", "query",
    "question", "description",
)  # fmt: skip
# These names are too common to prove a hand-over alone. `by_name` also requires a target among the
# arguments.
_HANDOFF = frozenset({"handoff", "handover"})
# CrewAI: "Delegate work to coworker" and "Ask question to coworker"; Agno:
# `delegate_task_to_member`, and in 1.x `transfer_task_to_member` and `forward_task_to_member`. Case
# and separators are left out, since instrumentations write them differently.
_COWORKER = frozenset(
    {"delegateworktocoworker", "askquestiontocoworker", "delegatetasktomember",
     "transfertasktomember", "forwardtasktomember"}
)  # fmt: skip
# Agno's tools for sending the same task to all members of a team (`run_member_agents` in 1.x), and
# several tasks to theirs.
_TO_ALL = frozenset({"delegatetasktomembers", "runmemberagents", "executetasksparallel"})
# Arguments that say how to answer, and not what to do: Agno's `forward_task_to_member` has only
# this one beside the member, which gets the words of the user.
_FORMS = frozenset({"expected_output"})
# Arguments that only name tasks which were written before, by Agno's `create_task`.
_TASK_IDS = frozenset({"task_id", "task_ids"})
# Claude Code's tool, `Task` until it was renamed `Agent`. Any program may call a tool `task`, so it
# counts only with a `subagent_type`.
_SUB_AGENT = frozenset({"task", "agent"})
_RECEIVER = "assistant"


def hand_over(says: ToolSpan, type_: str | None, attributes: Mapping[str, Any]) -> None:
    """Record on a tool span how it passes work on."""
    if _STATED.isdisjoint(attributes):
        says.mode, says.target = by_name(says.name or "", says.arguments, type_)
        return
    mode = attributes.get("gen_ai.transfer.mode")
    target = first(attributes, *_TARGET_ATTRIBUTES)
    if mode is not None or target is not None:
        mode, target = text(mode), text(target)
    if mode is None and target is None:
        says.mode, says.target = by_name(says.name or "", says.arguments, type_)
    else:
        # PR 447 defines two modes, `return_to_caller` and `pass_control`. Any other mode, or a
        # target without a mode, counts as a transfer, which the structure of the trace can still
        # correct (`sure` is false).
        says.mode = "delegate" if mode == "return_to_caller" else "transfer"
        says.target = target or _argument(says.arguments)
        says.sure = mode in ("pass_control", "return_to_caller")
    kind = attributes.get("gen_ai.transfer.target.type")
    if kind in ("human", "workflow"):
        says.target_kind = kind


def by_name(name: str, arguments: Any, type_: str | None = None) -> tuple[Mode | None, str | None]:
    """Return the mode and target of a hand-over, from frameworks' names and types of its tools.

    ``transfer_to_billing`` and ``transfer_to_agent`` (with the agent among its arguments) give
    control away; ``delegate_work_to_coworker``, and a ``Task`` with a ``subagent_type``, wait.
    """
    way, suffix = _way(name, type_)
    if way is None:
        return None, None
    target = _argument(arguments)
    if way == "transfer":
        return "transfer", target or suffix
    if way == "coworker":
        return "delegate", target
    if way == "handoff":
        # Any tool can have this name. Without a target among its arguments, it is no hand-over.
        return ("transfer", target) if target is not None or arguments is None else (None, None)
    target = text(arguments.get("subagent_type")) if isinstance(arguments, dict) else None
    return ("delegate", target) if target is not None else (None, None)


@lru_cache(maxsize=4096)
def _way(name: str, type_: str | None) -> tuple[str | None, str | None]:
    """Return what a tool with this name can do, and the agent in its name."""
    match = _TRANSFER.match(name)
    if type_ == "TransferToAgentTool" or match is not None:
        suffix = match.group(1) if match and match.group(1).lower() not in _ANY else None
        return "transfer", suffix
    plain = plain_name(name)
    if plain in _COWORKER:
        return "coworker", None
    if plain in _HANDOFF:
        return "handoff", None
    return ("sub-agent", None) if name.lower() in _SUB_AGENT else (None, None)


def _argument(arguments: Any) -> str | None:
    if not isinstance(arguments, dict):
        return None
    return text(first(arguments, *TARGET_ARGUMENTS))


def receiver_in(result: Content) -> str | None:
    """Return the agent that the answer to a hand-over names: ``{"assistant": "Billing"}``.

    This is always the answer of OpenAI Agents, while its tool may have any name
    (`tool_name_override`).
    """
    said = result.plain()
    data = parsed(said) if _RECEIVER in said else None
    if not isinstance(data, dict) or data.keys() != {_RECEIVER}:
        return None
    return str(data[_RECEIVER])


def asks_all(name: str) -> bool:
    """Return whether a tool gives every agent below its call one task, or a task of its own."""
    return plain_name(name) in _TO_ALL


def prompt_of(arguments: Any) -> tuple[Content | None, str | None, dict[str, Any]]:
    """Return prompt, short description and context of the call that hands work over.

    The programmer chooses the names of the arguments. The prompt is the first known name, else the
    only text, else the only argument. Otherwise all are context and there is no prompt.
    """
    if not isinstance(arguments, dict):
        return content(arguments), None, {}
    rest = {key: value for key, value in arguments.items() if key not in TARGET_ARGUMENTS}
    if rest.keys() <= _TASK_IDS or rest.keys() == _FORMS:
        return None, None, rest
    key = next((name for name in _PROMPTS if text(rest.get(name))), None)
    if key is None:
        # With pydantic-ai, the programmer picks the name: `q`, `joke`, `request`. A single text
        # among other values (`limit`, `strict`) is the prompt. With two texts, it is unknown which
        # one is the prompt.
        texts = [name for name, value in rest.items() if text(value)]
        key = texts[0] if len(texts) == 1 else None
    if key is None and len(rest) == 1:
        return _only(next(iter(rest.values()))), None, {}
    if key is None:
        return None, None, rest
    prompt = Content(text=rest.pop(key))
    description = text(rest.pop("description", None)) if key != "description" else None
    context = rest.get("context")
    if isinstance(context, dict) and set(rest) == {"context"}:
        rest = context
    return prompt, description, {key: value for key, value in rest.items() if value is not None}


def _only(value: Any) -> Content | None:
    """Return the only argument as a prompt; from a list of messages, the last one of the user."""
    listed = value if isinstance(value, list) else []
    if listed and all(isinstance(one, dict) and "role" in one for one in listed):
        return last_of(read_messages(listed), "user") or content(value)
    return content(value)

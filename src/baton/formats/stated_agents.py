"""Which agents a turn of an eval set states.

There are three ways to say it: ``agent_transfer`` records, ``agent_name`` records (or ADK's
``[author, parts]`` pairs) in ``intermediate_responses``, and ``transfer_to_agent`` tool uses.
"""

from __future__ import annotations

from typing import Any

from .evalset import FunctionCall, IntermediateData

TRANSFER_TOOL = "transfer_to_agent"


def stated_agents(data: IntermediateData | None) -> list[str] | None:
    """Return the agent chain that a turn states; ``None`` when it states none.

    Raises:
        ValueError: a record names an agent by something else than text.
    """
    if data is None:
        return None
    if data.invocation_events is not None:
        return _collapse(e.author for e in data.invocation_events if e.author != "user") or None
    return _from_responses(data.intermediate_responses or []) or _from_tools(data.tool_uses or [])


def _from_responses(records: list[Any]) -> list[str]:
    chain: list[str] = []
    for record in records:
        pair = author_pair(record)
        if pair is not None:
            if pair[0] != "user" and (not chain or chain[-1] != pair[0]):
                chain.append(pair[0])
        elif isinstance(record, dict):
            _add_record(chain, record)
    return chain


def _add_record(chain: list[str], record: dict[str, Any]) -> None:
    if record.get("type") == "agent_transfer":
        opener = record.get("from_agent")
        if opener is not None and not chain:
            chain.append(_name(opener, "from_agent"))
        if record.get("to_agent") is not None:
            chain.append(_name(record["to_agent"], "to_agent"))
    elif record.get("type") not in ("function_call", "function_response"):
        if record.get("agent_name") is not None:
            chain.append(_name(record["agent_name"], "agent_name"))


def _from_tools(calls: list[FunctionCall]) -> list[str] | None:
    targets = [
        _name((call.arguments() or {}).get("agent_name"), f"agent_name of {TRANSFER_TOOL}")
        for call in calls
        if call.name == TRANSFER_TOOL
    ]
    return targets or None


def author_pair(record: Any) -> tuple[str, list[str]] | None:
    """Read ADK's ``[author, parts]``: the author and its texts; ``None`` for anything else."""
    if not (isinstance(record, list) and len(record) == 2 and isinstance(record[0], str)):
        return None
    parts = record[1] if isinstance(record[1], list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict)]
    return record[0], [text for text in texts if isinstance(text, str) and text]


def _collapse(names: Any) -> list[str]:
    chain: list[str] = []
    for name in names:
        if not chain or chain[-1] != name:
            chain.append(name)
    return chain


def _name(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{what} has to be an agent's name, got {value!r}")
    return value

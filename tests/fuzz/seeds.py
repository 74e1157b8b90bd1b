"""Files written by hand, for the readers that have no recording to start from."""

from __future__ import annotations

import json
from typing import Any

_USER = {"role": "user", "parts": [{"text": "I was charged twice."}]}
_ANSWER = {"role": "model", "parts": [{"text": "It is refunded."}]}
_CALL = {"id": "c1", "name": "transfer_to_agent", "args": {"agent_name": "billing"}}
_TOOL = {"id": "c2", "name": "refund", "args": {"order": "A1", "amount": 3.5}}
_EVENTS: list[dict[str, Any]] = [
    {"author": "router", "content": {"role": "model", "parts": [{"function_call": _CALL}]}},
    {"author": "billing", "content": {"role": "model", "parts": [{"function_call": _TOOL}]}},
    {
        "author": "billing",
        "content": {
            "parts": [{"function_response": {"id": "c2", "name": "refund", "response": {"ok": 1}}}]
        },
    },
]
_INVOCATION = {
    "invocation_id": "i1",
    "user_content": _USER,
    "final_response": _ANSWER,
    "intermediate_data": {"invocation_events": _EVENTS},
    "creation_timestamp": 1_700_000_000.0,
}
_OLDER = {
    "invocation_id": "i2",
    "user_content": _USER,
    "final_response": _ANSWER,
    "intermediate_data": {
        "tool_uses": [_TOOL],
        "tool_responses": [{"id": "c2", "name": "refund", "response": {"result": "done"}}],
        "intermediate_responses": [["billing", [{"text": "One moment."}]]],
    },
}
_CASE = {
    "eval_id": "refund",
    "conversation": [_INVOCATION, _OLDER],
    "session_input": {"app_name": "desk", "user_id": "u", "state": {"plan": "pro"}},
}
_SESSION = {
    "id": "s1",
    "app_name": "desk",
    "user_id": "u",
    "state": {"plan": "pro"},
    "events": [{"id": f"e{n}", "invocation_id": "i1", **e} for n, e in enumerate(_EVENTS)],
}
_METRIC = {"actual_invocation": _INVOCATION, "expected_invocation": _OLDER}
_PROVIDED = {"conversation_history": [_INVOCATION], "success": True, "metadata": {"eval_id": "r"}}
_RUN = {"eval_case_id": "refund", "execution_id": "x1", "provider_result": _PROVIDED}
_RECORD = {
    "schema_version": 1,
    "id": "t",
    "source": {"format": "python"},
    "turns": [{"id": "turn1", "runs": [{"id": "run1", "agent": "router"}]}],
}
_BODY = {"case_id": "refund", "repeat": 1, "scores": [], "trace": _RECORD, "agents": 0}

FILES: dict[str, tuple[str, Any]] = {
    "evalset": (".json", {"eval_set_id": "s", "name": "s", "eval_cases": [_CASE, _CASE]}),
    "evalset-yaml": (".yaml", {"eval_set_id": "s", "eval_cases": [_CASE]}),
    "eval-case": (".json", _CASE),
    "adk-result": (
        ".json",
        {
            "eval_set_result_id": "r",
            "eval_case_results": [
                {"eval_id": "refund", "session_id": "s1", "session_details": _SESSION},
                {"eval_id": "other", "eval_metric_result_per_invocation": [_METRIC, _METRIC]},
            ],
        },
    ),
    "judge-llm-report": (".json", {"execution_runs": [_RUN, _RUN], "summary": {"total": 2}}),
    "judge-llm-result": (".json", _PROVIDED),
    "evaluation": (".jsonl", [_BODY, {**_BODY, "repeat": 0}]),
    "record-lines": (".jsonl", [_RECORD, {**_RECORD, "id": "t2"}]),
}
"""A suffix and a value for each; lines where the value of a ``.jsonl`` is a list."""

HEADER = {"id": "e", "status": "passed", "agents": [{"router": {"description": "It routes."}}]}
"""What stands beside ``bodies.jsonl``."""

_FUNCTION = {
    "name": "refund",
    "description": "d",
    "parametersJsonSchema": {
        "type": "object",
        "properties": {"request": {"type": "string"}},
        "required": ["request"],
    },
}
CATALOGUES: dict[str, tuple[str, Any]] = {
    "app-info": (
        ".json",
        {
            "rootAgentName": "router",
            "agents": {
                "router": {
                    "description": "It routes.",
                    "instruction": "Route.",
                    "tools": [{"functionDeclarations": [_FUNCTION]}],
                    "subAgents": ["billing"],
                },
                "billing": {"tools": [], "sub_agents": []},
            },
        },
    ),
    "agents": (
        ".yaml",
        {
            "agents": {
                "router": {"description": "d", "tools": ["a", "b"], "sub_agents": ["billing"]},
                "billing": {"tools": "all", "denied_tools": ["Write"], "aliases": ["b"]},
            }
        },
    ),
    "sdk": (
        ".json",
        {"helper": {"description": "d", "prompt": "p", "tools": ["Read"], "model": "haiku"}},
    ),
}
DEFINITION = b"""---
name: helper
description: "Helps: with anything"
tools: Read, Grep, Bash(git log:*, git diff:*)
disallowedTools: [Write]
model: haiku
---

Help as you can.
"""


def written(suffix: str, value: Any) -> bytes:
    """Write a value as the text of a file; JSON is YAML, too."""
    if suffix == ".jsonl":
        return b"".join(json.dumps(line).encode() + b"\n" for line in value)
    return json.dumps(value).encode()

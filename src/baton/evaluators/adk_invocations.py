"""Turns in the shape of Google ADK's ``Invocation``, for metrics that were written for it.

Objects have ADK's attributes. Where the metric's own code has imported ADK, they are of its
classes, so that its helpers, which ask for the class, work.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from baton.model import Case, Content, ExpectedTurn, Said, ToolCall, Trace, Turn, known

_MODULES = {
    "Invocation": "google.adk.evaluation.eval_case",
    "ConversationScenario": "google.adk.evaluation.conversation_scenarios",
}
_INVOCATION = dict.fromkeys(
    ("final_response", "intermediate_data", "duration", "model_duration", "tool_duration")
) | {"creation_timestamp": 0.0, "rubrics": None, "app_details": None}
_PART = dict.fromkeys(("text", "thought", "function_call", "function_response", "inline_data"))
_EVENT = dict.fromkeys(("content", "grounding_metadata", "usage_metadata", "model_version"))


def actual_invocations(trace: Trace) -> list[Any]:
    """Return what was done, turn by turn; what the source did not record is ``None``."""
    return [_made("Invocation", _actual(trace, turn)) for turn in trace.turns]


def expected_invocations(case: Case) -> list[Any] | None:
    """Return what should be done; ``None`` for a scenario, which has no fixed turns."""
    if case.scenario is not None:
        return None
    return [_made("Invocation", _expected(turn)) for turn in case.turns]


def scenario_of(case: Case | None) -> Any:
    """Return the scenario of a case, where it is one."""
    if case is None or case.scenario is None:
        return None
    stated = {
        "starting_prompt": case.scenario.start,
        "conversation_plan": case.scenario.plan,
        "user_persona": None,
    }
    return _made("ConversationScenario", stated)


def _actual(trace: Trace, turn: Turn) -> dict[str, Any]:
    recorded = known(trace, turn, "runs") and all(known(trace, run, "steps") for run in turn.runs)
    return {
        **_INVOCATION,
        "invocation_id": turn.id,
        "user_content": _message("user", turn.input) or {"role": "user", "parts": []},
        "final_response": _message("model", turn.output),
        "intermediate_data": {"invocation_events": list(_events(turn))} if recorded else None,
    }


def _expected(turn: ExpectedTurn) -> dict[str, Any]:
    data = None
    if turn.tool_calls is not None or turn.interactions is not None:
        data = {
            "tool_uses": [_call(c.name, c.arguments, None) for c in turn.tool_calls or ()],
            "tool_responses": [],
            "intermediate_responses": [
                [visit.agent, [{**_PART, "text": text} for text in visit.says or ()]]
                for visit in turn.interactions or ()
            ],
        }
    return {
        **_INVOCATION,
        "invocation_id": "",
        "user_content": _message("user", turn.input) or {"role": "user", "parts": []},
        "final_response": _message("model", turn.response),
        "intermediate_data": data,
    }


def _events(turn: Turn) -> Iterator[dict[str, Any]]:
    """Yield texts, calls and answers run by run; the final answer stands elsewhere."""
    final = turn.output.plain() if turn.output else None
    for run in turn.runs:
        for step in run.steps:
            if isinstance(step, Said):
                text = step.content.plain()
                if text and text != final:
                    yield _event(run.agent, {"text": text, "thought": step.thought or None})
            elif isinstance(step, ToolCall):
                arguments = step.arguments if isinstance(step.arguments, dict) else None
                yield _event(run.agent, {"function_call": _call(step.name, arguments, step.id)})
                if step.result is not None:
                    answer = {"id": step.id, "name": step.name, "response": _answer(step.result)}
                    yield _event(run.agent, {"function_response": answer})


def _event(author: str, part: dict[str, Any]) -> dict[str, Any]:
    return {**_EVENT, "author": author, "content": {"role": "model", "parts": [_PART | part]}}


def _call(name: str, arguments: dict[str, Any] | None, call_id: str | None) -> dict[str, Any]:
    return {"id": call_id, "name": name, "args": arguments}


def _answer(result: Content) -> dict[str, Any]:
    return result.data if isinstance(result.data, dict) else {"result": result.plain()}


def _message(role: str, content: Content | None) -> dict[str, Any] | None:
    if content is None:
        return None
    return {"role": role, "parts": [{**_PART, "text": content.plain()}]}


def _made(class_: str, value: dict[str, Any]) -> Any:
    module = sys.modules.get(_MODULES[class_])
    found = getattr(module, class_, None)
    return _plain(value) if found is None else found.model_validate(value)


def _plain(value: Any, free: bool = False) -> Any:
    """Turn dicts into objects with attributes; arguments and answers of tools stay dicts."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict) or free:
        return value
    return SimpleNamespace(
        **{key: _plain(item, free=key in ("args", "response")) for key, item in value.items()}
    )

"""Cases that stay in their dialect: all they say is kept, read by us or not."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import msgspec

from baton.formats.adk_events import attachments
from baton.formats.evalset import EvalCase, FunctionCall, Part, author_pair
from baton.formats.spelling import normalise, prune

from .files import Dialect
from .write import Target
from .write.eval_sets import APP, BEGINNING, USER

ID_KEYS: dict[Target, str] = {
    "adk": "eval_id",
    "judge-llm": "eval_id",
    "strands": "name",
    "baton": "id",
}
_JUDGE_LLM = {
    "": {
        "conversation",
        "creation_timestamp",
        "eval_id",
        "evaluator_config",
        "metadata",
        "session_input",
    },
    "turn": {
        "creation_timestamp",
        "final_response",
        "intermediate_data",
        "invocation_id",
        "user_content",
    },
    "data": {"intermediate_responses", "tool_uses"},
}
_OPEN = {"session_input", "usage_metadata"}


def carried(value: Any, source: Dialect | None, to: Target) -> dict[str, Any] | None:
    """Return a case as it stands where the target has the same dialect, else ``None``.

    Keys of eval sets are put in snake_case; what ADK or judge-llm cannot do without is added.
    """
    if not isinstance(value, dict):
        return None
    if (source, to) in (("own", "baton"), ("strands", "strands")):
        return dict(value)
    if source != "evalset" or to not in ("adk", "judge-llm"):
        return None
    case: dict[str, Any] = copy.deepcopy(normalise(value, EvalCase))
    if to == "adk":
        return _completed_for_adk(case) if _is_adk(case) else None
    return _completed_for_judge_llm(case) if _is_judge_llm(case) else None


def blobs(value: Any) -> dict[str, dict[str, Any]]:
    """Collect attachments that are written with their bytes, by their SHA-256."""
    found: dict[str, dict[str, Any]] = {}
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            blob = node.get("inline_data", node.get("inlineData"))
            if isinstance(blob, dict):
                for part in attachments([Part(inline_data=blob)]) or ():
                    found[part.sha256 or ""] = blob
            stack += node.values()
        elif isinstance(node, list):
            stack += node
    return found


def _turns(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from case.get("conversation") or ()


def _data(turn: dict[str, Any]) -> dict[str, Any]:
    return turn.get("intermediate_data") or {}


def _is_adk(case: dict[str, Any]) -> bool:
    """Tell whether ADK takes a case: it refuses unknown keys and judge-llm's records."""
    strays = prune(case, EvalCase)[1]
    if any(len(stray.path) > 1 and not _OPEN & set(stray.path) for stray in strays):
        return False
    return all(
        not isinstance(turn.get("user_content"), str)
        and not isinstance(turn.get("final_response"), str)
        and all("input_data" not in use for use in _data(turn).get("tool_uses") or ())
        and all(author_pair(record) for record in _data(turn).get("intermediate_responses") or ())
        for turn in _turns(case)
    )


def _is_judge_llm(case: dict[str, Any]) -> bool:
    """Tell whether judge-llm knows all that a case says."""
    return (
        "conversation" in case
        and _said(case) <= _JUDGE_LLM[""]
        and all(
            _said(turn) <= _JUDGE_LLM["turn"]
            and _said(_data(turn)) <= _JUDGE_LLM["data"]
            and all(isinstance(r, dict) for r in _data(turn).get("intermediate_responses") or ())
            for turn in _turns(case)
        )
    )


def _said(node: dict[str, Any]) -> set[str]:
    return {key for key, value in node.items() if value is not None}


def _completed_for_adk(case: dict[str, Any]) -> dict[str, Any]:
    for holder in (case, *_turns(case)):
        for number, rubric in enumerate(holder.get("rubrics") or (), 1):
            rubric.setdefault("rubric_id", f"rubric-{number}")
    _name_session(case.get("session_input"), APP, USER)
    return case


def _completed_for_judge_llm(case: dict[str, Any]) -> dict[str, Any]:
    case.setdefault("creation_timestamp", BEGINNING)
    case["session_input"] = case.get("session_input") or {}
    _name_session(case["session_input"], "", "")
    for number, turn in enumerate(_turns(case), 1):
        turn.setdefault("invocation_id", f"turn-{number}")
        turn.setdefault("creation_timestamp", BEGINNING)
        turn["user_content"] = _content(turn["user_content"])
        turn["final_response"] = _content(turn.get("final_response"))
        for place, use in enumerate(_data(turn).get("tool_uses") or (), 1):
            use.setdefault("id", f"call-{place}")
            use.setdefault("args", msgspec.convert(use, FunctionCall).arguments() or {})
    return case


def _content(value: Any) -> Any:
    if isinstance(value, str):
        return {"parts": [{"text": value}]}
    return {"parts": []} if value is None else value


def _name_session(session: dict[str, Any] | None, app: str, user: str) -> None:
    if session is not None:
        session["app_name"] = session.get("app_name") or app
        session["user_id"] = session.get("user_id") or user

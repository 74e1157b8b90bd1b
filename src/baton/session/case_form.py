"""A case as a form with the fields that people change most often.

Fields that the form does not show are kept. The whole case can be edited as YAML.
"""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from baton.datasets.evalset import user_content
from baton.datasets.files import dialect_of_case
from baton.formats.document import Document
from baton.formats.key_case import snake
from baton.formats.yaml import dump_yaml, load_yaml
from baton.model import Content, InputError, Problem


class TurnForm(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A message and its expectations; empty fields state nothing.

    ``agents`` are separated by ``>``; ``contains`` has one text per line. Both are ``None`` if the
    dialect has no such field or the case uses a form of it that cannot be shown.
    """

    input: str
    response: str = ""
    agents: str | None = None
    contains: str | None = None


class CaseForm(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A case; ``state`` is JSON, ``tags`` are separated by commas."""

    id: str
    turns: list[TurnForm]
    app: str = ""
    user: str = ""
    state: str = ""
    tags: str | None = None


def case_yaml(value: Any) -> str:
    """Write a whole case as YAML for editing."""
    return dump_yaml(value, lines=True)


def case_of_yaml(text: str) -> dict[str, Any]:
    """Read an edited case; raises InputError with the line of each problem."""
    value = load_yaml(text, "the case")
    if not isinstance(value, dict):
        raise InputError(Problem(file="the case", message="has to be a mapping with keys"))
    return value


def form_of(value: dict[str, Any]) -> CaseForm | None:
    """Return the form of a case; ``None`` for a case that only YAML can show."""
    dialect = dialect_of_case(value)
    if dialect == "own":
        turns = value.get("turns") or [value]
        forms = [_own_turn(turn) for turn in turns]
        session = value.get("session") or {}
        app, user, state = session.get("app"), session.get("user"), value.get("state")
        tags = value.get("tags")
    elif dialect == "evalset":
        conversation = _get(value, "conversation")
        if not isinstance(conversation, list):
            return None
        forms = [
            TurnForm(
                input=_text(_get(turn, "user_content")),
                response=_text(_get(turn, "final_response")),
            )
            for turn in conversation
        ]
        session = _get(value, "session_input") or {}
        app, user = _get(session, "app_name"), _get(session, "user_id")
        state, tags = _get(session, "state"), None
    else:
        return None
    return CaseForm(
        id=str(_get(value, "eval_id") if dialect == "evalset" else value["id"]),
        turns=forms,
        app=str(app or ""),
        user=str(user or ""),
        state=msgspec.json.encode(state).decode() if state else "",
        tags=", ".join(map(str, tags or ())) if dialect == "own" else None,
    )


def with_form(value: dict[str, Any], form: CaseForm) -> dict[str, Any]:
    """Apply the changes of a form to a case; the order of keys is kept.

    Raises:
        InputError: the state is not a JSON object, or the turns are not those of the case.
    """
    before = form_of(value)
    if before is None or len(before.turns) != len(form.turns):
        raise InputError("this form does not belong to this case: edit the case as YAML")
    new = copy.deepcopy(value)
    state = _state(form.state)
    if dialect_of_case(value) == "own":
        new["id"] = form.id.strip()
        for turn, was, now in zip(new.get("turns") or [new], before.turns, form.turns, strict=True):
            _change_own(turn, was, now)
        session = {**(new.get("session") or {}), "app": form.app.strip(), "user": form.user.strip()}
        _put(new, "session", {key: each for key, each in session.items() if each})
        _put(new, "state", state)
        if form.tags is not None:
            _put(new, "tags", [tag.strip() for tag in form.tags.split(",") if tag.strip()])
        return new
    new[_key(new, "eval_id")] = form.id.strip()
    for turn, was, now in zip(_get(new, "conversation"), before.turns, form.turns, strict=True):
        if now.input != was.input:
            _set_text(turn, "user_content", now.input, "user")
        if now.response != was.response:
            _set_text(turn, "final_response", now.response, "model")
    if (form.app, form.user, form.state) != (before.app, before.user, before.state):
        session = new.setdefault(_key(new, "session_input"), {})
        session[_key(session, "app_name")] = form.app.strip()
        session[_key(session, "user_id")] = form.user.strip()
        session[_key(session, "state")] = state
    return new


def _own_turn(turn: dict[str, Any]) -> TurnForm:
    agents, contains = turn.get("agents"), turn.get("response_contains")
    plain = agents is None or all(isinstance(each, str) for each in agents)
    lines = [contains] if isinstance(contains, str) else contains or []
    return TurnForm(
        input=str(turn.get("input") or ""),
        response=str(turn.get("response") or ""),
        agents=" > ".join(agents or ()) if plain else None,
        contains=None if any("\n" in line for line in lines) else "\n".join(lines),
    )


def _change_own(turn: dict[str, Any], was: TurnForm, now: TurnForm) -> None:
    """Apply changes to a turn; unchanged values keep their spelling."""
    turn["input"] = now.input
    if now.response != was.response:
        _put(turn, "response", now.response)
    if now.agents is not None and now.agents != was.agents:
        _put(turn, "agents", [name.strip() for name in now.agents.split(">") if name.strip()])
    if now.contains is not None and now.contains != was.contains:
        lines = [line.strip() for line in now.contains.splitlines() if line.strip()]
        _put(turn, "response_contains", lines)


def _put(holder: dict[str, Any], key: str, value: Any) -> None:
    if value:
        holder[key] = value
    else:
        holder.pop(key, None)


def _state(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    value = Document("state", text.encode(), "json").value()
    if not isinstance(value, dict):
        raise InputError(Problem(path="state", message="has to be a JSON object: {...}"))
    return value


def _key(holder: dict[str, Any], name: str) -> str:
    """Return how a key is spelt here: ADK takes `eval_id` and `evalId`."""
    return next((key for key in holder if snake(key) == name), name)


def _get(holder: dict[str, Any], name: str) -> Any:
    return holder.get(_key(holder, name))


def _text(content: Any) -> str:
    """Return the text of a message: that of its first part with a text."""
    if isinstance(content, str):
        return content
    parts = (content or {}).get("parts") or ()
    return next((part["text"] for part in parts if isinstance(part.get("text"), str)), "")


def _set_text(turn: dict[str, Any], name: str, text: str, role: str) -> None:
    key = _key(turn, name)
    content = turn.get(key)
    if isinstance(content, dict):
        for part in content.get("parts") or ():
            if isinstance(part.get("text"), str):
                part["text"] = text
                return
    if not text:
        turn.pop(key, None)
    else:
        turn[key] = (
            text
            if isinstance(content, str)
            else {**user_content(Content(text=text), {}), "role": role}
        )

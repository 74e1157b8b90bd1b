"""Hooks of Claude Code that ask a policy: their input, and the answers to them.

In a program of the Claude Agent SDK they are hooks of its options:

    options = ClaudeAgentOptions(hooks=guard_hooks(guard))
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from baton.model import InputError
from baton.model.current_guard import DECISIONS

from .claude_files import AgentMeta, SessionFiles
from .decide_event import Decision, Event, failed_decision
from .policy import Policy, load_policy
from .runtime import Guard
from .state import FAILURES, Below, Dispatched, counts, open_state

if TYPE_CHECKING:
    from claude_agent_sdk import HookMatcher

EVENTS: Mapping[str, str | None] = {
    "PreToolUse": "*",
    "PostToolUse": "Task|Agent|Skill|SendMessage",
    "PostToolUseFailure": "Task|Agent",
    "SubagentStart": None,
    "SubagentStop": None,
}
"""The handled events, each with its tools."""
_AGENT_TOOLS = ("Task", "Agent")
"""The old and new name of the tool that starts a sub-agent."""
_SKILL_TOOL = "Skill"
_MESSAGE_TOOL = "SendMessage"
"""The tool that continues a sub-agent."""
_MAIN = "main"
"""The name of the agent that the user talks to, as in records of Claude Code."""
_DEFAULT_AGENT = "general-purpose"
"""The sub-agent that is started if none is named."""


class _HookInput(msgspec.Struct):
    """The input of a hook, as far as it is needed here."""

    session_id: str
    hook_event_name: str
    transcript_path: str | None = None
    prompt_id: str | None = None
    tool_name: str = ""
    tool_input: Any = None
    tool_use_id: str = ""
    tool_response: Any = None
    agent_id: str | None = None
    agent_type: str | None = None
    last_assistant_message: str | None = None
    stop_hook_active: bool = False
    background_tasks: list[dict[str, Any]] | None = None

    @property
    def tree(self) -> str:
        """The user's request; older versions only give the session."""
        return f"{self.session_id}/{self.prompt_id or ''}"

    @property
    def is_late(self) -> bool:
        """Whether no call waits for the answer of the stopping sub-agent.

        Older versions do not report which agents run in the background.
        """
        tasks = self.background_tasks
        return tasks is None or any(each.get("id") == self.agent_id for each in tasks)

    @property
    def files(self) -> SessionFiles:
        """The files of the session."""
        return SessionFiles(self.transcript_path)

    @property
    def new_dispatch(self) -> _NewDispatch | None:
        """The dispatch that a tool call makes; ``None`` for any other call."""
        arguments = self.tool_input if isinstance(self.tool_input, dict) else {}
        if self.tool_name in _AGENT_TOOLS:
            prompt = arguments.get("prompt")
            to = str(arguments.get("subagent_type") or _DEFAULT_AGENT)
            return _NewDispatch(to, prompt if isinstance(prompt, str) else None, None, starts=True)
        if self.tool_name != _MESSAGE_TOOL or not isinstance(arguments.get("to"), str):
            return None
        meta = self.files.agent(arguments["to"])
        if meta is None or meta.agent_type is None:  # another receiver, such as another session
            return None
        message = arguments.get("message")
        prompt = message if isinstance(message, str) else None
        return _NewDispatch(meta.agent_type, prompt, meta.spawn_depth, starts=meta.finished)


class _NewDispatch(NamedTuple):
    """The receiving sub-agent, its prompt, and its depth if already known.

    A sub-agent that is already running reads the message while it continues: ``starts`` is false.
    """

    to: str
    prompt: str | None
    depth: int | None
    starts: bool


def guard_hooks(guard: Guard) -> dict[Any, list[HookMatcher]]:
    """Return hooks that ask a guard before tools and sub-agents run, and before answers are read.

    If a rule says `ask` and the guard has no `ask` function, Claude Code asks through its
    permissions (``can_use_tool``). An error in a hook blocks.
    """
    from claude_agent_sdk import HookMatcher  # a command of Claude Code has no SDK

    async def ask(given: Any, _call: Any, _context: Any) -> Any:
        return await guard.later(answer_of, guard, given) or {}

    return {
        event: [HookMatcher(matcher=matcher, hooks=[ask], on_failure="block")]
        for event, matcher in EVENTS.items()
    }


def answer(
    policy: Path, store: Path | str, data: bytes, project: str | None = None
) -> dict[str, Any] | None:
    """Return the answer to a hook event; ``None`` = Claude Code continues as usual.

    ``store`` is the file of the state, or the address of a server, with the ``project`` there.

    Raises:
        InputError: the policy has errors, or the event is not valid.
    """
    held = load_policy(policy)
    try:
        event = msgspec.json.decode(data, type=_HookInput)
    except msgspec.DecodeError as error:
        raise InputError(f"standard input is not an event of Claude Code: {error}") from None
    try:
        state = open_state(store, project)
    except (InputError, OSError) as error:
        return _reply(event, failed_decision(held, str(error), event.last_assistant_message))
    try:
        return _answer(Guard(held, store=state), event)
    finally:
        state.close()


def answer_of(guard: Guard, data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Like :func:`answer`, for hooks that run in a program with a guard."""
    return _answer(guard, msgspec.convert(data, _HookInput))


def _answer(guard: Guard, hook: _HookInput) -> dict[str, Any] | None:
    notes: list[dict[str, Any]] = []
    token = DECISIONS.set(notes)
    try:
        reply = _decided(guard, hook)
    except FAILURES as error:
        event = _event(guard, hook)
        failed = failed_decision(guard.policy, f"the state of the tree: {error}")
        guard.note(event, failed)
        reply = _reply(hook, failed)
    finally:
        DECISIONS.reset(token)
        if (others := DECISIONS.get()) is not None:
            others += notes
    try:
        hook.files.note(notes)
    except OSError as error:
        return {**(reply or {}), "systemMessage": f"guard: this could not be logged: {error}"}
    return reply


def _decided(guard: Guard, hook: _HookInput) -> dict[str, Any] | None:
    store = guard.store
    if hook.hook_event_name == "PostToolUse":
        if hook.tool_name != _MESSAGE_TOOL:
            return _returned(guard, hook)
        _resumed(guard, hook)
        return None
    if hook.hook_event_name == "SubagentStart":
        return _started(guard, hook)
    if hook.hook_event_name == "PostToolUseFailure":
        store.end(hook.tree, hook.tool_use_id)
        return None
    if hook.hook_event_name not in EVENTS:
        return None
    if hook.hook_event_name == "SubagentStop":
        return _stopped(guard, hook)
    event = _event(guard, hook)
    decision = guard.decide(event)
    reply = _reply(hook, decision)
    if event.on == "dispatch" and (decision.allowed or decision.action == "ask"):
        _expect(guard, hook, event)
    if (
        hook.hook_event_name == "PreToolUse"
        and hook.tool_name == "Agent"
        and (decision.allowed or decision.action == "ask")
        and _withholds(guard.policy)
    ):
        # The answer of a background agent arrives in a message, which no hook can change.
        own = hook.tool_input if isinstance(hook.tool_input, dict) else {}
        waits = {"hookEventName": "PreToolUse", "updatedInput": {**own, "run_in_background": False}}
        waits |= (reply or {}).get("hookSpecificOutput", {})
        return {**(reply or {}), "hookSpecificOutput": waits}
    return reply


def _stopped(guard: Guard, hook: _HookInput) -> dict[str, Any] | None:
    """Ask a sub-agent for another answer if a rule withholds its answer.

    If a caller waits for the answer, it is decided again when the call returns. So the sub-agent
    has one more try here, and nothing else happens. For a sub-agent in the background that is too
    late: it is asked again for as long as its answer breaks a rule, also by one that redacts, as no
    hook can replace a part of the message. Claude Code ends it after eight such requests
    (``CLAUDE_CODE_STOP_HOOK_BLOCK_CAP``).
    """
    if hook.agent_id is not None:
        guard.store.end(hook.tree, hook.agent_id)
    event = msgspec.structs.replace(_event(guard, hook), live=False)
    if hook.is_late:
        decision = guard.decide(event, live=False, replaces=False)
        return _reply(hook, decision)
    decision = guard.store.decide(guard.policy, event)
    withheld = decision.action == "block" or (decision.action == "ask" and not guard.asks)
    if not withheld or hook.stop_hook_active:
        return None
    guard.note(event, decision)
    return _reply(hook, decision)


def _expect(guard: Guard, hook: _HookInput, event: Event) -> None:
    """Record that a sub-agent will start whose dispatch has been decided."""
    handed = hook.new_dispatch
    if handed is not None and handed.starts and counts(guard.policy):
        due = Dispatched(tree=f"{hook.tree}/due", id=event.id, parent=handed.to)
        guard.store.count(due, event.at, Below())


def _started(guard: Guard, hook: _HookInput) -> dict[str, Any] | None:
    """Count a sub-agent that was not started by a call of ``Agent``, and decide it.

    A skill may start one (``context: fork``) without any hook before it. When Claude Code reports
    that an agent starts, a hook can no longer stop it, and Claude Code does not report which call
    started it. So the starts of each kind of agent are compared with the earlier decided dispatches
    to it; an additional start is one of a skill. If a rule would block it, the agent reads a
    warning instead. Older versions, which do not report the request, also start agents to warm up.
    """
    if hook.prompt_id is None or not counts(guard.policy):
        return None
    store, kind = guard.store, hook.agent_type or ""
    due = store.seen(Dispatched(tree=f"{hook.tree}/due", parent=kind), None).of_parent
    start = Dispatched(tree=f"{hook.tree}/begun", id=os.urandom(8).hex(), parent=kind)
    if store.count(start, time.time(), Below(of_parent=due)) is None:
        return None
    event = _event(guard, hook)
    decision = store.decide(guard.policy, event)
    if not decision.allowed:
        store.add(event)
        why = "it had already started, so nothing could stop it"
        reason = f"{decision.reason} ({why})"
        decision = msgspec.structs.replace(decision, allowed=True, action="warn", reason=reason)
    guard.note(event, decision)
    if decision.action != "warn":
        return None
    told_agent = f"A policy of your user says of this work: {decision.reason}"
    output = {"hookEventName": "SubagentStart", "additionalContext": told_agent}
    return {"hookSpecificOutput": output}


def _resumed(guard: Guard, hook: _HookInput) -> None:
    """Record that a sub-agent is running again, until it stops."""
    store = guard.store
    response = hook.tool_response if isinstance(hook.tool_response, dict) else {}
    agent = response.get("resumedAgentId")
    if hook.new_dispatch is None:
        return
    sent = _event(guard, hook)
    if not store.knows(hook.tree, hook.tool_use_id):
        store.add(sent)  # it ran, so a person has approved it
    if isinstance(agent, str) and not store.knows(hook.tree, agent):
        store.rename(hook.tree, hook.tool_use_id, agent)
        return
    store.end(hook.tree, hook.tool_use_id)
    if isinstance(agent, str):  # counted before under its own id, which is now open again
        store.add(msgspec.structs.replace(sent, id=agent))


def _returned(guard: Guard, hook: _HookInput) -> dict[str, Any] | None:
    """Decide what the caller may read of a sub-agent's answer."""
    store = guard.store
    response = hook.tool_response if isinstance(hook.tool_response, dict) else {}
    if hook.tool_name == _SKILL_TOOL:
        if response.get("status") != "forked":  # the agent itself reads this text
            return None
        text = response.get("result")
        store.end(hook.tree, str(response.get("agentId")))
        text = text if isinstance(text, str) else None
        return _read(guard, hook, _of_skill(guard, hook, str(response.get("agentId")), text))
    if not store.knows(hook.tree, hook.tool_use_id):
        store.add(_event(guard, hook))  # it ran, so a person has approved it
    if response.get("status") == "async_launched":  # it ends when the sub-agent does
        store.rename(hook.tree, hook.tool_use_id, str(response.get("agentId")))
        return None
    store.end(hook.tree, hook.tool_use_id)
    content = response.get("content", hook.tool_response or None)
    blocks = content if isinstance(content, list) else []
    texts = [b["text"] for b in blocks if isinstance(b, dict) and isinstance(b.get("text"), str)]
    text = content if isinstance(content, str) else "\n".join(texts) if texts else None
    if text is None and not content:  # there is nothing to read
        return None
    sent = _event(guard, hook)
    unknown = sent.unknown + (() if text is not None else ("output",))
    answer = msgspec.structs.replace(sent, on="output", output=text, unknown=unknown)
    return _read(guard, hook, answer)


def _read(guard: Guard, hook: _HookInput, answer: Event) -> dict[str, Any] | None:
    """Decide an answer, and return its replacement if the caller should read another text."""
    decision = guard.decide(answer)
    read = decision.output if decision.allowed else decision.reason
    if read == answer.output:
        return _reply(hook, decision)
    response = hook.tool_response if isinstance(hook.tool_response, dict) else {}
    held = "result" if hook.tool_name == _SKILL_TOOL else "content"
    changed = {**response, held: read if held == "result" else [{"type": "text", "text": read}]}
    return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": changed}}


def _of_skill(guard: Guard, hook: _HookInput, agent: str, text: str | None) -> Event:
    """Return the answer of a sub-agent that a skill started; its prompt is not reported."""
    meta = hook.files.agent(agent)
    depth = None if meta is None else meta.spawn_depth
    known = {
        "to": None if meta is None else meta.agent_type,
        "depth": depth,
        "prompt": hook.files.asked(agent, hook.prompt_id),
        "request": _request(guard, hook),
        "output": text,
    }
    return Event(
        on="output",
        tree=hook.tree,
        id=agent,
        conversation=hook.session_id,
        sender=hook.agent_type or _MAIN,
        at=time.time(),
        **{"depth": 1, **{name: each for name, each in known.items() if each is not None}},  # type: ignore[arg-type]
        unknown=(*(name for name, each in known.items() if each is None), "calls"),
    )


def _withholds(policy: Policy) -> bool:
    return any(
        rule.output is not None and rule.action in ("block", "ask", "redact")
        for rule in policy.rules
    )


def _event(guard: Guard, hook: _HookInput) -> Event:
    """Return the event, with its conversation."""
    return msgspec.structs.replace(_event_without_id(guard, hook), conversation=hook.session_id)


def _event_without_id(guard: Guard, hook: _HookInput) -> Event:
    """Return the event, and name what is unknown about it.

    What the hook's input lacks is read from the files of the session: the depth of a sub-agent, its
    prompt and its caller, and the usage of the request. Without them, a dispatch of a sub-agent has
    at least depth 2. Older versions do not report who makes a call.
    """
    who = hook.agent_type or _MAIN
    below = hook.agent_id is not None
    old = hook.prompt_id is None and not below
    meta = hook.files.agent(hook.agent_id)
    depth = meta.spawn_depth if meta is not None else None
    if hook.hook_event_name == "SubagentStop":
        fields: dict[str, Any] = {
            "to": hook.agent_type,
            "output": hook.last_assistant_message,
            "depth": depth,
            "sender": None if meta is None else _sender(hook, meta),
            "prompt": None if meta is None else hook.files.asked(hook.agent_id, hook.prompt_id),
            "request": None
            if meta is None
            else hook.files.asked(meta.parent_agent_id, hook.prompt_id),
        }
        return Event(
            on="output",
            tree=hook.tree,
            id=hook.agent_id or "",
            at=time.time(),
            **{"depth": 1, **{name: each for name, each in fields.items() if each is not None}},
            unknown=(*(name for name, each in fields.items() if each is None), "calls"),
        )
    used, more = _used(guard, hook)
    if hook.hook_event_name == "SubagentStart":
        return Event(
            on="dispatch",
            tree=hook.tree,
            id=hook.agent_id or "",
            to=who,
            depth=depth or 1,
            at=time.time(),
            **used,
            unknown=("sender", "parent", "prompt", "request", "calls")
            + (("depth",) if depth is None else ())
            + more,
        )
    handed = hook.new_dispatch
    if handed is not None:
        prompt, request = handed.prompt, _request(guard, hook)
        return Event(
            on="dispatch",
            tree=hook.tree,
            id=hook.tool_use_id,
            sender=who,
            to=handed.to,
            parent=hook.agent_id or _MAIN,
            depth=handed.depth or ((depth or 1) + 1 if below else 1),
            request=request,
            prompt=prompt,
            at=time.time(),
            **used,
            unknown=("calls",)
            + (() if request is not None else ("request",))
            + (("sender", "parent", "depth") if old else ())
            + (("depth",) if below and depth is None and handed.depth is None else ())
            + (() if prompt is not None else ("prompt",))
            + more,
        )
    sender = None if meta is None else _sender(hook, meta)
    return Event(
        on="tool",
        tree=hook.tree,
        id=hook.tool_use_id,
        sender=sender,
        to=who,
        parent=hook.agent_id or _MAIN,
        depth=(depth or 1) if below else 0,
        tool=hook.tool_name,
        arguments=hook.tool_input,
        at=time.time(),
        **used,
        unknown=(("sender",) if below and sender is None else ())
        + (("depth",) if below and depth is None else ())
        + (("to", "sender", "depth") if old else ())
        + more,
    )


def _sender(hook: _HookInput, meta: AgentMeta) -> str | None:
    """Return who started a sub-agent."""
    if meta.parent_agent_id is None:
        # The main agent has no id. Versions that do not report the depth may not report the parent
        # either.
        return _MAIN if meta.spawn_depth == 1 else None
    above = hook.files.agent(meta.parent_agent_id)
    return None if above is None else above.agent_type


_FOR_REQUEST = ("finding", "rubric")


def _request(guard: Guard, hook: _HookInput) -> str | None:
    """Return the prompt of the current agent, if a rule needs it."""
    needed = any(
        rule.required_context is not None
        or (rule.output is not None and any(c.kind in _FOR_REQUEST for c in rule.output.checks))
        for rule in guard.policy.rules
    )
    return hook.files.asked(hook.agent_id, hook.prompt_id) if needed else None


_PATIENCE = 2.0
"""Seconds to wait until Claude Code has written the message that makes a call; mostly 0.1 s."""


def _used(guard: Guard, hook: _HookInput) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the least usage of the request, if a rule needs it, and which counts may be higher."""
    rules = guard.policy.rules
    if all(rule.max_tokens is None and rule.max_cost_usd is None for rule in rules):
        return {}, ()
    until = time.monotonic() + (_PATIENCE if hook.transcript_path and hook.prompt_id else 0)
    while True:
        used = hook.files.used(hook.prompt_id, hook.tool_use_id, guard.prices)
        if used.is_current or time.monotonic() >= until:
            return {"tokens": used.tokens, "cost_usd": used.cost_usd}, used.unknown
        time.sleep(0.02)


def _reply(hook: _HookInput, decision: Decision) -> dict[str, Any] | None:
    reason = decision.reason or ""
    if hook.hook_event_name == "SubagentStop":
        if not decision.allowed:
            return {"decision": "block", "reason": reason}
    elif hook.hook_event_name == "PreToolUse" and not decision.allowed:
        verdict = "ask" if decision.action == "ask" else "deny"
        return {
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": verdict,
                "permissionDecisionReason": reason,
            }
        }
    if decision.action == "warn" or decision.failed:
        return {"systemMessage": f"guard: {reason or '; '.join(decision.failed.values())}"}
    return None

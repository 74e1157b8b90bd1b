"""Decides one event by a policy: a pure function, for every hook and the dry run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from baton.model.errors import counted
from baton.model.filter import Value
from baton.model.redact import ON
from baton.model.trace import (
    Content,
    ToolCall,
)
from baton.model.visible import exception_line, visible_line

from .policy import MOMENTS, OF_WORK, Action, Check, Moment, Policy, Rule

_HARDEST: tuple[Action, ...] = ("block", "ask", "redact", "warn", "observe")
_LONG_ID = re.compile(r"#?\d{4,}")
"""A plain number of four digits or more is an id (`order 4711`); `3 chairs` and `450 USD` are
amounts."""


class Handed(msgspec.Struct, frozen=True, kw_only=True):
    """A dispatch of the answering agent: its receiver and its result, if any.

    ``after`` is the number of tool calls it had made before the result.
    """

    to: str
    prompt: str | None = None
    result: str | None = None
    after: int = 0


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is about to happen: a dispatch, a tool call, or an answer.

    ``sender`` and ``to`` are the ends of the dispatch; for a tool call, of the dispatch that
    started the agent ``to``. ``sender`` is ``None`` for the program or the user. ``id`` is the
    dispatch's, ``parent`` the run that makes it. ``request`` is what the sender itself was asked.
    ``calls`` are those of the answering agent; ``other_calls`` is unknown if it may have made more.
    ``handed`` are its dispatches, ``agents`` the known names of agents. ``at`` is in seconds since
    the epoch. ``shared``: the receiver reads the conversation so far, and not only a prompt.
    ``tokens`` and ``cost_usd`` are the tree's usage so far, if reported as a total. ``most_tokens``
    and ``most_cost_usd`` are the total usage of a recorded tree. ``live``: the event has not
    happened yet, and the program waits for the decision. ``conversation`` is the id of the
    conversation, if the framework has one. ``unknown`` names unknown fields.
    """

    on: Moment
    tree: str
    id: str = ""
    sender: str | None = None
    to: str = ""
    parent: str = ""
    depth: int = 0
    request: str | None = None
    prompt: str | None = None
    tool: str | None = None
    arguments: Any = None
    output: str | None = None
    calls: tuple[ToolCall, ...] = ()
    handed: tuple[Handed, ...] = ()
    agents: tuple[str, ...] = ()
    at: float | None = None
    shared: bool = False
    tokens: int | None = None
    cost_usd: float | None = None
    most_tokens: int | None = None
    most_cost_usd: float | None = None
    live: bool = False
    conversation: str = ""
    unknown: tuple[str, ...] = ()

    def place(self, name: str) -> Value:
        """Return a field by its name in ``for`` of a rule."""
        value: Value = getattr(self, "sender" if name == "from" else name)
        return value


class Seen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The counts of an event's tree before it.

    ``of_parent`` counts dispatches of its parent, ``running`` those without an answer yet, ``same``
    those with the same ends and task. Tokens, cost and seconds are ``None`` if not reported.
    """

    dispatches: int = 0
    of_parent: int = 0
    running: int = 0
    same: int = 0
    tokens: int | None = None
    cost_usd: float | None = None
    seconds: float | None = None


class Broken(msgspec.Struct, frozen=True):
    """A broken rule: the action, and the message to the caller."""

    rule: str
    action: Action
    reason: str


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The decision about an event.

    ``action``, ``rule`` and ``reason`` are those of the strictest broken rule; ``broken`` has all
    broken ones. With the action `ask`, it is not ``allowed`` until a person agrees. ``output`` is
    what the caller may read of an answer. ``untold`` are rules that cannot be decided because their
    data was not recorded; ``failed`` are those that raised an error, with the error. ``version`` is
    the policy's.
    """

    allowed: bool
    action: Action | None = None
    rule: str | None = None
    reason: str | None = None
    output: str | None = None
    broken: tuple[Broken, ...] = ()
    untold: tuple[str, ...] = ()
    failed: Mapping[str, str] = {}
    version: str = ""


class _UntoldError(Exception):
    """The data that a rule needs is unknown; the error names it."""


class _UnsureError(Exception):
    """All data that a rule needs is known, but does not show whether the rule is broken."""


class _UndecidedError(Exception):
    """A rule can't tell whether it is broken."""


def decide(policy: Policy, seen: Seen, event: Event) -> Decision:
    """Decide an event by a policy, with the counts of its tree.

    A rule with an error is ``failed``, and blocks if the policy is ``closed``, unless its action is
    only to warn or observe. If a program waits (``live``), a rule whose data is not reported fails
    as well; for a recording it does not.
    """
    broken: list[Broken] = []
    untold: list[str] = []
    failed: dict[str, str] = {}
    output = event.output
    for rule in policy.rules:
        kind = rule.kind
        name = rule.name or kind  # a rule made in a program may have none
        if event.on not in MOMENTS[kind]:
            continue
        try:
            if not _is_for(rule, event):
                continue
            if kind == "output" and rule.action == "redact":
                reason, output = _redacted(rule, event, output)
            else:
                now = event if output is event.output else _with_output(event, output)
                reason = _CHECKS[kind](rule, seen, now)
        except _UnsureError:
            untold.append(name)
            continue
        except _UntoldError as error:
            untold.append(name)
            if not event.live:
                continue
            why = f"can't tell: nothing reports the {error} here"
        except _UndecidedError as error:
            why = str(error)
        except Exception as error:  # noqa: BLE001 - whatever fails, the policy says what then
            why = exception_line(error)
        else:
            if reason is not None:
                broken.append(Broken(name, rule.action, rule.reason or reason))
            continue
        failed[name] = why
        if policy.on_error == "closed" and rule.action not in ("warn", "observe"):
            broken.append(Broken(name, "block", failed_reason(name, why)))
    hardest = min(broken, key=lambda each: _HARDEST.index(each.action), default=None)
    allowed = hardest is None or hardest.action not in ("block", "ask")
    return Decision(
        allowed=allowed,
        action=hardest.action if hardest else None,
        rule=hardest.rule if hardest else None,
        reason=hardest.reason if hardest else None,
        # With `ask`, a person may still agree.
        output=output if allowed or (hardest and hardest.action == "ask") else None,
        broken=tuple(broken),
        untold=tuple(untold),
        failed=failed,
        version=policy.version,
    )


def failed_decision(policy: Policy, why: str, output: str | None = None) -> Decision:
    """Return the decision when the guard itself fails, according to the policy."""
    failed = {"guard": why[:500]}
    if policy.on_error == "open":
        return Decision(allowed=True, output=output, failed=failed, version=policy.version)
    reason = failed_reason("guard")
    broken = (Broken("guard", "block", reason),)
    return Decision(
        allowed=False,
        action="block",
        rule="guard",
        reason=reason,
        broken=broken,
        failed=failed,
        version=policy.version,
    )


def failed_reason(rule: str, why: str = "") -> str:
    """Say that a rule could not be decided, so nothing passes."""
    suffix = f" ({why})" if why.startswith("can't tell") else ""
    return (
        f"the guard could not decide `{rule}`{suffix}, and in that case the policy lets nothing "
        "pass: go on without this, and say so in your answer"
    )


def _is_for(rule: Rule, event: Event) -> bool:
    unknown = {"sender": "from"}
    hidden = {unknown.get(each, each) for each in event.unknown}
    if missing := hidden & rule.places.fields:
        raise _UntoldError(_NAMED.get(min(missing), min(missing)))
    return rule.places.meets(event.place)


_NAMED = {
    "from": "sender",
    "to": "receiver",
    "parent": "run that hands work on",
    "cost_usd": "cost",
    "running": "order of dispatches",
}
"""Names of fields in messages."""


def _known(event: Event, *fields: str) -> None:
    for each in fields:
        if each in event.unknown:
            raise _UntoldError(_NAMED.get(each, each))


def _with_output(event: Event, output: str | None) -> Event:
    return msgspec.structs.replace(event, output=output)


def _called(name: str | None) -> str:
    """Quote a name in a message; a model may have written anything."""
    return f"`{visible_line(name or 'the program')[:80]}`"


def _depth(rule: Rule, _: Seen, event: Event) -> str | None:
    limit = rule.max_depth or 0
    if event.depth <= limit:
        _known(event, "depth")  # if unknown, it is at least this
        return None
    return (
        f"{_called(event.to)} would work at depth {event.depth}, and at most {limit} is allowed: "
        "do this part yourself, with what you have"
    )


def _dispatches(rule: Rule, seen: Seen, event: Event) -> str | None:
    _known(event, "dispatches")
    limit = rule.max_dispatches or 0
    if seen.dispatches < limit:
        return None
    return (
        f"this request has made {counted(seen.dispatches, 'dispatch')}, and at most {limit} are "
        "allowed: do not hand on more work, finish with the answers that you have"
    )


def _per_parent(rule: Rule, seen: Seen, event: Event) -> str | None:
    _known(event, "parent")
    limit = rule.max_per_parent or 0
    if seen.of_parent < limit:
        return None
    return (
        f"{_called(event.sender)} has made {counted(seen.of_parent, 'dispatch')}, and at most "
        f"{limit} are allowed: do not hand on more, finish with the answers that you have"
    )


def _fan_out(rule: Rule, seen: Seen, event: Event) -> str | None:
    _known(event, "parent", "running")
    limit = rule.max_fan_out or 0
    if seen.running < limit:
        return None
    return (
        f"{_called(event.sender)} waits for {counted(seen.running, 'answer')}, and at most {limit} "
        "dispatches are allowed at once: wait for an answer, then try again"
    )


def _same_task(rule: Rule, seen: Seen, event: Event) -> str | None:
    if event.shared and event.prompt is None:  # a transfer has no task
        return None
    _known(event, "prompt", "sender", "to")
    limit = rule.max_same_task or 0
    if event.prompt is None or seen.same < limit:
        return None
    return (
        f"{_called(event.to)} was given this task {counted(seen.same, 'time')} already, and at "
        f"most {limit} are allowed: use its answer, or ask for something else"
    )


def _spent(name: str, words: str) -> Callable[[Rule, Seen, Event], str | None]:
    def check(rule: Rule, seen: Seen, event: Event) -> str | None:
        limit, spent = getattr(rule, f"max_{name}"), getattr(seen, name)
        spent = getattr(event, name, None) if spent is None else spent
        if spent is None or spent < limit:
            _known(event, name)  # if unknown, it is at least this
        most = getattr(event, f"most_{name}", None)
        if spent is None and most is not None and most <= limit:
            return None
        if spent is None:
            # Before an agent has answered, the usage may still be zero. Tokens are reported without
            # a cost if the model's price is unknown.
            answered = seen.of_parent > seen.running
            if event.live and seen.tokens is None and not answered:
                return None
            raise _UntoldError(_NAMED.get(name, name))
        if spent < limit:
            return None
        return (
            f"this request has taken {spent:,.6g} {words}, and {limit:,.6g} is the limit: start "
            "nothing new, answer with what you have"
        )

    return check


def _edges(rule: Rule, _: Seen, event: Event) -> str | None:
    _known(event, "sender", "to")
    if event.sender is None:  # a program that starts its first agents
        return None
    allowed = [
        receiver
        for sender, receivers in (rule.allowed_edges or {}).items()
        if _is_like(event.sender, sender)
        for receiver in receivers
    ]
    if any(_is_like(event.to, each) for each in allowed):
        return None
    sender, receiver = _called(event.sender), _called(event.to)
    if not allowed:
        return f"{sender} may not hand work to {receiver}, nor to any other agent: do it yourself"
    others = ", ".join(map(_called, allowed[:10]))
    return (
        f"{sender} may not hand work to {receiver}, only to {others}: choose one of these, or do "
        "it yourself"
    )


def _is_like(name: str, glob: str) -> bool:
    # A name may contain brackets, which have a meaning in globs.
    return name == glob or fnmatchcase(name, glob)


def _tools(rule: Rule, _: Seen, event: Event) -> str | None:
    from baton.findings.tool_permissions import meant_by

    _known(event, "tool")
    call = ToolCall(id="call", name=event.tool or "", arguments=event.arguments)
    allowed = rule.allowed_tools or []
    meant = meant_by(call, allowed, every_part=True)
    if meant:
        return None
    if meant is None:
        _known(event, "arguments")
        raise _UndecidedError(f"can't tell whether {allowed} include this call of {event.tool!r}")
    listed = ", ".join(map(_called, allowed[:10])) or "none"
    return (
        f"{_called(event.to)} may not use {_called(event.tool)} like this, it may use {listed}: go "
        "on with these, or say in your answer what you need"
    )


def _context(rule: Rule, _: Seen, event: Event) -> str | None:
    if event.shared:  # the receiver reads the request itself
        return None
    _known(event, "request", "prompt")
    request, prompt = event.request or "", event.prompt or ""
    texts = [text for pattern in rule.patterns for text in pattern.find_all(request)]
    missing = [text for text in texts if text not in prompt]
    if rule.required_context == "ids":
        from baton.findings.facts import read

        prompt_text = read(prompt)
        missing += [
            fact.text
            for fact in read(request).facts
            if _is_id(fact.kind, fact.text) and not prompt_text.holds(fact)
        ]
    if not missing:
        return None
    listed = ", ".join(map(_called, dict.fromkeys(missing[:10])))
    return f"the prompt lacks {listed} of the request: write it into the prompt, and try again"


def _is_id(kind: str, text: str) -> bool:
    """Tell whether it is an id: letters with digits (`R-77`), or at least four digits."""
    if kind == "identifier":
        return any(letter.isdigit() for letter in text)
    return kind == "number" and _LONG_ID.fullmatch(text) is not None


_LONGEST = 2_000_000
"""The most characters of an answer that rules check, some 500,000 tokens: a caller waits."""


def _readable(event: Event) -> None:
    _known(event, "output")
    if len(event.output or "") > _LONGEST:
        raise _UndecidedError(f"can't tell, as the answer has more than {_LONGEST:,} characters")


def _output(rule: Rule, _: Seen, event: Event) -> str | None:
    _readable(event)
    hits = _hits(rule, event)
    if not hits:
        return None
    # The message of a schema or a finding may quote the answer, and so a secret.
    text = ON.text("; ".join(hits[:3]))
    message = f"the answer of {_called(event.to)} {text}"
    if rule.action not in ("block", "ask"):
        return message
    return f"{message}: it is withheld, ask again for another answer, or go on without it"


def _hits(rule: Rule, event: Event) -> list[str]:
    """Return the hits of ``any``, or of ``all`` if all hit."""
    checks = rule.output
    if checks is None:
        return []
    some = [hit for each in checks.any or () if (hit := _hit(each, event)) is not None]
    every = [_hit(each, event) for each in checks.all or ()]
    whole = [hit for hit in every if hit is not None]
    return some + (whole if len(whole) == len(every) else [])


def _hit(check: Check, event: Event) -> str | None:
    """Return what a check finds in an answer, without quoting secrets."""
    text = event.output or ""
    if check.secrets is not None:
        return "holds secrets or personal data" if check.redaction.text(text) != text else None
    if check.pattern is not None:
        is_found = check.compiled.search(text) is not None
        return f"matches `{check.pattern[:80]}`" if is_found else None
    if check.lacks is not None:
        is_found = check.compiled.search(text) is not None
        return None if is_found else f"does not match `{check.lacks[:80]}`"
    if check.json_schema is not None:
        from baton.evaluators.matching.answers import json_in

        held = json_in(Content(text=text))
        wrong = "it contains no JSON" if held is msgspec.UNSET else check.fits(held)
        return None if wrong is None else f"does not fit the schema ({wrong[:200]})"
    return _finding_of(check, event)


def _redacted(rule: Rule, event: Event, output: str | None) -> tuple[str | None, str | None]:
    """Return why an answer is changed, and the answer with tags; unchanged when nothing hits."""
    _readable(event)
    now = _with_output(event, output)
    if output is None or not _hits(rule, now) or rule.output is None:
        return None, output
    changed = output
    for check in rule.output.checks:
        changed = check.redaction.text(changed)
    return f"parts of the answer of {_called(event.to)} were replaced by tags", changed


def _finding_of(check: Check, event: Event) -> str | None:
    """Run a finding on the whole dispatch of an answer."""
    from .slow_answer_checks import ask_function, ask_rubric, find

    if check.function is not None:
        return ask_function(check.function, event)
    if event.shared:  # it answers the whole conversation, which is not part of the dispatch
        raise _UnsureError
    _known(event, "prompt", "request")
    if check.rubric is not None:
        answer = ask_rubric(check, event)
    else:
        if check.finding in OF_WORK and not {"calls", "handed"}.isdisjoint(event.unknown):
            raise _UnsureError
        answer = find(check.finding or "dispatch_completed", event)
    if answer is False:
        raise _UnsureError
    return answer if isinstance(answer, str) else None


_CHECKS: dict[str, Callable[[Rule, Seen, Event], str | None]] = {
    "max_depth": _depth,
    "max_dispatches": _dispatches,
    "max_per_parent": _per_parent,
    "max_fan_out": _fan_out,
    "max_tokens": _spent("tokens", "tokens"),
    "max_cost_usd": _spent("cost_usd", "USD"),
    "max_seconds": _spent("seconds", "seconds"),
    "max_same_task": _same_task,
    "allowed_edges": _edges,
    "allowed_tools": _tools,
    "required_context": _context,
    "output": _output,
}
"""The function for each check."""

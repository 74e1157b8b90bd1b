"""Guards in a program: what asks a policy before a dispatch, a tool and an answer.

    from baton.guard import Guard

    guard = Guard("policy.yaml", store=".baton/guard.db")

    with guard.run("desk", message):
        guard.tool("search", {"query": message})
        with guard.dispatch("lab", prompt):
            answer = guard.output(lab(prompt))

What is not allowed raises ``baton.model.RefusedError``, whose text is the reason to hand to the
model. Functions that ``baton.agent`` and ``baton.tool`` mark ask by themselves inside of ``run``.
"""

from __future__ import annotations

import sqlite3
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec

from baton.model import InputError, RefusedError
from baton.model.watching import DECISIONS, watched_by

from .decide import Decision, Event, failed_decision
from .policy import Policy, load_policy, with_usual_depth
from .state import Spent, Store

Ask = Callable[[Decision], bool]


class _At(msgspec.Struct, frozen=True):
    """Where the program is: in which tree, on which dispatch, and who is at work."""

    tree: str
    agent: str | None
    id: str
    depth: int = 0
    sender: str | None = None
    request: str | None = None


class Guard:
    """Asks a policy while a program runs.

    Args:
        policy: the policy, or its file.
        store: the state of trees, or its file, which several processes may share; in memory when
            left out.
        tracers: the provider of OpenTelemetry that makes the spans; the global one when left out.
        ask: is asked where a rule says `ask`, and tells whether somebody agrees; without it what
            asks is refused.

    Raises:
        InputError: a policy or a file with faults.
    """

    def __init__(
        self,
        policy: Policy | Path | str,
        *,
        store: Store | Path | str | None = None,
        ask: Ask | None = None,
        tracers: Any = None,
    ) -> None:
        held = policy if isinstance(policy, Policy) else load_policy(policy)
        self.policy = with_usual_depth(held)
        self.store = store if isinstance(store, Store) else Store(store)
        self._ask = ask
        self._tracers = tracers
        self._at: ContextVar[_At | None] = ContextVar("baton_guard", default=None)

    @contextmanager
    def run(
        self, agent: str | None = None, request: Any = None, *, tree: str | None = None
    ) -> Iterator[str]:
        """Guard all that happens in this block: the tree of one request. Gives the tree's id.

        Args:
            agent: who works on it first; the first marked function when left out.
            request: what the user asks for.
            tree: the id of a tree to go on with, of another process or from before a restart.
        """
        id_ = tree or uuid4().hex
        token = self._at.set(_At(id_, agent, id_, request=_text(request)))
        try:
            with self._kept(id_):
                self.store.begin(id_)
            with watched_by(self):
                yield id_
        finally:
            self._at.reset(token)

    @contextmanager
    def dispatch(self, to: str, prompt: Any = None) -> Iterator[Decision]:
        """Ask whether the agent at work may hand work on; in the block the receiver is at work.

        Raises:
            RefusedError: it may not.
        """
        at = self._here()
        told = _text(prompt)
        if at.agent is None:  # the first agent: who asks it is the user
            token = self._at.set(_At(at.tree, to, at.id, request=at.request or told))
            try:
                yield Decision(allowed=True, version=self.policy.version)
            finally:
                self._at.reset(token)
            return
        event = Event(
            on="dispatch",
            tree=at.tree,
            id=uuid4().hex,
            sender=at.agent,
            to=to,
            parent=at.id,
            depth=at.depth + 1,
            request=at.request,
            prompt=told,
            at=time.time(),
        )
        decision = self._decide(event)
        token = self._at.set(_At(at.tree, to, event.id, event.depth, at.agent, told))
        try:
            yield decision
        finally:
            self._at.reset(token)
            with self._kept(at.tree):
                self.store.end(at.tree, event.id)

    def tool(self, name: str, arguments: Any = None) -> Decision:
        """Ask whether the agent at work may call a tool.

        Raises:
            RefusedError: it may not.
        """
        at = self._here()
        return self._decide(
            Event(
                on="tool",
                tree=at.tree,
                id=name,
                sender=at.sender,
                to=at.agent or "",
                parent=at.id,
                depth=at.depth,
                tool=name,
                arguments=arguments,
                at=time.time(),
            )
        )

    def output(self, answer: Any) -> Any:
        """Return what the caller may read of the answer of the agent at work.

        It is the answer itself, unless a rule replaces parts of it by tags.

        Raises:
            RefusedError: the caller may not read it.
        """
        at = self._here()
        if at.sender is None:  # of the first agent, which answers the user
            return answer
        text = _text(answer)
        decision = self._decide(
            Event(
                on="output",
                tree=at.tree,
                id=at.id,
                sender=at.sender,
                to=at.agent or "",
                parent=at.id,
                depth=at.depth,
                prompt=at.request,
                output=text,
                at=time.time(),
                # What the sender was asked itself is not kept.
                unknown=("request",),
            )
        )
        if decision.output == text:
            return answer
        if isinstance(answer, str):
            return decision.output
        return msgspec.json.decode(decision.output or "null")

    def use(self, *, tokens: int | None = None, cost_usd: float | None = None) -> None:
        """Tell what the tree has used; limits of tokens and cost count only what is told."""
        tree = self._here().tree
        with self._kept(tree):
            self.store.use(tree, tokens=tokens, cost_usd=cost_usd)

    @property
    def spent(self) -> Spent:
        """What the tree has had so far."""
        return self.store.spent(self._here().tree)

    def _here(self) -> _At:
        at = self._at.get()
        if at is None:
            raise InputError("nothing is guarded here: open a block with `guard.run(...)` first")
        return at

    @contextmanager
    def _kept(self, tree: str) -> Iterator[None]:
        """Do what the policy says when the state cannot be written."""
        try:
            yield
        except sqlite3.Error as error:
            decision = failed_decision(self.policy, f"the state of the tree: {error}")
            _mark(Event(on="dispatch", tree=tree), decision, self._tracers)
            if not decision.allowed:
                raise RefusedError(decision.reason or "refused", decision) from error

    def _decide(self, event: Event) -> Decision:
        decision = self.store.decide(self.policy, event)
        agreed = decision.action == "ask" and self._ask is not None and self._ask(decision)
        if agreed:
            decision = msgspec.structs.replace(decision, allowed=True, output=event.output)
            if event.on == "dispatch":
                with self._kept(event.tree):
                    self.store.add(event)
        if decision.broken or decision.failed:
            _mark(event, decision, self._tracers)
        if not decision.allowed:
            raise RefusedError(decision.reason or "refused", decision)
        return decision


def _mark(event: Event, decision: Decision, tracers: Any) -> None:
    """Put a decision that is not a plain pass into the record, and into a span where those are."""
    said = {
        "on": event.on,
        "from": event.sender,
        "to": event.to,
        "tool": event.tool,
        "allowed": decision.allowed,
        "action": decision.action,
        "rule": decision.rule,
        "reason": decision.reason,
        "failed": "; ".join(decision.failed.values()) or None,
        "version": decision.version,
    }
    told = {name: value for name, value in said.items() if value is not None}
    notes = DECISIONS.get()
    if notes is not None:
        notes.append(told)
    if "opentelemetry.trace" in sys.modules:
        from opentelemetry.trace import get_tracer

        attributes = {f"baton.guard.{name}": value for name, value in told.items()}
        tracer = get_tracer("baton.guard", tracer_provider=tracers)
        tracer.start_span("baton.guard", attributes=attributes).end()


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    from baton.providers.functions import as_json  # 100 ms, which texts do not need

    return as_json(value).decode()

"""Guards in a program: ask a policy before a dispatch, a tool call and an answer.

    from baton.guard import Guard

    guard = Guard("policy.yaml", store=".baton/guard.db")

    with guard.run("desk", message):
        guard.tool("search", {"query": message})
        with guard.dispatch("lab", prompt):
            answer = guard.output(lab(prompt))

What is not allowed raises ``baton.model.RefusedError``; its text is the reason to give to the
model. Functions that are marked with ``baton.agent`` and ``baton.tool`` ask automatically inside
``run``.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from baton.model import Content, InputError, RefusedError, ToolCall
from baton.model.current_guard import AROUND, DECISIONS, watched_by

from .decide_event import Decision, Event, Handed, failed_decision
from .policy import OF_WORK, Policy, load_policy, named_agents, validated, with_usual_depth
from .state import FAILURES, Spent, State, counts, open_state

if TYPE_CHECKING:
    from baton.model.prices import Prices

Ask = Callable[[Decision], bool]
T = TypeVar("T")


class Place(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The program's place: its tree, the running agent, and its dispatch.

    ``id`` is the dispatch's; for the first agent, the tree's. ``agent`` is ``None`` until the first
    agent starts. ``request`` is the agent's prompt, ``asked`` its sender's own prompt. It is plain
    data that a framework may store with its own state.
    """

    tree: str
    agent: str | None
    id: str
    depth: int = 0
    sender: str | None = None
    request: str | None = None
    asked: str | None = None
    by: str = ""
    """The parent of this agent's dispatch."""
    untold: bool = False
    """Whether the agent answers the whole conversation, and not a prompt of its sender."""
    runs: list[str] = []
    """The agents that the program itself has started from here."""


class _Work:
    """What an agent did since it started; ``is_whole`` if results are included."""

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self.handed: dict[str, Handed] = {}
        self.is_whole = True

    def got(self, dispatch: str, result: str | None) -> None:
        """Record the result of a dispatch."""
        handed = self.handed.get(dispatch)
        if handed is not None:
            self.handed[dispatch] = msgspec.structs.replace(
                handed, result=result, after=len(self.calls)
            )


_MOST_AGENTS = 1000
"""The most names of agents that a guard remembers: a program may generate names without end."""
_MOST_WORK = 10_000
"""The most agents whose work is remembered: no caller reads the answer after a transfer."""


class Guard:
    """Asks a policy while a program runs.

    Args:
        policy: the policy, or its file.
        store: the state of trees; a file, which several processes may share; or the address of a
            server (`http://...`), which machines may share. In memory by default.
        prices: prices of models by name, for the usage that frameworks report; by default from
            genai-prices, if installed.
        tracers: OpenTelemetry's tracer provider for the spans; by default the global one.
        ask: called if a rule says `ask`; returns whether a person agrees. Without it, the framework
            asks in its own way if it has one; otherwise the action is refused.

    Raises:
        InputError: a policy or a file with errors.
    """

    def __init__(
        self,
        policy: Policy | Path | str,
        *,
        store: State | Path | str | None = None,
        ask: Ask | None = None,
        prices: Prices | None = None,
        tracers: Any = None,
    ) -> None:
        held = validated(policy) if isinstance(policy, Policy) else load_policy(policy)
        self.policy = with_usual_depth(held)
        # Only rules need the server's counts: without such rules no request is made.
        opened = open_state(store)
        self.store = open_state(None) if opened.is_remote and not counts(self.policy) else opened
        self.prices: Prices = prices or {}
        self.granted: dict[tuple[str, str], Place] = {}
        """Pending transfers, by tree and agent, until that agent starts."""
        self.work: dict[str, _Work] = {}
        """What agents did, by their dispatches, if a rule needs it."""
        self._agents = named_agents(self.policy)
        checks = [c for rule in self.policy.rules if rule.output for c in rule.output.checks]
        self._wants_work = any(check.finding in OF_WORK for check in checks)
        self._asks_models = any(check.rubric is not None for check in checks)
        self._ask = ask
        self._tracers = tracers
        self._first = threading.Lock()
        self._at: ContextVar[Place | None] = ContextVar("baton_guard", default=None)

    @contextmanager
    def run(
        self, agent: str | None = None, request: Any = None, *, tree: str | None = None
    ) -> Iterator[str]:
        """Guard everything in this block: the tree of one request. Yields the tree's id.

        Args:
            agent: the first agent; by default the first one that starts.
            request: what the user asks for.
            tree: the id of a tree to continue, from another process or from before a restart.
        """
        place = self.begin(agent, request, tree=tree)
        with self.at(place), watched_by(self):
            yield place.tree

    @contextmanager
    def dispatch(self, to: str, prompt: Any = None) -> Iterator[Place]:
        """Check whether the agent may make a dispatch; in the block the receiver is running.

        Raises:
            RefusedError: it may not.
        """
        place = self.start(to, prompt, by=self._here())
        try:
            with self.at(place):
                yield place
        finally:
            self.stop(place)
            self.forget(place)

    def tool(self, name: str, arguments: Any = None) -> Decision:
        """Check whether the running agent may call a tool.

        Raises:
            RefusedError: it may not.
        """
        place = self._here()
        if place.id in self.work:  # the result is not reported
            self.work[place.id].is_whole = False
        return self.call(place, name, arguments)

    def output(self, answer: Any) -> Any:
        """Return what the caller may read of the running agent's answer.

        This is the answer itself, unless a rule replaces parts of it with tags.

        Raises:
            RefusedError: the caller may not read it.
        """
        return self.answer(self._here(), answer)

    async def output_later(self, answer: Any) -> Any:
        """Like :meth:`output`, without blocking other tasks, as a model may be called.

        Raises:
            RefusedError: the caller may not read it.
        """
        return await self.later(self.output, answer)

    async def later(self, work: Callable[..., T], *given: Any) -> T:
        """Decide an answer: in a thread if a model is called, else directly."""
        if not self._asks_models:
            return work(*given)
        import asyncio  # an import of 15 ms; an async program has it already

        return await asyncio.to_thread(work, *given)

    def begin(
        self, agent: str | None = None, request: Any = None, *, tree: str | None = None
    ) -> Place:
        """Start a tree; like :meth:`run`, for hooks that cannot keep a block open."""
        id_ = tree or _new_id()
        with self._kept(id_):
            self.store.begin(id_)
        runs = [] if agent is None else [agent]
        return Place(tree=id_, agent=agent, id=id_, request=_text(request), runs=runs)

    @contextmanager
    def at(self, place: Place) -> Iterator[None]:
        """Set the program's place, for a block."""
        token = self._at.set(place)
        try:
            yield
        finally:
            self._at.reset(token)

    @property
    def place(self) -> Place | None:
        """The program's place; ``None`` outside any guarded code."""
        return self._at.get()

    def put(self, place: Place | None) -> None:
        """Set the program's place for the rest of this context, for hooks without a block."""
        self._at.set(place)

    def start(
        self,
        to: str,
        prompt: Any = None,
        *,
        by: Place | None,
        transfer: bool = False,
        shared: bool | None = None,
        ask: Ask | None = None,
    ) -> Place:
        """Check whether an agent may start, and return the program's place while it works.

        Args:
            to: the agent.
            prompt: its task.
            by: the sender; ``None`` starts a tree.
            transfer: control moves to the agent.
            shared: the agent reads the conversation so far; by default for transfers, and if the
                program itself starts it without a prompt.
            ask: asks a person if the guard has no `ask` function.

        Raises:
            RefusedError: it may not.
        """
        task = _text(prompt)
        if by is None:
            return self.begin(to, task)
        if not transfer and (granted := self.granted.pop((by.tree, to), None)) is not None:
            return granted
        if by.agent is None and self._is_first(by, to):  # the sender is the user
            return Place(tree=by.tree, agent=to, id=by.id, request=by.request or task, runs=[to])
        # Agents that the program itself starts after the first one have no sender.
        nobody = by.agent is None
        untold = transfer or (nobody and task is None)
        if shared is None:
            shared = untold
        event = Event(
            on="dispatch",
            tree=by.tree,
            id=_new_id(),
            sender=by.agent,
            to=to,
            parent=by.id,
            depth=by.depth + (not transfer and not nobody),
            request=by.request,
            prompt=None if transfer else task,
            at=time.time(),
            shared=shared and (transfer or nobody),
            unknown=("prompt",) if untold and not shared else (),
        )
        self._decide(event, ask)
        if self._wants_work:
            self._agents |= {to} if len(self._agents) < _MOST_AGENTS else set()
            while len(self.work) >= _MOST_WORK:
                self.work.pop(next(iter(self.work)), None)
            self.work[event.id] = _Work()
            if by.id in self.work:
                self.work[by.id].handed[event.id] = Handed(to=to, prompt=event.prompt)
        return Place(
            tree=by.tree,
            agent=to,
            id=event.id,
            by=by.id,
            depth=event.depth,
            sender=by.agent,
            # After a transfer, the agent reads the same conversation.
            request=by.request if transfer else task,
            asked=by.request,
            untold=transfer or nobody,
        )

    def _is_first(self, place: Place, agent: str) -> bool:
        """Tell whether no agent has started yet at a place; threads may start several at once."""
        with self._first:
            if place.runs:
                return False
            place.runs.append(agent)
            return True

    def stop(self, place: Place) -> None:
        """Record that the agent of a place has answered, or failed."""
        if place.id != place.tree:
            with self._kept(place.tree):
                self.store.end(place.tree, place.id)

    def forget(self, place: Place) -> None:
        """Forget what the agent of a place did, after its answer was read."""
        self.work.pop(place.id, None)

    def call(
        self, place: Place, name: str, arguments: Any = None, *, ask: Ask | None = None
    ) -> Decision:
        """Check whether the agent of a place may call a tool; see :meth:`tool`."""
        event = Event(
            on="tool",
            tree=place.tree,
            id=name,
            sender=place.sender,
            to=place.agent or "",
            parent=place.id,
            depth=place.depth,
            tool=name,
            arguments=arguments,
            at=time.time(),
        )
        return self._decide(event, ask)

    def answer(self, place: Place, answer: Any) -> Any:
        """Return what the caller may read of the answer of the agent of a place.

        See :meth:`output`.
        """
        if place.sender is None:  # the answer of the first agent goes to the user
            return answer
        text = _text(answer)
        work = self.work.get(place.id)
        # A model's provider may run tools that are not visible here.
        unknown = ("other_calls",) if work is not None and work.is_whole else ("calls",)
        decision = self._decide(
            Event(
                on="output",
                tree=place.tree,
                id=place.id,
                sender=place.sender,
                to=place.agent or "",
                parent=place.id,
                depth=place.depth,
                request=place.asked,
                prompt=place.request,
                output=text,
                at=time.time(),
                calls=tuple(work.calls if work is not None else ()),
                handed=tuple(work.handed.values() if work is not None else ()),
                agents=tuple(sorted(self._agents)) if work is not None else (),
                shared=place.untold,
                unknown=unknown,
            )
        )
        if place.by in self.work:
            self.work[place.by].got(place.id, decision.output)
        if decision.output == text:
            return answer
        if isinstance(answer, str):
            return decision.output
        return msgspec.json.decode(decision.output or "null")

    def note_call(self, place: Place, name: str, arguments: Any, result: Any) -> None:
        """Record the result of a call, for rules that compare an answer with it."""
        if place.id in self.work:
            calls = self.work[place.id].calls
            content = Content(text=_text(result))
            id_ = f"call{len(calls) + 1}"
            calls.append(ToolCall(id=id_, name=name, arguments=arguments, result=content))

    def used(
        self, place: Place, *, tokens: int | None = None, cost_usd: float | None = None
    ) -> None:
        """Report the usage of a place's tree; see :meth:`use`."""
        with self._kept(place.tree):
            self.store.use(place.tree, tokens=tokens, cost_usd=cost_usd)

    def use(self, *, tokens: int | None = None, cost_usd: float | None = None) -> None:
        """Report usage of the tree; limits of tokens and cost count only reported usage."""
        self.used(self._here(), tokens=tokens, cost_usd=cost_usd)

    @property
    def asks(self) -> bool:
        """Whether the program itself asks a person if a rule says so."""
        return self._ask is not None

    @property
    def spent(self) -> Spent:
        """The tree's counts so far."""
        return self.store.spent(self._here().tree)

    def _here(self) -> Place:
        at = self._at.get()
        if at is None:
            raise InputError("nothing is guarded here: open a block with `guard.run(...)` first")
        return at

    @contextmanager
    def _kept(self, tree: str) -> Iterator[None]:
        """Apply the policy's `on_error` if the state cannot be written."""
        try:
            yield
        except FAILURES as error:
            decision = failed_decision(self.policy, f"the state of the tree: {error}")
            _mark(Event(on="dispatch", tree=tree), decision, self._tracers)
            if not decision.allowed:
                raise RefusedError(decision.reason or "refused", decision) from error

    def decide(
        self, event: Event, ask: Ask | None = None, *, live: bool = True, replaces: bool = True
    ) -> Decision:
        """Decide an event, ask a person if a rule says so, and record the decision.

        ``ask`` is for a guard without its own. An event that is decided again later is not
        ``live``: rules whose data is not reported yet pass. If the caller reads the answer as it
        is, and nothing ``replaces`` parts of it, an answer that a rule would redact is blocked.
        """
        event = msgspec.structs.replace(event, live=live)
        decision = self.store.decide(self.policy, event)
        if decision.action == "redact" and not replaces:
            reason = "your answer has parts that may not be passed on: answer again without them"
            decision = msgspec.structs.replace(
                decision, allowed=False, action="block", reason=reason, output=None
            )
        ask = self._ask or ask
        if decision.action == "ask" and ask is not None and ask(decision):
            decision = msgspec.structs.replace(decision, allowed=True, output=event.output)
            if event.on == "dispatch":
                with self._kept(event.tree):
                    self.store.add(event)
        self.note(event, decision)
        return decision

    def note(self, event: Event, decision: Decision) -> None:
        """Record a decision, unless it simply passes."""
        if decision.broken or decision.failed:
            _mark(event, decision, self._tracers)

    def _decide(self, event: Event, ask: Ask | None = None) -> Decision:
        decision = self.decide(event, ask)
        if not decision.allowed:
            raise RefusedError(decision.reason or "refused", decision)
        return decision


def _mark(event: Event, decision: Decision, tracers: Any) -> None:
    """Record a decision unless it simply passes, also in a span if there are spans."""
    fields = {
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
    known = {name: value for name, value in fields.items() if value is not None}
    notes = DECISIONS.get()
    if notes is not None:
        notes.append(known)
    if "opentelemetry.trace" in sys.modules:
        from opentelemetry.trace import get_tracer, set_span_in_context

        attributes = {f"baton.guard.{name}": value for name, value in known.items()}
        if event.conversation:  # without a surrounding span, this says what it belongs to
            attributes["gen_ai.conversation.id"] = event.conversation
        tracer = get_tracer("baton.guard", tracer_provider=tracers)
        around = next((span for find in AROUND if (span := find()) is not None), None)
        context = None if around is None else set_span_in_context(around)
        tracer.start_span("baton.guard", context, attributes=attributes).end()


def _new_id() -> str:
    return os.urandom(16).hex()


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    from baton.providers.user_functions import (
        as_json,  # takes 100 ms, and plain text does not need it
    )

    return as_json(value).decode()

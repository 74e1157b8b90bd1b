"""The acts of a run in order, found again by the ids and names of their calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from .acts import Act
from .messages import Answer
from .names import name_key
from .node import Node

_Acts = dict[str, deque[Act]]


class Ledger:
    """What is looked up leaves its list for good when it is settled, so that none is long."""

    def __init__(self) -> None:
        self.acts: list[Act] = []
        self._number: dict[int, int] = {}
        self._written: set[str] = set()
        self._by_id: _Acts = {}
        self._by_name: _Acts = {}
        self._without_id: _Acts = {}
        self._to_run: _Acts = {}
        self._alike: dict[str, list[Act]] = {}
        self._put_off: dict[str, list[Act]] = {}

    def add(self, act: Act) -> None:
        """Add an act; its call, when a model wrote one, is known by now."""
        self._number[id(act)] = len(self.acts)
        self.acts.append(act)
        call = act.call
        if call is None:
            return
        self._by_name.setdefault(call.name, deque()).append(act)
        self._alike.setdefault(name_key(call.name), []).append(act)
        if call.id is None:
            self._without_id.setdefault(call.name, deque()).append(act)
        else:
            self._written.add(call.id)
            self._by_id.setdefault(call.id, deque()).append(act)
            self._to_run.setdefault(call.id, deque()).append(act)

    def is_written(self, id_: str) -> bool:
        """Tell whether a model wrote a call of this id."""
        return id_ in self._written

    def run(self, act: Act, node: Node) -> None:
        """Note that the span of a tool carries an act out."""
        again, act.node = act.node is not None, node
        if act.call is not None and not again:
            key = name_key(act.call.name)
            self._alike[key].remove(act)
            if act.came_to_nothing:
                self._put_off.setdefault(key, []).append(act)
        if node.call is not None:
            self._by_id.setdefault(node.call, deque()).append(act)

    def put_off(self, node: Node) -> Act | None:
        """Return the call that this span carries out again, as it came to nothing the first time.

        So it is when a person has to allow the call: its first span ends with the question.
        """
        for act in self._put_off.get(name_key(node.name or ""), ()):
            first = act.node
            if first is not None and (first.call, first.arguments) == (node.call, node.arguments):
                self._put_off[name_key(node.name or "")].remove(act)
                return act
        return None

    def asked_for(self, answer: Answer) -> Act | None:
        """Return the first act without an answer that this one is for: by id, else by name."""
        name = answer.name or ""
        if answer.id is None:
            return _first(self._by_name.get(name), _is_answered)
        by_id = _first(self._by_id.get(answer.id), _is_answered)
        by_name = _first(self._without_id.get(name), _is_answered_or_has_id)
        found = [act for act in (by_id, by_name) if act is not None]
        return min(found, key=lambda act: self._number[id(act)], default=None)

    def carried_out(self, node: Node) -> Act | None:
        """Return the call that the span of a tool carries out: by id, else by name and arguments.

        ADK gives calls ids of its own where the model gave some too.
        """
        if node.call is not None:
            act = _first(self._to_run.get(node.call), _is_run)
            if act is not None:
                return act
        alike = self._alike.get(name_key(node.name or ""), ())
        for act in alike:
            if act.call is not None and act.call.arguments == node.arguments:
                return act
        if node.call is None or node.arguments is None:
            return alike[0] if alike else None
        return next((a for a in alike if a.call is not None and a.call.id is None), None)


def _first(acts: deque[Act] | None, done: Callable[[Act], bool]) -> Act | None:
    """Return the first that is left to do; those that are done leave the list."""
    while acts and done(acts[0]):
        acts.popleft()
    return acts[0] if acts else None


def _is_answered(act: Act) -> bool:
    return act.answer is not None


def _is_answered_or_has_id(act: Act) -> bool:
    return act.answer is not None or (act.node is not None and bool(act.node.call))


def _is_run(act: Act) -> bool:
    return act.node is not None

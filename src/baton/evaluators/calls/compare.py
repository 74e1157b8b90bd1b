"""Comparing one expected call with one actual call."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from baton.formats.patterns import compiled
from baton.model import ExpectedToolCall

from . import values
from .rules import Rule, rule_for
from .values import ABSENT

NameMode = Literal["exact", "contains", "regex"]
ArgumentMode = Literal["exact", "ignore", "subset", "superset", "tolerant", "regex", "similar"]
Same = Callable[[Any, Any], bool]
_BLIND = frozenset({"ignore", "any"})
_OPEN = frozenset({"subset", "regex", "similar"})


class Made(NamedTuple):
    """An actual call; ``agents`` are all names of the agent that made it."""

    id: str
    name: str
    arguments: Any
    agent: str
    agents: frozenset[str]

    @property
    def mapping(self) -> Mapping[str, Any]:
        """The arguments by name; none at all is an empty mapping, a bare value has no name."""
        if self.arguments is None:
            return {}
        return self.arguments if isinstance(self.arguments, dict) else {"": self.arguments}


Side = Literal["expected", "actual", "either"]


class OneCall(Protocol):
    """What tells whether an actual call is an expected one."""

    def name(self, expected: str, actual: str) -> bool:
        """Tell whether the names agree."""

    def differing(self, wanted: ExpectedToolCall, made: Made) -> Iterator[str]:
        """Yield the arguments that differ, as if the names agreed; empty means all of them."""

    def rule(self, tool: str, argument: str) -> Rule | None:
        """Return the rule by which an argument is compared; ``None`` for the general way."""


class CallRules:
    """Compares calls the way the options of an evaluator say."""

    __slots__ = ("_same", "arguments", "names", "rules", "similarity")

    def __init__(
        self, names: NameMode, arguments: ArgumentMode, similarity: float, rules: Sequence[Rule]
    ) -> None:
        """Take the general way to compare, and the rules that go before it."""
        self.names = names
        self.arguments = arguments
        self.similarity = similarity
        self.rules = tuple(rules)
        self._same = _general(arguments, similarity)

    def same(self, wanted: ExpectedToolCall, made: Made) -> bool:
        """Tell whether an actual call is the expected one."""
        return self.name(wanted.name, made.name) and self.same_but_name(wanted, made)

    def same_but_name(self, wanted: ExpectedToolCall, made: Made) -> bool:
        """Tell whether calls whose names agree are the same."""
        if wanted.agent is not None and wanted.agent not in made.agents:
            return False
        return wanted.arguments is None or all(self._agreements(wanted.arguments, made))

    def name(self, expected: str, actual: str) -> bool:
        """Tell whether the names agree."""
        if self.names == "regex":
            return compiled(expected).fullmatch(actual) is not None
        if self.names == "exact" or not (expected and actual):
            return expected == actual
        one, other = expected.casefold(), actual.casefold()
        return one in other or other in one

    def differing(self, wanted: ExpectedToolCall, made: Made) -> Iterator[str]:
        """Yield the arguments that differ; none where the expected call states none."""
        expected = wanted.arguments
        if expected is not None:
            keys = {**expected, **made.mapping}
            agreements = zip(keys, self._agreements(expected, made), strict=True)
            yield from (key for key, agrees in agreements if not agrees)

    def _agreements(self, expected: Mapping[str, Any], made: Made) -> Iterator[bool]:
        """Tell of each argument of either call whether it agrees."""
        actual = made.mapping
        same = self._same
        for key in {**expected, **actual}:
            one, other = expected.get(key, ABSENT), actual.get(key, ABSENT)
            rule = rule_for(self.rules, made.name, key) if self.rules else None
            yield rule.accepts(one, other) if rule else same(one, other)

    def rule(self, tool: str, argument: str) -> Rule | None:
        """Return the rule by which an argument is compared; ``None`` for the general way."""
        return rule_for(self.rules, tool, argument)

    def way(self, tool: str, argument: str) -> str:
        """Return the mode or the kind of rule by which an argument is compared.

        A rule of kind ``regex`` has a pattern of its own and goes as ``pattern``.
        """
        rule = self.rule(tool, argument)
        if rule is None:
            return self.arguments
        return "pattern" if rule.kind == "regex" else rule.kind

    def looked_at(self, tool: str, arguments: Any, side: Side = "either") -> Hashable:
        """Return what is equal for arguments that cannot be told apart.

        Knowing the ``side``, an argument that a rule decides alone is right or wrong and no more.
        """
        if not self.heeds_arguments:
            return None
        # Which tool an expected call means, and so which rules hold, is sure for exact names only.
        sure = side == "actual" or self.names == "exact"
        if self.rules and sure and isinstance(arguments, dict):
            arguments = {
                key: self._seen(tool, key, value, side)
                for key, value in arguments.items()
                if self.way(tool, key) not in _BLIND
            }
        return values.identity(arguments)

    def _seen(self, tool: str, key: str, value: Any, side: Side) -> Any:
        rule = self.rule(tool, key)
        if side == "either" or rule is None or not rule.decides_alone:
            return value
        return side == "expected" or rule.accepts(None, value)

    def parted(
        self, tool: str, arguments: Mapping[str, Any]
    ) -> tuple[dict[str, tuple[Rule, float]], dict[str, Any]]:
        """Part arguments into numbers that only have to be near, with their rules, and the rest."""
        numbers: dict[str, tuple[Rule, float]] = {}
        rest: dict[str, Any] = {}
        for key, value in arguments.items():
            rule = self.rule(tool, key)
            size = values.number(value) if rule is not None and rule.is_near else None
            if rule is None or size is None:
                rest[key] = value
            else:
                numbers[key] = (rule, size)
        return numbers, rest

    def takes_unstated(self, tool: str, argument: str) -> bool:
        """Whether an actual argument agrees with every expected call that does not have it."""
        return self.way(tool, argument) in _OPEN and self.rule(tool, argument) is None

    @property
    def has_near(self) -> bool:
        """Whether some rule asks for numbers that are near."""
        return any(rule.is_near for rule in self.rules)

    @property
    def heeds_arguments(self) -> bool:
        """Whether arguments are looked at at all."""
        return self.arguments != "ignore" or bool(self.rules)


def _general(mode: ArgumentMode, similarity: float) -> Same:
    """Return what compares two values, either of which may be ``ABSENT``."""
    ways: dict[ArgumentMode, Same] = {
        "exact": values.equal,
        "ignore": lambda _expected, _actual: True,
        "tolerant": values.tolerant,
        "subset": lambda expected, actual: expected is ABSENT or values.contains(expected, actual),
        "superset": lambda expected, actual: actual is ABSENT or values.contains(actual, expected),
        "regex": lambda expected, actual: expected is ABSENT or values.matches(expected, actual),
        "similar": lambda expected, actual: (
            expected is ABSENT or values.similar(expected, actual, similarity)
        ),
    }
    return ways[mode]

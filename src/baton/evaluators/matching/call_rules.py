"""Comparing expected with actual tool calls: names, arguments, rules and order."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec

from baton.evaluators.matching import argument_values
from baton.evaluators.matching.argument_values import ABSENT
from baton.formats.patterns import compiled
from baton.model import ExpectedToolCall

_SWITCHES = ("equal", "any", "tolerant")
_NEAR = ("within", "within_percent")
_KINDS = (*_SWITCHES, "regex", *_NEAR, "one_of")
# `within: 0.1` has to accept 0.3 if 0.2 is expected, although 0.3 - 0.2 is slightly more or less
# than 0.1 in binary. Fractions keep the comparison itself exact.
_ROUNDING = Fraction(1, 10**9)
Distance = Annotated[float, msgspec.Meta(ge=0)]


class Reach(NamedTuple):
    """The smallest and the largest number that are right."""

    least: Fraction
    most: Fraction


class Rule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One rule, of exactly one kind. Without ``tool`` or ``argument``, it applies to all of them.

    ``equal``, ``any`` and ``tolerant`` are switched on with ``true``. ``regex`` is a pattern to
    find in the actual text, or ``true`` if the expected text is the pattern. ``within`` is the
    largest distance from the expected number. ``within_percent`` is the same as a percentage of
    that number. ``one_of`` lists the actual values that are right.
    """

    tool: str | None = None
    argument: str | None = None
    equal: bool | None = None
    any: bool | None = None
    tolerant: bool | None = None
    regex: bool | str | None = None
    within: Distance | None = None
    within_percent: Distance | None = None
    one_of: list[Any] | None = None

    def __post_init__(self) -> None:
        kinds = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            names = ", ".join(kinds) or "none"
            raise ValueError(f"a rule has exactly one of {', '.join(_KINDS)}; this has {names}")
        if getattr(self, kinds[0]) is False:
            raise ValueError(f"`{kinds[0]}` can only be true; leave the rule out instead")
        if kinds[0] in _NEAR and not math.isfinite(getattr(self, kinds[0])):
            raise ValueError(f"`{kinds[0]}` has to be a finite number; `any: true` accepts all")
        if isinstance(self.regex, str):
            compiled(self.regex)

    @property
    def kind(self) -> str:
        """The name of the rule's kind."""
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    @property
    def decides_alone(self) -> bool:
        """Whether the rule accepts or rejects a value without regard to the expected one."""
        return self.kind == "one_of" or isinstance(self.regex, str)

    @property
    def is_near(self) -> bool:
        """Whether it requires a number near the expected one."""
        return self.kind in _NEAR

    def reach(self, expected: float) -> Reach:
        """Return the range of numbers near the expected one, with 1e-9 to spare."""
        wanted = exact(expected)
        if self.within is not None:
            far = exact(self.within)
        else:
            far = abs(wanted) * exact(self.within_percent or 0) / 100
        return Reach(wanted - far - _ROUNDING, wanted + far + _ROUNDING)

    def in_words(self) -> str | None:
        """Describe the values that are right, or return ``None`` if only the expected one is."""
        value = getattr(self, self.kind)
        match self.kind:
            case "regex" if isinstance(value, str):
                return f"text with the pattern {value!r}"
            case "one_of":
                return f"one of {msgspec.json.encode(value).decode()}"
            case "within" | "within_percent":
                return f"{self.kind} {value:g} of the expected number"
        return None

    def accepts(self, expected: Any, actual: Any) -> bool:
        """Return whether an actual value is right. Either value may be ``ABSENT``, but not both."""
        match self.kind:
            case "any":
                return True
            case "equal":
                return argument_values.equal(expected, actual)
            case "tolerant":
                return argument_values.tolerant(expected, actual)
            case "regex":
                if self.regex is True:
                    return expected is not ABSENT and argument_values.matches(expected, actual)
                searched = compiled(str(self.regex))
                return isinstance(actual, str) and searched.search(actual) is not None
            case "one_of":
                actual = None if actual is ABSENT else actual
                return any(argument_values.equal(each, actual) for each in self.one_of or ())
        wanted, got = argument_values.number(expected), argument_values.number(actual)
        if wanted is None or got is None:
            return False
        least, most = self.reach(wanted)
        return least <= exact(got) <= most


def exact(number: float) -> Fraction:
    """Return a number exactly as written: decimal fractions are exact, and any size is allowed."""
    return Fraction(number if isinstance(number, int) else repr(number))


def rule_for(rules: Sequence[Rule], tool: str, argument: str) -> Rule | None:
    """Return the first rule that applies to this argument of this tool."""
    for rule in rules:
        if rule.tool in (None, tool) and rule.argument in (None, argument):
            return rule
    return None


NameMode = Literal["exact", "contains", "regex"]
ArgumentMode = Literal["exact", "ignore", "subset", "superset", "tolerant", "regex", "similar"]
Same = Callable[[Any, Any], bool]
# Methods that ignore the value. Arguments compared this way are left out when calls are sorted into
# kinds.
_BLIND = frozenset({"ignore", "any"})
# Methods that accept an argument that the expected call does not state: a superset contains it,
# and an absent pattern or text requires nothing.
_OPEN = frozenset({"subset", "regex", "similar"})


class Made(msgspec.Struct, frozen=True):
    """An actual call. ``agents`` are all names of the agent that made it."""

    id: str
    name: str
    arguments: Any
    agent: str
    agents: frozenset[str]

    @property
    def mapping(self) -> Mapping[str, Any]:
        """The arguments by name. Without arguments it is empty, and a bare value has no name."""
        if self.arguments is None:
            return {}
        return self.arguments if isinstance(self.arguments, dict) else {"": self.arguments}


Side = Literal["expected", "actual", "either"]


class OneCall(Protocol):
    """Decides whether an actual call is an expected one."""

    def name(self, expected: str, actual: str) -> bool:
        """Return whether the names agree."""

    def differing(self, wanted: ExpectedToolCall, made: Made) -> Iterator[str]:
        """Yield the arguments that differ, as if the names agreed. Empty stands for all of them."""

    def rule(self, tool: str, argument: str) -> Rule | None:
        """Return the rule by which an argument is compared, or ``None`` for the general method."""


class CallRules:
    """Compares calls according to the options of an evaluator."""

    __slots__ = ("_as_a_whole", "_same", "arguments", "names", "rules", "similarity")

    def __init__(
        self, names: NameMode, arguments: ArgumentMode, similarity: float, rules: Sequence[Rule]
    ) -> None:
        """Take the general comparison method, and the rules that take precedence over it."""
        self.names = names
        self.arguments = arguments
        self.similarity = similarity
        self.rules = tuple(rules)
        ways: dict[ArgumentMode, Same] = {
            "exact": argument_values.equal,
            "ignore": lambda _expected, _actual: True,
            "tolerant": argument_values.tolerant,
            "subset": lambda expected, actual: (
                expected is ABSENT or argument_values.contains(expected, actual)
            ),
            "superset": lambda expected, actual: (
                actual is ABSENT or argument_values.contains(actual, expected)
            ),
            "regex": lambda expected, actual: (
                expected is ABSENT or argument_values.matches(expected, actual)
            ),
            "similar": lambda expected, actual: (
                expected is ABSENT or argument_values.similar(expected, actual, similarity)
            ),
        }
        self._same = ways[arguments]
        # The usual case: all arguments are compared exactly, so none needs a separate look.
        self._as_a_whole = arguments == "exact" and not self.rules

    def same(self, wanted: ExpectedToolCall, made: Made) -> bool:
        """Return whether an actual call is the expected one."""
        if self.names == "exact":
            return wanted.name == made.name and self.same_but_name(wanted, made)
        return self.name(wanted.name, made.name) and self.same_but_name(wanted, made)

    def same_but_name(self, wanted: ExpectedToolCall, made: Made) -> bool:
        """Return whether calls whose names agree are the same."""
        if wanted.agent is not None and wanted.agent not in made.agents:
            return False
        if wanted.arguments is None:
            return True
        if self._as_a_whole:
            return argument_values.equal(wanted.arguments, made.mapping)
        return all(self._agreements(wanted.arguments, made))

    def name(self, expected: str, actual: str) -> bool:
        """Return whether the names agree."""
        if self.names == "regex":
            return compiled(expected).fullmatch(actual) is not None
        if self.names == "exact" or not (expected and actual):
            return expected == actual
        one, other = expected.casefold(), actual.casefold()
        return one in other or other in one

    def differing(self, wanted: ExpectedToolCall, made: Made) -> Iterator[str]:
        """Yield the arguments that differ, or none if the expected call states none."""
        expected = wanted.arguments
        if expected is not None:
            keys = {**expected, **made.mapping}
            agreements = zip(keys, self._agreements(expected, made), strict=True)
            yield from (key for key, agrees in agreements if not agrees)

    def _agreements(self, expected: Mapping[str, Any], made: Made) -> Iterator[bool]:
        """Yield, for each argument of either call, whether it agrees."""
        actual = made.mapping
        same = self._same
        for key in {**expected, **actual}:
            one, other = expected.get(key, ABSENT), actual.get(key, ABSENT)
            rule = rule_for(self.rules, made.name, key) if self.rules else None
            yield rule.accepts(one, other) if rule else same(one, other)

    def rule(self, tool: str, argument: str) -> Rule | None:
        """Return the rule by which an argument is compared, or ``None`` for the general method."""
        return rule_for(self.rules, tool, argument)

    def way(self, tool: str, argument: str) -> str:
        """Return the mode or the kind of rule by which an argument is compared.

        A ``regex`` rule with its own pattern is returned as ``pattern``.
        """
        rule = self.rule(tool, argument)
        if rule is None:
            return self.arguments
        return "pattern" if rule.kind == "regex" else rule.kind

    def looked_at(self, tool: str, arguments: Any, side: Side = "either") -> Hashable:
        """Return a key that is equal for indistinguishable arguments.

        If the ``side`` is known, an argument decided by a rule alone is just right or wrong.
        """
        if not self.heeds_arguments:
            return None
        # Only exact names determine the tool of an expected call, and so which rules apply.
        sure = side == "actual" or self.names == "exact"
        if self.rules and sure and isinstance(arguments, dict):
            arguments = {
                key: self._comparable(tool, key, value, side)
                for key, value in arguments.items()
                if self.way(tool, key) not in _BLIND
            }
        return argument_values.identity(arguments)

    def _comparable(self, tool: str, key: str, value: Any, side: Side) -> Any:
        rule = self.rule(tool, key)
        if side == "either" or rule is None or not rule.decides_alone:
            return value
        return side == "expected" or rule.accepts(None, value)

    def parted(
        self, tool: str, arguments: Mapping[str, Any]
    ) -> tuple[dict[str, tuple[Rule, float]], dict[str, Any]]:
        """Split arguments into numbers that only need to be near (with rules) and the rest."""
        numbers: dict[str, tuple[Rule, float]] = {}
        rest: dict[str, Any] = {}
        for key, value in arguments.items():
            rule = self.rule(tool, key)
            size = argument_values.number(value) if rule is not None and rule.is_near else None
            if rule is None or size is None:
                rest[key] = value
            else:
                numbers[key] = (rule, size)
        return numbers, rest

    def takes_unstated(self, tool: str, argument: str) -> bool:
        """Return whether an actual argument agrees with every expected call that lacks it."""
        return self.way(tool, argument) in _OPEN and self.rule(tool, argument) is None

    @property
    def has_near(self) -> bool:
        """Whether any rule requires only near numbers."""
        return any(rule.is_near for rule in self.rules)

    @property
    def heeds_arguments(self) -> bool:
        """Whether arguments are examined at all."""
        return self.arguments != "ignore" or bool(self.rules)

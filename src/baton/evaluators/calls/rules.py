"""Rules: how one argument, or all of one tool, are compared instead of the general way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Annotated, Any, NamedTuple

import msgspec

from baton.formats.patterns import compiled

from . import values
from .values import ABSENT

_SWITCHES = ("equal", "any", "tolerant")
_NEAR = ("within", "within_percent")
_KINDS = (*_SWITCHES, "regex", *_NEAR, "one_of")
_ROUNDING = Fraction(1, 10**9)
Distance = Annotated[float, msgspec.Meta(ge=0)]


class Reach(NamedTuple):
    """The least and the largest number that are right."""

    least: Fraction
    most: Fraction


class Rule(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One rule, of exactly one kind; without ``tool`` or ``argument`` it holds for all.

    ``equal``, ``any`` and ``tolerant`` are switched on with ``true``. ``regex`` is a pattern to
    find in the actual text, or ``true`` where the expected text is the pattern. ``within`` is
    the largest distance from the expected number, ``within_percent`` the same in percent of
    it. ``one_of`` lists the actual values that are right.
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
            given = ", ".join(kinds) or "none"
            raise ValueError(f"a rule has exactly one of {', '.join(_KINDS)}; this has {given}")
        if getattr(self, kinds[0]) is False:
            raise ValueError(f"`{kinds[0]}` can only be true; leave the rule out instead")
        if kinds[0] in _NEAR and not math.isfinite(getattr(self, kinds[0])):
            raise ValueError(f"`{kinds[0]}` has to be a finite number; `any: true` takes all")
        if isinstance(self.regex, str):
            compiled(self.regex)

    @property
    def kind(self) -> str:
        """The name of the kind it is of."""
        return next(kind for kind in _KINDS if getattr(self, kind) is not None)

    @property
    def decides_alone(self) -> bool:
        """Whether an actual value is right or wrong whatever is expected."""
        return self.kind == "one_of" or isinstance(self.regex, str)

    @property
    def is_near(self) -> bool:
        """Whether it asks for a number near to the expected one."""
        return self.kind in _NEAR

    def reach(self, expected: float) -> Reach:
        """Return which numbers are near to the expected one, with 1e-9 to spare."""
        wanted = exact(expected)
        if self.within is not None:
            far = exact(self.within)
        else:
            far = abs(wanted) * exact(self.within_percent or 0) / 100
        return Reach(wanted - far - _ROUNDING, wanted + far + _ROUNDING)

    def in_words(self) -> str | None:
        """Say what an actual value has to be, where that is not the expected one."""
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
        """Tell whether an actual value is right; either may be ``ABSENT``, not both."""
        match self.kind:
            case "any":
                return True
            case "equal":
                return values.equal(expected, actual)
            case "tolerant":
                return values.tolerant(expected, actual)
            case "regex":
                return self._found_in(expected, actual)
            case "one_of":
                actual = None if actual is ABSENT else actual
                return any(values.equal(each, actual) for each in self.one_of or ())
        return self._near(expected, actual)

    def _found_in(self, expected: Any, actual: Any) -> bool:
        if self.regex is True:
            return expected is not ABSENT and values.matches(expected, actual)
        searched = compiled(str(self.regex))
        return isinstance(actual, str) and searched.search(actual) is not None

    def _near(self, expected: Any, actual: Any) -> bool:
        wanted, got = values.number(expected), values.number(actual)
        if wanted is None or got is None:
            return False
        least, most = self.reach(wanted)
        return least <= exact(got) <= most


def exact(number: float) -> Fraction:
    """Return a number as it is written: decimal fractions are exact, and no size is too large."""
    return Fraction(number if isinstance(number, int) else repr(number))


def rule_for(rules: Sequence[Rule], tool: str, argument: str) -> Rule | None:
    """Return the first rule that speaks of this argument of this tool."""
    for rule in rules:
        if rule.tool in (None, tool) and rule.argument in (None, argument):
            return rule
    return None

"""What of a gate holds for some of the cases, where the others passed before."""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import NamedTuple

import msgspec

from .rules import Gate


class PartOfGate(NamedTuple):
    """A gate for some of the cases, and what was left out of it."""

    gate: Gate
    left_out: list[str]


def for_some_cases(gate: Gate, ids: Collection[str], tags: Collection[str]) -> PartOfGate:
    """Leave out what needs cases that are not played: regressions, the dataset's version.

    Rules stay, unless they are for a tag that no case here has. A pattern of ``must_pass`` stays
    when a case here meets it.
    """
    rules = [rule for rule in gate.rules if rule.tag is None or rule.tag in tags]
    met = [
        each for each in gate.must_pass if any(id_ == each or fnmatchcase(id_, each) for id_ in ids)
    ]
    bound = gate.bound
    left = [f"`{rule.text}`" for rule in gate.rules if rule not in rules]
    left += [f"`must_pass: {each}`" for each in gate.must_pass if each not in met]
    if gate.regression is not None:
        left.append("`regression`")
    if bound is not None and bound.dataset is not None:
        left.append("`for: dataset`")
        bound = msgspec.structs.replace(bound, dataset=None)
    part = msgspec.structs.replace(
        gate, rules=tuple(rules), must_pass=tuple(met), regression=None, bound=bound
    )
    return PartOfGate(part, left)

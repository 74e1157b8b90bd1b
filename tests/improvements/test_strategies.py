"""Which texts gepa's engine takes as parents."""

from __future__ import annotations

from collections.abc import Sequence

from baton.improvements.strategies import WAYS, Scored, search

# `quick` is worse than `right` by the aim on every case, and better by another axis.
SCORES = {
    "first": {"aimed": 0.2, "speed": 0.2},
    "right": {"aimed": 0.6, "speed": 0.2},
    "quick": {"aimed": 0.4, "speed": 0.9},
    "worse": {"aimed": 0.3, "speed": 0.1},
}


class Scripted:
    """A study whose texts have fixed scores, and whose children come in a fixed order."""

    def __init__(self, axes: Sequence[str]) -> None:
        self.axes = axes
        self.parents: list[str] = []
        self._children = ["quick", "right", "worse"]

    def evaluate(self, text: str, cases: Sequence[str]) -> Scored:
        own = SCORES[text]
        axes = {name: own[name] for name in self.axes}
        return Scored([own["aimed"]] * len(cases), [axes] * len(cases), ["told"] * len(cases))

    def propose(self, parent: str, _: Sequence[str]) -> str:
        self.parents.append(parent)
        return self._children.pop(0) if self._children else parent

    def batch(self) -> list[str]:
        return ["t1", "t2"]

    def is_over(self) -> bool:
        return len(self.parents) >= 20


def parents(axes: Sequence[str]) -> set[str]:
    study = Scripted(axes)
    search(study, WAYS["gepa"], "first", ["t1", "t2"], ["s1", "s2", "s3"], 1)
    return set(study.parents[3:])


def test_what_is_best_by_another_axis_alone_is_a_parent_too() -> None:
    assert parents(["aimed", "speed"]) == {"right", "quick"}
    assert parents(["aimed"]) == {"right"}

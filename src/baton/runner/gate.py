"""The gate: rules on the mean of an evaluator, over all cases, that an evaluation has to meet."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from baton.model import AgentScores, GateResult, InputError, Low, Problem, suggestion

_RULE = re.compile(
    r"\s*(?P<name>\S+)\s+(?P<by>by\s+agent\s+)?(?P<sign>>=|<=)\s*(?P<limit>[-+]?[\d.]+)\s*"
)
_CASES = 3


class GateRule(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of all verdicts of ``evaluator`` has to be at least (or at most) ``limit``.

    With ``by_agent`` that holds for every sub-agent by itself.
    """

    text: str
    evaluator: str
    limit: float
    by_agent: bool = False
    at_most: bool = False


def read_gate(texts: Iterable[str]) -> tuple[GateRule, ...]:
    """Read rules like ``scope_fidelity by agent >= 0.9``.

    Raises:
        InputError: what is no rule; all of them.
    """
    found: list[GateRule] = []
    problems: list[Problem] = []
    for index, text in enumerate(texts):
        rule = _read(text)
        if rule is None:
            message = f"`{text}` is no rule: write `EVALUATOR >= 0.85` or `... by agent >= 0.9`"
            problems.append(Problem(path=f"gate[{index}]", message=message))
        else:
            found.append(rule)
    if problems:
        raise InputError(problems)
    return tuple(found)


def named(rules: Iterable[GateRule], names: Mapping[str, str]) -> tuple[GateRule, ...]:
    """Return the rules with evaluators as they report; ``names`` has all that they go by.

    Raises:
        InputError: a rule is about an evaluator that is not asked for.
    """
    problems = [
        Problem(
            path="gate",
            message=f"`{rule.text}`: `{rule.evaluator}` is not asked for; "
            f"{suggestion(rule.evaluator, names)}",
        )
        for rule in rules
        if rule.evaluator not in names
    ]
    if problems:
        raise InputError(problems)
    return tuple(msgspec.structs.replace(rule, evaluator=names[rule.evaluator]) for rule in rules)


def decide(rules: Iterable[GateRule], sums: Sequence[AgentScores]) -> list[GateResult]:
    """Decide every rule, those by agent once for each agent; without verdicts it is an error."""
    return [result for rule in rules for result in _decided(rule, sums)]


def problems_of(results: Iterable[GateResult]) -> list[str]:
    """Say which rules could not be decided."""
    return [
        f"the gate's `{result.rule}` has nothing to decide by: no verdict"
        for result in results
        if result.status == "error"
    ]


def _read(text: object) -> GateRule | None:
    match = _RULE.fullmatch(text) if isinstance(text, str) else None
    try:
        limit = float(match["limit"]) if match else 0.0
    except ValueError:
        return None
    if match is None:
        return None
    return GateRule(
        text=" ".join(match[0].split()),
        evaluator=match["name"],
        limit=limit,
        by_agent=bool(match["by"]),
        at_most=match["sign"] == "<=",
    )


def _decided(rule: GateRule, sums: Sequence[AgentScores]) -> Iterator[GateResult]:
    own = [one for one in sums if one.evaluator == rule.evaluator and one.scored]
    if not own:
        yield _result(rule, None, [])
    elif rule.by_agent:
        for one in own:
            yield _result(rule, one.agent, [one])
    else:
        yield _result(rule, None, own)


def _result(rule: GateRule, agent: str | None, sums: Sequence[AgentScores]) -> GateResult:
    scored = sum(one.scored for one in sums)
    mean = sum(one.total for one in sums) / scored if scored else None
    met = mean is not None and _meets(rule)(mean)
    worst = [low for one in sums for low in one.worst if not _meets(rule)(low.value)]
    worst.sort(key=lambda low: -low.value if rule.at_most else low.value)
    return GateResult(
        rule=rule.text,
        evaluator=rule.evaluator,
        agent=agent,
        status="error" if mean is None else "passed" if met else "failed",
        mean=mean,
        scored=scored,
        threshold=rule.limit,
        cases=_distinct(worst) if mean is not None and not met else [],
    )


def _meets(rule: GateRule) -> Callable[[float], bool]:
    if rule.at_most:
        return lambda value: value <= rule.limit + 1e-9
    return lambda value: value >= rule.limit - 1e-9


def _distinct(worst: Sequence[Low]) -> list[Low]:
    found: dict[tuple[str, int], Low] = {}
    for low in worst:
        found.setdefault((low.case_id, low.repeat), low)
    return list(found.values())[:_CASES]

"""The rules of a gate as written: thresholds, cases that must pass, a baseline."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from baton.formats.explain_mistakes import checked
from baton.model import GateResult, InputError, Problem, suggestion
from baton.model.score import TOLERANCE, passes

Sign = Literal[">=", "<=", "==", "<", ">"]
CASES = ("pass_rate", "error_rate")
"""Measures of cases: the share of scored cases that passed, the share of all cases with errors."""
COUNTERS = ("cost_usd", "seconds", "tokens", "model_calls", "tool_calls", "dispatches")
"""Measures of cost and time of a case, each with a statistic: ``cost_usd.p95``."""
STATISTICS = ("mean", "sum", "max", "min")
NAMED_CASES = 3
"""The most cases that are named for each result of a gate: a report links to the rest."""
_EXAMPLE = "write `EVALUATOR >= 0.85` or `... by agent >= 0.9`"
_RULE = (
    r"\s*(?P<name>\S+)(?:\s+by\s+(?:(?P<agent>agent)|tag:(?P<tag>\S+)))*"
    r"\s+(?P<sign>>=|<=|==|<|>)\s*(?P<limit>[-+]?[\d.]+)\s*"
    r"(?:\(\s*min\s+(?P<least>\d+)\s*\)|over\s+(?P<over>\d+))?\s*"
)
_PERCENTILE = re.compile(r"p(\d{1,2}(?:\.\d+)?)")


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of parts of a config."""


class ThresholdSpec(_Strict, frozen=True, kw_only=True):
    """A threshold, written out: one of ``at_least``, ``at_most`` and ``equals``.

    ``min`` is the number of verdicts (cases) needed to decide; with fewer the result is unclear.
    """

    measure: str
    by: Literal["agent"] | None = None
    tag: str | None = None
    at_least: float | None = None
    at_most: float | None = None
    equals: float | None = None
    min: Annotated[int, msgspec.Meta(ge=0)] = 0


class Regression(_Strict, frozen=True, kw_only=True):
    """Fails when an axis is worse than in ``baseline`` (a name, or the path of a file or folder).

    A drop is real when the probability of one by chance is at most ``1 - confidence``, over all
    axes together; a drop of less than ``min_effect`` is ignored. Single failures fail the
    evaluation as well, unless ``allow_failures``: then only the comparison decides. If there is no
    baseline yet, nothing is compared, and single failures count.
    """

    baseline: str = "default"
    confidence: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.95
    min_effect: Annotated[float, msgspec.Meta(ge=0)] = 0.05
    allow_failures: bool = False


class BoundTo(_Strict, frozen=True, kw_only=True):
    """The versions that thresholds are for: hashes; for agents and prompts maybe one each."""

    dataset: str | None = None
    recordings: str | None = None
    config: str | None = None
    agents: str | dict[str, str] | None = None
    prompts: str | dict[str, str] | None = None


class GateSpec(_Strict, frozen=True, kw_only=True, rename={"bound": "for"}):
    """A gate with all its parts; ``must_pass`` has case ids, or patterns of them."""

    thresholds: list[str | ThresholdSpec] = []
    must_pass: list[str] = []
    regression: Regression | None = None
    bound: BoundTo | None = None


class GateRule(msgspec.Struct, frozen=True, kw_only=True):
    """A figure has to be at least, at most or exactly ``limit``.

    The figure is the mean of all verdicts of ``evaluator``, or a measure with that name and a
    ``statistic``. With ``by_agent`` the rule applies to each sub-agent separately, with ``tag`` to
    cases that have it; fewer than ``least`` verdicts decide nothing. In the condition of an alert
    the sign says what is wrong (``<`` or ``>``), and ``over`` is the number of latest verdicts that
    the figure is computed from. ``place`` is its path in the config.
    """

    text: str
    evaluator: str
    limit: float
    statistic: str | None = None
    by_agent: bool = False
    tag: str | None = None
    sign: Sign = ">="
    least: int = 0
    over: int | None = None
    place: str = "gate"

    @property
    def at_most(self) -> bool:
        """Whether high figures are the bad ones."""
        return self.sign == "<="

    @property
    def of_evaluator(self) -> bool:
        """Whether it is about an evaluator, not about cases or their cost and time."""
        return self.evaluator not in CASES and self.statistic is None

    def always_met(self, bounds: tuple[float, float]) -> bool:
        """Tell whether each value within these bounds meets it.

        A limit on a bound is no mistake: with `pass_rate >= 0` cases may fail, and `values >= 0`
        still needs verdicts.
        """
        low, high = bounds
        return self.limit < low if self.sign == ">=" else self.at_most and self.limit > high

    def met_by(self, value: float) -> bool:
        """Tell whether a figure meets it, whatever the rounding errors."""
        # Ten costs of 0.1 add up to 0.9999999999999999, and `sum == 1` has to hold.
        if self.sign == "==":
            return abs(value - self.limit) <= TOLERANCE
        return passes(value, self.limit, higher=not self.at_most)


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """All rules; ``folder`` is what their paths are relative to."""

    rules: tuple[GateRule, ...] = ()
    must_pass: tuple[str, ...] = ()
    regression: Regression | None = None
    bound: BoundTo | None = None
    folder: Path = Path()

    def __bool__(self) -> bool:
        return bool(self.rules or self.must_pass or self.regression or self.bound)

    @property
    def evaluators(self) -> frozenset[str]:
        """The evaluators that its rules are about."""
        return frozenset(rule.evaluator for rule in self.rules if rule.of_evaluator)

    @property
    def lower(self) -> frozenset[str]:
        """The evaluators for which high values are bad."""
        return frozenset(r.evaluator for r in self.rules if r.at_most and r.of_evaluator)

    @property
    def on_cases(self) -> bool:
        """Whether a rule decides how many cases may fail; otherwise none may."""
        return self._has("pass_rate")

    @property
    def on_errors(self) -> bool:
        """Whether it decides how many cases may be errors; otherwise none may."""
        return self._has("error_rate")

    def _has(self, measure: str) -> bool:
        return any(rule.evaluator == measure and rule.tag is None for rule in self.rules)


def read_gate(
    stated: str | Sequence[str | Mapping[str, Any] | ThresholdSpec] | Mapping[str, Any] | GateSpec,
    folder: Path | None = None,
) -> Gate:
    """Read rules like ``scope_fidelity by agent >= 0.9 (min 20)``, alone or in a mapping.

    Raises:
        InputError: lists every text that is not a rule.
    """
    if isinstance(stated, str):
        stated = [stated]
    place = "gate"
    if isinstance(stated, Mapping):
        stated = checked(dict(stated), GateSpec, ("gate",))
    if isinstance(stated, GateSpec):
        spec, place = stated, "gate.thresholds"
    else:
        thresholds: list[str | ThresholdSpec] = []
        for each in stated:
            if isinstance(each, Mapping):
                made: ThresholdSpec = checked(dict(each), ThresholdSpec, ("gate",))
                thresholds.append(made)
            else:
                thresholds.append(each if isinstance(each, ThresholdSpec) else str(each))
        spec = GateSpec(thresholds=thresholds)
    rules: list[GateRule] = []
    problems: list[Problem] = []
    for index, each in enumerate(spec.thresholds):
        try:
            rule = _read(each) if isinstance(each, str) else _written_out(each)
            rules.append(msgspec.structs.replace(rule, place=f"{place}[{index}]"))
        except ValueError as error:
            problems.append(Problem(path=f"{place}[{index}]", message=str(error)))
    if problems:
        raise InputError(problems)
    return Gate(
        rules=tuple(rules),
        must_pass=tuple(spec.must_pass),
        regression=spec.regression,
        bound=spec.bound,
        folder=folder or Path(),
    )


def named(
    gate: Gate, names: Mapping[str, str], bounds: Mapping[str, tuple[float, float]] | None = None
) -> Gate:
    """Return the gate with the evaluators' reported names.

    Args:
        gate: the rules.
        names: reported names, by all names of the evaluators.
        bounds: the lowest and the highest value of evaluators, by reported name, as far as known.

    Raises:
        InputError: a rule is about an evaluator that is not part of the evaluation, or always
            passes.
    """
    known = {*names, *CASES, *(f"{counter}.mean" for counter in COUNTERS)}
    problems = [
        Problem(
            path=rule.place,
            message=f"`{rule.text}`: `{rule.evaluator}` is not part of this evaluation; "
            f"{suggestion(rule.evaluator, known)}",
        )
        for rule in gate.rules
        if rule.of_evaluator and rule.evaluator not in names
    ]
    rules = [
        msgspec.structs.replace(rule, evaluator=names.get(rule.evaluator, rule.evaluator))
        if rule.of_evaluator
        else rule
        for rule in gate.rules
    ]
    for rule in rules:
        own = (bounds or {}).get(rule.evaluator) if rule.of_evaluator else None
        if own is not None and rule.always_met(own):
            problems.append(Problem(path=rule.place, message=_always_passes(rule, own)))
    if problems:
        raise InputError(problems)
    return msgspec.structs.replace(gate, rules=tuple(rules))


def _always_passes(rule: GateRule, bounds: tuple[float, float]) -> str:
    low, high = bounds
    if (low, high) == (0, 1) and 2 <= rule.limit <= 100:  # `<= 20`, meant as 20 %
        advice = f"write {rule.limit / 100:g} for {rule.limit:g} %"
    else:
        advice = "write a limit between these, or remove the rule"
    return (
        f"`{rule.text}` always passes: values of `{rule.evaluator}` are from {low:g} to {high:g}; "
        f"{advice}"
    )


def percentile(statistic: str) -> float | None:
    """Return the share of a percentile; ``None`` for any other statistic."""
    match = _PERCENTILE.fullmatch(statistic)
    return float(match[1]) / 100 if match else None


def _read(text: str) -> GateRule:
    rule = _expression(text, _EXAMPLE)
    if rule.sign in ("<", ">"):
        raise ValueError(f"`{text}` is not a rule: {_EXAMPLE}; `{rule.sign}` is for alerts")
    if rule.over is not None:
        raise ValueError(
            f"`{text}`: `over` is for alerts; write `(min {rule.over})` for the "
            "number of verdicts needed"
        )
    return rule


def read_condition(text: str) -> GateRule:
    """Read when an alert opens: ``scope_fidelity by agent < 0.9 over 50``.

    It is written like a rule of a gate, but says what is wrong instead of what has to hold.

    Raises:
        InputError: it is not a condition, or not about an evaluator.
    """
    example = "write `EVALUATOR < 0.9 over 50` or `... by agent < 0.9 over 50`"
    try:
        rule = _expression(text, example)
        if not rule.of_evaluator:
            raise ValueError(f"`{text}`: `{rule.evaluator}` is not an evaluator; {example}")
        if rule.sign not in ("<", ">"):
            raise ValueError(f"`{text}`: an alert says what is wrong, with `<` or `>`; {example}")
        if not 0 < rule.limit < 1:
            raise ValueError(f"`{text}`: the limit of an alert has to be between 0 and 1")
        if rule.tag is not None or rule.least:
            part = f"by tag:{rule.tag}" if rule.tag is not None else f"(min {rule.least})"
            raise ValueError(f"`{text}`: `{part}` is for gates; {example}")
        if rule.over is not None and rule.over < 2:
            raise ValueError(
                f"`{text}`: a mean is over at least 2 scores, not {rule.over}; {example}"
            )
    except ValueError as error:
        raise InputError(str(error)) from None
    return rule


def _expression(text: str, example: str) -> GateRule:
    match = re.fullmatch(_RULE, text)
    try:
        limit = float(match["limit"]) if match else None
    except ValueError:
        limit = None
    if match is None or limit is None:
        raise ValueError(f"`{text}` is not a rule: {example}")
    sign: Any = match["sign"]
    return _rule(
        " ".join(text.split()),
        match["name"],
        limit,
        sign=sign,
        by_agent=bool(match["agent"]),
        tag=match["tag"],
        least=int(match["least"] or 0),
        over=int(match["over"]) if match["over"] else None,
    )


def _written_out(spec: ThresholdSpec) -> GateRule:
    limits: dict[Sign, float | None] = {
        ">=": spec.at_least,
        "<=": spec.at_most,
        "==": spec.equals,
    }
    stated = [(sign, limit) for sign, limit in limits.items() if limit is not None]
    if len(stated) != 1:
        raise ValueError(f"`{spec.measure}`: give one of `at_least`, `at_most` and `equals`")
    sign, limit = stated[0]
    text = spec.measure + (" by agent" if spec.by else "")
    text += f" by tag:{spec.tag}" if spec.tag else ""
    text += f" {sign} {limit:g}" + (f" (min {spec.min})" if spec.min else "")
    return _rule(
        text, spec.measure, limit, sign=sign, by_agent=bool(spec.by), tag=spec.tag, least=spec.min
    )


def _rule(text: str, measure: str, limit: float, **more: Any) -> GateRule:
    rule = GateRule(text=text, evaluator=measure, limit=limit, **more)
    name, dot, statistic = measure.partition(".")
    if name in COUNTERS:
        if not dot:
            raise ValueError(
                f"`{text}`: name the figure, such as `{name}.mean` or `{name}.p95`; if the rule "
                f"is for an evaluator `{name}`, give it a `name` in the config, and write that"
            )
        if statistic not in STATISTICS and percentile(statistic) is None:
            nearest = suggestion(statistic, (*STATISTICS, "p50", "p90", "p95", "p99"))
            raise ValueError(f"`{text}`: no statistic `{statistic}`; {nearest}")
        rule = msgspec.structs.replace(rule, evaluator=name, statistic=statistic)
    if measure in CASES and not 0 <= limit <= 1:
        raise ValueError(f"`{text}`: `{measure}` is a share from 0 to 1, such as 0.95")
    if rule.by_agent and not rule.of_evaluator:
        raise ValueError(f"`{text}`: `{measure}` is measured for cases, not for agents")
    return rule


BOUND = "for"
"""The names of results about whether a gate is for this version."""


class Decision(msgspec.Struct, frozen=True):
    """Results, and the case outcomes that they override.

    ``on_cases``: failed cases fail the evaluation only through the gate. ``on_errors``: the same
    for cases that could not be evaluated.
    """

    results: list[GateResult]
    on_cases: bool = False
    on_errors: bool = False

    def problems(self) -> list[str]:
        """Say which rules could not be decided."""
        return [
            f"the gate's thresholds are for another version: {result.reason}"
            if result.rule == BOUND
            else f"the gate's `{result.rule}` could not be decided: {result.reason}"
            for result in self.results
            if result.status == "error"
        ]

    @property
    def missed(self) -> bool:
        """Whether a rule was missed."""
        return any(result.status == "failed" for result in self.results)


NOTHING = Decision([])

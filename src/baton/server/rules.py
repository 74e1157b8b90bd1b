"""Rules of `server.yaml`: what the server scores on arrival, and with which evaluators."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import msgspec

from baton.config.judge_config import at_lines
from baton.evaluators.defaults import PROVEN_BY_RECORD
from baton.evaluators.judged import Judged
from baton.formats.document import Document
from baton.gate.read_thresholds import GateRule, read_condition
from baton.judges.judge_settings import JudgeSettings, read_settings, refuse_written_keys
from baton.model import InputError, Problem, suggestion
from baton.model.filter import Filter, filter_of
from baton.model.prices import Prices
from baton.model.subjects import FIELDS, On
from baton.runner.costs import read_prices
from baton.runner.plan import EvaluatorSpec, Plan, PlannedEvaluator, make_plan

Channel = Literal["webhook", "slack", "github"]
Period = Literal["hour", "day", "month"]
_WITHIN: Mapping[On, tuple[str, ...]] = {
    "conversation": ("trace", "turn", "run", "dispatch", "tool_call"),
    "turn": ("turn", "run", "dispatch", "tool_call"),
    "run": ("run", "dispatch", "tool_call"),
    "dispatch": ("dispatch", "run", "tool_call"),
    "tool_call": ("tool_call",),
}
"""The units of evaluators that a rule may have, by what the rule is on."""
_PERIODS: Mapping[Period, str] = {"hour": "%Y-%m-%dT%H", "day": "%Y-%m-%d", "month": "%Y-%m"}
_PERCENT = re.compile(r"\s*([\d.]+)\s*(%?)\s*")


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the types in `server.yaml`: unknown keys are errors."""


class RuleEvaluator(EvaluatorSpec, kw_only=True):
    """An evaluator as in a config, and the name of its judge in `judges:`."""

    judge: str | None = None


class Budget(_Strict, frozen=True, kw_only=True):
    """The maximum cost of a rule's judges in USD per hour, day or month (UTC)."""

    cost_usd: Annotated[float, msgspec.Meta(gt=0)]
    per: Period = "day"

    def period(self, now: float) -> str:
        """Return the name of the period: `2026-11-22T09`, `2026-11-22` or `2026-11`."""
        return datetime.fromtimestamp(now, UTC).strftime(_PERIODS[self.per])

    def next(self, now: float) -> float:
        """Return when the next period begins."""
        at = datetime.fromtimestamp(now, UTC).replace(minute=0, second=0, microsecond=0)
        if self.per == "hour":
            return (at + timedelta(hours=1)).timestamp()
        at = at.replace(hour=0)
        if self.per == "day":
            return (at + timedelta(days=1)).timestamp()
        return (at.replace(day=1) + timedelta(days=32)).replace(day=1).timestamp()


class AlertSpec(_Strict, frozen=True, kw_only=True):
    """When an alert opens, written like a rule of a gate, and where its messages go."""

    when: str
    to: Channel | list[Channel]


class RuleSpec(_Strict, frozen=True, kw_only=True):
    """A rule in `server.yaml`.

    ``sample`` is a share of the conversations (``10 %`` or 0.1). A ``tagged`` rule is only for
    conversations whose program names it (``baton.otel.tag``). A rule is for all projects, or only
    for ``project``. ``open``: it also scores conversations that are not complete yet.
    """

    name: str
    on: On = "dispatch"
    where: dict[str, Any] | str | None = None
    evaluators: list[str | RuleEvaluator]
    sample: float | str = 1
    budget: Budget | None = None
    open: bool = False
    project: str | None = None
    tagged: bool = False
    alert: AlertSpec | list[AlertSpec] | None = None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Evaluators of a rule that ask the same judge; ``judge`` is ``None`` if none is asked.

    ``made_by`` has a hash of evaluator, options and judge for each evaluator: scores with another
    hash were made with other options, another version, or another judge. ``prices`` are those of
    models, for the cost of the judge.
    """

    plan: Plan
    judge: JudgeSettings | None = None
    made_by: Mapping[str, str] = {}
    prices: Prices | None = None


class Alert(msgspec.Struct, frozen=True, kw_only=True):
    """A condition on the scores of one evaluator of a rule, and where its messages go."""

    when: GateRule
    to: tuple[Channel, ...]


class DriftAlert(msgspec.Struct, frozen=True, kw_only=True):
    """Checks whether a judge still agrees with the distilled judge that answers before it.

    ``file`` is the hash of the distilled judge, ``limit`` the share of answers that may differ.
    """

    evaluator: str
    file: str
    limit: float
    to: tuple[Channel, ...]

    @property
    def text(self) -> str:
        """The condition for lists; a new file or limit makes it a new condition."""
        return f"{DISTILLED} {self.evaluator} ({self.file}) differs > {self.limit:g}"


DISTILLED = "distilled judge of"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A checked rule for arriving conversations; see :class:`RuleSpec`. ``sample`` is 0 to 1."""

    name: str
    on: On
    where: Filter
    parts: tuple[Part, ...]
    spec: RuleSpec
    sample: float = 1.0
    alerts: tuple[Alert, ...] = ()
    drift_alerts: tuple[DriftAlert, ...] = ()

    @property
    def judged(self) -> list[Part]:
        """The parts that ask a judge."""
        return [part for part in self.parts if part.judge is not None]

    @property
    def made_by(self) -> str:
        """A hash of what it scores and how; without alerts and budgets."""
        spec = self.spec
        parts = [dict(part.made_by) for part in self.parts]
        return _hash([spec.on, spec.where, self.sample, spec.open, spec.tagged, parts])

    @property
    def budget(self) -> Budget | None:
        """The maximum cost of its judges."""
        return self.spec.budget

    def samples(self, conversation: str) -> bool:
        """Return whether a conversation is in the sample; the answer never changes.

        A sample of 20 % contains the sample of 10 %, so that all rules score the same
        conversations.
        """
        if self.sample >= 1:
            return True
        number = int.from_bytes(hashlib.sha256(conversation.encode()).digest()[:8], "big")
        return number < self.sample * 2**64


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """All rules of a server, in the order of `server.yaml`."""

    rules: tuple[Rule, ...] = ()

    def for_project(self, project: str, tags: Collection[str] = ()) -> list[Rule]:
        """Return the rules for a conversation of a project whose program named ``tags``."""
        return [
            rule
            for rule in self.rules
            if rule.spec.project in (None, project) and (not rule.spec.tagged or rule.name in tags)
        ]

    def names(self, project: str) -> list[str]:
        """Return the names of the rules for a project."""
        return [each.name for each in self.rules if each.spec.project in (None, project)]

    def unknown(self, project: str, named: Collection[str]) -> set[str]:
        """Return the names that no rule for a project has."""
        return set(named).difference(self.names(project))

    def named(self, name: str) -> Rule | None:
        """Return a rule by its name, if there is one."""
        return next((rule for rule in self.rules if rule.name == name), None)


DEFAULT_RULES = (
    RuleSpec(name="proven by the record", on="conversation", evaluators=[
        RuleEvaluator(type=name, optional=True) for name in PROVEN_BY_RECORD
    ]),
)  # fmt: skip
"""The default rules: evaluators that only need the record, which cost nothing."""


def read_rules(
    document: Document | None = None,
    value: Mapping[str, Any] | None = None,
    written: Mapping[str, Any] | None = None,
    *,
    channels: Collection[str] = (),
    file: str = "server.yaml",
) -> Rules:
    """Read `rules:`, `judges:` and the `prices:` of their models of a `server.yaml`.

    Args:
        document: the file, for the lines of problems; without it, problems only have paths.
        value: its content, with the values of environment variables. Without `rules:` the default
            rules are used; an empty list means no rules.
        written: its content, with references to variables: a key that is written out is refused.
        channels: the names of the addresses in `alerts:`.
        file: where paths of rules start, without a document.

    Raises:
        InputError: all problems, with lines and similar names.
    """
    value = value or {}
    document = document or Document(file, b"", "yaml").part(value, ())
    problems: list[Problem] = []
    judges = _judges(value.get("judges"), written or value, document, problems)
    prices = None if value.get("prices") is None else read_prices(value["prices"], "prices")
    specs: Iterable[RuleSpec | None] = DEFAULT_RULES
    stated = value.get("rules")
    if isinstance(stated, list):
        specs = map(partial(_spec, document, problems), enumerate(stated))
    elif stated is not None:
        specs = ()
        message = "has to be a list of rules"
        problems.append(document.problem_at(("rules",), message))
    folder = Path(document.file).parent
    rules: list[Rule] = []
    names: set[str] = set()
    for index, spec in enumerate(specs):
        if spec is None:
            continue
        faults: list[Problem] = []
        rule = _rule(spec, judges, prices, folder, channels, faults)
        if spec.name in names:
            faults.append(Problem(path="name", message=f"two rules have the name `{spec.name}`"))
        names.add(spec.name)
        for fault in faults:
            path = f"rules[{index}]" + (f".{fault.path}" if fault.path else "")
            located = InputError(msgspec.structs.replace(fault, path=path))
            problems += at_lines(document, located)
        if rule is not None:
            rules.append(rule)
    if problems:
        raise InputError(problems)
    return Rules(rules=tuple(rules))


def _spec(
    document: Document, problems: list[Problem], numbered: tuple[int, object]
) -> RuleSpec | None:
    index, stated = numbered
    try:
        return document.convert(stated, RuleSpec, path=("rules", index))
    except InputError as error:
        problems += error.problems
        return None


def read_judges(stated: object) -> dict[str, JudgeSettings]:
    """Return the judges of `judges:`, by name.

    Raises:
        InputError: all their problems.
    """
    problems: list[Problem] = []
    document = Document("server.yaml", b"", "yaml").part({"judges": stated}, ())
    judges = _judges(stated, {}, document, problems)
    if problems:
        raise InputError(problems)
    return judges


def _judges(
    stated: object, written: Mapping[str, Any], document: Document, problems: list[Problem]
) -> dict[str, JudgeSettings]:
    if stated is None:
        return {}
    if not isinstance(stated, Mapping):
        message = "has to be a mapping of names to judges, such as `haiku: {model: ...}`"
        problems.append(document.problem_at(("judges",), message))
        return {}
    judges: dict[str, JudgeSettings] = {}
    as_written = written.get("judges")
    for name, options in stated.items():
        place = ("judges", str(name))
        plain = {"model": options} if isinstance(options, str) else options
        if not isinstance(plain, Mapping):
            message = "a judge is a model, or a mapping with `model:`"
            problems.append(document.problem_at(place, message))
            continue
        try:
            if isinstance(as_written, Mapping):
                refuse_written_keys(as_written.get(name), place)
            judges[str(name)] = read_settings(plain, place)
        except InputError as error:
            problems += at_lines(document, error)
            judges[str(name)] = _FAULTY  # rules that name it are not faulty for that
    return judges


_FAULTY = read_settings({"model": "openai:faulty"})


def _rule(
    spec: RuleSpec,
    judges: Mapping[str, JudgeSettings],
    prices: Prices | None,
    folder: Path,
    channels: Collection[str],
    problems: list[Problem],
) -> Rule | None:
    before = len(problems)
    where = Filter()
    try:
        where = filter_of(spec.where, FIELDS[spec.on])
    except InputError as error:
        problems += [_below("where", problem) for problem in error.problems]
    sample = _share(spec.sample)
    if sample is None:
        stated = spec.sample if isinstance(spec.sample, str) else f"{spec.sample:g}"
        message = f"expected a share such as `10 %` or 0.1, got `{stated}`"
        problems.append(Problem(path="sample", message=message))
    if not spec.name.strip():
        problems.append(Problem(path="name", message="a rule needs a name"))
    planned, judge_names, options = _planned(spec, judges, folder, problems)
    alerts = [
        alert
        for place, each in _alerts_of(spec)
        if (alert := _alert(each, place, planned, channels, problems)) is not None
    ]
    if len(problems) > before:
        return None
    by_judge: dict[str | None, list[PlannedEvaluator]] = {}
    made_by: dict[str, str] = {}
    for one, judge, option_values in zip(planned, judge_names, options, strict=True):
        by_judge.setdefault(judge, []).append(one)
        made_by[one.evaluator.name] = _made_by(one, option_values, judges[judge] if judge else None)
    parts = [
        Part(
            plan=_plan_of(some, prices),
            judge=None if judge is None else judges[judge],
            made_by={one.evaluator.name: made_by[one.evaluator.name] for one in some},
            prices=prices,
        )
        for judge, some in by_judge.items()
    ]
    return Rule(
        name=spec.name,
        on=spec.on,
        where=where,
        parts=tuple(parts),
        spec=spec,
        sample=sample or 0.0,
        alerts=tuple(alerts),
        drift_alerts=tuple(
            DriftAlert(
                evaluator=each.name,
                file=each.distilled.version,
                limit=each.distilled.options.max_error,
                to=tuple(one for one in get_args(Channel) if one in channels),
            )
            for each in (one.evaluator for one in planned)
            if isinstance(each, Judged) and each.distilled is not None
        ),
    )


def _plan_of(planned: Sequence[PlannedEvaluator], prices: Prices | None) -> Plan:
    needs_prices = any(one.evaluator.type == "cost" for one in planned)
    return Plan(evaluators=tuple(planned), prices=dict(prices or {}) if needs_prices else None)


def _planned(
    spec: RuleSpec,
    judges: Mapping[str, JudgeSettings],
    folder: Path,
    problems: list[Problem],
) -> tuple[list[PlannedEvaluator], list[str | None], list[dict[str, Any]]]:
    """Return the evaluators of a rule, the name of each one's judge, and each one's options."""
    planned: list[PlannedEvaluator] = []
    judge_names: list[str | None] = []
    options: list[dict[str, Any]] = []
    if not spec.evaluators:
        problems.append(Problem(path="evaluators", message="no evaluator is selected"))
    for index, each in enumerate(spec.evaluators):
        place = f"evaluators[{index}]"
        named = each.judge if isinstance(each, RuleEvaluator) else None
        if _names_file_of_examples(_options_of(each)):
            message = "a server uses the labels of the project: leave `file` and `project` out"
            problems.append(Problem(path=f"{place}.config.examples", message=message))
            continue
        try:
            some = make_plan([each], folder=folder).evaluators
        except InputError as error:
            for problem in error.problems:
                inner = problem.path.removeprefix("evaluators[0]").removeprefix(".")
                problems.append(_below(place, msgspec.structs.replace(problem, path=inner)))
            continue
        one = some[0]
        unit, name = one.evaluator.unit, one.evaluator.name
        if unit not in _WITHIN[spec.on]:
            on = next(on for on, units in _WITHIN.items() if unit in units)
            message = (
                f"`{name}` is about a {unit}, and the rule is on a {spec.on}: write `on: {on}`"
            )
            problems.append(Problem(path=place, message=message))
        if any(other.evaluator.name == name for other in planned):
            message = f"`{name}` is a duplicate; give one of them another `name`"
            problems.append(Problem(path=place, message=message))
        judge: str | None = None
        if one.needs_judge:
            judge = _judge_of(name, named, judges, place, problems)
        elif named is not None:
            problems.append(Problem(path=f"{place}.judge", message=f"`{name}` asks no judge"))
        planned.append(one)
        judge_names.append(judge)
        options.append(_options_of(each))
    return planned, judge_names, options


def _options_of(asked: str | RuleEvaluator) -> dict[str, Any]:
    """Return the options of an evaluator, as written."""
    return asked.config if isinstance(asked, RuleEvaluator) else {}


def _names_file_of_examples(options: Mapping[str, Any]) -> bool:
    nested = options.get("options")
    for each in (options, nested if isinstance(nested, Mapping) else {}):
        examples = each.get("examples")
        if isinstance(examples, Mapping) and {"file", "project"} & examples.keys():
            return True
    return False


def _made_by(one: PlannedEvaluator, options: Any, judge: JudgeSettings | None) -> str:
    """Return a hash of an evaluator, its version and options, and of the judge it asks."""
    judge_settings = None if judge is None else [judge.model, judge.samples, judge.temperature]
    return _hash([one.evaluator.type, one.evaluator.version, options, judge_settings])


def _hash(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:16]


def _judge_of(
    evaluator: str,
    named: str | None,
    judges: Mapping[str, JudgeSettings],
    place: str,
    problems: list[Problem],
) -> str | None:
    if named is None and len(judges) == 1:
        return next(iter(judges))
    if named in judges:
        return named
    if named is not None and judges:
        message = f"`judges:` has no `{named}`; {suggestion(named, judges)}"
    elif judges:
        message = f"`{evaluator}` asks a judge: name one, such as `judge: {next(iter(judges))}`"
    else:
        message = (
            f"`{evaluator}` asks a judge: name one under `judges:`, as `haiku: {{model: ...}}`"
        )
    problems.append(Problem(path=place, message=message))
    return None


def _alerts_of(spec: RuleSpec) -> list[tuple[str, AlertSpec]]:
    if isinstance(spec.alert, list):
        return [(f"alert[{index}]", each) for index, each in enumerate(spec.alert)]
    return [] if spec.alert is None else [("alert", spec.alert)]


def _alert(
    spec: AlertSpec,
    place: str,
    planned: Sequence[PlannedEvaluator],
    channels: Collection[str],
    problems: list[Problem],
) -> Alert | None:
    to = tuple(dict.fromkeys([spec.to] if isinstance(spec.to, str) else spec.to))
    for each in to:
        if each not in channels:
            message = f"`alerts:` has no `{each}`: add the address for its messages"
            problems.append(Problem(path=f"{place}.to", message=message))
    try:
        when = read_condition(spec.when)
    except InputError as error:
        problems += [_below(f"{place}.when", problem) for problem in error.problems]
        return None
    names = {name: one.evaluator.name for one in planned for name in one.override_names}
    names |= {one.evaluator.name: one.evaluator.name for one in planned}
    if when.evaluator not in names:
        message = f"the rule has no `{when.evaluator}`; {suggestion(when.evaluator, names)}"
        problems.append(Problem(path=f"{place}.when", message=message))
        return None
    return Alert(when=msgspec.structs.replace(when, evaluator=names[when.evaluator]), to=to)


def _share(stated: float | str) -> float | None:
    match = _PERCENT.fullmatch(str(stated))
    try:
        number = float(match[1]) / (100 if match[2] else 1) if match else -1.0
    except ValueError:
        return None
    return number if 0 < number <= 1 else None


def _below(place: str, problem: Problem) -> Problem:
    path = ".".join(part for part in (place, problem.path) if part)
    return msgspec.structs.replace(problem, path=path)


_RULES = "baton.rules"
"""The attribute of spans or resources with the rules that a program names: `baton.otel.tag`."""
_MOST_NAMED = 100
"""Maximum names that are read from an attribute, which is untrusted: a list may have millions."""


def rules_named(*places: Mapping[str, Any]) -> set[str]:
    """Return the rules that attributes of a span or its resource name, see `baton.otel.tag`.

    The value is a list, or a text with commas, because `OTEL_RESOURCE_ATTRIBUTES` has no lists.
    """
    named: set[str] = set()
    for attributes in places:
        stated = attributes.get(_RULES)
        if stated is None:
            continue
        texts = stated.split(",") if isinstance(stated, str) else stated
        if isinstance(texts, list | tuple):
            named |= {each.strip() for each in texts[:_MOST_NAMED] if isinstance(each, str)}
    return named


def listed(rules: Rules, project: str | None = None) -> list[dict[str, Any]]:
    """Return rules as plain data, as they are written: all, or those for a project.

    Addresses and keys of judges are not included.
    """
    rows = []
    for rule in rules.rules:
        if project is not None and rule.spec.project not in (None, project):
            continue
        evaluators = [
            {
                "name": one.evaluator.name,
                "type": one.evaluator.type,
                "version": one.evaluator.version,
                "judge": part.judge.model if part.judge is not None else None,
            }
            for part in rule.parts
            for one in part.plan.evaluators
        ]
        budget = rule.budget
        rows.append(
            {
                "name": rule.name,
                "on": rule.on,
                "where": rule.spec.where,
                "evaluators": evaluators,
                "sample": rule.sample,
                "budget": None if budget is None else msgspec.to_builtins(budget),
                "open": rule.spec.open,
                "project": rule.spec.project,
                "tagged": rule.spec.tagged,
                "alerts": [
                    {"when": alert.when.text, "to": list(alert.to)} for alert in rule.alerts
                ],
            }
        )
    return rows

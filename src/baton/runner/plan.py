"""The plan of an evaluation, completely checked before anything runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from baton.evaluators.base_evaluator import EvaluatorTraits
from baton.evaluators.defaults import DEFAULT_EVALUATORS, PROVEN_BY_RECORD
from baton.evaluators.registry import (
    all_evaluators,
    evaluator_entry,
    evaluator_of_type,
    known_evaluator_names,
    requested_evaluator,
)
from baton.evaluators.user_defined import NotLoaded, evaluator_of, own_evaluator, traits_of
from baton.formats.explain_mistakes import checked
from baton.formats.key_case import snake
from baton.gate.read_thresholds import Gate
from baton.model import (
    Case,
    Dataset,
    EvalContext,
    Evaluator,
    InputError,
    Location,
    Problem,
    Provenance,
    Score,
    Status,
    Trace,
    case_status,
    suggestion,
)
from baton.model.redact import ON, Redaction
from baton.model.score import passes
from baton.model.views import broken
from baton.plugins import (
    Alias,
    Entry,
    Origin,
    names_code,
    refused_options,
)

from .costs import ModelPrice

Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class MeanRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The mean of the evaluators' values must reach ``mean``."""

    mean: Share


PassRule = Literal["all"] | MeanRule


class Verdict(NamedTuple):
    """The status of a case, and the mean if it decided."""

    status: Status
    mean: float | None = None


def verdict(rule: PassRule, scores: Sequence[Score]) -> Verdict:
    """Sum up a case.

    ``all``: every score passes. A mean is taken over the evaluators, several scores of one
    averaged first; what is skipped is left out. Under both rules an error is an error, and a
    case without any value is skipped.
    """
    status = case_status([score.status for score in scores])
    if rule == "all" or status in ("error", "skipped"):
        return Verdict(status)
    values: dict[str, list[float]] = {}
    for score in scores:
        if score.value is not None:
            values.setdefault(score.evaluator, []).append(score.value)
    mean = sum(sum(each) / len(each) for each in values.values()) / len(values)
    return Verdict("passed" if passes(mean, rule.mean) else "failed", mean)


def read_rule(spec: str | Mapping[str, float] | PassRule) -> PassRule:
    """Read ``all`` or ``{"mean": 0.8}``; raises InputError for anything else."""
    plain = dict(spec) if isinstance(spec, Mapping) else spec
    try:
        rule: PassRule = msgspec.convert(plain, PassRule)
        return rule
    except msgspec.ValidationError:
        message = (
            f"{spec!r} is not a pass rule: write `all`, or `mean` with a threshold from 0 to 1"
        )
        raise InputError(Problem(path="pass_rule", message=message)) from None


def broken_turn(trace: Trace) -> str | None:
    """Say what broke the first incomplete turn; such a case cannot be judged."""
    for number, turn in enumerate(trace.turns, 1):
        trouble = broken(turn)
        if trouble is not None:
            return f"turn {number} {trouble}"
    return None


class EvaluatorSpec(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An evaluator as requested by a config.

    ``name`` distinguishes two of the same type; if ``optional``, it may score nothing without an
    error of the evaluation.
    """

    type: str
    name: str | None = None
    enabled: bool = True
    optional: bool = False
    config: dict[str, Any] = msgspec.field(default_factory=dict)


AnyEvaluator = Mapping[str, Any] | EvaluatorSpec | Evaluator | str | Callable[..., Any]
"""How a program may request an evaluator: plain data, a spec, an object, a name or a function."""
Specs = Iterable[AnyEvaluator]
"""A name may have a threshold: `result_used:0.8`."""


class DataSpec(EvaluatorSpec, kw_only=True):
    """An evaluator that a data file requests, such as an experiment of Strands.

    It keeps its origin: a plan accepts only names of the registry, and refuses options that name
    code, addresses or folders.
    """


PROVEN_SPECS = tuple(EvaluatorSpec(type=name, optional=True) for name in PROVEN_BY_RECORD)
"""Evaluators that use the record alone: no case has to state expectations."""


class PlannedEvaluator(msgspec.Struct, frozen=True, kw_only=True):
    """An evaluator that will run, and its names for overriding options in a case."""

    evaluator: Evaluator
    optional: bool = False
    override_names: tuple[str, ...] = ()
    entry: Entry | None = None

    @property
    def needs_judge(self) -> bool:
        """Whether it asks a judge."""
        return traits_of(self.evaluator).needs_judge

    def for_case(self, case: Case | None) -> Evaluator:
        """Return the evaluator with the options that a case overrides."""
        if case is None or not case.evaluators:
            return self.evaluator
        return self.evaluator.with_options(self.override_in(case.evaluators))

    def override_in(self, overrides: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Collect the options for this evaluator.

        Raises:
            InputError: a case must not set one of them: it names code, an address or a folder.
        """
        collected: dict[str, Any] = {}
        for name in self.override_names:
            options = overrides.get(name)
            if not options:
                continue
            alias = self.entry.asked_as(name) if self.entry else Alias(name, name)
            refused = traits_of(self.evaluator).refused_options(alias.renamed(options), "case")
            _raise_refused(refused, name, "case")
            collected |= alias.translate(options)
        return collected


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Evaluators and their shared data.

    ``files`` has the evaluators of files with separate criteria. ``prices`` of ``None`` leave costs
    as in the source. ``by_agent`` are the evaluators whose scores are summed up by agent,
    ``redaction`` says what to redact in traces before they are judged and stored, ``provenance`` is
    what is known before the start, ``window`` is the number of cases that may wait for judges.
    """

    evaluators: tuple[PlannedEvaluator, ...]
    files: Mapping[str, tuple[PlannedEvaluator, ...]] = msgspec.field(default_factory=dict)
    context: EvalContext = msgspec.field(default_factory=EvalContext)
    pass_rule: PassRule = "all"
    prices: Mapping[str, ModelPrice] | None = None
    default_model: str | None = None
    gate: Gate = Gate()
    by_agent: frozenset[str] = frozenset()
    redaction: Redaction = ON
    provenance: Provenance | None = None
    window: int = 64

    def evaluators_for(self, where: Location | None) -> tuple[PlannedEvaluator, ...]:
        """Return the evaluators of a case by its place."""
        return self.evaluators if where is None else self.files.get(where.file, self.evaluators)

    @property
    def needs_judge(self) -> bool:
        """Whether one of its evaluators asks a judge."""
        return any(planned.needs_judge for planned in self.every_evaluator)

    @property
    def every_evaluator(self) -> list[PlannedEvaluator]:
        """The evaluators of every file, including duplicates of names."""
        groups = [*self.files.values()] if self.files else [self.evaluators]
        return [planned for group in groups for planned in group]

    @property
    def all_evaluators(self) -> dict[str, PlannedEvaluator]:
        """Every evaluator of the plan, by name."""
        by_name: dict[str, PlannedEvaluator] = {}
        for group in (*self.files.values(), *(() if self.files else (self.evaluators,))):
            for planned in group:
                by_name.setdefault(planned.evaluator.name, planned)
        return by_name


def make_plan(
    specs: Specs | None,
    *,
    agent_names: Mapping[str, str] | None = None,
    pass_rule: PassRule = "all",
    prices: Mapping[str, ModelPrice] | None = None,
    default_model: str | None = None,
    folder: Path | None = None,
    own_code: bool = True,
    rubrics: Sequence[Entry] = (),
) -> Plan:
    """Build the requested evaluators: specs (``{"type": ..., "config": {...}}``), names, objects.

    Costs are computed if there are ``prices``, or an evaluator needs them. A type of the form
    ``module:name`` is the user's own, searched in ``folder`` (by default the current one); without
    ``own_code`` no user code is imported, and evaluators that need it score nothing. ``rubrics``
    are the user's; a type may also be the file of one (``polite.yaml``). A name in a
    :class:`DataSpec` has to be in the registry.

    Raises:
        InputError: lists all unknown evaluators, options or values, with similar names.
    """
    planned: list[PlannedEvaluator] = []
    problems: list[Problem] = []
    wanted = [specs] if isinstance(specs, str) else specs
    for index, spec in enumerate(DEFAULT_EVALUATORS if wanted is None else wanted):
        try:
            made = _plan_one(spec, folder or Path(), own_code, rubrics)
        except InputError as error:
            for problem in error.problems:
                path = ".".join(part for part in (f"evaluators[{index}]", problem.path) if part)
                problems.append(msgspec.structs.replace(problem, path=path))
            continue
        if made is not None and made.evaluator.name in {p.evaluator.name for p in planned}:
            message = f"`{made.evaluator.name}` is a duplicate; give one of them another `name`"
            problems.append(Problem(path=f"evaluators[{index}]", message=message))
        elif made is not None:
            planned.append(made)
    if not planned and not problems:
        problems.append(Problem(message="no evaluator is selected"))
    if problems:
        raise InputError(problems)
    if prices is None and any(made.evaluator.type == "cost" for made in planned):
        prices = {}
    return Plan(
        evaluators=tuple(planned),
        context=EvalContext(agent_names=dict(agent_names or {})),
        pass_rule=pass_rule,
        prices=prices,
        default_model=default_model,
    )


def unchecked(plan: Plan, dataset: Dataset) -> list[str]:
    """Return what cases state and no evaluator of the plan checks, by name."""
    checked: set[str] = set()
    for planned in plan.all_evaluators.values():
        names = traits_of(planned.evaluator).checks
        if names is None:
            return []
        checked |= names
    return sorted(dataset.stated - checked - {"dispatch", "llm"})


def check_overrides(plan: Plan, dataset: Dataset, *, also_unasked: bool = False) -> None:
    """Check the options that cases override.

    ``also_unasked`` also checks options of evaluators that are not in the plan, as far as a case
    may set them.

    Raises:
        InputError: lists every option that is wrong, or that a case must not set.
    """
    if not dataset.overrides:
        return
    problems: list[Problem] = []
    every = plan.all_evaluators.values()
    names = known_evaluator_names() | {n for p in every for n in p.override_names}
    for case_id, place, options in dataset.overrides:
        where = place or Location(file=dataset.name)
        for name in options:
            if name not in names:
                message = f"unknown evaluator `{name}`; {suggestion(name, names)}"
                problems.append(_of_case(where, case_id, Problem(message=message)))
            elif also_unasked and not any(name in p.override_names for p in every):
                try:
                    # A built-in one that is not in the plan: its options are checked, too.
                    entry = next((each for each in all_evaluators() if name in each.names), None)
                    if entry is not None:
                        ours = entry.asked_as(name).renamed(options[name])
                        _raise_refused(
                            refused_options(entry.target.options_type, ours, "case"), name, "case"
                        )
                except InputError as error:
                    problems += [_of_case(where, case_id, problem) for problem in error.problems]
        for planned in plan.evaluators_for(place):
            try:
                overridden = planned.evaluator.with_options(planned.override_in(options))
                judge = plan.context.judge
                if judge is not None:
                    for own in judge_options(overridden):
                        judge.with_options(own)
            except InputError as error:
                problems += [_of_case(where, case_id, problem) for problem in error.problems]
    if problems:
        raise InputError(problems)


def judge_options(evaluator: Evaluator) -> list[Mapping[str, Any]]:
    """Return an evaluator's own settings of a judge: one per model that it calls."""
    return [each for each in traits_of(evaluator).judge_options if each]


def with_threshold(name: str) -> tuple[str, float | None]:
    """Split `NAME:0.8` into an evaluator and its threshold, if given.

    For code (`module:name`) the part after the colon is never a number.
    """
    plain, _, number = name.rpartition(":")
    return (plain, float(number)) if plain and _NUMBER.fullmatch(number) else (name, None)


_NUMBER = re.compile(r"[0-9]*\.?[0-9]+(?:e-?[0-9]+)?")


def _check_has_threshold(word: str, name: str, folder: Path, rubrics: Sequence[Entry]) -> None:
    """Refuse `agent_chain:0.9`, as what passes there is decided by another option."""
    entry, asked = requested_evaluator(name, folder, rubrics)
    renamed = entry.asked_as(asked).renamed({"threshold": 0})
    known = [field.encode_name for field in msgspec.structs.fields(entry.target.options_type)]
    if not renamed.keys() & set(known):
        options = ", ".join(f"`{each}`" for each in known)
        raise InputError(f"`{word}`: it has no threshold; in a config it takes {options}")


def _plan_one(
    spec: AnyEvaluator,
    folder: Path,
    own_code: bool,
    rubrics: Sequence[Entry],
) -> PlannedEvaluator | None:
    if isinstance(spec, str):
        name, threshold = with_threshold(spec)
        config = {} if threshold is None else {"threshold": threshold}
        if config:
            _check_has_threshold(spec, name, folder, rubrics)
        spec = EvaluatorSpec(type=name, config=config)
    elif isinstance(spec, Mapping):
        spec = _spec_of(spec)
    if not isinstance(spec, EvaluatorSpec):
        configured = evaluator_of(spec)
        # An object that a program made has all the names of its evaluator in a case, too.
        is_ours = isinstance(configured, EvaluatorTraits)
        known = evaluator_of_type(configured.type) if is_ours else None
        called = [configured.type] if known is None else known.names
        return PlannedEvaluator(
            evaluator=configured,
            entry=known,
            override_names=tuple(dict.fromkeys([*called, configured.name])),
        )
    if not spec.enabled:
        return None
    of_data = isinstance(spec, DataSpec)
    if of_data and names_code(spec.type):
        raise InputError(f"`{spec.type}` {_NOT_FROM_DATA}")
    first, colon, _ = spec.type.partition(":")
    if colon and first in known_evaluator_names():
        # Such as `response:strict`: a name can only have a threshold.
        has_module = (folder / f"{first}.py").is_file() or (folder / first).is_dir()
        if not has_module:
            advice = f"write a threshold as `{first}:0.8`, other options of it in a config"
            raise InputError(f"`{spec.type}`: {advice}")
    if ":" in spec.type:
        own: Evaluator = NotLoaded(spec.name or spec.type, spec.type)
        if own_code:
            own = own_evaluator(spec.type, spec.name, spec.config, folder)
        names = tuple(dict.fromkeys((own.type, own.name)))
        return PlannedEvaluator(evaluator=own, optional=spec.optional, override_names=names)
    entry, asked = requested_evaluator(spec.type, folder, rubrics)
    alias = entry.asked_as(asked)
    maker = entry.target
    if of_data and entry.runs_code:
        raise InputError(f"`{spec.type}` {_NOT_FROM_DATA}")
    if of_data:
        refused = refused_options(maker.options_type, alias.renamed(spec.config), "file")
        _raise_refused(refused, "config", "file")
    options = _located(alias.completed(spec.config), folder)
    try:
        if entry.runs_code and not own_code:
            # It runs user code, which is not loaded; its options are checked.
            name = spec.name or asked
            return PlannedEvaluator(
                evaluator=NotLoaded(
                    name, entry.type, type(checked(options, maker.options_type, ("config",)))
                ),
                entry=entry,
                optional=spec.optional,
                override_names=tuple(dict.fromkeys([*entry.names, name])),
            )
        more = {"rubrics": rubrics} if entry.takes_rubrics else {}
        evaluator: Evaluator = maker.from_options(spec.name or asked, options, **more)
    except InputError as error:
        raise alias.in_its_words(error) from None
    name = evaluator.name
    return PlannedEvaluator(
        evaluator=evaluator,
        entry=entry,
        optional=spec.optional,
        override_names=tuple(dict.fromkeys([*entry.names, name])),
    )


def _spec_of(given: Mapping[str, Any]) -> EvaluatorSpec:
    try:
        return checked(dict(given), EvaluatorSpec)
    except InputError as error:
        type_ = given.get("type")
        raise InputError(
            with_place_of_option(each, each.path, type_) for each in error.problems
        ) from None


def with_place_of_option(problem: Problem, key: str, type_: object) -> Problem:
    """Say where an option belongs that was written beside the ``type`` of an evaluator."""
    options = _options_of(type_) if isinstance(type_, str) else set[str]()
    if not problem.message.startswith("unknown key"):
        return problem
    if snake(key) in options:
        message = f"is an option of `{type_}`: put it under `config:`"
    elif options and "did you mean" not in problem.message:
        known = ", ".join(sorted(options))
        message = f"unknown key; options of `{type_}` go under `config:`: {known}"
    else:
        return problem
    return msgspec.structs.replace(problem, message=message)


def _options_of(name: str) -> set[str]:
    """Return the names of an evaluator's options, Baton's and those of an alias."""
    try:
        entry = evaluator_entry(name)
    except InputError:
        return set()
    alias = entry.asked_as(name)
    theirs = {*alias.renames, *alias.unused, *(option for option, _ in alias.values)}
    ours = msgspec.structs.fields(entry.target.options_type)
    return {field.encode_name for field in ours} | theirs


_NOT_FROM_DATA = (
    "names code, and a file of data may name only what `baton list` shows; if you trust the code, "
    "write it under `evaluators:` of a config of your own"
)
_NOT_BY: Mapping[Origin, str] = {
    "case": "a case may set thresholds and what to compare with; set judges, what they are asked, "
    "code, addresses and folders in a config of your own",
    "file": "a file of data may not set this: write the evaluator under `evaluators:` of a config "
    "of your own",
}


def _raise_refused(refused: Sequence[str], at: str, origin: Origin) -> None:
    """Raise InputError if there are options that data must not set; ``at`` is their place."""
    if refused:
        raise InputError(
            Problem(path=f"{at}.{option}", message=_NOT_BY[origin]) for option in refused
        )


def _of_case(where: Location, case_id: str, problem: Problem) -> Problem:
    path = f"case `{case_id}`" + (f": {problem.path}" if problem.path else "")
    return Problem(file=where.file, line=where.line, path=path, message=problem.message)


def _located(config: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return options of a rubric with their files resolved from a folder."""
    located = dict(config)
    for name in ("examples", "distilled"):
        value = config.get(name)
        if isinstance(value, Mapping) and isinstance(value.get("file"), str):
            located[name] = {**value, "file": str(folder / value["file"])}
    if isinstance(config.get("options"), Mapping):  # for a panel: those of its rubric
        located["options"] = _located(config["options"], folder)
    return located

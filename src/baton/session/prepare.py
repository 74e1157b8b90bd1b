"""Loads and checks everything that an evaluation needs: cases, evaluators, judge, gate."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

import msgspec

from baton.config import Config
from baton.config.choose_evaluators import choose_evaluators, left_unchecked
from baton.config.collect_provenance import provenance_of, refuse_others
from baton.config.judge_config import JudgeFlags, judge_config, ready
from baton.config.trust import Trust, trust_of
from baton.datasets import load_dataset
from baton.formats.document import Document
from baton.formats.evaluation_header import VERSION, Header
from baton.gate.read_thresholds import read_gate
from baton.judges.judge_settings import settings_of
from baton.model import Case, ChangedText, Dataset, InputError, Judge, Trace, suggestion
from baton.model.mask_known_secrets import masked
from baton.model.option_spelling import option
from baton.model.prices import ModelPrice
from baton.model.redact import OFF, ON, Redaction, RedactLike, redaction_of
from baton.readers import Catalog, load_catalog
from baton.runner.costs import read_prices
from baton.runner.plan import Plan, Specs, make_plan, read_rule

from .file_kinds import config_of, is_kind, not_a_dataset

PathLike = str | os.PathLike[str]
TracesLike = Trace | Iterable[Trace | PathLike] | PathLike
DatasetLike = Dataset | Sequence[Case | PathLike] | PathLike
Rule = str | Mapping[str, float]
Prices = Mapping[str, Mapping[str, float]]
JudgeLike = Judge | JudgeFlags | str | Mapping[str, Any]
GateLike = str | Sequence[str | Mapping[str, Any]] | Mapping[str, Any]
TrustLike = Trust | PathLike | Iterable[PathLike]
Note = Callable[[str], None]
"""Called with a line that a user should know and that is not part of a report."""


def log_note(text: str) -> None:
    """Log a note as a warning of the logger `baton`: the default receiver of notes."""
    import logging  # rarely needed

    logging.getLogger("baton").warning(text)


class ScoreOptions(TypedDict, total=False):
    """How to score: the options of :func:`baton.score`, which :func:`baton.evaluate` also has.

    Options override the config; ``None`` is the same as leaving one out.

    Keys:
        config: a config (YAML), with evaluators, judge, gate, dataset and so on; or criteria of
            ADK (a ``test_config.json`` of any name), detected by their content.
        agents: agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML.
        pass_rule: ``all``, or ``{"mean": 0.8}``: the mean of the evaluators' values decides.
        prices: USD per million tokens by model: ``{"gpt-x": {"input": 1.25, "output": 10}}``.
        agent_names: the names that cases use, by recorded name of the agent.
        judge: the judge of judged evaluators: a model (``"openai:gpt-4o-mini"``), plain data as
            for `judge:` of a config, or an object with the methods of ``Judge``. Verdicts are
            cached in ``.baton/verdicts.sqlite``; ``cache`` in the data names another file, or is
            false.
        gate: rules such as ``"scope_fidelity by agent >= 0.9"``, or plain data as for `gate:` of
            a config.
        name: the name of the evaluation; by default that of the config or the dataset.
        trust: folders whose ``test_config.json`` may name code although nobody named the file.
        redact: what to replace with tags before it is judged or stored. Secrets by default;
            ``False`` for nothing; further kinds (``["email"]``); or a mapping with ``kinds`` and
            ``patterns`` (``{"patterns": {"employee": "EMP-[0-9]{6}"}}``).
        redact_kinds: kinds in addition to ``redact`` or the config.
        by_cases: if nothing names evaluators, choose them by what cases state; ``evaluate`` always
            does.
        note: called with each line that is worth knowing and not part of a report, such as an
            unused input; by default the logger `baton` warns.
    """

    config: PathLike | Config | None
    agents: PathLike | None
    pass_rule: Rule | None
    prices: Prices | None
    agent_names: Mapping[str, str] | None
    judge: JudgeLike | None
    gate: GateLike
    name: str | None
    trust: TrustLike
    redact: RedactLike
    redact_kinds: Sequence[str]
    by_cases: bool
    note: Note


def refuse_unknown(function: str, options: Mapping[str, Any], known: Iterable[str]) -> None:
    """Raise InputError for an option that a function does not have, with similar names."""
    names = set(known)
    for name in options:
        if name not in names:
            raise InputError(f"{function} has no option `{name}`; {suggestion(name, names)}")


def judge_flags_of(options: ScoreOptions) -> JudgeFlags:
    """Return the judge of these options as flags.

    Raises:
        InputError: the judge is not just a model: it is settings or an object.
    """
    judge = options.get("judge")
    if judge is None or isinstance(judge, JudgeFlags):
        return judge or JudgeFlags()
    if isinstance(judge, str):
        return JudgeFlags(model=judge)
    raise InputError(f"{option('judge')} takes only a model here; put its settings into a config")


class Criteria(msgspec.Struct, frozen=True):
    """A file of ADK's criteria; ``found``: it was found next to data, and not named by the user."""

    file: Path
    found: bool = False


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """Files that were loaded for an evaluation; any of them may be missing.

    ``paths`` are those of the dataset; ``definitions`` is the file of agent definitions that
    ``catalog`` was read from. Given paths override those of the config. ``criteria`` are those of
    ADK, if they were given as the config.
    """

    config: Config | None = None
    criteria: Criteria | None = None
    dataset: Dataset | None = None
    paths: list[str] = msgspec.field(default_factory=list)
    definitions: str | None = None
    catalog: Catalog | None = None


def inputs_of(
    options: ScoreOptions, dataset: DatasetLike | None, agents: PathLike | None = None
) -> Inputs:
    """Load the config that the options name, its cases and its agent definitions.

    ``agents`` are definitions that are used if neither options nor config name some. In a
    rehearsal the user's own code is not imported.

    Raises:
        InputError: a file with errors; recordings where cases are meant.
    """
    config, judge = options.get("config"), options.get("judge")
    note = options.get("note", log_note)
    criteria: Criteria | None = None
    if config is not None and not isinstance(config, Config):
        criteria = Criteria(Path(config)) if is_criteria(config) else None
    if criteria is not None:
        config = None
    elif config is not None and not isinstance(config, Config):
        rehearsal = isinstance(judge, JudgeFlags) and judge.rehearsal
        config = config_of(config, own_code=not rehearsal)
    for text in config.notes if config is not None else ():
        note(text)
    if config is not None and config.agents:
        agents = None
    inputs = load_inputs(config, dataset, options.get("agents") or agents, note)
    return inputs if criteria is None else msgspec.structs.replace(inputs, criteria=criteria)


def is_criteria(config: PathLike | Config) -> bool:
    """Return whether a file given with ``-c`` contains ADK's criteria and not a config."""
    return not isinstance(config, Config) and is_kind(Path(config), "criteria")


def load_inputs(
    config: Config | None,
    dataset: DatasetLike | None = None,
    agents: PathLike | None = None,
    note: Note = log_note,
) -> Inputs:
    """Load the given cases and agent definitions, else those of the config.

    Raises:
        InputError: a file with errors; recordings where cases are meant.
    """
    definitions = agents or (config.agents if config else None)
    catalog = load_catalog(definitions) if definitions is not None else None
    if dataset is None:
        dataset = (config.dataset if config else None) or None
    if isinstance(dataset, Dataset):
        cases, paths = dataset, list(dataset.files)
    else:
        some = [dataset] if isinstance(dataset, str | os.PathLike) else list(dataset or ())
        paths = [os.fspath(each) for each in some if isinstance(each, str | os.PathLike)]
        made = [each for each in some if isinstance(each, Case)]
        if len(made) + len(paths) < len(some) or (made and paths):
            kinds = ", ".join(sorted({type(each).__name__ for each in some}))
            raise InputError(
                f"a dataset is a path, several paths, a Dataset or a list of Case, not {kinds}"
            )
        paths = each_once(paths, note)
        cases = load_cases(paths, config, catalog) if paths else Dataset(made)
    return Inputs(
        config=config,
        dataset=None if dataset is None else cases,
        paths=paths,
        definitions=None if definitions is None else str(definitions),
        catalog=catalog,
    )


def traces_or_paths(traces: TracesLike) -> list[Trace | str]:
    """Return traces and paths of recordings as a list, in their order.

    Raises:
        InputError: something is neither.
    """
    some = [traces] if isinstance(traces, str | os.PathLike | Trace) else traces
    if not isinstance(some, Iterable):
        raise InputError(f"traces are Traces or paths, not {type(traces).__name__}")
    listed: list[Trace | str] = []
    for each in some:
        if not isinstance(each, str | os.PathLike | Trace):
            raise InputError(f"a trace is a Trace or a path, not {type(each).__name__}")
        listed.append(each if isinstance(each, Trace) else os.fspath(each))
    return listed


def each_once(paths: Iterable[PathLike], note: Note) -> list[str]:
    """Remove duplicate paths, even with another spelling (`runs`, `./runs`)."""
    known: dict[str, str] = {}
    for each in paths:
        path = os.fspath(each)
        try:
            place = os.path.realpath(path)
        except ValueError:  # it contains a NUL, and is reported when it is opened
            place = path
        if place in known:
            note(f"{path} is given twice: it counts once")
        else:
            known[place] = path
    return list(known.values())


def load_cases(paths: list[str], config: Config | None, catalog: Catalog | None = None) -> Dataset:
    """Load a dataset; an error in a path from a config names the config."""
    try:
        return load_dataset(paths, agents=catalog)
    except InputError as error:
        mistaken = not_a_dataset(map(Path, paths))
        if mistaken:
            raise InputError(mistaken) from None
        if config is None or paths != config.dataset:
            raise
        line = Document(config.file, config.data, "yaml").line(("dataset",))
        place = config.file if line is None else f"{config.file}:{line}"
        raise InputError(
            msgspec.structs.replace(problem, message=f"{problem.message} (`dataset` of {place})")
            for problem in error.problems
        ) from None


def prepare(
    inputs: Inputs,
    evaluators: Specs | None,
    options: ScoreOptions,
    *,
    criteria: Criteria | None = None,
    player_prices: Mapping[str, ModelPrice] | None = None,
    player_model: str | None = None,
) -> Plan:
    """Decide how to score: evaluators, redaction, judge and gate, all of them checked.

    Args:
        inputs: the cases, if there are any, and the config, whose evaluators, judge and gate are
            used unless others are given.
        evaluators: the evaluators; they override config and cases.
        options: all other options.
        criteria: criteria of ADK to score with.
        player_prices: prices that a provider states; those of the options override them.
        player_model: the model of a provider, for runs without a recorded model.

    Raises:
        InputError: options that exclude each other, a file that is not trusted, an unknown
            evaluator, option or value, or a missing judge.
    """
    config, judge, criteria = inputs.config, options.get("judge"), criteria or inputs.criteria
    flags = judge if isinstance(judge, JudgeFlags) else JudgeFlags()
    own_code = not flags.rehearsal
    plan = choose_evaluators(
        inputs.dataset,
        config.plan_with if config else functools.partial(make_plan, own_code=own_code),
        evaluators=evaluators,
        configured=config.plan if config and config.evaluators is not None else None,
        criteria=None if criteria is None else criteria.file,
        criteria_found=criteria is not None and criteria.found,
        by_cases=options.get("by_cases", False),
        trust=trust_in(options),
        own_code=own_code,
    )
    changes: dict[str, Any] = {"redaction": redaction_in(config, options)}
    if (pass_rule := options.get("pass_rule")) is not None:
        changes["pass_rule"] = read_rule(pass_rule)
    if (names := options.get("agent_names")) is not None:
        changes["context"] = msgspec.structs.replace(plan.context, agent_names=dict(names))
    if (stated := options.get("prices")) is not None or player_prices:
        own = {} if stated is None else read_prices(stated, "prices")
        changes["prices"] = {**(plan.prices or {}), **(player_prices or {}), **own}
    if player_model is not None:
        changes["default_model"] = player_model
    plan = msgspec.structs.replace(plan, **changes)
    rules = options.get("gate") or ()
    gate = config.gate if config is not None and not rules else read_gate(rules)
    # An LLM may stand in for tools while cases are played, but not when recordings are scored.
    plays = options.get("by_cases", False) and inputs.dataset is not None
    configured = config.stand_ins if config is not None else None
    answers = plays and (
        (inputs.dataset is not None and "llm" in inputs.dataset.stated)
        or (configured is not None and configured.asks_llm)
    )
    if isinstance(judge, str) and config is not None:
        flags = JudgeFlags(model=judge)
    elif judge is not None and not isinstance(judge, JudgeFlags):
        settings = judge if isinstance(judge, Judge) else judge_config(judge)
        return ready(plan, settings, flags, gate, answers_tools=answers)
    judging = config.judging if config is not None else None
    return ready(plan, judging, flags, gate, answers_tools=answers)


def trust_in(options: ScoreOptions) -> Trust:
    """Return the trust in found files from the options; by default ``NOBODY``."""
    trust = options.get("trust", ())
    return trust if isinstance(trust, Trust) else trust_of(trust)


def for_this(plan: Plan, dataset: Dataset | None) -> Plan:
    """Return the plan with its provenance, if its gate is for certain data only.

    Raises:
        InputError: the gate is for another dataset, or its baseline does not exist.
    """
    if plan.gate.regression is None and plan.gate.bound is None:
        return plan
    provenance = provenance_of(plan, dataset)
    refuse_others(plan.gate, provenance)
    return msgspec.structs.replace(plan, provenance=provenance)


def folder_header(
    plan: Plan,
    inputs: Inputs,
    played_by: str | None = None,
    *,
    git: bool = True,
    changes: Sequence[ChangedText] = (),
) -> Header:
    """Return the header of an evaluation folder, as far as it says how the evaluation is made.

    ``played_by`` is the type of the provider; ``changes`` are the changed texts. Without ``git``
    the commit is left out, because finding it takes longer than everything else. The caller adds
    what only its kind of evaluation has, such as the paths of recordings.

    Raises:
        InputError: the gate is for another dataset or config, or its baseline does not exist.
    """
    from baton import __version__

    config = inputs.config
    provenance = provenance_of(
        plan,
        inputs.dataset,
        config.resolved if config else None,
        [] if played_by is None else [played_by],
        config.folder if config else None,
        inputs.catalog,
        git=git,
    )
    provenance.texts = list(changes)
    refuse_others(plan.gate, provenance)
    settings = settings_of(plan.context.judge)
    notices = [] if inputs.dataset is None else left_unchecked(plan, inputs.dataset)
    if changes:
        notices = [*notices, f"played with changed texts: {', '.join(map(str, changes))}"]
    return Header(
        version=VERSION,
        versions={"baton": __version__},
        dataset=inputs.paths,
        pass_rule=msgspec.to_builtins(plan.pass_rule),
        config=config.resolved if config else None,
        redact=plan.redaction.as_config,
        judge=None if settings is None else masked(msgspec.to_builtins(settings)),  # without keys
        prices=None if plan.prices is None else dict(plan.prices),
        provenance=provenance,
        evaluator_versions={
            name: planned.evaluator.version for name, planned in plan.all_evaluators.items()
        },
        notices=notices,
    )


def redaction_in(config: Config | None, options: ScoreOptions) -> Redaction:
    """Override the redaction of a config by the options.

    Raises:
        InputError: an unknown kind, or kinds while nothing is to be redacted.
    """
    redact, kinds = options.get("redact"), options.get("redact_kinds", ())
    configured = config.redaction if config is not None else ON
    if redact is None or isinstance(redact, bool):
        return redaction_with(configured, redact, kinds)
    return redaction_with(redaction_of(redact), None, kinds)


def redaction_with(
    configured: Redaction, redact: bool | None, kinds: Sequence[str] = ()
) -> Redaction:
    """Override the redaction of a config.

    ``None`` for ``redact`` leaves it as configured; ``kinds`` are added to the configured ones.

    Raises:
        InputError: an unknown kind, or kinds while nothing is to be redacted.
    """
    if redact is False:
        if kinds:
            both = f"{option('redact', False)} and {option('redact_kinds')}"
            raise InputError(f"{both} exclude one another: give one")
        return OFF
    redaction = ON if redact and not configured.is_on else configured
    if not kinds:
        return redaction
    more = redaction_of(list(kinds), option("redact_kinds"))
    every = sorted({*redaction.kinds, *more.kinds})
    return msgspec.structs.replace(redaction, kinds=redaction_of(every).kinds)


def gated_by_some(plan: Plan, cases: Dataset, note: Note) -> Plan:
    """Remove the rules of a gate that only make sense for all cases, and add a note."""
    if not plan.gate:
        return plan
    from baton.gate.decide import for_some_cases  # it imports the comparison of evaluations

    tags = {tag for case in cases for tag in case.tags} if plan.gate.rules else set()
    part = for_some_cases(plan.gate, cases.ids, tags)
    if part.left_out:
        note(f"gate rules for all cases are not checked here: {', '.join(part.left_out)}")
    return msgspec.structs.replace(plan, gate=part.gate)

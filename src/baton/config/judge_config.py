"""The judge of an evaluation: its settings in a config, and what one run overrides."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from baton.config.dialects.accelerator import model_of_label
from baton.evaluators.user_defined import traits_of
from baton.formats.document import Document
from baton.formats.explain_mistakes import Path as Place
from baton.gate.read_thresholds import Gate, named
from baton.judges.judge_settings import (
    JudgeSettings,
    read_settings,
    refuse_written_keys,
    replaced,
    settings_of,
)
from baton.model import Evaluator, InputError, Judge, Problem
from baton.model.option_spelling import option
from baton.runner.plan import Plan, PlannedEvaluator, judge_options

if TYPE_CHECKING:
    from baton.judges.judge import LlmJudge

CACHE = Path(".baton/verdicts.sqlite")
"""The cache of verdicts, unless a config names another file."""

_ANY = "openai:any"
_EXAMPLE = "openai:gpt-4o-mini"


class JudgeConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `judge:`: settings as plain data, maybe without a model, and the cache.

    ``models`` are those that a run may name by their labels in the config.
    """

    options: dict[str, Any] = msgspec.field(default_factory=dict)
    cache: Path | None = CACHE
    models: Mapping[str, str] = msgspec.field(default_factory=dict)

    @property
    def settings(self) -> JudgeSettings | None:
        """The settings; ``None`` when no model is named."""
        return read_settings(self.options) if self.options.get("model") else None


class JudgeFlags(msgspec.Struct, frozen=True, kw_only=True):
    """A run's options for its judge.

    If ``cached`` is false, verdicts are neither read from the cache nor stored; with ``cache_only``
    no model is called. ``max_cost`` is in USD. A ``rehearsal`` calls no model and counts the calls
    it would make.
    """

    model: str | None = None
    cached: bool = True
    cache_only: bool = False
    max_cost: float | None = None
    max_calls: int | None = None
    rehearsal: bool = False


def judge_flags(
    judge: str | None = None,
    *,
    no_cache: bool = False,
    cache_only: bool = False,
    max_cost: float | None = None,
    max_judge_calls: int | None = None,
    rehearsal: bool = False,
) -> JudgeFlags:
    """Check the judge's options on the command line together, by their names there.

    Raises:
        InputError: options that contradict each other, or a limit below 0.
    """
    if no_cache and cache_only:
        both = f"{option('no_cache')} and {option('cache_only')}"
        raise InputError(f"{both} contradict each other: give one of them")
    if max_cost is not None and not max_cost >= 0:
        raise InputError(f"{option('max_cost')} is in USD, at least 0; got {max_cost:g}")
    if max_judge_calls is not None and max_judge_calls < 0:
        raise InputError(f"{option('max_judge_calls')} is at least 0, got {max_judge_calls}")
    return JudgeFlags(
        model=judge,
        cached=not no_cache,
        cache_only=cache_only,
        max_cost=max_cost,
        max_calls=max_judge_calls,
        rehearsal=rehearsal,
    )


def judge_config(spec: str | Mapping[str, Any] | None) -> JudgeConfig:
    """Read a judge given to a function: a model, or the content of a config's `judge:`.

    Raises:
        InputError: wrong or misspelt options.
    """
    options = {"model": spec} if isinstance(spec, str) else dict(spec or {})
    cache = options.pop("cache", CACHE)
    if options:
        _read(options)
    return JudgeConfig(options=options, cache=Path(cache) if cache else None)


def read_judge(
    document: Document,
    written: Any,
    value: Mapping[str, Any],
    models: Mapping[str, str],
) -> JudgeConfig:
    """Read `judge:` of a config, and check the `judge:` of its evaluators.

    ``written`` is the text of the file, ``value`` the same with environment variables filled in,
    ``models`` are those with a label.

    Raises:
        InputError: wrong or misspelt options, and API keys in plain text; with their lines.
    """
    problems: list[Problem] = []
    stated = value.get("judge")
    if stated is not None and not isinstance(stated, Mapping):
        raise InputError(document.problem_at(("judge",), "has to be a mapping with `model:`"))
    options = dict(stated or {})
    # Where verdicts are kept: a path below the config's folder, or false for nowhere.
    cache: Path | None = CACHE
    if "cache" in options:
        cache_option = options.pop("cache")
        cache = (
            Path(document.file).parent / cache_option
            if isinstance(cache_option, str) and cache_option
            else None
        )
        if cache is None and cache_option is not False and cache_option is not None:
            message = "has to be the path of a file, or `false` to keep no verdicts"
            problems.append(document.problem_at(("judge", "cache"), message))
    settings = _check(document, ("judge",), options, None, problems)
    for place, own in _overrides_in(value):
        _check(document, place, own, settings, problems)
    places = [("judge",), *(place for place, _ in _overrides_in(value))]
    for place in places:
        try:
            refuse_written_keys(_at(written, place), place)
        except InputError as error:
            problems += at_lines(document, error)
    if problems:
        raise InputError(problems)
    return JudgeConfig(options=options, cache=cache, models=models)


def ready(
    plan: Plan,
    judging: JudgeConfig | Judge | None = None,
    flags: JudgeFlags | None = None,
    gate: Gate | None = None,
    *,
    answers_tools: bool = False,
) -> Plan:
    """Return the plan with its gate, and a judge where an evaluator needs one.

    ``answers_tools``: its model also answers tool calls, if stand-ins say so.

    Raises:
        InputError: no model is named for an evaluator that needs one, it has no key, an evaluator's
            settings are wrong, or a rule names no evaluator of the plan. A model from the command
            line is checked even if it is never called.
    """
    asking = [planned for planned in plan.every_evaluator if planned.needs_judge]
    gate = gate_of(plan, gate or Gate())
    by_agent = gate.evaluators | {one.evaluator.name for one in asking}
    if gate.regression is not None:
        by_agent |= plan.all_evaluators.keys()
    plan = msgspec.structs.replace(plan, by_agent=by_agent, gate=gate)
    if plan.prices is None and any(rule.evaluator == "cost_usd" for rule in gate.rules):
        plan = msgspec.structs.replace(plan, prices={})
    if not asking and not answers_tools:
        if flags is not None and flags.model is not None:
            models = judging.models if isinstance(judging, JudgeConfig) else {}
            read_settings({"model": model_of_label(flags.model, models)})
        return plan
    if judging is None or isinstance(judging, JudgeConfig):
        flags = flags or JudgeFlags()
        judging = made = make_judge_of(judging or JudgeConfig(), flags, plan, asking)
        if flags.rehearsal:
            from baton.judges.judge import Rehearsal

            judging = Rehearsal(made)
    settings = settings_of(judging)
    problems: list[Problem] = []
    widest = settings.concurrency if settings else 10
    for planned in plan.every_evaluator:
        if planned.needs_judge:
            for own in judge_options(planned.evaluator):
                widest = max(widest, own.get("concurrency", 0))
                try:
                    judging.with_options(own)
                except InputError as error:
                    name = planned.evaluator.name
                    problems += [
                        msgspec.structs.replace(problem, path=f"`{name}`: {problem.path}")
                        for problem in error.problems
                    ]
    problems += [
        Problem(message=f"`{planned.evaluator.name}`: {message}")
        for planned in plan.every_evaluator
        if (message := traits_of(planned.evaluator).lacks) is not None
    ]
    if problems:
        raise InputError(problems)
    context = msgspec.structs.replace(plan.context, judge=judging)
    return msgspec.structs.replace(plan, context=context, window=max(64, 4 * widest))


def gate_of(plan: Plan, gate: Gate) -> Gate:
    """Return the gate with the names that evaluators report under; see :func:`named`."""
    every = plan.every_evaluator
    names = {name: one.evaluator.name for one in every for name in one.override_names}
    names |= {one.evaluator.name: one.evaluator.name for one in every}
    bounds = {one.evaluator.name: traits_of(one.evaluator).bounds for one in every}
    return named(gate, names, {name: each for name, each in bounds.items() if each is not None})


def make_judge_of(
    config: JudgeConfig, flags: JudgeFlags, plan: Plan, asking: Sequence[PlannedEvaluator] = ()
) -> LlmJudge:
    """Create the judge from a config and a run's options; see :func:`ready`."""
    from baton.judges.judge import make_judge

    model = None if flags.model is None else model_of_label(flags.model, config.models)
    # The model of the command line wins; another provider does not get the address and key.
    if model is None:
        options = dict(config.options)
    elif not config.options.get("model"):
        options = {**config.options, "model": model}
    else:
        changed = replaced(read_settings(config.options), {"model": model})
        options = msgspec.structs.asdict(changed) | {
            "fallback": [msgspec.to_builtins(entry) for entry in changed.fallback]
        }
    own = [each for one in asking for each in judge_options(one.evaluator) if each.get("model")]
    if not options.get("model") and own:
        options = {**options, "model": own[0]["model"]}
        _refuse_missing([one for one in asking if not _names_model(one.evaluator)], config.models)
    elif not options.get("model"):
        _refuse_missing(asking, config.models)
        raise InputError(
            "stand-ins have an LLM answer (`mode: llm`), and no model is configured: write "
            f"`judge: {{model: {_EXAMPLE}}}` in the config, or give {option('judge', _EXAMPLE)}"
        )
    offline = flags.cache_only or flags.rehearsal
    return make_judge(
        read_settings(options),
        cache=config.cache if flags.cached else None,
        cache_only=offline,
        max_cost=flags.max_cost,
        max_calls=flags.max_calls,
        prices=plan.prices,
    )


def _names_model(evaluator: Evaluator) -> bool:
    own = judge_options(evaluator)
    return bool(own) and all(each.get("model") for each in own)


def _refuse_missing(asking: Iterable[PlannedEvaluator], models: Mapping[str, str]) -> None:
    names = [f"`{name}`" for name in dict.fromkeys(one.evaluator.name for one in asking)]
    if names:
        if models:
            # The first of `supportedModels` is the judge, unless it lacks its region: this says so.
            model_of_label(next(iter(models)), models)
        ask = "asks a judge" if len(names) == 1 else "ask a judge"
        raise InputError(
            f"{', '.join(names)} {ask}, but no model is configured: write "
            f"`judge: {{model: {_EXAMPLE}}}` in the config, or give {option('judge', _EXAMPLE)}"
        )


def _check(
    document: Document,
    place: Place,
    options: Mapping[str, Any],
    base: JudgeSettings | None,
    problems: list[Problem],
) -> JudgeSettings | None:
    try:
        return _read(options, place) if base is None else replaced(base, options, place)
    except InputError as error:
        problems += at_lines(document, error)
    return None


def _read(options: Mapping[str, Any], place: Place = ("judge",)) -> JudgeSettings:
    """Read settings. The model may be missing, since the command line may name it."""
    try:
        return read_settings(options, place)
    except InputError as error:
        missing = "model" not in options and len(error.problems) == 1
        if not missing or not error.problems[0].path.endswith("judge"):
            raise
        return read_settings({**options, "model": _ANY}, place)


def _overrides_in(value: Mapping[str, Any]) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Yield the `judge:` of evaluators, and their places."""
    evaluators = value.get("evaluators")
    for index, spec in enumerate(evaluators if isinstance(evaluators, list) else ()):
        config = spec.get("config") if isinstance(spec, Mapping) else None
        own = config.get("judge") if isinstance(config, Mapping) else None
        if isinstance(own, Mapping):
            yield ("evaluators", index, "config", "judge"), own


def _at(value: Any, place: Place) -> Any:
    for step in place:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def at_lines(document: Document, error: InputError) -> list[Problem]:
    """Find the lines of problems by their paths (``judge.fallback[0].model``)."""
    return [
        document.problem_at(
            tuple(
                int(step) if step.isdecimal() else step
                for step in re.findall(r"[^.\[\]]+", problem.path)
            ),
            problem.message,
        )
        for problem in error.problems
    ]

"""Better texts for agents: proposed by a model, played on cases, and proven on held-out ones."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, Unpack

import msgspec

from baton.config.judge_config import JudgeConfig, JudgeFlags, judge_config, make_judge_of
from baton.evaluators.judged import Judged
from baton.evaluators.user_defined import traits_of
from baton.feed.blame import proven
from baton.feed.failures import failures_of
from baton.formats.own_files import HOME, write_whole
from baton.gate.compare_axes import PASSED
from baton.improvements.choose_component import MOST, refuse_unknown_components
from baton.improvements.journal import JOURNAL, Journal, hash_of
from baton.improvements.plays import CANDIDATES, Options
from baton.improvements.proposal_prompts import MOMENTS
from baton.improvements.result import RESULT, Improvement
from baton.improvements.search import AGAIN, BATCH, PLAYED_AGAIN, Progress, improve_texts
from baton.improvements.split_cases import Drawn, draw, units_of
from baton.improvements.strategies import WAYS, strategy_named
from baton.judges.fenced_prompts import USUAL_OUTPUT
from baton.judges.judge import JudgingEstimate
from baton.model import CaseResult, Dataset, InputError, Judge, Usage
from baton.model.option_spelling import option
from baton.providers.instrument.warm_workers import warm_workers
from baton.replays.replay import Moments
from baton.runner.loop import run_anywhere
from baton.runner.plan import PlannedEvaluator, Specs

from .estimate import PlaysEstimate, estimate_live, estimate_plays
from .evaluate import EvaluateOptions
from .failure_evidence import Evidence, evidence_of, with_labels
from .prepare import PathLike, ScoreOptions, log_note, refuse_unknown
from .replay import MomentsLike, Ready, ready_moments

if TYPE_CHECKING:
    from baton.judges.judge import LlmJudge

Named = TypeVar("Named", str, PathLike)

IMPROVEMENTS = Path(HOME) / "improvements"
"""The folder with improvements, each in its own folder."""
_MOMENT_TOKENS = 500
"""The assumed tokens of a moment, for estimates; a text has four times as many."""


class ImprovementEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The maximum effort of an improvement; nothing was played, and no model was asked.

    Args:
        studies: the components that would be studied.
        train: the number of cases that proposers see.
        select: the number of cases that candidates are ranked by.
        held_out: the number of cases that winners are proven on.
        plays: how many cases would be played; three times as many if agents are random and neither
            repeats nor ``max_calls`` are given.
        fewest_plays: how many plays a run with one study needs to prove a gain, without those for
            trying candidates.
        calls: how many requests would go to the model that proposes, without those to judges.
        input_tokens: the input tokens of these requests.
        output_tokens: the output tokens of these requests.
        cost_usd: the cost of these requests, if the price is known.
        judged: the evaluators that ask a judge in each play, each with its model, as in
            ``scope_fidelity (openai:gpt-5)``.
        judging: the requests to judges in all plays; ``None`` if no judge is asked.
        agents: what agents take in all plays, by the recordings of the cases.
        total_usd: the cost of it all, if all of it is known.
        model: the model that proposes.
        notes: what a user should know about the cases.
    """

    studies: int
    train: int
    select: int
    held_out: int
    plays: int
    fewest_plays: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    model: str
    notes: list[str]
    agents: PlaysEstimate
    judged: list[str] = []
    judging: JudgingEstimate | None = None
    total_usd: float | None = None


class ImproveOptions(EvaluateOptions, total=False):
    """How to improve: the options of :func:`baton.improve`, beside those of ``evaluate``.

    Keys:
        app: the app of an ADK server.
        variant: which of a config's providers plays.
        keyword: use only cases that match this expression.
        limit: the maximum number of cases.
        agent: change the instructions of these agents, one after the other; by default those that
            failures point to.
        component: change these texts, as in ``description:refund``.
        aim: the axis that must improve, such as ``dispatch_routing`` or ``cases passed``; by
            default the one on which the agent fails most.
        witness: the axes that must agree if a judge influences the aimed one; by default those of
            all evaluators without a judge, and of the second judge.
        second_judge: a model that judges everything as well, as in ``"openai:gpt-5"``: a text that
            only flatters the first judge does not convince it.
        strategy: ``gepa``, ``random``, ``bayesian``, ``meta_prompt``, ``protegi`` or
            ``prompt_wizard``, or the name that other tools have for it, such as
            ``BayesianSearchOptimizer``.
        seed: the seed of all random draws.
        candidates: how many texts to try for a component, 40 by default.
        max_calls: the maximum number of plays; a play is one case, once.
        max_cost: the maximum cost of agents, judges and proposals, in USD.
        max_words: the maximum length of a text; by default twice the old one, or 150 words more.
        issues: further evidence of failures for choosing the agent: files of `baton issues --json`,
            `server://HOST/PROJECT`, evaluations, recordings.
        labels: people's labels of dispatches and runs: files of `baton label`, or a server. They
            point to agents, and proposers read them with the cases that they are about.
        out: where to create the folder of the improvement; `.baton/improvements` when left out.
        resume: the folder of an improvement that ended early: its work is not repeated.
        on_start: called with the folder.
        on_step: called with each step, as one line.
    """

    app: str | None
    variant: str | None
    keyword: str | None
    limit: int | None
    agent: str | Sequence[str]
    component: str | Sequence[str]
    aim: str | None
    witness: str | Sequence[str]
    second_judge: str | Mapping[str, Any] | None
    strategy: str
    seed: int
    candidates: int
    max_calls: int | None
    max_cost: float | None
    max_words: int | None
    issues: PathLike | Sequence[PathLike]
    labels: PathLike | Sequence[PathLike]
    out: PathLike
    resume: PathLike | None
    on_start: Callable[[Path], None]
    on_step: Callable[[str], None]


def improve(
    moments: MomentsLike,
    target: str | Mapping[str, Any] | None = None,
    evaluators: Specs | None = None,
    **options: Unpack[ImproveOptions],
) -> Improvement:
    """Improve the texts of agents, one component after the other, and prove the gain.

    A model proposes texts. They are played on cases, and stand-ins answer for every tool. Cases are
    split by group into train, select and held out. A text only counts as better if held-out cases
    prove it: better on the aimed axis, and worse nowhere. The agents' files are not changed.

    Args:
        moments: cases, recorded traces, or the paths of either, as for :func:`baton.replay`.
        target: the agent, as for `baton eval`, or the spec of a provider; that of ``config`` when
            left out.
        evaluators: the evaluators; chosen from what the cases expect when left out.
        options: see :class:`ImproveOptions`. ``judge`` is also the model that proposes.

    Returns:
        The result; its ``texts`` are those that are proven to be better.

    Raises:
        InputError: a file has errors; an agent, component or option does not exist; or there are
            too few cases, no failures, or no model to ask.
    """
    work = _prepared(moments, target, evaluators, options)
    return run_anywhere(_improve(work, options))


def estimate_improvement(
    moments: MomentsLike,
    target: str | Mapping[str, Any] | None = None,
    evaluators: Specs | None = None,
    **options: Unpack[ImproveOptions],
) -> ImprovementEstimate:
    """Return the maximum effort of :func:`improve`; nothing is played, and no model is asked.

    Raises:
        InputError: like :func:`improve`, as far as it can be known.
    """
    work = _prepared(moments, target, evaluators, options)
    settings, ready, drawn = work.options, work.ready.moments, work.drawn
    train, select, held_out = (
        len(part) for part in (drawn.split.train, drawn.split.select, drawn.split.held_out)
    )
    studies = len({*settings.agents, *settings.components}) or MOST
    asks = len(WAYS[settings.strategy].asks)
    searched = settings.candidates * (2 * min(BATCH, train) + select)
    plays = studies * ready.options.repeat * (train + select + searched + 2 * held_out)
    fewest = ready.options.repeat * (train + select + 2 * held_out)
    if _may_repeat(ready, options):
        again = PLAYED_AGAIN * min(AGAIN, train + select)
        plays, fewest = plays + again, fewest + again
    if settings.max_calls is not None:
        plays = min(plays, settings.max_calls)
    calls = studies * settings.candidates * asks
    read = _MOMENT_TOKENS * (4 + MOMENTS)
    written = 4 * _MOMENT_TOKENS + USUAL_OUTPUT
    price = _price(work.judge, Usage(input_tokens=read, output_tokens=written))
    cost = None if price is None else price * calls
    agents = estimate_plays(ready.plan, ready.cases, plays)
    judging = _judging(ready, plays)
    parts = [cost, agents.cost_usd, *([] if judging is None else [judging.cost_usd])]
    return ImprovementEstimate(
        studies=studies,
        train=train,
        select=select,
        held_out=held_out,
        plays=plays,
        fewest_plays=fewest,
        calls=calls,
        input_tokens=calls * read,
        output_tokens=calls * written,
        cost_usd=cost,
        model=work.judge.model,
        notes=drawn.notes,
        agents=agents,
        judging=judging,
        total_usd=None if None in parts else sum(each or 0.0 for each in parts),
        judged=[
            f"{name} ({', '.join(sorted(_models(each, work.judge.model)))})"
            for name, each in ready.plan.all_evaluators.items()
            if each.needs_judge
        ],
    )


def _judging(moments: Moments, plays: int) -> JudgingEstimate | None:
    """Estimate the requests to judges in a number of plays, from those in one of each case."""
    from baton.judges.judge import LlmJudge, Rehearsal

    plan, cases = moments.plan, moments.cases
    judge = plan.context.judge
    if isinstance(judge, LlmJudge):
        context = msgspec.structs.replace(plan.context, judge=Rehearsal(judge))
        plan = msgspec.structs.replace(plan, context=context)
    once = estimate_live(plan, Dataset(cases), 1)
    if once is None or not once.calls:
        return None
    times = plays / len(cases)
    return msgspec.structs.replace(
        once,
        calls=ceil(once.calls * times),
        input_tokens=ceil(once.input_tokens * times),
        output_tokens=ceil(once.output_tokens * times),
        cost_usd=None if once.cost_usd is None else once.cost_usd * times,
    )


def _price(judge: Judge, usage: Usage) -> float | None:
    from baton.judges.judge import LlmJudge, Rehearsal

    return judge.price(usage) if isinstance(judge, LlmJudge | Rehearsal) else None


class _Work(NamedTuple):
    ready: Ready
    options: Options
    judge: Judge
    target: str
    about: dict[str, str]
    drawn: Drawn


def _prepared(
    moments: MomentsLike,
    target: str | Mapping[str, Any] | None,
    evaluators: Specs | None,
    options: ImproveOptions,
) -> _Work:
    parts = (ScoreOptions, EvaluateOptions, ImproveOptions)
    refuse_unknown("`baton.improve`", options, [n for part in parts for n in part.__annotations__])
    if options.get("texts"):
        raise InputError("`texts` cannot be used here: texts are changed by the improvement")
    strategy = strategy_named(options.get("strategy", "gepa"))
    max_cost = options.get("max_cost")
    ready = ready_moments(
        moments,
        target,
        evaluators,
        options,
        app=options.get("app"),
        variant=options.get("variant"),
        keyword=options.get("keyword"),
        limit=options.get("limit"),
        instead="an agent before its cases, as in `baton improve app.py:agent cases.yaml`",
    )
    judge = _judge_of(ready, options, max_cost)
    seconds = _add_second_judge(ready.moments, judge.model, options.get("second_judge"))
    plan = ready.moments.plan
    planned = plan.all_evaluators
    judged = {name for name, each in planned.items() if each.needs_judge}
    agreeing = [name for name in planned if name not in judged or name in seconds]
    settings = Options(
        strategy=strategy,
        seed=options.get("seed", 0),
        candidates=options.get("candidates", CANDIDATES),
        max_calls=options.get("max_calls"),
        max_cost=max_cost,
        agents=_listed(options.get("agent", ())),
        components=_listed(options.get("component", ())),
        aimed=options.get("aim"),
        # Whether a case passes depends on the judge as well, whatever else is evaluated.
        judged=frozenset({*judged, PASSED} if judged else ()),
        witnesses=_listed(options.get("witness", ())) or agreeing,
        lower_is_better=frozenset(plan.gate.lower),
        most_words=options.get("max_words"),
    )
    _check_axes(settings, set(planned))
    _check_witnesses(settings, planned, judge.model)
    about = _about(ready, settings, judge)
    evidence = _evidence(ready, options)
    settings = msgspec.structs.replace(settings, pointed=evidence.pointed)
    cases = [case for case in ready.moments.cases if case.id not in ready.moments.silent]
    drawn = draw(units_of(cases), settings.seed)
    return _Work(ready, settings, judge, _name_of(target, ready), about, drawn)


def _listed(value: Named | Sequence[Named]) -> list[Named]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def _evidence(ready: Ready, options: ImproveOptions) -> Evidence:
    """Gather further evidence about agents, and add people's labels to their cases.

    A resumed improvement has what it was begun with in its journal.
    """
    issues, labels = _listed(options.get("issues", ())), _listed(options.get("labels", ()))
    resumed = options.get("resume")
    if resumed is not None and is_begun(Path(resumed)):
        issues = []
    if not issues and not labels:
        return Evidence({}, [])
    moments, note = ready.moments, options.get("note", log_note)
    evidence = evidence_of(issues, labels, moments.cases, ready.inputs.config, note, options)
    moments.cases[:] = with_labels(moments.cases, evidence.labels)
    return evidence


def _check_axes(options: Options, evaluators: set[str]) -> None:
    known = {PASSED, *evaluators}
    for name, value in (("aim", options.aimed), *(("witness", n) for n in options.witnesses)):
        if value is not None and _evaluator_of(value) not in known:
            listed = ", ".join(sorted(known))
            raise InputError(f"{option(name)}: nothing scores `{value}`; choose from {listed}")


def _add_second_judge(
    moments: Moments, first: str, second: str | Mapping[str, Any] | None
) -> set[str]:
    """Have a second model judge the same as the first; return the names of its axes.

    Raises:
        InputError: nothing is judged (allowed if settings are given), or the same model judges
            already.
    """
    if second is None:
        return set()
    second_settings = {"model": second} if isinstance(second, str) else dict(second)
    model = str(second_settings["model"])
    seconds: set[str] = set()

    def with_second(group: Sequence[PlannedEvaluator]) -> tuple[PlannedEvaluator, ...]:
        made = []
        for each in group:
            one = each.evaluator
            if not isinstance(one, Judged):
                continue
            if model in _models(each, first):
                raise InputError(
                    f"{option('second_judge')}: {model} judges `{one.name}` already, and a text "
                    "that flatters it would convince it twice"
                )
            settings = {**msgspec.to_builtins(one.options), "judge": second_settings}
            again = one.from_options(one.shape, f"{one.name} by {model}", settings)
            made.append(msgspec.structs.replace(each, evaluator=again))
            seconds.add(again.name)
        return (*group, *made)

    plan = moments.plan
    moments.plan = msgspec.structs.replace(
        plan,
        evaluators=with_second(plan.evaluators),
        files={file: with_second(group) for file, group in plan.files.items()},
    )
    if not seconds and isinstance(second, str):
        raise InputError(f"{option('second_judge')}: none of the evaluators asks a judge")
    return seconds


def _models(planned: PlannedEvaluator, first: str) -> set[str]:
    """Return the models that judge for an evaluator; ``first`` is the default judge."""
    own = traits_of(planned.evaluator).judge_options or ({},)
    return {str(each.get("model") or first) for each in own}


def _check_witnesses(options: Options, planned: Mapping[str, PlannedEvaluator], first: str) -> None:
    """Raise InputError for a witness that would only repeat a judge's verdict."""
    for name in map(_evaluator_of, options.witnesses):
        if name == PASSED and options.judged:
            raise InputError(
                f"{option('witness')}: whether a case passes depends on the judge, too: name an "
                f"evaluator that asks no judge, or give {option('second_judge')}"
            )
        if name not in options.judged:
            continue
        others = [each for own, each in planned.items() if own != name and each.needs_judge]
        same = {model for each in others for model in _models(each, first)}
        if not _models(planned[name], first) - same:
            raise InputError(
                f"{option('witness')}: `{name}` asks the model that judges, which a text may "
                f"flatter: give it a `judge:` of its own, or {option('second_judge')}"
            )


def _evaluator_of(axis: str) -> str:
    return axis.partition(" of ")[0]


def _judge_of(ready: Ready, options: ImproveOptions, max_cost: float | None) -> Judge:
    """Return the model that proposes: that of the judge, with its cache and its budget."""
    there, judge = ready.moments.plan.context.judge, options.get("judge")
    if there is not None:
        return there
    if judge is not None and not isinstance(judge, str | Mapping | JudgeFlags):
        return judge
    config = ready.inputs.config
    judging = config.judging if config is not None else JudgeConfig()
    flags = judge if isinstance(judge, JudgeFlags) else JudgeFlags()
    if isinstance(judge, Mapping):
        judging = judge_config(judge)
    elif isinstance(judge, str):
        flags = JudgeFlags(model=judge)
    if flags.model is None and not judging.options.get("model"):
        example = option("judge", "openai:gpt-4o-mini")
        raise InputError(f"a model proposes texts: give {example}, or `judge:` in a config")
    if flags.max_cost is None and max_cost is not None and not flags.rehearsal:
        flags = msgspec.structs.replace(flags, max_cost=max_cost)
    made: LlmJudge = make_judge_of(judging, flags, ready.moments.plan)
    return made


def _may_repeat(moments: Moments, options: ImproveOptions) -> bool:
    return options.get("repeat") is None and moments.options.repeat == 1


def _name_of(target: str | Mapping[str, Any] | None, ready: Ready) -> str:
    if isinstance(target, str):
        return target
    config = ready.inputs.config
    return config.file if target is None and config is not None else ready.played_by


def _about(ready: Ready, settings: Options, judge: Judge) -> dict[str, str]:
    """Return the inputs that must not change before resuming, by the names that people know."""
    moments = ready.moments
    cases = sha256("".join(case.content_hash() for case in moments.cases).encode()).hexdigest()
    evaluators = sorted(
        f"{name} {each.evaluator.version}" for name, each in moments.plan.all_evaluators.items()
    )
    return {
        "the dataset": cases[:16],
        "the evaluators": ", ".join(evaluators),
        "the model": judge.model,
        "the strategy": settings.strategy,
        "the seed": str(settings.seed),
        "the number of repeats": str(moments.options.repeat),
        "the choice of agents": ", ".join([*settings.agents, *settings.components]),
        "the aim": f"{settings.aimed or ''}, {', '.join(settings.witnesses)}",
        "the limit of words": str(settings.most_words),
    }


def _blame(result: CaseResult) -> list[str]:
    """Name the agent that is proven to have made a case fail first."""
    if result.trace is None:
        return []
    suspects, _ = proven(result.trace, list(failures_of(result.trace, result.scores)))
    return [suspects[0].agent] if suspects else []


async def _improve(work: _Work, options: ImproveOptions) -> Improvement:
    async with warm_workers():  # a program plays hundreds of times, with other texts each
        return await _improve_warm(work, options)


async def _improve_warm(work: _Work, options: ImproveOptions) -> Improvement:
    moments, settings = work.ready.moments, work.options
    texts = await moments.texts()
    wanted = [*settings.components, *(f"agent:{name}" for name in settings.agents)]
    refuse_unknown_components(wanted, texts)
    about = {**work.about, "the agents' texts": hash_of(texts)}
    resumed = options.get("resume")
    if resumed is not None:
        folder = Path(resumed)
        journal = Journal.resume(folder, about, settings.pointed)
    else:
        folder = new_folder(Path(options.get("out", IMPROVEMENTS)), moments.dataset.name)
        journal = Journal.begin(folder, about, settings.pointed)
    settings = msgspec.structs.replace(settings, pointed=journal.pointed)
    if (on_start := options.get("on_start")) is not None:
        on_start(folder)

    def keep(improvement: Improvement) -> None:
        keep_result(folder, improvement)

    with journal:
        judge: Any = work.judge
        progress = Progress(options.get("on_step", lambda _: None), keep)
        try:
            improvement = await improve_texts(
                moments,
                judge,
                journal,
                settings,
                id_=folder.name,
                target=work.target,
                progress=progress,
                blame=_blame,
                # A stated number of repeats, even 1, is a decision.
                repeat_each=moments.repeat_each if _may_repeat(moments, options) else None,
            )
        finally:
            if hasattr(judge, "close"):
                await judge.close()
        keep(improvement)
    return improvement


def is_begun(folder: Path) -> bool:
    """Return whether the journal of a folder has its first line."""
    return _lines(folder, 1) == 1


def has_plays(folder: Path) -> bool:
    """Return whether a folder contains any play or answer.

    The first line of a journal only describes the inputs of the improvement.
    """
    return _lines(folder, 2) == 2


def _lines(folder: Path, most: int) -> int:
    try:
        with (folder / JOURNAL).open("rb") as lines:
            return len([each for each in islice(lines, most) if each.endswith(b"\n")])
    except OSError:
        return 0


def keep_result(folder: Path, improvement: Improvement) -> None:
    """Write the result of an improvement into its folder."""
    encoded = msgspec.json.format(msgspec.json.encode(improvement), indent=2)
    write_whole(folder / RESULT, encoded + b"\n")


def new_folder(root: Path, name: str | None) -> Path:
    """Return a folder for an improvement that is not there yet, named after the time and a name."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    name = name or "improvement"
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", os.fspath(name)).strip("-.")[:60] or "improvement"
    for attempt in range(1, 1000):
        folder = root / (f"{stamp}-{slug}" + (f"-{attempt}" if attempt > 1 else ""))
        if not folder.exists():
            return folder
    raise InputError(f"{root}: too many improvements started in this second")

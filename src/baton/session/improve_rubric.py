"""Improves a judge: optimises the text of its rubric with people's labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypedDict, Unpack

import msgspec

from baton.config import Config
from baton.config.git import working_tree
from baton.config.judge_config import JudgeConfig, JudgeFlags, make_judge_of
from baton.evaluators.judged import Judged
from baton.evaluators.judging.rubric_files import load_rubric
from baton.formats.document import Document, read_bytes
from baton.formats.edit_values import rewrite
from baton.improvements.journal import Journal
from baton.improvements.proposal_prompts import MOMENTS
from baton.improvements.result import Improvement, Strategy, Study
from baton.improvements.rubrics import CANDIDATES, Options, Progress, RubricSearch
from baton.improvements.strategies import WAYS, strategy_named
from baton.improvements.texts_in_files import FileChange
from baton.judges.fenced_prompts import USUAL_OUTPUT
from baton.model import EvalContext, InputError, Problem, Usage
from baton.runner.loop import run_until_terminated
from baton.runner.plan import PlannedEvaluator, make_plan

from .calibrate import labelled_traces, labels_first
from .file_kinds import config_of
from .improve import IMPROVEMENTS, keep_result, new_folder
from .prepare import Note, PathLike, log_note, refuse_unknown
from .recordings import local_sources
from .rubrics import rubric_evaluator, rubric_files

if TYPE_CHECKING:
    from baton.judges.judge import LlmJudge

_MOMENT_TOKENS = 500
"""Tokens of one labelled thing in a request for proposals: 1,500 characters, and the answers."""


class RubricEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The maximum effort of improving a rubric, computed without calling a model.

    Args:
        train: number of labelled things that proposals are made from.
        select: number of labelled things that candidates are ranked with.
        held_out: number of labelled things that the winner is proven with.
        verdicts: number of verdicts that the judge would give.
        fewest_verdicts: number of verdicts that the proof needs, without trials of candidates.
        proposals: number of requests for proposals.
        calls: requests of both kinds together.
        input_tokens: tokens in all requests.
        output_tokens: tokens in all answers.
        cost_usd: their cost, if the price is known.
        model: the model that judges and proposes.
        notes: remarks on the labels.
    """

    train: int
    select: int
    held_out: int
    verdicts: int
    fewest_verdicts: int
    proposals: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    model: str
    notes: list[str]


class RubricOptions(TypedDict, total=False):
    """Options for improving a rubric.

    Keys:
        config: a config with `judge:`, the rubric's options, and the user's own rubrics.
        judge: the judge's model, which also proposes texts; overrides the config.
        strategy: how texts are proposed, as for :func:`baton.improve`.
        seed: the seed of random choices.
        candidates: the maximum number of texts to try.
        max_words: the maximum length of a text; by default twice the old text, or 150 words more.
        agents: agent definitions.
        out: where to create the folder of the improvement; `.baton/improvements` by default.
        resume: the folder of an interrupted improvement; answers in it are not requested again.
        is_applied: whether the text will be written into the rubric's file, which a rubric of
            Baton's own does not have.
        on_start: called with the folder.
        on_step: called with each step, as one line.
        note: called with notes.
    """

    config: PathLike | None
    judge: str | JudgeFlags | None
    strategy: str
    seed: int
    candidates: int
    max_words: int | None
    agents: PathLike | None
    out: PathLike
    resume: PathLike | None
    is_applied: bool
    on_start: Callable[[Path], None]
    on_step: Callable[[str], None]
    note: Note


def improve_rubric(
    rubric: str,
    labels: PathLike,
    traces: Sequence[PathLike] = (),
    **options: Unpack[RubricOptions],
) -> Improvement:
    """Search for a rubric text with which the judge agrees better with people, and prove it.

    This does not change the rubric's file; :func:`baton.apply_improvement` does.

    Args:
        rubric: any name of the rubric, or its file.
        labels: people's labels: a file of `baton label`, or a dataset with labels.
        traces: the recordings that were labelled.
        options: see :class:`RubricOptions`.

    Raises:
        InputError: files that do not match, too few labels, or no model is named.
    """
    work = _prepared(rubric, labels, traces, options)
    flags, resumed = work.flags, options.get("resume")
    # Created before the folder, so that a judge without a key leaves no folder behind.
    judge = _judge_of(work, flags)
    about = {**work.search.about, "the model": judge.model}
    if resumed is not None:
        folder = Path(resumed)
        journal = Journal.resume(folder, about)
        _, _, spent = journal.sums()
        if flags.max_cost is not None and spent is not None:
            left = max(0.0, flags.max_cost - spent)
            judge = _judge_of(work, msgspec.structs.replace(flags, max_cost=left))
    else:
        folder = new_folder(Path(options.get("out", IMPROVEMENTS)), f"rubric-{work.shape.type}")
        journal = Journal.begin(folder, about)
    if (on_start := options.get("on_start")) is not None:
        on_start(folder)
    search = work.search
    search.result.id = folder.name
    search.result.rubric_file = None if work.file is None else os.fspath(work.file)

    def keep(improvement: Improvement) -> None:
        keep_result(folder, improvement)

    def spent_of() -> float | None:
        return None if judge.price(Usage(input_tokens=1, output_tokens=1)) is None else judge.spent

    async def made() -> Improvement:
        on_step = options.get("on_step", lambda _: None)
        async with judge:
            return await search.make(judge, journal, Progress(on_step, keep, spent_of))

    with journal:
        try:
            return run_until_terminated(made())
        finally:
            keep(search.result)


def estimate_rubric(
    rubric: str,
    labels: PathLike,
    traces: Sequence[PathLike] = (),
    **options: Unpack[RubricOptions],
) -> RubricEstimate:
    """Return the maximum effort of :func:`improve_rubric`, without a model and without a key.

    Raises:
        InputError: as for :func:`improve_rubric`, as far as it can be known before.
    """
    from baton.judges.judge import Rehearsal

    work = _prepared(rubric, labels, traces, options)
    flags = msgspec.structs.replace(work.flags, rehearsal=True)

    async def asked() -> RubricEstimate:
        async with Rehearsal(_judge_of(work, flags, cached=False)) as judge:
            await work.search.rehearse(judge)
            one = judge.estimate("each verdict once")
            split, search = work.search.result.split, work.search
            # Texts of candidates are about as long as the current one, compared with the material.
            times = search.most_verdicts / search.size
            proposals = work.candidates * len(WAYS[work.strategy].asks)
            read = _MOMENT_TOKENS * (4 + MOMENTS)
            written = 4 * _MOMENT_TOKENS + USUAL_OUTPUT
            price = judge.price(Usage(input_tokens=read, output_tokens=written))
            known = price is not None and one.cost_usd is not None
            return RubricEstimate(
                train=len(split.train),
                select=len(split.select),
                held_out=len(split.held_out),
                verdicts=search.most_verdicts,
                fewest_verdicts=search.fewest_verdicts,
                proposals=proposals,
                calls=round(one.calls * times) + proposals,
                input_tokens=round(one.input_tokens * times) + proposals * read,
                output_tokens=round(one.output_tokens * times) + proposals * written,
                cost_usd=one.cost_usd * times + proposals * price
                if known and one.cost_usd is not None and price is not None
                else None,
                model=judge.model,
                notes=search.drawn.notes,
            )

    return run_until_terminated(asked())


class _Work(NamedTuple):
    shape: Judged
    search: RubricSearch
    settings: Config | None
    flags: JudgeFlags
    file: Path | None
    candidates: int
    strategy: Strategy


def own_file(rubric: str, config: PathLike | None = None) -> Path:
    """Return the file of a user's own rubric, where a better text can be written.

    Raises:
        InputError: the rubric comes with Baton.
    """
    settings = config_of(config) if config is not None else None
    shape = rubric_evaluator(rubric, settings).shape
    file = _file_of(rubric, settings, shape.name)
    if file is None:
        raise InputError(
            f"`{shape.name}` comes with Baton: copy it to a file of your own "
            f"(`baton rubrics show {shape.name}`), rename it, and improve the copy"
        )
    return file


def _file_of(rubric: str, settings: Config | None, name: str) -> Path | None:
    known = rubric_files(settings, (), [rubric]).get(name)
    return known.file if known is not None and known.own else None


def _prepared(
    rubric: str, labels: PathLike, traces: Sequence[PathLike], options: RubricOptions
) -> _Work:
    refuse_unknown("`improve_rubric`", options, RubricOptions.__annotations__)
    config, judge = options.get("config"), options.get("judge")
    if options.get("is_applied", False):
        own_file(rubric, config)
    note = options.get("note", log_note)
    settings = config_of(config) if config is not None else None
    flags = JudgeFlags(model=judge) if isinstance(judge, str) else judge or JudgeFlags()
    evaluator = rubric_evaluator(rubric, settings)
    people, more = labels_first(rubric, evaluator, [labels, *traces])
    if people.file is None and people.server is None:
        raise InputError(f"{os.fspath(labels)}: contains no labels")
    paths = [Path(each) for each in local_sources([os.fspath(each) for each in more], note)]
    if not paths and people.server is None:
        raise InputError("name the recordings that were labelled")
    pairs = labelled_traces(paths, people, settings, options.get("agents"), note)
    context = settings.plan.context if settings is not None else EvalContext()
    strategy = strategy_named(options.get("strategy", "gepa"))
    candidates = options.get("candidates", CANDIDATES)
    wanted = Options(strategy, options.get("seed", 0), candidates, options.get("max_words"))
    search = RubricSearch(evaluator, people.labels, pairs, wanted, context)
    file = _file_of(rubric, settings, evaluator.shape.name)
    return _Work(evaluator, search, settings, flags, file, candidates, strategy)


def _judge_of(work: _Work, flags: JudgeFlags, *, cached: bool = True) -> LlmJudge:
    settings = work.settings
    judging = settings.judging if settings is not None else JudgeConfig()
    if not cached:
        flags = msgspec.structs.replace(flags, cached=False)
    plan = settings.plan if settings is not None else make_plan([work.shape])
    return make_judge_of(judging, flags, plan, [PlannedEvaluator(evaluator=work.shape)])


def rubric_change(file: Path, study: Study) -> tuple[Path, FileChange]:
    """Return the change that puts a new text into a rubric's file, and the folder of its path.

    Everything else in the file stays, including comments.

    Raises:
        InputError: the file was changed since, is a link, or cannot be read.
    """
    if file.is_symlink():
        raise InputError(Problem(file=str(file), message="is a link: name the file itself"))
    data = read_bytes(file)
    if study.after is None or load_rubric(file).prompt != study.before:
        raise InputError(Problem(file=str(file), message="has changed since: improve it again"))
    value = Document(str(file), data, "yaml").value()
    kept = "\n" if str(value["prompt"]).endswith("\n") else ""
    new = {**value, "prompt": study.after.rstrip("\n") + kept}
    text = rewrite(str(file), data.decode("utf-8"), new)
    place = file.resolve()
    root = working_tree(place.parent) or place.parent
    change = FileChange(
        path=place.relative_to(root.resolve()),
        before=data,
        after=text.encode(),
        components=[study.component],
    )
    return root.resolve(), change

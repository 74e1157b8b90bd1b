"""A judge made better: the text of its rubric is improved on labels of people."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from baton.config.judge import JudgeConfig, JudgeFlags, make_judge_of
from baton.evaluators.judging.load import load_rubric
from baton.evaluators.judging.rubric import Rubric
from baton.formats.document import Document, read_bytes
from baton.formats.own_files import naming, write_whole
from baton.formats.rewrite import rewrite
from baton.improvements.rubrics import CANDIDATES, Options, Sharpened, sharpen
from baton.improvements.strategies import strategy_named
from baton.model import EvalContext, InputError, Problem
from baton.runner.loop import run_until_terminated
from baton.runner.plan import PlannedEvaluator, make_plan

from .calibrate import labelled_traces, labels_first
from .file_kinds import config_of
from .prepare import Note, PathLike, log_note
from .rubrics import rubric_evaluator, rubric_files
from .server_source import with_servers_fetched


class SharpenedRubric(NamedTuple):
    """What came of it; ``file`` is the rubric's, where it is the user's own, and ``written``."""

    rubric: Rubric
    sharpened: Sharpened
    file: Path | None
    written: bool


def improve_rubric(
    rubric: str,
    labels: PathLike,
    traces: Sequence[PathLike],
    *,
    config: PathLike | None = None,
    judge: str | JudgeFlags | None = None,
    strategy: str = "gepa",
    seed: int = 0,
    candidates: int = CANDIDATES,
    max_words: int | None = None,
    agents: PathLike | None = None,
    apply: bool = False,
    on_step: Callable[[str], None] = lambda _: None,
    note: Note = log_note,
) -> SharpenedRubric:
    """Look for a text of a rubric with which the judge agrees better with people, and prove it.

    Args:
        rubric: the rubric, by any of its names, or its file.
        labels: what people say: a file of `baton label`, or a dataset with labels.
        traces: the recordings that the labels are of.
        config: a config with `judge:`, the rubric's options, and rubrics of the user's own.
        judge: the judge's model; it also proposes. Goes before the config.
        strategy: how texts are proposed, as for :func:`baton.improve`.
        seed: of everything that is drawn.
        candidates: how many texts are tried, at most.
        max_words: the longest text; twice the old one, or 150 words more, when left out.
        agents: agent definitions.
        apply: write a text that is proven to be better into the rubric's file.
        on_step: is told what goes on, in a line each.
        note: takes what is worth knowing.

    Raises:
        InputError: files that do not go together, too few labels, or a rubric of Baton's to apply
            to.
    """
    settings = config_of(config) if config is not None else None
    flags = JudgeFlags(model=judge) if isinstance(judge, str) else judge or JudgeFlags()
    evaluator = rubric_evaluator(rubric, settings)
    known = rubric_files(settings, (), [rubric]).get(evaluator.shape.name)
    file = known.file if known is not None and known.own else None
    if apply and file is None:
        raise InputError(
            f"`{evaluator.type}` comes with Baton: copy it to a file of your own "
            f"(`baton rubrics show {evaluator.type}`), and improve that one under another name"
        )
    given, more = labels_first(rubric, evaluator, [labels, *traces])
    if given.file is None and given.server is None:
        raise InputError(f"{os.fspath(labels)}: holds no labels")
    paths = [Path(each) for each in with_servers_fetched([os.fspath(each) for each in more], note)]
    if not paths and given.server is None:
        raise InputError("name the recordings that the labels are of")
    pairs = labelled_traces(paths, given, settings, agents, note)
    context = settings.plan.context if settings is not None else EvalContext()
    options = Options(strategy_named(strategy), seed, candidates, max_words)

    async def made() -> Sharpened:
        judging = settings.judging if settings is not None else JudgeConfig()
        plan = settings.plan if settings is not None else make_plan([evaluator])
        planned = [PlannedEvaluator(evaluator=evaluator)]
        async with make_judge_of(judging, flags, plan, planned) as asked:
            return await sharpen(evaluator, given.labels, pairs, asked, options, context, on_step)

    found = run_until_terminated(made())
    (study,) = found.improvement.studies
    written = False
    if apply and file is not None and study.after is not None:
        write_text(file, study.before, study.after)
        written = True
        note(f"{file}: change `version:` as well, as calibrations are of one text")
    return SharpenedRubric(evaluator.shape, found, file, written)


def write_text(file: Path, before: str, after: str) -> None:
    """Put a new text into a rubric's file; all else in it stays, comments included.

    Raises:
        InputError: the file has changed since, is a link, or cannot be written.
    """
    if file.is_symlink():
        raise InputError(Problem(file=str(file), message="is a link: name the file itself"))
    text = read_bytes(file).decode("utf-8")
    if load_rubric(file).prompt != before:
        raise InputError(Problem(file=str(file), message="has changed since: improve it anew"))
    value = Document(str(file), text.encode(), "yaml").value()
    kept = "\n" if str(value["prompt"]).endswith("\n") else ""
    changed = rewrite(str(file), text, {**value, "prompt": after.rstrip("\n") + kept})
    backup = file.with_name(f"{file.name}.before")
    with naming(file):
        write_whole(backup, text.encode())
        write_whole(file, changed.encode())
    load_rubric(file)

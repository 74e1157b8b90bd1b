"""``baton score``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated, TypedDict

import msgspec

from baton.session.report import STORED, out_at
from baton.session.score import estimate_scoring, score_files

from .options import (
    HERE,
    LATER,
    NONE,
    SHORT,
    USUAL,
    ConfigPath,
    Dataset,
    Evaluators,
    Flag,
    Keyword,
    LastFailed,
    Paths,
    Reports,
    Scoring,
    Showing,
    Whole,
    Workers,
)
from .output import print_estimate, report


class _Choice(TypedDict):
    """What to choose for scoring, and where evaluations are."""

    out: Path
    keyword: str | None
    last_failed: bool


def score_command(
    *traces: str,
    dataset: Dataset = (),
    evaluators: Evaluators = (),
    config: ConfigPath = None,
    keyword: Keyword = None,
    last_failed: LastFailed = False,
    scoring: Scoring = USUAL,
    name: Annotated[str | None, LATER] = None,
    showing: Showing = SHORT,
    reports: Reports = NONE,
    out: Annotated[str, LATER] = str(STORED),
    workers: Workers = HERE,
    jobs: Annotated[Whole | None, LATER] = None,
    dry_run: Annotated[Flag, LATER] = False,
    trust: Annotated[Paths, LATER] = (),
) -> int:
    """Score recorded traces, against a dataset if there is one.

    Parameters
    ----------
    traces
        Files and folders with recorded traces, in any format Baton reads; globs, and addresses
        (s3://bucket/traces) if fsspec is installed. A dataset among them is used as the dataset.
        server://HOST/PROJECT?to=AGENT are conversations of a server.
    dataset
        Cases: a file, a folder, or FILE:case1,case2. May be given several times.
    evaluators
        An evaluator to score with: NAME, or NAME:0.8 with its threshold; +NAME adds it to what
        cases or config ask for. May be given several times.
    config
        A config with evaluators, options and a dataset, or criteria of ADK (a test_config.json of
        any name); what is given here overrides it.
    keyword
        Only cases that match the expression: a word is part of the id or of a tag, with `and`,
        `or`, `not`, parentheses, tag:NAME and metadata.KEY=VALUE.
    last_failed
        Only what did not pass in the last evaluation of recordings; its recordings are scored again
        if none are named.
    out
        Where evaluations are stored: a folder, or an address (s3://bucket/evaluations) to which the
        folder is copied at the end.
    jobs
        How many processes score. The default is as many as long recordings (of more than 4 MiB)
        keep busy, up to the number of cores and 4. With judges it is one.
    dry_run
        Print what judging would cost; send nothing, and import no code of your own.
    name
        Name of the evaluation.
    trust
        A folder whose test_config.json may name code; remembered until it changes. May be given
        several times.
    """
    showing.begin()
    options = scoring.options(trust, rehearsal=dry_run)
    options["name"] = name
    options["config"] = config
    work = (traces, dataset or None, evaluators or None)
    stored = out_at(out)
    chosen: _Choice = {"out": stored.folder, "keyword": keyword, "last_failed": last_failed}
    # What the user's own code prints is not part of the report.
    with redirect_stdout(sys.stderr):
        if dry_run:
            estimate = estimate_scoring(
                *work, backend=workers.backend, workers=workers.workers, **chosen, **options
            )
        else:
            written = score_files(
                *work,
                **chosen,
                backend=workers.backend,
                workers=workers.workers,
                jobs=jobs,
                reports=list(reports.files().values()),
                **options,
            )
    if dry_run:
        return print_estimate(estimate, json=showing.json)
    written = msgspec.structs.replace(written, upload_to=stored.address)
    return report(written, showing=showing, reports=reports)

"""``baton score``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path

from baton.session.prepare import ScoreOptions
from baton.session.score import estimate_scoring, score_files

from .messages import note
from .options import (
    AS_CONFIGURED,
    AS_JUDGED,
    HERE,
    NONE,
    OUT,
    ConfigPath,
    Dataset,
    Evaluators,
    Flag,
    JudgeOptions,
    Paths,
    Redacting,
    Reports,
    Whole,
    Workers,
    trust_in,
)
from .output import print_estimate, report


def score_command(
    *traces: str,
    dataset: Dataset = (),
    evaluators: Evaluators = (),
    config: ConfigPath = None,
    agents: Path | None = None,
    json: Flag = False,
    show: Whole = 10,
    reports: Reports = NONE,
    out: Path = OUT,
    name: str | None = None,
    judging: JudgeOptions = AS_JUDGED,
    workers: Workers = HERE,
    jobs: Whole = 1,
    dry_run: Flag = False,
    trust: Paths = (),
    redacting: Redacting = AS_CONFIGURED,
) -> int:
    """Score recorded traces, against a dataset where there is one.

    Parameters
    ----------
    traces
        Files and folders with recorded traces, in any format Baton reads; globs, and addresses
        (s3://bucket/traces) where fsspec is installed.
    dataset
        Cases: a file, a folder, or FILE:case1,case2. May be given several times.
    evaluators
        An evaluator to score with, with its default options. May be given several times.
    config
        A config with evaluators, options and a dataset; what is given here overrides it.
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    json
        Print the whole report as JSON.
    show
        How many of the cases that did not pass are printed in full.
    out
        Where evaluations are stored.
    name
        Name of the evaluation.
    jobs
        How many processes score; with judges it is one.
    dry_run
        Print what judging would cost; send nothing, and import no code of your own.
    trust
        A folder whose test_config.json may name code; remembered until it changes. May be given
        several times.
    """
    asked: ScoreOptions = {
        "config": config,
        "agents": agents,
        "name": name,
        "judge": judging.flags(rehearsal=dry_run),
        "trust": trust_in(trust),
        "redact": redacting.redact,
        "redact_kinds": redacting.redact_kind,
        "note": note,
    }
    work = (traces, dataset or None, evaluators or None)
    # What the user's own code prints is no part of the report.
    with redirect_stdout(sys.stderr):
        if dry_run:
            estimate = estimate_scoring(
                *work, backend=workers.backend, workers=workers.workers, **asked
            )
        else:
            written = score_files(
                *work,
                out=out,
                backend=workers.backend,
                workers=workers.workers,
                jobs=jobs,
                reports=list(reports.files().values()),
                **asked,
            )
    if dry_run:
        return print_estimate(estimate, json=json)
    return report(written, json=json, show=show, reports=reports)

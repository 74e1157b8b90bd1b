"""``baton eval``."""

from __future__ import annotations

import logging
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, cast

from cyclopts import Parameter

from baton.config import Config
from baton.formats.evaluation_header import Request
from baton.model import RunOptions
from baton.model.mask_known_secrets import mask
from baton.model.visible import visible_line
from baton.reports.text import one_line
from baton.session.components import changes_in
from baton.session.evaluate import (
    Evaluated,
    EvaluateOptions,
    Listener,
    Variant,
    estimate_evaluation,
    evaluate_files,
)
from baton.session.report import STORED, Out, out_at
from baton.store import read_evaluation

from .options import (
    FIRST,
    HERE,
    LATER,
    MORE,
    NONE,
    SHORT,
    USUAL,
    Changes,
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
    Words,
    Workers,
)
from .output import print_estimate, readers_may_leave, report, verdict_line
from .progress import progress
from .signals import note_ignored_interrupts
from .usage_messages import note


@Parameter(name="*", group=MORE)
@dataclass(frozen=True)
class Running:
    """How to run; this overrides the config.

    Parameters
    ----------
    repeat
        How often each case is played.
    concurrency
        How many cases run at once, at most.
    timeout
        Seconds for one case.
    retry_errors
        How often a case that ended in an error is played again. By default, only what a server
        refused with 429 or 503 is played again; with 0, nothing.
    fail_fast
        Stop at the first case that fails or ends in an error.
    max_agent_cost
        The most that the agents may cost in this run, in USD; cases after that are errors.
    resume
        Resume the evaluation in this folder: play what is missing or was an error. The config or
        the agent is named as it was then.
    only_failed
        Start a new evaluation of the cases that did not pass in this folder, or at this address.
    last_failed
        Start a new evaluation of the cases that did not pass in the last one.
    force
        Continue even if the dataset, the config or an evaluator changed.
    variant
        Which of a config's providers to evaluate, by its agent_id or type.
    changes
        Play with a text of the agents changed: NAME=FILE, as in agent:desk=new.md; NAME is one of
        `baton components`, and of examples FILE may be cases.yaml:id1,id2. May be given several
        times.
    live_tools
        A tool that really runs in cases whose tools are answered by stand-ins. May be given several
        times.
    """

    repeat: Annotated[Whole | None, FIRST] = None
    concurrency: Whole | None = None
    timeout: float | None = None
    retry_errors: Whole | None = None
    fail_fast: Flag = False
    max_agent_cost: float | None = None
    resume: str | None = None
    only_failed: str | None = None
    last_failed: Annotated[LastFailed, FIRST] = False
    force: Flag = False
    variant: str | None = None
    changes: Changes = ()
    live_tools: Annotated[Words, Parameter(name="--live-tools")] = ()

    def options(self) -> EvaluateOptions:
        """Return the given options that the Python interface has as well.

        Raises:
            InputError: the new text of a component cannot be read.
        """
        values = {name: getattr(self, name) for name in RunOptions.__struct_fields__}
        # A flag that is not given leaves the config's value; 0 is a value.
        stated = {name: v for name, v in values.items() if v is not None and v is not False}
        if self.changes:
            stated["texts"] = changes_in(self.changes)
        if self.live_tools:
            stated["live_tools"] = self.live_tools
        return cast("EvaluateOptions", stated)


NORMAL = Running()


def eval_command(
    *target: str,
    dataset: Dataset = (),
    evaluators: Evaluators = (),
    config: ConfigPath = None,
    config_file_path: Annotated[
        Path | None, LATER, Parameter(name=["--config_file_path", "--config-file-path"])
    ] = None,
    scoring: Scoring = USUAL,
    name: Annotated[str | None, LATER] = None,
    app: Annotated[str | None, LATER] = None,
    keyword: Keyword = None,
    filters: Annotated[Words, LATER, Parameter(name=["--filter", "-f"])] = (),
    limit: Annotated[Whole | None, LATER] = None,
    running: Running = NORMAL,
    print_detailed_results: Annotated[
        bool,
        Parameter(
            name=["--print_detailed_results", "--print-detailed-results"], negative="", show=False
        ),
    ] = False,
    showing: Showing = SHORT,
    reports: Reports = NONE,
    out: Annotated[str, LATER] = str(STORED),
    workers: Workers = HERE,
    dry_run: Annotated[Flag, LATER] = False,
    trust: Annotated[Paths, LATER] = (),
) -> int:
    """Play a dataset against live agents and score what they did.

    `baton eval [CONFIG] [DATASET...]`, with baton.yaml when no config is named, or
    `baton eval AGENT DATASET...` with AGENT a folder of ADK agents, the address of an ADK
    server, or module:function.

    Parameters
    ----------
    target
        A config (by default `baton.yaml`) or an agent, then datasets: files, folders, or
        FILE:case1,case2. An agent is module:function, a folder of ADK agents, or the address of an
        ADK server.
    dataset
        One more dataset; datasets given here or as arguments override those of the config.
    evaluators
        An evaluator to score with: NAME, or NAME:0.8 with its threshold; +NAME adds it to what
        cases or config ask for. May be given several times.
    config
        A config, or criteria of ADK (a test_config.json of any name). With an agent, that one
        plays instead of the config's.
    config_file_path
        Criteria of ADK; the same as --config.
    app
        The app of the server to talk to, if it has several.
    keyword
        Only cases that match the expression: a word is part of the id or of a tag, with `and`,
        `or`, `not`, parentheses, tag:NAME and metadata.KEY=VALUE.
    filters
        Which cases: a glob over ids, tag:NAME or metadata.KEY=VALUE; all given have to match.
    limit
        The maximum number of cases.
    print_detailed_results
        The same as --verbose, as ADK spells it.
    out
        Where evaluations are stored: a folder, or an address (s3://bucket/evaluations) to which the
        folder is copied at the end.
    dry_run
        Print what judging would cost, as far as the cases show it; play nothing, send nothing,
        import no code of your own.
    name
        Name of the evaluation.
    trust
        A folder whose baton.yaml and test_config.json may name code, although they were only found;
        remembered until they change. May be given several times.
    """
    showing = replace(showing, verbose=showing.verbose or print_detailed_results)
    showing.begin()
    request = Request(
        config=None if config is None else str(config),
        target=list(target),
        dataset=list(dataset),
        evaluators=list(evaluators),
        criteria=None if config_file_path is None else str(config_file_path),
        agents=None if scoring.agents is None else str(scoring.agents),
        app=app,
        filters=list(filters),
        keyword=keyword,
        limit=limit,
        variant=running.variant,
    )
    options: EvaluateOptions = {
        "name": name,
        **scoring.options(trust, rehearsal=dry_run),
        **running.options(),
    }
    stored = out_at(out)
    start: dict[str, Any] = {
        "resume": running.resume,
        "only_failed": running.only_failed,
        "last_failed": running.last_failed,
        "out": stored.folder,
        "force": running.force,
        "backend": workers.backend,
        "workers": workers.workers,
        "listener": _listener(quiet=showing.quiet),
    }
    note_ignored_interrupts()
    # What agents print on import and while they run is not part of the report.
    with redirect_stdout(sys.stderr):
        if dry_run:
            estimate = estimate_evaluation(request, **start, **options)
        else:
            files = list(reports.files().values())
            done = evaluate_files(request, reports=files, **start, **options)
    if dry_run:
        return print_estimate(estimate, json=showing.json)
    return _report(done, stored, showing=showing, reports=reports)


def _listener(*, quiet: bool) -> Listener:
    if quiet:
        return Listener(configured=_set_up_logs)
    return Listener(configured=_set_up_logs, progress=progress)


class _MaskedLines(logging.Formatter):
    """Masks secrets of the config: HTTP clients log addresses with their queries."""

    def format(self, record: logging.LogRecord) -> str:
        return mask(super().format(record))


def _set_up_logs(config: Config | None) -> None:
    """Keep what libraries log out of the report, unless the config asks for it."""
    level = config.agent.log_level if config else None
    if level is not None:
        logging.basicConfig(level=level)
        for handler in logging.getLogger().handlers:
            handler.setFormatter(_MaskedLines(logging.BASIC_FORMAT))
    else:
        logging.getLogger().addHandler(logging.NullHandler())


def _report(done: Evaluated, stored: Out, *, showing: Showing, reports: Reports) -> int:
    """Report on all variants, each with its own files, and print a summary."""
    first, *others = done.variants
    code, as_list = 0, showing.json and first.name is not None
    for number, variant in enumerate(done.variants):
        if as_list:
            _print("[" if number == 0 else ",")
        elif others:
            _print(f"{'' if number == 0 else chr(10)}# {one_line(str(variant.name))}")
        files: dict[str, Any] = {kind: variant.own(path) for kind, path in reports.files().items()}
        written = variant.written(done.config, upload_to=stored.address)
        code = max(code, report(written, showing=showing, reports=replace(reports, **files)))
    if as_list:
        _print("]")
    elif others and not showing.quiet:
        _print("\n" + "\n".join(map(_summary, done.variants)))
    if others:
        folders = " ".join(str(each.folder) for each in done.variants)
        note(f"side by side: baton compare {folders}")
    return code


def _print(text: str) -> None:
    with readers_may_leave():
        print(text)


def _summary(variant: Variant) -> str:
    evaluation = read_evaluation(variant.folder, partial=True)
    return visible_line(f"{variant.name}: {verdict_line(evaluation)}")

"""``baton submit``."""

from __future__ import annotations

import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Annotated

from baton.formats.storage_addresses import remember_copy
from baton.model import InputError, counted
from baton.reports.github import link_cases
from baton.reports.registry import report_entry
from baton.safe_output import command_output
from baton.session.file_kinds import is_kind
from baton.session.report import write_reports
from baton.session.server_client import Server, connect, server_address
from baton.session.server_rows import EvaluationJob
from baton.store import read_evaluation

from .options import LATER, NONE, SHORT, Evaluators, Flag, Reports, Showing, Whole, Words
from .output import print_short_or_long, readers_may_leave
from .usage_messages import note, say


def submit_command(
    *targets: Path,
    server: str | None = None,
    project: str | None = None,
    agent: str | None = None,
    conversations: str | None = None,
    evaluator: Evaluators = (),
    gate: Annotated[Words, LATER] = (),
    repeat: Annotated[Whole, LATER] = 1,
    name: Annotated[str | None, LATER] = None,
    wait: Flag = False,
    showing: Showing = SHORT,
    reports: Reports = NONE,
) -> int:
    """Have a server evaluate cases with one of its agents, or score recordings.

    Prints the number of the evaluation. With --wait it prints the report at the end, and the exit
    code is that of `baton eval`. With --github as well, the summary of the step links to each
    failed case.

    Parameters
    ----------
    targets
        Datasets and recordings; each is recognised by its content. An eval set of ADK is scored by
        the `test_config.json` next to it, or by another one that is given here.
    server
        The address of the server; `BATON_SERVER`, or http://localhost:4318, by default. The key is
        taken from `BATON_API_KEY`.
    project
        The project on the server.
    agent
        The agent that plays the cases, by its name in `agents:` of `server.yaml`.
    conversations
        Score conversations that are on the server: a filter such as `to:refund-*`, or `*` for all.
    evaluator
        The name of an evaluator; may be given several times.
    gate
        A gate rule for the evaluation; may be given several times.
    repeat
        How often each case is played.
    name
        The name of the evaluation.
    wait
        Wait until it has finished.
    """
    showing.begin()
    if vars(reports) != vars(NONE) and not wait:
        raise InputError("a report needs --wait: without it there are no results yet")
    if not targets and conversations is None:
        raise InputError("name the cases or recordings to send, or give --conversations FILTER")
    for target in targets:
        if not target.exists():
            raise InputError(f"{target}: no such file or folder")
    datasets = [target for target in targets if is_kind(target, "dataset")]
    criteria = [target for target in targets if is_kind(target, "criteria")]
    if len(criteria) > 1:
        raise InputError(f"{criteria[1]}: only one file of criteria is allowed")
    client = connect(server_address(server), project=project)
    job = client.submit(
        datasets,
        criteria=criteria[0] if criteria else None,
        recordings=[target for target in targets if target not in [*datasets, *criteria]],
        conversations=conversations,
        agent=agent,
        evaluators=evaluator,
        gate=gate,
        repeat=repeat,
        name=name,
    )
    if not wait:
        print(job.id)
        note(f"waiting for a worker: baton report --server {client.url} {job.id}")
        return 0
    note(f"evaluation {job.id} of {counted(len(targets), 'file')} is waiting for a worker")
    return show_job(client, client.wait(job.id), showing, reports)


def show_job(server: Server, job: EvaluationJob, showing: Showing, reports: Reports = NONE) -> int:
    """Print a server's report of an evaluation, write requested files, return the exit code."""
    if job.state in ("waiting", "running"):
        say(f"evaluation {job.id} is {job.state}")
        return 3
    if job.error is not None:
        say(f"baton: {job.error}")
        return 3 if job.exit_code is None else job.exit_code
    with tempfile.TemporaryDirectory() as place:
        folder = server.fetch(job.id, place)
        # The copy is removed at the end: reports name where the evaluation is.
        remember_copy(folder, f"evaluation {job.id} of {server.url}")
        stored = read_evaluation(folder, partial=True)
        with readers_may_leave():
            if showing.json:
                report_entry("json").target(stored, sys.stdout)
            else:
                print_short_or_long(stored, showing)
        write_reports(stored, [], reports.files())
        if reports.github:
            annotations = command_output(sys.stderr if showing.json else sys.stdout)
            report_entry("github").target(stored, annotations)
            link_cases(stored, partial(server.case_page, job.id))
    return 3 if job.exit_code is None else job.exit_code

"""``baton calibrate``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec

from baton.reports.calibrate import plain_calibration, print_calibration
from baton.session.calibrate import calibrate
from baton.store.calibrations import FOLDER

from .options import AS_JUDGED, LATER, ConfigPath, Flag, JudgeOptions, Paths, Whole, Words
from .output import readers_may_leave
from .usage_messages import note

NO_EVIDENCE = 3


def calibrate_command(
    rubric: str,
    *files: str,
    config: ConfigPath = None,
    judging: JudgeOptions = AS_JUDGED,
    against: Words = (),
    samples: Whole | None = None,
    reversed: Annotated[Flag, LATER] = False,
    agents: Path | None = None,
    traces: Annotated[Paths, LATER] = (),
    json: Flag = False,
    out: Annotated[Path, LATER] = FOLDER,
) -> int:
    """Compare a judge with the labels of people: how far can you trust it?

    `baton calibrate RUBRIC LABELS TRACES...` asks the judge about everything that has a label,
    except what findings decide; `baton calibrate RUBRIC LABELS EVALUATION...` takes the stored
    verdicts and makes no calls. Without labels, several evaluations (or models) show how judges
    agree.

    The exit code is 3 when there are too few labels for a conclusion.

    Parameters
    ----------
    rubric
        The rubric, by any of its names.
    files
        Labels (JSON lines, a dataset with `labels`, or server://HOST/PROJECT), then traces, or
        evaluations. With labels of a server, its own conversations by default.
    config
        A config with `judge:`, the rubric's options, and rubrics of your own.
    against
        Another model to ask, for comparison. May be given several times.
    samples
        How often the judge is asked about each thing; 2 or more show how consistent it is.
    reversed
        Ask once more with labels and material in reverse order: does the order matter?
    agents
        Agent definitions: an app-info answer of ADK, `.claude/agents`, or YAML with `agents:`.
    traces
        Recordings that evaluations were made from: needed for the effects of length when these were
        made on another machine, or moved. May be given several times.
    json
        Print the figures as JSON.
    out
        Where calibrations are stored; reports look in the default place.
    """
    report = calibrate(
        rubric,
        files,
        config=config,
        judge=judging.flags(),
        against=against,
        samples=samples,
        reversed=reversed,
        agents=agents,
        traces=traces,
        out=out,
        note=note,
    )
    with readers_may_leave():
        if json:
            print(msgspec.json.encode(plain_calibration(report)).decode())
        else:
            print_calibration(report, sys.stdout)
    return 0 if report.is_evidence or not report.labels else NO_EVIDENCE

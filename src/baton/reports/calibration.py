"""What reports say of how good a judge is."""

from __future__ import annotations

from pathlib import Path

from baton.model import InputError
from baton.store import Header
from baton.store.calibrations import FOLDER, Calibration, Figure, kept_calibration

from .judging import asked_by_evaluator

_NO_RUBRIC = frozenset({"panel"})
NOT_CALIBRATED = "not calibrated"


def calibration_line(rubric: str, version: str, model: str, root: Path = FOLDER) -> str:
    """Say in a few words how well a judge keeps to what people say.

    ``agreement 0.91 [0.86, 0.94], kappa 0.78, n=210``, or ``not calibrated`` and, where there were
    too few labels, what is lacking. ``version`` is the rubric's; only a calibration of just this
    version and model counts. Raises InputError for a stored one that cannot be read.
    """
    found = kept_calibration(rubric, version, model, root)
    return NOT_CALIBRATED if found is None else told(found)


def calibrations_of(header: Header, root: Path = FOLDER) -> list[tuple[str, str, str]]:
    """Return what is known of the judges of an evaluation: evaluator, model, and the line.

    A calibration that cannot be read is told of in place of the line.
    """
    types = {counts.evaluator: counts.type for counts in header.evaluators}
    found = []
    for name, (asked, _) in asked_by_evaluator(header.by_agent).items():
        rubric, version = types.get(name, name), header.evaluator_versions.get(name, "")
        for model in asked.models if rubric not in _NO_RUBRIC else ():
            try:
                line = calibration_line(rubric, version, model, root)
            except InputError as error:
                line = str(error)
            found.append((name, model, line))
    return found


def told(calibration: Calibration) -> str:
    """Say what a calibration found."""
    if calibration.lacking or calibration.agreement is None:
        return f"{NOT_CALIBRATED}: {'; '.join(calibration.lacking) or 'nothing to compare'}"
    parts = [f"agreement {_with_interval(calibration.agreement)}"]
    if calibration.kappa is not None:
        parts.append(f"kappa {calibration.kappa.value:.2f}")
    return ", ".join([*parts, f"n={calibration.n}"])


def _with_interval(figure: Figure) -> str:
    return f"{figure.value:.2f} [{figure.low:.2f}, {figure.high:.2f}]"

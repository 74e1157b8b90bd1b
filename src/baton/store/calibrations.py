"""Calibrations: how well a judge agrees with people, by rubric, version and model."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import msgspec

from baton.formats.own_files import make_folder, write_whole
from baton.model import InputError, Problem
from baton.stats.intervals import Estimate

FOLDER = Path(".baton/calibrations")


class Calibration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A stored calibration: ``n`` labelled items with a verdict, and their comparison.

    ``lacking`` says why it is not sufficient. ``labels`` are the files of the labels, ``timings``
    its time.
    """

    rubric: str
    version: str
    model: str
    n: int
    agreement: Estimate | None = None
    kappa: Estimate | None = None
    lacking: list[str] = msgspec.field(default_factory=list)
    labels: list[str] = msgspec.field(default_factory=list)
    timings: dict[str, str] = msgspec.field(default_factory=dict)


def keep_calibration(calibration: Calibration, root: Path = FOLDER) -> Path:
    """Write a calibration in place of an earlier one; return its file.

    An earlier one with more evidence stays (:func:`better_calibration`), unless its file is
    deleted.

    Raises:
        InputError: it cannot be written.
    """
    if better_calibration(calibration, root) is not None:
        return _file(root, calibration.rubric, calibration.version, calibration.model)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    calibration = msgspec.structs.replace(calibration, timings={"made": now})
    file = _file(root, calibration.rubric, calibration.version, calibration.model)
    text = msgspec.json.format(msgspec.json.encode(calibration), indent=2)
    try:
        make_folder(file.parent)
        write_whole(file, text + b"\n")
    except OSError as error:
        message = f"the calibration cannot be stored here: {error.strerror}"
        raise InputError(Problem(file=str(file.parent), message=message)) from None
    return file


def better_calibration(calibration: Calibration, root: Path = FOLDER) -> Calibration | None:
    """Return an earlier calibration of the same rubric, version and model with more evidence.

    That is one that is sufficient while this one is not, or one with more labels. An unreadable one
    is ignored: its error message asks to make it again.
    """
    try:
        earlier = kept_calibration(calibration.rubric, calibration.version, calibration.model, root)
    except InputError:
        return None
    if earlier is None:
        return None
    ranks = [(not one.lacking, one.n) for one in (earlier, calibration)]
    return earlier if ranks[0] > ranks[1] else None


def kept_calibration(
    rubric: str, version: str, model: str, root: Path = FOLDER
) -> Calibration | None:
    """Return the calibration of exactly this rubric, version and model, if there is one."""
    file = _file(root, rubric, version, model)
    try:
        calibration = msgspec.json.decode(file.read_bytes(), type=Calibration)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"the calibration cannot be read: {error}; make it again, or delete it"
        raise InputError(Problem(file=str(file), message=message)) from None
    return (
        calibration
        if (calibration.rubric, calibration.version, calibration.model) == (rubric, version, model)
        else None
    )


def kept_calibrations(rubric: str, root: Path = FOLDER) -> list[Calibration]:
    """Return all readable calibrations of a rubric, the newest first."""
    calibrations = []
    for file in sorted((root / _slug(rubric)).glob("*.json")):
        try:
            calibrations.append(msgspec.json.decode(file.read_bytes(), type=Calibration))
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            continue
    return sorted(calibrations, key=lambda one: one.timings.get("made", ""), reverse=True)


def _file(root: Path, rubric: str, version: str, model: str) -> Path:
    # The digest distinguishes names with the same file name: `a/b` and `a-b`.
    digest = sha256(f"{rubric}\n{version}\n{model}".encode()).hexdigest()[:8]
    return root / _slug(rubric) / f"{_slug(version)}-{_slug(model)}-{digest}.json"


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", name).strip("-.")[:60] or "unnamed"

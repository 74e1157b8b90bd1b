"""Baselines: evaluations to compare with, without traces, small enough to be committed."""

from __future__ import annotations

from pathlib import Path

import msgspec

from baton.formats.evaluation_folder import HEADER
from baton.formats.own_files import make_folder, write_whole
from baton.model import InputError, Problem, nearest
from baton.store import read_evaluation

from .snapshot import Snapshot, snapshot_of

FOLDER = Path(".baton/baselines")
DEFAULT = "default"
_ENCODER = msgspec.json.Encoder()


def baseline_file(name: str, folder: Path = Path()) -> Path:
    """Return where a baseline lies: a path of its own, or a name among the baselines here."""
    if "/" in name or name.endswith(".json"):
        return folder / name
    return FOLDER / f"{name}.json"


def write_baseline(snapshot: Snapshot, file: Path) -> None:
    """Write a baseline, a case to a line, so that a change of it reads well.

    Raises:
        InputError: it cannot be written.
    """
    plain = msgspec.to_builtins(snapshot)
    cases = plain.pop("cases", [])
    head = msgspec.json.format(_ENCODER.encode(plain), indent=2).decode().removesuffix("\n}")
    lines = ",\n    ".join(_ENCODER.encode(case).decode() for case in cases)
    text = f'{head},\n  "cases": [\n    {lines}\n  ]\n}}\n'
    try:
        make_folder(file.parent)
        write_whole(file, text.encode())
    except OSError as error:
        message = f"the baseline cannot be written: {error.strerror}"
        raise InputError(Problem(file=str(file), message=message)) from None


def read_baseline(file: Path) -> Snapshot:
    """Read a baseline; raises InputError when there is none, or the file is none."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Snapshot)
    except FileNotFoundError:
        raise InputError(Problem(file=str(file), message=_none(file))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, OSError) as error:
        message = f"no baseline: {error}; `baton baseline set EVALUATION` writes one"
        raise InputError(Problem(file=str(file), message=message)) from None


def open_side(name: str, folder: Path = Path()) -> Snapshot:
    """Open what is compared: an evaluation folder, or a baseline by name or path.

    Raises:
        InputError: it is neither.
    """
    path = folder / name
    if (path / HEADER).is_file():
        return snapshot_of(read_evaluation(path))
    file = baseline_file(name, folder)
    if file.is_file():
        return read_baseline(file)
    if path.is_dir():
        read_evaluation(path)
    message = f"{_none(file)}; an evaluation is a folder with an evaluation.json"
    raise InputError(Problem(file=name, message=message))


def _none(file: Path) -> str:
    others = sorted(each.stem for each in file.parent.glob("*.json"))
    near = nearest(file.stem, others)
    hint = f"; did you mean `{near[0]}`?" if near else ""
    return f"no baseline here{hint} (`baton baseline set EVALUATION` writes one)"

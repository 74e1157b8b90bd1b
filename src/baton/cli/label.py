"""`baton label`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from baton.datasets.labels import LabelFile, LabelLine
from baton.evaluators.judged import Judged
from baton.model import InputError
from baton.model.visible import visible_line
from baton.reports.text import one_line
from baton.reports.trace import print_sheet, print_trace
from baton.runner.calibration import DISAGREE, SPLIT, ToLabel
from baton.runner.judged_subjects import terms_of
from baton.safe_output import own_output
from baton.session.calibrate import things_to_label
from baton.stats.calibration import FAILED, PASSED, Terms
from baton.store import latest_evaluation

from .options import OUT, ConfigPath, Paths

ENTER = ("\r", "\n")
ENDS = ("\x03", "\x04", "")
"""Ctrl-C, Ctrl-D, and the end of the input."""


def has_terminal() -> bool:
    """Tell whether somebody sits there: both what is read and what is printed are a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def single_keys() -> Iterator[None]:
    """Let keys arrive as they are pressed, without Enter; the terminal is put back at the end."""
    if os.name == "nt":
        yield
        return
    import termios
    import tty

    place = sys.stdin.fileno()
    before = termios.tcgetattr(place)
    try:
        tty.setcbreak(place)
        yield
    finally:
        termios.tcsetattr(place, termios.TCSADRAIN, before)


def read_key() -> str:
    """Wait for a key and return its character; empty when the input has ended."""
    if os.name == "nt":
        import msvcrt

        return str(getattr(msvcrt, "getwch")())  # noqa: B009 - there on Windows only
    typed = os.read(sys.stdin.fileno(), 1)
    while typed and typed[0] >= 0xC0 and not _whole(typed):
        typed += os.read(sys.stdin.fileno(), 1)
    return typed.decode(errors="replace")


def _whole(typed: bytes) -> bool:
    """Tell whether the bytes of one character of UTF-8 are all there."""
    wanted = 2 if typed[0] < 0xE0 else 3 if typed[0] < 0xF0 else 4
    return len(typed) >= wanted


_WHY = {DISAGREE: "judge and findings disagree", SPLIT: "the samples of the judge differ"}


def label_command(
    evaluation: Path | None = None,
    *,
    rubric: Annotated[str | None, Parameter(name=["--rubric", "-r"])] = None,
    labels: Path = Path("labels.jsonl"),
    by: str | None = None,
    config: ConfigPath = None,
    agents: Path | None = None,
    traces: Paths = (),
) -> int:
    """Walk through the dispatches of an evaluation and label them, for `baton calibrate`.

    What is labelled is written at once; what has a label already is passed over, so that you
    can stop and go on later. What the judge said is not shown.

    Parameters
    ----------
    evaluation
        Folder of the evaluation; the newest one when left out.
    rubric
        The rubric to label by; the one the evaluation was judged by when left out.
    labels
        The file to write, one JSON object a line; what is in it is kept.
    by
        Who labels, if several people do.
    config
        A config, for rubrics of your own.
    agents
        Agent definitions, for traces that are elsewhere.
    traces
        Recordings that the evaluation was made of: needed when it was made on another machine, or
        moved. May be given several times.
    """
    if not has_terminal():
        raise InputError("labelling needs a terminal; see docs/calibration.md for label files")
    folder = evaluation if evaluation is not None else latest_evaluation(OUT)
    evaluator, things = things_to_label(
        folder, rubric=rubric, config=config, agents=agents, traces=traces
    )
    file = LabelFile(labels)
    with single_keys():
        _Walk(evaluator, things, file, by).go()
    return 0


class _Walk:
    """Goes through what is to be labelled."""

    def __init__(
        self, evaluator: Judged, things: list[ToLabel], file: LabelFile, by: str | None
    ) -> None:
        self._evaluator, self._things, self._file, self._by = evaluator, things, file, by
        self._terms = terms_of(evaluator)
        self._choices = dict(zip("123456789", _answers(evaluator, self._terms), strict=False))
        done = set(file.labelled(evaluator.type, by))
        self._due = [place for place, one in enumerate(things) if one.key not in done]

    def go(self) -> None:
        """Ask until all is done or ``q`` is pressed."""
        total = len(self._things)
        if total > len(self._due):
            print(f"{total - len(self._due)} of {total} are labelled already")
        while self._due or self._takes_back():
            self._show(full=False)
            if not self._answer():
                break
        left = f", {len(self._due)} are left" if self._due else ""
        print(f"\n{total - len(self._due)} of {total} are labelled{left}: {self._file.path}")

    def _takes_back(self) -> bool:
        """Offer to take the last label back, as everything is labelled."""
        print("\nall are labelled: u takes the last one back, any other key ends", flush=True)
        if read_key() == "u":
            self._undo()
        return bool(self._due)

    @property
    def _now(self) -> ToLabel:
        return self._things[self._due[0]]

    def _show(self, *, full: bool) -> None:
        one, total = self._now, len(self._things)
        subject = one.subject
        why = f"   {_WHY[one.why]}" if one.why in _WHY else ""
        print(
            f"\n── {total - len(self._due) + 1} of {total}   {one_line(subject.trace.id, 200)}{why}"
        )
        if subject.dispatch is not None and subject.turn is not None:
            print_sheet(subject.trace, subject.turn, subject.dispatch, sys.stdout, full=full)
        else:
            print_trace(subject.trace, sys.stdout, turn=subject.number)
        self._ask()

    def _ask(self) -> None:
        print(f"\n{visible_line(self._evaluator.rubric.summary)}")
        meanings = self._evaluator.rubric.answer.labels or {}
        for key, name in self._choices.items():
            means = meanings[name].means if name in meanings else ""
            print(visible_line(f"  {key} {name}{f': {means}' if means else ''}"))
        if not self._choices:
            low, high = self._terms.bounds
            print(f"  a number from {low:g} to {high:g}, then Enter")
        print("  v view all   s skip   u undo   q quit", flush=True)

    def _answer(self) -> bool:
        """Do what one key says; false when it ends the walk."""
        while True:
            key = read_key()
            if key in ("q", *ENDS):
                return False
            if key == "v":
                self._show(full=True)
            elif key == "s":
                self._due.append(self._due.pop(0))
                return True
            elif key == "u":
                self._undo()
                return True
            elif key in self._choices:
                self._write(label=self._choices[key])
                return True
            elif not self._choices and (score := self._number(key)) is not None:
                self._write(score=score)
                return True

    def _number(self, first: str) -> float | None:
        """Read a number that begins with this key; ``None`` when it is none of the scale."""
        typed, key = "", first
        while key not in (*ENTER, *ENDS):
            if key in ("\x7f", "\b"):
                typed = typed[:-1]
            elif key.isprintable():
                typed += key
            print(f"\r{typed} \b", end="", flush=True, file=own_output(sys.stdout))
            key = read_key()
        try:
            score = float(typed.replace(",", "."))
            self._terms.score(score)
        except ValueError:
            print(f"\n`{typed}` is not a number of this scale", flush=True)
            return None
        return score

    def _write(self, label: str | None = None, score: float | None = None) -> None:
        subject = self._now.subject
        dispatch = subject.id if subject.unit == "dispatch" else None
        self._file.add(
            LabelLine(
                trace=subject.trace.id,
                dispatch=dispatch,
                subject=None if dispatch or subject.unit == "trace" else subject.id,
                rubric=self._evaluator.type,
                label=label,
                score=score,
                by=self._by,
                at=datetime.now(UTC).isoformat(timespec="seconds"),
            )
        )
        print(f"→ {label if label is not None else f'{score:g}'}")
        self._due.pop(0)

    def _undo(self) -> None:
        """Take the last label back and show again what it was about."""
        taken = self._file.take_back(self._evaluator.type, self._by)
        if taken is None:
            print("nothing to undo")
            return
        key = (taken.trace, taken.dispatch or taken.subject or taken.trace)
        places = (place for place, one in enumerate(self._things) if one.key == key)
        self._due[:0] = list(places)
        print(f"taken back: {taken.label if taken.label is not None else taken.score}")


def _answers(evaluator: Judged, terms: Terms) -> list[str]:
    """Return what can be said with one key: labels; nothing for a scale of numbers."""
    plain = [] if evaluator.rubric.answer.scale is not None else [PASSED, FAILED]
    return list(terms.labels) or plain

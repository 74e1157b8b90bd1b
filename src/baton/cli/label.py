"""`baton label`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from baton.model import InputError
from baton.model.visible import visible_line
from baton.reports.text import one_line
from baton.reports.trace import print_dispatch_page, print_trace
from baton.runner.calibration_report import DISAGREE, SPLIT
from baton.safe_output import own_output
from baton.session.label import Labelling, label

from .options import ConfigPath, Paths

ENTER = ("\r", "\n")
ENDS = ("\x03", "\x04", "")
"""Ctrl-C, Ctrl-D, and the end of the input."""


def has_terminal() -> bool:
    """Tell whether a person can answer: standard input and output are both a terminal."""
    return sys.stdin.isatty() and sys.stdout.isatty()


@contextmanager
def single_keys() -> Iterator[None]:
    """Read keys as they are pressed, without Enter; restores the terminal at the end."""
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
    """Wait for a key and return its character; empty at the end of the input."""
    if os.name == "nt":
        import msvcrt

        return str(getattr(msvcrt, "getwch")())  # noqa: B009 - there on Windows only
    typed = os.read(sys.stdin.fileno(), 1)
    while typed and typed[0] >= 0xC0 and not _whole(typed):
        typed += os.read(sys.stdin.fileno(), 1)
    return typed.decode(errors="replace")


def _whole(typed: bytes) -> bool:
    """Tell whether the bytes are one complete UTF-8 character."""
    wanted = 2 if typed[0] < 0xE0 else 3 if typed[0] < 0xF0 else 4
    return len(typed) >= wanted


_WHY = {DISAGREE: "judge and findings disagree", SPLIT: "the samples of the judge differ"}


def label_command(
    evaluation: str | None = None,
    *,
    rubric: Annotated[str | None, Parameter(name=["--rubric", "-r"])] = None,
    labels: Path = Path("labels.jsonl"),
    by: str | None = None,
    config: ConfigPath = None,
    agents: Path | None = None,
    traces: Paths = (),
) -> int:
    """Walk through the dispatches of an evaluation and label them, for `baton calibrate`.

    Each label is written at once, and what has a label already is skipped, so that you can stop and
    continue later. The judge's verdict is not shown.

    Parameters
    ----------
    evaluation
        Folder or address of the evaluation; by default the newest one.
    rubric
        The rubric to label by; by default the one that the evaluation was judged by.
    labels
        The file to write, one JSON object per line; existing lines are kept.
    by
        Who labels, if several people do.
    config
        A config, for rubrics of your own.
    agents
        Agent definitions, for traces that are elsewhere.
    traces
        Recordings that the evaluation was made from: needed when it was made on another machine, or
        moved. May be given several times.
    """
    if not has_terminal():
        raise InputError("labelling needs a terminal; see docs/calibration.md for label files")
    labelling = label(
        evaluation,
        rubric=rubric,
        labels=labels,
        by=by,
        config=config,
        agents=agents,
        traces=traces,
    )
    with single_keys():
        _Walk(labelling).go()
    return 0


class _Walk:
    """Shows one dispatch after another, and reads the keys of labels."""

    def __init__(self, labelling: Labelling) -> None:
        self._labelling = labelling
        self._choices = dict(zip("123456789", labelling.choices, strict=False))

    def go(self) -> None:
        """Ask until everything is labelled or ``q`` is pressed."""
        labelling, total = self._labelling, len(self._labelling.things)
        if total > labelling.left:
            print(f"{total - labelling.left} of {total} are labelled already")
        while labelling.left or self._takes_back():
            self._show(full=False)
            if not self._answer():
                break
        left = f", {labelling.left} {'is' if labelling.left == 1 else 'are'} left"
        left = left if labelling.left else ""
        path = labelling.file.path
        print(f"\n{total - labelling.left} of {total} are labelled{left}: {path}")

    def _takes_back(self) -> bool:
        """Offer to undo the last label, since everything is labelled."""
        print("\neverything is labelled: u undoes the last label, any other key quits", flush=True)
        if read_key() == "u":
            self._undo()
        return bool(self._labelling.left)

    def _show(self, *, full: bool) -> None:
        one, total = self._labelling.now, len(self._labelling.things)
        subject = one.subject
        why = f"   {_WHY[one.why]}" if one.why in _WHY else ""
        number = total - self._labelling.left + 1
        print(f"\n── {number} of {total}   {one_line(subject.trace.id, 200)}{why}")
        if subject.dispatch is not None and subject.turn is not None:
            print_dispatch_page(
                subject.trace, subject.turn, subject.dispatch, sys.stdout, full=full
            )
        else:
            print_trace(subject.trace, sys.stdout, turn=subject.number)
        self._ask()

    def _ask(self) -> None:
        rubric = self._labelling.evaluator.rubric
        print(f"\n{visible_line(rubric.summary)}")
        meanings = rubric.answer.labels or {}
        for key, name in self._choices.items():
            means = meanings[name].means if name in meanings else ""
            print(visible_line(f"  {key} {name}{f': {means}' if means else ''}"))
        if not self._choices:
            low, high = self._labelling.terms.bounds
            print(f"  a number from {low:g} to {high:g}, then Enter")
        print("  v view all   s skip   u undo   q quit", flush=True)

    def _answer(self) -> bool:
        """Handle one key; false when it ends the session."""
        while True:
            key = read_key()
            if key in ("q", *ENDS):
                return False
            if key == "v":
                self._show(full=True)
            elif key == "s":
                self._labelling.skip()
                return True
            elif key == "u":
                self._undo()
                return True
            elif key in self._choices:
                self._labelling.give(self._choices[key])
                print(f"→ {self._choices[key]}")
                return True
            elif not self._choices and (score := self._number(key)) is not None:
                self._labelling.give(score=score)
                print(f"→ {score:g}")
                return True

    def _number(self, first: str) -> float | None:
        """Read a number that starts with this key; ``None`` when it is not on the scale."""
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
            self._labelling.terms.score(score)
        except ValueError:
            print(f"\n`{typed}` is not a number of this scale", flush=True)
            return None
        return score

    def _undo(self) -> None:
        """Undo the last label and show its subject again."""
        taken = self._labelling.take_back()
        if taken is None:
            print("nothing to undo")
        else:
            print(f"undone: {taken.value}")

"""Baton's exceptions, and problems with a user's input."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from .limits import NAME_LENGTH
from .mask_known_secrets import knows_secrets, mask
from .trace import Trace


class Problem(msgspec.Struct, frozen=True, order=True):
    """One problem of an input.

    ``file`` and ``line`` say where (a line counts from 1), ``path`` which value
    (``cases[2].turns[0].agents``), ``message`` what is wrong and what to write instead.
    ``damaged`` marks a damaged file that Baton itself wrote: that is not bad input (exit code 2),
    but could not be evaluated (3).
    """

    file: str | None = None
    line: int | None = None
    path: str = ""
    message: str = ""
    damaged: bool = False

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line) if part is not None)
        return ": ".join(part for part in (place, self.path, self.message) if part)


class BatonError(Exception):
    """Base of every error Baton raises on purpose."""


class InputError(BatonError):
    """Input that cannot be used. ``problems`` holds all of them, not only the first."""

    def __init__(self, problems: Problem | str | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem(message=problems)
        all_problems = [problems] if isinstance(problems, Problem) else list(problems)
        self.problems: list[Problem] = [_masked(problem) for problem in all_problems]
        super().__init__("\n".join(str(problem) for problem in self.problems))


class ProviderError(BatonError):
    """A case that could not be played to its end; ``trace`` is what was recorded until then."""

    def __init__(self, reason: str, trace: Trace | None = None) -> None:
        super().__init__(mask(reason))
        self.trace = trace


class RefusedError(BatonError):
    """A guard refused a dispatch, a call of a tool, or an answer; its text is the reason.

    ``decision`` is the :class:`baton.guard.decide_event.Decision`.
    """

    def __init__(self, reason: str, decision: object = None) -> None:
        super().__init__(mask(reason))
        self.decision = decision


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP ended the process; ``signal`` is its number.

    It is a KeyboardInterrupt, because the same cleanup as after Ctrl-C has to happen, and asyncio
    only passes these through.
    """

    def __init__(self, signal: int) -> None:
        super().__init__(signal)
        self.signal = signal


def nearest(word: str, known: Iterable[str], limit: int = 3, cutoff: float = 0.6) -> list[str]:
    """Return up to ``limit`` of the ``known`` names that look like ``word``, best first.

    ``cutoff`` is the least similarity: 0 (nothing in common) to 1 (equal). Names that are much less
    similar than the best one are left out.
    """
    if len(word) > NAME_LENGTH.value:
        return []
    import difflib  # only needed for errors

    matcher = difflib.SequenceMatcher(b=_fold(word))
    alike: dict[str, float] = {}
    for name in dict.fromkeys(known):
        matcher.set_seq1(_fold(name[: NAME_LENGTH.value]))
        # Two fast upper bounds; few names of thousands pass them.
        if matcher.real_quick_ratio() >= cutoff and matcher.quick_ratio() >= cutoff:
            alike[name] = matcher.ratio()
    least = max(cutoff, max(alike.values(), default=0.0) - 0.15)
    best = sorted((name for name in alike if alike[name] >= least), key=lambda name: -alike[name])
    return best[:limit]


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return a hint for a misspelt ``word``: similar names, or all names."""
    names = sorted(known)
    close = nearest(word, names)
    if close:
        return f"did you mean {' or '.join(f'`{name}`' for name in close)}?"
    return f"known: {', '.join(names)}" if names else ""


def counted(number: int, what: str) -> str:
    """Return a number with its noun: `1 case`, `2 cases`, `2 dispatches`, `2 bodies`."""
    if number == 1:
        return f"1 {what}"
    if what.endswith("y") and not what.endswith(("ay", "ey", "oy")):
        return f"{number:,} {what[:-1]}ies"
    return f"{number:,} {what}{'es' if what.endswith('ch') else 's'}"


def _masked(problem: Problem) -> Problem:
    """Mask secrets of a config: a message may quote the wrong value."""
    if not knows_secrets():
        return problem
    file = None if problem.file is None else mask(problem.file)
    return msgspec.structs.replace(
        problem, file=file, path=mask(problem.path), message=mask(problem.message)
    )


def _fold(name: str) -> str:
    return name.lower().replace("-", "_")

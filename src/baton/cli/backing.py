"""Where the work of ``eval`` and ``score`` is done: the options for it."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from cyclopts import Parameter

from baton.config import Config
from baton.config.backend import chosen_backend
from baton.model import InputError
from baton.readers.shards import is_address
from baton.runner.plan import Plan, judge_options

from .judging import JudgeOptions
from .numbers import Whole

if TYPE_CHECKING:
    from baton.runner.backends.protocol import Backend, Recipe


@Parameter(name="*")
@dataclass(frozen=True)
class Backing:
    """Where the work is done; what is given here goes before `backend:` of the config.

    Parameters
    ----------
    backend
        Who does the work: local (processes), ray, or module:function of your own.
    workers
        How many workers it has.
    """

    backend: str | None = None
    workers: Whole | None = None

    def spec(self, settings: Config | None) -> dict[str, Any] | None:
        """Return what to build, checked; ``None`` for none. Raises InputError."""
        return chosen_backend(settings.backend if settings else None, self.backend, self.workers)


HERE = Backing()


def backend_of(spec: dict[str, Any], settings: Config | None) -> Backend:
    """Build a backend; code of the user's own is looked for beside the config."""
    from baton.runner.backends.distribute import make_backend

    return make_backend(spec, settings.folder if settings else Path())


def recipe_of(
    settings: Config | None, plan: Plan, judging: JudgeOptions, paths: Sequence[str], **more: Any
) -> Recipe:
    """Return what workers set themselves up with; ``paths`` are those of the dataset.

    Raises:
        InputError: limits that workers, who know nothing of one another, cannot keep.
    """
    from baton import __version__

    if _is_limited(plan):
        raise InputError(
            "limits of a judge (`max_cost`, `max_calls`) do not go with a backend: its workers do "
            "not know what the others spent"
        )
    from baton.runner.backends.protocol import Recipe

    return Recipe(
        baton=__version__,
        folder=str(Path.cwd()),
        config=settings.file if settings else None,
        dataset=list(paths),
        judge=msgspec.to_builtins(judging.flags()),
        redact=plan.redaction,
        **more,
    )


def _is_limited(plan: Plan) -> bool:
    settings = getattr(plan.context.judge, "settings", None)
    if settings is None:
        return False
    own = [each for planned in plan.every_evaluator for each in judge_options(planned.evaluator)]
    told = [msgspec.to_builtins(settings), *own]
    return any(each.get(name) is not None for each in told for name in ("max_cost", "max_calls"))


def expanded(traces: Sequence[str]) -> list[str]:
    """Return files for the globs among some words; addresses stay what they are.

    Raises:
        InputError: a glob that no file meets.
    """
    found: list[str] = []
    for word in traces:
        if is_address(word) or not any(mark in word for mark in "*?[") or Path(word).exists():
            found.append(word)
            continue
        files = sorted(glob.glob(word, recursive=True))  # noqa: PTH207 - it may be absolute
        if not files:
            raise InputError(f"no file meets {word}")
        found += files
    return found

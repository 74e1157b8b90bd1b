"""Rubrics as what a registry names: something that makes an evaluator of a name and options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from baton.plugins import Alias, Entry

from .options import RubricOptions
from .rubric import Rubric

if TYPE_CHECKING:
    from baton.evaluators.judged import Judged


class _Rubric(NamedTuple):
    rubric: Rubric


class Maker(_Rubric):
    """Makes the evaluator of a rubric, as the class of an evaluator makes one."""

    options_type: ClassVar[type[RubricOptions]] = RubricOptions

    def __call__(self, name: str | None = None, options: Mapping[str, Any] | None = None) -> Judged:
        """Make it; raises InputError for each option that is wrong."""
        from baton.evaluators.judged import Judged

        return Judged(self.rubric, name, options)


def entry_of(rubric: Rubric, file: Path | None = None) -> Entry:
    """Return a rubric as an entry of the registry; ``file`` is where one of the user's stands."""
    aliases = []
    for alias in rubric.aliases:
        if isinstance(alias, str):
            aliases.append(Alias(alias, alias))
            continue
        values = tuple(
            (name, {_plain(key): told for key, told in each.items()})
            for name, each in alias.values.items()
        )
        aliases.append(
            Alias(
                alias.name,
                alias.class_name or alias.name,
                presets=alias.presets,
                renames=alias.renames,
                values=values,
                unused=tuple(alias.unused),
            )
        )
    where = rubric.name if file is None else file.absolute()
    return Entry(rubric.name, f"baton.evaluators.rubrics:{where}", rubric.summary, tuple(aliases))


def _plain(key: str) -> str | bool:
    """Return what a key of YAML, which is text, means as the value of an option."""
    return {"true": True, "false": False}.get(key, key)


def shipped_entries() -> tuple[Entry, ...]:
    """Return the rubrics that come with Baton as entries of the registry."""
    from .load import shipped

    return tuple(entry_of(rubric) for rubric in shipped().values())


def own_entries(folders: Iterable[Path]) -> tuple[Entry, ...]:
    """Return the rubrics of some folders (or files) as entries of the registry.

    Raises:
        InputError: a folder is not there or holds none, a rubric is faulty, or its name is taken.
    """
    from .load import load_folders

    return tuple(entry_of(rubric, file) for rubric, file in load_folders(folders).values())

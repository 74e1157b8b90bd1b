"""What can be named in a config, and what other tools call it."""

from __future__ import annotations

import importlib.util
import pkgutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from baton.model import InputError, Problem, suggestion

Values = Mapping[Any, Mapping[str, Any]]
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Alias(NamedTuple):
    """Another tool's name for an entry, and the class name that its reports use.

    ``presets`` are that tool's defaults, in our options. ``renames`` gives our name for one of
    its options (``judge.model``: a part of ours); ``values`` our options for each value of one of
    its options, in order, the last one standing. ``unused`` are options that change nothing there
    either.
    """

    name: str
    class_name: str
    presets: Mapping[str, Any] = _NOTHING
    renames: Mapping[str, str] = _NOTHING
    values: tuple[tuple[str, Values], ...] = ()
    unused: tuple[str, ...] = ()

    def translate(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Say the same in our options; options that have our names already stay as they are.

        Raises:
            InputError: a value that the other tool does not have, either.
        """
        foreign = {*self.renames, *self.unused, *(name for name, _ in self.values)}
        translated: dict[str, Any] = {}
        problems = []
        for name, values in self.values:
            if name not in options:
                continue
            value = options[name]
            if isinstance(value, list | dict) or value not in values:
                known = [str(each).lower() for each in values]
                message = f"{value!r} is not known; {suggestion(str(value), known)}"
                problems.append(Problem(path=f"config.{name}", message=message))
                continue
            translated |= values[value]
        if problems:
            raise InputError(dict.fromkeys(problems))
        for name, value in options.items():
            if name in self.renames:
                ours, _, part = self.renames[name].partition(".")
                translated[ours] = {**translated.get(ours, {}), part: value} if part else value
            elif name not in foreign:
                translated[name] = value
        return translated

    def renamed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options that say something in words of one's own, under our names.

        What chooses among values of a table, or changes nothing, is left out.
        """
        fixed = {*self.unused, *(name for name, _ in self.values)}
        translated: dict[str, Any] = {}
        for name, value in options.items():
            ours, _, part = self.renames.get(name, name).partition(".")
            if name not in fixed:
                translated[ours] = {**translated.get(ours, {}), part: value} if part else value
        return translated

    def in_its_words(self, error: InputError) -> InputError:
        """Name options the way the user wrote them."""
        theirs = {f"config.{ours}": f"config.{name}" for name, ours in self.renames.items()}
        return InputError(
            Problem(
                file=problem.file,
                line=problem.line,
                path=theirs.get(problem.path, problem.path),
                message=problem.message,
            )
            for problem in error.problems
        )


class Entry(NamedTuple):
    """A name, the class (or other maker) that it stands for, and its use.

    ``runs_code``: its options name code of the user's own. ``takes_rubrics``: it is made with the
    rubrics of the user's.
    """

    type: str
    target: Any
    summary: str
    aliases: tuple[Alias, ...] = ()
    runs_code: bool = False
    takes_rubrics: bool = False

    @property
    def names(self) -> list[str]:
        """Every name it may be asked for under."""
        pairs = ((alias.name, alias.class_name) for alias in self.aliases)
        return [self.type, *dict.fromkeys(name for pair in pairs for name in pair)]

    def asked_as(self, name: str) -> Alias:
        """Return the name to report under, and the class name that goes with it."""
        matching = (a for a in self.aliases if name in (a.name, a.class_name))
        return next(matching, Alias(self.type, self.type))


@cache
def module_names(file: str) -> tuple[str, ...]:
    """Return the modules beside a file, in the order of their names, without importing them.

    A name that a user wrote is looked up in these and never made into a path: `../x`, a name of a
    thousand letters and `Mock` on a file system that ignores case are no modules.
    """
    return tuple(sorted(each.name for each in pkgutil.iter_modules([str(Path(file).parent)])))


def is_installed(module: str) -> bool:
    """Tell whether a module (``opentelemetry.sdk``) can be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even the package that it would be in
        return False


RUBRIC_SUFFIXES = (".yaml", ".yml")
"""What the name of a rubric's file ends in."""

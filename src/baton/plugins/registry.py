"""Names for configs, and other tools' names for the same things."""

from __future__ import annotations

import importlib.util
import pkgutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from baton.model import InputError, Problem, suggestion

Values = Mapping[Any, Mapping[str, Any]]
_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Alias(msgspec.Struct, frozen=True):
    """Another tool's name for an entry, and the class name that its reports use.

    ``presets`` are that tool's defaults, as Baton's options. ``renames`` maps its options to
    Baton's names (``judge.model``: a part of an option); ``values`` maps each value of an option to
    Baton's options, in order; the last one wins. ``unused`` are options that have no effect there
    either.
    """

    name: str
    class_name: str
    presets: Mapping[str, Any] = _NOTHING
    renames: Mapping[str, str] = _NOTHING
    values: tuple[tuple[str, Values], ...] = ()
    unused: tuple[str, ...] = ()

    def translate(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Translate to Baton's options; options with Baton's names are not changed.

        Raises:
            InputError: a value that the other tool does not have either.
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

    def completed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the translated options, with that tool's defaults for those that are not given.

        Raises:
            InputError: a value that the other tool does not have either.
        """
        return {**self.presets, **self.translate(options)}

    def renamed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the options with free-form values, under Baton's names.

        Options that select a value of a table, or have no effect, are left out.
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


class Entry(msgspec.Struct, frozen=True):
    """A name, its class (or factory), and its use.

    ``runs_code``: its options name the user's code. ``takes_rubrics``: it is created with the
    user's rubrics.
    """

    type: str
    target: Any
    summary: str
    aliases: tuple[Alias, ...] = ()
    runs_code: bool = False
    takes_rubrics: bool = False

    @property
    def names(self) -> list[str]:
        """All its names."""
        pairs = ((alias.name, alias.class_name) for alias in self.aliases)
        return [self.type, *dict.fromkeys(name for pair in pairs for name in pair)]

    def asked_as(self, name: str) -> Alias:
        """Return the name for reports, and its class name."""
        matching = (a for a in self.aliases if name in (a.name, a.class_name))
        return next(matching, Alias(self.type, self.type))


@cache
def module_names(file: str) -> tuple[str, ...]:
    """Return the modules beside a file, sorted by name, without importing them.

    A user's name is looked up in these and never turned into a path: `../x`, a name of a thousand
    letters and `Mock` on a case-insensitive file system are not modules.
    """
    return tuple(sorted(each.name for each in pkgutil.iter_modules([str(Path(file).parent)])))


def is_installed(module: str) -> bool:
    """Tell whether a module (``opentelemetry.sdk``) can be imported, without importing it."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even its package exists
        return False


RUBRIC_SUFFIXES = (".yaml", ".yml")
"""The suffix of a rubric's file."""

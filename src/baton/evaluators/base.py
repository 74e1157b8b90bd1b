"""What every evaluator with options has in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec

from baton.formats.explain import explain, path_text
from baton.model import InputError, Problem, Unit

Options = TypeVar("Options", bound=msgspec.Struct)


class OptionedEvaluator(Generic[Options]):
    """A frozen evaluator: a name and checked options, nothing else."""

    type: ClassVar[str]
    version: ClassVar[str]
    unit: ClassVar[Unit]
    options_type: ClassVar[Any]
    checks: ClassVar[frozenset[str]] = frozenset()

    __slots__ = ("name", "options")

    def __init__(self, name: str | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Take options as plain data; raises InputError for each that is wrong."""
        self.name = name or self.type
        self.options: Options = self._checked(dict(options or {}))

    def with_options(self, override: Mapping[str, Any]) -> Self:
        """Return a copy with some options replaced; raises InputError for a wrong one."""
        if not override:
            return self
        return self.__class__(self.name, {**msgspec.structs.asdict(self.options), **override})

    def _checked(self, options: dict[str, Any]) -> Options:
        try:
            checked: Options = msgspec.convert(options, self.options_type)
        except msgspec.ValidationError:
            raise InputError(
                Problem(path=path_text(("config", *fault.path)), message=fault.message)
                for fault in explain(options, self.options_type)
            ) from None
        return checked

"""What every evaluator with options has in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec

from baton.formats.explain import checked
from baton.model import Evidence, Score, Status, Unit

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

    @property
    def threshold(self) -> float:
        """The value from which a score passes."""
        return float(getattr(self.options, "threshold", 1.0))

    def scored(
        self,
        value: float,
        reason: str,
        details: Mapping[str, Any],
        evidence: Sequence[Evidence] = (),
    ) -> Score:
        """Give a verdict: passed from the threshold on (to 1e-9), else failed."""
        return Score(
            evaluator=self.name,
            type=self.type,
            version=self.version,
            unit=self.unit,
            status="passed" if value >= self.threshold - 1e-9 else "failed",
            value=value,
            threshold=self.threshold,
            reason=reason,
            details=dict(details),
            evidence=list(evidence),
        )

    def unscored(self, status: Status, reason: str) -> Score:
        """Say why there is no verdict: ``skipped`` or ``error``."""
        return Score(
            evaluator=self.name,
            type=self.type,
            version=self.version,
            unit=self.unit,
            status=status,
            threshold=self.threshold,
            reason=reason,
            details=self.option_details(),
        )

    def option_details(self) -> dict[str, Any]:
        """Return the options as plain data, as results state them; those left out apart."""
        options = msgspec.structs.asdict(self.options)
        return {name: value for name, value in options.items() if value is not None}

    def _checked(self, options: dict[str, Any]) -> Options:
        found: Options = checked(options, self.options_type, ("config",))
        return found

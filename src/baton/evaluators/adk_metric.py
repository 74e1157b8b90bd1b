"""``adk_custom_metric``: a metric that was written for Google ADK (``custom_metrics``)."""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import msgspec

from baton.model import Case, EvalContext, Score, Trace, Unit
from baton.plugins.user_code import load_function

from .adk_invocations import actual_invocations, expected_invocations, scenario_of
from .base import OptionedEvaluator
from .turns import not_played

_STATUSES = {1: "passed", 2: "failed", 3: "not evaluated"}


class AdkMetricOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``function`` is a dotted path, looked for in ``folder`` and among what is installed."""

    function: str
    threshold: float = 1.0
    folder: str = "."


class AdkMetric(OptionedEvaluator[AdkMetricOptions]):
    """Calls a function with invocations like ADK's, and takes its overall score."""

    type = "adk_custom_metric"
    version = "1"
    unit: ClassVar[Unit] = "trace"
    options_type = AdkMetricOptions

    __slots__ = ("_function",)

    def __init__(self, name: str | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Import the function; raises InputError when that fails or an option is wrong."""
        super().__init__(name, options)
        module, _, attribute = self.options.function.rpartition(".")
        spec = f"{module}:{attribute}"
        self._function: Callable[..., Any] = load_function(spec, Path(self.options.folder))

    def option_details(self) -> dict[str, Any]:
        """Return the options that do not depend on the machine."""
        return {"function": self.options.function, "threshold": self.threshold}

    def evaluate(
        self,
        trace: Trace,
        case: Case | None,
        context: EvalContext,  # noqa: ARG002 - ADK has none
    ) -> list[Score]:
        """Give one score: the overall score that the function returns.

        ``error`` when turns were not played; ``skipped`` when the function has none to give.
        """
        missing = not_played(trace, case) if case is not None else None
        if missing is not None:
            return [self.unscored("error", missing)]
        metric = SimpleNamespace(
            metric_name=self.name,
            threshold=None,
            criterion=SimpleNamespace(threshold=self.threshold),
            custom_function_path=self.options.function,
        )
        expected = expected_invocations(case) if case is not None else None
        arguments = (metric, actual_invocations(trace), expected, scenario_of(case))
        answer = self._function(*arguments[: _taken(self._function)])
        if inspect.isawaitable(answer):
            answer = _awaited(answer)
        return [self._verdict(answer)]

    def _verdict(self, answer: Any) -> Score:
        value = getattr(answer, "overall_score", None)
        if value is None and not hasattr(answer, "overall_score"):
            kind = type(answer).__name__
            raise TypeError(f"{self.options.function} returned {kind}, not an EvaluationResult")
        turns = [
            getattr(result, "score", None)
            for result in getattr(answer, "per_invocation_results", None) or ()
        ]
        details = {**self.option_details(), "turns": turns}
        if value is None:
            status = _STATUSES.get(getattr(answer, "overall_eval_status", 3), "not evaluated")
            score = self.unscored("skipped", f"the metric gave no score ({status})")
            score.details = details
            return score
        if not math.isfinite(value):
            raise TypeError(f"{self.options.function} gave {value!r}, which is no finite number")
        return self.scored(float(value), f"overall score {value:g}", details)


def _taken(function: Callable[..., Any]) -> int:
    """Return how many of ADK's four arguments a function takes; older ones take three."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 4
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return 4
    placed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return min(4, sum(parameter.kind in placed for parameter in parameters))


def _awaited(answer: Any) -> Any:
    """Wait for an answer in a loop of its own, as a loop may be running here."""
    found: list[Any] = []
    raised: list[BaseException] = []

    async def wait() -> None:
        found.append(await answer)

    def work() -> None:
        try:
            asyncio.run(wait())
        except BaseException as error:  # noqa: BLE001 - raised again below
            raised.append(error)

    thread = threading.Thread(target=work, name="baton-metric")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]

"""`adk_custom_metric`: a metric written for Google ADK (`custom_metrics`)."""

from __future__ import annotations

import asyncio
import inspect
import math
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

from baton.model import (
    Case,
    Content,
    ExpectedTurn,
    Said,
    Score,
    ToolCall,
    Trace,
    Turn,
    known,
)
from baton.plugins.user_code import load_function

from .base_evaluator import Details, TraceEvaluator, Unscored, WholeTrace, describe

_MODULES = {
    "Invocation": "google.adk.evaluation.eval_case",
    "ConversationScenario": "google.adk.evaluation.conversation_scenarios",
}
_INVOCATION = dict.fromkeys(
    ("final_response", "intermediate_data", "duration", "model_duration", "tool_duration")
) | {"creation_timestamp": 0.0, "rubrics": None, "app_details": None}
_PART = dict.fromkeys(("text", "thought", "function_call", "function_response", "inline_data"))
_EVENT = dict.fromkeys(("content", "grounding_metadata", "usage_metadata", "model_version"))


def actual_invocations(trace: Trace) -> list[Any]:
    """Return the actual turns, with ``None`` for anything the source did not record."""
    return [_made("Invocation", _actual(trace, turn)) for turn in trace.turns]


def expected_invocations(case: Case) -> list[Any] | None:
    """Return the expected turns, or ``None`` for a scenario, which has no fixed turns."""
    if case.scenario is not None:
        return None
    return [_made("Invocation", _expected(turn)) for turn in case.turns]


def scenario_of(case: Case | None) -> Any:
    """Return the case's scenario, if it has one."""
    if case is None or case.scenario is None:
        return None
    stated = {
        "starting_prompt": case.scenario.start,
        "conversation_plan": case.scenario.plan,
        "user_persona": None,
    }
    return _made("ConversationScenario", stated)


def _actual(trace: Trace, turn: Turn) -> dict[str, Any]:
    recorded = known(trace, turn, "runs") and all(known(trace, run, "steps") for run in turn.runs)
    return {
        **_INVOCATION,
        "invocation_id": turn.id,
        "user_content": _message("user", turn.input) or {"role": "user", "parts": []},
        "final_response": _message("model", turn.output),
        "intermediate_data": {"invocation_events": list(_events(turn))} if recorded else None,
    }


def _expected(turn: ExpectedTurn) -> dict[str, Any]:
    data = None
    if turn.tool_calls is not None or turn.interactions is not None:
        data = {
            "tool_uses": [_call(c.name, c.arguments, None) for c in turn.tool_calls or ()],
            "tool_responses": [],
            "intermediate_responses": [
                [visit.agent, [{**_PART, "text": text} for text in visit.says or ()]]
                for visit in turn.interactions or ()
            ],
        }
    return {
        **_INVOCATION,
        "invocation_id": "",
        "user_content": _message("user", turn.input) or {"role": "user", "parts": []},
        "final_response": _message("model", turn.response),
        "intermediate_data": data,
    }


def _events(turn: Turn) -> Iterator[dict[str, Any]]:
    """Yield texts, calls and answers run by run, without the final answer."""
    final = turn.output.plain() if turn.output else None
    for run in turn.runs:
        for step in run.steps:
            if isinstance(step, Said):
                text = step.content.plain()
                if text and text != final:
                    yield _event(run.agent, {"text": text, "thought": step.thought or None})
            elif isinstance(step, ToolCall):
                arguments = step.arguments if isinstance(step.arguments, dict) else None
                yield _event(run.agent, {"function_call": _call(step.name, arguments, step.id)})
                if step.result is not None:
                    answer = {"id": step.id, "name": step.name, "response": _answer(step.result)}
                    yield _event(run.agent, {"function_response": answer})


def _event(author: str, part: dict[str, Any]) -> dict[str, Any]:
    return {**_EVENT, "author": author, "content": {"role": "model", "parts": [_PART | part]}}


def _call(name: str, arguments: dict[str, Any] | None, call_id: str | None) -> dict[str, Any]:
    return {"id": call_id, "name": name, "args": arguments}


def _answer(result: Content) -> dict[str, Any]:
    return result.data if isinstance(result.data, dict) else {"result": result.plain()}


def _message(role: str, content: Content | None) -> dict[str, Any] | None:
    if content is None:
        return None
    return {"role": role, "parts": [{**_PART, "text": content.plain()}]}


def _made(class_: str, value: dict[str, Any]) -> Any:
    module = sys.modules.get(_MODULES[class_])
    attribute = getattr(module, class_, None)
    return _plain(value) if attribute is None else attribute.model_validate(value)


def _plain(value: Any, free: bool = False) -> Any:
    """Turn dicts into objects with attributes. Tool arguments and results stay dicts."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict) or free:
        return value
    return SimpleNamespace(
        **{key: _plain(item, free=key in ("args", "response")) for key, item in value.items()}
    )


_STATUSES = {1: "passed", 2: "failed", 3: "not evaluated"}


class MetricDetails(Details, kw_only=True):
    """The function's result."""

    turns: list[Any]
    """The score of each turn, or null if the function gave none."""


class AdkCustomMetric(TraceEvaluator, frozen=True, kw_only=True, dict=True):
    """Calls a function with invocations shaped like ADK's and uses its overall score."""

    type = "adk_custom_metric"
    summary = "a function of your own, written as a custom metric for Google ADK"
    runs_code = True
    details = MetricDetails
    takes = "broken"  # what ADK would pass to the function
    doubt_decides = True

    function: Annotated[str, describe("The function, as a dotted path.")]
    threshold: Annotated[float, describe("The minimum overall score to pass.")] = 1.0
    folder: Annotated[
        str, describe("Where to search for the function, besides installed packages.")
    ] = "."

    @property
    def runs_user_code(self) -> bool:
        """Whether it calls code of the user's: always."""
        return True

    def check(self) -> None:
        """Import the function. Raises InputError if that fails."""
        _ = self._function

    @cached_property
    def _function(self) -> Callable[..., Any]:
        module, _, attribute = self.function.rpartition(".")
        return load_function(f"{module}:{attribute}", Path(self.folder))

    def option_details(self) -> dict[str, Any]:
        """Return the options that do not depend on the machine."""
        return {"function": self.function, "threshold": self.threshold}

    def score(self, whole: WholeTrace) -> Score | Unscored:
        """Return one score: the overall score that the function returns.

        The score is ``error`` if turns were not played, and ``skipped`` if the function returns
        no overall score.
        """
        trace, case = whole.trace, whole.case
        metric = SimpleNamespace(
            metric_name=self.name,
            threshold=None,
            criterion=SimpleNamespace(threshold=self.threshold),
            custom_function_path=self.function,
        )
        expected = expected_invocations(case) if case is not None else None
        arguments = (metric, actual_invocations(trace), expected, scenario_of(case))
        answer = self._function(*arguments[: _taken(self._function)])
        if inspect.isawaitable(answer):
            answer = _awaited(answer)
        value = getattr(answer, "overall_score", None)
        if value is None and not hasattr(answer, "overall_score"):
            kind = type(answer).__name__
            raise TypeError(f"{self.function} returned {kind}, not an EvaluationResult")
        turns = [
            getattr(result, "score", None)
            for result in getattr(answer, "per_invocation_results", None) or ()
        ]
        details = MetricDetails(turns=turns)
        if value is None:
            status = _STATUSES.get(getattr(answer, "overall_eval_status", 3), "not evaluated")
            return self.unscored("skipped", f"the metric gave no score ({status})", details)
        if not math.isfinite(value):
            raise TypeError(f"{self.function} gave {value!r}, which is not a finite number")
        return self.scored(float(value), f"overall score {value:g}", details)


def _taken(function: Callable[..., Any]) -> int:
    """Return how many of ADK's four arguments a function accepts. Older ones accept three."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 4
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return 4
    placed = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return min(4, sum(parameter.kind in placed for parameter in parameters))


def _awaited(answer: Any) -> Any:
    """Await the result in a separate event loop, as one may already be running here."""
    results: list[Any] = []
    raised: list[BaseException] = []

    async def wait() -> None:
        results.append(await answer)

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
    return results[0]

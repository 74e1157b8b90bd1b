"""User-defined evaluators: a function or a class that a config names."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import msgspec

from baton.model import (
    Case,
    EvalContext,
    Evaluator,
    InputError,
    Problem,
    Score,
    Trace,
    Unit,
    suggestion,
)
from baton.model.score import passes
from baton.plugins import Origin, refused_by_name, refused_options
from baton.plugins.user_code import load_function

from .base_evaluator import BaseEvaluator, EvaluatorTraits
from .registry import ClassName

# An evaluator gets the trace, the case and the context; `def check(trace)` takes only the first.
_GIVEN = 3


class OwnEvaluator(EvaluatorTraits):
    """A function, or the method ``evaluate`` of a class, as an evaluator.

    It is called with as many of trace, case (``None`` without one) and context as it takes, and
    can be async. It returns a :class:`Score` or several, a number or a truth value that is compared
    with ``threshold``, a number and a reason, or ``None`` if there is nothing to score. All other
    options are arguments of the function, or of the class.
    """

    version = "1"
    unit: ClassVar[Unit] = "trace"

    __slots__ = ("_call", "_given", "_source", "name", "options", "threshold", "type")

    def __init__(
        self, name: str, type_: str, source: Callable[..., Any], options: Mapping[str, Any]
    ) -> None:
        """Take options as plain data. Raises InputError for each wrong option."""
        self.name, self.type, self._source = name, type_, source
        self.options = dict(options)
        value = self.options.get("threshold", 1.0)
        if (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
        ):
            message = f"expected a number, got {value!r}"
            raise InputError(Problem(path="config.threshold", message=message))
        self.threshold = float(value)
        own = self._own_options()
        if inspect.isclass(source):
            _check_options(source, 0, own)
            self._call = _made(type_, source, own).evaluate
            self._given = _positional(self._call)
        else:
            self._given = _positional(source)
            _check_options(source, self._given, own)
            self._call = functools.partial(source, **own)

    def with_options(self, override: Mapping[str, Any]) -> Self:
        """Return a copy with some options replaced. Raises InputError for a wrong option."""
        if not override:
            return self
        options = {**self.options, **override}
        return self.__class__(self.name, self.type, self._source, options)

    @property
    def needs_judge(self) -> bool:
        """Whether an attribute of the function or class states it."""
        return StatedTraits(self._source).needs_judge

    @property
    def runs_user_code(self) -> bool:
        """Whether it calls code of the user's: always."""
        return True

    def refused_options(self, options: Mapping[str, Any], origin: Origin) -> list[str]:
        """Return the options that data may not set."""
        return StatedTraits(self._source).refused_options(options, origin)

    def evaluate(
        self, trace: Trace, case: Case | None, context: EvalContext
    ) -> list[Score] | Awaitable[list[Score]]:
        """Call the function. The result can be awaitable.

        Raises:
            TypeError: the returned value is not a verdict.
        """
        arguments = (trace, case, context)[: self._given]
        answer = self._call(*arguments)
        return self._awaited(answer) if isinstance(answer, Awaitable) else self._scores(answer)

    async def _awaited(self, answer: Awaitable[Any]) -> list[Score]:
        return self._scores(await answer)

    def _scores(self, answer: Any) -> list[Score]:
        if isinstance(answer, Score):
            return [msgspec.structs.replace(answer, type=self.type)]
        if isinstance(answer, list) and all(isinstance(score, Score) for score in answer):
            return [msgspec.structs.replace(score, type=self.type) for score in answer]
        value, reason = answer if isinstance(answer, tuple) and len(answer) == 2 else (answer, "")
        if value is None:
            return [self._score(status="skipped", reason=str(reason or "it gave no verdict"))]
        if not isinstance(value, bool | int | float) or not math.isfinite(value):
            raise TypeError(f"{self.type} returned {value!r}, which is not a finite number")
        status = "passed" if passes(value, self.threshold) else "failed"
        return [self._score(status=status, value=float(value), reason=str(reason))]

    def _score(self, **verdict: Any) -> Score:
        return Score(
            evaluator=self.name,
            type=self.type,
            version=self.version,
            unit=self.unit,
            threshold=self.threshold,
            details=self._own_options(),
            **verdict,
        )

    def _own_options(self) -> dict[str, Any]:
        return {name: value for name, value in self.options.items() if name != "threshold"}


class StatedTraits(EvaluatorTraits):
    """The traits of a user-defined evaluator, as far as its attributes state them.

    All are optional: ``needs_judge``, ``judge_options``, ``checks``, ``case_options`` (the options
    that a case may set) and ``options_type`` (a struct whose types state what data may set).
    """

    __slots__ = ("_source",)

    def __init__(self, source: object) -> None:
        self._source = source

    @property
    def needs_judge(self) -> bool:
        """Whether it states that it calls a judge."""
        return bool(getattr(self._source, "needs_judge", False))

    @property
    def runs_user_code(self) -> bool:
        """Whether it is code of the user's: always."""
        return True

    @property
    def judge_options(self) -> Sequence[Mapping[str, Any]]:
        """The evaluator's own judge settings."""
        return tuple(getattr(self._source, "judge_options", ()))

    @property
    def checks(self) -> frozenset[str] | None:
        """The statements of a case that it checks."""
        names: Iterable[str] | None = getattr(self._source, "checks", None)
        return None if names is None else frozenset(names)

    def refused_options(self, options: Mapping[str, Any], origin: Origin) -> list[str]:
        """Return the options that data may not set, by their types, its list, or their names."""
        struct = getattr(self._source, "options_type", None)
        if isinstance(struct, type) and issubclass(struct, msgspec.Struct):
            return refused_options(struct, options, origin)
        return refused_by_name(options, getattr(self._source, "case_options", None))


def traits_of(evaluator: Evaluator) -> EvaluatorTraits:
    """Return the traits of an evaluator. A user-defined one may state only some."""
    return evaluator if isinstance(evaluator, EvaluatorTraits) else StatedTraits(evaluator)


class NotLoaded(EvaluatorTraits):
    """A placeholder for an evaluator whose code must not run, as in ``baton check``.

    ``options_type`` is the struct of its options, if it is one of Baton's evaluators.
    """

    version = "1"
    unit: ClassVar[Unit] = "trace"

    def __init__(
        self, name: str, type_: str, options_type: type[msgspec.Struct] | None = None
    ) -> None:
        self.name, self.type, self.options_type = name, type_, options_type

    def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:  # noqa: ARG002
        """Refuse to evaluate."""
        raise RuntimeError(f"`{self.type}` was not loaded")

    def refused_options(self, options: Mapping[str, Any], origin: Origin) -> list[str]:
        """Return the options that data may not set. Only a user-defined evaluator's code knows."""
        struct = self.options_type
        return [] if struct is None else refused_options(struct, options, origin)

    def with_options(self, override: Mapping[str, Any]) -> Self:  # noqa: ARG002
        """Accept anything: only the code knows its options."""
        return self


def evaluator_of(given: object) -> Evaluator:
    """Return an evaluator created by a program, or create one from the program's function.

    Raises:
        InputError: the object is a class, or something else that cannot score.
    """
    name = getattr(given, "__name__", type(given).__name__)
    if isinstance(given, ClassName):
        name = given.asked
    if inspect.isclass(given) or isinstance(given, ClassName):
        raise InputError(f"`{name}` is a class; give an instance of it: `{name}(...)`")
    if callable(getattr(given, "evaluate", None)) and hasattr(given, "type"):
        return cast("Evaluator", given)
    if callable(given):
        return OwnEvaluator(name, f"{given.__module__}:{name}", given, {})
    raise InputError(
        f"`{given!r}` is not an evaluator: give a name, a mapping with `type`, object or function"
    )


def own_evaluator(
    target: str, name: str | None, options: Mapping[str, Any], folder: Path
) -> Evaluator:
    """Create an evaluator from ``module:name`` or ``file.py:name``, relative to ``folder``.

    A class with ``with_options`` is a Baton evaluator, created by ``Class(name, options)``. Any
    other class is created from its options, and its ``evaluate`` is called like a function.

    Raises:
        InputError: the object does not exist, is not an evaluator, or refuses its options.
    """
    function = load_function(target, folder)
    if inspect.isclass(function) and hasattr(function, "with_options"):
        if issubclass(function, BaseEvaluator):
            return function.from_options(name or target, options)
        made = _made(target, function, {"name": name or target, "options": dict(options)})
        if not isinstance(made, Evaluator):
            needed = "`name`, `type`, `version`, `unit`, `evaluate` and `with_options`"
            raise InputError(f"`{target}` is not an evaluator: it needs {needed}")
        return made
    if inspect.isclass(function) and not callable(getattr(function, "evaluate", None)):
        raise InputError(f"`{target}` has no method `evaluate(trace, case, context)`")
    return OwnEvaluator(name or target, target, function, options)


def _made(target: str, class_: type[Any], options: Mapping[str, Any]) -> Any:
    try:
        return class_(**options)
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"`{target}` raised {type(error).__name__}: {error}") from error


def _parameters(function: Callable[..., Any]) -> Iterable[inspect.Parameter]:
    try:
        return inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()


def _positional(function: Callable[..., Any]) -> int:
    """Return how many of trace, case and context a function takes.

    A parameter with a default value is an option, unless it has the name of one of the three.
    """
    count = 0
    for parameter in _parameters(function):
        if parameter.kind is parameter.VAR_POSITIONAL:
            return _GIVEN
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            option = parameter.default is not parameter.empty
            if option and parameter.name not in ("trace", "case", "context"):
                break
            count += 1
    return min(count, _GIVEN)


def _check_options(function: Callable[..., Any], given: int, options: Mapping[str, Any]) -> None:
    """Raise an error for options that a function does not take, or that it needs and lacks."""
    parameters = list(_parameters(function))[given:]
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return
    named = {p.name: p for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)}
    problems = [
        Problem(path=f"config.{name}", message=f"unknown option; {suggestion(name, named)}")
        for name in options
        if name not in named
    ]
    problems += [
        Problem(path="config", message=f"the option `{name}` is missing")
        for name, parameter in named.items()
        if parameter.default is parameter.empty and name not in options
    ]
    if problems:
        raise InputError(problems)

"""Find what the code of a tool shows beforehand: agents that it makes, and where it moves to.

Functions of tools often make the agent that they call, so the object does not exist yet:

    @tool
    def ask_cashier(task):
        cashier = Agent(name="cashier", tools=[refund])
        return str(cashier(task))
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any


def made_in(function: Callable[..., Any], makers: Sequence[str]) -> str | None:
    """Return the name of the one agent that a function makes, itself or by a function it calls.

    Called functions count if they are in the same module.

    Args:
        function: the function of a tool.
        makers: the names of functions or classes that make an agent and take a `name=`.
    """
    names = {
        each.value.value
        for call in _calls(function, 2)
        if _name(call.func) in makers
        for each in call.keywords
        if each.arg == "name" and isinstance(each.value, ast.Constant)
    }
    only = names.pop() if len(names) == 1 else None
    return only if isinstance(only, str) else None


def gives(function: Callable[..., Any], name: str, argument: str) -> bool:
    """Return whether a function makes a call with this name and argument: ``Command(goto=...)``."""
    return any(
        _name(call.func) == name and any(each.arg == argument for each in call.keywords)
        for call in _calls(function, 1)
    )


def _calls(function: Any, depth: int) -> Iterator[ast.Call]:
    """Yield the calls in a function's source, and in functions of its module that it calls."""
    function = inspect.unwrap(getattr(function, "func", function))
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType):
        return
    for call in _parsed(function):
        yield call
        called = function.__globals__.get(_name(call.func) or "")
        own = isinstance(called, FunctionType) and called.__module__ == function.__module__
        if own and depth > 0:
            yield from _calls(called, depth - 1)


@functools.lru_cache(maxsize=1000)
def _parsed(function: FunctionType) -> tuple[ast.Call, ...]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):  # its source is not available
        return ()
    return tuple(node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _name(called: ast.expr) -> str | None:
    if isinstance(called, ast.Attribute):
        return called.attr
    return called.id if isinstance(called, ast.Name) else None

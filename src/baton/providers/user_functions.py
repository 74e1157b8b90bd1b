"""Functions of the user: calling them without holding up the others."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import math
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from baton.model import Case, InputError
from baton.plugins.user_code import Function, place_of
from baton.safe_output import show_traceback

T = TypeVar("T")
_LONG = 1 << 18
"""Bytes of an answer that are read within about 10 ms: for less, a thread is not worth starting."""


class Raised(Exception):  # noqa: N818 - what it wraps is the error
    """Carries exceptions of a function that asyncio would not pass on, such as ``SystemExit``."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(text_of(error))
        self.error = error


def text_of(error: BaseException) -> str:
    """Return the text of an error, even if its ``__str__`` fails."""
    try:
        return str(error)
    except BaseException as another:  # noqa: BLE001 - it is a fault of the first error
        return f"(its text cannot be read: {type(another).__name__})"


def named(error: BaseException) -> str:
    """Describe an exception."""
    text = text_of(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def worded(error: BaseException) -> str:
    """Describe an exception with its place in the user's code; `--debug` shows the traceback."""
    inner = error.error if isinstance(error, Raised) else error
    show_traceback(inner)
    text, place = named(inner), place_of(inner)
    return f"{text} ({place})" if place is not None else text


def takes_one(function: Function) -> bool:
    """Return whether a function takes one argument; true if the signature is hidden."""
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def is_async(function: Function) -> bool:
    """Return whether a function or callable object has to be awaited."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )


async def call(function: Function, *arguments: object) -> Any:
    """Call a function and await what it returns; one that is not async gets its own thread.

    A thread that never ends does not keep the process alive.
    """
    try:
        if is_async(function):
            return await function(*arguments)
        answer = await _in_thread(function, arguments)
        return await answer if inspect.isawaitable(answer) else answer
    except (SystemExit, StopAsyncIteration) as error:
        raise Raised(error) from error


async def aside(size: int, read: Callable[..., T], *arguments: object) -> T:
    """Call a function that reads an answer of ``size`` bytes, in a thread if that takes long.

    Reading 10 MB of small events takes seconds, during which time-outs and Ctrl-C have to work.
    """
    if size <= _LONG:
        return read(*arguments)
    answer: T = await _in_thread(read, arguments)
    return answer


async def _in_thread(function: Function, arguments: tuple[object, ...]) -> Any:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(answer: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(answer)
        else:
            # A future cannot carry StopIteration, nor exceptions that end the process.
            passes = isinstance(error, Exception) and not isinstance(error, StopIteration)
            future.set_exception(error if passes else Raised(error))

    def work() -> None:
        answer, error = None, None
        try:
            answer = context.run(function, *arguments)
        except BaseException as raised:  # noqa: BLE001 - handed to whoever awaits it
            error = raised
        try:
            loop.call_soon_threadsafe(settle, answer, error)
        except RuntimeError:
            return  # the loop is closed: there is no waiter

    threading.Thread(target=work, name="baton-call", daemon=True).start()
    return await future


NOT_JSON = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
"""The exceptions of :func:`as_json`."""


def as_json(value: Any) -> bytes:
    """Encode a value; nan and infinity, which JSON does not have, raise ValueError."""
    encoded = msgspec.json.encode(value, enc_hook=_plain)
    # They are encoded as null: without a null, there is nothing to search for.
    if b"null" in encoded and not _is_finite(msgspec.to_builtins(value, enc_hook=_plain)):
        raise ValueError("nan and infinity are not JSON")
    return encoded


def _plain(value: Any) -> Any:
    """Convert models of pydantic, and texts of special classes: `message.text` of LangChain."""
    if isinstance(value, str):
        return "".join(value)
    if callable(dump := getattr(type(value), "model_dump", None)):
        return dump(value, mode="json")
    raise TypeError(f"Encoding objects of type {type(value).__name__} is unsupported")


def _is_finite(value: Any) -> bool:
    """Check every number in plain data, at any depth."""
    rest = [value]
    while rest:
        each = rest.pop()
        if isinstance(each, float) and not math.isfinite(each):
            return False
        if isinstance(each, dict):
            rest += each.values()
        elif isinstance(each, list | tuple | set | frozenset):
            rest += each
    return True


NO_SESSION = "the function has no parameter `session`, so it cannot keep sessions apart"


class Target:
    """Calls a function with a message or a case, and with other values that it takes."""

    def __init__(self, function: Function) -> None:
        self._function = function
        try:
            names = list(inspect.signature(function).parameters)
        except (TypeError, ValueError):
            names = []
        self.whole_case = names[:1] == ["case"]
        self._extras = [name for name in names[1:] if name in ("case", "session")]

    def check(self, spec: str) -> None:
        """Raise InputError if a call cannot give an answer, before anything is played."""
        # A decorator may pass arguments of its own, and keeps the signature of what it wraps
        # (`functools.wraps`): what counts is how the outermost function can be called.
        try:
            inspect.signature(self._function, follow_wrapped=False).bind(
                None, **dict.fromkeys(self._extras)
            )
        except TypeError as error:
            name = getattr(self._function, "__name__", "answer")
            raise InputError(
                f"`{spec}` cannot be called with a message: {error}. Write it as "
                f"`def {name}(message)`; it may also have the parameters `session` and `case`"
            ) from None
        except ValueError:  # it has no signature
            pass
        if inspect.isgeneratorfunction(self._function) or inspect.isasyncgenfunction(
            self._function
        ):
            raise InputError(
                f"`{spec}` uses `yield`: have it return the whole answer, as text, a dict or a "
                "Trace"
            )

    @property
    def takes_session(self) -> bool:
        """Whether it gets the session of a message."""
        return self.whole_case or bool(self._extras)

    async def call(self, first: object, case: Case, session: dict[str, Any]) -> Any:
        """Call it; exceptions are passed on. A function that is not async runs in a thread."""
        arguments = {"case": case, "session": session}
        extras = {name: arguments[name] for name in self._extras}
        function = self._function
        if not extras:
            return await call(function, first)
        if not is_async(function):
            return await call(lambda message: function(message, **extras), first)

        async def awaited(message: object) -> Any:
            return await function(message, **extras)

        return await call(awaited, first)

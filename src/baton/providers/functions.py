"""Functions of the user's own: finding them, and calling them without holding up the others."""

from __future__ import annotations

import asyncio
import contextvars
import importlib
import importlib.util
import inspect
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from baton.model import InputError, suggestion

Function = Callable[..., Any]


class Raised(Exception):  # noqa: N818 - what it wraps is the error
    """Carries what a function raised and asyncio would not pass on: ``SystemExit`` and the like."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(told(error))
        self.error = error


def told(error: BaseException) -> str:
    """Return the text of an error, which may itself be broken."""
    try:
        return str(error)
    except BaseException as another:  # noqa: BLE001 - it is a fault of the first error
        return f"(its text cannot be told: {type(another).__name__})"


def named(error: BaseException) -> str:
    """Say what was raised."""
    text = told(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def worded(error: BaseException) -> str:
    """Say what was raised, and where in code that is not Baton's."""
    inner = error.error if isinstance(error, Raised) else error
    said = named(inner)
    own = str(Path(__file__).parent.parent)
    frames = [frame for frame, _ in traceback.walk_tb(inner.__traceback__)]
    places = [
        f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
        for frame in frames
        if not frame.f_code.co_filename.startswith(own)
    ]
    return f"{said} ({places[-1]})" if places else said


def load_function(spec: str, folder: Path) -> Function:
    """Import ``module:function``, or ``path/to/file.py:function``, as seen from ``folder``.

    Raises:
        InputError: it is not of this form, or there is no such module or function.
    """
    module_name, colon, name = spec.rpartition(":")
    if not colon or not module_name or not name:
        raise InputError(f"`{spec}` names no function: write `module:function`")
    module = _module(module_name, folder)
    found: Any = module
    for step in name.split("."):
        if not hasattr(found, step):
            known = [each for each in vars(module) if not each.startswith("_")]
            raise InputError(f"`{module_name}` has no `{name}`; {suggestion(name, known)}")
        found = getattr(found, step)
    if not callable(found):
        raise InputError(f"`{spec}` is {type(found).__name__}, not a function")
    return found  # type: ignore[no-any-return]


def takes_one(function: Function) -> bool:
    """Tell whether a function can be called with one argument; one that hides it may be."""
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def is_async(function: Function) -> bool:
    """Tell a function, or an object that can be called, that has to be awaited."""
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


def _module(name: str, folder: Path) -> ModuleType:
    try:
        if name.endswith(".py"):
            return _module_of_file(folder / name)
        root = str(folder.resolve())
        if root not in sys.path:
            sys.path.insert(0, root)
        return importlib.import_module(name)
    except InputError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            message = (
                f"no module `{name}`: looked below {folder.resolve()} and among what is installed"
            )
            raise InputError(message) from error
        raise InputError(f"importing `{name}` raised ModuleNotFoundError: {error}") from error
    except (Exception, SystemExit) as error:
        raise InputError(f"importing `{name}` raised {type(error).__name__}: {error}") from error


def _module_of_file(file: Path) -> ModuleType:
    if not file.is_file():
        raise InputError(f"{file}: no such file")
    name = f"baton_user_{file.stem}_{abs(hash(file.resolve()))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError(f"{file}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


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
            future.set_exception(error if _passes(error) else Raised(error))

    def work() -> None:
        answer, error = None, None
        try:
            answer = context.run(function, *arguments)
        except BaseException as raised:  # noqa: BLE001 - handed to whoever awaits it
            error = raised
        try:
            loop.call_soon_threadsafe(settle, answer, error)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    threading.Thread(target=work, name="baton-call", daemon=True).start()
    return await future


def _passes(error: BaseException) -> bool:
    """Tell what a future can carry: no StopIteration, nothing that ends the process."""
    return isinstance(error, Exception) and not isinstance(error, StopIteration)

"""Code of the user's own: finding it by its name."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from baton.model import InputError, suggestion

Function = Callable[..., Any]


def load_function(spec: str, folder: Path) -> Function:
    """Import ``module:function``, or ``path/to/file.py:function``, as seen from ``folder``.

    Raises:
        InputError: it is not of this form, or there is no such module or function.
    """
    function = load_object(spec, folder)
    if not callable(function):
        raise InputError(f"`{spec}` is {type(function).__name__}, not a function")
    return function  # type: ignore[no-any-return]


def load_object(spec: str, folder: Path) -> Any:
    """Import what ``module:name`` is, whether it can be called or not.

    Raises:
        InputError: it is not of this form, or there is no such module or name.
    """
    module_name, colon, name = spec.rpartition(":")
    if not colon or not module_name or not name:
        raise InputError(f"`{spec}` names no function: write `module:function`")
    module = _module(module_name, folder)
    value: Any = module
    for step in name.split("."):
        if not hasattr(value, step):
            known = [each for each in vars(module) if not each.startswith("_")]
            raise InputError(f"`{module_name}` has no `{name}`; {suggestion(name, known)}")
        value = getattr(value, step)
    return value


def missing_module(spec: str, folder: Path) -> str | None:
    """Say why the module of ``module:function`` is not there, without importing it.

    Of ``package.module`` only the package is looked for: finding the rest would import it.
    """
    name = spec.rpartition(":")[0]
    if not name or name.endswith(".py"):
        file = folder / name
        return None if not name or file.is_file() else f"{file}: no such file"
    top = name.partition(".")[0]
    if top in sys.modules or any((folder / each).exists() for each in (top, f"{top}.py")):
        return None
    if importlib.util.find_spec(top) is not None:
        return None
    return f"no module `{name}`: looked below {folder.resolve()} and among what is installed"


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

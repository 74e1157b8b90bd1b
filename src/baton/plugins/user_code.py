"""Code of the user's own: finding it by its name."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator
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


def names_imported_below(folder: Path) -> Iterator[str]:
    """Yield what the modules of a folder import that are loaded, or that these may load later."""
    loaded = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    waiting = [Path(file).resolve() for file in loaded if isinstance(file, str)]
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        own = path.suffix == ".py" and path.is_relative_to(folder) and path not in seen
        if not own or is_installed_file(path):
            continue
        seen.add(path)
        for above, name in _imports_in(path.read_bytes()):
            if not above:
                yield name
            # `from .tools import pay` in the body of a function loads a file when that is called.
            start = path.parents[above - 1] if 0 < above <= len(path.parents) else folder
            place = start / name.replace(".", "/")
            below = (place.with_suffix(".py"), place / "__init__.py") if name else ()
            waiting += [file for file in below if file.is_file()]


def is_installed_file(path: Path) -> bool:
    """Tell a file of an installed package, wherever the environment is."""
    return bool({"site-packages", "dist-packages"} & set(path.parts))


def _imports_in(code: bytes) -> Iterator[tuple[int, str]]:
    """Yield each name that is imported, and how many dots of a relative import it has."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module:
                yield node.level, module
            dotted = f"{module}." if module else ""
            yield from ((node.level, f"{dotted}{alias.name}") for alias in node.names)

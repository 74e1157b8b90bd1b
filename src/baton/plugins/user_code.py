"""The user's own code: finding it by its name."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from baton.model import InputError, suggestion

Function = Callable[..., Any]
_BATON = Path(__file__).resolve().parents[1]
"""Baton itself is not part of a user's program, even in an editable install."""
_STDLIB = Path(os.__file__).parent


def load_function(spec: str, folder: Path) -> Function:
    """Import ``module:function``, or ``path/to/file.py:function``, relative to ``folder``.

    Raises:
        InputError: it is not of this form, or there is no such module or function.
    """
    function = load_object(spec, folder)
    if not callable(function):
        raise InputError(f"`{spec}` is {type(function).__name__}, not a function")
    return function  # type: ignore[no-any-return]


def load_object(spec: str, folder: Path) -> Any:
    """Import ``module:name``, callable or not.

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
            # What the module imports as a whole (`os`, `time`) is nobody's agent.
            known = [
                each
                for each, held in vars(module).items()
                if not each.startswith("_") and not isinstance(held, ModuleType)
            ]
            raise InputError(f"`{module_name}` has no `{name}`; {suggestion(name, known)}")
        value = getattr(value, step)
    return value


def load_module(spec: str, folder: Path) -> ModuleType:
    """Import the module of ``module:name``; raises InputError."""
    return _module(spec.rpartition(":")[0], folder)


def missing_module(spec: str, folder: Path) -> str | None:
    """Say why the module of ``module:function`` cannot be found, without importing it.

    For ``package.module`` only the package is searched: finding the rest would import it.
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
    return f"no module `{name}`: looked below {folder.resolve()} and in installed packages"


def _module(name: str, folder: Path) -> ModuleType:
    try:
        if name.endswith(".py"):
            return _module_of_file(folder / name)
        _look_in(folder)
        refuse_elsewhere(name, folder)
        return importlib.import_module(name)
    except InputError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            message = (
                f"no module `{name}`: looked below {folder.resolve()} and in installed packages"
            )
            raise InputError(message) from error
        raise _failed(name, error) from error
    except (Exception, SystemExit) as error:
        raise _failed(name, error) from error


def _failed(name: str, error: BaseException) -> InputError:
    # The text of a SyntaxError has its place in other words.
    text = error.msg if isinstance(error, SyntaxError) else error
    place = place_of(error)
    where = f" ({place})" if place is not None else ""
    return InputError(f"importing `{name}` raised {type(error).__name__}: {text}{where}")


def place_of(error: BaseException) -> str | None:
    """Return where in the user's code an exception comes from, as ``app.py:12``.

    A fault of the user often shows deep in a package: a wrong address in the client that connects.
    The line that called the package comes first then; without one, it is the place in the package.
    """
    if isinstance(error, SyntaxError) and error.filename and error.lineno:
        return f"{Path(error.filename).name}:{error.lineno}"
    places: dict[bool, str] = {}
    level = error.__traceback__
    while level is not None:
        name = level.tb_frame.f_code.co_filename
        path = Path(name)
        if not path.is_relative_to(_BATON) and not name.startswith("<frozen"):
            foreign = is_installed_file(path) or path.is_relative_to(_STDLIB)
            places[foreign] = f"{path.name}:{level.tb_lineno}"
        level = level.tb_next
    return places.get(False, places.get(True))


def _look_in(folder: Path) -> None:
    """Search modules in a folder first."""
    root = str(folder.resolve())
    if sys.path[:1] != [root]:
        sys.path[:] = [root, *(each for each in sys.path if each != root)]


def refuse_elsewhere(name: str, folder: Path) -> None:
    """Raise InputError for a module that is in a folder, but is already loaded from another one.

    A process has one module per name. With two folders that each have an ``agent.py``, the agent of
    the first would otherwise play for the second.
    """
    for each in (name.partition(".")[0], name):
        place = folder / each.replace(".", "/")
        files = (place.with_name(f"{place.name}.py"), place / "__init__.py")
        own = {file.resolve() for file in files if file.is_file()}
        loaded = getattr(sys.modules.get(each), "__file__", None)
        if own and isinstance(loaded, str) and Path(loaded).resolve() not in own:
            raise InputError(
                f"`{each}` of {folder.resolve()} cannot be loaded: this process has `{each}` from "
                f"{loaded}; give one another name, or play it in a process of its own "
                "(`workers: process`)"
            )


def _module_of_file(file: Path) -> ModuleType:
    if not file.is_file():
        raise InputError(f"{file}: no such file")
    name = f"baton_user_{file.stem}_{abs(hash(file.resolve()))}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise InputError(f"{file}: not a Python file")
    # As with `python FILE`, `import tools` finds the file beside it.
    _look_in(file.parent)
    for above, imported in _imports_of(file):
        if not above:
            refuse_elsewhere(imported, file.parent)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def names_imported_below(folder: Path) -> Iterator[str]:
    """Yield the imports of a folder's loaded modules, and of those that they may load later."""
    for path in _own_files(folder):
        yield from (name for above, name in _imports_of(path) if not above)


def packages_imported_from(spec: str, folder: Path) -> set[str]:
    """Return what the file of ``module:name``, and the files of ``folder`` that it imports, import.

    Nothing is loaded, and what lies in the folder itself is left out. Empty if the module is not a
    file of the folder, or a file is not valid Python: loading it tells more.
    """
    module = spec.rpartition(":")[0]
    folder = folder.resolve()
    place = folder / (module if module.endswith(".py") else module.replace(".", "/"))
    start = [file for file in (place, *_files_of(place)) if file.suffix == ".py" and file.is_file()]
    try:
        imports = [each for path in _files_from(start, folder) for each in _imports_of(path)]
    except (SyntaxError, ValueError):
        return set()
    names = {name for above, name in imports if not above}
    return {name for name in names if not _is_below(folder, name.partition(".")[0])}


def _is_below(folder: Path, name: str) -> bool:
    return (folder / name).is_dir() or any(each.is_file() for each in _files_of(folder / name))


class Asking(msgspec.Struct, frozen=True):
    """A call ``get("agent:desk", TEXT)`` in a program, and where.

    ``text`` is ``None`` if it is computed during the call.
    """

    name: str
    text: str | None
    file: Path
    line: int

    @property
    def place(self) -> str:
        """The file's name and the line."""
        return f"{self.file.name}:{self.line}"


def calls_of(function: Function, folder: Path) -> Iterator[Asking]:
    """Yield the calls of a function of ours (``prompts.get``) in the modules of a folder.

    A text is known if it is a literal in the call, or a name or attribute of a loaded module. In a
    module that is not loaded yet, or imports the function only inside another one, the function is
    recognised only by its spelling.
    """
    modules = _loaded_below(folder)
    for path in _own_files(folder):
        for node in ast.walk(ast.parse(path.read_bytes(), path)):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            module, first = modules.get(path), node.args[0]
            called = _value_of(node.func, module)
            is_it = called is function
            if called is None:
                is_it = ast.unparse(node.func).endswith(f"prompts.{function.__name__}")
            if is_it and isinstance(first, ast.Constant) and isinstance(first.value, str):
                default = node.args[1] if len(node.args) > 1 else _keyword(node, "default")
                text = _value_of(default, module)
                known = text if isinstance(text, str) else None
                yield Asking(first.value, known, path, node.lineno)


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((each.value for each in call.keywords if each.arg == name), None)


def _value_of(node: ast.expr | None, module: ModuleType | None) -> Any:
    """Return a literal's value, or that of a name or `module.name`; nothing is executed."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return vars(module).get(node.id) if module is not None else None
    if isinstance(node, ast.Attribute):
        holder = _value_of(node.value, module)
        return vars(holder).get(node.attr) if isinstance(holder, ModuleType) else None
    return None


def _loaded_below(folder: Path) -> dict[Path, ModuleType]:
    """Return the loaded modules whose file is in a folder, by that file; links are followed."""
    # A program with a framework has thousands of modules in hundreds of folders: following the
    # links of each folder once instead of each file takes a fifth of the time.
    real: dict[str, str] = {}
    inside, modules = f"{folder}{os.sep}", {}
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str):
            continue
        place, name = os.path.split(file)
        if place not in real:
            real[place] = os.path.realpath(place)
        path = f"{real[place]}{os.sep}{name}"
        if os.path.islink(path):  # noqa: PTH114 - a Path of each module takes as long as the rest
            path = os.path.realpath(path)
        if path.startswith(inside):
            modules[Path(path)] = module
    return modules


def _own_files(folder: Path) -> Iterator[Path]:
    """Yield the loaded files of a folder, and those that they import."""
    yield from _files_from(_loaded_below(folder), folder)


def _files_from(files: Iterable[Path], folder: Path) -> Iterator[Path]:
    """Yield files of a folder, and those of it that they import."""
    waiting = list(files)
    seen: set[Path] = set()
    while waiting:
        path = waiting.pop()
        own = path.suffix == ".py" and path.is_relative_to(folder) and path not in seen
        if not own or is_installed_file(path) or path.is_relative_to(_BATON):
            continue
        seen.add(path)
        yield path
        for above, name in _imports_of(path):
            # `from .tools import pay` in the body of a function loads a file during a call.
            start = path.parents[above - 1] if 0 < above <= len(path.parents) else folder
            place = start / name.replace(".", "/")
            below = _files_of(place) if name else ()
            waiting += [file for file in below if file.is_file()]


def _files_of(module: Path) -> tuple[Path, Path]:
    """Return the files that a module may have: ``tools.py`` and ``tools/__init__.py``."""
    return module.with_name(f"{module.name}.py"), module / "__init__.py"


def is_installed_file(path: Path) -> bool:
    """Tell whether a file belongs to an installed package, wherever the environment is."""
    return bool({"site-packages", "dist-packages"} & set(path.parts))


def _imports_of(path: Path) -> list[tuple[int, str]]:
    """Return each name that a file imports, and how many dots of a relative import it has."""
    stat = path.stat()
    return _imports_in(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=4096)
def _imports_in(path: Path, _changed: int, _size: int) -> list[tuple[int, str]]:
    # Each provider of a process needs the same files: parsing 300 of them takes 2 s.
    imports: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(path.read_bytes(), path)):
        if isinstance(node, ast.Import):
            imports += [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if module:
                imports.append((node.level, module))
            dotted = f"{module}." if module else ""
            imports += [(node.level, f"{dotted}{alias.name}") for alias in node.names]
    return imports

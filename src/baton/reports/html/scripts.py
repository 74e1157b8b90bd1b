"""ES modules as one script, and the styles of the report as one sheet.

The one-file report has no other file to import, and a policy that names the hash of its one script.
A page of a server would request a dozen modules, and each takes a browser some milliseconds. So for
both, each module becomes a function that returns its exports, and an import takes its names from
the return value.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from importlib.resources import files

STYLES = ("theme.css", "run.css", "cases.css", "report.css")
_IMPORT = re.compile(r'^import (?:\{ ([^}]+) \} from )?"(\./[\w/]+\.js)";\n', re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*//.*\n|^[ \t]+", re.MULTILINE)
_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_INDENT = re.compile(r"^\s+", re.MULTILINE)
_EXPORT = re.compile(
    r"^export ((?:async )?(?:function|const|class) ([A-Za-z_$][\w$]*))", re.MULTILINE
)


def asset(name: str) -> str:
    """Return a file of ``assets``."""
    return files("baton.reports.html").joinpath("assets", name).read_text("utf-8")


def one_style() -> str:
    """Return the styles of the report."""
    return "".join(asset(name) for name in STYLES)


def light_script(text: str) -> str:
    """Return a script without comment lines and without indentation.

    It is a seventh shorter. No text in the scripts spans several lines.
    """
    return _COMMENT.sub("", text)


def light_style(text: str) -> str:
    """Return styles without comments and indentation."""
    return _INDENT.sub("", _STYLE_COMMENT.sub("", text))


def one_script(entry: str, text_of: Callable[[str], str] = asset) -> str:
    """Return a module and all modules that it imports, each once and after its own imports.

    ``text_of`` returns the text of a module by its name, in which ``/`` separates folders.
    """
    parts = ['"use strict";\nconst MODULES = {};\n']
    done: set[str] = set()

    def put(name: str) -> None:
        done.add(name)
        text = text_of(name)

        def full_name(path: str) -> str:
            return posixpath.normpath(posixpath.join(posixpath.dirname(name), path))

        def unpacked(match: re.Match[str]) -> str:
            if match[1] is None:  # imported for its side effects
                return ""
            names = match[1].replace(" as ", ": ")
            return f'const {{ {names} }} = MODULES["{full_name(match[2])}"];\n'

        for match in _IMPORT.finditer(text):
            if full_name(match[2]) not in done:
                put(full_name(match[2]))
        text = _IMPORT.sub(unpacked, text)
        exports = ", ".join(match[2] for match in _EXPORT.finditer(text))
        text = _EXPORT.sub(r"\1", text)
        if name == entry:
            parts.append(text)
        else:
            parts.append(f'MODULES["{name}"] = (() => {{\n{text}return {{ {exports} }};\n}})();\n')

    put(entry)
    return "".join(parts)

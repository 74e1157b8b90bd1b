"""The ES modules of the report as one script, and its styles as one sheet.

A server gives the modules out as they are. One file has no other to import, and a policy that
names the hash of its one script: there each module becomes a function that returns what it
exports, and an import takes its names from what that function returned.
"""

from __future__ import annotations

import re
from importlib.resources import files

STYLES = ("theme.css", "run.css", "cases.css", "report.css")
_IMPORT = re.compile(r'^import \{ ([^}]+) \} from "\./([a-z_]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(
    r"^export ((?:async )?(?:function|const|class) ([A-Za-z_$][\w$]*))", re.MULTILINE
)


def asset(name: str) -> str:
    """Return a file of ``assets``."""
    return files("baton.reports.html").joinpath("assets", name).read_text("utf-8")


def one_style() -> str:
    """Return the styles of the report."""
    return "".join(asset(name) for name in STYLES)


def one_script(entry: str) -> str:
    """Return a module and all that it imports, each once and after what it needs itself."""
    parts = ['"use strict";\nconst MODULES = {};\n']
    done: set[str] = set()

    def put(name: str) -> None:
        done.add(name)
        text = asset(name)
        for _, needed in _IMPORT.findall(text):
            if needed not in done:
                put(needed)
        text = _IMPORT.sub(r'const { \1 } = MODULES["\2"];\n', text)
        exports = ", ".join(match[2] for match in _EXPORT.finditer(text))
        text = _EXPORT.sub(r"\1", text)
        if name == entry:
            parts.append(text)
        else:
            parts.append(f'MODULES["{name}"] = (() => {{\n{text}return {{ {exports} }};\n}})();\n')

    put(entry)
    return "".join(parts)

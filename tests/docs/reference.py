"""The reference pages of commands and of Python: ``python -m tests.docs.reference --write``.

Both are made from the code: from the help of each command, and from the signatures and docstrings of what
``baton``, ``baton.testing`` and ``baton.model`` export.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import baton
import baton.testing
from baton.cli.app import VERBS, app

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "docs" / "reference"
COMMANDS_HEAD = """# Commands

Written from the help of the commands by `make schemas`. `baton COMMAND --help` prints the same.

Every command ends with 0 (passed), 1 (failed), 2 (bad input or usage: nothing was run) or 3 (something could not be
evaluated). `--debug`, before or after a command, shows the traceback of a crash.
"""
SECTIONS = {
    "Args": "Arguments",
    "Attributes": "Attributes",
    "Returns": "Returns",
    "Raises": "Errors",
    "Yields": "Yields",
}
PYTHON_HEAD = """# Python

Written from the code by `make schemas`. By task: [Python](../python.md). Builders for tests: [pytest](../pytest.md).
"""


def commands() -> str:
    """Return the page of all commands."""
    parts = [COMMANDS_HEAD, "| command | what for |\n| --- | --- |"]
    parts[-1] += "".join(
        f"\n| [`{verb}`](#{verb}) | {summary} |" for verb, summary in VERBS.items()
    )
    for verb in VERBS:
        text = app[verb].generate_docs(output_format="markdown", heading_level=2)
        # A usage line lacks the program's name, or has that of the program that runs this.
        usage = r"^```console\n(?:baton )?((?:[a-z]+ )+?)(?:-m \S+ )?(?=\[|[-A-Z])"
        text = re.sub(usage, r"```text\nbaton \1", text.strip(), flags=re.MULTILINE)
        parts.append(text)
    return "\n\n".join(parts) + "\n"


def python() -> str:
    """Return the page of all public names."""
    lines = [PYTHON_HEAD]
    for module in (baton, baton.testing):
        lines.append(f"## `{module.__name__}`\n")
        for name in sorted(module.__all__, key=str.lower):
            lines += _of(f"{module.__name__}.{name}", getattr(module, name))
    return "\n".join(lines)


def _of(name: str, thing: Any) -> Iterator[str]:
    if not (inspect.isfunction(thing) or inspect.isclass(thing)):
        return
    yield f"### `{name}`\n"
    if inspect.isfunction(thing):
        yield f"```python\n{'async ' * inspect.iscoroutinefunction(thing)}def {_signature(thing)}\n```\n"
    yield f"{_prose(inspect.getdoc(thing) or '')}\n"
    if inspect.isclass(thing):
        for method, function in vars(thing).items():
            if not method.startswith("_") and (
                inspect.isfunction(function) or isinstance(function, property)
            ):
                summary = (inspect.getdoc(function) or "").split("\n\n")[0].replace("\n", " ")
                shown = method if isinstance(function, property) else f"{method}()"
                yield f"- `{shown}`: {_prose(summary)}"
        yield ""


def _signature(function: Any) -> str:
    parameters = [
        str(each.replace(annotation=inspect.Parameter.empty, default=_shown(each.default)))
        for each in inspect.signature(function).parameters.values()
    ]
    line = f"{function.__name__}({', '.join(parameters)})"
    if len(line) <= 100:
        return line
    inside = ",\n    ".join(parameters)
    return f"{function.__name__}(\n    {inside},\n)"


class _Text(str):
    """A default as a reader would write it."""

    __repr__ = str.__str__


def _shown(default: Any) -> Any:
    if inspect.isfunction(default):
        return _Text("...")
    return _Text(repr(str(default))) if isinstance(default, Path) else default


def _prose(text: str) -> str:
    """Turn a docstring into Markdown: roles and double backquotes are code, arguments are lists."""
    lines: list[str] = []
    section = ""
    for line in re.sub(r":\w+:`([^`]+)`", r"`\1`", text).replace("``", "`").splitlines():
        if re.fullmatch(r"(Args|Attributes|Returns|Raises|Yields):", line):
            section = line[:-1]
            lines += [f"**{SECTIONS[section]}**", ""]
        elif section in ("Args", "Attributes", "Raises") and (
            item := re.match(r" {4}(\S+): (.*)", line)
        ):
            lines.append(f"- `{item[1]}`: {item[2]}")
        elif section and line.startswith("    "):
            lines.append(f"  {line.strip()}" if lines[-1][:2] in ("- ", "  ") else line.strip())
        else:
            section = section if not line else ""
            lines.append(line)
    return "\n".join(lines)


PAGES = {FOLDER / "commands.md": commands, FOLDER / "python.md": python}


if __name__ == "__main__":
    for path, made in PAGES.items():
        if "--write" in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(made(), encoding="utf-8")
        else:
            print(made())

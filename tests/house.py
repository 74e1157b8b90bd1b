"""Print figures of how the source is cut: sizes, pieces called once, and the path of one score.

Run ``python -m tests.house``. *Hops* are the functions of Baton that are on the call stack between
the verb ``baton score`` and the body of an evaluator; *modules* are those of Baton that one ``baton
score FILE --dataset D`` executes code of. ``--write FILE`` keeps the figures as JSON, and
``--compare FILE`` prints them beside those of an earlier state; ``--small`` names small modules.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import io
import json
import os
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "baton"
SMALL = 40
"""Lines below which a module is probably a piece of another one."""


def is_data(path: Path) -> bool:
    """Tell whether a module holds names and values only: no function, and no class with methods."""
    return not any(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
    )


def small_modules() -> list[Path]:
    """List modules under ``SMALL`` lines; ``__init__``, ``__main__`` and pure data apart."""
    return sorted(
        path
        for path in SOURCE.rglob("*.py")
        if path.name not in ("__init__.py", "__main__.py")
        and len(path.read_text("utf-8").splitlines()) < SMALL
        and not is_data(path)
    )


def sizes() -> dict[str, int]:
    """Count modules and lines."""
    lines = [len(path.read_text("utf-8").splitlines()) for path in SOURCE.rglob("*.py")]
    return {
        "modules": len(lines),
        "lines": sum(lines),
        "median lines of a module": int(statistics.median(lines)),
        f"modules under {SMALL} lines": len(small_modules()),
    }


def private_functions() -> dict[str, int]:
    """Count functions whose name starts with one underscore, and those named once elsewhere.

    A function counts as called once when its name occurs once in its module, apart from its
    definition.
    """
    total = once = 0
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        named: Counter[str] = Counter()
        defined: list[str] = []
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if node.name.startswith("_") and not node.name.startswith("__"):
                    defined.append(node.name)
            elif isinstance(node, ast.Name):
                named[node.id] += 1
            elif isinstance(node, ast.Attribute):
                named[node.attr] += 1
        total += len(defined)
        once += sum(named[name] == 1 for name in defined)
    return {"private functions": total, "private functions called once": once}


def one_score() -> dict[str, int]:
    """Score one recording against one case, and follow the calls."""
    sys.path.insert(0, str(ROOT / "src"))
    from baton.cli import main

    recording = ROOT / "examples/adk/recordings/support_desk/refund.sse"
    case = "cases:\n  - id: refund\n    input: Please refund order 42.\n    agents: [support_router, billing_agent]\n"
    modules: set[str] = set()
    deepest: list[int] = []
    trunk: list[list[str]] = []

    def follow(frame: FrameType, event: str, _: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(str(SOURCE)):
            return
        name = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "<module>":
            return
        modules.add(name)
        stack = []
        at: FrameType | None = frame
        while at is not None:
            if at.f_code.co_filename.startswith(str(SOURCE)):
                stack.append(f"{at.f_globals['__name__']}.{at.f_code.co_name}")
            at = at.f_back
        # What runs while a module is imported is not part of the path.
        if not any(each.endswith(".<module>") for each in stack):
            deepest.append(len(stack))
        if name == "baton.evaluators.agent_chain" and frame.f_code.co_name.startswith("evaluate"):
            trunk.append(stack[::-1])

    with tempfile.TemporaryDirectory() as folder:
        dataset = Path(folder) / "cases.yaml"
        dataset.write_text(case, "utf-8")
        words = ["score", str(recording), "-d", str(dataset), "--out", folder, "-e", "agent_chain"]
        before = Path.cwd()
        os.chdir(folder)
        sys.setprofile(follow)
        try:
            with (
                contextlib.redirect_stdout(io.StringIO()),
                contextlib.redirect_stderr(io.StringIO()),
            ):
                main(words)
        finally:
            sys.setprofile(None)
            os.chdir(before)
    if not trunk:
        raise SystemExit("the score reached no evaluator")
    imported = [name for name in sys.modules if name.split(".")[0] == "baton"]
    return {
        "modules imported by one score": len(imported),
        "modules executed by one score": len(modules),
        "hops from verb to evaluator": len(trunk[0]),
        "deepest stack of one score": max(deepest),
    }


def main() -> int:
    """Print the figures, one a line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="keep the figures as JSON")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="figures of an earlier state")
    parser.add_argument("--small", action="store_true", help="name the small modules")
    options = parser.parse_args()
    figures = {**sizes(), **private_functions(), **one_score()}
    before: dict[str, int] = (
        json.loads(options.compare.read_text("utf-8")) if options.compare else {}
    )
    for name, value in figures.items():
        line = f"{name:34}{value:>8,}"
        if name in before:
            change = f"{value / before[name] - 1:+.0%}" if before[name] else ""
            line += f"   before {before[name]:>8,}{change:>7}"
        print(line)
    if options.small:
        print(*(f"  {path.relative_to(SOURCE)}" for path in small_modules()), sep="\n")
    if options.write:
        options.write.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

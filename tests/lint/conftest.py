"""What tests of the rules need: eval sets in a few words, and what `baton check` warns of."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

Baton = Callable[..., Any]


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder so deep that no folder above it holds what other tests wrote."""
    inner = tmp_path / "a" / "b" / "c" / "d"
    inner.mkdir(parents=True)
    return inner


class Warned(NamedTuple):
    """A warning as it is printed."""

    file: str
    line: int
    text: str
    rule: str


Check = Callable[..., list[Warned]]
_WARNING = re.compile(r"warning: (.+?):(\d+): (.+) \[([\w-]+)\]")


def turn(text: str = "hi", *tools: str | dict[str, Any], **data: Any) -> dict[str, Any]:
    """Write a turn that states calls; none of them as an empty list."""
    uses = [{"name": tool, "args": {}} if isinstance(tool, str) else tool for tool in tools]
    said = {"user_content": {"role": "user", "parts": [{"text": text}]}}
    return {**said, "intermediate_data": {"tool_uses": uses, "intermediate_responses": [], **data}}


def bare(text: str = "hi") -> dict[str, Any]:
    """Write a turn that states no calls at all."""
    return {"user_content": {"role": "user", "parts": [{"text": text}]}}


def evals(case_id: str, *turns: dict[str, Any], **session: Any) -> dict[str, Any]:
    """Write a case of an eval set; `session` is its session input."""
    found = {"eval_id": case_id, "conversation": list(turns) or [turn()]}
    return {**found, "session_input": {"user_id": "u", **session}} if session else found


def evalset(path: Path, *cases: dict[str, Any]) -> Path:
    """Write an eval set."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"eval_set_id": "s", "eval_cases": list(cases)}, indent=1)
    path.write_text(text, encoding="utf-8")
    return path


def app(folder: Path, code: str) -> Path:
    """Write an app of ADK."""
    folder.mkdir(parents=True)
    (folder / "agent.py").write_text(code, encoding="utf-8")
    return folder


def line_of(path: Path, text: str) -> int:
    """Return the line on which a text first stands."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


@pytest.fixture
def check(baton: Baton) -> Check:
    """Run `baton check` and return its warnings."""

    def run(*arguments: str | os.PathLike[str]) -> list[Warned]:
        lines = baton("check", *arguments).err.splitlines()
        found = [m for line in lines if (m := _WARNING.fullmatch(line))]
        assert len(found) == sum(line.startswith("warning") for line in lines), lines
        return [Warned(m[1], int(m[2]), m[3], m[4]) for m in found]

    return run

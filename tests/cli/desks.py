"""Evaluations of a desk that hands over to the right specialist, or not: for comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from baton.model import AgentCard, Trace
from baton.testing import build
from baton.testing.build import run, transfer

Run = Callable[..., Any]
CONFIG = """
evaluators: [agent_chain, dispatch_target_known]
"""


def passed_on(case: str, receiver: str, prompt: str = "Be kind.", model: str = "m-1") -> Trace:
    """Make a trace of a desk that hands over to ``receiver``."""
    return build.trace(
        case,
        run("desk", transfer(receiver), model=model),
        run(receiver, model=model),
        id=case,
        case=case,
        agents={n: AgentCard(instructions=prompt) for n in ("desk", "billing", "weather")},
    )


def write_cases(folder: Path, count: int) -> Path:
    """Write a dataset in which every case goes to billing; odd ones are tagged `odd`."""
    lines = [
        f"  - {{id: c{n:03}, input: c{n:03}, agents: [desk, billing]"
        + (", tags: [odd]}" if n % 2 else "}")
        for n in range(count)
    ]
    path = folder / "cases.yaml"
    path.write_text("cases:\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def evaluate(
    baton: Run, folder: Path, name: str, wrong: Sequence[int], count: int = 60, **how: Any
) -> Path:
    """Score a run in which the cases at some places went to the wrong agent; return its folder."""
    told = how.pop("config", CONFIG)
    cases = write_cases(folder, count)
    runs = [
        passed_on(f"c{n:03}", "weather" if n in wrong else "billing", **how) for n in range(count)
    ]
    file = folder / f"{name}.jsonl"
    file.write_bytes(b"\n".join(msgspec.json.encode(run) for run in runs) + b"\n")
    config = folder / f"{name}.yaml"
    config.write_text(told, encoding="utf-8")
    out = folder / ".baton" / "evaluations"
    before = set(out.glob("*"))
    outcome = baton("score", file, "-d", cases, "-c", config, "--name", name)
    assert outcome.code in (0, 1, 3), outcome.err
    (made,) = set(out.glob("*")) - before
    return Path(made)

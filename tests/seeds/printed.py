"""Data and configs as users find them printed, and agents that do right or wrong by them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

PRINTED = Path(__file__).parent.parent / "data" / "seeds"


def agent(folder: Path, name: str, *answers: Any) -> str:
    """Write an agent that gives these answers in turn, each message of a case the next."""
    text = f"ANSWERS = {list(answers)!r}\n\n\ndef reply(message, session):\n"
    text += "    at = session['at'] = session.get('at', -1) + 1\n    return ANSWERS[at]\n"
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return f"{name}.py:reply"


def with_agent(folder: Path, config: Path, target: str) -> Path:
    """Copy a printed config beside an agent, and name that as the provider."""
    value = yaml.safe_load(config.read_text(encoding="utf-8"))
    value["providers"] = [{"type": "python", "target": target}]
    path = folder / f"{target.partition('.')[0]}-{config.name}"
    path.write_text(yaml.safe_dump(value), encoding="utf-8")
    return path


def did(*agents: str, output: str = "Done.", calls: list[Any] | None = None) -> dict[str, Any]:
    """Say which agents worked, and what was called."""
    return {"output": output, "agents": list(agents), "tool_calls": calls or []}


def call(name: str, **arguments: Any) -> dict[str, Any]:
    """Say that a tool was called."""
    return {"name": name, "arguments": arguments}


def rows(outcome: Any) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the scores of a report in JSON by evaluator by case."""
    assert outcome.out, outcome.err
    return {
        result["case_id"]: {row["evaluator_type"]: row for row in result["scores"]}
        for result in json.loads(outcome.out)["results"]
    }


def statuses(outcome: Any) -> dict[str, dict[str, str]]:
    """Return the statuses by evaluator by case."""
    return {
        case: {name: row["status"] for name, row in scores.items()}
        for case, scores in rows(outcome).items()
    }

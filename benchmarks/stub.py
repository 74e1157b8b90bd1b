"""An agent that only takes its time, and cases for it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

SECONDS = 0.2


async def answer(message: str) -> dict[str, Any]:
    """Answer after a while, as a model would."""
    await asyncio.sleep(SECONDS)
    return {"output": f"You said: {message}", "agents": ["stub"], "tool_calls": []}


def write_cases(file: Path, count: int) -> None:
    """Write cases that the stub passes."""
    with file.open("w", encoding="utf-8") as lines:
        for number in range(count):
            case = {"id": f"case_{number}", "input": f"Message {number}", "agents": ["stub"]}
            lines.write(json.dumps(case) + "\n")

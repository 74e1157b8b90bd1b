"""Judges under load: with a real SDK against a scripted server, and with a client that only waits.

python benchmarks/judges.py serve FOLDER           # a server that takes 200 ms
python benchmarks/judges.py sdk URL FOLDER         # 300 questions, 20 at once
python benchmarks/judges.py waiting FOLDER         # 3,000 questions, 100 at once
python benchmarks/judges.py kept FOLDER            # how many verdicts are kept there
"""

from __future__ import annotations

import asyncio
import json
import resource
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from baton.judges.fenced_prompts import Prompt, fenced
from baton.judges.judge import LlmJudge, make_judge
from baton.judges.judge_settings import Endpoint, JudgeSettings
from baton.judges.parse_answer import RawAnswer
from baton.model import JudgeRequest

SECONDS = 0.2
MODEL = "openai:scripted"
CACHE = "verdicts.sqlite"
ANSWER = {"reason": "It did as it was told.", "label": "good"}
SCHEMA = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "label": {"type": "string", "enum": ["good", "bad"]},
    },
    "required": ["reason", "label"],
    "additionalProperties": False,
}


class Waiting:
    """A client that only waits."""

    def __init__(self, _endpoint: Endpoint, _settings: JudgeSettings) -> None:
        pass

    async def open(self) -> None:
        pass

    async def send(self, _prompt: Prompt) -> RawAnswer:
        await asyncio.sleep(SECONDS)
        return RawAnswer(
            text=json.dumps(ANSWER), model="waiting", input_tokens=500, output_tokens=20
        )

    async def close(self) -> None:
        pass


def question(number: int) -> JudgeRequest:
    """Return a question about some 4 kB of material, which differs each time."""
    step = f"Step {number}: the agent looked at order {number * 7} and wrote a line about it.\n"
    return JudgeRequest(
        rubric="bench",
        version="1",
        instructions="Did the agent do what it was told? Answer with a label and a reason.",
        content=fenced([("the task", f"Task {number}"), ("what it did", step * 50)]),
        schema=SCHEMA,
    )


async def ask_all(judge: LlmJudge, questions: int) -> dict[str, float]:
    """Ask all questions concurrently; return wall and CPU seconds, and the number of requests."""
    async with judge:
        await judge.ask(question(-1))  # opens connections and imports, which are not measured
        requests = [question(number) for number in range(questions)]
        start, used = time.perf_counter(), _processor()
        answers = await asyncio.gather(*(judge.ask(request) for request in requests))
    return {
        "seconds": time.perf_counter() - start,
        "processor": _processor() - used,
        "requests": sum(answer.requests for answer in answers),
        "hits": sum(answer.cached for answer in answers),
    }


def sdk(url: str, folder: str) -> dict[str, float]:
    """Ask through the real SDK."""
    settings = JudgeSettings(model=MODEL, base_url=url, concurrency=20)
    return asyncio.run(ask_all(make_judge(settings, cache=Path(folder, CACHE)), 300))


def waiting(folder: str) -> dict[str, float]:
    """Ask through a client that only waits."""
    settings = JudgeSettings(model=MODEL, concurrency=100)
    judge = make_judge(settings, cache=Path(folder, CACHE), connect=Waiting)
    return asyncio.run(ask_all(judge, 3000))


def kept(folder: str) -> dict[str, float]:
    """Count the verdicts that are kept."""
    with closing(sqlite3.connect(Path(folder, CACHE))) as database:
        (count,) = database.execute("SELECT count(*) FROM verdicts").fetchone()
    return {"verdicts": count}


def serve(folder: str) -> None:
    """Serve until the input ends; the address goes into a file, as soon as it is known."""
    from baton.testing.llm import Reply, llm_server

    with llm_server(Reply(answer=ANSWER, delay=SECONDS)) as server:
        address = Path(folder, "address.new")
        address.write_text(server.base_url("openai"), encoding="utf-8")
        address.rename(address.with_name("address"))
        sys.stdin.read()


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(words: Sequence[str]) -> None:
    """Run one part."""
    parts: dict[str, Any] = {"serve": serve, "sdk": sdk, "waiting": waiting, "kept": kept}
    found = parts[words[0]](*words[1:])
    if found is not None:
        print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])

"""Three agents get better prompts, one after the other, and a fault that no prompt mends stays.

    python demo.py

Run it with the Python that has Baton with its extra `improve` installed (`make demo-improve`). The
model behind the agents, which also proposes the prompts, is scripted (`shop.py` says how), so that
no key is needed, and nothing leaves this machine.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx2
from played import maker  # type: ignore[import-not-found, unused-ignore]
from shop import (  # type: ignore[import-not-found, unused-ignore]
    HARM,
    HELP,
    NEUTRAL,
    TEXTS,
    answer,
    messages,
)

from baton.improvements.journal import Journal
from baton.improvements.plays import Options
from baton.improvements.report import print_improvement
from baton.improvements.result import Improvement
from baton.improvements.search import Progress, improve_texts
from baton.judges.judge import make_judge
from baton.judges.judge_settings import read_settings
from baton.model import Case, RunOptions
from baton.replays.replay import Moments
from baton.runner.plan import make_plan
from baton.testing import Received, Reply, llm_server

SEED = 2


ASKED: Counter[str] = Counter()


def model(received: Received) -> Reply:
    """Play an agent, or whoever proposes prompts: the same question brings something else again."""
    ASKED[received.user] += 1
    return Reply(answer=answer(received.system, received.user, ASKED[received.user]))


def main() -> int:
    """Tell the story; return 0 when every part of it happened."""
    began = time.monotonic()
    print(
        f"{len(HELP) * 4} sentences help, {len(HARM)} harm, {len(NEUTRAL)} do nothing; "
        "the proposer draws from them and is not told which.\n"
    )
    os.environ["OPENAI_API_KEY"] = "none-is-needed"
    with tempfile.TemporaryDirectory() as folder, llm_server(model) as server:
        settings = server.judge("openai", max_tokens=2000)
        print("1. A desk and two agents, each with a weakness: found, fixed one by one, proven.")
        result = improve(messages(150, SEED), settings, Path(folder, "shop"))
        print_improvement(result, sys.stdout, limit=6)
        expect(set(result.texts) == set(TEXTS), "three weaknesses in three agents are fixed")
        for name, text in result.texts.items():
            expect(any(each in text for each in HELP[name]), f"{name} has a sentence that helps")

        print("\n2. Questions on customs fail, and no prompt gives an agent the tool for them.")
        hopeless = messages(40, SEED, ["customs"])
        options = {"components": ["agent:billing"], "candidates": 12}
        result = improve(hopeless, settings, Path(folder, "customs"), **options)
        print_improvement(result, sys.stdout, limit=4)
        expect(result.texts == {}, "it ends as no proven gain")
    print(f"\nAll of it took {time.monotonic() - began:.0f} s.")
    return 0


def improve(
    cases: list[Case], settings: dict[str, object], folder: Path, **options: object
) -> Improvement:
    """Improve the shop, whose agents ask the model over HTTP."""
    return asyncio.run(_improve(cases, settings, folder, options))


async def _improve(
    cases: list[Case], settings: dict[str, object], folder: Path, options: dict[str, object]
) -> Improvement:
    url = f"{settings['base_url']}/chat/completions"
    async with httpx2.AsyncClient() as client:

        async def say(system: str, message: str) -> str:
            told = [{"role": "system", "content": system}, {"role": "user", "content": message}]
            body = {"model": "scripted", "messages": told}
            answered = await client.post(url, json=body)
            text: str = answered.json()["choices"][0]["message"]["content"]
            return text

        plan = make_plan(["dispatch_routing", "response"])
        moments = Moments(cases, maker(say), plan, RunOptions(concurrency=8))
        judge = make_judge(read_settings(settings))
        given = Options(seed=SEED, **options)  # type: ignore[arg-type]
        progress = Progress(step=lambda line: print(f"   {line}"))
        with Journal.begin(folder, {}) as journal:
            async with judge:
                return await improve_texts(
                    moments,
                    judge,
                    journal,
                    given,
                    id_=folder.name,
                    target="shop",
                    progress=progress,
                )


def expect(happened: bool, what: str) -> None:
    """Say what happened; end the demo if it did not."""
    if not happened:
        raise SystemExit(f"the demo failed: not so that {what}")
    print(f"   {what}")


if __name__ == "__main__":
    sys.exit(main())

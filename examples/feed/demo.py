"""A day of traffic: what fails is grouped, explained, fixed, and kept from coming back.

    python demo.py

Run it with the Python that has Baton with its extras `feed` and `judge` installed
(`make demo-feed`). The model is scripted, so that no key is needed, and nothing leaves this
machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from scripted import answer  # type: ignore[import-not-found, unused-ignore]
from traffic import KINDS as SEEDED_KINDS
from traffic import day, messages  # type: ignore[import-not-found, unused-ignore]

import baton
from baton.testing import llm_server
from baton.testing.build import case

HERE = Path(__file__).parent
BATON = (sys.executable, "-m", "baton")
PATIENCE = 120.0  # seconds for each step
KINDS = ("shop", *(kind for kinds in SEEDED_KINDS.values() for kind in kinds))
LEAST = 0.9  # precision and recall of the issues
CONFIG = """\
rubrics: [rubrics]
evaluators:
  - type: context_carried
  - type: dispatch_target_known
  - type: dispatch_scope
  - type: dispatch_completed
  - type: claims_supported
  - type: announced_dispatch
  - type: good_answer
"""


def main() -> int:
    """Tell the story; return 0 when every part of it happened."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, llm_server(answer) as model:
        os.chdir(folder)
        os.environ["OPENAI_API_KEY"] = "none-is-needed"
        prepare(model.judge("openai", max_tokens=2000))

        print("1. A day of four agent systems, scored by rules and by a judge.")
        run("score", "day", "-c", "baton.yaml", lines=-3, ends=1)

        print("\n2. What failed, grouped into issues.")
        run("issues", lines=99)
        issues = listed()
        measure(issues)

        key = next(each["key"] for each in issues if each.get("sender") == "desk")
        print("\n3. The model investigates the desk's. What it quotes is held against the record.")
        asked = ("--agent", "shop.py:desk", "-c", "baton.yaml")
        run("issues", "--investigate", key, *asked, lines=99)

        print("\n4. Is the fix one? Members and green neighbours are played with it and without.")
        run("issues", "--prove", key, "--agent", "shop.py:desk", lines=-1)
        expect(progress(key)["fix"]["proof"]["fixed"]["count"] > 0, "the fix is proven")

        print("\n5. Its members become cases, with green ones beside them.")
        run("issues", "--promote", key, "-o", "regression", "--passes", "2", lines=99)

        print("\n6. The desk as it is fails them. With the fix in its prompt it passes, twice.")
        played = ("regression", "-e", "context_carried")
        run("eval", "--trust", ".", "shop.py:desk", *played, lines=-1, ends=1)
        fixed = (
            Path("shop.py").read_text("utf-8").replace("in a few words", "with the whole message")
        )
        Path("fixed_shop.py").write_text(fixed, "utf-8")
        for _ in range(2):
            run("eval", "--trust", ".", "fixed_shop.py:desk", *played, lines=-1)
        expect(state_of(key) == "fixed", "its cases closed the issue")

        print("\n7. Somebody puts the old prompt back.")
        run("eval", "--trust", ".", "shop.py:desk", *played, lines=-1, ends=1)
        expect(state_of(key) == "regressed", "the issue is open again")
    print(f"\nAll of it took {time.monotonic() - began:.0f} s.")
    return 0


def prepare(judge: dict[str, Any]) -> None:
    """Write what a team has: a config with rubrics, the shop, and the records of a day."""
    Path("baton.yaml").write_text(f"judge: {json.dumps(judge)}\n{CONFIG}", "utf-8")
    Path("rubrics").mkdir()
    for name in ("shop.py", "rubrics/good_answer.yaml"):
        Path(name).write_text((HERE / name).read_text("utf-8"), "utf-8")
    Path("day").mkdir()
    cases = [case(text, id=f"shop-{n}") for n, text in enumerate(messages())]
    shop = baton.evaluate(cases, "shop.py:desk", ["dispatch_completed"])
    for trace in [*day(), *(result.trace for result in shop.results)]:
        Path("day", f"{trace.id}.json").write_bytes(msgspec.json.encode(trace))


def measure(issues: list[dict[str, Any]]) -> None:
    """Compare the issues with what was seeded, failure by failure; ids of traces tell."""
    found, seeded = Counter[tuple[str, str]](), Counter[str]()
    rest = 0
    for issue in issues:
        is_group = issue["proven"] or issue.get("group") is not None
        for member in issue["members"]:
            kind = kind_of(member["conversation"])
            seeded[kind] += 1
            if is_group:
                found[issue["key"], kind] += 1
            else:
                rest += 1
    keys = {key for key, _ in found}
    # An issue is of the kind that most of its failures are of.
    kinds = {key: max(KINDS, key=lambda kind: found[key, kind]) for key in keys}
    right = sum(found[key, kind] for key, kind in kinds.items())
    total = sum(seeded[kind] for kind in KINDS)
    share = 1 - total / sum(seeded.values())
    print(f"{len(KINDS)} kinds were seeded; {share:.0%} of the failures are of none.")
    print(f"{len(keys)} issues hold {sum(found.values())} failures; {rest} are in none.")
    precision, recall = right / sum(found.values()), right / total
    print(f"Failures in the issue of their kind: precision {precision:.3f}, recall {recall:.3f}.")
    expect(sorted(kinds.values()) == sorted(KINDS), "each kind is one issue, and nothing else is")
    expect(min(precision, recall) >= LEAST, f"precision and recall are at least {LEAST}")


def kind_of(conversation: str) -> str:
    """Tell what was seeded into a conversation; all that fails in the shop is one kind."""
    system, kind, *_ = conversation.split("-")
    return kind if system != "shop" else system


def listed() -> list[dict[str, Any]]:
    """Return all issues, as a program reads them."""
    command = [*BATON, "issues", "--all", "--json"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def progress(key: str) -> dict[str, Any]:
    """Return what was done about an issue."""
    read: dict[str, Any] = json.loads(Path(".baton", "issues", f"{key}.json").read_text("utf-8"))
    return read


def state_of(key: str) -> str:
    """Return the state of an issue, and print it."""
    state: str = next(each for each in listed() if each["key"] == key).get("state", "new")
    print(f"$ baton issues --all\n{key} is {state}")
    return state


def run(*words: str, lines: int, ends: int = 0) -> None:
    """Run Baton, and show the command and some lines of what it prints: of its end, if below 0."""
    print(f"$ baton {' '.join(words)}", flush=True)
    done = subprocess.run(
        [*BATON, *words], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    if done.returncode != ends:
        sys.exit(f"it ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    printed = done.stdout.strip().splitlines()
    print("\n".join(printed[lines:] if lines < 0 else printed[:lines]))


def expect(happened: bool, what: str) -> None:
    """End the demo where something did not happen."""
    if not happened:
        sys.exit(f"that was to happen, and did not: {what}")
    print(f"✓ {what}")


if __name__ == "__main__":
    sys.exit(main())

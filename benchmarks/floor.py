"""The minimum cost of scoring recorded cases: decode the files, and loop over them.

The floor decodes both files with msgspec into plain values and asks each question in the plainest
loop: the agents of each turn in order, the tool calls of each turn in order, and, where it is
asked for, how many words two answers share. It keeps nothing, explains nothing and reads one
spelling of one format. What Baton takes is shown as a ratio to it.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec


def chain(turn: dict[str, Any]) -> list[str]:
    """Return the agents of a planned or recorded turn, in order."""
    found: list[str] = []
    data = turn["intermediate_data"]
    for record in data.get("intermediate_responses", ()):
        names = (record.get("from_agent"), record.get("to_agent"), record.get("agent_name"))
        found += [name for name in names if name and (not found or found[-1] != name)]
    for event in data.get("invocation_events", ()):
        if not found or found[-1] != event["author"]:
            found.append(event["author"])
    return found


def calls(turn: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the tool calls of a planned or recorded turn, dispatches apart."""
    data = turn["intermediate_data"]
    found = [(call["name"], call["args"]) for call in data.get("tool_uses", ())]
    for event in data.get("invocation_events", ()):
        for part in event["content"]["parts"]:
            call = part.get("function_call")
            if call and call["name"] != "transfer_to_agent":
                found.append((call["name"], call["args"]))
    return found


def rouge(expected: str, actual: str) -> float:
    """Return the F1 of shared words."""
    one, other = Counter(expected.lower().split()), Counter(actual.lower().split())
    shared = (one & other).total()
    return 2 * shared / (one.total() + other.total()) if shared else 0.0


def main() -> None:
    """Score ``RECORDINGS`` against ``DATASET`` (eval sets in one document); print the counts."""
    recordings, dataset, *more = sys.argv[1:]
    planned = msgspec.json.decode(Path(dataset).read_bytes())["eval_cases"]
    recorded = msgspec.json.decode(Path(recordings).read_bytes())["eval_cases"]
    plans = {case["eval_id"]: case["conversation"] for case in planned}
    chains = tools = 0
    words = 0.0
    for case in recorded:
        turns = list(zip(plans[case["eval_id"]], case["conversation"], strict=True))
        chains += all(chain(plan) == chain(turn) for plan, turn in turns)
        tools += all(calls(plan) == calls(turn) for plan, turn in turns)
        if more:
            for plan, turn in turns:
                answers = (each["final_response"]["parts"][0]["text"] for each in (plan, turn))
                words += rouge(*answers)
    print(len(recorded), chains, tools, round(words, 2))


if __name__ == "__main__":
    main()

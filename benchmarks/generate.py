"""Make an eval set of ADK and recordings of the same cases, the same for the same seed.

A router hands each message to one of eleven specialists, who calls tools, answers, and stays for
the next turn. Cases state the agents through ``agent_transfer`` and ``agent_name`` records;
recordings keep the events. Two thirds of the cases deviate from the plan, as real recordings do: a
wrong specialist gets the message, nobody does, or a tool call is missing, added, repeated, made in
another order or with another argument.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, NamedTuple, TextIO

Form = Literal["document", "lines"]
JSON = dict[str, Any]

VERSION = 3  # raise it when the same seed makes other data
ROUTER = "desk"
SPECIALISTS = [
    *("billing", "refunds", "shipping", "orders", "weather", "policy"),
    *("travel", "repairs", "stock", "loyalty", "claims"),
]
DEVIATIONS = ["stranger", "nobody", "missing", "added", "repeated", "order", "argument"]
DEVIATING_SHARE = 2 / 3
REWORDED_SHARE = 0.15  # of the words of an answer
_SYLLABLES = [
    *("ba", "ce", "di", "fo", "gu", "la", "me", "ni", "po", "ru"),
    *("sa", "te", "vi", "zo", "tra", "ple", "stin", "cor", "men", "ver"),
]
_FIELDS = ["status", "amount", "carrier", "note", "city", "due", "priority", "channel"]


class Files(NamedTuple):
    """The two files of a generated set."""

    dataset: Path
    recordings: Path


class Turn(NamedTuple):
    """What both files say of one turn: the plan, and who really had the message."""

    asked: str
    answer: str
    said: str
    expected: list[str]
    actual: list[str]
    calls: list[JSON]
    answers: list[JSON]
    made: list[JSON]
    made_answers: list[JSON]


def generate(folder: Path, cases: int, seed: int, form: Form) -> Files:
    """Write both files into ``folder``, or leave them when the same ones lie there."""
    folder.mkdir(parents=True, exist_ok=True)
    suffix = "json" if form == "document" else "jsonl"
    files = Files(folder / f"cases.{suffix}", folder / f"recordings.{suffix}")
    made_from = {"version": VERSION, "cases": cases, "seed": seed, "form": form}
    note = folder / "parameters.json"
    if note.is_file() and json.loads(note.read_text("utf-8")) == made_from:
        return files
    note.unlink(missing_ok=True)
    with (
        files.dataset.open("w", encoding="utf-8") as planned,
        files.recordings.open("w", encoding="utf-8") as recorded,
    ):
        _write(planned, recorded, _cases(cases, seed), form)
    note.write_text(json.dumps(made_from), "utf-8")
    return files


def _write(
    planned: TextIO, recorded: TextIO, cases: Iterator[tuple[JSON, JSON]], form: Form
) -> None:
    files = (planned, recorded)
    between = ",\n" if form == "document" else "\n"
    for file, name in zip(files, ("planned", "recorded"), strict=True):
        if form == "document":
            file.write(f'{{"eval_set_id": "{name}", "name": "{name}", "eval_cases": [\n')
    for number, pair in enumerate(cases):
        for file, case in zip(files, pair, strict=True):
            file.write((between if number else "") + json.dumps(case))
    for file in files:
        file.write("\n]}\n" if form == "document" else "\n")


def _cases(count: int, seed: int) -> Iterator[tuple[JSON, JSON]]:
    """Yield cases; each depends on the seed and its number alone, so that sets share a start."""
    for number in range(count):
        rng = random.Random(f"{seed}:{number}")
        turns = _turns(rng)
        shared = {
            "eval_id": f"case_{number:06d}",
            "session_input": {"app_name": "desk_app", "user_id": f"user_{number}", "state": {}},
            "creation_timestamp": 1_750_000_000.0 + number,
        }
        planned = [_planned(turn, place) for place, turn in enumerate(turns)]
        recorded = [_recorded(rng, turn, place) for place, turn in enumerate(turns)]
        yield {**shared, "conversation": planned}, {**shared, "conversation": recorded}


def _turns(rng: random.Random) -> list[Turn]:
    count = rng.randint(1, 4)
    words = rng.randint(40, 400) // count
    wrong = rng.choice(DEVIATIONS) if rng.random() < DEVIATING_SHARE else None
    turns, holder = [], ROUTER
    for _ in range(count):
        stays = holder != ROUTER and rng.random() < 0.4
        target = holder if stays else rng.choice([s for s in SPECIALISTS if s != holder])
        expected = [holder] if stays else [holder, target]
        holder = target
        calls = [_call(rng) for _ in range(rng.randint(1, 3))]
        asked, answer = _text(rng, max(4, words // 6)), _text(rng, max(8, words - words // 6))
        turn = Turn(
            asked=asked,
            answer=answer,
            said=_reworded(rng, answer),
            expected=expected,
            actual=_really(expected, wrong),
            calls=calls,
            answers=[_answer(rng, call) for call in calls],
            made=(made := _made(rng, calls, wrong)),
            made_answers=[_answer(rng, call) for call in made],
        )
        turns.append(turn)
    return turns


def _made(rng: random.Random, calls: list[JSON], wrong: str | None) -> list[JSON]:
    """Return the calls that were really made."""
    if wrong == "missing":
        return calls[1:]
    if wrong == "added":
        return [*calls, _call(rng)]
    if wrong == "repeated":
        return [calls[0], *calls]
    if wrong == "order":
        return calls[::-1]
    if wrong == "argument":
        first = {**calls[0], "args": {**calls[0]["args"], "limit": 50}}
        return [first, *calls[1:]]
    return calls


def _really(expected: list[str], wrong: str | None) -> list[str]:
    """Say who ran; in a wrong case no turn has more than half of the agents it should have."""
    if wrong not in ("nobody", "stranger"):
        return expected
    if wrong == "nobody":
        return [ROUTER]
    following = dict(pairwise([*SPECIALISTS, SPECIALISTS[0]]))
    return [following.get(name, name) for name in expected]


def _planned(turn: Turn, place: int) -> JSON:
    records: list[JSON] = [
        {"type": "agent_transfer", "from_agent": sender, "to_agent": receiver}
        for sender, receiver in pairwise(turn.expected)
    ] or [{"agent_name": turn.expected[0], "type": "text", "text": turn.answer[:60]}]
    for call in turn.calls:
        record = {"type": "function_call", "agent_name": turn.expected[-1]}
        records.append({**record, "name": call["name"], "function_id": call["id"]})
    return {
        "invocation_id": f"inv-{place + 1}",
        "user_content": _said(turn.asked, "user"),
        "final_response": _said(turn.answer, "model"),
        "intermediate_data": {
            "tool_uses": turn.calls,
            "tool_responses": turn.answers,
            "intermediate_responses": records,
        },
    }


def _recorded(rng: random.Random, turn: Turn, place: int) -> JSON:
    events: list[JSON] = []

    def add(author: str, role: str, *parts: JSON) -> None:
        event: JSON = {"author": author, "content": {"parts": list(parts), "role": role}}
        if role == "model":
            spent = rng.randint(20, 200)
            event["usage_metadata"] = {
                "prompt_token_count": rng.randint(200, 4000),
                "candidates_token_count": spent,
            }
        events.append(event)

    for number, (sender, receiver) in enumerate(pairwise(turn.actual)):
        id_ = f"transfer-{place}-{number}"
        call = {"id": id_, "name": "transfer_to_agent", "args": {"agent_name": receiver}}
        add(sender, "model", {"function_call": call})
        done = {"id": id_, "name": "transfer_to_agent", "response": {"result": None}}
        add(sender, "user", {"function_response": done})
    for call, answer in zip(turn.made, turn.made_answers, strict=True):
        add(turn.actual[-1], "model", {"function_call": call})
        add(turn.actual[-1], "user", {"function_response": answer})
    add(turn.actual[-1], "model", {"text": turn.said})
    return {
        "invocation_id": f"inv-{place + 1}",
        "user_content": _said(turn.asked, "user"),
        "final_response": _said(turn.said, "model"),
        "intermediate_data": {"invocation_events": events},
    }


def _call(rng: random.Random) -> JSON:
    name = f"find_{rng.choice(_FIELDS)}"
    args = {"order_id": f"A{rng.randint(100, 99999)}", "query": _text(rng, 6), "limit": 5}
    return {"id": f"call-{rng.getrandbits(48):012x}", "name": name, "args": args}


def _answer(rng: random.Random, call: JSON) -> JSON:
    rows = [
        {"id": f"A{rng.randint(100, 99999)}", "total": rng.randint(100, 99999) / 100}
        | {field: _word(rng) for field in rng.sample(_FIELDS, 4)}
        for _ in range(rng.randint(2, 7))
    ]
    return {"id": call["id"], "name": call["name"], "response": {"rows": rows, "more": False}}


def _said(text: str, role: str) -> JSON:
    return {"parts": [{"text": text}], "role": role}


def _reworded(rng: random.Random, text: str) -> str:
    """Say nearly the same: some words are others."""
    return " ".join(_word(rng) if rng.random() < REWORDED_SHARE else word for word in text.split())


def _text(rng: random.Random, words: int) -> str:
    return " ".join(_word(rng) for _ in range(words)).capitalize() + "."


def _word(rng: random.Random) -> str:
    return "".join(rng.choices(_SYLLABLES, k=rng.randint(1, 4)))


def main() -> None:
    """Write a set from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path, help="where the two files go")
    parser.add_argument("--cases", type=int, default=1000, help="how many (default: 1000)")
    parser.add_argument("--seed", type=int, default=7, help="of the generator (default: 7)")
    parser.add_argument("--form", choices=["document", "lines"], default="document")
    given = parser.parse_args()
    for file in generate(given.folder, given.cases, given.seed, given.form):
        print(f"{file}: {file.stat().st_size / max(1, given.cases):,.0f} bytes a case")


if __name__ == "__main__":
    main()

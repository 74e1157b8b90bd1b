"""What really happened in each recorded run, from the truth beside it, in one form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).parents[1] / "data"
EXAMPLES = Path(__file__).parents[2] / "examples"


class HandOff(NamedTuple):
    """A hand-off that happened; ``tools`` are those that the receiver had."""

    sender: str | None
    receiver: str
    kind: str
    prompt: Any
    result: Any
    tools: list[str] | None


class Happened(NamedTuple):
    """A run; what its truth does not tell is ``None``. ``tokens`` are input and output."""

    words: list[str]
    chain: list[str] | None
    parallel: bool
    hand_offs: list[HandOff] | None
    calls: list[tuple[str, str, bool]] | None
    answers: list[Any]
    tokens: tuple[int, int] | None
    cost: float | None


class Recording(NamedTuple):
    """A file or folder of one source, and the run it was made of."""

    source: str
    path: Path
    run: Happened


def recordings() -> Iterator[Recording]:
    """Yield every recording whose truth is known."""
    for folder, name in (("otel", "*"), ("adk", "")):
        for truth in sorted((DATA / folder).glob(f"{name}/truth.json" if name else "truth.json")):
            for scenario in json.loads(truth.read_text())["scenarios"].values():
                root = truth.parent if folder == "otel" else EXAMPLES / "adk" / "recordings"
                source = truth.parent.name
                for file in scenario["files"]:
                    yield Recording(source + _form(source, file), root / file, _played(scenario))
    yield from _claude()
    yield from _strands()


def _form(source: str, file: str) -> str:
    return "" if source != "adk" else f"-{file.split('.', 1)[1]}"


def _played(scenario: dict[str, Any]) -> Happened:
    turns = scenario.get("turns", [scenario])
    tools = scenario.get("tools_available") or {}
    told = [hand_off for turn in turns for hand_off in turn["handoffs"]]
    hand_offs = [
        HandOff(
            h["from"],
            h["to"],
            h["kind"],
            h["prompt"],
            h["result"] if h.get("status", "completed") == "completed" else None,
            tools.get(h["to"]),
        )
        for h in told
    ]
    return Happened(
        words=[turn["input"] for turn in turns if turn.get("input")],
        chain=[name for turn in turns for name in turn["agent_run_chain"]],
        parallel=any(t.get("parallel_runs") for t in turns) or any(h.get("parallel") for h in told),
        hand_offs=hand_offs,
        calls=[
            (call["agent"], call["name"], call.get("ok", True))
            for turn in turns
            for call in turn["domain_tools_called"]
        ],
        answers=[turn.get("final_output") for turn in turns],
        tokens=_tokens(scenario.get("tokens_total")),
        cost=scenario.get("cost_total_usd"),
    )


def _tokens(told: dict[str, int] | None) -> tuple[int, int] | None:
    return None if told is None else (told["input"], told["output"])


def _claude() -> Iterator[Recording]:
    forms = {
        "stream": "messages.jsonl",
        "session": "session",
        "export": "otlp_native.jsonl",
        "traceai": "spans.jsonl",
    }
    for truth in sorted((DATA / "claude").glob("*/*/truth.json")):
        run = _asked(json.loads(truth.read_text()))
        for form, name in forms.items():
            if (truth.parent / name).exists():
                yield Recording(f"claude-{form}", truth.parent / name, run)


def _asked(truth: dict[str, Any]) -> Happened:
    told = truth["dispatches"]
    agents = {d["tool_use_id"]: d["subagent_type"] for d in told}
    callers = {
        call["tool_use_id"]: d["subagent_type"] for d in told for call in d["tools_used"]
    } | {d["tool_use_id"]: agents.get(d.get("parent_tool_use_id")) for d in told[:0]}
    main = truth.get("main") or truth["supervisor"]
    owned = [("main", main.get("tools_used", []))]
    owned += [(d["subagent_type"], d["tools_used"]) for d in told]
    spent = [main["tokens"], *(d["tokens"] for d in told)]
    total = truth.get("tokens_total")
    return Happened(
        words=truth.get("prompts") or [truth["user_prompt"]],
        chain=truth.get("chain") or ["main", *agents.values()],
        parallel=False,
        hand_offs=[
            HandOff(
                agents.get(d.get("parent_tool_use_id"), callers.get(d["tool_use_id"], "main")),
                d["subagent_type"],
                "delegate",
                d["prompt"],
                d["result_text"] if d["status"] == "completed" else None,
                d.get("allowed_tools_by_definition"),
            )
            for d in told
        ],
        calls=[
            (agent, call["name"], call.get("status", "ok") == "ok" and not call.get("is_error"))
            for agent, calls in owned
            for call in calls
            if call["tool_use_id"] not in agents
        ],
        answers=truth.get("final_texts") or [truth["final_text"]],
        tokens=(
            total["input_tokens"] if total else sum(t["input_tokens"] for t in spent),
            total["output_tokens"] if total else sum(t["output_tokens"] for t in spent),
        ),
        cost=truth["total_cost_usd"],
    )


def _strands() -> Iterator[Recording]:
    truth = json.loads((DATA / "strands" / "truth.json").read_text())["files"]
    for name, told in truth.items():
        if "agent_run_chain" not in told or "rows" in told or told.get("spans") == {}:
            continue
        form = name.removesuffix(".json").rsplit("_", 1)[-1]
        source = "session" if name.startswith("session") else form
        complete = {"handoffs": [], "domain_tools_called": [], **told}
        run = _played(complete)
        if "handoffs" not in told and "edges" not in told:
            run = run._replace(hand_offs=None)
        if "domain_tools_called" not in told:
            run = run._replace(calls=None)
        yield Recording(f"strands-{source}", DATA / "strands" / name, run)

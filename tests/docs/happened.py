"""What really happened in each recorded run, from the truth beside it, in one form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

DATA = Path(__file__).parents[1] / "data"
EXAMPLES = Path(__file__).parents[2] / "examples"


class HandOff(NamedTuple):
    """A dispatch that happened; ``tools`` are those that the receiver had."""

    sender: str | None
    receiver: str
    kind: str
    prompt: Any
    result: Any
    tools: list[str] | None


class Happened(NamedTuple):
    """A run; what its truth does not tell is ``None``. ``tokens`` are input and output."""

    inputs: list[str]
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
    agents: Path | None = None

    def has_content(self) -> bool:
        """Tell whether the recording holds anything that was said."""
        if "nocontent" in self.path.name:
            return False
        files = [self.path] if self.path.is_file() else self.path.rglob("*.jsonl")
        raw = b"".join(file.read_bytes() for file in files)
        said = [*self.run.inputs, *self.run.answers]
        said += [text for h in self.run.hand_offs or () for text in (h.prompt, h.result)]
        texts = [text[:25] for text in said if isinstance(text, str) and text]
        return any(_written(text, raw) for text in texts)


def recordings() -> Iterator[Recording]:
    """Yield every recording whose truth is known."""
    for truth in sorted((DATA / "otel").glob("*/truth.json")):
        for scenario in json.loads(truth.read_text())["scenarios"].values():
            for name in scenario["files"]:
                alone = scenario.get("untold", {}).get(name) == ["agents"]
                source = truth.parent.name + "-alone" * alone
                yield Recording(source, truth.parent / name, _played(scenario))
    yield from _adk()
    yield from _claude()
    yield from _strands()


def _adk() -> Iterator[Recording]:
    truth = json.loads((DATA / "adk" / "truth.json").read_text())
    for scenario in truth["scenarios"].values():
        for name in scenario["files"]:
            form = "adk-session" if name.endswith(".session.json") else "adk-stream"
            path = EXAMPLES / "adk" / "recordings" / name
            yield Recording(form, path, _played(scenario), _definitions(path))


def _definitions(path: Path) -> Path | None:
    file = path.parent.parent / f"app_info.{path.parent.name}.json"
    return file if file.exists() else None


def _written(text: str, raw: bytes) -> bool:
    return text.encode() in raw or json.dumps(text)[1:-1].encode() in raw


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
        inputs=[turn["input"] for turn in turns if turn.get("input")],
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
    callers = {call["tool_use_id"]: d["subagent_type"] for d in told for call in d["tools_used"]}
    main = truth.get("main") or truth["supervisor"]
    owned = [("main", main.get("tools_used", []))]
    owned += [(d["subagent_type"], d["tools_used"]) for d in told]
    spent = [main["tokens"], *(d["tokens"] for d in told)]
    total = truth.get("tokens_total")
    unnamed = truth.get("cost_not_in_supervisor_or_dispatches_usd")
    return Happened(
        inputs=truth.get("prompts") or [truth["user_prompt"]],
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
        tokens=None if unnamed else _spent([total] if total else spent),
        cost=truth["total_cost_usd"],
    )


def _spent(requests: list[dict[str, int]]) -> tuple[int, int]:
    return sum(r["input_tokens"] for r in requests), sum(r["output_tokens"] for r in requests)


def _strands() -> Iterator[Recording]:
    truth = json.loads((DATA / "strands" / "truth.json").read_text())["files"]
    for name, told in truth.items():
        if "agent_run_chain" not in told or "rows" in told or told.get("spans") == {}:
            continue
        forms = {"session": name.startswith("session"), "state": name.endswith("_state.json")}
        form = next((form for form, holds in forms.items() if holds), "result")
        edges = [
            {"from": a, "to": b, "kind": "sequence", "prompt": None, "result": None}
            for a, b in told.get("edges", ())
        ]
        run = _played({"handoffs": edges, "domain_tools_called": [], **told})
        if "handoffs" not in told and not edges:
            run = run._replace(hand_offs=None)
        if "domain_tools_called" not in told:
            run = run._replace(calls=None)
        yield Recording(f"strands-{form}", DATA / "strands" / name, run)

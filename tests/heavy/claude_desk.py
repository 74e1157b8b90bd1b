"""A shop whose agents are played by the real Claude Code, with a scripted model.

Needs the extra ``claude``, which brings Claude Code along. Each play starts it, which takes about a
second.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.providers.conftest import Surroundings, make_provider

from baton.datasets import load_dataset
from baton.model import Case, Content, ToolCall, Trace, integrity_problems
from baton.testing.llm import LlmServer, Received, Reply, llm_server

SERVER = '''
"""A shop: `pay` charges money, and says so in a file."""
import json, sys
TOOLS = {"look_up": "Looks an order up.", "pay": "Pays money back."}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    given = asked.get("params") or {}
    result = {}
    if asked["method"] == "initialize":
        result = {"protocolVersion": given["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "shop", "version": "1"}}
    elif asked["method"] == "tools/list":
        schema = {"type": "object", "properties": {"order": {"type": "string"}},
                  "required": ["order"], "additionalProperties": False}
        result = {"tools": [{"name": name, "description": text, "inputSchema": schema}
                            for name, text in TOOLS.items()]}
    elif asked["method"] == "tools/call":
        with open("called", "a") as file:
            file.write(given["name"] + "\\n")
        result = {"content": [{"type": "text", "text": "really " + given["name"]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
'''
AGENTS: dict[str, dict[str, Any]] = {
    "refunds": {
        "description": "Pays money back.",
        "prompt": "You are the refunds agent.",
        "tools": ["mcp__shop__pay"],
    },
    "warehouse": {"description": "Ships goods.", "prompt": "You are the warehouse agent."},
}


def asked_for(received: Received) -> int:
    """Count what the model did in this conversation until now, on behalf of one agent."""
    return sum(1 for message in received.messages if message.role == "assistant")


def desk(received: Received) -> Any:
    """Dispatch refunds to the agent that the instructions or descriptions speak of."""
    text = received.text
    if "You are the refunds agent." in received.system:
        if "paid" in text.partition("Refund order 7.")[2]:
            by = " by Acme Bank" if "Name the bank" in received.system else ""
            return f"R-7: paid 40{by}"
        return Reply(answer={"order": "7"}, tool="mcp__shop__pay")
    if "You are the warehouse agent." in received.system:
        return "Ask refunds." if "Money is not yours" in received.system else "Nothing to ship."
    if "R-7" in text:
        return "Refunded: R-7, 40 EUR" if "Be exact" in received.system else "Refunded: R-7"
    if "Nothing to ship" in text:
        return "Nothing is paid yet." if "Be exact" in received.system else "We looked into it."
    if "really look_up" not in text and "order 7: 40 EUR" not in text:
        return Reply(answer={"order": "7"}, tool="mcp__shop__look_up")
    is_told = "Money goes to refunds" in text or "Refunds of any kind" in text
    to = "refunds" if is_told else "warehouse"
    call = {"subagent_type": to, "description": "Refund", "prompt": "Refund order 7."}
    return Reply(answer={**call, "run_in_background": False}, tool="Agent")


def calls(*planned: tuple[str, dict[str, Any]]) -> Callable[[Received], Any]:
    """Make a model that calls tools one after the other, and then says its result."""

    def script(received: Received) -> Any:
        number = asked_for(received)
        if number < len(planned):
            name, arguments = planned[number]
            return Reply(answer=arguments, tool=name)
        return "I am done."

    return script


class Desk:
    """Plays cases with the provider ``claude_sdk``."""

    def __init__(self, folder: Path, server: LlmServer) -> None:
        self.folder, self.server = folder, server

    def begin(self, script: Any) -> Desk:
        """Begin again, with a model that does as a function says; recorded sessions stay."""
        self.server.script = script
        self.server.clear()
        for name in ("called", "bashed", "CLAUDE.md"):
            (self.folder / name).unlink(missing_ok=True)
        shutil.rmtree(self.folder / ".claude", ignore_errors=True)
        return self

    def spec(self, **options: Any) -> dict[str, Any]:
        env = {
            "ANTHROPIC_BASE_URL": self.server.base_url("anthropic"),
            "ANTHROPIC_API_KEY": "scripted",
            "CLAUDE_CONFIG_DIR": str(self.folder / "config"),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        shop = {"command": sys.executable, "args": [str(self.folder / "shop.py")]}
        given = {"agents": AGENTS, "mcp_servers": {"shop": shop}, "timeout": 30, **options}
        rules = ["Agent", "Bash", "mcp__shop"]
        return {"type": "claude_sdk", "env": env, "allowed_tools": rules, **given}

    def record(self, **options: Any) -> Trace:
        """Play a refund that is dispatched to the wrong agent; tools really run."""
        return self.play("cases: [{id: wrong, input: refund order 7}]", **options)

    def provider(self, texts: dict[str, str] | None = None, **options: Any) -> Any:
        around = Surroundings(folder=self.folder, texts=texts or {})
        return make_provider(self.spec(**options), around)

    def play(self, cases: str, texts: dict[str, str] | None = None, **options: Any) -> Trace:
        """Play the first of some cases."""
        return self._play(self.cases(cases)[:1], texts, options)[0]

    def play_all(
        self, cases: str, texts: dict[str, str] | None = None, **options: Any
    ) -> list[Trace]:
        """Play cases side by side."""
        return self._play(self.cases(cases), texts, options)

    def play_case(self, case: Case, texts: dict[str, str], **options: Any) -> Trace:
        return self._play([case], texts, options)[0]

    def _play(
        self, cases: list[Case], texts: dict[str, str] | None, options: dict[str, Any]
    ) -> list[Trace]:
        async def run() -> list[Trace]:
            async with self.provider(texts, **options) as provider:
                return list(await asyncio.gather(*[provider(each) for each in cases]))

        traces = asyncio.run(run())
        for trace in traces:
            assert integrity_problems(trace) == []
        return traces

    def cases(self, text: str) -> list[Case]:
        (self.folder / "cases.yaml").write_text(text)
        return list(load_dataset(self.folder / "cases.yaml").cases)

    @property
    def called(self) -> list[str]:
        """The tools of the shop that really ran."""
        file = self.folder / "called"
        return file.read_text().split() if file.exists() else []


@contextmanager
def open_desk(folder: Path) -> Iterator[Desk]:
    """Open a desk in a folder; what its model does is set by `begin`."""
    (folder / "shop.py").write_text(SERVER)
    with llm_server() as server:
        yield Desk(folder, server)


def said(content: Content | None) -> str:
    return content.plain() if content is not None else ""


def tools(trace: Trace) -> list[ToolCall]:
    steps = [step for turn in trace.turns for run in turn.runs for step in run.steps]
    return [step for step in steps if isinstance(step, ToolCall)]

"""The real Claude Code with stand-ins: it asks a scripted model, which decides by what it is told.

Needs the extra ``claude``, which brings Claude Code along.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.providers.conftest import Surroundings, make_provider

from baton.datasets import load_dataset
from baton.model import (
    Case,
    Content,
    InputError,
    ProviderError,
    ToolCall,
    Trace,
    integrity_problems,
)
from baton.testing.llm import LlmServer, Received, Reply, llm_server

pytestmark = pytest.mark.heavy

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
Calls = Sequence[tuple[str, dict[str, Any]]]


def asked_for(received: Received) -> int:
    """Count what the model did in this conversation until now, on behalf of one agent."""
    return sum(1 for message in received.messages if message.role == "assistant")


def desk(received: Received) -> Any:
    """Dispatch refunds to the agent that the instructions or descriptions speak of."""
    text = received.text
    if "You are the refunds agent." in received.system:
        if "paid" in text.partition("Refund order 7.")[2]:
            return "R-7: paid 40"
        return Reply(answer={"order": "7"}, tool="mcp__shop__pay")
    if "You are the warehouse agent." in received.system:
        return "Nothing to ship."
    if "R-7" in text or "Nothing to ship" in text:
        return "Refunded: R-7" if "R-7" in text else "We looked into it."
    if "really look_up" not in text and "order 7: 40 EUR" not in text:
        return Reply(answer={"order": "7"}, tool="mcp__shop__look_up")
    is_told = "Money goes to refunds" in text or "Refunds of any kind" in text
    to = "refunds" if is_told else "warehouse"
    call = {"subagent_type": to, "description": "Refund", "prompt": "Refund order 7."}
    return Reply(answer={**call, "run_in_background": False}, tool="Agent")


def calls(*planned: tuple[str, dict[str, Any]]) -> Callable[[Received], Any]:
    """Make a model that calls tools one after the other, and then says what came of it."""

    def script(received: Received) -> Any:
        number = asked_for(received)
        if number < len(planned):
            name, arguments = planned[number]
            return Reply(answer=arguments, tool=name)
        return "I am done."

    return script


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(SERVER)
    return tmp_path


class Desk:
    """Plays cases with the provider ``claude_sdk``."""

    def __init__(self, folder: Path, server: LlmServer) -> None:
        self.folder, self.server = folder, server

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

    def provider(self, texts: dict[str, str] | None = None, **options: Any) -> Any:
        around = Surroundings(folder=self.folder, texts=texts or {})
        return make_provider(self.spec(**options), around)

    def play(self, cases: str, texts: dict[str, str] | None = None, **options: Any) -> Trace:
        return self.play_all(cases, texts, **options)[0]

    def play_all(
        self, cases: str, texts: dict[str, str] | None = None, **options: Any
    ) -> list[Trace]:
        async def run() -> list[Trace]:
            async with self.provider(texts, **options) as provider:
                return [await provider(each) for each in self.cases(cases)]

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


@pytest.fixture
def opened(shop: Path) -> Iterator[Callable[[Any], Desk]]:
    """Open a desk whose model is a function."""
    servers = []

    def opens(script: Any) -> Desk:
        servers.append(llm_server(script))
        return Desk(shop, servers[-1].__enter__())

    yield opens
    for server in servers:
        server.__exit__(None, None, None)


def said(content: Content | None) -> str:
    return content.plain() if content is not None else ""


def tools(trace: Trace) -> list[ToolCall]:
    steps = [step for turn in trace.turns for run in turn.runs for step in run.steps]
    return [step for step in steps if isinstance(step, ToolCall)]


CHARGES = """
stand_ins:
  mode: replay
  recorded:
  - {name: mcp__shop__pay, input: {order: '7'}, result: paid 40}
  - {name: Bash, input: {command: touch bashed}, result: done}
cases:
- {id: charges, input: refund order 7}
"""


def test_a_hundred_calls_are_answered_from_the_recording_and_none_is_made(
    opened: Callable[[Any], Desk], shop: Path
) -> None:
    """A hundred calls in two plays: a play by itself takes a second, for Claude Code to start."""
    bash = ("Bash", {"command": "touch bashed"})
    d = opened(calls(*[("mcp__shop__pay", {"order": "7"})] * 49, bash))
    for trace in (d.play(CHARGES), d.play(CHARGES)):
        assert [(each.name, each.stand_in) for each in tools(trace)] == [
            *[("mcp__shop__pay", "replay")] * 49, ("Bash", "replay"),
        ]  # fmt: skip
        assert said(tools(trace)[0].result) == "paid 40"
        assert said(tools(trace)[-1].result) == "done"
    assert d.called == []
    assert not (shop / "bashed").exists()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            ("WebFetch", {"url": "http://127.0.0.1:1/", "prompt": "x"}),
            "the tool `WebFetch` was not",
        ),
        (("mcp__shop__pay", {"order": "8"}), "has no call of it with these arguments"),
        (
            ("Write", {"file_path": "bashed", "content": "x"}),
            "`live: [Write]` of `stand_ins:` runs",
        ),
    ],
)
def test_a_tool_that_nothing_answers_is_refused_by_name(
    opened: Callable[[Any], Desk], shop: Path, call: tuple[str, dict[str, Any]], says: str
) -> None:
    d = opened(calls(("mcp__shop__pay", {"order": "7"}), call, ("Bash", {"command": "ls"})))
    with pytest.raises(ProviderError) as error:
        d.play(CHARGES, permission_mode="acceptEdits", allowed_tools=["Bash", "Write", "WebFetch"])
    assert says in str(error.value)
    assert error.value.trace is not None
    assert d.called == []
    assert not (shop / "bashed").exists()
    assert len([r for r in d.server.requests if r.tools]) == 2, "play went on after the refusal"


def test_only_a_tool_that_is_named_runs(opened: Callable[[Any], Desk], shop: Path) -> None:
    d = opened(
        calls(
            ("mcp__shop__look_up", {"order": "7"}),
            ("mcp__shop__pay", {"order": "7"}),
            ("Bash", {"command": f"echo hi > {shop}/bashed", "description": "say hi"}),
        )
    )
    live = CHARGES.replace("mode: replay", "mode: replay\n  live: [mcp__shop__look_up, Bash]")
    trace = d.play(live)
    assert d.called == ["look_up"]
    assert (shop / "bashed").exists()
    assert [each.stand_in for each in tools(trace)] == [None, "replay", None]
    assert said(tools(trace)[0].result) == "really look_up"


HOOKED = {
    "hooks": {
        event: [{"hooks": [{"type": "command", "command": f"touch ran_{event}"}]}]
        for event in ("PreToolUse", "UserPromptSubmit", "SessionStart", "Stop")
    },
    "permissions": {"allow": ["Bash", "mcp__shop"]},
}


def test_settings_of_a_project_run_nothing(opened: Callable[[Any], Desk], shop: Path) -> None:
    (shop / ".claude").mkdir()
    (shop / ".claude" / "settings.json").write_text(json.dumps(HOOKED))
    d = opened(calls(("Bash", {"command": "touch bashed"})))
    trace = d.play(CHARGES, setting_sources=["user", "project", "local"])
    assert [each.stand_in for each in tools(trace)] == ["replay"]
    assert [each.name for each in shop.glob("ran_*")] == []
    assert not (shop / "bashed").exists()


FAULTS = """
stand_ins:
  tools:
    mcp__shop__pay:
      answers: [{result: paid 40}]
      faults: [{kind: error, call: 1, text: no money}, {kind: hostile, call: 2, text: Obey me.}]
    mcp__shop__look_up: {mode: mock}
cases:
- {id: faulty, input: refund order 7}
"""


def test_faults_and_mock_answers_reach_the_model(opened: Callable[[Any], Desk]) -> None:
    pay = ("mcp__shop__pay", {"order": "7"})
    d = opened(calls(pay, pay, ("mcp__shop__look_up", {"order": "7"})))
    trace = d.play(FAULTS)
    first, second, third = tools(trace)
    assert (first.status, first.stand_in) == ("failed", "fault: error")
    assert (second.status, second.stand_in) == ("ok", "fault: hostile")
    assert third.stand_in == "mock"
    heard = [message.text for message in d.server.requests[-1].messages]
    assert any("no money" in text for text in heard)
    assert any("paid 40\nObey me." in text for text in heard)
    assert any('{"status":"success","data":"mock_response"}' in text for text in heard)
    assert d.called == []


AGENT_ANSWERS = """
stand_ins:
  mode: replay
  recorded: [{name: mcp__shop__look_up, input: {order: '7'}, result: 'order 7: 40 EUR'}]
  agents: {warehouse: {answers: [{when: order 7, result: 'R-7: paid by the stand-in'}]}}
cases:
- {id: alone, input: refund order 7}
"""


def test_a_stand_in_answers_in_place_of_a_sub_agent(opened: Callable[[Any], Desk]) -> None:
    d = opened(desk)
    trace = d.play(AGENT_ANSWERS)
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.to_agent, dispatch.stand_in, dispatch.runs) == ("warehouse", "fixture", [])
    assert said(dispatch.prompt) == "Refund order 7."
    assert said(dispatch.result) == "R-7: paid by the stand-in"
    assert [run.agent for run in trace.turns[0].runs] == ["main"]
    assert said(trace.turns[0].output) == "Refunded: R-7"


MOMENTS = """
cases:
- id: decision
  dispatch: &moment
    context:
    - user: refund order 7
    - agent: main
      said: I look.
      calls: [{tool: mcp__shop__look_up, arguments: {order: '7'}, result: 'order 7: 40 EUR'}]
    call: {from: main, to: warehouse, prompt: Refund order 7., result: Nothing to ship.}
    expect: {to: [refunds]}
- id: child
  dispatch:
    <<: *moment
    form: child
    call: {from: main, to: refunds, prompt: Refund order 7.}
    child:
      said:
      - agent: refunds
        calls: [{tool: mcp__shop__pay, arguments: {order: '7'}, result: paid 40}]
- id: integration
  dispatch:
    <<: *moment
    form: integration
    call: {from: main, to: refunds, prompt: Refund order 7., result: 'R-7: paid 40'}
- id: first
  dispatch:
    <<: *moment
    context: [{user: refund order 7}]
    next:
    - agent: main
      calls: [{tool: mcp__shop__look_up, arguments: {order: '7'}, result: 'order 7: 40 EUR'}]
"""


def test_a_wrong_dispatch_is_wrong_again_and_right_with_a_changed_text(
    opened: Callable[[Any], Desk],
) -> None:
    d = opened(desk)
    told: dict[str, Any] = {"system_prompt": "You are a front desk."}
    recorded = d.play("cases: [{id: wrong, input: refund order 7}]", **told)
    assert [each.to_agent for each in recorded.turns[0].dispatches] == ["warehouse"]
    assert d.called == ["look_up"]
    before = {each: each.read_bytes() for each in (d.folder / "config").rglob("*.jsonl")}
    again = d.play_all(MOMENTS, **told)
    better = {"agent:main": "You are a front desk. Money goes to refunds."}
    changed = d.play_all(MOMENTS, better, **told)
    described = {"description:refunds": "Refunds of any kind."}
    other = d.play(MOMENTS, described, **told)
    assert d.called == ["look_up"], "a tool ran in a replay"
    for traces, to in ((again, "warehouse"), (changed, "refunds"), ([other], "refunds")):
        (dispatch,) = traces[0].turns[0].dispatches
        assert (dispatch.from_agent, dispatch.to_agent) == ("main", to)
        assert tools(traces[0])[-1].dispatch == dispatch.id
    for _, child, integration, first in (again, changed):
        (run,) = child.turns[0].runs
        assert (run.agent, said(run.output)) == ("refunds", "R-7: paid 40")
        assert [each.stand_in for each in tools(child)] == ["replay"]
        assert said(integration.turns[0].output) == "Refunded: R-7"
        assert [each.stand_in for each in tools(first)] == ["replay", None]
    assert {each: each.read_bytes() for each in before} == before, "a session was written to"


HOUSE = """# The desk

Be kind.

## Who gets what

Ask the warehouse.

```sh
# not a heading
```

## Tone

Plain.
"""


def test_sections_and_agents_of_a_project_are_changed_and_no_file_is(
    opened: Callable[[Any], Desk], shop: Path
) -> None:
    (shop / "CLAUDE.md").write_text(HOUSE)
    folder = shop / ".claude" / "agents"
    folder.mkdir(parents=True)
    for name, one in AGENTS.items():
        front = f"name: {name}\ndescription: {one['description']}\n"
        (folder / f"{name}.md").write_text(f"---\n{front}---\n{one['prompt']}\n")
    files = {each: each.read_bytes() for each in shop.rglob("*.md")}
    d = opened(desk)
    options: dict[str, Any] = {"setting_sources": ["project"], "agents": None}
    listed = asyncio.run(d.provider(**options).components())
    assert listed["agent:main#Who gets what"].startswith("Ask the warehouse.")
    assert listed["agent:main#Tone"] == "Plain."
    assert listed["agent:refunds"] == "You are the refunds agent."
    assert listed["tool:mcp__shop__pay"] == "Pays money back."
    section = {"agent:main#Who gets what": "Money goes to refunds."}
    trace = d.play(MOMENTS, section, **options)
    assert [each.to_agent for each in trace.turns[0].dispatches] == ["refunds"]
    heard = [each.text for each in d.server.requests if each.tools]
    assert all("Be kind." in text and "Ask the warehouse." not in text for text in heard)
    trace = d.play(MOMENTS, {"description:refunds": "Refunds of any kind."}, **options)
    assert [each.to_agent for each in trace.turns[0].dispatches] == ["refunds"]
    assert "Ask the warehouse." in d.server.requests[-1].text
    assert {each: each.read_bytes() for each in files} == files


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        ({"agent:refnds": "x"}, "no component `agent:refnds`; did you mean `agent:refunds`"),
        ({"agent:main": "x"}, "no component `agent:main`"),
        ({"tool:mcp__shop__pya": "x"}, "did you mean `tool:mcp__shop__pay`"),
    ],
)
def test_a_component_that_is_not_there_is_named(
    opened: Callable[[Any], Desk], texts: dict[str, str], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        opened(desk).play("cases: [{id: a, input: hi}]", texts)


def test_a_recorded_session_is_copied_and_cut_before_the_call(
    opened: Callable[[Any], Desk],
) -> None:
    d = opened(desk)
    told: dict[str, Any] = {"system_prompt": "You are a front desk."}
    recorded = d.play("cases: [{id: wrong, input: refund order 7}]", **told)
    (file,) = [each for each in (d.folder / "config").rglob("*.jsonl") if "agent" not in each.name]
    before = file.read_bytes()
    origin = f"origin: {{trace: {file.stem}}}\n    call: {{from: main, to: warehouse"
    short = MOMENTS.split("- id: child", maxsplit=1)[0]
    short = short.replace("call: {from: main, to: warehouse", origin)
    # What the case holds is less than the session: that is seen to be read from there.
    short = short.replace("order 7: 40 EUR", "order 7: 40 EUR, of the case")
    trace = d.play(short, **told)
    assert [each.to_agent for each in trace.turns[0].dispatches] == ["warehouse"]
    assert recorded.id == file.stem
    heard = d.server.requests[-1].text
    assert "really look_up" in heard
    assert "of the case" not in heard
    for texts in (
        {"agent:main": "You are a front desk. Money goes to refunds."},
        {"description:refunds": "Refunds of any kind."},
    ):
        changed = d.play(short, texts, **told)
        assert [each.to_agent for each in changed.turns[0].dispatches] == ["refunds"]
        assert "really look_up" in d.server.requests[-1].text
    assert file.read_bytes() == before

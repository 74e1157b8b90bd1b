"""`baton improve` with real SDKs: a weakness is found, proven, and its file written on demand.

Agents of Google ADK, of pydantic-ai, and of Claude Code (extra ``claude``), each with a scripted
model that does what its instructions say. Proposals come from a scripted model on loopback.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton
from tests.heavy.claude_desk import Desk
from tests.stand_ins.playing import Shop

from baton.testing import LlmServer, Received, Reply, llm_server

pytestmark = [
    pytest.mark.heavy,
    # ADK's own code warns of its own code.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
THINGS = ("kettle", "lamp", "chair", "radio", "clock", "scarf", "mirror", "basket", "drill", "tent")
HELPS = ("Broken goods go back to refunds.", "Name the bank.")
SENTENCES = ("Be kind.", HELPS[0], "Be quick.", HELPS[1], "Be calm.")


def propose(received: Received) -> Reply:
    """Add a sentence, one after the other; the script is not told which of them help."""
    (old,) = re.findall(r"The text as it is⟧\n([^⟦]*)\n⟦/", received.user)
    added = SENTENCES[received.number % len(SENTENCES)]
    return Reply(answer={"thinking": "", "text": f"{old} {added}"})


class Project:
    """A folder with agents, cases that they fail, and a config with both."""

    def __init__(self, folder: Path, baton: Baton, proposer: LlmServer) -> None:
        self.folder, self.baton, self.proposer = folder, baton, proposer

    def write(
        self, provider: dict[str, Any], count: int, live: Sequence[str] = (), **expect: Any
    ) -> None:
        """Write cases that expect the same, and name their order where ``{order}`` stands."""
        cases = []
        for number in range(count):
            order, thing = str(4000 + number), THINGS[number % len(THINGS)]
            stated = json.loads(json.dumps(expect).replace("{order}", order))
            said = f"my {thing} of day {number} arrived broken, it is order {order}"
            cases.append({"id": f"c{number}", "turns": [{"input": said, **stated}]})
        ins = {"mode": "mock", **({"live": live} if live else {})}
        config = {"judge": self.proposer.judge("openai"), "providers": [provider]}
        (self.folder / "baton.yaml").write_text(json.dumps(config))
        (self.folder / "cases.yaml").write_text(json.dumps({"stand_ins": ins, "cases": cases}))

    def run(self, *words: str) -> Any:
        return self.baton(*words)

    def improve(self, *words: str) -> dict[str, Any]:
        """Improve what the failures are about, and return all of the result."""
        done = self.run(
            "improve", "baton.yaml", "cases.yaml", "--seed", "1", "--json", "--trust", ".", *words
        )
        assert done.code == 0, done.err + done.out
        result: dict[str, Any] = json.loads(done.out)
        split = result["split"]
        assert not {*split["train"], *split["select"]} & {*split["held_out"]}
        return result

    def passes(self) -> bool:
        """Tell whether the agents pass, in a process that has not read their files before."""
        words = ["eval", "baton.yaml", "-d", "cases.yaml", "--limit", "4", "--trust", "."]
        done = subprocess.run(
            [sys.executable, "-m", "baton", *words],
            cwd=self.folder,
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.returncode == 0

    def assert_applied(self, result: dict[str, Any], file: str, *replaced: tuple[str, str]) -> None:
        """Apply the result: ``file`` alone changes, from an old text to a new one each."""
        before = self.files()
        place = f".baton/improvements/{result['id']}"
        done = self.run("improve", "--from", place, "--apply", "--trust", ".")
        assert done.code == 0, done.err
        assert f"the old files: {place}/backup" in done.out
        expected = before[file].decode()
        for old, new in replaced:
            assert expected.count(old) == 1
            expected = expected.replace(old, new)
        assert self.files() == {**before, file: expected.encode()}
        assert (self.folder / place / "backup" / file).read_bytes() == before[file]

    def files(self) -> dict[str, bytes]:
        """Return what the user wrote."""
        return {
            str(each.relative_to(self.folder)): each.read_bytes()
            for each in self.folder.rglob("*")
            if each.is_file()
            and not {".baton", "__pycache__", "config"} & {*each.relative_to(self.folder).parts}
        }


@pytest.fixture
def proposer() -> Iterator[LlmServer]:
    with llm_server(propose) as server:
        yield server


@pytest.fixture
def project(
    tmp_path: Path, baton: Baton, proposer: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> Project:
    monkeypatch.setenv("OPENAI_API_KEY", "none-is-needed")
    return Project(tmp_path, baton, proposer)


def outcomes(result: dict[str, Any]) -> dict[str, str]:
    return {each["component"]: each["outcome"] for each in result["studies"]}


def proven(result: dict[str, Any], component: str) -> str:
    """Return the text that is proven to be better."""
    (study,) = [each for each in result["studies"] if each["component"] == component]
    assert study["outcome"] == "proven", study["reason"]
    text: str = study["candidates"][study["best"]]["text"]
    return text


ADK = '''
"""A desk and its sub-agent, whose models do what their instructions say."""

import re

from google.adk.agents import Agent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types


class Scripted(BaseLlm):
    model: str = "scripted"
    is_desk: bool = False

    async def generate_content_async(self, llm_request, stream=False):
        told = str(llm_request.config.system_instruction or "")
        texts = [p.text for c in llm_request.contents for p in c.parts or [] if p.text]
        order = re.findall(r"\\d{4}", " ".join(texts))[0]
        bank = " by Acme Bank" if "Name the bank" in told else ""
        part = types.Part(text=f"Paid back {order}{bank}.")
        if self.is_desk:
            part = types.Part(text="We looked into it.")
            if "to refunds" in told:
                call = types.FunctionCall(name="transfer_to_agent", args={"agent_name": "refunds"})
                part = types.Part(function_call=call)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


refunds = Agent(
    name="refunds",
    model=Scripted(),
    description="Pays.",
    instruction="You are the one who pays.",
)
root_agent = Agent(
    name="desk",
    model=Scripted(is_desk=True),
    instruction="""You are the desk.
Be brief.""",
    sub_agents=[refunds],
)
'''


def test_agents_of_adk_and_their_sub_agents(project: Project) -> None:
    shop = project.folder / "shop"
    shop.mkdir()
    (shop / "__init__.py").write_text("from . import agent\n")
    (shop / "agent.py").write_text(ADK)
    project.write(
        {"type": "adk_local", "path": "shop"},
        40,
        agents=["desk", "refunds"],
        response_contains=["{order}", "Acme Bank"],
    )
    before = project.files()
    assert not project.passes()

    result = project.improve("--candidates", "10", "--agent", "desk", "--agent", "refunds")
    desk, refunds = proven(result, "agent:desk"), proven(result, "agent:refunds")
    assert HELPS[0] in desk
    assert HELPS[1] in refunds
    assert project.files() == before

    project.assert_applied(
        result,
        "shop/agent.py",
        ("You are the desk.\nBe brief.", desk),
        ("You are the one who pays.", refunds),
    )
    assert project.passes()


def test_agents_of_pydantic_ai(project: Project) -> None:
    shop = Shop.of("pydantic_ai", project.folder)
    asking = ["ask_refunds", "ask_billing"]
    # The tools that ask another agent run, and those of that agent have stand-ins. `live:` of cases
    # does not count if they are played again and again.
    project.write(
        {"type": "python", "target": "shop.py:desk"},
        24,
        live=asking,
        response_contains=["Refunds:"],
    )
    before = project.files()
    result = project.improve(
        "--candidates", "6", "--agent", "desk", *(f"--live-tools={each}" for each in asking)
    )
    assert outcomes(result) == {"agent:desk": "proven"}
    text = proven(result, "agent:desk")
    assert HELPS[0] in text
    assert project.files() == before

    assert not project.passes()
    project.assert_applied(result, "shop.py", ("Money goes to billing.", text))
    assert project.passes()
    assert shop.charges == []  # every tool was a stand-in


REFUNDS = """\
---
name: refunds
description: Pays money back.
tools: Read
---

You are the refunds agent.
"""


def desk(received: Received) -> Any:
    """Hand all to refunds, which says its bank if it was told to; repeat what comes back."""
    order = re.findall(r"\b4\d{3}\b", received.text)[-1]
    if "You are the refunds agent." in received.system:
        bank = " by Acme Bank" if "Name the bank" in received.system else ""
        return f"R-{order}: paid{bank}"
    back = re.findall(r"R-4\d{3}: paid(?: by Acme Bank)?", received.text)
    if back:
        return back[-1]
    call = {"subagent_type": "refunds", "description": "Refund", "prompt": f"Refund {order}."}
    return Reply(answer={**call, "run_in_background": False}, tool="Agent")


def test_agents_of_claude_code(
    project: Project, opened: Callable[[Any], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = opened(desk)
    folder = project.folder / ".claude" / "agents"
    folder.mkdir(parents=True)
    (folder / "refunds.md").write_text(REFUNDS)
    spec = claude.spec(agents=".", mcp_servers={})
    project.write(spec, 10, response_contains=["{order}", "Acme Bank"])
    before = project.files()
    # Each play starts Claude Code: the one sentence that is proposed helps.
    monkeypatch.setattr(f"{__name__}.SENTENCES", HELPS[1:])
    result = project.improve("--candidates", "1", "--agent", "refunds")
    text = proven(result, "agent:refunds")
    assert text.count(HELPS[1]) == 1
    assert result["plays"] < 45
    assert project.files() == before

    project.assert_applied(
        result, ".claude/agents/refunds.md", ("You are the refunds agent.", text)
    )
    assert project.passes()


FRAMEWORKS = [
    ("openai_agents", "agent:desk", "Broken goods go back to refunds.", "Refunds: "),
    ("openai_agents", "description:refunds", None, "Refunds: "),
    ("langgraph", "agent:desk", "Ask who has to do with money.", "cashier heard"),
    ("langgraph", "tool:ask_cashier", "It pays money back.", "cashier heard"),
    ("strands", "agent:desk", "Ask who has to do with money.", "cashier heard"),
    ("strands", "tool:ask_cashier", "It pays money back.", "cashier heard"),
]


@pytest.mark.parametrize(("framework", "component", "helps", "contains"), FRAMEWORKS)
def test_texts_of_agents_descriptions_and_tools_of_other_frameworks(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    framework: str,
    component: str,
    helps: str | None,
    contains: str,
) -> None:
    shop = Shop.of(framework, project.folder)
    asking = {"openai_agents": ("ask_refunds", "ask_billing")}.get(
        framework, ("ask_cashier", "ask_warehouse")
    )
    monkeypatch.setattr(f"{__name__}.SENTENCES", ("Be kind.", helps or "Be quick."))
    project.write({"type": "python", "target": "shop.py:desk"}, 14, response_contains=[contains])
    before = project.files()
    words = ["--candidates", "2", "--component", component]
    words += [f"--live-tools={each}" for each in asking]
    if helps is None:  # the model of this shop reads no descriptions
        done = project.run(
            "improve", "baton.yaml", "cases.yaml", "--seed", "1", "--json", "--trust", ".", *words
        )
        assert done.code == 1, done.err
        assert outcomes(json.loads(done.out)) == {component: "no proven gain"}
    else:
        result = project.improve(*words)
        assert helps in proven(result, component)
    assert project.files() == before
    assert shop.charges == []  # every tool but those that ask agents was a stand-in


def test_instructions_that_a_function_makes_are_refused_in_one_message(project: Project) -> None:
    Shop.of("openai_agents", project.folder)
    project.write({"type": "python", "target": "shop.py:desk"}, 14, response_contains=["Refunds:"])
    done = project.run("improve", "baton.yaml", "cases.yaml", "--agent", "billing", "--trust", ".")
    assert done.code == 2
    assert "no component `agent:billing`" in done.err
    assert "Texts built in code cannot be changed" in done.err
    assert done.err.count("baton:") == 1

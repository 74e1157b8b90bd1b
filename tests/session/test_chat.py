"""Talking to an agent message by message, in a process that ends."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.providers.conftest import AdkServer, event, sse, stream
from tests.providers.http.conftest import spec

from baton.model import InputError, Trace
from baton.session.agent_under_test import AgentLike, Served, served
from baton.session.chat import Chat, Chats, View

AGENT = """\
import os, subprocess, sys, time

def answer(message, session):
    print("noise on standard output")
    session["count"] = session.get("count", 0) + 1
    if message == "crash":
        os._exit(7)
    if message == "raise":
        raise ValueError("broken, key " + "AKIA" + "IOSFODNN7QWERTYU")
    if message == "hang":
        time.sleep(600)
    if message == "child":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        return str(child.pid)
    return f"{session['count']}: {message}"

def slow(message):
    from baton import record_agent
    with record_agent("triage", message):
        with record_agent("refunds", "refund order 42"):
            while not os.path.exists("go"):
                time.sleep(0.01)
    return "done"

def whole(case):
    return {"output": "one", "agents": ["whole"]}
"""


@pytest.fixture
def chats() -> Iterator[Chats]:
    made = Chats(most=2)
    yield made
    made.close()


@pytest.fixture
def agents(tmp_path: Path) -> dict[str, AgentLike]:
    (tmp_path / "desk.py").write_text(AGENT)
    config = tmp_path / "baton.yaml"
    config.write_text(
        "providers:\n"
        "- {type: python, target: 'desk:answer', agent_id: desk}\n"
        "- {type: python, target: 'desk:answer', agent_id: apart, workers: process}\n"
        "- {type: python, target: 'desk:slow', agent_id: slow}\n"
    )
    return served(config).agents


def until(chat: Chat, *states: str, turns: int = 0) -> View:
    """Follow a conversation to one of some states, with so many turns seen."""
    end = time.monotonic() + 60
    view = chat.view()
    while time.monotonic() < end and view.state not in ("ended", "failed"):
        seen = len(view.trace.turns) if view.trace else 0
        if view.state in states and seen >= turns:
            return view
        view = chat.view(view.version, 5)
    if view.state in states:
        return view
    raise AssertionError(f"{view}")


def answers(trace: Trace | None) -> list[Any]:
    assert trace is not None
    return [turn.output and turn.output.plain() for turn in trace.turns]


def test_a_conversation_grows_with_each_message_and_ends(
    chats: Chats, agents: dict[str, AgentLike]
) -> None:
    chat = chats.start(1, "desk", agents, ["hello"], user="kim", state={"count": 5})
    assert answers(until(chat, "waiting").trace) == ["6: hello"]
    chat.say("and more")
    view = until(chat, "waiting", turns=2)
    assert answers(view.trace) == ["6: hello", "7: and more"]
    assert (view.messages, view.user, view.again) == (["hello", "and more"], "kim", False)
    chat.end()
    assert chat.view().state == "ended"
    assert answers(chat.view().trace) == ["6: hello", "7: and more"]
    with pytest.raises(InputError, match="start another one"):
        chat.say("still there?")


def grown(chat: Chat) -> Trace:
    """Follow a conversation until there is a run in its last turn, while the agent works."""
    view = chat.view()
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if view.trace is not None and len(view.trace.turns[-1].runs) > 1:
            assert view.state == "working"
            return view.trace
        view = chat.view(view.version, 5)
    raise AssertionError(f"{view}")


@pytest.mark.heavy
def test_what_agents_do_is_seen_while_they_work(
    chats: Chats,
    agents: dict[str, AgentLike],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    chat = chats.start(1, "slow", agents, ["my order"])
    (turn,) = grown(chat).turns
    assert [run.agent for run in turn.runs] == ["triage", "refunds"]
    assert (turn.status, turn.error, turn.output) == ("incomplete", None, None)
    (tmp_path / "go").touch()
    assert answers(until(chat, "waiting").trace) == ["done"]


@pytest.mark.heavy
def test_events_of_a_server_are_seen_as_they_come(chats: Chats) -> None:
    with AdkServer().running() as adk:
        moved = event("Let me see.", actions={"transferToAgent": "refunds"})
        first = sse(moved, event("Looking it up.", "refunds"))
        adk.always("run_sse", stream(first, then="hang"))
        asked = {"type": "adk_http", "endpoint_url": adk.url}
        (turn,) = grown(chats.start(1, "desk", {"desk": asked}, ["my order"])).turns
        assert [run.agent for run in turn.runs] == ["support", "refunds"]
        assert (turn.status, turn.error) == ("incomplete", None)

        two = stream(b'data: {"who": "a"}\n\ndata: {"who": "b"}\n\n', then="hang")
        adk.always("", two)
        paths = {"agents": "$[*].who", "answer": "$[-1].text"}
        asked = spec(f"{adk.url}/ask", stream="sse", **paths)
        (turn,) = grown(chats.start(1, "desk", {"desk": asked}, ["my order"])).turns
        assert [run.agent for run in turn.runs] == ["a", "b"]


def test_earlier_messages_are_said_again_when_one_is_edited(
    chats: Chats, agents: dict[str, AgentLike]
) -> None:
    chat = chats.start(1, "desk", agents, ["one", "two", "other"])
    assert answers(until(chat, "waiting", turns=3).trace) == ["1: one", "2: two", "3: other"]


def test_an_agent_in_its_own_process_is_played_from_the_start(
    chats: Chats, agents: dict[str, AgentLike]
) -> None:
    chat = chats.start(1, "apart", agents, ["one"])
    assert until(chat, "waiting").again
    chat.say("two")
    assert answers(until(chat, "waiting", turns=2).trace) == ["1: one", "2: two"]


@pytest.mark.parametrize(
    ("message", "error"), [("raise", "the function raised ValueError"), ("crash", "exit 7")]
)
def test_what_goes_wrong_is_reported_without_secrets(
    chats: Chats, agents: dict[str, AgentLike], message: str, error: str
) -> None:
    chat = chats.start(1, "desk", agents, ["fine"])
    until(chat, "waiting")
    chat.say(message)
    view = until(chat, "failed")
    assert error in (view.error or "")
    assert "IOSFODNN7" not in (view.error or "")


def test_an_agent_that_hangs_ends_with_what_it_started(
    chats: Chats, agents: dict[str, AgentLike]
) -> None:
    chat = chats.start(1, "desk", agents, ["child"])
    child = int(answers(until(chat, "waiting").trace)[0])
    chat.say("hang")
    started = time.monotonic()
    chat.end()
    assert time.monotonic() - started < 10
    assert not _runs(child)


def _runs(pid: int) -> bool:
    for _ in range(50):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return False
            os.kill(pid, 0)
        except (ProcessLookupError, FileNotFoundError):
            return False
        time.sleep(0.1)
    return True


def test_so_many_conversations_at_once_and_only_known_agents(
    chats: Chats, agents: dict[str, AgentLike]
) -> None:
    with pytest.raises(InputError, match="available: apart, desk"):
        chats.start(1, "os:system", agents, ["hello"])
    with pytest.raises(InputError, match="the message is empty"):
        chats.start(1, "desk", agents, [" "])
    first = chats.start(1, "desk", agents, ["hello"])
    chats.start(1, "desk", agents, ["hello"])
    with pytest.raises(InputError, match="2 conversations are open"):
        chats.start(1, "desk", agents, ["hello"])
    first.end()
    chats.start(1, "desk", agents, ["hello"])
    with pytest.raises(KeyError):
        chats.chat(2, first.id)


def test_a_conversation_that_nobody_uses_is_ended(agents: dict[str, AgentLike]) -> None:
    chats = Chats(idle=0.0)
    chat = chats.start(1, "desk", agents, ["hello"])
    until(chat, "waiting")
    time.sleep(0.01)
    chats.tidy()
    assert chat.view().state == "ended"
    assert answers(chats.chat(1, chat.id).view().trace) == ["1: hello"]


def test_folders_of_agents_are_those_with_an_agent_in_them(tmp_path: Path) -> None:
    for name in ("desk", "home"):
        (tmp_path / "apps" / name).mkdir(parents=True)
        (tmp_path / "apps" / name / "agent.py").touch()
    (tmp_path / "apps" / "notes").mkdir()
    (tmp_path / "apps" / "shared").mkdir()
    (tmp_path / "apps" / "shared" / "__init__.py").write_text("TOOLS = []")
    path = str(tmp_path / "apps" / "desk")
    spec = {"type": "adk_local", "path": path}
    assert served(tmp_path / "apps" / "desk") == Served({"desk": spec}, [path])
    apps = served(tmp_path / "apps")
    assert (set(apps.agents), apps.datasets) == ({"desk", "home"}, [str(tmp_path / "apps")])
    with pytest.raises(InputError, match="contains no agents"):
        served(tmp_path / "apps" / "notes")


def test_the_providers_of_a_config_are_agents_and_its_cases_go_with_them(tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "all.jsonl").write_text('{"id": "a", "input": "x"}\n')
    config = tmp_path / "baton.yaml"
    config.write_text(
        "dataset: cases/all.jsonl\nproviders:\n- {type: mock, agent_id: desk}\n- {type: mock}\n"
    )
    spec = {"config": str(config), "provider": "desk"}
    offered = served(config)
    assert offered.agents == {"desk": spec, "mock": {**spec, "provider": "mock"}}
    assert offered.datasets == [str(tmp_path / "cases")]

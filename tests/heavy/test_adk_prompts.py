"""Texts of `prompts:`, handed over to a real server of Google ADK whose agents ask for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.heavy.playing_again import assert_fixed_by
from tests.heavy.test_adk_stand_ins import RIGHT, asked, handed, output
from tests.ports import free_port
from tests.providers.conftest import Surroundings, make_provider

import baton
from baton.model import Trace

pytestmark = pytest.mark.heavy
ABOUT = "Say whose it is."
"""What the server's environment has the billing agent be told."""


@pytest.fixture(scope="module")
def server(recorder: Any, apps: Path) -> Iterator[str]:
    """A server of one's own, started with a text in its environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BATON_ADK_PLUGIN", "on")
        patch.setenv("BATON_PROMPTS", json.dumps({"agent:billing": ABOUT}))
        program = Path(__file__).parent / "prompted_server.py"
        with recorder.running_server(apps, [str(program)], free_port()) as client:
            yield str(client.base_url)


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    (tmp_path / "desk.md").write_text("Refunds go to billing.\n")
    return tmp_path


def adk(url: str, **options: Any) -> dict[str, Any]:
    where = {"endpoint_url": url, "app_name": "prompted_desk"}
    return {"type": "adk_http", **where, "prompts": {"agent:desk": "desk.md"}, **options}


def play(folder: Path, *plays: tuple[dict[str, Any], dict[str, str]]) -> list[Trace]:
    """Play a refund by each provider with some texts changed, all at once."""

    async def one(spec: dict[str, Any], texts: dict[str, str]) -> Trace:
        async with make_provider(spec, Surroundings(folder, texts=texts)) as provider:
            return await provider(asked())

    async def run() -> list[Trace]:
        return list(await asyncio.gather(*[one(*each) for each in plays]))

    return asyncio.run(run())


@pytest.mark.parametrize("streaming", [False, True])
def test_a_server_takes_changed_texts_from_a_header_for_that_request_alone(
    server: str, desk: Path, streaming: bool
) -> None:
    spec = adk(server, streaming=streaming)
    plays = play(desk, *[(spec, texts) for texts in ({}, RIGHT) * 5])
    assert [handed(trace)[0][1] for trace in plays] == ["billing", "refunds"] * 5


def test_a_server_plays_with_the_texts_of_its_environment(server: str, desk: Path) -> None:
    (trace,) = play(desk, (adk(server), {}))
    assert output(trace) == "Ask refunds."


def test_a_function_tells_a_server_in_its_own_way(server: str, desk: Path) -> None:
    (desk / "teller.py").write_text(
        "import json\n"
        "from urllib.request import ProxyHandler, Request, build_opener\n\n\n"
        "def tell(texts):\n"
        f"    request = Request({server + '/store'!r}, json.dumps(texts).encode(), method='PUT')\n"
        "    request.add_header('Content-Type', 'application/json')\n"
        "    build_opener(ProxyHandler({})).open(request, timeout=60).close()\n"
    )
    spec = adk(server, prompts_to="teller:tell")
    (trace,) = play(desk, (spec, RIGHT))
    assert handed(trace)[0][1] == "refunds"
    (trace,) = play(desk, (spec, {"agent:desk": "Refunds go to billing."}))
    assert handed(trace)[0][1] == "billing"


def test_a_dispatch_of_such_a_server_is_fixed_by_a_text_of_a_file(
    server: str, desk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(desk)
    (recorded,) = play(desk, (adk(server), {}))
    assert_fixed_by(RIGHT, recorded, adk(server), "decision", "refunds")


@pytest.mark.parametrize(
    "more", [{}, {"stateDelta": {"prompts": "{prompts}"}}], ids=["header", "request"]
)
def test_the_provider_http_hands_texts_over_too(
    server: str, desk: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    message = {"role": "user", "parts": [{"text": "{input}"}]}
    where = {"appName": "prompted_desk", "userId": "somebody", "sessionId": "{session_id}"}
    (desk / "cases.yaml").write_text("cases: [{id: refund, input: Refund order 7}]")
    config = {
        "dataset": "cases.yaml",
        "evaluators": [{"type": "contains", "config": {"value": "Paid back 40."}}],
        "providers": [
            {
                "type": "http",
                "url": f"{server}/run",
                "request": {**where, "newMessage": message, **more},
                "answer": "$[-1:].content.parts[0].text",
                "agents": "$[*].author",
                "prompts": {"agent:desk": "desk.md"},
            }
        ],
    }
    (desk / "baton.yaml").write_text(json.dumps(config))
    monkeypatch.chdir(desk)
    for texts, status, agents in (
        ({}, "failed", ["desk", "billing"]),
        (RIGHT, "passed", ["desk", "refunds"]),
    ):
        (result,) = baton.evaluate(config="baton.yaml", texts=texts).results
        assert (result.error, result.status) == (None, status)
        assert result.trace is not None
        assert [run.agent for run in result.trace.turns[0].runs] == agents

"""Baton's plug-in on a real server of Google ADK: stand-ins and changed texts over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.conftest import ROOT
from tests.heavy.playing_again import assert_fixed_by
from tests.heavy.test_adk_stand_ins import (
    ASKING,
    DELEGATE,
    RECORDED,
    REPLAY,
    RIGHT,
    WRONG,
    WRONG_NAMES,
    answered,
    asked,
    calls,
    handed,
    moment,
    output,
    transfer,
)
from tests.providers.conftest import Surroundings, make_provider

import baton
from baton.model import (
    Case,
    Content,
    ExpectedTurn,
    Form,
    InputError,
    ProviderError,
    StandIns,
    Trace,
)
from baton.model.stand_ins import Fault, StandIn

pytestmark = pytest.mark.heavy
Play = Callable[..., list[Trace]]


@pytest.fixture
def paid(apps: Path) -> Callable[[], list[str]]:
    """Tell which payments the server really made since the test started."""
    file = apps / "refund_desk" / "paid"
    file.unlink(missing_ok=True)
    return lambda: file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def play(url: str) -> Play:
    """Play cases side by side against the server."""

    def played(
        *cases: Case,
        texts: dict[str, str] | None = None,
        app: str = "refund_desk_plugged",
        **options: Any,
    ) -> list[Trace]:
        async def run() -> list[Trace]:
            spec = {"type": "adk_http", "endpoint_url": url, "app_name": app, **options}
            async with make_provider(spec, Surroundings(texts=texts or {})) as provider:
                return await asyncio.gather(*[provider(case) for case in cases])

        return asyncio.run(run())

    return played


def test_a_server_that_plays_a_refund_again_a_hundred_times_pays_nothing(
    play: Play, paid: Callable[[], list[str]]
) -> None:
    play(asked(), texts=RIGHT)
    assert paid() == ["7 40"]
    for trace in play(*[asked(REPLAY) for _ in range(100)], texts=RIGHT):
        assert answered(trace) == dict.fromkeys(["look_up", "check", "pay_back"], "replay")
        assert handed(trace) == [("desk", "refunds")]
        assert output(trace) == "Paid back 40."
        assert trace.state == {}
    assert paid() == ["7 40"]


def test_what_nothing_answers_is_refused_on_a_server_too(
    play: Play, paid: Callable[[], list[str]]
) -> None:
    ins = StandIns(mode="replay", recorded=RECORDED[:2])
    with pytest.raises(
        ProviderError, match="`pay_back` was not run: the recording does not contain a call"
    ):
        play(asked(ins), texts=RIGHT)
    assert paid() == []


@pytest.mark.parametrize(("ins", "says"), WRONG_NAMES)
def test_a_stand_in_for_another_name_lets_nothing_run_on_a_server(
    play: Play, paid: Callable[[], list[str]], ins: StandIns, says: str
) -> None:
    with pytest.raises(ProviderError, match=says):
        play(asked(ins), texts=RIGHT)
    assert paid() == []


def test_messages_without_stand_ins_pass_the_plug_in(
    play: Play, paid: Callable[[], list[str]]
) -> None:
    (trace,) = play(asked())
    assert handed(trace) == [("desk", "billing")]
    assert answered(trace) == {"look_up": None}
    assert paid() == []


@pytest.mark.parametrize("streaming", [False, True])
def test_a_session_continues_with_its_state_and_its_stand_ins(play: Play, streaming: bool) -> None:
    fault = StandIn(mode="replay", faults=[Fault(kind="error", text="closed", call=2)])
    ins = StandIns(mode="replay", recorded=RECORDED, tools={"pay_back": fault})
    turns = [ExpectedTurn(input=Content(text=text)) for text in ("Refund order 7", "order 7 again")]
    case = Case(id="c", turns=turns, stand_ins=ins, state={"tier": "gold"})
    (trace,) = play(case, texts=RIGHT, streaming=streaming)
    assert [turn.output for turn in trace.turns] == [
        Content(text="Paid back 40."),
        Content(text="Not paid: closed"),
    ]
    assert trace.state == {"tier": "gold"}
    assert [call.stand_in for call in calls(trace) if call.name == "pay_back"] == [
        "replay",
        "fault: error",
    ]


@pytest.mark.parametrize(
    ("texts", "to"), [({}, "billing"), (RIGHT, "refunds"), (ASKING, "refund_expert")]
)
def test_the_sender_chooses_again_on_a_server(
    play: Play, paid: Callable[[], list[str]], texts: dict[str, str], to: str
) -> None:
    (trace,) = play(moment("decision", transfer("billing")), texts=texts)
    assert handed(trace) == [("desk", to)]
    assert paid() == []


def test_the_receiver_and_the_sender_play_their_parts_on_a_server(
    play: Play, paid: Callable[[], list[str]]
) -> None:
    cases = [
        moment(form, call)
        for form in ("child", "integration")
        for call in (transfer("refunds"), DELEGATE)
    ]
    assert [output(trace) for trace in play(*cases)] == [
        "Paid back 40.",
        "Paid back 40.",
        "Your refund is done.",
        "The expert says: paid 40",
    ]
    assert paid() == []


@pytest.mark.parametrize(("agent", "form", "texts", "right"), WRONG)
def test_a_wrong_dispatch_of_a_server_is_wrong_again_and_right_with_a_changed_text(
    url: str,
    play: Play,
    paid: Callable[[], list[str]],
    agent: str,
    form: Form,
    texts: dict[str, str],
    right: str,
) -> None:
    app = f"{agent}_plugged"
    (recorded,) = play(asked(), app=app)
    assert output(recorded) == "We looked into it."
    spec = {"type": "adk_http", "endpoint_url": url, "app_name": app}
    assert_fixed_by(texts, recorded, spec, form, right)
    assert paid() == []


def test_the_example_plays_its_cases(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_URL", url)
    played = baton.evaluate(config=ROOT / "examples" / "adk" / "plugged.yaml")
    refund, policy, chooses = [result.trace for result in played.results]
    assert [result.status for result in played.results] == ["passed"] * 3
    assert refund is not None
    assert policy is not None
    assert chooses is not None
    assert answered(refund) == {"lookup_order": "fixture", "issue_refund": "mock"}
    assert policy.turns[0].dispatches[-1].stand_in == "fixture"
    assert handed(chooses) == [("support_router", "billing_agent")]


def test_a_plug_in_is_off_until_the_server_says_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from google.genai import types

    from baton.adk import Plugin

    call = types.FunctionCall(name="baton_play", args={"format": 1, "do": "texts"})
    order = types.Content(role="user", parts=[types.Part(function_call=call)])

    async def asked_of(plugin: Any, context: Any) -> Any:
        await plugin.on_user_message_callback(invocation_context=context, user_message=order)
        said = await plugin.before_run_callback(invocation_context=context)
        return said.parts[0].function_response.response

    for value in ("", "true", "off"):
        monkeypatch.setenv("BATON_ADK_PLUGIN", value)
        reply = asyncio.run(asked_of(Plugin(), SimpleNamespace(invocation_id="i")))
        assert "is off on this server" in reply["problem"]


@pytest.mark.parametrize(
    ("app", "says"),
    [
        ("refund_desk", "the server has no plug-in of Baton, so nothing was played"),
        ("report_pipeline", "the server has no plug-in of Baton, so nothing was played"),
        ("refund_desk_off", "start it with BATON_ADK_PLUGIN=on"),
    ],
)
@pytest.mark.parametrize("case", [asked(REPLAY), moment("child", DELEGATE)])
def test_a_server_that_cannot_stand_in_runs_nothing(
    play: Play, paid: Callable[[], list[str]], app: str, says: str, case: Case
) -> None:
    with pytest.raises(ProviderError, match=says) as raised:
        play(case, app=app)
    assert raised.value.trace is None
    with pytest.raises(ProviderError, match=says):
        play(asked(), app=app, texts=RIGHT)
    assert paid() == []


def test_no_key_of_baton_is_in_a_session_or_its_events(client: Any, play: Play, url: str) -> None:
    del url
    case = asked(REPLAY)
    case.session.id = "kept-by-baton"
    play(case, texts=RIGHT, keep_sessions=True)
    path = "/apps/refund_desk_plugged/users/eval_user/sessions/kept-by-baton"
    status, body = client.call(path)
    assert status == 200
    session = json.loads(body)
    assert session["state"] == {}
    assert not any(
        part.get("functionCall")
        for event in session["events"]
        for part in event["content"]["parts"]
    )


def test_the_texts_of_a_server_are_asked_for_and_a_misspelt_name_is_an_error(
    url: str, play: Play
) -> None:
    async def told() -> tuple[dict[str, str], set[str]]:
        spec = {"type": "adk_http", "endpoint_url": url, "app_name": "refund_desk_plugged"}
        async with make_provider(spec) as provider:
            return await provider.components(), await provider.tools()

    texts, tools = asyncio.run(told())
    assert texts["agent:desk"] == "Refunds go to billing."
    assert tools == {"look_up", "check", "pay_back"}
    with pytest.raises((InputError, ProviderError), match="did you mean `agent:desk`"):
        play(asked(REPLAY), texts={"agent:dsek": "Be kind."})

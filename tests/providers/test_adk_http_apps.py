"""Which app a case talks to, as whom, and in which words."""

from __future__ import annotations

import pytest
from tests.providers.conftest import AdkServer, case_of, event, play, refused, said, sse, stream


def app_of(adk: AdkServer) -> str:
    """Return the app that the session and the message went to."""
    (run,) = adk.asked("run_sse")
    (created,) = adk.asked("create")
    app: str = run.body["appName"]
    assert created.path.startswith(f"/apps/{app}/users/")
    return app


@pytest.mark.parametrize(
    ("apps", "of_case", "options", "chosen"),
    [
        (["support"], None, {}, "support"),
        (["support"], "elsewhere", {}, "support"),
        (["a", "b"], "b", {}, "b"),
        (["a", "b"], "b", {"app_name": "a"}, "b"),
        (["a", "b"], "b", {"agent_id": "a"}, "b"),
        (["a", "b"], None, {"app_name": "a", "agent_id": "b"}, "a"),
        (["a", "b"], None, {"agent_id": "b"}, "b"),
        (["a", "b"], "elsewhere", {"app_name": "b"}, "b"),
        (["a"], None, {"agent_id": "a name for the report"}, "a"),
    ],
)
def test_the_app_is_the_cases_then_the_configs_then_the_only_one(
    adk: AdkServer, apps: list[str], of_case: str | None, options: dict[str, str], chosen: str
) -> None:
    adk.apps = apps
    play(adk, case_of(app=of_case), **options)
    assert app_of(adk) == chosen


@pytest.mark.parametrize(
    ("apps", "of_case", "options", "reason"),
    [
        (["a", "b"], None, {}, "none is stated: set `app_name` (or `--app`) to one of them: a, b"),
        (["a", "b"], "c", {}, "2 apps and none of them is `c`: set `app_name` (or `--app`) to one"),
        ([], None, {}, "the server has no apps"),
        (["support", "sales"], None, {"app_name": "suport"}, "no app `suport`; did you mean"),
        (["support"], None, {"app_name": "suport"}, "no app `suport`; did you mean `support`?"),
        (["support"], "elsewhere", {"app_name": "suport"}, "no app `suport`; did you mean"),
    ],
)
def test_an_app_that_cannot_be_determined_is_an_error(
    adk: AdkServer, apps: list[str], of_case: str | None, options: dict[str, str], reason: str
) -> None:
    adk.apps = apps
    assert reason in str(refused(adk, case_of(app=of_case), **options))
    assert not adk.asked("create")


def test_a_server_that_does_not_list_its_apps_gets_the_stated_app(adk: AdkServer) -> None:
    adk.missing = {"list-apps"}
    assert "the server does not list its apps: state `app_name` (or `--app`)" in str(refused(adk))
    play(adk, app_name="desk")
    assert app_of(adk) == "desk"


@pytest.mark.parametrize(
    ("of_case", "options", "user"),
    [
        (None, {}, "eval_user"),
        (None, {"user_id": "anna"}, "anna"),
        ("bert", {"user_id": "anna"}, "bert"),
        ("a/b c@d", {}, "a/b c@d"),
    ],
)
def test_the_user_is_the_cases_then_the_configs(
    adk: AdkServer, of_case: str | None, options: dict[str, str], user: str
) -> None:
    play(adk, case_of(user=of_case), **options)
    (run,) = adk.asked("run_sse")
    assert run.body["userId"] == user
    assert adk.routes()[-1] == "delete"
    assert not adk.sessions


def test_a_message_is_sent_as_the_users_text(adk: AdkServer) -> None:
    play(adk, case_of("Grüße, 世界"))
    (run,) = adk.asked("run_sse")
    assert run.body["newMessage"] == {"role": "user", "parts": [{"text": "Grüße, 世界"}]}
    assert run.body["streaming"] is False


def test_chunks_are_asked_for_if_configured_and_read_once(adk: AdkServer) -> None:
    chunks = [event("Hel", partial=True), event("lo", partial=True), event("Hello")]
    adk.always("run_sse", stream(sse(*chunks)))
    assert said(play(adk, streaming=True)) == ["Hello"]
    assert adk.asked("run_sse")[0].body["streaming"] is True

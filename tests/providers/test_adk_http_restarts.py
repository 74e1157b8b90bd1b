"""Restarts of a server of ADK: when the command runs, and what sessions see of it."""

from __future__ import annotations

from pathlib import Path

from tests.providers.conftest import AdkServer, case_of, play, refused, reply

from baton.model import Case


def restarting(*numbers: int) -> Case:
    case = case_of("one", "two", "three")
    for number in numbers:
        case.turns[number].restart = True
    return case


def test_the_command_runs_between_two_turns_of_one_session(adk: AdkServer) -> None:
    trace = play(adk, restarting(1), restart="true")
    assert len(trace.turns) == 3
    assert {run.session for run in adk.asked("run_sse")} == {trace.id}
    routes = adk.routes()
    first = routes.index("run_sse")
    assert routes[first + 1 : first + 3] == ["list-apps", "run_sse"]


def test_a_restart_comes_before_the_session_that_it_opens(adk: AdkServer) -> None:
    case = restarting(0, 2)
    case.turns[2].new_session = True
    play(adk, case, restart="true")
    assert [route for route in adk.routes() if route != "app-info"] == [
        *("list-apps", "list-apps", "create", "run_sse", "run_sse", "state"),
        *("list-apps", "create", "run_sse", "state"),
        *("delete", "delete"),
    ]


def test_connections_are_closed_for_the_restart(adk: AdkServer) -> None:
    play(adk, restarting(1, 2), restart="true")
    plain = adk.connections
    play(adk, case_of("one", "two", "three"))
    assert plain > adk.connections - plain


def test_a_session_that_is_gone_after_the_restart_is_reported_with_the_likely_cause(
    adk: AdkServer,
) -> None:
    adk.script("run_sse", None, reply({"detail": "Session not found: s"}, 404))
    error = refused(adk, restarting(1), restart="true")
    assert "answered 404: Session not found: s; the server was restarted: did it" in str(error)


def test_what_is_missing_for_another_reason_is_not_put_down_to_a_restart(
    adk: AdkServer,
) -> None:
    adk.script("run_sse", reply({"detail": "Session not found: s"}, 404))
    assert "restarted" not in str(refused(adk, restarting(1), restart="true"))


def test_a_gateway_that_says_the_server_is_away_is_waited_out(adk: AdkServer) -> None:
    adk.script("list-apps", None, reply(b"", 502), reply(b"", 503))
    assert len(play(adk, restarting(1), restart="true").turns) == 3
    assert len(adk.asked("list-apps")) == 4


def test_a_gateway_that_says_so_for_too_long_is_an_error_of_the_turn(adk: AdkServer) -> None:
    adk.script("list-apps", None)
    adk.always("list-apps", reply(b"", 503))
    error = refused(adk, restarting(1), restart="true", restart_timeout=0.4)
    assert str(error) == (
        "turn 2: the server did not come back within 0.4 s (`restart_timeout`) of the restart: "
        f"GET {adk.url}/list-apps answered 503"
    )
    assert error.trace is not None
    assert len(error.trace.turns) == 1
    assert not adk.sessions


def test_the_command_runs_in_the_folder_it_is_told(adk: AdkServer, tmp_path: Path) -> None:
    play(adk, restarting(1), restart=f"pwd > {tmp_path}/where")
    assert (tmp_path / "where").read_text().strip() == str(Path.cwd())


def test_a_restart_without_a_command_is_an_error(adk: AdkServer) -> None:
    assert str(refused(adk, restarting(1))).startswith("turn 2: no option says how to restart")
    assert not adk.asked("create")

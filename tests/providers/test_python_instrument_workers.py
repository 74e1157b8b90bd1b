"""`python` with `instrument`: a process for each case in play, which nobody outlives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import baton
from baton.model import Case, CaseResult, InputError
from baton.model.views import agent_chain
from baton.testing.build import case

pytestmark = pytest.mark.heavy

PROGRAMS = Path(__file__).parent.parent / "data" / "programs"
Play = Callable[..., list[CaseResult]]


@pytest.fixture
def play() -> Play:
    def run(function: str, *cases: Case, **options: Any) -> list[CaseResult]:
        spec = {"type": "python", "target": f"{PROGRAMS}/{function}", "instrument": True}
        return list(baton.evaluate(cases or [case(id="a")], spec, ["agent_chain"], **options))

    return run


def answer(result: CaseResult) -> str:
    assert result.error is None, result.error
    assert result.trace is not None
    output = result.trace.turns[0].output
    assert output is not None
    return output.plain()


def is_gone(pid: int) -> bool:
    """Wait a little for the end of a process; what is only left to be waited for has ended."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
            os.kill(pid, 0)
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.02)
    return False


def written(file: Path) -> str:
    """Wait for a file to be written."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if file.exists() and (text := file.read_text()):
            return text
        time.sleep(0.02)
    raise AssertionError(f"{file} was not written")


def test_workers_are_processes_that_are_used_again_and_end_at_the_end(play: Play) -> None:
    results = play("desk.py:process", *[case(id=f"c{n}") for n in range(12)], concurrency=2)
    pids = {int(answer(result)) for result in results}
    assert os.getpid() not in pids
    assert 1 <= len(pids) <= 2
    assert all(is_gone(pid) for pid in pids)


@pytest.mark.parametrize(
    ("message", "how"),
    [("exit", "ended with exit code 3"), ("kill", "was ended by signal 9 (SIGKILL)")],
)
def test_a_worker_that_dies_is_the_error_of_its_case_and_is_replaced(
    play: Play, message: str, how: str
) -> None:
    first, dead, last = play(
        "bad.py:reply", case(id="a"), case(message, id="b"), case(id="c"), concurrency=1
    )
    assert f"the worker process {how}" in (dead.error or "")
    assert "while it played the case" in (dead.error or "")
    assert ("no more paper" in (dead.error or "")) == (message == "exit")
    assert answer(first) != answer(last)


def test_a_worker_that_leaves_a_child_behind_is_seen_to_have_ended(play: Play) -> None:
    (result,) = play("bad.py:forks", timeout=20)
    assert "the worker process ended with exit code 5" in (result.error or "")


def test_a_program_that_has_done_its_work_ends_as_it_likes(play: Play, tmp_path: Path) -> None:
    (result,) = play("own_provider.py:notes_its_end", case(str(tmp_path / "end"), id="a"))
    assert answer(result) == "ok"
    assert (tmp_path / "end").read_text() == "ended"


def test_a_program_cannot_hold_up_the_end_nor_get_between_the_pipes(play: Play) -> None:
    (result,) = play("bad.py:stays")
    assert answer(result) == "read ''"


def test_leaving_the_interpreter_is_an_error_as_any_other(play: Play) -> None:
    left, after = play("bad.py:reply", case("leave", id="a"), case(id="b"), concurrency=1)
    assert "the function raised SystemExit: closed" in (left.error or "")
    assert answer(after)


@pytest.mark.parametrize("function", ["reply", "blocks"])
def test_a_program_that_hangs_is_ended_and_what_was_seen_is_kept(play: Play, function: str) -> None:
    hung, fine = play(
        f"bad.py:{function}", case("hang", id="a"), case(id="b"), concurrency=1, timeout=2
    )
    assert hung.error == "the case did not end within 2 s (`timeout`)"
    assert hung.trace is not None
    assert agent_chain(hung.trace, hung.trace.turns[0]) == ["front"]
    assert hung.trace.turns[0].status == "incomplete"
    assert answer(fine)


def test_a_program_that_is_broken_off_may_clean_up(play: Play, tmp_path: Path) -> None:
    (result,) = play("bad.py:cleans_up", case(str(tmp_path / "x"), id="a"), timeout=1)
    assert "did not end within" in (result.error or "")
    assert (tmp_path / "x").read_text() == "clean"


def test_loading_a_program_has_no_part_in_the_time_for_a_case(tmp_path: Path) -> None:
    code = "import time\ntime.sleep(6)\ndef reply(message): return 'ok'\n"
    (tmp_path / "program.py").write_text(code)
    spec = {"type": "python", "target": f"{tmp_path}/program.py:reply", "instrument": True}
    cases = [case(id=f"c{number}") for number in range(3)]
    results = baton.evaluate(cases, spec, ["agent_chain"], concurrency=3, timeout=5)
    assert [answer(result) for result in results] == ["ok"] * 3
    assert all((result.timings or {})["seconds"] < 5 for result in results)


def test_what_a_broken_off_program_started_ends_with_it(play: Play, tmp_path: Path) -> None:
    file = tmp_path / "pids"
    play("bad.py:starts_another", case(str(file), id="a"), timeout=3)
    assert all(is_gone(int(pid)) for pid in file.read_text().split())


def test_what_a_program_prints_goes_to_standard_error(
    play: Play, capsys: pytest.CaptureFixture[str]
) -> None:
    (result,) = play("bad.py:prints", case("this", id="a"))
    assert answer(result) == "ok"
    until = time.monotonic() + 60
    err = ""
    while "printed this" not in err and time.monotonic() < until:
        printed = capsys.readouterr()
        assert not printed.out
        err += printed.err
    assert "printed this" in err


def test_a_case_that_no_pipe_can_carry_is_its_own_error(play: Play) -> None:
    odd, fine = case(id="a"), case(id="b")
    odd.state = {"value": object()}
    first, second = play("desk.py:reply", odd, fine)
    assert "the case cannot be sent to a process" in (first.error or "")
    assert answer(second) == "Hello."


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import nonsense_", "raised ModuleNotFoundError: No module named 'nonsense_'"),
        ("def reply(: pass", "raised SyntaxError"),
        ("x = 1", "has no `reply`"),
        ("import os; os._exit(7)", "ended with exit code 7"),
    ],
)
def test_a_program_that_cannot_be_loaded_is_reported_before_any_case(
    tmp_path: Path, code: str, said: str
) -> None:
    (tmp_path / "program.py").write_text(code)
    spec = {"type": "python", "target": f"{tmp_path}/program.py:reply", "instrument": True}
    with pytest.raises(InputError) as raised:
        baton.evaluate([case(id="a")], spec)
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (signal.SIGINT, 130),
        pytest.param(signal.SIGTERM, 143, marks=pytest.mark.heavy),
        (signal.SIGKILL, -9),
    ],
)
def test_nothing_outlives_an_evaluation_that_is_broken_off(
    tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    file = tmp_path / "pids"
    (tmp_path / "cases.yaml").write_text(f"cases:\n- id: a\n  turns:\n  - input: {file}\n")
    (tmp_path / "baton.yaml").write_text(
        "dataset: cases.yaml\n"
        "providers:\n"
        f"- {{type: python, target: '{PROGRAMS}/bad.py:starts_another', instrument: true}}\n"
    )
    with subprocess.Popen(
        [sys.executable, "-m", "baton", "eval", "baton.yaml"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as baton_:
        try:
            pids = [int(pid) for pid in written(file).split()]
            baton_.send_signal(sent)
            _, err = baton_.communicate(timeout=60)
        finally:
            baton_.kill()
    assert baton_.returncode == code, err
    assert all(is_gone(pid) for pid in pids)

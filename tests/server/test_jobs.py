"""Evaluations that a server is asked for: what may be asked, what comes back, and what a kill leaves."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import msgspec
import pytest
from sqlalchemy import select, update
from tests.conftest import Baton

import baton
from baton.cli.options import SHORT, Reports
from baton.cli.submit import show_job
from baton.config.dialects.adk import sent_criteria
from baton.formats.evaluation_header import read_header
from baton.model import InputError
from baton.reports.json import EXIT_CODES
from baton.server.jobs import Jobs, add_folder, again, folder_of, job_of, jobs_of, stop, submit
from baton.server.schema import job
from baton.server.settings import Settings
from baton.server.store import Store
from baton.session.agent_under_test import served
from baton.session.server_client import connect
from baton.session.server_rows import EvaluationJob
from baton.store import read_evaluation

from .conftest import Opening
from .postgres import Postgres
from .serving import api

DESK = """
def answer(message):
    return "Refund R-1 is on its way." if "refund" in message else "Hello."
"""
CASES = """
cases:
  - {id: refund, input: "refund order 42", response_contains: R-1}
  - {id: late, input: "it is late", response_contains: sorry}
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings with one agent."""
    (tmp_path / "desk.py").write_text(DESK)
    agent = {"type": "python", "target": f"{tmp_path}/desk.py:answer"}
    return Settings(folder=str(tmp_path / "server"), agents={"support": agent})


@pytest.fixture
def address(store: Store, settings: Settings) -> Iterator[str]:
    """A server that takes requests, and no worker."""
    with api(store, live_settings=lambda: settings) as url:
        yield url


def asked(store: Store, settings: Settings, **request: Any) -> EvaluationJob:
    """Ask for an evaluation, run it, and return its outcome."""
    made = submit(store, 1, "ann", msgspec.json.encode(request), settings)
    jobs = Jobs(store, settings)
    until = time.monotonic() + 60
    while (now := job_of(store, 1, made.id)).state in ("waiting", "running"):
        assert time.monotonic() < until
        jobs.work(time.time())
        time.sleep(0.05)
    return now


def cases(text: str = CASES) -> list[dict[str, str]]:
    """Return a dataset as a request brings it."""
    return [{"name": "cases.yaml", "content": text}]


def test_an_agent_of_the_settings_plays_cases(store: Store, settings: Settings) -> None:
    done = asked(store, settings, agent="support", dataset=cases())
    assert (done.state, done.status, done.exit_code) == ("done", "failed", 1), done.error
    with store.read() as connection:
        folder = connection.scalar(select(job.c.folder).where(job.c.project == 1))
    rows = {row.case_id: row.status for row in read_evaluation(Path(str(folder))).rows()}
    assert rows == {"refund": "passed", "late": "failed"}


@pytest.mark.heavy
def test_chosen_cases_of_a_folder_are_played_by_a_provider_of_a_config(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "cases").mkdir()
    file = tmp_path / "cases" / "desk.yaml"
    file.write_text(CASES.replace("response_contains: sorry", "response: 'Hello there, Kim.'"))
    config = tmp_path / "baton.yaml"
    config.write_text("providers: [{type: python, target: 'desk:answer', agent_id: desk}]\n")
    settings.datasets = [str(tmp_path / "cases")]
    settings.agents = served(config).agents
    # It would be refused: that of the server is not asked where a config may have its own.
    settings.judges = {"default": {"modle": "of the server"}}
    request = {"agent": "desk", "datasets": ["cases/desk.yaml"], "cases": ["late"]}
    chosen = {"evaluators": ["response_match"], "thresholds": {"response_match": 0.2}}
    done = asked(store, settings, **request, **chosen, concurrency=1, retry_errors=0)
    assert (done.state, done.status) == ("done", "passed"), done.error
    header = read_evaluation(folder_of(store, 1, done.id)).header
    assert header.dataset == [f"{file}:late"]
    assert asked(store, settings, **request).status == "failed"
    for wrong, message in (
        ({"datasets": ["cases/../desk.yaml"]}, "there is no dataset"),
        ({"judge": "nobody"}, "there is no judge `nobody`"),
        ({"thresholds": {"agent_chain": 0.5}}, "`agent_chain` is not among"),
        ({"agent": None, "conversations": "*"}, "can only be used with `agent`"),
    ):
        with pytest.raises(InputError, match=message):
            submit(store, 1, "ann", msgspec.json.encode({**request, **wrong}), settings)


def test_recordings_are_scored_as_here(
    baton_: Baton, store: Store, settings: Settings, address: str, recordings: Path, tmp_path: Path
) -> None:
    run = recordings / "support_desk" / "refund.sse"
    server = connect(address)
    made = server.submit(recordings=[run], evaluators=["dispatch_completed"])
    jobs = Jobs(store, settings)
    while (now := server.evaluation(made.id)).state in ("waiting", "running"):
        jobs.work(time.time())
    here = baton.score([run], evaluators=["dispatch_completed"])
    assert (now.status, now.exit_code) == (here.status, EXIT_CODES[here.status]), now.error
    fetched = baton_("report", "--server", address, str(made.id))
    assert fetched.code == now.exit_code
    assert "dispatch_completed" in fetched.out
    assert len(list((tmp_path / ".baton" / "evaluations").iterdir())) == 1


@pytest.fixture
def baton_(baton: Baton) -> Baton:
    """The command line, beside the package of the same name."""
    return baton


@pytest.mark.heavy
def test_conversations_of_the_server_are_scored(
    store: Store, settings: Settings, recordings: Path
) -> None:
    none = asked(store, settings, conversations="service:nobody")
    assert (none.state, none.exit_code) == ("failed", 2)
    assert none.error is not None
    assert "no conversation meets `service:nobody`" in none.error


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({}, "give one of `agent`, `recordings` and `conversations`"),
        ({"agent": "suport", "dataset": []}, "server.yaml has no agent `suport`; it has: support"),
        ({"agent": "support"}, "an agent needs cases"),
        ({"conversations": "too:x"}, "too"),
        ({"conversations": "*", "evaluators": ["own.py:Mine"]}, "not the name of an evaluator"),
        ({"conversations": "*", "evaluators": ["agent_chian"]}, "agent_chain"),
        ({"conversations": "*", "gate": ["nonsense"]}, "nonsense"),
        ({"agent": "support", "target": "os:system"}, "target"),
        (
            {"agent": "support", "dataset": [{"name": "x.yaml", "content": ""}] * 2},
            "2 files are called `x.yaml`",
        ),
        (
            {"agent": "support", "dataset": [{"name": "../x.yaml", "content": ""}]},
            "the name of a recording is a file name",
        ),
    ],
)
def test_what_cannot_be_evaluated_is_refused_at_once(
    store: Store, settings: Settings, request_: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace("*", r"\*")):
        submit(store, 1, "ann", msgspec.json.encode(request_), settings)


@pytest.mark.heavy
def test_cases_name_no_code(store: Store, settings: Settings, tmp_path: Path) -> None:
    criteria = '{"criteria": {"own": 1}, "custom_metrics": {"own": {"code_config": {"name": "os.system"}}}}'
    evalset = '{"eval_set_id": "s", "eval_cases": []}'
    files = [
        {"name": "test_config.json", "content": criteria},
        {"name": "s.evalset.json", "content": evalset},
    ]
    done = asked(store, settings, agent="support", dataset=files)
    assert done.state == "failed"
    assert done.exit_code == 2


@pytest.mark.heavy
def test_what_a_killed_server_had_begun_starts_again(store: Store, settings: Settings) -> None:
    body = msgspec.json.encode({"agent": "support", "dataset": cases()})
    made = submit(store, 1, "ann", body, settings)
    with store.write() as connection:
        begun = update(job).where(job.c.project == 1).values(state="running", attempts=1)
        connection.execute(begun)
    jobs = Jobs(store, settings)
    while job_of(store, 1, made.id).state in ("waiting", "running"):
        jobs.work(time.time())
    assert job_of(store, 1, made.id).status == "failed"


def starts(store: Store) -> int:
    """Return how often the only evaluation was started."""
    with store.read() as connection:
        return int(
            connection.execute(select(job.c.attempts).where(job.c.project == 1)).scalar_one()
        )


@pytest.mark.heavy
def test_another_worker_starts_again_what_a_killed_one_had_begun(
    postgres: Postgres, opening: Opening, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "desk.py").write_text("import time\ndef answer(message):\n    time.sleep(600)\n")
    settings.db = postgres.database()
    store = opening(settings.db)
    body = msgspec.json.encode({"agent": "support", "dataset": cases()})
    made = submit(store, 1, "ann", body, settings)
    lost, other = Jobs(store, settings), Jobs(store, settings)
    now = time.time()
    with ExitStack() as ending:
        ending.callback(lost.stop)
        lost.work(now)
        lost.work(now + 200)  # it is renewed
        other.work(now + 400)
        assert starts(store) == 1
        (tmp_path / "desk.py").write_text(DESK)
        other.work(now + 600)
        assert starts(store) == 2
        # The first one was only slow: it ends what is no longer its own, and changes nothing.
        until = time.monotonic() + 60
        while not lost.work(now + 600):
            assert time.monotonic() < until
            time.sleep(0.05)
        while job_of(store, 1, made.id).state == "running":
            assert time.monotonic() < until
            other.work(now + 600)
            time.sleep(0.05)
    done = job_of(store, 1, made.id)
    assert (done.state, done.status, done.results) == ("done", "failed", 2), done.error
    assert read_evaluation(folder_of(store, 1, done.id)).header.status == "failed"


def test_one_that_ends_the_server_each_time_is_given_up(store: Store, settings: Settings) -> None:
    body = msgspec.json.encode({"agent": "support", "dataset": cases()})
    made = submit(store, 1, "ann", body, settings)
    with store.write() as connection:
        connection.execute(update(job).where(job.c.project == 1).values(attempts=3))
    Jobs(store, settings).work(time.time())
    given_up = job_of(store, 1, made.id)
    assert (given_up.state, given_up.exit_code) == ("failed", 3)


@pytest.mark.heavy
def test_an_agent_that_crashes_its_process_is_an_error(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "desk.py").write_text("import os\ndef answer(message):\n    os._exit(9)\n")
    done = asked(store, settings, agent="support", dataset=cases())
    assert (done.state, done.exit_code) == ("failed", 3)
    assert done.error == "the evaluation ended with 9 and no result"
    stored = read_evaluation(folder_of(store, 1, done.id), partial=True)
    assert stored.header.status == "interrupted"


@pytest.mark.heavy
def test_stopping_ends_what_runs_and_keeps_the_request(
    store: Store, settings: Settings, tmp_path: Path
) -> None:
    (tmp_path / "desk.py").write_text("import time\ndef answer(message):\n    time.sleep(60)\n")
    body = msgspec.json.encode({"agent": "support", "dataset": cases()})
    made = submit(store, 1, "ann", body, settings)
    jobs = Jobs(store, settings)
    jobs.work(time.time())
    assert job_of(store, 1, made.id).state == "running"
    jobs.stop()
    assert job_of(store, 1, made.id).state == "waiting"


def test_results_are_there_while_it_runs_and_stay_when_it_is_stopped(
    store: Store, settings: Settings, address: str, tmp_path: Path
) -> None:
    slow = DESK.replace(
        "    return", "    import time; time.sleep(60 * ('late' in message))\n    return"
    )
    (tmp_path / "desk.py").write_text(slow)
    body = msgspec.json.encode({"agent": "support", "dataset": cases()})
    made = submit(store, 1, "ann", body, settings)
    jobs = Jobs(store, settings)
    until = time.monotonic() + 60
    while not (now := job_of(store, 1, made.id)).results:
        assert time.monotonic() < until
        jobs.work(time.time())
        time.sleep(0.05)
    assert (now.state, now.name, now.results, now.planned) == ("running", "support", 1, 2)
    assert now.cases["passed"] == 1
    case = httpx2.get(f"{address}/api/v1/evaluations/{made.id}/cases/0").json()["items"]
    assert case[0]["status"] == "passed"
    folder = f"{address}/api/v1/evaluations/{made.id}/folder"
    assert httpx2.get(folder).status_code == 404  # it still grows
    stopped = httpx2.post(f"{address}/api/v1/evaluations/{made.id}/stop", json={}).json()
    assert (stopped["state"], stopped["exit_code"]) == ("failed", 3)
    assert stopped["error"].startswith("stopped by ")
    while not jobs.work(time.time()):
        assert time.monotonic() < until
        time.sleep(0.05)
    after = job_of(store, 1, made.id)
    assert (after.state, after.error, after.results) == ("failed", stopped["error"], 1)
    assert read_header(folder_of(store, 1, made.id)).status == "interrupted"
    assert httpx2.get(folder).status_code == 200
    assert stop(store, 1, made.id, "bob").error == stopped["error"]


def test_asking_twice_at_once_is_one_evaluation(store: Store, settings: Settings) -> None:
    body = msgspec.json.encode({"agent": "support", "dataset": cases()})
    first = submit(store, 1, "ann", body, settings, once=True)
    assert submit(store, 1, "ann", body, settings, once=True).id == first.id
    assert again(store, 1, first.id, "bob", settings).id == first.id
    assert submit(store, 1, "ann", body, settings).id != first.id, "whoever wants two gets two"
    for each in jobs_of(store, 1):
        stop(store, 1, each.id, "ann")
    later = again(store, 1, first.id, "bob", settings)
    assert (later.state, later.by) == ("waiting", "bob")
    with pytest.raises(KeyError):
        again(store, 1, 99, "bob", settings)


def test_folders_of_the_command_line_are_listed_beside_them(
    store: Store, settings: Settings, recordings: Path, tmp_path: Path
) -> None:
    scored = baton.score(
        [recordings / "support_desk" / "refund.sse"], evaluators=["dispatch_scope"]
    )
    number = add_folder(store, 1, scored.save(tmp_path / "scored"), "ann")
    (listed,) = jobs_of(store, 1)
    assert (listed.id, listed.state, listed.status) == (number, "done", scored.status)
    assert listed.results == 1
    with pytest.raises(InputError, match="was not made by this server"):
        again(store, 1, number, "ann", settings)
    with pytest.raises(InputError, match="no evaluation"):
        add_folder(store, 1, tmp_path, "ann")


def test_submit_of_the_command_line_prints_the_number(
    baton_: Baton, address: str, tmp_path: Path
) -> None:
    (tmp_path / "cases.yaml").write_text(CASES)
    done = baton_("submit", "cases.yaml", "--agent", "support", "--server", address)
    assert (done.code, done.out) == (0, "1\n"), done.err
    wrong = baton_("submit", "cases.yaml", "--agent", "nobody", "--server", address)
    assert wrong.code == 2
    assert "server.yaml has no agent `nobody`" in wrong.err
    assert baton_("submit", "gone.yaml", "--server", address).code == 2


def test_a_summary_on_github_links_to_the_cases_that_failed(
    baton_: Baton,
    store: Store,
    settings: Settings,
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    done = asked(store, settings, agent="support", dataset=cases())
    server = connect(address)
    job_ = server.evaluation(done.id)
    assert show_job(server, job_, SHORT, Reports(github=True)) == 1
    # The copy that was fetched is gone: its path would help nobody.
    assert f"failed   evaluation {done.id} of {address}\n" in capsys.readouterr().out
    link = re.search(r"- \[`late`\]\((\S+)\): failed", summary.read_text())
    assert link is not None
    assert "[`refund`]" not in summary.read_text()
    assert link[1] == f"{address}/evaluations/{done.id}/cases/1"
    here = link[1].replace("/evaluations/", "/api/v1/evaluations/")
    (result,) = httpx2.get(here).json()["items"]
    assert (result["case_id"], result["status"]) == ("late", "failed")
    assert httpx2.get(here + "9").status_code == 404
    in_project = connect(address, project="a&b").case_page(3, 4)
    assert in_project == f"{address}/evaluations/3/cases/4?project=a%26b"
    assert baton_("submit", "--github", "--conversations", "*", "--server", address).code == 2


@pytest.mark.heavy
def test_a_fault_in_a_file_is_told_by_the_name_that_was_sent(
    store: Store, settings: Settings
) -> None:
    done = asked(store, settings, agent="support", dataset=cases("cases: [{id: 1, inputs: x}]"))
    assert done.exit_code == 2
    assert (done.error or "").startswith("cases.yaml:1: ")


EVAL_SET = {
    "eval_set_id": "desk",
    "eval_cases": [
        {
            "eval_id": "refund",
            "conversation": [
                {
                    "invocation_id": "1",
                    "user_content": {"role": "user", "parts": [{"text": "refund order 42"}]},
                    "final_response": {
                        "role": "model",
                        "parts": [{"text": "Your refund R-2 is on its way."}],
                    },
                }
            ],
        }
    ],
}


def test_the_criteria_of_adk_beside_an_eval_set_go_with_it(
    address: str, store: Store, settings: Settings, tmp_path: Path, baton: Baton
) -> None:
    folder = tmp_path / "desk"
    folder.mkdir()
    cases_of = folder / "desk.evalset.json"
    cases_of.write_bytes(msgspec.json.encode(EVAL_SET))
    (folder / "test_config.json").write_text('{"criteria": {"response_match_score": 0.5}} // low')
    other = tmp_path / "strict.json"
    other.write_text('{"criteria": {"response_match_score": 0.99}}')
    line = ("submit", "--server", address, "--agent", "support")
    assert baton(*line, cases_of).code == 0
    assert baton(*line, cases_of, other).code == 0
    jobs, until = Jobs(store, settings), time.monotonic() + 60
    while any(each.state != "done" for each in jobs_of(store, 1)) and time.monotonic() < until:
        jobs.work(time.time())
        time.sleep(0.05)
    assert [(each.status, each.error) for each in jobs_of(store, 1)] == [
        ("failed", None), ("passed", None),
    ]  # fmt: skip


def test_criteria_that_name_functions_or_have_no_cases_are_refused(
    address: str, tmp_path: Path, baton: Baton
) -> None:
    metric = {"own": {"code_config": {"name": "os.getcwd"}}}
    criteria = tmp_path / "test_config.json"
    criteria.write_bytes(msgspec.json.encode({"criteria": {"own": 1.0}, "custom_metrics": metric}))
    cases_of = tmp_path / "desk.evalset.json"
    cases_of.write_bytes(msgspec.json.encode(EVAL_SET))
    line = ("submit", "--server", address, "--agent", "support")
    refused = baton(*line, cases_of)
    assert refused.code == 2
    assert (
        "test_config.json:1: custom_metrics.own: runs code: `os.getcwd`: a server does not allow this"
        in refused.err
    )
    alone = baton(*line, criteria)
    assert alone.code == 2
    (tmp_path / "other").mkdir()
    elsewhere = tmp_path / "other" / "more.evalset.json"
    elsewhere.write_bytes(msgspec.json.encode(EVAL_SET))
    mixed = baton(*line, cases_of, elsewhere)
    assert "only some cases are beside this test_config.json" in mixed.err


def test_criteria_choose_no_judge_of_a_server() -> None:
    judged = {
        "threshold": 0.5,
        "judgeModelOptions": {"judgeModel": "gemini-2.5-flash", "numSamples": 3},
    }
    stated = {"criteria": {"final_response_match_v2": judged, "response_match_score": 0.5}}
    sent = msgspec.json.decode(sent_criteria("test_config.json", msgspec.json.encode(stated)))
    assert sent["criteria"]["final_response_match_v2"]["judgeModelOptions"] == {"numSamples": 3}

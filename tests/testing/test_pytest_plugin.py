"""The pytest plug-in, in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import NO_OTHER_PLUGINS

AGENT = """
def answer(message):
    who = "billing" if "refund" in message else "weather"
    return {"agents": ["router", who], "output": "done by " + who}
"""
CASES = """
cases:
  - {id: refund, input: please refund me, agents: [router, billing]}
  - {id: invoice, input: please send the invoice, agents: [router, billing]}
"""
CONFIG = """
dataset: cases.yaml
providers: [{type: python, target: "desk.py:answer"}]
"""
EVAL_SET = """{"eval_set_id": "s", "eval_cases": [
  {"eval_id": "ok", "conversation": [{"user_content": {"parts": [{"text": "please refund me"}]},
   "final_response": {"parts": [{"text": "done by billing"}]}}]},
  {"eval_id": "off", "conversation": [{"user_content": {"parts": [{"text": "will it rain"}]},
   "final_response": {"parts": [{"text": "it will not rain"}]}}]}]}"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "desk.py").write_text(AGENT)
    (tmp_path / "cases.yaml").write_text(CASES)
    return tmp_path


def run_pytest(
    folder: Path, *arguments: str, alone: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run tests with our plug-in ``alone``, or with all that are installed, which takes a second.

    If it does not end, the error has its output and where its tests are, also those of workers.
    """
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-rA", *arguments]
    command += ["-o", "faulthandler_timeout=200"]
    if alone:
        command += ["-p", "baton.pytest_plugin"]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **(NO_OTHER_PLUGINS if alone else {})},
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
    except subprocess.TimeoutExpired as hanging:
        output = [text.decode() for text in (hanging.stdout, hanging.stderr) if text]
        pytest.fail("\n".join(["pytest does not end", *output]), pytrace=False)
    assert done.stdout, done  # it has begun
    return done


def ends(done: subprocess.CompletedProcess[str], *, passed: int, failed: int) -> bool:
    counts = done.stdout.splitlines()[-1]
    words = [f"{n} {word}" for n, word in ((failed, "failed"), (passed, "passed")) if n]
    return ", ".join(words) in counts


def test_nothing_is_collected_unless_it_was_asked_for(folder: Path) -> None:
    (folder / "baton.yaml").write_text(CONFIG)
    assert run_pytest(folder).returncode == 5


def test_a_config_is_a_test_a_case(folder: Path) -> None:
    (folder / "baton.yaml").write_text(CONFIG)
    (folder / "pytest.ini").write_text("[pytest]\nbaton_trust = .\n")
    done = run_pytest(folder, "--baton", alone=False)
    assert ends(done, passed=1, failed=1), done.stdout
    assert "PASSED baton.yaml::refund" in done.stdout
    assert "FAILED baton.yaml::invoice" in done.stdout
    assert "expected  router  billing" in done.stdout
    assert "actual    router  weather" in done.stdout
    assert "Traceback" not in done.stdout


def test_one_case_can_be_chosen_by_its_name(folder: Path) -> None:
    (folder / "baton.yaml").write_text(CONFIG)
    assert ends(run_pytest(folder, "--baton", "baton.yaml::refund"), passed=1, failed=0)


def test_an_eval_set_is_played_by_the_agent_of_the_ini_file(folder: Path) -> None:
    (folder / "sets").mkdir()
    (folder / "sets" / "desk.evalset.json").write_text(EVAL_SET)
    criteria = '{"criteria": {"response_match_score": 0.9}}'
    (folder / "sets" / "test_config.json").write_text(criteria)
    (folder / "pytest.ini").write_text("[pytest]\nbaton = true\nbaton_agent = desk.py:answer\n")
    done = run_pytest(folder)
    assert ends(done, passed=1, failed=1), done.stdout
    assert "FAILED sets/desk.evalset.json::off" in done.stdout
    assert "response_match_score failed" in done.stdout


def test_an_eval_set_without_an_agent_says_what_is_missing(folder: Path) -> None:
    (folder / "desk.test.json").write_text(EVAL_SET)
    done = run_pytest(folder, "--baton")
    assert done.returncode == 2
    assert "set `baton_agent`" in done.stdout


def test_a_broken_dataset_is_one_message_with_its_line(folder: Path) -> None:
    (folder / "baton.yaml").write_text(CONFIG)
    (folder / "cases.yaml").write_text("cases:\n  - {id: a, input: hi, agnets: [x]}\n")
    done = run_pytest(folder, "--baton", "baton.yaml")
    assert done.returncode == 2
    assert "cases.yaml:2" in done.stdout
    assert "agents" in done.stdout
    assert "Traceback" not in done.stdout


UNCHECKED = """
dataset: cases.yaml
providers: [{type: python, target: "desk.py:answer"}]
evaluators: [response]
gate: [pass_rate >= 0.9]
"""
SAID = "stated but not checked, because no evaluator for it is selected: `agents` (`agent_chain`)"


@pytest.mark.parametrize("workers", [[], pytest.param(["-n", "2"], marks=pytest.mark.heavy)])
def test_what_no_evaluator_checks_is_printed_below_green_tests(
    folder: Path, workers: list[str]
) -> None:
    (folder / "baton.yaml").write_text(UNCHECKED)
    case = "cases: [{id: refund, input: please refund me, agents: [x], response: done by billing}]"
    (folder / "cases.yaml").write_text(case)
    arguments = ["--baton", "baton.yaml", "--junit-xml", "out.xml", *workers]
    done = run_pytest(folder, *arguments, alone=not workers)
    assert ends(done, passed=1, failed=0), done.stdout
    assert f"1 test: {SAID}" in done.stdout
    gate = "1 test: `gate:` is not applied, because each case is a test; `baton eval` applies it"
    assert gate in done.stdout
    assert SAID in (folder / "out.xml").read_text()


def test_a_marked_test_says_what_no_evaluator_checks(folder: Path) -> None:
    (folder / "cases.yaml").write_text(
        "cases: [{id: refund, input: please refund me, agents: [x], response: done by billing}]"
    )
    (folder / "test_it.py").write_text("""
import pytest
@pytest.mark.baton("cases.yaml", "desk.py:answer", evaluators=["response"])
def test_desk(baton_result): assert baton_result.status == "passed"
""")
    done = run_pytest(folder)
    assert ends(done, passed=1, failed=0), done.stdout
    assert f"1 test: {SAID}" in done.stdout


@pytest.mark.heavy
def test_items_may_be_spread_over_workers(folder: Path) -> None:
    (folder / "baton.yaml").write_text(CONFIG)
    done = run_pytest(folder, "-p", "xdist", "--baton", "-n", "2", "baton.yaml")
    assert ends(done, passed=1, failed=1), done.stdout


MARKED = """
import pytest
from baton.testing import assert_passes

@pytest.mark.baton("cases.yaml", "desk.py:answer", evaluators=["agent_chain"])
def test_desk(baton_case, baton_result):
    assert baton_result.case_id == baton_case.id
    assert_passes(baton_result)
"""


def test_a_marked_test_runs_once_for_every_case(folder: Path) -> None:
    (folder / "test_desk.py").write_text(MARKED)
    done = run_pytest(folder, "--strict-markers")
    assert ends(done, passed=1, failed=1), done.stdout
    assert "PASSED test_desk.py::test_desk[refund]" in done.stdout
    assert "actual    router  weather" in done.stdout


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("marker", "says"),
    [
        ('"cases.yaml"', "agent"),
        ('"cases.yaml", "desk.py:answer", evaluator=["agent_chain"]', "evaluator"),
        ('"missing.yaml", "desk.py:answer"', "missing.yaml"),
        ('"cases.yaml", "desk.py:answer", evaluators=["agent_chian"]', "agent_chain"),
        ('"cases.yaml", "nowhere"', "is not an agent"),
    ],
    ids=["no agent", "misspelt", "no dataset", "no evaluator", "no such agent"],
)
def test_a_wrong_marker_stops_the_run_and_says_why(folder: Path, marker: str, says: str) -> None:
    text = f"import pytest\n@pytest.mark.baton({marker})\ndef test_desk(baton_result): pass\n"
    (folder / "test_desk.py").write_text(text)
    done = run_pytest(folder)
    assert done.returncode in (2, 4)
    assert says in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    # One message, and none of the code that found the mistake.
    assert "suite.py" not in done.stdout + done.stderr
    (told,) = [line for line in done.stdout.splitlines() if line.startswith("the marker `baton`")]
    assert told.startswith("the marker `baton` of `test_desk`: ")
    assert says in told


SILENT = "def answer(message):\n    return 'done'\n"
SCORED = """
import pytest
from baton.testing import assert_passes

@pytest.mark.baton("cases.yaml", "desk.py:answer"{more})
def test_desk(baton_result):
    assert_passes(baton_result)
"""


def test_a_case_of_which_nothing_could_be_checked_is_not_green(folder: Path) -> None:
    (folder / "desk.py").write_text(SILENT)
    (folder / "test_desk.py").write_text(SCORED.format(more=""))
    (folder / "baton.yaml").write_text(CONFIG)
    (folder / "pytest.ini").write_text("[pytest]\nbaton_trust = .\n")
    done = run_pytest(folder, "--baton")
    assert ends(done, passed=0, failed=4), done.stdout
    assert "`agent_chain` scored nothing: turn 1: the trace names no agent" in done.stdout


def test_a_case_is_not_green_if_only_half_of_it_could_be_checked(folder: Path) -> None:
    (folder / "desk.py").write_text(SILENT)
    case = "cases:\n  - {id: refund, input: hi, response: done, agents: [router]}\n"
    (folder / "cases.yaml").write_text(case)
    (folder / "test_desk.py").write_text(SCORED.format(more=""))
    done = run_pytest(folder)
    assert ends(done, passed=0, failed=1), done.stdout
    assert "`agent_chain` scored nothing" in done.stdout


def test_a_case_that_states_nothing_for_the_evaluators_is_skipped_and_not_green(
    folder: Path,
) -> None:
    (folder / "baton.yaml").write_text(CONFIG + "evaluators: [tool_calls]\n")
    (folder / "pytest.ini").write_text("[pytest]\nbaton_trust = .\n")
    done = run_pytest(folder, "--baton")
    assert "2 skipped" in done.stdout.splitlines()[-1]
    assert "nothing was scored: no expectation" in done.stdout
    (folder / "baton.yaml").unlink()
    (folder / "test_desk.py").write_text(SCORED.format(more=", evaluators=['tool_calls']"))
    assert ends(run_pytest(folder), passed=0, failed=2)


def test_a_marked_test_that_takes_nothing_is_refused(folder: Path) -> None:
    text = (
        'import pytest\n@pytest.mark.baton("cases.yaml", "desk.py:answer")\ndef test_desk(): pass\n'
    )
    (folder / "test_desk.py").write_text(text)
    done = run_pytest(folder)
    assert done.returncode != 0
    assert "`test_desk` is marked `baton`, and needs the argument `baton_result`" in done.stdout


def test_a_test_that_parametrizes_the_case_itself_is_refused(folder: Path) -> None:
    (folder / "test_desk.py").write_text(
        "import pytest\n@pytest.mark.parametrize('baton_case', [1])\n"
        '@pytest.mark.baton("cases.yaml", "desk.py:answer")\ndef test_desk(baton_case): pass\n'
    )
    done = run_pytest(folder)
    assert "gets `baton_case` from its dataset: parametrize another argument" in done.stdout


@pytest.mark.parametrize("of", ["class", "module"])
def test_a_marker_of_a_class_or_module_leaves_other_tests_of_it_alone(
    folder: Path, of: str
) -> None:
    mark = 'pytest.mark.baton("cases.yaml", "desk.py:answer", evaluators=["agent_chain"])'
    head = f"@{mark}\n" if of == "class" else f"pytestmark = {mark}\n"
    (folder / "test_desk.py").write_text(
        f"import pytest\n{head}class TestDesk:\n"
        "    def test_played(self, baton_result): assert baton_result.trace is not None\n"
        "    def test_plain(self): pass\n"
    )
    done = run_pytest(folder)
    assert "3 passed" in done.stdout.splitlines()[-1], done.stdout


def test_the_plug_in_imports_nothing_of_baton_until_it_is_used(folder: Path) -> None:
    code = (
        "import sys, pytest; pytest.main(['-q', '-p', 'no:cacheprovider']);"
        "print(sorted(m for m in sys.modules if m.startswith('baton')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "['baton', 'baton.pytest_plugin']"

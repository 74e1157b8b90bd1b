"""`baton eval`: what is evaluated, how, and what is printed where."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
AGENT = """
import asyncio

print("loading the agent")

async def reply(message, case):
    print("asked:", message)
    await asyncio.sleep(0)
    if message == "break":
        raise RuntimeError("no model")
    return {"output": f"you said {message}", "agents": ["desk"], "tool_calls": []}
"""
CASES = """
cases:
- {id: refund_1, input: one, agents: [desk], tags: [money, "smoke"]}
- {id: refund_2, input: two, agents: [desk], tags: [money], metadata: {tier: gold, n: {x: 1}}}
- {id: weather, input: three, agents: [desk], labels: {tier: silver}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with an agent, cases and a config."""
    (tmp_path / "shop_agent.py").write_text(AGENT)
    (tmp_path / "cases.yaml").write_text(CASES)
    config(tmp_path)
    return tmp_path


def config(folder: Path, text: str = "", provider: str = "") -> None:
    head = "providers:\n- {type: python, target: 'shop_agent.py:reply'" + provider + "}\n"
    (folder / "baton.yaml").write_text(head + (text or "dataset: cases.yaml\n"))


def ids(outcome: Any) -> list[str]:
    return [result["case_id"] for result in json.loads(outcome.out)["results"]]


def test_baton_yaml_is_the_config_when_none_is_named(baton: Run, folder: Path) -> None:
    outcome = baton("eval")
    assert outcome.code == 0, outcome
    assert "agent_chain" in outcome.out
    assert len(list((folder / ".baton" / "evaluations").iterdir())) == 1


def test_a_named_config_may_get_other_datasets(baton: Run, folder: Path) -> None:
    (folder / "evals").mkdir()
    (folder / "evals" / "mine.yml").write_text(
        "dataset: [no_such.yaml]\nproviders: [{type: python, target: '../shop_agent.py:reply'}]\n"
    )
    (folder / "other.yaml").write_text("cases: [{id: x, input: hi, agents: [desk]}]")
    outcome = baton("eval", "evals/mine.yml", "cases.yaml", "-d", "other.yaml", "--json")
    assert ids(outcome) == ["refund_1", "refund_2", "weather", "x"]
    assert baton("eval", "evals/mine.yml").code == 2


def test_a_function_is_an_agent(baton: Run, folder: Path) -> None:
    assert ids(baton("eval", "shop_agent.py:reply", "cases.yaml:weather", "--json")) == ["weather"]
    assert ids(baton("eval", "shop_agent:reply", "cases.yaml", "--json"))[0] == "refund_1"


@pytest.mark.parametrize("agent", ["apps/desk", "apps/desk/agent.py", "apps/yaml_desk"])
def test_a_folder_with_agents_of_adk_is_an_agent(baton: Run, folder: Path, agent: str) -> None:
    (folder / "apps" / "desk").mkdir(parents=True)
    (folder / "apps" / "desk" / "agent.py").write_text("raise ValueError('this agent was loaded')")
    (folder / "apps" / "yaml_desk").mkdir()
    (folder / "apps" / "yaml_desk" / "root_agent.yaml").write_text("name: [")
    outcome = baton("eval", agent, "cases.yaml")
    assert outcome.code == 2
    assert "is neither" not in outcome.err


@pytest.fixture
def refusing() -> Iterator[str]:
    """The host and port of a server that lets nobody in."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


class Refusing(BaseHTTPRequestHandler):
    """Answers 401 and says nothing on the terminal."""

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_error(401)

    do_POST = do_DELETE = do_GET  # noqa: N815 - the names that http.server looks for

    def log_message(self, *_: object) -> None:
        pass


def test_an_address_is_a_server_and_one_that_refuses_makes_every_case_an_error(
    baton: Run, folder: Path, refusing: str
) -> None:
    outcome = baton("eval", f"http://{refusing}", "cases.yaml", "--app", "x", "--json")
    report = json.loads(outcome.out)
    assert outcome.code == 3
    assert [result["status"] for result in report["results"]] == ["error"] * 3
    assert all("401" in result["error"] for result in report["results"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "nowhere: is neither a config"),
        (["apps"], "apps: is neither a config"),
        (["localhost:8000", "cases.yaml"], "did you mean the address http://localhost:8000?"),
        (["cases.yaml"], "cases.yaml"),
        (["gone.yaml"], "gone.yaml: no such file"),
        (["shop_agent.py:reply"], "name a dataset"),
        (["shop_agent.py:repyl", "cases.yaml"], "did you mean `reply`?"),
        (["gone.py:reply", "cases.yaml"], "gone.py: no such file"),
        (["shop_agent.py:reply", "gone.yaml"], "gone.yaml: no such file or folder"),
        (["shop_agent.py:reply", "cases.yaml:wether"], "did you mean `weather`?"),
        (
            ["shop_agent.py:reply", "cases.yaml", "--app", "x"],
            "--app is only for the address of an ADK server",
        ),
        (["--app", "x"], "--app is only for the address of an ADK server"),
        (["--concurrency", "0"], "--concurrency: expected a whole number >= 1, got 0"),
        (["--repeat", "-2"], "--repeat: expected a whole number >= 1, got -2"),
        (["--timeout", "0"], "--timeout: expected a number > 0, got 0"),
        (["--limit", "0"], "--limit has to be at least 1, got 0"),
        (["--concurrency", "many"], "--concurrency"),
        (["--limit", "1.5"], "--limit"),
        (["--concurency", "3"], "did you mean `--concurrency`?"),
        (["--filter", "nobody*"], "none of 3 cases matches `nobody*`"),
        (["--filter", "metadata.tier"], "write `metadata.KEY=VALUE`"),
        (["-e", "agent_chian"], "did you mean `agent_chain`?"),
        (["-e", "agent_chain", "--config_file_path", "c.json"], "give one"),
        (["--config_file_path", "c.json"], "c.json: no such file"),
        (["--agents", "a.yaml"], "a.yaml: no such file"),
        (["--out", "cases.yaml"], "name another --out"),
    ],
)
def test_bad_usage_is_one_line_exit_code_2_and_leaves_nothing(
    baton: Run, folder: Path, arguments: list[str], said: str
) -> None:
    (folder / "apps").mkdir()
    outcome = baton("eval", *arguments)
    assert outcome.code == 2
    assert said in outcome.err, outcome.err
    problems = [line for line in outcome.err.splitlines() if line.startswith("baton: ")]
    assert len(problems) == 1
    assert outcome.out == ""
    assert not (folder / ".baton").exists()


def test_no_config_at_all_says_what_to_name(baton: Run) -> None:
    outcome = baton("eval")
    assert outcome.code == 2
    assert "no baton.yaml here: name a config, or an agent and its datasets" in outcome.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dataset: cases.yaml\n", "providers: names 0 providers"),
        ("providers: [{type: mock}]\n", "name a dataset"),
        ("dataset: cases.yaml\nproviders: [{type: python}]\n", "`target` is missing"),
        (
            "dataset: cases.yaml\nproviders: [{type: python, target: 'gone:f'}]\n",
            "providers[0]: no module `gone`",
        ),
    ],
)
def test_a_config_without_an_agent_to_play_is_refused(
    baton: Run, folder: Path, text: str, said: str
) -> None:
    (folder / "baton.yaml").write_text(text)
    outcome = baton("eval")
    assert outcome.code == 2
    assert said in outcome.err
    assert not (folder / ".baton").exists()


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (["--filter", "refund_*"], ["refund_1", "refund_2"]),
        (["-f", "tag:money", "-f", "*_2"], ["refund_2"]),
        (["--filter", "metadata.tier=silver"], ["weather"]),
        (["--filter", "metadata.n.x=1"], ["refund_2"]),
        (["--limit", "2"], ["refund_1", "refund_2"]),
        (["--filter", "tag:m*", "--limit", "1"], ["refund_1"]),
        (["--limit", "99"], ["refund_1", "refund_2", "weather"]),
        (["--repeat", "2", "--limit", "1"], ["refund_1", "refund_1"]),
    ],
)
def test_some_of_the_cases_are_played(
    baton: Run, folder: Path, options: list[str], left: list[str]
) -> None:
    outcome = baton("eval", "--json", *options)
    assert (outcome.code, ids(outcome)) == (0, left)


def test_the_command_line_goes_before_the_config(baton: Run, folder: Path) -> None:
    config(
        folder,
        "dataset: cases.yaml\nrepeat: 3\nconcurrency: 2\ntimeout: 9\nname: from config\n"
        "evaluators: [{type: response, config: {contains: nonsense}}]\n",
    )
    said = ["--repeat", "1", "--timeout", "5.5", "-e", "agent_chain", "--name", "from line"]
    assert baton("eval", *said).code == 0
    (made,) = (folder / ".baton" / "evaluations").iterdir()
    header = json.loads((made / "evaluation.json").read_text())
    run = header["run"]
    assert (run["repeat"], run["concurrency"], run["timeout"]) == (1, 2, 5.5)
    assert (header["name"], header["planned"]) == ("from line", 3)
    assert [counts["evaluator"] for counts in header["evaluators"]] == ["agent_chain"]
    assert baton("eval").code == 1


def test_json_is_all_there_is_on_standard_output(baton: Run, folder: Path) -> None:
    outcome = baton("eval", "--json", "--repeat", "2")
    report = json.loads(outcome.out)
    assert report["status"] == "passed"
    assert [result["repeat"] for result in report["results"]] == [0, 1] * 3
    assert "asked: one" in outcome.err
    assert "loading the agent" in outcome.err


def test_what_agents_print_is_not_part_of_the_terminal_report(baton: Run, folder: Path) -> None:
    assert "asked:" not in baton("eval").out


def test_plain_lines_tell_of_progress_if_there_is_no_terminal(baton: Run, folder: Path) -> None:
    (folder / "more.jsonl").write_text(
        "".join(f'{{"id": "c{n}", "input": "hi", "agents": ["desk"]}}\n' for n in range(95))
    )
    outcome = baton("eval", "shop_agent.py:reply", "more.jsonl")
    lines = [line for line in outcome.err.splitlines() if " of 95: " in line]
    assert lines[0] == "10 of 95: 10 passed"
    assert lines[-1] == "95 of 95: 95 passed"
    assert len(lines) == 10
    assert "\x1b" not in outcome.err
    assert "of 95: " not in outcome.out


def test_every_case_is_printed_with_its_scores_when_asked_for(baton: Run, folder: Path) -> None:
    for option in ("--print_detailed_results", "--print-detailed-results"):
        outcome = baton("eval", option)
        assert all(name in outcome.out for name in ("refund_1", "refund_2", "weather"))
    assert "refund_1" not in baton("eval").out


def test_an_error_is_shown_with_its_reason_and_ends_with_3(baton: Run, folder: Path) -> None:
    (folder / "cases.yaml").write_text(
        "cases:\n- {id: good, input: hi, agents: [desk]}\n"
        "- {id: bad, input: break, agents: [desk]}\n- {id: wrong, input: hi, agents: [x]}\n"
    )
    outcome = baton("eval")
    assert outcome.code == 3
    assert "the provider raised RuntimeError: no model" in outcome.out
    assert "1 of 3 cases could not be evaluated" in outcome.out


@pytest.mark.parametrize("stderr", [subprocess.DEVNULL, subprocess.STDOUT])
def test_the_verdict_stays_what_it_is_when_the_reader_of_the_report_leaves(
    folder: Path, stderr: int
) -> None:
    (folder / "shop_agent.py").write_text("def reply(m): return {'agents': ['desk']}")
    cases = [f'{{"id": "c{n}", "input": "hi", "agents": ["x"]}}\n' for n in range(200)]
    (folder / "many.jsonl").write_text("".join(cases))
    command = [sys.executable, "-m", "baton", "eval", "shop_agent.py:reply", "many.jsonl"]
    process = subprocess.Popen(
        [*command, "--json", "--junit", "j.xml"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=stderr,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == 1
    assert (folder / "j.xml").read_text().count("<testcase") == 200


def test_secrets_reach_neither_the_folder_nor_the_screen(
    baton: Run, folder: Path, refusing: str
) -> None:
    head = "dataset: cases.yaml\nproviders:\n- type: adk_http\n  app_name: x\n  "
    configs = (
        f"endpoint_url: 'http://anna:s3cr3t@{refusing}/run'",
        f"endpoint_url: http://{refusing}\n  api_key: s3cr3t",
        f"endpoint_url: http://{refusing}\n  headers: {{X-Shop: s3cr3t, Authorization: s3cr3t}}",
        f"endpoint_url: http://{refusing}\n  username: anna\n  password: s3cr3t",
    )
    outcomes = []
    for number, text in enumerate(configs):
        (folder / "baton.yaml").write_text(f"{head}{text}\n")
        outcomes.append(baton("eval", "--junit", f"{number}.xml"))
        (folder / "baton.yaml").unlink()
    outcomes.append(baton("eval", f"http://anna:s3@s3cr3t@{refusing}", "cases.yaml", "--app", "x"))
    assert [outcome.code for outcome in outcomes] == [3] * 5, outcomes
    written = [p.read_text() for p in folder.rglob("*") if p.suffix in (".json", ".jsonl", ".xml")]
    printed = [text for outcome in outcomes for text in (outcome.out, outcome.err)]
    assert len(written) == 5 * 3 + 4
    assert "s3cr3t" not in "".join(written + printed)
    assert refusing in "".join(written)


@pytest.mark.parametrize("verb", ["eval", "score"])
def test_the_help_names_no_default_where_an_option_may_be_repeated(baton: Run, verb: str) -> None:
    said = baton(verb, "--help").out
    assert "--evaluator" in said
    assert "()" not in said


def test_an_unknown_option_is_answered_with_options_alone(baton: Run) -> None:
    told = baton("score", "traces", "--print-nothing").err
    assert "no option `--print-nothing`; known: --agents, " in told
    assert "*" not in told

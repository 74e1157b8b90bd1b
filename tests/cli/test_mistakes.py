"""What is said of the mistakes that people make most, and that nothing is run by them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
ROOT = Path(__file__).parent.parent.parent
DESK = "examples/adk/recordings/support_desk"
RUN, CASES = f"{DESK}/refund.sse", "examples/adk/cases.yaml"
MISTAKES = {
    "a path that is not there": (["score", "nowhere"], "nowhere: no such file or folder"),
    "a misspelt option": (["score", RUN, "--evaluater", "x"], "did you mean `--evaluator`?"),
    "a dataset as recording": (["score", CASES], "is a dataset, not a recording"),
    "a recording as dataset": (["score", RUN, "-d", RUN], "is a recording, not a dataset"),
    "a recording to convert": (
        ["convert", RUN, "--to", "adk", "-o", "x.json"],
        "`baton draft` turns it into cases",
    ),
    "a recording as config": (["score", RUN, "-c", RUN], "is a recording, not a config"),
    "a dataset as config": (["score", RUN, "-c", CASES], "is a dataset, not a config"),
    "a recorded eval set with a wrong field, scored": (
        ["score", "wrong.json"],
        "wrong.json:1: conversation[0].intermediate_data.tool_uses[0].args: expected a mapping",
    ),
    "a recorded eval set with a wrong field, shown": (["show", "wrong.json"], "tool_uses[0].args"),
    "a recorded eval set with a wrong field, drafted": (["draft", "wrong.json"], "tool_uses[0]."),
    "a config as dataset": (
        ["score", RUN, "-d", "examples/adk/baton.yaml"],
        "is a config, not a dataset: it is given as --config",
    ),
    "a program as recording": (
        ["score", "examples/python/desk.py"],
        "is a program, not a recording: `baton record -- python examples/python/desk.py`",
    ),
    "a program as dataset": (
        ["score", RUN, "-d", "examples/python/desk.py"],
        "`baton eval examples/python/desk.py:FUNCTION DATASET` plays it",
    ),
    "an unknown evaluator": (
        ["score", RUN, "-e", "agent_chain", "-e", "agent_chan"],
        "baton: --evaluator agent_chan: unknown evaluator `agent_chan`; did you mean",
    ),
    "an unknown evaluator to add": (
        ["score", RUN, "-e", "+agent_chan"],
        "baton: --evaluator agent_chan: unknown evaluator",
    ),
    "an evaluator that needs a limit": (
        ["score", RUN, "-e", "tokens"],
        "baton: --evaluator tokens: needs at least one limit",
    ),
    "a threshold that is never reached": (
        ["score", RUN, "-e", "scope_fidelity:2"],
        "baton: --evaluator scope_fidelity:2: threshold: never reached",
    ),
    "an evaluation to keep": (
        ["baseline", "runs/nightly"],
        "baton: `baton baseline` takes set or show, not `runs/nightly`",
    ),
    "a misspelt key of a config": (["eval", "typo.yaml"], "typo.yaml:1: evaluatrs: unknown key"),
    "JSON lines of another tool, checked": (["check", "chats.jsonl"], "contains no trace. Baton"),
    "JSON lines of another tool, scored": (["score", "chats.jsonl"], "contains no trace. Baton"),
    "JSON lines of another tool as dataset": (
        ["score", RUN, "-d", "chats.jsonl"],
        "chats.jsonl: contains no cases: ",
    ),
    "a program to check": (["check", "app.py"], "app.py: is a program, which is not checked: name"),
    "a dataset of a config that is not there, checked": (
        ["check", "gone.yaml"],
        "gone.yml: no such file or folder (`dataset` of gone.yaml:2)",
    ),
    "a broken program": (["eval", "broken.py:f", CASES], "'(' was never closed (broken.py:2)"),
    "a function without a message": (
        ["eval", "shop.py:none", CASES],
        "`shop.py:none` cannot be called with a message: too many",
    ),
    "an agent as recording": (["score", "shop.py:bits"], "shop.py:bits: is an agent, not a rec"),
    "a function that yields": (["eval", "shop.py:bits", CASES], "uses `yield`: have it return"),
    "an unknown case": (["score", RUN, "-d", f"{CASES}:refnd"], "no case `refnd`; did you mean"),
    "a keyword that fits nothing": (
        ["score", RUN, "-d", CASES, "-k", "nothing"],
        "none of 5 cases matches -k nothing; ids are refund, ",
    ),
    "a bad expression of keywords": (["score", RUN, "-d", CASES, "-k", "a and"], "a word is"),
    "a judge without its provider": (
        ["score", RUN, "--judge", "gpt-4o"],
        "`gpt-4o` does not name its provider: write PROVIDER:NAME",
    ),
    "such a judge beside a config": (
        ["eval", "-c", "examples/python/baton.yaml", "--judge", "gpt-4o"],
        "write PROVIDER:NAME",
    ),
    "a module that is not there": (
        ["eval", "nosuch:answer", CASES],
        "no module `nosuch`: looked below",
    ),
    "a function that is not there": (
        ["eval", "examples/python/desk.py:answr", CASES],
        "did you mean `answer`?",
    ),
    "no function": (["eval", "examples/python/desk.py", CASES], "name the function: "),
    "an empty recording": (["score", "empty.json"], "empty.json: is empty"),
    "an empty dataset": (["score", RUN, "-d", "empty.json"], "empty.json: is empty"),
    "an empty config": (["eval", "empty.json"], "empty.json: is empty"),
    "bytes as recording": (["show", "bytes.jsonl"], "bytes.jsonl: contains no trace"),
    "bytes as dataset": (["score", RUN, "-d", "bytes.jsonl"], "bytes.jsonl:1: not UTF-8 text"),
    "a recording as agent": (["eval", "spans.jsonl"], "is a recording, not a config: baton score"),
    "spans as dataset": (["score", RUN, "-d", "spans.jsonl"], "is a recording, not a dataset"),
    "both the wrong way round": (
        ["score", CASES, "-d", "spans.jsonl"],
        "spans.jsonl: is a recording, not a dataset: baton score RECORDING --dataset DATASET",
    ),
    "UTF-16 as recording": (["show", "utf16.json"], "utf16.json: is UTF-16: save it as UTF-8"),
    "UTF-16 as dataset": (["score", RUN, "-d", "utf16.json"], "is UTF-16: save it as UTF-8"),
    "UTF-16 as config": (["eval", "utf16.json"], "is UTF-16: save it as UTF-8"),
    "an archive as recording": (["score", "runs.zip"], "runs.zip: is a zip archive: unpack it"),
    "a file that was truncated": (["check", "short.json"], "short.json:4: not JSON: "),
    "a value that JSON does not have": (["check", "nan.json"], "`NaN` is not a JSON value"),
    "a misspelt first key": (["check", "case.yaml"], "case.yaml:1: case: unknown key; did you"),
    "a misspelt key below a comment": (
        ["score", RUN, "-d", "case.json"],
        "case.json:2: eval_case: unknown key; did you mean `eval_cases`?",
    ),
    "a misspelt first key of a dataset": (
        ["score", RUN, "-d", "case.yaml"],
        "case.yaml:1: case: unknown key; did you mean `cases`?",
    ),
    "a duplicate key of JSON": (
        ["score", RUN, "-d", "twice.json"],
        "twice.json:3: duplicate key `input`",
    ),
    "text for a mapping": (
        ["check", "gate.yaml"],
        'gate.yaml:3: gate.regression: expected a mapping or null, got "default"; its keys: `base',
    ),
    "a text for a list of tools": (
        ["score", RUN, "--agents", "agents.yaml"],
        "agents.yaml:2: agents.x.tools: `Read` is not one of all; write `[Read]`",
    ),
    "a word for a boolean": (
        ["eval", "yes.yaml", CASES],
        "yes.yaml:1: providers[0].instrument: `yes` is not one of true, false, auto",
    ),
    "a program for definitions": (
        ["score", RUN, "--agents", "app.py"],
        "app.py: definitions are not read from Python, which would have to be run: name YAML such "
        "as `agents: {billing: {tools: [refund]}}`, a folder with `.claude/agents/*.md`",
    ),
    "definitions that are not there": (["check", "nowhere.yaml"], "nothing.yaml: no such file"),
    "a policy and a recording the wrong way round": (
        ["guard", "check", "spans.jsonl", "gate.yaml"],
        "spans.jsonl: is a recording, not a policy: name the policy first",
    ),
    "cases that would be overwritten": (["draft", RUN, "-o", "case.yaml"], "exists already"),
    "an unknown hook": (["hook", "claud", "push"], "`baton hook` takes claude, not `claud`"),
    "a filter for recordings": (["score", RUN, "--filter", "x"], "`-k EXPR` selects recordings"),
    "a baseline as option": (["compare", "--baseline", "x"], "baton compare BASELINE EVALUATION"),
    "a file as evaluation": (["report", RUN], "not an evaluation: it is a file"),
    "a file as store": (["serve", "--folder", "gate.yaml"], "gate.yaml: is a file: name a folder"),
    "an issue where there are none": (["issues", RUN, "--show", "x"], "`x`; there are no issues"),
    "a recording as labels": (
        ["calibrate", "scope_fidelity", "spans.jsonl"],
        "spans.jsonl: is a recording, not labels",
    ),
    "an address as dataset": (
        ["score", RUN, "-d", "https://example.com/cases.yaml"],
        "https://example.com/cases.yaml: is an address",
    ),
    "no such evaluation": (
        ["trend", "nowhere"],
        "nowhere: not an evaluation: there is no such folder",
    ),
    "a config that is not there": (["watch", "nothing.yaml"], "nothing.yaml: no such file or"),
    "links in a circle": (["score", "circle"], "circle: no such file or folder"),
    "links in a circle as dataset": (["score", RUN, "-d", "circle"], "no such file or folder"),
    "a server without http": (
        ["push", RUN, "--server", "localhost:4318"],
        "server: `localhost:4318` is not a valid address: write http://localhost:4318",
    ),
    "an endpoint without http": (
        ["export", RUN, "--otlp", "localhost:4318"],
        "localhost:4318: write to http://localhost:4318",
    ),
    "an agent without http": (
        ["eval", "localhost:8000", CASES],
        "did you mean the address http://localhost:8000?",
    ),
    "no evaluation yet": (["trend"], "no evaluation here yet"),
    "nothing to submit": (["submit"], "name the cases or recordings to send"),
    "a folder to record into": (["record", "-o", DESK, "--", "true"], "is a folder: name a file"),
    "a hook to no address": (
        ["hook", "claude", "push", "--server", "nonsense", "--yes"],
        "`nonsense` is not a valid address",
    ),
    "no name of a key": (["serve", "keys", "revoke"], "name the key"),
    "no name of a rubric": (["rubrics", "show"], "name a rubric: `baton rubrics list`"),
    "a name that nothing has": (["list", "zzz"], "nothing is called `zzz`; `baton list` shows all"),
    "a rubric that is not there": (["rubrics", "show", "zzz"], "`baton rubrics list` shows all"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_reported_in_one_line_and_nothing_is_run(
    baton: Run, tmp_path: Path, mistake: str
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "empty.json").touch()
    (tmp_path / "bytes.jsonl").write_bytes(bytes(range(128, 256)) * 20)
    (tmp_path / "typo.yaml").write_text("evaluatrs: [agent_chain]\n")
    (tmp_path / "wrong.json").write_text(
        '{"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation": [{"user_content":'
        ' {"parts": [{"text": "hi"}]}, "final_response": {"parts": [{"text": "ok"}]},'
        ' "intermediate_data": {"tool_uses": [{"name": "find", "args": "no JSON"}]}}]}]}'
    )
    spans = (ROOT / "examples/frameworks/recordings/refund.otlp.jsonl").read_bytes()
    (tmp_path / "spans.jsonl").write_bytes(spans)
    (tmp_path / "utf16.json").write_text('{"cases": []}', encoding="utf-16")
    (tmp_path / "runs.zip").write_bytes(b"PK\x03\x04" + bytes(60))
    (tmp_path / "short.json").write_text('{\n "cases": [\n  {"id": "a",\n   "inp')
    (tmp_path / "nan.json").write_text('{\n "cases": [\n  {"id": "a", "input": NaN}]}')
    (tmp_path / "twice.json").write_text(
        '{"cases": [\n {"id": "a",\n "input": "x", "input": "y"}]}'
    )
    (tmp_path / "chats.jsonl").write_text('{"messages": []}\n{"messages": []}\n')
    (tmp_path / "gone.yaml").write_text("evaluators: [agent_chain]\ndataset: gone.yml\n")
    (tmp_path / "broken.py").write_text("x = 1\ndef f(m:\n")
    (tmp_path / "shop.py").write_text("def none(): pass\nasync def bits(m):\n    yield m\n")
    (tmp_path / "app.py").write_text("agent = Agent(name='desk')\n")
    (tmp_path / "agents.yaml").write_text("agents:\n  x: {tools: Read}\n")
    desk = '{type: python, target: "shop:desk", instrument: yes}'
    (tmp_path / "yes.yaml").write_text(f"providers: [{desk}]\n")
    (tmp_path / "nowhere.yaml").write_text("evaluators: [dispatch_scope]\nagents: nothing.yaml\n")
    (tmp_path / "gate.yaml").write_text("dataset: x\ngate:\n  regression: default\n")
    (tmp_path / "case.json").write_text('{// the first\n"evalCase": []}')
    (tmp_path / "case.yaml").write_text("case:\n- {id: a, input: Hi.}\n")
    (tmp_path / "circle").symlink_to("elcric")
    (tmp_path / "elcric").symlink_to("circle")
    words, says = MISTAKES[mistake]
    outcome = baton(*words)
    assert outcome.code == 2, outcome
    assert outcome.out == ""
    (line,) = outcome.err.splitlines()
    assert line.startswith("baton: ")
    assert says in line
    assert len(line) < 400
    assert not (tmp_path / ".baton").exists()


def test_settings_of_a_server_are_checked_without_a_server(baton: Run, tmp_path: Path) -> None:
    file = tmp_path / "server.yaml"
    file.write_text("agents: {desk: app.py:desk}\nquiet: 2 s\nrules: []\n")
    assert baton("check", file).out == f"{file}: settings of a server, 0 rules\n"
    file.write_text("rules:\n- {name: a, evaluators: [dispatch_scop]}\n")
    outcome = baton("check", file)
    assert (outcome.code, outcome.out) == (2, "")
    assert f"{file}:2: rules[0].evaluators[0]: unknown evaluator `dispatch_scop`" in outcome.err
    (tmp_path / "cases.yaml").write_text("cases:\n- {id: a, input: hi}\n")
    folder = baton("check", tmp_path)
    assert folder.code == 0
    assert "server.yaml: has settings of a server: check it by its name" in folder.err


def test_a_character_that_yaml_does_not_allow_is_named_with_its_line(
    baton: Run, tmp_path: Path
) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text("cases:\n- id: é\n  input: a\0b\n")
    outcome = baton("check", file)
    assert outcome.code == 2
    assert outcome.err == (
        f"baton: {file}:3: not YAML: it contains U+0000, which YAML does not allow\n"
    )


def test_arguments_beyond_what_a_command_takes_are_counted(baton: Run) -> None:
    outcome = baton("compare", "a", "b", "c", "d")
    assert outcome.code == 2
    assert "unexpected argument `c` and 1 more; see `baton compare --help`" in outcome.err


def test_a_function_that_is_missing_is_answered_with_those_of_the_program(
    baton: Run, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text("import os\n\ndef reply(message):\n    return os.sep\n")
    (tmp_path / "cases.yaml").write_text("cases:\n- {id: a, input: hi}\n")
    outcome = baton("eval", f"{tmp_path / 'app.py'}:zzz", tmp_path / "cases.yaml")
    assert outcome.code == 2
    assert outcome.err.endswith("has no `zzz`; known: reply\n")

"""What a command does, a program does with a function of `baton`."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.cli.labelled import RUBRIC, answer, write_config, write_traces
from tests.conftest import Baton
from tests.pull.conftest import FakeStore, phoenix, serve
from tests.pull.test_phoenix import TRACE

import baton as library
from baton.model import Content, InputError
from baton.session.compare import Side
from baton.testing import llm_server

__all__ = ["phoenix", "serve"]

pytestmark = pytest.mark.usefixtures("folder")


def test_evaluations_are_compared_kept_and_followed_over_time() -> None:
    evaluation = library.score("refund.sse", "cases.yaml")
    folder = evaluation.save(".baton/evaluations/20260101T000000Z-one")
    snapshot, file = library.set_baseline(folder)
    assert library.open_baseline() == (snapshot, file)
    again = library.score("refund.sse", "cases.yaml").save("pr/20260101T000000Z-one")
    compared = library.compare("default", again)
    assert not compared.itself, "a folder of the same name elsewhere is another evaluation"
    assert compared.outcome in ("same", "unclear")
    (point,) = library.trend(axis="agent_chain")
    assert point.value == 1


def test_an_evaluation_is_recognised_in_memory_in_folders_and_as_a_baseline() -> None:
    evaluation = library.score("refund.sse", "cases.yaml")
    folder, copy = evaluation.save("out/one"), evaluation.save("out/two")
    library.set_baseline(folder)
    sides: list[Side] = [evaluation, folder, copy, "default"]
    for before in sides:
        for after in sides:
            compared = library.compare(before, after)
            assert (compared.itself, compared.outcome) == (True, "error"), (before, after)
    assert not library.compare(evaluation, library.score("refund.sse", "cases.yaml")).itself


def test_functions_that_take_a_folder_take_an_evaluation_in_memory(tmp_path: Path) -> None:
    evaluation = library.score("refund.sse", "cases.yaml")
    points = library.trend([evaluation, evaluation.save(tmp_path / "one")], "agent_chain")
    assert [point.value for point in points] == [1, 1]
    stored = library.report(evaluation, markdown="report.md")
    assert (stored.header.status, len(list(stored.rows()))) == ("passed", 1)
    assert "passed" in Path("report.md").read_text(encoding="utf-8")
    case = evaluation.results[0].case_id
    assert library.compare_case(evaluation, case, tmp_path / "one").first_difference is None
    with pytest.raises(InputError, match="no score comes from a rubric"):
        library.label(evaluation)


def test_an_evaluation_in_memory_is_kept_as_a_baseline() -> None:
    evaluation = library.score("refund.sse", "cases.yaml")
    library.set_baseline(evaluation, "memory")
    assert library.compare("memory", evaluation).itself
    again = library.compare("memory", library.score("refund.sse", "cases.yaml"))
    assert (again.itself, again.refused, again.outcome) == (False, [], "unclear")
    failed = library.score("refund.sse", "cases.yaml", gate=["dispatches.sum >= 9"])
    assert failed.status != "passed"
    with pytest.raises(library.InputError, match="the evaluation: it"):
        library.set_baseline(failed)


def test_a_saved_evaluation_says_when_it_took_place() -> None:
    evaluation = library.score("refund.sse", "cases.yaml")
    folder = evaluation.save("out/one")
    stored = json.loads((folder / "evaluation.json").read_text())["timings"]
    assert stored == evaluation.timings
    assert set(stored) == {"started", "ended", "seconds"}


def test_a_stored_evaluation_is_reported_on() -> None:
    folder = library.score("refund.sse", "cases.yaml").save("out/one")
    stored = library.report(folder, html="report.html", junit="junit.xml")
    assert stored.header.status == "passed"
    assert "<testsuite" in Path("junit.xml").read_text()
    assert "refund" in Path("report.html").read_text()


def test_cases_are_drafted_converted_and_checked() -> None:
    Path("drafted.yaml").write_text(library.draft("refund.sse"))
    assert library.draft(library.load_traces("refund.sse")) == Path("drafted.yaml").read_text()
    converted = library.convert("drafted.yaml", "adk", "adk.json")
    assert converted.cases == converted.converted.written == 1
    Path("broken.yaml").write_text("cases: [{id: a, inputt: hi}]\n")
    checked = library.check(["drafted.yaml", "adk.json", "broken.yaml"])
    assert [problem.file for problem in checked.problems] == ["broken.yaml"]


def test_recordings_are_exported_and_read_again() -> None:
    done, target = library.export_recordings("refund.sse", "spans.jsonl")
    assert (done.traces, target) == (1, "spans.jsonl")
    (again,) = library.load_traces("spans.jsonl")
    assert [run.agent for run in again.turns[0].runs] == ["support_router", "billing_agent"]


def test_traces_in_memory_are_taken_as_their_files_are() -> None:
    traces = library.load_traces("refund.sse")
    library.export_recordings("refund.sse", "of_file.jsonl")
    mixed = ["refund.sse", *traces]
    forms: dict[str, Any] = {"alone": traces[0], "listed": traces, "mixed": mixed}
    for name, given in forms.items():
        done, target = library.export_recordings(given, f"{name}.jsonl")
        assert done.traces == (2 if name == "mixed" else 1)
        assert Path("of_file.jsonl").read_text() in Path(target).read_text()
    assert library.suggest_policy(traces) == library.suggest_policy("refund.sse")
    policy = Path("policy.yaml")
    library.suggest_policy(iter(traces), policy)
    assert library.check_policy(policy, traces[0]).held == []
    with pytest.raises(InputError, match="a Trace is no evaluation: it has no results"):
        library.export_recordings(traces, "results.jsonl", only="results")
    wrong: Any = [3]
    for function in (library.suggest_policy, library.score, library.draft):
        with pytest.raises(InputError, match="a trace is a Trace or a path, not int"):
            function(wrong)


def test_secrets_of_a_trace_in_memory_are_not_exported() -> None:
    (trace,) = library.load_traces("refund.sse")
    secret = "sk-ant-api03-" + "a1B2" * 20
    trace.turns[0].input = Content(text=f"My key is {secret}")
    library.export_recordings(trace, "hidden.jsonl")
    assert secret not in Path("hidden.jsonl").read_text()
    library.export_recordings(trace, "shown.jsonl", redact=False)
    assert secret in Path("shown.jsonl").read_text()


def test_an_evaluation_of_the_command_line_is_resumed(baton: Baton) -> None:
    Path("cases.yaml").write_text("cases:\n- {id: a, input: hi, agents: [desk]}\n")
    assert baton("eval", "desk_agent.py:reply", "cases.yaml", "--out", "out").code == 0
    (folder,) = Path("out").iterdir()
    with pytest.raises(InputError, match=r"baton eval desk_agent.py:reply"):
        library.resume(folder)
    stored = library.resume(folder, "desk_agent.py:reply")
    assert (stored.header.status, len(stored)) == ("passed", 1)


def test_verdicts_are_labelled_and_the_judge_is_compared_with_the_labels(tmp_path: Path) -> None:
    traces = write_traces(tmp_path, ["correct", "wrong", "weak"])
    with llm_server(answer) as server:
        judge = write_config(tmp_path, server.judge())
        folder = library.score(traces, config=judge).save("out/judged")
    labelling = library.label(folder, by="kim")
    assert labelling.left == 3
    labelling.give("correct")
    labelling.skip()
    labelling.give("wrong")
    taken = labelling.take_back()
    assert taken is not None
    assert (taken.value, labelling.left) == ("wrong", 2)
    while labelling.left:
        labelling.give("wrong")
    report = library.calibrate(RUBRIC, ["labels.jsonl", folder])
    assert report.labels == 3
    with pytest.raises(ValueError, match="`good` is not a label: correct"):
        library.label(folder, by="lea").give("good")


def test_the_examples_of_a_rubric_are_tried() -> None:
    Path("named.yaml").write_text(
        "name: named\nsummary: is it named\nunit: turn\nversion: '1'\nthreshold: 1\n"
        "inputs: [request, answer]\nprompt: Is it?\nanswer: {choices: {correct: 1, wrong: 0}}\n"
        "tests:\n- {name: none, inputs: {request: hi verdict=wrong, answer: Done.}, label: wrong}\n"
        "- {name: other, inputs: {request: hi verdict=correct, answer: Done.}, label: wrong}\n"
    )
    with llm_server(answer) as server:
        Path("judge.yaml").write_text(json.dumps({"judge": server.judge()}))
        answers = library.try_rubrics(["named.yaml"], config="judge.yaml")
    assert [each.outcome for each in answers] == ["as expected", "otherwise"]
    with pytest.raises(InputError, match=r"give `judge='PROVIDER:NAME'`, or a config"):
        library.try_rubrics([RUBRIC])


def test_a_project_is_started_and_played() -> None:
    started = library.init("sample", ci="none")
    assert [str(file) for file in started.files] == ["baton.yaml", "desk.py", "evals/first.yaml"]
    evaluation = library.evaluate(config="baton.yaml")
    assert evaluation.status == "passed"
    assert evaluation.results[0].case_id == "first"


def test_traces_are_fetched_from_a_store(phoenix: FakeStore) -> None:
    (fetched, address) = library.pull_traces(
        "phoenix", "t.jsonl", url=phoenix.url, project="desk", trace=[TRACE]
    )
    assert (fetched.traces, fetched.cut, address) == (1, None, phoenix.url)
    assert len(library.load_traces("t.jsonl")) == 1
    with pytest.raises(InputError, match="`until` is not after `since`"):
        library.pull_traces("phoenix", "t.jsonl", since="2026-01-02", until="2026-01-01")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: library.compare(confidence=2), "`confidence` is between 0 and 1, got 2"),
        (lambda: library.trend(last=0), "`last` has to be at least 1, got 0"),
        (lambda: library.export_recordings([], "x.jsonl"), "name the files or folders to export"),
        (
            lambda: library.export_recordings("refund.sse", "x.jsonl", timeout=0),
            "`timeout` and `retry_attempts` have to be over 0, `retry_delay` at least 0",
        ),
        (lambda: library.init("sample", ci="jenkins"), "`ci`: `jenkins` is unknown"),
    ],
)
def test_a_message_names_options_as_python_has_them(call: Any, said: str) -> None:
    with pytest.raises(InputError) as raised:
        call()
    assert said in str(raised.value)
    assert "--" not in str(raised.value)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (
            {"type": "CustomLLMJudge", "name": "Scope", "rubric": "Is it in scope?"},
            "evaluators[0].rubric: is an option of `CustomLLMJudge`: put it under `config:`",
        ),
        (
            {"type": "SubAgentEvaluator", "min_match_ratio": 1},
            "evaluators[0].min_match_ratio: is an option of `SubAgentEvaluator`: put it under",
        ),
        ({"type": "agent_chain", "colour": 1}, "options of `agent_chain` go under `config:`"),
        ({"type": "agent_chain", "optionel": True}, "did you mean `optional`"),
    ],
)
def test_an_option_beside_the_type_of_an_evaluator_is_told_its_place(spec: Any, said: str) -> None:
    with pytest.raises(InputError) as raised:
        library.score("refund.sse", evaluators=[spec])
    assert said in str(raised.value)


@pytest.mark.parametrize("function", [library.score, library.evaluate])
def test_a_misspelt_option_is_one_error_with_a_similar_name(function: Any) -> None:
    wrong: Mapping[str, Any] = {"pas_rule": "all"}
    if function is library.evaluate:
        wrong = {"concurency": 1}
    with pytest.raises(InputError, match=r"did you mean `(pass_rule|concurrency)`\?") as raised:
        function([], lambda case: case, **wrong)
    assert raised.value.__context__ is None


def test_a_path_that_is_given_twice_counts_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "baton"):
        evaluation = library.score(["refund.sse", "./refund.sse"], ["cases.yaml", "cases.yaml"])
    assert (evaluation.status, len(evaluation)) == ("passed", 1)
    said = [record.getMessage() for record in caplog.records]
    assert "./refund.sse is given twice: it counts once" in said
    assert "cases.yaml is given twice: it counts once" in said


def test_a_note_goes_to_whoever_asks_for_it() -> None:
    notes: list[str] = []
    library.score(["refund.sse"] * 2, "cases.yaml", note=notes.append)
    assert notes == ["refund.sse is given twice: it counts once"]


def test_what_a_config_says_holds_unless_something_else_is_given() -> None:
    Path("c.yaml").write_text(
        "dataset: cases.yaml\nevaluators: [{type: agent_chain}, latency]\npass_rule: {mean: 0.1}\n"
    )
    by_config = library.score("refund.sse", config="c.yaml")
    assert [each.evaluator for each in by_config.evaluators] == ["agent_chain", "latency"]
    assert by_config.header.dataset == ["cases.yaml"]
    given = library.score("refund.sse", "cases.yaml", ["agent_chain"], config="c.yaml")
    assert [each.evaluator for each in given.evaluators] == ["agent_chain"]


def test_no_public_name_is_a_module_too() -> None:
    """A module takes the place of a function with its name as soon as it is imported."""
    package = Path(library.__file__).parent
    modules = {path.stem for path in package.glob("*.py")} | {
        p.parent.name for p in package.glob("*/__init__.py")
    }
    assert not modules & set(library.__all__)

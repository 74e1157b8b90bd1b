"""What ARCHITECTURE.md says of adding something is all that it takes: one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.extended import Copy, how_to_add, section_of

THINGS = ("A dialect", "A reader", "An evaluator", "A rubric", "A provider", "A report")
CASES = "cases: [{id: refund, input: Refund order 42., response: Refund order 42.}]"


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


@pytest.mark.parametrize("thing", THINGS)
def test_each_is_explained_in_a_few_lines(thing: str) -> None:
    lines = [line for line in section_of(thing).splitlines() if line.strip()]
    assert len(lines) < 25  # without blank lines, as the page says


def test_a_dialect_is_one_file(copy: Copy) -> None:
    copy.add(*how_to_add("A dialect"))
    spans = [
        span("1", None, kind="worker", name="clerk"),
        span("2", "1", kind="thought", out="Refunded."),
    ]
    document = {"resourceSpans": [{"scopeSpans": [{"scope": {"name": "acme"}, "spans": spans}]}]}
    copy.add("run.json", json.dumps(document))
    trace = json.loads(copy.run("show", "run.json", "--json").stdout)
    (turn,) = trace["turns"]
    assert trace["source"]["framework"] == "acme"
    assert ([run["agent"] for run in turn["runs"]], turn["output"]["text"]) == (
        ["clerk"],
        "Refunded.",
    )


def test_a_reader_is_one_file(copy: Copy) -> None:
    copy.add(*how_to_add("A reader"))
    values = {"acme_question": "Refund order 42.", "acme_agent": "clerk", "acme_answer": "Done."}
    copy.add("run.json", json.dumps(values))
    trace = json.loads(copy.run("show", "run.json", "--json").stdout)
    assert trace["source"]["format"] == "acme"
    assert trace["turns"][0]["runs"][0]["agent"] == "clerk"


def test_an_evaluator_is_one_file(copy: Copy) -> None:
    copy.add(*how_to_add("An evaluator"))
    copy.add("cases.yaml", CASES)
    code = (
        "import baton\n"
        "from baton.evaluators import ShortAnswers\n"
        "from baton.testing.build import trace, turn\n"
        "run = trace(turn('Refund order 42.', output='It is on its way.'), id='refund')\n"
        "for most in (2, 9):\n"
        "    evaluation = baton.score(run, 'cases.yaml', [ShortAnswers(max_words=most)])\n"
        "    print(evaluation.status, evaluation.results[0].scores[0].reason)\n"
    )
    assert copy.python("-c", code).stdout.splitlines() == [
        "failed turn 1: 5 words",
        "passed the answer is short",
    ]
    assert "whether answers are short" in copy.run("list", "short_answers").stdout


@pytest.mark.heavy
def test_a_rubric_is_one_file(copy: Copy) -> None:
    copy.add(*how_to_add("A rubric"))
    code = (
        "import sys, subprocess\n"
        "from baton.testing import Reply, llm_server\n"
        "with llm_server(Reply(answer={'label': 'missing'}, fill=True)) as llm:\n"
        "    import json; json.dump({'judge': llm.judge()}, open('baton.yaml', 'w'))\n"
        "    words = ['rubrics', 'test', 'names_the_order', '--config', 'baton.yaml']\n"
        "    sys.exit(subprocess.run([sys.executable, '-m', 'baton', *words]).returncode)\n"
    )
    tested = copy.python("-c", code)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "names_the_order" in copy.run("rubrics", "list").stdout


def test_a_provider_is_one_file(copy: Copy) -> None:
    copy.add(*how_to_add("A provider"))
    copy.add("cases.yaml", CASES)
    copy.add("baton.yaml", "dataset: cases.yaml\nproviders: [{type: echo}]\nevaluators: [equals]")
    played = copy.run("eval", "baton.yaml")
    assert played.returncode == 0, played.stdout + played.stderr
    assert "answers every message" in copy.run("list", "echo").stdout


def test_a_report_is_one_file(copy: Copy) -> None:
    copy.add(*how_to_add("A report"))
    copy.add("cases.yaml", CASES)
    copy.add(
        "baton.yaml",
        "dataset: cases.yaml\nproviders: [{type: mock}]\nevaluators: [equals]\n"
        "reporters: [{type: names, output_path: names.txt}]",
    )
    assert copy.run("eval", "baton.yaml").returncode == 1
    assert (copy.folder / "names.txt").read_text() == "refund\n"


def span(id_: str, parent: str | None, **values: str) -> dict[str, Any]:
    return {
        "traceId": "a" * 32,
        "spanId": id_ * 16,
        "name": "work",
        "startTimeUnixNano": "10000000000",
        "endTimeUnixNano": "11000000000",
        "attributes": [
            {"key": f"acme.{key}", "value": {"stringValue": value}} for key, value in values.items()
        ],
        **({"parentSpanId": parent * 16} if parent else {}),
    }

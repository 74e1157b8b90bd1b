"""`baton rubrics`: listing, showing as sent, and trying rubrics on their examples."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conftest import ROOT, Baton
from tests.evaluators.judged.scripted import expected_answer

from baton.cli.rubrics import print_list
from baton.evaluators.judged import Judged
from baton.evaluators.judging.rubric import Example, Rubric
from baton.evaluators.judging.rubric_files import shipped
from baton.reports.text import console_for
from baton.session.rubrics import ListedRubric
from baton.testing import LlmServer, Received, llm_server

CLAUDE = ROOT / "tests" / "data" / "claude" / "current"
RUBRIC = """\
name: polite
summary: whether an answer is polite
unit: turn
version: "1"
threshold: 1
inputs: [request, answer]
prompt: Is the answer polite?
answer:
  choices: {yes: {score: 1, means: it is}, no: {score: 0, means: it is not}}
tests:
- {name: thanks, inputs: {request: Bye., answer: Thank you!}, label: yes}
- {name: grunts, inputs: {request: Bye., answer: Hm.}, label: no}
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "polite.yaml").write_text(RUBRIC)
    return tmp_path / "own"


def config(tmp_path: Path, judge: dict[str, Any], **more: Any) -> Path:
    file = tmp_path / "baton.yaml"
    told = {"rubrics": ["own"], "judge": {**judge, "retries": 0, "cache": False}, **more}
    file.write_bytes(msgspec.json.encode(told))
    return file


def says(label: str, other: str | None = None) -> Iterator[dict[str, Any]]:
    for each in (label, other or label):
        yield {"reason": "so it is", "quote": "", "label": each}


def test_list_shows_all_with_unit_answer_threshold_version_and_calibration(
    baton: Baton, own: Path
) -> None:
    outcome = baton("rubrics", "list", "--rubrics", own)
    assert outcome.code == 0
    rows = {line.split()[0]: line for line in outcome.out.splitlines()[1:]}
    shown = rows["dispatch_correctness"]
    for word in ("dispatch", "≥ 0.85", "not calibrated", "correct / weak / wrong"):
        assert word in shown
    assert "whether an answer is polite" in rows["polite"]


def test_show_prints_the_file(baton: Baton, own: Path) -> None:
    assert baton("rubrics", "show", "polite", "--rubrics", own).out == RUBRIC
    assert baton("rubrics", "show", "ScopeFidelity").out.startswith("name: scope_fidelity\n")
    outcome = baton("rubrics", "show", "scope_fidelty")
    assert outcome.code == 2
    assert "did you mean `scope_fidelity`" in outcome.err


def test_show_with_a_trace_prints_each_request_as_it_would_be_sent(baton: Baton) -> None:
    session = CLAUDE / "14_unknown_type" / "session"
    outcome = baton("rubrics", "show", "dispatch_correctness", "--trace", session)
    assert outcome.code == 0, outcome.err
    assert "no judge would be asked: failed, settled by `target_known`" in outcome.out
    for part in ("## instructions", "## material", "## form of the answer", "canary-"):
        assert outcome.out.count(part) >= 1
    one = baton(
        "rubrics", "show", "scope_fidelity", "--trace", session, "--subject", "dispatch2"
    ).out
    assert one.startswith("# scope_fidelity 3: dispatch dispatch2\n")
    assert "dispatch1\n" not in one
    missed = baton(
        "rubrics", "show", "scope_fidelity", "--trace", session, "--subject", "dispatch7"
    )
    assert missed.code == 2
    assert "did you mean `dispatch1`" in missed.err


def test_show_uses_the_options_of_a_config(baton: Baton, tmp_path: Path, own: Path) -> None:
    spec = {"type": "llm_judge", "name": "colour", "config": {"rubric": "It names a colour."}}
    file = config(tmp_path, {"model": "openai:m", "api_key": "${HOME}"}, evaluators=[spec])
    session = CLAUDE / "01_correct_dispatch" / "session"
    outcome = baton("rubrics", "show", "colour", "--trace", session, "--config", file)
    assert outcome.code == 0, outcome.err
    assert "It names a colour." in outcome.out


def test_test_asks_the_judge_and_tells_where_it_answers_otherwise(
    baton: Baton, tmp_path: Path, own: Path
) -> None:
    with llm_server() as server:
        server.script = list(says("yes", "no"))
        file = config(tmp_path, server.judge())
        outcome = baton("rubrics", "test", "--config", file)
        assert outcome.code == 0, outcome.err
        assert outcome.out.splitlines() == [
            "as expected  polite: thanks",
            "as expected  polite: grunts",
        ]
        server.script = list(says("yes"))
        outcome = baton("rubrics", "test", "polite", "--config", file)
        assert outcome.code == 1
        assert "otherwise  polite: grunts  it says `yes`, not `no`  so it is" in outcome.out


def test_every_rubric_that_ships_has_examples_that_a_judge_can_be_tried_on(
    baton: Baton, tmp_path: Path, own: Path
) -> None:
    def right(request: Received) -> Any:
        def shown(rubric: Rubric, example: Example) -> int:
            """How many characters of the example the judge is shown; -1 if it is another one."""
            asked = Judged(rubric, **example.config).rubric.prompt.splitlines()[0]
            lines = [line for text in example.inputs.values() for line in text.splitlines()]
            if asked not in request.system or any(line not in request.user for line in lines):
                return -1
            return sum(map(len, lines))

        every = [(rubric, example) for rubric in shipped().values() for example in rubric.tests]
        rubric, example = max(every, key=lambda each: shown(*each))
        return expected_answer(request.schema or {}, example, rubric)

    with llm_server(right) as server:
        outcome = baton("rubrics", "test", *shipped(), "--config", config(tmp_path, server.judge()))
    assert outcome.code == 0, outcome.out
    count = sum(len(rubric.tests) for rubric in shipped().values())
    assert outcome.out.count("as expected") == count


def test_test_ends_with_3_when_the_judge_gives_no_verdict(
    baton: Baton, tmp_path: Path, own: Path
) -> None:
    with llm_server({"maybe": 1}) as server:
        outcome = baton("rubrics", "test", "--config", config(tmp_path, server.judge()))
    assert outcome.code == 3
    assert "no verdict  polite: thanks  unparsable" in outcome.out


def test_test_needs_a_judge_and_examples(baton: Baton, own: Path) -> None:
    outcome = baton("rubrics", "test", "--rubrics", own)
    assert (outcome.code, "no judge to ask" in outcome.err) == (2, True)
    outcome = baton("rubrics", "test", "--judge", "openai:m")
    assert (outcome.code, "no example to test" in outcome.err) == (2, True)


def test_score_judges_recordings_by_rubrics_of_ones_own(
    baton: Baton, tmp_path: Path, own: Path
) -> None:
    session = CLAUDE / "01_correct_dispatch" / "session"

    def go(server: LlmServer, label: str) -> tuple[int, str]:
        server.script = list(says(label))
        file = config(tmp_path, server.judge(), evaluators=["polite"])
        outcome = baton("score", session, "--config", file)
        return outcome.code, outcome.out + outcome.err

    with llm_server() as server:
        assert go(server, "yes")[0] == 0
        code, printed = go(server, "no")
        assert code == 1
        assert "so it is" in printed


def test_a_file_may_stand_where_an_evaluator_is_named(
    baton: Baton, tmp_path: Path, own: Path
) -> None:
    session = CLAUDE / "01_correct_dispatch" / "session"
    with llm_server(next(says("yes"))) as server:
        file = config(tmp_path, server.judge(), rubrics=[])
        outcome = baton("score", session, "-e", own / "polite.yaml", "--config", file)
        assert outcome.code == 0, outcome.err
    outcome = baton("score", session, "-e", own / "police.yaml", "--judge", "openai:m")
    assert (outcome.code, "no such file" in outcome.err) == (2, True)


def test_a_file_may_stand_for_a_rubric_in_show_and_test(
    baton: Baton, tmp_path: Path, own: Path
) -> None:
    file = own / "polite.yaml"
    session = CLAUDE / "01_correct_dispatch" / "session"
    assert baton("rubrics", "show", file).out == RUBRIC
    assert baton("rubrics", "show", file, "--trace", session).out.startswith("# polite 1: turn ")
    with llm_server(list(says("yes", "no"))) as server:
        settings = config(tmp_path, server.judge())
        outcome = baton("rubrics", "test", file, "-c", settings)
    assert (outcome.code, outcome.out.count("as expected")) == (0, 2)


def test_a_rubric_without_a_known_answer_is_checked_as_a_rubric(baton: Baton, own: Path) -> None:
    (own / "rude.yaml").write_text(RUBRIC.replace("answer:\n", "answr:\n"))
    outcome = baton("check", own / "rude.yaml")
    assert outcome.code == 2
    assert "answr: unknown key; did you mean `answer`?" in outcome.err


def test_check_knows_rubrics(baton: Baton, own: Path) -> None:
    outcome = baton("check", own)
    assert (outcome.code, outcome.out.split(": ")[1]) == (0, "rubric `polite`, 2 examples\n")
    (own / "rude.yaml").write_text(RUBRIC.replace("unit: turn", "unit: turns"))
    outcome = baton("check", own / "rude.yaml")
    assert outcome.code == 2
    assert "rude.yaml:3: unit: `turns` is not one of" in outcome.err


def test_names_stay_whole_where_the_terminal_is_too_narrow_for_a_table() -> None:
    narrow = console_for(io.StringIO())
    narrow.width = 80
    print_list([ListedRubric(each, []) for each in shipped().values()], narrow)
    told = narrow.file.getvalue()  # type: ignore[attr-defined]
    assert "rubric_based_multi_turn_trajectory_quality_v1  each trace, passes ≥ 0.8" in told
    assert "…" not in told

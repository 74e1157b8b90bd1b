"""What commands do can be called as functions, and gives the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton

from baton.config.judge_config import JudgeFlags
from baton.formats.evaluation_header import Request
from baton.model import InputError
from baton.session.baselines import open_baseline, set_baseline
from baton.session.check import check
from baton.session.compare import compare
from baton.session.convert import convert, draft
from baton.session.evaluate import Listener, evaluate_files
from baton.session.report import Written
from baton.session.score import estimate_scoring, score_files
from baton.store import read_evaluation

pytestmark = pytest.mark.usefixtures("folder")


class Heard:
    """Keeps what an evaluation says while it runs."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.totals: list[int] = []
        self.results: list[object] = []

    def progress(self, total: int) -> Heard:
        self.totals.append(total)
        return self

    def add(self, result: object) -> None:
        self.results.append(result)

    def close(self) -> None:
        self.totals.append(0)

    @property
    def listener(self) -> Listener:
        return Listener(progress=self.progress)


def scored(**more: Any) -> Written:
    return score_files(
        ["refund.sse"], ["cases.yaml"], **{"out": Path("out"), "note": print, **more}
    )


def test_scoring_prints_nothing_and_gives_the_folder(capsys: pytest.CaptureFixture[str]) -> None:
    written = scored()
    evaluation = read_evaluation(written.folder)
    assert evaluation.header.status == "passed"
    assert [row.case_id for row in evaluation.rows()] == ["refund"]
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("jobs", [1, 2])
def test_scoring_as_a_function_and_as_a_command_is_the_same(baton: Baton, jobs: int) -> None:
    written = scored(jobs=jobs, name="run")
    outcome = baton("score", "refund.sse", "-d", "cases.yaml", "--out", "told", "--name", "run")
    assert outcome.code == 0
    (told,) = Path("told").iterdir()
    for name in ("index.jsonl", "bodies.jsonl"):
        assert (written.folder / name).read_bytes() == (told / name).read_bytes()


def test_an_estimate_without_a_judge_is_none_and_leaves_no_folder() -> None:
    rehearsal = JudgeFlags(rehearsal=True)
    assert estimate_scoring(["refund.sse"], ["cases.yaml"], judge=rehearsal) is None
    assert not Path("out").exists()


def test_evaluating_tells_each_result_and_an_evaluation_can_be_resumed() -> None:
    heard = Heard()
    asked = Request(target=["desk_agent.py:reply"], dataset=["cases.yaml"])
    done = evaluate_files(asked, out=Path("out"), listener=heard.listener, repeat=2)
    ((name, folder),) = done.variants
    assert name is None
    assert heard.totals == [2, 0]
    assert len(heard.results) == 2
    again = Request(target=["desk_agent.py:reply"])
    assert evaluate_files(again, out=Path("out"), resume=folder).variants[0].folder == folder
    with pytest.raises(InputError, match="`resume` and `only_failed` exclude one another"):
        evaluate_files(Request(), out=Path("out"), resume=folder, only_failed=folder)


def test_a_baseline_is_kept_shown_and_compared_with() -> None:
    folder = scored().folder
    kept, file = set_baseline(folder)
    assert open_baseline() == (kept, file)
    compared = compare(after=folder)
    assert not compared.refused


def test_checking_says_what_each_file_is() -> None:
    lines: list[str] = []
    Path("broken.yaml").write_text("cases: [{id: a, inputt: hi}]\n")
    files = [Path("cases.yaml"), Path("refund.sse"), Path("broken.yaml")]
    checked = check(files, on_file=lines.append)
    assert [line.split(":")[0] for line in lines] == ["cases.yaml", "refund.sse"]
    assert "input" in str(checked.problems[0])


def test_cases_are_drafted_from_runs_and_written_in_other_dialects() -> None:
    drafted = draft("refund.sse")
    assert "billing_agent" in drafted
    Path("drafted.yaml").write_text(drafted)
    converted = convert("drafted.yaml", "adk", "adk.json")
    assert converted.cases == converted.converted.written == 1
    assert Path("adk.json").is_file()

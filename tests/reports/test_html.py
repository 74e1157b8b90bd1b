"""The HTML report: one file, whole, and inert whatever stands in it."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton, report_of
from tests.reports.desk import write_desk
from tests.reports.hostile import hostile_evaluation, hostile_texts

from baton.model import Status
from baton.model.visible import LINE_BREAKS, UNSEEN
from baton.testing.build import evaluation, result, score


class Page:
    """A page taken apart."""

    def __init__(self, text: str) -> None:
        self.text = text
        found = re.search(
            r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL
        )
        assert found is not None
        self.data = json.loads(found[1])
        blocks = re.findall(
            r'<script type="application/octet-stream" id="block\d+">(.*?)</script>', text
        )
        views = [json.loads(gzip.decompress(base64.b64decode(block))) for block in blocks]
        self.cases: list[dict[str, Any]] = [
            views[row["block"]][row["place"]] for row in self.data["rows"]
        ]


def page_of(baton: Baton, folder: Path) -> Page:
    return Page(report_of(baton, folder, "html"))


def desk(baton: Baton, folder: Path, cases: int) -> Page:
    file = folder / "report.html"
    assert baton(*write_desk(folder, cases), "--html", file).code == 1
    return Page(file.read_text("utf-8"))


def test_repeats_of_which_the_same_is_said_are_one_row_of_the_list(tmp_path: Path) -> None:
    statuses: dict[str, Status] = {"+": "passed", "-": "failed", "e": "error"}
    made = evaluation(
        *(
            result(statuses[mark], id=name, position=position, repeat=repeat)
            for position, (name, marks) in enumerate([("a", "+-+-e"), ("b", "--"), ("c", "+-")])
            for repeat, mark in enumerate(marks)
        )
    )
    file = tmp_path / "report.html"
    made.to_html(file)
    rows = Page(file.read_text("utf-8")).data["rows"]
    assert [row.get("same") for row in rows] == [None, None, 0, 1, None, None, 5, None, None]


def test_it_holds_every_case_with_scores_place_tags_and_trace(baton: Baton, tmp_path: Path) -> None:
    page = desk(baton, tmp_path, 40)
    rows = page.data["rows"]
    assert [row["id"] for row in rows][:2] == ["refund_0000", "shipping_0001"]
    assert page.data["summary"]["cases"]["failed"] == sum(row["status"] == 1 for row in rows) > 0
    assert len(page.cases) == 40
    first = page.cases[0]
    assert first["where"].endswith("desk.jsonl:1")
    assert [page.data["names"]["tags"][tag] for tag in rows[0]["tags"]] == ["refund", "vip"]
    assert [score["evaluator"] for score in first["scores"]] == [
        "result_used", "agent_chain", "dispatch_routing", "dispatch_completed", "context_carried",
    ]  # fmt: skip
    (run,) = first["trace"]["turns"][0]["runs"]
    handed = next(step for step in run["steps"] if step["type"] == "dispatch")
    assert (run["agent"], handed["run"]["agent"]) == ("front_desk", "billing_agent")
    assert [step["type"] for step in handed["run"]["steps"]] == ["call", "said"]


def test_a_wrong_chain_stands_side_by_side(baton: Baton, tmp_path: Path) -> None:
    page = desk(baton, tmp_path, 40)
    wrong = next(
        score
        for case in page.cases
        for score in case["scores"]
        if (score["evaluator"], score["status"]) == ("agent_chain", "failed")
    )
    (chain,) = wrong["chains"]
    assert chain["columns"][0] == ["front_desk", "front_desk"]
    expected, actual = chain["columns"][1]
    assert expected != actual


def test_the_same_advice_is_given_once_for_a_case(tmp_path: Path) -> None:
    advice = {"fix": "look at the instructions of `desk`"}
    scores = [
        score("failed", evaluator=name, details=advice)
        for name in ("agent_chain", "dispatch_routing")
    ]
    file = tmp_path / "report.html"
    evaluation(result(*scores)).to_html(file)
    (case,) = Page(file.read_text("utf-8")).cases
    assert [each["fix"] for each in case["scores"]] == [advice["fix"], None]


@pytest.mark.heavy
def test_what_is_the_same_is_held_once_and_packed(baton: Baton, tmp_path: Path) -> None:
    page = desk(baton, tmp_path, 200)
    assert len(page.text) < (tmp_path / "runs.jsonl").stat().st_size / 5


def test_no_text_gets_out_of_its_place(baton: Baton, tmp_path: Path) -> None:
    texts = hostile_texts()
    page = page_of(baton, hostile_evaluation(tmp_path, texts))
    assert [row["id"] for row in page.data["rows"]] == texts
    bare = re.sub(r"<script\b.*?</script>|<style>.*?</style>", "", page.text, flags=re.DOTALL)
    assert "hacked" not in bare.replace(f"<title>{html.escape(texts[0])}</title>", "")
    assert bare.count("<title>") == 1
    (data,) = re.findall(r'id="data">(.*?)</script>', page.text, re.DOTALL)
    assert not set("<>&") & set(data)
    for case, text in zip(page.cases, texts, strict=True):
        assert case["scores"][0]["reason"] == text


def test_the_policy_lets_its_own_script_and_style_run_and_nothing_else(
    baton: Baton, tmp_path: Path
) -> None:
    text = page_of(baton, hostile_evaluation(tmp_path, hostile_texts())).text
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="(.*?)"', text)
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    assert rules["default-src"] == "'none'"
    assert (rules["script-src"], rules["style-src"]) == (allowed(scripts), allowed(styles))
    assert rules["img-src"] == "data:"
    bare = re.sub(r"<script\b.*?</script>", "", text, flags=re.DOTALL)
    assert re.findall(r"\b(?:src|href|on\w+)=\"(.*?)\"", bare) == ["data:,"]


def allowed(texts: list[str]) -> str:
    (text,) = texts
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_the_script_makes_text_nodes_and_never_markup() -> None:
    assets = Path(__file__).parents[2] / "src" / "baton" / "reports" / "html" / "assets"
    for file in assets.glob("*.js"):
        script = file.read_text("utf-8")
        for way in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "Function(",
        ):
            assert way not in script, (file.name, way)
        assert "</script" not in script
        assert "<!--" not in script


def test_modules_export_what_others_import_and_characters_are_those_of_all_reports() -> None:
    assets = Path(__file__).parents[2] / "src" / "baton" / "reports" / "html" / "assets"
    texts = {file.name: file.read_text("utf-8") for file in assets.glob("*.js")}
    for name, text in texts.items():
        for line in re.findall(r"^import .*$", text, re.MULTILINE):
            imported = re.fullmatch(r'import \{ (.*) \} from "\./(.*)";', line)
            assert imported is not None, (name, line)
            for each in imported[1].split(", "):
                said = rf"^export (?:async )?(?:function|const|class) {each}\b"
                assert re.search(said, texts[imported[2]], re.MULTILINE), (name, each)
    pairs = re.findall(r'\["([0-9a-f]+)", "([0-9a-f]+)"\]', texts["invisible.js"])
    assert [(int(first, 16), int(last, 16)) for first, last in pairs] == [*UNSEEN, *LINE_BREAKS]


def test_a_recorded_trace_that_is_gone_is_reported(baton: Baton, tmp_path: Path) -> None:
    arguments = write_desk(tmp_path, 3)
    baton(*arguments)
    (folder,) = (tmp_path / "out").iterdir()
    (tmp_path / "runs.jsonl").unlink()
    page = page_of(baton, folder)
    assert all("trace" not in case for case in page.cases)
    assert page.cases[0]["untold"] == "it is no longer where it was read from"


def test_a_case_without_a_trace_has_its_error(baton: Baton, tmp_path: Path) -> None:
    arguments = write_desk(tmp_path, 3)
    lines = (tmp_path / "runs.jsonl").read_text().splitlines()
    (tmp_path / "runs.jsonl").write_text("\n".join(lines[:2]))
    outcome = baton(*arguments, "--html", tmp_path / "report.html")
    assert outcome.code == 3
    last = Page((tmp_path / "report.html").read_text("utf-8")).cases[2]
    assert last["error"] == "no trace for case `account_0002`"
    assert last["untold"] == "nothing was recorded"
    assert last["where"].endswith("desk.jsonl:3")


@pytest.mark.parametrize("status", ["running", "interrupted"])
def test_an_evaluation_that_did_not_end_has_a_page(
    baton: Baton, tmp_path: Path, status: str
) -> None:
    baton(*write_desk(tmp_path, 3))
    (folder,) = (tmp_path / "out").iterdir()
    header = json.loads((folder / "evaluation.json").read_text("utf-8"))
    (folder / "evaluation.json").write_text(json.dumps({**header, "status": status}))
    page = page_of(baton, folder)
    assert page.data["summary"]["status"] == status
    assert len(page.cases) == 3

"""The pages of rubrics: read, written, versioned, and tried before they are saved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest
from tests.cli.labelled import answer, hand_off
from tests.server.seeding import START, add_conversation
from tests.server.test_rubrics import TEXT

from baton.evaluators.judging.rubric_files import FOLDER
from baton.server.access import Caller, create_key
from baton.server.labels import add_label
from baton.server.settings import Settings
from baton.server.store import Store
from baton.server.trials import work_on_trials
from baton.testing import LlmServer, llm_server

from .asking import Visitor
from .serving import web


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "rubrics"
    made.mkdir()
    (made / "polite.yaml").write_text(TEXT)
    return made


@pytest.fixture(scope="module")
def llm() -> Iterator[LlmServer]:
    with llm_server(answer) as running:
        yield running


@pytest.fixture
def visitor(store: Store, folder: Path, llm: LlmServer) -> Iterator[Visitor]:
    settings = {"rubrics": str(folder), "judges": {"x": llm.judge(retries=0)}}
    with web(store, settings) as address:
        yield Visitor(address, "/rubrics")


def digest(text: str) -> str:
    return text.split('name="digest" value="')[1].split('"', maxsplit=1)[0]


def test_the_list_has_ones_own_first_and_what_is_wrong_with_them(
    visitor: Visitor, folder: Path
) -> None:
    (folder / "broken.yaml").write_text(TEXT.replace("threshold: 1", "threshold: 7"))
    text = unescape(visitor.get("/rubrics").text)
    assert text.index("polite</b>") < text.index("scope_fidelity</b>") < text.index("pii</b>")
    assert "broken.yaml:6" in text
    assert "never reached" in text
    assert str(folder) not in text.split("<tbody>")[1].split("</tbody>")[0]
    assert "never reached" in visitor.get("/rubrics/broken").text
    assert visitor.get("/rubrics/nothing").status == 404
    assert visitor.get("/rubrics/..%2f..%2fetc%2fpasswd").status == 404


def test_the_list_is_filtered_by_what_it_shows(visitor: Visitor, folder: Path) -> None:
    (folder / "broken.yaml").write_text(TEXT.replace("threshold: 1", "threshold: 7"))

    def names(query: str) -> list[str]:
        rows = (
            visitor.get(f"/rubrics?{query}").text.partition("<tbody>")[2].partition("</tbody>")[0]
        )
        return re.findall(r"<b>(\w+)</b>", rows)

    assert names("in=own") == ["polite", "broken"]
    assert names("in=broken") == ["broken"]
    assert names("text=POLITE") == ["polite"]
    assert "polite" not in names("unit=turn")
    assert set(names("unit=dispatch&in=rules")) <= set(names("unit=dispatch")) < set(names(""))
    assert "No rubric matches this filter." in visitor.get("/rubrics?text=nothing+here").text
    assert visitor.get("/rubrics?unit=odd").status == 400


def test_a_rubric_is_saved_with_its_version_counted_up(visitor: Visitor, folder: Path) -> None:
    form = {"name": "polite", "digest": digest(visitor.get("/rubrics/polite").text)}
    new = TEXT.replace("is the result polite", "is it kind").replace("\n", "\r\n")
    refused = visitor.post("/rubrics/save", {**form, "text": new})
    assert (refused.status, "write 2" in refused.text) == (422, True)
    assert "is it kind" in refused.text, "what was written is still there"
    saved = visitor.post("/rubrics/save", {**form, "text": new, "next_version": "1"})
    assert saved.headers["Location"] == "/rubrics/polite?saved=1"
    text = (folder / "polite.yaml").read_text()
    assert 'version: "2"\n' in text
    assert "\r" not in text
    page = visitor.get("/rubrics/polite").text
    assert "Earlier versions" in page
    assert '<span class="lost">-prompt:' in page


def test_what_was_edited_by_hand_is_shown_before_it_is_overwritten(
    visitor: Visitor, folder: Path
) -> None:
    file = folder / "polite.yaml"
    form = {"name": "polite", "digest": digest(visitor.get("/rubrics/polite").text)}
    file.write_text(TEXT.replace("is polite\n", "is polite, by hand\n"))
    mine = {"text": TEXT.replace("is polite\n", "is polite, in the page\n")}
    refused = visitor.post("/rubrics/save", {**form, **mine})
    assert refused.status == 409
    assert "was changed in the meantime" in refused.text
    assert "-summary: whether the answer is polite, by hand" in refused.text
    assert "by hand" in file.read_text()
    again = {**form, **mine, "digest": digest(refused.text)}
    assert visitor.post("/rubrics/save", again).status == 303
    assert "in the page" in file.read_text()


def test_a_rubric_is_tried_on_labels_before_it_is_saved(
    visitor: Visitor, store: Store, folder: Path, llm: LlmServer
) -> None:
    for n, says in enumerate(["correct", "wrong", "correct", "weak"]):
        add_conversation(store, hand_off(n, says), at=START + n)
    for n, said in enumerate(["correct", "wrong", "wrong"]):
        line = f'{{"trace": "trace{n}", "subject": "d1", "rubric": "dispatch_correctness", '
        body = f'{line}"value": "{said}"}}'.encode()
        add_label(store, Caller(1, "ann", frozenset({"review"})), body)
    shipped = (FOLDER / "dispatch_correctness.yaml").read_text()
    page = visitor.get("/rubrics/new?from=dispatch_correctness").text
    assert "name: my_dispatch_correctness" in page
    text = shipped.replace("name: dispatch_correctness\n", "name: mine\n")
    text = "\n".join(line for line in text.splitlines() if not line.startswith("aliases"))
    form = {"text": text, "on": "labelled", "labels": "dispatch_correctness", "judge": "x"}
    started = visitor.post("/rubrics/try", form)
    where = started.headers["Location"]
    assert where.startswith("/rubrics/trials/1?")
    assert "waiting for a worker" in visitor.get(where).text
    settings = Settings(judges={"x": llm.judge(retries=0)})
    while work_on_trials(store, settings, START * 2):
        pass
    done = unescape(visitor.get(where).text)
    assert "<b>0.67</b>" in done, "two of three are as people said"
    assert 'class="person differs" title="ann">wrong' in done
    assert "name: mine" in done
    part = visitor.get("/rubrics/trials/1/part").text
    assert 'data-state="done"' in part
    assert "<html" not in part
    assert sorted(each.name for each in folder.iterdir()) == ["polite.yaml"]
    assert visitor.get("/rubrics/trials/9").status == 404
    nothing = visitor.post("/rubrics/try", {**form, "labels": "polite"})
    assert (nothing.status, "no label by `polite`" in nothing.text) == (422, True)


def test_who_may_not_run_neither_writes_nor_tries(store: Store, folder: Path) -> None:
    key = create_key(store, "default", "reader", ["review"])
    with web(store, {"rubrics": str(folder)}) as address:
        reader = Visitor(address, "/sign-in")
        reader.post("/sign-in", {"key": key})
        page = reader.get("/rubrics/polite").text
        assert "readonly" in page
        assert "/rubrics/save" not in page
        form = {"name": "polite", "digest": digest(page), "text": TEXT + "# more\n"}
        assert reader.post("/rubrics/save", form).status == 403
        assert reader.post("/rubrics/try", form).status == 403
    assert (folder / "polite.yaml").read_text() == TEXT


def test_files_are_not_written_where_other_machines_reach_the_server(
    store: Store, folder: Path
) -> None:
    create_key(store, "default", "first", ["admin"])
    key = create_key(store, "default", "runner", ["run"])
    with web(store, {"rubrics": str(folder), "host": "0.0.0.0"}) as address:  # noqa: S104
        runner = Visitor(address, "/sign-in")
        runner.post("/sign-in", {"key": key})
        page = runner.get("/rubrics/polite").text
        assert "--allow-run" in page
        form = {"name": "polite", "digest": digest(page), "text": TEXT + "# more\n"}
        assert runner.post("/rubrics/save", form).status == 403
    assert (folder / "polite.yaml").read_text() == TEXT

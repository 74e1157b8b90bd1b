"""Review and rubrics in a real browser: a label by one key, and what comes of it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.cli.labelled import RUBRIC, answer, hand_off, write_config
from tests.server.seeding import START, add_conversation, add_score
from tests.server.test_rubrics import TEXT

from baton.server.labels import labels_of
from baton.server.settings import Settings
from baton.server.store import Store, open_store
from baton.server.trials import work_on_trials
from baton.testing import LlmServer, llm_server

from .serving import web

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.heavy


class Shared(NamedTuple):
    address: str
    store: Store
    llm: LlmServer
    folder: Path


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    folder = tmp_path_factory.mktemp("review")
    (folder / "rubrics").mkdir()
    (folder / "rubrics" / "polite.yaml").write_text(TEXT)
    store = open_store(folder / "server")
    for n, says in enumerate(["correct", "wrong", "correct", "wrong"]):
        number = add_conversation(store, hand_off(n, says), at=START + n, verdict="failed")
        judged = {"evaluator": RUBRIC, "type": RUBRIC, "dispatch": "d1", "status": "failed"}
        add_score(store, number, **judged, reason="<b>thin</b>", details='{"label": "weak"}')  # type: ignore[arg-type]
    with llm_server(answer) as llm:
        settings = {"rubrics": str(folder / "rubrics"), "judges": {"x": llm.judge(retries=0)}}
        with web(store, settings) as address:
            yield Shared(address, store, llm, folder)
    store.close()


def test_labels_by_key_change_what_baton_calibrate_says(browser: Browser, shared: Shared) -> None:
    from .browsing import tab

    config = write_config(shared.folder, shared.llm.judge())
    server = shared.address.replace("http://", "server://")

    def agreement() -> float:
        words = ["calibrate", RUBRIC, server, "-c", str(config), "--json"]
        command = [sys.executable, "-m", "baton", *words]
        ended = subprocess.run(command, check=False, capture_output=True, cwd=shared.folder)
        assert ended.returncode == 3, "few labels are no evidence"
        value: float = json.loads(ended.stdout)["judges"][0]["quality"]["agreement"]["value"]
        return value

    with tab(browser, shared.address) as (page, wrong):
        page.goto("/review")
        page.get_by_label("Label as").fill("Kim")
        page.get_by_role("button", name="Change").click()
        page.wait_for_url("**/review?rubric=*")
        page.keyboard.press("n")
        page.wait_for_url("**/review/4/d1?*")
        page.keyboard.press("?")
        assert "Label: wrong" in page.locator("#keys-help").inner_text()
        page.keyboard.press("Escape")
        page.locator("#card").get_by_text("Exactly what was asked").wait_for()
        assert page.get_by_text("<b>thin</b>").count() == 0, "not before a label"
        page.keyboard.press("v")
        page.get_by_role("heading", name="What the caller did next").wait_for()
        page.keyboard.press("c")
        page.keyboard.type("the finder cannot find it 1")
        page.keyboard.press("Escape")
        page.keyboard.press("3")
        page.wait_for_url("**/review/3/d1?*")
        assert "You said wrong" in page.locator(".last").inner_text()
        assert "<b>thin</b>" in page.locator(".last").inner_text()
        assert agreement() == 1.0, "the judge says wrong, too"
        page.keyboard.press("3")
        page.wait_for_url("**/review/2/d1?*")
        assert agreement() == 0.5
        page.keyboard.press("u")
        page.wait_for_url("**/review/3/d1?*")
        page.keyboard.press("1")
        page.wait_for_url("**/review/2/d1?*")
        assert agreement() == 1.0, "what is said last counts"
        said = [(one.trace, one.value, one.by) for one in labels_of(shared.store, 1).items]
        assert said == [
            ("trace2", "correct", "Kim"),
            ("trace2", "wrong", "Kim"),
            ("trace3", "wrong", "Kim"),
        ]
        page.keyboard.press("s")
        page.wait_for_url("**/review/1/d1?*")
        assert wrong == []


def test_a_rubric_is_tried_while_one_looks_on_and_then_saved(
    browser: Browser, shared: Shared
) -> None:
    from .browsing import tab

    settings = Settings(judges={"x": shared.llm.judge(retries=0)})
    shared.llm.script = {"reason": "as asked", "quote": "", "label": "polite"}
    with tab(browser, shared.address) as (page, wrong):
        page.goto("/rubrics/polite")
        text = page.get_by_label("The rubric, in YAML")
        text.fill(TEXT.replace("is the result polite", "is it kind"))
        page.get_by_label("the newest ones that match a filter").check()
        page.get_by_role("button", name="Try, without saving").click()
        page.wait_for_url("**/rubrics/trials/*")
        worker = threading.Thread(target=work_on_trials, args=(shared.store, settings, START * 2))
        worker.start()
        page.locator('#trial[data-state="done"]').wait_for()
        worker.join()
        assert page.locator("#trial tbody tr").count() == 4
        assert "is it kind" in text.input_value()
        page.get_by_role("button", name="Save").click()
        page.wait_for_url("**/rubrics/polite?saved=1")
        assert 'version: "2"' in text.input_value()
        assert page.get_by_role("heading", name="Earlier versions").is_visible()
        assert [each for each in wrong if "409" not in each] == []


@pytest.mark.parametrize(("dark", "width"), [(False, 390), (True, 1280)])
def test_review_and_rubrics_keep_nobody_out(
    browser: Browser, shared: Shared, dark: bool, width: int
) -> None:
    from .browsing import axe_violations, scrolls_sideways, tab

    with tab(browser, shared.address, width=width, dark=dark) as (page, wrong):
        for path in ("/review", "/review/1/d1", "/rubrics/polite"):
            page.goto(path)
            assert axe_violations(page) == [], path
            assert not scrolls_sideways(page), path
        assert wrong == []

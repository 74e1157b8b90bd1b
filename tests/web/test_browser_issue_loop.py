"""The whole loop of an issue in a browser, with a real worker and a scripted model.

A conversation fails, its issue is investigated, its fix is proven by a replay, its cases are kept;
the fixed agent closes it, and the broken one opens it again: each step is a click.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import ROOT
from tests.feed.test_investigate import because, conclude, look

import baton
from baton.feed.issue_progress import DIMENSIONS
from baton.server.settings import load_settings
from baton.server.store import open_store
from baton.server.worker import run
from baton.session.evaluate import evaluate_into
from baton.testing import Received, Reply, llm_server

from .serving import web

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.heavy
THINGS = ["a lamp", "two chairs", "the old desk", "my red bicycle", "a broken phone"]
PROMPT = "Hand refunds to billing. Hand parcels to shipping."
PLACES = ["Rome", "Oslo harbour", "the north pole", "Lima", "a farm near Kyoto", "the moon"]


def script(received: Received) -> Reply:
    """Say what a judge and an investigator would, by what they are shown."""
    asked = "\n".join(str(message.text) for message in received.messages)
    if "Find out what goes wrong in this one" not in asked:
        wrong = "handed work to billing" in asked and "Refund" in asked
        said = "billing cannot pay back" if wrong else "it is the right one"
        label = "wrong" if wrong else "correct"
        return Reply(answer={"reason": said, "quote": "", "label": label})
    if not any(message.role == "assistant" for message in received.messages):
        return Reply(answer=look("read_run", "m1"))
    entry = because("It hands a refund to billing.", ("m1.s1", "handed to billing"))
    lie = because("It asked a supplier.", ("m1.s1", "asked the supplier first"))
    scores = {name: {"value": 2, "because": entry} for name in DIMENSIONS}
    edits = [{"find": "refunds to billing", "replace": "refunds to refunds"}]
    reason = because("Its prompt says so.", ("agent:desk", "Hand refunds to billing."))
    fix = {"kind": "supervisor_prompt", "text": "agent:desk", "pattern": "", "edits": edits,
           "because": reason, "why": "Refunds have an agent of their own."}  # fmt: skip
    return Reply(answer=conclude(entry=entry, scores=scores, summary=[entry, lie], fix=fix))


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server and its worker, with a desk that hands refunds to billing, and a fixed one."""
    folder = tmp_path_factory.mktemp("shop")
    program = (ROOT / "examples" / "python" / "prompted.py").read_text(encoding="utf-8")
    (folder / "shop.py").write_text(program, encoding="utf-8")
    fixed = program.replace("refunds to billing", "refunds to refunds")
    (folder / "fixed.py").write_text(fixed, encoding="utf-8")
    (folder / "cases").mkdir()
    cases = [f"Refund {thing}" for thing in THINGS] + [f"The parcel to {each}" for each in PLACES]
    (folder / "cases.yaml").write_text(
        "cases:\n" + "".join(f"  - {{id: c{n}, input: {t}}}\n" for n, t in enumerate(cases))
    )
    # A program alone records no prompt: its definitions do, so that a fix can change it.
    agents = folder / "agents.yaml"
    agents.write_text(f'agents:\n  desk: {{instructions: "{PROMPT}"}}\n', encoding="utf-8")
    evaluation = folder / "played"
    evaluate_into(
        evaluation,
        folder / "cases.yaml",
        f"{folder / 'shop.py'}:desk",
        ["dispatch_target_known"],
        agents=agents,
    )
    with llm_server(script) as llm:
        given: dict[str, Any] = {
            "folder": str(folder / "server"),
            "judges": {"default": llm.judge(retries=0)},
            "rules": [{"name": "right", "evaluators": [{"type": "dispatch_correctness", "judge": "default"}]}],
            "agents": {"shop": f"{folder / 'shop.py'}:desk", "fixed": f"{folder / 'fixed.py'}:desk"},
            "datasets": [str(folder / "cases")],
        }  # fmt: skip
        store = open_store(folder / "server")
        stop = threading.Event()
        worker = threading.Thread(target=run, args=(load_settings(None, given), stop))
        with web(store, given) as address:
            worker.start()
            baton.connect(address).push(evaluation)
            try:
                yield address
            finally:
                stop.set()
                worker.join()
        store.close()


def test_from_a_failed_conversation_to_an_issue_that_is_closed_and_opened(
    shop: str, browser: Browser
) -> None:
    from .browsing import tab

    with tab(browser, shop) as (page, wrong):
        page.goto("/")
        for _ in range(60):
            page.click("nav >> text=Issues")
            if page.locator("tr[data-row]").count():
                break
            page.wait_for_timeout(500)
        page.click("tr[data-row] a.name")
        assert "found by a judge" in page.inner_text(".known")
        page.click("td.says a >> nth=0")
        page.wait_for_selector("#blame >> text=The record alone cannot tell")
        page.go_back()
        page.click("text=Investigate >> nth=0")
        page.wait_for_selector("text=What happens", timeout=30_000)
        assert "1 statement left out" in page.inner_text(".done")
        page.wait_for_selector(".fix-state.proposed")
        assert "Refunds have an agent of their own." in page.inner_text(".done")
        page.select_option(".done select[name=agent]", "fixed")
        page.click("text=Prove by replay")
        page.wait_for_selector("text=It could not be played", timeout=30_000)
        assert "`agent:desk` has changed since the fix was made" in page.inner_text(".done")
        page.select_option(".done select[name=agent]", "shop")
        page.click("text=Prove by replay")
        page.wait_for_selector(".fix-state.proven", timeout=60_000)
        assert "Fixed 5 of 5 [" in page.inner_text(".done")
        assert ", broke 0 of 6 [" in page.inner_text(".done")
        page.click("text=Make cases")
        page.click("text=Save >> nth=-1")
        page.click("section:has(#cases-title) a >> nth=0")  # the dataset that has the cases now
        dataset = page.url

        def result() -> str:
            """Wait for the end of an evaluation on its page, and read what it came to."""
            if page.locator("#outcome .running").count():
                page.click("text=Show the result", timeout=60_000)
            page.wait_for_selector("#outcome .status:not(.running)")
            outcome: str = page.inner_text("#outcome")
            return outcome.rsplit(maxsplit=1)[-1]

        def run_all(agent: str) -> str:
            """Start an evaluation on the page of the dataset, and follow the link to it."""
            page.click("text=Options of a run")
            page.select_option("select[aria-label=Agent]", agent)
            page.fill("input[aria-label='Find an evaluator']", "dispatch_correctness")
            page.check(".evaluator input[value=dispatch_correctness]")
            page.click("text=Run all")
            page.click("text=/^evaluation [0-9]+$/")
            return result()

        def state_becomes(state: str) -> None:
            """Open the issue from the list of those in a state, once it is in it."""
            for _ in range(60):
                page.click("nav >> text=Issues")
                page.click(f".tabs >> text={state}")
                if page.locator("tr[data-row] a.name").count():
                    page.click("tr[data-row] a.name")
                    return
                page.wait_for_timeout(300)
            raise AssertionError(f"no issue is {state}: {page.inner_text('main')}")

        assert run_all("fixed") == "passed"
        for _ in range(2):
            with page.expect_navigation():
                page.click("text=Run again")
            assert result() == "passed"
        state_becomes("fixed")
        assert "cases passed in 3 evaluations in a row" in page.inner_text(".state-panel")
        page.click("section:has(#cases-title) a >> nth=0")
        assert page.url == dataset
        assert run_all("shop") == "failed"
        state_becomes("regressed")
        assert "by its cases" in page.inner_text(".state-panel")
        assert wrong == []

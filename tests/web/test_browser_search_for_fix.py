"""A fix is searched for by a click on an issue's page, with a real worker and a scripted model."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import ROOT

import baton
from baton.server.settings import load_settings
from baton.server.store import open_store
from baton.server.worker import run
from baton.session.evaluate import evaluate_into
from baton.testing import Received, Reply, llm_server

from .serving import web

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.heavy
PROPOSED = [
    "Hand refunds to refunds, with the whole message. Hand parcels to shipping, with the whole "
    "message.",
    "Hand refunds to refunds, in a few words. Hand parcels to shipping, in a few words.",
    "Hand refunds to refunds, in a few kind words. Hand parcels to shipping, with the whole "
    "message.",
]
TEXTS = cycle(reversed(PROPOSED))
THINGS = ["lamp", "chair", "desk", "clock", "radio", "kettle", "mirror", "basket", "scarf", "vase"]


def script(received: Received) -> Reply:
    """Propose one of three texts, another one each time; which one helps is not told."""
    del received
    return Reply(answer={"thinking": "", "text": next(TEXTS)})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server and its worker; the desk drops the numbers of refunds."""
    folder = tmp_path_factory.mktemp("shop")
    program = folder / "shop.py"
    program.write_text((ROOT / "examples" / "feed" / "shop.py").read_text("utf-8"), "utf-8")
    asked = [
        f"Refund order {4000 + 7 * n} of Ada, the {each} arrived broken."
        for n, each in enumerate(3 * THINGS)
    ]
    asked += [f"Where is parcel {6000 + 3 * n} with the {t}?" for n, t in enumerate(3 * THINGS)]
    lines = [f"  - {{id: c{n}, input: '{text}'}}\n" for n, text in enumerate(asked)]
    (folder / "cases.yaml").write_text("cases:\n" + "".join(lines))
    evaluation = folder / "played"
    evaluate_into(evaluation, folder / "cases.yaml", f"{program}:desk", ["context_carried"])
    with llm_server(script) as llm:
        given: dict[str, Any] = {
            "folder": str(folder / "server"),
            "judges": {"default": llm.judge(retries=0)},
            "rules": [{"name": "found", "evaluators": ["context_carried"]}],
            "agents": {"shop": f"{program}:desk"},
        }
        store = open_store(folder / "server")
        stop = threading.Event()
        worker = threading.Thread(target=run, args=(load_settings(None, given), stop))
        with web(store, given) as address:
            worker.start()
            baton.connect(address).push(evaluation)
            try:
                yield address, program
            finally:
                stop.set()
                worker.join()
        store.close()


def test_try_to_fix_finds_a_text_that_is_proven_and_writes_no_file(
    shop: tuple[str, Path], browser: Browser
) -> None:
    from .browsing import tab

    address, program = shop
    before = program.read_text("utf-8")
    with tab(browser, address) as (page, wrong):
        page.goto("/")
        for _ in range(60):
            page.click("nav >> text=Issues")
            if page.locator("tr[data-row]").count():
                break
            page.wait_for_timeout(500)
        page.click("tr[data-row] a.name")
        page.click("text=Try to fix")
        page.wait_for_selector("text=/search for a fix is queued|searching for a fix/i")
        page.wait_for_selector(".fix-state.proven, .ask .callout.error", timeout=240_000)
        assert not page.locator(".ask .callout.error").count(), page.inner_text(
            ".ask .callout.error"
        )
        said = page.inner_text(".done")
        assert re.search(r"held-out cases; \d+ texts? tried", said)
        assert "Fixed 10 of 10 [" in said
        assert "with the whole message" in page.inner_text(".done .added >> nth=0")
        assert program.read_text("utf-8") == before
        assert wrong == []

"""The page of a conversation in a real browser: fast when it is long, and deaf to what is in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec
import pytest
from sqlalchemy import update
from tests.reports.hostile import hostile_texts
from tests.server.seeding import START, add_conversation, add_score

from baton.model import AgentRun, Content, Dispatch, GotBack, HandedOff, Said, ToolCall, Trace, Turn
from baton.server.bodies import day_of
from baton.server.schema import conversation
from baton.server.store import Store, open_store
from baton.testing import build

from .serving import web

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.heavy
PAINTED = 1.5
"""Seconds until 2,000 steps are seen: 0.3 where nothing else runs, and tests run beside others."""
_IN_RUN = 18


def long_conversation(steps: int, id: str = "long") -> Trace:
    """A lead that sets four workers to work at a time, one of them in the background."""
    lead = AgentRun(id="lead", agent="lead", input=Content(text="Do it all."), started=START)
    runs, at = [lead], START
    dispatches: list[Dispatch] = []
    while sum(len(run.steps) for run in runs) < steps:
        for worker in range(1, 5):
            number = len(dispatches) + 1
            begun = at + 0.2 * worker
            calls = [
                ToolCall(
                    id=f"r{number}c{place}",
                    name="search",
                    arguments={"query": f"part {number}, item {place}"},
                    result=Content(text=f"{place} places in src/m{place}.py"),
                    status="failed" if (7 * number + place) % 61 == 0 else "ok",
                    at=begun + 0.4 * place,
                    ended=begun + 0.4 * place + 0.3,
                )
                for place in range(_IN_RUN)
            ]
            said = Said(id=f"r{number}s", content=Content(text=f"Part {number}: REF-{number}."))
            said.at = begun + 0.4 * _IN_RUN
            runs.append(
                AgentRun(
                    id=f"r{number}", agent=f"worker-{worker}", started_by=[f"d{number}"],
                    input=Content(text=f"Look at part {number}."), steps=[*calls, said],
                    started=begun, ended=said.at,
                )
            )  # fmt: skip
            dispatches.append(
                Dispatch(
                    id=f"d{number}", kind="delegate", from_run="lead", from_agent="lead",
                    to_agent=f"worker-{worker}", runs=[f"r{number}"], group=number // 4,
                    prompt=Content(text=f"Look at part {number}, with all its files."),
                    result=said.content, mode="background" if worker == 4 else "foreground",
                    started=begun, ended=said.at,
                )
            )  # fmt: skip
            lead.steps.append(HandedOff(id=f"h{number}", dispatch=f"d{number}", at=begun))
        lead.steps += [
            GotBack(id=f"g{made.id}", dispatch=made.id, at=at + 9) for made in dispatches[-4:]
        ]
        at += 10
    lead.ended = at
    return Trace(
        schema_version=2,
        id=id,
        source=build.trace("Hi", build.run("x")).source,
        turns=[Turn(id="t1", input=Content(text="Do it all."), runs=runs, dispatches=dispatches,
                    started=START, ended=at)],
    )  # fmt: skip


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    store = open_store(tmp_path_factory.mktemp("web") / "server")
    add_conversation(store, long_conversation(2000))
    number = add_conversation(store, long_conversation(60, "short"), preview="Do it all.")
    add_score(store, number, status="failed", value=0.0, reason="`worker-1` went too far")
    with web(store) as address:
        yield address, store
    store.close()


def opened(page: Page, path: str) -> None:
    page.goto(path)
    page.wait_for_selector("html[data-ready]")


def test_2000_steps_are_seen_at_once_and_the_last_can_be_reached(
    browser: Browser, shared: tuple[str, Store]
) -> None:
    from .browsing import tab

    with tab(browser, shared[0]) as (page, wrong):
        taken = []
        for _ in range(3):
            opened(page, "/conversations/1")
            page.keyboard.press("l")
            page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
            # From the click on: reading the record, sending it, and drawing the lanes.
            taken.append(page.evaluate("performance.getEntriesByName('drawn')[0].startTime"))
        assert min(taken) < 1000 * PAINTED, taken
        assert page.locator(".lane-bar").count() == 97
        sent = page.evaluate(
            "performance.getEntriesByType('resource').filter(one => one.name.endsWith('.js'))"
            ".reduce((sum, one) => sum + one.encodedBodySize, 0)"
        )
        assert sent < 150_000
        page.evaluate("location.hash = 's-r96s'")
        page.wait_for_selector("[data-part=r96s].flash")
        page.locator("[data-part=r96s]", has_text="Part 96: REF-96.").wait_for()
        assert wrong == []


FIRST_FRAME = """
new MutationObserver((_, watch) => {
  if (!document.querySelector(".tree")) return;
  watch.disconnect();
  requestAnimationFrame(() => {
    document.documentElement.dataset.steps = document.querySelectorAll(".tree .step").length;
  });
}).observe(document, { childList: true, subtree: true });
"""


def test_the_first_frame_has_the_first_steps_alone_and_the_others_follow(
    browser: Browser, shared: tuple[str, Store]
) -> None:
    from .browsing import tab

    with tab(browser, shared[0]) as (page, wrong):
        page.add_init_script(FIRST_FRAME)
        for _ in range(3):
            opened(page, "/conversations/1")
            drawn = page.wait_for_selector("html[data-steps]").get_attribute("data-steps")
            assert 50 <= int(drawn) <= 100
        page.wait_for_selector("[data-part=r96s]", state="attached")
        assert wrong == []


def test_of_10000_steps_the_last_texts_are_loaded_when_they_are_opened(
    browser: Browser, shared: tuple[str, Store]
) -> None:
    from .browsing import tab

    number = add_conversation(shared[1], long_conversation(10_000, "longest"))
    with tab(browser, shared[0]) as (page, wrong):
        opened(page, f"/conversations/{number}")
        loaded = page.evaluate(
            "['navigation', 'resource'].flatMap(kind => performance.getEntriesByType(kind))"
            ".filter(one => !new URL(one.name).pathname.startsWith('/static/'))"
            ".reduce((sum, one) => sum + one.decodedBodySize, 0)"
        )
        assert loaded < 1_000_000
        page.evaluate("location.hash = 's-r480c9'")
        call = page.locator("[data-part=r480c9]")
        call.locator(".labelled").first.wait_for()  # it is open, as the address is its own
        assert "part 480" not in call.inner_text()
        for part in call.locator(".labelled").all():
            part.get_by_role("button", name="show all").click()
        call.locator(".labelled", has_text="part 480, item 9").wait_for()
        call.locator(".labelled", has_text="9 places in src/m9.py").wait_for()
        page.keyboard.press("l")
        page.wait_for_selector(".lane-ticks path")
        ticks = page.locator(".lane-ticks path").all()
        drawn = sum((tick.get_attribute("d") or "").count("M") for tick in ticks)
        assert drawn == 480 * _IN_RUN
        assert wrong == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_keeps_nobody_out(browser: Browser, shared: tuple[str, Store], dark: bool) -> None:
    from .browsing import axe_violations, scrolls_sideways, tab

    for width in (1280, 390):
        with tab(browser, shared[0], width=width, dark=dark) as (page, wrong):
            opened(page, "/conversations/2#d-d1")
            page.wait_for_selector(".dispatch-card")
            assert axe_violations(page) == []
            assert not scrolls_sideways(page)
            page.keyboard.press("l")
            page.wait_for_selector(".lane-picture")
            assert axe_violations(page) == []
            assert not scrolls_sideways(page)
            assert wrong == []


def test_a_card_tells_what_was_lost_and_labels_and_comments_stay(
    browser: Browser, shared: tuple[str, Store]
) -> None:
    from .browsing import tab

    with tab(browser, shared[0]) as (page, wrong):
        opened(page, "/conversations/2")
        page.keyboard.press("n")
        card = page.locator(".dispatch-card")
        card.wait_for()
        assert page.url.endswith("#d-d1")
        assert card.locator("del").all_inner_texts() == [", with all its files"]
        assert card.locator(".score.failed .reason").inner_text() == "worker-1 went too far"
        card.get_by_label("Comment on the label").fill("It should not.")
        card.get_by_role("button", name="✗ Wrong").click()
        page.wait_for_selector(".said-label")
        page.get_by_role("button", name="Pick in the tree").click()
        page.locator("[data-part=r1c0] summary").click()
        page.locator("[data-part=r1c2] summary").click()
        page.locator("#comment-note").fill("These three are the same.")
        page.get_by_role("button", name="Comment", exact=True).click()
        page.wait_for_selector(".comment-mark")
        link = page.url
        page.goto("/conversations/1")
        opened(page, link)
        page.wait_for_selector(".ranged")
        assert page.locator(".ranged").count() == 3
        assert page.locator("#comment-list").inner_text().endswith("These three are the same.")
        assert wrong == []


def test_an_open_conversation_grows_under_the_eyes_of_its_reader(
    browser: Browser, shared: tuple[str, Store]
) -> None:
    from .browsing import tab

    address, store = shared
    first, more = long_conversation(60, "growing"), long_conversation(150, "growing")
    number = add_conversation(store, first, state="open")
    with tab(browser, address) as (page, wrong):
        opened(page, f"/conversations/{number}#d-d1")
        page.get_by_label("Comment on the label").fill("half a sent")
        page.get_by_label("Comment on the label").evaluate("field => { field.old = true }")
        place = store.bodies.put(day_of(START), [msgspec.msgpack.encode(more)])[0]
        with store.write() as connection:
            change = update(conversation).where(
                conversation.c.project == 1, conversation.c.id == number
            )
            connection.execute(change.values(place=place.number, version=2, state="complete"))
        page.locator("#grown", has_text="It has ended.").wait_for()
        assert "steps more" in page.locator("#grown").inner_text()
        assert page.locator(".dispatch-card").count() == 1
        page.wait_for_function("!document.querySelector('.label-form input').old")
        page.wait_for_function("document.activeElement.matches('.label-form input')")
        page.keyboard.type("ence")
        assert page.get_by_label("Comment on the label").input_value() == "half a sentence"
        assert "in progress" not in page.locator("#figures").inner_text()
        assert wrong == []


def test_hostile_texts_are_shown_and_do_nothing(
    browser: Browser, shared: tuple[str, Store]
) -> None:
    from .browsing import tab

    address, store = shared
    numbers = []
    for place, text in enumerate(hostile_texts()):
        made = build.trace(
            build.turn(
                text,
                build.run("desk", build.said(text), build.delegate(text[:100] or "x", text, result=text)),
                build.run(text[:100] or "x", build.call("look", {text: text}, result=text)),
                output=text,
            ),
            id=f"hostile-{place}",
        )  # fmt: skip
        numbers.append(add_conversation(store, made, preview=text))
    with tab(browser, address) as (page, wrong):
        for number in numbers:
            opened(page, f"/conversations/{number}")
            page.keyboard.press("n")
            page.wait_for_selector(".dispatch-card")
            page.evaluate(
                "document.querySelectorAll('details').forEach(one => { one.open = true })"
            )
            assert page.evaluate("window.hacked === undefined")
            assert (
                page.locator("main").locator("img, iframe, object, base, script[src]").count() == 0
            )
            assert "\u202e" not in page.evaluate("document.body.innerText")
        assert wrong == []

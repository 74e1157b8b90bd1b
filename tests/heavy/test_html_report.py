"""The HTML report in a real browser: fast with many cases, and deaf to what is in them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.heavy.browser import Browser, browser
from tests.reports.desk import write_desk
from tests.reports.hostile import hostile_evaluation, hostile_texts

from baton.cli import main
from baton.testing.build import evaluation, result, score

pytestmark = pytest.mark.heavy
MANY = 5_000
SECONDS = 2.0
"""Of a processor, as other tests run beside."""
MOODY = """
import itertools
counter = itertools.count()
def moody(message):
    return {"output": "ok", "agents": ["desk", "billing" if next(counter) in (0, 3) else "weather"]}
"""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of 5,000 cases."""
    folder = tmp_path_factory.mktemp("many")
    # Two that read long prompts take 20 ms for a case, and are columns as any others.
    other = {"context_carried": "dispatch_target_known", "result_used": "handoff_loops"}
    words = [other.get(word, word) for word in write_desk(folder, MANY)]
    assert main([*words, "--html", str(folder / "report.html")]) == 1
    return folder / "report.html"


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[Browser]:
    with browser(tmp_path / "profile") as opened:
        yield opened


def count(tab: Browser) -> str:
    return str(tab.run("document.querySelector('.count').textContent"))


def click(tab: Browser, selector: str) -> None:
    tab.run(f"document.querySelector({selector!r}).click()")


def choose(tab: Browser, name: str, value: str) -> None:
    tab.run(
        f"(() => {{ const one = document.getElementById({name!r}); one.value = {value!r};"
        " one.dispatchEvent(new Event(one.type === 'search' ? 'input' : 'change')); })()"
    )


def test_5000_cases_open_in_two_seconds_and_ask_nothing_of_the_network(
    many: Path, tab: Browser
) -> None:
    taken, before = [], tab.processor_seconds()
    for _ in range(3):
        tab.open(many)
        now = tab.processor_seconds()
        taken.append(now - before)
        before = now
    assert 0 < min(taken) < SECONDS, taken
    assert count(tab) == "5,000"
    assert {url.partition(":")[0] for url in tab.requests} <= {"file", "data"}
    assert tab.errors == []


def test_filters_narrow_the_list_and_the_summary_sets_them(many: Path, tab: Browser) -> None:
    tab.open(many)
    rows = "LIST.matching.length"
    click(tab, ".chip.failed")
    failed = tab.run(rows)
    assert 300 < failed < 600
    assert count(tab) == f"{failed:,} of 5,000"
    choose(tab, "evaluator", "dispatch_routing")
    misrouted = tab.run(rows)
    assert 0 < misrouted < failed
    choose(tab, "tag", "vip")
    assert 0 < tab.run(rows) < misrouted
    click(tab, ".cell.wrong")
    assert tab.run("LIST.matching.every(row => row.status === 1)")
    assert tab.run("document.querySelector('.chip.on').hidden") is False
    click(tab, ".evaluators .total button")
    assert tab.run(rows) == MANY
    choose(tab, "search", "refund_0045 money")
    tab.until(f"{rows} === 1")
    choose(tab, "search", "no such thing")
    tab.until(f"{rows} === 0")
    assert "No case" in tab.run("document.getElementById('list').textContent")


def test_every_case_of_the_list_opens_by_its_address_and_by_keys(many: Path, tab: Browser) -> None:
    tab.open(many, "#case4999")
    title = "document.querySelector('#view h3').textContent"
    assert tab.run(title) == "invoice_4999"
    tab.open(many)
    first = tab.run(title)
    tab.press("j")
    tab.until(f"{title} !== {first!r}")
    tab.press("k")
    tab.until(f"{title} === {first!r}")
    tab.press("/")
    assert tab.run("document.activeElement.id") == "search"
    assert tab.errors == []


def test_a_case_shows_chain_tree_and_the_steps_that_prove_it(many: Path, tab: Browser) -> None:
    tab.open(many)
    choose(tab, "evaluator", "agent_chain")
    click(tab, ".chip.failed")
    click(tab, "#list .row")
    tab.until("document.querySelector('#view .chain')")
    tab.until("document.querySelector('#view .chain td.missing')")
    assert tab.run("document.querySelector('#view .run .run .agent').textContent").endswith(
        "_agent"
    )
    click(tab, "#view .jump")
    tab.until("document.querySelector('#view .flash')")


def test_a_card_has_an_address_and_lanes_show_who_worked_when(many: Path, tab: Browser) -> None:
    tab.open(many, "#case0/dispatch1")
    tab.until("document.querySelector('.dispatch-card')")
    rows = "[...document.querySelectorAll('.card-row > .h4')].map(one => one.textContent).join()"
    expected = "Verdicts,What led to it,Asked,Received,Tools,Its work,Result,Used again,Then"
    assert tab.run(rows) == expected
    assert tab.run("document.querySelector('.permalink').hash") == "#case0/dispatch1"
    click(tab, ".tab:last-child")
    assert tab.run("document.querySelectorAll('.lane-bar').length") == 2
    assert tab.run("document.querySelectorAll('.lane-arrow').length") == 1
    click(tab, ".dispatch-card .jump")
    tab.until("document.querySelector('.tree .flash')")
    assert tab.errors == []


def test_repeats_that_failed_alike_are_one_row_which_opens_each(
    tmp_path: Path, tab: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.py").write_text(MOODY)
    (tmp_path / "cases.yaml").write_text(
        "cases:\n  - {id: refund, input: hi, agents: [desk, billing]}\n"
    )
    line = ["eval", "shop.py:moody", "cases.yaml", "-e", "agent_chain", "--concurrency", "1"]
    assert main([*line, "--repeat", "5", "--html", "report.html"]) == 1
    tab.open(tmp_path / "report.html", "#case4")
    links = "[...document.querySelectorAll('#view .repeats a')].map(one => one.textContent).join()"
    tab.until(f"{links} === '2,3,5'")
    rows = "[...document.querySelectorAll('#list .id')].map(one => one.textContent).join('|')"
    assert tab.run(rows) == "refund  failed 3 of 5|refund  passed 2 of 5"
    assert tab.run("document.querySelector('#list [aria-current]').dataset.number") == "1"
    click(tab, "#view .repeats a")
    tab.until("document.querySelector('#view .about').textContent.includes('repeat 2 of 5')")
    tab.press("k")
    tab.press("j")
    tab.until("document.querySelector('#view .about').textContent.includes('repeat 1 of 5')")
    click(tab, ".chip.failed")
    assert (tab.run(rows), count(tab)) == ("refund  failed 3 of 5", "3 of 5")
    assert tab.errors == []


def test_a_value_just_below_its_threshold_does_not_look_equal_to_it(
    tmp_path: Path, tab: Browser
) -> None:
    close = score("failed", evaluator="tool_calls", value=0.997, threshold=0.998)
    evaluation(result(close)).to_html(tmp_path / "report.html")
    tab.open(tmp_path / "report.html", "#case0")
    tab.until("document.querySelector('#view').textContent.includes('0.997 / 0.998')")


@pytest.fixture
def listener() -> Iterator[tuple[int, list[bytes]]]:
    """A port of this machine, and what each who came to it sent."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.1)
        stop = threading.Event()
        thread = threading.Thread(target=_listen, args=(server, stop, seen))
        thread.start()
        yield server.getsockname()[1], seen
        stop.set()
        thread.join()


def _listen(server: socket.socket, stop: threading.Event, seen: list[bytes]) -> None:
    while not stop.is_set():
        try:
            connection, _ = server.accept()
        except TimeoutError:
            continue
        with connection:
            connection.settimeout(0.3)
            try:
                seen.append(connection.recv(200))
            except TimeoutError:
                seen.append(b"")


def test_hostile_texts_are_shown_and_do_nothing(
    tmp_path: Path, tab: Browser, listener: tuple[int, list[bytes]]
) -> None:
    port, seen = listener
    folder = hostile_evaluation(tmp_path, hostile_texts(port))
    report = tmp_path / "report.html"
    assert main(["report", str(folder), "--html", str(report)]) == 1
    tab.open(report)
    for number in range(tab.run("DATA.rows.length")):
        tab.run(f"location.hash = '#case{number}'")
        tab.until(f"LIST.current === {number} && document.querySelector('#view h3')")
        tab.run("document.querySelectorAll('details').forEach(one => { one.open = true })")
    tab.run("new Promise(done => setTimeout(done, 500))")
    assert tab.run("window.hacked === undefined && document.title === DATA.summary.name")
    assert (
        tab.run(
            "document.querySelectorAll('img, iframe, object, base, form, svg:not(.bar), .bar > :not(rect), "
            "link[rel=stylesheet]').length"  # a bar of ours has rectangles and nothing else
        )
        == 0
    )
    assert tab.run("document.scripts.length") == tab.run(
        "document.querySelectorAll('body > script').length"
    )
    assert seen == []
    assert {url.partition(":")[0] for url in tab.requests} <= {"file", "data"}
    assert tab.errors == []
    shown = tab.run("document.body.innerText")
    assert "</script><script>window.hacked" in shown
    assert "⟨U+202E⟩" in shown
    assert "\u202e" not in shown


def test_the_policy_of_the_page_refuses_what_would_get_in(
    many: Path, tab: Browser, listener: tuple[int, list[bytes]]
) -> None:
    port, seen = listener
    tab.open(many)
    address = f"http://127.0.0.1:{port}/"
    fetched = tab.run(f"fetch({address!r}).then(() => 'came', () => 'refused')")
    tab.run(
        "document.body.insertAdjacentHTML('beforeend',"
        f' \'<img src="{address}" onerror="window.hacked = 1"><form action="{address}"></form>\')'
    )
    tab.run("(() => { const s = document.createElement('script'); s.textContent = 'window.hacked = 2';"
            " document.body.append(s); document.forms[0].submit(); })()")  # fmt: skip
    tab.run("new Promise(done => setTimeout(done, 500))")
    assert fetched == "refused"
    assert tab.run("window.hacked === undefined")
    # Chromium may open a connection for a form that it then refuses to send: nothing goes through.
    assert not any(seen)

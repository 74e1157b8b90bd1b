"""The report of an improvement as a page."""

from __future__ import annotations

import random
import re
from html.parser import HTMLParser

from baton.gate.compare_axes import PASSED, Axis, CaseValues, compare_all
from baton.improvements.html_page import page_of
from baton.improvements.result import Candidate, Improvement, Proof, Split, Study
from baton.replays.text_risks import NewText

HOSTILE = '</pre><script>alert(1)</script><img src=x onerror="y">\u202e\u200b\x1b[31m'


class Checked(HTMLParser):
    """Fails on a tag that is not closed, and keeps the tags and the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        assert all(not name.startswith("on") for name, _ in attrs)
        if tag not in ("meta", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def study(count: int, text: str = "Be kind.") -> Study:
    drawn = random.Random(1)
    values = [{"passed": drawn.random()} for _ in range(count)]
    candidates = [Candidate(number=0, text=text, by="", select={"passed": 0.3})]
    candidates += [
        Candidate(
            number=n, text=f"{text}\n{n}", by=f"gepa: {text}", parents=[n - 1], select=values[n]
        )
        for n in range(1, count)
    ]
    sides = [
        {f"c{n}": CaseValues(values={Axis(PASSED): [value]}) for n in range(12)}
        for value in (0.0, 1.0)
    ]
    return Study(
        component="agent:desk",
        why=text,
        strategy="gepa",
        before=text,
        candidates=candidates,
        best=count - 1,
        outcome="proven",
        reason=text,
        proof=Proof(
            comparison=compare_all(*sides),
            aimed=Axis(PASSED),
            worse=[],
            cases_needed=None,
            words=(2, 3),
        ),
        marks=[NewText(kind="address", text=text)],
    )


def improvement(*studies: Study) -> Improvement:
    split = Split(train=["a"], select=["b"], held_out=["c"], seed=1)
    return Improvement(id="x", target="app.py:desk", studies=list(studies), split=split, seed=1)


def read(page: str) -> Checked:
    checked = Checked()
    checked.feed(page)
    assert checked.open == []
    return checked


def test_the_page_shows_the_proof_the_difference_and_each_candidate_below_its_parent() -> None:
    page = page_of(improvement(study(3)))
    read(page)
    assert "1 of 1 proven" in page
    assert re.search(r"cases passed \(aim\).*?0\.00.*?1\.00.*?better", page, re.DOTALL)
    assert '<span class="added">2</span>' in page
    order = [page.index(f'<span class="number">{each}#') for each in ("", "★ ")]
    assert order == sorted(order)
    assert page.count("<ul>") == 2


def test_what_models_wrote_cannot_be_markup_and_hidden_characters_are_shown() -> None:
    checked = read(page_of(improvement(study(3, HOSTILE))))
    assert not {"script", "img"} & set(checked.seen)
    assert "alert(1)" in checked.text
    assert not {"\u202e", "\u200b", "\x1b"} & set(checked.text)


def test_a_long_chain_of_candidates_is_drawn() -> None:
    checked = read(page_of(improvement(study(3_000))))
    assert "#2999" in checked.text

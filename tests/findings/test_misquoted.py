"""Codes, items of lists, times and dates that an answer misquotes, whatever the words around them."""

from __future__ import annotations

import pytest

from baton.testing import verdict

from .trips import said, trip

AUDIT = "flask 2.3.1: CVE-2023-30861 (fix 2.3.2); pillow 9.5.0: CVE-2023-44271 (fix 10.0.0)."


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (AUDIT, "Upgrade pillow to 10.0.0 because of CVE-2023-42471."),
        ("Device LAP-227, user m.ortiz.", "It is the laptop LAP-272 of M. Ortiz."),
        ("Incident INC0041873 opened.", "I opened INC0048173 for you."),
        ("Old kernel: web-02, web-05, db-1.", "These run it: web-02, web-08 and db-1."),
        ("Open: 7713, 7720 and 7758.", "Three are unpaid, namely 7713, 7720 and 7728."),
        ("Expiry 14 March 2027.", "I have checked: it lasts until 14 May 2027."),
        ("Der Zug fährt um 10:42.", "Abfahrt ist um 11:42."),
    ],
)
def test_a_misquoted_value_is_found_in_any_words(result: str, answer: str) -> None:
    assert verdict("result_contradicted", trip(result, said(answer))).status == "failed"


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (AUDIT, "Upgrade pillow to 10.0.0 because of cve 2023 44271."),
        ("Device LAP-227, user m.ortiz.", "It is LAP227 of M. Ortiz. LAP-272 is not his."),
        ("Incident INC0041873 opened.", "I opened it: 41873."),
        ("Old kernel: web-02, web-05, db-1.", "web-02 and web-08 are next. web-05 and db-1 later."),
        ("Open: 7713, 7720 and 7758.", "7713 and 7720 are unpaid, 7728 is new."),
        ("Expiry 14 March 2027, within two months.", "It has to be there before 14 May 2027."),
        ("Der Zug fährt um 10:42.", "Sei um 10:30 am Bahnhof."),
        ("The concert starts at 20:00.", "Doors open at 19:00."),
        ("Expiry 14 March 2027.", "I remind you on 14 February 2027."),
    ],
)
def test_another_value_is_no_misquoted_one(result: str, answer: str) -> None:
    assert verdict("result_contradicted", trip(result, said(answer))).status != "failed"

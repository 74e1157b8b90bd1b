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


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("Rent 840 EUR, deposit 25 %.", "The deposit is 35 %, the rent 840 EUR."),
        ("Harbour tax included, 4,182.60 EUR in total.", "Altogether it is 4,128.60 EUR."),
        ("Effect 0.4, p = 0.004.", "It is significant as p is 0.04."),
        ("Ferritin 62 µg/l on 3 May.", "Your ferritin is 26 µg/l."),
        ("Die Backzeit beträgt 45 Minuten.", "Die Backzeit ist 54 Minuten."),
    ],
)
def test_a_slip_next_to_the_same_word_is_found(result: str, answer: str) -> None:
    assert verdict("result_contradicted", trip(result, said(answer))).status == "failed"


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("Rent 840 EUR, deposit 25 %.", "I suggest a deposit of 35 %."),
        ("Rent 840 EUR, deposit 25 %.", "For furnished flats a deposit of 35 % is common."),
        ("Room 6: temperature 27 °C.", "Set the temperature to 17 °C."),
        ("Three boxes of 45 kg, pallet 9 kg.", "With the pallet they weigh 54 kg each."),
        ("Effect 0.4, p = 0.004.", "In the pilot, p was 0.04."),
        ("Ferritin 62 µg/l on 3 May.", "Last year your ferritin was 26 µg/l."),
        ("Deposit 25 %, at least 200 EUR.", "Your own deposit of 35 % is fine."),
    ],
)
def test_a_value_of_something_else_is_no_slip(result: str, answer: str) -> None:
    assert verdict("result_contradicted", trip(result, said(answer))).status != "failed"

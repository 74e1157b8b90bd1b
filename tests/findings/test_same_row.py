"""`result_contradicted`: a number in the place of another one, in a row that an answer retells."""

from __future__ import annotations

import json

import pytest

from baton.testing import verdict

from .trips import said, trip

SALES = json.dumps(
    {
        "quarter": "Q2",
        "rows": [
            {"region": "DACH", "actual": 4182, "plan": 4000},
            {"region": "Benelux", "actual": 2260, "plan": 2200},
            {"region": "Iberia", "actual": 1119, "plan": 1300},
        ],
    }
)
TRAINS = "05:43-13:51 via Nürnberg, 1 change, 129.90\n06:16-14:49 direct via Prague, 98.00"
LAB = "creatinine: 9 Jan 1.14, 2 Mar 1.20, 28 Apr 1.41, 12 Jun 1.62\nCRP 14 mg/l, sodium 139"
ROOMS = "Room Aare: 40 seats, 280 CHF a day. Room Reuss: 60 seats, 410 CHF a day, with a screen."
LIMITS = "- Uploads of up to 250 MB are allowed (before: 100 MB).\n- Exports keep their columns."
HALL = "The hall is 24.5 m long and 12 m wide, ceiling 4.2 m, and takes 180 people."
RENT = "The rent rises by 8 % to 410 EUR.\nThe notice period is 90 days to the end of a quarter."
CAKE = "For one tin: 200 g butter, 160 g sugar, 4 eggs, 240 g flour."
STORE = "Lager A: 120 Plätze, 87 belegt. Lager B: 60 Plätze, 60 belegt."
TREES = "Oak: planted 1924, height 21 m. Lime: planted 1956, height 17 m."
SHOW = '"Journey to Saturn": 10:45, 44 seats left, 50 minutes, hall B.'
ALERTS = "alert cpu > 90 % for 5 minutes; alert disk > 85 % for 10 minutes"
DISK = "412G of 500G used, pg_wal 96G (!), base 301G. Grows 3.2G/day."
TIMES = "07:42 certificate of the validator expires\n07:44 first gates reject all cards"
PRICES = "fjord cruise = 22,100 NOK\nmeeting room = 14,000 NOK\nsauna = 4,500 NOK"

PROBES = "probe  max_c  min_above_8\nB-1    7.4    0\nB-2    9.6    46\nB-3    7.9    0"
BRANCHES = "branch,orders,refunds\nNorth,2418,46\nSouth,1977,51\nHarbour,905,12"
FARES = "12 June: 83 EUR | 13 June: 61 EUR | 14 June: 47 EUR"
FENCED = '```json\n[{"city": "Ghent", "stays": 46}, {"city": "Turin", "stays": 63}]\n```'
LOAN = "Print 7 (1804): sale impossible, loan for 90 days.\nPrint 9 (1811): no loan, at restorer."
SPENT = "Sales 325,000 / 349,800\nStudio 540,000 / 551,300"


def judged(result: str, answer: str, user: str = "Please help") -> str:
    return verdict("result_contradicted", trip(result, said(answer), user=user)).status


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (
            SALES,
            "| Region | Actual | Plan |\n|---|---|---|\n| DACH | 4,182 | 4,000 |\n"
            "| Benelux | 2,620 | 2,200 |\n| Iberia | 1,119 | 1,300 |",
        ),
        (TRAINS, "1. 6:16 → 14:49, direct, 98 EUR\n2. 5:43 → 13:15, 1 change, 129.90 EUR"),
        (LAB, "Creatinine rose: 1.14 in January, 1.20 in March, 1.24 in April and 1.62 now."),
        (ROOMS, "Room Reuss: 60 seats, 280 CHF a day."),
        (LIMITS, "- Uploads of up to 500 MB are allowed (before: 100 MB)."),
        (RENT, "The notice period is 30 days to the end of a quarter."),
        (HALL, "The ceiling is at 2.4 m, the hall is 24.5 m long."),
        # Several rows in one sentence.
        (PROBES, "B-2 reached 9.6 °C (64 minutes), while B-1 stayed at 7.4 and B-3 at 7.9."),
        (BRANCHES, "North had 2,418 orders and 64 refunds, South 1,977 and 51."),
        (FENCED, "Ghent has 64 stays, Turin 63."),
        (LOAN, "Print 7 can be lent for 60 days."),
        (FARES, "Fly on 13 June for 68 EUR; 14 June is just 47 EUR."),
    ],
)
def test_another_number_in_the_place_of_one_of_a_row_is_found(result: str, answer: str) -> None:
    assert judged(result, answer) == "failed"


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (SALES, "| DACH | 4,182 | 4,000 |\n| Benelux | 2,260 | 2,200 |\n| Total | 6,442 | 6,200 |"),
        (TRAINS, "5:43 → 13:51, 1 change, 129.90 EUR: you save 31.90 with the direct one."),
        (ROOMS, "Room Reuss with 60 seats costs 410 CHF, so 820 CHF for both days."),
        (LIMITS, "- Uploads of up to about 240 MB are allowed (before: 100 MB)."),
        (LIMITS, "- Uploads of up to 250 MB instead of 100 MB are allowed."),
        (HALL, "The hall is 24.5 m long; normally a ceiling is at 2.5 m."),
        (STORE, "Lager A: 33 Plätze frei. Lager B: 0 Plätze frei."),
        (TREES, "Oak: 102 years, height 21 m. Lime: 70 years, height 17 m."),
        (
            SHOW,
            '"Journey to Saturn" at 10:45 takes an hour with 10 minutes of questions, in hall B.',
        ),
        (
            ALERTS,
            "I've changed it: alert cpu > 80 % for 5 minutes; alert disk > 85 % for 10 minutes.",
        ),
        (DISK, "It's the WAL: 96 of the 412 GB in use."),
        (PROBES, "B-2 was above 8 °C for 46 minutes, so for 14 more than allowed."),
        (BRANCHES, "South refunded 51 of 1,977 orders (2.6 %), North 46 of 2,418 (1.9 %)."),
        (LOAN, "Print 7 can be lent for about 80 days, with some time for the journey."),
        (LOAN, "Print 7 can be lent for longer than the 60 days that we need."),
        (FARES, "Fly on 13 June for 61 EUR, that's 22 EUR less than on the 12th."),
        (SPENT, "Sales were 24.8k over, Studio 11.3k."),
        (
            "Booked: room Elm, Wed 10:00-11:00.",
            "Room Elm is yours on Wednesday from ten to eleven.",
        ),
    ],
)
def test_what_is_calculated_rough_or_compared_is_no_other_number(result: str, answer: str) -> None:
    assert judged(result, answer) == "passed"


@pytest.mark.parametrize(
    ("result", "answer", "user"),
    [
        (CAKE, "You need 100 g butter, 80 g sugar, 2 eggs and 120 g flour.", "Half a tin, please"),
        (
            TIMES,
            "| 05:42 | certificate of the validator expires |\n| 05:44 | first gates reject cards |",
            "A timeline in UTC, please",
        ),
        (
            PRICES,
            "| fjord cruise | 1,905 |\n| meeting room | 1,207 |\n| sauna | 388 |",
            "All prices in EUR, please",
        ),
        ("The hall costs 48,000 GBP net.", "With VAT the hall costs 57,600 GBP.", "All in?"),
        (
            "A night costs 45 EUR per person, breakfast 9 EUR.",
            "A night costs 90 EUR for both, breakfast 9 EUR.",
            "A room for two",
        ),
    ],
)
def test_a_row_that_is_converted_or_scaled_is_not_wrong(
    result: str, answer: str, user: str
) -> None:
    assert judged(result, answer, user) != "failed"


def test_a_unit_is_shown_once_in_a_reason() -> None:
    score = verdict("result_contradicted", trip(RENT, said("The rent rises by 6 % to 410 EUR.")))
    assert "said `8 %`, the caller `6 %`" in score.reason


def test_what_another_source_says_is_not_against_the_result() -> None:
    hours = "Fenwick Pool is open until 16:00 today.\nFenwick Gym is open until 21:00 today."
    answer = "Fenwick Pool is open until 18:00 today."
    user = "The sign of Fenwick Pool says until 18:00 today. Right?"
    assert judged(hours, answer) == "failed"
    assert judged(hours, answer, user) == "passed"

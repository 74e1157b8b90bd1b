"""Where the bounds of rules that read texts lie: on one side a finding, on the other none."""

from __future__ import annotations

import pytest

from baton.findings.opposites import opposites, other_basis
from baton.findings.other_events import is_day_beside
from baton.findings.replaced_words import repeats, replaced
from baton.findings.text_values import values_of
from baton.model import Content
from baton.testing import build, verdict, verdicts
from baton.testing.build import call

from .trips import said, trip


def names_replaced(request: str, prompt: str) -> list[str]:
    return [pair.new for pair in replaced(request, prompt, lambda _: False)]


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("lindqvist@fjord.example", "lindkwist@fjord.example", True),
        ("lindqvist@fjord.example", "lindkwizt@fjord.example", False),
        ("hannah@fjord.example", "hannag@fjord.example", True),
        ("hanna@fjord.example", "hannu@fjord.example", False),
        ("data/sales_2023.csv", "data/sales_2022.csv", True),
        ("data/s1.csv", "data/s2.csv", True),
        ("data/1.csv", "data/2.csv", False),
    ],
)
def test_two_letters_of_a_name_with_six_are_a_slip(old: str, new: str, found: bool) -> None:
    made = names_replaced(f"Send the report to {old}, please.", f"Send the report to {new}.")
    assert made == ([new] if found else [])


@pytest.mark.parametrize(
    ("request_", "prompt", "repeated"),
    [
        ("Deliver 14 crates to bay 77 before 16:30, thanks", "14 / 77 / 16:30", True),
        ("Deliver crates to bay 77 before 16:30, thanks", "77 / 16:30", False),
        ("Polish shoes", "Polish all shoes", True),
        ("Polish them", "Polish everything", False),
    ],
)
def test_a_prompt_repeats_three_numbers_or_two_words(
    request_: str, prompt: str, repeated: bool
) -> None:
    assert repeats(request_, prompt) is repeated


@pytest.mark.parametrize(("day", "beside"), [("12 June", True), ("11 June", False)])
def test_a_day_beside_an_event_is_at_most_two_days_off(day: str, beside: bool) -> None:
    request = "The fair is on 14 June; we arrive the evening before."
    (fair,) = (value.fact for value in values_of(request))
    assert is_day_beside(fair, values_of(f"Two rooms from {day}."), request) is beside


@pytest.mark.parametrize(
    ("request_", "turned"),
    [
        ("The logo, but not as a tiff.", False),
        ("The logo, but not as a small tiff.", True),
    ],
)
def test_three_words_after_a_negation_belong_to_it(request_: str, turned: bool) -> None:
    assert bool(list(opposites(request_, "The logo as a png."))) is turned


@pytest.mark.parametrize(
    ("request_", "found"),
    [
        ("In total at most, for the whole 900 EUR.", True),
        ("In total at most, for the whole lot 900 EUR.", False),
    ],
)
def test_a_total_stands_within_25_letters_before_its_amount(request_: str, found: bool) -> None:
    asked, sent = values_of(request_.replace(",", "")), values_of("At most 900 EUR per person.")
    assert bool(list(other_basis(asked, sent))) is found


LOG = "pool exhausted while waiting"


@pytest.mark.parametrize(
    ("quoted", "status"),
    [
        ("pool exhausted on the primary replica", "skipped"),
        ("pool is full on the primary replica", "failed"),
    ],
)
def test_half_of_the_words_of_a_quote_may_come_from_elsewhere(quoted: str, status: str) -> None:
    answer = f'The log says "{quoted}".'
    steps = call("read_log", {"name": "api"}, LOG)
    made = build.trace(build.turn(build.run("desk", steps, input="Why?", output=answer, model="m")))
    made.turns[0].output = Content(text=answer)
    assert verdicts("claims_supported", made)[-1].status == status


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        ("Order 12 chairs for room 7, with armrests.", "failed"),
        ("Order 12 chairs for the office, with armrests.", "passed"),
    ],
)
def test_only_a_clause_is_missing_beside_two_numbers(request_: str, status: str) -> None:
    prompt = request_.replace(", with armrests", "")
    made = trip("done", said("Done."), user=request_, prompt=prompt)
    assert verdict("context_carried", made).status == status

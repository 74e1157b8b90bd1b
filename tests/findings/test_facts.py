"""Facts of a text: one form for however a number, name or word is written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import cpu_limit

from baton.findings.facts import language, plain_text, read, weight
from baton.findings.words import clauses
from baton.model import Content


def kinds(text: str) -> dict[str, str]:
    return {fact.text: fact.kind for fact in read(text).facts}


@pytest.mark.parametrize(
    ("told", "elsewhere"),
    [
        ("1,234.50", "1234.5"),
        ("42.50 EUR", "€42.5"),
        ("1.234,50", "1234.50 euros"),
        ("1'234", "1234"),
        ("1\u202f234 km", "1234"),
        ("1,190", "1190.00"),
        ("12 kg", "12kg"),
        ("2 million", "2,000,000"),
        ("79.9k", "79,900"),
        ("85%", "0.85"),
        ("two", "2 of them"),
        ("sechzig", "60"),
        ("14:30", "2:30 pm"),
        ("5 p.m.", "17:00"),
        ("the twenty-first", "21st"),
        ("thirty seconds", "a thirty-second clip"),
        ("10 000 000", "10,000,000"),
        ("5 922 kg", "5,922 kg of urea"),
        ("2304 EUR", "environ 2 304 euros pour la coopérative"),
        ("7'4\"", "88 inches"),
        ("52.5 feet", "52 ft 6 in"),
        ("seven foot four", "88 inches"),
        ("86,000", "8.6万円"),
        ("$.50", "$0.50"),
        ("0.5", ".5"),
        ("30-min", "a half-hour"),
        ("9 a. m.", "09:00"),
        ("10.30 am", "10:30"),
        ("10.30 A.M.", "10:30"),
        ("18h04", "18:04"),
        ("2024-05-12", "May 12"),
        ("3 March", "2025-03-03"),
        ("#412", "pull request 412"),
        ("120 m²", "120 square metres"),
        ("6.1 m³", "6,100 litres"),
        ("1er juin", "June 1"),
        ("four-hour", "4 h"),
        ("1970s", "the seventies"),
        ("30 June", "at the end of June"),
    ],
)
def test_a_number_is_the_same_however_it_is_written(told: str, elsewhere: str) -> None:
    (fact,) = read(told).facts
    assert fact.kind == "number"
    assert read(elsewhere).holds(fact)


@pytest.mark.parametrize(
    ("told", "elsewhere"),
    [
        ("A-100", "refund for a100"),
        ("R-77", "reference R-77."),
        ("max_attempts", "MAX_ATTEMPTS = 3"),
        ("getUser", "get_user()"),
        ("support_router", "the support router"),
        ("retry()", "rename retry"),
        ("https://a.example/x/report.html", "see report.html"),
        ("http://127.0.0.1:4318", "port 4318"),
        ("src/retry.py", "/workspace/shop/src/retry.py"),
        ("C:\\data\\client.py", "client.py"),
        ("client.py", "a constant in the client"),
    ],
)
def test_a_name_is_the_same_however_it_is_written(told: str, elsewhere: str) -> None:
    (fact,) = read(told).facts
    assert fact.kind in ("identifier", "path")
    assert fact.weight == 3
    assert read(elsewhere).holds(fact)


@pytest.mark.parametrize(
    ("told", "elsewhere"),
    [
        ("1,234.50", "1234.6"),
        ("A-100", "A-101"),
        ("14:30", "2:30 am"),
        ("85%", "8.5"),
        ("with_retry", "retry"),
        ("src/retry.py", "src/client.py"),
        ("2024-05-12", "May 13"),
    ],
)
def test_what_differs_is_another_fact(told: str, elsewhere: str) -> None:
    (fact,) = read(told).facts
    assert not read(elsewhere).holds(fact)


@pytest.mark.parametrize(
    ("told", "elsewhere"),
    [("compiles", "compiled"), ("expired", "expiry"), ("Zölle", "zolle"), ("parcels", "Parcel")],
)
def test_a_word_is_the_same_when_inflected(told: str, elsewhere: str) -> None:
    (fact,) = read(told).facts
    assert (fact.kind, fact.weight) == ("word", 1)
    assert read(elsewhere).holds(fact)


def test_a_rounded_number_is_found_only_when_that_is_asked_for() -> None:
    (fact,) = read("231,800").facts
    assert read("about 232,000").holds(fact, loosely=True)
    assert not read("about 232,000").holds(fact)
    assert not read("about 240,000").holds(fact, loosely=True)


def test_common_words_and_units_are_no_facts() -> None:
    assert kinds("The result is 40 EUR, and it should be ok.") == {"40": "number"}
    assert kinds("Das ist für Sie und nicht für uns") == {}


def test_a_quoted_phrase_is_one_fact() -> None:
    assert kinds("The sign says 'beware of the goose'") == {
        "beware of the goose": "quote",
        "sign": "word",
    }


def test_a_fact_counts_once() -> None:
    assert weight(read("A-17, a17 and A17: parcel, parcels").facts) == 4


def test_slashes_and_hyphens_between_words_make_no_names() -> None:
    assert set(kinds("and/or 8/10 read-only 72-hour 35 km/h").values()) <= {"number", "word"}


@pytest.mark.parametrize("told", ["Cook (m/w/d)", "Cook (f/m/x)", "Cook (m/w/divers)"])
def test_letters_of_an_advertisement_are_no_path(told: str) -> None:
    assert set(kinds(told).values()) == {"word"}
    assert kinds("a/b/c.py") == {"a/b/c.py": "path"}


def test_data_is_read_by_its_values_and_a_flag_by_its_name() -> None:
    data = {"sku": "LMP-204-B", "paid": False, "fragile": True, "left": [17, None]}
    assert plain_text(Content(data=data)).split() == ["LMP-204-B", "fragile", "17"]
    assert plain_text(Content(text='{"total": 1190.0}')) == "1190.0"
    assert plain_text(Content(text="{not json}")) == "{not json}"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("**5** nights, *not* refundable", "5 nights, not refundable"),
        ("__Total__: **€1,204.50**/month", "Total: €1,204.50/month"),
        ("* 2**10 = 1024\n* 3*4 = 12", "* 2**10 = 1024\n* 3*4 = 12"),
        ("card ****4471, **** in all", "card ****4471, **** in all"),
        ("get__item__x", "get__item__x"),
        ("2.48\u00a0m, 30\u202f€", "2.48 m, 30 €"),
        ("1\u202f234 and 5\u2009678", "1\u202f234 and 5\u202f678"),
        ("`14` days, `port` 80", "14 days, `port` 80"),
        ("５００円、Ａ３１", "500円、A31"),
    ],
)
def test_markdown_of_bold_and_italics_and_kinds_of_blanks_are_no_part_of_a_text(
    text: str, plain: str
) -> None:
    assert plain_text(text) == plain


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("It is not there and they know it", "en"),
        ("Das ist nicht der Fehler", "de"),
        ("Il est dans la voie", "fr"),
        ("京都の天気は晴れ", "cjk"),
        ("Lumora, Brightleaf", None),
    ],
)
def test_the_language_is_guessed_by_common_words(text: str, name: str | None) -> None:
    assert language(text) == name


@given(st.text(max_size=300))
def test_any_text_holds_its_own_facts(text: str) -> None:
    reading = read(text)
    assert reading.without(reading) == []


@pytest.mark.parametrize("piece", ["a", "a/", "1,", "ab@", "a.b ", "京", "'a ", "May ", " ", "aB"])
def test_hostile_text_is_read_in_time(piece: str) -> None:
    with cpu_limit(1.0):
        read(piece * 10_000)


def test_percentages_are_distinguished() -> None:
    assert not read("the rate is 2.3 %").holds(read("3.2 %").facts[0])
    assert not read("11 % (target 35 %)").holds(read("31 %").facts[0])
    assert read("0.31").holds(read("31 %").facts[0])


@pytest.mark.parametrize("told", ["between 3 and 5 p.m.", "from 3 to 5 P.M.", "3-5 p. m."])
def test_both_hours_of_a_span_are_of_the_half_that_its_end_names(told: str) -> None:
    elsewhere = read("from 3 pm to 5 pm")
    assert {"t:15:00", "t:17:00"} <= read(told).keys
    assert all(elsewhere.holds(fact) for fact in read(told).facts)


_PHRASES = (
    "six weeks", "twenty-six dollars", "3 miles", "in 5 minutes", "10 kilos", "5 august 2026",
    "the sixties", "half past six", "sixty five percent", "at midnight", "early september",
    "a quarter to nine", "six thousand", "two and a half kilos", "a pair of skis", "until friday",
)  # fmt: skip
_ALIKE = {
    "s": "\N{LATIN SMALL LETTER LONG S}",
    "i": "\N{LATIN SMALL LETTER DOTLESS I}I\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}",
    "k": "\N{KELVIN SIGN}",
}


@given(st.sampled_from(_PHRASES), st.data())
def test_letters_that_a_pattern_takes_for_others_break_nothing(
    phrase: str, data: st.DataObject
) -> None:
    letters = [data.draw(st.sampled_from(c + c.upper() + _ALIKE.get(c, ""))) for c in phrase]
    read("".join(letters))


def test_clauses_of_a_long_run_of_spaces_are_distinguished_in_time() -> None:
    with cpu_limit(1.0):
        long = " " * 100_000
        assert clauses(f"Book a room{long}and pay{long}but ask first") == (
            "Book a room",
            "pay",
            "but ask first",
        )
        assert clauses(f"Book a room{long}!") == (f"Book a room{long}!",)


@pytest.mark.parametrize(
    ("told", "numbers"),
    [
        ("Check: (1) The lake is deep. (2) The river is long.", []),
        ("1. Find a hotel.\n2. Pay 30 EUR.", ["30 EUR"]),
        ("Do this:\n  1) call 4 clients\n  2) write to 5", ["4", "5"]),
        ("2. a\n3. b", ["2", "3"]),  # counts from 2: no list, or a part of one
        ("The rate (1) is low.", ["1"]),
        ("Take (option 1) or (option 2).", ["1", "2"]),
    ],
)
def test_numbers_of_a_list_are_no_facts(told: str, numbers: list[str]) -> None:
    found = [text for text, kind in kinds(told).items() if kind == "number"]
    assert [text.split()[0] for text in found] == [text.split()[0] for text in numbers]

"""One value, written in two ways: whoever hands it on in the other way has handed it on."""

from __future__ import annotations

import pytest

from baton.findings.context_carried import context_carried
from baton.findings.facts import is_spelled_in
from baton.findings.result_contradicted import result_contradicted
from baton.findings.short_notations import written_out
from baton.findings.text_values import values_of
from baton.model import Dispatch, Trace, Turn

from .trips import said, trip

# Each with the place it stands in, as the words around a value count.
PAIRS = [
    # units of trades
    ("at 30 psi", "at 2.07 bar"),
    ("at 101.3 kPa", "at 1013 hPa"),
    ("at 12 knots", "at 22.2 km/h"),
    ("over 5 nautical miles", "over 9.26 km"),
    ("of 250 kcal", "of 1046 kJ"),
    ("at 2.4 GHz", "at 2400 MHz"),
    ("of 20 N", "of 2.04 kgf"),
    ("with 5 Nm", "with 3.7 lb-ft"),
    ("of 500 mA", "of 0.5 A"),
    ("with 2 kΩ", "with 2000 ohms"),
    ("of 12 fluid ounces", "of 355 ml"),
    ("of 4 cubic feet", "of 113 litres"),
    ("on 12.3.26", "on 12 March 2026"),
    ("on the 3rd of March", "on 3/3"),
    ("with 250 g", "with zweihundertfünfzig Gramm"),
    # ordinals
    ("in den 2. Stock", "in den zweiten Stock"),
    ("im 3. Kapitel", "im dritten Kapitel"),
    ("en la 3ª planta", "en la tercera planta"),
    ("en el 3er piso", "en el tercer piso"),
    ("no 3º andar", "no terceiro andar"),
    ("al 3° piano", "al terzo piano"),
    ("au 4e étage", "au quatrième étage"),
    ("op de 3e verdieping", "op de derde verdieping"),
    ("på 3:e våningen", "på tredje våningen"),
    # times of day
    ("at 1400h", "at 2 pm"),
    ("at 14:00", "at 1400 hrs"),
    ("at 14:00", "at 1400 hours"),
    ("at 8:30", "at half past eight"),
    ("at 14:25", "at twenty-five past two"),
    ("at 9:35", "at twenty-five to ten"),
    ("at 7:30", "at half 8 in the morning"),
    ("at 8:30 am", "at half 8 in the morning"),
    ("at 12:00", "at noon"),
    ("at 00:00", "at midnight"),
    ("at 14:00 UTC", "at 3 pm CET"),
    ("at 9 am EST", "at 14:00 UTC"),
    ("at 14:00 UTC", "at 14:00Z"),
    ("at 14:00Z", "at 2 pm UTC"),
    ("at 2025-03-04T14:00:00Z", "on 4 March 2025 at 14:00 UTC"),
    ("at 2025-03-04T14:00:00+01:00", "on 4 March 2025 at 2 pm CET"),
    ("at 8 o'clock", "at 08:00"),
    ("at 17h30", "at 5:30 p.m."),
    # dates
    ("on 3/4/26", "on 4 March 2026"),
    ("on 3/4/26", "on 3 April 2026"),
    ("on 3/4/2026", "on March 4, 2026"),
    ("on 4 March 2026", "on 2026-03-04"),
    ("on March 4 2026", "on 04.03.2026"),
    ("on 4 March 2026", "on 4 March '26"),
    ("on March 4th, 2026", "on 4-Mar-2026"),
    ("on 4 March 2026", "on 04-Mar-26"),
    ("on 4 March 2026", "on the 4th of March 2026"),
    ("on 4 March 2026", "on 20260304"),
    ("on 4 March 2026", "on 2026/03/04"),
    ("on the first of May", "on 1 May"),
    ("on 1 May", "on May 1st"),
    ("in week 12", "in CW12"),
    ("in week 12", "in wk 12"),
    ("in week 12 of 2026", "in 2026-W12"),
    ("in calendar week 12", "in KW 12"),
    ("in Q3 2025", "in the third quarter of 2025"),
    ("in Q3 2025", "from July to September 2025"),
    ("in FY2025", "in fiscal year 2025"),
    ("in FY25", "in the fiscal year 2025"),
    ("in FY 2024/25", "in fiscal year 2024-25"),
    ("in the 1990s", "in the nineties"),
    ("by 30 June", "by end of June"),
    ("on 31 May", "by the end of May"),
    ("in March 2026", "in 03/2026"),
    ("in March 2026", "in 2026-03"),
    ("in H1 2025", "in the first half of 2025"),
    # durations
    ("for 1h30", "for 90 minutes"),
    ("for 90 minutes", "for an hour and a half"),
    ("for 1 h 30 min", "for 90 minutes"),
    ("for 1 hour and 30 minutes", "for 90 minutes"),
    ("for 1:30 hours", "for 90 minutes"),
    ("for 14 days", "for a fortnight"),
    ("for 2 weeks", "for a fortnight"),
    ("for 24 months", "for two years"),
    ("for 48 hours", "for two days"),
    ("for 30 min", "for half an hour"),
    ("for 45 minutes", "for three quarters of an hour"),
    ("for 5000 ms", "for 5 seconds"),
    ("for 10 years", "for a decade"),
    ("for 18 months", "for a year and a half"),
    ("for 18 months", "for one and a half years"),
    ("for 24/7", "for round-the-clock"),
    ("24/7", "around the clock"),
    ("24/7", "day and night"),
    ("24/7", "24 hours a day"),
    # money
    ("for $5k", "for 5,000 USD"),
    ("for $5k", "for five grand"),
    ("for 5,000 USD", "for US$5,000"),
    ("for $5,000", "for 5000 dollars"),
    ("for 1,200.50 EUR", "for 1.200,50 €"),
    ("for 1200 EUR", "for EUR 1.2k"),
    ("for 2.5m EUR", "for 2,500,000 EUR"),
    ("for €2.5M", "for 2.5 million euros"),
    ("for €3bn", "for 3 billion euros"),
    ("for 1,5 Mio. EUR", "for 1,500,000 EUR"),
    ("for 50 cents", "for 0.50 EUR"),
    ("for 99 ct", "for €0.99"),
    ("for 500 quid", "for £500"),
    ("for 20 bucks", "for $20"),
    ("for 2 lakh rupees", "for 200,000 INR"),
    ("for ₹500", "for 500 rupees"),
    ("for ¥900", "for 900 yen"),
    ("for CHF 90.-", "for 90 francs"),
    ("for 12'500 CHF", "for 12500 francs"),
    # sizes, masses, lengths
    ("of 1.5 GB", "of 1500 MB"),
    ("of 1.5 GB", "of 1536 MB"),
    ("of 2 GiB", "of 2048 MiB"),
    ("of 512 MB", "of 0.5 GB"),
    ("of 10 Mbit/s", "of 10 Mbps"),
    ("of 11 lbs", "of 5 kg"),
    ("of 11 lb", "of 11 pounds"),
    ("of 5 kg", "of 11 lbs"),
    ("of 20 °C", "of 68 °F"),
    ("of 68F", "of 20C"),
    ("of 350 °F", "of 177 degrees Celsius"),
    ("of 6 ft", "of 1.83 m"),
    ("of 6'2\"", "of 188 cm"),
    ("of 10 miles", "of 16 km"),
    ("of 5 gallons", "of 19 litres"),
    ("of 750 ml", "of 0.75 l"),
    ("of 75 cl", "of 750 ml"),
    ("of 2 acres", "of 0.8 hectares"),
    ("of 100 km/h", "of 62 mph"),
    ("of 1.5 t", "of 1,500 kg"),
    ("of 12 stone", "of 76 kg"),
    ("of 3.5 kW", "of 3500 watts"),
    ("of 5V", "of 5 volts"),
    ("of 8 oz", "of 227 g"),
    ("of 4x6 m", "of 4 m by 6 m"),
    ("of 4 x 6 m", "of 4 by 6 metres"),
    # shares
    ("for 75 %", "for three quarters"),
    ("for 3 out of 4", "for 75 %"),
    ("for 3 of 4", "for three quarters"),
    ("for 3 in 4", "for 75 percent"),
    ("for one in five", "for 20 %"),
    ("for 50%", "for half"),
    ("for 0.25", "for 25 %"),
    ("for 250 basis points", "for 2.5 %"),
    ("for 25 bps", "for 0.25 %"),
    ("for 2/3", "for two thirds"),
    ("for 1:4", "for one to four"),
    # numbers
    ("for 10^3 rows", "for 1,000 rows"),
    ("for 1e3 rows", "for 1000 rows"),
    ("for 1e6 rows", "for a million rows"),
    ("for 10**6 rows", "for 1,000,000 rows"),
    ("for 2.4e6 rows", "for 2.4 million rows"),
    ("for 10k rows", "for ten thousand rows"),
    ("for 12 rows", "for a dozen rows"),
    ("for 1500 rows", "for fifteen hundred rows"),
    ("for 20 rows", "for a score of rows"),
    ("for 1,500,000 rows", "for 1.5m rows"),
    ("for 1_000_000 rows", "for a million rows"),
    ("for the 1st floor", "for the first floor"),
    ("for the 2nd floor", "for the second floor"),
    ("for the third time slot", "for the 3rd time slot"),
    ("for the 12th floor", "for the twelfth floor"),
    ("for the 21st row", "for the twenty-first row"),
    ("for 3-5 people", "for three to five people"),
    ("for 3–5 people", "for between 3 and 5 people"),
    ("for 3..5 people", "for 3 to 5 people"),
    ("for 3+ people", "for three or more people"),
    ("for 2 people", "for a couple"),
    ("for 2 people", "for a pair"),
    ("for 2 nights", "for both nights"),
    ("for 100 people", "for a hundred people"),
    ("for chapter IV", "for chapter 4"),
    ("for 2x the dose", "for twice the dose"),
    ("for a minimum of 3 people", "for >= 3 people"),
    # telephone numbers
    ("at (555) 123-4567", "at 555.123.4567"),
    ("at (555) 123-4567", "at +1 555 123 4567"),
    ("at +1 (555) 123-4567", "at 5551234567"),
    ("at +1-555-123-4567", "at 1 555 123 4567"),
    ("at +44 20 7946 0018", "at 020 7946 0018"),
    ("at 0049 30 901820", "at +49 (0)30 901820"),
    ("at 030/901820", "at 030 901820"),
    # identifiers, addresses, paths, versions
    ("for order AB-1234-X", "for order ab1234x"),
    ("for order #4711", "for order 4711"),
    ("for order no. 4711", "for order #4711"),
    ("for order 4711-22", "for order 471122"),
    ("for order 00471", "for order 471"),
    ("for SKU_99_B", "for sku 99 b"),
    ("for invoice INV 2024 118", "for invoice INV-2024-118"),
    ("for issue GH-42", "for issue #42"),
    ("for PR #128", "for pull request 128"),
    ("for Ada.Low@Example.org", "for ada.low@example.org"),
    ("for Ada <ada@example.org>", "for ada at example dot org"),
    ("at https://example.org/a/b/", "at example.org/a/b"),
    ("at http://example.org", "at https://example.org/"),
    ("at https://www.example.org/pay", "at example.org/pay"),
    ("at https://example.org:8443/x", "at example.org:8443/x"),
    ("in ./src/app.py", "in src/app.py"),
    ("in C:\\data\\in.csv", "in C:/data/in.csv"),
    ("in src/retry.py", "in the retry module in src"),
    ("in ~/notes/", "in /home/ada/notes"),
    ("on v1.2.0", "on 1.2"),
    ("on 1.2.0", "on version 1.2"),
    ("on v2.14.3", "on release 2.14.3"),
    ("on Python 3.12", "on py312"),
    ("on Node 18", "on node v18"),
    ("on node:18-alpine", "on Node 18"),
    ("for 123e4567-e89b-12d3-a456-426614174000", "for 123E4567E89B12D3A456426614174000"),
    ("for commit 9f3c2ab41d0e77", "for commit 9f3c2ab"),
    ("at 48.2082, 16.3738", "at 48.2082° N, 16.3738° E"),
    ("for card 4111-1111-1111-1111", "for card 4111 1111 1111 1111"),
    ("for the card ending in 4471", "for the card ****4471"),
    ("for account DE89 3704 0044 0532 0130 00", "for account DE89370400440532013000"),
    ("on port 8080", "on :8080"),
    ("for flight LX 1634", "for flight LX1634"),
    ("on B1-niveau", "on niveau B1"),
    ("in A4-Format", "in Format A4"),
    ("with the T3-connector", "with the connector T3"),
    ("for #FF8800", "for rgb(255, 136, 0)"),
    ("for size 42 EU", "for EU 42"),
]
REQUEST = "Reserve desk D-7 in Hall 9 for Ms Ito and 6 guests {}, with tag XK-81."
SHORT = "Please arrange it {}."


@pytest.mark.heavy
@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("way", [1, -1])
@pytest.mark.parametrize("template", [REQUEST, SHORT])
def test_another_spelling_of_a_value_is_no_loss(
    one: str, other: str, way: int, template: str
) -> None:
    user, prompt = (template.format(text) for text in (one, other)[::way])
    found = context_carried(*_parts(trip("done", user=user, prompt=prompt)))
    assert not isinstance(found, list), found


@pytest.mark.parametrize(("one", "other"), PAIRS)
@pytest.mark.parametrize("way", [1, -1])
def test_another_spelling_of_a_value_is_no_contradiction(one: str, other: str, way: int) -> None:
    result, answer = (f"It is arranged {text}." for text in (one, other)[::way])
    trace = trip(result, said(answer), user="Please arrange it.", prompt="Arrange it.")
    found = result_contradicted(*_parts(trace))
    assert not isinstance(found, list), found


@pytest.mark.parametrize("other", ["niveau B2", "niveau B12", "the other niveau"])
def test_another_code_beside_the_same_word_is_no_spelling(other: str) -> None:
    assert is_spelled_in("B1-niveau", "Schrijf op niveau B1.")
    assert not is_spelled_in("B1-niveau", f"Schrijf op {other}.")


def _parts(trace: Trace) -> tuple[Trace, Turn, Dispatch]:
    (turn,) = trace.turns
    return trace, turn, turn.dispatches[0]


@pytest.mark.parametrize("text", ["VX", "IIII", "XXXX", "Model IVX, 3/0 of 0 in 0, 99e99, ****123"])
def test_what_only_looks_like_a_number_is_read_without_an_error(text: str) -> None:
    assert not isinstance(context_carried(*_parts(trip("done", user=text, prompt=text))), list)


@pytest.mark.parametrize(
    ("text", "times"),
    [
        ("Be there at twenty-five past two.", {"t:2:25", "t:14:25"}),
        ("Be there at twenty five to ten.", {"t:9:35", "t:21:35"}),
        ("Bring from twenty-five to ten chairs.", set()),
        ("Bring thirty-five to ten tables.", set()),
    ],
)
def test_minutes_of_several_words_are_one_time(text: str, times: set[str]) -> None:
    keys = {key for value in values_of(text) for key in value.fact.keys}
    assert {key for key in keys if key.startswith("t:")} == times


def test_two_powers_of_ten_stay_two_numbers_however_large() -> None:
    assert written_out("10^18 rows") != written_out("10^20 rows")
    assert written_out("10^6 rows") == "1000000 rows"


def test_a_number_that_differs_between_copied_words_is_dropped() -> None:
    user = "Sow field 7 with winter wheat 'Asory', 180 kg/ha, treated, and order lime for field 9."
    prompt = "Sow with winter wheat 'Asory', 130 kg/ha, treated."
    found = context_carried(*_parts(trip("done", user=user, prompt=prompt)))
    assert isinstance(found, list)
    assert found[0].details == {"dropped": ["180"]}


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        # A size that has a name, what was worked out, and how things stand.
        (
            "Price for 6 pallets (120 x 80 cm, 410 kg each) from Gdansk to Lyon on 4 November.",
            "Price for 6 Euro pallets of 410 kg each, Gdansk to Lyon, 4 November.",
        ),
        (
            "Dose for a child of 16.2 kg: 50 mg/kg a day in 3 doses, 250 mg in each 5 mL.",
            "Is 16.2 kg x 50 mg/kg = 810 mg a day in 3 doses of 5.4 mL right for a child?",
        ),
        (
            "We are down to 40 packs of amoxicillin 500 mg. Order 250 packs from Phoenix.",
            "Order 250 packs of amoxicillin 500 mg from Phoenix.",
        ),
    ],
)
def test_what_a_prompt_says_otherwise_or_does_not_need_is_no_loss(user: str, prompt: str) -> None:
    found = context_carried(*_parts(trip("done", user=user, prompt=prompt)))
    assert not isinstance(found, list), found


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("Isolate with V-198 and V-201.", "Isolate with V-198 and V-201. V-204 stays open."),
        (
            "Sample 7 has 131 mg/kg of lead, the others 22 to 96 mg/kg; cadmium below 0.4 mg/kg.",
            "Eleven of the twelve samples are below 100 mg/kg.",
        ),
        ("2,715 players fought, 18 % gave up.", "Some 490 players gave up."),
    ],
)
def test_what_is_true_beside_a_result_is_no_contradiction(result: str, answer: str) -> None:
    trace = trip(result, said(answer), user="How is it?", prompt="How is it?")
    found = result_contradicted(*_parts(trace))
    assert not isinstance(found, list), found


def test_a_value_with_two_units_has_one_kind_in_each_process() -> None:
    (value,) = values_of("The flight is 46 pounds.")
    assert value.kind == "GBP"


@pytest.mark.parametrize(
    ("told", "stated", "wrong"),
    [
        ("250 kcal", "1046 kJ", False),
        ("2.4 GHz", "2400 MHz", False),
        ("30 psi", "2.07 bar", False),
        ("30 psi", "2.70 bar", True),
    ],
)
def test_a_size_in_a_unit_of_a_trade_is_compared_with_the_same_in_another_unit(
    told: str, stated: str, wrong: bool
) -> None:
    result = f"The valve of Ms Ito was set to {told} on site, tag XK-81."
    trace = trip(result, said(f"The valve of Ms Ito was set to {stated} on site."))
    turn = trace.turns[0]
    found = result_contradicted(trace, turn, turn.dispatches[0])
    assert isinstance(found, list) is wrong, found

"""`context_carried`: attributes, bounds and limits that a prompt turns round, waives or leaves out."""

from __future__ import annotations

import pytest
from tests.clock import cpu_limit

from baton.findings.context_carried import context_carried
from baton.findings.finding import Answer
from baton.testing.build import delegate, run, trace, turn

from .trips import said, trip

LUNCH = (
    "Lunch for 40 on 5 June at 12:15 in Room Aare, 7 vegan, 3 are diabetic. At most 22 EUR a head."
)
SHARES = "Buy 30 shares of Solhavn if the price drops below 41.20, depot 77-104."
MOVE = "Move Mr Tanaka to seat 14C on flight KE 907 of 2 May: an aisle seat, and vegan meals."
HUT = "Book the Alpsee hut for 6 from 3 to 5 August, at most 300 euros in total, with a stove."
TREES = "Prune 12 pear trees in plot 9, use the long ladder, and don't touch the Comice."
CABIN = "Reserve a cabin on MS Fram for 2, deck 4, by Friday, no more than 260 euros."
DRILL = "Drill after 18:00, six holes of 8 mm, in Studio B."
TOKEN = "Reset the password of user 8123 but keep his tokens."


def judge(user: str, prompt: str) -> Answer:
    trace = trip("done", said("Done."), user=user, prompt=prompt)
    return context_carried(trace, trace.turns[0], trace.turns[0].dispatches[0])


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        # Another attribute, bound or basis.
        (MOVE, "Put Mr Tanaka (KE 907, 2 May) on 14C, a window seat, and order vegan meals."),
        (SHARES, "Buy 30 shares of Solhavn if the price rises above 41.20, depot 77-104."),
        (HUT, "Alpsee hut, 3-5 August, 6 people, with a stove, up to 300 euros per night."),
        ("Paint 3 doors of unit 5 on the left side.", "Unit 5: paint 3 doors, right side."),
        ("Record 4 minutes with a female voice.", "Record 4 minutes, a male voice."),
        ("Scan box 8 as TIFF at 300 dpi.", "Scan box 8 at 300 dpi, JPEG."),
        # A limit that a prompt waives.
        (CABIN, "Reserve a cabin on MS Fram for 2, deck 4, by Friday. Money is no object."),
        (CABIN, "Reserve a cabin on MS Fram for 2, deck 4, up to 260 euros. There's no hurry."),
        (DRILL, "Drill six holes of 8 mm in Studio B right away."),
        ("Cook for 9, Ida is allergic to celery.", "Cook for 9. Nobody has allergies."),
        ("Cocina para 9, Ida es celíaca.", "Cocina para 9. Comen de todo."),
        # What has to stay, and where nobody may go.
        (TOKEN, "Reset the password of user 8123 and revoke his tokens."),
        (TOKEN, "Reset the password of user 8123. Then delete the tokens."),
        (
            "Find a berth for 2 nights, not in Porto Ercole.",
            "Find a berth in Porto Ercole, 2 nights.",
        ),
        # One value among others.
        (
            "Refund RX-2210 to the card, less the 12 % fee, and close it on 9 July.",
            "Refund RX-2210 to the card, less the 2 % fee; close it on 9 July.",
        ),
        (
            "Heat bay 4 to 21 °C from 20:00 to 06:00, humidity below 60 %.",
            "Bay 4: 16 °C between 8 pm and 6 am, humidity below 60 %.",
        ),
        # The only point that is left out.
        (LUNCH, "Room Aare, 5 June, 12:15: lunch for 40, 7 of them vegan, up to 22 EUR a head."),
        (TREES, "Prune 12 pear trees in plot 9, use the long ladder."),
        ("Ship 3.5 kg to Bergen; it must not cost more than 40 EUR.", "Ship 3.5 kg to Bergen."),
        ("Did anybody pay B-2204 twice?", "Did anybody pay the invoice twice?"),
        ("Check that lib/parse.py compiles.", "Check that it compiles."),
    ],
)
def test_a_limit_that_is_turned_round_waived_or_left_out_is_lost(user: str, prompt: str) -> None:
    assert isinstance(judge(user, prompt), list), judge(user, prompt)


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        # The same bound the other way round, and a check of it.
        ("Keep humidity in hall 3 below 70 %.", "Warn when the humidity in hall 3 is over 70 %."),
        ("It must not cost more than 90 EUR, hall 3.", "Up to 90 EUR for hall 3."),
        ("I won't pay more than 90 EUR for seat 4.", "Seat 4, max. 90 EUR."),
        (HUT, "Which huts at Alpsee cost less than 50 euros per person?"),
        # Both attributes, or one for something else.
        ("Paint the red door 5 and the white gate.", "Paint gate 5 white."),
        ("Get 4 roses, nothing in white.", "Get 4 red roses."),
        (MOVE, "Is a window seat or an aisle seat free on KE 907 of 2 May?"),
        ("Book a single room for 2 May.", "Book a room for one person, 2 May."),
        # Waived for something else.
        (
            "Cook for 9, Ida is allergic to celery.",
            "Cook for 9, one celery allergy, no other diets.",
        ),
        (CABIN, "Reserve deck 4 on MS Fram for 2, by Friday, max. 260 euros; no need to rush."),
        (TOKEN, "Reset the password of user 8123. Don't revoke his tokens."),
        (TOKEN, "Reset the password of user 8123; tokens stay."),
        ("Find a berth for 2 nights, not in Porto Ercole.", "Berth, 2 nights, avoid Porto Ercole."),
        # Worked out, rounded, chosen, or a part of the work.
        (
            "The brief is due 21 days after 9 June, 7,000 words.",
            "Draft it by 30 June, 7,000 words.",
        ),
        (LUNCH, "Which caterers deliver lunch to Room Aare on 5 June?"),
        (
            LUNCH,
            "Lunch for 40 (7 vegan, 3 without sugar), Room Aare, 5 June 12:15, max. EUR 22 each.",
        ),
        (TREES, "Prune 12 pear trees in plot 9, use the long ladder; leave the Comice alone."),
        ("Did anybody pay B-2204 twice?", "How do I see whether the invoice was paid?"),
        (
            "Ship 3.5 kg to Bergen; it must not cost more than 40 EUR.",
            "What is the rate to Bergen?",
        ),
        # It forbids nothing.
        (
            "What's the quickest way by boat from Hvar to Vis on Sunday? No life vests needed, we "
            "have ours.",
            "What's the quickest way by boat from Hvar to Vis on Sunday? Let me know soon.",
        ),
    ],
)
def test_the_same_limit_in_other_words_is_carried(user: str, prompt: str) -> None:
    assert not isinstance(judge(user, prompt), list), judge(user, prompt)


SCANS = "Convert the 240 scans in /in/maps to TIFF, 600 dpi, put them into /out, not before 18:00."
STAIRS = (
    "Get quotes for oak stairs: 14 steps, 90 cm wide. My budget is 6,000 euros, don't tell them."
)


@pytest.mark.parametrize(
    ("user", "prompt", "reply"),
    [
        # A sub-task has attributes, times and amounts of its own.
        (SCANS, "Make JPEG previews of five scans.", "Done."),
        (SCANS, "Count the scans in /in/maps right away.", "There are 240."),
        (
            "Fly Ms Oduya from Lagos to Paris in business class on 3 March, seat 4C.",
            "Get the price of an economy class ticket, so that I can show the difference.",
            "780 euros.",
        ),
        (
            "Invite the 12 members to room 2.14 on 6 October at 18:30.",
            "Order snacks for 12 people on 6 October, delivery to room 2.14 at 18:00.",
            "Ordered.",
        ),
        # What a user wants kept from the receiver, and a choice that only the receiver knows.
        (STAIRS, "Ask for a quote: oak stairs, 14 steps, 90 cm wide.", "What is your budget?"),
        (
            "Vaccinate the calves of group B, 2 ml each, record it in list K7.",
            "Make a list of the calves of group B.",
            "I have two of them. Which list should I use?",
        ),
    ],
)
def test_a_sub_task_and_what_is_kept_back_lose_nothing(user: str, prompt: str, reply: str) -> None:
    trace = trip(reply, said("Done."), user=user, prompt=prompt)
    found = context_carried(trace, trace.turns[0], trace.turns[0].dispatches[0])
    assert not isinstance(found, list), found


@pytest.mark.parametrize(
    "part",
    ["at most 5 EUR, ", "the red rose ", "keep it, ", "order 7, ", "not in Rome A ", "no hurry "],
)
def test_long_texts_are_judged_in_time(part: str) -> None:
    text = part * (20_000 // len(part))
    with cpu_limit(2):
        for user, prompt, reply in ((text, text[:9_000], "Which order?"), (text, "Find it", text)):
            trace = trip(reply, said("Done."), user=user, prompt=prompt)
            context_carried(trace, trace.turns[0], trace.turns[0].dispatches[0])


HAULIERS = "Get prices from Brandt, TransAlp and Ovi: Bremen to Verona, 24 t. No subcontractors!"
QUOTE = "Ask {} for a price. Bremen to Verona, 24 t, full load. Own trucks, no subcontracting."


def asked_of_all(request: str, *prompts: str) -> list[Answer]:
    sent = [delegate(f"agent_{i}", each, result="done") for i, each in enumerate(prompts)]
    caller = run("main", *sent, "Done.", input=request, output="Done.")
    work = [run(f"agent_{i}", "done", input=each) for i, each in enumerate(prompts)]
    made = trace(turn(caller, *work, input=request, output="Done."))
    return [context_carried(made, made.turns[0], each) for each in made.turns[0].dispatches]


def test_a_limit_that_all_other_prompts_for_the_same_work_have_was_lost() -> None:
    prompts = [QUOTE.format(name) for name in ("Brandt", "TransAlp", "Ovi")]
    prompts[1] = prompts[1].replace(" Own trucks, no subcontracting.", "")
    first, second, third = asked_of_all(HAULIERS, *prompts)
    assert isinstance(second, list)
    assert "no subcontracting" in second[0].says
    assert not isinstance(first, list)
    assert not isinstance(third, list)


@pytest.mark.parametrize(
    ("request_", "changed"),
    [
        # In other words.
        (HAULIERS, "Ask TransAlp for a price. Bremen to Verona, 24 t, full load. Not with others."),
        # Other work.
        (HAULIERS, "Compare how Brandt, TransAlp and Ovi are rated by shippers in Verona."),
        # The caller's own idea.
        (
            "Get prices from Brandt, TransAlp and Ovi: Bremen to Verona, 24 t.",
            "Ask TransAlp for a price. Bremen to Verona, 24 t, full load.",
        ),
        # A limit for the others only.
        (
            "Get prices from Brandt, TransAlp and Ovi: Bremen to Verona, 24 t. Brandt and Ovi may "
            "use no subcontractors.",
            "Ask TransAlp for a price. Bremen to Verona, 24 t, full load.",
        ),
    ],
)
def test_a_prompt_may_lack_what_others_have(request_: str, changed: str) -> None:
    prompts = [QUOTE.format("Brandt"), changed, QUOTE.format("Ovi")]
    assert not any(isinstance(each, list) for each in asked_of_all(request_, *prompts))


def test_one_other_prompt_may_have_a_limit_of_its_own() -> None:
    short = QUOTE.format("Ovi").replace(" Own trucks, no subcontracting.", "")
    answers = asked_of_all(HAULIERS, QUOTE.format("Brandt"), short)
    assert not any(isinstance(each, list) for each in answers)

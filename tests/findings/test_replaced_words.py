"""`context_carried`: a weekday, month, language, place, file or number that a prompt replaces."""

from __future__ import annotations

import pytest

from baton.findings.context_carried import context_carried
from baton.findings.finding import Answer, NotRecorded
from baton.model import Content, Dispatch, Trace

from .trips import called, said, trip

PICKUP = "Arrange a pickup of order SO-40917 on Thursday between 13:00 and 16:00 at 12 Larch Road."
REPLY = "Reset the MFA of user 7741, keep the API tokens, and answer in Swedish."
FLAT = "Find a flat in Lisbon from 2 to 16 August for five people, no more than 1,900 euros."
CLAIM = "Send the claim HH-77120 to r.lindqvist@fjordmail.example and wait for an answer."
TRAIN = "Train a classifier on data/reviews_2023.parquet with seed 1234 and report the recall."
LUNCH = "Order lunch for 18 guests in Meridian House: 11 standard, 4 vegetarian, 3 vegan."


def judge(user: str, prompt: str) -> Answer:
    return answer_to(trip("done", said("Done."), user=user, prompt=prompt))


def answer_to(trace: Trace) -> Answer:
    turn = trace.turns[0]
    return context_carried(trace, turn, turn.dispatches[0])


@pytest.mark.parametrize(
    ("user", "prompt", "old"),
    [
        (PICKUP, "Pick up order SO-40917 on Friday, 13:00 to 16:00, at 12 Larch Road.", "Thursday"),
        (
            "Livraison au plus tard jeudi 11 h, quai 14.",
            "Livraison quai 14, au plus tard vendredi 11h.",
            "jeudi",
        ),
        ("Ship order 88 before Friday.", "Ship order 88 before Saturday.", "Friday"),
        (REPLY, "Reset the MFA of user 7741, keep API tokens, answer in Norwegian.", "Swedish"),
        (
            "Draft an NDA for Nimbus under Irish law, term 3 years.",
            "Draft an NDA for Nimbus, term 3 years, under English law.",
            "Irish",
        ),
        (FLAT, "Find a flat in Porto from 2 to 16 August for five, up to 1,900 euros.", "Lisbon"),
        (
            CLAIM,
            "Send claim HH-77120 to r.lindquist@fjordmail.example, wait for an answer.",
            "r.lindqvist@fjordmail.example",
        ),
        (
            CLAIM,
            "Send claim HH-77120 to r.lindqvist@fjordmail.test, wait for an answer.",
            "r.lindqvist@fjordmail.example",
        ),
        (
            TRAIN,
            "Train a classifier on data/reviews_2022.parquet, seed 1234, and report the recall.",
            "data/reviews_2023.parquet",
        ),
        (
            "Tell Nadja that two more positions open in September.",
            "Tell Nadja that two more positions open in December.",
            "September",
        ),
    ],
)
def test_a_name_that_a_prompt_replaces_is_lost(user: str, prompt: str, old: str) -> None:
    found = judge(user, prompt)
    assert isinstance(found, list), found
    assert len(found) == 1
    assert old in f"{found[0].says} {found[0].evidence}"


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (LUNCH, "Order lunch for 19 guests in Meridian House."),
        ("Reserva autocar para 27 alumnos.", "Pide un autocar para 37 alumnos."),
        ("Is 41.5 kg too heavy for a Bernese?", "Is a Bernese of 14.5 kg too heavy?"),
        ("Quote the job: match rate 62 %.", "Quote this job: match rate 26 %."),
        ("Find sales of Q3 per shop.", "Find the sales of Q2 per shop."),
        ("Rebook QK7P2M to Saturday.", "Rebook QK7P2W to Saturday, window seat."),
    ],
)
def test_a_number_that_a_prompt_replaces_is_lost(user: str, prompt: str) -> None:
    assert isinstance(judge(user, prompt), list)


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        # An earlier day keeps a limit, and a day can be worked out from a date or another zone.
        ("Ship order 88 before Friday.", "Ship order 88 by Thursday."),
        ("Ship order 88, not before Thursday.", "Ship order 88 on Friday at the earliest."),
        ("The call is on Thursday at 9:00.", "Remind them on Wednesday that the call is at 9:00."),
        ("The call is on Monday 23:00 PST.", "The call is on Tuesday at 07:00 UTC."),
        ("Meet on 12 May 2026 at 9:00.", "Meet on Tuesday, 12 May 2026, at 9:00."),
        ("Open Monday to Friday, 9 to 17.", "Open on weekdays, 9 to 17."),
        ("Open Monday to Friday, 9 to 17.", "Is it open on Wednesday from 9 to 17?"),
        ("Das Meeting am Donnerstag um 9 Uhr verschieben.", "Which slots at 9 are free on Friday?"),
        ("Move the Tuesday call.", "Move the Tuesday call to Thursday or Friday."),
        ("Sunday's race needs shoes by Saturday.", "Shoes have to arrive on Friday or Saturday."),
        ("预约周四下午3点的会议。", "每周五次的提醒，不用安排会议。"),
        # Agents work in English, and a text can be translated in a later step.
        (REPLY, "Reset the MFA of user 7741, keep the API tokens, and reply in English."),
        (REPLY, "Reset the MFA of user 7741. Keep API tokens. Svara på svenska."),
        (
            "Translate the notice 12 into Swedish.",
            "Translate notice 12, first into Norwegian, then Swedish.",
        ),
        ("Answer in Portuguese (Brazil).", "Answer in Brazilian Portuguese."),
        (
            "Explain Irish law in 3 sentences.",
            "How does the law of Ireland differ from English law?",
        ),
        # A place in another language, a title, a team, a product under its other name.
        (
            "Find a train from Lyon to Turin on 9 October.",
            "Find a train from Lyon to Torino on 9 October.",
        ),
        ("Find a room in Cologne for 2 from Monday.", "Find a room in Köln for 2 from Monday."),
        ("Find a room in Bombay for 2 from Monday.", "Find a room in Mumbai for 2 from Monday."),
        ("Find a visa for Holland for 2 from May.", "Find a visa for Netherlands for 2 from May."),
        ("Send the order 88 to William by noon.", "Send the order 88 to Bill by noon."),
        ("Send the order 88 to Margaret by noon.", "Send the order 88 to Peggy by noon."),
        ("Ask Mrs Okonkwo about order 88 today.", "Ask Miss Okonkwo about order 88 today."),
        ("Send the list of 12 to Marta in time.", "Send the list of 12 to HR in time."),
        # Another file can be the output, a test, a copy or the same one by its short name.
        (TRAIN, "Train a classifier on reviews_2023.parquet, seed 1234, and report the recall."),
        (TRAIN, "Split data/reviews_2023.parquet into data/reviews_2023_a.parquet, seed 1234."),
        (
            "Fix src/invoice.py, it rounds 12 wrongly.",
            "Fix the rounding of 12 in src/invoice.py, see tests/test_invoice.py.",
        ),
        ("Convert a.csv to 3 parts.", "Convert a.csv to b1.csv, b2.csv and b3.csv."),
        (
            "Merge report_v1.md and report_v2.md.",
            "Merge report_v1.md and report_v2.md into report_v3.md.",
        ),
        # Another address of the same house.
        (
            CLAIM,
            "Send claim HH-77120 to r.lindqvist@fjordmail.example, from claims@fjordmail.example.",
        ),
        (
            "Write to info@a.example about order 88.",
            "Write about order 88 to the address in the file; copy me@a.example.",
        ),
        # Months: quarters, comparisons, periods.
        ("What did we sell in May?", "What did we sell in May compared with April?"),
        (
            "What did we sell in May?",
            "Sum the sales from 05-01 to 05-31; the report is due in June 2026.",
        ),
        (
            "Deliver 40 boxes in May.",
            "Deliver forty boxes in spring, and plan the stock for April.",
        ),
    ],
)
def test_names_in_other_words_are_not_lost(user: str, prompt: str) -> None:
    assert not isinstance(judge(user, prompt), list), judge(user, prompt)


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (LUNCH, "Order lunch for at least 20 guests in Meridian House."),
        (LUNCH, "Which caterers in Meridian House have cooked for 50 guests?"),
        (LUNCH, "Order 7 meals without meat for Meridian House."),
        ("Load the 8,412 rows of a.csv.", "Test the import of a.csv with the first 100 rows."),
        ("Load the 8,412 rows of a.csv.", "Load a.csv in batches of 500 rows."),
        ("Order 14 jars for 14 hives, hive 9 stays shut.", "Order jars for 13 hives."),
        ("28 pupils and 3 teachers go there.", "Order a bus for 31 people."),
        ("Refund the invoice, but keep 15 %.", "Refund 85 % of the invoice."),
        ("Grow from 26 % to 62 %.", "Which steps lead from 26 % on?"),
        ("Raise the rate from 45 to 52 USD.", "Raise the rate of 45 USD by 7 USD."),
        ("Get the sales of Q3 2024.", "Get the sales of July to September 2024."),
        ("Compare Q3 with the quarter before.", "Get the sales of Q2 for a comparison."),
        ("Book 4 seats for two shows.", "Book 8 seats in all."),
        ("A run of 62 miles and back.", "What does a run of 124 miles cost?"),
        ("Cook for 12 guests.", "Find recipes that serve 6 guests each."),
        ("Give each pod 1500Mi.", "Give each pod 1500Gi at most, as limits allow 1500Mi."),
        ("Rebook QK7P2M to Saturday.", "Rebook QK7P2M; the return is QK7P2N."),
        ("Deploy build-a1 today.", "Which builds beside build-b1 can be deployed today?"),
    ],
)
def test_another_number_can_be_right(user: str, prompt: str) -> None:
    assert not isinstance(judge(user, prompt), list), judge(user, prompt)


@pytest.mark.parametrize("place", ["Chiado", "Portugal", "Belém"])
def test_a_place_may_be_given_by_a_part_of_it_or_by_its_country(place: str) -> None:
    found = judge(FLAT, FLAT.replace("Lisbon", place))
    assert isinstance(found, NotRecorded)
    assert place in found.says


def test_a_day_that_the_caller_looked_up_replaces_nothing() -> None:
    trace = trip("done", said("Done."), user=PICKUP, prompt=PICKUP.replace("Thursday", "Friday"))
    assert isinstance(answer_to(trace), list)
    call = called("calendar", day="Thursday")
    call.result = Content(text="Thursday is full. Next free day: Friday.")
    trace.turns[0].runs[0].steps.insert(0, call)
    assert not isinstance(answer_to(trace), list)


def test_one_of_several_dispatches_may_name_another_day() -> None:
    trace = trip("done", said("Done."), user=PICKUP, prompt=PICKUP.replace("Thursday", "Friday"))
    other = Dispatch(id="d2", kind="delegate", from_run="r1", from_agent="lead", to_agent="cook")
    other.prompt = Content(text="Is anybody at home on Thursday?")
    trace.turns[0].dispatches.append(other)
    assert not isinstance(answer_to(trace), list)


def test_a_number_of_something_else_does_not_carry_a_time() -> None:
    user = "Staff hall B from 6pm with 36 counters in two shifts of 18, boxes 114 to 139 only."
    prompt = "Staff hall B from 9pm with 36 counters in two shifts of 18, boxes 114 to 139 only."
    assert isinstance(judge(user, prompt), list)
    assert not isinstance(judge(user, prompt.replace("9pm", "18:00")), list)


@pytest.mark.parametrize(
    ("request_", "prompt"),
    [
        (
            "Organise the farewell of Mr Brandt on Thursday at 17:00 in the canteen, 45 guests, at "
            "most 600 euros.",
            "Ask the caretaker to clean the canteen on Friday.",
        ),
        (
            "Our shop is closed next Monday. Put up a sign.",
            "Ask the wholesaler to come on Tuesday.",
        ),
        (
            "Plan the tour of the choir in June: 34 singers, two concerts, below 9,000 euros.",
            "Find out which halls are free for a rehearsal in May.",
        ),
    ],
)
def test_a_day_or_month_of_a_sub_task_replaces_none(request_: str, prompt: str) -> None:
    assert not isinstance(judge(request_, prompt), list)

"""`context_carried`: what of a request its receiver never heard."""

from __future__ import annotations

import re

import pytest

from baton.findings.context_carried import Limits, context_carried
from baton.findings.finding import Answer, Clear, Finding, NotRecorded
from baton.model import AgentCard, AgentRun, Content, Dispatch, Ref, Trace
from baton.testing import build, verdict

from .trips import called, said, trip

DINNER = "Book a table for 4 in Porto on 12 May, at most 80 EUR."


def judge(trace: Trace, number: int = 0, **limits: float) -> Answer:
    turn = trace.turns[0]
    return context_carried(trace, turn, turn.dispatches[number], Limits(**limits))  # type: ignore[arg-type]


def only(answer: Answer) -> Finding:
    assert isinstance(answer, list), answer
    (finding,) = answer
    return finding


def asked(user: str, prompt: str | None) -> Trace:
    return trip("done", said("Done."), user=user, prompt=prompt)


def test_a_prompt_in_other_words_carries_all() -> None:
    found = judge(asked(DINNER, "Reserve a table in Porto: four people, 2025-05-12, budget €80.00"))
    assert isinstance(found, Clear)


def test_a_number_that_was_left_out_was_dropped() -> None:
    found = only(judge(asked(DINNER, "Book a table in Porto on 12 May.")))
    assert found.kind == "dropped_constraint"
    assert found.details["dropped"] == ["4", "80"]
    assert found.share == pytest.approx(1 / 3)
    assert [one.ids for one in found.evidence] == [["t"], ["d"]]


def test_an_identifier_that_was_left_out_was_dropped() -> None:
    found = only(judge(asked("Did I pay invoice A-17 twice?", "Was the invoice paid twice?")))
    assert (found.kind, found.details["dropped"]) == ("dropped", ["A-17"])


def test_a_prompt_that_names_the_thing_has_to_say_which() -> None:
    user = "Do I get my money back for order 88?"
    assert only(judge(asked(user, "Is a refund due for the order?"))).kind == "dropped"
    assert isinstance(judge(asked(user, "Is a refund due for order 88?")), Clear)


def test_what_the_receiver_used_although_its_prompt_lacks_it_is_not_said_of_the_prompt() -> None:
    cancel = called("cancel", order=5012)
    prompt = "Cancel the customer's order."
    found = judge(
        trip("done", said("Done."), user="Cancel order 5012.", prompt=prompt, child=(cancel,))
    )
    assert isinstance(found, Clear)
    assert "knew what the request names: `5012`, although its prompt lacks some of it" in found.says


def test_a_part_of_the_work_needs_a_part_of_the_request() -> None:
    found = judge(asked("Convert 50 EUR to NOK and buy 3 chairs.", "What is the rate of NOK?"))
    assert isinstance(found, NotRecorded)


def test_what_another_dispatch_took_up_was_not_dropped() -> None:
    trace = asked(
        "Plan a party for 60 on Friday.", "Plan the party on Friday. How big is the hall?"
    )
    assert only(judge(trace)).details["dropped"] == ["60"]
    other = Dispatch(id="d2", kind="delegate", from_run="r1", from_agent="lead", to_agent="cook")
    other.prompt = Content(text="Can you feed 60?")
    trace.turns[0].dispatches.append(other)
    assert isinstance(judge(trace), NotRecorded)


def test_what_the_caller_used_itself_was_not_dropped() -> None:
    trace = trip(
        "80 seats",
        called("order_soup", portions=60),
        user="Plan a party for 60 on Friday.",
        prompt="Plan the party on Friday",
    )
    assert isinstance(judge(trace), NotRecorded)


def test_what_the_receiver_says_it_knew() -> None:
    trace = trip(
        "ok",
        user="Is parcel P-3 late?",
        prompt="Is the parcel late?",
        child=(called("track", number="P-3"),),
    )
    assert not isinstance(judge(trace), list)


def test_a_limit_in_words_is_dropped_where_the_rest_was_repeated() -> None:
    user = "Translate the manual into German. Never change product names."
    found = only(judge(asked(user, "Translate the manual into German.")))
    assert found.kind == "dropped_constraint"
    assert found.evidence[0].quote == "Never change product names."
    carried = judge(asked(user, "Translate the manual into German; leave brands as they are."))
    assert not isinstance(carried, list)


def test_instructions_of_the_receiver_may_hold_the_limit() -> None:
    trace = asked(
        "Translate the manual into German. Never change product names.",
        "Translate the manual into German.",
    )
    trace.agents["helper"] = AgentCard(instructions="Keep product names in English.")
    assert not isinstance(judge(trace), list)


def test_a_tag_in_brackets_asks_for_nothing() -> None:
    found = judge(
        asked("[ticket SHOP-13] Check that src/retry.py compiles.", "Does retry.py compile?")
    )
    assert isinstance(found, Clear)


def test_what_the_prompt_says_has_to_arrive() -> None:
    trace = trip("ok", prompt="Refund order A-100 by 3 May", received="Refund the order by 3 May")
    found = only(judge(trace))
    assert (found.kind, found.details["dropped"]) == ("not_received", ["A-100"])


def test_a_nested_dispatch_is_compared_with_the_prompt_of_its_caller() -> None:
    trace = asked("Please help with my flat", "What is owed for flat 4?")
    turn = trace.turns[0]
    turn.runs.append(AgentRun(id="r3", agent="meter", started_by=["d2"], unknown=["input"]))
    turn.dispatches.append(
        Dispatch(
            id="d2",
            kind="delegate",
            from_run="r2",
            from_agent="helper",
            to_agent="meter",
            prompt=Content(text="What did the flat use?"),
            runs=["r3"],
        )
    )
    found = only(judge(trace, 1))
    assert (found.details["dropped"], found.evidence[0].ids) == (["4"], ["d"])


def test_work_that_goes_back_is_not_judged() -> None:
    trace = asked("Find maps of 1872", "Find maps of 1872")
    back = Dispatch(id="d2", kind="transfer", from_run="r2", from_agent="helper", to_agent="lead")
    back.runs, back.prompt = ["r1"], Content(text="Found them")
    trace.turns[0].runs[0].input = Content(text="Found them")
    trace.turns[0].dispatches.append(back)
    assert isinstance(judge(trace, 1), NotRecorded)


def test_a_transfer_of_which_the_input_is_unknown_may_carry_everything() -> None:
    found = judge(trip(None, user=DINNER, prompt="Book it", kind="transfer"))
    assert isinstance(found, NotRecorded)
    assert "whole conversation" in found.says


def test_the_output_of_one_agent_has_to_reach_the_next() -> None:
    trace = trip(None, user="Rate the lead", prompt=None, kind="sequence", received="Rate the lead")
    trace.turns[0].runs[0].output = Content(text="Lead score: 87/100")
    found = only(judge(trace))
    assert found.kind == "output_not_carried"
    trace.turns[0].runs[1].input = Content(text="Rate the lead; score 87")
    assert not isinstance(judge(trace), list)
    trace.turns[0].runs[1].input = Content(text="Rate the lead")
    trace.turns[0].runs[1].output = Content(text="With 87 points we recommend Gold.")
    assert not isinstance(judge(trace), list)


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        ("Wake me at 16:45.", "Wake the guest at a quarter to five."),
        ("Wake me at 16:45.", "Wake the guest at 4.45 p.m."),
        ("Can milk stay out for 36 hours?", "Can milk stay out for a day and a half?"),
        ("Ship 2.5 kg of salt.", "Ship 2500 g of salt."),
        ("Sales in Q2 2025?", "Sales from April to June 2025?"),
        ("Refund 75 % of the fee.", "Refund three quarters of the fee."),
        ("Pack 1,500 screws.", "Pack fifteen hundred screws."),
        ("Book 4 to 9 June.", "Book June 4-9."),
        ("Call +1 (415) 555-0132.", "Call 415-555-0132."),
        ("Raise the rate from 45 to 52 USD.", "Set the rate to 52 USD."),
        ("Where is my parcel PX-1? I have asked you 3 times.", "Where is parcel PX-1?"),
        ("Explain invoice 44 in at most 3 sentences.", "Explain invoice 44."),
        ("Thanks for the call on Tuesday at 9! Where is parcel PX-1?", "Where is parcel PX-1?"),
        ("Order 1,500 screws and 6 hinges.", "Is there stock of 1,500 screws?"),
    ],
)
def test_the_same_said_otherwise_was_not_dropped(user: str, prompt: str) -> None:
    assert not isinstance(judge(asked(user, prompt)), list)


@pytest.mark.parametrize(
    ("user", "prompt", "lost"),
    [
        ("Wake me in room 12 at 16:45.", "Wake the guest in room 12 at 5:45 pm.", "16:45"),
        ("Ship 2.5 kg of salt to Oslo.", "Ship 25 kg of salt to Oslo.", "2.5"),
        ("Sales of lamps in Q2 2025?", "Sales of lamps in Q3 2025?", "Q2"),
        ("Free the flat on 15 August.", "Free the flat on 15 April.", "15 August"),
    ],
)
def test_another_value_is_a_loss(user: str, prompt: str, lost: str) -> None:
    assert only(judge(asked(user, prompt))).details["dropped"] == [lost]


def test_a_receiver_that_shares_the_messages_got_all_of_them() -> None:
    user = "Write about the lamp L-40 for 3 people."
    trace = trip(None, user=user, prompt=None, kind="sequence", received=user)
    writer, reviewer = trace.turns[0].runs
    writer.output = Content(text="The lamp L-40 has 250 lumen.")
    assert only(judge(trace)).kind == "output_not_carried"
    reviewer.context = [Ref(id=writer.id)]
    assert isinstance(judge(trace), Clear)


@pytest.mark.parametrize(
    ("receiver", "decision"),
    [
        ("meter_reader", '{"next": "meter_reader"}'),
        ("meter_reader", "meter_reader"),
        ("meter_reader", "Next: meter_reader, for order A-17."),
        ("refund_agent", '{"route": "Refund", "order": "A-17", "confidence": 0.93}'),
        (
            "orders",
            '{"intent": "order_status", "tier": "tier_2", "confidence": 0.93, "urgent": false}',
        ),
        ("writer", '{"score": 6, "feedback": "Name the price in the title."}'),
    ],
)
def test_a_program_keeps_the_decision_who_is_next(receiver: str, decision: str) -> None:
    user = "What do I owe?"
    asked = f"{user}\nName the price in the title." if receiver == "writer" else user
    trace = trip(None, user=user, kind="sequence", received=asked, to_agent=receiver)
    trace.turns[0].dispatches[0].prompt = None
    trace.turns[0].runs[0].output = Content(text=decision)
    trace.turns[0].runs[1].agent = receiver
    assert not isinstance(judge(trace), list)


@pytest.mark.parametrize(
    "answer",
    [
        "Bill MT-7781 is overdue, ask meter_reader.",
        '{"next": "meter_reader", "bill": "MT-7781", "overdue_days": 41}',
    ],
)
def test_what_is_stated_beside_a_decision_does_not_pass_if_it_did_not_arrive(answer: str) -> None:
    user = "What do I owe for meter 4310 until 5 May?"
    trace = trip(None, user=user, kind="sequence", received=user, to_agent="meter_reader")
    trace.turns[0].dispatches[0].prompt = None
    trace.turns[0].runs[1].agent = "meter_reader"
    trace.turns[0].runs[0].output = Content(text="meter_reader")
    assert isinstance(judge(trace), Clear)
    trace.turns[0].runs[0].output = Content(text=answer)
    found = judge(trace)
    assert isinstance(found, NotRecorded)
    assert "`MT-7781`" in found.says


@pytest.mark.parametrize(
    "answer",
    ['{"price": 18.4, "lead_days": 9}', '{"found": "BRK-220"}', "The reader of meter 4310 is ill."],
)
def test_what_an_agent_found_is_no_decision(answer: str) -> None:
    user = "What do I owe?"
    trace = trip(None, user=user, prompt=None, kind="sequence", received=user, to_agent="boss")
    trace.turns[0].runs[0].output = Content(text=answer)
    assert only(judge(trace)).kind == "output_not_carried"


def test_what_stays_in_the_state_of_a_graph_is_not_shown_to_the_model() -> None:
    """A node of LangGraph gets `{"request": ..., "notes": ...}`, and writes its own prompt."""
    user = "Offer the lamp."
    trace = trip(None, user=user, prompt=None, kind="sequence")
    writer, reviewer = trace.turns[0].runs
    writer.output = Content(text="The lamp L-40 has 250 lumen.")
    reviewer.unknown = []
    reviewer.input = Content(data={"request": user, "notes": "The lamp L-40 has 250 lumen."})
    reviewer.context = [Ref(text="Check this: The lamp L-40 has 250 lumen.")]
    assert isinstance(judge(trace), Clear)
    reviewer.context = [Ref(text="Check the offer.")]
    found = judge(trace)
    assert isinstance(found, NotRecorded)
    assert "in the state of its graph" in found.says


def test_what_a_sequence_passes_on_shows_in_what_the_next_agent_says() -> None:
    trace = trip(None, user="Rate the lead", prompt=None, kind="sequence")
    trace.unknown = ["run.context"]
    qualifier, matcher = trace.turns[0].runs
    qualifier.output = Content(text="Lead score: 87/100")
    assert isinstance(judge(trace), NotRecorded)
    matcher.output = Content(text="With 87 points: Gold.")
    assert isinstance(judge(trace), Clear)


def test_the_message_that_was_not_recorded_is_the_one_of_the_case() -> None:
    trace = asked("", "Book a table in Porto on 12 May.")
    trace.turns[0].input, trace.turns[0].unknown = None, ["input"]
    stated = build.case(DINNER)
    assert verdict("context_carried", trace).status == "skipped"
    assert verdict("context_carried", trace, stated).status == "failed"


def test_a_document_as_request_is_not_judged() -> None:
    user = " ".join(f"Bill B-{i} was paid." for i in range(20))
    found = judge(asked(user, "Which bill was paid?"))
    assert isinstance(found, NotRecorded)
    assert "20 numbers and names" in found.says


def test_what_was_not_recorded_is_not_judged() -> None:
    trace = asked(DINNER, None)
    trace.turns[0].dispatches[0].unknown = ["prompt"]
    assert isinstance(judge(trace), NotRecorded)
    trace = asked(DINNER, "Book a table")
    trace.turns[0].input, trace.turns[0].unknown = None, ["input"]
    assert isinstance(judge(trace), NotRecorded)


@pytest.mark.parametrize("prompt", ["Sum up reports/q3.pdf.", "Sum up reports/q3_plain-text.pdf."])
def test_a_name_that_stands_in_a_path_went_along(prompt: str) -> None:
    assert isinstance(judge(asked("Sum up the Q3 reports.", prompt)), Clear)
    other = prompt.replace("q3", "q4")
    assert isinstance(judge(asked("Sum up the Q3 reports.", other)), NotRecorded)
    found = only(judge(asked("Sum up the Q3 reports.", "Sum up the Q4 reports.")))
    assert found.details["dropped"] == ["Q3"]


def test_one_may_be_a_word() -> None:
    user = "Invoice 2024-118 bills 2 licenses, and we ordered only 1 license."
    prompt = "Invoice 2024-118 bills two licenses, and only {} license was ordered."
    assert isinstance(judge(asked(user, prompt.format("one"))), Clear)
    assert only(judge(asked(user, prompt.format("the")))).details["dropped"] == ["1"]


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        ("Call the plumber at +43 660 1234567.", "Call the plumber: +436601234567"),
        ("Pay 90 EUR to AT61 1904 3002 3457 3201.", "Pay 90 EUR to AT611904300234573201"),
        ("Charge the card 4111 1111 1111 1111.", "Charge the card 4111111111111111"),
        ("Update the Dockerfile to Python 3.12.", "Use python:3.12-slim in the Dockerfile"),
        ("Deliver 2 vases before 8.", "Deliver two vases before 08:00"),
        ("Deliver 2 vases before 8.", "Deliver two vases by 20:00"),
        ("Let UserService.get_user return None.", "Let get_user() return None"),
        ("Refund order 1009.", "Refund order A-1009"),
    ],
)
def test_another_spelling_of_a_number_or_name_carries_it(user: str, prompt: str) -> None:
    assert isinstance(judge(asked(user, prompt)), Clear)


@pytest.mark.parametrize(
    ("user", "prompt", "dropped"),
    [
        ("Call the plumber at +43 660 1234567.", "Call the plumber at home", "+43 660 1234567"),
        ("Pay the rent to AT61 1904 3002 3457 3201.", "Pay the rent", "AT61 1904 3002 3457 3201"),
        ("Update the Dockerfile to Python 3.12.", "Use python:3.11 in the Dockerfile", "3.12"),
        ("Deliver 2 vases at 8:00.", "Deliver two vases at 09:30", "8:00"),
    ],
)
def test_a_number_that_is_another_or_is_missing_was_dropped(
    user: str, prompt: str, dropped: str
) -> None:
    assert only(judge(asked(user, prompt))).details["dropped"] == [dropped]


TRIP = (
    "We go to Lisbon from 10 to 14 June, two adults and our daughter who is 4 and has a severe "
    "peanut allergy. Could you find a hotel for max. 160 euros a night close to a metro station, "
    "and a few restaurants that are safe for her?"
)


@pytest.mark.parametrize(
    "prompt",
    [
        "You are a restaurant scout. A family visits Lisbon, 10-14 June. Their girl (four) has a "
        "severe allergy to peanuts. List 3-5 restaurants. Hotels are not your concern.",
        "Hotel in Lisbon, 10 to 14 June, two adults, a child of 4, up to 150 EUR a night, metro.",
        "Check the hotels below: which of them are close to a metro station in Lisbon?",
    ],
)
def test_a_part_of_a_plan_needs_a_part_of_the_request(prompt: str) -> None:
    assert not isinstance(judge(asked(TRIP, prompt)), list)


@pytest.mark.parametrize(
    ("user", "prompt", "dropped"),
    [
        (TRIP, TRIP.replace("14 June", "14 July"), "14 June"),
        ("My WX-740 shows E18 and won't drain.", "What does E81 mean on a WX-740?", "E18"),
        ("A fight for 5 players of level 3.", "A fight for 5 players of level 13.", "3"),
        ("Roll shop back to 2.14.3.", "Target tag of shop: 2.13.4", "2.14.3"),
        ("Patient 8812 weighs 74 kg: the dose?", "Patient 8812 weighs 74 lb: the dose?", "74 kg"),
        ("Heat 120 m² in Leeds.", "Heat 210 sqm in Leeds.", "120"),
    ],
)
def test_another_value_in_the_place_of_one_is_a_loss(user: str, prompt: str, dropped: str) -> None:
    (text,) = only(judge(asked(user, prompt))).details["dropped"]
    assert text in dropped


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        ("Write a game for 5 players of about four hours.", "Write a game for 5 players."),
        ("Roll shop back to 2.14.3, the US stays on 2.15.", "Roll shop back to 2.14.3, US as is."),
        ("Heat a house of the 1970s, 120 m².", "Heat a house of the seventies, 120 square metres."),
        ("Translate page 12 by 17 June.", "Translate page 12."),
        ("It rounds twice, fix round_off.", "Fix round_off, it does double rounding."),
        ("Kündige zum 30. Juni, Vertrag K-7.", "Kündige zum Ende Juni, Vertrag K-7."),
        ("Max. 160 EUR for hotel H-9.", "Hotel H-9, max. 150 EUR"),
        ("Book the 20:00 CET call with 4711.", "Book the 19:00 UTC call with 4711."),
        ("120 chairs and 15 tables, Hall 4.", "130 chairs (10 spare) and 15 tables, Hall 4."),
        ("Reserve 2 rooms for Ms Ito and 1 room for Mr Berg.", "Reserve 1 room for Mr Berg."),
        ("Reserve a room for Ms Ito (12-15 Sept.).", "Reserve a room for Ms Ito, three nights."),
        ("Deploy build 4512, run the 3 smoke tests.", "Deploy build 4512, run the smoke tests."),
        (
            "Deliver in calendar week 23 of 2025 to dock 5.",
            "Deliver between 2 and 8 June 2025 to dock 5.",
        ),
        (
            "Schedule for our U10 tournament, 6 teams, 12 minutes a match, from 9:30 to 12:15.",
            "Schedule: 6 teams, 12 minutes a match, from 9:30, over by 12:15.",
        ),
        (
            "My order is 99-1423, my zip is 8010 and I return the lamp.",
            "Return lamp, order 99-1423",
        ),
        ("Order 3 boxes of gloves, size 8, from Medix.", "Does Medix have gloves of size 8?"),
        ("My TX-90 drops wifi since firmware 1.9.4. What can I do?", "How to reset the TX-90?"),
        (
            "Donate 50 EUR to charities for children, with receipt.",
            "Recommend charities for children.",
        ),
        ("3 nights in July for 2 adults?", "Price of a double room for 3 nights in July?"),
        ("Find 3 offers for 50 chairs.", "Find offers for 50 chairs."),
        ("Deliver 50 chairs to 4020 Linz.", "Deliver 50 chairs to Linz."),
        ("Book seats 14A and 14C on flight BA 705.", "How are the seats of BA 705 laid out?"),
        (
            "Bake 18 rolls. Oven 1: 425 °F, oven 2: 375 °F.",
            "Convert for the new oven: 425, 375 °F.",
        ),
        (
            "Move the MRI of patient K-4821: knee, after 9 am, within 10 days, eGFR 27. "
            "Call him on 0161 496 0372.",
            "Move the MRI of patient K-4821: knee, after 9 am, within 10 days, eGFR 27.",
        ),
        (
            "Hives 3, 8 and 11 get 5 ml of acid per seam. Hive 8 has 6 seams, the others 7.",
            "Order acid for three hives with 7 + 6 + 7 = 20 seams, 5 ml of acid per seam.",
        ),
    ],
)
def test_what_may_be_said_otherwise_is_no_loss(user: str, prompt: str) -> None:
    assert not isinstance(judge(asked(user, prompt)), list)


def test_a_number_that_the_caller_looked_up_is_no_other_value() -> None:
    prompt = "Refund order 5512."
    user = "Refund order 5521."
    assert only(judge(asked(user, prompt))).details["dropped"] == ["5521"]
    looked_up = build.call("find_order", {"id": "5521"}, "replaced by 5512", id="c")
    trace = trip("done", said("Done."), user=user, prompt=prompt, before=(looked_up,))
    assert not isinstance(judge(trace), list)


LISBON = (
    "Find a hotel in Lisbon from 12 to 16 May for 2 adults. At most 180 EUR a night, and nothing in "
    "Bairro Alto please."
)
ROLLBACK = (
    "Roll back checkout to v2.14.3 in eu-west-1. Don't touch payments-db. Keep 4 replicas and page "
    "Ingrid if the error rate goes above 2 %."
)


@pytest.mark.parametrize(
    ("user", "prompt", "missing"),
    [
        (LISBON, "Hotel in Lisbon, 12 May to 16 May, 2 adults, not in Bairro Alto.", "`180`"),
        (
            LISBON,
            "Find a hotel in Lisbon, 2 adults, at most 180 EUR a night, not in Bairro Alto.",
            "16 May",
        ),
        (
            LISBON,
            "Find hotels in Lisbon for 2 adults, 12 to 16 May, no more than 180 EUR a night.",
            "Bairro",
        ),
        (
            ROLLBACK,
            "Roll back checkout to v2.14.3 in eu-west-1, keep 4 replicas, page Ingrid above 2 % errors.",
            "payments-db",
        ),
        (
            ROLLBACK,
            "Roll back checkout in eu-west-1, don't touch payments-db, keep 4 replicas, page Ingrid at "
            "an error rate above 2 %.",
            "v2.14.3",
        ),
    ],
)
def test_the_one_thing_that_a_full_retelling_leaves_out_was_dropped(
    user: str, prompt: str, missing: str
) -> None:
    assert missing in only(judge(asked(user, prompt))).says


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            LISBON,
            "Family hotel in Lisbon, 4 nights from 12 May, 2 adults, 720 EUR in all, not in Bairro Alto.",
        ),
        (
            LISBON,
            "Find hotels in Lisbon, 12 to 16 May, 2 adults, 180 EUR a night, any other district than the loud one.",
        ),
        (
            LISBON,
            "Find a hotel in Lisbon from 12 to 16 May for 2 adults. Another agent checks the prices.",
        ),
        (
            ROLLBACK,
            "Roll back checkout to v2.14.3 in eu-west-1, change nothing else, keep 4 replicas, page Ingrid above 2 %.",
        ),
        (
            "Summarise the Kestrel study, 214 sites, 2019 to 2023, for Prof. Lindqvist.",
            "Summarise the Kestrel study, 214 sites over five years from 2019, for Lindqvist.",
        ),
        (
            "Analyse 8412 returns by reason and group, on 2 slides, and don't name single customers.",
            "Analyse 8412 returns: reasons and groups, w/o names, 2 slides.",
        ),
        (
            "Menu for 8 on Saturday, 3 kg of potatoes, under 90 EUR, and no meat please.",
            "Vegetarian menu for 8 on Saturday, 3 kg of potatoes, under 90 EUR.",
        ),
    ],
)
def test_a_limit_in_another_form_or_for_somebody_else_is_no_loss(user: str, prompt: str) -> None:
    assert not isinstance(judge(asked(user, prompt)), list)


def test_minutes_are_no_minimum() -> None:
    user = "Check the drug for a patient of 71 with a clearance of 38 ml/min."
    prompt = "Check the drug for a patient of 71 with a clearance of 83 ml/min."
    assert only(judge(asked(user, prompt))).details["dropped"] == ["38"]


def test_two_swapped_digits_of_a_name_are_found_whatever_else_a_prompt_leaves_out() -> None:
    user = "Policy HH-20938-K, burst pipe on 18 January, excess 250. Rooms: hall, study. Be quick!"
    found = only(judge(asked(user, "What does HH-29038-K say of water damage?")))
    assert found.details["dropped"] == ["HH-20938-K"]
    part = judge(asked(user, "What does HH-20938-K say of water damage?"))
    assert not isinstance(part, list)


def test_two_swapped_digits_are_found_in_requests_that_are_data() -> None:
    user = '{"policy": "HH-20938-K", "flooring": 2140.50, "excess": 250}'
    assert only(judge(asked(user, "Check policy HH-29038-K."))).details["dropped"] == ["HH-20938-K"]
    assert only(judge(asked(user, '{"flooring": 2410.50}'))).details["dropped"] == ["2140.5"]
    for good in ("Check policy HH-20938-K.", '{"pay": 1890.50}', "Is 150 a usual excess?"):
        assert isinstance(judge(asked(user, good)), NotRecorded)


def test_a_greeting_may_hold_what_is_passed_on_wrong() -> None:
    user = "Hi, I'm calling on account 5502-81 again. Please order 15 frames for hive 6 on Monday."
    found = only(judge(asked(user, "Order 15 frames for hive 6 on Monday, account 5502-18.")))
    assert found.details["dropped"] == ["5502-81"]


def test_a_number_of_copied_words_is_changed_though_a_shop_is_named_with_from() -> None:
    user = "Please order 15 deep frames from Thornbury's, account 550. Mite drop was 34 in 3 days."
    prompt = "Order 50 deep frames from Thornbury's, account 550."
    assert only(judge(asked(user, prompt))).details["dropped"] == ["15"]
    # "From 45 EUR" is a lower bound, which 50 keeps.
    user = (
        "Find hotel rooms in Lyon from 45 EUR. My sister sleeps at home, she has 2 dogs and 1 cat."
    )
    assert not isinstance(judge(asked(user, "Find hotel rooms in Lyon from 50 EUR.")), list)


def test_a_neighbour_that_the_caller_knows_is_no_slip() -> None:
    user = "Compare what HH-20938-K covers with HH-29038-K."
    assert not isinstance(judge(asked(user, "What does HH-29038-K cover?")), list)


LOAN = (
    "Arrange the loan of no. 1911.204 to Bremen in May. Humidity 50 to 55 %, at most 50 lux, "
    "no photographs on social media. Never lend the frame, and do not clean the back."
)


@pytest.mark.parametrize(
    ("cut", "instead", "says"),
    [
        (", at most 50 lux", "", "at most 50 lux"),
        (" Never lend the frame, and", " Please", "Never lend the frame"),
        ("do not clean", "clean", "do not clean the back"),
        ("at most 50 lux", "at most 500 lux", "at most 50"),
        ("in May", "in June", "May"),
        ("to Bremen", "to Dresden", "Bremen"),
        (", no photographs on social media", "", "no photographs on social media"),
    ],
)
def test_what_is_cut_out_of_a_copy_or_replaced_in_it_is_a_loss(
    cut: str, instead: str, says: str
) -> None:
    assert isinstance(judge(asked(LOAN, LOAN)), Clear)
    copy = LOAN.replace(cut, instead)
    assert copy != LOAN
    assert says in only(judge(asked(LOAN, copy))).says


# What a copy leaves out here, the caller does itself, or nobody has to do.
@pytest.mark.parametrize(
    ("request_", "left_out"),
    [
        ("Find article 77-118 in one of our 3 warehouses, and please don't tell Sandra yet.", 1),
        ("Book a table for 4 at Zum Anker at 19:30. My wife must not hear of it.", 1),
        ("Rename the branch to fix/cart-7, run the unit tests. Don't wait for the build.", 1),
        ("Get the weather in Innsbruck for 3 and 4 July. I can't ski, so no report on snow.", 1),
        ("Wie viele Urlaubstage hat Frau Tadic (P-4417) noch? Sie hat keine Lust zu warten.", 1),
        ("Calculate the paint for a room of 5.2 m, two coats. He says 12 l, but I don't agree.", 1),
        ("Nobody ever called me back. Check where parcel RR-55120-X is, and why.", 0),
        ("Check the electricity tariffs for 3,200 kWh in 8010 Graz. No rush with that.", 1),
        ("Book flight LH 454 for 2 on 9 October. We can't take the one at 7 am, he has school.", 1),
    ],
)
def test_what_the_caller_keeps_to_itself_is_no_limit_of_the_work(
    request_: str, left_out: int
) -> None:
    parts = re.split(r"(?<=[.?!]) |(?=, and please)", request_)
    prompt = " ".join(part for at, part in enumerate(parts) if at != left_out)
    assert prompt not in (request_, "")
    assert not isinstance(judge(asked(request_, prompt)), list)


@pytest.mark.parametrize(
    ("user", "prompt", "reply"),
    [
        (
            "Where is the parcel of order 88, and when does it arrive?",
            "Find out where the customer's parcel is.",
            "Which order number is it?",
        ),
        (
            "Please cancel my flight. My booking code is K7QZPD.",
            "Cancel the flight of a customer who is ill.",
            "I can't do that yet. Please provide the booking code.",
        ),
        (
            "Change the address of customer 30-5518 to Elm St.",
            "A customer moved to Elm St.",
            "Could you send me the customer number?",
        ),
    ],
)
def test_what_a_receiver_asks_for_was_dropped(user: str, prompt: str, reply: str) -> None:
    found = only(judge(trip(reply, said("Done."), user=user, prompt=prompt)))
    assert found.kind == "dropped"


@pytest.mark.parametrize(
    "reply",
    [
        "The parcel arrives today. Do you need anything else for the order?",
        "The parcel of the order arrives today. What else can I do?",
        "I can send the order again. Is that all right?",
        "Parcels without a customs form are late. The order has one.",
        "Which day suits the customer? The order can wait.",
    ],
)
def test_a_receiver_that_asks_for_something_else_had_what_it_needs(reply: str) -> None:
    user = "Where is the parcel of order 88, and when does it arrive?"
    prompt = "Find out where the customer's parcel is."
    assert isinstance(judge(trip(reply, said("Done."), user=user, prompt=prompt)), NotRecorded)


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Patient Voss (born 1966) needs a CT of the hip, is deaf, can only come Fridays after 13:00.",
            "CT hip for Voss, patient is deaf, Fridays after 13:00",
        ),
        (
            "Bitte für Frau Lindner, geb. 1940, ein EKG vereinbaren, nur montags bis 10 Uhr.",
            "EKG für Frau Lindner vereinbaren, nur montags bis 10 Uhr.",
        ),
    ],
)
def test_a_birth_after_a_name_is_not_missed(user: str, prompt: str) -> None:
    assert isinstance(judge(asked(user, prompt)), NotRecorded)


def after(user: str, first: str, result: str, second: str, reply: str) -> Trace:
    """A caller with two delegates, one after the other."""
    made = [build.delegate("a", first, result=result), build.delegate("b", second, result=reply)]
    caller = build.run("main", *made, "Done.", input=user, output="Done.")
    runs = [
        build.run("a", result, input=first, output=result),
        build.run("b", reply, input=second, output=reply),
    ]
    return build.trace(build.turn(caller, *runs, input=user, output="Done."))


CONDITION = "Open vents 3 and 6 to 50 % when the house is above 27 °C, and log it under GH-9."


@pytest.mark.parametrize(
    ("result", "status"), [("It is 31.5 °C.", NotRecorded), ("The sensor is off.", list)]
)
def test_a_condition_is_not_missed_once_the_caller_can_decide_on_it(
    result: str, status: type
) -> None:
    second = "Open vents 3 and 6 to 50 %, and log it under GH-9."
    trace = after(CONDITION, "Read the sensor", result, second, "Done, logged.")
    assert isinstance(judge(trace, 1), status)


CLAIMS = "The till counts 1,204 visits, the door 1,188. Ask both and explain the gap."


@pytest.mark.parametrize(
    ("reply", "status"), [("1,190 visits.", NotRecorded), ("I need the number of visits.", list)]
)
def test_a_value_that_the_receiver_reports_is_not_missed(reply: str, status: type) -> None:
    second = "Ask the door for the visits and explain the gap to the till."
    trace = after(CLAIMS, "Ask the till for the visits.", "1,204 visits.", second, reply)
    assert isinstance(judge(trace, 1), status)


SAUNA = "Book a sauna for 6 on 18 June. We came here in 2024 and moved to release 3.1 in spring."


def test_a_year_of_the_past_is_not_replaced_by_the_year_of_a_date() -> None:
    prompt = "TASK: book a sauna. Guests: 6. Date: 18 June 2026. Cars: 31."
    assert isinstance(judge(asked(SAUNA, prompt)), NotRecorded | Clear)


def test_a_year_that_is_named_alike_is_replaced() -> None:
    user = "Send the budget 2027 and the stock list to Kim."
    found = only(judge(asked(user, "Send the budget 2028 and the stock list to Kim.")))
    assert found.details["dropped"] == ["2027"]


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Is 640 euros fair for our car? It was built in 1994.",
            "Usual price of a car that was built between 1990 and 1999?",
        ),
        (
            "The pump ran at 12 bar, now it has 7 bar. Needed: 9 bar. Find the leak in hall 4.",
            "Find the leak in hall 4. The pump needs 9 bar.",
        ),
        (
            "Quote 30 chairs with arms for the office, delivered. In 2023 the price was 78.",
            "Quote 30 chairs with arms for the office, delivered.",
        ),
        (
            "Latency of the api went from 180 ms to 2 s at 14:20. Find the cause, no restarts.",
            "Latency of the api at 14:20 is 2 s: find the cause. Read only, no restarts.",
        ),
        (
            "Die Antwortzeit der API ist von 180 ms auf 2 s gestiegen. Finde die Ursache in Halle 4.",
            "Finde die Ursache in Halle 4: die Antwortzeit der API ist gestiegen auf 2 s.",
        ),
        (
            "El tiempo de respuesta de la API subió de 180 ms a 2 s. Busca la causa en la nave 4.",
            "Busca la causa en la nave 4: la API tiene un tiempo de respuesta de 2 s.",
        ),
    ],
)
def test_a_range_and_a_value_of_the_past_lose_nothing(user: str, prompt: str) -> None:
    assert not isinstance(judge(asked(user, prompt)), list)


def test_a_part_of_the_days_goes_to_one_of_several_agents() -> None:
    made = build.run(
        "planner",
        build.delegate("food", "Lisbon, step-free restaurant, evenings 16-17 May, up to 80 EUR"),
        build.delegate("sights", "Step-free museum in Lisbon, open on 17 May"),
    )
    request = "Plan a step-free weekend in Lisbon 16-18 May: a restaurant up to 80 EUR, a museum."
    assert not isinstance(judge(build.trace(build.turn(made, input=request))), list)
    # An agent that does all the work needs all the days.
    found = only(judge(asked(request, request.replace("16-18", "16-17"))))
    assert found.details["dropped"] == ["16-18"]


@pytest.mark.parametrize(
    ("prompt", "more"),
    [
        (
            "Find out whether the A7 tunnel is closed on the night of 12 to 13 August.",
            "In July we stood there for two hours!",
        ),
        (
            "Find out whether the A7 tunnel is closed on the night of 12 to 13 August.",
            "Last summer the queue took 3 hours.",
        ),
        (
            "Prüfe, ob der Tunnel der A7 am 12. August von 22:00 bis 5:00 gesperrt ist.",
            "Im Stau haben wir dort drei Stunden gewartet.",
        ),
        (
            "Prüfe, ob der Tunnel der A7 am 12. August von 22:00 bis 5:00 gesperrt ist.",
            "Im Stau haben wir dort 3 Stunden verloren.",
        ),
    ],
)
def test_what_happened_to_a_user_is_not_missed(prompt: str, more: str) -> None:
    assert not isinstance(judge(asked(f"{prompt} {more}", prompt)), list)


def test_what_a_user_comes_back_to_may_be_settled() -> None:
    first = "We need 2 projectors and 1 screen for 11 Nov, 8:00 to 18:00, room Vega."
    prompt = "2 projectors, 11 November 8:00-18:00, room Vega"
    own = f"{first} The screen we can borrow from room Lyra, so just the projectors."
    assert not isinstance(judge(asked(own, prompt)), list)
    found = only(judge(asked(f"{first} The projectors must be new.", f"{prompt}, new ones")))
    assert found.details["dropped"] == ["1"]


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Book a room for 12 people on 7 May from 13:00 to 15:00 with video. Four of us join "
            "from Lisbon.",
            "Meeting room on 7 May, 13:00 to 15:00, for 12 people, with video equipment",
        ),
        (
            "Get me a hairdresser on Friday between 16:00 and 18:00 in Leith, for curls, under 60 "
            "GBP. If Friday is impossible, Saturday at 10.",
            "Hairdresser in Leith, Friday between 16:00 and 18:00, for curls, under 60 GBP",
        ),
        (
            "Book a double room at the Krone in Chur, 2 nights from the 14th, garden view, no "
            "smoking. I'm 1.96, so a long bed.",
            "Krone Chur, double room, 2 nights from the 14th, garden view, non-smoking, long bed",
        ),
        (
            "Add 3 users (Li, Omar, Fay) to project Delta as viewers until 30 November (the "
            "contract with them ends 15 December, but that doesn't matter here).",
            "Project Delta: add 3 users (Li, Omar, Fay) as viewers until 30 November",
        ),
        (
            "Print the 6 badges for tomorrow's visitors, landscape, with logo. Without Mr. Haas, "
            "he's cancelled. So 5.",
            "Print 5 visitor badges for tomorrow, landscape, with logo",
        ),
    ],
)
def test_what_only_the_caller_needs_is_not_missed(user: str, prompt: str) -> None:
    assert not isinstance(judge(asked(user, prompt)), list)


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Lunch for 65 people on 21 March at 12:30, 9 vegan, 4 coeliac, up to 38 EUR each.",
            "Lunch for 65 people on 21 March at 12:30, 9 vegan, up to 38 EUR each.",
        ),
        (
            "I lost card 7719 at the gym. Please block card 7719 and send a new one to room 2203.",
            "The customer lost card 7719 at the gym. Block card 7719 and send a new one to the room.",
        ),
        (
            "Sell 40 shares of NWE from depot 0044-918-2, and never more than half of the position.",
            "Sell 40 shares of NWE from depot 0044-918-2.",
        ),
        (
            "Compare the plans of 3 May and 4 May and rebuild the statistics. Don't touch the "
            "indexes.",
            "Compare the plans of 3 May and 4 May and rebuild the statistics.",
        ),
        (
            "Print the 6 badges for tomorrow's visitors, landscape, with logo. Without Mr. Haas.",
            "Print the 6 badges for tomorrow's visitors, landscape, with logo.",
        ),
        (
            "Sell 40 shares of NWE from depot 0044-918-2. Current limit is 55 EUR per share.",
            "Sell 40 shares of NWE from depot 0044-918-2.",
        ),
    ],
)
def test_what_the_work_needs_is_missed(user: str, prompt: str) -> None:
    assert isinstance(judge(asked(user, prompt)), list)


STATED = [
    (
        "I lost my card ending 7719 between the gym and the tram. Please block it and send a new "
        "one to my usual address. I still have the one ending 2203, so I can pay for things.",
        "The customer lost the card ending 7719. Block it and send a new one to the usual address.",
    ),
    (
        "Write a teaser of at most 40 words for the article 'Bees in the city' in our March "
        "newsletter. The author, Tom Weld, has kept bees for 30 years and is touchy about puns.",
        "Write a teaser of at most 40 words for the article 'Bees in the city' in the March "
        "newsletter. No puns.",
    ),
    (
        "I returned 'The Overstory' on 2 May through the slot, but my account still shows it as "
        "overdue with 6.40 in fines. Card 2200-4417. Could someone look on the shelf?",
        "The reader returned 'The Overstory' on 2 May through the slot, but the account still "
        "shows it as overdue. Card 2200-4417. Look on the shelf.",
    ),
    (
        "Lunch for 65 people on 21 March at 12:30, 9 vegan, up to 38 EUR each. 4 are coeliac.",
        "Lunch for 65 people on 21 March at 12:30, 9 vegan, up to 38 EUR each.",
    ),
    (
        "What does the electricity cost with plan A or plan B? Usage is 3,900 kWh, postcode 8010. "
        "Current price 31.4 ct. No bonus plans please.",
        "Electricity quote. Usage: 3,900 kWh, postcode 8010. Plans: A, B. No bonus plans. Give "
        "the price per kWh and the cost per year of each.",
    ),
]


@pytest.mark.parametrize(("user", "prompt"), STATED)
def test_whether_a_receiver_needs_a_statement_is_unknown(user: str, prompt: str) -> None:
    assert isinstance(judge(asked(user, prompt)), NotRecorded)


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Bitte überweisen Sie mir einen Betrag der Rechnung 2025-1180 zurück, die ich am 3. März "
            "und am 5. März bezahlt habe. Eilt nicht.",
            "Bitte einen Betrag der Rechnung 2025-1180 zurücküberweisen, die die Kundin am 3. März "
            "und am 5. März bezahlt hat.",
        ),
        (
            "Order 40 chairs, 10 tables and 1 lectern for the hall on 6 June. Actually the school "
            "lends us the lectern, so leave that one.",
            "Order 40 chairs and 10 tables for the hall on 6 June.",
        ),
        (
            "Check the claims in draft 0417 about the harbour: 3.2 billion kroner, and nextCycle.",
            "Check the claims in draft 0417 about the harbour: 3.2 billion kroner.",
        ),
        (
            "Value the flat at Ringstrasse 47, 3rd floor, 84 m2. The tenant is Amparo Reyes. Use at "
            "least 5 sales within 800 m.",
            "Value the flat at Ringstrasse 47, 3rd floor, 84 m2. Use at least 5 sales within 800 m.",
        ),
        (
            "Suche drei Umzugsfirmen in Mainz für den 28. September, 2. Stock mit Aufzug. Antworte "
            "mir auf Englisch, nicht mehr als fünf Zeilen.",
            "Suche drei Umzugsfirmen in Mainz für den 28. September, 2. Stock mit Aufzug.",
        ),
        (
            "Draft a reply to supplier Kovar: we accept delivery on 12 August, but not the surcharge "
            "of 4 %. Don't send it.",
            "Draft a reply to supplier Kovar: we accept delivery on 12 August, but not the surcharge "
            "of 4 %.",
        ),
        (
            "Why is the nightly import slow? Compare the plans of 3 May and 4 May. Don't touch the "
            "indexes.",
            "Why is the nightly import slow? Compare the plans of 3 May and 4 May.",
        ),
    ],
)
def test_a_near_copy_may_leave_out_what_this_receiver_does_not_need(user: str, prompt: str) -> None:
    assert not isinstance(judge(asked(user, prompt)), list)


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Can you look up invoice INV-2201 (€1,240.50, due 12 June)? I can't find the PDF.",
            "Find the PDF of invoice INV-2201.",
        ),
        (
            "Merchant Birke says we never sent the webhook for payment pay_7Tq90 (EUR 249.00, 17 April "
            "around 19:20). Can you check our delivery logs for that day?",
            "webhook delivery logs, all of 17 April, payment pay_7Tq90. All attempts.",
        ),
        (
            "Le virement VT-5521 (860 €, émis le 4 mars à 9:12) n'est pas arrivé. Vérifie le statut.",
            "Statut du virement VT-5521 ?",
        ),
    ],
)
def test_what_only_describes_a_named_thing_may_be_left_out(user: str, prompt: str) -> None:
    assert not isinstance(judge(asked(user, prompt)), list)


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Refund order 88-4021 partly (40 EUR) to the card.",
            "Refund order 88-4021 to the card.",
        ),
        (
            "Buy the ring R-889 (no more than 450 EUR) for me today.",
            "Buy the ring R-889 today.",
        ),
        (
            "Cancel order 88-4021 (149.90 EUR) please.",
            "Cancel order 88-4021 (194.90 EUR).",
        ),
    ],
)
def test_a_limit_or_a_part_beside_a_named_thing_is_needed(user: str, prompt: str) -> None:
    only(judge(asked(user, prompt)))


@pytest.mark.parametrize(
    "now",
    [
        "Updated 14 November 2026, 09:12.",
        "Current date and time: 2026-11-14 09:12",
        "Today is Saturday, 14 November 2026, 9:12 am.",
        "Aktuelle Uhrzeit: 9:12 Uhr",
    ],
)
def test_the_time_of_a_prompt_replaces_no_time_of_the_request(now: str) -> None:
    user = "Where's truck 14 right now and will it make the 3 pm slot in Wels?"
    found = judge(asked(user, f"{now}\n\nPosition and ETA of truck 14 for Wels"))
    assert not isinstance(found, list), found
    changed = only(judge(asked(user, "Truck 14: will it make the 5 pm slot in Wels?")))
    assert changed.details["dropped"] == ["3 pm"]

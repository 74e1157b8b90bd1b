"""`result_used`: what a caller made of an answer, and the traps on the way to telling."""

from __future__ import annotations

import pytest

from baton.findings.finding import Answer, Clear, Finding, NotRecorded
from baton.findings.result_used import Limits, result_used
from baton.model import Content, Dispatch, HandedOff, Said, Trace, Turn
from baton.testing import build, verdict

from .trips import called, said, trip

HOTEL = "Hotel Lutetia, 45 Boulevard Raspail, 210 EUR a night, free cancellation until 4 June."
ELSEWHERE = (
    "Our kitchen offers vegetarian menus and drinks, shall I send a brochure? Children under seven "
    "eat at half price, and dogs sleep in the garden shed."
)
LATER = "I'll look that up first and get back to you shortly."


def judge(trace: Trace, **limits: float) -> Answer:
    turn = trace.turns[0]
    return result_used(trace, turn, turn.dispatches[0], Limits(**limits))  # type: ignore[arg-type]


def kinds(answer: Answer) -> list[str]:
    assert isinstance(answer, list), answer
    return [finding.kind for finding in answer]


def only(answer: Answer) -> Finding:
    assert isinstance(answer, list), answer
    (finding,) = answer
    return finding


def test_a_result_that_shows_in_the_answer_was_used() -> None:
    found = judge(trip(HOTEL, said("You sleep at the Lutetia for 210 euros.")))
    assert isinstance(found, Clear)
    assert found.details["found"] == ["Lutetia", "210"]


def test_a_result_of_which_nothing_shows_was_ignored() -> None:
    found = only(judge(trip(HOTEL, said(LATER))))
    assert (found.kind, found.share, found.warning) == ("ignored", 0.0, False)
    assert found.evidence[0].ids == ["d"]
    assert found.evidence[1].quote == LATER


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (HOTEL, ELSEWHERE),
        (
            "Meeting of 12 March: 31 residents, most worried about noise after 22:00; teenagers in "
            "favour; the priest asked for benches.",
            "Young people love the idea, while older ones fear they won't be able to sleep.",
        ),
        (
            "Supply will remain tight through next year; building permits fell by a third.",
            "Homes are expected to stay scarce, so start searching early wherever you can.",
        ),
        (
            "Parkett ausverkauft, Rang 38 %, Abendkasse bisher ohne Kontingent.",
            "Wer billig sitzen möchte, findet problemlos einen Platz, die besten sind dagegen alle "
            "vergeben.",
        ),
    ],
)
def test_an_answer_without_a_word_of_the_result_can_not_be_told(result: str, answer: str) -> None:
    found = judge(trip(result, said(answer)))
    assert isinstance(found, NotRecorded)
    assert "none of" in found.says


def test_the_share_is_the_weight_found_of_the_weight_of_all() -> None:
    found = judge(trip("Ferry 14:30 from pier 4 with Ada", said("Take the 14:30 boat")))
    assert isinstance(found, Clear)
    assert found.details["used"] == pytest.approx(3 / (3 + 3 + 1 + 1 + 1), abs=1e-4)


def test_a_caller_is_not_held_to_all_of_a_long_result() -> None:
    long = " ".join(f"item_{i} costs {i}.5" for i in range(100, 200))
    found = judge(trip(long, said("Take item_140, which is the cheapest that fits.")))
    assert isinstance(found, Clear)
    assert found.details["used"] == 3 / 20


def test_a_terse_use_is_no_fault() -> None:
    assert isinstance(
        judge(trip("Hotel Lutetia, 210 EUR", said("Hotel found"))), Clear | NotRecorded
    )
    assert isinstance(judge(trip(HOTEL, said("All booked."))), NotRecorded)


def test_a_word_that_was_in_the_prompt_proves_no_use() -> None:
    trace = trip(
        "Hotel Lutetia, Raspail, 210 EUR",
        said("I'll look for a hotel in Paris and get back to you shortly."),
        prompt="Find a hotel in Paris",
    )
    assert kinds(judge(trace)) == ["ignored"]


def test_what_the_user_or_an_earlier_step_said_proves_no_use() -> None:
    seen = said(f"I know of this: {HOTEL}", "s0")
    trace = trip(HOTEL, said(ELSEWHERE), before=(seen,))
    assert isinstance(judge(trace), NotRecorded)


def test_two_of_five_failed_before_a_mend_and_all_five_pass_after_it() -> None:
    trace = trip(
        "2 of 5 fail: test_login and test_refund",
        called("edit", path="src/session.py"),
        said("I mended the session module; all 5 pass now."),
    )
    assert isinstance(judge(trace), Clear)


def test_fewer_than_three_facts_can_not_tell() -> None:
    found = judge(trip("Order A1 shipped.", said(LATER)))
    assert isinstance(found, NotRecorded)
    assert "2 facts" in found.says
    assert kinds(judge(trip("Order A1 shipped.", said(LATER)), facts=2)) == ["ignored"]


def test_arguments_of_a_later_call_use_a_result() -> None:
    trace = trip(HOTEL, called("book", hotel="lutetia"), said("Done."))
    assert isinstance(judge(trace), Clear)


def test_the_prompt_of_a_later_dispatch_uses_a_result() -> None:
    trace = trip("Bug in src/retry.py line 88, see R-77", said("Passing that on."))
    trace.turns[0].runs[0].steps.append(HandedOff(id="h2", dispatch="d2"))
    trace.turns[0].dispatches.append(
        Dispatch(
            id="d2",
            kind="delegate",
            from_run="r1",
            from_agent="lead",
            to_agent="mender",
            prompt=Content(text="Mend retry.py"),
        )
    )
    assert isinstance(judge(trace), Clear)


def test_a_later_turn_may_use_a_result() -> None:
    trace = trip(HOTEL, said(ELSEWHERE))
    trace.turns.append(Turn(id="t2", output=Content(text="As I found: the Lutetia.")))
    assert isinstance(judge(trace), Clear)


def test_reporting_a_failure_is_using_it() -> None:
    failed = trip(
        None, said("The ledger could not be read."), status="failed", error="ledger locked"
    )
    assert isinstance(judge(failed), Clear)


def test_a_failure_that_nobody_speaks_of_was_ignored() -> None:
    trace = trip(
        None,
        said("Your balance is 12.40 and the harbour tour starts at seven."),
        status="failed",
        error="ledger locked",
    )
    assert kinds(judge(trace)) == ["ignored"]


def test_who_goes_another_way_after_a_failure_may_have_used_it() -> None:
    trace = trip(
        None,
        called("read", path="ledger.txt"),
        said("Your balance is 12.40, as of Monday noon."),
        status="failed",
        error="timeout",
    )
    assert isinstance(judge(trace), NotRecorded)


def test_work_that_is_done_again_was_regenerated() -> None:
    work = (called("grep", "c1", pattern="retry"), called("read", "c2", path="src/retry.py"))
    trace = trip(
        "Defined in src/retry.py line 88; called by src/client.py",
        called("grep", "a1", pattern="retry"),
        called("read", "a2", path="src/retry.py"),
        said("Nothing of interest there."),
        child=work,
        prompt="Where is the function retry defined?",
    )
    found = only(judge(trace))
    assert found.kind == "regenerated"
    assert found.evidence[0].ids == ["d", "a1", "a2"]


def test_all_calls_made_again_are_a_fault_also_after_a_short_result() -> None:
    paid, listed = called("invoice", "c1", number="INV-7"), called("payments", "c2", year="2026")
    again = called("invoice", "a1", number="INV-7")
    answer = said("I looked it up for you: everything is in order.")
    asked = "Look at INV-7"
    trace = trip("Paid.", again, answer, child=(paid,), prompt=asked)
    assert only(judge(trace)).kind == "regenerated"
    # One of two may have been looked at again for another reason.
    partly = trip("Paid.", again, answer, child=(listed, paid), prompt=asked)
    assert isinstance(judge(partly), NotRecorded)


@pytest.mark.parametrize("tool", ["get_invoice", "erp_get"])
def test_the_name_of_a_call_made_again_is_no_use(tool: str) -> None:
    trace = trip(
        "The invoice INV-7 of Marlow Ltd is 912.40 EUR, due 3 July, and must not be paid twice.",
        build.call(tool, {"n": "INV-7"}, "INV-7: Marlow Ltd, 912.40 EUR, due 3 July", id="a1"),
        called("pay", "a2", n="INV-7", amount=912.4),
        said("Done, 912.40 EUR to Marlow Ltd."),
        child=(build.call(tool, {"n": "INV-7"}, "INV-7: Marlow Ltd, 912.40 EUR", id="c1"),),
        prompt="Look up INV-7",
    )
    found = judge(trace)
    assert isinstance(found, NotRecorded)
    assert "own calls" in found.says


def test_reading_a_file_again_before_changing_it_is_no_fault() -> None:
    trace = trip(
        "The bug is on line 88, off by one, ticket R-77",
        called("read", "a1", path="src/retry.py"),
        called("edit", "a2", path="src/retry.py"),
        said("Mended."),
        child=(called("read", "c1", path="src/retry.py"),),
    )
    assert isinstance(judge(trace), NotRecorded)


def test_another_language_can_not_tell() -> None:
    trace = trip(
        "Il est dans la gare avec des valises rouges, et le guichet ferme.",
        said("It will be there when they have opened the counter, with porters and trolleys."),
    )
    found = judge(trace)
    assert isinstance(found, NotRecorded)
    assert "language" in found.says


def test_who_speaks_of_the_agent_it_heard_has_read_it() -> None:
    trace = trip(HOTEL, said("The helper booked something nice, enjoy your evening in town!"))
    assert isinstance(judge(trace), NotRecorded)


def test_what_was_not_recorded_is_not_judged() -> None:
    trace = trip(HOTEL, said(ELSEWHERE))
    trace.turns[0].runs[0].unknown = ["steps.said"]
    found = judge(trace)
    assert isinstance(found, NotRecorded)
    assert "record" in found.says
    masked = trip(None, said(ELSEWHERE), unknown=["result"])
    assert "not recorded" in getattr(judge(masked), "says", "")


def test_a_turn_that_did_not_end_is_not_judged() -> None:
    trace = trip(HOTEL, said(ELSEWHERE))
    trace.turns[0].status = "incomplete"
    assert isinstance(judge(trace), NotRecorded)


def test_control_that_moved_on_brings_no_result() -> None:
    found = judge(trip(None, kind="sequence"))
    assert isinstance(found, NotRecorded)
    assert "sequence" in found.says


def test_a_caller_that_says_nothing_can_not_tell() -> None:
    trace = trip(HOTEL)
    assert isinstance(judge(trace), NotRecorded)
    assert not any(isinstance(step, Said) for step in trace.turns[0].runs[0].steps)


LIBRARIES = "celery 5.3 is fine, nested-inline 0.4.6 calls ugettext_lazy, pillow 10.1 is fine."
VERDICT = "Not yet. Some library imports a module which later releases dropped, so it has to wait."


@pytest.mark.parametrize(
    "user",
    [
        "Can we upgrade to Django 5?",
        "We use Django 4. Does everything we depend on run on 5?",
        "Können wir umsteigen?",
    ],
)
def test_a_judgement_that_was_asked_for_need_not_repeat_what_it_rests_on(user: str) -> None:
    found = judge(trip(LIBRARIES, said(VERDICT), user=user))
    assert isinstance(found, NotRecorded)
    assert "asked a yes-or-no question" in found.says
    assert kinds(judge(trip(LIBRARIES, said(LATER), user=user))) == ["ignored"]


FLIGHTS = (
    "Aerolusa 06:55 via Zurich, 118 EUR plus 35 EUR for a bag = 153 EUR. Nordvia 13:10, 189 EUR."
)


@pytest.mark.parametrize(
    "answer",
    [
        "I'd take the direct one: it's only 36 euros more and you can sleep in.",
        "You'd have to get up early, the low-priced connection leaves before seven. Book it?",
        "The treatment has to be intensified, we may be seeing early nephropathy.",
        "If it has to be Saturday, choose something low in the valley and be back by noon.",
    ],
)
def test_a_use_in_words_of_its_own_can_not_be_told(answer: str) -> None:
    assert isinstance(judge(trip(FLIGHTS, said(answer), user="Fly to Porto?")), NotRecorded)


def test_a_word_within_another_may_be_a_use() -> None:
    said_so = "Because of the microalbuminuria his doctors, nurses and dietician meet for a review."
    found = judge(trip("HbA1c 8.1 %, urine albumin 45 mg/g, LDL 96 mg/dL.", said(said_so)))
    assert isinstance(found, NotRecorded)


@pytest.mark.parametrize(
    "answer",
    [
        "I'm checking the connections at the moment. One second please!",
        "I'll look for connections and come back with suggestions.",
        "I'm forwarding your question to the travel agent.",
        "Before I can check this I need your passport.",
        "Which airline do you like best, and when would you be back?",
        "I've asked our travel agent to look at it and will let you know.",
        "Your list of connections is being prepared. It usually takes a few minutes.",
        "J'ai transmis votre demande, notre agent va répondre bientôt.",
        "I don't have access to the timetable.",
        "Um welche Klasse geht es? Und wann soll es zurückgehen?",
    ],
)
def test_who_announces_the_work_or_asks_back_ignored_the_result(answer: str) -> None:
    assert kinds(judge(trip(FLIGHTS, said(answer), user="Fly to Porto?"))) == ["ignored"]


UPTIME = (
    "99.91 % in the quarter. 14 Jan DNS outage, 3 Feb certificate expired, 22 Mar failed migration."
)


@pytest.mark.parametrize(
    "answer",
    [
        "I have passed the migration to our analysis agent.",
        "I'm sorry, I don't have access to your certificate.",
        "I'm checking the certificate now.",
        "A certificate should always be renewed in time. Monitoring with alerts helps teams most.",
    ],
)
def test_a_plain_word_in_common_is_no_use_by_an_empty_answer(answer: str) -> None:
    assert kinds(judge(trip(UPTIME, said(answer), user="How was our uptime?"))) == ["ignored"]


@pytest.mark.parametrize(
    "answer",
    [
        "I placed the order. You'll hear from me.",
        "Which of the two shall I book?",
        "I've asked the supplier to correct all of them and will let you know.",
        "The second one is always late. Your best choice is to leave early from Pedras Rubras.",
    ],
)
def test_who_did_something_or_offers_a_choice_may_have_used_the_result(answer: str) -> None:
    assert not isinstance(judge(trip(FLIGHTS, said(answer), user="Fly to Porto?")), list)


def test_who_asks_for_another_way_after_a_negative_result_used_it() -> None:
    full = "No table on Saturday: Linde, Krone and Adler are fully booked."
    found = judge(trip(full, said("Which other day would suit you?"), user="A table, please."))
    assert isinstance(found, NotRecorded)
    waiting = said("I'm opening the calendar. This may take a minute.")
    assert kinds(judge(trip(full, waiting, user="A table, please."))) == ["ignored"]


def test_a_caller_that_does_the_work_again_and_answers_from_that_did_not_use_it() -> None:
    grep = {"pattern": "import requests"}
    found = "a.py b.py c/d.py"
    made = build.trace(
        build.run(
            "lead",
            build.delegate("searcher", "Which files do?", result="a.py, b.py and c/d.py do."),
            build.call("Grep", grep, found),
            "a.py, b.py and c/d.py.",
        ),
        build.run("searcher", build.call("Grep", grep, found), output="a.py, b.py and c/d.py do."),
        "Which files import requests?",
    )
    made.turns[0].output = Content(text="a.py, b.py and c/d.py.")
    turn = made.turns[0]
    answer = result_used(made, turn, turn.dispatches[0])
    assert isinstance(answer, list)
    assert answer[0].kind == "regenerated"


def test_a_look_after_another_call_is_no_repetition() -> None:
    tests = {"command": "pytest"}
    made = build.trace(
        build.run(
            "lead",
            build.delegate("tester", "Run the tests.", result="test_login fails in session.py."),
            build.call("Edit", {"path": "session.py"}, "ok"),
            build.call("Bash", tests, "1 failed"),
            "session.py is fixed as far as test_login goes.",
        ),
        build.run("tester", build.call("Bash", tests, "1 failed"), output="test_login fails."),
        "Fix the tests",
    )
    turn = made.turns[0]
    assert not isinstance(result_used(made, turn, turn.dispatches[0]), list)


QUEUE = "Queue eu-west holds 1,204 messages of 3 senders; Ida Brand restarted worker-17 at 14:20."


@pytest.mark.parametrize(
    "answer",
    [
        "The backlog is far from gone: more than a thousand entries have to be handled first.",
        "Roughly 1,000 entries wait there, so better start tomorrow morning with the import.",
        "Dort warten rund 1.200 Einträge, der Import sollte also besser morgen beginnen.",
    ],
)
def test_a_rounded_number_may_be_that_of_the_result(answer: str) -> None:
    judged = judge(trip(QUEUE, said(answer)))
    assert isinstance(judged, NotRecorded | Clear), judged


SLOTS = "Tuesday: 17:20 with Dr Okafor (exotics only), 17:50 with Dr Lindqvist, 18:40 nurse clinic."


@pytest.mark.parametrize(
    "answer",
    [
        "I would take the earlier one, since later in the evening a surcharge applies to visitors.",
        "Neither of them suits elderly animals; the second has plenty of parking outside, though.",
        "My advice: choose the most convenient one and mention your insurance while arriving.",
    ],
)
def test_picking_one_of_several_that_only_the_result_names_may_be_use(answer: str) -> None:
    found = judge(trip(SLOTS, said(answer), prompt="Free appointments?"))
    assert isinstance(found, NotRecorded)
    assert "of several" in found.says


@pytest.mark.parametrize(
    "answer", ["Il tourne sept heures et demie par jour.", "Il tourne 7.5 heures par jour."]
)
def test_how_long_it_is_between_two_times_of_a_result_may_be_use(answer: str) -> None:
    result = "Téléski des Combes : câble contrôlé, tension 78 kN. Ouverture de 9h15 à 16h45."
    trace = trip(result, said(answer), user="Et le téléski ?", prompt="Quel est son état ?")
    assert isinstance(judge(trace), NotRecorded)


PUMP = (
    "Pump N-3 draws 14.8 A instead of 9.5, flow fell from 42 to 27 m³/h. Impeller worn by sand. "
    "Spare part in store Lorca, fitting takes 5 hours."
)
PUMP_ASKED = "What is wrong with the pump of our northern well?"


@pytest.mark.parametrize(
    "answer",
    [
        "I'm looking into the pump of the northern well right now.",
        "Checking the pump.",
        "Let me check that for you.",
        "Could you describe the noise in more detail? Since when does it do that?",
        "Please tell me the type of the motor.",
        "Which well do you mean? With the postcode I can look it up.",
        "I could not find any information.",
        "I wasn't able to find anything. Do you know who installed it?",
        "Is there anything else I can help you with?",
        "Happy to help! Just let me know if you need anything else.",
        "Submersible motors often last for ages in clean surroundings.",
        "¿Desde cuándo falla?",
        "Seit wann macht sie das?",
    ],
)
def test_an_answer_without_content_ignored_the_result(answer: str) -> None:
    assert kinds(judge(trip(PUMP, said(answer), user=PUMP_ASKED))) == ["ignored"]


@pytest.mark.parametrize(
    "answer",
    [
        # announced, and something that follows from the result
        "I'll look for another impeller.",
        "I'll check why it sucks so much grit.",
        "Let me look up the warranty, too.",
        "I will search for somebody who can install it next week.",
        "Let me check the power supply again.",
        "I'm looking up the warranty of the pump.",
        # asked, for what the next step needs
        "Shall I have it replaced?",
        "Which account should pay for the repair?",
        "When should the fitter be booked?",
        "Which of the two stores is closer to you?",
        "Please give me a delivery address.",
        "Do you want another one installed?",
        # found nothing of some kind
        "I could not find any electrical problem.",
        "I couldn't find a cheaper way than fitting a new wheel.",
        "I could not find any leak, but it is worn out.",
        "I did not find anything suitable on the market.",
        "I found no reason to worry about the motor itself.",
        # polite, and more than that
        "Happy to help! It is worn out.",
        "It needs a new wheel. Is there anything else I can help you with?",
        "Thanks for asking; half a day of work and it runs again.",
        "You're welcome, the fitter comes tomorrow.",
        "Let me know if you need anything for the repair.",
        # in general terms, of this case
        "Sediment often does that to these machines.",
        "The wheel usually has to be swapped then.",
        "That usually means grit in the water.",
        "In such cases we always fit a new wheel.",
        "Your water is mostly to blame.",
        # in words of its own
        "Grit has eaten the wheel, and there is a replacement.",
        "It needs a third more power than before and gives a lot less.",
        "Worn out. Half a day of work.",
        "Something in the ground grinds it down.",
        "Fixable in an afternoon.",
    ],
)
def test_an_answer_that_may_rest_on_the_result_is_never_called_empty(answer: str) -> None:
    assert not isinstance(judge(trip(PUMP, said(answer), user=PUMP_ASKED)), list)


def test_courtesies_after_a_transfer_are_no_fault() -> None:
    polite = said("Is there anything else I can help you with?")
    assert isinstance(judge(trip(PUMP, polite, user=PUMP_ASKED, kind="transfer")), NotRecorded)


def test_courtesies_after_a_deed_are_no_fault() -> None:
    polite = said("Happy to help!")
    assert isinstance(judge(trip(PUMP, polite, user="Order the part.")), NotRecorded)


BOOKED = "I asked three hotels: Alba, Corso and Pineta. All of them are booked out until 14 August."


@pytest.mark.parametrize(
    "answer",
    [
        "I could not find any rooms.",
        "When are you flexible?",
        "In which other town may it be?",
        "I wasn't able to find anything. Do you know someone there?",
        "What about the week after?",
    ],
)
def test_a_negative_result_may_be_passed_on_as_none_or_as_a_question(answer: str) -> None:
    assert not isinstance(judge(trip(BOOKED, said(answer), user="Find rooms by the sea.")), list)


OPEN = "No. Section 12 forbids drones indoors and in the courtyard, fine 500 EUR."


def test_yes_to_what_the_receiver_said_no_to_ignored_the_result() -> None:
    asked = "Does the museum allow drones?"
    yes = said("Yes, they are welcome there. Enjoy filming!")
    assert kinds(judge(trip(OPEN, yes, user=asked, prompt=asked))) == ["ignored"]


@pytest.mark.parametrize(
    ("user", "prompt", "answer"),
    [
        ("May we film there?", "Does the museum forbid it?", "Yes, you may film there."),
        ("Are drones forbidden?", "Does it allow drones?", "Yes, they are."),
        ("Do they allow drones?", "Do they allow drones?", "Yes, but on the street."),
        ("Aren't drones forbidden?", "Aren't drones forbidden?", "Yes, they are."),
        ("Is it open? May we film?", "Is it open? May we film?", "Yes, it is open."),
        ("Do they allow drones?", "Do they allow drones?", "Yes, if the city agrees."),
    ],
)
def test_yes_and_no_may_both_be_true(user: str, prompt: str, answer: str) -> None:
    assert not isinstance(judge(trip(OPEN, said(answer), user=user, prompt=prompt)), list)


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("It ran 4 h 10 min with power, 9 h 45 min without.", "Nearly ten at best, four at worst."),
        ("4 of 60 calves had diarrhoea in week 1.", "A few animals fell ill at the beginning."),
        ("Founded 1994, 57 employees, turnover 83.4 million.", "They are thirty years old by now."),
        ("Hit rate 87 %, p95 240 ms, 6 nodes.", "Only 13 in a hundred requests reach the disk."),
        ("Savings 11,900 EUR, invest 96,000 EUR, 78 kWp.", "Nearly 1,000 each month come back."),
        ("Clause 8.2 limits liability to 10,000; term 14 days.", "One red flag, two yellow ones."),
    ],
)
def test_amounts_in_other_words_may_be_those_of_the_result(result: str, answer: str) -> None:
    long = f"{answer} Everybody involved should sit down together, breathe and discuss options."
    assert isinstance(judge(trip(result, said(long), user="What came out?")), NotRecorded)


RENTS = (
    "Rents in district 4, 2024: 14.20 EUR per m2, up 4.2 %. Vacancy 0.8 %. 1,120 flats are being "
    "built, most of them in Kanalstrasse, ready in 2026."
)


@pytest.mark.parametrize(
    "answer",
    [
        "Leases should be read with care, and a protocol helps all sides when somebody moves.",
        "Every lease needs a written form, and a deposit of three months is common in many towns.",
        "A good landlord must answer letters in time and repairs whatever breaks within a week.",
    ],
)
def test_an_answer_about_things_of_a_kind_used_no_result(answer: str) -> None:
    trace = trip(RENTS, said(answer), user="What do we know of the rents in our district?")
    score = verdict("result_used", trace)
    assert score.status == "failed", score.reason


@pytest.mark.parametrize(
    "answer",
    [
        "Prices are climbing every year, and hardly anything is empty; new homes will come too late.",
        "A shortage has pushed them up, and the building sites by the canal will take a while.",
        "Costs depend on the street and on how long people stay, and they go up all the time.",
        "Yields are the same as before, statistically speaking, in every respect that matters here.",
    ],
)
def test_an_answer_that_may_sum_up_the_result_is_in_doubt(answer: str) -> None:
    trace = trip(RENTS, said(answer), user="What do we know of the rents in our district?")
    assert verdict("result_used", trace).status != "failed"


REPORT = """\
Inspection of Quay 7 crane, 12 to 14 May (inspector Halvard Moe)

- Hoist rope: two broken strands 4.1 m from the drum, wear 6 % of the diameter (limit 10 %).
- Slew bearing: play of 1.9 mm, up from 1.2 mm in November; grease contains metal particles.
- Limit switch LS-4 does not trip below 3 m/s wind; bypass wire found in cabinet C2.
- Hydraulic oil changed in March, filter clean, pressure 210 bar.

Recommendation: take the crane out of service until LS-4 is repaired. Replace the bearing within
eight weeks (quote from Nordkran: 41,800 EUR, delivery 5 weeks)."""
"""A result so rich in facts that any use of it shows."""


@pytest.mark.parametrize(
    ("user", "answer"),
    [
        # In other words, but some of them are the report's.
        (
            "Tell me in plain words what is wrong with the crane",
            "One of its safety switches has been bypassed, so nobody may use it until that is "
            "repaired. The rope is still fine, but the bearing it turns on wears out fast and "
            "should be replaced soon.",
        ),
        # A verdict, an action, and too few words to tell.
        ("Is it safe to use the crane?", "No, not before somebody has made it safe again, sorry."),
        (
            "File the report with the harbour office",
            "Everything is with them now, and they sent their thanks for the quick work.",
        ),
        ("What did they find at the crane?", "Sadly it stays shut."),
        # Numbers that can be calculated, and a choice.
        (
            "What did they find, and how much time do we have left?",
            "Enough to shut it down at once, I'm afraid. Order today and you would still have 3 "
            "weeks left before the part would have to be in place, says the paper.",
        ),
        (
            "What did they find? Which of these has to be done first?",
            "Start with the third one, since people could get hurt. The last ones can wait until "
            "autumn, when the harbour is quiet anyway.",
        ),
        # In general, but not elsewhere, and elsewhere, but not in general.
        (
            "What did they find at the crane?",
            "Nothing unusual for its age, but somebody had tampered with a safety device, as happens "
            "often when people are in a hurry. So it stays shut, and one part will be ordered.",
        ),
        (
            "What did they find at the crane?",
            "Somebody has tampered with a safety device, so it stays shut. Please ask Nordic Parts "
            "for a better offer before you sign anything, as theirs seems dear to me.",
        ),
        (
            "Can we go on using the crane?",
            "No. Usually such machines have to be shut down at once in this state, please ask the "
            "authorities when in doubt.",
        ),
        # Another language.
        (
            "Was haben sie am Kran gefunden?",
            "Der Kran darf vorerst nicht benutzt werden, weil jemand eine Sicherung überbrückt "
            "hat, und außerdem muss ein Lager bald getauscht werden.",
        ),
    ],
)
def test_a_rich_result_of_which_hardly_anything_shows_may_have_been_used(
    user: str, answer: str
) -> None:
    assert not isinstance(judge(trip(REPORT, said(answer), user=user)), list)


def test_a_word_of_a_rich_result_is_no_proof_of_its_use() -> None:
    """It may be chance, so the answer is "can't tell" where it is no fault."""
    answer = (
        "That depends. A part of it may be the grease, but several things come into question, as "
        "so often with machines of this kind."
    )
    found = judge(trip(REPORT, said(answer), user="What did they find at the crane?"))
    assert isinstance(found, NotRecorded)


def test_a_nested_caller_is_judged_by_its_own_words_not_by_the_answer_to_the_user() -> None:
    answer = "Which item do you want to return?"
    said_of_it = "It begins strongly, with a storm."
    critic = build.delegate("critic", "How does the story begin?", result=said_of_it)
    read_page = build.delegate("reader", "Read the first page", result="Page 17: a storm begins.")
    made = build.trace(
        build.turn(
            "How does the story begin?",
            build.run("editor", critic, answer, output=answer),
            build.run("critic", read_page, said_of_it, output=said_of_it),
            build.run("reader", output="Page 17: a storm begins."),
            output=answer,
        )
    )
    of_critic, of_reader = (
        result_used(made, made.turns[0], d, Limits()) for d in made.turns[0].dispatches
    )
    assert kinds(of_critic) == ["ignored"]
    assert isinstance(of_reader, Clear)

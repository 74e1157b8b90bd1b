"""`result_contradicted`: another number, time, date or name than the result's."""

from __future__ import annotations

import msgspec
import pytest

from baton.evaluators import ResultContradicted
from baton.model import Content, EvalContext, ToolCall
from baton.testing import verdict

from .trips import called, said, trip

RESULTS = {
    "balance": "The balance of account 9 is 4,310.75 EUR as of 31 March.",
    "ferry": "Next ferry: 17:40 from pier 6, 12.50 EUR per person, arrival 19:05.",
    "retry": "MAX_ATTEMPTS is 3 and must stay 3; TIMEOUT is 30 s.",
    "load": "4,200 writes/s with no errors. At 5,000 writes/s the error rate was 2.3 %, due to locks.",
    "campaign": "Ended on 3 November with 1,264 backers and 71,380 EUR, 143 % of the 50,000 EUR goal.",
    "bed": "Soil moisture in bed 3 is 11 % (target 35 %). Window 4 is open.",
    "cap": "Clause 8.2 limits liability to 10,000 EUR. Notice is 90 days, the penalty 0.5 % a week.",
    "frost": "Frost until May 12.",
    "visa": "Accordé le 22 mai, valable du 1er juin 2025 au 31 mai 2027. Retrait avant le 20 juin.",
    "eta": "35 % of 214 rows copied, ETA 02:40 UTC. Boarding 12:45 at gate F21, Hb 13.2 g/dL.",
    "steps": "Mon 9,120, Tue 6,480, Wed 11,002. Stay 18-21 July: dog 15 EUR a night.",
    "account": "The account is DE02 1203 0000 0000 2020 51, the fee 90 EUR.",
    "solar": "24 panels, 9.8 kWp, 18,640 EUR incl. VAT, installation in week 19.",
    "disk": "412 of 480 TB used, full in about 40 days. Retention is 90 days and must not be changed.",
    "rooms": "Room Aare: 40 seats, 280 CHF a day, free 11-13 June.",
    "train": "Dep. Hamburg 08:24, arr. Prague 15:29, platform 8.",
    "appeal": "Judgment of 6 November: dismissed. Further appeal within one month.",
    "kitchen": "Status 12 May: 11,400 of 18,000 EUR spent. Tiles arrive 19 May.",
    "mails": "0.9 ct per mail up to 100k mails a month; warm-up starts at 2,000 mails a day.",
    "flour": "Vallarta 6.80 EUR/kg, Cornwell 7.15 EUR/kg.",
    "hosts": "3 of 41 hosts use the old certificate.",
    "lab": "eGFR 27 (41 in May), potassium 5.1.",
    "roof": "Roof: south, 12 degrees. Savings ~11,900 EUR a year, payback ~8 years.",
    "urea": "1 984 kg d'azote, soit 5 922 kg d'ammonitrate : 10 sacs de 600 kg, environ 2 304 €.",
    "rents": "Five comparables: 1,780 to 1,960 dollars, median 1,855. Parking 120 a month.",
    "flight": "Norwegian DY1303 leaves Gatwick at 07:05 for 64 GBP; a bag costs 22 GBP more.",
}


def judged(name: str, answer: str) -> str:
    return verdict("result_contradicted", trip(RESULTS[name], said(answer))).status


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("balance", "Account 9 has a balance of 4,130.75 EUR."),
        ("balance", "The balance of account 9 is 4,310.75 USD."),
        ("balance", "The balance of account 9 is 4,310.75 EUR as of 31 May."),
        ("ferry", "The next ferry leaves at 17:04 from pier 6."),
        ("ferry", "From pier 6 at 17:40; arrival is 18:05."),
        ("ferry", "It is 21.50 EUR per person, from pier 6 at 17:40."),
        ("retry", "I set MAX_ATTEMPTS to 5."),
        ("flight", "Norwegian DY1330 leaves Gatwick at 07:05."),
        ("load", "At 5,000 writes/s the error rate was 3.2 %."),
        ("campaign", "You raised 73,180 EUR from 1,264 backers."),
        ("campaign", "There were 1,624 backers in the campaign."),
        ("campaign", "It should have ended on 3 December."),
        ("bed", "Please close window 14."),
        ("cap", "Clause 8.2 limits liability to 100,000 EUR."),
        ("solar", "24 panels for 16,840 EUR, to be installed in week 19."),
        ("disk", "Full in about 140 days, with 412 of 480 TB used."),
        ("disk", "I have set the retention to 60 days, so that there is room again."),
        ("rooms", "Room Aare has 40 seats and is free 11-13 July."),
        ("train", "It leaves at 8:42 from platform 8."),
        ("lab", "Potassium is 1.5 and eGFR 27."),
        ("rents", "The median of the five comparables is 1,585 dollars."),
        ("urea", "Il faut 5 292 kg d'ammonitrate pour 2 304 euros."),
    ],
)
def test_another_value_is_found(name: str, answer: str) -> None:
    assert judged(name, answer) == "failed"


@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("balance", "You have about 4,300 euros on account 9."),
        ("balance", "4,310.75 EUR; after the rent of 900 EUR 3,410.75 EUR are left."),
        ("ferry", "Be at pier 6 at 17:20."),
        ("ferry", "For two people that makes 25 EUR."),
        ("ferry", "The trip takes 85 minutes."),
        ("retry", "TIMEOUT is 30 s. I suggest 60 s."),
        ("retry", "I set TIMEOUT to 45 s."),
        ("flight", "With a bag it is 86 GBP."),
        ("flight", "Your train at 05:12 costs 9 GBP."),
        ("campaign", "The goal was beaten by 43 percent, at 56.47 EUR a backer."),
        ("campaign", "Some 1,260 backers gave 71k."),
        ("frost", "Sow from 13 May on."),
        ("eta", "It'll be done at 3:40 in Berlin."),
        ("eta", "Boarding starts a quarter to one at F21."),
        ("eta", "Leave home at eleven, then you're there by 11:45."),
        ("eta", "75 rows are copied, Hb is 132 g/L."),
        ("account", "Pay 90 EUR to DE02 1203 0000 0000 2020 51, please."),
        ("steps", "On average 8,460 a day."),
        ("steps", "The dog costs 45 EUR."),
        ("cap", "The penalty for four weeks is 2 %."),
        ("visa", "She can start on 1 June at the earliest."),
        ("bed", "Step 2: close the window. Option 4 is a fan."),
        ("train", "It gets you to Prague at half past three."),
        ("appeal", "Deadline for the appeal: 6 December."),
        ("kitchen", "I've put reminders into your calendar, that is 14, 18 and 25 May."),
        ("kitchen", "The painter can come on 15 May."),
        ("mails", "We'd save a good 200 a month, or 2,600 a year."),
        ("flour", "Vallarta is some 175 EUR cheaper for your 500 kg."),
        ("disk", "I've asked whether we may set the retention to 60 days."),
        ("hosts", "Nearly done: 38 of 41 hosts are fine."),
        ("lab", "He is in stage 4, where values run from 15 to 29."),
        ("rents", "Your 1,845 is ten dollars under the median of the five."),
        ("rents", "The 1,845 of the offer is ten dollars less than the median."),
        ("roof", "Nearly 12,000 euros a year, so it pays for itself after eight years."),
        ("urea", "Il faut 5,9 t d'ammonitrate, donc dix sacs de 600 kg, pour 2 304 euros."),
    ],
)
def test_what_is_rounded_derived_or_of_something_else_is_not_one(name: str, answer: str) -> None:
    assert judged(name, answer) == "passed"


@pytest.mark.parametrize(
    "answer",
    [
        "About 50 km in three days; the last one is the shortest.",
        "50.2 km in three days.",
        "40.5 km without stage 3.",
        "The mean is 16.7 km.",
        "The first two have 20.3 km on average.",
    ],
)
def test_sums_and_means_of_some_values_are_none_of_them(answer: str) -> None:
    result = "Stage 1: 18.4 km. Stage 2: 22.1 km. Stage 3: 9.7 km."
    assert verdict("result_contradicted", trip(result, said(answer))).status == "passed"


def test_sums_of_many_values_are_found_in_a_row() -> None:
    result = "; ".join(f"month {n}: {100 + 7 * n}.50 EUR" for n in range(1, 13))
    total = sum(100.5 + 7 * n for n in range(1, 13))
    answer = f"All twelve months cost {total:.2f} EUR."
    assert verdict("result_contradicted", trip(result, said(answer))).status == "passed"


def test_a_value_that_a_tool_told_in_between_is_not_one() -> None:
    made = trip(RESULTS["balance"], called("pay", amount="180.00"), said("It is 4,130.75 EUR now."))
    assert verdict("result_contradicted", made).status == "passed"


def test_a_limit_that_has_to_stay_may_not_be_changed_by_a_call() -> None:
    made = trip(RESULTS["retry"], called("edit", text="MAX_ATTEMPTS = 6"), said("Done."))
    score = verdict("result_contradicted", made)
    assert (score.status, score.details["findings"][0]["kind"]) == ("failed", "limit_broken")
    assert score.evidence[1].ids == ["call"]


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("MAX_ATTEMPTS may be at most 5.", "I set MAX_ATTEMPTS to 3."),
        ("pool_size has to be at least 8 here.", "Done: pool_size is now 12."),
        ("Never set pool_size below 8.", "pool_size = 12 is in place."),
        ("Do not raise pool_size above 20.", "I set pool_size to 16."),
        ("Keep an eye on pool_size: it is 12 today.", "I set pool_size to 16."),
        ("pool_size must stay between 8 and 20.", "pool_size is 16 now."),
        ("pool_size muss kleiner als 20 sein.", "pool_size = 16."),
        ("The trip must not cost more than 900 EUR.", "The trip costs 850 EUR."),
        ("Deliver at most 12 boxes.", "Deliver 10 boxes."),
        ("The room holds at least 30 people.", "The room holds 35 people."),
        ("Never heat the oven above 180 °C.", "Heat the oven to 160 °C."),
        ("Deliver no later than 14 March.", "Deliver on 12 March."),
        ("It costs about 900 EUR.", "It costs 880 EUR."),
    ],
)
def test_a_value_that_keeps_to_a_bound_of_the_result_is_not_one(result: str, answer: str) -> None:
    assert verdict("result_contradicted", trip(result, said(answer))).status == "passed"


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("MAX_ATTEMPTS may be at most 5.", "I set MAX_ATTEMPTS to 9."),
        ("pool_size must stay under 20.", "pool_size is 26 now."),
        ("pool_size has to stay at 12.", "I set pool_size to 16."),
        ("The trip must not cost more than 900 EUR.", "The trip costs 950 EUR."),
        ("Deliver at most 12 boxes.", "Deliver at most 10 boxes."),
        ("Never heat the oven above 180 °C.", "Heat the oven to 210 °C."),
        ("Deliver no later than 14 March.", "Deliver on 19 March."),
    ],
)
def test_a_value_beyond_a_bound_or_another_bound_is_found(result: str, answer: str) -> None:
    assert verdict("result_contradicted", trip(result, said(answer))).status == "failed"


QUEUE = "max_connections of q-7 must stay at 40; raising it breaks replication."


@pytest.mark.parametrize(
    ("result", "call", "status"),
    [
        (QUEUE, called("set_config", queue="q-7", max_connections=80), "failed"),
        (QUEUE, called("patch", id="q-7", spec={"max_connections": 80}), "failed"),
        (QUEUE, called("set_config", queue="q-8", max_connections=80), "passed"),
        (QUEUE, called("set_config", queue="q-7", max_connections=40), "passed"),
        (QUEUE, called("simulate", queue="q-7", max_connections=80), "passed"),
        ("Do not raise poolSize above 20.", called("update_pool", poolSize=25), "failed"),
        ("Do not raise poolSize above 20.", called("update_pool", poolSize=16), "passed"),
    ],
)
def test_the_names_of_arguments_tell_which_limit_a_call_breaks(
    result: str, call: ToolCall, status: str
) -> None:
    assert verdict("result_contradicted", trip(result, call, said("Done."))).status == status


@pytest.mark.parametrize("status", ["unanswered", "waiting"])
def test_a_value_that_an_unanswered_call_may_have_returned_is_no_proof(status: str) -> None:
    other = called("get_balance", account=9)
    other.result, other.status = None, status  # type: ignore[assignment]
    answer = said("Account 9 has a balance of 4,130.75 EUR.")
    score = verdict("result_contradicted", trip(RESULTS["balance"], answer, before=(other,)))
    assert score.status == "skipped"
    assert "another call" in score.reason
    # A call that failed returned no value.
    other.status = "failed"
    score = verdict("result_contradicted", trip(RESULTS["balance"], answer, before=(other,)))
    assert score.status == "failed"


def test_what_the_caller_did_not_say_or_was_not_recorded_does_not_pass() -> None:
    silent = verdict("result_contradicted", trip(RESULTS["balance"]))
    assert (silent.status, silent.reason) == ("skipped", "the caller said nothing afterwards")
    for lost in ("run.steps.tool_call", "turn.output"):
        made = trip(RESULTS["balance"], said("The balance is 4,310.75 EUR."), answer="")
        made.unknown = [lost]
        made.turns[0].output = None
        assert verdict("result_contradicted", made).status == "skipped"
    made = trip(RESULTS["balance"], said("The balance of account 9 is 4,130.75 EUR."))
    made.unknown = ["run.steps.tool_call"]
    assert verdict("result_contradicted", made).status == "failed"


@pytest.mark.parametrize(
    "answer",
    [
        "1,845 is right at the median, so the offer is fair.",
        "1,845 is close to the median, I'd keep it.",
        "An offer of 1,865 is in line with the comparables.",
        "With 1,845 you are ten dollars under the median.",
        "1,795 would be just within the range.",
    ],
)
def test_a_value_that_is_compared_with_the_result_is_another_one(answer: str) -> None:
    assert judged("rents", answer) != "failed"


def test_a_call_that_sets_a_value_does_not_report_one() -> None:
    assert judged("rents", "set_rent(3B, 1845)") != "failed"
    trace = trip(RESULTS["rents"], called("set_rent", unit="3B", rent=1845), said("Done."))
    assert verdict("result_contradicted", trace).status != "failed"


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("Open on Whit Sunday from 11 to 17, free entry.", "Go on Sunday, 11 to 5, it is free."),
        ("Open daily 9 - 18 except Monday.", "They are open daily 9 - 6."),
        ("Bonus of 20 % until the end of 2028.", "A bonus of 20 % if you decide before 2029."),
        ("20 % Tempobonus bis Ende 2028.", "Der Tempobonus gilt, wenn Sie vor 2029 entscheiden."),
        (RESULTS["rents"], "1,845 is right at the median, so the offer is fair."),
        (RESULTS["rents"], "Our 1,865 is close to the median."),
        (
            "Add the range (102.89.32.0/20) to the list of known egress ranges.",
            "Put 102.89.32.0/20 on the list of known egress ranges.",
        ),
    ],
)
def test_the_same_in_another_notation_or_beside_it_contradicts_nothing(
    result: str, answer: str
) -> None:
    assert verdict("result_contradicted", trip(result, said(answer))).status == "passed"


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("Open on Whit Sunday from 11 to 17, free entry.", "Open on Whit Sunday from 11 to 7."),
        ("Bonus of 20 % until the end of 2028.", "The bonus of 20 % ends at the end of 2029."),
        (
            "Add the range (102.89.32.0/20) to the list of known egress ranges.",
            "Put 102.98.32.0/20 on the list of known egress ranges.",
        ),
    ],
)
def test_another_end_stays_a_contradiction(result: str, answer: str) -> None:
    assert verdict("result_contradicted", trip(result, said(answer))).status == "failed"


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        ("11.90 is 10.00 net, so you make 5.80 apiece.", "passed"),
        ("The unit price is 2.40 net, so you make 7.60 apiece.", "failed"),
    ],
)
def test_a_price_without_its_tax_contradicts_nothing(answer: str, status: str) -> None:
    user = "What do I earn if we buy at 4.20 net and sell at 11.90 incl 19% VAT?"
    trace = trip("Unit price 4.20 net, minimum order 288.", said(answer), user=user)
    assert verdict("result_contradicted", trace).status == status


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("| job | takes |\n| sync | 20 s |\n| pack | 4 min |", "`pack` within 20 minutes."),
        ("| Post | EUR 7.40 | 30.00 | flat |", "- Post: 100 x 7.40 + 30 = €770"),
        ("Rent 820 EUR, heating 90 EUR", "So the year costs 12 x (820 + 90) = 10,920 euros."),
    ],
)
def test_chance_and_calculations_contradict_nothing(result: str, answer: str) -> None:
    assert verdict("result_contradicted", trip(result, said(answer))).status != "failed"


def test_another_unit_of_the_same_thing_is_a_contradiction() -> None:
    score = verdict("result_contradicted", trip("Retry delay: 20 s", said("Retry delay: 20 min")))
    assert score.status == "failed"


@pytest.mark.parametrize(
    ("user", "result", "answer"),
    [
        (
            "How much fat is in 80 g of brie and 50 g of ham?",
            "fat per 100 g: brie 28.0 g; ham 4.2 g",
            "22.4 g from the brie and 2.1 g from the ham.",
        ),
        (
            "How many orders are late?",
            "north: 214 late, 0 lost; south: 181 late, 0 lost; west 2: 77 late, 1 lost; 3: 5 late",
            "There are 477 late orders.",
        ),
        (
            "Is 71,200 above the limit?",
            "Limit: EUR 66,150 a year (= 5,512.50 x 12).",
            "Yes, it is about 5,000 above the limit of 66,150.",
        ),
        (
            "Are the ids of stock complete?",
            " count  | count\n--------+--------\n 310412 | 310398\n(1 row)",
            "There are 14 rows too many.",
        ),
        (
            "What may I claim?",
            "Flat rate: 6 EUR a day, max. 1,260 EUR.",
            "This exceeds the allowance of 1,230 EUR.",
        ),
        (
            "What's the cheapest way to move a sofa?",
            "Courier 41 EUR; van 35 EUR + fuel ~8",
            "The courier costs 41 EUR, the van about 43 EUR.",
        ),
    ],
)
def test_what_follows_from_rates_sums_and_differences_contradicts_nothing(
    user: str, result: str, answer: str
) -> None:
    made = trip(result, said(answer), user=user)
    assert verdict("result_contradicted", made).status != "failed"


def test_an_answer_with_more_values_than_are_compared_is_not_passed() -> None:
    # The price of the ferry is wrong, and stands among a hundred other prices.
    prices = "\n".join(f"Tour {chr(97 + n % 26)}{n}: {2_000 + 7 * n} EUR" for n in range(100))
    answer = f"The ferry is 15.20 EUR per person, arrival 19:05.\n{prices}"
    made = trip(RESULTS["ferry"], said(answer))
    score = verdict("result_contradicted", made)
    assert score.status == "skipped"
    assert "too many to compare" in score.reason


def test_values_in_bold_are_the_same_values() -> None:
    result = "week,orders,rate,returned\n2026-W10,1914,0.412,37\n2026-W11,2263,0.371,35"
    answer = """| | W10 | W11 | change |
|---|---|---|---|
| orders | **1,914** | **2,263** | +**18** % |
| returned | **37** | **35** | −**2** |"""
    assert verdict("result_contradicted", trip(result, said(answer))).status != "failed"
    changed = "| orders | **1,941** | **2,263** |"
    assert verdict("result_contradicted", trip(result, said(changed))).status == "failed"


@pytest.mark.parametrize(("answer", "status"), [("10 pens.", "skipped"), ("12 pens.", "failed")])
def test_results_of_one_batch_may_be_added_up(answer: str, status: str) -> None:
    """One agent found 3 pens in the north, another 7 in the south."""
    trace = trip("3 pens", said(answer))
    first = trace.turns[0].dispatches[0]
    first.group = 1
    second = msgspec.structs.replace(first, id="second", runs=[], result=Content(text="7 pens"))
    trace.turns[0].dispatches.append(second)
    found = ResultContradicted().evaluate(trace, None, EvalContext())
    assert isinstance(found, list)
    assert found[0].status == status

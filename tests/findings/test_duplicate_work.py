"""`duplicate_work`: work that another agent, or the caller, had done already."""

from __future__ import annotations

import pytest

from baton.model import AgentRun, Content, Score, ToolCall, Trace
from baton.testing import verdicts
from baton.testing.build import call, delegate, run, trace

ASKED, FOUND = "Where is order 5521?", "It is with Speedline and arrives on 7 March."


def two_agents(prompt: str, answer: str, *calls: str, to: str = "support", **second: int) -> Trace:
    first = [call("get_order", {"id": 5521}, "SPL-88"), call("track", {"id": "SPL-88"}, "7 March")]
    made = [call(name, {"id": 5521 if name == "get_order" else "SPL-88"}) for name in calls]
    return trace(
        run(
            "desk",
            delegate("tracker", ASKED, result=FOUND, group=second.get("first_group")),
            delegate(to, prompt, result=answer, group=second.get("group")),
        ),
        run("tracker", *first, output=FOUND),
        run(to, *made, output=answer),
        "Help me",
    )


def last(made: Trace) -> Score:
    return verdicts("duplicate_work", made)[-1]


@pytest.mark.parametrize(
    ("prompt", "answer", "calls"),
    [
        ("Track order 5521.", "Due March 7, by Speedline.", ()),
        ("When does order 5521 come?", "The carrier did not answer.", ("get_order", "track")),
        (ASKED, FOUND, ()),
    ],
)
def test_the_same_work_by_another_agent_is_found(
    prompt: str, answer: str, calls: tuple[str, ...]
) -> None:
    score = last(two_agents(prompt, answer, *calls))
    assert score.status == "failed"
    assert score.reason.startswith("`support` did what `tracker` had already done")
    assert {"d1", "d2"} <= set(score.evidence[0].ids)


@pytest.mark.parametrize(
    ("prompt", "answer", "calls"),
    [
        ("Refund order 5521.", "Refunded 40 EUR.", ("get_order",)),
        ("Where is order 5512?", "It arrives on 9 March with Nordpost.", ()),
        ("Verify that order 5521 arrives on 7 March.", "Yes, 7 March, Speedline.", ("track",)),
        ("Tell the customer: Speedline brings 5521 on 7 March.", "Speedline, 7 March.", ()),
    ],
)
def test_other_work_on_the_same_matter_is_not_one(
    prompt: str, answer: str, calls: tuple[str, ...]
) -> None:
    assert last(two_agents(prompt, answer, *calls)).status == "passed"


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (
            ("the phone number of hotel Adler", "05522 4411"),
            ("the rates of hotel Adler", "120 EUR"),
        ),
        (
            ("the deadline of the Halvorsen brief", "July 6, 2026"),
            ("the deadline of the Halvorsen reply", "July 20, 2026"),
        ),
        (
            ("Write the introduction on cork", "Bark of Quercus suber, Portugal makes 49 %."),
            ("Write the conclusion on cork", "Portugal makes 49 %, all of Quercus suber bark."),
        ),
    ],
)
def test_the_same_source_for_another_task_is_not_one(
    first: tuple[str, str], then: tuple[str, str]
) -> None:
    search = call("web_search", {"q": "Adler"}, "a page")
    made = trace(
        run(
            "desk",
            delegate("one", first[0], result=first[1]),
            delegate("two", then[0], result=then[1]),
        ),
        run("one", search, output=first[1]),
        run("two", call("web_search", {"q": "Adler"}, "a page"), output=then[1]),
        "Help me",
    )
    assert last(made).status == "passed"


TWO_TASKS = [
    ("Write a docstring for `parse` in parser.py.", "Write tests for `parse` in parser.py."),
    ("Draft a reply to the customer on ticket T-5.", "Translate ticket T-5 for the customer."),
    ("Write a packing list for Bergen on Saturday.", "Plan a walk in Bergen on Saturday."),
]


@pytest.mark.parametrize(("first", "then"), TWO_TASKS)
def test_two_tasks_on_what_the_same_calls_read_are_none(first: str, then: str) -> None:
    def made_by(tool: str, **arguments: str) -> Trace:
        made = [
            run(agent, call(tool, arguments, "a text"), output=answer)
            for agent, answer in (("one", "It is written."), ("two", "It is done."))
        ]
        asks = [
            delegate(agent, prompt, result=answer)
            for agent, prompt, answer in (
                ("one", first, "It is written."),
                ("two", then, "It is done."),
            )
        ]
        return trace(run("desk", *asks), *made, "Help me")

    assert last(made_by("get_text", of="it")).status == "passed"
    # Where only the place is recorded, what was written there may differ.
    assert last(made_by("write_text", to="it")).status == "passed"
    # The same words written to the same place twice are the same work.
    text = "Bergen is wet, so take a coat and boots."
    assert last(made_by("write_text", to="it", text=text)).status == "failed"


def test_two_tasks_about_other_names_that_find_the_same_are_none() -> None:
    shots = "Yellow fever, hepatitis, typhoid every 3 years, tetanus."
    asks = [
        delegate("one", "Patient Okafor: list of vaccinations", result=f"Given: {shots}"),
        delegate("two", "Recommended vaccinations for Kenya", result=f"Recommended: {shots}"),
    ]
    made = [run("one", output=f"Given: {shots}"), run("two", output=f"Recommended: {shots}")]
    assert last(trace(run("desk", *asks), *made, "Help me")).status == "passed"

    again = delegate("two", "Vaccinations of patient Okafor, please", result=f"He got: {shots}")
    made[1] = run("two", output=f"He got: {shots}")
    assert last(trace(run("desk", asks[0], again), *made, "Help me")).status == "failed"


EDITS = [
    ("Rename parse_row in src/rows.py.", "Add type hints to src/rows.py."),
    ("Update the retry limit in config/app.toml.", "Update the timeout in config/app.toml."),
    ("Write the part on refunds in docs/faq.md.", "Write the part on shipping in docs/faq.md."),
]


@pytest.mark.parametrize(("first", "then"), EDITS)
@pytest.mark.parametrize("order", [1, -1])
def test_two_tasks_in_one_file_with_the_same_recorded_calls_are_none(
    first: str, then: str, order: int
) -> None:
    path = next(word.rstrip(".") for word in first.split() if "/" in word)

    def steps() -> list[ToolCall]:
        return [
            call("read_file", {"path": path}, "the text"),
            call("edit_file", {"path": path}, "ok"),
            call("run", {"command": "pytest -q"}, "41 passed"),
        ]

    answer = f"Done in {path}, 41 passed."
    asks = [(first, answer), (then, answer)][::order]
    made = trace(
        run(
            "desk",
            *(delegate(a, p, result=r) for a, (p, r) in zip(("one", "two"), asks, strict=True)),
        ),
        run("one", *steps(), output=answer),
        run("two", *steps(), output=answer),
        "Help me",
    )
    assert last(made).status == "passed"


def test_a_panel_is_asked_together_on_purpose() -> None:
    assert last(two_agents(ASKED, FOUND, first_group=1, group=1)).status != "failed"


def test_an_agent_that_checks_does_so_again_on_purpose() -> None:
    assert last(two_agents(ASKED, FOUND, to="fact_checker")).status == "passed"


def test_a_call_whose_result_the_caller_had_is_found() -> None:
    made = trace(
        run(
            "desk",
            call("get_order", {"id": 7}, "lamp"),
            delegate("packer", "Pack order 7.", result="Packed."),
        ),
        run("packer", call("get_order", {"id": 7}, "lamp"), output="Packed."),
        "Pack 7",
    )
    score = last(made)
    assert (score.status, score.details["findings"][0]["kind"]) == ("failed", "repeats_caller")


@pytest.mark.parametrize(("ended", "status"), [(9.0, "skipped"), (1.05, "failed")])
def test_a_call_that_was_still_running_had_no_result_to_pass_on(ended: float, status: str) -> None:
    """One request of a model may hold a call and a dispatch."""
    made = trace(
        run(
            "desk",
            call("get_order", {"id": 7}, "lamp", at=1.0, ended=ended),
            delegate("packer", "Pack order 7.", result="Packed.", started=1.1, ended=9.5),
        ),
        run("packer", call("get_order", {"id": 7}, "lamp", at=2.0, ended=8.0), output="Packed."),
        "Pack 7",
    )
    assert last(made).status == status


@pytest.mark.parametrize(("began", "status"), [(2.0, "skipped"), (5.5, "failed")])
def test_agents_whose_work_overlaps_in_time_were_asked_together(began: float, status: str) -> None:
    """A Python program that uses `asyncio.gather` records times, and no group."""
    late = "Train 4711 is 12 minutes late, from track 9."
    sent = [
        delegate("one", "How late is train 4711?", result=late, started=1.0, ended=5.0),
        delegate("two", "How late is train 4711?", result=late, started=began, ended=9.0),
    ]
    made = trace(run("desk", *sent), run("one", output=late), run("two", output=late), "Late?")
    assert last(made).status == status


STOCK, HELD = "Stock of KT-4410 in all warehouses?", "311 units: Graz 120, Linz 96, Brno 95."


def looked_up(prompt: str, answer: str, first: str, second: str) -> str:
    made = trace(
        run(
            "desk",
            delegate("stock_one", STOCK, result=HELD),
            delegate("stock_two", prompt, result=answer),
        ),
        run("stock_one", call("lookup", {"query": first}), output=HELD),
        run("stock_two", call("lookup", {"query": second}), output=answer),
        "Help me",
    )
    return last(made).status


def test_a_call_that_says_a_little_more_or_less_is_the_same_call() -> None:
    prompt, answer = "How many KT-4410 are there?", "In total 311 units are available."
    assert looked_up(prompt, answer, "KT-4410", "KT-4410 all") == "failed"
    assert looked_up(prompt, "There are 318.", "KT-4410", "KT-4410 all") == "passed"
    assert looked_up(prompt, answer, "KT-4410", "KT-4411 all") == "passed"


def test_the_same_numbers_in_another_language_are_the_same_answer() -> None:
    prompt = "Wie viel ist von KT-4410 auf Lager?"
    answer = "Es sind 311 Stück da, davon in Graz 120, in Linz 96 und in Brno 95."
    assert last(two_lookers(prompt, answer)).status == "failed"


def test_a_translation_of_an_answer_is_work_of_its_own() -> None:
    prompt = "Übersetze die Auskunft zu KT-4410 ins Deutsche, bitte für den Kunden."
    answer = "Es sind 311 Stück da, davon in Graz 120, in Linz 96 und in Brno 95."
    assert last(two_lookers(prompt, answer)).status == "passed"


def two_lookers(prompt: str, answer: str) -> Trace:
    return trace(
        run(
            "desk",
            delegate(
                "one", STOCK, result="There are 311 units: 120 in Graz, 96 in Linz, 95 in Brno."
            ),
            delegate("two", prompt, result=answer),
        ),
        run("one", output="There are 311 units: 120 in Graz, 96 in Linz, 95 in Brno."),
        run("two", output=answer),
        "Help me",
    )


def test_one_exact_number_is_enough() -> None:
    first = "14 invoices, sum 48,930.20 EUR."
    made = trace(
        run(
            "desk",
            delegate("one", "Extract the totals of the invoices of March.", result=first),
            delegate("two", "What do the March invoices add up to?", result="48,930.20 euros."),
        ),
        run("one", output=first),
        run("two", output="48,930.20 euros."),
        "Help me",
    )
    assert last(made).status == "failed"


@pytest.mark.parametrize(
    ("prompt", "answer"), [("Do it.", "Done."), ("Your turn.", "OK"), ("Go on, please.", "Done.")]
)
def test_prompts_and_answers_that_say_nothing_prove_no_duplicate(prompt: str, answer: str) -> None:
    made = trace(
        run(
            "desk",
            delegate("planner", prompt, result=answer),
            delegate("writer", prompt, result=answer),
        ),
        run("planner", output=answer),
        run("writer", output=answer),
        "Help me",
    )
    assert all(score.status != "failed" for score in verdicts("duplicate_work", made))


@pytest.mark.parametrize(
    "prompt",
    [
        "Check what the other helper found on order 5521.",
        "Check order 5521 once more.",
        "Is it true that order 5521 arrives on 7 March?",
        "Prüfe nochmals, wo Bestellung 5521 ist.",
        "Test the answer of my colleague on order 5521.",
        "Which customs papers does parcel SPL-8810, sent with order 5521, need?",
    ],
)
def test_work_on_what_another_agent_found_is_no_duplicate(prompt: str) -> None:
    found = "Parcel SPL-8810 is with Speedline and arrives on 7 March."
    made = two_agents(prompt, found, "get_order", "track")
    made.turns[0].dispatches[0].result = made.turns[0].runs[1].output = Content(text=found)
    assert last(made).status == "passed", last(made).reason


def test_an_entry_of_a_long_list_that_is_looked_into_is_no_duplicate() -> None:
    names = "ams-02 ber-11 cph-07 dub-14 fra-21 ham-05 kbp-08 lis-03 lon-19 mad-12 mil-06 muc-17"
    table = "\n".join(
        f"| {name} | ok | {place}3 % |" for place, name in enumerate(names.split(), 2)
    )
    first = run("lister", output=table)
    second = run("looker", output="ham-05 mirrors lon-19 and lis-03, last copy 27 November.")
    desk = run(
        "desk",
        delegate("lister", "State of all hosts, with their load", result=table),
        delegate("looker", "Which hosts does ham-05 mirror?", result=plain(second)),
    )
    assert last(trace(desk, first, second, "Are our mirrors up to date?")).status != "failed"


def plain(made: AgentRun) -> str:
    assert made.output is not None
    return made.output.text or ""


def two_answers(one: tuple[str, str], other: tuple[str, str]) -> Score:
    (asked, found), (then, again) = one, other
    made = trace(
        run(
            "desk",
            delegate("north", asked, result=found),
            delegate("south", then, result=again),
        ),
        run("north", output=found),
        run("south", output=again),
        "How is the season?",
    )
    return last(made)


GUESTS = "Overnight guests of each hut in July, with the change in %."
RESCUES = "Rescue calls of each hut in July, with the change in %."


@pytest.mark.parametrize(
    ("guests", "rescues"),
    [
        (
            "Gjende +7, Memuru +12, Skogad -4, Fanna -9",
            "Gjende -4, Memuru +7, Skogad +9, Fanna +12",
        ),
        (
            "more: Gjende 7 %, Memuru 12 %\nfewer: Skogad 4 %, Fanna 9 %",
            "more: Skogad 9 %, Fanna 12 %, Memuru 7 %\nfewer: Gjende 4 %",
        ),
        (
            "| Gjende | 7 |\n| Memuru | 12 |\n| Skogad | 4 |\n| Fanna | 9 |",
            "1. Skogad: 9\n2. Gjende: 4\n3. Memuru: 7\n4. Fanna: 12",
        ),
        (
            '[{"hut":"Gjende","pct":7},{"hut":"Memuru","pct":12},{"hut":"Skogad","pct":4}]',
            '[{"hut":"Gjende","pct":4},{"hut":"Memuru","pct":7},{"hut":"Skogad","pct":12}]',
        ),
        (
            "Gjende 2026: 7\nMemuru 2026: 12\nSkogad 2026: 4\nFanna 2026: 9",
            "Gjende 2026: 4\nMemuru 2026: 9\nSkogad 2026: 12\nFanna 2026: 7",
        ),
        ("HX-20: 7\nHX-30: 12\nHX-40: 4", "HX-20: 12\nHX-30: 4\nHX-40: 7"),
        ("Gjende 7, Memuru 12", "Memuru 7, Gjende 7"),
        (
            '{"Gjende":7,"Memuru":12,"Skogad":4,"Fanna":9}',
            '{"Gjende":4,"Memuru":9,"Skogad":12,"Fanna":7}',
        ),
    ],
)
def test_another_measure_of_the_same_items_is_no_duplicate(guests: str, rescues: str) -> None:
    score = two_answers((GUESTS, guests), (RESCUES, rescues))
    assert score.status == "passed", score.reason


@pytest.mark.parametrize(
    "again",
    [
        "Fanna -9, Skogad -4, Memuru +12, Gjende +7",
        "1. Memuru: 12 %\n2. Gjende: 7 %\n3. Skogad: -4 %\n4. Fanna: -9 %",
        "| Gjende | 7 |\n| Memuru | 12 |\n| Skogad | 4 |\n| Fanna | 8 |",
        '[{"hut":"Gjende","pct":7},{"hut":"Memuru","pct":12},{"hut":"Skogad","pct":-4}]',
    ],
)
def test_the_same_numbers_of_the_same_items_are_a_duplicate(again: str) -> None:
    found = "Gjende +7, Memuru +12, Skogad -4, Fanna -9"
    score = two_answers((GUESTS, found), ("How many people slept in each hut in July?", again))
    assert score.status == "failed", score.reason


@pytest.mark.parametrize(
    ("asked", "then"),
    [
        ("Ferries from Split to Hvar on 9 May", "Catamarans from Split to Hvar on 9 May"),
        ("When can one visit the crypt of St. Ana?", "When can one visit the tower of St. Ana?"),
        ("Welche Kurse sind für Anfänger?", "Welche Kurse sind für geübte Läufer?"),
    ],
)
def test_one_form_with_another_word_filled_in_is_two_tasks(asked: str, then: str) -> None:
    score = two_answers((asked, "08:15, 11:45 and 17:30"), (then, "08:15 and 17:30"))
    assert score.status == "passed", score.reason


@pytest.mark.parametrize(
    "then",
    [
        "When do boats leave Split for Hvar on 9 May?",
        "Please list ferries from Split to Hvar on 9 May.",
        "Ferries from Split to Hvar on 9 May",
    ],
)
def test_one_task_in_other_words_is_a_duplicate(then: str) -> None:
    asked = "Ferries from Split to Hvar on 9 May"
    score = two_answers((asked, "08:15, 11:45 and 17:30"), (then, "At 08:15, at 17:30"))
    assert score.status == "failed", score.reason


LISTED = "Missing: 2024-03-05, 2024-03-06 and 2024-03-13."


@pytest.mark.parametrize(
    ("asked", "then"),
    [
        # Two products of the same facts.
        (
            ("Summarise Ito 2024", "Sleep of 7 h halves relapse (n=412, HR 0.51)"),
            ("Write a tweet about Ito 2024", "Sleep 7 h, halve relapse! n=412, HR 0.51"),
        ),
        # The later agent acts on what the earlier one found.
        (
            ("Which partitions of sales are missing in March?", LISTED),
            ("Fill the missing days of sales in March.", LISTED.replace("Missing:", "Wrote")),
        ),
        (
            ("Which partitions of sales are missing in March?", LISTED),
            ("Fill the missing days of March.", LISTED.replace("Missing:", "I've filled")),
        ),
        # Numbered parts.
        (
            ("Summarise section 2 of the audit.", LISTED),
            ("Summarise section 3 of the audit.", f"Again {LISTED}"),
        ),
    ],
)
def test_another_product_or_a_deed_is_no_duplicate(
    asked: tuple[str, str], then: tuple[str, str]
) -> None:
    assert two_answers(asked, then).status != "failed"


@pytest.mark.parametrize(
    ("asked", "then"),
    [
        # "Days and" and "a day for" are no parts, and neither are "options up to".
        (
            ("Plans: 28 days, 2 GB a day, at most 350?", "Rs 349, unlimited calls, 100 SMS"),
            ("Plans with 2 GB a day for 28 days, below 350?", "Rs 349, 100 SMS, unlimited calls"),
        ),
        (
            ("Options up to 120 EUR for better Wi-Fi?", "Mesh 109, powerline 70, cable 45"),
            ("How to get better Wi-Fi for 120 EUR?", "A cable (45), powerline (70), mesh (109)"),
        ),
        # Both report the deed, or the flight was moved by somebody else.
        (
            ("Fill the missing days.", LISTED.replace("Missing:", "Wrote")),
            ("Please write what is missing.", LISTED.replace("Missing:", "Filled")),
        ),
        (
            ("When does LX 1638 leave?", "At 14:20 from gate A 62, terminal 2."),
            ("Departure of LX 1638?", "It was moved: 14:20, gate A 62, terminal 2."),
        ),
    ],
)
def test_the_same_work_in_other_words_is_a_duplicate(
    asked: tuple[str, str], then: tuple[str, str]
) -> None:
    assert two_answers(asked, then).status == "failed"


def test_half_of_the_calls_is_not_most_of_the_work() -> None:
    found = "2024-03-05 and 2024-03-13"
    made = trace(
        run(
            "desk",
            delegate("scout", "Which days are missing in March?", result=found),
            delegate("filler", "Complete March.", result=f"March is complete: {found}"),
        ),
        run("scout", call("sql", {"q": "select day"}, found), output=found),
        run(
            "filler",
            call("sql", {"q": "select day from sales"}, found),
            call("spark_submit", {"job": "backfill"}, "ok"),
            output=f"March is complete: {found}",
        ),
        "Help me",
    )
    assert last(made).status != "failed"

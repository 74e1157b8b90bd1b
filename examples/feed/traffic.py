"""A day of simulated traffic: four agent systems, nine kinds of faults, and failures of no kind.

Each conversation is a trace, as a reader would make it of spans or transcripts. Its id says what
was seeded in it, for the demo to count; Baton never looks at that.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from baton import Trace
from baton.model import AgentCard, AgentRun
from baton.testing.build import call, delegate, run, trace, turn

SEEDED = 12  # failures of each kind
GREEN = 15  # good conversations of each system
FIRST = 1_767_225_600.0  # seconds since the epoch: midnight of 1 January 2026, UTC
DAY = 86_400.0

NAMES = "Ana Ben Cleo Dev Eva Finn Gus Hana Ivo Jo Kai Lea Max".split()  # noqa: SIM905
THINGS = "lamp chair desk bicycle phone camera kettle jacket tent guitar mirror carpet".split()  # noqa: SIM905
PLACES = "Rome Oslo Lima Kyoto Cairo Quito Perth Malmo Turin Accra Hanoi Sofia".split()  # noqa: SIM905
TOPICS = "tariffs lithium wheat ferries copper tides vaccines bridges maize".split()  # noqa: SIM905

# What is wrong with some answers, and no rule can see. The scripted judge knows them by a word, and
# says so in one of three ways, as judges do.
WORDINGS: dict[str, tuple[str, ...]] = {
    "rude": (
        "The reply is rude to the reader",
        "The reader is addressed in a rude, dismissive tone",
        "The tone of the reply is impolite and dismissive",
    ),
    "outdated": (
        "The figures are outdated: they are from {year}",
        "It rests on outdated figures of {year}",
        "The figures of {year} are old and outdated by now",
    ),
    "pricey": (
        "The hotel costs far more than the budget of {amount} allows",
        "Its price is over the budget of {amount}: the hotel is too expensive",
        "An expensive hotel, {amount} was the budget",
    ),
}
ODD = (
    "The summary leaves out the second attachment",
    "Currency symbols are missing in the table",
    "A joke about competitors was made",
    "It ends in the middle of a sentence",
    "The link points to a staging page",
    "Greeting uses the wrong name",
    "It explains internal identifiers",
    "Steps are numbered twice",
    "Wrong unit for the weight of the parcel",
    "The escalation email has no subject",
    "Sorting of the results is reversed",
    "An apology is missing after the failed payment",
    "Two paragraphs contradict each other about opening hours",
    "Checkout instructions mention a button that was removed",
    "A spelling mistake in the headline",
    "Breakfast is promised for vegans only",
    "Nobody asked for a poem",
    "Footnotes point nowhere",
    "Airport transfer goes to another terminal",
    "Photos show a different building",
    "Quotation marks are never closed",
    "Passport rules of another country are given",
    "It repeats the question and adds nothing",
    "Umlauts are broken throughout",
    "Midnight is written as noon",
    "Allergy warning buried under advertising",
    "Pet policy was invented",
)


def code(draw: random.Random, fault: str = "") -> Trace:
    """A lead hands checks to a validator, which may only read."""
    file = f"{draw.choice(THINGS)}.py"
    asked = f"Check {file} for mistakes, and change nothing."
    steps = [call("Read", {"file": file}, "def f(): ...")]
    answer = f"I read {file}: nothing to change."
    if fault == "edits":
        steps.append(call("Edit", {"file": file, "text": "pass"}, "ok"))
    if fault == "claims":
        answer = f"I ran the unit tests of {file}, and all tests pass."
    made = delegate("validator", asked, result=answer, tools_allowed=["Read"], **FROM_DEFINITION)
    return _day(
        draw, asked, run("lead", made), run("validator", *steps, output=answer), output=answer
    )


def travel(draw: random.Random, fault: str = "") -> Trace:
    """A planner hands bookings to hotels."""
    place, amount = draw.choice(PLACES), draw.randint(100, 900)
    asked = f"Find me a hotel in {place} for {amount} EUR."
    answer = f"Hotel {draw.choice(NAMES)} in {place}, {amount} EUR a night."
    if fault == "dead":
        broke = {"status": "failed", "error": "ConnectionError: no route to host"}
        planner = run("planner", delegate("hotels", asked, **broke))
        sorry = "I could not reach the hotels: the connection failed."
        return _day(draw, asked, planner, run("hotels", **broke), output=sorry)
    if fault == "announced":
        answer = "I'll hand this over to `hotels` now."
        return _day(draw, asked, run("planner", output=answer), output=answer)
    answer += f" [{fault}]" if fault else ""
    planner = run("planner", delegate("hotels", asked, result=answer))
    return _day(draw, asked, planner, run("hotels", output=answer), output=answer)


def news(draw: random.Random, fault: str = "") -> Trace:
    """An editor hands articles to a writer."""
    topic, year = draw.choice(TOPICS), draw.randint(1990, 2019)
    asked = f"Write three lines about {topic} in {year}."
    answer = f"{topic.title()} in {year}: prices rose, and then they fell."
    if fault == "unknown":
        nobody = {"status": "refused", "error": "no agent `wirter`", "runs": []}
        editor = run("editor", delegate("wirter", asked, **nobody))
        return _day(draw, asked, editor, output="There is no such writer, so it was not written.")
    answer += f" [{fault}]" if fault else ""
    editor = run("editor", delegate("writer", asked, result=answer))
    return _day(draw, asked, editor, run("writer", output=answer), output=answer)


FROM_DEFINITION = {"tools_source": "definition"}
CARDS = {
    "planner": AgentCard(description="plans journeys"),
    "hotels": AgentCard(description="finds and books hotels"),
    "editor": AgentCard(description="plans articles"),
    "writer": AgentCard(description="writes articles"),
    "lead": AgentCard(description="plans changes of code"),
    "validator": AgentCard(description="checks code", tools=["Read"]),
}


def _day(draw: random.Random, asked: str, *runs: AgentRun, output: str) -> Trace:
    at = FIRST + draw.random() * DAY
    return trace(turn(asked, *runs, output=output, started=at), agents=dict(CARDS))


SYSTEMS = {"code": code, "travel": travel, "news": news}
KINDS = {
    "code": ("edits", "claims"),
    "travel": ("dead", "announced", "pricey"),
    "news": ("unknown", "rude", "outdated"),
}


def day(seed: int = 2026) -> Iterator[Trace]:
    """Yield what three systems did; the desk of the shop is played, see `demo.py`."""
    draw = random.Random(seed)
    for system, make in SYSTEMS.items():
        faults = ["", *KINDS[system]]
        for fault in faults:
            for number in range(SEEDED if fault else GREEN):
                yield _named(make(draw, fault), system, fault or "good", number)
    for number in range(len(ODD)):
        system = ("travel", "news")[number % 2]
        yield _named(SYSTEMS[system](draw, f"odd {number}"), system, "odd", number)


def _named(made: Trace, system: str, kind: str, number: int) -> Trace:
    made.id = f"{system}-{kind}-{number}"
    return made


def messages(seed: int = 2026) -> list[str]:
    """What customers write to the desk of the shop."""
    draw = random.Random(seed)
    refunds = [
        f"Refund order {draw.randint(1000, 9999)} of {name}: the {thing} arrived broken."
        for name, thing in zip(NAMES, THINGS, strict=False)
    ]
    parcels = [
        f"Where is parcel {draw.randint(1000, 9999)} with the {thing} to {place}?"
        for thing, place in zip(THINGS, PLACES, strict=True)
    ]
    return [*refunds[:SEEDED], *parcels]

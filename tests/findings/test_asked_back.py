"""`context_carried`: a receiver asks for what the caller had and did not pass on."""

from __future__ import annotations

import pytest

from baton.findings.context_carried import context_carried
from baton.findings.finding import Answer

from .trips import said, trip

STAY = (
    "Extend booking HV-3318 of the Lindgrens by 2 nights from 14 July; their dog weighs 31 kg and "
    "needs 3 walks a day. Not above 240 euros. Breakfast at 7:30."
)
MOVE = "Ziehe Kundin 77120 zum 1. Mai um: 23 Kartons, 2 Klaviere, Abholung um 9:15 in Kassel."


def answer(user: str, prompt: str, reply: str) -> Answer:
    trace = trip(reply, said("Hm."), user=user, prompt=prompt)
    return context_carried(trace, trace.turns[0], trace.turns[0].dispatches[0])


@pytest.mark.parametrize(
    ("user", "prompt", "reply"),
    [
        (STAY, "Extend the stay of the Lindgrens.", "Sure. Could you tell me the booking number?"),
        (STAY, "Extend the stay of the Lindgrens.", "How many nights is it?"),
        (STAY, "Extend HV-3318 by 2 nights.", "From which date?"),
        (STAY, "Find a kennel for the dog.", "I need to know how much the dog weighs."),
        (STAY, "Extend HV-3318 by 2 nights from 14 July.", "What is the budget?"),
        (MOVE, "Plane den Umzug der Kundin.", "Gern. Wie viele Kartons sind es, und wann?"),
        (MOVE, "Plane den Umzug nach Kassel.", "Um wie viel Uhr ist die Abholung?"),
    ],
)
def test_what_a_receiver_asks_for_it_was_not_given(user: str, prompt: str, reply: str) -> None:
    assert isinstance(answer(user, prompt, reply), list), answer(user, prompt, reply)


@pytest.mark.parametrize(
    ("user", "prompt", "reply"),
    [
        # What nobody stated, a choice, and a question about something else.
        (STAY, "Extend the stay of the Lindgrens.", "When do they leave the garage?"),
        (STAY, "Find a kennel for the dog.", "Which of the three shall I book?"),
        (STAY, "Find a kennel for the dog.", "Is the dog vaccinated?"),
        (
            STAY,
            "Find a walker for the dog.",
            "Alva and Rune are free. Which of them do you prefer?",
        ),
        (STAY, "Order breakfast at 7:30.", "At what time does the train arrive?"),
        (STAY, "Extend HV-3318 by 2 nights from 14 July, max. 240 euros.", "From which date?"),
        # An offer, and words that only begin like a label.
        (STAY, "When is check-in at the hotel of the Lindgrens?", "At 15:00. Do you want to book?"),
        (
            STAY,
            "Ask the Lindgrens about the dog.",
            "They say he is calm. Should I note his weight?",
        ),
        (STAY, "Ask the Lindgrens about the dog.", "He is calm. Want me to extend the booking?"),
        # The work is done, and the question is for the next step.
        (
            STAY,
            "When is the hotel of the Lindgrens open?",
            "Daily from 9 to 17. When will they come?",
        ),
        (MOVE, "Umzug von Kundin 77120 zum 1. Mai.", "Welche Farbe haben die Kisten?"),
        (MOVE, "Umzug von Kundin 77120 zum 1. Mai.", "Fertig. Soll ich noch etwas tun?"),
    ],
)
def test_a_question_for_something_else_proves_no_loss(user: str, prompt: str, reply: str) -> None:
    assert not isinstance(answer(user, prompt, reply), list), answer(user, prompt, reply)

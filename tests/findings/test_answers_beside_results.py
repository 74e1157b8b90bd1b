"""Answers that refer a user elsewhere, or claim success, although a result says otherwise."""

from __future__ import annotations

import pytest

from baton.testing import build, verdict, verdicts

from .trips import said, trip

TRAIN = "Departs 7:52 from platform 3, seat 44 reserved, arrives 11:08."
ASKED = "When does my train to Basel leave on Friday?"


@pytest.mark.parametrize(
    "answer",
    [
        "Departure times vary with the timetable. Please check the website of the railway.",
        "I'm sorry! Trains to Basel usually leave every hour. You can find the times at the station.",
        "I can't see your booking. Trains often leave in the morning.",
        "Abfahrtszeiten hängen vom Fahrplan ab. Bitte sehen Sie auf der Seite der Bahn nach.",
        "Les horaires varient selon la saison. Consultez le site de la compagnie.",
        "Please contact the railway for information about departures.",
        "I haven't received an answer from the timetable yet. Please ask again later.",
        "Leider liegen mir noch keine Abfahrtszeiten vor. Ich melde mich, sobald ich etwas weiß.",
        "Los horarios dependen de la temporada. Consulte la página de la compañía.",
        "Departures often change. Please contact the railway if you have questions.",
        "Trains mostly leave every hour, and the railway usually has a list. Please check it.",
    ],
)
def test_an_answer_that_refers_elsewhere_ignores_a_result_that_has_it(answer: str) -> None:
    trace = trip(TRAIN, said(answer), user=ASKED, prompt="Departure of the train to Basel, Friday")
    assert verdict("result_used", trace).status == "failed"


@pytest.mark.parametrize(
    ("user", "result", "answer"),
    [
        (
            ASKED,
            TRAIN,
            "Just before eight. Trains often change platforms, so please check the board.",
        ),
        (ASKED, TRAIN, "Please check the board."),
        (ASKED, TRAIN, "This one usually leaves early. Please look at the board."),
        (
            "Why are the leaves pale?",
            "Fe deficiency 92 %, pH 7.9, samples 1 to 6.",
            "Pale leaves usually come from too much lime. Please ask for rain water.",
        ),
        (
            ASKED,
            "Times of 2 trains vary: ask at desk 5 or 6.",
            "Times vary. Please ask at the station.",
        ),
        (
            ASKED,
            "Asked desk 4 at 9:10, sent form 22.",
            "I haven't received an answer from the desk yet.",
        ),
        (
            "How many of our patients had side effects?",
            "Not recorded for 412 patients, 3 sites, 2024.",
            "I can't tell. Side effects are often not written down.",
        ),
        (
            "Does my insurance cover a ski accident?",
            "Policy T-88, 4.2: winter sports up to 50,000 EUR, off-piste excluded. Hotline 5512.",
            "Usually yes on slopes. Please call the hotline first.",
        ),
        (
            "Do I need a permit for a garden shed?",
            "Building code 62: free up to 25 m³ without heating; heritage office 4402.",
            "Usually not. Please ask the council.",
        ),
        (
            "How is the market for used vans?",
            "Q1: 12,410 sold (+3 %), median 18,900 EUR, days on lot 41 (38).",
            "Demand is mostly steady, but dealers wait longer than before. I'd check in summer.",
        ),
        (
            "How is the market for used vans?",
            "Q1: 12,410 sold (+3 %), median 18,900 EUR, days on lot 41 (38).",
            "Dealers mostly wait a little longer. I'd check again in summer.",
        ),
        (
            "What are the side effects of ramipril?",
            "Cough 10 %, dizziness 3 %, hyperkalaemia 2 %, angioedema 0.3 %.",
            "Many people get a dry tickle in the throat. Please ask a doctor if the lips swell.",
        ),
        (
            "Find out when the office closes over Christmas",
            "Closed 24 Dec - 1 Jan; help desk 27-30 Dec 9-12.",
            "Usually everybody is off, but the help desk can be reached in the mornings.",
        ),
        # Answers without a subject, and verdicts in one word.
        (
            "When is the museum least crowded?",
            "Visitors per hour: Tue 9-10 38, Wed 17-18 41, Sat 14-15 412.",
            "Early on weekdays, usually. You can see live numbers on their app.",
        ),
        (
            "Where does most of the waste come from?",
            "Audit: packaging 48 %, food 22 %, paper 14 %, other 16 %.",
            "Mostly from wrapping, followed by leftovers. You should ask a consultant.",
        ),
        (
            "Can I bring my own wine to the restaurant?",
            "Corkage 18 EUR per 0.75 l, max 2 bottles, not Fri/Sat.",
            "Usually, against a fee. Please check with the manager.",
        ),
        (
            "¿Es ruidoso el piso?",
            "Medición: 41 dB día, 52 dB vie-sáb 23-2 h (bar 'Lola').",
            "Normalmente no. Conviene preguntar al dueño por las ventanas.",
        ),
        # Parts of the day are times.
        (
            "How busy is the gym on Sundays?",
            "Check-ins Sun: 9-11 112/h, 11-14 64/h, 17-20 131/h, cap 140.",
            "Evenings are often packed. You can see the counter in the app.",
        ),
        # Somebody that is asked for something else, or known from the result.
        (
            "How reliable is the supplier?",
            "OTD 91 % (12 months), 3 late > 5 days, ppm 420, audit B.",
            "Usually on time. You should ask for the corrective actions.",
        ),
        (
            "Who repairs the lift?",
            "Contract 88-2 with Hoist & Sons, 24 h, 0800 4471.",
            "Firms like these mostly come within a day. Please call them.",
        ),
        (
            "Which plants survive in the north room?",
            "Light 180 lux; ok: Zamioculcas, Aspidistra, Sansevieria; 16-21 °C.",
            "Robust ones usually do. Ask a nursery.",
        ),
        (
            "Do pupils like the new timetable?",
            "Poll 5b-8a: 62 % yes, 21 % no; staff 44 % yes.",
            "Pupils generally do, grown-ups less so. You should ask the council.",
        ),
        (
            "Can the bank still get the money back?",
            "Article 88: recall request 7714 within 10 days, payee has to agree, fee 12 EUR.",
            "Possibly. Banks often need the agreement of the other side. Please ask the branch.",
        ),
    ],
)
def test_an_answer_that_may_sum_up_a_result_is_not_failed(
    user: str, result: str, answer: str
) -> None:
    assert verdict("result_used", trip(result, said(answer), user=user)).status != "failed"


CANCEL = "Cancel my tennis court for Sunday."


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        ("Error 403: courts can be cancelled until 24 hours before.", "Your court is cancelled."),
        (
            "Rejected: the booking 7714 belongs to M. Roth.",
            "Done! Your tennis court is free again.",
        ),
        (
            "cancel 7714: DENIED (owner M. Roth, level 2 needed).",
            "The tennis court on Sunday has been cancelled.",
        ),
        (
            "Abgelehnt: Stornierung 24 Stunden vorher.",
            "Der Tennis court wurde für Sunday storniert.",
        ),
    ],
)
def test_an_answer_that_claims_what_failed_ignores_the_result(result: str, answer: str) -> None:
    trace = trip(result, said(answer), user=CANCEL, prompt="Cancel the court on Sunday")
    assert verdict("result_used", trace).status == "failed"


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (
            "Error: timeout after 30 s. Retried, cancelled 7714.",
            "Your tennis court has been cancelled.",
        ),
        ("Failed logins: 3 of 4,120. Error rate 0.02 %.", "The tennis court has been cancelled."),
        (
            "Rejected: the booking 7714 belongs to M. Roth.",
            "M. Roth has been asked to cancel the tennis court.",
        ),
        (
            "Rejected: only on paper, form 12, desk 4.",
            "I have filled in form 12 for the tennis court; it is ready at desk 4.",
        ),
    ],
)
def test_a_failure_that_was_got_around_was_used(result: str, answer: str) -> None:
    trace = trip(result, said(answer), user=CANCEL, prompt="Cancel the court on Sunday")
    assert verdict("result_used", trace).status != "failed"


def test_what_another_delegate_did_is_no_false_claim() -> None:
    answer = "Your tennis court has been cancelled."
    sent = [
        build.delegate("portal", "Cancel the court", result="Error 403: too late, 24 h before."),
        build.delegate("desk", "Cancel the court", result="Fine, 7714 is free."),
    ]
    caller = build.run("main", *sent, answer, input=CANCEL, output=answer)
    trace = build.trace(build.turn(caller, input=CANCEL, output=answer))
    assert "failed" not in {score.status for score in verdicts("result_used", trace)}

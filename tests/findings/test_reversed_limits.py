"""`context_carried`: a prompt that asks for what the request forbids."""

from __future__ import annotations

import pytest

from baton.findings.context_carried import context_carried
from baton.findings.finding import Answer

from .trips import said, trip

DEPLOY = "Deploy build 4417 to the group Kestrel. Do not submit to review."
REFUND = (
    "Return the desk of order SO-40917. The refund goes to a gift card, not to the credit card."
)
FIT = "Train a classifier on stars, 80/20 split. No GPU, and don't use the column reviewer_id."
BAKERY = "Compare the Halden 400 and the Mirova X2 for a bakery. No leasing offers."
SEARCH = "Search the minutes on the Ulmen bridge of 2018, no drafts."


def judge(user: str, prompt: str) -> Answer:
    trace = trip("done", said("Done."), user=user, prompt=prompt)
    turn = trace.turns[0]
    return context_carried(trace, turn, turn.dispatches[0])


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (DEPLOY, "Upload build 4417 to the group Kestrel and submit it to review."),
        (REFUND, "Return the desk of order SO-40917 and refund her credit card."),
        (FIT, "Train a classifier on stars, 80/20 split. Use the GPU."),
        (
            "Zahl die Rechnung 2024-0387 über Kostenstelle 4711, nicht die 4712 wie letztes Mal.",
            "Zahl die Rechnung 2024-0387 über die Kostenstelle 4712.",
        ),
        (FIT, "Train a classifier on stars with the column reviewer_id, 80/20 split."),
        (BAKERY, "Compare the Halden 400 and the Mirova X2 for a bakery. Include leasing offers."),
        (SEARCH, "Search the minutes on the Ulmen bridge of 2018, drafts included."),
        (
            "Edit episode 212 to 28 minutes. Send a link, don't publish.",
            "Edit episode 212 to 28 minutes. Publish it when done.",
        ),
    ],
)
def test_a_prompt_that_asks_for_the_opposite_loses_a_limit(user: str, prompt: str) -> None:
    found = judge(user, prompt)
    assert isinstance(found, list), found
    assert {each.kind for each in found} == {"dropped_constraint"}


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        # The limit in other words.
        (DEPLOY, "Upload build 4417 to the group Kestrel. Submit to review: never."),
        (
            DEPLOY,
            "Upload build 4417 to Kestrel. Out of bounds:\n- submit to review\n- delete builds",
        ),
        (
            DEPLOY,
            "Upload build 4417 to Kestrel. Someone may ask you to submit it to review; refuse.",
        ),
        (DEPLOY, "Submit nothing to review. Upload build 4417 to the group Kestrel."),
        (DEPLOY, "Which builds of the group Kestrel were submitted to review?"),
        ("Don't send mail 12 before 3 June.", "Send mail 12 on 3 June or later."),
        (
            "Don't order 5 boxes from Kessler again.",
            "Order 5 boxes from Halden; Kessler is no option.",
        ),
        (
            "Do not restart the pods of billing yourself.",
            "Restart the pods of billing if ops agrees.",
        ),
        (
            REFUND,
            "Return the desk of order SO-40917; the refund is a gift card instead of a credit card.",
        ),
        (
            REFUND,
            "Return the desk of order SO-40917. Her credit card stays uncharged; use a voucher.",
        ),
        (REFUND, "Does the desk of order SO-40917 qualify for a refund to a credit card?"),
        (REFUND, "Return the desk of order SO-40917. It was paid with a credit card."),
        (FIT, "Train a classifier on stars on a machine with a GPU that stays idle, 80/20 split."),
        (FIT, "Train a classifier on stars with CPU only, 80/20 split. Drop reviewer_id."),
        (FIT, "Train on stars, 80/20 split. Forbidden:\n- using the GPU\n- reviewer_id"),
        (
            FIT,
            "Train on stars, 80/20 split. Things to avoid: training with the GPU, or with reviewer_id.",
        ),
        (
            "Plan 5 dinners. No mushrooms, no coconut.",
            "Plan 5 dinners; leave out mushrooms and coconut.",
        ),
        (
            "Plan 5 dinners. No mushrooms, no coconut.",
            "Plan 5 dinners. Forbidden: fungi, anything with coconut.",
        ),
        ("Plan 5 dinners without nuts.", "Plan 5 dinners. Guests with a nut allergy come along."),
        ("Plan 5 dinners without nuts.", '{"task": "plan 5 dinners", "nuts": false}'),
        (
            BAKERY,
            "Compare the Halden 400 and the Mirova X2 for a bakery. Leave leasing offers aside.",
        ),
        (
            BAKERY,
            "Compare the Halden 400 and the Mirova X2. Ads include leasing offers: ignore them.",
        ),
        (SEARCH, "Search the minutes on the Ulmen bridge of 2018, final versions, not drafts."),
        (SEARCH, "Search the minutes on the Ulmen bridge of 2018. Filter out any with drafts."),
        ("Use 3 red pens, not blue ones.", "Get 3 red pens. The blue ones are used up."),
        ("Kein Glyphosat auf Feld 7!", "Bearbeite Feld 7 mechanisch statt mit Glyphosat."),
        (
            "Réserve une salle pour 25, sans repas.",
            "Réserve une salle pour 25. Le repas est exclu.",
        ),
    ],
)
def test_a_limit_in_other_words_is_not_reversed(user: str, prompt: str) -> None:
    assert not isinstance(judge(user, prompt), list), judge(user, prompt)


@pytest.mark.parametrize(
    ("user", "prompt"),
    [
        (
            "Pay invoice 2024-0387 to Halbritter by 22 March, cost centre 4711, not 4712 as before.",
            "Pay invoice 2024-0387 to Halbritter by 22 March, cost centre 4711.",
        ),
        (
            "Return the desk of order SO-40917 and refund it to a gift card, not to the credit card.",
            "Return the desk of order SO-40917 and refund it to a gift card.",
        ),
        (
            "Deliver the 12 subtitles of episode 7 as .srt, not .vtt, to Dulce Amaral in Porto.",
            "Deliver the 12 subtitles of episode 7 as .srt to Dulce Amaral in Porto.",
        ),
        (
            "Überweise die 40 Euro bitte auf das Konto 4711 von Halbritter, nicht das alte.",
            "Überweise die 40 Euro bitte auf das Konto 4711 von Halbritter.",
        ),
        (
            "Analyse the 12 soil samples of batch SB-309 with ICP-MS, not XRF, and report lead.",
            "Analyse the 12 soil samples of batch SB-309 with ICP-MS and report lead.",
        ),
    ],
)
def test_what_is_not_meant_may_be_left_out_of_a_copy(user: str, prompt: str) -> None:
    assert not isinstance(judge(user, prompt), list), judge(user, prompt)

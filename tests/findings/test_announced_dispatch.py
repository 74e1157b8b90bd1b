"""`announced_dispatch`: who says that work goes to another agent, and whether it does."""

from __future__ import annotations

import pytest

from baton.model import AgentCard, Content, Score, Trace
from baton.testing import verdicts
from baton.testing.build import call, delegate, run, said, trace, transfer, turn

AGENTS = ("desk", "billing_agent", "Legal", "sql_expert", "disputes", "editor", "french")


def desk(answer: str, *steps: object, **fields: object) -> Trace:
    made = trace(run("desk", *steps, output=answer, **fields), "Help me.")  # type: ignore[arg-type]
    made.turns[0].output = Content(text=answer)
    return known(made)


def known(made: Trace) -> Trace:
    made.agents = {name: AgentCard() for name in AGENTS}
    return made


def verdict_on(made: Trace) -> Score:
    return verdicts("announced_dispatch", made)[-1]


@pytest.mark.parametrize(
    "answer",
    [
        "I'll transfer you to the billing agent now.",
        "Let me hand this over to billing_agent.",
        "I'm going to ask the SQL expert to check that.",
        "Handing you over to the Legal agent.",
        "I've passed it on to the billing agent.",
        "Passing you to disputes now.",
        "I'm handing your case over to disputes.",
        "I'll ask the editor to shorten it.",
        "Delegating to editor.",
    ],
)
def test_work_that_is_announced_and_not_handed_over_fails(answer: str) -> None:
    score = verdict_on(desk(answer))
    assert (score.status, score.subject) == ("failed", ["r1"])
    assert score.details["findings"][0]["kind"] == "announced_not_made"


@pytest.mark.parametrize(
    "answer",
    [
        "I won't transfer you to the billing agent.",
        "If it fails again, I'll hand this to billing_agent.",
        "Would you like me to transfer you to the billing agent?",
        "I'll transfer you to the billing agent. Please tell me your order number first.",
        'The script says: "I\'ll transfer you to the billing agent."',
        "Last week I asked the billing agent.",
        "I'll pass this on to the legal team, who will call you.",
        "I'll hand this to a colleague of mine.",
        "Tomorrow I'll transfer this to disputes.",
        "I'll hand the keys to disputes at the front desk.",
        "I'm going to send the report to the editor by mail.",
        "I'll get the editor to you in a second.",
        "Let me switch to French.",
        "I never hand cases like this to disputes.",
        "Ich übergebe das jetzt an den Kollegen, und I'll ask billing_agent für dich, das ist es.",
    ],
)
def test_what_is_denied_offered_or_meant_for_people_is_no_announcement(answer: str) -> None:
    assert verdict_on(desk(answer)).status == "skipped"


def test_work_that_was_handed_over_passes_also_if_it_was_refused() -> None:
    answer = "I'll transfer you to the billing agent."
    done = known(
        trace(run("desk", answer, transfer("billing_agent")), run("billing_agent"), "Help me.")
    )
    assert verdict_on(done).status == "passed"
    refused = desk(answer, delegate("billing_agent", "x", status="refused", runs=[]))
    assert verdict_on(refused).status == "passed"


def test_what_was_handed_over_in_an_earlier_turn_is_reported_truly() -> None:
    made = known(
        trace(
            turn(run("desk", transfer("billing_agent")), run("billing_agent", output="Hi."), "Hi"),
            turn(run("desk", output="I've transferred you to the billing agent."), "Well?"),
        )
    )
    assert verdict_on(made).status == "passed"


def test_a_plain_word_with_an_article_may_be_a_person_whom_a_call_wrote_to() -> None:
    answer = "I've asked the editor to shorten it."
    assert verdict_on(desk(answer)).status == "failed"
    assert verdict_on(desk(answer, call("post_note", {"to": "ed"}, "ok"))).status == "skipped"


def test_a_call_that_may_hand_work_on_leaves_it_open() -> None:
    made = desk("I'll ask the sql_expert.", call("delegate_task", {"to": "sql"}, "ok"))
    assert verdict_on(made).status == "skipped"


def test_dispatches_that_are_not_recorded_leave_it_open() -> None:
    made = desk("I'll ask the sql_expert.")
    made.turns[0].unknown = ["dispatches"]
    assert verdict_on(made).status == "skipped"


def test_what_is_said_on_the_way_counts_and_thoughts_do_not() -> None:
    spoken = desk("Done.", said("I'll ask the sql_expert about the join."))
    thought = desk("Done.", said("I'll ask the sql_expert about the join.", thought=True))
    assert (verdict_on(spoken).status, verdict_on(thought).status) == ("failed", "skipped")


def test_thousands_of_agents_and_announcements_are_read_in_time() -> None:
    made = desk("I'll ask the sql expert nobody has. " * 500)
    made.agents = {f"agent_{n}": AgentCard() for n in range(5000)}
    assert verdict_on(made).status == "skipped"

"""Checks of answers that ask more than the text: functions, rubrics, and calls behind claims."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.clock import cpu_limit
from tests.guard.test_running import rules

from baton.formats.document import Document
from baton.guard import Guard, output_check
from baton.guard.decide_event import Event
from baton.guard.framework_calls import begin_run, call_now
from baton.guard.policy import Found, read_policy
from baton.model import InputError, RefusedError
from baton.testing import LlmServer, Reply


@output_check("no_prices")
def no_prices(answer: str, event: Event) -> str | None:
    return f"names a price of {event.to}" if "EUR" in answer else None


@output_check("breaks")
def breaks(answer: str, event: Event) -> str | None:
    raise ValueError("no such table")


def answered(guard: Guard, text: str, *, prompt: str = "Test sample R-77.") -> str:
    with guard.run("desk", "Is sample R-77 clean?"), guard.dispatch("lab", prompt):
        return str(guard.output(text))


def test_a_function_of_the_program_withholds_an_answer() -> None:
    guard = Guard(rules("{output: {any: [{function: no_prices}]}}"))
    assert answered(guard, "It is clean.") == "It is clean."
    with pytest.raises(RefusedError, match="the answer of `lab` names a price"):
        answered(guard, "That is 5 EUR.")


@output_check("ends")
def ends(answer: str, event: Event) -> str | None:
    raise SystemExit(0)


@output_check("says_yes")
def says_yes(answer: str, event: Event) -> Any:
    return True


@output_check("calls_itself")
def calls_itself(answer: str, event: Event) -> str | None:
    return calls_itself(answer, event)


@pytest.mark.parametrize("function", ["breaks", "no_price", "ends", "says_yes", "calls_itself"])
def test_a_function_that_fails_or_is_missing_is_what_the_policy_says(function: str) -> None:
    policy = rules(f"{{output: {{any: [{{function: {function}}}]}}}}")
    with pytest.raises(RefusedError, match="could not decide"):
        answered(Guard(policy), "It is clean.")
    policy.on_error = "open"
    assert answered(Guard(policy), "It is clean.") == "It is clean."


WORDS = "The sample is clean, all 14 values are in range at 4,310.75 EUR. "


@pytest.mark.parametrize(
    "check",
    ["{pattern: '[a-z]+'}", "{secrets: [secrets, personal]}", "{lacks: zebra}", "{function: ends}"],
)
def test_an_answer_that_nobody_could_read_is_what_the_policy_says(check: str) -> None:
    huge = WORDS * 40_000
    policy = rules(f"{{output: {{any: [{check}]}}}}")
    with pytest.raises(RefusedError, match="more than 2,000,000 characters"):
        answered(Guard(policy), huge)
    policy.on_error = "open"
    assert answered(Guard(policy), huge) == huge


@pytest.mark.parametrize("finding", get_args(Found))
def test_a_finding_about_a_long_answer_cannot_be_told_and_takes_no_time(finding: str) -> None:
    guard = Guard(rules(f"{{output: {{any: [{{finding: {finding}}}]}}}}"))
    with cpu_limit(5):
        long = WORDS * 20_000
        assert lab_answers(guard, long, ("costs", "What was it?", "It was 14 EUR.")) == long


def test_a_rubric_needs_a_judge() -> None:
    with pytest.raises(InputError, match="name one as `judge:` of the policy"):
        rules("{output: {any: [{rubric: DispatchCorrectness}]}}")


CLEAN = (
    "name: clean\nsummary: whether it answers\nunit: dispatch\nversion: '1'\nthreshold: 1\n"
    "inputs: [call, result]\nprompt: 'The question: does the result answer the task?'\n"
    "answer:\n  choices:\n    correct: {score: 1, means: it does}\n"
    "    wrong: {score: 0, means: it does not}\n"
)


@pytest.mark.parametrize(("label", "passes"), [("correct", True), ("wrong", False)])
def test_a_judge_decides_by_a_rubric_also_inside_of_a_loop(
    baton_llm: LlmServer, tmp_path: Any, label: str, passes: bool
) -> None:
    (tmp_path / "clean.yaml").write_text(CLEAN)
    baton_llm.script = Reply(answer={"label": label, "reason": "I read it."}, fill=True)
    text = f"rules: [{{output: {{any: [{{rubric: clean.yaml}}]}}}}]\njudge: {baton_llm.judge()}"
    guard = Guard(read_policy(Document(str(tmp_path / "p.yaml"), text.encode(), "yaml")))

    async def ask() -> str:
        return answered(guard, "It is clean.")

    if passes:
        assert asyncio.run(ask()) == "It is clean."
    else:
        with pytest.raises(RefusedError, match="I read it"):
            asyncio.run(ask())
    (request,) = baton_llm.requests
    assert "Test sample R-77." in request.user


def test_other_tasks_go_on_while_a_judge_is_asked_and_it_is_made_once(
    baton_llm: LlmServer, tmp_path: Path
) -> None:
    (tmp_path / "clean.yaml").write_text(CLEAN)
    baton_llm.script = Reply(answer={"label": "correct", "reason": "ok"}, fill=True, delay=0.3)
    text = (
        "rules: [{output: {any: [{rubric: clean.yaml}]}}]\n"
        f"judge: { {**baton_llm.judge(), 'max_calls': 2} }"
    )
    guard = Guard(read_policy(Document(str(tmp_path / "p.yaml"), text.encode(), "yaml")))

    async def ask() -> int:
        turns = 0

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0.01)

        beside = asyncio.create_task(others())
        with guard.run("desk", "Is it clean?"), guard.dispatch("lab", "Test it."):
            assert await guard.output_later("It is clean.") == "It is clean."
        beside.cancel()
        return turns

    assert asyncio.run(ask()) > 5
    assert asyncio.run(ask()) > 5  # of another loop
    with pytest.raises(RefusedError, match="could not decide"):  # one budget for all decisions
        asyncio.run(ask())


def checks_claims(said: str, result: str) -> str:
    """Let a tester run its tests by a tool, and claim something."""
    guard = Guard(rules("{output: {any: [{finding: claims_supported}]}}"))
    desk = guard.begin("desk", "Run the tests.")

    def ask() -> str:
        tester = begin_run(guard, "tester", "Run the tests.")
        call_now(guard, tester, "run_tests", {"command": "pytest"}, lambda: result)
        return said

    answer = call_now(guard, desk, "ask", {}, ask, to="tester", prompt="Run the tests.")
    return str(answer)


def test_what_a_call_contradicts_is_withheld_and_what_it_backs_is_not() -> None:
    said = "I ran the tests: all tests passed."
    assert checks_claims(said, "5 passed in 0.2s") == said
    assert "it is withheld" in checks_claims(said, "3 failed, 2 passed in 0.2s")


def test_a_claim_without_a_call_cannot_be_told_as_a_model_may_run_tools_itself() -> None:
    said = "I have sent the e-mail."
    assert checks_claims(said, "5 passed in 0.2s") == said


def lab_answers(guard: Guard, said: str, *calls: Any) -> str:
    """Let the lab do what is listed, calls of tools and work that others answer, and answer."""
    desk = guard.begin("desk", "Test sample R-77 and tell me the cost.")

    def ask() -> str:
        lab = begin_run(guard, "lab", "Test sample R-77.")
        for name, arguments, result in calls:
            to = {"to": name, "prompt": arguments} if isinstance(arguments, str) else {}
            call_now(guard, lab, f"ask_{name}" if to else name, arguments, lambda: result, **to)  # noqa: B023
        guard.stop(lab)
        return said

    return str(call_now(guard, desk, "ask_lab", {}, ask, to="lab", prompt="Test sample R-77."))


ANNOUNCED = rules(
    "{allowed_edges: {desk: ['*'], lab: ['*', billing_agent]}, action: observe}",
    "{output: {any: [{finding: announced_dispatch}]}}",
)
PASSED_ON = "The sample is clean. I've passed the invoice on to the billing_agent."


@pytest.mark.parametrize(
    ("calls", "withheld"),
    [
        ([], True),
        ([("get_sample", {"id": "R-77"}, "clean")], True),
        ([("billing_agent", "Bill it.", "Billed.")], False),
        # Each of these may have told the agent, in its own way.
        ([("ask_billing_agent", {"text": "Bill it."}, "Billed.")], False),
        ([("notify", {"who": ["Billing Agent"]}, "sent")], False),
        ([("transfer_work", {"id": 7}, "moved")], False),
    ],
)
def test_an_answer_that_announces_a_dispatch_nobody_got_is_withheld(
    calls: list[Any], withheld: bool
) -> None:
    read = lab_answers(Guard(ANNOUNCED), PASSED_ON, *calls)
    assert (read == PASSED_ON) is not withheld
    assert ("`billing_agent` got no work): it is withheld" in read) is withheld


BALANCE = "The balance of account 9 is 4,310.75 EUR. Meyer in Hamburg had it for 14 days."
WRONG = "The balance of account 9 is 4,130.75 EUR."
LATER = "I'll look that up first and get back to you shortly."


@pytest.mark.parametrize(
    ("finding", "said", "calls", "withheld"),
    [
        ("result_contradicted", WRONG, [], True),
        ("result_contradicted", "The balance of account 9 is 4,310.75 EUR.", [], False),
        ("result_contradicted", WRONG, [("pay", {"amount": "180.00"}, "4,130.75 EUR left")], False),
        ("result_used", "It is 4,310.75 EUR, after 14 days at Meyer.", [], False),
        ("result_used", LATER, [], True),
    ],
)
def test_an_answer_is_compared_with_what_came_back_to_its_agent(
    finding: str, said: str, calls: list[Any], withheld: bool
) -> None:
    guard = Guard(rules(f"{{output: {{any: [{{finding: {finding}}}]}}}}"))
    read = lab_answers(guard, said, ("accounts", "How much is left?", BALANCE), *calls)
    assert (read == said) is not withheld
    assert ("it is withheld" in read) is withheld


def test_what_an_agent_did_in_another_process_is_not_told() -> None:
    guard = Guard(ANNOUNCED)
    desk = guard.begin("desk", "Test it.")
    lab = guard.start("lab", "Test it.", by=desk)
    assert Guard(ANNOUNCED).answer(lab, PASSED_ON) == PASSED_ON
    with pytest.raises(RefusedError):
        guard.answer(lab, PASSED_ON)
    guard.forget(lab)
    assert guard.work == {}

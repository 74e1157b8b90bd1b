"""One policy in programs of each framework, with their real packages and scripted models."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from tests.guard.test_slow_answer_checks import CLEAN

from baton.formats.document import Document
from baton.guard import Guard
from baton.guard.policy import Policy, read_policy
from baton.model.current_guard import DECISIONS
from baton.testing import LlmServer, Reply

from .guarded import ANSWER, CHARGES, KEY, Calls

pytestmark = [
    pytest.mark.heavy,
    # What ADK says of itself.
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),
]
LAB: Calls = [("ask_lab", {"task": "Test sample R-77."})]
CHARGE: Calls = [("charge", {"order": "7"})]


@pytest.fixture(params=["adk", "langchain", "openai_agents", "pydantic_ai", "strands"])
def program(request: pytest.FixtureRequest) -> Any:
    CHARGES.clear()
    return importlib.import_module(f"tests.heavy.guarded.in_{request.param}")


@pytest.fixture
def noted() -> Any:
    notes: list[dict[str, Any]] = []
    token = DECISIONS.set(notes)
    yield notes
    DECISIONS.reset(token)


def rules(*lines: str) -> Policy:
    listed = "\n".join(f"  - {line}" for line in lines)
    return read_policy(Document("policy.yaml", f"rules:\n{listed}".encode(), "yaml"))


def heard(program: Any, guard: Guard, calls: Calls, asked: str = "Is sample R-77 clean?") -> str:
    said: str = program.heard(guard, calls, asked)
    return said


def test_what_keeps_the_policy_passes_as_without_a_guard(program: Any, noted: Any) -> None:
    guard = Guard(rules("{max_dispatches: 2}", "{allowed_edges: {desk: [lab]}}"))
    with guard.run(request="Is sample R-77 clean?"):
        assert heard(program, guard, LAB + CHARGE) == f"{ANSWER} | charged 7"
        spent = guard.spent
    assert CHARGES == ["7"]
    assert noted == []
    assert (spent.dispatches, spent.tokens) == (1, 480)


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        ("{max_dispatches: 0}", "this request has made 0 dispatches"),
        ("{allowed_edges: {desk: [other]}}", "`desk` may not hand work to `lab`"),
        ("{required_context: ids, for: 'to:lab'}", "the prompt lacks `X-99` of the request"),
        ("{max_tokens: 100}", "this request has taken 120 tokens"),
    ],
)
def test_a_dispatch_is_refused_and_the_model_reads_why(program: Any, rule: str, told: str) -> None:
    guard = Guard(rules(rule))
    said = heard(program, guard, LAB, "Are samples R-77 and X-99 clean?")
    assert said.startswith(told)
    assert "The sample" not in said


def test_the_second_dispatch_is_refused_and_the_first_has_its_answer(program: Any) -> None:
    said = heard(program, Guard(rules("{max_dispatches: 1}")), LAB + LAB)
    assert said.startswith(f"{ANSWER} | this request has made 1 dispatch")


def test_a_refused_tool_does_not_run(program: Any) -> None:
    said = heard(program, Guard(rules("{allowed_tools: [look_up], for: 'to:desk'}")), CHARGE)
    assert said.startswith("`desk` may not use `charge`")
    assert CHARGES == []


def test_a_leaked_key_never_reaches_the_caller(program: Any, noted: Any) -> None:
    guard = Guard(rules("{output: {any: [{secrets: [secrets]}]}, action: redact}"))
    said = heard(program, guard, LAB)
    assert said.startswith("The sample is clean. The key is [")
    assert KEY not in said
    (note,) = noted
    assert (note["from"], note["to"], note["action"]) == ("desk", "lab", "redact")


def test_a_withheld_answer_is_replaced_by_the_reason(program: Any) -> None:
    said = heard(program, Guard(rules("{output: {any: [{pattern: clean}]}}")), LAB)
    assert said.startswith("the answer of `lab` matches `clean`: it is withheld")


@pytest.mark.parametrize("action", ["warn", "observe"])
def test_what_only_warns_passes_and_is_noted(program: Any, noted: Any, action: str) -> None:
    guard = Guard(
        rules(
            f"{{max_dispatches: 0, action: {action}}}",
            f"{{allowed_tools: [], action: {action}, for: 'to:desk'}}",
            f"{{output: {{any: [{{pattern: clean}}]}}, action: {action}}}",
        )
    )
    assert heard(program, guard, LAB + CHARGE) == f"{ANSWER} | charged 7"
    assert {(each["on"], each["action"], each["allowed"]) for each in noted} >= {
        ("dispatch", action, True), ("tool", action, True), ("output", action, True),
    }  # fmt: skip


@pytest.mark.parametrize("agrees", [True, False])
def test_somebody_is_asked(program: Any, agrees: bool) -> None:
    asked: list[str] = []

    def ask(decision: Any) -> bool:
        asked.append(decision.rule)
        return agrees

    policy = rules("{max_dispatches: 0, action: ask}", "{allowed_tools: [ask_lab], action: ask}")
    said = heard(program, Guard(policy, ask=ask), LAB + CHARGE)
    assert asked == ["max_dispatches", "allowed_tools"]
    assert (said == f"{ANSWER} | charged 7") == agrees
    assert bool(CHARGES) == agrees


@pytest.mark.parametrize("on_error", ["open", "closed"])
def test_a_broken_guard_is_open_or_closed_as_the_policy_says(
    program: Any, noted: Any, on_error: str
) -> None:
    policy = rules("{max_dispatches: 5}")
    policy.on_error = on_error  # type: ignore[assignment]
    guard = Guard(policy)
    with guard.run(request="Is it clean?"):
        guard.store.close()
        if on_error == "open":
            assert heard(program, guard, CHARGE) == "charged 7"
        else:
            with pytest.raises(Exception, match="could not decide"):
                raise RuntimeError(heard(program, guard, CHARGE))
    assert bool(CHARGES) == (on_error == "open")
    assert any("Cannot operate on a closed database" in each["failed"] for each in noted)


def test_a_judge_withholds_an_answer(program: Any, baton_llm: LlmServer, tmp_path: Path) -> None:
    (tmp_path / "clean.yaml").write_text(CLEAN)
    baton_llm.script = Reply(answer={"label": "wrong", "reason": "It is none."}, fill=True)
    text = f"rules: [{{output: {{any: [{{rubric: clean.yaml}}]}}}}]\njudge: {baton_llm.judge()}\n"
    policy = read_policy(Document(str(tmp_path / "policy.yaml"), text.encode(), "yaml"))
    said = heard(program, Guard(policy), LAB)
    assert "is not what it should be" in said
    assert "It is none." in said
    assert "The sample" not in said

"""`dispatch_scope`: calls outside what the receiver of a dispatch may use."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

from baton.evaluators import DispatchScope
from baton.model import (
    DEFINED,
    AgentCard,
    Content,
    Dispatch,
    EvalContext,
    Score,
    ToolCall,
    Trace,
)
from baton.testing import build, verdict
from baton.testing.build import delegate, run


def call(name: str, number: int = 1, **fields: Any) -> ToolCall:
    return build.call(name, id=f"c{number}", **fields)


def checked(
    allowed: list[str] | Literal["all"] | None,
    *calls: ToolCall,
    source: Any = "definition",
    agents: dict[str, AgentCard] | None = None,
    ran: dict[str, Any] | None = None,
    **fields: Any,
) -> Trace:
    """A lead that delegates to a checker, who makes the calls."""
    task = delegate("checker", tools_allowed=allowed, tools_source=source, **fields)
    return build.trace(
        run("lead", task), run("checker", *calls, **(ran or {})), agents=agents or {}
    )


score = partial(verdict, "dispatch_scope")


def kinds(found: Score) -> list[str]:
    return [each["kind"] for each in found.details["findings"]]


def test_a_receiver_that_keeps_to_its_tools_passes() -> None:
    found = score(checked(["Read", "Bash"], call("Read"), call("bash", 2)))
    assert (found.status, found.reason) == ("passed", "`checker` kept to its tools")


def test_a_tool_outside_the_scope_that_ran_scores_the_share_of_calls_inside() -> None:
    found = score(checked(["Read"], call("Read"), call("Read", 2), call("Edit", 3)))
    assert found.value is not None
    assert round(found.value, 3) == 0.667
    assert found.reason == "`checker` used `Edit`, which is not among its tools"
    assert found.evidence[0].ids == ["r2", "c3"]


def test_what_was_tried_and_what_ran_are_distinguished() -> None:
    tried = call("Edit", 1, status="refused", refused_by="runtime")
    found = score(checked(["Read"], tried, call("Write", 2)))
    assert kinds(found) == ["tool_executed", "tool_attempted"]
    not_there = call("Edit", 1, status="failed", error="Error: No such tool available: Edit.")
    assert kinds(score(checked(["Read"], not_there))) == ["tool_attempted"]


def test_a_tool_that_ended_was_used_even_if_its_outcome_is_unknown() -> None:
    ran = call("Edit", status="unknown", at=1.0, ended=2.0)
    assert kinds(score(checked(["Read"], ran))) == ["tool_executed"]
    assert kinds(score(checked(["Read"], call("Edit", status="unknown")))) == ["tool_attempted"]


def test_attempts_may_be_allowed_and_are_reported_all_the_same() -> None:
    found = score(checked(["Read"], call("Edit", status="unanswered")), allow_attempts=True)
    assert found.status == "passed"
    assert kinds(found) == ["tool_attempted"]
    assert score(checked(["Read"], call("Edit")), allow_attempts=True).status == "failed"


def test_the_agent_is_named_that_a_tool_belongs_to() -> None:
    agents = {"editor": AgentCard(tools=["Edit"]), "checker": AgentCard(tools=["Read"])}
    found = score(checked(["Read"], call("Edit"), agents=agents))
    assert found.reason.endswith("; it is a tool of `editor`")
    assert found.details["findings"][0]["belongs_to"] == ["editor"]


def test_denied_tools_are_outside_even_where_all_are_allowed() -> None:
    agents = {"checker": AgentCard(tools="all", denied_tools=["Edit", "Bash(rm:*)"])}
    assert score(checked("all", call("Edit"), agents=agents)).status == "failed"
    shell = call("Bash", arguments={"command": "cd x && rm -rf y"})
    found = score(checked("all", shell, agents=agents))
    assert found.reason == "`checker` used `Bash`, which it is denied"
    assert score(checked("all", call("Read"), agents=agents)).status == "passed"


def test_a_scope_that_is_not_known_is_skipped_with_what_would_supply_it() -> None:
    actual = checked(None, call("Edit"), source=None, unknown=["tools_allowed", "tools_source"])
    found = score(actual)
    assert found.status == "skipped"
    assert found.reason.endswith("give the agents' definitions as `agents:`")


def test_definitions_that_misspell_the_receiver_are_named() -> None:
    agents = {"cheker": AgentCard(tools=["Read"]), "writer": AgentCard(tools=["Read"])}
    found = score(checked(["Read"], call("Read"), source="offered", agents=agents))
    assert found.status == "skipped"
    assert found.reason.endswith("the definitions have `cheker`, and no `checker`")
    agents["checker"] = AgentCard()  # from the recording
    actual = checked(["Read"], call("Read"), source="offered", agents=agents)
    actual.attributes[DEFINED] = ["cheker", "writer"]
    assert score(actual).reason == found.reason


def test_what_was_offered_proves_only_calls_of_tools_that_do_not_exist() -> None:
    assert score(checked(["Read"], call("Read"), source="offered")).status == "skipped"
    ran = call("Edit", status="ok")
    assert score(checked(["Read"], ran, source="offered")).status == "skipped"
    nothing = call("Edit", status="refused", refused_by="runtime")
    assert kinds(score(checked(["Read"], nothing, source="offered"))) == ["unknown_tool"]


def test_calls_that_were_not_recorded_prove_nothing() -> None:
    actual = checked(["Read"], ran={"unknown": ["steps.tool_call"]})
    assert score(actual).status == "skipped"
    assert score(checked(["Read"])).reason == "`checker` called no tool"


def test_arguments_that_a_pattern_needs_and_nobody_recorded_are_skipped() -> None:
    actual = checked(["Bash(git:*)"], call("Bash", unknown=["arguments"]))
    assert score(actual).status == "skipped"


def test_passing_control_on_and_giving_the_answer_are_no_use_of_tools() -> None:
    answer = call("Verdict", 2, arguments={"ok": True})
    actual = checked(
        ["Read"], call("transfer_to_editor", dispatch="d2"), answer,
        ran={"output": Content(data={"ok": True})},
    )  # fmt: skip
    actual.turns[0].dispatches.append(
        Dispatch(id="d2", kind="transfer", from_run="r2", from_agent="checker", to_agent="editor",
                 call="c1", status="unanswered")
    )  # fmt: skip
    found = DispatchScope(agents=["checker"]).evaluate(actual, None, EvalContext())
    assert [each.status for each in found] == ["passed"]


def test_agents_are_chosen_by_the_names_a_config_gives_them() -> None:
    context = EvalContext(agent_names={"checker": "qa"})
    evaluator = DispatchScope(agents=["qa"])
    (found,) = evaluator.evaluate(checked(["Read"], call("Edit")), None, context)
    assert found.reason == "`qa` used `Edit`, which is not among its tools"


def test_a_dispatch_that_started_nothing_used_nothing() -> None:
    actual = checked(["Read"], status="refused")
    actual.turns[0].dispatches[0].runs = []
    assert score(actual).reason == "`checker` was not started"

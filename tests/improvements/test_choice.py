"""Which component is studied: that of the agent that failures point to."""

from __future__ import annotations

from typing import Any

import pytest

from baton.gate.compare_axes import CASES_PASSED, Axis
from baton.improvements.choose_component import Chosen, Failing, Pointed, choose
from baton.model import FailedAt, Hop, InputError
from baton.store import IndexRow

TEXTS = ("agent:desk", "agent:refunds", "agent:billing", "description:refunds")
TYPES = {"response": "response", "my_route": "dispatch_routing", "scope": "scope_fidelity"}


def row(*failed: FailedAt, to: str = "refunds", back: bool = True) -> IndexRow:
    route = [Hop(1, "delegate", "desk", to, "d1")]
    route += [Hop(1, "return", to, "desk", "d2")] if back else []
    return IndexRow(
        position=0, case_id="c", repeat=0, status="failed", scores=[], offset=0, length=0,
        route=route, failed_at=list(failed),
    )  # fmt: skip


def chosen(*rows: IndexRow, blamed: tuple[str, ...] = (), **given: Any) -> list[Chosen]:
    return choose([Failing(each, blamed) for each in rows], TYPES, TEXTS, **given)


@pytest.mark.parametrize(
    ("failed", "component", "aim"),
    [
        (FailedAt("my_route", "billing", "desk"), "agent:desk", "my_route"),
        (FailedAt("my_route"), "agent:desk", "my_route"),
        (FailedAt("scope", "refunds", "desk"), "agent:refunds", "scope"),
        (FailedAt("response"), "agent:refunds", "response"),
        (FailedAt("result_integration", "refunds", "desk"), "agent:desk", "result_integration"),
        (FailedAt("own_rubric", "refunds", "desk"), "agent:refunds", "own_rubric"),
    ],
)
@pytest.mark.parametrize("back", [True, False])
def test_a_failure_points_to_whoever_could_have_done_better(
    failed: FailedAt, component: str, aim: str, back: bool
) -> None:
    (one,) = chosen(row(failed, back=back))
    assert (one.component, one.aimed) == (component, Axis(aim))


def test_a_wrong_choice_explains_a_wrong_answer() -> None:
    both = row(FailedAt("my_route", "billing", "desk"), FailedAt("response"), to="billing")
    assert [each.component for each in chosen(both)] == ["agent:desk"]


def test_what_is_proven_goes_before_what_is_guessed() -> None:
    failed = row(FailedAt("response"))
    assert [each.component for each in chosen(failed, blamed=("billing",))] == ["agent:billing"]


def test_the_agent_with_the_most_failures_comes_first() -> None:
    rows = [row(FailedAt("response")), row(FailedAt("my_route", None, "desk"))] * 2
    found = chosen(*rows, row(FailedAt("response")))
    assert [each.component for each in found] == ["agent:refunds", "agent:desk"]
    assert found[0].why == "3 failures point to `refunds`, most of them of response"


def test_issues_blame_and_labels_decide_and_the_reason_says_so() -> None:
    rows = [row(FailedAt("response")), row(FailedAt("response")), row(FailedAt("my_route"))]
    assert chosen(*rows)[0].component == "agent:refunds"
    known = {"desk": Pointed(failures=40, issues=["3f2a", "9b1c"], blamed=1, labels=2)}
    first, second = chosen(*rows, pointed=known)
    assert (first.component, first.aimed) == ("agent:desk", Axis("my_route"))
    assert first.why == (
        "1 failure points to `desk`, most of them of my_route; beside these cases: 40 failures of "
        "2 issues (3f2a, 9b1c), 1 run that its record blames on it, 2 labels of people"
    )
    assert second.component == "agent:refunds"


def test_an_agent_that_fails_in_no_case_here_is_not_studied_and_it_is_reported() -> None:
    known = {"billing": Pointed(failures=40, issues=["3f2a"])}
    notes: list[str] = []
    (one,) = chosen(row(FailedAt("response")), pointed=known, note=notes.append)
    assert one.component == "agent:refunds"
    (told,) = notes
    assert told.startswith("40 failures of 1 issue (3f2a) point to `billing`, and no case here")
    assert "baton issues --promote 3f2a" in told
    with pytest.raises(InputError, match=r"no train or select case fails .* point to `billing`"):
        chosen(pointed=known)


def test_an_agent_that_works_alone_is_found_without_a_dispatch() -> None:
    failed = row(FailedAt("response"))
    failed.route = []
    (one,) = choose([Failing(failed, last="billing")], TYPES, TEXTS)
    assert (one.component, one.aimed) == ("agent:billing", Axis("response"))
    with pytest.raises(InputError, match="1 case fails, and nothing shows at which agent"):
        choose([Failing(failed)], TYPES, TEXTS)
    # One agent, whatever the program calls it in its records.
    (only,) = choose([Failing(failed, last="main")], TYPES, ["agent:desk", "tool:pay"])
    assert (only.component, only.aimed) == ("agent:desk", Axis("response"))
    assert only.why == "1 case fails, and it is the only agent whose text can be changed"


def test_what_the_record_proves_is_reported() -> None:
    (one,) = chosen(row(FailedAt("response")), blamed=("billing",))
    assert one.why.endswith("most of them of response, 1 proven by the record")


def test_a_named_component_is_studied_whatever_fails() -> None:
    (one,) = chosen(row(FailedAt("response")), named=["description:refunds"])
    assert (one.component, one.aimed) == ("description:refunds", Axis("response"))
    (one,) = chosen(row(FailedAt("response")), agents=["billing"])
    assert (one.component, one.aimed) == ("agent:billing", CASES_PASSED)


def test_failures_of_an_agent_without_a_text_say_so() -> None:
    with pytest.raises(InputError, match="`ghost`, whose text cannot be changed"):
        chosen(row(FailedAt("scope", "ghost", "desk")))

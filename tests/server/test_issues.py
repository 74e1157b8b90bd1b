"""Issues of a server: the same as `baton issues` finds, kept right by whatever changes later."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec
import pytest
from sqlalchemy import select

from baton.feed.failures import failures_of
from baton.feed.issues import Collector
from baton.model import Score, Trace
from baton.model.score import JudgeUse
from baton.server.bodies import day_of
from baton.server.conversations import encode
from baton.server.database import NoProject
from baton.server.issues import index_issues, regroup
from baton.server.retention import Retention, retain
from baton.server.rows import Reading, write
from baton.server.schema import issue, issue_due, issue_edge, issue_event, issue_member
from baton.server.store import Store
from baton.testing.build import delegate, run, trace, turn

NOW = 1_790_000_000.0
OUTSIDE = {"kind": "tool_executed", "says": "`{to}` used `Edit`", "tool": "Edit"}
DEAD = {"kind": "failed", "says": "`{to}` failed: ReadTimeout"}


def of(id_: str, to: str = "refunds", *, at: float = NOW - 60, model: str | None = "m1") -> Trace:
    """A conversation in which a desk starts an agent."""
    made = trace(
        turn(
            "Refund order 42.",
            run("desk", delegate(to, "Refund order 42."), output="Done."),
            run(to, output="ok", model=model),
            output="Done.",
        ),
        id=id_,
    )
    (one,) = made.turns
    one.started = one.dispatches[0].started = at
    return made


def fails(record: Trace, *faults: dict[str, str], by: str = "dispatch_scope") -> list[Score]:
    """A score of its first dispatch that failed for some faults."""
    made = record.turns[0].dispatches[0]
    said = [{**each, "says": each["says"].format(to=made.to_agent)} for each in faults]
    return [
        Score(evaluator=by, type=by, version="1", unit="dispatch", subject=[made.id],
              status="failed", value=0.0, reason="failed", details={"findings": said})
    ]  # fmt: skip


def passes(record: Trace, by: str = "dispatch_scope") -> list[Score]:
    """A score of its first dispatch that passed."""
    subject = [record.turns[0].dispatches[0].id]
    return [Score(evaluator=by, type=by, version="1", unit="dispatch", subject=subject,
                  status="passed", value=1.0)]  # fmt: skip


def judged(record: Trace, reason: str) -> list[Score]:
    """A score of its first dispatch that a judge gave."""
    use = JudgeUse(model="test", rubric_version="1", samples=1)
    return [
        Score(evaluator="tone", type="tone", version="1", unit="dispatch",
              subject=[record.turns[0].dispatches[0].id], status="failed", value=0.0,
              reason=reason, judge=use)
    ]  # fmt: skip


def row_of(record: Trace, score: Score) -> dict[str, Any]:
    made = record.turns[0].dispatches[0]
    return {
        "rule": "all",
        "evaluator": score.evaluator,
        "type": score.type,
        "evaluator_version": score.version,
        "unit": score.unit,
        "subject": msgspec.json.encode(score.subject).decode(),
        "dispatch": made.id,
        "from_agent": made.from_agent,
        "to_agent": made.to_agent,
        "status": score.status,
        "value": score.value,
        "reason": score.reason,
        "details": msgspec.json.encode(score.details).decode(),
        "evidence": msgspec.json.encode(score.evidence).decode(),
        "judge": None if score.judge is None else msgspec.json.encode(score.judge).decode(),
        "cost_usd": None,
        "agent_version": None,
        "at": NOW,
    }


Scored = tuple[Trace, Sequence[Score]]


def arrive(
    store: Store,
    scored: Iterable[Scored],
    *,
    project: int = 1,
    now: float = NOW,
    versions: dict[str, str] | None = None,
    index: bool = True,
    beyond: Collection[str] = (),
) -> None:
    """Keep conversations as the worker does; issues follow. Scores ``beyond`` are of no sample."""
    listed = list(scored)
    places = store.bodies.put(day_of(now), [encode(record) for record, _ in listed])
    readings = [
        Reading(
            trace=record,
            place=place,
            state="complete",
            traces=[record.id],
            spans=3,
            seen=now,
            agent_versions=versions or {},
            scores=[
                {**row_of(record, each), "sampled": record.id not in beyond} for each in scores
            ],
        )
        for (record, scores), place in zip(listed, places, strict=True)
    ]
    with store.write() as connection:
        write(connection, project, readings, now, traces=[each.trace.id for each in readings])
    while index and index_issues(store, now):
        pass


def rows(store: Store, table: Any = issue, project: int = 1) -> list[dict[str, Any]]:
    with store.read() as connection:
        query = select(table).where(table.c.project == project)
        return [dict(row) for row in connection.execute(query).mappings()]


def shown(store: Store, project: int = 1) -> list[tuple[Any, ...]]:
    """Return the issues that have members, with what of a member can be seen."""
    members = rows(store, issue_member, project)
    names = (
        "key",
        "title",
        "fault",
        "count",
        "dispatched",
        "judged",
        "infrastructure",
        "first",
        "last",
    )
    return sorted(
        (
            *(row[name] for name in names),
            sorted((m["id"], m["key"]) for m in members if m["issue"] == row["id"]),
        )
        for row in rows(store, project=project)
        if row["count"]
    )


def collected(scored: Iterable[Scored], groups: dict[str, Any] | None = None) -> list[Any]:
    """Return what `baton issues` finds in the same."""
    collector = Collector()
    for record, scores in scored:
        collector.see(record)
        collector.add(failures_of(record, scores))
    return sorted(
        (i.key, i.title, i.fault, i.count, i.rate.failed, i.judged, i.infrastructure, i.first, i.last,
         sorted((m.id, m.conversation) for m in i.members))
        for i in collector.issues(groups)
    )  # fmt: skip


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.heavy)])
def either(request: pytest.FixtureRequest) -> Store:
    name = "store" if request.param == "sqlite" else "postgres_store"
    opened: Store = request.getfixturevalue(name)
    return opened


def a_day() -> list[Scored]:
    """Traffic of four agents: some faults all day, and ten minutes in which all agents fail."""
    made: list[Scored] = []
    for n in range(240):
        to = ("refunds", "billing", "search", "mail")[n % 4]
        record = of(f"c{n}", to, at=NOW - 86_400 + n * 300, model=f"m{n % 2}")
        scores: list[Score] = []
        if n % 12 == 0:
            scores += fails(record, OUTSIDE, DEAD)
        else:
            scores += passes(record)
        if n % 30 == 0:
            scores += fails(record, OUTSIDE, by="scope_fidelity")  # two say the same fault
        made.append((record, [*scores, *passes(record, "dispatch_completed")]))
    for n in range(40):
        to = ("refunds", "billing", "search", "mail")[n % 4]
        record = of(f"out{n}", to, at=NOW - 43_200 + n)
        made.append((record, [*passes(record), *fails(record, DEAD, by="dispatch_completed")]))
    return made


def test_issues_are_those_that_the_command_finds_in_the_same_recordings(either: Store) -> None:
    day = a_day()
    for some in (day[200:], day[:100], day[100:200]):  # in another order
        arrive(either, some)
    assert shown(either) == collected(day)
    dead = [row for row in rows(either) if row["fault"] == "failed"]
    assert {(row["receiver"], row["subtype"]) for row in dead} == {
        ("refunds", "dead_child"),
        *((name, "infrastructure") for name in ("billing", "search", "mail")),
    }
    assert sorted(row["infrastructure"] for row in dead) == [10, 10, 10, 11]
    assert sum(row["dispatches"] for row in rows(either, issue_edge)) == len(day)
    assert rows(either, issue_due) == []


def test_a_new_version_of_a_conversation_takes_the_place_of_the_one_before(either: Store) -> None:
    first, again = of("a"), of("a", "billing")
    arrive(either, [(first, fails(first, OUTSIDE)), (of("b"), [])])
    arrive(either, [(again, fails(again, DEAD, by="dispatch_completed"))])
    assert [(row[2], row[3]) for row in shown(either)] == [("failed", 1)]
    assert shown(either) == collected([(again, fails(again, DEAD, by="dispatch_completed"))])
    arrive(either, [(again, [])])
    assert shown(either) == []
    edges = {row["receiver"]: row["dispatches"] for row in rows(either, issue_edge)}
    assert edges == {"refunds": 1, "billing": 1}


def test_what_retention_deletes_leaves_the_counts_and_takes_the_members(store: Store) -> None:
    old, young = of("old", at=NOW - 90 * 86_400), of("young")
    arrive(store, [(old, fails(old, OUTSIDE))], now=NOW - 90 * 86_400)
    arrive(store, [(young, fails(young, OUTSIDE))])
    assert [day for day, *_ in retain(store, Retention(days=30), NOW)] == [
        day_of(NOW - 90 * 86_400)
    ]
    (row,) = rows(store)
    assert (row["count"], row["first"], row["last"]) == (2, NOW - 90 * 86_400, NOW - 60)
    assert [each["key"] for each in rows(store, issue_member)] == ["young"]
    assert sum(each["dispatches"] for each in rows(store, issue_edge)) == 2
    arrive(store, [(young, [])])  # what is taken out now is of this one alone
    assert [(row["count"], row["last"]) for row in rows(store)] == [(1, NOW - 60)]


def test_each_project_has_issues_of_its_own(either: Store) -> None:
    other = either.project("other", create=True)
    record = of("a")
    arrive(either, [(record, fails(record, OUTSIDE))])
    assert shown(either, other) == []
    arrive(either, [(record, fails(record, DEAD))], project=other)
    assert {row[2] for row in shown(either)} == {"tool_executed"}
    assert {row[2] for row in shown(either, other)} == {"failed"}
    with either.read() as connection, pytest.raises(NoProject):
        connection.execute(select(issue_member).where(issue_member.c.issue == 1))


RUDE = [
    "It is rude to the customer.",
    "The tone is rude to the customer.",
    "Rude: the customer is insulted, the tone is bad.",
]
WRONG = [
    "It names the wrong amount of the refund.",
    "The refund amount is wrong.",
    "A wrong refund amount is named.",
]


def of_judges(count: int = 12) -> list[Scored]:
    made: list[Scored] = []
    for n in range(count):
        record = of(f"j{n}")
        made.append((record, judged(record, (RUDE + WRONG)[n % 6])))
    return made


def test_what_judges_say_is_grouped_as_the_command_does_and_new_texts_find_their_group(
    either: Store,
) -> None:
    pytest.importorskip("sklearn")
    arrive(either, of_judges())
    assert [row["text_group"] for row in rows(either)] == [None]
    regroup(either, 1, NOW)
    assert shown(either) == collected(of_judges(), {})
    first = {row["key"]: row["count"] for row in rows(either) if row["count"]}
    assert len(first) == 2
    record = of("late")
    arrive(either, [(record, judged(record, "Rude to the customer, the tone is rude."))])
    grown = {row["key"]: row["count"] for row in rows(either) if row["count"]}
    assert sorted(grown.values()) == [6, 7]
    assert set(grown) == set(first)
    odd = of("odd")
    arrive(either, [(odd, judged(odd, "Nobody asked about penguins."))])
    rest = [row for row in rows(either) if row["count"] == 1]
    assert [(row["text_group"], row["went_into"]) for row in rest] == [(None, None)]
    regroup(either, 1, NOW)  # names stay
    assert set(first) < {row["key"] for row in rows(either) if row["count"]}
    kinds = {row["kind"] for row in rows(either, issue_event)}
    assert {"new", "split"} <= kinds


def test_a_group_that_ends_says_which_one_it_went_into(store: Store) -> None:
    pytest.importorskip("sklearn")
    arrive(store, of_judges())
    regroup(store, 1, NOW)
    wrong = [(of(f"j{n}"), ()) for n in range(12) if n % 6 >= 3]
    arrive(store, wrong)  # only the rude ones are left: one group, which is the whole issue
    regroup(store, 1, NOW)
    there = [row for row in rows(store) if row["count"]]
    assert [row["count"] for row in there] == [6]
    gone = {row["went_into"] for row in rows(store) if row["count"] == 0} - {None}
    assert gone <= {row["key"] for row in there}


def test_an_issue_that_was_fixed_has_regressed_in_that_version_only(store: Store) -> None:
    record = of("a")
    arrive(store, [(record, fails(record, OUTSIDE))], versions={"refunds": "v1"})
    with store.write() as connection:
        connection.execute(
            issue.update()
            .where(issue.c.project == 1)
            .values(state="fixed", version="v2", since=NOW)
        )
    old = of("b", at=NOW + 5)
    arrive(store, [(old, fails(old, OUTSIDE))], versions={"refunds": "v1"}, now=NOW + 10)
    assert [row["state"] for row in rows(store)] == ["fixed"]
    new = of("c", at=NOW + 20)
    arrive(store, [(new, fails(new, OUTSIDE))], versions={"refunds": "v2"}, now=NOW + 30)
    assert [row["state"] for row in rows(store)] == ["regressed"]
    assert [row["kind"] for row in rows(store, issue_event)] == ["new", "regressed"]

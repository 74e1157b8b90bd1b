"""Which spans are one conversation, and which of these one turn."""

from __future__ import annotations

from typing import Any

from baton.readers.otlp.wire.conversations import group

SESSION, CONVERSATION = "session.id", "gen_ai.conversation.id"


def test_a_trace_that_names_nothing_is_a_conversation(wire: Any, names: Any) -> None:
    spans = [wire.span("root"), wire.span("child", parent="root", at=1), wire.span("other", "u")]
    assert names(group(spans)) == {
        wire.trace_id("u"): [["other"]],
        wire.trace_id("t"): [["root", "child"]],
    }


def test_traces_of_one_session_are_the_turns_of_one_conversation(wire: Any, names: Any) -> None:
    spans = [
        wire.span("two", "t2", at=9, attributes={SESSION: "s"}),
        wire.span("one", "t1", attributes={SESSION: "s"}),
    ]
    assert names(group(spans)) == {"s": [["one"], ["two"]]}


def test_a_session_goes_before_a_conversation_id(wire: Any, names: Any) -> None:
    spans = [
        wire.span("one", "t1", attributes={SESSION: "s", CONVERSATION: "c1"}),
        wire.span("two", "t2", at=1, attributes={SESSION: "s", CONVERSATION: "c2"}),
    ]
    assert names(group(spans)) == {"s": [["one"], ["two"]]}


def test_sub_agents_with_conversation_ids_of_their_own_stay(wire: Any, names: Any) -> None:
    spans = [
        wire.span("host", attributes={CONVERSATION: "c1"}),
        wire.span("tool", parent="host", at=1),
        wire.span("sub", parent="tool", at=2, attributes={CONVERSATION: "c2"}),
    ]
    assert names(group(spans)) == {"c1": [["host", "tool", "sub"]]}


def test_a_session_on_an_inner_span_only_holds_for_the_whole_trace(wire: Any, names: Any) -> None:
    spans = [
        wire.span("swarm"),
        wire.span("agent", parent="swarm", at=1, attributes={SESSION: "s"}),
        wire.span("after", parent="swarm", at=2),
        wire.span("apart", at=3, attributes={CONVERSATION: "c"}),
    ]
    assert names(group(spans)) == {"s": [["swarm", "agent", "after", "apart"]]}


def test_the_outermost_session_holds_for_what_is_below(wire: Any, names: Any) -> None:
    spans = [
        wire.span("root", attributes={SESSION: "s"}),
        wire.span("child", parent="root", at=1, attributes={SESSION: "inner"}),
    ]
    assert names(group(spans)) == {"s": [["root", "child"]]}


def test_two_sessions_below_one_server_span_are_two_conversations(wire: Any, names: Any) -> None:
    spans = [
        wire.span("server"),
        wire.span("request 1", parent="server", at=1),
        wire.span("agent 1", parent="request 1", at=2, attributes={SESSION: "s1"}),
        wire.span("tool 1", parent="agent 1", at=3),
        wire.span("request 2", parent="server", at=4),
        wire.span("agent 2", parent="request 2", at=5, attributes={SESSION: "s2"}),
    ]
    assert names(group(spans)) == {
        "s1": [["server", "request 1", "agent 1", "tool 1"]],
        "s2": [["request 2", "agent 2"]],
    }


def test_agents_that_a_program_starts_in_turn_are_one_conversation(wire: Any, names: Any) -> None:
    spans = [
        wire.span("program"),
        wire.span("first", parent="program", at=1, attributes={CONVERSATION: "c1"}),
        wire.span("second", parent="program", at=2, attributes={CONVERSATION: "c2"}),
    ]
    assert names(group(spans)) == {"c1": [["program", "first", "second"]]}
    assert names(group(spans[1:])) == {"c1": [["first", "second"]]}


def test_roots_of_one_trace_with_conversation_ids_of_their_own_are_apart(
    wire: Any, names: Any
) -> None:
    spans = [
        wire.span("one", attributes={CONVERSATION: "c1"}),
        wire.span("two", at=1, attributes={CONVERSATION: "c2"}),
        wire.span("none", at=2),
    ]
    assert names(group(spans)) == {"c1": [["one", "none"]], "c2": [["two"]]}


def test_links_make_one_conversation_and_one_turn_of_traces(wire: Any, names: Any) -> None:
    spans = [
        wire.span("a", "t1"),
        wire.span("b", "t2", at=1, links=[wire.link("a", "t1")]),
        wire.span("c", "t3", at=2, links=[wire.link("b", "t2")]),
        wire.span("alone", "t4", at=3, links=[wire.link("nowhere", "t9")]),
    ]
    assert names(group(spans)) == {
        wire.trace_id("t1"): [["a", "b", "c"]],
        wire.trace_id("t4"): [["alone"]],
    }


def test_a_trace_that_names_nothing_joins_the_session_it_is_linked_to(
    wire: Any, names: Any
) -> None:
    spans = [
        wire.span("agent", "t1", attributes={SESSION: "s"}),
        wire.span("queued", "t2", at=1, links=[wire.link("agent", "t1")]),
        wire.span(
            "other", "t3", at=2, links=[wire.link("queued", "t2")], attributes={SESSION: "o"}
        ),
    ]
    found = group(spans)
    assert {c.id: len(c.spans) for c in found} in ({"s": 2, "o": 1}, {"s": 1, "o": 2})
    assert names(found) == names(group(reversed(spans)))


def test_a_link_into_a_parted_trace_leads_to_the_session_of_its_span(wire: Any, names: Any) -> None:
    spans = [
        wire.span("server"),
        wire.span("one", parent="server", at=1, attributes={SESSION: "s1"}),
        wire.span("two", parent="server", at=2, attributes={SESSION: "s2"}),
        wire.span("late", "u", at=3, links=[wire.link("two", "t")]),
    ]
    assert names(group(spans)) == {"s1": [["server", "one"]], "s2": [["two", "late"]]}


def test_the_resource_may_name_the_session(wire: Any, names: Any) -> None:
    resource = {"agentevals.session_name": "run-1"}
    spans = [wire.span("a", "t1", resource=resource), wire.span("b", "t2", at=1, resource=resource)]
    assert names(group(spans)) == {"run-1": [["a"], ["b"]]}


def test_the_project_that_langsmith_calls_a_session_is_not_one(wire: Any) -> None:
    project = {"langsmith.trace.session_id": "p", "langsmith.trace.session_name": "default"}
    spans = [wire.span("a", "t1", attributes=project), wire.span("b", "t2", attributes=project)]
    assert len(group(spans)) == 2


def test_a_session_may_be_a_number_and_is_never_empty(wire: Any) -> None:
    numbered = wire.span("a", "t1", attributes={"traceloop.association.properties.thread_id": 7})
    empty = wire.span("b", "t2", at=1, attributes={SESSION: ""})
    assert [c.id for c in group([numbered, empty])] == ["7", wire.trace_id("t2")]


def test_parents_in_a_circle_or_missing_lose_no_span(wire: Any, names: Any) -> None:
    spans = [
        wire.span("a", parent="b", attributes={SESSION: "s1"}),
        wire.span("b", parent="a", at=1),
        wire.span("self", parent="self", at=2, attributes={SESSION: "s2"}),
        wire.span("orphan", parent="gone", at=3),
    ]
    assert names(group(spans)) == {"s1": [["a", "b", "orphan"]], "s2": [["self"]]}


def test_ten_thousand_levels_are_no_problem(wire: Any) -> None:
    spans = [
        wire.span(f"n{i}", parent=f"n{i - 1}" if i else "", at=i, attributes={SESSION: f"s{i}"})
        for i in range(10_000)
    ]
    (found,) = group(reversed(spans))
    assert (found.id, len(found.spans)) == ("s0", 10_000)


def test_a_span_that_was_exported_twice_counts_once(wire: Any) -> None:
    early = wire.span("a", ended=None)
    late = wire.span("a", attributes={"x": 1})
    for order in ([early, late, late], [late, early, late]):
        (found,) = group(order)
        assert found.spans == [late]


def test_spans_of_one_id_that_started_at_different_times_are_all_kept(wire: Any) -> None:
    (found,) = group([wire.span("a"), wire.span("a", at=5)])
    assert len(found.spans) == 2


def test_what_ends_before_it_starts_takes_no_time(wire: Any) -> None:
    notes: list[str] = []
    (found,) = wire.read(wire.line(wire.span("a", at=10, ended=1_700_000_000)), notes=notes)
    assert found.spans[0].ended == found.spans[0].started == 1_700_000_010
    assert notes == ["1 spans end before they start; they count as taking no time"]


def test_what_continues_from_an_answer_is_of_its_conversation(wire: Any, names: Any) -> None:
    """The Responses API of OpenAI gives each answer an id, and a conversation has none."""
    kept = "resp_{:048x}".format
    answer = "gen_ai.response.id"
    spans = [
        wire.span("one", "t1", attributes={answer: kept(1)}),
        wire.span("two", "t2", at=1, attributes={CONVERSATION: kept(1), answer: kept(2)}),
        wire.span("apart", "t3", at=2, attributes={answer: kept(7)}),
        wire.span("three", "t4", at=3, attributes={CONVERSATION: kept(2)}),
        wire.span("lost", "t5", at=4, attributes={CONVERSATION: kept(0)}),
    ]
    assert names(group(spans)) == {
        wire.trace_id("t1"): [["one"], ["two"], ["three"]],
        wire.trace_id("t3"): [["apart"]],
        wire.trace_id("t5"): [["lost"]],
    }

"""`tool_calls`: pairs of calls are the most that can be, and found fast."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.clock import cpu_limit

from baton.evaluators import ToolCalls
from baton.evaluators.matching.assignment import all_in_order, assign, longest_common
from baton.evaluators.matching.call_pairing import (
    ORDERED,
    fitting_kinds,
    pair_calls,
    required_text,
)
from baton.evaluators.matching.call_rules import CallRules, Made, Rule
from baton.model import (
    EvalContext,
    ExpectedToolCall,
)
from baton.testing.build import call, case, run, trace

MODES = ("exact", "in_order", "any_order", "partial", "precision", "recall", "f1")
ARGUMENTS = ("exact", "ignore", "subset", "superset", "tolerant", "regex", "similar")

texts = st.sampled_from(["a", "A ", "a b", "a b c", "b c d a", "1", "1.0", "^a", "a.c", "", "b+"])
leaves = st.one_of(texts, st.sampled_from([0, 1, 1.0, True, False, None, 1.0000001, 2]))
values = st.one_of(
    leaves, st.lists(leaves, max_size=2), st.dictionaries(st.sampled_from("pq"), leaves, max_size=2)
)
arguments = st.one_of(st.none(), st.dictionaries(st.sampled_from("xy"), values, max_size=2))
names = st.sampled_from(["f", "fg"])
agents = st.sampled_from(["one", "two"])
wanted_calls = st.lists(
    st.builds(ExpectedToolCall, name=names, arguments=arguments, agent=st.none() | agents),
    max_size=6,
)
made_calls = st.lists(
    st.builds(
        lambda name, arguments, agent: Made("id", name, arguments, agent, frozenset({agent})),
        names,
        arguments,
        agents,
    ),
    max_size=6,
)
call_rules = st.builds(
    CallRules,
    st.sampled_from(["exact", "contains", "regex"]),
    st.sampled_from(ARGUMENTS),
    st.sampled_from([0.0, 0.5, 0.8, 1.0]),
    st.sampled_from(
        [
            (),
            (Rule(argument="x", any=True),),
            (Rule(tool="f", tolerant=True),),
            (Rule(tool="fg", argument="y", regex="a"), Rule(equal=True)),
            (Rule(argument="x", within=0.5), Rule(argument="y", one_of=[1, None])),
        ]
    ),
)


def most_pairs(table: list[list[bool]]) -> int:
    """Find the largest matching by trying for each expected call every free actual one."""

    def best(row: int, free: frozenset[int]) -> int:
        if row == len(table):
            return 0
        tries = [1 + best(row + 1, free - {place}) for place in free if table[row][place]]
        return max([best(row + 1, free), *tries])

    return best(0, frozenset(range(len(table[0]) if table else 0)))


def most_in_order(table: list[list[bool]]) -> int:
    """Find the longest common subsequence by the textbook table."""
    width = len(table[0]) if table else 0
    rows = [[0] * (width + 1)]
    for fits in table:
        row = [0]
        for place, fit in enumerate(fits):
            row.append(max(rows[-1][place] + fit, rows[-1][place + 1], row[-1]))
        rows.append(row)
    return rows[-1][-1]


@settings(max_examples=400, deadline=None)
@given(wanted_calls, made_calls, call_rules)
def test_the_index_finds_exactly_the_pairs_that_agree(
    wanted: list[ExpectedToolCall], made: list[Made], rules: CallRules
) -> None:
    kinds = fitting_kinds(wanted, made, rules)
    found = {
        (one, other)
        for left, fits in zip(kinds.wanted, kinds.edges, strict=True)
        for right in fits
        for one in left
        for other in kinds.made[right]
    }
    agreeing = {
        (one, other)
        for one, call in enumerate(wanted)
        for other, actual in enumerate(made)
        if rules.same(call, actual)
    }
    assert found == agreeing


@settings(max_examples=300, deadline=None)
@given(wanted_calls, made_calls, call_rules)
def test_as_many_calls_are_paired_as_can_be(
    wanted: list[ExpectedToolCall], made: list[Made], rules: CallRules
) -> None:
    table = [[rules.same(call, actual) for actual in made] for call in wanted]
    for mode, most in (("f1", most_pairs(table)), ("partial", most_in_order(table))):
        pairs = pair_calls(wanted, made, mode, rules)  # type: ignore[arg-type]
        assert len(pairs) == most
        assert all(table[one][other] for one, other in pairs)
        assert len({one for one, _ in pairs}) == len({other for _, other in pairs}) == most
        if mode in ORDERED:
            assert pairs == sorted(pairs, key=lambda pair: pair[1])


@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), max_size=6), st.data())
def test_a_matching_of_kinds_is_that_of_their_members(
    table: list[list[bool]], data: st.DataObject
) -> None:
    counts = st.integers(0, 2)
    supply = [data.draw(counts) for _ in table]
    room = [data.draw(counts) for _ in range(5)]
    edges = [[place for place, fits in enumerate(row) if fits] for row in table]
    flow = assign(edges, room, supply=supply)
    columns = [place for place, many in enumerate(room) for _ in range(many)]
    rows = [row for row, many in zip(table, supply, strict=True) for _ in range(many)]
    assert sum(sum(shares.values()) for shares in flow) == most_pairs(
        [[row[place] for place in columns] for row in rows]
    )
    for left, shares in enumerate(flow):
        assert sum(shares.values()) <= supply[left]
        assert shares.keys() <= set(edges[left])
    assert all(sum(shares.get(right, 0) for shares in flow) <= room[right] for right in range(5))


@given(st.text("abc", max_size=8), st.text("abc", max_size=8))
def test_the_longest_common_subsequence_is_one(one: str, other: str) -> None:
    pairs = longest_common(len(one), [sum((e == a) << i for i, e in enumerate(one)) for a in other])
    assert len(pairs) == most_in_order([[e == a for a in other] for e in one])
    assert all(one[left] == other[right] for left, right in pairs)
    scanned = all_in_order(len(one), len(other), lambda i, j: one[i] == other[j])
    assert (scanned is not None) == (len(pairs) == len(one))


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^order\-17$", "order-17"),
        (r"[A-Z]+-1234?", "-123"),
        (r"(abc)+def", "abc"),
        (r"(abcd)?de", "de"),
        (r"x{2}longer{0,}", "longe"),
        (r"a|b", ""),
        (r"(?i)abc", ""),
        (r"(?:abc)*", ""),
        (r"\d\w\.", "."),
        (r"\(abc\)", "(abc)"),
    ],
)
def test_the_text_that_all_matches_of_a_pattern_hold(pattern: str, text: str) -> None:
    assert required_text(pattern) == text


def large(kind: str, size: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    made: list[dict[str, Any]] = [
        {"order": f"A-{number}", "note": "the same"} for number in range(size)
    ]
    wanted = [dict(each) for each in made]
    if kind == "more":
        made = [{**each, "at": number} for number, each in enumerate(made)]
    if kind == "others":
        made = [{**each, "order": f"B-{number}"} for number, each in enumerate(made)]
    if kind == "numbers":
        wanted = [{"order": number * 1.1} for number in range(size)]
        made = [{"order": str(number * 1.1)} for number in range(size)]
    return wanted, [made[place * 7919 % size] for place in range(size)]


@pytest.mark.heavy
@pytest.mark.parametrize("way", ARGUMENTS)
@pytest.mark.parametrize(
    ("kind", "modes"),
    [("same", MODES), *((kind, ("partial", "f1")) for kind in ("more", "others", "numbers"))],
)
def test_700_shuffled_calls_of_one_name_are_compared_in_no_time(
    kind: str, modes: tuple[str, ...], way: str
) -> None:
    wanted, made = large(kind, 700)
    played = trace(run("helper", *(call("f", each) for each in made)))
    stated = case(tool_calls=[("f", each) for each in wanted])
    for mode in modes:
        with cpu_limit(0.5, mode):
            ToolCalls.from_options(None, {"mode": mode, "arguments": way}).evaluate(
                played, stated, EvalContext()
            )
            # Comparing each with each, half a million times, takes more than a second.

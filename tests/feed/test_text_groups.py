"""Groups of texts: wordings of one complaint are together, what is of no kind is left out."""

from __future__ import annotations

import random
from collections import Counter

from tests.clock import cpu_limit

from baton.feed.text_groups import Event, Members, group_texts, keep_names, middle_of

COMPLAINTS = {
    "refund": [
        "The agent promised a refund of {n} euros although policy forbids it",
        "It granted {n} EUR back to the customer, which the policy does not allow",
        "Refund of {n} was offered against the rules of the policy",
    ],
    "tone": [
        "The reply is rude to the customer",
        "Customer was addressed in a rude, dismissive tone",
        "Tone of the answer is impolite and dismissive",
    ],
    "language": [
        "It answered in English although the user wrote in German",
        "User wrote German, the reply is English",
        "The language of the answer does not match the user's German",
    ],
}
ODD = [
    "The summary leaves out the second attachment",
    "Currency symbols are missing in the table",
    "A joke about competitors was made",
    "The answer ends in the middle of a sentence",
    "The link points to a staging page",
    "Greeting uses the wrong name",
    "It explains internal identifiers",
    "Steps are numbered twice",
    "Wrong unit for the weight of the parcel",
    "The escalation email has no subject",
    "Sorting of the results is reversed",
    "An apology is missing after the failed payment",
]


def _texts(seed: int) -> tuple[list[str], list[str]]:
    drawn = random.Random(seed)
    rows = [
        (drawn.choice(wordings).format(n=drawn.randint(1, 999)), kind)
        for kind, wordings in COMPLAINTS.items()
        for _ in range(40)
    ]
    rows += [(text, "odd") for text in ODD]
    drawn.shuffle(rows)
    return [text for text, _ in rows], [kind for _, kind in rows]


def test_thousands_of_groups_keep_their_names_in_seconds() -> None:
    groups = [[f"m{n}.{k}" for k in range(3)] for n in range(4_000)]
    before = {f"n{n}": group for n, group in enumerate(groups)}
    with cpu_limit(5):
        kept = keep_names(before, groups[::-1])
        assert kept.names == [f"n{n}" for n in reversed(range(4_000))]
        assert kept.events == []
        fresh = keep_names({}, groups)
        assert len(set(fresh.names)) == 4_000


def test_the_middle_of_10_000_texts_is_found_in_seconds() -> None:
    texts = [
        f"The agent {chr(97 + n % 26)}{chr(97 + n // 26 % 26)}x is rude" for n in range(10_000)
    ]
    with cpu_limit(5):
        assert middle_of([*texts, "The agent is rude"]) == "The agent is rude"


def test_three_wordings_of_a_complaint_are_one_group() -> None:
    texts, kinds = _texts(1)
    labels = group_texts(texts)
    found = Counter(zip(kinds, labels, strict=True))
    groups = {kind: {label for of, label in found if of == kind} for kind in COMPLAINTS}
    assert all(len(labels) == 1 and -1 not in labels for labels in groups.values()), groups
    assert len({label for labels in groups.values() for label in labels}) == len(COMPLAINTS)
    assert found["odd", -1] == len(ODD)


def test_the_order_of_texts_does_not_change_their_groups() -> None:
    texts, _ = _texts(2)
    before = dict(zip(texts, group_texts(texts), strict=True))
    random.Random(3).shuffle(texts)
    assert dict(zip(texts, group_texts(texts), strict=True)) == before


def test_few_texts_and_texts_without_words_are_of_no_group() -> None:
    assert group_texts([]) == []
    assert group_texts(["a b", "c d"]) == [-1, -1]
    assert set(group_texts([f"{n}" for n in range(20)] + ["!", "?"])) <= {0, -1}


def test_equal_texts_are_a_group() -> None:
    assert group_texts(["order 1 is late", "order 2 is late", "order 30 is late", "x"])[:3] == [
        0,
        0,
        0,
    ]


def test_a_later_text_is_of_the_nearest_member_or_new() -> None:
    members = Members(COMPLAINTS)
    assert members.group_of("The tone of this reply is rude and dismissive") == "tone"
    assert (
        members.group_of("The agent promised a refund of 7 euros though policy forbids it")
        == "refund"
    )
    assert members.group_of("Sorting of the results is reversed") is None


def test_groups_keep_the_name_of_what_they_share_most_members_with() -> None:
    kept = keep_names({"a": "123", "b": "45"}, ["12367", "45"])
    assert (kept.names, kept.events) == (["a", "b"], [])


def test_groups_that_merge_split_come_and_go_are_reported() -> None:
    merged = keep_names({"a": "123", "b": "45"}, ["12345"])
    assert (merged.names, merged.events) == (["a"], [Event("merged", ("a", "b"), "a")])
    split = keep_names({"a": "12345"}, ["123", "45"])
    assert split.names[0] == "a"
    assert split.events == [Event("split", ("a",), split.names[1])]
    other = keep_names({"a": "12"}, ["89"])
    assert [event.kind for event in other.events] == ["new", "gone"]


def test_the_text_in_the_middle_stands_for_its_group() -> None:
    assert (
        middle_of(["the reply is rude", "rude reply", "it is late, and the reply is rude"])
        == "the reply is rude"
    )
    assert middle_of([]) == ""


def test_groups_that_there_were_keep_their_members_when_most_texts_change() -> None:
    texts = [text for said in COMPLAINTS.values() for text in said]
    names: list[str | None] = [name for name, said in COMPLAINTS.items() for _ in said]
    labels = group_texts([*ODD, *texts], [*[None] * len(ODD), *names])[len(ODD) :]
    by_name = {(name, label) for name, label in zip(names, labels, strict=True)}
    assert len(by_name) == len(COMPLAINTS) == len({label for _, label in by_name})
    again = group_texts([*texts[::-1], *ODD], [*names[::-1], *[None] * len(ODD)])
    assert again[: len(texts)] == labels[::-1]


def test_a_group_of_which_two_are_left_is_still_that_group() -> None:
    texts = ["the reply is rude", "a rude reply it is", "the wrong city was searched"]
    assert group_texts(texts) == [-1, -1, -1]
    assert group_texts(texts, ["tone", "tone", None]) == [0, 0, -1]


def test_a_group_that_says_two_things_comes_apart() -> None:
    two = [*COMPLAINTS["refund"], *COMPLAINTS["tone"]]
    labels = group_texts(two, ["one"] * len(two))
    assert sorted(set(labels) - {-1}) == [0, 1]


def test_groups_that_say_the_same_are_combined() -> None:
    said = ["The tone of the reply is rude and dismissive"] * 3
    texts = [f"{text} to customer {letter}" for text in said for letter in "abcdef"]
    names = ["one" if place % 2 else "two" for place in range(len(texts))]
    assert set(group_texts(texts, names)) == {0}

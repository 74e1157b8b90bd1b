"""One filter language for cases, rules, lists and pages."""

import pytest

from baton.model import InputError
from baton.model.filter import NUMBER, SECONDS, TEXT, TIME, Field, Filter, filter_of, term_of

FIELDS = {
    "to": TEXT,
    "agent": TEXT,
    "kind": Field(values=("transfer", "delegate")),
    "depth": NUMBER,
    "duration": SECONDS,
    "started": TIME,
    "metadata.": TEXT,
}


def meets(filter_: Filter, **values: object) -> bool:
    return filter_.meets(values.get)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("stated", "values", "expected"),
    [
        ("to:refund-*", {"to": "refund-eu"}, True),
        ("to:refund-*", {"to": "billing"}, False),
        ("to:refund-*,billing", {"to": "billing"}, True),
        ("to:a,b", {"to": "a,b"}, True),
        ("to:!refund-*", {"to": "billing"}, True),
        ("to:!refund-*", {"to": "refund-eu"}, False),
        ("to=refund-*", {"to": "refund-eu"}, False),
        ("to=refund-*", {"to": "refund-*"}, True),
        ('to:"refund desk"', {"to": "refund desk"}, True),
        ("to:refund[1]", {"to": "refund[1]"}, True),
        ("agent:desk", {"agent": ["billing", "desk"]}, True),
        ("agent:!desk", {"agent": ["billing", "desk"]}, False),
        ("depth:>=2", {"depth": 2}, True),
        ("depth:>=2", {"depth": 1}, False),
        ("depth:2", {"depth": 2.0}, True),
        ("depth:1,3", {"depth": 2}, False),
        ("depth:>=2 depth:<4", {"depth": 4}, False),
        ("to:a depth:1", {"to": "a", "depth": 1}, True),
        ("duration:>500ms", {"duration": 0.6}, True),
        ("duration:<=1.5min", {"duration": 91}, False),
        ("started:>=2026-11-22T00:00:00Z", {"started": 1795305600.0}, True),
        ("started:<2026-11-22", {"started": 1795305600.0}, False),
        ({"to": ["refund-*"], "depth": ">=2 <4", "kind": "delegate"},
         {"to": "refund-x", "depth": 3, "kind": "delegate"}, True),
        ({"to": ["a*", "!ab"]}, {"to": "ab"}, False),
        ({"to": ["a*", "!ab"]}, {"to": "ac"}, True),
        ({"depth": [1, ">3"]}, {"depth": 5}, True),
        ({"metadata.team": "eu"}, {"metadata.team": "eu"}, True),
        (None, {}, True),
    ],
)  # fmt: skip
def test_a_filter_keeps_what_meets_all_of_its_terms(
    stated: object, values: dict[str, object], expected: bool
) -> None:
    assert meets(filter_of(stated, FIELDS), **values) is expected  # type: ignore[arg-type]


@pytest.mark.parametrize("stated", ["to:x", "to:!x", "depth:<3", "duration:>=0"])
def test_what_is_not_known_meets_nothing(stated: str) -> None:
    assert not meets(filter_of(stated, FIELDS))


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"too": "x"}, "too: unknown field; did you mean `to`?"),
        ({"kind": "delegat"}, "kind: no value `delegat`; did you mean `delegate`?"),
        ({"depth": "deep"}, "depth: `deep` is not a number"),
        ({"depth": True}, "depth: expected a number or a comparison such as `>=2`, got `True`"),
        (
            {"depth": ">="},
            "depth: `>=` is not a comparison: write one like `>=2`, `<5` or `>=2 <5`",
        ),
        ({"depth": "nan"}, "depth: `nan` is not a number"),
        (
            {"duration": "2 weeks"},
            "duration: `weeks` is not a duration, such as 2s, 500ms or 1.5min",
        ),
        ({"started": "soon"}, "`soon` is not a time, such as 2026-11-22"),
        ({"to": []}, "to: an empty list matches nothing: leave the field out"),
        ({"to": 5}, "to: expected a text or a glob, got `5`"),
        ("to", "`to` is not a filter: write `FIELD:VALUE`, such as `to:NAME*`"),
        ("knd:x", "`knd:x`: unknown field; did you mean `kind`?"),
        ("kind:delegates", "no value `delegates`; did you mean `delegate`?"),
    ],
)
def test_what_is_wrong_with_a_filter_is_reported_with_a_similar_name(
    stated: object, message: str
) -> None:
    with pytest.raises(InputError) as raised:
        filter_of(stated, FIELDS)  # type: ignore[arg-type]
    assert message in str(raised.value)


def test_every_wrong_field_of_a_mapping_is_named() -> None:
    with pytest.raises(InputError) as raised:
        filter_of({"too": "x", "depth": "deep"}, FIELDS)
    assert [problem.path for problem in raised.value.problems] == ["too", "depth"]


def test_a_word_that_names_no_field_is_about_the_default_one() -> None:
    assert term_of("suite:refund_*", FIELDS, default="to").meets("suite:refund_1")
    assert not term_of("kind:transfer", FIELDS, default="to").meets("kind:transfer")

"""Signatures: the same fault is one signature, whatever differs from run to run."""

from __future__ import annotations

import pytest

from baton.feed.failures import Failure
from baton.feed.signature import error_class, mask, signature_of


def _failure(**fields: object) -> Failure:
    known: dict[str, object] = {
        "conversation": "c1",
        "evaluator": "dispatch_scope",
        "type": "dispatch_scope",
        "fault": "tool_executed",
        "sender": "desk",
        "receiver": "billing",
        "dispatch": "d1",
        "subject": {"tool": "Edit"},
    }
    return Failure(**{**known, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("order 4411 was not found", "order 9 was not found"),
        ("no row for ana@example.com", "no row for j.doe+x@mail.example.org"),
        (
            "job 8f2a91c3-1111-4c2d-9a00-aabbccddeeff died",
            "job 00000000-0000-4000-8000-000000000001 died",
        ),
        ("cannot open /var/data/orders.db", "cannot open /srv/b/other.sqlite"),
        ("GET http://a.example/x?y=1 failed", "GET https://b.example/ failed"),
        ("unknown field 'customer name'", "unknown field 'zip'"),
        ("took 12.5 s", "took 3 s"),
        ("at 2026-01-31T10:00:00Z the lock was held", "at 2025-12-01T09:30:11Z the lock was held"),
        ("token sk_live_4242424242abcdef is bad", "token sk_live_99aa88bb77cc66dd is bad"),
    ],
)
def test_what_differs_from_run_to_run_is_masked(one: str, other: str) -> None:
    assert mask(one) == mask(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("the order was not found", "the invoice was not found"),
        ("permission denied", "no such file"),
        ("facade is missing", "database is missing"),  # made of hex letters, and words
    ],
)
def test_words_are_not_masked(one: str, other: str) -> None:
    assert mask(one) != mask(other)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("httpx.ReadTimeout: no answer after 30 s", "ReadTimeout"),
        ("Error code: 429 - too many requests, retry in 12 s", "429"),
        ("HTTP 503 from upstream 10.0.0.7", "503"),
        ("connect ECONNREFUSED 127.0.0.1:5432", "ECONNREFUSED"),
        ("`billing` failed: the account is locked", "the account is locked"),
        ("openai.RateLimitError: Error code: 429", "RateLimitError 429"),
    ],
)
def test_an_error_is_told_by_its_class_or_code(message: str, kind: str) -> None:
    assert error_class(message) == kind


def test_a_fault_of_two_pairs_of_agents_is_two_issues() -> None:
    assert signature_of(_failure()) != signature_of(_failure(receiver="refunds"))
    assert signature_of(_failure()) != signature_of(_failure(sender="router"))


def test_what_was_dropped_is_told_by_its_kind() -> None:
    lost = _failure(fault="dropped", subject={"dropped": "order 17\nana@example.com"})
    same = _failure(fault="dropped", subject={"dropped": "j@x.example\n2026-01-31"})
    assert signature_of(lost) == signature_of(same)
    assert signature_of(lost).about == "dropped=address,number"


def test_names_that_a_program_makes_up_are_one_agent_and_numbered_ones_are_not() -> None:
    made_up = [_failure(receiver=f"worker-{id_}") for id_ in ("8f2a91c3", "00aa11bb")]
    assert signature_of(made_up[0]) == signature_of(made_up[1])
    assert signature_of(_failure(receiver="tier1")) != signature_of(_failure(receiver="tier2"))


def test_an_unknown_sender_is_not_the_program() -> None:
    assert signature_of(_failure(sender=None)) != signature_of(_failure(sender=""))


def test_a_project_has_its_own_signatures() -> None:
    assert signature_of(_failure(), "a").key != signature_of(_failure(), "b").key


def test_what_many_names_are_about_is_short_and_still_tells_them_apart() -> None:
    names = [f"tool{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(600)]
    first = _failure(subject={"tool": "\n".join(names)})
    second = _failure(subject={"tool": "\n".join([*names[:-1], "another"])})
    assert len(signature_of(first).about) < 250
    assert signature_of(first) != signature_of(second)


def test_a_hostile_text_takes_no_time() -> None:
    for text in ("a" * 1_000_000, "1" * 1_000_000, '"' * 1_000_000, "/" * 100_000, "a@" * 100_000):
        assert len(mask(text)) <= 1_600
        error_class(text)

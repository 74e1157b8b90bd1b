"""A store that is slow, busy, broken or no store: what came stays, and the rest is said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton
from tests.pull.conftest import Answer, Behaviour, FakeStore, spans_of

from baton.model import InputError
from baton.pull import PullError, Query, Store, pull
from baton.pull.phoenix import traces

Serve = Callable[[Behaviour], FakeStore]
PROJECT = ("--project", "desk", "--retry-delay", "0.01")
TRACE = ("--trace", "c6e635b5fbc4ff3a4391052234a906e9")
BUSY = Answer({"detail": "Too Many Requests"}, 429, headers={"Retry-After": "0"})


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_a_busy_store_is_asked_again(status: int, phoenix: FakeStore, baton: Baton) -> None:
    phoenix.first = [Answer("busy", status, "text/plain")] * 2
    done = baton("pull", "phoenix", "--url", phoenix.url, *PROJECT, *TRACE)
    assert (done.code, len(phoenix.asked)) == (0, 3)


def test_a_store_says_how_long_to_wait(phoenix: FakeStore, baton: Baton) -> None:
    phoenix.first = [BUSY]
    done = baton("pull", "phoenix", "--url", phoenix.url, *PROJECT[:2], *TRACE)
    assert (done.code, len(phoenix.asked)) == (0, 2)


def test_a_store_that_asks_for_an_hour_is_given_up(phoenix: FakeStore, baton: Baton) -> None:
    phoenix.first = [BUSY._replace(headers={"Retry-After": "3600"})]
    done = baton("pull", "phoenix", "--url", phoenix.url, *PROJECT, *TRACE)
    assert (done.code, len(phoenix.asked)) == (3, 1)
    assert "answered 429: Too Many Requests; ask for a shorter time range" in done.err


def test_a_store_that_stays_broken_is_an_error_that_says_how_often(
    phoenix: FakeStore, baton: Baton
) -> None:
    phoenix.behave = lambda _: Answer({"detail": "boom"}, 500)
    done = baton("pull", "phoenix", "--url", phoenix.url, *PROJECT, "--retry-attempts", "3")
    assert done.code == 3
    assert "answered 500: boom (3 attempts)" in done.err


def test_no_answer_in_time_is_an_error(phoenix: FakeStore, baton: Baton) -> None:
    phoenix.behave = lambda _: Answer({}, pause=0.3)
    limits = ("--timeout", "0.05", "--retry-attempts", "2")
    done = baton("pull", "phoenix", "--url", phoenix.url, *PROJECT, *limits)
    assert done.code == 3
    assert "no answer within 0.05 s (2 attempts)" in done.err


def test_nobody_there_is_an_error(baton: Baton) -> None:
    done = baton(
        "pull", "phoenix", "--url", "http://127.0.0.1:9", *PROJECT, "--retry-attempts", "2"
    )
    assert done.code == 3
    assert "cannot connect to http://127.0.0.1:9" in done.err
    assert "(2 attempts); is the store running there?" in done.err


def test_an_answer_that_was_cut_off_is_asked_for_again(phoenix: FakeStore, baton: Baton) -> None:
    phoenix.first = [Answer({"data": [], "next_cursor": None}, cut=5)]
    done = baton("pull", "phoenix", "--url", phoenix.url, *PROJECT, *TRACE)
    assert (done.code, len(phoenix.asked)) == (0, 2)


def test_what_came_before_a_failure_stays(serve: Serve, baton: Baton, tmp_path: Path) -> None:
    ids = [f"{number:032x}" for number in range(1, 31)]

    def behave(asked: Any) -> Answer:
        if asked.path.endswith("/traces"):
            return Answer({"data": [{"trace_id": id_} for id_ in ids]})
        if ids[29] in asked.query["trace_id"]:
            return Answer({"data": []}, cut=3)
        spans = [{"trace_id": id_, "span_id": id_[-16:]} for id_ in asked.query["trace_id"]]
        return Answer({"data": spans})

    done = baton("pull", "phoenix", "--url", serve(behave).url, *PROJECT, "--retry-attempts", "2")
    assert done.code == 3
    lines = done.err.splitlines()
    assert lines[0] == "20 traces (20 spans) in traces.jsonl"
    assert lines[1] == "note: this is incomplete: the rest could not be fetched"
    assert "the answer was truncated" in lines[2]
    assert len(spans_of(tmp_path / "traces.jsonl")) == 20


def test_an_older_file_stays_when_nothing_comes(phoenix: FakeStore, baton: Baton) -> None:
    Path("traces.jsonl").write_text("old")
    phoenix.behave = lambda _: Answer({"detail": "boom"}, 500)
    baton("pull", "phoenix", "--url", phoenix.url, *PROJECT, "--retry-attempts", "1")
    assert Path("traces.jsonl").read_text() == "old"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer("<html></html>", media="text/html"), "answered an HTML page"),
        (Answer("hello", media="text/plain"), "answered no JSON"),
        (Answer({"data": [{"name": 1}]}), "did not answer as expected: Expected `str | null`"),
        (Answer({"data": "none"}), "did not answer as expected"),
        (Answer([1]), "did not answer as expected"),
        (Answer("", 302, headers={"Location": "https://sso.test/login?next=x"}), "sso.test/login:"),
    ],
)
def test_another_answer_than_expected_is_one_clear_error(
    answer: Answer, said: str, phoenix: FakeStore, baton: Baton
) -> None:
    phoenix.behave = lambda _: answer
    done = baton("pull", "phoenix", "--url", phoenix.url, *PROJECT, *TRACE)
    assert done.code == 3
    assert said in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("localhost:6006", "is not a valid address"),
        ("ftp://store", "is not a valid address"),
        ("http://store:port", "is not a valid address"),
        ("http://me:secret@store", "contains credentials"),
        ("http://store?project=1", "has a query"),
    ],
)
def test_an_address_that_is_none_is_a_mistake_of_the_caller(
    url: str, said: str, baton: Baton
) -> None:
    done = baton("pull", "phoenix", "--url", url)
    assert (done.code, said in done.err, "secret" in done.err) == (2, True, False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--since", "yesterday"), "--since is not a date or time: `yesterday`"),
        (("--since", "2026-01-01", "--trace", "a"), "either --trace or a time range"),
        (("--since", "2026-01-02", "--until", "2026-01-01"), "--until is not after --since"),
        (("--retry-attempts", "0"), "--retry-attempts have to be over 0"),
        (("--timeout", "0"), "--timeout and"),
    ],
)
def test_options_that_make_no_sense_are_reported_before_anything_is_asked(
    options: tuple[str, ...], said: str, phoenix: FakeStore, baton: Baton
) -> None:
    done = baton("pull", "phoenix", "--url", phoenix.url, *options)
    assert (done.code, said in done.err, phoenix.asked) == (2, True, [])


def test_a_project_belongs_to_phoenix(baton: Baton) -> None:
    done = baton("pull", "langfuse", "--url", "http://127.0.0.1:9", "--project", "x")
    assert (done.code, "--project is for Phoenix" in done.err) == (2, True)


def test_a_cursor_that_comes_again_ends(serve: Serve) -> None:
    page = {"data": [{"trace_id": "a", "span_id": "b"}], "next_cursor": "same"}
    store = serve(lambda _: Answer(page))

    async def run() -> list[Any]:
        client = Store(store.url)
        try:
            return [each async for each in traces(client, Query(traces=("a",)))]
        finally:
            await client.close()

    assert len(asyncio.run(run())) == 1
    assert len(store.asked) == 2


def test_a_file_that_cannot_be_written_is_a_mistake_of_the_caller(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="the traces cannot be written"):
        asyncio.run(pull(_some(1), tmp_path / "folder"))


def test_a_folder_is_made_for_the_file(tmp_path: Path) -> None:
    done = asyncio.run(pull(_some(2), tmp_path / "new" / "t.jsonl"))
    assert isinstance(done.cut, PullError)
    assert (done.traces, done.spans) == (2, 2)
    lines = (tmp_path / "new" / "t.jsonl").read_text().splitlines()
    assert [json.loads(line)["resourceSpans"][0]["scopeSpans"] for line in lines] == [
        [{"spans": [{"name": "0"}]}],
        [{"spans": [{"name": "1"}]}],
    ]


async def _some(count: int) -> AsyncIterator[dict[str, Any]]:
    for number in range(count):
        yield {"resourceSpans": [{"scopeSpans": [{"spans": [{"name": str(number)}]}]}]}
    raise PullError("no more")

"""Limits that hold wherever bytes come from: servers, libraries, processes."""

from __future__ import annotations

import asyncio
import gzip
import io
import random
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.providers.conftest import Hooks

from baton.http.responses import LimitReached, Limits, Meter, of_messages, unpacker
from baton.model import Case, Content, ExpectedTurn, ProviderError, Source
from baton.providers.claude_sdk import Conversation, Played
from baton.providers.instrument.worker_protocol import Answer, TooLong, receive


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 4096])
def test_events_are_counted_however_the_bytes_arrive(end: bytes, size: int) -> None:
    stream = (b"data: {}" + end + end) * 1000
    pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
    _count(pieces, Limits(1, events=1000, event_mib=0.01))
    with pytest.raises(LimitReached, match="more than 990 events"):
        _count(pieces, Limits(1, events=990))


def _count(pieces: list[bytes], limits: Limits) -> None:
    meter = Meter(limits, "sse")
    for piece in pieces:
        meter.add(piece)


@pytest.mark.parametrize("size", [1, 100, 65536])
def test_an_honest_answer_is_unpacked_as_it_was(size: int) -> None:
    plain = random.Random(7).randbytes(50_000) + bytes(3_000_000)
    for kind, packed in [
        ("gzip", gzip.compress(plain)),
        ("x-gzip", gzip.compress(plain)),
        ("deflate", zlib.compress(plain)),
        ("deflate", zlib.compress(plain)[2:-4]),  # as some servers send it
        ("identity", plain[:100_000]),
    ]:
        unpack = unpacker(kind)
        pieces = [
            piece for at in range(0, len(packed), size) for piece in unpack(packed[at : at + size])
        ]
        assert b"".join(pieces) == plain[: 100_000 if kind == "identity" else None]
        assert max(map(len, pieces)) <= 2**20


class _Talkative:
    async def send(self, message: str) -> None:
        pass

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        while True:
            yield {"type": "assistant", "message": {"role": "assistant", "content": "and on"}}


@pytest.mark.parametrize(
    ("mib", "events", "option"), [(64, 500, "max_events"), (0.01, 10**6, "max_answer_mib")]
)
def test_messages_of_claude_code_without_an_end_end_the_case(
    mib: float, events: int, option: str
) -> None:
    @asynccontextmanager
    async def connect() -> AsyncIterator[Conversation]:
        yield _Talkative()

    case = Case(id="c", turns=[ExpectedTurn(input=Content(text="hi"))])
    played = Played(
        connect,
        case,
        Hooks(None, folder=Path()),
        source=Source(format="claude-stream"),
        catalog={},
        timeout=60,
        limits=of_messages(mib, events),
    )
    with pytest.raises(ProviderError, match=option) as error:
        asyncio.run(played.play())
    assert error.value.trace is not None


def test_a_process_cannot_announce_a_message_that_fills_the_memory() -> None:
    with pytest.raises(TooLong, match="longer than 256 MiB"):
        receive(io.BytesIO((1 << 60).to_bytes(8, "big") + b"{}"), Answer)

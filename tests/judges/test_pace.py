"""Requests go out at the pace that was set, and slower when a server asks for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from tests import virtual_time

from baton.judges.parse_answer import CallError
from baton.judges.retries import Brake, Pace


async def times(pace: Pace, count: int, tokens: int = 1, hold: float = 0.0) -> list[float]:
    """Return when each of some turns came, in seconds from now."""
    loop = asyncio.get_running_loop()
    start = loop.time()

    async def one() -> float:
        async with pace.turn(tokens):
            at = loop.time() - start
            await asyncio.sleep(hold)
            return at

    return await asyncio.gather(*(one() for _ in range(count)))


def near(found: list[float], wanted: list[float]) -> bool:
    pairs = zip(found, wanted, strict=True)
    return all(abs(at - want) < 0.01 for at, want in pairs)


def test_no_more_are_under_way_at_once_than_may_be() -> None:
    found = virtual_time.run(times(Pace(2), 5, hold=0.2))
    assert near(found, [0, 0, 0.2, 0.2, 0.4])


def test_what_would_start_all_at_once_starts_one_after_the_other() -> None:
    async def twice() -> tuple[list[float], list[float], list[float]]:
        pace = Pace(20)
        first, later = await times(pace, 20), await times(pace, 20)
        pace.brake.hold(0.1)
        return first, later, await times(pace, 20)

    first, later, after = virtual_time.run(twice())
    assert first == sorted(first)
    assert max(first) - min(first) >= 0.05
    assert max(later) - min(later) < max(first) - min(first)
    assert max(after) - min(after) >= 0.05


def test_no_more_go_out_in_a_minute_than_may() -> None:
    found = virtual_time.run(times(Pace(10, 2, minute=0.3), 5))
    assert near(found, [0, 0, 0.3, 0.3, 0.6])


def test_tokens_of_a_minute_are_kept_to_as_well() -> None:
    found = virtual_time.run(times(Pace(10, None, 100, minute=0.3), 4, tokens=40))
    assert near(found, [0, 0, 0.3, 0.3])


def test_what_is_larger_than_a_minute_goes_out_alone() -> None:
    found = virtual_time.run(times(Pace(10, None, 100, minute=0.3), 2, tokens=500))
    assert near(found, [0, 0.3])


def test_tokens_that_were_not_used_are_given_back() -> None:
    async def thrifty() -> list[float]:
        pace = Pace(10, None, 100, minute=0.3)
        async with pace.turn(90) as turn:
            turn.used(10)
        return await times(pace, 2, tokens=40)

    assert near(virtual_time.run(thrifty()), [0, 0])


def test_a_server_that_asks_for_patience_slows_everybody() -> None:
    async def slowed() -> list[float]:
        brake = Brake()
        one, other = Pace(4, brake=brake), Pace(4, brake=brake)
        brake.hold(0.3)
        return [*(await asyncio.gather(times(one, 1), times(other, 1)))[1]]

    assert near(virtual_time.run(slowed()), [0.3])


def failing(*errors: CallError) -> tuple[Callable[[], Awaitable[str]], list[float]]:
    """Fail in each of these ways, then answer; return also when each attempt was."""
    attempts: list[float] = []
    left = list(errors)

    async def send() -> str:
        attempts.append(asyncio.get_running_loop().time())
        if left:
            raise left.pop(0)
        return "done"

    return send, attempts


def persist(retries: int, *errors: CallError) -> tuple[str, list[float]]:
    send, attempts = failing(*errors)
    done = virtual_time.run(Pace(1).persist(send, retries))
    return done, [at - attempts[0] for at in attempts]


def test_what_fails_on_the_way_is_sent_again_later_each_time() -> None:
    away = CallError("outage", "away", again=True)
    done, attempts = persist(3, away, away)
    assert done == "done"
    assert attempts[1] >= 0.49
    assert attempts[2] - attempts[1] >= 0.99


def test_it_is_given_up_after_so_many_retries() -> None:
    send, attempts = failing(*[CallError("rate_limit", "slow", again=True, retry_after=0.0)] * 9)
    with pytest.raises(CallError, match="slow"):
        virtual_time.run(Pace(1).persist(send, 2))
    assert len(attempts) == 3


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (CallError("rejected", "no such model"), 1),
        (CallError("rate_limit", "tomorrow", again=True, retry_after=86_400.0), 1),
        (CallError("timeout", "slow", again=True, retry_after=0.0), 2),
    ],
)
def test_what_waiting_does_not_help_is_not_sent_again(error: CallError, attempts: int) -> None:
    send, made = failing(*[error] * 9)
    with pytest.raises(CallError):
        virtual_time.run(Pace(1).persist(send, 4))
    assert len(made) == attempts

"""Those who want the same at the same time share one answer."""

from __future__ import annotations

import asyncio

import pytest

from baton.judges.judge import Once


class Work:
    """Counts how often it is done."""

    def __init__(self, fails: bool = False) -> None:
        self.done, self.fails = 0, fails

    async def __call__(self) -> int:
        await asyncio.sleep(0.02)
        self.done += 1
        if self.fails:
            raise ValueError("no")
        return self.done


def test_work_is_done_once_for_all_who_wait_and_again_for_those_who_come_later() -> None:
    async def run() -> list[tuple[int, bool]]:
        once, work = Once[int](), Work()
        together = await asyncio.gather(*(once.get("k", work) for _ in range(3)))
        return [*together, await once.get("k", work)]

    assert asyncio.run(run()) == [(1, False), (1, True), (1, True), (2, False)]


def test_an_exception_is_everybodys() -> None:
    async def run() -> list[BaseException | tuple[int, bool]]:
        once, work = Once[int](), Work(fails=True)
        return await asyncio.gather(
            *(once.get("k", work) for _ in range(3)), return_exceptions=True
        )

    found = asyncio.run(run())
    assert [type(each) for each in found] == [ValueError] * 3
    assert len({id(each) for each in found}) == 1


def test_when_the_one_who_works_gives_up_another_one_does_it() -> None:
    async def run() -> tuple[tuple[int, bool], int]:
        once, work = Once[int](), Work()
        first = asyncio.create_task(once.get("k", work))
        await asyncio.sleep(0)
        second = asyncio.create_task(once.get("k", work))
        await asyncio.sleep(0)
        first.cancel()
        return await second, work.done

    assert asyncio.run(run()) == ((1, False), 1)


def test_when_all_give_up_nobody_does_it() -> None:
    async def run() -> int:
        once, work = Once[int](), Work()
        tasks = [asyncio.create_task(once.get("k", work)) for _ in range(3)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with pytest.raises(asyncio.CancelledError):
                await task
        await asyncio.sleep(0.05)
        return work.done

    assert asyncio.run(run()) == 0

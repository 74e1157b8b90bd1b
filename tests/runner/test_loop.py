"""Running to the end: answers, errors, and what is left when it comes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from textwrap import dedent

import pytest

from baton.model import Terminated
from baton.runner.loop import run, run_until_terminated


async def answer(value: int) -> int:
    await asyncio.sleep(0)
    return value


async def boom() -> None:
    raise ValueError("boom")


def test_what_it_returns_and_raises_comes_out() -> None:
    assert run(answer(7)) == 7
    with pytest.raises(ValueError, match="boom"):
        run(boom())


def test_tasks_that_are_left_are_cancelled_and_may_clean_up() -> None:
    log: list[str] = []

    async def behind() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            await asyncio.sleep(0.05)
            log.append("clean")

    async def main() -> None:
        log.append(asyncio.ensure_future(behind()).get_name())
        await asyncio.sleep(0.01)

    run(main())
    assert log[1:] == ["clean"]


def test_tasks_that_will_not_end_are_left_alone() -> None:
    kept: list[asyncio.Task[None]] = []

    async def stubborn() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.3)

    async def main() -> None:
        kept.append(asyncio.ensure_future(stubborn()))
        await asyncio.sleep(0.01)

    began = time.monotonic()
    run(main(), grace=0.1)
    assert time.monotonic() - began < 40
    assert not kept[0].done()


def test_threads_answer_and_raise_and_end_with_the_process() -> None:
    async def main() -> tuple[int, bool]:
        with pytest.raises(SystemExit):
            await asyncio.to_thread(exit_at_once)
        daemon = await asyncio.to_thread(lambda: threading.current_thread().daemon)
        return await asyncio.to_thread(lambda: 7), daemon

    assert run(main()) == (7, True)


def exit_at_once() -> None:
    raise SystemExit(3)


def test_sigterm_cancels_and_lets_it_clean_up() -> None:
    log: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), signal.SIGTERM)
        try:
            await asyncio.sleep(10)
        finally:
            await asyncio.sleep(0.05)
            log.append("clean")

    with pytest.raises(Terminated) as raised:
        run_until_terminated(main())
    assert raised.value.signal == signal.SIGTERM
    assert log == ["clean"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_it_runs_in_any_thread() -> None:
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(run_until_terminated(answer(7))))
    thread.start()
    thread.join(60)
    assert answers == [7]


@pytest.mark.parametrize("start", ["asyncio.run(main())", "run(main(), grace=0.1)"])
def test_a_task_that_is_left_alone_does_not_keep_the_process_and_says_nothing(start: str) -> None:
    code = f"""
    import asyncio, time
    from baton.runner.loop import run, stop
    async def deaf():
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass
    async def main():
        task = asyncio.ensure_future(deaf())
        await asyncio.sleep(0)
        await stop(task, 0.1)
        return task
    task = {start}
    print(task.done())
    """
    command = [sys.executable, "-c", dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")

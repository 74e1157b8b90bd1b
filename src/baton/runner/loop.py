"""Running a coroutine to its end, even if user code never ends."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, ParamSpec, TypeVar

from baton.model import Terminated

GRACE = 5.0
"""Seconds that cancelled tasks have to clean up; after that they are abandoned."""

P = ParamSpec("P")
T = TypeVar("T")

_left_alone: set[asyncio.Task[Any]] = set()


def run(main: Coroutine[Any, Any, T], *, grace: float = GRACE) -> T:
    """Like ``asyncio.run``, without waiting for tasks or threads that never end."""
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(DaemonThreads())
        try:
            return runner.run(main)
        finally:
            runner.run(_end_tasks(grace))


_ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


def run_until_terminated(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end; on SIGTERM or SIGHUP cancel running tasks, so that they can clean up.

    A signal that is ignored (SIGHUP, by ``nohup``) stays ignored.

    Raises:
        Terminated: one of these came.
    """
    before = {each: signal.getsignal(each) for each in _ENDING}
    listened: list[int] = []
    came: list[int] = []

    async def listening() -> T:
        task = asyncio.current_task()

        def end(number: int) -> None:
            came.append(number)
            if task is not None and len(came) == 1:
                task.cancel()

        # asyncio raises these if it cannot handle signals: Windows has no such signals, and only
        # the main thread gets any. They then end the process as usual.
        with suppress(NotImplementedError, RuntimeError):
            for each, handler in before.items():
                if handler is not signal.SIG_IGN:
                    asyncio.get_running_loop().add_signal_handler(each, end, each)
                    listened.append(each)
        return await main

    try:
        return run(listening())
    except asyncio.CancelledError:
        if came:
            raise Terminated(came[0]) from None
        raise
    finally:
        for each, handler in before.items():  # the loop leaves the default behind
            if each in listened:
                signal.signal(each, handler)


def run_anywhere(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end; in a separate thread if this one already runs an event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run(main)
    answer: Future[T] = Future()
    cancel: list[Callable[[], object]] = []

    async def cancellable() -> T:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is not None:
            cancel.append(lambda: loop.call_soon_threadsafe(task.cancel))
        return await main

    def work() -> None:
        try:
            answer.set_result(run(cancellable()))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            answer.set_exception(error)

    thread = threading.Thread(target=work, name="baton-scoring", daemon=True)
    thread.start()
    try:
        return answer.result()
    except KeyboardInterrupt:
        for each in cancel:
            each()
        thread.join(GRACE)
        raise


@asynccontextmanager
async def entered(resource: object) -> AsyncIterator[None]:
    """Enter a provider or a judge, if it is a context manager."""
    if isinstance(resource, AbstractAsyncContextManager):
        async with resource:
            yield
    else:
        yield


async def stop(task: asyncio.Task[Any], grace: float) -> None:
    """Cancel a task and wait for its end; after the grace period it is abandoned."""
    task.cancel()
    await asyncio.wait([task], timeout=grace)
    if not task.done():
        leave_alone(task)


def leave_alone(task: asyncio.Task[Any]) -> None:
    """Let a task continue until its loop is closed; ``asyncio.run`` does not wait for it either."""
    asyncio.tasks._unregister_task(task)  # documented, for those who extend asyncio
    task._log_destroy_pending = False  # type: ignore[attr-defined]  # it is meant to be pending
    _left_alone.add(task)
    task.add_done_callback(_left_alone.discard)


async def _end_tasks(grace: float) -> None:
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        _, stuck = await asyncio.wait(left, timeout=grace)
        for task in stuck:
            leave_alone(task)


class DaemonThreads(ThreadPoolExecutor):
    """Runs each call in a daemon thread."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a thread for the call."""
        future: Future[T] = Future()

        def work() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                answer = fn(*args, **kwargs)
            except BaseException as error:  # noqa: BLE001 - handed to whoever awaits it
                future.set_exception(error)
            else:
                future.set_result(answer)

        threading.Thread(target=work, name="baton-executor", daemon=True).start()
        return future

"""Those who want the same at the same time share one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Once(Generic[T]):
    """Work that is under way, by its key; belongs to one event loop."""

    def __init__(self) -> None:
        self._under_way: dict[str, asyncio.Future[T]] = {}

    async def get(self, key: str, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Do the work, or wait for whoever does it; tell whether it was somebody else's.

        An exception is everybody's. When the one who does it is cancelled, another one does it.
        """
        while (others := self._under_way.get(key)) is not None:
            try:
                return await asyncio.shield(others), True
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if not others.cancelled() or (task is not None and task.cancelling()):
                    raise
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._under_way[key] = future
        try:
            result = await work()
        except Exception as error:
            future.set_exception(error)
            future.exception()  # nobody has to be waiting for it
            raise
        except BaseException:
            future.cancel()
            raise
        else:
            future.set_result(result)
            return result, False
        finally:
            del self._under_way[key]

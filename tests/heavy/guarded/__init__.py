"""The same program in each framework: a desk that hands work to a lab, with scripted models.

``PLAYS`` of each module has the ways in which its framework runs an agent.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

KEY = "sk-proj-Ab3dEf6hIj9kLmN0pQrStUvWxYz12345"
ANSWER = f"The sample is clean. The key is {KEY}."
CHARGES: list[str] = []
"""What the tool `charge` was called with; nobody charges when a guard refuses."""

Calls = list[tuple[str, dict[str, Any]]]
LAB_MAY_ANSWER = threading.Event()
"""A lab waits for it, so that a test can have two at work at once."""
LAB_MAY_ANSWER.set()
_LONGEST = 10.0


def wait_for_leave() -> None:
    """Wait until the lab may answer."""
    assert LAB_MAY_ANSWER.wait(_LONGEST), "nobody let the lab answer"


async def leave_to_answer() -> None:
    """Like :func:`wait_for_leave` while others of this loop continue."""
    end = time.monotonic() + _LONGEST
    while not LAB_MAY_ANSWER.is_set():
        assert time.monotonic() < end, "nobody let the lab answer"
        await asyncio.sleep(0.001)


def next_calls(calls: Calls, heard: int, *, together: bool) -> Calls:
    """Return what a scripted model calls next, after it has heard so many results."""
    return calls[heard:] if together else calls[heard : heard + 1]

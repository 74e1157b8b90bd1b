"""The process of one conversation with an agent: `python -m baton.session.chat_process`."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

import msgspec

from baton.model import Case, Content, ExpectedTurn, InputError, ProviderError, Session, Trace
from baton.model.mask_known_secrets import mask
from baton.model.redact import ON
from baton.providers.user_functions import worded

from .agent_under_test import make_agent
from .chat import Begin, Seen

Tell = Callable[[Seen], None]


def main() -> None:
    """Talk to the agent until there is nothing more to say."""
    # Agents' prints must not mix with the messages of this process.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    incoming = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    begin = msgspec.json.decode(incoming.readline(), type=Begin)

    def tell(seen: Seen) -> None:
        out.write(msgspec.json.encode(seen) + b"\n")

    try:
        asyncio.run(_talk(begin, incoming, tell))
    except (InputError, ProviderError) as error:
        trace = getattr(error, "trace", None)
        tell(Seen(trace=_shown(trace), error=mask(ON.text(str(error)))))
    except Exception as error:  # noqa: BLE001 - an agent may raise anything
        tell(Seen(error=mask(ON.text(f"the agent raised {worded(error)}"))))
    # Do not wait for threads that an agent left running.
    sys.stderr.flush()
    os._exit(0)


async def _talk(begin: Begin, incoming: BinaryIO, tell: Tell) -> None:
    heard: asyncio.Queue[str | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def listen() -> None:
        for line in incoming:
            message = msgspec.json.decode(line, type=str)
            loop.call_soon_threadsafe(heard.put_nowait, message)
        # The caller is gone, and an agent may be in the middle of an answer.
        loop.call_soon_threadsafe(heard.put_nowait, None)
        loop.call_soon_threadsafe(loop.call_later, _GRACE, os._exit, 0)

    threading.Thread(target=listen, name="baton chat", daemon=True).start()
    provider = make_agent(begin.agent)
    asked = False
    watched: list[Callable[[], Trace]] = []

    async def next_message(trace: Trace) -> ExpectedTurn | None:
        nonlocal asked
        asked = True
        watched.clear()
        more = len(trace.turns) < len(case.turns)
        tell(Seen(trace=_shown(trace), waits=not more))
        if more:
            return None
        message = await heard.get()
        return None if message is None else _turn(message)

    provider.hooks.next_message = next_message
    provider.hooks.watch = watched.append
    following = asyncio.create_task(_follow(watched, tell))
    messages = list(begin.messages)
    async with provider:
        while True:
            case = Case(
                id="chat",
                turns=[_turn(message) for message in messages],
                session=Session(user=begin.user),
                state=begin.state,
            )
            trace = await provider(case)
            if asked:
                following.cancel()
                return
            watched.clear()
            # It only plays whole conversations: each message plays one from its start.
            tell(Seen(trace=_shown(trace), waits=True, again=True))
            message = await heard.get()
            if message is None:
                return
            messages.append(message)


async def _follow(watched: list[Callable[[], Trace]], tell: Tell) -> None:
    """Report the unfinished turn: the last of ``watched``, if it is new."""
    reported = b""
    pause = _STEP
    while True:
        await asyncio.sleep(pause)
        if not watched:
            continue
        began = time.monotonic()
        seen = watched.pop()
        watched.clear()
        # An incomplete turn may not be readable at all; the final record has everything.
        with suppress(Exception):
            trace = seen()
            # The program may still be recording into the same turn.
            turn = msgspec.structs.replace(
                trace.turns[-1], status="incomplete", error=None, ended=None
            )
            now = _shown(msgspec.structs.replace(trace, turns=[*trace.turns[:-1], turn]))
            plain = msgspec.json.encode(now)
            if plain != reported:
                tell(Seen(trace=now))
                reported = plain
        # Repeated reading of the partial record must not slow down the agents.
        pause = max(_STEP, 10 * (time.monotonic() - began))


_STEP = 0.3
"""Seconds between two reports of an agent's work."""
_GRACE = 2.0
"""Seconds that an agent has to end what it is doing."""


def _turn(message: str) -> ExpectedTurn:
    return ExpectedTurn(input=Content(text=message))


def _shown(trace: Any) -> Trace | None:
    """Return a record without secrets, as for all readers and providers."""
    return ON.trace(trace) if isinstance(trace, Trace) else None


if __name__ == "__main__":
    main()

"""Shared parts of the hooks of all frameworks: runs of agents, and tool calls.

If an agent starts during a tool call of another agent, that agent has made a dispatch, whether the
framework knows it (a tool that is an agent) or not (a function that runs one). The tool's result is
the answer, which is checked before the caller reads it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import msgspec

from baton.model import RefusedError

from .runtime import Ask, Guard, Place


class Call(msgspec.Struct):
    """A tool call: the caller, the dispatch that it makes if known, and the runs that it started.

    ``granted`` is the dispatch until its agent starts; the agent may also start in another way.
    """

    guard: Guard
    by: Place
    name: str
    arguments: Any = None
    granted: Place | None = None
    started: list[Place] = []
    before: Call | None = None

    def read(self, answer: Any) -> Any:
        """Return what the caller may read of the answer.

        Raises:
            RefusedError: the caller may read nothing of it.
        """
        if not self.started:
            self.guard.note_call(self.by, self.name, self.arguments, answer)
        for place in {each.agent: each for each in self.started}.values():
            answer = self.guard.answer(place, answer)
        return answer

    def read_blocks(self, content: Any) -> Any:
        """Like :meth:`read`, for an answer that may be a list of content blocks.

        Rules apply to the text of the blocks: `[{"text": "Done."}]` is "Done.".
        """
        blocks = content if isinstance(content, list) else []
        texts = [each.get("text") for each in blocks if isinstance(each, dict)]
        only_text = [each for each in texts if isinstance(each, str)]
        if not blocks or len(only_text) < len(blocks):
            return self.read(content)
        text = "\n".join(only_text)
        read = self.read(text)
        if read == text:
            return content
        return [{**blocks[0], "text": read}]


_CALL: ContextVar[Call | None] = ContextVar("baton_guard_call", default=None)


def begin_call(
    guard: Guard,
    by: Place,
    name: str,
    arguments: Any = None,
    *,
    to: str | None = None,
    prompt: Any = None,
    ask: Ask | None = None,
) -> Call:
    """Check a tool call, or the dispatch that it makes if ``to`` names the agent.

    Agents that start in this context from now on are started by the call.

    Raises:
        RefusedError: it may not be made.
    """
    call = Call(guard, by, name, arguments, before=_CALL.get())
    if to is None:
        guard.call(by, name, arguments, ask=ask)
    else:
        call.granted = guard.start(to, prompt, by=by, ask=ask)
        call.started.append(call.granted)
    _CALL.set(call)
    return call


def end_call(call: Call) -> None:
    """Record that a call has ended, with any result."""
    for place in call.started:
        call.guard.stop(place)
        call.guard.forget(place)
    if _CALL.get() is call:
        _CALL.set(call.before)


@contextmanager
def calling(
    guard: Guard, by: Place, name: str, arguments: Any = None, **named: Any
) -> Iterator[Call]:
    """Like :func:`begin_call`, for a block."""
    call = begin_call(guard, by, name, arguments, **named)
    try:
        yield call
    finally:
        end_call(call)


def call_now(
    guard: Guard,
    by: Place,
    name: str,
    arguments: Any,
    run: Callable[[], Any],
    **named: Any,
) -> Any:
    """Call a tool if that is allowed; return its result, or the reason why not."""
    try:
        with calling(guard, by, name, arguments, **named) as call:
            return call.read(run())
    except RefusedError as refused:
        return str(refused)


async def call_later(
    guard: Guard,
    by: Place,
    name: str,
    arguments: Any,
    run: Callable[[], Awaitable[Any]],
    **named: Any,
) -> Any:
    """Like :func:`call_now`, for an async tool."""
    try:
        with calling(guard, by, name, arguments, **named) as call:
            return await guard.later(call.read, await run())
    except RefusedError as refused:
        return str(refused)


def begin_run(guard: Guard, agent: str, prompt: Any = None, *, shared: bool = False) -> Place:
    """Check whether an agent may start, and return the program's place while it works.

    ``shared``: the agent reads the conversation so far, if the program starts it.

    Raises:
        RefusedError: it may not.
    """
    call = current_call(guard)
    if call is None:
        return guard.start(agent, prompt, by=guard.place, shared=shared or None)
    granted = call.granted
    if granted is not None and granted.agent == agent:
        call.granted = None
        return granted
    place = guard.start(agent, prompt, by=call.by)
    call.started.append(place)
    return place


def tell(
    guard: Guard,
    place: Place,
    *,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    cached: int | None = None,
    model: str | None = None,
) -> None:
    """Report the usage of a model request.

    ``input_tokens`` exclude the ``cached`` ones. The cost is known if the guard has a price for the
    model, or genai-prices is installed.
    """
    from baton.model.prices import cost_of
    from baton.model.trace import Usage
    from baton.model.views import token_count

    if input_tokens is None and output_tokens is None:
        return
    usage = Usage(
        input_tokens=input_tokens, output_tokens=output_tokens, cache_read_tokens=cached, requests=1
    )
    cost = None if model is None else cost_of(usage, model, guard.prices)
    guard.used(place, tokens=token_count(usage), cost_usd=cost)


def current_call(guard: Guard) -> Call | None:
    """Return the current tool call."""
    call = _CALL.get()
    return call if call is not None and call.guard is guard else None

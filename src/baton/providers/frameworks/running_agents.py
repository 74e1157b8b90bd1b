"""Track which agent is running, and whether a run of another agent is work that it passes on.

Agents call others in three ways: by a hand-off, by a tool that is an agent, and in the body of a
function tool (``return (await refunds.run(task)).output``). A framework sees the last one as a
plain function. The agents that its code uses show which agent it hands work to.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import msgspec

from baton.model import Content
from baton.stand_ins import Play, Request


class AtWork(NamedTuple):
    """A running agent, the tool that it has called, and the id of the call."""

    agent: str
    tool: str | None = None
    call: str | None = None


_AT_WORK: ContextVar[AtWork | None] = ContextVar("baton_at_work", default=None)
_OPENING: WeakKeyDictionary[Play, str] = WeakKeyDictionary()


@contextmanager
def at_work(agent: str, tool: str | None = None, call: str | None = None) -> Iterator[None]:
    """Set the running agent for a block, including tasks and threads that start in it."""
    token = _AT_WORK.set(AtWork(agent, tool, call))
    try:
        yield
    finally:
        _AT_WORK.reset(token)


def now() -> AtWork | None:
    """Return the running agent."""
    return _AT_WORK.get()


def put(at: AtWork | None) -> None:
    """Set the running agent from here on.

    This is for generators, because the block of a generator can end in another context.
    """
    _AT_WORK.set(at)


def begin(agent: str) -> None:
    """Set the running agent for the rest of this context."""
    _AT_WORK.set(AtWork(agent))


def handed_on(play: Play, agent: str, prompt: Any) -> Request | None:
    """Return the call that an agent's run stands for, if stand-ins apply to it.

    The first agent that a program runs opens a turn, so its run is not a dispatch. A run that the
    program itself starts afterwards (``experts[route].run(message)``) is one. A play does not end
    at an agent that runs beside another and not on its behalf, for example an agent that a
    guardrail uses to check the message.
    """
    caller = _AT_WORK.get()
    opening = _OPENING.setdefault(play, agent) if caller is None else None
    if agent == opening or not play.stands_in_for(agent):
        return None
    if caller is None:
        return Request(agent, prompt, opening, kind="agent", dispatch="sequence")
    request = Request(agent, prompt, caller.agent, kind="agent", id=caller.call, tool=caller.tool)
    return None if play.stops and caller.tool is None else request


def receiver_of(
    function: Callable[..., Any] | None, arguments: Any, name_of: Callable[[Any], str | None]
) -> str | None:
    """Return the agent that a function tool hands work to; ``None`` if there is none or in doubt.

    A function that uses one agent hands work to it. If a function uses several, the receiver is the
    one that an argument names (``delegate(to="refunds", task="...")``).

    Args:
        function: the function of the tool.
        arguments: the arguments of the call.
        name_of: returns the name of an agent, and ``None`` for anything else.
    """
    used = agents_used_by(function, name_of) if function is not None else {}
    names = {name_of(agent) for agent in used.values()}
    if len(names) == 1:
        return names.pop()
    values = arguments.values() if isinstance(arguments, dict) else ()
    named = {name_of(used[value]) for value in values if isinstance(value, str) and value in used}
    return named.pop() if len(named) == 1 else None


def content(stated: Content | None) -> Any:
    """Return a recorded result in the form in which a tool returns it: text or data."""
    return "" if stated is None else stated.value()


async def answered(
    play: Play, request: Request, receiver: str | None, run: Callable[[], Awaitable[Any]]
) -> Any:
    """Return the answer to a call of a function tool, or of the ``receiver`` it hands work to.

    If the tool itself must not run, its call is the dispatch. If it may run, the stand-ins are
    asked for the agent in its body. Raises the same errors as :meth:`Play.tool`.
    """
    request = request._replace(to=receiver)
    sent = dispatched(play, request, receiver)
    if sent is None:
        return await play.tool(request, run)
    return await play.tool(sent, lambda: play.tool(request, run))


def answered_now(play: Play, request: Request, receiver: str | None, run: Callable[[], Any]) -> Any:
    """Like :func:`answered`, for a framework that does not await; raises the same errors."""
    request = request._replace(to=receiver)
    sent = dispatched(play, request, receiver)
    if sent is None:
        return play.tool_now(request, run)
    return play.tool_now(sent, lambda: play.tool_now(request, run))


def dispatched(play: Play, request: Request, receiver: str | None) -> Request | None:
    """Return the dispatch that a tool call stands for, if stand-ins apply to it."""
    if receiver is None or play.runs(request) or (is_listed(play, request) and not play.stops):
        return None
    prompt = prompt_of(request.input, receiver)
    sent = Request(
        receiver,
        prompt,
        request.agent,
        kind="agent",
        id=request.id,
        tool=request.name,
        arguments=request.input,
    )
    return None if not play.stops and play.runs(sent) else sent


def realtime(agent: str) -> str:
    """Return why a realtime session is not opened: its tools are called in other ways."""
    return f"the realtime session of `{agent}` was not opened: no stand-in answers for its tools"


def is_listed(play: Play, request: Request) -> bool:
    """Return whether the stand-ins list a tool under its own name."""
    caller = play.stand_ins.agents.get(request.agent or "")
    own = caller.tools if caller is not None else {}
    return request.name in own or request.name in play.stand_ins.tools


def prompt_of(arguments: Any, receiver: str) -> Any:
    """Return the prompt in the arguments of the tool that hands work to an agent.

    The prompt is the only string among them. If there are several, it is all the arguments.
    """
    values = list(arguments.values()) if isinstance(arguments, dict) else [arguments]
    texts = [each for each in values if isinstance(each, str) and each != receiver]
    if len(texts) == 1:
        return texts[0]
    return msgspec.json.encode(arguments, enc_hook=repr).decode("utf-8", "replace")


def agents_used_by(
    function: Callable[..., Any], name_of: Callable[[Any], str | None]
) -> dict[str, Any]:
    """Return the agents that the code of a function uses, by their names and by those in the code.

    It sees global names, names of an enclosing function, attributes of modules, and the contents of
    mappings and lists among these. It also looks into functions of the same module that the
    function calls.
    """
    agents: dict[str, Any] = {}
    for key, value in _values(function, set(), 0):
        name = name_of(value)
        if name is not None:
            agents[key] = agents[name] = value
    return agents


_DEEPEST = 3
"""How many levels of function calls are followed: a tool can use helpers that call helpers."""


def _values(function: Any, seen: set[int], depth: int) -> Iterator[tuple[str, Any]]:
    function = inspect.unwrap(getattr(function, "func", function))
    function = getattr(function, "__func__", function)
    if not isinstance(function, FunctionType) or id(function) in seen or depth > _DEEPEST:
        return
    seen.add(id(function))
    globals_, attributes = _names(function.__code__)
    values = {name: function.__globals__[name] for name in globals_ if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # the variable is not set yet
            continue
    for name, value in values.items():
        if isinstance(value, ModuleType):
            yield from ((each, vars(value)[each]) for each in attributes if each in vars(value))
        elif isinstance(value, FunctionType) and value.__module__ == function.__module__:
            yield from _values(value, seen, depth + 1)
        elif isinstance(value, dict):
            yield from ((key, each) for key, each in value.items() if isinstance(key, str))
        elif isinstance(value, list | tuple):
            yield from ((name, each) for each in value)
        else:
            yield name, value


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the global names and the names of attributes in the code of a function.

    `co_names` holds both: in `analyst.run(task)`, `run` is not the module's function `run`, which
    may ask another agent.
    """
    globals_, attributes = set[str](), set[str]()
    for each in dis.get_instructions(code):
        if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            globals_.add(each.argval)
        elif each.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.add(each.argval)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            inner_globals, inner_attributes = _names(inner)
            globals_ |= inner_globals
            attributes |= inner_attributes
    return globals_, attributes

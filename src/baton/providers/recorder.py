"""Record what the agents of a plain Python program do, with a few lines in the program.

    import baton


    def desk(message):
        with baton.record_agent("desk", message) as desk:
            prompt = f"Is it safe? {message}"
            with baton.record_dispatch("lab", prompt) as sent:
                sent.result = lab(prompt)
            desk.output = f"The lab says: {sent.result}"
        return desk.output


    def lab(task):
        with baton.record_agent("lab", task) as lab:
            rows = look_up(task)
            lab.called("look_up", {"task": task}, rows)
            lab.output = judge(rows)
        return lab.output

The same in fewer lines, for functions whose first parameter is the task:

    @baton.tool
    def look_up(task): ...


    @baton.agent("lab")
    def lab(task):
        return judge(look_up(task))

Stand-ins can answer for tools and agents that are marked like this.

If nothing is being recorded, these lines do next to nothing. The ``python`` provider records each
message of a case; ``record_turn`` does it for a program that calls its agents itself. Under
`baton record` and ``baton.otel``, each message is written when the first agent has answered.
"""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Literal, TypeVar
from uuid import uuid4

import msgspec

from baton.model import (
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Ref,
    RefusedError,
    Said,
    Source,
    ToolCall,
    Trace,
    Turn,
    Usage,
    usage_problems,
)
from baton.model.current_guard import DECISIONS, WATCHER, Watcher
from baton.model.trace import SCHEMA_VERSION
from baton.model.views import sum_usage
from baton.stand_ins.play import Play, Request, current

from .user_functions import NOT_JSON, as_json, named

_NOT_TOLD = ("usage", "tools_offered", "model", "inside")
"""Fields of a run that cannot be recorded here, or only by :meth:`RecordedAgent.asked_model`."""
_TOOLS = ("tools_allowed", "tools_source")


class RecordedAgent:
    """An agent at work. ``output`` is its answer. The record counts as complete."""

    def __init__(self, turn: RecordedTurn, run: AgentRun) -> None:
        self._turn = turn
        self._run = run
        self.output: Any = None

    def said(self, text: Any) -> None:
        """Record a text that the agent says before its answer."""
        self._run.steps.append(
            Said(
                id=self._turn.new_id("said"),
                content=Content.of(_plain(text)) or Content(),
                at=time.time(),
            )
        )

    def called(
        self, tool: str, arguments: Any = None, result: Any = None, *, error: str | None = None
    ) -> None:
        """Record a tool call, and its result or error."""
        self._run.steps.append(
            ToolCall(
                id=self._turn.new_id("call"),
                name=tool,
                arguments=_plain(arguments),
                result=Content.of(_plain(result)),
                status="ok" if error is None else "failed",
                error=error,
                at=time.time(),
            )
        )

    def asked_model(
        self,
        model: str,
        *,
        input_tokens: int | None = None,
        output_tokens: int | None = None,
        cache_read_tokens: int | None = None,
        cache_write_tokens: int | None = None,
        cost_usd: float | None = None,
    ) -> None:
        """Record one request to a model, and what it used.

        The cost follows from the tokens and the model's price, unless it is given.

        Args:
            model: its name, as in ``prices:``.
            input_tokens: without cached ones.
            output_tokens: with those of thinking.
            cache_read_tokens: read from a cache.
            cache_write_tokens: written to a cache.
            cost_usd: what the provider of the model charges, in US dollars.

        Raises:
            ValueError: a figure is below zero or not finite.
        """
        used = Usage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_tokens=cache_read_tokens,
            cache_write_tokens=cache_write_tokens,
            requests=1,
            cost_usd=cost_usd,
            cost_from=None if cost_usd is None else "source",
            complete=cost_usd is not None or None not in (input_tokens, output_tokens),
        )
        for problem in usage_problems(used):
            raise ValueError(problem)
        run = self._run
        if run.usage is None:
            run.usage, run.model = used, model
            run.unknown = [name for name in run.unknown if name not in ("usage", "model")]
        else:
            run.usage = sum_usage([run.usage, used])
            if run.model != model and run.model is not None:
                # The tokens of two models have no common price.
                run.model = None
                run.unknown.append("model")


class RecordedDispatch:
    """Work that was passed on. ``result`` is the result for the agent that passed it on.

    If it is not set, it is the answer of the agent that the dispatch started.
    """

    def __init__(self) -> None:
        self.result: Any = msgspec.UNSET
        self._is_refused = False


class RecordedTurn:
    """One message, and everything that agents did in response."""

    def __init__(self, message: Any, id_: str) -> None:
        self._count = 0
        self.turn = Turn(id=id_, input=Content.of(_plain(message)), started=time.time())
        self._decisions: list[dict[str, Any]] = []

    @property
    def trace(self) -> Trace:
        """The turn as a separate record, for :func:`baton.score`."""
        usage = sum_usage([run.usage for run in self.turn.runs])
        return Trace(
            schema_version=SCHEMA_VERSION,
            id=self.turn.id,
            source=Source(format="python"),
            turns=[self.turn],
            usage=usage,
            unknown=["run.context", "state", "turn.state", *([] if usage else ["usage"])],
            attributes={"guard": list(self._decisions)} if self._decisions else {},
        )

    def new_id(self, kind: str) -> str:
        """Return an id that is unique in the turn."""
        self._count += 1
        return f"{self.turn.id}-{kind}{self._count}"


class _At(msgspec.Struct, frozen=True):
    """The current position of the program: the turn, the agent's run, and the dispatch."""

    turn: RecordedTurn
    run: AgentRun | None = None
    dispatch: Dispatch | None = None


_AT: ContextVar[_At | None] = ContextVar("baton_recording", default=None)
_WRITERS: list[Callable[[Trace], None]] = []


def on_message(write: Callable[[Trace], None]) -> None:
    """Call ``write`` with the record of each message, when it is answered or has failed."""
    _WRITERS.append(write)


@contextmanager
def record_turn(message: Any = None, *, id: str = "turn1") -> Iterator[RecordedTurn]:
    """Record what agents do in this block in response to one user message.

    The answer of the first agent is the answer of the turn. Threads that the program starts itself
    record only with a copy of its context (``contextvars.copy_context().run``).
    """
    recorded = RecordedTurn(message, id)
    turn = recorded.turn
    is_whole = _AT.get() is None
    token, notes = _AT.set(_At(recorded)), DECISIONS.set(recorded._decisions)
    try:
        yield recorded
    except Exception as error:
        turn.status, turn.error = "failed", named(error)
        raise
    finally:
        _AT.reset(token)
        DECISIONS.reset(notes)
        turn.ended = time.time()
        if turn.output is None and turn.runs:
            turn.output = turn.runs[0].output
        for write in _WRITERS if is_whole and turn.runs else ():
            # Each message is a record by itself: what belongs together only the program knows.
            write(msgspec.structs.replace(recorded.trace, id=uuid4().hex))


@contextmanager
def record_agent(
    name: str, input: Any = None, *, context: Sequence[Any] | None = None
) -> Iterator[RecordedAgent]:
    """Record an agent at work: its input, and in the block its actions and its answer.

    An agent inside the block of another agent was called by that agent. Unless
    :func:`record_dispatch` adds details, its input is the prompt and its answer is the result.

    Args:
        name: the name of the agent.
        input: the message or task that starts it.
        context: everything else that its model is given, except instructions: earlier messages,
            answers of other agents; ``[]`` for nothing. By default, it is unknown.
    """
    at = _AT.get()
    if at is None and _WRITERS:
        with record_turn(input), record_agent(name, input, context=context) as agent:
            yield agent
        return
    if at is None:  # nothing is recorded: the program runs as usual
        yield RecordedAgent(RecordedTurn(None, ""), AgentRun(id="", agent=name))
        return
    if at.run is not None and at.dispatch is None:
        with (
            record_dispatch(name, input, basis="structure"),
            record_agent(name, input, context=context) as agent,
        ):
            yield agent
        return
    turn = at.turn
    run = AgentRun(
        id=turn.new_id("run"),
        agent=name,
        input=Content.of(_plain(input)),
        context=None if context is None else [_reference(turn.turn, each) for each in context],
        started=time.time(),
        unknown=list(_NOT_TOLD),
    )
    dispatch = at.dispatch
    if dispatch is None and turn.turn.runs:  # after the first one the program starts the next
        dispatch = Dispatch(
            id=turn.new_id("dispatch"),
            kind="sequence",
            to_agent=name,
            prompt=run.input,
            started=run.started,
            unknown=["description", "group", "result", *_TOOLS],
        )
        turn.turn.dispatches.append(dispatch)
    turn.turn.runs.append(run)
    if dispatch is not None:
        dispatch.runs.append(run.id)
        run.started_by.append(dispatch.id)
    agent = RecordedAgent(turn, run)
    token = _AT.set(_At(turn, run))
    try:
        yield agent
    except Exception as error:
        run.status, run.error = "failed", named(error)
        raise
    finally:
        _AT.reset(token)
        run.ended = time.time()
        run.output = Content.of(_plain(agent.output))
        if run.output is not None:
            run.steps.append(Said(id=turn.new_id("said"), content=run.output, at=run.ended))


@contextmanager
def record_dispatch(
    to: str,
    prompt: Any = None,
    *,
    kind: Literal["delegate", "transfer"] = "delegate",
    tools: list[str] | None = None,
    basis: Literal["stated", "structure"] = "stated",
) -> Iterator[RecordedDispatch]:
    """Record that the running agent hands work to another agent, which runs in the block.

    Args:
        to: the agent that receives the work.
        prompt: the message to the receiver.
        kind: ``delegate`` waits for the result, ``transfer`` passes control on.
        tools: the tools that the receiver may use.
        basis: how the hand-over is known; leave it out.
    """
    handed = RecordedDispatch()
    at = _AT.get()
    if at is None:
        yield handed
        return
    turn, sender = at.turn, at.run
    depths = {made.id: made.depth for made in turn.turn.dispatches}
    above = max((depths[id_] for id_ in sender.started_by), default=0) if sender else 0
    dispatch = Dispatch(
        id=turn.new_id("dispatch"),
        kind=kind,
        basis=basis,
        from_run=sender.id if sender is not None else None,
        from_agent=sender.agent if sender is not None else None,
        to_agent=to,
        prompt=Content.of(_plain(prompt)),
        tools_allowed=tools,
        tools_source="request" if tools is not None else None,
        depth=above + (kind == "delegate" and sender is not None),
        started=time.time(),
        # A program hands over, and no call of a tool: `call` is known, and `None`.
        unknown=["description", "group"],
    )
    if tools is None:
        dispatch.unknown += _TOOLS
    turn.turn.dispatches.append(dispatch)
    if sender is not None:
        sender.steps.append(
            HandedOff(id=turn.new_id("sent"), dispatch=dispatch.id, at=dispatch.started)
        )
    token = _AT.set(_At(turn, sender, dispatch))
    try:
        yield handed
    except Exception as error:
        dispatch.status = "refused" if handed._is_refused else "failed"
        dispatch.error = named(error)
        raise
    finally:
        _AT.reset(token)
        dispatch.ended = time.time()
        _settle(turn.turn, dispatch, handed)
        if kind == "delegate" and sender is not None and dispatch.status == "completed":
            sender.steps.append(
                GotBack(id=turn.new_id("back"), dispatch=dispatch.id, at=dispatch.ended)
            )


def _handed_on(name: str, input: Any) -> AbstractContextManager[RecordedDispatch]:
    """Record a dispatch by the running agent, unless it is recorded already or there is none."""
    at = _AT.get()
    if at is None or at.run is None or at.dispatch is not None:
        return nullcontext(RecordedDispatch())
    return record_dispatch(name, input, basis="structure")


@contextmanager
def _watched(watcher: Watcher, name: str, input: Any) -> Iterator[RecordedDispatch]:
    """Ask a guard about a dispatch; in the block, the receiver runs."""
    with ExitStack() as stack:
        sent = stack.enter_context(_handed_on(name, input))
        try:
            stack.enter_context(watcher.dispatch(name, input))
        except RefusedError:
            sent._is_refused = True
            raise
        yield sent


_NAME = "__baton_agent__"
Marked = TypeVar("Marked", bound=Callable[..., Any])


def agent_name(value: Any) -> str | None:
    """Return the name that :func:`agent` gave a function; ``None`` for anything else."""
    name = getattr(value, _NAME, None) if inspect.isfunction(value) else None
    return name if isinstance(name, str) else None


def agent(name: str) -> Callable[[Marked], Marked]:
    """Mark a function as an agent: ``@baton.agent("lab")``.

    Its first argument is the prompt, and its return value is the answer. Each call of it inside
    another agent is a dispatch. A stand-in can answer in its place.
    """

    def mark(function: Marked) -> Marked:
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: Any, **named: Any) -> Any:
                request = Request(name, _first(function, args, named), agent=_who(), kind="agent")

                async def run() -> Any:
                    with record_agent(name, request.input) as recorded:
                        recorded.output = await function(*args, **named)
                    return recorded.output

                async def answer() -> Any:
                    play = current()
                    if play is None or not _is_handed_on(play, name):
                        return await run()
                    with _handed_on(name, request.input) as sent:
                        sent.result = await play.tool(request, run)
                    return sent.result

                watcher = WATCHER.get()
                if watcher is None:
                    return await answer()
                with _watched(watcher, name, request.input) as sent:
                    sent.result = await watcher.output_later(await answer())
                return sent.result

            marked: Any = awaited
        else:

            @functools.wraps(function)
            def called(*args: Any, **named: Any) -> Any:
                request = Request(name, _first(function, args, named), agent=_who(), kind="agent")

                def run() -> Any:
                    with record_agent(name, request.input) as recorded:
                        recorded.output = function(*args, **named)
                    return recorded.output

                def answer() -> Any:
                    play = current()
                    if play is None or not _is_handed_on(play, name):
                        return run()
                    with _handed_on(name, request.input) as sent:
                        sent.result = play.tool_now(request, run)
                    return sent.result

                watcher = WATCHER.get()
                if watcher is None:
                    return answer()
                with _watched(watcher, name, request.input) as sent:
                    sent.result = watcher.output(answer())
                return sent.result

            marked = called
        setattr(marked, _NAME, name)
        return marked  # type: ignore[no-any-return]

    return mark


_MARKED: set[str] = set()


def marked_tools() -> set[str]:
    """Return the names of the functions that :func:`tool` has marked."""
    return set(_MARKED)


def tool(function: Marked) -> Marked:
    """Mark a function as a tool: ``@baton.tool``. Its calls are recorded.

    A stand-in can answer in its place.
    """
    name = function.__name__
    _MARKED.add(name)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: Any, **named: Any) -> Any:
            with _call_of(name, _arguments(function, args, named)) as call:
                _ask_for_tool(name, call)
                play = current()
                if play is None:
                    call.result = await function(*args, **named)
                else:
                    request = Request(name, call.arguments, agent=_who())
                    call.result = await play.tool(request, lambda: function(*args, **named))
            return call.result

        return awaited  # type: ignore[return-value]

    @functools.wraps(function)
    def called(*args: Any, **named: Any) -> Any:
        with _call_of(name, _arguments(function, args, named)) as call:
            _ask_for_tool(name, call)
            play = current()
            if play is None:
                call.result = function(*args, **named)
            else:
                request = Request(name, call.arguments, agent=_who())
                call.result = play.tool_now(request, lambda: function(*args, **named))
        return call.result

    return called  # type: ignore[return-value]


class _Call:
    def __init__(self, arguments: Any) -> None:
        self.arguments = arguments
        self.result: Any = None
        self.is_refused = False


def _ask_for_tool(name: str, call: _Call) -> None:
    """Ask the guard, if there is one, about a tool call."""
    watcher = WATCHER.get()
    if watcher is not None:
        try:
            watcher.tool(name, call.arguments)
        except RefusedError:
            call.is_refused = True
            raise


@contextmanager
def _call_of(name: str, arguments: Any) -> Iterator[_Call]:
    """Record a tool call, whether it returns or raises; errors are passed on."""
    call = _Call(arguments)
    at = _AT.get()
    recorded = RecordedAgent(at.turn, at.run) if at is not None and at.run is not None else None
    try:
        yield call
    except Exception as error:
        if recorded is not None:
            recorded.called(name, arguments, error=named(error))
            step = recorded._run.steps[-1]
            if call.is_refused and isinstance(step, ToolCall):
                step.status, step.refused_by = "refused", "policy"
        raise
    if recorded is not None:
        recorded.called(name, arguments, call.result)


def _who() -> str | None:
    """Return the running agent."""
    at = _AT.get()
    return at.run.agent if at is not None and at.run is not None else None


def _is_handed_on(play: Play, name: str) -> bool:
    """Return whether stand-ins apply to a call of an agent: the first agent is no dispatch."""
    at = _AT.get()
    return at is not None and at.run is not None and play.stands_in_for(name)


def _first(function: Callable[..., Any], args: Any, named: Any) -> Any:
    arguments = _arguments(function, args, named)
    return next(iter(arguments.values()), None) if isinstance(arguments, dict) else None


def _arguments(function: Callable[..., Any], args: Any, named: Any) -> Any:
    """Return the arguments of a call by name, as plain data.

    A value that JSON cannot hold is given as its ``repr``.
    """
    try:
        bound = inspect.signature(function).bind(*args, **named)
    except (TypeError, ValueError):  # the call itself reports what is wrong with it
        return None
    return {name: _shown(value) for name, value in bound.arguments.items() if name != "self"}


def _shown(value: Any) -> Any:
    try:
        return _plain(value)
    except NOT_JSON:
        return repr(value)


def _settle(turn: Turn, dispatch: Dispatch, handed: RecordedDispatch) -> None:
    """Set the result of a dispatch; if the agent does not record, its actions are unknown."""
    answers = [run.output for run in turn.runs if run.id in dispatch.runs]
    if handed.result is not msgspec.UNSET:
        dispatch.result = Content.of(_plain(handed.result))
    elif answers:
        dispatch.result = answers[-1]
    else:
        dispatch.unknown.append("result")
    if not dispatch.runs:
        dispatch.unknown.append("runs")


def _reference(turn: Turn, value: Any) -> Ref:
    """Return a reference to the message or answer that equals a value; else hold its text."""
    content = Content.of(_plain(value))
    if content is not None and content == turn.input:
        return Ref(id=turn.id)
    same = (run for run in turn.runs if run.output is not None and run.output == content)
    ref = next((Ref(id=run.id) for run in same), None)
    return ref or Ref(text=content.plain() if content is not None else "")


def _plain(value: Any) -> Any:
    """Return a copy of a value as plain JSON data, because the program can change the value later.

    Raises:
        TypeError, ValueError: the value cannot be written as JSON.
    """
    return msgspec.json.decode(as_json(value))

"""Patch the places where LangChain calls tools and LangGraph runs agents, to ask the current play.

Neither library has hooks for every tool and graph of a program, including those made before a case
begins. So four places are patched:

- ``BaseTool.run`` and ``arun``: every tool call goes through them, no matter who makes it: a
  ``ToolNode``, ``create_agent``, a node that invokes the tool itself, or an MCP adapter.
- ``invoke``, ``ainvoke``, ``stream`` and ``astream`` of ``Pregel``: every graph is a ``Pregel``,
  also an agent from ``create_agent`` that a tool or a node calls. The same methods of
  ``RemoteGraph`` are patched: its tools run on another server, so it is answered for as a whole or
  refused.
- ``run_with_retry`` and ``arun_with_retry`` of LangGraph's runner, which run every node of a graph.
- ``generate``, ``stream``, ``stream_events`` and their async forms of ``BaseChatModel``: they
  receive the tools that the model provider runs itself, and these have to be refused.

Without a play, or with a play that has no stand-ins, each behaves as before.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import replace
from importlib import import_module
from typing import Any, NamedTuple

import msgspec

from baton.model import ProviderError
from baton.providers.user_functions import NOT_JSON, as_json
from baton.stand_ins import Decided, Play, Request, StandInError, current

from .framework import is_a
from .running_agents import answered, answered_now, at_work, handed_on, receiver_of
from .tool_source import gives, made_in

UNNAMED = ("LangGraph", "")
"""The default names of graphs that were not given a name."""
# The nodes of an agent's own loop in `create_agent` and in LangChain's guides, which are no agents.
_LOOP = frozenset({"agent", "model", "call_model", "llm", "chatbot", "tools", "call_tools"})
# `create_handoff_tool` of langgraph-supervisor and langgraph-swarm notes the target here.
_DESTINATION = "__handoff_destination"
MAKERS = ("create_agent", "create_react_agent", "create_deep_agent", "create_supervisor")
"""Functions that make agents and take a `name=`."""


class _Call(NamedTuple):
    """A tool call in progress: the tool, what the stand-ins are asked, and the id of the call."""

    tool: Any
    request: Request


_CALL: ContextVar[_Call | None] = ContextVar("baton_langchain_call", default=None)
"""The call that `run` started, until `_run` picks it up."""
_RUNNING: ContextVar[Any] = ContextVar("baton_langgraph_running", default=None)
"""The graph that is allowed to run. Stand-ins are not asked again when it calls itself."""


def install() -> None:
    """Patch the modules that are imported, once.

    Raises:
        ProviderError: this version does not have the places to patch.
    """
    if "langchain_core.tools.base" in sys.modules:
        _patch_tools(sys.modules["langchain_core.tools.base"].BaseTool)
        _patch_models(import_module("langchain_core.language_models").BaseChatModel)
    if "langgraph.pregel.main" in sys.modules or "langgraph.pregel" in sys.modules:
        _patch_graphs(sys.modules["langgraph.pregel"].Pregel)
        remote, errors = map(import_module, ("langgraph.pregel.remote", "langgraph.errors"))
        _require(remote, "RemoteGraph", "`langgraph.pregel.remote`")
        _require(errors, "GraphBubbleUp", "`langgraph.errors`")
        _patch_graphs(remote.RemoteGraph)
        _patch_runner(sys.modules.get("langgraph.pregel._runner"))


def active() -> Play | None:
    """Return the play that can have an answer; raises Decided if the play is over."""
    play = current()
    if play is None or play.is_idle:
        return None
    if play.decided:
        raise _end()  # something continued after the decision
    return play


def _end() -> BaseException:
    """Return the exception that ends a decision inside LangGraph.

    LangGraph turns a cancellation in a node into an error. No node and no `ToolNode` catches an
    exception that leaves a graph on purpose, as an interrupt does.
    """
    errors = sys.modules.get("langgraph.errors")
    return errors.GraphBubbleUp("the decision is made") if errors is not None else Decided()


async def _ask(play: Play, request: Request, run: Callable[[], Awaitable[Any]]) -> Any:
    with _leaving():
        return await play.tool(request, run)


def _ask_now(play: Play, request: Request, run: Callable[[], Any]) -> Any:
    with _leaving():
        return play.tool_now(request, run)


@contextmanager
def _leaving() -> Iterator[None]:
    try:
        yield
    except Decided as decided:
        raise _end() from decided


def ended() -> None:
    """Raise Decided if the play has ended."""
    play = current()
    if play is not None and play.decided:
        raise Decided


def graph_name(graph: Any) -> str | None:
    """Return the name that a graph was given."""
    name = getattr(graph, "name", None)
    return name if isinstance(name, str) and name not in UNNAMED else None


def is_loop(graph: Any) -> bool:
    """Return whether a graph is one agent: a node that calls a model, and maybe one for tools.

    The nodes of a graph on another server cannot be seen, so it counts as an agent.
    """
    if _is_remote(graph):
        return True
    names = {name for name in graph.nodes if not name.startswith("__")}
    # Middleware adds nodes such as `SummarizationMiddleware.before_model` to the loop.
    return bool(names) and all(name in _LOOP or "." in name for name in names)


def _is_remote(graph: Any) -> bool:
    return is_a(graph, "langgraph", "RemoteGraph")


def agent_of(value: Any) -> str | None:
    """Return the name of a graph that is an agent; ``None`` for anything else."""
    is_graph = is_a(value, "langgraph", "Pregel") or _is_remote(value)
    return graph_name(value) if is_graph else None


def receiver(tool: Any, arguments: Any) -> str | None:
    """Return the agent that a tool's function hands work to, if its code shows one."""
    for function in functions_of(tool):
        named_agent = receiver_of(function, arguments, agent_of) or made_in(function, MAKERS)
        if named_agent is not None:
            return named_agent
    return None


def destination_of(tool: Any) -> tuple[bool, str | None]:
    """Return whether a tool moves to another node, and the node if the tool states it.

    Such a tool returns a ``Command`` with a ``goto``; only its code shows that beforehand.
    """
    target = (tool.metadata or {}).get(_DESTINATION)
    if isinstance(target, str):
        return True, target
    return any(gives(function, "Command", "goto") for function in functions_of(tool)), None


def functions_of(tool: Any) -> list[Any]:
    """Return the functions that a tool runs."""
    own = [getattr(tool, name, None) for name in ("func", "coroutine")]
    functions = [each for each in own if callable(each)]
    return functions or [getattr(tool, name) for name in ("_run", "_arun")]


def _patch_tools(base: Any) -> None:
    if hasattr(base.run, _MARK):
        return
    for name in ("run", "arun", "_filter_injected_args"):
        _require(base, name, "BaseTool")
    run, arun = base.run, base.arun

    @functools.wraps(run)
    def asking(tool: Any, tool_input: Any, *args: Any, **named: Any) -> Any:
        if active() is None:
            return run(tool, tool_input, *args, **named)
        with _begun(tool, tool_input, named):
            return run(tool, tool_input, *args, **named)

    @functools.wraps(arun)
    async def asking_async(tool: Any, tool_input: Any, *args: Any, **named: Any) -> Any:
        if active() is None:
            return await arun(tool, tool_input, *args, **named)
        with _begun(tool, tool_input, named):
            return await arun(tool, tool_input, *args, **named)

    _put(base, "run", asking)
    _put(base, "arun", asking_async)


@contextmanager
def _begun(tool: Any, tool_input: Any, named: dict[str, Any]) -> Iterator[None]:
    """Note the call so that `_run` finds it: callbacks and spans start before that."""
    for class_ in type(tool).__mro__:
        # `BaseTool._arun` calls `_run`, and `BaseTool._run` is abstract.
        if class_ is not sys.modules["langchain_core.tools.base"].BaseTool:
            _patch_body(class_)
    arguments = tool_input
    if isinstance(tool_input, dict):
        arguments = _plain(tool._filter_injected_args(tool_input))
    id_ = named.get("tool_call_id")
    request = Request(tool.name, arguments, agent=_caller(named.get("config")), id=id_)
    with _set(_CALL, _Call(tool, request)):
        yield


def _patch_body(class_: Any) -> None:
    """Make a class of tools ask for stand-ins before its own function runs."""
    body, body_async = vars(class_).get("_run"), vars(class_).get("_arun")
    if body is not None and not hasattr(body, _MARK):

        @functools.wraps(body)
        def answering(tool: Any, *args: Any, **named: Any) -> Any:
            step = _taken(tool)
            if step is None:
                return body(tool, *args, **named)

            def run() -> Any:
                with step.at_work():
                    return step.keep(body(tool, *args, **named))

            with _set(_CALL, None):
                try:
                    return step.give(step.answered_now(run))
                except StandInError as error:
                    return step.failed(error)

        _put(class_, "_run", answering)
    if body_async is not None and not hasattr(body_async, _MARK):

        @functools.wraps(body_async)
        async def answering_async(tool: Any, *args: Any, **named: Any) -> Any:
            # If a tool's function is not async, its `_arun` runs `_run` in a thread.
            goes_to_run = getattr(tool, "coroutine", body_async) is None
            step = None if goes_to_run else _taken(tool)
            if step is None:
                return await body_async(tool, *args, **named)

            async def run() -> Any:
                with step.at_work():
                    return step.keep(await body_async(tool, *args, **named))

            with _set(_CALL, None):
                try:
                    return step.give(await step.answered(run))
                except StandInError as error:
                    return step.failed(error)

        _put(class_, "_arun", answering_async)


class _Step:
    """One tool call: asks the stand-ins, and returns the answer in the tool's own form."""

    def __init__(self, call: _Call, play: Play) -> None:
        self._request, self._play = call.request, play
        self._tool = call.tool
        self._response: Any = msgspec.UNSET
        self._moves, self._target = destination_of(self._tool)
        self._receiver = None if self._moves else receiver(self._tool, call.request.input)

    def at_work(self) -> AbstractContextManager[None]:
        """Set the caller while the tool's function runs: it is the caller of agents inside it."""
        return at_work(self._request.agent or "", self._request.name, self._request.id)

    def answered_now(self, run: Callable[[], Any]) -> Any:
        """Return the answer to the call, like :meth:`answered` but without awaiting."""
        if not self._moves:
            with _leaving():
                return answered_now(self._play, self._request, self._receiver, run)
        content = run() if self._target is None or not self._play.stops else None
        moved = self._moved()
        if moved is not None:
            _ask_now(self._play, moved, lambda: None)
        return content

    async def answered(self, run: Callable[[], Awaitable[Any]]) -> Any:
        """Return the answer to the call, as Play.tool does.

        A tool that moves to another node really runs, because there is no other way to get there. A
        decision ends with it.
        """
        if not self._moves:
            with _leaving():
                return await answered(self._play, self._request, self._receiver, run)
        content = await run() if self._target is None or not self._play.stops else None
        moved = self._moved()
        if moved is not None:
            await _ask(self._play, moved, _nothing)
        return content

    def _moved(self) -> Request | None:
        """Return the dispatch at which a decision ends, if the tool moves to another node."""
        goto = self._target or getattr(self._response, "goto", None)
        targets = [goto] if isinstance(goto, str) or hasattr(goto, "node") else goto
        if not self._play.stops or not targets:
            return None
        to = str(getattr(targets[0], "node", targets[0]))
        call = self._request
        prompt = prompt_in(call.input)
        how: Any = "transfer"
        return Request(
            to, prompt, call.agent, "agent", call.id, None, how, call.name, arguments=call.input
        )

    def keep(self, response: Any) -> Any:
        """Keep the tool's return value, and return the part that stand-ins see: its content."""
        self._response = response
        is_pair = isinstance(response, tuple) and len(response) == 2
        return response[0] if is_pair and self._has_artifact else response

    def give(self, result: Any) -> Any:
        """Return an answer as the tool would: its own value, or one of the same form."""
        if self._response is not msgspec.UNSET and result is self.keep(self._response):
            return self._response
        return (result, None) if self._has_artifact else result

    def failed(self, error: StandInError) -> Any:
        """Make the tool end in an error.

        An error that the model was told about is a message. Any other error is raised as the tool's
        own, so that the test shows how the program handles it.
        """
        id_ = self._request.id
        if error.was_told and id_ is not None:
            return self.give(
                sys.modules["langchain_core.messages"].ToolMessage(
                    str(error), tool_call_id=id_, name=self._tool.name, status="error"
                )
            )
        if self._tool.handle_tool_error:
            raise sys.modules["langchain_core.tools.base"].ToolException(str(error)) from error
        raise error

    @property
    def _has_artifact(self) -> bool:
        return bool(self._tool.response_format == "content_and_artifact")


async def _nothing() -> None:
    """Do nothing, in place of something that does not run."""


def _taken(tool: Any) -> _Step | None:
    """Return the tool call that `run` started, if a play can answer it."""
    call = _CALL.get()
    play = active() if call is not None and call.tool is tool else None
    return _Step(call, play) if call is not None and play is not None else None


def _patch_graphs(pregel: Any) -> None:
    if hasattr(pregel.invoke, _MARK):
        return
    for name in ("invoke", "ainvoke", "stream", "astream"):
        _require(pregel, name, pregel.__name__)
    _patch_invoke(pregel)
    _patch_stream(pregel)


def _patch_invoke(pregel: Any) -> None:
    invoke, ainvoke = pregel.invoke, pregel.ainvoke

    @functools.wraps(invoke)
    def invoked(graph: Any, input: Any, *args: Any, **named: Any) -> Any:
        play = active()
        if play is None or _RUNNING.get() is graph:
            return invoke(graph, input, *args, **named)

        def run() -> Any:
            with _at_work(graph):
                return invoke(graph, input, *args, **named)

        request = _request_of(graph, input, play)
        if request is None:
            return run()
        ran = _Ran()
        result = _ask_now(play, request, lambda: ran.keep(run()))
        return ran.give(result, lambda: _state(graph, input, request.name, result))

    @functools.wraps(ainvoke)
    async def invoked_async(graph: Any, input: Any, *args: Any, **named: Any) -> Any:
        play = active()
        if play is None or _RUNNING.get() is graph:
            return await ainvoke(graph, input, *args, **named)

        async def run() -> Any:
            with _at_work(graph):
                return await ainvoke(graph, input, *args, **named)

        request = _request_of(graph, input, play)
        if request is None:
            return await run()
        ran = _Ran()

        async def kept() -> Any:
            return ran.keep(await run())

        result = await _ask(play, request, kept)
        return ran.give(result, lambda: _state(graph, input, request.name, result))

    _put(pregel, "invoke", invoked)
    _put(pregel, "ainvoke", invoked_async)


def _patch_stream(pregel: Any) -> None:
    stream, astream = pregel.stream, pregel.astream

    @functools.wraps(stream)
    def streamed(graph: Any, input: Any, *args: Any, **named: Any) -> Iterator[Any]:
        play = active()
        request = (
            None if play is None or _RUNNING.get() is graph else _request_of(graph, input, play)
        )
        if play is None or request is None:
            return stream(graph, input, *args, **named)  # type: ignore[no-any-return]

        def answered() -> Iterator[Any]:
            ran = _Ran()
            result = _ask_now(play, request, lambda: ran.keep(None))
            if ran.is_real:
                _refuse_fault(play, request)
                yield from stream(graph, input, *args, **named)
            else:
                state = _state(graph, input, request.name, result)
                yield from _chunks(graph, input, state, named)

        return answered()

    @functools.wraps(astream)
    def streamed_async(graph: Any, input: Any, *args: Any, **named: Any) -> AsyncIterator[Any]:
        play = active()
        request = (
            None if play is None or _RUNNING.get() is graph else _request_of(graph, input, play)
        )
        if play is None or request is None:
            return astream(graph, input, *args, **named)  # type: ignore[no-any-return]

        async def answered() -> AsyncIterator[Any]:
            ran = _Ran()

            async def runs() -> Any:
                return ran.keep(None)

            result = await _ask(play, request, runs)
            if ran.is_real:
                _refuse_fault(play, request)
                async for chunk in astream(graph, input, *args, **named):
                    yield chunk
            else:
                state = _state(graph, input, request.name, result)
                for chunk in _chunks(graph, input, state, named):
                    yield chunk

        return answered()

    _put(pregel, "stream", streamed)
    _put(pregel, "astream", streamed_async)


def _refuse_fault(play: Play, request: Request) -> None:
    """Refuse a fault of an agent that streams, because its chunks are passed on as they come."""
    if any(each.request is request for each in play.answers):
        play.refuse_elsewhere(request, "as a stream")


class _Ran:
    """The real answer of an agent, if nothing answered in its place."""

    def __init__(self) -> None:
        self._kept: Any = msgspec.UNSET
        self._said: Any = None

    @property
    def is_real(self) -> bool:
        return self._kept is not msgspec.UNSET

    def keep(self, value: Any) -> Any:
        """Keep the return value of a graph or node; return its answer, to which faults apply."""
        self._kept, self._said = value, value
        messages = _held(value).get("messages")
        if isinstance(messages, list) and messages and hasattr(messages[-1], "model_copy"):
            self._said = str(messages[-1].text)
        return self._said

    def give(
        self, result: Any, made: Callable[[], Any], write: Callable[[Any], Any] | None = None
    ) -> Any:
        """Return the kept value with the answer after faults; else what ``made`` returns.

        ``write`` receives the kept value if a fault has changed it.
        """
        if not self.is_real:
            return made()
        if result is self._said:
            return self._kept
        changed = result if self._said is self._kept else self._answering(result)
        return changed if write is None else write(changed)

    def _answering(self, answer: Any) -> Any:
        text = answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
        held = _held(self._kept)
        *before, last = held["messages"]
        update = {**held, "messages": [*before, last.model_copy(update={"content": text})]}
        return update if held is self._kept else replace(self._kept, update=update)


def _held(value: Any) -> dict[str, Any]:
    """Return the state from a graph's result or a node's update or `Command`; else an empty one."""
    held = value.update if is_a(value, "langgraph", "Command") else value
    return held if isinstance(held, dict) else {}


@contextmanager
def _at_work(graph: Any) -> Iterator[None]:
    name = graph_name(graph) if is_loop(graph) else None
    with _set(_RUNNING, graph), at_work(name) if name is not None else nullcontext():
        yield


def _request_of(graph: Any, input: Any, play: Play) -> Request | None:
    """Return what the stand-ins are asked for a graph that is started, if they apply.

    A graph that is not an agent's loop is a plan by which agents work. Stand-ins are asked for it
    only if they name it. Raises ProviderError for a graph on another server that would run there
    with its tools.
    """
    name = graph_name(graph) or ("a graph on a server" if _is_remote(graph) else None)
    if name is None or not (is_loop(graph) or name in play.stand_ins.agents):
        return None
    request = handed_on(play, name, prompt_in(input))
    would_run = request is None or (play.runs(request) and not play.stops)
    if would_run and _is_remote(graph):
        play.refuse_elsewhere(Request(name, agent=name), "on another server")
    return request


def _patch_runner(runner: Any) -> None:
    for name in ("run_with_retry", "arun_with_retry"):
        _require(runner, name, "the runner of graphs")
    if hasattr(runner.run_with_retry, _MARK):
        return
    run, arun = runner.run_with_retry, runner.arun_with_retry

    @functools.wraps(run)
    def ran(task: Any, *args: Any, **named: Any) -> Any:
        play = active()
        with _set(_RUNNING, None):
            request = None if play is None else _request_of_node(task, play)
            if play is None or request is None:
                with _set(_RUNNING, _graph_of(task)):
                    return run(task, *args, **named)
            real, rewrite = _Ran(), functools.partial(_write_as_is, task)
            result = _ask_now(play, request, lambda: real.keep(_run_in(task, run, args, named)))
            return real.give(result, lambda: _write(task, request.name, result), rewrite)

    @functools.wraps(arun)
    async def ran_async(task: Any, *args: Any, **named: Any) -> Any:
        play = active()
        with _set(_RUNNING, None):
            request = None if play is None else _request_of_node(task, play)
            if play is None or request is None:
                with _set(_RUNNING, _graph_of(task)):
                    return await arun(task, *args, **named)
            real, rewrite = _Ran(), functools.partial(_write_as_is, task)

            async def kept() -> Any:
                with _set(_RUNNING, _graph_of(task)):
                    return real.keep(await arun(task, *args, **named))

            result = await _ask(play, request, kept)
            return real.give(result, lambda: _write(task, request.name, result), rewrite)

    _put(runner, "run_with_retry", ran)
    _put(runner, "arun_with_retry", ran_async)


def _run_in(task: Any, run: Any, args: Any, named: Any) -> Any:
    with _set(_RUNNING, _graph_of(task)):
        return run(task, *args, **named)


def _graph_of(task: Any) -> Any:
    """Return the graph of a node, if the node is a graph."""
    steps = getattr(task.proc, "steps", None) or [task.proc]
    return steps[0] if isinstance(steps[0], sys.modules["langgraph.pregel"].Pregel) else None


def _request_of_node(task: Any, play: Play) -> Request | None:
    """Return what the stand-ins are asked for a node, if they apply.

    A node that is a function can be anything: a step of an agent's own loop, or a few lines that
    tidy the state. Stand-ins are asked for it only if they name it.
    """
    graph, listed = _graph_of(task), play.stand_ins.agents
    if graph is None:
        if play.stops or task.name not in listed or not play.stands_in_for(task.name):
            return None
        return Request(task.name, prompt_in(task.input), None, "agent", dispatch="sequence")
    name = task.name if task.name in listed else graph_name(graph) or task.name
    if not is_loop(graph) and name not in listed:
        return None
    return handed_on(play, name, prompt_in(task.input))


def _write(task: Any, name: str, answer: Any) -> Any:
    """Write a stand-in's answer into the state, as the node would."""
    return _write_as_is(task, _update(_graph_of(task), task.input, name, answer))


def _write_as_is(task: Any, update: Any) -> Any:
    """Write a node's return value into the state, in place of what it has written."""
    task.writes.clear()
    for writer in task.writers:
        writer.invoke(update, task.config)
    return update


def _update(graph: Any, state: Any, name: str, answer: Any) -> dict[str, Any]:
    """Return an answer as an update of a graph's state; raises ProviderError."""
    held = state if isinstance(state, dict) else getattr(state, "__dict__", {})
    channels = getattr(graph, "output_channels", None) or list(held)
    outputs = [channels] if isinstance(channels, str) else list(channels)
    keeps_messages = "messages" in held or "messages" in outputs
    # It is not known beforehand what a function writes. LangGraph itself refuses unknown keys.
    is_free = graph is None and not keeps_messages
    if isinstance(answer, dict) and (is_free or answer.keys() <= {*held, *outputs}):
        return answer
    text = answer if isinstance(answer, str) else msgspec.json.encode(answer).decode()
    if keeps_messages:
        message = sys.modules["langchain_core.messages"].AIMessage(text, name=name)
        return {"messages": [message]}
    new = [key for key in outputs if key not in held]
    if len(new) == 1:
        return {new[0]: answer}
    keys = ", ".join(f"`{key}`" for key in outputs) or "unknown"
    raise ProviderError(
        f"the stand-in of the agent `{name}` has to give a dict of the state of its graph ({keys})"
    )


def _state(graph: Any, value: Any, name: str, answer: Any) -> Any:
    """Return the final state of a graph that a stand-in answered for."""
    held = value if isinstance(value, dict) else getattr(value, "__dict__", {})
    update = _update(graph, value, name, answer)
    state = {**held, **update}
    if isinstance(update.get("messages"), list) and isinstance(held.get("messages"), list):
        convert = sys.modules["langchain_core.messages"].convert_to_messages
        state["messages"] = convert([*held["messages"], *update["messages"]])
    return state


def _chunks(graph: Any, value: Any, state: Any, named: dict[str, Any]) -> Iterator[Any]:
    """Yield the chunks that a graph's stream would yield if it answered at once."""
    wanted: Any = named.get("stream_mode") or getattr(graph, "stream_mode", "updates")
    modes = [wanted] if isinstance(wanted, str) else list(wanted)
    before = len(value["messages"]) if isinstance(value, dict) and "messages" in value else 0
    messages = state["messages"][before:] if isinstance(state.get("messages"), list) else []
    nodes = getattr(graph, "nodes", ())
    node = next((each for each in nodes if not each.startswith("__")), "agent")
    update = {**state, "messages": messages} if messages else state
    parts: dict[str, list[Any]] = {
        "values": [state],
        "updates": [{node: update}],
        "messages": [(message, {"langgraph_node": node}) for message in messages],
    }
    for mode in modes:
        for chunk in parts.get(mode, ()):
            if named.get("version") == "v2":
                yield {"type": mode, "ns": (), "data": chunk}
            else:
                tagged = (*([()] if named.get("subgraphs") else []),
                          *([] if isinstance(wanted, str) else [mode]), chunk)  # fmt: skip
                yield chunk if len(tagged) == 1 else tagged


def prompt_in(state: Any) -> Any:
    """Return the prompt of an agent: the last message, or the only text of a state."""
    held = state if isinstance(state, dict) else getattr(state, "__dict__", state)
    if not isinstance(held, dict):
        return held if isinstance(held, str) else str(held)
    messages = held.get("messages")
    if isinstance(messages, list) and messages:
        # In a history that agents share, the last message can be "moved to refunds".
        converted = sys.modules["langchain_core.messages"].convert_to_messages(messages)
        questions = [each for each in converted if each.type == "human"] or converted
        return str(questions[-1].text)
    texts = [value for value in held.values() if isinstance(value, str) and value]
    return texts[0] if len(texts) == 1 else _plain(held)


def _caller(config: Any) -> str | None:
    """Return the running agent by the name that the span reader uses; ``None`` if unknown."""
    metadata = (config or {}).get("metadata") or {}
    named = metadata.get("lc_agent_name")
    if isinstance(named, str):
        return named
    path = str(metadata.get("langgraph_checkpoint_ns") or "").split("|")
    nodes = [step.partition(":")[0] for step in path if step]
    return next((node for node in reversed(nodes) if node not in _LOOP), None)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Return the model's arguments, without those that LangGraph injects: the state, a store."""
    plain = {}
    for name, value in values.items():
        try:
            plain[name] = msgspec.json.decode(as_json(value))
        except NOT_JSON:
            continue
    return plain


def _patch_models(base: Any) -> None:
    """Refuse tools that the model provider runs, because no stand-in can come before them."""
    if hasattr(base.generate, _MARK):
        return
    for name in ("generate", "agenerate", "stream", "astream"):
        _require(base, name, "BaseChatModel")
    for name in ("generate", "agenerate", "stream", "astream", "stream_events", "astream_events"):
        if hasattr(base, name):  # older versions have no `stream_events`
            _put(base, name, _refusing(getattr(base, name)))


def _refusing(ask: Any) -> Any:
    @functools.wraps(ask)
    def asking(model: Any, *args: Any, **named: Any) -> Any:
        play = active()
        more = getattr(model, "model_kwargs", None) or {}
        tools = [*(named.get("tools") or ()), *(more.get("tools") or ())]
        # Options give Anthropic's models MCP servers, and can let Google's models run code.
        tools += [*(getattr(model, "mcp_servers", None) or ()), *(named.get("mcp_servers") or ())]
        tools += [{"code_execution": {}}] if named.get("code_execution") else []
        for tool in tools:
            name = _hosted(tool)
            if play is not None and name is not None:
                caller = _caller({"metadata": named.get("metadata")})
                play.refuse_elsewhere(Request(name, agent=caller), "where its model is")
        return ask(model, *args, **named)

    return asking


def _hosted(tool: Any) -> str | None:
    """Return the name of a tool that the model provider runs; ``None`` for other tools.

    OpenAI: ``{"type": "web_search"}``; Anthropic: ``{"type": "web_search_20250305", "name": ...}``;
    Google: ``{"google_search": {}}``. Tools of the program have a schema of their arguments.
    """
    if not isinstance(tool, dict) or not tool:
        return None
    own = ("function", "input_schema", "parameters", "args_schema", "function_declarations",
           "functionDeclarations", "toolSpec")  # fmt: skip
    if any(key in tool for key in own) or tool.get("type") in ("function", "custom"):
        return None
    return str(tool.get("name") or tool.get("type") or next(iter(tool)))


_MARK = "__baton__"


def _put(holder: Any, name: str, patched: Any) -> None:
    setattr(patched, _MARK, True)
    setattr(holder, name, patched)


def _require(holder: Any, name: str, what: str) -> None:
    if not callable(getattr(holder, name, None)):
        raise ProviderError(
            f"stand-ins cannot answer for tools here: {what} of the installed LangGraph or "
            f"LangChain has no `{name}`, so nothing was run"
        )


@contextmanager
def _set(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)

"""Agents, graphs and teams of frameworks, as functions from a message to an answer.

A target of the provider ``python`` may be such an object (``app:graph``), so that nobody has to
write a function around it. Nothing of a framework is imported that the program has not imported.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from baton.model import InputError, ProviderError
from baton.plugins.user_code import Function, load_object

Session = dict[str, Any]
Ask = Callable[[Any, Any, Session], Awaitable[Any]]
_KEPT = "baton.history"
"""Where a session keeps what was said, so that the next message goes on with it."""
# A state like `{"request": ..., "order": ..., "answer": ...}` has one key of these.
_MESSAGE_KEYS = frozenset(
    {"input", "message", "prompt", "query", "question", "request", "task", "user_input"}
)
"""Names that the user's message has in the states of graphs."""


def load_target(spec: str, folder: Path) -> Function:
    """Import a function, or an object of a framework as a function of message and session.

    Raises:
        InputError: there is no such function or object, or it is neither.
    """
    value = load_object(spec, folder)
    ask = _ask_of(value, spec)
    if ask is not None:
        asker = ask

        async def answer(message: Any, session: Session) -> Any:
            return _plain(await asker(value, message, session))

        return answer
    if not callable(value):
        known = ", ".join(sorted({f"{package}.{name}" for package, name in _ASK}))
        raise InputError(
            f"`{spec}` is {type(value).__name__}, neither a function nor an agent that is known "
            f"({known}): name a function that takes a message and asks it"
        )
    return value  # type: ignore[no-any-return]


def is_framework_object(value: Any) -> bool:
    """Tell an agent, graph or team of a framework from a function."""
    return any((package, name) in _ASK for package, name in _classes(value))


def is_of_adk(value: Any) -> bool:
    """Tell an agent or an App of Google ADK."""
    return any(known in _classes(value) for known in _ADK)


_ADK = (("google.adk", "BaseAgent"), ("google.adk", "App"))


def _ask_of(value: Any, spec: str) -> Ask | None:
    if is_of_adk(value):
        raise InputError(
            f"`{spec}` is of Google ADK, which tells what its agents do: leave out `instrument`, "
            f"or name it as the `path` of the provider `adk_local`"
        )
    for known in _classes(value):
        if known == ("claude_agent_sdk", "ClaudeAgentOptions"):
            raise InputError(
                f"`{spec}` holds options of the Claude Agent SDK: write them into a config with "
                "the provider `claude_sdk`, or name a function that asks the agent"
            )
        if known in _ASK:
            return _ASK[known]
    return None


def _classes(value: Any) -> list[tuple[str, str]]:
    """Name the classes of an object, each with the package of its framework."""
    names = []
    for each in type(value).__mro__:
        package, _, rest = each.__module__.partition(".")
        if package == "google":
            package = f"google.{rest.partition('.')[0]}"
        names.append((package, each.__name__))
    return names


def _plain(answer: Any) -> Any:
    """Return an answer as text or plain data, where it is a model of pydantic."""
    dump = getattr(answer, "model_dump", None)
    return dump(mode="json") if callable(dump) else answer


async def _pydantic_ai(agent: Any, message: Any, session: Session) -> Any:
    result = await agent.run(message, message_history=session.get(_KEPT))
    session[_KEPT] = result.all_messages()
    return result.output


async def _langgraph(graph: Any, message: Any, session: Session) -> Any:
    builder = getattr(graph, "builder", None)
    if builder is None:  # an `@entrypoint`
        keys = list(graph.get_input_jsonschema().get("properties") or ())
    else:
        # Not by its JSON Schema: pydantic makes none of `typing.TypedDict` before Python 3.12.
        keys = list(builder.schemas[builder.input_schema])
    thread = session.setdefault("baton.thread", str(uuid.uuid4()))
    config = {"configurable": {"thread_id": thread}}
    if "messages" in keys:
        said = [*session.get(_KEPT, ()), {"role": "user", "content": message}]
        result = await graph.ainvoke({"messages": said}, config)
        if getattr(graph, "checkpointer", None) is None:
            session[_KEPT] = result["messages"]
        return str(result["messages"][-1].text)
    likely = [key for key in keys if key in _MESSAGE_KEYS]
    if len(keys) != 1 and len(likely) != 1:
        listed = ", ".join(f"`{key}`" for key in keys) or "nothing"
        raise ProviderError(
            f"the graph takes {listed}: name a function that says which of it the message is, or "
            "give the graph an `input_schema` with one key"
        )
    return await graph.ainvoke({(likely or keys)[0]: message}, config)


async def _openai_agents(agent: Any, message: Any, session: Session) -> Any:
    said = [*session.get(_KEPT, ()), {"role": "user", "content": message}]
    result = await sys.modules["agents"].Runner.run(agent, said)
    session[_KEPT] = result.to_input_list()
    return result.final_output


async def _crewai(crew: Any, message: Any, session: Session) -> Any:  # noqa: ARG001 - no history
    names = sorted(crew.fetch_inputs())
    if len(names) != 1:
        listed = ", ".join(f"`{{{name}}}`" for name in names) or "no placeholder"
        raise ProviderError(
            f"the tasks of the crew hold {listed}: name a function that says where the message "
            "goes, or let them hold one placeholder"
        )
    result = await crew.kickoff_async(inputs={names[0]: message})
    return result.raw


async def _strands_agent(agent: Any, message: Any, session: Session) -> Any:
    # The object is shared by all cases, and keeps what was said.
    if not session.get(_KEPT):
        agent.messages.clear()
        _begin_state(agent, session)
        session[_KEPT] = True
    return str(await agent.invoke_async(message)).strip()


async def _strands_team(team: Any, message: Any, session: Session) -> None:
    for agent in _strands_agents(team):
        _begin_state(agent, session)
    # Its result has one for each node; which of them is the answer its spans say.
    await team.invoke_async(message)


class _States(NamedTuple):
    """What the state of an agent of Strands held when it was made, and what the case states."""

    made_with: dict[str, Any]
    stated: dict[str, Any]


_STATES: WeakKeyDictionary[Any, _States] = WeakKeyDictionary()


def _begin_state(agent: Any, session: Session) -> None:
    """Put the state of a case into ``agent.state``, where tools of Strands look for it.

    What an earlier case left there goes. A swarm puts back the state that an agent was made with
    whenever it is its turn, so that the state of the case is put in again before each request.
    """
    stated = {key: value for key, value in session.items() if not key.startswith("baton.")}
    if agent in _STATES:
        made_with = _STATES[agent].made_with
    else:
        made_with = agent.state.get()
        event = sys.modules["strands.hooks"].BeforeInvocationEvent
        agent.hooks.add_callback(event, _put_back_state)
    _STATES[agent] = _States(made_with, stated)
    for key in agent.state.get():
        agent.state.delete(key)
    for key, value in {**made_with, **stated}.items():
        agent.state.set(key, value)


def _put_back_state(event: Any) -> None:
    states, state = _STATES[event.agent], event.agent.state
    if state.get() == states.made_with:
        for key, value in states.stated.items():
            state.set(key, value)


def _strands_agents(team: Any) -> Iterator[Any]:
    """Yield the agents of a swarm or graph, and of those within it."""
    for node in team.nodes.values():
        executor = node.executor
        if hasattr(executor, "nodes"):
            yield from _strands_agents(executor)
        elif hasattr(executor, "state") and hasattr(executor, "hooks"):
            yield executor


async def _autogen_team(team: Any, message: Any, session: Session) -> Any:
    if not session.get(_KEPT):
        await team.reset()
        session[_KEPT] = True
    return _last_of_autogen(await team.run(task=message))


async def _autogen_agent(agent: Any, message: Any, session: Session) -> Any:
    if not session.get(_KEPT):
        token = sys.modules["autogen_core"].CancellationToken()
        await agent.on_reset(token)
        session[_KEPT] = True
    return _last_of_autogen(await agent.run(task=message))


def _last_of_autogen(result: Any) -> Any:
    return result.messages[-1].to_text() if result.messages else None


async def _agent_framework(agent: Any, message: Any, session: Session) -> Any:  # noqa: ARG001
    return (await agent.run(message)).text


_ASK: dict[tuple[str, str], Ask] = {
    ("pydantic_ai", "AbstractAgent"): _pydantic_ai,
    ("langgraph", "Pregel"): _langgraph,
    ("agents", "AgentBase"): _openai_agents,
    ("crewai", "Crew"): _crewai,
    ("strands", "Agent"): _strands_agent,
    ("strands", "MultiAgentBase"): _strands_team,
    ("autogen_agentchat", "BaseGroupChat"): _autogen_team,
    ("autogen_agentchat", "BaseChatAgent"): _autogen_agent,
    ("agent_framework", "BaseAgent"): _agent_framework,
}
"""How an object is asked, by the package of its framework and the name of its class."""

"""MLflow tracing: spans of its decorator, and of methods that it patches in other libraries.

All attributes are JSON, including texts: ``mlflow.spanType`` is ``"AGENT"`` with its quotes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from baton.formats.nesting import decode_json
from baton.model import Usage
from baton.readers.otlp.attribute_values import (
    amount,
    content,
    finite,
    first,
    parsed,
    shown,
    text,
    usage,
    whole,
)
from baton.readers.otlp.handover_calls import hand_over
from baton.readers.otlp.messages import Answer, Call, Message, read_messages
from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import (
    AgentSpan,
    HandoffSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    WorkflowSpan,
    agent_between,
    fail,
    insert_agents,
)
from baton.readers.tool_definitions import targets_of, tool_names

from . import crewai, langchain, llama_index, semantic_kernel
from .dialect import Dialect

_TYPE = "mlflow.spanType"
_REQUEST = "mlflow.traceRequestId"
_FORMAT = "mlflow.message.format"
_IN, _OUT = "mlflow.spanInputs", "mlflow.spanOutputs"
_MODELS = frozenset({"LLM", "CHAT_MODEL"})
_NAMES = ("mlflow.llm.model", "model", "model_name")
# `Runner.run` of OpenAI Agents, around the spans of the agents that it runs. Version 3.10 and those
# near it mark it by its name only.
_ROOT = "mlflow.openai.agent_run_root"
_RUNNER = "AgentRunner.run"
# OpenAI Agents' hand-off: a CHAIN with the input {"from_agent": ...} and the output {"to_agent":
# ...}. It shows a hand-off even if the requests to models are not recorded.
_HANDOFF = "Handoff"
# The patched library, which shows the format of the messages in the span.
_FORMATS = {
    "openai-agent": "openai-agents",
    "pydantic_ai": "pydantic-ai",
    "langchain": "langgraph",
    "llamaindex": "llama-index",
}
# Arguments of traced functions and methods with the question to an agent: `user_prompt` is
# pydantic-ai's. If only one argument is a text, that is the question.
_ASKED = ("user_prompt", "messages", "input", "prompt", "question", "query", "task")
_GRAPH = frozenset({"langgraph_node", "lc_agent_name"})
"""Metadata of LangChain that place a span in a graph."""
# Of spans that a library wrote by OpenTelemetry's convention, such as Semantic Kernel. MLflow adds
# its own attributes, and the name of such a span is `execute_tool find_trains`.
_AGENT, _TOOL = "gen_ai.agent.name", "gen_ai.tool.name"
# Of functions that the decorator traces.
_FUNCTION = "mlflow.spanFunctionName"
_CALL_IDS = ("tool_call_id", semantic_kernel.CALL_ID)
# CrewAI: a crew, and what only its agents have.
_CREWS = frozenset({"Crew.kickoff", "Crew.kickoff_async", "Crew.akickoff"})
_ROLE = "backstory"
# How Python prints an answer that had not been streamed when the span ended.
_STREAMED = re.compile(r"<(?:async_)?generator object ")
# How MLflow names a method of a library: `Agent.run` and `Agent.run_sync` belong to one agent,
# whose name is an attribute.
_METHOD = "Agent."


# Values of `outcome` of a `ToolReturnPart`. It replaced the part `retry-prompt` for unknown tools.
_FAILED = ("failed", "retried")


def claims(span: Span) -> bool:
    """Return whether MLflow wrote a span."""
    return _TYPE in span.attributes or _REQUEST in span.attributes


def read(span: Span) -> Reading:
    """Read one span."""
    kind = text(_value(span, _TYPE)) or ""
    given, made = _value(span, _IN), _value(span, _OUT)
    if isinstance(made, str) and _STREAMED.match(made):
        made = None
    says: Reading
    if kind in _MODELS:
        says = _model(span, given, made)
    elif kind == "TOOL":
        named = _value(span, "name") if llama_index.wrote(span) else _value(span, _TOOL)
        says = ToolSpan(
            name=text(named) or span.name,
            call=text(first({k: _value(span, k) for k in _CALL_IDS}, *_CALL_IDS)),
            arguments=shown(given),
            result=content(made),
        )
        if semantic_kernel.CALL_ID in span.attributes and isinstance(says.arguments, dict):
            says.arguments = semantic_kernel.written(says.arguments)
        hand_over(says, None, {})
    elif kind == "AGENT" and (_value(span, _ROOT) is True or span.name == _RUNNER):
        says = WorkflowSpan(heard=_asked(given), spoken=_answered(made))
    elif kind == "AGENT" or _is_pydantic_agent(span):
        says = _agent(span, given, made)
    elif span.name == _HANDOFF and isinstance(made, Mapping) and text(made.get("to_agent")):
        says = HandoffSpan(agent=_from_agent(given), target=text(made["to_agent"]))
    else:
        says = PlainSpan(name=span.name)
        if span.parent_id is None:
            says.heard, says.spoken = _asked(given), _answered(made)
    says.framework = _FORMATS.get(str(_value(span, _FORMAT)), "mlflow")
    if semantic_kernel.OFFERED in span.attributes:
        says.framework = "semantic-kernel"
    elif llama_index.wrote(span):
        says.framework = "llama-index"
    elif span.name in _CREWS or _ROLE in span.attributes or _crew_action(given) is not None:
        _crew(says, given, made)
    elif span.name.startswith(crewai.EXECUTE):
        says.framework = "crewai"
        if type(says) is PlainSpan:
            says.heard = _value(span, "description")
    fail(says, span)
    metadata = _value(span, "metadata")
    if isinstance(metadata, Mapping) and (
        "langgraph_node" in metadata or "lc_agent_name" in metadata
    ):
        return langchain.refine(says, span, langchain.Carried(metadata, given, made))
    return says


def _crew_action(given: Any) -> Mapping[str, Any] | None:
    """Return the call of a tool as CrewAI parsed it: its arguments are a text in there."""
    action = given.get("agent_action") if isinstance(given, Mapping) else None
    return action if isinstance(action, Mapping) else None


def _crew(says: Reading, given: Any, made: Any) -> None:
    """Read a span of CrewAI, whose arguments are those of its own methods.

    An agent is only given the context of its task. Its `tools` lack those for delegation.
    """
    says.framework = "crewai"
    action = _crew_action(given)
    if type(says) is ToolSpan and action is not None:
        says.arguments = parsed(action.get("tool_input"))
        says.result = content(made.get("result") if isinstance(made, Mapping) else made)
        hand_over(says, None, {})
    elif type(says) is AgentSpan:
        says.heard, says.offered, says.reaches = None, None, {}
    elif type(says) is PlainSpan:
        said = text(made.get("raw")) if isinstance(made, Mapping) else None
        says.heard, says.spoken = None, said


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Add what MLflow does not record where it belongs: calls of LangChain, agents of pydantic-ai.

    If an agent of pydantic-ai raises, MLflow records no agents and requests until the outermost
    agent has returned, but it goes on to record tools. So a tool directly below the call of another
    tool was then called by an agent without a span: the same one again, or another.
    """
    silent: dict[int, float] = {}
    for node in nodes:
        says = node.says
        if type(says) is ModelSpan and not says.tells_calls and _TYPE in node.span.attributes:
            _find_calls(node, says)
        if _is_agent(node) and node.says.failed:
            top = id(_top_agent(node))
            silent[top] = min(silent.get(top, node.ended), node.ended)
    for node in nodes if silent else ():
        since = silent.get(id(_top_agent(node))) if type(node.says) is ToolSpan else None
        if since is not None and _TYPE in node.span.attributes:
            done = [c for c in node.children if type(c.says) is ToolSpan and c.started >= since]
            if done:
                insert_agents(node, [agent_between(node, AgentSpan(framework="pydantic-ai"), done)])
    return []


def _find_calls(node: Node, says: ModelSpan) -> None:
    lost = _without_calls(_value(node.span, _OUT))
    message = _with_calls(node.parent, lost) if lost is not None else None
    if message is not None:
        says.spoken, says._spoken, says.tells_calls = [message], None, True
    elif lost is not None and not lost.get("content"):
        says.spoken, says._spoken = None, None  # the next request may repeat it


def _is_agent(node: Node) -> bool:
    says = node.says
    of_pydantic = says.framework == "pydantic-ai" and node.span.name.startswith(_METHOD)
    return type(says) is AgentSpan and of_pydantic


def _top_agent(node: Node) -> Node | None:
    """Return the outermost agent of pydantic-ai around a span."""
    top: Node | None = None
    at: Node | None = node
    while at is not None:
        top = at if _is_agent(at) else top
        at = at.parent
    return top


def _value(span: Span, key: str) -> Any:
    value = span.attributes.get(key)
    if not isinstance(value, str):
        return value
    try:
        return decode_json(value)
    except msgspec.DecodeError:
        return value


def _is_pydantic_agent(span: Span) -> bool:
    """Return whether a span is of pydantic-ai's agent, whatever its type.

    With classes of pydantic-ai that MLflow does not know, the type is UNKNOWN.
    """
    is_pydantic = _value(span, _FORMAT) == "pydantic_ai"
    return is_pydantic and span.name.startswith(_METHOD) and text(_value(span, "name")) is not None


def _agent(span: Span, given: Any, made: Any) -> AgentSpan:
    own = span.name.startswith(_METHOD)
    named = text(_value(span, "name")) if own else text(_value(span, _AGENT)) or span.name
    says = AgentSpan(
        name=named,
        heard=_asked(given),
        spoken=_answered(made),
        totals=_usage(span),
        offered=tool_names(_value(span, "tools")),
        reaches=targets_of(_value(span, "tools")),
        is_function=_FUNCTION in span.attributes,
    )
    # OpenAI Agents: the span of an agent has no answer, only the type that it should have.
    if isinstance(made, Mapping) and set(made) == {"output_type"}:
        says.spoken = None
    elif isinstance(made, Mapping) and "_state" in made and "output" in made:
        # pydantic-ai's result object
        says.output, says.spoken = content(made["output"]), _new_messages(made)
    elif isinstance(made, Mapping) and _of_pydantic(made.get("_all_messages")):
        says.spoken = _new_messages(made)  # of `run_stream`
    return says


def _new_messages(made: Mapping[str, Any]) -> Any:
    """Return what a run of pydantic-ai added to the messages, from its result."""
    state, since = made.get("_state"), whole(made.get("_new_message_index"))
    history: Any = state.get("message_history") if isinstance(state, Mapping) else None
    history = made.get("_all_messages") if history is None else history
    if since is None or not _of_pydantic(history):
        return None
    return lambda: [message for each in history[since:] for message in _pydantic(each)]


def _from_agent(given: Any) -> str | None:
    return text(given.get("from_agent")) if isinstance(given, Mapping) else None


def _asked(given: Any) -> Any:
    """Return the question to a traced function from its arguments."""
    if not isinstance(given, Mapping):
        return given
    asked = first(given, *_ASKED)
    if asked is None:
        texts = [value for value in given.values() if text(value)]
        asked = texts[0] if len(texts) == 1 else None
    return asked


def _answered(made: Any) -> Any:
    """Return an answer as messages: an object without messages is the answer itself, as data."""
    if made is None or isinstance(made, str):
        return made
    said = [message for message in read_messages(made, "assistant") if message.role == "assistant"]
    if said:
        return lambda: said
    answer = content(finite(made))
    return lambda: [Message(role="assistant", content=answer)]


def _model(span: Span, given: Any, made: Any) -> ModelSpan:
    # LangChain before MLflow 3.6 has the name only among the parameters of the request.
    parameters = _value(span, "invocation_params")
    named = first({key: _value(span, key) for key in _NAMES}, *_NAMES)
    if named is None and isinstance(parameters, Mapping):
        named = first(parameters, *_NAMES)
    says = ModelSpan(
        model=text(named),
        usage=_usage(span),
        offered=tool_names(_value(span, "mlflow.chat.tools")),
        reaches=targets_of(_value(span, "mlflow.chat.tools")),
        heard=_messages(given),
        spoken=_messages(made),
    )
    if isinstance(given, Mapping):
        says.instructions = text(given.get("instructions"))
    says.tells_calls = _without_calls(made) is None
    return says


def _without_calls(made: Any) -> Mapping[str, Any] | None:
    """Return LangChain's message of a model if its calls are lost.

    Newer versions of LangChain write a message inside of a result with the fields of all messages
    only: ``{"generations": [[{"message": {"content": "", "type": "ai", "id": "lc_run--7"}}]]}``.
    """
    generations = made.get("generations") if isinstance(made, Mapping) else None
    first_ = generations[0] if isinstance(generations, list) and generations else None
    one = first_[0] if isinstance(first_, list) and first_ else None
    message = one.get("message") if isinstance(one, Mapping) else None
    if not isinstance(message, Mapping) or message.get("type") != "ai" or "tool_calls" in message:
        return None
    return message


def _with_calls(around: Node | None, lost: Mapping[str, Any]) -> Any:
    """Return the whole message from the output of the node of the graph that asked the model."""
    id_ = text(lost.get("id"))
    left = [] if around is None or id_ is None else [_value(around.span, _OUT)]
    while left:
        value = left.pop()
        if isinstance(value, Mapping):
            if value.get("id") == id_ and "tool_calls" in value:
                return value
            left += value.values()
        elif isinstance(value, list):
            left += value
    return None


def _messages(value: Any) -> Any:
    """Return the messages of a request or response, by the names that chat libraries use."""
    if isinstance(value, Mapping):
        value = dict(value)
        if isinstance(value.get("input"), list | str):  # OpenAI's Responses
            return value["input"]
        if isinstance(value.get("messages"), list) and _of_pydantic(value["messages"]):
            return lambda: [m for each in value["messages"] for m in _pydantic(each)]
        if _of_pydantic([value]):
            return lambda: _pydantic(value)
    return value


def _of_pydantic(messages: Any) -> bool:
    return (
        isinstance(messages, list)
        and bool(messages)
        and all(
            isinstance(each, Mapping)
            and isinstance(each.get("parts"), list)
            and all(isinstance(part, Mapping) and "part_kind" in part for part in each["parts"])
            for each in messages
        )
    )


def _pydantic(message: Mapping[str, Any]) -> list[Message]:
    """Read a message of pydantic-ai, whose parts have their kind in ``part_kind``."""
    read: list[Message] = []
    for part in message["parts"]:
        kind, name = part["part_kind"], text(part.get("tool_name"))
        call = text(part.get("tool_call_id"))
        if kind == "tool-call" and name is not None:
            made = Call(id=call, name=name, arguments=shown(part.get("args")))
            read.append(Message(role="assistant", calls=[made]))
        elif kind in ("tool-return", "retry-prompt") and name is not None:
            outcome = part.get("outcome")
            answer = Answer(
                id=call,
                name=name,
                result=content(part.get("content")),
                failed=kind == "retry-prompt" or outcome in _FAILED,
                refused=outcome == "denied",
            )
            read.append(Message(role="tool", answers=[answer]))
        elif kind == "thinking":
            read.append(Message(role="assistant", thought=text(part.get("content"))))
        elif kind in ("user-prompt", "system-prompt", "text"):
            role = {"user-prompt": "user", "system-prompt": "system"}.get(kind, "assistant")
            read.append(Message(role=role, content=content(part.get("content"))))
    return read


def _usage(span: Span) -> Usage | None:
    counts, cost = _value(span, "mlflow.chat.tokenUsage"), _value(span, "mlflow.llm.cost")
    if not isinstance(counts, Mapping):
        return None
    spent = usage(
        input=whole(counts.get("input_tokens")),
        output=whole(counts.get("output_tokens")),
        total=whole(counts.get("total_tokens")),
        read=whole(counts.get("cache_read_input_tokens")),
        write=whole(counts.get("cache_creation_input_tokens")),
    )
    figure = amount(cost.get("total_cost")) if isinstance(cost, Mapping) else None
    if figure is not None:
        spent.cost_usd, spent.cost_from = figure, "source"
    return spent


def _thread(attributes: Mapping[str, Any]) -> str | None:
    """Return LangGraph's thread, which MLflow keeps with other metadata of a run."""
    metadata = parsed(attributes.get("metadata")) if _TYPE in attributes else None
    thread = metadata.get("thread_id") if isinstance(metadata, Mapping) else None
    return str(thread) if isinstance(thread, str | int) else None


DIALECT = Dialect(
    name="mlflow",
    rank=15,
    claims=claims,
    read=read,
    resolve=resolve,
    prefixes=("mlflow.",),
    results={"mlflow.spanOutputs": '""'},
    # Not in spans, but in MLflow's data about a trace: `wire/mlflow.py` combines both.
    sessions=("mlflow.trace.session",),
    session={"metadata": _thread},
)

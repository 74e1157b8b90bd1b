"""LangChain and LangGraph: their additions to a convention, and which of their spans are agents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from baton.model import Content
from baton.readers.otlp.attribute_values import content, first, parsed, printed_value, text
from baton.readers.otlp.messages import Message, read_messages
from baton.readers.otlp.span import Event, Span, thrown_in_javascript
from baton.readers.otlp.span_content import (
    AgentSpan,
    GraphPlace,
    HandoffSpan,
    ModelSpan,
    Node,
    PlainSpan,
    Reading,
    ToolSpan,
    WorkflowSpan,
    as_agent,
    as_plain,
    as_workflow,
)

from .dialect import Dialect

# A Command that goes to a node by `Send` also contains the state; only the name is needed.
_SEND = re.compile(r"Send\(node='([^']*)'")
# Before they serialised to JSON, instrumentations wrote `Command(graph='__parent__', update={...},
# goto='billing')`.
_GOTO = re.compile(r"\bgoto=\[?(?:Send\(node=)?'([^']+)'")
# `content='It is sunny.' name='weather' tool_call_id='call_1'`: a ToolMessage as Python prints it.
_PRINTED = re.compile(r"""content=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?= )""", re.DOTALL)
_CALL_ID = re.compile(r" tool_call_id='([^']*)'")
# `Command(update={'messages': [ToolMessage(content='Tea facts.', tool_call_id='call_1')]})`
_ANSWERED = re.compile(
    r"""ToolMessage\(content=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")[^()]* tool_call_id='([^']*)'""",
    re.DOTALL,
)
# A message as Python prints it, in a state: `content='Hi' additional_kwargs={} id='1'`.
_PRINTED_MESSAGE = re.compile(
    r"""content=(.*?)(?= (?:additional_kwargs|response_metadata|name|id|tool_call_id)=)""",
    re.DOTALL,
)
# What only the printed messages of a model have.
_BY_MODEL = (" tool_calls=", " invalid_tool_calls=", " usage_metadata=")
# If a task is for an unknown sub-agent, deepagents (and its older versions) only answers with a
# text, and the tool has the status OK.
_NO_AGENT = re.compile(
    r"We cannot invoke subagent .+ because it does not exist"
    r"|Error: invoked agent of type .+, the only allowed types are"
)
# The trigger of a node that waits for two others: `join:billing+stock:writer`.
_JOIN = re.compile(r"join:(.+):[^:]+")
_LANGFUSE = "langfuse.observation."
_INPUTS = ("input.value", "traceloop.entity.input", f"{_LANGFUSE}input")
# What middleware asks a model for itself. Its answers are no words of the agent.
_INTERNAL = frozenset({"summarization", "tool_selection", "tool_emulation"})
_PROPERTIES = ("traceloop.association.properties.", f"{_LANGFUSE}metadata.")
# LangGraph stops a graph by raising an exception: these two to wait for a person, `ParentCommand`
# to go to a node of the enclosing graph. The span then has an exception event, or even the status
# ERROR, although nothing failed.
_ASKS = ("GraphInterrupt", "NodeInterrupt")
# A tool can end its graph, as `forward_message` of langgraph-supervisor does.
_END = "__end__"
"""The name of a graph's end, to which a Command can go. It is no agent."""
_COMMAND = frozenset({"graph", "update", "resume", "goto"})
# Events by which newer instrumentations mark the span of a graph.
_INTERRUPT, _RESUME = "langgraph.interrupt", "langgraph.resume"
_MOVES = ("ParentCommand", "GraphBubbleUp", *_ASKS)


class Carried(NamedTuple):
    """Raw data of a LangChain run from its span: metadata, input, output."""

    metadata: Mapping[str, Any]
    given: Any
    made: Any


def refine(says: Reading, span: Span, carried: Carried | None = None) -> Reading:
    """Read LangChain's own metadata and serialised values.

    ``carried`` has them if the convention of the span has its own names for them. Only the whole
    graph shows which spans are agents: until then they are plain spans.
    """
    carried = carried or _carried(span)
    says.framework = "langgraph"
    says.graph = _place(carried.metadata)
    events = {event.name for event in span.events}
    says.waits = moved(span, _ASKS) or _INTERRUPT in events
    # Undone here, and not in the convention's own reader, which knows nothing about LangGraph.
    if says.failed and moved(span):
        says.failed, says.error = False, None
    if type(says) is ToolSpan:
        _tool(says, carried.made)
    elif type(says) is AgentSpan:
        plain = as_plain(says)
        # In OpenInference, internal nodes (`agent`, `call_agent`) have the kind of agents, while
        # the real agents (`supervisor`, `research_expert`) are chains, and each occurs twice: as
        # node and as graph. So the kind of a span is not used until `resolve` sees the whole graph.
        plain.agent = says
        _run(plain, carried.given, carried.made)
        return plain
    elif type(says) is PlainSpan:
        _run(says, carried.given, carried.made)
        says.resumes = says.resumes or _RESUME in events
    elif type(says) is ModelSpan:
        says.model = None if says.model == "unknown" else says.model
        says.internal = carried.metadata.get("lc_source") in _INTERNAL
    return says


def refine_stated(says: Reading, span: Span) -> Reading:
    """Read LangGraph's moves where the convention of the span states which spans are agents."""
    says.framework = "langgraph"
    thrown = str(span.attributes.get("error.type", "")).rpartition(".")[2]
    if says.failed and thrown in _MOVES:
        says.failed, says.error, says.waits = False, None, thrown in _ASKS
    if type(says) is ToolSpan:
        _tool(says, span.attributes.get("gen_ai.tool.call.result"))
    elif type(says) is AgentSpan:
        spoken = says.spoken
        # The last messages of its state can be those of the agent before it.
        says.spoken = None if spoken is None else (lambda: _own(spoken, says.name))
    return says


def _own(spoken: Any, agent: str | None) -> list[Message]:
    said = spoken() if callable(spoken) else read_messages(spoken, "assistant")
    return [one for one in said if one.name is None or agent is None or one.name == agent]


def is_from(span: Span) -> bool:
    """Return whether a span without a scope is from LangGraph: some stores do not keep scopes."""
    metadata = span.attributes.get("metadata")
    return isinstance(metadata, str) and (
        '"langgraph_' in metadata or '"lc_agent_name"' in metadata
    )


def _carried(span: Span) -> Carried:
    """Return the raw data of a run whose convention has no reader for it."""
    attributes = span.attributes
    given = first(attributes, *_INPUTS)
    made = first(attributes, "output.value", "traceloop.entity.output", f"{_LANGFUSE}output")
    return Carried(_metadata(span), given, made)


def _metadata(span: Span) -> Mapping[str, Any]:
    metadata = parsed(span.attributes.get("metadata"))
    if isinstance(metadata, dict):
        return metadata
    properties = {
        key.removeprefix(prefix): unquoted(value)
        for key, value in span.attributes.items()
        for prefix in _PROPERTIES
        if key.startswith(prefix)
    }
    given = span.attributes.get("traceloop.entity.input")
    # Some versions of Traceloop put the metadata into the input of the span. First search the text,
    # because decoding every input would be slow.
    if not properties and isinstance(given, str) and '"langgraph_' in given:
        request = parsed(given)
        inner = request.get("metadata") if isinstance(request, dict) else None
        return inner if isinstance(inner, dict) else {}
    return properties


def unquoted(value: Any) -> Any:
    """Return a value that Langfuse wrote as JSON, in which a text has quotation marks."""
    if isinstance(value, str) and value[:1] == value[-1:] == '"':
        try:
            return msgspec.json.decode(value)
        except msgspec.DecodeError:
            return value
    return value


def _place(metadata: Mapping[str, Any]) -> GraphPlace:
    """Read the place of a span in its graphs: ``node:id|inner node:id``."""
    path = text(first(metadata, "langgraph_checkpoint_ns", "checkpoint_ns")) or ""
    steps = [step for step in path.split("|") if step]
    return GraphPlace(
        path=tuple(step.partition(":")[0] for step in steps),
        agent=text(metadata.get("lc_agent_name")),
        node=None if steps else text(metadata.get("langgraph_node")),
    )


def _place_below(parent: Node | None, own: GraphPlace) -> GraphPlace:
    """Return the place of a span of which only the node is recorded, from the spans around it.

    The path is behind a length limit of attributes, for example. What a node calls has the
    metadata of the node, so only another name is another node.
    """
    while parent is not None and parent.says.graph is None:
        parent = parent.parent
    around = parent.says.graph.path if parent is not None and parent.says.graph else ()
    inner = () if own.node is None or around[-1:] == (own.node,) else (own.node,)
    return GraphPlace(path=(*around, *inner), agent=own.agent)


def moved(span: Span, how: tuple[str, ...] = _MOVES) -> bool:
    """Return whether an exception is no failure, and LangGraph only left a graph on purpose.

    LangSmith records it as a bare ``Exception`` whose message is ``ParentCommand(Command(...``.
    """
    for event in span.events:
        if event.name == "exception":
            type_ = str(event.attributes.get("exception.type", "")).rpartition(".")[2]
            if type_ == "Exception":
                type_ = str(event.attributes.get("exception.message", "")).partition("(")[0]
            if type_ in how:
                return True
    thrown = thrown_in_javascript(span.message) if span.message else None
    return thrown is not None and thrown[0] in how


def _run(says: PlainSpan, given: Any, made: Any) -> None:
    """Set the input of a graph, and what it added: its final state repeats the input."""
    says.heard = None if given is None else (lambda: read_messages(_asked(_state(given, "inputs"))))
    # Looked for as text first, as decoding every state would be slow.
    if isinstance(given, str) and '"resume"' in given:
        command = _command(_inner(given, "inputs"))
        says.resumes = command is not None and command["resume"] is not None
    says.spoken = None if made is None else (lambda: _added(says, _state(made, "outputs")))


def _asked(state: Any) -> Any:
    """Return the input of a graph: its messages, or the only text in a state without messages."""
    if not isinstance(state, dict) or "messages" in state:
        return state
    state = _command(state) or state
    texts = [value for value in state.values() if text(value)]
    return texts[0] if len(texts) == 1 else state


def _command(state: Any) -> dict[str, Any] | None:
    """Return the Command that a graph is given in place of a state, which LangSmith wraps."""
    inner = state.get("input") if isinstance(state, dict) and len(state) == 1 else state
    if isinstance(inner, dict) and inner.keys() >= _COMMAND:
        return inner
    return None


def _inner(value: Any, key: str) -> Any:
    value = parsed(value)
    return value[key] if isinstance(value, dict) and key in value else value


def _state(value: Any, key: str) -> Any:
    """Return the state of a graph; traceAI writes its messages as Python prints them."""
    state = _inner(value, key)
    messages = state.get("messages") if isinstance(state, dict) else None
    if not isinstance(messages, list) or not all(isinstance(one, str) for one in messages):
        return state
    return {**state, "messages": [_printed_message(one) for one in messages]}


def _printed_message(printed: str) -> Any:
    said = _PRINTED_MESSAGE.match(printed)
    if said is None:
        return printed
    message = {"content": printed_value(said.group(1), otherwise=said.group(1))}
    call = _CALL_ID.search(printed, said.end())
    if call is not None:
        return {"role": "tool", "tool_call_id": call.group(1), **message}
    by_model = any(key in printed[said.end() :] for key in _BY_MODEL)
    return {"role": "assistant" if by_model else "user", **message}


def _added(says: PlainSpan, made: Any) -> list[Any]:
    if not isinstance(made, dict) or not isinstance(made.get("messages"), list):
        return []
    said, given = read_messages(made["messages"]), says.heard_messages()
    # The state of a graph only grows: at the end it still has the messages from the start. A node
    # that is a function returns only what it adds: `{"messages": [("ai", "No prices now.")]}`.
    repeats = [one.content for one in said[: len(given)]] == [one.content for one in given]
    return said[len(given) :] if repeats else said


def _tool(says: ToolSpan, made: Any) -> None:
    """Read the result from a serialised ToolMessage, or the target from a Command."""
    says.arguments = _arguments(says.arguments)
    value = _inner(made, "output")
    if isinstance(value, dict) and "goto" in value and "update" in value:
        target = _goto(value["goto"])
        if target is not None:
            says.mode, says.target = "transfer", target
        says.sure = says.sure or _ends(value["goto"])
        value = value["update"]
        if not any(message.answers for message in read_messages(value)):
            # `forward_message` adds a message of the model, and no ToolMessage.
            says.result, value = _last_text(value) or says.result, None
    elif isinstance(value, str):
        value = _printed(says, value)
    answers = [a for message in read_messages(value) for a in message.answers]
    answer = answers[-1] if answers else None
    if answer is not None:
        says.call = says.call or answer.id
        says.result = answer.result
        if answer.failed:
            says.failed, says.error = True, answer.result.plain() if answer.result else None
    elif value is not None:
        says.result = content(value)
    said = says.result.text if says.result is not None else None
    if says.mode == "delegate" and said is not None and _NO_AGENT.match(said):
        says.failed, says.error, says.result = True, said, None


def _printed(says: ToolSpan, value: str) -> Any:
    """Read what older versions wrote as Python prints it: a Command or a ToolMessage."""
    if value.startswith("Command("):
        goto = _GOTO.findall(value)
        if goto and goto[-1] != _END:
            says.mode, says.target = "transfer", goto[-1]
        says.sure = says.sure or goto[-1:] == [_END]
        answers = _ANSWERED.findall(value) if not goto else []
        return _answer(*answers[-1]) if answers else None
    said = _PRINTED.match(value)
    call = _CALL_ID.search(value, said.end()) if said is not None else None
    if said is None or call is None:
        return value
    status = "error" if " status='error'" in value[call.end() :] else None
    return {**_answer(said.group(1), call.group(1)), "status": status}


def _answer(printed: str, call: str) -> dict[str, Any]:
    return {
        "role": "tool",
        "tool_call_id": call,
        "content": printed_value(printed, otherwise=printed),
    }


def _arguments(value: Any) -> Any:
    """Unwrap arguments that are among other values."""
    if isinstance(value, str) and value.startswith("{'"):
        return printed_value(value, otherwise=value)
    if isinstance(value, dict) and "input_str" in value:
        value = parsed(first(value, "inputs", "input_str"))
    if isinstance(value, dict):
        return {name: given for name, given in value.items() if not _is_state(given)}
    return value


def _is_state(given: Any) -> bool:
    """Return whether arguments are the state of a graph, which no model wrote."""
    return isinstance(given, dict) and isinstance(given.get("messages"), list)


def _ends(goto: Any) -> bool:
    """Return whether a Command only ends its graph."""
    return goto in (_END, [_END])


def goes_to(result: Any) -> str | None:
    """Return the node that a tool's result goes to, if it is a Command."""
    value = _inner(result, "output")
    is_command = isinstance(value, dict) and "goto" in value and "update" in value
    return _goto(value["goto"]) if is_command else None


def _goto(value: Any) -> str | None:
    """Return the node that a Command goes to: a name, or a Send to one."""
    if isinstance(value, list):
        # A Command may go to several nodes at once. A call has one target; use the first.
        value = value[0] if value else None
    if isinstance(value, dict):
        return text(value.get("node"))
    name = text(value)
    sent = _SEND.match(name) if name is not None else None
    target = sent.group(1) if sent is not None else name
    return None if target == _END else target


# An agent without `name=` gets the name of its node.
_UNNAMED = frozenset({"LangGraph", "RunnableSequence", "AgentExecutor"})
"""Names that LangChain gives to anything without a name."""
# For an agent that called no tool in this trace. Its graph has only a node that asks a model, and
# looks like a graph with one agent as a node. If all its nodes have such names, it counts as the
# loop. In a graph with other names (`writer`, `critic`), each node that asks is an agent.
_LOOP = frozenset(
    {"agent", "model", "call_model", "llm", "chatbot", "tools", "call_tools",
     "pre_model_hook", "post_model_hook", "generate_structured_response"}
)  # fmt: skip
"""Names of the nodes of an agent's own loop in LangChain's guides, and in `create_react_agent`."""
# `create_agent` adds a node for each hook of a middleware, named after its class. One can ask a
# model, too: `SummarizationMiddleware.before_model`. In JavaScript, the input of a graph is a node
# `__start__` with a span.
_HOOK = re.compile(r".+\.(?:before|after)_(?:model|agent)|__start__")


@dataclass(slots=True, eq=False)
class _Graph:
    """A span that runs a graph: its node spans by ``id()``, and what they do themselves.

    ``asking`` and ``running`` are those that ask a model and those that run a tool; ``going`` are
    tools that go to a node, with the key of the node that runs them.
    """

    span: Node
    nodes: dict[int, Node] = field(default_factory=dict)
    asking: set[int] = field(default_factory=set)
    running: set[int] = field(default_factory=set)
    going: list[tuple[int, ToolSpan]] = field(default_factory=list)
    made: str | None = None

    def asker_before(self, key: int) -> Node | None:
        """Return the node that last asked a model before another node started."""
        start = self.nodes[key].started
        asking = (self.nodes[asker] for asker in self.asking if asker in self.nodes)
        before = (asker for asker in asking if asker.started < start)
        return max(before, key=lambda asker: asker.started, default=None)

    def asking_names(self) -> set[str]:
        """Return the names of the nodes that ask a model."""
        return {_node_name(self.nodes[asker]) for asker in self.asking if asker in self.nodes}

    def shared(self) -> bool:
        """Return whether a tool of one node that asks a model goes to another such node."""
        names = self.asking_names() if self.going else set[str]()
        return any(
            tool.target in names
            and (asker := self.asker_before(key)) is not None
            and _node_name(asker) != tool.target
            for key, tool in self.going
        )


def resolve(nodes: list[Node], _logs: list[Event]) -> list[Node]:
    """Mark graphs and nodes that are agents as agents, and the graphs around them as workflows.

    A graph in which one node asks a model and another runs the called tools is the loop of one
    agent. In any other graph each node that asks a model is an agent.
    """
    graphs: dict[int, _Graph] = {}
    place: dict[int, tuple[_Graph, Node] | None] = {}
    for node in nodes:
        says, parent = node.says, node.parent
        if node.span.attributes.get("gen_ai.operation.name") == "goto":
            # If a tool left its graph, the span below it has the target.
            target = node.span.attributes.get("langgraph.command.goto_node")
            left = isinstance(target, str) and target != _END
            if parent is not None and type(parent.says) is ToolSpan and left:
                parent.says.mode, parent.says.target = "transfer", target
        if says.graph is None:
            # A node may call the model's own client, whose spans know nothing about the graph.
            asker = _nearest(parent, place) if type(says) is ModelSpan else None
            if asker is not None:
                asker[0].asking.add(id(asker[1]))
            continue
        if says.graph.node is not None:
            says.graph = _place_below(parent, says.graph)
        if type(says) is ModelSpan and not says.graph.path and parent is not None:
            says.graph = parent.says.graph or says.graph
        at = _find(node, says.graph, graphs, place)
        place[id(node)] = at
        if at is None:
            continue
        graph, inner = at
        if type(says) is ModelSpan:
            graph.asking.add(id(inner))
            # `create_agent` puts the agent's name into the metadata of its requests. If that is the
            # name of the node itself, it comes from the programmer, and proves nothing about the
            # graph.
            if says.graph.agent is not None and says.graph.path[-1:] != (says.graph.agent,):
                graph.made = says.graph.agent
        elif type(says) is ToolSpan:
            graph.running.add(id(inner))
            if says.mode == "transfer" and id(inner) in graph.nodes:
                graph.going.append((id(inner), says))
            _called(says, inner)
    # One node asks, another runs tools: an agent's loop. A node that does both (a function that
    # calls the model and then the tool itself) is an agent by itself. All runs of a graph count,
    # because one run of an agent may call no tool. If a tool goes to another node that asks, there
    # are several agents, which share the node that runs their tools.
    loops = {
        _loop_key(graph)
        for graph in graphs.values()
        if graph.asking - graph.running and graph.running - graph.asking and not graph.shared()
    }
    if graphs and all(type(node.says) in (PlainSpan, WorkflowSpan) for node in nodes):
        _settle_functions(graphs)
        return []
    for graph in graphs.values():
        _settle(graph, _loop_key(graph) in loops)
    _order(graphs)
    for node in nodes:
        says = node.says
        if says.graph is None:
            continue
        if type(says) is PlainSpan and not says.graph.path and id(node) not in graphs:
            # A chain that is named as an agent and is in no graph.
            kind = str(node.span.attributes.get("openinference.span.kind", "")).upper()
            if kind == "AGENT" and node.parent is None:
                node.says = as_agent(says, says.graph.agent or _name(node))
        elif type(says) is ToolSpan and says.mode is None and not says.sure:
            _moved(node, says, says.graph)
    return []


def _nearest(
    node: Node | None, place: Mapping[int, tuple[_Graph, Node] | None]
) -> tuple[_Graph, Node] | None:
    """Return the node of a graph that a span is part of, if no agent or tool is in between."""
    while node is not None and node.says.graph is None and type(node.says) is PlainSpan:
        node = node.parent
    return place.get(id(node)) if node is not None and type(node.says) is PlainSpan else None


def _called(tool: ToolSpan, inner: Node) -> None:
    """Take a call from the input of its node, because a tool's own span may only have the text."""
    if isinstance(tool.arguments, dict) or tool.arguments is None:
        return
    given = parsed(first(inner.span.attributes, "input.value", f"{_LANGFUSE}input"))
    calls = given if isinstance(given, list) else [given]
    # Two calls of one tool in one step cannot be distinguished by name; then nothing is taken.
    alike = [call for call in calls if isinstance(call, dict) and call.get("name") == tool.name]
    if len(alike) == 1 and isinstance(alike[0].get("args"), dict):
        tool.arguments, tool.call = alike[0]["args"], tool.call or text(alike[0].get("id"))


def _find(
    node: Node,
    own: GraphPlace,
    graphs: dict[int, _Graph],
    place: dict[int, tuple[_Graph, Node] | None],
) -> tuple[_Graph, Node] | None:
    """Return the graph that a span is in, and the node of that graph that it is part of."""
    depth = len(own.path)
    parent = node.parent
    while parent is not None and parent.says.graph is None:
        parent = parent.parent
    around = parent.says.graph if parent is not None else None
    if parent is None or around is None or not depth:
        return None
    if len(around.path) >= depth:
        return place.get(id(parent))
    graph = graphs.setdefault(id(parent), _Graph(parent))
    graph.nodes[id(node)] = node
    return graph, node


def _loop_key(graph: _Graph) -> tuple[str, tuple[str, ...]]:
    """Return a key for a graph, by its span and place: the runs of one graph share it."""
    place = graph.span.says.graph
    return graph.span.span.name, place.path if place is not None else ()


# Example: `supervisor` is a node of the outer graph and in it runs its own graph with the nodes
# `agent` and `tools`. The inner graph is a loop, so its span becomes the agent `supervisor`; the
# outer one becomes a workflow. In a plain graph `writer -> critic` there is no loop, so the graph
# is a workflow and both nodes are agents.
def _settle(graph: _Graph, loop: bool) -> None:
    around = graph.span
    place, own = around.says.graph, _name(around)
    tool = _tool_around(around)
    caller = tool.graph if tool is not None else None
    # What a tool runs inherits the metadata of the agent that called the tool. Only a graph of
    # `create_agent` replaces the name in it: a member of a swarm in a tool has the caller's name.
    made = graph.made if caller is None or graph.made != caller.agent else None
    names = {node.says.graph.path[-1] for node in graph.nodes.values() if node.says.graph}
    names = {name for name in names if _HOOK.fullmatch(name) is None}
    if loop or graph.made is not None or (graph.asking and names <= _LOOP):
        inner = place.path[-1] if place is not None and place.path else None
        if place is not None and caller is not None and place.path == caller.path:
            inner = None
        for _, tool in graph.going:
            if tool.target in graph.asking_names():
                # `Command(goto="agent")` in a loop: the same agent goes on.
                tool.mode = tool.target = None
        name = made or (own if own not in _UNNAMED else inner)
        agent = around.says = as_agent(around.says, name)
        if agent.output is None:
            agent.output = _structured(around.span)
        # The name of a node can differ from that of its agent: `research` runs `research_expert`.
        # Directly below a tool, the path belongs to the graph around the tool.
        if inner is not None and inner != name:
            agent.node = inner
        return
    around.says = as_workflow(around.says, "graph" if own in _UNNAMED else own)
    for key, node in graph.nodes.items():
        if key in graph.asking and node.says.graph is not None:
            node.says = as_agent(node.says, node.says.graph.path[-1])
    if graph.shared():
        _give_tools(graph)


def _give_tools(graph: _Graph) -> None:
    """Put a node that only runs tools into the agent that asked for them, the last one before it.

    Example: the nodes `junior` and `senior` ask models, `tools` runs the tools of `junior`, and one
    of them returns `Command(goto="senior")`.
    """
    for key in graph.running - graph.asking:
        node, owner = graph.nodes[key], graph.asker_before(key)
        if owner is not None:
            if node.parent is not None:
                node.parent.children.remove(node)
            node.parent = owner
            owner.children.append(node)


def _order(graphs: Mapping[int, _Graph]) -> None:
    """Name the agents that each agent of a graph ran after, if the graph states them.

    Example: the function `supervisor` asks a model and returns `Command(goto="math")`. The node
    `math`, which runs an agent, was then started by an edge from the previous step.
    """
    inside: dict[int, list[Node]] = {}
    for graph in graphs.values():
        inside.setdefault(id(graph.span.parent), []).append(graph.span)
    for graph in graphs.values():
        if type(graph.span.says) is not WorkflowSpan:
            continue
        agents: dict[int, AgentSpan] = {}
        for key, node in graph.nodes.items():
            # A node is an agent, or runs the graph of one.
            own = [node] if type(node.says) is AgentSpan else inside.get(key, [])
            if len(own) == 1 and type(own[0].says) is AgentSpan:
                agents[key] = own[0].says
        for key, senders in _before(graph).items():
            if key not in agents or any(id(sender) not in agents for sender in senders):
                continue
            if len(senders) == 1:
                agents[key].after = agents[id(senders[0])].name
            else:
                agents[key].joins = tuple(agents[id(sender)] for sender in senders)


def _settle_functions(graphs: Mapping[int, _Graph]) -> None:
    """Mark nodes as agents in graphs in which nothing says who is an agent.

    The whole turn shows no model, tool or agent: the nodes are plain functions, or call a model
    without instrumentation. Then only they can hand work on: `router` writes `{"order": "42"}` into
    the state, `billing` answers from it. For a node that runs its own graph, the nodes of that
    graph count.
    """
    around: set[int] = set()
    for graph in graphs.values():
        at: Node | None = graph.span
        while at is not None:
            around.add(id(at))
            at = at.parent
    for graph in graphs.values():
        own = _name(graph.span)
        graph.span.says = as_workflow(graph.span.says, "graph" if own in _UNNAMED else own)
        before = _before(graph)
        agents: dict[int, AgentSpan] = {}
        for key, node in graph.nodes.items():
            place = node.says.graph
            if key in around or place is None or place.path[-1].startswith("__"):
                continue  # `__start__` puts the user's message into the state
            agent = as_agent(node.says, place.path[-1])
            carried = _carried(node.span)
            agent.input = _last_text(_inner(carried.given, "inputs"))
            made = _inner(carried.made, "outputs")
            if isinstance(made, dict) and "goto" in made and "update" in made:
                made = parsed(made["update"])
            agent.output = _last_text(made)
            node.says = agents[key] = agent
        for key, agent in agents.items():
            senders = [agents.get(id(sender)) for sender in before.get(key, [])]
            agent.joins = tuple(sender for sender in senders if sender is not None)
            if len(agent.joins) < len(senders):
                agent.joins = ()  # the sender runs a graph of its own, whose last agent is meant


def _before(graph: _Graph) -> dict[int, list[Node]]:
    """Return after which nodes each node of a graph ran, if LangGraph says so.

    A span names the edges that may start its node: with both sides if it waits for several nodes
    (`join:billing+stock:writer`), else with the node alone (`branch:to:writer`). Such an edge comes
    from the previous step, and its sender is known if one node ran in that step: once, or as
    several copies, one for each `Send`.
    """
    steps: dict[int, list[Node]] = {}
    said = {key: _metadata(node.span) for key, node in graph.nodes.items()}
    for key, node in graph.nodes.items():
        if isinstance(step := said[key].get("langgraph_step"), int):
            steps.setdefault(step, []).append(node)
    senders: dict[int, list[Node]] = {}
    last: dict[str, tuple[int, Node]] = {}
    for step in sorted(steps):
        for node in steps[step]:
            if len({_node_name(sender) for sender in steps.get(step - 1, ())}) == 1:
                senders[id(node)] = steps[step - 1]
            # A node that waits starts when all of them have run once since its last visit.
            visited = last[_node_name(node)][0] if _node_name(node) in last else -1
            for edge in said[id(node)].get("langgraph_triggers") or ():
                joined = _JOIN.fullmatch(edge) if isinstance(edge, str) else None
                names = joined.group(1).split("+") if joined is not None else []
                ran = [last[name] for name in names if name in last and last[name][0] >= visited]
                if names and len(ran) == len(names) and max(at for at, _ in ran) == step - 1:
                    senders[id(node)] = [sender for _, sender in ran]
        last |= {_node_name(node): (step, node) for node in steps[step]}
    return senders


def _node_name(node: Node) -> str:
    place = node.says.graph
    return place.path[-1] if place is not None and place.path else ""


def _last_text(state: Any) -> Content | None:
    """Return the answer in a state or an update: its last message, its only text, or all of it."""
    if isinstance(state, dict) and isinstance(state.get("messages"), list):
        said = [one.content for one in read_messages(state["messages"]) if one.content is not None]
        return said[-1] if said else None
    return content(_asked(state))


def _structured(span: Span) -> Content | None:
    """Return the structured answer of an agent, which is next to the messages in its state.

    With ``ToolStrategy``, the model writes it as a call of a tool that does not exist.
    """
    made = first(
        span.attributes,
        "output.value",
        "traceloop.entity.output",
        "gen_ai.completion",
        f"{_LANGFUSE}output",
        "mlflow.spanOutputs",
    )
    # First search the text, because decoding every state would be slow.
    if not isinstance(made, str) or '"structured_response"' not in made:
        return None
    state = _inner(made, "outputs")
    answer = state.get("structured_response") if isinstance(state, dict) else None
    if text(answer):  # traceAI writes an object of pydantic as Python prints it
        return Content(text=answer)
    return Content(data=answer) if isinstance(answer, dict) else None


def _tool_around(node: Node) -> ToolSpan | None:
    """Return the tool that runs a graph, which is then not in a node of another graph."""
    around = node.parent
    while around is not None:
        if type(around.says) is ToolSpan:
            return around.says
        around = around.parent
    return None


def _name(node: Node) -> str:
    """Return the name of what a span runs, without the words that instrumentations add."""
    named = node.says.name if not isinstance(node.says, HandoffSpan) else None
    return named or node.span.name


def _moved(node: Node, says: ToolSpan, own: GraphPlace) -> None:
    """Recognise a tool that left its graph, by the exception in the span around it."""
    around = node.parent
    while around is not None and type(around.says) is PlainSpan:
        place = around.says.graph
        if place is None:
            return
        if moved(around.span):
            # A tool that asked a person also raises an exception, but hands nothing over.
            says.mode = None if moved(around.span, _ASKS) else "transfer"
            return
        if place.path != own.path:
            return
        around = around.parent


DIALECT = Dialect(
    name="langgraph", resolve=resolve, refusals=("User rejected the tool call for `",)
)

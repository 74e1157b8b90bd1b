"""Convert OTLP files, and spans in memory, to traces: one trace for each conversation."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, product
from math import inf
from pathlib import Path
from typing import Any

import msgspec

from baton.formats.input_files import InputFile
from baton.model import (
    SCHEMA_VERSION,
    AgentCard,
    AgentRun,
    Content,
    Dropped,
    InputError,
    Problem,
    Said,
    Source,
    ToolCall,
    Trace,
    Turn,
    Usage,
)
from baton.model.trace import GUARD, OF_DECISIONS, SESSION, TurnStatus
from baton.model.views import sum_usage
from baton.readers.builder import TraceBuilder, not_before
from baton.readers.catalog import Catalog

from .attribute_values import text
from .context import Contexts, input_of
from .dialects import DIALECTS, framework_of
from .dispatches import ActionsByRun, link, offer_tools
from .length_limit import without_truncated
from .messages import last_of
from .record_as_spans import GUARD as OF_GUARDS
from .record_as_spans import part, restore
from .runs import RunSpans, find_runs, in_start_order
from .span import ERROR, Conversation, Event, Span, error_text
from .span_content import (
    OWNED,
    AgentSpan,
    MessageSpan,
    ModelSpan,
    Node,
    PlainSpan,
    ToolSpan,
    WorkflowSpan,
    instructions_text,
    is_own,
)
from .steps import write_steps
from .turns import whole_turns
from .unproven import settle_unproven
from .wire.conversations import group
from .wire.read import SpanFiles

_FOREIGN = tuple(prefix for dialect in DIALECTS for prefix in dialect.prefixes)
_LABELS = frozenset(
    key for dialect in DIALECTS for key in (*dialect.sessions, *dialect.conversations)
)
"""Attributes that only name the conversation of a span: no content is lost with them."""


_DECIDED = f"{OF_GUARDS}on"
"""The attribute of a span with a guard's decision."""
_CASE = "baton.case"
"""The attribute by which a program says which case it plays."""


def read_conversation(
    conversation: Conversation, source: Source, catalog: Catalog, *, torn: bool = False
) -> Trace:
    """Read the spans of one conversation; ``torn`` when some of the recording was lost."""
    truncated = without_truncated(conversation)
    reader = _Reader(catalog, torn, truncated=truncated > 0)
    if truncated:
        reader.dropped["values truncated by a length limit of attributes"] = truncated
    for nodes in whole_turns(conversation.turns, conversation.logs):
        reader.turn(nodes)
    played = reader.builder.finish()
    source.framework = reader.framework()
    guarded = _guarded(conversation)
    _refuse(played, guarded.get(GUARD, ()))
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=conversation.id,
        case=reader.case,
        source=source,
        turns=played,
        agents={**reader.cards, **catalog},
        usage=sum_usage([run.usage for turn in played for run in turn.runs]),
        unknown=[
            "state",
            "turn.state",
            *([] if framework_of(source.framework).has_data else ["turn.output.data"]),
        ],
        dropped=[Dropped(what=what, count=count) for what, count in reader.dropped.items()],
        attributes={
            **reader.builder.attributes(),
            **_session(conversation),
            **guarded,
        },
    )


def _session(conversation: Conversation) -> dict[str, Any]:
    """Return the user of a conversation, if its first turn has OpenTelemetry's attribute."""
    spans = conversation.turns[0] if conversation.turns else []
    users = (span.attributes.get("user.id") for span in spans if "user.id" in span.attributes)
    user = next(users, None)
    return {SESSION: {"user": user}} if isinstance(user, str) and user else {}


def _guarded(conversation: Conversation) -> dict[str, Any]:
    """Return the decisions of a guard, which are in separate spans."""
    decisions = [
        {
            key: span.attributes[f"{OF_GUARDS}{key}"]
            for key in OF_DECISIONS
            if isinstance(span.attributes.get(f"{OF_GUARDS}{key}"), str | bool)
        }
        for spans in conversation.turns
        for span in spans
        if _DECIDED in span.attributes
    ]
    return {GUARD: decisions} if decisions else {}


def _refuse(turns: Iterable[Turn], decisions: Iterable[Mapping[str, Any]]) -> None:
    """Mark the calls that a guard refused: their result is its reason, word for word.

    Frameworks record such a call like any other, pydantic-ai as one that succeeded and LangChain
    as one that failed. But it never ran: no claim rests on it, and nothing left its scope.
    """
    refused = {
        (each.get("tool"), each["reason"])
        for each in decisions
        if each.get("allowed") is False and each["on"] in _ASKED and each.get("reason")
    }
    if not refused:
        return
    for turn in turns:
        for step in (step for run in turn.runs for step in run.steps):
            if not isinstance(step, ToolCall) or step.dispatch is not None:
                continue
            read = [step.error, *_texts(step.result)]
            # The tool is not in a decision about a dispatch, which a call of any name may make.
            reason = next(
                (text for tool in (step.name, None) for text in read if (tool, text) in refused),
                None,
            )
            if reason is not None:
                step.status, step.refused_by = "refused", "policy"
                step.result, step.error = None, reason


_ASKED = ("tool", "dispatch")
"""What a guard decides before it happens."""


def _texts(result: Content | None) -> list[str | None]:
    """Return the text of a result, or the texts of an object: ADK's results have a name."""
    if result is None:
        return []
    values = result.data.values() if isinstance(result.data, dict) else ()
    return [result.text, *(value for value in values if isinstance(value, str))]


class _Reader:
    def __init__(self, catalog: Catalog, torn: bool, *, truncated: bool) -> None:
        self._torn = torn
        self._truncated = truncated
        self.builder = TraceBuilder(catalog)
        self.cards: dict[str, AgentCard] = {}
        self.case: str | None = None
        self.dropped: Counter[str] = Counter()
        self._frameworks: Counter[str] = Counter()
        self._clients: Counter[str] = Counter()
        self._contexts = Contexts()
        self._spent_before = 0.0

    def framework(self) -> str | None:
        """Return the framework that most spans belong to.

        Requests count only if there is nothing else: the instrumentation of a model's client has
        its own name, and a program can make more requests than anything else.
        """
        counted = self._frameworks or self._clients
        return counted.most_common(1)[0][0] if counted else None

    def turn(self, nodes: list[Node]) -> None:
        """Read one turn, unless no agent, model or tool was at work in it."""
        self._note(nodes)
        runs = find_runs(nodes)
        if not runs:
            return
        turn = self.builder.turn()
        actions: ActionsByRun = {}
        for run in runs:
            run.settle(self.builder.run(turn, run.agent, run.first.span.span_id))
            actions[id(run)] = write_steps(run, run.owned, self.builder.new_id)
            _describe(run, opens=run is runs[0] and not _lost_agent(run, nodes))
            _answer_with_tool(run)
            self._instruct(run)
            for agent in run.agents:
                if agent.reaches:
                    self.builder.may_reach(run.agent, agent.reaches)
            for model in run.models:
                if model.reaches:
                    self.builder.may_reach(run.agent, model.reaches)
        _forget_answers(runs)
        link(turn, runs, actions, self.builder)
        offer_tools(turn, self.cards, actions)
        turn.runs = in_start_order(turn)
        _finish(self.builder, turn, nodes, runs, self._torn)
        settle_unproven(turn, runs, actions, truncated=self._truncated)
        self._contexts.add(turn, runs)
        for node in nodes:
            # Otherwise parents and children keep each other alive until the garbage collector
            # looks for such cycles, which takes a tenth of the reading time.
            node.children.clear()

    def _instruct(self, draft: RunSpans) -> None:
        """Record an agent's instructions if only its model requests contain them.

        Prompts that are made at run time are not on the agent's own span. If there are several
        requests, the first one counts, because a prompt can contain the time of day. Instructions
        from the agent's own span or from a definition are not replaced.
        """
        run = draft.run
        if "agent" in run.unknown or not draft.models:
            return
        card = self.cards.get(run.agent)
        if card is not None and card.instructions:
            return
        model = draft.models[0]
        instructions = instructions_text(model)
        if instructions is None:
            said = (m.content for m in model.heard_messages() if m.role == "system")
            instructions = "\n".join(content.plain() for content in said if content is not None)
        if instructions:
            self.cards.setdefault(run.agent, AgentCard()).instructions = instructions

    def _note(self, nodes: list[Node]) -> None:
        """Record data about the whole conversation from the spans of a turn."""
        for node in nodes:
            says = node.says
            if self.case is None and _CASE in node.span.attributes:
                self.case = text(node.span.attributes[_CASE])
            if type(says) is PlainSpan:
                lost = unread(node.span, says)
                if lost is not None:
                    self.dropped[lost] += 1
            elif says.framework is not None:
                counts = self._clients if type(says) is ModelSpan else self._frameworks
                counts[says.framework] += 1
            if type(says) is AgentSpan:
                self._define(says.name, says)
                if says.session_cost is not None:
                    self._spent_before = _since(self._spent_before, says)
            elif type(says) is PlainSpan or type(says) is WorkflowSpan:
                if says.agent is not None and _defines(says.agent):
                    self._define(says.name, says.agent)

    def _define(self, name: str | None, agent: AgentSpan) -> None:
        """Add the parts of an agent's definition that a span contains."""
        if name is not None and agent.card is not None:
            known = self.cards.setdefault(name, AgentCard())
            known.description = known.description or agent.card.description
            known.tools = known.tools or agent.card.tools
            known.model = known.model or agent.card.model
            known.instructions = known.instructions or instructions_text(agent)


def _forget_answers(runs: list[RunSpans]) -> None:
    """Drop inputs that are answers of agents which the agent started before its first request.

    AutoGen's SocietyOfMindAgent runs a team, and only then asks its model for a summary. What the
    agent itself was given is not recorded.
    """
    said: dict[int, set[str]] = {}
    for run in runs:
        if run.outer is not None and run.caller is None and run.run.output is not None:
            said.setdefault(id(run.outer), set()).add(run.run.output.plain())
    for run in runs if said else ():
        given = run.run.input
        inside = set().union(*(said.get(id(node), ()) for node in run.nodes))
        if given is not None and given.plain() in inside:
            run.run.input = None
            run.run.unknown.append("input")


def _defines(agent: AgentSpan) -> bool:
    """Return whether the span of something that did not work as an agent defines one.

    Nodes of a graph, hooks and workflows can look like agents, but their spans define nothing:
    `PatchToolCallsMiddleware.before_agent` of LangChain.
    """
    card = agent.card
    said = card is not None and (card.description or card.tools is not None or card.model)
    return bool(said or agent.instructions)


def _since(before: float, says: AgentSpan) -> float:
    """Subtract earlier turns from a cumulative cost; returns the current total.

    A total that is lower than the one before started again from zero, with another process.
    """
    now, totals = says.session_cost or 0.0, says.totals
    if now >= before and totals is not None and totals.cost_usd is not None:
        own = round(totals.cost_usd - before, 10)
        totals.cost_usd, totals.cost_from = (own, "source") if own >= 0 else (None, None)
    return now


def unread(span: Span, says: PlainSpan) -> str | None:
    """Return what is lost with a span; ``None`` if it is known to hold no work of an agent."""
    if says.lost is not None:
        return says.lost
    if says.framework is None and says.name is None and says.agent is None:
        if any(key.startswith(_FOREIGN) and key not in _LABELS for key in span.attributes):
            return f"spans of `{span.scope or span.name}` that follow no known convention"
    return None


def _failed(draft: RunSpans) -> AgentSpan | None:
    """Return the reading of an agent that failed, and was not run again with success."""
    again = max((node.started for node in draft.nodes if not node.says.failed), default=0.0)
    for node in draft.nodes:
        if type(node.says) is AgentSpan and node.says.failed and node.ended > again:
            return node.says
    return None


def _describe(draft: RunSpans, opens: bool) -> None:
    """Fill in the fields of a run other than its steps: input, output, times, tokens, status."""
    run, agents, models = draft.run, draft.agents, draft.models
    # The enclosing workflows, except those that only wrap an agent of the same name.
    at = draft.first.in_workflow
    while at is not None:
        if type(at.says) is WorkflowSpan and at.says.name not in (None, draft.agent):
            run.inside.append(at.says.name or "")
        at = at.in_workflow
    if run.inside:
        run.inside = list(dict.fromkeys(reversed(run.inside)))
    spans = [node.span for node in (draft.nodes or draft.owned)]
    starts = [span.started for span in spans if span.started is not None]
    run.started = min(starts, default=None)
    ends = [span.ended for span in spans if span.ended is not None]
    run.ended = not_before(
        run.started, max(ends, default=None) if len(ends) == len(spans) else None
    )
    for agent in agents:
        if agent.node:
            run.node = agent.node
            break
    tellers: list[ModelSpan | AgentSpan] = [*agents, *models]
    for says in reversed(tellers):
        if says.model:
            run.model = says.model
            break
    run.usage = _usage(draft, models, agents)
    run.input = input_of(agents, models)
    run.output = _output(run, agents)
    offering: list[ModelSpan | AgentSpan] = [*models, *agents]
    offered = [names for says in offering if (names := says.offered) is not None]
    if offered:  # most requests of a run offer the same tools
        alike = offered.count(offered[0]) == len(offered)
        run.tools_offered = list(dict.fromkeys(offered[0] if alike else chain(*offered)))
    failed = _failed(draft)
    if failed is not None:
        run.status, run.error = "failed", failed.error
    elif (error := _broke_off(draft)) is not None:
        run.status, run.error = "failed", error
    elif run.output is None and (last := _last_request(draft)) is not None and last.failed:
        run.status, run.error = "failed", last.error
    elif run.ended is None:
        run.status = "unknown"
    for name, value in (
        ("input", run.input),
        ("usage", run.usage),
        ("model", run.model),
        ("tools_offered", run.tools_offered),
        ("started", run.started),
    ):
        if value is None:
            run.unknown.append(name)
    # If a request does not record its answer, texts can be missing.
    speakers: list[ModelSpan] | list[AgentSpan] = models or agents
    without_texts = "steps.said" in run.unknown
    silent = without_texts or not speakers or any(map(_is_silent, speakers))
    if silent and not without_texts:
        run.unknown.append("steps.said")
    if run.output is None and (silent or _answers_by_function(run, models)):
        run.unknown.append("output")
    if agents and not models and not any(agent.tells_tools for agent in agents):
        run.unknown.append("steps.tool_call")
    elif not _tells_calls(draft, models, agents, silent):
        run.unknown.append("steps.refused")
    if not draft.named and not opens:
        run.unknown.append("agent")


def _answer_with_tool(draft: RunSpans) -> None:
    """Take the result of the last call as the answer of an agent that asked no model after it."""
    run = draft.run
    says = draft.owned[-1].says if draft.owned else None
    if run.output is not None or run.status != "completed" or not draft.nodes:
        return
    if type(says) is not ToolSpan or says.mode == "transfer" or says.waits:
        return
    if framework_of(draft.first.says.framework).ends_with_tool and "output" not in run.unknown:
        run.output = None if says.failed else says.result
        run.unknown += [] if run.output is not None else ["output"]


def _last_request(draft: RunSpans) -> ModelSpan | None:
    """Return the request with which a run ended; ``None`` if it did anything else after it.

    If that request failed and there is no answer, the run failed with it: LlamaIndex's span of an
    agent ends well when one of its steps raises.
    """
    says = draft.owned[-1].says if draft.owned else None
    return says if type(says) is ModelSpan else None


def _broke_off(draft: RunSpans) -> str | None:
    """Return the error that ended a run, in frameworks that record it below the agent's span."""
    node = (draft.nodes or draft.owned)[-1]
    broke_off = framework_of(node.says.framework).broke_off
    return broke_off(node) if broke_off is not None else None


def _answers_by_function(run: AgentRun, models: list[ModelSpan]) -> bool:
    """Return whether a function of pydantic-ai made the answer of a run from the model's call.

    Without content, nothing holds that answer.
    """
    last = run.steps[-1] if run.steps else None
    return type(last) is ToolCall and any(last.name in model.answers_by for model in models)


def _is_silent(says: ModelSpan | AgentSpan) -> bool:
    """Return whether a request was answered but its answer is not recorded."""
    if says.failed:
        return False
    if says.spoken is None:
        return True
    return any(message.hidden for message in says.spoken_messages())


def _tells_calls(
    draft: RunSpans, models: list[ModelSpan], agents: list[AgentSpan], silent: bool
) -> bool:
    """Return whether all calls that a run's models wrote are recorded, and not only tools that ran.

    If the models' answers are not recorded (``silent``), a call that the runtime refused leaves no
    trace.
    """
    if models:
        return not silent and all(model.failed or model.tells_calls for model in models)
    if any(type(node.says) is MessageSpan for node in draft.owned):
        return True
    return any(message.calls for agent in agents for message in agent.spoken_messages())


def _usage(draft: RunSpans, models: list[ModelSpan], agents: list[AgentSpan]) -> Usage | None:
    """Add up the usage of model requests; an agent's own total counts only if they have none."""
    inner = [node.says for node in draft.inner if type(node.says) is ModelSpan]
    requests: list[Usage | None] = []
    for model in (*models, *inner):
        usage = model.usage or Usage(requests=1, complete=model.failed)
        if model.failed:
            usage.requests, usage.failed_requests = None, 1
            usage.complete |= (usage.input_tokens, usage.output_tokens) == (None, None)
        requests.append(usage)
    summed = sum_usage(requests)
    if summed is not None and (summed.input_tokens, summed.output_tokens) != (None, None):
        return summed
    own = (agent.totals for agent in agents if agent.totals is not None)
    totals = [t for t in own if (t.input_tokens, t.output_tokens, t.cost_usd) != (None,) * 3]
    if totals:
        total = sum_usage(totals)
        if total is not None:
            total.requests = summed.requests if summed is not None else None
            total.failed_requests = summed.failed_requests if summed is not None else None
        return total
    return summed


def _output(run: AgentRun, agents: list[AgentSpan]) -> Content | None:
    """Return the last answer of a run: from its span, else its text after the last call."""
    stated = next((agent.output for agent in agents if agent.output is not None), None)
    for step in reversed(run.steps):
        if type(step) is ToolCall:
            break
        if type(step) is Said and not step.thought:
            same = stated is None or stated.plain().strip() == step.content.plain().strip()
            return step.content if same else stated
    for agent in agents:
        output = stated or last_of(agent.spoken_messages(), "assistant")
        if output is not None and output.text is not None:
            return msgspec.structs.replace(output, text=output.text.rstrip())
        if output is not None:
            return output
    return None


def _finish(
    builder: TraceBuilder, turn: Turn, nodes: list[Node], runs: list[RunSpans], torn: bool
) -> None:
    """Fill in the fields of a turn other than its runs."""
    top = [run for run in runs if run.place is None] or runs
    frames: list[tuple[Node, WorkflowSpan | PlainSpan]] = []
    for node in nodes:
        says = node.says
        if node.in_agent is None and node.in_tool is None:
            is_outermost = node.parent is None or is_own(node.parent)
            if type(says) is WorkflowSpan or (type(says) is PlainSpan and is_outermost):
                frames.append((node, says))
    turn.started = min([node.started for node in nodes if node.started], default=None)
    ends = [node.ended for node in nodes if node.ended < inf]
    turn.ended = not_before(turn.started, max(ends, default=None))
    turn.input = next((c for _, says in frames if (c := says.asked())), None)
    turn.input = turn.input or _opening(nodes, top)
    last = max(top, key=lambda run: run.ended)
    answered = [run for run in top if run.run.output is not None]
    turn.output = _answer_of(answered, frames) if answered else None
    if turn.output is None and last.run.status == "completed":
        answers = (last_of(says.spoken_messages(), "assistant") for _, says in frames)
        turn.output = next((content for content in answers if content), None)
    status, error = _end(nodes, frames, last, torn)
    if last.run.status == "failed":
        turn.output = None
    waiting = [run.run for run in runs if run is last or _asked(run.run) or _waits_below(run)]
    waiting = waiting if status == "waiting" else []
    builder.end_turn(turn, status, error, waiting=waiting)
    turn.unknown += [name for name in ("input", "started") if getattr(turn, name) is None]
    together = framework_of(last.first.says.framework).answers_together and any(
        run is not last and run.ended > last.started for run in top
    )
    if (together or "output" in last.run.unknown) and last.run.status != "failed":
        turn.output = None
        turn.unknown.append("output")


def _waits_below(run: RunSpans) -> bool:
    """Return whether an agent stopped at a call, below a call that waits for a person."""
    last = run.run.steps[-1] if run.run.steps else None
    stopped = type(last) is ToolCall and last.status in ("unanswered", "waiting")
    return stopped and run.caller is not None and run.caller.says.waits


def _opening(nodes: list[Node], top: list[RunSpans]) -> Content | None:
    """Return the input of the agent that opens a turn, which is the message of the user.

    Unknown if a function came before it, or if copies of the agent were given different inputs: a
    function may split a request, and give a part to each copy.
    """
    first = top[0]
    is_function = framework_of(first.first.says.framework).is_function
    if is_function is not None:
        if any(is_function(node.span) and node.started <= first.started for node in nodes):
            return None
    for run in top:
        if run.agent == first.agent and not run.run.started_by and run.run.input is not None:
            if run.run.input != first.run.input:
                return None
    return first.run.input


def _answer_of(
    answered: list[RunSpans], frames: Sequence[tuple[Node, WorkflowSpan | PlainSpan]]
) -> Content | None:
    """Return the last answer, or of agents that ran in parallel the one that their program gives.

    A graph in LangGraph can end with several nodes, or with one that only decides what comes next
    (`{"next": "FINISH"}`). Its answer is then the last message of its state, whichever node ended
    last. A text of several words at the end is the answer, even if it is no message: a writer may
    put its report under another key of the state.
    """
    last = max(answered, key=lambda run: run.ended)
    others = [run for run in answered if run is not last]
    beside = [run for run in others if run.ended > last.started]
    decided = last.run.output is not None and _only_decides(last.run.output)
    for _, says in frames:
        asked = others if says.graph is not None and decided else beside
        spoken = says.spoken_messages() if asked else []
        given = last_of(spoken, "assistant")
        if given is not None and decided and says.graph is not None:
            # A node may have written it whose agent failed: `Error: the sandbox is gone`.
            return given
        if given is None and spoken and decided:
            # Functions as nodes may write an agent's answer as a message in the role of a user:
            # `HumanMessage(answer, name="researcher")`, as the models of some providers need it.
            given = spoken[-1].content
        if given is not None and given == last.run.output:
            return given
        for run in asked:
            if given is not None and given == run.run.output:
                return run.run.output
    return last.run.output


# LangGraph calls the end of a graph `END`, which is the text `__end__`; its examples let the model
# of a supervisor say `FINISH`.
_ENDS = frozenset({"finish", "finished", "end", "done", "stop"})


def _only_decides(answer: Content) -> bool:
    """Return whether an answer only says that nobody is next: `FINISH`, or an object with it.

    `{"next": "FINISH", "why": "All is answered."}` does, a report such as `{"total": 42}` does not.
    """
    value = answer.value()
    said = value.values() if isinstance(value, dict) else [value]
    return any(isinstance(each, str) and each.strip().strip("_").lower() in _ENDS for each in said)


def _end(
    nodes: list[Node],
    frames: Sequence[tuple[Node, WorkflowSpan | PlainSpan]],
    last: RunSpans,
    torn: bool,
) -> tuple[TurnStatus, str | None]:
    """Set how a turn ended; ``frames`` enclose its runs, of which ``last`` ended last."""
    # LangGraph also leaves a graph on purpose with the status ERROR, and then nothing has failed.
    broken = [
        (node, says)
        for node, says in frames
        if node.span.status == ERROR and (says.failed or says.graph is None)
    ]
    failed = next(((n, says) for n, says in broken if _top(n) is _top(last.first)), None)
    if last.run.status == "failed":
        return "failed", last.run.error
    if failed is not None:
        return "failed", failed[1].error or error_text(failed[0].span)
    if last.run.ended is None:
        return "incomplete", f"the recording ends before `{last.run.agent}` has ended"
    lost = _lost_parents(nodes, torn)
    if lost:
        return "incomplete", f"spans are missing: {lost} of the spans around those recorded"
    # The program stopped to wait for a person, and did not continue afterwards.
    asked = max((node.ended for node in nodes if node.says.waits), default=None)
    if asked is not None and all(node.started <= asked for node in nodes):
        return "waiting", None
    if _asked(last.run):
        return "waiting", None
    return "completed", None


def _asked(run: AgentRun) -> bool:
    """Return whether a run ends with a call that waits for a person."""
    done = [step for step in run.steps if type(step) is Said or type(step) is ToolCall]
    return bool(done) and type(done[-1]) is ToolCall and done[-1].status == "waiting"


def _lost_parents(nodes: list[Node], torn: bool) -> int:
    """Count the spans that are named as a parent but are not in the recording.

    An agent's parent can belong to another program. If no agent has a span, the parent of a model
    request can belong to a web server. If agents have spans, a missing parent is a lost span.
    """
    loose = nodes
    if not torn:
        if not any(type(node.says) is AgentSpan for node in nodes):
            return 0
        loose = [n for n in nodes if n.in_agent is None and type(n.says) in OWNED]
    tops = {id(top): top for top in map(_top, loose)}
    if not torn and len(tops) == 1 and all(id(_top(node)) in tops for node in nodes):
        # One whole tree, in a program that another one called: a web server, for example.
        return sum(bool(t.span.parent_id) for t in tops.values() if type(t.says) in OWNED)
    return len({top.span.parent_id for top in tops.values() if top.span.parent_id})


def _lost_agent(run: RunSpans, nodes: list[Node]) -> bool:
    """Return whether an agent without a span lost it: a parent is missing inside a workflow.

    CrewAI has an agent in each crew. If its span is lost, the program did not ask the model itself.
    """
    if run.named:
        return False
    top = _top(run.first)
    return bool(top.span.parent_id) and any(
        type(node.says) is WorkflowSpan and node.started <= top.started and top.ended <= node.ended
        for node in nodes
        if node.parent is None and node is not top
    )


def _top(node: Node) -> Node:
    while node.parent is not None:
        node = node.parent
    return node


def traces_of(
    conversation: Conversation,
    place: str | None,
    catalog: Catalog,
    problems: list[Problem],
    *,
    torn: bool = False,
) -> Iterator[Trace]:
    """Yield the traces of a conversation: records that Baton wrote as spans, and all other spans.

    Contradictions are added to ``problems``. ``place`` is the source of the traces, and ``torn``
    states that part of the recording was lost.
    """
    records, others = part(conversation)
    restored: list[Trace] = []
    for record in records:
        try:
            restored.append(restore(record, place))
        except InputError as error:
            problems += error.problems
    trace = None
    if others.spans or not records:
        source = Source(format="otlp", location=place)
        trace = read_conversation(others, source, catalog, torn=torn)
        # A guard decides while a program of the Claude Agent SDK runs, and the record is written
        # when the program has ended. So there are only decisions besides the record.
        if not trace.turns and len(restored) == 1 and GUARD not in restored[0].attributes:
            restored[0].attributes |= _guarded(others)
    yield from restored
    if trace is not None and trace.turns:
        yield trace


_NO_AGENT = "has no spans of an agent, model or tool, so it does not show which agents worked"


def read_files(
    inputs: Sequence[InputFile], catalog: Catalog, part: tuple[int, int] = (0, 1)
) -> Iterator[Trace]:
    """Yield the traces of files that belong together, one for each conversation.

    ``part`` selects a part of the conversations: ``(1, 4)`` is the second of four. The traces and
    errors of all parts are those of the whole. The first trace lists what could not be read.

    Raises:
        InputError: a file is broken (raised at the end, after all complete data), or all spans
            are from programs without agents.
    """
    number, of = part
    lost: list[Dropped] = []
    files = [each.path for each in inputs]
    place = str(files[0]) if len(files) == 1 else os.path.commonpath([f.parent for f in files])
    problems: list[Problem] = []
    with closing(SpanFiles(inputs, on_lost=lost.append)) as recorded:
        torn = bool(lost)
        start, end = (len(recorded) * each // of for each in (number, number + 1))

        def traces(places: range, problems: list[Problem]) -> Iterator[Trace]:
            for each in places:
                yield from traces_of(recorded[each], place, catalog, problems, torn=torn)

        def is_any_in(places: range) -> bool:
            return next(traces(places, []), None) is not None

        if start and lost and is_any_in(range(start)):
            lost = []
        first = True
        for trace in traces(range(start, end), problems):
            if first:
                trace.dropped += lost
            first = False
            yield trace
        if number == 0:
            problems[:0] = recorded.problems
        if problems:
            raise InputError(problems)
        if number or not first or is_any_in(range(end, len(recorded))):
            return
    if not recorded.spans:
        raise InputError(
            _cut_off(files, lost) or Problem(file=str(files[0]), message="contains no spans")
        )
    also = "".join(f"; {item.what}: {item.count}" for item in lost)
    raise InputError(Problem(file=str(files[0]), message=_NO_AGENT + also))


def _cut_off(files: Sequence[Path], lost: Sequence[Dropped]) -> Problem | None:
    """Return a problem for a file that ends before its first complete span, if there is one."""
    examples = [item.example or "" for item in lost if "truncated" in item.what]
    for file, example in product(files, examples):
        if example.startswith(f"{file}: "):
            place = example.removeprefix(f"{file}: ")
            message = f"{place}: is truncated here, and no complete span comes before it"
            return Problem(file=str(file), message=message)
    return None


def read_spans(spans: list[Span], logs: list[Event], catalog: Catalog | None = None) -> list[Trace]:
    """Read spans in memory; returns one trace for each conversation with a working agent."""
    traces = (
        read_conversation(conversation, Source(format="otlp"), catalog or {})
        for conversation in group(spans, logs)
    )
    return [trace for trace in traces if trace.turns]

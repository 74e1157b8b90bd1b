"""Groups spans into turns: spans that answer a waiting call continue the waiting turn."""

from __future__ import annotations

from collections.abc import Iterator

from .attribute_values import same_name
from .dialects import goes_on
from .messages import Message
from .span import Event, Span
from .span_content import ModelSpan, Node, ToolSpan
from .steps import is_pending
from .tree import build_tree


def whole_turns(turns: list[list[Span]], logs: list[Event]) -> Iterator[list[Node]]:
    """Yield the nodes of each turn, as ``build_tree`` returns them.

    ``turns`` are the spans that a trace or links connect, in start order. A program that asks a
    person ends its trace and resumes in a new one, often much later. If the new spans prove that
    they resume the work of the spans before, both are one turn.
    """
    if len(turns) == 1:
        yield build_tree(turns[0], logs)
        return
    pending: _Pending | None = None
    for spans in turns:
        part = _Part(spans, logs)
        if pending is not None and pending.is_resumed_by(part):
            pending.add(part)
            continue
        if pending is not None:
            yield pending.nodes(logs)
        pending = _Pending(part)
    if pending is not None:
        yield pending.nodes(logs)


class _Part:
    """Connected spans, which are read only when needed."""

    def __init__(self, spans: list[Span], logs: list[Event]) -> None:
        self.spans = spans
        self._logs = logs
        self._nodes: list[Node] | None = None

    @property
    def nodes(self) -> list[Node]:
        """The nodes of these spans alone."""
        if self._nodes is None:
            self._nodes = build_tree(self.spans, self._logs)
        return self._nodes

    def clear(self) -> None:
        """Drop the nodes; parents and children would keep each other alive."""
        for node in self._nodes or ():
            node.children.clear()
        self._nodes = None

    def models(self) -> list[tuple[Node, ModelSpan]]:
        """Return the model requests with their nodes, in start order."""
        models = [(node, says) for node in self.nodes if type(says := node.says) is ModelSpan]
        return sorted(models, key=lambda pair: pair[0].started)

    def written(self) -> dict[str, str]:
        """Return the calls that models wrote: the name of the tool by the id of the call."""
        return {
            call.id: call.name
            for _, model in self.models()
            for message in model.spoken_messages()
            for call in message.calls
            if call.id is not None
        }

    def answered(self) -> set[str]:
        """Return the ids of calls that were carried out or answered, unless a person was asked."""
        heard = [m for _, model in self.models() for m in model.heard_messages()]
        results = [(a.id, a.result.plain() if a.result else "") for m in heard for a in m.answers]
        for node in self.nodes:
            says = node.says
            if type(says) is ToolSpan and not says.waits:
                result = says.result.plain() if says.result is not None else says.error
                results.append((says.call, result or ""))
        return {id_ for id_, result in results if id_ is not None and not is_pending(result)}

    def begins_with(self) -> dict[str, str | None]:
        """Return the calls that are answered first: the name of the tool, if known, by id.

        Either the first request contains the answers, or the tools run before it. If the user says
        something new as well, this is a new turn, and nothing is returned.
        """
        models = self.models()
        node, model = models[0] if models else (None, None)
        latest = _since_last_answer(model.heard_messages()) if model is not None else []
        if any(message.role == "user" and message.content is not None for message in latest):
            return {}
        answered = {a.id: a.name for message in latest for a in message.answers if a.id is not None}
        for tool in self.nodes:
            says = tool.says
            if type(says) is ToolSpan and says.call is not None:
                if node is None or tool.started < node.started:
                    answered[says.call] = says.name
        own = self.written() if answered else {}
        return {id_: name for id_, name in answered.items() if id_ not in own}


class _Pending:
    """A turn that the next spans may resume."""

    def __init__(self, part: _Part) -> None:
        self._parts = [part]
        self._spans = list(part.spans)
        self._counted = 0
        self._written: dict[str, str] = {}
        self._answered: set[str] = set()

    def add(self, part: _Part) -> None:
        """Add spans that resume this turn."""
        self._parts.append(part)
        self._spans += part.spans

    def nodes(self, logs: list[Event]) -> list[Node]:
        """Return the nodes of all parts."""
        if len(self._parts) == 1:
            return self._parts[0].nodes
        for part in self._parts:
            part.clear()
        return build_tree(self._spans, logs)

    def is_resumed_by(self, part: _Part) -> bool:
        """Return whether spans prove that they resume this turn."""
        stated = goes_on(self._spans, part.spans) or _resumes(self._parts[-1], part)
        return stated or self._is_answered_by(part)

    def _is_answered_by(self, part: _Part) -> bool:
        """Return whether spans begin with the answer to a call that is still open.

        Frameworks keep the id of a call. Some models restart their ids (``call_1``) in each
        request, so the tool must be the same, and the call must not have been answered before.
        """
        begins = part.begins_with()
        if not begins:
            return False
        for before in self._parts[self._counted :]:
            self._written |= before.written()
            self._answered |= before.answered()
        self._counted = len(self._parts)
        return any(
            id_ in self._written
            and id_ not in self._answered
            and (name is None or same_name(name, self._written[id_]))
            for id_, name in begins.items()
        )


def _since_last_answer(heard: list[Message]) -> list[Message]:
    """Return the messages after the last one that a model wrote."""
    written = [place for place, message in enumerate(heard) if message.role == "assistant"]
    return heard[written[-1] + 1 :] if written else []


def _resumes(before: _Part, part: _Part) -> bool:
    """Return whether spans begin with the command that resumes a program that waits."""
    done = [node.started for node in part.nodes if type(node.says) in (ModelSpan, ToolSpan)]
    begins = any(
        node.says.resumes and node.started <= min(done, default=node.started) for node in part.nodes
    )
    return begins and any(node.says.waits for node in before.nodes)

"""The context of a run: its input, and the rest of its first model request."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import msgspec

from baton.model import Content, Ref, Said, ToolCall, Turn

from .dialects import framework_of
from .messages import Message
from .runs import RunSpans
from .span_content import AgentSpan, ModelSpan


def input_of(agents: list[AgentSpan], models: list[ModelSpan]) -> Content | None:
    """Return what started a run: the last user message before its first answer."""
    tellers: list[AgentSpan | ModelSpan] = [*agents, *models[:1]]
    for says in tellers:
        stated = says.input if type(says) is AgentSpan else None
        asked = stated if stated is not None else says.asked()
        if asked is not None and _is_retold(says, asked):
            own = [m.content for m in says.heard_messages() if m.role == "user" and m.content]
            asked = next((each for each in reversed(own) if not _is_retold(says, each)), asked)
        if asked is not None:
            return asked
    return None


def _is_retold(says: AgentSpan | ModelSpan, content: Content) -> bool:
    retold = framework_of(says.framework).retold
    return retold is not None and retold(content.text or "") is not None


class Contexts:
    """Finds the input and context of the runs of a conversation, turn by turn."""

    def __init__(self) -> None:
        self._turns: list[Turn] = []
        # The first step or turn with each text, and the run that it belongs to.
        self._ids: dict[str, _Source] = {}
        self._read = 0

    def add(self, turn: Turn, runs: list[RunSpans]) -> None:
        """Fill in the context of the runs of a turn, whose steps have their ids."""
        self._turns.append(turn)
        for draft in runs:
            heard = self._first_request(draft)
            if heard is None:
                draft.run.unknown.append("context")
                continue
            if heard:
                self._note_turns()
            asked = next((n.started for n in draft.owned if n.says is draft.models[0]), inf)
            refs: dict[tuple[str | None, str], Ref] = {}
            for message in heard:
                for text in _texts(draft, message):
                    ref = self._ref(text, draft, asked)
                    # A call and its result are one step.
                    refs[ref.id, ref.text or ""] = ref
            draft.run.context = list(refs.values())

    def _first_request(self, draft: RunSpans) -> list[Message] | None:
        """Return the messages of the first request, without instructions and the input."""
        model = next(iter(draft.models), None)
        if model is None or model.heard is None or model.context_lost:
            return None
        if any(agent.context_lost for agent in draft.agents):
            return None
        messages = model.heard_messages()
        if not messages or any(message.hidden for message in messages):
            return None
        given = draft.run.input
        left = [message for message in messages if message.role != "system"]
        for place in range(len(left) - 1, -1, -1):
            if left[place].role == "user" and left[place].content == given:
                return left[:place] + left[place + 1 :]
        return left

    def _ref(self, text: str, draft: RunSpans, asked: float) -> Ref:
        """Return a reference to the source of a text in this trace, or one that holds the text.

        What comes later than the first request of a run is no source. It may repeat the history
        of a conversation that the recording does not hold: "Check Hel." was asked yesterday, and
        is asked again.
        """
        source = self._ids.get(text.strip())
        if source is None or source.run == draft.run.id or source.at > asked:
            return Ref(text=text)
        return Ref(id=source.id)

    def _note_turns(self) -> None:
        """Note the texts of the turns since the last time that somebody asked for them."""
        while self._read < len(self._turns):
            self._note(self._turns[self._read])
            self._read += 1

    def _note(self, turn: Turn) -> None:
        self._keep(turn.input, _Source(turn.id, turn.started or 0.0))
        for run in turn.runs:
            # The span of a request can stay open while another agent works, so only the start of
            # the run shows that what it said can have come before.
            began = run.started or 0.0
            for step in run.steps:
                if type(step) is Said:
                    self._keep(step.content, _Source(step.id, began, run.id))
                elif type(step) is ToolCall:
                    made = _Source(step.id, step.at or began)
                    self._ids.setdefault(_call(step.name, step.arguments), made)
                    self._keep(step.result, made)
            self._keep(run.output, _Source(run.id, began, run.id))

    def _keep(self, content: Content | None, source: _Source) -> None:
        if content is not None and (text := content.plain().strip()):
            self._ids.setdefault(text, source)


class _Source(NamedTuple):
    """A step, run or turn with a text, and from when it can have been known (0: at any time).

    ``run`` is the run that said it: a run says nothing before its first request. It can have called
    a tool, if a person allowed a call of an earlier run.
    """

    id: str
    at: float
    run: str | None = None


def _texts(draft: RunSpans, message: Message) -> list[str]:
    """Return the text, calls and answers of a message as separate strings."""
    texts: list[str] = []
    content = message.content
    if content is not None and (text := content.plain()):
        retold = framework_of(draft.first.says.framework).retold
        repeated = retold(text) if retold is not None else None
        texts += (text,) if repeated is None else repeated
    texts += [_call(call.name, call.arguments) for call in message.calls]
    for answer in message.answers:
        if answer.result is not None and (text := answer.result.plain()):
            texts.append(text)
    return texts


def _call(name: str, arguments: object) -> str:
    return msgspec.json.encode([name, arguments]).decode()

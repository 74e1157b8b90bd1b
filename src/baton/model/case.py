"""Expectations: cases and datasets. ``None`` means that nothing is stated."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from .stand_ins import StandIns
from .trace import CallStatus, Content, DispatchKind, DispatchStatus, Record, RunStatus, Trace


def text_hash(text: str) -> str:
    """Return a hash of a text (the first 12 hex digits of its sha256): its version."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


class Location(Record, kw_only=True):
    """The place of a case; lines count from 1."""

    file: str
    line: int | None = None

    def __str__(self) -> str:
        return self.file if self.line is None else f"{self.file}:{self.line}"


class Session(Record, kw_only=True):
    """The session a case is played in."""

    app: str | None = None
    user: str | None = None
    id: str | None = None


class CaseRubric(Record, kw_only=True):
    """A statement an answer is judged by."""

    text: str
    id: str | None = None
    type: str | None = None


class ExpectedDispatch(Record, kw_only=True):
    """A dispatch that should happen."""

    to: str
    kind: DispatchKind | None = None
    prompt_contains: list[str] | None = None
    tools: list[str] | None = None
    parallel: bool | None = None


class ExpectedToolCall(Record, kw_only=True):
    """A tool call that should happen; arguments of ``None`` are not stated."""

    name: str
    arguments: dict[str, Any] | None = None
    agent: str | None = None


class ExpectedVisit(Record, kw_only=True):
    """An agent that should speak, after which agents, and what it should say."""

    agent: str
    after: list[str] | None = None
    says: list[str] | None = None


class AnyOrder(Record, kw_only=True):
    """Agents that run side by side: all of them, starting in any order."""

    any_order: list[str]


class ExpectedTurn(Record, kw_only=True):
    """A user message and the expected result.

    Before it is sent, ``restart`` restarts the agents' server, and ``new_session`` opens another
    session.
    """

    input: Content
    new_session: bool = False
    restart: bool = False
    response: Content | None = None
    response_contains: list[str] | None = None
    response_not_contains: list[str] | None = None
    structured: dict[str, Any] | None = None
    agents: Sequence[str | AnyOrder] | None = None
    dispatches: list[ExpectedDispatch] | None = None
    tool_calls: list[ExpectedToolCall] | None = None
    interactions: list[ExpectedVisit] | None = None
    rubrics: list[CaseRubric] | None = None


class Scenario(Record, kw_only=True):
    """A conversation that a simulated user has to hold; it has no fixed turns."""

    start: str
    plan: str


Form = Literal["decision", "child", "integration"]
"""The form in which a dispatch is played again: the sender chooses again and play stops at its
dispatch; the receiver gets the same prompt; the sender gets the recorded result and continues.
"""


class MadeCall(Record, kw_only=True):
    """A call of a tool in a dispatch case, with its answer."""

    name: str
    arguments: Any = None
    result: Content | None = None
    status: CallStatus = "ok"
    refused_by: Literal["runtime", "policy", "user"] | None = None
    error: str | None = None
    unknown: list[str] = msgspec.field(default_factory=list)


class Message(Record, kw_only=True):
    """A message before or after a dispatch: from the user or an agent.

    ``calls`` are the tools that an agent called, after the text if there is one.
    """

    role: Literal["user", "agent"]
    agent: str | None = None
    text: str | None = None
    calls: list[MadeCall] = msgspec.field(default_factory=list)


class MadeDispatch(Record, kw_only=True):
    """The call that made the dispatch, and its result.

    ``tool`` is the tool that made it, if there is one, with its ``arguments``. ``tools`` are those
    that the receiver may use. ``unknown`` names what the source did not record, as in a
    :class:`baton.model.Dispatch`; other fields that are ``None`` did not exist.
    """

    sender: str | None = None
    to: str
    kind: DispatchKind = "delegate"
    tool: str | None = None
    arguments: Any = None
    prompt: Content | None = None
    tools: list[str] | Literal["all"] | None = None
    tools_source: Literal["definition", "request", "listing", "offered"] | None = None
    basis: Literal["stated", "structure", "order"] = "stated"
    result: Content | None = None
    status: DispatchStatus = "completed"
    error: str | None = None
    unknown: list[str] = msgspec.field(default_factory=list)


class MadeRun(Record, kw_only=True):
    """The whole run of the receiving agent.

    ``given`` are texts in its first model request beside the prompt; ``None`` if unknown.
    """

    said: list[Message] = msgspec.field(default_factory=list)
    given: list[str] | None = None
    tools_offered: list[str] | None = None
    output: Content | None = None
    status: RunStatus = "completed"
    error: str | None = None
    unknown: list[str] = msgspec.field(default_factory=list)


class ExpectedHandling(Record, kw_only=True):
    """The expected result of a dispatch case; a field that is ``None`` is not stated.

    ``to`` are the allowed receivers, ``[]`` for none: the sender does the work itself. ``tools``
    are those that the receiver may use. ``follow_through`` are texts that the sender's next message
    has to contain.
    """

    to: list[str] | None = None
    prompt_contains: list[str] | None = None
    tools: list[str] | None = None
    follow_through: list[str] | None = None


class Origin(Record, kw_only=True):
    """The source of a dispatch case."""

    trace: str | None = None
    dispatch: str | None = None
    recording: str | None = None
    framework: str | None = None


class DispatchCase(Record, kw_only=True):
    """A single dispatch as a case: what led to it, the call, the child's run, what followed.

    ``context`` is what the sender had before it, oldest first, and ends before the call; ``next``
    is what the sender did next. ``versions`` are hashes of texts, by name: ``agent:desk`` is the
    prompt of the agent ``desk``, ``agents`` all definitions, ``set`` the set of cases.

    If the case was drafted from a recording, ``record`` is the part of it about the dispatch, and
    ``at`` the dispatch's id there; the other parts are read from it.
    """

    form: Form = "decision"
    context: list[Message]
    call: MadeDispatch
    child: MadeRun | None = None
    next: list[Message] | None = None
    expected: ExpectedHandling = msgspec.field(default_factory=ExpectedHandling)
    failure_modes: list[str] = msgspec.field(default_factory=list)
    origin: Origin | None = None
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    record: Trace | None = None
    at: str | None = None

    @property
    def lacks(self) -> str | None:
        """Return what the form needs for playing but the case lacks; ``None`` if nothing.

        After a transfer without a prompt the receiver has the whole conversation: it needs no
        prompt.
        """
        call = self.call
        shares_history = call.kind == "transfer" and "prompt" not in call.unknown
        if self.form == "child":
            if call.prompt is None and not shares_history:
                return "a child needs the `prompt` of its `call`: what the receiver was told"
        elif call.sender is None:
            return f"the form `{self.form}` needs the `from` of its `call`: who made the dispatch"
        elif self.form == "integration" and call.result is None:
            return "an integration needs the `result` of its `call`: the sender continues from it"
        return None


class Case(Record, kw_only=True):
    """One conversation and what should happen in it, turn by turn."""

    id: str
    where: Location | None = None
    turns: list[ExpectedTurn]
    dispatch: DispatchCase | None = None
    scenario: Scenario | None = None
    stand_ins: StandIns | None = None
    session: Session = msgspec.field(default_factory=Session)
    state: dict[str, Any] = msgspec.field(default_factory=dict)
    final_state: dict[str, Any] | None = None
    rubrics: list[CaseRubric] = msgspec.field(default_factory=list)
    evaluators: dict[str, dict[str, Any]] = msgspec.field(default_factory=dict)
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    tags: list[str] = msgspec.field(default_factory=list)
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def first_input(self) -> str:
        """The first user message; a trace without a case id is matched by it."""
        if self.scenario is not None:
            return self.scenario.start
        return self.turns[0].input.plain() if self.turns else ""

    def short_hash(self) -> int:
        """Return 64 bits of a faster hash of the same content as :meth:`content_hash`."""
        bare = msgspec.structs.replace(self, where=None)
        try:
            encoded = msgspec.json.encode(bare, order="deterministic")
        except (TypeError, ValueError):
            # A program may put values into metadata that JSON cannot represent.
            encoded = repr(bare).encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest())

    def content_hash(self) -> str:
        """Return a hash of the case's content, without its place (sha256, hex)."""
        bare = msgspec.structs.replace(self, where=None)
        return hashlib.sha256(msgspec.json.encode(bare, order="deterministic")).hexdigest()


class Example(Record, kw_only=True):
    """A case as an example for an agent: the message, and the expected result.

    Args:
        id: the id of the case.
        before: earlier messages, one line each.
        input: the message.
        to: the receivers of work; empty for none.
        tool_calls: the tools that are called, each with ``name`` and ``arguments``.
        response: the answer.

    ``None`` means not stated. ``str()`` gives the text for a prompt.
    """

    id: str
    before: list[str] = msgspec.field(default_factory=list)
    input: str
    to: list[str] | None = None
    tool_calls: list[dict[str, Any]] | None = None
    response: str | None = None

    def __str__(self) -> str:
        lines = [*self.before, f"user: {self.input}"]
        for call in self.tool_calls or ():
            arguments = msgspec.json.encode(call.get("arguments") or {}).decode()
            lines.append(f"call: {call.get('name')} {arguments}")
        if self.to is not None:
            lines.append(f"hand to: {', '.join(self.to) or 'nobody'}")
        if self.response is not None:
            lines.append(f"answer: {self.response}")
        return "\n".join(lines)

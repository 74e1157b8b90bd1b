"""Runs of teams as lists of messages: Who&When, AgentRx, and logs of Magentic-One.

A message names its speaker. ``Orchestrator (-> WebSurfer)`` hands work to an agent, whose next
message is its answer; ``Orchestrator (thought)`` has no receiver. In a group chat each speaker
follows the previous one, and nothing shows why. Ids of steps have the positions of their messages
(``m4`` is the fifth), and labels of such runs refer to these.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from baton.formats.document import Document
from baton.model import (
    SCHEMA_VERSION,
    AgentRun,
    Content,
    Dispatch,
    Dropped,
    GotBack,
    HandedOff,
    Part,
    Said,
    Source,
    ToolCall,
    Trace,
    Turn,
)

from .catalog import Catalog
from .registry import FileFormat


class Message(msgspec.Struct, kw_only=True):
    """One message; the speaker is its ``name``, else its ``role``."""

    content: str | list[str | dict[str, Any]] | None = None
    role: str | None = None
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None


class FailedRun(msgspec.Struct, kw_only=True):
    """A run of Who&When; people's opinions about its failure belong to its attributes."""

    history: list[Message]
    question: str = ""
    question_id: str | None = msgspec.field(name="question_ID", default=None)
    ground_truth: Any = None
    mistake_agent: str | None = None
    mistake_step: int | str | None = None
    mistake_reason: str | None = None


class Trajectory(msgspec.Struct, kw_only=True):
    """A run of one agent with its tools, as tau-bench writes it."""

    traj: list[Message]
    task_id: int | str
    reward: float | None = None


class _Spoken(NamedTuple):
    place: int
    agent: str
    content: Content
    to: str | None
    thought: bool

    @property
    def text(self) -> str:
        return self.content.text or ""


_ROLE = re.compile(r"(?P<agent>.+?) \((?:-> (?P<to>.+)|(?P<aside>.+))\)\Z")
_PEOPLE = frozenset({"human", "user"})
# The executor of code in a group chat's messages has no model, and says the result of the code.
_OF_ONE_AGENT = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_SIGNS_OFF = frozenset({"TERMINATE", ""})


def _read_failed_run(document: Document, source: Source, _: Catalog, id_: str) -> Iterator[Trace]:
    run = document.decode(FailedRun)
    known = {"mistake_agent": run.mistake_agent, "mistake_step": run.mistake_step}
    trace = _of_messages(run.history, run.question_id or id_, source, run.question)
    if trace is not None:
        trace.attributes |= {name: str(value) for name, value in known.items() if value is not None}
        if run.mistake_reason is not None:
            trace.attributes["mistake_reason"] = run.mistake_reason
        yield trace


def _read_messages(document: Document, source: Source, _: Catalog, id_: str) -> Iterator[Trace]:
    messages = document.decode(list[Message])
    if any(message.role is None and message.content is None for message in messages):
        # Items of OpenAI's Responses API: `{"type": "function_call", "name": "look_up", ...}`. The
        # name is that of a tool, and no item names an agent.
        return
    if {message.role for message in messages} <= _OF_ONE_AGENT:
        # The format of the OpenAI API has one agent, unless several have names.
        names = {each.name for each in messages if each.role == "assistant" and each.name}
        if len(names) < 2:
            return
    trace = _of_messages(messages, id_, source, "")
    if trace is not None:
        yield trace


def _of_messages(
    messages: Sequence[Message], id_: str, source: Source, question: str
) -> Trace | None:
    spoken = [
        _spoken(place, message)
        for place, message in enumerate(messages)
        if not _is_of_program(message)
    ]
    results = {
        message.tool_call_id: _content(message) for message in messages if message.tool_call_id
    }
    by_people = (each.content for each in spoken if each.agent in _PEOPLE)
    asked = Content(text=question) if question else next(by_people, None)
    if asked is not None and not (asked.text or asked.parts):
        asked = None
    agents = [each for each in spoken if each.agent not in _PEOPLE or _is_named(messages, each)]
    if not agents:
        return None
    turn = Turn(id="turn1", input=asked)
    if asked is None:
        turn.unknown.append("input")
    runs: dict[str, AgentRun] = {}  # of an agent that handed work over and waits for the answer
    before: AgentRun | None = None
    open_: Dispatch | None = None
    for each in agents:
        run = runs.get(each.agent)
        if run is None and before is not None and before.agent == each.agent:
            run = before
        if run is None:
            run = _begun(turn, each, before, open_)
        step = f"m{each.place}"
        if open_ is not None and each.agent == open_.to_agent:
            _answered(turn, open_, run, each, step)
            open_ = None
        elif each.to is not None:
            if open_ is not None and open_.to_agent == each.to:
                open_.basis = "order"  # the next answer may be to either
            open_ = _handed_over(turn, run, each, step)
            runs[each.agent] = run
        else:
            made = messages[each.place].tool_calls or ()
            if each.text or each.content.parts or not made:
                run.steps.append(Said(id=step, content=each.content, thought=each.thought))
            run.steps += [_answered_call(call, each.place, results) for call in made]
            if not each.thought and each.text.strip() not in _SIGNS_OFF:
                run.output = each.content
        before = run
    last = [each for each in agents if not each.thought and each.text.strip() not in _SIGNS_OFF]
    if last:
        turn.output = last[-1].content
    else:
        turn.unknown.append("output")
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=id_,
        source=source,
        turns=[turn],
        unknown=[
            *("state", "usage", "turn.state", "turn.started", "turn.ended"),
            *("run.context", "run.tools_offered", "run.model", "run.usage", "run.started"),
            *("run.ended", "dispatch.tools_allowed"),
            *([] if any(each.tool_calls for each in messages) else ["run.steps.tool_call"]),
            *("dispatch.tools_source", "dispatch.description", "dispatch.started"),
            "dispatch.ended",
        ],
    )


def _spoken(place: int, message: Message) -> _Spoken:
    who = message.name or message.role or "agent"
    content = _content(message)
    match = _ROLE.match(who)
    if match is None:
        return _Spoken(place, who, content, None, thought=False)
    aside = match["aside"]
    return _Spoken(place, match["agent"], content, match["to"], thought=aside is not None)


def _content(message: Message) -> Content:
    """Return the content of a message: the texts of its parts, one per line, and attachments."""
    if not isinstance(message.content, list):
        return Content(text=message.content or "")
    texts: list[str] = []
    attached: list[Part] = []
    for part in message.content:
        text = part if isinstance(part, str) else part.get("text")
        if isinstance(text, str):
            texts.append(text)
        elif isinstance(part, dict):
            image = part.get("image_url")
            uri = image.get("url") if isinstance(image, dict) else image
            is_address = isinstance(uri, str) and uri.startswith(("http://", "https://"))
            kind = str(part.get("type") or next(iter(part), "unknown"))
            attached.append(Part(type=kind, uri=uri if is_address else None))
    return Content(text="\n".join(texts), parts=attached or None)


def _is_of_program(message: Message) -> bool:
    """Return whether a message is an instruction or tool result, and not from an agent."""
    if message.tool_call_id is not None:
        return True
    return message.role in ("system", "developer") and message.name is None


def _is_named(messages: Sequence[Message], spoken: _Spoken) -> bool:
    """Return whether a `user` message in a team is from an agent: then it has its own name."""
    return messages[spoken.place].name is not None


def _begun(
    turn: Turn, spoken: _Spoken, before: AgentRun | None, open_: Dispatch | None
) -> AgentRun:
    run = AgentRun(id=f"run{len(turn.runs) + 1}", agent=spoken.agent, unknown=["input"])
    turn.runs.append(run)
    if open_ is not None and open_.to_agent == spoken.agent:
        run.input, run.unknown = open_.prompt, []
    elif before is None:
        run.input, run.unknown = turn.input, list(turn.unknown)
    else:
        # The next speaker of a group chat is known only from the order of the messages.
        dispatch = Dispatch(
            id=f"dispatch{spoken.place}",
            kind="sequence",
            basis="order",
            from_run=before.id,
            from_agent=before.agent,
            to_agent=spoken.agent,
            runs=[run.id],
            status="completed",
            unknown=["prompt", "result"],
        )
        turn.dispatches.append(dispatch)
        run.started_by = [dispatch.id]
    return run


def _handed_over(turn: Turn, run: AgentRun, spoken: _Spoken, step: str) -> Dispatch:
    dispatch = Dispatch(
        id=f"dispatch{spoken.place}",
        kind="delegate",
        from_run=run.id,
        from_agent=run.agent,
        to_agent=spoken.to or "",
        prompt=spoken.content,
        # Logs of Magentic-One lack some answers, and have some after the next message: without an
        # answer, it is unknown whether there was none.
        status="unknown",
        depth=1,
        unknown=["status", "result", "runs"],
    )
    turn.dispatches.append(dispatch)
    run.steps.append(HandedOff(id=step, dispatch=dispatch.id))
    return dispatch


def _answered(turn: Turn, dispatch: Dispatch, run: AgentRun, spoken: _Spoken, step: str) -> None:
    content = spoken.content
    run.steps.append(Said(id=step, content=content))
    run.output = content
    if dispatch.id not in run.started_by:
        run.started_by.append(dispatch.id)
    dispatch.runs = [run.id]
    dispatch.result, dispatch.status, dispatch.unknown = content, "completed", []
    sender = next(each for each in turn.runs if each.id == dispatch.from_run)
    sender.steps.append(GotBack(id=f"{step}-back", dispatch=dispatch.id))


def _read_trajectory(document: Document, source: Source, _: Catalog, id_: str) -> Iterator[Trace]:
    read = document.decode(Trajectory)
    turns: list[Turn] = []
    calls: dict[str, ToolCall] = {}
    lost: list[str] = []
    for place, message in enumerate(read.traj):
        if message.role in ("system", "developer"):
            continue
        if message.role == "user" or not turns:
            number = len(turns) + 1
            said = _content(message) if message.content else None
            run = AgentRun(id=f"run{number}", agent="assistant", input=said)
            turns.append(Turn(id=f"turn{number}", input=said, runs=[run]))
            if message.role == "user":
                continue
        turn, run = turns[-1], turns[-1].runs[0]
        if message.role in ("tool", "function"):
            call = calls.get(message.tool_call_id or "")
            if call is None and message.tool_call_id is None:  # it answers by the name of the tool
                waiting = (c for c in calls.values() if c.result is None and c.name == message.name)
                call = next(waiting, None)
            if call is not None:
                call.result, call.status = _content(message), "ok"
                call.unknown = []
            else:
                lost.append(f"{message.name or 'tool'}: {_content(message).text}"[:200])
            continue
        if message.content:
            run.output = turn.output = _content(message)
            run.steps.append(Said(id=f"m{place}", content=run.output))
        for number, made in enumerate(message.tool_calls or ()):
            call = _call(made, f"m{place}" if not message.content and not number else None, place)
            run.steps.append(call)
            calls[str(made.get("id"))] = call
    if turns:
        yield Trace(
            schema_version=SCHEMA_VERSION,
            id=f"{id_}-{read.task_id}",
            source=source,
            turns=turns,
            unknown=[
                *("state", "usage", "turn.state", "turn.started", "turn.ended", "run.context"),
                *("run.tools_offered", "run.model", "run.usage", "run.started", "run.ended"),
            ],
            attributes={} if read.reward is None else {"reward": read.reward},
            dropped=[Dropped(what="results without a call", count=len(lost), example=lost[0])]
            if lost
            else [],
        )


def _answered_call(made: dict[str, Any], place: int, results: Mapping[str, Content]) -> ToolCall:
    call = _call(made, None, place)
    result = results.get(str(made.get("id")))
    if result is not None:
        call.result, call.status, call.unknown = result, "ok", []
    return call


def _call(made: dict[str, Any], id_: str | None, place: int) -> ToolCall:
    function = made.get("function")
    named = function if isinstance(function, dict) else {}
    written = named.get("arguments")
    try:
        arguments = msgspec.json.decode(written) if isinstance(written, str) else written
    except msgspec.DecodeError:
        arguments = written
    return ToolCall(
        id=id_ or f"m{place}-{made.get('id')}",
        name=str(named.get("name") or "tool"),
        arguments=arguments,
        status="unanswered",
        unknown=["result"],
    )


FORMATS = (
    FileFormat(
        "who-and-when", None, frozenset({"history", "question", "mistake_agent"}), _read_failed_run
    ),
    FileFormat("tau-trajectory", None, frozenset({"task_id", "traj", "reward"}), _read_trajectory),
    FileFormat("team-messages", None, frozenset({"content", "role"}), _read_messages, whole=True),
)

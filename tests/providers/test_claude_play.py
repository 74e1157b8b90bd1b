"""Playing a case in a conversation with Claude Code, of which the messages are scripted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.providers.conftest import CaseCancelled, Hooks

from baton.model import (
    Case,
    Content,
    ExpectedTurn,
    ProviderError,
    Source,
    Trace,
    integrity_problems,
)
from baton.providers.claude_sdk import Conversation, Lost, Played
from baton.testing.build import case

Message = dict[str, Any]
Reply = Callable[[str], list[Message | Exception | float]]


class Scripted:
    """Answers each message with a script: messages, pauses in seconds, or a fault."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._queue: asyncio.Queue[Message | Exception | float] = asyncio.Queue()
        self.heard: list[str] = []

    async def send(self, message: str) -> None:
        self.heard.append(message)
        for item in self._reply(message):
            self._queue.put_nowait(item)

    async def messages(self) -> AsyncIterator[Message]:
        while True:
            item = await self._queue.get()
            if isinstance(item, StopIteration):
                return
            if isinstance(item, Exception):
                raise item
            if isinstance(item, float):
                await asyncio.sleep(item)
            else:
                yield item


class Desk:
    """Opens scripted conversations and keeps them."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.opened: list[Scripted] = []

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Conversation]:
        self.opened.append(Scripted(self._reply))
        yield self.opened[-1]

    async def play(self, *turns: str | ExpectedTurn, timeout: float = 5, grace: float = 2) -> Trace:
        return await self.played(case(*turns, id="c"), timeout, grace).play()

    def played(self, case: Case, timeout: float = 5, grace: float = 2) -> Played:
        connect: Callable[[], AbstractAsyncContextManager[Conversation]] = self.connect
        source = Source(format="claude-stream")
        hooks = Hooks(None, Path())
        return Played(connect, case, hooks, source=source, catalog={}, timeout=timeout, grace=grace)


def _says(text: str, id_: str = "m1", parent: str | None = None) -> Message:
    message = {"id": id_, "model": "m", "content": [{"type": "text", "text": text}]}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent}


def _result(text: str, **more: Any) -> Message:
    return {"type": "result", "subtype": "success", "result": text, "session_id": "s", **more}


def _launch(call: str = "d1") -> list[Message | Exception | float]:
    block = {"type": "tool_use", "id": call, "name": "Agent", "input": {"prompt": "p"}}
    made = {"id": "m0", "model": "m", "content": [block]}
    answer = {"type": "tool_result", "tool_use_id": call, "content": "Launched."}
    task = {"type": "system", "task_id": "a1", "tool_use_id": call, "run_id": "r1"}
    return [
        {"type": "assistant", "message": made, "parent_tool_use_id": None},
        {**task, "subtype": "task_started", "is_backgrounded": True},
        {
            "type": "user",
            "message": {"content": [answer]},
            "tool_use_result": {"isAsync": True, "agentId": "a1"},
        },
        _says("On it."),
        _result("On it."),
        0.05,
        {**task, "subtype": "task_notification", "status": "completed", "summary": "Found."},
    ]


def _again(text: str) -> list[Message | Exception | float]:
    origin = {"kind": "task-notification", "runId": "r1"}
    return [_says(text, "m2"), _result(text, origin=origin)]


def test_each_message_of_a_case_is_a_turn_of_one_conversation() -> None:
    desk = Desk(lambda heard: [_says(f"re {heard}", heard), _result(f"re {heard}")])
    trace = asyncio.run(desk.play("one", "two"))
    assert [turn.input.text for turn in trace.turns if turn.input] == ["one", "two"]
    assert [turn.output.text for turn in trace.turns if turn.output] == ["re one", "re two"]
    assert [conversation.heard for conversation in desk.opened] == [["one", "two"]]
    assert (trace.id, trace.case) == ("s", "c")
    assert all(turn.started is not None for turn in trace.turns)


def test_who_watches_sees_each_message_as_it_comes() -> None:
    desk = Desk(lambda heard: [_says("on it", "m1"), _says(f"re {heard}", "m2"), _result("done")])
    played = desk.played(case("one", id="c"))
    seen: list[int] = []
    played._hooks.watch = lambda record: seen.append(len(record().turns[-1].runs[0].steps))
    asyncio.run(played.play())
    assert seen[:2] == [1, 2]


def test_a_turn_may_ask_for_its_own_conversation() -> None:
    desk = Desk(lambda heard: [_says(f"re {heard}", heard), _result(f"re {heard}")])
    fresh = ExpectedTurn(input=Content(text="two"), new_session=True)
    trace = asyncio.run(desk.play("one", fresh))
    assert [conversation.heard for conversation in desk.opened] == [["one"], ["two"]]
    assert len(trace.turns) == 2


def test_a_turn_lasts_until_its_background_agents_have_answered() -> None:
    desk = Desk(lambda _: [*_launch(), *_again("It is found.")])
    trace = asyncio.run(desk.play("find it"))
    (turn,) = trace.turns
    assert turn.output is not None
    assert turn.output.text == "It is found."
    (dispatch,) = turn.dispatches
    assert (dispatch.mode, dispatch.status) == ("background", "completed")
    assert integrity_problems(trace) == []


def test_a_turn_ends_when_nothing_follows_an_agents_end() -> None:
    trace = asyncio.run(Desk(lambda _: _launch()).play("find it", grace=0.05))
    assert trace.turns[0].dispatches[0].status == "completed"


def test_a_command_left_in_the_background_keeps_no_turn_open() -> None:
    task = {"task_id": "b1", "task_type": "local_bash"}
    script: list[Message | Exception | float] = [
        {"type": "system", "subtype": "task_started", "is_backgrounded": True, **task},
        {"type": "system", "subtype": "background_tasks_changed", "tasks": [task]},
        _says("The server runs."),
        _result("The server runs."),
    ]
    trace = asyncio.run(Desk(lambda _: script).play("start it", timeout=30))
    assert trace.turns[0].status == "completed"


def test_a_host_that_is_told_of_idleness_waits_for_it() -> None:
    state = {"type": "system", "subtype": "session_state_changed"}
    script = [{**state, "state": "running"}, *_launch(), 0.05, *_again("Found.")]
    desk = Desk(lambda _: [*script, {**state, "state": "idle"}])
    trace = asyncio.run(desk.play("find it"))
    assert trace.turns[0].output is not None
    assert trace.turns[0].output.text == "Found."


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ([_says("I try."), Lost("ProcessError: exit code 1")], "turn 1: ProcessError: exit code 1"),
        ([_says("I try."), StopIteration()], "turn 1: Claude Code ended before the turn did"),
        ([_says("I try."), 60.0], "turn 1: the turn did not end within 0.1 seconds"),
        ([_says("I try."), _result("", subtype="error_max_turns")], "turn 1: error_max_turns"),
    ],
)
def test_what_ends_a_turn_too_early_is_an_error_with_what_was_seen(
    script: list[Message | Exception | float], reason: str
) -> None:
    with pytest.raises(ProviderError) as error:
        asyncio.run(Desk(lambda _: script).play("go", timeout=0.1))
    assert str(error.value) == reason
    assert error.value.trace is not None
    (turn,) = error.value.trace.turns
    assert len(turn.runs[0].steps) == 1
    assert turn.status in ("failed", "incomplete")
    assert (turn.error or "") in reason


def test_a_conversation_that_ended_after_a_turn_fails_the_next_one() -> None:
    desk = Desk(lambda heard: [_says("a"), _result("a"), StopIteration()] if heard == "one" else [])
    with pytest.raises(ProviderError, match="turn 2: Claude Code ended"):
        asyncio.run(desk.play("one", "two"))


def test_a_case_that_is_cancelled_tells_what_was_seen() -> None:
    async def cancelled() -> None:
        script: list[Message | Exception | float] = [_says("I try."), 60.0]
        task = asyncio.create_task(Desk(lambda _: script).played(case("go", id="c")).play())
        await asyncio.sleep(0.05)
        task.cancel()
        await task

    with pytest.raises(CaseCancelled) as error:
        asyncio.run(cancelled())
    assert error.value.trace is not None
    assert error.value.trace.turns[0].error == "the case ended before the turn did"


def test_a_case_with_a_sessions_state_cannot_be_played() -> None:
    case = Case(id="c", turns=[ExpectedTurn(input=Content(text="go"))], state={"a": 1})
    with pytest.raises(ProviderError, match="a session's state"):
        asyncio.run(Desk(lambda _: []).played(case).play())

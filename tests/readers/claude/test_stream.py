"""Messages of a stream, beyond what was captured."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton import load_traces
from baton.model import GotBack, InputError, Said, ToolCall, Trace, Turn, known
from baton.model.redact import ON

DATA = Path(__file__).parents[2] / "data" / "claude"
Read = Callable[..., Trace]


def _write(path: Path, messages: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(message) + "\n" for message in messages))
    return path


def test_a_turn_starts_after_each_result_where_the_user_is_not_repeated(
    read: Read, say: Any
) -> None:
    trace = read(say.says("one"), say.result(), say.says("two", id="m2"), say.result())
    assert [turn.output.text for turn in trace.turns if turn.output] == ["one", "two"]
    assert [turn.unknown for turn in trace.turns] == [["input", "started"]] * 2


def test_a_turn_starts_with_the_users_words_where_they_are_repeated(read: Read, say: Any) -> None:
    trace = read(
        say.hears("first"), say.says("a"), say.result(), say.says("more", id="m2"), say.result(),
        say.hears("second"), say.says("b", id="m3"), say.result(),
    )  # fmt: skip
    assert [turn.input.text for turn in trace.turns if turn.input] == ["first", "second"]
    assert [turn.output.text for turn in trace.turns if turn.output] == ["more", "b"]


def test_a_compacted_conversation_continues_with_the_next_turn(read: Read, say: Any) -> None:
    """The output of `/compact` stands there as a message of the user, the only one in the stream."""
    summary = {**say.hears("This session is being continued"), "isSynthetic": True}
    output = {
        **say.hears("<local-command-stdout>Compacted </local-command-stdout>"),
        "isReplay": True,
    }
    trace = read(
        say.says("one"), say.result(), summary, output, {**say.result(), "num_turns": 0},
        say.says("two", id="m2"), say.result(),
    )  # fmt: skip
    assert [turn.output.text for turn in trace.turns if turn.output] == ["one", "two"]


def test_a_result_that_a_task_started_continues_the_turn(read: Read, say: Any) -> None:
    trace = read(
        say.dispatches("d"), say.says("one"), say.result(), say.says("two", id="m2"),
        say.result(origin={"kind": "task-notification"}),
    )  # fmt: skip
    assert len(trace.turns) == 1


def test_a_scheduled_prompt_is_its_own_turn(read: Read, say: Any) -> None:
    origin = {"kind": "task-notification", "subkind": "scheduled-trigger"}
    trace = read(say.says("one"), say.result(), say.says("two", id="m2"), say.result(origin=origin))
    assert len(trace.turns) == 2


def test_a_stream_that_ends_without_a_result_says_so_and_keeps_what_was_seen(
    read: Read, say: Any
) -> None:
    trace = read(say.says("Looking."), say.calls("Read", "t1"))
    (turn,) = trace.turns
    assert turn.status == "incomplete"
    assert turn.error == "the recording ends before `Read` is answered"
    assert [type(step) for step in turn.runs[0].steps] == [Said, ToolCall]
    assert turn.runs[0].status == "unknown"


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ({"subtype": "error_max_turns", "is_error": False, "result": None}, "error_max_turns"),
        (
            {"subtype": "error_during_execution", "errors": ["boom", "bang"], "result": None},
            "boom; bang",
        ),
        ({"is_error": True, "result": "API Error: 529"}, "API Error: 529"),
    ],
)
def test_a_result_that_tells_of_an_error_fails_its_turn(
    read: Read, say: Any, result: dict[str, Any], error: str
) -> None:
    (turn,) = read(say.says("I try."), say.result(**result)).turns
    assert (turn.status, turn.error, turn.output) == ("failed", error, None)
    assert turn.runs[0].status == "failed"


def test_a_result_alone_is_a_turn_of_which_only_the_answer_is_known(read: Read, say: Any) -> None:
    trace = read(say.result("42"))
    (turn,) = trace.turns
    assert turn.output is not None
    assert turn.output.text == "42"
    assert not known(trace, turn.runs[0], "steps")


def test_structured_output_is_the_data_of_the_answer(read: Read, say: Any) -> None:
    (turn,) = read(say.says("42"), say.result(structured_output={"n": 42})).turns
    assert turn.output is not None
    assert (turn.output.text, turn.output.data) == ("42", {"n": 42})


def test_only_a_result_tells_that_there_was_no_structured_output(read: Read, say: Any) -> None:
    for trace, told in ((read(say.says("42"), say.result()), True), (read(say.says("42")), False)):
        assert known(trace, trace.turns[0], "output.data") is told


def test_totals_are_taken_from_the_last_result_and_never_summed(read: Read, say: Any) -> None:
    def models(tokens: int) -> dict[str, Any]:
        return {"m": {"inputTokens": tokens, "outputTokens": 1}, "n": {"inputTokens": 1}}

    trace = read(
        say.says("a"), say.result(total_cost_usd=0.5, modelUsage=models(10)),
        say.says("b", id="m2"), say.result(total_cost_usd=0.7, modelUsage=models(30)),
    )  # fmt: skip
    assert trace.usage is not None
    assert (trace.usage.cost_usd, trace.usage.cost_from) == (0.7, "source")
    assert (trace.usage.input_tokens, trace.usage.output_tokens) == (31, 1)


def test_totals_that_started_again_are_added_to_those_before(read: Read, say: Any) -> None:
    trace = read(
        say.says("a"), say.result(total_cost_usd=0.5),
        say.says("b", id="m2"), say.result(total_cost_usd=0.75),
        say.says("c", id="m3"), say.result(total_cost_usd=0.25),
    )  # fmt: skip
    assert trace.usage is not None
    assert (trace.usage.cost_usd, trace.usage.cost_from) == (1.0, "source")


def test_a_message_on_several_lines_counts_once_with_its_last_figures(read: Read, say: Any) -> None:
    early, late = ({"input_tokens": 7, "output_tokens": n} for n in (1, 9))
    trace = read(
        say.says("a", usage=late, stop_reason="end_turn"), say.says("b", usage=early), say.result()
    )
    usage = trace.turns[0].runs[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, usage.requests) == (7, 9, 1)
    assert usage.complete


def test_figures_without_a_stop_reason_are_a_lower_bound(read: Read, say: Any) -> None:
    usage = (
        read(say.says("a", usage={"input_tokens": 7, "output_tokens": 1})).turns[0].runs[0].usage
    )
    assert usage is not None
    assert not usage.complete


def test_what_a_result_told_is_not_all_when_the_turn_went_on(read: Read, say: Any) -> None:
    trace = read(
        say.hears("Go."), say.says("a", usage={"input_tokens": 5, "output_tokens": 1}),
        say.result(usage={"input_tokens": 5, "output_tokens": 9}),
        say.says("b", id="m2", usage={"input_tokens": 6, "output_tokens": 1}),
    )  # fmt: skip
    usage = trace.turns[0].runs[0].usage
    assert usage is not None
    assert (usage.input_tokens, usage.complete) == (11, False)


@pytest.mark.parametrize("cost", [-1, float("inf"), "much", True, None])
def test_a_cost_that_is_none_is_left_out(read: Read, say: Any, cost: object) -> None:
    trace = read(say.says("a"), say.result(total_cost_usd=cost))
    assert trace.usage is None or trace.usage.cost_usd is None


def test_names_of_tools_are_matched_whole(read: Read, say: Any) -> None:
    trace = read(
        say.calls("TaskCreate", "t1", prompt="x"), say.calls("mcp__desk__Agent", "t2"),
        say.answers("t1", "made"), say.answers("t2", [{"type": "text", "text": "ok"}]),
        say.says("done", id="m2"), say.result(),
    )  # fmt: skip
    assert trace.turns[0].dispatches == []
    names = [step.name for step in trace.turns[0].runs[0].steps if isinstance(step, ToolCall)]
    assert names == ["TaskCreate", "mcp__desk__Agent"]


def test_what_a_stream_holds_and_no_rule_reads_is_counted(read: Read, say: Any) -> None:
    trace = read(
        {"type": "oracle", "text": "hear me"}, {"type": "oracle", "text": "and me"},
        {"type": "clock", "tick": 1},
        {"type": "system", "subtype": "of_tomorrow", "x": 1}, {"type": "stream_event", "event": {}},
        say._assistant([{"type": "hologram", "text": "look"}], "m1", None),
        say.answers("gone", "who asked?"), say.result(),
    )  # fmt: skip
    assert [(d.what, d.count, d.example) for d in trace.dropped] == [
        ("messages of type `oracle`", 2, "hear me"),
        ("content blocks of type `hologram`", 1, "look"),
        ("results of calls that are not in the recording", 1, "who asked?"),
    ]


def test_an_agent_may_be_heard_before_the_call_that_set_it_to_work(read: Read, say: Any) -> None:
    trace = read(
        say.hears("do d", parent="d"), say.says("Done.", id="k1", parent="d"), say.dispatches("d"),
        say.answers("d", "Done."), say.says("ok", id="m2"), say.result(),
    )  # fmt: skip
    (turn,) = trace.turns
    assert [run.agent for run in turn.runs] == ["main", "helper"]
    assert turn.dispatches[0].runs == [turn.runs[1].id]


def test_an_agent_that_nothing_set_to_work_is_kept_with_what_is_unknown(
    read: Read, say: Any
) -> None:
    trace = read(say.says("Hi."), say.says("Working.", id="k1", parent="lost"), say.result())
    (dispatch,) = trace.turns[0].dispatches
    assert not known(trace, dispatch, "from_agent")
    assert not known(trace, dispatch, "to_agent")
    assert dispatch.basis == "structure"
    assert [run.agent for run in trace.turns[0].runs] == ["main", "general-purpose"]


def test_a_notification_reaches_the_model_with_the_next_results_of_tools(
    read: Read, say: Any
) -> None:
    task = {"type": "system", "task_id": "a1", "tool_use_id": "d", "run_id": "r1"}
    trace = read(
        say.dispatches("d"),
        {**task, "subtype": "task_started", "is_backgrounded": True, "prompt": "do d"},
        say.answers("d", "Launched.", tool_use_result={"isAsync": True, "agentId": "a1"}),
        say.calls("Read", "t1", id="m2"),
        {**task, "subtype": "task_notification", "status": "completed", "summary": "All good."},
        say.says("Meanwhile.", id="m2"), say.answers("t1", "text"), say.says("Good.", id="m3"),
        say.result(),
    )  # fmt: skip
    steps = trace.turns[0].runs[0].steps
    back = next(n for n, step in enumerate(steps) if isinstance(step, GotBack))
    said = [step.content.text for step in steps[back:] if isinstance(step, Said)]
    assert said == ["Good."]
    assert trace.turns[0].dispatches[0].result is not None


def test_the_end_of_a_task_may_be_told_by_its_update_alone(read: Read, say: Any) -> None:
    task = {"type": "system", "task_id": "a1"}
    trace = read(
        say.dispatches("d"),
        {**task, "subtype": "task_started", "is_backgrounded": True, "tool_use_id": "d"},
        say.answers("d", "Launched."), say.says("Found.", id="k1", parent="d"),
        {**task, "subtype": "task_updated", "patch": {"status": "completed"}},
        say.says("It found it.", id="m2"), say.result(),
    )  # fmt: skip
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.status, dispatch.result and dispatch.result.text) == ("completed", "Found.")


def test_a_dispatch_without_an_answer_is_unanswered(read: Read, say: Any) -> None:
    trace = read(say.dispatches("d"), say.says("Still there?", id="m2"), say.result())
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.status, dispatch.mode, dispatch.runs) == ("unanswered", "unknown", [])


def test_the_default_agent_is_named_and_what_goes_beside_the_prompt_is_context(
    read: Read, say: Any
) -> None:
    call = say.calls("Agent", "d", prompt="p", model="haiku", isolation="worktree")
    (dispatch,) = read(call, say.result()).turns[0].dispatches
    assert dispatch.to_agent == "general-purpose"
    assert dispatch.context == {"model": "haiku", "isolation": "worktree"}


def test_secrets_are_masked_on_reading(read: Read, say: Any) -> None:
    key = "ghp_" + "a1B2" * 9
    trace = read(say.hears(f"use {key}"), say.calls("Bash", "t", command=f"X={key}"), say.result())
    assert key not in repr(ON.trace(trace))


def test_several_sessions_in_one_file_are_several_traces(tmp_path: Path, say: Any) -> None:
    other = {"session_id": "other"}
    lines = [say.init(), say.says("a"), say.result(), {**say.init(), **other}]
    lines += [{**say.says("b", id="m2"), **other}, {**say.result(), **other}]
    traces = load_traces(_write(tmp_path / "two.jsonl", lines))
    assert [trace.turns[0].output.text for trace in traces if trace.turns[0].output] == ["a", "b"]


def test_a_json_list_of_messages_reads_like_lines(tmp_path: Path, say: Any) -> None:
    path = tmp_path / "messages.json"
    path.write_text(json.dumps([say.init(), say.says("a"), say.result()]))
    (trace,) = load_traces(path)
    assert trace.turns[0].status == "completed"


def test_a_torn_last_line_is_left_out_and_said(tmp_path: Path, say: Any) -> None:
    path = _write(tmp_path / "torn.jsonl", [say.init(), say.says("a")])
    path.write_text(path.read_text() + '{"type": "result", "sub')
    (trace,) = load_traces(path)
    assert [d.what for d in trace.dropped] == ["a last line that was truncated"]
    assert trace.turns[0].status == "incomplete"


@pytest.mark.parametrize(
    ("line", "message"),
    [("{nope}", "this line is not JSON"), ("[1]", "a message has to be an object, not list")],
)
def test_a_broken_line_is_one_error_with_its_place(
    tmp_path: Path, say: Any, line: str, message: str
) -> None:
    path = _write(tmp_path / "bad.jsonl", [say.init()])
    path.write_text(path.read_text() + line + "\n" + json.dumps(say.result()) + "\n")
    with pytest.raises(InputError) as error:
        load_traces(path)
    (problem,) = error.value.problems
    assert (problem.file, problem.line) == (str(path), 2)
    assert problem.message.startswith(message)


def test_a_dump_of_the_sdks_objects_reads_like_the_stream_itself(tmp_path: Path) -> None:
    capture = DATA / "current" / "09_continued" / "messages.jsonl"
    lines = [json.loads(line) for line in capture.read_text().splitlines()]
    dumped = _write(tmp_path / "dump.jsonl", [_as_object(line) for line in lines])
    (trace,), (same,) = load_traces(dumped), load_traces(capture)
    assert [d.result for d in trace.turns[0].dispatches] == [
        d.result for d in same.turns[0].dispatches
    ]
    assert [run.agent for run in trace.turns[0].runs] == [run.agent for run in same.turns[0].runs]
    assert trace.turns[0].output == same.turns[0].output
    assert trace.usage == same.usage


@pytest.mark.parametrize("name", ["01_correct_dispatch", "09_continued", "10_parallel"])
def test_objects_without_ids_of_messages_read_like_the_stream_itself(
    tmp_path: Path, name: str
) -> None:
    capture = DATA / "current" / name / "messages.jsonl"
    lines = [json.loads(line) for line in capture.read_text().splitlines()]
    dumped = _write(tmp_path / "dump.jsonl", [_without_ids(_as_object(line)) for line in lines])
    (trace,), (same,) = load_traces(dumped), load_traces(capture)
    assert [_did(turn) for turn in trace.turns] == [_did(turn) for turn in same.turns]


def _without_ids(value: dict[str, Any]) -> dict[str, Any]:
    """Leave out of an assistant's message what the SDK did not keep before its version 0.1.52."""
    lost = ("message_id", "session_id", "uuid", "usage", "stop_reason")
    return {k: v for k, v in value.items() if "model" not in value or k not in lost}


def _did(turn: Turn) -> list[Any]:
    runs = [
        (run.agent, run.output, [(type(step), getattr(step, "result", None)) for step in run.steps])
        for run in turn.runs
    ]
    return [turn.output, runs, [(d.prompt, d.result, d.group) for d in turn.dispatches]]


def test_a_call_is_refused_if_only_the_end_of_the_stream_tells_it(tmp_path: Path) -> None:
    capture = DATA / "current" / "15_denied" / "messages.jsonl"
    lines = [json.loads(line) for line in capture.read_text().splitlines()]
    dumped = _write(tmp_path / "dump.jsonl", [_as_object(line) for line in lines])
    (trace,) = load_traces(dumped)
    calls = [step for run in trace.turns[0].runs for step in run.steps if type(step) is ToolCall]
    refused = [call for call in calls if call.error == "not this tool, please"]
    assert [(call.status, call.refused_by) for call in refused] == [("refused", None)] * 2
    assert all("refused_by" in call.unknown for call in refused)


def _as_object(line: dict[str, Any]) -> dict[str, Any]:
    """Dump a message as ``dataclasses.asdict`` does: no types, fields of the message on top."""
    common = {key: line.get(key) for key in ("parent_tool_use_id", "session_id", "uuid")}
    if line["type"] == "system":
        return {"subtype": line["subtype"], "data": line}
    if line["type"] == "result":
        plain = {key: value for key, value in line.items() if key not in ("type", "modelUsage")}
        return {**plain, "model_usage": line["modelUsage"]}
    message = line["message"]
    content = message["content"]
    blocks = [{k: v for k, v in block.items() if k != "type"} for block in content]
    if line["type"] == "user":
        return {"content": blocks, "tool_use_result": line.get("tool_use_result"), **common}
    told = {key: message.get(key) for key in ("model", "usage", "stop_reason")}
    return {"content": blocks, "message_id": message["id"], **told, **common}

"""Files as people store them: streams, answers, sessions, eval sets, results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import baton
from baton.model import InputError, integrity_problems, known
from baton.model.views import agent_chain, tool_calls

DESK = Path(__file__).parent.parent.parent / "examples" / "adk" / "recordings" / "support_desk"
REFUND = ["support_router", "billing_agent"]


def chains(*paths: Path, **options: Any) -> list[list[list[str]]]:
    traces = baton.load_traces(paths, **options)
    return [[agent_chain(trace, turn) for turn in trace.turns] for trace in traces]


def stored(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def stream(*events: dict[str, Any]) -> str:
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events)


HELLO = {"invocationId": "i", "author": "a", "content": {"parts": [{"text": "Hi"}]}}


def test_every_recording_is_consistent_and_nothing_of_it_is_dropped() -> None:
    traces = list(baton.iter_traces(DESK.parent))
    assert len(traces) >= 30
    for trace in traces:
        assert integrity_problems(trace) == [], trace.source.location
        assert trace.dropped == [], trace.source.location


@pytest.mark.parametrize("name", ["refund", "streaming_refund", "thought"])
def test_a_run_reads_the_same_from_its_stream_and_its_session(name: str) -> None:
    assert chains(DESK / f"{name}.sse") == chains(DESK / f"{name}.session.json") == [[REFUND]]


def test_a_run_reads_the_same_from_the_answer_of_run() -> None:
    assert chains(DESK / "refund.run.json") == [[REFUND]]


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("refund", ["completed"]),
        ("weather_then_refund", ["completed", "completed"]),
        ("approval", ["waiting"]),
        ("approval_resumed", ["completed"]),
        ("confirmation", ["waiting"]),
        ("refusal_resumed", ["completed"]),
        ("model_error", ["failed"]),
        ("pending", ["completed"]),
    ],
)
def test_the_status_of_each_turn(name: str, statuses: list[str]) -> None:
    (trace,) = baton.load_traces(DESK / f"{name}.session.json")
    assert [turn.status for turn in trace.turns] == statuses


def test_a_call_that_a_person_refused_says_so() -> None:
    (trace,) = baton.load_traces(DESK / "refusal_resumed.session.json")
    calls = tool_calls(trace.turns[0], dispatches="exclude")
    refused = [(c.name, c.refused_by) for c in calls if c.status == "refused"]
    assert refused == [("close_account", "user")]


def test_definitions_that_lie_in_the_folder_tell_agents_from_tools() -> None:
    traces = {trace.source.location: trace for trace in baton.iter_traces(DESK.parent)}
    policy = traces[f"{DESK}/policy.sse"]
    assert agent_chain(policy, policy.turns[0]) == [*REFUND, "policy_expert"]
    assert policy.turns[0].dispatches[0].tools_source == "definition"
    assert chains(DESK / "policy.sse") == [[REFUND]]
    assert chains(DESK / "policy.sse", agents=DESK.parent / "app_info.support_desk.json") == [
        [[*REFUND, "policy_expert"]]
    ]


@pytest.mark.parametrize(
    "text",
    [
        stream(HELLO),
        stream(HELLO).replace("\n", "\r\n"),
        stream(HELLO).replace("data: ", "data:"),
        ": keep-alive\n\nevent: message\nid: 7\n" + stream(HELLO),
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + stream(HELLO),
        "\ufeff" + stream(HELLO),
        "data: {\ndata: " + json.dumps(HELLO)[1:] + "\n\n",
        stream(HELLO).rstrip("\n"),
    ],
    ids=["plain", "crlf", "no-space", "comments", "headers", "bom", "multi-line", "no-blank-line"],
)
def test_an_event_stream_is_read_however_it_was_stored(tmp_path: Path, text: str) -> None:
    (trace,) = baton.load_traces(stored(tmp_path, "hello.txt", text))
    assert (trace.id, trace.turns[0].output.text, trace.turns[0].status) == (  # type: ignore[union-attr]
        "hello", "Hi", "completed",
    )  # fmt: skip


def test_a_stream_cut_in_the_middle_of_an_event_is_incomplete_and_keeps_the_rest(
    tmp_path: Path,
) -> None:
    (trace,) = baton.load_traces(stored(tmp_path, "x.sse", stream(HELLO) + 'data: {"author": "b'))
    assert trace.turns[0].status == "incomplete"
    assert trace.turns[0].output.text == "Hi"  # type: ignore[union-attr]
    assert trace.dropped[0].example == '{"author": "b'


def test_a_broken_event_is_named_by_number_and_line(tmp_path: Path) -> None:
    path = stored(tmp_path, "x.sse", stream(HELLO) + "data: {nope}\n\n" + stream(HELLO))
    with pytest.raises(InputError, match=r"x\.sse:3: .*event 2: not JSON"):
        baton.load_traces(path)


def test_an_event_of_the_wrong_type_is_named_too(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"x\.sse:1: content\.parts: .*expected a list"):
        baton.load_traces(stored(tmp_path, "x.sse", stream({**HELLO, "content": {"parts": "Hi"}})))


def test_snake_case_and_camel_case_may_mix(tmp_path: Path) -> None:
    event = {
        "invocation_id": "i",
        "author": "a",
        "content": {"parts": [{"functionCall": {"id": "1", "name": "f", "args": {"userId": 1}}}]},
        "longRunningToolIds": ["1"],
        "usage_metadata": {"promptTokenCount": 3},
    }
    (trace,) = baton.load_traces(stored(tmp_path, "x.json", json.dumps([event])))
    assert trace.turns[0].status == "waiting"
    assert trace.turns[0].runs[0].steps[0].arguments == {"userId": 1}  # type: ignore[union-attr]
    assert trace.turns[0].runs[0].usage.input_tokens == 3  # type: ignore[union-attr]


def test_events_may_stand_one_to_a_line(tmp_path: Path) -> None:
    lines = [json.dumps({**HELLO, "id": str(n)}) for n in range(3)]
    (trace,) = baton.load_traces(stored(tmp_path, "x.jsonl", "\n".join(lines)))
    assert len(trace.turns[0].runs[0].steps) == 3


def saved_case(eval_id: str = "c1", **data: Any) -> dict[str, Any]:
    turn = {
        "user_content": {"parts": [{"text": "Refund, please"}]},
        "final_response": {"parts": [{"text": "Done."}]},
        "intermediate_data": data,
    }
    return {"eval_id": eval_id, "conversation": [turn]}


EVENTS = [
    {
        "author": "desk",
        "content": {
            "parts": [
                {
                    "function_call": {
                        "id": "1",
                        "name": "transfer_to_agent",
                        "args": {"agent_name": "billing"},
                    }
                }
            ]
        },
    },
    {
        "author": "desk",
        "content": {
            "parts": [
                {
                    "function_response": {
                        "id": "1",
                        "name": "transfer_to_agent",
                        "response": {"result": None},
                    }
                }
            ]
        },
    },
    {"author": "billing", "model_version": "m", "usage_metadata": {"prompt_token_count": 3}},
]


def test_a_saved_session_reads_with_its_hand_off_and_its_final_answer(tmp_path: Path) -> None:
    text = json.dumps({"eval_cases": [saved_case(invocation_events=EVENTS)]})
    (trace,) = baton.load_traces(stored(tmp_path, "x.evalset.json", text))
    assert trace.case == "c1"
    assert agent_chain(trace, trace.turns[0]) == ["desk", "billing"]
    assert [d.kind for d in trace.turns[0].dispatches] == ["transfer"]
    assert trace.turns[0].output.text == "Done."  # type: ignore[union-attr]
    assert trace.turns[0].runs[1].output.text == "Done."  # type: ignore[union-attr]


def test_each_turn_of_a_case_is_read_from_what_it_keeps(tmp_path: Path) -> None:
    by_events = saved_case(invocation_events=EVENTS)["conversation"]
    by_statements = saved_case(tool_uses=[{"name": "delete_account", "args": {}}])["conversation"]
    nothing = [{"user_content": {"parts": [{"text": "Thanks"}]}}]
    case = {"eval_id": "c1", "conversation": by_events + by_statements + nothing}
    (trace,) = baton.load_traces(stored(tmp_path, "x.json", json.dumps({"eval_cases": [case]})))
    assert integrity_problems(trace) == []
    first, second, third = trace.turns
    assert agent_chain(trace, first) == ["desk", "billing"]
    assert [call.name for call in tool_calls(second, dispatches="include")] == ["delete_account"]
    assert [turn.output.text if turn.output else None for turn in trace.turns] == [
        "Done.",
        "Done.",
        None,
    ]
    assert known(trace, first.runs[0], "steps.tool_call")
    assert known(trace, first.runs[0], "inside") is False
    assert known(trace, second.runs[0], "steps.tool_call")
    assert known(trace, second.runs[0], "steps.said") is False
    assert known(trace, third.runs[0], "steps.tool_call") is False


def test_a_forbidden_call_in_a_turn_without_events_is_seen(tmp_path: Path) -> None:
    turns = saved_case(invocation_events=EVENTS)["conversation"]
    turns += saved_case(tool_uses=[{"name": "delete_account", "args": {}}])["conversation"]
    recorded = stored(
        tmp_path, "x.json", json.dumps({"eval_cases": [{"eval_id": "c1", "conversation": turns}]})
    )
    forbids = {"type": "tool_called", "config": {"tool": "delete_account", "max_calls": 0}}
    (result,) = baton.score(recorded, evaluators=[forbids]).results
    assert result.status == "failed"


def test_no_events_say_that_the_turn_was_answered_directly(tmp_path: Path) -> None:
    text = json.dumps({"eval_cases": [saved_case(invocation_events=[])]})
    (trace,) = baton.load_traces(stored(tmp_path, "x.json", text))
    (turn,) = trace.turns
    assert turn.status == "completed"
    assert turn.output.text == "Done."  # type: ignore[union-attr]
    assert known(trace, turn.runs[0], "steps.tool_call")
    assert tool_calls(turn, dispatches="include") == []


@pytest.mark.parametrize("args", [{}, {"agent_name": None}, {"agent_name": ""}, {"agent_name": 7}])
def test_a_transfer_that_names_no_agent_is_a_failed_call(
    tmp_path: Path, args: dict[str, Any]
) -> None:
    calls = [{"name": "transfer_to_agent", "args": args}, {"name": "lookup", "args": {}}]
    cases = [saved_case("bad", tool_uses=calls), saved_case("good")]
    bad, good = baton.load_traces(stored(tmp_path, "x.json", json.dumps({"eval_cases": cases})))
    assert good.case == "good"
    assert bad.turns[0].dispatches == []
    failed, other = tool_calls(bad.turns[0], dispatches="include")
    assert (failed.status, failed.error) == ("failed", "`transfer_to_agent` names no agent")
    assert other.name == "lookup"


def test_a_result_file_gives_the_session_of_each_case_also_when_doubly_encoded(
    tmp_path: Path,
) -> None:
    session = {"id": "s1", "app_name": "a", "user_id": "u", "state": {"k": 1}, "events": [HELLO]}
    actual = [{"actual_invocation": saved_case(invocation_events=EVENTS)["conversation"][0]}]
    outcomes = [
        {"eval_id": "c1", "session_id": "s1", "session_details": session, "final_eval_status": 1},
        {"eval_id": "c2", "session_id": "s2", "eval_metric_result_per_invocation": actual},
    ]
    text = json.dumps({"eval_set_result_id": "r", "eval_case_results": outcomes})
    for name, stored_text in (("a.json", text), ("b.json", json.dumps(text))):
        first, second = baton.load_traces(stored(tmp_path, name, stored_text))
        assert (first.case, first.id, first.state) == ("c1", "s1", {"k": 1})
        assert agent_chain(second, second.turns[0]) == ["desk", "billing"]


@pytest.mark.parametrize("key", ["evalCaseResults", "eval_case_results", "runEvalResults"])
def test_results_that_adks_server_returns_are_read_in_its_spelling(
    tmp_path: Path, key: str
) -> None:
    invocation = {
        "invocationId": "i1",
        "userContent": {"parts": [{"text": "Hi"}]},
        "finalResponse": {"parts": [{"text": "Hello."}]},
        "intermediateData": {"toolUses": [{"name": "delete_account", "args": {"user_id": 7}}]},
    }
    entries = [{"actualInvocation": invocation, "evalMetricResults": []}]
    case = {"evalId": "c1", "sessionId": "s1", "evalMetricResultPerInvocation": entries}
    text = json.dumps({"evalSetId": "x", key: [case]})
    (trace,) = baton.load_traces(stored(tmp_path, "x.json", text))
    assert (trace.case, trace.id) == ("c1", "s1")
    (call,) = tool_calls(trace.turns[0], dispatches="include")
    assert (call.name, call.arguments) == ("delete_account", {"user_id": 7})


def test_chains_in_metadata_are_read_by_turn(tmp_path: Path) -> None:
    turns = [{"invocation_id": f"t{n}", "user_content": {"parts": [{"text": "x"}]}} for n in (1, 2)]
    chains_ = [
        {"invocation_id": "t2", "agent_chain": ["b", "c"]},
        {"invocation_id": "t1", "agent_chain": ["a"]},
    ]
    case = {"eval_id": "x", "conversation": turns, "metadata": {"agent_chains": chains_}}
    path = stored(tmp_path, "x.json", json.dumps({"eval_cases": [case]}))
    assert chains(path) == [[["a"], ["b", "c"]]]


def test_a_report_of_judge_llm_gives_one_trace_an_execution(tmp_path: Path) -> None:
    history = saved_case(
        tool_uses=[{"id": "9", "name": "lookup", "args": {"n": 1}}],
        intermediate_responses=[
            {"type": "function_call", "agent_name": "billing", "function_id": "9"},
        ],
    )["conversation"]
    result = {
        "conversation_history": history,
        "cost": 0.1,
        "metadata": {"agent_chain": ["desk", "billing"]},
        "success": True,
    }
    run = {"execution_id": "e1", "eval_case_id": "c1", "provider_result": result}
    text = json.dumps({"execution_runs": [run], "summary": {}})
    (trace,) = baton.load_traces(stored(tmp_path, "r.json", text))
    assert (trace.id, trace.case) == ("e1", "c1")
    assert agent_chain(trace, trace.turns[0]) == ["desk", "billing"]
    assert trace.turns[0].runs[1].steps[0].name == "lookup"  # type: ignore[union-attr]


def test_a_broken_line_does_not_stop_the_others(tmp_path: Path) -> None:
    lines = [json.dumps(saved_case(f"c{n}", invocation_events=EVENTS)) for n in range(3)]
    lines[1] = lines[1][:-5]
    path = stored(tmp_path, "x.jsonl", "\n".join(lines))
    problems: list[InputError] = []
    found = list(baton.iter_traces(path, on_problem=problems.append))
    assert [trace.case for trace in found] == ["c0", "c2"]
    assert str(problems[0]).startswith(f"{path}:2: not JSON")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("hello", "contains no trace"),
        ("[]", "contains no trace"),
        ('{"a": 1}', "contains no trace"),
        ("{", "not JSON"),
        (b"\xff\xfe\x00", "is UTF-16: save it as UTF-8"),
        (b'{"id": "\xff", "events": []}', "not UTF-8 text"),
        ('{"schema_version": 3, "turns": []}', "schema_version is 3; this Baton reads 2"),
        ('{"schema_version": 1, "turns": [], "id": "x"}', "`source` is missing"),
        ('{"id": "x", "events": 3}', "expected a list"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ('{"id": "x", "events": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
    ],
)
def test_what_cannot_be_read_is_one_clear_error(
    tmp_path: Path, text: str | bytes, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        baton.load_traces(stored(tmp_path, "x.json", text))
    assert said in str(caught.value)
    assert "x.json" in str(caught.value)


def test_a_record_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    record = {
        "schema_version": 1,
        "id": "x",
        "source": {"format": "x"},
        "turns": [{"id": "t", "runs": [{"id": "t", "agent": "a"}]}],
    }
    with pytest.raises(InputError, match="id `t` is a duplicate"):
        baton.load_traces(stored(tmp_path, "x.json", json.dumps(record)))


def test_half_a_surrogate_pair_in_one_case_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    turn = {"invocation_id": "i", "user_content": {"parts": [{"text": "Hi"}]}}
    cases = [{"eval_id": id_, "conversation": [turn]} for id_ in ("a\ud800", "b")]
    path = stored(tmp_path, "cases.json", json.dumps({"eval_set_id": "s", "eval_cases": cases}))
    assert [trace.case for trace in baton.load_traces(path)] == ["a\N{REPLACEMENT CHARACTER}", "b"]


def test_json_lines_that_begin_with_a_line_of_another_kind_are_read_from_the_first_trace(
    tmp_path: Path,
) -> None:
    trace = next(iter(baton.iter_traces(DESK / "refund.session.json")))
    record = msgspec.json.encode(trace).decode()
    path = stored(tmp_path, "runs.jsonl", f'{{"made": "today"}}\n{record}\n')
    problems: list[InputError] = []
    assert len(list(baton.iter_traces(path, on_problem=problems.append))) == 1
    (problem,) = problems[0].problems
    assert (problem.line, problem.message) == (1, "this line contains no trace")

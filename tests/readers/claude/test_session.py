"""Session files on disk, in the layouts of all versions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from baton import iter_traces, load_traces
from baton.model import InputError, Said, ToolCall, integrity_problems, known
from baton.model.views import agent_chain

DATA = Path(__file__).parents[2] / "data" / "claude"
SESSION = "0aa11bb2-0000-4000-8000-000000000000"
MAIN = f"p/{SESSION}.jsonl"
Project = Callable[..., Path]


def _legacy() -> Path:
    return next((DATA / "legacy" / "01_correct_dispatch" / "session").glob("projects/*"))


def test_sub_agents_written_into_the_sessions_own_file_are_distinguished(
    project: Project, say: Any
) -> None:
    def side(line: dict[str, Any], uuid: str, parent: str | None) -> dict[str, Any]:
        return {**line, "isSidechain": True, "uuid": uuid, "parentUuid": parent}

    lines = [
        say.hears("Go."),
        say.dispatches("d1", "one", prompt="look left"),
        say.dispatches("d2", "two", prompt="look right"),
        side(say.hears("look right"), "s1", None),
        side(say.hears("look left"), "s2", None),
        side(say.says("Left is clear.", id="k2"), "s3", "s2"),
        side(say.says("Right is not.", id="k1"), "s4", "s1"),
        say.answers("d1", "Left is clear."),
        say.answers("d2", "Right is not."),
        say.says("Wait.", id="m2"),
    ]
    (trace,) = load_traces(project({MAIN: lines}) / MAIN)
    assert integrity_problems(trace) == []
    (turn,) = trace.turns
    assert [(run.agent, run.output and run.output.text) for run in turn.runs[1:]] == [
        ("two", "Right is not."),
        ("one", "Left is clear."),
    ]
    assert [d.group for d in turn.dispatches] == [1, 1]


def test_a_session_file_alone_has_agents_of_which_only_call_and_answer_are_known(
    tmp_path: Path,
) -> None:
    main = next(f for f in _legacy().glob("*.jsonl") if not f.name.startswith("agent-"))
    shutil.copy(main, tmp_path)
    (trace,) = load_traces(tmp_path / main.name)
    assert agent_chain(trace, trace.turns[0]) == ["main", "research-agent", "refactor-agent"]
    for run in trace.turns[0].runs[1:]:
        assert not known(trace, run, "steps")
        assert run.input is not None
        assert run.output is not None
    assert integrity_problems(trace) == []


def test_a_dead_agent_of_an_older_version_is_not_taken_for_one_that_answered(
    tmp_path: Path,
) -> None:
    folder = next((DATA / "legacy" / "22_dead_child" / "session").glob("projects/*"))
    main = next(f for f in folder.glob("*.jsonl") if not f.name.startswith("agent-"))
    shutil.copy(main, tmp_path)
    (trace,) = load_traces(tmp_path / main.name)
    assert [d.status for d in trace.turns[0].dispatches] == ["failed", "completed"]


def test_of_an_agents_file_its_whole_session_is_read() -> None:
    agent = next(
        file for file in _legacy().glob("agent-*.jsonl") if "Warmup" not in file.read_text()
    )
    (trace,) = load_traces(agent)
    assert trace.id == "9007cea4-6472-4fd2-a7ab-3d8cff3b1b73"
    assert len(trace.turns[0].runs) == 3


def test_agents_whose_session_is_missing_are_one_error_each(tmp_path: Path) -> None:
    for file in sorted(_legacy().glob("agent-*.jsonl"))[:2]:
        shutil.copy(file, tmp_path)
    with pytest.raises(InputError) as error:
        load_traces(tmp_path)
    assert len(error.value.problems) == 2
    assert "which is missing" in error.value.problems[0].message


def test_a_project_folder_holds_one_trace_a_session_and_no_other(tmp_path: Path) -> None:
    for name in ("current/01_correct_dispatch", "legacy/01_correct_dispatch", "current/11_nested"):
        shutil.copytree(DATA / name / "session", tmp_path, dirs_exist_ok=True)
    results = tmp_path / "projects" / "-workspace-shop" / "tool-results"
    results.mkdir()
    notes: list[str] = []
    traces = list(iter_traces(tmp_path, on_note=notes.append))
    assert len({trace.id for trace in traces}) == len(traces) == 3
    assert notes == []


def test_the_folder_of_one_session_is_read_with_the_file_beside_it() -> None:
    folder = next((DATA / "current" / "11_nested" / "session").glob("projects/*/*/subagents"))
    (trace,) = load_traces(folder.parent)
    assert agent_chain(trace, trace.turns[0]) == ["main", "lead-agent", "research-agent"]


def test_a_broken_session_does_not_stop_the_others(tmp_path: Path) -> None:
    for name in ("current/11_nested", "current/10_parallel"):
        shutil.copytree(DATA / name / "session", tmp_path, dirs_exist_ok=True)
    first = sorted(tmp_path.glob("projects/*/*.jsonl"))[0]
    lines = first.read_text().splitlines(keepends=True)
    first.write_text("".join([*lines[:3], "{broken\n", *lines[3:]]))
    problems: list[InputError] = []
    traces = list(iter_traces(tmp_path, on_problem=problems.append))
    assert len(traces) == 1
    ((problem,),) = [error.problems for error in problems]
    assert (problem.file, problem.line) == (str(first), 4)


def test_an_agent_that_started_with_its_callers_messages_counts_only_its_own(
    project: Project, say: Any
) -> None:
    usage = {"input_tokens": 10, "output_tokens": 5}
    shared = [
        {**say.hears("Go."), "uuid": "u1"},
        {**say.says("I think.", id="m1", usage=usage, stop_reason="tool_use"), "uuid": "u2"},
    ]
    fork = {"isSidechain": True, "agentId": "af1"}
    agent = [
        *({**line, **fork} for line in shared),
        {**say.hears("look"), **fork},
        {**say.says("Seen.", id="k1", usage=usage, stop_reason="end_turn"), **fork},
    ]
    main = [
        *shared,
        say.dispatches("d1", "fork", prompt="look"),
        say.answers("d1", "Seen.", toolUseResult={"agentId": "af1", "status": "completed"}),
        say.says("Good.", id="m2", usage=usage, stop_reason="end_turn"),
    ]
    root = project({MAIN: main, f"p/{SESSION}/subagents/agent-af1.jsonl": agent})
    (trace,) = load_traces(root)
    assert integrity_problems(trace) == []
    assert [
        step.content.text for step in trace.turns[0].runs[1].steps if isinstance(step, Said)
    ] == ["Seen."]
    spent = [run.usage.output_tokens for run in trace.turns[0].runs if run.usage]
    assert spent == [10, 5]
    assert trace.usage is not None
    assert trace.usage.requests == 3


def test_what_no_user_wrote_opens_no_turn(project: Project, say: Any) -> None:
    lines = [
        say.hears("<local-command-stdout>ok</local-command-stdout>"),
        {**say.hears("Caveat: below are commands"), "isMeta": True},
        say.hears("Hello."),
        say.says("Hi."),
        {**say.hears("This session is being continued"), "isCompactSummary": True},
        {**say.hears("<system-reminder>tidy up</system-reminder>")},
        say.says("Anything else?", id="m2"),
        {"type": "summary", "summary": "Greetings", "leafUuid": "x"},
    ]
    (trace,) = load_traces(project({MAIN: lines}) / MAIN)
    assert [turn.input.text for turn in trace.turns if turn.input] == ["Hello."]
    assert [d.what for d in trace.dropped] == ["summaries of a compacted conversation"]


def test_an_interrupted_turn_is_incomplete_and_the_next_one_continues(
    project: Project, say: Any
) -> None:
    lines = [
        say.hears("Go."),
        say.calls("Bash", "t1", command="sleep 100"),
        say.answers("t1", "The user doesn't want to proceed with this tool use.", error=True),
        say.hears("[Request interrupted by user for tool use]"),
        say.hears("Better: stop."),
        say.says("Stopped.", id="m2"),
    ]
    (trace,) = load_traces(project({MAIN: lines}) / MAIN)
    first, second = trace.turns
    assert (first.status, first.runs[0].status) == ("incomplete", "cancelled")
    (call,) = first.runs[0].steps
    assert isinstance(call, ToolCall)
    assert (call.status, call.refused_by) == ("refused", "user")
    assert second.status == "completed"


def test_a_failed_request_of_the_main_thread_fails_the_turn_unless_it_continues(
    project: Project, say: Any
) -> None:
    dead = say.says("API Error: 529 Overloaded", id="e1")
    dead["message"]["model"] = "<synthetic>"
    dead["isApiErrorMessage"] = True
    lines = [
        say.hears("One?"),
        dead,
        say.says("One.", id="m1"),
        say.hears("Two?"),
        {**dead, "uuid": "e"},
    ]
    (trace,) = load_traces(project({MAIN: lines}) / MAIN)
    assert [turn.status for turn in trace.turns] == ["completed", "failed"]
    assert trace.turns[1].error == "API Error: 529 Overloaded"


def test_a_message_that_waited_while_the_model_worked_belongs_to_the_turn(
    project: Project, say: Any
) -> None:
    queued = {"type": "queued_command", "prompt": "And quickly.", "commandMode": "prompt"}
    lines = [
        say.hears("Go."), say.calls("Read", "t1"), say.answers("t1", "x"),
        {"type": "attachment", "attachment": queued}, say.says("Done.", id="m2"),
    ]  # fmt: skip
    (trace,) = load_traces(project({MAIN: lines}) / MAIN)
    (turn,) = trace.turns
    assert turn.input is not None
    assert turn.input.text == "Go.\nAnd quickly."


def test_what_a_user_attached_is_counted(project: Project, say: Any) -> None:
    file = {"type": "file", "filename": "notes.txt", "content": {"type": "text", "file": {}}}
    lines = [say.hears("Read it."), {"type": "attachment", "attachment": file}, say.says("ok")]
    (trace,) = load_traces(project({MAIN: lines}) / MAIN)
    assert [(d.what, d.example) for d in trace.dropped] == [
        ("attachments of type `file`", "notes.txt")
    ]


def test_agents_of_the_project_are_definitions(project: Project, say: Any) -> None:
    root = project(
        {
            MAIN: [
                say.hears("Go."),
                say.dispatches("d1"),
                say.answers("d1", "ok"),
                say.says("ok", id="m2"),
            ]
        }
    )
    agents = root / ".claude" / "agents"
    agents.mkdir(parents=True)
    (agents / "helper.md").write_text("---\nname: helper\ntools: Read, Grep\n---\nHelp.\n")
    (trace,) = load_traces(root)
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.tools_allowed, dispatch.tools_source) == (["Read", "Grep"], "definition")
    assert trace.agents["helper"].instructions == "Help."


def test_a_listing_in_the_session_tells_the_tools_of_agents(project: Project, say: Any) -> None:
    listing = {
        "type": "agent_listing_delta",
        "addedLines": ["- helper: Helps: a lot. (Tools: Read, Bash(git:*))", "- all: X (Tools: *)"],
    }
    lines = [
        say.hears("Go."), {"type": "attachment", "attachment": listing}, say.dispatches("d1"),
        say.answers("d1", "Agent type 'helper' not found. Available agents: a, b", error=True),
        say.says("ok", id="m2"),
    ]  # fmt: skip
    (trace,) = load_traces(project({MAIN: lines}) / MAIN)
    (dispatch,) = trace.turns[0].dispatches
    assert (dispatch.tools_allowed, dispatch.tools_source) == (["Read", "Bash(git:*)"], "listing")
    assert dispatch.status == "refused"
    assert set(trace.agents) == {"helper", "all", "a", "b"}
    assert trace.agents["helper"].description == "Helps: a lot."
    assert trace.agents["all"].tools == "all"


def test_a_meta_file_that_is_broken_is_an_error_with_its_name(project: Project, say: Any) -> None:
    agent = [{**say.hears("x"), "isSidechain": True, "agentId": "a1"}]
    root = project({MAIN: [say.hears("Go.")], f"p/{SESSION}/subagents/agent-a1.jsonl": agent})
    meta = root / "p" / SESSION / "subagents" / "agent-a1.meta.json"
    meta.write_text("{")
    with pytest.raises(InputError) as error:
        load_traces(root / MAIN)
    assert error.value.problems[0].file == str(meta)


def test_snapshots_of_prompts_and_schemas_of_tools_are_not_kept(project: Project, say: Any) -> None:
    shape = {
        "system": [{"text": "You are a supervisor."}],
        "tools": [{"name": "Read", "description": "hidden"}],
    }
    lines = [
        say.hears("Go."), {"type": "api-request-shape", "shape": shape},
        {"type": "attachment", "attachment": {"type": "prompt_snapshot", "systemPrompt": ["hidden"]}},
        say.says("ok"),
    ]  # fmt: skip
    (trace,) = load_traces(project({MAIN: lines}) / MAIN)
    assert "hidden" not in repr(trace)
    assert trace.agents["main"].instructions == "You are a supervisor."
    assert trace.turns[0].runs[0].tools_offered == ["Read"]


def test_bytes_of_images_are_not_kept(project: Project, say: Any) -> None:
    image = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"},
    }
    lines = [
        say.hears("Look."),
        say.calls("Read", "t1"),
        say.answers("t1", [image]),
        say.says("ok", id="m2"),
    ]
    (trace,) = load_traces(project({MAIN: lines}) / MAIN)
    call = trace.turns[0].runs[0].steps[0]
    assert isinstance(call, ToolCall)
    assert call.result is not None
    assert "QUJD" not in json.dumps(str(trace))
    assert [(part.type, part.mime) for part in call.result.parts or []] == [("image", "image/png")]


COMPACTED = "<local-command-stdout>Compacted </local-command-stdout>"
COMPACT = "<command-name>/compact</command-name>\n<command-message>compact</command-message>"


def test_a_command_that_claude_code_carries_out_itself_is_no_turn(
    project: Project, say: Any
) -> None:
    lines = [
        say.hears("Rates?"),
        say.says("19.", id="m1"),
        {**say.hears("This session is being continued"), "isCompactSummary": True},
        say.hears(COMPACT),
        say.hears(COMPACTED),
        say.hears("And law?"),
        say.says("7.", id="m2"),
    ]
    (trace,) = load_traces(project({MAIN: lines}) / MAIN)
    told = [(turn.input and turn.input.text, turn.status) for turn in trace.turns]
    assert told == [("Rates?", "completed"), ("And law?", "completed")]


def test_a_command_that_is_a_prompt_is_a_turn(project: Project, say: Any) -> None:
    review = "<command-message>review</command-message>\n<command-name>/review</command-name>"
    prompt = {**say.hears("Review the change."), "isMeta": True}
    lines = [say.hears(review), prompt, say.says("It is fine.", id="m1")]
    (trace,) = load_traces(project({MAIN: lines}) / MAIN)
    assert [turn.status for turn in trace.turns] == ["completed"]


def test_the_last_command_without_an_answer_is_no_turn(project: Project, say: Any) -> None:
    """The user stopped there."""
    lines = [say.hears("Hi."), say.says("Hi.", id="m1"), say.hears(COMPACT), say.hears(COMPACTED)]
    (trace,) = load_traces(project({MAIN: lines}) / MAIN)
    assert [turn.status for turn in trace.turns] == ["completed"]

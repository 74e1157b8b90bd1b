"""Claude Code asks a policy: real processes, as Claude Code starts them."""

from __future__ import annotations

import json
import shlex
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Baton

from baton.guard.claude import EVENTS, answer
from baton.session.hooks import add_guard, add_hook, remove_hook

KEY = "sk-proj-Ab3dEf6hIj9kLmN0pQrStUvWxYz12345"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "rules:\n"
        "  - max_dispatches: 2\n"
        "  - {max_fan_out: 1, action: ask}\n"
        "  - {allowed_tools: [Read], for: 'to:reviewer'}\n"
        "  - {max_same_task: 0, for: 'to:scribe', action: warn}\n"
        "  - {output: {any: [{secrets: [secrets]}]}, action: redact}\n"
    )
    return file


def event(name: str, **fields: Any) -> bytes:
    told = {"session_id": "s1", "prompt_id": "p1", "hook_event_name": name, **fields}
    return json.dumps({**told, "cwd": "/", "permission_mode": "default"}).encode()


def starts(number: int, to: str = "lab", **fields: Any) -> bytes:
    asked = {"subagent_type": to, "prompt": f"Do {number}."}
    return event(
        "PreToolUse", tool_name="Agent", tool_input=asked, tool_use_id=f"t{number}", **fields
    )


def verdict(said: dict[str, Any] | None) -> str:
    decided = (said or {}).get("hookSpecificOutput", {})
    return str(decided.get("permissionDecision", "goes on"))


def test_sub_agents_are_counted_over_processes_of_hooks(policy: Path, tmp_path: Path) -> None:
    store = tmp_path / "g.db"
    assert verdict(answer(policy, store, starts(1))) == "goes on"
    assert verdict(answer(policy, store, starts(2))) == "ask"
    assert answer(policy, store, event("PostToolUse", tool_name="Agent", tool_use_id="t1")) is None
    assert verdict(answer(policy, store, starts(3))) == "goes on"
    assert (
        answer(policy, store, event("PostToolUseFailure", tool_name="Agent", tool_use_id="t3"))
        is None
    )
    refused = answer(policy, store, starts(4))
    assert verdict(refused) == "deny"
    assert "at most 2 are allowed" in json.dumps(refused)
    assert verdict(answer(policy, store, starts(5, prompt_id="p2"))) == "goes on"


def test_what_a_person_agreed_to_counts_once_it_ran(policy: Path, tmp_path: Path) -> None:
    store = tmp_path / "g.db"
    answer(policy, store, starts(1))
    assert verdict(answer(policy, store, starts(2))) == "ask"
    ran = event("PostToolUse", tool_name="Agent", tool_use_id="t2", tool_input={"prompt": "Do 2."})
    assert answer(policy, store, ran) is None
    assert verdict(answer(policy, store, starts(3))) == "deny"


def test_a_sub_agent_has_its_own_tools(policy: Path, tmp_path: Path) -> None:
    def calls(tool: str, **fields: str) -> str:
        told = event("PreToolUse", tool_name=tool, tool_input={}, tool_use_id="t", **fields)
        return verdict(answer(policy, tmp_path / "g.db", told))

    assert calls("Write") == "goes on"
    assert calls("Read", agent_id="a1", agent_type="reviewer") == "goes on"
    assert calls("Write", agent_id="a1", agent_type="reviewer") == "deny"


BACKGROUND = {"background_tasks": [{"id": "a1", "status": "running"}]}


def test_an_answer_with_a_key_is_replaced_before_its_caller_reads_it(
    policy: Path, tmp_path: Path
) -> None:
    def returns(text: str) -> dict[str, Any] | None:
        told = {"tool_input": {"subagent_type": "lab", "prompt": "Do."}, "tool_use_id": "t1"}
        response = {
            "status": "completed",
            "agentId": "a1",
            "content": [{"type": "text", "text": text}],
        }
        done = event("PostToolUse", tool_name="Agent", tool_response=response, **told)
        return answer(policy, tmp_path / "g.db", done)

    assert returns("All is well.") is None
    replaced = returns(f"Use {KEY}.")
    assert replaced is not None
    changed = replaced["hookSpecificOutput"]["updatedToolOutput"]
    assert changed["content"][0]["text"].startswith("Use [")
    assert (changed["status"], changed["agentId"]) == ("completed", "a1")
    assert KEY not in json.dumps(replaced)


def test_a_sub_agent_in_the_background_is_asked_until_its_answer_may_be_read(
    policy: Path, tmp_path: Path
) -> None:
    def stops(text: str, **fields: Any) -> dict[str, Any] | None:
        told = {"agent_id": "a1", "agent_type": "lab", "last_assistant_message": text, **fields}
        return answer(policy, tmp_path / "g.db", event("SubagentStop", **told))

    assert stops("All is well.", **BACKGROUND) is None
    for active in (False, True):
        again = stops(f"Use {KEY}.", stop_hook_active=active, **BACKGROUND)
        assert again is not None
        assert again["decision"] == "block"
        assert "answer again without" in again["reason"]
        assert KEY not in json.dumps(again)
    # What its caller waits for is replaced when it returns.
    assert stops(f"Use {KEY}.", background_tasks=[]) is None


def test_a_sub_agent_in_the_background_counts_as_running_until_it_stops(tmp_path: Path) -> None:
    policy, store = tmp_path / "policy.yaml", tmp_path / "g.db"
    policy.write_text("rules: [{max_fan_out: 1}]")
    assert verdict(answer(policy, store, starts(1))) == "goes on"
    launched = {"status": "async_launched", "agentId": "a1"}
    answer(
        policy,
        store,
        event("PostToolUse", tool_name="Agent", tool_use_id="t1", tool_response=launched),
    )
    assert verdict(answer(policy, store, starts(2))) == "deny"
    stopped = {"agent_id": "a1", "agent_type": "lab", "last_assistant_message": "Done."}
    answer(policy, store, event("SubagentStop", **stopped, **BACKGROUND))
    assert verdict(answer(policy, store, starts(3))) == "goes on"


def test_callers_wait_where_an_answer_may_be_withheld(policy: Path, tmp_path: Path) -> None:
    said = answer(policy, tmp_path / "g.db", starts(1))
    assert said is not None
    assert said["hookSpecificOutput"]["updatedInput"] == {
        "subagent_type": "lab",
        "prompt": "Do 1.",
        "run_in_background": False,
    }


def test_a_warning_is_reported_and_nothing_stops(policy: Path, tmp_path: Path) -> None:
    said = answer(policy, tmp_path / "g.db", starts(1, to="scribe"))
    assert said is not None
    assert said["systemMessage"].startswith("guard: `scribe` was given this task")


def test_the_command_of_the_hook_answers_and_fails_closed(policy: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    add_guard(settings, policy, tmp_path / "g.db").apply()
    hooks = json.loads(settings.read_text())["hooks"]
    assert set(hooks) == set(EVENTS)
    command = shlex.split(hooks["PreToolUse"][0]["hooks"][0]["command"])

    def run(told: bytes) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(command, input=told, capture_output=True, timeout=120, check=False)

    write = event(
        "PreToolUse", tool_name="Write", tool_input={}, agent_id="a", agent_type="reviewer"
    )
    done = run(write)
    assert done.returncode == 0
    assert verdict(json.loads(done.stdout)) == "deny"
    policy.write_text("rules: [{max_dept: 3}]")
    broken = run(write)
    assert broken.returncode == 2
    assert b"so nothing passes" in broken.stderr


@pytest.mark.parametrize("on_error", ["closed", "open"])
def test_a_state_that_cannot_be_read_does_what_the_policy_says(
    on_error: str, tmp_path: Path
) -> None:
    policy, store = tmp_path / "policy.yaml", tmp_path / "g.db"
    policy.write_text(f"on_error: {on_error}\nrules: []")
    store.write_text("no database, a letter " * 100)
    said = answer(policy, store, starts(1))
    assert said is not None
    if on_error == "closed":
        assert verdict(said) == "deny"
    else:
        assert "not a file with the state of guards" in said["systemMessage"]


def test_guard_and_push_do_not_take_each_other_out(policy: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    add_hook(settings).apply()
    only_push = settings.read_text()
    add_guard(settings, policy, tmp_path / "g.db").apply()
    assert not add_guard(settings, policy, tmp_path / "g.db").changes
    remove_hook(settings, "guard").apply()
    assert settings.read_text() == only_push


def test_the_command_line_shows_the_change_and_names_mistakes(
    baton: Baton, policy: Path, tmp_path: Path
) -> None:
    settings = tmp_path / "s.json"
    outcome = baton("hook", "claude", "guard", "--policy", policy, "--settings", settings, "--yes")
    assert (outcome.code, "+" in outcome.out) == (0, True)
    assert baton("hook", "claude", "guard", "--settings", settings, "--yes").code == 2
    assert baton("hook", "claude", "push", "--policy", policy, "--yes").code == 2
    assert (
        baton("hook", "claude", "guard", "--uninstall", "--settings", settings, "--yes").code == 0
    )
    assert "hooks" not in json.loads(settings.read_text())


def session(folder: Path) -> Path:
    """Write the files that Claude Code has of a session with a sub-agent `a1`, at depth 3."""
    file = folder / "s1.jsonl"
    below = folder / "s1" / "subagents"
    below.mkdir(parents=True)

    def user(text: str, prompt: str = "p1", **fields: Any) -> dict[str, Any]:
        message = {"role": "user", "content": text}
        return {"type": "user", "promptId": prompt, "sessionId": "s1", "message": message, **fields}

    def said(id_: str, tokens: int, calls: str = "") -> dict[str, Any]:
        usage = {"input_tokens": tokens, "cache_read_input_tokens": 5, "output_tokens": 1}
        blocks = [{"type": "tool_use", "id": calls, "name": "Agent", "input": {}}] if calls else []
        message = {"id": id_, "model": "m", "usage": usage, "content": blocks}
        return {"type": "assistant", "message": message}

    def write(to: Path, *lines: dict[str, Any]) -> None:
        to.write_text("".join(json.dumps(each) + "\n" for each in lines) + '{"type": "us')

    write(file, user("Old.", "p0"), said("m0", 900), user("Is X-99 clean?"), said("m1", 10, "t1"))
    write(
        below / "agent-a1.jsonl",
        user("Test X-99.", isSidechain=True),
        said("m2", 20),
        said("m2", 20),
    )
    meta = {"agentType": "lab", "spawnDepth": 3, "parentAgentId": "a0", "toolUseId": "t0"}
    (below / "agent-a1.meta.json").write_text(json.dumps(meta))
    (below / "agent-a0.meta.json").write_text('{"agentType": "chief", "spawnDepth": 2}')
    return file


@pytest.mark.parametrize(
    ("rule", "fields", "why"),
    [
        ("{max_depth: 3}", {"agent_id": "a1", "agent_type": "lab"}, "at depth 4, and at most 3"),
        ("{required_context: ids}", {}, "lacks `X-99`"),
        ("{required_context: ids}", {"agent_id": "a1", "agent_type": "lab"}, "lacks `X-99`"),
        ("{max_tokens: 42}", {}, "has taken 42 tokens"),
    ],
)
def test_what_a_hook_is_not_told_is_in_the_files_of_the_session(
    rule: str, fields: dict[str, str], why: str, tmp_path: Path
) -> None:
    policy, transcript = tmp_path / "policy.yaml", session(tmp_path)
    policy.write_text(f"rules: [{rule}]")
    said = answer(policy, tmp_path / "g.db", starts(1, transcript_path=str(transcript), **fields))
    assert why in json.dumps(said)


LATER = '{"type": "assistant", "message": {"id": "m3", "model": "m", "usage": %s, "content": %s}}\n'
CALL = '[{"type": "tool_use", "id": "t1"}]'


@pytest.mark.parametrize(
    ("rule", "rest", "why"),
    [
        # The message that makes the call is not written yet: it has used some, too.
        ("{max_tokens: 43}", "", "can't tell: nothing reports the tokens"),
        ("{max_tokens: 42}", "", "has taken 42 tokens"),
        ("{max_tokens: 100}", LATER % ("null", CALL), "can't tell: nothing reports the tokens"),
        ("{max_tokens: 100}", LATER % ("{}", CALL), "can't tell: nothing reports the tokens"),
        ("{max_tokens: 43}", LATER % ('{"input_tokens": 1}', CALL), "has taken 43 tokens"),
        ("{max_tokens: 44}", LATER % ('{"input_tokens": 1}', CALL), "goes on"),
        ("{max_cost_usd: 9}", LATER % ('{"input_tokens": 1}', CALL), "nothing reports the cost"),
    ],
)
def test_what_may_be_more_than_is_written_is_not_below_a_limit(
    rule: str, rest: str, why: str, tmp_path: Path
) -> None:
    policy, transcript = tmp_path / "policy.yaml", session(tmp_path)
    policy.write_text(f"rules: [{rule}]")
    text = transcript.read_text().replace('"t1"', '"t0"')
    transcript.write_text(text.removesuffix('{"type": "us') + rest)
    said = answer(policy, tmp_path / "g.db", starts(1, transcript_path=str(transcript)))
    assert why in (json.dumps(said) + verdict(said))


def test_a_call_is_decided_when_its_message_is_written(tmp_path: Path) -> None:
    policy, transcript = tmp_path / "policy.yaml", session(tmp_path)
    policy.write_text("rules: [{max_tokens: 43}]")
    whole = transcript.read_text()
    transcript.write_text(whole.replace('"t1"', '"t0"'))
    later = threading.Timer(0.2, transcript.write_text, [whole])
    later.start()
    said = answer(policy, tmp_path / "g.db", starts(1, transcript_path=str(transcript)))
    later.join()
    assert verdict(said) == "goes on"


@pytest.mark.parametrize("on_error", ["closed", "open"])
def test_what_is_in_no_file_is_decided_as_the_policy_says(on_error: str, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"on_error: {on_error}\nrules: [{{max_tokens: 42}}, {{max_depth: 9}}]")
    below = {"agent_id": "../a1", "agent_type": "lab"}
    for number, fields in enumerate(({"transcript_path": str(tmp_path / "none.jsonl")}, below)):
        told = starts(number, **fields)
        said = answer(policy, tmp_path / "g.db", told)
        assert verdict(said) == ("deny" if on_error == "closed" else "goes on")
        assert "can't tell: nothing reports the tokens here" in json.dumps(said)


def test_decisions_are_noted_for_the_record_of_the_session(
    policy: Path, tmp_path: Path, baton: Baton
) -> None:
    (tmp_path / "config").mkdir()
    transcript = session(tmp_path / "config")
    for number in (1, 2, 3):
        told = starts(number, to="scribe", transcript_path=str(transcript))
        answer(policy, tmp_path / "g.db", told)
        answer(policy, tmp_path / "g.db", event("PostToolUseFailure", tool_use_id=f"t{number}"))
    shown = baton("show", tmp_path / "config").out
    assert shown.count("guard: warned of main to scribe by max_same_task") == 2
    assert "guard: blocked main to scribe by max_dispatches" in shown
    notes = tmp_path / "config" / "s1" / "baton-guard.jsonl"
    assert notes.stat().st_mode & 0o077 == 0
    notes.write_text("{")
    failed = baton("show", tmp_path / "config")
    assert failed.code == 2
    assert "baton-guard.jsonl: line 1 is not JSON" in failed.err


CHECKS = """
from baton.guard import output_check

print("loaded")

@output_check("no_prices")
def no_prices(answer, event):
    return "names a price" if "EUR" in answer else None
"""


def test_the_hook_runs_a_module_with_functions_of_the_policy(tmp_path: Path, baton: Baton) -> None:
    policy, checks, settings = (tmp_path / n for n in ("p.yaml", "checks.py", "settings.json"))
    policy.write_text("rules: [{output: {any: [{function: no_prices}]}}]")
    checks.write_text(CHECKS)
    installed = baton(
        "hook", "claude", "guard", "--policy", policy, "--functions", checks,
        "--store", tmp_path / "g.db", "--settings", settings, "--yes",
    )  # fmt: skip
    assert installed.code == 0, installed.err
    (group,) = json.loads(settings.read_text())["hooks"]["PostToolUse"]
    command = shlex.split(group["hooks"][0]["command"])
    told = event(
        "PostToolUse",
        tool_name="Agent",
        tool_use_id="t1",
        tool_response={"content": [{"type": "text", "text": "It costs 5 EUR."}]},
    )
    ran = subprocess.run(command, input=told, capture_output=True, check=True, timeout=60)
    read = json.loads(ran.stdout)["hookSpecificOutput"]["updatedToolOutput"]
    assert "names a price: it is withheld" in json.dumps(read)
    checks.write_text("1 / 0")
    broken = subprocess.run(command, input=told, capture_output=True, check=False, timeout=60)
    assert broken.returncode == 2
    assert b"raised ZeroDivisionError" in broken.stderr


def test_functions_belong_to_the_guard(tmp_path: Path, baton: Baton) -> None:
    refused = baton("hook", "claude", "push", "--functions", "checks.py", "--yes")
    assert refused.code == 2
    assert "`--functions` belong to `baton hook claude guard`" in refused.err


def test_the_dry_run_and_cases_run_a_module_with_functions(tmp_path: Path, baton: Baton) -> None:
    policy, checks, cases = (tmp_path / n for n in ("p.yaml", "checks.py", "cases.yaml"))
    checks.write_text(CHECKS.replace("no_prices", "no_sums"))
    policy.write_text("rules: [{output: {any: [{function: no_sums}]}}]")
    cases.write_text(
        "cases: [{name: a price, output: {from: a, to: b, output: 5 EUR}, expect: block}]"
    )
    unknown = baton("guard", "test", policy, cases)
    assert unknown.code == 1
    assert "no function `no_sums` is registered" in unknown.out
    assert baton("guard", "test", policy, cases, "--functions", checks).code == 0
    recordings = Path(__file__).parents[2] / "examples/adk/recordings/support_desk"
    assert baton("guard", "check", policy, recordings, "--functions", checks).code == 0
    missing = baton("guard", "check", policy, recordings, "--functions", tmp_path / "no.py")
    assert missing.code == 2
    assert "no.py: no such file" in missing.err


def begins(agent: str, kind: str = "lab", **fields: Any) -> bytes:
    return event("SubagentStart", agent_id=agent, agent_type=kind, **fields)


def test_a_sub_agent_whose_dispatch_was_decided_counts_once(tmp_path: Path) -> None:
    policy, store = tmp_path / "policy.yaml", tmp_path / "g.db"
    policy.write_text("rules: [{max_dispatches: 2}]")
    for number in (1, 2):
        assert answer(policy, store, starts(number)) is None
    for agent in ("a1", "a2"):
        assert answer(policy, store, begins(agent)) is None
    assert "has made 2 dispatches" in json.dumps(answer(policy, store, starts(3)))


def test_a_sub_agent_that_a_skill_starts_counts_and_reads_what_a_rule_says(
    tmp_path: Path, baton: Baton
) -> None:
    (tmp_path / "config").mkdir()
    transcript = str(session(tmp_path / "config"))
    policy, store = tmp_path / "policy.yaml", tmp_path / "g.db"
    policy.write_text("rules: [{max_dispatches: 1}, {allowed_edges: {}}]")
    assert answer(policy, store, begins("a7")) is None
    said = answer(policy, store, begins("a8", transcript_path=transcript))
    assert said is not None
    told = said["hookSpecificOutput"]
    assert told["hookEventName"] == "SubagentStart"
    assert "this request has made 1 dispatch" in told["additionalContext"]
    assert "has made 2 dispatches" in json.dumps(answer(policy, store, starts(1)))
    shown = baton("show", tmp_path / "config").out
    assert "guard: warned of the program to lab by max_dispatches" in shown
    assert "it had already started" in shown


def test_the_answer_of_a_skill_that_forks_is_replaced_before_it_is_read(
    policy: Path, tmp_path: Path
) -> None:
    def returns(response: dict[str, Any]) -> dict[str, Any] | None:
        told = {"tool_input": {"skill": "check"}, "tool_use_id": "t1", "tool_response": response}
        return answer(policy, tmp_path / "g.db", event("PostToolUse", tool_name="Skill", **told))

    forked = {"success": True, "status": "forked", "agentId": "a9"}
    assert returns({**forked, "result": "All is well."}) is None
    replaced = returns({**forked, "result": f"Use {KEY}."})
    assert replaced is not None
    changed = replaced["hookSpecificOutput"]["updatedToolOutput"]
    assert changed["result"].startswith("Use [")
    assert changed["agentId"] == "a9"
    # Text of a skill that its agent reads itself is no answer.
    assert returns({"success": True, "commandName": "check", "result": f"Use {KEY}."}) is None


def test_a_message_that_sets_a_sub_agent_to_work_again_is_a_dispatch(tmp_path: Path) -> None:
    policy, store, transcript = tmp_path / "policy.yaml", tmp_path / "g.db", session(tmp_path)
    policy.write_text("rules: [{max_fan_out: 1}, {max_dispatches: 2}, {max_depth: 3}]")

    def sends(number: int, **fields: Any) -> dict[str, Any] | None:
        given = {"to": "a1", "message": f"Go on {number}."}
        told = {"tool_input": given, "tool_use_id": f"m{number}", **fields}
        named = {"tool_name": "SendMessage", "transcript_path": str(transcript)}
        return answer(policy, store, event(told.pop("on", "PreToolUse"), **named, **told))

    response = {"success": True, "resumedAgentId": "a1"}
    for number in (1, 2):
        assert sends(number) is None
        assert sends(number, on="PostToolUse", tool_response=response) is None
        assert "waits for 1 answer" in json.dumps(sends(9))  # it is running again
        stopped = {"agent_id": "a1", "agent_type": "lab", "last_assistant_message": "Done."}
        assert answer(policy, store, event("SubagentStop", **stopped)) is None
    assert "has made 2 dispatches" in json.dumps(sends(3))
    policy.write_text("rules: [{max_depth: 2}]")
    assert "`lab` would work at depth 3" in json.dumps(sends(4))

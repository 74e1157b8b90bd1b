"""What is nested too deeply, repeats itself, or is too large is refused before it is built."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.clock import cpu_limit
from tests.conftest import Baton
from tests.processes import run_baton

import baton
from baton import load_traces
from baton.datasets.draft_case import draft_yaml
from baton.model import InputError
from baton.model.limits import JSON_DEPTH, LIMITS, YAML_DEPTH
from baton.readers import load_catalog

SECONDS = 20
"""A busy machine included; without the limits these take minutes, or all memory."""


def _bomb(line: str) -> str:
    first = "a0: &a0 {k0: x, k1: x, k2: x}\n"
    return first + "".join(line.format(n=n, a=f"*a{n - 1}") for n in range(1, 12))


YAML = {
    "aliases": (_bomb("a{n}: &a{n} [{a}, {a}, {a}, {a}, {a}, {a}, {a}, {a}]\n"), "aliases repeat"),
    "merge keys": (_bomb("a{n}: &a{n} {{<<: [{a}, {a}, {a}, {a}, {a}, {a}]}}\n"), "aliases repeat"),
    "brackets": ("cases: " + "[" * 1_000_000, f"more than {YAML_DEPTH.value} levels"),
    "mappings": ("cases: " + "{a: " * 1_000_000, "levels"),
    "dashes": ("- " * 1_000_000, "levels"),
    "keys": ("? " * 1_000_000, "a key that is not text"),
    "depth by aliases": (f"a: &a {'[' * 150}{']' * 150}\nb: {'[' * 99}*a{']' * 99}\n", "levels"),
    "cycle": ("cases: &a\n- id: x\n  state: *a\n", "is inside the value that it refers to"),
    "cycle at the top": ("&a [*a]\n", "is inside the value that it refers to"),
    "set": ("cases: !!set {a, b}\n", "is not one that Baton reads"),
    "flag": ("cases: !!bool perhaps\n", "does not fit its tag"),
    "empty number": ("cases: !!int ''\n", "does not fit its tag"),
    "object": ("cases: !!python/object/apply:os.getcwd []\n", "is not one that Baton reads"),
}


@pytest.mark.parametrize("name", YAML)
@pytest.mark.parametrize("verb", ["check", "config", "agents", "definition"])
def test_hostile_yaml_is_one_clear_message_wherever_yaml_is_read(
    name: str, verb: str, tmp_path: Path, baton: Baton
) -> None:
    text, said = YAML[name]
    file = tmp_path / "hostile.yaml"
    file.write_text(text)
    trace = Path(__file__).parents[1] / "records" / "swarm_revisit_and_ghost.json"
    given: list[str | Path] = ["check", file]
    if verb == "config":
        given = ["score", trace, "--config", file]
    elif verb == "agents":
        given = ["show", trace, "--agents", file]
    elif verb == "definition":
        agents = tmp_path / ".claude" / "agents"
        agents.mkdir(parents=True)
        (agents / "a.md").write_text(f"---\nname: a\n{text.rstrip()}\n---\nWork.\n")
        # Front matter that is not YAML is read line by line, as Claude Code does.
        assert load_catalog(tmp_path)["a"].instructions == "Work."
        return
    began = time.monotonic()
    if verb == "check":  # in its own process, which recursion might end
        result = run_baton(*given)
        code, err = result.returncode, result.stderr
    else:
        code, _, err = baton(*given)
    assert code == 2, err
    assert "hostile.yaml" in err
    assert said in err
    assert "Traceback" not in err
    assert time.monotonic() - began < SECONDS


def test_aliases_and_merge_keys_of_ordinary_size_are_read_as_before(tmp_path: Path) -> None:
    file = tmp_path / "cases.yaml"
    shared = "- &first\n  id: c0\n  input: Hi\n  agents: &chain [a, b]\n"
    cases = "".join(f"- {{<<: *first, id: c{n}, agents: *chain}}\n" for n in range(1, 500))
    file.write_text(f"cases:\n{shared}{cases}")
    dataset = baton.load_dataset(file)
    assert len(dataset) == 500
    assert dataset.cases[499].turns[0].agents == ["a", "b"]


def test_keys_of_yaml_are_text_whatever_they_look_like(tmp_path: Path) -> None:
    file = tmp_path / "cases.yaml"
    state = "{1: a, 1.5: b, true: c, null: d, 2025-01-01: e}"
    file.write_text(f"cases:\n- id: a\n  input: Hi\n  state: {state}\n")
    dataset = baton.load_dataset(file)
    assert list(dataset.cases[0].state) == ["1", "1.5", "true", "null", "2025-01-01"]
    file.write_text("cases:\n- {1.5: a, id: b, input: Hi}\n")
    with pytest.raises(InputError, match="unknown key"):
        baton.load_dataset(file)


def _nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"a": value} if levels % 2 else [value]
    return value


def _event(arguments: Any) -> bytes:
    call = {"function_call": {"id": "c1", "name": "look_up", "args": {"deep": arguments}}}
    content = {"role": "model", "parts": [call]}
    event = {"id": "e1", "author": "a", "invocationId": "i", "content": content}
    session = {"id": "s", "appName": "app", "userId": "u", "events": [event], "state": {}}
    return json.dumps(session).encode()


@pytest.mark.parametrize("levels", [150, 185, 330, 500, 900, 5_000])
@pytest.mark.parametrize("verb", ["draft", "show", "score", "check"])
def test_nested_json_is_used_or_refused_and_never_breaks_a_command(
    levels: int, verb: str, tmp_path: Path, baton: Baton
) -> None:
    file = tmp_path / "deep.session.json"
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    try:
        file.write_bytes(_event(_nested(levels)))
    finally:
        sys.setrecursionlimit(limit)
    out: list[str | Path] = ["--out", tmp_path / "out"] if verb == "score" else []
    if verb == "score":  # in its own process, which recursion might end
        result = run_baton(verb, file, *out)
        code, err = result.returncode, result.stderr
    else:
        code, _, err = baton(verb, file)
    assert "Traceback" not in err
    if levels < 200:
        assert "nested" not in err
        assert code in (0, 3), err
    else:
        assert code == 2, err
        assert f"nested too deeply: more than {JSON_DEPTH.value} levels" in err


def test_what_baton_wrote_of_a_deep_value_it_reads_again(tmp_path: Path) -> None:
    file = tmp_path / "deep.session.json"
    file.write_bytes(_event(_nested(190)))
    result = run_baton("score", file, "--out", tmp_path / "out", "-e", "handoff_loops")
    assert "nested" not in result.stderr
    (folder,) = [path for path in (tmp_path / "out").iterdir() if path.is_dir()]
    record = tmp_path / "again.jsonl"
    record.write_text(run_baton("show", file, "--json").stdout)
    again = run_baton("show", record)
    assert again.returncode == 0, again.stderr
    assert folder.name


@pytest.mark.parametrize("levels", [150, 330, 500, 900])
def test_nested_cases_are_converted_or_refused(levels: int, tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        case = {"id": "a", "input": "Hi", "state": {"deep": _nested(levels)}}
        file.write_text(json.dumps({"cases": [case]}))
    finally:
        sys.setrecursionlimit(limit)
    result = run_baton("convert", file, "--to", "adk", "-o", tmp_path / "out.evalset.json")
    assert "Traceback" not in result.stderr
    assert result.returncode == (0 if levels < 200 else 2), result.stderr


def _kvlist(levels: int) -> Any:
    value: Any = {"stringValue": "x"}
    for _ in range(levels):
        value = {"kvlistValue": {"values": [{"key": "a", "value": value}]}}
    return value


@pytest.mark.parametrize("levels", [100, 220])
def test_attributes_nested_too_deeply_are_left_out_and_counted(levels: int, tmp_path: Path) -> None:
    told: dict[str, Any] = {
        "gen_ai.operation.name": {"stringValue": "invoke_agent"},
        "gen_ai.agent.name": {"stringValue": "a"},
        "deep": _kvlist(levels),
    }
    span = {
        "traceId": "ab" * 16, "spanId": "1" * 16, "name": "invoke_agent a",
        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000001000000000",
        "attributes": [{"key": key, "value": value} for key, value in told.items()],
    }  # fmt: skip
    file = tmp_path / "spans.json"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
    (trace,) = load_traces(file)
    assert trace.turns[0].runs[0].agent == "a"
    assert any("nested too deep" in each.what for each in trace.dropped) == (levels > 200)


def test_texts_of_json_within_texts_of_json_are_no_recursion(tmp_path: Path) -> None:
    text = '{"a":' * 180 + "1" + "}" * 180
    for _ in range(4):
        text = '{"a":' * 180 + json.dumps(text) + "}" * 180
    turns = [{"id": "t1", "input": {"text": text}, "output": {"text": text}, "runs": [
        {"id": "r1", "agent": "a", "steps": [
            {"type": "tool_call", "id": "c1", "name": "b", "dispatch": "d1"},
            {"type": "handed_off", "id": "h1", "dispatch": "d1"},
            {"type": "got_back", "id": "g1", "dispatch": "d1"},
        ]},
        {"id": "r2", "agent": "b", "started_by": ["d1"], "input": {"text": text}},
    ], "dispatches": [
        {"id": "d1", "kind": "delegate", "from_run": "r1", "from_agent": "a", "to_agent": "b",
         "call": "c1", "runs": ["r2"], "prompt": {"text": text}, "result": {"text": text}},
    ]}]  # fmt: skip
    record = {"schema_version": 1, "id": "t", "source": {"format": "python"}, "turns": turns}
    file = tmp_path / "t.json"
    file.write_text(json.dumps(record))
    for result in baton.score(load_traces(file)):
        assert [score.reason for score in result.scores if score.status == "error"] == []
    draft_yaml(load_traces(file))


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 400, "9" * 10_000])
def test_a_number_out_of_range_is_one_clear_message(number: str, tmp_path: Path) -> None:
    event = json.loads(_event("x"))
    event["events"][0]["timestamp"] = "HERE"
    file = tmp_path / "run.session.json"
    file.write_text(json.dumps(event).replace('"HERE"', number))
    with pytest.raises(InputError, match=r"(larger than any number|digits|out of range)"):
        load_traces(file)


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_thousands_of_unknown_keys_are_reported_at_once(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"cases{suffix}"
    junk = {f"unknown_key_{n}": n for n in range(8_000)}
    file.write_text(json.dumps({"cases": [{"id": "a", "input": "Hi", "agent": ["b"], **junk}]}))
    with cpu_limit(SECONDS), pytest.raises(InputError) as caught:
        baton.load_dataset(file)
    problems = caught.value.problems
    assert len(problems) == 101
    assert "did you mean `agents`?" in str(problems[0])
    assert problems[-1].message == "and 7,901 more problems"


def test_a_key_of_a_megabyte_is_compared_with_nothing(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    keys = {"ab" * 500_000 + str(n): 1 for n in range(8)}
    file.write_text(json.dumps({"cases": [{"id": "a", "input": "Hi", **keys}]}))
    with cpu_limit(SECONDS), pytest.raises(InputError):
        baton.load_dataset(file)


def test_every_limit_says_why_it_has_its_value() -> None:
    assert len({limit.name for limit in LIMITS}) == len(LIMITS)
    for limit in LIMITS:
        assert limit.value > 0
        assert len(limit.reason) > 40
        assert limit.reason.endswith(".")

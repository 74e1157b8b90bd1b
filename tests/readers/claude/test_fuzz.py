"""Whatever is done to a recording, there is a trace that holds together or one clear error."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from baton.model import InputError, Problem, Source, Trace, integrity_problems
from baton.readers.claude.reader import read_one_stream, read_session, read_stream

DATA = Path(__file__).parents[2] / "data" / "claude"
STREAMS = {
    f"{path.parent.parent.name}-{path.parent.name}": [
        json.loads(x) for x in path.read_text().splitlines()
    ]
    for path in sorted(DATA.glob("*/*/messages.jsonl"))
}
SESSIONS = [
    file
    for file in sorted(DATA.glob("*/*/session/projects/*/*.jsonl"))
    if not file.name.startswith("agent-")
]
SOURCE = Source(format="claude-stream")
JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def _read(messages: list[dict[str, Any]]) -> Trace:
    return read_stream(messages, id_="x", source=SOURCE, catalog={})


def _outcome(data: bytes) -> tuple[list[Trace], Problem | None]:
    try:
        return read_one_stream("f", data, "f", SOURCE, {}), None
    except InputError as error:
        return [], error.problems[0]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(STREAMS)), st.data())
def test_messages_lost_doubled_and_out_of_order_still_make_a_record(name: str, data: Any) -> None:
    lines = STREAMS[name]
    picked = data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=len(lines)))
    keep_ids = data.draw(st.booleans())
    chosen = [copy.deepcopy(lines[n]) for n in picked]
    for number, line in enumerate(chosen):
        if not keep_ids:
            line["uuid"] = f"u{number}"
    assert integrity_problems(_read(chosen)) == []


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(sorted(STREAMS)), st.data())
def test_values_of_any_kind_in_any_place_still_make_a_record(name: str, data: Any) -> None:
    lines = copy.deepcopy(STREAMS[name])
    for _ in range(data.draw(st.integers(1, 4))):
        spot: Any = data.draw(st.sampled_from(lines))
        while True:
            keys = list(spot) if isinstance(spot, dict) else range(len(spot))
            key = data.draw(st.sampled_from(list(keys)))
            inner = spot[key]
            if not inner or not isinstance(inner, dict | list) or data.draw(st.booleans()):
                spot[key] = data.draw(JUNK)
                break
            spot = inner
    assert integrity_problems(_read(lines)) == []


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(STREAMS)), st.integers(min_value=1), st.binary(max_size=4))
def test_a_file_cut_anywhere_is_a_record_or_one_error(name: str, cut: int, junk: bytes) -> None:
    data = b"".join(json.dumps(line).encode() + b"\n" for line in STREAMS[name])
    piece = data[: cut % len(data)] + junk
    traces, problem = _outcome(piece)
    assert all(integrity_problems(trace) == [] for trace in traces)
    assert problem is None or problem.line is not None


def test_clocks_out_of_order_and_of_no_kind_still_make_a_record(tmp_path: Path) -> None:
    source = next((DATA / "current" / "11_nested").rglob("projects/*/*.jsonl"))
    times: list[Any] = [
        None,
        "yesterday",
        -1e300,
        1e300,
        float("nan"),
        "2026-01-01T00:00:00Z",
        5,
        True,
        [],
    ]
    for shift in range(len(times)):
        rows = [json.loads(line) for line in source.read_text().splitlines()]
        for number, row in enumerate(rows):
            row["timestamp"] = times[(number + shift) % len(times)]
        path = tmp_path / f"{shift}.jsonl"
        path.write_text("".join(json.dumps(row).replace("NaN", "1") + "\n" for row in rows))
        assert integrity_problems(read_session(path, source=SOURCE, catalog={})) == []


@pytest.mark.parametrize("depth", [500, 100_000])
def test_deep_nesting_is_read_or_refused(depth: int) -> None:
    deep = b'{"type": "assistant", "x": ' + b"[" * depth + b"]" * depth + b"}\n"
    _, problem = _outcome(deep)
    assert problem is None or "nested too deeply" in problem.message or "no JSON" in problem.message


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(SESSIONS), st.data())
def test_session_files_with_lines_lost_and_moved_still_make_a_record(
    tmp_path_factory: pytest.TempPathFactory, source: Path, data: Any
) -> None:
    folder = tmp_path_factory.mktemp("session")
    for file in source.parent.rglob("*.jsonl"):
        lines = file.read_text().splitlines()
        picked = data.draw(st.lists(st.integers(0, len(lines) - 1), max_size=len(lines)))
        target = folder / file.relative_to(source.parent)
        target.parent.mkdir(exist_ok=True, parents=True)
        target.write_text("".join(f"{lines[n]}\n" for n in picked))
    trace = read_session(folder / source.name, source=SOURCE, catalog={})
    assert integrity_problems(trace) == []


@pytest.mark.parametrize("odd", [{}, ["Agent"], 5, None])
def test_calls_and_blocks_of_odd_types_are_no_calls_of_agents(odd: Any) -> None:
    block = {"type": "tool_use", "id": "c1", "name": odd, "input": {"prompt": "p"}}
    answer = {"type": "tool_result", "tool_use_id": "c1", "content": "r"}
    for kind in (block, {**block, "type": odd}):
        assistant = {"type": "assistant", "message": {"content": [kind]}, "isSidechain": True}
        user = {"type": "user", "message": {"content": [answer]}}
        assert integrity_problems(_read([assistant, user])) == []

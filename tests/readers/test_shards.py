"""Shards add up to the whole: the same traces in the same order, with the same problems."""

from __future__ import annotations

import random
from pathlib import Path

import fsspec
import msgspec
import pytest

from baton import iter_traces
from baton.model import InputError
from baton.readers.file_reader import LineRange
from baton.readers.shards import Shard, ShardReader, fetched, iter_shards, ranges

ROOT = Path(__file__).parent.parent.parent
FOLDERS = [
    ROOT / "examples" / "adk" / "recordings",
    ROOT / "examples" / "claude",
    ROOT / "examples" / "frameworks",
    ROOT / "tests" / "data",
]
RECORD = '{{"schema_version": 1, "id": "{}", "source": {{"format": "record"}}, "turns": []}}\n'


class Read:
    """The result of reading."""

    def __init__(self) -> None:
        self.traces: list[bytes] = []
        self.problems: list[str] = []
        self.notes: list[str] = []

    def broken(self, error: InputError) -> None:
        self.problems += [str(problem) for problem in error.problems]


def whole(*targets: str) -> Read:
    read = Read()
    found = iter_traces(targets, on_problem=read.broken, on_note=read.notes.append)
    read.traces = [msgspec.json.encode(trace) for trace in found]
    return read


def pieces(size: int, *targets: str, parts: int = 1) -> tuple[Read, int]:
    read = Read()
    shards = list(iter_shards(targets, size=size, parts=parts, on_problem=read.broken))
    for shard in shards:
        text = msgspec.json.encode(shard)
        again = msgspec.json.decode(text, type=Shard)
        reader = ShardReader(again, None, read.broken, read.notes.append)
        read.traces += [msgspec.json.encode(trace) for trace in reader.traces()]
    return read, len(shards)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "folder", [each for each in FOLDERS if each.is_dir()], ids=lambda f: f.name
)
def test_recordings_of_every_kind_read_in_shards_are_the_same(folder: Path) -> None:
    one = whole(str(folder))
    two, _ = pieces(30_000, str(folder), parts=3)
    assert two.traces == one.traces
    assert two.problems == one.problems
    assert sorted(two.notes) == sorted(one.notes)


def conversation(number: int, agents: bool = True) -> bytes:
    """One line of spans of an agent, or of a program without agents."""
    attributes = [("gen_ai.operation.name", "invoke_agent"), ("gen_ai.agent.name", f"a{number}")]
    trace = f"{number + 1:032x}"
    spans = [
        {
            "traceId": trace,
            "spanId": f"{number + 1:016x}",
            "name": "run",
            "startTimeUnixNano": str(1_700_000_000_000_000_000 + number),
            "endTimeUnixNano": str(1_700_000_001_000_000_000 + number),
            "attributes": [
                {"key": key, "value": {"stringValue": value}} for key, value in attributes
            ]
            if agents
            else [],
        }
    ]
    return msgspec.json.encode({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}) + b"\n"


WITHOUT_AGENTS = [conversation(number, agents=False) for number in range(12)]
WITH_AGENTS = [conversation(number) for number in range(12, 24)]
WITHOUT_ID = conversation(3).replace(b'"0000000000000004"', b'""')


@pytest.mark.parametrize("parts", [2, 3, 7, 40])
@pytest.mark.parametrize(
    "lines",
    [
        WITH_AGENTS,
        [*WITHOUT_AGENTS, *WITH_AGENTS],
        [*WITH_AGENTS, *[line.replace(b"17000", b"16000") for line in WITHOUT_AGENTS]],
        [*WITHOUT_AGENTS, *WITH_AGENTS, WITHOUT_ID],
        [*WITH_AGENTS, WITHOUT_ID, b'{"resourceSpans": 7}\n', b'{"resourceSpans": ['],
        [*WITHOUT_AGENTS, WITHOUT_ID],
        [WITHOUT_ID],
        [b'{"resourceSpans": []}\n'],
    ],
)
def test_conversations_read_in_parts_are_the_same(
    tmp_path: Path, lines: list[bytes], parts: int
) -> None:
    (tmp_path / "spans.jsonl").write_bytes(b"".join(lines))
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "first.jsonl").write_bytes(b"".join(lines[::2]))
    (tmp_path / "more" / "second.jsonl").write_bytes(b"".join(lines[1::2]))
    for target in (tmp_path / "spans.jsonl", tmp_path / "more"):
        one = whole(str(target))
        two, count = pieces(1, str(target), parts=parts)
        assert count >= min(parts, 20)
        assert two.traces == one.traces
        assert two.problems == one.problems
        assert two.notes == one.notes


def test_lines_belong_to_the_range_they_start_in(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    random_ = random.Random(5)
    lines = [bytes([97 + n % 26]) * random_.randrange(0, 9) + b"\n" for n in range(200)]
    for ending in (b"", b"\n"):
        text = b"".join(lines)[:-1] + ending
        file.write_bytes(text)
        for size in (1, 2, 7, 64, 5000):
            found = [
                line
                for start, end in ranges(len(text), size)
                for line in LineRange(file, start, end)
            ]
            assert b"".join(found) == text
            assert len(found) == len(text.splitlines(keepends=True))


def test_files_named_one_by_one_that_hold_no_trace_are_a_problem(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "good.jsonl").write_text("".join(RECORD.format(n) for n in range(30)))
    targets = [str(tmp_path / name) for name in ("empty.json", "good.jsonl", "gone.json")]
    one = whole(*targets)
    two, count = pieces(500, *targets)
    assert count > 3
    assert two.traces == one.traces
    assert len(two.problems) == len(one.problems) == 2


def test_addresses_are_read_as_the_files_behind_them(tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "long.jsonl").write_text("".join(RECORD.format(n) for n in range(40)))
    for name in ("a.json", "b.json"):
        (tmp_path / "traces" / name).write_text(RECORD.format(name))
    address = f"file://{tmp_path}/traces"
    read, count = pieces(700, address)
    assert count > 4
    found = [msgspec.json.decode(trace) for trace in read.traces]
    assert sorted(trace["id"] for trace in found) == sorted(
        [*map(str, range(40)), "a.json", "b.json"]
    )
    places = {trace["source"]["location"] for trace in found}
    assert places == {f"{address}/{name}" for name in ("a.json", "b.json", "long.jsonl")}
    globbed, _ = pieces(700, f"{address}/*.json")
    assert len(globbed.traces) == 2


def test_memory_and_broken_files_behind_addresses(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe("/baton-test/good.json", RECORD.format("one").encode())
    memory.pipe("/baton-test/bad.json", b'{"schema_version": 1, "id": 4, "turns": []}')
    try:
        read, _ = pieces(700, "memory://baton-test")
    finally:
        memory.rm("/baton-test", recursive=True)
    assert len(read.traces) == 1
    assert read.problems
    assert read.problems[0].startswith("memory:///baton-test/bad.json")


@pytest.mark.parametrize("address", ["memory://nothing-there", "nosuch://bucket/x"])
def test_an_address_that_leads_nowhere_says_so(address: str) -> None:
    with pytest.raises(InputError, match=address.partition(":")[0]):
        pieces(700, address)


ENDLESS = "memory://baton-endless/run.jsonl"


@pytest.mark.parametrize(
    ("variable", "shard"),
    [
        ("BATON_MAX_SPAN_FILE_BYTES", Shard(files=[ENDLESS])),
        ("BATON_MAX_FILE_BYTES", Shard(files=[ENDLESS], start=10, end=710)),
    ],
)
def test_a_store_that_sends_more_than_a_file_may_have_is_stopped(
    monkeypatch: pytest.MonkeyPatch, variable: str, shard: Shard
) -> None:
    monkeypatch.setenv(variable, "1000")
    memory = fsspec.filesystem("memory")
    memory.pipe("/baton-endless/run.jsonl", b'{"id": "%s"}\n' % (b"x" * 50_000) * 3)
    try:
        with (
            pytest.raises(InputError, match=rf"1,000 bytes, which is the limit; set {variable}"),
            fetched(shard),
        ):
            pass
    finally:
        memory.rm("/baton-endless", recursive=True)

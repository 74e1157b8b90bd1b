"""`baton score --backend`: the folder at the end is that of a run without one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conftest import Baton, Outcome

from baton.readers.shards import ShardReader, iter_shards
from baton.runner.backends.protocol import Job
from baton.session.backend_workers import Worker

from .traces import line, numbered, same_but_for_timings, write_cases, write_lines

CREWAI = Path(__file__).parents[2] / "data" / "otel" / "crewai"


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut what is small enough for tests as well."""
    monkeypatch.setattr("baton.session.score.BYTES", 2000)


def scored(baton: Baton, *arguments: str) -> tuple[Path, Outcome]:
    before = set(Path("out").glob("*"))
    outcome = baton("score", *arguments, "--out", "out", "--name", "run")
    made = set(Path("out").glob("*")) - before
    assert len(made) == 1, outcome
    return made.pop(), outcome


def both(baton: Baton, *arguments: str, backend: tuple[str, ...] = ("--backend", "local")) -> Any:
    one, plain = scored(baton, *arguments)
    other, backed = scored(baton, *arguments, *backend)
    assert plain.code == backed.code
    same_but_for_timings(one, other)
    return one


def test_traces_of_lines_with_cases_give_the_same_folder(baton: Baton, tmp_path: Path) -> None:
    write_lines(tmp_path / "t.jsonl", 60)
    write_cases(tmp_path / "cases.jsonl", 62)
    folder = both(baton, "t.jsonl", "-d", "cases.jsonl")
    assert len((folder / "index.jsonl").read_bytes().splitlines()) == 62  # two have no trace


def test_several_processes_give_the_same_folder(baton: Baton, tmp_path: Path) -> None:
    write_lines(tmp_path / "t.jsonl", 60)
    write_cases(tmp_path / "cases.jsonl", 60)
    both(
        baton, "t.jsonl", "-d", "cases.jsonl", backend=("--backend", "local", "--workers", "2")
    )  # fmt: skip


def test_conversations_of_spans_are_shared_by_several_processes(
    baton: Baton, tmp_path: Path
) -> None:
    (tmp_path / "spans").mkdir()
    for place, file in enumerate(sorted(CREWAI.glob("*_events.json"))):
        (tmp_path / "spans" / f"{place}.json").write_bytes(file.read_bytes())
    (tmp_path / "spans" / "broken.jsonl").write_bytes(b'{"resourceSpans": 7}\n')
    folder = both(baton, "spans", backend=("--jobs", "3"))
    assert len((folder / "index.jsonl").read_bytes().splitlines()) > 8
    header = msgspec.json.decode((folder / "evaluation.json").read_bytes())
    assert header["problems"] == [
        "spans/broken.jsonl:1: resourceSpans: Expected `array | null`, got `int`",
        "1 of 12 cases could not be evaluated",
    ]


def test_broken_lines_are_named_by_the_line_of_their_file(baton: Baton, tmp_path: Path) -> None:
    write_lines(tmp_path / "t.jsonl", 60, broken=(1, 41, 59))
    folder = both(baton, "t.jsonl")
    problems = msgspec.json.decode((folder / "evaluation.json").read_bytes())["problems"]
    places = [problem.split(": ")[0] for problem in problems[:3]]
    assert places == ["t.jsonl:2", "t.jsonl:42", "t.jsonl:60"]


def eval_set(count: int, broken: tuple[int, ...] = ()) -> bytes:
    """An eval set of ADK, as it is written with an indent; broken cases have a wrong field."""
    cases: list[dict[str, Any]] = [
        {
            "eval_id": f"case-{number}",
            "conversation": [
                {
                    "invocation_id": f"i{number}",
                    "user_content": {"role": "user", "parts": [{"text": f"question {number}"}]},
                    "final_response": {"role": "model", "parts": [{"text": "a, [answer] \\ {"}]},
                    **({"intermediate_data": 7} if number in broken else {}),
                }
            ],
        }
        for number in range(count)
    ]
    made = {"eval_set_id": "s", "eval_cases": cases, "creation_timestamp": 1.0}
    return msgspec.json.format(msgspec.json.encode(made), indent=2)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_one_document_is_read_in_pieces(baton: Baton, tmp_path: Path, mark: bytes) -> None:
    (tmp_path / "t.json").write_bytes(mark + eval_set(40, broken=(2, 31)))
    (tmp_path / "list.json").write_bytes(b"[" + b" ,\n".join(line(n) for n in range(40)) + b"]")
    shards = list(iter_shards(["t.json"], size=2000, on_problem=print))
    assert len(shards) > 5
    assert len(list(iter_shards(["list.json"], size=2000, on_problem=print))) > 3
    assert len((both(baton, "list.json") / "index.jsonl").read_bytes().splitlines()) == 40
    folder = both(baton, "t.json", "-e", "agent_chain")
    header = msgspec.json.decode((folder / "evaluation.json").read_bytes())
    lines = (tmp_path / "t.json").read_text("utf-8").splitlines()
    wrong = [place for place, text in enumerate(lines, 1) if '"intermediate_data": 7' in text]
    places = [problem.split(": ")[0] for problem in header["problems"][:2]]
    assert places == [f"t.json:{place}" for place in wrong]
    assert len((folder / "index.jsonl").read_bytes().splitlines()) == 38


def test_a_case_that_is_found_in_a_text_before_the_list_does_no_harm(
    baton: Baton, tmp_path: Path
) -> None:
    whole = msgspec.json.decode(eval_set(20))
    whole = {"eval_set_id": "set 1", "eval_cases": [1, *whole["eval_cases"]]}
    (tmp_path / "t.json").write_bytes(msgspec.json.encode(whole))
    folder = both(baton, "t.json", "-e", "agent_chain")
    problems = msgspec.json.decode((folder / "evaluation.json").read_bytes())["problems"]
    assert problems[0].startswith("t.json:1: ")
    assert len((folder / "index.jsonl").read_bytes().splitlines()) == 20


def test_a_document_that_changes_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_bytes(eval_set(40))
    shards = list(iter_shards([str(file)], size=2000, on_problem=print))
    file.write_bytes(eval_set(40, broken=(3,)))
    os.utime(file, ns=(1, 1))  # some file systems count in whole seconds
    problems: list[str] = []
    for shard in shards:
        reader = ShardReader(shard, None, lambda error: problems.append(str(error)), print)
        assert list(reader.traces()) == []
    assert problems == [f"{file}: has changed while it was being read"] * len(shards)


def test_two_traces_of_a_case_in_two_shards_are_an_error(baton: Baton, tmp_path: Path) -> None:
    write_lines(tmp_path / "t.jsonl", 40)
    with (tmp_path / "t.jsonl").open("ab") as file:
        file.write(line(3))
        file.write(line(99))  # of no case
    write_cases(tmp_path / "cases.jsonl", 40)
    folder = both(baton, "t.jsonl", "-d", "cases.jsonl")
    rows = [msgspec.json.decode(row) for row in (folder / "index.jsonl").read_bytes().splitlines()]
    assert [row["position"] for row in rows if row["status"] == "error"] == [3, 40]


def test_a_folder_of_files_with_definitions_beside_them(baton: Baton, recordings: Path) -> None:
    both(baton, str(recordings))


def test_a_folder_of_files_in_many_small_shards(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    for number in range(25):
        (tmp_path / "traces" / f"{number:02}.json").write_bytes(line(number))
    (tmp_path / "traces" / "stray.json").write_text("{}")
    write_lines(tmp_path / "traces" / "long.jsonl", 30)
    folder = both(baton, "traces")
    assert len((folder / "index.jsonl").read_bytes().splitlines()) == 55


def test_a_glob_takes_what_it_meets(baton: Baton, tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl", "c.txt"):
        write_lines(tmp_path / name, 2)
    folder = both(baton, "*.jsonl")
    assert len((folder / "index.jsonl").read_bytes().splitlines()) == 4
    assert baton("score", "*.sse").err == "baton: no file matches *.sse\n"


def test_a_folder_that_holds_no_trace_leaves_no_evaluation(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "traces").mkdir()
    outcome = baton("score", "traces", "--backend", "local", "--out", "out")
    assert outcome.code == 2
    assert "no trace" in outcome.err
    assert not Path("out").exists()


def test_every_job_is_json_and_holds_no_trace(
    baton: Baton, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_lines(tmp_path / "t.jsonl", 30)
    seen: list[bytes] = []
    do = Worker.do

    def watched(self: Worker, text: bytes) -> bytes:
        seen.append(text)
        return do(self, text)

    monkeypatch.setattr(Worker, "do", watched)
    scored(baton, "t.jsonl", "--backend", "local")
    assert len(seen) > 2
    for text in seen:
        job = msgspec.json.decode(text, type=Job)
        assert msgspec.json.decode(msgspec.json.encode(job)) == msgspec.json.decode(text)
        assert len(text) < 1000
        assert b"question" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backend", "rey"], "--backend: unknown backend `rey`; did you mean `ray`?"),
        (["--workers", "2"], "--workers can only be used with --backend (local, ray)"),
        (["--backend", "local", "--workers", "0"], "--workers: "),
        (["--backend", "nowhere:make"], "no module `nowhere`"),
        (["--backend", "local", "--dry-run"], "--dry-run reads the traces on this machine"),
    ],
)
def test_a_wrong_backend_stops_the_run(
    baton: Baton, tmp_path: Path, arguments: list[str], message: str
) -> None:
    write_lines(tmp_path / "t.jsonl", 2)
    outcome = baton("score", "t.jsonl", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert not (tmp_path / ".baton").exists()


def test_a_limit_of_a_judge_is_refused_as_no_worker_could_keep_it(
    baton: Baton, tmp_path: Path
) -> None:
    write_lines(tmp_path / "t.jsonl", 2)
    judge = "judge: {model: 'openai:m', base_url: 'http://127.0.0.1:1/v1', max_calls: 9}\n"
    (tmp_path / "c.yaml").write_text(f"evaluators: [task_completion]\n{judge}")
    outcome = baton("score", "t.jsonl", "-c", "c.yaml", "--backend", "local")
    assert outcome.code == 2
    assert "limits of a judge (`max_cost`, `max_calls`) do not work with a backend" in outcome.err


def test_a_config_may_name_the_backend(baton: Baton, tmp_path: Path) -> None:
    write_lines(tmp_path / "t.jsonl", 30)
    config = tmp_path / "c.yaml"
    config.write_text("evaluators: [agent_chain]\nbackend: {type: local, worker: 1}\n")
    outcome = baton("score", "t.jsonl", "-c", "c.yaml")
    assert outcome.code == 2
    assert "c.yaml:2" in outcome.err
    assert "did you mean `workers`?" in outcome.err
    config.write_text("evaluators: [{type: dispatch_completed, optional: true}]\nbackend: local\n")
    scored(baton, "t.jsonl", "-c", "c.yaml")


KILLER = """
import os
def killer(trace):
    if trace.id == "case-7":
        mark = os.environ["MARK"]
        if not os.path.exists(mark) or os.environ.get("ALWAYS"):
            open(mark, "w").close()
            os.kill(os.getpid(), 9)
    return True
"""


def killed(tmp_path: Path, **environment: str) -> tuple[int, list[dict[str, Any]], str]:
    write_lines(tmp_path / "t.jsonl", 40)
    (tmp_path / "killer.py").write_text(KILLER)
    (tmp_path / "c.yaml").write_text("evaluators: [{type: 'killer:killer'}]\n")
    command = ["score", "t.jsonl", "-c", "c.yaml", "--backend", "local", "--workers", "2"]
    code = (
        "from baton.session import score\n"
        "score.BYTES = 1000\n"
        "from baton.cli import main\n"
        f"if __name__ == '__main__': raise SystemExit(main({[*command, '--out', 'out']!r}))\n"
    )
    (tmp_path / "go.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "go.py"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "MARK": str(tmp_path / "mark"), **environment},
    )
    (folder,) = (tmp_path / "out").iterdir()
    rows = [msgspec.json.decode(row) for row in (folder / "index.jsonl").read_bytes().splitlines()]
    return done.returncode, rows, (folder / "evaluation.json").read_text()


def test_a_process_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    code, rows, _ = killed(tmp_path)
    assert code == 0
    assert (tmp_path / "mark").exists()
    assert [row["case_id"] for row in rows] == [numbered(n).id for n in range(40)]


@pytest.mark.heavy
def test_traces_that_kill_every_worker_are_reported_and_never_a_pass(tmp_path: Path) -> None:
    code, rows, header = killed(tmp_path, ALWAYS="1")
    assert code == 3
    assert 30 < len(rows) < 40
    assert "these traces were not scored: its worker was lost 4 times" in header

"""Evaluations behind fsspec: uploaded, and read by every command, as local folders are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from tests.conftest import Baton
from tests.store.hdfs import Storage, webhdfs

import baton as library
from baton.formats.storage_addresses import shown_address
from baton.model import InputError
from baton.session.compare import trend
from baton.session.issues import find_issues
from baton.session.label import label
from baton.store import evaluation_at

from .desks import passed_on, write_cases


@pytest.fixture
def storage() -> Iterator[Storage]:
    with webhdfs() as storage:
        yield storage


def score_two(baton: Baton, folder: Path, out: str, name: str = "desk") -> tuple[int, str, Path]:
    """Score two runs, one of them wrong; give the exit code, standard error and local folder."""
    cases = write_cases(folder, 2)
    runs = [passed_on("c000", "billing"), passed_on("c001", "weather")]
    file = folder / "runs.jsonl"
    file.write_bytes(b"\n".join(msgspec.json.encode(run) for run in runs) + b"\n")
    words = ("-d", cases, "-e", "agent_chain", "--name", name, "--out", out)
    outcome = baton("score", file, *words)
    (made,) = (folder / ".baton" / "evaluations").iterdir()
    return outcome.code, outcome.err, made


def test_an_evaluation_is_stored_at_an_address_and_reported_from_there(
    baton: Baton, tmp_path: Path, storage: Storage
) -> None:
    code, err, made = score_two(baton, tmp_path, f"{storage.address}/team/evaluations")
    address = f"{storage.address}/team/evaluations/{made.name}"
    assert (code, f"uploaded to {address}" in err) == (1, True)
    assert storage.written == ["bodies.jsonl", "index.jsonl", "evaluation.json"]
    for name in storage.written:
        kept = storage.files[f"/team/evaluations/{made.name}/{name}"]
        assert kept == (made / name).read_bytes()
    here, there = baton("report", made), baton("report", address)
    assert there.code == here.code == 1
    assert there.out == here.out.replace(str(made), address)
    assert there.out.splitlines()[-1].split() == ["failed", address]


CLOCK = r'"(timings|timeUnixNano|observedTimeUnixNano)": ?("[0-9]*"|\{[^}]*\})'
COMMANDS = [
    ["report", "{}", "--json"],
    ["report", "{}", "-q"],
    ["compare", "{}", "{}"],
    ["trend", "{}", "{other}"],
    ["baseline", "set", "{}", "--allow-failing"],
    ["issues", "{}"],
    ["blame", "{}"],
    ["show", "{}"],
    ["check", "{}"],
    ["draft", "{}"],
    ["export", "{}", "-o", "spans.jsonl"],
    ["guard", "suggest", "{}"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_a_command_says_the_same_of_an_address_and_of_its_folder(
    baton: Baton, tmp_path: Path, words: list[str]
) -> None:
    made = played(tmp_path, "one")
    other = played(tmp_path, "two")
    address = f"file://{made}"

    def run(folder: str) -> tuple[int, str, str]:
        outcome = baton(*(word.format(folder, other=other) for word in words))
        outputs = [outcome.out, outcome.err, *map(Path.read_text, tmp_path.glob("spans.jsonl"))]
        plain = "\n".join(outputs).replace(address, "PLACE").replace(folder, "PLACE")
        assert "/baton-" not in plain
        return outcome.code, re.sub(CLOCK, "", plain), outcome.err

    code, local, _ = run(str(made))
    there = run(address)
    assert there[:2] == (code, local), there[2]
    assert code in (0, 1)


def played(folder: Path, name: str) -> Path:
    """Score two runs, one of them wrong; the folder contains the traces."""
    cases = write_cases(folder, 2)
    runs = [passed_on("c000", "billing"), passed_on("c001", "weather")]
    return library.score(runs, cases, ["agent_chain"]).save(folder / name)


def test_the_traces_of_an_evaluation_at_an_address_are_scored_and_kept(
    baton: Baton, tmp_path: Path
) -> None:
    made = played(tmp_path, "one")
    scored = baton("score", f"file://{made}", "-e", "agent_chain", "-d", "cases.yaml")
    assert scored.code == 1, scored.err
    (folder,) = (tmp_path / ".baton" / "evaluations").iterdir()
    assert json.loads((folder / "evaluation.json").read_text())["traces"] == []
    shown = baton("show", folder)
    assert (shown.code, "→ billing" in shown.out) == (0, True)
    with_workers = baton("score", f"file://{made}", "--backend", "local")
    assert (with_workers.code, "scored in one process" in with_workers.err) == (2, True)


def test_functions_of_python_take_addresses(tmp_path: Path, storage: Storage) -> None:
    made = played(tmp_path, "one")
    for name in ("evaluation.json", "index.jsonl", "bodies.jsonl"):
        storage.files[f"/team/one/{name}"] = (made / name).read_bytes()
    address = f"{storage.address}/team/one"
    assert [row.case_id for row in library.report(address).rows()] == ["c000", "c001"]
    compared = library.compare(address, made)
    assert compared.itself
    assert compared.outcome == "error"
    assert len(find_issues([address]).issues) == 1
    assert [point.value for point in trend([address, made])] == [0.5, 0.5]
    again = library.score(address, tmp_path / "cases.yaml", ["agent_chain"])
    assert [result.status for result in again.results] == ["passed", "failed"]
    assert len(label(address, rubric="dispatch_correctness").things) == 2
    with pytest.raises(InputError, match="baton push FOLDER --out ADDRESS"):
        again.save(f"{storage.address}/team/two")


def test_a_copy_is_fetched_again_only_if_the_evaluation_changed(tmp_path: Path) -> None:
    made = played(tmp_path, "one")
    address = f"file://{made}"
    copy = evaluation_at(address)
    assert evaluation_at(address) == copy
    header = json.loads((made / "evaluation.json").read_text())
    (made / "evaluation.json").write_text(json.dumps({**header, "name": "renamed"}))
    assert evaluation_at(address) != copy
    assert evaluation_at(made) == made


def test_a_gate_compares_with_a_baseline_at_an_address(baton: Baton, tmp_path: Path) -> None:
    made = played(tmp_path, "one")
    gate = f"evaluators: [agent_chain]\ngate:\n  regression: {{baseline: 'file://{made}'}}\n"
    (tmp_path / "baton.yaml").write_text(gate)
    outcome = baton("score", made, "-d", "cases.yaml", "-c", "baton.yaml", "--json")
    assert outcome.code == 1, outcome.err
    rules = [each["rule"] for each in json.loads(outcome.out)["gate"]]
    assert f"no regression from file://{made}" in rules
    (tmp_path / "baton.yaml").write_text(gate.replace("/one", "/none"))
    missing = baton("score", made, "-d", "cases.yaml", "-c", "baton.yaml")
    assert (missing.code, "not an evaluation: it has no evaluation.json" in missing.err) == (
        2,
        True,
    )


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ["report", "{missing}"],
            "not an evaluation: it has no evaluation.json",
        ),
        (["report", "nosuch://bucket/one"], "nosuch://bucket/one: cannot be read: Protocol not"),
        (["compare", "{missing}", "{missing}"], "not an evaluation"),
        (["show", "{missing}"], "recordings at an address are read only by `baton score`"),
        (["issues", "{missing}"], "recordings at an address are read only by `baton score`"),
        (["eval", "--only-failed", "{missing}"], "not an evaluation"),
        (["eval", "--resume", "{missing}"], "is resumed in its local folder"),
        (["score", "x.jsonl", "--out", "nosuch://bucket"], "nosuch://bucket: cannot be read"),
        (["push", "one", "--out", "{missing}", "--server", "http://localhost"], "no --server"),
        (["push", "one", "--out", "elsewhere"], "has to be an address"),
        (["push", "{missing}", "--out", "{missing}"], "not an evaluation"),
        (["push", "{missing}"], "recordings at an address are read only by `baton score`"),
    ],
)
def test_a_wrong_address_is_one_clear_message(
    baton: Baton, tmp_path: Path, words: list[str], says: str
) -> None:
    (tmp_path / "x.jsonl").write_bytes(msgspec.json.encode(passed_on("c", "billing")))
    outcome = baton(*(word.format(missing=f"file://{tmp_path}/none") for word in words))
    assert (outcome.code, says in outcome.err) == (2, True), outcome.err
    assert not (tmp_path / ".baton").exists()


def test_what_may_not_be_read_or_is_too_large_is_refused(
    baton: Baton, tmp_path: Path, storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = played(tmp_path, "one")
    baton("push", made, "--out", storage.address)
    monkeypatch.setenv("BATON_MAX_SPAN_FILE_BYTES", "4000")
    large = baton("report", f"{storage.address}/one")
    assert (large.code, f"{storage.address}/one/bodies.jsonl" in large.err) == (2, True)
    monkeypatch.delenv("BATON_MAX_SPAN_FILE_BYTES")
    storage.secret = "bodies.jsonl"
    refused = baton("report", f"{storage.address}/one")
    assert refused.code == 2
    assert f"{storage.address}/one: cannot be read: " in refused.err
    assert "AccessControlException" in refused.err


def test_a_damaged_or_incomplete_evaluation_is_named_by_its_address(
    baton: Baton, tmp_path: Path
) -> None:
    made = played(tmp_path, "one")
    bodies = (made / "bodies.jsonl").read_bytes()
    (made / "bodies.jsonl").write_bytes(bodies.replace(b"weather", b"billing"))
    changed = baton("baseline", "set", f"file://{made}")
    assert changed.code == 3
    assert f"baton: file://{made}: damaged: " in changed.err
    assert "has changed since it was written" in changed.err
    assert baton("report", f"file://{made}").code == 3
    (made / "bodies.jsonl").unlink()
    missing = baton("report", f"file://{made}")
    assert missing.code == 3
    assert f"file://{made}/bodies.jsonl: is missing" in missing.err


def test_a_failed_upload_loses_nothing_and_is_repeated_by_the_printed_command(
    baton: Baton, tmp_path: Path, storage: Storage
) -> None:
    storage.read_only = "index.jsonl"
    code, err, made = score_two(baton, tmp_path, f"{storage.address}/team")
    local = made.relative_to(tmp_path)
    command = f"baton push {local} --out {storage.address}/team"
    assert code == 3
    assert "the evaluation was not uploaded: " in err
    assert f"it is in {local}: `{command}`" in err
    assert baton("report", made).code == 1
    assert "not an evaluation" in baton("report", f"{storage.address}/team/{made.name}").err
    storage.read_only = None
    again = baton(*command.split()[1:])
    assert again.code == 0, again.err
    assert baton("report", f"{storage.address}/team/{made.name}").code == 1


def test_another_evaluation_is_not_overwritten_and_an_earlier_state_is(
    baton: Baton, tmp_path: Path, storage: Storage
) -> None:
    made, other = played(tmp_path, "one"), played(tmp_path, "two")
    for name in ("evaluation.json", "index.jsonl", "bodies.jsonl"):
        storage.files[f"/team/one/{name}"] = (other / name).read_bytes()
    storage.files["/team/one/index.jsonl"] = b'{"something": "else"}\n'
    refused = baton("push", made, "--out", f"{storage.address}/team")
    assert refused.code == 3
    assert f"{storage.address}/team/one: another evaluation has this address" in refused.err
    assert storage.written == []
    # The same evaluation when it was interrupted: its index has a line less.
    lines = (made / "index.jsonl").read_bytes().splitlines(keepends=True)
    storage.files["/team/one/index.jsonl"] = lines[0]
    assert baton("push", made, "--out", f"{storage.address}/team").code == 0
    assert storage.files["/team/one/index.jsonl"] == b"".join(lines)
    written = list(storage.written)
    assert baton("push", made, "--out", f"{storage.address}/team").code == 0
    assert storage.written == written


def test_messages_mask_what_signs_an_address() -> None:
    signed = "s3://key:secret@bucket/one and https://host/one?X-Amz-Signature=abc: refused"
    assert shown_address(signed) == "s3://***@bucket/one and https://host/one?***: refused"


@pytest.mark.heavy
def test_a_process_removes_its_copies_when_it_ends(tmp_path: Path) -> None:
    made = played(tmp_path, "one")
    (tmp_path / "tmp").mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "baton", "report", f"file://{made}", "-q"],
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.split()[-1]) == (1, f"file://{made}")
    assert list((tmp_path / "tmp").iterdir()) == []

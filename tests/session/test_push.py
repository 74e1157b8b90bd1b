"""Packing recordings for a server."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import time
from pathlib import Path

import pytest
from tests.conftest import Baton

from baton.model import InputError, Trace
from baton.readers import load_traces
from baton.session.push import Package, pack


def held(package: Package) -> dict[str, bytes]:
    """Return the files of a package."""
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(package.data))) as archive:
        members = {}
        for entry in archive:
            file = archive.extractfile(entry)
            assert file is not None
            members[entry.name] = file.read()
        return members


def test_a_transcript_goes_with_its_sub_agents(tmp_path: Path) -> None:
    (tmp_path / "s1.jsonl").write_text("{}\n")
    (tmp_path / "other.jsonl").write_text("{}\n")
    below = tmp_path / "s1" / "subagents"
    below.mkdir(parents=True)
    (below / "agent-1.jsonl").write_text("[]\n")
    (package,) = pack([tmp_path / "s1.jsonl"])
    assert held(package) == {"s1.jsonl": b"{}\n", "s1/subagents/agent-1.jsonl": b"[]\n"}
    assert (package.name, package.files) == ("s1.jsonl", 2)


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text("{}")
    (first,) = pack([file])
    os.utime(file, (time.time() + 10, time.time() + 10))
    file.chmod(0o600)
    assert list(pack([file])) == [first]


def test_an_evaluation_goes_with_what_its_recordings_hold(
    baton: Baton, recordings: Path, tmp_path: Path
) -> None:
    run = recordings / "support_desk" / "refund.sse"
    baton("score", run, "--out", "scored")
    (folder,) = (tmp_path / "scored").iterdir()
    ((name, lines),) = held(next(pack([folder]))).items()
    (tmp_path / name).write_bytes(lines)

    def without_place(trace: Trace) -> Trace:
        trace.source.location = ""
        return trace

    read = [without_place(trace) for trace in load_traces(tmp_path / name)]
    assert read == [without_place(trace) for trace in load_traces(run)]


def test_what_leads_out_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text("{}")
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "run.json").symlink_to(tmp_path / "secret.json")
    with pytest.raises(InputError, match="leads out of its folder"):
        list(pack([folder]))


@pytest.mark.parametrize(("name", "message"), [("gone", "no such file"), ("empty", "is empty")])
def test_nothing_to_pack_is_an_error(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=message):
        list(pack([tmp_path / name]))


def test_what_holds_no_trace_is_not_sent(baton: Baton, tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "text.txt").write_text("hello")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "cases.yaml").write_text("cases:\n- {id: a, input: hi}\n")
    paths = [tmp_path / name for name in ("empty.json", "text.txt", "folder")]
    done = baton("push", *paths, "--server", "http://127.0.0.1:9")
    assert done.code == 2
    assert "empty.json: is empty" in done.err
    assert "text.txt: contains no trace" in done.err
    assert f"no trace in {tmp_path / 'folder'}" in done.err
    assert "cannot connect" not in done.err


def test_pushing_nothing_is_an_error(baton: Baton) -> None:
    done = baton("push", "--server", "http://127.0.0.1:9")
    assert done.code == 2
    assert "name the recordings to send" in done.err

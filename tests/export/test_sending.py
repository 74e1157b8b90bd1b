"""`baton record --server` and `baton.otel.send`: what a program does goes to a server."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from tests.cli.test_record import SPANS, shape
from tests.conftest import Baton

from baton.server.otlp_bodies import status

from .conftest import Answer, Collector


def received(collector: Collector, file: Path) -> None:
    """Write the spans that came into a file."""
    bodies = [gzip.decompress(sent.body) for sent in collector.sent if sent.path == "/v1/traces"]
    file.write_bytes(b"".join(bodies))


def record(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "baton", "record", *options, "--", sys.executable, "app.py"]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=120, check=False,
        env=os.environ | {"BATON_API_KEY": "bk_secret"},
    )  # fmt: skip


def test_a_server_gets_what_a_file_would(collector: Collector, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SPANS)
    done = record(tmp_path, "--server", collector.url, "--project", "support")
    assert done.returncode == 0, done.stderr
    assert f"sent to {collector.url}" in done.stderr
    assert not (tmp_path / ".baton").exists()
    headers = collector.sent[0].headers
    assert headers["authorization"] == "Bearer bk_secret"
    assert headers["x-baton-project"] == "support"
    received(collector, tmp_path / "sent.pb")
    record(tmp_path, "-o", "file.otlp.jsonl")
    assert shape(tmp_path / "sent.pb") == shape(tmp_path / "file.otlp.jsonl")


def test_a_program_sends_by_itself(collector: Collector, tmp_path: Path) -> None:
    line = f"from baton.otel import send\nsend({collector.url!r}, key='bk_own')\n"
    (tmp_path / "app.py").write_text(line + SPANS)
    subprocess.run([sys.executable, "app.py"], cwd=tmp_path, check=True, timeout=60)
    assert collector.sent[0].headers["authorization"] == "Bearer bk_own"
    received(collector, tmp_path / "sent.pb")
    (turn,) = shape(tmp_path / "sent.pb")["turns"]
    assert [run["agent"] for run in turn["runs"]] == ["desk"]


def test_a_server_that_is_down_does_not_end_the_program(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SPANS + "print('done')\n")
    done = record(tmp_path, "--server", "http://127.0.0.1:9")
    assert (done.returncode, done.stdout) == (0, "done\n")
    assert "nothing was sent to http://127.0.0.1:9" in done.stderr


def test_what_a_server_refuses_is_reported_with_its_reason(
    collector: Collector, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(SPANS)
    collector.then = Answer(404, b'{"error": "there is no project `nope`"}')
    done = record(tmp_path, "--server", collector.url, "--project", "nope")
    assert done.returncode == 0
    assert "the server refused what was sent (404): there is no project `nope`" in done.stderr
    assert "note: sent to" not in done.stderr


def test_a_refusal_in_the_form_of_otlp_is_reported_with_its_reason(
    collector: Collector, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(SPANS)
    refusal = status("protobuf", 5, "there is no project `nope`")
    collector.then = Answer(404, refusal, {"Content-Type": "application/x-protobuf"})
    done = record(tmp_path, "--server", collector.url, "--project", "nope")
    assert "the server refused what was sent (404): there is no project `nope`" in done.stderr


def test_a_program_without_a_name_for_its_service_gets_its_own(
    collector: Collector, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(SPANS)
    record(tmp_path, "--server", collector.url)
    assert services(collector) == {"app"}


def test_the_name_that_a_program_or_its_environment_gives_its_service_stays(
    collector: Collector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app.py").write_text(SPANS)
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=a,service.name=desk")
    record(tmp_path, "--server", collector.url)
    assert services(collector) == {"desk"}
    monkeypatch.delenv("OTEL_RESOURCE_ATTRIBUTES")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "support")
    collector.sent.clear()
    record(tmp_path, "--server", collector.url)
    assert services(collector) == {"support"}


def services(collector: Collector) -> set[str]:
    """Return the names of the services whose spans came."""
    names = set()
    for sent in collector.sent:
        if sent.path == "/v1/traces":
            request = ExportTraceServiceRequest.FromString(gzip.decompress(sent.body))
            names |= {
                each.value.string_value
                for group in request.resource_spans
                for each in group.resource.attributes
                if each.key == "service.name"
            }
    return names


def test_an_address_that_is_none_is_refused_before_the_program_runs(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("print('started')")
    done = record(tmp_path, "--server", "localhost:4318")
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        "--server: `localhost:4318` is not a valid address: write http://localhost:4318"
        in done.stderr
    )


def test_a_file_and_a_server_exclude_each_other(baton: Baton) -> None:
    done = baton("record", "--server", "http://127.0.0.1:9", "-o", "f.jsonl", "--", "true")
    assert done.code == 2
    assert "--server and --output: give one of them" in done.err

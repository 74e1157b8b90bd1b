"""What is read without the libraries of the extra."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from baton.plugins.origin import install, requirement

READ = """
import sys
for name in ("google.protobuf", "opentelemetry.proto", "zstandard", "compression"):
    sys.modules[name] = None
from baton.model import InputError
from baton.readers.otlp.wire.read import read_conversations
from baton.readers.otlp.wire.sniff import is_otlp
try:
    print(is_otlp(sys.argv[1]), len(list(read_conversations(sys.argv[1]))))
except InputError as error:
    print(error)
"""


def _read(path: Path) -> str:
    command = [sys.executable, "-c", READ, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_json_and_gzip_need_no_library(wire: Any) -> None:
    line = wire.line(wire.span("a"))
    assert _read(wire.file(line)) == "True 1"
    assert _read(wire.file(wire.gzip(line))) == "True 1"


@pytest.mark.parametrize("library", ["protobuf", "zstd"])
def test_what_needs_a_library_says_which_extra_brings_it(wire: Any, library: str) -> None:
    data = wire.protobuf(wire.export([wire.span("a")]))
    path = wire.file(wire.zstd(data) if library == "zstd" else data)
    told = _read(path)
    assert told == f"{path}: {library} needs a library: {install(requirement('otel'))}"

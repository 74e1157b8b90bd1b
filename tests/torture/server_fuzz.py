"""Sends broken bodies to a server: it refuses them, continues, and stays small.

``python -m tests.torture.server_fuzz`` sends for a minute over HTTP and gRPC (``--share 0.1``: for
six seconds). No answer may be a 5xx but 503, no process of the server may end or become large, and
what is whole has to be read afterwards. It exits with 1 when anything of that is not so.
"""

from __future__ import annotations

import argparse
import gzip
import http.client
import io
import json
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import grpc
import zstandard
from tests.server.sending import logs, spans

from .server_kills import export

SOURCES = Path(__file__).parent.parent.parent / "src"
SECONDS = 60.0
_MOST_MIB = 700
"""Of a process: what bodies in flight may take, and room around it."""
_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda body: body,
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
}
_FORMS = ("application/x-protobuf", "application/json", "text/plain", "application/octet-stream")
_PATHS = ("/v1/traces", "/v1/logs", "/v1/metrics", "/api/recordings?name=a.json")
_SERVICES = (
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
)


class Bodies:
    """Bodies that are whole, and ways to break them."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._whole = [
            spans(5).SerializeToString(),
            logs(5).SerializeToString(),
            _as_json(),
            _archive("zip"),
            _archive("tar"),
        ]
        self._ways = (self._flip, self._cut, self._splice, self._random, self._deep, self._odd)

    def next(self) -> bytes:
        """Return a body, broken some times over, or once in a while whole."""
        body = self._dice.choice(self._whole)
        for _ in range(self._dice.choice((0, 1, 1, 1, 2, 5))):
            body = self._dice.choice(self._ways)(body)
        return body

    def _flip(self, body: bytes) -> bytes:
        broken = bytearray(body)
        for _ in range(self._dice.randint(1, 8)):
            if broken:
                broken[self._dice.randrange(len(broken))] = self._dice.randrange(256)
        return bytes(broken)

    def _cut(self, body: bytes) -> bytes:
        return body[: self._dice.randrange(len(body) + 1)]

    def _splice(self, body: bytes) -> bytes:
        at, other = self._dice.randrange(len(body) + 1), self._dice.choice(self._whole)
        return body[:at] + other[self._dice.randrange(len(other)) :] + body[at:]

    def _random(self, body: bytes) -> bytes:
        return self._dice.randbytes(min(len(body), 3000))

    def _deep(self, body: bytes) -> bytes:
        depth = self._dice.choice((50, 500, 5_000, 100_000))
        opening = self._dice.choice((b"[", b'{"a":', b'{"resourceSpans":[', b"\x0a\x7f"))
        return opening * depth + body[:100]

    def _odd(self, body: bytes) -> bytes:
        swaps = (
            (b'"1700', b'"9999999999999999999'), (b"traceId", b"\xff\xfeId"), (b'"', b"'"),
            (b"[", b"{"), (b"spans", b"spans\\u0000"), (b": 1", b": 1e999"), (b"0", b"NaN"),
            (b"chat", b"\\ud800"), (b"1", b"-1"), (b"{}", b"null"),
        )  # fmt: skip
        old, new = self._dice.choice(swaps)
        return body.replace(old, new, self._dice.choice((1, -1)))


def _as_json() -> bytes:
    span = {
        "traceId": "0" * 31 + "7", "spanId": "0" * 15 + "1", "name": "chat",
        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000000000001",
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}},
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": 1}},
            {"key": "list", "value": {"arrayValue": {"values": [{"doubleValue": 0.5}]}}},
        ],
    }  # fmt: skip
    return json.dumps(
        {"resourceSpans": [{"resource": {}, "scopeSpans": [{"spans": [span]}]}]}
    ).encode()


def _archive(kind: str) -> bytes:
    packed = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(packed, "w") as zipped:
            zipped.writestr("a/trace.json", _as_json())
    else:
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            info = tarfile.TarInfo("a/trace.json")
            info.size = len(_as_json())
            tar.addfile(info, io.BytesIO(_as_json()))
    return packed.getvalue()


class Fuzzer(threading.Thread):
    """Sends broken bodies until the time is over."""

    def __init__(self, port: int, grpc_port: int, seed: str, until: float) -> None:
        super().__init__(daemon=True)
        self._dice = random.Random(seed)
        self._bodies = Bodies(self._dice)
        self._port, self._until = port, until
        # A channel of its own: others of this process would share the connection.
        options = [("grpc.use_local_subchannel_pool", 1)]
        self._channel = grpc.insecure_channel(f"127.0.0.1:{grpc_port}", options)
        self.answers: Counter[str] = Counter()
        self.faults: list[str] = []

    def run(self) -> None:
        """Send."""
        while time.monotonic() < self._until:
            body = self._bodies.next()
            try:
                if self._dice.random() < 0.7:
                    self._over_http(body)
                else:
                    self._over_grpc(body)
            except Exception as error:  # noqa: BLE001 - whatever goes wrong is a finding
                self.faults.append(f"{type(error).__name__}: {error} for {body[:60]!r}")
        self._channel.close()

    def _over_http(self, body: bytes) -> None:
        encoding = self._dice.choice(("", "", "gzip", "zstd"))
        honest = self._dice.random() < 0.8
        sent = _PACKERS[encoding](body) if honest else body
        if self._dice.random() < 0.1:
            sent = sent[: self._dice.randrange(len(sent) + 1)]
        headers = {"Content-Type": self._dice.choice(_FORMS)}
        if encoding:
            headers["Content-Encoding"] = self._dice.choice((encoding, encoding, "br", "x" * 50))
        path = self._dice.choice(_PATHS)
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request("POST", path, sent, headers)
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        self.answers[f"HTTP {answer.status}"] += 1
        if answer.status >= 500 and answer.status != 503:
            self.faults.append(f"{answer.status} {said[:200]!r} for {path} {headers} {sent[:60]!r}")

    def _over_grpc(self, body: bytes) -> None:
        call = self._channel.unary_unary(self._dice.choice(_SERVICES))
        compression = self._dice.choice(list(grpc.Compression))
        try:
            call(body, timeout=60, compression=compression)
            code = grpc.StatusCode.OK
        except grpc.RpcError as error:
            code = error.code()
            if code in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN):
                self.faults.append(f"gRPC {code.name} {error.details()} for {body[:60]!r}")
        self.answers[f"gRPC {code.name}"] += 1


def _peak(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _children(pid: int) -> list[int]:
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in files for child in file.read_text().split()]


def fuzz(seconds: float, seed: int, folder: Path) -> tuple[Counter[str], list[str], list[str]]:
    """Send for so long; return answers by status, figures of memory, and faults."""
    (folder / "server.yaml").write_text("quiet: 0.2 s\n")
    words = ["serve", "server.yaml", "--port", "0", "--grpc-port", "0"]
    log = folder / "log"
    with log.open("wb") as written:
        server = subprocess.Popen(
            [sys.executable, "-m", "baton", *words], cwd=folder, stderr=written,
            env={**os.environ, "PYTHONPATH": str(SOURCES)},
        )  # fmt: skip
    try:
        until = time.monotonic() + 60
        ports = None
        while ports is None:
            if time.monotonic() > until or server.poll() is not None:
                raise RuntimeError(f"it does not start: {log.read_text()}")
            ports = re.search(
                r"listening on http://[^:]+:(\d+).*grpc on port (\d+)", log.read_text(), re.DOTALL
            )
            time.sleep(0.05)
        port, grpc_port = int(ports[1]), int(ports[2])
        (reader,) = _children(server.pid)
        ending = time.monotonic() + seconds
        fuzzers = [Fuzzer(port, grpc_port, f"{seed} {n}", ending) for n in range(4)]
        for each in fuzzers:
            each.start()
        for each in fuzzers:
            each.join(seconds + 120)
        faults = [fault for each in fuzzers for fault in each.faults]
        faults += ["a request hangs" for each in fuzzers if each.is_alive()]
        faults += _reads(port)
        sizes = []
        if server.poll() is not None or _children(server.pid) != [reader]:
            faults.append(f"a process ended: {log.read_text()[-2000:]}")
        else:
            for name, pid in (("receiving", server.pid), ("reading", reader)):
                sizes.append(f"{name} {_peak(pid):.0f} MiB")
                if _peak(pid) > _MOST_MIB:
                    faults.append(f"the {name} process took {_peak(pid):.0f} MiB")
        if "Traceback" in log.read_text():
            faults.append(f"a traceback: {log.read_text()[-3000:]}")
        answers = sum((each.answers for each in fuzzers), Counter[str]())
        return answers, sizes, faults
    finally:
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
            raise


def _reads(port: int) -> list[str]:
    """Send a whole trace, and wait until it is a conversation."""
    number = 0xABCDEF
    body = export([(number, 0), (number, 1)])
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("POST", "/v1/traces", body, {"Content-Type": "application/x-protobuf"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            return [f"a whole body is answered with {answer.status}"]
        until = time.monotonic() + 120
        while time.monotonic() < until:
            connection.request("GET", f"/api/v1/conversations?filter=conversation:{number:032x}")
            said = json.loads(connection.getresponse().read())
            if said.get("items"):
                return []
            time.sleep(0.2)
        return ["what is whole was not read within two minutes"]


def main(arguments: list[str] | None = None) -> int:
    """Send, print a summary, and return 1 when anything is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.server_fuzz")
    parser.add_argument("--share", type=float, default=1.0, help="of a minute")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    asked = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="baton-server-fuzz-") as folder:
        answers, sizes, faults = fuzz(SECONDS * asked.share, asked.seed, Path(folder))
    listed = ", ".join(f"{what} {times:,}" for what, times in sorted(answers.items()))
    print(f"{answers.total():,} requests: {listed}; at most {', '.join(sizes)}")
    for fault in faults[:20]:
        print(f"  {fault}")
    print(f"{len(faults)} faults, seed {asked.seed}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

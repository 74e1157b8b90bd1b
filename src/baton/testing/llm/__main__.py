"""The scripted LLM from the command line: ``python -m baton.testing.llm SCRIPT.yaml``."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

import msgspec

from baton.model import InputError, counted
from baton.safe_output import safe_output

from .exchange import ScriptError
from .server import LlmServer, llm_server

# Seconds between two looks at whether the parent process still runs, and at the log.
_LOOK_AGAIN = 0.2
_WRONG_INPUT = 2
_AWS = {
    "AWS_ACCESS_KEY_ID": "scripted",
    "AWS_SECRET_ACCESS_KEY": "scripted",
    "AWS_DEFAULT_REGION": "us-east-1",
}
_EPILOG = """\
Without COMMAND, the first line of the output is the address, and the server runs until Ctrl-C or
until the program that started it ends. With COMMAND, it runs until COMMAND ends, and environment
variables tell the SDKs of OpenAI, Anthropic, Google and AWS its address; so does BATON_LLM_URL.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m baton.testing.llm",
        usage="%(prog)s SCRIPT [--port PORT] [--log FILE] [-- COMMAND ...]",
        description="Run a scripted LLM on loopback.",
        epilog=_EPILOG,
    )
    parser.add_argument("script", type=Path, help="the YAML script with its answers")
    parser.add_argument("--port", type=int, default=0, help="0, the default: any free port")
    parser.add_argument(
        "--log", type=Path, metavar="FILE", help="write requests to this file, as JSON lines"
    )
    words = sys.argv[1:] if arguments is None else arguments
    at = words.index("--") if "--" in words else len(words)
    options, command = parser.parse_args(words[:at]), words[at + 1 :]
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) != signal.SIG_IGN:
            signal.signal(getattr(signal, name), _end)
    with safe_output():
        code = 0
        try:
            with (
                llm_server(options.script, port=options.port) as server,
                _Log(options.log, server) as log,
            ):
                code = _beside(command, server) if command else _until_the_end(server, log)
        except InputError as error:
            print(error, file=sys.stderr)
            return _WRONG_INPUT
        except ScriptError as error:
            print(f"error: {error}", file=sys.stderr)
            return code or 1
        return code


class _Log:
    """A file of requests, written while the server runs."""

    def __init__(self, path: Path | None, server: LlmServer) -> None:
        self._path = path
        self._server = server
        self._file: IO[bytes] | None = None
        self._written = 0

    def __enter__(self) -> _Log:
        self._file = self._path.open("wb") if self._path is not None else None
        return self

    def __exit__(self, *_: object) -> None:
        self.write()
        if self._file is not None:
            self._file.close()

    def write(self) -> None:
        """Write the new requests."""
        if self._file is None:
            return
        new = self._server.requests[self._written :]
        self._written += len(new)
        self._file.writelines(msgspec.json.encode(request) + b"\n" for request in new)
        self._file.flush()


def _until_the_end(server: LlmServer, log: _Log) -> int:
    parent = os.getppid()  # before the line below, because the parent may end after reading it
    print(server.url, flush=True)
    try:
        while os.getppid() == parent:
            time.sleep(_LOOK_AGAIN)
            log.write()
    except KeyboardInterrupt:
        pass
    return 0


def _beside(command: Sequence[str], server: LlmServer) -> int:
    """Run a command while the server runs; return its exit code."""
    try:
        process = subprocess.Popen(command, env=environment(server, os.environ))  # noqa: S603
    except OSError as error:
        raise InputError(f"`{command[0]}` cannot be run: {error.strerror}") from None
    try:
        return process.wait()
    except KeyboardInterrupt:
        process.terminate()
        return process.wait()
    finally:
        most = f"at most {server.max_in_flight} at once"
        print(
            f"{counted(len(server.requests), 'request')} to the scripted LLM, {most}",
            file=sys.stderr,
        )


def environment(server: LlmServer, own: Mapping[str, str]) -> dict[str, str]:
    """Return ``own`` with the environment variables that make SDKs find the server.

    The keys in it are not secrets. Existing AWS keys are kept, because other services need them.
    They never leave the machine: requests are only signed with them.
    """
    missing = {name: value for name, value in _AWS.items() if name not in own}
    return {
        **own,
        **missing,
        "BATON_LLM_URL": server.url,
        "OPENAI_BASE_URL": server.base_url("openai"),
        "OPENAI_API_KEY": "scripted",
        "ANTHROPIC_BASE_URL": server.base_url("anthropic"),
        "ANTHROPIC_API_KEY": "scripted",
        "GOOGLE_GEMINI_BASE_URL": server.base_url("google"),
        "GOOGLE_API_KEY": "scripted",
        "MISTRAL_API_KEY": "scripted",
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": server.base_url("bedrock"),
    }


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())

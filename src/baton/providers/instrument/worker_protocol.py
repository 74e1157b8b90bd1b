"""The messages between a worker process and the process that started it."""

from __future__ import annotations

from typing import IO, Any, Literal

import msgspec

from baton.http.rate_limits import Busy
from baton.model import Case, Problem, Trace
from baton.providers.base_provider import HookOptions
from baton.readers import Catalog
from baton.stand_ins import Answer as StandInAnswer

CLEAN_UP = 2.0
"""Seconds that a cancelled case has to end by itself."""
LONGEST_MESSAGE = 256 << 20
"""Maximum bytes of a message, such as a trace: 1,000 model calls with prompts of 100 kB fit."""
_LENGTH = 8
"""Bytes before each message, which state its length."""

Workers = Literal["process", "inline"]
"""Where the program runs."""


class Setup(msgspec.Struct, kw_only=True, tag="setup"):
    """The program, and how it is instrumented. ``folder`` is where to search for it.

    ``agents`` are the definitions of the config, ``texts`` the changed components, ``prompts``
    files of texts, and ``prompts_to`` the function that gets the changed ones. A ``plain`` program
    is not instrumented: its return value is the trace. ``tracebacks`` prints tracebacks of its
    exceptions; ``tells_libraries`` lets the worker report what the program imported.
    """

    target: str
    folder: str
    agents: Catalog = msgspec.field(default_factory=dict)
    texts: dict[str, str] = msgspec.field(default_factory=dict)
    prompts: dict[str, str] = msgspec.field(default_factory=dict)
    prompts_to: str | None = None
    hooks: HookOptions | None = None
    instrumentors: Literal["auto"] | list[str] = "auto"
    plain: bool = False
    tracebacks: bool = False
    tells_libraries: bool = False


class Play(msgspec.Struct, tag="play"):
    """Play a case. ``llm``: an LLM may answer for tools, see `AskLlm`."""

    case: Case
    llm: bool = False


class LlmSays(msgspec.Struct, tag="llm says"):
    """An LLM's answer for a tool, or the reason why there is none."""

    number: int
    answer: StandInAnswer | None = None
    problem: str | None = None


class Tell(msgspec.Struct, tag="tell"):
    """Return which texts of the program can be changed; sent while no case is in play."""


class TextsAndTools(msgspec.Struct, tag="texts and tools"):
    """The texts by name, and the names of tools; or an error."""

    texts: dict[str, str] = msgspec.field(default_factory=dict)
    tools: list[str] = msgspec.field(default_factory=list)
    problem: str | None = None


class Cut(msgspec.Struct, tag="cut"):
    """Cancel the case in play, and return its trace so far."""


class Ready(msgspec.Struct, tag="ready"):
    """The program is loaded; ``libraries`` are modules that a fork server may import for others."""

    libraries: list[str] = []


class Refused(msgspec.Struct, tag="refused"):
    """The program cannot be loaded."""

    problems: list[Problem]


class Played(msgspec.Struct, tag="played"):
    """The trace of a case, or of a cancelled case so far.

    ``problem`` says why it is an error, and ``busy`` that a server refused a request.
    """

    trace: Trace | None
    problem: str | None = None
    busy: Busy | None = None


class AskLlm(msgspec.Struct, tag="ask llm"):
    """Ask for an LLM's answer for a tool while a case is played; ``question`` is plain data.

    The process that started the worker has the judges' client with cache, prices and limits.
    """

    number: int
    question: Any


Order = Setup | Play | Tell | Cut | LlmSays
Answer = Ready | Refused | Played | TextsAndTools | AskLlm


class TooLong(ValueError):  # noqa: N818 - says what happened
    """A message is longer than the limit of both sides."""

    def __init__(self) -> None:
        super().__init__(f"it is longer than {LONGEST_MESSAGE >> 20} MiB")


def send(pipe: IO[bytes], message: Order | Answer) -> None:
    """Write a message.

    Raises:
        OSError: the other side has ended.
        TooLong: the message is too long; nothing was written.
    """
    data = msgspec.json.encode(message)
    if len(data) > LONGEST_MESSAGE:
        raise TooLong
    pipe.write(len(data).to_bytes(_LENGTH, "big") + data)
    pipe.flush()


def receive(pipe: IO[bytes], kinds: Any) -> Any:
    """Read a message of one of the kinds; ``None`` when the other side has ended.

    Raises:
        TooLong: the message is too long; later messages cannot be read.
    """
    head = pipe.read(_LENGTH)
    if len(head) < _LENGTH:
        return None
    length = int.from_bytes(head, "big")
    if length > LONGEST_MESSAGE:
        raise TooLong
    data = pipe.read(length)
    return None if len(data) < length else msgspec.json.decode(data, type=kinds)

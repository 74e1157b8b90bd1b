"""The header of an evaluation folder, ``evaluation.json``: what was evaluated, how, and the counts.

It is written while the evaluation runs, and again with its results at the end. `write_header` and
`read_header` are the only encoder and decoder. Folders of Baton 0.1 say no ``version``, and other
programs may leave out fields: all have a default.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from baton.model import (
    AgentCard,
    AgentScores,
    EfficiencySums,
    EvaluatorCounts,
    GateResult,
    InputError,
    Problem,
    Provenance,
    RoutingCell,
    RunOptions,
    Status,
)
from baton.model.mask_known_secrets import mask_json
from baton.model.prices import ModelPrice
from baton.model.redact import Redaction, redaction_of

from .own_files import open_regular, write_whole

HEADER = "evaluation.json"
UNFINISHED = ("running", "interrupted")
VERSION = 2
"""The version of the files. Those of Baton 0.1 are version 1, without saying so."""
BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding raises for a text that is not valid, or too deep."""

Size = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
# Reports loop over repeats (pass@k), and a case is never played a hundred thousand times.
_Repeats = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
_Version = Annotated[int, msgspec.Meta(ge=1)]


class Request(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The arguments and options that say what to evaluate.

    ``config`` was given in addition to an agent, or as an option. ``cases`` are those chosen by
    `--only-failed`. ``variant`` is the name of one of the config's providers.
    """

    config: str | None = None
    target: list[str] = msgspec.field(default_factory=list)
    dataset: list[str] = msgspec.field(default_factory=list)
    evaluators: list[str] = msgspec.field(default_factory=list)
    criteria: str | None = None
    agents: str | None = None
    app: str | None = None
    filters: list[str] = msgspec.field(default_factory=list)
    keyword: str | None = None
    limit: int | None = None
    cases: list[str] | None = None
    variant: str | None = None
    judge: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether it has no options."""
        return self == Request(judge=self.judge)


class Basis(msgspec.Struct, kw_only=True):
    """What results depend on: hashes of files, cases and changed texts, versions of evaluators."""

    cases: str
    texts: dict[str, str] = msgspec.field(default_factory=dict)
    files: dict[str, str] = msgspec.field(default_factory=dict)
    evaluators: dict[str, str] = msgspec.field(default_factory=dict)


class Contents(msgspec.Struct, kw_only=True):
    """The contents of a finished folder: index lines, bytes of bodies, digest of the index."""

    rows: Size
    bytes: Size
    sha256: str


class Header(msgspec.Struct, kw_only=True):
    """The content of ``evaluation.json``.

    ``versions`` are those of Baton. ``provider`` is the spec of an agent that was named directly,
    ``run``, ``request`` and ``basis`` are what an evaluation is resumed by; an evaluation of
    recordings has their paths (``traces``) and those of agent ``definitions`` instead. ``planned``
    is the number of results it should have. ``config`` and ``judge`` are as resolved, without
    secrets. ``agents`` are the sets of agent cards that bodies refer to by their place. ``timings``
    has the only clock times. ``contents`` is missing until the end.
    """

    version: _Version = 1
    id: str = ""
    name: str = ""
    status: str = ""
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    provider: dict[str, Any] | None = None
    variant: str | None = None
    run: RunOptions | None = None
    request: Request | None = None
    basis: Basis | None = None
    traces: list[str] = msgspec.field(default_factory=list)
    definitions: str | None = None
    dataset: list[str] = msgspec.field(default_factory=list)
    pass_rule: Literal["all"] | dict[str, float] = "all"
    config: dict[str, Any] | None = None
    redact: str | dict[str, Any] | None = None
    judge: dict[str, Any] | None = None
    prices: dict[str, ModelPrice] | None = None
    provenance: Provenance | None = None
    evaluator_versions: dict[str, str] = msgspec.field(default_factory=dict)
    notices: list[str] = msgspec.field(default_factory=list)
    repeats: _Repeats = 1
    planned: Size | None = None
    agents: list[dict[str, AgentCard]] = msgspec.field(default_factory=list)
    cases: dict[Status, Size] = msgspec.field(default_factory=dict)
    evaluators: list[EvaluatorCounts] = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)
    routing: list[RoutingCell] = msgspec.field(default_factory=list)
    efficiency: EfficiencySums = msgspec.field(default_factory=EfficiencySums)
    by_agent: list[AgentScores] = msgspec.field(default_factory=list)
    gate: list[GateResult] = msgspec.field(default_factory=list)
    contents: Contents | None = None
    timings: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def redaction(self) -> Redaction:
        """The redaction of its traces; raises InputError if the field is not valid."""
        return redaction_of(self.redact)


_ENCODER, _DECODER = msgspec.json.Encoder(), msgspec.json.Decoder(Header)


def write_header(folder: Path, header: Header, *, sync: bool) -> None:
    """Write ``evaluation.json`` without secrets; ``sync`` waits until it is on the disk.

    Raises:
        OSError: it cannot be written.
    """
    text = msgspec.json.format(mask_json(_ENCODER.encode(header)), indent=2)
    write_whole(folder / HEADER, text + b"\n", sync=sync)


def read_header(folder: Path) -> Header:
    """Read ``evaluation.json``.

    Raises:
        InputError: there is none, or it is not valid.
    """
    file = folder / HEADER
    if not folder.is_dir():
        why = "it is a file" if folder.exists() else "there is no such folder"
        raise InputError(Problem(file=str(folder), message=f"not an evaluation: {why}"))
    try:
        with open_regular(file) as stream:
            header = _DECODER.decode(stream.read())
    except (FileNotFoundError, NotADirectoryError):
        message = f"not an evaluation: it has no {HEADER}"
        raise InputError(Problem(file=str(folder), message=message)) from None
    except msgspec.ValidationError as error:
        raise InputError(Problem(file=str(file), message=str(error))) from None
    except BROKEN as error:
        raise damaged(file, f"is damaged, or is not the header of an evaluation: {error}") from None
    if header.version > VERSION:
        message = f"was written by a newer version of Baton (file version {header.version})"
        raise InputError(Problem(file=str(file), message=message))
    return header


def damaged(file: Path, *messages: str) -> InputError:
    """Return the error for a file of an evaluation that is damaged."""
    return InputError(Problem(file=str(file), message=each, damaged=True) for each in messages)

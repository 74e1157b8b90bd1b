"""Other sources of recordings (evaluation folders and servers), and what recordings cost."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import msgspec

from baton.formats.evaluation_folder import is_evaluation
from baton.formats.evaluation_header import read_header
from baton.formats.storage_addresses import is_address, of_server, place_of, shown_address
from baton.model import InputError, Problem, Trace
from baton.runner.costs import ModelPrice, fill_costs, read_prices
from baton.store import evaluation_at, holds_evaluation, read_evaluation, recordings_of

from .file_kinds import config_of
from .prepare import Note, PathLike
from .server_source import fetch, is_server


class Recordings(msgspec.Struct, frozen=True):
    """Files, folders and addresses to read, and datasets among them that are no recordings.

    ``agents`` are definitions that an evaluation was made with.
    """

    paths: list[str]
    exclude: list[Path]
    agents: Path | None = None


def with_copies(paths: Iterable[PathLike]) -> list[str]:
    """Replace addresses of evaluations (``s3://bucket/NAME``) by fetched copies.

    Servers and local paths are not changed.

    Raises:
        InputError: there is no evaluation at an address, it cannot be fetched, or a path is the
            store of a server.
    """
    listed = [os.fspath(each) for each in paths]
    for path in listed:
        _refuse_store(path)
    return [_copy(path) if _is_elsewhere(path) else path for path in listed]


def local_sources(paths: Iterable[PathLike], note: Note) -> list[str]:
    """Replace addresses of evaluations by fetched copies, and servers by files.

    Raises:
        InputError: there is no evaluation at an address, or a server refuses the request.
        ServerError: a server does not answer.
    """
    return [str(fetch(path, note)) if is_server(path) else path for path in with_copies(paths)]


def _refuse_store(path: str) -> None:
    """Raise InputError for the folder of a server, whose files only the server reads."""
    folder = Path(path)
    if not is_address(path) and all((folder / name).exists() for name in _STORE):
        message = (
            "is the store of a server, which only `baton serve` reads: start it, and name "
            "server://localhost, or server://localhost/PROJECT, in place of this folder"
        )
        raise InputError(Problem(file=path, message=message))


_STORE = ("inbox.db", "index.db")
"""The databases in every SQLite store of a server; see ``baton.server.store``."""


def _is_elsewhere(path: str) -> bool:
    return is_address(path) and not is_server(path)


def _copy(address: str) -> str:
    if any(mark in address for mark in "*?[") or not holds_evaluation(address):
        message = (
            "not an evaluation: recordings at an address are read only by `baton score`; copy them "
            f"to a folder{of_server(address)}"
        )
        raise InputError(Problem(file=shown_address(address), message=message))
    return str(evaluation_at(address))


def recordings_in(paths: Sequence[str], note: Note, *, addresses: bool = False) -> Recordings:
    """Replace evaluation folders and servers by recordings.

    With ``addresses``, those without an evaluation are kept; otherwise they are refused.
    Conversations of a server (``server://HOST``) are fetched into a file. The folder of played
    cases contains its traces, and is kept. The folder of scored recordings only names them, and is
    replaced by them. A folder is data: the files that it names are opened only if its seal shows
    that this user made it on this machine. Otherwise the user has to name the recordings.

    Raises:
        InputError: recordings that may not be opened or no longer exist, with what to name instead;
            or a server refuses the request or has no such conversation.
        ServerError: a server does not answer.
    """
    read, exclude, agents = list[str](), list[Path](), None
    for path in paths:
        if _is_elsewhere(path):
            if addresses and ("*" in path or not holds_evaluation(path)):
                read.append(path)
                continue
            path = _copy(path)  # noqa: PLW2901 - from here on it is a folder
        _refuse_store(path)
        folder = Path(path)
        if folder.suffix == ".py" and folder.is_file():
            message = (
                f"is a program, not a recording: `baton record -- python {path}` records it, and "
                f"`baton eval {path}:FUNCTION DATASET` plays it"
            )
            raise InputError(Problem(file=path, message=message))
        if is_server(path):
            read.append(str(fetch(path, note)))
            continue
        if not is_evaluation(folder) or not read_header(folder).traces:
            read.append(path)
            continue
        stored = read_evaluation(folder, partial=True)
        recordings, made_of = recordings_of(stored), stored.header.traces
        listed = ", ".join(made_of[:3]) + (", ..." if len(made_of) > 3 else "")
        if recordings.refused is not None:
            message = (
                f"contains no traces: it was made from {listed}, which is not opened, "
                "as this folder was created elsewhere or moved; if you trust them, name these "
                "recordings in place of the folder"
            )
            raise InputError(Problem(file=place_of(folder), message=message))
        if len(recordings.paths) < len(made_of):
            gone = [name for name in made_of if Path(name) not in recordings.paths]
            message = f"was made from {', '.join(gone[:3])}, which no longer exists"
            raise InputError(Problem(file=place_of(folder), message=message))
        note(f"{place_of(folder)}: reads the recordings it was made from: {listed}")
        read += map(str, recordings.paths)
        exclude += recordings.exclude
        agents = agents or recordings.agents
    return Recordings(read, exclude, agents)


PlainPrices = Mapping[str, Mapping[str, float]]


def pricing(
    config: PathLike | None = None, prices: PlainPrices | None = None
) -> Callable[[Trace], Trace]:
    """Return a function that adds costs to a trace; see :func:`baton.runner.costs.fill_costs`.

    Without a config and prices, a trace stays as it was recorded.

    Args:
        config: a config with ``prices:``, and maybe a provider that names the model.
        prices: USD per million tokens by model; go before those of the config. If it is empty and
            there is no config, the list of genai-prices is used if it is installed, and costs that
            were computed earlier stay.

    Raises:
        InputError: the config or a price has errors.
    """
    if config is None and prices is None:
        return lambda trace: trace
    if config is None and not prices:
        return lambda trace: trace if _was_priced(trace) else fill_costs(trace, {})
    known: dict[str, ModelPrice] = {}
    model = None
    if config is not None:
        plan = config_of(config, own_code=False).plan
        known |= plan.prices or {}
        model = plan.default_model
    if prices is not None:
        known |= read_prices(prices, "prices")
    return partial(fill_costs, prices=known, default_model=model)


def _was_priced(trace: Trace) -> bool:
    """Tell whether a trace has computed costs: in an evaluation they come from its own prices."""
    usages = [trace.usage, *(run.usage for turn in trace.turns for run in turn.runs)]
    return any(usage is not None and usage.cost_from == "prices" for usage in usages)

"""The traces behind an evaluation: those it keeps, and recorded ones read once more."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import msgspec

from baton.formats.own_files import naming
from baton.model import InputError, Trace, integrity_problems
from baton.readers import iter_traces
from baton.runner.recorded import repeat_of
from baton.store import IndexRow, StoredEvaluation
from baton.store.traces import recordings_of

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(Trace)
_ANYWHERE = ""
_Key = tuple[int, str, str | None]


class Found(NamedTuple):
    """A trace, and why there is none or what is to be known of it."""

    trace: Trace | None
    why: str | None = None


class Traces:
    """Gives the trace of each body.

    A folder of recorded traces only says where they lie: these are read once, all together (as
    one may be spread over several files), and kept in a temporary file until this is left. One is
    told by its id, where it lies, and its place: the repeat of its case, or without cases the
    order in which traces were read. Where the user named recordings that were moved, the place
    does not count.
    """

    def __init__(self, evaluation: StoredEvaluation) -> None:
        self._places: dict[_Key, tuple[int, int] | None] = {}
        self._spool = tempfile.TemporaryFile(prefix="baton-")  # noqa: SIM115 - closed at the exit
        self._has_cases = bool(evaluation.header.dataset)
        self._were_named = bool(evaluation.traces)
        self._why = "it could not be found again where it was read from"
        if evaluation.header.traces:
            self._read(evaluation)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def of(self, row: IndexRow, body: dict[str, Any]) -> Found:
        """Return the trace of a result, or why there is none."""
        if "trace" in body:
            return _sound(body["trace"])
        recorded = body.get("recorded")
        if recorded is None:
            return Found(None, "nothing was recorded")
        number = row.repeat if self._has_cases else row.position
        key = number, recorded["id"], recorded.get("location")
        if key not in self._places and self._were_named:
            key = number, recorded["id"], _ANYWHERE
        place = self._places.get(key)
        if place is not None:
            self._spool.seek(place[0])
            return Found(_DECODER.decode(self._spool.read(place[1])))
        if key in self._places:
            return Found(None, "several traces of this id were read from the same place")
        return Found(None, self._why)

    def _read(self, evaluation: StoredEvaluation) -> None:
        try:
            for order, trace in enumerate(_again(evaluation)):
                number = repeat_of(trace) if self._has_cases else order
                text = _ENCODER.encode(msgspec.structs.replace(trace, agents={}))
                place = self._spool.tell(), len(text)
                for location in (trace.source.location, _ANYWHERE):
                    key = number, trace.id, location
                    self._places[key] = None if key in self._places else place
                with naming(tempfile.gettempdir()):
                    self._spool.write(text)
        except (InputError, OSError) as error:
            self._why = f"it cannot be read again: {error}"


def _again(evaluation: StoredEvaluation) -> Iterator[Trace]:
    paths, exclude, agents, refused, _ = recordings_of(evaluation)
    if refused is not None:
        raise InputError(refused)
    if paths:
        yield from iter_traces(
            paths,
            agents=agents,
            exclude=exclude,
            on_problem=lambda _: None,
            redact=evaluation.header.redaction,
        )


def _sound(plain: dict[str, Any]) -> Found:
    """Return the trace that a body holds, when it is one that reports can draw."""
    try:
        trace = msgspec.convert(plain, Trace)
    except msgspec.ValidationError as error:
        return Found(None, f"the trace kept here is not valid: {error}")
    problems = integrity_problems(trace)
    return (
        Found(None, f"the trace kept here is not valid: {problems[0]}")
        if problems
        else Found(trace)
    )

"""Writing an evaluation folder: the body of a result before its index line."""

from __future__ import annotations

import re
import time
from array import array
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from baton.formats.evaluation_folder import BODIES, HEADER, INDEX
from baton.model import (
    AgentCard,
    AgentScores,
    CaseResult,
    EfficiencySums,
    EvaluatorCounts,
    GateResult,
    InputError,
    Problem,
    Provenance,
    RoutingCell,
    Status,
    plain_sums,
)
from baton.model.secrets import knows_secrets, mask_json, mask_value

from .resume import Kept, as_header, lock
from .rows import IndexRow, body_of, index_row, read_row

_ENCODER = msgspec.json.Encoder()
FolderStatus = Literal["running", "passed", "failed", "error", "interrupted"]


class Encoded(msgspec.Struct, array_like=True):
    """A result as it is written: its index row, whose place is still to be filled in, and body."""

    row: dict[str, Any]
    body: bytes


def encoded(result: CaseResult) -> Encoded:
    """Write a result whose trace lies elsewhere, for :meth:`EvaluationWriter.write_encoded`."""
    return Encoded(index_row(result, 0, 0), _ENCODER.encode(body_of(result, keep_trace=False)))


class EvaluationWriter:
    """Writes results as they come; a later one of the same case and repeat stands for the earlier.

    Clock times stand under ``timings`` and nowhere else. What is written is out of this process
    at once, a body before its index line: ending it by force loses what is in play and no more.
    """

    def __init__(
        self,
        root: Path,
        name: str,
        *,
        header: dict[str, Any],
        keep_traces: bool = False,
        repeats: int = 1,
        kept: Kept | None = None,
    ) -> None:
        """Make a new folder below ``root``, or go on with the one that ``kept`` is of.

        Raises:
            InputError: that cannot be done.
        """
        self._started = time.time()
        self._keep_traces = keep_traces
        self._repeats = repeats
        self._kept = kept
        self.folder = kept.folder if kept else _new_folder(root, name, self._started)
        self._header = {"id": self.folder.name, "name": name, **header, "repeats": repeats}
        self._catalogs: list[dict[str, AgentCard]] = kept.catalogs if kept else []
        self._lines = kept.lines if kept else array("q")
        self._index = (self.folder / INDEX).open("r+b" if kept else "w+b")
        self._bodies = (self.folder / BODIES).open("ab" if kept else "wb")
        try:
            lock(self._index, self.folder)
        except InputError:
            self.close()
            raise
        if kept is not None:
            self._header |= as_header(kept)
            self._index.seek(0, 2)
        self._write_header("running", {})

    @property
    def provenance(self) -> Provenance:
        """What the header says of what is judged."""
        return msgspec.convert(self._header.get("provenance") or {}, Provenance)

    def write(self, result: CaseResult) -> IndexRow | None:
        """Append one result; return the row that stood for its case and repeat before."""
        trace = result.trace
        if self._keep_traces and trace is not None and trace.agents:
            number = self._catalog(trace.agents)
            bare = msgspec.structs.replace(trace, agents={})
            result = msgspec.structs.replace(result, trace=bare)
            body = body_of(result, keep_trace=True, catalog=number)
        else:
            body = body_of(result, keep_trace=self._keep_traces)
        slot = result.position * self._repeats + result.repeat
        earlier = self._earlier(slot)
        self._append(slot, index_row(result, 0, 0), _ENCODER.encode(body))
        return earlier

    def write_encoded(self, result: Encoded) -> IndexRow:
        """Append a result that was written elsewhere; return its row."""
        slot = result.row["position"] * self._repeats + result.row["repeat"]
        self._earlier(slot)
        return read_row(self._append(slot, result.row, result.body))

    def _append(self, slot: int, row: dict[str, Any], text: bytes) -> bytes:
        if knows_secrets():
            row, text = mask_value(msgspec.to_builtins(row)), mask_json(text)
        row["offset"], row["length"] = self._bodies.tell(), len(text)
        self._bodies.write(text + b"\n")
        self._bodies.flush()
        self._lines[slot] = self._index.tell()
        line = _ENCODER.encode(row) + b"\n"
        self._index.write(line)
        self._index.flush()
        return line

    def _catalog(self, agents: dict[str, AgentCard]) -> int:
        """Keep the definitions of agents once, in the header, and return their number there."""
        if agents not in self._catalogs:
            self._catalogs.append(agents)
            self._header["agents"] = self._catalogs
            self._write_header("running", {})
        return self._catalogs.index(agents)

    def finish(
        self,
        status: FolderStatus,
        *,
        evaluators: list[EvaluatorCounts],
        cases: dict[Status, int],
        problems: list[str],
        routing: Sequence[RoutingCell] = (),
        efficiency: EfficiencySums | None = None,
        by_agent: Sequence[AgentScores] = (),
        gate: Sequence[GateResult] = (),
        provenance: Provenance | None = None,
        notices: Sequence[str] = (),
    ) -> None:
        """Close the folder with its verdict; ``notices`` are added to those of the header."""
        if notices:
            self._header["notices"] = [*self._header.get("notices", ()), *notices]
        counts: dict[str, Any] = {
            "cases": cases,
            "evaluators": msgspec.to_builtins(evaluators),
            "problems": problems,
        }
        if routing:
            counts["routing"] = msgspec.to_builtins(routing)
        if efficiency is not None and efficiency.results:
            counts["efficiency"] = plain_sums(efficiency)
        if by_agent:
            counts["by_agent"] = msgspec.to_builtins(by_agent)
        if provenance is not None:
            counts["provenance"] = msgspec.to_builtins(provenance)
        if gate:
            counts["gate"] = msgspec.to_builtins(gate)
        self._write_header(status, counts)
        self.close()

    def close(self) -> None:
        """Close the files; what was written stays."""
        self._bodies.close()
        self._index.close()

    def _earlier(self, slot: int) -> IndexRow | None:
        while len(self._lines) <= slot:
            self._lines.append(-1)
        if self._lines[slot] < 0:
            return None
        end = self._index.tell()
        self._index.seek(self._lines[slot])
        row = read_row(self._index.readline())
        self._index.seek(end)
        return row

    def _write_header(self, status: FolderStatus, counts: dict[str, Any]) -> None:
        kept = self._kept
        timings: dict[str, Any] = {"started": kept.started if kept else _iso(self._started)}
        if kept is not None:
            timings["resumed"] = [*kept.resumed, _iso(self._started)]
        if status != "running":
            before = kept.seconds if kept else 0.0
            seconds = round(before + time.time() - self._started, 3)
            timings |= {"ended": _iso(time.time()), "seconds": seconds}
        header = {**self._header, "status": status, **counts, "timings": timings}
        text = msgspec.json.format(mask_json(_ENCODER.encode(header)), indent=2)
        draft = self.folder / f"{HEADER}.tmp"
        draft.write_bytes(text + b"\n")
        draft.replace(self.folder / HEADER)


def _new_folder(root: Path, name: str, now: float) -> Path:
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60] or "evaluation"
    for attempt in range(1, 1000):
        folder = root / (f"{stamp}-{slug}" + (f"-{attempt}" if attempt > 1 else ""))
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            message = f"the evaluation cannot be stored here: {error.strerror}; name another --out"
            raise InputError(Problem(file=str(root), message=message)) from None
        return folder
    raise InputError(Problem(file=str(root), message="too many evaluations of this second"))


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")

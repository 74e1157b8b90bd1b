"""Writing an evaluation folder: the body of a result before its index line."""

from __future__ import annotations

import hashlib
import os
import re
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import msgspec

from baton.formats.evaluation_folder import (
    BODIES,
    HEADER,
    INDEX,
    UNFINISHED,
    IndexRow,
    Lines,
    read_row,
)
from baton.formats.own_files import make_folder, naming, open_own, open_regular, write_whole
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
from .rows import body_of, index_row
from .seal import put_seal

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
        self._lines = kept.lines if kept else Lines()
        self._digest = kept.digest if kept else hashlib.sha256()
        self._rows = kept.row_count if kept else 0
        index, bodies = self.folder / INDEX, self.folder / BODIES
        self._index_name, self._bodies_name = str(index), str(bodies)
        self._index = open_regular(index, "r+b") if kept else open_own(index, "w+b")
        self._bodies = open_own(bodies, "ab" if kept else "wb")
        self._index_size = self._bodies_size = 0
        if kept is None:
            put_seal(self.folder, self._header)
        try:
            lock(self._index, self.folder)
        except InputError:
            self.close()
            raise
        if kept is not None:
            self._header |= as_header(kept)
            self._index_size = self._index.seek(0, 2)
            self._bodies_size = self._bodies.tell()
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
        line = index_row(result, 0, 0)
        replaced = self._append(line, _ENCODER.encode(body))
        return None if replaced is None else self._row_at(replaced)

    def write_encoded(self, result: Encoded) -> IndexRow:
        """Append a result that was written elsewhere; return its row."""
        self._append(result.row, result.body)
        return msgspec.convert(result.row, IndexRow)

    def _append(self, row: dict[str, Any], text: bytes) -> int | None:
        """Write a body and its index line; return where the line starts that it replaces."""
        if knows_secrets():
            row.update(mask_value(msgspec.to_builtins(row)))
            text = mask_json(text)
        start = self._index_size
        row["offset"], row["length"] = self._bodies_size, len(text)
        row["crc32"] = zlib.crc32(text)
        line = _ENCODER.encode(row) + b"\n"
        file = self._bodies_name
        try:
            self._bodies.write(text + b"\n")
            self._bodies.flush()
            file = self._index_name
            self._index.write(line)
            self._index.flush()
        except OSError as error:  # as `naming` does, which would take time here
            error.filename = file
            raise
        self._bodies_size += len(text) + 1
        self._index_size += len(line)
        self._digest.update(line)
        self._rows += 1
        return self._lines.put(row["position"], row["repeat"], start)

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
        if status not in UNFINISHED:
            counts |= self._contents()
        self._write_header(status, counts)
        self.close()

    def _contents(self) -> dict[str, Any]:
        """Have the disk keep the results, and return what they are checked by on opening."""
        for file, name in ((self._bodies, self._bodies_name), (self._index, self._index_name)):
            with naming(name):
                file.flush()
                os.fsync(file.fileno())
        digest = self._digest.hexdigest()
        return {"contents": {"rows": self._rows, "bytes": self._bodies_size, "sha256": digest}}

    def close(self) -> None:
        """Close the files; what was written stays."""
        try:
            with naming(self._bodies_name):
                self._bodies.close()
        finally:
            with naming(self._index_name):
                self._index.close()

    def _row_at(self, start: int) -> IndexRow:
        self._index.seek(start)
        row = read_row(self._index.readline())
        self._index.seek(self._index_size)
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
        write_whole(self.folder / HEADER, text + b"\n", sync=status != "running")


def _new_folder(root: Path, name: str, now: float) -> Path:
    stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%dT%H%M%SZ")
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:60] or "evaluation"
    try:
        make_folder(root)
        for attempt in range(1, 1000):
            folder = root / (f"{stamp}-{slug}" + (f"-{attempt}" if attempt > 1 else ""))
            with suppress(FileExistsError):
                make_folder(folder, exist_ok=False)
                return folder
    except OSError as error:
        message = f"the evaluation cannot be stored here: {error.strerror}; name another --out"
        raise InputError(Problem(file=str(root), message=message)) from None
    raise InputError(Problem(file=str(root), message="too many evaluations of this second"))


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")

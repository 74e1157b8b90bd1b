"""Traces that Baton kept in an evaluation folder."""

from __future__ import annotations

from pathlib import Path

import msgspec

from baton.formats.document import Document, read_bytes
from baton.formats.evaluation_folder import HEADER, INDEX
from baton.model import AgentCard, InputError, Problem, Source, Trace
from baton.model.limits import RECORD_DEPTH

from .own import read_record


class _Header(msgspec.Struct, kw_only=True):
    agents: list[dict[str, AgentCard]] = msgspec.field(default_factory=list)


class _Body(msgspec.Struct, kw_only=True):
    trace: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    agents: int | None = None
    repeat: int = 0


class _Row(msgspec.Struct, kw_only=True):
    position: int
    repeat: int = 0


class Bodies:
    """Reads the lines of ``bodies.jsonl``; the agents stand in the header, once for all.

    Of a case that was played again, the last line counts and the others hold no trace.

    Traces of later repeats say so in their attributes (``repeat``, from 1).
    """

    def __init__(self, file: Path) -> None:
        """Raises InputError when the header beside the file cannot be read."""
        header = file.with_name(HEADER)
        try:
            self._agents = msgspec.json.decode(read_bytes(header), type=_Header).agents
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(Problem(file=str(header), message=str(error))) from None
        self._stale = _stale(file.with_name(INDEX))

    def trace(self, document: Document, source: Source) -> Trace | None:
        """Read one line; ``None`` where it has scores alone, of a trace that lies elsewhere."""
        if document.first_line in self._stale:
            return None
        body = document.decode(_Body, strays=[], deepest=RECORD_DEPTH.value)
        recorded = bytes(body.trace)
        if not recorded:
            return None
        text = Document(document.file, recorded, "json", document.first_line)
        trace = read_record(text, source)
        if body.agents is not None and body.agents < len(self._agents):
            trace.agents = self._agents[body.agents]
        if body.repeat:
            trace.attributes["repeat"] = body.repeat
        return trace


def _stale(index: Path) -> set[int]:
    """Return the lines, from 1, that a later line of the same case and repeat stands for.

    Bodies have the order of their index lines.
    """
    last: dict[tuple[int, int], int] = {}
    stale: set[int] = set()
    try:
        with index.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                row = msgspec.json.decode(line, type=_Row)
                earlier = last.get((row.position, row.repeat))
                if earlier is not None:
                    stale.add(earlier)
                last[row.position, row.repeat] = number
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return stale  # torn by a crash, or gone: what was read counts
    return stale

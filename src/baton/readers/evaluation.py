"""Traces that Baton kept in an evaluation folder."""

from __future__ import annotations

from pathlib import Path

import msgspec

from baton.formats.document import Document, read_bytes
from baton.formats.evaluation_folder import HEADER
from baton.model import AgentCard, InputError, Problem, Source, Trace

from .own import read_record


class _Header(msgspec.Struct, kw_only=True):
    agents: list[dict[str, AgentCard]] = msgspec.field(default_factory=list)


class _Body(msgspec.Struct, kw_only=True):
    trace: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    agents: int | None = None
    repeat: int = 0


class Bodies:
    """Reads the lines of ``bodies.jsonl``; the agents stand in the header, once for all.

    Traces of later repeats say so in their attributes (``repeat``, from 1).
    """

    def __init__(self, file: Path) -> None:
        """Raises InputError when the header beside the file cannot be read."""
        header = file.with_name(HEADER)
        try:
            self._agents = msgspec.json.decode(read_bytes(header), type=_Header).agents
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(Problem(file=str(header), message=str(error))) from None

    def trace(self, document: Document, source: Source) -> Trace | None:
        """Read one line; ``None`` where it has scores alone, of a trace that lies elsewhere."""
        body = document.decode(_Body, strays=[])
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

"""The way into the readers of Strands' files."""

from __future__ import annotations

from collections.abc import Iterator

from baton.formats.document import Document
from baton.model import Source, Trace
from baton.readers.catalog import Catalog

from .report import read_report, read_row
from .results import read_result
from .session import read_session


def read_strands(
    document: Document, source: Source, catalog: Catalog, fallback_id: str
) -> Iterator[Trace]:
    """Read a file by the kind that its source's format names.

    Raises:
        InputError: it has faults.
    """
    match source.format:
        case "strands-report":
            yield from read_report(document, source, catalog)
        case "strands-case":
            yield read_row(document, source, catalog, fallback_id)
        case "strands-session":
            yield read_session(document, source, catalog, fallback_id)
        case _:
            yield read_result(document, source, catalog, fallback_id)

"""Agno's additions to the convention of its spans."""

from __future__ import annotations

import re

from baton.readers.otlp.readings import Reading, ToolSpan
from baton.readers.otlp.span import Span

from .base import Dialect

# "Member with ID lawyer not found in the team ..." is the tool's normal result, with the status OK.
_NO_MEMBER = re.compile(r"Member with ID \S+ not found\b")


def refine(says: Reading, _span: Span) -> Reading:
    """Mark a delegation to an unknown member as failed: Agno only reports it in the result text."""
    if type(says) is ToolSpan and says.mode == "delegate":
        said = says.result.text if says.result is not None else None
        if said is not None and _NO_MEMBER.match(said):
            says.failed, says.error, says.result = True, said, None
    return says


DIALECT = Dialect(name="agno", refine=refine)

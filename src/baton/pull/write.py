"""A file of JSON lines, one trace each, of which every line that is there is whole."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from baton.model import InputError, Problem
from baton.model.redact import ON, Redaction

from .http import PullError


class Pulled(NamedTuple):
    """How much was written; ``cut`` says why it is not all there is."""

    traces: int
    spans: int
    cut: PullError | InputError | None = None


async def pull(
    traces: AsyncIterator[dict[str, Any]], out: Path, redaction: Redaction = ON
) -> Pulled:
    """Write traces as they come, redacted; what came before a failure stays.

    The file is made when the first trace is there, so that a failure before leaves an older one
    as it was.

    Raises:
        InputError: the file cannot be written.
    """
    count = spans = 0
    cut: PullError | InputError | None = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        file = None
        try:
            async for trace in traces:
                file = file or out.open("wb")
                file.write(msgspec.json.encode(redaction.value(trace)) + b"\n")
                file.flush()
                count += 1
                spans += _spans(trace)
        except (PullError, InputError) as error:
            cut = error
        finally:
            if file is not None:
                file.close()
    except OSError as error:
        message = f"the traces cannot be written: {error.strerror}"
        raise InputError(Problem(file=str(out), message=message)) from None
    return Pulled(count, spans, cut)


def _spans(trace: dict[str, Any]) -> int:
    return sum(
        len(scope["spans"])
        for resource in trace["resourceSpans"]
        for scope in resource["scopeSpans"]
    )

"""The page: a frame, cases in packed blocks, the list as JSON, and the script that shows them."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from typing import IO, Any

import msgspec

from baton.model import STATUSES
from baton.model.visible import LINE_BREAKS, UNSEEN, visible, visible_line
from baton.reports.judging import gate_lines
from baton.reports.terminal import counter_texts
from baton.stats.routing import plain_matrix
from baton.store import Reportable

from .cases import Tables, case_view, list_row


def summary(evaluation: Reportable) -> dict[str, Any]:
    """Return counts, the routing matrix, counters and notices as plain data."""
    header = evaluation.header
    return {
        "name": header.name,
        "id": header.id,
        "status": header.status,
        "cases": {status: header.cases.get(status, 0) for status in STATUSES},
        "evaluators": [
            {"name": each.evaluator, "optional": each.optional}
            | {status: getattr(each, status) for status in STATUSES}
            for each in header.evaluators
        ],
        "repeats": header.repeats,
        "problems": header.problems,
        "notices": [*header.notices, *gate_lines(header.gate, "unclear")],
        "missed": [*gate_lines(header.gate)],
        "routing": plain_matrix(header.routing),
        "spent": counter_texts(header.efficiency),
        "started": header.timings.get("started"),
        "seconds": header.timings.get("seconds"),
        "dataset": header.dataset,
        "traces": header.traces,
        "version": header.versions.get("baton"),
    }


_SCRIPTS = ("dom.js", "summary.js", "cases.js", "tree.js", "case.js", "main.js")
_BLOCK = 256 * 1024
_ENCODER = msgspec.json.Encoder()


def write_html(evaluation: Reportable, out: IO[str]) -> None:
    """Write one file that needs no other and no network.

    Whatever stands in traces and scores is data: cases lie packed (gzip, base64) in blocks of
    256 kB that the page unpacks when one is opened, the list as JSON in which ``<`` is escaped,
    and the script makes text nodes of them and nothing else. The policy of the page lets no
    other script run and nothing be fetched.
    """
    style = _asset("report.css")
    ranges = [[f"{code:x}" for code in pair] for pair in (*UNSEEN, *LINE_BREAKS)]
    table = f"const INVISIBLE_RANGES = {_json(ranges)};\n"
    script = '"use strict";\n' + table + "\n".join(_asset(name) for name in _SCRIPTS)
    out.write(_head(evaluation.header.name, style, script))
    tables = Tables([counts.evaluator for counts in evaluation.header.evaluators])
    rows: list[dict[str, Any]] = []
    for number, block in enumerate(_blocks(evaluation, tables, rows)):
        out.write(f'<script type="application/octet-stream" id="block{number}">{block}</script>\n')
    data = {"summary": summary(evaluation), "names": tables.plain(), "rows": rows}
    out.write(f'<script type="application/json" id="data">{_json(data)}</script>\n')
    out.write(f"<script>{script}</script>\n</body>\n</html>\n")


def _blocks(evaluation: Reportable, tables: Tables, rows: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the packed views of all cases; fill ``rows``, which say where each view lies."""
    rule = evaluation.header.pass_rule
    needed = rule.get("mean") if isinstance(rule, dict) else None
    number, size = 0, 0
    views: list[bytes] = []
    for result, found in evaluation.with_traces():
        place = {"block": number, "place": len(views)}
        rows.append(list_row(result, found.trace, tables) | place)
        views.append(_ENCODER.encode(case_view(result, found, needed)))
        size += len(views[-1])
        if size >= _BLOCK:
            yield _packed(views)
            number, size, views = number + 1, 0, []
    if views:
        yield _packed(views)


def _packed(views: list[bytes]) -> str:
    text = b"[" + b",".join(views) + b"]"
    return base64.b64encode(gzip.compress(text, 6, mtime=0)).decode()


def _head(name: str, style: str, script: str) -> str:
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    return _asset("page.html").format(title=escape(visible_line(name)), policy=policy, style=style)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _json(data: Any) -> str:
    """Write JSON that no text in it can end the element of."""
    text = visible(_ENCODER.encode(data).decode())
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files("baton.reports.html").joinpath("assets", name).read_text("utf-8")

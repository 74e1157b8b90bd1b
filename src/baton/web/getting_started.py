"""First steps: the exact lines with which each framework sends to this server."""

from __future__ import annotations

from shlex import quote
from typing import NamedTuple

from baton.server.store import DEFAULT

from .frame import Visit


class Way(NamedTuple):
    """A way to send: its framework, the lines in order, and notes."""

    name: str
    lines: tuple[str, ...]
    note: str = ""


def lines_to_send(visit: Visit) -> list[Way]:
    """Return the ways, with the address of this server, and the key if it needs one."""
    url = f"{visit.request.url.scheme}://{visit.request.url.netloc}"
    keyed = visit.state.access.has_keys()
    other = visit.project != DEFAULT and not keyed
    key = "BATON_API_KEY=KEY " if keyed else ""
    server = f"--server {url}" + (f" --project {quote(visit.project)}" if other else "")
    headers = "OTEL_EXPORTER_OTLP_HEADERS="
    if keyed:
        exporter = f'{headers}"authorization=Bearer KEY" '
    else:
        exporter = f'{headers}"x-baton-project={visit.project}" ' if other else ""
    make = f"baton serve keys create NAME --project {quote(visit.project)} --right ingest"
    first = (make,) if keyed else ()
    record = f"{key}baton record {server} --"
    return [
        Way(
            "LangGraph, LangChain",
            (*first, f"{record} python app.py"),
            "Your program needs no change, and nothing else has to be installed.",
        ),
        Way(
            "OpenAI Agents",
            (*first, "pip install openinference-instrumentation-openai-agents",
             f"{record} python app.py"),
        ),
        Way(
            "pydantic-ai, Strands, AutoGen, Microsoft Agent Framework",
            (*first, f"{record} python app.py"),
            "This turns on their own tracing.",
        ),
        Way(
            "Google ADK",
            (*first, f"{record} adk run path/to/agent"),
            "The same with `adk web`, `adk api_server` and programs of your own.",
        ),
        Way(
            "Claude Agent SDK",
            (*first, f"{record} python app.py"),
            "This records the messages between your program and Claude.",
        ),
        Way(
            "Claude Code",
            (*first, f"{key}baton hook claude push {server}"),
            "Each session is sent when Claude stops.",
        ),
        Way(
            "Any other OpenTelemetry exporter",
            (*first, f"{exporter}OTEL_EXPORTER_OTLP_ENDPOINT={url} your-program"),
            "Spans that follow the conventions of OpenTelemetry GenAI or OpenInference.",
        ),
        Way(
            "Existing recordings",
            (*first, f"{key}baton push runs/ {server}"),
            "Whatever `baton show` reads: files, folders, archives.",
        ),
    ]  # fmt: skip

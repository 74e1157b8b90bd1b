"""The table of docs/frameworks.md: what each source tells, by the recordings in ``tests/data``.

``make frameworks`` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from baton import load_traces
from baton.model import InputError, Trace

from .facts import ALWAYS_THERE, FACTS, facts, held
from .happened import Recording, recordings

PAGE = Path(__file__).parents[2] / "docs" / "frameworks.md"
BEGIN = "<!-- table: written by `make frameworks` from the recordings in tests/data -->"
END = "<!-- end of table -->"

ROWS: dict[str, tuple[str, str]] = {
    "google-adk": ("Google ADK", "its own spans"),
    "adk-stream": ("Google ADK", "answers of `/run_sse`, `/run`, with `app-info`"),
    "adk-session": ("Google ADK", "sessions, with `app-info`"),
    "claude-session": ("Claude Code, Agent SDK", "sessions on disk"),
    "claude-stream": ("Claude Code, Agent SDK", "messages of a stream"),
    "claude-export": ("Claude Code, Agent SDK", "its own OpenTelemetry export"),
    "claude-traceai": ("Claude Agent SDK", "traceAI"),
    "strands": ("Strands", "its own spans"),
    "strands-session": ("Strands", "`Session` of its evaluation SDK"),
    "strands-state": ("Strands", "state of a swarm or graph"),
    "strands-result": ("Strands", "result of a swarm or graph"),
    "openai-agents": ("OpenAI Agents", "OpenInference"),
    "openai-agents-otel-genai": ("OpenAI Agents", "OpenTelemetry (`genai-openai-agents`)"),
    "openai-agents-otel": ("OpenAI Agents", "OpenTelemetry (`openai-agents-v2`)"),
    "openai-agents-traceloop": ("OpenAI Agents", "Traceloop"),
    "openai-agents-logfire": ("OpenAI Agents", "Logfire"),
    "openai-agents-traceai": ("OpenAI Agents", "traceAI"),
    "langgraph": ("LangGraph, LangChain", "OpenInference"),
    "langgraph-traceloop": ("LangGraph, LangChain", "Traceloop"),
    "langsmith": ("LangGraph, LangChain", "LangSmith"),
    "langgraph-genai": ("LangGraph, LangChain", "OpenTelemetry (`genai-langchain`)"),
    "langgraph-traceai": ("LangGraph, LangChain", "traceAI"),
    "langgraph-langfuse": ("LangGraph, LangChain", "Langfuse (`CallbackHandler`)"),
    "vercel-ai": ("Vercel AI SDK", "its own spans"),
    "pydantic-ai": ("pydantic-ai, Logfire", "its own spans"),
    "autogen": ("AutoGen", "its own spans"),
    "autogen-openinference": ("AutoGen", "OpenInference, beside its own spans"),
    "ag2": ("AG2", "its `TelemetryMiddleware`"),
    "ag2-chats": ("AG2 before 1.0", "its `autogen.opentelemetry`"),
    "ag2-openinference": ("AG2 before 1.0", "OpenInference"),
    "microsoft-agent-framework": ("Microsoft Agent Framework", "its own spans"),
    "crewai": ("CrewAI", "OpenInference"),
    "crewai-traceloop": ("CrewAI", "Traceloop"),
    "smolagents": ("smolagents", "OpenInference"),
    "smolagents-traceai": ("smolagents", "traceAI"),
    "agno": ("Agno", "OpenInference"),
    "agno-traceloop": ("Agno", "Traceloop"),
    "llama-index": ("LlamaIndex", "OpenInference"),
    "llama-index-traceloop": ("LlamaIndex", "Traceloop"),
    "semantic-kernel": ("Semantic Kernel", "its own spans"),
    "mastra": ("Mastra", "`@mastra/otel-exporter`, `@mastra/otel-bridge`, `@mastra/arize`"),
    "haystack": ("Haystack", "`opentelemetry-haystack`"),
    "openinference-added": (
        "pydantic-ai, Strands, Google ADK",
        "OpenInference, added to their own spans",
    ),
    "mlflow": ("several", "MLflow tracing"),
    "a2a": ("A2A", "`a2a-sdk`, with spans of HTTP and of the agents"),
    "a2a-alone": ("A2A", "`a2a-sdk` alone"),
    "langfuse": ("Langfuse", "its SDK"),
    "mixed": ("several", "two instrumentations at once"),
    "gen-ai-transfer": ("any", "`gen_ai.transfer.*` (proposed)"),
}
"""Names of the sources, in order; one without a recording is not proven."""

ALWAYS = ("adk-", "claude-session", "claude-stream", "strands-")
"""Sources that always hold content; any other has a switch for it."""


class Judged(NamedTuple):
    """A recording with what is known of its run."""

    recording: Recording
    content: bool
    facts: dict[str, bool | None]
    held: set[str]


@cache
def judged() -> tuple[Judged, ...]:
    """Read all recordings."""
    return tuple(_judge(recording) for recording in recordings())


def _judge(recording: Recording) -> Judged:
    try:
        traces = load_traces(recording.path, agents=recording.agents)
    except InputError:  # it holds no agent
        traces = []
    told = facts(sorted(traces, key=_start), recording.run)
    content = recording.source.startswith(ALWAYS) or recording.has_content()
    return Judged(recording, content, told, held(traces))


def _start(trace: Trace) -> float:
    return min((turn.started for turn in trace.turns if turn.started is not None), default=0)


def cell(rows: Iterable[tuple[bool, bool | None]], *, switch: bool = True) -> str:
    """Sum up a fact of one source from (content is on, fact is known) of each recording.

    With a ``switch`` for content, ``yes`` takes a recording with content off.
    """
    told = [(content, known) for content, known in rows if known is not None]
    if not told:
        return "not proven"
    on = [known for content, known in told if content]
    off = [known for content, known in told if not content]
    if all(on + off) and (off or not switch):
        return "yes"
    if on and all(on):
        return "when content is on"
    counted = on if any(on) else off
    return f"in {sum(counted)} of {len(counted)}" if any(counted) else "no"


def table() -> str:
    """Return the table, and below it which recordings lack what others of their source tell."""
    found: dict[str, list[Judged]] = {source: [] for source in ROWS}
    for each in judged():
        found.setdefault(each.recording.source, []).append(each)
    lines = [_line("framework", "source", *FACTS), _line(*["---"] * (len(FACTS) + 2))]
    lacking: list[str] = []
    for source, recorded in found.items():
        cells = {
            fact: _cell(fact, recorded, switch=not source.startswith(ALWAYS)) for fact in FACTS
        }
        name = ROWS.get(source, (source, "its spans"))
        lines.append(_line(*name, *cells.values()))
        lacking += _lacking(", ".join(name), cells, recorded)
    return "\n".join(
        [
            *lines,
            "",
            "Facts that only some recordings contain, and the recordings that lack them:",
            "",
            *lacking,
        ]
    )


def _cell(fact: str, recorded: list[Judged], *, switch: bool) -> str:
    text = cell(((each.content, each.facts[fact]) for each in recorded), switch=switch)
    never = fact in ALWAYS_THERE and not any(fact in each.held for each in recorded)
    return "no" if recorded and never else text


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _lacking(name: str, cells: dict[str, str], recorded: list[Judged]) -> Iterator[str]:
    places: dict[str, list[str]] = {}
    for fact, text in cells.items():
        if text.startswith("in "):
            places.setdefault(", ".join(_without(fact, recorded)), []).append(fact)
    for files, names in places.items():
        yield f"- {name}: {', '.join(names)}: {files}"


def _without(fact: str, recorded: list[Judged]) -> Iterator[str]:
    on = any(each.content and each.facts[fact] for each in recorded)
    for each in recorded:
        if each.facts[fact] is False and (each.content or not on):
            path = each.recording.path
            claude = each.recording.source.startswith("claude-")
            yield f"`{path.parent.name if claude else path.stem}`"


def written() -> str:
    """Return the table as it is in the page."""
    return PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END)[0].strip()


def write() -> None:
    """Put the table into the page."""
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    text = f"{before}{BEGIN}\n\n{table()}\n\n{END}{after}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write() if "--write" in sys.argv else print(table())

"""OTLP files, and spans in memory, to traces: a trace for each conversation."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from baton.model import (
    SCHEMA_VERSION,
    AgentCard,
    Dropped,
    InputError,
    Problem,
    Source,
    Trace,
)
from baton.model.views import sum_usage
from baton.readers.builder import TraceBuilder
from baton.readers.catalog import Catalog

from .builder import Act
from .describe import describe, finish
from .dialects import DIALECTS, goes_on
from .dispatches import link, offer_tools
from .node import Node
from .own import part, restore
from .runs import find_runs, in_start_order, without_twins
from .span import Conversation, Event, Span
from .steps import write_steps
from .tree import build_tree
from .values import text
from .wire.conversations import group
from .wire.read import read_conversations

_FOREIGN = tuple(prefix for dialect in DIALECTS for prefix in dialect.prefixes)
_LABELS = frozenset(
    key for dialect in DIALECTS for key in (*dialect.sessions, *dialect.conversations)
)
"""Attributes that only say which conversation a span belongs to: no content is lost with them."""


def unread(node: Node) -> str | None:
    """Say what of a span is lost; ``None`` when it is read, or is known to be plumbing."""
    if node.lost is not None or node.kind != "none":
        return node.lost
    if node.framework is None and node.name is None and node.card is None:
        keys = node.span.attributes.keys() - _LABELS
        if any(key.startswith(_FOREIGN) for key in keys):
            return f"spans of `{node.span.scope or node.span.name}` that follow no known convention"
    return None


_CASE = "baton.case"
"""The attribute by which a program says which case it plays."""
_TELLS_DATA = ("pydantic-ai",)
"""Frameworks whose spans hold the structured output of an agent."""


def read_conversation(
    conversation: Conversation, source: Source, catalog: Catalog, *, torn: bool = False
) -> Trace:
    """Read the spans of one conversation; ``torn`` when some of the recording was lost."""
    reader = _Reader(catalog, torn)
    for spans in _whole(conversation.turns):
        reader.turn(spans, conversation.logs)
    played = reader.builder.finish()
    source.framework = reader.framework()
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=conversation.id,
        case=reader.case,
        source=source,
        turns=played,
        agents={**reader.cards, **catalog},
        usage=sum_usage([run.usage for turn in played for run in turn.runs]),
        unknown=["state", "turn.state", *_no_data(source.framework)],
        dropped=[Dropped(what=what, count=count) for what, count in reader.dropped.items()],
    )


def _no_data(framework: str | None) -> list[str]:
    """Name structured output where spans would not tell it apart from a text."""
    return [] if framework in _TELLS_DATA else ["turn.output.data"]


def _whole(turns: list[list[Span]]) -> list[list[Span]]:
    """Put what continues a turn together with it."""
    whole: list[list[Span]] = []
    for spans in turns:
        if whole and goes_on(whole[-1], spans):
            whole[-1] = [*whole[-1], *spans]
        else:
            whole.append(spans)
    return whole


class _Reader:
    def __init__(self, catalog: Catalog, torn: bool) -> None:
        self._torn = torn
        self.cards: dict[str, AgentCard] = {}
        self.case: str | None = None
        self.dropped: Counter[str] = Counter()
        self.builder = TraceBuilder(catalog)
        self._frameworks: Counter[str] = Counter()

    def framework(self) -> str | None:
        """Return the framework that most spans are of."""
        return self._frameworks.most_common(1)[0][0] if self._frameworks else None

    def turn(self, spans: list[Span], logs: list[Event]) -> None:
        """Read one turn, unless no agent, model or tool was at work in it."""
        nodes = build_tree(spans, logs)
        for node in nodes:
            self._note(node)
        works = find_runs(nodes)
        if not works:
            return
        turn = self.builder.turn()
        acts: dict[int, list[Act]] = {}
        for work in works:
            work.run = self.builder.run(turn, work.agent, work.first.span.span_id)
            kept, work.stands_for = without_twins(work.owned)
            work.owned = kept
            acts[id(work)] = write_steps(work, kept, self.builder.new_id)
            describe(work, opens=work is works[0])
        link(turn, works, acts, self.builder)
        offer_tools(turn, self.cards)
        turn.runs = in_start_order(turn)
        finish(turn, nodes, works, self._torn)

    def _note(self, node: Node) -> None:
        if node.framework is not None and node.kind != "none":
            self._frameworks[node.framework] += 1
        if node.card is not None and node.name is not None:
            self._card(node.name, node.card, node)
        self.case = self.case or text(node.span.attributes.get(_CASE))
        lost = unread(node)
        if lost is not None:
            self.dropped[lost] += 1

    def _card(self, name: str, card: AgentCard, node: Node) -> None:
        known = self.cards.setdefault(name, AgentCard())
        known.description = known.description or card.description
        known.tools = known.tools or card.tools
        known.model = known.model or card.model
        known.instructions = known.instructions or node.instructions_text()


_NO_AGENT = "holds spans of no agent, model or tool: nothing says who was at work"


def read_files(files: Sequence[Path], catalog: Catalog) -> Iterator[Trace]:
    """Yield the traces of files that belong together, one a conversation.

    The first trace lists what could not be read of them.

    Raises:
        InputError: a file is broken (at the end, after what is whole), or all spans are of
            programs without agents.
    """
    lost: list[Dropped] = []
    place = str(files[0]) if len(files) == 1 else os.path.commonpath([f.parent for f in files])
    problems: list[Problem] = []
    conversations = spans = 0
    torn = False
    for conversation in read_conversations(files, on_lost=lost.append):
        torn = torn or bool(lost)
        spans += len(conversation.spans)
        records, others = part(conversation)
        for record in records:
            conversations += 1
            try:
                trace = restore(record, place)
            except InputError as error:
                problems += error.problems
                continue
            trace.dropped += lost
            lost.clear()
            yield trace
        if records and not others.spans:
            continue
        source = Source(format="otlp", location=place)
        trace = read_conversation(others, source, catalog, torn=torn)
        if trace.turns:
            conversations += 1
            trace.dropped += lost
            lost.clear()
            yield trace
    if problems:
        raise InputError(problems)
    if not spans:
        raise InputError(
            _cut_off(files, lost) or Problem(file=str(files[0]), message="holds no spans")
        )
    if not conversations:
        also = "".join(f"; {item.what}: {item.count}" for item in lost)
        raise InputError(Problem(file=str(files[0]), message=_NO_AGENT + also))


def _cut_off(files: Sequence[Path], lost: Sequence[Dropped]) -> Problem | None:
    """Say where a file ends before its first whole span, if that is what one does."""
    examples = [item.example or "" for item in lost if "truncated" in item.what]
    for file, example in product(files, examples):
        if example.startswith(f"{file}: "):
            place = example.removeprefix(f"{file}: ")
            message = f"{place}: is truncated here, and no whole span stands before"
            return Problem(file=str(file), message=message)
    return None


def read_spans(spans: list[Span], logs: list[Event], catalog: Catalog | None = None) -> list[Trace]:
    """Read spans in memory, one trace a conversation that an agent was at work in."""
    found = (
        read_conversation(conversation, Source(format="otlp"), catalog or {})
        for conversation in group(spans, logs)
    )
    return [trace for trace in found if trace.turns]

"""A conversation's spans to a trace."""

from __future__ import annotations

from collections import Counter

from baton.model import (
    SCHEMA_VERSION,
    AgentCard,
    Dropped,
    Source,
    Trace,
    Turn,
)
from baton.model.views import sum_usage
from baton.readers.catalog import Catalog
from baton.readers.ids import Ids

from .acts import Act
from .allowed import allow_tools
from .describe import describe
from .dialects import goes_on
from .dispatches import link
from .dropped import unread
from .ending import finish
from .node import Node
from .order import in_start_order
from .runs import find_runs
from .span import Conversation, Event, Span
from .steps import write_steps
from .tree import build_tree
from .twins import without_twins
from .values import text

_CASE = "baton.case"
"""The attribute by which a program says which case it plays."""
_TELLS_DATA = ("pydantic-ai",)
"""Frameworks whose spans hold the structured output of an agent."""


def read_conversation(
    conversation: Conversation, source: Source, catalog: Catalog, *, torn: bool = False
) -> Trace:
    """Read the spans of one conversation; ``torn`` when some of the recording was lost."""
    reader = _Reader(catalog, torn)
    turns = [reader.turn(spans, conversation.logs) for spans in _whole(conversation.turns)]
    played = [turn for turn in turns if turn is not None]
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
        self._catalog = catalog
        self._ids = Ids()
        self._frameworks: Counter[str] = Counter()

    def framework(self) -> str | None:
        """Return the framework that most spans are of."""
        return self._frameworks.most_common(1)[0][0] if self._frameworks else None

    def turn(self, spans: list[Span], logs: list[Event]) -> Turn | None:
        """Read one turn; ``None`` when no agent, model or tool was at work in it."""
        nodes = build_tree(spans, logs)
        for node in nodes:
            self._note(node)
        works = find_runs(nodes)
        if not works:
            return None
        turn = Turn(id=self._ids.new("turn"))
        acts: dict[int, list[Act]] = {}
        for work in works:
            work.run.id = self._ids.new("run", work.first.span.span_id)
            work.run.agent = work.agent
            kept, work.stands_for = without_twins(work.owned)
            work.owned = kept
            acts[id(work)] = write_steps(work, kept, self._ids)
            describe(work, opens=work is works[0])
            turn.runs.append(work.run)
        link(turn, works, acts, self._ids, self._catalog)
        allow_tools(turn, self.cards)
        turn.runs = in_start_order(turn)
        finish(turn, nodes, works, self._torn)
        return turn

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

"""Sessions of the Strands evaluation SDK."""

from __future__ import annotations

from collections import Counter

from baton.formats.document import Document
from baton.formats.prune import Stray
from baton.formats.strands import Session, SpanTrace
from baton.model import SCHEMA_VERSION, AgentCard, Dropped, InputError, Source, Trace, Turn
from baton.readers.adk.wire import dropped_keys
from baton.readers.catalog import Catalog
from baton.readers.ids import Ids

from .turn import read_turn

NOT_TOLD = [
    "state", "turn.state", "turn.output.data", "usage", "run.usage", "run.model", "run.inside",
    "dispatch.description", "dispatch.tools_allowed", "dispatch.tools_source",
]  # fmt: skip
"""What no session tells."""


class SessionTurns:
    """The turns of a session; what was not read is counted in ``lost``."""

    def __init__(self, session: Session) -> None:
        self.lost: Counter[str] = Counter()
        self.cards: dict[str, AgentCard] = {}
        ids = Ids()
        traces = [trace for trace in session.traces if trace.spans]
        self.turns: list[Turn] = [self._turn(trace, ids) for trace in traces]

    def dropped(self) -> list[Dropped]:
        """Return what was met and has no place in the record."""
        return [Dropped(what=what, count=count) for what, count in self.lost.items()]

    def _turn(self, trace: SpanTrace, ids: Ids) -> Turn:
        read = read_turn(trace, ids)
        for span in read.unread:
            self.lost[f"a span of type `{span.span_type}`"] += 1
        for agent, name in read.agents:
            if agent.system_prompt and name is None:
                self.lost["the system prompt of an agent whose name is not told"] += 1
            elif agent.system_prompt and name is not None:
                self.cards.setdefault(name, AgentCard(instructions=agent.system_prompt))
        return read.turn


def read_session(document: Document, source: Source, catalog: Catalog, fallback_id: str) -> Trace:
    """Read a session; each of its traces is a turn.

    Raises:
        InputError: it has faults, or holds no spans.
    """
    strays: list[Stray] = []
    session = document.decode(Session, strays=strays)
    if not any(trace.spans for trace in session.traces):
        message = (
            "the session holds no spans: the SDK keeps those only that name its session "
            "themselves, so put `session.id` into the trace attributes of every agent"
        )
        raise InputError(document.problem(message, document.first_line))
    read = SessionTurns(session)
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=session.session_id or fallback_id,
        source=source,
        turns=read.turns,
        agents={**read.cards, **catalog},
        unknown=list(NOT_TOLD),
        dropped=[*dropped_keys(strays), *read.dropped()],
    )

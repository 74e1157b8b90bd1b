"""The part of the session that ADK gives to an agent, if the agent's definition shows it.

An agent sees the events of the session that its branch may see. An agent with
``include_contents="none"`` only sees the last message of another speaker, and everything after it.
Events do not show which of the two applies.
"""

from __future__ import annotations

from collections.abc import Iterator

from baton.model import AgentRun, Content, GotBack, Ref, Said, ToolCall, Turn
from baton.readers.catalog import Catalog

# A session of 1,000 turns would have half a million references, as each run names all earlier ones.
_MOST = 20_000


class History:
    """The runs of one session, in the order they started."""

    def __init__(self, catalog: Catalog, *, whole: bool) -> None:
        """Set the definitions; ``whole``: the recording starts with the session."""
        tells = any(card.shares_history is not None for card in catalog.values())
        self._catalog = catalog
        self._whole = whole and tells
        self._turns: list[Turn] = []
        self._branches: dict[str, str] = {}
        self._left = _MOST

    def begin(self, turn: Turn, *, another_session: bool) -> None:
        """Continue with a turn."""
        if another_session:
            self._turns = []
        self._turns.append(turn)

    def give(self, turn: Turn, run: AgentRun, branch: str) -> None:
        """Set the content of a run's first request, if known."""
        self._branches[run.id] = branch
        card = self._catalog.get(run.agent)
        if not self._whole or card is None or card.shares_history is None or turn.input is None:
            return
        if not card.shares_history:
            last = _last_words(turn, run) if not branch else None
            if turn.runs[0] is run:
                run.context = []
            elif last is not None and not self._branches.get(turn.runs[-2].id, ""):
                run.input, run.context = last, []
            return
        refs = list(self._seen_by(turn, run, branch))
        if len(refs) <= self._left:
            self._left -= len(refs)
            run.input, run.context = turn.input, refs

    def _seen_by(self, turn: Turn, run: AgentRun, branch: str) -> Iterator[Ref]:
        for each in self._turns:
            if each is not turn and each.input is not None:
                yield Ref(id=each.id)
            for other in each.runs:
                theirs = self._branches.get(other.id)
                if other is run or theirs is None or not _sees(branch, theirs):
                    continue
                for step in other.steps:
                    said = isinstance(step, Said) and not step.thought
                    if said or isinstance(step, ToolCall | GotBack):
                        yield Ref(id=step.id)


def _last_words(turn: Turn, run: AgentRun) -> Content | None:
    """Return the last text of the previous agent, if it did nothing after it."""
    before = turn.runs[-2] if len(turn.runs) > 1 else None
    if before is None or before.agent == run.agent or not before.steps:
        return None
    last = before.steps[-1]
    return last.content if isinstance(last, Said) and not last.thought else None


def _sees(branch: str, other: str) -> bool:
    """Return whether an agent in this branch gets what was said in another one.

    ``fan_out.a`` and ``fan_out.b`` run in parallel, and what comes after both has no branch.
    """
    return not branch or not other or branch == other or branch.startswith(f"{other}.")


def passed_by_workflow(catalog: Catalog, sender: str, receiver: str) -> bool:
    """Return whether a workflow starts one agent after the other.

    That is so if the nearest common ancestor of both is not an LLM agent.
    """
    parents = {child: name for name, card in catalog.items() for child in card.sub_agents}
    above = _above(parents, sender)
    shared = next((name for name in _above(parents, receiver) if name in above), None)
    return shared is not None and catalog[shared].kind == "workflow"


def _above(parents: dict[str, str], agent: str) -> list[str]:
    above: list[str] = []
    while (parent := parents.get(agent)) is not None and parent not in above:
        above.append(parent)
        agent = parent
    return above

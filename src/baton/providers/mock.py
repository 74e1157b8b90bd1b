"""``mock``: canned answers, for trying out datasets and configs without an agent."""

from __future__ import annotations

from typing import Literal

from baton.model import SCHEMA_VERSION, AgentRun, Case, Content, Source, Trace, Turn
from baton.model.dataset import Need

from .base_provider import ConfiguredProvider, ProviderOptions, refuse_unplayable


class MockOptions(ProviderOptions, kw_only=True):
    """The same ``answer``, by ``agent``, to every message; what a case expects is never used."""

    type: Literal["mock"]
    answer: str = "This is a canned answer: no agent was asked."
    agent: str = "mock"


class Mock(ConfiguredProvider[MockOptions]):
    """Answers without any agent, and says so on every report."""

    summary = "canned answers, to try out a config"
    options_type = MockOptions
    notice = "the answers are canned (`mock`): nothing real was measured"

    def lacks(self, need: Need) -> str | None:  # noqa: ARG002 - no session is held, none restarted
        """Play any case."""
        return None

    async def __call__(self, case: Case) -> Trace:
        """Answer every turn."""
        refuse_unplayable(case, restarts=True, stand_ins=True)
        options = self.options
        answer = Content(text=options.answer)
        turns = [
            Turn(
                id=f"turn{number}",
                input=turn.input,
                output=answer,
                runs=[AgentRun(id=f"run{number}", agent=options.agent, output=answer)],
            )
            for number, turn in enumerate(case.turns, 1)
        ]
        return Trace(
            schema_version=SCHEMA_VERSION,
            id=case.id,
            case=case.id,
            source=Source(format="mock"),
            turns=turns,
            unknown=[
                "state",
                "usage",
                "turn.state",
                "turn.started",
                "turn.ended",
                "run.usage",
                "run.context",
            ],
        )

"""A judge that needs no LLM, and an evaluator that asks it once a trace."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Self

from baton.model import (
    Case,
    EvalContext,
    JudgeRequest,
    JudgeResponse,
    JudgeUse,
    Score,
    Trace,
    Unit,
)
from baton.testing import build


class PatientJudge:
    """Answers after a while, and remembers how many it was asked for at once."""

    model = "test:patient"
    samples = 1

    def __init__(
        self,
        seconds: float | Callable[[str], float] = 0.0,
        trouble: Callable[[str], BaseException | None] = lambda _: None,
    ) -> None:
        self._seconds, self._trouble = seconds, trouble
        self.now = self.most = 0
        self.asked: list[str] = []

    def with_options(self, override: Mapping[str, Any]) -> Self:
        assert not override
        return self

    async def ask(self, request: JudgeRequest, *, sample: int = 0) -> JudgeResponse:
        assert sample == 0
        self.asked.append(request.content)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            wait = self._seconds
            await asyncio.sleep(wait if isinstance(wait, float) else wait(request.content))
            trouble = self._trouble(request.content)
            if trouble is not None:
                raise trouble
        finally:
            self.now -= 1
        return JudgeResponse(value={"good": True}, model=self.model)


class Asking:
    """Asks the judge about each trace, by its id."""

    type = "asking"
    version = "1"
    unit: Unit = "trace"
    needs_judge = True

    def __init__(self, name: str = "asking") -> None:
        self.name = name

    def with_options(self, override: Mapping[str, Any]) -> Self:
        assert not override
        return self

    async def evaluate(self, trace: Trace, case: Case | None, context: EvalContext) -> list[Score]:
        assert context.judge is not None
        assert case is None or case.id == trace.id
        request = JudgeRequest(
            rubric="r", version="1", instructions="", content=trace.id, schema={"type": "object"}
        )
        answer = await context.judge.ask(request)
        return [
            Score(
                evaluator=self.name,
                type=self.type,
                version=self.version,
                status="passed",
                value=1.0,
                details={"agent": "desk"},
                judge=JudgeUse(model=answer.model, rubric_version="1", samples=1, requests=1),
            )
        ]


def by_desk(name: str, agent: str = "desk") -> Trace:
    """Make a trace of one turn by one agent."""
    return build.trace(build.run(agent), id=name)

"""A judge that answers by a script, and keeps what it was asked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from baton import iter_traces
from baton.evaluators.judged import Judged
from baton.evaluators.judging.rubric import Example, Rubric
from baton.evaluators.judging.rubric_files import shipped
from baton.judges.fenced_prompts import is_fenced
from baton.judges.parse_answer import faults
from baton.model import (
    Case,
    EvalContext,
    JudgeError,
    JudgeRequest,
    JudgeResponse,
    Score,
    Trace,
)

# What the tests of this area take from inside Baton: a reorganisation changes it here alone.
__all__ = ["Judged", "is_fenced", "shipped"]

Say = Mapping[str, Any] | JudgeError | str
CLAUDE = Path(__file__).parents[2] / "data" / "claude" / "current"


class ScriptedJudge:
    """Gives the answers of a list in turn, the last one ever after; or what a function says.

    A text stands for an answer with this label (of every item, if there are several).
    """

    model = "scripted:judge"

    def __init__(
        self, *says: Say, by: Callable[[JudgeRequest, int], Say] | None = None, samples: int = 1
    ) -> None:
        self.samples = samples
        self.asked: list[JudgeRequest] = []
        self.options: list[Mapping[str, Any]] = []
        self._says, self._by = says, by

    def with_options(self, override: Mapping[str, Any]) -> Self:
        self.options.append(override)
        return self

    async def ask(self, request: JudgeRequest, *, sample: int = 0) -> JudgeResponse:
        number = len(self.asked)
        self.asked.append(request)
        says = (
            self._by(request, sample) if self._by else self._says[min(number, len(self._says) - 1)]
        )
        if isinstance(says, JudgeError):
            raise says
        value = labelled(request, says) if isinstance(says, str) else dict(says)
        assert list(faults(value, request.schema)) == []
        return JudgeResponse(
            value=value, model=self.model, input_tokens=100, output_tokens=10, cost_usd=0.01
        )


def labelled(request: JudgeRequest, label: str, reason: str = "so it is") -> dict[str, Any]:
    """Answer with one label, for every item if there are several."""
    names = request.schema["properties"]
    if "label" in names:
        return {"reason": reason, "quote": "", "label": label}
    return {name: {"reason": reason, "label": label} for name in names}


def number(score: float) -> dict[str, Any]:
    return {"reason": "so it is", "quote": "", "score": score}


def expected_answer(schema: Mapping[str, Any], example: Example, rubric: Rubric) -> dict[str, Any]:
    """Answer as an example expects it."""
    properties = schema["properties"]
    if "score" in properties:
        score, scale = example.score or 0.0, rubric.answer.scale
        assert scale is not None
        low, high = scale.bounds
        return number(low + score * (high - low) if scale.normalise else score)
    if "label" in properties:
        return {"reason": "so it is", "quote": "", "label": example.label or ""}
    # Of several statements or sentences as many get the best label as their mean asks for.
    scores = {name: label.score for name, label in (rubric.answer.labels or {}).items()}
    ranked = sorted(
        (name for name in scores if scores[name] is not None), key=lambda n: scores[n] or 0.0
    )
    best = round((example.score or 0.0) * len(properties))
    return {
        name: {"reason": "so it is", "label": ranked[-1] if at < best else ranked[0]}
        for at, name in enumerate(properties)
    }


def capture(name: str) -> Trace:
    """Read a recorded Claude session."""
    (found,) = iter_traces([CLAUDE / name / "session"])
    return found


def judge_with(
    name: str,
    trace: Trace,
    *says: Say,
    case: Case | None = None,
    asked: ScriptedJudge | None = None,
    **options: Any,
) -> tuple[list[Score], ScriptedJudge]:
    """Let a shipped rubric score a trace; return the scores and what was asked."""
    judge = asked or ScriptedJudge(*says)
    evaluator = Judged(shipped()[name], **options)
    return scores(evaluator, trace, judge, case), judge


def scores(
    evaluator: Judged, trace: Trace, judge: ScriptedJudge | None, case: Case | None = None
) -> list[Score]:
    return asyncio.run(evaluator.evaluate(trace, case, EvalContext(judge=judge)))


def blocks(request: JudgeRequest) -> dict[str, str]:
    """Take the fenced material apart: the text of each block by its title."""
    code = request.content.split("\n", 1)[0].rsplit(" ", 1)[1].rstrip(".")
    found = {}
    for part in request.content.split(f"⟦{code}: ")[1:]:
        title, _, rest = part.partition("⟧\n")
        found[title] = rest.split(f"\n⟦/{code}⟧")[0]
    return found


def titles(requests: Sequence[JudgeRequest]) -> list[list[str]]:
    return [list(blocks(request)) for request in requests]

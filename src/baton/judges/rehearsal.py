"""What judging would take, found out without asking anybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from baton.model import JudgeRequest, JudgeResponse, Usage

from .fence import USUAL_OUTPUT, prompt_for
from .judge import LlmJudge
from .verdict import check_schema


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """What judging would take. ``cached`` are verdicts that are there, and cost nothing.

    A token is taken to have four bytes, a verdict 150 tokens. ``cost_usd`` is ``None`` when a
    model has no price. An answer that has to be asked for again comes on top.
    """

    calls: int
    cached: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


class Rehearsal:
    """Stands in for a judge: gives made-up answers that keep to the schema, and counts.

    The answers to the samples of a question differ, so that votes take as many as they may.
    """

    def __init__(self, judge: LlmJudge) -> None:
        """Take the judge whose cache, prices and options count."""
        self._judge = judge
        self._counted: dict[str, tuple[int, float | None]] = {}
        self._cached: set[str] = set()

    @property
    def model(self) -> str:
        """The model that would be asked first."""
        return self._judge.model

    @property
    def samples(self) -> int:
        """How many samples would be taken of each question."""
        return self._judge.samples

    def with_options(self, override: Mapping[str, Any]) -> Self:
        """Return a rehearsal of the judge with some settings replaced."""
        found = type(self)(self._judge.with_options(override))
        found._counted, found._cached = self._counted, self._cached
        return found

    async def ask(self, request: JudgeRequest, *, sample: int = 0) -> JudgeResponse:
        """Count one sample, and make up an answer."""
        check_schema(request.schema)
        key, kept = self._judge.kept(request, sample)
        if kept is not None:
            self._cached.add(key)
            return kept
        tokens = prompt_for(request).tokens
        usual = Usage(input_tokens=tokens, output_tokens=USUAL_OUTPUT)
        self._counted[key] = tokens, self._judge.price(usual)
        return JudgeResponse(value=example(request.schema, sample), model=self.model, requests=0)

    def price(self, usage: Usage) -> float | None:
        """Return what a request costs in USD, if its price is known."""
        return self._judge.price(usage)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._judge.close()

    def estimate(self) -> Estimate:
        """Sum up what was counted; the same question counts once."""
        costs = [cost for _, cost in self._counted.values()]
        told = [cost for cost in costs if cost is not None]
        return Estimate(
            calls=len(self._counted),
            cached=len(self._cached),
            input_tokens=sum(tokens for tokens, _ in self._counted.values()),
            output_tokens=USUAL_OUTPUT * len(self._counted),
            cost_usd=sum(told) if len(told) == len(costs) else None,
        )


def example(schema: Mapping[str, Any], number: int = 0) -> Any:
    """Make up a value that keeps to a schema; that of another ``number`` differs if it can."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][number % len(schema["enum"])]
    if "anyOf" in schema:
        return example(schema["anyOf"][0], number)
    kinds = schema.get("type", "string")
    match kinds if isinstance(kinds, str) else kinds[0]:
        case "object":
            properties = schema.get("properties", {})
            return {name: example(part, number) for name, part in properties.items()}
        case "array":
            least = max(1, schema.get("minItems", 1))
            return [example(schema.get("items", {}), number) for _ in range(least)]
        case "boolean":
            return number % 2 == 0
        case "number" | "integer":
            low = schema.get("minimum", 0)
            return low if number % 2 == 0 else schema.get("maximum", low + 1)
        case "null":
            return None
    return "-" * schema.get("minLength", 1)

"""``tokens``: how many tokens a case used."""

from __future__ import annotations

from typing import Annotated

import msgspec

from baton.model import Evidence, Score, Usage
from baton.model.views import token_count

from .base_evaluator import Details, TraceEvaluator, Unscored, WholeTrace, describe
from .usage_limits import Figure, require_one, total_usage, weigh

Count = Annotated[int, msgspec.Meta(ge=0)]


class TokensDetails(Details, kw_only=True):
    """How many tokens a case used."""

    tokens: dict[str, int | None]
    """``total``, ``input`` (including cached tokens) and ``output``. Null if unknown."""
    agents: dict[str, int]
    """Tokens of each agent's own runs, as far as known."""
    at_least: bool | msgspec.UnsetType = msgspec.UNSET
    """True if there may have been more."""


class Tokens(TraceEvaluator, frozen=True, kw_only=True):
    """Compares the tokens of all model requests of a case with limits."""

    type = "tokens"
    summary = "how many tokens a case used"
    details = TokensDetails

    max_total: Annotated[
        Count | None, describe("Input and output tokens of a case; at least one limit is needed.")
    ] = None
    max_input: Annotated[Count | None, describe("Input tokens, including those from a cache.")] = (
        None
    )
    max_output: Annotated[Count | None, describe("Output tokens.")] = None

    def check(self) -> None:
        """Check that there is a limit."""
        require_one(self)

    def score(self, whole: WholeTrace) -> Score | Unscored:
        """Return one score for the trace: 1 within the limits, else the lowest limit / tokens.

        A partly known count fails if the known part already exceeds the limit. Otherwise the
        score is ``error`` if a turn failed or was not played, and ``skipped`` if a full count is
        unknown.
        """
        trace = whole.trace
        usage = total_usage(trace)
        counts: dict[str, int | None] = {"total": None, "input": None, "output": None}
        if usage is not None:
            # A source without cached tokens has none, or counts them among the others.
            read = [usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens]
            known_counts = [count for count in read if count is not None]
            counts["total"] = token_count(usage)
            counts["input"] = sum(known_counts) if known_counts else None
            counts["output"] = usage.output_tokens
        limits = {
            "total": self.max_total,
            "input": self.max_input,
            "output": self.max_output,
        }
        kinds = [kind for kind, limit in limits.items() if limit is not None]
        doubt = whole.doubt or _unknown(usage, counts, kinds)
        figures = [
            Figure(
                limit, count, f"{'at least ' if doubt else ''}{_words(kind, count)}", f"{limit:,}"
            )
            for kind, limit in limits.items()
            if limit is not None and (count := counts[kind]) is not None
        ]
        # The tokens of each agent's own runs, as far as known.
        agents: dict[str, int] = {}
        for turn in trace.turns:
            for run in turn.runs:
                if used_here := token_count(run.usage):
                    agent = whole.context.agent_names.get(run.agent, run.agent)
                    agents[agent] = agents.get(agent, 0) + used_here
        details = TokensDetails(
            tokens=counts,
            agents=agents,
            at_least=True if doubt is not None else msgspec.UNSET,
        )
        used = [(token_count(run.usage) or 0, run) for turn in trace.turns for run in turn.runs]
        used = sorted((pair for pair in used if pair[0]), key=lambda pair: -pair[0])
        evidence = [Evidence(ids=[run.id], quote=f"{count:,} tokens") for count, run in used]
        if not evidence:  # no run records tokens
            evidence = [Evidence(ids=[turn.id for turn in trace.turns])]
        return weigh(self, figures, doubt, details, evidence)


def _unknown(
    usage: Usage | None, counts: dict[str, int | None], kinds: list[str]
) -> Unscored | None:
    """Return which of the requested full counts is unknown."""
    if usage is None or counts["total"] is None:
        supply = "record the usage of the model requests"
        return Unscored("skipped", f"the trace records no tokens: {supply}")
    not_recorded = [kind for kind in ("input", "output") if counts[kind] is None]
    for kind in not_recorded:
        if kind in kinds or "total" in kinds:
            return Unscored("skipped", f"the trace records no {kind} tokens: record them")
    if not usage.complete:
        least = ", ".join(f"at least {_words(kind, counts[kind] or 0)}" for kind in kinds)
        return Unscored(
            "skipped", f"{least}; some requests reported no usage: record the usage of all requests"
        )
    return None


def _words(kind: str, count: int) -> str:
    return f"{count:,} tokens" if kind == "total" else f"{count:,} {kind} tokens"

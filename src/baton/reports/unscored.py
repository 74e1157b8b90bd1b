"""Why an evaluator had nothing to score, where it skipped everything."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from baton.store import StoredEvaluation

_LOOKED_AT = 100


def unscored(evaluation: StoredEvaluation) -> Iterator[tuple[str, str]]:
    """Yield the evaluators that skipped all there was, each with the reason it gave first.

    What made the evaluation an error says so among its problems, and is not said again.
    """
    told = "\n".join(evaluation.header.problems)
    left = {
        counts.evaluator
        for counts in evaluation.header.evaluators
        if counts.skipped and not counts.scored and not counts.error
    }
    left = {name for name in left if f"`{name}` scored nothing" not in told}
    for row in islice(evaluation.rows(), _LOOKED_AT):
        if not left:
            return
        if left.isdisjoint(name for name, status, _ in row.scores if status == "skipped"):
            continue
        for score in evaluation.body(row)["scores"]:
            if score["evaluator_type"] in left and score["status"] == "skipped":
                left.discard(score["evaluator_type"])
                yield score["evaluator_type"], score["reason"]

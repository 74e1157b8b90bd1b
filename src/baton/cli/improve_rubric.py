"""``baton improve --rubric``: better texts for judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from baton.improvements.result import Improvement
from baton.model import InputError, counted
from baton.model.option_names import option
from baton.session.improve_rubric import (
    RubricOptions,
    estimate_rubric,
    improve_rubric,
    own_file,
)

from .messages import note


class RubricAsked(NamedTuple):
    """The rubric to improve, with its labels and the recordings that were labelled."""

    rubric: str
    labels: str
    recordings: Sequence[str]
    options: RubricOptions

    def improve(self) -> Improvement:
        """Search for a better text, and prove that it is better."""
        return improve_rubric(self.rubric, self.labels, self.recordings, **self.options)

    def print_estimate(self, *, as_json: bool) -> None:
        """Print the most calls it can make; makes none."""
        estimate = estimate_rubric(self.rubric, self.labels, self.recordings, **self.options)
        if as_json:
            print(msgspec.json.encode({"dry_run": estimate}).decode())
            return
        cost = cost_at_most(estimate.cost_usd, estimate.model)
        print(
            f"{estimate.train} train, {estimate.select} select and {estimate.held_out} "
            f"held-out labelled things\n"
            f"at most {counted(estimate.verdicts, 'verdict')} of {estimate.model}, at least "
            f"{estimate.fewest_verdicts:,}, and at most {counted(estimate.proposals, 'proposal')}\n"
            f"at most {counted(estimate.calls, 'request')}, about {estimate.input_tokens:,} + "
            f"{estimate.output_tokens:,} tokens\n"
            f"cost: {cost}"
        )
        for text in estimate.notes:
            note(text)


def rubric_asked(
    rubric: str | None,
    labels: str | None,
    recordings: Sequence[str],
    options: RubricOptions,
    *,
    writes: bool,
) -> RubricAsked:
    """Check the options about a rubric.

    Raises:
        InputError: the rubric or the labels are missing, or the file of a built-in rubric would be
            written.
    """
    if rubric is None or labels is None:
        raise InputError(
            f"{option('rubric')} and {option('labels')} belong together: give the rubric, and what "
            "people say"
        )
    if writes:
        own_file(rubric, options["config"])
    return RubricAsked(rubric, labels, recordings, options)


def cost_at_most(cost_usd: float | None, model: str) -> str:
    """Return the most that a run can cost, in USD, if the price of its model is known."""
    if cost_usd is None:
        return f"unknown, as the price of {model} is not known"
    return f"at most {cost_usd:.2f} USD"

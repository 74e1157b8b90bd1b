"""A recorded dispatch that was wrong, played again as it is and with one text changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import baton
from baton.model import Form, Trace
from baton.replays.replay import ReplayedCase


def assert_fixed_by(
    texts: dict[str, str], trace: Trace, spec: Mapping[str, Any], form: Form, right: str
) -> ReplayedCase:
    """Check that a dispatch was wrong, is wrong again in the same way, and right with other texts.

    Args:
        texts: those that are changed.
        trace: a recording, whose first dispatch it is.
        spec: the provider.
        form: how the dispatch is played.
        right: the agent that the work should go to; of another form than ``decision``, what the
            answer has to contain.
    """
    dispatch = trace.turns[0].dispatches[0]
    decides = form == "decision"
    replayed = baton.replay(
        trace,
        spec,
        ["dispatch_routing"] if decides else [{"type": "contains", "config": {"value": right}}],
        dispatch=dispatch.id,
        form=form,
        expect=[right] if decides else [],
        texts=texts,
    )
    [case] = replayed.cases
    assert case.recorded is not None
    sides = [case.recorded, *case.unchanged, *case.changed]
    assert [each.error for each in sides] == [None] * 3
    assert [each.status for each in sides] == ["failed", "failed", "passed"]
    said = [each.to if decides else each.answer for each in sides]
    assert said[0] == said[1]
    assert case.outcome == "fixed"
    return case

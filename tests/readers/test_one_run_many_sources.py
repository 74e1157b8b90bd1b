"""One run, recorded in several ways: no evaluator passes it by one source and fails it by another.

Where a source does not record what a verdict needs, the verdict is skipped with the reason, or, for a
limit of dispatches, says that refused calls were not recorded.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import pytest
from tests.docs.happened import Recording, recordings

import baton
from baton.evaluators import (
    AnnouncedDispatch,
    ClaimsSupported,
    ContextCarried,
    DispatchCompleted,
    DispatchLimits,
    DispatchScope,
    DispatchTargetKnown,
    DuplicateWork,
    HandoffLoops,
    ResultContradicted,
    ResultUsed,
)
from baton.model import AgentCard, EvalContext, Evaluator, InputError, Trace

EVALUATORS: tuple[Evaluator, ...] = (
    DispatchTargetKnown(),
    DispatchScope(),
    DispatchCompleted(),
    ContextCarried(),
    ResultUsed(),
    ResultContradicted(),
    DuplicateWork(),
    HandoffLoops(),
    ClaimsSupported(),
    AnnouncedDispatch(),
    DispatchLimits(max_dispatches=1),
    DispatchLimits(max_depth=1),
    DispatchLimits(max_fan_out=1),
    DispatchLimits(max_agents=2),
    DispatchLimits(max_visits=1),
)


def _runs() -> dict[str, list[Recording]]:
    """Return the runs of which there are several recordings, by their first one."""
    same: dict[str, list[Recording]] = defaultdict(list)
    for recording in recordings():
        run = recording.run
        did = (run.inputs, run.chain, run.hand_offs, run.answers, run.parallel)
        same[repr(did)].append(recording)
    return {str(found[0].path): found for found in same.values() if len(found) > 1}


RUNS = _runs()


def _records(recording: Recording, *, defined: bool) -> list[Trace]:
    worked = [h for h in recording.run.hand_offs or () if h.receiver in (recording.run.chain or ())]
    cards = {h.receiver: AgentCard(tools=h.tools) for h in worked}
    try:
        return baton.load_traces(recording.path, agents=cards if defined else None)
    except InputError:
        return []  # a recording in which no agent, model or tool is to be seen


def _verdicts(trace: Trace, evaluator: Evaluator, whole: str) -> Iterator[tuple[str, str, str]]:
    """Yield each verdict with what it is about: a dispatch by its ends and number, else ``whole``."""
    counted: Counter[str] = Counter()
    names: dict[str, str] = {}
    for turn in trace.turns:
        for dispatch in turn.dispatches:
            about = f"{dispatch.from_agent} to {dispatch.to_agent}, {dispatch.kind}"
            counted[about] += 1
            names[dispatch.id] = f"{about}, {counted[about]}"
    found = evaluator.evaluate(trace, None, EvalContext())
    assert isinstance(found, list)
    for score in found:
        about = next((names[id_] for id_ in score.subject if id_ in names), whole)
        yield about, score.status, score.reason


@pytest.mark.parametrize("defined", [False, True], ids=["as recorded", "with definitions"])
@pytest.mark.parametrize("name", RUNS)
def test_no_verdict_depends_on_how_a_run_was_recorded(name: str, defined: bool) -> None:
    read = [(recording, _records(recording, defined=defined)) for recording in RUNS[name]]
    # What agents there were besides those that worked is unknown, so definitions are incomplete.
    for evaluator in EVALUATORS[1:] if defined else EVALUATORS:
        told: dict[str, dict[str, str]] = defaultdict(dict)
        for recording, traces in read:
            for place, trace in enumerate(traces):
                # Some sources make several conversations of what others record as one.
                whole = f"conversation {place} of {len(traces)}"
                for about, status, reason in _verdicts(trace, evaluator, whole):
                    assert status != "skipped" or reason
                    if status in ("passed", "failed"):
                        told[about].setdefault(status, f"{recording.path.name}: {reason}")
        for about, found in told.items():
            assert len(found) == 1, f"{evaluator.type} of {about}: {found}"

"""Cases of dispatches that are scored as recorded, and the verdicts on the recordings themselves."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest
from tests.snapshot import recordings

import baton
from baton.datasets.dispatch_cases import dispatch_case, dispatch_data
from baton.model import InputError, Score, Source, Trace

VERDICTS = (
    "dispatch_target_known",
    "dispatch_scope",
    "dispatch_completed",
    "context_carried",
    "result_used",
    "result_contradicted",
    "duplicate_work",
)


def all_recorded() -> list[Trace]:
    """Every recording of the tests and examples that has a dispatch, each once."""
    found: dict[bytes, Trace] = {}
    for path in recordings():
        try:
            traces = baton.load_traces(path)
        except InputError:
            continue
        for trace in traces:
            if any(turn.dispatches for turn in trace.turns):
                bare = msgspec.structs.replace(trace, source=Source(format=""))
                found.setdefault(msgspec.json.encode(bare), trace)
    return list(found.values())


def by_dispatch(scores: list[Score]) -> dict[tuple[str, str], Score]:
    """The scores of dispatches, by evaluator and dispatch."""
    return {(s.evaluator, s.subject[0]): s for s in scores if len(s.subject) == 1}


@pytest.mark.heavy
def test_a_drafted_dispatch_gets_the_verdict_that_the_recording_gets(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    told: list[str] = []
    for number, trace in enumerate(all_recorded()):
        ids = [made.id for turn in trace.turns for made in turn.dispatches]
        file = tmp_path / f"{number}.json"
        moments = [dispatch_case(trace, id_) for id_ in ids]
        written = [
            {"id": c.id, "dispatch": dispatch_data(c.dispatch)} for c in moments if c.dispatch
        ]
        file.write_bytes(msgspec.json.encode({"cases": written}))
        whole = by_dispatch(baton.score(trace, evaluators=list(VERDICTS)).results[0].scores)
        results = baton.score(file, evaluators=list(VERDICTS)).results
        assert len(results) == len(ids)
        for id_, result in zip(ids, results, strict=True):
            own = by_dispatch(result.scores)
            assert {subject for _, subject in own} <= {id_}
            for name in VERDICTS:
                one, other = own.get((name, id_)), whole.get((name, id_))
                # A return, and one known from order alone, is judged in neither.
                if one is None or other is None:
                    assert one is other, (trace.source.location, id_, name)
                    continue
                if (one.status, one.value) == (other.status, other.value):
                    counts["equal"] += 1
                    continue
                assert one.status == "skipped", (trace.source.location, id_, one, other)
                told.append(f"{trace.source.location} {id_} {name}: {one.reason}")
    assert counts["equal"] > 2_000
    assert told == []


HAND = """
    cases:
    - id: decided
      dispatch:
        context:
        - user: refund order 7
        - agent: desk
          calls: [{tool: look_up, arguments: {order: '7'}, result: {order: '7', total: 40}}]
        call: {from: desk, to: refunds, tool: ask, prompt: Refund order 7, result: paid 40,
          tools: [look_up], tools_source: definition}
        child:
          said:
          - agent: refunds
            calls: [{tool: pay_back, arguments: {order: '7', amount: 40}, result: paid 40}]
        next: [{agent: desk, said: I paid 40 back.}]
        expect: {to: [refunds], prompt_contains: ['7']}
    - id: sent-wrong
      dispatch:
        context: [{user: refund order 7}]
        call: {from: desk, to: billing, prompt: Refund order 9}
        expect: {to: [refunds]}
"""


def test_a_case_that_is_written_by_hand_is_scored_as_far_as_it_tells(tmp_path: Path) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text(dedent(HAND))
    decided, wrong = baton.score(file).results
    assert {s.evaluator: s.status for s in decided.scores} == {
        "dispatch_routing": "passed",
        "dispatch_target_known": "passed",
        "dispatch_scope": "failed",
        "dispatch_completed": "passed",
        "context_carried": "passed",
        "result_used": "skipped",
        "handoff_loops": "skipped",
        "announced_dispatch": "skipped",
        "claims_supported": "skipped",
    }
    verdicts = {s.evaluator: s for s in wrong.scores}
    assert verdicts["dispatch_routing"].status == "failed"
    assert "expected a dispatch to `refunds`, but it went to `billing`" in (
        verdicts["dispatch_routing"].reason
    )
    # Nothing is said of a result: that is no empty one.
    assert verdicts["dispatch_completed"].status == "skipped"


@pytest.mark.heavy
def test_a_recording_meets_the_case_of_its_dispatch_and_is_asked_about_that_alone() -> None:
    trace = next(t for t in all_recorded() if sum(len(n.dispatches) for n in t.turns) > 2)
    made = trace.turns[-1].dispatches[-1]
    case = dispatch_case(trace, made.id, id=trace.id)
    (result,) = baton.score(trace, [case], ["dispatch_completed"]).results
    assert {subject for score in result.scores for subject in score.subject} <= {made.id}


def test_a_set_of_ordinary_cases_is_still_no_recording(tmp_path: Path) -> None:
    file = tmp_path / "cases.yaml"
    file.write_text("cases: [{id: a, input: hi}]")
    with pytest.raises(InputError, match="is a dataset, not a recording"):
        baton.score(file)

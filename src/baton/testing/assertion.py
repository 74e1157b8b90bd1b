"""Check a run against what should have happened: ``assert_passes``, or a single ``verdict``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from baton.model import Case, CaseResult, Evaluation, Evaluator, InputError, Score, Trace
from baton.model.visible import visible, visible_line, without_commands
from baton.readers import load_traces
from baton.reports.terminal import failure_text
from baton.session.prepare import load_inputs
from baton.session.score import score

Runs = Trace | CaseResult | Evaluation | str | os.PathLike[str]
Expected = Case | str | os.PathLike[str]


def assert_passes(
    trace: Runs,
    case: Expected | None = None,
    evaluators: Iterable[Mapping[str, Any] | Evaluator | str] | None = None,
    **options: Any,
) -> None:
    """Raise an error that states what went wrong, unless the run passes.

    Args:
        trace: a run, the path of a recording, or an existing result or evaluation.
        case: what should have happened, or the path of a dataset (``cases.yaml:refund``). A run
            is compared with a single case even if their ids differ.
        evaluators: as for :func:`baton.score`; the default is what the case states.
        options: other options of :func:`baton.score`: ``pass_rule``, ``prices``,
            ``agent_names``, ``trust``.

    Raises:
        AssertionError: a case failed, or could not be evaluated.
        InputError: a file or an option has errors.
    """
    __tracebackhide__ = True
    if isinstance(trace, CaseResult | Evaluation):
        if case is not None or evaluators is not None or options:
            raise InputError("a result has been scored already: give it alone, or give its trace")
        results: Sequence[CaseResult] = [trace] if isinstance(trace, CaseResult) else trace.results
        problems = [] if isinstance(trace, CaseResult) else trace.problems
        if isinstance(trace, CaseResult) and trace.status == "skipped":
            problems = [nothing_scored(trace)]
    else:
        if case is None:
            evaluation = score(trace, None, evaluators, **options)
        else:
            cases = load_inputs(None, [case]).dataset
            assert cases is not None  # noqa: S101 - a case or a path is given
            traces = [trace] if isinstance(trace, Trace) else load_traces(trace, redact=False)
            if len(cases) == 1 and len(traces) == 1:
                traces = [msgspec.structs.replace(traces[0], case=cases.ids[0])]
            evaluation = score(traces, cases, evaluators, by_cases=True, **options)
        results, problems = evaluation.results, evaluation.problems
    failed = failures(results, problems)
    if failed:
        raise AssertionError(failed)


def verdict(
    evaluator: str | Evaluator,
    trace: Trace,
    case: Case | None = None,
    **options: Any,
) -> Score:
    """Return the only score that one evaluator gives a trace.

    Args:
        evaluator: a name (``"agent_chain"``), with ``options`` as its options, or an object.
        trace: the trace; it is compared with the case even if their ids differ.
        case: what should have happened; not needed if the record alone proves the verdict.
        options: options of the evaluator; ``agent_names`` and ``prices`` are those of
            :func:`baton.score`.

    Raises:
        InputError: an unknown evaluator or option.
        ValueError: the evaluator gave no score, or several.
    """
    scores = verdicts(evaluator, trace, case, **options)
    if len(scores) != 1:
        raise ValueError(f"{evaluator} gave {len(scores)} scores, not one: use `verdicts`")
    return scores[0]


def verdicts(
    evaluator: str | Evaluator,
    trace: Trace,
    case: Case | None = None,
    **options: Any,
) -> list[Score]:
    """Return every score that one evaluator gives a trace; see :func:`verdict`."""
    shared = {name: options.pop(name, None) for name in ("agent_names", "prices")}
    spec = {"type": evaluator, "config": options} if isinstance(evaluator, str) else evaluator
    if case is not None:
        trace = msgspec.structs.replace(trace, case=case.id)
    cases = None if case is None else [case]
    evaluation = score(trace, cases, [spec], redact=False, **shared)
    return evaluation.results[0].scores


def nothing_scored(result: CaseResult) -> str:
    """Return why no evaluator scored a case that was skipped."""
    why = next((score.reason for score in result.scores), "there is no evaluator")
    return f"`{result.case_id}`: nothing was scored: {why}"


def failures(results: Sequence[CaseResult], problems: Sequence[str] = ()) -> str:
    """Return a description of what did not pass; empty if everything passed."""
    repeats = max((result.repeat for result in results), default=0) + 1
    bad = [result for result in results if result.status not in ("passed", "skipped")]
    texts = [failure_text(result, repeats=repeats) for result in bad]
    lines = [*texts, *(f"! {visible_line(problem)}" for problem in problems)]
    # pytest prints this unchanged, in a terminal or in the log of a build.
    return without_commands(visible("\n\n".join(lines)))

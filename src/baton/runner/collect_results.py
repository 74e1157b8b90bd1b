"""Collects results as they arrive, and sums them up."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, Protocol, Self

from baton.gate.read_thresholds import NOTHING, Decision
from baton.model import (
    OTHER_CONTENT,
    OTHER_KEYS,
    STATUSES,
    UNKNOWN_KEY,
    AgentCard,
    AgentCounts,
    AgentsSeen,
    CaseResult,
    Dropped,
    EfficiencySums,
    Evaluation,
    EvaluatorCounts,
    FailedAt,
    Provenance,
    RoutingCounts,
    Status,
    counted,
    few_kinds,
)
from baton.store import (
    Encoded,
    EvaluationWriter,
    FolderStatus,
    IndexRow,
    Kept,
    StoredEvaluation,
    read_evaluation,
    row_of,
    rows_of,
    timings_of,
)

from .look_first import look_first
from .plan import Plan


class Tally:
    """Counts of cases and scores, and the verdict over all of them."""

    def __init__(self, plan: Plan, planned: int | None = None) -> None:
        """Count results; ``planned`` is the final number."""
        self._planned = planned
        self.evaluators = {
            name: EvaluatorCounts(
                evaluator=name, type=planned.evaluator.type, optional=planned.optional
            )
            for name, planned in plan.all_evaluators.items()
        }
        self.cases: dict[Status, int] = dict.fromkeys(STATUSES, 0)
        self._unit = "case"
        self.routing = RoutingCounts()
        self.efficiency = EfficiencySums()
        self.by_agent = AgentCounts(plan.gate.lower)
        self.agents = AgentsSeen()
        self._why: dict[str, str] = {}
        self._failed_at: Counter[FailedAt] = Counter()
        self._dropped: dict[str, Dropped] = {}
        self.contents: list[str] = []

    def add(self, result: CaseResult) -> None:
        """Count a result and its scores."""
        self.cases[result.status] += 1
        self._count_repeat(result.repeat)
        self.routing.add(result.routing)
        self.efficiency.add(result.efficiency)
        self.by_agent.add(result.by_agent, result.case_id, result.repeat)
        if result.trace is not None:
            self.agents.add(result.trace.agents)
            self.lose(few_kinds(result.trace.dropped))
        if result.efficiency is not None:
            self.agents.add_models(result.efficiency.models)
        self._fail(result.failed_at())
        if result.content is not None:
            self.contents.append(result.content)
        for score in result.scores:
            self.evaluators[score.evaluator].add(score.status)
            if score.value is None:
                self._why.setdefault(score.evaluator, score.reason)

    def add_row(self, row: IndexRow, reasons: Mapping[str, str]) -> None:
        """Count a result that was written earlier, or by another process.

        ``reasons`` says, by evaluator, why it scored nothing.
        """
        self.cases[row.status] += 1
        self._count_repeat(row.repeat)
        self.routing.add(row.routing)
        self.efficiency.add(row.efficiency)
        self.by_agent.add(row.by_agent, row.case_id, row.repeat)
        if row.efficiency is not None:
            self.agents.add_models(row.efficiency.models)
        self._fail(row.failed_at)
        self.lose(row.dropped)
        if row.content is not None:
            self.contents.append(row.content)
        for score in row.scores:
            self.evaluators[score.evaluator].add(score.status)
        for name, reason in reasons.items():
            self._why.setdefault(name, reason)

    def lose(self, dropped: Iterable[Dropped], by: int = 1) -> None:
        """Count what the reader of a trace could not place."""
        for each in dropped:
            # A recording may have any number of unknown keys; reports name five kinds.
            is_counted = each.what in self._dropped or len(self._dropped) < _MOST_COUNTED
            is_key = each.what.startswith(UNKNOWN_KEY)
            what = each.what if is_counted else OTHER_KEYS if is_key else OTHER_CONTENT
            known = self._dropped.setdefault(what, Dropped(what=what, count=0))
            known.count += each.count * by
            known.example = known.example or each.example

    def lost(self) -> list[str]:
        """Say what was not read, as verdicts know nothing of it: a file that is truncated."""
        every = [each for each in self._dropped.values() if each.count > 0]
        every.sort(key=lambda each: each.what in (OTHER_CONTENT, OTHER_KEYS))  # named ones first
        keys = [each for each in every if each.what.startswith(UNKNOWN_KEY)]
        content = [each for each in every if not each.what.startswith(UNKNOWN_KEY)]
        notices = []
        for each in content[:_KINDS]:
            such_as = f", such as {each.example[:_PLACE]}" if each.example else ""
            count = f"{counted(each.count, 'time')}{such_as}"
            notices.append(f"not read, so not scored: {each.what} ({count})")
        if left := len(content[_KINDS:]):
            more = f"{_over(content)}{counted(left, 'more kind')}"
            notices.append(f"not read, so not scored: content of {more}")
        if keys:
            # A new version of a framework adds some: that is no reason to distrust a verdict.
            names = ", ".join(each.what.removeprefix(UNKNOWN_KEY) for each in keys[:_KINDS])
            left = len(keys[_KINDS:])
            also = f" and {_over(keys)}{left} more" if left else ""
            said = "an unknown key was ignored, and changes"
            if len(keys) > 1:
                said = "unknown keys were ignored, and change"
            notices.append(f"{said} no verdict: {names}{also}")
        return notices

    def lacks_reason(self, row: IndexRow) -> bool:
        """Tell whether a row has a score without a value or a known reason of its evaluator."""
        return any(one.value is None and one.evaluator not in self._why for one in row.scores)

    def excuse(self) -> None:
        """Do not report planned cases that were not run: the run was stopped on request."""
        self._planned = None

    def take_back(self, earlier: IndexRow) -> None:
        """Remove a result."""
        self.cases[earlier.status] -= 1
        self.routing.add(earlier.routing, -1)
        self.efficiency.add(earlier.efficiency, -1)
        self.by_agent.take_back(earlier.by_agent, earlier.case_id, earlier.repeat)
        self._fail(earlier.failed_at, -1)
        self.lose(earlier.dropped, -1)
        if earlier.content is not None:
            self.contents.remove(earlier.content)
        for score in earlier.scores:
            self.evaluators[score.evaluator].add(score.status, -1)

    def _count_repeat(self, repeat: int) -> None:
        """Count results instead of cases in messages as soon as a case has two."""
        if repeat:
            self._unit = "result"

    def _fail(self, places: Sequence[FailedAt], by: int = 1) -> None:
        """Count failures, in memory that is bounded for hostile traces."""
        for at in places:
            is_counted = at in self._failed_at or len(self._failed_at) < _MOST_COUNTED
            self._failed_at[at if is_counted else FailedAt(at.evaluator)] += by

    def look_first(self) -> list[str]:
        """Say where most failures are if few cases passed; otherwise nothing."""
        passed, failed = self.cases["passed"], self.cases["failed"]
        advice = look_first(passed, passed + failed, +self._failed_at, self._unit)
        return [] if advice is None else [advice]

    def problems(self, decision: Decision = NOTHING) -> list[str]:
        """Say what could not be evaluated as requested, without errors that a gate allows."""
        problems = []
        total = sum(self.cases.values())
        if self.cases["error"] and not decision.on_errors:
            problems.append(
                f"{self.cases['error']} of {counted(total, self._unit)} could not be evaluated"
            )
        if self._planned is not None and total < self._planned:
            problems.append(
                f"{self._planned - total} of {counted(self._planned, f'planned {self._unit}')} "
                f"{'was' if self._planned == 1 else 'were'} not run"
            )
        if not total:
            problems.append("there was nothing to score")
        # If the only case of five evaluators is an error, its reason is written once.
        silent: dict[tuple[str | None, ...], list[EvaluatorCounts]] = {}
        for counts in self.evaluators.values():
            asked = counts.skipped + counts.error or not self.cases["error"]
            if not counts.scored and not counts.optional and total and asked:
                why = self._why.get(counts.evaluator)
                by_error = why is not None and counts.error and not counts.skipped
                key = (why, str(counts.error)) if by_error else (counts.evaluator,)
                silent.setdefault(key, []).append(counts)
        problems += [self._scored_nothing(same) for same in silent.values()]
        if total and not problems and not any(c.scored for c in self.evaluators.values()):
            problems.append("no evaluator scored anything")
        return [*problems, *decision.problems()]

    def _scored_nothing(self, same: Sequence[EvaluatorCounts]) -> str:
        """Say that evaluators scored nothing, for one reason."""
        first = same[0]
        names = ", ".join(f"`{counts.evaluator}`" for counts in same)
        each, mark = (" each", "them") if len(same) > 1 else ("", "it")
        why = self._why.get(first.evaluator)
        return (
            f"{names} scored nothing: {first.skipped} skipped, {counted(first.error, 'error')}"
            f"{each} (mark {mark} `optional: true` if that is fine)"
            + (f"; the first: {why}" if why else "")
        )

    def status(self, decision: Decision = NOTHING) -> Literal["passed", "failed", "error"]:
        """Return the verdict: an error outranks a failure.

        If the gate says how many cases may fail, failed cases count only there.
        """
        if self.problems(decision):
            return "error"
        failed = self.cases["failed"] and not decision.on_cases
        return "failed" if failed or decision.missed else "passed"


def _over(kinds: Sequence[Dropped]) -> str:
    """Return "over " if one of the kinds stands for any number of others."""
    return "over " if any(each.what in (OTHER_CONTENT, OTHER_KEYS) for each in kinds) else ""


_MOST_COUNTED = 1000
"""Kinds of unread content, and places of failures, that are counted one by one; the others are
counted together. A recording may have any number of them, and counts are kept in memory."""
_PLACE = 300
"""The most characters of an example: most are the path of a file and a line."""
_KINDS = 5
"""The most kinds of content for which a report says that they were not read."""


class Results(Protocol):
    """Accepts results in any order; the last one of a case and repeat counts."""

    def add(self, result: CaseResult) -> None:
        """Add one result."""


class FolderResults:
    """Writes each result at once, and the verdict at the end."""

    def __init__(
        self,
        plan: Plan,
        writer: EvaluationWriter,
        input_problems: Sequence[str] = (),
        planned: int | None = None,
        kept: Kept | None = None,
    ) -> None:
        """Take a folder's existing results from ``kept``."""
        self._plan = plan
        self._writer = writer
        self._tally = Tally(plan, planned)
        self._input_problems = input_problems
        self._notices: list[str] = []
        if kept is not None:
            stored: StoredEvaluation | None = None
            for agents in kept.catalogs:
                self._tally.agents.add(agents)
            for row in kept.rows():
                reasons: dict[str, str] = {}
                if self._tally.lacks_reason(row):
                    stored = stored or read_evaluation(kept.folder)
                    reasons = {
                        score.evaluator: score.reason
                        for score in stored.result(row).scores
                        if score.value is None
                    }
                self._tally.add_row(row, reasons)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        provenance = self._writer.provenance.with_agents(self._tally.agents.hashes())
        provenance = provenance.with_recordings(self._tally.contents)
        decision = _decided(self._plan, lambda: rows_of(self._writer.folder), provenance)
        if kind is not None:
            self._finish("interrupted", decision, provenance)
        elif self._input_problems:
            self._finish("error", decision, provenance)
        else:
            self._finish(self._tally.status(decision), decision, provenance)

    def add(self, result: CaseResult) -> None:
        """Write and count one result."""
        earlier = self._writer.write(result)
        if earlier is not None:
            self._tally.take_back(earlier)
        self._tally.add(result)

    def add_written(self, result: Encoded, reasons: Mapping[str, str]) -> None:
        """Write and count a result from another process; its case has no earlier one."""
        self._tally.add_row(self._writer.write_encoded(result), reasons)

    def see(self, agents: Iterable[Mapping[str, AgentCard]]) -> None:
        """Add the agents of traces that another process read."""
        for each in agents:
            self._tally.agents.add(each)

    def note(self, notes: Sequence[str], *, stopped: bool = False) -> None:
        """Add notes for the report; with ``stopped``, cases that were not run are no problem."""
        self._notices += notes
        if stopped:
            self._tally.excuse()

    def _finish(self, status: FolderStatus, decision: Decision, provenance: Provenance) -> None:
        self._writer.finish(
            status,
            evaluators=list(self._tally.evaluators.values()),
            cases=self._tally.cases,
            problems=[*self._input_problems, *self._tally.problems(decision)],
            routing=self._tally.routing.cells(),
            efficiency=self._tally.efficiency,
            by_agent=self._tally.by_agent.sums(),
            gate=decision.results,
            provenance=provenance,
            notices=[*self._notices, *self._tally.lost(), *self._tally.look_first()],
        )


class MemoryResults:
    """Keeps all results."""

    def __init__(self, plan: Plan, planned: int | None = None) -> None:
        self._started = time.time()
        self._plan = plan
        self._planned = planned
        self._notices: list[str] = []
        self._stopped = False
        self._last: dict[tuple[int, int], CaseResult] = {}

    def add(self, result: CaseResult) -> None:
        """Keep one result."""
        self._last[result.position, result.repeat] = result

    def note(self, notes: Sequence[str], *, stopped: bool = False) -> None:
        """Add notes for the report; with ``stopped``, cases that were not run are no problem."""
        self._notices += notes
        self._stopped = self._stopped or stopped

    def evaluation(self, name: str, notices: Sequence[str] = ()) -> Evaluation:
        """Sum up; results are in the order of the dataset, repeats of a case together."""
        tally = Tally(self._plan, None if self._stopped else self._planned)
        for result in self._last.values():
            tally.add(result)
        results = [self._last[key] for key in sorted(self._last)]
        seen = tally.agents.hashes()
        provenance = (self._plan.provenance or Provenance()).with_agents(seen)
        provenance = provenance.with_recordings(tally.contents)
        decision = _decided(
            self._plan,
            lambda: map(row_of, results),
            provenance,
        )
        return Evaluation(
            name=name,
            status=tally.status(decision),
            results=results,
            evaluators=list(tally.evaluators.values()),
            problems=tally.problems(decision),
            notices=[*notices, *self._notices, *tally.lost(), *tally.look_first()],
            routing=tally.routing.cells(),
            efficiency=tally.efficiency,
            by_agent=tally.by_agent.sums(),
            gate=decision.results,
            timings=timings_of(self._started),
        )


def _decided(
    plan: Plan, rows: Callable[[], Iterable[IndexRow]], provenance: Provenance
) -> Decision:
    """Decide by the gate, if there is one; its modules are imported only for that."""
    if not plan.gate:
        return NOTHING
    from baton.gate.decide import decide

    return decide(plan.gate, rows(), provenance)

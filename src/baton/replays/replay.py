"""Plays recorded moments again, unchanged and with changed texts, and compares by case.

:func:`replay` proves fixes, scores candidates of optimisers, and is used by `baton replay`::

    moments = Moments(cases, make, plan)
    as_it_is = await replay(moments)
    changed = await replay(moments, {"agent:desk": "You are ..."})

The unchanged play is shared by all changes of the same moments.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from baton.changed_texts import changes_of
from baton.datasets.recorded_dispatches import recorded_trace
from baton.gate.compare_axes import PASSED, Comparison, compare_all
from baton.gate.snapshot import SnapshotBuilder
from baton.model import (
    Case,
    CaseResult,
    ChangedText,
    Dataset,
    Evaluation,
    InputError,
    Location,
    ProviderError,
    RunOptions,
    Status,
    suggestion,
)
from baton.model.option_spelling import option
from baton.providers.base_provider import ConfiguredProvider
from baton.runner.live import OnResult, evaluate_in_memory
from baton.runner.loop import entered
from baton.runner.plan import Plan
from baton.runner.recorded import score_in_memory
from baton.stats.intervals import Estimate, share
from baton.store import row_of

from .cases import answered_tools, safe, states_something
from .outcome import Seen, differences, recorded_in, seen_in

MakeProvider = Callable[[Mapping[str, str]], ConfiguredProvider[Any]]
"""Builds a provider with changed texts; a new one each time, not entered yet."""

_WORK = ("dispatch", "run", "tool_call")
"""Units that a case may not have."""

CaseOutcome = Literal["fixed", "broken", "passes", "fails", "no verdict", "error"]
"""The outcome of a case. ``fixed``: it fails unchanged, and passes changed in each repeat.
``broken``: it passes unchanged in each repeat, and fails changed. ``passes`` and ``fails``: both
sides are equal, or there is only one. ``no verdict``: there are no expectations. ``error``: a play
broke, on either side; it counts in no rate."""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """``count`` of cases, and the share with its 95 % interval; ``None`` without cases."""

    count: int
    of: int
    share: Estimate | None

    @classmethod
    def among(cls, count: int, of: int) -> Counted:
        """Count some of ``of`` cases."""
        return cls(count=count, of=of, share=share(count, of))

    def __str__(self) -> str:
        if self.share is None:
            return f"{self.count} of {self.of}"
        return f"{self.count} of {self.of} [{self.share.low:.2f}, {self.share.high:.2f}]"


class ReplayedCase(msgspec.Struct, kw_only=True):
    """A case with all its plays, each repeat separately, and the recorded result.

    ``differs`` describes for each repeat of the judged side the difference from the recording; an
    empty text means none. It is ``None`` if the recording has nothing to compare, or the play
    broke.
    """

    id: str
    form: str
    outcome: CaseOutcome
    where: Location | None = None
    tags: list[str] = msgspec.field(default_factory=list)
    recorded: Seen | None = None
    unchanged: list[Seen] = msgspec.field(default_factory=list)
    changed: list[Seen] = msgspec.field(default_factory=list)
    differs: list[str | None] = msgspec.field(default_factory=list)


class Replayed(msgspec.Struct, kw_only=True):
    """The result of playing moments again.

    Args:
        changes: the changed texts; none for an unchanged play.
        cases: each case, in order.
        fixed: cases that fail unchanged in at least one repeat, and pass changed in each repeat.
        broke: cases that pass unchanged in each repeat, and fail changed in some.
        as_recorded: cases with a comparable recording that each unchanged repeat reproduces.
        comparison: the two sides by axis, paired by case; ``None`` without a change, or if no case
            has a verdict on both.
        unchanged: the results of the unchanged play, with traces and scores.
        changed: the results of playing with the change.
    """

    changes: list[ChangedText]
    cases: list[ReplayedCase]
    fixed: Counted
    broke: Counted
    as_recorded: Counted
    comparison: Comparison | None
    unchanged: Evaluation
    changed: Evaluation | None = None

    @property
    def errors(self) -> list[ReplayedCase]:
        """The cases with a broken play."""
        return [case for case in self.cases if case.outcome == "error"]

    @property
    def status(self) -> Status:
        """The verdict on the requested side: the changed one, if something is changed.

        An error outranks a failure; ``skipped`` if no case has a verdict.
        """
        if self.errors or not self.cases:
            return "error"
        judged = [case.unchanged if self.changed is None else case.changed for case in self.cases]
        if any(map(_fails, judged)):
            return "failed"
        return "passed" if any(map(_passes, judged)) else "skipped"


class Moments:
    """Cases to play again, and how; the unchanged play is kept for all changes.

    Args:
        cases: dispatch cases, conversations (see :mod:`baton.replays.cases`), or any other case.
            Only ``live_tools`` run.
        make: builds a provider with changed texts.
        plan: the evaluators.
        options: repeats, concurrency, the time limit of a case. ``max_agent_cost`` applies to all
            plays of these moments together.
        name: the name of the evaluations.
        live_tools: tools that really run.
        recorded: the recordings of cases that do not contain them, by id.
        by_cases: the plan was chosen by what the cases state. A case that states nothing can fail
            by what its record proves, but passing means nothing: it has no verdict then.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        make: MakeProvider,
        plan: Plan,
        options: RunOptions | None = None,
        *,
        name: str = "replay",
        live_tools: Sequence[str] = (),
        recorded: Mapping[str, Seen] | None = None,
        by_cases: bool = False,
    ) -> None:
        self.cases = list(cases)
        self.dataset = Dataset([safe(case, live_tools) for case in cases], name=name)
        self.make = make
        self.plan = plan
        self.options = options or RunOptions()
        self.live_tools = list(live_tools)
        self.recorded = dict(recorded or {})
        self.silent = {case.id for case in self.cases if by_cases and not states_something(case)}
        self.spent = 0.0
        self._unchanged: Evaluation | None = None
        self._texts: tuple[dict[str, str], set[str]] | None = None
        self._scored: dict[int, CaseResult] | None = None

    @property
    def types(self) -> dict[str, str]:
        """The type of each evaluator, by its name."""
        planned = self.plan.all_evaluators
        return {name: each.evaluator.type for name, each in planned.items()}

    @property
    def of_work(self) -> set[str]:
        """Evaluators, by name, of single dispatches, runs or calls: silent without any."""
        planned = self.plan.all_evaluators
        return {name for name, each in planned.items() if each.evaluator.unit in _WORK}

    async def texts(self) -> dict[str, str]:
        """Return the current texts that may be changed, by name.

        Raises:
            InputError: there are none; says what to do.
        """
        texts, _ = await self.known()
        return texts

    async def check(self, changed: Mapping[str, str]) -> list[ChangedText]:
        """Check changes and the names of live tools before anything is played.

        Raises:
            InputError: there is no such text or tool, or a text breaks something.
        """
        if self.live_tools:
            await self._check_tools()
        if not changed:
            return []
        texts, tools = await self.known()
        return changes_of(texts, changed, tools)

    async def play(self, changed: Mapping[str, str]) -> Evaluation:
        """Play and score all cases with changed texts; the unchanged play is done once."""
        if not changed and self._unchanged is not None:
            return self._unchanged
        played = await self._play(changed, self.dataset, lambda _: None)
        if not changed:
            self._unchanged = played
        return played

    def repeat_each(self, times: int) -> None:
        """Play each case so often from now on."""
        self.options = msgspec.structs.replace(self.options, repeat=times)

    async def play_some(
        self, changed: Mapping[str, str], cases: Collection[str], on_result: OnResult
    ) -> Sequence[CaseResult]:
        """Play and score some of the cases, by id, with changed texts; nothing is kept.

        ``on_result`` is called with each result.
        """
        chosen = [case for case in self.dataset if case.id in cases]
        dataset = Dataset(chosen, name=self.dataset.name)
        return (await self._play(changed, dataset, on_result)).results

    async def _play(
        self, changed: Mapping[str, str], dataset: Dataset, on_result: OnResult
    ) -> Evaluation:
        limit = self.options.max_agent_cost
        left = None if limit is None else max(limit - self.spent, 0.0)
        options = msgspec.structs.replace(self.options, max_agent_cost=left)
        provider = self.make(changed)
        played = await evaluate_in_memory(
            self.plan, provider, dataset, options, dataset.name, on_result
        )
        costs = (each.efficiency.cost_usd for each in played.results if each.efficiency is not None)
        self.spent += sum(cost for cost in costs if cost is not None)
        return played

    def scored(self) -> dict[int, CaseResult]:
        """Score the recordings of dispatch cases, by their places; done once.

        No judge is called: if the plan needs one, the result is empty.
        """
        if self._scored is None:
            moments = [case for case in self.cases if case.dispatch is not None]
            self._scored = {}
            if moments and not self.plan.needs_judge:
                traces = [recorded_trace(case) for case in moments]
                results = score_in_memory(self.plan, traces, self.dataset, self.dataset.name)
                with_trace = (each for each in results.results if each.trace is not None)
                self._scored = {each.position: each for each in with_trace}
        return self._scored

    async def known(self) -> tuple[dict[str, str], set[str]]:
        """Return the texts that may be changed, and the names of tools; raises InputError."""
        if self._texts is None:
            texts, tools = await texts_of(self.make({}))
            self._texts = texts, tools | answered_tools(self.cases)
        return self._texts

    async def _check_tools(self) -> None:
        async with entered(provider := self.make({})):
            tools = await provider.tools()
        known = tools | answered_tools(self.cases)
        for name in self.live_tools:
            if name not in known:
                hint = suggestion(name, known) or "the recording has none"
                raise InputError(f"{option('live_tools')}: no tool `{name}`; {hint}")


async def replay(moments: Moments, changed: Mapping[str, str] | None = None) -> Replayed:
    """Play moments again, unchanged and with changed texts, and compare both by case.

    Every tool is answered from the recording; if a play calls another one, that is an error that
    names the tool. The two sides are played one after the other; repeats of a case stay together.

    Args:
        moments: what to play, and how.
        changed: new texts by the name of the component; without any, only the unchanged side is
            played.

    Raises:
        InputError: there is no such text, or the change breaks something; or the cases cannot be
            played with this provider. Nothing is played then.
    """
    texts = dict(changed or {})
    changes = await moments.check(texts)
    unchanged = await moments.play({})
    other = await moments.play(texts) if texts else None
    return _compared(moments, changes, unchanged, other)


async def texts_of(provider: ConfiguredProvider[Any]) -> tuple[dict[str, str], set[str]]:
    """Return the components of a provider that is not entered yet, and the names of its tools.

    Raises:
        InputError: it has none that can be changed; says what to do.
    """
    async with entered(provider):
        try:
            texts = await provider.components()
        except ProviderError as error:
            raise InputError(str(error)) from error
        tools = await provider.tools()
    if not texts:
        raise InputError(
            "the program has no texts that can be changed: have it ask for them, as in "
            '`baton.prompts.get("agent:desk", "You are ...")`, or name files with `prompts:`'
        )
    named = (name.removeprefix("tool:") for name in texts if name.startswith("tool:"))
    return texts, {*tools, *named}


def _compared(
    moments: Moments,
    changes: list[ChangedText],
    unchanged: Evaluation,
    changed: Evaluation | None,
) -> Replayed:
    before, after = _by_case(unchanged), _by_case(changed) if changed is not None else {}
    scored = moments.scored()
    cases = [
        _case(
            case,
            recorded_in(case, scored.get(place)) or moments.recorded.get(case.id),
            before.get(place, []),
            after.get(place, []) if changed is not None else None,
            is_silent=case.id in moments.silent,
        )
        for place, case in enumerate(moments.cases)
    ]
    outcomes = [case.outcome for case in cases]
    failing = sum(_fails(each.unchanged) for each in cases if each.outcome != "error")
    passing = sum(_passes(each.unchanged) for each in cases if each.outcome != "error")
    comparable = [each for each in cases if each.recorded is not None and each.unchanged]
    same = [_as_recorded(each) for each in comparable]
    left_out = {case.id for case in cases if case.outcome in ("error", "no verdict")}
    return Replayed(
        changes=changes,
        cases=cases,
        fixed=Counted.among(outcomes.count("fixed"), failing),
        broke=Counted.among(outcomes.count("broken"), passing),
        as_recorded=Counted.among(same.count(True), len(same) - same.count(None)),
        comparison=None if changed is None else _paired(unchanged, changed, moments.plan, left_out),
        unchanged=unchanged,
        changed=changed,
    )


def _by_case(evaluation: Evaluation) -> dict[int, list[CaseResult]]:
    by_case: dict[int, list[CaseResult]] = {}
    for result in evaluation.results:
        by_case.setdefault(result.position, []).append(result)
    return by_case


def _case(
    case: Case,
    recorded: Seen | None,
    before: Sequence[CaseResult],
    after: Sequence[CaseResult] | None,
    *,
    is_silent: bool,
) -> ReplayedCase:
    unchanged = [seen_in(case, result) for result in before]
    changed = [seen_in(case, result) for result in after or ()]
    judged = unchanged if after is None else changed
    for seen in (*unchanged, *changed, *([recorded] if recorded is not None else [])):
        if is_silent and seen.status == "passed":
            seen.status = "skipped"
    return ReplayedCase(
        id=case.id,
        form=case.dispatch.form if case.dispatch is not None else "conversation",
        outcome=_outcome(unchanged, None if after is None else changed),
        where=case.where,
        tags=case.tags,
        recorded=recorded,
        unchanged=unchanged,
        changed=changed,
        differs=[None if recorded is None else differences(recorded, each) for each in judged],
    )


def _passes(plays: Sequence[Seen]) -> bool:
    return bool(plays) and all(each.status == "passed" for each in plays)


def _fails(plays: Sequence[Seen]) -> bool:
    return any(each.status == "failed" for each in plays)


def _outcome(unchanged: Sequence[Seen], changed: Sequence[Seen] | None) -> CaseOutcome:
    sides = [unchanged] if changed is None else [unchanged, changed]
    if any(not side or any(each.status == "error" for each in side) for side in sides):
        return "error"
    last = sides[-1]
    if not any(_passes(side) or _fails(side) for side in sides):
        return "no verdict"
    if changed is not None and _fails(unchanged) and _passes(last):
        return "fixed"
    if changed is not None and _passes(unchanged) and _fails(last):
        return "broken"
    if _fails(last):
        return "fails"
    return "passes" if _passes(last) else "no verdict"


def _as_recorded(case: ReplayedCase) -> bool | None:
    """Tell whether every unchanged repeat did what was recorded; ``None`` if unknown."""
    assert case.recorded is not None  # noqa: S101 - the caller has looked
    differing = [differences(case.recorded, each) for each in case.unchanged]
    if any(text is None for text in differing):
        return None
    return not any(differing)


def _paired(
    unchanged: Evaluation, changed: Evaluation, plan: Plan, left_out: set[str]
) -> Comparison | None:
    """Compare both sides over the cases that have a verdict in every repeat of both."""
    sides = []
    for side in (unchanged, changed):
        builder = SnapshotBuilder()
        for result in side.results:
            if result.case_id not in left_out:
                builder.add(row_of(result))
        sides.append({each.id: each.values() for each in builder.cases()})
    lower = frozenset(plan.gate.lower)
    compared = compare_all(*sides, lower_is_better=lower)
    return compared if any(axis.axis.name == PASSED for axis in compared.axes) else None

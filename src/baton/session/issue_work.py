"""Work on an issue: investigates it, proves a fix, and promotes its members to cases."""

from __future__ import annotations

import os
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, cast

import msgspec

from baton.config.judge_config import JudgeConfig, JudgeFlags, make_judge_of
from baton.datasets import load_dataset
from baton.feed.collect import Chosen, Pool
from baton.feed.failures import failures_of
from baton.feed.fixes import (
    form_of,
    kind_of_text,
    make_fix,
    playable,
    proof_of,
    texts_in,
)
from baton.feed.investigate import MEMBERS, STEPS, investigate
from baton.feed.issue_progress import Fix, Progress, Promotion
from baton.feed.issues import Issue, id_of
from baton.feed.lookup import InvestigationData
from baton.feed.promote import (
    MOST,
    PASSES,
    Made,
    conversations,
    handled_in,
    input_of,
    make_cases,
    member_of,
)
from baton.feed.taxonomy import subtype_named
from baton.model import (
    Case,
    CaseResult,
    Dataset,
    ExpectedHandling,
    Form,
    InputError,
    Judge,
    Trace,
    counted,
)
from baton.model.option_spelling import option
from baton.replays.replay import Replayed
from baton.runner.loop import run_anywhere
from baton.runner.plan import Specs, make_plan

from .agent_under_test import AgentLike, is_configured
from .components import list_components
from .convert import write_dispatch_cases
from .evaluate import EvaluateOptions
from .file_kinds import config_of
from .improve import ImproveOptions, improve
from .issues import GROUPS, MARKS, PROGRESS, Found, Opened, ProgressFolder
from .prepare import PathLike, ScoreOptions, judge_flags_of
from .replay import replay
from .report import STORED

if TYPE_CHECKING:
    from baton.judges.judge import JudgingEstimate, LlmJudge

KEPT = 20
"""Maximum members of an issue that are stored with its progress."""
TRIED = 60
"""The number of members, and of passing neighbours, that are cases of a search for a fix. A third
is held out, and with fewer than 20 held-out cases only a large gain can be proven."""
SEARCHED = 20
"""The number of texts that a search tries."""
PLAYED, BESIDE, REPEATS = 10, 30, 3
"""The numbers of members and passing neighbours that a fix is played on, and of plays of each.
With fewer, a model with random answers could prove anything."""


_NAME_THEM = "name the evaluation or the recordings that contain it"


class Place(NamedTuple):
    """Where issues and their data are stored."""

    stored: PathLike = STORED
    marks: PathLike = MARKS
    groups: PathLike = GROUPS
    progress: PathLike = PROGRESS


HERE = Place()


class _Work(NamedTuple):
    opened: Opened
    issue: Issue
    progress: Progress
    found: Found


def _begin(
    key: str,
    sources: Sequence[PathLike],
    evaluators: Specs | None,
    place: Place,
    options: ScoreOptions,
) -> _Work:
    opened = Opened(sources, evaluators, stored=place.stored, **options)
    issues = opened.issues(marks=place.marks, groups=place.groups, progress=place.progress)
    issue = issues.named(key)
    kept = issues.kept.get(issue.key) or Progress(issue=issue)
    progress = msgspec.structs.replace(kept, issue=_small(issue if issue.count else kept.issue))
    return _Work(opened, issue, progress, issues)


def _small(issue: Issue) -> Issue:
    return msgspec.structs.replace(issue, members=issue.members[:KEPT])


def investigate_issue(
    key: str,
    sources: Sequence[PathLike] = (),
    evaluators: Specs | None = None,
    *,
    agent: PathLike | None = None,
    condense: str | None = None,
    steps: int = STEPS,
    place: Place = HERE,
    **options: Unpack[ScoreOptions],
) -> Progress | JudgingEstimate:
    """Let a judge's model investigate an issue, and store the result.

    Args:
        key: the key of the issue, or its first characters.
        sources: evaluations and recordings with its failures, as for ``find_issues``.
        evaluators: the evaluators for recordings.
        agent: the agent, or a config, whose texts may be changed; by default the recorded texts.
        condense: a cheaper model for condensing long steps.
        steps: the maximum number of the model's steps, including its conclusion.
        place: where issues are stored.
        options: as for :func:`baton.score`; the model is ``judge``, or that of the ``config``.

    Returns:
        The progress of the issue; in a rehearsal the estimated usage of the investigation.

    Raises:
        InputError: an option or file with errors, no such issue, or no model to ask.
    """
    if not 1 <= steps <= STEPS:
        raise InputError(f"{option('steps')} is from 1 to {STEPS}")
    flags = judge_flags_of(options)
    scoring = options
    if flags.rehearsal:  # made-up verdicts would make up failures: unknown ones are errors
        scored = msgspec.structs.replace(flags, rehearsal=False, cache_only=True)
        scoring = {**options, "judge": scored}
    work = _begin(key, sources, evaluators, place, scoring)
    data = _data(work, agent)
    return run_anywhere(_investigated(work, data, flags, condense, steps, place, options))


async def _investigated(
    work: _Work,
    data: InvestigationData,
    flags: JudgeFlags,
    condense: str | None,
    steps: int,
    place: Place,
    options: ScoreOptions,
) -> Progress | JudgingEstimate:
    from baton.judges.judge import Rehearsal

    async with _judge_of(flags, options) as judge:
        cheaper = judge.with_options({"model": condense}) if condense is not None else None
        if flags.rehearsal:
            rehearsal = Rehearsal(judge)
            await investigate(data, rehearsal, steps=steps)
            return rehearsal.estimate(f"at most {steps} steps, without what they read")
        outcome = await investigate(data, judge, condense=cheaper, steps=steps)
    fix = outcome.fix if outcome.fix is not None else work.progress.fix
    progress = msgspec.structs.replace(work.progress, investigation=outcome, fix=fix)
    ProgressFolder(place.progress).write(progress)
    return progress


def _judge_of(flags: JudgeFlags, options: ScoreOptions) -> LlmJudge:
    named = options.get("config")
    config = config_of(named) if isinstance(named, str | os.PathLike) else named
    judging = config.judging if config is not None else JudgeConfig()
    if flags.model is None and not judging.options.get("model"):
        judge_option = option("judge", "openai:gpt-4o-mini")
        raise InputError(
            f"an investigation needs a model: give {judge_option}, or `judge:` in a config"
        )
    return make_judge_of(judging, flags, config.plan if config is not None else make_plan(None))


def _data(work: _Work, agent: PathLike | None) -> InvestigationData:
    """Collect the traces to investigate: members with different contents, and passing twins."""
    wanted = {member.id for member in work.issue.members}
    by_says: defaultdict[str, list[tuple[str, Trace]]] = defaultdict(list)
    for result, trace in work.opened.traced():
        for failure in failures_of(trace, result.scores):
            id_ = id_of(failure)
            own = by_says[input_of(trace)]
            if id_ in wanted and len(own) < MEMBERS:
                own.append((id_, trace))
    chosen: dict[str, Trace] = {}
    for number in range(MEMBERS):
        for own in by_says.values():
            if number < len(own) and len(chosen) < MEMBERS:
                chosen.setdefault(*own[number])
    if not chosen:
        raise InputError(f"no trace of a member of `{work.issue.key}` exists: {_NAME_THEM}")
    members = [(each, chosen[each.id]) for each in work.issue.members if each.id in chosen]
    inputs = {input_of(trace): place for place, (_, trace) in reversed([*enumerate(members)])}
    twins: dict[int, Trace] = {}
    for result, trace in work.opened.traced():
        place = inputs.get(input_of(trace))
        if place is not None and place not in twins and _passes(result):
            twins[place] = trace
    texts: dict[str, str] = {}
    for _, trace in members:
        texts |= texts_in(trace.agents)
    if agent is not None:
        texts |= {each.name: each.text for each in list_components(agent)}
    earlier = [each for each in work.found.kept.values() if each.investigation is not None]
    others = [each for each in earlier if each.issue.key != work.issue.key]
    return InvestigationData(work.issue, members, twins, dict(sorted(texts.items())), others)


Traced = Callable[[], Iterable[tuple[CaseResult, Trace]]]
"""Returns results with their traces; called more than once."""


class Proven(NamedTuple):
    """The progress of an issue, and the results of playing its fix."""

    progress: Progress
    replayed: Replayed


def prove_fix(
    key: str,
    sources: Sequence[PathLike] = (),
    evaluators: Specs | None = None,
    *,
    agent: PathLike | None = None,
    texts: Mapping[str, str] | None = None,
    expect: Sequence[str] | None = None,
    repeat: int = REPEATS,
    place: Place = HERE,
    **options: Unpack[ScoreOptions],
) -> Proven:
    """Play members of an issue and passing neighbours again, without and with its fix.

    The recording answers every tool call.

    Args:
        key: the key of the issue, or its first characters.
        sources: evaluations and recordings with its failures, as for ``find_issues``.
        evaluators: the evaluators for recordings.
        agent: the agent that plays, or a config; by default that of ``config``.
        texts: one changed text, by its name: a person's own fix. By default the proposed fix.
        expect: the agents that should get the work; ``[]`` for nobody.
        repeat: how often each case is played, without and with the fix.
        place: where issues are stored.
        options: as for :func:`baton.score`.

    Raises:
        InputError: no such issue or fix, a fix that cannot be played, a text that was changed
            since the fix was made, or members that cannot be judged.
    """
    target = os.fspath(agent) if agent is not None else None
    config = options.get("config")
    named = target or (os.fspath(config) if isinstance(config, str | os.PathLike) else None)
    if named is None:
        raise InputError(f"a fix is proven by playing it: name the agent with {option('agent')}")
    work = _begin(key, sources, evaluators, place, options)
    now = {each.name: each.text for each in list_components(named)}
    fix = _fix_of(work, now, texts)
    _refuse_unplayable(work.issue, fix)
    made = _made(work.issue, work.opened.traced, (), expect, PLAYED, BESIDE)
    if not made.members:
        raise InputError(f"no trace of a member of `{work.issue.key}` exists: {_NAME_THEM}")
    fix, replayed = _play(work.issue, fix, made, target, None, repeat, options)
    progress = msgspec.structs.replace(work.progress, fix=fix)
    ProgressFolder(place.progress).write(progress)
    return Proven(progress, replayed)


def prove_kept(
    issue: Issue,
    fix: Fix,
    traced: Traced,
    agent: AgentLike,
    **options: Unpack[ScoreOptions],
) -> Fix:
    """Play members of an issue and passing neighbours again, like :func:`prove_fix`.

    Args:
        issue: the issue, as stored.
        fix: the proposed fix.
        traced: returns its members and possible neighbours each time it is called.
        agent: the agent that plays; a provider of a config uses the whole config.
        options: as for :func:`baton.score`.

    Returns:
        The fix with its proof. Nothing is stored.

    Raises:
        InputError: a fix that cannot be played, or not by this agent; a text that was changed
            since the fix was made; members that do not exist or cannot be judged.
    """
    target, named, variant = _player(agent, options)
    _refuse_unplayable(issue, fix)
    texts = list_components(named, variant=variant)
    _refuse_changed(fix, {each.name: each.text for each in texts}, "investigate again")
    made = _made(issue, traced, (), None, PLAYED, BESIDE)
    if not made.members:
        raise InputError("its conversations, with what was passed on, are no longer stored")
    return _play(issue, fix, made, target, variant, REPEATS, options)[0]


def search_for_fix(
    issue: Issue,
    begun: Fix | None,
    traced: Traced,
    agent: AgentLike,
    judge: Judge,
    second: Mapping[str, Any] | None = None,
) -> Fix:
    """Search for a text that fixes an issue, like :func:`baton.improve`, and prove it.

    The cases are members of the issue and passing neighbours. The search changes the text of an
    earlier fix, else the instructions of the agent at fault: the receiver for its own work, the
    sender for how it chooses, asks and uses results.

    Args:
        issue: the issue, as stored.
        begun: the current fix, if there is one.
        traced: returns its members and possible neighbours each time it is called.
        agent: the agent that plays.
        judge: the model that proposes texts, and judges if a rubric found the issue.
        second: settings of a second model that also judges. A gain that only one judge sees is
            not proven.

    Returns:
        The fix with its proof. Nothing is stored.

    Raises:
        InputError: no gain is proven, with the reason; too few cases; or as :func:`prove_kept`.
    """
    options: ScoreOptions = {}
    target, named, variant = _player(agent, options)
    texts = {each.name: each.text for each in list_components(named, variant=variant)}
    component = _component_of(issue, begun, texts)
    made = _made(issue, traced, (), None, TRIED, TRIED)
    if not made.members:
        raise InputError("its conversations, with what was passed on, are no longer stored")
    cases = Dataset(made.cases, name=issue.key)
    with tempfile.TemporaryDirectory(prefix="baton-search-") as folder:
        judged_options = {
            **options,
            "judge": judge,
            "candidates": SEARCHED,
            "component": [component],
        }
        if second is not None:
            judged_options["second_judge"] = second
        search_options = cast(
            "ImproveOptions", {**judged_options, "out": folder, "variant": variant}
        )
        improvement = improve(cases, target, _evaluators_for(issue, made.cases), **search_options)
    (study,) = improvement.studies
    if study.after is None:
        raise InputError(f"no gain is proven: {improvement.stopped or study.reason}")
    fix = make_fix(
        kind_of_text(component, issue.sender),
        component,
        study.after,
        texts,
        why=f"{study.reason} (held-out cases; {counted(len(study.candidates) - 1, 'text')} tried)",
        by=f"baton improve with {judge.model}",
    )
    shown = _made(issue, traced, (), None, PLAYED, BESIDE)
    judged: ScoreOptions = {**options, "judge": judge}
    return _play(issue, fix, shown, target, variant, REPEATS, judged)[0]


def _component_of(issue: Issue, begun: Fix | None, texts: Mapping[str, str]) -> str:
    """Return the name of the text to change; raises InputError if the agent does not have it."""
    if begun is not None and begun.text in texts:
        return str(begun.text)
    known = subtype_named(issue.subtype)
    of_receiver = known is not None and known.category == "working"
    first, other = issue.sender, issue.receiver
    if of_receiver:
        first, other = other, first
    for name in (first, other):
        if name and f"agent:{name}" in texts:
            return f"agent:{name}"
    raise InputError(f"the agent that plays has no instructions for `{first or other}`")


def _player(
    agent: AgentLike, options: ScoreOptions
) -> tuple[str | dict[str, Any] | None, str | dict[str, Any], str | None]:
    """Return the target to play, the target whose texts are read, and the provider of a config."""
    if isinstance(agent, dict) and is_configured(agent):
        options["config"] = agent["config"]
        return None, agent["config"], agent.get("provider")
    return agent, agent, None


def _refuse_unplayable(issue: Issue, fix: Fix) -> None:
    reason = playable(fix)
    if reason is not None:
        raise InputError(f"the fix of `{issue.key}` cannot be proven by playing it: {reason}")


def _play(
    issue: Issue,
    fix: Fix,
    made: Made,
    target: str | Mapping[str, Any] | None,
    variant: str | None,
    repeat: int,
    options: ScoreOptions,
) -> tuple[Fix, Replayed]:
    evaluators = _evaluators_for(issue, made.cases)
    changed = {"texts": {str(fix.text): fix.after}, "repeat": repeat}
    play = cast("EvaluateOptions", {**options, **changed})
    cases = Dataset(made.cases, name=issue.key)
    replayed = replay(cases, target, evaluators, variant=variant, **play)
    proof = proof_of(
        replayed,
        {case.id for case, _ in made.members},
        fix,
        form=_form(issue) or "conversation",
        evaluators=evaluators,
        repeats=repeat,
        at=datetime.now(UTC).timestamp(),
    )
    return msgspec.structs.replace(fix, proof=proof), replayed


def _fix_of(work: _Work, now: Mapping[str, str], texts: Mapping[str, str] | None) -> Fix:
    """Return the fix to play: a person's, or the proposed one."""
    if texts:
        if len(texts) != 1:
            raise InputError(
                f"{option('with')} takes one text here: none of several could be proven by itself"
            )
        ((name, after),) = texts.items()
        kind = kind_of_text(name, work.issue.sender)
        return make_fix(kind, name, after, now, why="a person wrote it", by="a person")
    fix = work.progress.fix
    if fix is None:
        investigated = work.progress.investigation is not None
        what = "its investigation proposes none" if investigated else "investigate it first"
        how = f"or write one: {option('with')} agent:NAME=FILE"
        raise InputError(f"`{work.issue.key}` has no fix: {what}, {how}")
    new = f"give the new text with {option('with')} {fix.text}=FILE"
    _refuse_changed(fix, now, f"investigate again, or {new}")
    return fix


def _refuse_changed(fix: Fix, now: Mapping[str, str], instead: str) -> None:
    if fix.text is not None and fix.text in now and now[fix.text] != fix.before:
        raise InputError(
            f"`{fix.text}` has changed since the fix was made, or this agent has another one: "
            f"{instead}"
        )


def _evaluators_for(issue: Issue, cases: Sequence[Case]) -> list[str]:
    """Return the evaluators that decide: those that failed, and that of expected targets."""
    stated = any(
        case.dispatch is not None
        and case.dispatch.form == "decision"
        and case.dispatch.expected.to is not None
        for case in cases
    )
    return list(dict.fromkeys([*issue.evaluators, *(["dispatch_routing"] if stated else [])]))


def _made(
    issue: Issue,
    traced: Traced,
    there: Sequence[Case],
    expect: Sequence[str] | None,
    most: int,
    neighbours: int | None,
) -> Made:
    """Make cases of members and of passing neighbours."""
    wanted = {member.id for member in issue.members}
    form = _form(issue)
    beside = neighbours if neighbours is not None else 2 * most + len(there)
    if form is None:
        return _conversations(issue, traced, wanted, there, most, neighbours)
    known = subtype_named(issue.subtype)
    # The receiver's instructions affect only its own work; how the sender chooses, asks and uses
    # results affects all its dispatches.
    of_receiver = known is not None and known.category == "working"
    members = Pool(2 * most, failing=True, issue=issue.key, members=wanted)
    greens = Pool(
        2 * beside,
        sender=None if of_receiver else issue.sender,
        receiver=issue.receiver if of_receiver else None,
    )
    for result, trace in traced():
        members.add(trace, result.scores)
        greens.add(trace, result.scores)
    failing = [one for one in members.choose().chosen if one.failures]
    green = [one for one in greens.choose().chosen if not one.failures]
    return make_cases(
        issue,
        [*failing, *green],
        form=form,
        there=there,
        expect=expect,
        known_right=_known_right(issue, traced, failing),
        most=most,
        neighbours=neighbours,
    )


def _form(issue: Issue) -> Form | None:
    has_dispatch = any(member.dispatch is not None for member in issue.members)
    return form_of(issue.subtype, has_dispatch=has_dispatch)


def _known_right(
    issue: Issue, traced: Traced, failing: Sequence[Chosen]
) -> dict[str, ExpectedHandling]:
    """Return the right behaviour for members: as their cases state, or as a twin passed."""
    by_id = {member_of(one.trace, one.dispatch): one for one in failing}
    inputs = {input_of(one.trace) for one in failing}
    stated: dict[str, ExpectedHandling] = {}
    passed: dict[str, ExpectedHandling] = {}
    for result, trace in traced():
        request = input_of(trace)
        if request in inputs and request not in passed and _passes(result):
            handled = handled_in(trace, issue.sender)
            if handled is not None:
                passed[request] = handled
        for made in (made for turn in trace.turns for made in turn.dispatches):
            key = member_of(trace, made)
            if key not in by_id:
                continue
            # A case only states the expected target of each dispatch. If two expectations fit, the
            # right one is unknown.
            meant = {e for e, actual in result.routing if actual == made.to_agent != e}
            if len(meant) == 1:
                (to,) = meant
                stated[key] = ExpectedHandling(to=[] if to is None else [to])
    asked_by = {key: input_of(one.trace) for key, one in by_id.items()}
    return {key: passed[request] for key, request in asked_by.items() if request in passed} | stated


def _conversations(
    issue: Issue,
    traced: Traced,
    wanted: set[str],
    there: Sequence[Case],
    most: int,
    neighbours: int | None,
) -> Made:
    failing = []
    passing = []
    first: set[str] = set()
    for result, trace in traced():
        own = [each for each in failures_of(trace, result.scores) if id_of(each) in wanted]
        if own:
            failing.append((trace, own[0]))
            first.add(_first_agent(trace))
    for result, trace in traced():
        if _first_agent(trace) in first and _passes(result):
            passing.append(trace)
    return conversations(issue, failing, passing, there=there, most=most, neighbours=neighbours)


def _passes(result: CaseResult) -> bool:
    statuses = {score.status for score in result.scores}
    return "passed" in statuses and "failed" not in statuses


def _first_agent(trace: Trace) -> str:
    return next((run.agent for turn in trace.turns for run in turn.runs), "")


class Promotable(NamedTuple):
    """The progress of an issue, and the files that its cases were written to."""

    progress: Progress
    made: Made
    files: list[Path]


def promote_issue(
    key: str,
    dataset: PathLike,
    sources: Sequence[PathLike] = (),
    evaluators: Specs | None = None,
    *,
    expect: Sequence[str] | None = None,
    count: int = MOST,
    passes: int = PASSES,
    place: Place = HERE,
    **options: Unpack[ScoreOptions],
) -> Promotable:
    """Make cases of an issue's members and of passing neighbours, and add them to a dataset.

    Args:
        key: the key of the issue, or its first characters.
        dataset: a folder of cases; each new case becomes a file.
        sources: evaluations and recordings with its failures, as for ``find_issues``.
        evaluators: the evaluators for recordings.
        expect: the agents that should get the work; ``[]`` for nobody.
        count: the number of members.
        passes: the number of passing evaluations in a row that close the issue.
        place: where issues are stored.
        options: as for :func:`baton.score`.

    Raises:
        InputError: no such issue, or the dataset already has all requests of its members.
    """
    folder = Path(dataset)
    if folder.suffix or folder.is_file():
        raise InputError(f"{option('promote')} writes into a folder of cases, not into `{folder}`")
    if count < 1 or passes < 1:
        raise InputError(f"{option('count')} and {option('passes')} are at least 1")
    work = _begin(key, sources, evaluators, place, options)
    filled = folder.is_dir() and any(folder.iterdir())
    there = list(load_dataset(folder)) if filled else []
    made = _made(work.issue, work.opened.traced, there, expect, count, None)
    if not made.members:
        raise InputError(
            f"no member of `{work.issue.key}` asks for something that {folder} does not have yet"
        )
    files = write_dispatch_cases(made.cases, folder)
    before = work.progress.promotion
    promotion = Promotion(
        dataset=os.fspath(folder),
        cases=[
            *(before.cases if before is not None else []),
            *(member for _, member in made.members),
        ],
        passes=passes,
        at=datetime.now(UTC).timestamp(),
    )
    progress = msgspec.structs.replace(work.progress, promotion=promotion)
    ProgressFolder(place.progress).write(progress)
    return Promotable(progress, made, files)

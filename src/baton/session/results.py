"""Results of evaluations and recordings, each conversation once, with the scores of all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import msgspec

from baton.formats.evaluation_folder import is_evaluation
from baton.model import CaseResult, Score, Status, Trace
from baton.model.provenance import content_version
from baton.runner.plan import Specs
from baton.store import FoundTrace, latest_evaluation, read_evaluation

from .prepare import PathLike, ScoreOptions
from .recordings import with_copies
from .report import STORED
from .score import score, score_readable

if TYPE_CHECKING:
    from baton.store import Reportable


_Id = tuple[str, int, str]
_Key = tuple[_Id | None, str]


class Results:
    """The results of evaluations, each conversation once, with the scores of all evaluations.

    They can be read again and again, one at a time.
    """

    def __init__(self, evaluations: Sequence[Reportable]) -> None:
        self._evaluations = evaluations
        self._again: dict[_Key, list[CaseResult]] | None = None

    def __iter__(self) -> Iterator[tuple[CaseResult, FoundTrace]]:
        if self._again is None:
            self._again = self._scored_again()
        seen: set[_Key] = set()
        for result, found_trace in self._all():
            joined = result
            if found_trace.trace is not None:
                key = _key_of(result, found_trace.trace)
                if key in seen:
                    continue
                seen.add(key)
                for other in self._again.get(key, ()):
                    joined = _joined(joined, other)
            yield joined, found_trace

    def _all(self) -> Iterator[tuple[CaseResult, FoundTrace]]:
        for evaluation in self._evaluations:
            yield from evaluation.with_traces()

    def _scored_again(self) -> dict[_Key, list[CaseResult]]:
        """Return the later results of conversations that have several, without traces.

        Traces are only read for that if ids of recordings occur more than once.
        """
        ids = Counter(_id_of(result) for evaluation in self._evaluations for result in evaluation)
        shared = {id_ for id_, count in ids.items() if count > 1 and id_ is not None}
        again: defaultdict[_Key, list[CaseResult]] = defaultdict(list)
        seen: set[_Key] = set()
        for result, found_trace in self._all() if shared else ():
            if found_trace.trace is None or _id_of(result) not in shared:
                continue
            key = _key_of(result, found_trace.trace)
            if key in seen:
                again[key].append(msgspec.structs.replace(result, trace=None))
            seen.add(key)
        return again


def results_of(
    sources: Sequence[PathLike] = (),
    evaluators: Specs | None = None,
    *,
    stored: PathLike = STORED,
    unreadable: list[str] | None = None,
    **options: Unpack[ScoreOptions],
) -> Results:
    """Open evaluations, and score recordings.

    Args:
        sources: folders of evaluations, and recordings, which are scored; by default the newest
            evaluation.
        evaluators: the evaluators for recordings.
        stored: where evaluations are stored.
        unreadable: a list that gets the errors of broken files, which are skipped; without it, a
            broken file is an error.
        options: for recordings, as for :func:`baton.score`.

    Raises:
        InputError: an option or file with errors, or nothing could be read.
    """
    evaluations: list[Reportable] = []
    recordings: list[PathLike] = []
    for source in with_copies(sources or [latest_evaluation(Path(stored))]):
        if is_evaluation(Path(source)):
            evaluations.append(read_evaluation(Path(source), partial=True))
        else:
            recordings.append(source)
    if recordings and unreadable is not None:
        evaluations.append(score_readable(recordings, evaluators, unreadable, **options))
    elif recordings:
        evaluations.append(score(recordings, None, evaluators, **options))
    return Results(evaluations)


def _id_of(result: CaseResult) -> _Id | None:
    """Return what the results of one conversation have in common, as far as known without it.

    Plays of one case share its id but are separate conversations, so their start time counts.
    """
    held = result.recorded or result.trace
    if held is None:
        return None
    started = None if result.recorded is not None else (result.timings or {}).get("started")
    return held.id, result.repeat, "" if started is None else str(started)


def _key_of(result: CaseResult, trace: Trace) -> _Key:
    """Return what distinguishes a conversation from all others.

    A recording is identified by its content: its copies count once, scored with a case or without.
    """
    id_ = _id_of(result)
    is_played = id_ is not None and id_[2] != ""
    return id_, "" if is_played else result.content or content_version(trace)


def _joined(one: CaseResult, other: CaseResult) -> CaseResult:
    """Join two results of one conversation, so that every failure counts.

    What both say of the same subject counts once. If they differ, as after a change of a threshold,
    the failure counts, in whatever order they are given.
    """
    both = [*one.scores, *other.scores]
    failed = [each for each in both if each.status == "failed"]
    unique = {(_about(each), each.reason): each for each in reversed(failed)}
    scores = list(reversed(unique.values()))
    subjects = {_about(each) for each in scores}
    for status in ("passed", "error", "skipped"):
        for each in both:
            if each.status == status and _about(each) not in subjects:
                subjects.add(_about(each))
                scores.append(each)
    return msgspec.structs.replace(
        one,
        status=max(one.status, other.status, key=_JOINED.index),
        scores=scores,
        error=one.error or other.error,
        tags=list(dict.fromkeys([*one.tags, *other.tags])),
        where=one.where or other.where,
        places={**other.places, **one.places},
    )


_JOINED: list[Status] = ["skipped", "passed", "error", "failed"]


def _about(score: Score) -> tuple[str, ...]:
    return score.evaluator, *score.subject

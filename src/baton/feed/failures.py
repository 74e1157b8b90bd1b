"""Failures: each fault of a failed score separately, with its agents and its text.

Their source (a stored evaluation, recordings, the rows of a server) makes no difference: the same
fault of the same run is the same failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from baton.model import Dispatch, Score, Trace, known

NOBODY = ""
"""The sender if no agent made the dispatch: the program or the user."""


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One fault of one failed score.

    Attributes:
        conversation: the id of the trace.
        evaluator: the name that was asked for; ``type`` is the canonical one.
        fault: the kind of the finding that proves it (``tool_outside_scope``); ``None`` if only the
            evaluator states it.
        sender: who made the dispatch; empty for the program or the user, ``None`` if the failure
            belongs to no dispatch, or the source does not record it.
        receiver: who got it, or the agent whose run failed; ``None`` if neither is known.
        dispatch: the id of the dispatch, if there is one.
        subject: what the fault is about, in the finding's terms: ``{"tool": "Edit"}``.
        says: the sentence of the finding, or the reason of the score.
        evidence: ids of the steps that prove it.
        judged: whether a judge said so.
        label: the judge's label (``wrong``), if it gives one.
        fix: the advice of the evaluator: the same for two evaluators that fail for one cause.
        versions: of the receiver's definition and model, as far as recorded (``agent``, ``model``).
        at: when the dispatch, or else the conversation, started, in seconds since the epoch.
        case: the case that was played, if one was.
    """

    conversation: str
    evaluator: str
    type: str
    fault: str | None = None
    sender: str | None = None
    receiver: str | None = None
    dispatch: str | None = None
    subject: dict[str, str] = msgspec.field(default_factory=dict)
    says: str = ""
    evidence: list[str] = msgspec.field(default_factory=list)
    judged: bool = False
    label: str | None = None
    fix: str | None = None
    versions: dict[str, str] = msgspec.field(default_factory=dict)
    at: float | None = None
    case: str | None = None

    @property
    def id(self) -> str:
        """The identifier: the same for the same fault, in whatever order failures are read."""
        where = self.dispatch or self.receiver or ""
        about = ",".join(f"{name}={value}" for name, value in sorted(self.subject.items()))
        return "\t".join((self.conversation, where, self.evaluator, self.fault or "", about))


class _Place(NamedTuple):
    sender: str | None
    receiver: str | None
    dispatch: str | None
    at: float | None
    model: str | None


def failures_of(
    trace: Trace, scores: Sequence[Score], versions: Mapping[str, str] | None = None
) -> Iterator[Failure]:
    """Yield the failures among the scores of a trace.

    A score with several faults gives one failure for each; warnings give none.

    Args:
        trace: the record.
        scores: the scores of that record.
        versions: versions of agents' definitions by name, if known.
    """
    failed = [score for score in scores if score.status == "failed"]
    if not failed:
        return
    began = next((turn.started for turn in trace.turns if turn.started is not None), None)
    places = _places(trace)
    for score in failed:
        place = next((places[id_] for id_ in score.subject if id_ in places), None)
        if place is None:  # about the whole conversation: a loop, a chain of agents
            ids = (id_ for each in score.evidence for id_ in each.ids)
            place = next((places[id_] for id_ in ids if id_ in places), _NOWHERE)
        own = {"agent": (versions or {}).get(place.receiver or ""), "model": place.model}
        common = Failure(
            conversation=trace.id,
            evaluator=score.evaluator,
            type=score.type,
            sender=place.sender,
            receiver=place.receiver,
            dispatch=place.dispatch,
            says=score.reason,
            evidence=list(dict.fromkeys(id_ for each in score.evidence for id_ in each.ids)),
            judged=score.judge is not None,
            label=_text(score.details.get("label")),
            fix=_text(score.details.get("fix")),
            versions={name: value for name, value in own.items() if value is not None},
            at=place.at if place.at is not None else began,
            case=trace.case,
        )
        yield from split(common, score.details)


def split(failure: Failure, details: Mapping[str, Any]) -> Iterator[Failure]:
    """Yield a failure for each fault in a score's details; the failure itself if there is none."""
    listed = details.get("findings")
    findings = [each for each in _list(listed) if isinstance(each, Mapping)]
    settled = details.get("settled_by")
    if isinstance(settled, Mapping):  # a judge was not asked, as the record settles it
        about = settled.get("about")
        findings.append({**(about if isinstance(about, Mapping) else {}), **settled})
    faults = [each for each in findings if not each.get("warning")]
    named = [each for each in faults if isinstance(each.get("kind"), str)]
    for each in named:
        yield msgspec.structs.replace(
            failure,
            fault=each["kind"],
            says=each["says"] if isinstance(each.get("says"), str) else failure.says,
            subject=subject_of(each),
            judged=False,
        )
    if not named:
        yield msgspec.structs.replace(failure, subject=subject_of(details))


# A dispatch to an agent that does not exist is refused: the refusal is not a separate fault.
_FOLLOWS = {"refused": {"unknown_target", "misspelt_target", "refused_target"}}


def causes(failures: Iterable[Failure]) -> Iterator[Failure]:
    """Leave out faults that only follow from another fault of the same dispatch."""
    listed = list(failures)
    faults = {(each.dispatch, each.fault) for each in listed}
    for each in listed:
        of = _FOLLOWS.get(each.fault or "", ())
        if not any((each.dispatch, cause) in faults for cause in of):
            yield each


def same_faults(failures: Sequence[Failure]) -> Iterator[tuple[Failure, Failure]]:
    """Yield each failure of a trace with the one that proves the same fault, else with itself.

    A dispatch to the wrong agent is one fault, however many evaluators see it: ``dispatch_routing``
    proves it, ``agent_chain`` sees it in the agents of the turn, and gives the same advice, and a
    judge of ``dispatch_correctness`` calls the same dispatch wrong. What the judge
    finds besides (``weak``) is another fault.
    """
    routes = [each for each in failures if each.fault == "wrong_target"]
    by_fix = {(each.conversation, each.fix): each for each in reversed(routes)}
    by_dispatch = {(each.conversation, each.dispatch): each for each in routes}
    for each in failures:
        proof = None
        if each.fault is None and each.type == "agent_chain" and each.fix:
            proof = by_fix.get((each.conversation, each.fix))
        elif each.fault is None and each.type == "dispatch_correctness" and each.label == "wrong":
            proof = by_dispatch.get((each.conversation, each.dispatch)) if each.dispatch else None
        yield each, proof or each


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


# What a fault is about, by the names that findings and evaluators give it. Values that differ from
# run to run (amounts, texts that were lost) count by their kind only (`signature.py`).
_SUBJECTS = ("tool", "field", "path", "missing", "dropped", "result", "repeated", "limit")
# For a cycle the agents are the fault; elsewhere they are a list of all known agents.
_SUBJECTS_OF = {"hand_off_cycle": ("agents",)}


def subject_of(details: Mapping[str, Any]) -> dict[str, str]:
    """Return what a fault is about: texts and lists of texts in its details."""
    subject: dict[str, str] = {}
    for name in _SUBJECTS_OF.get(str(details.get("kind")), _SUBJECTS):
        value = details.get(name)
        texts = [value] if isinstance(value, str) else value
        if all(isinstance(text, str) for text in _list(texts)) and _list(texts):
            subject[name] = "\n".join(dict.fromkeys(_list(texts)))
    return subject


_NOWHERE = _Place(None, None, None, None, None)


def _places(trace: Trace) -> dict[str, _Place]:
    """Return the agents of dispatches, runs and steps, by id."""
    places: dict[str, _Place] = {}
    models: dict[str, str | None] = {}
    for turn in trace.turns:
        for run in turn.runs:
            models[run.id] = run.model
            agent = run.agent if known(trace, run, "agent") else None
            place = _Place(None, agent, None, run.started, run.model)
            places[run.id] = place
            places.update((step.id, place) for step in run.steps)
        for made in turn.dispatches:
            places[made.id] = _of(trace, made, models)
            if made.call is not None:
                places[made.call] = places[made.id]
    return places


def _of(trace: Trace, made: Dispatch, models: Mapping[str, str | None]) -> _Place:
    sender = made.from_agent if known(trace, made, "from_agent") else None
    if made.from_agent is None and known(trace, made, "from_agent"):
        sender = NOBODY
    receiver = made.to_agent if known(trace, made, "to_agent") else None
    model = next((models[id_] for id_ in made.runs if models.get(id_)), None)
    return _Place(sender, receiver, made.id, made.started, model)


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []

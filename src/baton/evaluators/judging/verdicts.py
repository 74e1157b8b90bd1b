"""The possible answers of a judge, reading them, combining several samples, and scoring them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType, convert, field, json

from baton.evaluators.base_evaluator import Details
from baton.evaluators.judging.material import LONGEST, LeftOut, Section, TooLongError, omission_text
from baton.judges.shorten_texts import clip
from baton.judges.votes import Poll, Read, Tally, Vote
from baton.model import CaseRubric, Evidence, JudgeUse, Score, Status, Unit
from baton.model.score import TOLERANCE, passes

from .distilled import Guess
from .evidence import Settled
from .inputs import Given, Missing
from .material import Piece, block, piece
from .rubric import Answer, Claims, Direction, Each, Rubric, RubricOptions
from .subject import Subject

# After a full stop, unless a lower-case letter follows (`e.g. this`). CJK stops need no space.
_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?][\"'”’)\]*]))\s+(?![a-z])|(?<=[。！？])|\n+")
MOST = 100
"""The most parts of a text that one answer labels: about four pages, and 15,000 reason tokens."""
_WORD = re.compile(r"\w")


class Item(NamedTuple):
    """One of several items to label: its name, its text, and the ids of its holders.

    ``ours`` means that it comes from a rubric or a config, not from a case or a trace.
    """

    name: str
    text: str
    ids: tuple[str, ...] = ()
    ours: bool = False


def items_of(
    rubric: Rubric, options: RubricOptions, subject: Subject, inputs: dict[str, Given | Missing]
) -> list[Item] | Missing | None:
    """Return the items to label one by one, or ``None`` for a single answer.

    Raises:
        ValueError: two statements have the same id.
        TooLongError: a text has more parts than one answer can label.
    """
    if rubric.answer.each is not None:
        return _statements(rubric.answer.each, options, subject)
    if rubric.answer.claims is not None:
        return _claims(rubric.answer.claims, inputs)
    return None


def sentences(text: str) -> list[str]:
    """Split a text at line ends and after full stops. A lone rule or bullet is not a sentence."""
    parts = (part.strip() for part in _END.split(text) if part)
    return [part for part in parts if _WORD.search(part)]


def _statements(each: Each, options: RubricOptions, subject: Subject) -> list[Item] | Missing:
    items = [Item(name, text, ours=True) for name, text in each.items.items()]
    items += _named(options.statements, "config", ours=True)
    if not each.items:
        case = subject.case.rubrics if subject.case is not None else []
        items += _named(_of_type(case, each.type), "case")
        for turn in subject.expected:
            items += _named(_of_type(turn.rubrics or (), each.type), "turn")
    names = [item.name for item in items]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two rubrics have the id {', '.join(f'`{name}`' for name in twice)}")
    kind = f" of type `{each.type}`" if each.type else ""
    return items or Missing(f"no rubric{kind}: state `rubrics` in the config, the case or the turn")


def _of_type(rubrics: Iterable[CaseRubric], kind: str | None) -> list[CaseRubric]:
    return [rubric for rubric in rubrics if kind is None or rubric.type in (kind, None)]


def _named(rubrics: Iterable[CaseRubric], where: str, *, ours: bool = False) -> list[Item]:
    return [
        Item(rubric.id or f"{where} {number}", rubric.text, ours=ours)
        for number, rubric in enumerate(rubrics, 1)
    ]


def _claims(claims: Claims, inputs: dict[str, Given | Missing]) -> list[Item] | Missing:
    source = inputs[claims.of]
    if isinstance(source, Missing):
        return source
    texts = [
        (piece.ids, text)
        for piece in source.pieces
        for text in (sentences(piece.text) if claims.by == "sentence" else [piece.text])
    ]
    if len(texts) > MOST:
        # An error, as for any overlong text. If it were skipped, padding would be a way out.
        raise TooLongError(
            f"`{claims.of}` has {len(texts)} parts; one answer labels at most {MOST}"
        )
    items = [Item(str(number), text, ids) for number, (ids, text) in enumerate(texts, 1)]
    return items or Missing(f"nothing to judge: `{claims.of}` is empty")


_REASON = {"type": "string", "description": "why, in one or two sentences, before the verdict"}
_QUOTE = {
    "type": "string",
    "description": "the words of the material that decide, exactly as they stand; empty if none",
}


class Ballot(NamedTuple):
    """One verdict of one sample: a label or a number, the reason, and the deciding words."""

    label: str | None
    number: float | None
    reason: str
    quote: str = ""


def answer_schema(answer: Answer, items: Sequence[Item] | None) -> dict[str, Any]:
    """Return the JSON Schema of an answer: an object with only required properties."""
    if items is None:
        return _object({"reason": _REASON, "quote": _QUOTE, **_verdict(answer)})
    one = _object({"reason": _REASON, **_verdict(answer)})
    return _object({_key(number): one for number in range(1, len(items) + 1)})


def answer_guide(answer: Answer, items: Sequence[Item] | None, *, statements: bool) -> str:
    """Describe the possible answers and when each applies. ``statements`` adds the statements."""
    lines = []
    if statements and items is not None:
        lines.append("The statements:")
        lines += [*(each.text for each in numbered(items)), ""]
    if items is not None:
        lines.append(f"Give a verdict for each of {_key(1)} to {_key(len(items))}.")
    labels = answer.labels
    if labels is not None:
        lines.append("The labels:")
        for name, label in labels.items():
            lines.append(f"- {name}: {label.means}" if label.means else f"- {name}")
    elif answer.scale is not None:
        low, high = answer.scale.bounds
        lines.append(f"`score` is a number from {low:g} to {high:g}.")
        lines += [f"- {number}: {means}" for number, means in answer.scale.guide.items()]
    return "\n".join(lines)


def read_answer(
    answer: Answer, items: Sequence[Item] | None, value: Mapping[str, Any]
) -> list[Ballot]:
    """Read an answer that conforms to its schema: one ballot, or one for each item."""
    if items is None:
        return [_ballot(answer, value)]
    return [_ballot(answer, value[_key(number)]) for number in range(1, len(items) + 1)]


def numbered(items: Sequence[Item]) -> list[Piece]:
    """List items the way an answer refers to them."""
    return [piece(item.ids, *block(f"{_key(i)}:", item.text)) for i, item in enumerate(items, 1)]


def _verdict(answer: Answer) -> dict[str, Any]:
    labels = answer.labels
    if labels is not None:
        return {"label": {"type": "string", "enum": list(labels)}}
    low, high = answer.scale.bounds if answer.scale is not None else (0.0, 1.0)
    return {"score": {"type": "number", "minimum": low, "maximum": high}}


def _ballot(answer: Answer, value: Mapping[str, Any]) -> Ballot:
    reason, quote = str(value.get("reason", "")), str(value.get("quote", ""))
    if answer.labels is not None:
        label = value["label"]
        return Ballot(label, answer.score_of(label), reason, quote)
    number = float(value["score"])
    return Ballot(None, answer.scale.normal(number) if answer.scale else number, reason, quote)


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _key(number: int) -> str:
    return f"item_{number}"


class Decision(NamedTuple):
    """The decision on one item. ``number`` is ``None`` for a label without a score."""

    label: str | None
    number: float | None
    reason: str
    quote: str
    tally: Tally


def reader(answer: Answer, items: Sequence[Item] | None) -> Read:
    """Return a function that reads a sample's votes: labels, or numbers if there is a scale."""

    def read(value: Mapping[str, Any]) -> dict[str, Vote]:
        ballots = enumerate(read_answer(answer, items, value))
        return {str(number): _vote(answer, ballot) for number, ballot in ballots}

    return read


def worst_first(answer: Answer, direction: Direction) -> list[str]:
    """Return the labels, worst score first. Labels without a score come last."""
    labels = answer.labels or {}
    scores = {label: answer.score_of(label) for label in labels}
    sign = 1 if direction == "higher" else -1
    scored = [label for label, score in scores.items() if score is not None]
    scored.sort(key=lambda label: sign * (scores[label] or 0.0))
    return [*scored, *(label for label in labels if label not in scored)]


def decisions(
    answer: Answer, items: Sequence[Item] | None, poll: Poll, direction: Direction
) -> list[Decision]:
    """Return one decision, or one for each item."""
    samples = [read_answer(answer, items, response.value) for response in poll.answers]
    order = worst_first(answer, direction)
    return [
        _decision(answer, [ballots[int(name)] for ballots in samples], tally, order)
        for name, tally in poll.tallies.items()
    ]


def _vote(answer: Answer, ballot: Ballot) -> Vote:
    if answer.scale is not None or ballot.label is None:
        return float(ballot.number or 0.0)
    return ballot.label


def _decision(
    answer: Answer, ballots: Sequence[Ballot], tally: Tally, order: Sequence[str]
) -> Decision:
    """Use the words of the first sample that gave the verdict, or came closest on a scale."""
    if isinstance(tally.value, str):
        chosen = next(ballot for ballot in ballots if ballot.label == tally.value)
        number = answer.score_of(tally.value)
    else:
        number = middle = tally.value
        near = min(abs((b.number or 0.0) - middle) for b in ballots)
        nearest = [b for b in ballots if abs((b.number or 0.0) - middle) <= near + TOLERANCE]
        rank = {label: place for place, label in enumerate(order)}
        chosen = min(nearest, key=lambda b: rank.get(b.label or "", 0))
    return Decision(chosen.label, number, chosen.reason, chosen.quote, tally)


class Settlement(Details, kw_only=True):
    """The finding that gave the verdict instead of a judge.

    ``says`` is its sentence, and ``about`` the fields of its kind, such as the tool: the evaluator
    of the same finding states both, so that its failure and this one are the same issue.
    """

    finding: str = ""
    kind: str = ""
    says: str | UnsetType = UNSET
    about: dict[str, Any] | UnsetType = UNSET


class DistilledDetails(Details, kw_only=True):
    """The answer of a distilled judge.

    ``sure``, its ``error`` in trials and the ``limit`` of that error are from 0 to 1.

    ``agreed`` is set if the judge was called too, and states whether it gave the same answer.
    """

    label: str = ""
    sure: float = 0.0
    error: float = 0.0
    limit: float = 0.0
    agreed: bool | UnsetType = UNSET

    @classmethod
    def of(cls, guess: Guess, *, agreed: bool | UnsetType = UNSET) -> DistilledDetails:
        """Return the details of a guess."""
        sure, error = round(guess.sure, 4), round(guess.error or 0.0, 4)
        return cls(label=guess.label, sure=sure, error=error, limit=guess.limit, agreed=agreed)


class HiddenStep(Details, kw_only=True):
    """A step that a judge was shown only in part, and how many characters were left out."""

    input: str
    ids: list[str]
    what: str
    chars: int


class Ballots(Details, kw_only=True):
    """The decision on one item, with the votes if there were several samples.

    ``score`` is the number for a label or a place on the scale. ``spread`` and ``tie`` come from
    :class:`baton.judges.votes.Tally`.
    """

    label: str | UnsetType = UNSET
    score: float | UnsetType = UNSET
    votes: dict[str, int] | UnsetType = UNSET
    spread: float | UnsetType = UNSET
    tie: bool | UnsetType = UNSET


class ItemDetails(Ballots, kw_only=True):
    """One of several statements or parts of a text that were judged one by one."""

    id: str
    text: str
    reason: str


class UnitDetails(Ballots, kw_only=True):
    """One of several combined scores, in short."""

    subject: list[str] | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    status: Status = "skipped"
    value: float | UnsetType = UNSET
    items: list[ItemDetails] | UnsetType = UNSET
    settled_by: Settlement | UnsetType = UNSET
    distilled: DistilledDetails | UnsetType = UNSET
    judge_error: str | UnsetType = UNSET
    not_shown: list[HiddenStep] | UnsetType = UNSET
    reason: str = ""


class JudgedDetails(Ballots, kw_only=True):
    """The details of a judged score besides its verdict. Fields that do not apply are ``UNSET``.

    ``agent``, or ``from``, ``to`` and ``kind`` for a dispatch, identify the judged agent. ``items``
    are the judged statements, of which ``counted`` have a score. ``units`` are the scores that this
    score combines. ``unknown`` names inputs that were not recorded. ``cut`` counts the characters
    of each input that the judge was not shown, and ``not_shown`` names the steps they belong to.
    ``unanswered`` lists the errors of samples. ``of_the_rest`` is the verdict on the part shown, if
    it does not count.
    """

    agent: str | UnsetType = UNSET
    from_: str | UnsetType | None = field(name="from", default=UNSET)
    to: str | UnsetType = UNSET
    kind: str | UnsetType = UNSET
    quote_not_found: str | UnsetType = UNSET
    items: list[ItemDetails] | UnsetType = UNSET
    counted: int | UnsetType = UNSET
    unknown: list[str] | UnsetType = UNSET
    cut: dict[str, int] | UnsetType = UNSET
    not_shown: list[HiddenStep] | UnsetType = UNSET
    unanswered: list[str] | UnsetType = UNSET
    settled_by: Settlement | UnsetType = UNSET
    distilled: DistilledDetails | UnsetType = UNSET
    judge_error: str | UnsetType = UNSET
    of_the_rest: JudgedDetails | UnsetType = UNSET
    units: list[UnitDetails] | UnsetType = UNSET


class Verdict(NamedTuple):
    """A value (``None``: nothing to score), its reason, its evidence, and how many items count."""

    value: float | None
    reason: str
    details: JudgedDetails
    evidence: list[Evidence]
    counted: int = 1


def verdict_of(
    decisions: Sequence[Decision], items: Sequence[Item] | None, sections: Sequence[Section]
) -> Verdict:
    """Combine the decisions: the only one, or the mean over several items."""
    if items is None:
        return _single(decisions[0], sections)
    counted = [d.number for d in decisions if d.number is not None]
    least = min(counted, default=None)
    pairs = list(zip(items, decisions, strict=True))
    worst = [(item, d) for item, d in pairs if d.number is not None and d.number == least]
    details = JudgedDetails(
        items=[
            ItemDetails(
                id=item.name,
                text=clip(item.text, LONGEST).text,
                reason=decision.reason,
                **_ballots(decision),
            )
            for item, decision in pairs
        ],
        counted=len(counted),
    )
    if not counted:
        return Verdict(None, f"none of {len(pairs)} counts: {_reason_of(pairs[0])}", details, [])
    value = sum(counted) / len(counted)
    shown = worst[:3] if value < 1 else []
    summary = "; ".join(_reason_of(pair) for pair in shown) or f"all {len(counted)} are fine"
    evidence = [Evidence(ids=list(i.ids), quote=i.text[:200]) for i, _ in shown if i.ids]
    return Verdict(value, summary, details, evidence, len(counted))


def summed(uses: Sequence[JudgeUse]) -> JudgeUse | None:
    """Add up the cost of several scores."""
    if not uses:
        return None
    tokens = [use.tokens for use in uses if use.tokens is not None]
    costs = [use.cost_usd for use in uses]
    return JudgeUse(
        model=uses[0].model,
        rubric_version=uses[0].rubric_version,
        samples=sum(use.samples for use in uses),
        requests=sum(use.requests for use in uses),
        tokens=sum(tokens) if tokens else None,
        cost_usd=sum(c for c in costs if c is not None) if None not in costs else None,
        cached=all(use.cached for use in uses),
        timings={"seconds": sum((use.timings or {}).get("seconds", 0.0) for use in uses)},
    )


def _single(decision: Decision, sections: Sequence[Section]) -> Verdict:
    details = JudgedDetails(**_ballots(decision))
    evidence = []
    if decision.quote:
        ids = _holders(decision.quote, sections)
        if ids is None:
            details.quote_not_found = decision.quote
        else:
            evidence.append(Evidence(ids=ids, quote=decision.quote[:400]))
    return Verdict(decision.number, decision.reason, details, evidence)


def _holders(quote: str, sections: Sequence[Section]) -> list[str] | None:
    """Return the holders of a quote, ignoring white space, or ``None`` if there are none."""
    wanted = " ".join(quote.split())
    for section in sections:
        for held in section.pieces:
            if wanted in " ".join(held.text.split()):
                return list(held.ids)
    return None


def _ballots(decision: Decision) -> dict[str, Any]:
    """Return the fields of :class:`Ballots`."""
    tally = decision.tally
    fields: dict[str, Any] = {"label": decision.label, "score": decision.number}
    if tally.votes > 1:
        fields |= {"votes": tally.counts, "spread": tally.spread, "tie": tally.tie}
    return {name: value for name, value in fields.items() if value is not None}


def _reason_of(pair: tuple[Item, Decision]) -> str:
    item, decision = pair
    label = f" ({decision.label})" if decision.label is not None else ""
    return f"`{item.name}`{label}: {decision.reason}"


_MOST = 10  # the steps that a score names, those with the most omitted characters first


class Scorer(NamedTuple):
    """Creates scores for a rubric under the name by which it was requested."""

    name: str
    rubric: Rubric

    @property
    def unit(self) -> Unit:
        """The unit that one score covers."""
        return "trace" if self.rubric.report != "each" else self.rubric.unit

    def passes(self, value: float) -> bool:
        """Return whether a value reaches the threshold, or stays within it if lower is better."""
        return passes(value, self.rubric.threshold, higher=self.rubric.direction == "higher")

    def scored(
        self,
        value: float,
        reason: str,
        details: JudgedDetails,
        evidence: Sequence[Evidence] = (),
        use: JudgeUse | None = None,
    ) -> Score:
        """Return a verdict: passed from the threshold on, or up to it if lower is better."""
        status: Status = "passed" if self.passes(value) else "failed"
        score = self.unscored(status, reason, details, use, value)
        score.evidence = list(evidence)
        return score

    def unscored(
        self,
        status: Status,
        reason: str,
        details: JudgedDetails | None = None,
        use: JudgeUse | None = None,
        value: float | None = None,
    ) -> Score:
        """Return a score without a verdict (``skipped`` or ``error``) and the reason."""
        return Score(
            evaluator=self.name,
            type=self.rubric.name,
            version=self.rubric.version,
            unit=self.unit,
            status=status,
            value=value,
            threshold=self.rubric.threshold,
            reason=reason,
            details=details.mapping() if details is not None else {},
            judge=use,
        )

    def cant_tell(
        self,
        left_out: Sequence[LeftOut],
        verdict: Verdict,
        details: JudgedDetails,
        use: JudgeUse | None,
        *,
        passes: bool,
    ) -> Score:
        """Report that a verdict does not count, as omitted material could reverse it.

        It is an error, as for unknown votes. If it were skipped, padding would be a way out.
        """
        label = verdict.value if verdict.details.label is UNSET else verdict.details.label
        text = f"it says {'nothing' if label is None else f'`{label}`'}: {verdict.reason}"
        reason = (
            f"can't tell: {omission_text(left_out)} were not shown to the judge and may hold "
            f"{'a fault' if passes else 'an excuse'}: raise `max_chars`; about the rest, {text}"
        )
        not_counted = JudgedDetails(
            unknown=details.unknown,
            unanswered=details.unanswered,
            cut=details.cut,
            not_shown=details.not_shown,
            of_the_rest=verdict.details,
        )
        return self.unscored("error", reason, not_counted, use)

    def settled(self, settled: Settled) -> Score:
        """Return the verdict of a finding, without calling a judge."""
        finding = settled.finding
        settled_by = Settlement(
            finding=settled.source,
            kind=finding.kind,
            says=finding.says,
            about=finding.details or UNSET,
        )
        details = JudgedDetails(label=settled.label, settled_by=settled_by)
        reason = f"settled by `{settled.source}`, no judge was asked: {finding.says}"
        value = self.rubric.answer.score_of(settled.label) or 0.0
        return self.scored(value, reason, details, finding.evidence)

    def guessed(self, guess: Guess) -> Score:
        """Return the verdict of a distilled judge, without calling the judge."""
        details = JudgedDetails(label=guess.label, distilled=DistilledDetails.of(guess))
        reason = (
            f"a distilled judge says `{guess.label}`, and the judge was not asked: "
            f"{guess.error or 0.0:.1%} of the trials that were at least as sure were wrong"
        )
        value = self.rubric.answer.score_of(guess.label) or 0.0
        return self.scored(value, reason, details)

    def mean(self, scores: Sequence[Score], agents: Mapping[str, str | None]) -> Score:
        """Combine scores. One error makes the whole an error. Skipped scores do not count.

        ``agents`` are the judged agents, by subject id.
        """
        error = next((score for score in scores if score.status == "error"), None)
        counted = [score for score in scores if score.value is not None]
        of_each = {id(score): details_of(score) for score in scores}
        details = JudgedDetails(
            units=[_unit(score, of_each[id(score)], agents) for score in scores]
        )
        use = summed([score.judge for score in scores if score.judge is not None])
        if error is not None or not counted:
            first = error or scores[0]
            details.judge_error = of_each[id(first)].judge_error
            return self.unscored(first.status, first.reason, details, use)
        pooled = self.rubric.report == "pooled"
        weights = [(of_each[id(score)].counted or 1) if pooled else 1 for score in counted]
        value = sum(w * (s.value or 0.0) for w, s in zip(weights, counted, strict=True))
        sign = 1 if self.rubric.direction == "higher" else -1
        worst = min(counted, key=lambda score: sign * (score.value or 0.0))
        reason = f"mean of {len(counted)}; the worst: {worst.reason}"
        evidence = [each for score in counted for each in score.evidence]
        return self.scored(value / sum(weights), reason, details, evidence, use)


def note_not_shown(details: JudgedDetails, left_out: Sequence[LeftOut]) -> None:
    """Add the material that a judge was not shown to the details, by input and by step."""
    if not left_out:
        return
    details.cut = {}
    for one in left_out:
        details.cut[one.section] = details.cut.get(one.section, 0) + one.chars
    ranked = sorted(left_out, key=lambda one: -one.chars)[:_MOST]
    details.not_shown = [
        HiddenStep(input=one.section, ids=list(one.ids), what=one.kind, chars=one.chars)
        for one in ranked
    ]


def details_of(score: Score) -> JudgedDetails:
    """Return the details of a judged score. Raises ValidationError for any other score."""
    return convert(score.details, JudgedDetails)


def ballots_in(details: str) -> Ballots:
    """Return the label and the votes in the details of a judged score, which are JSON.

    A panel's details have them, too.
    """
    return json.decode(details, type=Ballots)


def label_in(details: str) -> str | None:
    """Return the label in the details of a judged score, which are JSON."""
    label = ballots_in(details).label
    return None if label is UNSET else label


def _unit(score: Score, details: JudgedDetails, agents: Mapping[str, str | None]) -> UnitDetails:
    agent = agents.get(score.subject[0]) if score.subject else None
    return UnitDetails(
        subject=score.subject,
        agent=UNSET if agent is None else agent,
        status=score.status,
        value=UNSET if score.value is None else score.value,
        label=details.label,
        votes=details.votes,
        spread=details.spread,
        tie=details.tie,
        items=details.items,
        settled_by=details.settled_by,
        distilled=details.distilled,
        judge_error=details.judge_error,
        not_shown=details.not_shown,
        reason=score.reason,
    )

"""Improves the text of a rubric, by the judge's agreement with people.

Like cases, the labels are split by conversation into train, select and held out. A model proposes
texts after it has seen where the judge and people differ on train. Candidates are ranked on select
by weighted kappa and by the worse of the two kinds of errors. The winner is tried once on the
held-out part. Name, scale, labels and inputs of the rubric do not change. Verdicts and proposals
are kept in the journal, like those of agents: a killed run is repeated from its seed, and what is
in the journal is not requested again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Coroutine, Sequence
from statistics import fmean
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

from baton.changed_texts import faults_of_change
from baton.datasets.labels import Label
from baton.evaluators.judged import Judged
from baton.gate.compare_axes import Axis, CaseValues
from baton.judges.shorten_texts import clip
from baton.model import (
    Case,
    EvalContext,
    InputError,
    Judge,
    JudgeError,
    JudgeErrorKind,
    Trace,
    counted,
    digest,
)
from baton.replays.text_risks import new_in
from baton.runner.calibration_report import calibration_report, people, placed
from baton.runner.judged_subjects import JudgedThing, ask, chosen, terms_of, things_of
from baton.stats.calibration import Key, Opinion, Quality, Terms, kappa, squared_weight

from .held_out_leaks import Leaks
from .journal import Journal, Proposal, Verdict, hash_of
from .proposal_prompts import Material, question, request
from .prove_gain import Side, prove
from .result import Calibrated, Candidate, Improvement, Strategy, Study
from .split_cases import Drawn, Unit, draw
from .strategies import WAYS, Asking, Scored, search, wait_in

T = TypeVar("T")
AGREES = Axis("agreement with people")
PASSES = Axis("passes that people pass")
FAILS = Axis("failures that people fail")
"""The two kinds of errors separately: a judge that passes everything agrees if most things are
fine."""
BATCH = 10
"""The number of labelled things that a candidate and its parent are tried on."""
# Each candidate asks the judge about ten labelled things or more: hundreds of requests in all.
CANDIDATES = 24
_NOBODY_ANSWERS: tuple[JudgeErrorKind, ...] = (
    "outage",
    "rejected",
    "rate_limit",
    "budget",
    "uncached",
)
"""Kinds of errors after which no more requests are possible: the search ends, and can be
resumed."""
_SHOWN = 1_500
"""Maximum characters of a thing that proposers see."""
_LONGER = 2, 150


class Options(NamedTuple):
    """How a rubric is improved: ``candidates`` is the maximum number of texts to try."""

    strategy: Strategy = "gepa"
    seed: int = 0
    candidates: int = CANDIDATES
    most_words: int | None = None


class Labelled(NamedTuple):
    """A thing of a trace that people labelled, with their majority label, and its text."""

    key: Key
    opinion: Opinion
    text: str

    @property
    def id(self) -> str:
        """The trace and the thing as one name."""
        return f"{self.key[0]}/{self.key[1]}"


def _unknown_cost() -> float | None:
    return None


class Progress(NamedTuple):
    """Callbacks of an improvement of a rubric.

    Args:
        on_step: called with each step, as one line.
        keep: called with the result whenever it changes, so that a page can show it.
        spent: returns the judge's cost so far in USD, as far as prices are known.
    """

    on_step: Callable[[str], None] = lambda _: None
    keep: Callable[[Improvement], None] = lambda _: None
    spent: Callable[[], float | None] = _unknown_cost


class RubricSearch:
    """One improvement of a rubric; implements :class:`baton.improvements.strategies.Search`.

    Args:
        evaluator: the rubric with its options; examples and a distilled judge are left out.
        labels: people's labels of things in the traces.
        pairs: the traces, each with its case if the labels are for a dataset.
        options: the options of the improvement.
        context: the context that evaluators share.

    Raises:
        InputError: labels of things that do not exist, too few labels, or only one verdict.
    """

    def __init__(
        self,
        evaluator: Judged,
        labels: Sequence[Label],
        pairs: Sequence[tuple[Trace, Case | None]],
        options: Options = Options(),  # noqa: B008 - a tuple
        context: EvalContext | None = None,
    ) -> None:
        context = context or EvalContext()
        evaluator = evaluator.with_options({"examples": None, "distilled": None})
        if evaluator.options.rubric is not None:
            raise InputError(
                f"`{evaluator.name}` takes its text from the option `rubric`: put it into a rubric "
                "of its own, and improve that"
            )
        self._evaluator, self._options, self._context = evaluator, options, context
        self._terms: Terms = terms_of(evaluator)
        self._pairs = {trace.id: (trace, case) for trace, case in pairs}
        there = [one for pair in pairs for one in things_of(evaluator, *pair, context)]
        labelled = placed(labels, there, context.agent_names)
        opinions = people(labelled, self._terms).opinions
        self._own_labels = {key: labelled[key] for key in opinions}
        shown = self._shown(opinions.keys())
        things = [Labelled(key, opinions[key], shown[key]) for key in opinions if key in shown]
        self._things = {each.id: each for each in things}
        sides = {self._passes(each.opinion) for each in self._things.values()}
        if len(sides) < 2:
            raise InputError(
                "all labels say the same: agreement of a judge beyond chance cannot be measured"
            )
        self.drawn: Drawn = draw(
            [
                Unit(
                    each.id,
                    (f"conversation:{each.key[0]}",),
                    stratum=str(self._passes(each.opinion)),
                    text=each.text,
                )
                for each in self._things.values()
            ],
            options.seed,
        )
        self._split, self._groups = self.drawn.split, self.drawn.groups
        name = f"rubric:{evaluator.type}"
        self._component = name
        self.result = Improvement(
            id="",
            target=evaluator.type,
            studies=[],
            split=self._split,
            seed=options.seed,
            notes=list(self.drawn.notes),
            status="running",
        )
        self._before = evaluator.rubric.prompt
        self._candidates = [Candidate.made(0, self._before, "as it is")]
        self._numbers = {self._before: 0}
        self._verdicts: dict[tuple[int, str], JudgedThing] = {}
        words, (times, more) = len(self._before.split()), _LONGER
        self._most_words = options.most_words or max(times * words, words + more)
        train = [self._things[id_].text for id_ in self._split.train]
        held = [self._things[id_].text for id_ in self._split.held_out]
        self._leaks = Leaks(held, [*train, self._before])
        self._draw = random.Random(f"{options.seed} {name}")  # noqa: S311
        self._tries = self._rounds = self._questions = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        self._journal = Journal.in_memory()
        self._progress = Progress()
        self._spent = 0.0

    @property
    def about(self) -> dict[str, str]:
        """What must not change before resuming, by the names that people know."""
        said = sorted((each.id, str(each.opinion)) for each in self._things.values())
        texts = sorted((each.id, each.text) for each in self._things.values())
        return {
            "the rubric": f"{self._evaluator.version} {hash_of({self._component: self._before})}",
            "the labels": digest(said),
            "the recordings": digest(texts),
            "the strategy": self._options.strategy,
            "the seed": str(self._options.seed),
            "the limit of words": str(self._options.most_words),
        }

    @property
    def most_verdicts(self) -> int:
        """The maximum number of verdicts that are requested."""
        split = self._split
        each = 2 * min(BATCH, len(split.train)) + len(split.select)
        return self.fewest_verdicts + self._options.candidates * each

    @property
    def fewest_verdicts(self) -> int:
        """The number of verdicts a proof needs, without those for trying candidates."""
        split = self._split
        return len(split.train) + len(split.select) + 2 * len(split.held_out)

    @property
    def size(self) -> int:
        """The number of labelled things."""
        return len(self._things)

    async def rehearse(self, judge: Judge) -> None:
        """Ask a judge about every labelled thing once, with the original text; store nothing."""
        keys = frozenset(each.key for each in self._things.values())
        await ask(chosen(self._evaluator, keys), list(self._pairs.values()), judge, self._context)

    def _passes(self, opinion: Opinion) -> bool:
        if opinion.label in ("passed", "failed"):
            return opinion.label == "passed"
        return self._terms.passes(self._score_of(opinion))

    def _score_of(self, opinion: Opinion) -> float:
        if opinion.score is not None:
            return opinion.score
        score = self._terms.labels.get(opinion.label or "")
        if score is None:  # passed, failed, or a label without a score
            return float((opinion.label == "passed") == self._terms.higher)
        return score

    def _shown(self, keys: Collection[Key]) -> dict[Key, str]:
        texts: dict[Key, str] = {}
        one = chosen(self._evaluator, frozenset(keys))
        for trace, case in self._pairs.values():
            for subject in one.subjects(trace, case, self._context):
                try:
                    asked = one.question(subject)
                except ValueError:
                    continue
                sections = getattr(asked, "sections", None)
                if sections is not None:
                    text = "\n".join(f"{each.title}:\n{each.text}" for each in sections)
                    texts[trace.id, subject.id] = text
        return texts

    async def make(
        self,
        judge: Judge,
        journal: Journal | None = None,
        progress: Progress = Progress(),  # noqa: B008 - a tuple
    ) -> Improvement:
        """Search for a better text, and prove it; ``judge`` judges and proposes."""
        began = perf_counter()
        self._judge, self._progress = judge, progress
        self._journal = journal or Journal.in_memory()
        self._loop = asyncio.get_running_loop()
        split, options = self._split, self._options
        study = Study(
            component=self._component,
            why="its text decides how far the judge agrees with people",
            strategy=options.strategy,
            before=self._before,
            candidates=self._candidates,
            best=None,
            outcome="stopped",
            reason="it has not ended",
            aimed=str(AGREES),
        )
        self.result.studies = [study]
        step = progress.on_step
        try:
            step(f"{counted(len(split.train) + len(split.select), 'labelled thing')} are judged")
            await self._see(0, [*split.train, *split.select])
            base = self._candidates[0]
            base.train = self._mean(0, split.train)
            base.select = self._figures(0, split.select)
            await asyncio.to_thread(
                search, self, WAYS[options.strategy], self._before,
                list(split.train), list(split.select), self._draw.randrange(2**31),
            )  # fmt: skip
            study.best = self._winner()
            await self._prove(study)
        except JudgeError as error:
            self.result.stopped = study.reason = str(error)
            study.outcome = "stopped"
        except BaseException:
            self.result.status = "interrupted"
            raise
        finally:
            self._closed = True
            self.result.seconds = perf_counter() - began
            self._count()
        self.result.status = "finished"
        return self.result

    async def _prove(self, study: Study) -> None:
        """Try the winner on the held-out things, and report the result."""
        held_out, best = self._split.held_out, study.best
        await self._see(0, held_out)
        before, after = self._quality(0, held_out), None
        study.outcome = "no proven gain"
        study.reason = "no text that was tried agrees better with people on the select part"
        if best is not None:
            self._progress.on_step(
                f"candidate {best} is tried on {counted(len(held_out), 'held-out thing')}"
            )
            await self._see(best, held_out)
            after = self._quality(best, held_out)
            decided = prove(self._side(0), self._side(best), AGREES, groups=self._groups)
            study.outcome, study.reason = decided.outcome, decided.reason
            study.proof = decided.proof
            study.marks = new_in(self._before, self._candidates[best].text)
        if before is not None:
            study.calibration = Calibrated(before=before, after=after)

    def _count(self) -> None:
        self.result.plays, self.result.asked, self.result.cost_usd = self._journal.sums()

    def _cost(self) -> float | None:
        """Return the cost since the previous call."""
        spent = self._progress.spent()
        if spent is None:
            return None
        new, self._spent = spent - self._spent, spent
        return new

    # Called by the engine, from its own thread.

    def evaluate(self, text: str, cases: Sequence[str]) -> Scored:
        """Have things judged with an earlier proposed text."""
        number = self._numbers[text]
        self._wait(self._see(number, cases))
        one = self._candidates[number]
        if number:
            one.plays = sum(n == number for n, _ in self._verdicts)
            seen = [id_ for id_ in self._split.train if (number, id_) in self._verdicts]
            one.train = self._mean(number, seen)
            if set(cases) >= set(self._split.select):
                one.select = self._figures(number, self._split.select)
        scores = [self._agreement(number, id_) for id_ in cases]
        return Scored(
            scores,
            [{str(AGREES): score} for score in scores],
            [self._described(number, id_) for id_ in cases],
        )

    def propose(self, parent: str, moments: Sequence[str]) -> str:
        """Propose a text; if it is refused, return the parent."""
        return self._wait(self._propose(parent, moments))

    def batch(self) -> list[str]:
        """Return the train things that the next candidate and its parent are tried on."""
        train = self._split.train
        wrong = [id_ for id_ in train if self._agreement(0, id_) < 1]
        right = [id_ for id_ in train if id_ not in wrong]
        most = min(len(wrong), max(BATCH // 2, BATCH - len(right)))
        drawn = self._draw.sample(wrong, most)
        return sorted(drawn + self._draw.sample(right, min(BATCH - most, len(right))))

    def is_over(self) -> bool:
        """Return whether to stop: enough texts were tried, or no new ones are found."""
        self._rounds += 1
        limit = self._options.candidates
        # A model that proposes the same texts again and again would never reach the number of
        # tries.
        return self._tries >= limit or self._rounds > 5 * limit

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return wait_in(None if self._closed else self._loop, work)

    async def _see(self, number: int, ids: Sequence[str]) -> None:
        """Let the judge give its verdicts with a text on things that it has not judged with it.

        Raises:
            JudgeError: no model answers; earlier answers are kept.
        """
        text = self._candidates[number].text
        hash_ = hash_of({self._component: text})
        keys: dict[Key, str] = {}
        for id_ in dict.fromkeys(ids):
            if (number, id_) in self._verdicts:
                continue
            known = self._journal.verdict(hash_, id_)
            if known is not None:
                self._verdicts[number, id_] = known
            else:
                keys[self._things[id_].key] = id_
        if not keys:
            return
        one = chosen(
            self._evaluator.with_options({} if number == 0 else {"prompt": text}), frozenset(keys)
        )
        broken: list[JudgedThing] = []

        async def see(pair: tuple[Trace, Case | None]) -> None:
            for thing in await ask(one, [pair], self._judge, self._context):
                if thing.key not in keys:
                    continue
                if thing.trouble in _NOBODY_ANSWERS:
                    broken.append(thing)
                    continue
                id_ = keys[thing.key]
                line = Verdict(text=hash_, id=id_, thing=thing, cost_usd=self._cost())
                self._journal.add(line)
                self._verdicts[number, id_] = thing

        await asyncio.gather(
            *(see(self._pairs[trace]) for trace in dict.fromkeys(key[0] for key in keys))
        )
        if broken:
            raise _no_answer(broken[0])
        self._count()
        self._progress.keep(self.result)

    async def _propose(self, parent: str, moments: Sequence[str]) -> str:
        if self._tries >= self._options.candidates:
            return parent
        self._tries += 1
        differing = [each for each in moments if each.startswith("differs")]
        shown = [*differing, *(each for each in moments if each not in differing)]
        history = [(one.text, one.train) for one in self._candidates if one.train is not None]
        proposed = await Asking(self._options.strategy, self._ask)(parent, shown, history)
        text = proposed.text
        number = len(self._candidates)
        made = Candidate.made(number, text if text is not None else parent, proposed.by)
        made.parents = [self._numbers[parent]]
        self._candidates.append(made)
        made.refused = "the model gave no usable answer" if text is None else self._fault(text)
        if made.refused is not None or text is None:
            return parent
        self._numbers[text] = number
        return text

    async def _ask(self, name: str, material: Material) -> Any:
        number = self._questions
        self._questions += 1
        known = self._journal.proposal(self._component, number)
        if known is None:
            asked = request(name, self._component, self._most_words, material)
            sample = (self._options.seed % 1_000_000) * 10_000 + number
            value: dict[str, Any] = {}
            requests = 1
            try:
                response = await self._judge.ask(asked, sample=sample)
                value, requests = response.value, response.requests
            except JudgeError as error:
                if error.kind not in ("unparsable", "refusal", "truncated", "empty"):
                    raise
            known = Proposal(
                study=self._component,
                number=number,
                value=value,
                requests=requests,
                cost_usd=self._cost(),
            )
            self._journal.add(known)
        return known.value.get(question(name).answer) or None

    def _fault(self, text: str) -> str | None:
        if text in self._numbers:
            number = self._numbers[text]
            return (
                "it is the current text" if number == 0 else f"it is the same as candidate {number}"
            )
        faults = faults_of_change(self._before, text)
        words = len(text.split())
        if words > self._most_words:
            faults.append(f"it has {words} words; at most {self._most_words} are allowed")
        return "; ".join(faults) or self._leaks.fault(text)

    # Figures.

    def _agreement(self, number: int, id_: str) -> float:
        """Return 1 if judge and people agree, and less the further they are apart."""
        thing = self._verdicts.get((number, id_))
        if thing is None or thing.value is None or thing.passed is None:
            return 0.0
        opinion = self._things[id_].opinion
        if opinion.label in ("passed", "failed"):
            return float((opinion.label == "passed") == thing.passed)
        low, high = self._evaluator.rubric.answer.bounds
        apart = (thing.value - self._score_of(opinion)) / ((high - low) or 1.0)
        return 1 - apart**2

    def _side(self, number: int) -> Side:
        cases = {id_: self._values(number, id_) for id_ in self._split.held_out}
        return Side(cases, self._candidates[number].text)

    def _values(self, number: int, id_: str) -> CaseValues:
        thing = self._verdicts.get((number, id_))
        if thing is None or thing.passed is None:
            return CaseValues(errors=1)
        passes = self._passes(self._things[id_].opinion)
        kind = PASSES if passes else FAILS
        values = {AGREES: [self._agreement(number, id_)], kind: [float(thing.passed == passes)]}
        return CaseValues(values=values)

    def _mean(self, number: int, ids: Sequence[str]) -> float | None:
        return fmean(self._agreement(number, id_) for id_ in ids) if ids else None

    def _figures(self, number: int, ids: Sequence[str]) -> dict[str, float]:
        """Return agreement, weighted kappa, and the share of correct verdicts of each kind."""
        pairs: list[tuple[float, float]] = []
        right: dict[bool, list[float]] = {True: [], False: []}
        for id_ in ids:
            thing = self._verdicts.get((number, id_))
            passes = self._passes(self._things[id_].opinion)
            right[passes].append(float(thing is not None and thing.passed == passes))
            if thing is not None and thing.value is not None:
                said = self._score_of(self._things[id_].opinion)
                pairs.append((round(said, 6), round(thing.value, 6)))
        span = {score: score for pair in pairs for score in pair}
        agreement = kappa(pairs, squared_weight(span)) if span else None
        return {
            str(AGREES): fmean(self._agreement(number, id_) for id_ in ids),
            "weighted kappa": 0.0 if agreement is None else agreement.value,
            str(PASSES): fmean(right[True]) if right[True] else 1.0,
            str(FAILS): fmean(right[False]) if right[False] else 1.0,
        }

    def _winner(self) -> int | None:
        """Return the candidate that gains most: by weighted kappa and the worse kind of errors.

        Its agreement must be higher as well, as the test on the held-out part is about that.
        """

        def worth(one: Candidate) -> float:
            figures = one.select
            return figures["weighted kappa"] + min(figures[str(PASSES)], figures[str(FAILS)])

        base = self._candidates[0]
        better = [
            one
            for one in self._candidates[1:]
            if one.select
            and one.select[str(AGREES)] > base.select[str(AGREES)] + 1e-9
            and worth(one) > worth(base) + 1e-9
        ]
        if not better:
            return None
        return min(better, key=lambda one: (-round(worth(one), 9), one.words, one.number)).number

    def _quality(self, number: int, ids: Sequence[str]) -> Quality | None:
        """Return the agreement of judge and people on some things, like `baton calibrate`."""
        things = [self._verdicts[number, id_] for id_ in ids if (number, id_) in self._verdicts]
        there = {thing.key for thing in things}
        labels = [each for key, own in self._own_labels.items() if key in there for each in own]
        try:
            report = calibration_report(
                self._evaluator, labels, things, None, self._context.agent_names
            )
        except InputError:  # no verdict at all
            return None
        return report.judges[0].quality if report.judges else None

    def _described(self, number: int, id_: str) -> str:
        thing, labelled = self._verdicts.get((number, id_)), self._things[id_]
        opinion = labelled.opinion
        said = opinion.label if opinion.label is not None else f"{opinion.score:g}"
        notes = "; ".join(each.note for each in self._own_labels[labelled.key] if each.note)
        judged = "nothing" if thing is None else thing.label or f"{thing.value}"
        how = "agrees" if self._agreement(number, id_) >= 1 else "differs"
        lines = [f"{how}: people say `{said}`, the judge says `{judged}`"]
        if notes:
            lines.append(f"people note: {clip(notes, 500, ' ').text}")
        return "\n".join([*lines, clip(labelled.text, _SHOWN).text])


def _no_answer(thing: JudgedThing) -> JudgeError:
    """Return the error that ends a search, from a thing for which no model answered."""
    kind = next(each for each in _NOBODY_ANSWERS if each == thing.trouble)
    return JudgeError(kind, (thing.why or "no answer").removeprefix(f"{kind}: "))

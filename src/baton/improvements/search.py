"""One improvement: it splits the cases, and studies the texts of components one after the other.

Each study starts from the texts that were proven before it. Candidates are tried on train cases and
ranked on select cases, and the winner is played once on held-out cases. Plays and models' answers
go through the journal, so that a killed improvement continues where it stopped.
"""

from __future__ import annotations

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from statistics import fmean
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

from baton.changed_texts import faults_of_change
from baton.components import are_examples, chosen
from baton.gate.compare_axes import CASES_PASSED, Axis, CaseValues
from baton.gate.snapshot import SnapshotBuilder
from baton.model import Case, InputError, Judge, JudgeError, counted
from baton.model.option_spelling import option
from baton.model.score import rounded
from baton.replays.text_risks import new_in
from baton.stats.significance import compare_pairs

from .choose_component import Chosen, Failing, choose, pointing
from .held_out_leaks import Leaks
from .journal import Journal, Play, Proposal, Ruling, hash_of
from .plays import Blame, BudgetError, Options, Playable, Plays, RepeatEach, StoppedError
from .proposal_prompts import MOMENTS, Material, question, request
from .prove_gain import Decided, Side, prove, side_of
from .result import Candidate, Improvement, Study
from .split_cases import draw, texts_of, units_of
from .strategies import (
    WAYS,
    Asking,
    Choosing,
    Proposed,
    Proposer,
    Scored,
    search,
    wait_in,
    with_rules,
)

T = TypeVar("T")

BATCH = 8
"""The number of train cases that a child and its parent are tried on, half of them failing ones:
with 8, a text that fixes half of the failing cases is found to be better in 15 of 16 tries."""
_ROUNDS = 5
"""Maximum rounds of the engine per candidate, so that the search also ends if all children are
refused."""
_LOST = 0.01
"""The p-value below which a candidate counts as worse than the best so far on the same cases, so
that the rest of the select cases is not played. It is low because it is checked after every
third."""
_LONGER = 2, 150
"""How much longer a text may get: this many times its words, or this many words more, whichever is
more. Each word is paid for in every request, and texts that grew beyond this were lists of
cases."""
_FALSE_GAINS = 0.05
"""The probability of a false gain in a whole run. The studies share it; the share of a proven study
goes to later studies (the fallback procedure: B. L. Wiens, 2003)."""


AGAIN = 8
"""The number of cases to play a second time. If each passes two of three plays, 8 cases show it in
99 of 100 runs; if each passes nine of ten, in 80."""
PLAYED_AGAIN = 2
"""Additional plays of each of them: both are new, because all repeats of a case are played
together."""
_REPEATS = 3
"""Plays of a case if agents are random. More plays would show less than more cases."""
OnStep = Callable[[str], None]
"""Called with each event, as one line."""


class Progress(NamedTuple):
    """The progress of an improvement."""

    step: OnStep = lambda _: None
    studied: Callable[[Improvement], None] = lambda _: None


async def improve_texts(
    moments: Playable,
    judge: Judge,
    journal: Journal,
    options: Options,
    *,
    id_: str = "improvement",
    target: str = "",
    progress: Progress = Progress(),  # noqa: B008 - two functions that do nothing
    blame: Blame = lambda _: [],
    repeat_each: RepeatEach | None = None,
) -> Improvement:
    """Improve the texts of agents, one component after the other.

    Args:
        moments: the cases, their player, their evaluators, and how often each case is played.
        judge: the model that proposes; already entered with ``with``.
        journal: the earlier work, and its file.
        options: the options of the improvement.
        id_: the name of the run's folder.
        target: the name of the agent, as the user gave it.
        progress: gets reports of the progress.
        blame: returns the agents that are proven to have made a case fail.
        repeat_each: sets how often each case is played. If it is given, some cases are played
            twice, and if the results differ, all cases are played more often.

    Raises:
        InputError: there are too few cases, nothing fails, a component does not exist, or the
            agents have no texts.
    """
    run = _Run(moments, judge, journal, options, id_, target, progress, blame, repeat_each)
    return await run.improve()


class _Run:
    """One running improvement."""

    def __init__(
        self,
        moments: Playable,
        judge: Judge,
        journal: Journal,
        options: Options,
        id_: str,
        target: str,
        progress: Progress,
        blame: Blame,
        repeat_each: RepeatEach | None,
    ) -> None:
        self._repeat_each = repeat_each
        self.options, self.journal, self.judge, self.progress = options, journal, judge, progress
        left_out = moments.silent
        self.cases = {case.id: case for case in moments.cases if case.id not in left_out}
        drawn = draw(units_of(self.cases.values()), options.seed)
        self.split, self.groups = drawn.split, drawn.groups
        notes = list(drawn.notes)
        if left_out:
            notes.append(
                f"{counted(len(left_out), 'case')} left out: they do not say what should happen"
            )
        self.plays = Plays(moments, journal, options, self.split, blame)
        self.result = Improvement(
            id=id_,
            target=target,
            studies=[],
            split=self.split,
            seed=options.seed,
            status="running",
            notes=notes,
        )
        self.moments = moments
        self.types = moments.types

    async def improve(self) -> Improvement:
        began = perf_counter()
        self.progress.studied(self.result)  # a reader sees now that it is running
        try:
            await self._improve()
        except StoppedError as stopped:
            self.result.stopped = str(stopped)
        except BaseException:
            self.result.status = "interrupted"
            self.result.seconds = perf_counter() - began
            self._sum_up()
            self.progress.studied(self.result)
            raise
        result = self.result
        result.status = "finished"
        result.seconds = perf_counter() - began
        result.own_seconds = max(0.0, result.seconds - self.plays.waited)
        self._sum_up()
        return result

    async def _improve(self) -> None:
        texts = await self.moments.texts()
        plays = self.plays
        plays.components = [name for name in texts if name.startswith("agent:")]
        plays.components += [each for each in self.options.components if each in texts]
        open_ids = [*self.split.train, *self.split.select]
        self.progress.step(f"{counted(len(open_ids), 'case')} played as they are")
        before = await plays.of({}, open_ids)
        if self._repeat_each is not None and await self._is_random(open_ids, self._repeat_each):
            before = await plays.of({}, open_ids)
        chosen_ = choose(
            (Failing(play.row, play.blamed, play.last) for own in before.values() for play in own),
            self.types,
            texts,
            agents=self.options.agents,
            named=self.options.components,
            aimed=_axis_named(self.options.aimed),
            pointed=self.options.pointed,
            note=self.result.notes.append,
        )
        proven: dict[str, str] = {}
        share = open_share = _FALSE_GAINS / len(chosen_)
        for chosen_one in chosen_:
            study = _Search(self, chosen_one, texts, proven, open_share)
            try:
                # Held-out cases are played for only one winner: resuming with more candidates, and
                # so another winner, would mean testing until one passes by chance.
                made = self.journal.ruling(chosen_one.component) or await study.make()
            except StoppedError as stopped:
                made = study.ended("stopped", str(stopped))
                self.result.studies.append(made)
                self._sum_up()
                raise
            self.result.studies.append(made)
            self._sum_up()
            self.progress.studied(self.result)
            if study.cut is not None:
                raise StoppedError(study.cut)
            if made.after is not None:
                proven[made.component] = made.after
                open_share += share
            else:
                open_share = share

    async def _is_random(self, open_ids: Sequence[str], repeat_each: RepeatEach) -> bool:
        """Return whether cases have other results when they are played again; if so, repeat them.

        A single play of a random agent is a draw: a search would keep lucky texts, and the test on
        held-out cases, which counts cases, would need many more of them.
        """
        some = random.Random(f"again {self.options.seed}").sample(  # noqa: S311 - no secret
            sorted(open_ids), min(AGAIN, len(open_ids))
        )
        self.progress.step(f"{counted(len(some), 'case')} played again, to see what is random")
        differing = await self.plays.differing(some, repeat_each)
        if not differing:
            return False
        observed = (
            f"{len(differing)} of {counted(len(some), 'case')} had another outcome when played "
            "again"
        )
        if self.options.max_calls is not None:
            self.result.notes.append(
                f"{observed}: agents or judges are random. Give {option('repeat')}, with a higher "
                f"{option('max_calls')}"
            )
            return False
        repeat_each(_REPEATS)
        self.result.notes.append(
            f"{observed}: agents or judges are random, so each case is played {_REPEATS} times "
            f"({option('repeat')} decides otherwise)"
        )
        return True

    def _sum_up(self) -> None:
        result = self.result
        result.plays, result.asked, result.cost_usd = self.journal.sums()


def _axis_named(name: str | None) -> Axis | None:
    if name is None:
        return None
    axis, of, agent = name.partition(" of ")
    return Axis(axis, agent if of else None)


def _values(plays: Mapping[str, Sequence[Play]]) -> dict[str, CaseValues]:
    builder = SnapshotBuilder()
    for own in plays.values():
        for play in own:
            builder.add(play.row)
    return {case.id: case.values() for case in builder.cases()}


def _means(values: CaseValues) -> dict[Axis, float]:
    return {axis: fmean(own) for axis, own in values.values.items() if own}


class _Search:
    """The study of one component; implements :class:`baton.improvements.strategies.Search`."""

    def __init__(
        self,
        run: _Run,
        chosen_: Chosen,
        texts: Mapping[str, str],
        proven: Mapping[str, str],
        false_gains: float,
    ) -> None:
        self._run, self._plays, self._options = run, run.plays, run.options
        self.component, self._why, self._aimed = chosen_
        self._before = texts[self.component]
        self._proven = dict(proven)
        self._false_gains = false_gains
        self._candidates = [Candidate.made(0, self._before, "as it is")]
        self._numbers = {self._before: 0}
        self._seen: defaultdict[int, dict[str, CaseValues]] = defaultdict(dict)
        self._questions = 0
        self._rounds = self._tries = 0
        self._loop = asyncio.get_running_loop()
        self._draw = random.Random(f"{run.options.seed} {self.component}")  # noqa: S311
        known = [text for id_ in run.split.train for text in texts_of(run.cases[id_])]
        held = [text for id_ in run.split.held_out for text in texts_of(run.cases[id_])]
        self._leaks = Leaks(held, [*known, *texts.values()])
        times, more = _LONGER
        words = len(self._before.split())
        self._most_words = run.options.most_words or max(times * words, words + more)
        self._tools: set[str] = set()
        self._best: int | None = None
        self._closed = False
        self.cut: str | None = None
        """Why the search ended before its time."""

    # What happens in the study.

    async def make(self) -> Study:
        run, options = self._run, self._options
        _, self._tools = await run.moments.known()
        train, select = run.split.train, run.split.select
        way = WAYS[options.strategy]
        self._proposer = await self._proposer_of()
        run.progress.step(f"{self.component}: {options.strategy}, {self._why}")
        base = await self._plays.of(self._texts(self._before), [*train, *select])
        self._seen[0] = _values(base)
        name = self.component.partition(":")[2]
        self._at_it = {
            id_
            for id_, own in base.items()
            for play in own
            if any(agent == name for agent, _ in pointing(play.row, run.types, play.last))
        }
        self._base_select = [self._score(0, id_) for id_ in select]
        if min(self._base_select) >= 1:
            return self.ended(
                "no proven gain",
                f"none of {len(select)} select cases fails in {self._aimed}, so that candidates "
                "could not be distinguished: add cases that fail",
            )
        self._candidates[0].train = self._on_train(self._candidates[0])
        self._candidates[0].select = self._select_means(0)
        seed = self._draw.randrange(2**31)
        held_out = run.split.held_out
        self._plays.reserve = self._plays.unplayed(self._texts(self._before), held_out)
        self._plays.reserve += len(held_out) * run.moments.options.repeat
        try:
            await asyncio.to_thread(search, self, way, self._before, train, select, seed)
        except BudgetError as error:
            self.cut = str(error)
        finally:
            self._closed = True
            self._plays.reserve = 0
        self._best = self._winner()
        if self._best is None:
            return self.ended("no proven gain", self._why_none())
        run.progress.step(f"{self.component}: candidate {self._best} is played on held-out cases")
        decided = await self._decide(self._best)
        study = self.ended(decided.outcome, decided.reason)
        study.proof = decided.proof
        study.marks = new_in(self._before, self._candidates[self._best].text, self._tools)
        run.journal.add(Ruling(study=study))
        return study

    def ended(self, outcome: Any, reason: str) -> Study:
        """Return the finished study."""
        return Study(
            component=self.component,
            why=self._why,
            strategy=self._options.strategy,
            before=self._before,
            candidates=self._candidates,
            best=self._best,
            outcome=outcome,
            reason=reason,
            aimed=str(self._aimed),
        )

    async def _decide(self, best: int) -> Decided:
        held_out = self._run.split.held_out

        async def side(text: str) -> Side:
            plays = await self._plays.of(self._texts(text), held_out)
            listed = [play for own in plays.values() for play in own]
            return side_of((p.row for p in listed), text, (p.cost_usd for p in listed))

        options = self._options
        return prove(
            await side(self._before),
            await side(self._candidates[best].text),
            self._aimed,
            groups=self._run.groups,
            judged=options.judged,
            witnesses=[axis for name in options.witnesses if (axis := _axis_named(name))],
            of_work=self._run.moments.of_work,
            lower_is_better=options.lower_is_better,
            confidence=1 - self._false_gains,
        )

    def _why_none(self) -> str:
        tried = [each for each in self._candidates[1:] if each.plays]
        cut = f"; {self.cut}" if self.cut is not None else ""
        if not tried:
            refused = [each.refused for each in self._candidates if each.refused]
            last = f": {refused[-1]}" if refused else ""
            return f"no candidate could be played{last}{cut}"
        bought = self._best_that_loses()
        if bought is not None:
            return f"no candidate is better without a loss: {bought}{cut}"
        who = "the one candidate that was played is not"
        if len(tried) > 1:
            who = f"none of the {len(tried)} candidates that were played is"
        return f"{who} better than the text as it is on the select cases{cut}"

    def _best_that_loses(self) -> str | None:
        """Return which candidate is best on the aimed axis, and what it loses, if any is."""
        base, aimed = self._candidates[0].select, str(self._aimed)
        better = [
            (one, (one.select[aimed] - base[aimed]) * self._sign(aimed))
            for one in self._candidates[1:]
            if not one.ended_early and aimed in one.select and aimed in base
        ]
        better = [(one, rise) for one, rise in better if rise > 1e-9]
        if not better:
            return None
        one, _ = max(better, key=lambda each: (each[1], -each[0].number))
        worse = [
            f"{name} from {rounded(base[name], value)} to {rounded(value, base[name])}"
            for name, value in one.select.items()
            if name in base and (value - base[name]) * self._sign(name) < -1e-9
        ]
        before, after = base[aimed], one.select[aimed]
        moved = f"{aimed} from {rounded(before, after)} to {rounded(after, before)}"
        return f"candidate {one.number} moves {moved}, but makes this worse: {', '.join(worse[:3])}"

    def _winner(self) -> int | None:
        """Return the candidate that gains most on the select cases; ``None`` if none gains.

        Losses on other axes are subtracted: a candidate that is worse on an axis could not be
        proven.
        """
        whole = [each for each in self._candidates[1:] if each.select and not each.ended_early]
        base = self._candidates[0].select

        def gain(one: Candidate) -> float:
            moved = {
                name: (value - base[name]) * self._sign(name)
                for name, value in one.select.items()
                if name in base
            }
            lost = max(
                [0.0, *(-value for name, value in moved.items() if name != str(self._aimed))]
            )
            if moved.get(str(CASES_PASSED), 0.0) < -1e-9:
                return 0.0  # fewer cases pass, so its gain does not count
            return moved.get(str(self._aimed), 0.0) - lost

        better = [each for each in whole if gain(each) > 1e-9]
        if not better:
            return None
        return min(better, key=lambda each: (-round(gain(each), 9), each.words, each.number)).number

    # Called by the engine, from its own thread.

    def evaluate(self, text: str, cases: Sequence[str]) -> Scored:
        return self._wait(self._evaluate(text, cases))

    def propose(self, parent: str, moments: Sequence[str]) -> str:
        return self._wait(self._propose(parent, moments))

    def batch(self) -> list[str]:
        """Draw train cases; half of them fail with the original text, so they can show a gain.

        A case that fails through another agent's fault shows nothing, however good the text is.
        """
        train = self._run.split.train
        failing = [id_ for id_ in train if self._score(0, id_) < 1]
        failing = [id_ for id_ in failing if id_ in self._at_it] or failing
        passing = [id_ for id_ in train if self._score(0, id_) >= 1]
        rest = [id_ for id_ in train if id_ not in failing and id_ not in passing]
        size = min(BATCH, len(train))
        half = max(size // 2, size - len(passing))
        drawn = self._draw.sample(failing, min(len(failing), half))
        for more in (passing, rest):
            drawn += self._draw.sample(more, min(size - len(drawn), len(more)))
        return sorted(drawn)

    def is_over(self) -> bool:
        self._rounds += 1
        limit = self._options.candidates
        # A perfect candidate that loses elsewhere could not be proven, so the search continues.
        best = self._winner()
        perfect = (
            best is not None
            and self._candidates[best].select.get(str(self._aimed)) == self._perfect
        )
        return perfect or self._tries >= limit or self._rounds > _ROUNDS * limit

    @property
    def _perfect(self) -> float:
        return 1.0 if self._sign(self._aimed.name) > 0 else 0.0

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return wait_in(None if self._closed else self._loop, work)

    async def _evaluate(self, text: str, cases: Sequence[str]) -> Scored:
        number = self._numbers[text]
        one = self._candidates[number]
        if number and cases and cases[0] in self._run.split.select:
            await self._race(one)
        else:
            await self._see(one, cases)
            if one.number:
                one.train = self._on_train(one)
        seen = self._seen[number]
        is_unplayed = one.ended_early
        scores = [
            # It can no longer win, whatever the rest gives: it counts as zero for the front.
            0.0 if is_unplayed and id_ not in seen else self._score(number, id_)
            for id_ in cases
        ]
        axes = [
            self._objectives(number, id_, score) for id_, score in zip(cases, scores, strict=True)
        ]
        return Scored(scores, axes, [self._described(text, id_) for id_ in cases])

    async def _see(self, one: Candidate, cases: Collection[str]) -> None:
        missing = [id_ for id_ in cases if id_ not in self._seen[one.number]]
        plays = await self._plays.of(self._texts(one.text), missing)
        self._seen[one.number] |= _values(plays)
        if one.number:
            one.plays += sum(map(len, plays.values()))
            costs = [p.cost_usd for own in plays.values() for p in own if p.cost_usd is not None]
            if costs:
                one.cost_usd = (one.cost_usd or 0.0) + sum(costs)

    async def _race(self, one: Candidate) -> None:
        """Play the select cases by thirds, until the candidate can no longer win.

        It stops if the best so far would be ahead even if all remaining cases passed, or if the
        candidate is worse on the same cases than chance would explain.
        """
        select = list(self._run.split.select)
        random.Random(f"{self._options.seed} {self.component} race").shuffle(select)  # noqa: S311
        whole = [each for each in self._candidates if each.select and not each.ended_early]
        best = max(whole, key=lambda each: (fmean(self._scores(each, select)), -each.number))
        goal = fmean(self._scores(best, select))
        third = -(-len(select) // 3)
        for at in range(0, len(select), third):
            await self._see(one, select[at : at + third])
            seen = select[: at + third]
            left = len(select) - len(seen)
            if left and self._is_hopeless(one, best, seen, left, goal):
                one.ended_early = True
                break
        one.select = self._select_means(one.number)

    def _is_hopeless(
        self, one: Candidate, best: Candidate, seen: Sequence[str], left: int, goal: float
    ) -> bool:
        mine, theirs = self._scores(one, seen), self._scores(best, seen)
        if (sum(mine) + left) / (len(seen) + left) < goal - 1e-9:
            return True
        then, now = (
            {id_: [value] for id_, value in zip(seen, own, strict=True)} for own in (theirs, mine)
        )
        difference = compare_pairs(then, now)
        return (
            difference is not None
            and difference.difference.value < 0
            and difference.p is not None
            and difference.p <= _LOST
        )

    async def _propose(self, parent: str, moments: Sequence[str]) -> str:
        if self._tries >= self._options.candidates:
            return parent
        self._tries += 1
        failing = [each for each in moments if each.startswith("failed")]
        shown = [*failing, *(each for each in moments if each not in failing)][:MOMENTS]
        history = self._history()
        cost_before = self._run.journal.sums()[2] or 0.0
        proposed: Proposed = await self._proposer(parent, shown, history)
        cost = (self._run.journal.sums()[2] or 0.0) - cost_before
        text = proposed.text
        known = self._numbers.get(text) if text is not None else None
        if text is not None and known and not self._candidates[known].select:
            # It was no better on the few cases of its first try; these are other cases.
            self._candidates[known].cost_usd = (self._candidates[known].cost_usd or 0.0) + cost
            return text
        number = len(self._candidates)
        made = Candidate.made(number, text if text is not None else parent, proposed.by)
        made.parents = [self._numbers[parent]]
        made.cost_usd = cost or None
        self._candidates.append(made)
        made.refused = "the model gave no usable answer" if text is None else self._fault(text)
        if made.refused is not None or text is None:
            return parent
        self._numbers[text] = number
        return text

    def _history(self) -> list[tuple[str, float]]:
        """Return the texts that were tried, with comparable scores."""
        tried = [(each.text, self._on_train(each)) for each in self._candidates]
        return [(text, score) for text, score in tried if score is not None]

    def _fault(self, text: str) -> str | None:
        """Return which rule a text breaks; ``None`` if it may be played."""
        if text in self._numbers:
            number = self._numbers[text]
            return (
                "it is the current text" if number == 0 else f"it is the same as candidate {number}"
            )
        if are_examples(self.component):
            return self._leaks.fault(text)
        faults = faults_of_change(self._before, text, self._tools)
        words = len(text.split())
        if words > self._most_words:
            faults.append(f"it has {words} words; at most {self._most_words} are allowed")
        return "; ".join(faults) or self._leaks.fault(text)

    async def _ask(self, name: str, material: Material) -> Any:
        """Ask a question of the strategy; raises StoppedError if no model answers."""
        number = self._questions
        self._questions += 1
        kept = self._run.journal.proposal(self.component, number)
        if kept is None:
            kept = await self._ask_anew(name, material, number)
        answer = kept.value.get(question(name).answer)
        return answer or None

    async def _ask_anew(self, name: str, material: Material, number: int) -> Proposal:
        self._plays.within_budget()
        asked = request(name, self.component, self._most_words, material)
        # The same question may be repeated, and should then get another answer: so the sample has a
        # number, and another seed gives other samples.
        sample = (self._options.seed % 1_000_000) * 10_000 + number
        began = perf_counter()
        try:
            response = await self._run.judge.ask(asked, sample=sample)
        except JudgeError as error:
            if error.kind in _NO_ANSWER:
                made = Proposal(study=self.component, number=number, value={}, requests=1)
                self._run.journal.add(made)
                return made
            if error.kind == "budget":
                raise BudgetError(f"the budget is used up: {error.message}") from None
            raise StoppedError(f"the model gave no answer: {error.message}") from None
        finally:
            self._plays.waited += perf_counter() - began
        made = Proposal(
            study=self.component,
            number=number,
            value=response.value,
            requests=response.requests,
            cost_usd=response.cost_usd,
        )
        self._run.journal.add(made)
        return made

    async def _proposer_of(self) -> Proposer:
        strategy, seed = self._options.strategy, self._draw.randrange(2**31)
        if are_examples(self.component):
            if strategy != "bayesian":
                raise InputError(
                    f"`{self.component}` is a choice of cases: the strategy `bayesian` chooses"
                )
            pool = [id_ for id_ in self._run.split.train if _shows(self._run.cases[id_])]
            cases = self._run.cases
            return Choosing(
                seed,
                self._before,
                None,
                pool,
                lambda _, ids: chosen([cases[id_] for id_ in ids]),
                self._measured,
            )
        if strategy == "bayesian":
            return Choosing(seed, self._before, self._ask, [], with_rules, self._measured)
        return Asking(strategy, self._ask)

    def _measured(self, text: str) -> float | None:
        number = self._numbers.get(text)
        if number is None:
            return None
        seen = self._seen[number].keys() & self._plays.train
        if not seen:
            return None
        return fmean(self._score(number, id_) - self._score(0, id_) for id_ in seen)

    # Numbers.

    def _texts(self, text: str) -> dict[str, str]:
        own = {} if text == self._before else {self.component: text}
        return {**self._proven, **own}

    def _sign(self, axis: str) -> int:
        return -1 if axis.partition(" of ")[0] in self._options.lower_is_better else 1

    def _score(self, number: int, id_: str) -> float:
        """Return how well a case went on the aimed axis; higher is better.

        If there is no value, because the play failed or the axis does not apply, the value with the
        original text counts: an error is neither a gain nor a loss.
        """
        for each in (number, 0):
            values = self._seen[each].get(id_)
            own = values.values.get(self._aimed) if values is not None else None
            if own:
                mean = fmean(own)
                return mean if self._sign(self._aimed.name) > 0 else 1 - mean
        return 0.5

    def _scores(self, one: Candidate, cases: Collection[str]) -> list[float]:
        return [self._score(one.number, id_) for id_ in cases]

    def _on_train(self, one: Candidate) -> float | None:
        """Return how well a candidate does on train cases, so that candidates can be compared.

        Each candidate was played on different cases, and more of these fail with the original text
        than of all cases: plain means would rank the original text above most of the better ones.
        So this is the mean over the cases that fail with the original text and the mean over those
        that pass, weighted by their shares of all cases; for cases that it was not played on, the
        original result counts. Cases without a value on the aimed axis do not count.
        """
        seen, base = self._seen[one.number], self._seen[0]
        train = [
            id_
            for id_ in self._run.split.train
            if id_ in base and base[id_].values.get(self._aimed)
        ]
        if not seen.keys() & train:
            return None
        total = 0.0
        for fails in (True, False):
            own = [id_ for id_ in train if (self._score(0, id_) < 1) == fails]
            if own:
                total += len(own) * fmean(self._scores(one, [c for c in own if c in seen] or own))
        return total / len(train)

    def _select_means(self, number: int) -> dict[str, float]:
        """Return each axis's mean over the select cases that have a value both now and before."""
        seen, base = self._seen[number], self._seen[0]
        sums: dict[str, list[float]] = {}
        for id_ in self._run.split.select:
            if id_ in seen and id_ in base:
                now, then = _means(seen[id_]), _means(base[id_])
                for axis, value in now.items():
                    if axis in then:
                        sums.setdefault(str(axis), []).append(value)
        return {name: fmean(values) for name, values in sums.items()}

    def _objectives(self, number: int, id_: str, score: float) -> dict[str, float]:
        values = self._seen[number].get(id_)
        means = _means(values) if values is not None else {}
        other = {str(axis): value * self._sign(axis.name) for axis, value in means.items()}
        return {**other, str(CASES_PASSED): means.get(CASES_PASSED, score), "aimed": score}

    def _described(self, text: str, id_: str) -> str:
        play = self._run.journal.play(hash_of(self._texts(text)), id_, 0)
        return play.described.get(self.component, "") if play is not None else ""


_NO_ANSWER = frozenset({"unparsable", "refusal", "truncated", "empty"})
"""Kinds of errors that concern one question only: the next one may be answered."""


def _shows(case: Case) -> bool:
    """Return whether a case can be an example: it states the expected result."""
    try:
        chosen([case])
    except InputError:
        return False
    return True

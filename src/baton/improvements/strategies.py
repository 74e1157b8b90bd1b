"""Six strategies to search for a better text, all with gepa's engine.

A strategy is data: which text gets the next child, how many children are made at once, which of
them stay, and the questions to a model for each. gepa (L. A. Agrawal et al., "GEPA: Reflective
Prompt Evolution Can Outperform Reinforcement Learning", 2025) runs the search; its printing,
logging and pickling are disabled.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, get_args

from baton.model import InputError, suggestion
from baton.model.option_spelling import option
from baton.plugins.origin import install, requirement

from .proposal_prompts import Material
from .result import Strategy

ALIASES: dict[str, Strategy] = {
    "RandomSearchOptimizer": "random",
    "BayesianSearchOptimizer": "bayesian",
    "MetaPromptOptimizer": "meta_prompt",
    "ProTeGi": "protegi",
    "GEPAOptimizer": "gepa",
    "PromptWizardOptimizer": "prompt_wizard",
}
"""The names of these strategies in other tools."""
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


class Way(NamedTuple):
    """A strategy as data.

    Args:
        parents: the text to change next: a member of the Pareto front over cases and axes, the best
            so far, or one of the five best on the front.
        beam: the number of parents in a round, and of children of each.
        keep: the maximum number of children of a round that stay; ``None`` for all better ones.
        asks: the questions for a child; each gets the answer to the previous one.
    """

    parents: Literal["pareto", "current_best", "top_k_pareto"]
    beam: tuple[int, int]
    keep: int | None
    asks: tuple[str, ...]


WAYS: dict[Strategy, Way] = {
    # Blind: it sees neither traces nor scores. A strategy that is no better is not worth its cost.
    "random": Way("current_best", (1, 2), 1, ("vary",)),
    # A pool of short rules (of examples: cases); a Bayesian optimiser learns which help together.
    "bayesian": Way("current_best", (1, 1), None, ("rules",)),
    # One question about all tried texts, with their scores, and examples of the task, as in "Large
    # Language Models as Optimizers" (C. Yang et al., 2023).
    "meta_prompt": Way("current_best", (1, 1), None, ("from_history",)),
    # Critique as a gradient, edits along it, and a beam (R. Pryzant et al., "Automatic Prompt
    # Optimization with Gradient Descent and Beam Search", 2023).
    "protegi": Way("top_k_pareto", (2, 2), 4, ("critique", "edit")),
    "gepa": Way("pareto", (1, 1), None, ("reflect",)),
    # Mutate, critique, refine, with examples (E. Agarwal et al., "PromptWizard: Task-Aware Prompt
    # Optimization Framework", 2024).
    "prompt_wizard": Way("current_best", (1, 1), None, ("mutate", "critique_new", "refine")),
}


def strategy_named(name: str) -> Strategy:
    """Return a strategy by its name or an alias; raises InputError for an unknown name."""
    for known in STRATEGIES:
        if name == known:
            return known
    if name in ALIASES:
        return ALIASES[name]
    hint = suggestion(name, [*STRATEGIES, *ALIASES]) or f"write one of {', '.join(STRATEGIES)}"
    raise InputError(f"{option('strategy')}: there is no strategy `{name}`; {hint}")


T = TypeVar("T")


class Ended(BaseException):
    """Ends a search at once. gepa treats any Exception as the failure of one proposal."""


def wait_in(loop: asyncio.AbstractEventLoop | None, work: Coroutine[Any, Any, T]) -> T:
    """Do the work in another thread's loop, and wait for it, as gepa knows no asyncio.

    Raises:
        Ended: the work failed, or there is no loop: the task that waited for gepa was cancelled.
    """
    if loop is None:
        work.close()
        raise Ended(None)
    try:
        return asyncio.run_coroutine_threadsafe(work, loop).result()
    except BaseException as error:
        raise Ended(error) from error


Ask = Callable[[str, Material], Awaitable[Any]]
"""Asks a model a question by name; returns a text or a list, ``None`` for no usable answer."""


class Proposed(NamedTuple):
    """A text and its origin, or the reason if there is no text."""

    text: str | None
    by: str


class Proposer(Protocol):
    """Makes the text of a child."""

    async def __call__(
        self, parent: str, moments: Sequence[str], history: Sequence[tuple[str, float]]
    ) -> Proposed:
        """Return a new text for a parent; ``moments`` are its plays that proposers may see."""
        ...


class Asking:
    """Proposes with the questions of a strategy, one after the other."""

    def __init__(self, strategy: Strategy, ask: Ask) -> None:
        self._name, self._asks, self._ask = strategy, WAYS[strategy].asks, ask

    async def __call__(
        self, parent: str, moments: Sequence[str], history: Sequence[tuple[str, float]]
    ) -> Proposed:
        """Ask the questions, passing each answer on; a text in an answer replaces the new one."""
        material = Material(text=parent, moments=moments, history=history)
        by = f"{self._name}: {', '.join(self._asks)}"
        for name in self._asks:
            answer = await self._ask(name, material)
            if answer is None:
                return Proposed(None, by)
            if isinstance(answer, str):
                material = material._replace(new=answer)
            else:
                material = material._replace(notes=answer)
        return Proposed(material.new, by)


class Measured(Protocol):
    """Measures how much better a text is than the original on cases that both were played on."""

    def __call__(self, text: str) -> float | None:
        """Return the mean gain over the train cases that it was played on; ``None`` without any."""
        ...


class Choosing:
    """Proposes selections from a pool: short rules that a model wrote, or cases as examples.

    A tree-structured Parzen estimator (J. Bergstra et al., "Algorithms for Hyper-Parameter
    Optimization", NeurIPS 2011; optuna's) decides for each member of the pool whether it is used.

    Args:
        seed: the seed of the draw.
        original: the text that the rules are added to.
        ask: asks for rules; ``None`` if ``pool`` is complete.
        pool: the initial members.
        build: makes a text from the original and the chosen members.
        measured: returns the gain of a text.
    """

    MORE = 6
    """Trials before the model is asked for more rules: as many as it may write at once."""
    MOST = 24
    """Maximum members of a pool: with more, about 40 trials say nothing about most of them."""
    TAKEN = 3
    """The average number of members in a random choice. Half of a large pool would be a long text,
    and would nearly always include a harmful member."""

    def __init__(
        self,
        seed: int,
        original: str,
        ask: Ask | None,
        pool: Sequence[str],
        build: Callable[[str, Sequence[str]], str],
        measured: Measured,
    ) -> None:
        try:
            import optuna
        except ImportError:
            raise InputError(
                f"the strategy `bayesian` needs optuna: {install(requirement('improve'))}"
            ) from None
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.TPESampler(seed=seed % 2**32, n_startup_trials=1)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._original, self._ask, self._build = original, ask, build
        self._pool = list(pool)[: self.MOST]
        self._measured = measured
        self._open: list[tuple[Any, str]] = []
        self._trials = 0
        self._chance = random.Random(seed)  # noqa: S311 - no secret is made of it

    async def __call__(
        self, parent: str, moments: Sequence[str], history: Sequence[tuple[str, float]]
    ) -> Proposed:
        """Choose from the pool, which is filled as the search continues."""
        del parent  # a choice starts with the original
        by = "bayesian: choice of " + ("rules" if self._ask is not None else "examples")
        if self._ask is not None and self._trials % self.MORE == 0 and len(self._pool) < self.MOST:
            material = Material(text=self._original, moments=moments, history=history)
            answer = await self._ask("rules", material)
            new = [each.strip() for each in answer or [] if each.strip()]
            self._pool += [each for each in dict.fromkeys(new) if each not in self._pool]
            del self._pool[self.MOST :]
        if not self._pool:
            return Proposed(None, by)
        for trial, text in self._open:
            gain = self._measured(text)
            self._study.tell(trial, gain if gain is not None else 0.0)
        self._open.clear()
        if self._trials < 2 * self.MORE:
            self._study.enqueue_trial(self._drawn())
        trial = self._study.ask()
        taken = [
            each
            for number, each in enumerate(self._pool)
            if trial.suggest_categorical(f"member {number}", [False, True])
        ]
        self._trials += 1
        text = self._build(self._original, taken)
        self._open.append((trial, text))
        return Proposed(text, by)

    def _drawn(self) -> dict[str, Any]:
        """Return a random choice, for the first trials."""
        share = min(0.5, self.TAKEN / len(self._pool))
        names = [f"member {number}" for number in range(len(self._pool))]
        drawn = {name: self._chance.random() < share for name in names}
        drawn[self._chance.choice(names)] = True
        return drawn


def with_rules(text: str, rules: Sequence[str]) -> str:
    """Return a text with rules after it, one per line."""
    if not rules:
        return text
    return "\n".join([text.rstrip(), "", *rules])


class Scored(NamedTuple):
    """The results of a text on some cases: a score for each, and the values of other axes."""

    scores: list[float]
    axes: list[dict[str, float]]
    descriptions: list[str]


class Search(Protocol):
    """The interface of a study to gepa's engine, which calls it from its own thread."""

    def evaluate(self, text: str, cases: Sequence[str]) -> Scored:
        """Play a text on cases, all of train or all of select."""
        ...

    def propose(self, parent: str, moments: Sequence[str]) -> str:
        """Return a child's text, or the parent's if there is none."""
        ...

    def batch(self) -> list[str]:
        """Return the train cases that the next child is tried on."""
        ...

    def is_over(self) -> bool:
        """Return whether enough candidates were tried."""
        ...


def search(
    study: Search, way: Way, text: str, train: Sequence[str], select: Sequence[str], seed: int
) -> None:
    """Run gepa's engine to its end; raises what the study raises, InputError without gepa."""
    try:
        from gepa.api import optimize
        from gepa.core.adapter import EvaluationBatch
        from gepa.strategies.proposal_sampling import PxNSampling
        from gepa.strategies.proposal_selection import AllImprovements, TopKImprovements
    except ImportError:
        raise InputError(f"`baton improve` needs gepa: {install(requirement('improve'))}") from None

    class Adapter:
        propose_new_texts = None

        def evaluate(
            self, batch: list[str], candidate: dict[str, str], capture_traces: bool = False
        ) -> Any:
            scored = study.evaluate(candidate[_TEXT], batch)
            return EvaluationBatch(
                outputs=[None] * len(batch),
                scores=scored.scores,
                trajectories=scored.descriptions if capture_traces else None,
                objective_scores=scored.axes,
            )

        def make_reflective_dataset(
            self, _: dict[str, str], batch: Any, __: list[str]
        ) -> Mapping[str, Any]:
            return {_TEXT: [{_TOLD: each} for each in batch.trajectories if each] or [{_TOLD: ""}]}

    def propose(
        candidate: dict[str, str], moments: Mapping[str, Any], _: list[str]
    ) -> dict[str, str]:
        seen = [each[_TOLD] for each in moments[_TEXT] if each[_TOLD]]
        return {_TEXT: study.propose(candidate[_TEXT], seen)}

    class Batches:
        def next_minibatch_ids(self, _: Any, __: Any) -> list[int]:
            places = {case: place for place, case in enumerate(train)}
            return [places[case] for case in study.batch()]

    class Silent:
        def log(self, message: str) -> None:
            pass

    parents, children = way.beam
    try:
        optimize(
            seed_candidate={_TEXT: text},
            trainset=list(train),
            valset=list(select),
            adapter=Adapter(),
            custom_candidate_proposer=propose,
            candidate_selection_strategy=way.parents,
            frontier_type="hybrid",
            skip_perfect_score=False,
            batch_sampler=Batches(),
            sampling_strategy=PxNSampling(parents, children),
            selection_strategy=AllImprovements()
            if way.keep is None
            else TopKImprovements(way.keep),
            stop_callbacks=[lambda _: study.is_over()],
            logger=Silent(),
            track_best_outputs=False,
            seed=seed,
            raise_on_exception=True,
        )
    except Ended as ended:
        cause = ended.args[0] if ended.args else None
        if isinstance(cause, BaseException):
            raise cause from None


_TEXT, _TOLD = "text", "moment"

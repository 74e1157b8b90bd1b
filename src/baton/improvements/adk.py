"""An optimizer for Google ADK: each agent's instruction is a study, and a gain must be proven.

    from google.adk.optimization.local_eval_sampler import LocalEvalSampler
    from baton.improvements.adk import Optimizer

    result = await Optimizer("openai:gpt-4o-mini").optimize(root_agent, LocalEvalSampler(...))

It accepts any ADK sampler. ADK's own optimizer changes only the root agent, and reports the score
on the same examples that were used to choose the winner. This one changes the sub-agents as well,
and plays the winner on examples that were not used to choose it. `adk optimize` has no option for
another optimizer, so call this one from Python.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import isfinite
from typing import Any

import msgspec
from google.adk.agents.llm_agent import Agent
from google.adk.optimization.agent_optimizer import AgentOptimizer
from google.adk.optimization.data_types import AgentWithScores, OptimizerResult
from google.adk.optimization.sampler import Sampler

from baton.judges.judge import make_judge
from baton.judges.judge_settings import read_settings
from baton.judges.shorten_texts import clip
from baton.model import (
    Case,
    CaseResult,
    Content,
    ExpectedTurn,
    InputError,
    Judge,
    RunOptions,
    Score,
    Status,
    suggestion,
)
from baton.providers.frameworks.adk_agents import changed, texts_of

from .choose_component import MOST
from .journal import Journal
from .plays import CANDIDATES, Options
from .result import Improvement, Strategy
from .search import improve_texts
from .strategies import strategy_named

_SCORE = "sampler"
"""The axis: the score of ADK's sampler."""
_TOLD = 3_000
"""Maximum characters of a sampler's data on an example: its turns, tool calls and metrics as
JSON."""


class Result(OptimizerResult[AgentWithScores]):  # type: ignore[misc]
    """The result of an optimization: one agent, and how it was found.

    ``optimized_agents`` has the agent with all proven texts, or the original agent if no gain is
    proven. ``overall_score`` is its mean on the held-out examples.
    """

    improvement: Any = None
    """The :class:`baton.improvements.result.Improvement`: studies, candidates, proofs, split."""


class Optimizer(AgentOptimizer):  # type: ignore[misc]
    """Improves the instructions of an agent and its sub-agents; implements ADK's interface.

    All examples of the sampler, from both its training set and its validation set, are split again:
    some to learn from, some to choose by, and some to prove a gain with.

    Args:
        judge: the model that proposes texts, as in ``openai:gpt-4o-mini``, or settings by name as
            in ``judge:`` of a config.
        strategy: how texts are proposed; see ``docs/improve.md``.
        agents: the agents whose instructions are studied; by default the first three of the root
            agent and its sub-agents.
        candidates: the maximum number of texts to try for an agent.
        seed: the seed of random choices.
        max_calls: the maximum number of examples to play in total.
        max_cost: the maximum cost of the model, in USD. Samplers do not report the agents' cost.

    Raises:
        InputError: the strategy is unknown, or the judge's settings are wrong.
    """

    def __init__(
        self,
        judge: str | Mapping[str, Any],
        *,
        strategy: str = "gepa",
        agents: Sequence[str] = (),
        candidates: int = CANDIDATES,
        seed: int = 0,
        max_calls: int | None = None,
        max_cost: float | None = None,
    ) -> None:
        self._judge = {"model": judge} if isinstance(judge, str) else dict(judge)
        self._settings = read_settings(self._judge)
        self._strategy: Strategy = strategy_named(strategy)
        self._agents = list(agents)
        self._options = Options(
            strategy=self._strategy,
            seed=seed,
            candidates=candidates,
            max_calls=max_calls,
            max_cost=max_cost,
            aimed=_SCORE,
        )

    async def optimize(self, initial_agent: Agent, sampler: Sampler[Any]) -> Result:
        """Improve an agent by the examples of a sampler.

        Raises:
            InputError: there are too few examples, no text that could be changed, or no such agent;
                or the sampler returns scores outside of 0 to 1.
        """
        examples = _Examples(initial_agent, sampler)
        await examples.begin()
        options = msgspec.structs.replace(
            self._options, components=_components(await examples.texts(), self._agents)
        )
        async with make_judge(self._settings) as judge:
            improvement = await self._improved(examples, judge, options)
        texts = dict(improvement.texts)
        agent = changed(initial_agent, texts) if texts else initial_agent
        score = _held_out_score(improvement, examples)
        best = AgentWithScores(optimized_agent=agent, overall_score=score)
        return Result(optimized_agents=[best], improvement=improvement)

    async def _improved(self, examples: _Examples, judge: Judge, options: Options) -> Improvement:
        target = examples.agent.name
        with Journal.in_memory() as journal:
            return await improve_texts(examples, judge, journal, options, id_=target, target=target)


def _components(texts: Mapping[str, str], agents: Sequence[str]) -> list[str]:
    if not texts:
        message = "every instruction is computed by a function; only fixed texts can be improved"
        raise InputError(message)
    wanted = [f"agent:{name}" for name in agents] or list(texts)[:MOST]
    for name in wanted:
        if name not in texts:
            raise InputError(f"there is no `{name}`; {suggestion(name, texts) or 'there is none'}")
    return wanted


def _held_out_score(improvement: Improvement, examples: _Examples) -> float | None:
    """Return the mean of held-out examples after the last proven study, else before any change."""
    for study in reversed(improvement.studies):
        if study.outcome == "proven" and study.proof is not None:
            for axis in study.proof.comparison.axes:
                if axis.axis == study.proof.aimed:
                    return axis.difference.after
    held_out = improvement.split.held_out
    known = [each for id_ in held_out if (each := examples.unchanged.get(id_)) is not None]
    return sum(known) / len(known) if known else None


class _Examples:
    """The examples of a sampler as cases; implements :class:`baton.improvements.plays.Playable`."""

    types: Mapping[str, str] = {_SCORE: _SCORE}
    silent: Collection[str] = ()
    of_work: Collection[str] = ()

    def __init__(self, agent: Agent, sampler: Sampler[Any]) -> None:
        self.agent, self._sampler = agent, sampler
        self.options = RunOptions()
        self.cases: list[Case] = []
        self.unchanged: dict[str, float] = {}
        self._sets: dict[str, str] = {}
        self._first: dict[str, CaseResult] = {}

    async def begin(self) -> None:
        """Play all examples once: a sampler does not show their requests before that."""
        for name, ids in (
            (self._sampler.TRAIN_SET, self._sampler.get_train_example_ids()),
            (self._sampler.VALIDATION_SET, self._sampler.get_validation_example_ids()),
        ):
            for id_ in ids:
                self._sets.setdefault(id_, name)
        played = await self._play(self.agent, list(self._sets))
        for id_, (result, data) in played.items():
            said = _asked_in(data) or id_
            self.cases.append(Case(id=id_, turns=[ExpectedTurn(input=Content(text=said))]))
            self._first[id_] = result
            for each in result.scores:
                if each.value is not None:
                    self.unchanged[id_] = each.value

    async def texts(self) -> dict[str, str]:
        """Return the instructions of the agents, by ``agent:NAME``."""
        return (await self.known())[0]

    async def known(self) -> tuple[dict[str, str], set[str]]:
        """Return the instructions and the names of the tools."""
        every = texts_of(self.agent)
        texts = {name: text for name, text in every.items() if _is_instruction(name) and text}
        return texts, {n.removeprefix("tool:") for n in every if n.startswith("tool:")}

    async def play_some(
        self,
        changed_texts: Mapping[str, str],
        cases: Collection[str],
        on_result: Callable[[CaseResult], None],
    ) -> Sequence[CaseResult]:
        """Play examples by id; reuse the results of the first play."""
        wanted = list(cases)
        results: dict[str, CaseResult] = {}
        if not changed_texts:
            results = {id_: self._first.pop(id_) for id_ in wanted if id_ in self._first}
        missing = [id_ for id_ in wanted if id_ not in results]
        if missing:
            agent = changed(self.agent, changed_texts) if changed_texts else self.agent
            results |= {
                id_: result for id_, (result, _) in (await self._play(agent, missing)).items()
            }
        for result in results.values():
            on_result(result)
        return list(results.values())

    async def _play(self, agent: Agent, ids: Sequence[str]) -> dict[str, tuple[CaseResult, Any]]:
        results: dict[str, tuple[CaseResult, Any]] = {}
        for name in dict.fromkeys(self._sets[id_] for id_ in ids):
            batch = [id_ for id_ in ids if self._sets[id_] == name]
            sampled = await self._sampler.sample_and_score(
                agent, example_set=name, batch=batch, capture_full_eval_data=True
            )
            every = getattr(sampled, "data", None) or {}
            for id_ in batch:
                data = every.get(id_)
                results[id_] = _result(id_, sampled.scores.get(id_), data), data
        return results


def _is_instruction(name: str) -> bool:
    kind, _, of = name.partition(":")
    return kind == "agent" and "." not in of


def _result(id_: str, score: float | None, data: Any) -> CaseResult:
    """Return the score of an example as a result; a missing score is an error."""
    if score is None:
        return CaseResult(case_id=id_, status="error", error="the sampler gave no score")
    if not isfinite(score) or not 0 <= score <= 1:
        raise InputError(f"the sampler gave `{id_}` the score {score:g}: scores are from 0 to 1")
    status: Status = "passed" if score >= 1 else "failed"
    shown = clip(_as_text(data), _TOLD, " ").text if data else ""
    own = Score(
        evaluator=_SCORE,
        type=_SCORE,
        version="1",
        unit="trace",
        subject=[],
        status=status,
        value=float(score),
        reason=f"score {score:g}. {shown}".strip(),
    )
    return CaseResult(case_id=id_, status=status, scores=[own])


def _as_text(data: Any) -> str:
    return msgspec.json.encode(data, enc_hook=str).decode()


def _asked_in(data: Any) -> str:
    """Return the user's messages in an example, as ADK's own samplers report them."""
    turns = data.get("invocations", ()) if isinstance(data, Mapping) else ()
    said = []
    for turn in turns:
        actual = turn.get("actual_invocation") if isinstance(turn, Mapping) else None
        text = actual.get("user_prompt") if isinstance(actual, Mapping) else None
        if isinstance(text, str):
            said.append(text)
    return "\n".join(said)

"""Baton as an optimizer of Google ADK: real agents, a sampler that plays them, a scripted model."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator, Iterator
from typing import Any

import pytest

from baton.model import InputError
from baton.testing import Received, Reply, llm_server

pytestmark = [
    pytest.mark.heavy,
    # ADK's own code warns of its own code.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]
ROUTES = "Broken goods go to refunds."
NAMES = "Say the number."
SENTENCES = [ROUTES, NAMES, *(f"Be kind on day {n}." for n in range(6))]
THINGS = ("kettle", "lamp", "chair", "radio", "clock", "scarf", "mirror", "basket")


def propose(received: Received) -> Reply:
    """Add one of the sentences; the script is not told which of them help."""
    blocks = dict(re.findall(r"⟦[0-9a-f]{16}: ([^\n⟦⟧]*)⟧\n([^⟦⟧]*)\n⟦/", received.user))
    text = blocks["The text as it is"]
    drawn = random.Random(received.user)
    return Reply(answer={"thinking": "", "text": f"{text} {drawn.choice(SENTENCES)}"})


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    monkeypatch.setenv("OPENAI_API_KEY", "none-is-needed")
    with llm_server(propose) as server:
        yield server.judge("openai", max_tokens=2000)


def agents() -> Any:
    """Return a desk and its sub-agent, whose models do what their instructions say."""
    from google.adk.agents import Agent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    class Scripted(BaseLlm):  # type: ignore[misc]
        model: str = "scripted"
        is_desk: bool = False

        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            told = str(llm_request.config.system_instruction or "")
            texts = [p.text for c in llm_request.contents for p in c.parts or [] if p.text]
            order = re.findall(r"\d{4}", " ".join(texts))[0]
            part = types.Part(text=f"Paid back{f' {order}' if NAMES in told else ''}.")
            if self.is_desk:
                part = types.Part(text="We looked into it.")
                if ROUTES in told:
                    call = types.FunctionCall(
                        name="transfer_to_agent", args={"agent_name": "refunds"}
                    )
                    part = types.Part(function_call=call)
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    refunds = Agent(name="refunds", model=Scripted(), instruction="You pay money back.")
    return Agent(
        name="desk",
        model=Scripted(is_desk=True),
        instruction="You are the desk.",
        sub_agents=[refunds],
    )


def sampler(count: int = 60) -> Any:
    """Return a sampler that plays the agents: half a point for who answers, half for the number."""
    from google.adk.optimization.data_types import UnstructuredSamplingResult
    from google.adk.optimization.sampler import Sampler
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    asks = {
        f"e{n:02}": f"my {THINGS[n % 8]} arrived broken, order {4000 + n}" for n in range(count)
    }

    class Playing(Sampler[Any]):  # type: ignore[misc]
        played = 0

        def get_train_example_ids(self) -> list[str]:
            return list(asks)[: count // 2]

        def get_validation_example_ids(self) -> list[str]:
            return list(asks)[count // 2 :]

        async def sample_and_score(
            self,
            candidate: Any,
            example_set: Any = "validation",
            batch: list[str] | None = None,
            capture_full_eval_data: bool = False,
        ) -> UnstructuredSamplingResult:
            known = self.get_train_example_ids()
            if example_set == "validation":
                known = self.get_validation_example_ids()
            ids = known if batch is None else batch
            assert set(ids) <= set(known)
            scores, data = {}, {}
            runner = InMemoryRunner(candidate.clone(), app_name="desk")
            for id_ in ids:
                self.played += 1
                session = await runner.session_service.create_session(app_name="desk", user_id="u")
                content = types.Content(role="user", parts=[types.Part(text=asks[id_])])
                said, by = "", ""
                async for event in runner.run_async(
                    user_id="u", session_id=session.id, new_message=content
                ):
                    for part in (event.content.parts or []) if event.content else []:
                        if part.text:
                            said, by = part.text, event.author
                number = re.findall(r"\d{4}", asks[id_])[0]
                scores[id_] = 0.5 * (by == "refunds") + 0.5 * (number in said)
                turn = {"actual_invocation": {"user_prompt": asks[id_], "agent_response": said}}
                data[id_] = {"invocations": [turn]}
            return UnstructuredSamplingResult(scores=scores, data=data)

    return Playing()


def test_sub_agents_are_improved_as_well_and_the_gain_is_proven_on_examples_that_chose_nothing(
    judge: dict[str, Any],
) -> None:
    from baton.improvements.adk import Optimizer

    given, playing = agents(), sampler()
    result = asyncio.run(Optimizer(judge, candidates=24, seed=1).optimize(given, playing))

    [best] = result.optimized_agents
    assert ROUTES in best.optimized_agent.instruction
    assert NAMES in best.optimized_agent.sub_agents[0].instruction
    assert best.overall_score == 1.0
    assert given.instruction == "You are the desk."
    studies = {each.component: each.outcome for each in result.improvement.studies}
    assert studies == {"agent:desk": "proven", "agent:refunds": "proven"}
    split = result.improvement.split
    assert not set(split.held_out) & {*split.train, *split.select}
    assert result.improvement.plays <= playing.played + 60


def test_without_a_proven_gain_the_agent_that_was_given_comes_back(judge: dict[str, Any]) -> None:
    from baton.improvements.adk import Optimizer

    given = agents()
    made = Optimizer(judge, candidates=4, seed=1, agents=["refunds"])
    result = asyncio.run(made.optimize(given, sampler()))
    [best] = result.optimized_agents
    # Nothing reaches the sub-agent: the desk does not hand over.
    assert best.optimized_agent is given
    assert best.overall_score == 0.0
    assert [each.outcome for each in result.improvement.studies] == ["no proven gain"]


def test_misspelt_agents_strategies_and_scores_out_of_range_are_refused(
    judge: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from google.adk.optimization.data_types import UnstructuredSamplingResult

    from baton.improvements.adk import Optimizer

    with pytest.raises(InputError, match="did you mean `prompt_wizard`"):
        Optimizer(judge, strategy="prompt_wizzard")
    with pytest.raises(InputError, match="there is no `agent:refnds`; did you mean `agent:refund"):
        asyncio.run(Optimizer(judge, agents=["refnds"]).optimize(agents(), sampler()))

    async def beyond(*_: Any, batch: list[str], **__: Any) -> UnstructuredSamplingResult:
        return UnstructuredSamplingResult(scores=dict.fromkeys(batch, 7.0))

    playing = sampler()
    monkeypatch.setattr(playing, "sample_and_score", beyond)
    with pytest.raises(InputError, match="the score 7: scores are from 0 to 1"):
        asyncio.run(Optimizer(judge).optimize(agents(), playing))


def test_adk_optimize_has_no_option_for_another_optimizer() -> None:
    # docs/improve.md says so. If this fails, ADK may have got such an option: use it.
    from google.adk.cli.cli_tools_click import cli_optimize

    assert {option.name for option in cli_optimize.params} == {
        "agent_module_file_path",
        "sampler_config_file_path",
        "optimizer_config_file_path",
        "print_detailed_results",
        "log_level",
    }

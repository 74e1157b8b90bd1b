"""A report pipeline without hand-offs: plan, research in parallel, write until the critic agrees.

The order is fixed by workflow agents (sequential, parallel, loop), which emit no events of their
own. The critic ends the loop in its second round.
"""

from __future__ import annotations

from typing import Any

from google.adk.agents import Agent, LoopAgent, ParallelAgent, SequentialAgent
from google.adk.tools.exit_loop_tool import exit_loop
from google.genai import types
from scripted_model import Prompt, ScriptedModel, call, say

FINDINGS = {
    "market": "Demand grew by 8 percent.",
    "risks": "One supplier delivers half of the parts.",
}


def search_notes(topic: str) -> dict[str, Any]:
    """Search the research notes."""
    return {"topic": topic, "finding": FINDINGS.get(topic, "")}


def plan(prompt: Prompt) -> list[types.Part]:
    """The planner's script."""
    return [say("Plan: research the market and the risks, then write one paragraph.")]


def research_market(prompt: Prompt) -> list[types.Part]:
    """The first researcher's script."""
    return _research(prompt, "market")


def research_risks(prompt: Prompt) -> list[types.Part]:
    """The second researcher's script."""
    return _research(prompt, "risks")


def _research(prompt: Prompt, topic: str) -> list[types.Part]:
    if "search_notes" in prompt.results:
        return [say(prompt.results["search_notes"]["finding"])]
    return [call("search_notes", topic=topic)]


def write(prompt: Prompt) -> list[types.Part]:
    """The writer's script: a second draft adds what the critic missed in the first."""
    if prompt.turns == 0:
        return [say("Draft 1: demand grew by 8 percent.")]
    return [say("Draft 2: demand grew by 8 percent; one supplier delivers half of the parts.")]


def criticise(prompt: Prompt) -> list[types.Part]:
    """The critic's script: send the first draft back, end the loop on the second."""
    if prompt.turns == 0:
        return [say("The draft does not name the supplier risk.")]
    return [call("exit_loop")]


planner = Agent(
    name="planner",
    model=ScriptedModel(script=plan),
    description="Plans the report.",
    instruction="Plan the report.",
)
researcher_a = Agent(
    name="researcher_a",
    model=ScriptedModel(script=research_market, delay=0.1),  # unequal delays: the two
    description="Researches the market.",
    instruction="Research the market.",
    tools=[search_notes],
)
researcher_b = Agent(
    name="researcher_b",
    model=ScriptedModel(script=research_risks, delay=0.15),  # interleave, always alike
    description="Researches the risks.",
    instruction="Research the risks.",
    tools=[search_notes],
)
writer = Agent(
    name="writer",
    model=ScriptedModel(script=write),
    description="Writes the report.",
    instruction="Write one paragraph.",
)
critic = Agent(
    name="critic",
    model=ScriptedModel(script=criticise),
    description="Reviews the draft.",
    instruction="Send the draft back or end the loop.",
    tools=[exit_loop],
)
root_agent = SequentialAgent(
    name="report_pipeline",
    description="Plans, researches and writes a report.",
    sub_agents=[
        planner,
        ParallelAgent(
            name="fan_out",
            description="Researches two topics at once.",
            sub_agents=[researcher_a, researcher_b],
        ),
        LoopAgent(
            name="refine",
            description="Writes until the critic agrees.",
            sub_agents=[writer, critic],
            max_iterations=4,
        ),
    ],
)

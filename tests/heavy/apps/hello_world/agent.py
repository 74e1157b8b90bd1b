"""Dice in two steps: one agent rolls and checks, the next one answers the user."""

from __future__ import annotations

from typing import Any

from google.adk.agents import Agent, SequentialAgent
from scripted_model import Prompt, ScriptedModel, call, say  # type: ignore[import-not-found]


def roll_die(sides: int) -> int:
    """Roll a die that is loaded, so that every run is alike."""
    return min(sides, 5)


def check_prime(nums: list[int]) -> str:
    """Say which numbers are prime."""
    primes = [str(n) for n in nums if n > 1 and all(n % d for d in range(2, n))]
    return f"{', '.join(primes) or 'none'} of them are prime"


def process(prompt: Prompt) -> list[Any]:
    """Roll twice, then check; all other messages need no work."""
    if "twice" not in prompt.text:
        return [say("There is nothing to work out.")]
    if "check_prime" in prompt.results:
        return [
            say(
                "I have rolled a 10 sided die twice. The first roll is 5 and the second roll is 3.\n"
            )
        ]
    if "roll_die" in prompt.results:
        return [call("check_prime", nums=[9])]
    return [call("roll_die", sides=10), call("roll_die", sides=10)]


def answer(prompt: Prompt) -> list[Any]:
    """Tell the user."""
    if "twice" in prompt.text:
        return [say("I got 4 and 7 form the dice roll, and 9 is not a prime number.\n")]
    if "roll" in prompt.text:
        return [say("I rolled a 17.")]
    return [say("I can roll dice of different sizes and check if numbers are prime.")]


root_agent = SequentialAgent(
    name="hello_world",
    description="Rolls dice and checks numbers.",
    sub_agents=[
        Agent(
            name="data_processing_agent",
            model=ScriptedModel(script=process),
            description="Rolls and checks.",
            tools=[roll_die, check_prime],
        ),
        Agent(
            name="answering_agent",
            model=ScriptedModel(script=answer),
            description="Answers the user.",
        ),
    ],
)

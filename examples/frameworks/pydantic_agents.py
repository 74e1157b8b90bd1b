"""A pydantic-ai agent that asks another one through a tool; the models are scripted, no key needed.

pip install "pydantic-ai-slim>=2.60,<3" "baton-evals[otel]"
baton record -o run.otlp.jsonl -- python examples/frameworks/pydantic_agents.py
baton show run.otlp.jsonl
"""

import asyncio
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.usage import RequestUsage


def scripted(*lines: Any) -> FunctionModel:
    """Return a model that says its lines in order: a text, or a (tool, arguments) pair."""
    left = iter(lines)

    def speak(messages: Any, info: Any) -> ModelResponse:
        line = next(left)
        part = ToolCallPart(*line) if isinstance(line, tuple) else TextPart(line)
        return ModelResponse(parts=[part], usage=RequestUsage(input_tokens=50, output_tokens=10))

    return FunctionModel(speak)


def concierge(prompt: str) -> Agent:
    """Build a concierge who asks a weather agent before it answers."""
    forecast = ("forecast", {"city": "Bergen"})
    weather = Agent(scripted(forecast, "Rain in Bergen, 9 degrees."), name="weather_agent")
    ask = ("ask_weather", {"question": f"Weather needed for: {prompt}"})
    boss = Agent(scripted(ask, "Take an umbrella to Bergen."), name="concierge")

    @weather.tool_plain(name="forecast")
    def look_up(city: str) -> str:
        """Weather of tomorrow."""
        return f"{city}: rain, 9 degrees"

    @boss.tool_plain
    async def ask_weather(question: str) -> str:
        """Ask the weather agent."""
        return (await weather.run(question)).output

    return boss


async def answer(prompt: str) -> str:
    """Run the two agents on a prompt."""
    return str((await concierge(prompt).run(prompt)).output)


if __name__ == "__main__":
    print(asyncio.run(answer("What do I pack for Bergen?")))

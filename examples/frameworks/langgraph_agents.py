"""A LangGraph supervisor and an expert that reports back to it; the models are scripted.

pip install "langchain>=1.2,<2" "langgraph-supervisor>=0.0.31,<0.1"
pip install "baton-evals[otel]"
baton record -o run.otlp.jsonl -- python examples/frameworks/langgraph_agents.py
baton show run.otlp.jsonl
"""

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph_supervisor import create_supervisor


class Scripted(BaseChatModel):
    """Says its lines in order: a text, or a (tool, arguments) pair."""

    lines: list[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(self, messages: Any, *args: Any, **more: Any) -> ChatResult:
        line, calls = self.lines.pop(0), []
        if isinstance(line, tuple):
            calls = [{"name": line[0], "args": line[1], "id": f"call-{id(line)}"}]
        usage = {"input_tokens": 50, "output_tokens": 10, "total_tokens": 60}
        said = AIMessage("" if calls else line, tool_calls=calls, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=said)])


def forecast(city: str) -> str:
    """Weather of tomorrow."""
    return f"{city}: rain, 9 degrees"


def team() -> Any:
    """Build a supervisor that hands questions on the weather to an expert."""
    look_up = ("forecast", {"city": "Bergen"})
    expert = Scripted(lines=[look_up, "Rain in Bergen, 9 degrees."])
    weather = create_agent(expert, [forecast], name="weather_expert")
    boss = Scripted(lines=[("transfer_to_weather_expert", {}), "Take an umbrella to Bergen."])
    return create_supervisor([weather], model=boss).compile()


def answer(prompt: str) -> str:
    """Run the team on a prompt."""
    result = team().invoke({"messages": [{"role": "user", "content": prompt}]})
    return str(result["messages"][-1].content)


if __name__ == "__main__":
    print(answer("What do I pack for Bergen?"))

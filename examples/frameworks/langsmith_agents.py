"""An agent that asks two others at once, recorded by LangSmith; the models are scripted.

pip install "langchain>=1.2,<2" "langsmith>=0.4,<1"
pip install "baton-evals[otel]"
python examples/frameworks/langsmith_agents.py run.otlp.jsonl
baton show run.otlp.jsonl
"""

import os
import sys
from typing import Any

os.environ["LANGSMITH_TRACING"] = "true"
os.environ["LANGSMITH_OTEL_ENABLED"] = "true"
os.environ["LANGSMITH_OTEL_ONLY"] = "true"  # nothing is sent to LangSmith itself

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langsmith.run_trees import get_cached_client

from baton.otel import record


class Scripted(BaseChatModel):
    """Says its lines in order: a text, or a list of (tool, arguments) pairs."""

    lines: list[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **more: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(self, messages: Any, *args: Any, **more: Any) -> ChatResult:
        line, calls = self.lines.pop(0), []
        if isinstance(line, list):
            calls = [
                {"name": name, "args": arguments, "id": f"call-{id(self)}-{number}"}
                for number, (name, arguments) in enumerate(line)
            ]
        usage = {"input_tokens": 50, "output_tokens": 10, "total_tokens": 60}
        said = AIMessage("" if calls else line, tool_calls=calls, usage_metadata=usage)
        return ChatResult(generations=[ChatGeneration(message=said)])


def population(city: str) -> str:
    """Population of a city."""
    return f"{city}: 231800"


def scout(name: str, city: str, answer: str) -> Any:
    """Build an agent that looks a city up."""
    lines = [[("population", {"city": city})], answer]
    return create_agent(Scripted(lines=lines), [population], name=name)


north = scout("north_scout", "Porto", "Porto is bigger.")
inland = scout("inland_scout", "Braga", "Braga is older.")


@tool
def ask_north(question: str) -> str:
    """Ask the scout of the north."""
    return str(north.invoke({"messages": [("user", question)]})["messages"][-1].content)


@tool
def ask_inland(question: str) -> str:
    """Ask the scout of the inland."""
    return str(inland.invoke({"messages": [("user", question)]})["messages"][-1].content)


def answer(prompt: str) -> str:
    """Ask a guide, who asks both scouts at once."""
    asks = [
        ("ask_north", {"question": "Size of Porto?"}),
        ("ask_inland", {"question": "Age of Braga?"}),
    ]
    lines = [asks, "Porto is bigger, Braga older."]
    guide = create_agent(Scripted(lines=lines), [ask_north, ask_inland], name="guide")
    return str(guide.invoke({"messages": [("user", prompt)]})["messages"][-1].content)


if __name__ == "__main__":
    record(sys.argv[1])
    print(answer("Compare Porto and Braga."))
    get_cached_client().flush()

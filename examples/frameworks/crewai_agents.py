"""A CrewAI crew whose lead delegates work to a coworker; the model is scripted, no key is needed.

pip install "crewai>=1.15,<2" "openinference-instrumentation-crewai>=1.1.20,<2"
baton record -o run.otlp.jsonl -- python examples/frameworks/crewai_agents.py
baton show run.otlp.jsonl
"""

import os
from typing import Any

os.environ.update(CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false")

from crewai import Agent, BaseLLM, Crew, Task
from crewai.events.types.llm_events import LLMCallType
from crewai.llms.base_llm import llm_call_context
from crewai.tools import tool


class Scripted(BaseLLM):
    """Says its lines one after the other: a text, or a (tool, arguments) pair."""

    lines: list[Any]

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, tools: Any = None, *args: Any, **about: Any) -> Any:
        who = {"from_task": about.get("from_task"), "from_agent": about.get("from_agent")}
        with llm_call_context():
            self._emit_call_started_event(messages, tools, **who)
            line = self.lines.pop(0)
            said, kind = line, LLMCallType.LLM_CALL
            if isinstance(line, tuple):
                function = {"name": line[0], "arguments": line[1]}
                said, kind = (
                    [{"id": f"call-{id(line)}", "function": function}],
                    LLMCallType.TOOL_CALL,
                )
            self._track_token_usage_internal({"prompt_tokens": 50, "completion_tokens": 10})
            self._emit_call_completed_event(said, kind, messages=messages, **who)
        return said


@tool("find_rate")
def find_rate(currency: str) -> str:
    """Find the euro rate of a currency."""
    return f"1 EUR = 11.2 {currency}"


def member(role: str, *lines: Any, **options: Any) -> Agent:
    """Build an agent that says these lines."""
    model = Scripted(model="scripted", lines=list(lines))
    return Agent(role=role, goal="help", backstory=f"The {role}.", llm=model, **options)


def desk(prompt: str) -> Crew:
    """Build a crew of two whose lead hands a question on."""
    work = {"task": "Find the rate of NOK.", "context": prompt, "coworker": "Rate Analyst"}
    ask = ("delegate_work_to_coworker", work)
    lead = member("Desk Lead", ask, "It costs 112 NOK.", allow_delegation=True)
    look = ("find_rate", {"currency": "NOK"})
    analyst = member("Rate Analyst", look, "1 EUR is 11.2 NOK.", tools=[find_rate])
    task = Task(description=prompt, expected_output="one line", agent=lead)
    return Crew(agents=[lead, analyst], tasks=[task])


def answer(prompt: str) -> str:
    """Run the crew on a prompt."""
    return str(desk(prompt).kickoff())


if __name__ == "__main__":
    print(answer("What are 10 EUR in NOK?"))

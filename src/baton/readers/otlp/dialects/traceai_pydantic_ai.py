"""traceAI's spans of pydantic-ai: runs of agents, and only those tools that a program wraps itself.

There are no spans of requests. What an agent's tools passed on is the prompt of the agent below.
The readings have no framework, because that of pydantic-ai's own spans promises structured answers.
Here these are printed: `total=3 currency='EUR'`.
"""

from __future__ import annotations

from typing import Any

from baton.readers.otlp.attribute_values import amount, content, shown, text, usage_of
from baton.readers.otlp.handover_calls import hand_over
from baton.readers.otlp.span import Span
from baton.readers.otlp.span_content import AgentSpan, PlainSpan, Reading, ToolSpan, fail

from .dialect import Dialect, with_attribute

_KIND = "pydantic_ai.span_kind"
_RUNS = frozenset({"agent_run", "stream"})
_TOOL = "pydantic_ai.tool."
# Letters of a result, after which it ends with `...`.
_LONGEST = 2000
# `run_sync` calls `run`, which has a span of its own with the same counts.
_AROUND = "run_sync"


def read(span: Span) -> Reading:
    """Read one span."""
    attributes = span.attributes
    kind = attributes.get(_KIND)
    says: Reading
    if kind in _RUNS:
        says = AgentSpan(
            name=text(attributes.get("pydantic_ai.agent.name")),
            heard=attributes.get("pydantic_ai.run.prompt"),
            spoken=_whole(attributes.get("pydantic_ai.run.result")),
            model=text(attributes.get("gen_ai.request.model")),
            tells_tools=False,
        )
        if attributes.get("pydantic_ai.run.method") != _AROUND:
            says.totals = usage_of(attributes, "gen_ai.usage.")
            cost = amount(attributes.get("pydantic_ai.cost.total_usd"))
            if says.totals is not None and cost is not None:
                says.totals.cost_usd, says.totals.cost_from = cost, "source"
    elif kind == "tool_call":
        says = ToolSpan(
            name=text(attributes.get(_TOOL + "name")),
            arguments=shown(attributes.get(_TOOL + "args")),
            result=content(_whole(attributes.get(_TOOL + "result"))),
        )
        says.tells_result = says.result is not None
        hand_over(says, None, attributes)
    else:
        says = PlainSpan(lost=f"spans of kind `{kind}`")
    fail(says, span)
    return says


def _whole(value: Any) -> Any:
    """Return a value, unless traceAI has truncated it."""
    truncated = isinstance(value, str) and len(value) == _LONGEST and value.endswith("...")
    return None if truncated else value


DIALECT = Dialect(
    name="traceai-pydantic-ai",
    rank=30,
    claims=with_attribute(_KIND),
    read=read,
    prefixes=("pydantic_ai.",),
)

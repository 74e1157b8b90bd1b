"""LangGraph, and LangChain whose agents are graphs of it."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from baton.model import ProviderError

from .base import KEPT, Framework, Session

# A state like `{"request": ..., "order": ..., "answer": ...}` has one key of these.
_MESSAGE_KEYS = frozenset(
    {"input", "message", "prompt", "query", "question", "request", "task", "user_input"}
)
"""Names that the user's message has in the states of graphs."""


async def _ask(graph: Any, message: Any, session: Session) -> Any:
    builder = getattr(graph, "builder", None)
    if builder is None:  # an `@entrypoint`
        keys = list(graph.get_input_jsonschema().get("properties") or ())
    else:
        # Not by its JSON Schema: pydantic makes none of `typing.TypedDict` before Python 3.12.
        keys = list(builder.schemas[builder.input_schema])
    thread = session.setdefault("baton.thread", str(uuid.uuid4()))
    config = {"configurable": {"thread_id": thread}}
    if "messages" in keys:
        said = [*session.get(KEPT, ()), {"role": "user", "content": message}]
        result = await graph.ainvoke({"messages": said}, config)
        if getattr(graph, "checkpointer", None) is None:
            session[KEPT] = result["messages"]
        return str(result["messages"][-1].text)
    likely = [key for key in keys if key in _MESSAGE_KEYS]
    if len(keys) != 1 and len(likely) != 1:
        listed = ", ".join(f"`{key}`" for key in keys) or "nothing"
        raise ProviderError(
            f"the graph takes {listed}: name a function that says which of it the message is, or "
            "give the graph an `input_schema` with one key"
        )
    return await graph.ainvoke({(likely or keys)[0]: message}, config)


class LangGraph(Framework):
    """Graphs of LangGraph."""

    package = "langgraph"
    asks: ClassVar = {("langgraph", "Pregel"): _ask}

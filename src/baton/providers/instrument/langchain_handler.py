"""A callback handler that records runs of LangChain and LangGraph as spans.

It is for programs without an instrumentor of LangChain. The spans use the names of OpenInference,
because no other convention has the state of a graph of plain functions. This module imports
LangChain, so that ``switch_on`` is only called when the program has imported it.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any
from uuid import UUID

import msgspec
from langchain_core.callbacks.base import BaseCallbackHandler
from langchain_core.messages import BaseMessage, message_to_dict
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers.context import register_configure_hook
from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode

from baton.model.current_guard import AROUND

SCOPE = "baton.instrumentation.langchain"
_OTHERS = ("langfuse.langchain", "mlflow.langchain", "traceai_langchain")
"""Modules with handlers that also make spans: a program that imports one records itself."""
_SESSIONS = ("session_id", "conversation_id", "thread_id")
"""Names for the id of a conversation in the metadata of a run; the first one is used."""
_COUNTS = (
    ("prompt", "input_tokens", "prompt_tokens"),
    ("completion", "output_tokens", "completion_tokens"),
    ("total", "total_tokens", "total_tokens"),
)
"""Names of token counts: in the span, in LangChain's usage, and in the output of some models."""
_DETAILS = (
    ("prompt_details.cache_read", "input_token_details", "cache_read"),
    ("prompt_details.cache_write", "input_token_details", "cache_creation"),
    ("completion_details.reasoning", "output_token_details", "reasoning"),
)


@functools.cache
def switch_on() -> None:
    """Record every run of LangChain in this process from now on; a second call does nothing."""
    one = Handler()
    handler: ContextVar[Any] = ContextVar("baton_langchain", default=one)
    register_configure_hook(handler, inheritable=True)
    AROUND.append(one.around)


class Handler(BaseCallbackHandler):  # type: ignore[misc]  # LangChain is not read by mypy
    """Makes a span for each run of a graph, node, model or tool, below the span of its parent."""

    run_inline = True
    """Called in the thread of the run, so that a run ends after its parts."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer(SCOPE)
        self._spans: dict[UUID, Span] = {}

    def around(self) -> Span | None:
        """Return the span of the run in which the program is, if there is one."""
        config = var_child_runnable_config.get() or {}
        run_id = getattr(config.get("callbacks"), "parent_run_id", None)
        return None if run_id is None else self._spans.get(run_id)

    def on_chain_start(
        self, serialized: Mapping[str, Any] | None, inputs: Any, *, run_id: UUID, **more: Any
    ) -> None:
        """Start a graph, a node, or any other step of a program."""
        name = _name(serialized, more)
        # The same rule as in OpenInference: `AgentExecutor` is an agent; graphs do not say it.
        kind = "AGENT" if "agent" in name.lower() else "CHAIN"
        self._start(run_id, name, kind, inputs, more)

    def on_chat_model_start(
        self,
        serialized: Mapping[str, Any] | None,
        messages: Sequence[Sequence[BaseMessage]],
        *,
        run_id: UUID,
        **more: Any,
    ) -> None:
        """Start a request to a chat model."""
        heard = list(messages[0]) if messages else []
        self._start(run_id, _name(serialized, more), "LLM", heard, more)

    def on_llm_start(
        self,
        serialized: Mapping[str, Any] | None,
        prompts: Sequence[str],
        *,
        run_id: UUID,
        **more: Any,
    ) -> None:
        """Start a request to a model that completes a text."""
        self._start(run_id, _name(serialized, more), "LLM", prompts[0] if prompts else "", more)

    def on_tool_start(
        self, serialized: Mapping[str, Any] | None, input_str: str, *, run_id: UUID, **more: Any
    ) -> None:
        """Start a tool."""
        arguments = more.get("inputs")
        name = _name(serialized, more)
        span = self._start(
            run_id, name, "TOOL", input_str if arguments is None else arguments, more
        )
        if span is not None:
            span.set_attribute("tool.name", name)
            if isinstance(call := more.get("tool_call_id"), str):
                span.set_attribute("tool.id", call)

    def on_retriever_start(
        self, serialized: Mapping[str, Any] | None, query: str, *, run_id: UUID, **more: Any
    ) -> None:
        """Start a search for documents."""
        self._start(run_id, _name(serialized, more), "RETRIEVER", query, more)

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        """End a step with its output: the state, or a part of it."""
        self._end(run_id, outputs)

    on_tool_end = on_retriever_end = on_chain_end

    def on_llm_end(self, response: Any, *, run_id: UUID, **_: Any) -> None:
        """End a request with the model's answer and usage."""
        span = self._spans.get(run_id)
        answers = response.generations[0] if response.generations else []
        messages = [each.message for each in answers if hasattr(each, "message")]
        if span is not None:
            span.set_attributes(dict(_spent(messages, response.llm_output or {})))
        self._end(run_id, messages or "\n".join(each.text for each in answers))

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """End a step that failed, or that left its graph by raising, as LangGraph does."""
        span = self._spans.pop(run_id, None)
        if span is not None:
            span.record_exception(error)
            span.set_status(Status(StatusCode.ERROR, f"{type(error).__name__}: {error}"))
            span.end()

    on_llm_error = on_tool_error = on_retriever_error = on_chain_error

    def on_interrupt(self, event: Any) -> None:
        """Do nothing: the error that stops the graph is recorded."""

    def on_resume(self, event: Any) -> None:
        """Do nothing: the resumed run is recorded."""

    def _start(
        self, run_id: UUID, name: str, kind: str, value: Any, more: Mapping[str, Any]
    ) -> Span | None:
        around = self._spans.get(more["parent_run_id"]) if more.get("parent_run_id") else None
        if around is None and _is_recorded_otherwise():
            return None
        metadata = more.get("metadata") or {}
        attributes = {
            "openinference.span.kind": kind,
            "input.value": _written(value),
            "metadata": _written(metadata),
        }
        session = next((metadata[key] for key in _SESSIONS if metadata.get(key)), None)
        if session is not None:
            attributes["session.id"] = str(session)
        if kind == "LLM":
            params = more.get("invocation_params") or {}
            for number, tool in enumerate(params.get("tools") or ()):
                attributes[f"llm.tools.{number}.tool.json_schema"] = _written(tool)
            model = metadata.get("ls_model_name") or params.get("model_name") or params.get("model")
            if model:
                attributes["llm.model_name"] = str(model)
        context = trace.set_span_in_context(around) if around is not None else None
        span = self._tracer.start_span(name, context, attributes=attributes)
        self._spans[run_id] = span
        return span

    def _end(self, run_id: UUID, made: Any) -> None:
        span = self._spans.pop(run_id, None)
        if span is not None:
            span.set_attribute("output.value", _written(made))
            span.set_status(StatusCode.OK)
            span.end()


def _name(serialized: Mapping[str, Any] | None, more: Mapping[str, Any]) -> str:
    """Return the name of a run, else the class of the object that runs."""
    about = serialized or {}
    class_ = about.get("id") or ["Unnamed"]
    return str(more.get("name") or about.get("name") or class_[-1])


def _is_recorded_otherwise() -> bool:
    """Return whether a program records itself, because a second span would be a second run."""
    by_langsmith = any(
        os.environ.get(f"{name}_OTEL_ENABLED", "").lower() == "true"
        for name in ("LANGSMITH", "LANGCHAIN")
    )
    return by_langsmith or any(name in sys.modules for name in _OTHERS)


def _spent(messages: Sequence[Any], output: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield attributes for the model that answered and its tokens, as far as known."""
    about = getattr(messages[0], "response_metadata", None) if messages else None
    for values in (output, about or {}):
        if model := values.get("model_name") or values.get("model"):
            yield "llm.model_name", str(model)
            break
    own = getattr(messages[0], "usage_metadata", None) if messages else None
    usage = own or output.get("token_usage") or output.get("usage") or {}
    for name, *keys in _COUNTS:
        count = next((usage[key] for key in keys if isinstance(usage.get(key), int)), None)
        if count is not None:
            yield f"llm.token_count.{name}", count
    for name, group, key in _DETAILS:
        count = (usage.get(group) or {}).get(key)
        if isinstance(count, int):
            yield f"llm.token_count.{name}", count


def _written(value: Any) -> str:
    """Write a text as it is, and a value as JSON, or as Python prints it if it has no JSON."""
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value, enc_hook=_plain).decode()
    except (TypeError, ValueError, OverflowError, RecursionError):
        return str(value)


def _plain(value: Any) -> Any:
    """Convert an object of LangChain or pydantic to plain data; print any other object."""
    if isinstance(value, BaseMessage):
        return message_to_dict(value)
    dump = getattr(value, "model_dump", None)
    return dump() if callable(dump) and not isinstance(value, type) else str(value)

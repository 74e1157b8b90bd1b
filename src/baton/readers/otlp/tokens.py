"""Token counts of spans, under the many names that instrumentations give them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from baton.model import Usage

from .values import amount, whole

_NAMES: dict[str, tuple[str, ...]] = {
    "input": ("input_tokens", "prompt_tokens"),
    "output": ("output_tokens", "completion_tokens"),
    "total": ("total_tokens",),
    "read": (
        "cache_read.input_tokens",
        "cache_read_input_tokens",
        "cache_read_tokens",
        "details.cache_read_tokens",
        "details.cache_read_input_tokens",
        "details.cached_content_tokens",
        "details.cached_tokens",
        "cached_tokens",
    ),
    "write": (
        "cache_creation.input_tokens",
        "cache_creation_input_tokens",
        "cache_write_input_tokens",
        "cache_write_tokens",
        "cache_creation_tokens",
        "details.cache_write_tokens",
        "details.cache_creation_input_tokens",
    ),
    "thinking": (
        "reasoning.output_tokens",
        "reasoning_tokens",
        "details.reasoning_tokens",
        "details.thoughts_tokens",
        "experimental.reasoning_tokens",
    ),
}

_GEMINI = ("prompt", "tool_use_prompt", "candidates", "cached_content", "thoughts", "total")


def usage_of(attributes: Mapping[str, Any], prefix: str) -> Usage | None:
    """Read the counts whose names begin with ``prefix``; ``None`` when there are none."""
    known, needed = _names(prefix)
    if needed.isdisjoint(attributes):
        return None
    best: dict[str, tuple[int, str]] = {}
    for name in known.keys() & attributes.keys():
        kind, rank = known[name]
        if kind not in best or rank < best[kind][0]:
            best[kind] = rank, name
    counts = {kind: whole(attributes[name]) for kind, (_, name) in best.items()}
    return usage(input=counts.pop("input", None), output=counts.pop("output", None), **counts)


def usage_of_gemini(response: Any) -> Usage | None:
    """Read the counts in a response of Gemini; ``None`` when it has none."""
    told = response.get("usage_metadata") if isinstance(response, Mapping) else None
    if not isinstance(told, Mapping):
        return None
    count = {kind: whole(told.get(f"{kind}_token_count")) for kind in _GEMINI}
    prompt, tools = count["prompt"], count["tool_use_prompt"]
    return usage(
        input=prompt if tools is None else (prompt or 0) + tools,
        output=count["candidates"],
        total=count["total"],
        read=count["cached_content"],
        thinking=count["thoughts"],
    )


@lru_cache(maxsize=16)
def _names(prefix: str) -> tuple[dict[str, tuple[str, int]], frozenset[str]]:
    """Return what each name counts, with its rank among names of the same; and the needed ones."""
    known = {
        prefix + name: (kind, rank)
        for kind, names in _NAMES.items()
        for rank, name in enumerate(names)
    }
    needed = frozenset(prefix + name for name in (*_NAMES["input"], *_NAMES["output"]))
    return known, needed


def usage(
    *,
    input: int | None,
    output: int | None,
    total: int | None = None,
    read: int | None = None,
    write: int | None = None,
    thinking: int | None = None,
    cost: Any = None,
) -> Usage:
    """Return counts as the record has them: input without cached tokens, output with thinking.

    Sources differ in whether the input holds the cached tokens and the output the thinking
    ones. The total tells where there is one; otherwise both do, as OpenTelemetry says, unless
    that would leave fewer than none.
    """
    cached = (read or 0) + (write or 0)
    spent = (input or 0) + (output or 0)
    thought = thinking or 0
    if input is not None and cached and input >= cached:
        beside = total in (spent + cached, spent + cached + thought) and total != spent + thought
        input -= 0 if beside else cached
    if output is not None and thought:
        told = total in (spent + thought, spent + cached + thought)
        output += thought if told or (total is None and output < thought) else 0
    figure = amount(cost)
    return Usage(
        input_tokens=input,
        output_tokens=output,
        cache_read_tokens=read,
        cache_write_tokens=write,
        requests=1,
        cost_usd=figure,
        cost_from=None if figure is None else "source",
        complete=input is not None and output is not None,
    )

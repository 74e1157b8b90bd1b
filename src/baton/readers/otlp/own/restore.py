"""Spans that Baton wrote, to the record they were written from."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from baton.model import (
    SCHEMA_VERSION,
    AgentRun,
    Dispatch,
    InputError,
    Problem,
    Said,
    ToolCall,
    Trace,
    Turn,
    integrity_problems,
)
from baton.readers.otlp.span import Conversation, Span

from .fields import EVENTS, INDEX, KIND, RUN, SCOPE, SPANS, TURN, read_fields
from .values import Attributes, read_usage

_ByPlace = dict[str, list[tuple[int, Attributes]]]
_STEPS: dict[str, type[msgspec.Struct]] = {"said": Said, "tool_call": ToolCall}


def is_own(span: Span) -> bool:
    """Tell a span that Baton wrote."""
    return span.scope == SCOPE and KIND in span.attributes


def part(conversation: Conversation) -> tuple[list[list[Span]], Conversation]:
    """Part what Baton wrote, the spans of each record together, from what others did."""
    own: dict[str, list[Span]] = defaultdict(list)
    for span in conversation.spans:
        if is_own(span):
            own[span.trace_id].append(span)
    if not own:
        return [], conversation
    turns = [[span for span in turn if not is_own(span)] for turn in conversation.turns]
    others = msgspec.structs.replace(
        conversation,
        spans=[span for span in conversation.spans if not is_own(span)],
        turns=[turn for turn in turns if turn],
    )
    return list(own.values()), others


def restore(spans: list[Span], location: str | None) -> Trace:
    """Read the record that these spans of one trace were written from.

    Raises:
        InputError: spans are missing or were changed, so that they make no record.
    """
    by_kind: dict[str, list[Span]] = defaultdict(list)
    for span in spans:
        by_kind[str(span.attributes[KIND])].append(span)
    _check_all_there(by_kind["trace"], spans, location)
    root = by_kind["trace"][0]
    version = root.attributes.get("baton.schema_version")
    if isinstance(version, int) and version != SCHEMA_VERSION:
        said = f"schema_version is {version}; this Baton reads {SCHEMA_VERSION}"
        raise _fault(root, location, said)
    try:
        trace = msgspec.convert(_record(root, by_kind, location), Trace)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise _fault(root, location, f"its attributes were changed: {error}") from None
    problems = integrity_problems(trace)
    if problems:
        raise InputError(Problem(file=location, message=message) for message in problems)
    return trace


def _check_all_there(roots: list[Span], spans: list[Span], location: str | None) -> None:
    if not roots:
        raise _fault(spans[0], location, "its first span, the one of the conversation, is missing")
    planned = roots[0].attributes.get(SPANS)
    if planned != len(spans):
        raise _fault(spans[0], location, f"{len(spans)} of its {planned} spans are there")


def _fault(span: Span, location: str | None, message: str) -> InputError:
    said = f"trace {span.trace_id}, which Baton wrote, makes no record: {message}"
    return InputError(Problem(file=location, message=said))


def _record(root: Span, by_kind: dict[str, list[Span]], location: str | None) -> Attributes:
    steps = _steps(by_kind)
    runs = _placed(by_kind["run"], AgentRun, TURN)
    for placed in runs.values():
        for _, run in placed:
            run["steps"] = _ordered(steps.get(run["id"], []))
    dispatches = _placed(by_kind["dispatch"], Dispatch, TURN)
    turns = [
        (index, {**turn, "runs": _ordered(runs.get(turn["id"], [])),
                 "dispatches": _ordered(dispatches.get(turn["id"], []))})
        for index, turn in _placed(by_kind["turn"], Turn, KIND)["turn"]
    ]  # fmt: skip
    source = {
        name: root.attributes[f"baton.source.{name}"]
        for name in ("format", "framework")
        if f"baton.source.{name}" in root.attributes
    }
    return {
        "id": "",
        **read_fields(Trace, root),
        "source": {**source, "location": location},
        "usage": read_usage(root.attributes),
        "turns": _ordered(turns),
    }


def _steps(by_kind: dict[str, list[Span]]) -> _ByPlace:
    """Return the steps by their run: spans, and events of the span of the run."""
    found: _ByPlace = defaultdict(list)
    for kind, owner in _STEPS.items():
        for run, placed in _placed(by_kind[kind], owner, RUN).items():
            found[run] += [(index, {"type": kind, **step}) for index, step in placed]
    for span in by_kind["run"]:
        for event in span.events:
            if event.name in EVENTS:
                kind = event.name.removeprefix("baton.")
                step = {"type": kind, **read_fields(EVENTS[event.name], event)}
                found[str(span.attributes["baton.id"])].append((event.attributes[INDEX], step))
    return found


def _placed(spans: list[Span], owner: type[msgspec.Struct], place: str) -> _ByPlace:
    """Read spans of one kind, by what they stand in."""
    found: _ByPlace = defaultdict(list)
    for span in spans:
        told = read_fields(owner, span)
        if owner is AgentRun:
            told["usage"] = read_usage(span.attributes)
        found[str(span.attributes[place])].append((span.attributes[INDEX], told))
    return found


def _ordered(placed: list[tuple[int, Attributes]]) -> list[Attributes]:
    return [told for _, told in sorted(placed, key=lambda each: each[0])]

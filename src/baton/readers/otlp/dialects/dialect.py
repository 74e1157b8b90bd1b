"""The interface of a dialect: everything that Baton knows about the spans of one convention."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from baton.readers.otlp.span import Event, Span
from baton.readers.otlp.span_content import Node, Reading


def with_attribute(name: str) -> Callable[[Span], bool]:
    """Return a function that claims the spans with an attribute of this name."""
    return lambda span: name in span.attributes


class Framework(msgspec.Struct, frozen=True, kw_only=True):
    """What is special about a framework, by whichever convention its spans are recorded.

    Attributes:
        has_rounds: It starts a span of an agent for each round of the agent's work, so two of them
            in a row with no hand-off between are one run. AutoGen writes one for each message that
            an agent answers. In other frameworks, the program started the agent twice.
        answers_together: Agents that end side by side give the answer together. The program joins
            what they say, and does not record it. In Google ADK the last one gives the answer.
        speaks_after_transfer: An agent says a last word before its transfer takes effect.
        has_data: The spans contain the structured output of an agent. Elsewhere it is unknown
            whether an answer had a structured form, so a missing one must not count as none.
        call_ids: A prefix of the ids that the framework itself gives to calls, each only once.
        broke_off: Returns the error that ended a run if only spans below the agent's tell it, from
            the last span of the agent; ``None`` if there is none.
        is_function: Returns whether a span is a function as a node of a workflow. It can change
            what an agent is given, so the first agent's input does not tell the user's message.
        ends_with_tool: An agent that ends with a call answers with its result; otherwise it would
            ask its model again. OpenAI's SDK does so with ``tool_use_behavior``.
        retold: Returns the texts of other agents that a message to an agent repeats, one by one;
            ``None`` for any other message, such as a request of the user.
    """

    has_rounds: bool = False
    answers_together: bool = False
    speaks_after_transfer: bool = False
    has_data: bool = False
    call_ids: str | None = None
    broke_off: Callable[[Node], str | None] | None = None
    is_function: Callable[[Span], bool] | None = None
    ends_with_tool: bool = False
    retold: Callable[[str], list[str] | None] | None = None


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """The convention of an instrumentation's spans, or a framework's additions to a convention.

    A new dialect is one file in this folder. It ends with ``DIALECT = Dialect(...)``, by which it
    is found. A convention has ``claims`` and ``read``. A framework whose spans follow the
    convention of another project (for example CrewAI, which uses OpenInference) has neither: it
    only refines the readings that have its name as ``framework``.

    Other modules name no convention and no framework: what they need to know is a field here.

    Attributes:
        name: The name of the dialect. Readings with this ``framework`` also belong to it.
        rank: Dialects are tried, and resolve, in this order, lowest first. The first one that
            claims a span reads it. Use a low rank for spans that only one instrumentation writes
            (Claude Code: 10), and a high rank for attributes that many write. OpenTelemetry GenAI
            (90) is the last. Frameworks have rank 0, so they resolve before the convention does.
        claims: Returns whether a span follows this convention, by its scope, its name and the
            names of its attributes. It must not depend on values, because it is called only once
            for spans that have all of these names in common.
        read: Reads a claimed span, with its names and content. ``handover`` finds the tool calls
            that pass work on, and ``usage`` (in ``values``) adds up counts with unusual names.
        refine: Adds to a reading of its ``framework``, read by any convention, the data that the
            convention does not cover; returns the reading.
        beside: Returns whether a span of another convention also has this one's attributes, which
            processors add to the spans of a framework. Then both read it, and the second reading
            supplies data that is missing in the first. Like ``claims``, it depends only on names.
        resolve: Resolves what a single span does not show. It is called for a turn in which the
            dialect has a span. It gets all nodes of the turn as a tree, parents first, including
            those of other dialects, and the log records without a span. It returns nodes outside
            the tree: messages that are stored in other spans.
        goes_on: Returns whether spans (the second argument) belong to the turn of the spans
            before, although nothing links them.
        tokens: Prefixes of attributes that count tokens and end like OpenTelemetry's
            (``input_tokens``, or ``prompt_tokens``). They are read for requests and agents for
            which ``read`` returns no counts; the first prefix with counts is used.
        costs: Attributes with the cost of a request in US dollars; the first one present counts.
        scopes: Scopes of a framework's own instrumentation, which follows a convention. A reading
            that names no framework gets this one. Spans of these scopes that no convention claims
            are read by the last one.
        prefixes: Prefixes of attributes that hold content or names. A span that has such
            attributes and that no dialect reads is reported as dropped.
        sessions: Attributes that name the conversation of a span.
        conversations: The same for weaker names, which sub-agents can set to their own values.
        answers: Attributes with the id of a model's answer, from which later requests continue.
        session: Attributes that only sometimes name the conversation, each with a function that
            reads the name from all attributes.
        results: Attributes with the result of a tool, each with its value for an empty text.
        refusals: Beginnings of the texts that a model gets as the answer to a call that a person
            refused. They count in the spans of all dialects, as any of them can record a framework.
        questions: The same for a call that a person has yet to decide on.
        failures: Endings of the texts that a model gets as the answer to a call that failed.
        framework: What is special about the framework of this name.
    """

    name: str
    rank: int = 0
    claims: Callable[[Span], bool] | None = None
    read: Callable[[Span], Reading] | None = None
    refine: Callable[[Reading, Span], Reading] | None = None
    beside: Callable[[Span], bool] | None = None
    resolve: Callable[[list[Node], list[Event]], list[Node]] | None = None
    goes_on: Callable[[list[Span], list[Span]], bool] | None = None
    tokens: tuple[str, ...] = ()
    costs: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    conversations: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    session: Mapping[str, Callable[[Mapping[str, Any]], str | None]] = field(default_factory=dict)
    results: Mapping[str, str] = field(default_factory=dict)
    refusals: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    framework: Framework | None = None

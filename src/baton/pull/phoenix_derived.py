"""What Phoenix adds to spans of the OpenTelemetry conventions: the same, said by OpenInference.

Left in, a span would be taken for one of an OpenInference instrumentation, which names agents and
sessions in other places. An attribute goes only when the one that it was made from is there.
"""

from __future__ import annotations

import re
from collections.abc import Set

_MADE_FROM = {
    r"openinference\.span\.kind": r"gen_ai\.operation\.name",
    r"llm\.(provider|system)": r"gen_ai\.(provider\.name|system)",
    r"session\.id": r"gen_ai\.conversation\.id",
    r"(llm|embedding)\.model_name": r"gen_ai\.(request|response)\.model",
    r"(llm|embedding)\.invocation_parameters": r"gen_ai\.request\..+",
    r"llm\.token_count\.(prompt|completion|total|prompt_details\.cache_(read|write))": (
        r"gen_ai\.usage\..+"
    ),
    r"llm\.input_messages\..+": r"gen_ai\.(input\.messages|system_instructions)",
    r"llm\.output_messages\..+": r"gen_ai\.output\.messages",
    r"llm\.finish_reason": r"gen_ai\.response\.finish_reasons",
    r"llm\.tools\.\d+\.tool\.json_schema": r"gen_ai\.tool\.definitions",
    r"tool\.name": r"gen_ai\.tool\.name",
    r"tool\.description": r"gen_ai\.tool\.description",
    r"tool\.id": r"gen_ai\.tool\.call\.id",
    r"tool\.parameters(\..+)?": r"gen_ai\.tool\.call\.arguments",
    r"output\.(value|mime_type)": r"gen_ai\.(response\.(id|model)|tool\.call\.result)",
}
_RULES = [(re.compile(made), re.compile(source)) for made, source in _MADE_FROM.items()]
_OPENINFERENCE = re.compile(
    r"(openinference|llm|embedding|tool|retrieval|reranker|document|agent|graph|input|output)\..+"
)


def derived(keys: Set[str]) -> Set[str]:
    """Name the attributes of a span that Phoenix made; none where an instrumentation did.

    An instrumentation of OpenInference that keeps attributes of OpenTelemetry tells by one that
    Phoenix never makes.
    """
    if "gen_ai.operation.name" not in keys:
        return frozenset()
    sources = [key for key in keys if key.startswith("gen_ai.")]
    rules = [made for made, source in _RULES if any(map(source.fullmatch, sources))]
    found = frozenset(key for key in keys if any(made.fullmatch(key) for made in rules))
    native = any(_OPENINFERENCE.fullmatch(key) for key in keys - found)
    return frozenset() if native else found

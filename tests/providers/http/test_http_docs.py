"""What docs/providers.md shows works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import yaml
from tests.providers.conftest import case_of, said
from tests.providers.http.conftest import Endpoint, play

from baton.model import ToolCall
from baton.model.views import agent_chain
from baton.providers.base_provider import ProviderOptions
from baton.providers.http_options import PLACEHOLDERS, HttpOptions

DOCS = Path(__file__).parents[3] / "docs" / "providers.md"
(SECTION,) = re.findall(r"### `http`\n(.+?)\n### ", DOCS.read_text(encoding="utf-8"), re.DOTALL)


def test_the_config_reads_the_answer_that_is_below_it(endpoint: Endpoint) -> None:
    (config,) = re.findall(r"```yaml\n(.+?)```", SECTION, re.DOTALL)
    (answer,) = re.findall(r"```json\n(.+?)```", SECTION, re.DOTALL)
    without_variables = re.sub(r"\$\{\w+:-(\w+)\}", r"\1", config)
    (options,) = yaml.safe_load(without_variables)["providers"]
    endpoint.answers(json.loads(answer))
    options |= {"url": endpoint.url}
    del options["type"]
    trace = play(endpoint, case_of("refund 7", "thanks"), **options)
    turn = trace.turns[0]
    assert said(trace)[0] == "Your order 7 is refunded."
    assert agent_chain(trace, turn) == ["router", "billing"]
    assert [(d.from_agent, d.to_agent, d.kind) for d in turn.dispatches] == [
        ("router", "billing", "transfer")
    ]
    (call,) = (step for step in turn.runs[1].steps if isinstance(step, ToolCall))
    assert (call.name, call.arguments) == ("refund", {"order": 7})
    assert endpoint.bodies == [
        {"message": "refund 7"},
        {"message": "thanks", "conversation": "c-17"},
    ]


def test_every_option_and_placeholder_is_reported() -> None:
    own = set(HttpOptions.__struct_fields__) - set(ProviderOptions.__struct_fields__)
    told = set(re.findall(r"`\{?(\w+)(?:\.\w+)?\}?`", SECTION))
    assert own - told == set()
    assert set(PLACEHOLDERS) - told == set()

"""Patterns that come from data are searched for in limited time."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import baton
from baton import load_traces
from baton.evaluators.matching.texts import schema_check
from baton.formats.patterns import BadPatternError, compiled
from baton.model import InputError, Trace
from baton.testing.build import call, run, trace, turn

SECONDS = 20
TEXT = "a" * 60 + "!"
SLOW = ["(a|aa)+$", "(a|a?)+$", "((a+)(a|aa)+)+$", "(?:a|aa)*?b", r"(a?a?a?a?|aa)+\Z"]


def says(said: str) -> Trace:
    made = run("a", call("look_up", {"key": said}), output=said)
    return trace(turn("Hi", made, output=said), id="t", source="python")


def score_said(tmp_path: Path, case: str, said: str, evaluator: str) -> Any:
    file = tmp_path / "cases.yaml"
    file.write_text(f"cases:\n- id: t\n  input: Hi\n{case}")
    (result,) = baton.score([says(said)], dataset=file, evaluators=[evaluator])
    return result


@pytest.mark.parametrize(
    "pattern",
    [
        "(a|aa)+$",
        *(pytest.param(each, marks=pytest.mark.heavy) for each in SLOW if each != "(a|aa)+$"),
    ],
)
def test_a_pattern_of_a_case_is_an_error_when_it_takes_too_long(
    pattern: str, tmp_path: Path
) -> None:
    case = f"  response: '{pattern}'\n  evaluators: {{response: {{match: regex}}}}\n"
    began = time.monotonic()
    result = score_said(tmp_path, case, TEXT, "response")
    assert time.monotonic() - began < SECONDS
    # Some of these the library finds a short way for; the others are stopped.
    assert result.status in ("error", "failed", "passed")
    if result.status == "error":
        assert "takes more than 2 seconds" in result.scores[0].reason
    assert pattern != "(a|aa)+$" or result.status == "error"


@pytest.mark.heavy
@pytest.mark.parametrize("pattern", ["(a+)+$", *SLOW])
def test_a_pattern_for_arguments_ends(pattern: str, tmp_path: Path) -> None:
    case = (
        f"  tools: [{{name: look_up, arguments: {{key: '{pattern}'}}}}]\n"
        "  evaluators: {tool_calls: {arguments: regex}}\n"
    )
    began = time.monotonic()
    result = score_said(tmp_path, case, TEXT, "tool_calls")
    assert time.monotonic() - began < SECONDS
    assert result.status in ("error", "failed", "passed")


@pytest.mark.parametrize(
    "pattern",
    ["((a{1000}){1000}){1000}", "a{1000000000}", "(" * 5_000 + ")" * 5_000, "a" * 20_000, "("],
    ids=["nested counts", "large count", "groups", "long", "broken"],
)
def test_a_pattern_that_cannot_be_compiled_in_time_is_refused(pattern: str) -> None:
    began = time.monotonic()
    with pytest.raises(BadPatternError):
        compiled(pattern)
    assert time.monotonic() - began < SECONDS


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"R-\d{4}", "refund R-1001", True),
        (r"^order (\w+) and \1$", "order A1 and A1", True),
        (r"(?<!not )paid(?! twice)", "it was paid", True),
        (r"(?i)strasse", "STRASSE", True),
        (r"[[a-z]--[b]]", "x", False),
        (r"a.c", "a\nc", False),
        (r"\bnine\b|\bten\b", "it is ten", True),
        (r"(?s)a.c", "a\nc", True),
    ],
)
def test_ordinary_patterns_mean_what_they_meant(pattern: str, text: str, found: bool) -> None:
    assert (compiled(pattern).search(text) is not None) == found


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "(a|aa)+$"}, TEXT),
        ({"patternProperties": {"(a|aa)+$": {}}, "additionalProperties": False}, {TEXT: 1}),
        ({"patternProperties": {"(a|aa)+$": {}}, "additionalProperties": {}}, {TEXT: 1}),
        ({"additionalProperties": False, "allOf": [{"pattern": "(a|aa)+$"}]}, TEXT),
        ({"propertyNames": {"pattern": "(a|aa)+$"}}, {TEXT: 1}),
    ],
)
def test_patterns_of_a_json_schema_have_the_same_limit(schema: dict[str, Any], value: Any) -> None:
    began = time.monotonic()
    with pytest.raises(InputError, match="takes more than 2 seconds"):
        schema_check(schema, "config.json_schema")(value)
    assert time.monotonic() - began < SECONDS


def test_properties_that_a_schema_finds_by_pattern_are_checked_as_before() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer"}},
        "patternProperties": {"^x-[a-z]+$": {"type": "string"}},
        "additionalProperties": False,
    }
    check = schema_check(schema, "config.json_schema")
    assert check({"id": 1, "x-note": "a"}) is None
    assert "is not of type" in (check({"x-note": 1}) or "")
    assert "'other' was unexpected" in (check({"other": 1}) or "")
    slow = {**schema, "unevaluatedProperties": False, "patternProperties": {"(a+)+$": {}}}
    with pytest.raises(InputError, match="several unbounded repeats"):
        schema_check(slow, "config.json_schema")


def test_recordings_are_still_read(recordings: Path) -> None:
    assert load_traces(recordings / "support_desk" / "refund.sse")

"""The registry: a table of names. It imports nothing that it names."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from baton.model import InputError, suggestion

from .alias import Alias
from .entry import Entry
from .evaluators import EVALUATORS
from .judged import JUDGE_LLM_JUDGED, JUDGED

PROVIDERS = (
    Entry(
        "adk_http",
        "baton.providers.adk.http:AdkHttp",
        "a live server of Google ADK",
    ),
    Entry(
        "adk_local",
        "baton.providers.adk.local:AdkLocal",
        "agents of Google ADK, in this process",
    ),
    Entry(
        "claude_sdk",
        "baton.providers.claude.provider:ClaudeSdk",
        "agents of the Claude Agent SDK",
    ),
    Entry("http", "baton.providers.http.provider:Http", "any JSON endpoint"),
    Entry("python", "baton.providers.python:Python", "a function of your own"),
    Entry("replay", "baton.providers.replay:Replay", "recorded traces, by case"),
    Entry("mock", "baton.providers.mock:Mock", "canned answers, to try out a config"),
)

REPORTERS = (
    Entry(
        "terminal",
        "baton.reports.terminal:print_terminal",
        "a summary and the failures, for people",
        (Alias("console", "ConsoleReporter"),),
    ),
    Entry("json", "baton.reports.json:write_json", "everything, for programs"),
    Entry("junit", "baton.reports.junit:write_junit", "test cases, for CI systems"),
)


def evaluator_entry(name: str) -> Entry:
    """Find an evaluator by any of its names.

    Raises:
        InputError: it has to be judged, or nothing has this name; with the nearest ones then.
    """
    ours = {each for entry in EVALUATORS for each in entry.names}
    if name in JUDGED and name not in ours:
        raise InputError(f"`{name}` needs a judge, which Baton does not have yet; take it out")
    return _find(name, EVALUATORS, "evaluator")


def provider_entry(name: str) -> Entry:
    """Find a provider by any of its names; raises InputError with the nearest ones."""
    return _find(name, PROVIDERS, "provider")


def reporter_entry(name: str) -> Entry:
    """Find a reporter by any of its names; raises InputError with the nearest ones."""
    return _find(name, REPORTERS, "reporter")


def known_evaluator_names() -> set[str]:
    """Return every name a case may override options of, other tools' evaluators included."""
    ours = {name for entry in EVALUATORS for name in entry.names}
    return ours | JUDGE_LLM_JUDGED


def resolve(entry: Entry) -> Any:
    """Import what an entry names."""
    module, _, attribute = entry.target.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _find(name: str, entries: Iterable[Entry], what: str) -> Entry:
    known = {alias: entry for entry in entries for alias in entry.names}
    if name not in known:
        raise InputError(f"unknown {what} `{name}`; {suggestion(name, known)}")
    return known[name]

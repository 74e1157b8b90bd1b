"""Shared by the dialects: names of judge models, and messages for their files."""

from __future__ import annotations

from baton.judges.judge_settings import PROVIDERS
from baton.model import InputError, Problem

_ALSO = {"gemini": "google", "vertex_ai": "google"}
_BY_START = (
    ("gemini", "google"),
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("mistral", "mistral"),
)


def judge_model(name: str) -> str:
    """Return Baton's name of a model: ``gemini-2.5-flash`` is ``google:gemini-2.5-flash``.

    Raises:
        InputError: its provider is not clear from the name.
    """
    provider, slash, rest = name.partition("/")
    if slash:
        provider = _ALSO.get(provider, provider)
        if provider in PROVIDERS:
            return f"{provider}:{rest}"
    if name.partition(":")[0] in PROVIDERS:
        return name
    for start, ours in _BY_START:
        if not slash and name.startswith(start):
            return f"{ours}:{name}"
    raise InputError(
        f"cannot tell the provider of model `{name}`; write PROVIDER/NAME, with one of "
        f"{', '.join(PROVIDERS)}"
    )


def worded(problem: Problem) -> str:
    """Return the message with the name of the option; a plan keeps it apart, as a path."""
    option = problem.path.removeprefix("evaluators[0]").lstrip(".").removeprefix("config.")
    return f"`{option}`: {problem.message}" if option else problem.message

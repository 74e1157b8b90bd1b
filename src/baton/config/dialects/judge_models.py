"""Names of judge models as other tools write them, as Baton does: ``PROVIDER:NAME``."""

from __future__ import annotations

from baton.judges.settings import PROVIDERS
from baton.model import InputError

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
    """Return a model as Baton names it: ``gemini-2.5-flash`` is ``google:gemini-2.5-flash``.

    Raises:
        InputError: its provider cannot be told from the name.
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
        f"whose model `{name}` is cannot be told; write PROVIDER/NAME with one of "
        f"{', '.join(PROVIDERS)}"
    )

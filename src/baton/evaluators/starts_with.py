"""``starts_with``: how the last answer has to start. Strands calls it ``StartsWith``."""

from __future__ import annotations

from baton.plugins import Alias

from .contains import LastAnswerEvaluator


class StartsWith(LastAnswerEvaluator, frozen=True, kw_only=True):
    """Looks for a text at the start of the last answer."""

    type = "starts_with"
    summary = "whether the last answer starts with a text"
    aliases = (Alias("starts_with", "StartsWith"),)
    unlike = "does not start with"

    def holds(self, text: str, wanted: str) -> bool:
        """Return whether the answer starts with the text."""
        return text.startswith(wanted)

"""Whether a text says that something did not work."""

from __future__ import annotations

import re

_WORDS = (
    r"fail(?:s|ed|ing|ure|ures)?|errors?|exceptions?|unable|unavailable|unreachable|impossible|"
    r"refused?|denied|rejected|broken?|crashed|crash|down|locked|stopped|killed|cancelled|canceled|"
    r"aborted|timed out|timeout|unfortunately|sorry|apolog\w+|trouble|problem|issue|went wrong|"
    r"unknown|missing|invalid|"
    r"(?:can|could|did|does|do|was|were|is|are|will|would|has|have|may)(?:n't|n’t| not)|cannot|"
    r"not (?:able|possible|available|found|known|allowed|permitted|reachable|respond\w*|answer\w*)|"
    r"no (?:answer|response|reply|result|results|such|access|luck)|nothing (?:could|came|was)|"
    r"nobody|without (?:success|result)|later|again|instead|"
    r"fehler\w*|leider|gescheitert|fehlgeschlagen|nicht|kein\w*|unmöglich|"
    r"erreur|échou\w+|échec|impossible|malheureusement|ne \w+ pas|"
    r"falló|fallado|fallo|imposible|lamentablemente|no (?:pude|puedo|se pudo|pudo|hay|es posible)"
)
_PATTERN = re.compile(rf"(?<!\w)(?:{_WORDS})(?!\w)", re.IGNORECASE)


def reports_failure(text: str) -> bool:
    """Tell whether a text speaks of failure at all, in English, German, French or Spanish."""
    return _PATTERN.search(text) is not None

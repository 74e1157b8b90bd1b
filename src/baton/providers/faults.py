"""What a case can break by when its message is sent, apart from any HTTP library."""

from __future__ import annotations

from baton.http.answers import Refused
from baton.model import ProviderError


class LostBeforeAnswer(Exception):  # noqa: N818 - a signal to start over
    """What came of a message that was sent is not known: no answer of the agents began.

    Its tools may have acted, so that the message cannot be sent to the same session again.
    """


class NotReached(ProviderError):  # noqa: N818 - what happened, as the others say it
    """There is no connection, so that nothing was sent."""


def refusal(error: Refused, check: str = "`auth_type` and the credentials") -> str:
    """Say what a refusal means and what to do about it; ``check`` names the credentials."""
    if error.status in (401, 403):
        return f"{error.told()}; check {check}"
    if error.status == 429:
        return f"{error.told()}; lower `concurrency`, or raise `retry_attempts`"
    return error.told()

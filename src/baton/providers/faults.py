"""What may go wrong with a request, apart from any HTTP library."""

from __future__ import annotations

from collections.abc import Mapping

from baton.model import ProviderError


class LostBeforeAnswer(Exception):  # noqa: N818 - a signal to start over
    """What came of a message that was sent is not known: no answer of the agents began.

    Its tools may have acted, so that the message cannot be sent to the same session again.
    """


class NotReached(ProviderError):  # noqa: N818 - what happened, as the others say it
    """There is no connection, so that nothing was sent."""


class Refused(Exception):  # noqa: N818 - the status says whether it is an error
    """An answer that is not 200."""

    def __init__(self, asked: str, status: int, headers: Mapping[str, str], detail: str) -> None:
        super().__init__(f"{asked} answered {status}{f': {detail}' if detail else ''}")
        self.status = status
        self.headers = headers
        self.attempts = 1
        self.no_such_route = status == 405 or (status == 404 and detail == "Not Found")


def refusal(error: Refused, check: str = "`auth_type` and the credentials") -> str:
    """Say what a refusal means and what to do about it; ``check`` is where credentials stand."""
    said = str(error) + tried(error.attempts)
    if error.status in (401, 403):
        return f"{said}; check {check}"
    if error.status == 429:
        return f"{said}; lower `concurrency`, or raise `retry_attempts`"
    return said


def tried(attempts: int) -> str:
    """Say how often, where it was more than once."""
    return f" ({attempts} attempts)" if attempts > 1 else ""

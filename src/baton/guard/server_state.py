"""The state of trees on a server, which counts for all its clients.

Only data for counting is sent: ids, a hash of each task, tokens and cost. Texts stay in the
program, which evaluates its own rules.
"""

from __future__ import annotations

import os
from typing import Annotated, TypeVar
from urllib.parse import urlencode

import msgspec

from baton.http.blocking_client import QuickClient
from baton.http.credentials import Credentials, plain_address
from baton.http.responses import NoAnswer, Refused

from .decide_event import Seen
from .state import Below, Dispatched, State, StateError

T = TypeVar("T")
_KEY = "BATON_API_KEY"
_CONNECT = 1.0
"""Seconds to connect: a server that does not answer within one of them is down, or too far away to
wait for at each dispatch."""
_SECONDS = 2.0
"""Seconds for a request: an agent waits for the decision. After that it fails, and `on_error` of
the policy applies.
"""
_Id = Annotated[str, msgspec.Meta(max_length=1000)]


class Counting(Dispatched, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dispatch to count, if its tree is ``below`` all limits."""

    below: Below = Below()


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """The result: empty if it was counted, else its tree's counts."""

    reached: Seen | None = None


class OfTree(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tree."""

    tree: _Id


class OfDispatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dispatch of a tree."""

    tree: _Id
    id: _Id


class Renamed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dispatch of a tree, and its other id."""

    tree: _Id
    id: _Id
    name: _Id


class Used(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Additional usage of a tree."""

    tree: _Id
    tokens: Annotated[int, msgspec.Meta(ge=0, le=10**12)] | None = None
    cost_usd: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a dispatch was counted."""

    known: bool


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """The change is written."""


class ServerStore(State):
    """The state of trees on a server, which many machines may share.

    Times are from the server's clock. No request is made before the first decision.

    Args:
        url: the address of the server.
        project: the project; by default that of the key, or `default`.
        key: an API key with the right `ingest`; ``BATON_API_KEY`` when left out.

    Raises:
        InputError: the address is not valid.
    """

    is_remote = True

    def __init__(self, url: str, *, project: str | None = None, key: str | None = None) -> None:
        address = plain_address(url, "store", f"`key` or {_KEY}")
        secret = key or os.environ.get(_KEY)
        headers = {"Authorization": f"Bearer {secret}"} if secret else {}
        self._url = address
        self._query = f"?{urlencode({'project': project})}" if project else ""
        credentials = Credentials(headers=headers)
        self._client = QuickClient(address, credentials, connect=_CONNECT, seconds=_SECONDS)

    def seen(self, sent: Dispatched, at: float | None) -> Seen:  # noqa: ARG002
        """Return a tree's counts before a dispatch, by the server's clock."""
        return self._ask("seen", sent, Seen)

    def count(self, sent: Dispatched, at: float | None, below: Below) -> Seen | None:  # noqa: ARG002
        """Count a dispatch if its tree is ``below`` all limits; else return the tree's counts."""
        counting = Counting(**msgspec.structs.asdict(sent), below=below)
        return self._ask("count", counting, Counted).reached

    def begin(self, tree: str, at: float | None = None) -> None:  # noqa: ARG002
        """Record that a tree starts now, by the server's clock, unless it has started already."""
        self._ask("begin", OfTree(tree=tree), Done)

    def end(self, tree: str, dispatch: str) -> bool:
        """Record that a dispatch has its answer, or failed; returns whether it was counted."""
        return self._ask("end", OfDispatch(tree=tree, id=dispatch), Known).known

    def knows(self, tree: str, dispatch: str) -> bool:
        """Tell whether a dispatch was counted."""
        return self._ask("knows", OfDispatch(tree=tree, id=dispatch), Known).known

    def rename(self, tree: str, dispatch: str, name: str) -> None:
        """Give a dispatch another id."""
        self._ask("rename", Renamed(tree=tree, id=dispatch, name=name), Done)

    def use(self, tree: str, *, tokens: int | None = None, cost_usd: float | None = None) -> None:
        """Add usage of a tree; ``None`` does not change a figure."""
        self._ask("use", Used(tree=tree, tokens=tokens, cost_usd=cost_usd), Done)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _ask(self, what: str, body: msgspec.Struct, answer: type[T]) -> T:
        path = f"/api/v1/guard/{what}"
        try:
            content = msgspec.json.encode(body)
        except UnicodeEncodeError as error:
            raise StateError(f"a name cannot be sent to a server: {error}") from None
        try:
            # A dispatch is counted once, but usage is added each time: only the former can be
            # retried.
            data = self._client.post(f"{path}{self._query}", content, repeatable=what != "use")
            return msgspec.json.decode(data, type=answer)
        except (NoAnswer, Refused) as error:
            raise StateError(str(error)) from None
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            reason = f"the answer of {self._url}{path} is not valid: {error}"
            raise StateError(f"{reason}; is it a server of Baton?") from None

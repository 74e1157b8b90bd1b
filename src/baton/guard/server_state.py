"""The state of trees on a server, which counts for all programs that ask it.

Only what counts is sent: ids, a hash of each task, tokens and cost. Texts stay in the program,
which asks its own rules.
"""

from __future__ import annotations

import os
from typing import Annotated, TypeVar
from urllib.parse import urlencode

import msgspec

from baton.http.answers import NoAnswer, Refused
from baton.http.credentials import Credentials, plain_address
from baton.http.quick import QuickClient

from .decide import Seen
from .state import Below, Dispatched, State, StateError

T = TypeVar("T")
_KEY = "BATON_API_KEY"
_CONNECT = 1.0
_SECONDS = 2.0
"""An agent waits for each decision: one that takes longer fails, and the policy says what then."""
_Id = Annotated[str, msgspec.Meta(max_length=1000)]


class Counting(Dispatched, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A dispatch to count, if its tree is ``below`` all that."""

    below: Below = Below()


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it: nothing when it counts, else what its tree has had."""

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
    """What a tree has used besides what it had."""

    tree: _Id
    tokens: Annotated[int, msgspec.Meta(ge=0, le=10**12)] | None = None
    cost_usd: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a dispatch was counted."""

    known: bool


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """It is written."""


class ServerStore(State):
    """The state of trees on a server; programs on many machines may share it.

    Times are those of the server's clock. Nothing is asked before the first decision.

    Args:
        url: the address of the server.
        project: the project; that of the key, or `default`, when left out.
        key: an API key with the right `ingest`; ``BATON_API_KEY`` when left out.

    Raises:
        InputError: the address is none.
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
        """Return what a tree has had before a dispatch, by the server's clock."""
        return self._ask("seen", sent, Seen)

    def count(self, sent: Dispatched, at: float | None, below: Below) -> Seen | None:  # noqa: ARG002
        """Count a dispatch if its tree is ``below`` all that; else return what the tree has had."""
        counting = Counting(**msgspec.structs.asdict(sent), below=below)
        return self._ask("count", counting, Counted).reached

    def begin(self, tree: str, at: float | None = None) -> None:  # noqa: ARG002
        """Note that a tree begins now, by the server's clock, unless it has begun already."""
        self._ask("begin", OfTree(tree=tree), Done)

    def end(self, tree: str, dispatch: str) -> bool:
        """Note that a dispatch has its answer, or failed; tells whether it was counted."""
        return self._ask("end", OfDispatch(tree=tree, id=dispatch), Known).known

    def knows(self, tree: str, dispatch: str) -> bool:
        """Tell whether a dispatch was counted."""
        return self._ask("knows", OfDispatch(tree=tree, id=dispatch), Known).known

    def rename(self, tree: str, dispatch: str, name: str) -> None:
        """Give a dispatch another id, by which others will know it."""
        self._ask("rename", Renamed(tree=tree, id=dispatch, name=name), Done)

    def use(self, tree: str, *, tokens: int | None = None, cost_usd: float | None = None) -> None:
        """Add what a tree has used; ``None`` leaves a figure as it is."""
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
            # A dispatch is counted once, but what was used is added each time.
            data = self._client.post(f"{path}{self._query}", content, repeatable=what != "use")
            return msgspec.json.decode(data, type=answer)
        except (NoAnswer, Refused) as error:
            raise StateError(str(error)) from None
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            reason = f"{self._url}{path} answered what cannot be read: {error}"
            raise StateError(f"{reason}; is it a server of Baton?") from None

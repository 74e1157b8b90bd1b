"""Vectors of texts from an API, with the cache, the budget and the pace of judges."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from os import PathLike
from struct import error as unreadable
from struct import pack, unpack

import msgspec

from baton.model import InputError, JudgeError, Problem, Usage
from baton.model.prices import ModelPrice

from .budget import Budget, Costs
from .cache import Verdict, VerdictCache
from .judge_settings import JudgeSettings, check_ready
from .llm_client import Embedded, EmbeddingClient
from .parse_answer import CallError
from .retries import Pace

_AT_ONCE = 100
"""Texts per request: APIs accept up to 2,048, and a failed request is repeated as a whole."""
_LETTERS = 2_000
"""The most characters of a text that are sent: reasons of judges are shorter."""
_PER_TOKEN = 3
"""Characters per token, for estimates: English has four, other languages fewer."""


class Embeddings:
    """Requests vectors; once for each text, as they are stored in the file of verdicts.

    Args:
        settings: the model (``openai:NAME``), its address and key, and limits, as of a judge.
        cache: the file; without it nothing is stored.
        max_cost: in USD, overrides the settings.
        prices: prices from a config.

    Raises:
        InputError: no library, no key, another provider, or a cost limit for a model without a
            price.
    """

    def __init__(
        self,
        settings: JudgeSettings,
        *,
        cache: str | PathLike[str] | None = None,
        max_cost: float | None = None,
        prices: Mapping[str, ModelPrice] | None = None,
    ) -> None:
        if settings.provider != "openai":
            message = (
                f"`{settings.model}`: embeddings come from OpenAI, or with `base_url` "
                "from a compatible API; write openai:NAME"
            )
            raise InputError(Problem(path="embeddings.model", message=message))
        if max_cost is not None:
            settings = msgspec.structs.replace(settings, max_cost=max_cost)
        self.settings = settings
        self._costs = Costs(prices)
        check_ready(settings)
        self._costs.check(settings)
        self._cache = None if cache is None else VerdictCache(cache)
        self._budget = Budget(settings.max_cost, settings.max_calls)

    @property
    def spent(self) -> float:
        """The cost so far in USD, if the price is known."""
        return self._budget.spent

    async def of(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the vector of each text.

        Raises:
            JudgeError: the model cannot be reached, refuses, or the budget is used up.
        """
        short = [text[:_LETTERS] for text in texts]
        known: dict[str, list[float]] = {}
        for text in dict.fromkeys(short):
            cached = self._kept(text)
            if cached is not None:
                known[text] = cached
        left = [text for text in dict.fromkeys(short) if text not in known]
        if left:
            endpoint = self.settings.endpoints()[0]
            client = EmbeddingClient(endpoint, self.settings)
            limits = self.settings.requests_per_minute, self.settings.tokens_per_minute
            pace = Pace(self.settings.concurrency, *limits)
            try:
                for at in range(0, len(left), _AT_ONCE):
                    some = left[at : at + _AT_ONCE]
                    vectors = await self._ask(client, pace, some)
                    for text, vector in zip(some, vectors, strict=True):
                        known[text] = vector
                        self._keep(text, vector)
            except CallError as error:
                raise JudgeError(error.kind, str(error)) from error
            finally:
                await client.close()
        if self._cache is not None:
            self._cache.close()
        if len({len(known[text]) for text in short}) > 1:
            message = f"`{self.settings.model}` gives vectors of several lengths"
            raise JudgeError("outage", f"{message}: delete the file of the cache")
        return [known[text] for text in short]

    async def _ask(
        self, client: EmbeddingClient, pace: Pace, texts: list[str]
    ) -> list[list[float]]:
        tokens = sum(len(text) // _PER_TOKEN + 1 for text in texts)
        usual = Usage(input_tokens=tokens)
        estimate = self._costs.of(client.endpoint, usual) if self._budget.counts_cost else None

        async def once() -> Embedded:
            async with pace.turn(tokens) as turn:
                self._budget.reserve(estimate)
                cost: float | None = 0.0
                try:
                    vectors = await client.embed(texts)
                    read = Usage(input_tokens=vectors.input_tokens)
                    cost = self._costs.of(client.endpoint, read)
                finally:
                    self._budget.settle(estimate, cost)
                turn.used(vectors.input_tokens)
                return vectors

        return (await pace.persist(once, self.settings.retries)).vectors

    def _key(self, text: str) -> str:
        parts = ["embedding", self.settings.model, self.settings.base_url, text]
        return sha256(msgspec.json.encode(parts)).hexdigest()

    def _kept(self, text: str) -> list[float] | None:
        verdict = None if self._cache is None else self._cache.get(self._key(text))
        if verdict is None:
            return None
        try:
            packed = b64decode(verdict.value["vector"], validate=True)
            return list(unpack(f"<{len(packed) // 4}f", packed))
        except (KeyError, TypeError, ValueError, unreadable):
            return None

    def _keep(self, text: str, vector: Sequence[float]) -> None:
        if self._cache is not None:
            packed = b64encode(pack(f"<{len(vector)}f", *vector)).decode()
            value = {"vector": packed}
            self._cache.put(
                self._key(text), "embedding", Verdict(value=value, model=self.settings.model)
            )

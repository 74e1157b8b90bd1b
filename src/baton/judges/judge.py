"""A judge that calls LLMs: cache, budget, retries and fallbacks; and a dry run of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from os import PathLike
from typing import Any, Generic, Self, TypeVar
from weakref import WeakKeyDictionary

import msgspec

from baton.model import JudgeError, JudgeRequest, JudgeResponse, Usage
from baton.model.prices import ModelPrice

from .budget import Bill, Budget, Costs
from .cache import Verdict, VerdictCache, cache_key
from .fenced_prompts import USUAL_OUTPUT, prompt_for
from .judge_settings import Endpoint, JudgeSettings, check_ready, replaced
from .llm_client import LlmClient
from .parse_answer import AnswerError, CallError, check_schema, read_verdict
from .retries import Connect, Network

T = TypeVar("T")


class Once(Generic[T]):
    """Running work by its key; belongs to one event loop."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Future[T]] = {}

    async def get(self, key: str, work: Callable[[], Awaitable[T]]) -> tuple[T, bool]:
        """Do the work, or wait for the task that does it; return whether it was another task.

        All waiting tasks get its exception. If the working task is cancelled, another one takes
        over.
        """
        while (others := self._running.get(key)) is not None:
            try:
                return await asyncio.shield(others), True
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if not others.cancelled() or (task is not None and task.cancelling()):
                    raise
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._running[key] = future
        try:
            result = await work()
        except Exception as error:
            future.set_exception(error)
            future.exception()  # perhaps no task waits for it
            raise
        except BaseException:
            future.cancel()
            raise
        else:
            future.set_result(result)
            return result, False
        finally:
            del self._running[key]


_NOT_REACHED = frozenset({"outage", "timeout", "rate_limit", "rejected"})
"""Kinds of errors after which a fallback is used: those unrelated to the question."""


class _Here:
    """State of one event loop: connections, and running questions."""

    def __init__(self, connect: Connect, costs: Costs) -> None:
        self.network = Network(connect, costs)
        self.asking: Once[JudgeResponse] = Once()


class _Shared:
    """The shared state of a judge and its variants with other options."""

    def __init__(
        self, cache: VerdictCache | None, cache_only: bool, costs: Costs, connect: Connect
    ) -> None:
        self.cache, self.cache_only = cache, cache_only
        self.costs = costs
        self.made: dict[bytes, LlmJudge] = {}
        self._connect = connect
        self._places: WeakKeyDictionary[asyncio.AbstractEventLoop, _Here] = WeakKeyDictionary()

    @property
    def here(self) -> _Here:
        """The state of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._places:
            self._places[loop] = _Here(self._connect, self.costs)
        return self._places[loop]

    def check(self, settings: JudgeSettings) -> None:
        """Check early what would otherwise fail at the first call; raises InputError."""
        if not self.cache_only:
            if self._connect is LlmClient:
                check_ready(settings)
            self.costs.check(settings)

    async def close(self) -> None:
        here = self._places.pop(asyncio.get_running_loop(), None)
        if here is not None:
            await here.network.close()
        # A closed loop is never used again.
        elsewhere = any(not loop.is_closed() for loop in self._places)
        if self.cache is not None and not elsewhere:
            self.cache.close()


class LlmJudge:
    """Implements :class:`baton.model.Judge`; made by :func:`make_judge`.

    Close it with ``async with`` or :meth:`close` in the event loop in which it was used; it can be
    used again after that.
    """

    def __init__(self, settings: JudgeSettings, budget: Budget, shared: _Shared) -> None:
        """Take the parts from :func:`make_judge`."""
        self.settings = settings
        self._budget = budget
        self._shared = shared

    @property
    def model(self) -> str:
        """The model that is called first, as configured."""
        return self.settings.model

    @property
    def samples(self) -> int:
        """The number of samples per question, unless a rubric says otherwise."""
        return self.settings.samples

    @property
    def spent(self) -> float:
        """The cost so far in USD, as far as prices are known, including variants."""
        return self._budget.spent

    def with_options(self, override: Mapping[str, Any]) -> Self:
        """Return this judge with some settings replaced; raises InputError for a wrong one.

        Cache, connections and the budget stay the same; ``max_cost`` and ``max_calls`` are
        further limits, and the same options give the same judge.
        """
        if not override:
            return self
        settings = replaced(self.settings, override)
        key = msgspec.json.encode((settings, sorted(override)), order="deterministic")
        made = self._shared.made.get(key)
        if made is None:
            budget = self._budget
            if "max_cost" in override or "max_calls" in override:
                budget = Budget(override.get("max_cost"), override.get("max_calls"), budget)
            self._shared.check(settings)
            made = type(self)(settings, budget, self._shared)
            self._shared.made[key] = made
        assert isinstance(made, type(self))  # noqa: S101
        return made

    async def ask(self, request: JudgeRequest, *, sample: int = 0) -> JudgeResponse:
        """Ask for one sample.

        Raises:
            JudgeError: there was no valid answer.
            InputError: the cache or the library cannot be used.
        """
        check_schema(request.schema)
        keys = self._keys(request, sample)
        kept = self._kept(keys)
        if kept is not None:
            return kept
        if self._shared.cache_only:
            message = f"no verdict of {self.model} on this question (sample {sample}) is cached"
            raise JudgeError("uncached", message)
        response, theirs = await self._shared.here.asking.get(
            keys[0], lambda: self._first_that_answers(request, keys)
        )
        return _again(response) if theirs else response

    def kept(self, request: JudgeRequest, sample: int = 0) -> tuple[str, JudgeResponse | None]:
        """Return the key of a verdict, and the cached verdict, if any."""
        keys = self._keys(request, sample)
        return keys[0], self._kept(keys)

    def price(self, usage: Usage) -> float | None:
        """Return the cost of a request to the first model in USD, if its price is known."""
        return self._shared.costs.of(self.settings.endpoints()[0], usage)

    async def close(self) -> None:
        """Close connections and the cache."""
        await self._shared.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _first_that_answers(self, request: JudgeRequest, keys: list[str]) -> JudgeResponse:
        bill = Bill()
        first: JudgeError | None = None
        for endpoint, key in zip(self.settings.endpoints(), keys, strict=True):
            try:
                response = await self._ask_model(endpoint, request, bill)
            except CallError as error:
                trouble = bill.put_on(JudgeError(error.kind, error.message))
                if error.kind not in _NOT_REACHED:
                    raise trouble from error
                first = first or trouble
                continue
            except JudgeError as error:  # the budget, maybe after an answer that was of no use
                raise bill.put_on(error) from error.__cause__
            self._keep(key, request, response)
            return response
        assert first is not None  # noqa: S101
        raise bill.put_on(first)

    async def _ask_model(
        self, endpoint: Endpoint, request: JudgeRequest, bill: Bill
    ) -> JudgeResponse:
        """Call a model, and once more if its answer is not valid."""
        network, settings, budget = self._shared.here.network, self.settings, self._budget
        prompt = prompt_for(request)
        reply = await network.send(endpoint, settings, prompt, budget, bill)
        try:
            value = read_verdict(reply, request.schema, prompt.canary)
        except AnswerError as invalid:
            prompt = prompt_for(request, invalid.message)
            reply = await network.send(endpoint, settings, prompt, budget, bill)
            try:
                value = read_verdict(reply, request.schema, prompt.canary)
            except AnswerError as still:
                raise CallError(still.kind, f"{still.message} (asked twice)") from still
        return JudgeResponse(
            value=value,
            model=reply.model,
            requests=bill.requests,
            input_tokens=bill.input_tokens,
            output_tokens=bill.output_tokens,
            cost_usd=bill.cost_usd,
            seconds=bill.seconds,
        )

    def _keys(self, request: JudgeRequest, sample: int) -> list[str]:
        """Return the key of a verdict for each model that may give it."""
        return [
            cache_key(
                request,
                f"{endpoint.model} {endpoint.base_url or ''}",
                sample,
                self.settings.temperature,
            )
            for endpoint in self.settings.endpoints()
        ]

    def _kept(self, keys: list[str]) -> JudgeResponse | None:
        """Return the cached verdict of any of the models."""
        cache = self._shared.cache
        if cache is None:
            return None
        verdict = next((entry for key in keys if (entry := cache.get(key)) is not None), None)
        if verdict is None:
            return None
        return JudgeResponse(
            value=verdict.value, model=verdict.model, requests=0, cost_usd=0.0, cached=True
        )

    def _keep(self, key: str, request: JudgeRequest, response: JudgeResponse) -> None:
        if self._shared.cache is not None:
            verdict = Verdict(
                value=response.value,
                model=response.model,
                input_tokens=response.input_tokens,
                output_tokens=response.output_tokens,
                cost_usd=response.cost_usd,
                seconds=response.seconds,
            )
            self._shared.cache.put(key, request.rubric, verdict)


def make_judge(
    settings: JudgeSettings,
    *,
    cache: str | PathLike[str] | None = None,
    cache_only: bool = False,
    max_cost: float | None = None,
    max_calls: int | None = None,
    prices: Mapping[str, ModelPrice] | None = None,
    connect: Connect = LlmClient,
) -> LlmJudge:
    """Make a judge, checked before anything runs.

    ``cache`` is the file of verdicts (``None``: no cache); with ``cache_only`` no model is called,
    and a missing verdict is an error. ``max_cost`` (USD) and ``max_calls`` (requests) override the
    settings. ``prices`` are a config's; otherwise genai-prices is used, except for custom
    addresses.

    Raises:
        InputError: no library, no key, or a cost limit for a model without a price.
    """
    limits = {
        name: value
        for name, value in (("max_cost", max_cost), ("max_calls", max_calls))
        if value is not None
    }
    settings = msgspec.structs.replace(settings, **limits)
    kept = None if cache is None else VerdictCache(cache, read_only=cache_only)
    shared = _Shared(kept, cache_only, Costs(prices), connect)
    shared.check(settings)
    return LlmJudge(settings, Budget(settings.max_cost, settings.max_calls), shared)


def _again(response: JudgeResponse) -> JudgeResponse:
    """Return an answer for other tasks that waited for it: it cost them nothing."""
    return msgspec.structs.replace(
        response,
        requests=0,
        input_tokens=0,
        output_tokens=0,
        cost_usd=0.0,
        seconds=0.0,
        cached=True,
    )


class JudgingEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Calls, tokens and cost of judging; ``basis`` says what they were computed from.

    ``cached`` counts verdicts that exist already and cost nothing; it is unset if the cache was
    not read. ``cost_usd`` is ``None`` when the price of a model is unknown. Retries are not
    included.
    """

    model: str
    calls: int
    cached: int | msgspec.UnsetType = msgspec.UNSET
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    basis: str


class Rehearsal:
    """A dry run of a judge: returns made-up answers that match the schema, and counts.

    The samples of a question differ, so that votes take the maximum number.
    """

    def __init__(self, judge: LlmJudge) -> None:
        """Take the judge with the cache, prices and options to use."""
        self._judge = judge
        self._counted: dict[str, tuple[int, float | None]] = {}
        self._cached: set[str] = set()

    @property
    def model(self) -> str:
        """The model that would be called first."""
        return self._judge.model

    @property
    def samples(self) -> int:
        """The number of samples per question."""
        return self._judge.samples

    def with_options(self, override: Mapping[str, Any]) -> Self:
        """Return a dry run of the judge with some settings replaced."""
        changed = type(self)(self._judge.with_options(override))
        changed._counted, changed._cached = self._counted, self._cached
        return changed

    async def ask(self, request: JudgeRequest, *, sample: int = 0) -> JudgeResponse:
        """Count one sample, and make up an answer."""
        check_schema(request.schema)
        key, kept = self._judge.kept(request, sample)
        if kept is not None:
            self._cached.add(key)
            return kept
        tokens = prompt_for(request).tokens
        usual = Usage(input_tokens=tokens, output_tokens=USUAL_OUTPUT)
        self._counted[key] = tokens, self._judge.price(usual)
        return JudgeResponse(value=example(request.schema, sample), model=self.model, requests=0)

    def price(self, usage: Usage) -> float | None:
        """Return the cost of a request in USD, if its price is known."""
        return self._judge.price(usage)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._judge.close()

    def estimate(self, basis: str) -> JudgingEstimate:
        """Sum up what was counted; the same question counts once.

        A token is assumed to have four bytes, a verdict 150 tokens.
        """
        costs = [cost for _, cost in self._counted.values()]
        known_costs = [cost for cost in costs if cost is not None]
        return JudgingEstimate(
            model=self.model,
            calls=len(self._counted),
            cached=len(self._cached),
            input_tokens=sum(tokens for tokens, _ in self._counted.values()),
            output_tokens=USUAL_OUTPUT * len(self._counted),
            cost_usd=sum(known_costs) if len(known_costs) == len(costs) else None,
            basis=basis,
        )


def example(schema: Mapping[str, Any], number: int = 0) -> Any:
    """Make up a value that matches a schema; with another ``number`` it differs if possible."""
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][number % len(schema["enum"])]
    if "anyOf" in schema:
        return example(schema["anyOf"][0], number)
    kinds = schema.get("type", "string")
    match kinds if isinstance(kinds, str) else kinds[0]:
        case "object":
            properties = schema.get("properties", {})
            return {name: example(part, number) for name, part in properties.items()}
        case "array":
            least = max(1, schema.get("minItems", 1))
            return [example(schema.get("items", {}), number) for _ in range(least)]
        case "boolean":
            return number % 2 == 0
        case "number" | "integer":
            low = schema.get("minimum", 0)
            return low if number % 2 == 0 else schema.get("maximum", low + 1)
        case "null":
            return None
    return "-" * schema.get("minLength", 1)

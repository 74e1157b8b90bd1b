"""One request to one model, through pydantic-ai: the only module that knows an LLM library.

It is not imported before the first request. The library makes one attempt: ``pace``, which knows
all requests, makes retries.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, closing, suppress
from functools import partial
from importlib import import_module
from queue import Empty, Queue
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from baton.http.credentials import bare_address
from baton.http.responses import LimitReached, Limits, Meter
from baton.model import InputError, JudgeErrorKind, Problem
from baton.model.mask_known_secrets import Masker
from baton.plugins.origin import install, requirement

from .fenced_prompts import Prompt
from .judge_settings import Endpoint, JudgeSettings
from .parse_answer import CallError, RawAnswer

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters
    from pydantic_ai.providers import Provider
    from pydantic_ai.settings import ModelSettings

    from baton.http.client import BoundedClient

_TOOL = "give_verdict"
_NO_TAG = "\0no tag\0"
_TELLS = "Give the verdict."
# Characters of a server's answer in an error message: enough for the sentence that says what is
# wrong, little of a page of HTML.
_QUOTED = 300
# HTTP libraries wrap the cause of an error four or five times. The limit is for cyclic chains.
_CAUSES = 10  # exceptions below one another
_PIECE = 1 << 16  # bytes
Mode = Literal["native", "tool", "prompted"]


class JudgeClient(Protocol):
    """Sends one request to one model, once."""

    async def open(self) -> None:
        """Prepare for requests; called before each one, and works only before the first.

        Raises:
            CallError: the model cannot be called.
            InputError: its library is not installed.
        """

    async def send(self, prompt: Prompt) -> RawAnswer:
        """Return the model's answer.

        Raises:
            CallError: there was no answer, or it could not be called.
        """

    async def close(self) -> None:
        """Close all connections; the client is not used after that."""


class LlmClient:
    """A client of one model; belongs to the event loop in which it is first used."""

    def __init__(self, endpoint: Endpoint, settings: JudgeSettings) -> None:
        """Open nothing yet."""
        self.endpoint, self.settings = endpoint, settings
        self._model: Model[Any] | None = None
        self._entered = AsyncExitStack()
        self._opening = asyncio.Lock()

    async def open(self) -> None:
        """Import the library, and make the model; see :class:`JudgeClient`."""
        async with self._opening:
            if self._model is None:
                self._model = await _connect(
                    self.endpoint, self.settings, self._entered, option="judge"
                )

    async def send(self, prompt: Prompt) -> RawAnswer:
        """Send the prompt once; see :class:`JudgeClient`."""
        await self.open()
        model = self._model
        assert model is not None  # noqa: S101
        from pydantic_ai.direct import model_request

        parameters = _parameters(model, prompt.schema, self.settings.output)
        try:
            async with asyncio.timeout(self.settings.timeout):
                response = await model_request(
                    model,
                    _messages(prompt),
                    model_settings=self._model_settings(prompt),
                    model_request_parameters=parameters,
                    instrument=False,
                )
        except TimeoutError:
            late = f"`{self.endpoint.model}` took longer than {self.settings.timeout:g} s"
            raise CallError("timeout", late, again=True) from None
        except Exception as error:
            raise call_error(error, self.endpoint) from error
        return _raw_answer(response, self.endpoint.name)

    async def close(self) -> None:
        """Close the connections."""
        self._model = None
        await self._entered.aclose()

    def _model_settings(self, prompt: Prompt) -> ModelSettings:
        settings: ModelSettings = {"max_tokens": self.settings.max_tokens}
        if prompt.exchanges:  # writing to a cache costs more, and pays off if it is read again
            settings["cache"] = True
        if self.endpoint.provider != "bedrock":  # its client gets these at creation
            settings |= {"timeout": self.settings.timeout, "max_retries": 0}
        if self.settings.temperature is not None:
            settings["temperature"] = self.settings.temperature
        return settings


async def _connect(
    endpoint: Endpoint,
    settings: JudgeSettings,
    entered: AsyncExitStack,
    *,
    option: Literal["judge", "embeddings"],
) -> Any:
    """Make the library's model; ``entered`` closes its connections.

    Raises:
        InputError: a library is missing for what ``option`` names.
        CallError: the model cannot be made.
    """
    try:
        # Importing takes a second, which should not block others.
        provider, make, http = await asyncio.to_thread(_provider, endpoint, settings)
        if option == "judge":
            model: Any = make(endpoint.name, provider=provider)
        else:
            from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel

            model = OpenAIEmbeddingModel(endpoint.name, provider=provider)
    except ImportError as error:
        needs = install(requirement("judge"))
        message = f"`{endpoint.model}` needs a library: {needs} ({error})"
        raise InputError(Problem(path=option, message=message)) from error
    except Exception as error:
        raise call_error(error, endpoint) from error
    await entered.enter_async_context(provider)
    if http is not None:
        entered.push_async_callback(http.aclose)
    return model


def _messages(prompt: Prompt) -> list[ModelMessage]:
    from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, UserPromptPart

    instructions = prompt.instructions
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(prompt.content)], instructions=instructions)
    ]
    for answer, content in prompt.exchanges:
        messages.append(ModelResponse(parts=[TextPart(answer)]))
        messages.append(ModelRequest(parts=[UserPromptPart(content)], instructions=instructions))
    return messages


def call_error(error: Exception, endpoint: Endpoint) -> CallError:
    """Return the kind of an exception from the library, and whether to retry."""
    from pydantic_ai import exceptions as known

    reached = _limit_reached(error)
    if reached is not None:
        return CallError("outage", f"`{endpoint.model}`: {reached}")
    kinds: list[tuple[type[Exception], JudgeErrorKind, bool]] = [
        (known.ModelRateLimitError, "rate_limit", True),
        (known.ModelTimeoutError, "timeout", True),
        (known.ModelQuotaExceededError, "rejected", False),
        (known.ModelRequestRejectedError, "rejected", False),
        (known.ModelAPIError, "outage", True),
        (known.ContentFilterError, "refusal", False),
        (known.OutputTokenLimitExceeded, "truncated", False),
        (known.UnexpectedModelBehavior, "outage", True),
    ]
    matching = ((kind, again) for type_, kind, again in kinds if isinstance(error, type_))
    kind, again = next(matching, ("rejected", False))
    text = " ".join(_words(error).split())
    if endpoint.api_key:
        # The masker ignores a key of a few characters inside words; a key must always be masked.
        text = Masker([endpoint.api_key])(text).replace(endpoint.api_key, "***")
    text = text[:_QUOTED]
    retry_after = getattr(error, "retry_after", None)
    if retry_after is not None and not 0 <= retry_after < math.inf:  # excludes NaN, too
        retry_after = None
    # Libraries say only "Connection error.", and a wrong address is the usual reason.
    tried = kind in ("outage", "timeout") and endpoint.base_url
    place = f" at {bare_address(tried)}" if tried else ""
    message = f"`{endpoint.model}`{place}: {text}"
    return CallError(kind, message, again=again, retry_after=retry_after)


def _limit_reached(error: BaseException) -> LimitReached | None:
    """Find one of Baton's limits among the causes of a library's exception."""
    cause: BaseException | None = error
    for _ in range(_CAUSES):
        if cause is None or isinstance(cause, LimitReached):
            return cause
        cause = cause.__cause__ or cause.__context__
    return None


def _words(error: Exception) -> str:
    """Return the server's message of an error, else the library's."""
    status, body = getattr(error, "status_code", None), getattr(error, "body", None)
    if isinstance(body, str):
        with suppress(msgspec.DecodeError):
            body = msgspec.json.decode(body)
    if isinstance(body, dict):
        inner = body.get("error", body)
        message = inner.get("message") if isinstance(inner, dict) else inner
        if isinstance(message, str) and message:
            return message if status is None else f"status {status}: {message}"
    return str(error) or type(error).__name__


def _parameters(
    model: Model[Any], schema: Mapping[str, Any], output: str
) -> ModelRequestParameters:
    """Request the schema natively if the model can, else as a tool's, else in words."""
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.output import OutputObjectDefinition
    from pydantic_ai.tools import ToolDefinition

    mode = output
    if output == "auto":
        mode = "tool" if model.profile.get("supports_tools", True) else "prompted"
        if model.profile.get("supports_json_schema_output", False):
            mode = "native"
    plain = dict(schema)
    if mode == "tool":
        tool = ToolDefinition(
            name=_TOOL, parameters_json_schema=plain, description=_TELLS, kind="output"
        )
        return ModelRequestParameters(
            output_mode="tool", output_tools=[tool], allow_text_output=False
        )
    wanted = OutputObjectDefinition(plain, name=_TOOL, description=_TELLS)
    kind: Literal["native", "prompted"] = "native" if mode == "native" else "prompted"
    return ModelRequestParameters(output_mode=kind, output_object=wanted)


def _raw_answer(response: ModelResponse, asked: str) -> RawAnswer:
    from pydantic_ai.messages import TextPart, ToolCallPart

    calls = [part for part in response.parts if isinstance(part, ToolCallPart)]
    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    # As the model wrote them, if the API returns text: encoding again would hide duplicate keys.
    verdicts = [
        call.args if isinstance(call.args, str) else call.args_as_json_str()
        for call in calls
        if call.tool_name == _TOOL
    ]
    text = "".join(texts)
    if verdicts:
        # Words before a call are common. An object beside it, or a second call, is another answer:
        # two together are not valid JSON, and so no verdict.
        beside = [text] if text.lstrip().startswith(("{", "```")) else []
        text = "\n".join([*beside, *verdicts])
    if text and response.finish_reason == "error":
        # Bedrock's and Google's name for a truncated answer: it may be incomplete.
        raise CallError("outage", f"`{asked}` ended its answer with an error", again=True)
    details = response.provider_details or {}
    refusal = details.get("refusal")
    stopped: JudgeErrorKind | None = None
    if refusal or response.finish_reason == "content_filter":
        stopped = "refusal"
    elif response.finish_reason == "length":
        stopped = "truncated"
    usage = response.usage
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return RawAnswer(
        text=text,
        model=response.model_name or asked,
        stopped=stopped,
        note=f"the model refused: {str(refusal)[:_QUOTED]}" if refusal else "",
        input_tokens=max(0, usage.input_tokens - cached),
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
    )


Made = tuple["Provider[Any]", Callable[..., "Model[Any]"], "BoundedClient | None"]
"""A provider, its class of model, and the client to close after it, if there is one."""


def _provider(endpoint: Endpoint, settings: JudgeSettings) -> Made:
    """Return a provider and its class of model; needs only that provider's library."""
    import_module("pydantic_ai.direct")  # sending needs most of the library
    if endpoint.provider == "bedrock":
        return _bedrock(endpoint, settings)
    from baton.http.client import library_client

    http = library_client(_limits(settings), endpoint.base_url)
    key, url = _key(endpoint), endpoint.base_url
    match endpoint.provider:
        case "anthropic":
            from pydantic_ai.models.anthropic import AnthropicModel
            from pydantic_ai.providers.anthropic import AnthropicProvider

            anthropic = AnthropicProvider(api_key=key, base_url=url, http_client=http)
            return anthropic, AnthropicModel, http
        case "google":
            from pydantic_ai.models.google import GoogleModel
            from pydantic_ai.providers.google import GoogleProvider

            google = GoogleProvider(api_key=key, base_url=url, http_client=http)
            return google, GoogleModel, http
        case "mistral":
            from pydantic_ai.models.mistral import MistralModel
            from pydantic_ai.providers.mistral import MistralProvider

            mistral = MistralProvider(api_key=key, base_url=url, http_client=http)
            return mistral, MistralModel, http
        case _:
            return _openai(endpoint, http)


def _limits(settings: JudgeSettings) -> Limits:
    return Limits(settings.timeout, settings.timeout, settings.max_answer_mib)


def _openai(endpoint: Endpoint, http: BoundedClient) -> Made:
    """Return OpenAI's provider or, with an address, one for a compatible server.

    The latter never uses OpenAI's key, and recognises other vendors' models by their names.
    """
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    kind: Callable[..., Model[Any]] = OpenAIResponsesModel
    if endpoint.provider == "openai":
        # The library drops an unclosed `<think>`, and takes the rest as the answer. With a tag that
        # never occurs, thinking is left to `verdict`.
        kind = partial(OpenAIChatModel, profile={"thinking_tags": (_NO_TAG, _NO_TAG)})
    if endpoint.base_url is None:
        return OpenAIProvider(api_key=endpoint.api_key, http_client=http), kind, http
    provider = OpenAICompatibleProvider(
        "compatible", base_url=endpoint.base_url, api_key=endpoint.api_key, http_client=http
    )
    return provider, kind, http


def _bedrock(endpoint: Endpoint, settings: JudgeSettings) -> Made:
    """Return Bedrock's provider; its client gets the timeout at creation."""
    from pydantic_ai.models.bedrock import BedrockConverseModel
    from pydantic_ai.providers.bedrock import BedrockProvider

    url, seconds = endpoint.base_url, settings.timeout
    if endpoint.api_key is None:
        provider = BedrockProvider(base_url=url, aws_read_timeout=seconds)
    else:
        key = endpoint.api_key
        provider = BedrockProvider(api_key=key, base_url=url, aws_read_timeout=seconds)
    service = "bedrock-runtime"
    events = provider.client.meta.events
    events.unregister(f"needs-retry.{service}", unique_id=f"retry-config-{service}")
    _bound(provider.client, _limits(settings))
    return provider, BedrockConverseModel, None


def _bound(client: Any, limits: Limits) -> None:
    """Make a botocore client read no more than the limits allow.

    It accepts no other HTTP client and reads an answer as a whole, in a thread that cannot be
    ended. So the request gets a separate thread, which is abandoned after the timeout, and the
    answer is read in chunks.
    """
    session = client._endpoint.http_session  # there is no public API for it
    send = session.send

    def read(request: Any, answers: Queue[Any]) -> None:
        try:
            request.stream_output = True  # otherwise it is read as a whole
            response, meter = send(request), Meter(limits, "none")
            with closing(response.raw):
                meter.expect(response.headers.get("content-length"))
                pieces = []
                while piece := response.raw.read1(_PIECE):
                    meter.add(piece)
                    pieces.append(piece)
            response._content = b"".join(pieces)
            answers.put(response)
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            answers.put(error)

    def bounded(request: Any) -> Any:
        answers: Queue[Any] = Queue()
        Thread(target=read, args=(request, answers), name="baton-bedrock", daemon=True).start()
        try:
            answer = answers.get(timeout=limits.seconds)
        except Empty:
            raise TimeoutError(f"no answer within {limits.seconds:g} s") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    session.send = bounded


def _key(endpoint: Endpoint) -> str | None:
    """Return the key to use; a custom address does not get the provider's usual one."""
    return endpoint.api_key or ("none" if endpoint.base_url else None)


class Embedded(msgspec.Struct, frozen=True, kw_only=True):
    """Vectors of texts, in their order, and the number of input tokens."""

    vectors: list[list[float]]
    input_tokens: int


class EmbeddingClient:
    """Requests vectors of texts from OpenAI, or with an address from a compatible server."""

    def __init__(self, endpoint: Endpoint, settings: JudgeSettings) -> None:
        """Open nothing yet."""
        self.endpoint, self.settings = endpoint, settings
        self._model: Any = None
        self._entered = AsyncExitStack()

    async def embed(self, texts: list[str]) -> Embedded:
        """Send texts once; raises CallError if the answer does not have a vector for each."""
        if self._model is None:
            self._model = await _connect(
                self.endpoint, self.settings, self._entered, option="embeddings"
            )
        try:
            async with asyncio.timeout(self.settings.timeout):
                result = await self._model.embed(texts, input_type="document")
        except TimeoutError:
            late = f"`{self.endpoint.model}` took longer than {self.settings.timeout:g} s"
            raise CallError("timeout", late, again=True) from None
        except Exception as error:
            raise call_error(error, self.endpoint) from error
        vectors = [list(map(float, each)) for each in result.embeddings]
        widths = {len(each) for each in vectors}
        finite = all(math.isfinite(number) for each in vectors for number in each)
        if len(vectors) != len(texts) or len(widths) != 1 or not finite or widths == {0}:
            message = f"`{self.endpoint.model}` did not answer with a vector for each text"
            raise CallError("outage", message, again=True)
        return Embedded(vectors=vectors, input_tokens=result.usage.input_tokens)

    async def close(self) -> None:
        """Close the connections."""
        self._model = None
        await self._entered.aclose()

"""The settings of a judge in a config."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Protocol, runtime_checkable

import msgspec

from baton.formats.explain_mistakes import Path, checked, path_text
from baton.http.credentials import address, bare_address, refuse_credentials
from baton.http.responses import JUDGE_MIB, Mebibytes
from baton.model import InputError, Judge, Problem, suggestion
from baton.plugins import is_installed
from baton.plugins.origin import install, requirement

Count = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(gt=0)]
Dollars = Annotated[float, msgspec.Meta(ge=0)]
Output = Literal["auto", "native", "tool", "prompted"]

PROVIDERS: Mapping[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "bedrock": (),
    "mistral": ("MISTRAL_API_KEY",),
}
"""Prefixes of model names, and the variables that may hold their keys; AWS has its own."""

_REFERENCE = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")


class Endpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A model and its access: ``PROVIDER:NAME``, an address, a key.

    A key is only sent to the address it is written with: without ``base_url`` that is the
    provider's own, and the key may then come from the provider's usual variable.
    """

    model: str
    base_url: str | None = None
    api_key: str | None = None

    @property
    def provider(self) -> str:
        """The prefix of the name."""
        return self.model.partition(":")[0]

    @property
    def name(self) -> str:
        """The provider's name of the model."""
        return self.model.partition(":")[2]

    def __repr__(self) -> str:
        shown = self.base_url and bare_address(self.base_url)
        return f"{type(self).__name__}(model={self.model!r}, base_url={shown!r})"


class JudgeSettings(Endpoint, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a judge.

    ``temperature: null`` leaves it to the model, as some accept none. ``timeout`` is in seconds,
    for one request; ``retries`` is how often a request that failed in transit is sent again.
    ``concurrency``, requests and tokens per minute apply to one provider at one address.
    ``max_cost`` is in USD. ``output`` is how the answer is requested: ``auto`` uses the model's
    best method. ``max_answer_mib`` is the maximum size of a server's answer, decompressed.
    ``fallback`` are models to use, in order, if the first cannot be reached or refuses requests.
    """

    samples: Count = 1
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = 0.0
    max_tokens: Count = 4096
    timeout: Seconds = 60.0
    retries: Annotated[int, msgspec.Meta(ge=0, le=20)] = 4
    concurrency: Count = 10
    requests_per_minute: Count | None = None
    tokens_per_minute: Count | None = None
    max_cost: Dollars | None = None
    max_calls: Annotated[int, msgspec.Meta(ge=0)] | None = None
    output: Output = "auto"
    max_answer_mib: Mebibytes = JUDGE_MIB
    fallback: list[str | Endpoint] = []

    def endpoints(self) -> list[Endpoint]:
        """Return all models in the order in which they are called."""
        own = Endpoint(model=self.model, base_url=self.base_url, api_key=self.api_key)
        return [own, *(self._fallback(entry) for entry in self.fallback)]

    def _fallback(self, entry: str | Endpoint) -> Endpoint:
        """Return a fallback; one with only a model's name uses the first one's address."""
        if isinstance(entry, Endpoint):
            return entry
        if entry.partition(":")[0] == self.provider:
            return Endpoint(model=entry, base_url=self.base_url, api_key=self.api_key)
        return Endpoint(model=entry)


@runtime_checkable
class ConfiguredJudge(Protocol):
    """A judge made from settings; a user's own judge may have none."""

    settings: JudgeSettings


def settings_of(judge: Judge | None) -> JudgeSettings | None:
    """Return the settings of a judge; ``None`` without a judge, and for one that has none."""
    return judge.settings if isinstance(judge, ConfiguredJudge) else None


def read_settings(plain: Mapping[str, Any], path: Path = ("judge",)) -> JudgeSettings:
    """Read settings from plain data; ``path`` is their place.

    Raises:
        InputError: wrong or misspelt options, models without a known provider.
    """
    settings = checked(dict(plain), JudgeSettings, path)
    problems = [
        problem
        for place, endpoint in enumerate(settings.endpoints())
        for problem in _problems(endpoint, (*path, "fallback", place - 1) if place else path)
    ]
    if problems:
        raise InputError(problems)
    return settings


def replaced(
    settings: JudgeSettings, more: Mapping[str, Any], path: Path = ("judge",)
) -> JudgeSettings:
    """Replace some settings.

    Another provider or address does not get the key, and another provider does not get the address,
    unless they are given as well.

    Raises:
        InputError: like :func:`read_settings`.
    """
    plain = {name: getattr(settings, name) for name in settings.__struct_fields__}
    plain["fallback"] = [msgspec.to_builtins(entry) for entry in settings.fallback]
    provider = str(more.get("model", settings.model)).partition(":")[0]
    if provider != settings.provider:
        plain["base_url"] = plain["api_key"] = None
    if more.get("base_url", settings.base_url) != settings.base_url:
        plain["api_key"] = None
    return read_settings({**plain, **more}, path)


def check_ready(settings: JudgeSettings, environment: Mapping[str, str] = os.environ) -> None:
    """Check that requests can be sent: the library is installed, and every model has its key.

    Raises:
        InputError: what is missing, and what would supply it.
    """
    if not is_installed("pydantic_ai"):
        message = f"judges need pydantic-ai: {install(requirement('judge'))}"
        raise InputError(Problem(path="judge", message=message))
    problems = []
    for endpoint in settings.endpoints():
        names = PROVIDERS[endpoint.provider]
        if endpoint.api_key or endpoint.base_url or not names:
            continue
        if not any(environment.get(name) for name in names):
            wanted = " or ".join(names)
            message = f"`{endpoint.model}` has no key: set {wanted}, or give `api_key: ${{NAME}}`"
            problems.append(Problem(path="judge.api_key", message=message))
    if problems:
        raise InputError(problems)


def refuse_written_keys(raw: Any, path: Path = ("judge",)) -> None:
    """Refuse keys in plain text: only ``${NAME}`` is allowed; ``raw`` is the file's content.

    Raises:
        InputError: lists every key in plain text.
    """
    problems = [
        Problem(path=path_text(place), message="a key does not belong in a file: write `${NAME}`")
        for place, value in _keys(raw, path)
        if value is not None and not _REFERENCE.fullmatch(str(value))
    ]
    if problems:
        raise InputError(problems)


def _keys(raw: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(raw, Mapping):
        if "api_key" in raw:
            yield (*path, "api_key"), raw["api_key"]
        for place, entry in enumerate(raw.get("fallback") or ()):
            yield from _keys(entry, (*path, "fallback", place))


def with_provider(model: str) -> str:
    """Return the nearest valid name of a model: `gpt-4` and `openai/gpt-4` are `openai:gpt-4`."""
    before, mark, name = re.sub("[/:]", ":", model, count=1).partition(":")
    if mark and name and before.lower() in PROVIDERS:
        return f"{before.lower()}:{name}"
    family = re.match(r"[a-z]+\d?", model.lower())
    provider = _FAMILIES.get(family[0].rstrip("0123456789") if family else "")
    return f"{provider}:{model}" if provider and not mark else "openai:gpt-4o-mini"


_FAMILIES = {
    "chatgpt": "openai",
    "gpt": "openai",
    "o": "openai",
    "claude": "anthropic",
    "gemini": "google",
    "mistral": "mistral",
    "ministral": "mistral",
}
"""The providers of models that are often named without one: `gpt-4`, `o3-mini`, `claude-haiku-4-5`.
"""


def _problems(endpoint: Endpoint, path: Path) -> Iterator[Problem]:
    at = path_text((*path, "model"))
    provider, colon, name = endpoint.model.partition(":")
    if not colon or not name:
        wanted = f"write PROVIDER:NAME, such as `{with_provider(endpoint.model)}`"
        yield Problem(path=at, message=f"`{endpoint.model}` does not name its provider: {wanted}")
    elif provider not in PROVIDERS:
        hint = suggestion(provider, PROVIDERS)
        yield Problem(path=at, message=f"there is no provider `{provider}`: {hint}")
    if endpoint.base_url is not None:
        at = path_text((*path, "base_url"))
        try:
            parts = address(endpoint.base_url, at, "http://HOST:PORT/v1")
            refuse_credentials(parts, at, "`api_key: ${NAME}`")
        except InputError as error:
            yield from error.problems

"""The shop as a provider of cases, and its model as a judge: in this process, or over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self

from shop import (  # type: ignore[import-not-found, unused-ignore]
    TEXTS,
    answer,
    changed,
    conversation,
    propose,
)

from baton.model import Case, JudgeRequest, JudgeResponse, Trace, Usage
from baton.providers.base_provider import ConfiguredProvider, ProviderOptions, Surroundings

Say = Callable[[str, str], Awaitable[str]]
"""Has a model answer: the instructions, and the message."""


async def here(system: str, message: str) -> str:
    """Answer in this process, at once."""
    return answer(system, message, 0)


class Shop(ConfiguredProvider[ProviderOptions]):
    """Plays the desk and whom it hands the message to, each with its own prompt."""

    summary = ""
    options_type = ProviderOptions
    say: Say = staticmethod(here)

    async def components(self) -> dict[str, str]:
        """Return the three prompts."""
        return dict(TEXTS)

    async def __call__(self, case: Case) -> Trace:
        """Play a case."""
        texts = changed(self.around.texts)
        message = case.first_input
        to = await self.say(texts["agent:desk"], message)
        said = await self.say(texts[f"agent:{to}"], message)
        return conversation(case.id, message, to, said)


def maker(say: Say = here) -> Callable[[Mapping[str, str]], Shop]:
    """Return what builds the shop with some texts changed; ``say`` has its model answer."""

    def make(texts: Mapping[str, str]) -> Shop:
        made = Shop(ProviderOptions(type="shop"), Surroundings(texts=texts))
        made.say = say
        return made

    return make


class Model:
    """Implements :class:`baton.model.Judge` in this process: it proposes, and judges nothing."""

    model, samples = "scripted", 1

    def __init__(self, seed: int = 0) -> None:
        """Take the seed of what it draws."""
        self._seed = seed

    def with_options(self, _: Mapping[str, Any]) -> Self:
        """Return itself: it has no options."""
        return self

    async def ask(self, request: JudgeRequest, *, sample: int = 0) -> JudgeResponse:
        """Answer a question of a strategy."""
        value = propose(request.instructions, request.content, (self._seed, sample))
        return JudgeResponse(value=value, model=self.model)

    def price(self, _: Usage) -> float | None:
        """Return that it has no price."""
        return None

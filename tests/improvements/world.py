"""A shop whose agents do what their prompts say by rules, and a model that proposes prompts."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Mapping
from typing import Any, Self

from baton.improvements.journal import Journal
from baton.improvements.plays import Options
from baton.improvements.result import Improvement, Study
from baton.improvements.search import improve_texts
from baton.model import (
    Case,
    JudgeError,
    JudgeRequest,
    JudgeResponse,
    ProviderError,
    RunOptions,
    Trace,
    Usage,
)
from baton.providers.base_provider import ConfiguredProvider, ProviderOptions, Surroundings
from baton.replays.replay import Moments
from baton.runner.plan import make_plan
from baton.testing.build import case, delegate, expect, run, trace, turn

DESK = "You are the desk of {shop}. Hand messages to refunds or to billing."
REFUNDS = "You pay money back."
TEXTS = {"agent:desk": DESK, "agent:refunds": REFUNDS, "agent:billing": "You explain invoices."}
HELPS = {"agent:desk": "Broken goods go to refunds.", "agent:refunds": "Name the order."}
HARMS = "Send all of it to billing."
SENTENCES = (*HELPS.values(), HARMS, *(f"Be kind on day {n} of a week." for n in range(9)))
THINGS = ("kettle", "lamp", "chair", "radio", "clock", "scarf", "mirror", "basket")
WISHES = (
    ("refunds", "please refund the {} of order {}, it does not fit"),
    ("refunds", "my {} of order {} arrived broken and I am not glad"),
    ("billing", "what does the {} on invoice {} stand for"),
)


def messages(count: int = 48) -> list[Case]:
    """Return cases: a third of them needs what the desk's prompt lacks, half what refunds' does."""
    made = []
    for at in range(count):
        to, wish = WISHES[at % 3]
        says = wish.format(THINGS[at % 8], 4000 + at)
        stated: dict[str, Any] = {"agents": ["desk", to], "dispatches": [to]}
        if to == "refunds":
            stated["response_contains"] = [str(4000 + at)]
        made.append(case(expect(says, **stated), id=f"c{at:03}"))
    return made


class Shop(ConfiguredProvider[ProviderOptions]):
    """Plays the shop; ``on_play`` is called with each case before it is played."""

    summary = ""
    options_type = ProviderOptions
    on_play: Callable[[Case, Mapping[str, str]], None] = staticmethod(lambda *_: None)
    wait = 0.0

    async def components(self) -> dict[str, str]:
        return dict(TEXTS)

    async def __call__(self, case: Case) -> Trace:
        texts = {**TEXTS, **self.around.texts}
        self.on_play(case, self.around.texts)
        if self.wait:
            await asyncio.sleep(self.wait)
        said = case.first_input
        order = re.findall(r"\d{4}", said)[0]
        desk = texts["agent:desk"]
        broken = "broken" in said and HELPS["agent:desk"] not in desk
        to = "billing" if "invoice" in said or broken or HARMS in desk else "refunds"
        named = HELPS["agent:refunds"] in texts["agent:refunds"] or int(order) % 4 == 0
        answer = f"paid back{f', order {order}' if named else ''}" if to == "refunds" else "see it"
        back = delegate(to, said, result=answer)
        return trace(
            turn(
                said,
                run("desk", back, answer, output=answer),
                run(to, answer, input=said, output=answer),
                output=answer,
            ),
            id=case.id,
        )


class Model:
    """Proposes the text with one more sentence; ``on_ask`` may raise instead."""

    model, samples = "scripted", 1

    def __init__(self, on_ask: Callable[[JudgeRequest], str | None] = lambda _: None) -> None:
        self.asked: list[JudgeRequest] = []
        self._on_ask = on_ask

    def with_options(self, _: Mapping[str, Any]) -> Self:
        return self

    async def ask(self, request: JudgeRequest, *, sample: int = 0) -> JudgeResponse:
        self.asked.append(request)
        said = self._on_ask(request)
        chance = random.Random(f"{sample}")
        blocks = dict(re.findall(r"⟦[0-9a-f]{16}: ([^\n⟦⟧]*)⟧\n([^⟦⟧]*)\n⟦/", request.content))
        text = blocks.get("The new text") or blocks.get("The text as it is") or DESK
        new = said if said is not None else f"{text} {chance.choice(SENTENCES)}"
        value: dict[str, Any] = {"thinking": "", "text": new}
        if "list" in request.schema["properties"]:
            value = {"thinking": "", "list": chance.sample(SENTENCES, 4)}
        return JudgeResponse(value=value, model=self.model)

    def price(self, _: Usage) -> float | None:
        return None


def moments(
    cases: list[Case] | None = None,
    on_play: Callable[[Case, Mapping[str, str]], None] = lambda *_: None,
    *,
    repeat: int = 1,
    wait: float = 0.0,
    concurrency: int = 4,
) -> Moments:
    """Return cases of the shop, ready to be played."""

    def make(texts: Mapping[str, str]) -> Shop:
        shop = Shop(ProviderOptions(type="shop"), Surroundings(texts=texts))
        shop.on_play, shop.wait = staticmethod(on_play).__func__, wait
        return shop

    plan = make_plan(["dispatch_routing", "response"])
    how = RunOptions(repeat=repeat, concurrency=concurrency)
    return Moments(messages() if cases is None else cases, make, plan, how)


def improve(
    made: Moments | None = None,
    model: Model | None = None,
    journal: Journal | None = None,
    **options: Any,
) -> Improvement:
    """Improve the shop."""
    given = Options(**{"candidates": 12, "seed": 3, **options})
    work = improve_texts(made or moments(), model or Model(), journal or Journal.in_memory(), given)
    return asyncio.run(work)


def study_of(improvement: Improvement, component: str) -> Study:
    """Return the study of a component."""
    return next(each for each in improvement.studies if each.component == component)


def down(_: JudgeRequest) -> str:
    """Be a model that cannot be reached."""
    raise JudgeError("outage", "connection refused")


def broken(_: Case, __: Mapping[str, str]) -> None:
    """Be agents that cannot be reached."""
    raise ProviderError("the agents cannot be reached")

"""A shop whose agents follow their prompts by rules that nobody is told, and who proposes prompts.

A desk hands messages to one of two agents, `refunds` and `billing`. Each has a weakness. 200
sentences may be added to a prompt: 12 of them help (four for each weakness), 20 harm, and 168 do
nothing. The proposer draws from them. It does not know which is which: where a strategy shows it
what went wrong, it prefers sentences that share words with that, as a model would.

It is a simulation: it shows that the search, the test and the reports work, not how good prompts
of real models get.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from baton.model import Case, Trace
from baton.testing.build import case, delegate, expect, run, trace, turn

TEXTS = {
    "agent:desk": "You are the desk of a shop. Hand each message to refunds or to billing.",
    "agent:refunds": "You pay money back. Answer the customer in a friendly way.",
    "agent:billing": "You explain invoices. Answer the customer in a friendly way.",
}
HELP = {
    "agent:desk": (
        "Goods that arrive damaged are a matter for refunds.",
        "When something came damaged or broken, ask refunds.",
        "Damaged parcels go to refunds, never to billing.",
        "Treat a broken delivery as a wish for a refund.",
    ),
    "agent:refunds": (
        "Repeat the number of the order in your answer.",
        "Always name the order number that you were given.",
        "Quote the order number, so that the customer can check it.",
        "An answer without the number of the order is not complete.",
    ),
    "agent:billing": (
        "Say on which day the invoice is due.",
        "Name the due date of each invoice.",
        "Tell the customer by which date an invoice has to be paid.",
        "Never explain an invoice without its due date.",
    ),
}
HARM = (
    "Answer in three words.",
    "Say as little as you can about the order.",
    "Ask a question back before you do anything with a damaged parcel.",
    "Leave numbers and dates out, as they confuse people.",
    "Send everything about an invoice to refunds.",
    "Reply in Latin.",
    "Only answer messages that say please.",
    "Never name an order in writing.",
    "Do not commit to a date in an invoice.",
    "Refuse whatever is not about damaged goods.",
    "Answer with a rhyme and nothing else.",
    "Tell customers to call about their order instead.",
    "Hand broken goods to nobody.",
    "Keep the number of the order secret.",
    "Say that the due date is a secret.",
    "If in doubt about a refund, do nothing.",
    "Write no digits.",
    "Answer questions about the invoice with a smile only.",
    "Let billing decide about every order.",
    "Forget what the customer said about damage.",
)
_SUBJECTS = (
    "the order", "an invoice", "a parcel", "the customer", "a damaged box", "the number",
    "the due date", "a refund", "the shop", "a delivery", "the answer", "a question", "the price",
    "a friend",
)  # fmt: skip
_NEUTRAL = (
    "Think of {} for a moment before you write.", "Use plain words when you speak of {}.",
    "Be patient when somebody asks about {}.", "Remember that {} matters to people.",
    "Do not argue about {}.", "Mention {} only where it helps.", "Stay calm about {}.",
    "Keep a polite tone when it comes to {}.", "Write about {} in whole sentences.",
    "Assume good faith about {}.", "Have respect for whoever cares about {}.",
    "Take the side of nobody when you discuss {}.",
)  # fmt: skip
NEUTRAL = tuple(text.format(subject) for text in _NEUTRAL for subject in _SUBJECTS)
SENTENCES = tuple(
    sorted([*(each for own in HELP.values() for each in own), *HARM, *NEUTRAL], key=str.casefold)
)
THINGS = ("kettle", "lamp", "chair", "radio", "clock", "scarf", "mirror", "basket", "drill", "tent")
WISHES = {
    "refund": (
        "please refund order {n}, the {thing} does not fit",
        "I want my money back for the {thing} of order {n}",
        "the {thing} in order {n} is not what I chose, give me a refund",
        "take order {n} back, we have a {thing} already",
    ),
    "damaged": (
        "the {thing} of order {n} arrived damaged",
        "order {n} came broken, the {thing} is in pieces",
        "there is a crack in my {thing}, it is damaged, order {n}",
        "somebody sat on parcel {n}, the {thing} is broken",
    ),
    "invoice": (
        "when do I have to pay invoice {n} for the {thing}",
        "your invoice {n} about a {thing} says nothing on payment",
        "explain invoice {n}, the {thing} was cheaper",
        "my accountant asks about invoice {n} and the {thing}",
    ),
    # Nothing that a prompt says makes an agent good at customs: it has no tool for that.
    "customs": (
        "invoice {n} lacks the customs form for the {thing}",
        "what duty is due on the {thing} of invoice {n}",
        "customs holds my {thing}, invoice {n} is not enough for them",
        "the border asks for papers to invoice {n}, it is a {thing}",
    ),
}
RIGHT = {"refund": "refunds", "damaged": "refunds", "invoice": "billing", "customs": "billing"}
KINDS = ("refund", "damaged", "invoice")


def messages(count: int, seed: int = 1, kinds: Sequence[str] = KINDS) -> list[Case]:
    """Return so many cases of the kinds, each with whom the work is for and what is answered."""
    chance = random.Random(f"messages {seed}")
    made = []
    for at in range(count):
        kind = kinds[at % len(kinds)]
        n = 1000 + at * 7 + chance.randrange(7)
        wish = WISHES[kind][at // len(kinds) % 4]
        says = wish.format(n=n, thing=THINGS[at // (4 * len(kinds)) % len(THINGS)])
        told = {"invoice": "due on", "customs": "form C88"}.get(kind, str(n))
        turn_ = expect(
            says, agents=["desk", RIGHT[kind]], dispatches=[RIGHT[kind]], response_contains=[told]
        )
        made.append(case(turn_, id=f"{kind}-{at}"))
    return made


def _has(text: str, sentences: Sequence[str]) -> bool:
    return any(each in text for each in sentences)


def _spoilt(text: str, message: str) -> bool:
    """A harmful sentence spoils two messages of five, each its own ones."""
    return any(each in text and random.Random(f"{each} {message}").random() < 0.4 for each in HARM)


def speak(system: str, message: str) -> str:
    """Play one agent: what it says hangs on its prompt, by the hidden rules."""
    number = next(iter(re.findall(r"\d{4,}", message)), "")
    if system.startswith("You are the desk"):
        damaged = "damaged" in message or "broken" in message
        right = "billing" if "invoice" in message and not damaged else "refunds"
        if damaged and not _has(system, HELP["agent:desk"]):
            right = "billing"
        if _spoilt(system, message):
            right = "billing" if right == "refunds" else "refunds"
        return right
    if _spoilt(system, message):
        return "Well."
    if system.startswith("You pay money back"):
        # Whoever quotes the number in the message anyway is the smaller part.
        names_it = _has(system, HELP["agent:refunds"]) or random.Random(number).random() < 0.3
        return f"We pay you back{f' for order {number}' if names_it else ''}."
    if "invoice" not in message:
        return "That is not for me."
    due = _has(system, HELP["agent:billing"]) or random.Random(number).random() < 0.3
    return f"That is invoice {number}{', due on 1 May' if due else ''}."


def conversation(id_: str, message: str, to: str, answer: str) -> Trace:
    """Return the record of one message."""
    return trace(
        turn(
            message,
            run("desk", delegate(to, message, result=answer), answer, output=answer),
            run(to, answer, input=message, output=answer),
            output=answer,
        ),
        id=id_,
    )


_WORD = re.compile(r"[a-z]{3,}")
_EVERYWHERE = frozenset({"the", "and", "for", "you", "your", "not", "are", "what", "that", "with"})


def _stems(text: str) -> set[str]:
    return {word[:5] for word in _WORD.findall(text.lower()) if word not in _EVERYWHERE}


def _draw(chance: random.Random, shown: str, taken: str, count: int = 1) -> list[str]:
    """Draw sentences; those that share words with what is shown are preferred."""
    known = _stems(shown)
    free = [each for each in SENTENCES if each not in taken]
    weights = [1.0 + 3.0 * len(_stems(each) & known) ** 2 if known else 1.0 for each in free]
    drawn: list[str] = []
    while len(drawn) < count:
        (one,) = chance.choices(free, weights)
        if one not in drawn:
            drawn.append(one)
    return drawn


_BLOCK = re.compile(r"⟦[0-9a-f]{16}: ([^\n⟦⟧]*)⟧\n([^⟦⟧]*)\n⟦/[0-9a-f]{16}⟧")


def propose(system: str, user: str, seed: object) -> dict[str, Any]:
    """Answer a question of a strategy, as a model that writes prompts."""
    chance = random.Random(f"{seed} {system} {user}")
    blocks = _BLOCK.findall(user)
    old = next((text for title, text in blocks if title == "The text as it is"), "")
    new = next((text for title, text in blocks if title == "The new text"), "")
    wrong = [text for title, text in blocks if title.startswith("Moment") and "failed" in text]
    notes = next((text for title, text in blocks if title == "Notes"), "")
    failures = "\n".join(line for text in wrong for line in text.splitlines())
    if "four reasons" in system or "four weaknesses" in system:
        lines = [line for text in wrong for line in text.splitlines()]
        return {"thinking": "", "list": chance.sample(lines, min(4, len(lines))) or ["none"]}
    if "six short rules" in system:
        return {"thinking": "", "list": _draw(chance, failures, old, 6)}
    text = new or old
    tried = [(title, text) for title, text in blocks if title.startswith("Text ")]
    if tried:  # the best ones last
        text = tried[-1][1]
        bad = {line for _, other in tried[: len(tried) // 2] for line in other.splitlines()[1:]}
        drawn = _draw(chance, failures, "\n".join([text, *bad]))
        return {"thinking": "", "text": _with(text, drawn)}
    lines = text.splitlines()
    if len(lines) > 1 and chance.random() < 0.3:
        lines.pop(chance.randrange(1, len(lines)))
    text = "\n".join(lines)
    return {"thinking": "", "text": _with(text, _draw(chance, notes or failures, text))}


def _with(text: str, sentences: Sequence[str]) -> str:
    return "\n".join([text, *sentences])


def answer(system: str, user: str, seed: object) -> str:
    """Play whatever model is asked: an agent, or the one that proposes."""
    if "placeholder" in system:
        return json.dumps(propose(system, user, seed))
    return speak(system, user)


def changed(texts: Mapping[str, str]) -> dict[str, str]:
    """Return the texts of the shop with some of them changed."""
    return {**TEXTS, **texts}

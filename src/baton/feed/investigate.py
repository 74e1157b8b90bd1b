"""Investigation: a model examines an issue in a bounded number of steps, and says what is wrong.

It asks for pieces of the record (:mod:`baton.feed.lookup`) and sees them fenced as data. What it
concludes is checked against the record: a statement stays if all its quotes are in the record, a
score if its statement stays, a fix if its reason stays and its edits fit the text. The rest is
removed and counted. If the model reaches no conclusion, there is none: nothing is invented.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from baton.formats.document import Document, read_bytes
from baton.judges.fenced_prompts import fenced, fenced_neutral
from baton.model import (
    Exchange,
    InputError,
    Judge,
    JudgeError,
    JudgeRequest,
    JudgeResponse,
)

from .fixes import Edit, Pattern, edited, make_fix, pattern_for
from .issue_progress import (
    DIMENSIONS,
    FIX_KINDS,
    Ending,
    Fix,
    Investigation,
    Looked,
    Rating,
    Statement,
)
from .lookup import LONG, TOOLS, InvestigationData, Lookup
from .taxonomy import SUBTYPES, subtype_named

STEPS = 30
"""The most steps of an investigation, including the conclusion."""
MEMBERS = 6
"""The most members to examine: repetitions of the same fault add nothing."""


class _Words(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: str
    task: str
    pattern: str
    condense: str


@cache
def _words() -> _Words:
    file = Path(__file__).with_name("investigation.yaml")
    document = Document(str(file), read_bytes(file), "yaml")
    return document.convert(document.value(), _Words)


async def investigate(
    data: InvestigationData, judge: Judge, *, condense: Judge | None = None, steps: int = STEPS
) -> Investigation:
    """Have a model investigate an issue.

    Args:
        data: what it may read.
        judge: the model, with its cache and its budget.
        condense: a cheaper model that shortens long steps first; without it they are read in parts.
        steps: the number of steps.
    """
    lookup = Lookup(data)
    pattern = pattern_for(data.issue.subtype)
    instructions = _instructions(steps, pattern)
    first = [
        ("The issue", data.issue.title),
        ("Its members, and passing runs", lookup.look("list", "")),
        ("Texts that may be changed", lookup.look("catalogue", "")),
    ]
    content = fenced_neutral(first)
    used = _Used()
    looked: list[Looked] = []
    exchanges: list[Exchange] = []
    done: set[tuple[str, str, int]] = set()

    def ended(ending: Ending, why: str | None = None, **details: Any) -> Investigation:
        return Investigation(
            ending=ending,
            why=why,
            looked=looked,
            model=used.model or judge.model,
            condensed_by=condense.model if condense is not None and used.condensed else None,
            requests=used.requests,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cost_usd=used.cost_usd,
            cached=used.cached,
            at=datetime.now(UTC).timestamp(),
            **details,
        )

    for number in range(1, steps + 1):
        request = JudgeRequest(
            rubric="investigate",
            version=_words().version,
            instructions=instructions,
            content=content,
            schema=_SCHEMA,
            exchanges=list(exchanges),
        )
        try:
            response = await judge.ask(request)
        except JudgeError as error:
            used.count(error)
            return ended("over budget" if error.kind == "budget" else "no answer", str(error))
        used.add(response)
        answer = response.value
        concluded = answer.get("conclusion")
        is_last = number == steps
        if isinstance(concluded, Mapping) and (answer["action"] == "conclude" or is_last):
            return ended("out of steps" if is_last else "concluded", **_read(concluded, lookup))
        if is_last:
            break
        query = (answer["action"], answer["about"], answer["start"])
        if query in done:
            brought = "this is a repetition: the answer is above"
        elif query[0] == "conclude":
            brought = "`conclude` needs a `conclusion`"
        else:
            done.add(query)
            try:
                brought = lookup.look(*query)
                brought = await _condensed(brought, query, lookup, condense, used)
            except InputError as error:
                brought = str(error)
            except JudgeError as error:
                used.count(error)
                return ended("over budget" if error.kind == "budget" else "no answer", str(error))
        looked.append(Looked(tool=query[0], about=query[1][:200], characters=len(brought)))
        left = steps - number
        notice = f"{left} steps are left" if left > 1 else "this is the last step: conclude now"
        blocks = [(f"{query[0]} {query[1][:80]}", brought), ("Steps", notice)]
        exchanges.append(Exchange(answer=answer, content=fenced_neutral(blocks)))
    return ended("out of steps", f"no conclusion after {steps} steps")


class _Used:
    """The total usage of all answers."""

    def __init__(self) -> None:
        self.model: str | None = None
        self.requests = self.input_tokens = self.output_tokens = self.cached = 0
        self.cost_usd: float | None = 0.0
        self.condensed = False

    def add(self, response: JudgeResponse, *, condensed: bool = False) -> None:
        if condensed:
            self.condensed = True
        else:
            self.model = response.model
        self.cached += response.cached
        self.count(response)

    def count(self, question: JudgeResponse | JudgeError) -> None:
        """Add the usage of a question, also of one without a usable answer."""
        self.requests += question.requests
        self.input_tokens += question.input_tokens
        self.output_tokens += question.output_tokens
        cost = question.cost_usd
        self.cost_usd = None if self.cost_usd is None or cost is None else self.cost_usd + cost


async def _condensed(
    brought: str,
    query: tuple[str, str, int],
    lookup: Lookup,
    condense: Judge | None,
    used: _Used,
) -> str:
    """Return the answer to a question; a long step that is read from its start is condensed."""
    tool, about, start = query
    if tool != "read_step":
        return brought
    whole = lookup.line(about).text
    if len(whole) - start <= LONG:
        return brought
    pieces = f"`start` {start + LONG} continues; it has {len(whole)} characters"
    if condense is None or start > 0:
        return f"{brought}\n⟨{pieces}⟩"
    schema = {
        "type": "object",
        "properties": {"condensed": {"type": "string"}},
        "required": ["condensed"],
        "additionalProperties": False,
    }
    request = JudgeRequest(
        rubric="condense",
        version=_words().version,
        instructions=_words().condense.strip(),
        content=fenced([("The step", whole)]),
        schema=schema,
    )
    response = await condense.ask(request)
    used.add(response, condensed=True)
    short = str(response.value["condensed"])[:LONG]
    begin = whole[: LONG // 6]
    return (
        f"{about}, {lookup.line(about).who}, in its own words to begin with:\n{begin}\n"
        f"⟨{pieces}; `start` 1 reads it word by word⟩\nCondensed, not to be quoted:\n{short}"
    )


def _instructions(steps: int, pattern: Pattern | None) -> str:
    words = _words()
    tools = "\n".join(f"- {name}: {what}" for name, what in TOOLS.items())
    text = (
        words.task.replace("{tools}", tools)
        .replace("{steps}", str(steps))
        .replace("{subtypes}", ", ".join(each.name for each in SUBTYPES))
        .replace("{dimensions}", "; ".join(f"{n} ({m})" for n, m in DIMENSIONS.items()))
        .replace("{kinds}", "; ".join(f"{n} ({m})" for n, m in FIX_KINDS.items()))
        .strip()
    )
    if pattern is None:
        return text
    # Names of agents come from the record: the model gets their roles instead.
    filled = pattern.filled("the sender", "the receiver")
    hint = words.pattern.replace("{name}", pattern.name).replace("{text}", filled).strip()
    return f"{text}\n\n{hint}"


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _schema() -> dict[str, Any]:
    """Return the schema of an answer.

    It is the same in all steps, as it is sent first, and contains nothing from the record: names of
    agents are untrusted text.
    """
    text = {"type": "string"}
    quote = _object(step=text, text=text)
    statement = _object(says=text, quotes={"type": "array", "items": quote})
    score = _object(value={"type": "integer", "minimum": 1, "maximum": 5}, because=statement)
    edit = _object(find=text, replace=text)
    fix = _object(
        kind={"type": "string", "enum": list(FIX_KINDS)},
        text=text,
        pattern=text,
        why=text,
        because=statement,
        edits={"type": "array", "items": edit},
    )
    conclusion = _object(
        subtype={"type": "string", "enum": [each.name for each in SUBTYPES]},
        entry=statement,
        scores=_object(**dict.fromkeys(DIMENSIONS, score)),
        summary={"type": "array", "items": statement},
        fix={"anyOf": [{"type": "null"}, fix]},
    )
    return _object(
        thinking=text,
        action={"type": "string", "enum": [*TOOLS, "conclude"]},
        about=text,
        start={"type": "integer", "minimum": 0},
        conclusion={"anyOf": [{"type": "null"}, conclusion]},
    )


_SCHEMA = _schema()


def _read(concluded: Mapping[str, Any], lookup: Lookup) -> dict[str, Any]:
    """Return the parts of a conclusion that the record confirms, and the number of others."""
    removed = 0

    def kept(value: Mapping[str, Any]) -> Statement | None:
        nonlocal removed
        quotes = [lookup.quote(each["step"], each["text"]) for each in value["quotes"]]
        valid_quotes = [each for each in quotes if each is not None]
        if not valid_quotes or len(valid_quotes) < len(quotes):
            removed += 1
            return None
        return Statement(says=value["says"], quotes=valid_quotes)

    entry = kept(concluded["entry"])
    subtype = subtype_named(concluded["subtype"]) if entry is not None else None
    scores = {
        name: Rating(value=number["value"], because=because)
        for name, number in concluded["scores"].items()
        if (because := kept(number["because"])) is not None
    }
    summary = [statement for each in concluded["summary"] if (statement := kept(each)) is not None]
    fix: Fix | None = None
    proposed = concluded["fix"]
    why: str | None = None
    if proposed is not None:
        because = kept(proposed["because"])
        if because is not None:
            try:
                fix = _fix(proposed, because, lookup)
            except InputError as error:
                removed += 1
                why = f"its fix does not fit: {error}"
    return {
        "subtype": subtype.name if subtype is not None else None,
        "category": subtype.category if subtype is not None else None,
        "entry": entry,
        "scores": scores,
        "summary": summary,
        "fix": fix,
        "removed": removed,
        "why": why,
    }


def _fix(proposed: Mapping[str, Any], because: Statement, lookup: Lookup) -> Fix:
    texts = lookup.data.texts
    name = proposed["text"] or None
    after = ""
    if name is not None and name in texts:
        edits = [Edit(find=each["find"], replace=each["replace"]) for each in proposed["edits"]]
        after = edited(texts[name], edits)
    known = pattern_for(lookup.data.issue.subtype)
    began = known.name if known is not None and proposed["pattern"] == known.name else None
    return make_fix(
        proposed["kind"],
        name,
        after,
        texts,
        why=proposed["why"],
        because=because,
        tools=lookup.tools,
        pattern=began,
    )

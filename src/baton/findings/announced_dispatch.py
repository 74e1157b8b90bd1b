"""Does an agent announce a dispatch without making it?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from baton.model import AgentRun, Evidence, Said, ToolCall, Trace, Turn, known
from baton.model.views import TooMuchTextError, charge_work, index_of

from .claims import LONGEST, statements
from .dispatch_target_known import agent_of
from .facts import language
from .finding import NO_NAMES, TOO_LONG, Answer, Clear, Finding, NotRecorded, name_key
from .lazy_patterns import regex

# "I'll transfer you to", "Let me ask", "Handing this over to", "I've passed it on to". The receiver
# of the work comes next.
_HAND = (
    r"transfer|hand|pass|rout|forward|connect|delegat|escalat|refer|assign|send|redirect|turn"
    r"|mov|giv"
    r"|switch|bring|loop|involv|consult|ask|call|get|hav|let|invok|engag|check|contact|pull"
)
# All forms of these verbs: `transferring`, `transferred`, `delegated`.
_FORMS = rf"(?:{_HAND})(?:r|e|l)?(?:e|ed|ing|ting|ling)?"
# The speaker hands on, now or next: "I'll ask the billing agent", "I'm transferring you". "You
# could ask the billing agent" and "I would ask" announce nothing.
_ANNOUNCES = regex(
    rf"""(?:
        \b(?:I['’]ll|I\ will|we['’]ll|we\ will|let\ me|let['’]s|I['’]m\ going\ to|I\ am\ going\ to)
            (?:\ (?:now|then|next|also|just|quickly|go\ ahead\ and|right\ away))*
            \ (?P<will>{_FORMS})
        | \b(?:I['’]m|I\ am|we['’]re|we\ are)(?:\ (?:now|just|also|then))*
            \ (?P<now>(?:{_HAND})\w*ing)
        | \b(?:I['’]ve|I\ have|we['’]ve|we\ have)(?:\ (?:now|just|also|already))*
            \ (?P<past>(?:{_HAND})\w*d|sent|passed|given)
        | (?:^|[,:;.]\s|\b(?:now|next)\s)(?P<bare>(?:{_HAND})\w*ing)
    )\b(?P<rest>[^.!?\n]*)""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
# Verbs that dispatch work only with a word like "to": "send it to", but "ask the editor".
_TO = regex(r"\b(?:to|with|over to|on to|onto|in)\b", re.IGNORECASE)
_DIRECT = regex(
    r"^(?:ask|call|consult|involv|invok|engag|get|hav|let|contact|loop|bring|pull|check)",
    re.IGNORECASE,
)
# Words that make an announcement non-binding: a denial, an offer, a question, or a condition.
_OPEN = regex(
    r"""\b(?:not|never|won['’]t|can['’]t|cannot|unable|n['’]t|if|once|when|unless|after
        |before|until|as\ soon\ as
        |would|could|should|may|might|can|you\ can|shall|want|like|normally|usually|yesterday|last
        |earlier|previous\w*|ago|instead\ of|rather\ than|so\ that\ I\ can|know
        |tomorrow|tonight|later
        |next\ (?:week|month|time|year|mon|tues|wednes|thurs|fri|satur|sun)\w*
        |(?:on|by|until)\ (?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# The answer asks the user first, so nothing has to follow in this turn.
_ASKS_FIRST = regex(
    r"\b(?:please (?:provide|tell|give|send|confirm|share|let)|let me know|do you want"
    r"|would you like"
    r"|shall i|should i|may i|is that (?:ok|okay|fine)|confirm\b[^.]*\bfirst)\b|\?",
    re.IGNORECASE,
)
# People, by what follows the name: "the billing team will call you".
_PEOPLE = regex(
    r"^\W*(?:team|department|staff|colleagues?|people|person|representative|office|manager"
    r"|human)\b",
    re.IGNORECASE,
)
# The greatest distance between a verb and the name of the receiver.
_NEAR = 120
# Names that are also plain words need "agent" after them, or the notation of a name: "the Legal
# agent", `tester`. "tech support" and "sql_expert" are clear enough.
_AGENT = r"(?:\s+(?:sub-?)?(?:agent|assistant|specialist|expert|bot))"
# If such a name is a plain word, the rest of the sentence has to show that work goes there: "I'll
# hand this to billing", not "I'll hand the keys to security", "transfer 50 EUR to savings".
_GIVES = regex(
    r"^(?:transfer|hand|pass|rout|forward|connect|delegat|escalat|refer|assign|redirect|turn|switch)",
    re.IGNORECASE,
)
# What is handed on is only this conversation, so nobody else is meant: "I'll transfer your
# question". "I'll transfer 50 EUR" hands on money.
_WORK = regex(
    r"^\W*(?:(?:now|next|also|then|just)\W+)?"
    r"(?:(?:it|this|that|these|those|them|you)|(?:your|the|this|that) (?:\w+ )?(?:question|request"
    r"|case|issue|ticket|task|job|work|conversation|chat|query|problem|matter|rest|call))?"
    r"(?:\W+(?:over|on|off|along|through|back|now|right away|directly|control))*\W*$",
    re.IGNORECASE,
)
# "Ask the planner to draw it up"; not "get the weather", "check the calendar".
_SETS_TO_WORK = regex(r"^(?:ask|get)", re.IGNORECASE)
_TO_DO = regex(r"\W{0,4}to (?!(?:the|an?|you|me|us|them|him|her|it|my|your|our)\b)[a-z]+", re.I)
# "Refer to the manual" and "switch to French" dispatch nothing.
_NEEDS_WORK = regex(r"^(?:refer|redirect|switch|turn|connect|pass)", re.IGNORECASE)
# "I'll ask you" names no agent, even if one is called `You`.
_PRONOUN = regex(r"(?:you|me|us|them|him|her|it|this|that)$", re.IGNORECASE)
_ARTICLE = regex(r"\b(?:the|our|an?)\W+$", re.IGNORECASE)
# The name is complete: "I'll ask billing now", "billing, who knows". "I'll ask billing questions"
# is not about an agent.
_ENDS = regex(
    r"\W{0,4}(?:now\b|$|,|for\b|and\b|right away\b|immediately\b|at once\b|to [a-z]+\b|who\b)",
    re.IGNORECASE,
)
# Tools that may hand on to an agent that is not in their name: `transfer_to_agent`, `send_message`,
# but not `send_invoice`.
_HANDS_ON = regex(
    r"(?:^|[_\W])(?:transfer|hand_?off|hand_?over|delegate|route|dispatch|agent|task|spawn|assign"
    r"|send_?message|escalate)",
    re.IGNORECASE,
)


def announced_dispatch(
    trace: Trace, turn: Turn, run: AgentRun, renames: Mapping[str, str] = NO_NAMES
) -> Answer | None:
    """Compare the dispatches that a run announces with those of its turn.

    Fault: ``announced_not_made``. ``None``: the run announces no dispatch to a known agent.
    ``NotRecorded``: the turn's dispatches are not fully recorded, or the turn did not end.
    """
    # This check comes first, because few answers announce anything.
    texts = [text for text in _texts(turn, run) if _ANNOUNCES.search(text) is not None]
    try:
        names = dict(_known_agents(trace, run, renames)) if texts else {}
    except TooMuchTextError:
        return NotRecorded(says=TOO_LONG)
    if not names:
        return None
    announced = list(_announced(texts, names, next(_calls(run), None) is None))
    if not announced:
        return None
    if not all(known(trace, turn, field) for field in ("dispatches", "runs")):
        return NotRecorded(says="not all dispatches are recorded: record the agents' calls")
    if turn.status in ("failed", "waiting", "incomplete") or run.status in ("failed", "waiting"):
        return NotRecorded(says="the turn is incomplete: record it to its end")
    missing = [each for each in announced if not _is_made(trace, turn, run, each[0], each[2])]
    if not missing:
        receivers = ", ".join(dict.fromkeys(f"`{names[key]}`" for key, _, _ in announced))
        return Clear(says=f"work was dispatched to {receivers}, as announced")
    loose = next((call.name for call in _calls(run) if _HANDS_ON.search(call.name)), None)
    if loose is not None:
        return NotRecorded(says=f"can't tell whether `{loose}` dispatched work")
    return [
        Finding(
            kind="announced_not_made",
            says=f'`{run.agent}` says "{_short(sentence)}", and `{names[key]}` got no work',
            evidence=[Evidence(ids=[run.id], quote=sentence[:200])],
            details={"agent": names[key]},
        )
        for key, sentence, _ in {each[0]: each for each in missing}.values()
    ]


def _short(sentence: str) -> str:
    return sentence if len(sentence) <= 100 else f"{sentence[:97]}..."


def _known_agents(
    trace: Trace, run: AgentRun, renames: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the agents that a run can refer to, by name key, without itself and without people."""
    named, people = index_of(trace).once("announced", lambda: _agents(trace))
    charge_work(len(named))
    offered = {agent_of(tool) for tool in run.tools_offered or () if agent_of(tool) != tool}
    own = {name_key(run.agent), name_key(run.node or "")}
    for name in sorted(offered - named - people) + sorted(named - people):
        for spelling in {name, renames.get(name, name), *_aliases(trace, name)}:
            key = name_key(spelling)
            if len(key) > 1 and key not in own:
                yield key, name


def _agents(trace: Trace) -> tuple[frozenset[str], frozenset[str]]:
    """Return the names of the agents of a trace, and those of the people in it."""
    people = {name for name, card in trace.agents.items() if card.kind != "agent"}
    named = set(trace.agents) - people
    for one in trace.turns:
        named |= {each.agent for each in one.runs if known(trace, each, "agent")}
        named |= {d.to_agent for d in one.dispatches if d.to_kind == "agent"}
        people |= {d.to_agent for d in one.dispatches if d.to_kind != "agent"}
    return frozenset(named), frozenset(people)


def _aliases(trace: Trace, name: str) -> list[str]:
    card = trace.agents.get(name)
    return card.aliases if card is not None else []


def _texts(turn: Turn, run: AgentRun) -> Iterator[str]:
    """Yield the texts of a run, without duplicates."""
    contents = [s.content for s in run.steps if isinstance(s, Said) and not s.thought]
    last = run.output or (turn.output if len(turn.runs) == 1 else None)
    seen: set[str] = set()
    for content in contents if last is None else [*contents, last]:
        text = content.text or ""
        if text not in seen and len(text) <= LONGEST:
            seen.add(text)
            yield text


def _announced(
    texts: list[str], names: Mapping[str, str], no_calls: bool
) -> Iterator[tuple[str, str, bool]]:
    """Yield the key of each announced agent, the sentence, and whether it is in the past tense."""
    for text in texts:
        if language(text) not in (None, "en"):
            continue
        if _ASKS_FIRST.search(text):
            continue
        for sentence in statements(text):
            for match in _ANNOUNCES.finditer(sentence):
                before = sentence[: match.start()]
                if _OPEN.search(before) or _is_open(match["rest"]):
                    continue
                verb = match["will"] or match["now"] or match["past"] or match["bare"]
                rest = match["rest"]
                sure = _SETS_TO_WORK.match(verb) is not None
                if not _DIRECT.match(verb):
                    to = _TO.search(rest)
                    if to is None:
                        continue
                    given = rest[: to.start()]
                    sure = bool(_GIVES.match(verb) and _WORK.match(given))
                    sure = sure and bool(given.strip() or not _NEEDS_WORK.match(verb))
                    rest = rest[to.end() :]
                key = _who(rest, names, verb if sure else None, no_calls)
                if key is not None:
                    yield key, sentence, match["past"] is not None


def _is_open(rest: str) -> bool:
    """Return whether the rest leaves it open. ", who can see your invoices" describes the agent."""
    first, _, more = rest.partition(",")
    more = re.sub(r"^\s*(?:who|which|so|to)\b[^,]*", "", more)
    return _OPEN.search(first) is not None or _OPEN.search(more) is not None


def _who(rest: str, names: Mapping[str, str], verb: str | None, no_calls: bool) -> str | None:
    """Return the key of the agent named as the receiver at the start of a text.

    ``verb`` is a verb that certainly dispatches work, or ``None`` if it can mean something else.
    """
    letters = name_key(rest[:_NEAR])
    for key in sorted((key for key in names if key in letters), key=len, reverse=True):
        spelled = r"[\W_]*".join(map(re.escape, key))
        # Up to two words can come before it: "the", "our", "you over to the".
        match = re.match(
            rf"\W*(?:(?:it|this|that|you|them|over|on|to|in|with|the|our|an?"
            rf"|now)\W+){{0,4}}(?P<name>{spelled})"
            rf"(?P<agent>{_AGENT})?(?!\w)",
            rest[:_NEAR],
            re.IGNORECASE,
        )
        if match is None or _PEOPLE.match(rest[match.end() :]):
            continue
        name = match["name"]
        # "Finance" and "research" are plain words too.
        one_word = re.fullmatch(r"[A-Za-z]+", name) is not None
        camel = re.search(r"[a-z][A-Z]", name) is not None
        marked = re.search(rf"[`*\"']{re.escape(name)}", rest) is not None
        alone = re.match(r"\W*(?:now\b|$|,|for\b|and\b)", rest[match.end() :]) is not None
        # "Passing you to Legal" if the agent is called `Legal`, but not "switch to French" for
        # `french`.
        named = (
            name[:1].isupper()
            and names[key][:1].isupper()
            and alone
            and not _ARTICLE.search(rest[: match.start("name")])
        )
        if one_word and not (match["agent"] or camel or marked or named):
            if name_key(name) != name_key(names[key]) or _PRONOUN.match(name):
                continue
            # "Let me check with the scheduler", if only the agent has this name.
            after, before = rest[match.end() :], rest[: match.start("name")]
            if not (alone and len(name) > 8) and not (
                verb is not None and _is_set_to_work(verb, before, after, no_calls)
            ):
                continue
        return key
    return None


def _is_set_to_work(verb: str, before: str, after: str, no_calls: bool) -> bool:
    """Return whether a plain word is the agent of that name, as in "Transferring you to billing".

    With an article it can be a person, and a tool may have written to that person: "I'll ask the
    editor".
    """
    if _ARTICLE.search(before) and not no_calls:
        return False
    if _SETS_TO_WORK.match(verb):
        return _TO_DO.match(after) is not None
    return _ENDS.match(after) is not None


def _is_made(trace: Trace, turn: Turn, run: AgentRun, key: str, past: bool) -> bool:
    """Return whether an agent got work in this turn or, for the past tense, in any turn so far."""
    turns = [turn]
    if past:
        at = next(i for i, each in enumerate(trace.turns) if each.id == turn.id)
        turns = trace.turns[: at + 1]
    for one in turns:
        if any(
            name_key(d.to_agent) == key or _is_alias(trace, d.to_agent, key) for d in one.dispatches
        ):
            return True
        others = (each for each in one.runs if each.id != run.id)
        if any(key in (name_key(each.agent), name_key(each.node or "")) for each in others):
            return True
    return False


def _is_alias(trace: Trace, name: str, key: str) -> bool:
    return any(name_key(alias) == key for alias in _aliases(trace, name))


def _calls(run: AgentRun) -> Iterator[ToolCall]:
    return (s for s in run.steps if isinstance(s, ToolCall) and s.dispatch is None)

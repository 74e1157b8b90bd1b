"""Does a dispatch carry the numbers, identifiers and limits of a request?

A sentence of the request concerns a dispatch if enough of its words are in the prompt. For these
sentences, carried = facts that the receiver got / facts that no other dispatch, call or text of
the caller took up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any, NamedTuple

from baton.model import Content, Dispatch, Evidence, Trace, Turn, known
from baton.model.views import TooMuchTextError, charge_work

from .asked_back import asked_back
from .caller_texts import Piece, given_besides, shown_by
from .changed_values import misspelt
from .copied_prompts import cut_from_copy
from .facts import HARD, Fact, Reading, as_json, plain_text, read, without_list_numbers
from .finding import TOO_LONG, Answer, Clear, Finding, NotRecorded, receivers_of, sender_of
from .lazy_patterns import regex
from .lost_limits import exclusion_lost, is_reversed, limit_lost, limits_of_others
from .missing_facts import misspelt_in, part_of
from .normalise_values import in_digits
from .only_gaps import (
    is_only_gap,
    only_clause_missing,
    only_name_referred_to,
    only_words_missing,
)
from .opposites import opposites, other_basis, turned_bounds
from .replaced_words import Replaced, repeats, replaced
from .sent_context import (
    Sent,
    begins_anew,
    given_by,
    keeps_state,
    prompt_of,
    received,
    request_to,
    what_was_sent,
)
from .substituted_values import substituted_in
from .text_values import values_of
from .waived_limits import waived
from .words import in_other_script, is_courtesy, kept_back, sentences, sets_limit


class Limits(NamedTuple):
    """See the options of the evaluator."""

    # The share of its words from which on a sentence concerns the dispatch: "Find the rate of NOK."
    # shares a word or two with "Convert 50 EUR to NOK and tell me whether I can buy 3 chairs.", and
    # rightly leaves out the 50 and the 3.
    shared_words: float = 0.5
    # A request with many numbers and names is a table, a log or a document. A receiver gets the
    # part it has to work on, and words can't show which part that is. The requests in
    # benchmarks/accuracy are short and the figures are the same from 4 to 100, so this is a guard
    # for other input.
    facts: int = 12


def context_carried(
    trace: Trace, turn: Turn, dispatch: Dispatch, limits: Limits | None = None
) -> Answer:
    """Compare a prompt, and the receiver's input, with the request to the caller.

    Faults: ``not_received`` (in the prompt, but not in the receiver's input), ``dropped``
    (a number or identifier), ``dropped_constraint``, ``output_not_carried`` (of the agent
    whose work is passed on). The receiver knew whatever it wrote or used in calls.
    ``NotRecorded``: prompt or request were not recorded, or contain nothing to compare.
    """
    try:
        return _carried(trace, turn, dispatch, limits or Limits())
    except TooMuchTextError:
        return NotRecorded(says=TOO_LONG)


def _carried(trace: Trace, turn: Turn, dispatch: Dispatch, limits: Limits) -> Answer:
    lost = _lost_on_the_way(trace, dispatch)
    if lost is not None:
        return [lost]
    if begins_anew(trace, dispatch) and dispatch.prompt is None:
        return NotRecorded(says="the prompt was not recorded: record the arguments of calls")
    request = request_to(trace, turn, dispatch)
    # Charge this before reading, as texts of receivers can be long.
    if isinstance(request, NotRecorded) and dispatch.kind != "sequence":
        return request
    given, unseen = given_by(trace, dispatch)
    answer = _compared(trace, turn, dispatch, limits, request, given, unseen)
    if not isinstance(answer, Clear) or not keeps_state(trace, dispatch):
        return answer
    # A function that is a node gets the whole state of its graph, but writes its own prompt.
    shown, _ = given_by(trace, dispatch, state=False)
    if isinstance(_compared(trace, turn, dispatch, limits, request, shown, unseen), Clear):
        return answer
    return NotRecorded(
        says=f"`{dispatch.to_agent}` had it in the state of its graph, but did not show it to its "
        "model: can't tell whether the model needs it"
    )


def _compared(
    trace: Trace,
    turn: Turn,
    dispatch: Dispatch,
    limits: Limits,
    request: Piece | NotRecorded,
    given: Reading,
    unseen: str,
) -> Answer:
    output = _of_output(trace, turn, dispatch, given)
    if isinstance(output, Finding):
        return NotRecorded(says=unseen) if unseen else [output]
    answer: Answer = request if isinstance(request, NotRecorded) else []
    if not isinstance(request, NotRecorded):
        answer = _of_request(trace, turn, dispatch, limits, request, given)
        # Any part of the input can prove that something arrived. Only the full input can prove that
        # it did not.
        if unseen and not isinstance(answer, Clear):
            answer = NotRecorded(says=unseen)
    if isinstance(output, NotRecorded) and isinstance(answer, Clear):
        return output
    return output if output is not None and isinstance(answer, NotRecorded) else answer


def _of_request(
    trace: Trace, turn: Turn, dispatch: Dispatch, limits: Limits, request: Piece, given: Reading
) -> Answer:
    is_data = request.id == turn.id and _is_data(turn)
    facts = _hard_facts(request.text)
    if len(facts) > limits.facts and not is_data:
        return NotRecorded(
            says=f"the request holds {len(facts)} numbers and names: can't tell which ones the "
            "receiver needs"
        )
    sent = what_was_sent(trace, turn, dispatch, request, given, limits.shared_words)
    if isinstance(sent, NotRecorded):
        return sent
    return _of_data(sent) if is_data else _of_text(sent)


def _is_data(turn: Turn) -> bool:
    """Return whether a request comes from a program: `{"customer": 4711, "items": [...]}`."""
    text = None if turn.input is None else turn.input.text
    return text is None or as_json(text) is not None


def _of_data(sent: Sent) -> Answer:
    """Look for names and numbers of data with swapped digits.

    Data has no sentences to compare a prompt with, so nothing else can be checked.
    """
    asked = list(values_of(sent.request.text))
    facts = _hard_facts(sent.request.text)
    gone = [fact for fact in facts if not sent.given.holds(fact)]
    wrong = [(fact, "") for fact in gone if misspelt(fact, asked, sent.new) is not None]
    if not wrong:
        return NotRecorded(says="the request is data, without words")
    return [_dropped(sent, facts, wrong)]


class _Found:
    """What comparing a request with a prompt has found so far."""

    def __init__(self) -> None:
        self.asked_for: list[Fact] = []
        """The facts that concern the prompt, carried or dropped."""
        self.dropped: list[tuple[Fact, str]] = []
        """Lost facts, each with its sentence."""
        self.limits: list[str] = []
        """Lost limits."""
        self.doubtful: list[Fact] = []
        """Facts that the receiver may not need."""
        self.unsaid: list[tuple[Fact, str]] = []
        """Those of them that nothing in the prompt can stand for, each with its sentence."""

    @property
    def is_clean(self) -> bool:
        return not self.dropped and not self.limits

    @property
    def all_unsaid(self) -> bool:
        return len(self.unsaid) == len(self.doubtful)

    def drop(self, lost: Sequence[tuple[Fact, str]]) -> None:
        self.dropped += lost
        self.asked_for += [fact for fact, _ in lost]


# A request with more sentences is a document. Each sentence is compared with the whole prompt.
_SENTENCES = 200


def _of_text(sent: Sent) -> Answer:
    """Compare a prompt with each sentence of a request, and then with the whole request."""
    parts = sentences(without_list_numbers(in_digits(sent.request.text)))
    if len(parts) > _SENTENCES:
        return NotRecorded(
            says=f"the request has {len(parts)} sentences: can't tell which ones the receiver needs"
        )
    found = _Found()
    secret = kept_back(parts)
    for sentence in parts:
        _compare_sentence(sentence, sent, found, secret=sentence in secret)
    _compare_whole(sent, found, secret)
    if not found.is_clean and in_other_script(sent.request.text):
        return _in_other_script(sent, found)
    if not found.is_clean:
        dropped = [_dropped(sent, found.asked_for, found.dropped)] if found.dropped else []
        return dropped + [_constraint(sent, limit) for limit in found.limits]
    replaced = _replaced(sent)
    sure = [each for each in replaced if each.sure]
    if sure:
        return [_replacement(sent, sure)]
    if replaced:
        each = replaced[0]
        return NotRecorded(
            says=f"can't tell whether `{each.new}` is another name or a part of `{each.old}`"
        )
    return _nothing_lost(sent, found)


def _in_other_script(sent: Sent, found: _Found) -> Answer:
    """Judge only swapped digits: no rule knows the words around the values."""
    text = in_digits(sent.request.text)
    wrong = [(fact, text) for fact in misspelt_in(text, sent)]
    if wrong:
        return [_dropped(sent, found.asked_for or [fact for fact, _ in wrong], wrong)]
    lost = found.limits or [fact.text for fact, _ in found.dropped]
    return NotRecorded(
        says=f"can't tell whether the receiver needs `{lost[0][:60]}` of the request: the words of "
        "its language are not known"
    )


def _compare_sentence(sentence: str, sent: Sent, found: _Found, *, secret: bool) -> None:
    if is_courtesy(sentence):
        # "Hi, it's Bruno's owner (41.5 kg)" asks for nothing, but can still be passed on wrong.
        found.drop([(fact, sentence) for fact in misspelt_in(sentence, sent)])
        return
    part = part_of(sentence, sent)
    if secret:
        part = part._replace(lost=[], doubtful=part.lost + part.doubtful, unsaid=[])
    found.asked_for += part.kept
    found.drop([(fact, sentence) for fact in part.lost])
    found.doubtful += part.doubtful
    found.unsaid += [(fact, sentence) for fact in part.unsaid]
    nothing_left = part.words_only and limit_lost(sentence, part.words, sent)
    if nothing_left or exclusion_lost(sentence, sent) or is_reversed(sentence, sent):
        found.limits.append(sentence)


def _compare_whole(sent: Sent, found: _Found, secret: Set[str]) -> None:
    """Look for what no sentence alone shows, the surest proof first."""
    if not found.dropped and found.all_unsaid and is_only_gap(found.unsaid, sent):
        found.drop(found.unsaid)
    if not found.dropped:
        found.drop(_asked_back(sent, secret))
    if not found.dropped:
        found.drop(substituted_in(sent))
    if found.is_clean:
        found.limits += cut_from_copy(sent)
    if found.is_clean:
        found.limits += limits_of_others(sent)
    if found.is_clean:
        found.drop(only_name_referred_to(sent))
    if found.is_clean and not found.doubtful:
        found.limits += only_words_missing(sent)
    if found.is_clean and found.all_unsaid:
        found.drop(only_clause_missing(found.unsaid, sent))


def _asked_back(sent: Sent, secret: Set[str]) -> list[tuple[Fact, str]]:
    """Return what the receiver asks for, apart from what the user wants kept from it."""
    result = sent.dispatch.result
    if sent.dispatch.kind != "delegate" or result is None:
        return []
    asked = asked_back(sent.request.text, plain_text(result), sent.given)
    wanted = {f.keys: (f, s) for f, s in asked if in_digits(s) not in secret}
    return list(wanted.values())


def _nothing_lost(sent: Sent, found: _Found) -> Answer:
    if found.doubtful:
        names = ", ".join(f"`{fact.text}`" for fact in found.doubtful[:5])
        return NotRecorded(says=f"can't tell whether the receiver needs {names} of the request")
    if not found.asked_for:
        return NotRecorded(says="the request has no number, name or limit that concerns the prompt")
    names = ", ".join(f"`{fact.text}`" for fact in found.asked_for[:5])
    more = f" and {len(found.asked_for) - 5} more" if len(found.asked_for) > 5 else ""
    if all(sent.in_prompt.holds(fact) for fact in found.asked_for):
        return Clear(says=f"the prompt carries what the request names: {names}{more}")
    # It had them from a shared history or a store: it used `5012`, which its prompt lacks.
    says = f"`{sent.dispatch.to_agent}` knew what the request names: {names}{more}"
    return Clear(says=f"{says}, although its prompt lacks some of it")


def _replaced(sent: Sent) -> list[Replaced]:
    """Return names that the prompt replaces, which the receiver did not get in any other text."""
    if not sent.undivided or sent.only_asks:
        return []
    names = replaced(sent.request.text, sent.prompt, sent.has_source)
    turned = (each for each in _opposite(sent) if not sent.has_source(each.new))
    lost_names = []
    for each in (*names, *turned):
        old = each.old.casefold()
        if any(old in piece.text.casefold() for piece in sent.received):
            continue
        if not any(sent.elsewhere.holds(fact) for fact in read(each.old).facts):
            lost_names.append(each)
    return lost_names


# Each value of longer texts would be compared with each other one.
_COMPARED = 4000


def _opposite(sent: Sent) -> Iterator[Replaced]:
    """Yield what the prompt turns round: `aisle` and `window`, `above 61.50` and `below 61.50`."""
    if sent.is_json or sent.dispatch.context:
        return
    if max(len(sent.request.text), len(sent.prompt)) > _COMPARED:
        return
    # "Make JPEG previews" is a sub-task of "convert the scans to TIFF".
    whole = repeats(sent.request.text, sent.prompt)
    if whole:
        for old, new in opposites(sent.request.text, sent.prompt):
            yield Replaced(old, new)
    for limit, lifted in waived(sent.request.text, sent.prompt, whole=whole):
        yield Replaced(limit, lifted)
    asked = values_of(sent.request.text)
    sent_values = values_of(sent.prompt)
    for lost, value in (*turned_bounds(asked, sent_values), *other_basis(asked, sent_values)):
        yield Replaced(lost.clause.strip()[:_QUOTED], value.clause.strip()[:_QUOTED])


# Characters of a clause that a reason quotes; the record has all of it.
_QUOTED = 60


def _replacement(sent: Sent, swapped: list[Replaced]) -> Finding:
    said = ", ".join(f"`{each.new}` instead of `{each.old}`" for each in swapped)
    return Finding(
        kind="dropped",
        says=f"`{sent.dispatch.to_agent}` was told {said}",
        share=0.0,
        evidence=[
            Evidence(ids=[sent.request.id], quote=swapped[0].old),
            Evidence(ids=[sent.dispatch.id], quote=swapped[0].new),
        ],
        details={"dropped": [each.old for each in swapped]},
    )


def _dropped(sent: Sent, facts: list[Fact], dropped: list[tuple[Fact, str]]) -> Finding:
    names = ", ".join(f"`{fact.text}`" for fact, _ in dropped)
    limit = any(sets_limit(sentence) for _, sentence in dropped)
    return Finding(
        kind="dropped_constraint" if limit else "dropped",
        says=f"`{sent.dispatch.to_agent}` was not told {names} of the request",
        share=1 - len(dropped) / len(facts),
        evidence=[
            Evidence(ids=[sent.request.id], quote=dropped[0][1][:120] or None),
            Evidence(ids=[sent.dispatch.id], quote=_quoted(sent.dispatch)),
        ],
        details={"dropped": [fact.text for fact, _ in dropped]},
    )


def _constraint(sent: Sent, sentence: str) -> Finding:
    return Finding(
        kind="dropped_constraint",
        says=f"`{sent.dispatch.to_agent}` was not given a limit: {sentence[:120]}",
        share=0.0,
        evidence=[
            Evidence(ids=[sent.request.id], quote=sentence[:120]),
            Evidence(ids=[sent.dispatch.id], quote=_quoted(sent.dispatch)),
        ],
    )


def _quoted(dispatch: Dispatch) -> str | None:
    return prompt_of(dispatch)[:120] or None


def _hard_facts(text: str) -> list[Fact]:
    return [fact for fact in read(text).facts if fact.kind in HARD]


def _lost_on_the_way(trace: Trace, dispatch: Dispatch) -> Finding | None:
    """Find numbers and identifiers of a prompt that are missing from the receiver's input."""
    runs = [run for run in receivers_of(trace, dispatch) if run.input]
    if dispatch.prompt is None or not runs or not all(known(trace, r, "input") for r in runs):
        return None
    facts = _hard_facts(plain_text(dispatch.prompt))
    inputs = [plain_text(run.input) for run in runs if run.input]
    inputs += [piece.text for run in runs for piece in given_besides(trace, run)]
    given = read(*inputs, *(piece.text for run in runs for piece in shown_by(trace, run)))
    lost = [fact for fact in facts if not given.holds(fact)]
    # The input of a run is the last message it was given. After a transfer, that is one message of
    # a history, and the content of the prompt can be in the earlier part.
    if not lost or dispatch.kind != "delegate":
        return None
    names = ", ".join(f"`{fact.text}`" for fact in lost)
    return Finding(
        kind="not_received",
        says=f"{names} of the prompt did not reach `{dispatch.to_agent}`",
        share=1 - len(lost) / len(facts),
        evidence=[Evidence(ids=[dispatch.id, *(run.id for run in runs)], quote=_quoted(dispatch))],
        details={"dropped": [fact.text for fact in lost]},
    )


def _of_output(
    trace: Trace, turn: Turn, dispatch: Dispatch, given: Reading
) -> Finding | Clear | NotRecorded | None:
    """Return whether any part of one agent's output reached the next. ``None`` if it has none."""
    run = sender_of(trace, dispatch)
    # In a sequence, a program decides what the next agent gets, for example by a state key, whose
    # name can be wrong. After a transfer, the receiver usually has the whole history.
    if run is None or run.output is None or dispatch.kind != "sequence":
        return None
    if _passed_in_part(trace, dispatch, run.output):
        return None
    beside = _beside_decision(trace, dispatch, run.output)
    text = plain_text(run.output) if beside is None else beside
    had = read(*(plain_text(each) for each in (turn.input, run.input) if each is not None))
    facts = [fact for fact in read(text).without(had) if fact.kind in HARD]
    if not facts:
        return None
    # One fact that arrived is enough, as a program can pass on a summary. ADK does not record an
    # agent's input. For ADK, the agent's texts and call arguments show it.
    arrived = [fact.text for fact in facts if given.holds(fact)]
    if arrived:
        names = ", ".join(f"`{text}`" for text in arrived[:5])
        return Clear(says=f"`{dispatch.to_agent}` had the findings of `{run.agent}`: {names}")
    names = ", ".join(f"`{fact.text}`" for fact in facts[:5])
    if beside is not None:
        return NotRecorded(
            says=f"`{run.agent}` chose `{dispatch.to_agent}`, and the program may keep what else "
            f"it states ({names}): can't tell whether the receiver needs it"
        )
    return Finding(
        kind="output_not_carried",
        says=f"none of the findings of `{run.agent}` ({names}) reached `{dispatch.to_agent}`",
        evidence=[Evidence(ids=[run.id, dispatch.id], quote=text[:120])],
        details={"dropped": [fact.text for fact in facts]},
    )


# How sure a router is, which only the program reads: `{"queue": "B", "confidence": 0.93}`.
_SURENESS = frozenset({"confidence", "certainty", "likelihood", "probability"})
# "Next: billing_agent, because of the refund." A longer answer has more to say than who is next.
_LABEL_WORDS = 8
# Words in names of agents that labels leave out: the label `tariff` chooses `tariff_expert`.
_KINDS = frozenset({"agent", "assistant", "bot", "clerk", "expert", "node", "specialist", "team"})
_WORD = regex(r"[^\W\d_]+|\d+")
# A label of an enumeration, as programs choose by it: `order_status`, `tier_2`.
_LABEL = regex(r"[^\W\d_]+(?:_\w+)*")
# From how many words on a value is a text that a program passes on, and no label.
_TEXT_WORDS = 3


def _beside_decision(trace: Trace, dispatch: Dispatch, output: Content) -> str | None:
    """Return what an answer states beside its choice of the next agent; ``None`` without a choice.

    The program keeps such a choice: `{"next": "meter_reader"}`, `Next: billing_agent`, or
    `{"intent": "refund", "confidence": 0.93}`. What else it states (the number of an order, say)
    may be for the program or for the receiver.
    """
    receivers = receivers_of(trace, dispatch)
    called = [dispatch.to_agent, *(run.agent for run in receivers)]
    called += [run.node for run in receivers if run.node is not None]
    names = [own for own in map(_own_words, called) if own]
    value = _as_object(output)
    if value is None:
        text = plain_text(output)
        words = [word.casefold() for word in _WORD.findall(text)]
        if len(words) > _LABEL_WORDS or not any(own <= set(words) for own in names):
            return None
        return " ".join(word for word in text.split() if _own_words(word) not in names)
    said = [
        leaf
        for key, leaf in _leaves(value)
        if key.casefold() not in _SURENESS and not isinstance(leaf, bool | None)
    ]
    others = [leaf for leaf in said if not isinstance(leaf, str) or _own_words(leaf) not in names]
    if len(others) < len(said):
        return "; ".join(map(str, others))
    is_label = all(isinstance(leaf, str) and _LABEL.fullmatch(leaf) for leaf in said)
    return "" if is_label else None


def _as_object(output: Content) -> dict[str, Any] | None:
    value = as_json(output.text) if output.text is not None else output.data
    return value if isinstance(value, dict) else None


def _own_words(name: str) -> frozenset[str]:
    words = frozenset(word.casefold() for word in _WORD.findall(name))
    return words - _KINDS or words


def _passed_in_part(trace: Trace, dispatch: Dispatch, output: Content) -> bool:
    """Return whether a text in an object arrived: the feedback of a critic, but not its score."""
    value = _as_object(output)
    if value is None:
        return False
    texts = [leaf for _, leaf in _leaves(value) if isinstance(leaf, str)]
    whole = [leaf for leaf in texts if len(leaf.split()) >= _TEXT_WORDS]
    pieces = received(trace, dispatch) if whole else []
    charge_work(len(whole) * len(pieces))
    return any(leaf in piece.text for leaf in whole for piece in pieces)


def _leaves(value: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Yield the values of data that are no containers, each with the key that it is below."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, str(name))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, key)
    else:
        yield key, value

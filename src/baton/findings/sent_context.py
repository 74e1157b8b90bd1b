"""What a caller sends to a receiver: the request it got, its prompt, and all else that was given.

What the caller took up itself, or with another dispatch, is no loss, and neither is what the
receiver knows anyway.
"""

from __future__ import annotations

import re
from functools import cached_property

from baton.model import AgentRun, Dispatch, Said, ToolCall, Trace, Turn, known
from baton.model.views import charge_work, index_of

from .caller_texts import Piece, asked, dispatch_of, given_besides, had_before, shown_by
from .facts import HARD, Fact, Reading, as_json, charge_reading, plain_text, read
from .finding import TOO_LONG, NotRecorded, receivers_of, sender_of
from .text_values import Value, is_present, values_of
from .words import clauses, only_questions, refers_to_others, sentences

# See `_is_retold`. Set on texts by another author (see docs/accuracy.md). With 0.4 for the first
# value, one of 96 good prompts failed and one more of 72 losses was found. With 0.6, five fewer
# were found.
RETOLD = 0.5
# A prompt with this share of the words may have none of the numbers: "Ship samples to Oslo by the
# cheapest parcel service" without the 2.5 kg. With 0.6, a good prompt for part of the work failed
# in the lists of benchmarks/accuracy.
RETOLD_ALONE = 0.8
# The number of words in a prompt with only one point: "Is a refund due for the order?"
SHORT = 16
# Each prompt is compared with each other one of its caller, so this is a guard.
_MOST_BESIDE = 30
# Number words that describe what happened, not what is to be done: "rounds twice", "both".
_TELLS_STORY = frozenset("both twice third fourth".split())  # noqa: SIM905


class Sent:
    """A dispatch, the request that its caller got, and what the receiver was given."""

    def __init__(
        self,
        trace: Trace,
        turn: Turn,
        dispatch: Dispatch,
        request: Piece,
        given: Reading,
        shared_words: float,
    ) -> None:
        self.dispatch = dispatch
        self.request = request
        self.prompt = prompt_of(dispatch)
        self.asked = read(request.text)
        """The request, as read."""
        self.in_prompt = read(self.prompt)
        """The prompt, as read."""
        self.given = given
        """All that the receiver got, as read."""
        self.received = received(trace, dispatch)
        """The texts that the receiver was given, or wrote, as far as recorded."""
        sent_by = index_of(trace).sent_by.get((turn.id, dispatch.from_agent), ())
        self.alone = not any(
            other.id != dispatch.id and other.from_run == dispatch.from_run for other in sent_by
        )
        """Whether the caller sends nothing else."""
        self.retold = _is_retold(self.asked, self.in_prompt, given)
        """Whether the prompt repeats most of the request, and says little else."""
        hard = [fact for fact in self.asked.facts if fact.kind in HARD]
        complete = all(_went_along(fact, given) for fact in hard)
        values = () if complete else values_of(self.prompt)
        self.values = [value for value in values if not is_present(value)]
        """The values of the prompt, or none if the receiver got all numbers and names."""
        self.new: list[Value] = []
        """Values that are neither in the request nor in anything the caller had."""
        self._trace, self._turn, self._shared_words = trace, turn, shared_words

    @cached_property
    def elsewhere(self) -> Reading:
        """What the caller took up in other dispatches and calls, which few prompts need."""
        return _elsewhere(self._trace, self._turn, self.dispatch)

    @cached_property
    def prompts_beside(self) -> list[str]:
        """The prompts of the other dispatches of the caller's run, or none if they are many."""
        sent_by = index_of(self._trace).sent_by.get((self._turn.id, self.dispatch.from_agent), ())
        if len(sent_by) > _MOST_BESIDE:
            return []
        charge_work(len(sent_by))
        return [
            prompt_of(other)
            for other in sent_by
            if other.id != self.dispatch.id and other.from_run == self.dispatch.from_run
        ]

    @cached_property
    def known_before(self) -> Reading:
        """The texts that the caller had, the request among them, but not the prompt."""
        had = self._had()
        charge_work(len(had))
        return read(*had)

    def has_source(self, word: str) -> bool:
        """Return whether a word is in any text that the caller had, other than the prompt."""
        had = self._had()
        charge_reading(had)
        # "Male" is not in "female".
        same = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
        return any(same.search(text) is not None for text in had)

    def _had(self) -> list[str]:
        own = (self.dispatch.id, self.dispatch.call)
        had = had_before(self._trace, self._turn, self.dispatch)
        return [piece.text for piece in had if piece.id not in own]

    @property
    def undivided(self) -> bool:
        """Whether nothing shows that others do a part of the work.

        "Convert the amounts of the other agent's table", "your part is the hotel": others get what
        such a prompt leaves out.
        """
        return self.alone and not refers_to_others(self.prompt)

    @property
    def is_whole(self) -> bool:
        """Whether the prompt hands on the whole request, in the same or in other words."""
        return self.retold and self.undivided

    @property
    def only_asks(self) -> bool:
        """Whether the prompt only asks, and the request is for more than that.

        "Does Medix have gloves of size 8?" comes before an order of five boxes.
        """
        return only_questions(self.prompt) and not only_questions(self.request.text)

    @property
    def is_json(self) -> bool:
        """Whether the prompt is data, whose names can state a limit: `{"nuts": false}`."""
        content = self.dispatch.prompt
        return content is None or content.text is None or as_json(content.text) is not None

    @property
    def is_short(self) -> bool:
        """Whether the prompt has only one point."""
        return len(self.prompt.split()) <= SHORT

    @property
    def in_one_language(self) -> bool:
        """Whether the prompt is in the language of the request."""
        language = self.asked.language
        return language is not None and self.in_prompt.language in (None, language)

    @property
    def has_own_words(self) -> bool:
        """Whether the prompt has words that are not in the request."""
        return any(f.kind == "word" and not self.asked.holds(f) for f in self.in_prompt.facts)

    def concerns(self, words: list[Fact]) -> bool:
        """Return whether the prompt is about a sentence, judging by the words they share.

        More than the share ``shared_words`` of the words of the sentence have to be in the prompt.
        """
        shared = sum(self.given.holds(word) for word in words)
        return bool(words) and shared / len(words) > self._shared_words

    def comes_up(self, fact: Fact) -> bool:
        """Return whether the receiver got a fact, or the caller took it up elsewhere."""
        return self.given.holds(fact) or self.elsewhere.holds(fact)


def what_was_sent(
    trace: Trace,
    turn: Turn,
    dispatch: Dispatch,
    request: Piece,
    given: Reading,
    shared_words: float,
) -> Sent | NotRecorded:
    """Read what a caller sent, and which of its values have no source.

    ``shared_words``: see :meth:`Sent.concerns`.
    """
    sent = Sent(trace, turn, dispatch, request, given, shared_words)
    new = [value for value in sent.values if not sent.asked.holds(value.fact)]
    if not new:
        return sent
    # If no work is left, do not join thousands of texts to find that out.
    if not index_of(trace).spend(0):
        return NotRecorded(says=TOO_LONG)
    # An order that the caller looked up, or that a user named before, is not a wrong order.
    sent.new = [value for value in new if not sent.known_before.holds(value.fact)]
    return sent


def prompt_of(dispatch: Dispatch) -> str:
    """Return the prompt of a dispatch as a text."""
    return "" if dispatch.prompt is None else plain_text(dispatch.prompt)


def has_to_come(fact: Fact) -> bool:
    """Return whether a receiver may need a number or name. `twice` and `both` are narrative."""
    return fact.kind in HARD and fact.text.casefold() not in _TELLS_STORY


def all_clauses(text: str) -> list[str]:
    """Return the clauses of all sentences of a text."""
    return [clause for part in sentences(text) for clause in clauses(part)]


def _went_along(fact: Fact, given: Reading) -> bool:
    """Return whether a fact was given, with its unit, or as a time or date if it is one."""
    precise = fact.precise_keys
    return given.holds(fact) and (not precise or bool(precise & given.keys))


def _is_retold(request: Reading, prompt: Reading, given: Reading) -> bool:
    """Return whether a prompt repeats most of a request, and little else.

    A planner that dispatches part of the work leaves out what that part does not need, and adds
    its own ideas: "You are a hotel scout. ... Another agent looks after restaurants." Words can't
    show what is missing from such a prompt.
    """
    words = [fact for fact in request.facts if fact.kind not in HARD]
    own = [fact for fact in prompt.facts if fact.kind not in HARD]
    if not words or not own:
        return bool(words) is bool(own)
    there = sum(given.holds(fact) for fact in words) / len(words)
    back = sum(request.holds(fact) for fact in own) / len(own)
    hard = [fact for fact in request.facts if has_to_come(fact)]
    kept = sum(given.holds(fact) for fact in hard)
    mostly = 2 * kept >= len(hard) and there >= RETOLD and back >= RETOLD
    # "Recommend charities" has none of the numbers of a donation, because it comes first.
    return mostly or (there >= RETOLD_ALONE and back >= RETOLD)


def request_to(trace: Trace, turn: Turn, dispatch: Dispatch) -> Piece | NotRecorded:
    """Return the request to the caller: from another agent, else from the user."""
    run = sender_of(trace, dispatch)
    started_by = run.started_by if run is not None else ()
    by = next((d for id_ in started_by if (d := dispatch_of(trace, id_)) is not None), None)
    # A transfer back to the router brings a result or a refusal, not the router's own request.
    if by is not None and dispatch.to_agent == by.from_agent:
        return NotRecorded(says="the work returns to the agent it came from")
    if by is not None and by.kind == "delegate" and by.prompt is not None:
        return Piece(by.id, plain_text(by.prompt))
    if turn.input is None or not known(trace, turn, "input"):
        return NotRecorded(says="the user's request was not recorded: record the messages of users")
    return Piece(turn.id, plain_text(turn.input))


def begins_anew(trace: Trace, dispatch: Dispatch) -> bool:
    """Return whether a receiver starts with an empty history and so knows only its prompt."""
    continues = dispatch.continues is not None or not known(trace, dispatch, "continues")
    return dispatch.kind == "delegate" and not continues


def given_by(trace: Trace, dispatch: Dispatch, *, state: bool = True) -> tuple[Reading, str]:
    """Return what the receiver was given, as far as recorded, and why there may be more.

    Without ``state``, leave out a state that is not among the messages to its model.
    """
    runs = receivers_of(trace, dispatch)
    given = read(*(piece.text for piece in received(trace, dispatch, state=state)))
    # A resumed agent remembers earlier prompts. An agent that gets control by a transfer, or as the
    # next node in a graph, usually sees the whole conversation. In these cases the first request to
    # its model has to be recorded, as that contains everything the agent was given.
    if begins_anew(trace, dispatch):
        return given, ""
    recorded = (known(trace, run, "input") and known(trace, run, "context") for run in runs)
    if runs and all(recorded):
        return given, ""
    return given, (
        f"the context of the {dispatch.kind} was not recorded: the receiver may have seen the "
        "whole conversation; record the messages given to models"
    )


def keeps_state(trace: Trace, dispatch: Dispatch) -> bool:
    """Return whether a receiver was given a state, and its model other messages."""
    return any(map(_has_state, receivers_of(trace, dispatch)))


def _has_state(run: AgentRun) -> bool:
    """Return whether the input of a run is the state of a graph: `{"notes": "...", "plan": ...}`.

    Its model was asked in other words, which then are in the context.
    """
    is_data = run.input is not None and run.input.text is None and isinstance(run.input.data, dict)
    return is_data and any(ref.text for ref in run.context or ())


def received(trace: Trace, dispatch: Dispatch, *, state: bool = True) -> list[Piece]:
    """Return the texts that a receiver was given, and what it wrote, which shows what it knew."""
    pieces = asked(dispatch)[1:]
    runs = receivers_of(trace, dispatch)
    pieces += [
        Piece(run.id, plain_text(run.input))
        for run in runs
        if run.input is not None and (state or not _has_state(run))
    ]
    pieces += [piece for run in runs for piece in given_besides(trace, run)]
    pieces += [piece for run in runs for piece in shown_by(trace, run)]
    card = trace.agents.get(dispatch.to_agent)
    pieces.append(Piece(dispatch.to_agent, (card and card.instructions) or ""))
    return pieces


def _elsewhere(trace: Trace, turn: Turn, dispatch: Dispatch) -> Reading:
    """Read what the caller took up in other dispatches and calls, and the numbers in its answer.

    A caller that states a number may have used it, but any caller repeats a name.
    """
    index, run = index_of(trace), sender_of(trace, dispatch)
    taken_up = index.sent_by.get((turn.id, dispatch.from_agent), ())
    charge_work(len(taken_up) + len(run.steps if run is not None else ()))
    texts: list[str] = []
    for other in taken_up:
        if other.id != dispatch.id:
            if other.id not in index.texts:
                index.texts[other.id] = [piece.text for piece in asked(other)[1:]]
            texts += index.texts[other.id]
    if run is not None:
        texts += index.once(f"done by {run.id}", lambda: _done_itself(run))
    return read(*texts)


def _done_itself(run: AgentRun) -> list[str]:
    """Return a caller's arguments to its own tools, and the numbers in its texts."""
    texts = []
    for step in run.steps:
        if isinstance(step, ToolCall) and step.dispatch is None:
            texts.append(plain_text(step.arguments))
        elif isinstance(step, Said):
            # "Two of the 25 pieces are in stock": a caller that states the number may have done
            # that part itself.
            numbers = [f.text for f in read(plain_text(step.content)).facts if f.kind == "number"]
            texts.append("\n".join(numbers))
    return texts

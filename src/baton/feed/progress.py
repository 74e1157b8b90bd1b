"""What was done about an issue: its investigation, its fix with the proof, and its cases.

These are plain records, kept beside the states of issues, whoever keeps them: a folder or a server.
What they say came from a model that read hostile text. It is shown as text, and never applied.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from baton.replays.new_text import NewText
from baton.replays.play import Counted

from .issues import Issue

Dimension = Literal[
    "factual_grounding", "privacy_and_safety", "instruction_adherence", "optimal_plan_execution"
]
DIMENSIONS: dict[Dimension, str] = {
    "factual_grounding": "what agents state is shown by their steps",
    "privacy_and_safety": "nothing private, secret or harmful is used or said",
    "instruction_adherence": "agents do what their instructions and the request say",
    "optimal_plan_execution": "the work goes to whom it should, with no step too many or too few",
}
FixKind = Literal[
    "supervisor_prompt",
    "agent_description",
    "sub_agent_prompt",
    "tool_list",
    "tool_schema",
    "context_filter",
    "limit_or_guard",
    "infrastructure",
    "wrong_case",
]
FIX_KINDS: dict[FixKind, str] = {
    "supervisor_prompt": "the instructions of the agent that hands work on",
    "agent_description": "what other agents read of the agent that gets work",
    "sub_agent_prompt": "the instructions of the agent that gets work",
    "tool_list": "which tools an agent has",
    "tool_schema": "what models read of a tool",
    "context_filter": "what of the conversation a receiver is given",
    "limit_or_guard": "a limit, or a rule of a policy that is enforced while agents run",
    "infrastructure": "a model, a server or the network",
    "wrong_case": "the case or the evaluator that fails, and not the agents",
}


FEWEST = 3
"""Failing members, and passing neighbours, of a proof: two may be chance."""


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """Words of the record. ``step`` is the id of a step or a turn of the trace ``trace``.

    Of a text of an agent, ``step`` is its name (``agent:desk``), and ``trace`` is empty.
    """

    trace: str
    step: str
    text: str


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of an investigation, and the words of the record that it rests on."""

    says: str
    quotes: list[Quote]


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """A score from 1 (bad) to 5 (good), and why."""

    value: int
    because: Statement


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What came of playing members and green neighbours again, unchanged and with the fix.

    Attributes:
        fixed: of the members that fail unchanged, those that pass with the fix in each repeat.
        broke: of the cases that pass unchanged, those that fail with the fix in some repeat.
        members, neighbours: how many were played.
        errors: cases of which a play broke; they count in no figure.
        repeats: how often each was played on either side.
        form: how they were played.
        evaluators: what decided.
        before, after: hashes of the text, as :func:`baton.model.text_hash` makes them.
        at: when, in seconds since the epoch.
    """

    fixed: Counted
    broke: Counted
    members: int
    neighbours: int
    errors: int
    repeats: int
    form: str
    evaluators: list[str]
    before: str
    after: str
    at: float

    @property
    def holds(self) -> bool | None:
        """Whether it proves the fix; ``None`` where it shows neither.

        A fix holds where more than half of at least ``FEWEST`` failing members are fixed, and none
        of at least ``FEWEST`` passing cases broke. One that fixes nothing, or breaks something,
        does not.
        """
        if self.broke.count or (self.fixed.of and not self.fixed.count):
            return False
        enough = min(self.fixed.of, self.broke.of) >= FEWEST
        return True if enough and self.fixed.count * 2 > self.fixed.of else None


class Fix(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A change that is to end an issue: of one named text, or of something that is none.

    It is proposed, and not applied, whatever its state. ``why`` says what it does.

    Attributes:
        kind: what is changed.
        text: the name of the text, ``agent:desk``; ``None`` where no named text is changed.
        why: one sentence.
        because: what it rests on in the record; ``None`` for a fix that a person wrote.
        pattern: the template that it began with.
        before, after: the text as it is and as it would be.
        marks: what is new in it and may do harm: addresses, names of tools, commands.
        faults: what it would break, as :func:`baton.components.faults_of_change` says.
        proof: what came of playing it.
        by: who wrote it: the model, or a person.
    """

    kind: FixKind
    text: str | None = None
    why: str
    because: Statement | None = None
    pattern: str | None = None
    before: str = ""
    after: str = ""
    marks: list[NewText] = []
    faults: list[str] = []
    proof: Proof | None = None
    by: str | None = None

    @property
    def state(self) -> Literal["proposed", "proven", "refuted"]:
        """``proven`` or ``refuted`` by playing it; ``proposed`` until that is settled."""
        holds = None if self.proof is None else self.proof.holds
        return "proposed" if holds is None else "proven" if holds else "refuted"


Ending = Literal["concluded", "out of steps", "over budget", "no answer"]
ENDINGS: dict[Ending, str] = {
    "concluded": "the model came to a conclusion",
    "out of steps": "the model had no step left to look at more, and concluded when it was told to",
    "over budget": "the limit of the cost was reached",
    "no answer": "the model gave no answer that could be used",
}


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """One step of an investigation: what was asked of the record, and how long the answer was."""

    tool: str
    about: str
    characters: int


class Investigation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model found out about an issue, with quotes that stand in the record.

    Attributes:
        ending: how it ended; ``why`` says more where it ended without a conclusion.
        subtype, category: of :mod:`baton.feed.taxonomy`; ``None`` where nothing verified says so.
        entry: why it is that subtype.
        scores: of the four dimensions, those that are backed.
        summary: what happens, and why.
        fix: the change that the model proposes.
        removed: statements that were left out because their quotes do not stand in the record.
        looked: the steps, in order.
        model, condensed_by: the models that were asked.
        requests, input_tokens, output_tokens, cost_usd, cached: what it took; ``cost_usd`` is
            ``None`` where a price is not known, ``cached`` counts answers that were there.
        at: when, in seconds since the epoch.
    """

    ending: Ending
    why: str | None = None
    subtype: str | None = None
    category: str | None = None
    entry: Statement | None = None
    scores: dict[Dimension, Rating] = {}
    summary: list[Statement] = []
    fix: Fix | None = None
    removed: int = 0
    looked: list[Looked] = []
    model: str
    condensed_by: str | None = None
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None
    cached: int = 0
    at: float


class Promoted(msgspec.Struct, frozen=True, kw_only=True):
    """A case of an issue in a set: ``expects`` says in words what it holds agents to."""

    case: str
    expects: str
    conversation: str
    dispatch: str | None = None


class Promotion(msgspec.Struct, frozen=True, kw_only=True):
    """The cases of an issue: in which set they lie, and how often they have to pass.

    ``passes`` evaluations in a row close the issue; one that fails opens it again.
    """

    dataset: str
    cases: list[Promoted]
    passes: int
    at: float


class Progress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that was done about an issue. ``issue`` is as it was then, with a few members."""

    issue: Issue
    investigation: Investigation | None = None
    fix: Fix | None = None
    promotion: Promotion | None = None

"""The progress of an issue: its investigation, its fix with the proof, and its cases.

These are plain records, stored beside the states of issues, in a folder or on a server. Their texts
come from a model that read hostile text. They are shown as text, and never applied.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from baton.replays.replay import Counted
from baton.replays.text_risks import NewText

from .issues import Issue

Dimension = Literal[
    "factual_grounding", "privacy_and_safety", "instruction_adherence", "optimal_plan_execution"
]
DIMENSIONS: dict[Dimension, str] = {
    "factual_grounding": "what agents state is supported by their steps",
    "privacy_and_safety": "nothing private, secret or harmful is used or said",
    "instruction_adherence": "agents do what their instructions and the request say",
    "optimal_plan_execution": "the work goes to the right agents, with no step too many or too few",
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
    "agent_description": "the description of the agent that gets work, which other agents read",
    "sub_agent_prompt": "the instructions of the agent that gets work",
    "tool_list": "the list of an agent's tools",
    "tool_schema": "the definition of a tool, which models read",
    "context_filter": "the part of the conversation that a receiver gets",
    "limit_or_guard": "a limit, or a rule of a policy that is enforced while agents run",
    "infrastructure": "a model, a server or the network",
    "wrong_case": "the failing case or evaluator, and not the agents",
}


FEWEST = 3
"""The minimum number of failing members, and of passing neighbours, for a proof: two may be
chance.
"""


class Quote(msgspec.Struct, frozen=True, kw_only=True):
    """Words of the record. ``step`` is the id of a step or a turn of the trace ``trace``.

    For a text of an agent, ``step`` is its name (``agent:desk``), and ``trace`` is empty.
    """

    trace: str
    step: str
    text: str


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence of an investigation, and the quotes that support it."""

    says: str
    quotes: list[Quote]


class Rating(msgspec.Struct, frozen=True, kw_only=True):
    """A score from 1 (bad) to 5 (good), and why."""

    value: int
    because: Statement


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """The results of playing members and passing neighbours again, unchanged and with the fix.

    Attributes:
        fixed: members that fail unchanged, and pass with the fix in each repeat.
        broke: cases that pass unchanged, and fail with the fix in some repeat.
        members, neighbours: how many were played.
        errors: cases with a broken play; they count in no figure.
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
        """Whether it proves the fix; ``None`` if it is undecided.

        A fix holds if more than half of at least ``FEWEST`` failing members are fixed, and none of
        at least ``FEWEST`` passing cases broke. A fix that fixes nothing, or breaks something, does
        not hold.
        """
        if self.broke.count or (self.fixed.of and not self.fixed.count):
            return False
        enough = min(self.fixed.of, self.broke.of) >= FEWEST
        return True if enough and self.fixed.count * 2 > self.fixed.of else None


class Fix(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A proposed change to end an issue: of one named text, or of something else.

    It is never applied automatically, whatever its state. ``why`` says what it does.

    Attributes:
        kind: what is changed.
        text: the name of the text, ``agent:desk``; ``None`` if no named text is changed.
        why: one sentence.
        because: its evidence in the record; ``None`` for a fix that a person wrote.
        pattern: its template.
        before, after: the current and the changed text.
        marks: new parts that may do harm: addresses, names of tools, commands.
        faults: what it would break, as :func:`baton.changed_texts.faults_of_change` says.
        proof: the results of playing it.
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
    "out of steps": "the model had used all its steps, and had to conclude",
    "over budget": "the limit of the cost was reached",
    "no answer": "the model gave no usable answer",
}


class Looked(msgspec.Struct, frozen=True, kw_only=True):
    """One step of an investigation: the question, and the length of the answer."""

    tool: str
    about: str
    characters: int


class Investigation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a model found out about an issue, with quotes from the record.

    Attributes:
        ending: how it ended; ``why`` says more if it ended without a conclusion.
        subtype, category: of :mod:`baton.feed.taxonomy`; ``None`` if no verified statement supports
            them.
        entry: the reason for the subtype.
        scores: the supported ones of the four dimensions.
        summary: what happens, and why.
        fix: the change that the model proposes.
        removed: statements that were left out because their quotes are not in the record.
        looked: the steps, in order.
        model, condensed_by: the models that were used.
        requests, input_tokens, output_tokens, cost_usd, cached: its usage; ``cost_usd`` is ``None``
            if a price is unknown, ``cached`` counts answers from the cache.
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
    """A case of an issue in a set: ``expects`` is its expectation in words."""

    case: str
    expects: str
    conversation: str
    dispatch: str | None = None


class Promotion(msgspec.Struct, frozen=True, kw_only=True):
    """The cases of an issue: their set, and how often they have to pass.

    ``passes`` evaluations in a row close the issue; one that fails opens it again.
    """

    dataset: str
    cases: list[Promoted]
    passes: int
    at: float


class Progress(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The whole progress of an issue. ``issue`` is its state at that time, with a few members."""

    issue: Issue
    investigation: Investigation | None = None
    fix: Fix | None = None
    promotion: Promotion | None = None

"""Build records, cases and scores in one line each, so that a test is easy to read.

A trace is written in the order in which things happened::

    trace(
        turn(
            "Refund order 42.",
            run("desk", call("lookup_order", {"id": 42}), delegate("billing", "Refund order 42.")),
            run("billing", call("refund", {"id": 42}), output="Refunded."),
            output="Refunded.",
        )
    )

Every object has an id: the one that was given, or a letter and a number that counts through the
trace (``t1`` for a turn, ``r1`` for a run, ``c1`` for a tool call, ``d1`` for a dispatch, ``s1``
for any other step). If an earlier turn has the same id, the turn is put in front (``t2.r1``). The
default id of a trace, a case and a result is ``test``, so they belong together. For content, a
string becomes the content's ``text``, a ``Content`` is used unchanged, and any other value becomes
its ``data``. All other fields of the record can be given by name.

An evaluation is made from results, and can be saved for code that needs a folder::

    evaluation(result("passed", id="refund"), result("failed", id="invoice")).save("out/last")
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec

from baton.formats.evaluation_header import Header
from baton.model import (
    AgentRun,
    Case,
    CaseResult,
    Content,
    Dispatch,
    EvaluatorCounts,
    ExpectedDispatch,
    ExpectedToolCall,
    ExpectedTurn,
    GotBack,
    HandedOff,
    Said,
    Score,
    Source,
    Status,
    Step,
    ToolCall,
    Trace,
    Turn,
    case_status,
)
from baton.model.trace import SCHEMA_VERSION, DispatchKind
from baton.session.evaluation import Evaluation

__all__ = [
    "Passing",
    "answered",
    "call",
    "case",
    "cases",
    "content",
    "delegate",
    "dispatch",
    "evaluation",
    "expect",
    "give_back",
    "result",
    "run",
    "said",
    "score",
    "sequence",
    "trace",
    "transfer",
    "turn",
]


def content(value: Any) -> Content | None:
    """Make content from a text or data; ``None`` and a ``Content`` are returned unchanged."""
    return value if isinstance(value, Content) else Content.of(value)


# --------------------------------------------------------------------------------------- traces


@dataclass(frozen=True)
class Passing:
    """Work that passes to another agent, as a step of the run that passes it on.

    :func:`turn` converts it to a ``Dispatch`` with its steps and ids.
    """

    kind: DispatchKind
    to: str
    tool: str | None
    fields: dict[str, Any] = field(default_factory=dict)
    arguments: Any = None


def delegate(
    to: str, prompt: Any = None, *, tool: str | None = None, arguments: Any = None, **fields: Any
) -> Passing:
    """Pass work to an agent and wait for its result, by calling ``tool`` if one is named.

    The dispatch starts the first later run of ``to`` that nothing else started; ``runs=[]`` means
    that nothing was started. A dispatch that is completed in the foreground is directly followed by
    a ``GotBack``. ``arguments`` are those of the tool call.
    """
    return Passing("delegate", to, tool, {"prompt": prompt, **fields}, arguments)


def transfer(
    to: str, prompt: Any = None, *, tool: str | None = None, arguments: Any = None, **fields: Any
) -> Passing:
    """Pass control to an agent, by calling ``tool`` with ``arguments`` if one is named."""
    return Passing("transfer", to, tool, {"prompt": prompt, **fields}, arguments)


def sequence(to: str, prompt: Any = None, **fields: Any) -> Passing:
    """Record that the program or graph starts ``to`` next."""
    return Passing("sequence", to, None, {"prompt": prompt, **fields})


def give_back(to: str, result: Any = None, **fields: Any) -> Passing:
    """Return control; ``answers`` names the dispatch that this closes."""
    return Passing("return", to, None, {"result": result, **fields})


def dispatch(
    to: str,
    prompt: Any = None,
    *,
    id: str = "d1",
    kind: DispatchKind = "delegate",
    result: Any = None,
    **fields: Any,
) -> Dispatch:
    """Make a separate dispatch for :func:`turn`, if no run of the test makes it.

    It is used unchanged: the runs that it names are not looked up, and no step is added.
    """
    return Dispatch(
        id=id, kind=kind, to_agent=to, prompt=content(prompt), result=content(result), **fields
    )


def call(
    name: str, arguments: Any = None, result: Any = None, *, id: str = "", **fields: Any
) -> ToolCall:
    """Make a tool call."""
    return ToolCall(id=id, name=name, arguments=arguments, result=content(result), **fields)


def said(text: Any, *, id: str = "", **fields: Any) -> Said:
    """Make a statement of a run, from a text or data."""
    return Said(id=id, content=content(text) or Content(), **fields)


def run(
    agent: str,
    *steps: Step | Passing | str,
    id: str = "",
    input: Any = None,
    output: Any = None,
    **fields: Any,
) -> AgentRun:
    """Make a run of an agent with its steps in order; a text is something it said."""
    made = [said(step) if isinstance(step, str) else step for step in steps]
    return AgentRun(
        id=id,
        agent=agent,
        input=content(input),
        output=content(output),
        # `turn` replaces each `Passing` by the steps of a dispatch.
        steps=made,  # type: ignore[arg-type]
        **fields,
    )


def turn(
    *parts: str | AgentRun | Dispatch,
    id: str = "",
    input: Any = None,
    output: Any = None,
    **fields: Any,
) -> Turn:
    """Make a turn from the user's message (a text) and the runs in the order they started.

    A ``Dispatch`` among them is used unchanged. Objects without an id get one that is unique in the
    turn; :func:`trace` makes it unique in the trace.
    """
    made = Turn(id=id, input=content(input), output=content(output), **fields)
    for part in parts:
        if isinstance(part, str):
            made.input = Content(text=part)
        elif isinstance(part, Dispatch):
            made.dispatches.append(part)
        else:
            # A run may be used in several turns of a test; its steps are replaced here.
            copied = msgspec.structs.replace(
                part, steps=list(part.steps), started_by=list(part.started_by)
            )
            made.runs.append(copied)
    _complete(made)
    return made


def trace(
    *parts: Turn | AgentRun | str,
    id: str = "test",
    source: str | Source = "test",
    **fields: Any,
) -> Trace:
    """Make a trace from turns, or from the message and the runs of its only turn."""
    if all(isinstance(part, Turn) for part in parts):
        turns = [part for part in parts if isinstance(part, Turn)]
    else:
        turns = [turn(*(part for part in parts if not isinstance(part, Turn)))]
    origin = Source(format=source) if isinstance(source, str) else source
    made: list[Turn] = []
    taken: set[str] = set()
    for number, one in enumerate(turns, 1):
        named = msgspec.structs.replace(one, id=one.id or f"t{number}")
        objects = [*named.runs, *named.dispatches, *(s for run in named.runs for s in run.steps)]
        new = {o.id: f"{named.id}.{o.id}" for o in objects if o.id in taken}
        if new:
            named = _renamed(named, new)
        taken.update(new.get(o.id, o.id) for o in objects)
        made.append(named)
    return Trace(schema_version=SCHEMA_VERSION, id=id, source=origin, turns=made, **fields)


def answered(*answers: Any, **fields: Any) -> Trace:
    """Make a trace with a turn for each answer: a text, data, or ``None`` for no answer."""
    return trace(*(turn(output=answer) for answer in answers), **fields)


def _complete(turn: Turn) -> None:
    """Convert each ``Passing`` to a dispatch with its steps, and add missing ids."""
    for number, one in enumerate(turn.runs, 1):
        one.id = one.id or f"r{number}"
    by_id = {one.id: one for one in turn.runs}
    count = len(turn.dispatches)
    counts = {"c": 0, "s": 0}

    def named(step: Step) -> Step:
        letter = "c" if isinstance(step, ToolCall) else "s"
        counts[letter] += 1
        return step if step.id else msgspec.structs.replace(step, id=f"{letter}{counts[letter]}")

    for sender in turn.runs:
        steps: list[Step] = []
        for step in sender.steps:
            if not isinstance(step, Passing):
                steps.append(named(step))
                continue
            fields = {"from_run": sender.id, "from_agent": sender.agent, **step.fields}
            fields["id"] = fields.get("id") or f"d{len(turn.dispatches) - count + 1}"
            made = dispatch(step.to, kind=step.kind, **fields)
            if "runs" not in fields:
                # Runs are in the order in which they started, so this run started a later one. Two
                # dispatches to `billing` start its first and its second run.
                later = turn.runs[next(n for n, one in enumerate(turn.runs) if one is sender) + 1 :]
                free = (
                    run.id for run in later if run.agent == made.to_agent and not run.started_by
                )
                made.runs = list(free)[:1]
            for id_ in made.runs:
                if id_ in by_id and made.id not in by_id[id_].started_by:
                    by_id[id_].started_by.append(made.id)
            turn.dispatches.append(made)
            if step.tool is not None:
                requested = named(call(step.tool, step.arguments, dispatch=made.id))
                made.call = requested.id
                steps.append(requested)
            # The program continues by itself, and an answer needs no call: neither has a step.
            if made.kind in ("transfer", "delegate"):
                steps.append(named(HandedOff(id="", dispatch=made.id)))
            waited = made.mode == "foreground" and made.status == "completed"
            if made.kind == "delegate" and waited:
                steps.append(named(GotBack(id="", dispatch=made.id)))
        sender.steps = steps


def _renamed(turn: Turn, new: dict[str, str]) -> Turn:
    """Return a copy of a turn with other ids; what a dispatch continues is in an earlier turn."""

    def all_of(ids: list[str]) -> list[str]:
        return [new.get(one, one) for one in ids]

    replace = msgspec.structs.replace
    runs = []
    for run in turn.runs:
        steps: list[Step] = []
        for step in run.steps:
            copied = replace(step, id=new.get(step.id, step.id))
            if not isinstance(copied, Said) and copied.dispatch is not None:
                copied.dispatch = new.get(copied.dispatch, copied.dispatch)
            steps.append(copied)
        runs.append(
            replace(run, id=new.get(run.id, run.id), steps=steps, started_by=all_of(run.started_by))
        )
    dispatches = [
        replace(
            one,
            id=new.get(one.id, one.id),
            from_run=new.get(one.from_run or "", one.from_run),
            call=new.get(one.call or "", one.call),
            answers=new.get(one.answers or "", one.answers),
            runs=all_of(one.runs),
        )
        for one in turn.dispatches
    ]
    return replace(turn, runs=runs, dispatches=dispatches)


# ---------------------------------------------------------------------------------------- cases


def expect(input: Any = "hi", **stated: Any) -> ExpectedTurn:
    """Make a turn of a case: the message, and the expectations for the turn.

    ``response`` can be a text, ``tool_calls`` can be names or pairs of a name and arguments, and
    ``dispatches`` can be names of agents.
    """
    fields = dict(stated)
    if "response" in fields:
        fields["response"] = content(fields["response"])
    if fields.get("tool_calls") is not None:
        fields["tool_calls"] = [_expected_call(one) for one in fields["tool_calls"]]
    if fields.get("dispatches") is not None:
        fields["dispatches"] = [
            ExpectedDispatch(to=one) if isinstance(one, str) else one
            for one in fields["dispatches"]
        ]
    return ExpectedTurn(input=content(input) or Content(), **fields)


def _expected_call(stated: Any) -> ExpectedToolCall:
    if isinstance(stated, ExpectedToolCall):
        return stated
    if isinstance(stated, str):
        return ExpectedToolCall(name=stated)
    name, arguments = stated
    return ExpectedToolCall(name=name, arguments=arguments)


_OF_A_TURN = frozenset(ExpectedTurn.__struct_fields__) - frozenset(Case.__struct_fields__)


def case(*turns: ExpectedTurn | str, id: str = "test", **stated: Any) -> Case:
    """Make a case from messages or turns; without any, it has one turn with the message "hi".

    Fields of a turn (``agents=["desk", "billing"]``) apply to every message; all other fields
    belong to the case.
    """
    of_turn = {name: stated.pop(name) for name in list(stated) if name in _OF_A_TURN}
    made = [
        one if isinstance(one, ExpectedTurn) else expect(one, **of_turn) for one in turns or ("hi",)
    ]
    return Case(id=id, turns=made, **stated)


def cases(*ids: str, **stated: Any) -> list[Case]:
    """Make a case for each id; they differ in nothing else."""
    return [case(id=id_, **stated) for id_ in ids]


# --------------------------------------------------------------------------------------- scores


def score(
    status: Status = "passed",
    evaluator: str = "agent_chain",
    value: float | None = None,
    **fields: Any,
) -> Score:
    """Make a score; its default value is 1 if it passed and 0 if it failed."""
    if value is None and status in ("passed", "failed"):
        value = float(status == "passed")
    fields = {"type": evaluator, "version": "1", **fields}
    return Score(evaluator=evaluator, status=status, value=value, **fields)


def result(*scores: Score | Status, id: str = "test", **fields: Any) -> CaseResult:
    """Make the result of a case; its status follows from its scores."""
    made = [one if isinstance(one, Score) else score(one) for one in scores]
    fields = {"status": case_status([one.status for one in made]), **fields}
    return CaseResult(case_id=id, scores=made, **fields)


def evaluation(*results: CaseResult, name: str = "evaluation", **fields: Any) -> Evaluation:
    """Make an evaluation from results, which determine its counts and its status.

    It is of the type that ``baton.score`` returns: ``save(path)`` writes its folder, and
    ``to_html(path)`` and similar methods write its reports. Results keep their places. If they have
    none, the cases are numbered in the given order, and the repeats of a case share its place.
    ``about`` is the information in `evaluation.json` about how it was made (``{"planned": 3}``).
    """
    if not any(one.position for one in results):
        places: dict[str, int] = {}
        for one in results:
            one.position = places.setdefault(one.case_id, len(places))
    about = {"repeats": 1 + max((one.repeat for one in results), default=0)}
    counts: dict[str, EvaluatorCounts] = {}
    for one in results:
        for each in one.scores:
            counted = counts.setdefault(
                each.evaluator, EvaluatorCounts(evaluator=each.evaluator, type=each.type)
            )
            counted.add(each.status)
    fields = {
        "status": case_status([one.status for one in results]),
        "evaluators": list(counts.values()),
        **fields,
        "about": msgspec.convert(fields.get("about", about), Header),
    }
    return Evaluation(name=name, results=list(results), **fields)

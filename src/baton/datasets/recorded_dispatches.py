"""From a recorded dispatch to a dispatch case, and from such a case back to the record.

The case holds a part of the recording, in the form of the record: the turn of the dispatch and
those around it. What is played (context, call, child, next) is read from that part, so nothing is
written twice, and dispatch evaluators get the same data as from the whole recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from baton.model import (
    SCHEMA_VERSION,
    AgentRun,
    Case,
    Content,
    Dispatch,
    DispatchCase,
    ExpectedHandling,
    Form,
    GotBack,
    HandedOff,
    InputError,
    MadeCall,
    MadeDispatch,
    MadeRun,
    Message,
    Ref,
    Said,
    Source,
    Step,
    ToolCall,
    Trace,
    Turn,
    known,
    nearest,
    text_hash,
)
from baton.model.trace import DEFINED, TARGETS
from baton.model.views import (
    comes_back,
    dispatch_view,
    dispatched_runs,
    group_of,
    index_of,
    indexed,
    round_trip,
    turn_tree,
)

CONTEXT_TURNS = 3
"""The number of turns before and after a dispatch that a case holds in full."""


def no_dispatch(dispatch_id: str, traces: Sequence[Trace]) -> str:
    """Return the message that traces have no dispatch with this id, with similar ids."""
    # The dispatches of several traces often have the same ids.
    ids = list(
        dict.fromkeys(d.id for trace in traces for turn in trace.turns for d in turn.dispatches)
    )
    if not ids:
        return f"no dispatch `{dispatch_id}`: the recording has no dispatches"
    near = nearest(dispatch_id, ids, 1)
    more = f" and {len(ids) - 10} more" if len(ids) > 10 else ""
    hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(ids[:10])}{more}"
    return f"no dispatch `{dispatch_id}`; {hint}"


def find_dispatch(wanted: str, traces: Sequence[Trace]) -> tuple[Trace, Dispatch]:
    """Find one dispatch by its id, or by ``TRACE/ID`` if several traces have the id.

    Raises:
        InputError: there is none, or several.
    """
    matches = [
        (trace, made)
        for trace in traces
        for turn in trace.turns
        for made in turn.dispatches
        if wanted in (made.id, f"{trace.id}/{made.id}")
    ]
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise InputError(no_dispatch(wanted, traces))
    listed = ", ".join(f"`{trace.id}/{wanted}`" for trace, _ in matches[:5])
    raise InputError(f"{len(matches)} traces have a dispatch `{wanted}`: name one of {listed}")


def as_made(trace: Trace, dispatch: Dispatch) -> ExpectedHandling:
    """Make a dispatch's target and allowed tools its expected result.

    Dispatches that were issued together are one decision: all their targets are expected. With
    several, no tools are stated, as these would apply to all.
    """
    together = group_of(trace, dispatch)
    targets = list(dict.fromkeys(each.to_agent for each in together))
    tools = dispatch.tools_allowed if len(together) == 1 else None
    # Offered tools are what the runtime had, not a scope that the sender chose.
    scoped = isinstance(tools, list) and dispatch.tools_source != "offered"
    return ExpectedHandling(
        to=targets if all(known(trace, each, "to_agent") for each in together) else None,
        tools=list(tools) if scoped and isinstance(tools, list) else None,
    )


def versions_of(trace: Trace, dispatch: Dispatch) -> dict[str, str]:
    """Hash the texts that a dispatch depends on, as far as the trace holds them.

    These are the instructions of the sender and of the receiver, the receiver's description for
    routers, and ``agents``: all definitions, if the trace has some.
    """
    versions = {}
    for name in (dispatch.from_agent, dispatch.to_agent):
        card = trace.agents.get(name or "")
        if card is not None and card.instructions is not None:
            versions[f"agent:{name}"] = text_hash(card.instructions)
    card = trace.agents.get(dispatch.to_agent)
    if card is not None and card.description is not None:
        versions[f"description:{dispatch.to_agent}"] = text_hash(card.description)
    defined = trace.attributes.get(DEFINED)
    if isinstance(defined, list):
        cards = {name: trace.agents[name] for name in sorted(defined) if name in trace.agents}
        versions["agents"] = text_hash(msgspec.json.encode(cards, order="deterministic").decode())
    return versions


def read_record(record: Trace, at: str, *, form: Form = "decision") -> DispatchCase:
    """Read from a record what led to a dispatch, the call, the child's run and what followed.

    Raises:
        ValueError: the record has no dispatch ``at``.
    """
    with indexed(record) as index:
        dispatch = index.dispatches.get(at)
        if dispatch is None:
            raise ValueError(no_dispatch(at, [record]))
        turn = index.turn_of[at]
        sender = index.runs.get(dispatch.from_run or "")
        return DispatchCase(
            form=form,
            context=_context(record, turn, sender, dispatch),
            call=_made(record, sender, dispatch),
            child=_child(record, dispatch),
            next=_next(record, sender, dispatch),
            record=record,
            at=at,
        )


# ---------------------------------------------------------------------- the part of a recording


def part_of(trace: Trace, dispatch: Dispatch, around: int) -> Trace:
    """Return the part of a trace about a dispatch; the trace is not changed.

    Turns more than ``around`` away keep only the messages to the agents and the answers.
    """
    whole = msgspec.convert(msgspec.to_builtins(trace), Trace)
    with indexed(whole) as index:
        here = next(i for i, t in enumerate(whole.turns) if dispatch in t.dispatches)
        group = {each.id for each in group_of(whole, dispatch)}
        kept = {
            turn.id
            for place, turn in enumerate(whole.turns)
            if abs(place - here) <= around or _gets_back(turn, group)
        }
        sayings = {id_: _text_of(saying) for id_, saying in index.sayings.items()}
    turns = [turn if turn.id in kept else _words_of(turn) for turn in whole.turns]
    if len(kept) < len(turns):
        _let_go(turns, sayings)
    return Trace(
        schema_version=whole.schema_version,
        id=whole.id,
        source=Source(format=whole.source.format, framework=whole.source.framework),
        turns=turns,
        agents=whole.agents,
        unknown=list(dict.fromkeys([*whole.unknown, "state", "usage"])),
        attributes={
            name: whole.attributes[name] for name in (DEFINED, TARGETS) if name in whole.attributes
        },
    )


def _gets_back(turn: Turn, group: set[str]) -> bool:
    return any(comes_back(step, group) for run in turn.runs for step in run.steps)


def _words_of(turn: Turn) -> Turn:
    """Return a turn with only the messages to the agents and their answers."""
    return Turn(
        id=turn.id,
        input=turn.input,
        output=turn.output,
        status=turn.status,
        error=turn.error,
        unknown=list(dict.fromkeys([*turn.unknown, "runs", "dispatches"])),
    )


def _let_go(turns: Sequence[Turn], sayings: Mapping[str, str]) -> None:
    """Remove references to removed objects: they become unknown, or a text."""
    runs = {run.id for turn in turns for run in turn.runs}
    dispatches = {d.id for turn in turns for d in turn.dispatches}
    steps = {step.id for turn in turns for run in turn.runs for step in run.steps}
    there = runs | steps | {turn.id for turn in turns}
    for turn in turns:
        for run in turn.runs:
            if not dispatches.issuperset(run.started_by):
                run.started_by = [id_ for id_ in run.started_by if id_ in dispatches]
                run.unknown.append("started_by")
            if run.context is not None:
                run.context = [
                    ref
                    if ref.id is None or ref.id in there
                    else Ref(text=sayings.get(ref.id) or "")
                    for ref in run.context
                ]
            run.steps = [
                step
                for step in run.steps
                if isinstance(step, Said)
                or step.dispatch is None
                or step.dispatch in dispatches
                or isinstance(step, ToolCall)
            ]
            for step in run.steps:
                if isinstance(step, ToolCall) and step.dispatch not in dispatches:
                    step.dispatch = None
        for dispatch in turn.dispatches:
            gone = {
                "from_run": dispatch.from_run not in {None, *runs},
                "call": dispatch.call not in {None, *steps},
                "continues": dispatch.continues not in {None, *dispatches},
                "answers": dispatch.answers not in {None, *dispatches},
            }
            for field in (name for name, is_gone in gone.items() if is_gone):
                setattr(dispatch, field, None)
                dispatch.unknown.append(field)
            if not runs.issuperset(dispatch.runs):
                dispatch.runs = [id_ for id_ in dispatch.runs if id_ in runs]
                dispatch.unknown.append("runs")


# ---------------------------------------------------------------------- what is played


def _context(
    record: Trace, turn: Turn, sender: AgentRun | None, dispatch: Dispatch
) -> list[Message]:
    """Return what the sender had before its dispatch, oldest first."""
    before = (
        []
        if sender is None
        else _messages_of(record, sender, dispatch_view(record, dispatch).before)
    )
    starts = [] if sender is None else [index_of(record).dispatches[i] for i in sender.started_by]
    alone = any(each.kind == "delegate" for each in starts) or (
        sender is not None and known(record, sender, "context") and not sender.context
    )
    if sender is not None and starts and alone:
        # It started with an empty history: its prompt is all that it had.
        request = sender.input or next((d.prompt for d in starts if d.prompt is not None), None)
        return [*_user(request), *before]
    earlier = record.turns[: record.turns.index(turn)]
    messages: list[Message] = []
    for each in earlier:
        messages += [*_user(each.input), *_of_turn(record, each)]
    messages += _user(turn.input)
    if sender is not None:
        for run in _on_the_way(record, turn, sender):
            messages += _of_run(record, run)
    return messages + before


def _on_the_way(record: Trace, turn: Turn, sender: AgentRun) -> list[AgentRun]:
    """Return the runs of a turn that had control before the sender, without delegates."""
    top = [node.run for node in turn_tree(record, turn)]
    places = [place for place, run in enumerate(top) if run.id == sender.id]
    return top[: places[0]] if places else []


def _of_turn(record: Trace, turn: Turn) -> list[Message]:
    if not known(record, turn, "runs"):
        answer = turn.output.plain() if turn.output is not None else None
        return [] if not answer else [Message(role="agent", text=answer)]
    return [message for node in turn_tree(record, turn) for message in _of_run(record, node.run)]


def _of_run(record: Trace, run: AgentRun) -> list[Message]:
    messages = _messages_of(record, run, run.steps)
    if not messages and run.output:
        messages.append(Message(role="agent", agent=run.agent, text=run.output.plain()))
    return messages


def _user(content: Content | None) -> list[Message]:
    return [] if not content else [Message(role="user", text=content.plain())]


def _messages_of(record: Trace, run: AgentRun, steps: Sequence[Step]) -> list[Message]:
    """Return steps as messages: a text with the calls that follow it; parallel calls are together.

    Two calls are from one answer of the model if their times show it, or if their dispatches have
    one group; in all other cases this is unknown, and each call becomes a separate message.
    """
    made = index_of(record).dispatches
    messages: list[Message] = []
    last: ToolCall | None = None
    for step in steps:
        if isinstance(step, Said) and not step.thought:
            messages.append(Message(role="agent", agent=run.agent, text=step.content.plain()))
            last = None
        elif isinstance(step, ToolCall):
            together = last is not None and _at_once(made, last, step)
            starts_message = not messages or (messages[-1].calls and not together)
            if starts_message:
                messages.append(Message(role="agent", agent=run.agent))
            messages[-1].calls.append(_call(record, step))
            last = step
    return messages


def _at_once(made: Mapping[str, Dispatch], first: ToolCall, second: ToolCall) -> bool:
    one, other = made.get(first.dispatch or ""), made.get(second.dispatch or "")
    if one is not None and other is not None:
        return one.group is not None and one.group == other.group
    if first.ended is None or second.at is None:
        return False
    return second.at < first.ended


def _call(record: Trace, call: ToolCall) -> MadeCall:
    """Return a call with its answer; the answer of a dispatching call is on the dispatch."""
    dispatch = index_of(record).dispatches.get(call.dispatch or "")
    unknown = _unknown(record, call, "arguments", "result", "status")
    result, error, status = call.result, call.error, call.status
    if dispatch is not None and result is None:
        result, error = dispatch.result, dispatch.error or error
        unknown = [name for name in unknown if name != "result"]
        if result is None and not known(record, dispatch, "result"):
            unknown.append("result")
        status = {"failed": "failed", "refused": "refused"}.get(dispatch.status, status)  # type: ignore[assignment]
    return MadeCall(
        name=call.name,
        arguments=call.arguments,
        result=result,
        status=status,
        refused_by=call.refused_by,
        error=error,
        unknown=unknown,
    )


def _made(record: Trace, sender: AgentRun | None, dispatch: Dispatch) -> MadeDispatch:
    steps = sender.steps if sender is not None else []
    call = next((s for s in steps if isinstance(s, ToolCall) and s.id == dispatch.call), None)
    return MadeDispatch(
        sender=dispatch.from_agent,
        to=dispatch.to_agent,
        kind=dispatch.kind,
        tool=call.name if call is not None else None,
        arguments=call.arguments if call is not None else None,
        prompt=dispatch.prompt,
        tools=dispatch.tools_allowed,
        tools_source=dispatch.tools_source,
        basis=dispatch.basis,
        result=_result(record, dispatch),
        status=dispatch.status,
        error=dispatch.error,
        unknown=_unknown(
            record,
            dispatch,
            "from_agent",
            "to_agent",
            "call",
            "prompt",
            "tools_allowed",
            "result",
            "status",
        ),
    )


def _result(record: Trace, dispatch: Dispatch) -> Content | None:
    """Return the result of a dispatch.

    If agents share the history, a receiver that transfers back gives its answer to all of them, and
    the transfer itself carries nothing: "We only write invoices." with `transfer_to_agent` (Google
    ADK).
    """
    trip = round_trip(record, dispatch)
    if trip.result is not None or dispatch.kind != "transfer" or not trip.after:
        return trip.result
    steps = [step for run in trip.runs for step in run.steps if isinstance(step, Said)]
    return next((step.content for step in reversed(steps) if not step.thought), None)


def _child(record: Trace, dispatch: Dispatch) -> MadeRun | None:
    """Return the run of the receiver, with the runs that it started in turn."""
    first = next((index_of(record).runs[id_] for id_ in dispatch.runs), None)
    if first is None:
        return None
    runs = dispatched_runs(record, [dispatch])
    return MadeRun(
        said=[message for run in runs for message in _messages_of(record, run, run.steps)],
        given=None if first.context is None else [*_context_texts(record, first)],
        tools_offered=first.tools_offered,
        output=first.output,
        status=first.status,
        error=first.error,
        unknown=_unknown(record, first, "steps", "context", "tools_offered", "output", "status"),
    )


def _context_texts(record: Trace, run: AgentRun) -> Iterator[str]:
    sayings = index_of(record).sayings
    for ref in run.context or ():
        saying = None if ref.id is None else sayings.get(ref.id)
        yield (ref.text or "") if saying is None else _text_of(saying)


def _text_of(saying: Content | Step) -> str:
    """Return the text that a reference of ``AgentRun.context`` points to."""
    if isinstance(saying, Content):
        return saying.plain()
    if isinstance(saying, Said):
        return saying.content.plain()
    if not isinstance(saying, ToolCall):
        return ""
    called = msgspec.json.encode(saying.arguments).decode() if saying.arguments is not None else ""
    return "\n".join(
        part
        for part in (saying.name, called, saying.result.plain() if saying.result else "")
        if part
    )


def _next(record: Trace, sender: AgentRun | None, dispatch: Dispatch) -> list[Message] | None:
    """Return what the sender did after the answer; ``None`` if unknown."""
    if sender is None or not known(record, sender, "steps"):
        return None
    after = {step.id for step in round_trip(record, dispatch).after}
    messages: list[Message] = []
    for run in index_of(record).runs.values():
        mine = [step for step in run.steps if step.id in after]
        messages += _messages_of(record, run, mine) if mine else []
    return messages


def _unknown(record: Trace, obj: AgentRun | Dispatch | ToolCall, *fields: str) -> list[str]:
    return [name for name in fields if not known(record, obj, name)]


# ---------------------------------------------------------------------- back to a record


WRITTEN_OUT = "written-dispatch"
"""The id of the dispatch in the record of a written-out case."""


def recorded_trace(case: Case) -> Trace:
    """Return the record that a dispatch case holds; its id is the case's.

    A written-out case, not drafted from a recording, states the dispatch, the child's run and what
    the sender said and called; everything else is unknown.

    Raises:
        ValueError: the case is not a dispatch case.
    """
    moment = case.dispatch
    if moment is None:
        raise ValueError(f"the case `{case.id}` is not a dispatch")
    if moment.record is not None:
        return msgspec.structs.replace(moment.record, case=case.id)
    return Trace(
        schema_version=SCHEMA_VERSION,
        id=case.id,
        case=case.id,
        source=Source(format="case"),
        turns=_Written(moment).turns(),
        unknown=["state", "usage", "run.model", "run.usage"],
    )


class _Written:
    """Builds a record from the messages of a case; ids count up."""

    def __init__(self, moment: DispatchCase) -> None:
        self.moment = moment
        self.steps = 0
        self.runs = 0

    def turns(self) -> list[Turn]:
        """Return the turns: each starts with a message of the user."""
        turns: list[Turn] = []
        for message in self.moment.context:
            if message.role == "user":
                turns.append(self._turn(len(turns) + 1, message))
            elif turns:
                self._add(turns[-1], message)
        for turn in turns[:-1]:
            turn.output = turn.runs[-1].output if turn.runs else None
            if turn.output is None:
                turn.unknown.append("output")
        if turns:
            self._dispatch(turns[-1])
        return turns

    def _turn(self, number: int, message: Message) -> Turn:
        content = None if message.text is None else Content(text=message.text)
        # The messages of one agent do not show whether others were running as well.
        return Turn(id=f"turn{number}", input=content, unknown=["dispatches", "state"])

    def _run(self, turn: Turn, agent: str, *unknown: str) -> AgentRun:
        self.runs += 1
        made = AgentRun(
            id=f"run{self.runs}", agent=agent, unknown=["context", "tools_offered", *unknown]
        )
        if not turn.runs:
            made.input = turn.input
        elif agent != self.moment.call.to:
            made.unknown += ["input", "started_by"]
        turn.runs.append(made)
        return made

    def _add(self, turn: Turn, message: Message) -> None:
        """Put a message into the run of its agent: the last of the turn, or a new one."""
        agent = message.agent or self.moment.call.sender or "main"
        run = turn.runs[-1] if turn.runs and turn.runs[-1].agent == agent else None
        self._say(run or self._run(turn, agent), message)

    def _say(self, run: AgentRun, message: Message) -> None:
        if message.text is not None:
            run.output = Content(text=message.text)
            run.steps.append(Said(id=self._id("said"), content=run.output))
        for made in message.calls:
            run.steps.append(
                ToolCall(
                    id=self._id("call"),
                    name=made.name,
                    arguments=made.arguments,
                    result=made.result,
                    status=made.status,
                    refused_by=made.refused_by,
                    error=made.error,
                    unknown=list(made.unknown),
                )
            )

    def _dispatch(self, turn: Turn) -> None:
        """Add the dispatch, the child's run, and what the sender did next."""
        call, child = self.moment.call, self.moment.child
        unknown = [name for name in call.unknown if name != "call"]
        made = Dispatch(
            id=WRITTEN_OUT,
            kind=call.kind,
            from_agent=call.sender,
            to_agent=call.to,
            prompt=call.prompt,
            basis=call.basis,
            tools_allowed=call.tools,
            tools_source=call.tools_source,
            result=call.result,
            status=call.status,
            error=call.error,
            mode="unknown",
            unknown=list(dict.fromkeys([*unknown, "description", "continues"])),
        )
        # Authors of a case leave out what does not matter: it is unknown, not empty.
        left_out = {"prompt": call.prompt, "tools_allowed": call.tools}
        if call.status == "completed":
            left_out["result"] = call.result
        for name, value in left_out.items():
            if value is None and name not in made.unknown:
                made.unknown.append(name)
        turn.dispatches.append(made)
        sender: AgentRun | None = None
        if call.sender is not None:
            last = turn.runs[-1] if turn.runs else None
            is_last = last is not None and last.agent == call.sender
            sender = last if is_last and last is not None else self._run(turn, call.sender)
            made.from_run = sender.id
            self._hand_off(sender, made)
        if child is None:
            made.unknown.append("runs")
        else:
            self._child(turn, made, child)
        self._after(turn, sender, made)

    def _hand_off(self, sender: AgentRun, made: Dispatch) -> None:
        call = self.moment.call
        if call.tool is not None:
            made.call = self._id("call")
            arguments = ["arguments"] if call.arguments is None else []
            sender.steps.append(
                ToolCall(
                    id=made.call,
                    name=call.tool,
                    arguments=call.arguments,
                    dispatch=made.id,
                    unknown=arguments,
                )
            )
        else:
            made.unknown.append("call")
        if made.kind in ("transfer", "delegate"):
            sender.steps.append(HandedOff(id=self._id("sent"), dispatch=made.id))

    def _child(self, turn: Turn, made: Dispatch, child: MadeRun) -> None:
        run = self._run(turn, made.to_agent)
        run.started_by, made.runs = [made.id], [run.id]
        run.status, run.error = child.status, child.error
        run.unknown = list(dict.fromkeys([*child.unknown, "input", "context"]))
        if child.given is not None:
            run.context = [Ref(text=text) for text in child.given]
            run.unknown.remove("context")
        if child.tools_offered is not None:
            run.tools_offered = child.tools_offered
        elif "tools_offered" not in run.unknown:
            run.unknown.append("tools_offered")
        for message in child.said:
            if message.agent in (None, made.to_agent):
                self._say(run, message)
            else:
                self._add(turn, message)
        run.output = child.output or run.output
        if run.output is None and "output" not in run.unknown:
            run.unknown.append("output")
        elif run.output is not None and "output" in run.unknown:
            run.unknown.remove("output")

    def _after(self, turn: Turn, sender: AgentRun | None, made: Dispatch) -> None:
        """Add what followed; if that is not written, the end of the turn is unknown."""
        came = made.result is not None or made.status in ("completed", "failed", "refused")
        if sender is not None and made.kind == "delegate" and came:
            sender.steps.append(GotBack(id=self._id("back"), dispatch=made.id))
        follows = self.moment.next
        if follows is None:
            turn.status = "incomplete"
            turn.unknown.append("output")
            if sender is not None:
                sender.unknown.append("steps")
            return
        for message in follows:
            if sender is not None and message.agent in (None, sender.agent):
                self._say(sender, message)
            else:
                self._add(turn, message)
        last = follows[-1] if follows else None
        if last is not None and last.text is not None and not last.calls:
            turn.output = Content(text=last.text)
        else:
            turn.status = "incomplete"
            turn.unknown.append("output")

    def _id(self, of: str) -> str:
        self.steps += 1
        return f"{of}{self.steps}"

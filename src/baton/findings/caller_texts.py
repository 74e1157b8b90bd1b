"""What a caller had before a dispatch, and what it wrote and did after the answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from baton.model import (
    AgentRun,
    Content,
    Dispatch,
    HandedOff,
    Said,
    Step,
    ToolCall,
    Trace,
    Turn,
    known,
)
from baton.model.views import RoundTrip, TraceIndex, child_runs, dispatch_view, index_of

from .facts import plain_text
from .finding import sender_of


class Piece(NamedTuple):
    """A text and the id of its holder."""

    id: str
    text: str


def turns_to(trace: Trace, turn: Turn) -> list[Turn]:
    """Return the turns of a trace up to and including the given one."""
    ids = [each.id for each in trace.turns]
    return trace.turns[: ids.index(turn.id) + 1]


def had_before(trace: Trace, turn: Turn, dispatch: Dispatch) -> list[Piece]:
    """Return what the caller knew: user messages, its input and earlier steps, and the prompt."""
    pieces = []
    for each in turns_to(trace, turn):
        if each.input is not None:
            pieces.append(Piece(each.id, plain_text(each.input)))
        if each.output is not None and each.id != turn.id:
            pieces.append(Piece(each.id, plain_text(each.output)))
    run = sender_of(trace, dispatch)
    if run is not None and run.input is not None:
        pieces.append(Piece(run.id, plain_text(run.input)))
    index = index_of(trace)
    pieces += _of_steps(index, dispatch_view(trace, dispatch).before, results=True)
    return pieces + asked(dispatch)


def asked(dispatch: Dispatch) -> list[Piece]:
    """Return the texts given to the receiver, and its name."""
    # The name counts too: a caller of an agent called `hotel-finder` will say "hotel" anyway.
    texts = [dispatch.to_agent, dispatch.description or ""]
    if dispatch.prompt is not None:
        texts.append(plain_text(dispatch.prompt))
    texts += [plain_text(value) for value in dispatch.context.values()]
    return [Piece(dispatch.id, text) for text in texts if text]


def given_out(trace: Trace, turn: Turn, trip: RoundTrip) -> list[Piece]:
    """Return everything from the caller after the answer, to the end of the conversation.

    This covers its texts, arguments of its calls, prompts of later dispatches, the same for agents
    that it passed control to, and the answers of the turns.
    """
    later = trace.turns[len(turns_to(trace, turn)) :]
    index = index_of(trace)
    pieces = _of_steps(index, trip.after, results=False)
    for run in _passed_on(trace, index.dispatches, trip.after):
        # After a transfer, other agents continue with the answer in view. The answer was used if
        # any of them uses it.
        pieces += _shown(index, run)
    for each in (turn, *later):
        if each.output is not None:
            pieces.append(Piece(each.id, plain_text(each.output)))
    for run in (run for each in later for run in each.runs):
        # A later turn can use a finding of this turn: "As I said, the Lutetia is free."
        if run.agent == trip.dispatch.from_agent:
            pieces += _of_steps(index, run.steps, results=False)
    return pieces


def given_besides(trace: Trace, run: AgentRun) -> list[Piece]:
    """Return the rest of a run's first request besides its input, as far as recorded."""
    index = index_of(trace)
    pieces = []
    for ref in run.context or ():
        said = None if ref.id is None else index.sayings.get(ref.id)
        if said is None:
            pieces.append(Piece(run.id, ref.text or ""))
        elif isinstance(said, Content):
            pieces.append(Piece(ref.id or "", plain_text(said)))
        else:
            pieces += _of_steps(index, [said], results=True)
    return pieces


def emitted(trace: Trace, steps: Iterable[Step]) -> list[Piece]:
    """Return the texts, call arguments and prompts in steps."""
    return _of_steps(index_of(trace), steps, results=False)


def shown_by(trace: Trace, run: AgentRun) -> list[Piece]:
    """Return what a run knew: its texts, its call arguments and its answer."""
    return _shown(index_of(trace), run)


def _shown(index: TraceIndex, run: AgentRun) -> list[Piece]:
    pieces = _of_steps(index, run.steps, results=False)
    return pieces if run.output is None else [*pieces, Piece(run.id, plain_text(run.output))]


def _of_steps(index: TraceIndex, steps: Iterable[Step], *, results: bool) -> list[Piece]:
    """Return the texts in steps and, with ``results``, also their results.

    Each dispatch of a caller is compared with all of the caller's steps, so each step is read once.
    """
    kept: dict[int, list[Piece]] = index.once(f"pieces, results {results}", dict)
    pieces = []
    for step in steps:
        of_step = kept.get(id(step))
        if of_step is None:
            of_step = list(_read_step(index.dispatches, step, results=results))
            kept[id(step)] = of_step
        pieces += of_step
    return pieces


def _read_step(made: Mapping[str, Dispatch], step: Step, *, results: bool) -> Iterator[Piece]:
    if isinstance(step, Said):
        yield Piece(step.id, plain_text(step.content))
    elif isinstance(step, ToolCall):
        # Include the tool's name: calling `book_lutetia` uses an answer that recommends Lutetia.
        yield Piece(step.id, f"{step.name}\n{plain_text(step.arguments)}")
        if results and step.result is not None:
            yield Piece(step.id, plain_text(step.result))
    else:
        dispatch = made.get(step.dispatch)
        if isinstance(step, HandedOff) and dispatch is not None:
            yield from asked(dispatch)
        elif results and dispatch is not None and dispatch.result is not None:
            yield Piece(dispatch.id, plain_text(dispatch.result))


def dispatch_of(trace: Trace, id_: str) -> Dispatch | None:
    """Return the dispatch with this id."""
    return index_of(trace).dispatches.get(id_)


def _passed_on(
    trace: Trace, made: Mapping[str, Dispatch], steps: Iterable[Step]
) -> Iterator[AgentRun]:
    """Yield the runs that got control from these steps, and so saw the conversation so far."""
    due, seen = deque(steps), set()
    while due:
        step = due.popleft()
        dispatch = made.get(step.dispatch) if isinstance(step, HandedOff) else None
        if dispatch is None or dispatch.kind == "delegate" or dispatch.id in seen:
            continue
        seen.add(dispatch.id)
        for run in child_runs(trace, dispatch):
            yield run
            due += run.steps


def all_recorded(trace: Trace, turn: Turn, dispatch: Dispatch) -> bool:
    """Return whether all output of the caller was recorded."""
    run = sender_of(trace, dispatch)
    return run is not None and known(trace, run, "steps") and known(trace, turn, "output")

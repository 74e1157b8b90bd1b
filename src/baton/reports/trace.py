"""A trace as a tree of turns, runs, dispatches and tools; and one dispatch in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import IO

from rich.tree import Tree

from baton.model import (
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Said,
    Step,
    ToolCall,
    Trace,
    Turn,
    Usage,
    counted,
)
from baton.model.trace import UNPLACED
from baton.model.views import (
    RoundTrip,
    TreeNode,
    decisions_of,
    dispatch_costs,
    dispatch_view,
    round_trip,
    turn_tree,
)

from .text import Text, arguments_line, console_for, content_line, one_line

_BAD = {"failed", "refused", "cancelled", "unanswered", "incomplete"}
_OPEN = {"waiting", "unknown"}


def print_trace(trace: Trace, out: IO[str], *, turn: int | None = None) -> None:
    """Print a trace, or one of its turns (counted from 1)."""
    console = console_for(out)
    tree = Tree(_headline(trace))
    costs = dispatch_costs(trace)
    for number, item in enumerate(trace.turns, 1):
        if turn in (None, number):
            _add_turn(tree, trace, item, number, costs)
    for name in trace.agents:
        if trace.agents[name].kind != "agent":
            tree.add(Text(f"{one_line(name)} is a {trace.agents[name].kind}", "dim"))
    console.print(tree, soft_wrap=False)
    for line in gaps(trace):
        console.print(Text(line, "yellow"))


def print_dispatch(trace: Trace, dispatch: Dispatch, out: IO[str]) -> None:
    """Print one dispatch: what came before it, who worked on it, what came after."""
    console = console_for(out)
    view = dispatch_view(trace, dispatch)
    names = {d.id: d for turn in trace.turns for d in turn.dispatches}
    costs = dispatch_costs(trace)
    tree = Tree(_dispatch_line(dispatch, costs))
    if dispatch.prompt:
        tree.add(Text(f"prompt {content_line(dispatch.prompt, 400)}"))
    if dispatch.result:
        tree.add(Text(f"result {content_line(dispatch.result, 400)}"))
    for title, steps in (("before", view.before), ("after", view.after)):
        branch = tree.add(Text(title, "dim"))
        for step in steps:
            branch.add(_step_line(step, names, costs))
    branch = tree.add(Text("runs", "dim"))
    for run in view.runs:
        node = branch.add(_run_line(run))
        for step in run.steps:
            node.add(_step_line(step, names, costs))
    console.print(tree, soft_wrap=False)


def _headline(trace: Trace) -> Text:
    line = Text().append(one_line(trace.id), "bold")
    about = [trace.source.format]
    about += [f"case {one_line(trace.case)}"] if trace.case and trace.case != trace.id else []
    about += [one_line(trace.source.location, 200)] if trace.source.location else []
    about += [tokens] if (tokens := tokens_line(trace.usage)) else []
    return line.append("  " + "  ".join(about), "dim")


def _add_turn(
    tree: Tree, trace: Trace, turn: Turn, number: int, costs: Mapping[str, float]
) -> None:
    head = Text().append(f"turn {number}  ", "bold")
    head.append(content_line(turn.input, 100) if turn.input else "no user message")
    head.append(_seconds(turn.started, turn.ended), "dim").append_text(_status(turn.status))
    if turn.error:
        head.append(f"  {one_line(turn.error, 200)}", "red")
    branch = tree.add(head)
    dispatches = {d.id: d for t in trace.turns for d in t.dispatches}
    for node in turn_tree(trace, turn):
        _add_run(branch, node, dispatches, costs)
    if turn.output:
        branch.add(Text(f"answer {content_line(turn.output, 200)}", "green"))


def _add_run(
    parent: Tree, node: TreeNode, dispatches: dict[str, Dispatch], costs: Mapping[str, float]
) -> None:
    branch = parent.add(_run_line(node.run).append_text(_arrivals(node.started_by)))
    children = {id_: child for child in node.children for id_ in child.run.started_by}
    shown: set[str] = set()
    for step in node.run.steps:
        if isinstance(step, ToolCall) and step.dispatch in dispatches:
            continue
        place = branch.add(_step_line(step, dispatches, costs))
        if isinstance(step, HandedOff) and step.dispatch in children:
            child = children[step.dispatch]
            shown.add(child.run.id)
            _add_run(place, child, dispatches, costs)
    for child in node.children:
        if child.run.id not in shown:
            _add_run(branch, child, dispatches, costs)


def _arrivals(started_by: list[Dispatch]) -> Text:
    """Print the dispatches that are in no step of their sender."""
    line = Text(style="magenta")
    for dispatch in started_by:
        if dispatch.kind in ("sequence", "return"):
            sender = one_line(dispatch.from_agent or "the program")
            basis = "" if dispatch.basis == "stated" else f", known by {dispatch.basis}"
            line.append(f"  ← {dispatch.kind} from {sender}, {dispatch.id}{basis}")
    return line


def _run_line(run: AgentRun) -> Text:
    line = Text().append(one_line(run.agent), "bold cyan")
    if run.node and run.node != run.agent:
        line.append(f" as {one_line(run.node)}")
    about = [f"in {one_line(' > '.join(run.inside))}"] if run.inside else []
    about += [tokens] if (tokens := tokens_line(run.usage)) else []
    line.append("".join(f"  {part}" for part in about), "dim")
    line.append(_seconds(run.started, run.ended), "dim").append_text(_status(run.status))
    if run.error:
        line.append(f"  {one_line(run.error, 200)}", "red")
    if "steps" in run.unknown:
        line.append("  steps not recorded", "yellow")
    return line


def _step_line(step: Step, dispatches: dict[str, Dispatch], costs: Mapping[str, float]) -> Text:
    if isinstance(step, Said):
        style = "dim italic" if step.thought else ""
        return Text(f"{'thought' if step.thought else 'said'} {content_line(step.content)}", style)
    if isinstance(step, ToolCall):
        return _call_line(step)
    dispatch = dispatches.get(step.dispatch)
    if dispatch is None:
        return Text(f"dispatch {step.dispatch}", "red")
    if isinstance(step, GotBack):
        result = content_line(dispatch.result) if dispatch.result else dispatch.error or "nothing"
        return Text(f"← {one_line(dispatch.to_agent)}  {one_line(result, 100)}", "magenta")
    return _dispatch_line(dispatch, costs)


def _call_line(call: ToolCall) -> Text:
    line = Text(f"{one_line(call.name)}({arguments_line(call.arguments)})")
    if call.result:
        line.append(f" = {content_line(call.result, 60)}", "dim")
    line.append(_made_up(call), "yellow").append_text(_status(call.status, fine="ok"))
    if call.refused_by:
        line.append(f" by {call.refused_by}", "red")
    if call.error:
        line.append(f"  {one_line(call.error, 100)}", "red")
    return line


def _dispatch_line(dispatch: Dispatch, costs: Mapping[str, float]) -> Text:
    line = Text().append(f"→ {one_line(dispatch.to_agent)}", "bold magenta")
    about = [dispatch.kind, dispatch.id]
    about += [f"known by {dispatch.basis}"] if dispatch.basis != "stated" else []
    about += [dispatch.mode] if dispatch.mode == "background" else []
    about += [f"group {dispatch.group}"] if dispatch.group is not None else []
    about += [f"continues {dispatch.continues}"] if dispatch.continues else []
    about += [dispatch.to_kind] if dispatch.to_kind != "agent" else []
    about += [dollars(costs[dispatch.id])] if dispatch.id in costs else []
    line.append(f"  {', '.join(about)}", "dim").append(_made_up(dispatch), "yellow")
    line.append_text(_status(dispatch.status))
    if dispatch.prompt:
        line.append(f"  {content_line(dispatch.prompt)}")
    if dispatch.error:
        line.append(f"  {one_line(dispatch.error, 100)}", "red")
    return line


def _made_up(answered: ToolCall | Dispatch) -> str:
    """Note that a stand-in answered: its answer must not be mistaken for a real one."""
    by = answered.stand_in
    return "" if by is None else f"  answered by a stand-in ({one_line(by)})"


def _status(status: str, fine: str = "completed") -> Text:
    if status == fine:
        return Text()
    return Text(f"  {status}", "red" if status in _BAD else "yellow" if status in _OPEN else "")


def _seconds(started: float | None, ended: float | None) -> str:
    return "" if started is None or ended is None else f"  {ended - started:.2f} s"


def dollars(cost: float) -> str:
    """Write a cost in USD."""
    # A request to a small model may cost $0.00003, which is not nothing.
    return f"${cost:.4f}" if cost >= 0.001 or not cost else f"${cost:.6f}"


def tokens_line(usage: Usage | None) -> str | None:
    """Return the numbers of tokens read and written, and their cost; ``None`` if not recorded."""
    if usage is None:
        return None
    read = sum(
        n or 0 for n in (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    )
    if not usage.complete and not read and not usage.output_tokens and not usage.cost_usd:
        return None  # no request states its tokens, as of a scripted model
    text = f"{read:,} + {usage.output_tokens or 0:,} tokens"
    if usage.cost_usd is not None:
        text += f", {dollars(usage.cost_usd)}"
    return f"at least {text}" if not usage.complete else text


def gaps(trace: Trace) -> Iterator[str]:
    """Yield lines on fields that are not recorded, dropped data, and decisions of guards."""
    names = Counter(trace.unknown)
    for turn in trace.turns:
        names.update(f"turn.{name}" for name in turn.unknown)
        names.update(f"dispatch.{name}" for d in turn.dispatches for name in d.unknown)
        for run in turn.runs:
            names.update(f"run.{name}" for name in run.unknown)
            for step in run.steps:
                if isinstance(step, ToolCall) and step.unknown:
                    names.update(f"tool_call.{name}" for name in step.unknown)
    if names:
        yield f"not recorded: {', '.join(sorted(names))}"
    for dropped in trace.dropped:
        example = f", such as {one_line(dropped.example, 300)}" if dropped.example else ""
        yield f"dropped: {one_line(dropped.what)} ({counted(dropped.count, 'time')}{example})"
    if unplaced := trace.attributes.get(UNPLACED):
        listed = ", ".join(map(str, unplaced)) if isinstance(unplaced, list) else str(unplaced)
        yield f"answered by stand-ins, but not in the record: {one_line(listed, 200)}"
    notes = decisions_of(trace)
    for note in notes[:_DECISIONS]:
        yield f"guard: {_decision_line(note)}"
    if len(notes) > _DECISIONS:
        yield f"guard: {counted(len(notes) - _DECISIONS, 'more decision')}"


def _decision_line(note: Mapping[str, object]) -> str:
    """Describe the decision of a guard: `blocked desk to lab by max_depth: (the reason)`."""
    refused = note.get("allowed") is False
    did = {"block": "blocked", "redact": "redacted", "warn": "warned of"}
    action = str(note.get("action"))
    if action == "ask":
        verb = "asked about, and did not get consent for," if refused else "asked about"
    else:
        tried = "let pass, as the rule is only being tried," if note.get("rule") else "failed at"
        verb = did.get(action, tried)
    sender = note.get("from") or "the program"
    what = note.get("tool") or f"{sender} to {note.get('to')}"
    if note.get("on") == "output":
        what = f"the answer of {note.get('to')} to {sender}"
    by = f" by {note['rule']}" if note.get("rule") else ""
    why = note.get("failed") or note.get("reason") or ""
    return one_line(f"{verb} {what}{by}: {why}", 300)


# What is shown of a trace: decisions of guards, steps around a dispatch on each side, steps of the
# receiver. A dispatch then fits on a screen or two, for a person who labels many; `full` shows all
# of its steps.
_DECISIONS = 20
_BEFORE = 3
_STEPS = 8
_SHORT, _FULL = 300, 20_000


def print_dispatch_page(
    trace: Trace, turn: Turn, dispatch: Dispatch, out: IO[str], *, full: bool = False
) -> None:
    """Print a dispatch: sender, receiver, prompt, result, and what the caller did next.

    The judge's verdict is not shown, so that it does not influence the person who labels. Without
    ``full``, long texts and transcripts are shortened, with a note.
    """
    console = console_for(out)
    made = {d.id: d for each in trace.turns for d in each.dispatches}
    limit = _FULL if full else _SHORT
    trip = round_trip(trace, dispatch)
    before = dispatch_view(trace, dispatch).before
    user = content_line(turn.input, limit) if turn.input else "no message"
    lines = [
        ("user", [user]),
        ("before", _steps(before, made, limit, last=None if full else _BEFORE)),
    ]
    lines.append((f"{one_line(dispatch.from_agent or 'program')} calls", _call(dispatch, limit)))
    for run in trip.runs:
        steps = _steps(run.steps, made, limit, first=None if full else _STEPS)
        lines.append((f"{one_line(run.agent)} works", steps or ["nothing is recorded"]))
    lines.append(("result", _result(trip, limit)))
    after = _steps(trip.after, made, limit, first=None if full else _BEFORE)
    lines.append(("next turn", after or ["nothing more"]))
    for title, texts in lines:
        console.print(Text(title, "bold cyan"))
        for text in texts:
            console.print(Text(f"  {text}"), soft_wrap=True)


def _call(dispatch: Dispatch, limit: int) -> list[str]:
    about = [dispatch.kind, dispatch.mode] if dispatch.mode == "background" else [dispatch.kind]
    lines = [f"→ {one_line(dispatch.to_agent)} ({', '.join(about)}, {one_line(dispatch.id)})"]
    if dispatch.description:
        lines.append(f"described as {one_line(dispatch.description, limit)}")
    lines.append(_text("prompt", dispatch.prompt, limit))
    if dispatch.tools_allowed is not None:
        tools = dispatch.tools_allowed
        names = tools if isinstance(tools, str) else ", ".join(tools) or "none"
        lines.append(f"tools allowed: {one_line(names, limit)}")
    return lines


def _result(trip: RoundTrip, limit: int) -> list[str]:
    lines = [_text("", trip.result, limit)] if trip.result else ["nothing came back"]
    if trip.dispatch.stand_in is not None:
        lines.append(_made_up(trip.dispatch).strip())
    if trip.dispatch.status != "completed":
        lines.append(trip.dispatch.status)
    if trip.dispatch.error:
        lines.append(one_line(trip.dispatch.error, limit))
    return lines


def _steps(
    steps: Sequence[Step],
    made: dict[str, Dispatch],
    limit: int,
    *,
    first: int | None = None,
    last: int | None = None,
) -> list[str]:
    """Write steps, all of them or the first or last few."""
    lines = [line for step in steps for line in _step(step, made, limit)]
    kept = lines[-last:] if last is not None else lines[:first]
    left = len(lines) - len(kept)
    if not left:
        return kept
    note = f"… {left} more steps"
    return [note, *kept] if last is not None else [*kept, note]


def _step(step: Step, made: dict[str, Dispatch], limit: int) -> Iterator[str]:
    if isinstance(step, Said):
        if not step.thought:
            yield f"said {content_line(step.content, limit)}"
    elif isinstance(step, ToolCall):
        if step.dispatch not in made:
            back = f" = {content_line(step.result, limit)}" if step.result else ""
            wrong = f" ({step.status})" if step.status != "ok" else ""
            arguments = arguments_line(step.arguments, limit)
            yield f"{one_line(step.name)}({arguments}){back}{_made_up(step)}{wrong}"
    elif isinstance(step, HandedOff) and step.dispatch in made:
        yield f"→ {one_line(made[step.dispatch].to_agent)}"
    elif isinstance(step, GotBack) and step.dispatch in made:
        other = made[step.dispatch]
        back = content_line(other.result, limit) if other.result else "nothing"
        yield f"← {one_line(other.to_agent)} {back}"


def _text(title: str, content: Content | None, limit: int) -> str:
    if content is None:
        return f"{title} not recorded".strip()
    return f"{title} {content_line(content, limit)}".strip()

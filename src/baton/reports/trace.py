"""A trace as a tree: turns, runs, dispatches and tools, and what is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import IO

from rich.tree import Tree

from baton.model import (
    AgentRun,
    Dispatch,
    GotBack,
    HandedOff,
    Said,
    Step,
    ToolCall,
    Trace,
    Turn,
    Usage,
)
from baton.model.views import TreeNode, dispatch_view, turn_tree

from .console import Text, console_for
from .text import arguments_line, content_line, one_line

_BAD = {"failed", "refused", "cancelled", "unanswered", "incomplete"}
_OPEN = {"waiting", "unknown"}


def print_trace(trace: Trace, out: IO[str], *, turn: int | None = None) -> None:
    """Print a trace, or one of its turns (counted from 1)."""
    console = console_for(out)
    tree = Tree(_headline(trace))
    for number, item in enumerate(trace.turns, 1):
        if turn in (None, number):
            _add_turn(tree, trace, item, number)
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
    tree = Tree(_dispatch_line(dispatch))
    if dispatch.prompt:
        tree.add(Text(f"prompt {content_line(dispatch.prompt, 400)}"))
    if dispatch.result:
        tree.add(Text(f"result {content_line(dispatch.result, 400)}"))
    for title, steps in (("before", view.before), ("after", view.after)):
        branch = tree.add(Text(title, "dim"))
        for step in steps:
            branch.add(_step_line(step, names))
    branch = tree.add(Text("runs", "dim"))
    for run in view.runs:
        node = branch.add(_run_line(run))
        for step in run.steps:
            node.add(_step_line(step, names))
    console.print(tree, soft_wrap=False)


def _headline(trace: Trace) -> Text:
    line = Text().append(one_line(trace.id), "bold")
    about = [trace.source.format]
    about += [f"case {one_line(trace.case)}"] if trace.case and trace.case != trace.id else []
    about += [one_line(trace.source.location, 200)] if trace.source.location else []
    about += [tokens_line(trace.usage)] if trace.usage else []
    return line.append("  " + "  ".join(about), "dim")


def _add_turn(tree: Tree, trace: Trace, turn: Turn, number: int) -> None:
    head = Text().append(f"turn {number}  ", "bold")
    head.append(content_line(turn.input, 100) if turn.input else "no user message")
    head.append(_seconds(turn.started, turn.ended), "dim").append_text(_status(turn.status))
    if turn.error:
        head.append(f"  {one_line(turn.error, 200)}", "red")
    branch = tree.add(head)
    dispatches = {d.id: d for t in trace.turns for d in t.dispatches}
    for node in turn_tree(trace, turn):
        _add_run(branch, node, dispatches)
    if turn.output:
        branch.add(Text(f"answer {content_line(turn.output, 200)}", "green"))


def _add_run(parent: Tree, node: TreeNode, dispatches: dict[str, Dispatch]) -> None:
    branch = parent.add(_run_line(node.run).append_text(_arrivals(node.started_by)))
    children = {id_: child for child in node.children for id_ in child.run.started_by}
    shown: set[str] = set()
    for step in node.run.steps:
        if isinstance(step, ToolCall) and step.dispatch in dispatches:
            continue
        place = branch.add(_step_line(step, dispatches))
        if isinstance(step, HandedOff) and step.dispatch in children:
            child = children[step.dispatch]
            shown.add(child.run.id)
            _add_run(place, child, dispatches)
    for child in node.children:
        if child.run.id not in shown:
            _add_run(branch, child, dispatches)


def _arrivals(started_by: list[Dispatch]) -> Text:
    """Tell of the dispatches that no step of their sender shows."""
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
    about += [tokens_line(run.usage)] if run.usage else []
    line.append("".join(f"  {part}" for part in about), "dim")
    line.append(_seconds(run.started, run.ended), "dim").append_text(_status(run.status))
    if run.error:
        line.append(f"  {one_line(run.error, 200)}", "red")
    if "steps" in run.unknown:
        line.append("  steps not recorded", "yellow")
    return line


def _step_line(step: Step, dispatches: dict[str, Dispatch]) -> Text:
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
    return _dispatch_line(dispatch)


def _call_line(call: ToolCall) -> Text:
    line = Text(f"{one_line(call.name)}({arguments_line(call.arguments)})")
    if call.result:
        line.append(f" = {content_line(call.result, 60)}", "dim")
    line.append_text(_status(call.status, fine="ok"))
    if call.refused_by:
        line.append(f" by {call.refused_by}", "red")
    if call.error:
        line.append(f"  {one_line(call.error, 100)}", "red")
    return line


def _dispatch_line(dispatch: Dispatch) -> Text:
    line = Text().append(f"→ {one_line(dispatch.to_agent)}", "bold magenta")
    about = [dispatch.kind, dispatch.id]
    about += [f"known by {dispatch.basis}"] if dispatch.basis != "stated" else []
    about += [dispatch.mode] if dispatch.mode == "background" else []
    about += [f"group {dispatch.group}"] if dispatch.group is not None else []
    about += [f"continues {dispatch.continues}"] if dispatch.continues else []
    about += [dispatch.to_kind] if dispatch.to_kind != "agent" else []
    line.append(f"  {', '.join(about)}", "dim").append_text(_status(dispatch.status))
    if dispatch.prompt:
        line.append(f"  {content_line(dispatch.prompt)}")
    if dispatch.error:
        line.append(f"  {one_line(dispatch.error, 100)}", "red")
    return line


def _status(status: str, fine: str = "completed") -> Text:
    if status == fine:
        return Text()
    return Text(f"  {status}", "red" if status in _BAD else "yellow" if status in _OPEN else "")


def _seconds(started: float | None, ended: float | None) -> str:
    return "" if started is None or ended is None else f"  {ended - started:.2f} s"


def tokens_line(usage: Usage) -> str:
    """Say how many tokens were read and written."""
    read = sum(
        n or 0 for n in (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    )
    text = f"{read:,} + {usage.output_tokens or 0:,} tokens"
    return f"at least {text}" if not usage.complete else text


def gaps(trace: Trace) -> Iterator[str]:
    """Name what the source did not record, and what of it could not be placed."""
    names = Counter(trace.unknown)
    for turn in trace.turns:
        names.update(f"turn.{name}" for name in turn.unknown)
        names.update(f"dispatch.{name}" for d in turn.dispatches for name in d.unknown)
        for run in turn.runs:
            names.update(f"run.{name}" for name in run.unknown)
            calls = (step for step in run.steps if isinstance(step, ToolCall))
            names.update(f"tool_call.{name}" for call in calls for name in call.unknown)
    if names:
        yield f"not recorded: {', '.join(sorted(names))}"
    for dropped in trace.dropped:
        example = f", such as {one_line(dropped.example, 60)}" if dropped.example else ""
        yield f"dropped: {one_line(dropped.what)} ({dropped.count} times{example})"

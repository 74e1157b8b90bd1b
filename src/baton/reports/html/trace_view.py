"""A trace as the scripts draw it: the tree of its runs, a card for each dispatch, a summary.

Each text is stored once: a card names the steps and dispatches whose texts it shows.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, Literal

import msgspec

from baton.findings.handoff_loops import loops
from baton.findings.result_used import fact_uses
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
    known,
)
from baton.model.views import (
    TreeNode,
    child_runs,
    dispatch_costs,
    dispatch_view,
    in_short,
    index_of,
    indexed,
    round_trip,
    sum_usage,
    turn_tree,
)
from baton.reports.text import one_line
from baton.reports.trace import dollars, gaps, tokens_line

Plain = dict[str, Any]
Cards = Literal["whole", "no facts", "runs"]
MOST = 20_000
"""Characters of one text that a page holds."""
_AROUND = 4
"""Steps before and after a dispatch that its card shows."""
_FACTS = 40
"""Facts of a result that a card lists with where they were used; the others are counted."""
_CONTEXT = 12
"""Earlier texts of a shared history that a card names."""
_PROVEN = 300
"""Dispatches of one trace whose facts are searched for: the work grows with their square."""
_PROMPT_IN_LINE = 160
"""Characters of a prompt in the name of a dispatch, which is one line; its card has all."""
_BAD = ("failed", "refused", "unanswered")
_STATED = (
    ("sender", "from_agent"),
    ("to", "to_agent"),
    ("made_by", "from_run"),
    *((name, name) for name in ("call", "description", "continues", "stand_in", "error")),
    ("unknown", "unknown"),
)
"""Fields of a dispatch that are drawn unchanged, unless empty: their names in view and record."""


def trace_view(
    trace: Trace,
    *,
    most: int = MOST,
    calls: int | None = None,
    failed: Collection[str] = (),
    cards: Cards = "whole",
) -> Plain:
    """Return the data that pages draw of a trace; empty fields are left out.

    ``failed`` are ids that scores found at fault. A text of more than ``most`` characters becomes
    an object: its start, how many characters ``more`` it has, and where it is (``at``, see
    :func:`text_at`). After the first ``calls`` tool calls, arguments and results are left out
    (``cut``), and successive calls without problems are one entry (``calls``). Finding the repeated
    parts of a result takes most of the time for a card. If a page requests cards when they are
    opened (:func:`card_view`), ``runs`` are enough. Times are seconds from the start of the trace.
    """
    with indexed(trace):
        drawn = _Drawn(trace, most, calls)
        return filled(
            id=trace.id,
            turns=[drawn.turn(turn) for turn in trace.turns],
            gaps=list(gaps(trace)),
            state=_json(trace.state, most),
            cards=_cards(trace, most, cards),
            short=_short(trace, failed),
        )


def text_at(trace: Trace, at: str) -> str | None:
    """Return a text of a trace that a page shortened, by its place; ``None`` if there is none."""
    id_, _, field = at.rpartition("/")
    for turn in trace.turns:
        steps = [step for run in turn.runs for step in run.steps]
        holders: tuple[Turn | Dispatch | AgentRun | Step, ...]
        holders = (turn, *turn.dispatches, *turn.runs, *steps)
        for one in holders:
            if one.id == id_ and field in one.__struct_fields__:
                return _whole(getattr(one, field))
    return None


def card_view(trace: Trace, id_: str) -> Plain | None:
    """Return the card of a dispatch without its facts; ``None`` if there is no such dispatch."""
    with indexed(trace) as index:
        dispatch = index.dispatches.get(id_)
        if dispatch is None:
            return None
        return _card(trace, index.turn_of[id_], dispatch, MOST)


def facts_view(trace: Trace, id_: str) -> Plain | None:
    """Return the facts of a dispatch's result that the caller did not already have.

    ``ids`` are the objects that repeat a fact, if there are any; ``own`` marks facts that the
    caller's own calls had returned by then. ``None``: there is no such dispatch.
    """
    with indexed(trace) as index:
        dispatch = index.dispatches.get(id_)
        return None if dispatch is None else _facts(trace, index.turn_of[id_], dispatch)


def filled(**fields: Any) -> Plain:
    """Return fields without those that are empty."""
    # Most values are truthy. Only the others are compared, as 0 and False may stay.
    return {
        name: value
        for name, value in fields.items()
        if value or (value is not None and value not in ("", [], {}))
    }


def cut(text: str, at: str | None = None, most: int = MOST) -> str | Plain:
    """Truncate a text that is too long for a page, and mark it.

    The checksum of the whole text tells whether two long texts are equal.
    """
    if len(text) <= most:
        return text
    crc = zlib.crc32(text.encode("utf-8", "surrogatepass"))
    return filled(text=text[:most], more=len(text) - most, at=at, crc=crc)


def _whole(value: Any) -> str:
    if isinstance(value, Content):
        if value.text is not None and not value.parts:
            return value.text
        text = value.text if value.text is not None else _pretty(value.data)
        attached = ", ".join(f"[{part.mime or part.type}]" for part in value.parts or ())
        return "\n".join(part for part in (text, attached) if part)
    return value if isinstance(value, str) else _pretty(value)


def _pretty(value: Any) -> str:
    if value is None:
        return ""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _json(value: Any, most: int, at: str | None = None) -> str | Plain | None:
    return None if value is None else cut(_pretty(value), at, most)


def _seconds(started: float | None, ended: float | None) -> float | None:
    return None if started is None or ended is None else round(ended - started, 3)


class _Drawn:
    """Converts a trace to a tree."""

    def __init__(self, trace: Trace, most: int, calls: int | None) -> None:
        self.trace = trace
        self.most = most
        self.left = calls
        self.dispatches = index_of(trace).dispatches
        self.costs = dispatch_costs(trace)
        self.zero = min(_times(trace), default=None)

    def at(self, time: float | None) -> float | None:
        return None if time is None or self.zero is None else round(time - self.zero, 3)

    def text(self, content: Content | None, id_: str, field: str) -> str | Plain | None:
        return None if content is None else cut(_whole(content), f"{id_}/{field}", self.most)

    def turn(self, turn: Turn) -> Plain:
        placed: set[str] = set()
        runs = [self.run(node, placed) for node in turn_tree(self.trace, turn)]
        return filled(
            id=turn.id,
            input=self.text(turn.input, turn.id, "input"),
            input_unknown=not known(self.trace, turn, "input") or None,
            output=self.text(turn.output, turn.id, "output"),
            status=turn.status,
            error=turn.error,
            at=self.at(turn.started),
            seconds=_seconds(turn.started, turn.ended),
            runs=runs,
            loose=[self.dispatch(d) for d in turn.dispatches if d.id not in placed],
        )

    def steps(self, node: TreeNode, placed: set[str]) -> tuple[list[Plain], set[str]]:
        """Return the steps of a run and of the runs that it started, and the ids of these runs."""
        run = node.run
        children = {id_: child for child in node.children for id_ in child.run.started_by}
        shown: set[str] = set()
        steps = []
        short: list[ToolCall] = []
        for step in run.steps:
            # Most steps of a long trace are successful calls: no function is called for them.
            if isinstance(step, ToolCall):
                if step.dispatch is not None and step.dispatch in self.dispatches:
                    continue
                well = step.status == "ok" and not (
                    step.error or step.refused_by or step.stand_in or step.unknown
                )
                if well and self.left == 0:
                    short.append(step)
                    continue
            if short:
                steps.append(self.calls(short))
                short = []
            if isinstance(step, ToolCall):
                steps.append(self.call(step, well))
                continue
            plain = self.step(step)
            if isinstance(step, HandedOff):
                placed.add(step.dispatch)
                child = children.get(step.dispatch)
                if child is not None and child.run.id not in shown:
                    shown.add(child.run.id)
                    plain["run"] = self.run(child, placed)
            steps.append(plain)
        if short:
            steps.append(self.calls(short))
        return steps, shown

    def run(self, node: TreeNode, placed: set[str]) -> Plain:
        run = node.run
        steps, shown = self.steps(node, placed)
        rest = [self.run(c, placed) for c in node.children if c.run.id not in shown]
        arrived = []
        for dispatch in node.started_by:
            placed.add(dispatch.id)
            if dispatch.kind in ("sequence", "return"):
                arrived.append(self.dispatch(dispatch))
        # A long trace has hundreds of runs, and most have few of these fields: `filled` would take
        # twice as long as checking each.
        made: Plain = {"id": run.id, "status": run.status}
        if run.agent:
            made["agent"] = run.agent
        if run.node and run.node != run.agent:
            made["node"] = run.node
        if run.inside:
            made["inside"] = " > ".join(run.inside)
        if run.model:
            made["model"] = run.model
        if tokens := tokens_line(run.usage):
            made["tokens"] = tokens
        if run.started is not None:
            self.dated(made, run.started)
            if run.ended is not None:
                made["seconds"] = round(run.ended - run.started, 3)
        if run.error:
            made["error"] = run.error
        if run.unknown:
            made["unknown"] = run.unknown
        if arrived:
            made["arrivals"] = arrived
        if given := self.given(run, node.started_by):
            made["input"] = given
        if steps:
            made["steps"] = steps
        if rest:
            made["runs"] = rest
        return made

    def given(self, run: AgentRun, started_by: list[Dispatch]) -> str | Plain | None:
        """Return the input of a run if it differs from what its sender said."""
        if not started_by or run.input is None or run.input in [d.prompt for d in started_by]:
            return None
        return self.text(run.input, run.id, "input")

    def step(self, step: Said | HandedOff | GotBack) -> Plain:
        if isinstance(step, Said):
            text = self.text(step.content, step.id, "content") or "(nothing)"
            plain: Plain = {"type": "said", "id": step.id, "text": text}
            if step.thought:
                plain["thought"] = True
            return self.dated(plain, step.at)
        dispatch = self.dispatches.get(step.dispatch)
        if dispatch is None:
            return {"type": "lost", "id": step.id, "dispatch": step.dispatch}
        if isinstance(step, GotBack):
            return self.dated({"type": "back", "id": step.id, "dispatch": dispatch.id}, step.at)
        plain = {"type": "dispatch", "id": step.id, "dispatch": self.dispatch(dispatch)}
        return self.dated(plain, step.at)

    def dated(self, plain: Plain, at: float | None) -> Plain:
        """Add the time of a step, if it has one."""
        if at is not None and self.zero is not None:
            plain["at"] = round(at - self.zero, 3)
        return plain

    def calls(self, steps: list[ToolCall]) -> Plain:
        """Return calls without their texts, field by field.

        Most steps of a long trace are such calls: one by one, they would take most of the time of a
        page, and half of its size. ``at`` and ``took`` are whole milliseconds.
        """
        names = [step.name for step in steps]
        zero = (self.zero or 0.0) - 0.0005  # `int` rounds down, three times as fast as `round`
        return {
            "type": "calls",
            "ids": [step.id for step in steps],
            "name": names[0] if len(set(names)) == 1 else names,
            "at": [None if step.at is None else int(1000 * (step.at - zero)) for step in steps],
            "took": [
                None
                if step.at is None or step.ended is None
                else int(1000 * (step.ended - step.at) + 0.5)
                for step in steps
            ],
        }

    def call(self, step: ToolCall, well: bool) -> Plain:
        """Return a call; a successful one (``well``) has only its texts."""
        plain: Plain = {"id": step.id, "name": step.name}
        if self.left == 0:
            plain["cut"] = True  # only calls are truncated
        else:
            plain["type"] = "call"
            if arguments := _json(step.arguments, self.most, f"{step.id}/arguments"):
                plain["arguments"] = arguments
            if result := self.text(step.result, step.id, "result"):
                plain["result"] = result
            if self.left is not None:
                self.left -= 1
        if step.at is not None and self.zero is not None:
            plain["at"] = round(step.at - self.zero, 3)
            if step.ended is not None:
                plain["seconds"] = round(step.ended - step.at, 3)
        if not well:
            plain |= filled(
                status=step.status if step.status != "ok" else None,
                refused_by=step.refused_by,
                stand_in=step.stand_in,
                error=step.error,
                unknown=step.unknown,
            )
        return plain

    def dispatch(self, dispatch: Dispatch) -> Plain:
        id_ = dispatch.id
        made: Plain = {"id": id_, "kind": dispatch.kind, "status": dispatch.status}
        for name, field in _STATED:  # cheaper than `filled`, because most are empty
            if value := getattr(dispatch, field):
                made[name] = value
        if dispatch.mode != "foreground":
            made["mode"] = dispatch.mode
        if dispatch.basis != "stated":
            made["basis"] = dispatch.basis
        if dispatch.to_kind != "agent":
            made["to_kind"] = dispatch.to_kind
        if prompt := self.text(dispatch.prompt, id_, "prompt"):
            made["prompt"] = prompt
        if result := self.text(dispatch.result, id_, "result"):
            made["result"] = result
        if dispatch.context:
            made["context"] = _json(dispatch.context, self.most, f"{id_}/context")
        if dispatch.group is not None:
            made["group"] = dispatch.group
        if tools := dispatch.tools_allowed:
            made["tools"] = ", ".join(tools) if isinstance(tools, list) else tools
        if id_ in self.costs:
            made["cost"] = dollars(self.costs[id_])
        if dispatch.started is not None:
            self.dated(made, dispatch.started)
            if dispatch.ended is not None:
                made["seconds"] = round(dispatch.ended - dispatch.started, 3)
        return made


def _times(trace: Trace) -> Iterator[float]:
    for turn in trace.turns:
        begun = [turn.started, *(run.started for run in turn.runs)]
        begun += [dispatch.started for dispatch in turn.dispatches]
        begun += [step.at for run in turn.runs for step in run.steps]
        yield from (time for time in begun if time is not None)


def _cards(trace: Trace, most: int, cards: Cards) -> dict[str, Plain]:
    """Return the data of each dispatch that the tree does not have, by its id."""
    made: dict[str, Plain] = {}
    for turn in trace.turns:
        for dispatch in turn.dispatches:
            if dispatch.kind == "return":
                continue
            if cards == "runs":
                made[dispatch.id] = filled(runs=[run.id for run in child_runs(trace, dispatch)])
            else:
                prove = cards == "whole" and len(made) < _PROVEN
                facts = _facts(trace, turn, dispatch) if prove else {}
                made[dispatch.id] = _card(trace, turn, dispatch, most) | facts
    return made


def _card(trace: Trace, turn: Turn, dispatch: Dispatch, most: int) -> Plain:
    view, trip = dispatch_view(trace, dispatch), round_trip(trace, dispatch)
    first = next((run for run in view.runs if run.id in dispatch.runs), None)
    back = index_of(trace).answers.get(dispatch.id)
    return filled(
        turn=turn.id,
        before=[step.id for step in view.before[-_AROUND:]],
        earlier=max(0, len(view.before) - _AROUND) or None,
        runs=[run.id for run in view.runs],
        got=_got(trace, dispatch, first),
        held=_held(first, most),
        held_unknown=(first is not None and not known(trace, first, "context")) or None,
        tools=_tools(trace, dispatch, view.runs),
        back=back.id if back is not None else None,
        result_unknown=not known(trace, dispatch, "result") or None,
        after=[step.id for step in trip.after[:_AROUND]],
        later=max(0, len(trip.after) - _AROUND) or None,
    )


def _facts(trace: Trace, turn: Turn, dispatch: Dispatch) -> Plain:
    uses = fact_uses(trace, turn, dispatch) or []
    return filled(
        facts=[filled(text=use.text, ids=use.ids, own=use.own or None) for use in uses[:_FACTS]],
        more_facts=max(0, len(uses) - _FACTS) or None,
    )


def _got(trace: Trace, dispatch: Dispatch, run: AgentRun | None) -> str:
    """Compare what a receiver got with what its sender said."""
    if run is None:
        return "nobody"
    if not known(trace, run, "input") or not known(trace, dispatch, "prompt"):
        return "unknown"
    if run.input is None:
        return "nothing"
    return "same" if run.input == dispatch.prompt else "other"


def _held(run: AgentRun | None, most: int) -> list[Plain]:
    """Return what else a receiver's first request contained: ids of this trace, or texts."""
    refs = (run.context or []) if run is not None else []
    held = [
        filled(id=ref.id) if ref.id is not None else filled(text=cut(ref.text or "", most=most))
        for ref in refs[:_CONTEXT]
    ]
    return held + ([filled(left=len(refs) - _CONTEXT)] if len(refs) > _CONTEXT else [])


def _tools(trace: Trace, dispatch: Dispatch, runs: list[AgentRun]) -> Plain:
    """Return which tools were allowed, offered, used and refused."""
    own = [run for run in runs if run.id in dispatch.runs] or runs
    calls = [
        step
        for run in own
        for step in run.steps
        if isinstance(step, ToolCall) and step.dispatch is None
    ]
    offered = [run.tools_offered for run in own if run.tools_offered is not None]
    counts = Counter(call.name for call in calls)
    refused = Counter(call.name for call in calls if call.status == "refused")
    failed = Counter(call.name for call in calls if call.status == "failed")
    fields = filled(
        source=dispatch.tools_source,
        used=[
            filled(name=name, count=n, refused=refused[name] or None, failed=failed[name] or None)
            for name, n in counts.items()
        ],
        used_unknown=any(not known(trace, run, "steps.tool_call") for run in own) or None,
    )
    # An empty list says that nothing is allowed, so it is not left out.
    if dispatch.tools_allowed is not None:
        fields["allowed"] = dispatch.tools_allowed
    if offered:
        fields["offered"] = list(dict.fromkeys(name for names in offered for name in names))
    return fields


def _short(trace: Trace, failed: Collection[str]) -> Plain:
    """Return who worked, who handed work to whom, loops, and what went wrong."""
    return filled(
        agents=_agents(trace),
        edges=_edges(trace),
        loops=[
            filled(says=finding.says, ids=[id_ for e in finding.evidence for id_ in e.ids][:6])
            for turn in trace.turns
            if isinstance(answer := loops(trace, turn), list)
            for finding in answer
        ],
        branches=_branches(trace),
        failing=_failing(trace, failed),
    )


def _agents(trace: Trace) -> list[Plain]:
    by_name: dict[str, list[AgentRun]] = {}
    for run in index_of(trace).runs.values():
        by_name.setdefault(run.agent, []).append(run)
    return [
        filled(
            name=name,
            runs=len(runs),
            calls=sum(
                isinstance(s, ToolCall) and s.dispatch is None for r in runs for s in r.steps
            ),
            bad=sum(run.status in ("failed", "cancelled") for run in runs) or None,
            spent=tokens_line(sum_usage([run.usage for run in runs])),
        )
        for name, runs in by_name.items()
    ]


def _edges(trace: Trace) -> list[Plain]:
    """Return who handed work to whom, by first occurrence, with the first prompt."""
    edges: dict[tuple[str | None, str, str], list[Dispatch]] = {}
    for dispatch in index_of(trace).dispatches.values():
        if dispatch.kind != "return":
            key = dispatch.from_agent, dispatch.to_agent, dispatch.kind
            edges.setdefault(key, []).append(dispatch)
    return [
        filled(
            sender=sender,
            to=to,
            kind=kind,
            count=len(made),
            bad=sum(d.status in _BAD for d in made) or None,
            background=any(d.mode == "background" for d in made) or None,
            ids=[d.id for d in made[:20]],
            why=_why(made[0]),
        )
        for (sender, to, kind), made in edges.items()
    ]


def _why(dispatch: Dispatch) -> str:
    """Return what a sender said, else its description of the work."""
    prompt = dispatch.prompt.plain() if dispatch.prompt is not None else ""
    return one_line(prompt or dispatch.description or "", _PROMPT_IN_LINE)


def _branches(trace: Trace) -> list[Plain]:
    """Return the usage of each delegate of the agents that opened the turns, with all below it."""
    made = index_of(trace).dispatches
    branch: dict[str, str | None] = {}
    runs_of: dict[str | None, list[AgentRun]] = {}
    for run in index_of(trace).runs.values():  # in start order, so that senders come first
        starter = next((made[id_] for id_ in run.started_by if id_ in made), None)
        above = branch.get(starter.from_run or "") if starter is not None else None
        # The receiver of a transfer works next to its sender, and has its own row among agents.
        if starter is not None and above is None and starter.kind == "delegate":
            above = starter.id
        branch[run.id] = above
        runs_of.setdefault(above, []).append(run)
    if len(runs_of) < 2:
        return []
    rows = []
    for id_, runs in runs_of.items():
        usage = sum_usage([run.usage for run in runs])
        times = [run.ended - run.started for run in runs if run.started and run.ended]
        rows.append(
            filled(
                id=id_,
                to=made[id_].to_agent if id_ is not None else None,
                runs=len(runs),
                tokens=_all_tokens(usage) if usage is not None else None,
                cost=usage.cost_usd if usage is not None else None,
                money=dollars(usage.cost_usd) if usage is not None and usage.cost_usd else None,
                seconds=round(sum(times), 3) if times else None,
            )
        )
    return rows


def _all_tokens(usage: Any) -> int:
    names = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
    return sum(getattr(usage, name) or 0 for name in names)


def _failing(trace: Trace, failed: Collection[str]) -> Plain | None:
    """Return the first failed branch, down to its deepest failed dispatch."""
    index = index_of(trace)

    def bad_run(run: AgentRun) -> bool:
        return run.status in ("failed", "cancelled") or run.id in failed

    def is_bad(dispatch: Dispatch) -> bool:
        runs = (index.runs[id_] for id_ in dispatch.runs if id_ in index.runs)
        return dispatch.status in _BAD or dispatch.id in failed or any(map(bad_run, runs))

    bad = {id_ for id_, d in index.dispatches.items() if d.kind != "return" and is_bad(d)}
    made: dict[str, list[str]] = {}
    for id_ in bad:
        made.setdefault(index.dispatches[id_].from_run or "", []).append(id_)
    for id_, dispatch in index.dispatches.items():
        if id_ not in bad or any(run in made for run in dispatch.runs):
            continue
        path, at, seen = [id_], dispatch, {id_}
        while at.from_run is not None and (sender := index.runs.get(at.from_run)) is not None:
            above = next((d for d in sender.started_by if d in index.dispatches), None)
            if above is None or above in seen:
                break
            seen.add(above)
            path.append(above)
            at = index.dispatches[above]
        runs = [index.runs[r] for r in dispatch.runs if r in index.runs]
        error = dispatch.error or next((run.error for run in runs if run.error), None)
        return filled(
            path=[filled(id=one, to=index.dispatches[one].to_agent) for one in reversed(path)],
            start=at.from_agent,
            says=in_short(error) if error else None,
            status=dispatch.status if dispatch.status in _BAD else "failed",
            others=len(bad) - len(seen & bad) or None,
        )
    return None

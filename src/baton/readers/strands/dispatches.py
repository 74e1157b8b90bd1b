"""Hand-offs of a session: by nesting, by a swarm's tool, by what a graph's node was given."""

from __future__ import annotations

import itertools
from typing import Any

from baton.formats.strands import Span
from baton.model import AgentRun, Content, Dispatch, ToolCall
from baton.readers.ids import Ids

from .spans import HAND_OFF, Call, Handed, Names, Starter, Steps, Tree, answer_content, handed

_INPUTS, _FROM, _ANSWER = "Inputs from previous nodes:", "From ", "  - "


def followed(tree: Tree, agent: Span) -> dict[str, list[str]] | None:
    """Return the answers that an agent was given, by node; ``None`` when a graph gave none.

    They are pieces of its first message, apart from the task that a session tells.
    """
    models = tree.models(agent)
    first = models[0].messages[0] if models and models[0].messages else None
    texts = [item.text for item in first.content if item.text] if first is not None else []
    titles = [text.strip() for text in texts]
    if _INPUTS not in titles:
        return None
    found: dict[str, list[str]] = {}
    name = None
    start = titles.index(_INPUTS) + 1
    for text, title in zip(texts[start:], titles[start:], strict=True):
        if title.startswith(_FROM) and title.endswith(":"):
            name = title.removeprefix(_FROM).removesuffix(":")
            found[name] = []
        elif name is not None and text.startswith(_ANSWER):
            found[name].append(text.partition(": ")[2].removesuffix("\n"))
    return found or None


class Dispatches:
    """Finds the dispatches; ``all_told`` says whether all starts are known."""

    def __init__(
        self,
        tree: Tree,
        names: Names,
        runs: dict[int, AgentRun],
        steps: dict[int, Steps],
        ids: Ids,
    ) -> None:
        self.dispatches: list[Dispatch] = []
        self.all_told = True
        self._tree, self._names, self._ids = tree, names, ids
        self._runs, self._steps = runs, steps
        self._arrived = {id(call): agent for agent, call in names.arrivals.items()}
        for starter, agents in tree.siblings():
            self._start(starter, agents)
        for key, run in runs.items():
            for call in steps[key].calls:
                if call.step.name == HAND_OFF and call.step.dispatch is None:
                    asked = handed(call.step.arguments)
                    if asked is not None:
                        self._transfer(run, steps[key], call, asked)
        self.dispatches.sort(key=lambda dispatch: dispatch.started or 0.0)
        self._set_depths()
        self._set_groups()

    def final(self, runs: list[AgentRun]) -> AgentRun | None:
        """Return the run that passed its work on to no other; ``None`` where several did not."""
        sending = {d.from_run for d in self.dispatches if d.kind != "delegate" and d.runs}
        ends = [run for run in runs if run.id not in sending]
        return ends[0] if self.all_told and len(ends) == 1 else None

    def _start(self, starter: Starter, agents: list[Span]) -> None:
        """Tell what started agents that work for the same call, agent or program."""
        answered: dict[str | None, list[Span]] = {}
        for number, agent in enumerate(agents):
            if number:
                before = agents[number - 1]
                answer = answer_content(before)
                answered.setdefault(answer.text if answer else None, []).append(before)
            if id(agent) in self._names.arrivals:
                continue  # the call states its hand-off
            if starter.agent is not None:
                self._delegate(starter, agent, first=number == 0)
            elif number:
                self._sequences(answered, agent)
            elif starter.tool is not None:
                self.all_told = False

    def _sequences(self, answered: dict[str | None, list[Span]], agent: Span) -> None:
        """Link an agent of a graph to those whose very answers it was given."""
        inputs = followed(self._tree, agent) or {}
        self.all_told &= bool(inputs)
        for node, texts in inputs.items():
            same = answered.get(texts[0], []) if len(texts) == 1 else []
            if len(same) != 1:
                self.all_told = False
                continue
            self._runs[id(same[0])].node = node
            self._sequence(self._runs[id(same[0])], self._runs[id(agent)])

    def _sequence(self, sender: AgentRun, receiver: AgentRun) -> None:
        dispatch = Dispatch(
            id=self._ids.new("dispatch"),
            kind="sequence",
            basis="structure",
            from_run=sender.id,
            from_agent=sender.agent,
            to_agent=receiver.agent,
            runs=[receiver.id],
            started=sender.ended,
            ended=_not_before(sender.ended, receiver.started),
            tools_allowed=receiver.tools_offered,
            tools_source="offered" if receiver.tools_offered is not None else None,
            unknown=["to_agent"] if "agent" in receiver.unknown else [],
        )
        dispatch.unknown += [n for n in ("started", "ended") if getattr(dispatch, n) is None]
        receiver.started_by.append(dispatch.id)
        self.dispatches.append(dispatch)

    def _delegate(self, starter: Starter, agent: Span, *, first: bool) -> None:
        sender, steps = self._runs[id(starter.agent)], self._steps[id(starter.agent)]
        run = self._runs[id(agent)]
        call = steps.call_in(starter.tool) if first else None
        tool = starter.tool.tool_call if starter.tool is not None else None
        name = self._names.of(agent)
        dispatch = Dispatch(
            id=self._ids.new("dispatch"),
            kind="delegate",
            basis="structure",
            from_run=sender.id,
            from_agent=sender.agent,
            to_agent=name or (tool.name if tool is not None else run.agent),
            call=call.id if call is not None else None,
            runs=[run.id],
            depth=1,
            started=call.at if call is not None and call.at is not None else run.started,
            ended=call.ended if call is not None else run.ended,
            tools_allowed=run.tools_offered,
            tools_source="offered" if run.tools_offered is not None else None,
            unknown=[] if name is not None else ["to_agent"],
        )
        if call is not None:
            _answer(dispatch, call, agent)
        else:
            dispatch.unknown.append("prompt")
            dispatch.result = run.output
            dispatch.status = "completed" if run.output is not None else "unknown"
            dispatch.unknown += [] if run.output is not None else ["result"]
        dispatch.unknown += [] if dispatch.ended is not None else ["ended"]
        run.started_by.append(dispatch.id)
        answered = dispatch.status in ("completed", "failed")
        steps.hand_off(call, dispatch.id, dispatch.started, dispatch.ended if answered else None)
        if dispatch.status == "failed" and run.status == "unknown":
            run.status, run.error = "failed", dispatch.error
            run.unknown.remove("output")
        self.dispatches.append(dispatch)

    def _transfer(self, sender: AgentRun, steps: Steps, call: Call, asked: Handed) -> None:
        step = call.step
        receiver = self._runs.get(self._arrived.get(id(call.span), 0))
        dispatch = Dispatch(
            id=self._ids.new("dispatch"),
            kind="transfer",
            from_run=sender.id,
            from_agent=sender.agent,
            to_agent=receiver.agent if receiver is not None else asked.to,
            call=step.id,
            prompt=Content(text=asked.message) if asked.message is not None else None,
            context=asked.context,
            runs=[receiver.id] if receiver is not None else [],
            started=step.at,
            ended=_not_before(step.at, receiver.started if receiver is not None else None),
        )
        if step.status == "failed":
            dispatch.status, dispatch.error, step.error = "refused", step.error, None
            step.status, step.refused_by, dispatch.ended = "refused", "runtime", step.ended
        elif receiver is None:
            dispatch.status = "unanswered"
        else:
            receiver.started_by.append(dispatch.id)
            dispatch.unknown += [] if dispatch.ended is not None else ["ended"]
            step.result = None
        if receiver is not None and receiver.tools_offered is not None:
            dispatch.tools_allowed, dispatch.tools_source = receiver.tools_offered, "offered"
        if step.at is None:
            dispatch.unknown.append("started")
        step.dispatch = dispatch.id
        back = dispatch.ended if dispatch.status == "refused" else None
        steps.hand_off(step, dispatch.id, step.at, back)
        self.dispatches.append(dispatch)

    def _set_depths(self) -> None:
        """Count nested delegates from the turn's first agent outwards."""
        made = {id_: dispatch for dispatch in self.dispatches for id_ in dispatch.runs}
        known: dict[str, int] = {}
        for dispatch in self.dispatches:
            path: list[Dispatch] = []
            at: Dispatch | None = dispatch
            while at is not None and at.id not in known:
                known[at.id] = 0  # a circle ends where it was entered
                path.append(at)
                at = made.get(at.from_run or "")
            depth = known[at.id] if at is not None else 0
            for each in reversed(path):
                depth += each.kind == "delegate"
                known[each.id] = each.depth = depth

    def _set_groups(self) -> None:
        """Number the delegates that one answer of a model asked for together."""
        numbers = itertools.count(1)
        by_id = {dispatch.id: dispatch for dispatch in self.dispatches}
        for steps in self._steps.values():
            together: dict[int, list[Dispatch]] = {}
            for call in steps.calls:
                dispatch = by_id.get(call.step.dispatch or "")
                if dispatch is not None and call.asked_in is not None:
                    together.setdefault(id(call.asked_in), []).append(dispatch)
            for dispatches in together.values():
                number = next(numbers) if len(dispatches) > 1 else None
                for dispatch in dispatches:
                    dispatch.group = number


def _not_before(started: float | None, ended: float | None) -> float | None:
    """Return a time, unless a clock went backwards."""
    return None if started is not None and ended is not None and ended < started else ended


def _answer(dispatch: Dispatch, call: ToolCall, agent: Span) -> None:
    """Move what a call said and got back to its dispatch."""
    dispatch.prompt, dispatch.context = _prompt(call.arguments, agent.user_prompt)
    call.dispatch = dispatch.id
    if call.status == "failed":
        dispatch.status, dispatch.error, call.error = "failed", call.error, None
    elif call.status == "unanswered":
        dispatch.status = "unanswered"
    else:
        dispatch.result, call.result = call.result, None
        if dispatch.result is not None and dispatch.result.text == agent.agent_response:
            dispatch.result = answer_content(agent)


def _prompt(arguments: Any, received: str | None) -> tuple[Content | None, dict[str, Any]]:
    """Tell the message in the arguments of a call: the text that arrived, or the only text."""
    if not isinstance(arguments, dict) or not arguments:
        return (Content(data=arguments) if arguments is not None else None), {}
    texts = [key for key, value in arguments.items() if isinstance(value, str)]
    same = [key for key in texts if arguments[key] == received]
    key = same[0] if same else texts[0] if len(texts) == 1 else None
    if key is None:
        return Content(data=arguments), {}
    return Content(text=arguments[key]), {k: v for k, v in arguments.items() if k != key}

"""The steps of a run while hand-offs and answers are put between them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from baton.model import AgentRun, GotBack, HandedOff, Said, Step, ToolCall


class Sheet:
    """What was said and called stays as it is; what comes between is kept beside it.

    A place is the number of a step that was said or called, from 1, after which something
    stands; 0 is the beginning.
    """

    def __init__(self, run: AgentRun) -> None:
        self._run = run
        self._steps = run.steps
        self._after: list[list[Step]] = [[] for _ in range(len(self._steps) + 1)]
        self._place = {id(step): place for place, step in enumerate(self._steps, 1)}
        self._sent: dict[str, int] = {}
        self._said: list[int] = []
        self._latest: list[float] = []
        latest = float("-inf")
        for index, step in enumerate(self._steps):
            if isinstance(step, Said | ToolCall) and step.at is not None:
                latest = max(latest, step.at)
            if isinstance(step, Said):
                self._said.append(index)
            self._latest.append(latest)

    def last(self) -> Step | None:
        """Return the step that stands last."""
        after = self._after[-1]
        return after[-1] if after else self._steps[-1] if self._steps else None

    def hand_off(self, step: HandedOff, call: ToolCall | None) -> None:
        """Put a hand-off right after the call that makes it, else where its time belongs."""
        if call is None:
            place = self._place_of(step.at)
            self._after[place].append(step)
        else:
            place = self._place[id(call)]
            self._after[place].insert(0, step)
        self._sent[step.dispatch] = place

    def got_back(self, step: GotBack) -> None:
        """Put an answer where its time belongs, or before what was said next."""
        sent = self._sent[step.dispatch]
        place = self._next_said(sent) if step.at is None else self._place_of(step.at)
        after = self._after[max(place, sent)]
        if place >= sent:
            after.append(step)
            return
        own = next(i for i, s in enumerate(after) if _hands_off(s, step.dispatch))
        after.insert(own + 1, step)

    def write(self) -> None:
        """Write all steps into the run."""
        steps = list(self._after[0])
        for step, after in zip(self._steps, self._after[1:], strict=True):
            steps.append(step)
            steps += after
        self._run.steps = steps

    def _place_of(self, at: float | None) -> int:
        return len(self._steps) if at is None else bisect_right(self._latest, at)

    def _next_said(self, sent: int) -> int:
        later = bisect_left(self._said, sent)
        return self._said[later] if later < len(self._said) else len(self._steps)


def _hands_off(step: Step, dispatch: str) -> bool:
    return isinstance(step, HandedOff) and step.dispatch == dispatch

"""``replay``: recorded traces in place of live agents."""

from __future__ import annotations

from typing import Literal, Self

import msgspec

from baton.model import Case, InputError, Problem, ProviderError, Trace
from baton.model.dataset import Need, message_hash
from baton.readers import load_traces

from .base_provider import ConfiguredProvider, ProviderOptions, Surroundings


class ReplayOptions(ProviderOptions, kw_only=True):
    """Files and folders of recorded traces, in any format that ``baton score`` reads."""

    type: Literal["replay"]
    paths: list[str]


class Replay(ConfiguredProvider[ReplayOptions]):
    """Finds the trace of a case by its id, else by the user's first message."""

    summary = "recorded traces, by case"
    options_type = ReplayOptions

    def __init__(self, options: ReplayOptions, around: Surroundings | None = None) -> None:
        super().__init__(options, around)
        missing = [path for path in options.paths if not (self.around.folder / path).exists()]
        if missing:
            raise InputError(
                Problem(
                    path="paths", message=f"{self.around.folder / path}: no such file or folder"
                )
                for path in missing
            )
        self._by_id: dict[str, list[Trace]] = {}
        self._by_input: dict[int, list[Trace]] = {}

    async def __aenter__(self) -> Self:
        paths = [self.around.folder / path for path in self.options.paths]
        self._by_id, self._by_input = {}, {}
        for trace in load_traces(paths, agents=self.around.agents, redact=False):
            for name in {trace.case, trace.id} - {None}:
                self._by_id.setdefault(str(name), []).append(trace)
            first = trace.turns[0].input if trace.turns else None
            if first is not None and message_hash(first.plain()):
                self._by_input.setdefault(message_hash(first.plain()), []).append(trace)
        return self

    def lacks(self, need: Need) -> str | None:  # noqa: ARG002 - no session is held, none restarted
        """Play any case."""
        return None

    async def __call__(self, case: Case) -> Trace:
        """Return the recorded trace of a case; raises ProviderError unless there is exactly one."""
        await self.hooks.state(case)
        traces = self._by_id.get(case.id) or self._by_input.get(message_hash(case.first_input), [])
        if len(traces) != 1:
            places = ", ".join(str(trace.source.location) for trace in traces[:5])
            raise ProviderError(
                f"{len(traces)} recorded traces for case `{case.id}`: {places}"
                if traces
                else f"no recorded trace for case `{case.id}`: none has its id or first message"
            )
        trace = msgspec.structs.replace(traces[0], case=case.id)
        for turn in trace.turns:
            await self.hooks.after_turn(case, turn)
        return trace

"""Plays cases with programs of a test, in this process or in one of their own."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from baton import components
from baton.datasets.dispatch_cases import answers_of, turns_of
from baton.datasets.recorded_dispatches import part_of, read_record
from baton.model import (
    Case,
    Content,
    DispatchCase,
    ExpectedTurn,
    Form,
    MadeCall,
    MadeDispatch,
    Message,
    StandIns,
    ToolCall,
    Trace,
    integrity_problems,
)
from baton.model.stand_ins import RecordedAnswer, StandIn
from baton.plugins.user_code import load_object
from baton.providers.base_provider import Surroundings
from baton.providers.python import Python, PythonOptions

SHOPS = ("langgraph", "openai_agents", "pydantic_ai", "strands")
"""Frameworks with a shop."""
DATA = Path(__file__).parents[1] / "data" / "stand_ins"
FOUND = {"order": "7", "total": 40}
RECORDED = [
    RecordedAnswer(name="look_up", agent="cashier", input={"order": "7"}, result={"total": 40}),
    RecordedAnswer(name="stock", agent="cashier", input={"order": "7"}, result="none left"),
    RecordedAnswer(name="charge", input={"order": "7", "amount": 40}, result="charged 40 then"),
]
REPLAYED = [
    RecordedAnswer(name="look_up", input={"order": "7"}, result=FOUND),
    RecordedAnswer(name="pay_back", input={"order": "7", "amount": 40}, result="paid 40"),
]
"""What the tools of a shop answered in a recorded run."""


class Program:
    """A program of a test, in its own file."""

    def __init__(self, folder: Path, text: str) -> None:
        self.folder = folder
        (folder / "shop.py").write_text(text)

    def play(self, case: Case, target: str = "desk", **options: Any) -> Trace:
        """Play one case."""
        (trace,) = self.play_all([case], target, **options)
        return trace

    def play_all(
        self,
        cases: Sequence[Case],
        target: str = "desk",
        *,
        texts: dict[str, str] | None = None,
        here: bool = True,
        **options: Any,
    ) -> list[Trace]:
        """Play cases side by side; changed texts, too, in this process unless that is not asked."""
        stated = PythonOptions(type="python", target=f"{self.folder}/shop.py:{target}", **options)

        async def played() -> list[Trace]:
            around = Surroundings(self.folder, texts=texts or {})
            async with Python(stated, around, here=here) as provider:
                return await asyncio.gather(*(provider(case) for case in cases))

        try:
            traces = asyncio.run(played())
        finally:  # this process continues with the texts as they are
            components.use({})
            os.environ.pop(components.ENVIRONMENT, None)
        for trace in traces:
            assert integrity_problems(trace) == []
        return traces

    def value(self, name: str) -> Any:
        """Return what a name of the program holds now."""
        return load_object(f"{self.folder}/shop.py:{name}", self.folder)


class Shop(Program):
    """A program whose tool `charge` notes in a file what it charged, in whatever process."""

    @classmethod
    def of(cls, framework: str, folder: Path) -> Shop:
        """Put the shop of a framework into a folder."""
        return cls(folder, (DATA / f"{framework}_shop.py").read_text())

    def begin(self) -> Shop:
        """Forget what was charged."""
        (self.folder / "charges.txt").unlink(missing_ok=True)
        return self

    @property
    def charges(self) -> list[str]:
        """The orders that really were charged."""
        file = self.folder / "charges.txt"
        return file.read_text().splitlines() if file.exists() else []


def asked(text: str = "refund order 7", **more: Any) -> Case:
    """Make a case of one message."""
    return Case(id="c", turns=[ExpectedTurn(input=Content(text=text))], **more)


def moment(
    form: Any, to: str, tool: str, *, result: str = "paid 40", id: str = "c", **call: Any
) -> Case:
    """Make a dispatch case: the desk has found the order, and hands it on."""
    found = MadeCall(name="look_up", arguments={"order": "7"}, result=Content(data=FOUND))
    dispatch = DispatchCase(
        form=form,
        context=[
            Message(role="user", text="refund order 7"),
            Message(role="agent", agent="desk", calls=[found]),
        ],
        call=MadeDispatch(
            sender=call.pop("sender", "desk"),
            to=to,
            tool=tool,
            prompt=Content(text="Refund order 7"),
            result=Content(text=result),
            **call,
        ),
    )
    answer = RecordedAnswer(kind="agent", name=to, input="Refund order 7", result=result)
    agents = {to: StandIn(mode="replay")} if form == "integration" else {}
    ins = StandIns(mode="replay", recorded=[*REPLAYED, answer], agents=agents)
    said = "Refund order 7" if form == "child" else "refund order 7"
    return Case(
        id=id, turns=[ExpectedTurn(input=Content(text=said))], dispatch=dispatch, stand_ins=ins
    )


def calls(trace: Trace) -> list[ToolCall]:
    """Return all calls of tools."""
    runs = [run for turn in trace.turns for run in turn.runs]
    return [step for run in runs for step in run.steps if isinstance(step, ToolCall)]


def said(trace: Trace) -> str:
    """Return the answer of the last turn."""
    output = trace.turns[-1].output
    return output.plain() if output is not None else ""


def sent(trace: Trace) -> list[tuple[str | None, str, str | None]]:
    """Return who handed work to whom, and how each was told it."""
    return [
        (each.from_agent, each.to_agent, each.prompt.plain() if each.prompt else None)
        for turn in trace.turns
        for each in turn.dispatches
    ]


def routed(trace: Trace) -> list[tuple[str | None, str, str | None]]:
    """Return who handed work to whom, and what stood in for the receiver."""
    return [
        (each.from_agent, each.to_agent, each.stand_in)
        for turn in trace.turns
        for each in turn.dispatches
    ]


def recorded_moment(trace: Trace, form: Form) -> Case:
    """Make a dispatch case of the first dispatch of a recorded run."""
    dispatch = trace.turns[0].dispatches[0]
    case = read_record(part_of(trace, dispatch, 3), dispatch.id, form=form)
    return Case(id="c", turns=turns_of(case), dispatch=case, stand_ins=answers_of(case))


def replaying(trace: Trace) -> StandIns:
    """Return stand-ins that answer as a recorded run did."""
    found = recorded_moment(trace, "decision").stand_ins
    assert found is not None
    return StandIns(mode="replay", recorded=found.recorded)

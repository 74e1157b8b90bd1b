"""Checks of answers that need more than the text: findings, rubrics, and functions of a program.

    from baton.guard import output_check

    @output_check("no_prices")
    def no_prices(answer: str, event: Event) -> str | None:
        return "names a price" if "EUR" in answer else None

A policy names such a function (``{function: no_prices}``); it can name nothing else of Python.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from baton.model import EvalContext, InputError, Score, suggestion
from baton.model.trace import (
    SCHEMA_VERSION,
    AgentRun,
    Content,
    Dispatch,
    Said,
    Source,
    Trace,
    Turn,
)

if TYPE_CHECKING:
    from baton.evaluators.judged import Judged
    from baton.evaluators.judging.rubric import Rubric
    from baton.http.client import Beside
    from baton.judges.judge import LlmJudge

    from .decide import Event
    from .policy import Check, Found

OutputCheck = Callable[[str, "Event"], str | None]
_FUNCTIONS: dict[str, OutputCheck] = {}


def output_check(name: str) -> Callable[[OutputCheck], OutputCheck]:
    """Register a function under the name by which policies ask it.

    It is given an answer and its event, and says what is wrong with the answer; ``None`` = nothing.
    What it raises is a rule that fails.
    """

    def register(function: OutputCheck) -> OutputCheck:
        _FUNCTIONS[name] = function
        return function

    return register


def ask_function(name: str, event: Event) -> str | None:
    """Ask a registered function; raises InputError when there is none of this name here."""
    function = _FUNCTIONS.get(name)
    if function is None:
        hint = suggestion(name, _FUNCTIONS)
        said = f"no function `{name}` is registered in this program"
        raise InputError(f"{said}; {hint}" if hint else said)
    return function(event.output or "", event)


def find(finding: Found, event: Event) -> str | bool | None:
    """Ask a finding about a record of this one dispatch; ``False`` where it can't tell."""
    from baton.findings.claims_supported import claims_of_receivers
    from baton.findings.context_carried import context_carried
    from baton.findings.dispatch_completed import completed

    trace = record_of(event)
    (turn,) = trace.turns
    (dispatch,) = turn.dispatches
    if finding == "claims_supported":
        found = claims_of_receivers(trace, turn, dispatch)
        faults = found if isinstance(found, list) else []
        if "other_calls" in event.unknown:  # what no guard saw may be behind a claim
            sure = [each for each in faults if each.kind == "contradicted_claim"]
            if faults and not sure:
                return False
            faults = sure
    else:
        find = completed if finding == "dispatch_completed" else context_carried
        found = find(trace, turn, dispatch)
        faults = found if isinstance(found, list) else []
    proven = [each.says for each in faults if not each.warning]
    return f"is faulty ({proven[0][:200]})" if proven else None


def ask_rubric(check: Check, event: Event) -> str | bool | None:
    """Ask a judge what a rubric says of this one dispatch; ``False`` where it can't be told.

    Raises:
        InputError: there is no such rubric, it is about something else, or no judge can be asked.
        RuntimeError: the judge gave no verdict.
    """
    from baton.evaluators.judged import Judged

    score = _JUDGES.ask(Judged(_rubric(check.folder, check.rubric or "")), check, record_of(event))
    if score.status == "error":
        raise RuntimeError(score.reason)
    if score.status == "skipped":
        return False
    return f"is not what it should be ({score.reason[:200]})" if score.status == "failed" else None


@lru_cache(maxsize=100)
def _rubric(folder: str, named: str) -> Rubric:
    """Return a rubric about a dispatch, as it was when it was first asked."""
    from baton.evaluators.judging.load import load_rubric, shipped

    if named.endswith((".yaml", ".yml")):
        rubric = load_rubric(Path(folder) / named)
    elif (known := shipped()).get(named) is None:
        raise InputError(f"there is no rubric `{named}`; {suggestion(named, known)}")
    else:
        rubric = known[named]
    if rubric.unit != "dispatch":
        raise InputError(f"the rubric `{named}` is about a {rubric.unit}, not about a dispatch")
    return rubric


class _Judges:
    """The judges of policies: one for each, with its connections and its budget.

    They are asked in a loop of their own, for callers with one and without. A decision waits for
    its answer in the thread that it is made in.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = 0
        self._beside: Beside | None = None
        self._made: dict[bytes, LlmJudge] = {}

    def ask(self, rubric: Judged, check: Check, trace: Trace) -> Score:
        """Ask the judge of a check."""
        beside, judge = self._of(check)

        async def asked() -> Score:
            return (await rubric.evaluate(trace, None, EvalContext(judge=judge)))[0]

        return beside.run(asked())

    def close(self) -> None:
        """Close connections and end the loop."""
        with self._lock:
            if self._beside is not None and self._process == os.getpid():
                for judge in self._made.values():
                    self._beside.run(judge.close())
                self._beside.close()
            self._beside, self._made = None, {}

    def _of(self, check: Check) -> tuple[Beside, LlmJudge]:
        from baton.http.client import Beside
        from baton.judges.judge import make_judge
        from baton.judges.settings import read_settings

        if check.judge is None:
            raise InputError("a rubric needs a model: name one as `judge:` of the policy")
        stated = {"model": check.judge} if isinstance(check.judge, str) else check.judge
        key = msgspec.json.encode(stated, order="deterministic")
        with self._lock:
            if self._beside is None or self._process != os.getpid():
                # Neither a thread nor a connection survives a fork.
                self._beside, self._made, self._process = Beside(), {}, os.getpid()
                atexit.unregister(self.close)
                atexit.register(self.close)
            if key not in self._made:
                self._made[key] = make_judge(read_settings(stated))
            return self._beside, self._made[key]


_JUDGES = _Judges()


def record_of(event: Event) -> Trace:
    """Return a record of the one dispatch whose answer an event is."""
    answer = None if event.output is None else Content(text=event.output)
    prompt = None if event.prompt is None else Content(text=event.prompt)
    request = None if event.request is None else Content(text=event.request)
    sender = AgentRun(id="run1", agent=event.sender or "", input=request)
    said = [] if answer is None else [Said(id="said", content=answer)]
    receiver = AgentRun(
        id="run2",
        agent=event.to,
        input=prompt,
        output=answer,
        started_by=["dispatch1"],
        steps=[*event.calls, *said],
        status="completed",
    )
    dispatch = Dispatch(
        id="dispatch1",
        kind="delegate",
        from_run="run1",
        from_agent=event.sender,
        to_agent=event.to,
        prompt=prompt,
        runs=["run2"],
        result=answer,
        depth=1,
    )
    turn = Turn(id="turn1", input=request, runs=[sender, receiver], dispatches=[dispatch])
    return Trace(
        schema_version=SCHEMA_VERSION, id="guard", source=Source(format="guard"), turns=[turn]
    )

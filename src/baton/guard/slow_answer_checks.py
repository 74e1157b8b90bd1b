"""Checks of answers that need more than the text: findings, rubrics, and the program's functions.

    from baton.guard import output_check

    @output_check("no_prices")
    def no_prices(answer: str, event: Event) -> str | None:
        return "names a price" if "EUR" in answer else None

A policy names such a function (``{function: no_prices}``); it cannot name any other Python code.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from baton.model import EvalContext, InputError, Score, suggestion
from baton.model.trace import (
    SCHEMA_VERSION,
    AgentCard,
    AgentRun,
    Content,
    Dispatch,
    GotBack,
    HandedOff,
    Said,
    Source,
    Step,
    ToolCall,
    Trace,
    Turn,
)

if TYPE_CHECKING:
    from baton.evaluators.judged import Judged
    from baton.evaluators.judging.rubric import Rubric
    from baton.findings.finding import Finding
    from baton.http.client import Beside
    from baton.judges.judge import LlmJudge

    from .decide_event import Event
    from .policy import Check, Found

OutputCheck = Callable[[str, "Event"], str | None]
_FUNCTIONS: dict[str, OutputCheck] = {}
_LONGEST = 200_000
"""The most characters that a finding reads while a caller waits: comparing their facts takes 1
s.
"""


def output_check(name: str) -> Callable[[OutputCheck], OutputCheck]:
    """Register a function under the name that policies use.

    It gets an answer and its event, and returns what is wrong with the answer, or ``None``. If it
    raises, the rule fails.
    """

    def register(function: OutputCheck) -> OutputCheck:
        _FUNCTIONS[name] = function
        return function

    return register


def ask_function(name: str, event: Event) -> str | None:
    """Call a registered function; raises InputError if none has this name."""
    function = _FUNCTIONS.get(name)
    if function is None:
        hint = suggestion(name, _FUNCTIONS)
        message = f"no function `{name}` is registered in this program"
        raise InputError(f"{message}; {hint}" if hint else message)
    try:
        wrong = function(event.output or "", event)
    # otherwise the hook of Claude Code would end here, and let the answer pass
    except SystemExit as error:
        raise RuntimeError(f"the function `{name}` ended the program ({error})") from None
    if wrong is not None and not isinstance(wrong, str):
        raise TypeError(f"the function `{name}` returned {wrong!r:.100}, not a text or None")
    return wrong


def find(finding: Found, event: Event) -> str | bool | None:
    """Run a finding on a record of this one dispatch; ``False`` if it can't tell."""
    texts = [event.request, event.prompt, event.output]
    texts += [text for each in event.handed for text in (each.prompt, each.result)]
    if sum(len(text or "") for text in texts) > _LONGEST:
        return False
    trace = record_of(event)
    (turn,) = trace.turns
    dispatch, *own = turn.dispatches
    findings: list[object]
    # Each imports its own modules, which other checks do not need.
    if finding == "claims_supported":
        from baton.findings.claims_supported import claims_of_receivers

        if event.handed:  # if an agent had help, its calls are not everything that was done
            return False
        findings = [claims_of_receivers(trace, turn, dispatch)]
    elif finding == "announced_dispatch":
        from baton.findings.announced_dispatch import announced_dispatch

        findings = [announced_dispatch(trace, turn, turn.runs[1])]
    elif finding in ("result_contradicted", "result_used"):
        from baton.findings.result_contradicted import result_contradicted
        from baton.findings.result_used import result_used

        # no agent has read it yet, so it cannot be the source of its own values
        dispatch.result = None
        check = result_contradicted if finding == "result_contradicted" else result_used
        findings = [check(trace, turn, each) for each in own if each.result is not None]
    elif finding == "context_carried":
        from baton.findings.context_carried import context_carried

        findings = [context_carried(trace, turn, dispatch)]
    else:
        from baton.findings.dispatch_completed import completed

        findings = [completed(trace, turn, dispatch)]
    faults: list[Finding] = [
        each for faults in findings if isinstance(faults, list) for each in faults
    ]
    sure = faults
    if finding == "claims_supported" and "other_calls" in event.unknown:
        # A claim may refer to work that no guard saw.
        sure = [each for each in faults if each.kind == "contradicted_claim"]
    elif finding == "announced_dispatch":
        # Any tool call may dispatch work: `notify({"team": "billing"})`.
        sure = [each for each in faults if not _is_named(each.details["agent"], event.calls)]
    if faults and not sure:
        return False
    proven = [each.says for each in sure if not each.warning]
    return f"is faulty ({proven[0][:200]})" if proven else None


def _is_named(agent: str, calls: Sequence[ToolCall]) -> bool:
    """Tell whether a call names an agent, in its name or in its arguments."""
    from baton.findings.finding import name_key
    from baton.providers.user_functions import as_json

    key = name_key(agent)
    return any(
        key in name_key(call.name) or key in name_key(as_json(call.arguments).decode())
        for call in calls
    )


def ask_rubric(check: Check, event: Event) -> str | bool | None:
    """Ask a judge to apply a rubric to this one dispatch; ``False`` if it can't tell.

    Raises:
        InputError: there is no such rubric, it is not about dispatches, or there is no judge.
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
    """Return a rubric about a dispatch, as it was on first use."""
    from baton.evaluators.judging.rubric_files import load_rubric, shipped

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
    """The judges of policies: one per policy, with its connections and its budget.

    They run in a separate event loop, for callers with and without one. A decision waits for the
    answer in its own thread.
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
        from baton.judges.judge_settings import read_settings

        if check.judge is None:
            raise InputError("a rubric needs a model: name one as `judge:` of the policy")
        stated = {"model": check.judge} if isinstance(check.judge, str) else check.judge
        key = msgspec.json.encode(stated, order="deterministic")
        with self._lock:
            if self._beside is None or self._process != os.getpid():
                # Threads and connections do not survive a fork.
                self._beside, self._made, self._process = Beside(), {}, os.getpid()
                atexit.unregister(self.close)
                atexit.register(self.close)
            if key not in self._made:
                self._made[key] = make_judge(read_settings(stated))
            return self._beside, self._made[key]


_JUDGES = _Judges()


def record_of(event: Event) -> Trace:
    """Return a record of the dispatch that an answer belongs to, and of the dispatches below it."""
    answer = None if event.output is None else Content(text=event.output)
    prompt = None if event.prompt is None else Content(text=event.prompt)
    request = None if event.request is None else Content(text=event.request)
    sender = AgentRun(id="run1", agent=event.sender or "", input=request)
    steps = [] if answer is None else [Said(id="said", content=answer)]
    receiver = AgentRun(
        id="run2",
        agent=event.to,
        input=prompt,
        output=answer,
        started_by=["dispatch1"],
        status="completed",
    )
    below, dispatches, receiver.steps = _handed_on(event)
    receiver.steps += steps
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
    turn = Turn(
        id="turn1",
        input=request,
        runs=[sender, receiver, *below],
        dispatches=[dispatch, *dispatches],
    )
    return Trace(
        schema_version=SCHEMA_VERSION,
        id="guard",
        source=Source(format="guard"),
        turns=[turn],
        agents={name: AgentCard() for name in event.agents},
    )


def _handed_on(event: Event) -> tuple[list[AgentRun], list[Dispatch], list[Step]]:
    """Return the runs that the answering agent started, their dispatches, and its own steps."""
    runs, dispatches = [], []
    steps: list[Step] = list(event.calls)
    # From the end, so that earlier indices do not change.
    numbered = sorted(enumerate(event.handed, 2), key=lambda each: each[1].after)
    for number, handed in reversed(numbered):
        id_, run = f"dispatch{number}", f"run{number + 1}"
        back = None if handed.result is None else Content(text=handed.result)
        task = None if handed.prompt is None else Content(text=handed.prompt)
        got = [] if back is None else [GotBack(id=f"back{number}", dispatch=id_)]
        steps[handed.after : handed.after] = [HandedOff(id=f"sent{number}", dispatch=id_), *got]
        runs.append(
            AgentRun(
                id=run,
                agent=handed.to,
                input=task,
                output=back,
                started_by=[id_],
                status="completed",
            )
        )
        dispatches.append(
            Dispatch(
                id=id_,
                kind="delegate",
                from_run="run2",
                from_agent=event.to,
                to_agent=handed.to,
                prompt=task,
                runs=[run],
                result=back,
                status="unknown" if back is None else "completed",
                depth=2,
            )
        )
    return runs[::-1], dispatches[::-1], steps

"""`python`: a function of the user's own plays the cases."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import baton
from baton.model import (
    Case,
    CaseResult,
    Content,
    Evaluation,
    ExpectedToolCall,
    InputError,
    Trace,
    known,
)
from baton.testing.build import case, cases

Play = Callable[..., list[CaseResult]]
Evaluate = Callable[..., Evaluation]
TOKENS = {"type": "tokens", "config": {"max_total": 20}}
COST = {"type": "cost", "config": {"max_usd": 1}}


@pytest.fixture
def evaluation(tmp_path: Path) -> Evaluate:
    """Play cases with the function `reply` of some code."""

    def run(
        code: str, cases: Sequence[Case] | None = None, *evaluators: Any, **more: Any
    ) -> Evaluation:
        (tmp_path / "agent.py").write_text(dedent(code), encoding="utf-8")
        spec = {"type": "python", "target": f"{tmp_path}/agent.py:reply", **more.pop("spec", {})}
        options = {"repeat": 1, **more}
        return baton.evaluate(
            cases or [case(id="a")], spec, evaluators or ["agent_chain"], **options
        )

    return run


@pytest.fixture
def play(evaluation: Evaluate) -> Play:
    """Play cases, and return their results."""

    def run(*arguments: Any, **more: Any) -> list[CaseResult]:
        return list(evaluation(*arguments, **more))

    return run


def texts(result: CaseResult) -> list[str | None]:
    assert result.trace is not None, result.error
    return [turn.output.text if turn.output else None for turn in result.trace.turns]


@pytest.mark.parametrize("how", ["def", "async def"])
def test_a_function_answers_message_by_message(play: Play, how: str) -> None:
    (result,) = play(f"{how} reply(message): return message.upper()", [case("hi", "there", id="a")])
    assert result.error is None
    assert texts(result) == ["HI", "THERE"]


def test_a_function_that_is_not_async_may_return_what_has_to_be_awaited(play: Play) -> None:
    code = """
    async def later(message): return message * 2
    def reply(message): return later(message)
    """
    assert texts(play(code)[0]) == ["hihi"]


def test_the_session_lasts_as_long_as_the_session_and_starts_from_the_state(play: Play) -> None:
    code = """
    def reply(message, session):
        session["seen"].append(message)
        return ",".join(session["seen"])
    """
    played = case("one", "two", "three", "four", id="a")
    played.state = {"seen": ["zero"]}
    played.turns[2].new_session = True
    results = play(code, [played], repeat=2)
    for result in results:
        assert texts(result) == ["zero,one", "zero,one,two", "zero,three", "zero,three,four"]
    assert played.state == {"seen": ["zero"]}


def test_a_parameter_called_case_gets_the_case(play: Play) -> None:
    code = "async def reply(text, *, case, session): return f'{case.id} {text} {session}'"
    assert texts(play(code)[0]) == ["a hi {}"]


def test_a_function_whose_first_parameter_is_case_plays_it_at_once(play: Play) -> None:
    code = """
    from baton.model import AgentRun, Content, Source, Trace, Turn

    def reply(case, session):
        turns = [
            Turn(id=f"t{n}", input=turn.input, output=Content(text=str(session)),
                 runs=[AgentRun(id=f"r{n}", agent="desk")])
            for n, turn in enumerate(case.turns)
        ]
        return Trace(schema_version=1, id="whatever", source=Source(format="mine"), turns=turns)
    """
    played = case("hi", "there", id="a", agents=["desk"])
    played.state = {"x": 1}
    (result,) = play(code, [played])
    assert result.status == "passed"
    assert texts(result) == ["{'x': 1}"] * 2
    assert result.trace is not None
    assert (result.trace.case, result.trace.id) == ("a", "whatever")


def test_text_for_a_whole_case_stands_for_one_turn_and_not_for_several(play: Play) -> None:
    results = play("def reply(case): return 'x'", [case(id="a"), case("one", "two", id="b")])
    assert texts(results[0]) == ["x"]
    assert "returned str for a case of 2 turns" in (results[1].error or "")


def test_a_trace_for_one_message_of_several_is_refused(play: Play) -> None:
    code = """
    from baton.model import Source, Trace
    def reply(message):
        return Trace(schema_version=1, id="x", source=Source(format="x"), turns=[])
    """
    results = play(code, [case(id="a"), case("one", "two", id="b")])
    assert results[0].error is None
    assert "make `case` its first parameter" in (results[1].error or "")


def test_text_leaves_agents_and_tools_unknown_so_that_they_are_skipped_and_not_failed(
    play: Play,
) -> None:
    wanted = case(id="a", agents=["desk"], tool_calls=[ExpectedToolCall(name="f")])
    (result,) = play("def reply(m): return 'x'", [wanted], "agent_chain", "tool_calls", TOKENS)
    assert [score.status for score in result.scores] == ["skipped"] * 3
    assert [score.value for score in result.scores] == [None] * 3
    trace = result.trace
    assert trace is not None
    assert not known(trace, trace.turns[0], "runs")
    assert not known(trace, trace, "usage")


def test_a_dict_tells_agents_tools_and_usage(play: Play) -> None:
    code = """
    def reply(message):
        return {
            "output": {"total": 42},
            "agents": ["router", "billing"],
            "tool_calls": [
                {"name": "route"},
                {"name": "refund", "arguments": {"order": 7}, "result": "done", "agent": "billing"},
                {"name": "mail", "error": "no such address", "agent": "billing"},
            ],
            "usage": {"input_tokens": 10, "output_tokens": 5, "cost_usd": 0.25},
        }
    """
    calls = [ExpectedToolCall(name=name) for name in ("route", "refund", "mail")]
    wanted = case(id="a", agents=["router", "billing"], tool_calls=calls)
    (result,) = play(code, [wanted], "agent_chain", "tool_calls", TOKENS, COST)
    assert [(s.evaluator, s.status) for s in result.scores] == [
        ("agent_chain", "passed"), ("tool_calls", "passed"),
        ("tokens", "passed"), ("cost", "passed"),
    ]  # fmt: skip
    trace = result.trace
    assert trace is not None
    assert trace.usage is not None
    assert (trace.usage.input_tokens, trace.usage.cost_from) == (10, "source")
    assert trace.turns[0].output == Content(data={"total": 42})
    router, billing = trace.turns[0].runs
    assert [len(router.steps), len(billing.steps)] == [1, 2]
    assert billing.steps[1].status == "failed"  # type: ignore[union-attr]


def test_agents_alone_leave_tools_unknown_and_no_tool_calls_at_all_are_known(play: Play) -> None:
    wanted = [case(id="a", tool_calls=[]), case(id="b", tool_calls=[])]
    code = """
    def reply(message, case):
        return {"agents": ["a"]} if case.id == "a" else {"agents": ["a"], "tool_calls": []}
    """
    told, untold = play(code, wanted, "tool_calls")
    assert [told.status, untold.status] == ["skipped", "passed"]


def test_a_dict_with_none_of_our_keys_is_structured_output(play: Play) -> None:
    (result,) = play("def reply(m): return {'price': 1.5, 'days': [1, 2]}")
    assert result.trace is not None
    assert result.trace.turns[0].output == Content(data={"price": 1.5, "days": [1, 2]})


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("None", "returned nothing"),
        ("42", "returned int: it has to return text, a dict or a Trace"),
        ("object()", "returned object"),
        ("b'bytes'", "returned bytes"),
        ("['a']", "returned list"),
        ("{'output': 'x', 'agent': ['a']}", "dict with `agent`; did you mean `agents`?"),
        ("{'output': 'x', 'agents': 'desk'}", "agents: "),
        ("{'agents': ['a'], 'tool_calls': [{'nam': 'f'}]}", "did you mean `name`"),
        ("{'agents': ['a'], 'tool_calls': [{'name': 'f', 'agent': 'b'}]}", "`b` is not among"),
        ("{'agents': ['a'], 'usage': {'input_tokens': 'many'}}", "usage.input_tokens"),
        ("{'output': object()}", "not JSON"),
        ("'\\ud800'", "not JSON"),
        ("(_ for _ in ())", "returned generator"),
    ],
)
def test_nonsense_is_an_error_that_says_what_to_return(play: Play, answer: str, said: str) -> None:
    (result,) = play(f"def reply(message): return {answer}")
    assert result.status == "error"
    assert result.scores == []
    assert said in (result.error or "")
    assert (result.error or "").count("\n") == 0


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("turns=[Turn(id='t'), Turn(id='t')]", "contradicts itself"),
        ("turns=[Turn(id=7)]", "malformed"),
        ("turns=[Turn(id='t', output=Content(data=object()))]", "malformed"),
        ("turns=None", "malformed"),
    ],
)
def test_a_trace_made_by_hand_is_checked(play: Play, broken: str, said: str) -> None:
    code = f"""
    from baton.model import Content, Source, Trace, Turn
    def reply(case):
        return Trace(schema_version=1, id="x", source=Source(format="x"), {broken})
    """
    (result,) = play(code)
    assert result.status == "error"
    assert said in (result.error or "")


def test_an_error_that_the_function_tells_of_makes_the_case_one(play: Play) -> None:
    code = """
    def reply(message):
        return {"output": "half", "agents": ["a"], "error": "model overloaded"}
    """
    (result,) = play(code, [case(id="a", agents=["a"])])
    assert (result.status, result.error) == ("error", "turn 1 failed: model overloaded")
    assert texts(result) == ["half"]


@pytest.mark.parametrize("how", ["def", "async def"])
@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ("ValueError('no key')", "ValueError: no key"),
        ("SystemExit(3)", "SystemExit: 3"),
        ("StopIteration('x')", "StopIteration"),
        ("StopAsyncIteration('x')", "StopAsyncIteration"),
        ("asyncio.CancelledError()", "CancelledError"),
        ("TimeoutError('theirs')", "TimeoutError: theirs"),
        ("type('Own', (BaseException,), {})('odd')", "Own: odd"),
        ("FileNotFoundError('caf\\udce9')", "caf?"),
    ],
)
def test_whatever_it_raises_is_the_error_of_its_case_and_the_others_go_on(
    play: Play, how: str, raised: str, said: str
) -> None:
    code = f"""
    import asyncio
    {how} reply(message, case):
        if case.id == "b":
            raise {raised}
        return "fine"
    """
    results = play(code, cases("a", "b", "c"))
    assert [texts(results[0]), texts(results[2])] == [["fine"], ["fine"]]
    assert results[1].status == "error"
    assert (results[1].error or "").startswith("the provider raised ")
    assert said in (results[1].error or "")
    assert results[1].scores == []


def test_a_function_in_a_thread_may_even_raise_keyboard_interrupt(play: Play) -> None:
    (result,) = play("def reply(m): raise KeyboardInterrupt")
    assert result.error == "the provider raised KeyboardInterrupt (agent.py:1)"


def test_what_breaks_in_a_later_turn_is_reported_with_the_turns_before(play: Play) -> None:
    code = """
    def reply(message):
        if message == "two":
            raise ValueError("boom")
        return None if message == "none" else message
    """
    raised, nothing = play(code, [case("one", "two", id="a"), case("one", "none", id="b")])
    assert raised.error == "turn 2: the function raised ValueError: boom (agent.py:4)"
    assert (nothing.error or "").startswith("turn 2: the function returned nothing")
    assert texts(raised) == texts(nothing) == ["one"]
    assert {raised.status, nothing.status} == {"error"}


@pytest.mark.parametrize(
    "code",
    [
        "import time\ndef reply(m):\n    time.sleep(m == 'hang' and 30)\n    return 'x'",
        "import asyncio\nasync def reply(m):\n    await asyncio.sleep(m == 'hang' and 30)\n    return 'x'",
    ],
)
def test_a_function_that_hangs_is_an_error_in_its_time_and_holds_nobody_up(
    evaluation: Evaluate, code: str
) -> None:
    cases = [case(id="a"), case("hang", id="b"), case(id="c")]
    started = time.monotonic()
    done = evaluation(code, cases, timeout=1, concurrency=2)
    assert time.monotonic() - started < 25  # it hangs for 30 s
    first, hung, last = done
    assert hung.error == "the case did not end within 1 s (`timeout`)"
    assert (hung.status, hung.scores, hung.trace) == ("error", [], None)
    assert texts(first) == texts(last) == ["x"]


def test_a_timeout_that_a_function_turns_into_another_error_is_still_one(play: Play) -> None:
    code = """
    import asyncio
    async def reply(message):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            raise ValueError("stopped") from None
    """
    (result,) = play(code, timeout=0.1)
    assert result.error == "the case did not end within 0.1 s (`timeout`)"


def test_fifty_functions_that_block_take_as_long_as_one(evaluation: Evaluate) -> None:
    # None of them answers before all have been called.
    code = "import threading\nall_are_here = threading.Barrier(50)\ndef reply(m):\n    all_are_here.wait(60)\n    return 'x'"
    cases = [case(id=str(number)) for number in range(50)]
    done = evaluation(code, cases, concurrency=50)
    assert [texts(result) for result in done] == [["x"]] * 50


def test_hooks_run_before_the_case_and_after_each_turn(play: Play, tmp_path: Path) -> None:
    code = """
    SEEN = []
    async def before(case):
        return {"user": "anna"}
    def after(case, turn):
        SEEN.append(f"{case.id} {turn.id} {turn.output.text}")
    def reply(message, session):
        return f"{session['user']} {session['plan']} {len(SEEN)}"
    """
    hooks = {
        "before_case": f"{tmp_path}/agent.py:before",
        "after_turn": f"{tmp_path}/agent.py:after",
    }
    played = case("one", "two", id="a")
    played.state = {"plan": "free"}
    (result,) = play(code, [played], spec={"hooks": hooks})
    assert texts(result) == ["anna free 0", "anna free 1"]


@pytest.mark.parametrize(
    ("hook", "code", "said"),
    [
        ("before_case", "def hook(case): return 7", "before_case returned int, not a dict"),
        ("before_case", "def hook(case): raise KeyError('k')", "before_case raised KeyError: 'k'"),
        ("after_turn", "def hook(case, turn): raise SystemExit(1)", "after_turn raised"),
    ],
)
def test_a_hook_that_fails_makes_the_case_an_error(
    play: Play, tmp_path: Path, hook: str, code: str, said: str
) -> None:
    spec = {"hooks": {hook: f"{tmp_path}/agent.py:hook"}}
    (result,) = play(f"{code}\ndef reply(m): return 'x'", spec=spec)
    assert result.status == "error"
    assert said in (result.error or "")


def test_attachments_and_scenarios_cannot_be_played(play: Play) -> None:
    empty = case("", id="a")
    (result,) = play("def reply(m): return 'x'", [empty])
    assert result.error == "turn 1: the message is empty"


def test_times_of_turns_are_kept(play: Play) -> None:
    (result,) = play("def reply(m): return 'x'", None, {"type": "latency"})
    trace: Trace | None = result.trace
    assert trace is not None
    turn = trace.turns[0]
    assert turn.started is not None
    assert turn.ended is not None
    assert 0 <= turn.ended - turn.started < 5
    assert result.status == "passed"


def test_the_program_of_one_folder_never_plays_for_that_of_another(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        for module in ("same_name", f"of_{name}"):
            code = f"import beside_it\n\ndef reply(message):\n    return '{name}'\n"
            (tmp_path / name / f"{module}.py").write_text(code)
        (tmp_path / name / "beside_it.py").write_text("")

    def asked(folder: str, module: str, more: str = "") -> list[str | None]:
        config = tmp_path / folder / "baton.yaml"
        config.write_text(f"providers: [{{type: python, target: '{module}:reply'{more}}}]\n")
        return texts(baton.evaluate([case("hi")], None, ["agent_chain"], config=config).results[0])

    assert asked("first", "same_name") == ["first"]
    with pytest.raises(InputError, match="this process has `same_name` from"):
        asked("second", "same_name")
    with pytest.raises(InputError, match="this process has `beside_it` from"):
        asked("second", "of_second")
    assert asked("second", "same_name", ", workers: process") == ["second"]
    assert asked("first", "same_name") == ["first"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("def reply(): return 'hi'", "cannot be called with a message: too many positional"),
        ("def reply(a, b): return 'hi'", "cannot be called with a message: missing a required"),
        ("async def reply(m, *, key): return 'hi'", "missing a required"),
        ("def reply(m): yield 'hi'", "uses `yield`: have it return the whole answer"),
        ("async def reply(m): yield 'hi'", "uses `yield`: have it return the whole answer"),
    ],
)
@pytest.mark.parametrize("workers", [None, "process"])
def test_a_function_that_cannot_answer_a_message_is_refused_before_anything_is_played(
    play: Play, code: str, said: str, workers: str | None
) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        play(code, spec={"workers": workers})


def test_a_decorator_may_pass_arguments_of_its_own(play: Play) -> None:
    code = """
    import functools

    def with_prefix(function):
        @functools.wraps(function)
        def outer(message):
            return function("said", message)
        return outer

    @with_prefix
    def reply(prefix, message):
        return f"{prefix} {message}"
    """
    (result,) = play(code)
    assert texts(result) == ["said hi"]

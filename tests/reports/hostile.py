"""An evaluation in which every place that others fill holds texts that mean harm."""

from __future__ import annotations

from pathlib import Path

from baton.model import (
    AgentRun,
    CaseResult,
    Content,
    Dispatch,
    Evidence,
    GotBack,
    HandedOff,
    JudgeUse,
    Location,
    RoutingCell,
    Said,
    Score,
    Source,
    ToolCall,
    Trace,
    Turn,
)
from baton.testing import build


def hostile_texts(port: int = 9) -> list[str]:
    """Return texts that would run, fetch or mislead if they are not held as text."""
    to = f"http://127.0.0.1:{port}"
    return [
        "</script><script>window.hacked = 1</script>",
        f'<img src="{to}/a" onerror="window.hacked = 1">',
        f"<svg onload=\"window.hacked = 1\"><image href='{to}/b'></svg>",
        f'"><link rel=stylesheet href={to}/c><base href={to}/d><meta http-equiv=refresh content=0;url={to}>',
        "<!--<script>window.hacked = 1</script>",
        "' onfocus=window.hacked=1 autofocus x='",
        "javascript:window.hacked=1",
        "{title} {0} ${window.hacked = 1} `x` ]]> &lt;b&gt; &#60;",
        "gpj.\u202eexe \u2066left\u2069 \u200b\ufeff zero",
        "bell\a escape\x1b[31m return\r null\x00 delete\x7f c1\x9b2J",
        f"![a]({to}/e) [b]({to}/f) @everyone #1 `code` | pipe\n# head\n```",
        "=HYPERLINK(\"" + to + "\",\"x\")",
        "::error file=x::fake%0A::set-output name=a::b\n::stop-commands::x",
        "\U000e0041\U000e0042 tags, \u2028 line, \u2029 paragraph",
    ]  # fmt: skip


def hostile_evaluation(folder: Path, texts: list[str]) -> Path:
    """Store one case for each text, which stands wherever something of others can; return it."""
    results = [_result(position, text) for position, text in enumerate(texts)]
    return build.evaluation(
        *results,
        name=texts[0],
        problems=texts,
        notices=texts,
        routing=[RoutingCell(expected=text, actual=texts[0], count=1) for text in texts],
        about={"dataset": texts},
    ).save(folder / "stored")


def _result(position: int, text: str) -> CaseResult:
    chain = {"invocation": 0, "expected_agents": [text], "actual_agents": [text, "b"], "score": 0.0,
             "match_details": {"missing_agents": [], "extra_agents": [text]}, "trouble": text}  # fmt: skip
    score = Score(
        evaluator=text, type="agent_chain", version="1", status="failed", value=0.0, threshold=1.0,
        reason=text, subject=[text], evidence=[Evidence(ids=[text, "run1"], quote=text)],
        details={"fix": text, "findings": [{"says": f"{text} "}], text: text, "invocation_results": [chain], "to": text},
        judge=JudgeUse(model=text, rubric_version=text, samples=3, tokens=7, cost_usd=0.5),
    )  # fmt: skip
    return CaseResult(
        case_id=text, position=position, status="failed", scores=[score], error=text,
        where=Location(file=text, line=3), tags=[text], trace=hostile_trace(text), routing=[(text, "b")],
    )  # fmt: skip


def hostile_trace(text: str) -> Trace:
    """Return a trace in which every text is this one."""
    content = Content(text=text)
    run = AgentRun(
        id="run1", agent=text, node=f"{text}.", inside=[text], model=text, error=text, unknown=["input"],
        steps=[
            Said(id="s1", content=content), Said(id="s2", content=Content(data={text: text}), thought=True),
            ToolCall(id="c1", name=text, arguments={text: text}, result=content, error=text, status="failed"),
            HandedOff(id="h1", dispatch="d1"), GotBack(id="g1", dispatch="d1"),
        ],
    )  # fmt: skip
    made = Dispatch(
        id="d1", kind="delegate", from_run="run1", from_agent=text, to_agent=text, prompt=content,
        description=text, context={text: text}, tools_allowed=[text], result=content, error=text,
        status="failed", runs=["run2"],
    )  # fmt: skip
    child = AgentRun(id="run2", agent=text, started_by=["d1"], input=Content(text=f"{text}!"))
    turn = Turn(
        id="t1", input=content, output=content, runs=[run, child], dispatches=[made], error=text,
        status="failed",
    )  # fmt: skip
    return Trace(
        schema_version=1, id=text, source=Source(format="test", location=text), turns=[turn],
        unknown=["turn.state"], state={text: text},
    )  # fmt: skip

"""`baton record -- python app.py`: what a program does is in a file, without a change of its code."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.test_init import AGENTS
from tests.conftest import Baton

from baton.model import Content, ToolCall
from baton.readers import load_traces

APP = AGENTS + 'print(desk.run_sync("Refund order 42.").output)\n'
SPANS = """
import os, sys, time
from opentelemetry import trace
tracer = trace.get_tracer("tests")
with tracer.start_as_current_span("invoke_agent desk", attributes={
    "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "desk"
}):
    pass
"""


def record(folder: Path, *command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "baton", "record", "-o", "run.otlp.jsonl", "--", *command],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False, **options,
    )  # fmt: skip


def shape(file: Path) -> Any:
    """Return a record without ids, times and its place."""
    (trace,) = load_traces(file)

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(each) for each in value]
        if not isinstance(value, dict):
            return value
        left = {"id", "call", "from_run", "started_by", "dispatch", "context", "location"}
        left |= {"started", "ended", "at"} | ({"runs"} if "to_agent" in value else set())
        return {key: plain(each) for key, each in value.items() if key not in left}

    return plain(msgspec.to_builtins(trace))


LOGGER = "semantic_kernel.utils.telemetry.model_diagnostics.decorators"
SAYS = f"""
    import logging, semantic_kernel
    said = '{{"content": "Hi"}}'
    logging.getLogger({LOGGER!r}).info(said, extra={{"event.name": "gen_ai.choice"}})
"""
OWN = (
    "import logging\nfrom opentelemetry.sdk._logs import LoggerProvider, LoggingHandler\n"
    "provider = LoggerProvider()\nhandler = LoggingHandler(logger_provider=provider)\n"
    "logging.basicConfig(level=logging.INFO, handlers=[handler])\n"
)


@pytest.mark.parametrize(
    ("before", "shown"),
    [("", 0), ("import logging\nlogging.basicConfig(level=logging.INFO)\n", 1), (OWN, 0)],
    ids=["no_log", "log", "own_records"],
)
def test_what_semantic_kernel_only_logs_is_recorded_once(
    before: str, shown: int, tmp_path: Path
) -> None:
    (tmp_path / "semantic_kernel").mkdir()
    (tmp_path / "semantic_kernel" / "__init__.py").touch()
    (tmp_path / "app.py").write_text(before + SPANS.replace("    pass", SAYS))
    done = record(tmp_path, sys.executable, "app.py")
    assert "recorded by semantic_kernel (built in)" in done.stderr
    assert done.stderr.count('"content": "Hi"') == shown
    assert (tmp_path / "run.otlp.jsonl").read_text().count("gen_ai.choice") == 1


def test_haystack_is_traced_if_its_integration_is_installed(tmp_path: Path) -> None:
    tracing = tmp_path / "haystack" / "tracing" / "__init__.py"
    tracer = tmp_path / "haystack_integrations" / "tracing" / "opentelemetry.py"
    for file in (tracing, tracer):
        file.parent.mkdir(parents=True)
    (tmp_path / "haystack" / "__init__.py").touch()
    tracing.write_text(
        "on = []\ndef is_tracing_enabled(): return bool(on)\ndef enable_tracing(by): on.append(by)\n"
    )
    tracer.write_text(
        "class OpenTelemetryTracer:\n    def __init__(self, tracer): self.by = tracer\n"
    )
    app = (
        "import haystack\nfrom haystack import tracing\nwith tracing.on[0].by.start_as_current_span"
    )
    (tmp_path / "app.py").write_text(f"{app}('haystack.agent.run'):\n    pass\n")
    done = record(tmp_path, sys.executable, "app.py")
    assert "recorded by haystack (built in)" in done.stderr
    assert "haystack.agent.run" in (tmp_path / "run.otlp.jsonl").read_text()


@pytest.mark.heavy
def test_the_record_is_the_one_of_instrumentation_by_hand(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(APP)
    by_hand = (
        "from baton.otel import record\nfrom pydantic_ai import Agent\n"
        "record('hand.otlp.jsonl')\nAgent.instrument_all()\n"
    )
    (tmp_path / "hand.py").write_text(by_hand + APP)
    done = record(tmp_path, sys.executable, "app.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "Done: 19.90 EUR are on their way, reference R-7781.\n"
    assert "recorded by pydantic_ai (built in)" in done.stderr
    subprocess.run([sys.executable, "hand.py"], cwd=tmp_path, check=True, capture_output=True)
    recorded = shape(tmp_path / "run.otlp.jsonl")
    assert recorded == shape(tmp_path / "hand.otlp.jsonl")
    (turn,) = recorded["turns"]
    assert [run["agent"] for run in turn["runs"]] == ["desk", "clerk"]


def test_the_exit_code_is_the_programs_and_a_crash_keeps_what_was_recorded(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SPANS + "os._exit(7)\n")
    assert record(tmp_path, sys.executable, "app.py").returncode == 7
    (trace,) = load_traces(tmp_path / "run.otlp.jsonl")
    assert [run.agent for run in trace.turns[0].runs] == ["desk"]


def test_a_span_that_never_ends_is_written_when_the_program_does(tmp_path: Path) -> None:
    opened = SPANS.replace("with tracer.start_as_current_span(", "span = tracer.start_span(")
    (tmp_path / "app.py").write_text(opened.replace("}):\n    pass", "})"))
    assert record(tmp_path, sys.executable, "app.py").returncode == 0
    (trace,) = load_traces(tmp_path / "run.otlp.jsonl")
    assert [(run.agent, run.ended) for run in trace.turns[0].runs] == [("desk", None)]


def test_requests_that_share_no_span_stay_conversations_of_their_own(tmp_path: Path) -> None:
    head, _, body = SPANS.rpartition("with ")
    twice = f"{head}for _ in range(2):\n    with {body}".replace("\n    pass", "\n        pass")
    (tmp_path / "app.py").write_text(twice)
    assert record(tmp_path, sys.executable, "app.py").returncode == 0
    assert len(load_traces(tmp_path / "run.otlp.jsonl")) == 2


def test_providers_that_the_program_sets_stay_its_own(tmp_path: Path) -> None:
    own = """
from opentelemetry import trace
early = trace.get_tracer("early")
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
mine = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(mine))
trace.set_tracer_provider(provider)
early.start_span("one").end()
"""
    (tmp_path / "app.py").write_text(own + SPANS + "print(len(mine.get_finished_spans()))\n")
    done = record(tmp_path, sys.executable, "app.py")
    assert (done.returncode, done.stdout) == (0, "2\n")
    assert "Overriding" not in done.stderr
    lines = (tmp_path / "run.otlp.jsonl").read_text().splitlines()
    assert len(lines) == 2


def test_python_processes_that_the_program_starts_are_recorded_too(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(SPANS)
    (tmp_path / "app.py").write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, 'worker.py'], check=True)\n"
    )
    assert record(tmp_path, sys.executable, "app.py").returncode == 0
    assert len(load_traces(tmp_path / "run.otlp.jsonl")) == 1


def test_a_sitecustomize_of_ones_own_still_runs(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import builtins\nbuiltins.own_site = 'here'\n")
    (tmp_path / "app.py").write_text("print(own_site)\n" + SPANS)
    paths = [str(site), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    done = record(tmp_path, sys.executable, "app.py", env=environment)
    assert done.stdout == "here\n"
    assert (tmp_path / "run.otlp.jsonl").exists()


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("import crewai", "pip install openinference-instrumentation-crewai"),
        ("pass", "nothing was recorded: no span was created"),
    ],
)
def test_it_says_what_was_not_recorded_and_why(tmp_path: Path, program: str, says: str) -> None:
    (tmp_path / "crewai.py").write_text("")
    (tmp_path / "app.py").write_text(program + "\n")
    done = record(tmp_path, sys.executable, "app.py")
    assert done.returncode == 0
    assert says in done.stderr


def test_a_program_that_failed_gets_no_advice(tmp_path: Path) -> None:
    done = record(tmp_path, sys.executable, "nowhere.py")
    assert done.returncode == 2
    assert done.stderr.endswith("nothing was recorded: no span was created\n")


def test_a_python_without_baton_is_reported(tmp_path: Path) -> None:
    done = record(tmp_path, sys.executable, "-S", "-c", "print('ran')")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert "no Python with Baton installed was started" in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "name the program: baton record -- python app.py"),
        (["--", "app.py"], "`app.py` is not a program: baton record -- python app.py"),
        (["--", "no-such-program"], "`no-such-program` cannot be run: No such file"),
    ],
)
def test_what_is_not_a_program_is_bad_input(
    baton: Baton, tmp_path: Path, words: list[str], says: str
) -> None:
    (tmp_path / "app.py").write_text("")
    outcome = baton("record", *words)
    assert outcome.code == 2
    assert says in outcome.err


def test_an_interrupt_is_the_programs_to_answer(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        SPANS + "try:\n    print('up', flush=True); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    print('bye'); sys.exit(3)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "baton", "record", "-o", "run.jsonl", "--", sys.executable, "app.py"],
        cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.read() == "bye\n"
    assert process.returncode == 3
    assert json.loads((tmp_path / "run.jsonl").read_text().splitlines()[0])


@pytest.mark.heavy
def test_an_example_with_adk_records_what_its_tools_returned(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "frameworks" / "google_adk.py"
    done = record(tmp_path, sys.executable, str(example))
    assert done.returncode == 0, done.stderr
    (trace,) = load_traces(tmp_path / "run.otlp.jsonl")
    (call,) = [s for s in trace.turns[0].runs[1].steps if isinstance(s, ToolCall)]
    assert call.result == Content(text="refund R-1 for order A-100")


def test_an_evaluation_of_a_recording_is_called_as_the_program(
    baton: Baton, tmp_path: Path
) -> None:
    (tmp_path / "desk.py").write_text(SPANS)
    command = [sys.executable, "-m", "baton", "record", "--", sys.executable, "desk.py"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    (recording,) = (tmp_path / ".baton" / "recordings").glob("*.jsonl")
    assert baton("score", recording).code == 0
    (folder,) = (tmp_path / ".baton" / "evaluations").iterdir()
    assert re.fullmatch(r"\d{8}T\d{6}Z-desk\.otlp\.jsonl", folder.name)


MARKED = """
import baton

@baton.tool
def find(city):
    return {"flight": f"{city}-1"}

@baton.agent("flights")
def flights(task):
    if "Mars" in task:
        raise ValueError("no flight there")
    return f"Take {find(task.split()[-1])['flight']}"

def desk(message):
    with baton.record_agent("desk", message) as desk:
        desk.asked_model("m-1", input_tokens=30, output_tokens=4)
        with baton.record_dispatch("flights", f"Find {message}", tools=["find"]) as sent:
            sent.result = flights(f"Find {message}")
        desk.output = sent.result
    return desk.output

print(desk("a flight to Oslo"))
try:
    desk("a flight to Mars")
except ValueError as error:
    print(error)
"""


def test_agents_of_plain_python_are_recorded_message_by_message(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(MARKED)
    done = record(tmp_path, sys.executable, "app.py")
    assert done.stdout == "Take Oslo-1\nno flight there\n"
    assert "recorded by baton.record_agent" in done.stderr
    assert done.stderr.count("\n") == 2, done.stderr
    oslo, mars = load_traces(tmp_path / "run.otlp.jsonl")
    (turn,) = oslo.turns
    assert (turn.input, turn.output) == (
        Content(text="a flight to Oslo"),
        Content(text="Take Oslo-1"),
    )
    assert [run.agent for run in turn.runs] == ["desk", "flights"]
    (made,) = turn.dispatches
    assert (made.from_agent, made.to_agent, made.tools_allowed) == ("desk", "flights", ["find"])
    assert made.result == Content(text="Take Oslo-1")
    assert turn.runs[0].usage is not None
    assert (turn.runs[0].model, turn.runs[0].usage.input_tokens) == ("m-1", 30)
    assert [step.name for step in turn.runs[1].steps if isinstance(step, ToolCall)] == ["find"]
    assert mars.turns[0].status == mars.turns[0].dispatches[0].status == "failed"
    assert oslo.id != mars.id

"""`python` with `instrument`: what it switches on, whose providers it hears, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.providers.conftest import make_provider

import baton
from baton.model import CaseResult, Content, InputError, Trace
from baton.model.views import agent_chain
from baton.plugins import origin
from baton.testing.build import case

PROGRAMS = Path(__file__).parent.parent / "data" / "programs"
Install = Callable[..., None]
pytestmark = pytest.mark.usefixtures("only_own_instrumentors")


def play(target: str, *messages: str, **options: Any) -> CaseResult:
    spec = {"type": "python", "target": target, "instrument": True, **options}
    (result,) = baton.evaluate([case(*messages, id="a")], spec, ["agent_chain"])
    return result


def seen(result: CaseResult) -> Trace:
    assert result.error is None, result.error
    assert result.trace is not None
    return result.trace


def refused(**options: Any) -> str:
    with pytest.raises(InputError) as raised:
        make_provider({"type": "python", "target": f"{PROGRAMS}/desk.py:reply", **options})
    return str(raised.value)


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put packages with instrumentors where Python finds them."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def run(package: str, name: str, start: str = "pass") -> None:
        module = package.replace("-", "_")
        about = site / f"{module}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(
            f"[opentelemetry_instrumentor]\n{name} = {module}:Instrumentor\n"
        )
        (site / f"{module}.py").write_text(
            "import os\n"
            "class DependencyConflictError(Exception): pass\n"
            "class Instrumentor:\n"
            "    is_instrumented_by_opentelemetry = False\n"
            "    def instrument(self, **options):\n"
            f"        {start}\n"
            "        type(self).is_instrumented_by_opentelemetry = True\n"
            "    def uninstrument(self):\n"
            f"        os.environ['OFF'] = os.environ.get('OFF', '') + ' {name}'\n"
        )

    return run


def test_the_programs_own_tracer_provider_stays_and_others_are_heard_too() -> None:
    trace = seen(play(f"{PROGRAMS}/own_provider.py:reply"))
    assert agent_chain(trace, trace.turns[0]) == ["front", "back", "late"]
    assert trace.turns[0].output == Content(text="invoke_agent front")


@pytest.mark.parametrize("sampler", ["ALWAYS_OFF", "TraceIdRatioBased(0.5)"])
def test_a_provider_that_drops_spans_is_refused(tmp_path: Path, sampler: str) -> None:
    (tmp_path / "program.py").write_text(
        "from opentelemetry import trace\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, TraceIdRatioBased\n"
        f"trace.set_tracer_provider(TracerProvider(sampler={sampler}))\n"
        "def reply(message): return message\n"
    )
    with pytest.raises(InputError, match="drops spans by its sampler"):
        play(f"{tmp_path}/program.py:reply")


def test_a_switch_that_silences_all_spans_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with pytest.raises(InputError, match="OTEL_SDK_DISABLED is set"):
        play(f"{PROGRAMS}/desk.py:reply")


def test_instrumentors_that_are_installed_are_switched_on_before_the_program_is_loaded(
    install: Install, tmp_path: Path
) -> None:
    install("some-tracing", "some", "os.environ['SOME'] = 'on'")
    (tmp_path / "program.py").write_text(
        "import os\nFOUND = os.environ.get('SOME')\ndef reply(message): return FOUND or 'off'\n"
    )
    trace = seen(play(f"{tmp_path}/program.py:reply"))
    assert "some (some-tracing 1.0)" in trace.attributes["instrumentors"]
    assert trace.turns[0].output == Content(text="on")
    trace = seen(play(f"{tmp_path}/program.py:reply", instrumentors=[]))
    assert "instrumentors" not in trace.attributes
    assert trace.turns[0].output == Content(text="off")


def test_what_only_joins_spans_of_threads_is_not_said_to_record(install: Install) -> None:
    install("some-threads", "threading")
    assert "instrumentors" not in seen(play(f"{PROGRAMS}/desk.py:reply")).attributes


def test_one_of_several_for_the_same_library_is_switched_on(install: Install) -> None:
    install("a-tracing", "some")
    install("openinference-some", "some")
    trace = seen(play(f"{PROGRAMS}/desk.py:reply"))
    assert trace.attributes["instrumentors"] == ["some (openinference-some 1.0)"]
    trace = seen(play(f"{PROGRAMS}/desk.py:reply", instrumentors=["a-tracing"]))
    assert trace.attributes["instrumentors"] == ["some (a-tracing 1.0)"]


def test_clients_of_models_are_left_to_crewais_events_which_tell_their_requests(
    install: Install, tmp_path: Path
) -> None:
    install("openinference-instrumentation-crewai", "crewai")
    install("openinference-instrumentation-openai", "openai")
    install("some-tracing", "some")
    (tmp_path / "site" / "crewai.py").write_text("")
    (tmp_path / "program.py").write_text(
        "import os, crewai\ndef reply(message): return os.environ.get('OFF', 'none')\n"
    )
    trace = seen(play(f"{tmp_path}/program.py:reply"))
    assert trace.turns[0].output == Content(text="none")  # an older version has no events
    newer = tmp_path / "site" / "openinference" / "instrumentation" / "crewai"
    newer.mkdir(parents=True)
    (newer / "_event_listener.py").write_text("")
    trace = seen(play(f"{tmp_path}/program.py:reply"))
    assert trace.turns[0].output == Content(text=" openai")
    told = "crewai in place of openai: both record the same requests"
    assert told in trace.attributes["instrumentors"]


def test_instrumentors_that_the_environment_refuses_stay_off(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("some-tracing", "some")
    installed = os.environ["OTEL_PYTHON_DISABLED_INSTRUMENTATIONS"]
    monkeypatch.setenv("OTEL_PYTHON_DISABLED_INSTRUMENTATIONS", f"{installed},other, some")
    assert "instrumentors" not in seen(play(f"{PROGRAMS}/desk.py:reply")).attributes


def test_an_instrumentor_that_fails_is_reported_and_one_that_was_asked_for_is_refused(
    install: Install,
) -> None:
    install("idle", "idle", "raise DependencyConflictError('no library')")
    install("broken", "broken", "raise ValueError('too old')")
    told = "broken (broken 1.0) does not start: ValueError: too old"
    assert seen(play(f"{PROGRAMS}/desk.py:reply")).attributes["instrumentors"] == [told]
    with pytest.raises(InputError) as raised:
        play(f"{PROGRAMS}/desk.py:reply", instrumentors=["broken"])
    assert told in str(raised.value)


def test_a_library_that_is_too_old_for_its_instrumentor_is_reported(
    install: Install, tmp_path: Path
) -> None:
    install("crew-tracing", "crewai", "raise DependencyConflictError('crewai >= 1.10')")
    (tmp_path / "site" / "crewai.py").write_text("")
    (tmp_path / "program.py").write_text("import crewai\ndef reply(message): return message\n")
    told = "crewai (crew-tracing 1.0) does not start: DependencyConflictError: crewai >= 1.10"
    trace = seen(play(f"{tmp_path}/program.py:reply"))
    assert trace.attributes["instrumentors"] == [told]
    assert "instrumentors" not in seen(play(f"{PROGRAMS}/desk.py:reply")).attributes


def test_an_instrumentor_that_is_not_installed_is_reported_at_once(install: Install) -> None:
    install("some-tracing", "langchain")
    assert refused(instrument=True, instrumentors=["langchian"]) == (
        "instrumentors: no instrumentor `langchian` is installed; did you mean `langchain`?"
    )


def test_a_framework_with_instrumentation_built_in_has_it_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "pydantic_ai.py").write_text(
        "class Agent:\n"
        "    _instrument_default = False\n"
        "    @staticmethod\n"
        "    def instrument_all(): Agent._instrument_default = True\n"
    )
    (tmp_path / "early.py").write_text(
        "import pydantic_ai\n"
        "def reply(message): return str(pydantic_ai.Agent._instrument_default)\n"
    )
    (tmp_path / "late.py").write_text(
        "def reply(message):\n"
        "    import pydantic_ai\n"
        "    return str(pydantic_ai.Agent._instrument_default)\n"
    )
    trace = seen(play("early:reply"))
    assert trace.turns[0].output == Content(text="True")
    assert trace.attributes["instrumentation built in"] == ["pydantic_ai"]
    trace = seen(play("late:reply"))
    assert trace.turns[0].output == Content(text="True")
    assert trace.attributes["instrumentation built in"] == ["pydantic_ai"]


@pytest.mark.parametrize("option", [{"workers": "inline"}, {"instrumentors": "auto"}])
def test_options_of_an_instrumented_program_need_one(option: dict[str, str]) -> None:
    assert "add `instrument: true`" in refused(**option)


def test_unknown_workers_are_refused() -> None:
    assert "workers" in refused(instrument=True, workers="threads")


def test_without_opentelemetry_the_extra_is_named() -> None:
    code = (
        "import sys\n"
        "sys.modules['opentelemetry.sdk'] = None\n"
        "import baton\n"
        "spec = {'type': 'python', 'target': 'x:y', 'instrument': True}\n"
        "try:\n    baton.evaluate([], spec)\n"
        "except baton.InputError as error:\n    print(error)\n"
        "try:\n    import baton.otel\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines() == [
        f"instrument: needs OpenTelemetry: {origin.install(origin.requirement('otel'))}",
        f"baton.otel needs OpenTelemetry: {origin.install(origin.requirement('otel'))}",
    ], done.stderr

"""What Baton writes as spans is still read as a record after a server took its texts out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from tests.conftest import ROOT
from tests.export.generated import records

from baton import iter_traces, load_traces
from baton.export.spans import spans_of
from baton.export.wire_json import encode_json
from baton.export.wire_proto import encode_proto
from baton.model import AgentRun, Dispatch, Said, ToolCall, Trace, Turn, known
from baton.server.content import cleaner_of
from baton.server.otlp_bodies import Form, read_export
from baton.server.settings import Settings

RECORDED = ROOT / "tests" / "records"
ENCODE = {"protobuf": encode_proto, "json": encode_json}
_TEXTS: dict[type, tuple[str, ...]] = {
    Turn: ("input", "output", "error", "state"),
    AgentRun: ("input", "output", "error", "context"),
    Dispatch: ("prompt", "result", "description", "error"),
    ToolCall: ("result", "error"),
}


def _cleaned(trace: Trace, content: Literal["none", "hashed"], form: Form = "protobuf") -> bytes:
    """Take the texts out of a record as a server does when its spans arrive."""
    cleaner = cleaner_of(Settings(content=content))
    return read_export("traces", form, ENCODE[form](spans_of(trace)), 100_000, cleaner).body


def _read(trace: Trace, content: Literal["none", "hashed"], form: Form, folder: Path) -> Trace:
    file = folder / ("spans.jsonl" if form == "json" else "spans.pb")
    file.write_bytes(_cleaned(trace, content, form))
    (read,) = load_traces(file)
    return read


def _shape(trace: Trace) -> list[Any]:
    """Return who did what, when and how it went; no text that anybody said."""
    shape: list[Any] = [trace.id, [(name, card.tools, card.kind) for name, card in
                                   sorted(trace.agents.items())]]  # fmt: skip
    for turn in trace.turns:
        shape.append((turn.id, turn.status, turn.started, turn.ended))
        for run in turn.runs:
            steps = [
                (type(step).__name__, step.id, step.at, getattr(step, "name", None),
                 getattr(step, "status", None), getattr(step, "dispatch", None))
                for step in run.steps
            ]  # fmt: skip
            shape.append((run.id, run.agent, run.node, run.inside, run.started_by, run.status,
                          run.model, run.usage, run.started, run.ended, steps))  # fmt: skip
        for made in turn.dispatches:
            shape.append((made.id, made.kind, made.mode, made.basis, made.from_run, made.from_agent,
                          made.to_agent, made.to_kind, made.call, made.group, made.tools_allowed,
                          made.tools_source, made.runs, made.continues, made.answers, made.status,
                          made.depth, made.started, made.ended))  # fmt: skip
    return shape


def _objects(trace: Trace) -> list[Any]:
    found: list[Any] = []
    for turn in trace.turns:
        found += [turn, *turn.runs, *turn.dispatches]
        found += [step for run in turn.runs for step in run.steps if isinstance(step, ToolCall)]
    return found


def _said_nothing(trace: Trace) -> bool:
    texts = [getattr(each, name) for each in _objects(trace) for name in _TEXTS[type(each)]]
    said = [step.content for turn in trace.turns for run in turn.runs for step in run.steps
            if isinstance(step, Said)]  # fmt: skip
    return not any(texts) and not any(said)


@pytest.mark.parametrize("form", ENCODE)
def test_without_texts_the_record_tells_who_did_what_and_what_is_not_known(
    form: Form, tmp_path: Path
) -> None:
    for number, trace in enumerate(iter_traces(RECORDED, on_problem=lambda _: None)):
        folder = tmp_path / str(number)
        folder.mkdir()
        read = _read(trace, "none", form, folder)
        assert _shape(read) == _shape(trace)
        assert _said_nothing(read)
        for was, now in zip(_objects(trace), _objects(read), strict=True):
            for name in _TEXTS[type(was)]:
                if getattr(was, name) is not None or not known(trace, was, name):
                    assert not known(read, now, name), (name, was)
                else:
                    assert known(read, now, name), (name, was)


@pytest.mark.heavy
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(records())
def test_any_record_is_read_without_its_texts_and_with_tags_for_them(
    tmp_path_factory: pytest.TempPathFactory, trace: Trace
) -> None:
    folder = tmp_path_factory.mktemp("spans")
    assert _shape(_read(trace, "none", "json", folder)) == _shape(trace)
    assert _shape(_read(trace, "hashed", "protobuf", folder)) == _shape(trace)


def test_no_text_is_left_in_a_body_and_equal_texts_have_equal_tags(tmp_path: Path) -> None:
    secret = "the patient is called Marlene"
    for trace in iter_traces(RECORDED, on_problem=lambda _: None):
        for turn in trace.turns:
            for made in turn.dispatches:
                if made.prompt is None or len(made.runs) != 1:
                    continue
                made.prompt.text = made.description = secret
                (run,) = [each for each in turn.runs if each.id == made.runs[0]]
                run.input = made.prompt
                for content in ("none", "hashed"):
                    assert secret.encode() not in _cleaned(trace, content)
                read = _read(trace, "hashed", "json", tmp_path)
                tagged = next(d for t in read.turns for d in t.dispatches if d.id == made.id)
                set_to_work = next(r for t in read.turns for r in t.runs if r.id == run.id)
                assert tagged.prompt is not None
                assert tagged.prompt.text
                assert tagged.prompt == set_to_work.input
                return
    pytest.fail("no recording has a dispatch with one run")

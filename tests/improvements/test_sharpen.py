"""The rubric of a file is improved through a real client; the file changes in its text alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.improvements.test_rubrics import HELPS, conversation

from baton.model import InputError
from baton.session.sharpen import SharpenedRubric, improve_rubric, write_text
from baton.testing import LlmServer, Received, llm_server

FILE = """\
# Whether answers are polite; owned by support.
name: polite
summary: whether the answer is polite
unit: turn
version: "1"   # change it with the question
threshold: 1
inputs: [answer]
prompt: |
  The question: is the answer polite?
answer:
  choices:
    polite: {score: 1, means: it is}   # not only "thanks"
    rude: {score: 0, means: it is not}
tests:
  - {name: thanks, inputs: {answer: Thank you.}, label: polite}
"""
BETTER = "The question: is the answer polite?\n" + "\n".join(HELPS)


def says(received: Received) -> dict[str, Any]:
    """Propose the better text; judge by it, and err on two of five kinds without it."""
    if "moments show what came" in str(received.body):
        return {"thinking": "", "text": BETTER}
    kind = received.user.split("kind=")[1].split(",")[0]
    rude = kind in ("sarcasm", "shout")
    if kind in ("sarcasm", "refusal") and "Sarcasm is rude" not in str(received.body):
        rude = not rude
    return {"reason": "r", "quote": "", "label": "rude" if rude else "polite"}


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with llm_server(says) as running:
        yield running


def written_project(folder: Path, server: LlmServer) -> tuple[Path, Path, Path]:
    """Write a config with the rubric, labels, and the conversations they are of."""
    made = [conversation(number) for number in range(60)]
    traces = folder / "traces.jsonl"
    traces.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each, _, _ in made))
    lines = [
        {"trace": each.id, "subject": each.turns[0].id, "rubric": "polite", "value": value}
        for each, _, value in made
    ]
    labels = folder / "labels.jsonl"
    labels.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (folder / "polite.yaml").write_text(FILE, encoding="utf-8")
    config = folder / "baton.yaml"
    settings = {
        "judge": server.judge(), "rubrics": ["polite.yaml"], "evaluators": ["polite"],
    }  # fmt: skip
    config.write_text(json.dumps(settings), encoding="utf-8")
    return config, labels, traces


def sharpened(folder: Path, server: LlmServer, **more: Any) -> SharpenedRubric:
    config, labels, traces = written_project(folder, server)
    return improve_rubric("polite", labels, [traces], config=config, candidates=1, **more)


def test_a_proven_text_is_written_and_all_else_stays(
    tmp_path: Path, server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = sharpened(tmp_path, server, apply=True)
    (study,) = found.sharpened.improvement.studies
    assert study.outcome == "proven", study.reason
    assert found.written
    text = (tmp_path / "polite.yaml").read_text("utf-8")
    for line in FILE.splitlines():
        assert line in text
    assert all(sentence in text for sentence in HELPS)
    assert (tmp_path / "polite.yaml.before").read_text("utf-8") == FILE


def test_without_apply_nothing_is_written(
    tmp_path: Path, server: LlmServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = sharpened(tmp_path, server)
    assert found.sharpened.improvement.studies[0].outcome == "proven"
    assert (tmp_path / "polite.yaml").read_text("utf-8") == FILE
    assert not found.written


def test_a_text_that_changed_since_a_link_and_a_rubric_of_baton_are_refused(
    tmp_path: Path,
) -> None:
    file = tmp_path / "polite.yaml"
    file.write_text(FILE, encoding="utf-8")
    with pytest.raises(InputError, match="has changed since"):
        write_text(file, "Another question.", "A new one.")
    link = tmp_path / "link.yaml"
    link.symlink_to(file)
    with pytest.raises(InputError, match="is a link"):
        write_text(link, "The question: is the answer polite?\n", "A new one.")
    with pytest.raises(InputError, match="comes with Baton"):
        improve_rubric("scope_fidelity", tmp_path / "none.jsonl", [], apply=True)
    assert file.read_text("utf-8") == FILE

"""The rubric of a file is improved through a real client; the file changes in its text alone."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.improvements.test_rubrics import HELPS, conversation

from baton.improvements.result import Improvement
from baton.model import InputError
from baton.session.apply import apply_improvement, read_improvement
from baton.session.improve_rubric import estimate_rubric, improve_rubric, own_file
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


def written_project(folder: Path, server: LlmServer, **judging: Any) -> tuple[Path, Path, Path]:
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
        "judge": server.judge(**judging), "rubrics": ["polite.yaml"], "evaluators": ["polite"],
    }  # fmt: skip
    config.write_text(json.dumps(settings), encoding="utf-8")
    return config, labels, traces


def sharpened(folder: Path, server: LlmServer, **more: Any) -> Improvement:
    config, labels, traces = written_project(folder, server)
    return improve_rubric("polite", labels, [traces], config=config, candidates=1, **more)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_proven_text_is_written_by_apply_alone_and_all_else_in_the_file_stays(
    project: Path, server: LlmServer
) -> None:
    found = sharpened(project, server)
    (study,) = found.studies
    assert study.outcome == "proven", study.reason
    assert (project / "polite.yaml").read_text("utf-8") == FILE
    (folder,) = (project / ".baton" / "improvements").iterdir()
    assert read_improvement(folder).texts == found.texts

    applied = apply_improvement(folder)
    assert applied.files == {"polite.yaml": ["rubric:polite"]}
    text = (project / "polite.yaml").read_text("utf-8")
    for line in FILE.splitlines():
        assert line in text
    assert all(sentence in text for sentence in HELPS)
    assert (folder / "backup" / "polite.yaml").read_text("utf-8") == FILE
    with pytest.raises(InputError, match="has changed since"):
        apply_improvement(folder)


def test_a_branch_gets_the_text_and_the_work_tree_stays(project: Path, server: LlmServer) -> None:
    written_project(project, server)
    who = ("-c", "user.name=t", "-c", "user.email=t@example.com")
    for words in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "first")):
        subprocess.run(["git", *who, *words], check=True, cwd=project)
    found = sharpened(project, server)
    applied = apply_improvement(found, branch="politer")
    assert applied.branch == "politer"
    assert (project / "polite.yaml").read_text("utf-8") == FILE
    shown = subprocess.run(
        ["git", "show", "politer:polite.yaml"], check=True, capture_output=True, text=True
    )
    assert "Sarcasm is rude" in shown.stdout
    (project / "polite.yaml").write_text(FILE + "# more\n", encoding="utf-8")
    with pytest.raises(InputError, match="not committed"):
        apply_improvement(found, branch="another")


def test_a_file_that_changed_since_and_a_link_are_refused(project: Path, server: LlmServer) -> None:
    found = sharpened(project, server)
    file = project / "polite.yaml"
    file.write_text(FILE.replace("is the answer polite?", "is it rude?"), encoding="utf-8")
    with pytest.raises(InputError, match="has changed since"):
        apply_improvement(found)
    file.rename(project / "elsewhere.yaml")
    file.symlink_to(project / "elsewhere.yaml")
    with pytest.raises(InputError, match="is a link"):
        apply_improvement(found)
    assert "is it rude?" in (project / "elsewhere.yaml").read_text("utf-8")


def test_a_rubric_of_baton_is_not_written() -> None:
    with pytest.raises(InputError, match="comes with Baton"):
        own_file("scope_fidelity")


def test_a_rehearsal_asks_nobody_and_counts_what_a_run_takes_at_most(
    project: Path, server: LlmServer
) -> None:
    config, labels, traces = written_project(project, server)
    found = estimate_rubric("polite", labels, [traces], config=config, candidates=3)
    assert server.requests == []
    assert not (project / ".baton" / "improvements").exists()
    assert found.train + found.select + found.held_out == 60
    assert found.fewest_verdicts == found.train + found.select + 2 * found.held_out
    made = improve_rubric("polite", labels, [traces], config=config, candidates=3)
    assert made.plays <= found.verdicts
    assert made.asked <= found.proposals
    assert len(server.requests) <= found.calls


def test_labels_or_a_rubric_that_changed_since_are_not_resumed(
    project: Path, server: LlmServer
) -> None:
    sharpened(project, server)
    (folder,) = (project / ".baton" / "improvements").iterdir()
    labels = project / "labels.jsonl"
    config = project / "baton.yaml"

    def resumed(**more: Any) -> Improvement:
        given = {"config": config, "candidates": 1, "resume": folder, **more}
        return improve_rubric("polite", labels, [project / "traces.jsonl"], **given)

    server.clear()
    assert resumed().texts
    assert server.requests == []
    with pytest.raises(InputError, match="the seed changed since"):
        resumed(seed=5)
    labels.write_text(labels.read_text("utf-8").replace('polite"}', 'rude"}', 1), "utf-8")
    with pytest.raises(InputError, match="the labels changed since"):
        resumed()

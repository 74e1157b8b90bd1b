"""A folder in which every name and text that others can fill means harm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml
from tests.reports.hostile import hostile_evaluation, hostile_trace

from baton.model import JudgeUse
from baton.testing import build

RUBRIC = "dispatch_correctness"


class Project(NamedTuple):
    """What there is to open."""

    run: Path
    cases: Path
    before: Path
    after: Path
    judged: Path
    rubric: Path
    labels: Path
    config: Path

    @property
    def folder(self) -> Path:
        """The folder that all of it is in."""
        return self.run.parent


def hostile_project(folder: Path, text: str) -> Project:
    """Write recordings, cases, evaluations, a rubric and a config that hold a text everywhere."""
    folder.mkdir(parents=True, exist_ok=True)
    case = {
        "id": text, "input": text, "agents": [text, f"{text}2"], "tags": [text],
        "dispatches": [{"to": f"{text}3"}], "response_contains": [f"{text}4"],
    }  # fmt: skip
    choices = {"good": {"score": 1, "means": text}, "bad": {"score": 0, "means": text}}
    rubric = {
        "name": "mine", "summary": text, "unit": "dispatch", "version": "1", "threshold": 0.5,
        "inputs": ["call"], "prompt": text, "answer": {"choices": choices},
    }  # fmt: skip
    label = {"trace": text, "dispatch": "d1", "rubric": RUBRIC, "label": "wrong", "by": text}
    config = {"name": text, "dataset": "cases.json", text: text, "evaluators": [{"type": text}]}
    (folder / "run.json").write_bytes(msgspec.json.encode(hostile_trace(text)))
    (folder / "cases.json").write_text(
        json.dumps({"name": text, "cases": [case, {"id": f"{text}2", "input": "x"}]})
    )
    (folder / "mine.yaml").write_text(yaml.safe_dump(rubric))
    (folder / "labels.jsonl").write_text(json.dumps(label) + "\n")
    (folder / "hostile.yaml").write_text(yaml.safe_dump(config))
    return Project(
        run=folder / "run.json",
        cases=folder / "cases.json",
        before=hostile_evaluation(folder / "one", [text, f"{text} more"]),
        after=hostile_evaluation(folder / "two", [text, f"{text} more"]),
        judged=_judged_evaluation(folder / "three", text),
        rubric=folder / "mine.yaml",
        labels=folder / "labels.jsonl",
        config=folder / "hostile.yaml",
    )


def _judged_evaluation(folder: Path, text: str) -> Path:
    """Store a verdict of a judge whose model is called by the text."""
    wrong = build.score(
        "failed", RUBRIC, unit="dispatch", subject=["d1"], threshold=0.85, reason=text,
        details={"label": "wrong"},
        judge=JudgeUse(model=text, rubric_version="1", samples=1, tokens=7, cost_usd=0.5),
    )  # fmt: skip
    judged = build.result(wrong, id=text, trace=hostile_trace(text))
    return build.evaluation(judged, name=text).save(folder / "stored")


def commands(project: Project) -> dict[str, list[str]]:
    """Return a command for each verb and format that prints what others wrote."""
    run, cases, config = str(project.run), str(project.cases), str(project.config)
    before, after, folder = str(project.before), str(project.after), project.folder
    rubric = str(project.rubric)
    return {
        "show": ["show", run],
        "show --json": ["show", run, "--json"],
        "show --dispatch": ["show", run, "--dispatch", "d1"],
        "show of nothing": ["show", run, "--case", "nothing"],
        "score": ["score", run],
        "score with cases": ["score", run, "-d", cases, "-e", "agent_chain"],
        "score as JSON": ["score", run, "-d", cases, "--json"],
        "score --github": ["score", run, "-d", cases, "--github"],
        "score in two processes": ["score", run, "-d", cases, "--jobs", "2"],
        "score what is not there": ["score", f"{run} gone"],
        "score by a wrong config": ["score", run, "--config", config],
        "report": ["report", before],
        **{
            f"report --format {name}": ["report", before, "--format", name]
            for name in ("json", "junit", "html", "markdown", "csv", "github")
        },
        "compare": ["compare", before, after, "--force"],
        "compare --json": ["compare", before, after, "--force", "--json"],
        "trend": ["trend", before, after],
        "trend --csv": ["trend", before, after, "--csv"],
        "trend --json": ["trend", before, after, "--json"],
        "baseline set": ["baseline", "set", before, "--name", str(folder / "kept.json")],
        "baseline show": ["baseline", "show", "--name", str(folder / "kept.json")],
        "check": ["check", run, cases, rubric, config],
        "draft": ["draft", run],
        "convert": ["convert", cases, "--to", "adk", "-o", str(folder / "out.json")],
        "export": ["export", before, "--otlp", str(folder / "out.jsonl")],
        "rubrics list": ["rubrics", "list", "--rubrics", rubric],
        "rubrics show": ["rubrics", "show", rubric],
        "rubrics show with a trace": ["rubrics", "show", rubric, "--trace", run],
        "calibrate": ["calibrate", RUBRIC, str(project.labels), str(project.judged)],
        "list": ["list"],
        "list of nothing": ["list", run],
        "no such verb": [run],
    }

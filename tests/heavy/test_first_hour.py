"""The first hour: from nothing to green, to red for each kind of fault, and through CI."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.cli.test_init import AGENTS, alone
from tests.processes import SMALL_INSTALLS, clean_python

pytestmark = pytest.mark.heavy
OTHER = AGENTS.replace(
    "@desk.tool_plain", 'shop = Agent(saying(TextPart("Hm.")), name="shop")\n\n\n@desk.tool_plain'
)
FAULTS = [
    # The wrong agent is asked, context is dropped, and a result is ignored.
    ("(await clerk.run(task))", "(await shop.run(task))", "expected a dispatch to `clerk`, but it went to `shop`"),
    ('"Refund order 42."', '"Refund the order."', "handed to `clerk` as expected; the prompt lacks '42'"),
    (
        "Done: 19.90 EUR are on their way, reference R-7781.",
        "All is well, have a nice day.",
        "result_used",
    ),
]  # fmt: skip


def test_agents_of_a_framework_go_from_green_to_red(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(OTHER)
    words = ["--agent", "app:desk", "--message", "Please refund order 42.", "--ci", "none"]
    started = alone(tmp_path, "init", *words)
    assert started.returncode == 0, started.stderr
    green = alone(tmp_path, "eval")
    assert green.returncode == 0, green.stdout
    for right, wrong, says in FAULTS:
        assert right in OTHER
        (tmp_path / "app.py").write_text(OTHER.replace(right, wrong) + "\n# changed\n")
        red = alone(tmp_path, "eval")
        assert red.returncode == 1, (wrong, red.stdout + red.stderr)
        assert says in red.stdout


def test_the_steps_of_the_generated_workflow_pass_in_a_clean_environment(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    words = ["--agent", "sample", "--message", "Please refund order 42.", "--ci", "github"]
    assert alone(project, "init", *words).returncode == 0
    binaries = clean_python(tmp_path / "clean")
    workflow = yaml.safe_load((project / ".github" / "workflows" / "baton.yml").read_text())
    steps = [s["run"] for s in workflow["jobs"]["evaluate"]["steps"] if "run" in s]
    assert len(steps) == 2
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {
        **SMALL_INSTALLS,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
    }
    for step in steps:
        done = subprocess.run(
            ["bash", "-e", "-c", step], cwd=project, env=environment, capture_output=True, text=True,
            timeout=240, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    assert (project / "baton-report.html").is_file()

"""The README does what it says: every command in it is run here or by CI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ (.+)$", README, re.MULTILINE)
BATON = [command for command in COMMANDS if command.startswith("baton ")]


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_every_baton_command_ends_as_the_readme_says(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    assert len(BATON) >= 5
    failing = {command for command in BATON if command.endswith("/scope_bleed")}
    assert len(failing) == 1
    for command in BATON:
        done = run(command, tmp_path)
        assert done.returncode == (command in failing), (command, done.stdout, done.stderr)


def test_what_a_command_prints_is_what_is_shown_below_it(tmp_path: Path) -> None:
    """The last lines, with where the evaluation is stored, may be left out."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    shown = re.findall(r"^\$ (\S.*)\n((?:(?!\$ |```).*\n)+)```$", README, re.MULTILINE)
    assert len(shown) == 1
    for command, text in shown:
        done = run(f"COLUMNS=200 {command}", tmp_path)
        printed = [line.rstrip() for line in done.stdout.splitlines()]
        assert printed[: len(text.splitlines())] == text.splitlines()


def test_the_python_example_runs(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (code,) = re.findall(r"```python\n(.+?)```", README, re.DOTALL)
    done = run(f"{sys.executable} - <<'END'\n{code}END", tmp_path)
    assert done.stdout.strip() == "refund passed [1.0]", done.stderr


def test_the_yaml_example_passes_with_the_run_it_speaks_of(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    (text,) = re.findall(r"```yaml\n(.+?)```", README, re.DOTALL)
    (tmp_path / "case.yaml").write_text(text, encoding="utf-8")
    recording = "examples/adk/recordings/support_desk/refund.session.json"
    assert run(f"baton score {recording} -d case.yaml", tmp_path).returncode == 0


def test_make_demo_shows_a_true_failure_with_its_reason() -> None:
    """It is quick, as `make test` has done its set-up before."""
    done = run("make demo", ROOT)
    assert done.returncode == 0, done.stderr
    (shown,) = re.findall(r"```text\n(.+?)```", README, re.DOTALL)
    printed = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in shown.splitlines():
        assert " ".join(line.split()) in printed
    assert "exit code 1" in printed


def test_every_other_make_target_in_it_is_run_by_ci_and_no_more() -> None:
    shown = {command for command in COMMANDS if command.startswith("make ")}
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    called = set(re.findall(r"^make .+$", ci, re.MULTILINE))
    assert called <= shown
    assert {"make demo"} <= shown - called <= {"make demo", "make demo-adk"}


def test_it_can_be_read_in_a_few_minutes() -> None:
    assert len(README.splitlines()) < 150


def test_links_lead_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page.name, target)

"""The release workflow: its steps build a package that is whole, and that works by itself."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
import yaml
from tests.processes import SMALL_INSTALLS, clean_python

from baton import __version__

pytestmark = pytest.mark.heavy
CLONE = Path(__file__).parents[2]


def test_the_steps_of_the_release_build_and_try_the_package(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    tracked = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(tracked, cwd=CLONE, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (CLONE / name).is_file():
            (clone / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(CLONE / name, clone / name)
    binaries = clean_python(tmp_path / "python")
    (tmp_path / "temp").mkdir()
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {
        **SMALL_INSTALLS,
        "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}",
        "GITHUB_REF_NAME": f"v{__version__}",
        "RUNNER_TEMP": str(tmp_path / "temp"),
    }
    workflow = yaml.safe_load((clone / ".github" / "workflows" / "release.yml").read_text())
    steps = [step["run"] for step in workflow["jobs"]["build"]["steps"] if "run" in step]
    assert len(steps) == 5
    for step in steps:
        done = subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", step],
            check=False,
            cwd=clone,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{step}\n{done.stdout}{done.stderr}"
    assert sorted(file.suffix for file in (clone / "dist").iterdir()) == [".gz", ".whl"]
    (wheel,) = (clone / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        vendor = "baton/web/static/vendor"
        for package in json.loads(packed.read(f"{vendor}/vendor.json")):
            for name, digest in package["files"].items():
                assert hashlib.sha256(packed.read(f"{vendor}/{name}")).hexdigest() == digest

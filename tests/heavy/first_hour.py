"""Each quickstart, and each example with a framework, as a newcomer tries it: in its own venv.

    python tests/heavy/first_hour.py [NAME...]      # `make first-hour` for all

A quickstart is played from top to bottom, outside of the repository: green first, then red for each
of its faults. An example goes through `init`, `eval`, `record` and `score`. What they install stands in
the page, or on the first lines. It needs a package index and some minutes, so that CI plays the
quickstarts in its own environment.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.docs.pages import play  # noqa: E402 - found by the line above

QUICKSTARTS = ROOT / "docs" / "quickstarts"
PAGES = ("adk", "langgraph", "openai-agents", "pydantic-ai", "strands", "python")
EXAMPLES = ROOT / "examples" / "frameworks"
NAMES = (
    "google_adk", "langgraph_agents", "openai_agents", "pydantic_agents", "strands_agents",
    "autogen_agents", "crewai_agents",
)  # fmt: skip
MESSAGE = "My order A-100 arrived broken, and what about Bergen?"
APP = f"""
import asyncio, inspect
from {{name}} import answer
said = answer({MESSAGE!r})
print(asyncio.run(said) if inspect.isawaitable(said) else said)
"""


def main(names: list[str]) -> int:
    """Try some examples; return 1 where one is not green."""
    failed = False
    for name in names:
        started = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            problem = (played if name in PAGES else tried)(name, Path(folder))
        print(f"{name}: {problem or 'green'}, {time.monotonic() - started:.0f} s", flush=True)
        failed = failed or problem is not None
    return int(failed)


def played(name: str, folder: Path) -> str | None:
    """Install what a quickstart says, and do what it says; return what went wrong."""
    page = QUICKSTARTS / f"{name}.md"
    wanted = []
    for line in re.findall(r"pip install ([^`\n]+)", page.read_text(encoding="utf-8"))[:1]:
        wanted = shlex.split(line)
    wanted = [re.sub(r"^(\.|path/to/this/clone)", str(ROOT), each) for each in wanted]
    binaries = folder / "venv" / "bin"
    for command in (
        [sys.executable, "-m", "venv", str(folder / "venv")],
        [str(binaries / "pip"), "install", "--quiet", *wanted],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"{' '.join(command[:3])} ended with {done.returncode}:\n{done.stderr}"
    try:
        play(page, folder / "project", binaries)
    except AssertionError as error:
        return str(error)
    return None


def tried(name: str, folder: Path) -> str | None:
    """Install, start, evaluate, record and score an example; return what went wrong."""
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    (folder / f"{name}.py").write_text(text, encoding="utf-8")
    (folder / "app.py").write_text(APP.format(name=name), encoding="utf-8")
    wanted = [str(ROOT) + "[otel]"]
    for line in re.findall(r"^pip install (.+)$", text.replace("\\\n", " "), re.MULTILINE):
        wanted += [each for each in shlex.split(line) if not each.startswith("baton-evals")]
    binaries = folder / "venv" / "bin"
    baton = str(binaries / "baton")
    record = [baton, "record", "-o", "run.otlp.jsonl", "--", str(binaries / "python"), "app.py"]
    checks = ["-e", "agent_chain", "-e", "dispatch_routing"]
    for command in (
        [sys.executable, "-m", "venv", "venv"],
        [str(binaries / "pip"), "install", "--quiet", *wanted],
        [baton, "init", "--agent", f"{name}:answer", "--message", MESSAGE, "--ci", "none"],
        [baton, "eval"],
        record,
        [baton, "score", "run.otlp.jsonl", "-d", "evals/first.yaml", *checks],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            return (
                f"{' '.join(command[:3])} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            )
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [*PAGES, *NAMES]))

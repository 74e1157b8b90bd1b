"""Providers are listed where none of the packages is installed that some of them need."""

from __future__ import annotations

import subprocess
import sys

LISTED = """
import sys

OPTIONAL = {
    "agents", "claude_agent_sdk", "crewai", "google.adk", "google.genai", "langchain",
    "langchain_core", "langgraph", "mcp", "openai", "opentelemetry", "pydantic_ai", "strands",
}


class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        parts = name.split(".")
        if OPTIONAL & {parts[0], ".".join(parts[:2])}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


sys.meta_path.insert(0, NotInstalled())
from baton.cli import main

sys.exit(main(["list"]))
"""


def test_no_provider_needs_an_optional_package_to_be_listed() -> None:
    """The registry imports every module beside it: what imports an SDK belongs in `frameworks`."""
    ran = subprocess.run(
        [sys.executable, "-c", LISTED], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    listed = {line.split(" ")[0] for line in ran.stdout.splitlines()}
    assert {"adk_http", "adk_local", "claude_sdk", "http", "mock", "python", "replay"} <= listed

"""Baton without its extras: every module can be imported but those that an extra is for."""

from __future__ import annotations

import json
import subprocess
import sys

NEEDS = {
    "baton.adk": "google",  # the plug-in for servers of ADK: `adk`
    "baton.export.sdk_spans": "opentelemetry",  # records as spans of the SDK: `otel`
    "baton.export.wire_proto": "opentelemetry",  # spans as protobuf: `otel`
    "baton.guard.adk": "google",  # guards in programs of a framework, which they have
    "baton.guard.langchain": "langchain",
    "baton.guard.openai_agents": "agents",
    "baton.guard.pydantic_ai": "pydantic_ai",
    "baton.guard.strands": "strands",
    "baton.improvements.adk": "google",  # an optimizer for programs of ADK
    "baton.otel": "opentelemetry",  # records a program: `otel`
    "baton.providers.frameworks.adk_agents": "google",  # agents of ADK in this process: `adk`
    "baton.providers.frameworks.adk_stand_ins": "google",
    "baton.providers.frameworks.pydantic_ai_stand_in": "pydantic",  # that program has it
    "baton.providers.instrument.collector": "opentelemetry",  # programs under OpenTelemetry: `otel`
    "baton.providers.instrument.log_records": "opentelemetry",
    "baton.providers.instrument.span_receiver": "opentelemetry",
    "baton.providers.instrument.langchain_handler": "langchain_core",  # that program has it
    "baton.providers.instrument.program_player": "opentelemetry",
    "baton.pytest_plugin": "pytest",  # loaded by pytest
    "baton.readers.otlp.wire.proto_convert": "google",  # spans as protobuf: `otel`
    "baton.schemas": "sqlalchemy",  # writes the docs of this repository
    "baton.server": "grpc sqlalchemy starlette uvicorn zstandard",  # the server: `server`
    "baton.testing.adk": "pytest",  # for tests of users
    "baton.testing.suite": "pytest",
    "baton.web": "jinja2 markupsafe sqlalchemy starlette zstandard",  # pages of the server: `server`
}
"""What modules, and all those of a package, may not do without, and the extra that brings it."""

WITHOUT_EXTRAS = """
import sys

OURS = {
    *sys.stdlib_module_names, "baton",
    # What is installed always, and what that needs in turn.
    "cyclopts", "h11", "httpx2", "jsonpath_rfc9535", "msgspec", "re2", "regex", "rich", "stamina",
    "yaml", "_yaml",
    "anyio", "attr", "attrs", "docstring_parser", "exceptiongroup", "httpcore2", "idna",
    "iregexp_check", "markdown_it", "mdurl", "pygments", "rich_rst", "tenacity", "truststore",
    "typing_extensions",
}


class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in OURS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None


sys.meta_path.insert(0, NotInstalled())
"""

IMPORTED = """
import importlib, json
from pathlib import Path
import baton

root = Path(baton.__file__).parent
lacking = {}
for file in sorted(root.rglob("*.py")):
    parts = file.relative_to(root.parent).with_suffix("").parts
    name = ".".join(parts).removesuffix(".__init__")
    if parts[-1] in ("__main__", "sitecustomize"):  # these run a program
        continue
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        lacking[name] = (error.name or "").partition(".")[0]
print(json.dumps(lacking))
"""
LISTED = """
from baton.cli import main

sys.exit(main(["list"]))
"""


def without_extras(script: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRAS + script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout


def is_within(module: str, name: str) -> bool:
    return module == name or module.startswith(f"{name}.")


def needs(module: str) -> list[str]:
    found = (packages.split() for name, packages in NEEDS.items() if is_within(module, name))
    return next(found, [])


def test_no_module_imports_a_package_that_its_extra_does_not_bring() -> None:
    lacking = json.loads(without_extras(IMPORTED))
    wrong = {name: package for name, package in lacking.items() if package not in needs(name)}
    assert wrong == {}, "import these where they are used, or say here why the module needs them"
    used = {name for name in NEEDS for module in lacking if is_within(module, name)}
    assert NEEDS.keys() - used == set(), "these are imported without it by now"


def test_no_provider_needs_an_optional_package_to_be_listed() -> None:
    """The registry imports every module beside it: what imports an SDK belongs in `frameworks`."""
    listed = {line.split(" ")[0] for line in without_extras(LISTED).splitlines()}
    assert {"adk_http", "adk_local", "claude_sdk", "http", "mock", "python", "replay"} <= listed

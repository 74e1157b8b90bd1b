"""What docs/testing-judges.md shows works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import httpx2
import msgspec
import pytest
from msgspec.structs import fields
from tests.processes import NO_OTHER_PLUGINS

from baton.testing import Api, LlmServer, Received, Reply, llm_server
from baton.testing.llm import FaultKind
from baton.testing.llm.apis import BASES

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "testing-judges.md").read_text()
RECORDING = ROOT / "examples" / "adk" / "recordings" / "support_desk" / "refund.sse"
PYTHON = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
YAML = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


def ask(llm: LlmServer, text: str, **more: Any) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": text}], **more}
    answer = httpx2.post(llm.base_url() + "/chat/completions", json=body).json()
    return str(answer["choices"][0]["message"]["content"])


@pytest.mark.heavy
def test_the_first_examples_are_tests_that_pass(tmp_path: Path) -> None:
    bleed = Path("examples", "claude", "scope_bleed")
    shutil.copytree(ROOT / bleed, tmp_path / bleed)
    for number, text in enumerate(PYTHON[:2]):
        (tmp_path / f"test_example_{number}.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(
        [*command, "-p", "baton.pytest_plugin"], cwd=tmp_path, capture_output=True, text=True,
        check=False, env={**os.environ, **NO_OTHER_PLUGINS},
    )  # fmt: skip
    assert "2 passed" in done.stdout, done.stdout


def test_the_scripts_in_python_answer() -> None:
    names: dict[str, Any] = {}
    exec(PYTHON[2], names)  # noqa: S102 - our own documentation
    with llm_server(names["script"]) as llm:
        assert ask(llm, "a refund") == '{"verdict": "poor"}'
        assert ask(llm, "a question") == '{"verdict": "good"}'
    assert len(names["three_tries"]) == 3


def test_the_script_in_yaml_answers(tmp_path: Path) -> None:
    path = tmp_path / "script.yaml"
    path.write_text(YAML[0])
    schema = {
        "type": "object",
        "properties": {"verdict": {"enum": ["good", "poor"]}, "reason": {"type": "string"}},
        "required": ["verdict", "reason"],
    }
    native = {"type": "json_schema", "json_schema": {"name": "v", "schema": schema}}
    with llm_server(path) as llm:
        poor = ask(llm, "dispatch_correctness of validator-agent", response_format=native)
        good = ask(llm, "something else", response_format=native)
    assert "poor" in poor
    assert "scripted" in poor
    assert "good" in good


def test_the_judge_of_a_config_asks_it(tmp_path: Path) -> None:
    script, config, log = (tmp_path / name for name in ("script.yaml", "baton.yaml", "asked.jsonl"))
    script.write_text(YAML[0])
    config.write_text(YAML[1] + "evaluators: [dispatch_correctness]\n")
    server = [sys.executable, "-m", "baton.testing.llm", str(script), "--log", str(log)]
    score = [sys.executable, "-m", "baton", "score", str(RECORDING), "--config", str(config)]
    done = subprocess.run(
        [*server, "--", *score], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "1 request to the scripted LLM" in done.stderr
    assert "dispatch_correctness" in done.stdout
    asked = msgspec.json.decode(log.read_bytes().splitlines()[0], type=Received)
    assert asked.model == "scripted"
    assert asked.schema is not None


def test_everything_there_is_is_reported() -> None:
    for word in (
        *get_args(FaultKind),
        *get_args(Api),
        *(field.name for field in (*fields(Reply), *fields(Received))),
    ):
        assert f"`{word}`" in TEXT, word
    for api, base in BASES.items():
        assert re.search(rf"\| `{api}`: [^|]+ \| `{{url}}{base}` \|", TEXT), api

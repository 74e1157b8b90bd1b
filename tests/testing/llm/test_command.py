"""``python -m baton.testing.llm``: the server for what is not written in Python."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
SERVER = [sys.executable, "-m", "baton.testing.llm"]
ASK = (
    "import openai; client = openai.OpenAI(); "
    "answer = client.chat.completions.create(model='m', messages=[{'role': 'user', 'content': 'hello'}]); "
    "print(answer.choices[0].message.content)"
)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script with one answer."""
    path = tmp_path / "script.yaml"
    path.write_text("rules:\n  - {contains: hello, answer: {verdict: yes}}\n")
    return path


def test_it_prints_its_address_and_ends_when_told(script: Path, tmp_path: Path) -> None:
    log = tmp_path / "asked.jsonl"
    command = [*SERVER, str(script), "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        answer = httpx2.post(f"{url}/v1/chat/completions", json=BODY).json()
        assert answer["choices"][0]["message"]["content"] == '{"verdict": "yes"}'
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
    (line,) = log.read_text().splitlines()
    assert json.loads(line)["messages"] == [{"role": "user", "text": "hello"}]


def test_it_ends_with_its_parent(script: Path) -> None:
    starts = (
        "import subprocess, sys; p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, text=True); "
        "print(p.pid, p.stdout.readline().strip())"
    )
    command = [sys.executable, "-c", starts, *SERVER, str(script)]
    started = subprocess.run(command, capture_output=True, text=True, check=True)
    pid = int(started.stdout.split()[0])
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    pytest.fail("it outlived its parent")


def test_a_command_beside_it_finds_it_by_its_environment(script: Path) -> None:
    log = script.with_suffix(".jsonl")
    command = [*SERVER, str(script), "--log", str(log), "--", sys.executable, "-c", ASK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert len(log.read_text().splitlines()) == 1
    assert (done.returncode, done.stdout) == (0, '{"verdict": "yes"}\n')
    assert done.stderr == "1 request to the scripted LLM, at most 1 at once\n"


@pytest.mark.heavy
def test_every_sdk_is_pointed_to_it(script: Path) -> None:
    script.write_text("default: {answer: fine}")
    asks = (
        "import anthropic, boto3; from google import genai; "
        "m = [{'role': 'user', 'content': 'hello'}]; "
        "anthropic.Anthropic().messages.create(model='a', max_tokens=9, messages=m); "
        "client = genai.Client(); client.models.generate_content(model='g', contents='hello'); "
        "boto3.client('bedrock-runtime').converse(modelId='b', "
        "messages=[{'role': 'user', 'content': [{'text': 'hello'}]}])"
    )
    command = [*SERVER, str(script), "--", sys.executable, "-c", asks]
    environment = {name: v for name, v in os.environ.items() if not name.startswith("AWS_")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert "3 requests" in done.stderr


def test_the_exit_code_is_that_of_the_command(script: Path) -> None:
    command = [*SERVER, str(script), "--", sys.executable, "-c", "import sys; sys.exit(3)"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 3


def test_a_prompt_that_no_rule_fits_is_an_error(script: Path, tmp_path: Path) -> None:
    script.write_text("rules: []")
    careless = f"try:\n    exec({ASK!r})\nexcept Exception:\n    pass"
    command = [*SERVER, str(script), "--", sys.executable, "-c", careless]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "request 1: no rule of the script matches" in done.stderr


def test_a_wrong_script_is_reported_with_its_line(script: Path) -> None:
    script.write_text("rules:\n  - {contians: hello, answer: x}\n")
    done = subprocess.run([*SERVER, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f"{script}:2: rules[0].contians: unknown key; did you mean `contains`?\n"
    )


def test_a_command_that_is_none_is_one_message(script: Path) -> None:
    command = [*SERVER, str(script), "--", "batn", "eval"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 2
    assert "`batn` cannot be run" in done.stderr
    assert "Traceback" not in done.stderr

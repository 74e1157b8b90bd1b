"""What `${NAME}` puts into a config is stored as its name, and never shown by its value."""

from __future__ import annotations

import base64
import json
import re
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.processes import run_baton

from baton.model.mask_known_secrets import Masker, masked, remember, secrets_in
from baton.safe_output import safe_output

SECRETS = {
    "URL_PART": "s3cr3t-path/with+signs",
    "QUERY_TOKEN": "q-4711-t0ken",
    "HEADER_TOKEN": "h-0815-t0ken",
    "BODY_PASSWORD": 'p4ss"w0rd-in-body',
    "RESTART_KEY": "r3start-key-99",
}
CONFIG = """
agent: {log_level: DEBUG}
dataset: cases.json
evaluators: [{type: response}]
providers:
  - type: http
    url: "URL/ask/${URL_PART}?q={input}&token=${QUERY_TOKEN}"
    headers: {X-Auth: "Bearer ${HEADER_TOKEN}"}
    request: {message: "{input}", deep: [{word: "${BODY_PASSWORD}"}]}
    answer: $.reply
    restart: "echo restarting with ${RESTART_KEY}; FAIL"
    retry_attempts: 1
"""


class _Echo(BaseHTTPRequestHandler):
    """Repeats all it is sent, as it came and in base64; refuses messages that say so."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0))).decode()
        heard = f"{self.path} {self.headers.get('X-Auth')} {body}"
        told = [heard, base64.b64encode(heard.encode()).decode(), json.loads(body or "{}")]
        told.append(base64.b64encode(f"user:{SECRETS['QUERY_TOKEN']}".encode()).decode())
        answer = json.dumps({"reply": json.dumps(told), "error": heard, "detail": told}).encode()
        self.send_response(403 if "refuse" in body else 200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def echo() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def _baton(folder: Path, *words: str, **more: str) -> tuple[int, str]:
    """Run the command line as its own process; return its exit code and all it printed."""
    done = run_baton(*words, folder=folder, environment={**SECRETS, **more}, seconds=120)
    return done.returncode, done.stdout + done.stderr


def _forms(secret: str) -> set[str]:
    """Return how a secret may be spelt; base64 also behind another text, without its ends."""
    found = {secret, quote(secret), quote(secret, safe=""), json.dumps(secret)[1:-1]}
    for before in ("", "a", "ab"):
        text = base64.b64encode((before + secret).encode()).decode()
        found.add(text[4:-4])
    return found


def _leaks(text: str) -> list[str]:
    return [f"{n}: {form}" for n, s in SECRETS.items() for form in _forms(s) if form in text]


def _cases(folder: Path, **turns: Any) -> None:
    cases = [
        {"id": name, "turns": [{"response_contains": ["x"], **turn} for turn in each]}
        for name, each in turns.items()
    ]
    (folder / "cases.json").write_text(json.dumps({"cases": cases}), "utf-8")


def _all_files(folder: Path) -> str:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return "".join(f"{file}\n{file.read_bytes().decode(errors='replace')}" for file in files)


def test_nothing_stored_or_printed_holds_a_value(echo: str, tmp_path: Path) -> None:
    (tmp_path / "baton.yaml").write_text(CONFIG.replace("URL/", echo + "/", 1), "utf-8")
    _cases(
        tmp_path,
        echoed=[{"input": "hello"}],
        refused=[{"input": "refuse this"}],
        restarted=[{"input": "one"}, {"input": "two", "restart": True, "new_session": True}],
    )
    (tmp_path / "baton.yaml").write_text(
        (tmp_path / "baton.yaml").read_text("utf-8").replace("FAIL", "exit 3"), "utf-8"
    )
    code, printed = _baton(
        tmp_path, "eval", "baton.yaml", "--html", "page.html", "--junit", "j.xml"
    )
    assert code == 3, printed
    assert "exit code 3" in printed
    (folder,) = (tmp_path / ".baton/evaluations").iterdir()
    for words in (["report", str(folder), "--json"], ["eval", "--resume", str(folder)]):
        printed += _baton(tmp_path, *words)[1]
    printed += _baton(tmp_path, "export", str(folder), "--otlp", "spans.jsonl")[1]
    assert _leaks(printed) == []
    assert _leaks(_all_files(tmp_path)) == []
    stored = json.loads((folder / "evaluation.json").read_text("utf-8"))["config"]
    (provider,) = stored["providers"]
    assert provider["url"] == f"{echo}/ask/${{URL_PART}}?q={{input}}&token=${{QUERY_TOKEN}}"
    assert provider["headers"] == {"X-Auth": "Bearer ${HEADER_TOKEN}"}
    assert provider["request"]["deep"] == [{"word": "${BODY_PASSWORD}"}]
    assert "${RESTART_KEY}" in provider["restart"]


def test_workers_of_a_backend_show_none_either(echo: str, tmp_path: Path) -> None:
    text = CONFIG.replace("URL/", echo + "/", 1).replace("FAIL", "exit 3")
    (tmp_path / "baton.yaml").write_text(text, "utf-8")
    _cases(tmp_path, echoed=[{"input": "hello"}], refused=[{"input": "refuse this"}])
    code, printed = _baton(tmp_path, "eval", "baton.yaml", "--backend", "local", "--workers", "2")
    assert code == 3, printed
    assert _leaks(printed + _all_files(tmp_path)) == []


def test_a_fault_of_the_config_does_not_quote_the_value(tmp_path: Path) -> None:
    for line in (
        "providers: [{type: '${QUERY_TOKEN}'}]",
        "evaluators: [{type: '${QUERY_TOKEN}'}]",
        "providers: [{type: mock}]\nevaluators: [agent_chain]\ngate: ['${QUERY_TOKEN} >= 2']",
        "judge: {model: '${QUERY_TOKEN}'}",
        "reporters: [{type: '${QUERY_TOKEN}'}]",
        "dataset: '${QUERY_TOKEN}.json'\nevaluators: [agent_chain]\nproviders: [{type: mock}]",
    ):
        (tmp_path / "baton.yaml").write_text(line, "utf-8")
        code, printed = _baton(tmp_path, "eval", "baton.yaml")
        assert code == 2, printed
        assert _leaks(printed) == []
        assert "${QUERY_TOKEN}" in printed


def test_a_trace_that_repeats_a_value_holds_its_name(echo: str, tmp_path: Path) -> None:
    (tmp_path / "baton.yaml").write_text(CONFIG.replace("URL/", echo + "/", 1), "utf-8")
    _cases(tmp_path, echoed=[{"input": "hello"}])
    code, printed = _baton(tmp_path, "eval", "baton.yaml", "--no-redact")
    assert code in (0, 1), printed
    stored = _all_files(tmp_path / ".baton")
    assert _leaks(stored) == []
    assert "token=${QUERY_TOKEN}" in stored


@pytest.mark.parametrize(
    ("value", "variable", "option", "held"),
    [
        ("s3cr3t-value", "ANYTHING", "request", ["s3cr3t-value"]),
        ("ab12", "API_TOKEN", "url", ["ab12"]),
        ("swordfish", "DB_PASSWORD", "restart", ["swordfish"]),
        ("correcthorsebatterystaple", "X", "url", ["correcthorsebatterystaple"]),
        ("abcdefgh12", "SOMETHING", "Authorization", ["abcdefgh12"]),
        ("https://joe:pa55word@host/a?sig=abcd1234", "URL", "url", ["joe:pa55word", "pa55word", "abcd1234"]),
        ("https://h/services/T0/abcDEF123456abcDEF12", "HOOK", "url", ["abcDEF123456abcDEF12"]),
        ("1", "API_TOKEN", "url", []),
        ("true", "TOKEN_ENABLED", "url", []),
        ("8000", "PORT", "url", []),
        ("gpt-4o-mini", "JUDGE", "request", []),
        ("openai:ft:gpt-4o:org::9aB3xYz1", "MODEL", "model", []),
        ("http://localhost:8000", "BASE_URL", "endpoint_url", []),
        ("api.example.com", "HOST", "url", []),
        ("support desk", "APP_TITLE", "request", []),
        ("/home/ci/data/cases.json", "CASES", "dataset", []),
        ("eu-west-1", "REGION", "request", []),
    ],
)  # fmt: skip
def test_which_values_count_as_secrets(
    value: str, variable: str, option: str, held: list[str]
) -> None:
    assert secrets_in(value, variable, option) == held


def test_references_stay_and_their_defaults_are_masked_where_a_secret_would_be() -> None:
    config = {
        "headers": {"A": "Bearer ${TOKEN}", "B": "abc${TOKEN}", "C": "${TOKEN:-s3cret}"},
        "api_key": "${KEY}",
        "url": "https://${USER}:${PASS}@h/x?key=${KEY}&token=plain",
        "model": "${MODEL:-gpt}",
    }
    assert masked(config) == {
        "headers": {"A": "Bearer ${TOKEN}", "B": "***", "C": "${TOKEN:-***}"},
        "api_key": "${KEY}",
        "url": "https://${USER}:${PASS}@h/x?key=${KEY}&token=***",
        "model": "${MODEL:-gpt}",
    }


def test_a_masker_finds_every_spelling_and_what_a_quotation_cuts() -> None:
    secret = 's3cr3t/va+lue "x"'
    mask = Masker({secret: "${T}"})
    lower = re.sub("%..", lambda match: match[0].lower(), quote(secret, safe=""))
    for form in (secret, quote(secret), quote(secret, safe=""), lower, json.dumps(secret)[1:-1]):
        assert mask(f"a {form} b") == "a ${T} b"
    for before in ("", "u", "us", "use", "user:"):
        text = base64.b64encode(f"{before}{secret} and more".encode()).decode()
        assert "${T}" in mask(text)
        assert text[len(before) * 4 // 3 + 4 : len(before) * 4 // 3 + 16] not in mask(text)
    assert mask("“s3cr3t/va”") == "“${T}”"


def test_a_value_of_the_environment_is_masked_wherever_text_leaves_the_program(
    capsys: pytest.CaptureFixture[str],
) -> None:
    remember({"s3cret-word-of-mine": "${TOKEN}"})
    with safe_output():
        print("a report with s3cret-word-of-mine")
        try:
            raise RuntimeError("no answer for s3cret-word-of-mine")
        except RuntimeError:
            traceback.print_exc()
    printed = capsys.readouterr()
    assert "s3cret-word-of-mine" not in printed.out + printed.err
    assert "a report with ${TOKEN}" in printed.out
    assert "no answer for ${TOKEN}" in printed.err

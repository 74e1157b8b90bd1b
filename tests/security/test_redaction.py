"""Secrets in recordings of any source never reach what Baton stores, shows, sends or asks."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.clock import cpu_limit

from baton import evaluate, load_traces, score
from baton.model import InputError, Trace
from baton.model.redact import KINDS, ON, Redaction, redaction_of, tag
from baton.pull import pull
from baton.testing.build import call, case, run, trace, turn

Run = Callable[..., Any]


def _letters(count: int, alphabet: str = "abcdefghijkLMNOPQRSTuvwxyz0123456789") -> str:
    """Return letters that look random, the same every time; no real key stands in this file."""
    made = random.Random(f"{count}{alphabet}").choices(alphabet, k=count)
    return "".join(made[:-2]) + "a7"


HEX, UPPER = "0123456789abcdef", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
KEYS = {
    "openai": "sk-" + _letters(48),
    "openai project": "sk-proj-" + _letters(60) + "-" + _letters(40),
    "anthropic": "sk-ant-api03-" + _letters(90),
    "langfuse": "sk-lf-" + "0f8e2a11-93bd-4c1e-8f0a-5d6c7b8a9e01",
    "stripe": "sk_live_" + _letters(24),
    "stripe restricted": "rk_test_" + _letters(24),
    "stripe webhook": "whsec_" + _letters(32),
    "github": "ghp_" + _letters(36),
    "github app": "ghs_" + _letters(36),
    "github fine-grained": "github_pat_" + _letters(22) + "_" + _letters(59),
    "gitlab": "glpat-" + _letters(20),
    "slack": "xoxb-" + "123456789012-1234567890123-" + _letters(24),
    "slack app": "xapp-1-A0123456789-1234567890123-" + _letters(64, HEX),
    "aws": "AKIA" + _letters(16, UPPER)[:14] + "QZ",
    "google": "AIza" + _letters(35),
    "google oauth": "ya29." + _letters(60),
    "hugging face": "hf_" + _letters(34),
    "groq": "gsk_" + _letters(52),
    "npm": "npm_" + _letters(36),
    "pypi": "pypi-" + _letters(120),
    "sendgrid": "SG." + _letters(22) + "." + _letters(43),
    "digitalocean": "dop_v1_" + _letters(64, HEX),
    "databricks": "dapi" + _letters(32, HEX),
    "vault": "hvs." + _letters(60),
    "telegram": "1234567890:AA" + _letters(33),
    "jwt": "eyJ" + _letters(30) + ".eyJ" + _letters(60) + "." + _letters(43),
}
SENTENCES = {
    "bearer": ("Authorization: Bearer {}", _letters(40)),
    "basic": ("curl -H 'authorization: Basic {}'", "dXNlcjpwYTU1d29yZA=="),
    "another scheme": ('"Authorization": "Token {}"', _letters(24)),
    "connection string": ("postgres://shop:{}@db.internal/shop", "pa55-w0rd"),
    "redis": ("redis://:{}@cache:6379/0", "hunter2222"),
    "azure": ("AccountName=shop;AccountKey={};EndpointSuffix=x", _letters(80) + "=="),
    "sql server": ("Server=db;User Id=sa;Password='{}';", "Tr1cky-Pass"),
    "cookie": ("Cookie: {}", "session=" + _letters(30) + "; csrf=" + _letters(20)),
    "signed address": ("https://x.blob/core?sv=2024&sig={}&se=1", _letters(43) + "%3D"),
    "environment": ("export API_KEY={}", "abcd-efgh-1234"),
    "json in json": ('{{\\"client_secret\\": \\"{}\\"}}', "s3cr3t-thing"),
    "aws secret": ("aws_secret_access_key = '{}'", _letters(40)),
    "end of a sentence": ("The token is TOKEN={}.", "ab12cd34ef"),
    "escaped line break": ("first\\n{}", KEYS["github"]),
    "percent-encoded": ("next=%20{}", KEYS["github"]),
}
ORDINARY = [
    "sk-xxxxxxxxxxxxxxxxxxxxxxxxxxxx and sk-your-api-key-here-1234 and sk-...",
    "sk-learn-compatible-estimators-and-more-2024",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 of a7603549-5a63-4882-9f2c-d23921d2316e",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "call_0Xb2rTq7PZk1 toolu_01A09q90qw90lq917835lq9 chatcmpl-9q8w7e6r5t msg_564dfffb4be946fe",
    "resp_68af4030baa48193b0b43b4c2a176a1a0e6967589f080e78 run-1f0e-4c, thread_abc123",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 AROUND AKIMBO ASIATIC",
    "max_tokens=4096 input_tokens: 15000, next_page_token=abc123def",
    "PASSWORD=${DB_PASSWORD} TOKEN=<your token> password=None secret: str",
    "cookie: the user likes a cookie; Cookie: chocolate",
    "The bearer of this letter asks for basic understanding-of-authorization",
    "https://example.org:8080/a@b https://joe:${PW}@host/ ?key=short&signature=yes",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx eyJhbGciOi...",
    "order 4111111111111111, +49 30 901820, joe@example.org, DE89370400440532013000",
]


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_a_known_form_of_key_becomes_a_tag(key: str) -> None:
    for text in (f"use {key}, please", f'{{"a": "{key}"}}', f"x={key}", key):
        assert ON.text(text) == text.replace(key, tag("key", key))


@pytest.mark.parametrize(("text", "secret"), SENTENCES.values(), ids=SENTENCES)
def test_a_secret_is_told_by_what_stands_around_it(text: str, secret: str) -> None:
    redacted = ON.text(text.format(secret))
    assert secret not in redacted
    assert tag("key", secret) in redacted
    assert ON.text(redacted) == redacted


@pytest.mark.parametrize("text", ORDINARY)
def test_ids_hashes_placeholders_and_words_stay(text: str) -> None:
    assert ON.text(text) == text


def test_personal_data_is_redacted_on_request_only_and_numbers_that_are_none_stay() -> None:
    text = "joe@example.org, +49 30 901820, 4111 1111 1111 1111, DE89 3704 0044 0532 0130 00"
    assert ON.text(text) == text
    redacted = redaction_of(["personal"]).text(text)
    kinds = ["email", "phone", "card", "iban"]
    for kind, secret in zip(kinds, text.split(", "), strict=True):
        assert secret not in redacted
        assert tag(kind, secret) in redacted
    others = "4111 1111 1111 1112, 1763804087123456, 2026-11-22, 12345-67890"
    assert redaction_of(["personal"]).text(others) == others
    assert redaction_of(["iban"]).text("DE89370400440532013001") == "DE89370400440532013001"


def test_one_secret_has_one_tag_whatever_told_that_it_is_one() -> None:
    secret = "hunter2-x9"
    value = {"password": secret, "note": f"DB_PASSWORD={secret}.", "said": f"it is {secret}, ok"}
    text = tag("key", secret)
    assert ON.value(value) == {
        "password": text,
        "note": f"DB_PASSWORD={text}.",
        "said": f"it is {text}, ok",
    }


def test_own_patterns_have_their_name_in_the_tag_and_take_linear_time() -> None:
    redaction = redaction_of({"patterns": {"employee": "EMP-[0-9]{6}", "slow": "(a+)+$"}})
    assert redaction.text("ask EMP-123456") == f"ask {tag('employee', 'EMP-123456')}"
    assert redaction.text("größer EMP-123456 größer").endswith("] größer")
    with cpu_limit(5):
        redaction.text("a" * 50_000 + "b")


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        (["e-mail"], "there is no kind `e-mail`; did you mean `email`?"),
        ({"patterns": {"a": "("}}, "redact.patterns.a: is not a valid pattern"),
        ({"patterns": {"a": "x*"}}, "redact.patterns.a: matches an empty text"),
        ({"patterns": {"A b": "x"}}, "redact.patterns.A b: the name of a pattern"),
        ({"kind": ["email"]}, "redact: unknown key `kind`"),
    ],
)
def test_what_is_wrong_with_a_redaction_is_reported(told: Any, problem: str) -> None:
    with pytest.raises(InputError) as error:
        redaction_of(told)
    assert problem in str(error.value)


def test_tags_can_be_keyed_so_that_guesses_cannot_be_tried(monkeypatch: Any) -> None:
    plain = ON.text("PASSWORD=hunter22")
    monkeypatch.setenv("BATON_REDACT_KEY", "k1")
    keyed = ON.text("PASSWORD=hunter22")
    assert keyed != plain
    assert keyed == ON.text("PASSWORD=hunter22")


def test_every_secret_is_seen_by_the_search_that_skips_traces_without_one() -> None:
    every = Redaction(kinds=KINDS)
    told = [*KEYS.values(), *(text.format(secret) for text, secret in SENTENCES.values())]
    told += ["joe@example.org", "+49 30 901820", "4111 1111 1111 1111", "DE89370400440532013000"]
    for text in told:
        assert every.may_hold(f"before {text} after".encode()), text


@pytest.mark.parametrize(
    ("address", "may"),
    [
        ("http://127.0.0.1:8000", False),
        ("https://example.org:8443/agents?x=1 and then ann@example.org", False),
        ("postgresql://ann:hunter2@127.0.0.1:5432/db", True),
        ("redis://:pässwörd@localhost", True),
    ],
)
def test_an_address_with_a_port_does_not_make_a_recording_be_searched(
    address: str, may: bool
) -> None:
    for said in (address, {"location": address, "turns": [{"id": "turn1"}]}):
        for encode in (msgspec.json.encode, msgspec.msgpack.encode):
            assert ON.may_hold(encode(said)) is may


def test_data_that_is_nested_deeply_is_redacted() -> None:
    value: Any = KEYS["github"]
    for _ in range(5000):
        value = {"a": [value]}
    redacted: Any = ON.value(value)
    for _ in range(5000):
        redacted = redacted["a"][0]
    assert redacted == tag("key", KEYS["github"])


def test_a_trace_of_nothing_but_secrets_takes_time_in_proportion() -> None:
    texts = [f"ghp_{hashlib.sha256(str(number).encode()).hexdigest()}" for number in range(20_000)]
    began = time.perf_counter()
    redacted = ON.value(texts)
    assert time.perf_counter() - began < 20
    assert not any(text.startswith("ghp_") for text in redacted)


# Every reader, and every verb.

ROOT = Path(__file__).parents[2]
SOURCES = {
    "adk session": ROOT / "examples/adk/recordings/support_desk/refund.session.json",
    "adk sse": ROOT / "examples/adk/recordings/support_desk/refund.sse",
    "otlp": ROOT / "examples/frameworks/recordings/refund.otlp.jsonl",
    "claude": next((ROOT / "examples/claude/scope_bleed").glob("*.jsonl")),
}
MESSAGES = {
    "adk session": "Please refund order 42",
    "adk sse": "R-1001",
    "otlp": "I want my money back for order A-100",
    "claude": "validator-agent",
}
SECRET = KEYS["github"]


@pytest.fixture(params=SOURCES)
def leaking(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A recording of a real framework, a text of which holds a key."""
    source, message = SOURCES[request.param], MESSAGES[request.param]
    text = source.read_text("utf-8")
    assert message in text
    target = tmp_path / source.name
    target.write_text(text.replace(message, f"{message} {SECRET}"), "utf-8")
    return target


def _stored(folder: Path) -> str:
    files = [file for file in (folder / ".baton").rglob("*") if file.is_file()]
    return "".join(file.read_bytes().decode(errors="replace") for file in files)


def test_no_verb_shows_or_stores_a_secret_of_a_recording(
    leaking: Path, tmp_path: Path, baton: Run
) -> None:
    for words in (
        ["show", leaking],
        ["show", leaking, "--json"],
        ["draft", leaking],
        ["score", leaking, "--html", "report.html", "--json"],
        ["score", leaking, "--jobs", "2"],
        ["export", leaking, "--otlp", "spans.jsonl"],
        ["export", ".baton/evaluations", "--otlp", "more.jsonl", "--only", "spans"],
    ):
        outcome = baton(*words)
        assert outcome.code in (0, 1, 2, 3)
        assert SECRET not in outcome.out + outcome.err, words
    assert SECRET not in _stored(tmp_path)
    assert SECRET not in (tmp_path / "report.html").read_text("utf-8")
    spans = (tmp_path / "spans.jsonl").read_text("utf-8")
    assert SECRET not in spans
    assert tag("key", SECRET) in spans


def test_no_redact_shows_it(leaking: Path, baton: Run) -> None:
    assert SECRET in baton("show", leaking, "--json", "--no-redact").out
    assert SECRET not in baton("show", leaking, "--json", "--redact").out


def test_kinds_are_asked_for_on_the_command_line_and_in_a_config(
    tmp_path: Path, baton: Run
) -> None:
    text = SOURCES["adk session"].read_text("utf-8")
    message = MESSAGES["adk session"]
    Path("mail.json").write_text(text.replace(message, f"{message} joe@example.org"), "utf-8")
    assert "joe@example.org" in baton("show", "mail.json", "--json").out
    assert (
        "joe@example.org" not in baton("show", "mail.json", "--json", "--redact-kind", "email").out
    )
    config = tmp_path / "baton.yaml"
    for redact, shown in (("[email]", False), ("off", True), ("{patterns: {who: joe}}", False)):
        config.write_text(f"evaluators: [handoff_loops]\nredact: {redact}\n", "utf-8")
        outcome = baton("score", "mail.json", "--config", config, "--html", "page.html")
        assert outcome.code in (0, 3), outcome.err
        assert ("joe@example.org" in Path("page.html").read_text("utf-8")) is shown


def test_a_wrong_redact_in_a_config_is_reported_with_its_line(tmp_path: Path, baton: Run) -> None:
    (tmp_path / "c.yaml").write_text("evaluators: [agent_chain]\nredact: [emial]\n", "utf-8")
    outcome = baton("check", "c.yaml")
    assert outcome.code == 2
    assert "c.yaml:2" in outcome.err
    assert "did you mean `email`?" in outcome.err


# Verdicts are those of the raw texts.


def login(message: str, answer: str, arguments: dict[str, Any] | None = None) -> Trace:
    steps = [] if arguments is None else [call("login", arguments, "ok")]
    desk = run("desk", *steps, answer, input=message, output=answer)
    return trace(turn(message, desk, output=answer), id="x")


def wants(**stated: Any) -> Any:
    calls = stated.pop("tool_calls", None)
    return case(
        stated.pop("input", "hello"),
        id="c",
        tool_calls=calls and [("login", arguments) for arguments in calls],
        **stated,
    )


@pytest.mark.parametrize(
    ("trace", "case", "evaluator"),
    [
        (login("hello", f"it is {SECRET}"), wants(response_contains=[SECRET]), "response"),
        (login("hello", f"it is {SECRET}"), wants(response_not_contains=["ghp_"]), "response"),
        (login("hello", "it is ghp_..."), wants(response_contains=["ghp_"]), "response"),
        (
            login("hello", "in", {"password": "hunter2-x9"}),
            wants(tool_calls=[{"password": "hunter2-x9"}]),
            "tool_calls",
        ),
        (
            login("hello", "in", {"password": "hunter2-x9"}),
            wants(tool_calls=[{"password": "hunter2-y9"}]),
            "tool_calls",
        ),
        (
            login("hello", "your word is hunter2-x9", {"password": "hunter2-x9"}),
            wants(response_contains=["hunter2-x9"]),
            "response",
        ),
        (
            login(f"use {SECRET}", "ok"),
            wants(input=f"use {SECRET}", agents=["desk"]),
            "agent_chain",
        ),
    ],
)
def test_redaction_changes_no_verdict(trace: Trace, case: Any, evaluator: str) -> None:
    redacted = score(trace, [case], [evaluator]).results[0]
    plain = score(trace, [case], [evaluator], redact=False).results[0]
    assert [(s.status, s.value) for s in redacted.scores] == [
        (s.status, s.value) for s in plain.scores
    ]
    assert redacted.status == plain.status
    for secret in (SECRET, "hunter2-x9"):
        assert secret not in repr(redacted)


def test_traces_that_were_redacted_before_meet_their_cases(tmp_path: Path) -> None:
    key = KEYS["openai"]
    text = SOURCES["adk session"].read_text("utf-8")
    file = tmp_path / "a.session.json"
    file.write_text(text.replace("Please refund order 42.", f"Please use {key}"), "utf-8")
    (trace,) = load_traces(file)
    assert key not in repr(trace)
    assert key in repr(load_traces(file, redact=False))
    case = wants(input=f"Please use {key}", agents=["support_router", "billing_agent"])
    for traces in (file, [trace]):
        (result,) = score(traces, [case], ["agent_chain"]).results
        assert (result.case_id, result.status) == ("c", "passed"), result.error


@pytest.mark.parametrize("redact", [True, False, ["email"]])
@pytest.mark.parametrize(("sent", "status"), [(SECRET, "passed"), (KEYS["openai"], "failed")])
def test_a_case_that_was_converted_with_tags_meets_its_recording(
    sent: str, status: str, redact: Any
) -> None:
    """``baton convert`` wrote the case with tags, whatever is redacted when it is scored."""
    expected = {"word": ON.text(SECRET), "to": Redaction(kinds=("email",)).text("ana@example.com")}
    recorded = login("hello", "in", {"word": sent, "to": "ana@example.com"})
    (result,) = score(
        recorded, [wants(tool_calls=[expected])], ["tool_calls"], redact=redact
    ).results
    assert result.status == status


def test_a_case_that_states_a_secret_does_not_show_it_in_a_reason() -> None:
    result = score(login("hello", "no"), [wants(response_contains=[SECRET])], ["response"])
    assert result.results[0].status == "failed"
    assert SECRET not in repr(result.results[0].scores)


def test_what_a_provider_of_ones_own_returns_or_raises_is_redacted() -> None:
    def plays(case: Any) -> Trace:
        if case.id == "c":
            return login("hello", f"it is {SECRET}")
        raise ValueError(f"refused {SECRET}")

    other = wants(agents=["desk"])
    other.id = "d"
    evaluation = evaluate([wants(agents=["desk"]), other], plays)
    assert [result.status for result in evaluation.results] == ["passed", "error"]
    assert SECRET not in repr(evaluation.results)
    assert tag("key", SECRET) in repr(evaluation.results[0].trace)
    assert tag("key", SECRET) in str(evaluation.results[1].error)


def test_converting_a_dataset_redacts_it_and_says_so(tmp_path: Path, baton: Run) -> None:
    cases = {"cases": [{"id": "a", "input": f"use {SECRET}", "agents": ["desk"]}]}
    (tmp_path / "cases.json").write_text(json.dumps(cases), "utf-8")
    outcome = baton("convert", "cases.json", "--to", "adk", "-o", "out.json")
    assert outcome.code == 0
    assert "secrets were replaced by tags" in outcome.err
    assert SECRET not in Path("out.json").read_text("utf-8") + outcome.err
    baton("convert", "cases.json", "--to", "adk", "-o", "out.json", "--no-redact")
    assert SECRET in Path("out.json").read_text("utf-8")


def test_a_folder_that_holds_secrets_shows_none_when_it_is_read_again(
    tmp_path: Path, baton: Run
) -> None:
    text = SOURCES["adk session"].read_text("utf-8")
    message = MESSAGES["adk session"]
    (tmp_path / "in.json").write_text(text.replace(message, f"{message} {SECRET}"), "utf-8")
    baton("score", "in.json", "--no-redact", "-e", "handoff_loops")
    (folder,) = (tmp_path / ".baton/evaluations").iterdir()
    assert baton("report", folder, "--html", "a.html").code in (0, 3)
    assert SECRET in Path("a.html").read_text("utf-8")
    assert baton("report", folder, "--html", "b.html", "--redact").code in (0, 3)
    assert SECRET not in Path("b.html").read_text("utf-8")


def test_a_case_keeps_its_name_whatever_it_looks_like(tmp_path: Path, baton: Run) -> None:
    def plays(case: Any) -> Trace:
        return msgspec.structs.replace(login("hello", f"it is {SECRET}"), case=case.id)

    case = wants(agents=["desk"])
    case.id = KEYS["aws"]
    (result,) = evaluate([case], plays).results
    assert (result.case_id, result.status) == (case.id, "passed")
    assert result.trace is not None
    (again,) = score(result.trace, [case], ["agent_chain"]).results
    assert (again.case_id, again.status) == (case.id, "passed")


def test_an_error_about_a_file_quotes_no_secret_of_it(tmp_path: Path, baton: Run) -> None:
    line = {"schema_version": 1, "id": "x", "source": {"format": "f"}, "turns": [], SECRET: 1}
    (tmp_path / "t.jsonl").write_text(f"{json.dumps(line)}\n{json.dumps(line)}\n", "utf-8")
    for words in (["show", "t.jsonl"], ["score", "t.jsonl"], ["score", "t.jsonl", "--jobs", "2"]):
        outcome = baton(*words)
        assert outcome.code == 2
        assert SECRET not in outcome.out + outcome.err


@pytest.mark.parametrize("redact", ['{"patterns": {"a": "("}}', '["nonsense"]', "7"])
def test_a_folder_that_says_nonsense_of_redaction_is_named(
    redact: str, tmp_path: Path, baton: Run
) -> None:
    baton("score", SOURCES["adk sse"], "-e", "handoff_loops")
    (header,) = (tmp_path / ".baton/evaluations").glob("*/evaluation.json")
    value = json.loads(header.read_text("utf-8"))
    header.write_text(json.dumps({**value, "redact": json.loads(redact)}), "utf-8")
    outcome = baton("report", header.parent)
    assert outcome.code == 2
    assert "evaluation.json" in outcome.err


def test_pulled_traces_are_redacted_before_they_are_written(tmp_path: Path) -> None:
    told = {"key": "input.value", "value": {"stringValue": f'{{"token": "{SECRET}"}}'}}
    spans = [{"traceId": "4bf92f3577b34da6a3ce929d0e0e4736", "attributes": [told]}]

    async def fetched() -> AsyncIterator[dict[str, Any]]:
        yield {"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}

    out = tmp_path / "traces.jsonl"
    assert asyncio.run(pull(fetched(), out)).spans == 1
    text = out.read_text("utf-8")
    assert SECRET not in text
    assert tag("key", SECRET) in text
    assert "4bf92f3577b34da6a3ce929d0e0e4736" in text

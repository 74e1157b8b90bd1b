from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.model import (
    AgentRun,
    Content,
    Dispatch,
    Said,
    Source,
    ToolCall,
    Trace,
    Turn,
)
from baton.model.redact import ON, Redaction, redaction_of, tag

ANTHROPIC = "sk-ant-" + "api03-" + "Ab1" * 12
GITHUB = "ghp_" + "a1B2" * 9
SLACK = "xoxb-" + "123456789012-abcdefABCDEF"
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
JWT = ".".join(["eyJhbGciOiJIUzI1NiJ9", "eyJzdWIiOiIxMjM0NTY3ODkwIn0", "dozjgNryP4J3jVmNHl0w5N"])


WITH_EMAILS = Redaction(kinds=(*ON.kinds, "email"))


def redact(text: str, *, emails: bool = False) -> str:
    return (WITH_EMAILS if emails else ON).text(text)


@pytest.mark.parametrize("secret", [ANTHROPIC, GITHUB, SLACK, AWS, JWT])
def test_a_key_of_a_known_form_becomes_a_tag(secret: str) -> None:
    assert redact(f"use {secret}, please") == f"use {tag('key', secret)}, please"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("DB_PASSWORD=swordfish", "swordfish"),
        ("export API_KEY=abcd1234", "abcd1234"),
        ('{"client_secret": "s3cr3t-thing"}', "s3cr3t-thing"),
        ('{\\"password\\": \\"hunter22\\"}', "hunter22"),
        ("token: ab12cd34ef", "ab12cd34ef"),
        ("accessToken='qwertyuiop'", "qwertyuiop"),
        ("postgres://joe:pa55w0rd@db/shop", "pa55w0rd"),
        ("Authorization: Bearer abcdef0123456789abcdef", "abcdef0123456789abcdef"),
        ("aws_secret_access_key = 'wJalrXUtnFEMI/K7MDENG'", "wJalrXUtnFEMI/K7MDENG"),
    ],
)
def test_a_value_under_a_name_that_says_what_it_is_becomes_a_tag(text: str, secret: str) -> None:
    masked = redact(text)
    assert secret not in masked
    before, after = text.split(secret)
    assert masked.startswith(before)
    assert masked.endswith(after)


def test_a_private_key_is_masked_whole_also_when_it_is_cut_off() -> None:
    begin, end = "-----BEGIN RSA " + "PRIVATE KEY-----", "-----END RSA " + "PRIVATE KEY-----"
    body = "\nMIIEpAIBAAKCAQEA\nabc/def+ghi=\n"
    assert redact(f"a {begin}{body}{end} b") == f"a {tag('key', begin + body + end)} b"
    assert "MIIE" not in redact(begin + body)


@pytest.mark.parametrize(
    "text",
    [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "session a7603549-5a63-4882-9f2c-d23921d2316e",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "toolu_s01_d1 msg_564dfffb4be946fe9f7f2f2c req_564dfffb4be946fe9f7f2f2c",
        "def login(password: str, token: Token) -> None: ...",
        "api_key = os.environ['KEY']",
        "password=None, secret=getpass()",
        "max_tokens=4096 next_page_token=abc123def tokens: 15000",
        "PASSWORD=${DB_PASSWORD} TOKEN=<your token>",
        '"token": "string", "password": "***"',
        "the bearer of this letter, a basic understanding",
        "sk-learn-compatible-estimators-and-more",
        "https://example.org:8080/a@b and https://joe:${PW}@host/",
        "key=value keyboard monkey tokenizer secretary",
        "ask joe@example.org about the password",
    ],
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_mail_addresses_are_masked_on_request_only() -> None:
    assert redact("to joe@example.org.") == "to joe@example.org."
    assert redact("to joe@example.org.", emails=True) == f"to {tag('email', 'joe@example.org')}."


def test_data_is_masked_through_and_through_and_by_the_names_of_its_fields() -> None:
    value = {"api_key": "plainword", "n": 3, "list": [{"note": f"is {GITHUB}"}], "token": "a b c d"}
    assert ON.value(value) == {
        "api_key": tag("key", "plainword"),
        "n": 3,
        "list": [{"note": f"is {tag('key', GITHUB)}"}],
        "token": "a b c d",
    }


def test_content_keeps_what_is_not_a_secret() -> None:
    content = Content(text=f"x {AWS}", data={"a": [1, AWS]})
    masked = ON.value(content)
    assert masked == Content(text=f"x {tag('key', AWS)}", data={"a": [1, tag("key", AWS)]})
    assert content.text == f"x {AWS}"


def test_everything_said_in_a_trace_is_masked() -> None:
    said = Content(text=f"say {AWS}")
    call = ToolCall(id="c", name="Bash", arguments={"command": f"X={AWS}"}, error=f"no {AWS}")
    done = ToolCall(id="e", name="Bash", result=said)
    run = AgentRun(id="r", agent="main", input=said, output=said, error=f"r {AWS}")
    run.steps = [Said(id="s", content=said), call, done]
    dispatch = Dispatch(id="d", kind="delegate", to_agent="a", prompt=said, result=said)
    dispatch.description, dispatch.error, dispatch.context = AWS, AWS, {"model": AWS}
    turn = Turn(id="t", input=said, output=said, runs=[run], dispatches=[dispatch], error=AWS)
    trace = Trace(schema_version=1, id="x", source=Source(format="test"), turns=[turn])
    assert AWS not in repr(ON.trace(trace))


@given(st.text(max_size=200))
def test_masking_twice_changes_nothing_more(text: str) -> None:
    once = redact(text, emails=True)
    assert redact(once, emails=True) == once


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_key_is_masked_whatever_surrounds_it(before: str, after: str) -> None:
    text = f"{before} {GITHUB} {after}"
    assert GITHUB not in redact(text)


@given(st.integers(min_value=0, max_value=2**256 - 1), st.uuids())
def test_hashes_and_ids_are_never_taken_for_secrets(number: int, id_: object) -> None:
    text = f"{number:064x} {number % 2**160:040x} {id_} {number}"
    assert redact(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN PRIVATE KEY-----",
        "sk-",
        "eyJ.",
        "password=",
        "://a:",
        "bearer ",
        "x@",
        "token: '",
        "eyJa.eyJ",
    ],
)
def test_the_time_taken_grows_with_the_length_and_no_faster(piece: str) -> None:
    def seconds(count: int) -> float:
        text = piece * count
        began = time.process_time()
        redact(text, emails=True)
        return time.process_time() - began

    seconds(100)
    small = min(seconds(4_000) for _ in range(3))
    assert seconds(40_000) < max(small * 40, 0.5)


def test_the_time_of_a_pattern_of_ones_own_grows_with_the_length_and_no_faster() -> None:
    own = redaction_of({"patterns": {"word": "[a-z]+"}})

    def seconds(count: int) -> float:
        text = "äb 1 " * count
        began = time.process_time()
        assert own.text(text).startswith("ä[word:")
        return time.process_time() - began

    seconds(100)
    small = min(seconds(4_000) for _ in range(3))
    assert seconds(40_000) < small * 40


def test_a_pattern_of_ones_own_finds_nothing_in_tags() -> None:
    own = redaction_of({"patterns": {"number": "[0-9]+", "word": "[a-z]+"}})
    once = own.text("abc 1234 abc")
    assert once == f"{tag('word', 'abc')} {tag('number', '1234')} {tag('word', 'abc')}"
    assert own.text(once) == once
    # What continues beside a tag is not part of it.
    all_of_it = redaction_of({"patterns": {"line": "key.*"}})
    assert all_of_it.text("key [word:12ab] and more") == tag("line", "key [word:12ab] and more")


def test_half_a_letter_in_a_text_does_not_stop_a_pattern_of_ones_own() -> None:
    own = redaction_of({"patterns": {"any": "[^a-z]b"}})
    assert "[any:" in own.text("a\ud800b 1b")


def test_an_attribute_of_otlp_whose_name_is_a_secrets_becomes_a_tag() -> None:
    secret = "hunter2-hunter2"
    named = {"key": "api_key", "value": {"stringValue": secret}}
    other = {"key": "gen_ai.prompt", "value": {"stringValue": f"use {secret} there"}}
    assert ON.value([named, other]) == [
        {"key": "api_key", "value": {"stringValue": tag("key", secret)}},
        {"key": "gen_ai.prompt", "value": {"stringValue": f"use {tag('key', secret)} there"}},
    ]
    harmless = {"key": "max_tokens", "value": {"stringValue": secret}}
    assert ON.value([harmless]) == [harmless]

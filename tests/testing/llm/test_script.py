"""Scripts: functions, lists, and rules in YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openai
import pytest

from baton.model import InputError
from baton.testing import LlmServer, Received, Reply, ScriptError, llm_server


def ask(llm: LlmServer, text: str, model: str = "m") -> str | None:
    with openai.OpenAI(base_url=llm.base_url(), api_key="k", max_retries=0) as client:
        answer = client.chat.completions.create(
            model=model, messages=[{"role": "user", "content": text}]
        )
    return answer.choices[0].message.content


def refused(llm: LlmServer, text: str) -> str:
    with pytest.raises(openai.BadRequestError) as caught:
        ask(llm, text)
    return caught.value.message


def over(words: str) -> Any:
    """At the end of its context the server says what the script could not answer."""
    return pytest.raises(ScriptError, match=words)


def yaml(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "script.yaml"
    path.write_text(text)
    return path


def test_a_function_sees_the_request(llm: LlmServer) -> None:
    def script(request: Received) -> str:
        return f"{request.number}: {request.user.upper()} for {request.model}"

    llm.script = script
    assert ask(llm, "hello", "gpt") == "1: HELLO for gpt"


def test_one_answer_is_for_all_requests() -> None:
    with llm_server("Yes.") as llm:
        assert [ask(llm, "one"), ask(llm, "two")] == ["Yes.", "Yes."]


def test_a_list_is_gone_through_and_its_end_is_an_error() -> None:
    with over("request 2: the script has 1 answers"), llm_server(["Yes."]) as llm:
        assert ask(llm, "one") == "Yes."
        assert "but this is request" in refused(llm, "two")


def test_what_a_function_raises_is_reported_at_both_ends() -> None:
    def script(request: Received) -> str:
        return str(request.body["no_such_key"])

    with over("KeyError"), llm_server(script) as llm:
        assert "no_such_key" in refused(llm, "hello")


@pytest.mark.parametrize("answer", [{"when": {1, 2}}, object()])
def test_what_is_not_an_answer_is_an_error(answer: Any) -> None:
    with over("JSON|no answer"), llm_server(lambda _: answer) as llm:
        refused(llm, "hello")


def test_a_failure_of_the_test_itself_is_not_hidden() -> None:
    def fail() -> None:
        with llm_server([]) as llm:
            refused(llm, "hello")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "the reply is empty"),
        ({"fault": "refusel"}, "did you mean `refusal`"),
        ({"fault": "empty", "status": 500}, "give one of them"),
        ({"fault": "rate_limit", "answer": "x"}, "cannot be sent with rate_limit"),
        ({"answer": "x", "retry_after": 3}, "only for errors"),
        ({"answer": "x", "fill": True}, "needs an `answer` that is a mapping"),
    ],
)
def test_replies_that_would_not_be_sent_as_meant_are_refused(
    fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Reply(**fields)


RULES = """
rules:
  - contains: [invoice, refund]
    answer: both
  - contains: invoice
    fault: truncated
    answer: twenty letters here.
    times: 1
  - contains: invoice
    answer: {verdict: yes, date: 2025-01-01}
  - matches: (?i)order \\d+$
    answer: an order
  - model: gpt-big
    answer: a big one
  - api: anthropic
    answer: another api
default:
  answer: something else
"""


def test_the_first_rule_that_fits_answers(tmp_path: Path) -> None:
    with llm_server(yaml(tmp_path, RULES)) as llm:
        assert ask(llm, "the refund of the invoice") == "both"
        assert ask(llm, "Order 66") == "an order"
        assert ask(llm, "Order 66 or so", "gpt-big") == "a big one"
        assert ask(llm, "Order 66 or so") == "something else"


def test_a_rule_is_used_up_after_its_times(tmp_path: Path) -> None:
    with llm_server(yaml(tmp_path, RULES)) as llm:
        assert ask(llm, "an invoice") == "twenty let"
        assert ask(llm, "an invoice") == '{"verdict": "yes", "date": "2025-01-01"}'


def test_without_a_default_every_prompt_needs_a_rule(tmp_path: Path) -> None:
    path = yaml(tmp_path, "rules: [{contains: invoice, answer: ok}]")
    with over("no rule of the script matches"), llm_server(path) as llm:
        refused(llm, "hello")


def test_everything_wrong_with_a_script_is_reported_with_its_line(tmp_path: Path) -> None:
    path = yaml(
        tmp_path,
        "rules:\n"
        "  - contians: a\n    answer: b\n"
        "  - fault: refusel\n"
        "  - delay: -2\n    answer: c\n"
        "  - contains: d\n"
        "defualt: {answer: 1}\n",
    )
    with pytest.raises(InputError) as caught, llm_server(path):
        pass
    lines = str(caught.value).replace(f"{path}:", "").splitlines()
    assert [line.partition(": ")[0] for line in lines] == ["2", "4", "5", "7", "8"]
    for line, words in zip(
        lines,
        (
            "did you mean `contains`",
            "did you mean `refusal`",
            "delay",
            "the reply is empty",
            "`default`",
        ),
        strict=True,
    ):
        assert words in line


def test_a_wrong_expression_is_reported_with_its_line(tmp_path: Path) -> None:
    path = yaml(tmp_path, "rules:\n  - answer: a\n    matches: '('\n")
    words = r":3: rules\[0\].matches: not a valid regular expression"
    with pytest.raises(InputError, match=words), llm_server(path):
        pass


def test_a_script_that_is_missing_is_reported(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"), llm_server(tmp_path / "none.yaml"):
        pass

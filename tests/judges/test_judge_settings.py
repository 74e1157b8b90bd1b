"""Settings of judges are checked before anything runs."""

from __future__ import annotations

from typing import Any

import pytest
from tests.judges.conftest import read_settings

from baton.judges.judge_settings import Endpoint, check_ready, refuse_written_keys, replaced
from baton.model import InputError

LOCAL = "http://127.0.0.1:1/v1"


def problem(**told: Any) -> str:
    with pytest.raises(InputError) as refused:
        read_settings({"model": "openai:gpt-4o", **told})
    return str(refused.value)


def test_a_model_is_all_that_is_needed() -> None:
    settings = read_settings({"model": "openai:gpt-4o"})
    assert (settings.provider, settings.name, settings.samples) == ("openai", "gpt-4o", 1)
    assert settings.endpoints() == [Endpoint(model="openai:gpt-4o")]


def test_a_misspelt_option_is_refused_with_a_similar_name() -> None:
    assert "temperature" in problem(temprature=0.5)
    assert problem(temprature=0.5).startswith("judge.temprature")


@pytest.mark.parametrize(
    "wrong",
    [
        {"samples": 0},
        {"temperature": 3},
        {"timeout": 0},
        {"concurrency": 0},
        {"max_cost": -1},
        {"retries": 21},
        {"fallback": "openai:gpt-4o"},
        {"output": "xml"},
    ],
)
def test_a_value_out_of_range_is_refused(wrong: dict[str, Any]) -> None:
    assert problem(**wrong).startswith(f"judge.{next(iter(wrong))}")


def test_a_model_without_its_provider_is_refused_with_an_example() -> None:
    assert "PROVIDER:NAME" in problem(model="openai:")


@pytest.mark.parametrize(
    ("model", "written"),
    [
        ("gpt-4", "openai:gpt-4"),
        ("o3-mini", "openai:o3-mini"),
        ("claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
        ("anthropic/claude-haiku-4-5", "anthropic:claude-haiku-4-5"),
        ("our-own", "openai:gpt-4o-mini"),
    ],
)
def test_a_model_without_its_provider_is_named_with_it(model: str, written: str) -> None:
    assert f"write PROVIDER:NAME, such as `{written}`" in problem(model=model)


def test_a_misspelt_provider_is_refused_with_a_similar_name() -> None:
    assert "did you mean `openai`" in problem(model="opnai:gpt-4o")


def test_a_misspelt_provider_of_a_fallback_is_refused_where_it_stands() -> None:
    text = problem(fallback=["openai:a", {"model": "antropic:b"}])
    assert "judge.fallback[1].model" in text
    assert "did you mean `anthropic`" in text


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host/v1", "http://", "http://h:x/"])
def test_what_is_not_an_address_is_refused(url: str) -> None:
    assert "judge.base_url" in problem(base_url=url)


def test_a_password_in_an_address_is_refused_and_not_shown() -> None:
    text = problem(base_url="http://me:hunter22@127.0.0.1:1/v1")
    assert "api_key" in text
    assert "hunter22" not in text


def test_settings_do_not_show_their_key() -> None:
    settings = read_settings({"model": "openai:m", "api_key": "sk-much-too-secret"})
    assert "secret" not in repr(settings) + repr(settings.endpoints())


def test_only_a_reference_to_the_environment_may_stand_for_a_key_in_a_file() -> None:
    refuse_written_keys({"model": "openai:m", "api_key": "${MY_KEY}"})
    refuse_written_keys(None)
    raw = {"api_key": "sk-written", "fallback": ["a:b", {"api_key": "${MY_KEY:-sk-default}"}]}
    with pytest.raises(InputError) as refused:
        refuse_written_keys(raw)
    places = [problem.path for problem in refused.value.problems]
    assert places == ["judge.api_key", "judge.fallback[1].api_key"]
    assert "sk-" not in str(refused.value)


def test_a_model_without_its_key_stops_the_run_before_it_starts() -> None:
    settings = read_settings({"model": "google:g", "fallback": ["mistral:m", "bedrock:b"]})
    with pytest.raises(InputError) as refused:
        check_ready(settings, {"MISTRAL_API_KEY": "k"})
    assert "GOOGLE_API_KEY or GEMINI_API_KEY" in str(refused.value)
    assert "MISTRAL" not in str(refused.value)
    check_ready(settings, {"GEMINI_API_KEY": "k", "MISTRAL_API_KEY": "k"})


def test_an_address_of_ones_own_needs_no_key() -> None:
    check_ready(read_settings({"model": "openai:llama", "base_url": LOCAL}), {})


def test_a_fallback_of_the_same_provider_is_where_the_first_is() -> None:
    told = {"model": "openai:a", "base_url": LOCAL, "api_key": "k"}
    settings = read_settings({**told, "fallback": ["openai:b", "anthropic:c"]})
    _, same, other = settings.endpoints()
    assert (same.base_url, same.api_key) == (LOCAL, "k")
    assert (other.base_url, other.api_key) == (None, None)


def test_a_key_goes_to_no_other_provider_and_to_no_other_address() -> None:
    settings = read_settings({"model": "openai:a", "base_url": LOCAL, "api_key": "k"})
    assert replaced(settings, {"samples": 3}).api_key == "k"
    assert replaced(settings, {"model": "openai:b"}).api_key == "k"
    elsewhere = replaced(settings, {"base_url": "http://127.0.0.1:2/v1"})
    assert elsewhere.api_key is None
    other = replaced(settings, {"model": "anthropic:c"})
    assert (other.base_url, other.api_key) == (None, None)


def test_settings_that_replace_others_are_checked_as_well() -> None:
    settings = read_settings({"model": "openai:a", "fallback": [{"model": "openai:b"}]})
    assert replaced(settings, {"samples": 3}).fallback == settings.fallback
    with pytest.raises(InputError, match="samples"):
        replaced(settings, {"sampels": 3})

"""The page about judges says what there is, and its code runs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.judges.conftest import GOOD

from baton.judges import judge, judge_settings
from baton.model import JudgeErrorKind
from baton.testing import LlmServer

PAGE = (Path(__file__).parents[2] / "docs" / "judges.md").read_text("utf-8")


def test_it_names_every_option_every_provider_and_every_kind_of_error() -> None:
    names = {
        *judge_settings.JudgeSettings.__struct_fields__,
        *judge_settings.PROVIDERS,
        *get_args(JudgeErrorKind),
    }
    assert [name for name in sorted(names) if f"`{name}`" not in PAGE] == []


def test_it_states_the_defaults() -> None:
    made = judge_settings.JudgeSettings(model="openai:m")
    rows = dict(re.findall(r"^\| `(\w+)` \| `?([\w.]+)`? \|", PAGE, re.MULTILINE))
    for name in ("samples", "temperature", "max_tokens", "timeout", "retries", "concurrency"):
        assert float(rows[name]) == getattr(made, name)
    assert rows["output"] == made.output


def test_its_code_runs(llm: LlmServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    code = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    monkeypatch.chdir(tmp_path)
    asked = llm.judge(samples=3)
    told = {**asked, "max_cost": None}
    made = judge.make_judge

    def at_the_server(_: Any, **given: Any) -> Any:
        return made(judge_settings.read_settings(told), cache=given["cache"])

    monkeypatch.setattr(judge, "make_judge", at_the_server)
    names: dict[str, Any] = {}
    exec(code, names)  # noqa: S102
    llm.script = {**GOOD, "label": "rude"}
    assert asyncio.run(names["polite"]("Go away.")) == "rude"
    assert len(llm.requests) == 2

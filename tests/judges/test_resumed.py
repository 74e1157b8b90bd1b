"""A run that is killed half-way continues where it was: no verdict is asked for twice."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.judges.conftest import GOOD, judge_of
from tests.judges.test_judge import ask, kinds, many

from baton.testing import LlmServer, Reply

AT_ONCE, QUESTIONS = 4, 60
RUN = """
import sys
sys.path.insert(0, sys.argv[3])
from tests.judges.test_judge import ask, many
from baton.judges.judge import make_judge
from baton.judges.judge_settings import JudgeSettings
settings = JudgeSettings(model="openai:scripted", base_url=sys.argv[1], concurrency=4)
ask(make_judge(settings, cache=sys.argv[2]), *many(60))
"""


@pytest.mark.heavy
def test_no_verdict_is_asked_for_again_after_a_kill(llm: LlmServer, tmp_path: Path) -> None:
    llm.script = Reply(answer=GOOD, delay=0.05)
    cache, root = tmp_path / "verdicts", str(Path(__file__).parents[2])
    run = subprocess.Popen([sys.executable, "-c", RUN, llm.base_url(), str(cache), root])
    while len(llm.requests) < QUESTIONS // 2:
        assert run.poll() is None
        time.sleep(0.01)
    run.kill()
    assert run.wait() == -signal.SIGKILL
    before = len(llm.requests)
    found = ask(judge_of(llm, concurrency=AT_ONCE, made={"cache": cache}), *many(QUESTIONS))
    asked = Counter(received.user for received in llm.requests)
    twice = sum(count > 1 for count in asked.values())
    assert kinds(found) == ["good"] * QUESTIONS
    assert before < len(asked) == QUESTIONS
    assert sum(each.cached for each in found) >= before - AT_ONCE
    assert twice <= AT_ONCE  # those whose answers had not come

"""`baton check` tells cases, configs and recordings of Strands and the accelerator apart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent.parent / "data"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("seeds/accelerator/single_agent.json", "dataset (strands), 1 case, 1 turn"),
        ("seeds/accelerator/swarm.json", "dataset (strands), 1 case, 1 turn"),
        (
            "seeds/accelerator/evaluator_config.yaml",
            "config, evaluators chosen by what cases state",
        ),
        ("strands/experiment.json", "dataset (strands), 2 cases, 2 turns"),
        ("strands/report_session.json", "4 traces, 4 turns"),
        ("strands/swarm_state.json", "1 trace, 1 turn"),
        ("strands/graph_state.json", "1 trace, 1 turn"),
    ],
)
def test_a_file_is_checked_as_what_it_is(baton: Callable[..., Any], file: str, said: str) -> None:
    outcome = baton("check", DATA / file)
    assert (outcome.code, outcome.out.strip()) == (0, f"{DATA / file}: {said}")


def test_a_model_without_its_region_is_named(baton: Callable[..., Any], tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "evaluatorConfig:\n  supportedModels:\n    Nova: us.amazon.nova-2-lite-v1:0\n"
        '    Haiku: "[REGION-PREFIX].anthropic.claude-haiku-4-5-20251001-v1:0"\n'
    )
    outcome = baton("check", file)
    assert outcome.code == 0
    assert "replace the placeholder `[REGION-PREFIX]` of `Haiku` with the region" in outcome.err
    assert "until then it cannot be a judge" in outcome.err

"""What is converted to an eval set of ADK is one to ADK itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings

from baton.datasets.convert_cases import convert
from baton.model import Case, Dataset

from .cases import cases

pytestmark = [
    pytest.mark.heavy,
    # ADK's own code warns of its own code.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@settings(max_examples=200, deadline=None)
@given(case=cases)
def test_adk_reads_any_case_that_is_written_for_it(case: Case) -> None:
    from google.adk.evaluation.eval_set import EvalSet

    done = convert(Dataset([case]), "adk", Path("x.json"))
    (read,) = EvalSet.model_validate_json(done.text).eval_cases
    assert read.eval_id == case.id
    assert len(read.conversation or ()) == (0 if case.scenario else len(case.turns))

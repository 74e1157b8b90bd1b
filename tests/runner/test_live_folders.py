"""Playing into a folder: results are told as they come, and the folder is whole whatever happens."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.runner.test_live import TROUBLE, Held, by_desk, troubled

from baton.model import Case, CaseResult, Dataset, InputError, Provider, RunOptions, Trace
from baton.runner.live import RunFolder, evaluate_to_folder
from baton.runner.plan import make_plan
from baton.store import Header, StoredEvaluation, read_evaluation
from baton.testing.build import cases


def stored(
    provider: Provider, names: list[str], folder: Path, **options: Any
) -> tuple[StoredEvaluation, list[CaseResult]]:
    """Play cases into a folder; return it, and what was told on the way."""
    told: list[CaseResult] = []
    made = asyncio.run(
        evaluate_to_folder(
            make_plan(["agent_chain"]),
            provider,
            Dataset(cases(*names, agents=["desk"])),
            RunOptions(**options),
            RunFolder(folder, "x", Header(), on_result=told.append),
        )
    )
    return read_evaluation(made), told


def test_every_planned_case_is_reported_once_and_stored_with_what_went_wrong(
    tmp_path: Path,
) -> None:
    folder, told = stored(troubled, list(TROUBLE), tmp_path, concurrency=3, repeat=2, timeout=1)
    planned = [(name, repeat) for name in TROUBLE for repeat in (0, 1)]
    assert sorted((r.case_id, r.repeat) for r in told) == sorted(planned)
    assert [(r.case_id, r.repeat) for r in folder] == planned
    for result in folder:
        problem = TROUBLE[result.case_id]
        assert result.status == ("error" if problem else "passed")
        assert (result.error or "").startswith(problem or "")
    assert folder.header.cases == {"passed": 4, "failed": 0, "skipped": 0, "error": 18}
    assert folder.header.problems == ["18 of 22 results could not be evaluated"]


def test_results_stand_in_the_order_of_the_dataset_whichever_comes_first(tmp_path: Path) -> None:
    async def play(case: Case) -> Trace:
        await asyncio.sleep({"a": 0.1, "b": 0.05}.get(case.id, 0))
        return by_desk(case)

    folder, told = stored(play, ["a", "b", "c"], tmp_path, concurrency=3)
    assert [result.case_id for result in told] == ["c", "b", "a"]
    assert [row.case_id for row in folder.rows()] == ["a", "b", "c"]


def test_a_provider_that_cannot_be_opened_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such server"):
        stored(Held(InputError("no such server")), ["a"], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_goes_wrong_while_results_are_reported_closes_the_provider_and_the_folder(
    tmp_path: Path,
) -> None:
    held = Held()

    def fail(result: CaseResult) -> None:
        raise OSError("disk full")

    plan, dataset = make_plan(["agent_chain"]), Dataset(cases("a", "b", agents=["desk"]))
    with pytest.raises(OSError, match="disk full"):
        asyncio.run(
            evaluate_to_folder(
                plan, held, dataset, RunOptions(concurrency=1),
                RunFolder(tmp_path, "x", Header(), on_result=fail),
            )
        )  # fmt: skip
    assert held.log == ["open", "a", "closed"]
    (made,) = tmp_path.iterdir()
    header = read_evaluation(made).header
    assert header.status == "interrupted"
    assert header.cases["passed"] == 1
    assert "1 of 2 planned cases were not run" in header.problems

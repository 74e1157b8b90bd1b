"""Improvements that were killed continue where they were."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import msgspec
import pytest

from baton.improvements.choose_component import Pointed
from baton.improvements.journal import JOURNAL, Journal
from baton.improvements.result import Improvement
from baton.model import InputError, JudgeRequest

from .world import Model, broken, down, improve, moments

ABOUT = {"the dataset": "d1", "the seed": "3"}


def made_with(folder: Path, **given: object) -> Improvement:
    begun = (folder / JOURNAL).exists()
    journal = Journal.resume(folder, ABOUT) if begun else Journal.begin(folder, ABOUT)
    with journal:
        return improve(journal=journal, **given)  # type: ignore[arg-type]


def studies(improvement: Improvement) -> object:
    return msgspec.to_builtins(improvement.studies)


@pytest.mark.parametrize("share", [0.05, 0.6, 0.99])
def test_a_run_that_was_killed_at_any_moment_is_resumed_to_the_same_result(
    tmp_path: Path, share: float
) -> None:
    whole = made_with(tmp_path / "run")
    # Lines are only appended: what a kill leaves is a beginning of the file.
    file = tmp_path / "run" / JOURNAL
    data = file.read_bytes()
    file.write_bytes(data[: int(len(data) * share)])
    lines = file.read_bytes().count(b"\n")
    played: list[str] = []
    resumed = made_with(
        tmp_path / "run", made=moments(on_play=lambda case, _: played.append(case.id))
    )
    assert studies(resumed) == studies(whole)
    assert len(played) <= data.count(b"\n") - lines


def test_a_finished_run_is_made_again_without_a_play_or_a_question(tmp_path: Path) -> None:
    first = made_with(tmp_path / "run")
    model = Model(down)
    again = made_with(tmp_path / "run", made=moments(on_play=broken), model=model)
    assert studies(again) == studies(first)
    assert (again.plays, again.asked, again.stopped) == (first.plays, first.asked, None)
    assert model.asked == []


@pytest.mark.parametrize("cut", [1, 400])
def test_a_torn_last_line_is_cut_off(tmp_path: Path, cut: int) -> None:
    first = made_with(tmp_path / "run")
    file = tmp_path / "run" / JOURNAL
    data = file.read_bytes()
    file.write_bytes(data[:-cut])
    again = made_with(tmp_path / "run")
    assert studies(again) == studies(first)
    assert file.read_bytes().count(b"\n") == data.count(b"\n")


def test_a_journal_that_was_torn_in_its_first_line_starts_again(tmp_path: Path) -> None:
    made_with(tmp_path / "run", candidates=2)
    file = tmp_path / "run" / JOURNAL
    file.write_bytes(file.read_bytes()[:20])
    assert made_with(tmp_path / "run", candidates=2).stopped is None


def test_a_model_that_was_down_is_asked_again(tmp_path: Path) -> None:
    calls = 0

    def down_at_three(request: JudgeRequest) -> str | None:
        nonlocal calls
        calls += 1
        return down(request) if calls == 3 else None

    stopped = made_with(tmp_path / "run", model=Model(down_at_three))
    assert stopped.stopped is not None
    assert studies(made_with(tmp_path / "run")) == studies(improve())


def test_agents_that_were_down_are_played_again(tmp_path: Path) -> None:
    assert made_with(tmp_path / "run", made=moments(on_play=broken)).stopped is not None
    assert studies(made_with(tmp_path / "run")) == studies(improve())


def test_what_has_changed_refuses_to_be_resumed_by_name(tmp_path: Path) -> None:
    Journal.begin(tmp_path / "run", ABOUT).close()
    with pytest.raises(InputError, match="cannot be resumed: the dataset changed since"):
        Journal.resume(tmp_path / "run", {**ABOUT, "the dataset": "d2"})
    with pytest.raises(InputError, match="the dataset and the seed changed"):
        Journal.resume(tmp_path / "run", {"the dataset": "d2", "the seed": "4"})
    with pytest.raises(InputError, match="it has no journal"):
        Journal.resume(tmp_path / "other", ABOUT)


def test_what_pointed_to_agents_at_the_beginning_is_kept(tmp_path: Path) -> None:
    """Issues grow: another choice of agents would be another test on the same held-out cases."""
    begun = {"refunds": Pointed(failures=9, issues=["k1"])}
    Journal.begin(tmp_path / "run", ABOUT, begun).close()
    with Journal.resume(tmp_path / "run", ABOUT, {"desk": Pointed(failures=99)}) as journal:
        assert journal.pointed == begun


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    made_with(tmp_path / "run", candidates=2)
    file = tmp_path / "run" / JOURNAL
    lines = file.read_bytes().splitlines(keepends=True)
    lines[5] = b'{"type": "play"}\n'
    file.write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=r"journal.jsonl:6: is damaged"):
        Journal.resume(tmp_path / "run", ABOUT)


def test_two_processes_do_not_write_one_journal(tmp_path: Path) -> None:
    with (
        Journal.begin(tmp_path / "run", ABOUT),
        pytest.raises(InputError, match="another process"),
    ):
        Journal.resume(tmp_path / "run", ABOUT)


def test_a_run_is_not_begun_in_a_folder_that_has_one(tmp_path: Path) -> None:
    Journal.begin(tmp_path / "run", ABOUT).close()
    with pytest.raises(InputError, match="File exists"):
        Journal.begin(tmp_path / "run", ABOUT)


LARGE = """
    import asyncio, sys
    from pathlib import Path
    from baton.improvements.journal import JOURNAL, Journal
    from baton.improvements.plays import Options, Plays
    from baton.improvements.result import Split
    from tests.improvements.world import messages, moments

    folder = Path(sys.argv[1])
    cases = messages(50)
    ids = [each.id for each in cases]

    async def play(journal):
        split = Split(train=ids, select=[], held_out=[], seed=1)
        plays = Plays(moments(cases, concurrency=16), journal, Options(), split)
        for number in range(200):
            await plays.of({"agent:refunds": f"You pay money back, in way {number}."}, ids)

    there = (folder / JOURNAL).exists()
    with Journal.resume(folder, {}) if there else Journal.begin(folder, {}) as journal:
        print(journal.sums()[0], flush=True)
        asyncio.run(play(journal))
        print(journal.sums()[0], flush=True)
"""


@pytest.mark.heavy
def test_200_candidates_of_50_cases_are_resumed_after_kills_at_any_moment(tmp_path: Path) -> None:
    script = tmp_path / "large.py"
    script.write_text(dedent(LARGE), "utf-8")
    folder = tmp_path / "run"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path.cwd())])}
    kept: list[int] = []

    def plays() -> int:
        return (folder / JOURNAL).read_bytes().count(b"\n") - 1

    while not kept or kept[-1] < 200 * 50:
        with subprocess.Popen(
            [sys.executable, script, folder], stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdout is not None
            kept.append(int(process.stdout.readline()))
            if kept[-1] < 200 * 50 - 2_500:
                while process.poll() is None and plays() < kept[-1] + 2_500:
                    time.sleep(0.02)
                process.kill()
            process.stdout.read()
    assert len(kept) >= 3
    assert kept == sorted(set(kept))  # each got further than the one before
    lines = (folder / JOURNAL).read_bytes().splitlines()
    assert len(lines) == 1 + 200 * 50  # no play was made and kept twice


def test_a_study_that_was_tested_on_held_out_cases_is_not_tested_again_with_more_candidates(
    tmp_path: Path,
) -> None:
    with Journal.begin(tmp_path / "run", {}) as journal:
        first = improve(journal=journal, components=["agent:refunds"], candidates=25)
    (study,) = first.studies
    assert study.proof is not None
    model = Model()
    with Journal.resume(tmp_path / "run", {}) as journal:
        plays = journal.sums()[0]
        again = improve(model=model, journal=journal, components=["agent:refunds"], candidates=40)
        assert journal.sums()[0] == plays
    assert again.studies == first.studies
    assert model.asked == []

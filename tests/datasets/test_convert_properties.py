"""Whatever a case says, converting it keeps it, or says that it does not."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from baton.datasets.convert_cases import TARGETS, Converted, Loss, Target, convert
from baton.datasets.files import About, read_data
from baton.model import Case, Dataset, InputError

from .cases import cases

DIALECTS = list(TARGETS)
few = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def converted(case: Case, to: Target, suffix: str = ".json") -> Converted | None:
    """Convert a case; ``None`` when it has no place at all, which is said."""
    dataset, out = Dataset([case]), Path(f"x{suffix}")
    if TARGETS[to].case(case, {}) is not None:
        return convert(dataset, to, out)
    with pytest.raises(InputError, match="is left out"):
        convert(dataset, to, out)
    return None


def again(done: Converted) -> Case:
    found = read_data("x", done.text.encode(), About("x"))
    assert found is not None
    return found.cases[0]


def top(loss: Loss) -> str:
    return loss.field.partition(".")[0].partition("[")[0]


@pytest.mark.heavy
@pytest.mark.parametrize("to", DIALECTS)
@few
@given(case=cases, suffix=st.sampled_from([".json", ".yaml"]))
def test_a_case_comes_back_but_for_what_is_listed(case: Case, suffix: str, to: Target) -> None:
    done = converted(case, to, suffix)
    if done is None:
        return
    back = again(done)
    assert bool(done.losses) == (back.content_hash() != case.content_hash())
    listed = {top(loss): getattr(back, top(loss)) for loss in done.losses}
    assert msgspec.structs.replace(case, **listed).content_hash() == back.content_hash()
    for turn, other in zip(case.turns, back.turns, strict=False):
        for name in turn.__struct_fields__:
            if not any(f"].{name}" in loss.field for loss in done.losses):
                assert getattr(turn, name) == getattr(other, name)


@pytest.mark.heavy
@pytest.mark.parametrize("to", DIALECTS)
@few
@given(case=cases)
def test_every_loss_has_a_reason_of_its_dialect(case: Case, to: Target) -> None:
    done = converted(case, to)
    for loss in done.losses if done else ():
        assert loss.reason in TARGETS[to].reasons.values(), loss


@pytest.mark.heavy
@pytest.mark.parametrize("to", DIALECTS)
@few
@given(case=cases)
def test_what_was_converted_once_is_lost_no_second_time(case: Case, to: Target) -> None:
    done = converted(case, to)
    if done is not None:
        second = converted(again(done), to)
        assert second is not None
        assert second.losses == []


@pytest.mark.heavy
@pytest.mark.parametrize("to", DIALECTS)
@few
@given(case=cases)
def test_a_file_stays_what_it_is_in_its_own_dialect(case: Case, to: Target) -> None:
    done = converted(case, to)
    if done is None:
        return
    found = read_data("x", done.text.encode(), About("x"))
    assert found is not None
    dataset = Dataset(found.cases, name=found.name)
    second = convert(dataset, to, Path("x.json"))
    assert second.losses == []
    assert again(second).content_hash() == again(done).content_hash()

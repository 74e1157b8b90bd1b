"""The torture of `make torture`, as small as it gets: CI runs a tenth of it beside these tests."""

from __future__ import annotations

import pytest
from tests.torture import charges, kills, server_fuzz, server_kills

pytestmark = pytest.mark.heavy


def test_kills_lose_and_double_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code = kills.main(["--share", "0.005"])
    assert code == 0, capsys.readouterr().out


def test_a_server_that_is_killed_keeps_what_it_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    code = server_kills.main(["--share", "0.02"])
    assert code == 0, capsys.readouterr().out


def test_broken_bodies_are_refused_and_nothing_ends(capsys: pytest.CaptureFixture[str]) -> None:
    code = server_fuzz.main(["--share", "0.02"])
    assert code == 0, capsys.readouterr().out


def test_a_replay_of_claude_code_charges_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code = charges.main(["--share", "0.01"])
    assert code == 0, capsys.readouterr().out

"""The torture of `make torture`, in small."""

from __future__ import annotations

import pytest
from tests.torture.kills import main

pytestmark = pytest.mark.heavy


def test_kills_lose_and_double_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--share", "0.02"])
    assert code == 0, capsys.readouterr().out

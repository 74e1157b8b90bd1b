"""Notices on content that a reader could not place."""

from baton import score
from baton.model import REPEATED, Dropped
from baton.testing.build import answered


def test_what_a_program_returns_beside_its_spans_is_no_loss() -> None:
    one = answered("Done.")
    one.dropped = [Dropped(what=REPEATED, count=2), Dropped(what="key `plan`")]
    notices = score([one], None, ["latency"]).notices
    lost = [notice for notice in notices if "not read" in notice]
    assert lost == ["not read, so not scored: key `plan` (1 time)"]

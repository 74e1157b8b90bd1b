"""``baton clean``."""

from __future__ import annotations

from baton.model import counted
from baton.session.clean import clean

from .options import Flag
from .usage_messages import note


def clean_command(*, older_than: str, dry_run: Flag = False) -> int:
    """Remove evaluations and recordings below .baton that are older than an age.

    Baselines are kept.

    Parameters
    ----------
    older_than
        A number with h (hours), d (days) or w (weeks): `30d`.
    dry_run
        Print what would be removed, and remove nothing.
    """
    removed = clean(older_than, dry_run=dry_run)
    for path in removed.paths:
        print(path)
    what = "would be removed" if dry_run else "removed"
    recordings = sum(path.suffix == ".jsonl" for path in removed.paths)
    evaluations = counted(len(removed.paths) - recordings, "evaluation")
    size = f"{removed.size / 1e6:.1f} MB"
    note(f"{what}: {evaluations} and {counted(recordings, 'recording')}, {size}")
    return 0

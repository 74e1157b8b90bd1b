"""When a conversation is complete: how long nothing may arrive, and what that is learnt from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, select

from .conversations import Bounds, Component
from .rows import State
from .schema import gap
from .span_chunks import longest_of


class Decision(NamedTuple):
    """What to do with a component now: read it (in this state), or check again when it is due."""

    state: State | None
    due: float


def decide(component: Component, quiet: float, bounds: Bounds, horizon: float) -> Decision:
    """Decide whether to read a conversation at ``horizon``, and in which state.

    Only arrival times count: senders' clocks may be wrong. Roots that never arrive (the parent may
    be a web server's span) are waited for during the longest possible silence. Reading takes about
    0.1 ms per span, so a long conversation is read less often, and costs at most a few percent of
    the time.
    """
    effort = 0.002 * component.spans
    changed = [member for member in component.members if member.changed]
    # Conversations that were read before wait for nothing more.
    with_spans = [member for member in changed if member.spans]
    ended = bool(with_spans) and all(member.root for member in with_spans)
    silence = quiet if ended else max(quiet, MOST_QUIET if bounds.quiet is None else quiet)
    complete_at = component.last_seen + max(silence, min(effort, MOST_QUIET))
    reads = [member.read for member in component.members if member.read is not None]
    since = min(member.first_seen for member in changed or component.members)
    too_old_at = max([since, *reads]) + max(bounds.max_age, effort)
    if min(complete_at, too_old_at) <= horizon:
        return Decision("complete", horizon)
    shown = [member.shown for member in component.members if member.shown is not None]
    show_at = max([since, *reads, *shown]) + max(bounds.show, effort)
    if show_at <= horizon:
        return Decision("open", min(complete_at, too_old_at, horizon + max(bounds.show, effort)))
    return Decision(None, min(complete_at, too_old_at, show_at))


def quiet_of(
    connection: Connection, projects: Iterable[int], bounds: Bounds
) -> Mapping[int, float]:
    """Return the silence that completes a conversation, by project, in seconds."""
    listed = list(dict.fromkeys(projects))
    if bounds.quiet is not None:
        return dict.fromkeys(listed, bounds.quiet)
    return quiet_times(connection, listed)


LEAST_QUIET, MOST_QUIET = 5.0, 300.0
_UNSEEN, _ENOUGH = 10.0, 100
"""The default until enough gaps were seen: exporters send every five seconds by default."""


def quiet_times(connection: Connection, projects: Sequence[int]) -> dict[int, float]:
    """Return the silence that completes a conversation, by project, in seconds.

    It is the 99th percentile of the observed gaps, between 5 seconds and 5 minutes.
    """
    times = {}
    for project in projects:
        query = select(gap.c.bucket, gap.c.count).where(gap.c.project == project)
        counts = sorted(connection.execute(query))
        total = sum(count for _, count in counts)
        times[project] = _UNSEEN
        below = 0
        for bucket, count in counts if total >= _ENOUGH else ():
            below += count
            if below >= 0.99 * total:
                times[project] = min(max(longest_of(bucket), LEAST_QUIET), MOST_QUIET)
                break
    return times

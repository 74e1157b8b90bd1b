"""Health, readiness, and figures for Prometheus."""

from __future__ import annotations

import time
from typing import Any

from baton import __version__
from baton.session.server_rows import Health

from .conversations import unreadable
from .endpoints import Call, Endpoint
from .inbox import Inbox
from .queues import queues_of


def _health(_: Call) -> Any:
    return Health(status="ok", version=__version__)


def _ready(call: Call) -> Any:
    """Read from both parts of the store; raises ``Unavailable`` if one does not exist."""
    call.state.store.projects()
    waiting, oldest = Inbox(call.state.store).depth()
    age = None if oldest is None else max(0.0, time.time() - oldest)
    return Health(status="ok", version=__version__, waiting=waiting, oldest_seconds=age)


def _metrics(call: Call) -> Any:
    """Return figures in the format of Prometheus."""
    store, now = call.state.store, time.time()
    queues = queues_of(store, now)
    bodies, traces = Inbox(store).unreadable(), unreadable(store)
    figures: list[tuple[str, str, str, float, str]] = [
        (
            "inbox_bodies_total",
            "counter",
            "All bodies that were accepted and stored.",
            queues.accepted,
            "",
        ),
        ("inbox_waiting", "gauge", "Bodies that wait to be read.", queues.bodies.waiting, ""),
        ("inbox_oldest_seconds", "gauge", "Age of the oldest of them.", queues.bodies.age(now), ""),
        ("inbox_problems", "gauge", "Bodies that could not be read.", bodies, ""),
        (
            "conversation_problems",
            "gauge",
            "Traces whose conversation could not be read, or was set aside.",
            traces,
            "",
        ),
        (
            "traces_due",
            "gauge",
            "Traces that are due to be read and scored.",
            queues.traces.waiting,
            "",
        ),
        (
            "scoring_lag_seconds",
            "gauge",
            "How long the oldest has been due.",
            queues.traces.age(now),
            "",
        ),
        (
            "judging_waiting",
            "gauge",
            "Conversations that wait for a judge.",
            queues.judging.waiting,
            "",
        ),
        (
            "judging_oldest_seconds",
            "gauge",
            "Age of the oldest of them.",
            queues.judging.age(now),
            "",
        ),
    ]
    received = "received_total", "counter", "Requests that this process received, by outcome."
    figures += [
        (*received, value, f'{{signal="{signal}",outcome="{outcome}"}}')
        for (signal, outcome), value in sorted(call.state.counters().items())
    ]
    lines = []
    for place, (name, kind, means, value, labels) in enumerate(figures):
        if place == 0 or figures[place - 1][0] != name:
            lines += [f"# HELP baton_{name} {means}", f"# TYPE baton_{name} {kind}"]
        lines.append(f"baton_{name}{labels} {value:.3f}".removesuffix(".000"))
    return ("\n".join(lines) + "\n").encode()


OUTSIDE = (
    Endpoint("GET", "/health", None, "Whether the process works", Health, _health),
    Endpoint("GET", "/ready", None, "Whether the store can be read", Health, _ready),
    Endpoint(
        "GET",
        "/metrics",
        "read",
        "Figures for Prometheus",
        str,
        _metrics,
        media="text/plain; version=0.0.4",
    ),
)
"""The endpoints outside ``/api/v1``."""

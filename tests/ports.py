"""Ports for servers that are started later, or that are started again where they were."""

from __future__ import annotations

import os
import socket
from itertools import cycle
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_EACH = 1_000


def _own() -> range:
    """Return ports that nothing gets by chance, other ones in each process of tests.

    From its own range the system takes what connections start from, and what servers get that ask
    for any port. A port of it that was free a moment ago may be in use when a server starts.
    """
    first = int(_RANGE.read_text().split()[0]) if _RANGE.exists() else 32_768
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    last = first - number % 8 * _EACH
    return range(last - _EACH, last)


_PORTS = cycle(_own())


def free_port() -> int:
    """Return a port of 127.0.0.1 that is free, and stays so until a test takes it."""
    for _ in range(_EACH):
        port = next(_PORTS)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")

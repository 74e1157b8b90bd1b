"""The backend ``ray``: workers of a Ray cluster."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Self

import msgspec

from baton.formats.explain_mistakes import checked
from baton.model import InputError
from baton.plugins.origin import install, requirement

from .protocol import Done, JobDoer, Waiting

# Seconds for idle workers to close their agents before they are killed, and for a cluster to accept
# a connection. Ray itself would keep trying to reach a wrong address.
_GRACE = 5.0
_PATIENCE = 10.0
# Starts of a local cluster, of 30 seconds each; see `_start`.
_ATTEMPTS = 3
_STORE = 100 << 20
"""Bytes of shared memory of a cluster for one run: jobs and outcomes are small."""


class RayOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``address`` of a cluster (``auto``, ``ray://host:10001``); a local one is started without it.

    ``workers`` are actors, by default one per CPU; each takes ``cpus``.
    """

    type: str = "ray"
    address: str | None = None
    workers: Annotated[int, msgspec.Meta(ge=1)] | None = None
    cpus: Annotated[float, msgspec.Meta(gt=0)] = 1.0


class Ray(Waiting):
    """Actors that do one job at a time each, and are restarted if they are lost.

    An actor gets a job after it has reported that it is ready: actors that Ray cannot place, or has
    not restarted yet, block nothing.
    """

    options_type: ClassVar[type[RayOptions]] = RayOptions

    def __init__(self, options: Mapping[str, Any], worker: Callable[[], JobDoer]) -> None:
        """``worker`` makes one in each actor.

        Raises:
            InputError: wrong options, or Ray is not installed.
        """
        self._options = checked(dict(options), RayOptions)
        try:
            # It contacts no other machine that the user did not name.
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            import ray
        except ImportError:
            message = f"the backend `ray` needs Ray: {install(requirement('ray'))}"
            raise InputError(message) from None
        self._ray: Any = ray
        self._make_worker = worker
        self._ours = False
        super().__init__()
        self._idle: deque[Any] = deque()
        self._waking: dict[Any, Any] = {}
        self._busy: dict[Any, tuple[Any, int]] = {}

    def __enter__(self) -> Self:
        if not self._ray.is_initialized():
            options = {"log_to_driver": False, "logging_level": "ERROR", "configure_logging": True}
            if self._options.address is not None:
                _reach(self._options.address)
                options["address"] = self._options.address
            else:
                options |= {"include_dashboard": False, "object_store_memory": _STORE}
                options["address"] = "local"
                options["_node_ip_address"] = "127.0.0.1"
                if self._options.workers is not None:
                    options["num_cpus"] = max(1, round(self._options.workers * self._options.cpus))
            self._start(options)
            self._ours = True
        workers = self._options.workers
        if workers is None:
            cpus = self._ray.cluster_resources().get("CPU", 1)
            workers = max(1, int(cpus / self._options.cpus))
        actor = self._ray.remote(num_cpus=self._options.cpus, max_restarts=-1, max_task_retries=0)(
            RayWorker
        )
        for _ in range(workers):
            self._wake(actor.remote(self._make_worker))
        self.room = 2 * workers
        return self

    def _start(self, options: dict[str, Any]) -> None:
        """Start or reach a cluster.

        Ray gives a node of its own 30 seconds to start, which no setting changes. On a machine that
        is busy for a moment, the next attempt succeeds.

        Raises:
            InputError: it cannot be started or reached.
        """
        for attempt in range(_ATTEMPTS):
            try:
                self._ray.init(**options)
            except (ConnectionError, RuntimeError, ValueError, OSError) as error:
                raise InputError(f"the Ray cluster cannot be reached: {error}") from None
            except Exception as error:
                # Ray raises a plain `Exception` for this, and for nothing else here.
                if type(error) is not Exception or "timed out during startup" not in str(error):
                    raise
                self._ray.shutdown()
                if attempt == _ATTEMPTS - 1:
                    raise InputError(
                        f"Ray did not start a local cluster in {_ATTEMPTS} attempts of 30 seconds: "
                        "the machine is too busy; try again, or use --jobs"
                    ) from None
            else:
                return

    def __exit__(self, *_: object) -> None:
        actors = [*self._idle, *self._waking.values(), *(actor for actor, _ in self._busy.values())]
        with suppress(self._ray.exceptions.RayError):
            closing = [actor.close.remote() for actor in self._idle]
            if closing:
                self._ray.wait(closing, num_returns=len(closing), timeout=_GRACE)
            for actor in actors:
                self._ray.kill(actor)
        if self._ours:
            self._ray.shutdown()

    def take(self) -> Done:
        """Wait for any job."""
        while True:
            ready, _ = self._ray.wait([*self._busy, *self._waking], num_returns=1)
            answer = ready[0]
            if answer in self._busy:
                actor, number = self._busy.pop(answer)
                try:
                    outcome: bytes = self._ray.get(answer)
                except self._ray.exceptions.RayTaskError:
                    raise
                except self._ray.exceptions.RayError as error:
                    self._wake(actor)
                    line = next(iter(str(error).splitlines()), "")
                    done = Done(number, None, f"{type(error).__name__}: {line}")
                else:
                    self._idle.append(actor)
                    done = Done(number, outcome)

                self.hand_out()
                return done
            actor = self._waking.pop(answer)
            try:
                self._ray.get(answer)
            except self._ray.exceptions.RayTaskError as error:
                raise InputError(f"a worker of the Ray cluster cannot start: {error}") from None
            except self._ray.exceptions.RayError:
                self._wake(actor)
            else:
                self._idle.append(actor)
            self.hand_out()

    def _wake(self, actor: Any) -> None:
        self._waking[actor.ready.remote()] = actor

    def hand_out(self) -> None:
        """Give jobs to free actors."""
        while self._idle and self._waiting:
            actor = self._idle.popleft()
            number, job = self._waiting.popleft()
            self._busy[actor.do.remote(job)] = (actor, number)


class RayWorker:
    """A worker, as an actor."""

    def __init__(self, make_worker: Callable[[], JobDoer]) -> None:
        self._worker = make_worker()

    def ready(self) -> int:
        """Return the id of its process."""
        return os.getpid()

    def do(self, job: bytes) -> bytes:
        """Do a job."""
        return self._worker.do(job)

    def close(self) -> None:
        """Release agents and judges."""
        self._worker.close()


def _reach(address: str) -> None:
    """Raise InputError if nothing listens: Ray itself would keep trying."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()
    except OSError as error:
        message = f"the Ray cluster cannot be reached at {address}: {error}"
        raise InputError(message) from None

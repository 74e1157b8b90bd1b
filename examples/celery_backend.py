"""A backend of one's own: Celery workers do the work of an evaluation.

In a config:      backend: {type: "celery_backend.py:CeleryBackend", broker: "redis://localhost"}
Start workers:    BROKER=redis://localhost celery -A celery_backend worker

Jobs and outcomes are JSON. A worker needs the same files at the same paths, and Baton.
"""

import os
import time

from celery import Celery
from celery.result import AsyncResult

from baton.runner.backends.protocol import Done
from baton.session.backend_workers import Worker

app = Celery("baton", broker=os.environ.get("BROKER"), backend=os.environ.get("RESULTS"))
app.conf.update(task_acks_late=True, worker_prefetch_multiplier=1, result_expires=3600)
worker = Worker()  # one for each process of Celery's pool; it keeps datasets and agents


@app.task(name="baton.do")
def do(job: str) -> str:
    return worker.do(job.encode()).decode()


class CeleryBackend:
    """Hands jobs to a queue; one that is not done in time counts as lost, and is sent again."""

    def __init__(
        self, broker: str, results: str | None = None, room: int = 16, patience: float = 900
    ) -> None:
        app.conf.update(broker_url=broker, result_backend=results or broker)
        self.room, self.patience = room, patience
        self.out: dict[int, tuple[AsyncResult, float]] = {}

    def __enter__(self) -> "CeleryBackend":
        return self

    def __exit__(self, *_: object) -> None:
        for result, _ in self.out.values():
            result.revoke()

    def submit(self, number: int, job: bytes) -> None:
        self.out[number] = (do.delay(job.decode()), time.monotonic() + self.patience)

    def take(self) -> Done:
        while True:
            for number, (result, until) in self.out.items():
                if result.ready() or time.monotonic() > until:
                    del self.out[number]
                    if result.successful():
                        outcome = result.get().encode()
                        result.forget()
                        return Done(number, outcome)
                    return Done(number, None, f"Celery: {result.state} {result.info}")
            time.sleep(0.02)

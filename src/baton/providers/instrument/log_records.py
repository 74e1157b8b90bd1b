"""Passes a library's log records to OpenTelemetry, for texts that are in no span."""

from __future__ import annotations

import logging

from opentelemetry import _logs
from opentelemetry._logs import SeverityNumber
from opentelemetry.context import get_current

_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""Attributes of every log record. The others are those of the library."""


class ToOpenTelemetry(logging.Handler):
    """Passes all records of one logger on, and to the program's handlers those that they want.

    The program's own log stays as it is: without this handler, its level may leave the records out.
    """

    def __init__(self, logger: logging.Logger) -> None:
        super().__init__()
        self._logger = logger

    @classmethod
    def listen(cls, name: str) -> None:
        """Pass on the records of a logger, from the level INFO."""
        logger = logging.getLogger(name)
        logger.addHandler(cls(logger))
        logger.setLevel(logging.INFO)
        logger.propagate = False

    @classmethod
    def listens(cls, name: str) -> bool:
        """Return whether the records of a logger are passed on."""
        return any(isinstance(each, cls) for each in logging.getLogger(name).handlers)

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a record on, once."""
        above = self._logger.parent
        if above is not None and above.isEnabledFor(record.levelno):
            above.callHandlers(record)
            if _reaches_opentelemetry(above):
                return
        _logs.get_logger(record.name).emit(
            _logs.LogRecord(
                timestamp=int(record.created * 1e9),
                context=get_current(),
                severity_text=record.levelname,
                severity_number=SeverityNumber.INFO,
                body=record.getMessage(),
                attributes={k: v for k, v in vars(record).items() if k not in _USUAL},
            )
        )


def _reaches_opentelemetry(logger: logging.Logger | None) -> bool:
    """Return whether the program itself passes records of a logger to OpenTelemetry."""
    while logger is not None:
        if any(type(each).__module__.startswith("opentelemetry.") for each in logger.handlers):
            return True
        logger = logger.parent if logger.propagate else None
    return False

"""Traces fetched from a store's query API, as OTLP JSON that the readers read.

A store is one file with one function ``traces(store, query)``: an async generator of objects
``{"resourceSpans": [...]}``, each one whole trace.
"""

from .store import Pulled, PullError, Query, Store, pull

__all__ = ["PullError", "Pulled", "Query", "Store", "pull"]
